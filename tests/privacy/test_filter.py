"""The moment filter: its prices, its proof in small, and the worst adversary against it."""

import math
import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from lastbit.errors import IncompatibleGuarantees, InvalidParameter, WrongType
from lastbit.privacy.best_order import best_order
from lastbit.privacy.filter import (
    NOTHING_SPENT,
    MomentCost,
    MomentFilter,
    moment_filter,
)
from lastbit.privacy.guarantees import ZCDP, ApproxDP, MetricDP, ProbabilisticDP, PureDP, RenyiDP
from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE
from tests.privacy.adversary import (
    composed_delta_of,
    gaussian,
    largest,
    menu_for,
    response,
    tree_delta,
    worst_delta,
    worst_excess,
)
from tests.privacy.truth import MARGIN, decimal, decimals, exp

UNIT = Fraction(1, 1 << 64)
LAST = Decimal("1e-40")  # trees are multiplied out with 50 digits
LOSSES = [Fraction(1, 2), Fraction(1), Fraction(2), Fraction(7, 2)]
LEVELS = [Fraction(3, 10), Fraction(1, 10), Fraction(1, 50), Fraction(1, 1000)]
ORDERS = [Fraction(1, 2), Fraction(1), Fraction(2), Fraction(5)]

orders = st.sampled_from([*ORDERS, Fraction(505, 100), Fraction(341, 10), Fraction(1670)])
epsilons = st.fractions(min_value=Fraction(1, 10**6), max_value=20, max_denominator=10**6)


# ---------------------------------------------------------------- prices and limits


def true_moment(epsilon, order):
    e, c = decimal(epsilon), decimal(order)
    return (((c + 1) * e).exp() + (-c * e).exp()).ln() - (1 + e.exp()).ln()


def true_limit(filter_):
    c = decimal(filter_.order)
    level = decimal(filter_.delta - filter_.delta_kept).ln()
    return c * decimal(filter_.epsilon) + level - c * c.ln() + (1 + c) * (1 + c).ln()


def filter_over_tenth(order: Fraction) -> MomentFilter:
    return MomentFilter(
        epsilon=Fraction(1), delta=Fraction(1, 10), order=order, delta_kept=Fraction(0)
    )


@given(epsilons, orders)
def test_a_price_is_the_true_moment_rounded_up_to_the_grid(epsilon, order):
    filter_ = filter_over_tenth(order)
    price = filter_.price(epsilon=epsilon).moment
    with decimals():
        truth = true_moment(epsilon, order)
        assert 0 <= decimal(price) - truth < decimal(UNIT)
    assert UNIT.denominator % price.denominator == 0


@given(epsilons, st.integers(1, 40), orders, st.fractions(0, Fraction(99, 100)))
def test_a_limit_is_the_true_one_rounded_down_to_the_grid(epsilon, power, order, share):
    delta = Fraction(1, 10) ** power
    filter_ = MomentFilter(epsilon=epsilon, delta=delta, order=order, delta_kept=delta * share)
    with decimals():
        truth = true_limit(filter_)
        assert 0 <= truth - decimal(filter_.limit) < decimal(UNIT) * (1 + MARGIN)


def test_a_limit_on_the_grid_is_not_decided_and_goes_one_step_down():
    filter_ = MomentFilter(
        epsilon=Fraction(1), delta=Fraction(1, 4), order=Fraction(1), delta_kept=Fraction(0)
    )
    assert filter_.limit == 1 - UNIT  # 1 + ln(1/4) - ln(1/4)


@pytest.mark.parametrize("epsilon", ["1e-300", "1e-40"])
def test_a_price_is_never_nothing(epsilon):
    assert moment_filter(1, "1e-6").price(epsilon=epsilon).moment == UNIT


@pytest.mark.parametrize("epsilon", [10**5, 10**11, Fraction(10**20 + 1, 10**9)])
def test_a_large_price_is_next_to_the_plain_one(epsilon):
    filter_ = filter_over_tenth(Fraction(505, 100))
    plain = filter_.order * epsilon
    assert plain <= filter_.price(epsilon=epsilon).moment < plain + UNIT


def test_concentrated_prices_are_exact_and_all_add_up():
    filter_ = moment_filter(3, "1e-6")
    rho = filter_.price(rho="1/3")
    assert rho.moment == filter_.order * (filter_.order + 1) / 3
    both = filter_.price(epsilon="0.1", delta="1e-9", rho="1/3")
    assert both == rho + filter_.price(epsilon="0.1", delta="1e-9")
    assert 3 * rho == rho + rho + rho == rho * 3


