"""blackbox."""
