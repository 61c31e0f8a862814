"""Proposals: the value and the distances that propose-test-release relies on."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import pytest

from lastbit.errors import InvalidParameter, WrongType
from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE
from lastbit.sensitivity.neighbours import Proposal, distance_beyond, local_sensitivity, propose

BOUNDS = (Fraction(1, 2), Fraction(1), Fraction(3))


@pytest.mark.parametrize("statistic", ["median", "minimum", "iqr", "mean"])
def test_every_distance_is_that_of_its_bound(statistic: str) -> None:
    for data in combinations_with_replacement(range(5), 4):
        found = propose(statistic, data, bounds=BOUNDS, lower=0, upper=4)
        for bound, distance in zip(BOUNDS, found.distances, strict=True):
            known = distance_beyond(statistic, data, bound=bound, lower=0, upper=4)
            assert distance == known
            if local_sensitivity(statistic, data, lower=0, upper=4) > bound:
                assert distance == 0
        assert sorted(found.distances) == list(found.distances)


def test_it_knows_its_value_bounds_and_relation() -> None:
    found = propose("median", [1, 2, 9], bounds=["0.5"], lower=0, upper=10, neighbours=ADD_REMOVE)
    assert found.value == 2
    assert found.bounds == (Fraction(1, 2),)
    assert found.neighbours == ADD_REMOVE
    assert "2" not in repr(found)


@pytest.mark.parametrize(
    "parameters",
    [
        {"value": None, "distances": [1]},
        {"value": float("inf"), "distances": [1]},
        {"value": 1, "distances": "12"},
        {"value": 1, "distances": None},
        {"value": 1, "distances": [1.5]},
        {"value": 1, "distances": [True]},
        {"value": 1, "distances": [-1]},
        {"value": 1, "distances": [1], "bounds": [0]},
        {"value": 1, "distances": [1], "neighbours": "change-one"},
    ],
)
def test_bad_proposals_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises((InvalidParameter, WrongType)):
        Proposal(**parameters)


@pytest.mark.parametrize("bad", [[float("nan")], [], [[1]], ["x"]])
def test_bad_data_are_refused(bad: Any) -> None:
    with pytest.raises((InvalidParameter, WrongType)):
        propose("median", bad, bounds=[1], lower=0, upper=1, neighbours=CHANGE_ONE)