@settings(max_examples=50)
@given(st.lists(st.integers(1, 100), min_size=2, max_size=5), epsilons, orders, st.data())
def test_no_pure_law_has_a_greater_moment_than_its_price(weights, epsilon, order, data):
    """Laws whose ratios lie anywhere in [exp(-e), exp(e)]: two ratios, mixed to have mean 1."""
    price = filter_over_tenth(order).price(epsilon=epsilon)
    with decimals():
        total, c = Decimal(0), decimal(order)
        for weight in weights:  # each pair of ratios is a law of its own; their mixture is one too
            up = data.draw(st.fractions(Fraction(1, 50), 1, max_denominator=50))
            down = data.draw(st.fractions(Fraction(1, 50), 1, max_denominator=50))
            high, low = exp(epsilon * up), exp(-epsilon * down)
            share = (1 - low) / (high - low)
            moment = share * high ** (c + 1) + (1 - share) * low ** (c + 1)
            total += moment * weight
        assert total / sum(weights) <= decimal(price.moment).exp() * (1 + MARGIN)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=6))
def test_laws_split_as_the_proof_says(pairs):
    """Step 1 of the proof, done in fractions; exp(e) = 2."""
    p_total, q_total = sum(p for p, _ in pairs), sum(q for _, q in pairs)
    if not p_total or not q_total:
        return
    p = [Fraction(a, p_total) for a, _ in pairs]
    q = [Fraction(b, q_total) for _, b in pairs]
    d = max(
        sum(max(a - 2 * b, Fraction(0)) for a, b in zip(p, q, strict=True)),
        sum(max(b - 2 * a, Fraction(0)) for a, b in zip(p, q, strict=True)),
    )
    if d == 1:
        return
    f = [min(a, 2 * b) for a, b in zip(p, q, strict=True)]
    g = [min(b, 2 * a) for a, b in zip(p, q, strict=True)]
    turned = sum(f) < sum(g)
    if turned:
        f, g = g, f
    least = [min(a, b) for a, b in zip(f, g, strict=True)]
    gap = sum(f) - sum(least)
    share = Fraction(sum(f) - sum(g)) / gap if gap else Fraction(0)
    assert 0 <= share <= 1
    mixed = [(1 - share) * a + share * b for a, b in zip(f, least, strict=True)]
    scale = Fraction(1 - d) / sum(g)
    assert scale <= 1
    one, other = [scale * a for a in mixed], [scale * b for b in g]
    if turned:
        one, other = other, one
    assert sum(one) == sum(other) == 1 - d
    assert all(a <= full for a, full in zip(one, p, strict=True))
    assert all(b <= full for b, full in zip(other, q, strict=True))
    assert all(a <= 2 * b and b <= 2 * a for a, b in zip(one, other, strict=True))


@given(st.fractions(Fraction(1, 100), 50), st.fractions(Fraction(1, 1000), 20))
def test_the_inequality_of_step_4_and_where_it_is_sharp(order, y):
    with decimals():
        c = decimal(order)
        k = (c * c.ln() - (1 + c) * (1 + c).ln()).exp()
        assert 1 - (-decimal(y)).exp() <= k * (c * decimal(y)).exp() * (1 + MARGIN)
        peak = ((1 + c) / c).ln()
        assert abs(1 - (-peak).exp() - k * (c * peak).exp()) < MARGIN


# ---------------------------------------------------------------- spending


def test_a_hundred_answers_at_a_tenth_fit_an_account_of_5_1():
    filter_ = moment_filter("5.1", "1e-6")
    price = filter_.price(epsilon="0.1")
    assert filter_.delta_kept == Fraction(1, 10**7)
    assert filter_.within(100 * price) and not filter_.within(101 * price)
    assert filter_.answers_left(NOTHING_SPENT, price) == 100
    assert filter_.allows(99 * price, price) and not filter_.allows(100 * price, price)
    assert Fraction("5.09") < filter_.epsilon_spent(100 * price) <= filter_.epsilon


