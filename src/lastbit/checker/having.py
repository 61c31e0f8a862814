"""Whether the rows of an answer are those that its question lets through, in that order.

| part of the question | rejected | said in a remark |
|---|---|---|
| declared keys, no HAVING, no LIMIT | a group is missing | |
| HAVING | a row for which it is not true | a function that is not computed here |
| ORDER BY | a row before one that must come first | |
| LIMIT, declared keys, no HAVING | fewer rows than there must be | |
| HAVING, or a LIMIT that was reached | | which groups are left out is not checked |

Law      numbers are the released ones, of the row itself; keys are values of their type. Sums,
         differences and products are those of Python's integers, fractions and doubles, quotients
         are exact. What cannot be computed is missing, and HAVING keeps a row only where it is true
Theorem  `HAVING` of functions in `_FUNCTIONS` and `_LAZY` has one value, so no honest row is
         rejected; of others nothing is concluded
Differs  numbers of groups that were left out are not in the file: that they had to be left out, and
         that LIMIT kept the first, is believed
Checked  tests/release/test_shown_rows.py
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import ceil, floor
from types import MappingProxyType
from typing import Any

from .derived import released_values
from .numbers import Json, number, require
from .query import Question

_MOST_NAMED = 3
_MOST_PLACES = 400


def check_shown(question: Question, rows: Sequence[Json]) -> None:
    """Raise `Rejected` where the rows contradict the question."""
    groups, limit = question.groups, question.limit
    if groups is not None and question.having is None:
        expected = groups if limit is None else min(groups, limit)
        require(len(rows) >= expected, "a group that the question declares is missing")
    if question.having is None and not question.order:
        return
    values = list(_values_of(question, rows))
    if question.having is not None and not _not_computed(question.having):
        test = question.having
        require(all(_value(test, row) is True for row in values), "a row contradicts HAVING")
    in_order = all(_may_follow(question.order, *pair) for pair in pairwise(values))
    require(in_order, "the rows contradict ORDER BY")


def remarks_on_shown(question: Question, rows: Sequence[Json]) -> Iterator[str]:
    """What a reader should know of rows that were not shown, or not checked."""
    others = [] if question.having is None else _not_computed(question.having)
    if others:
        more = " and others" if len(others) > _MOST_NAMED else ""
        names = ", ".join(others[:_MOST_NAMED])
        yield f"Rows may contradict HAVING: it uses {names}{more}, which is not computed here."
    reached = question.limit is not None and len(rows) == question.limit
    if question.having is None and not reached:
        return
    parts = [] if question.having is None else ["HAVING"]
    parts += ["LIMIT"] if reached else []
    if question.groups is None:
        yield (
            f"Groups that {' and '.join(parts)} left out are not in the file: that they had to be "
            "is not checked."
        )
    elif len(rows) < question.groups:
        yield (
            f"{' and '.join(parts)} left out {question.groups - len(rows)} of {question.groups} "
            "declared groups. Their numbers are not here: that they had to be is not checked."
        )


def _values_of(question: Question, rows: Sequence[Json]) -> Iterator[dict[str, Any]]:
    """The columns of each row by their names in small letters, shown or not."""
    for row, numbers in zip(rows, released_values(question, rows), strict=True):
        keys = zip(question.names, map(_constant, row["keys"]), strict=True)
        yield {name.lower(): value for name, value in (*keys, *numbers.items())}


def _may_follow(order: Sequence[tuple[str, bool]], one: Json, other: Json) -> bool:
    """Whether a row may stand before another: missing values come last, rising or falling."""
    for name, falls in order:
        first, second = one[name.lower()], other[name.lower()]
        if first is None or second is None:
            if (first is None) != (second is None):
                return second is None
        elif first != second:
            return bool(first > second) == falls
    return True


# ---------------------------------------------------------------- conditions


def _not_computed(expression: Any) -> list[str]:
    """The functions of an expression, whose form was checked, that are not computed here."""
    waiting, names = [expression], set()
    while waiting:
        part = waiting.pop()
        if isinstance(part, list):
            names.add(part[0])
            waiting += part[1:]
    return sorted(names - _FUNCTIONS.keys() - _LAZY.keys())


def _value(expression: Any, row: Mapping[str, Any]) -> Any:
    """The value over one row; None where it is missing."""
    if not isinstance(expression, list):
        return (
            row[expression["column"].lower()] if "column" in expression else _constant(expression)
        )
    function, *arguments = expression
    values = [_value(argument, row) for argument in arguments]
    try:
        if function in _LAZY:
            return _LAZY[function](values)
        return None if None in values else _FUNCTIONS[function](*values)
    except (ArithmeticError, AttributeError, TypeError, ValueError):
        return None


def _constant(written: Json) -> Any:
    match written["type"], written["value"]:
        case "number", text:
            return number(text)
        case "date", text:
            return date.fromisoformat(text)
        case "timestamp", text:
            return datetime.fromisoformat(text)
        case _, value:
            return value


def _in(values: list[Any]) -> bool | None:
    first, others = values[0], values[1:]
    if first is None or any(first == other for other in others if other is not None):
        return None if first is None else True
    return None if None in others else False


def _case(values: list[Any]) -> Any:
    for test, result in zip(values[0::2], values[1::2], strict=False):
        if test is True:
            return result
    return values[-1] if len(values) % 2 else None


def _decided(values: list[Any], by: bool) -> bool | None:
    """By one such value; else a missing one leaves it open."""
    return by if by in values else None if None in values else not by


def _rounded(value: Any, places: int = 0) -> Any:
    return round(value, min(max(places, -_MOST_PLACES), _MOST_PLACES))


def _known(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


_LAZY: Mapping[str, Callable[[list[Any]], Any]] = MappingProxyType({
    "and": lambda values: _decided(values, by=False),
    "or": lambda values: _decided(values, by=True),
    "in": _in,
    "case": _case,
    "is_missing": lambda values: values[0] is None,
    "coalesce": lambda values: next(iter(_known(values)), None),
    "least": lambda values: min(_known(values), default=None),
    "greatest": lambda values: max(_known(values), default=None),
})  # fmt: skip
_FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "not": operator.not_,
    "+": lambda *terms: reduce(operator.add, terms),
    "*": lambda *factors: reduce(operator.mul, factors),
    "-": operator.sub, "/": lambda a, b: Fraction(a) / Fraction(b), "negate": operator.neg,
    "abs": abs, "floor": floor, "ceil": ceil, "round": _rounded,
    "clamp": lambda value, low, high: min(max(value, low), high),
    "starts_with": str.startswith, "contains": operator.contains, "length": len,
    "year": lambda day: day.year, "month": lambda day: day.month, "day": lambda day: day.day,
})  # fmt: skip
