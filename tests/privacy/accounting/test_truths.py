"""Profiles against what is known otherwise: closed forms, brute force, exact composition."""

import itertools
import math
import random
from fractions import Fraction

import pytest
from flint import arb

from lastbit.exact import arb_of, lower, upper, working_precision
from lastbit.mechanisms.gaussian import discrete_gaussian_delta
from lastbit.privacy import (
    ApproxLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    FiniteLoss,
    GaussianLoss,
    LaplaceLoss,
    SubsampledGaussianLoss,
    SubsampledLaplaceLoss,
)
from lastbit.privacy.compose import optimal_delta, optimal_epsilon


def assert_holds(bounds, low, high=None):
    """The interval holds a number that is known to lie between two others."""
    assert bounds[0] <= bounds[1]
    assert bounds[0] <= (low if high is None else high) and low <= bounds[1]


def width(bounds):
    return (bounds[1] - bounds[0]) / bounds[1]


# ---------------------------------------------------------------- Gaussian


def gaussian_delta(mu, x):
    root = arb(2).sqrt()
    return ((x / mu - mu / 2) / root).erfc() / 2 - x.exp() * ((x / mu + mu / 2) / root).erfc() / 2


@pytest.mark.parametrize("delta", ["1e-5", "1e-10", "1e-30", "1e-100"])
@pytest.mark.parametrize(
    ("mu_squared", "times"), [("1e-4", 10**5), ("1/100", 100), ("1e-6", 10**6), (4, 1)]
)
def test_gaussians_have_a_closed_form(mu_squared, times, delta):
    found = (times * GaussianLoss(mu_squared)).epsilon(delta)
    with working_precision(500):
        mu, level = arb_of(Fraction(mu_squared) * times).sqrt(), arb_of(Fraction(delta))
        assert gaussian_delta(mu, arb(found[0])) >= level >= gaussian_delta(mu, arb(found[1]))
    assert width(found) < 1e-14


# ---------------------------------------------------------------- the exact composition of others


@pytest.mark.parametrize("delta", ["1e-5", "1e-6", "1e-10"])
@pytest.mark.parametrize(
    "parts",
    [
        [("1/10", "0", 100)],
        [("1/10", "1e-8", 100)],
        [("1/10", "0", 50), ("1/4", "0", 20), ("3/10", "0", 7)],
        [("1", "0", 3), ("1/3", "1e-9", 5)],
    ],
)
def test_black_boxes_compose_as_in_the_optimal_theorem(parts, delta):
    profile = sum(n * ApproxLoss(e, d) for e, d, n in parts)
    flat = [(Fraction(e), Fraction(d)) for e, d, n in parts for _ in range(n)]
    found, known = profile.epsilon(delta), optimal_epsilon(flat, Fraction(delta))
    if known == math.inf:
        assert found[1] == math.inf
        return
    assert_holds(found, float(known) * (1 - 4e-16), float(known))
    assert width(found) < 1e-13
    x = Fraction(found[0])
    exact = optimal_delta(flat, x)
    assert_holds(profile.delta(x), lower(exact) * (1 - 4e-16), upper(exact))


@pytest.mark.parametrize(
    ("variance", "distance", "x"),
    [(1, 1, 3), (100, 1, "1/5"), ("7/3", 2, 2), (100, 10, 4), ("1/9", 1, 3), ("1/50", 2, 90)],
)
def test_one_discrete_gaussian_is_its_law(variance, distance, x):
    found = DiscreteGaussianLoss(variance, distance).profile.delta(x)
    known = discrete_gaussian_delta(Fraction(x), variance=Fraction(variance), distance=distance)
    assert_holds(found, known * (1 - 1e-15), known * (1 + 1e-15))
    assert width(found) < 1e-12


@pytest.mark.parametrize("x", ["0", "1/20", "1/2", "9/10", "99/100", "1", "2"])
@pytest.mark.parametrize("epsilon", ["1", "1/10"])
def test_one_laplace_and_one_bounded_range(epsilon, x):
    e, at = Fraction(epsilon), Fraction(x)
    with working_precision(200):
        half = max(1 - (arb_of(at - e) / 2).exp(), arb(0)) if at < e else arb(0)
        squared = half * half / (1 - (-arb_of(e)).exp())
        known = [(lower(ball), upper(ball)) for ball in (half, squared)]
    assert_holds(LaplaceLoss(e).profile.delta(at), *known[0])
    assert_holds(BoundedRangeLoss(e).profile.delta(at), *known[1])


# ---------------------------------------------------------------- brute force


def random_law(source, size):
    p, q = ([source.randint(1, 50) for _ in range(size)] for _ in range(2))
    return [(Fraction(a, sum(p)), Fraction(b, sum(q))) for a, b in zip(p, q, strict=True)]


