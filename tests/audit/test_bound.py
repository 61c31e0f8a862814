"""The ends against exact binomial tails; how often a true claim is called broken, exactly."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastbit.audit.bound import (
    delta_lower,
    epsilon_lower,
    interval,
    probability_lower,
    probability_upper,
)
from lastbit.errors import InvalidParameter, WrongType

TWENTIETH = Fraction(1, 20)


def mass(hits: int, trials: int, p: Fraction) -> Fraction:
    return math.comb(trials, hits) * p**hits * (1 - p) ** (trials - hits)


def tail(hits: int, trials: int, p: Fraction) -> Fraction:
    """P[Bin(trials, p) >= hits], exactly."""
    return sum((mass(k, trials, p) for k in range(hits, trials + 1)), Fraction(0))


# ---------------------------------------------------------------- exact


@pytest.mark.parametrize("trials", [1, 2, 7, 30])
@pytest.mark.parametrize("error", [Fraction(1, 3), TWENTIETH, Fraction(1, 10**6)])
def test_the_lower_end_is_the_greatest_with_so_small_a_tail(trials, error):
    for hits in range(1, trials + 1):
        low = Fraction(probability_lower(hits, trials, error=error))
        assert tail(hits, trials, low) <= error
        assert tail(hits, trials, low * (1 + Fraction(1, 10**9))) > error


@pytest.mark.parametrize("trials", [1, 5, 30])
def test_the_upper_end_mirrors_the_lower(trials):
    for hits in range(trials):
        high = Fraction(probability_upper(hits, trials, error=TWENTIETH))
        assert tail(trials - hits, trials, 1 - high) <= TWENTIETH
        nearer = high * (1 - Fraction(1, 10**9))
        assert tail(trials - hits, trials, 1 - nearer) > TWENTIETH
    assert probability_upper(trials, trials, error=TWENTIETH) == 1.0


def wald(hits: int, trials: int) -> float:
    """A mutant: the normal approximation that textbooks give."""
    share = hits / trials
    return share - 1.645 * math.sqrt(share * (1 - share) / trials)


def misses(low, trials: int, p: Fraction) -> Fraction:
    """How likely a lower end exceeds the true probability, exactly."""
    wrong = [k for k in range(trials + 1) if low(k, trials) > p]
    return sum((mass(k, trials, p) for k in wrong), Fraction(0))


@pytest.mark.parametrize("p", [Fraction(1, 100), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
def test_the_lower_end_is_wrong_as_seldom_as_promised(p):
    assert misses(lambda k, n: probability_lower(k, n, error=TWENTIETH), 40, p) <= TWENTIETH


def test_the_normal_approximation_would_be_wrong_too_often():
    assert misses(wald, 40, Fraction(49, 50)) > TWENTIETH


def accusations(bound, trials: int, p: Fraction, q: Fraction) -> Fraction:
    """How likely a mechanism with P = p, Q = q is said to lose more than ln(p/q), exactly."""
    total = Fraction(0)
    for hits in range(trials + 1):
        for others in range(trials + 1):
            if bound(hits, others) > math.log(p / q) * (1 + 1e-12):
                total += mass(hits, trials, p) * mass(others, trials, q)
    return total


@pytest.mark.parametrize(
    ("p", "q"), [(Fraction(2, 3), Fraction(1, 3)), (Fraction(1, 20), Fraction(1, 25))]
)
def test_a_true_claim_is_called_broken_as_seldom_as_promised(p, q):
    def certified(hits, others):
        return epsilon_lower(hits, 20, others, 20, error=TWENTIETH)

    def plain(hits, others):  # a mutant: the estimate itself
        return math.log((hits + 1e-9) / (others + 1e-9)) if hits else 0.0

    assert accusations(certified, 20, p, q) <= TWENTIETH
    assert accusations(plain, 20, p, q) > TWENTIETH


def test_delta_is_subtracted_before_the_ratio():
    error = Fraction(1, 100)
    low, high = (
        probability_lower(800, 1000, error=error / 2),
        probability_upper(100, 1000, error=error / 2),
    )
    found = epsilon_lower(800, 1000, 100, 1000, delta="0.1", error=error)
    assert found == pytest.approx(math.log((low - 0.1) / high), rel=1e-12)
    assert found <= math.log((Fraction(low) - Fraction(1, 10)) / Fraction(high)) * (1 + 1e-15)
    excess = delta_lower(800, 1000, 100, 1000, epsilon=1, error=error)
    assert excess == pytest.approx(low - math.e * high, rel=1e-12)


def independent_tail(hits: int, trials: int, p: Fraction) -> Fraction:
    """P[Bin(trials, p) >= hits] from above, for hits above the mean, in whole numbers.

    One exact mass, then ratios of neighbours: they fall, so a geometric series bounds the rest.
    """
    places = 1 << 200
    odds = p / (1 - p)
    first = mass(hits, trials, p)
    scale = Fraction(1, 2 ** (first.denominator.bit_length() - first.numerator.bit_length()))
    term = math.ceil(first / scale * places)
    total, k = term, hits
    while k < trials and term > total >> 80:
        ratio = Fraction(trials - k, k + 1) * odds
        term = -(-term * ratio.numerator // ratio.denominator)
        total, k = total + term, k + 1
    ratio = Fraction(trials - k, k + 1) * odds if k < trials else Fraction(0)
    return (total + term * ratio / (1 - ratio)) * scale / places


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize(
    ("hits", "trials"),
    [(1, 4000), (37, 4000), (2000, 4000), (3990, 4000), (3999, 4000), (60, 30_000)],
)
@pytest.mark.parametrize("error", [Fraction(1, 3), Fraction(1, 10**6), Fraction(1, 10**12)])
def test_many_trials_against_a_sum_that_knows_no_beta_function(hits, trials, error):
    low = Fraction(probability_lower(hits, trials, error=error))
    assert independent_tail(hits, trials, low) <= error * (1 + Fraction(1, 2**70))
    assert independent_tail(hits, trials, low * (1 + Fraction(1, 10**9))) > error


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("misses", [0, 1, 255, 2**24])
def test_among_billions_of_trials_the_ends_are_still_sharp(misses):
    """Near 1 the one form of the beta function has no digit left; the other has."""
    trials = 1 << 32
    low, high = interval(trials - misses, trials, "1e-6")
    spread = 6 * math.sqrt(misses + 30) / trials
    assert 1 - misses / trials - 2 * spread < low <= 1 - misses / trials <= high
    rare = probability_upper(misses, trials, error="1e-6")
    assert misses / trials < rare < misses / trials + 2 * spread


@pytest.mark.parametrize("digits", [300, 5000])
def test_errors_below_every_float(digits):
    error = Fraction(1, 10**digits)
    assert 0 <= probability_lower(9, 10, error=error) < 1e-30
    low = probability_lower(10**6, 10**6, error=error)
    assert low == pytest.approx(math.exp(-digits * math.log(10) / 10**6), rel=1e-9)


# ---------------------------------------------------------------- properties


counts = st.integers(1, 10**9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.evidence
@settings(max_examples=40, deadline=None)
@given(counts)
def test_the_interval_holds_the_share_seen(pair):
    hits, trials = pair
    low, high = interval(hits, trials, "1e-6")
    assert 0 <= low <= hits / trials <= high <= 1


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 10**6), st.data())
def test_more_hits_never_lower_the_end(trials, data):
    hits = data.draw(st.integers(0, trials - 1))
    assert probability_lower(hits, trials) <= probability_lower(hits + 1, trials)


def test_nothing_seen_shows_nothing():
    assert epsilon_lower(0, 10**6, 10**6, 10**6) == 0.0
    assert epsilon_lower(5, 10, 5, 10) == 0.0
    assert epsilon_lower(10**6, 10**6, 0, 10**6, delta=1) == 0.0
    assert delta_lower(5, 10, 5, 10, epsilon=0) == 0.0
    assert delta_lower(10, 10, 0, 10, epsilon=10**6) == 0.0
    assert delta_lower(10**6, 10**6, 0, 10**6, epsilon=10**400) == 0.0


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ((-1, 10), InvalidParameter),
        ((11, 10), InvalidParameter),
        ((0, 0), InvalidParameter),
        ((1, 2**34 + 1), InvalidParameter),
        ((1, 10**400), InvalidParameter),
        ((1.5, 10), WrongType),
        ((True, 10), WrongType),
        (("1", 10), WrongType),
        ((math.nan, 10), WrongType),
    ],
)
def test_counts_without_meaning_are_refused(arguments, kind):
    with pytest.raises(kind):
        interval(*arguments)


@pytest.mark.parametrize("error", [0, 1, -1, "2", math.nan, math.inf, True, None])
def test_errors_without_meaning_are_refused(error):
    with pytest.raises(InvalidParameter):
        epsilon_lower(1, 2, 1, 2, error=error)


@pytest.mark.parametrize("delta", [-1, 2, math.nan, "x"])
def test_deltas_without_meaning_are_refused(delta):
    with pytest.raises(InvalidParameter):
        epsilon_lower(1, 2, 1, 2, delta=delta)


def test_a_negative_epsilon_is_refused():
    with pytest.raises(InvalidParameter):
        delta_lower(1, 2, 1, 2, epsilon=-1)
