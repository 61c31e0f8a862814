"""Charts of a released answer: groups as bars or dots, times as lines, ranges as histograms.

Every mark has its noise interval as a thin line or band, and a lighter band for the whole interval
where that is known. Each chart is drawn twice, for a page and for a phone, where one
measure has the whole width and names stand above their bars; the style sheet shows one of them. In
a notebook a chart is a picture of its own, which touches nothing around it.

| keys | drawn as |
|---|---|
| dates, `2026-01`, or whole numbers that are years, months, hours ... | lines over a time axis |
| the same and one other with a few values | a line for each of those |
| anything else | counts and sums as bars from 0; means and quantiles as dots |

A histogram has its ranges to scale. Where they are not equally wide, heights are rows for the same
width, so that areas are rows; where one would be too narrow to be seen, all are drawn equally wide.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from itertools import pairwise
from operator import itemgetter
from string import Template

from markupsafe import Markup

from lastbit.report.cells import key_words, shown_cell, value_columns
from lastbit.report.charts import (
    Axis,
    Frame,
    Scale,
    Ticks,
    box,
    colours,
    document,
    drawing,
    element,
    line,
    path,
    round_ticks,
    text,
    tick_label,
)
from lastbit.report.page import amount, printable
from lastbit.report.plan import Reading, Record
from lastbit.report.whole import band_words, has_whole
from lastbit.tables import Call, ColumnName, GroupKey

MOST_GROUPS, MOST_HISTOGRAMS = 40, 12
_WIDE, _NARROW, _HALF = 880, 358, 430
_PANELS_A_ROW = 3
_ROW, _NARROW_ROW, _TOP, _BOTTOM, _GAP = 26, 42, 46, 30, 34
_WHOLE = ("whole_low", "whole_high")
_LETTER = 6.9  # the width of a letter of 12.5 px, about
_FROM_ZERO = ("count", "count_units", "sum")
_BARS_TOP, _BARS_HEIGHT = 40, 190
_THINNEST = 3.0  # pixels of a range that is drawn to scale
_MOST_TIMES, _MOST_SERIES, _FEWEST_TIMES = 2000, 6, 3
_MOST_DOTS = 80
_DASHES = ("", "", "7 3", "2 3", "9 3 2 3", "4 4", "12 4")
_PERIODS = ("year", "quarter", "month", "week", "weekday", "day", "hour", "minute", "dow", "doy")
_ISO = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?")
# what lines need beyond the look of all charts; style.css says the same of pages
_LINES = Template(
    "svg polygon.band { fill-opacity: 0.16; stroke: none; }"
    " svg rect.whole { fill: $bar; fill-opacity: 0.2; } svg polygon.whole { fill-opacity: 0.13; }"
    " svg .trend { fill: none; stroke-width: 2; stroke-linejoin: round; }"
    " svg .tone0 { stroke: $bar; } svg .band.tone0, svg .spot.tone0 { fill: $bar; }"
    + "".join(
        f" svg .tone{i} {{ stroke: $curve{i}; }}"
        f" svg .band.tone{i}, svg .spot.tone{i} {{ fill: $curve{i}; }}"
        for i in range(1, _MOST_SERIES + 1)
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A chart: what a screen reader says, its size, and its marks."""

    name: str
    width: float
    height: float
    lines: Sequence[Markup]


def answer_charts(reading: Reading) -> list[Markup]:
    """The charts for a page, each once for a wide window and once for a narrow one."""
    return [
        drawing(kind, one.name, one.width, one.height, one.lines)
        for kind, narrow in (("chart", False), ("narrow chart", True))
        for one in drawings(reading, narrow=narrow)
    ]


def in_notebook(reading: Reading) -> list[tuple[str, str]]:
    """The charts as addresses of pictures that hold themselves, each with its name."""
    light, dark = (_LINES.substitute(colours(dark)) for dark in (False, True))
    style = f"<style>{light} @media (prefers-color-scheme: dark) {{ {dark} }}</style>"
    found = []
    for one in drawings(reading):
        size = {"width": round(one.width), "height": round(one.height)}
        picture = document(one.name, **size, lines=[Markup(style), *one.lines])
        coded = base64.b64encode(picture.encode()).decode()
        found.append((one.name, f"data:image/svg+xml;base64,{coded}"))
    return found


