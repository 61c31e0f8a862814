"""Noise in plain floats, and sparse vectors made of it: what the benchmarks draw from.

**Not for use**: the arithmetic is that of textbooks, on purpose.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.sampling import Bits, words

Floats: TypeAlias = NDArray[np.float64]
_ABORTED, _BELOW = -2000.0, -1000.0


def uniform(bits: Bits, shape: tuple[int, ...]) -> Floats:
    """(k + 1/2) 2**-53 for uniform k: never 0 or 1."""
    numbers = words(bits, math.prod(shape), np.uint64) >> np.uint64(11)
    uniform: Floats = (numbers.astype(np.float64) + 0.5) * 2.0**-53
    return uniform.reshape(shape)


def exponential(bits: Bits, scale: float, shape: tuple[int, ...]) -> Floats:
    """By inversion."""
    noise: Floats = -scale * np.log(uniform(bits, shape))
    return noise


def laplace(bits: Bits, scale: float, shape: tuple[int, ...]) -> Floats:
    """By inversion, as libraries do: the two halves of the uniform are the two signs."""
    u = uniform(bits, shape)
    noise: Floats = scale * np.log(2 * np.minimum(u, 1 - u))
    return np.where(u < 0.5, noise, -noise)


def two_sided(bits: Bits, scale: float, size: int) -> Floats:
    """Laplace noise from a sign and an exponential: half the time of the inversion."""
    numbers = words(bits, size, np.uint64)
    noise = (numbers >> np.uint64(11)).astype(np.float64)
    noise += 0.5
    noise *= 2.0**-53
    np.log(noise, out=noise)
    noise *= scale
    signs = (numbers << np.uint64(63)).view(np.float64)
    return np.copysign(noise, signs, out=noise)


def vector(value: Any) -> Floats:
    """An input as a vector; a number as one of length 1."""
    return np.atleast_1d(np.asarray(value, dtype=np.float64))


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector:
    """Which queries lie above a noisy threshold, as in Lyu, Su, Li 2017.

    A scale of 0 means no noise; `most` answers above end the run, None never does.
    """

    threshold_scale: float
    query_scale: float
    threshold: float = 1.0
    most: int | None = 1
    fresh: bool = False  # a new noisy threshold after each answer above
    numeric: bool = False  # the noisy query that was compared is published
    answer_scale: float = 0.0  # an answer above is published with new noise of this scale

    def __call__(self, value: Any, size: int, bits: Bits) -> Floats:
        x = vector(value)
        ended = _ABORTED if self.numeric or self.answer_scale else -1.0
        result = np.full((len(x), size), ended)
        running, seen = np.arange(size), np.zeros(size, dtype=np.int64)
        limit = self._limit(size, bits)
        for query, column in zip(x.tolist(), result, strict=True):
            noisy = query + two_sided(bits, self.query_scale, len(running))
            above = noisy >= limit
            column[running] = self._answers(query, noisy, above, bits)
            if self.fresh:
                limit = np.where(above, self._limit(len(running), bits), limit)
            if self.most is not None:
                seen = seen + above
                left = seen < self.most
                running, seen, limit = running[left], seen[left], limit[left]
        return result.T

    def _limit(self, size: int, bits: Bits) -> Floats:
        return self.threshold + two_sided(bits, self.threshold_scale, size)

    def _answers(self, query: float, noisy: Floats, above: NDArray[np.bool_], bits: Bits) -> Floats:
        """What is published where the run has not ended."""
        answers = noisy if self.numeric else np.ones(len(noisy))
        if self.answer_scale:
            answers[above] = query + two_sided(bits, self.answer_scale, int(above.sum()))
        return np.where(above, answers, _BELOW if self.numeric else 0.0)
