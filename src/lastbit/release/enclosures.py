"""Interval arithmetic of formulas: where a number lies, if its parts lie where they are said to.

Law      of intervals that hold the parts, a function gives one that holds its value, or None where
         none is known; a condition is True or False only if it is so all over the intervals
Theorem  +, -, *, / and sqrt are rounded to nearest (IEEE 754), and `decimal_ln` and its like are
         within one unit in the last place: so each end is moved outwards by one unit, but where
         +, -, *, / and sqrt are exact: 100 times 1 is 100. What they round off of finite sums is a
         double (Knuth's TwoSum); products are compared as whole numbers. Ends of
         monotone functions are at the ends of their intervals; exp(y ln x) is monotone in each
         of x and y, so its own are at corners
Checked  tests/release/test_derived.py
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache, reduce
from types import MappingProxyType
from typing import TypeAlias

from lastbit.exact import decimal_exp, decimal_ln, decimal_log, decimal_power, lower, upper
from lastbit.release.formulas import Functions, Meaning, all_true, any_true
from lastbit.tables import Call, Constant, Expression

_MOST_PLACES = 400

Interval: TypeAlias = tuple[float, float]
Enclosed: TypeAlias = Interval | bool | None
"""Where a number lies, what a condition is, or None where neither is known."""


def for_intervals(expression: Expression) -> Expression:
    """The formula with x * x, and x to the power of 2, as the square of x, never below 0.

    >>> from lastbit.tables import ColumnName
    >>> for_intervals(Call("*", (ColumnName("n"), ColumnName("n")))).function
    'square'
    """
    match expression:
        case Call("*", (one, other)) if one == other:
            return Call("square", (for_intervals(one),))
        case Call("power", (one, Constant(2))):
            return Call("square", (for_intervals(one),))
        case Call("least" | "greatest", arguments) if any(map(_may_be_missing, arguments)):
            # which leave out what is missing: the value is that of one of the others
            return Call("coalesce", tuple(map(for_intervals, arguments)))
        case Call("case", arguments) if not _is_null_if(arguments):
            tests = [_test_for_intervals(test) for test in arguments[:-1:2]]
            values = [for_intervals(value) for value in arguments[1::2]]
            pairs = [part for pair in zip(tests, values, strict=False) for part in pair]
            last = [for_intervals(arguments[-1])] if len(arguments) % 2 else []
            return Call("case", (*pairs, *last))
        case Call(function, arguments):
            return Call(function, tuple(map(for_intervals, arguments)))
    return expression


def _is_null_if(arguments: tuple[Expression, ...]) -> bool:
    """Whether it is NULLIF(x, y), which is missing where x is."""
    match arguments:
        case (Call("=", (one, _)), Constant(None), same):
            return one == same
    return False


def _test_for_intervals(test: Expression) -> Expression:
    """A condition; one that may be missing, and then does not hold, is not known to hold."""
    return Call("is_missing", (test,)) if _may_be_missing(test) else for_intervals(test)


def _may_be_missing(expression: Expression) -> bool:
    """Whether the true value can be missing where an interval is known.

    A root has one if a part of its argument is above 0, and a CLAMP whatever is clamped.
    """
    match expression:
        case Constant(value):
            return value is None
        case Call("clamp", (Call(), *_)):
            return True
        case Call(function, arguments):
            return function == "sqrt" or any(map(_may_be_missing, arguments))
    return False


def ends_around(low: Fraction | int, high: Fraction | int) -> Interval:
    """The doubles next to these, outwards."""
    if isinstance(low, int) and isinstance(high, int):  # compared with a double exactly
        start, end = float(low), float(high)
        start = math.nextafter(start, -math.inf) if start > low else start
        return start, math.nextafter(end, math.inf) if end < high else end
    return lower(Fraction(low)), upper(Fraction(high))


@lru_cache(maxsize=1024)
def point(number: Fraction | int) -> Interval:
    """The doubles next to a number, on both sides."""
    return ends_around(number, number)


def _from_zero(interval: Interval) -> Interval:
    return max(interval[0], 0.0), max(interval[1], 0.0)


def _widen(low: float, high: float) -> Interval:
    """One unit in the last place further: each end was rounded once, to nearest."""
    return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)


def _enclosed(*rounded: tuple[float, bool]) -> Interval:
    """The hull of results; each was rounded once, to nearest, but for those that are exact."""
    ends = [(x, x) if exact else _widen(x, x) for x, exact in rounded]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _is_product(x: float, y: float, product: float) -> bool:
    """Whether a product is exact: doubles are quotients of whole numbers."""
    if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(product)):
        return False
    (a, b), (c, d), (e, f) = (one.as_integer_ratio() for one in (x, y, product))
    return a * c * f == b * d * e


def _added(x: float, y: float) -> tuple[float, bool]:
    """A sum, and whether it is exact: of finite numbers what was rounded off is a double."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back) == 0


