"""Charts of curves: linear or logarithmic axes, every curve named where it ends.

A curve is told from the others by its hue, its lightness and its dashes, and its name stands beside
it, so that no reader has to match colours. What leaves the frame is cut off at the frame.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from lastbit.report.svg import STYLE, Scale, document, line, linear, text

Point: TypeAlias = tuple[float, float]

WIDTH, LEFT, TOP, BELOW = 880, 80, 130, 64
SAMPLE, LEADER = 34, 22  # the piece of line before a name, and the way from the curve to it
ONE_LINE, TWO_LINES = 22.0, 40.0  # how far names stand apart

COLOURS = ("#1b1f24", "#0072b2", "#d55e00", "#00795a", "#a3417b", "#5b4bb0", "#7d5a00")
DARK_COLOURS = ("#f0f3f6", "#56b4e9", "#f0a13a", "#4fd1a5", "#ef9fcb", "#b7a8f5", "#f0e442")
DASHES = ("", "11 4", "2.5 3.5", "12 4 2.5 4", "6 4", "12 4 2.5 4 2.5 4", "18 5")

CURVE_STYLE = (
    STYLE
    + "  .curve { fill: none; stroke-width: 2.1; stroke-linejoin: round; }\n"
    + "  .leader { stroke: #8c959f; stroke-width: 0.8; fill: none; }\n"
    + "  .mark { font-size: 12.5px; font-weight: 600; stroke: #ffffff; stroke-width: 4px; "
    + "stroke-linejoin: round; paint-order: stroke; }\n"
    + "  .label { font-size: 13.5px; font-weight: 600; }\n"
    + "".join(f"  .curve{i} {{ stroke: {colour}; }}\n" for i, colour in enumerate(COLOURS))
    + "  @media (prefers-color-scheme: dark) {\n"
    + "    .leader { stroke: #6e7681; }\n"
    + "    .mark { stroke: #0d1117; }\n"
    + "".join(f"    .curve{i} {{ stroke: {colour}; }}\n" for i, colour in enumerate(DARK_COLOURS))
    + "  }\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One direction: its ends, its labelled values, what it measures, and how it is spaced."""

    ends: tuple[float, float]
    ticks: tuple[tuple[float, str], ...]
    label: str
    logarithmic: bool = False

    def scale(self, low: float, high: float) -> Scale:
        """The map from values to places between two pixels."""
        if not self.logarithmic:
            return linear(self.ends, (low, high))
        straight = linear((math.log(self.ends[0]), math.log(self.ends[1])), (low, high))
        return lambda value: straight(math.log(value))


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


def powers_of_ten(first: int, last: int, *, every: int = 1) -> tuple[tuple[float, str], ...]:
    """Ticks of a logarithmic axis.

    >>> powers_of_ten(-2, 1)
    ((0.01, '0.01'), (0.1, '0.1'), (1.0, '1'), (10.0, '10'))
    >>> powers_of_ten(-6, 4, every=5)
    ((1e-06, '10⁻⁶'), (0.1, '0.1'), (10000.0, '10⁴'))
    """
    exponents = range(first, last + 1, every)
    return tuple(
        (float(f"1e{e}"), f"{10.0**e:g}" if -2 <= e <= 3 else _power(e)) for e in exponents
    )


def chart(picture: Chart) -> str:
    """The chart as the text of an SVG file.

    >>> axis = Axis(ends=(0, 1), ticks=((0, "0"), (1, "1")), label="x")
    >>> curve = Curve(label="a line", strands=(((0, 0), (1, 1)),))
    >>> text = chart(Chart(title="t", words=(), across=axis, up=axis, curves=(curve,)))
    >>> text.count("<polyline"), "a line" in text
    (2, True)
    """
    across = picture.across.scale(LEFT, LEFT + picture.width)
    up = picture.up.scale(TOP + picture.height, TOP)
    lines = [text(LEFT - 56, 38, "name", picture.title)]
    lines += [text(LEFT - 56, 62 + 18 * i, "words", w) for i, w in enumerate(picture.words)]
    lines += _frame(picture, across, up)
    for number, curve in enumerate(picture.curves):
        for strand in curve.strands:
            places = [(across(x), up(y)) for x, y in strand if _drawable(picture, x, y)]
            for piece in _inside(places, TOP, TOP + picture.height):
                lines.append(_polyline(number, piece))
    lines += [text(across(m.at[0]), up(m.at[1]) + 4, "mark middle", m.words) for m in picture.marks]
    lines += _names(picture, across, up)
    height = TOP + picture.height + BELOW
    return document(picture.title, width=WIDTH, height=height, style=CURVE_STYLE, lines=lines)


