"""Discrete Gaussian noise, also in vectors, is dominated by a pair of Gaussians."""

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest
from flint import arb

import lastbit as lb
from lastbit.errors import InvalidParameter
from lastbit.exact import arb_of, ends, working_precision
from lastbit.laws import DiscreteGaussian
from lastbit.privacy import (
    ADD_REMOVE,
    ApproxDP,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    GaussianLoss,
    best_composition,
    calibrated,
)
from lastbit.privacy.gaussian_pair import step_mu_squared
from tests.privacy.accounting.test_domination import hockey_stick, shifted_pairs

BARELY = Fraction("1/3") + Fraction(1, 10**40)
VARIANCES = [Fraction(n) for n in ("1/3", "2/5", "1/2", "1", "7/3", "4", "25", "400")]


def tail(t: arb) -> arb:
    """The upper tail of N(0, 1)."""
    return (t / arb(2).sqrt()).erfc() / 2


def quantile_below(mass: arb) -> Fraction:
    """A number not above the t with this upper tail, and close to it."""
    low, high = Fraction(-64), Fraction(64)
    for _ in range(110):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(arb_of(middle)) > mass else (low, middle)
    return low


def steps_are_within(variance: Fraction, mu_squared: Fraction, far: int) -> bool:
    """Whether T(t_k + mu) <= Q(k+1) for all k from the middle to so many deviations."""
    law = DiscreteGaussian(variance)
    last = math.ceil(far * math.sqrt(variance))
    with working_precision(2 * far * far + 200):
        mu = arb_of(mu_squared).sqrt()
        for k in {*range(min(last, 40)), *range(40, last, max(last // 20, 1))}:
            here, following = law.cumulative(-k), law.cumulative(-k - 1)  # P[X >= k], symmetric
            if not tail(arb_of(quantile_below(here)) + mu) <= following:
                return False
    return True


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_no_step_is_longer_than_mu(variance):
    assert steps_are_within(variance, step_mu_squared(variance), 12)


@pytest.mark.parametrize(
    ("variance", "crumb"), [("1", "7/1000"), ("4", "4/10000"), ("25", "1/100000")]
)
def test_a_slightly_smaller_mu_is_too_small(variance, crumb):
    """Mutants: nearly the same mu, and that of continuous noise."""
    spread = Fraction(variance)
    smaller = step_mu_squared(spread) * (1 - Fraction(crumb))
    assert not steps_are_within(spread, smaller, 1)
    assert not steps_are_within(spread, 1 / spread, 1)


@pytest.mark.parametrize(
    "variance", [*VARIANCES, Fraction(10**30), Fraction("1/3") + Fraction(1, 10**40)]
)
def test_the_inequality_is_met_and_nearly_an_equality(variance):
    x = step_mu_squared(variance)
    assert x * (1 - x / 12) >= 1 / variance and x <= 12
    less = x * (1 - Fraction(1, 2**60))
    assert less * (1 - less / 12) < 1 / variance or variance < Fraction("0.34")
    assert x.numerator.bit_length() <= 66


def test_masses_of_intervals_are_as_log_concave_as_the_proof_says():
    """Second differences of ln w, w(y) the mass of [y, y + m], are at most -x (1 - x/12)."""
    with working_precision(400):
        for x in (Fraction(1, 50), Fraction(1), Fraction(3), Fraction(6)):
            m = arb_of(x).sqrt()
            for place in range(-30, 31):
                y = arb_of(Fraction(place, 5))
                left, here, right = (
                    (tail(y + j * m) - tail(y + (j + 1) * m)).log() for j in (-1, 0, 1)
                )
                assert left - 2 * here + right <= -arb_of(x * (1 - x / 12))


@pytest.mark.parametrize("variance", ["1/2", "1", "3"])
@pytest.mark.parametrize("moves", [(1, 1), (2, 1), (2, 2), (1, 1, 1)])
def test_vectors_are_dominated(variance, moves):
    """All outcomes of two and three coordinates, against the pair; tails merged: a lower bound."""
    law, squared = DiscreteGaussian(variance), sum(d * d for d in moves)
    reach = math.ceil((12 if len(moves) == 2 else 6) * math.sqrt(Fraction(variance)))
    pair = DiscreteGaussianVectorLoss(variance, squared).profile
    naive = GaussianLoss(squared / Fraction(variance)).profile
    with working_precision(160):
        factors = [shifted_pairs(law, d, reach) for d in moves]
        joint = [
            (math.prod((p for p, _ in o), start=arb(1)), math.prod((q for _, q in o), start=arb(1)))
            for o in itertools.product(*factors)
        ]
        exact = {x: hockey_stick(joint, x) for x in map(Fraction, ("0", "1/2", "1", "3/2", "3"))}
        for x, found in exact.items():
            assert found.lower() <= arb(pair.delta(x)[1])
    assert any(found.lower() > arb(naive.delta(x)[1]) for x, found in exact.items())  # the mutant


@pytest.mark.parametrize("distance", [1, 2, 5])
@pytest.mark.parametrize("variance", ["2/5", "4", "100"])
def test_one_coordinate_is_dominated_too(variance, distance):
    one = DiscreteGaussianLoss(variance, distance).profile
    pair = GaussianLoss(distance**2 * step_mu_squared(Fraction(variance))).profile
    for n in range(0, 60, 7):
        assert one.delta(Fraction(n, 10))[0] <= pair.delta(Fraction(n, 10))[1]
    many = (100 * one).epsilon("1e-6")
    assert (
        many[0]
        <= (100 * pair).epsilon("1e-6")[1]
        <= many[1] * (1 + 1 / (2 * float(Fraction(variance))))
    )


def test_one_step_is_exact():
    loss = DiscreteGaussianVectorLoss("1/10", 1, neighbours=ADD_REMOVE)
    assert loss.directions() == DiscreteGaussianLoss("1/10", 1).directions()
    assert DiscreteGaussianVectorLoss(5, 0).profile.delta(0) == (0.0, 0.0)


def test_too_little_noise_is_refused():
    with pytest.raises(InvalidParameter, match="ZCDP"):
        DiscreteGaussianVectorLoss("0.33", 2)


# ---------------------------------------------------------------- mechanisms


def test_vectors_have_a_loss_and_compose():
    vector = lb.Gaussian(sensitivity=3, variance=900, dimension=50)
    assert vector.loss == DiscreteGaussianVectorLoss(900, 9)
    tight = (100 * vector.loss).epsilon("1e-6")[1]
    concentrated = best_composition([vector.guarantee] * 100, "1e-6").epsilon
    assert 0.85 * concentrated < tight < 0.95 * concentrated
    assert vector.delta("1/2") <= DiscreteGaussianVectorLoss(900, 9).profile.delta("1/2")[1]
    floats = lb.Gaussian(sensitivity="1.5", standard_deviation=4, grid="1/1024", dimension=3)
    assert isinstance(floats.loss, DiscreteGaussianVectorLoss)
    assert floats.loss.distance_squared == (1536 + 2) ** 2


def test_vectors_need_less_noise_than_through_concentrated_privacy():
    target: dict[str, Any] = {"sensitivity": 2, "epsilon": 1, "delta": "1e-6", "dimension": 10}
    best, concentrated = lb.Gaussian(**target), lb.Gaussian(**target, method="zcdp")
    assert (best.method, concentrated.method) == ("gdp", "zcdp")
    assert best.variance < Fraction("0.9") * concentrated.variance
    assert best.delta(1) <= 1e-6 and best.guarantee == ApproxDP(1, "1e-6")
    one = lb.Gaussian(sensitivity=2, epsilon=1, delta="1e-6")
    assert one.variance < best.variance < one.variance * Fraction("1.01")
    # next to no noise: no pair is proved there
    assert lb.Gaussian(sensitivity=1, epsilon=60, delta="1e-6", dimension=2).delta(60) <= 1e-6


def test_calibration_of_vectors():
    found = calibrated(
        DiscreteGaussianVectorLoss, epsilon=1, delta="1e-6", releases=10, distance_squared=5
    )
    assert (10 * found).delta(1)[1] <= 1e-6 and found.distance_squared == 5
    less = DiscreteGaussianVectorLoss(found.variance * (1 - Fraction(1, 2**20)), 5)
    assert (10 * less).delta(1)[0] > 1e-6
    plenty = calibrated(DiscreteGaussianVectorLoss, epsilon=100, delta="1e-1", distance_squared=2)
    assert Fraction(1, 3) <= plenty.variance < Fraction("0.334")
    with pytest.raises(InvalidParameter, match="distance_squared is 0"):
        calibrated(DiscreteGaussianVectorLoss, epsilon=1, delta="1e-6", distance_squared=0)


def test_the_checker_takes_its_concentrated_privacy():
    from lastbit.checker import composition as checker

    bound = checker._checked(dict(DiscreteGaussianVectorLoss("5/2", 3).to_dict()), Fraction(2))
    assert bound.moment == Fraction(3, 5) * 6
    with working_precision(200):
        pair = ends(arb_of(3 * step_mu_squared(Fraction(5, 2)) / 2))[0]
    assert bound.moment <= 6 * pair
