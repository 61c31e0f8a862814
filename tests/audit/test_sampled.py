"""Counts are of fresh outputs, and read at times fixed beforehand."""

import math
from fractions import Fraction

import pytest

from lastbit.audit.blackbox.sampled import explore
from lastbit.audit.blackbox.team import Coins
from lastbit.audit.bounds import ratio_lower
from tests.audit.test_search import coin, plan, silent
from tests.laws.frequency import assert_frequency


def test_the_counts_are_of_the_tests_alone():
    """Nothing drawn before the last 2 * samples outputs may be among the hits."""
    calls: list[tuple[int, int]] = []
    flip = coin()

    def noting(value, size):
        calls.append((value, size))
        return flip(value, size)

    finding = explore(noting, [(2, 8)], plan(samples=500), silent)
    assert finding.trials + finding.other_trials == 1000
    assert finding.samples == sum(size for _, size in calls)
    assert sum(size for _, size in calls[-2:]) == 1000
    assert [value for value, _ in calls[-2:]] == [2, 8]


def test_an_event_fitted_to_noise_is_refuted_by_the_tests():
    """From the moment the event is fixed the coin is fair: its hits must show that."""
    flip, drawn = coin(), [0]
    limit = 2 * 3000

    def turning(value, size):
        drawn[0] += size
        return flip(value if drawn[0] < total - limit + 1 else 5, size)

    total = 1 << 60
    counted = explore(turning, [(2, 8)], plan(), silent).samples
    flip, drawn, total = coin(), [0], counted
    finding = explore(turning, [(2, 8)], plan(), silent)
    assert finding.trials + finding.other_trials == 6000
    assert finding.epsilon_lower == 0.0


def binomial(trials: int, share: Fraction) -> list[Fraction]:
    return [
        math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(trials + 1)
    ]


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (Fraction(3, 4), Fraction(1, 4)),
        (Fraction(1, 2), Fraction(2, 5)),
        (Fraction(1), Fraction(1, 2)),
    ],
)
def test_the_ratio_is_wrong_as_rarely_as_it_says(p, q):
    """The exact chance of a bound above the truth, over all outcomes of 14 runs."""
    runs, allowed, truth = 14, Fraction(1, 20), math.log(p / q)
    wrong = mutant = Fraction(0)
    for first, chance in enumerate(binomial(runs, Fraction(1, 2))):
        for hits, one in enumerate(binomial(first, p)):
            for others, two in enumerate(binomial(runs - first, q)):
                share = chance * one * two
                wrong += share * (ratio_lower(hits, others, error=allowed) > truth)
                mutant += share * (math.log((hits + 0.5) / (others + 0.5)) > truth)
    assert wrong <= allowed < mutant  # the mutant has no interval


def test_the_ratio_rounds_down_and_refuses_nothing():
    error = Fraction(1, 10**6)
    assert ratio_lower(0, 0, error=error) == ratio_lower(0, 9, error=error) == 0.0
    assert ratio_lower(50, 60, error=error) == 0.0
    assert 0 < ratio_lower(10_000, 5000, error=error) < math.log(2)
    # no hits of the other input: the share is at least error**(1/hits)
    share = float(error) ** (1 / 100)
    assert ratio_lower(100, 0, error=error) == pytest.approx(math.log(share / (1 - share)))


def test_coins_are_fair_and_repeat():
    coins, again = Coins(5, "tests"), Coins(5, "tests")
    numbers = [coins.heads(size) for size in (1, 7, 8, 9, 10_000)]
    assert numbers == [again.heads(size) for size in (1, 7, 8, 9, 10_000)]
    assert all(0 <= n <= size for n, size in zip(numbers, (1, 7, 8, 9, 10_000), strict=True))
    heads = sum(coins.heads(3) for _ in range(20_000))
    assert_frequency(heads, trials=60_000, probability=0.5)
    assert Coins(6, "tests").heads(10_000) != Coins(5, "tests").heads(10_000)


def test_a_claim_gets_a_delta():
    finding = explore(coin(), [(2, 8)], plan(epsilon=Fraction(1, 2)), silent)
    assert finding.delta_lower is not None
    assert 0.2 < finding.delta_lower < 0.8
    assert finding.epsilon_lower > 0.5
