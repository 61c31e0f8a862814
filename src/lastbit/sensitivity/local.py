"""How far a statistic can move from the data at hand: the local sensitivity, exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import assert_never

import numpy as np

from lastbit.exact.rational import Number
from lastbit.privacy.neighbours import CHANGE_ONE, Neighbours, Relation
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
    rank,
    trimmed,
    value_of,
)
from lastbit.sensitivity.values import Records
from lastbit.sensitivity.windows import Window, widest

__all__ = ["local_at", "local_sensitivity", "window_of"]


def local_sensitivity(
    statistic: Statistic | str,
    data: object,
    *,
    lower: Number,
    upper: Number,
    neighbours: Neighbours = CHANGE_ONE,
) -> Fraction:
    """The most by which one record can move the statistic of these very data.

    Law      max abs(f(x) - f(y)) over the neighbours y of x, x on its grid (`records`); for the
             variance the record that moves may take any real value between the bounds
    Theorem  x_0 = lo, x_(n+1) = hi stand for the bounds.
             Order statistics: changing x_i to v >= x_i moves the r-th one, for r >= i, from x_r to
             the nearest point to v of [x_r, x_(r+1)], and leaves the others; downwards likewise. So
             rank m moves by at most max(x_(m+1) - x_m, x_m - x_(m-1)), both reached; the sum of
             ranks t+1 to n-t by at most max(x_(n-t+1) - x_(t+1), x_(n-t) - x_t), both reached; the
             difference of ranks a < c, which move the same way, by the larger of the two single
             moves, reached with a v that moves one of them only.
             Add-remove: adding v makes the r-th one the nearest point to v of [x_(r-1), x_r];
             removing x_i makes it x_r if r < i, else x_(r+1). Both are linear or constant in
             pieces, and the ends of the pieces are tried.
             Mean: (v - x_i)/n; adding (v - mean)/(n+1), removing (mean - x_i)/(n-1).
             Variance: with R the others, mean mu_R, it moves by
             (n-1)/n**2 ((v - mu_R)**2 - (x_i - mu_R)**2). Downwards v = mu_R is best, and
             x_i - mu_R = n/(n-1) (x_i - mean): an end of the data. Upwards v is a bound b, and the
             bracket is (b - x)(b - 2 n mean/(n-1) + x (n+1)/(n-1)), concave in x: one of the two
             records about its vertex
    Source   Nissim, Raskhodnikova, Smith 2007
    Differs  exact rationals; never publish it: it is itself a fact about the data
    Checked  tests/sensitivity/test_local.py

    >>> local_sensitivity("median", [1, 2, 3, 3, 9], lower=0, upper=10)
    Fraction(1, 1)
    """
    asked, rows, relation = question(statistic, data, lower, upper, neighbours)
    return local_at(asked, rows, relation)


def local_at(statistic: Statistic, rows: Records, relation: Relation) -> Fraction:
    """The local sensitivity, for parameters that were checked."""
    change = relation == "change-one"
    match statistic:
        case Count():
            return Fraction(0 if change else 1)
        case Sum():
            most = max(abs(rows.low), abs(rows.high))
            return (_farthest(rows) if change else most) * rows.step
        case Mean():
            return _farthest(rows) * rows.step / rows.count if change else _mean_moves(rows)
        case Variance():
            return _variance_moves(rows) * rows.step**2
        case Quantile() | TrimmedMean() if change:
            window, divisor = window_of(statistic, rows.count)
            return widest(rows.padded(), window, 0) * rows.step / divisor
        case InterquartileRange() if change:
            if rows.count == 1:
                return Fraction(0)
            return max(local_at(quartile, rows, relation) for quartile in quartiles())
        case Quantile():
            return _order_moves((statistic.level,), rows) * rows.step
        case InterquartileRange():
            return _order_moves(tuple(q.level for q in quartiles()), rows) * rows.step
        case TrimmedMean():
            raise AssertionError("refused by check_defined")
        case _:
            assert_never(statistic)


def window_of(statistic: Quantile | TrimmedMean, count: int) -> tuple[Window, int]:
    """The pairs of records between which a statistic can be moved, and what divides them."""
    if isinstance(statistic, Quantile):
        middle = rank(statistic.level, count)
        return Window(middle, middle), 1
    cut = trimmed(statistic.trim, count)
    return Window(cut + 1, count - cut), count - 2 * cut


def _farthest(rows: Records) -> int:
    return max(int(rows.steps[-1]) - rows.low, rows.high - int(rows.steps[0]))


def _mean_moves(rows: Records) -> Fraction:
    count, step = rows.count, rows.step
    if count == 0:
        return rows.width * step
    mean = value_of(Mean(), rows) / step
    added = max(rows.high - mean, mean - rows.low) / (count + 1)
    if count == 1:
        return max(added, mean - rows.low) * step
    ends = int(rows.steps[0]), int(rows.steps[-1])
    removed = max(abs(mean - end) for end in ends) / (count - 1)
    return max(added, removed) * step


def _variance_moves(rows: Records) -> Fraction:
    """In steps squared, about the lower bound."""
    count = rows.count
    if count == 1:
        return Fraction(0)
    mean = value_of(Mean(), rows) / rows.step
    ends = int(rows.steps[0]), int(rows.steps[-1])
    best = max((Fraction(count, count - 1) * (end - mean)) ** 2 for end in ends)
    for bound in (rows.low, rows.high):
        other_root = (2 * count * mean - (count - 1) * bound) / (count + 1)
        vertex = (bound + other_root) / 2
        at = int(np.searchsorted(rows.steps, int(vertex // 1), side="right"))
        for row in rows.steps[max(at - 1, 0) : at + 1]:
            rest = (count * mean - int(row)) / (count - 1)
            best = max(best, (bound - rest) ** 2 - (int(row) - rest) ** 2)
    return best * (count - 1) / count**2


def _order_moves(levels: tuple[Fraction, ...], rows: Records) -> int:
    """The last of some order statistics less the first (or, if it is one, itself): its moves."""
    padded, count = rows.padded(), rows.count

    def combined(values: list[int]) -> int:
        return values[-1] - (values[0] if len(values) > 1 else 0)

    before = combined([int(padded[rank(level, count)]) if count else rows.low for level in levels])
    places = [rank(level, count + 1) for level in levels]
    reached = [
        combined([min(max(int(v), int(padded[p - 1])), int(padded[p])) for p in places])
        for v in {rows.low, rows.high} | {int(padded[p - d]) for p in places for d in (0, 1)}
    ]
    if count == 1:
        reached.append(combined([rows.low for _ in levels]))
    elif count:
        places = [rank(level, count - 1) for level in levels]
        reached += [
            combined([int(padded[p if p < gone else p + 1]) for p in places])
            for gone in {1, *(p + 1 for p in places)}
        ]
    return max(abs(after - before) for after in reached)
