"""Names and types of columns, and public values, as PostgreSQL has them; no question needs it."""

from __future__ import annotations

from typing import Any

from lastbit.tables.backends.postgres.engine import EngineSession, tables
from lastbit.tables.backends.postgres.sources import found
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.compile.postgres import POSTGRES
from lastbit.tables.query.expression import ColumnType, Value


def version_of(session: EngineSession, card: DataCard) -> str:
    """Of the server, as it says itself: 16.4, say."""
    number = session.guarded(card.source, lambda connection: connection.info.server_version)
    return f"{number // 10_000}.{number % 10_000}"


def columns_of(session: EngineSession, source: Source) -> dict[str, ColumnType]:
    """The names and types of the table's columns; no value is looked at."""
    return session.guarded(source, lambda connection: found(connection, source, {}).types())


def public_values(
    session: EngineSession, card: DataCard, table: str, column: tuple[str, ColumnType], most: int
) -> tuple[Value, ...]:
    """The first different values of a public table's column, in order."""
    name, kind = column

    def run(connection: Any) -> tuple[Value, ...]:
        there = tables(connection, card, [table])[table]
        own, family = there.columns[name.lower()]
        read = POSTGRES.read(POSTGRES.identifier(own), kind, family)
        cast = POSTGRES.nested(f"SELECT {read} AS c1 FROM {there.place}")
        values = POSTGRES.nested(
            f"SELECT DISTINCT {POSTGRES.checked('c1', kind)} AS c1 FROM {cast}"
        )
        sql = f"SELECT c1 FROM {values} WHERE c1 IS NOT NULL ORDER BY c1 LIMIT {most}"
        return tuple(row[0] for row in connection.execute(sql, prepare=False))

    return session.guarded(card.source, run)
