"""How far a statistic moves: between any neighbours, from the data at hand, from data near by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any, Literal, assert_never

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, nonnegative, positive, whole
from lastbit.laws import least
from lastbit.privacy import AS_DECLARED, CHANGE_ONE, Neighbours, Relation, check_neighbours
from lastbit.sensitivity.functions import Function, is_function, landscape, local_of
from lastbit.sensitivity.statistics import (
    Count,
    InterquartileRange,
    Mean,
    Quantile,
    Statistic,
    Sum,
    TrimmedMean,
    Variance,
    check_defined,
    declared_bounds,
    exact_total,
    quartiles,
    question,
    rank,
    ranks,
    relation_of,
    statistic_of,
    trimmed,
    value_of,
)
from lastbit.sensitivity.values import Records, bounds_of, records, secret_number
from lastbit.sensitivity.windows import Window, widest

# Up to this distance the sensitivity of a quantile under add-remove is exact: more takes long.
EXACT_STEPS = 1024


def global_sensitivity(
    statistic: Statistic | str | Literal["histogram"] | Function,
    *,
    neighbours: Neighbours,
    lower: Number | None = None,
    upper: Number | None = None,
    count: int | None = None,
    domain: Iterable[Any] | None = None,
    most_records: int | None = None,
) -> Fraction:
    """The most by which one record can move a statistic, whatever the other records are.

    Law      max abs(f(x) - f(y)) over all neighbours x, y with records in [lower, upper]. `count`
             is the public number of records under change-one; without it the worst one is taken.
             A function of your own is tried on every database of a `domain`, of `count` records,
             under add-remove of at most `most_records` (`Landscape`)
    Theorem  W = upper - lower, n = count, per statistic:
             count: 1 add-remove, 0 change-one. Histogram, in the L1 norm: 1 add-remove, 2
             change-one, since a changed record leaves one cell and enters another.
             sum: max(abs(lower), abs(upper)) add-remove, W change-one.
             mean: the sum moves by at most W, so W/n change-one. Add-remove: the empty database,
             whose mean is `lower`, is a neighbour of one record: W.
             variance, change-one: let R be the n-1 records that stay, x the one that moves. The sum
             of squares about the mean is that of R plus (n-1)/n (x - mean R)**2, so the variance
             moves by at most (n-1)/n**2 W**2, reached where R lies at one end. Without n: n = 2.
             quantile, interquartile range: W, reached where all others are at the two ends.
             trimmed mean with t records cut at each end, change-one: the n-2t order statistics
             that stay all move the same way, each at most to its next neighbour, so their sum moves
             by at most W: W/(n-2t)
    Source   Dwork, McSherry, Nissim, Smith 2006; Nissim, Raskhodnikova, Smith 2007
    Differs  the relation decides, and is never guessed; no bounds, no sensitivity
    Checked  tests/sensitivity/test_worst_case.py

    >>> from lastbit.privacy import ADD_REMOVE, CHANGE_ONE
    >>> global_sensitivity("mean", neighbours=CHANGE_ONE, lower=0, upper=10, count=100)
    Fraction(1, 10)
    >>> global_sensitivity(max, neighbours=CHANGE_ONE, domain=[0, 3, 10], count=4)
    Fraction(10, 1)
    >>> global_sensitivity("median", neighbours=ADD_REMOVE)
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: statistic is not bounded: one record can move it by any ...
    """
    if is_function(statistic, bounds=(lower, upper), domain=domain):
        return landscape(
            statistic,
            domain=domain,
            neighbours=neighbours,
            count=count,
            most_records=most_records,
        ).greatest
    relation = relation_of(neighbours)
    size = None if count is None else whole(count, "count", least=1)
    if size is not None and relation == "add-remove":
        raise InvalidParameter(
            "count",
            problem="is not public where records are added and removed",
            remedy="leave it out, or pass neighbours=CHANGE_ONE",
        )
    if isinstance(statistic, str) and statistic == "histogram":
        return Fraction(1 if relation == "add-remove" else 2)
    asked = statistic_of(statistic)
    check_defined(asked, relation)
    if isinstance(asked, Count):
        return Fraction(1 if relation == "add-remove" else 0)
    return greatest(asked, relation, *bounds_of(*declared_bounds(lower, upper)), size)


def greatest(
    statistic: Statistic, relation: Relation, lower: Fraction, upper: Fraction, count: int | None
) -> Fraction:
    """The global sensitivity, for parameters that were checked."""
    width = upper - lower
    match statistic:
        case Count():
            return Fraction(1 if relation == "add-remove" else 0)
        case Sum():
            return max(abs(lower), abs(upper)) if relation == "add-remove" else width
        case Mean():
            return width if relation == "add-remove" else width / (count or 1)
        case Variance():
            size = count or 2
            return width * width * (size - 1) / size**2
        case Quantile():
            return width
        case InterquartileRange():
            return Fraction(0) if count == 1 and relation == "change-one" else width
        case TrimmedMean():
            size = count or 1
            return width / (size - 2 * trimmed(statistic.trim, size))
        case _:
            assert_never(statistic)


def local_sensitivity(
    statistic: Statistic | str | Function,
    data: Any,
    *,
    lower: Number | None = None,
    upper: Number | None = None,
    neighbours: Neighbours = CHANGE_ONE,
    domain: Iterable[Any] | None = None,
) -> Fraction:
    """The most by which one record can move the statistic of these very data.

    Law      max abs(f(x) - f(y)) over the neighbours y of x, x on its grid (`records`); for the
             variance the record that moves may take any real value between the bounds. For a
             function of your own the records are those of a `domain`
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
    >>> local_sensitivity(max, [0, 3, 3], domain=[0, 3, 10])
    Fraction(7, 1)
    """
    if is_function(statistic, bounds=(lower, upper), domain=domain):
        return local_of(statistic, data, domain=domain, neighbours=neighbours)
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
        case Quantile() | TrimmedMean() | InterquartileRange() if change:
            return near(statistic, rows, 0, relation)
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


def sensitivity_at(
    statistic: Statistic | str,
    data: object,
    *,
    distance: int,
    lower: Number,
    upper: Number,
    neighbours: Neighbours = CHANGE_ONE,
) -> Fraction:
    """A bound U_k on the local sensitivity of all databases at most k steps away.

    Law      (A) U_k(x) >= LS(y) for every y within k steps of x, in particular U_0 >= LS;
             (B) U_k(x) <= U_(k+1)(x') for neighbours x, x'; and U_k <= U_(k+1)
    Theorem  W = hi - lo, n records, U_k per statistic:
             Count, and sum under add-remove: U_k is the global sensitivity, which LS always is.
             Sum and mean, change-one: U_0 = LS; for k >= 1 W, W/n: one change brings a record to a
             bound, from where LS is that. (A) is exact, (B) follows from LS <= the constant.
             Mean, add-remove: LS(y) <= W/max(abs(y), 1), where abs(y) is the number of records (the
             mean of none is lo), so U_k = W/max(n-k, 1); the neighbour has at most n+1 records,
             (n+1)-(k+1) = n-k, which is (B).
             Variance, change-one: U_k is the greatest LS within k steps itself (`variance_reach`),
             so (A) is exact, and (B) holds: what lies within k steps of x lies within k + 1 of x'.
             Rank m, change-one: U_k = max x_j - x_i over i <= m <= j, j - i = k + 1, so U_0 = LS.
             (B): if a record rose on the way from x to x', then x_j <= x'_j and x'_(i-1) <= x_i, so
             the pair (i-1, j) of x' is as wide; if one fell, (i, j+1) is. (A): (B) along the way.
             Trimmed mean, change-one, t cut at each end, g = n - 2t: the same with i <= t+1,
             j >= n-t, j - i = g + k, divided by g.
             Quantile, add-remove: for k <= EXACT_STEPS U_k is the greatest LS within k steps
             itself (`quantile_reach`). Beyond that it is V_k, the diameter of the set of values
             reachable in k + 1 steps (`reachable`): LS(y) is a difference of two of them, (A); what
             x reaches in r steps x' reaches in r + 1, (B); and where the two meet U_k(x) <=
             U_(k+1)(x') holds for the exact one, which is at most V_(k+1)(x').
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
        case Sum() | Mean() | Variance() if change and far == 0:
            return local_at(statistic, rows, relation)
        case Sum():
            return rows.width * step if change else local_at(statistic, rows, relation)
        case Mean():
            return rows.width * step / (count if change else max(count - far, 1))
        case Variance():
            if count == 1:
                return Fraction(0)
            return Fraction(_variance_reach_at(rows, far), (count - 1) * count**2) * step**2
        case Quantile() | TrimmedMean() if change:
            window, divisor = window_of(statistic, count)
            return widest(rows.padded(), window, far) * step / divisor
        case InterquartileRange():
            if change and count == 1:
                return Fraction(0)
            return max(near(quartile, rows, far, relation) for quartile in quartiles())
        case Quantile() if far <= EXACT_STEPS:
            return int(quantile_reach(statistic.level, rows, far)[-1]) * step
        case Quantile():
            return int(reachable(statistic.level, rows, np.array([far + 1]))[0]) * step
        case TrimmedMean():
            raise AssertionError("refused by check_defined")
        case _:
            assert_never(statistic)


def variance_reach(rows: Records, last: int) -> NDArray[np.float64]:
    """The greatest LS of a variance within k = 1 to last <= n changes, over (n-1)/n**2 W**2.

    Law      within 2**-46 of the true numbers
    Theorem  LS(y) is (n-1)/n**2 times the greatest (v - mu)**2 - (a - mu)**2, mu the mean of the
             n-1 records that stay, where y has a and its neighbour v, or the reverse. By symmetry
             let v >= mu, so mu should be small: records that change, other than a and v, become
             lo, the greatest first. Let z = x - lo, W = hi - lo, T_k the sum of the n-k least z.
             (1) a or v is among the k that change: then v = hi, a = mu, and the greatest record
             gives way, n-1-(k-1) of the others stay: (W - T_k/(n-1))**2.
             (2) y has v, which is not changed: then a = mu, v the greatest record, n-1-k others
             stay: (z_n - T_(k+1)/(n-1))**2.
             (3) y has a = x_i, which is not changed: then v = hi, and the value is (W - z_i)
             (W + z_i - 2 (T_k - z_i)/(n-1)) if x_i is one of the n-k least, concave in z_i with
             the vertex (W + T_k)/(n+1): one of the two records about it. For one of the k
             greatest T_(k+1) takes the place of T_k - z_i, and the value falls as z_i >= mu grows:
             the least of the k + 1 greatest is best, one of the n-k least.
             Within n changes (1) is W**2; (2) and (3) need k < n.
             Each is a sum of a few products of numbers up to 1, rounded once each
    Checked  tests/sensitivity/test_near.py
    """
    width = rows.width
    if not width:
        return np.zeros(last)
    z = rows.steps - rows.low
    return np.maximum(
        _variance_side(z, width, last), _variance_side((width - z)[::-1], width, last)
    )


def _variance_side(z: NDArray[np.int64], width: int, last: int) -> NDArray[np.float64]:
    """The same for mu that are small; z rising, from 0 to the width."""
    count = len(z)
    total = exact_total(z, 0)
    gone = accumulate(z[::-1][: last + 1].tolist(), initial=0)
    sums = np.array([(total - part) / width for part in gone])  # T_0, T_1, ... in widths
    kept = sums[1 : last + 1]
    found = (1 - kept / (count - 1)) ** 2
    inside = np.arange(1, min(last, count - 1) + 1)
    if inside.size:
        rest, after = kept[: len(inside)], sums[2 : len(inside) + 2]
        below = np.searchsorted(z, np.floor((1 + rest) / (count + 1) * width), side="right")
        for at in (below - 1, below):
            a = z[np.clip(at, 0, count - 1 - inside)] / width
            value = (1 - a) * (1 + a - 2 * (rest - a) / (count - 1))
            found[: len(inside)] = np.maximum(found[: len(inside)], value)
        greatest = (z[-1] / width - after / (count - 1)) ** 2
        found[: len(inside)] = np.maximum(found[: len(inside)], greatest)
    return found


def _variance_reach_at(rows: Records, distance: int) -> int:
    """The same for one distance from 1 to n, exactly: times (n-1)**2, in steps squared."""
    z = rows.steps - rows.low
    return max(
        _variance_side_at(z, rows.width, distance),
        _variance_side_at((rows.width - z)[::-1], rows.width, distance),
    )


def _variance_side_at(z: NDArray[np.int64], width: int, distance: int) -> int:
    count = len(z)
    others, kept = count - 1, exact_total(z[: count - distance], 0)
    best = (others * width - kept) ** 2
    if distance < count:
        best = max(best, (others * int(z[-1]) - kept + int(z[count - distance - 1])) ** 2)
        below = int(np.searchsorted(z, (width + kept) // (count + 1), side="right"))
        for at in (below - 1, below):
            a = int(z[min(max(at, 0), count - distance - 1)])
            best = max(best, others * (width - a) * (others * (width + a) - 2 * (kept - a)))
    return best


def quantile_reach(level: Fraction, rows: Records, last: int) -> NDArray[np.int64]:
    """The greatest LS of a quantile, add-remove, within k = 0, ..., last steps; in steps.

    Theorem  let y have N records, y_0 = lo and y_(N+1) = hi. With a record more its rank is
             c = m(N+1), and its value moves between y_c and y_(c-1), whichever of the two it is;
             with a record less, between the ranks c - 1 and c = m(N-1) + 1, m(0) being 0 (the
             value of none is lo). Both are reached. Now p records of x are removed and q added,
             N = n - p + q: y_c - y_(c-1) is at most x_j - x_i, j = i + p + 1, all p between them,
             where as many of the q are below as makes i the rank c - 1: c-1-q <= i <= c-1, and
             0 <= i <= n - p. As q grows by one both c grow by 0 or 1, so these ranges only grow,
             and the one of q = k - p is all there is for p. The two c differ by at most 1: their
             ranges are one
    Checked  tests/sensitivity/test_near.py
    """
    padded, count = rows.padded(), rows.count
    found = np.zeros(last + 1, np.int64)
    for removed in range(min(last, count) + 1):
        added = np.arange(last - removed + 1)
        sizes = count - removed + added
        more = ranks(level, sizes + 1)
        less = np.where(sizes > 1, ranks(level, np.maximum(sizes - 1, 1)), 0) + 1
        less = np.where(sizes > 0, less, more)
        first = np.maximum(np.minimum(more, less) - 1 - added, 0)
        final = np.minimum(np.maximum(more, less) - 1, count - removed)
        start, stop, middle = int(first[-1]), int(final[-1]), int(first[0])
        gaps = padded[start + removed + 1 : stop + removed + 2] - padded[start : stop + 1]
        at = middle - start
        down = np.maximum.accumulate(gaps[: at + 1][::-1])[middle - first]
        up = np.maximum.accumulate(gaps[at:])[final - middle]
        found[removed:] = np.maximum(found[removed:], np.maximum(down, up))
    return found


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


def distance_beyond(
    statistic: Statistic | str,
    data: object,
    *,
    bound: Number,
    lower: Number,
    upper: Number,
    neighbours: Neighbours = CHANGE_ONE,
) -> int:
    """The least k with U_k > bound; if there is none, one more than there are records.

    Theorem  it is 0 where LS > bound, as U_0 >= LS, and moves by at most 1 between neighbours: if
             U_k(x') > bound then U_(k+1)(x) >= U_k(x') > bound by (B). The number of records moves
             by at most 1 too, and the lesser of two such distances as well. U_k is constant from
             k = n on, and U_k <= U_(k+1), so it is found by bisection
    Source   Dwork, Lei 2009 (propose, test, release)
    Checked  tests/sensitivity/test_beyond.py

    >>> distance_beyond("median", [1, 2, 3, 3, 9], bound=2, lower=0, upper=10)
    1
    """
    limit = nonnegative(bound, "bound")
    asked, rows, relation = question(statistic, data, lower, upper, neighbours)
    return least(lambda k: near(asked, rows, k, relation) > limit, (0, rows.count + 1))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Proposal:
    """What propose-test-release needs to know of the data; all of it is as secret as they are.

    `distances[j]` must be 0 wherever the local sensitivity exceeds bound j, and move by at most 1
    between neighbours: for `propose` that is proved, for your own numbers it is your promise.

    >>> Proposal(41, [12])
    Proposal(...)
    """

    value: Fraction
    distances: tuple[int, ...]
    bounds: tuple[Fraction, ...] | None
    neighbours: Neighbours

    def __init__(
        self,
        value: Number,
        distances: Sequence[int],
        *,
        bounds: Sequence[Number] | None = None,
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        if not isinstance(distances, Sequence) or isinstance(distances, str):
            raise WrongType(
                "distances", problem="is not a list", remedy="pass one distance a bound"
            )
        object.__setattr__(self, "value", secret_number(value, "value"))
        object.__setattr__(self, "distances", tuple(whole(d, "distances") for d in distances))
        exact = None if bounds is None else several_bounds(bounds)
        object.__setattr__(self, "bounds", exact)
        object.__setattr__(self, "neighbours", check_neighbours(neighbours))

    def __repr__(self) -> str:
        return "Proposal(...)"


def propose(
    statistic: str | Statistic,
    data: Any,
    *,
    bounds: Sequence[Number],
    lower: Number,
    upper: Number,
    neighbours: Neighbours = CHANGE_ONE,
) -> Proposal:
    """The value of a statistic, and its distance from every bound on the local sensitivity.

    Theorem  each distance is 0 where the local sensitivity exceeds its bound, and moves by at most
             1 between neighbours: see `distance_beyond`
    Checked  tests/sensitivity/test_proposal.py

    >>> propose("median", [1, 2, 3, 4, 5], bounds=[2], lower=0, upper=10).distances
    (2,)
    """
    chosen, proposed = statistic_of(statistic), several_bounds(bounds)
    clean = records(data, lower, upper)
    far = [
        distance_beyond(chosen, clean, bound=bound, lower=lower, upper=upper, neighbours=neighbours)
        for bound in proposed
    ]
    return Proposal(value_of(chosen, clean), far, bounds=proposed, neighbours=neighbours)


def several_bounds(bounds: object) -> tuple[Fraction, ...]:
    """Proposed bounds, each above 0."""
    if isinstance(bounds, str) or not isinstance(bounds, Sequence) or not bounds:
        raise WrongType("bounds", problem="is not a list of numbers", remedy="pass, say, [1, 2, 4]")
    return tuple(positive(bound, "bounds") for bound in bounds)
