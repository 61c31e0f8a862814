"""Discrete Laplace draws of any rational scale, digit by digit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter
from lastbit.sampling.bits import Bits, secure_bits, words
from lastbit.sampling.blocks import drawn_with
from lastbit.sampling.lazy import check_parameter, falls_below
from lastbit.sampling.rows import RowChoices, row_choices

MOST_SCALE = 1 << 512
_DIGIT_BITS = 8
_FAR = 64  # exp(-64) is below 2**-53


def draw_discrete_laplace(scale: Fraction, count: int) -> list[int]:
    """`count` independent draws of the law of `SignedDigits`, from the thread's secure bits.

    >>> len(draw_discrete_laplace(Fraction(10**30, 3), 4))
    4
    """
    draws: list[int] = drawn_with(signed_digits(scale), secure_bits(), count).tolist()
    return draws


@dataclass(frozen=True, slots=True, eq=False)
class SignedDigits:
    """A draw assembled from independent digits: the xor of all digits, each shifted to its place.

    Law      P[X = k] = (1-q)/(1+q) * q**abs(k), q = exp(-1/scale)
    Theorem  Let G be geometric, P[G = g] = (1-q) q**g, and S = 1 with probability q/(1+q),
             independent. X = G if S = 0 and -1-G if S = 1 has that law. In base 256 the digits of
             G are independent, P[digit = d] proportional to exp(-d w/scale) for a digit of weight
             w, since q**(a + 256 b) is a product; what lies above the last digit is geometric too:
             the number of heads in a row of coins of chance exp(-256 w/scale). S and the lowest
             digit together are one of 512 cells: q**d for d, and q**(d+1) for -1-d. In two's
             complement -1-g is the complement of g, so the sign bits of the lowest cell complement
             all digits that are xored to it
    Source   Ghosh, Roughgarden, Sundararajan 2009 for the law; the digits: Karney 2016 and others
    Differs  digits are drawn by exponential weights (`rows.py`), exactly
    Checked  tests/laws/test_signed_digits.py
    """

    places: tuple[RowChoices, ...]
    beyond: Fraction

    def draw(self, bits: Bits, size: int) -> NDArray[Any]:
        """`size` independent draws, in Python integers where int64 cannot hold all of them."""
        cell = self.places[0].draw(bits, size)
        total: NDArray[Any] = (cell >> 1) ^ -(cell & 1)  # cell 2d stands for d, 2d+1 for -1-d
        for place, choices in enumerate(self.places[1:], start=1):
            total = _xor(total, choices.draw(bits, size), _DIGIT_BITS * place)
        first = words(bits, size, np.uint64) >> np.uint64(11)
        heads = np.zeros(size, np.int64)
        for i in np.flatnonzero(first == 0):  # other coins are tails: their chance is below 2**-53
            word = 0
            while falls_below(bits, word, self.beyond):
                heads[i] += 1
                word = int(words(bits, 1, np.uint64)[0]) >> 11
        return _xor(total, heads, _DIGIT_BITS * len(self.places)) if heads.any() else total


def _xor(total: NDArray[Any], digit: NDArray[Any], shift: int) -> NDArray[Any]:
    if int(digit.max(initial=0)).bit_length() + shift > 62:
        total, digit = total.astype(np.object_), digit.astype(np.object_)
    assembled: NDArray[Any] = total ^ (digit << shift)
    return assembled


@lru_cache(maxsize=32, typed=True)
def signed_digits(scale: Fraction) -> SignedDigits:
    """The prepared sampler of a scale."""
    check_scale(scale)
    base = 1 << _DIGIT_BITS
    cells = (np.arange(2 * base) + 1) // 2
    rate, places = 1 / scale, [row_choices(cells[None, :], 1 / scale)]
    while rate * base < _FAR:
        rate *= base
        places.append(row_choices(np.arange(base)[None, :], rate))
    return SignedDigits(tuple(places), rate * base)


def check_scale(scale: Fraction) -> None:
    """Refuse a scale that is not an exact rational above 0, or takes too many digits."""
    check_parameter(scale, "scale")
    if scale > MOST_SCALE:
        raise InvalidParameter(
            "scale", problem="is above 2**512", remedy="measure in a larger unit"
        )
