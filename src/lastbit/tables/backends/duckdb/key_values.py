"""All values of an expression over columns of which each value is known, as DuckDB computes them.

No table is opened: what is listed are days and whole numbers between bounds. The expression is
spelled as in a statement, so that a key of a row is one of the list, to the last bit.
"""

from __future__ import annotations

from functools import lru_cache

from lastbit.tables.backends.duckdb.engine import EngineSession
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.expressions import Spelling
from lastbit.tables.compile.steps import Steps, Typed
from lastbit.tables.query.expression import Expression, Value
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
    spelling = Spelling(columns.__getitem__, steps, DUCKDB)
    key, *filters = (spelling.spelled(part) for part in (expression, *tests))
    parts = [f"l0 AS (SELECT * FROM {', '.join(map(_points, range(len(spans)), spans))})"]
    for step in steps.after_joins(0):
        parts.append(f"l{len(parts)} AS (SELECT {step} FROM l{len(parts) - 1})")
    every = " AND ".join(["TRUE", *(test.sql for test in filters)])
    beyond = " OR ".join(f"b{place}" for place in range(len(spans)))
    first = ", ".join(f"min(c{place})" for place in range(len(spans)))
    sql = (
        f"WITH {', '.join(parts)} SELECT {key.sql} AS k FROM l{len(parts) - 1} "
        f"WHERE ({every}) OR {beyond} GROUP BY k HAVING k IS NOT NULL "
        f"ORDER BY {first if key.type == 'text' else 'k'} LIMIT {most + 1}"
    )
    with EngineSession() as session:
        rows = session.guarded(lambda connection: connection.execute(sql).fetchall())
    return tuple(row[0] for row in rows) if 0 < len(rows) <= most else None


def _points(place: int, span: Span) -> str:
    """The values of a column, and whether rows beyond the end count as this one."""
    number = (
        f"greatest({span.first}, {span.first // span.width * span.width} + range * {span.width})"
    )
    value = {
        "integer": f"CAST({number} AS BIGINT)",
        "date": f"CAST(DATE '1970-01-01' + CAST({number} AS INTEGER) AS DATE)",
        "timestamp": f"make_timestamp({number})",
    }[span.kind]
    sides = zip((0, span.size - 1), span.beyond, strict=True)
    beyond = " OR ".join(f"range = {end} AND {counts}" for end, counts in sides)
    missing = " UNION ALL SELECT NULL, FALSE" if span.nullable else ""
    return f"(SELECT {value} AS c{place}, {beyond} AS b{place} FROM range({span.size}){missing})"
