"""Counts, sums and means from the two ends: how far values are above the low bound, and below.

Law      A and B are the noisy sums of the rows' distances above the lowest and below the highest
         point of the grid, in steps, of which there are g between the two. Rows: (A + B)/g. Sum:
         low (A + B)/g + step A. Mean: low + step g A/(A + B), clamped; missing unless A + B > 0
Theorem  each interval holds the number without noise in at least 95 % of all releases:
         - rows: X + Y, the noises of A and B, are of one law and independent. For discrete Laplace
           noise, q = exp(-1/scale), P[abs(X + Y) > a] = 2 c q**(a+1) ((a + 1 + b)/(1-q) +
           q/(1-q)**2), c = ((1-q)/(1+q))**2, b = (1+q**2)/(1-q**2); other noise: `reach.py`
         - sum: `reach.py` for high X + low Y
         - mean: let p be the true A/(A + B), between 0 and 1. The noise of A - p (A + B) is
           (1-p) X - p Y, which strays by at most t(p) = shift + root of square ((1-p)**2 + p**2),
           shift and square being the greater ones of `reach.py` for two noises of ratio at most 1
           (the laws are equal, so the larger of p and 1-p may come first; p and 1-p add up to 1).
           t is convex and the left side linear in p: as for quotients there, what is excluded at
           two places is excluded between them
Proof    (rows) P[X + Y = k] = c (sum of q**(abs(j) + abs(k-j))) = c q**k (k + b) for k >= 0; sum
         it over k > a, both signs
Checked  tests/release/test_ends.py
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from lastbit.exact import arb_of, upper, working_precision
from lastbit.laws import DiscreteLaplace
from lastbit.release.reach import BETA, MeasureNoise, reach_of
from lastbit.tables import Measure

_BITS = 40
_ONE = 1 << _BITS
_REACH_BITS = 20

Ends = tuple[int, int]
"""Two of A and B, or the ends of an interval."""


def double_accuracy(noise: MeasureNoise, beta: Fraction = BETA) -> int:
    """An a with P[abs(X + Y) > a] <= beta, of two such noises; of Laplace noise the least one.

    >>> double_accuracy(MeasureNoise(DiscreteLaplace(Fraction(1000))))
    4112
    """
    law = noise.law
    if not isinstance(law, DiscreteLaplace):
        return math.ceil(reach_of([noise, noise], beta, ratios=[1]).bound(Fraction(1), Fraction(1)))
    low, high = -1, 2 * noise.accuracy(beta / 2)  # where each is within half of it
    while high - low > 1:
        middle = (low + high) // 2
        exceeds = double_tail(law.scale, middle) > beta
        low, high = (middle, high) if exceeds else (low, middle)
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
        self.steps, self.one, self.noise = above.highest, one, noise
        self.low, self.step = above.centre, above.step
        self.high = self.low + self.steps * self.step

    def count_half(self) -> Fraction:
        """Half of the width of the interval of a count, before it is rounded to whole rows."""
        return Fraction(double_accuracy(self.noise), self.steps * self.one)

    def counts(self, pairs: Sequence[Ends]) -> Iterator[tuple[int, float, int, int]]:
        """Value, standard error and interval of the number of rows."""
        unit = self.steps * self.one
        half, error = double_accuracy(self.noise), math.sqrt(2 * self.noise.variance) / unit
        for above, below in pairs:
            both = above + below
            ends = (both - half) // unit, -((-both - half) // unit)
            yield round(Fraction(both, unit)), error, *ends

    def sum_half(self) -> Fraction:
        """Half of the width of the interval of a sum."""
        large, small = sorted((abs(self.high), abs(self.low)), reverse=True)
        factor = Fraction(1, self.steps * self.one)
        if small == 0:
            return factor * large * self.noise.accuracy(BETA)
        reach = reach_of([self.noise, self.noise], BETA, ratios=[small / large])
        return factor * reach.bound(large, small)

    def sums(self, pairs: Sequence[Ends]) -> Iterator[tuple[Fraction, float]]:
        """Value and standard error of the sum of values."""
        unit = self.steps * self.one
        spread = (self.low**2 + self.high**2) * self.noise.variance
        error = math.sqrt(spread / unit**2)
        for above, below in pairs:
            yield (self.high * above + self.low * below) / unit, error

    def means(self, pairs: Sequence[Ends]) -> Iterator[tuple[Fraction, float, Ends] | None]:
        """Value, standard error and interval of the mean, in parts of 2**40 between the bounds."""
        reach = reach_of([self.noise, self.noise], BETA, ratios=[1])
        shift, square = max(reach.shifts), max(reach.squares)
        width = self.high - self.low
        for above, below in pairs:
            both = above + below
            if both <= 0:
                yield None
                continue
            first = _lower_end(above, both, shift, square)
            last = _ONE - _lower_end(below, both, shift, square)
            share = min(max(Fraction(above, both), Fraction(0)), Fraction(1))
            spread = self.noise.variance * ((1 - share) ** 2 + share**2)
            error = min(math.sqrt(spread) / both, 0.5) * float(width)
            yield self.low + width * share, error, (first, last)


def _lower_end(above: int, both: int, shift: int, square: int) -> int:
    """A place, in parts of 2**40, up to which above - p both > t(p) for all p from 0."""

    def excluded(place: int) -> bool:
        beyond = (((above << _BITS) - place * both) << _REACH_BITS) - (shift << _BITS)
        return beyond > 0 and beyond * beyond > square * ((_ONE - place) ** 2 + place * place)

    if not excluded(0):
        return 0
    if excluded(_ONE):
        return _ONE
    unit = float(1 << _REACH_BITS)
    size, near, root = float(both), above - shift / unit, math.sqrt(square) / unit
    # the lower root of (near - p size)**2 = root**2 (1 - 2p + 2p**2)
    leading = size * size - 2 * root * root
    middle = near * size - root * root
    inside = middle * middle - leading * (near * near - root * root)
    if leading > 0 and inside >= 0:
        guess = (middle - math.sqrt(inside)) / leading
        for push in (2.0**-30, 2.0**-10, 2.0**-4):
            place = math.floor((guess - push * (abs(near / size - guess) + 2.0**-8)) * _ONE)
            if 0 < place < _ONE and excluded(place):
                return place
    return 0
