"""From kind to kind: every conversion against Decimals of 120 digits, and the extremes."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, example, given, settings, strategies as st

from lastbit.errors import IncompatibleGuarantees, InvalidParameter, LastbitError
from lastbit.privacy.compose import best_composition
from lastbit.privacy.guarantees import (
    ZCDP,
    ApproxDP,
    Guarantee,
    MetricDP,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
)
from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE
from tests.evidence import late
from tests.privacy.truth import (
    MARGIN,
    Law,
    concentrated_delta,
    concentrated_epsilon,
    decimal,
    decimals,
    exp,
    hockey_stick,
    judge,
    pure_delta,
    pure_epsilon,
    renyi_delta,
    renyi_epsilon,
    up_to_order_delta,
    up_to_order_epsilon,
    worst_pair,
)

CLOSE = Decimal("1e-12")
BEST_ORDER = Decimal("1e-9")

epsilons = st.fractions(min_value=Fraction(1, 10**6), max_value=30)
deltas = st.one_of(
    st.fractions(min_value=Fraction(1, 10**12), max_value=Fraction(99, 100)),
    st.integers(1, 250).map(lambda n: Fraction(1, 10**n)),
)
orders = st.fractions(min_value=Fraction(101, 100), max_value=200)
# from 1e-12 to 1e4, evenly in the exponent
densities = st.floats(-12, 4).map(lambda power: Fraction(10.0**power))


# ---------------------------------------------------------------- pure and approximate


@pytest.mark.evidence
@given(epsilons, st.fractions(0, 1))
@example(Fraction(1), Fraction(1, 2))
@example(Fraction(30), Fraction(999, 1000))
def test_pure_to_approximate_is_randomised_response(epsilon, share):
    wanted = epsilon * share
    assume(wanted < epsilon)
    found = PureDP(epsilon).to(ApproxDP, epsilon=wanted)
    with decimals():
        one, other = worst_pair(epsilon)
        judge(found.delta, hockey_stick(one, other, decimal(wanted)), tight=CLOSE)


@given(epsilons, deltas)
def test_pure_to_approximate_at_a_delta(epsilon, delta):
    found = PureDP(epsilon).to(ApproxDP, delta=delta)
    with decimals(400):
        truth = pure_epsilon(epsilon, 0, delta)
        judge(found.epsilon, truth, tight=CLOSE)
        assert found.epsilon <= epsilon  # a delta to spare never costs anything
        # and the number returned really has that delta
        assert pure_delta(epsilon, 0, found.epsilon) <= decimal(delta) * (1 + MARGIN)


@given(epsilons, deltas, st.fractions(0, 1))
@example(Fraction(1), Fraction(1, 10**6), Fraction(0))
def test_approximate_to_approximate_and_never_above_proposition_9(epsilon, delta, share):
    wanted = epsilon * share
    assume(wanted < epsilon)
    found = ApproxDP(epsilon, delta).to(ApproxDP, epsilon=wanted)
    with decimals():
        judge(found.delta, pure_delta(epsilon, delta, wanted), tight=CLOSE)
        printed = decimal(delta) + exp(epsilon) - exp(wanted)
        assert decimal(found.delta) <= max(printed, pure_delta(epsilon, delta, wanted)) * (
            1 + CLOSE
        )


def test_proposition_9_is_beaten_by_more_than_half():
    """(exp(e) - exp(e'))/(1 + exp(e)) in place of exp(e) - exp(e')."""
    found = ApproxDP(1, "1e-6").to(ApproxDP, epsilon="0.9")
    with decimals():
        assert decimal(found.delta) < (exp(1) - exp(Fraction(9, 10))) / Decimal("3.7")


@given(epsilons, deltas, deltas)
def test_approximate_to_approximate_at_a_delta(epsilon, one, other):
    small, large = sorted((one, other))
    found = ApproxDP(epsilon, small).to(ApproxDP, delta=large)
    with decimals():
        judge(found.epsilon, pure_epsilon(epsilon, small, large), tight=CLOSE)
    if small < large:
        assert ApproxDP(epsilon, large).to(ApproxDP, delta=small).epsilon == math.inf


@given(epsilons, deltas)
def test_what_needs_no_rounding_is_exact(epsilon, delta):
    assert PureDP(epsilon).to(ApproxDP) == ApproxDP(epsilon, 0)
    assert PureDP(epsilon).to(ProbabilisticDP) == ProbabilisticDP(epsilon, 0)
    assert ProbabilisticDP(epsilon, delta).to(ApproxDP) == ApproxDP(epsilon, delta)
    assert ApproxDP(epsilon, delta).to(ApproxDP, epsilon=epsilon) == ApproxDP(epsilon, delta)
    assert ApproxDP(epsilon, delta).to(ApproxDP, delta=delta) == ApproxDP(epsilon, delta)
    assert PureDP(epsilon).to(ApproxDP, epsilon=epsilon) == ApproxDP(epsilon, 0)
    assert PureDP(epsilon).to(PureDP) == PureDP(epsilon)
    assert MetricDP(epsilon, 7).to(PureDP, distance=21) == PureDP(3 * epsilon)


# ---------------------------------------------------------------- concentrated and Renyi


def divergence(one: Law, other: Law, alpha: Decimal) -> Decimal:
    """Renyi's, of a finite pair with full support."""
    total = sum(((p / other[x]).ln() * alpha).exp() * other[x] for x, p in one.items() if p)
    return Decimal(total).ln() / (alpha - 1)


@given(epsilons, orders)
@example(Fraction(1), Fraction(2))
@example(Fraction(30), Fraction(101, 100))
def test_pure_to_concentrated_and_renyi_covers_randomised_response(epsilon, alpha):
    """The promise is true of the worst case, at every order."""
    rho = PureDP(epsilon).to(ZCDP).rho
    loss = PureDP(epsilon).to(RenyiDP, alpha=alpha).epsilon
    with decimals():
        truth = divergence(*worst_pair(epsilon), decimal(alpha))
        assert truth <= decimal(loss) * (1 + MARGIN)
        assert truth <= decimal(alpha * rho) * (1 + MARGIN)
        assert truth >= decimal(loss) * (1 - CLOSE)
        assert decimal(rho) <= decimal(epsilon) ** 2 / 2
    assert loss <= min(epsilon, alpha * rho)


@pytest.mark.parametrize("epsilon", ["1/1000", "1", "3", "30"])
def test_no_smaller_rho_is_true_of_randomised_response(epsilon):
    """Near order 1 the divergence is all of alpha rho; a thousandth less is refused."""
    rho = PureDP(epsilon).to(ZCDP).rho
    alpha = 1 + Fraction(1, 10**7)
    with decimals():
        truth = divergence(*worst_pair(Fraction(epsilon)), decimal(alpha))
        assert truth <= decimal(alpha * rho)
        assert truth > decimal(alpha * rho * Fraction(999, 1000))


@pytest.mark.parametrize("epsilon", ["1/10", "1", "3"])
def test_what_was_promised_by_the_larger_rho_is_still_implied(epsilon):
    loss = Fraction(epsilon)
    assert PureDP(loss).implies(ZCDP(loss**2 / 2))
    assert not PureDP(loss).implies(ZCDP(loss**2 / 2 * Fraction(1, 2)))
    assert PureDP(loss).implies(RenyiDP(3, min(loss, 3 * loss**2 / 2)))


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**400), Fraction(10**9), math.inf, Fraction(0)])
def test_pure_to_concentrated_at_the_ends(epsilon):
    rho = PureDP(epsilon).to(ZCDP).rho
    assert rho <= epsilon and rho <= epsilon * epsilon / 2
    assert rho > 0 or epsilon == 0
    for alpha in (1 + Fraction(1, 10**40), 2, 10**30):
        assert PureDP(epsilon).to(RenyiDP, alpha=alpha).epsilon <= epsilon


