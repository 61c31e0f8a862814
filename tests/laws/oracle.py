"""Independent arithmetic for the law tests: Decimal only, no flint, none of our own formulas' code.

`check_inversion` is the judge of every table: it compares what a table *decides* with a cumulative
function given in Decimals, slot by slot and boundary by boundary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from lastbit.sampling.inversion import Inversion

DIGITS = 80
# Decimal results are good to 2**-200 or so; a claim is refused only beyond this margin.
MARGIN = Decimal(2) ** -180


@contextmanager
def decimals() -> Iterator[None]:
    with localcontext() as context:
        context.prec = DIGITS
        context.Emin, context.Emax = -(10**12), 10**12
        yield


def decimal(number: Fraction | int) -> Decimal:
    return Decimal(Fraction(number).numerator) / Decimal(Fraction(number).denominator)


def exp(number: Fraction | int) -> Decimal:
    return decimal(number).exp()


def laplace_pmf(scale: Fraction) -> Callable[[int], Decimal]:
    q = exp(-1 / scale)
    return lambda k: (1 - q) / (1 + q) * exp(-abs(k) / scale)


def gaussian_pmf(variance: Fraction) -> Callable[[int], Decimal]:
    """Normalised by the plain sum, far beyond where its terms matter."""
    last = int((2 * variance * 200) ** Fraction(1, 2)) + 2
    total = 1 + 2 * sum(exp(Fraction(-k * k) / (2 * variance)) for k in range(1, last))
    return lambda k: exp(Fraction(-k * k) / (2 * variance)) / total


class Refused(AssertionError):
    """The table decides something that the law does not."""


def check_inversion(
    table: Inversion,
    cumulative: Callable[[int], Decimal],
    symbol: Callable[[int], int],
    *,
    cells: int | None = None,
) -> None:
    """Every decision of the table is right: F(j-1) <= u/2**w and (u+1)/2**w <= F(j).

    Also: the undecided words are few, and where the table ends without the law ending, it says so.
    """
    unit = Decimal(2) ** table.word_bits
    count = len(table.lows)
    if cells is not None and count != cells - 1:
        raise Refused(f"{count} boundaries for {cells} cells")
    values = [cumulative(j) for j in range(count)]
    for j, value in enumerate(values):
        low, high = int(table.lows[j]), int(table.highs[j + 1])
        if Decimal(low) > value * unit + MARGIN or Decimal(high) < value * unit - MARGIN:
            raise Refused(f"boundary {j} lies outside [{low}, {high}] / 2**{table.word_bits}")
        if high - low > 2:
            raise Refused(f"boundary {j} is loose")
        if int(table.symbols[j]) != symbol(j):
            raise Refused(f"cell {j} has the wrong symbol")
    if cells is None and int(table.highs[-1]) != 1 << table.word_bits:
        raise Refused("the tail is decided by the table")
    if cells is not None and int(table.symbols[-1]) != symbol(cells - 1):
        raise Refused("the last cell has the wrong symbol")
    _check_guide(table, values, symbol)


def _check_guide(table: Inversion, values: list[Decimal], symbol: Callable[[int], int]) -> None:
    """Walk the slots and the boundaries side by side."""
    slots = 1 << table.guide_bits
    j = 0
    unsettled = 0
    for slot, answer in enumerate(table.guide.tolist()):
        start, end = Decimal(slot) / slots, Decimal(slot + 1) / slots
        while j < len(values) and values[j] <= start + MARGIN:
            j += 1
        if answer == np.iinfo(np.int16).min:
            unsettled += 1
            continue
        if answer != symbol(j) or (j < len(values) and end > values[j] + MARGIN):
            raise Refused(f"slot {slot} claims {answer}")
    if unsettled != table.unsettled:
        raise Refused("the count of unsettled slots is wrong")
    if unsettled > 2 * len(values) + 2:
        raise Refused("more slots are unsettled than there are boundaries")
