"""The price somebody offers for an answer, checked against the currency of the table."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lastbit.errors import InvalidParameter
from lastbit.exact.rational import Number, positive, rational
from lastbit.tables.price_grid import check_admitted
from lastbit.tables.schema import DataCard
from lastbit.tables.split import Weights

__all__ = ["Asked", "asked_price"]

_EXTREME = Fraction(1 << 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the whole job may cost: epsilon (and delta), or rho; and how it is to be shared out."""

    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    weights: tuple[tuple[str, Fraction], ...] | str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; fractions as text, None where nothing was asked."""
        weights: Any = self.weights
        if isinstance(weights, tuple):
            weights = {name: str(weight) for name, weight in weights}
        return {
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "delta": str(self.delta) if self.delta else None,
            "rho": None if self.rho is None else str(self.rho),
            "weights": weights,
        }


def asked_price(
    card: DataCard,
    *,
    epsilon: Number | None,
    delta: Number | None,
    rho: Number | None,
    weights: Weights,
) -> Asked:
    """The price as exact numbers of the public grid, in the currency of the card's budget.

    There is no default: a price that nobody named is no price.
    """
    if (epsilon is None) == (rho is None):
        raise InvalidParameter(
            "epsilon", problem="or rho, exactly one, is needed", remedy=_wanted(card)
        )
    if rho is not None and delta is not None:
        raise InvalidParameter("delta", problem="has no meaning beside rho", remedy="drop it")
    named: Any = weights
    if not isinstance(weights, str) and weights is not None:
        named = tuple(sorted((name, _weight(weights[name])) for name in weights))
    asked = Asked(
        epsilon=None if epsilon is None else _price(epsilon, "epsilon"),
        delta=Fraction(0) if delta is None else _level(delta),
        rho=None if rho is None else _price(rho, "rho"),
        weights=named,
    )
    kind = None if card.budget is None else card.budget.kind
    if kind == "zcdp" and asked.rho is None:
        raise InvalidParameter(
            "epsilon", problem="is not what this table is paid in", remedy="pass rho="
        )
    if kind in ("pure", "approx") and asked.rho is not None:
        raise InvalidParameter(
            "rho", problem="is not what this table is paid in", remedy="pass epsilon="
        )
    if kind == "pure" and asked.delta:
        raise InvalidParameter(
            "delta", problem="is more than this table's budget allows", remedy="leave it out"
        )
    return asked


def _wanted(card: DataCard) -> str:
    if card.budget is not None and card.budget.kind == "zcdp":
        return "pass rho=, the price of the whole answer"
    return "pass epsilon=, the price of the whole answer"


def _price(value: Number, name: str) -> Fraction:
    price = positive(value, name)
    if not 1 / _EXTREME < price < _EXTREME:
        raise InvalidParameter(
            name, problem="is beyond 2**30 or below 2**-30", remedy="pass, say, 1"
        )
    check_admitted(price, name)
    return price


def _weight(value: Number) -> Fraction:
    """On the grid too: shares of the price are written out in the plan, and must stay short."""
    weight = positive(value, "weights")
    check_admitted(weight, "weights")
    return weight


def _level(value: Number) -> Fraction:
    level = rational(value, "delta")
    if not 0 <= level < 1:
        raise InvalidParameter("delta", problem="is not between 0 and 1", remedy="pass, say, 1e-9")
    check_admitted(level, "delta")
    return level
