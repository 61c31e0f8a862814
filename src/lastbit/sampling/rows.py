"""One of many candidates by exponential weights, for many rows of candidates at a time."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, PrecisionExhausted
from lastbit.exact import LARGEST_ARGUMENT, exp_negative
from lastbit.sampling.bits import Bits, secure_bits, words
from lastbit.sampling.blocks import drawn_with
from lastbit.sampling.lazy import check_parameter, falls_below

MOST_BITS = 61
_ENTRIES = 1 << 20
_MOST_ROWS = 1 << 14
_LARGEST_RATE = Fraction(1 << 900)


def choice_exp_rows(distances: NDArray[np.int64], *, rate: Fraction) -> NDArray[np.int64]:
    """Exact draws, one index a row, P proportional to exp(-rate * distances[row, index]).

    Law      P[X_row = i] = exp(-rate d_i) / sum(exp(-rate d_j)), the rows independent
    Theorem  see `RowChoices`
    Source   McSherry, Talwar 2007, for the law
    Differs  many rows at a time; distances from 0 up and below 2**62, others are refused
    Checked  tests/sampling/test_choice_rows.py

    >>> choice_exp_rows(np.array([[0, 1000], [1000, 0]]), rate=Fraction(1)).tolist()
    [0, 1]
    """
    check_parameter(rate, "rate")
    rows, candidates = distances.shape
    whole = distances.dtype == np.int64 and 0 < candidates <= _ENTRIES
    if not whole or (rows and not 0 <= distances.min() <= distances.max() < 1 << 62):
        raise InvalidParameter(
            "distances",
            problem="are none, over 2**20, or not integers from 0 up and below 2**62",
            remedy="cut them off at a public number",
        )
    step = min(_MOST_ROWS, _ENTRIES // candidates)
    out = np.empty(rows, np.int64)
    for start in range(0, rows, step):
        piece = row_choices(distances[start : start + step], rate)
        out[start : start + step] = drawn_with(piece, secure_bits(), len(piece.sums))
    return out


@dataclass(frozen=True, slots=True, eq=False)
class RowChoices:
    """Exponential weights of every row, drawn from integer weights that are a trace too large.

    Law      P[X = i] proportional to v_i = exp(-rate (d_i - d)), d the least distance of the row
    Theorem  Let W_i be integers with W_i >= c v_i that add up to at most 2**61. A uniform integer t
             below 2**61 proposes the least i whose running sum exceeds t, or none; it is accepted
             with probability c v_i / W_i, else all is drawn again: each round gives i with
             probability c v_i / 2**61. Only the drawn v_i is ever needed exactly; the sum of all is
             not. W_i comes from floats (`weights_above`; that of rate (d_i - d) takes a conversion
             and a product); a uniform word below 2**53 times a lower bound of the acceptance
             accepts at once, and integer enclosures decide the rest.
             *Again*: c is the float nearest to 2**61 (1 - m)/Z, m = 2**-44 + n 2**-60, for n <=
             2**20 candidates; Z is the sum of the v_i in floats, added in pairs and so off by less
             than 2**-47 of it. W_i - c v_i is below 1 plus (16 d + 48) 2**-53 of c v_i, and the
             mean of d is at most ln n < 14: so the W_i add up to at most 2**61, and a row is drawn
             again with probability below 2**-43 + n 2**-59
    Source   rejection from a majorant: von Neumann 1951; McSherry, Talwar 2007, for the law
    Differs  the number of words is that of the rows, except for those drawn again
    Checked  tests/sampling/test_choice_rows.py
    """

    sums: NDArray[np.int64]
    accept_low: NDArray[np.float64]
    distances: NDArray[np.int64]
    rate: Fraction
    scales: NDArray[np.float64]

    def draw(self, bits: Bits, size: int) -> NDArray[np.int64]:
        """One index for each of the rows, whose number is `size`; of a single row, `size` of it."""
        out = np.zeros(size, np.int64)
        pending, single = np.arange(size), len(self.sums) == 1
        while pending.size:
            row = np.zeros_like(pending) if single else pending
            target = (words(bits, pending.size, np.uint64) >> np.uint64(3)).view(np.int64)
            if single:
                index = np.searchsorted(self.sums[0], target, side="right")
            else:
                index = (self.sums[row] <= target[:, None]).sum(axis=1)
            out[pending] = index
            word = (words(bits, pending.size, np.uint64) >> np.uint64(11)).view(np.int64)
            open_ = np.flatnonzero(word >= self.accept_low[row, index])
            rejected = [
                k
                for k in open_
                if not self._accepts(bits, int(row[k]), int(index[k]), int(word[k]))
            ]
            pending = pending[rejected]
        return out

    def _accepts(self, bits: Bits, row: int, index: int, word: int) -> bool:
        if index == self.sums.shape[1]:
            return False  # none was proposed
        before = int(self.sums[row, index - 1]) if index else 0
        share = Fraction(float(self.scales[row])) / (int(self.sums[row, index]) - before)
        return falls_below(bits, word, self.rate * int(self.distances[row, index]), share)


def row_choices(distances: NDArray[np.int64], rate: Fraction) -> RowChoices:
    """Integer weights just above the exponential ones, row by row."""
    own = distances - distances.min(axis=1, keepdims=True)
    with np.errstate(over="ignore"):  # a distance too large for a float counts as 512
        near = min(rate, _LARGEST_RATE)  # it makes no difference to a distance of 0, or above 512
        far = own.astype(np.float64) * (near.numerator / near.denominator)
    whole = exp_negative(np.minimum(far, LARGEST_ARGUMENT)).sum(axis=1)
    part = 1.0 - 2.0**-44 - own.shape[1] * 2.0**-60
    scales = 2.0**MOST_BITS * part / whole
    weight, accept = weights_above(far, scales[:, None])
    sums = np.cumsum(weight.astype(np.int64), axis=1)
    if sums.size and int(sums[:, -1].max()) > 1 << MOST_BITS:
        raise PrecisionExhausted("weights add up to more than was proved: look for a fault")
    accept = np.concatenate([accept, np.full((len(own), 1), -1.0)], axis=1)
    return RowChoices(sums, accept, own, rate, scales)


def weights_above(
    distance: NDArray[np.float64], scale: NDArray[np.float64] | float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Integer weights not below scale * exp(-d), and words that accept at once.

    Theorem  Write u = 2**-53; scale is exact, or off by u. The float of d takes at most two
             roundings and that of the rate, so it is off by at most 4u d, and y, the float of
             scale * exp(-d), relatively by at most s = (8 d + 16) u (`exp_negative`: 8u). So W =
             ceil(y (1+s)(1+8u)) is large enough, and the acceptance is at least
             y (1-s)(1-8u) / W. The share of about 2 (8 d + 16) u + 1/y that this leaves open is
             decided by integers. Where d > 512, W is that of 512, which is larger, and nothing is
             accepted at once
    """
    near = np.minimum(distance, LARGEST_ARGUMENT)
    slack = (8.0 * near + 24.0) * 2.0**-53  # s and 8u
    y = exp_negative(near) * scale
    weight = np.ceil(y * (1.0 + slack))
    # for comparison with the first 53 bits of a uniform, whose other bits could add one
    accept = y * (1.0 - slack) / np.maximum(weight, 1.0) * 2.0**53 - 1.0
    accept[distance > LARGEST_ARGUMENT] = -1.0
    return weight, accept
