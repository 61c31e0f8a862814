"""Prices and budgets that people declare: on the public grid, in few digits.

The law of the grid is in `cost.py`; an account refuses a price whose sums would not stay short.
"""

from __future__ import annotations

from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from lastbit.errors import InvalidParameter
from lastbit.tables.card.budget import Budget
from lastbit.tables.plan.cost import BITS, DENOMINATOR, PLACES

_DIGITS = 12
_DOUBLE = 53
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
    power = denominator & (denominator - 1) == 0 and denominator <= 1 << BITS
    decimal = 10**PLACES % denominator == 0
    return (
        denominator <= DENOMINATOR
        or (power and odd.bit_length() <= _DOUBLE)
        or (decimal and len(str(int(price * 10**PLACES)).rstrip("0")) <= _DIGITS)
    )


def suggested(price: Fraction) -> str:
    """The decimal of 12 digits next below a price, as a person would write it.

    >>> suggested(Fraction(1, 101)), suggested(Fraction(10**30)), suggested(Fraction(1, 10**60))
    ('0.00990099009900', '999999999999', '1e-40')
    """
    least = Fraction(1, 10**PLACES)
    if price >= LARGEST:
        return str(LARGEST - 1)
    if price <= least:
        return "1e-40"
    context = Context(prec=_DIGITS, rounding=ROUND_FLOOR, Emin=-99, Emax=99)
    near = context.divide(Decimal(price.numerator), Decimal(price.denominator))
    if near.as_tuple().exponent < -PLACES:  # type: ignore[operator]  # finite
        near = near.quantize(Decimal(1).scaleb(-PLACES), ROUND_FLOOR, context)
    return f"{near}".lower()


def check_admitted(price: Fraction, name: str) -> None:
    """Refuse a price that is not on the grid, and propose the next one below."""
    if admitted(price):
        return
    raise InvalidParameter(
        name,
        problem="is not on the grid of prices: decimals of at most 12 digits, small fractions, or "
        "doubles",
        remedy=f"the next decimal {'above' if price < Fraction(1, 10**PLACES) else 'below'} is "
        f"{suggested(price)}",
    )


def check_budget(budget: Budget | None) -> None:
    """Refuse a new budget that is not on the grid, so that what is left of it stays short."""
    if budget is not None:
        for name in ("epsilon", "delta", "rho"):
            check_admitted(getattr(budget, name), f"budget: {name}")
        if budget.delta_kept is not None:
            check_admitted(budget.delta_kept, "budget: delta_kept")
