"""Quantiles by the exponential mechanism: exact laws of all small databases."""

from __future__ import annotations

import pickle
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import pytest

from lastbit.errors import InvalidParameter, WrongType
from lastbit.mechanisms.exponential_quantile import ExponentialQuantile
from lastbit.privacy.guarantees import PureDP
from lastbit.privacy.neighbours import ADD_REMOVE, AS_DECLARED, CHANGE_ONE, Neighbours
from tests.laws.frequency import assert_frequency
from tests.laws.oracle import decimals, exp
from tests.mechanisms.divergence import mass

VALUES = range(4)
STEPS = range(7)  # a grid of 1/2 between 0 and 3


def mechanism(level: str, neighbours: Neighbours, epsilon: str = "1") -> ExponentialQuantile:
    return ExponentialQuantile(
        level, epsilon=epsilon, lower=0, upper=3, grid="1/2", neighbours=neighbours
    )


def misses(level: Fraction, x: tuple[int, ...], c: Fraction) -> Fraction:
    below, upto = sum(v < c for v in x), sum(v <= c for v in x)
    return max(below - level * len(x), level * len(x) - upto, Fraction(0))


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("level", ["1/2", "0", "1", "0.9", "1/3"])
@pytest.mark.parametrize("neighbours", [CHANGE_ONE, ADD_REMOVE])
def test_the_law_is_the_formula(level: str, neighbours: Neighbours) -> None:
    made = mechanism(level, neighbours)
    share = Fraction(level)
    sensitivity = Fraction(1) if neighbours == CHANGE_ONE else max(share, 1 - share)
    ways = 1 if level in ("0", "1") else 2
    for size in range(1, 5):
        for x in combinations_with_replacement(VALUES, size):
            law = made.law(list(x)).law
            with decimals():
                weights = [
                    exp(-misses(share, x, Fraction(k, 2)) / (ways * sensitivity)) for k in STEPS
                ]
                total = sum(weights)
                for k in STEPS:
                    assert abs(mass(law, k) - weights[k] / total) < Decimal("1e-60")


@pytest.mark.thinned(one_in=4)
@pytest.mark.parametrize("level", ["1/2", "0.9", "0", "1"])
@pytest.mark.parametrize("neighbours", [CHANGE_ONE, ADD_REMOVE])
def test_every_output_of_every_neighbour(level: str, neighbours: Neighbours) -> None:
    made = mechanism(level, neighbours, "2")
    sizes = [4] if neighbours == CHANGE_ONE else [0, 1, 2, 3]
    databases = [x for n in sizes for x in combinations_with_replacement(VALUES, n)]
    tables = {x: [mass(made.law(list(x)).law, k) for k in STEPS] for x in databases}
    worst = Decimal(0)
    with decimals():
        for x in databases:
            for y in near(x, neighbours) & set(databases):
                for p, q in zip(tables[x], tables[y], strict=True):
                    worst = max(worst, abs((p / q).ln()))
    assert worst <= 2
    if level != "1/2" or neighbours == ADD_REMOVE:
        return  # such small databases do not reach the worst case
    twice = mechanism(level, neighbours, "4")
    tables = {x: [mass(twice.law(list(x)).law, k) for k in STEPS] for x in databases}
    with decimals():
        broken = any(
            abs((p / q).ln()) > 2
            for x in databases
            for y in near(x, neighbours)
            for p, q in zip(tables[x], tables[y], strict=True)
        )
    assert broken


@pytest.mark.parametrize("level", ["0", "1"])
@pytest.mark.parametrize("neighbours", [CHANGE_ONE, ADD_REMOVE])
def test_the_distances_of_an_extreme_move_in_one_direction(
    level: str, neighbours: Neighbours
) -> None:
    """The condition of twice the rate, for all small databases; no other level meets it."""
    assert one_way(Fraction(level), neighbours)
    assert not one_way(Fraction(1, 2), neighbours)
    assert not one_way(Fraction(1, 8), neighbours)
    assert not one_way(Fraction(7, 8), neighbours)


