"""Coins: of a rational probability, of probability exp(-gamma), and of many candidates at once."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import overload

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, PrecisionExhausted
from lastbit.exact import (
    LARGEST_ARGUMENT,
    Enclosure,
    Number,
    Real,
    enclosure_of,
    exp_negative,
    probability,
    rational,
    rational_between,
    refine,
)
from lastbit.sampling.bits import Bits, words
from lastbit.sampling.choice import Exponents, distances_below
from lastbit.sampling.draw import Shape, Size, cached, drawn
from lastbit.sampling.inversion import GUIDE_BITS, WORD_BITS, Inversion, inversion
from lastbit.sampling.lazy import falls_below
from lastbit.sampling.uniform import below_each


@overload
def bernoulli(p: Number, size: None = None) -> bool: ...
@overload
def bernoulli(p: Number, size: Shape) -> NDArray[np.bool_]: ...
def bernoulli(p: Number, size: Size = None) -> bool | NDArray[np.bool_]:
    """Exact coins: True with probability p.

    Law      P[X = True] = p, a rational number
    Theorem  U < p for U uniform on [0, 1), decided by as many bits of U as it takes
    Source   von Neumann 1951
    Differs  0 and 1 are allowed; sixteen bits a coin unless they tie with those of p
    Checked  tests/laws/test_bernoulli.py

    >>> bernoulli(1), bernoulli(0, size=3).tolist()
    (True, [False, False, False])
    >>> bernoulli("1/3", size=(2, 5)).shape
    (2, 5)
    """
    return drawn(cached(_bernoulli, p), size)  # type: ignore[no-any-return]


@overload
def bernoulli_exp(gamma: Number | Real, size: None = None) -> bool: ...
@overload
def bernoulli_exp(gamma: Number | Real, size: Shape) -> NDArray[np.bool_]: ...
def bernoulli_exp(gamma: Number | Real, size: Size = None) -> bool | NDArray[np.bool_]:
    """Exact coins: True with probability exp(-gamma).

    Law      P[X = True] = exp(-gamma), gamma >= 0 a rational or a computable real
    Theorem  U < exp(-gamma) for U uniform on [0, 1); exp(-gamma) is enclosed in a ball as tightly
             as it takes to decide that
    Source   CKS20, Algorithm 1, for the law; there by a series of coins
    Differs  one comparison instead of a series, so the work does not depend on the outcome
    Checked  tests/laws/test_bernoulli.py

    >>> from lastbit.exact import Real
    >>> bernoulli_exp(Real(2).sqrt(), size=10).dtype
    dtype('bool')
    """
    return drawn(cached(_bernoulli_exp, gamma), size)  # type: ignore[no-any-return]


@lru_cache(maxsize=64, typed=True)
def _bernoulli(p: Number) -> Coin:
    return coin(partial(rational_between, probability(p, "p")))


@lru_cache(maxsize=64, typed=True)
def _bernoulli_exp(gamma: Number | Real) -> Coin:
    real = gamma if isinstance(gamma, Real) else Real(rational(gamma, "gamma"))
    problem = "is negative"
    try:
        negative = refine(lambda precision: real.ball(precision) < 0, limit=4096)
    except PrecisionExhausted:
        negative, problem = True, "is not certainly 0 or more"
    if negative:
        raise InvalidParameter("gamma", problem=problem, remedy="pass a number from 0 up")
    return coin(enclosure_of((-real).exp().enclosure))


@dataclass(frozen=True, slots=True, eq=False)
class Coin:
    """A two-celled law, True below the threshold: a comparison serves instead of the guide table.

    The values of the first bits that do not decide lie side by side, from `tie` on.
    """

    table: Inversion
    tie: int

    def draw(self, bits: Bits, size: int) -> NDArray[np.bool_]:
        first = self.table.first_bits(bits, size)
        out = first < self.tie
        close = np.flatnonzero(first - np.uint16(self.tie & 0xFFFF) < self.table.unsettled)
        self.table.settle(bits, first, close, out)
        return out


def coin(chance: Enclosure, *, word_bits: int = WORD_BITS, guide_bits: int = GUIDE_BITS) -> Coin:
    """The tables of a coin whose probability can be enclosed to any number of places."""
    inverse = inversion(
        lambda places: [chance(places)],
        lambda j: 1 - j,
        cells=2,
        word_bits=word_bits,
        guide_bits=guide_bits,
    )
    return Coin(inverse, int(np.count_nonzero(inverse.guide == 1)))


_FLIPS = 1 << 14


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
             of 2**53, a share below 2**-47, are decided by more bits of U.
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
        rows = max(1, _FLIPS // self.sure.size)
        for start in range(0, size, rows):
            piece = out[start : start + rows]
            upto = np.cumsum(self.heads(bits, piece.size), axis=1, dtype=np.int64)
            rank = below_each(bits, upto[:, -1].astype(np.uint64))
            piece[:] = np.argmax(upto > rank[:, np.newaxis], axis=1)
        return out

    def heads(self, bits: Bits, rows: int) -> NDArray[np.bool_]:
        """All coins, `rows` times over: one row a time."""
        out = np.empty((rows, self.sure.size), np.bool_)
        for start in range(0, self.sure.size, _FLIPS):
            here = out[:, start : start + _FLIPS]
            sure, never = self.sure[start : start + _FLIPS], self.never[start : start + _FLIPS]
            word = (words(bits, here.size, np.uint64) >> np.uint64(11)).view(np.int64)
            word = word.reshape(here.shape)
            np.less(word, sure, out=here)
            possible = word < never
            if np.count_nonzero(possible) != np.count_nonzero(here):
                for row, column in np.argwhere(possible & ~here):
                    exponent = rational(self.exponents[start + int(column)])
                    distance = self.rate * (self.greatest - exponent)
                    here[row, column] = falls_below(bits, int(word[row, column]), distance)
        return out


def flips(exponents: Exponents, rate: Fraction) -> Flips:
    """The coins of candidates: floats or integers in a numpy vector, or a sequence of rationals."""
    with np.errstate(all="ignore"):  # a distance beyond all floats counts as 512
        distances, greatest = distances_below(exponents)
        distances *= rate.numerator / rate.denominator
        np.minimum(distances, LARGEST_ARGUMENT, out=distances)
        sure = np.empty(distances.size, np.int64)
        never = np.empty(distances.size, np.int64)
        for start in range(0, distances.size, _FLIPS):
            piece = slice(start, start + _FLIPS)
            slack = (8.0 * distances[piece] + 24.0) * 2.0**-53
            y = exp_negative(distances[piece]) * 2.0**53
            sure[piece] = y * (1.0 - slack)  # the cast rounds down, as nothing is negative
            never[piece] = np.ceil(y * (1.0 + slack))
    return Flips(sure, never, exponents, greatest, rate)
