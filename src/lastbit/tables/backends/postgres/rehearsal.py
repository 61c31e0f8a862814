"""PostgreSQL runs a statement on tables without rows, before it is paid for.

Theorem  whether this raises does not depend on a row of a private table: it stands in the statement
         as SELECT ... WHERE FALSE
Checked  tests/engines/test_postgres.py
"""

from __future__ import annotations

from typing import Any

from lastbit.tables.backends.engines import Spelled
from lastbit.tables.backends.postgres.engine import EngineSession, actual_tables
from lastbit.tables.card.schema import DataCard
from lastbit.tables.compile.postgres import POSTGRES
from lastbit.tables.query.scan import Scan


def run_without_rows(session: EngineSession, query: Scan, card: DataCard, spelled: Spelled) -> None:
    """The statement on private tables without rows, and public ones with theirs."""

    def run(connection: Any) -> None:
        actual = actual_tables(connection, query, card, empty=True)
        wanted = spelled(dialect=POSTGRES, actual=actual)
        connection.execute(wanted.sql, prepare=False)

    session.guarded(card.source, run)
