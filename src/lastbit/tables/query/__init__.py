"""Questions as values, in whatever language they were asked."""
