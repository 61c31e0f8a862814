"""Where a formula lies, if each of its columns lies where it is said to.

Law      constants are points, columns their intervals, and a function gives the hull of its values
         at the ends of its arguments, where it is monotone in each of them. x * x and x to the
         power of 2 are squares. CASE is known where its conditions are, a condition where it holds,
         or fails, all over. What may be missing, and is passed over by LEAST, is the hull of all
Theorem  the interval holds the formula at all points of the box, but for roundings to doubles. It
         lies within the interval of `release/enclosures.py`, which rounds the same outwards: those
         are monotone, and so is rounding to nearest. So no honest record is rejected
Differs  totals are unknown: what other groups lost is not in a row
Checked  tests/release/test_whole_forgeries.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial, reduce
from itertools import product
from types import MappingProxyType
from typing import Any, TypeAlias

from .formulas import DOUBLES

Interval: TypeAlias = tuple[float, float]
Enclosed: TypeAlias = Interval | bool | None
"""Where a number lies, what a condition is, or None where neither is known."""

_DECIDE = frozenset({"and", "or", "case", "clamp"})
"""Functions that say something where not all of their arguments are known."""


def enclosure(expression: Any, row: Mapping[str, Interval]) -> Enclosed:
    """Where a formula lies; columns of a row are named in small letters."""
    if not isinstance(expression, list):
        if "column" in expression:
            return row[expression["column"].lower()]
        value = DOUBLES.constant(expression)
        return value if isinstance(value, bool | None) else (value, value)
    function, *arguments = _squared(expression)
    if function in ("total", "is_missing"):
        return None
    if function in ("least", "greatest") and any(map(_may_be_missing, arguments)):
        function = "coalesce"
    values = [enclosure(argument, row) for argument in arguments]
    if function == "case" and not _is_null_if(arguments):
        # a condition that is missing does not hold, and the next one is tried
        for place in range(0, len(arguments) - 1, 2):
            values[place] = None if _may_be_missing(arguments[place]) else values[place]
    if None in values and function not in _DECIDE:
        return None
    try:
        interval: Enclosed = _ENCLOSED[function](*values)
        return interval
    except (ArithmeticError, TypeError, ValueError):
        return None


def _is_null_if(arguments: list[Any]) -> bool:
    """Whether it is NULLIF(x, y), which is missing where x is."""
    if len(arguments) != 3 or not isinstance(arguments[0], list):
        return False
    missing = isinstance(arguments[1], Mapping) and arguments[1].get("type") == "missing"
    return missing and arguments[0][:2] == ["=", arguments[2]]


def _squared(expression: list[Any]) -> list[Any]:
    function, *arguments = expression
    twice = function == "*" and len(arguments) == 2 and arguments[0] == arguments[1]
    if function == "power" and isinstance(arguments[1], Mapping):
        twice = "value" in arguments[1] and DOUBLES.constant(arguments[1]) == 2
    return ["square", arguments[0]] if twice else expression


def _may_be_missing(expression: Any) -> bool:
    """A root, a clamp of a formula, or what is made of one, may be missing within its interval."""
    if not isinstance(expression, list):
        return "type" in expression and expression["type"] == "missing"
    function, *arguments = expression
    if function == "sqrt" or (function == "clamp" and isinstance(arguments[0], list)):
        return True
    return any(map(_may_be_missing, arguments))


# ---------------------------------------------------------------- functions that are monotone


def _corners(function: str, *given: Interval) -> Interval:
    """The hull of a function at all ends; at 0 times infinity it has no say."""
    values = _values_at_ends(DOUBLES.functions[function], given)
    numbers = [value for value in values if not math.isnan(value)]
    return min(numbers), max(numbers)


def _values_at_ends(function: Callable[..., Any], given: tuple[Interval, ...]) -> Iterator[float]:
    for ends in product(*given):
        yield float(function(*ends))


def _overflowing(function: str, *given: Interval) -> Interval:
    """The same of exponentials and powers, which may be larger than all doubles."""

    def value(*numbers: float) -> float:
        try:
            return float(DOUBLES.functions[function](*numbers))
        except OverflowError:
            return math.inf if function == "exp" else math.copysign(math.inf, numbers[0])

    values = list(_values_at_ends(value, given))
    return min(values), max(values)


def _one_by_one(function: str, *given: Interval) -> Interval:
    """Sums and products of many, by two."""
    return reduce(partial(_corners, function), given)


def _absolute(a: Interval) -> Interval:
    ends = sorted(map(abs, a))
    return (0.0 if a[0] <= 0 <= a[1] else ends[0]), ends[1]


def _quotient(a: Interval, b: Interval) -> Interval | None:
    return None if b[0] <= 0 <= b[1] else _corners("/", a, b)


def _root(a: Interval) -> Interval | None:
    return None if a[1] < 0 else _corners("sqrt", (max(a[0], 0.0), a[1]))


def _logarithm(a: Interval) -> Interval | None:
    ln = DOUBLES.functions["ln"]
    return None if a[0] <= 0 else (ln(a[0]), ln(a[1]) if a[1] < math.inf else math.inf)


def _log(base: Interval, a: Interval) -> Interval | None:
    fixed = base[0] == base[1] and 0 < base[0] != 1 and a[0] > 0
    return _corners("log", base, a) if fixed else None


def _power(a: Interval, b: Interval) -> Interval | None:
    exponent = b[0]
    if a[0] > 0 or (a[0] == 0 and exponent > 0):
        return _overflowing("power", a, b)
    if exponent != b[1] or exponent < 1 or exponent % 1:
        return None
    return _overflowing("power", a if exponent % 2 else _absolute(a), b)


def _round(a: Interval, places: Interval = (0.0, 0.0)) -> Interval | None:
    return _corners("round", a, places) if places[0] == places[1] else None


def _clamp(value: Any, low: Interval, high: Interval) -> Interval:
    if value is None:
        return low[0], max(low[0], high[1])
    return min(max(value[0], low[0]), high[0]), min(max(value[1], low[1]), high[1])


def _hull(*given: Interval) -> Interval:
    return min(low for low, _ in given), max(high for _, high in given)


# ---------------------------------------------------------------- conditions


def _case(*values: Enclosed) -> Enclosed:
    for test, value in zip(values[0::2], values[1::2], strict=False):
        if test is not False:
            return value if test is True else None
    return values[-1] if len(values) % 2 else None


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _less(a: Interval, b: Interval) -> bool | None:
    return True if a[1] < b[0] else False if a[0] >= b[1] else None


def _equal(a: Interval, b: Interval) -> bool | None:
    return False if a[1] < b[0] or b[1] < a[0] else None


_ENCLOSED: Mapping[str, Callable[..., Any]] = MappingProxyType({
    **{name: partial(_one_by_one, name) for name in ("+", "*", "least", "greatest")},
    **{name: partial(_corners, name) for name in ("-", "negate", "floor", "ceil", "to_number")},
    "to_integer": partial(_corners, "to_integer"), "exp": partial(_overflowing, "exp"),
    "square": lambda a: tuple(end * end for end in _absolute(a)),
    "/": _quotient, "abs": _absolute, "sqrt": _root, "ln": _logarithm, "log": _log,
    "power": _power, "round": _round, "clamp": _clamp, "coalesce": _hull, "case": _case,
    "and": DOUBLES.functions["and"], "or": DOUBLES.functions["or"], "not": _not,
    "<": _less, ">": lambda a, b: _less(b, a), "=": _equal,
    ">=": lambda a, b: _not(_less(a, b)), "<=": lambda a, b: _not(_less(b, a)),
    "<>": lambda a, b: _not(_equal(a, b)),
})  # fmt: skip
