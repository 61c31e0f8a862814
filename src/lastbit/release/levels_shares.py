"""How much of a price each level gets: the largest error, against asking one by one, is least.

Law      at shares s the noise of level l has variance proportional to 1/s_l**p: p = 2 for an
         epsilon, 1 for a rho. A level's error is the largest variance of its estimates
         (`levels_tree.py`); its ratio is that over the variance of the level asked alone, at an
         equal part of the price. The shares make the largest ratio of all levels as small as
         the search finds
Theorem  no ratio is above 1: no number is less exact than where levels are asked one by one
Proof    at equal shares an estimate is at least as exact as the level's own number, which is one of
         the unbiased ones (Gauss, Markov). The shares found are taken only if their largest ratio
         is no larger than that of equal shares
Differs  it is a search: shares of levels that are worse grow. Variances are floats: what is shown
         afterwards is worked out exactly
Checked  tests/release/test_levels_shares.py: against all shares of a fine grid
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from lastbit.release.levels_tree import LevelTree, least_variances

_STEPS, _SLOWER, _LEAST, _NEAR = 60, 0.96, 1e-3, 1e-3
_ALL_STARTS, _LITTLE = 4, 0.02
_POLISH = (2.0, 1.5, 1.3, 1.2, 1.1, 1.05, 1.02)
_FINENESS = 1000


def least_shares(tree: LevelTree, *, power: int, given: Sequence[bool]) -> list[Fraction]:
    """Shares of the levels that are asked, adding up to 1; `given` levels are not.

    >>> tree = LevelTree((np.array([0] * 50),))
    >>> [round(float(share), 1) for share in least_shares(tree, power=2, given=[False, False])]
    [0.5, 0.5]
    """
    number = len(given) - sum(given)
    equal = np.full(number, 1 / number)

    def ratios(shares: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array(worst_ratios(tree, shares, power=power, given=given))

    best, least = equal, ratios(equal).max()
    for start in (equal, *_starts(number)):
        shares, speed = start, 1 / power
        for _ in range(_STEPS):
            found = ratios(shares)
            if found.max() < least:
                best, least = shares, found.max()
            if found.min() > (1 - _NEAR) * found.max():
                break
            shares = np.maximum(shares * (found / found.max()) ** speed, _LEAST)
            shares, speed = shares / shares.sum(), speed * _SLOWER
    for step in _POLISH:
        for level in (*range(number), *range(number)):
            for factor in (step, 1 / step):
                tried = best.copy()
                tried[level] *= factor
                tried /= tried.sum()
                if (reached := ratios(tried).max()) < least:
                    best, least = tried, reached
    units = [max(round(float(share) * _FINENESS), 1) for share in best]
    rounded = [Fraction(unit, sum(units)) for unit in units]
    rounded_worst = ratios(np.array(rounded, float)).max()
    return rounded if rounded_worst <= ratios(equal).max() else [Fraction(1, number)] * number


def _starts(number: int) -> Iterator[NDArray[np.float64]]:
    """Where some levels get little: two that know the same are better served by one price.

    By an epsilon, a half of it buys a quarter of what a whole one tells.
    """
    few = range(1, number) if number <= _ALL_STARTS else (1, number - 1)
    for size in few:
        for heavy in combinations(range(number), size):
            start = np.full(number, _LITTLE)
            start[list(heavy)] = 1.0
            yield start / start.sum()


def worst_ratios(
    tree: LevelTree, shares: NDArray[np.float64], *, power: int, given: Sequence[bool]
) -> list[float]:
    """Of each level that is asked, its error over that of asking it alone at an equal part."""
    asked = [level for level, known in enumerate(given) if not known]
    variances = [0.0] * len(given)
    for level, share in zip(asked, shares, strict=True):
        variances[level] = float((1 / (share * len(asked))) ** power)
    found = least_variances(tree, variances)
    return [float(found[level].max()) for level in asked]
