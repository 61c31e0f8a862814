"""Gaussian noise with a variance for each coordinate: the joint bound, by the exact laws."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.audit.replay.distance import MechanismRule
from lastbit.checker import problem_of
from lastbit.errors import LastbitError
from lastbit.exact import upper
from lastbit.mechanisms import Gaussian
from lastbit.privacy import ZCDP, GaussianLoss
from lastbit.sampling.gaussian_tables import gaussian_sampler
from lastbit.verify import composition_certificate
from tests.laws.oracle import decimal, decimals
from tests.mechanisms.divergence import mass


def _renyi(mechanism: Gaussian, moved: tuple[int, ...], alpha: int) -> Decimal:
    """The divergence of the vectors' laws: that of independent coordinates adds up."""
    with decimals():
        total = Decimal(0)
        for j, far in enumerate(moved):
            p, q = (mechanism.law(x, coordinate=j) for x in (0, far))
            powers = (mass(p, x) ** alpha * mass(q, x) ** (1 - alpha) for x in range(-150, 151))
            total += sum(powers, Decimal(0)).ln() / (alpha - 1)
        return total


@pytest.mark.parametrize("alpha", [2, 9])
def test_the_joint_bound_holds_and_is_attained(alpha: int) -> None:
    """Every order by the laws; noise that is 1 % too small in one coordinate is noticed."""
    mechanism = Gaussian(sensitivity=[1, 5], variance=[4, 100])
    assert mechanism.guarantee == ZCDP(Fraction(1, 8) + Fraction(25, 200))
    for moved in product((-1, 0, 1), (-5, 0, 3, 5)):
        rho = Fraction(mechanism.guarantee_at([abs(far) for far in moved]).rho)
        bound = decimal(alpha * rho)
        assert _renyi(mechanism, moved, alpha) <= bound * (1 + Decimal(10) ** -40)
    less = Gaussian(sensitivity=[1, 5], variance=[4, 99])
    assert _renyi(less, (1, 5), alpha) > decimal(alpha * Fraction(1, 4))


def _hockey(mechanism: Gaussian, moved: tuple[int, int], epsilon: float) -> float:
    """delta of a pair of inputs over the plane, in floats."""
    joint = [np.ones((1, 1)), np.ones((1, 1))]
    for j, (far, most) in enumerate(zip(moved, (25, 60), strict=True)):
        for side, at in enumerate((0, far)):
            law = mechanism.law(at, coordinate=j)
            masses = np.array([upper(law.probability(x)) for x in range(-most, most + 1)])
            joint[side] = np.outer(joint[side].ravel(), masses)
    return float(np.maximum(joint[0] - math.exp(epsilon) * joint[1], 0).sum())


@pytest.mark.parametrize("epsilon", [0.25, 1.0])
def test_delta_covers_the_plane(epsilon: float) -> None:
    """The Gaussian pair is above every pair of inputs, and near the worst one."""
    mechanism = Gaussian(sensitivity=[1, 3], variance=[9, 100])
    delta = mechanism.delta(epsilon)
    worst = max(_hockey(mechanism, moved, epsilon) for moved in ((1, 3), (1, -3), (1, 0), (0, 3)))
    assert worst <= delta <= worst * 1.03
    assert mechanism.delta(epsilon, distance=[1, 0]) < delta
    small = Gaussian(sensitivity=[1, 3], variance=[9, 95])
    assert _hockey(small, (1, 3), epsilon) > delta


NUMBERS = st.fractions(min_value="1/3", max_value=50, max_denominator=9)


@given(st.lists(st.tuples(st.integers(0, 9), NUMBERS), min_size=1, max_size=5))
def test_the_sum_is_exact(parts: list[tuple[int, Fraction]]) -> None:
    apart, noise = [far for far, _ in parts], [variance for _, variance in parts]
    if not any(apart):
        with pytest.raises(LastbitError, match="sensitivity"):
            Gaussian(sensitivity=apart, variance=noise)
        return
    mechanism = Gaussian(sensitivity=apart, variance=noise)
    rho = sum((Fraction(far**2) / (2 * v) for far, v in parts), Fraction(0))
    assert mechanism.guarantee == ZCDP(rho)
    # what one number says of it never promises more
    assert mechanism.guarantee_at(mechanism.sensitivity).rho >= rho
    equal = Gaussian(sensitivity=apart, variance=[noise[0]] * len(noise))
    plain = Gaussian(sensitivity=equal.sensitivity, variance=noise[0], dimension=len(noise))
    ours, theirs = (one.guarantee_at(one.sensitivity).rho for one in (equal, plain))
    assert ours == theirs


def test_an_l2_distance_pays_for_the_least_noise() -> None:
    mechanism = Gaussian(sensitivity=3, variance=[4, 400])
    assert mechanism.guarantee == ZCDP(Fraction(9, 8))
    assert mechanism.loss == Gaussian(sensitivity=3, variance=4, dimension=2).loss


def test_floats_count_their_rounding() -> None:
    mechanism = Gaussian(sensitivity=["1/2", 0], variance=[4, 1], grid="1/4")
    assert mechanism.guarantee == ZCDP(Fraction(9, 16) / 8)  # three steps of 1/4; equal ones stay
    assert mechanism.release([0.3, 1.5]).dtype == np.float64
    assert mechanism.accuracy("1/20", coordinate=0) > mechanism.accuracy("1/20", coordinate=1)


