"""Maps of places in the plane: noisy ones, and for the steward's eyes the true ones beside them.

A picture with true places is not a release. It says so in red, and the caller decides where it
goes. Without them it shows nothing but what was released and public parameters.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from markupsafe import Markup

from lastbit.report.charts import Point, Scale, box, document, dot, element, line, linear, text

Box: TypeAlias = tuple[float, float, float, float]

MOST_DRAWN = 2000
MOST_LINKS = 300
WARNING = "NOT FOR PUBLICATION: shows true places"

_WIDTH, _LEFT, _FRAME_WIDTH = 880, 30, 820
_LEAST_HEIGHT, _MOST_HEIGHT, _BELOW, _INSET = 420.0, 640.0, 64, 104


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


def place_map(picture: PlaceMap) -> Markup:
    """The map as the text of an SVG file, with at most 2000 places of a kind.

    >>> drawn = place_map(PlaceMap(
    ...     title="t", words=(), region=(-5e3, -5e3, 5e3, 5e3), noisy=((0, 0), (90, 40)),
    ...     radius=300, ring="95 % within 300 m",
    ... ))
    >>> drawn.count('class="second hollow"'), "NOT FOR PUBLICATION" in drawn
    (3, False)
    """
    count, drawn = len(picture.noisy), min(len(picture.noisy), MOST_DRAWN)
    chosen = [i * count // drawn for i in range(drawn)]  # spread evenly over the list
    noisy = [picture.noisy[i] for i in chosen]
    true = [picture.true[i] for i in chosen] if picture.true else []
    captions = list(picture.words)
    if drawn < count:
        captions.append(f"{drawn:,} of {count:,} places are drawn, spread evenly over the list.")
    top = 62 + 18 * len(captions) + 26
    view = _view(_visible(picture, [*noisy, *true]), top)
    lines = [text(_LEFT, 38, "name", picture.title)]
    if true:
        lines.append(text(_LEFT + _FRAME_WIDTH, 38, "warning bad end", WARNING))
    lines += [text(_LEFT, 62 + 18 * i, "words", words) for i, words in enumerate(captions)]
    lines += _legend(top - 14, picture.ring, with_true=bool(true))
    frame = box("", _LEFT, top, _FRAME_WIDTH, view.height)
    lines.append(Markup(f'<clipPath id="inside">{frame}</clipPath><g clip-path="url(#inside)">'))
    lines += _ground(picture, view)
    lines += _places(noisy, true, view)
    lines += _ring(picture, true or noisy, view)
    lines.append(Markup("</g>"))
    lines += _frame(picture, view)
    height = round(top + view.height + _BELOW)
    return document(picture.title, width=_WIDTH, height=height, lines=lines)


# ---------------------------------------------------------------- which part is shown


def _visible(picture: PlaceMap, points: Sequence[Point]) -> Box:
    """The region, or only where the places are if they fill little of it; never much beyond."""
    west, south, east, north = picture.region
    wide, high = east - west, north - south
    limits = (west - wide, south - high, east + wide, north + high)
    seen = [p for p in points if limits[0] <= p[0] <= limits[2] and limits[1] <= p[1] <= limits[3]]
    if not seen:
        return _padded(picture.region, 0.06 * max(wide, high))
    xs, ys = [p[0] for p in seen], [p[1] for p in seen]
    around = _padded((min(xs), min(ys), max(xs), max(ys)), 1.3 * picture.radius)
    if max((around[2] - around[0]) / wide, (around[3] - around[1]) / high) < 0.5:
        return around
    both = (min(west, *xs), min(south, *ys), max(east, *xs), max(north, *ys))
    return _padded(both, 0.06 * max(wide, high))


def _padded(area: Box, by: float) -> Box:
    return area[0] - by, area[1] - by, area[2] + by, area[3] + by


def _view(area: Box, top: float) -> _View:
    """The box made as wide or high as the frame, one scale in both directions."""
    wide, high = max(area[2] - area[0], 1e-6), max(area[3] - area[1], 1e-6)
    height = min(max(_FRAME_WIDTH * high / wide, _LEAST_HEIGHT), _MOST_HEIGHT)
    metre = min(_FRAME_WIDTH / wide, height / high)
    x, y = (area[0] + area[2]) / 2, (area[1] + area[3]) / 2
    half = _FRAME_WIDTH / metre / 2, height / metre / 2
    west, south, east, north = x - half[0], y - half[1], x + half[0], y + half[1]
    return _View(
        (west, south, east, north),
        top,
        height,
        linear((west, east), (_LEFT, _LEFT + _FRAME_WIDTH)),
        linear((south, north), (top + height, top)),
    )


def round_length(longest: float) -> float:
    """The greatest of 1, 2, 5, 10, 20, ... that is not above a length.

    >>> round_length(730), round_length(0.3)
    (500.0, 0.2)
    """
    power: float = 10.0 ** math.floor(math.log10(longest))
    return next((f * power for f in (5, 2) if f * power <= longest), power)


# ---------------------------------------------------------------- the marks


def _legend(y: float, ring: str, *, with_true: bool) -> Iterator[Markup]:
    x = float(_LEFT)
    kinds = (("first", "true place", 120), ("second", "noisy place", 130))
    for kind, words, room in kinds if with_true else kinds[1:]:
        yield dot(kind, x + 6, y - 4)
        yield text(x + 18, y, "small", words)
        x += room
    yield line("edge", x, y - 4, x + 30, y - 4)
    yield text(x + 38, y, "small", "public region")
    yield element("circle", "ring", cx=x + 160, cy=y - 4, r=6)
    yield text(x + 174, y, "small", ring)


def _ground(picture: PlaceMap, view: _View) -> Iterator[Markup]:
    """Grid lines a scale bar apart, and the edge of the region."""
    west, south, east, north = view.box
    step = round_length((east - west) / 5)
    for i in range(math.ceil(west / step), math.floor(east / step) + 1):
        yield line("grid", view.across(i * step), view.top, view.across(i * step), 4000)
    for i in range(math.ceil(south / step), math.floor(north / step) + 1):
        yield line("grid", 0, view.up(i * step), _WIDTH, view.up(i * step))
    yield _area("edge", picture.region, view.across, view.up)


def _places(noisy: Sequence[Point], true: Sequence[Point], view: _View) -> Iterator[Markup]:
    if true and len(noisy) <= MOST_LINKS:
        for one, other in zip(true, noisy, strict=True):
            yield line("link", *view.place(one), *view.place(other))
    for kind, points in (("second", noisy), ("first", true)):
        for point in points:
            if view.holds(point):
                yield dot(kind, *view.place(point))


def _ring(picture: PlaceMap, points: Sequence[Point], view: _View) -> Iterator[Markup]:
    """A ring around the place nearest to the middle of the picture."""
    west, south, east, north = view.box
    middle = (west + east) / 2, (south + north) / 2
    x, y = view.place(min(points, key=lambda p: math.dist(p, middle), default=middle))
    reach = picture.radius * _FRAME_WIDTH / (east - west)
    for kind in ("zone", "ring"):
        yield element("circle", kind, cx=x, cy=y, r=reach)


def _frame(picture: PlaceMap, view: _View) -> Iterator[Markup]:
    """The frame, the scale bar below it, and where it lies in the region if that is larger."""
    west, _, east, _ = view.box
    step = round_length((east - west) / 5)
    floor = view.top + view.height
    long = step * _FRAME_WIDTH / (east - west)
    yield box("frame", _LEFT, view.top, _FRAME_WIDTH, view.height)
    yield line("scalebar", _LEFT, floor + 22, _LEFT + long, floor + 22)
    yield text(_LEFT, floor + 42, "small", f"{length_label(step)} (lines are as far apart)")
    yield text(_LEFT + _FRAME_WIDTH, floor + 26, "small end", "north is up")
    if _cut(picture.region, view.box) != picture.region:
        yield from _inset(picture.region, view)


def _inset(region: Box, view: _View) -> Iterator[Markup]:
    """The whole region small in a corner, with the part that is shown."""
    west, south, east, north = region
    metre = _INSET / max(east - west, north - south)
    wide, high = (east - west) * metre, (north - south) * metre
    x, y = _LEFT + _FRAME_WIDTH - 12 - wide, view.top + 12
    across, up = linear((west, east), (x, x + wide)), linear((south, north), (y + high, y))
    yield box("paper", x - 8, y - 8, wide + 16, high + 16)
    yield _area("edge", region, across, up)
    yield _area("view", _cut(view.box, region), across, up)


def _area(kind: str, area: Box, across: Scale, up: Scale) -> Markup:
    west, south, east, north = area
    return box(kind, across(west), up(north), across(east) - across(west), up(south) - up(north))


def _cut(area: Box, to: Box) -> Box:
    west, east = (min(max(edge, to[0]), to[2]) for edge in (area[0], area[2]))
    south, north = (min(max(edge, to[1]), to[3]) for edge in (area[1], area[3]))
    return west, south, east, north


def length_label(length: float) -> str:
    """A length in the unit a person would use.

    >>> length_label(200.0), length_label(5000.0), length_label(0.5)
    ('200 m', '5 km', '0.5 m')
    """
    return f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
