"""The price that is asked for an answer: exact, on the public grid, in the budget's currency."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, positive, probability
from lastbit.tables.card.schema import DataCard
from lastbit.tables.plan.calibrate import Weights
from lastbit.tables.plan.declared_prices import check_admitted

_EXTREME = Fraction(1 << 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRequest:
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

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PriceRequest:
        """What `to_json` wrote."""
        weights, exact = data["weights"], {}
        if isinstance(weights, Mapping):
            weights = tuple((name, Fraction(weight)) for name, weight in weights.items())
        for name in ("epsilon", "rho"):
            exact[name] = None if data[name] is None else Fraction(data[name])
        return cls(**exact, delta=Fraction(data["delta"] or 0), weights=weights)


def asked_price(
    card: DataCard,
    *,
    epsilon: Number | None,
    delta: Number | None,
    rho: Number | None,
    weights: Weights,
) -> PriceRequest:
    """The price as exact numbers of the public grid, in the currency of the card's budget.

    There is no default: a price must be named.
    """
    kind = None if card.budget is None else card.budget.kind
    if (epsilon is None) == (rho is None):
        wanted = "rho" if kind == "zcdp" else "epsilon"
        raise InvalidParameter(
            "epsilon" if rho is not None else wanted,
            problem="is missing" if rho is None else "and {rho} are both given",
            remedy="pass one of them"
            if rho is not None
            else f"pass {{{wanted}}}, the price of the whole answer",
            epsilon="",
            rho=None,
        )
    named: Any = weights
    if not isinstance(weights, str) and weights is not None:
        if not isinstance(weights, Mapping):
            remedy = 'pass, say, {"n": 2, "cost": 1}'
            raise WrongType("weights", problem="are not a mapping", remedy=remedy)
        # on the grid too: shares of the price are written out in the plan, and must stay short
        exact = {name: positive(weight, "weights") for name, weight in weights.items()}
        named = tuple(sorted((name, _on_grid(exact[name], "weights")) for name in exact))
    level = Fraction(0)
    if delta is not None:
        level = probability(delta, "delta", one=False, remedy="pass, say, 1e-9")
    asked = PriceRequest(
        epsilon=None if epsilon is None else _price(epsilon, "epsilon"),
        delta=_on_grid(level, "delta"),
        rho=None if rho is None else _price(rho, "rho"),
        weights=named,
    )
    if kind == "zcdp" and asked.rho is None:
        raise InvalidParameter(
            "epsilon", problem="is not what this table is paid in", remedy="pass {rho}", rho=""
        )
    if kind in ("pure", "approx") and asked.rho is not None:
        raise InvalidParameter(
            "rho", problem="is not what this table is paid in", remedy="pass {epsilon}", epsilon=""
        )
    if kind == "zcdp" and asked.delta:
        remedy = "declare the keys, or keep the budget by the filter: epsilon, delta, accounting"
        raise InvalidParameter(
            "delta", problem="is more than a budget of rho allows", remedy=remedy
        )
    if kind == "pure" and asked.delta:
        problem = "is more than this table's budget allows"
        remedy = "leave it out, or let the steward give the budget a delta"
        raise InvalidParameter("delta", problem=problem, remedy=remedy)
    return asked


def _price(value: Number, name: str) -> Fraction:
    price = positive(value, name)
    if not 1 / _EXTREME < price < _EXTREME:
        raise InvalidParameter(
            name, problem="is beyond 2**30 or below 2**-30", remedy="pass, say, 1"
        )
    return _on_grid(price, name)


def _on_grid(number: Fraction, name: str) -> Fraction:
    check_admitted(number, name)
    return number
