"""How many rows units have, from a noisy histogram: which share of all rows a max_rows keeps.

Set-up. C_i units have a_i to b_i rows (bin i, public); c_i = C_i + X_i is released, rounded to a
whole number. With max_rows = M a unit with n rows counts for min(n, M). K(M) is the sum of that
over all units, L(M) the sum of max(n - M, 0): the rows that are lost. The same holds for groups per
unit and max_groups.

Law      share(M) = K(M)/(K(M) + L(M)), of all rows, those of heavy units included
Theorem  one unit is in one bin. So it moves the histogram by 1 in one place (by 1 in two where it
         is changed), which is what the plan of the question says and the checker derives again.
         All that is here is a function of released counts: post-processing, and free
Theorem  (intervals) let B be `farthest`, any function of c. In at most 1/40 of releases nobody has
         more than B rows and yet some share(M), M = 1, 2 ..., is below its `low`. So one release
         serves for every M, also one that is chosen by looking at c
Proof    Let bin j* hold the largest unit; B ends bin j. If j < j*, somebody has more than B rows.
         So let j >= j*. L(M) <= sum over i <= j* of C_i (b_i - M)+ = F_j*(M) + S_M, where F_k(M) is
         the sum over i <= k of c_i (b_i - M)+, and S_M that of -X_i (b_i - M)+ over i <= j*. For
         each end m of a bin, E at most, let t_k(m) be exceeded by the sum of X_i (b_i - m)+ over
         i <= k in 11/1000/E of releases at most. By the lemma, in 22/1000 some S_M is above
         t_j*(m), m being the last end up to M. Else L(M) <= F_j*(M) + t_j*(m) <= the greatest
         F_k(M) + t_k(m) of all k <= j, and `most_lost` is not below: how j was chosen does not
         matter. K(M)
         rises with M, and is at least the sum of C_i min(a_i, m) over the bins with a_i <= 4 m, for
         each edge m <= M; the noise of all these sums is within its reach (below) but in 3/1000.
         The share rises with K and falls with L
Lemma    for independent symmetric X_i and any t > 0, P[S_M >= t for some M >= m] <= 2 P[S_m >= t].
         Let m = 0, as b_i - m may take the place of b_i.
         S_M is continuous in M, 0 from the largest b on, with slope -T_M to the right, T_M being
         the sum of -X_i over b_i > M. Let M' be the largest M with S_M >= t. To its right S_M < t,
         so T_M' >= 0. Let k be the number of b_i <= M'. That it is k depends on the X_i beyond k
         alone, and S_0 = S_M' + M' T_M' + Y, where Y, the sum of -b_i X_i over i <= k, is symmetric
         and independent of these: so given k, S_0 >= t with probability 1/2 at least
Theorem  (tail) for Laplace noises of scales s_i that all differ, P[sum > t] is the sum of
         A_i exp(-t/s_i)/2, with A_i the product of 1/(1 - (s_j/s_i)**2) over j other than i:
         partial fractions of the product of 1/(1 + (s_i u)**2). Discrete noise X, on a grid of W to
         1, is at most 3/(2 W) above such an L: W abs(X) is abs(W L) rounded to the nearest, or 1
         less, by quantiles, as exp(-(k-1/2)/s)/cosh(1/(2s)) is P[W abs(X) >= k] and exp(-(k-1/2)/s)
         that of the other, and exp(1/s) >= cosh(1/(2s)). Rounding to counts adds 1/2 more
Theorem  (reach) t(w) = S (ln(1/beta) - sum of ln(1 - (x w_i)**2))/x for any x below 1/max abs(w_i),
         for Laplace noise of scale S: Chernoff, by `tables/plan/tree.py`, Theorem 4. For Gaussian
         noise t(w) = sqrt(2 ln(1/beta) V sum of w_i**2), as E exp(y X) <= exp(y**2 V/2) (CKS20).
         Rounding adds 1/2 abs(w_i) each. All are computed in doubles and stretched by 2**-20
Theorem  (middles) let the units of a bin have its middle number of rows m_i on average. For each
         edge e, in at most 1/40 of releases nobody has more than B rows and yet L(e) is above
         `even_lost`, or K(e) below `even_counted`, for some e
Proof    L(e) is the sum of C_i (m_i - e) over the bins from e on, and K(e) that of C_i min(m_i, e).
         As above with t_k(e) for the d bins from e to k at a chance of 22/1000 p(d), where p is
         1/10 for each d <= 6 and 2/5 for all others, equally, together: the bin of the largest
         unit is fixed, so each edge has its own d, and these chances add up to 22/1000 at most. p
         falls, so t_k rises with k. For K no bin is at its least number of rows, but at its middle.
         `loss` takes the better of the two, by looking at c: both hold but in 1/20 of releases
Differs  the value shown is that of counts made not negative, with the middle of each bin. B ends
         the last stretch of bins that is clear of noise, or, where that is farther out, is as far
         as t from there is at most a 400th of the rows. How many rows somebody beyond B has is what
         noisy counts cannot bound: that nobody is there is assumed, and said so, unless a steward
         declares `at_most`. Then the bins end there, and where B is that number nothing is assumed.
         As some few may be there all the same, `most_lost` has what they are likely to lose besides
         (`hidden`): no proof rests on it, and the truth is inside more often by it
Checked  tests/release/test_tuning.py, tests/release/test_whole.py
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from statistics import NormalDist
from typing import Any

from lastbit.release.answer import nearest_counts

_OCTAVES = 16
_PEAK = 3
"""Where a bin is so many times as dense as both of its neighbours, units are not at its middle."""
_NEXT, _NEXT_PART = 6, 1 / 10
_HALF = 1 / 40
"""How often the number of units beyond may be missed."""
_LOST, _COUNTED = 22 / 1000, 3 / 1000
"""How often the bound of L fails, and that of K."""
_ALONE, _HARDLY, _FEW = 1 / 100, 1e-9, 400
_AFFORDED, _NEAR = 1 / 400, 4
_CELLS = 256
_TRIED = (0.1, 0.25, 0.5, 0.75, 0.9)
_STRETCH = 1 + 2.0**-20


CANDIDATES: tuple[int, ...] = (
    *sorted({n for octave in range(_OCTAVES) for n in (1 << octave, (3 << octave) // 2)}),
    1 << _OCTAVES,
)
"""The max_rows that are compared: 1, 2, 3, 4, 6, 8, 12 ... 65,536."""
EDGES: tuple[int, ...] = (*CANDIDATES, 1 << 40)
"""Bins of rows per unit: 1, 2, 3, 4 to 5, 6 to 7, 8 to 11 ...; the last has all from 2**16 up.

