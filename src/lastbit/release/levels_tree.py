"""Noisy numbers on the levels of a tree, made to add up: weighted least squares in two passes.

Set-up   every node u has a true number x(u), that of a parent is the sum of its children's, and a
         noisy one y(u) = x(u) + noise; noises are independent, those of one level have one variance
Law      up:    z(u) = w(u) y(u) + (1 - w(u)) times the sum of z over children; z = y on leaves
         down:  h(root) = z(root); h(c) = z(c) + k(c) (h(u) - sum of z over children of u) for each
                child c of u. The k of the children of one node add up to 1
Theorem  (any weights) h is unbiased, and h(u) is exactly the sum of h over the children of u
Proof    z(u) is unbiased if its children's are, as x(u) is their sum, and then so is h(c), as the
         bracket has mean 0. The sum of h(c) is (sum of z) + 1 (h(u) - sum of z)
Theorem  (best) let Z be the variance of z, and S(u) the sum of Z over the children of u. With
         w = S/(v + S), v the variance of y(u), and k(c) = Z(c)/S, h is the best linear unbiased
         estimate. It has variance Z at the root, and H(c) = Z(c) - k(c)**2 (S(u) - H(u))
Proof    z(u) is the best estimate from y(u) and what lies below: the weighted mean of two
         independent ones. Given x(u), the best from all that lies below u moves its sum to x(u) in
         proportion to Z (Lagrange); what lies outside tells of x(c) through x(u) alone, whose best
         estimate is h(u): so x(u) may be replaced by it (Gauss, Markov)
Theorem  (noises) h(u) - x(u) = a z'(u) + o(u), z' the error of z, o made of noises outside of the
         tree below u. At the root a = 1, o = 0. With b(u) = 1 - a(u)(1 - w(u)):
         a(c) = 1 - k(c) b(u) and o(c) = k(c) (a(u) w(u) noise(u) + o(u) - b(u) times the sum of z'
         over c's siblings).
         All these are of different noises. So for noises with coefficients c_i the sum of
         abs(c_i)**p t_i, t_i one number a level, is worked out by the same two passes
Proof    put h(u) = a z(u) + o(u) and z(u) = w y(u) + (1 - w)(z(c) + siblings) into h(c)
Source   Hay, Rastogi, Miklau, Suciu 2010 (equal variances, trees of one branching); the recursion
         is that of Rauch, Tung, Striebel 1965
Differs  variances by level, any numbers of children, exact rationals. Weights are rounded to a
         grid, which the first theorem allows; variances are those of the weights that are used
Checked  tests/release/test_levels_tree.py: against least squares by dense linear algebra, exactly
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import ceil
from typing import Any

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

GRID = 1 << 30
"""Weights are whole multiples of 1/GRID."""
_BITS = 160
_ONE = 1 << _BITS


@dataclass(frozen=True, slots=True, eq=False)
class LevelTree:
    """Which node of the level above each node belongs to; siblings stand together, in order."""

    parents: tuple[NDArray[np.int64], ...]
    """Of every level but the first; the numbers 0, 1, 2 ... each at least once, never falling."""

    def __post_init__(self) -> None:
        for above, own in zip((None, *self.parents), self.parents, strict=False):
            steps = np.diff(own, prepend=-1)
            whole = len(own) > 0 and own[0] == 0 and bool(np.all((steps == 0) | (steps == 1)))
            assert whole, "siblings stand apart"
            assert above is None or own[-1] == len(above) - 1, "a node has no child"

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many nodes each level has."""
        first = int(self.parents[0][-1]) + 1 if self.parents else 1
        return (first, *map(len, self.parents))

    def firsts(self, level: int) -> NDArray[np.int64]:
        """Where the children of each node of a level begin."""
        return np.flatnonzero(np.diff(self.parents[level], prepend=-1))

    def sums(self, level: int, below: NDArray[Any]) -> NDArray[Any]:
        """For each node of a level the sum of what its children have."""
        found: NDArray[Any] = np.add.reduceat(below, self.firsts(level))
        return found

    def numbers_of_children(self, level: int) -> NDArray[np.int64]:
        """How many children each node of a level has."""
        return np.bincount(self.parents[level])


