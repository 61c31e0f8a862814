"""One of many candidates in each of many rows at once, by exponentials of integers.

An index with probability proportional to a count times an exponential.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.exact import LARGEST_ARGUMENT, arb_of, exp_negative
from lastbit.sampling.bits import Bits, secure_bits, words
from lastbit.sampling.choice import Wheel, summed
from lastbit.sampling.draw import drawn_with
from lastbit.sampling.uniform import LazyUniform

_SUM_BITS = 61
_ENTRIES = 1 << 20
_MOST_ROWS = 1 << 14
_BLOCK_BITS = 128


def choice_exp_rows(distances: NDArray[np.int64], *, rate: Fraction) -> NDArray[np.int64]:
    """Exact draws, one index a row, P proportional to exp(-rate * distances[row, index]).

    Law      P[X_row = i] = exp(-rate d_i) / sum(exp(-rate d_j)), the rows independent
    Theorem  see `RowChoices`
    Source   as `choice_exp`, for many rows at a time; distances from 0 up and below 2**62
    Checked  tests/sampling/test_choice_rows.py

    >>> choice_exp_rows(np.array([[0, 1000], [1000, 0]]), rate=Fraction(1)).tolist()
    [0, 1]
    """
    rows, candidates = distances.shape
    step = max(1, min(_MOST_ROWS, _ENTRIES // max(candidates, 1)))
    out = np.empty(rows, np.int64)
    for start in range(0, rows, step):
        piece = row_choices(distances[start : start + step], rate)
        out[start : start + step] = drawn_with(piece, secure_bits(), len(piece.sums))
    return out


@dataclass(frozen=True, slots=True, eq=False)
class RowChoices:
    """Exponential weights of every row, drawn from integer weights that are a trace too large.

    Law      P[X = i] proportional to v_i = exp(-rate (d_i - d)), d the least distance of the row
    Theorem  Let W_i be integers with W_i >= 2**b v_i. In each row draw i in proportion to W_i and
             accept with probability 2**b v_i/W_i, else draw again: each round gives i with
             probability proportional to v_i. With u = 2**-53, the float x of rate (d_i - d) takes a
             conversion, a product and the rounding of the rate, so it is off by at most 4u x, and
             y = exp_negative(x) relatively by at most s = (8 x + 16) u. So W_i =
             ceil(2**b y (1+s)(1+8u)) is large enough, a word below 2**b y (1-s)(1-8u)/W_i accepts
             at once, and balls decide the rest. Beyond x = 512 that of 512 is taken, and is 1.
             i in proportion to W_i: a uniform integer t below their sum T, and the least i whose
             running sum exceeds t. t = floor(U T/2**128) for U of 128 bits, drawn again if
             U T mod 2**128 < 2**128 mod T: of the U left each t has floor(2**128/T) (Lemire 2019)
    Source   `choice.Majorant`
    Differs  sums of a row stay below 2**62; a row is drawn again with probability below 2**-38
    Checked  tests/sampling/test_choice_rows.py
    """

    sums: NDArray[np.int64]
    accept_low: NDArray[np.float64]
    distances: NDArray[np.int64]
    rate: Fraction
    scale_bits: int

    def draw(self, bits: Bits, size: int) -> NDArray[np.int64]:
        """One index for each of the rows, whose number is `size`."""
        out = np.zeros(size, np.int64)
        pending = np.arange(size)
        while pending.size:
            sums = self.sums[pending]
            target = _below(bits, sums[:, -1])
            index = (sums <= target[:, None]).sum(axis=1)
            out[pending] = index
            word = (words(bits, pending.size, np.uint64) >> np.uint64(11)).view(np.int64)
            open_ = np.flatnonzero(word >= self.accept_low[pending, index])
            rejected = [
                k
                for k in open_
                if not self._accepts(bits, int(pending[k]), int(index[k]), int(word[k]))
            ]
            pending = pending[rejected]
        return out

    def _accepts(self, bits: Bits, row: int, index: int, word: int) -> bool:
        far = self.rate * int(self.distances[row, index])
        before = int(self.sums[row, index - 1]) if index else 0
        weight = int(self.sums[row, index]) - before

        def probability() -> arb:
            return (-arb_of(far)).exp() * arb(2) ** self.scale_bits / weight

        return LazyUniform(bits, word, 53).below(probability)


def row_choices(distances: NDArray[np.int64], rate: Fraction) -> RowChoices:
    """Integer weights just above the exponential ones, row by row."""
    own = distances - distances.min(axis=1, keepdims=True)
    scale_bits = _SUM_BITS - own.shape[1].bit_length()
    with np.errstate(over="ignore"):  # a distance too large for a float counts as 512
        far = own.astype(np.float64) * (rate.numerator / rate.denominator)
    near = np.minimum(far, LARGEST_ARGUMENT)
    slack = (8.0 * near + 24.0) * 2.0**-53  # s and 8u
    y = exp_negative(near) * 2.0**scale_bits
    weight = np.ceil(y * (1.0 + slack))
    # for comparison with the first 53 bits of a uniform, whose other bits could add one
    accept = y * (1.0 - slack) / weight * 2.0**53 - 1.0
    accept[far > LARGEST_ARGUMENT] = -1.0
    sums = np.cumsum(weight.astype(np.int64), axis=1)
    return RowChoices(sums, accept, own, rate, scale_bits)


def _below(bits: Bits, totals: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each total a uniform integer from 0 up and below it."""
    out = np.empty(totals.size, np.int64)
    pending = list(range(totals.size))
    mask = (1 << _BLOCK_BITS) - 1
    while pending:
        drawn = words(bits, 2 * len(pending), np.uint64).tolist()
        left = []
        for place, high, low in zip(pending, drawn[0::2], drawn[1::2], strict=True):
            total = int(totals[place])
            product = (high << 64 | low) * total
            if product & mask < (1 << _BLOCK_BITS) % total:
                left.append(place)
            else:
                out[place] = product >> _BLOCK_BITS
        pending = left
    return out


