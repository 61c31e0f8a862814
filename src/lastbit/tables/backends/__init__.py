"""Engines that run the one statement of a query; each hands back the same integers.

A backend shows the card's source and its public tables under the names that the statement uses
(`compile_rows.relation`), runs it and gives `Aggregates`. It adds nothing and decides nothing: what
bounds a person's influence is in the statement. An engine's own words about a failure may hold
values of the data, so none of them leaves a backend: `EngineFailed` says what can be said.

| file | holds |
|---|---|
| `duckdb.py` | `aggregates`, `fingerprint`, `columns_of` for files and frames, by DuckDB |
| `duckdb_sources.py` | CSV, Parquet and DuckDB files, and frames, as views of one connection |
| `duckdb_files.py` | the files of a source: each once, and the same from first to last |
| `duckdb_frames.py` | frames as DuckDB can read them, each value by itself |
"""