@given(densities, orders)
def test_concentrated_to_renyi_is_exact(rho, alpha):
    assert ZCDP(rho).to(RenyiDP, alpha=alpha) == RenyiDP(alpha, alpha * rho)


@given(orders, epsilons, deltas)
@example(Fraction(30), Fraction(1), Fraction(99, 100))
def test_renyi_to_approximate_at_a_delta(alpha, loss, delta):
    """A divergence of one order bounds those below it: the best of them counts."""
    found = RenyiDP(alpha, loss).to(ApproxDP, delta=delta).epsilon
    with decimals():
        judge(found, up_to_order_epsilon(alpha, loss, delta), tight=CLOSE)


@given(orders, epsilons, st.fractions(0, 30))
@example(Fraction(30), Fraction(1), Fraction(9, 10))
def test_renyi_to_approximate_at_an_epsilon(alpha, loss, epsilon):
    found = RenyiDP(alpha, loss).to(ApproxDP, epsilon=epsilon).delta
    with decimals():
        judge(found, up_to_order_delta(alpha, loss, epsilon), tight=CLOSE)


@pytest.mark.thinned(one_in=6)
@pytest.mark.parametrize("alpha", ["1.01", late(2), 10, late(30), 500])
@pytest.mark.parametrize("epsilon", [0, late("0.5"), "0.9", late("1.1"), late(3)])
def test_the_best_order_below_against_a_plain_search(alpha, epsilon):
    """The judge judged, for one order."""
    order, loss, wanted = Fraction(alpha), Fraction(1), Fraction(epsilon)
    with decimals():
        truth = up_to_order_delta(order, loss, wanted)
        grid = [1 + decimal(order - 1) * (-Decimal(n) / 40).exp() for n in range(600)]
        best = min(renyi_delta(a, decimal(loss), decimal(wanted)) for a in grid)
        assert truth * (1 - MARGIN) <= best <= truth * Decimal("1.05")
        delta = decimal(Fraction(1, 20))
        truth = up_to_order_epsilon(order, loss, Fraction(1, 20))
        best = min(renyi_epsilon(a, decimal(loss), delta) for a in grid)
        assert truth * (1 - MARGIN) <= best <= truth * Decimal("1.05")


