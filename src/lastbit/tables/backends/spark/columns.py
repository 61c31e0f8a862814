"""Names and types of columns, and public values, as Spark has them; no question needs it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lastbit.tables.backends.spark.engine import EngineSession, opened_all
from lastbit.tables.backends.spark.sources import Opened, chosen, family_of, opened
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.compile.dialect import Family
from lastbit.tables.compile.spark import SPARK
from lastbit.tables.query.expression import ColumnType, Value

_TYPES: Mapping[Family, ColumnType] = MappingProxyType(
    {"decimal": "number", "timestamptz": "timestamp"}
)


def version_of(session: EngineSession, card: DataCard) -> str:
    """Of Spark, as it says itself."""
    del card
    return session.guarded(lambda own: str(own.version))


def columns_of(session: EngineSession, source: Source) -> dict[str, ColumnType]:
    """The names and types of the source's columns; no value is looked at."""
    return session.guarded(lambda own: columns_found(opened(own, source)))


def columns_found(there: Opened) -> dict[str, ColumnType]:
    """The readable columns, with the types of a card that are nearest."""
    found: dict[str, ColumnType] = {}
    for field in there.frame.schema.fields:
        family = family_of(field)
        if family == "decimal" and not field.dataType.scale:
            found[field.name] = "integer"
        elif family != "other":
            found[field.name] = _TYPES.get(family, family)  # type: ignore[arg-type]
    return found


def public_rows(
    session: EngineSession, card: DataCard, table: str, columns: dict[str, ColumnType], most: int
) -> list[tuple[Value, ...]]:
    """The first different rows of these columns, in order; each ends with how often it is there."""

    def run(own: Any) -> list[tuple[Value, ...]]:
        there = opened_all(own, card, [table])[1][1]
        read, made = [], []
        for i, (name, kind) in enumerate(columns.items(), start=1):
            stored, family = there.columns[name.lower()]
            read.append(f"{SPARK.read(SPARK.identifier(stored), kind, family)} AS c{i}")
            made.append(f"{SPARK.checked(f'c{i}', kind)} AS c{i}")
        rows = chosen(there, dict(columns)).selectExpr(*read).selectExpr(*made)
        names = [f"c{i}" for i in range(1, len(columns) + 1)]
        groups = rows.groupBy(*names).count().orderBy(*names)
        return [tuple(row) for row in groups.limit(most).collect()]

    return session.guarded(run)