_MOST_BITS = 61


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """P[X = i] proportional to counts[i] exp(-rate distances[i]), both integers from 0 up.

    Law      exactly that; an index with count 0 is never drawn
    Theorem  Let v_i = c_i exp(-rate (r_i - r)), r the least distance with a count above 0, and W_i
             integers, W_i >= 2**b v_i, W_i = 0 where c_i = 0. Draw i in proportion to W_i (`Wheel`)
             and accept with probability 2**b v_i/W_i, else draw again. W_i comes from floats: with
             u = 2**-53, d = fl(rate) (r_i - r) is off by at most 2u d, exp_negative by 8u more, the
             product with c_i < 2**53 by u, so y = fl(c_i exp(-d)) relatively by less than
             s = (8 d + 16) u, and W_i = ceil(2**b y (1+s)(1+8u)) is large enough. Where d > 512
             that of 512 is taken, and is larger. A uniform word below 2**b y (1-s)(1-8u)/W_i
             accepts at once (not where d > 512); what is left is decided by balls
    Source   as `choice.Majorant`, with counts
    Checked  tests/sampling/test_counted.py
    """

    wheel: Wheel
    weights: NDArray[np.int64]
    accept_low: NDArray[np.float64]
    counts: NDArray[np.int64]
    distances: NDArray[np.int64]
    least: int
    rate: Fraction
    scale_bits: int

    def draw(self, bits: Bits, size: int) -> NDArray[np.int64]:
        """`size` independent indices."""
        out = self.wheel.draw(bits, size)
        pending = np.arange(size)
        while pending.size:
            word = (words(bits, pending.size, np.uint64) >> np.uint64(11)).view(np.int64)
            open_ = np.flatnonzero(word >= self.accept_low[out[pending]])
            rejected = [
                i for i in open_ if not self._accepts(bits, int(out[pending[i]]), int(word[i]))
            ]
            pending = pending[rejected]
            out[pending] = self.wheel.draw(bits, pending.size)
        return out

    def _accepts(self, bits: Bits, index: int, word: int) -> bool:
        far = self.rate * (int(self.distances[index]) - self.least)
        count, weight = int(self.counts[index]), int(self.weights[index])

        def probability() -> arb:
            return (-arb_of(far)).exp() * count * arb(2) ** self.scale_bits / weight

        return LazyUniform(bits, word, 53).below(probability)


def counted(counts: NDArray[np.int64], distances: NDArray[np.int64], rate: Fraction) -> Counted:
    """The prepared weights: counts below 2**53, at least one of them above 0; distances as well."""
    least = int(distances[counts > 0].min())
    scale_bits = _MOST_BITS - int(counts.max()).bit_length()
    with np.errstate(all="ignore"):  # a distance too large for a float counts as 512
        far = np.maximum(distances - least, 0).astype(np.float64)
        far *= min(rate.numerator / rate.denominator, 2.0**900)
        near = np.minimum(far, LARGEST_ARGUMENT)
        slack = (8.0 * near + 24.0) * 2.0**-53  # s and 8u
        y = exp_negative(near) * counts.astype(np.float64) * 2.0**scale_bits
        weight = np.ceil(y * (1.0 + slack))
        # for comparison with the first 53 bits of a uniform, whose other bits could add one
        accept = y * (1.0 - slack) / np.maximum(weight, 1.0) * 2.0**53 - 1.0
    accept[far > LARGEST_ARGUMENT] = -1.0
    weights = weight.astype(np.int64)
    public_bits = _MOST_BITS + 2 + weights.size.bit_length()
    sums = summed(weights, _MOST_BITS + 1, public_bits=public_bits)
    return Counted(sums, weights, accept, counts, distances, least, rate, scale_bits)
