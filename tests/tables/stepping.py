"""Expressions as one statement, step by step, over any rows."""

from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.expressions import Spelling
from lastbit.tables.compile.steps import MIXED, Steps, Typed


def stepped(expressions, kinds, origin):
    """SELECT the expressions FROM `origin`, whose columns are named and typed by `kinds`."""
    steps = Steps()
    spelling = Spelling(lambda column: Typed(column.name, kinds[column.name]), steps, DUCKDB)
    found = [spelling.spelled(e) for e in expressions]
    parts, last = [f"t AS NOT MATERIALIZED (SELECT *, {MIXED} FROM {origin})"], "t"
    for number, selected in enumerate(steps.after_joins(0), start=1):
        parts.append(f"l{number} AS NOT MATERIALIZED (SELECT {selected} FROM {last})")
        last = f"l{number}"
    wanted = ", ".join(f"{value.sql} AS v{place}" for place, value in enumerate(found))
    return f"WITH {', '.join(parts)} SELECT {wanted} FROM {last}"
