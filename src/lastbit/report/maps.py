"""Maps of places in the plane: noisy ones, and for the steward's eyes the true ones beside them.

A picture with true places is no release. It says so in red, and whoever calls this decides where
it goes. Without them it shows nothing but what was released and public parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lastbit.report.svg import STYLE, Scale, document, line, linear, text

Point: TypeAlias = tuple[float, float]
Box: TypeAlias = tuple[float, float, float, float]

MOST_DRAWN = 2000
MOST_LINKS = 300
WARNING = "NOT FOR PUBLICATION: shows true places"

WIDTH, LEFT, FRAME_WIDTH = 880, 30, 820
LEAST_HEIGHT, MOST_HEIGHT, BELOW, INSET = 420.0, 640.0, 64, 104
MAP_STYLE = (
    STYLE
    + "  .warning { font-size: 15px; font-weight: 700; }\n"
    + "  .frame, .edge, .link, .ring, .view { fill: none; }\n"
    + "  .frame { stroke: #57606a; stroke-width: 1; }\n"
    + "  .edge { stroke: #1b1f24; stroke-width: 1.6; stroke-dasharray: 9 4; }\n"
    + "  .link { stroke: #8c959f; stroke-width: 0.8; }\n"
    + "  .ring { stroke: #1b1f24; stroke-width: 1.6; }\n"
    + "  .view { stroke: #b3261e; stroke-width: 1.8; }\n"
    + "  .bar { stroke: #1b1f24; stroke-width: 3; }\n"
    + "  @media (prefers-color-scheme: dark) {\n"
    + "    .frame { stroke: #9198a1; }\n"
    + "    .edge, .ring, .bar { stroke: #f0f3f6; }\n"
    + "    .link { stroke: #6e7681; }\n"
    + "    .view { stroke: #ff8a80; }\n"
    + "  }\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceMap:
    """What is drawn; all places in metres (east, north) of one public point.

    `region` is (west, south, east, north). `true`, if given, has a place for each noisy one.
    `radius` is that of the ring around one place, `ring` says what it means.
    """

    title: str
    words: tuple[str, ...]
    region: Box
    noisy: tuple[Point, ...]
    true: tuple[Point, ...] = ()
    radius: float
    ring: str


@dataclass(frozen=True, slots=True)
class _View:
    """The part of the plane that is shown, and where it lies in the picture."""

    box: Box
    top: float
    height: float
    across: Scale
    up: Scale

    def place(self, point: Point) -> Point:
        return self.across(point[0]), self.up(point[1])

    def holds(self, point: Point) -> bool:
        west, south, east, north = self.box
        return west <= point[0] <= east and south <= point[1] <= north


def place_map(picture: PlaceMap) -> str:
    """The map as the text of an SVG file, with at most 2000 places of a kind.

    >>> drawn = place_map(PlaceMap(
    ...     title="t", words=(), region=(-5e3, -5e3, 5e3, 5e3), noisy=((0, 0), (90, 40)),
    ...     radius=300, ring="95 % within 300 m",
    ... ))
    >>> drawn.count('class="second hollow"'), "NOT FOR PUBLICATION" in drawn
    (3, False)
    """
    chosen = _chosen(len(picture.noisy))
    noisy = [picture.noisy[i] for i in chosen]
    true = [picture.true[i] for i in chosen] if picture.true else []
    captions = [*picture.words, *_left_out(len(picture.noisy), len(chosen))]
    top = 62 + 18 * len(captions) + 26
    view = _view(_shown_box(picture, [*noisy, *true]), top)
    lines = [text(LEFT, 38, "name", picture.title)]
    if true:
        lines.append(text(LEFT + FRAME_WIDTH, 38, "warning bad end", WARNING))
    lines += [text(LEFT, 62 + 18 * i, "words", words) for i, words in enumerate(captions)]
    lines += _legend(top - 14, picture.ring, with_true=bool(true))
    lines.append(
        f'<clipPath id="inside"><rect x="{LEFT}" y="{top}" width="{FRAME_WIDTH}" '
        f'height="{view.height:.2f}"/></clipPath><g clip-path="url(#inside)">'
    )
    lines += _ground(picture, view)
    lines += _places(noisy, true, view)
    lines += _ring(picture, true or noisy, view)
    lines.append("</g>")
    lines += _frame(picture, view)
    height = round(top + view.height + BELOW)
    return document(picture.title, width=WIDTH, height=height, style=MAP_STYLE, lines=lines)


def _chosen(count: int) -> list[int]:
    """Which places are drawn: all, or 2000 of them spread evenly over the list."""
    if count <= MOST_DRAWN:
        return list(range(count))
    return [i * count // MOST_DRAWN for i in range(MOST_DRAWN)]


def _left_out(count: int, drawn: int) -> Iterator[str]:
    if drawn < count:
        yield f"{drawn:,} of {count:,} places are drawn, spread evenly over the list."


# -- which part is shown --


def _shown_box(picture: PlaceMap, points: Sequence[Point]) -> Box:
    """The region, or only where the places are if they fill little of it; never much beyond."""
    west, south, east, north = picture.region
    wide, high = east - west, north - south
    limits = (west - wide, south - high, east + wide, north + high)
    seen = [p for p in points if limits[0] <= p[0] <= limits[2] and limits[1] <= p[1] <= limits[3]]
    if not seen:
        return _padded(picture.region, 0.06 * max(wide, high))
    xs, ys = [p[0] for p in seen], [p[1] for p in seen]
    around = _padded((min(xs), min(ys), max(xs), max(ys)), 1.3 * picture.radius)
    small = max((around[2] - around[0]) / wide, (around[3] - around[1]) / high) < 0.5
    if small:
        return around
    both = (min(west, *xs), min(south, *ys), max(east, *xs), max(north, *ys))
    return _padded(both, 0.06 * max(wide, high))


def _padded(box: Box, by: float) -> Box:
    return box[0] - by, box[1] - by, box[2] + by, box[3] + by


def _view(box: Box, top: float) -> _View:
    """The box made as wide or high as the frame, one scale in both directions."""
    wide, high = max(box[2] - box[0], 1e-6), max(box[3] - box[1], 1e-6)
    height = min(max(FRAME_WIDTH * high / wide, LEAST_HEIGHT), MOST_HEIGHT)
    metre = min(FRAME_WIDTH / wide, height / high)
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    half = FRAME_WIDTH / metre / 2, height / metre / 2
    shown = (x - half[0], y - half[1], x + half[0], y + half[1])
    return _View(
        shown,
        top,
        height,
        linear((shown[0], shown[2]), (LEFT, LEFT + FRAME_WIDTH)),
        linear((shown[1], shown[3]), (top + height, top)),
    )


def round_length(longest: float) -> float:
    """The greatest of 1, 2, 5, 10, 20, ... that is not above a length.

    >>> round_length(730), round_length(0.3)
    (500.0, 0.2)
    """
    power: float = 10.0 ** math.floor(math.log10(longest))
    return next((f * power for f in (5, 2) if f * power <= longest), power)


# -- the marks --


def _legend(y: float, ring: str, *, with_true: bool) -> Iterator[str]:
    x = float(LEFT)
    if with_true:
        yield _true_mark((x + 6, y - 4))
        yield text(x + 18, y, "small", "true place")
        x += 120
    yield _noisy_mark((x + 6, y - 4))
    yield text(x + 18, y, "small", "noisy place")
    x += 130
    yield f'<line class="edge" x1="{x}" y1="{y - 4}" x2="{x + 30}" y2="{y - 4}"/>'
    yield text(x + 38, y, "small", "public region")
    yield f'<circle class="ring" cx="{x + 160}" cy="{y - 4}" r="6"/>'
    yield text(x + 174, y, "small", ring)


def _ground(picture: PlaceMap, view: _View) -> Iterator[str]:
    """Grid lines a scale bar apart, and the edge of the region."""
    west, south, east, north = view.box
    step = round_length((east - west) / 5)
    for i in range(math.ceil(west / step), math.floor(east / step) + 1):
        yield line("grid", view.across(i * step), view.top, view.across(i * step), 4000)
    for i in range(math.ceil(south / step), math.floor(north / step) + 1):
        yield line("grid", 0, view.up(i * step), WIDTH, view.up(i * step))
    yield _rectangle("edge", picture.region, view.across, view.up)


def _places(noisy: Sequence[Point], true: Sequence[Point], view: _View) -> Iterator[str]:
    if true and len(noisy) <= MOST_LINKS:
        for one, other in zip(true, noisy, strict=True):
            yield line("link", *view.place(one), *view.place(other))
    for point in noisy:
        if view.holds(point):
            yield _noisy_mark(view.place(point))
    for point in true:
        if view.holds(point):
            yield _true_mark(view.place(point))


def _ring(picture: PlaceMap, points: Sequence[Point], view: _View) -> Iterator[str]:
    """A ring around the place nearest to the middle of the picture."""
    west, south, east, north = view.box
    middle = (west + east) / 2, (south + north) / 2
    centre = min(points, key=lambda p: math.dist(p, middle), default=middle)
    x, y = view.place(centre)
    reach = picture.radius * FRAME_WIDTH / (east - west)
    yield f'<circle class="zone" cx="{x:.2f}" cy="{y:.2f}" r="{reach:.2f}"/>'
    yield f'<circle class="ring" cx="{x:.2f}" cy="{y:.2f}" r="{reach:.2f}"/>'


def _frame(picture: PlaceMap, view: _View) -> Iterator[str]:
    """The frame, the scale bar below it, and where it lies in the region if that is larger."""
    west, _, east, _ = view.box
    step = round_length((east - west) / 5)
    floor = view.top + view.height
    yield (
        f'<rect class="frame" x="{LEFT}" y="{view.top}" width="{FRAME_WIDTH}" '
        f'height="{view.height:.2f}"/>'
    )
    long = step * FRAME_WIDTH / (east - west)
    yield line("bar", LEFT, floor + 22, LEFT + long, floor + 22)
    yield text(LEFT, floor + 42, "small", f"{length_text(step)} (lines are as far apart)")
    yield text(LEFT + FRAME_WIDTH, floor + 26, "small end", "north is up")
    if not _inside(picture.region, view.box):
        yield from _inset(picture.region, view)


def _inset(region: Box, view: _View) -> Iterator[str]:
    """The whole region small in a corner, with the part that is shown."""
    west, south, east, north = region
    metre = INSET / max(east - west, north - south)
    x, y = LEFT + FRAME_WIDTH - 12 - (east - west) * metre, view.top + 12
    across = linear((west, east), (x, x + (east - west) * metre))
    up = linear((south, north), (y + (north - south) * metre, y))
    yield (
        f'<rect class="paper" x="{x - 8:.2f}" y="{y - 8:.2f}" '
        f'width="{(east - west) * metre + 16:.2f}" height="{(north - south) * metre + 16:.2f}"/>'
    )
    yield _rectangle("edge", region, across, up)
    yield _rectangle("view", _cut(view.box, region), across, up)


def _rectangle(kind: str, box: Box, across: Scale, up: Scale) -> str:
    west, south, east, north = box
    x, y = across(west), up(north)
    return (
        f'<rect class="{kind}" x="{x:.2f}" y="{y:.2f}" width="{across(east) - x:.2f}" '
        f'height="{up(south) - y:.2f}"/>'
    )


def _inside(one: Box, other: Box) -> bool:
    lower = one[0] >= other[0] and one[1] >= other[1]
    return lower and one[2] <= other[2] and one[3] <= other[3]


def _cut(box: Box, to: Box) -> Box:
    west, east = (min(max(edge, to[0]), to[2]) for edge in (box[0], box[2]))
    south, north = (min(max(edge, to[1]), to[3]) for edge in (box[1], box[3]))
    return west, south, east, north


def _true_mark(place: Point) -> str:
    return f'<circle class="first" cx="{place[0]:.2f}" cy="{place[1]:.2f}" r="2.6"/>'


def _noisy_mark(place: Point) -> str:
    x, y = place
    corners = f"{x:.2f},{y - 4:.2f} {x + 4:.2f},{y:.2f} {x:.2f},{y + 4:.2f} {x - 4:.2f},{y:.2f}"
    return f'<polygon class="second hollow" points="{corners}"/>'


def length_text(length: float) -> str:
    """A length in the unit a person would use.

    >>> length_text(200.0), length_text(5000.0), length_text(0.5)
    ('200 m', '5 km', '0.5 m')
    """
    return f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
