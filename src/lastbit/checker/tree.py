"""The shape of a tree over bins, derived again: how many bins make a node, and on how many levels.

The rule is public and knows the number of bins alone. Of the branchings f below, each with as many
levels as reach one node over all bins, or one level less, those count whose worst median is within
a twentieth of the best, by v at 1/2 over some running sums, times levels for Gaussian noise and
times levels**2 for Laplace noise. Of these the shape with the fewest levels, then the least such
error, then the least branching.

Law      v = sum over l = 1 ... L-1 of (E_(l-1) - E_l)/s_l + E_(L-1)/s_L, s_l = 1 + f + ... +
         f**(l-1), where E_l is the squared length of a (1 on the first leaves, less 1/2 on all)
         averaged over the nodes of size f**l (`tables/plan/tree.py`, Theorem 2)
Differs  in whole numbers: four v times f**(L-1) and the product of all s
Checked  tests/verify/test_check_release.py
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import prod

from .numbers import require

_BRANCHINGS = (2, 3, 4, 6, 8, 16, 32)
_PLACES = 64
_MOST_BINS = 1 << 20


@cache
def tree_shape(bins: int, *, gaussian: bool) -> tuple[int, int]:
    """Branching and levels of the tree over that number of bins.

    >>> tree_shape(512, gaussian=False)
    (8, 3)
    """
    require(1 <= bins <= _MOST_BINS, "a tree has no bins, or too many")
    found = []
    for branching in _BRANCHINGS:
        most = 1
        while branching ** (most - 1) < bins:
            most += 1
        for levels in sorted({most, max(most - 1, 1)}):
            price = levels if gaussian else levels**2
            found.append((_worst(bins, branching, levels) * price, levels, branching))
    enough = min(found)[0] * Fraction(21, 20)
    good = [(levels, error, branching) for error, levels, branching in found if error <= enough]
    levels, _, branching = min(good)
    return branching, levels


def _worst(bins: int, branching: int, levels: int) -> Fraction:
    """Four times the greatest v over a choice of running sums."""
    sizes = [branching**level for level in range(levels)]
    leaves = -(-bins // sizes[-1]) * sizes[-1]
    eigenvalues = [sum(sizes[: level + 1]) for level in range(levels)]
    whole = prod(eigenvalues)
    shares = [whole // value for value in eigenvalues]
    worst = 0
    for first in range(0, bins + 1, max(1, bins // _PLACES)):
        lengths = [_length(first, leaves, size, sizes[-1]) for size in sizes]
        steps = [a - b for a, b in zip(lengths, [*lengths[1:], 0], strict=True)]
        worst = max(worst, sum(a * b for a, b in zip(steps, shares, strict=True)))
    return Fraction(worst, whole * sizes[-1])


def _length(first: int, leaves: int, size: int, largest: int) -> int:
    """Four times the squared length once averaged over nodes of a size, times the largest size."""
    rest = first % size
    plain = leaves // size - (rest > 0)  # nodes on one side of the place: 1/2 or -1/2 throughout
    cut = (2 * rest - size) ** 2 * (largest // size) if rest else 0
    return size * plain * largest + cut
