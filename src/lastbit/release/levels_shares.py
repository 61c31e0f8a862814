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

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lastbit.release.levels_tree import LevelTree, least_variances

_STEPS, _SLOWER, _LEAST, _NEAR = 100, 0.97, 1e-3, 1e-3
_FINENESS = 1000


def least_shares(tree: LevelTree, *, power: int, given: Sequence[bool]) -> list[Fraction]:
    """Shares of the levels that are asked, adding up to 1; `given` levels are not.

    >>> tree = LevelTree((np.array([0] * 50),))
    >>> [round(float(share), 1) for share in least_shares(tree, power=2, given=[False, False])]
    [0.3, 0.7]
    """
    asked = [level for level, known in enumerate(given) if not known]
    equal = np.full(len(asked), 1 / len(asked))
    best, least = equal, max(worst_ratios(tree, equal, power=power, given=given))
    shares, speed = equal, 1 / power
    for _ in range(_STEPS):
        ratios = np.array(worst_ratios(tree, shares, power=power, given=given))
        if max(ratios) < least:
            best, least = shares, max(ratios)
        if min(ratios) > (1 - _NEAR) * max(ratios):
            break
        shares = np.maximum(shares * (ratios / max(ratios)) ** speed, _LEAST)
        shares, speed = shares / shares.sum(), speed * _SLOWER
    units = [max(round(float(share) * _FINENESS), 1) for share in best]
    found = [Fraction(unit, sum(units)) for unit in units]
    reached = worst_ratios(tree, np.array(found, float), power=power, given=given)
    if max(reached) > max(worst_ratios(tree, equal, power=power, given=given)):
        return [Fraction(1, len(asked))] * len(asked)
    return found


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
