"""Several promises together: sums, the optimum, brute force, and another library's numbers."""

import importlib
import itertools
import math
import warnings
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, example, given, settings, strategies as st

from lastbit.errors import IncompatibleGuarantees, InvalidParameter
from lastbit.privacy import GaussianLoss, Profile, black_box
from lastbit.privacy.compose import (
    added,
    best_composition,
    compositions,
    optimal_delta,
    optimal_epsilon,
    tight_profile,
)
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
from tests.privacy.truth import (
    MARGIN,
    advanced_epsilon,
    composed_delta,
    concentrated_epsilon,
    decimal,
    decimals,
    hockey_stick,
    judge,
    kov_delta,
    product,
    worst_pair,
)

CLOSE = Decimal("1e-12")

epsilons = st.fractions(min_value=Fraction(1, 1000), max_value=5)
some_deltas = st.one_of(st.just(Fraction(0)), st.integers(2, 12).map(lambda n: Fraction(1, 10**n)))
levels = st.integers(1, 15).map(lambda n: Fraction(1, 10**n))
parts_of = st.lists(st.tuples(epsilons, some_deltas), min_size=1, max_size=4)


# ---------------------------------------------------------------- sums


@given(epsilons, some_deltas, epsilons, some_deltas)
def test_basic_composition_adds_up_exactly(one, d1, other, d2):
    assert PureDP(one) + PureDP(other) == PureDP(one + other)
    assert ApproxDP(one, d1) + ApproxDP(other, d2) == ApproxDP(one + other, d1 + d2)
    total = ProbabilisticDP(one, d1) + ProbabilisticDP(other, d2)
    assert total == ProbabilisticDP(one + other, d1 + d2)
    assert ZCDP(one) + ZCDP(other) == ZCDP(one + other)
    assert RenyiDP(3, one) + RenyiDP(3, other) == RenyiDP(3, one + other)
    here, there = MetricDP(one, 2, "m"), MetricDP(other, 3, "m")
    for distance in (1, 6, Fraction(1, 7)):
        assert (here + there).at(distance) == here.at(distance) + there.at(distance)


slacks = st.fractions(min_value=0, max_value=5)


@given(epsilons, epsilons, slacks, slacks, st.fractions(min_value=0, max_value=99))
@example(Fraction(1), Fraction(1), Fraction(0), Fraction(0), Fraction(0))
def test_slacks_add_up_at_every_distance(one, other, s, t, distance):
    here, there = MetricDP(one, 2, "m", slack=s), MetricDP(other, 3, "m", slack=t)
    both = here + there
    assert both.at(distance) == here.at(distance) + there.at(distance)
    assert both.per == 2
    assert min(s, t) <= both.slack <= max(s, t)
    back = there + here
    assert both.implies(back)
    assert back.implies(both)


def test_mutants_of_the_slack_of_a_sum():
    """The plain mean, the sum and the first slack promise something else."""
    here, there = MetricDP(1, 2, "m", slack=1), MetricDP(1, 3, "m", slack=3)
    truth = here.at(1) + there.at(1)
    assert (here + there).at(1) == truth
    for wrong in (2, 4, 1):
        assert MetricDP((here + there).epsilon, 2, "m", slack=wrong).at(1) != truth


def test_the_slack_of_nothing_and_of_everything():
    assert MetricDP(0, slack=2) + MetricDP(0, slack=3) == MetricDP(0)
    assert MetricDP(0, slack=2) + MetricDP(1, slack=3) == MetricDP(1, slack=3)
    assert MetricDP(math.inf, slack=2) + MetricDP(1, slack=3) == MetricDP(math.inf)
    assert MetricDP(1, slack=3) + MetricDP(math.inf, slack=2) == MetricDP(math.inf)


@given(st.lists(epsilons, min_size=2, max_size=5))
def test_the_sum_does_not_depend_on_the_order(losses):
    for kind in (PureDP, ZCDP):
        assert sum(map(kind, losses)) == sum(map(kind, reversed(losses)))
        assert sum(map(kind, losses)) == kind(sum(losses))