def _multiplied(x: float, y: float) -> tuple[float, bool]:
    return x * y, _is_product(x, y, x * y)


def _divided(x: float, y: float) -> tuple[float, bool]:
    return x / y, _is_product(x / y, y, x)


def _sum(a: Interval, b: Interval) -> Interval:
    return _enclosed(_added(a[0], b[0]), _added(a[1], b[1]))


def _difference(a: Interval, b: Interval) -> Interval:
    return _sum(a, (-b[1], -b[0]))


def _product(a: Interval, b: Interval) -> Interval:
    return _with_sign(_enclosed(*(_multiplied(x, y) for x in a for y in b)), a, b)


def _with_sign(ends: Interval, a: Interval, b: Interval) -> Interval:
    """A product or quotient of two that are not below 0 is not, whatever the rounding."""
    low, high = ends
    if (a[0] >= 0 and b[0] >= 0) or (a[1] <= 0 and b[1] <= 0):
        return max(low, 0.0), high
    if (a[0] >= 0 and b[1] <= 0) or (a[1] <= 0 and b[0] >= 0):
        return low, min(high, 0.0)
    return ends


def _square(a: Interval) -> Interval:
    low, high = _enclosed(*(_multiplied(x, x) for x in _absolute(a)))
    return max(low, 0.0), high


def _quotient(a: Interval, b: Interval) -> Interval:
    """The quotient; b does not hold 0."""
    return _with_sign(_enclosed(*(_divided(x, y) for x in a for y in b)), a, b)


def _root(a: Interval) -> Interval:
    roots = [math.sqrt(end) for end in a]
    pairs = zip(roots, a, strict=True)
    low, high = _enclosed(*((root, _is_product(root, root, end)) for root, end in pairs))
    return max(low, 0.0), high


def _logarithm(a: Interval) -> Interval | None:
    if a[0] <= 0:
        return None
    return _widen(decimal_ln(a[0]), math.inf if a[1] == math.inf else decimal_ln(a[1]))


def _exponential(a: Interval) -> Interval:
    low, high = _widen(*map(_exp_of_end, a))
    return max(low, 0.0), high


def _exp_of_end(end: float) -> float:
    try:
        return decimal_exp(end)
    except OverflowError:
        return math.inf


def _log(base: Interval, a: Interval) -> Interval | None:
    """To a base that is fixed."""
    if base[0] != base[1] or not 0 < base[0] != 1 or a[0] <= 0:
        return None
    ends = [decimal_log(base[0], end) for end in a]
    return _widen(min(ends), max(ends))


def _power(a: Interval, b: Interval) -> Interval | None:
    """Of numbers above 0 by the corners; of others to a fixed whole exponent from 1 up."""
    exponent = b[0]
    if a[0] >= 0 and (a[0] > 0 or exponent > 0):
        ends = [_power_of_ends(x, y) for x in a for y in b]
        low, high = _widen(min(ends), max(ends))
        return max(low, 0.0), high
    if exponent != b[1] or exponent < 1 or exponent % 1:
        return None
    if exponent % 2 == 0:
        return _power(_absolute(a), b)
    return _widen(_power_of_ends(a[0], exponent), _power_of_ends(a[1], exponent))


