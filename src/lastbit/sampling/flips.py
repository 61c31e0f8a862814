"""Many coins of probability exp(-rate * (greatest - e_i)), and one of those that fell heads."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.exact import LARGEST_ARGUMENT, arb_of, exp_negative, rational
from lastbit.sampling.bits import Bits, words
from lastbit.sampling.choice import Exponents, distances_below
from lastbit.sampling.uniform import LazyUniform, below_each

_BLOCK = 1 << 14


@dataclass(frozen=True, slots=True, eq=False)
class Flips:
    """One independent coin a candidate, then one of the candidates whose coin fell heads.

    Law      coin i falls heads with probability p_i = exp(-d_i), d_i = rate (greatest - e_i); the
             draw is uniform among the heads. A candidate with the greatest exponent has p_i = 1, so
             there always are heads
    Theorem  A coin is U < p_i for a uniform real U with first 53 bits w. Let y be exp_negative of
             the float of d_i. That float takes one difference, one product and the rounding of the
             rate, so with u = 2**-53 it is off by at most 4u d_i (underflow adds 2**-1074 at most),
             and y relatively by at most (8 d_i + 16) u (`exp_negative`: 8u). With the roundings of
             the bounds themselves, 2**53 y (1 - s) <= 2**53 p_i <= 2**53 y (1 + s) as floats,
             s = (8 d_i + 24) u. So w < sure = floor(2**53 y (1-s)) is heads and w >= never =
             ceil(2**53 y (1+s)) is tails. The words between, at most 2 (8 d + 24) exp(-d) + 2 <= 50
             of 2**53, a share below 2**-47, are decided by more bits of U and balls.
             Where d_i > 512, 512 stands for it: sure is 0 then, and never is 1 and above 2**53 p_i.
             Among k heads, x = floor(k U) for 64 bits of another uniform, again with more bits
             where these do not decide, a share of at most k/2**64; the draw is the x-th of them
    Differs  what is constant: n + 1 words of 64 bits a draw, in the same requests, and the same
             array operations, whatever the exponents and the coins. Not constant: the undecided
             coins and choices above, which take further words
    Checked  tests/mechanisms/test_permute_and_flip.py
    """

    sure: NDArray[np.int64]
    never: NDArray[np.int64]
    exponents: Exponents
    greatest: Fraction
    rate: Fraction

    def draw(self, bits: Bits, size: int) -> NDArray[np.int64]:
        """`size` independent indices, each from coins of its own."""
        out = np.empty(size, np.int64)
        rows = max(1, _BLOCK // self.sure.size)
        for start in range(0, size, rows):
            piece = out[start : start + rows]
            piece[:] = _one_of(bits, self.heads(bits, piece.size))
        return out

    def heads(self, bits: Bits, rows: int) -> NDArray[np.bool_]:
        """All coins, `rows` times over: one row a time."""
        out = np.empty((rows, self.sure.size), np.bool_)
        for start in range(0, self.sure.size, _BLOCK):
            here = out[:, start : start + _BLOCK]
            sure, never = self.sure[start : start + _BLOCK], self.never[start : start + _BLOCK]
            word = (words(bits, here.size, np.uint64) >> np.uint64(11)).view(np.int64)
            word = word.reshape(here.shape)
            np.less(word, sure, out=here)
            possible = word < never
            if np.count_nonzero(possible) != np.count_nonzero(here):
                for row, column in np.argwhere(possible & ~here):
                    decided = self._falls(bits, start + int(column), int(word[row, column]))
                    here[row, column] = decided
        return out

    def _falls(self, bits: Bits, index: int, word: int) -> bool:
        distance = self.rate * (self.greatest - rational(self.exponents[index]))

        def probability() -> arb:
            return (-arb_of(distance)).exp()

        return LazyUniform(bits, word, 53).below(probability)


def flips(exponents: Exponents, rate: Fraction) -> Flips:
    """The coins of candidates: floats or integers in a numpy vector, or a sequence of rationals."""
    with np.errstate(all="ignore"):  # a distance beyond all floats counts as 512
        distances, greatest = distances_below(exponents)
        distances *= rate.numerator / rate.denominator
        np.minimum(distances, LARGEST_ARGUMENT, out=distances)
        sure = np.empty(distances.size, np.int64)
        never = np.empty(distances.size, np.int64)
        for start in range(0, distances.size, _BLOCK):
            piece = slice(start, start + _BLOCK)
            slack = (8.0 * distances[piece] + 24.0) * 2.0**-53
            y = exp_negative(distances[piece]) * 2.0**53
            sure[piece] = y * (1.0 - slack)  # the cast rounds down, as nothing is negative
            never[piece] = np.ceil(y * (1.0 + slack))
    return Flips(sure, never, exponents, greatest, rate)


def _one_of(bits: Bits, heads: NDArray[np.bool_]) -> NDArray[Any]:
    """For each row the position of one of its heads, all alike."""
    upto = np.cumsum(heads, axis=1, dtype=np.int64)
    rank = below_each(bits, upto[:, -1].astype(np.uint64))
    chosen: NDArray[Any] = np.argmax(upto > rank[:, np.newaxis], axis=1)
    return chosen
