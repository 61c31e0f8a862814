"""Two finite laws: what holds between them, against every set of outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from lastbit.errors import LastbitError
from lastbit.privacy import ZCDP, ApproxDP, LawPair, ProbabilisticDP, PureDP

Law = dict[Any, Fraction]


def sets(outputs: range) -> Iterator[tuple[int, ...]]:
    return (s for size in range(len(outputs) + 1) for s in combinations(outputs, size))


def probabilistic(p: list[Fraction], q: list[Fraction], odds: Fraction) -> Fraction:
    """The least delta by Definition 2: over all sets left out, all sets S."""
    every = range(len(p))
    return min(
        sum((p[z] for z in out), Fraction(0))
        for out in sets(every)
        if all(
            sum(p[z] for z in s if z not in out) <= odds * sum(q[z] for z in s if z not in out)
            for s in sets(every)
        )
    )


def approximate(p: list[Fraction], q: list[Fraction], odds: Fraction) -> Fraction:
    return max(sum(p[z] for z in s) - odds * sum(q[z] for z in s) for s in sets(range(len(p))))


def laws() -> st.SearchStrategy[list[Fraction]]:
    weights = st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(any)
    return weights.map(lambda drawn: [Fraction(w, sum(drawn)) for w in drawn])


@settings(max_examples=60, deadline=None)
@given(laws(), laws(), st.sampled_from(["1", "3/2", "2", "3", "10"]), st.integers(0, 3))
def test_the_definitions(p: list[Fraction], q: list[Fraction], ratio: str, merged: int) -> None:
    odds = Fraction(ratio)
    pair = LawPair(dict(enumerate(p)), dict(enumerate(q)))
    least = max(probabilistic(p, q, odds), probabilistic(q, p, odds))
    excess = max(approximate(p, q, odds), approximate(q, p, odds))
    assert pair.probabilistic_delta(odds=odds) == least
    assert pair.approximate_delta(odds=odds) == excess
    assert excess <= least  # Proposition 5
    processed = pair.mapped(lambda z: min(z, merged))
    assert processed.approximate_delta(odds=odds) <= excess  # Proposition 7
    # a rational epsilon on either side of ln odds decides the same, or allows less
    below, above = Fraction(math.log(odds)) - Fraction(1, 10**9), math.log(odds) + 1e-9
    assert pair.probabilistic_delta(epsilon=max(below, Fraction(0))) >= least
    assert pair.satisfies(ProbabilisticDP(above, least))
    assert pair.satisfies(ApproxDP(above, excess))
    if excess:
        assert not pair.satisfies(ApproxDP(above, excess * Fraction(999, 1000)))  # a mutant
    assert pair.satisfies(PureDP(above)) == (least == 0)


def proposition_4(odds: Fraction, delta: Fraction) -> LawPair:
    """Equations (22) and (23)."""
    likely, rare = (1 - delta) * odds / (1 + odds), (1 - delta) / (1 + odds)
    return LawPair({0: delta, 1: likely, 2: rare}, {1: rare, 2: likely, 3: delta})


@pytest.mark.parametrize("odds", [Fraction(3), Fraction(11, 10)])
@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 2)])
def test_proposition_4(odds: Fraction, delta: Fraction) -> None:
    pair = proposition_4(odds, delta)
    processed = pair.mapped(lambda z: 4 if z in (0, 1) else z)  # equation (24)
    assert [set(bad) for bad in pair.bad_outputs(odds=odds)] == [{0}, {3}]
    assert pair.probabilistic_delta(odds=odds) == delta
    assert [set(bad) for bad in processed.bad_outputs(odds=odds)] == [{4}, {3}]
    four = delta + (1 - delta) * odds / (1 + odds)
    assert processed.probabilistic_delta(odds=odds) == four > delta
    assert pair.approximate_delta(odds=odds) == processed.approximate_delta(odds=odds) == delta
    # a hair less than exp(epsilon) and everything likely is bad: equality must count as allowed
    assert pair.probabilistic_delta(odds=odds - Fraction(1, 10**30)) == four


def test_exponentials_are_decided_however_near() -> None:
    """A convergent of e: p/q and e agree to 20 places, and no ball of 64 bits tells."""
    near = Fraction(1)
    for k in reversed(range(30)):  # e = 2 + 1/(1 + 1/(2 + 1/(1 + 1/(1 + 1/(4 + ...)))))
        near = (2 if k == 0 else 2 * (k + 1) // 3 if k % 3 == 2 else 1) + 1 / near
    q = Fraction(1, 4)
    pair = LawPair({0: near * q, 1: 1 - near * q}, {0: q, 1: 1 - q})
    low, high = pair.bad_outputs(epsilon=1)
    exact = sum(Fraction(1, math.factorial(k)) for k in range(60))  # within 1e-80 below e
    assert 0 < abs(near - exact) < Fraction(1, 10**20)
    assert (0 in low) == (near > exact)
    assert not high


def test_rounded_up_and_infinite() -> None:
    pair = LawPair({"a": 1}, {"b": 1})
    assert pair.approximate_delta(epsilon=1) == pair.probabilistic_delta(epsilon=700) == 1
    assert pair.satisfies(PureDP(math.inf))  # which promises nothing
    assert not pair.satisfies(PureDP(10**6))
    same = LawPair({"a": "1/3", "b": "2/3"}, {"b": "2/3", "a": "1/3"})
    assert same.satisfies(PureDP(0)) and same.satisfies(PureDP(math.inf))
    coin = LawPair({0: "3/4", 1: "1/4"}, {0: "1/4", 1: "3/4"})
    e = sum(Fraction(1, math.factorial(k)) for k in range(60))
    assert 0 <= coin.approximate_delta(epsilon=1) - (3 - e) / 4 < Fraction(1, 10**15)
    assert repr(coin) == "LawPair(2 outputs)"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: LawPair({0: 1}, {0: "1/2"}), "adding up to 1"),
        (lambda: LawPair({0: 1.5, 1: -0.5}, {0: 1}), "between 0 and 1"),
        (lambda: LawPair({0: math.nan}, {0: 1}), "NaN"),
        (lambda: LawPair([1], {0: 1}), "output: probability"),  # type: ignore[arg-type]
        (lambda: LawPair({}, {0: 1}), "adding up to 1"),
        (lambda: LawPair({0: 1}, {0: 1}).probabilistic_delta(), "pass one of them"),
        (lambda: LawPair({0: 1}, {0: 1}).approximate_delta(epsilon=1, odds=2), "pass one of them"),
        (lambda: LawPair({0: 1}, {0: 1}).bad_outputs(odds="1/2"), "below 1"),
        (lambda: LawPair({0: 1}, {0: 1}).bad_outputs(epsilon=-1), "negative"),
        (lambda: LawPair({0: 1}, {0: 1}).satisfies(ZCDP(1)), "PureDP"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(LastbitError, match=words):
        call()
