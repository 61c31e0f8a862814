"""One release of every loss: two bounds that agree, about the number that its law says."""

import math
import random
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import pytest
from flint import arb

from lastbit.exact import arb_of, working_precision
from lastbit.laws import DiscreteGaussian, DiscreteLaplace, tail_weight
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
    PrivacyLoss,
    Profile,
    RandomizedResponseLoss,
    SubsampledGaussianLoss,
    SubsampledLaplaceLoss,
    ThresholdLoss,
)
from lastbit.privacy.accounting import single
from lastbit.privacy.gaussian_pair import step_mu_squared

DELTAS = ["1e-12", "1e-9", "1e-6", "1e-3", "1/10", "3/10", "1/2", "7/10", "9/10", "99/100"]
NEAR = Fraction(1, 10**12)
NOTHING = Fraction(1, 10**29)

Stick = Callable[[Fraction], arb]


def between(pairs: list[tuple[arb, arb]], told: Fraction = Fraction(0)) -> Stick:
    """The sum of (p - exp(x) q)_+ over all outcomes, and what is told."""

    def stick(x: Fraction) -> arb:
        raised, kept = arb_of(x).exp(), arb_of(1 - told)
        gains = ((p - raised * q).nonnegative_part() for p, q in pairs)
        return arb_of(told) + kept * sum(gains, arb(0))

    return stick


def shifted(law: DiscreteGaussian | DiscreteLaplace, distance: int) -> Stick:
    """All outcomes that matter at 100 digits, and the rest as an error of at most its mass."""
    width = law.variance if isinstance(law, DiscreteGaussian) else law.scale
    reach = math.ceil(
        25 * math.sqrt(width) + 3 if isinstance(law, DiscreteGaussian) else 300 * width + 3
    )
    pairs = [(law.mass(k), law.mass(k - distance)) for k in range(-reach, reach + distance + 1)]
    return between(pairs)


def shifted_law(kind: type[DiscreteGaussian | DiscreteLaplace], noise: Fraction, d: int) -> Stick:
    return shifted(kind(noise), d)


def gaussian(mu_squared: Fraction) -> Stick:
    def stick(x: Fraction) -> arb:
        mu, at, root = arb_of(mu_squared).sqrt(), arb_of(x), arb(2).sqrt()
        near, far = (at / mu - mu / 2) / root, (at / mu + mu / 2) / root
        return (near.erfc() - at.exp() * far.erfc()) / 2

    return stick


def curve(squared: bool, epsilon: Fraction) -> Stick:
    """Continuous Laplace noise, and bounded range."""

    def stick(x: Fraction) -> arb:
        half = -arb_of((x - epsilon) / 2).expm1() if x < epsilon else arb(0)
        return half * half / -(-arb_of(epsilon)).expm1() if squared else half

    return stick


def response(epsilon: Fraction, answers: int, told: Fraction = Fraction(0)) -> Stick:
    kept = 1 / (1 + (answers - 1) * (-arb_of(epsilon)).exp())
    other = kept * (-arb_of(epsilon)).exp()
    return between([(kept, other), (other, kept), *[(other, other)] * (answers - 2)], told)


def finite(pairs: list[tuple[Fraction, Fraction]]) -> Stick:
    ways = [
        between([(arb_of(p), arb_of(q)) for p, q in way])
        for way in (pairs, [(q, p) for p, q in pairs])
    ]
    return lambda x: max((way(x) for way in ways), key=float)


def cases(choices: random.Random, count: int) -> list[tuple[PrivacyLoss, Callable[[], Stick]]]:
    """Losses of every kind, with parameters from tiny to large, and what they are by their laws."""
    found: list[tuple[PrivacyLoss, Callable[[], Stick]]] = []

    def size() -> Fraction:
        return Fraction(f"{10 ** choices.uniform(-2, 1.8):.3g}")

    for _ in range(count):
        e, v, d, s = size(), size(), choices.choice([1, 1, 2, 7]), size()
        k, told = choices.randint(2, 6), Fraction(choices.choice(["0", "1e-10", "1/20"]))
        weights = [choices.randint(0, 30) for _ in range(2 * choices.choice([3, 12]))]
        half = len(weights) // 2
        totals = sum(weights[:half]) or 1, sum(weights[half:]) or 1
        pairs = [
            (Fraction(p, totals[0]), Fraction(q, totals[1]))
            for p, q in zip(weights[:half], weights[half:], strict=True)
        ]
        found += [
            (GaussianLoss(e), partial(gaussian, e)),
            (DiscreteGaussianLoss(v, d), partial(shifted_law, DiscreteGaussian, v, d)),
            (DiscreteGaussianVectorLoss(v), partial(shifted_law, DiscreteGaussian, v, 1)),
            (DiscreteGaussianVectorLoss(v + 1, 3), partial(gaussian, 3 * step_mu_squared(v + 1))),
            (LaplaceLoss(e), partial(curve, False, e)),
            (BoundedRangeLoss(e), partial(curve, True, e)),
            (DiscreteLaplaceLoss(s, d), partial(shifted_law, DiscreteLaplace, s, d)),
            (RandomizedResponseLoss(e, k), partial(response, e, k)),
            (ApproxLoss(e, told), partial(response, e, 2, told)),
        ]
        if sum(weights[:half]) and sum(weights[half:]):
            found.append((FiniteLoss(pairs), partial(finite, pairs)))
    return found