def test_plain_sums_hold_beside_the_moments():
    filter_ = moment_filter(1, "1e-9")
    third = filter_.price(epsilon="1/3")
    assert third.moment * 3 > filter_.limit
    assert filter_.within(3 * third) and filter_.answers_left(third, third) == 2
    assert not filter_.allows(3 * third, filter_.price(epsilon="1e-30"))


def test_plain_sums_do_not_hold_once_rho_is_spent():
    filter_ = moment_filter(1, "1e-9")
    rho = filter_.price(rho="1e-12")
    third = filter_.price(epsilon="1/3")
    assert not filter_.within(3 * third + rho)
    assert filter_.within(third + rho) and filter_.answers_left(rho, third) == 1


def test_additive_deltas_have_their_share_and_no_more():
    filter_ = moment_filter(3, "1e-6")
    price = filter_.price(epsilon="0.01", delta="1e-8")
    assert filter_.answers_left(NOTHING_SPENT, price) == 10
    assert not filter_.within(11 * price)  # though the basic sums are (0.11, 1.1e-7)
    nothing = moment_filter(3, "1e-6", delta_kept=0)
    same = nothing.price(epsilon="0.01", delta="1e-8")
    assert nothing.answers_left(NOTHING_SPENT, same) == 0


prices = st.builds(
    lambda e, d, r: {"epsilon": e, "delta": d, "rho": r},
    st.sampled_from([0, Fraction(1, 10), Fraction(1, 3), Fraction(2)]),
    st.sampled_from([0, Fraction(1, 10**8), Fraction(1, 10**7)]),
    st.sampled_from([0, 0, Fraction(1, 200), Fraction(1, 20)]),
)


@given(prices, prices, st.integers(0, 8), st.sampled_from(["0.5", "3", "12"]))
def test_the_number_of_answers_left_is_the_one_found_by_counting(before, price, count, epsilon):
    filter_ = moment_filter(epsilon, "1e-6")
    spent = filter_.price(**before) * count
    each = filter_.price(**price)
    left = filter_.answers_left(spent, each)
    if each == NOTHING_SPENT:
        assert left is None
        return
    if not filter_.within(spent):
        assert left == 0
        return
    assert left is not None
    assert filter_.within(spent + left * each) and not filter_.within(spent + (left + 1) * each)


@given(prices, st.integers(0, 60), st.sampled_from(["0.5", "3", "12"]))
def test_epsilon_spent_is_that_of_the_least_filter(price, count, epsilon):
    filter_ = moment_filter(epsilon, "1e-6")
    spent = filter_.price(**price) * count
    least = filter_.epsilon_spent(spent)
    if spent.delta <= filter_.delta_kept:
        assert filter_.within(spent) == (least <= filter_.epsilon)
    if least > 0:
        room = spent.delta <= filter_.delta_kept
        assert replace(filter_, epsilon=least).within(spent) == room
        less = least * Fraction(999_999, 10**6)
        assert not replace(filter_, epsilon=less).within(spent)


@given(prices, st.integers(0, 40), st.sampled_from(["0.5", "3", "12"]))
def test_what_is_left_fits_and_not_much_more(price, count, epsilon):
    filter_ = moment_filter(epsilon, "1e-6")
    spent = filter_.price(**price) * count
    left = filter_.left(spent)
    if not filter_.within(spent):
        assert left == NOTHING_SPENT
        return
    for name, more in (("epsilon", Fraction(1, 10**4)), ("rho", UNIT), ("delta", UNIT)):
        most = getattr(left, name)
        assert filter_.allows(spent, filter_.price(**{name: most}))
        if spent.moment <= filter_.limit or name != "rho":
            assert not filter_.allows(spent, filter_.price(**{name: most + more}))


def test_a_billion_answers():
    filter_ = moment_filter(10, "1e-9")
    price = filter_.price(epsilon="1e-5")
    left = filter_.answers_left(NOTHING_SPENT, price)
    assert left is not None and 10**9 < left < 10**11
    assert filter_.within(10**9 * price)


# ---------------------------------------------------------------- the order


@pytest.mark.parametrize("epsilon", ["0.01", "0.5", "1", "5.1", "30", "1000"])
@pytest.mark.parametrize("delta", ["0.2", "1e-3", "1e-6", "1e-30", "1e-300"])
def test_no_other_order_lets_noticeably_more_small_answers_through(epsilon, delta):
    chosen = moment_filter(epsilon, delta, delta_kept=0)

    def room(order):
        filter_ = moment_filter(epsilon, delta, delta_kept=0, order=order)
        return filter_.limit / (order * (order + 1))

    assert len(str(chosen.order.numerator).rstrip("0")) <= 7
    best = room(chosen.order)
    assert best > 0
    for factor in ("0.5", "0.9", "0.98", "1.02", "1.1", "2"):
        assert room(chosen.order * Fraction(factor)) < best