@pytest.mark.evidence
@given(densities, deltas)
@example(Fraction(1, 2), Fraction(1, 10**6))
@example(Fraction(1, 10**15), Fraction(1, 10**30))
@example(Fraction(1, 10**30), Fraction(1, 10**300))
@example(Fraction(10**12), Fraction(1, 10**300))
def test_concentrated_to_approximate_takes_the_best_order(rho, delta):
    found = ZCDP(rho).to(ApproxDP, delta=delta)
    with decimals():
        judge(found.epsilon, concentrated_epsilon(rho, delta), tight=BEST_ORDER)


@pytest.mark.evidence
@given(densities, st.floats(-6, 5).map(lambda power: Fraction(10.0**power)))
@example(Fraction(1, 2), Fraction(0))
@example(Fraction(1, 10**15), Fraction(1, 10**7))
def test_concentrated_to_approximate_at_an_epsilon(rho, epsilon):
    found = ZCDP(rho).to(ApproxDP, epsilon=epsilon)
    with decimals():
        judge(found.delta, concentrated_delta(rho, epsilon), tight=BEST_ORDER)


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("rho", ["1e-6", "0.01", "1/2", 10])
@pytest.mark.parametrize("delta", ["1e-12", late("1e-6"), late("0.01")])
def test_the_best_order_against_a_plain_search(rho, delta):
    """The judge judged: its own infimum is no higher than a fine grid of orders, and as low."""
    with decimals():
        rate, target = decimal(Fraction(rho)), decimal(Fraction(delta))
        truth = concentrated_epsilon(Fraction(rho), Fraction(delta))
        grid = (1 + (Decimal(n) / 50).exp() for n in range(-500, 700))
        best = min(renyi_epsilon(a, a * rate, target) for a in grid)
        assert truth <= best <= truth * (1 + Decimal("1e-3")) + Decimal("1e-30")


