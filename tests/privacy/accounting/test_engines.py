"""Engines that share nothing but moments never disagree, and mutants of them do.

Contour and whole numbers on random lattice compositions; residues and closed
forms against the line sum; and wrong kappa, missing aliases, a wrong direction, which must be seen.
"""

import itertools
import math
import random
from fractions import Fraction
from functools import partial

import pytest
from flint import acb, arb

from lastbit.exact import arb_of, working_precision
from lastbit.privacy import (
    ApproxLoss,
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    FiniteLoss,
    GaussianLoss,
    LaplaceLoss,
    PrivacyLoss,
    Profile,
    RandomizedResponseLoss,
    SubsampledGaussianLoss,
    ThresholdLoss,
)
from lastbit.privacy.accounting import contour as line_sums, engine
from lastbit.privacy.accounting.composition import Guide
from lastbit.privacy.accounting.contour import contour
from lastbit.privacy.accounting.pieces import pieces
from lastbit.privacy.accounting.single import closed
from lastbit.privacy.accounting.thresholds import has_thresholds
from tests.privacy.accounting import whole_numbers
from tests.privacy.accounting.whole_numbers import lattice


def composition_of(profile):
    (only,) = profile._directions()
    return only


def random_lattice(source):
    """A composition of up to three kinds of loss on a common lattice."""
    unit = Fraction(1, source.choice([10, 20, 100, 64, 30]))
    parts: list[tuple[PrivacyLoss, int]] = []
    for _ in range(source.randint(1, 3)):
        epsilon, times = unit * source.randint(1, 6), source.choice([1, 2, 3, 5, 10, 50, 200, 1000])
        distance, kind = source.randint(1, 4), source.choice(["box", "laplace", "answers", "keys"])
        if kind == "box":
            parts.append(
                (
                    ApproxLoss(
                        epsilon, source.choice([Fraction(0), Fraction(0), Fraction(1, 10**9)])
                    ),
                    times,
                )
            )
        elif kind == "laplace":
            parts.append((DiscreteLaplaceLoss(distance / epsilon, distance), times))
        elif kind == "answers":
            parts.append((RandomizedResponseLoss(epsilon, source.randint(2, 9)), times))
        else:
            threshold = math.ceil(30 / epsilon)
            parts.append((ThresholdLoss(1 / epsilon, threshold, source.randint(1, 3)), times))
    return Profile(parts)


def random_level(source):
    return Fraction(1, 10 ** source.choice([2, 3, 5, 8, 12, 20, 40, 100]))


def random_case(source):
    """A product of pairs: one release with a threshold has a closed form of its own."""
    profile, level = random_lattice(source), random_level(source)
    while has_thresholds(composition := composition_of(profile)) and engine.one_release(
        composition
    ):
        profile = random_lattice(source)
    return profile, level


def overlap(one, other):
    return not (one[1] < other[0] or other[1] < one[0])


def disagreement(profile, level, bounds):
    """Where the two engines contradict each other, or these bounds of epsilon; None if nowhere."""
    composition = composition_of(profile)
    with working_precision(256):
        rest = arb_of(level) - composition.infinite()
        if not rest > composition.infinite():
            return None
    low, high = bounds
    assert low <= high
    if high in (0.0, math.inf):
        return None
    size = float(rest.log().mid())
    order = engine._capped(composition, composition.guide.for_delta(size)[0])
    other = lattice(composition, max(min(order, 200.0), 0.2))
    assert other is not None
    summed = contour(composition, order, high, size)
    with working_precision(256):
        slack = 1 - arb(2) ** -100
        # at `high` the truth is at most the level, at `low` it is at least that
        if other.bounds(Fraction(high))[0] * slack > rest:
            return "too small", profile, level
        if low and other.bounds(Fraction(low))[1] < rest * slack:
            return "too large", profile, level
        for x in (Fraction(high), Fraction(high) * Fraction(9, 10)):
            if not overlap(other.bounds(x), summed.bounds(x)):
                return "line sum", profile, level
        below, above = engine.delta_bounds(composition, Fraction(high))
        mine, told = other.bounds(Fraction(high)), composition.infinite()
        if above < (mine[0] + told) * slack or below * slack > mine[1] + told:
            return "delta", profile, level
    return None


@pytest.mark.parametrize("part", range(10))
def test_contour_and_whole_numbers_never_disagree(part, extent):
    """4,000 compositions in ten parts, so that both cores have some."""
    source = random.Random(20 + part)
    widest = 0.0
    for _ in range(extent.generated(15, 400)):
        profile, level = random_case(source)
        low, high = engine.epsilon_bounds(composition_of(profile), level)
        assert disagreement(profile, level, (low, high)) is None
        if 0 < high < math.inf:
            widest = max(widest, (high - low) / high)
    assert widest < 1e-9


# ---------------------------------------------------------------- other engines, and the line sum


def line_sum(composition, x):
    order = engine._capped(composition, composition.guide.for_epsilon(float(x)))
    size = composition.guide.size(order, float(x))[0]
    try:
        return contour(composition, order, float(x), size).bounds(Fraction(x))
    except line_sums.TooManyTerms:
        return line_sums.smoothed(composition, order, float(x), size).bounds(Fraction(x))


@pytest.mark.parametrize("times", [5, 30, 200])
@pytest.mark.parametrize(
    "loss", [LaplaceLoss("0.3"), BoundedRangeLoss("0.4"), LaplaceLoss(2), BoundedRangeLoss(3)]
)
def test_residues_against_the_line_sum(loss, times):
    composition = composition_of(times * loss)
    exact = pieces(composition, 200 + 8 * times)
    assert exact is not None
    for x in (Fraction(1, 7), Fraction(1), Fraction(times) / 9):
        found = line_sum(composition, x)
        assert overlap(exact.bounds(x), found)
        with working_precision(200):
            wide = exact.bounds(x)
            assert not wide[1] > 0 or wide[1] - wide[0] <= wide[1] * arb(1e-9)


