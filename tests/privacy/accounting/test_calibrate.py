"""The least noise for a target: the profile meets it there, and not with a crumb less noise."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

import lastbit as lb
from lastbit.errors import InvalidParameter, WrongType
from lastbit.privacy import (
    ApproxLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    GaussianLoss,
    LaplaceLoss,
    Profile,
    RandomizedResponseLoss,
    SubsampledGaussianLoss,
    SubsampledLaplaceLoss,
    ThresholdLoss,
    calibrated,
)

LESS = 1 - Fraction(1, 2**30)
NAMES = {
    GaussianLoss: "mu_squared",
    SubsampledGaussianLoss: "mu_squared",
    DiscreteGaussianLoss: "variance",
    DiscreteLaplaceLoss: "scale",
}


def with_less_noise(loss, fixed, *, factor=LESS):
    name = NAMES.get(type(loss), "epsilon")
    value = getattr(loss, name)
    changed = value * factor if name in ("variance", "scale") else value / factor
    return type(loss)(**{name: changed}, **fixed)


CASES = [
    (GaussianLoss, {}, 1, "1e-6", 1),
    (GaussianLoss, {}, 1, "1e-6", 10**9),
    (GaussianLoss, {}, "0.1", "1e-100", 50),
    (GaussianLoss, {}, 0, "1e-3", 2),
    (GaussianLoss, {}, 100, "0.9", 2),
    (DiscreteGaussianLoss, {}, 1, "1e-6", 1),
    (DiscreteGaussianLoss, {"distance": 3}, 1, "1e-6", 10),
    (DiscreteGaussianLoss, {}, 30, "1e-6", 1),
    (LaplaceLoss, {}, 1, "1e-6", 1),
    (LaplaceLoss, {}, 1, "1e-6", 100),
    (DiscreteLaplaceLoss, {"distance": 2}, 1, "1e-6", 100),
    (DiscreteLaplaceLoss, {}, 5, "1e-9", 3),
    (RandomizedResponseLoss, {"categories": 4}, 5, "1e-6", 100),
    (ApproxLoss, {}, 5, "1e-6", 100),
    (BoundedRangeLoss, {}, 5, "1e-6", 100),
    (SubsampledGaussianLoss, {"rate": "0.01"}, 2, "1e-5", 1),
    (SubsampledGaussianLoss, {"rate": "0.01"}, 2, "1e-5", 1000),
    (SubsampledGaussianLoss, {"rate": 1}, 2, "1e-5", 10),
    (SubsampledLaplaceLoss, {"rate": "0.1"}, 1, "1e-5", 1),
]


@pytest.mark.parametrize(("kind", "fixed", "epsilon", "delta", "releases"), CASES)
def test_it_is_enough_and_a_crumb_less_is_not(kind, fixed, epsilon, delta, releases):
    target = {"epsilon": epsilon, "delta": delta, "releases": releases}
    loss = calibrated(kind, **target, **fixed)
    assert (releases * loss).delta(epsilon)[1] <= Fraction(delta)
    assert (releases * with_less_noise(loss, fixed)).delta(epsilon)[1] > Fraction(delta)


@pytest.mark.parametrize(("kind", "fixed", "epsilon", "delta", "releases"), CASES)
def test_a_percent_less_noise_breaks_the_promise(kind, fixed, epsilon, delta, releases):
    """Not only the proof: the lower bound of the profile is above delta."""
    loss = calibrated(kind, epsilon=epsilon, delta=delta, releases=releases, **fixed)
    less = with_less_noise(loss, fixed, factor=Fraction(99, 100))
    assert (releases * less).delta(epsilon)[0] > Fraction(delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.1, 1e-9), (5, 0.01)])
def test_one_gaussian_release_by_the_textbook(epsilon, delta):
    """Balle, Wang 2018, Theorem 8, in floats: nothing here is shared with the accountant."""
    mu = math.sqrt(calibrated(GaussianLoss, epsilon=epsilon, delta=delta).mu_squared)

    def below(x: float) -> float:
        return math.erfc(-x / math.sqrt(2)) / 2

    found = below(mu / 2 - epsilon / mu) - math.exp(epsilon) * below(-mu / 2 - epsilon / mu)
    assert found == pytest.approx(delta, rel=1e-6)


@settings(max_examples=30)
@given(
    st.sampled_from([GaussianLoss, LaplaceLoss, DiscreteLaplaceLoss, ApproxLoss]),
    st.fractions(Fraction(1, 100), 10, max_denominator=100),
    st.integers(2, 40),
    st.integers(1, 100),
)
def test_any_target_is_met(kind, epsilon, power, releases):
    delta = Fraction(1, 10**power)
    loss = calibrated(kind, epsilon=epsilon, delta=delta, releases=releases)
    assert (releases * loss).delta(epsilon)[1] <= delta


@pytest.mark.parametrize(
    ("kind", "fixed", "name", "value"),
    [
        (LaplaceLoss, {}, "epsilon", Fraction(3, 70)),
        (ApproxLoss, {}, "epsilon", Fraction(3, 70)),
        (DiscreteLaplaceLoss, {"distance": 2}, "scale", Fraction(140, 3)),
    ],
)
def test_pure_targets_are_exact(kind, fixed, name, value):
    loss = calibrated(kind, epsilon="0.3", delta=0, releases=7, **fixed)
    assert getattr(loss, name) == value


def test_a_pure_target_about_samples():
    loss = calibrated(SubsampledLaplaceLoss, rate="0.01", epsilon=1, delta=0, releases=7)
    assert (7 * loss).delta(1)[1] == 0
    greatest = 7 * math.log1p(0.01 * math.expm1(float(loss.epsilon)))
    assert greatest == pytest.approx(1, abs=1e-11)


def test_never_more_noise_than_a_pure_promise_takes():
    loss = calibrated(LaplaceLoss, epsilon=1, delta="1e-290", releases=3)
    assert loss.epsilon >= Fraction(1, 3)


def test_the_neighbours_are_kept():
    loss = calibrated(GaussianLoss, epsilon=1, delta="1e-6", neighbours=lb.CHANGE_ONE)
    assert loss.neighbours == lb.CHANGE_ONE


def test_what_the_profile_does_not_prove_is_not_returned(monkeypatch):
    """A search that goes wrong is caught by the last evaluation."""
    answers = iter([0.0, 1.0])
    monkeypatch.setattr(Profile, "delta", lambda *_: (0.0, next(answers, 1.0)))
    with pytest.raises(InvalidParameter, match="out of reach"):
        calibrated(GaussianLoss, epsilon=1, delta="1e-6")


@pytest.mark.parametrize(
    ("kind", "said", "words"),
    [
        (GaussianLoss, {"delta": 0}, "Gaussian noise does not promise; pass, say, 1e-9"),
        (SubsampledGaussianLoss, {"delta": 0, "rate": "0.1"}, "does not promise"),
        (LaplaceLoss, {"epsilon": 0, "delta": 0}, "no noise promises; allow some loss"),
        (GaussianLoss, {"delta": 1}, "delta is not between 0 and 1"),
        (GaussianLoss, {"delta": "1e-400"}, "below 1e-300"),
        (GaussianLoss, {"epsilon": -1}, "epsilon is negative"),
        (GaussianLoss, {"epsilon": float("nan")}, "epsilon is not a number"),
        (GaussianLoss, {"epsilon": 10**5}, "epsilon is above 10,000"),
        (GaussianLoss, {"epsilon": "1e-20"}, "epsilon is below 1e-12"),
        (GaussianLoss, {"releases": 0}, "releases is below 1"),
        (GaussianLoss, {"releases": 10**13}, "more than 1,000,000,000,000; pass fewer"),
        (GaussianLoss, {"distance": 2}, "distance has no meaning for GaussianLoss; leave it out"),
        (DiscreteGaussianLoss, {"distance": 0}, "takes no noise; pass a distance from 1 up"),
        (SubsampledGaussianLoss, {}, "rate is needed; pass rate=, say, 0.01"),
        (SubsampledGaussianLoss, {"rate": 0}, "rate is not"),
        (SubsampledGaussianLoss, {"rate": "1/100", "delta": "1/100"}, "met without noise"),
        (SubsampledLaplaceLoss, {"rate": "1e-9", "releases": 100}, "met without noise"),
    ],
)
def test_odd_targets_are_refused(kind, said, words):
    with pytest.raises(InvalidParameter, match=words.replace("(", r"\(")):
        calibrated(kind, **{"epsilon": 1, "delta": "1e-6", **said})


@pytest.mark.parametrize("kind", [ThresholdLoss, lb.PureDP, "gaussian", GaussianLoss(1), None])
def test_other_kinds_are_refused(kind):
    with pytest.raises(WrongType, match="kind is not a loss whose noise can be chosen"):
        calibrated(kind, epsilon=1, delta="1e-6")
