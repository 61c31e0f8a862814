"""What an answer costs: an exact price on the public grid of admitted numbers.

Law      a price is admitted (`declared_prices.py`) if it is
         - a decimal of at most 12 significant digits, the last not beyond 10**-40;
         - a fraction whose denominator is at most 100; or
         - a finite double (53 bits) whose denominator is at most 2**192;
         and below 10**12
Theorem  let Q = lcm(1, ..., 100, 10**40, 2**192), a number of 124 digits. Every sum of admitted
         prices, and of numbers that `rounded_up` gave, is n/Q for a whole n: its denominator has
         at most 124 digits, and if the sum is below 10**k, its numerator has at most 124 + k. No
         number of charges makes the ledger's numbers longer than that
Proof    every admitted price has a denominator that divides Q, and a sum of multiples of 1/Q is one
Differs  a price that is computed (and not written by a person) is moved up to the next multiple of
         1/Q: paying more than the answer costs protects all the same
Checked  tests/tables/test_price_grid.py; tests/ledger/test_short_sums.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from math import lcm
from typing import Any

from lastbit.errors import InvalidParameter
from lastbit.tables.card.budget import FILTERS, Budget

PLACES = 40
DENOMINATOR = 100
BITS = 192

GRID = lcm(*range(1, DENOMINATOR + 1), 10**PLACES, 1 << BITS)
"""Q: every admitted price, and every sum of them, is a multiple of 1/Q."""


def on_grid(amount: Fraction) -> bool:
    """Whether an amount is a multiple of 1/Q, as every sum of admitted prices is."""
    return GRID % amount.denominator == 0


def rounded_up(amount: Fraction) -> Fraction:
    """The least multiple of 1/Q that is not below the amount.

    >>> rounded_up(Fraction(1, 3)), rounded_up(Fraction(1, 101)) > Fraction(1, 101)
    (Fraction(1, 3), True)
    """
    if on_grid(amount):
        return amount
    return Fraction(-(-amount.numerator * GRID // amount.denominator), GRID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """An exact price: (epsilon, delta), or rho of concentrated privacy, perhaps with a delta.

    Theorem  costs of one currency add up: basic composition of (epsilon, delta), of rho, and of
             approximate concentrated privacy (rho, delta)
    Source   Dwork, Roth 2014, Theorem 3.16; Bun, Steinke 2016, Lemmas 1.7 and 8.2

    >>> Cost(epsilon=Fraction(1, 2)) + Cost(epsilon=Fraction(1), delta=Fraction(1, 10**9))
    Cost(epsilon=Fraction(3, 2), delta=Fraction(1, 1000000000), rho=Fraction(0, 1))
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if min(self.epsilon, self.delta, self.rho) < 0:
            raise InvalidParameter("cost", problem="is negative", remedy="pass numbers from 0 up")
        if self.rho and self.epsilon:
            raise InvalidParameter(
                "cost", problem="mixes two currencies", remedy="pass rho, or epsilon and delta"
            )

    def __add__(self, other: Cost) -> Cost:
        epsilon, delta = self.epsilon + other.epsilon, self.delta + other.delta
        return Cost(epsilon=epsilon, delta=delta, rho=self.rho + other.rho)

    def within(self, budget: Budget) -> bool:
        """Whether it may be spent in all; exact, and False for another currency."""
        if budget.kind in FILTERS:
            kept: Any = budget.filter()
            price = kept.price(epsilon=self.epsilon, delta=self.delta, rho=self.rho)
            return bool(kept.within(price))
        return (
            self.epsilon <= budget.epsilon and self.delta <= budget.delta and self.rho <= budget.rho
        )

    def __str__(self) -> str:
        shown = import_module("lastbit.exact.written").shown
        text = f"rho = {shown(self.rho)}" if self.rho else f"epsilon = {shown(self.epsilon)}"
        return f"{text}, delta = {shown(self.delta)}" if self.delta else text

    def to_json(self) -> dict[str, str]:
        """Exact fractions as text."""
        return {"epsilon": str(self.epsilon), "delta": str(self.delta), "rho": str(self.rho)}

    @classmethod
    def from_json(cls, data: Mapping[str, str]) -> Cost:
        """The price that `to_json` wrote."""
        return cls(**{name: Fraction(data[name]) for name in ("epsilon", "delta", "rho")})
