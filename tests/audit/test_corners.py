"""Corners find what no single feature shows, and are sets of outputs."""

from dataclasses import replace

import numpy as np

from lastbit.audit.blackbox.events import Corners, epsilon_objective
from lastbit.audit.blackbox.features import features, rows
from lastbit.audit.blackbox.tables import table_of
from lastbit.audit.inputs import SeededRandom
from lastbit.audit.result import RangeEvent

SIZE = 1 << 15


def uniforms(offset: float) -> np.ndarray:
    places = np.arange(2 * SIZE).reshape(SIZE, 2)
    return np.modf(offset + places * np.sqrt([2.0, 3.0]))[0]


def corners(one: np.ndarray, two: np.ndarray) -> Corners:
    sides = rows(one, SIZE), rows(two, SIZE)
    found = features(np.concatenate(sides), SeededRandom(0))
    tables = [table for f in found if (table := table_of(f, *sides)) is not None]
    built = Corners(tables, sides, ({}, {}))
    built.add(sides, ({}, {}))
    return built


def test_a_corner_is_found_and_told():
    """Where both entries are in their upper quarter, all outputs of one input are moved away."""
    one, two = uniforms(0.1), uniforms(0.7)
    inside = np.all(two > 0.75, axis=1)
    moved = np.where(inside[:, None], two - 0.6, two)
    event = corners(one, moved).best(epsilon_objective(1 << 22, 0.0, 1.0))[0]
    assert event.corner
    assert not event.swapped
    assert event.promise > 3
    assert event.described().sentence.startswith("the least entry is in [0.74")
    held = event.holds(rows(one, SIZE))
    assert 0.02 < held.mean() < 0.1
    assert not event.holds(rows(moved, SIZE)).any()
    assert np.array_equal(held[::-1], event.holds(rows(one, SIZE)[::-1]))


def test_inputs_may_be_exchanged():
    one, two = uniforms(0.1), uniforms(0.7)
    inside = np.all(one > 0.75, axis=1)
    event = corners(np.where(inside[:, None], one - 0.6, one), two).best(
        epsilon_objective(1 << 22, 0.0, 1.0)
    )[0]
    assert event.swapped
    assert event.promise > 3
    assert event.holds(rows(two, SIZE)).mean() > 0.02


def test_what_always_holds_is_not_told():
    one, two = uniforms(0.1), uniforms(0.7)
    event = corners(one, np.where(two > 0.75, two - 0.6, two)).best(
        epsilon_objective(1 << 22, 0.0)
    )[0]
    first, second = event.tables
    anything = replace(second, ratios=np.ones_like(second.ratios))
    told = replace(event, tables=(first, anything), swapped=False).described()
    assert isinstance(told, RangeEvent)
    assert [condition.feature for condition in told.conditions] == [first.feature]


def test_nothing_to_pair():
    assert Corners([], (np.zeros((2, 1)), np.zeros((2, 1))), ({}, {})).best(lambda p, q, n: p) == []
