"""From one unit to several: Propositions 1 and 6 of paper 003, in numbers."""

import itertools
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given, strategies as st

from lastbit.errors import IncompatibleGuarantees, InvalidParameter
from lastbit.privacy.guarantees import ZCDP, ApproxDP, MetricDP, ProbabilisticDP, PureDP, RenyiDP
from lastbit.privacy.neighbours import ADD_REMOVE
from tests.privacy.truth import MARGIN, decimal, decimals, group_delta, hockey_stick, judge

epsilons = st.fractions(min_value=Fraction(1, 10**6), max_value=20)
deltas = st.fractions(min_value=Fraction(1, 10**30), max_value=Fraction(1, 100))
sizes = st.integers(1, 40)


@given(epsilons, sizes)
def test_what_needs_no_rounding_is_exact(epsilon, size):
    assert PureDP(epsilon).group(size) == PureDP(size * epsilon)
    assert ZCDP(epsilon).group(size) == ZCDP(size * size * epsilon)
    assert MetricDP(epsilon, 7, "m").group(size) == MetricDP(size * epsilon, 7, "m")
    assert ApproxDP(epsilon, 0).group(size) == ApproxDP(size * epsilon, 0)


@given(epsilons, sizes, st.fractions(0, 5), st.fractions(Fraction(1, 9), 9))
def test_a_group_that_moves_pays_the_slack_for_every_unit(epsilon, size, slack, distance):
    """One step a unit, each with its own rounding: k times the loss of one at that distance."""
    one = MetricDP(epsilon, 7, "m", slack=slack)
    assert one.group(size).at(distance) == one.at(distance).group(size)
    assert one.group(size).slack == slack


@given(epsilons, deltas, sizes)
@example(Fraction(1), Fraction(1, 10**9), 2)
@example(Fraction(1, 10**6), Fraction(1, 10**30), 40)
def test_equation_28(epsilon, delta, size):
    """The sum it comes from, rounded up and tight."""
    group = ApproxDP(epsilon, delta).group(size)
    assert group.epsilon == size * epsilon
    with decimals():
        judge(group.delta, group_delta(epsilon, delta, size), tight=Decimal("1e-12"))


@given(deltas, sizes)
def test_equation_28_at_epsilon_zero_is_its_limit(delta, size):
    """Our correction: (28) divides by zero there; the sum it comes from is k delta."""
    assert ApproxDP(0, delta).group(size) == ApproxDP(0, min(size * delta, Fraction(1)))


@pytest.mark.parametrize("size", [2, 3, 7])
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1)])
def test_equation_28_is_attained(epsilon, size):
    """Databases in a row, and a mechanism that nobody can promise less for than (28) says."""
    delta = Fraction(1, 10**6)
    with decimals():
        heads = [group_delta(epsilon, delta, left) for left in range(size, -1, -1)]
        laws = [{(0,): p, (1,): 1 - p} for p in heads]
        for one, other in itertools.pairwise(laws):
            assert hockey_stick(one, other, decimal(epsilon)) <= decimal(delta) * (1 + MARGIN)
            assert hockey_stick(other, one, decimal(epsilon)) <= decimal(delta) * (1 + MARGIN)
        whole = hockey_stick(laws[0], laws[-1], decimal(size * epsilon))
        judge(ApproxDP(epsilon, delta).group(size).delta, whole, tight=Decimal("1e-12"))
        assert whole > 1.05 * size * float(delta)  # so k epsilon and k delta would be false


@given(epsilons, deltas, st.integers(1, 6), st.integers(1, 6))
def test_a_group_of_groups_is_a_larger_group(epsilon, delta, one, other):
    twice = ApproxDP(epsilon, delta).group(one).group(other)
    once = ApproxDP(epsilon, delta).group(one * other)
    assert twice.epsilon == once.epsilon
    assert abs(twice.delta - once.delta) <= once.delta / 2**40


@given(epsilons, deltas, sizes)
def test_a_larger_group_is_promised_less(epsilon, delta, size):
    guarantee = ApproxDP(epsilon, delta)
    assert guarantee.group(size + 1).epsilon > guarantee.group(size).epsilon
    assert guarantee.group(size + 1).delta >= guarantee.group(size).delta


def test_probabilistic_becomes_approximate():
    """The bad sets of the steps belong to different laws; only the approximate bound chains."""
    guarantee = ProbabilisticDP(1, "1e-9", neighbours=ADD_REMOVE)
    assert guarantee.group(3) == guarantee.post_processed().group(3)
    assert isinstance(guarantee.group(3), ApproxDP)


def test_one_order_has_no_group_rule():
    with pytest.raises(IncompatibleGuarantees, match="ZCDP or PureDP"):
        RenyiDP(2, 1).group(2)


@pytest.mark.parametrize("size", [0, -1, 1.0, "2", True, None, Fraction(2), 2.5])
def test_a_group_is_a_whole_number_of_units(size):
    for guarantee in (PureDP(1), ApproxDP(1, "1e-9"), ZCDP(1)):
        with pytest.raises(InvalidParameter, match=r"^size "):
            guarantee.group(size)


def test_neighbours_stay():
    for guarantee in (PureDP(1), ApproxDP(1, "1e-9"), ZCDP(1), MetricDP(1)):
        assert guarantee.under(ADD_REMOVE).group(2).neighbours == ADD_REMOVE


@pytest.mark.parametrize("size", [2, 10**6, 10**30, 10**400], ids=lambda n: f"{len(str(n))} digits")
def test_extremes_promise_nothing_rather_than_crash(size):
    assert ApproxDP(1000, "1e-9").group(size).delta == 1
    assert ApproxDP(10**6, "1e-300").group(size).delta == 1
    assert ApproxDP(math.inf, "1e-9").group(size) == ApproxDP(math.inf, 1)
    assert PureDP(math.inf).group(size) == PureDP(math.inf)
    assert ZCDP(math.inf).group(size) == ZCDP(math.inf)
    assert ApproxDP("1e-300", "1e-300").group(size).delta >= min(Fraction(size, 10**300), 1)
