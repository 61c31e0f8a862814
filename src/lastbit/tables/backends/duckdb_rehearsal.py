"""The statement run once on tables without rows: what must fail, fails before anything is paid.

Theorem  whether `rehearse` raises does not depend on a row: it reads names and types of columns,
         and runs the statement on empty tables of those types
Checked  tests/release/test_reserving.py
"""

from __future__ import annotations

from typing import Any

from lastbit.tables.backends.duckdb import connected, prepared
from lastbit.tables.compile import statement
from lastbit.tables.compile_rows import relation
from lastbit.tables.literals import identifier
from lastbit.tables.measures import Measure
from lastbit.tables.query import Query
from lastbit.tables.schema import DataCard
from lastbit.tables.sealing import sealed

__all__ = ["rehearse"]

_NO_SECRET = "0" * 64


def rehearse(query: Query, card: DataCard, measures: tuple[Measure, ...]) -> None:
    """Refuse a source that is not there, columns that it lacks, and what the engine cannot run."""
    names = [relation(), *(relation(join.table) for join in query.joins)]
    wanted = statement(query, card, measures, secret=_NO_SECRET)

    def run() -> None:
        with connected() as connection:
            prepared(connection, query, card)
            columns = {name: _described(connection, name) for name in names}
        with connected() as empty:
            for name, typed in columns.items():
                empty.execute(f"CREATE TABLE {identifier(name)} ({typed})")
            empty.execute(wanted.sql).fetchone()

    words = "the source could not be read, or the database cannot run this statement"
    sealed(run, words=f"{words}; check the source; nothing was charged")


def _described(connection: Any, name: str) -> str:
    found = connection.execute(f"DESCRIBE {identifier(name)}").fetchall()
    return ", ".join(f"{identifier(column)} {kind}" for column, kind, *_ in found)
