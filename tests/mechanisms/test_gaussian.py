"""The Gaussian mechanism: exact curve, calibration, paper 001's edge cases."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from lastbit.errors import LastbitError
from lastbit.laws.discrete import DiscreteGaussian
from lastbit.laws.transformed import Shifted
from lastbit.mechanisms.gaussian import Gaussian, discrete_gaussian_delta
from lastbit.privacy.guarantees import ZCDP, ApproxDP
from tests.laws.oracle import decimal, decimals, exp
from tests.mechanisms.divergence import hockey_stick, mass


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(1), Fraction(9, 2), Fraction(25)])
@pytest.mark.parametrize("distance", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(2)])
def test_the_curve_is_the_hockey_stick(
    variance: Fraction, distance: int, epsilon: Fraction
) -> None:
    """CKS20 Theorem 7 against the plain sum over all outputs, rounded up by a hair."""
    p, q = DiscreteGaussian(variance), Shifted(DiscreteGaussian(variance), -distance)
    exact = hockey_stick(p, q, epsilon, range(-90, 91))
    curve = Decimal(discrete_gaussian_delta(epsilon, variance=variance, distance=distance))
    assert exact <= curve + Decimal(10) ** -60
    assert curve <= exact * (1 + Decimal(2) ** -50) + Decimal(10) ** -70


def test_the_curve_grows_with_the_distance() -> None:
    for epsilon in (Fraction(1, 2), Fraction(2)):
        deltas = [
            discrete_gaussian_delta(epsilon, variance=Fraction(10), distance=d) for d in range(40)
        ]
        assert deltas == sorted(deltas)


def test_both_ways_of_summing_the_curve() -> None:
    """Distances below and above 64 take different routes to the same number."""
    for d in (63, 64, 65, 200):
        deltas = [
            discrete_gaussian_delta(Fraction(1), variance=Fraction(v), distance=d)
            for v in (d * d, 4 * d * d)
        ]
        continuous = [_continuous(1.0, s) for s in (1.0, 0.5)]
        for ours, theirs in zip(deltas, continuous, strict=True):
            assert abs(ours - theirs) < 0.01


def _continuous(epsilon: float, ratio: float) -> float:
    """delta of the continuous Gaussian with distance/deviation = ratio (Balle, Wang 2018)."""

    def phi(t: float) -> float:
        return math.erfc(-t / math.sqrt(2)) / 2

    return phi(ratio / 2 - epsilon / ratio) - math.exp(epsilon) * phi(-ratio / 2 - epsilon / ratio)


TARGETS = [
    ("1", "1e-6"), ("0.1", "1e-9"), ("0.01", "1e-5"), ("4", "1e-6"), ("10", "1e-9"),
    ("1", "1e-30"), ("1/3", "0.1"),
]  # fmt: skip


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
def test_calibration_by_the_exact_curve(epsilon: str, delta: str) -> None:
    """The target is met exactly, and one per cent less noise would not meet it."""
    mechanism = Gaussian(sensitivity=1, epsilon=epsilon, delta=delta)
    assert mechanism.guarantee == ApproxDP(epsilon, delta)
    assert mechanism.delta(epsilon) <= Fraction(delta)
    less = Gaussian(sensitivity=1, variance=mechanism.variance * Fraction(99, 100) ** 2)
    assert less.delta(epsilon) > Fraction(delta)


def test_calibration_is_private_by_the_law() -> None:
    for epsilon, delta in (("1", "0.01"), ("1/2", "0.001")):
        mechanism = Gaussian(sensitivity=2, epsilon=epsilon, delta=delta)
        for distance in (-2, -1, 1, 2):
            divergence = hockey_stick(
                mechanism.law(0), mechanism.law(distance), Fraction(epsilon), range(-120, 121)
            )
            assert divergence <= Decimal(delta)
        small = Gaussian(sensitivity=2, variance=mechanism.variance * Fraction(99, 100) ** 2)
        assert hockey_stick(
            small.law(0), small.law(2), Fraction(epsilon), range(-120, 121)
        ) > Decimal(delta)


def test_zcdp_by_the_law() -> None:
    """The Renyi divergence of every order is at most alpha rho; equality is approached."""
    mechanism = Gaussian(sensitivity=1, rho="1/8")
    assert mechanism.variance == 4
    p, q = mechanism.law(0), mechanism.law(1)
    with decimals():
        for alpha in (Fraction(3, 2), Fraction(2), Fraction(5), Fraction(20)):
            powers = (
                mass(p, x) ** decimal(alpha) * mass(q, x) ** decimal(1 - alpha)
                for x in range(-80, 81)
            )
            total = sum(powers, Decimal(0))
            divergence = total.ln() / decimal(alpha - 1)
            assert divergence <= decimal(alpha) / 8 * (1 + Decimal(10) ** -40)
            assert divergence > decimal(alpha) / 8 * Decimal("0.99") * Decimal("0.98")
        off = Gaussian(sensitivity=1, variance=mechanism.variance * Fraction(98, 100))
        p, q = off.law(0), off.law(1)
        total = sum((mass(p, x) ** 2 / mass(q, x) for x in range(-80, 81)), Decimal(0))
        assert total.ln() > Decimal(2) / 8


def test_edge_cases_of_paper_001() -> None:
    quiet = Gaussian(sensitivity=1, standard_deviation=0)
    assert quiet.guarantee_at(0) == ZCDP(0)
    assert quiet.guarantee_at(1) == ZCDP(math.inf)
    assert quiet.guarantee == ZCDP(math.inf)
    with pytest.raises(LastbitError, match="distance"):
        quiet.guarantee_at(-1)
    with pytest.raises(LastbitError, match="standard_deviation"):
        Gaussian(sensitivity=1, standard_deviation=-1)
    with pytest.raises(LastbitError, match="publish the value itself"):
        quiet.release(3)
    loud = Gaussian(sensitivity=3, standard_deviation=2)
    assert loud.guarantee_at(0) == ZCDP(0)
    assert loud.guarantee == ZCDP(Fraction(9, 8))
    assert loud.guarantee_at("1/3") == ZCDP(Fraction(1, 72))


def test_classical_formula() -> None:
    mechanism = Gaussian(sensitivity=1, epsilon="1/2", delta="1e-5", method="classical")
    expected = 2 * math.log(1.25e5) / 0.25
    assert expected <= float(mechanism.variance) <= expected * (1 + 1e-12)
    exact = Gaussian(sensitivity=1, epsilon="1/2", delta="1e-5")
    assert exact.variance < mechanism.variance
    with pytest.raises(LastbitError, match="not proved"):
        Gaussian(sensitivity=1, epsilon=1, delta="1e-5", method="classical")


def test_the_classical_formula_is_false_for_large_epsilon() -> None:
    """Why it is refused: at epsilon = 10 its noise misses the target."""
    variance = Fraction(2 * math.log(1.25e5) / 100)
    assert discrete_gaussian_delta(Fraction(10), variance=variance, distance=1) > 1e-5


def test_vectors_go_through_a_gaussian_pair_or_zcdp() -> None:
    mechanism = Gaussian(sensitivity=1, epsilon=1, delta="1e-6", dimension=10)
    assert mechanism.method == "gdp"
    assert mechanism.delta(1) <= 1e-6
    mechanism = Gaussian(sensitivity=1, epsilon=1, delta="1e-6", dimension=10, method="zcdp")
    assert mechanism.delta(1) <= 1e-6
    rho = mechanism.guarantee_at(1)
    assert rho.to(ApproxDP, epsilon=1).delta <= Fraction("1e-6")
    assert mechanism.release(np.zeros(10, int)).shape == (10,)
    with pytest.raises(LastbitError, match="dimension=11"):
        mechanism.release(np.zeros(11, int))
    with pytest.raises(LastbitError, match="dimension=2"):
        Gaussian(sensitivity=1, epsilon=1, delta="1e-6").release([1, 2])
    with pytest.raises(LastbitError, match="one coordinate"):
        Gaussian(sensitivity=1, epsilon=1, delta="1e-6", dimension=2, method="exact")


def test_floats_on_a_grid() -> None:
    mechanism = Gaussian(sensitivity=1, epsilon=1, delta="1e-6", grid="auto")
    assert mechanism.delta(1) <= 1e-6
    assert isinstance(mechanism.release(2.5), float)
    continuous = _continuous(1.0, 1 / mechanism.standard_deviation_upper)
    assert 0.99e-6 < continuous < 1.01e-6  # a fine grid is as good as none
    vector = Gaussian(sensitivity=1, rho="1/2", grid="auto", dimension=4)
    assert vector.guarantee == ZCDP("1/2")
    assert vector.release(np.zeros(4)).dtype == np.float64


def test_epsilon_inverts_delta() -> None:
    mechanism = Gaussian(sensitivity=1, standard_deviation=3)
    for delta in ("1e-3", "1e-9"):
        epsilon = mechanism.epsilon(delta)
        assert mechanism.delta(epsilon) <= Fraction(delta)
        assert mechanism.delta(epsilon * Fraction(999, 1000)) > Fraction(delta)
    assert Gaussian(sensitivity=1, standard_deviation=100).epsilon("0.5") == 0


def test_accuracy_is_the_exact_tail() -> None:
    mechanism = Gaussian(sensitivity=1, standard_deviation=5)
    a = int(mechanism.accuracy("0.05"))
    law = DiscreteGaussian(25)
    with decimals():
        total = 1 + 2 * sum((exp(Fraction(-k * k, 50)) for k in range(1, 120)), Decimal(0))
        terms = (exp(Fraction(-k * k, 50)) for k in range(a + 1, 120))
        tail = 2 * sum(terms, Decimal(0)) / total
        before = tail + 2 * exp(Fraction(-a * a, 50)) / total
        assert tail <= Decimal("0.05") < before
        assert tail <= Decimal(mechanism.beta(a)) <= tail * (1 + Decimal(2) ** -50)
    assert law.quantile("0.975") == a


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        (dict(sensitivity=0, rho=1), "sensitivity"),
        (dict(sensitivity=1, rho=0), "rho"),
        (dict(sensitivity=1, rho=float("inf")), "rho"),
        (dict(sensitivity=1, epsilon=1), "delta"),
        (dict(sensitivity=1, delta="1e-6"), "standard_deviation"),
        (dict(sensitivity=1, epsilon=1, delta=0), "delta"),
        (dict(sensitivity=1, epsilon=1, delta=1), "delta"),
        (dict(sensitivity=1, epsilon=0, delta="1e-6"), "epsilon"),
        (dict(sensitivity=1, epsilon=1, delta="1e-6", method="magic"), "method"),
        (dict(sensitivity=1, rho=1, method="exact"), "method"),
        (dict(sensitivity=1, rho=1, variance=1), "exactly one"),
        (dict(sensitivity=1), "exactly one"),
        (dict(sensitivity=1, standard_deviation=float("nan")), "standard_deviation"),
        (dict(sensitivity=1, variance=-1), "variance"),
        (dict(sensitivity="1/2", rho=1), "sensitivity is below 1"),
        (dict(sensitivity="1/2", epsilon=1, delta="1e-6"), "sensitivity is below 1"),
        (dict(sensitivity=1, epsilon=1, delta=Fraction(1, 10**400)), "delta"),
        (dict(sensitivity=1, rho=1, neighbours="x"), "neighbours"),
    ],
)
def test_bad_parameters(parameters: dict, name: str) -> None:
    with pytest.raises(LastbitError, match=name):
        Gaussian(**parameters)


def test_a_used_mechanism_can_be_pickled() -> None:
    mechanism = Gaussian(sensitivity=1, rho=1)
    mechanism.release(3)
    again = pickle.loads(pickle.dumps(mechanism))
    assert again == mechanism
    assert isinstance(again.release(3), int)