def _drawable(picture: Chart, x: float, y: float) -> bool:
    """Whether a point has a place at all: zero has none on a logarithmic axis."""
    return (x > 0 or not picture.across.logarithmic) and (y > 0 or not picture.up.logarithmic)


def _frame(picture: Chart, across: Scale, up: Scale) -> Iterator[str]:
    right, floor = LEFT + picture.width, TOP + picture.height
    for value, label in picture.up.ticks:
        yield line("grid", LEFT, up(value), right, up(value))
        yield text(LEFT - 8, up(value) + 4, "small end", label)
    for value, label in picture.across.ticks:
        yield line("grid", across(value), TOP, across(value), floor)
        yield text(across(value), floor + 19, "small middle", label)
    yield line("axis", LEFT, floor, right, floor)
    yield line("axis", LEFT, TOP, LEFT, floor)
    yield text((LEFT + right) / 2, floor + 41, "small middle", picture.across.label)
    yield text(LEFT - 56, TOP - 14, "small", picture.up.label)


def _names(picture: Chart, across: Scale, up: Scale) -> Iterator[str]:
    """The names to the right of the frame, each with a piece of its line, none on another."""
    start = LEFT + picture.width + LEADER
    gap = TWO_LINES if any(curve.note for curve in picture.curves) else ONE_LINE
    wanted, ends = [], []
    for number, curve in enumerate(picture.curves):
        end = _end(picture, curve, across, up)
        ends.append(end)
        wanted.append(end[1] if end else TOP + 10 + gap * number)
    heights = spread(wanted, gap, (TOP + 6.0, TOP + picture.height - 4.0))
    for number, (curve, end, y) in enumerate(zip(picture.curves, ends, heights, strict=True)):
        if end is not None:
            yield line("leader", end[0] + 2, end[1], start - 3, y)
        yield _polyline(number, [(start, y), (start + SAMPLE, y)])
        yield text(start + SAMPLE + 8, y + 4, "label", curve.label)
        if curve.note:
            yield text(start + SAMPLE + 8, y + 20, "small", curve.note)


def _end(picture: Chart, curve: Curve, across: Scale, up: Scale) -> Point | None:
    """Where an anchored curve leaves the frame on the right."""
    if not curve.anchored:
        return None
    x, y = curve.strands[0][-1]
    if not _drawable(picture, x, y):
        return None
    place = across(x), up(y)
    inside = TOP <= place[1] <= TOP + picture.height
    return place if inside and place[0] >= LEFT + picture.width - 1 else None


def spread(wanted: Sequence[float], gap: float, ends: tuple[float, float]) -> list[float]:
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
        shares = [0.0, *cuts, 1.0]
        for start, end in pairwise(shares):
            middle = y0 + (start + end) / 2 * (y1 - y0)
            if not top <= middle <= floor:
                if piece:
                    yield piece
                piece = []
                continue
            if not piece:
                piece = [(x0 + start * (x1 - x0), y0 + start * (y1 - y0))]
            piece.append((x0 + end * (x1 - x0), y0 + end * (y1 - y0)))
    if piece:
        yield piece


def _polyline(number: int, places: Iterable[Point]) -> str:
    kind = number % len(COLOURS)
    dashing = f' stroke-dasharray="{DASHES[kind]}"' if DASHES[kind] else ""
    corners = " ".join(f"{x:.2f},{y:.2f}" for x, y in places)
    return f'<polyline class="curve curve{kind}" points="{corners}"{dashing}/>'


def _power(exponent: int) -> str:
    return "10" + str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
