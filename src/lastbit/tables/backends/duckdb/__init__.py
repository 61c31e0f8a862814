"""DuckDB as an engine: sources as views, and the statement run on them."""
