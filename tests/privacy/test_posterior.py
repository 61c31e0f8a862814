"""What can be believed afterwards: equation (5) of paper 003, both ends."""

import math
from fractions import Fraction

import pytest
from hypothesis import example, given, strategies as st

from lastbit.errors import InvalidParameter
from lastbit.privacy.convert import posterior_bounds
from lastbit.privacy.guarantees import ZCDP, ApproxDP, ProbabilisticDP, PureDP
from tests.privacy.truth import decimals, judge, posterior

priors = st.fractions(min_value=Fraction(1, 10**12), max_value=1 - Fraction(1, 10**12))
epsilons = st.one_of(
    st.fractions(min_value=Fraction(1, 10**9), max_value=40), st.floats(1e-12, 40).map(Fraction)
)


@given(priors, epsilons)
@example(Fraction(1, 2), Fraction(1))
@example(Fraction(1, 10**12), Fraction(40))
def test_equation_5(prior, epsilon):
    low, high = posterior_bounds(prior, PureDP(epsilon))
    with decimals():
        least, most = posterior(prior, epsilon)
        judge(low, least, side="lower")
        judge(high, most)


@given(priors, st.fractions(min_value=0, max_value=1), st.fractions(Fraction(1, 999), 9))
def test_bayes_rule_stays_inside(prior, share, epsilon):
    """Whatever a mechanism answers: a likelihood ratio in range gives a belief in range."""
    low, high = posterior_bounds(prior, PureDP(epsilon))
    ratio = 1 + share * epsilon  # at most exp(epsilon)
    for likelihood in (ratio, 1 / ratio):
        belief = prior * likelihood / (prior * likelihood + 1 - prior)
        assert low <= belief <= high


@given(priors, epsilons)
def test_the_two_ends_mirror_each_other(prior, epsilon):
    """Believing the opposite: (5) for 1 - p is 1 minus (5) for p, up to the last bit."""
    low, high = posterior_bounds(prior, PureDP(epsilon))
    mirrored_low, mirrored_high = posterior_bounds(1 - prior, PureDP(epsilon))
    assert low <= prior <= high
    assert abs((1 - Fraction(mirrored_high)) - Fraction(low)) <= Fraction(1, 2**52)
    assert abs((1 - Fraction(mirrored_low)) - Fraction(high)) <= Fraction(1, 2**52)


@given(priors, epsilons, epsilons)
def test_a_larger_loss_moves_a_belief_further(prior, one, other):
    small, large = sorted((one, other))
    low, high = posterior_bounds(prior, PureDP(small))
    lower, higher = posterior_bounds(prior, PureDP(large))
    assert lower <= low <= high <= higher


@pytest.mark.parametrize("epsilon", [0, 1, "1e-400", 10**6, 10**300, math.inf])
@pytest.mark.parametrize("prior", [0, 1])
def test_certainty_stays_certain(prior, epsilon):
    assert posterior_bounds(prior, PureDP(epsilon)) == (prior, prior)


@pytest.mark.parametrize("prior", ["1/2", "0.1", "1/3", 5e-324, "1e-400"])
def test_the_ends_of_the_scale(prior):
    exact = Fraction(prior)
    low, high = posterior_bounds(prior, PureDP(0))
    assert low <= exact <= high <= max(math.nextafter(low, 1), low)
    assert posterior_bounds(prior, PureDP(math.inf)) == (0.0, 1.0)
    for epsilon in ("1e-400", 10**6, 10**300):
        low, high = posterior_bounds(prior, PureDP(epsilon))
        assert 0 <= low <= exact <= high <= 1


@pytest.mark.parametrize("prior", [-1, "1.0001", math.nan, math.inf, "half", True, None])
def test_a_prior_is_a_probability(prior):
    with pytest.raises(InvalidParameter, match=r"^prior "):
        posterior_bounds(prior, PureDP(1))


@pytest.mark.parametrize("guarantee", [ApproxDP(1, 0), ProbabilisticDP(1, 0), ZCDP(1), 1, None])
def test_only_a_pure_guarantee_bounds_every_belief(guarantee):
    with pytest.raises(InvalidParameter, match="PureDP"):
        posterior_bounds("1/2", guarantee)