@pytest.mark.parametrize("rho", ["1e-9", "1e-4", "0.01", "0.1", "1/2", 1, 10, 1000])
@pytest.mark.parametrize("delta", ["1e-300", "1e-30", "1e-12", "1e-9", "1e-6", "1e-3", "0.1"])
def test_the_textbook_conversion_is_beaten(rho, delta):
    found = ZCDP(rho).to(ApproxDP, delta=delta).epsilon
    with decimals():
        density, need = decimal(Fraction(rho)), -decimal(Fraction(delta)).ln()
        assert decimal(found) < density + 2 * (density * need).sqrt()


@pytest.mark.parametrize("scale", [1, 5, 50])
def test_the_gaussian_itself_is_below_the_bound(scale):
    """A mechanism that has the promise: the discrete Gaussian, its hockey stick summed out."""
    reach = 12 * scale
    with decimals():
        weights = {k: exp(Fraction(-k * k, 2 * scale * scale)) for k in range(-reach, reach + 2)}
        total = sum(weights.values(), Decimal(0))
        one = {(k,): weights[k] / total for k in range(-reach, reach + 1)}
        other = {(k + 1,): p for (k,), p in one.items()}
        del one[(-reach,)]  # the cut tails lie outside both
        for epsilon in (Fraction(0), Fraction(1, 10), Fraction(1), Fraction(3)):
            bound = ZCDP(Fraction(1, 2 * scale * scale)).to(ApproxDP, epsilon=epsilon).delta
            assert hockey_stick(one, other, decimal(epsilon)) <= decimal(bound)


# ---------------------------------------------------------------- shapes


def families(rho: Fraction) -> list[Guarantee]:
    return [PureDP(rho), ApproxDP(rho, "1e-12"), ZCDP(rho), RenyiDP(3, rho)]


@given(epsilons, deltas, deltas)
def test_a_smaller_delta_costs_a_larger_epsilon(loss, one, other):
    small, large = sorted((one, other))
    for guarantee in families(loss):
        at_small = guarantee.to(ApproxDP, delta=small).epsilon
        at_large = guarantee.to(ApproxDP, delta=large).epsilon
        assert at_small * (1 + Fraction(1, 2**40)) >= at_large


@given(epsilons, epsilons, epsilons)
def test_a_larger_epsilon_leaves_a_smaller_delta(loss, one, other):
    small, large = sorted((one, other))
    for guarantee in families(loss):
        at_small = guarantee.to(ApproxDP, epsilon=small).delta
        at_large = guarantee.to(ApproxDP, epsilon=large).delta
        assert at_small * (1 + Fraction(1, 2**40)) >= at_large


@given(epsilons, epsilons, deltas)
def test_a_weaker_promise_converts_to_a_weaker_one(one, other, delta):
    small, large = sorted((one, other))
    for strong, weak in zip(families(small), families(large), strict=True):
        loss = weak.to(ApproxDP, delta=delta).epsilon
        assert strong.to(ApproxDP, delta=delta).epsilon <= loss * (1 + Fraction(1, 2**40))
        lost = weak.to(ApproxDP, epsilon=1).delta
        assert strong.to(ApproxDP, epsilon=1).delta <= lost * (1 + Fraction(1, 2**40))


@given(epsilons, deltas)
def test_there_and_back_promises_no_more(loss, delta):
    """delta -> epsilon -> delta: rounded up twice, so not below where it began."""
    for guarantee in (PureDP(loss), ApproxDP(loss, "1e-260"), ZCDP(loss)):
        epsilon = guarantee.to(ApproxDP, delta=delta).epsilon
        if epsilon in (0, math.inf):
            continue
        back = guarantee.to(ApproxDP, epsilon=epsilon).delta
        assert back <= delta * (1 + Fraction(1, 2**30))


# ---------------------------------------------------------------- extremes


@pytest.mark.parametrize("power", range(-30, 13, 3))
@pytest.mark.parametrize("delta", ["1e-300", "1e-9", "0.5", "0.9999999999"])
def test_concentrated_extremes(power, delta):
    rho = Fraction(10) ** power
    found = ZCDP(rho).to(ApproxDP, delta=delta)
    with decimals():
        judge(found.epsilon, concentrated_epsilon(rho, Fraction(delta)), tight=BEST_ORDER)