def test_the_order_depends_on_the_budget_alone_and_is_the_same_everywhere():
    assert best_order(Fraction("5.1"), Fraction("9e-7")) == Fraction("5.05")
    assert best_order(Fraction(1), Fraction("9e-10")) == Fraction("34.1")
    assert best_order(Fraction(10**11), Fraction("1e-6")) > 0
    assert best_order(Fraction(1, 10**11), Fraction("1e-6")) <= 10**12


def test_more_budget_never_allows_less_at_the_same_order():
    """So a budget may change along the way: see the docstring."""
    limits = [
        MomentFilter(
            epsilon=Fraction(e), delta=d, order=Fraction(5), delta_kept=Fraction(1, 10**9)
        ).limit
        for e, d in ((1, Fraction(1, 10**6)), (2, Fraction(1, 10**6)), (2, Fraction(1, 10**3)))
    ]
    assert all(less < more for less, more in pairwise(limits))


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0, "1e-6"), "epsilon is zero"),
        ((-1, "1e-6"), "epsilon is negative"),
        ((math.nan, "1e-6"), "NaN"),
        ((math.inf, "1e-6"), "infinite"),
        ((10**12, "1e-6"), "beyond"),
        ((1, 0), "plain sums"),
        ((1, 1), "delta is not between"),
        ((1, 2), "delta is not between"),
        ((1, -1), "delta is not between"),
        ((1, math.nan), "NaN"),
    ],
)
def test_budgets_without_a_meaning_are_refused(arguments, words):
    with pytest.raises(InvalidParameter, match=words):
        moment_filter(*arguments)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"delta_kept": "1e-6"}, "not below delta"),
        ({"delta_kept": "1e-3"}, "not below delta"),
        ({"delta_kept": -1}, "delta_kept is not between"),
        ({"order": 0}, "order is zero"),
        ({"order": Fraction(1, 3**40)}, "12 digits"),
        ({"order": math.nan}, "NaN"),
    ],
)
def test_filters_without_a_meaning_are_refused(more, words):
    with pytest.raises(InvalidParameter, match=words):
        moment_filter(1, "1e-6", **more)


def test_prices_without_a_meaning_are_refused():
    filter_ = moment_filter(1, "1e-6")
    for price in ({"epsilon": -1}, {"delta": 2}, {"rho": "nan"}, {"epsilon": 10**12}):
        with pytest.raises(InvalidParameter):
            filter_.price(**price)
    with pytest.raises(InvalidParameter, match="negative"):
        MomentCost(epsilon=Fraction(-1))
    with pytest.raises(WrongType):
        moment_filter(1, "1e-6", neighbours="add-remove")  # type: ignore[arg-type]


def test_guarantees_have_the_prices_of_their_parameters():
    filter_ = moment_filter(3, "1e-6")
    assert filter_.price_of(PureDP("0.1")) == filter_.price(epsilon="0.1")
    both = filter_.price(epsilon="0.1", delta="1e-9")
    assert filter_.price_of(ApproxDP("0.1", "1e-9")) == both
    assert filter_.price_of(ProbabilisticDP("0.1", "1e-9")) == both
    assert filter_.price_of(ZCDP("0.1")) == filter_.price(rho="0.1")
    for other in (
        PureDP(math.inf),
        ApproxDP(math.inf, 0),
        ZCDP(math.inf),
        RenyiDP(2, 1),
        MetricDP(1, 1, "m"),
        0.1,
    ):
        with pytest.raises(IncompatibleGuarantees):
            filter_.price_of(other)  # type: ignore[arg-type]


def test_guarantees_about_other_neighbours_are_refused():
    filter_ = moment_filter(3, "1e-6", neighbours=ADD_REMOVE)
    assert filter_.price_of(PureDP(1, neighbours=ADD_REMOVE)).epsilon == 1
    for other in (PureDP(1), PureDP(1, neighbours=CHANGE_ONE)):
        with pytest.raises(IncompatibleGuarantees, match="neighbours"):
            filter_.price_of(other)


