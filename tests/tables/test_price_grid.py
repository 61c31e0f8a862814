"""The grid of prices: what is admitted, and that sums of whatever is admitted stay short."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, strategies as some

from lastbit.errors import InvalidParameter
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.plan.cost import GRID, on_grid, rounded_up
from lastbit.tables.plan.declared_prices import LARGEST, admitted, check_admitted, suggested
from lastbit.tables.plan.price import asked_price

decimals = some.builds(
    lambda digits, place: Fraction(digits) / 10**place,
    some.integers(1, 10**12 - 1), some.integers(0, 40),
)  # fmt: skip
ratios = some.builds(Fraction, some.integers(1, 10**6), some.integers(1, 100))
doubles = some.floats(2.0**-139, 1e11).map(Fraction)
prices = some.one_of(decimals, ratios, doubles)
anything = some.fractions(min_value=0, max_value=10**11)


def test_the_grid_is_as_long_as_the_theorem_says():
    assert len(str(GRID)) == 124


@given(prices)
def test_every_price_of_the_three_kinds_is_admitted_and_on_the_grid(price):
    assert admitted(price) and on_grid(price) and rounded_up(price) == price


@given(some.lists(prices, max_size=200))
def test_sums_of_admitted_prices_stay_on_the_grid(several):
    total = sum(several, Fraction(0))
    assert on_grid(total) and total.denominator <= GRID


@given(anything)
def test_rounded_up_is_the_least_point_above(amount):
    up = rounded_up(amount)
    assert 0 <= up - amount < Fraction(1, GRID) and on_grid(up)


@given(anything.filter(lambda x: x >= Fraction(1, 10**40)))
def test_what_is_suggested_is_admitted_and_next_below(price):
    near = Fraction(suggested(price))
    assert admitted(near) and near <= price
    assert near == price or price - near <= max(near / 10**11, Fraction(1, 10**40))


OFF = [
    Fraction(1, 101), Fraction(1, 10**41), Fraction("1.000000000001") + Fraction(1, 10**15),
    Fraction(1, 10**998 + 7), Fraction(3, 2**193), Fraction(2**54 + 1, 2**100), Fraction(LARGEST),
]  # fmt: skip


@pytest.mark.parametrize("price", OFF)
def test_what_is_off_the_grid_is_refused_with_another_price(price):
    assert not admitted(price)
    with pytest.raises(InvalidParameter, match="not on the grid of prices"):
        check_admitted(price, "epsilon")


CARD = DataCard(name="t", source=Source(kind="csv"), unit=None, max_rows=1, columns={})


@pytest.mark.parametrize("name", ["epsilon", "delta", "rho", "weights"])
def test_each_number_of_a_price_is_held_to_it(name):
    long = Fraction(1, 10**998 + 7) + Fraction(1, 4)
    given_: dict[str, Any] = {"epsilon": 1, "delta": None, "rho": None, "weights": None}
    given_[name] = {"n": long} if name == "weights" else long
    if name == "rho":
        given_["epsilon"] = None
    with pytest.raises(InvalidParameter, match=r"grid of prices.* the next decimal below is 0\.25"):
        asked_price(CARD, **given_)
