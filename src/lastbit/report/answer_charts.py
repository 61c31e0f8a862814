"""Charts of an answer: a panel for each measure, a line for each group, an interval at every mark.

Counts and sums are bars from 0; means, quantiles and the like are dots on an axis that need not
begin at 0. A histogram has one bar for each range, all equally wide, since ranges are what was
asked for. The pieces are SVG without a style of their own: the page gives classes their colours.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Any

from lastbit.report.answer_tables import shown_cell
from lastbit.report.answer_words import key_text
from lastbit.report.svg import Scale, line, linear, text
from lastbit.report.words import amount, printable

WIDTH = 880
MOST_GROUPS, MOST_HISTOGRAMS, PANELS_A_ROW = 40, 12, 3
ROW, TOP, BOTTOM, GAP = 26, 46, 30, 34
LETTER = 6.9  # the width of a letter of 12.5 px, about
FROM_ZERO = ("count", "count_units", "sum")
BARS_TOP, BARS_HEIGHT = 40, 190


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel:
    """One measure of all groups."""

    title: str
    bars: bool
    cells: Sequence[Mapping[str, Any]]
    left: float
    right: float


def answer_charts(record: Mapping[str, Any]) -> list[str]:
    """The charts of an answer, as SVG elements; none where there is nothing to compare."""
    columns = [column for column in record["columns"] if column["role"] == "value"]
    rows = record["rows"]
    plain = [i for i, column in enumerate(columns) if column["function"] != "histogram"]
    charts = []
    if len(rows) > 1:
        for start in range(0, len(plain), PANELS_A_ROW):
            chosen = plain[start : start + PANELS_A_ROW]
            charts.append(_groups(rows[:MOST_GROUPS], columns, chosen))
    binned: dict[str, list[int]] = {}
    for i, column in enumerate(columns):
        if column["function"] == "histogram":
            binned.setdefault(column["aggregate"], []).append(i)
    for name, places in binned.items():
        charts += _histograms(rows, columns, name, places)
    return charts


def ticks(low: float, high: float, *, most: int = 5) -> list[float]:
    """Round numbers within a range.

    >>> ticks(0, 230), ticks(0.12, 0.18)
    ([0.0, 50.0, 100.0, 150.0, 200.0], [0.12, 0.14, 0.16, 0.18])
    """
    span = high - low
    size = 10.0 ** math.floor(math.log10(span / most))
    step = next(m * size for m in (1, 2, 2.5, 5, 10) if span / (m * size) <= most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def _tick_text(value: float) -> str:
    if value and not 1e-4 <= abs(value) < 1e9:
        return f"{value:.3g}"
    return f"{value:,.10g}"


# ---------------------------------------------------------------- groups


def _groups(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[Mapping[str, Any]], chosen: list[int]
) -> str:
    labels = [_label(row, 34) for row in rows]
    left = min(max(map(len, labels)) * LETTER + 22, 250.0)
    wide = (WIDTH - left - GAP * (len(chosen) - 1)) / len(chosen)
    panels = [
        _Panel(
            title=printable(columns[place]["name"], 34),
            bars=columns[place]["function"] in FROM_ZERO,
            cells=[row["cells"][place] for row in rows],
            left=left + i * (wide + GAP),
            right=left + i * (wide + GAP) + wide,
        )
        for i, place in enumerate(chosen)
    ]
    height = TOP + ROW * len(rows) + BOTTOM
    names = ", ".join(panel.title for panel in panels)
    pieces: list[str] = []
    for i, label in enumerate(labels):
        pieces.append(text(left - 12, _middle(i) + 4, "label end", label))
    for panel in panels:
        pieces += _panel(panel, len(rows))
    return _svg(f"{names}, by group, with 95 % intervals", height, pieces)


def _panel(panel: _Panel, count: int) -> Iterator[str]:
    words = [shown_cell(cell) for cell in panel.cells]
    said = [w.value if w.value == "unknown" else f"{w.value} {w.interval}" for w in words]
    if any(" to " in w.interval for w in words):
        said = [w.value for w in words]
    room = min(max(map(len, said)) * LETTER + 14, (panel.right - panel.left) * 0.55)
    low, high = _domain(panel)
    across = linear((low, high), (panel.left + 4, panel.right - room))
    floor = TOP + ROW * count
    yield text(panel.left, 18, "heading", panel.title)
    for value in ticks(low, high, most=5 if panel.right - panel.left - room > 240 else 3):
        x = across(value)
        yield line("origin" if value == 0 else "grid", x, TOP - 8, x, floor)
        yield text(x, floor + 17, "tick middle", _tick_text(value))
    for i, cell in enumerate(panel.cells):
        yield from _mark(panel, cell, across, _middle(i), floor=low)
        yield text(panel.right, _middle(i) + 4, "label end", said[i])


def _mark(
    panel: _Panel, cell: Mapping[str, Any], across: Scale, y: float, *, floor: float
) -> Iterator[str]:
    value = cell["value"]
    if panel.bars and value is not None:
        start, end = sorted((across(max(0.0, floor)), across(float(value))))
        yield (
            f'<rect class="bar" x="{start:.2f}" y="{y - 7:.2f}" '
            f'width="{max(end - start, 0.5):.2f}" height="14"/>'
        )
    if cell["low"] is not None and cell["high"] is not None:
        yield from _whisker(across(float(cell["low"])), across(float(cell["high"])), y)
    if not panel.bars and value is not None:
        yield f'<circle class="dot" cx="{across(float(value)):.2f}" cy="{y:.2f}" r="4.5"/>'


def _whisker(start: float, end: float, y: float) -> Iterator[str]:
    yield line("whisker", start, y, end, y)
    for x in (start, end):
        yield line("whisker", x, y - 4, x, y + 4)


def _domain(panel: _Panel) -> tuple[float, float]:
    """From the least end of an interval to the greatest, 0 included where bars need it."""
    ends = [
        float(number)
        for cell in panel.cells
        for number in (cell["low"], cell["high"], cell["value"])
        if number is not None and math.isfinite(number)
    ]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    if panel.bars or 0 <= low <= 0.4 * high:
        low, high = min(low, 0.0), max(high, 0.0)
    if high <= low:
        return low - (abs(low) or 1.0), high + (abs(high) or 1.0)
    pad = (high - low) * 0.03
    return (low if low == 0 else low - pad), (high if high == 0 else high + pad)


def _middle(row: int) -> float:
    return TOP + ROW * row + ROW / 2


def _label(row: Mapping[str, Any], most: int) -> str:
    keys = " · ".join(key_text(key, most) for key in row["keys"])
    return printable(keys, most)


# ---------------------------------------------------------------- histograms


def _histograms(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[Mapping[str, Any]],
    name: str,
    places: list[int],
) -> list[str]:
    """One chart for each group, all to one scale."""
    shown = rows[:MOST_HISTOGRAMS]
    edges = [columns[places[0]]["bin"][0], *(columns[place]["bin"][1] for place in places)]
    words = [amount(Fraction(edge), up=True) for edge in edges]
    groups = [[row["cells"][place] for place in places] for row in shown]
    tallest = max((float(cell["high"]) for cells in groups for cell in cells), default=1.0)
    lowest = min((float(cell["low"]) for cells in groups for cell in cells), default=0.0)
    domain = (min(lowest, 0.0), max(tallest, 1.0))
    small = len(shown) > 1
    return [
        _bars(
            f"{printable(name, 40)}, {_label(row, 40)}" if row["keys"] else printable(name, 40),
            cells,
            words,
            domain,
            width=430 if small else WIDTH,
        )
        for row, cells in zip(shown, groups, strict=True)
    ]


def _bars(
    title: str,
    cells: Sequence[Mapping[str, Any]],
    edges: Sequence[str],
    domain: tuple[float, float],
    *,
    width: int,
) -> str:
    marks = ticks(*domain, most=4)
    left = max(len(_tick_text(mark)) for mark in marks) * LETTER + 12
    slot = (width - left - 14) / len(cells)
    up = linear((domain[0], domain[1] * 1.02), (BARS_TOP + BARS_HEIGHT, BARS_TOP))
    pieces = [text(0, 18, "heading", title)]
    for mark in marks:
        y = up(mark)
        pieces.append(line("origin" if mark == 0 else "grid", left, y, width - 14, y))
        pieces.append(text(left - 8, y + 4, "tick end", _tick_text(mark)))
    for i, cell in enumerate(cells):
        x, value = left + slot * i, float(cell["value"])
        top, foot = sorted((up(value), up(0.0)))
        pieces.append(
            f'<rect class="bar" x="{x + slot * 0.06:.2f}" y="{top:.2f}" '
            f'width="{slot * 0.88:.2f}" height="{max(foot - top, 0.5):.2f}"/>'
        )
        middle, cap = x + slot / 2, min(slot * 0.2, 5.0)
        low, high = up(float(cell["low"])), up(float(cell["high"]))
        pieces.append(line("whisker", middle, low, middle, high))
        pieces += [line("whisker", middle - cap, y, middle + cap, y) for y in (low, high)]
    pieces += _edge_labels(edges, left, slot)
    return _svg(f"{title}: rows in each range, with 95 % intervals", 268, pieces, width=width)


def _edge_labels(edges: Sequence[str], left: float, slot: float) -> Iterator[str]:
    """The edges below the bars, as many as have room."""
    longest = max(map(len, edges)) * LETTER + 10
    every = max(math.ceil(longest / slot), 1)
    floor = BARS_TOP + BARS_HEIGHT
    for i, edge in enumerate(edges):
        if i % every == 0:
            x = left + slot * i
            yield line("axis", x, floor, x, floor + 4)
            yield text(x, floor + 19, "tick middle", edge)


def _svg(name: str, height: float, pieces: Sequence[str], *, width: int = WIDTH) -> str:
    return "\n".join(
        (
            f'<svg class="chart" viewBox="0 0 {width} {height:.0f}" width="{width}" '
            f'role="img" aria-label="{escape(name)}">',
            *pieces,
            "</svg>",
        )
    )
