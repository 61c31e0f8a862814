"""A law that is constant on runs of integers and exponential from run to run.

A law whose values are moved into an interval.

A law moved to another place, and a law on a grid of rationals.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from fractions import Fraction

from flint import arb

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Ball, arb_of, rational, whole
from lastbit.laws.law import Law

_FARTHEST = 1 << (1 << 17)


@dataclass(frozen=True, slots=True)
class Clamped(Law):
    """The law of min(max(X, low), high).

    Law      P[low] = P[X <= low], P[high] = 1 - P[X <= high - 1], between them as before; where
             low = high that value is certain
    Theorem  for low <= k < high the moved value is at most k if and only if X is
    Checked  tests/laws/test_clamped.py

    >>> from lastbit.laws import DiscreteLaplace
    >>> Clamped(DiscreteLaplace(1), -1, 1).quantile("0.99")
    1
    """

    law: Law
    low: int
    high: int

    def __post_init__(self) -> None:
        if not isinstance(self.law, Law):
            raise WrongType("law", problem="is no law", remedy="pass one, DiscreteLaplace(1)")
        whole(self.low, "low", least=-_FARTHEST)
        if whole(self.high, "high", least=-_FARTHEST) < self.low:
            raise InvalidParameter("high", problem="is below low", remedy="pass low <= high")

    def mass(self, value: int) -> arb:
        if not self.low <= value <= self.high:
            return arb(0)
        if self.low == self.high:
            return arb(1)
        if value == self.low:
            return self.law.cumulative(value)
        if value == self.high:
            return 1 - self.law.cumulative(value - 1)
        return self.law.mass(value)

    def cumulative(self, value: int) -> arb:
        if value < self.low:
            return arb(0)
        return arb(1) if value >= self.high else self.law.cumulative(value)

    def exact_cumulative(self, value: int) -> Fraction | None:
        if value < self.low:
            return Fraction(0)
        return Fraction(1) if value >= self.high else self.law.exact_cumulative(value)

    @property
    def support(self) -> tuple[int, int]:
        return self.low, self.high


@dataclass(frozen=True, slots=True)
class Shifted(Law):
    """The law of X + by.

    >>> from lastbit.laws import DiscreteLaplace
    >>> Shifted(DiscreteLaplace(1), 42).quantile("1/2")
    42
    """

    law: Law
    by: int = field(repr=False)  # it may be a secret

    def mass(self, value: int) -> arb:
        return self.law.mass(value - self.by)

    def cumulative(self, value: int) -> arb:
        return self.law.cumulative(value - self.by)

    def exact_cumulative(self, value: int) -> Fraction | None:
        return self.law.exact_cumulative(value - self.by)

    @property
    def support(self) -> tuple[int | None, int | None]:
        low, high = self.law.support
        return (
            None if low is None else low + self.by,
            None if high is None else high + self.by,
        )


@dataclass(frozen=True, slots=True)
class OnGrid:
    """The law of step * X: the same questions, asked of rational values.

    >>> from lastbit.laws import DiscreteLaplace
    >>> OnGrid(Shifted(DiscreteLaplace(8), 3), Fraction(1, 8)).quantile("1/2")
    Fraction(3, 8)
    """

    law: Law
    step: Fraction

    def probability(self, value: object) -> Ball:
        """P[step X = value], which is 0 off the grid."""
        index = rational(value) / self.step
        return self.law.probability(int(index)) if index.denominator == 1 else Ball.of(0)

    def cdf(self, value: object) -> Ball:
        """P[step X <= value]."""
        return self.law.cdf(rational(value) // self.step)

    def quantile(self, probability: object) -> Fraction:
        """The least value on the grid whose cdf reaches the probability."""
        return self.law.quantile(probability) * self.step


@dataclass(frozen=True, slots=True)
class Stepped(Law):
    """P[X = k] proportional to exp(-rate distances[i]) for the k of run i.

    Law      run i holds starts[i] ... starts[i] + counts[i] - 1; the runs follow one another
    Checked  tests/laws/test_stepped.py

    >>> law = Stepped((0, 2), (2, 1), (0, 1), Fraction(1))
    >>> law.probability(1)
    Ball(0.42231879825151819660 ± 3.30e-21)
    """

    starts: tuple[int, ...] = field(repr=False)
    counts: tuple[int, ...] = field(repr=False)
    distances: tuple[int, ...] = field(repr=False)
    rate: Fraction

    def mass(self, value: int) -> arb:
        run = self._run(value)
        return arb(0) if run is None else self._weight(run) / self._total(len(self.starts))

    def cumulative(self, value: int) -> arb:
        low, high = self.support
        if value < low or value >= high:
            return arb(int(value >= high))
        run = bisect_right(self.starts, value) - 1
        here = self._weight(run) * (value - self.starts[run] + 1)
        return (self._total(run) + here) / self._total(len(self.starts))

    @property
    def support(self) -> tuple[int, int]:
        return self.starts[0], self.starts[-1] + self.counts[-1] - 1

    def _run(self, value: int) -> int | None:
        low, high = self.support
        return bisect_right(self.starts, value) - 1 if low <= value <= high else None

    def _weight(self, run: int) -> arb:
        return (-arb_of(self.rate * (self.distances[run] - min(self.distances)))).exp()

    def _total(self, runs: int) -> arb:
        return sum((self._weight(i) * self.counts[i] for i in range(runs)), arb(0))
