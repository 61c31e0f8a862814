"""Charts of named curves for the pages, on linear or logarithmic axes, in the look of reports."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from lastbit.report.charts import (
    WIDTH,
    Axis,
    Frame,
    Point,
    Range,
    Ticks,
    document,
    line,
    path,
    raised,
    text,
)

LEFT, TOP, BELOW = 80, 130, 64
_SAMPLE, _LEADER = 34, 22  # the piece of line before a name, and the way from the curve to it
_DASHES = ("", "11 4", "2.5 3.5", "12 4 2.5 4", "6 4", "12 4 2.5 4 2.5 4", "18 5")
_ONE_LINE, _TWO_LINES = 22.0, 40.0  # how far names stand apart


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
    """Words inside the frame, centred on a point.

    >>> Mark(at=(0.5, 0.5), words="ε = 1").words
    'ε = 1'
    """

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
    x, y = frame.x, frame.y

    def place(point: Point) -> Point | None:
        """Where a point lies; zero has no place on a logarithmic axis."""
        axes = zip((frame.across, frame.up), point, strict=True)
        if any(axis.logarithmic and value <= 0 for axis, value in axes):
            return None
        return x(point[0]), y(point[1])

    lines = [text(LEFT - 56, 38, "name", picture.title)]
    lines += [text(LEFT - 56, 62 + 18 * i, "words", w) for i, w in enumerate(picture.words)]
    lines += frame.lines()
    ends = []  # where anchored curves leave the frame on the right
    for number, curve in enumerate(picture.curves):
        strands = [[at for at in map(place, strand) if at] for strand in curve.strands]
        for places in strands:
            lines += [_curve(number, piece) for piece in _inside(places, TOP, frame.floor)]
        end = place(curve.strands[0][-1]) if curve.anchored else None
        if end is not None and (not TOP <= end[1] <= frame.floor or end[0] < frame.right - 1):
            end = None
        ends.append(end)
    lines += [text(x(m.at[0]), y(m.at[1]) + 4, "mark middle", m.words) for m in picture.marks]
    start = frame.right + _LEADER
    gap = _TWO_LINES if any(curve.note for curve in picture.curves) else _ONE_LINE
    wanted = [end[1] if end else TOP + 10 + gap * i for i, end in enumerate(ends)]
    heights = spread(wanted, gap, (TOP + 6.0, frame.floor - 4.0))
    named = zip(picture.curves, ends, heights, strict=True)
    for number, (curve, end, height) in enumerate(named):
        if end is not None:
            lines.append(line("leader", end[0] + 2, end[1], start - 3, height))
        lines.append(_curve(number, [(start, height), (start + _SAMPLE, height)]))
        lines.append(text(start + _SAMPLE + 8, height + 4, "label", curve.label))
        if curve.note:
            lines.append(text(start + _SAMPLE + 8, height + 20, "small", curve.note))
    return document(picture.title, width=WIDTH, height=TOP + picture.height + BELOW, lines=lines)


def spread(wanted: Sequence[float], gap: float, ends: Range) -> list[float]:
    """Places as near as may be to those wanted, at least a gap apart, in the same order.

    >>> spread([10, 12, 90], 20, (0, 100))
    [10, 30, 90]
    >>> spread([95, 99], 20, (0, 100))
    [80, 100]
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = dict.fromkeys(order, 0.0)
    floor = -math.inf
    for i in order:
        placed[i] = floor = max(wanted[i], floor)
        floor += gap
    ceiling = ends[1]
    for i in reversed(order):
        placed[i] = ceiling = min(placed[i], ceiling)
        ceiling -= gap
    return [placed[i] for i in range(len(wanted))]


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
    kind = number % len(_DASHES)
    return path("polyline", f"curve curve{kind}", places, dashes=_DASHES[kind])
