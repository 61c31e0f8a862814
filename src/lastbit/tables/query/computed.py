"""Bounds of what is computed, from bounds of what it is computed of.

Law      `computed_bounds` holds the function's value at all numbers within the given bounds: it is
         worked out in rationals, a root outwards; and the rest of a % b has the sign of a, is
         nearer to 0 than b, and no farther than a
Law      `about_bounds` knows LN, EXP, POWER and ROUND to a place too, to some units in the last
         place: whatever is aggregated is clamped to its bounds, so that these decide what the
         answer is, and never what it costs beyond its price
Checked  tests/tables/test_computed_bounds.py (against DuckDB)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from itertools import product
from math import ceil, floor

from lastbit.exact import decimal_exp, decimal_ln, decimal_power

Bounds = tuple[Fraction, Fraction]
Given = Sequence[Bounds | None]

_DIGITS = 12  # of bounds that are no rationals
_MOST_POWER = 64  # that is worked out exactly
_MOST_PLACES = 300


def computed_bounds(function: str, given: Given) -> Bounds | None:
    """Where a function of numbers within these bounds lies, surely.

    >>> computed_bounds("%", [(Fraction(-3), Fraction(20)), (Fraction(7), Fraction(7))])
    (Fraction(-3, 1), Fraction(7, 1))
    """
    parts = [pair for pair in given if pair is not None]
    if not parts or len(parts) < len(given):
        return None
    found = parts[0]
    match function:
        case "+" | "*" | "-" | "/":
            return _arithmetic(function, parts)
        case "negate":
            return -found[1], -found[0]
        case "abs":
            far = max(abs(found[0]), abs(found[1]))
            near = Fraction(0) if found[0] <= 0 <= found[1] else min(abs(found[0]), abs(found[1]))
            return near, far
        case "floor":
            return Fraction(floor(found[0])), Fraction(floor(found[1]))
        case "ceil":
            return Fraction(ceil(found[0])), Fraction(ceil(found[1]))
        case "round" if len(parts) == 1:
            return rounded_bounds(found)
        case "sqrt":
            return (
                None if found[1] < 0 else (_root(max(found[0], Fraction(0)))[0], _root(found[1])[1])
            )
        case "%":
            return rest_bounds(found, parts[1])
    return None


def about_bounds(function: str, given: Given) -> Bounds | None:
    """Likewise, to some units in the last place.

    >>> about_bounds("power", [(Fraction(-3), Fraction(2)), (Fraction(2), Fraction(2))])
    (Fraction(0, 1), Fraction(9, 1))
    """
    parts = [pair for pair in given if pair is not None]
    if not parts or len(parts) < len(given):
        return None
    low, high = parts[0]
    try:
        match function:
            case "ln":
                return _tidy([decimal_ln(float(end)) for end in (low, high)])
            case "exp":
                return _tidy([decimal_exp(float(end)) for end in (low, high)])
            case "power":
                return _power(parts[0], parts[1])
            case "round" if len(parts) == 2 and parts[1][0] == parts[1][1]:
                places = int(parts[1][0])
                if abs(places) > _MOST_PLACES:
                    return None
                grid = Fraction(10) ** -places
                return floor(low / grid) * grid, ceil(high / grid) * grid
    except (ArithmeticError, ValueError):  # no such number, or none that a double can be
        return None
    return computed_bounds(function, given)


def extreme_bounds(function: str, given: Given, there: Sequence[bool]) -> Bounds | None:
    """Of LEAST or GREATEST, which leave out what is missing; `there` are parts that never are.

    >>> spans = [(Fraction(0), Fraction(7)), (Fraction(4), Fraction(9))]
    >>> extreme_bounds("least", spans, [False, True]), extreme_bounds("least", spans, [True, False])
    ((Fraction(0, 1), Fraction(9, 1)), (Fraction(0, 1), Fraction(7, 1)))
    """
    parts = [pair for pair in given if pair is not None]
    if not parts or len(parts) < len(given):
        return None
    sure = [pair for pair, known in zip(parts, there, strict=True) if known]
    if function == "least":  # no more than any part that is there, or than the greatest of all
        high = min((high for _, high in sure), default=max(high for _, high in parts))
        return min(low for low, _ in parts), high
    low = max((low for low, _ in sure), default=min(low for low, _ in parts))
    return low, max(high for _, high in parts)


def rounded_bounds(bounds: Bounds | None) -> Bounds | None:
    """The whole numbers around."""
    return None if bounds is None else (Fraction(floor(bounds[0])), Fraction(ceil(bounds[1])))


def quotient_bounds(dividend: Bounds | None, divisor: Bounds | None) -> Bounds | None:
    """Of a // b of whole numbers, which is cut off towards 0.

    >>> quotient_bounds((Fraction(-25), Fraction(120)), (Fraction(10), Fraction(10)))
    (Fraction(-2, 1), Fraction(12, 1))
    """
    exact = computed_bounds("/", [dividend, divisor])
    return None if exact is None else (Fraction(int(exact[0])), Fraction(int(exact[1])))


def rest_bounds(dividend: Bounds, divisor: Bounds, *, whole: bool = False) -> Bounds:
    """Of a % b; of whole numbers it is nearer to 0 than b by 1."""
    far = max(abs(divisor[0]), abs(divisor[1])) - whole
    low, high = max(dividend[0], -far), min(dividend[1], far)
    return min(low, Fraction(0)), max(high, Fraction(0))


def _arithmetic(function: str, parts: list[Bounds]) -> Bounds | None:
    found = parts[0]
    for low, high in parts[1:]:
        if function in ("+", "-"):
            ends = (low, high) if function == "+" else (-high, -low)
            found = found[0] + ends[0], found[1] + ends[1]
            continue
        if function == "/" and low <= 0 <= high:
            return None
        ends = (low, high) if function == "*" else (1 / high, 1 / low)
        products = [a * b for a in found for b in ends]
        found = min(products), max(products)
    return found


def _power(base: Bounds, exponent: Bounds) -> Bounds | None:
    """Of bases above 0 its ends are at corners, as exp(y ln x) is monotone in x and in y."""
    (low, high), power = base, exponent[0]
    fixed = power == exponent[1]
    if fixed and power.denominator == 1 and abs(power) <= _MOST_POWER:
        if power < 0 and low <= 0 <= high:
            return None
        whole = int(power)
        ends = [low**whole, high**whole]
        if power > 0 and power % 2 == 0 and low < 0 < high:
            ends.append(Fraction(0))
        return min(ends), max(ends)
    if fixed and power.denominator > 1:  # of what is below 0 there is none
        low = max(low, Fraction(0))
    if high < low or low < 0 or (low == 0 and exponent[0] <= 0):
        return None
    return _tidy([decimal_power(float(x), float(y)) for x, y in product((low, high), exponent)])


def _root(number: Fraction) -> Bounds:
    """Numbers of few digits around the root; itself where it is rational."""
    above, below = math.isqrt(number.numerator), math.isqrt(number.denominator)
    exact = Fraction(above, below)
    if exact**2 == number:
        return exact, exact
    root = math.sqrt(number)  # of the nearest double
    return _tidy([root * (1 - 2.0**-51), root * (1 + 2.0**-51)])


def _tidy(numbers: list[float]) -> Bounds:
    """The least and the greatest, outwards to a few digits."""
    ends = ((min(numbers), ROUND_FLOOR), (max(numbers), ROUND_CEILING))
    low, high = (
        Fraction(Context(prec=_DIGITS, rounding=way).plus(Decimal(end))) for end, way in ends
    )
    return low, high
