"""The distance from data that are fragile, over all small databases."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lastbit.errors import LastbitError
from lastbit.privacy.neighbours import Neighbours
from lastbit.sensitivity.neighbours import distance_beyond, sensitivity_at
from lastbit.sensitivity.statistics import Statistic
from tests.sensitivity.databases import (
    BOUNDS,
    LARGEST,
    QUESTIONS,
    Database,
    databases,
    local,
    neighbours_of,
)

LIMITS = [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(2), Fraction(7, 2), Fraction(4)]


def fit(
    found: dict[Database, int], statistic: Statistic, relation: Neighbours, limit: Fraction
) -> bool:
    """0 where the data are fragile, and at most 1 apart for neighbours."""
    return all(
        (distance == 0 or local(statistic, rows, relation) <= limit)
        and all(
            abs(distance - found[near]) <= 1
            for near in neighbours_of(rows, relation)
            if near in found
        )
        for rows, distance in found.items()
    )


@pytest.mark.thinned(one_in=6)
@pytest.mark.parametrize(("statistic", "relation"), QUESTIONS, ids=str)
def test_all_small_databases(statistic: Statistic, relation: Neighbours) -> None:
    for limit in LIMITS:
        found = {
            rows: distance_beyond(statistic, list(rows), bound=limit, **BOUNDS, neighbours=relation)
            for rows in databases(relation, LARGEST - 1)
        }
        assert fit(found, statistic, relation, limit)
        more = {rows: distance + 1 for rows, distance in found.items()}
        fragile = any(local(statistic, rows, relation) > limit for rows in found)
        assert fit(more, statistic, relation, limit) is not fragile  # one too large: rejected


def test_it_is_the_first() -> None:
    for rows in ([1, 2, 3, 3, 9], [0, 0, 0, 5], [7]):
        for limit in range(10):
            far = distance_beyond("median", rows, bound=limit, lower=0, upper=10)
            widths = [
                sensitivity_at("median", rows, distance=k, lower=0, upper=10)
                for k in range(len(rows) + 1)
            ]
            assert far == next(k for k, width in enumerate(widths) if width > limit)
        assert distance_beyond("median", rows, bound=10, lower=0, upper=10) == len(rows) + 1


@pytest.mark.parametrize("bound", [-1, float("nan"), float("inf"), None, True, "x"])
def test_a_bad_bound_is_refused(bound: object) -> None:
    with pytest.raises(LastbitError, match="bound"):
        distance_beyond("median", [1], bound=bound, lower=0, upper=1)  # type: ignore[arg-type]