def off(profile: Profile, stick: Stick, level: Fraction) -> str | None:
    """What is wrong with the bounds of an epsilon and of deltas about it, if anything is."""
    low, high = profile.epsilon(level)
    if low == high == math.inf:
        return None if stick(Fraction(10**4)) > arb_of(level) else "infinite"
    least, most = Fraction(low), Fraction(high)
    if most - least > NEAR * most + NOTHING:
        return f"wide: {low} to {high}"
    if least and not stick(least) >= arb_of(level) * (1 - arb(1e-40)):
        return f"{low} is not below"
    if not stick(most) <= arb_of(level) * (1 + arb(1e-40)):
        return f"{high} is not above"
    for x in (least / 2, least, most):
        below, above = profile.delta(x)
        exact = stick(x)
        held = arb(below) * (1 - arb(1e-40)) <= exact <= arb(above) * (1 + arb(1e-40))
        if not held and not exact < arb(1e-90):  # that little was not enumerated
            return f"delta({x}) is not between {below} and {above}"
        if above - below > 1e-12 * above + 1e-90:
            return f"delta({x}) is wide"
    return None


def test_the_bounds_of_one_release_agree_and_hold_its_law(extent):
    """Failed before: 17 % apart for discrete Gaussian noise at delta = .9, all for finite laws."""
    for loss, law in cases(random.Random(17), extent.generated(3, 40)):
        with working_precision(400):
            stick = law()
            for delta in DELTAS:
                assert off(loss.profile, stick, Fraction(delta)) is None, (loss, delta)


@pytest.mark.parametrize(
    "loss",
    [
        ThresholdLoss(3, 20, 1),
        ThresholdLoss(1, 2, 1),
        DiscreteGaussianLoss(10**20, 10**9),
        DiscreteGaussianLoss("1/50", 100),
        DiscreteLaplaceLoss(10**9, 10**9),
        DiscreteLaplaceLoss("1/10", 5000),
        SubsampledGaussianLoss("1/100", 1),
        SubsampledLaplaceLoss("1/3", 2),
        LaplaceLoss(1000),
        BoundedRangeLoss(1000),
    ],
    ids=repr,
)
def test_the_bounds_of_one_release_agree(loss):
    """Where enumerating the law would be long, or is done elsewhere."""
    for delta in DELTAS:
        low, high = loss.profile.epsilon(delta)
        assert low == high == math.inf or high - low <= 1e-12 * high


def test_a_release_beside_one_that_tells_all_or_nothing():
    """(1-d) D(x) + d: the same bounds at another level."""
    alone = DiscreteGaussianLoss(3, 2, neighbours=ADD_REMOVE).profile
    beside = alone + ApproxLoss(0, "1/10", neighbours=ADD_REMOVE)
    low, high = beside.epsilon("91/100")
    assert alone.epsilon("9/10")[0] <= high and low <= alone.epsilon("9/10")[1]
    assert high - low <= 1e-12 * high


@pytest.mark.parametrize("step", [-1, 1])
def test_half_lines_that_start_one_too_early_or_late_are_seen(monkeypatch, step):
    """The mutant: the best event moved by one outcome."""
    exact = tail_weight
    monkeypatch.setattr(single, "tail_weight", lambda k, v: exact(k + step, v))
    with working_precision(400):
        stick = shifted(DiscreteGaussian(Fraction(3)), 2)
        assert off(DiscreteGaussianLoss(3, 2).profile, stick, Fraction(1, 10))