Finer ones would each have the same noise: what is rare would be lost in it sooner.
"""
_WINDOWS = (1, 2, 4)
_CLEAR, _FARTHER, _SURE = 3.5, 0.45, 6.5
"""Stretches of bins are clear above so many deviations of their noise: 3.5 next to clear ones, more
for every bin between, as what noise lifts far out would double every bound; 6.5 everywhere.
"""
_ENDS = tuple(edge - 1 for edge in CANDIDATES[1:])
_THINS = 0.5
"""At most so many units are in an octave for one in the octave before, beyond what stands out.

At a half, each octave has as many rows as the one before.
"""
_STEEPER, _SEEN, _LEAST, _BELIEVED, _OPEN = 2.0, 0.5, 0.5, 5.0, 6.0
"""Deviations of the noise on an octave that are added to the last one that stands out, as tails are
seldom steeper than they look, and to those beyond; how much steeper a tail becomes in an octave at
most; above how many deviations an octave beyond, or the open bin, is no noise.

Tried on eleven tables, forty releases each: five real ones, power laws, lognormal and geometric.
At a scale of 10 more was lost than is said in 0 to 5 % of releases of eight of them, in 28 to 30 %
of two and in 72 % of a power law of exponent 1.5. `_LEAST` = 0 halves what is added of tables that
end abruptly, and `_LEAST` = 1 makes it four times as much, for misses of 0 to 10 %.
"""


@dataclass(frozen=True, slots=True)
class Noise:
    """The law of the noise on each count, in counts."""

    scale: float = 0.0
    """Of Laplace noise; else 0."""
    variance: float = 0.0
    """Of Gaussian noise; else 0."""
    rounding: float = 0.5

    def surpassed(self, chance: float) -> float:
        """About what one noise is above with this probability."""
        if self.scale:
            return -self.scale * math.log(2 * chance)
        return math.sqrt(self.variance) * NormalDist().inv_cdf(1 - chance)

    @property
    def spread(self) -> float:
        """The variance of one noise."""
        return 2 * self.scale**2 if self.scale else self.variance

    def least_clear(self, counts: Sequence[int]) -> float:
        """Above this a count is hardly noise alone.

        Some empty bin is above it in 1/100 of releases at most; in 1e-9, where that takes no more
        than one unit in 400.
        """
        each = 1 / len(counts)
        rare = min(self.surpassed(_HARDLY * each), sum(counts) / _FEW)
        return max(self.surpassed(_ALONE * each), rare)

    def reach(self, weights: Sequence[float], beta: float) -> float:
        """A number that the sum of weights times noises exceeds with probability beta at most."""
        largest = max(map(abs, weights), default=0.0)
        if not largest:
            return 0.0
        squares = [(weight / largest) ** 2 for weight in weights]
        rounded = self.rounding * sum(map(abs, weights))
        if not self.scale:
            spread = math.sqrt(-2 * math.log(beta) * self.variance * sum(squares))
            return (spread * largest + rounded) * _STRETCH
        # any x will do: the one that is best for small x, and some others
        best = math.sqrt(-math.log(beta) / sum(squares))
        far = min(
            (-math.log(beta) - sum(math.log1p(-x * x * square) for square in squares)) / x
            for x in (*_TRIED, min(best, 0.95))
        )
        return (self.scale * largest * far + rounded) * _STRETCH

    def exact_reach(self, weights: Sequence[float], beta: float) -> float:
        """The same for weights above 0 that all differ, by the exact tail of Laplace noise."""
        if not self.scale:
            return self.reach(weights, beta)
        scales = [weight * self.scale for weight in weights]
        parts = [
            (math.prod(1 / (1 - (other / one) ** 2) for other in scales if other != one), one)
            for one in scales
        ]
        low, high = 0.0, max(scales, default=0.0)
        while _tail(parts, high) > beta:
            low, high = high, 2 * high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if _tail(parts, middle) > beta else (low, middle)
        nearest = 2.0**-18 if self.rounding else 1.5
        return (high + (self.rounding + nearest) * sum(weights)) * _STRETCH


def _tail(parts: Sequence[tuple[float, float]], far: float) -> float:
    return math.fsum(factor * math.exp(-far / scale) for factor, scale in parts) / 2


def clear_end(counts: Sequence[int], last: int, noise: Noise, windows: Sequence[int]) -> int:
    """The end of the last stretch of bins that is clear of noise, `last` being that of one.

    Stretches are as wide as the windows are; of wider ones only those count that narrower ones do
    not explain.
    """
    for width in windows:
        spread = math.sqrt(width * noise.spread)
        clear = (
            first + (width + 1) // 2
            for first in range(last, len(counts) - width + 1)
            if sum(counts[first : first + width])
            > min(_CLEAR + _FARTHER * (first - last), _SURE) * spread
        )
        last = max(clear, default=last)
    return last


def noise_of(plan: Mapping[str, Any]) -> Noise:
    """The noise on the one histogram of a recorded plan."""
    (part,) = (part for part in plan["parts"] if part["part"] == "noise")
    one = int(plan["weight_one"])
    rounding = 0.5 if one > 1 else 0.0
    if part["mechanism"] == "laplace":
        return Noise(scale=_above(Fraction(part["scale"]) / one), rounding=rounding)
    return Noise(variance=_above(Fraction(part["variance"]) / one**2), rounding=rounding)


def _above(number: Fraction) -> float:
    return float(number) * _STRETCH


def counts_of(record: Mapping[str, Any]) -> list[int]:
    """The noisy counts of the one histogram of a recorded answer."""
    (row,) = record["rows"]
    return [int(cell["value"]) for cell in row["cells"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share with its interval."""

    value: float
    low: float
    high: float

    @property
    def at_least(self) -> str:
        """In words: about 83 %, at least 79 %."""
        return f"about {self.value * 100:.0f} %, at least {math.floor(self.low * 100)} %"

    def __str__(self) -> str:
        """In words: 83 % (79 to 87 %)."""
        low, high = math.floor(self.low * 100), math.ceil(self.high * 100)
        return f"{self.value:.0%} ({low} to {high} %)".replace("%", " %", 1)


