"""Data cards: what a steward declares of a table."""
