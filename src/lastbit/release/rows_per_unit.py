"""How many rows units have, from a noisy histogram: which share of rows a max_rows keeps.

Set-up. C_i units have a_i to b_i rows (bin i, public); c_i = C_i + X_i is released, rounded to a
whole number. With max_rows = M a unit with n rows counts for min(n, M). A limit B cuts off the bins
from B rows up: their units are counted apart, since one of them can have any number of rows.

Law      share(M, B) = sum of min(n, M) over sum of n, of the units with fewer than B rows
Theorem  one unit is in one bin. So it moves the histogram by 1 in one place (by 1 in two where it
         is changed), which is what the plan of the question says and the checker derives again.
         All that is here is a function of released counts: post-processing, and free
Theorem  (intervals) let g(n, s) = min(n, M) - s n. At the true share s the sum of g over all units
         below B is 0. Let s be in [u, v]. g falls in s, so with the greatest g of a bin at u, G_i,
         and the least at v, H_i: sum of C_i H_i <= 0 <= sum of C_i G_i. So in all but 2 beta of
         releases sum of c_i G_i >= -t(G) and sum of c_i H_i <= t(H), where t(w) is exceeded by
         the sum of w_i X_i with probability beta at most. Those of 256 cells [u, v] that pass hold
         s: which cell is tested with which weights depends on the cell alone. G_i and H_i are at
         the ends of a bin, as g is linear in n on either side of M, and no bin has M inside
         B may be chosen by looking at c, and M too: 2 beta is 1/40 over the number of all
         pairs (M, B), so that all intervals hold together in 39/40 of releases. The number of units
         from B up has the other 1/40, over the number of all B
         share(M, B) rises with M: for an M inside a bin the interval is that from the lower end of
         the M below to the upper end of the M above
Theorem  (reach) t(w) = S (ln(1/beta) - sum of ln(1 - (x w_i)**2))/x for any x below 1/max abs(w_i),
         for Laplace noise of scale S: Chernoff, by `tables/plan/tree.py`, Theorem 4. For Gaussian
         noise t(w) = sqrt(2 ln(1/beta) V sum of w_i**2), as E exp(y X) <= exp(y**2 V/2) (CKS20).
         Rounding adds 1/2 abs(w_i) each. Both are computed in doubles and stretched by 2**-20
Differs  the value shown is that of counts made not negative, with the middle of each bin. Which B
         is taken: the end of the last bin whose count is hardly noise alone (`least_clear`).
         Intervals hold whatever B is taken
Checked  tests/release/test_tuning.py
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from statistics import NormalDist
from typing import Any

from lastbit.release.answer import nearest_counts

_OCTAVES = 16
_HALF = 1 / 40
"""How often intervals of shares may fail, all together; numbers of units beyond, as often."""
_ALONE, _HARDLY, _FEW = 1 / 100, 1e-9, 400
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
_PAIRS = sum(limit > most for limit in EDGES[:-1] for most in CANDIDATES)


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


@dataclass(frozen=True)
class RowsPerUnit:
    """The released histogram of rows per unit, over the bins of `EDGES`."""

    counts: tuple[int, ...]
    noise: Noise

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> RowsPerUnit:
        """From the record of the answer to the question of `kept.py`."""
        return cls(tuple(counts_of(record)), noise_of(record["plan"]))

    @cached_property
    def bins(self) -> tuple[tuple[int, int], ...]:
        """The least and the most rows of each bin that is not cut off."""
        return tuple((a, b - 1) for a, b in pairwise(EDGES[: self._cut + 1]))

    @cached_property
    def _cut(self) -> int:
        """How many bins are kept: up to the last whose count is hardly noise alone."""
        least = self.noise.least_clear(self.counts)
        above = [place for place, count in enumerate(self.counts[:-1]) if count > least]
        largest = max(range(len(self.counts) - 1), key=lambda place: self.counts[place])
        return max(above, default=largest) + 1

    @property
    def limit(self) -> int:
        """B: units with as many rows or more are counted apart."""
        return EDGES[self._cut]

    @cached_property
    def beyond(self) -> int:
        """At most this number of units have `limit` rows or more."""
        rest = self.counts[self._cut :]
        reach = self.noise.reach([1.0] * len(rest), _HALF / len(self.counts))
        return max(math.floor(sum(rest) + reach), 0)

    @cached_property
    def _likely(self) -> tuple[int, ...]:
        return tuple(nearest_counts(list(self.counts[: self._cut]))[0])

    def rows(self, most: int | None = None) -> float:
        """About how many rows count with this max_rows, or are there, below the limit."""
        middles = ((a + b) / 2 for a, b in self.bins)
        kept = (n if most is None else min(n, most) for n in middles)
        return math.fsum(c * n for c, n in zip(self._likely, kept, strict=True))

    def share(self, most: int) -> Share:
        """Which share of the rows of units below the limit counts with this max_rows."""
        if most >= self.limit - 1:
            return Share(value=1.0, low=1.0, high=1.0)
        total = self.rows()
        value = self.rows(most) / total if total else 1.0
        below = max(m for m in CANDIDATES if m <= most or m == 1)
        above = min((m for m in CANDIDATES if m >= most), default=None)
        low = self._interval(below)[0]
        high = 1.0 if above is None else self._interval(above)[1]
        return Share(value=min(max(value, low), high), low=low, high=high)

    def _interval(self, most: int) -> tuple[float, float]:
        if most >= self.limit:
            return 1.0, 1.0
        beta = _HALF / (2 * _PAIRS)
        # below M, g = (1 - s) n rises with n; from M up, g = M - s n falls
        greatest = [(b, b) if b < most else (most, a) for a, b in self.bins]
        least = [(a, a) if b < most else (most, b) for a, b in self.bins]
        return share_interval(
            self.counts[: self._cut], self.noise, beta, greatest=greatest, least=least
        )
