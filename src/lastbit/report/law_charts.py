"""Charts of the two output laws of an audit: how likely each output is, and the event shaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from lastbit.exact import rounded_near
from lastbit.report.charts import (
    MARGIN,
    PANEL_WIDTH,
    SECOND,
    SIDE,
    WIDTH,
    Axis,
    Frame,
    Range,
    bar,
    box,
    clean,
    document,
    path,
    round_ticks,
    shortened,
    text,
)

_LAW_TOP, _LAW_HEIGHT, _LAW_PANEL = 92, 190, 356
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
    lines: list[Markup] = []
    for i, panel in enumerate(panels):
        top = 20 + i * _LAW_PANEL
        lines += [Markup(f'<g transform="translate(0 {top})">'), *_law_panel(panel), Markup("</g>")]
    return document(title, width=WIDTH, height=20 + len(panels) * _LAW_PANEL, lines=lines)


def _law_panel(panel: LawPanel) -> Iterator[Markup]:
    cells = panel.cells
    low, high = cells[0].start, cells[-1].end
    tallest = max(max(cell.first, cell.second) for cell in cells) or 1.0
    shares = ((s, f"{rounded_near(100 * s, 3)} %" if s else "0") for s in (0, tallest / 2, tallest))
    ticks = round_ticks(low, high, most=10)
    if any(cell.label for cell in cells):  # the labels of the cells, thinned
        cut = (shortened(clean(cell.label), _LONGEST_LABEL) for cell in cells)
        middles = ((cell.start + cell.end) / 2 for cell in cells)
        ticks = tuple(zip(middles, cut, strict=True))[:: -(-len(cells) // _MOST_LABELS)]
    across = Axis(ends=(low, high), ticks=ticks, label=panel.axis, grid=False)
    up = Axis(ends=(0.0, tallest), ticks=tuple(shares))
    frame = Frame(SIDE, _LAW_TOP, PANEL_WIDTH, _LAW_HEIGHT, across, up)
    x, y = frame.x, frame.top - 20
    yield text(MARGIN, 16, "title", panel.title)
    yield text(MARGIN, 38, "words", panel.words)
    for shift, kind, name in ((0, "first", panel.inputs[0]), (270, SECOND, panel.inputs[1])):
        yield box(kind, SIDE + shift, y - 9, 12, 12)
        yield text(SIDE + shift + 20, y + 2, "small", f"input {name}")
    if panel.event:
        yield box("event", SIDE + 540, y - 9, 12, 9)
        yield box("under", SIDE + 540, y, 12, 4)
        yield text(SIDE + 560, y + 2, "small", "the event")
    for start, end in panel.event:
        left, right = x(max(start, low)), x(min(end, high))
        if right < left:
            continue
        if right - left < _THIN:
            left, right = (left + right - _THIN) / 2, (left + right + _THIN) / 2
        yield box("event", left, frame.top, right - left, frame.height)
        yield box("under", left, frame.floor + 1, right - left, 4)
    yield from frame.lines()
    if panel.single:
        for cell in cells:
            room = (cell.end - cell.start) * 0.1
            left, right = x(cell.start + room), x(cell.end - room)
            wide = (right - left) / 2
            yield from bar("first", frame, left, max(wide - 1, 0.8), cell.first)
            yield from bar(SECOND, frame, left + wide, max(wide - 1, 0.8), cell.second)
    else:
        foot = frame.y(0)
        edges = [(at, cell) for cell in cells for at in (x(cell.start), x(cell.end))]
        first = [(x(low), foot), *((at, frame.y(c.first)) for at, c in edges), (x(high), foot)]
        second = [(x(low), foot), *((at, frame.y(c.second)) for at, c in edges), (x(high), foot)]
        yield path("polygon", "first law", first)
        yield path("polyline", "first step", first)
        yield path("polyline", "second step", second, dashes="6 3")
