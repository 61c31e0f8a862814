"""A law that is constant on runs of integers and exponential from run to run."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from fractions import Fraction

from flint import arb

from lastbit.exact.ball import arb_of
from lastbit.laws.law import Law

__all__ = ["Stepped"]


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
