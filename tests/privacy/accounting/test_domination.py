"""Every pair dominates what it stands for: laws enumerated, profiles compared at many points."""

import itertools
import math
from fractions import Fraction

import pytest
from flint import arb

from lastbit.exact import arb_of, upper, working_precision
from lastbit.laws import DiscreteGaussian, DiscreteLaplace
from lastbit.privacy import (
    BoundedRangeLoss,
    DiscreteGaussianLoss,
    DiscreteLaplaceLoss,
    LaplaceLoss,
    RandomizedResponseLoss,
    ThresholdLoss,
)

POINTS = [Fraction(n, 10) for n in range(0, 40, 3)]


def hockey_stick(pairs, x):
    """The sum of (p - exp(x) q)_+, from above."""
    raised = arb_of(x).exp()
    return sum(((p - raised * q).nonnegative_part() for p, q in pairs), arb(0))


def shifted_pairs(law, distance, reach):
    """The masses of X and of X + distance, and all tails as one outcome on either side."""
    middle = [(law.mass(k), law.mass(k - distance)) for k in range(-reach, reach + 1)]
    left = (law.cumulative(-reach - 1), law.cumulative(-reach - 1 - distance))
    right = (law.cumulative(-reach - 1), law.cumulative(distance - reach - 1))  # symmetric
    return [*middle, left, right]


@pytest.mark.parametrize("distance", [1, 2, 5])
@pytest.mark.parametrize("law", [DiscreteLaplace(3), DiscreteGaussian(4), DiscreteLaplace("1/2")])
def test_losses_of_additive_noise_are_those_of_the_law(law, distance):
    kind = DiscreteLaplaceLoss if isinstance(law, DiscreteLaplace) else DiscreteGaussianLoss
    noise = law.scale if isinstance(law, DiscreteLaplace) else law.variance
    with working_precision(300):
        pairs = shifted_pairs(law, distance, 400 if noise >= 1 else 100)
        for x in POINTS:
            low, high = kind(noise, distance).profile.delta(x)
            exact = hockey_stick(pairs, x)
            assert low <= upper(exact) and arb(high) >= exact.lower() * (1 - arb(2) ** -100)


@pytest.mark.parametrize("moves", [(1, 1), (2, 1), (1, 1, 1), (3, 2)])
def test_one_coordinate_is_the_worst_for_laplace_noise(moves):
    """Vectors whose coordinates move by this much, against one that moves by the sum."""
    law, reach = DiscreteLaplace(2), 40 if len(moves) == 2 else 14
    one = DiscreteLaplaceLoss(2, sum(moves)).profile
    with working_precision(120):
        factors = [shifted_pairs(law, distance, reach) for distance in moves]
        joint = [
            (math.prod((p for p, _ in o), start=arb(1)), math.prod((q for _, q in o), start=arb(1)))
            for o in itertools.product(*factors)
        ]
        for x in POINTS[:6]:
            # merged tails are post-processing: what is found here is a lower bound
            assert hockey_stick(joint, x).lower() <= arb(one.delta(x)[1])


@pytest.mark.parametrize("distance", [1, 2, 7, 64])
def test_discrete_laplace_lies_between_continuous_ones(distance):
    """At lattice points it is continuous noise exactly; between, above it by less than claimed."""
    epsilon = Fraction(1)
    discrete = DiscreteLaplaceLoss(distance / epsilon, distance).profile
    with working_precision(200):
        more = Fraction(upper(2 * arb_of(epsilon / (2 * distance)).cosh().log()))
    inner, outer = LaplaceLoss(epsilon).profile, LaplaceLoss(epsilon + more).profile
    for n in range(40):
        x = Fraction(n, 40)
        assert inner.delta(x)[0] <= discrete.delta(x)[1]
        assert discrete.delta(x)[0] <= outer.delta(x)[1]
    for j in range(distance // 2 + 1):
        x = epsilon - Fraction(2 * j) * epsilon / distance
        low, high = discrete.delta(x)
        exact = inner.delta(x)
        assert low <= exact[1] and exact[0] <= high and high - low < 1e-14


def test_answers_kept_less_often_are_dominated():
    for categories in (2, 3, 6):
        profile = RandomizedResponseLoss(1, categories).profile
        with working_precision(200):
            most = arb(1).exp() / (arb(1).exp() + categories - 1)
            for keep in (most, most * arb(0.9), arb(1) / categories):
                other = (1 - keep) / (categories - 1)
                pairs = [(keep, other), (other, keep), *[(other, other)] * (categories - 2)]
                for x in POINTS[:4]:
                    assert hockey_stick(pairs, x).lower() <= arb(profile.delta(x)[1])


def test_exponential_mechanisms_are_dominated_by_bounded_range():
    """All utilities on a small grid, moved by up to one sensitivity each."""
    epsilon = Fraction(1)
    rate = epsilon / 2
    worst = {x: BoundedRangeLoss(epsilon).profile.delta(x)[1] for x in POINTS[:4]}
    close = 0.0
    with working_precision(80):
        for before in itertools.product((0, 1, 2), repeat=3):
            for change in itertools.product((-1, 0, 1), repeat=3):
                laws = []
                after = [u + d for u, d in zip(before, change, strict=True)]
                for utilities in (before, after):
                    weights = [arb_of(rate * u).exp() for u in utilities]
                    total = sum(weights, arb(0))
                    laws.append([w / total for w in weights])
                for x, bound in worst.items():
                    found = hockey_stick(list(zip(*laws, strict=True)), x)
                    assert found.lower() <= arb(bound)
                    close = max(close, float(found.mid()) / bound if bound else 0.0)
    assert close > 0.9  # and the bound is nearly met


@pytest.mark.parametrize("threshold", [3, 8, 20])
def test_every_key_is_dominated_by_the_threshold_pair(threshold):
    """Keys that both have, and keys that one has: both ways, by their exact laws."""
    law = DiscreteLaplace(2)
    profile = ThresholdLoss(2, threshold, 1).profile
    with working_precision(200):

        def outcomes(count):
            reach = range(threshold, threshold + 300)
            shown = [law.mass(v - count) if count else arb(0) for v in reach]
            hidden = law.cumulative(threshold - 1 - count) if count else arb(1)
            rest = law.cumulative(count - threshold - 300) if count else arb(0)
            return [*shown, hidden, rest]

        for one, other in [(0, 1), (1, 0), (1, 2), (2, 1), (10, 11), (11, 10)]:
            pairs = list(zip(outcomes(one), outcomes(other), strict=True))
            for x in POINTS:
                assert hockey_stick(pairs, x).lower() <= arb(profile.delta(x)[1])


def test_a_pair_without_the_told_part_would_not_dominate():
    """The mutant: thresholds accounted as plain noise."""
    with working_precision(200):
        shown = DiscreteLaplace(2).cumulative(1 - 8)
        assert shown.lower() > arb(DiscreteLaplaceLoss(2).profile.delta(1)[1])
