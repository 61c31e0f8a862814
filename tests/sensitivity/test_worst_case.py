"""The global sensitivity against the greatest local one of all small databases."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.privacy.neighbours import ADD_REMOVE, AS_DECLARED, CHANGE_ONE, Neighbours
from lastbit.sensitivity.neighbours import global_sensitivity
from lastbit.sensitivity.statistics import Statistic, TrimmedMean, Variance
from tests.sensitivity.databases import BOUNDS, QUESTIONS, databases, local


@pytest.mark.parametrize(("statistic", "relation"), QUESTIONS, ids=str)
def test_it_is_the_greatest_local_one(statistic: Statistic, relation: Neighbours) -> None:
    greatest = max(local(statistic, rows, relation) for rows in databases(relation))
    assert global_sensitivity(statistic, neighbours=relation, **BOUNDS) == greatest


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6])
def test_with_a_public_number_of_records(count: int) -> None:
    for statistic, relation in QUESTIONS:
        if relation == CHANGE_ONE:
            greatest = max(
                local(statistic, rows, relation)
                for rows in databases(relation, count)
                if len(rows) == count
            )
            found = global_sensitivity(statistic, neighbours=relation, **BOUNDS, count=count)
            assert found == greatest


def test_histogram_and_negative_bounds() -> None:
    assert global_sensitivity("histogram", neighbours=ADD_REMOVE) == 1
    assert global_sensitivity("histogram", neighbours=CHANGE_ONE) == 2
    assert global_sensitivity("sum", neighbours=ADD_REMOVE, lower=-7, upper="0.5") == 7
    assert global_sensitivity("sum", neighbours=CHANGE_ONE, lower=-7, upper="0.5") == Fraction(
        15, 2
    )
    assert global_sensitivity("count", neighbours=ADD_REMOVE) == 1


@pytest.mark.parametrize("bounds", [{}, {"lower": 0}, {"upper": 3}])
def test_unbounded_statistics_are_refused(bounds: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=r"not bounded.*smooth_sensitivity"):
        global_sensitivity("median", neighbours=CHANGE_ONE, **bounds)


@pytest.mark.parametrize(
    "options",
    [
        {"neighbours": AS_DECLARED},
        {"neighbours": "add-remove"},
        {"statistic": Variance()},
        {"statistic": TrimmedMean("1/4")},
        {"statistic": "mode"},
        {"lower": 4, "upper": 0},
        {"count": 5},
        {"count": 0, "neighbours": CHANGE_ONE},
        {"count": 1.5, "neighbours": CHANGE_ONE},
    ],
)
def test_bad_input_is_refused(options: dict[str, Any]) -> None:
    known: dict[str, Any] = {"statistic": "mean", "neighbours": ADD_REMOVE} | BOUNDS | options
    with pytest.raises(LastbitError):
        global_sensitivity(known.pop("statistic"), **known)
