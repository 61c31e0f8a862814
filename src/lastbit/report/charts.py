"""Charts as SVG text: one frame with its axes, one look, and the marks that go inside.

No plotting library, and nothing from elsewhere: fonts are the reader's own, colours follow the
light or dark scheme. Series differ in lightness, hue and shape or dashes, so that a chart also
works in grey and for colour-blind eyes (the hues are Okabe and Ito's, darkened or lightened until
each stands out from its paper). Every word in a chart is escaped, whoever wrote it.

| a chart of | is given as | drawn by |
|---|---|---|
| named curves, on linear or logarithmic axes | `Chart` of `Curve` | `chart` |
| two series against each other, panel by panel | `Panel` of `Stems` or `Bars` | `picture` |
| the two output laws of an audit, and an event | `LawPanel` of `Cell` | `law_picture` |
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from string import Template
from types import MappingProxyType
from typing import TypeAlias, assert_never

from markupsafe import Markup, escape

from lastbit.doors import content

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
_DASHES = ("", "11 4", "2.5 3.5", "12 4 2.5 4", "6 4", "12 4 2.5 4 2.5 4", "18 5")
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


def inline(svg: Markup) -> Markup:
    """The same for a page, whose style sheet has the look already."""
    return Markup(svg.replace(f"<style>{STYLE}</style>\n", ""))


def line(
    kind: str, left: float, top: float, right: float, bottom: float, *, dashes: str = ""
) -> Markup:
    """A straight line."""
    dashing = {"stroke_dasharray": dashes} if dashes else {}
    return element("line", kind, x1=left, y1=top, x2=right, y2=bottom, **dashing)


def text(x: float, y: float, kind: str, words: str) -> Markup:
    """Words at a place."""
    return element("text", kind, words, x=x, y=y)


def box(kind: str, x: float, y: float, width: float, height: float) -> Markup:
    """A rectangle."""
    return element("rect", kind, x=x, y=y, width=width, height=height)


def path(shape: str, kind: str, places: Iterable[Point], *, dashes: str = "") -> Markup:
    """A polyline or polygon through the places."""
    dashing = {"stroke_dasharray": dashes} if dashes else {}
    return element(shape, kind, points=" ".join(f"{x:.2f},{y:.2f}" for x, y in places), **dashing)


def dot(kind: str, x: float, y: float) -> Markup:
    """A full dot for the first series, a hollow diamond for the second."""
    if kind == "first":
        return element("circle", kind, cx=x, cy=y, r=2.6)
    corners = ((x, y - 4), (x + 4, y), (x, y + 4), (x - 4, y))
    return path("polygon", f"{kind} hollow", corners)


# ---------------------------------------------------------------- axes and the frame


def linear(domain: Range, target: Range) -> Scale:
    """The affine map that takes one range to the other."""
    factor = (target[1] - target[0]) / (domain[1] - domain[0])
    return lambda value: target[0] + (value - domain[0]) * factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One direction: its ends, its labelled values, what it measures, and how it is spaced.

    `grid` says whether lines cross the frame at the labelled values.
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
        """The place of a value across."""
        return self.across.scale(self.left, self.right)

    @property
    def y(self) -> Scale:
        """The place of a height."""
        return self.up.scale(self.floor, self.top)

    def lines(self) -> Iterator[Markup]:
        """Grid, ticks and labels; the line at 0 stands out."""
        x, y = self.x, self.y
        for value, label in self.up.ticks:
            if self.up.grid:
                yield line(_weight(value), self.left, y(value), self.right, y(value))
            yield text(self.left - 8, y(value) + 4, "small end", label)
        for value, label in self.across.ticks:
            start, end = (
                (self.top, self.floor) if self.across.grid else (self.floor, self.floor + 5)
            )
            weight = _weight(value) if self.across.grid else "axis"
            yield line(weight, x(value), start, x(value), end)
            yield text(x(value), self.floor + 19, "small middle", label)
        if self.up.grid and self.across.grid:
            yield line("axis", self.left, self.floor, self.right, self.floor)
            yield line("axis", self.left, self.top, self.left, self.floor)
        if self.across.label:
            middle = (self.left + self.right) / 2
            yield text(middle, self.floor + 40, "small middle", self.across.label)
        if self.up.label:
            yield text(self.left - 56, self.top - 14, "small", self.up.label)


def _weight(value: float) -> str:
    return "axis" if value == 0 else "grid"


def round_step(span: float, most: int) -> float:
    """The least of 1, 2, 2.5, 5, 10, 20, ... of which at most so many fit in a span.

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
    top = largest * 1.12
    step = round_step(top, most)
    places = (float(f"{i * step:.15g}") for i in range(math.ceil(top / step) + 1))
    return tuple((place, tick_label(place)) for place in places)