def test_the_sum_is_true_of_the_worst_case():
    """Two releases are (e1 + e2, d1 + d2) private and nobody can promise the pure part less."""
    with decimals():
        parts = [(Fraction(1), Fraction(1, 100)), (Fraction(1, 2), Fraction(1, 50))]
        assert composed_delta(parts, Decimal("1.5")) <= Decimal("0.03")
        assert composed_delta(parts, Decimal("1.49")) > Decimal("0.03") - Decimal("0.0002")
        pure = [(e, Fraction(0)) for e, _ in parts]
        assert composed_delta(pure, Decimal("1.5") - Decimal("1e-9")) > 0
        assert composed_delta(pure, Decimal("1.5") + Decimal("1e-9")) == 0


def test_probabilistic_bad_sets_unite():
    """The exact bad mass of a product is 1 - (1-d1)(1-d2), which is at most d1 + d2."""
    delta = Fraction(1, 100)
    total = ProbabilisticDP(1, delta) + ProbabilisticDP(1, delta)
    with decimals():
        one, other = worst_pair(1, delta)
        joint, joint_other = product([one, one]), product([other, other])
        bad = sum(
            p for x, p in joint.items() if p > Decimal(2).exp() * joint_other[x] * (1 + MARGIN)
        )
        assert abs(bad - (1 - Decimal("0.99") ** 2)) < Decimal("1e-100")
        assert bad <= decimal(total.delta)


def test_deltas_stop_at_one():
    assert ApproxDP(1, "0.7") + ApproxDP(1, "0.7") == ApproxDP(2, 1)


def test_orders_and_units_must_agree():
    with pytest.raises(IncompatibleGuarantees, match="order"):
        RenyiDP(2, 1) + RenyiDP(3, 1)
    with pytest.raises(IncompatibleGuarantees, match="m and km"):
        MetricDP(1, 1, "m") + MetricDP(1, 1, "km")
    assert added(PureDP(1), object()) is NotImplemented  # type: ignore[arg-type]


@pytest.mark.parametrize("large", [1, 10**400], ids=["small", "large"])
def test_nothing_promised_and_something_is_nothing(large):
    for kind in (PureDP, ZCDP):
        assert kind(math.inf) + kind(large) == kind(large) + kind(math.inf) == kind(math.inf)
    assert RenyiDP(2, math.inf) + RenyiDP(2, large) == RenyiDP(2, math.inf)
    assert MetricDP(large, large) + MetricDP(math.inf, 1) == MetricDP(math.inf, large)
    assert compositions([PureDP(math.inf), PureDP(large)], "1e-6")["basic"].epsilon == math.inf


# ---------------------------------------------------------------- the optimum


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1, 3), Fraction(1), Fraction(4)])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**6), Fraction(1, 10)])
@pytest.mark.parametrize("count", [1, 2, 3, 10, 25])
def test_the_closed_formula_of_kairouz_oh_viswanath(epsilon, delta, count):
    """Their theorem, for every i: ((k - 2i) epsilon, 1 - (1-delta)**k (1-delta_i))."""
    parts = [(epsilon, delta)] * count
    with decimals():
        for step in range(count // 2 + 1):
            truth = kov_delta(epsilon, delta, count, step)
            found = optimal_delta(parts, (count - 2 * step) * epsilon)
            judge(found, truth, tight=CLOSE)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(4)])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 10**6)])
