"""Distances to another answer: by search over all databases, and between all neighbours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.privacy.neighbours import ADD_REMOVE, AS_DECLARED, CHANGE_ONE, Neighbours
from lastbit.sensitivity.distance import (
    Stability,
    distance_to_instability,
    for_argmax,
    for_function,
    for_mode,
    for_quantile,
    for_threshold,
)
from lastbit.sensitivity.statistics import Quantile
from tests.sensitivity.databases import (
    BOUNDS,
    LEVELS,
    VALUES,
    Database,
    databases,
    neighbours_of,
    plain,
    within,
)

RELATIONS = [CHANGE_ONE, ADD_REMOVE]
Found = dict[Database, Stability]


def searched(answer: Callable[[Database], Any], rows: Database, relation: Neighbours) -> int:
    """The distance by its definition."""
    here = answer(rows)
    for steps, shell in enumerate(within(rows, len(rows) + 1, relation)):
        if any(answer(near) != here for near in shell):
            return steps
    raise AssertionError("no other answer")


def stable(found: Found, relation: Neighbours) -> bool:
    """At least 1; 1 on both sides of another answer; else at most 1 apart."""
    return all(
        here.distance >= 1
        and all(
            here.distance == 1
            if found[near].answer != here.answer
            else abs(found[near].distance - here.distance) <= 1
            for near in neighbours_of(rows, relation)
            if near in found
        )
        for rows, here in found.items()
    )


def shifted(found: Found, by: int) -> Found:
    return {rows: Stability(here.answer, here.distance + by) for rows, here in found.items()}


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
@pytest.mark.parametrize("level", LEVELS, ids=str)
def test_quantiles(level: Any, relation: Neighbours) -> None:
    found = {
        rows: for_quantile(list(rows), level=level, **BOUNDS, neighbours=relation)
        for rows in databases(relation, 6)
    }
    for rows, here in found.items():
        assert here.answer == plain(Quantile(level), rows)
        if len(rows) <= 4:
            assert here.distance == searched(lambda r: plain(Quantile(level), r), rows, relation)
    assert stable(found, relation)
    assert not stable(shifted(found, 1), relation)  # one too large


def counts(rows: Database) -> list[int]:
    seen = Counter(rows)
    return [seen[value] for value in VALUES]


def first_of_the_greatest(rows: Database) -> int:
    found = counts(rows)
    return found.index(max(found))


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_argmax_and_mode_of_a_declared_domain(relation: Neighbours) -> None:
    found = {}
    for rows in databases(relation, 6):
        found[rows] = for_argmax(counts(rows), neighbours=relation)
        mode = for_mode(list(rows), neighbours=relation, domain=VALUES)
        assert mode.answer == VALUES[found[rows].answer]
        assert mode.distance == found[rows].distance
        assert found[rows].answer == first_of_the_greatest(rows)
        if len(rows) <= 4:
            assert found[rows].distance == searched(first_of_the_greatest, rows, relation)
    assert stable(found, relation)
    assert not stable(shifted(found, 1), relation)


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_mode_of_an_open_domain(relation: Neighbours) -> None:
    found = {rows: for_mode(list(rows), neighbours=relation) for rows in databases(relation, 6)}

    def mode(rows: Database) -> int | None:
        seen = Counter(rows)
        return min(seen, key=lambda key: (-seen[key], key), default=None)

    for rows, here in found.items():
        assert here.answer == mode(rows)
        if len(rows) <= 4:
            assert here.distance <= searched(mode, rows, relation)
    assert stable(found, relation)
    assert not stable(shifted(found, 1), relation)
    # a key that nobody has may come first: counted as losing ties, it would come too late
    late = {rows: Stability(here.answer, here.distance) for rows, here in found.items()}
    late[(4, 4)] = Stability(4, 3 if relation == ADD_REMOVE else 2)
    assert not stable(late, relation)


def test_keys_of_many_kinds() -> None:
    votes = ["b"] * 5 + ["a"] * 2
    for data in (votes, np.array(votes), tuple(votes), {"b": 5, "a": 2, "c": 0}):
        mode = for_mode(data, neighbours=ADD_REMOVE)
        assert (mode.answer, mode.distance) == ("b", 3)
        assert type(mode.answer) is str
    assert for_mode(np.array([3, 3, 1]), neighbours=ADD_REMOVE).answer == 3
    assert for_mode([b"x"], neighbours=CHANGE_ONE).answer == b"x"
    assert for_mode([], neighbours=ADD_REMOVE).answer is None
    assert for_mode([], neighbours=ADD_REMOVE, domain=["x", "y"]).answer == "x"
    ballot = for_mode([True, True, False], neighbours=CHANGE_ONE, domain=[False, True])
    assert (ballot.answer, ballot.distance) == (True, 1)
    alone = for_mode(["x"] * 3, neighbours=ADD_REMOVE, domain=["x"])
    assert (alone.answer, alone.distance) == ("x", 4)
    pairs = for_mode([("a", 1), ("a", 1)], neighbours=CHANGE_ONE, domain=[("a", 1), None])
    assert (pairs.answer, pairs.distance) == (("a", 1), 2)


def test_threshold() -> None:
    found = {(count,): for_threshold(count, threshold="9/2") for count in range(12)}
    assert [here.answer for here in found.values()] == [count >= 5 for count in range(12)]
    assert [here.distance for here in found.values()] == [5, 4, 3, 2, 1, 1, 2, 3, 4, 5, 6, 7]
    assert for_threshold(5, threshold=5, neighbours=ADD_REMOVE).neighbours == ADD_REMOVE


@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_any_function(relation: Neighbours) -> None:
    def large(rows: tuple[int, ...]) -> bool:
        return sum(rows) >= 5

    found = {
        rows: for_function(large, rows[::-1], domain=VALUES, neighbours=relation, most=3)
        for rows in databases(relation, 4)
    }
    for rows, here in found.items():
        far = next(
            (
                steps
                for steps, shell in enumerate(within(rows, 3, relation))
                if any(large(near) != large(rows) for near in shell)
            ),
            4,
        )
        assert here == Stability(large(rows), far, relation)
    assert stable(found, relation)


def test_one_door() -> None:
    rows = [1, 2, 2, 2, 4]
    median = for_quantile(rows, level="1/2", **BOUNDS)
    assert distance_to_instability("median", rows, **BOUNDS) == median
    assert distance_to_instability("quantile", rows, level="1/2", **BOUNDS) == median
    assert distance_to_instability("mode", rows, neighbours=CHANGE_ONE).answer == 2
    assert distance_to_instability("argmax", [1, 5], neighbours=CHANGE_ONE).answer == 1
    assert distance_to_instability("threshold", 4, threshold=3).answer is True
    found = distance_to_instability(max, rows, domain=VALUES, neighbours=CHANGE_ONE, most=2)
    assert (found.answer, found.distance) == (4, 1)
    with pytest.raises(InvalidParameter, match="kind"):
        distance_to_instability("mean", rows)


def test_nothing_secret_is_shown() -> None:
    assert repr(Stability("secret", 12345)) == "Stability(...)"


@pytest.mark.parametrize(
    "call",
    [
        lambda: for_quantile([], level="1/2", lower=0, upper=1),
        lambda: for_quantile([1], level="1/2", lower=0, upper=1, neighbours=AS_DECLARED),
        lambda: for_quantile([1, float("nan")], level="1/2", lower=0, upper=1),
        lambda: for_argmax([], neighbours=ADD_REMOVE),
        lambda: for_argmax([0, 0], neighbours=CHANGE_ONE),
        lambda: for_argmax([1, -1], neighbours=ADD_REMOVE),
        lambda: for_argmax([1, 1.5], neighbours=ADD_REMOVE),  # type: ignore[list-item]
        lambda: for_argmax([True], neighbours=ADD_REMOVE),
        lambda: for_argmax("12", neighbours=ADD_REMOVE),  # type: ignore[arg-type]
        lambda: for_argmax(np.ones((2, 2), int), neighbours=ADD_REMOVE),  # type: ignore[arg-type]
        lambda: for_argmax([1, 2], neighbours=AS_DECLARED),
        lambda: for_mode("aab", neighbours=ADD_REMOVE),
        lambda: for_mode([1.0, 1], neighbours=ADD_REMOVE),
        lambda: for_mode([True, 1], neighbours=ADD_REMOVE),
        lambda: for_mode([1, "a"], neighbours=ADD_REMOVE),
        lambda: for_mode([None], neighbours=ADD_REMOVE),
        lambda: for_mode([[1]], neighbours=ADD_REMOVE),  # type: ignore[list-item]
        lambda: for_mode([("a", [1])], neighbours=ADD_REMOVE, domain=["a"]),
        lambda: for_mode([], neighbours=CHANGE_ONE),
        lambda: for_mode(["a"], neighbours=ADD_REMOVE, domain=[]),
        lambda: for_mode(["a"], neighbours=ADD_REMOVE, domain=["b"]),
        lambda: for_mode({"a": -1}, neighbours=ADD_REMOVE),
        lambda: for_threshold(-1, threshold=2),
        lambda: for_threshold(1, threshold=float("nan")),
        lambda: for_function(max, [7], domain=[1], neighbours=ADD_REMOVE, most=1),
        lambda: for_function(max, [1], domain=[1], neighbours=ADD_REMOVE, most=0),
        lambda: for_function(max, [1], domain=[], neighbours=ADD_REMOVE, most=1),
        lambda: Stability("x", 0),
        lambda: Stability("x", 1, "change-one"),  # type: ignore[arg-type]
    ],
)
def test_bad_input_is_refused(call: Callable[[], object]) -> None:
    with pytest.raises((LastbitError, WrongType)) as caught:
        call()
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(("one", "other"), [(True, 1), (0.0, -0.0), (1, 1.0), ((1,), (True,))])
def test_equal_answers_that_can_be_told_apart_are_other_answers(one: Any, other: Any) -> None:
    """Released as they are, they would tell for certain whether there is a 1 in the data."""

    def answer(rows: tuple[int, ...]) -> Any:
        return one if 1 in rows else other

    for data in ([0, 0, 0], [0, 0, 1]):
        found = for_function(answer, data, domain=[0, 1], neighbours=CHANGE_ONE, most=3)
        assert found.distance == 1
