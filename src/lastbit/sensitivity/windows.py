"""The widest windows of sorted records, plain and discounted."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from lastbit.exact import exp_negative

KAPPA = Fraction(1, 1 << 34)
FLOOR = Fraction(1, 1 << 340)
_FAR = 240.0  # exp(-240) < FLOOR, and 2 * (240 + 2 * 8) = 512 is what exp_negative can do
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Window:
    """Which pairs i <= last_start, j >= first_end count; the corner itself, where both are equal
    to these limits, does not. The pair that is s + t steps off the corner counts at the distance
    s + t - 1.
    """

    last_start: int
    first_end: int


def widest(padded: NDArray[np.int64], window: Window, distance: int) -> int:
    """The greatest x_j - x_i over the pairs at one distance; x_i is lo for i < 1, hi for i > n."""
    starts, ends = _sides(padded, window)
    off = distance + 1
    first, last = max(0, off - (len(ends) - 1)), min(off, len(starts) - 1)
    if first > last:  # beyond the padding on both sides
        return int(padded[-1] - padded[0])
    chosen = np.arange(first, last + 1)
    return int((ends[off - chosen] - starts[chosen]).max())


def widest_discounted(padded: NDArray[np.int64], window: Window, rate: float) -> float:
    """The greatest (x_j - x_i) exp(-rate k), k the distance of a pair, up to rounding, a floor.

    Law      the result B is one of the products, as computed, or 0. With W = x_(n+1) - x_0 and M
             the true maximum: B <= (1 + 2**-42) M, and M <= max((1 + 2**-35) B, FLOOR W)
    Theorem  Write F(s, t) = (e_t - b_s) w_(s+t-1), b_s = x_(a-s) falling in s, e_t = x_(b+t) rising
             in t. Differences are below 2**53, exact. A weight is within 2**-43 of its own size
             (`discounts`), the product within 2**-53: a computed F is within 2**-42 of F.
             Monotone: for s < s', t < t' the weights of (s,t), (s',t') and of (s,t'), (s',t) have
             the same product, and (e_t' - b_s') (e_t - b_s) <= (e_t - b_s') (e_t' - b_s) since the
             right side less the left one is (b_s - b_s') (e_t' - e_t) >= 0. So
             F(s',t') F(s,t) <= F(s',t) F(s,t').
             Divide and conquer: in a middle row s pick t* with the greatest computed F, so that
             F(s,t) <= F(s,t*)/(1-h) for all t, h = 2**-41. Rows s' > s need no t' > t*: by the
             inequality F(s',t') <= F(s',t*) F(s,t')/F(s,t*) <= F(s',t*)/(1-h). Rows s' < s need no
             t < t*, likewise. If F(s,t*) = 0 then e_t = b_s for all t of the range: for s' > s, t'
             gains nothing on t* and weighs less; for s' < s, t < t*, F(s',t) <= 0. So each level
             costs at most one factor 1-h, and with at most 60 levels
             B >= (1-h)**60 (1 - 2**-42) M > M/(1 + 2**-35), where 60 h + 2**-42 < 2**-35 - 2**-70.
             Pruning: pairs at distances from k on are left out once W w_k is below a product found
             already (then they are below B) or exp(-rate k) < FLOOR (then below FLOOR W)
    Source   Nissim, Raskhodnikova, Smith 2007 for the median; Bun, Steinke 2019, trimmed mean
    Differs  all rows of a level at once; the effect of rounding is counted
    Checked  tests/sensitivity/test_windows.py
    """
    starts, ends = _sides(padded, window)
    steps = len(starts) + len(ends) - 2
    weights = discounts(rate, steps)
    row = _products(ends[1:], starts[0], weights)
    column = _products(ends[0], starts[1:], weights)
    best = max(float(row.max(initial=0.0)), float(column.max(initial=0.0)))
    width = float(padded[-1] - padded[0])
    hopeless = np.flatnonzero(width * weights * (1 + 2.0**-40) < best)
    most = min(reach(rate), int(hopeless[0]) if hopeless.size else steps)
    return max(best, _below_diagonal(starts[: most + 1], ends[: most + 1], weights))


def discounts(rate: float, count: int) -> NDArray[np.float64]:
    """exp(-rate k) for k = 0, 1, ..., as many as asked for, but none beyond twice the reach.

    Theorem  rate k is rounded once, so off by at most 512 * 2**-53 = 2**-44; `exp_negative` adds
             2**-50 of the result: each weight is within 2**-43 of its own size
    """
    indices = np.arange(min(count, 2 * (reach(rate) + 1) - 1), dtype=np.float64)
    return exp_negative(indices * rate)


def reach(rate: float) -> int:
    """A distance at which exp(-rate k) is below FLOOR."""
    return ceil(_FAR / rate)


def _sides(
    padded: NDArray[np.int64], window: Window
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The records from the corner down to the lower bound, and up to the upper one."""
    return padded[window.last_start :: -1], padded[window.first_end :]


def _products(
    ends: NDArray[np.int64] | np.int64,
    starts: NDArray[np.int64] | np.int64,
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """One edge of the rectangle: the distances are 0, 1, 2, ..."""
    differences = np.asarray(ends - starts)[: len(weights)]
    return np.asarray(differences * weights[: len(differences)])


def _below_diagonal(
    starts: NDArray[np.int64], ends: NDArray[np.int64], weights: NDArray[np.float64]
) -> float:
    """The maximum over s >= 1, t >= 0, by divide and conquer over the rows s, level by level."""
    rows = len(starts) - 1
    chosen = np.zeros(2 * rows + 2, np.int64)  # the best t of a row; 0 beyond the last row
    chosen[0] = len(ends) - 1
    best = 0.0
    stride = 1 << max(rows.bit_length() - 1, 0)
    while stride:
        level = np.arange(stride, rows + 1, 2 * stride)
        least, greatest = chosen[level + stride], chosen[level - stride]
        last = np.cumsum(greatest - least + 1)
        at = 0
        while at < len(level):  # blocks that stay in the caches
            done = int(last[at - 1]) if at else 0
            stop = max(at + 1, int(np.searchsorted(last, done + _BLOCK)))
            part = slice(at, stop)
            peaks, chosen[level[part]] = _best_of_rows(
                level[part], least[part], greatest[part], starts, ends, weights
            )
            best = max(best, float(peaks.max()))
            at = stop
        stride //= 2
    return best


def _best_of_rows(
    rows: NDArray[np.int64],
    least: NDArray[np.int64],
    greatest: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each row the greatest product with t in its range, and one t that reaches it."""
    lengths = greatest - least + 1
    first = np.cumsum(lengths) - lengths
    offsets = np.repeat(least - first, lengths)
    columns = offsets + np.arange(len(offsets))
    products = ends[columns] - np.repeat(starts[rows], lengths)
    weighed = products * weights[columns + np.repeat(rows - 1, lengths)]
    peaks = np.maximum.reduceat(weighed, first)
    hits = np.flatnonzero(weighed == np.repeat(peaks, lengths))
    owners = np.searchsorted(first, hits, side="right") - 1
    best = np.empty_like(rows)
    best[owners] = columns[hits]  # whichever of several stays, it is one
    return peaks, best