@dataclass(frozen=True, slots=True, eq=False)
class TreeWeights:
    """For each level the w of its nodes, and from the second level on the k."""

    own: tuple[NDArray[Any], ...]
    shares: tuple[NDArray[Any], ...]


def rationals(numbers: Sequence[Any]) -> NDArray[Any]:
    """The numbers as exact rationals, in the arithmetic of flint."""
    found = np.empty(len(numbers), np.object_)
    found[:] = [
        fmpq(number.numerator, number.denominator) if isinstance(number, Fraction) else fmpq(number)
        for number in numbers
    ]
    return found


def fractions(numbers: NDArray[Any]) -> list[Fraction]:
    """The same, as Python has them."""
    return [Fraction(int(number.p), int(number.q)) for number in numbers]


# ---------------------------------------------------------------- weights


def exact_weights(tree: LevelTree, variances: Sequence[Fraction]) -> TreeWeights:
    """The best weights, as they are: their denominators grow with the tree."""
    own: list[NDArray[Any]] = []
    shares: list[NDArray[Any]] = []
    spread = rationals([variances[-1]] * tree.sizes[-1])
    own.append(rationals([1] * tree.sizes[-1]))
    for level in range(len(tree.parents) - 1, -1, -1):
        below, alone = tree.sums(level, spread), rationals([variances[level]])[0]
        equal = [fmpq(1, int(number)) for number in tree.numbers_of_children(level)]
        total, each = below[tree.parents[level]], np.array(equal, object)[tree.parents[level]]
        shares.append(
            np.array([z / s if s else e for z, s, e in zip(spread, total, each, strict=True)])
        )
        weights = [s / (alone + s) if alone else fmpq(1) for s in below]
        own.append(np.array(weights, object))
        spread = np.array([w * alone for w in weights], object)
    return TreeWeights(tuple(own[::-1]), tuple(shares[::-1]))


