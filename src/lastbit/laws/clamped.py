"""A law whose values are moved into an interval."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact.rational import whole
from lastbit.laws.law import Law

__all__ = ["Clamped"]

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
