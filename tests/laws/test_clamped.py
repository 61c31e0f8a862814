"""A law moved into an interval: every probability against the law itself, exactly."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact.ball import Ball, arb_of, working_precision
from lastbit.laws.discrete import Bernoulli, DiscreteLaplace, Uniform, Weighted
from lastbit.laws.ideal import StudentT
from lastbit.laws.law import Law
from lastbit.laws.transformed import Clamped, OnGrid, Rounded

WEIGHTS = [1, 4, 0, 2, 9, 3, 1]


def moved(weights: list[int], low: int, high: int) -> dict[int, Fraction]:
    """What min(max(k, low), high) has, counted value by value."""
    total = sum(weights)
    out = dict.fromkeys(range(low, high + 1), Fraction(0))
    for k, weight in enumerate(weights):
        out[min(max(k, low), high)] += Fraction(weight, total)
    return out


def wrong(law: Clamped, expected: dict[int, Fraction]) -> int:
    """How many masses and sums differ from the ones expected."""
    low, high = law.support
    count = sum(not law.probability(k).contains(p) for k, p in expected.items())
    running = Fraction(0)
    for k in range(low - 2, high + 3):
        running += expected.get(k, 0)
        count += not law.cdf(k).contains(running)
        count += law.exact_cumulative(k) != running
        count += k not in expected and law.probability(k) != 0
    return count


intervals = st.tuples(st.integers(-3, 9), st.integers(-3, 9)).map(sorted)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=7).filter(any), intervals)
def test_every_probability(weights: list[int], interval: list[int]) -> None:
    low, high = interval
    law = Clamped(Weighted(weights), low, high)
    expected = moved(weights, low, high)
    assert sum(expected.values()) == 1
    assert wrong(law, expected) == 0
    assert law.support == (low, high)


@pytest.mark.parametrize("mutant", [(0, 4), (1, 5), (1, 3), (2, 4), (1, 1)])
def test_another_interval_is_rejected(mutant: tuple[int, int]) -> None:
    expected = moved(WEIGHTS, 1, 4)
    assert wrong(Clamped(Weighted(WEIGHTS), 1, 4), expected) == 0
    low, high = mutant
    assert wrong(Clamped(Weighted(WEIGHTS), low, high), expected) > 0


def test_values_cut_off_instead_of_moved_are_rejected() -> None:
    """The mutant forgets what lies beyond the ends, and divides by the rest or not."""
    inside = {k: Fraction(WEIGHTS[k], sum(WEIGHTS)) for k in range(1, 5)}
    assert wrong(Clamped(Weighted(WEIGHTS), 1, 4), inside) > 0
    rest = sum(inside.values())
    assert wrong(Clamped(Weighted(WEIGHTS), 1, 4), {k: p / rest for k, p in inside.items()}) > 0


@given(st.lists(st.integers(0, 9), min_size=1, max_size=7).filter(any), intervals, st.data())
def test_quantiles(weights: list[int], interval: list[int], data: st.DataObject) -> None:
    """Also at levels that are reached exactly, which no precision would decide."""
    law = Clamped(Weighted(weights), *interval)
    total = sum(weights)
    level = data.draw(st.integers(1, 2 * total).map(lambda n: Fraction(n, 2 * total + 1)))
    exactly = data.draw(st.integers(1, max(1, total - 1)).map(lambda n: Fraction(n, total)))
    for p in {level, exactly} - {Fraction(1)}:
        sums, least = Fraction(0), None
        for k, mass in sorted(moved(weights, *interval).items()):
            sums += mass
            if least is None and sums >= p:
                least = k
        assert law.quantile(p) == least


LAWS: list[Law] = [DiscreteLaplace(3), Rounded(StudentT(3), "0.3", 2), Rounded(StudentT(2))]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws_without_end(law: Law) -> None:
    clamped = Clamped(law, -4, 7)
    with working_precision(128):
        total = sum((clamped.mass(k) for k in range(-4, 8)), arb_of(0))
        assert total.contains(1)
        assert total.rad() < arb_of(Fraction(1, 2**100))
        below, above = law.cumulative(-4), 1 - law.cumulative(6)
        assert clamped.mass(-4).overlaps(below)
        assert clamped.mass(7).overlaps(above)
        # forgetting one of the values that are moved to an end would be seen
        assert not clamped.mass(-4).overlaps(below - law.mass(-4))
        assert not clamped.mass(7).overlaps(above - law.mass(7))
    assert clamped.probability(-5) == clamped.probability(8) == 0
    for k in range(-4, 7):
        assert clamped.cdf(k).enclosure.overlaps(law.cdf(k).enclosure)
    assert clamped.quantile("1e-12") == -4
    assert clamped.quantile(1 - Fraction(1, 10**12)) == 7
    assert clamped.quantile("0.6") == law.quantile("0.6")


def test_a_level_reached_exactly() -> None:
    """P[Z <= 1/2] = 2/3 for two degrees of freedom."""
    assert Clamped(Rounded(StudentT(2)), -2, 2).quantile("2/3") == 0
    assert Clamped(Bernoulli("1/4"), 0, 1).quantile("3/4") == 0
    assert Clamped(Uniform(4), 1, 2).quantile("1/2") == 1


def test_one_value_is_certain() -> None:
    law = Clamped(DiscreteLaplace(3), 5, 5)
    assert law.probability(5) == Ball.of(1)
    assert law.probability(4) == 0
    assert law.quantile("0.001") == law.quantile("0.999") == 5


def test_on_a_grid() -> None:
    law = OnGrid(Clamped(Uniform(8), 2, 5), Fraction(1, 4))
    assert law.probability("1/2").contains("3/8")
    assert law.probability("5/4").contains("3/8")
    assert law.probability("3/4").contains("1/8")
    assert law.quantile("0.9") == Fraction(5, 4)


def test_a_law_is_a_value() -> None:
    law = Clamped(Uniform(4), 0, 2)
    assert law == Clamped(Uniform(4), 0, 2) != replace(law, high=3)
    assert hash(law) == hash(Clamped(Uniform(4), 0, 2))


@pytest.mark.parametrize(
    ("name", "law", "low", "high", "error"),
    [
        ("high", Uniform(4), 3, 2, InvalidParameter),
        ("low", Uniform(4), 0.0, 2, WrongType),
        ("low", Uniform(4), None, 2, WrongType),
        ("high", Uniform(4), 0, True, WrongType),
        ("high", Uniform(4), 0, "2", WrongType),
        ("law", Uniform, 0, 2, WrongType),
        ("law", None, 0, 2, WrongType),
    ],
)
def test_bad_intervals(
    name: str, law: object, low: object, high: object, error: type[LastbitError]
) -> None:
    with pytest.raises(error, match=f"^{name} "):
        Clamped(law, low, high)  # type: ignore[arg-type]
