"""An index with probability proportional to a count times an exponential."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.exact.ball import arb_of
from lastbit.exact.exponential import LARGEST_ARGUMENT, exp_negative
from lastbit.sampling.bits import Bits, words
from lastbit.sampling.choice import Wheel, summed
from lastbit.sampling.uniform_real import LazyUniform

__all__ = ["Counted", "counted"]

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