def test_the_largest_losses_are_known_from_both_sides():
    for profile in (
        40 * ApproxLoss("0.5") + 3 * DiscreteLaplaceLoss(2, 3),
        30 * RandomizedResponseLoss("0.5", 4),
    ):
        composition = composition_of(profile)
        greatest = composition.greatest()
        other = lattice(composition, 3.0)
        assert other is not None
        for x in (greatest - Fraction(1, 10), greatest - 3, greatest - 5):
            assert overlap(other.bounds(x), line_sum(composition, x))
        low, high = profile.delta(greatest - Fraction(1, 1000))
        assert 0 < low <= high < low * (1 + 1e-9)  # the lower bound is not 0 near the top


@pytest.mark.parametrize(
    "loss",
    [
        GaussianLoss(1),
        BoundedRangeLoss(1),
    ],
)
def test_closed_forms_against_the_line_sum(loss):
    for composition in loss.profile._directions():
        ((part, _),) = composition.parts
        for x in (Fraction(1, 10),):
            found = engine._precisely(partial(closed, part, x))
            assert overlap(found, line_sum(composition, x))


def test_smoothing_holds_the_truth():
    """A lattice treated as if it were none: the interval is wider, and holds the exact answer."""
    profile = 50 * DiscreteGaussianLoss(100) + 50 * DiscreteGaussianLoss(37)
    composition = composition_of(profile)
    exact = line_sum(composition, Fraction(4))
    order = composition.guide.for_epsilon(4.0)
    size = composition.guide.size(order, 4.0)[0]
    plan = line_sums._planned(composition, order, 4.0, size, 40)
    smoothed = line_sums._Builder(composition, plan, None, 40, 4000).contour()
    assert smoothed.smoothing > 0
    low, high = smoothed.bounds(Fraction(4))
    assert low <= exact[0] <= exact[1] <= high
    with working_precision(100):
        assert high - low < high * arb(1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_random_mixtures_by_brute_force(seed):
    """Few outcomes, no lattice: the sum over all of them."""
    source = random.Random(seed)
    epsilons = [Fraction(source.randint(1, 200), source.choice([97, 101, 103])) for _ in range(3)]
    counts = [source.randint(1, 3) for _ in epsilons]
    profile = sum(n * ApproxLoss(e) for n, e in zip(counts, epsilons, strict=True))
    flat = [e for n, e in zip(counts, epsilons, strict=True) for _ in range(n)]
    x = Fraction(source.randint(0, 100), 50)
    with working_precision(200):
        total = arb(0)
        for signs in itertools.product((1, -1), repeat=len(flat)):
            loss = sum((s * e for s, e in zip(signs, flat, strict=True)), Fraction(0))
            mass = math.prod(
                (1 / (1 + (-s * arb_of(e)).exp()) for s, e in zip(signs, flat, strict=True)),
                start=arb(1),
            )
            if loss > x:
                total += mass * -arb_of(x - loss).expm1()
        low, high = profile.delta(x)
        assert arb(low) <= total.upper() and total.lower() <= arb(high)
        assert high - low <= high * 1e-12


# ---------------------------------------------------------------- mutants


def seen(monkeypatch, cases=60):
    """Whether the comparison of the two engines sees that something is wrong."""
    source = random.Random(5)
    for _ in range(cases):
        profile, level = random_case(source)
        try:
            bounds = engine.epsilon_bounds(composition_of(profile), level)
            found = disagreement(profile, level, bounds)
        except AssertionError:
            return True
        if found is not None:
            return True
    return False


def test_a_missing_alias_is_seen(monkeypatch):
    original = Guide.width
    monkeypatch.setattr(Guide, "width", lambda *given: original(*given) / 40)
    monkeypatch.setattr(line_sums.Contour, "_alias", lambda *_: arb(0))
    assert seen(monkeypatch)


def test_a_wrong_kappa_is_seen(monkeypatch):
    wrong = lambda order: line_sums.kappa(order) * arb("1e-30")  # noqa: E731
    assert not seen(monkeypatch, 20)
    monkeypatch.setattr(whole_numbers, "kappa", wrong)
    monkeypatch.setattr(whole_numbers, "_BITS", 20)
    assert seen(monkeypatch)


@pytest.mark.parametrize("factor", ["1.0001", "0.9999"])
def test_a_wrong_moment_is_seen(monkeypatch, factor):
    original = line_sums._Builder._products
    monkeypatch.setattr(
        line_sums._Builder,
        "_products",
        lambda self, *given: [acb(arb(factor)) * value for value in original(self, *given)],
    )
    assert seen(monkeypatch)


def test_the_wrong_direction_is_seen():
    """Only one way of a sampled release: the other one costs more."""
    profile = 100 * SubsampledGaussianLoss("1/5", 1)
    removed, added = profile._directions()
    level = Fraction("1e-6")
    both = [engine.epsilon_bounds(way, level) for way in (removed, added)]
    assert max(low for low, _ in both) == profile.epsilon(level)[0]
    assert both[0][0] > both[1][1]
    lopsided = FiniteLoss([("9/10", "1/10"), ("1/10", "9/10")])
    skewed = FiniteLoss([("1/2", "9/10"), ("1/2", "1/10")])
    ways = [engine.delta_bounds(way, Fraction(1, 2)) for way in (20 * skewed)._directions()]
    assert not overlap(*ways)
    assert len(lopsided.directions()) == 1
