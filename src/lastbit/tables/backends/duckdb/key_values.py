"""All values of an expression over columns of which each value is known, as DuckDB computes them.

No table is opened: what is listed are days and whole numbers between bounds. The expression is
spelled as in a statement, so that a key of a row is one of the list, to the last bit.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from lastbit.tables.backends.duckdb.engine import EngineSession
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.expressions import Spelling
from lastbit.tables.compile.steps import Steps, Typed
from lastbit.tables.query.expression import ColumnName, Expression, Value
from lastbit.tables.query.known_keys import Span


@lru_cache(maxsize=256)
def values_over(
    expression: Expression, tests: tuple[Expression, ...], spans: tuple[Span, ...], most: int
) -> tuple[Value, ...] | None:
    """The different values where all tests are true, or a span goes on beyond its end; in order.

    Texts are in the order of what they are made of. None where there are none, or more than `most`.
    """
    columns = {span.column: Typed(f"c{place}", span.kind) for place, span in enumerate(spans)}  # type: ignore[arg-type]
    steps = Steps(evens=False)

    def scope(column: ColumnName) -> Typed:
        return columns[column]

    spelling = Spelling(scope, steps, DUCKDB)
    key, *filters = (spelling.spelled(part) for part in (expression, *tests))
    tables = [_points(place, span) for place, span in enumerate(spans)]
    beyond = " OR ".join(f"b{place}" for place in range(len(spans)))
    every = " AND ".join(test.sql for test in filters) or "TRUE"
    last, parts = "t", [f"t AS (SELECT * FROM {', '.join(tables)})"]
    for number, step in enumerate(steps.after_joins(0), start=1):
        parts.append(f"l{number} AS (SELECT {step} FROM {last})")
        last = f"l{number}"
    first = ", ".join(f"min(c{place})" for place in range(len(spans)))
    order = first if key.type == "text" else "k"
    sql = f"WITH {', '.join(parts)} SELECT {key.sql} AS k FROM {last} WHERE ({every}) OR {beyond}"
    sql += f" GROUP BY k HAVING k IS NOT NULL ORDER BY {order} LIMIT {most + 1}"

    def run(connection: Any) -> list[Any]:
        return [row[0] for row in connection.execute(sql).fetchall()]

    with EngineSession() as session:
        values = session.guarded(run)
    return tuple(values) if 0 < len(values) <= most else None


def _points(place: int, span: Span) -> str:
    """The values of a column, and whether rows beyond the end count as this one."""
    start = span.first - span.first % span.width
    number = f"greatest({span.first}, {start} + range * {span.width})"
    value = {
        "integer": f"CAST({number} AS BIGINT)",
        "date": f"CAST(DATE '1970-01-01' + CAST({number} AS INTEGER) AS DATE)",
        "timestamp": f"make_timestamp({number})",
    }[span.kind]
    sides = ((0, span.low_beyond), (span.size - 1, span.high_beyond))
    beyond = " OR ".join(f"range = {end}" for end, counts in sides if counts) or "FALSE"
    listed = f"SELECT {value} AS c{place}, {beyond} AS b{place} FROM range({span.size})"
    missing = " UNION ALL SELECT NULL, FALSE" if span.nullable else ""
    return f"({listed}{missing})"
