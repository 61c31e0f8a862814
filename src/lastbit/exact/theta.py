"""Weights of the discrete Gaussian law and their sum, shares and complements, between integers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import isqrt

from lastbit.exact.fixed_point import GUARD, Pair, exp_between, pi_between, product, shorter


def share(part: Pair, whole: Pair, places: int) -> Pair:
    """The enclosure of part/whole, where 0 <= part <= whole and whole > 0."""
    one = 1 << places
    low = (max(part[0], 0) << places) // whole[1]
    high = -(-(part[1] << places) // whole[0]) if whole[0] > 0 else one
    return min(low, one), min(high, one)


def complement(part: Pair, places: int) -> Pair:
    """The enclosure of 1 - part."""
    return (1 << places) - part[1], (1 << places) - part[0]


def gaussian_weights(variance: Fraction, places: int) -> Iterator[Pair]:
    """Enclosures of exp(-k**2 / (2 variance)) for k = 0, 1, 2, ...

    Theorem  w_(k+1) = w_k r_k with r_k = exp(-(2k+1)/(2 variance)), and r_(k+1) = r_k r,
             r = exp(-1/variance)
    """
    weight = 1 << places, 1 << places
    ratio = exp_between(1 / (2 * variance), places)
    shrink = exp_between(1 / variance, places)
    while True:
        yield weight
        weight = product(weight, ratio, places)
        ratio = product(ratio, shrink, places)


def theta_between(variance: Fraction, places: int) -> Pair:
    """Integers around 2**places times the sum of exp(-k**2 / (2 variance)) over all integers k.

    Theorem  By Poisson summation the sum is root (1 + e) with root = sqrt(2 pi variance) and
             e = 2 sum over k >= 1 of exp(-2 pi**2 variance k**2) < 2.001 exp(-19.7 variance)
             < 2**-(27 variance) for a variance from 1 up, as exp(-19.7) < 2**-28.4. Where that is
             below 2**-places the root alone is taken, and enlarged by it.
             Elsewhere terms are added until one, of number k >= 1, is at most 2**-places. If the
             variance is below 1, the next is smaller by exp(-(2k+1)/(2 variance)) < exp(-3/2) or
             more; else 27 variance < places, so k**2 > 1.38 places variance > 37 variance**2, and
             it is smaller still. Those left out on both sides add up to less than 2**-places
    Checked  tests/exact/test_fixed_point.py
    """
    if variance >= 1 and 27 * variance >= places:
        around_pi = pi_between(places)
        twice, below = 2 * variance.numerator << places, variance.denominator
        low = isqrt(around_pi[0] * twice // below)
        high = isqrt(around_pi[1] * twice // below) + 1
        return low, high + (high >> places) + 1
    working = places + GUARD
    low, high = -1 << working, -1 << working  # the term of 0 counts once
    for below, above in gaussian_weights(variance, working):
        low, high = low + 2 * below, high + 2 * above
        if above <= 1 << GUARD:
            break
    return shorter((low, high + (2 << GUARD)), GUARD)
