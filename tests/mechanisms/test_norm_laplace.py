"""Laplace noise by a norm: the loss of every pair near 0, rounding, and what is refused."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from lastbit.audit.replay.distance import MechanismRule
from lastbit.errors import LastbitError
from lastbit.laws.norms import Norm
from lastbit.mechanisms import NormLaplace
from lastbit.privacy import PureDP
from tests.laws.oracle import decimals, exp
from tests.mechanisms.divergence import mass

BOTH: tuple[Norm, Norm] = ("L2", "Linf")


def _worst(mechanism: NormLaplace, moved: tuple[int, int, int]) -> Decimal:
    with decimals():
        here, there = mechanism.law([0, 0, 0]), mechanism.law(list(moved))
        points = product(range(-2, 4), repeat=3)
        return max(mass(here, point) / mass(there, point) for point in points)


@pytest.mark.parametrize("norm", BOTH)
def test_the_loss_of_pairs(norm: Norm) -> None:
    """exp(epsilon) is attained within the norm's ball and exceeded beyond it."""
    mechanism = NormLaplace(sensitivity=2, epsilon="1/2", norm=norm, dimension=3)
    with decimals():
        bound = exp(Fraction(1, 2)) * (1 + Decimal("1e-30"))
        for moved in ((2, 0, 0), (0, -2, 0), (1, 1, 1)):
            assert _worst(mechanism, moved) <= bound
        assert _worst(mechanism, (2, 0, 0)) >= exp(Fraction(1, 2)) * (1 - Decimal("1e-30"))
        corner = _worst(mechanism, (2, 2, 2))
        assert (corner <= bound) == (norm == "Linf")
        less = NormLaplace(sensitivity=2, scale="3.996", norm=norm, dimension=3)
        assert _worst(less, (2, 0, 0)) > bound


@pytest.mark.parametrize("norm", BOTH)
def test_floats_count_their_rounding(norm: Norm) -> None:
    """Inputs 1/2 apart may lie three steps of 1/4 apart in every coordinate."""
    mechanism = NormLaplace(sensitivity="1/2", epsilon=1, norm=norm, dimension=3, grid="1/4")
    assert mechanism.guarantee == PureDP(1)
    far = [0.125 + 2**-40, 0.625 - 2**-40]  # 1/4 and 1/2: one step
    assert mechanism.law([far[0]] * 3).centre == (1, 1, 1)
    assert mechanism.law([far[1]] * 3).centre == (2, 2, 2)
    steps = 3 if norm == "Linf" else 2 + 2  # 2 and the root of 3, rounded up
    assert mechanism.scale == Fraction(steps, 4)
    released = mechanism.release([0.3, -1.5, 2])
    assert released.dtype == np.float64 and (released * 4 == np.rint(released * 4)).all()


def test_fine_grids() -> None:
    for norm in BOTH:
        for epsilon in ("1/1000", 1, 30):
            noise = NormLaplace(
                sensitivity="0.1", epsilon=epsilon, norm=norm, dimension=16, grid="auto"
            )
            assert noise.guarantee == PureDP(epsilon)
            assert noise.scale < Fraction("0.1") / Fraction(epsilon) * Fraction(102, 100)


@pytest.mark.parametrize("norm", BOTH)
def test_accuracy_and_beta(norm: Norm) -> None:
    mechanism = NormLaplace(sensitivity=1, epsilon="1/2", norm=norm, dimension=4, grid="1/8")
    error = mechanism.accuracy("0.05")
    assert mechanism.beta(error) <= 0.05 < mechanism.beta(error * Fraction(9, 10))
    draws = np.array([mechanism.release([0.0] * 4) for _ in range(300)])
    sizes = np.abs(draws).max(axis=1) if norm == "Linf" else np.sqrt((draws**2).sum(axis=1))
    assert (sizes > float(error)).sum() < 75  # expected 15: fails with probability below 1e-25
    assert mechanism.beta(0) == 1.0


def test_replays_know_the_norm() -> None:
    rule = MechanismRule(mechanism=NormLaplace(sensitivity=1, epsilon=1, norm="Linf", dimension=3))
    assert not rule.observed([0, 0, 0], [1, -1, 1]).beyond
    assert rule.observed([0, 0, 0], [2, 0, 0]).beyond


def test_pickles() -> None:
    mechanism = NormLaplace(sensitivity=1, epsilon=1, norm="L2", dimension=3)
    mechanism.release([1, 2, 3])
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (dict(sensitivity=0, epsilon=1), "sensitivity"),
        (dict(sensitivity=math.inf, epsilon=1), "sensitivity"),
        (dict(sensitivity=1, epsilon=math.nan), "epsilon"),
        (dict(sensitivity=1, epsilon=1, scale=1), "exactly one"),
        (dict(sensitivity=1), "exactly one"),
        (dict(sensitivity="1/2", epsilon=1), "below 1"),
        (dict(sensitivity=1, epsilon=1, dimension=17), "above 16"),
        (dict(sensitivity=1, epsilon=1, norm="L1"), "norm is unknown"),
        (dict(sensitivity=1, epsilon="1e-7"), "finer than"),
        (dict(sensitivity=1, epsilon=1, grid=3), "power of two"),
        (dict(sensitivity=1, epsilon=1, neighbours="x"), "neighbours"),
    ],
)
def test_bad_parameters(parameters: dict, words: str) -> None:
    with pytest.raises(LastbitError, match=words):
        NormLaplace(**{"norm": "L2", "dimension": 3, **parameters})


def test_bad_values() -> None:
    mechanism = NormLaplace(sensitivity=1, epsilon=1, norm="Linf", dimension=3)
    floats = NormLaplace(sensitivity=1, epsilon=1, norm="Linf", dimension=3, grid="auto")
    for value in (1, [1, 2], [1, 2, 3, 4], [[1, 2, 3]], [1.5, 2, 3], None, "abc", [1, 2, 2**61]):
        with pytest.raises(LastbitError):
            mechanism.release(value)
    for wrong in ([math.nan, 0, 0], [math.inf, 0, 0], [1e300, 0, 0]):
        with pytest.raises(LastbitError):
            floats.release(wrong)
