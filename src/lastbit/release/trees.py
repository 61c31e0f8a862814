"""From a noisy tree of bins to quantiles in order, with intervals.

Law      F is the least-squares estimate of the running weights given all nodes. The value of a
         quantile of level q is the first bin after which (M_p + m_p)/2 reaches q F_all, where M_p
         is the greatest F up to p and m_p the least from p on; a total below 0 counts as 0
Theorem  M + m never falls, and q F_all rises with q, so quantiles are in order. Up from the leaves,
         z(u) = (x(u) + sum of z over children / (f e))/(1 + 1/(f e)), e the variance of a child's z
         in that of a node, and e(u) = 1/(1 + 1/(f e)); down, h(child) = z(child) + (h(u) - sum of z
         over children)/f. h of the leaves is the least-squares estimate (Hay et al. 2010): z(u) is
         the best estimate of u from the nodes below it and its own, and what the levels above know
         besides is shared equally among equally good children
Theorem  intervals: `tables/plan/tree.py`, Theorem 5
Checked  tests/release/test_trees.py
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import accumulate

from flint import fmpq

from lastbit.tables import Tree


def least_squares(tree: Tree, levels: Sequence[Sequence[int]]) -> list[fmpq]:
    """The estimates of the leaves."""
    f = tree.branching
    guesses: list[list[fmpq]] = [[fmpq(number) for number in levels[0]]]
    error = fmpq(1)
    for numbers in levels[1:]:
        weight = 1 / (f * error)
        error = 1 / (1 + weight)
        below = guesses[-1]
        sums = (sum(below[i : i + f], fmpq(0)) for i in range(0, len(below), f))
        guesses.append([error * (x + weight * s) for x, s in zip(numbers, sums, strict=True)])
    settled = guesses[-1]
    for below in reversed(guesses[:-1]):
        found: list[fmpq] = []
        for place, whole in enumerate(settled):
            children = below[place * f : (place + 1) * f]
            rest = (whole - sum(children, fmpq(0))) / f
            found += [child + rest for child in children]
        settled = found
    return settled


def running(tree: Tree, levels: Sequence[Sequence[int]]) -> tuple[list[fmpq], fmpq]:
    """The estimated weight of the first 0, 1, ... bins, and of all."""
    leaves = least_squares(tree, levels)
    sums = list(accumulate(leaves, initial=fmpq(0)))
    return sums[: tree.bins + 1], sums[-1]


def rising(sums: Sequence[fmpq]) -> list[fmpq]:
    """Twice the average of the greatest so far and the least to come."""
    greatest = accumulate(sums, max)
    least = list(accumulate(reversed(sums), min))[::-1]
    return [high + low for high, low in zip(greatest, least, strict=True)]


def ranked(
    groups: Iterable[tuple[Sequence[fmpq], fmpq]], level: Fraction, reach: Sequence[Fraction]
) -> Iterator[tuple[int, int, int]]:
    """For each group the bin of the quantile, and the first and last that its interval holds.

    A group is what `running` says of it.
    """
    share = fmpq(level.numerator, level.denominator)
    far = [fmpq(t.numerator, t.denominator) for t in reach]
    bins = len(far) - 1
    for sums, total in groups:
        target = share * total
        aim, doubled = 2 * max(target, fmpq(0)), rising(sums)
        value = next((j for j in range(bins) if doubled[j + 1] >= aim), bins - 1)
        possible = [
            j
            for j in range(bins)
            if sums[j + 1] - target >= -far[j + 1] and sums[j] - target <= far[j]
        ]
        first, last = (possible[0], possible[-1]) if possible else (value, value)
        yield value, min(first, value), max(last, value)
