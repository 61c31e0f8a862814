"""Released numbers and keys as text.

Numbers have the digits that mean something: a value is rounded to two digits of the half width of
its interval, and the ends of intervals are rounded outwards, so that what is shown holds at least
as surely as what was released. A number has two intervals: the noise, and the whole, which holds
what limits may have left out besides (`whole.py` says on which assumptions). Keys are text that a
stranger may have written into the data: `key_words` makes them fit to be shown, and templates
escape them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lastbit.exact import fixed
from lastbit.report.page import printable
from lastbit.report.plan import Record

_MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Shown:
    """A cell as text: its value, its noise (± 12, or 3 to 9), and the whole interval if known."""

    value: str
    noise: str
    whole: str = ""


def shown_cell(cell: Record, *, about: bool = False) -> Shown:
    """A released number for people; `about`: its whole interval rests on an assumption.

    >>> shown_cell({"value": 1234.56, "low": 1200.1, "high": 1269.02, "standard_error": 17})
    Shown(value='1,235', noise='± 35', whole='')
    >>> shown_cell({"value": 2.0, "low": 1.0, "high": 6.0, "standard_error": None})
    Shown(value='2', noise='1 to 6', whole='')
    >>> shown_cell({"value": None, "low": 0.0, "high": 9.5, "standard_error": None})
    Shown(value='unknown', noise='0.0 to 9.5', whole='')
    """
    whole = _whole_words(cell, about=about)
    value, low, high = cell["value"], cell["low"], cell["high"]
    if low is None or high is None:
        if value is None:
            return Shown("unknown", "unknown", whole)
        return Shown(fixed(Fraction(value), 3, "near"), "no interval", whole)
    places = _places(value, low, high)
    below, above = Fraction(low), Fraction(high)
    ends = f"{fixed(below, places, 'down')} to {fixed(above, places, 'up')}"
    if value is None:
        return Shown("unknown", ends, whole)
    middle, unit = Fraction(value), 10**places
    halves = [math.ceil(side * unit) for side in (middle - below, above - middle)]
    noise = f"± {fixed(Fraction(max(halves), unit), places, 'up', huge=3)}"
    near = abs(halves[0] - halves[1]) <= 1
    return Shown(fixed(middle, places, "near"), noise if near else ends, whole)


def _places(value: Any, low: Any, high: Any) -> int:
    """How many decimals mean something: none of whole numbers, else two digits of the half."""
    half = float(high - low) / 2
    if all(number is None or number == int(number) for number in (value, low, high)):
        return 0
    return min(max(1 - math.floor(math.log10(half)), 0), _MOST_DIGITS) if half > 0 else 3


def _whole_words(cell: Record, *, about: bool) -> str:
    """The whole interval; an end beyond that of the noise is "about" if it rests on an assumption.

    >>> ends = {"low": 18366, "high": 18518, "whole_low": 18366, "whole_high": 20310}
    >>> _whole_words(ends, about=True), _whole_words({**ends, "whole_high": None}, about=True)
    ('18,366 to about 20,310', '')
    """
    low, high = cell.get("whole_low"), cell.get("whole_high")
    if low is None or high is None:
        return ""
    places = _places(None, low, high)
    lower, upper = fixed(Fraction(low), places, "down"), fixed(Fraction(high), places, "up")
    if about and low != cell["low"]:
        return f"about {lower} to {upper}"
    return f"{lower} to about {upper}" if about and high != cell["high"] else f"{lower} to {upper}"


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


def answer_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, words: int, left_out: int = 0
) -> AnswerTable:
    """A table whose first columns are words, then numbers; without columns that are empty."""
    columns = [cells for cells in zip(headings, *rows, strict=True) if any(cells[1:]) or not rows]
    names, *lines = zip(*columns, strict=True)
    numbers = tuple(place for place, name in enumerate(names) if name and place >= words)
    return AnswerTable(headings=names, rows=tuple(lines), numbers=numbers, left_out=left_out)
