"""Expressions, joins, keys and sub-queries as JSON.

What runs is read, and checked again, by `from_json` of each kind (`expression.py`, `units.py`,
`scan.py`): who writes cannot harm. Equal values give equal text, written with sorted keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lastbit.tables.limits import LONGEST_CONSTANT
from lastbit.tables.query.expression import (
    Call,
    ColumnName,
    Constant,
    Expression,
    Value,
    value_to_json,
)
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.units import Join, ListJoin, PerUnit, UnitColumn, UnitJoin

if TYPE_CHECKING:  # which imports this file
    from lastbit.tables.query.query import Aggregate


def to_json(expression: Expression) -> Any:
    """Plain JSON, the same for equal expressions: a column, a typed value, or [function, ...].

    >>> to_json(Call("<", (ColumnName("age"), Constant(1))))
    ['<', {'column': 'age'}, {'type': 'integer', 'value': 1}]
    """
    match expression:
        case ColumnName(name, None):
            return {"column": name}
        case ColumnName(name, table):
            return {"column": name, "table": table}
        case Constant(value):
            return value_to_json(value)
        case Call(function, arguments):
            return [function, *map(to_json, arguments)]


def join_json(join: Join) -> dict[str, Any]:
    """A join; with a private table, told from one with a public table; or with a list."""
    if isinstance(join, ListJoin):
        return {"unnest": to_json(join.column)}
    on = [[to_json(own), to_json(other)] for own, other in join.on]
    private = {"private": True} if isinstance(join, UnitJoin) else {}
    return {"table": join.table, "on": on, **private}


def key_json(key: GroupKey) -> dict[str, Any]:
    """One thing to group by."""
    values = None if key.values is None else values_to_json(key.values)
    return {"name": key.name, "expression": to_json(key.expression), "values": values}


def function_json(part: UnitColumn | Aggregate) -> dict[str, Any]:
    """What functions of one unit's rows and of all rows have in common."""
    return {
        "name": part.name,
        "function": part.function,
        "expression": None if part.expression is None else to_json(part.expression),
        "bounds": None if part.bounds is None else [str(bound) for bound in part.bounds],
        "step": None if part.step is None else str(part.step),
        "nullable": part.nullable,
    }


def sub_query_json(inner: PerUnit) -> dict[str, Any]:
    """A sub-query grouped by the unit."""
    return {
        "where": None if inner.where is None else to_json(inner.where),
        "joins": list(map(join_json, inner.joins)),
        "keys": [{"name": key.name, "expression": to_json(key.expression)} for key in inner.keys],
        "columns": list(map(function_json, inner.columns)),
    }


def values_to_json(values: Iterable[Value]) -> list[Any]:
    """`value_to_json` of each as a constant, quickly where they are short integers or texts.

    >>> values_to_json([1, "1", None]) == [value_to_json(one) for one in (1, "1", None)]
    True
    """
    return [
        {"type": "integer", "value": value}
        if type(value) is int and -(1 << 63) < value < (1 << 63)
        else {"type": "text", "value": value}
        if type(value) is str and len(value) < LONGEST_CONSTANT // 4  # at most 4 bytes a letter
        else value_to_json(Constant(value).value)
        for value in values
    ]
