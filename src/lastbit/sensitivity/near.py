"""How far a statistic can move from data near the data at hand."""

from __future__ import annotations

from fractions import Fraction
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from lastbit.exact.rational import Number, whole
from lastbit.privacy.neighbours import CHANGE_ONE, Neighbours, Relation
from lastbit.sensitivity.local import local_at, window_of
from lastbit.sensitivity.statistics import (
    Count,
    InterquartileRange,
    Mean,
    Quantile,
    Statistic,
    Sum,
    TrimmedMean,
    Variance,
    quartiles,
    question,
    ranks,
    value_of,
)
from lastbit.sensitivity.values import Records
from lastbit.sensitivity.windows import widest

__all__ = ["near", "reachable", "sensitivity_at", "variance_reach"]


def sensitivity_at(
    statistic: Statistic | str,
    data: object,
    *,
    distance: int,
    lower: Number,
    upper: Number,
    neighbours: Neighbours = CHANGE_ONE,
) -> Fraction:
    """A bound U_k on the local sensitivity of all databases at most so many steps away.

    Law      (A) U_k(x) >= LS(y) for every y within k steps of x, in particular U_0 >= LS;
             (B) U_k(x) <= U_(k+1)(x') for neighbours x, x'; and U_k <= U_(k+1)
    Theorem  W = hi - lo, n records, U_k per statistic:
             Count, and sum under add-remove: U_k is the global sensitivity, which LS always is.
             Sum and mean, change-one: U_0 = LS; for k >= 1 W, W/n: one change brings a record to a
             bound, from where LS is that. (A) is exact, (B) follows from LS <= the constant.
             Mean, add-remove: LS(y) <= W/max(abs(y), 1), where abs(y) is the number of records (the
             mean of none is lo), so U_k = W/max(n-k, 1); the neighbour has at most n+1 records,
             (n+1)-(k+1) = n-k, which is (B).
             Variance, change-one, n >= 2: with M = max(hi - mean, mean - lo) and the others' mean
             at most W/(n-1) from the mean, LS <= (n-1)/n**2 min(W, M + W/(n-1))**2 = V_0. A change
             moves the mean, so M, by at most W/n: V_k = (n-1)/n**2 min(W, M + W/(n-1) + k W/n)**2
             has (A) and (B), and so has U_0 = LS <= V_0, U_k = V_k for k >= 1.
             Rank m, change-one: U_k = max x_j - x_i over i <= m <= j, j - i = k + 1, so U_0 = LS.
             (B): if a record rose on the way from x to x', then x_j <= x'_j and x'_(i-1) <= x_i, so
             the pair (i-1, j) of x' is as wide; if one fell, (i, j+1) is. (A): (B) along the way.
             Trimmed mean, change-one, t cut at each end, g = n - 2t: the same with i <= t+1,
             j >= n-t, j - i = g + k, divided by g.
             Quantile, add-remove: U_k is the diameter of the set of values reachable in k + 1
             steps (`reachable`). LS(y) is a difference of two of them, (A); what x reaches in r
             steps x' reaches in r + 1, (B).
             Interquartile range: the larger of its quartiles' U_k, as they never move apart in one
             step, so LS <= the larger LS. A change moves all ranks the same way. Adding v to n
             records: the ranks ceil(n/4) and ceil(3n/4) both grow if 4 divides n, and both values
             rise or stay; neither grows if 4 divides n+1, and both fall or stay; else only the
             upper one grows: its value rises only if v is above it, the lower one's falls only if
             v is below that. Removing is the way back. n = 1, changed: 0
    Source   Nissim, Raskhodnikova, Smith 2007; Bun, Steinke 2019 (trimmed mean)
    Differs  exact rationals; add-remove, variance and interquartile range are ours
    Checked  tests/sensitivity/test_near.py, over all small databases

    >>> sensitivity_at("median", [1, 2, 3, 3, 9], distance=1, lower=0, upper=10)
    Fraction(6, 1)
    """
    asked, rows, relation = question(statistic, data, lower, upper, neighbours)
    return near(asked, rows, whole(distance, "distance"), relation)


def near(statistic: Statistic, rows: Records, distance: int, relation: Relation) -> Fraction:
    """U_k, for parameters that were checked."""
    change, count, step = relation == "change-one", rows.count, rows.step
    far = min(distance, count)
    match statistic:
        case Count():
            return local_at(statistic, rows, relation)
        case Sum() | Mean() if change:
            if far == 0:
                return local_at(statistic, rows, relation)
            return rows.width * step / (count if isinstance(statistic, Mean) else 1)
        case Sum():
            return local_at(statistic, rows, relation)
        case Mean():
            return rows.width * step / max(count - far, 1)
        case Variance():
            if far == 0 or count == 1:
                return local_at(statistic, rows, relation)
            spread, slope = variance_reach(rows)
            moved = min(Fraction(rows.width), spread + far * slope)
            return moved**2 * step**2 * (count - 1) / count**2
        case Quantile() | TrimmedMean() if change:
            window, divisor = window_of(statistic, count)
            return widest(rows.padded(), window, far) * step / divisor
        case InterquartileRange():
            if change and count == 1:
                return Fraction(0)
            return max(near(quartile, rows, far, relation) for quartile in quartiles())
        case Quantile():
            return int(reachable(statistic.level, rows, np.array([far + 1]))[0]) * step
        case TrimmedMean():
            raise AssertionError("refused by check_defined")
        case _:
            assert_never(statistic)


def variance_reach(rows: Records) -> tuple[Fraction, Fraction]:
    """M + W/(n-1) and W/n of the variance's theorem, in steps."""
    mean = value_of(Mean(), rows) / rows.step
    spread = max(rows.high - mean, mean - rows.low) + Fraction(rows.width, rows.count - 1)
    return spread, Fraction(rows.width, rows.count)


def reachable(level: Fraction, rows: Records, moves: NDArray[np.int64]) -> NDArray[np.int64]:
    """The diameter, in steps, of what a quantile can become when r records come or go, r >= 1.

    Theorem  with p records removed and q added, p + q = r < n, a database of N = n - p + q records
             has at rank m(N) a value from x_(m(N)-q) to x_(m(N)+p), both ends reached by removing
             the greatest and adding lo, or the least and hi. m(N) - q = ceil(c + (2 level - 1) q)
             for a constant c is monotone in q (for level 0 it is 1 - q), so its least value is at
             q = 0 or q = r: low = min(m(n-r), m(n+r) - r), and high = max(m(n+r), m(n-r) + r)
             likewise. Fewer steps reach nothing further, as m grows by at most 1 a record. From
             r = n on the whole range is taken
    """
    padded, count = rows.padded(), rows.count
    inside = np.minimum(moves, max(count - 1, 0))
    after, before = ranks(level, count + inside), ranks(level, count - inside)
    low = np.maximum(np.minimum(before, after - inside), 0)
    high = np.minimum(np.maximum(after, before + inside), count + 1)
    return np.where(moves < count, padded[high] - padded[low], rows.width)
