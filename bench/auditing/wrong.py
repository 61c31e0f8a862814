"""Seventeen mechanisms with one small mistake each, as they are made in practice: not for use.

Each claims an epsilon that its formula would have if the mistake were not there. What `cells` says
of them is the law with the mistake, so that the runs which a conviction needs can be told.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.inputs import all_may_move, one_may_move
from lastbit.exact import Ball, upper
from lastbit.sampling import Bits

from .benchmarks import (
    Benchmark,
    additive,
    additive_cells,
    gridded,
    last_bits,
    made,
    maximum_cells,
    noisy_argmax,
    noisy_maximum,
    published_cells,
    threshold_only_cells,
    thresholded,
)
from .noise import Floats, SparseVector, laplace, uniform, vector
from .optimum import Cells, largest, of_cdfs, of_laws, place_of_largest

ONE, LN_3 = Fraction(1), Fraction(upper(Ball.of(3).log()))
_COIN = 0.76  # for 3/4
_CLASSICAL, _CLASSICAL_DELTA = Fraction(8), Fraction(1, 10)
_DEVIATION = math.sqrt(2 * math.log(1.25 / float(_CLASSICAL_DELTA))) / float(_CLASSICAL)
_CUT = 4.0


# ---------------------------------------------------------------- noise on a number


def _gaussian(value: Any, size: int, bits: Bits) -> Floats:
    """The classical formula, sqrt(2 ln(1.25/delta)) / epsilon, beyond epsilon = 1."""
    radius = np.sqrt(-2 * np.log(uniform(bits, (size,))))
    noise = radius * np.cos(2 * np.pi * uniform(bits, (size,)))
    outputs: Floats = vector(value)[0] + _DEVIATION * noise
    return outputs


def _gaussian_cells(x: Any, y: Any) -> Cells:
    def cdf(centre: float) -> Any:
        return np.vectorize(lambda t: 0.5 * math.erfc((centre - t) / (_DEVIATION * math.sqrt(2))))

    return of_cdfs(cdf(vector(x)[0]), cdf(vector(y)[0]), np.linspace(-4, 5, 4000))


def _geometric(size: int, bits: Bits) -> NDArray[np.int64]:
    """Whole numbers from 0, each e times rarer than the one before."""
    return np.floor(-np.log(uniform(bits, (size,)))).astype(np.int64)


def _signed(value: Any, size: int, bits: Bits, *, least: int) -> NDArray[np.int64]:
    """A sign and a size: from 0, which then has two signs, or from 1, and 0 is missing."""
    signs = np.where(uniform(bits, (size,)) < 0.5, -1, 1)
    return int(vector(value)[0]) + signs * (least + _geometric(size, bits))


def _signed_cells(x: Any, y: Any, *, least: int) -> Cells:
    def law(value: int) -> dict[int, float]:
        found: dict[int, float] = {}
        for k in range(60):
            for output in (value + least + k, value - least - k):
                share = math.exp(-k) * -math.expm1(-1) / 2
                found[output] = found.get(output, 0.0) + share
        return found

    return of_laws(law(int(vector(x)[0])), law(int(vector(y)[0])))


def _redrawn(value: Any, size: int, bits: Bits) -> Floats:
    """A count may not be negative, so noise is drawn until it is not."""
    outputs: Floats = vector(value)[0] + laplace(bits, 1.0, (size,))
    while (negative := outputs < 0).any():
        outputs[negative] = vector(value)[0] + laplace(bits, 1.0, (int(negative.sum()),))
    return outputs


def _redrawn_cells(x: Any, y: Any) -> Cells:
    def cdf(centre: float) -> Any:
        below = 0.5 * math.exp(-centre)

        def found(t: Any) -> Any:
            tail = 0.5 * np.exp(-np.abs(t - centre))
            return (np.where(t < centre, tail, 1 - tail) - below) / (1 - below)

        return found

    return of_cdfs(cdf(vector(x)[0]), cdf(vector(y)[0]), np.linspace(0, 30, 6001))


def _cut(value: Any, size: int, bits: Bits) -> Floats:
    """Noise above four scales is an outlier, and is cut off."""
    outputs: Floats = vector(value)[0] + np.minimum(laplace(bits, 1.0, (size,)), _CUT)
    return outputs


def _cut_cells(x: Any, y: Any) -> Cells:
    """The end itself, which no other input has; all below it as without the cut."""
    end = 0.5 * math.exp(-_CUT)
    return np.array([[end, 0.0, 1 - end], [0.0, end, 1 - end]])


# ---------------------------------------------------------------- several numbers


def _reused(value: Any, size: int, bits: Bits) -> Floats:
    """One draw for all the counts: their differences are exact."""
    outputs: Floats = vector(value) + np.rint(laplace(bits, 1.0, (size, 1)) * 2**20) / 2**20
    return outputs


def _told(x: Any, y: Any) -> Cells:
    return np.eye(2)


def _coin(value: Any, size: int, bits: Bits) -> NDArray[np.int64]:
    truth = int(vector(value)[0])
    return np.where(uniform(bits, (size,)) < _COIN, truth, 1 - truth)


def _coin_cells(x: Any, y: Any) -> Cells:
    return np.array([[_COIN, 1 - _COIN], [1 - _COIN, _COIN]])


def _weights(scores: Any) -> Floats:
    """exp(epsilon score) where exp(epsilon score / 2) is private."""
    weights = np.exp(vector(scores) - vector(scores).max())
    found: Floats = weights / weights.sum()
    return found


def _chosen(value: Any, size: int, bits: Bits) -> NDArray[np.int64]:
    return np.searchsorted(np.cumsum(_weights(value))[:-1], uniform(bits, (size,)))


def _chosen_cells(x: Any, y: Any) -> Cells:
    return np.array([_weights(x), _weights(y)])


# ---------------------------------------------------------------- the list


def wrong_mechanisms() -> tuple[Benchmark, ...]:
    """All seventeen; every claim is false."""
    return (*_numbers(), *_vectors(), *_sparse_vectors())


def _numbers() -> list[Benchmark]:
    one, zero = one_may_move(1), [(0.0, 1.0)]
    narrow, exactly = partial(additive, scale=0.99), partial(additive, scale=1.0)
    narrow_cells = partial(additive_cells, scale=0.99)
    bits = partial(last_bits, scale=1.0)
    claim = partial(made, epsilon=ONE)
    return [
        claim("scale 0.99 for 1", "a constant", gridded(narrow), one, narrow_cells),
        claim("float Laplace", "Mironov 2012", exactly, one, bits, math.inf),
        claim("geometric, 0 twice", "a sign for 0", partial(_signed, least=0), zero,
              partial(_signed_cells, least=0)),
        claim("geometric, no 0", "sizes from 1", partial(_signed, least=1), zero,
              partial(_signed_cells, least=1), math.inf),
        claim("redrawn until positive", "a loop", gridded(_redrawn), zero, _redrawn_cells),
        claim("noise cut on one side", "an outlier", gridded(_cut), zero, _cut_cells, math.inf),
        made("Gaussian, classical", "Dwork, Roth 2014", gridded(_gaussian), zero, _gaussian_cells,
             epsilon=_CLASSICAL, delta=_CLASSICAL_DELTA),
        made("coin of 0.76 for 0.75", "a constant", _coin, [(0, 1)], _coin_cells, epsilon=LN_3),
    ]  # fmt: skip


def _vectors() -> list[Benchmark]:
    counts = np.ones(5)
    moved = counts + np.array([-1.0, 1.0, 0.0, 0.0, 0.0])  # somebody else: two bins change
    skewed = np.array([0.0, 3.0, 3.0, 3.0, 3.0])
    nearer = skewed + np.array([1.0, -1.0, -1.0, -1.0, -1.0])
    low, all_of_five = [(skewed, nearer)], all_may_move(5)
    exactly, exact_cells = gridded(partial(additive, scale=1.0)), partial(additive_cells, scale=1.0)
    value = gridded(partial(noisy_maximum, scale=2.0))
    place = partial(noisy_argmax, scale=1.0)
    of_value, of_place = (
        partial(maximum_cells, of=of, scale=scale)
        for of, scale in ((largest, 2.0), (place_of_largest, 1.0))
    )
    claim = partial(made, epsilon=ONE)
    return [
        claim("sensitivity 1 for 2", "a replaced row", exactly, [(counts, moved)], exact_cells),
        claim("noise reused", "one draw", _reused, one_may_move(2), _told, math.inf),
        claim("maximum published", "Ding et al. 2018", value, all_of_five, of_value),
        claim("half noise for the maximum", "2 forgotten", place, low, of_place),
        claim("exponential, no 2", "2 forgotten", _chosen, all_of_five, _chosen_cells),
    ]


def _sparse_vectors() -> list[Benchmark]:
    """The wrong ones of Lyu, Su, Li 2017, by their numbers there, at epsilon 1."""
    pairs, lyu = all_may_move(10), "Lyu, Su, Li 2017"
    third = SparseVector(threshold_scale=2.0, query_scale=2.0, numeric=True)
    fourth = SparseVector(threshold_scale=4.0, query_scale=4 / 3)
    fifth = SparseVector(threshold_scale=2.0, query_scale=0.0, most=None)
    sixth = SparseVector(threshold_scale=2.0, query_scale=2.0, most=None)
    claim = partial(made, epsilon=ONE)
    return [
        claim("sparse vector 3", lyu, gridded(third), pairs, partial(published_cells, of=third)),
        claim("sparse vector 4", lyu, fourth, pairs, thresholded(4, Fraction(4, 3))[1]),
        claim("sparse vector 5", lyu, fifth, pairs, partial(threshold_only_cells, scale=2.0)),
        claim("sparse vector 6", lyu, sixth, pairs, thresholded(2, 2, most=None)[1]),
    ]