@pytest.mark.parametrize("epsilon", ["1e-300", "1e-30", 1, 700, 10**4, 10**6])
@pytest.mark.parametrize("delta", ["1e-300", "1e-9", "0.5"])
def test_pure_extremes(epsilon, delta):
    exact = Fraction(epsilon)
    with decimals(800):
        loss = PureDP(epsilon).to(ApproxDP, delta=delta).epsilon
        assert loss <= exact
        judge(loss, pure_epsilon(exact, 0, Fraction(delta)), tight=CLOSE)
        lost = PureDP(epsilon).to(ApproxDP, epsilon=exact / 2).delta
        judge(lost, pure_delta(exact, 0, exact / 2), tight=CLOSE)


@pytest.mark.parametrize("size", ["1e-400", "1e-30", 1, "1e30", "1e400"])
@pytest.mark.parametrize("other", ["1e-400", "1e-30", 1, "1e30", "1e400"])
def test_beyond_the_floats_there_is_no_crash_and_no_nan(size, other):
    for guarantee in (PureDP(size), ApproxDP(size, "1e-400"), ZCDP(size), RenyiDP(2, size)):
        for result in (
            guarantee.to(ApproxDP, epsilon=other),
            guarantee.to(ApproxDP, delta="1e-400"),
            guarantee.to(ApproxDP, delta="0.5"),
            guarantee.to(ApproxDP, delta=0),
            guarantee.to(ApproxDP, delta=1),
        ):
            assert result.epsilon >= 0  # which NaN is not
            assert 0 <= result.delta <= 1
    order = 1 + Fraction(other)
    assert RenyiDP(order, size).to(ApproxDP, epsilon=1).delta <= 1
    assert ZCDP(size).to(RenyiDP, alpha=order).epsilon > 0


@pytest.mark.parametrize("kind", [PureDP, ZCDP, lambda e: ApproxDP(e, "1e-9")])
def test_where_nothing_is_promised_nothing_is_found(kind):
    nothing = kind(math.inf)
    assert nothing.to(ApproxDP, delta="1e-6").epsilon == math.inf
    assert nothing.to(ApproxDP, epsilon=10**6).delta == 1
    assert nothing.to(ApproxDP, delta=1).epsilon == 0


@pytest.mark.parametrize("guarantee", [PureDP(0), ZCDP(0), ApproxDP(0, 0)])
def test_where_nothing_is_lost_nothing_is_claimed_lost(guarantee):
    assert guarantee.to(ApproxDP, delta=0).epsilon == 0
    assert guarantee.to(ApproxDP, epsilon=0).delta == 0


@pytest.mark.parametrize("guarantee", [PureDP(9), ApproxDP(9, "1e-9"), ZCDP(9), RenyiDP(2, 9)])
def test_at_delta_one_everything_is_private(guarantee):
    assert guarantee.to(ApproxDP, delta=1) == ApproxDP(0, 1)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": 1, "delta": "1e-9"},
        {"delta": -1},
        {"delta": 2},
        {"delta": math.nan},
        {"delta": True},
        {"delta": "tiny"},
        {"epsilon": -1},
        {"epsilon": math.nan},
        {"epsilon": True},
    ],
)
@pytest.mark.parametrize("guarantee", [PureDP(1), ApproxDP(1, "1e-9"), ZCDP(1), RenyiDP(2, 1)])
def test_parameters_without_meaning(guarantee, parameters):
    with pytest.raises(InvalidParameter, match=r"delta|epsilon"):
        guarantee.to(ApproxDP, **parameters)


def test_a_concentrated_guarantee_needs_a_delta_or_an_epsilon():
    for guarantee in (ZCDP(1), RenyiDP(2, 1)):
        with pytest.raises(InvalidParameter, match="pass delta= or epsilon="):
            guarantee.to(ApproxDP)


