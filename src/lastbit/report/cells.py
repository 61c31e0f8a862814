"""Released numbers and keys as text.

Numbers have the digits that mean something: a value is rounded to two digits of the half width of
its interval, and the ends of the interval are rounded outwards, so that what is shown holds at
least as surely as what was released. Keys are text that a stranger may have written into the data:
`key_words` makes them fit to be shown, and templates escape them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from lastbit.exact import fixed
from lastbit.report.page import printable
from lastbit.report.plan import Record

_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Shown:
    """A cell as text: the value, and how far off it may be (± 12, or 3 to 9)."""

    value: str
    interval: str


def shown_cell(cell: Record) -> Shown:
    """A released number for people.

    >>> shown_cell({"value": 1234.56, "low": 1200.1, "high": 1269.02, "standard_error": 17})
    Shown(value='1,235', interval='± 35')
    >>> shown_cell({"value": 2.0, "low": 1.0, "high": 6.0, "standard_error": None})
    Shown(value='2', interval='1 to 6')
    >>> shown_cell({"value": None, "low": 0.0, "high": 9.5, "standard_error": None})
    Shown(value='unknown', interval='0.0 to 9.5')
    """
    value, low, high = cell["value"], cell["low"], cell["high"]
    if low is None or high is None:
        if value is None:
            return Shown("unknown", "unknown")
        return Shown(fixed(Fraction(value), 3, "near"), "no interval")
    places, half = 0, float(high - low) / 2
    if any(number is not None and number != int(number) for number in (value, low, high)):
        places = min(max(1 - math.floor(math.log10(half)), 0), _MOST_DIGITS) if half > 0 else 3
    below, above = Fraction(low), Fraction(high)
    ends = f"{fixed(below, places, 'down')} to {fixed(above, places, 'up')}"
    if value is None:
        return Shown("unknown", ends)
    middle, unit = Fraction(value), 10**places
    halves = [math.ceil(side * unit) for side in (middle - below, above - middle)]
    interval = f"± {fixed(Fraction(max(halves), unit), places, 'up', huge=3)}"
    near = abs(halves[0] - halves[1]) <= 1
    return Shown(fixed(middle, places, "near"), interval if near else ends)


def key_words(key: Record, most: int = 200) -> str:
    """One key of a row, as people read it."""
    value = key["value"]
    if value is None:
        return "(missing)"
    if isinstance(value, bool):
        return "true" if value else "false"
    return printable(value, most) if value != "" else "(empty text)"


def value_columns(record: Record) -> list[Record]:
    """The released columns of an answer, without its keys."""
    return [column for column in record["columns"] if column["role"] == "value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTable:
    """Headings and rows of text; the columns of `numbers` are set flush right."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...]
    left_out: int = 0
    """How many groups of the answer are not among the rows."""

    @property
    def widths(self) -> list[int]:
        """How many letters wide each column is."""
        return [max(map(len, cells)) for cells in zip(self.headings, *self.rows, strict=True)]

    @property
    def lines(self) -> list[str]:
        """Headings and rows as aligned text."""
        return [
            "  ".join(
                cell.rjust(width) if place in self.numbers else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, self.widths, strict=True))
            ).rstrip()
            for row in (self.headings, *self.rows)
        ]
