"""The price of a wanted accuracy, and what accuracy other prices buy; nothing is read.

Law      the error of a column is the half-width of its noise interval before it is rounded to whole
         rows: of counts, histograms and sums. It is a number of the plan, known before anything is
         read. The error of a mean, a variance or a quantile depends on the data, and is not
         promised
Theorem  the price found is on the public grid (three digits), and at it the errors named are at
         most what was asked. Under one kind of noise errors fall as the price rises, so that no
         lower price of three digits would do; where the planner changes from one kind to the other
         between two prices, the price found is the end of the last stretch where all is met
Checked  tests/release/test_within.py
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, positive, rounded_up
from lastbit.release.intervals import errors_of
from lastbit.report import grouped_up
from lastbit.tables import DataCard, Plan, Query, planned, unit_name

Weights: TypeAlias = Mapping[str, Number] | Literal["balanced"] | None
Within: TypeAlias = Number | Mapping[str, Number]

_DECADES = range(-8, 9)  # prices from 1e-8 to below 1e9
_STEPS = 900
_LONGEST = 40
_PRICES: tuple[Fraction, ...] = tuple(Fraction(text) for text in ("0.1", "0.3", "1", "3"))
_RHOS: tuple[Fraction, ...] = tuple(Fraction(text) for text in ("0.001", "0.01", "0.1", "1"))


def planned_within(
    query: Query,
    card: DataCard,
    within: Within | None,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    weights: Weights = None,
) -> Plan:
    """The cheapest plan whose errors are at most `within`: a number for all, or one by column.

    The price is in epsilon, beside the delta that is given, or in rho where the table's budget is.
    Without `within`, the plan at the price that is given.
    """
    if within is None:
        return planned(query, card, epsilon=epsilon, delta=delta, rho=rho, weights=weights)
    if epsilon is not None or rho is not None:
        raise InvalidParameter(
            "within", problem="is given beside a price", remedy="pass the one or the other"
        )
    currency = _currency(card)
    if currency == "rho" and delta is not None:
        problem = "has no meaning beside {rho}"
        raise InvalidParameter("delta", problem=problem, remedy="drop it", rho=None)

    def plan_at(place: int) -> Plan:
        price: dict[str, Any] = {currency: _price(place)}
        return planned(query, card, delta=delta, weights=weights, **price)

    dearest = len(_DECADES) * _STEPS - 1
    plan = plan_at(dearest)
    limits = _limits(within, errors_of(plan))
    if not _is_met(plan, limits):
        raise InvalidParameter(
            "within", problem="is less than any price below 10**9 buys", remedy="allow more"
        )
    least = bisect_left(range(dearest), x=True, key=lambda at: _is_met(plan_at(at), limits))
    return plan_at(least)


def _price(place: int) -> Fraction:
    """The prices of three digits, in order.

    >>> [str(_price(place)) for place in (7200, 7201, 8099, 8100)]
    ['1', '101/100', '999/100', '10']
    """
    decade, step = divmod(place, _STEPS)
    return (100 + step) * Fraction(10) ** (_DECADES[decade] - 2)


def _currency(card: DataCard) -> Literal["epsilon", "rho"]:
    return "rho" if card.budget is not None and card.budget.kind == "zcdp" else "epsilon"


def _limits(within: Within, errors: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """The most that each column's error may be."""
    if not errors:
        raise InvalidParameter(
            "within",
            problem="can be promised of counts and sums only, and none is asked for",
            remedy="ask for a count as well, or name a price",
        )
    if not isinstance(within, Mapping):
        return dict.fromkeys(errors, positive(within, "within"))
    if not within:
        raise WrongType("within", problem="names no column", remedy='pass, say, {"n": 100}')
    for name in within:
        if name not in errors:
            raise InvalidParameter(
                "within",
                problem="names a column whose error is not known before the data are read",
                remedy=f"name counts and sums: {', '.join(errors)}",
            )
    return {name: positive(limit, f"within: {name}") for name, limit in within.items()}


def _is_met(plan: Plan, limits: Mapping[str, Fraction]) -> bool:
    errors = errors_of(plan)
    return all(errors[name] <= limit for name, limit in limits.items())


def price_rows(
    query: Query, card: DataCard, *, delta: Number | None = None, weights: Weights = None
) -> list[tuple[str, ...]]:
    """Headings, and a row for each of four prices: the error of every column that has one."""
    currency = _currency(card)
    letter, prices = ("ρ", _RHOS) if currency == "rho" else ("ε", _PRICES)
    beside: dict[str, Any] = {} if currency == "rho" else {"delta": delta}
    rows: list[tuple[str, ...]] = []
    for price in prices:
        errors = errors_of(planned(query, card, weights=weights, **beside, **{currency: price}))
        if not errors:
            return []
        if not rows:
            rows.append(("at a price of", *(unit_name(name[:_LONGEST]) for name in errors)))
        texts = (f"± {grouped_up(error)}" for error in errors.values())
        rows.append((f"{letter} = {rounded_up(price)}", *texts))
    return rows


def explanation_within(
    query: Query, card: DataCard, within: Within | None, price: Mapping[str, Any]
) -> str:
    """The plan of `planned_within` in words, with what other prices buy."""
    return explanation_of(planned_within(query, card, within, **price), card, price)


def explanation_of(plan: Plan, card: DataCard, price: Mapping[str, Any]) -> str:
    """A plan in words, with what other prices buy."""
    text = plan.explain()
    rows = price_rows(plan.query, card, delta=price["delta"], weights=price["weights"])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    above, last = text.rsplit("\n", 1)  # the last line says that nothing was read
    return "\n".join([above, *(f"  {line}" for line in lines), last])
