"""Names and types of columns, and public values, as Spark has them; no question needs it."""

from __future__ import annotations

from typing import Any

from lastbit.tables.backends.spark.engine import EngineSession, opened_all
from lastbit.tables.backends.spark.sources import chosen, columns_found, opened
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.compile.spark import SPARK
from lastbit.tables.query.expression import ColumnType, Value


def columns_of(session: EngineSession, source: Source) -> dict[str, ColumnType]:
    """The names and types of the source's columns; no value is looked at."""
    return session.guarded(lambda own: columns_found(opened(own, source)))


def public_values(
    session: EngineSession, card: DataCard, table: str, column: tuple[str, ColumnType], most: int
) -> tuple[Value, ...]:
    """The first different values of a public table's column, in order."""
    name, kind = column

    def run(own: Any) -> tuple[Value, ...]:
        there = opened_all(own, card, [table])[1][1]
        stored, family = there.columns[name.lower()]
        read = chosen(there, {name: kind}).selectExpr(
            f"{SPARK.read(SPARK.identifier(stored), kind, family)} AS c1"
        )
        values = read.selectExpr(f"{SPARK.checked('c1', kind)} AS c1").where("c1 IS NOT NULL")
        return tuple(row[0] for row in values.distinct().orderBy("c1").limit(most).collect())

    return session.guarded(run)