@pytest.mark.parametrize("count", [2, 7, 25])
def test_the_closed_formula_backwards(epsilon, delta, count):
    """At their delta the least epsilon is (k - 2i) epsilon: rounded up, and tight."""
    parts = [(epsilon, delta)] * count
    with decimals():
        for step in range(1, (count - 1) // 2 + 1):
            level = Fraction(kov_delta(epsilon, delta, count, step))
            found = optimal_epsilon(parts, level)
            judge(found, decimal((count - 2 * step) * epsilon), tight=CLOSE)


@given(parts_of, st.fractions(0, 1))
@example([(Fraction(1), Fraction(0)), (Fraction(1, 3), Fraction(1, 100))], Fraction(1, 2))
@settings(max_examples=60)
def test_the_optimal_delta_by_brute_force(parts, share):
    """Every one of the 4**k outcomes, summed."""
    epsilon = share * sum(e for e, _ in parts)
    with decimals():
        truth = composed_delta(parts, decimal(epsilon))
        judge(optimal_delta(parts, epsilon), truth, tight=CLOSE)


@given(parts_of, levels)
@example([(Fraction(1), Fraction(1, 100))] * 3, Fraction(1, 10))
@settings(max_examples=60)
def test_the_optimal_epsilon_by_brute_force(parts, level):
    """It reaches the level, and a little less does not."""
    found = optimal_epsilon(parts, level)
    with decimals():
        if found == math.inf:
            kept = math.prod((1 - d for _, d in parts), start=Fraction(1))
            assert 1 - kept > level
            return
        assert composed_delta(parts, decimal(found)) <= decimal(level) * (1 + MARGIN)
        if found > 0:
            below = decimal(found) * (1 - CLOSE)
            assert composed_delta(parts, below) > decimal(level)


@given(parts_of, levels, levels)
@settings(max_examples=50)
def test_the_optimum_is_monotone(parts, one, other):
    small, large = sorted((one, other))
    assert optimal_epsilon(parts, small) >= optimal_epsilon(parts, large)
    more = [*parts, (Fraction(1, 7), Fraction(0))]
    assert optimal_epsilon(more, small) >= optimal_epsilon(parts, small)


@pytest.mark.parametrize("epsilon", [60, 100, 120, 200, 1000, 10**6])
def test_large_losses_lose_no_outcome(epsilon):
    """exp(-epsilon) is far below the working precision: no outcome may vanish or become NaN."""
    parts = [(Fraction(epsilon), Fraction(0))] * 3
    with decimals(1200 if epsilon <= 1000 else 120):
        for wanted in (
            Fraction(1),
            Fraction(epsilon),
            Fraction(2 * epsilon),
            Fraction(3 * epsilon),
        ):
            # in closed form, so that nothing is subtracted from 1
            q = (-decimal(Fraction(epsilon))).exp()
            yes, no = 1 / (1 + q), q / (1 + q)
            truth = Decimal(0)
            for k in range(4):
                loss = (3 - 2 * k) * epsilon
                if loss > wanted:
                    mass = math.comb(3, k) * yes ** (3 - k) * no**k
                    truth += mass * (1 - decimal(wanted - loss).exp())
            judge(optimal_delta(parts, wanted), truth, tight=CLOSE)
        found = best_composition([PureDP(epsilon)] * 3, "1e-6").epsilon
        assert 3 * epsilon - Fraction(1, 1000) < found <= 3 * epsilon


def test_tiny_deltas_are_seen():
    """1 - (1 - delta) would lose everything below the working precision."""
    parts = [(Fraction(1, 10), Fraction(0))] * 1000
    with decimals(600):
        q = decimal(Fraction(-1, 10)).exp()
        truth = (1 / (1 + q)) ** 1000 * (1 - (Decimal(-1) / 100).exp())
        judge(optimal_delta(parts, 100 - Fraction(1, 100)), truth, tight=CLOSE)


def test_many_different_losses_have_few_sums():
    """100 of them, all whole hundredths: 5,051 totals instead of 2**100."""
    losses = [Fraction(n, 100) for n in range(1, 101)]
    found = optimal_epsilon([(e, Fraction(0)) for e in losses], Fraction(1, 10**6))
    profile = tight_profile(map(PureDP, losses))
    assert profile is not None
    low, high = profile.epsilon("1e-6")
    assert low * (1 - 1e-12) <= found <= high * (1 + 1e-12)
    assert optimal_delta([(e, Fraction(0)) for e in losses], Fraction(found)) <= Fraction(1, 10**6)


def test_too_many_sums_are_not_tried():
    odd = [(Fraction(1, n), Fraction(0)) for n in range(1001, 1101)]
    assert optimal_epsilon(odd, Fraction(1, 10**6)) == math.inf
    assert optimal_delta(odd, Fraction(1, 10**6)) == 1


# ---------------------------------------------------------------- moments


def moment_epsilon(losses, rho, room, order):
    """What one order proves, in Decimals."""
    c = decimal(order)
    total = c * c.ln() - (1 + c) * (1 + c).ln() + c * (1 + c) * decimal(rho) - decimal(room).ln()
    for e in map(decimal, losses):
        total += ((((c + 1) * e).exp() + (-c * e).exp()) / (1 + e.exp())).ln()
    return total / c


@pytest.mark.parametrize(
    ("losses", "rho", "delta"),
    [
        ([Fraction(1, 10)] * 20, Fraction(3, 100), Fraction(1, 10**6)),
        ([Fraction(1), Fraction(1, 3), Fraction(1, 10**6)], Fraction(1, 2), Fraction(1, 10**9)),
        ([], Fraction(1, 50), Fraction(1, 10**5)),
        ([Fraction(4)] * 3, Fraction(0), Fraction(1, 100)),
    ],
)
def test_moments_are_those_of_the_best_order(losses, rho, delta):
    parts: list[Guarantee] = [*map(PureDP, losses), *([ZCDP(rho)] if rho else [])]
    found = compositions(parts, delta)["moments"].epsilon
    with decimals():
        orders = [Fraction(11, 10) ** n for n in range(-30, 80)]
        every = [moment_epsilon(losses, rho, delta, order) for order in orders]
        assert decimal(found) <= min(every) * (1 + CLOSE)
        assert decimal(found) >= min(every) * Decimal("0.99")


@given(st.lists(epsilons, max_size=3), some_deltas, epsilons, levels)
@settings(max_examples=25)
def test_moments_are_true_of_gaussian_noise_among_others(losses, chance, rho, level):
    """2 rho = mu**2 makes Gaussian noise rho-concentrated: the tight epsilon is no larger."""
    parts = [ApproxDP(e, chance) for e in losses]
    found = compositions([*parts, ZCDP(rho)], level)
    kept = (1 - chance) ** len(losses)
    if "moments" not in found:
        assert 1 - kept >= level
        return
    together = Profile([(GaussianLoss(2 * rho), 1), *((black_box(part), 1) for part in parts)])
    assert together.epsilon(level)[0] <= found["moments"].epsilon


@pytest.mark.parametrize(("deviation", "times"), [(10, 50), (1, 1), (Fraction(7, 2), 3)])
def test_gaussian_noise_alone_has_the_closed_form(deviation, times):
    """delta(x) = F(m/2 - x/m) - exp(x) F(-m/2 - x/m), m = sqrt(n)/deviation (Balle, Wang 2018)."""
    found = compositions([GaussianLoss(1 / Fraction(deviation) ** 2)] * times, "1e-6")
    m = math.sqrt(times) / float(deviation)

    def delta(x):
        above, below = (math.erfc((x / m - sign * m / 2) / math.sqrt(2)) / 2 for sign in (1, -1))
        return above - math.exp(x) * below

    tight = float(found["tight"].epsilon)
    assert delta(tight) <= 1e-6 * (1 + 1e-9) and delta(tight * (1 - 1e-6)) > 1e-6
    assert found["tight"].epsilon < min(found["moments"].epsilon, found["concentrated"].epsilon)
    assert not {"basic", "advanced", "optimal"} & found.keys()


def test_gaussian_noise_among_others():
    noise = GaussianLoss("1/100")
    known: list[Guarantee] = [PureDP("0.1"), ApproxDP("0.2", "1e-9")]
    together = Profile([(noise, 1), *((black_box(part), 1) for part in known)])
    found = best_composition([noise, *known], "1e-6")
    assert found.epsilon == Fraction(together.epsilon("1e-6")[1])
    with_zcdp = compositions([noise, *known, ZCDP("0.1")], "1e-6")
    assert with_zcdp == compositions([*known, ZCDP("0.105")], "1e-6")
    with pytest.raises(IncompatibleGuarantees):
        compositions([GaussianLoss(1, neighbours=ADD_REMOVE), PureDP(1)], "1e-6")


def test_moments_beat_what_adds_up():
    """Pure, approximate and concentrated promises together."""
    parts = [ApproxDP("0.1", "1e-9")] * 100 + [ZCDP("0.01")] * 3
    found = compositions(parts, "1e-6")
    assert found["moments"].epsilon < Fraction("5.281") < found["concentrated"].epsilon / 2
    assert best_composition(parts, "1e-6") == found["moments"]
    assert "moments" not in compositions([ApproxDP(1, "1e-3")], "1e-6")
    assert "moments" not in compositions([PureDP(1)], 0)
    assert "moments" not in compositions([ZCDP(math.inf)], "1e-6")


# ---------------------------------------------------------------- all theorems together

mixtures = st.lists(
    st.one_of(
        st.builds(PureDP, epsilons),
        st.builds(ApproxDP, epsilons, some_deltas),
        st.builds(ProbabilisticDP, epsilons, some_deltas),
    ),
    min_size=1,
    max_size=4,
)


def plain(guarantee):
    return guarantee.epsilon, getattr(guarantee, "delta", Fraction(0))


@given(mixtures, levels)
@settings(max_examples=60)
def test_the_best_is_the_least_and_none_is_below_the_truth(guarantees, level):
    found = compositions(guarantees, level)
    best = best_composition(guarantees, level)
    assert best in found.values()
    assert all(best.epsilon <= other.epsilon for other in found.values())
    assert all(other.delta == level for other in found.values())
    parts = [plain(guarantee) for guarantee in guarantees]
    with decimals():
        for other in found.values():
            if other.epsilon != math.inf:
                truth = composed_delta(parts, decimal(other.epsilon))
                assert truth <= decimal(level) * (1 + MARGIN)


@pytest.mark.evidence
@given(st.lists(epsilons, min_size=1, max_size=8), levels)
@settings(max_examples=60)
def test_each_theorem_against_its_formula(losses, level):
    found = compositions([PureDP(e) for e in losses], level)
    assert found["basic"] == ApproxDP(sum(losses), level)
    rho = sum((PureDP(e).to(ZCDP).rho for e in losses), Fraction(0))
    with decimals():
        judge(found["advanced"].epsilon, advanced_epsilon(losses, level))
        judge(
            found["concentrated"].epsilon, concentrated_epsilon(rho, level), tight=Decimal("1e-9")
        )


@pytest.mark.evidence
@given(epsilons, some_deltas, st.fractions(Fraction(1, 100), 5), levels)
def test_concentrated_releases_among_others(epsilon, delta, rho, level):
    assume(delta < level)
    found = compositions([ApproxDP(epsilon, delta), ZCDP(rho / 2), ZCDP(rho / 2)], level)
    assert set(found) == {"concentrated", "concentrated and basic", "moments"}
    with decimals():
        truth = decimal(epsilon) + concentrated_epsilon(rho, level - delta)
        assert decimal(best_composition([ApproxDP(epsilon, delta), ZCDP(rho)], level).epsilon) <= (
            truth * (1 + Decimal("1e-9"))
        )


@given(st.lists(epsilons, min_size=1, max_size=4), st.fractions(Fraction(1, 100), 2), levels)
@settings(max_examples=40)
def test_concentrated_releases_are_never_below_a_mechanism_that_has_the_promise(losses, rho, level):
    """Randomised response of sqrt(2 rho) is rho-concentrated; composed with others by force."""
    root = Fraction(math.isqrt(int(2 * rho * 10**12)), 10**6)  # rounded down: less is lost
    found = best_composition([*map(PureDP, losses), ZCDP(rho)], level)
    parts = [(e, Fraction(0)) for e in [*losses, root]]
    with decimals():
        truth = composed_delta(parts, decimal(found.epsilon))
        assert truth <= decimal(level) * (1 + MARGIN)


@given(mixtures, levels)
@settings(max_examples=40)
def test_the_order_does_not_matter_and_more_is_not_less(guarantees, level):
    best = best_composition(guarantees, level)
    assert best_composition(reversed(guarantees), level) == best
    assert best_composition([*guarantees, PureDP("0.1")], level).epsilon >= best.epsilon


def test_more_kinds_than_can_be_enumerated_are_still_composed():
    many = [PureDP(Fraction(1, n)) for n in range(20, 220)]
    found = compositions(many, "1e-6")
    assert found["optimal"].epsilon == math.inf
    assert found["concentrated"].epsilon < found["basic"].epsilon


def test_a_spent_delta_promises_nothing():
    guarantees = [ApproxDP(1, "1e-3")] * 2
    assert best_composition(guarantees, "1e-3").epsilon == math.inf
    assert best_composition([ApproxDP(1, "1e-3"), ZCDP(1)], "1e-9").epsilon == math.inf
    assert best_composition([ApproxDP(1, 1)], "0.5").epsilon == math.inf
    assert best_composition(guarantees, "2e-3").epsilon < 2


def test_delta_zero_is_basic_composition():
    assert best_composition([PureDP("0.1")] * 7, 0) == ApproxDP("0.7", 0)
    assert best_composition([ZCDP(1)], 0).epsilon == math.inf
    assert best_composition([PureDP(0), ZCDP(0)], 0) == ApproxDP(0, 0)


@pytest.mark.parametrize("delta", [1, -1, 2, math.nan, math.inf, "x", True, None])
def test_the_total_delta_is_below_one(delta):
    with pytest.raises(InvalidParameter, match=r"^delta "):
        best_composition([PureDP(1)], delta)


def test_what_does_not_compose_is_refused():
    with pytest.raises(InvalidParameter, match="empty"):
        best_composition([], "1e-6")
    for guarantee in (RenyiDP(2, 1), MetricDP(1)):
        with pytest.raises(IncompatibleGuarantees, match=r"with \+ first"):
            best_composition([guarantee], "1e-6")
    one, other = PureDP(1, neighbours=ADD_REMOVE), PureDP(1, neighbours=CHANGE_ONE)
    with pytest.raises(IncompatibleGuarantees, match=r"changed_one\(\)"):
        best_composition([one, other], "1e-6")
    assert best_composition([one, one], "1e-6").neighbours == ADD_REMOVE


def test_the_brute_force_itself():
    """Two randomised responses by hand: outcomes yes-yes and no-no are all that matters."""
    with decimals():
        one, other = worst_pair(1)
        joint, joint_other = product([one, one]), product([other, other])
        assert len(joint) == 16
        assert abs(sum(joint.values(), Decimal(-1))) < Decimal("1e-100")
        yes = 1 / (1 + Decimal(-1).exp())
        by_hand = yes**2 - Decimal("0.5").exp() * (1 - yes) ** 2
        assert abs(hockey_stick(joint, joint_other, Decimal("0.5")) - by_hand) < Decimal("1e-100")
        for a, b in itertools.permutations(
            [(Fraction(1), Fraction(0)), (Fraction(2), Fraction(0))]
        ):
            assert abs(composed_delta([a, b], Decimal(1)) - composed_delta([b, a], Decimal(1))) < (
                Decimal("1e-100")
            )


# ---------------------------------------------------------------- another library's numbers
#
# dp-accounting 0.6.0 (Google) with numpy 2.4.6 and scipy 1.17.1 on CPython 3.11.7, everything not
# named here by default. The tables are what it said; where it is installed it is asked again:
# see requirements-anchors.lock.


@dataclass(frozen=True, slots=True)
class Anchor:
    """Homogeneous composition of (epsilon, delta): the epsilon at `level`, on a grid of losses."""

    epsilon: float
    delta: float
    count: int
    level: float
    interval: float
    said: float

    @property
    def ours(self) -> ApproxDP:
        parts = [ApproxDP(self.epsilon, self.delta)] * self.count
        return best_composition(parts, self.level)


@dataclass(frozen=True, slots=True)
class Gaussian:
    """`count` Gaussians of sensitivity 1: two sides of the true epsilon, and Renyi accounting."""

    deviation: float
    count: int
    level: float
    optimistic: float
    pessimistic: float
    by_renyi: float


# pld.from_privacy_parameters: every loss is a multiple of the interval, so the grid costs nothing
# and what is left are its own float errors and truncated tails.
ON_THE_GRID = [
    Anchor(0.5, 1e-07, 20, 1e-05, 2**-10, 9.889154300795225),
    Anchor(1.0, 1e-08, 10, 1e-06, 2**-10, 9.999979359260184),
    Anchor(0.125, 1e-09, 100, 1e-06, 2**-10, 6.190423191687125),
    Anchor(0.25, 0.0, 64, 1e-08, 2**-10, 11.927519868592237),
    Anchor(1.0, 0.0, 10, 1e-06, 2**-10, 9.999977065820756),
    Anchor(0.0078125, 0.0, 1000, 1e-06, 2**-12, 1.045443707002567),
    Anchor(2.0, 0.0, 5, 1e-05, 2**-10, 9.999981136391684),
    Anchor(0.125, 0.0, 16, 0.001, 2**-10, 1.2727370525946826),
]
# pld.from_randomized_response with noise 2/(1 + exp(epsilon)) and two buckets, off the grid:
# optimistic and pessimistic, which lie `count` intervals apart.
BRACKETS = [
    (Anchor(0.1, 0.0, 100, 1e-06, 1e-05, 4.774311883656478), 4.775311883656467),
    (Anchor(0.5, 0.0, 30, 1e-09, 1e-05, 14.99849687024434), 14.998796870244341),
    (Anchor(1.0, 0.0, 10, 1e-06, 1e-05, 9.999877065820757), 9.999977065820756),
    (Anchor(0.25, 0.0, 64, 1e-08, 1e-05, 11.926958699258096), 11.92759869925809),
    (Anchor(2.0, 0.0, 5, 1e-05, 1e-05, 9.999931136391684), 9.999981136391684),
]
# pld.from_gaussian_mechanism, interval 1e-4, optimistic without and pessimistic with connect_dots;
# rdp.RdpAccountant with its default orders.
GAUSSIANS = [
    Gaussian(1.0, 1, 1e-06, 4.886504116048074, 4.886554124586701, 5.2215396311544175),
    Gaussian(5.0, 10, 1e-06, 2.9211006137050046, 2.921600651686471, 3.131089774915035),
    Gaussian(2.0, 1, 1e-09, 2.90968247089106, 2.90973247992011, 3.058150332283536),
    Gaussian(10.0, 100, 1e-05, 4.372178265200859, 4.377178519105701, 4.728507067217623),
    Gaussian(0.5, 1, 1e-05, 9.997206145694282, 9.997256150293925, 10.725509696418232),
    Gaussian(50.0, 1, 1e-05, 0.05858230555280091, 0.05863243189329738, 0.07020481624803404),
]
THEIR_FLOATS = 1e-8


@pytest.mark.parametrize("anchor", ON_THE_GRID, ids=str)
def test_the_optimum_agrees_with_dp_accounting(anchor):
    assert abs(anchor.ours.epsilon - anchor.said) <= THEIR_FLOATS
    # and theirs is not a number to beat: a little less than ours is false, by brute formula
    with decimals():
        below = decimal(anchor.ours.epsilon) * (1 - CLOSE)
        exact = Fraction(anchor.epsilon), Fraction(anchor.delta)
        assert homogeneous_delta(*exact, anchor.count, below) > Decimal(anchor.level)
        at = homogeneous_delta(*exact, anchor.count, decimal(anchor.ours.epsilon))
        assert at <= Decimal(anchor.level) * (1 + MARGIN)


def homogeneous_delta(epsilon: Fraction, delta: Fraction, count: int, at: Decimal) -> Decimal:
    """The same as `composed_delta` for equal parts, by the binomial law."""
    yes = 1 / (1 + (-decimal(epsilon)).exp())
    total = Decimal(0)
    for k in range(count + 1):
        loss = (count - 2 * k) * decimal(epsilon)
        if loss > at:
            mass = math.comb(count, k) * yes ** (count - k) * (1 - yes) ** k
            total += mass * (1 - (at - loss).exp())
    return 1 - decimal(1 - delta) ** count * (1 - total)


@pytest.mark.parametrize(("anchor", "pessimistic"), BRACKETS, ids=str)
def test_the_optimum_lies_between_the_two_estimates(anchor, pessimistic):
    assert anchor.said - THEIR_FLOATS <= anchor.ours.epsilon <= pessimistic + THEIR_FLOATS


@pytest.mark.parametrize("case", GAUSSIANS, ids=str)
def test_a_concentrated_bound_lies_above_the_truth_and_below_renyi_accounting(case):
    rho = case.count / (2 * Fraction(case.deviation) ** 2)
    ours = ZCDP(rho).to(ApproxDP, delta=case.level).epsilon
    assert case.pessimistic < ours <= case.by_renyi
    assert ours <= case.pessimistic * Fraction(9, 8)  # what concentration costs here


@pytest.fixture(scope="module")
def accounting():
    """dp-accounting, if it is there; its own warnings are not our errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module("dp_accounting.rdp")
            importlib.import_module("dp_accounting.pld.common")
            importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
            return importlib.import_module("dp_accounting")
        except ImportError:
            pytest.skip(
                "dp-accounting is not installed (the tables above are checked all the same): "
                "pip install --no-deps --require-hashes -r requirements-anchors.lock"
            )


@pytest.mark.parametrize("anchor", ON_THE_GRID, ids=str)
def test_dp_accounting_still_says_so(accounting, anchor):
    promise = accounting.pld.common.DifferentialPrivacyParameters(anchor.epsilon, anchor.delta)
    single = accounting.pld.privacy_loss_distribution.from_privacy_parameters(
        promise, value_discretization_interval=anchor.interval
    )
    said = single.self_compose(anchor.count).get_epsilon_for_delta(anchor.level)
    assert abs(said - anchor.said) <= THEIR_FLOATS


@pytest.mark.parametrize(("anchor", "pessimistic"), BRACKETS, ids=str)
def test_dp_accounting_still_brackets(accounting, anchor, pessimistic):
    said = [
        accounting.pld.privacy_loss_distribution.from_randomized_response(
            2 / (1 + math.exp(anchor.epsilon)),
            2,
            pessimistic_estimate=side,
            value_discretization_interval=anchor.interval,
        )
        .self_compose(anchor.count)
        .get_epsilon_for_delta(anchor.level)
        for side in (False, True)
    ]
    assert said == pytest.approx([anchor.said, pessimistic], abs=THEIR_FLOATS)


@pytest.mark.parametrize("case", GAUSSIANS, ids=str)
def test_dp_accounting_still_says_so_of_gaussians(accounting, case):
    gaussian = accounting.pld.privacy_loss_distribution.from_gaussian_mechanism
    rough = {"value_discretization_interval": 1e-4}
    low = gaussian(case.deviation, pessimistic_estimate=False, use_connect_dots=False, **rough)
    high = gaussian(case.deviation, **rough)
    renyi = accounting.rdp.RdpAccountant()
    event = accounting.GaussianDpEvent(case.deviation)
    renyi.compose(accounting.SelfComposedDpEvent(event, case.count))
    said = [
        low.self_compose(case.count).get_epsilon_for_delta(case.level),
        high.self_compose(case.count).get_epsilon_for_delta(case.level),
        float(renyi.get_epsilon(case.level)),
    ]
    expected = [case.optimistic, case.pessimistic, case.by_renyi]
    assert said == pytest.approx(expected, abs=THEIR_FLOATS)
