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


def public_rows(
    session: EngineSession, card: DataCard, table: str, columns: dict[str, ColumnType], most: int
) -> list[tuple[Value, ...]]:
    """The first different rows of these columns, in order; each ends with how often it is there."""

    def run(connection: Any) -> list[tuple[Value, ...]]:
        with ExitStack() as held:
            there, place = opened_all(card, [table], held)[1][1], relation(table)
            shown(connection, there, place, columns)
            pairs = list(enumerate(columns.items(), start=1))
            read = [f"{DUCKDB.read(identifier(n), k, 'other')} AS c{i}" for i, (n, k) in pairs]
            cast = f"SELECT {', '.join(read)} FROM {identifier(place)}"
            made = [f"{DUCKDB.checked(f'c{i}', kind)} AS c{i}" for i, (_, kind) in pairs]
            names = ", ".join(f"c{i}" for i, _ in pairs)
            rows = f"SELECT {', '.join(made)} FROM ({cast})"
            sql = f"SELECT {names}, count(*) FROM ({rows}) GROUP BY {names} ORDER BY {names}"
            found: list[tuple[Value, ...]] = connection.execute(sql).fetchmany(most)
            return found

    return session.guarded(run, card.engine_limits)
