"""Quantiles of a noisy tree: least squares, in order, and inside their intervals as promised."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from flint import fmpq, fmpq_mat
from hypothesis import given, settings, strategies as st

from lastbit.kernel.noise import Noisy, noisy_numbers
from lastbit.laws.discrete import DiscreteGaussian, DiscreteLaplace
from lastbit.release.certifying import program_of
from lastbit.release.intervals import columns_of
from lastbit.release.trees import least_squares, ranked, running, shares
from lastbit.tables.plan.parts import TreePart
from lastbit.tables.plan.plan import planned
from lastbit.tables.plan.tree import Tree, share_reach, tree_reach
from tests.laws.frequency import divergence
from tests.release.pretend import RawNumbers, card_of, part, query_of, seed
from tests.tables.test_tree import SHAPES, matrix

SIZES = st.sampled_from([50, 1 << 40, 1 << 70])


def drawn(data: st.DataObject, tree: Tree, groups: int = 2) -> list[list[list[int]]]:
    size, count = data.draw(SIZES), groups * tree.nodes
    flat = iter(data.draw(st.lists(st.integers(-size, size), min_size=count, max_size=count)))
    return [
        [[next(flat) for _ in range(tree.leaves // size)] for size in tree.sizes]
        for _ in range(groups)
    ]


@settings(max_examples=60)
@given(st.data(), st.sampled_from(SHAPES))
def test_least_squares(data: st.DataObject, tree: Tree) -> None:
    """Against the normal equations, in 64 bits and beyond."""
    groups = drawn(data, tree)
    leaves, scale = least_squares(tree, groups)
    nodes = fmpq_mat([[fmpq(x) for x in row] for row in matrix(tree)])
    (found,) = running(tree, groups)
    for i, levels in enumerate(groups):
        noisy = fmpq_mat([[fmpq(x)] for level in levels for x in level])
        best = (nodes.transpose() * nodes).solve(nodes.transpose() * noisy).entries()
        assert [fmpq(int(x), scale) for x in leaves[i]] == list(best)
        assert fmpq(int(found.totals[i]), scale) == sum(best, fmpq(0))
        assert fmpq(int(found.sums[i][-1]), scale) == sum(best[: tree.bins], fmpq(0))


@settings(max_examples=100)
@given(st.data(), st.sampled_from(SHAPES))
def test_quantiles_are_in_order(data: st.DataObject, tree: Tree) -> None:
    """Whatever the noise, also where the total is below 0."""
    (found,) = running(tree, drawn(data, tree))
    bins = []
    for n in range(1, 10):
        reach = [Fraction(3)] * (tree.bins + 1)
        each = list(ranked(found, Fraction(n, 10), reach))
        assert all(0 <= first <= value <= last < tree.bins for value, first, last in each)
        bins.append([value for value, _, _ in each])
    assert all(one[i] <= two[i] for one, two in pairwise(bins) for i in range(2))


def test_without_noise_they_are_the_quantiles() -> None:
    tree = Tree(bins=10, branching=4, levels=2)
    weights = [5, 0, 0, 7, 8, 0, 30, 10, 39, 1]
    (group,) = running(tree, [tree.sums(weights)])
    reach = [Fraction(0)] * 11
    found = [next(ranked(group, Fraction(n, 100), reach)) for n in (3, 10, 45, 60, 99)]
    assert found == [(0, 0, 0), (3, 3, 3), (6, 6, 6), (7, 7, 8), (8, 8, 9)]


@pytest.mark.parametrize(
    "asked", [{"epsilon": 1}, {"rho": "0.02"}, {"epsilon": 1, "delta": "1e-9"}], ids=str
)
def test_intervals_cover(monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]) -> None:
    """1200 releases of three quantiles from one tree: at most 5 % miss, up to Chernoff at 2**-40.

    The data are spread, so that the bin of the quantile is not all that an interval can hold.
    """
    seed(monkeypatch, 23)
    groups, levels = 1200, [Fraction(1, 10), Fraction(1, 2), Fraction(3, 4)]
    weights = [*[3] * 64, 0]
    keys = [("region", tuple(range(groups)))]
    parts = [
        part("quantile", f"q{i}", level=q, bounds=(Fraction(0), Fraction(64)))
        for i, q in enumerate(levels)
    ]
    plan = planned(query_of(*parts, keys=keys), card_of(), **asked)
    assert isinstance(plan.parts[0], TreePart)
    raw = RawNumbers(keys=[(k,) for k in range(groups)], bins={"m1": [weights] * groups})
    for column, level in zip(
        columns_of(plan, noisy_numbers(program_of(plan), raw)), levels, strict=True
    ):
        target = level * 192
        home = next(j for j in range(64) if 3 * (j + 1) >= target)
        missed = sum(not c.low <= home <= c.high for c in column.cells)  # type: ignore[operator]
        share = missed / groups
        assert share <= 0.05 or groups * divergence(share, 0.05) < math.log(2**40)
        width = sum(c.high - c.low for c in column.cells) / groups  # type: ignore[operator, misc]
        reach = tree_reach(plan.parts[0].tree, plan.parts[0].law, level)
        assert reach is not None and width <= 2 * float(max(reach)) / 3 + 6


@settings(max_examples=60)
@given(st.data(), st.sampled_from(SHAPES), st.booleans())
def test_shares_never_fall(data: st.DataObject, tree: Tree, gaussian: bool) -> None:
    """From 0 to 1, within their intervals, whatever the noise."""
    law = DiscreteGaussian(9) if gaussian else DiscreteLaplace(3)
    (found,) = running(tree, drawn(data, tree))
    before = [Fraction(0)] * 2
    for place in range(tree.bins):
        reaches = share_reach(tree, law, place), share_reach(tree, law, place + 1)
        for i, (value, low, high) in enumerate(shares(found, (place, place + 1), reaches)):
            assert low >= 0 and high <= 1
            if value is not None:
                assert low <= value <= high and value >= before[i]
                before[i] = value


@settings(max_examples=60)
@given(st.data(), st.sampled_from(SHAPES), st.booleans())
def test_no_possible_share_is_excluded(data: st.DataObject, tree: Tree, gaussian: bool) -> None:
    """Every share of a fine grid that the test at its level keeps lies within."""
    law = DiscreteGaussian(9) if gaussian else DiscreteLaplace(3)
    (found,) = running(tree, drawn(data, tree, groups=1))
    place = data.draw(st.integers(0, tree.bins))
    reach = share_reach(tree, law, place)
    ((_, low, high),) = shares(found, (place, place), (reach, reach))
    total, part_ = (Fraction(int(x), found.scale) for x in (found.totals[0], found.sums[0][place]))
    for n in range(65):
        share = Fraction(n, 64)
        exact = tree_reach(tree, law, share) if 0 < n < 64 else None
        if exact is not None and abs(part_ - share * total) <= exact[place]:
            assert low <= share <= high


@pytest.mark.parametrize("asked", [{"epsilon": 1}, {"rho": "0.02"}], ids=str)
def test_intervals_of_shares_cover(monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]) -> None:
    """1000 releases from the tree of a quantile: at most 5 % miss, up to Chernoff at 2**-40."""
    seed(monkeypatch, 24)
    groups, wide = 1000, (Fraction(0), Fraction(64))
    keys = [("region", tuple(range(groups)))]
    points = (5, 31)
    parts = [part("cdf", f"c{p}", edges=(Fraction(p),), bounds=wide) for p in points]
    query = query_of(*parts, part("quantile", "q", bounds=wide), keys=keys)
    plan = planned(query, card_of(), **asked)
    (tree,) = plan.parts
    assert isinstance(tree, TreePart)
    raw = RawNumbers(keys=[(k,) for k in range(groups)], bins={"m1": [[*[3] * 64, 0]] * groups})
    columns = columns_of(plan, noisy_numbers(program_of(plan), raw))
    for column, point in zip(columns, points, strict=False):
        truth = (point + 1) / 64
        missed = sum(not c.low <= truth <= c.high for c in column.cells)  # type: ignore[operator]
        share = missed / groups
        assert share <= 0.05 or groups * divergence(share, 0.05) < math.log(2**40)
        if "rho" in asked:
            assert share > 0.015


def test_a_share_at_a_point_between_bins() -> None:
    """Of numbers the bin of the point counts on one side only; of steps it belongs to the point."""
    wide = (Fraction(0), Fraction(4096))
    for step, low, high in ((None, 0.25, 0.5), (Fraction(4), 0.5, 0.5)):
        query = query_of(part("cdf", "c", edges=(Fraction(6),), bounds=wide, step=step))
        plan = planned(query, card_of(), epsilon=10**6)
        weights = [10**6] * 4 + [0] * 1020
        (tree,) = plan.parts
        assert isinstance(tree, TreePart)
        noisy = Noisy(keys=[()], trees={"m1": [tree.tree.sums(weights)]})
        cell = columns_of(plan, noisy)[0].cells[0]
        assert cell.low is not None and cell.high is not None
        assert abs(cell.low - low) < 1e-3 and abs(cell.high - high) < 1e-3
