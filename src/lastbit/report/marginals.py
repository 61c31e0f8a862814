"""Contingency tables for people: bars for each one-way table, a heat map for each two-way one.

A heat map has its numbers in its cells, so that colour only repeats what is written; it has a name
for screen readers, follows the light or dark scheme, and is drawn so that letters keep their size:
one of up to five columns fits a phone (390 px), a wider one scrolls. The numbers shown in it are
whole counts from 0 up, which agree with all other tables; the table below it has the noisy ones
and their intervals too.

Checked  tests/report/test_marginals.py
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from markupsafe import Markup

from lastbit.exact import fixed, rounded_up
from lastbit.report.cells import AnswerTable, answer_table, key_words
from lastbit.report.charts import box, drawing, element, text
from lastbit.report.page import grouped, printable
from lastbit.report.plan import Reading, Record, read_record
from lastbit.report.whole import NOISE, WHOLE, shown_columns, whole_sentences
from lastbit.tables import values_to_json

_LABELS, _CELL, _ROW, _TOP = 92, 51, 30, 64
_MOST_CHARTS, _MOST_SIDE, _MOST_BARS = 40, 30, 40
_STRONGEST = 0.55  # letters stand out from the strongest colour, on light and on dark paper
_TERMINAL_TABLES, _WIDEST = 12, 100


Table: TypeAlias = tuple[list[str], list[list[Record]], list[Record]]
"""The names of its columns, their keys, and its rows in order."""


def marginal_tables(record: Record) -> list[Table]:
    """Every table in the record of an answer."""
    return tables_of(read_record(record))


def tables_of(reading: Reading) -> list[Table]:
    """The same of a record that was read."""
    keys = {key.name: values_to_json(key.values or ()) for key in reading.query.keys}
    named: dict[int, Sequence[str]] = dict(enumerate(reading.plan.marginals or ()))
    found: dict[int, list[Record]] = {}
    for row in reading.record["rows"]:
        named.setdefault(row["marginal"], row.get("columns", []))  # of a pair that was drawn
        found.setdefault(row["marginal"], []).append(row)
    return [
        (list(named[place]), [keys[name] for name in named[place]], rows)
        for place, rows in sorted(found.items())
    ]


def _error(rows: Sequence[Record]) -> str:
    """The standard error of the consistent counts of a table, rounded up."""
    return grouped(rounded_up(Fraction(rows[0]["consistent_error"]), 3))


def _grid(keys: Sequence[Sequence[Record]], rows: Sequence[Record]) -> list[list[int]]:
    """The whole counts of a two-way table, line by line."""
    wide = len(keys[1])
    return [[row["whole"] for row in rows[i : i + wide]] for i in range(0, len(rows), wide)]


# ---------------------------------------------------------------- pictures


def heat_map(
    names: Sequence[str], keys: Sequence[Sequence[Record]], rows: Sequence[Record]
) -> Markup:
    """A two-way table: the column with fewer keys lies across, to make it narrow."""
    counts = _grid(keys, rows)
    down, across, labels = names[0], names[1], (keys[0], keys[1])
    if len(keys[1]) > len(keys[0]):
        counts = [list(column) for column in zip(*counts, strict=True)]
        down, across, labels = across, down, (keys[1], keys[0])
    most = max((n for line in counts for n in line), default=0) or 1
    width = _LABELS + _CELL * len(labels[1])
    lines = [
        text(0, 16, "heading", f"{printable(down, 18)} by {printable(across, 18)}"),
        text(0, 34, "small", f"rows; standard error {_error(rows)}"),
    ]
    for j, key in enumerate(labels[1]):
        lines.append(_label(_LABELS + _CELL * (j + 0.5), _TOP - 8, "small middle", key, 7))
    for i, (key, line) in enumerate(zip(labels[0], counts, strict=True)):
        y = _TOP + _ROW * i
        lines.append(_label(_LABELS - 8, y + _ROW / 2 + 4, "small end", key, 13))
        for j, count in enumerate(line):
            x = _LABELS + _CELL * j
            share = _STRONGEST * count / most
            where = (x + 1, y + 1, _CELL - 2, _ROW - 2)
            lines += [box("track", *where), box("bar", *where, fill_opacity=f"{share:.3f}")]
            lines.append(text(x + _CELL / 2, y + _ROW / 2 + 4, "middle", _count_label(count)))
    words = (
        f"{down} by {across}: the number of rows in each of {len(rows)} cells, as written in them"
    )
    height = _TOP + _ROW * len(counts) + 6
    return drawing("chart heat", printable(words, 300), max(width, 220), height, lines, tall=True)


def _label(x: float, y: float, kind: str, key: Record, most: int) -> Markup:
    """A key, cut where it is long, whole in its title."""
    whole = key_words(key)
    if len(whole) <= most:
        return text(x, y, kind, whole)
    inner = element("title", "", whole) + Markup("{}").format(printable(whole, most))
    return element("text", kind, Markup(inner), x=x, y=y)


def _count_label(count: int) -> str:
    """A count that fits its cell: at most six letters.

    >>> _count_label(12345), _count_label(1234567), _count_label(10**12)
    ('12,345', '1.23M', '1e+12')
    """
    if count < 100_000:
        return f"{count:,}"
    if count < 10**9:
        return f"{count / 10**6:.3g}M" if count >= 10**6 else f"{count // 1000}k"
    return f"{count:.3g}"


def bars(name: str, keys: Sequence[Record], rows: Sequence[Record]) -> Markup:
    """A one-way table: a bar from 0 for each key, with its count."""
    most = max((row["whole"] for row in rows), default=0) or 1
    width, room = 346, 180
    lines = [
        text(0, 16, "heading", printable(name, 34)),
        text(0, 34, "small", f"rows; standard error {_error(rows)}"),
    ]
    for i, (key, row) in enumerate(zip(keys, rows, strict=True)):
        y = 46 + 24 * i
        lines.append(_label(_LABELS - 8, y + 15, "small end", key, 13))
        lines.append(box("bar", _LABELS, y + 4, max(room * row["whole"] / most, 0.5), 14))
        end = _LABELS + room * row["whole"] / most + 6
        lines.append(text(end, y + 15, "small", f"{row['whole']:,}"))
    words = printable(f"{name}: the number of rows for each of {len(rows)} keys", 300)
    return drawing("chart heat", words, width, 46 + 24 * len(rows) + 6, lines, tall=True)


def marginal_charts(tables: Sequence[Table]) -> list[Markup]:
    """A picture of every table that is small enough to be read."""
    charts = []
    for names, keys, rows in tables[:_MOST_CHARTS]:
        if len(names) == 1 and len(rows) <= _MOST_BARS:
            charts.append(bars(names[0], keys[0], rows))
        elif len(names) == 2 and max(map(len, keys)) <= _MOST_SIDE:
            charts.append(heat_map(names, keys, rows))
    return charts


# ---------------------------------------------------------------- words


def long_table(record: Record, tables: Sequence[Table], *, most: int) -> AnswerTable:
    """A line for every cell of every table; the noise and the whole are those of `noisy`."""
    rows_in_order = [row for _, _, rows in tables for row in rows]
    ((_, noisy),) = shown_columns({**record, "rows": rows_in_order})
    cells, lines = iter(noisy), []
    for names, _, rows in tables:
        for row in rows:
            shown = next(cells)
            keys = ", ".join(
                f"{printable(name, 40)} = {key_words(key, 40)}"
                for name, key in zip(names, row["keys"], strict=True)
            )
            count = fixed(Fraction(row["consistent"]), 1, "near")
            numbers = (f"{row['whole']:,}", count, _error([row]), shown.value, shown.noise)
            lines.append((keys, *numbers, shown.whole))
    headings = ("cell", "rows", "consistent", "standard error", "noisy", NOISE, WHOLE)
    return answer_table(headings, lines[:most], words=1, left_out=max(len(lines) - most, 0))


def cross_table(
    names: Sequence[str], keys: Sequence[Sequence[Record]], rows: Sequence[Record]
) -> list[tuple[str, ...]]:
    """A table as people write one: whole counts, with the sums of rows and columns."""
    if len(names) == 1:
        lines = [(printable(names[0], 40), "rows")]
        lines += [
            (key_words(k, 40), f"{row['whole']:,}") for k, row in zip(keys[0], rows, strict=True)
        ]
        return [*lines, ("all", f"{sum(row['whole'] for row in rows):,}")]
    counts = _grid(keys, rows)
    head = (f"{printable(names[0], 30)} / {printable(names[1], 30)}",)
    found = [(*head, *(key_words(key, 16) for key in keys[1]), "all")]
    for key, line in zip(keys[0], counts, strict=True):
        found.append((key_words(key, 40), *(f"{n:,}" for n in line), f"{sum(line):,}"))
    sums = [sum(column) for column in zip(*counts, strict=True)]
    return [*found, ("all", *(f"{n:,}" for n in sums), f"{sum(sums):,}")]


def marginal_lines(tables: Sequence[Table]) -> list[str]:
    """Every table with its sums, for a terminal."""
    lines: list[str] = []
    for names, keys, rows in tables[:_TERMINAL_TABLES]:
        heading, *cells = cross_table(names, keys, rows)
        numbers = tuple(range(1, len(heading)))
        table = AnswerTable(headings=heading, rows=tuple(cells), numbers=numbers)
        if sum(table.widths) + 2 * len(heading) > _WIDEST:
            columns = " by ".join(printable(name, 40) for name in names)
            lines += [f"{columns}: {len(rows):,} cells; to_csv() or the report has them", ""]
        else:
            lines += [*table.lines, f"standard error {_error(rows)}", ""]
    left = len(tables) - _TERMINAL_TABLES
    return [*lines, f"... and {left} more tables", ""] if left > 0 else lines


def marginal_numbers(reading: Reading, *, most: int) -> dict[str, Any]:
    """What was measured, and the tables: drawn, and in one long table."""
    tables = tables_of(reading)
    total = sum(row["whole"] for row in tables[0][2])
    measures = [
        (
            " by ".join(printable(name, 60) for name in names),
            f"the number of rows in each of {len(rows):,} cells",
        )
        for names, _, rows in tables
    ]
    return {
        "measures": measures,
        "shown": True,
        "figures": [],
        "charts": marginal_charts(tables),
        "cut": None,
        "table": long_table(reading.record, tables, most=most),
        "totals": [("rows", f"{total:,}")],
        "whole": whole_sentences(reading),
        "bands": [],
    }
