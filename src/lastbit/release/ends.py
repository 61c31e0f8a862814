"""Counts, sums and means from the two ends: how far values are above the low bound, and below.

Law      A and B are the noisy sums of the rows' distances above the lowest and below the highest
         point of the grid, in steps, of which there are g between the two. Rows: (A + B)/g. Sum:
         (high A + low B)/g. Mean: low + step g A/(A + B), clamped; missing unless A + B > 0
Theorem  each interval holds the number without noise in at least 95 % of all releases:
         - rows: X + Y, the noises of A and B, are of one law and independent. For discrete Laplace
           noise, q = exp(-1/scale), P[abs(X + Y) > a] = 2 c q**(a+1) ((a + 1 + b)/(1-q) +
           q/(1-q)**2), c = ((1-q)/(1+q))**2, b = (1+q**2)/(1-q**2); other noise: `reach.py`
         - sum: `joint.py` for high X + low Y
         - mean: let p be the true A/(A + B), between 0 and 1. The noise of A - p (A + B) is
           (1-p) X - p Y, which strays by at most t(p) = shift + root of square ((1-p)**2 + p**2),
           shift and square being the greater ones of `reach.py` for two noises of ratio at most 1
           (the laws are equal, so the larger of p and 1-p may come first; p and 1-p add up to 1).
           t is convex and the left side linear in p: what is excluded at two places is between
Proof    (rows) P[X + Y = k] = c (sum of q**(abs(j) + abs(k-j))) = c q**k (k + b) for k >= 0; sum
         it over k > a, both signs
Checked  tests/release/test_ends.py
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from lastbit.exact import arb_of, lower, upper, working_precision
from lastbit.laws import DiscreteLaplace
from lastbit.release.joint import linear_half
from lastbit.release.reach import BETA, MeasureNoise, reach_of
from lastbit.tables import Measure

_BITS, _REACH_BITS = 40, 20
_ONE = 1 << _BITS


def double_accuracy(noise: MeasureNoise, beta: Fraction = BETA) -> int:
    """An a with P[abs(X + Y) > a] <= beta, of two such noises; of Laplace noise the least one.

    >>> double_accuracy(MeasureNoise(DiscreteLaplace(Fraction(1000))))
    4113
    """
    law = noise.law
    if not isinstance(law, DiscreteLaplace):
        return math.ceil(reach_of([noise, noise], beta, ratios=[1]).bound(Fraction(1), Fraction(1)))
    low, high = -1, 2 * noise.accuracy(beta / 2)  # where each is within half of it
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if double_tail(law.scale, middle) > beta else (low, middle)
    return high


def double_tail(scale: Fraction, a: int) -> Fraction:
    """P[abs(X + Y) > a] for two discrete Laplace noises, rounded up."""
    with working_precision(192):
        rate = arb_of(1 / scale)
        q, less = (-rate).exp(), -(-rate).expm1()
        b = (1 + q * q) / (less * (1 + q))
        chance = 2 * (less / (1 + q)) ** 2 * (-rate * (a + 1)).exp()
        return Fraction(upper(chance * ((a + 1 + b) / less + q / less**2)))


class EndsMaker:
    """The numbers of one column of values and of its rows; `one` stands for the weight 1."""

    def __init__(self, above: Measure, noise: MeasureNoise, one: int) -> None:
        self.unit, self.noise, self.low = above.highest * one, noise, above.centre
        self.high = self.low + above.highest * above.step

    def half(self, function: str, beta: Fraction = BETA) -> Fraction | None:
        """Half of the width of every interval of a count, before it is rounded, or of a sum."""
        if function == "count":
            return Fraction(double_accuracy(self.noise, beta), self.unit)
        if function == "sum":
            sizes = [abs(self.high), abs(self.low)]
            return linear_half(sizes, [self.noise, self.noise], beta) / self.unit
        return None

    def cells(
        self, function: str, bounds: Any, pairs: Iterable[tuple[int, int]]
    ) -> Iterator[tuple[Any, float | None, Any, Any]]:
        """Value, standard error and interval of each pair of A and B."""
        unit, half, variance = self.unit, self.half(function), self.noise.variance
        reach = reach_of([self.noise, self.noise], BETA, ratios=[1])
        shift, square, width = max(reach.shifts), max(reach.squares), self.high - self.low
        spread = math.sqrt((self.low**2 + self.high**2) * variance / unit**2)
        for above, below in pairs:
            both = above + below
            if function == "count" and half is not None:
                count, error = Fraction(both, unit), math.sqrt(2 * variance) / unit
                yield round(count), error, math.floor(count - half), math.ceil(count + half)
            elif function == "sum" and half is not None:
                total = (self.high * above + self.low * below) / unit
                yield float(total), spread, lower(total - half), upper(total + half)
            elif both <= 0:
                yield None, None, lower(bounds[0]), upper(bounds[1])
            else:
                share = min(max(Fraction(above, both), Fraction(0)), Fraction(1))
                first = Fraction(lower_share(above, both, shift, square), _ONE)
                last = 1 - Fraction(lower_share(below, both, shift, square), _ONE)
                ends = [self.low + width * x for x in (share, min(first, share), max(last, share))]
                off = math.sqrt(variance * ((1 - share) ** 2 + share**2)) / both
                error = min(off, 0.5) * float(width)
                yield float(ends[0]), error, lower(ends[1]), upper(ends[2])


def lower_share(above: int, both: int, shift: int, square: int) -> int:
    """A place, in parts of 2**40, up to which above - p both > t(p) for all p from 0."""

    def excluded(place: int) -> bool:
        beyond = (((above << _BITS) - place * both) << _REACH_BITS) - (shift << _BITS)
        return beyond > 0 and beyond * beyond > square * ((_ONE - place) ** 2 + place * place)

    if not excluded(0) or excluded(_ONE):
        return _ONE if excluded(0) else 0
    unit = float(1 << _REACH_BITS)
    size, near, root = float(both), above - shift / unit, math.sqrt(square) / unit
    # the lower root of (near - p size)**2 = root**2 (1 - 2p + 2p**2)
    leading, middle = size * size - 2 * root * root, near * size - root * root
    inside = middle * middle - leading * (near * near - root * root)
    if leading > 0 and inside >= 0:
        guess = (middle - math.sqrt(inside)) / leading
        for push in (2.0**-30, 2.0**-10, 2.0**-4):
            place = math.floor((guess - push * (abs(near / size - guess) + 2.0**-8)) * _ONE)
            if 0 < place < _ONE and excluded(place):
                return place
    return 0