@pytest.mark.parametrize(
    ("guarantee", "kind", "parameters"),
    [
        (PureDP(1), ZCDP, {"delta": "1e-9"}),
        (PureDP(1), RenyiDP, {}),
        (PureDP(1), RenyiDP, {"delta": 1}),
        (ZCDP(1), RenyiDP, {"alpha": 2, "delta": 1}),
        (MetricDP(1), PureDP, {}),
        (PureDP(1), ApproxDP, {"rho": 1}),
    ],
)
def test_a_parameter_too_many_or_too_few_is_not_ignored(guarantee, kind, parameters):
    with pytest.raises((ValueError, TypeError)):
        guarantee.to(kind, **parameters)


@pytest.mark.parametrize(
    ("guarantee", "kind"),
    [
        (ApproxDP(1, "1e-9"), PureDP),
        (ApproxDP(1, "1e-9"), ProbabilisticDP),
        (ApproxDP(1, "1e-9"), ZCDP),
        (ApproxDP(1, "1e-9"), RenyiDP),
        (ProbabilisticDP(1, "1e-9"), PureDP),
        (ProbabilisticDP(1, "1e-9"), ZCDP),
        (ZCDP(1), PureDP),
        (ZCDP(1), ProbabilisticDP),
        (RenyiDP(2, 1), PureDP),
        (RenyiDP(2, 1), ZCDP),
        (MetricDP(1), ApproxDP),
        (MetricDP(1), ZCDP),
        (PureDP(1), MetricDP),
    ],
)
def test_what_does_not_follow_does_not_convert(guarantee, kind):
    with pytest.raises(IncompatibleGuarantees, match="ApproxDP"):
        guarantee.to(kind)
    assert (
        not guarantee.implies(
            kind(2, "1e-3")
            if kind in (ApproxDP, ProbabilisticDP)
            else (kind(2, 9) if kind is RenyiDP else kind(9))
        )
        or kind is ApproxDP
    )


def test_neighbours_stay():
    for guarantee in families(Fraction(1)):
        declared = guarantee.under(CHANGE_ONE)
        assert declared.to(ApproxDP, delta="1e-6").neighbours == CHANGE_ONE


# ---------------------------------------------------------------- implies

sample = st.one_of(
    st.builds(PureDP, epsilons),
    st.builds(ApproxDP, epsilons, deltas),
    st.builds(ProbabilisticDP, epsilons, deltas),
    st.builds(ZCDP, densities),
    st.builds(RenyiDP, orders, epsilons),
    st.builds(MetricDP, epsilons, st.just(3)),
    st.builds(MetricDP, epsilons, st.just(3), slack=st.fractions(0, 5)),
)


@given(sample)
@example(PureDP(math.inf))
@example(ApproxDP(math.inf, 0))
@example(ApproxDP(0, 1))
@example(RenyiDP(2, math.inf))
def test_everything_implies_itself(guarantee):
    assert guarantee.implies(guarantee)


def weakened(guarantee: Guarantee, draw: st.DrawFn, *, along: bool) -> Guarantee:
    """Something that follows, one of several ways, with a little or much to spare."""
    more = 1 + draw(st.sampled_from([Fraction(0), Fraction(1, 10**6), Fraction(1)]))
    match guarantee:
        case PureDP():
            ways: list[Guarantee] = [
                PureDP(guarantee.epsilon * more),
                guarantee.to(ApproxDP, epsilon=guarantee.epsilon * draw(st.fractions(0, 1))),
                guarantee.to(ZCDP),
                guarantee.to(RenyiDP, alpha=draw(orders)),
                guarantee.to(ProbabilisticDP),
            ]
        case ApproxDP():
            ways = [ApproxDP(guarantee.epsilon * more, guarantee.delta)]
            if along:
                share = draw(st.fractions(0, 1))
                ways.append(guarantee.to(ApproxDP, epsilon=guarantee.epsilon * share))
        case ProbabilisticDP():
            ways = [
                ProbabilisticDP(guarantee.epsilon * more, guarantee.delta),
                guarantee.to(ApproxDP),
            ]
        case ZCDP():
            ways = [
                ZCDP(guarantee.rho * more),
                guarantee.to(RenyiDP, alpha=draw(orders)),
                guarantee.to(ApproxDP, epsilon=draw(epsilons)),
            ]
        case RenyiDP():
            lower = 1 + (guarantee.alpha - 1) * draw(st.fractions(Fraction(1, 100), 1))
            ways = [
                RenyiDP(lower, guarantee.epsilon * more),
                guarantee.to(ApproxDP, epsilon=draw(epsilons)),
            ]
        case _:
            slack = guarantee.slack
            ways = [
                MetricDP(guarantee.epsilon * more, guarantee.per, slack=slack),
                MetricDP(guarantee.epsilon, guarantee.per, slack=slack * more),
            ]
    return draw(st.sampled_from(ways))


