"""The Gaussian filter: its prices, its limit, and the worst adversary against it."""

import math
import random
from decimal import Decimal
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given, strategies as st

from lastbit.errors import IncompatibleGuarantees, InvalidParameter, WrongType
from lastbit.exact import arb_of, working_precision
from lastbit.privacy import (
    ADD_REMOVE,
    ZCDP,
    ApproxDP,
    ApproxLoss,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    GaussianCost,
    GaussianFilter,
    GaussianLoss,
    PureDP,
    moment_filter,
)
from lastbit.privacy.filter import grid_ceiling, grid_floor
from lastbit.privacy.gaussian_filter import gaussian_delta
from lastbit.privacy.gaussian_pair import step_mu_squared
from tests.privacy.adversary import Step, gaussian, largest, response, worst_delta
from tests.privacy.truth import decimal, decimals

NOTHING = GaussianCost()


# ---------------------------------------------------------------- prices and limits


@pytest.mark.parametrize("epsilon", ["1e-9", "1/10", "1", "5", "60", "1000"])
def test_a_pure_price_is_the_quantile_rounded_up(epsilon):
    """A pair of Gaussians so far apart dominates randomised response, and hardly more."""
    loss = Fraction(epsilon)
    price = GaussianFilter(epsilon=1, delta="1e-6").price(epsilon=loss).mu_squared
    with working_precision(400):
        half = arb_of(price).sqrt() / 2
        tail = (half / arb(2).sqrt()).erfc() / 2
        level = 1 / (1 + arb_of(loss).exp())
        assert tail <= level
        less = ((half * (1 - arb(2) ** -18)) / arb(2).sqrt()).erfc() / 2
        assert less > level or loss < Fraction(1, 10**6)  # a multiple of 2**-64
    if loss <= 5:
        one, pair = ApproxLoss(loss).profile, GaussianLoss(price).profile
        for n in range(10):
            assert one.delta(loss * n / 10)[0] <= pair.delta(loss * n / 10)[1]


@pytest.mark.parametrize(("epsilon", "delta"), [(5, "1e-6"), ("1/10", "1e-9"), (1, "1/10")])
def test_the_limit_is_the_greatest_mu(epsilon, delta):
    kept = GaussianFilter(epsilon=epsilon, delta=delta)
    assert Fraction(GaussianLoss(kept.limit).profile.delta(epsilon)[1]) <= Fraction(delta)
    more = GaussianLoss(kept.limit * (1 + Fraction(1, 2**40)))
    assert Fraction(more.profile.delta(epsilon)[0]) > Fraction(delta)


def far_tails():
    """Very small and very large mu, where the two terms of the profile nearly cancel."""
    return st.tuples(
        st.integers(-60, 12).map(lambda n: Fraction(2) ** n),
        st.sampled_from([Fraction(1, 10**6), Fraction(1, 3), Fraction(5), Fraction(1000)]),
    )


@given(far_tails())
def test_the_delta_of_a_pair_is_that_of_the_accountant(place):
    mu_squared, epsilon = place
    low, high = GaussianLoss(mu_squared).profile.delta(epsilon)
    assert Fraction(low) <= gaussian_delta(mu_squared, epsilon, 1200) <= Fraction(high)


def test_grids_round_to_the_safe_side():
    third = Fraction(1, 3)
    assert 0 < grid_ceiling(third) - third < Fraction(1, 2**64)
    assert 0 < third - grid_floor(third) < Fraction(1, 2**64)
    assert grid_ceiling(Fraction(5, 2**64)) == grid_floor(Fraction(5, 2**64)) == Fraction(5, 2**64)


def test_prices_of_noise():
    kept = GaussianFilter(epsilon=5, delta="1e-6", delta_kept="1e-7")
    vector = kept.price_of(DiscreteGaussianVectorLoss(100, 9))
    assert vector == kept.price_of(DiscreteGaussianLoss(100, 3))
    assert 0 <= vector.mu_squared - 9 * step_mu_squared(Fraction(100)) < Fraction(1, 2**64)
    assert kept.price_of(GaussianLoss("1/4")).mu_squared == Fraction(1, 4)
    assert kept.price_of(DiscreteGaussianLoss("1/10", 0)) == NOTHING
    both = kept.price_of(ApproxDP("0.1", "1e-9"))
    assert both == kept.price_of(PureDP("0.1")) + kept.price(delta="1e-9")
    assert 3 * both == both + both + both


def test_more_gaussian_answers_fit_than_under_the_moment_filter():
    kept, moments = (
        GaussianFilter(epsilon="5.1", delta="1e-6"),
        moment_filter("5.1", "1e-6", delta_kept=0),
    )
    ours = kept.answers_left(NOTHING, kept.price_of(DiscreteGaussianVectorLoss(1000, 4)))
    theirs = moments.answers_left(moments.price(), moments.price(rho=Fraction(4, 2000)))
    assert ours is not None and theirs is not None and 1.1 < ours / theirs < 1.2
    spent = ours * kept.price_of(DiscreteGaussianVectorLoss(1000, 4))
    assert kept.within(spent)
    assert not kept.allows(spent, kept.price_of(DiscreteGaussianVectorLoss(1000, 4)))
    # what was fixed beforehand is no cheaper
    assert (ours * DiscreteGaussianVectorLoss(1000, 4)).epsilon("1e-6")[1] <= 5.1
    assert ((ours + 1) * DiscreteGaussianVectorLoss(1000, 4)).epsilon("1e-6")[0] > 5.1


