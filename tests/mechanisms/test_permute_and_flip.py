"""Permute-and-flip: its law by brute force, its privacy by exact laws, its coins word by word."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product
from math import factorial

import numpy as np
import pytest
from flint import fmpq, fmpq_poly
from hypothesis import given, settings, strategies as st

from lastbit.exact.rational import rational
from lastbit.mechanisms.exponential import Exponential, utilities_of
from lastbit.mechanisms.permute_and_flip import PermuteAndFlip, PermuteAndFlipLaw
from lastbit.privacy.guarantees import PureDP
from lastbit.privacy.neighbours import ADD_REMOVE
from lastbit.sampling.bernoulli import Flips, flips
from lastbit.sampling.deterministic import Replay, Seeded
from lastbit.sampling.uniform import below_each
from tests.evidence import Extent
from tests.laws.oracle import Refused, decimal, decimals, exp
from tests.mechanisms.divergence import mass
from tests.mechanisms.selection import (
    EPSILONS,
    Vector,
    check_frequencies,
    neighbours,
    private,
    sums_to_one,
    work,
)

# ---------------------------------------------------------------- the law


def by_permutations(utilities: Vector, i: int) -> fmpq_poly:
    """P[i] as a polynomial in w = exp(-rate), over all orders and all falls of the coins before i.

    In an order, i is released iff all coins before it fall tails and its own falls heads.
    """
    heads = [monomial(max(utilities) - u) for u in utilities]
    total = fmpq_poly([0])
    for order in permutations(range(len(utilities))):
        term = heads[i]
        for j in order[: order.index(i)]:
            term = term * (1 - heads[j])
        total += term
    return total / factorial(len(utilities))


def by_heads(utilities: Vector, i: int) -> fmpq_poly:
    """The same, over all sets of heads: one of them, all alike."""
    heads = [monomial(max(utilities) - u) for u in utilities]
    total = fmpq_poly([0])
    for fallen in product((False, True), repeat=len(utilities)):
        if fallen[i]:
            term = fmpq_poly([fmpq(1, sum(fallen))])
            for fell, p in zip(fallen, heads, strict=True):
                term = term * (p if fell else 1 - p)
            total += term
    return total


def monomial(degree: int) -> fmpq_poly:
    return fmpq_poly([0] * degree + [1])


def at(polynomial: fmpq_poly, w: Decimal) -> Decimal:
    value = Decimal(0)
    for coefficient in reversed(polynomial.coeffs()):
        value = value * w + decimal(Fraction(int(coefficient.p), int(coefficient.q)))
    return value


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_first_heads_in_a_random_order_is_any_of_the_heads(count: int) -> None:
    """The theorem behind the sampler, as an identity of polynomials."""
    for utilities in product(range(3), repeat=count):
        for i in range(count):
            assert by_permutations(utilities, i) == by_heads(utilities, i)


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_law_against_all_permutations(epsilon: Fraction) -> None:
    pick = PermuteAndFlip(sensitivity=1, epsilon=epsilon)
    with decimals():
        w = exp(-pick.rate)
        for utilities in [*product(range(4), repeat=3), *product(range(3), repeat=4)]:
            law = pick.law(utilities)
            for i in range(len(utilities)):
                exact = at(by_permutations(utilities, i), w)
                assert abs(mass(law, i) - exact) < Decimal("1e-60")


def test_law_sums_to_one(extent: Extent) -> None:
    @settings(max_examples=extent.number(30, 100))
    @given(st.lists(st.integers(-30, 5), min_size=1, max_size=30), st.sampled_from(EPSILONS))
    def holds(utilities: list[int], epsilon: Fraction) -> None:
        law = PermuteAndFlip(sensitivity=1, epsilon=epsilon).law(utilities)
        assert sums_to_one(law, len(utilities))
        assert law.support == (0, len(utilities) - 1)
        for i, together in enumerate(law.masses()):  # the quotients against the products
            assert abs(law.probability(i) - law.cdf(i) + law.cdf(i - 1)) < Fraction(1, 2**100)
            assert together.overlaps(law.probability(i).enclosure)

    holds()


def test_law_in_corner_cases() -> None:
    assert PermuteAndFlipLaw([5]).probability(0) == 1
    assert PermuteAndFlipLaw([0, 0]).probability(2) == 0
    assert PermuteAndFlipLaw([0, -1, -1, 0]).quantile("1/2") == 1
    assert PermuteAndFlipLaw([0, -3]).quantile("1/2") == 0
    assert sums_to_one(PermuteAndFlipLaw([0, -(10**9), 0]), 3)


# ---------------------------------------------------------------- privacy


def equal_by_algebra(cost: int):
    """P_x = w**-cost P_y as polynomials in w."""
    return lambda x, y, i: by_heads(x, i) * monomial(cost) == by_heads(y, i)


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize(("sensitivity", "top"), [(1, 3), (2, 2)])
@pytest.mark.parametrize("monotone", [False, True])
def test_privacy_by_the_exact_law(
    epsilon: Fraction, sensitivity: int, top: int, monotone: bool
) -> None:
    pick = PermuteAndFlip(sensitivity=sensitivity, epsilon=epsilon, monotone=monotone)
    assert pick.guarantee == PureDP(epsilon)
    cost = sensitivity * (1 if monotone else 2)
    for count in (2, 3):
        pairs = neighbours(count, top, sensitivity, monotone=monotone)
        assert private(pick.law, pairs, epsilon, equal_by_algebra(cost))


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("monotone", [False, True])
def test_a_rate_too_large_is_seen(epsilon: Fraction, monotone: bool) -> None:
    """Two candidates reach the bound exactly, so a rate off by a millionth is seen."""
    good = PermuteAndFlip(sensitivity=1, epsilon=epsilon, monotone=monotone)
    rate = good.rate * (1 + Fraction(1, 10**6))
    mutant = PermuteAndFlip(sensitivity=1, rate=rate, monotone=monotone)
    assert mutant.epsilon > epsilon
    assert not private(mutant.law, neighbours(2, 3, 1, monotone=monotone), epsilon)


def test_the_monotone_rate_is_wrong_for_utilities_that_are_not() -> None:
    declared = PermuteAndFlip(sensitivity=1, epsilon=1, monotone=True)
    assert not private(
        declared.law, neighbours(2, 3, 1, monotone=False), Fraction(1), equal_by_algebra(1)
    )


# ---------------------------------------------------------------- the coins


def check_flips(sampler: Flips) -> None:
    """Words below `sure` are heads, words from `never` on are tails, and few lie between."""
    for i, (sure, never) in enumerate(zip(sampler.sure, sampler.never, strict=True)):
        distance = sampler.rate * (sampler.greatest - rational(sampler.exponents[i]))
        exact = exp(-min(distance, Fraction(600))) * (1 << 53)
        if Decimal(int(sure)) > exact:
            raise Refused(f"coin {i} falls heads too often")
        if Decimal(int(never)) < exact:
            raise Refused(f"coin {i} falls tails too often")
        if int(never) - int(sure) > 50:
            raise Refused(f"coin {i} is refined too often")


EXPONENTS: list = [
    [0, -1, "1/3", -5.25, 10],
    np.random.default_rng(1).normal(size=400) * 20,
    np.random.default_rng(2).integers(-100, 100, 300),
    np.random.default_rng(3).random(300).astype(np.float32),
    [0, -36, -37, -511, -512, -513, -(10**9)],
    [Fraction(10**400), 0, Fraction(10**400) - Fraction(1, 10**400)],
    np.array([1e308, -1e308, 1e-308, 5e-324]),
    np.array([2**63 - 1, -(2**63), 0]),
    np.array([2**64 - 1, 0], np.uint64),
]


@pytest.mark.parametrize("exponents", EXPONENTS, ids=range(len(EXPONENTS)))
@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 7), Fraction(10**6)], ids=str)
def test_coins_are_enclosed(exponents, rate: Fraction) -> None:
    sampler = flips(utilities_of(exponents), rate)
    with decimals():
        check_flips(sampler)
    best = utilities_of(exponents)
    assert sampler.greatest == max(rational(e) for e in best)


def test_mutants_of_the_coins_are_rejected() -> None:
    sampler = flips(np.linspace(-5, 0, 200), Fraction(1))
    with decimals():
        check_flips(sampler)
        for mutant in (
            replace(sampler, sure=sampler.sure + 60),
            replace(sampler, never=sampler.never - 60),
            replace(sampler, never=sampler.never + 60),
            replace(sampler, rate=Fraction(1001, 1000)),
        ):
            with pytest.raises(Refused):
                check_flips(mutant)


def test_coins_word_by_word() -> None:
    """Around the true probability, through the real comparison; refined words by exact balls."""
    distances = [1, 2, 30]
    sampler = flips(np.array([0, *(-d for d in distances)]), Fraction(1))
    with decimals():
        edges = [int(exp(-d) * (1 << 53)) for d in distances]
    assert all(
        int(sampler.sure[i + 1]) <= e < int(sampler.never[i + 1]) for i, e in enumerate(edges)
    )
    for shift in (-40, -20, -1, 1, 20, 40):
        row = np.array([2**53 - 1, *(max(e + shift, 0) for e in edges)], np.uint64) << np.uint64(11)
        heads = sampler.heads(Replay([row]), 1)
        assert heads.tolist() == [[True, *(e + shift < e or e + shift < 0 for e in edges)]]
    # the word that holds the probability itself: the next 64 bits decide
    row = np.array([0, edges[0], 2**53 - 1, 2**53 - 1], np.uint64) << np.uint64(11)
    with decimals():
        rest = int((exp(-1) * (1 << 53) - edges[0]) * (1 << 64))
    for more, expected in ((rest - 1, True), (rest + 1, False)):
        tape = Replay([row, np.array([more], np.uint64)])
        assert sampler.heads(tape, 1).tolist() == [[True, expected, False, False]]


def test_the_best_always_falls_heads() -> None:
    sampler = flips(np.array([3.0, 3.0, -1e300]), Fraction(1))
    highest = np.full(3, 2**64 - 1, np.uint64)
    assert sampler.heads(Replay([highest]), 1).tolist() == [[True, True, False]]


@given(st.lists(st.tuples(st.integers(1, 2**32 - 1), st.integers(0, 2**64 - 1)), min_size=1))
def test_one_of_k(pairs: list[tuple[int, int]]) -> None:
    counts = np.array([k for k, _ in pairs], np.uint64)
    words = np.array([w for _, w in pairs], np.uint64)
    more = [
        np.array([2**63], np.uint64)
        for k, w in pairs
        if k * w >> 64 != k * (w + 1) - 1 >> 64  # the exact condition for a further word
    ]
    expected = [k * (2 * w + 1) >> 65 if k * w >> 64 != k * (w + 1) - 1 >> 64 else k * w >> 64
                for k, w in pairs]  # fmt: skip
    assert below_each(Replay([words, *more]), counts).tolist() == expected


@pytest.mark.parametrize("k", [1, 2, 3, 7, 2**20 + 7, 2**32 - 1])
def test_one_of_k_at_the_edges(k: int) -> None:
    """At every edge x/k the 64 bits that hold it are refined, their neighbours are not."""
    for x in {x for x in (1, 2, k // 2, k - 1) if 0 < x < k}:
        w = (x << 64) // k
        tape = [np.array([w], np.uint64)]
        if (x << 64) % k:
            low = Replay([*tape, np.array([0], np.uint64)])
            assert below_each(low, np.array([k], np.uint64)).tolist() == [x - 1]
            tape.append(np.array([2**64 - 1], np.uint64))
        assert below_each(Replay(tape), np.array([k], np.uint64)).tolist() == [x]
        before = Replay([np.array([w - 1], np.uint64)])
        assert below_each(before, np.array([k], np.uint64)).tolist() == [x - 1]


def test_which_of_the_heads_is_taken() -> None:
    sampler = flips(np.array([0, -1, -1, -1]), Fraction(1))
    zero, full = 0, 2**64 - 1
    for coins, taken in (([full, zero, full, zero], [0, 1, 3]), ([full] * 4, [0])):
        for rank, index in enumerate(taken):
            chosen = (2 * rank + 1) * 2**63 // len(taken)
            tape = Replay([np.array(coins, np.uint64), np.array([chosen], np.uint64)])
            assert sampler.draw(tape, 1).tolist() == [index]


@pytest.mark.parametrize("count", [3, 16_384, 16_385, 40_000])
def test_many_candidates_in_blocks(count: int) -> None:
    """The chosen one is the best but for one in exp(30): whatever the block it lies in."""
    for best in (0, count // 2, count - 1):
        exponents = np.full(count, -60.0)
        exponents[best] = 0
        draws = flips(exponents, Fraction(1)).draw(Seeded(best), 3)
        assert draws.tolist() == [best] * 3


@pytest.mark.parametrize("count", [1, 5, 1000, 40_000])
@pytest.mark.parametrize("size", [1, 7])
def test_words_depend_on_the_number_of_candidates_alone(count: int, size: int) -> None:
    generator = np.random.default_rng(0)
    vectors = [np.zeros(count), np.arange(count), generator.normal(size=count) * 1000]
    works = {work(flips(u, Fraction(1, 3)), size, seed) for u in vectors for seed in range(20)}
    assert len(works) == 1
    assert works.pop()[0] == 8 * size * (count + 1)


UTILITIES: list = [[0, 1, 3, 3], ["1/3", 0.5, 2, Decimal("0.1")], np.array([0.5, -2.25, 1e-300])]


@pytest.mark.parametrize("utilities", UTILITIES, ids=range(3))
def test_release_follows_the_law(utilities) -> None:
    pick = PermuteAndFlip(sensitivity=1, epsilon="3/2")
    sampler = flips(utilities_of(utilities), pick.rate)
    check_frequencies(sampler, pick.law(utilities), trials=600_000, seed=2)


# ---------------------------------------------------------------- error


@pytest.mark.parametrize("count", [2, 3, 10])
@pytest.mark.parametrize("beta", ["1/3", "0.05", "1e-9"])
def test_accuracy_is_reached_by_the_worst_utilities(count: int, beta: str) -> None:
    pick = PermuteAndFlip(sensitivity=1, epsilon="1/2")
    error = Fraction(pick.accuracy(beta, candidates=count))
    assert pick.beta(error, candidates=count) <= Fraction(beta) * (1 + Fraction(1, 2**50))
    assert error <= Exponential(sensitivity=1, epsilon="1/2").accuracy(beta, candidates=count)
    hair = error / 10**9

    def bad(loss: Fraction):
        return 1 - pick.law([0] + [-loss] * (count - 1)).probability(0)

    assert bad(error + hair) < Fraction(beta)
    assert bad(error - hair) > Fraction(beta)


def test_accuracy_in_corner_cases() -> None:
    pick = PermuteAndFlip(sensitivity=1, epsilon=1)
    assert pick.accuracy("0.6", candidates=2) == 0
    assert pick.beta(0, candidates=4) == 0.75
    million = pick.accuracy("1e-12", candidates=10**6)
    assert pick.beta(million, candidates=10**6) <= Fraction(1, 10**12)
    assert million < Exponential(sensitivity=1, epsilon=1).accuracy("1e-12", candidates=10**6)


@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
def test_never_worse_than_the_exponential_mechanism(epsilon: Fraction) -> None:
    """In the mean, and at every level: McKenna and Sheldon's theorem, on a grid."""
    flip = PermuteAndFlip(sensitivity=1, epsilon=epsilon)
    weigh = Exponential(sensitivity=1, epsilon=epsilon)
    for utilities in [*product(range(4), repeat=3), *product((0, 1, 5), repeat=4)]:
        if len(set(utilities)) == 1:
            assert flip.expected_error(utilities) == weigh.expected_error(utilities) == 0
            continue
        assert flip.expected_error(utilities) < weigh.expected_error(utilities)
        for level in range(max(utilities)):
            bad = [i for i, u in enumerate(utilities) if u <= level]
            mine = sum(flip.law(utilities).probability(i) for i in bad)
            theirs = sum(weigh.law(utilities).probability(i) for i in bad)
            assert bad == [] or mine < theirs


# ---------------------------------------------------------------- declarations and input


def test_guarantees() -> None:
    pick = PermuteAndFlip(sensitivity="1/2", rate=3, neighbours=ADD_REMOVE)
    assert pick.guarantee == PureDP(3, neighbours=ADD_REMOVE)
    assert pick.guarantee_at(2) == PureDP(12, neighbours=ADD_REMOVE)
    assert pick.guarantee_at(0).epsilon == 0
    assert PermuteAndFlip(sensitivity="1/2", rate=3, monotone=True).guarantee_at(2).epsilon == 6
