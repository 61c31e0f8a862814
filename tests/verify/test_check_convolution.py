"""The checker's law of a sum: never below the accountant's delta, close to it, and no forgery."""

import json
import random
from fractions import Fraction
from typing import Any

import pytest

from lastbit.checker import composition as checker, convolution, problem_of
from lastbit.checker.numbers import Rejected, digest
from lastbit.exact import arb_of, lower, upper, working_precision
from lastbit.privacy import (
    ADD_REMOVE,
    ApproxLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    DiscreteLaplaceLoss,
    FiniteLoss,
    GaussianLoss,
    LaplaceLoss,
    Profile,
    RandomizedResponseLoss,
    ThresholdLoss,
)
from lastbit.verify import composition_certificate

UNEVEN = [("1/2", "1/3"), ("1/3", "1/3"), ("1/6", "1/3")]
# a loss, the ways it may go, a step on which it lies
LOSSES: list[tuple[Any, str, str]] = [
    (ApproxLoss("1/10", neighbours=ADD_REMOVE), "lattice", "1/5"),
    (ApproxLoss("1/4", "1e-9", neighbours=ADD_REMOVE), "lattice", "1/2"),
    (RandomizedResponseLoss("1/2", 5, neighbours=ADD_REMOVE), "lattice", "1/2"),
    (LaplaceLoss("1/5", neighbours=ADD_REMOVE), "lattice", "1/40"),
    (DiscreteLaplaceLoss(10, 3, neighbours=ADD_REMOVE), "lattice", "1/5"),
    (DiscreteGaussianLoss(4, 1, neighbours=ADD_REMOVE), "lattice", "1/4"),
    (DiscreteGaussianLoss("1/2", 2, neighbours=ADD_REMOVE), "lattice", "4"),
    (ThresholdLoss(5, 200, 2, neighbours=ADD_REMOVE), "lattice", "2/5"),
    (FiniteLoss(UNEVEN), "lattice", "1/40"),
    (BoundedRangeLoss("1/5", neighbours=ADD_REMOVE), "lattice", "1/40"),
    (GaussianLoss("1/20", neighbours=ADD_REMOVE), "spread", "1"),
    (DiscreteGaussianLoss(50, 1, neighbours=ADD_REMOVE), "spread", "1"),
    (DiscreteGaussianVectorLoss(30, 5, neighbours=ADD_REMOVE), "spread", "1"),
    (BoundedRangeLoss("1/10", neighbours=ADD_REMOVE), "spread", "1"),
    (LaplaceLoss("1/50", neighbours=ADD_REMOVE), "spread", "1"),
]


def excess_of(parts: list[tuple[Any, str, int]], order: Any, step: Any, epsilon: Any) -> Fraction:
    """What the checker finds, both directions, as it does for a certificate."""
    most = Fraction(0)
    for reverse in (False, True):
        total = checker._Sum(Fraction(order), Fraction(step), reverse, [], Fraction(0), [])
        for loss, way, times in parts:
            written = json.loads(json.dumps(loss.to_dict()))
            checker._WAYS[way, written["loss"]](total, times, written)
        spread = total.spread + convolution.range_spread(total.ranges)
        found = convolution.excess(
            total.laws, spread, Fraction(order), Fraction(step), Fraction(epsilon)
        )
        most = max(most, found)
    return most


def told(parts: list[tuple[Any, str, int]]) -> Fraction:
    return checker._told(
        [
            checker._counted({**loss.to_dict(), "times": n}, checker._checked, None)
            for loss, _, n in parts
        ]
    )


def random_parts(source: random.Random) -> list[tuple[Any, str, int]]:
    chosen = source.sample(LOSSES, source.choice([1, 1, 1, 2]))
    return [(loss, way, source.choice([1, 3, 9])) for loss, way, _ in chosen]


