"""Joins on the privacy unit, and sub-queries grouped by it: that a unit's rows stay its own.

Theorem  rows of two private tables that meet only where their units are equal belong to one unit,
         and so do rows of a sub-query grouped by the unit. What a unit contributes then depends on
         its own rows alone, in all private tables, and `query.py` bounds it as before: rows are
         weighed by max_rows after all joins. `tables/query/units.py` has the proof
Theorem  where a sub-query is grouped by the unit alone, and nothing is joined afterwards, a unit
         has one row: max_rows and max_groups are 1
Checked  tests/verify/test_check_units.py

A join that does not compare the units is rejected: it would let one person's row meet any number of
others'. Rows that one unit may bring to all joins together are limited (`_MOST`), since no sum may
overflow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from .numbers import Json, require

_MOST = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """What a query says of units: its joins, those of its sub-query, and the columns of that."""

    joins: tuple[Any, ...]
    inner_joins: tuple[Any, ...]
    columns: tuple[str, ...] | None
    """Of the sub-query grouped by the unit; None if there is none."""
    one_row: bool
    """Whether each unit has one row, since the sub-query has no other key."""
    named: tuple[str, ...]
    """The columns, of the table or of the sub-query in its place, that the query names."""


def check_units(plan: Json, units: Units) -> None:
    """Reject a query by which rows of two units could meet, or limits that do not follow."""
    unit, private = plan["unit"], plan.get("private", {})
    joined = [join for join in (*units.inner_joins, *units.joins) if "private" in join]
    require(isinstance(private, Mapping), "the private tables are malformed")
    require(set(private) == {join["table"] for join in joined}, "private tables are other ones")
    require("private" not in plan or bool(private), "the private tables are none")
    for table in private.values():
        whole = isinstance(table, Mapping) and set(table) == {"unit", "max_rows"}
        require(whole, "a private table is malformed")
        named = isinstance(table["unit"], str) and bool(table["unit"])
        require(named, "the unit of a private table has no name")
        most = table["max_rows"]
        require(type(most) is int and most >= 1, "max_rows of a private table is out of range")
    most = prod(private[join["table"]]["max_rows"] for join in joined)
    require(most <= _MOST, "joins could make too many rows of one")
    require(unit is not None or not joined, "units are joined, and each row is one")
    for join in joined:
        theirs = private[join["table"]]["unit"]
        same = any(
            _is_column(own, unit) and other["column"].lower() == theirs.lower()
            for own, other in join["on"]
        )
        require(same, "a join would let rows of different units meet")
    if units.columns is None:
        return
    require(unit is not None, "rows are grouped by the unit, and each row is one")
    known = {unit.lower(), *(name.lower() for name in units.columns)}
    require(len(known) == len(units.columns) + 1, "a column of a sub-query is called as the unit")
    inside = all(name.lower() in known for name in units.named)
    require(inside, "the query names a column that its sub-query does not have")
    if units.one_row:
        single = plan["max_rows"] == 1 and plan["max_groups"] == 1
        require(single, "each unit has one row, and the plan says otherwise")


def _is_column(expression: Any, name: str) -> bool:
    """Whether it is the column of this name, of the table itself and as it is."""
    whole = isinstance(expression, Mapping) and set(expression) == {"column"}
    return whole and str(expression["column"]).lower() == name.lower()
