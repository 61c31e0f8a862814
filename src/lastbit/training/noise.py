"""Rounded Gaussian noise, added once to a sum of whole numbers.

Law      X = round(sigma Z), Z standard normal, in each coordinate apart; sigma an exact rational
Theorem  S + X is D/sigma-GDP for sums with |S - S'| <= D, and a step on a Poisson sample at rate q
         is dominated by (1-q) N(0, 1) + q N(D/sigma, 1) against N(0, 1), and the reverse
Proof    S is whole, so S + round(sigma Z) = round(S + sigma Z): the release is a function of
         S + sigma Z, the Gaussian mechanism on real numbers, whose law for two neighbours is that
         of N(0, 1) and N(|S - S'|/sigma, 1) along S - S' (Dong, Roth, Su 2022, Theorem 2.7);
         samples: `SubsampledGaussianLoss`. Nothing of it is about discrete Gaussians.  []
Differs  `lastbit.sampling.rounded` draws it exactly; its bits come from the operating system and
         are drawn for each step: no state is saved, so none is used again after a restart or a fork
Checked  tests/training/test_noise.py; the sampler in tests/sampling/test_rounded.py
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, Overflow
from lastbit.exact import Number, positive
from lastbit.laws import IdealGaussian
from lastbit.sampling import Size, drawn, rounded_sampler

MOST_DEVIATION = 1 << 52
"""Beyond it, noise of 512 deviations, which is not drawn in this universe, would pass 2**61."""
_MOST_NOISE = 1 << 61


def rounded_gaussian(size: Size, deviation: Number) -> NDArray[np.int64]:
    """Draws of round(deviation Z): independent, exact, int64.

    >>> rounded_gaussian((2, 3), "1/1000").tolist()
    [[0, 0, 0], [0, 0, 0]]
    """
    spread = positive(deviation, "deviation")
    check_deviation(spread)
    noise = drawn(rounded_sampler(IdealGaussian(), scale=spread), 1 if size is None else size)
    if noise.dtype == np.object_ or (noise.size and max(noise.max(), -noise.min()) > _MOST_NOISE):
        raise Overflow("a draw of noise is beyond int64; nothing was released, take the step again")
    whole: NDArray[np.int64] = noise
    return whole


def check_deviation(spread: Fraction) -> None:
    """Refuse noise that could pass int64."""
    if spread > MOST_DEVIATION:
        remedy = "take a smaller bound or a smaller noise multiplier"
        raise InvalidParameter("deviation", problem="is above 2**52", remedy=remedy)