# ---------------------------------------------------------------- the adversary


def spending(filter_, steps, **changed):
    """What these steps cost; a mutant may change what it counts as their promise."""
    total = NOTHING_SPENT
    for step, count in steps:
        promise = {"epsilon": step.epsilon, "delta": step.delta, "rho": step.rho}
        for name, change in changed.items():
            promise[name] = change(step)
        total += filter_.price(**promise) * count
    return total


def sound(filter_):
    return lambda steps: filter_.within(spending(filter_, steps))


def some_filter(choices):
    """Of any kind; every third one such that the proof's inequality is sharp for a single step."""
    epsilon, delta = choices.choice(LOSSES), choices.choice(LEVELS)
    share = choices.choice([Fraction(0), Fraction(1, 10), Fraction(1, 2)])
    order = choices.choice([None, *ORDERS])
    if order is not None and choices.random() < 0.6:
        loss = float(epsilon) + math.log(1 + 1 / order)
        level = Fraction(math.ceil(10**4 / (1 + float(order)) / (1 + math.exp(-loss))), 10**4)
        delta = level / (1 - share)
        if delta >= 1:
            share, delta = Fraction(0), level
    return moment_filter(epsilon, delta, delta_kept=delta * share, order=order)


def worst_found(filter_, rule, choices):
    """The greatest delta, as a multiple of the budget's, on a menu made for the rule."""
    menu = menu_for(rule, filter_.epsilon, filter_.delta, choices)
    found = max(
        worst_delta(rule, menu, filter_.epsilon),
        worst_delta(rule, [step.turned() for step in menu], filter_.epsilon),
    )
    return found / decimal(filter_.delta)


def test_the_worst_adaptive_strategy_stays_within_the_budget():
    """All strategies on 80 menus of the largest steps allowed; some come within 1 % of delta."""
    choices = random.Random(14)
    with decimals(50):
        found = []
        for _ in range(80):
            filter_ = some_filter(choices)
            found.append(worst_found(filter_, sound(filter_), choices))
    assert max(found) <= 1 + LAST
    assert sum(ratio > Decimal("0.99") for ratio in found) >= 3  # the search has teeth


def test_a_thousand_strategies_that_look_at_everything_stay_within_the_budget():
    choices = random.Random(8)
    with decimals(50):
        for _ in range(52):
            filter_ = some_filter(choices)
            rule = sound(filter_)
            menu = menu_for(rule, filter_.epsilon, filter_.delta, choices)
            bounds = (
                worst_delta(rule, menu, filter_.epsilon),
                worst_delta(rule, [step.turned() for step in menu], filter_.epsilon),
            )
            for _ in range(20):
                for delta, bound in zip(
                    tree_delta(rule, menu, filter_.epsilon, choices), bounds, strict=True
                ):
                    assert delta <= bound + LAST and bound <= decimal(filter_.delta) + LAST


def test_the_odometer_is_exceeded_with_probability_delta_at_most():
    choices = random.Random(3)
    with decimals(50):
        for _ in range(25):
            filter_ = some_filter(choices)
            rule = sound(filter_)
            menu = menu_for(rule, filter_.epsilon, filter_.delta, choices)

            def bound(used, filter_=filter_, menu=menu):
                return filter_.odometer(spending(filter_, zip(menu, used, strict=True)))

            assert worst_excess(rule, menu, bound) <= decimal(filter_.delta)


def composed(filter_):
    """Stops by the composition of what was asked so far, as if it had been fixed beforehand."""
    return lambda steps: composed_delta_of(steps, filter_.epsilon) <= decimal(filter_.delta)


def own_share(filter_):
    """Divides delta between additive deltas and moments after the fact."""

    def rule(steps):
        spent = spending(filter_, steps)
        if spent.delta >= filter_.delta:
            return False
        like = {"epsilon": filter_.epsilon, "delta": filter_.delta, "order": filter_.order}
        return MomentFilter(**like, delta_kept=spent.delta).within(spent)

    return rule


def basic_with_all_of_delta(filter_):
    def rule(steps):
        spent = spending(filter_, steps)
        basic = spent.epsilon <= filter_.epsilon and spent.delta <= filter_.delta
        return filter_.within(spent) or (basic and not spent.rho)

    return rule


