"""The checker's own intervals: all values of an operation over all numbers of its operands.

ln, exp and roots come from `arithmetic.py`, a little wider than they are; where they are rational
(ln 1, exp 0, the root of a square) they are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt

from lastbit.verify.arithmetic import exp_bounds, ln_bounds, require, sqrt_bounds
from lastbit.verify.check_formats import Interval

__all__ = [
    "ONE",
    "ZERO",
    "each",
    "exp",
    "hull_distance",
    "inverse",
    "ln",
    "minus",
    "power_of_two",
    "size",
    "sqrt",
    "times",
]

LEAST_EXPONENT = Fraction(-1400)
ONE: Interval = (Fraction(1), Fraction(1))
ZERO: Interval = (Fraction(0), Fraction(0))


def minus(x: Interval) -> Interval:
    """All -x."""
    return -x[1], -x[0]


def times(x: Interval, y: Interval) -> Interval:
    """All products of two numbers of two intervals."""
    corners = [a * b for a in x for b in y]
    return min(corners), max(corners)


def inverse(x: Interval) -> Interval:
    """All 1/x."""
    require(x[0] > 0 or x[1] < 0, "a divisor may be 0")
    return 1 / x[1], 1 / x[0]


def size(x: Interval) -> Interval:
    """All abs(x)."""
    least = max(x[0], -x[1], Fraction(0))
    return least, max(-x[0], x[1])


def ln(x: Interval) -> Interval:
    """All ln x."""
    require(x[0] > 0, "a logarithm of what may not be above 0")
    low, high = (ln_bounds(end) if end != 1 else (Fraction(0),) * 2 for end in x)
    return low[0], high[1]


def exp(x: Interval) -> Interval:
    """All exp x; 0 stands for what is below e**-1400."""
    require(x[1] <= 10**5, "an exponential may overflow")
    ends = [max(end, LEAST_EXPONENT) for end in x]
    low, high = (exp_bounds(end) if end != 0 else ONE for end in ends)
    return (low[0] if x[0] >= LEAST_EXPONENT else Fraction(0)), high[1]


def sqrt(x: Interval) -> Interval:
    """All square roots, rational ones exactly."""
    require(x[0] >= 0, "a square root of what may be below 0")
    found = []
    for end in x:
        top, bottom = isqrt(end.numerator), isqrt(end.denominator)
        exact = top * top == end.numerator and bottom * bottom == end.denominator
        found.append((Fraction(top, bottom),) * 2 if exact else sqrt_bounds(end))
    return found[0][0], found[1][1]


def each(function: Callable[[Fraction], Fraction | int], x: Interval) -> Interval:
    """An interval of the values at both ends."""
    return Fraction(function(x[0])), Fraction(function(x[1]))


def power_of_two(x: Interval) -> bool:
    """Whether an interval is one power of two, of either sign."""
    top, bottom = abs(x[0].numerator), x[0].denominator
    return x[0] == x[1] and top > 0 and top & (top - 1) == 0 and bottom & (bottom - 1) == 0


def hull_distance(x: Interval, y: Interval) -> Fraction:
    """The greatest distance of a number of one interval from one of the other."""
    return max(y[1] - x[0], x[1] - y[0])
