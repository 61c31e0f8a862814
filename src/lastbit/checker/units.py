"""Joins on the privacy unit, lists made rows, sub-queries by unit: that a unit's rows stay its own.

Theorem  rows of two private tables that meet only where their units are equal belong to one unit,
         and so do rows of a sub-query grouped by the unit. What a unit contributes then depends on
         its own rows alone, in all private tables, and `query.py` bounds it as before: rows are
         weighed by max_rows after all joins. `tables/query/units.py` has the proof
Theorem  where a sub-query is grouped by the unit alone, and nothing is joined afterwards, a unit
         has one row: max_rows and max_groups are 1
Theorem  where each row becomes a row for every element of its list, and the unit is named by
         another column, the rows of a unit are a function of its own rows: `tables/query/units.py`
Checked  tests/verify/test_check_units.py

Theorem  where rows reach their unit through other tables, each step begins at columns of the table
         before, and the unit is a column of the last one: the chain of rows that is made belongs to
         the unit of its last row, and what a unit contributes depends on its own chains alone.
         `tables/compile/reached.py` has the proof. No step makes more rows of one than it says

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
_MOST_ELEMENTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """What a query says of units: its joins, those of its sub-query, and the columns of that."""

    joins: tuple[Any, ...]
    inner_joins: tuple[Any, ...]
    lists: tuple[str, ...]
    """The columns of lists, each element of which is a row."""
    bare: bool
    """Whether no sub-query, whose columns are no lists, is taken by elements."""
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
    check_way(plan, {join["table"].lower() for join in (*units.inner_joins, *units.joins)})
    check_lists(plan, units)
    elements = _MOST_ELEMENTS ** len(units.lists)
    most = prod([elements, *(private[join["table"]]["max_rows"] for join in joined)])
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


def check_lists(plan: Json, units: Units) -> None:
    """Reject elements of which one row could belong to several units, or to none that is named."""
    lists = {name.lower() for name in units.lists}
    require(len(units.lists) <= 1 and units.bare, "lists are no rows of the table")
    require(not lists or plan["unit"] is not None, "elements are rows, and each row is a unit")
    way = {own.lower() for step in plan.get("through", ()) for own, _ in step["on"]}
    way |= {own.lower() for step in plan.get("through", ()) for own in step["columns"]}
    require(lists.isdisjoint({*way, str(plan["unit"]).lower()}), "an element says whose it is")


def check_way(plan: Json, joined: set[str]) -> None:
    """Reject a way to the unit that leaves out a table, or ends elsewhere than at the unit."""
    if "through" not in plan:
        return
    steps, here, taken = plan["through"], None, {plan["table"].lower(), *joined}
    require(isinstance(steps, list) and bool(steps), "the way to the unit has no steps")
    require(isinstance(plan["unit"], str), "rows reach a unit, and each row is one")
    later = {name.lower() for step in steps for name in step["columns"]}
    for step in steps:
        whole = set(step) == {"table", "on", "max_rows", "columns"} and all(
            isinstance(one, list) for one in (step["on"], *step["on"])
        )
        texts = [
            step["table"],
            *step["columns"].values(),
            *(x for pair in step["on"] for x in pair),
        ]
        named = all(isinstance(text, str) and bool(text) for text in texts)
        require(whole and named, "a step to the unit is malformed")
        require(step["table"].lower() not in taken, "a table is there twice")
        taken.add(step["table"].lower())
        require(
            bool(step["on"]) and all(len(pair) == 2 for pair in step["on"]),
            "a step has no condition",
        )
        begins = {own.lower() for own, _ in step["on"]}
        apart = not begins & later if here is None else begins == here
        require(apart, "a step to the unit begins at another table")
        here = {name.lower() for name in step["columns"]}
        require(bool(here), "a step leads nowhere")
        most = step["max_rows"]
        require(type(most) is int and most >= 1, "max_rows of a step is out of range")
    require(here == {plan["unit"].lower()}, "the unit is not in the last table")
    every = [name.lower() for step in steps for name in step["columns"]]
    require(len(set(every)) == len(every), "two tables have one column")
    require(prod(step["max_rows"] for step in steps) <= _MOST, "a step makes too many rows of one")


def _is_column(expression: Any, name: str) -> bool:
    """Whether it is the column of this name, of the table itself and as it is."""
    whole = isinstance(expression, Mapping) and set(expression) == {"column"}
    return whole and str(expression["column"]).lower() == name.lower()