def drawings(reading: Reading, *, narrow: bool = False) -> list[Drawing]:
    """The charts of an answer; none where there is nothing to compare."""
    columns, rows = value_columns(reading.record), reading.record["rows"]
    plain = [i for i, column in enumerate(columns) if column["function"] != "histogram"]
    found: list[Drawing] = []
    times = _times(reading)
    if times is not None:
        found += [_lines(times, columns[place], place, narrow=narrow) for place in plain]
    elif len(rows) > 1 and narrow:
        found += [_narrow_groups(rows[:MOST_GROUPS], columns[place], place) for place in plain]
    elif len(rows) > 1:
        for start in range(0, len(plain), _PANELS_A_ROW):
            chosen = plain[start : start + _PANELS_A_ROW]
            found.append(_groups(rows[:MOST_GROUPS], columns, chosen))
    binned: dict[str, list[int]] = {}
    for i, column in enumerate(columns):
        if column["function"] == "histogram":
            binned.setdefault(column["aggregate"], []).append(i)
    for name, places in binned.items():
        shown = rows[:MOST_HISTOGRAMS]
        found += _histograms(shown, columns, printable(name, 40), places, narrow=narrow)
    return found


def charted(reading: Reading) -> int | None:
    """How many groups the charts show, where those are not all."""
    most, record = MOST_GROUPS, reading.record
    if any(column["function"] == "histogram" for column in record["columns"]):
        most = MOST_HISTOGRAMS
    elif _times(reading) is not None:
        return None
    return most if len(record["rows"]) > most else None


def _kinds(rows: Sequence[Record]) -> str:
    """Which intervals are drawn, for those who cannot see them."""
    return "noise and whole intervals" if band_words({"rows": rows}) else "noise intervals"


def _group(row: Record, most: int) -> str:
    return printable(" · ".join(key_words(key, most) for key in row["keys"]), most)


# ---------------------------------------------------------------- groups


def _groups(rows: Sequence[Record], columns: Sequence[Record], chosen: list[int]) -> Drawing:
    labels = [_group(row, 34) for row in rows]
    left = min(max(map(len, labels)) * _LETTER + 22, 250.0)
    wide = (_WIDE - left - _GAP * (len(chosen) - 1)) / len(chosen)
    middles = [_TOP + _ROW * i + _ROW / 2 for i in range(len(rows))]
    lines = [text(left - 12, y + 4, "end", label) for y, label in zip(middles, labels, strict=True)]
    names = [printable(columns[place]["name"], 34) for place in chosen]
    for i, (name, place) in enumerate(zip(names, chosen, strict=True)):
        start = left + i * (wide + _GAP)
        cells = [row["cells"][place] for row in rows]
        bars = columns[place]["function"] in _FROM_ZERO
        lines.append(text(start, 18, "heading", name))
        words = _labels(cells)
        room = min(max(map(len, words)) * _LETTER + 14, wide * 0.55)
        frame = _across(cells, start + 4, _TOP - 8, wide - room - 4, _ROW, bars=bars)
        lines += frame.lines()
        for cell, y, label in zip(cells, middles, words, strict=True):
            lines += _mark(cell, frame, y, bars=bars)
            lines.append(text(start + wide, y + 4, "end", label))
    words_of_all = f"{', '.join(names)}, by group, with {_kinds(rows)}"
    height = _TOP + _ROW * len(rows) + _BOTTOM
    return Drawing(name=words_of_all, width=_WIDE, height=height, lines=lines)


def _narrow_groups(rows: Sequence[Record], column: Record, place: int) -> Drawing:
    """One measure: above each bar the name of its group and the number."""
    name = printable(column["name"], 34)
    cells = [row["cells"][place] for row in rows]
    bars = column["function"] in _FROM_ZERO
    frame = _across(cells, 12, 32, _NARROW - 24, _NARROW_ROW, bars=bars)
    lines = [text(0, 18, "heading", name), *frame.lines()]
    for i, (row, cell, label) in enumerate(zip(rows, cells, _labels(cells), strict=True)):
        top = 32 + _NARROW_ROW * i
        letters = max(int((_NARROW - len(label) * _LETTER - 20) / _LETTER), 6)
        lines.append(text(0, top + 18, "small", _group(row, letters)))
        lines.append(text(_NARROW, top + 18, "end", label))
        lines += _mark(cell, frame, top + 31, bars=bars)
    words = f"{name}, by group, with {_kinds(rows)}"
    return Drawing(name=words, width=_NARROW, height=frame.floor + _BOTTOM, lines=lines)


def _across(
    cells: Sequence[Record], left: float, top: float, width: float, row: float, *, bars: bool
) -> Frame:
    """A frame with the numbers of these cells across, and a row for each."""
    domain = _domain(cells, bars=bars)
    across = Axis(ends=domain, ticks=_fitting(domain, width))
    up = Axis(ends=(0, 1), ticks=(), grid=False)
    return Frame(left, top, width, row * len(cells) + 8, across, up)