def too_small(source: random.Random, cases: int) -> Any:
    """A case in which the checker finds less than is true; None if there is none."""
    for _ in range(cases):
        parts = random_parts(source)
        profile = Profile([(loss, n) for loss, _, n in parts])
        _, high = profile.epsilon(Fraction(1, 10 ** source.choice([1, 3, 6])))
        epsilon = Fraction(high * source.uniform(0.3, 1.05)).limit_denominator(1000)
        order = Fraction(f"{10 ** source.uniform(-0.5, 1.3):.3g}")
        step = Fraction(source.choice(["1/40", "1/7", "1/5"]))
        try:
            found = excess_of(parts, order, step, epsilon) + told(parts)
        except Rejected:
            continue
        if found < Fraction(profile.delta(epsilon)[0]):
            return parts, epsilon, order, step
    return None


def test_never_below_what_is_true_at_any_order_and_step(extent):
    assert too_small(random.Random(3), extent.generated(4, 400)) is None


@pytest.mark.parametrize(("loss", "way", "step"), LOSSES, ids=repr)
def test_close_to_what_is_true_on_the_lattice_of_a_loss(loss, way, step):
    """At a good order the delta is that of the accountant; ranges and vectors cost a little."""
    for times in (1, 9):
        profile = times * loss
        _, high = profile.epsilon("1e-5")
        claim = composition_certificate(profile, delta="1e-5")
        ratio = Fraction(claim["claim"]["epsilon"]) / Fraction(high)
        ranged = isinstance(loss, BoundedRangeLoss) and times > 1
        assert (
            1 - Fraction(1, 10**12) <= ratio <= (Fraction(6, 5) if ranged else Fraction(103, 100))
        )


RESPONSE, LAPLACE, RANGE = ApproxLoss("1/10"), LaplaceLoss("1/5"), BoundedRangeLoss("1/2")
_LAPLACE_LAW, _GAUSSIAN_LAW = convolution.laplace_law, convolution.gaussian_law
MUTANTS: list[tuple[str, Any, Any, str, str, int]] = [
    ("response_law", lambda e, m: _LAPLACE_LAW(e * 9 / 10, 1), RESPONSE, "lattice", "1/5", 20),
    ("laplace_law", lambda e, n: _LAPLACE_LAW(e * 9 / 10, n), LAPLACE, "lattice", "1/40", 20),
    ("range_law", lambda e, n: _LAPLACE_LAW(e / 2, n), RANGE, "lattice", "1/40", 1),
    ("range_spread", lambda ranges: Fraction(1, 4), RANGE, "spread", "1", 20),
    ("step_spread", lambda v: 1 / v / 2, DiscreteGaussianLoss(9), "spread", "1", 5),
    ("gaussian_profile", lambda s, x: Fraction(0), GaussianLoss(1), "spread", "1", 1),
    (
        "gaussian_law",
        lambda v, d, c: _GAUSSIAN_LAW(v * 2, d, c),
        DiscreteGaussianLoss(4),
        "lattice",
        "1/4",
        9,
    ),
]


@pytest.mark.parametrize(
    ("name", "mutant", "loss", "way", "step", "times"), MUTANTS, ids=[m[0] for m in MUTANTS]
)
def test_mutants_of_the_checker_find_too_little(monkeypatch, name, mutant, loss, way, step, times):
    profile = times * loss
    epsilon = Fraction(profile.epsilon("1e-4")[0]).limit_denominator(100)
    truth = Fraction(profile.delta(epsilon)[0])
    assert excess_of([(loss, way, times)], 3, step, epsilon) >= truth
    monkeypatch.setattr(convolution, name, mutant)
    if hasattr(checker, name):
        monkeypatch.setattr(checker, name, mutant)
    assert excess_of([(loss, way, times)], 3, step, epsilon) < truth


# ---------------------------------------------------------------- certificates


def sealed(certificate: dict[str, Any], claim: dict[str, Any], body: dict[str, Any]) -> Any:
    whole = {**certificate, "claim": {**certificate["claim"], **claim}, "body": body}
    return {**whole, "digest": digest(whole)}


