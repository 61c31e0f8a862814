"""Spark runs a statement on tables without rows, before it is paid for.

Theorem  whether this raises does not depend on a row: it runs the statement on an empty table with
         the source's columns; but files with a value at which Spark's own reader stops are refused
         there as a whole, whatever is asked (`sources.check_values`)
Checked  tests/engines/test_spark.py
"""

from __future__ import annotations

from typing import Any

from lastbit.tables.backends.engines import Spelled
from lastbit.tables.backends.spark.engine import (
    EngineSession,
    asked_tables,
    check_joins,
    run_sql,
    show_tables,
)
from lastbit.tables.card.schema import DataCard
from lastbit.tables.compile.rows import private_relation, relation
from lastbit.tables.compile.spark import SPARK
from lastbit.tables.query.scan import Scan

_WORDS = "the source could not be read, or Spark cannot run this statement"


def run_without_rows(session: EngineSession, query: Scan, card: DataCard, spelled: Spelled) -> None:
    """The statement on private tables without rows, and public ones with theirs."""
    protected = {relation(), *map(private_relation, card.protected)}

    def run(spark: Any) -> None:
        asked = asked_tables(spark, query, card)
        actual = show_tables(spark, asked)
        sql = spelled(dialect=SPARK, actual=actual).sql
        check_joins(spark, query, card, actual)
        show_tables(spark, asked, empty=protected)
        run_sql(spark, sql)

    session.guarded(run, words=f"{_WORDS}; check the source; nothing was charged")
