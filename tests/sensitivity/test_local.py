"""The local sensitivity against every neighbour of every small database."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from lastbit.errors import InvalidParameter
from lastbit.privacy.neighbours import ADD_REMOVE, AS_DECLARED, CHANGE_ONE, Neighbours
from lastbit.sensitivity.neighbours import local_sensitivity
from lastbit.sensitivity.statistics import Statistic, TrimmedMean, Variance
from tests.sensitivity.databases import BOUNDS, QUESTIONS, databases, local


@pytest.mark.parametrize(("statistic", "relation"), QUESTIONS, ids=str)
def test_all_small_databases(statistic: Statistic, relation: Neighbours) -> None:
    for database in databases(relation):
        found = local_sensitivity(statistic, list(database), **BOUNDS, neighbours=relation)
        assert found == local(statistic, database, relation)


@given(st.lists(st.integers(0, 30), min_size=2, max_size=9))
def test_variance_of_more_values(rows: list[int]) -> None:
    """The concave quadratic has its vertex between records: neither neighbour may be skipped."""

    def variance(numbers: list[Fraction]) -> Fraction:
        mean = sum(numbers, Fraction(0)) / len(numbers)
        return sum(((x - mean) ** 2 for x in numbers), Fraction(0)) / len(numbers)

    exact = [Fraction(x) for x in rows]
    best = Fraction(0)
    for i in range(len(rows)):
        rest = exact[:i] + exact[i + 1 :]
        for v in (Fraction(0), Fraction(30), sum(rest, Fraction(0)) / len(rest)):
            best = max(best, abs(variance([*rest, v]) - variance(exact)))
    assert local_sensitivity("variance", rows, lower=0, upper=30) == best


def test_what_has_no_bound_is_refused() -> None:
    for statistic in (Variance(), TrimmedMean("1/4")):
        with pytest.raises(InvalidParameter, match="CHANGE_ONE"):
            local_sensitivity(statistic, [1], lower=0, upper=4, neighbours=ADD_REMOVE)
    with pytest.raises(InvalidParameter, match="ADD_REMOVE or CHANGE_ONE"):
        local_sensitivity("median", [1], lower=0, upper=4, neighbours=AS_DECLARED)
    with pytest.raises(InvalidParameter, match="empty"):
        local_sensitivity("median", [], lower=0, upper=4, neighbours=CHANGE_ONE)
