"""Discrete Gaussian draws of any rational variance, by rejection from discrete Laplace draws."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter
from lastbit.exact import LARGEST_ARGUMENT, exp_negative
from lastbit.sampling.bits import Bits, secure_bits, words
from lastbit.sampling.blocks import drawn_with
from lastbit.sampling.laplace import MOST_SCALE, SignedDigits, signed_digits
from lastbit.sampling.lazy import accepted, check_parameter, falls_below, proposals

MOST_VARIANCE = MOST_SCALE**2
_ACCEPTANCE = 0.44  # of the proposals, at least: the least, 0.445, is at a variance of 0.09
_LARGEST_RATE = Fraction(1 << 900)


def draw_discrete_gaussian(variance: Fraction, count: int) -> list[int]:
    """`count` independent draws of the law of `Rejection`, from the thread's secure bits.

    >>> len(draw_discrete_gaussian(Fraction(10**60, 3), 4))
    4
    """
    draws: list[int] = drawn_with(rejection(variance), secure_bits(), count).tolist()
    return draws


@dataclass(frozen=True, slots=True, eq=False)
class Rejection:
    """Draws of a discrete Laplace law, of which some are rejected.

    Law      P[X = x] proportional to exp(-x**2 / (2 v)) on the integers, v the variance
    Theorem  Let Y be discrete Laplace of scale t, accepted with probability exp(-E(Y)),
             E(y) = (abs(y) - v/t)**2 / (2 v). As abs(y)/t + E(y) = y**2/(2 v) + v/(2 t**2), an
             accepted Y has the law, whatever t is. With t = floor(sqrt v) + 1 at least 0.44 are.
             *Floats*: s = abs(y)/t, c = v/t**2 <= 1, k = t**2/(2 v), E = k (s-c)**2; u = 2**-53,
             b = s + 2. s is off by at most 3u s, c by u, so s - c by 5u b. For v > 1/2, k <= 2 and
             E is off by at most 30u b**2. For v <= 1/2, t = 1 and s is exact, so that E is off by
             10u E, and exp(-E) by 4u. With the 8u of `exp_negative` and roundings the acceptance is
             off by less than (32 b**2 + 16) u; twice that is allowed for. What lies within it, less
             than one proposal in 2**41, is decided by integers. A rate k above 2**900 stands for
             2**900: E is then below 2**-900 for y = 0 and above 512 for others, either way
    Source   CKS20, Algorithm 3, for t; von Neumann 1951
    Differs  every comparison is exact, and the number of random words is constant for a size: so
             many proposals are drawn that enough are accepted, except with probability 2**-48
    Checked  tests/laws/test_gaussian_rejection.py
    """

    variance: Fraction
    scale: int
    proposed: SignedDigits

    def draw(self, bits: Bits, size: int) -> NDArray[Any]:
        """`size` independent draws."""
        count = proposals(size, _ACCEPTANCE)
        out = self._accepted(bits, count, size)
        while out.size < size:
            out = np.concatenate([out, self._accepted(bits, count, size - out.size)])
        return out

    def _accepted(self, bits: Bits, count: int, need: int) -> NDArray[Any]:
        """The first `need` accepted ones of `count` proposals, or all if fewer."""
        values = self.proposed.draw(bits, count)
        word = (words(bits, count, np.uint64) >> np.uint64(11)).view(np.int64)

        def decided(i: int) -> bool:
            return falls_below(bits, int(word[i]), self.distance(int(values[i])))

        return values[accepted(word, self.acceptance(values), need, decided)]

    def distance(self, value: int) -> Fraction:
        """E of the theorem."""
        return (abs(value) - self.variance / self.scale) ** 2 / (2 * self.variance)

    def acceptance(self, values: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Floats that enclose 2**53 times the probability of accepting each proposal."""
        centre = self.variance / self.scale**2
        rate = min(1 / (2 * centre), _LARGEST_RATE)
        passed = np.abs(values).astype(np.float64) / float(self.scale)
        off = passed - centre.numerator / centre.denominator
        far = rate.numerator / rate.denominator * (off * off)
        probability = exp_negative(np.minimum(far, LARGEST_ARGUMENT))
        tolerance = (64.0 * (passed + 2.0) ** 2 + 32.0) * 2.0**-53
        return (probability - tolerance) * 2.0**53, (probability + tolerance) * 2.0**53


@lru_cache(maxsize=32, typed=True)
def rejection(variance: Fraction) -> Rejection:
    """The prepared sampler of a variance."""
    check_parameter(variance, "variance")
    if variance > MOST_VARIANCE:
        problem, remedy = "is above 2**1024", "measure in a larger unit"
        raise InvalidParameter("variance", problem=problem, remedy=remedy)
    scale = min(isqrt(int(variance)) + 1, MOST_SCALE)
    return Rejection(variance, scale, signed_digits(Fraction(scale)))