def test_what_is_left():
    kept = GaussianFilter(epsilon=1, delta="1e-6", delta_kept="1e-7")
    assert kept.answers_left(NOTHING, NOTHING) is None
    assert kept.answers_left(NOTHING, kept.price(delta="3e-8")) == 3
    assert not kept.allows(NOTHING, kept.price(delta="2e-7"))
    over = GaussianCost(mu_squared=kept.limit + 1)
    assert kept.left(over) == NOTHING and kept.answers_left(over, kept.price(epsilon=1)) == 0
    assert kept.left(kept.price(delta="1e-7")).delta == 0


def test_refusals():
    kept = GaussianFilter(epsilon=1, delta="1e-6")
    with pytest.raises(IncompatibleGuarantees, match="has no price here"):
        kept.price_of(ZCDP("0.1"))
    with pytest.raises(IncompatibleGuarantees, match="has no price here"):
        kept.price_of(ApproxLoss(1))
    with pytest.raises(IncompatibleGuarantees, match="same neighbours"):
        kept.price_of(GaussianLoss(1, neighbours=ADD_REMOVE))
    with pytest.raises(InvalidParameter, match="below 1/3"):
        kept.price_of(DiscreteGaussianLoss("1/10", 1))
    for epsilon, delta, delta_kept in (
        (0, "1e-6", 0),
        (10**6, "1e-6", 0),
        (1, 0, 0),
        (1, 1, 0),
        (1, "1e-6", "1e-6"),
    ):
        with pytest.raises(InvalidParameter):
            GaussianFilter(epsilon=epsilon, delta=delta, delta_kept=delta_kept)
    with pytest.raises(WrongType):
        GaussianCost(mu_squared=0.5)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter):
        GaussianCost(mu_squared=Fraction(-1))


# ---------------------------------------------------------------- the adversary


def _mu_squared(step: Step) -> Fraction:
    """The filter's price of an enumerated mechanism; `gaussian` moves by one step."""
    if step.rho:
        return step_mu_squared(1 / (2 * step.rho))
    return GaussianFilter(epsilon=1, delta="1/2").price(epsilon=step.epsilon).mu_squared


def _rule(kept: GaussianFilter, price=_mu_squared):
    prices: dict[Step, Fraction] = {}

    def allowed(steps):
        total = Fraction(0)
        for step, count in steps:
            if count:
                if step not in prices:
                    prices[step] = price(step)
                total += count * prices[step]
        deltas = sum((step.delta * count for step, count in steps), Fraction(0))
        return kept.within(GaussianCost(mu_squared=total, delta=deltas))

    return allowed


def _menu(rule, epsilon: Fraction, kept: Fraction, choices: random.Random) -> list[Step]:
    """The largest steps that fit a few times, of each kind."""
    times = choices.randint(1, 3)
    pure = largest(lambda e: rule([(response(e), times)]), 3 * epsilon + 3, 400)
    noise = largest(
        lambda r: rule([(Step(Fraction(0), Fraction(0), r, ()), times)]), Fraction(3, 2), 400
    )
    menu = [response(pure), response(pure / 2)]
    if noise:
        menu += [gaussian(noise, cut=choices.randint(0, 2)), gaussian(noise / 2)]
    if kept:
        menu.append(response(pure / 3, kept))
    return choices.sample(menu, min(3, len(menu)))


@pytest.mark.parametrize("seed", range(60))
def test_the_worst_adversary_stays_within_the_budget(seed):
    """As good as any strategy: at best it uses three quarters of delta (seed 22)."""
    choices = random.Random(seed)
    epsilon = choices.choice([Fraction(1, 2), Fraction(1), Fraction(2)])
    delta = choices.choice([Fraction(1, 10), Fraction(1, 50), Fraction(1, 1000)])
    kept = choices.choice([Fraction(0), delta / 4])
    filter_ = GaussianFilter(epsilon=epsilon, delta=delta, delta_kept=kept)
    rule = _rule(filter_)
    menu = _menu(rule, epsilon, kept, choices)
    with decimals(50):
        for turned in (False, True):
            steps = [step.turned() for step in menu] if turned else menu
            assert worst_delta(rule, steps, epsilon) <= decimal(delta) + Decimal("1e-30")


def test_the_adversary_finds_prices_that_are_too_low():
    """Mutants: mu = epsilon for pure answers, and mu = 0.7/sqrt(v) for noise."""
    filter_ = GaussianFilter(epsilon=1, delta="1/50")
    cheap = _rule(filter_, lambda step: step.epsilon**2 * Fraction(6, 10) or step.rho)
    found = Decimal(0)
    with decimals(50):
        for seed in range(6):
            menu = _menu(cheap, Fraction(1), Fraction(0), random.Random(seed))
            found = max(found, worst_delta(cheap, menu, Fraction(1)))
    assert found > Decimal("0.02")


def test_gaussian_answers_use_up_the_budget():
    """It is exact: continuous noise in one step, or in any number, has all of delta."""
    filter_ = GaussianFilter(epsilon=1, delta="1/50")
    low, high = GaussianLoss(filter_.limit).profile.delta(1)
    assert 0.02 - 1e-12 < low <= high <= 0.02
    assert math.isclose(float(filter_.limit), 0.52, rel_tol=0.5)
