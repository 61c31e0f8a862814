"""What an answer costs, in the currency of its table's budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from lastbit.errors import InvalidParameter
from lastbit.exact.rational import shown
from lastbit.tables.schema import Budget

__all__ = ["Cost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """An exact price: (epsilon, delta), or rho of concentrated privacy.

    Theorem  costs of one currency add up: basic composition of (epsilon, delta), of rho
    Source   Dwork, Roth 2014, Theorem 3.16; Bun, Steinke 2016, Lemma 1.7

    >>> Cost(epsilon=Fraction(1, 2)) + Cost(epsilon=Fraction(1), delta=Fraction(1, 10**9))
    Cost(epsilon=Fraction(3, 2), delta=Fraction(1, 1000000000), rho=Fraction(0, 1))
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if min(self.epsilon, self.delta, self.rho) < 0:
            raise InvalidParameter("cost", problem="is negative", remedy="pass numbers from 0 up")
        if self.rho and (self.epsilon or self.delta):
            raise InvalidParameter(
                "cost", problem="mixes two currencies", remedy="pass rho, or epsilon and delta"
            )

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            epsilon=self.epsilon + other.epsilon,
            delta=self.delta + other.delta,
            rho=self.rho + other.rho,
        )

    def within(self, budget: Budget) -> bool:
        """Whether so much may be spent in all; exact, and False for another currency."""
        return (
            self.epsilon <= budget.epsilon and self.delta <= budget.delta and self.rho <= budget.rho
        )

    def __str__(self) -> str:
        if self.rho:
            return f"rho = {shown(self.rho)}"
        text = f"epsilon = {shown(self.epsilon)}"
        return f"{text}, delta = {shown(self.delta)}" if self.delta else text

    def to_json(self) -> dict[str, str]:
        """Exact fractions as text."""
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "rho": str(self.rho),
        }