@st.composite
def chains(draw: st.DrawFn) -> list[Guarantee]:
    links = [draw(sample)]
    for _ in range(draw(st.integers(1, 3))):
        # One point of a divergence's curve, taken for an approximate guarantee, can imply more than
        # the curve does, as CKS20's bound is not tight: no steps along it after a divergence.
        along = not any(isinstance(link, ZCDP | RenyiDP) for link in links)
        links.append(weakened(links[-1], draw, along=along))
    return links


@pytest.mark.evidence
@given(chains())
@example([RenyiDP(30, 1), RenyiDP(10, 1), ApproxDP("0.9", "0.1")])
@settings(max_examples=300)
def test_implication_is_transitive(links):
    """Along a chain every later promise follows from every earlier one, but for the last bits."""
    for first in range(len(links)):
        for last in range(first + 1, len(links)):
            assert links[first].implies(loosened(links[last]))


def loosened(guarantee: Guarantee) -> Guarantee:
    """Weaker by 2**-30: conversions round up, and a chain rounds more often than one step."""
    more = 1 + Fraction(1, 2**30)
    match guarantee:
        case ApproxDP():
            return ApproxDP(guarantee.epsilon * more, min(guarantee.delta * more, Fraction(1)))
        case ZCDP():
            return ZCDP(guarantee.rho * more)
        case RenyiDP():
            return RenyiDP(guarantee.alpha, guarantee.epsilon * more)
    return guarantee


@pytest.mark.evidence
@given(sample, sample, sample)
@settings(max_examples=300)
def test_implication_is_transitive_among_strangers(one, other, third):
    if isinstance(one, ZCDP | RenyiDP) and isinstance(other, ApproxDP):
        return  # see the comment in `chains`
    if one.implies(other) and other.implies(third):
        assert one.implies(third)


@pytest.mark.evidence
@given(epsilons, deltas, epsilons, deltas)
def test_implication_claims_nothing_false(epsilon, delta, other_epsilon, other_delta):
    """Against the exact hockey stick of the worst pair, which has the first promise."""
    target = ApproxDP(other_epsilon, other_delta)
    with decimals(400):
        for guarantee, pair in (
            (PureDP(epsilon), worst_pair(epsilon)),
            (ApproxDP(epsilon, delta), worst_pair(epsilon, delta)),
            (ProbabilisticDP(epsilon, delta), worst_pair(epsilon, delta)),
        ):
            truth = hockey_stick(*pair, decimal(other_epsilon))
            claimed = guarantee.implies(target)
            assert not claimed or truth <= decimal(other_delta) * (1 + MARGIN)
            # nor does it miss what is clearly true
            assert claimed or truth * (1 + CLOSE) > decimal(other_delta)


@given(epsilons, st.fractions(min_value=Fraction(1, 10**6), max_value=400))
def test_implication_of_a_density_claims_nothing_false(epsilon, rho):
    """Randomised response of epsilon has no density below its relative entropy."""
    with decimals():
        entropy = decimal(epsilon) * (exp(epsilon) - 1) / (exp(epsilon) + 1)
        if PureDP(epsilon).implies(ZCDP(rho)):
            assert entropy <= decimal(rho) * (1 + MARGIN)
        if PureDP(epsilon).implies(RenyiDP(2, rho)):
            assert divergence(*worst_pair(epsilon), Decimal(2)) <= decimal(rho) * (1 + MARGIN)


