"""Exact bounds from laws, against losses known in closed form."""

import math
from dataclasses import replace
from enum import Enum
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from lastbit.audit.blackbox.exact_laws import exact_finding, law_of
from lastbit.errors import InvalidParameter
from lastbit.exact.ball import Ball
from lastbit.laws.discrete import DiscreteGaussian, DiscreteLaplace, Uniform, Weighted
from lastbit.laws.transformed import OnGrid, Shifted
from lastbit.mechanisms.laplace import Laplace
from lastbit.verify.running.code import Code
from lastbit.verify.running.law import exact_law

NONE = Fraction(0)
ONE = Fraction(1)


def found(one, two, *, epsilon=None, delta=NONE):
    finding = exact_finding(one, two, epsilon=epsilon, delta=delta)
    assert finding is not None
    return finding


def test_a_ratio_of_rationals():
    one, two = {"a": Fraction(3, 4), "b": Fraction(1, 4)}, {"a": Fraction(1, 4), "b": "3/4"}
    finding = found(one, two)
    assert finding.epsilon_lower <= math.log(3)
    assert finding.epsilon_lower == pytest.approx(math.log(3), rel=1e-15)
    assert finding.event.sentence == "the output is a"


weights = st.lists(st.integers(0, 20), min_size=3, max_size=3).filter(any)


def brute(p, q, delta):
    """The best of all events, one by one."""
    best = 0.0
    for mask in range(8):
        above = sum((p[i] for i in range(3) if mask >> i & 1), NONE) - delta
        below = sum((q[i] for i in range(3) if mask >> i & 1), NONE)
        if above > 0:
            best = max(best, math.log(above / below) if below else math.inf)
    return best


@given(weights, weights, st.fractions(0, Fraction(1, 2)))
def test_no_event_does_better(one, two, delta):
    p = [Fraction(w, sum(one)) for w in one]
    q = [Fraction(w, sum(two)) for w in two]
    expected = max(brute(p, q, delta), brute(q, p, delta))
    for first, second in ((dict(enumerate(p)), dict(enumerate(q))), (Weighted(one), Weighted(two))):
        finding = found(first, second, delta=delta)
        assert finding.epsilon_lower == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert finding.epsilon_lower <= expected * (1 + 1e-15)


def test_discrete_laplace_loses_its_epsilon_and_no_more():
    law = DiscreteLaplace(10)
    finding = found(law, Shifted(law, 1), epsilon=Fraction(1, 20))
    assert 0.1 - 1e-15 <= finding.epsilon_lower <= 0.1
    # P - e**eps Q over the half-line where the ratio is e**0.1
    q = math.exp(-0.1)
    half = 1 / (1 + q)
    assert finding.delta_lower == pytest.approx(half * (1 - math.exp(0.05 - 0.1)), rel=1e-9)


def test_on_a_grid_the_law_is_the_same():
    law = DiscreteLaplace(80)
    one, two = (OnGrid(Shifted(law, k), Fraction(1, 8)) for k in (0, 8))
    assert found(one, two).epsilon_lower == pytest.approx(0.1, rel=1e-12)


def test_wide_laws_are_gathered_in_ranges():
    law = DiscreteLaplace(10**6)
    finding = found(law, Shifted(law, 10**5))
    assert 0.0999 < finding.epsilon_lower <= 0.1


def test_a_gaussian_needs_its_delta():
    law = DiscreteGaussian(100)
    assert found(law, Shifted(law, 1)).epsilon_lower > 0.5  # grows with the window, without end
    assert found(law, Shifted(law, 1), delta=Fraction(1, 10**6)).epsilon_lower < 0.5


def test_what_one_input_alone_can_give_is_an_infinite_loss():
    assert found(Uniform(3), Uniform(2)).epsilon_lower == math.inf
    assert found(Uniform(2), Uniform(3)).swapped
    assert found({0: 1}, {1: 1}, epsilon=ONE).delta_lower == 1.0


@pytest.mark.parametrize("bits", [20, 60, 1000])
def test_a_curator_is_caught_however_seldom_it_talks(bits):
    """Black-box audits cannot see this: it would take 2**bits runs."""
    tiny = Fraction(1, 2**bits)
    quiet = {0: Fraction(1, 2), 1: Fraction(1, 2)}
    loud = {0: Fraction(1, 2), 1: Fraction(1, 2) - tiny, "the data": tiny}
    assert found(loud, quiet).epsilon_lower == math.inf
    finding = found(loud, quiet, epsilon=ONE, delta=tiny)
    assert finding.epsilon_lower == 0.0  # that delta is what it has
    assert 0 < finding.delta_lower <= tiny


def test_balls_are_probabilities_too():
    third = Ball.of("1/3")
    finding = found({0: third, 1: third * 2}, {0: third * 2, 1: third})
    assert finding.epsilon_lower == pytest.approx(math.log(2), rel=1e-12)
    assert finding.epsilon_lower <= math.log(2)


def test_laws_of_unknown_kinds_are_left_to_sampling():
    assert exact_finding(object(), object(), epsilon=None, delta=NONE) is None
    assert exact_finding({0: 1}, DiscreteLaplace(1), epsilon=None, delta=NONE) is None


@pytest.mark.parametrize(
    "law",
    [
        {0: "1/2"},
        {0: 2, 1: -1},
        {},
        {0: 1, 1: Fraction(1, 2**1000)},
        {0: 1 - Fraction(1, 2**1000)},
        {0: Ball.of("1/2"), 1: "1/3"},
        {0: Ball.of(2), 1: Ball.of(-1)},
        dict.fromkeys(range(10), 0.1),
    ],
)
def test_what_is_no_law_is_refused(law):
    with pytest.raises(InvalidParameter):
        found(law, {0: 1})