def test_no_body_proves_a_claim_that_is_false(extent):
    """Epsilon a thousandth below what is true, and any order, step and ways."""
    source = random.Random(8)
    profile = 20 * ApproxLoss("1/10") + 5 * LaplaceLoss("1/5") + GaussianLoss("1/50")
    honest = composition_certificate(profile, delta="1e-6")
    assert problem_of(honest) is None and honest["body"]["form"] == "lattice"
    low, _ = profile.epsilon("1e-6")
    claim = {"epsilon": str(Fraction(low) * Fraction(999, 1000)), "tight_epsilon_on_trust": None}
    for _ in range(extent.generated(6, 300)):
        body = {
            "form": "lattice",
            "order": str(Fraction(f"{10 ** source.uniform(-1, 2):.3g}")),
            "step": str(Fraction(f"{10 ** source.uniform(-2.3, 1):.3g}")),
            "ways": [source.choice(["lattice", "spread"]) for _ in profile.parts],
        }
        assert problem_of(sealed(honest, claim, body)) is not None
    weaker = {"epsilon": str(2 * Fraction(honest["claim"]["epsilon"]))}
    assert problem_of(sealed(honest, weaker, honest["body"])) is None


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"step": "0"}, "the step is out of range"),
        ({"step": "-1"}, "the step is out of range"),
        ({"step": "1/100000000"}, "too many cells"),
        ({"order": "0"}, "the order is out of range"),
        ({"ways": ["lattice"]}, "the ways are odd"),
        ({"ways": "lattice"}, "the ways are odd"),
        ({"ways": ["lattice", 1]}, "the ways are odd"),
        ({"ways": ["lattice", "lattice"]}, "cannot go the way"),
        ({"more": "1"}, "the body is odd"),
        ({"form": ["lattice"]}, "the form of the proof is unknown"),
    ],
)
def test_forged_bodies_are_refused(change, problem):
    honest = composition_certificate(5 * ApproxLoss("1/10") + GaussianLoss("1/9"), delta="1e-3")
    forged = problem_of(sealed(honest, {}, {**honest["body"], **change}))
    assert forged is not None and problem in forged


def test_what_the_law_of_a_sum_cannot_do_is_refused():
    honest = composition_certificate(4 * FiniteLoss(UNEVEN), delta="1e-2")
    assert problem_of(honest) is None and honest["body"]["form"] == "lattice"
    other = {"neighbours": {"relation": "change-one", "unit": "record"}}
    assert "direction" in (problem_of(sealed(honest, other, honest["body"])) or "")
    losses = [{"loss": "ZCDP", "rho": "1/100", "times": 1}]
    known = sealed(honest, {"losses": losses}, honest["body"])
    assert "cannot go the way" in (problem_of(known) or "")


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("x", ["-40", "-9", "-1", "0", "1/1000", "1", "7.99", "8", "8.01", "60"])
def test_normal_tails_are_enclosed(x):
    at = Fraction(x)
    low, high = convolution.upper_tail(at)
    with working_precision(4000):
        exact = (arb_of(at) / arb_of(Fraction(2)).sqrt()).erfc() / 2
        assert arb_of(low) <= exact <= arb_of(high)
    assert high - low <= high / 10**20


@pytest.mark.parametrize("spread", ["1/10000", "1", "50"])
def test_gaussian_profiles_are_bounded(spread):
    for x in ("-30", "-1", "0", "1/10", "1", "20"):
        with working_precision(300):
            m, at = arb_of(Fraction(spread)).sqrt(), arb_of(Fraction(x))
            root = arb_of(Fraction(2)).sqrt()
            near, far = (at / m - m / 2) / root, (at / m + m / 2) / root
            exact = (near.erfc() - at.exp() * far.erfc()) / 2
        found = convolution.gaussian_profile(Fraction(spread), Fraction(x))
        assert lower(exact) <= found and float(found) <= upper(exact) * (1 + 1e-10) + 1e-15


@pytest.mark.parametrize("x", ["-99999", "-1000", "-1/3", "1/7", "5000"])
def test_exponentials_are_enclosed(x):
    low, high = convolution._exp(Fraction(x))
    with working_precision(400):
        exact = arb_of(Fraction(x)).exp()
        assert arb_of(low) < exact < arb_of(high)
    assert high - low < high / 10**45