def _fitting(domain: tuple[float, float], width: float) -> Ticks:
    """Round numbers across a frame of this width, as many as do not touch each other."""
    ticks: Ticks = ()
    for most in (5, 4, 3, 2, 1):
        ticks = round_ticks(*domain, most=most)
        longest = max((len(label) for _, label in ticks), default=0) * _LETTER + 8
        step = ticks[1][0] - ticks[0][0] if len(ticks) > 1 else math.inf
        if step / (domain[1] - domain[0]) * width >= longest:
            break
    return ticks


def _labels(cells: Sequence[Record]) -> list[str]:
    """The numbers with their intervals, where those are short for all of them."""
    words = [shown_cell(cell) for cell in cells]
    if any(" to " in w.noise for w in words):
        return [w.value for w in words]
    return [w.value if w.value == "unknown" else f"{w.value} {w.noise}" for w in words]


def _mark(cell: Record, frame: Frame, y: float, *, bars: bool) -> Iterator[Markup]:
    value, low_end = cell["value"], frame.across.ends[0]
    if has_whole(cell):
        start, end = (frame.x(float(cell[end])) for end in _WHOLE)
        yield box("whole", start, y - 9, end - start, 18)
    if bars and value is not None:
        start, end = sorted((frame.x(max(0.0, low_end)), frame.x(float(value))))
        yield box("bar", start, y - 7, max(end - start, 0.5), 14)
    if cell["low"] is not None and cell["high"] is not None:
        low, high = frame.x(float(cell["low"])), frame.x(float(cell["high"]))
        yield line("whisker", low, y, high, y)
        yield from (line("whisker", x, y - 4, x, y + 4) for x in (low, high))
    if not bars and value is not None:
        yield element("circle", "dot", cx=frame.x(float(value)), cy=y, r=4.5)


def _domain(cells: Sequence[Record], *, bars: bool) -> tuple[float, float]:
    """From the least end of an interval to the greatest, 0 included where bars need it."""
    numbers = (cell.get(end) for cell in cells for end in ("low", "high", "value", *_WHOLE))
    ends = [float(n) for n in numbers if n is not None and math.isfinite(n)]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    if bars or 0 <= low <= 0.4 * high:
        low, high = min(low, 0.0), max(high, 0.0)
    if high <= low:
        return low - (abs(low) or 1.0), high + (abs(high) or 1.0)
    pad = (high - low) * 0.03
    return (low if low == 0 else low - pad), (high if high == 0 else high + pad)


# ---------------------------------------------------------------- times


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """Rows over a time axis: by series, places on the axis with the cells of the row there."""

    series: dict[str, list[tuple[int, Sequence[Record]]]]
    name: str
    calendar: bool
    """Whether places are days, counted as `date.toordinal` does."""


def _times(reading: Reading) -> _Times | None:
    """The rows as series over time, if a key is one and the others are few."""
    rows, keys = reading.record["rows"], reading.query.keys
    if not _FEWEST_TIMES <= len(rows) <= _MOST_TIMES or not 1 <= len(keys) <= 2:
        return None
    names = [c["name"] for c in reading.record["columns"] if c["role"] == "key"]
    if names != [key.name for key in keys]:  # SELECT shows something else
        return None
    for place, key in enumerate(keys):
        places = [_moment(row["keys"][place], key) for row in rows]
        known = {moment for moment in places if moment is not None}
        calendars = {calendar for _, calendar in known}
        if len(known) < _FEWEST_TIMES or len(calendars) != 1:
            continue
        if any(
            m is None and r["keys"][place]["value"] is not None
            for m, r in zip(places, rows, strict=True)
        ):
            continue
        series: dict[str, list[tuple[int, Sequence[Record]]]] = {}
        for moment, row in zip(places, rows, strict=True):
            others = [key_words(k, 24) for i, k in enumerate(row["keys"]) if i != place]
            if moment is not None:
                series.setdefault("".join(others), []).append((moment[0], row["cells"]))
        if len(series) <= _MOST_SERIES:
            ordered = {name: sorted(points, key=itemgetter(0)) for name, points in series.items()}
            return _Times(series=ordered, name=printable(key.name, 40), calendar=calendars.pop())
    return None


