"""Shares of a price over levels: against all shares of a fine grid, and against equal ones."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from lastbit.release.levels_shares import least_shares, worst_ratios
from lastbit.release.levels_tree import LevelTree
from tests.release.test_levels_tree import trees


def worst(tree: LevelTree, shares: Any, *, power: int, given: list[bool]) -> float:
    numbers = np.array([float(share) for share in shares])
    return max(worst_ratios(tree, numbers, power=power, given=given))


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([1, 2]))
def test_every_level_is_at_least_as_exact_as_alone(data: Any, power: int) -> None:
    """At most the error of asking levels one by one, at equal parts of the same price."""
    tree = data.draw(trees())
    given = [False] * len(tree.sizes)
    shares = least_shares(tree, power=power, given=given)
    assert sum(shares) == 1 and min(shares) > 0
    assert worst(tree, shares, power=power, given=given) <= 1 + 1e-12


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize(
    "parents",
    [
        ([0, 0, 0],),
        ([0, 0], [0, 0, 1, 1]),
        ([0, 0, 0], [0, 1, 1, 2, 2, 2, 2]),
        ([0] * 20, list(range(20))),
    ],
)
def test_no_shares_of_a_grid_are_better_by_much(parents: Any, power: int) -> None:
    tree = LevelTree(tuple(np.array(level) for level in parents))
    number = len(tree.sizes)
    given = [False] * number
    found = worst(tree, least_shares(tree, power=power, given=given), power=power, given=given)
    grid = [parts for parts in product(range(1, 40), repeat=number - 1) if sum(parts) < 40]
    best = min(
        worst(tree, [*(p / 40 for p in parts), 1 - sum(parts) / 40], power=power, given=given)
        for parts in grid
    )
    assert found <= best * 1.03


def test_given_levels_cost_nothing() -> None:
    tree = LevelTree((np.array([0, 0]), np.array([0, 0, 1, 1])))
    shares = least_shares(tree, power=2, given=[True, True, False])
    assert shares == [Fraction(1)]
