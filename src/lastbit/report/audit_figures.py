"""The two laws of an audit, one over the other, with the event that tells them apart.

Heights are shares of runs or exact probabilities; whoever hands them over says which. The event is
shaded and also underlined below the axis, so that it shows in grey and to colour-blind eyes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lastbit.report.svg import STYLE, Scale, document, line, linear, text

Range: TypeAlias = tuple[float, float]

WIDTH, LEFT, RIGHT, MARGIN = 880, 64, 24, 24
TOP, CHART_TOP, CHART_HEIGHT, BELOW = 20, 92, 190, 74
MOST_LABELS = 14
LONGEST_LABEL = 16
THIN = 3.0  # pixels: the least width of a shaded range

LOOK = """
  .law { fill-opacity: 0.45; stroke: none; }
  .step { fill: none; stroke-width: 2; stroke-linejoin: round; }
  .event { fill: #8250df; fill-opacity: 0.13; }
  .under { fill: #8250df; }
  @media (prefers-color-scheme: dark) {
    .event { fill: #b392f0; fill-opacity: 0.22; }
    .under { fill: #b392f0; }
  }
"""


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

    `single` cells are values or words, drawn as bars side by side; others are adjacent ranges,
    drawn as two outlines. `event` are ranges of places.
    """

    title: str
    words: str
    axis: str
    inputs: tuple[str, str]
    cells: tuple[Cell, ...]
    single: bool
    event: tuple[Range, ...] = ()


def law_picture(title: str, panels: Sequence[LawPanel]) -> str:
    """The panels below one another, as the text of an SVG picture.

    >>> coin = (Cell(0, 1, 0.9, 0.2, "no"), Cell(1, 2, 0.1, 0.8, "yes"))
    >>> panel = LawPanel(
    ...     title="t", words="w", axis="output", inputs=("0", "1"), cells=coin, single=True,
    ...     event=((1, 2),))
    >>> drawn = law_picture("a coin", [panel])
    >>> drawn.count('class="event"'), drawn.count('class="first"')
    (2, 3)
    """
    lines, height = [], TOP
    for panel in panels:
        lines.append(f'<g transform="translate(0 {height})">')
        lines.extend(_panel(panel))
        lines.append("</g>")
        height += CHART_TOP + CHART_HEIGHT + BELOW
    return document(title, width=WIDTH, height=height, style=STYLE + LOOK, lines=lines)


def _panel(panel: LawPanel) -> Iterator[str]:
    low, high = panel.cells[0].start, panel.cells[-1].end
    across = linear((low, high), (LEFT, WIDTH - RIGHT))
    tallest = max(max(cell.first, cell.second) for cell in panel.cells) or 1.0
    up = linear((0.0, tallest), (CHART_TOP + CHART_HEIGHT, CHART_TOP))
    yield text(MARGIN, 16, "title", panel.title)
    yield text(MARGIN, 38, "words", panel.words)
    yield from _legend(panel)
    yield from _event(panel.event, (low, high), across)
    for share in (0.0, tallest / 2, tallest):
        yield line("axis" if share == 0 else "grid", LEFT, up(share), WIDTH - RIGHT, up(share))
        yield text(LEFT - 8, up(share) + 4, "small end", _percent(share))
    yield from (_bars if panel.single else _outlines)(panel.cells, across, up)
    yield from _labels(panel, across)


def _legend(panel: LawPanel) -> Iterator[str]:
    y = CHART_TOP - 20
    yield _box("first", LEFT, y - 9, 12, 12)
    yield text(LEFT + 20, y + 2, "small", f"input {panel.inputs[0]}")
    yield _box("second outlined", LEFT + 270, y - 9, 12, 12)
    yield text(LEFT + 290, y + 2, "small", f"input {panel.inputs[1]}")
    if panel.event:
        yield _box("event", LEFT + 540, y - 9, 12, 9)
        yield _box("under", LEFT + 540, y, 12, 4)
        yield text(LEFT + 560, y + 2, "small", "the event")


def _event(ranges: Sequence[Range], ends: Range, across: Scale) -> Iterator[str]:
    floor = CHART_TOP + CHART_HEIGHT
    for start, end in ranges:
        left, right = across(max(start, ends[0])), across(min(end, ends[1]))
        if right < left:
            continue
        if right - left < THIN:
            left, right = (left + right - THIN) / 2, (left + right + THIN) / 2
        yield _box("event", left, CHART_TOP, right - left, CHART_HEIGHT)
        yield _box("under", left, floor + 1, right - left, 4)


def _bars(cells: Sequence[Cell], across: Scale, up: Scale) -> Iterator[str]:
    for cell in cells:
        room = (cell.end - cell.start) * 0.1
        left, right = across(cell.start + room), across(cell.end - room)
        middle = (left + right) / 2
        for kind, share, x, wide in (
            ("first", cell.first, left, middle - left),
            ("second outlined", cell.second, middle, right - middle),
        ):
            if share > 0:
                yield _box(kind, x, up(share), max(wide - 1, 0.8), up(0) - up(share))


def _outlines(cells: Sequence[Cell], across: Scale, up: Scale) -> Iterator[str]:
    corners = " ".join(_steps([cell.first for cell in cells], cells, across, up))
    yield f'<polygon class="first law" points="{corners}"/>'
    for kind, shares, dashes in (
        ("first", [cell.first for cell in cells], ""),
        ("second", [cell.second for cell in cells], ' stroke-dasharray="6 3"'),
    ):
        places = " ".join(_steps(shares, cells, across, up))
        yield f'<polyline class="{kind} step" points="{places}"{dashes}/>'


def _steps(
    shares: Sequence[float], cells: Sequence[Cell], across: Scale, up: Scale
) -> Iterator[str]:
    yield f"{across(cells[0].start):.2f},{up(0):.2f}"
    for share, cell in zip(shares, cells, strict=True):
        yield f"{across(cell.start):.2f},{up(share):.2f}"
        yield f"{across(cell.end):.2f},{up(share):.2f}"
    yield f"{across(cells[-1].end):.2f},{up(0):.2f}"


def _labels(panel: LawPanel, across: Scale) -> Iterator[str]:
    floor = CHART_TOP + CHART_HEIGHT
    for place, label in _ticks(panel):
        yield line("axis", across(place), floor, across(place), floor + 7)
        yield text(across(place), floor + 22, "small middle", label)
    yield text((LEFT + WIDTH - RIGHT) / 2, floor + 44, "small middle", panel.axis)


def _ticks(panel: LawPanel) -> list[tuple[float, str]]:
    """The labels of the cells, thinned; or round numbers along the axis."""
    if any(cell.label for cell in panel.cells):
        every = -(-len(panel.cells) // MOST_LABELS)
        return [((c.start + c.end) / 2, _cut(c.label)) for c in panel.cells[::every]]
    low, high = panel.cells[0].start, panel.cells[-1].end
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    while (high - low) / step > 10:
        step *= 2 if (high - low) / step < 20 else 5 if (high - low) / step < 50 else 10
    first = math.ceil(low / step)
    places = [k * step for k in range(first, math.floor(high / step) + 1)]
    return [(place, f"{place:.6g}") for place in places]


def _cut(label: str) -> str:
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1]}…"


def _percent(share: float) -> str:
    return "0" if share == 0 else f"{100 * share:.3g} %"


def _box(kind: str, x: float, y: float, width: float, height: float) -> str:
    return (
        f'<rect class="{kind}" x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}"/>'
    )