def test_where_laws_come_from():
    noise = Laplace(sensitivity=1, epsilon=1)
    assert law_of(noise) == noise.law
    assert law_of(lambda value: value) is None
    snapping = law_of(Code("lastbit.mechanisms.snapping:snapped", epsilon=1.0, bound=4.0))
    assert snapping is not None
    loss = found(snapping(0), snapping(1.0)).epsilon_lower
    assert loss == pytest.approx(1.0, abs=1e-12)


# ---------------------------------------------------------------- no false accusation


def test_not_a_number_is_one_output():
    """NaN differs from itself: two laws of it would share no output at all."""
    one, two = {float("nan"): 1}, {float("nan"): ONE}
    assert found(one, two).epsilon_lower == 0.0
    half = Fraction(1, 2)
    pair = {(1, float("nan")): half, 0: half}, {(1, float("nan")): half, 0: half}
    assert found(*pair, epsilon=ONE).epsilon_lower == 0.0
    assert found({math.nan: 1}, {0: 1}).epsilon_lower == math.inf


class Answer:
    """Equal to nothing but itself."""


class Colour(Enum):
    RED = 1
    BLUE = 2


def test_objects_that_equal_only_themselves_prove_nothing():
    for one, two in ((Answer(), Answer()), ((1, Answer()), (1, Answer()))):
        with pytest.raises(InvalidParameter, match="equal nothing"):
            found({one: 1}, {two: 1})
    shared = Answer()
    assert found({shared: 1}, {shared: 1}).epsilon_lower == 0.0
    assert found({Colour.RED: 1}, {Colour.BLUE: 1}).epsilon_lower == math.inf
    assert found({None: 1}, {0: 1}).epsilon_lower == math.inf


def zeros(value: float, u: float, sign: int) -> float:
    """Half of its outputs are zeros of either sign, whatever the value is."""
    return 0.0 * sign if u < 0.5 else 1.0 * sign


def test_zeros_of_both_signs_are_two_outputs_and_none_is_lost():
    law = exact_law(zeros, 0.0)
    assert law.outputs == (-1.0, 0.0, 0.0, 1.0)
    assert found(law, exact_law(zeros, 1.0), epsilon=ONE).epsilon_lower == 0.0
    quarter = Fraction(1, 4)
    # the mapping has one zero: it stands for both, and half of the mass is there
    merged = {-1.0: quarter, 0.0: 2 * quarter, 1.0: quarter}
    assert found(law, merged).epsilon_lower == 0.0
    bare = exact_law(lambda value, u, sign: 0.0 if u < 0.5 else 1.0 * sign, 0.0)
    assert found(law, bare).epsilon_lower == math.inf  # -0.0 came from the first
    assert found(law, bare).event.sentence == "the output is -0.0"


def test_an_exact_law_made_by_hand_is_checked_too():
    law = exact_law(zeros, 0.0)
    with pytest.raises(InvalidParameter, match="sum"):
        found(replace(law, probabilities=(Fraction(1, 4),) * 3 + (Fraction(1, 5),)), law)


def test_code_is_judged_at_the_values_given_not_at_floats_near_them():
    """0.1 and 1.1 are 1 apart; the floats next to them are not: another pair, another loss."""
    law = law_of(Code("lastbit.mechanisms.snapping:snapped", epsilon=1.0, bound=4.0))
    assert law is not None
    with pytest.raises(InvalidParameter, match="not a float"):
        law(Fraction(11, 10))


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(Fraction(-1), NONE), (None, Fraction(-1)), (ONE, Fraction(2))]
)
def test_claims_below_zero_are_refused(epsilon, delta):
    with pytest.raises(InvalidParameter):
        exact_finding({0: 1}, {0: 1}, epsilon=epsilon, delta=delta)


def test_a_huge_claim_is_no_error():
    half, huge = Fraction(1, 2), Fraction(10**400)
    one, two = {0: half, 1: half}, {0: Fraction(1, 3), 1: Fraction(2, 3)}
    assert found(one, two, epsilon=huge).delta_lower == 0.0
    assert found(one, {0: 1}, epsilon=huge).delta_lower == 0.5


@given(weights, weights, st.fractions(0, 3))
def test_delta_is_never_above_the_truth(one, two, epsilon):
    """Against the sum of positive parts with a factor from a series, in exact rationals."""
    p = [Fraction(w, sum(one)) for w in one]
    q = [Fraction(w, sum(two)) for w in two]
    factor = sum(epsilon**k / math.factorial(k) for k in range(60))  # below e**epsilon
    truth = max(
        sum(max(NONE, a - factor * b) for a, b in zip(*pair, strict=True))
        for pair in ((p, q), (q, p))
    )
    finding = found(dict(enumerate(p)), dict(enumerate(q)), epsilon=Fraction(epsilon))
    assert finding.delta_lower is not None
    assert Fraction(finding.delta_lower) <= truth
    assert finding.delta_lower == pytest.approx(float(truth), rel=1e-12, abs=1e-15)


@pytest.mark.thinned(one_in=36)
@pytest.mark.parametrize("shift", [1, 7])
@pytest.mark.parametrize("scale", ["1/3", 5, 10**7])
def test_no_window_or_range_of_an_infinite_law_finds_more_than_there_is(scale, shift):
    """Truncation and gathering: the loss of discrete Laplace noise is shift/scale exactly."""
    law = DiscreteLaplace(scale)
    truth = Fraction(shift) / law.scale
    finding = found(law, Shifted(law, shift), epsilon=truth)
    assert Fraction(finding.epsilon_lower) <= truth
    assert finding.delta_lower == 0.0
