"""What every law can say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from lastbit.exact import (
    DEFAULT_PRECISION,
    Ball,
    arb_of,
    at_most,
    probability,
    whole,
    working_precision,
)


class Law(ABC):
    """The exact law of a random integer.

    A law gives its masses and its cumulative function as enclosures at the working precision
    (`mass`, `cumulative`); everything a caller sees is made from those two.

    >>> from lastbit.laws import Geometric
    >>> law = Geometric("1/2")
    >>> isinstance(law, Law), law.quantile("0.9"), law.probability(0)
    (True, 1, Ball(0.86466471676338730811 ± 4.00e-21))
    """

    __slots__ = ()

    @abstractmethod
    def mass(self, value: int) -> arb:
        """P[X = value] enclosed at the working precision."""

    @abstractmethod
    def cumulative(self, value: int) -> arb:
        """P[X <= value] enclosed at the working precision."""

    @property
    def support(self) -> tuple[int | None, int | None]:
        """The least and the greatest possible value; None where there is no bound."""
        return None, None

    def exact_cumulative(self, value: int) -> Fraction | None:
        """P[X <= value] where it is known to be rational; None where it is not."""
        return None

    def probability(self, value: int, *, precision: int = DEFAULT_PRECISION) -> Ball:
        """P[X = value]."""
        number = whole(value, "value", least=-(1 << 4096))
        with working_precision(precision):
            return Ball(self.mass(number))

    def cdf(self, value: int, *, precision: int = DEFAULT_PRECISION) -> Ball:
        """P[X <= value]."""
        number = whole(value, "value", least=-(1 << 4096))
        with working_precision(precision):
            return Ball(self.cumulative(number))

    def quantile(self, probability: object) -> int:
        """The least k with P[X <= k] >= probability, for a probability strictly between 0 and 1."""
        level = quantile_level(probability)

        def reaches(value: int) -> bool:
            known = self.exact_cumulative(value)
            if known is not None:
                return known >= level
            return at_most(lambda: arb_of(level), lambda: self.cumulative(value))

        return least(reaches, self.support)


def least(
    holds: Callable[[int], bool], support: tuple[int | None, int | None], *, near: int = 0
) -> int:
    """The least integer of the support for which a monotone question holds; a guess saves time."""
    low, high = support
    step = 1
    if high is None:
        high = near if low is None else low
        while not holds(high):
            low, high, step = high + 1, high + step, 2 * step
    if low is None:
        low, step = high, 1
        while holds(low):
            low, high, step = low - step, low, 2 * step
        low += 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def quantile_level(value: object, *, remedy: str = "pass, say, 0.5 for the median") -> Fraction:
    """A probability that some quantile belongs to: above 0 and below 1."""
    return probability(value, "probability", zero=False, one=False, remedy=remedy)