def share_interval(
    counts: Sequence[int],
    noise: Noise,
    beta: float,
    *,
    greatest: Sequence[tuple[float, float]],
    least: Sequence[tuple[float, float]],
) -> tuple[float, float]:
    """The ends of the shares s that are left, where g is p - s q with (p, q) of each bin given."""
    passed = []
    for cell in range(_CELLS):
        high = [p - cell / _CELLS * q for p, q in greatest]
        under = -_dot(counts, high)
        if under > 0 and under > noise.reach(high, beta):
            continue
        low = [p - (cell + 1) / _CELLS * q for p, q in least]
        over = _dot(counts, low)
        if over <= 0 or over <= noise.reach(low, beta):
            passed.append(cell)
    if not passed:  # which happens in 2 beta of all releases at most
        return 0.0, 1.0
    return passed[0] / _CELLS, (passed[-1] + 1) / _CELLS


def _dot(counts: Sequence[int], weights: Sequence[float]) -> float:
    return math.fsum(count * weight for count, weight in zip(counts, weights, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What a limit leaves of the rows."""

    share: Share
    lost: float
    evenly: bool
    """Whether units are assumed to have the middle number of rows of their bin, on average."""


@lru_cache(maxsize=4096)
def _largest_noise(noise: Noise, weights: tuple[float, ...], beta: float) -> float:
    return noise.exact_reach([float(weight) for weight in weights], beta)


@dataclass(frozen=True)
class RowsPerUnit:
    """The released histogram of rows per unit, or of groups, over the bins of `EDGES`."""

    counts: tuple[int, ...]
    noise: Noise
    at_most: int | None = None
    """Nobody has more rows, as is publicly known."""

    @classmethod
    def of(cls, record: Mapping[str, Any], at_most: int | None = None) -> RowsPerUnit:
        """From the record of the answer to the question of `kept.py`."""
        return cls(tuple(counts_of(record)), noise_of(record["plan"])).capped(at_most)

    def capped(self, at_most: int | None) -> RowsPerUnit:
        """With what is publicly known, unless a bin beyond it stands out of the noise."""
        least = _SURE * math.sqrt(self.noise.spread)
        beyond = (c for a, c in zip(EDGES, self.counts, strict=False) if a > (at_most or a))
        return replace(self, at_most=None if any(c > least for c in beyond) else at_most)

    @cached_property
    def bins(self) -> tuple[tuple[int, int], ...]:
        """The least and the most rows of each bin up to the last that is clear of noise."""
        return tuple(self._every[: self._clear])

    @cached_property
    def _every(self) -> list[tuple[int, int]]:
        """All bins but the last, which is open; those up to what is known, where that is known."""
        every = [(a, b - 1) for a, b in pairwise(EDGES[:-1])]
        if self.at_most is None:
            return every
        return [(a, min(b, self.at_most)) for a, b in every if a <= self.at_most]

    @cached_property
    def _clear(self) -> int:
        """How many bins there are up to the last that is clear of noise."""
        counts = self.counts[: len(self._every)]
        last = max(range(len(counts)), key=lambda place: self.counts[place]) + 1
        return clear_end(counts, last, self.noise, _WINDOWS)

    @cached_property
    def _cut(self) -> int:
        """How many bins are judged: those up to the last clear one, or as many as noise allows."""
        clear = self._clear
        rows = _dot(self.counts[:clear], [float(b) for _, b in self._every[:clear]])
        last = self._every[clear - 1][1]
        cut = clear
        while cut < len(self._every) and self._reach(cut + 1, last) <= _AFFORDED * rows:
            cut += 1
        if self.at_most is None:
            return cut
        # nobody is beyond the last bin: where that is the nearer bound, nothing is estimated
        every, estimated = len(self._every), self._hidden(last, self._every[cut - 1][1])
        return every if self._reach(every, last) <= estimated + self._reach(cut, last) else cut

    @property
    def cells(self) -> list[tuple[float, float]]:
        """The middles of the bins that stand out, with their units."""
        pairs = zip(self.bins, self.counts, strict=False)
        return [((a + b) / 2, float(max(n, 0))) for (a, b), n in pairs]

    @property
    def total(self) -> float:
        """About how many rows there are."""
        return math.fsum(size * units for size, units in self.cells)

    @property
    def limit(self) -> int:
        """Units with as many rows or more are few: no bin of them is clear of noise."""
        return self.bins[-1][1] + 1

    @property
    def farthest(self) -> int:
        """B: that nobody has more rows is what the bounds rest on."""
        return self._every[self._cut - 1][1]

    @property
    def assumed(self) -> bool:
        """Whether that is assumed, and not publicly known."""
        return self.at_most is None or self.farthest < self.at_most

    @cached_property
    def beyond(self) -> int:
        """At most this number of units have more rows than `farthest`."""
        rest = self.counts[self._cut :]
        reach = self.noise.reach([1.0] * len(rest), _HALF / len(self.counts))
        return max(math.floor(sum(rest) + reach), 0) if self.assumed else 0

    def _reach(self, cut: int, most: int) -> float:
        """What no S_M exceeds but in `_LOST` of releases, of the bins below the cut."""
        end = _ENDS[bisect_right(_ENDS, most) - 1]
        weights = tuple(b - end for _, b in self._every[:cut] if b > end)
        return _largest_noise(self.noise, weights, _LOST / 2 / len(CANDIDATES))

    def most_lost(self, most: int) -> float:
        """The most rows that this max_rows loses, if nobody has more than `farthest`; or more."""
        lost = greatest = 0.0
        for count, (_, b) in zip(self.counts, self._every[: self._cut], strict=False):
            lost += count * max(b - most, 0)
            greatest = max(greatest, lost)
        # t_k rises with k: of sums of symmetric unimodal noises (Anderson 1955)
        return greatest + self._reach(self._cut, most)

    def hidden(self, most: int) -> float:
        """About how many rows are lost of units beyond `farthest`, whom noise may hide."""
        return self._hidden(most, self.farthest) if self.assumed else 0.0

    def _hidden(self, most: int, farthest: int) -> float:
        """From octave to octave beyond the clear bins units thin out as they did before.

        They do so faster where fewer are counted; an octave that is clear of noise by itself is
        believed. Within an octave they thin out too.
        """
        start, spread = self._every[self._clear - 1][1] + 1, math.sqrt(2 * self.noise.spread)
        units = float(max(self._units(start / 2, start), 1))
        before = max(self._units(start / 4, start / 2), 1)
        rate, lost = min(_THINS, (units + _STEEPER * spread) / before), 0.0
        while start < CANDIDATES[-1]:
            counted = self._units(start, 2 * start)
            seen = max(counted, 0) + _SEEN * spread
            rate, units = max(min(rate, seen / units), _LEAST * rate), min(units * rate, seen)
            units = max(units, counted if counted > _BELIEVED * spread else 0)
            bins = [(a, b) for a, b in self._every if start <= a < 2 * start]
            parts = [rate ** (n / 2) for n in range(len(bins))]
            for part, (a, b) in zip(parts, bins, strict=True):
                if a > farthest:
                    lost += units * part / sum(parts) * max((a + b) / 2 - most, 0)
            start *= 2
        return lost

    @property
    def is_open(self) -> bool:
        """Whether units are likely to have more rows than any bin that ends."""
        return self.counts[-1] > _OPEN * math.sqrt(self.noise.spread)

    def _units(self, start: float, end: float) -> int:
        """How many units were counted in the bins that begin there."""
        pairs = zip(self.counts, self._every, strict=False)
        return sum(count for count, (a, _) in pairs if start <= a < end)

    def least_counted(self, most: int) -> float:
        """The fewest rows that count with this max_rows."""
        return max(0.0, *(self._least_counted(edge) for edge in CANDIDATES if edge <= most))

    def _least_counted(self, most: int) -> float:
        weights = [float(min(a, most)) for a, _ in self._every if a <= _NEAR * most]
        reach = self.noise.reach(weights, _COUNTED / len(CANDIDATES))
        return _dot(self.counts[: len(weights)], weights) - reach

    @cached_property
    def _likely(self) -> tuple[int, ...]:
        return tuple(nearest_counts(list(self.counts[: self._clear]))[0])

    def rows(self, most: int | None = None) -> float:
        """About how many rows count with this max_rows, or are there, below the limit."""
        middles = ((a + b) / 2 for a, b in self.bins)
        kept = (n if most is None else min(n, most) for n in middles)
        return math.fsum(c * n for c, n in zip(self._likely, kept, strict=True))

    def share(self, most: int) -> Share:
        """Which share of all rows counts with this max_rows, if nobody is beyond `farthest`."""
        return self._share(most, self.least_counted(most), self.most_lost(most))

    def loss(self, most: int) -> Loss:
        """What this max_rows loses: by the middles of bins where that is known, and says more."""
        loss = Loss(share=self.share(most), lost=self.most_lost(most), evenly=False)
        if self._has_peak or not (most in CANDIDATES or most >= self.farthest):
            return loss
        lost = self.even_lost(most)
        share = self._share(most, self.even_counted(most), lost)
        even = Loss(share=share, lost=lost, evenly=True)
        return even if even.share.low > loss.share.low else loss

    @cached_property
    def _has_peak(self) -> bool:
        """Whether in some bin of several sizes many units seem to have the same."""
        dense = [max(n, 0) / (b - a + 1) for n, (a, b) in zip(self.counts, self.bins, strict=False)]
        least = _SURE * math.sqrt(self.noise.spread)
        pairs = zip(dense, [0.0, *dense[:-1]], [*dense[1:], 0.0], strict=True)
        return any(
            own > _PEAK * max(before, after) and a < b and count > least
            for (own, before, after), (a, b), count in zip(
                pairs, self.bins, self.counts, strict=False
            )
        )

    def even_lost(self, most: int) -> float:
        """The most rows that this edge loses, if units have the middles of bins on average."""
        pairs = zip(self.counts, self._every[: self._cut], strict=False)
        beyond = [(n, (a + b) / 2 - most) for n, (a, b) in pairs if a >= most and b > most]
        if not beyond:
            return 0.0
        sums = accumulate(count * weight for count, weight in beyond)
        weights = tuple(weight for _, weight in beyond)
        others = (1 - _NEXT * _NEXT_PART) / (len(CANDIDATES) - _NEXT)
        part = _NEXT_PART if len(weights) <= _NEXT else others
        return max(0.0, *sums) + _largest_noise(self.noise, weights, _LOST * part)

    def even_counted(self, most: int) -> float:
        """The fewest rows that count with this max_rows, if the same is so."""
        return max(0.0, *(self._even_counted(edge) for edge in CANDIDATES if edge <= most))

    def _even_counted(self, edge: int) -> float:
        weights = [min((a + b) / 2, edge) for a, b in self._every if a <= _NEAR * edge]
        reach = self.noise.reach(weights, _COUNTED / len(CANDIDATES))
        return _dot(self.counts[: len(weights)], weights) - reach

    def _share(self, most: int, counted: float, lost: float) -> Share:
        low = counted / (counted + lost) if counted else float(not lost)
        likely, total = self.rows(most), self.rows()
        low *= likely / (likely + self.hidden(most)) if likely else 0.0
        value = likely / total if total else 1.0
        return Share(value=max(value, low), low=low, high=1.0)
