"""Limits and sums of prices as entries state them: of allowances (`principals.py`), as data.

What an account may spend rests on none of these numbers: they are read here, since an entry is read
whole or not at all, and are written again as they were.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from lastbit.errors import InvalidParameter, WrongType

Role: TypeAlias = Literal["steward", "analyst", "auditor"]
Period: TypeAlias = Literal["day", "week", "month", "year"]
ROLES: tuple[Role, ...] = get_args(Role)
PERIODS: tuple[Period, ...] = get_args(Period)
CURRENCIES = ("epsilon", "delta", "rho")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """How much an allowance allows in a period (None: ever).

    Prices in epsilon, or in rho, where that is None are refused. A delta that is None is limited by
    the account alone.
    """

    epsilon: Fraction | None = None
    delta: Fraction | None = None
    rho: Fraction | None = None
    period: Period | None = None

    def __post_init__(self) -> None:
        for name in CURRENCIES:
            number = getattr(self, name)
            if number is not None and (not isinstance(number, Fraction) or number < 0):
                problem, remedy = "is not an exact number from 0 up", "pass a Fraction"
                raise WrongType(f"limit: {name}", problem=problem, remedy=remedy)
        if self.epsilon is None and self.rho is None:
            problem, remedy = "names no price", "name epsilon, or rho"
            raise InvalidParameter("limit", problem=problem, remedy=remedy)
        if self.period not in (None, *PERIODS):
            problem, remedy = "has an unknown period", f"pass one of {', '.join(PERIODS)}, or None"
            raise InvalidParameter("limit", problem=problem, remedy=remedy)

    def to_json(self) -> dict[str, str | None]:
        """Exact fractions as text."""
        numbers = {name: getattr(self, name) for name in CURRENCIES}
        told = {name: None if n is None else str(n) for name, n in numbers.items()}
        return {**told, "period": self.period}


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """A sum of prices, of both currencies if an account takes both."""

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)

    def to_json(self) -> dict[str, str]:
        """Exact fractions as text."""
        return {name: str(getattr(self, name)) for name in CURRENCIES}