def basic_beside_rho(filter_):
    def rule(steps):
        spent = spending(filter_, steps)
        return filter_.within(spent) or (
            spent.epsilon <= filter_.epsilon and spent.delta <= filter_.delta_kept
        )

    return rule


def wrong_factor(filter_):
    """A limit that is 5 % too generous in delta."""

    def rule(steps):
        spent = spending(filter_, steps)
        more = Fraction(math.log(1.05))
        return filter_.within(spent) or (
            spent.delta <= filter_.delta_kept and spent.moment <= filter_.limit + more
        )

    return rule


def forgotten_epsilon(filter_):
    """Takes an (epsilon, delta) step for one that costs delta alone."""
    return lambda steps: filter_.within(
        spending(filter_, steps, epsilon=lambda step: 0 if step.delta else step.epsilon)
    )


def cheap_rho(filter_):
    """Takes c rho for c (c+1) rho."""
    return lambda steps: filter_.within(
        spending(filter_, steps, rho=lambda step: step.rho / (filter_.order + 1))
    )


@pytest.mark.parametrize(
    "mutant",
    [
        composed,
        own_share,
        basic_with_all_of_delta,
        basic_beside_rho,
        wrong_factor,
        forgotten_epsilon,
        cheap_rho,
    ],
)
def test_the_same_search_catches_filters_that_are_wrong(mutant):
    choices = random.Random(14)
    with decimals(50):
        for _ in range(80):
            filter_ = some_filter(choices)
            if worst_found(filter_, mutant(filter_), choices) > 1:
                return
    pytest.fail("no strategy was found that this filter should not have allowed")


def test_stopping_by_composed_losses_adds_nearly_half_of_delta():
    """After a harmless answer pay with delta, after a telling one with epsilon."""
    epsilon, delta = Fraction(1), Fraction(1, 1000)
    rule = composed(moment_filter(epsilon, delta))
    first = response(Fraction(1, 10))
    with decimals(50):
        fine = largest(lambda e: rule([(first, 1), (response(e), 1)]), Fraction(1), 10**6)
        menu = [first, response(fine), response(Fraction(0), delta * Fraction(999, 1000))]
        assert all(rule([(first, 1), (step, 1)]) for step in menu[1:])
        assert worst_delta(rule, menu, epsilon) > decimal(delta) * Decimal("1.45")


def test_a_step_outside_the_rule_is_seen_by_the_search():
    """The search itself: one step alone has the delta that formulas give."""
    with decimals(50):
        step = response(Fraction(2))
        once = worst_delta(lambda steps: steps[0][1] <= 1, [step], Fraction(1))
        assert abs(once - (exp(2) - exp(1)) / (1 + exp(2))) < LAST
        cell = gaussian(Fraction(1, 2))
        assert abs(sum((p for p, _ in cell.outcomes), Decimal(-1))) < LAST


def test_what_is_spent_within_a_filter_is_never_shown_as_more():
    kept = moment_filter("5.1", "1e-6")
    for share in (1, Fraction(1, 2), Fraction(1, 3)):
        rho = kept.left(NOTHING_SPENT).rho * share
        spent = kept.price(rho=rho) + kept.price(rho=kept.left(kept.price(rho=rho)).rho)
        assert kept.within(spent) and kept.epsilon_spent(spent) <= kept.epsilon


@pytest.mark.parametrize("moment", [0.5, math.inf, math.nan, 1])
def test_costs_are_exact(moment):
    with pytest.raises(WrongType):
        MomentCost(moment=moment)
    with pytest.raises((InvalidParameter, WrongType)):
        _ = moment_filter(1, "1e-6").price(rho="1/9") * 0.5  # type: ignore[operator]


def test_prices_of_another_order_are_refused():
    """At order 1/100 a price looks tiny; to a filter of a larger order it would be too cheap."""
    low, usual = moment_filter(1, "1e-6", order="1/100"), moment_filter(1, "1e-6")
    cheap = low.price(rho=1)
    assert not usual.allows(NOTHING_SPENT, usual.price(rho=1))
    for asked in (usual.within, partial(usual.allows, NOTHING_SPENT)):
        with pytest.raises(InvalidParameter, match="another order"):
            asked(cheap)
    with pytest.raises(InvalidParameter, match="another order"):
        usual.answers_left(NOTHING_SPENT, cheap)
    with pytest.raises(InvalidParameter, match="another order"):
        _ = usual.price(rho="1/9") + cheap
