"""How fast CSV is read: DuckDB's own reader, beside ours that checks every record.

.venv/bin/python bench/csv_reading.py            about 110 MB, some with quotes
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable

import duckdb

from lastbit.tables.backends.duckdb.engine import EngineSession
from lastbit.tables.backends.duckdb.files import opened
from lastbit.tables.backends.duckdb.sources import check_csv, shown
from lastbit.tables.card.schema import Source

ROWS = 2_500_000
MADE = """
    SELECT i // 5 AS who, 'place ' || (i % 17) AS place, (i * 7 % 1000) / 8 AS cost,
           DATE '2024-01-01' + (i % 300)::INT AS day, i % 2 = 0 AS ok,
           CASE WHEN i % 10 = 0 THEN 'a "q" b' ELSE 'plain' END AS note
    FROM range({rows}) AS t(i)
"""
ASKED = "count(*), sum(TRY_CAST(who AS BIGINT)), min(note), sum(TRY_CAST(cost AS DOUBLE))"
NAMES = ("who", "place", "cost", "day", "ok", "note")


def theirs(path: str, parallel: str) -> object:
    columns = ", ".join(f"'{name}': 'VARCHAR'" for name in NAMES)
    options = f"auto_detect = false, header = true, columns = {{{columns}}}, parallel = {parallel}"
    with EngineSession() as session, session.connected() as connection:
        return connection.execute(f"SELECT {ASKED} FROM read_csv('{path}', {options})").fetchall()


def ours(path: str) -> object:
    source = Source(kind="csv", paths=(path,))
    with EngineSession() as session, opened(source) as there, session.connected() as connection:
        shown(connection, there, "rows")
        return connection.execute(f"SELECT {ASKED} FROM rows").fetchall()


def checked(path: str) -> None:
    with opened(Source(kind="csv", paths=(path,))) as there:
        check_csv(there)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.csv")
        duckdb.execute(f"COPY ({MADE.format(rows=ROWS)}) TO '{path}' (HEADER)")
        size = os.path.getsize(path) / 1e6
        works: dict[str, Callable[[], object]] = {
            "DuckDB, parallel": lambda: theirs(path, "true"),
            "DuckDB, one after the other": lambda: theirs(path, "false"),
            "lastbit: check, before the charge": lambda: checked(path),
            "lastbit: copy and read": lambda: ours(path),
        }
        print(
            f"{size:.0f} MB, {ROWS:,} rows, DuckDB {duckdb.__version__}, Python {sys.version[:6]}"
        )
        for name, work in works.items():
            times = []
            for _ in range(3):
                start = time.perf_counter()
                work()
                times.append(time.perf_counter() - start)
            best = min(times)
            print(
                f"{name:36} {best:6.2f} s {size / best:7.0f} MB/s {ROWS / best / 1e6:6.2f} M rows/s"
            )


if __name__ == "__main__":
    main()
