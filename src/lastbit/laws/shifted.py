"""A law moved to another place, and a law on a grid of rationals."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from flint import arb

from lastbit.exact.ball import Ball
from lastbit.exact.rational import rational
from lastbit.laws.law import Law

__all__ = ["OnGrid", "Shifted"]


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