def rounded_weights(tree: LevelTree, variances: Sequence[Fraction]) -> TreeWeights:
    """Weights on a grid, next to the best ones; the k of siblings add up to 1 exactly."""
    scale = max(variances)
    alone = [float(variance / scale) for variance in variances]
    upward = upward_variances(tree, alone)
    own = [np.full(tree.sizes[-1], GRID)]
    shares: list[NDArray[Any]] = []
    for level in range(len(tree.parents) - 1, -1, -1):
        parents, number = tree.parents[level], tree.numbers_of_children(level)
        below = tree.sums(level, upward[level + 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            share = upward[level + 1] / below[parents]
            weight = below / (alone[level] + below)
        share = np.where(below[parents] > 0, share, 1 / number[parents])
        weight = np.where(alone[level] > 0, weight, 1.0)
        own.append(np.rint(weight * GRID).astype(np.int64))
        units = np.floor(share * (GRID * (1 - 2.0**-40))).astype(np.int64)
        left = GRID - tree.sums(level, units)
        rank = np.arange(len(parents)) - tree.firsts(level)[parents]
        # `left` is from 0 up to the number of children: rounding down took less than 1 of each
        shares.append(units + (rank < left[parents]))
    return TreeWeights(tuple(map(_on_grid, own[::-1])), tuple(map(_on_grid, shares[::-1])))


def _on_grid(units: NDArray[np.int64]) -> NDArray[Any]:
    found = np.empty(len(units), np.object_)
    found[:] = [fmpq(unit, GRID) for unit in units.tolist()]
    return found


def upward_variances(tree: LevelTree, variances: Sequence[float]) -> list[NDArray[np.float64]]:
    """Z of the theorem, nearly: what each number knows of itself and from below."""
    found = [np.full(tree.sizes[-1], variances[-1])]
    for level in range(len(tree.parents) - 1, -1, -1):
        below, alone = tree.sums(level, found[-1]), variances[level]
        found.append(alone * below / (alone + below) if alone else np.zeros(len(below)))
    return found[::-1]


def least_variances(tree: LevelTree, variances: Sequence[float]) -> list[NDArray[np.float64]]:
    """H of the theorem, nearly: the variances of the best estimates."""
    upward = upward_variances(tree, variances)
    found = [upward[0]]
    for level, parents in enumerate(tree.parents):
        own, below = upward[level + 1], tree.sums(level, upward[level + 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(below[parents] > 0, own / below[parents], 0.0)
        found.append(own - share**2 * (below - found[-1])[parents])
    return found


# ---------------------------------------------------------------- estimates


def adding_up(
    tree: LevelTree, weights: TreeWeights, noisy: Sequence[Sequence[int]]
) -> list[NDArray[Any]]:
    """The estimates, by level: rationals that add up exactly.

    >>> tree = LevelTree((np.array([0, 0]),))
    >>> weights = exact_weights(tree, [Fraction(2), Fraction(1)])
    >>> [[str(number) for number in level] for level in adding_up(tree, weights, [[12], [4, 4]])]
    [['10'], ['5', '5']]
    """
    upward = [rationals(noisy[-1])]
    for level in range(len(tree.parents) - 1, -1, -1):
        weight, below = weights.own[level], tree.sums(level, upward[-1])
        upward.append(weight * rationals(noisy[level]) + (1 - weight) * below)
    upward.reverse()
    found = [upward[0]]
    for level, parents in enumerate(tree.parents):
        missing = found[-1] - tree.sums(level, upward[level + 1])
        found.append(upward[level + 1] + weights.shares[level] * missing[parents])
    return found


def noise_sums(
    tree: LevelTree, weights: TreeWeights, power: int, each: Sequence[Fraction]
) -> list[NDArray[np.float64]]:
    """For each estimate the sum of abs(c_i)**power each_i over all noises; `each` is by level.

    With power 2 and the variances of the noises this is the variance of the estimate. In whole
    multiples of 2**-160, rounded up at every step; the float is the one next to that.
    """
    values = [ceil(value * _ONE) for value in each]
    own = [_ends_of(some) for some in weights.own]
    upward = [np.full(tree.sizes[-1], values[-1], np.object_)]
    for level in range(len(tree.parents) - 1, -1, -1):
        (down, up), below = own[level], tree.sums(level, upward[-1])
        alone = _product_up(_power_up(up, power), values[level])
        upward.append(alone + _product_up(_power_up(_ONE - down, power), below))
    upward.reverse()
    least = most = np.full(tree.sizes[0], _ONE, np.object_)  # a of the theorem lies between
    outside = np.zeros(tree.sizes[0], np.object_)
    found = [upward[0]]
    for level, parents in enumerate(tree.parents):
        (down, up), (thin, thick) = own[level], _ends_of(weights.shares[level])
        apart = _ONE - _product_down(least, _ONE - up)
        apart_least = _ONE - _product_up(most, _ONE - down)
        of_parent = _product_up(_power_up(_product_up(most, up), power), values[level]) + outside
        siblings = tree.sums(level, upward[level + 1])[parents] - upward[level + 1]
        moved = of_parent[parents] + _product_up(_power_up(apart, power)[parents], siblings)
        outside = _product_up(_power_up(thick, power), moved)
        least = _ONE - _product_up(thick, apart[parents])
        most = _ONE - _product_down(thin, apart_least[parents])
        found.append(_product_up(_power_up(most, power), upward[level + 1]) + outside)
    return [np.array([number / _ONE for number in some]) for some in found]


def _ends_of(numbers: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The whole multiples of 1/_ONE next to these numbers, below and above."""
    down, up = np.empty(len(numbers), np.object_), np.empty(len(numbers), np.object_)
    down[:] = [int(number.p) * _ONE // int(number.q) for number in numbers]
    up[:] = [-(-int(number.p) * _ONE // int(number.q)) for number in numbers]
    return down, up


def _product_up(one: Any, other: Any) -> Any:
    return -((-one * other) >> _BITS)


def _product_down(one: Any, other: Any) -> Any:
    return (one * other) >> _BITS


def _power_up(number: Any, power: int) -> Any:
    return reduce(_product_up, [number] * power)
