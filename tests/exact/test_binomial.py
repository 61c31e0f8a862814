"""Binomial tails and the ends of Clopper and Pearson against exact sums."""

import math
from fractions import Fraction
from statistics import NormalDist

import pytest
from hypothesis import given, settings, strategies as st

from lastbit.errors import InvalidParameter
from lastbit.exact.binomial import (
    clopper_pearson,
    probability_lower,
    probability_upper,
    scaled_tail,
    tail_at_most,
    tail_surely_at_most,
)

TWENTIETH = Fraction(1, 20)


def mass(hits: int, trials: int, p: Fraction) -> Fraction:
    return math.comb(trials, hits) * p**hits * (1 - p) ** (trials - hits)


def tail(hits: int, trials: int, p: Fraction) -> Fraction:
    """P[Bin(trials, p) >= hits], exactly."""
    return sum((mass(k, trials, p) for k in range(hits, trials + 1)), Fraction(0))


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
    low, high = clopper_pearson(trials - misses, trials, error="1e-6")
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


counts = st.integers(1, 10**9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.evidence
@settings(max_examples=40, deadline=None)
@given(counts)
def test_the_interval_holds_the_share_seen(pair):
    hits, trials = pair
    low, high = clopper_pearson(hits, trials, error="1e-6")
    assert 0 <= low <= hits / trials <= high <= 1


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 10**6), st.data())
def test_more_hits_never_lower_the_end(trials, data):
    hits = data.draw(st.integers(0, trials - 1))
    assert probability_lower(hits, trials, error="1e-6") <= probability_lower(
        hits + 1, trials, error="1e-6"
    )


@pytest.mark.parametrize("n", [1, 2, 10, 77])
@pytest.mark.parametrize("confidence", ["0.01", "0.5", "0.95", "0.999999999999"])
def test_clopper_pearson_by_rational_tails(n: int, confidence: str) -> None:
    """Each end lies on the safe side, and hardly further than it must: decided by rationals."""
    level = (1 - Fraction(confidence)) / 2
    for count in {0, 1, n // 3, n // 2, n - 1, n}:
        low, high = (
            Fraction(end) for end in clopper_pearson(count, n, error=1 - Fraction(confidence))
        )
        if count == 0:
            assert low == 0
        else:
            assert tail(count, n, low) <= level
            assert tail(count, n, low * (1 + Fraction(1, 10**12))) > level
        if count == n:
            assert high == 1
        else:
            assert tail(n - count, n, 1 - high) <= level
            nearer = high - (1 - high) / 10**12 - Fraction(1, 10**15)
            assert tail(n - count, n, 1 - nearer) > level


@pytest.mark.parametrize(("count", "n"), [(1, 10**6), (300_000, 10**6), (10**9, 3 * 10**9)])
def test_clopper_pearson_for_many(count: int, n: int) -> None:
    """Close to the normal interval where that is good, and the ends in their order."""
    low, high = clopper_pearson(count, n, error="0.05")
    assert 0 < low < count / n < high < 1
    if count > 1:
        half = NormalDist().inv_cdf(0.975) * math.sqrt(count / n * (1 - count / n) / n)
        assert high - low == pytest.approx(2 * half, rel=1e-2)
        assert high - low > 2 * half


def test_extreme_confidence_ends_at_the_ends() -> None:
    almost = 1 - Fraction(1, 10**400)
    low, high = clopper_pearson(1, 2, error=1 - almost)
    assert low == 0
    assert high == 1


@given(st.integers(1, 30), st.data())
def test_scaled_tail_is_the_plain_sum(trials: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, trials))
    chance = data.draw(st.fractions(0, 1, max_denominator=50).filter(lambda p: 0 < p < 1))
    yes, no = chance.numerator, chance.denominator - chance.numerator
    terms = (math.comb(trials, i) * yes**i * no ** (trials - i) for i in range(count, trials + 1))
    assert scaled_tail(count, trials, chance) == sum(terms)


@pytest.mark.parametrize("trials", [30, 201])
def test_comparisons_with_tails_are_decided_at_the_last_bit(trials: int) -> None:
    p, little = Fraction(2, 7), Fraction(1, 2**3000)
    for hits in (1, trials // 4, trials // 2, trials):
        level = tail(hits, trials, p)
        assert tail_at_most(hits, trials, p, level)
        assert tail_at_most(hits, trials, p, level + little)
        assert not tail_at_most(hits, trials, p, level - little)
        assert tail_surely_at_most(hits, trials, p, level * (1 + Fraction(1, 2**40)))
        assert not tail_surely_at_most(hits, trials, p, level * (1 - Fraction(1, 2**40)))


@pytest.mark.parametrize("trials", [1, 5, 200, 201, 1000])
def test_a_certain_outcome_has_a_tail_of_0_or_1(trials: int) -> None:
    for p in (Fraction(0), Fraction(1)):
        for hits in (0, 1, trials):
            certain = tail(hits, trials, p)
            assert certain in (0, 1) and int(scaled_tail(hits, trials, p)) == certain
            assert tail_at_most(hits, trials, p, Fraction(1))
            assert tail_at_most(hits, trials, p, TWENTIETH) == (certain == 0)
            assert tail_at_most(hits, trials, p, Fraction(0)) == (certain == 0)


def test_counts_and_errors_that_mean_nothing() -> None:
    with pytest.raises(InvalidParameter, match="hits are more than the trials"):
        clopper_pearson(3, 2, error="0.05")
    for error in (0, 1, "1.5"):
        with pytest.raises(InvalidParameter, match="error is not between 0 and 1"):
            clopper_pearson(1, 2, error=error)
