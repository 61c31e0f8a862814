"""Questions as values, whoever asked them and in whatever language."""