def one_way(level: Fraction, neighbours: Neighbours) -> bool:
    for size in range(5):
        for x in combinations_with_replacement(VALUES, size):
            for y in near(x, neighbours):
                moves = [
                    misses(level, y, Fraction(k, 2)) - misses(level, x, Fraction(k, 2))
                    for k in STEPS
                ]
                if min(moves) < 0 < max(moves):
                    return False
                assert max(map(abs, moves)) <= 1
    return True


@pytest.mark.parametrize("level", ["0", "1"])
@pytest.mark.parametrize("neighbours", [CHANGE_ONE, ADD_REMOVE])
def test_the_rate_of_an_extreme_is_used_up(level: str, neighbours: Neighbours) -> None:
    """Nearly all points move by one record: the loss is nearly epsilon, so 1 % more is refused."""
    worst = Decimal(0)
    for scale, holds in (("1", True), ("1.01", False)):
        made = ExponentialQuantile(
            level, epsilon=scale, lower=0, upper=4095, grid=1, neighbours=neighbours
        )
        low, high = (0, 4095) if level == "0" else (4095, 0)
        x, y = [low], [high] if neighbours == CHANGE_ONE else []
        with decimals():
            for p, q in ((x, y), (y, x)):
                one, other = made.law(p).law, made.law(q).law
                for k in (0, 1, 4094, 4095):
                    worst = max(worst, (mass(one, k) / mass(other, k)).ln())
        assert (worst <= 1) == holds


def near(x: tuple[int, ...], neighbours: Neighbours) -> set[tuple[int, ...]]:
    if neighbours == ADD_REMOVE:
        return {tuple(sorted((*x, v))) for v in VALUES}
    return {tuple(sorted((*x[:i], v, *x[i + 1 :]))) for i in range(len(x)) for v in VALUES}


@pytest.mark.evidence
def test_releases_follow_the_law() -> None:
    made = mechanism("1/2", CHANGE_ONE)
    data = [0, 1, 1, 3, 3]
    law = made.law(data)
    releases = [made.release(data) for _ in range(3000)]
    for k in STEPS:
        value = Fraction(k, 2)
        hits = releases.count(float(value))
        chance = float(sum(law.probability(value).ends) / 2)
        assert_frequency(hits, trials=3000, probability=chance, detects=Fraction(1, 2))


def test_large_data() -> None:
    data = np.random.default_rng(5).exponential(50, 100_000)
    made = ExponentialQuantile("0.9", epsilon=1, lower=0, upper=500)
    assert abs(made.release(data) - np.quantile(data, 0.9)) < 2
    assert made.grid == Fraction(1, 4096)
    assert 0 <= made.release(data + 10**9) <= 500
    assert made.release([250.0] * 1000) == 250.0


def test_a_mechanism_is_a_value() -> None:
    made = mechanism("1/2", ADD_REMOVE)
    assert made.guarantee == PureDP(1, neighbours=ADD_REMOVE)
    assert pickle.loads(pickle.dumps(made)) == made
    assert 0 <= made.release([]) <= 3


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"level": 2}, "level"),
        ({"level": "1/3000001"}, "level"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": Fraction(1, 1 << 101)}, "epsilon"),
        ({"lower": 3, "upper": 1}, "lower"),
        ({"grid": "1/3"}, "grid"),
        ({"grid": 1024}, "grid"),
        ({"grid": Fraction(1, 1 << 60)}, "grid"),
        ({"neighbours": AS_DECLARED}, "neighbours"),
    ],
)
def test_bad_parameters_are_refused(parameters: dict[str, Any], words: str) -> None:
    good: dict[str, Any] = {"level": "1/2", "epsilon": 1, "lower": 1, "upper": 10}
    with pytest.raises((InvalidParameter, WrongType), match=words):
        ExponentialQuantile(**(good | parameters))


@pytest.mark.parametrize("data", [[], [float("nan")], ["1"], [None], 3, [[1]]])
def test_bad_data_are_refused(data: Any) -> None:
    with pytest.raises((InvalidParameter, WrongType), match="data"):
        mechanism("1/2", CHANGE_ONE).release(data)
