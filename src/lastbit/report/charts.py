"""Charts as SVG text: one frame with its axes, one look, and the marks that go inside.

No plotting library, and nothing from elsewhere: fonts are the reader's own, colours follow the
light or dark scheme. Series differ in lightness, hue and shape or dashes, so that a chart also
works in grey and for colour-blind eyes (the hues are Okabe and Ito's, darkened or lightened until
each stands out from its paper). Every word in a chart is escaped.

| a chart of | is given as | drawn by |
|---|---|---|
| two series against each other, panel by panel | `Panel` of `Stems` or `Bars` | `picture` |
| the two output laws of an audit, and an event | `LawPanel` of `Cell` | `law_charts.py` |
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from string import Template
from types import MappingProxyType
from typing import TypeAlias

from markupsafe import Markup, escape

from lastbit.doors import content
from lastbit.exact import Ball

Point: TypeAlias = tuple[float, float]
Range: TypeAlias = tuple[float, float]
Scale: TypeAlias = Callable[[float], float]
Ticks: TypeAlias = tuple[tuple[float, str], ...]

# ---------------------------------------------------------------- the look

_CURVES = (
    ("#1b1f24", "#f0f3f6"),
    ("#0072b2", "#56b4e9"),
    ("#d55e00", "#f0a13a"),
    ("#00795a", "#4fd1a5"),
    ("#a3417b", "#ef9fcb"),
    ("#5b4bb0", "#b7a8f5"),
    ("#7d5a00", "#f0e442"),
)
PALETTE: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "paper": ("#ffffff", "#0d1117"),
        "ink": ("#1b1f24", "#f0f3f6"),
        "soft": ("#4b535d", "#c3cad2"),
        "axis": ("#57606a", "#9198a1"),
        "line": ("#d8dee4", "#2f363e"),
        "faint": ("#8c959f", "#6e7681"),
        "panel": ("#f6f8fa", "#161b22"),
        "track": ("#e7ebef", "#262d35"),
        "before": ("#a9b4bf", "#5d6873"),
        "bar": ("#2f7fb8", "#4a9bd4"),
        "accent": ("#0059a0", "#79c0ff"),
        "first": ("#0072b2", "#56b4e9"),
        "second": ("#d55e00", "#e69f00"),
        "outlined": ("#f8d5bd", "#45360f"),
        "event": ("#8250df", "#b392f0"),
        "good": ("#1a7f37", "#6fdd8b"),
        "bad": ("#b3261e", "#ff8a80"),
        **{f"curve{i}": pair for i, pair in enumerate(_CURVES)},
    }
)
"""Every colour of charts and pages, on light and on dark paper."""

FONT = 'system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif'


def template(name: str) -> str:
    """The text of a template."""
    return content("lastbit.report", f"templates/{name}")


_SHAPES, _COLOURS = (Template(template(name)) for name in ("chart-shapes.css", "chart-colours.css"))


def colours(dark: bool) -> dict[str, str]:
    """The palette of one scheme."""
    return {name: pair[dark] for name, pair in PALETTE.items()}


# a file of its own has no style sheet around it, and not every reader of SVG knows variables
STYLE = (
    "\n  svg { color-scheme: light dark; }\n"
    + _SHAPES.substitute(font=FONT)
    + _COLOURS.substitute(colours(dark=False))
    + "  @media (prefers-color-scheme: dark) {\n"
    + _COLOURS.substitute(colours(dark=True))
    + "  }\n"
)
INSIDE_A_PAGE = _SHAPES.substitute(font=FONT) + _COLOURS.substitute(
    {name: f"var(--{name})" for name in PALETTE}
)

# ---------------------------------------------------------------- elements

_UNFIT = re.compile(  # for XML, or turning the reading around
    "[^\t\n\r\x20-\u2029\u202f-\u2065\u206a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)


def element(name: str, kind: str = "", words: str | None = None, /, **attributes: object) -> Markup:
    """One element of SVG: numbers with two decimals, texts escaped, `_` for `-` in names.

    >>> element("text", "small", "a < b", x=1, y=2.345)
    Markup('<text class="small" x="1.00" y="2.35">a &lt; b</text>')
    """
    told = [("class", kind)] if kind else []
    for key, value in attributes.items():
        number = isinstance(value, int | float)
        told.append((key.replace("_", "-"), f"{value:.2f}" if number else str(value)))
    opened = name + "".join(f' {key}="{escape(clean(value))}"' for key, value in told)
    if words is None:
        return Markup(f"<{opened}/>")  # all of it escaped above
    return Markup(f"<{opened}>{escape(clean(words))}</{name}>")


def clean(words: str) -> str:
    """The words without letters that no XML may hold or that turn the reading around."""
    return words if isinstance(words, Markup) else _UNFIT.sub("\ufffd", words)


def shortened(words: str, most: int) -> str:
    """The words, cut if they are longer than this many letters."""
    return words if len(words) <= most else f"{words[: most - 1]}…"


def document(title: str, *, width: int, height: int, lines: Iterable[Markup]) -> Markup:
    """A whole SVG file: the name that a screen reader says, the look, the paper and the marks."""
    parts = (
        element("title", "", title, id="name"),
        Markup(f"<style>{STYLE}</style>"),
        element("rect", "paper", width=str(width), height=str(height)),
        *lines,
    )
    inside = Markup("\n").join(parts)
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-labelledby="name">\n{inside}\n</svg>\n'
    )


def drawing(
    kind: str,
    name: str,
    width: float,
    height: float,
    lines: Iterable[Markup],
    *,
    tall: bool = False,
) -> Markup:
    """A chart inside a page; `tall`: its height is kept where there is no room for its width."""
    size = f'width="{width:g}"' + (f' height="{height:.0f}"' if tall else "")
    shell = '<svg class="{}" viewBox="0 0 {:g} {:.0f}" {} role="img" aria-label="{}">\n{}\n</svg>'
    inside = Markup("\n").join(lines)
    return Markup(shell).format(kind, width, height, Markup(size), name, inside)


def inline(svg: Markup) -> Markup:
    """The same for a page, whose style sheet has the look already."""
    return Markup(svg.replace(f"<style>{STYLE}</style>\n", ""))


def line(kind: str, left: float, top: float, right: float, bottom: float, **look: str) -> Markup:
    """A straight line."""
    return element("line", kind, x1=left, y1=top, x2=right, y2=bottom, **look)


def text(x: float, y: float, kind: str, words: str) -> Markup:
    """Words at a place."""
    return element("text", kind, words, x=x, y=y)


def box(kind: str, x: float, y: float, width: float, height: float, **look: str) -> Markup:
    """A rectangle."""
    return element("rect", kind, x=x, y=y, width=width, height=height, **look)


def path(shape: str, kind: str, places: Iterable[Point], *, dashes: str = "") -> Markup:
    """A polyline or polygon through the places."""
    look = {"stroke_dasharray": dashes} if dashes else {}
    return element(shape, kind, points=" ".join(f"{x:.2f},{y:.2f}" for x, y in places), **look)


def dot(kind: str, x: float, y: float) -> Markup:
    """A full dot for the first series, a hollow diamond for the second."""
    if kind == "first":
        return element("circle", kind, cx=x, cy=y, r=2.6)
    return path("polygon", f"{kind} hollow", ((x, y - 4), (x + 4, y), (x, y + 4), (x - 4, y)))


# ---------------------------------------------------------------- axes and the frame


def linear(domain: Range, target: Range) -> Scale:
    """The affine map that takes one range to the other."""
    factor = (target[1] - target[0]) / (domain[1] - domain[0])
    return lambda value: target[0] + (value - domain[0]) * factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One direction: its ends, its labelled values, what it measures, and how it is spaced.

    `grid` says whether lines cross the frame at the labelled values.

    >>> Axis(ends=(0, 10), ticks=((0, "0"), (10, "10"))).scale(80, 480)(5)
    280.0
    """

    ends: Range
    ticks: Ticks
    label: str = ""
    logarithmic: bool = False
    grid: bool = True

    def scale(self, low: float, high: float) -> Scale:
        """The map from values to places between two pixels."""
        if not self.logarithmic:
            return linear(self.ends, (low, high))
        straight = linear((math.log(self.ends[0]), math.log(self.ends[1])), (low, high))
        return lambda value: straight(math.log(value))


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a chart lies in its picture, and its two axes."""

    left: float
    top: float
    width: float
    height: float
    across: Axis
    up: Axis

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def floor(self) -> float:
        return self.top + self.height

    @property
    def x(self) -> Scale:
        return self.across.scale(self.left, self.right)

    @property
    def y(self) -> Scale:
        return self.up.scale(self.floor, self.top)

    def lines(self) -> Iterator[Markup]:
        """Grid, ticks and labels; the line at 0 stands out."""
        x, y = self.x, self.y
        for value, label in self.up.ticks:
            weight = "grid" if value else "axis"
            if self.up.grid:
                yield line(weight, self.left, y(value), self.right, y(value))
            yield text(self.left - 8, y(value) + 4, "small end", label)
        for value, label in self.across.ticks:
            weight = "grid" if value and self.across.grid else "axis"
            ends = (self.top, self.floor) if self.across.grid else (self.floor, self.floor + 5)
            yield line(weight, x(value), ends[0], x(value), ends[1])
            yield text(x(value), self.floor + 19, "small middle", label)
        if self.up.grid and self.across.grid:
            yield line("axis", self.left, self.floor, self.right, self.floor)
            yield line("axis", self.left, self.top, self.left, self.floor)
        if self.across.label:
            middle = (self.left + self.right) / 2
            yield text(middle, self.floor + 40, "small middle", self.across.label)
        if self.up.label:
            yield text(self.left - 56, self.top - 14, "small", self.up.label)


def round_step(span: float, most: int) -> float:
    """The least of 1, 2, 2.5, 5, 10, 20, ... of which at most this many fit in a span.

    >>> round_step(230, 5), round_step(0.06, 5)
    (50.0, 0.02)
    """
    size = 10.0 ** math.floor(math.log10(span / most))
    return next(m * size for m in (1, 2, 2.5, 5, 10, 20) if span / (m * size) <= most)


def round_ticks(low: float, high: float, *, most: int = 5) -> Ticks:
    """Round numbers within a range, labelled.

    >>> round_ticks(0, 2300, most=3)
    ((0.0, '0'), (1000.0, '1,000'), (2000.0, '2,000'))
    """
    step = round_step(high - low, most)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    places = (float(f"{k * step:.15g}") for k in range(first, last + 1))
    return tuple((place, tick_label(place)) for place in places)


def ticks_above(largest: float, *, most: int = 5) -> Ticks:
    """Round numbers from 0 to somewhat above the tallest mark."""
    step = round_step(largest * 1.12, most)
    places = (float(f"{i * step:.15g}") for i in range(math.ceil(largest * 1.12 / step) + 1))
    return tuple((place, tick_label(place)) for place in places)


def tick_label(value: float) -> str:
    """A value of an axis, which promises nothing."""
    plain = value == 0 or 1e-4 <= abs(value) < 1e9
    return f"{value:,.10g}" if plain else f"{value:.6g}"


def raised(exponent: int) -> str:
    """An exponent in small letters.

    >>> raised(-12)
    '⁻¹²'
    """
    return str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def middle(ball: Ball) -> float:
    """The middle of a ball: a height to draw, which promises nothing."""
    low, high = ball.ends
    return float((low + high) / 2)


# ---------------------------------------------------------------- two series, panel by panel

WIDTH, SIDE, _RIGHT, MARGIN = 880, 64, 24, 24
PANEL_WIDTH = WIDTH - SIDE - _RIGHT
_PANEL_TOP, _CHART_TOP, _CHART_HEIGHT, _PANEL_BELOW = 64, 76, 150, 66
SECOND = "second outlined"
_BAR_SHARE = 0.4  # of the step between two places


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One of the two sides: its name and its points (place, height)."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stems:
    """A thin line and a head at every point: for laws on a fine grid.

    >>> law = Series(label="a", points=((0, 0.5), (1, 0.5)))
    >>> Stems(first=law, second=law).first.label
    'a'
    """

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
    """A shaded range of places and what it means.

    >>> Zone(start=2, end=3, words=("never", "seen")).words
    ('never', 'seen')
    """

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
    places: Range
    ticks: Ticks
    axis: str
    heights: Ticks = ()
    """Round numbers up to the tallest mark, if none are given."""
    zone: Zone | None = None
    chart_height: int = _CHART_HEIGHT


def picture(title: str, panels: tuple[Panel, ...]) -> Markup:
    """The panels below one another, as the text of an SVG file.

    >>> bars = Bars(
    ...     first=Series(label="a", points=((0, 1),)), second=Series(label="b", points=((0, 2),))
    ... )
    >>> panel = Panel(
    ...     title="t", verdict="v", good=True, words="w", marks=bars, places=(-1, 1), ticks=(),
    ...     axis="x", heights=((0, "0"), (2, "2")),
    ... )
    >>> str(picture("one panel", (panel,)).splitlines()[0])
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 356" width="880" height="356" ...
    """
    lines = [text(SIDE - 40, 38, "name", title)]
    top = _PANEL_TOP
    for panel in panels:
        lines += [Markup(f'<g transform="translate(0 {top})">'), *_panel(panel), Markup("</g>")]
        top += _CHART_TOP + panel.chart_height + _PANEL_BELOW
    return document(title, width=WIDTH, height=top, lines=lines)


def _panel(panel: Panel) -> Iterator[Markup]:
    sides = ((SIDE, panel.marks.first), (254, panel.marks.second))
    tallest = max(height for _, side in sides for _, height in side.points)
    heights = panel.heights or ticks_above(tallest, most=5 if panel.chart_height > 200 else 3)
    across = Axis(ends=panel.places, ticks=panel.ticks, label=panel.axis, grid=False)
    up = Axis(ends=(0.0, heights[-1][0]), ticks=heights)
    frame = Frame(SIDE, _CHART_TOP, PANEL_WIDTH, panel.chart_height, across, up)
    verdict = f"title end {'good' if panel.good else 'bad'}"
    yield text(SIDE - 40, 20, "title", panel.title)
    yield text(WIDTH - _RIGHT, 20, verdict, panel.verdict)
    yield text(SIDE - 40, 42, "words", panel.words)
    if panel.zone is not None:
        left, right = frame.x(panel.zone.start), frame.x(panel.zone.end)
        yield box("zone", left, frame.top, right - left, frame.height)
        yield line("axis", left, frame.top, left, frame.floor, stroke_dasharray="4 3")
        for row, words in enumerate(panel.zone.words):
            yield text(right - 10, frame.top + 22 + 18 * row, "small end", words)
    yield from frame.lines()
    match panel.marks:
        case Stems():
            for kind, (start, series) in zip(("first", "second"), sides, strict=True):
                heads = [(frame.x(place), frame.y(height)) for place, height in series.points]
                yield line(f"stem {kind}", start + 6, frame.top - 9, start + 6, frame.top - 19)
                yield dot(kind, start + 6, frame.top - 19)
                yield from (line(f"stem {kind}", x, frame.y(0), x, y) for x, y in heads)
                yield from (dot(kind, x, y) for x, y in heads)
        case Bars():
            yield from _bars(panel.marks, frame)
    for start, side in sides:
        yield text(start + 20, frame.top - 11, "small", side.label)


def _bars(bars: Bars, frame: Frame) -> Iterator[Markup]:
    key, wide = frame.top - 14, (frame.x(1) - frame.x(0)) * _BAR_SHARE
    tallest: dict[float, float] = {}
    for start, series in ((SIDE, bars.first), (254, bars.second)):
        kind = "first" if series is bars.first else SECOND
        yield box(kind, start, key - 8, 12, 12)
        for place, height in series.points:
            tallest[place] = max(height, tallest.get(place, 0.0))
            left = frame.x(place) - (wide if series is bars.first else 0)
            yield from bar(kind, frame, left, wide - 1.5, height)
    for place, words in bars.over:
        yield text(frame.x(place) - 1, frame.y(tallest[place]) - 6, "over middle", words)


def bar(kind: str, frame: Frame, left: float, width: float, height: float) -> Iterator[Markup]:
    """A bar on the floor of the frame; none of no height."""
    if height > 0:
        yield box(kind, left, frame.y(height), width, frame.y(0) - frame.y(height))