def powers_of_ten(first: int, last: int, *, every: int = 1) -> Ticks:
    """Ticks of a logarithmic axis.

    >>> powers_of_ten(-2, 1)
    ((0.01, '0.01'), (0.1, '0.1'), (1.0, '1'), (10.0, '10'))
    >>> powers_of_ten(-6, 4, every=5)
    ((1e-06, '10⁻⁶'), (0.1, '0.1'), (10000.0, '10⁴'))
    """
    return tuple(
        (float(f"1e{e}"), f"{10.0**e:g}" if -2 <= e <= 3 else f"10{raised(e)}")
        for e in range(first, last + 1, every)
    )


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


# ---------------------------------------------------------------- named curves

WIDTH, LEFT, TOP, BELOW = 880, 80, 130, 64
_SAMPLE, _LEADER = 34, 22  # the piece of line before a name, and the way from the curve to it
_ONE_LINE, _TWO_LINES = 22.0, 40.0  # how far names stand apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A named line, in one or several strands; `note` is the second line of its name.

    `anchored` curves carry their name at the height where the first strand ends; the names of the
    others are listed from the top.
    """

    label: str
    strands: tuple[tuple[Point, ...], ...]
    note: str = ""
    anchored: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Words inside the frame, centred on a point."""

    at: Point
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A frame with its curves; `width` and `height` are those of the frame, in pixels."""

    title: str
    words: tuple[str, ...]
    across: Axis
    up: Axis
    curves: tuple[Curve, ...]
    marks: tuple[Mark, ...] = ()
    width: int = 560
    height: int = 400


def chart(picture: Chart) -> Markup:
    """The chart as the text of an SVG file; what leaves the frame is cut off there.

    >>> axis = Axis(ends=(0, 1), ticks=((0, "0"), (1, "1")), label="x")
    >>> curve = Curve(label="a line", strands=(((0, 0), (1, 1)),))
    >>> svg = chart(Chart(title="t", words=(), across=axis, up=axis, curves=(curve,)))
    >>> svg.count("<polyline"), "a line" in svg
    (2, True)
    """
    frame = Frame(LEFT, TOP, picture.width, picture.height, picture.across, picture.up)
    lines = [text(LEFT - 56, 38, "name", picture.title)]
    lines += [text(LEFT - 56, 62 + 18 * i, "words", w) for i, w in enumerate(picture.words)]
    lines += frame.lines()
    for number, curve in enumerate(picture.curves):
        for strand in curve.strands:
            places = [place for point in strand if (place := _place(frame, point)) is not None]
            lines += [_curve(number, piece) for piece in _inside(places, TOP, frame.floor)]
    x, y = frame.x, frame.y
    lines += [text(x(m.at[0]), y(m.at[1]) + 4, "mark middle", m.words) for m in picture.marks]
    lines += _names(frame, picture.curves)
    return document(picture.title, width=WIDTH, height=TOP + picture.height + BELOW, lines=lines)


def _place(frame: Frame, point: Point) -> Point | None:
    """Where a point lies; zero has no place on a logarithmic axis."""
    for axis, value in zip((frame.across, frame.up), point, strict=True):
        if axis.logarithmic and value <= 0:
            return None
    return frame.x(point[0]), frame.y(point[1])


def _names(frame: Frame, curves: Sequence[Curve]) -> Iterator[Markup]:
    """The names to the right of the frame, each with a piece of its line, none on another."""
    start = frame.right + _LEADER
    gap = _TWO_LINES if any(curve.note for curve in curves) else _ONE_LINE
    ends = [_end(frame, curve) for curve in curves]
    wanted = [end[1] if end else TOP + 10 + gap * i for i, end in enumerate(ends)]
    heights = spread(wanted, gap, (TOP + 6.0, frame.floor - 4.0))
    for number, (curve, end, y) in enumerate(zip(curves, ends, heights, strict=True)):
        if end is not None:
            yield line("leader", end[0] + 2, end[1], start - 3, y)
        yield _curve(number, [(start, y), (start + _SAMPLE, y)])
        yield text(start + _SAMPLE + 8, y + 4, "label", curve.label)
        if curve.note:
            yield text(start + _SAMPLE + 8, y + 20, "small", curve.note)


def _end(frame: Frame, curve: Curve) -> Point | None:
    """Where an anchored curve leaves the frame on the right."""
    place = _place(frame, curve.strands[0][-1]) if curve.anchored else None
    if place is None or not TOP <= place[1] <= frame.floor or place[0] < frame.right - 1:
        return None
    return place


def spread(wanted: Sequence[float], gap: float, ends: Range) -> list[float]:
    """Places as near as may be to those wanted, at least a gap apart, in the same order.

    >>> spread([10, 12, 90], 20, (0, 100))
    [10, 30, 90]
    >>> spread([95, 99], 20, (0, 100))
    [80, 100]
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed: list[float] = []
    for i in order:
        placed.append(max([wanted[i], *(p + gap for p in placed[-1:])]))
    ceiling = ends[1]
    for position in range(len(placed) - 1, -1, -1):
        placed[position] = min(placed[position], ceiling)
        ceiling = placed[position] - gap
    out = [0.0] * len(wanted)
    for i, place in zip(order, placed, strict=True):
        out[i] = place
    return out