def _moment(value: Record, key: GroupKey) -> tuple[int, bool] | None:
    """Where a key stands in time, and whether that is a day of the calendar; None if nowhere."""
    known = value["value"]
    if value["type"] in ("date", "text") and isinstance(known, str):
        match = _ISO.fullmatch(known)
        try:
            if match is None:
                return None
            year, month, day = match.groups()
            return date(int(year), int(month), int(day or 1)).toordinal(), True
        except ValueError:
            return None
    period = key.name
    if isinstance(key.expression, Call):
        period = key.expression.function
    elif isinstance(key.expression, ColumnName):
        period = key.expression.name
    if isinstance(known, int) and not isinstance(known, bool) and period.lower() in _PERIODS:
        return known, False
    return None


def _lines(times: _Times, column: Record, place: int, *, narrow: bool) -> Drawing:
    name, width = printable(column["name"], 40), _NARROW if narrow else _WIDE
    cells = [cells[place] for points in times.series.values() for _, cells in points]
    domain = _domain(cells, bars=column["function"] in _FROM_ZERO)
    heights = round_ticks(*domain, most=4)
    moments = sorted({moment for points in times.series.values() for moment, _ in points})
    left = max(len(label) for _, label in heights) * _LETTER + 12
    several = len(times.series) > 1
    top = _BARS_TOP + (20 * math.ceil(len(times.series) / (2 if narrow else 4)) if several else 0)
    room = width - left - (38 if times.calendar else 24)
    ends = (float(moments[0]), float(moments[-1]))
    most = max(int(room / (11 * _LETTER)), 2)
    ticks = _days(moments, most) if times.calendar else _whole_ticks(*ends, most=most)
    across = Axis(ends=ends, ticks=ticks, label=times.name, grid=False)
    frame = Frame(left, top, room, _BARS_HEIGHT, across, Axis(ends=domain, ticks=heights))
    lines = [text(0, 18, "heading", name), *frame.lines()]
    for i, (series, points) in enumerate(times.series.items()):
        number = i + 1 if several else 0
        if several:
            lines += _legend(series, number, narrow=narrow)
        lines += _line([(moment, cells[place]) for moment, cells in points], frame, number)
    words = f"{name} over {times.name}, with {_kinds([{'cells': cells}])}"
    return Drawing(name=words, width=width, height=top + _BARS_HEIGHT + 50, lines=lines)


def _legend(series: str, number: int, *, narrow: bool) -> Iterator[Markup]:
    down, across = divmod(number - 1, 2 if narrow else 4)
    x, y = across * (176 if narrow else 210), 40 + 20 * down
    yield path(
        "polyline", f"trend tone{number}", [(x, y - 4), (x + 22, y - 4)], dashes=_DASHES[number]
    )
    yield text(x + 28, y, "small", printable(series, 18 if narrow else 24))


def _line(points: Sequence[tuple[int, Record]], frame: Frame, number: int) -> Iterator[Markup]:
    """Bands between the ends of the intervals, the line, and its points if they are few.

    Where a number is unknown both have a gap.
    """
    x, y, tone = frame.x, frame.y, f"tone{number}"
    for kind, ends in (("whole band", _WHOLE), ("band", ("low", "high"))):
        for piece in _pieces(points, *ends):
            ahead = [(x(moment), y(float(cell[ends[0]]))) for moment, cell in piece]
            back = [(x(moment), y(float(cell[ends[1]]))) for moment, cell in reversed(piece)]
            yield path("polygon", f"{kind} {tone}", [*ahead, *back])
    for piece in _pieces(points, "value"):
        places = [(x(moment), y(float(cell["value"]))) for moment, cell in piece]
        yield path("polyline", f"trend {tone}", places, dashes=_DASHES[number])
    if len(points) <= _MOST_DOTS:
        for moment, cell in points:
            if cell["value"] is not None:
                y_there = y(float(cell["value"]))
                yield element("circle", f"spot {tone}", cx=x(moment), cy=y_there, r=2.8)


def _pieces(
    points: Sequence[tuple[int, Record]], *fields: str
) -> Iterator[list[tuple[int, Record]]]:
    """Stretches in which all of these are known."""
    piece: list[tuple[int, Record]] = []
    for point in (*points, None):
        if point is not None and all(point[1].get(field) is not None for field in fields):
            piece.append(point)
            continue
        if piece:
            yield piece
        piece = []


def _days(moments: Sequence[int], most: int) -> Ticks:
    """Years, months or days of the calendar, whichever are a few."""
    first, last = date.fromordinal(moments[0]), date.fromordinal(moments[-1])
    years = [date(year, 1, 1) for year in range(first.year, last.year + 1)]
    months = [date(y.year, month, 1) for y in years for month in range(1, 13)]
    for days, form in ((years, "%Y"), (months, "%Y-%m")):
        inside = [day for day in days if first <= day <= last]
        if len(inside) > _FEWEST_TIMES:
            every = math.ceil(len(inside) / most)
            return tuple((float(d.toordinal()), d.strftime(form)) for d in inside[::every])
    step = max(math.ceil((moments[-1] - moments[0]) / most), 1)
    shown = range(moments[0], moments[-1] + 1, step)
    return tuple((float(day), date.fromordinal(day).isoformat()) for day in shown)


