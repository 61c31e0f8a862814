"""Numbers on a tree made to add up: against least squares by dense linear algebra, exactly."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from flint import fmpq, fmpq_mat
from hypothesis import given, settings, strategies as st

from lastbit.release.levels_answer import whole_numbers
from lastbit.release.levels_tree import (
    LevelTree,
    TreeWeights,
    adding_up,
    exact_weights,
    fractions,
    least_variances,
    noise_sums,
    rounded_weights,
)


@st.composite
def trees(draw: Any, most: int = 4, deepest: int = 3) -> LevelTree:
    """Of one to `deepest` levels below the first; nodes with one child are frequent."""
    number, parents = 1, []
    for _ in range(draw(st.integers(0, deepest))):
        sizes = [draw(st.integers(1, most)) for _ in range(number)]
        parents.append(np.repeat(np.arange(number), sizes))
        number = sum(sizes)
        if number > 24:
            break
    return LevelTree(tuple(parents))


@st.composite
def spreads(draw: Any, tree: LevelTree) -> list[Fraction]:
    each = st.fractions(Fraction(1, 50), 50, max_denominator=50)
    return [draw(each) for _ in tree.sizes]


def leaves_of(tree: LevelTree) -> list[list[list[int]]]:
    """For each level and node, the leaves below it."""
    found = [[[i] for i in range(tree.sizes[-1])]]
    for level in range(len(tree.parents) - 1, -1, -1):
        above: list[list[int]] = [[] for _ in range(tree.sizes[level])]
        for node, parent in enumerate(tree.parents[level]):
            above[parent] += found[-1][node]
        found.append(above)
    return found[::-1]


def incidence(tree: LevelTree) -> fmpq_mat:
    """Which leaves each number is the sum of; a row for each number, level by level."""
    rows = [node for level in leaves_of(tree) for node in level]
    return fmpq_mat([[fmpq(leaf in row) for leaf in range(tree.sizes[-1])] for row in rows])


def spread_of_numbers(tree: LevelTree, variances: list[Fraction]) -> list[fmpq]:
    pairs = zip(tree.sizes, variances, strict=True)
    return [fmpq(v.numerator, v.denominator) for size, v in pairs for _ in range(size)]


def dense_map(tree: LevelTree, variances: list[Fraction]) -> fmpq_mat:
    """Generalised least squares: the matrix that makes estimates of all numbers."""
    a, each = incidence(tree), spread_of_numbers(tree, variances)
    weighed = a.transpose() * fmpq_mat(
        [[1 / each[i] if i == j else fmpq(0) for j in range(len(each))] for i in range(len(each))]
    )
    return a * (weighed * a).solve(weighed)


def map_of(tree: LevelTree, weights: TreeWeights) -> list[list[fmpq]]:
    """The matrix of the two passes: a column for each noisy number that is 1, and others 0."""
    columns = []
    for number in range(sum(tree.sizes)):
        flat = [int(i == number) for i in range(sum(tree.sizes))]
        columns.append([x for some in adding_up(tree, weights, levels(tree, flat)) for x in some])
    return [list(row) for row in zip(*columns, strict=True)]


def levels(tree: LevelTree, flat: list[Any]) -> list[list[Any]]:
    ends = np.cumsum((0, *tree.sizes))
    return [flat[first:last] for first, last in pairwise(ends)]


def as_rows(matrix: fmpq_mat) -> list[list[fmpq]]:
    return [[matrix[i, j] for j in range(matrix.ncols())] for i in range(matrix.nrows())]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_estimates_are_generalised_least_squares(data: Any) -> None:
    tree = data.draw(trees())
    variances = data.draw(spreads(tree))
    assert map_of(tree, exact_weights(tree, variances)) == as_rows(dense_map(tree, variances))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_rounded_weights_are_unbiased_and_add_up_exactly(data: Any) -> None:
    """With weights on the grid the matrix M has M A = A, and rows of children add up."""
    tree = data.draw(trees())
    weights = rounded_weights(tree, data.draw(spreads(tree)))
    made = fmpq_mat(map_of(tree, weights))
    assert made * incidence(tree) == incidence(tree)
    rows = levels(tree, as_rows(made))
    for level, parents in enumerate(tree.parents):
        for node, row in enumerate(rows[level]):
            below = [
                r for r, parent in zip(rows[level + 1], parents, strict=True) if parent == node
            ]
            assert row == [sum(column, fmpq(0)) for column in zip(*below, strict=True)]


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([1, 2, 4]))
def test_sums_over_noises_are_those_of_the_coefficients(data: Any, power: int) -> None:
    """By the matrix itself: never less, and not more by a part in 10**12."""
    tree = data.draw(trees())
    variances = data.draw(spreads(tree))
    weights = rounded_weights(tree, variances)
    each = spread_of_numbers(tree, variances)
    found = [x for some in noise_sums(tree, weights, power, variances) for x in some.tolist()]
    for row, number in zip(map_of(tree, weights), found, strict=True):
        exact = sum((abs(c) ** power * v for c, v in zip(row, each, strict=True)), fmpq(0))
        true = Fraction(int(exact.p), int(exact.q))
        assert (
            true * (1 - Fraction(1, 2**52)) <= Fraction(number) <= true * (1 + Fraction(1, 10**12))
        )


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_number_is_less_exact_than_before(data: Any) -> None:
    tree = data.draw(trees())
    variances = data.draw(spreads(tree))
    made = noise_sums(tree, rounded_weights(tree, variances), 2, variances)
    least = least_variances(tree, [float(variance) for variance in variances])
    for some, best, own in zip(made, least, variances, strict=True):
        assert all(some <= float(own) * (1 + 1e-9))
        assert all(some <= best * (1 + 1e-9)) and all(best <= some * (1 + 1e-9))


def mutants(tree: LevelTree, weights: TreeWeights) -> dict[str, list[list[fmpq]]]:
    """A node's weight 1 % off; a share 1 % off; a child forgotten on the way up."""
    off = fmpq(101, 100)
    own, shares = [some.copy() for some in weights.own], [some.copy() for some in weights.shares]
    own[0][0] *= off
    shares[0][0] *= off
    heavier = TreeWeights(tuple(own), weights.shares)
    unequal = TreeWeights(weights.own, tuple(shares))
    forgotten = [[*row[:-1], fmpq(0)] for row in map_of(tree, weights)]
    return {
        "weight": map_of(tree, heavier),
        "share": map_of(tree, unequal),
        "child": forgotten,
    }


