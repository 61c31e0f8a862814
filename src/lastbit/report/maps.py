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

from lastbit.report.charts import Axis, Frame, Point, box, document, dot, element, line, text

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
    frame = _frame(_visible(picture, [*noisy, *true]), top)
    lines = [text(_LEFT, 38, "name", picture.title)]
    if true:
        lines.append(text(frame.right, 38, "warning bad end", WARNING))
    lines += [text(_LEFT, 62 + 18 * i, "words", words) for i, words in enumerate(captions)]
    lines += _legend(top - 14, picture.ring, with_true=bool(true))
    edge = box("", _LEFT, top, frame.width, frame.height)
    lines.append(Markup(f'<clipPath id="inside">{edge}</clipPath><g clip-path="url(#inside)">'))
    lines += _inside(picture, noisy, true, frame)
    lines.append(Markup("</g>"))
    lines += _around(picture.region, frame)
    height = round(frame.floor + _BELOW)
    return document(picture.title, width=_WIDTH, height=height, lines=lines)


def _visible(picture: PlaceMap, points: Sequence[Point]) -> Box:
    """The region, or only where the places are if they fill little of it; never much beyond."""
    west, south, east, north = picture.region
    wide, high = east - west, north - south
    seen = [
        (x, y)
        for x, y in points
        if west - wide <= x <= east + wide and south - high <= y <= north + high
    ]
    if not seen:
        return _padded(picture.region, 0.06 * max(wide, high))
    xs, ys = zip(*seen, strict=True)
    around = _padded((min(xs), min(ys), max(xs), max(ys)), 1.3 * picture.radius)
    if max((around[2] - around[0]) / wide, (around[3] - around[1]) / high) < 0.5:
        return around
    both = (min(west, *xs), min(south, *ys), max(east, *xs), max(north, *ys))
    return _padded(both, 0.06 * max(wide, high))


def _padded(area: Box, by: float) -> Box:
    return area[0] - by, area[1] - by, area[2] + by, area[3] + by


def _frame(area: Box, top: float) -> Frame:
    """The box made as wide or high as the frame, one scale in both directions."""
    wide, high = max(area[2] - area[0], 1e-6), max(area[3] - area[1], 1e-6)
    height = min(max(_FRAME_WIDTH * high / wide, _LEAST_HEIGHT), _MOST_HEIGHT)
    metre = min(_FRAME_WIDTH / wide, height / high)
    x, y = (area[0] + area[2]) / 2, (area[1] + area[3]) / 2
    half = _FRAME_WIDTH / metre / 2, height / metre / 2
    across = Axis(ends=(x - half[0], x + half[0]), ticks=())
    up = Axis(ends=(y - half[1], y + half[1]), ticks=())
    return Frame(_LEFT, top, _FRAME_WIDTH, height, across, up)


def round_length(longest: float) -> float:
    """The greatest of 1, 2, 5, 10, 20, ... that is not above a length.

    >>> round_length(730), round_length(0.3)
    (500.0, 0.2)
    """
    power: float = 10.0 ** math.floor(math.log10(longest))
    return next((f * power for f in (5, 2) if f * power <= longest), power)


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


def _inside(
    picture: PlaceMap, noisy: Sequence[Point], true: Sequence[Point], frame: Frame
) -> Iterator[Markup]:
    """Lines a scale bar apart, the edge of the region, the places, and a ring around one."""
    x, y, (west, east), (south, north) = frame.x, frame.y, frame.across.ends, frame.up.ends
    step = _step(frame)
    for i in range(math.ceil(west / step), math.floor(east / step) + 1):
        yield line("grid", x(i * step), frame.top, x(i * step), 4000)
    for i in range(math.ceil(south / step), math.floor(north / step) + 1):
        yield line("grid", 0, y(i * step), _WIDTH, y(i * step))
    yield _area("edge", picture.region, frame)
    if true and len(noisy) <= MOST_LINKS:
        for one, other in zip(true, noisy, strict=True):
            yield line("link", x(one[0]), y(one[1]), x(other[0]), y(other[1]))
    for kind, points in (("second", noisy), ("first", true)):
        for point in points:
            if west <= point[0] <= east and south <= point[1] <= north:
                yield dot(kind, x(point[0]), y(point[1]))
    middle = (west + east) / 2, (south + north) / 2
    nearest = min(true or noisy, key=lambda p: math.dist(p, middle), default=middle)
    reach = picture.radius * frame.width / (east - west)
    for kind in ("zone", "ring"):
        yield element("circle", kind, cx=x(nearest[0]), cy=y(nearest[1]), r=reach)


def _around(region: Box, frame: Frame) -> Iterator[Markup]:
    """The frame, the scale bar below it, and where it lies in the region if that is larger."""
    (west, east), (south, north) = frame.across.ends, frame.up.ends
    long = _step(frame) * frame.width / (east - west)
    yield box("frame", _LEFT, frame.top, frame.width, frame.height)
    yield line("scalebar", _LEFT, frame.floor + 22, _LEFT + long, frame.floor + 22)
    apart = f"{length_label(_step(frame))} (lines are as far apart)"
    yield text(_LEFT, frame.floor + 42, "small", apart)
    yield text(frame.right, frame.floor + 26, "small end", "north is up")
    shown = (west, south, east, north)
    if _cut(region, shown) == region:
        return
    metre = _INSET / max(region[2] - region[0], region[3] - region[1])
    wide, high = (region[2] - region[0]) * metre, (region[3] - region[1]) * metre
    x, y = frame.right - 12 - wide, frame.top + 12
    across = Axis(ends=(region[0], region[2]), ticks=())
    inset = Frame(x, y, wide, high, across, Axis(ends=(region[1], region[3]), ticks=()))
    yield box("paper", x - 8, y - 8, wide + 16, high + 16)
    yield _area("edge", region, inset)
    yield _area("view", _cut(shown, region), inset)


def _step(frame: Frame) -> float:
    return round_length((frame.across.ends[1] - frame.across.ends[0]) / 5)


def _area(kind: str, area: Box, frame: Frame) -> Markup:
    left, top, right, floor = (
        frame.x(area[0]), frame.y(area[3]), frame.x(area[2]), frame.y(area[1]),
    )  # fmt: skip
    return box(kind, left, top, right - left, floor - top)


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