def _power_of_ends(x: float, y: float) -> float:
    try:
        return decimal_power(x, y)
    except OverflowError:
        return math.copysign(math.inf, x)


def _chosen_branch(*values: Enclosed) -> Enclosed:
    """The branch of a CASE, where every condition before it is decided."""
    for test, value in zip(values[0::2], values[1::2], strict=False):
        if test is True:
            return value
        if test is not False:
            return None
    return values[-1] if len(values) % 2 else None


def _between(value: Enclosed, low: Enclosed, high: Enclosed) -> Enclosed:
    """CLAMP, also where nothing is known of what is clamped."""
    if not isinstance(low, tuple) or not isinstance(high, tuple):
        return None
    if value is None:
        return low[0], max(low[0], high[1])
    assert isinstance(value, tuple)
    return min(max(value[0], low[0]), high[0]), min(max(value[1], low[1]), high[1])


def _absolute(a: Interval) -> Interval:
    near = 0.0 if a[0] <= 0 <= a[1] else min(abs(a[0]), abs(a[1]))
    return near, max(abs(a[0]), abs(a[1]))


def _rounding(function: Callable[[float], float]) -> Callable[[Interval], Interval]:
    return lambda a: (float(function(a[0])), float(function(a[1])))


def _round(a: Interval, places: Interval = (0.0, 0.0)) -> Interval | None:
    if places[0] != places[1]:
        return None
    digits = int(min(max(places[0], -_MOST_PLACES), _MOST_PLACES))
    low, high = round(a[0], digits), round(a[1], digits)
    return _widen(low, high) if places[0] > 0 else (low, high)


def _hull(pick: Callable[[Iterable[float]], float]) -> Callable[..., Interval]:
    """The least or the greatest of some numbers."""
    return lambda *given: (pick(low for low, _ in given), pick(high for _, high in given))


def _is_equal(a: Interval, b: Interval) -> bool | None:
    return False if a[1] < b[0] or a[0] > b[1] else None


def _is_less(a: Interval, b: Interval) -> bool | None:
    return True if a[1] < b[0] else False if a[0] >= b[1] else None


def _opposite(value: Enclosed) -> bool | None:
    return not value if isinstance(value, bool) else None


_FUNCTIONS: Functions = MappingProxyType(
    {
        "and": all_true,
        "or": any_true,
        "not": _opposite,
        "case": _chosen_branch,
        "clamp": _between,
        "is_missing": lambda _: None,
        "+": lambda *terms: reduce(_sum, terms),
        "*": lambda *factors: reduce(_product, factors),
        "-": _difference,
        "/": lambda a, b: None if b[0] <= 0 <= b[1] else _quotient(a, b),
        "square": _square,
        "negate": lambda a: (-a[1], -a[0]),
        "abs": _absolute,
        "sqrt": lambda a: None if a[1] < 0 else _root(_from_zero(a)),
        "ln": _logarithm,
        "exp": _exponential,
        "log": _log,
        "power": _power,
        "floor": _rounding(math.floor),
        "ceil": _rounding(math.ceil),
        "to_integer": _round,
        "round": _round,
        "to_number": lambda a: (a[0], a[1]),
        "least": _hull(min),
        "greatest": _hull(max),
        # which one is missing is not known
        "coalesce": lambda *given: (_hull(min)(*given)[0], _hull(max)(*given)[1]),
        "=": _is_equal,
        "<>": lambda a, b: _opposite(_is_equal(a, b)),
        "<": _is_less,
        ">=": lambda a, b: _opposite(_is_less(a, b)),
        ">": lambda a, b: _is_less(b, a),
        "<=": lambda a, b: _opposite(_is_less(b, a)),
    }
)
INTERVALS = Meaning(
    number=lambda value: value if isinstance(value, bool | tuple | None) else point(value),
    functions=_FUNCTIONS,
    result=lambda ends: None if isinstance(ends, tuple) and any(map(math.isnan, ends)) else ends,
)