@pytest.mark.parametrize("which", ["weight", "share", "child"])
def test_mutants_are_rejected(which: str) -> None:
    """The first is unbiased still, and is not least squares; the others do not add up either."""
    tree = LevelTree((np.array([0, 0, 0]), np.array([0, 0, 1, 2, 2])))
    variances = [Fraction(1), Fraction(2), Fraction(3)]
    made = mutants(tree, exact_weights(tree, variances))[which]
    assert made != as_rows(dense_map(tree, variances))
    unbiased = fmpq_mat(made) * incidence(tree) == incidence(tree)
    rows = levels(tree, made)
    top = [sum(column, fmpq(0)) for column in zip(*rows[1], strict=True)]
    assert (unbiased and rows[0][0] == top) == (which == "weight")


def test_given_numbers_stay_and_help_others() -> None:
    """A variance of 0: the number is kept, and what lies below is moved to it."""
    tree = LevelTree((np.array([0, 0]), np.array([0, 0, 1])))
    variances = [Fraction(0), Fraction(0), Fraction(4)]
    for weights in (exact_weights(tree, variances), rounded_weights(tree, variances)):
        made = [fractions(some) for some in adding_up(tree, weights, [[10], [6, 4], [1, 1, 9]])]
        assert made == [[10], [6, 4], [3, 3, 4]]
        spread = noise_sums(tree, weights, 2, variances)
        assert [some.tolist() for some in spread] == [[0], [0, 0], [2, 2, 0]]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_whole_numbers_add_up_and_are_not_negative(data: Any) -> None:
    tree = data.draw(trees())
    weights = rounded_weights(tree, data.draw(spreads(tree)))
    noisy = [
        data.draw(st.lists(st.integers(-30, 30), min_size=size, max_size=size))
        for size in tree.sizes
    ]
    exact = [fractions(some) for some in adding_up(tree, weights, noisy)]
    whole = whole_numbers(tree, exact)
    assert all(type(n) is int and n >= 0 for some in whole for n in some)
    assert [len(some) for some in whole] == list(tree.sizes)
    for level, parents in enumerate(tree.parents):
        sums = [0] * tree.sizes[level]
        for number, parent in zip(whole[level + 1], parents, strict=True):
            sums[parent] += number
        assert sums == whole[level]


def test_whole_numbers_that_add_up_already_stay() -> None:
    tree = LevelTree((np.array([0, 0]), np.array([0, 1, 1])))
    exact = [[Fraction(9)], [Fraction(4), Fraction(5)], [Fraction(4), Fraction(0), Fraction(5)]]
    assert whole_numbers(tree, exact) == [[9], [4, 5], [4, 0, 5]]
    halves = [[Fraction(3)], [Fraction(3, 2), Fraction(3, 2)], [Fraction(3, 2)] * 3]
    assert whole_numbers(tree, halves)[1] == [2, 1]  # the first child first


def test_a_wide_tree_adds_up_exactly() -> None:
    parents = (np.zeros(200, np.int64), np.repeat(np.arange(200), 100))
    wide = LevelTree(parents)
    variances = [Fraction(1), Fraction(2), Fraction(3)]
    noisy = [[7], list(range(200)), [i % 7 for i in range(20_000)]]
    made = adding_up(wide, rounded_weights(wide, variances), noisy)
    assert sum(made[2], fmpq(0)) == sum(made[1], fmpq(0)) == made[0][0]


@pytest.mark.parametrize("parents", [[0, 2], [1, 1], [1, 0], [0, 1, 0]])
def test_siblings_that_stand_apart_are_noticed(parents: list[int]) -> None:
    with pytest.raises(AssertionError, match="siblings"):
        LevelTree((np.array(parents),))
