"""Engines that run the one statement of a query; each hands back the same integers.

A backend shows the card's source and its public tables under the names that the statement uses
(`compile.rows.relation`), runs it and gives `RawRows`. It adds nothing and decides nothing: what
bounds a person's influence is in the statement. An engine's own words about a failure may hold
values of the data, so none of them leaves a backend: `EngineFailed` says what can be said.

| file | holds |
|---|---|
| `engines.py` | the engine of a source, and a session on it, which a question is asked in |
| `raw_rows.py` | what an engine gives back, for the kernel alone: it shows itself to nobody |
| `csv_records.py` | CSV split into records, exactly |
| `duckdb/engine.py` | DuckDB's session: `aggregates`, `fingerprint`, `rehearse` |
| `duckdb/sources.py` | CSV, Parquet and DuckDB files, and frames, as views of a connection |
| `duckdb/unit_index.py` | which units have many rows, kept for the next question |
| `duckdb/files.py` | the files of a source, each once |
| `duckdb/delta.py` | those of a Delta table, by its log |
| `duckdb/frames.py` | frames as DuckDB can read them |
| `spark/sources.py` | tables and Parquet files of Spark, each scan the same rows |
| `spark/snapshot.py` | frames of Spark, computed once |
| `columns.py`, `*/columns.py` | names and types of columns, for cards; no answer needs it |
| `printed.py`, `progress.py` | a statement for review; how far an engine is |
"""
