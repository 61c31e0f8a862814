"""SQL in a minute: what can be written where, with the columns of one table.

Law      every line is a piece of a statement that this table can be asked, and of columns that its
         card describes; what needs a column that is not there is left out
Checked  tests/serve/test_reference.py: each line of each table, in its statement, is planned
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from string import Formatter
from types import MappingProxyType

from lastbit.report import amount
from lastbit.serve.questions import MARGINALS
from lastbit.tables import Column, DataCard, Source, quoted

_SECTIONS: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    (
        "SELECT: what to compute",
        "SELECT {} FROM {table}",
        {
            "COUNT(*)": "the number of rows",
            "COUNT(DISTINCT {unit})": "how many values of {unit} there are",
            "AVG({number})": "the mean",
            "SUM({number})": "the sum",
            "MEDIAN({number})": "the median",
            "QUANTILE_CONT({number}, 0.9)": "nine of ten lie below",
            "MIN({number})": "near the least; MAX likewise",
            "STDDEV({number})": "how far values spread",
            "COUNT_IF({number} > {middle})": "rows for which it is true",
            "100.0 * COUNT_IF({number} > {middle}) / COUNT(*)": "the share of them, in percent",
        },
    ),
    (
        "WHERE: which rows count",
        "SELECT COUNT(*) FROM {table} WHERE {}",
        {
            "{number} > {middle}": "also >=, <, <=, =, <>",
            "{number} BETWEEN {low} AND {middle}": "both ends count",
            "{group} = {key}": "texts stand in apostrophes",
            "{group} IN ({key})": "one of several",
            "{group} LIKE '%a%'": "% stands for any letters",
            "{day} >= '{since}'": "days: year, month, day",
            "{number} IS NOT NULL AND NOT {number} = {low}": "joined by AND, OR, NOT",
        },
    ),
    (
        "GROUP BY: a line for each",
        "SELECT {} AS part, COUNT(*) FROM {table} GROUP BY part",
        {
            "{group}": "each of its values",
            "date_trunc('month', {day})": "each month; year, quarter, week likewise",
            "bin({number}, {low}, {middle}, {high})": "each range of a number",
        },
    ),
    (
        "Afterwards, at no price",
        "SELECT {group}, COUNT(*) AS n FROM {table} GROUP BY {group} {}",
        {
            "HAVING n > 100": "groups that are large enough",
            "ORDER BY n DESC": "the largest first",
            "LIMIT 10": "the first ten",
        },
    ),
    (
        "Tables of every two columns, one price",
        "{}",
        {
            MARGINALS
            + " {group}, bin({number}, {low}, {middle}, {high}) FROM {table}": "rows by each pair"
        },
    ),
)
EDITOR_WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "words": (
            *("SELECT", "FROM", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "AND", "OR"),
            *("NOT", "AS", "BETWEEN", "IN", "IS", "NULL", "LIKE", "DESC", "CASE", "WHEN", "THEN"),
            *("ELSE", "END", "JOIN", "USING", "ON", "DISTINCT", "TRUE", "FALSE", "WITH", MARGINALS),
        ),
        "functions": (
            *("COUNT", "COUNT_IF", "AVG", "SUM", "MEDIAN", "QUANTILE_CONT", "MIN", "MAX", "STDDEV"),
            *("VARIANCE", "HISTOGRAM", "CORR", "bin", "date_trunc", "year", "month", "clamp"),
            *("round", "abs", "lower", "upper", "length", "contains", "starts_with", "coalesce"),
        ),
    }
)
"""What the editor colours and completes."""


@dataclass(frozen=True, slots=True)
class Section:
    """Pieces of SQL for one place of a statement."""

    heading: str
    statement: str
    """With {} where a piece goes."""
    lines: tuple[tuple[str, str], ...]
    """A piece, and what it means."""


def reference(card: DataCard) -> tuple[Section, ...]:
    """The sections that the columns of a table allow."""
    names = dict(_names(card))
    found = []
    for heading, whole, lines in _SECTIONS:
        if _wanted(whole) - {""} <= names.keys():
            kept = [
                (sql.format(**names), words.format(**names))
                for sql, words in lines.items()
                if _wanted(sql) <= names.keys()
            ]
            statement = whole.format("{}", **{name: _braced(text) for name, text in names.items()})
            found += [Section(heading, statement, tuple(kept))] if kept else []
    return tuple(found)


def _wanted(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def _braced(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _names(card: DataCard) -> Iterator[tuple[str, str]]:
    """Names and values to show things by, as far as the card has them."""
    others = [c for c in card.columns.values() if c.name.lower() != (card.unit or "").lower()]
    yield "table", quoted(card.name)
    if card.unit is not None:
        yield "unit", quoted(card.unit)
    group = next((c for c in others if c.type == "text" and c.keys and c.keys[0]), None)
    if group is not None and group.keys is not None:
        yield "group", quoted(group.name)
        yield "key", "'" + str(group.keys[0]).replace("'", "''") + "'"
    number = next((c for c in others if c.number_bounds is not None), None)
    if number is not None and number.number_bounds is not None:
        low, high = number.number_bounds
        yield "number", quoted(number.name)
        yield from zip(("low", "middle", "high"), _three(low, high), strict=True)
    day = next(
        (c for c in others if c.type in ("date", "timestamp") and c.bounds is not None), None
    )
    if day is not None and day.bounds is not None:
        yield "day", quoted(day.name)
        yield "since", str(day.bounds[0])[:10]


def _three(low: Fraction, high: Fraction) -> tuple[str, str, str]:
    ends = amount(low, up=False), amount((low + high) / 2, up=False), amount(high, up=True)
    first, middle, last = (text.replace(",", "").replace("\u2212", "-") for text in ends)
    return first, middle, last


def _card_of_help() -> DataCard:
    columns = (
        Column(name="patient", type="integer"),
        Column(name="region", type="text", keys=("north", "south")),
        Column(name="cost", type="number", bounds=(0, 500)),
        Column(name="day", type="date", bounds=("2026-01-01", "2026-12-31")),
    )
    source = Source(kind="csv", paths=("visits.csv",))
    named = {column.name: column for column in columns}
    return DataCard(name="visits", source=source, unit="patient", max_rows=5, columns=named)


def reference_of_help() -> tuple[Section, ...]:
    """The sections of the page of help, about visits to a hospital."""
    return reference(_card_of_help())
