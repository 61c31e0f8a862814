"""The price of a wanted accuracy: least, on the grid, and refused before anything is charged."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from lastbit.errors import InvalidParameter
from lastbit.kernel.noise import Noisy
from lastbit.release.intervals import columns_of, errors_of
from lastbit.release.within import planned_within, price_rows
from lastbit.tables.card.budget import Budget
from lastbit.tables.plan.declared_prices import admitted
from lastbit.tables.plan.plan import planned
from tests.release.pretend import card_of, part, query_of

PEOPLE: dict[str, Any] = {"unit": "person", "max_rows": 4, "max_groups": 2}
QUERY = query_of(part("count", "n"), part("sum", "s"), part("mean", "m"))
RHO = Budget(kind="zcdp", rho=Fraction(100))
CASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    (PEOPLE, {}),
    (PEOPLE, {"delta": "1e-9"}),
    (PEOPLE, {"weights": "balanced"}),
    ({**PEOPLE, "budget": RHO}, {}),
]


def price_of(plan: Any) -> Fraction:
    found: Fraction = plan.cost.rho or plan.cost.epsilon
    return found


@pytest.mark.parametrize(("card", "how"), CASES, ids=str)
@pytest.mark.parametrize("within", [50, "7/3", {"n": 20, "s": 300}, {"s": 1000}], ids=str)
def test_the_least_price(card: dict[str, Any], how: dict[str, Any], within: Any) -> None:
    table = card_of(**card)
    plan = planned_within(QUERY, table, within, **how)
    limits = within if isinstance(within, dict) else dict.fromkeys(("n", "s"), Fraction(within))
    price = price_of(plan)
    assert admitted(price)
    errors = errors_of(plan)
    assert all(errors[name] <= limit for name, limit in limits.items())
    digit = Fraction(10) ** (len(str(int(price * 10**12))) - 1 - 12 - 2)  # the third digit
    currency = "rho" if plan.cost.rho else "epsilon"
    less: dict[str, Any] = {currency: price - digit, **how}
    below = planned(QUERY, table, **less)
    assert any(errors_of(below)[name] > limit for name, limit in limits.items())


def test_errors_are_those_of_the_intervals() -> None:
    """Half of the width of what is shown, where nothing is rounded to whole rows."""
    plan = planned(QUERY, card_of(), epsilon=1)
    noisy = Noisy(keys=[()], entries={"m1": [500], "m2": [70], "m3": [9]})
    columns = {column.name: column.cells[0] for column in columns_of(plan, noisy)}
    errors = errors_of(plan)
    assert set(errors) == {"n", "s"}
    for name, error in errors.items():
        cell = columns[name]
        assert cell.low is not None and cell.high is not None
        beyond = Fraction(cell.high) - Fraction(cell.low) - 2 * error
        # of ends, whose steps are not rows, a count is rounded to whole rows
        assert -Fraction(1, 10**9) < beyond < (2 if name == "n" else Fraction(1, 10**9))


def test_a_smaller_error_costs_more() -> None:
    prices = [price_of(planned_within(QUERY, card_of(), within)) for within in (1000, 100, 10, 1)]
    assert prices == sorted(prices) and len(set(prices)) == 4


REFUSED: list[tuple[Any, dict[str, Any]]] = [
    (0, {}),
    (-1, {}),
    ("much", {}),
    ({}, {}),
    ({"m": 1}, {}),
    ({"nothing": 1}, {}),
    ({"n": 0}, {}),
    (100, {"epsilon": 1}),
    (100, {"rho": 1}),
]


@pytest.mark.parametrize(("within", "how"), REFUSED, ids=str)
def test_refused(within: Any, how: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter) as error:
        planned_within(query_of(part("sum", "s"), part("mean", "m")), card_of(), within, **how)
    assert error.value.remedy


def test_means_alone_have_no_error_beforehand() -> None:
    with pytest.raises(InvalidParameter, match="counts and sums"):
        planned_within(query_of(part("quantile", "q")), card_of(), 5)
    assert price_rows(query_of(part("quantile", "q")), card_of()) == []


def test_what_other_prices_buy() -> None:
    rows = price_rows(query_of(part("count", "n")), card_of())
    assert rows[0] == ("at a price of", "n")
    assert [row[0] for row in rows[1:]] == ["ε = 0.1", "ε = 0.3", "ε = 1", "ε = 3"]
    assert [row[1] for row in rows[1:]] == ["± 30", "± 10", "± 3", "± 1"]
    concentrated = price_rows(query_of(part("count", "n")), card_of(budget=RHO))
    assert [row[0] for row in concentrated[1:]] == ["ρ = 0.001", "ρ = 0.01", "ρ = 0.1", "ρ = 1"]
