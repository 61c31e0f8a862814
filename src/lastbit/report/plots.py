"""Pictures: two series against each other, panel by panel, as one self-contained SVG text.

No plotting library and no external reference: fonts are the reader's own. The two series differ in
lightness, hue and shape; `svg.py` says how colours are chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias, assert_never

from lastbit.report.svg import Scale, document, line, linear, text

Point: TypeAlias = tuple[float, float]

WIDTH, LEFT, RIGHT = 880, 64, 24
PANEL_TOP, CHART_TOP, CHART_HEIGHT, BELOW = 64, 76, 150, 66
BAR_SHARE = 0.4  # of the step between two places


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One of the two sides: its name and its points (place, height)."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stems:
    """A thin line and a head at every point: for laws on a fine grid."""

    first: Series
    second: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Two bars side by side at every place, with an optional word above some places."""

    first: Series
    second: Series
    over: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Zone:
    """A shaded range of places and what it means."""

    start: float
    end: float
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One chart with its title, its verdict and what the reader should see in it."""

    title: str
    verdict: str
    good: bool
    words: str
    marks: Stems | Bars
    places: tuple[float, float]
    ticks: tuple[tuple[float, str], ...]
    axis: str
    heights: tuple[tuple[float, str], ...]
    zone: Zone | None = None
    chart_height: int = CHART_HEIGHT


def picture(title: str, panels: tuple[Panel, ...]) -> str:
    """The panels below one another, as the text of an SVG file.

    >>> bars = Bars(
    ...     first=Series(label="a", points=((0, 1),)), second=Series(label="b", points=((0, 2),))
    ... )
    >>> panel = Panel(
    ...     title="t", verdict="v", good=True, words="w", marks=bars, places=(-1, 1), ticks=(),
    ...     axis="x", heights=((0, "0"), (2, "2")),
    ... )
    >>> picture("one panel", (panel,)).splitlines()[0]
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 356" width="880" height="356" ...
    """
    height = PANEL_TOP
    lines = [text(LEFT - 40, 38, "name", title)]
    for panel in panels:
        lines.append(f'<g transform="translate(0 {height})">')
        lines.extend(_panel(panel))
        lines.append("</g>")
        height += CHART_TOP + panel.chart_height + BELOW
    return document(title, width=WIDTH, height=height, lines=lines)


def _panel(panel: Panel) -> Iterator[str]:
    across = linear(panel.places, (LEFT, WIDTH - RIGHT))
    top = max(height for height, _ in panel.heights)
    up = linear((0.0, top), (CHART_TOP + panel.chart_height, CHART_TOP))
    yield text(LEFT - 40, 20, "title", panel.title)
    yield text(WIDTH - RIGHT, 20, f"title end {'good' if panel.good else 'bad'}", panel.verdict)
    yield text(LEFT - 40, 42, "words", panel.words)
    if panel.zone is not None:
        yield from _zone(panel.zone, across, panel.chart_height)
    yield from _frame(panel, across, up)
    yield from _legend(panel.marks)
    match panel.marks:
        case Stems():
            yield from _stems(panel.marks, across, up)
        case Bars():
            yield from _bars(panel.marks, across, up)
        case _:
            assert_never(panel.marks)


def _frame(panel: Panel, across: Scale, up: Scale) -> Iterator[str]:
    floor = CHART_TOP + panel.chart_height
    for height, label in panel.heights:
        y = up(height)
        yield line("axis" if height == 0 else "grid", LEFT, y, WIDTH - RIGHT, y)
        yield text(LEFT - 8, y + 4, "small end", label)
    for place, label in panel.ticks:
        x = across(place)
        yield line("axis", x, floor, x, floor + 4)
        yield text(x, floor + 19, "small middle", label)
    yield text((LEFT + WIDTH - RIGHT) / 2, floor + 39, "small middle", panel.axis)


def _legend(marks: Stems | Bars) -> Iterator[str]:
    """The names of the two series above the chart, each with its shape."""
    y = CHART_TOP - 14
    for x, kind, series in ((LEFT, "first", marks.first), (LEFT + 190, "second", marks.second)):
        match marks:
            case Stems():
                yield line(f"stem {kind}", x + 6, y + 5, x + 6, y - 5)
                yield _head(kind, x + 6, y - 5)
            case Bars():
                yield _bar(kind, x, y - 8, 12, 12)
            case _:
                assert_never(marks)
        yield text(x + 20, y + 3, "small", series.label)


def _zone(zone: Zone, across: Scale, height: int) -> Iterator[str]:
    left, right = across(zone.start), across(zone.end)
    yield (
        f'<rect class="zone" x="{left:.2f}" y="{CHART_TOP}" width="{right - left:.2f}" '
        f'height="{height}"/>'
    )
    yield line("axis", left, CHART_TOP, left, CHART_TOP + height, dashes="4 3")
    for row, words in enumerate(zone.words):
        yield text(right - 10, CHART_TOP + 22 + 18 * row, "small end", words)


def _stems(stems: Stems, across: Scale, up: Scale) -> Iterator[str]:
    for kind, series in (("first", stems.first), ("second", stems.second)):
        for place, height in series.points:
            yield line(f"stem {kind}", across(place), up(0), across(place), up(height))
        for place, height in series.points:
            yield _head(kind, across(place), up(height))


def _bars(bars: Bars, across: Scale, up: Scale) -> Iterator[str]:
    step = across(1) - across(0)
    wide = step * BAR_SHARE
    tallest: dict[float, float] = {}
    for side, kind, series in ((-1, "first", bars.first), (0, "second", bars.second)):
        for place, height in series.points:
            tallest[place] = max(height, tallest.get(place, 0.0))
            y = up(height)
            if height > 0:
                yield _bar(kind, across(place) + side * wide, y, wide - 1.5, up(0) - y)
    for place, words in bars.over:
        yield text(across(place) - 1, up(tallest[place]) - 6, "over middle", words)


def _head(kind: str, x: float, y: float) -> str:
    """A full dot for the first series, a hollow diamond for the second."""
    if kind == "first":
        return f'<circle class="first" cx="{x:.2f}" cy="{y:.2f}" r="2.6"/>'
    corners = f"{x:.2f},{y - 4:.2f} {x + 4:.2f},{y:.2f} {x:.2f},{y + 4:.2f} {x - 4:.2f},{y:.2f}"
    return f'<polygon class="second hollow" points="{corners}"/>'


def _bar(kind: str, x: float, y: float, width: float, height: float) -> str:
    """A full bar for the first series, an outlined one for the second."""
    look = "first" if kind == "first" else "second outlined"
    return (
        f'<rect class="{look}" x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}"/>'
    )