def _inside(places: Sequence[Point], top: float, floor: float) -> Iterator[list[Point]]:
    """The pieces of a line between two heights, cut where they cross one."""
    piece: list[Point] = []
    for (x0, y0), (x1, y1) in pairwise(places):
        cuts = sorted((y - y0) / (y1 - y0) for y in (top, floor) if (y - y0) * (y - y1) < 0)
        for start, end in pairwise([0.0, *cuts, 1.0]):
            if not top <= y0 + (start + end) / 2 * (y1 - y0) <= floor:
                if piece:
                    yield piece
                piece = []
                continue
            if not piece:
                piece = [(x0 + start * (x1 - x0), y0 + start * (y1 - y0))]
            piece.append((x0 + end * (x1 - x0), y0 + end * (y1 - y0)))
    if piece:
        yield piece


def _curve(number: int, places: Iterable[Point]) -> Markup:
    kind = number % len(_CURVES)
    return path("polyline", f"curve curve{kind}", places, dashes=_DASHES[kind])


# ---------------------------------------------------------------- two series, panel by panel

_SIDE, _RIGHT, _MARGIN = 64, 24, 24
_PANEL_WIDTH = WIDTH - _SIDE - _RIGHT
_PANEL_TOP, _CHART_TOP, _CHART_HEIGHT, _PANEL_BELOW = 64, 76, 150, 66
_BAR_SHARE = 0.4  # of the step between two places


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
    places: Range
    ticks: Ticks
    axis: str
    heights: Ticks
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
    heights = [_CHART_TOP + panel.chart_height + _PANEL_BELOW for panel in panels]
    drawn = (_panel(panel) for panel in panels)
    return _stacked(title, drawn, heights, [text(_SIDE - 40, 38, "name", title)], _PANEL_TOP)


def _stacked(
    title: str,
    panels: Iterable[Iterable[Markup]],
    heights: Iterable[int],
    head: list[Markup],
    top: int,
) -> Markup:
    lines = head
    for panel, height in zip(panels, heights, strict=True):
        lines += [Markup(f'<g transform="translate(0 {top})">'), *panel, Markup("</g>")]
        top += height
    return document(title, width=WIDTH, height=top, lines=lines)


