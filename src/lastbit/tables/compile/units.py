"""A sub-query grouped by the unit, as SQL: one row for each unit and key.

Law      every column of a row is a function of the multiset of the unit's rows in that group
Theorem  no order of rows and no engine can change it: counts are counts; sums are of integers, in
         128 bits; a mean is one division of a sum by a count; the least and the greatest of values
         are the same whatever came first, since values that are equal are the same: 0 and -0 are
         made 0 (`_same`)
Theorem  no sum overflows: whole numbers have 64 bits, numbers on a grid fewer than 45, and there
         are at most MOST_ROWS = 2**40 rows, which makes less than 2**104 in all
Theorem  no row stops the statement: sums that need more than 64 bits are missing (TRY_CAST), and a
         mean of no values is, since its sum is
Checked  tests/stability/ (on the real engine, with mutants), tests/tables/test_units.py

`unit_rows` has one row for each unit and key in e: the columns of the sub-query, by their names. Up
to e all is as in `rows.py`, of the sub-query's own FROM and WHERE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from lastbit.tables.card.schema import DataCard
from lastbit.tables.compile.dialect import Dialect
from lastbit.tables.compile.rows import UNIT_ROWS, CompiledRows
from lastbit.tables.compile.steps import Typed
from lastbit.tables.limits import MOST_MATCHES, refused
from lastbit.tables.measures import Measure, grid_of
from lastbit.tables.query.scan import Scan
from lastbit.tables.query.units import ListJoin, PerUnit, UnitColumn

OnGrid = Callable[[Measure, Typed, Dialect], str]


def unit_rows(rows: CompiledRows | None, on_grid: OnGrid) -> Iterator[str]:
    """The rows of the sub-query, if there is one; `on_grid` spells the integer of a value."""
    if rows is None:
        return
    inner, card, dialect = rows.query, rows.card, rows.dialect
    assert isinstance(inner, PerUnit)
    names, identifier = rows.names, dialect.identifier
    selected = [f"u AS {identifier(card.column(card.unit or '').name)}"]
    selected += [
        f"{name} AS {identifier(key.name)}" for name, key in zip(names, inner.keys, strict=True)
    ]
    selected += [
        f"{_spelled(part, rows, on_grid)} AS {identifier(part.name)}" for part in inner.columns
    ]
    grouped = f"FROM e WHERE u IS NOT NULL GROUP BY {', '.join(['u', *names])}"
    body = "WITH " + ",\n".join(rows.until_filtered()) + f"\nSELECT {', '.join(selected)} {grouped}"
    yield dialect.part(UNIT_ROWS, body, "kept")


def check_matches(query: Scan, card: DataCard, most: int) -> None:
    """That joins make few rows of one, `most` of them: by public tables and the card alone."""
    if most <= MOST_MATCHES:
        return
    problem = f"could make more than {MOST_MATCHES} rows of one: the public tables hold many"
    remedy = "join on more columns, or leave one row for each value in the public table"
    if any(isinstance(join, ListJoin) for join in query.all_joins):
        problem = f"and UNNEST could make more than {MOST_MATCHES} rows of one: tables hold many"
        remedy = "join tables whose join columns no two rows share, or leave UNNEST out"
    elif any(join.table in card.private for join in query.all_joins):
        remedy += "; or lower max_rows of the private table on the card"
    raise refused("JOIN", f"{problem} rows with equal join columns", remedy)


def _spelled(part: UnitColumn, rows: CompiledRows, on_grid: OnGrid) -> str:
    if part.expression is None:
        return "count(*)"
    value = rows.value(part.expression)
    match part.function:
        case "count":
            return f"count({value.sql})"
        case "count_distinct":
            return f"count(DISTINCT {_same(value, rows.dialect)})"
        case "min" | "max":
            same = _same(value, rows.dialect)
            return rows.dialect.extreme(part.function, same, value.type)
        case "sum" | "mean":
            return _total(part, value, on_grid, rows.dialect)


def _total(part: UnitColumn, value: Typed, on_grid: OnGrid, dialect: Dialect) -> str:
    """The sum or the mean of integers: whole numbers as they are, others on a grid."""
    whole, step, integer = value.type == "integer", Fraction(1), value.sql
    if part.bounds is not None:
        given = part.step or (Fraction(1) if whole else None)
        step, low, high = grid_of(part.bounds, given, centre=Fraction(0))
        grid = Measure(name=part.name, kind="values", step=step, lowest=low, highest=high)
        integer = on_grid(grid, value, dialect)
    elif not whole:
        problem = "has no bounds: an exact sum of numbers is made on a grid between them"
        raise refused(
            part.name, problem, "declare bounds on the card, or write clamp(x, low, high)"
        )
    total = dialect.unit_total.format(x=integer)
    if part.function == "sum" and whole and step == 1:
        return dialect.total_as(total, "integer")
    number = dialect.total_as(total, "number")
    if part.function == "mean":
        number = dialect.mean_of.format(total=number, count=f"count({value.sql})")
    return number if step == 1 else dialect.scaled(number, step)


def _same(value: Typed, dialect: Dialect) -> str:
    """The value, such that equal ones are the same."""
    if value.type != "number":
        return value.sql
    zero = dialect.double(0)
    return f"CASE WHEN {value.sql} = {zero} THEN {zero} ELSE {value.sql} END"