def _whole_ticks(low: float, high: float, *, most: int) -> Ticks:
    step = max(math.ceil((high - low) / most), 1)
    return tuple((float(n), str(n)) for n in range(int(low), int(high) + 1, step))


# ---------------------------------------------------------------- histograms


def _histograms(
    rows: Sequence[Record],
    columns: Sequence[Record],
    name: str,
    places: list[int],
    *,
    narrow: bool,
) -> Iterator[Drawing]:
    """One chart for each group, all to one scale."""
    edges = [Fraction(columns[places[0]]["bin"][0])]
    edges += [Fraction(columns[place]["bin"][1]) for place in places]
    width = _NARROW if narrow else _HALF if len(rows) > 1 else _WIDE
    widths = [high - low for low, high in pairwise(edges)]
    to_scale = float(min(widths) / (edges[-1] - edges[0])) * (width - 60) >= _THINNEST
    shares = [float(min(widths) / w) if to_scale else 1.0 for w in widths]
    groups = [
        [_scaled(row["cells"][p], s) for p, s in zip(places, shares, strict=True)] for row in rows
    ]
    ends = [number for cells in groups for cell in cells for number in cell.values()]
    domain = (min([0.0, *ends]), max([1.0, *ends]) * 1.02)
    heights = round_ticks(*domain, most=4)
    left = max(len(label) for _, label in heights) * _LETTER + 12
    labels = [amount(edge, up=True) for edge in edges]
    room = width - left - max(14.0, len(labels[-1]) * _LETTER / 2 + 2)
    starts = [float(edge) for edge in edges] if to_scale else [float(i) for i in range(len(edges))]
    across = Axis(ends=(starts[0], starts[-1]), ticks=(), grid=False)
    ticks = _apart(starts, labels, across.scale(left, left + room))
    across = replace(across, ticks=ticks, label=_scale_words(widths, to_scale))
    frame = Frame(left, _BARS_TOP, room, _BARS_HEIGHT, across, Axis(ends=domain, ticks=heights))
    for row, cells in zip(rows, groups, strict=True):
        title = f"{name}, {_group(row, 40)}" if row["keys"] else name
        lines = [text(0, 18, "heading", title), *frame.lines()]
        for (start, end), cell in zip(pairwise(starts), cells, strict=True):
            lines += _range_bar(frame, frame.x(start), frame.x(end), cell)
        words = f"{title}: rows in each range, with {_kinds([row])}"
        height = frame.floor + (58 if across.label else 38)
        yield Drawing(name=words, width=width, height=height, lines=lines)


def _scaled(cell: Record, share: float) -> dict[str, float]:
    fields = ("value", "low", "high", *(_WHOLE if has_whole(cell) else ()))
    return {field: float(cell[field]) * share for field in fields}


def _scale_words(widths: Sequence[Fraction], to_scale: bool) -> str:
    """What the heights are, where they are not rows."""
    if len(set(widths)) == 1:
        return ""
    if not to_scale:
        return "ranges are not to scale"
    return f"height: rows for each {tick_label(float(min(widths)))} of width"


def _apart(places: Sequence[float], labels: Sequence[str], scale: Scale) -> Ticks:
    """As many labels of edges as do not touch each other."""
    found: list[tuple[float, str]] = []
    free = -math.inf
    for place, label in zip(places, labels, strict=True):
        half = len(label) * _LETTER / 2
        if scale(place) - half >= free:
            found.append((place, label))
            free = scale(place) + half + 8
    return tuple(found)


def _range_bar(frame: Frame, left: float, right: float, cell: Record) -> Iterator[Markup]:
    gap = min((right - left) * 0.06, 2.0)
    if has_whole(cell):
        top, foot = sorted(frame.y(cell[end]) for end in _WHOLE)
        yield box("whole", left + gap, top, right - left - 2 * gap, foot - top)
    top, foot = sorted((frame.y(cell["value"]), frame.y(0.0)))
    yield box("bar", left + gap, top, right - left - 2 * gap, max(foot - top, 0.5))
    middle, cap = (left + right) / 2, min((right - left) * 0.2, 5.0)
    low, high = frame.y(cell["low"]), frame.y(cell["high"])
    yield line("whisker", middle, low, middle, high)
    yield from (line("whisker", middle - cap, y, middle + cap, y) for y in (low, high))
