"""Stable values: the promise for all neighbouring pairs and all outputs, by exact laws."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from lastbit.errors import InvalidParameter, WrongType
from lastbit.laws.discrete import DiscreteLaplace
from lastbit.mechanisms.stable_value import BOTTOM, StableValue
from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE
from lastbit.sensitivity.distance import Stability, distance_to_instability
from tests.laws.frequency import assert_frequency
from tests.laws.oracle import decimal, decimals, exp


def release_probability(distance: int, threshold: int, epsilon: Fraction) -> Any:
    """P[distance + X > threshold] in Decimals, from the formula of the law."""
    with decimals():
        q = exp(-epsilon)
        over = threshold - distance  # X > over
        if over >= 0:
            return exp(-epsilon * (over + 1)) / (1 + q)
        return 1 - exp(-epsilon * -over) / (1 + q)


def worst_excess(threshold: int, epsilon: Fraction, pairs: list[tuple[Any, Any]]) -> Any:
    """The greatest sum of P_x(o) - exp(epsilon) P_y(o) over the outputs where it is positive."""
    worst = decimal(0)
    for (answer, far), (other_answer, other_far) in pairs:
        with decimals():
            mine = release_probability(far, threshold, epsilon)
            other = release_probability(other_far, threshold, epsilon)
            outputs = {answer, other_answer, BOTTOM}
            p = {answer: mine, BOTTOM: 1 - mine}
            q = {other_answer: other, BOTTOM: 1 - other}
            excess = sum(
                max(decimal(0), p.get(o, decimal(0)) - exp(epsilon) * q.get(o, decimal(0)))
                for o in outputs
            )
            worst = max(worst, excess)
    return worst


def modes() -> list[tuple[Any, Any]]:
    """(answer, distance) of all neighbours among all databases of up to 5 records of 3 kinds."""
    tables: list[tuple[int, ...]] = [c for c in product(range(6), repeat=3) if sum(c) <= 5]
    found = {}
    for counts in tables:
        data = [key for key, count in zip("abc", counts, strict=True) for _ in range(count)]
        mode = distance_to_instability("mode", data, domain=["a", "b", "c"], neighbours=ADD_REMOVE)
        found[counts] = mode.answer, mode.distance
    return [
        (found[x], found[y])
        for x in tables
        for y in tables
        if sum(abs(a - b) for a, b in zip(x, y, strict=True)) == 1
    ]


@pytest.mark.parametrize(("epsilon", "delta"), [("1/2", "1/20"), ("2", "1e-3")])
def test_the_promise_holds_for_all_neighbours_and_outputs(epsilon: str, delta: str) -> None:
    stable = StableValue(epsilon=epsilon, delta=delta)
    pairs = modes()
    excess = worst_excess(stable.threshold, stable.epsilon, pairs)
    assert excess <= decimal(stable.delta)
    # mutant: one less, which is the threshold of propose-test-release
    assert worst_excess(stable.threshold - 1, stable.epsilon, pairs) > decimal(stable.delta)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(7, 3)])
@pytest.mark.parametrize("delta", [Fraction(1, 10), Fraction(1, 10**6), Fraction(1, 10**30)])
def test_the_threshold_is_the_least(epsilon: Fraction, delta: Fraction) -> None:
    stable = StableValue(epsilon=epsilon, delta=delta)
    assert release_probability(1, stable.threshold, epsilon) <= decimal(delta)
    assert release_probability(1, stable.threshold - 1, epsilon) > decimal(delta)
    exact = release_probability(1, stable.threshold, epsilon)
    low, high = stable.release_probability(1).ends
    with decimals():
        assert decimal(low) <= exact <= decimal(high)


def test_a_release_is_the_answer_or_bottom() -> None:
    stable = StableValue(epsilon=1, delta="1/10")
    chance = stable.release_probability(3).ends[0]
    hits = sum(stable.release(Stability("x", 3)) == "x" for _ in range(20_000))
    assert_frequency(hits, trials=20_000, probability=float(chance), detects=Fraction(1, 5))
    assert stable.release(Stability(None, 10_000)) is None
    assert DiscreteLaplace(1).quantile(Fraction(9, 10)) + 1 == stable.threshold


def test_bottom_is_a_value_of_its_own() -> None:
    assert not BOTTOM
    assert repr(BOTTOM) == str(BOTTOM) == "⊥"
    others: list[object] = [None, 0, "", False, "⊥"]
    assert BOTTOM not in others
    assert pickle.loads(pickle.dumps(BOTTOM)) is BOTTOM
    assert len({BOTTOM, BOTTOM}) == 1


def test_relations_must_agree() -> None:
    stable = StableValue(epsilon=1, delta="1e-6", neighbours=CHANGE_ONE)
    mode = distance_to_instability("mode", ["a"] * 9, neighbours=ADD_REMOVE)
    with pytest.raises(InvalidParameter, match="neighbours"):
        stable.release(mode)
    assert stable.guarantee.neighbours == CHANGE_ONE


@pytest.mark.parametrize(
    "parameters",
    [
        {"epsilon": 0, "delta": "1e-6"},
        {"epsilon": -1, "delta": "1e-6"},
        {"epsilon": float("nan"), "delta": "1e-6"},
        {"epsilon": 1, "delta": 0},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": float("inf")},
        {"epsilon": 1, "delta": "1e-6", "neighbours": "change-one"},
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises((InvalidParameter, WrongType)):
        StableValue(**parameters)


@pytest.mark.parametrize("bad", [None, "yes", 3, ("yes", 3), np.array([1])])
def test_anything_but_an_answer_with_its_distance_is_refused(bad: Any) -> None:
    with pytest.raises(WrongType, match="Stability"):
        StableValue(epsilon=1, delta="1e-6").release(bad)


@pytest.mark.parametrize("distance", [0, -1, 1.5, True, float("nan"), "2"])
def test_a_distance_is_a_whole_number_from_one_up(distance: Any) -> None:
    with pytest.raises((InvalidParameter, WrongType), match="distance"):
        Stability("x", distance)


def test_nothing_secret_is_shown() -> None:
    assert "secret" not in repr(Stability("secret", 12345))
    assert "12345" not in repr(Stability("secret", 12345))