def brute_force(laws, x):
    """The sum of (P - exp(x) Q)_+ over all outcomes of a product."""
    with working_precision(256):
        raised, total = arb_of(x).exp(), arb(0)
        for outcome in itertools.product(*laws):
            p = math.prod((a for a, _ in outcome), start=Fraction(1))
            q = math.prod((b for _, b in outcome), start=Fraction(1))
            gain = arb_of(p) - raised * arb_of(q)
            assert gain > 0 or gain < 0 or p == q == 0
            if gain > 0:
                total += gain
        return total


@pytest.mark.parametrize("seed", range(12))
def test_small_finite_laws_by_brute_force(seed):
    source = random.Random(seed)
    laws = [random_law(source, 3) for _ in range(3)]
    profile = sum(2 * FiniteLoss(law) for law in laws)
    x = Fraction(source.randint(1, 20), 10)
    both = []
    for flip in (False, True):
        turned = [[(q, p) if flip else (p, q) for p, q in law] for law in laws]
        both.append(brute_force([law for law in turned for _ in range(2)], x))
    with working_precision(256):
        known = max(both, key=float)
        assert_holds(profile.delta(x), lower(known), upper(known))
    assert width(profile.delta(x)) < 1e-12


def test_one_step_on_a_sample_has_a_closed_form():
    for loss in (SubsampledGaussianLoss("1/5", 1), SubsampledLaplaceLoss("1/5", 1)):
        for x in ("0", "1/10", "1/2"):
            low, high = loss.profile.delta(x)
            assert high - low < 1e-14


# ---------------------------------------------------------------- identities, and known numbers


def test_discrete_laplace_at_distance_1_is_randomised_response():
    assert (37 * DiscreteLaplaceLoss(10)).epsilon("1e-7") == (37 * ApproxLoss("1/10")).epsilon(
        "1e-7"
    )


@pytest.mark.parametrize(
    ("profile", "delta", "known"),
    [
        (10**5 * GaussianLoss("1e-5"), "1e-10", 6.54792406686495),
        (10**5 * GaussianLoss("1e-4"), "1e-10", 24.5696590398305),
        (10**5 * GaussianLoss("1e-4"), "1e-30", 40.8302979773246),
        (10**5 * LaplaceLoss("0.001"), "1e-5", 1.19913466499392),
        (10**5 * LaplaceLoss("0.001"), "1e-30", 3.57417330798953),
        (10**6 * ApproxLoss("0.001"), "1e-10", 6.5478971544294),
        (
            1000 * LaplaceLoss("0.01") + 1000 * GaussianLoss("1e-4"),
            "1e-10",
            2.74831667406687,
        ),
        (100 * ApproxLoss("0.1"), "1e-10", 6.29520784847295),
        (100 * DiscreteGaussianLoss(100), "1e-5", 4.37718741324119),
        (10**4 * SubsampledGaussianLoss("0.01", 1), "1e-5", 6.18771238997154),
        (10**4 * SubsampledGaussianLoss("0.01", 1), "1e-10", 9.31613852588233),
        (10**4 * SubsampledGaussianLoss("0.01", 1), "1e-30", 17.635061052886),
    ],
    ids=repr,
)
def test_known_numbers(profile, delta, known):
    found = profile.epsilon(delta)
    assert_holds(found, known * (1 - 1e-13), known * (1 + 1e-13))
    assert width(found) < 1e-9


@pytest.mark.parametrize("times", [1, 3, 100])
def test_a_fine_lattice_is_continuous_noise_from_both_sides(times):
    coarse = (times * DiscreteLaplaceLoss(10 * 64, 64)).epsilon("1e-6")
    fine = (times * DiscreteLaplaceLoss(10 * 2**20, 2**20)).epsilon("1e-6")
    continuous = (times * LaplaceLoss("1/10")).epsilon("1e-6")
    assert continuous[0] <= fine[1] and fine[0] <= coarse[1]
    assert fine[1] - continuous[0] < 1e-9
    assert width(fine) < 1e-9


@pytest.mark.parametrize("delta", ["1e-5", "1e-50", "1e-100"])
def test_small_deltas(delta):
    for profile in (
        1000 * ApproxLoss("0.1"),
        100 * LaplaceLoss("0.5") + GaussianLoss(1),
        100 * DiscreteGaussianLoss(10, 2),
        BoundedRangeLoss("0.3") + 60 * LaplaceLoss("0.3"),
    ):
        found = profile.epsilon(delta)
        assert width(found) < 1e-9
        assert profile.delta(Fraction(found[1]))[0] <= float(delta)
