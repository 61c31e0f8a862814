"""From a noisy tree of bins to quantiles in order, with intervals.

Law      F is the least-squares estimate of the running weights given all nodes. The value of a
         quantile of level q is the first bin after which (M_p + m_p)/2 reaches q F_all, where M_p
         is the greatest F up to p and m_p the least from p on; a total below 0 counts as 0
Theorem  M + m never falls, and q F_all rises with q, so quantiles are in order. Up from the leaves,
         z(u) = ((f**(l+1) - f**l) x(u) + (f**l - 1) sum of z over children)/(f**(l+1) - 1) for a
         node u of size f**l; down, h(child) = z(child) + (h(u) - sum of z over children)/f. h of
         the leaves is the least-squares estimate (Hay et al. 2010): z(u) is the best estimate of u
         from its own noisy weight and those below it, and what the levels above know besides is
         shared equally among equally good children
Differs  all in whole numbers, counted in 1/scale, scale = f**(L-1) times the product of
         f**(l+1) - 1 over l = 1 ... L-1: each division above is exact. For all groups at once, in
         64 bits where that is enough and in Python's integers elsewhere
Theorem  intervals: `tables/plan/tree.py`, Theorems 5 and 6
Checked  tests/release/test_trees.py
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, prod
from typing import Any

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from lastbit.tables import ShareReach, Tree

_WIDE = 1 << 60
_GROUPS = 256
_FINENESS = 1 << 20


@dataclass(frozen=True, slots=True)
class Running:
    """Of some groups the estimated weights of the first 0, 1, ... bins, and of all; times scale."""

    sums: NDArray[Any]
    totals: NDArray[Any]
    scale: int


def running(tree: Tree, groups: Sequence[Sequence[Sequence[int]]]) -> Iterator[Running]:
    """The estimates, some groups at a time."""
    for start in range(0, len(groups), _GROUPS):
        leaves, scale = least_squares(tree, groups[start : start + _GROUPS])
        sums = np.zeros((len(leaves), tree.leaves + 1), leaves.dtype)
        np.cumsum(leaves, axis=1, out=sums[:, 1:])
        yield Running(sums[:, : tree.bins + 1], sums[:, -1], scale)


def least_squares(
    tree: Tree, groups: Sequence[Sequence[Sequence[int]]]
) -> tuple[NDArray[Any], int]:
    """The estimates of the leaves of each group, times a whole number, and that number."""
    f, depth = tree.branching, tree.levels
    divisors = [f ** (level + 1) - 1 for level in range(1, depth)]
    scale = f ** (depth - 1) * prod(divisors)
    most = max(abs(node) for levels in groups for nodes in levels for node in nodes)
    # z of level l is at most l + 1 times the greatest node, h at most 4 L times, sums of f of them
    # f times, and running sums as often as there are leaves
    wide = 8 * f * depth * scale * max(most, 1) * tree.leaves >= _WIDE
    kind: Any = np.object_ if wide else np.int64
    noisy = [np.array([levels[level] for levels in groups], kind) for level in range(depth)]
    guesses, unit = [noisy[0]], 1  # each level times the unit so far
    for level, divisor in enumerate(divisors, start=1):
        below = _node_sums(guesses[-1], f)
        own = (f ** (level + 1) - f**level) * unit
        guesses.append(noisy[level] * own + below * (f**level - 1))
        unit *= divisor
    settled = guesses[-1] * f ** (depth - 1)
    for level in range(depth - 2, -1, -1):
        unit //= divisors[level]
        guess = guesses[level] * (scale // unit)
        rest = (settled - _node_sums(guess, f)) // f
        settled = guess + np.repeat(rest, f, axis=1)
    return settled, scale


def _node_sums(nodes: NDArray[Any], branching: int) -> NDArray[Any]:
    """The sums over neighbours that make a node of the next level."""
    found: NDArray[Any] = nodes.reshape(len(nodes), -1, branching).sum(axis=2)
    return found


def ranked(
    groups: Running, level: Fraction, reach: Sequence[Fraction] | None
) -> Iterator[tuple[int, int, int]]:
    """For each group the bin of the quantile, and the first and last that its interval holds.

    Without a reach no bin is excluded: the interval is all of them.
    """
    a, d, bins = level.numerator, level.denominator, groups.sums.shape[1] - 1
    far = [0] * (bins + 1) if reach is None else [ceil(t * d * groups.scale) for t in reach]
    most = max(*far, 2 * d * int(np.abs(groups.sums).max()))
    wide = groups.sums.dtype == np.object_ or 4 * most >= _WIDE
    kind: Any = np.object_ if wide else np.int64
    sums, totals = groups.sums.astype(kind) * d, groups.totals.astype(kind) * a
    bound, target = np.array(far, kind), totals[:, None]
    high = np.maximum.accumulate(sums, axis=1)
    low = np.minimum.accumulate(sums[:, ::-1], axis=1)[:, ::-1]
    reached = (high + low)[:, 1:] >= 2 * np.maximum(target, 0)
    not_before = (sums - target)[:, 1:] >= -bound[1:]
    not_after = (sums - target)[:, :-1] <= bound[:-1]
    for hits, above, below in zip(reached, not_before, not_after, strict=True):
        value = int(hits.argmax()) if hits.any() else bins - 1
        first = int(above.argmax()) if reach is not None and above.any() else 0
        last = int(np.flatnonzero(below)[-1]) if reach is not None and below.any() else bins - 1
        yield value, min(first, value), max(last, value)


def shares(
    groups: Running,
    places: tuple[int, int],
    reaches: tuple[ShareReach | None, ShareReach | None],
) -> Iterator[tuple[Fraction | None, Fraction, Fraction]]:
    """For each group the share up to a point that lies between two places, and its interval.

    The value is the average at both places of what never falls, over the total; missing where the
    total is not above 0.
    """
    high = np.maximum.accumulate(groups.sums, axis=1)
    low = np.minimum.accumulate(groups.sums[:, ::-1], axis=1)[:, ::-1]
    first_reach, last_reach = reaches
    behind = None if last_reach is None else last_reach.mirrored()
    for i, whole in enumerate(groups.totals.tolist()):
        value = None
        if whole > 0:
            found = sum(int(high[i, p]) + int(low[i, p]) for p in places)
            value = min(max(Fraction(found, 4 * whole), Fraction(0)), Fraction(1))
        total = fmpq(whole, groups.scale)
        below, above = (fmpq(int(groups.sums[i, p]), groups.scale) for p in places)
        first = _least_share(below, total, first_reach)
        last = 1 - _least_share(total - above, total, behind)
        yield (
            value,
            first if value is None else min(first, value),
            last if value is None else max(last, value),
        )


def _least_share(part: fmpq, total: fmpq, reach: ShareReach | None) -> Fraction:
    """The least share that is not excluded, or a trace less."""

    def possible(place: int) -> bool:
        share = fmpq(place, _FINENESS)
        return reach is None or not reach.exceeded(part - share * total, share)

    if possible(0):
        return Fraction(0)
    # what is excluded is a stretch that begins at 0
    first = bisect_left(range(_FINENESS + 1), x=True, key=possible)
    return Fraction(first - 1, _FINENESS)
