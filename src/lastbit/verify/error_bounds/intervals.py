"""Intervals with rational ends, exact, and rounded outward to short ones."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from lastbit.exact import arb_of, ends, floor_log2, root_above, root_below, working_precision
from lastbit.verify.error_bounds.formats import power_of_two

Interval: TypeAlias = tuple[Fraction, Fraction]

RANGE_BITS = 64
ERROR_BITS = 32
_PRECISION = 160
# The independent checker must find its own, slightly wider enclosures inside ours.
_MARGIN = power_of_two(-120)
_LEAST_EXPONENT = Fraction(-1400)  # e**-1400 < 2**-2000: smaller than anything that matters


def outward(x: Interval) -> Interval:
    """An interval around one whose ends have at most 64 significant bits.

    >>> low, high = outward((Fraction(1, 3), Fraction(1, 3)))
    >>> low < Fraction(1, 3) < high
    True
    """
    return -upward(-x[0], bits=RANGE_BITS), upward(x[1], bits=RANGE_BITS)


def upward(x: Fraction, *, bits: int = ERROR_BITS) -> Fraction:
    """The least number not below x with this many significant bits."""
    if x == 0:
        return x
    step = floor_log2(x) - bits + 1
    if step >= 0:
        return Fraction(-(-x.numerator // (x.denominator << step)) << step)
    return Fraction(-((-x.numerator << -step) // x.denominator), 1 << -step)


def added(x: Interval, y: Interval) -> Interval:
    """All sums."""
    return x[0] + y[0], x[1] + y[1]


def negated(x: Interval) -> Interval:
    """All opposites."""
    return -x[1], -x[0]


def multiplied(x: Interval, y: Interval) -> Interval:
    """All products."""
    if x[0] >= 0 and y[0] >= 0:
        return x[0] * y[0], x[1] * y[1]
    products = (x[0] * y[0], x[0] * y[1], x[1] * y[0], x[1] * y[1])
    return min(products), max(products)


def squared(x: Interval) -> Interval:
    """All squares."""
    low, high = least_size(x), largest_size(x)
    return low * low, high * high


def divided(x: Interval, y: Interval) -> Interval:
    """All quotients; y must not hold 0."""
    return multiplied(x, (1 / y[1], 1 / y[0]))


def hull(x: Interval, y: Interval) -> Interval:
    """The least interval around two."""
    return min(x[0], y[0]), max(x[1], y[1])


def largest_size(x: Interval) -> Fraction:
    """The greatest distance from 0."""
    return max(-x[0], x[1])


def least_size(x: Interval) -> Fraction:
    """The least distance from 0."""
    return max(x[0], -x[1], Fraction(0))


def ln_interval(x: Interval) -> Interval:
    """All logarithms, rounded outward; x must lie above 0."""
    return _monotone(x, "log", exact=Fraction(1), value=Fraction(0))


def exp_interval(x: Interval) -> Interval:
    """All exponentials, rounded outward; below e**-1400 the lower end is 0."""
    low, high = _monotone(
        (max(x[0], _LEAST_EXPONENT), max(x[1], _LEAST_EXPONENT)),
        "exp",
        exact=Fraction(0),
        value=Fraction(1),
    )
    return (low if x[0] >= _LEAST_EXPONENT else Fraction(0)), high


def _monotone(x: Interval, name: str, *, exact: Fraction, value: Fraction) -> Interval:
    """An increasing function over an interval; at one argument its value is rational."""
    found = []
    with working_precision(_PRECISION):
        for end in x:
            if end == exact:
                found.append((value, value))
                continue
            low, high = ends(getattr(arb_of(end), name)())
            slack = max(abs(low), abs(high)) * _MARGIN + power_of_two(-180) * (name == "log")
            found.append((low - slack, high + slack))
    return outward((found[0][0], found[1][1]))


def sqrt_interval(x: Interval) -> Interval:
    """All square roots, rounded outward, exact where rational; x must not go below 0."""
    return outward((root_below(x[0], _PRECISION), root_above(x[1], _PRECISION)))
