"""duckdb."""
