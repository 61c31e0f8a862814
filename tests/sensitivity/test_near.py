"""The two properties on which everything beyond global sensitivity rests."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.errors import LastbitError
from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE, Neighbours
from lastbit.sensitivity.neighbours import quantile_reach, reachable, sensitivity_at, variance_reach
from lastbit.sensitivity.statistics import (
    Count,
    InterquartileRange,
    Mean,
    Quantile,
    Statistic,
    Variance,
)
from lastbit.sensitivity.values import records
from tests.sensitivity.databases import (
    BOUNDS,
    LARGEST,
    ORDERED,
    QUESTIONS,
    TRIMMED,
    Database,
    databases,
    local,
    neighbours_of,
    nested,
    within,
)

Table = dict[Database, list[Fraction]]


def table(statistic: Statistic, relation: Neighbours) -> Table:
    return {
        database: [
            sensitivity_at(statistic, list(database), distance=k, **BOUNDS, neighbours=relation)
            for k in range(LARGEST + 3)
        ]
        for database in databases(relation)
    }


def covers(found: Table, statistic: Statistic, relation: Neighbours) -> bool:
    """(A): U_k >= LS of every database within k steps; from (B) it would follow, but is tried."""
    return all(
        row[k] >= local(statistic, near, relation)
        for database, row in found.items()
        if len(database) <= 4
        for k, shell in enumerate(within(database, 3, relation))
        for near in shell
    )


def slides(found: Table, relation: Neighbours) -> bool:
    """(B): U_k(x) <= U_(k+1)(x')."""
    return all(
        all(a <= b for a, b in zip(row, found[near][1:], strict=False))
        for database, row in found.items()
        for near in neighbours_of(database, relation)
        if near in found
    )


@pytest.mark.thinned(one_in=6)
@pytest.mark.parametrize(("statistic", "relation"), QUESTIONS, ids=str)
def test_all_small_databases(statistic: Statistic, relation: Neighbours) -> None:
    found = table(statistic, relation)
    assert all(row[0] >= local(statistic, rows, relation) for rows, row in found.items())
    assert all(nested(row) for row in found.values())
    assert covers(found, statistic, relation)
    assert slides(found, relation)


EXACT = [
    *((statistic, CHANGE_ONE) for statistic in (*ORDERED, *TRIMMED, Mean(), Variance())),
    *((statistic, ADD_REMOVE) for statistic in ORDERED),
]


@pytest.mark.parametrize(("statistic", "relation"), EXACT, ids=str)
def test_no_more_than_needed(statistic: Statistic, relation: Neighbours) -> None:
    """U_k is the greatest local sensitivity within k steps, not only a bound on it."""
    for database in databases(relation, 5 if isinstance(statistic, Variance) else 4):
        greatest = Fraction(0)
        for k, shell in enumerate(within(database, 6, relation)):
            greatest = max([greatest, *(local(statistic, near, relation) for near in shell)])
            found = sensitivity_at(
                statistic, list(database), distance=k, **BOUNDS, neighbours=relation
            )
            assert found == greatest


@pytest.mark.parametrize("relation", [CHANGE_ONE, ADD_REMOVE], ids=str)
@pytest.mark.parametrize("statistic", [*ORDERED, Mean(), Variance()], ids=str)
def test_at_no_distance_it_is_the_local_sensitivity(
    statistic: Statistic, relation: Neighbours
) -> None:
    exact = not isinstance(statistic, InterquartileRange | Mean) or relation == CHANGE_ONE
    if exact and (statistic, relation) in QUESTIONS:
        for database in databases(relation):
            found = sensitivity_at(
                statistic, list(database), distance=0, **BOUNDS, neighbours=relation
            )
            assert found == local(statistic, database, relation)


@given(st.lists(st.integers(0, 2**41), min_size=2, max_size=30))
def test_floats_of_a_variance_are_near_its_exact_reach(rows: list[int]) -> None:
    units, count = records(rows, 0, 2**41), len(rows)
    limit = Fraction(count - 1, count**2) * 2**82
    for k, share in enumerate(variance_reach(units, count).tolist(), 1):
        exact = sensitivity_at(Variance(), rows, distance=k, lower=0, upper=2**41)
        assert abs(Fraction(share) * limit - exact) <= limit * Fraction(1, 1 << 46)


@given(
    st.lists(st.integers(0, 100), max_size=25),
    st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10), Fraction(1)]),
)
def test_a_quantile_never_reaches_less_than_its_gaps(rows: list[int], level: Fraction) -> None:
    """The exact numbers are at most the diameters, which take over far away."""
    units = records(rows, 0, 100)
    exact = quantile_reach(level, units, len(rows) + 3)
    diameters = reachable(level, units, np.arange(1, len(rows) + 5))
    assert (exact <= diameters).all()
    assert (np.diff(exact) >= 0).all()
    assert exact[-1] == 100 / units.step


@pytest.mark.parametrize("level", ["0", "1/2", "1"])
def test_a_window_one_too_short_is_rejected(level: str) -> None:
    found = table(Quantile(level), CHANGE_ONE)
    short = {rows: [Fraction(0), *row[:-1]] for rows, row in found.items()}
    assert not covers(short, Quantile(level), CHANGE_ONE)
    frozen = {rows: [row[0]] * len(row) for rows, row in found.items()}
    assert not slides(frozen, CHANGE_ONE)


def test_forgotten_padding_is_rejected() -> None:
    """Without the bounds beyond the data, the extremes seem not to move."""
    found: Table = {rows: [Fraction(max(rows) - min(rows))] * 9 for rows in databases(CHANGE_ONE)}
    assert not covers(found, Quantile("1/2"), CHANGE_ONE)
    assert not slides(found, CHANGE_ONE)


@pytest.mark.thinned(one_in=6)
@pytest.mark.parametrize(("statistic", "relation"), QUESTIONS, ids=str)
def test_a_bound_halved_is_rejected(statistic: Statistic, relation: Neighbours) -> None:
    if statistic == Count() and relation == CHANGE_ONE:
        return  # nothing moves it
    found = table(statistic, relation)
    assert not covers(
        {rows: [u / 2 for u in row] for rows, row in found.items()}, statistic, relation
    )


@pytest.mark.parametrize("relation", [CHANGE_ONE, ADD_REMOVE], ids=str)
def test_one_quartile_is_not_enough(relation: Neighbours) -> None:
    for level in ("1/4", "3/4"):
        found = table(Quantile(level), relation)
        assert not covers(found, InterquartileRange(), relation)


@pytest.mark.parametrize("distance", [-1, 1.5, True, "2", None])
def test_a_bad_distance_is_refused(distance: object) -> None:
    with pytest.raises(LastbitError, match="distance"):
        sensitivity_at("median", [1], distance=distance, lower=0, upper=1)  # type: ignore[arg-type]


def test_far_distances() -> None:
    assert sensitivity_at("median", [1, 2], distance=10**30, lower=0, upper=4) == 4
