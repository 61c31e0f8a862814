"""Rules of a question as people make it, each with a remedy.

What runs is read from a certificate, and the checker judges all of this there, by itself: no answer
rests on this file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from lastbit.errors import InvalidParameter
from lastbit.tables.card.schema import DataCard
from lastbit.tables.limits import refused
from lastbit.tables.query.expression import Call, ColumnName, Expression, calls_in
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.units import PerUnit, UnitColumn, UnitJoin

if TYPE_CHECKING:  # which imports this file
    from lastbit.tables.query.query import Aggregate

Known: TypeAlias = Mapping[str, tuple[int, int | None]]

FUNCTIONS: Known = MappingProxyType(
    {
        **dict.fromkeys(("-", "/", "%", "=", "<>", "<", "<=", ">", ">=", "like", "ilike"), (2, 2)),
        **dict.fromkeys(("power", "starts_with", "contains", "days_between"), (2, 2)),
        **dict.fromkeys(("negate", "not", "is_missing", "abs", "floor", "ceil", "sqrt"), (1, 1)),
        **dict.fromkeys(("ln", "exp", "length", "lower", "upper", "trim"), (1, 1)),
        **dict.fromkeys(("to_integer", "to_number", "to_text", "to_date", "to_boolean"), (1, 1)),
        **dict.fromkeys(("year", "quarter", "month", "day", "hour", "weekday"), (1, 1)),
        **dict.fromkeys(("minute", "second", "week", "day_of_year", "iso_weekday"), (1, 1)),
        **dict.fromkeys(("iso_year", "start_of_year", "start_of_quarter"), (1, 1)),
        **dict.fromkeys(("start_of_week", "start_of_hour", "start_of_minute"), (1, 1)),
        **dict.fromkeys(("+", "*", "and", "or", "least", "greatest"), (2, None)),
        **dict.fromkeys(("coalesce", "concat"), (1, None)),
        "in": (2, None),  # the value, then the constants
        "case": (2, None),  # condition, value, condition, value ... and perhaps the value otherwise
        "bin": (3, None),  # value, then rising edges: the lower edge of its bin [e_i, e_i+1)
        "clamp": (3, 3),  # value, low, high
        "substring": (2, 3),
        "round": (1, 2),
        "start_of_month": (1, 1),
        "strftime": (2, 2),  # a date or time, and a constant of the codes of DATE_CODES
    }
)
"""Each function with the least and the greatest number of its arguments (None: any)."""

FORMULAS: Known = MappingProxyType({**FUNCTIONS, "log": (2, 2), "total": (1, 1)})
"""The same for formulas over released columns: log(base, x), and `total`, the sum over all rows."""


def call(function: str, *arguments: Expression) -> Call:
    """The function applied, checked to exist and to take that many arguments.

    >>> call("is_missing", ColumnName("age"))
    Call(function='is_missing', arguments=(ColumnName(name='age', table=None),))
    """
    _check_call(function, len(arguments), FUNCTIONS)
    return Call(function, arguments)


def check_functions(expressions: Iterable[Expression], known: Known) -> None:
    """That every function is known, and has as many arguments as it takes."""
    for part in calls_in(expressions):
        _check_call(part.function, len(part.arguments), known)


def _check_call(function: str, arguments: int, known: Known) -> None:
    if function not in known:
        problem = f"uses a function that is not known: {function[:40]}"
        remedy = f"use one of {', '.join(sorted(known))}"
        raise InvalidParameter("expression", problem=problem, remedy=remedy)
    least, most = known[function]
    if arguments < least or (most is not None and arguments > most):
        problem = f"gives {function} the wrong number of arguments"
        remedy = f"give it {least}" + ("" if most == least else " or more")
        raise InvalidParameter("expression", problem=problem, remedy=remedy)


def check_unit_join(join: UnitJoin, card: DataCard) -> None:
    """That rows of two private tables meet only where their units are equal."""
    other = card.private[join.table]
    own = None if card.unit is None else ColumnName(card.column(card.unit).name)
    if (own, ColumnName(other.column(other.unit).name, join.table)) not in join.on:
        problem = "does not say that the units are equal, and would mix rows of many"
        remedy = f"write JOIN {join.table} ON {card.unit} = {join.table}.{other.unit}, and more"
        raise refused(f"JOIN {join.table}", problem, remedy)


def check_bounds(part: UnitColumn | Aggregate) -> None:
    """Bounds, where there are any, rise."""
    if part.bounds is not None and not part.bounds[0] < part.bounds[1]:
        raise InvalidParameter(
            f"{part.name}: bounds", problem="do not rise", remedy="pass low < high"
        )


def check_key(key: GroupKey) -> None:
    """Its values, where they are declared, are declared once."""
    if key.values is not None and len(set(key.values)) != len(key.values):
        raise InvalidParameter(
            f"GROUP BY {key.name}", problem="has a key twice", remedy="list each key once"
        )


def check_sub_query(inner: PerUnit) -> None:
    """Its columns have names of their own, and are made of something."""
    lowered = [name.lower() for name in inner.names]
    if len(set(lowered)) != len(lowered) or not all(lowered):
        problem = "gives two columns of a sub-query one name"
        raise InvalidParameter("query", problem=problem, remedy="name them with AS")
    for part in inner.columns:
        if part.expression is None and part.function != "count":
            raise InvalidParameter(part.name, problem="has no column", remedy="name one")
        check_bounds(part)
