"""error_bounds."""
