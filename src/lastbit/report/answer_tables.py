"""The rows of an answer as text: numbers with the digits that mean something, and their intervals.

A value is rounded to two digits of the half width of its interval; the ends of the interval are
rounded outwards, so that what is shown holds at least as surely as what was released.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from lastbit.report.answer_words import key_text
from lastbit.report.words import printable

_HUGE = 10**15
_MOST_DIGITS = 9
_LONGEST_KEY = 40
_BAR = 24


@dataclass(frozen=True, slots=True)
class Shown:
    """A cell as text: the value, and how far off it may be (± 12, or 3 to 9)."""

    value: str
    interval: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTable:
    """Headings and rows of text; the columns of `numbers` are set flush right."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...]
    left_out: int = 0
    """How many groups of the answer are not among the rows."""

    @property
    def width(self) -> int:
        """How many letters wide it is, with two between columns."""
        columns = zip(self.headings, *self.rows, strict=True)
        return sum(max(map(len, cells)) + 2 for cells in columns)


def shown_cell(cell: Mapping[str, Any]) -> Shown:
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
        return Shown("unknown" if value is None else _text(value, 3, ROUND_HALF_EVEN), "unknown")
    digits = _digits(value, low, high)
    ends = f"{_text(low, digits, ROUND_FLOOR)} to {_text(high, digits, ROUND_CEILING)}"
    if value is None:
        return Shown("unknown", ends)
    below, above = (
        _rounded(_exact(a) - _exact(b), digits, ROUND_CEILING)
        for a, b in ((value, low), (high, value))
    )
    near = abs(below - above) <= Decimal(1).scaleb(-digits)
    interval = f"± {_separated(max(below, above), digits)}" if near else ends
    return Shown(_text(value, digits, ROUND_HALF_EVEN), interval)


def _digits(*numbers: float | int | None) -> int:
    """Decimals that show two digits of the half width; none where all numbers are whole."""
    known = [number for number in numbers if number is not None]
    if all(number == int(number) for number in known):
        return 0
    half = float(known[-1] - known[-2]) / 2
    return min(max(1 - math.floor(math.log10(half)), 0), _MOST_DIGITS) if half > 0 else 3


def _exact(number: float | int) -> Decimal:
    return Decimal(number)


def _rounded(number: Decimal, digits: int, rounding: str) -> Decimal:
    wide = Context(prec=800, rounding=rounding)
    return wide.quantize(number, Decimal(1).scaleb(-digits))


def _text(number: float | int, digits: int, rounding: str) -> str:
    if abs(number) >= _HUGE:
        return f"{Context(prec=6, rounding=rounding).plus(_exact(number)):e}"
    return _separated(_rounded(_exact(number), digits, rounding), digits)


def _separated(number: Decimal, digits: int) -> str:
    if abs(number) >= _HUGE:
        return f"{Context(prec=3, rounding=ROUND_CEILING).plus(number):e}"
    return f"{abs(number) if number == 0 else number:,.{digits}f}"


# ---------------------------------------------------------------- whole tables


def table_of(record: Mapping[str, Any], *, width: int, most: int) -> AnswerTable:
    """A line for each group if that fits the width, else a line for each released number."""
    if not any(column["function"] == "histogram" for column in record["columns"]):
        wide = wide_table(record, most=most)
        if wide.width <= width:
            return wide
    return long_table(record, most=most)


def wide_table(record: Mapping[str, Any], *, most: int) -> AnswerTable:
    """A line for each group: its keys, then two columns for every number."""
    keys = [_name(column) for column in record["columns"] if column["role"] == "key"]
    names = [_name(column) for column in record["columns"] if column["role"] == "value"]
    rows = []
    for row in record["rows"][:most]:
        cells = [key_text(key, _LONGEST_KEY) for key in row["keys"]]
        for cell in row["cells"]:
            shown = shown_cell(cell)
            cells += [shown.value, shown.interval]
        rows.append(tuple(cells))
    headings = [*keys, *(heading for name in names for heading in (name, "± 95 %"))]
    return AnswerTable(
        headings=tuple(headings),
        rows=tuple(rows),
        numbers=tuple(range(len(keys), len(headings))),
        left_out=max(len(record["rows"]) - most, 0),
    )


def long_table(record: Mapping[str, Any], *, most: int) -> AnswerTable:
    """A line for each number: the keys of its group, its name, itself; bars for histograms."""
    keys = [_name(column) for column in record["columns"] if column["role"] == "key"]
    columns = [column for column in record["columns"] if column["role"] == "value"]
    longest = _longest(record, columns)
    rows = []
    for row in record["rows"][:most]:
        group = [key_text(key, _LONGEST_KEY) for key in row["keys"]]
        for column, cell in zip(columns, row["cells"], strict=True):
            shown = shown_cell(cell)
            line = (*group, _name(column), shown.value, shown.interval)
            rows.append((*line, _bar(cell, longest)) if longest else line)
    headings = (*keys, "what", "value", "± 95 %")
    return AnswerTable(
        headings=(*headings, "") if longest else headings,
        rows=tuple(rows),
        numbers=(len(keys) + 1, len(keys) + 2),
        left_out=max(len(record["rows"]) - most, 0),
    )


def totals_of(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Names and totals of counts, where consistent ones were asked for.

    >>> totals_of({"columns": [{"name": "n", "role": "value"}], "totals": [1204]})
    [('n', '1,204')]
    """
    names = [_name(column) for column in record["columns"] if column["role"] == "value"]
    totals = record.get("totals") or [None] * len(names)
    pairs = zip(names, totals, strict=True)
    return [(name, f"{total:,}") for name, total in pairs if total is not None]


def _longest(record: Mapping[str, Any], columns: list[Mapping[str, Any]]) -> float:
    """The greatest count of the histogram, if nothing else was asked for; 0 for no bars."""
    if any(column["function"] != "histogram" for column in columns):
        return 0
    return float(max((cell["value"] for row in record["rows"] for cell in row["cells"]), default=0))


def _bar(cell: Mapping[str, Any], longest: float) -> str:
    return "█" * max(round(_BAR * float(cell["value"]) / longest), 0) if longest > 0 else ""


def _name(column: Mapping[str, Any]) -> str:
    return printable(column["name"], 60)
