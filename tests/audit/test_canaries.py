"""What right guesses prove: the worst release attains the tail exactly, and none passes it."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.audit import audit_training, guesses_epsilon_lower, guesses_tail
from lastbit.audit.canaries import looks_at, tail_ball
from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact import ends

ODDS = (Fraction(1), Fraction(3, 2), Fraction(3), Fraction(9))  # e**epsilon


def binomial(r: int, odds: Fraction) -> list[Fraction]:
    q = odds / (1 + odds)
    return [math.comb(r, k) * q**k * (1 - q) ** (r - k) for k in range(r + 1)]


def exact_tail(v: int, r: int, mass: Fraction, odds: Fraction) -> Fraction:
    b = binomial(r, odds)
    beta = sum(b[v:])
    return beta + mass * beta * (1 - beta) / (v * b[v])


def delta_of(release: np.ndarray, odds: Fraction) -> Fraction:
    """The delta at e**epsilon = odds of a table of P[output | coins], for each flip of a coin."""
    m = int(math.log2(len(release)))
    flips = ((s, s ^ (1 << i)) for s in range(len(release)) for i in range(m))
    return max(
        sum((max(a - odds * b, Fraction(0)) for a, b in zip(release[s], release[t], strict=True)))
        for s, t in flips
    )


def law_of_right(release: np.ndarray, guesses: list[int], r: int) -> list[Fraction]:
    """P[W = k] for each k, where output y guesses the coins of `guesses[y]`, all of them."""
    m = int(math.log2(len(release)))
    law = [Fraction(0)] * (r + 1)
    for s, y in product(range(len(release)), range(len(guesses))):
        law[m - (s ^ guesses[y]).bit_count()] += release[s][y] / 2**m
    return law


def worst(m: int, v: int, delta: Fraction, odds: Fraction) -> Any:
    """Randomized response whose weights rise at v right ones; None where delta allows all."""
    b = binomial(m, odds)
    beta, rise = sum(b[v:]), m * delta / (v * b[v])
    level = 1 - rise * beta
    if level < 0:
        return None
    right = [[m - (s ^ y).bit_count() for y in range(2**m)] for s in range(2**m)]
    weights = [(level + rise * (k >= v)) * b[k] / math.comb(m, k) for k in range(m + 1)]
    return np.array([[weights[k] for k in row] for row in right])


# ---------------------------------------------------------------- exact


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 1000), Fraction(1, 20)])
@pytest.mark.parametrize("odds", ODDS)
@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_the_worst_release_attains_the_tail(m, odds, delta):
    for v in range(1, m + 1):
        release = worst(m, v, delta, odds)
        if release is None:
            continue
        assert all(sum(row) == 1 for row in release)
        assert delta_of(release, odds) == delta
        reached = sum(law_of_right(release, list(range(2**m)), m)[v:], Fraction(0))
        assert reached == exact_tail(v, m, m * delta, odds)
        low, high = ends(tail_ball(v, m, m * delta, odds / (1 + odds)))
        assert low <= reached <= high and high - low < Fraction(1, 10**12)


def test_abstaining_is_allowed_for_and_attained():
    """Of three coins one, at random, is published: its delta is three times the delta of each."""
    m, delta, odds = 3, Fraction(1, 50), Fraction(2)
    one = worst(1, 1, m * delta, odds)
    release = np.array(
        [[one[s >> i & 1][y] / m for i, y in product(range(m), (0, 1))] for s in range(8)]
    )
    assert delta_of(release, odds) == delta
    right = sum(release[s][2 * i + (s >> i & 1)] for s in range(8) for i in range(m)) / 8
    assert right == exact_tail(1, 1, m * delta, odds)


MUTANTS = {
    "one more than was right": lambda v, r, m, d, o: exact_tail(v + 1, r, m * d, o) if v < r else 0,
    "delta left out": lambda v, r, m, d, o: exact_tail(v, r, Fraction(0), o),
    "delta of one canary": lambda v, r, m, d, o: exact_tail(v, r, d, o),
    "half of the delta": lambda v, r, m, d, o: exact_tail(v, r, m * d / 2, o),
    "epsilon of two canaries": lambda v, r, m, d, o: exact_tail(v, r, m * d, o * Fraction(99, 100)),
}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_smaller_tail_is_refuted(mutant):
    m, v, delta, odds = 4, 4, Fraction(1, 20), Fraction(3)
    law = law_of_right(worst(m, v, delta, odds), list(range(2**m)), m)
    reached = sum(law[v:], Fraction(0))
    assert mutant(v, m, m, delta, odds) < reached


@pytest.mark.parametrize("odds", ODDS)
def test_no_honest_loop_is_blamed_more_often_than_stated(odds):
    """Over all outcomes of each worst release, at errors of all sizes."""
    m, delta = 4, Fraction(1, 100)
    loss = math.log(odds) * (1 + 1e-12)
    for v in range(1, m + 1):
        release = worst(m, v, delta, odds)
        if release is None:
            continue
        law = law_of_right(release, list(range(2**m)), m)
        for error in ("0.6", "0.3", "0.1", "0.05", "0.02"):
            bounds = [
                guesses_epsilon_lower(k, m, m, delta=delta, error=error) for k in range(m + 1)
            ]
            assert sum(p for p, e in zip(law, bounds, strict=True) if e > loss) <= Fraction(error)


@given(st.data())
def test_no_release_passes_the_tail(data):
    """Any table of two or three coins, with its own delta, and any guesses."""
    m = data.draw(st.integers(2, 3))
    outputs = data.draw(st.integers(1, 4))
    row = st.lists(st.integers(0, 9), min_size=outputs, max_size=outputs).filter(any)
    rows = data.draw(st.lists(row, min_size=2**m, max_size=2**m))
    release = np.array([[Fraction(x, sum(r)) for x in r] for r in rows])
    guesses = data.draw(st.lists(st.integers(0, 2**m - 1), min_size=outputs, max_size=outputs))
    odds = data.draw(st.sampled_from(ODDS))
    law = law_of_right(release, guesses, m)
    delta = delta_of(release, odds)
    for v in range(1, m + 1):
        assert sum(law[v:]) <= exact_tail(v, m, m * delta, odds)


# ---------------------------------------------------------------- properties


counts = st.integers(1, 300).flatmap(
    lambda m: st.integers(1, m).flatmap(
        lambda r: st.tuples(st.integers(1, r), st.just(r), st.just(m))
    )
)


@given(counts, st.fractions(0, 5), st.fractions(0, 1))
def test_the_tail_rises_with_epsilon_and_delta_and_falls_with_right_guesses(count, epsilon, delta):
    v, r, m = count
    tail = guesses_tail(v, r, m, epsilon=epsilon, delta=delta)
    nearly = tail * (1 - 1e-12)
    assert 0 < tail <= 1
    assert guesses_tail(v, r, m, epsilon=epsilon + 1, delta=delta) >= nearly
    assert guesses_tail(v, r, m, epsilon=epsilon, delta=delta + (1 - delta) / 2) >= nearly
    assert guesses_tail(v, r, m + 1, epsilon=epsilon, delta=delta) >= nearly
    assert v == 1 or guesses_tail(v - 1, r, m, epsilon=epsilon, delta=delta) >= nearly


@given(counts, st.sampled_from(["0.1", "1e-6", "1e-30"]), st.sampled_from([0, "1e-9", "1e-3"]))
def test_the_bound_is_an_epsilon_that_the_tail_refutes(count, error, delta):
    v, r, m = count
    bound = guesses_epsilon_lower(v, r, m, delta=delta, error=error)
    assert bound == 0 or guesses_tail(v, r, m, epsilon=bound, delta=delta) <= Fraction(error)
    above = guesses_tail(v, r, m, epsilon=bound + 1e-6, delta=delta)
    assert above >= Fraction(error) * (1 - Fraction(1, 1000))
    assert v == r or guesses_epsilon_lower(v + 1, r, m, delta=delta, error=error) >= bound - 1e-9


def alpha(v: int, b: list) -> Fraction | float:
    """What the paper adds m delta times."""
    return max(2 * sum(b[v - i : v]) / i for i in range(1, v + 1))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("r", [1, 5, 40, 200])
def test_the_tail_is_below_that_of_the_paper_where_it_refutes(r, epsilon):
    b = [float(x) for x in binomial(r, Fraction(math.exp(epsilon)))]
    for v in range(1, r + 1):
        if (beta := math.fsum(b[v:])) < 0.1:
            theirs = beta + alpha(v, b) * 2 * r * 1e-5
            ours = guesses_tail(v, r, 2 * r, epsilon=epsilon, delta=1e-5)
            assert ours <= theirs * (1 + 1e-9) + 1e-15


def test_a_release_passes_the_tail_of_the_paper_where_it_is_near_one():
    delta, odds = Fraction(1, 100), Fraction(3)
    release, b = worst(2, 1, delta, odds), binomial(2, odds)
    assert delta_of(release, odds) == delta
    reached = sum(law_of_right(release, list(range(4)), 2)[1:], Fraction(0))
    assert reached == sum(b[1:]) + Fraction(5, 16) * delta
    assert reached > sum(b[1:]) + alpha(1, b) * 2 * delta == sum(b[1:]) + Fraction(4, 16) * delta


@given(st.integers(1, 5000))
def test_looks_take_each_canary_once(m):
    assert all(a >= 0 and b >= 0 and 1 <= a + b <= m for a, b in looks_at(m))


# ---------------------------------------------------------------- the audit


def test_a_loop_that_tells_all_is_refuted_and_one_that_tells_nothing_is_not():
    told = audit_training(lambda included: included, canaries=1000, epsilon=2, delta="1e-9")
    assert told.broken and 2 < told.epsilon_lower < told.reach
    assert told.to_dict()["broken"] and "REFUTED" in str(told)
    silent = audit_training(np.zeros_like, canaries=1000, epsilon=2, delta="1e-9")
    assert not silent.broken and silent.epsilon_lower == 0
    assert audit_training(lambda included: included, canaries=1000).broken is False


def test_one_canary_in_ten_that_tells_is_seen_by_few_guesses():
    rng = np.random.default_rng(0)

    def loop(included):
        return np.where(np.arange(4000) % 10 == 0, 100 * included - 50.0, rng.normal(size=4000))

    found = audit_training(loop, canaries=4000, epsilon=1)
    assert found.broken and found.guesses < 500


def test_what_the_loop_does_to_the_coins_changes_no_count():
    def loop(included):
        included[:] = True
        return np.zeros(len(included))

    assert not audit_training(loop, canaries=400, epsilon="0.1").broken


def test_progress_is_told():
    seen = []

    def loop(included, progress):
        progress(0.5)
        return included

    audit_training(
        loop, canaries=200, epsilon=1, progress=lambda share, words: seen.append((share, words))
    )
    assert seen[0][0] == 0.5 and seen[0][1].startswith("training on ")


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        (lambda n: np.zeros(n - 1), "have the shape"),
        (lambda n: np.full(n, np.nan), "hold a NaN"),
        (lambda n: ["x"] * n, "are not numbers"),
        (lambda n: None, "scores"),
    ],
)
def test_scores_without_meaning_are_refused(scores, problem):
    with pytest.raises((InvalidParameter, WrongType), match=problem):
        audit_training(lambda included: scores(len(included)), canaries=1000, epsilon=1)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (dict(canaries=10, epsilon=1), "too few"),
        (dict(canaries=1000, epsilon=9), "too few"),
        (dict(canaries=1000, epsilon=1, delta="1e-5"), "delta is not below"),
        (dict(canaries=0, epsilon=1), "canaries"),
        (dict(canaries=2**21, epsilon=1), "2\\*\\*20"),
        (dict(canaries=1000, epsilon=-1), "epsilon"),
        (dict(canaries=1000, epsilon=1, delta=2), "delta"),
        (dict(canaries=1000, epsilon=1, error=0), "error"),
    ],
)
def test_what_no_run_could_refute_is_refused_before_it(said, problem):
    def loop(included):
        raise AssertionError("trained")

    with pytest.raises(LastbitError, match=problem):
        audit_training(loop, **said)


@pytest.mark.parametrize("count", [(2, 1, 1), (1, 2, 1), (-1, 1, 1), (0, 0, 1), (1, 1, 2**21)])
def test_counts_without_meaning_are_refused(count):
    with pytest.raises(InvalidParameter):
        guesses_tail(*count, epsilon=1)
