"""A tree of bins: how far it moves, its error by linear algebra, its reach by exact law."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from hypothesis import given, settings, strategies as st

from lastbit.laws.discrete import DiscreteGaussian, DiscreteLaplace
from lastbit.privacy.neighbours import CHANGE_ONE
from lastbit.tables.plan.parts import RankPart, TreePart
from lastbit.tables.plan.plan import planned
from lastbit.tables.plan.sensitivity import sensitivity_of
from lastbit.tables.plan.tree import Tree, tree_over, tree_reach, worst_reach
from tests.release.pretend import card_of, part, query_of

SHAPES = [
    Tree(bins=8, branching=2, levels=4),
    Tree(bins=8, branching=2, levels=3),
    Tree(bins=7, branching=3, levels=2),
    Tree(bins=10, branching=4, levels=2),
    Tree(bins=9, branching=3, levels=3),
    Tree(bins=5, branching=2, levels=1),
]
LEVELS = [Fraction(1, 2), Fraction(9, 10), Fraction(1, 7)]


def matrix(tree: Tree) -> list[list[int]]:
    """From leaves to nodes."""
    rows = []
    for size in tree.sizes:
        for start in range(0, tree.leaves, size):
            rows.append([int(start <= leaf < start + size) for leaf in range(tree.leaves)])
    return rows


def weighted(tree: Tree, first: int, level: Fraction) -> tuple[Fraction, list[Fraction]]:
    """The variance of the least-squares estimate and its coefficients, by linear algebra."""
    nodes = fmpq_mat([[fmpq(x) for x in row] for row in matrix(tree)])
    share = fmpq(level.numerator, level.denominator)
    a = fmpq_mat([[fmpq(int(leaf < first)) - share] for leaf in range(tree.leaves)])
    found = nodes * (nodes.transpose() * nodes).solve(a)
    coefficients = [Fraction(int(x.p), int(x.q)) for x in found.entries()]
    return sum((c * c for c in coefficients), Fraction(0)), coefficients


@pytest.mark.parametrize("tree", SHAPES, ids=str)
@pytest.mark.parametrize("level", LEVELS)
def test_the_error_is_that_of_least_squares(tree: Tree, level: Fraction) -> None:
    """Theorems 2 and 3, against the normal equations in rationals."""
    for first in range(tree.bins + 1):
        variance, coefficients = weighted(tree, first, level)
        assert tree.variance(first, level) == variance
        assert max(map(abs, coefficients)) <= 1


@settings(max_examples=100)
@given(st.data(), st.sampled_from(SHAPES), st.booleans())
def test_a_tree_moves_no_further(data: st.DataObject, tree: Tree, change_one: bool) -> None:
    """Theorem 1, over two groups: every unit that may come, go or change."""
    card = card_of(**({"neighbours": CHANGE_ONE} if change_one else {}), unit="person", max_rows=2)
    plan = planned(query_of(part("quantile", "q")), card, epsilon=1)
    moves = sensitivity_of(plan.measures[0], card, groups=2)
    total = 2 << 20
    units = []
    for _ in range(2):
        cells = data.draw(
            st.lists(st.integers(0, total), min_size=2 * tree.bins, max_size=2 * tree.bins)
        )
        left, own = total, []
        for cell in cells:
            own.append(min(cell, left))
            left -= own[-1]
        units.append(own)
    before = units[1] if change_one else [0] * (2 * tree.bins)
    moved = [
        y - x
        for start in (0, tree.bins)
        for one, other in zip(
            tree.sums(before[start : start + tree.bins]),
            tree.sums(units[0][start : start + tree.bins]),
            strict=True,
        )
        for x, y in zip(one, other, strict=True)
    ]
    assert sum(map(abs, moved)) <= tree.levels * moves.l1
    assert sum(x * x for x in moved) <= tree.levels * moves.l2_squared


def test_one_level_fewer_would_not_do() -> None:
    """The mutant: a row is in a node of every level, so all of them count."""
    for tree in SHAPES:
        moved = [x for level in tree.sums([1] + [0] * (tree.bins - 1)) for x in level]
        assert sum(moved) == tree.levels > tree.levels - 1


def spread(coefficients: list[Fraction], law: DiscreteGaussian | DiscreteLaplace) -> np.ndarray:
    """The law of the sum of coefficient times noise, on the lattice of their common denominator."""
    ends = 80 if isinstance(law, DiscreteLaplace) else 30
    one = np.array([float(law.probability(k).enclosure.mid()) for k in range(-ends, ends + 1)])
    common = math.lcm(*(c.denominator for c in coefficients))
    whole = np.ones(1)
    for c in coefficients:
        step = abs(int(c * common))
        if step:
            spaced = np.zeros(2 * ends * step + 1)
            spaced[::step] = one
            whole = np.convolve(whole, spaced)
    return whole


@pytest.mark.parametrize(
    "law",
    [DiscreteGaussian(4), DiscreteGaussian(20), DiscreteLaplace(2), DiscreteLaplace(5)],
    ids=str,
)
def test_the_reach_by_exact_law(law: DiscreteGaussian | DiscreteLaplace) -> None:
    """Theorem 4 on a small tree, by convolution: at most 5 % beyond, and not absurdly few."""
    tree = Tree(bins=4, branching=2, levels=2)
    for level in LEVELS[:2]:
        reach = tree_reach(tree, law, level)
        assert reach is not None and max(reach) == worst_reach(tree, law, level)
        for first in range(1, tree.bins):
            _, coefficients = weighted(tree, first, level)
            masses = spread(coefficients, law)
            common = math.lcm(*(c.denominator for c in coefficients))
            middle = len(masses) // 2
            far = math.floor(reach[first] * common)
            beyond = 2 * float(masses[middle + far + 1 :].sum())
            assert beyond <= 0.05
            if isinstance(law, DiscreteGaussian) and law.variance > 10:
                assert beyond > 0.02
            short = math.floor(reach[first] * common * Fraction(1, 3))
            assert 2 * float(masses[middle + short + 1 :].sum()) > 0.05  # the mutant: a third


def test_the_shape_is_the_best_tried() -> None:
    for bins in (1, 2, 10, 101, 1024):
        for gaussian in (False, True):
            tree = tree_over(bins, gaussian=gaussian)
            assert tree.leaves >= bins and tree.levels * tree.branching < 200
    assert tree_over(1024, gaussian=True).levels > tree_over(1024, gaussian=False).levels


def quantiles(count: int, **more: object) -> tuple[object, ...]:
    levels = [Fraction(i + 1, count + 1) for i in range(count)]
    return tuple(part("quantile", f"q{i}", level=q, **more) for i, q in enumerate(levels))


@pytest.mark.parametrize("price", [{"epsilon": 1}, {"rho": "0.1"}], ids=str)
def test_the_planner_takes_the_better_one(price: dict[str, object]) -> None:
    """One quantile is drawn; several share a tree where it reaches less far; both cost the same."""
    wide = {"bounds": (Fraction(0), Fraction(1024))}
    for count, tree in ((1, False), (2, True), (5, True)):
        plan = planned(query_of(*quantiles(count, **wide)), card_of(), **price)  # type: ignore[arg-type]
        kinds = {type(one) for one in plan.parts}
        assert kinds == ({TreePart} if tree else {RankPart})
    near = [
        part("quantile", f"q{n}", level=Fraction(n, 20), intervals=False, **wide) for n in (10, 11)
    ]
    plan = planned(query_of(*near), card_of(), **price)  # type: ignore[arg-type]
    assert {type(one) for one in plan.parts} == {RankPart}  # two values alone: draws reach less far


@pytest.mark.parametrize("price", [{"epsilon": 1}, {"rho": "0.1"}], ids=str)
def test_one_quantile_far_from_the_median_has_a_tree(price: dict[str, object]) -> None:
    """Its interval is narrower by more than a quarter; without an interval, or near 1/2, drawn."""
    wide, far = (Fraction(0), Fraction(1024)), Fraction(9, 10)
    for level, more, kind in (
        (far, {}, TreePart),
        (far, {"intervals": False}, RankPart),
        (Fraction(1, 2), {}, RankPart),
    ):
        query = query_of(part("quantile", "q", level=level, bounds=wide, **more))
        plan = planned(query, card_of(), **price)  # type: ignore[arg-type]
        assert {type(one) for one in plan.parts} == {kind}


def test_other_measures_have_trees_of_their_own() -> None:
    query = query_of(
        *quantiles(3),  # type: ignore[arg-type]
        part("quantile", "other", bounds=(Fraction(0), Fraction(8))),
        part("min", "least"),
        part("count", "n"),
    )
    plan = planned(query, card_of(), epsilon=2)
    assert sum(isinstance(one, TreePart) for one in plan.parts) == 1
    drawn = {one.aggregate for one in plan.parts if isinstance(one, RankPart)}
    assert drawn == {"other", "least"}
