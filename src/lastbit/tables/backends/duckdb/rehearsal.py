"""DuckDB runs a statement on tables without rows, before it is paid for.

Theorem  whether this raises does not depend on a row of a protected table: it reads the names and
         types of its columns, and runs the statement on an empty table of those types
Checked  tests/release/test_reserving.py
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from lastbit.tables.backends.duckdb.engine import (
    EngineSession,
    asked_tables,
    check_joins,
    is_prepared,
)
from lastbit.tables.backends.duckdb.files import part
from lastbit.tables.backends.duckdb.leftovers import remove_leftovers
from lastbit.tables.backends.duckdb.sources import shown, shown_columns
from lastbit.tables.backends.engines import Spelled
from lastbit.tables.card.schema import DataCard
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.rows import private_relation, relation
from lastbit.tables.compile.steps import identifier
from lastbit.tables.limits import sealed
from lastbit.tables.query.scan import Scan

_WORDS = "the source could not be read, or the database cannot run this statement"


def run_without_rows(session: EngineSession, query: Scan, card: DataCard, spelled: Spelled) -> None:
    """The statement on private tables without rows, and public ones with theirs."""
    numbers = part("prepared").numbers(query, card) if is_prepared(card) else None
    sql = spelled(dialect=DUCKDB, numbers=numbers).sql

    def run() -> None:
        remove_leftovers(card.engine_limits.spill_folder)
        with session.connected(card.engine_limits) as connection:
            prepared(connection, query, card)
            connection.execute(sql).fetchall()

    sealed(run, words=f"{_WORDS}; check the source; nothing was charged")


def prepared(connection: Any, query: Scan, card: DataCard) -> None:
    """Private tables without rows, joined public ones with theirs; refuses missing columns.

    Of private tables only names and types are looked at.
    """
    protected = {relation(), *map(private_relation, card.protected)}
    with ExitStack() as held:
        for name, there, columns in asked_tables(query, card, held):
            show, limit = (shown_columns, " LIMIT 0") if name in protected else (shown, "")
            whole = f"lastbit_whole {name}"  # no table of the card is called so
            show(connection, there, whole, columns)
            rows = f"SELECT * FROM {identifier(whole)}{limit}"
            connection.execute(f"CREATE TEMP TABLE {identifier(name)} AS {rows}")
    check_joins(connection, query, card)