def _panel(panel: Panel) -> Iterator[Markup]:
    across = Axis(ends=panel.places, ticks=panel.ticks, label=panel.axis, grid=False)
    up = Axis(ends=(0.0, max(height for height, _ in panel.heights)), ticks=panel.heights)
    frame = Frame(_SIDE, _CHART_TOP, _PANEL_WIDTH, panel.chart_height, across, up)
    verdict = f"title end {'good' if panel.good else 'bad'}"
    yield text(_SIDE - 40, 20, "title", panel.title)
    yield text(WIDTH - _RIGHT, 20, verdict, panel.verdict)
    yield text(_SIDE - 40, 42, "words", panel.words)
    if panel.zone is not None:
        yield from _zone(panel.zone, frame)
    yield from frame.lines()
    match panel.marks:
        case Stems():
            yield from _stems(panel.marks, frame)
        case Bars():
            yield from _bars(panel.marks, frame)
        case _:
            assert_never(panel.marks)


def _zone(zone: Zone, frame: Frame) -> Iterator[Markup]:
    left, right = frame.x(zone.start), frame.x(zone.end)
    yield box("zone", left, frame.top, right - left, frame.height)
    yield line("axis", left, frame.top, left, frame.floor, dashes="4 3")
    for row, words in enumerate(zone.words):
        yield text(right - 10, frame.top + 22 + 18 * row, "small end", words)


def _stems(stems: Stems, frame: Frame) -> Iterator[Markup]:
    x, y, key = frame.x, frame.y, frame.top - 14
    for start, kind, series in ((_SIDE, "first", stems.first), (254, "second", stems.second)):
        yield line(f"stem {kind}", start + 6, key + 5, start + 6, key - 5)
        yield dot(kind, start + 6, key - 5)
        yield text(start + 20, key + 3, "small", series.label)
        for place, height in series.points:
            yield line(f"stem {kind}", x(place), y(0), x(place), y(height))
        for place, height in series.points:
            yield dot(kind, x(place), y(height))


def _bars(bars: Bars, frame: Frame) -> Iterator[Markup]:
    x, y, key = frame.x, frame.y, frame.top - 14
    wide = (x(1) - x(0)) * _BAR_SHARE
    tallest: dict[float, float] = {}
    for start, side, kind, series in (
        (_SIDE, -1, "first", bars.first),
        (254, 0, "second outlined", bars.second),
    ):
        yield box(kind, start, key - 8, 12, 12)
        yield text(start + 20, key + 3, "small", series.label)
        for place, height in series.points:
            tallest[place] = max(height, tallest.get(place, 0.0))
            if height > 0:
                yield box(kind, x(place) + side * wide, y(height), wide - 1.5, y(0) - y(height))
    for place, words in bars.over:
        yield text(x(place) - 1, y(tallest[place]) - 6, "over middle", words)


# ---------------------------------------------------------------- two laws and an event

_LAW_TOP, _LAW_HEIGHT, _LAW_BELOW = 92, 190, 74
_MOST_LABELS, _LONGEST_LABEL = 14, 16
_THIN = 3.0  # pixels: the least width of a shaded range


@dataclass(frozen=True, slots=True)
class Cell:
    """A set of outputs: where it is drawn, and how likely it is under each of the two inputs."""

    start: float
    end: float
    first: float
    second: float
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LawPanel:
    """One chart: what is on its axis, the two inputs, the cells, and the event.

    Heights are shares of runs or exact probabilities; the words say which. `single` cells are
    values or words, drawn as bars side by side; others are adjacent ranges, drawn as two outlines.
    `event` are ranges of places: shaded, and underlined for grey print and colour-blind eyes.
    """

    title: str
    words: str
    axis: str
    inputs: tuple[str, str]
    cells: tuple[Cell, ...]
    single: bool
    event: tuple[Range, ...] = ()


def law_picture(title: str, panels: Sequence[LawPanel]) -> Markup:
    """The panels below one another, as the text of an SVG picture.

    >>> coin = (Cell(0, 1, 0.9, 0.2, "no"), Cell(1, 2, 0.1, 0.8, "yes"))
    >>> panel = LawPanel(
    ...     title="t", words="w", axis="output", inputs=("0", "1"), cells=coin, single=True,
    ...     event=((1, 2),))
    >>> drawn = law_picture("a coin", [panel])
    >>> drawn.count('class="event"'), drawn.count('class="first"')
    (2, 3)
    """
    heights = [_LAW_TOP + _LAW_HEIGHT + _LAW_BELOW] * len(panels)
    return _stacked(title, map(_law_panel, panels), heights, [], 20)


