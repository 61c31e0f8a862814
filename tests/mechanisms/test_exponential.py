"""The exponential mechanism: its privacy by exact laws, its error, its input."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.laws.discrete import ExpWeighted
from lastbit.mechanisms.exponential import Exponential, exact_utilities, utilities_of
from lastbit.privacy.guarantees import PureDP
from lastbit.privacy.neighbours import ADD_REMOVE
from lastbit.sampling.choice import majorant
from tests.laws.oracle import decimal, decimals, exp
from tests.mechanisms.divergence import mass
from tests.mechanisms.selection import (
    EPSILONS,
    check_frequencies,
    neighbours,
    private,
    sums_to_one,
    work,
)


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize(("sensitivity", "top"), [(1, 3), (2, 2)])
@pytest.mark.parametrize("monotone", [False, True])
def test_privacy_by_the_exact_law(
    epsilon: Fraction, sensitivity: int, top: int, monotone: bool
) -> None:
    pick = Exponential(sensitivity=sensitivity, epsilon=epsilon, monotone=monotone)
    assert pick.guarantee == PureDP(epsilon)
    pairs = neighbours(3, top, sensitivity, monotone=monotone)
    assert private(pick.law, pairs, epsilon)


@pytest.mark.parametrize("monotone", [False, True])
def test_a_rate_one_percent_too_large_is_seen(monotone: bool) -> None:
    """At epsilon 12 the worst pair of the grid comes within 1 % of the bound."""
    good = Exponential(sensitivity=1, epsilon=12, monotone=monotone)
    mutant = Exponential(sensitivity=1, rate=good.rate * Fraction(101, 100), monotone=monotone)
    assert mutant.epsilon == Fraction(12 * 101, 100)
    assert private(good.law, neighbours(3, 3, 1, monotone=monotone), Fraction(12))
    assert not private(mutant.law, neighbours(3, 3, 1, monotone=monotone), Fraction(12))


def test_the_monotone_rate_is_wrong_for_utilities_that_are_not() -> None:
    declared = Exponential(sensitivity=1, epsilon=6, monotone=True)
    assert not private(declared.law, neighbours(3, 3, 1, monotone=False), Fraction(6))


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=6), st.sampled_from(EPSILONS))
def test_law_against_decimals(utilities: list[int], epsilon: Fraction) -> None:
    pick = Exponential(sensitivity=2, epsilon=epsilon)
    assert pick.rate == epsilon / 4
    law = pick.law(utilities)
    assert isinstance(law, ExpWeighted)
    assert sums_to_one(law, len(utilities))
    with decimals():
        total = sum(exp(pick.rate * u) for u in utilities)
        for i, u in enumerate(utilities):
            assert abs(mass(law, i) - exp(pick.rate * u) / total) < Decimal("1e-60")


UTILITIES: list = [[0, 1, 3, 3], ["1/3", 0.5, 2, Decimal("0.1")], np.array([0.5, -2.25, 1e-300])]


@pytest.mark.parametrize("utilities", UTILITIES, ids=range(3))
def test_release_follows_the_law(utilities) -> None:
    pick = Exponential(sensitivity=1, epsilon="3/2")
    sampler = majorant(utilities_of(utilities), pick.rate)
    check_frequencies(sampler, pick.law(utilities), trials=600_000, seed=1)


def test_release_draws_from_that_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def chosen(exponents, size, *, rate):
        seen.append((list(exponents), size, rate))
        return 7

    monkeypatch.setattr("lastbit.mechanisms.exponential.choice_exp", chosen)
    assert Exponential(sensitivity=2, epsilon="1/3").release(["1/3", 2], size=4) == 7
    assert seen == [([Fraction(1, 3), 2], 4, Fraction(1, 12))]


@pytest.mark.parametrize("count", [1, 5, 256, 257, 20_000])
@pytest.mark.parametrize("size", [1, 7])
def test_words_depend_on_the_number_of_candidates_alone(count: int, size: int) -> None:
    generator = np.random.default_rng(0)
    vectors = [np.zeros(count), np.arange(count), generator.normal(size=count) * 1000]
    works = {
        work(majorant(utilities_of(u), Fraction(1, 3)), size, seed)
        for u in vectors
        for seed in range(20)
    }
    assert len(works) == 1


# ---------------------------------------------------------------- error


@pytest.mark.parametrize("count", [2, 3, 10])
@pytest.mark.parametrize("beta", ["1/2", "0.05", "1e-9"])
def test_accuracy_is_reached_by_the_worst_utilities(count: int, beta: str) -> None:
    pick = Exponential(sensitivity=1, epsilon="1/2")
    error = Fraction(pick.accuracy(beta, candidates=count))
    assert pick.beta(error, candidates=count) <= Fraction(beta) * (1 + Fraction(1, 10**12))
    if error == 0:
        return
    hair = error / 10**9

    def bad(loss: Fraction):
        return 1 - pick.law([0] + [-loss] * (count - 1)).probability(0)

    assert bad(error + hair) < Fraction(beta)
    assert bad(error - hair) > Fraction(beta)
    with decimals():  # below the textbook's ln(n/beta)/rate
        assert decimal(error) < (decimal(count) / decimal(Fraction(beta))).ln() * 4


# ---------------------------------------------------------------- declarations and input


def test_guarantees() -> None:
    pick = Exponential(sensitivity="1/2", rate=3, neighbours=ADD_REMOVE)
    assert pick.guarantee == PureDP(3, neighbours=ADD_REMOVE)
    assert pick.guarantee_at(2) == PureDP(12, neighbours=ADD_REMOVE)
    assert pick.guarantee_at(0).epsilon == 0
    assert Exponential(sensitivity="1/2", rate=3, monotone=True).guarantee_at(2).epsilon == 6


GOOD_UTILITIES: list = [
    [1, 2, 3],
    (1.5, 2, 3),
    [2**53 + 1, 0.5],
    [2**70, -(2**70)],
    [np.int8(3), np.uint64(2**64 - 1)],
    [np.float32(0.1), 2],
    ["0.1", Fraction(1, 3), Decimal("0.2")],
    np.array([1, 2], np.int16),
    np.array([2**64 - 1, 0], np.uint64),
    np.array([0.1, 0.2], np.float16),
    np.array([0.1, 0.2], np.longdouble),
    np.array(["1/3", 2], object),
    np.array([1, 2, 3, 4])[::2],
]


@pytest.mark.parametrize("utilities", GOOD_UTILITIES, ids=range(len(GOOD_UTILITIES)))
def test_utilities_are_taken_exactly(utilities) -> None:
    items = list(utilities)
    exact = [
        Fraction(*i.as_integer_ratio()) if hasattr(i, "as_integer_ratio") else Fraction(str(i))
        for i in items
    ]
    assert exact_utilities(utilities_of(utilities)) == exact
    assert 0 <= Exponential(sensitivity=1, epsilon=1).release(utilities) < len(items)
