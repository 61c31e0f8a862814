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


def public_rows(
    session: EngineSession, card: DataCard, table: str, columns: dict[str, ColumnType], most: int
) -> list[tuple[Value, ...]]:
    """The first different rows of these columns, in order; each ends with how often it is there."""

    def run(connection: Any) -> list[tuple[Value, ...]]:
        there = tables(connection, card, [table])[table]
        read, made = [], []
        for i, (name, kind) in enumerate(columns.items(), start=1):
            own, family = there.columns[name.lower()]
            read.append(f"{POSTGRES.read(POSTGRES.identifier(own), kind, family)} AS c{i}")
            made.append(f"{POSTGRES.checked(f'c{i}', kind)} AS c{i}")
        names = ", ".join(f"c{i}" for i in range(1, len(columns) + 1))
        cast = POSTGRES.nested(f"SELECT {', '.join(read)} FROM {there.place}")
        rows = POSTGRES.nested(f"SELECT {', '.join(made)} FROM {cast}")
        sql = f"SELECT {names}, count(*) FROM {rows} GROUP BY {names} ORDER BY {names} LIMIT {most}"
        return [tuple(row) for row in connection.execute(sql, prepare=False)]

    return session.guarded(card.source, run)
