"""What an answer costs: an exact price on the public grid of admitted numbers.

Law      a price is admitted if it is
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
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import lcm
from typing import Any

from lastbit.errors import InvalidParameter
from lastbit.exact import shown
from lastbit.tables.card.budget import FILTERS, Budget

_DIGITS = 12
_PLACES = 40
_DENOMINATOR = 100
_BITS = 192
_DOUBLE = 53

GRID = lcm(*range(1, _DENOMINATOR + 1), 10**_PLACES, 1 << _BITS)
"""Q: every admitted price, and every sum of them, is a multiple of 1/Q."""

LARGEST = 10**12
"""No price and no budget is as large as this."""


def admitted(price: Fraction) -> bool:
    """Whether a price, not negative, is on the public grid.

    >>> admitted(Fraction("0.1")), admitted(Fraction(0.1)), admitted(Fraction(1, 3))
    (True, True, True)
    >>> admitted(Fraction(1, 10**40 + 7)), admitted(Fraction("1.0000000000001"))
    (False, False)
    """
    if not 0 <= price < LARGEST:
        return False
    numerator, denominator = price.numerator, price.denominator
    odd = numerator >> ((numerator & -numerator).bit_length() - 1) if numerator else 0
    power = denominator & (denominator - 1) == 0 and denominator <= 1 << _BITS
    decimal = 10**_PLACES % denominator == 0
    return (
        denominator <= _DENOMINATOR
        or (power and odd.bit_length() <= _DOUBLE)
        or (decimal and len(str(int(price * 10**_PLACES)).rstrip("0")) <= _DIGITS)
    )


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


def suggested(price: Fraction) -> str:
    """The decimal of 12 digits next below a price, as a person would write it.

    >>> suggested(Fraction(1, 101)), suggested(Fraction(10**30)), suggested(Fraction(1, 10**60))
    ('0.00990099009900', '999999999999', '1e-40')
    """
    least = Fraction(1, 10**_PLACES)
    if price >= LARGEST:
        return str(LARGEST - 1)
    if price <= least:
        return "1e-40"
    context = Context(prec=_DIGITS, rounding=ROUND_FLOOR, Emin=-99, Emax=99)
    near = context.divide(Decimal(price.numerator), Decimal(price.denominator))
    if near.as_tuple().exponent < -_PLACES:  # type: ignore[operator]  # finite
        near = near.quantize(Decimal(1).scaleb(-_PLACES), ROUND_FLOOR, context)
    return f"{near}".lower()


def check_admitted(price: Fraction, name: str) -> None:
    """Refuse a price that is not on the grid, and propose the next one below."""
    if admitted(price):
        return
    raise InvalidParameter(
        name,
        problem="is not on the grid of prices: decimals of at most 12 digits down to 1e-40, "
        "fractions with a denominator up to 100, or doubles, all below 10**12",
        remedy=f"the next decimal {'above' if price < Fraction(1, 10**_PLACES) else 'below'} is "
        f"{suggested(price)}",
    )


def check_budget(budget: Budget | None) -> None:
    """Refuse a new budget that is not on the grid, so that what is left of it stays short."""
    if budget is not None:
        for name in ("epsilon", "delta", "rho"):
            check_admitted(getattr(budget, name), f"budget: {name}")
        if budget.delta_kept is not None:
            check_admitted(budget.delta_kept, "budget: delta_kept")


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
        text = f"rho = {shown(self.rho)}" if self.rho else f"epsilon = {shown(self.epsilon)}"
        return f"{text}, delta = {shown(self.delta)}" if self.delta else text

    def to_json(self) -> dict[str, str]:
        """Exact fractions as text."""
        return {"epsilon": str(self.epsilon), "delta": str(self.delta), "rho": str(self.rho)}

    @classmethod
    def from_json(cls, data: Mapping[str, str]) -> Cost:
        """The price that `to_json` wrote."""
        return cls(**{name: Fraction(data[name]) for name in ("epsilon", "delta", "rho")})