def test_each_coordinate_has_its_own_noise() -> None:
    """Deviations 1 and 100: P[|X| > 4] is 1.5e-5 and 0.964, so 400 draws tell them apart."""
    mechanism = Gaussian(sensitivity=[1, 1], variance=[1, 10000])
    draws = np.array([mechanism.release([0, 0]) for _ in range(400)])
    assert (np.abs(draws[:, 0]) > 30).sum() == 0  # fails with probability below 1e-90
    assert (np.abs(draws[:, 1]) > 30).sum() > 100  # expected 305; below 1e-60
    assert gaussian_sampler(Fraction(1)) is not gaussian_sampler(Fraction(10000))
    assert mechanism.release((1, 2)).shape == (2,)
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism and again.release([0, 0]).shape == (2,)


def test_the_loss_has_a_certificate() -> None:
    mechanism = Gaussian(sensitivity=[1, 10], variance=[4, 400])
    loss = mechanism.loss
    assert isinstance(loss, GaussianLoss)
    # at least Theorem 14's mu**2, and by no more than its lattice costs
    assert Fraction(1, 2) < loss.mu_squared < Fraction(1, 2) * Fraction(102, 100)
    certificate = composition_certificate(10 * loss, delta="1e-6")
    assert problem_of(certificate) is None
    epsilon = Fraction(certificate["claim"]["epsilon"])
    assert (10 * loss).epsilon("1e-6")[0] <= epsilon < 15
    with pytest.raises(LastbitError, match="no pair of Gaussians"):
        _ = Gaussian(sensitivity=[2, 1], variance=["1/4", 9]).loss
    assert Gaussian(sensitivity=[2, 1], variance=["1/4", 9]).delta(40) < 1


def test_replays_measure_coordinate_by_coordinate() -> None:
    """5 in the first coordinate is within the L2 norm of the list, and beyond its own bound."""
    rule = MechanismRule(mechanism=Gaussian(sensitivity=[1, 10], variance=[4, 400]))
    inside, beyond = rule.observed([0, 0], [1, -10]), rule.observed([0, 0], [5, 0])
    assert not inside.beyond and beyond.beyond
    assert rule.observed([0, 0], [0, 0]).distance == 0
    assert rule.observed([0, 0], [0, 0, 0]).beyond


def test_no_noise_costs_infinity_where_something_moves() -> None:
    quiet = Gaussian(sensitivity=[1, 0], variance=[4, 0])
    assert quiet.guarantee == ZCDP(Fraction(1, 8))
    assert quiet.guarantee_at([1, 1]) == ZCDP(math.inf)
    with pytest.raises(LastbitError, match="publish the value itself"):
        quiet.release([1, 1])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (dict(sensitivity=[1, 2], rho=1), "L2 norm"),
        (dict(sensitivity=[1, 2], epsilon=1, delta="1e-6"), "L2 norm"),
        (dict(sensitivity=[1, 2], variance=[1, 2, 3]), "one for each coordinate"),
        (dict(sensitivity=[1, 2, 3], variance=[1, 2]), "one for each coordinate"),
        (dict(sensitivity=[], variance=[]), "list of numbers"),
        (dict(sensitivity=[1] * 65537, variance=1), "more than 65536 numbers"),
        (dict(sensitivity=[0, 0], variance=[1, 1]), "sensitivity is zero"),
        (dict(sensitivity=[1, -1], variance=[1, 1]), "sensitivity is negative"),
        (dict(sensitivity=[1, 1], variance=[1, -1]), "variance is negative"),
        (dict(sensitivity=[1, 1], standard_deviation=[1, math.nan]), "standard_deviation"),
        (dict(sensitivity=[1, math.inf], variance=1), "sensitivity"),
        (dict(sensitivity=[1, "1/2"], variance=1), "below 1"),
        (dict(sensitivity=np.ones((2, 2)), variance=1), "list of numbers"),
        (dict(sensitivity=np.array(1), variance=[1, 2]), "sensitivity"),
        (dict(sensitivity=1, variance=np.array(1)), "variance"),
        (dict(sensitivity=1, standard_deviation=np.array(1.0)), "standard_deviation"),
        (dict(sensitivity=[1, [1]], variance=1), "sensitivity"),
        (dict(sensitivity=[1, True], variance=1), "sensitivity"),
        (dict(sensitivity=[1, 1], variance=1, dimension=3), "dimension"),
    ],
)
def test_bad_lists(parameters: dict, words: str) -> None:
    with pytest.raises(LastbitError, match=words):
        Gaussian(**parameters)


def test_bad_values() -> None:
    mechanism = Gaussian(sensitivity=[1, 1], variance=[1, 4])
    for value in (1, [1], [1, 2, 3], [[1, 2]], [1.5, 2], None, "12", [True, 1]):
        with pytest.raises(LastbitError):
            mechanism.release(value)
    wrong: list[Any] = [None, 2, -1, 0.5, "0", True]
    for coordinate in wrong:
        with pytest.raises(LastbitError, match="coordinate"):
            mechanism.law(0, coordinate=coordinate)
    distances: list[Any] = [[1], [1, 2, 3], [1, -1], [math.nan, 1], np.array(1)]
    for distance in distances:
        with pytest.raises(LastbitError, match="distance"):
            mechanism.guarantee_at(distance)