def _law_panel(panel: LawPanel) -> Iterator[Markup]:
    ends = panel.cells[0].start, panel.cells[-1].end
    tallest = max(max(cell.first, cell.second) for cell in panel.cells) or 1.0
    shares = [
        (share, f"{100 * share:.3g} %" if share else "0") for share in (0, tallest / 2, tallest)
    ]
    across = Axis(ends=ends, ticks=_law_ticks(panel, ends), label=panel.axis, grid=False)
    up = Axis(ends=(0.0, tallest), ticks=tuple(shares))
    frame = Frame(_SIDE, _LAW_TOP, _PANEL_WIDTH, _LAW_HEIGHT, across, up)
    yield text(_MARGIN, 16, "title", panel.title)
    yield text(_MARGIN, 38, "words", panel.words)
    y = frame.top - 20
    yield box("first", _SIDE, y - 9, 12, 12)
    yield text(_SIDE + 20, y + 2, "small", f"input {panel.inputs[0]}")
    yield box("second outlined", _SIDE + 270, y - 9, 12, 12)
    yield text(_SIDE + 290, y + 2, "small", f"input {panel.inputs[1]}")
    if panel.event:
        yield box("event", _SIDE + 540, y - 9, 12, 9)
        yield box("under", _SIDE + 540, y, 12, 4)
        yield text(_SIDE + 560, y + 2, "small", "the event")
    yield from _event(panel.event, frame)
    yield from frame.lines()
    yield from (_cell_bars if panel.single else _outlines)(panel.cells, frame)


def _event(ranges: Sequence[Range], frame: Frame) -> Iterator[Markup]:
    low, high = frame.across.ends
    for start, end in ranges:
        left, right = frame.x(max(start, low)), frame.x(min(end, high))
        if right < left:
            continue
        if right - left < _THIN:
            left, right = (left + right - _THIN) / 2, (left + right + _THIN) / 2
        yield box("event", left, frame.top, right - left, frame.height)
        yield box("under", left, frame.floor + 1, right - left, 4)


def _cell_bars(cells: Sequence[Cell], frame: Frame) -> Iterator[Markup]:
    x, y = frame.x, frame.y
    for cell in cells:
        room = (cell.end - cell.start) * 0.1
        left, right = x(cell.start + room), x(cell.end - room)
        wide = (right - left) / 2
        for kind, share, at in (
            ("first", cell.first, left),
            ("second outlined", cell.second, left + wide),
        ):
            if share > 0:
                yield box(kind, at, y(share), max(wide - 1, 0.8), y(0) - y(share))


def _outlines(cells: Sequence[Cell], frame: Frame) -> Iterator[Markup]:
    x, y = frame.x, frame.y

    def steps(shares: Sequence[float]) -> list[Point]:
        pairs = zip(shares, cells, strict=True)
        inner = [(x(at), y(share)) for share, cell in pairs for at in (cell.start, cell.end)]
        return [(x(cells[0].start), y(0)), *inner, (x(cells[-1].end), y(0))]

    first, second = ([getattr(cell, side) for cell in cells] for side in ("first", "second"))
    yield path("polygon", "first law", steps(first))
    yield path("polyline", "first step", steps(first))
    yield path("polyline", "second step", steps(second), dashes="6 3")


def _law_ticks(panel: LawPanel, ends: Range) -> Ticks:
    """The labels of the cells, thinned; or round numbers along the axis."""
    if not any(cell.label for cell in panel.cells):
        return round_ticks(*ends, most=10)
    every = -(-len(panel.cells) // _MOST_LABELS)
    labels = [
        c.label if len(c.label) <= _LONGEST_LABEL else f"{c.label[: _LONGEST_LABEL - 1]}…"
        for c in panel.cells
    ]
    middles = [(cell.start + cell.end) / 2 for cell in panel.cells]
    return tuple(zip(middles, labels, strict=True))[::every]