@given(sample, epsilons, deltas)
def test_implication_is_monotone(guarantee, epsilon, delta):
    if isinstance(guarantee, MetricDP):
        return
    if guarantee.implies(ApproxDP(epsilon, delta)):
        assert guarantee.implies(ApproxDP(epsilon * 2, delta))
        assert guarantee.implies(ApproxDP(epsilon, (1 + delta) / 2))


def test_what_is_not_implied():
    assert not ApproxDP(1, "1e-9").implies(PureDP(10**6))
    assert not ApproxDP(1, "1e-9").implies(ProbabilisticDP(1, "1e-9"))  # paper 003 Prop. 4
    assert not ApproxDP(1, "1e-9").implies(ZCDP(10**6))
    assert not ZCDP(1).implies(PureDP(10**6))
    assert not RenyiDP(2, 1).implies(RenyiDP(3, 1))
    assert not RenyiDP(2, 1).implies(ZCDP(10**6))
    assert not PureDP(1).implies(MetricDP(10**6))
    assert not MetricDP(1, 1, "m").implies(MetricDP(1, 1, "km"))
    assert not PureDP(1, neighbours=ADD_REMOVE).implies(PureDP(1, neighbours=CHANGE_ONE))
    assert not PureDP(1).implies(PureDP(1, neighbours=ADD_REMOVE))
    assert MetricDP(1, 2, "m").implies(MetricDP(2, 3, "m"))


@given(epsilons, epsilons, st.fractions(0, 5), st.fractions(0, 5))
def test_metric_implication_is_that_of_all_distances(one, other, s, t):
    """Straight lines: near 0 and far away decide, and nothing between says otherwise."""
    here, there = MetricDP(one, 2, "m", slack=s), MetricDP(other, 3, "m", slack=t)
    distances = [
        Fraction(1, 10**30),
        Fraction(1, 7),
        Fraction(1),
        Fraction(10**3),
        Fraction(10**30),
    ]
    below = [here.at(d).epsilon <= there.at(d).epsilon for d in distances]
    if here.implies(there):
        assert all(below)
    elif here.epsilon / 2 > there.epsilon / 3:
        assert not below[-1]
    else:
        assert not below[0]


def test_metric_implication_with_a_slack():
    assert MetricDP(1).implies(MetricDP(1, slack=1))
    assert not MetricDP(1, slack=1).implies(MetricDP(1))
    assert MetricDP(1, slack=2).implies(MetricDP(2, slack=1))
    assert not MetricDP(1, slack=3).implies(MetricDP(2, slack=1))
    assert MetricDP(0, slack=9).implies(MetricDP(0))
    assert MetricDP(10**400).implies(MetricDP(math.inf))
    assert not MetricDP(math.inf).implies(MetricDP(10**400))


@given(sample)
def test_everything_implies_nothing_promised(guarantee):
    if not isinstance(guarantee, MetricDP):
        assert guarantee.implies(ApproxDP(math.inf, 0))
        assert guarantee.implies(ApproxDP(0, 1))


@pytest.mark.parametrize(
    "convert",
    [
        lambda: PureDP(1).to("ApproxDP"),  # type: ignore[arg-type]
        lambda: PureDP(1).to(ApproxDP, foo=1),
        lambda: ZCDP(1).to(RenyiDP, order=3),
        lambda: ZCDP(1).to(RenyiDP),
        lambda: ZCDP(1).to(ApproxDP),
        lambda: MetricDP(1).to(PureDP),
        lambda: PureDP(1).to(ZCDP, delta=0.1),
        lambda: PureDP(1).implies(3),
        lambda: best_composition([1], 0),  # type: ignore[list-item]
        lambda: best_composition(None, 0),  # type: ignore[arg-type]
    ],
)
def test_senseless_questions_get_clear_errors(convert):
    with pytest.raises(LastbitError):
        convert()


def test_a_huge_loss_still_composes():
    assert best_composition([PureDP(10**400)], 0).epsilon == 10**400
