"""Names and types of columns, and public values, as DuckDB reads them; no question needs it."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import duckdb

from lastbit.tables.backends.duckdb.card_types import stored_type_named
from lastbit.tables.backends.duckdb.engine import EngineSession, opened_all
from lastbit.tables.backends.duckdb.files import opened
from lastbit.tables.backends.duckdb.sources import shown, shown_columns
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.rows import relation
from lastbit.tables.compile.steps import identifier
from lastbit.tables.query.expression import ColumnType, StoredType, Value


def version_of(session: EngineSession, card: DataCard) -> str:
    """Of DuckDB, as it says itself."""
    del session, card
    return duckdb.__version__


def columns_of(session: EngineSession, source: Source) -> dict[str, StoredType]:
    """The names and types of the source's columns; no value is looked at, so CSV is all text."""

    def run(connection: Any) -> dict[str, StoredType]:
        with opened(source) as there:
            kinds = shown_columns(connection, there, relation())
            return {column: stored_type_named(kind) for column, kind in kinds.items()}

    return session.guarded(run)


def public_values(
    session: EngineSession, card: DataCard, table: str, column: tuple[str, ColumnType], most: int
) -> tuple[Value, ...]:
    """The first different values of a public table's column, in order."""
    name, kind = column

    def run(connection: Any) -> tuple[Value, ...]:
        with ExitStack() as held:
            there, place = opened_all(card, [table], held)[1][1], relation(table)
            shown(connection, there, place, {name: kind})
            read = DUCKDB.read(identifier(name), kind, "other")
            cast = f"SELECT {read} AS c1 FROM {identifier(place)}"
            values = f"SELECT DISTINCT {DUCKDB.checked('c1', kind)} AS c1 FROM ({cast})"
            sql = f"SELECT c1 FROM ({values}) WHERE c1 IS NOT NULL ORDER BY c1 LIMIT {most}"
            return tuple(row[0] for row in connection.execute(sql).fetchall())

    return session.guarded(run, card.engine_limits)
