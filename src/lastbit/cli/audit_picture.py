"""The two laws of an audit as panels of a picture: exact where they are known, else fresh runs.

The counts that an audit certifies are gone by then, so the runs of the picture are new ones. They
prove nothing and are not meant to: the event is shaded only where it happens in them about as often
as it was counted.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.audit import (
    AuditResult,
    Condition,
    Event,
    Feature,
    OutputEvent,
    RangeEvent,
    RatioEvent,
    SeededRandom,
    as_release,
    features,
    last_place,
    law_of,
    rows,
)
from lastbit.cli.loading import Subject
from lastbit.exact import Ball, rational
from lastbit.laws import Law, OnGrid
from lastbit.report import Cell, LawPanel, Range
from lastbit.verify import ExactLaw

FIRST, MOST, SECONDS = 500, 20_000, 2.0  # runs of each input for the picture
BINS, MOST_VALUES, MOST_WORDS = 80, 48, 12
OUTER = 0.002  # share of the outputs beyond either end of the axis
FAR = 2.0**999  # NaN and infinities are coded beyond
CODES = ("entry 0", "entry 1")  # of outputs that are words: a number made of it, its length
KNOWN = ("entries", "bits", "differences", "summary")  # features that are the same for any sample
LONGEST = 40
MOST_CELLS, LAW_OUTER, ALIKE = 120, Fraction(1, 1000), 1e-9  # for exact laws


@dataclass(frozen=True, slots=True)
class Evidence:
    """The panels of the picture, and where their heights come from."""

    panels: tuple[LawPanel, ...]
    drawn: str


def evidence_of(subject: Subject, result: AuditResult) -> Evidence:
    """The laws if they decided the audit, else what some runs show."""
    if result.exact:
        panel = _law_panel(subject.mechanism, result)
        return Evidence(() if panel is None else (panel,), "Exact probabilities, drawn as floats.")
    if subject.release is None:
        return Evidence((), "")
    release = as_release(subject.release)
    drawn = [_runs(release, value) for value in result.inputs]
    size = len(drawn[0])
    words = (
        f"Shares of {size:,} fresh runs of each input, drawn for this picture without a seed: they "
        "differ from page to page. The certified numbers come from the counts above."
    )
    panels = tuple(_panels(drawn, result))
    if not any(panel.event for panel in panels):
        words += " The event is not a range on one of these axes, so it is not shaded."
    return Evidence(panels, words)


def label_of(value: Any) -> str:
    """An input or an output in a few characters."""
    listed = value.tolist() if isinstance(value, np.ndarray) else value
    words = (
        f"[{', '.join(f'{entry:g}' for entry in listed)}]"
        if isinstance(listed, list) and all(type(entry) in (int, float) for entry in listed)
        else repr(listed)
    )
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"


def readable(release: Callable[..., Any], result: AuditResult) -> Event:
    """The event; if outputs are words, by the words themselves and not by their codes."""
    found = _only_condition(result.witness)
    if found is None or found.feature.name not in CODES:
        return result.witness
    drawn = [list(as_release(release)(value, FIRST)) for value in result.inputs]
    if not all(_are_words(some) for some in drawn):
        return result.witness
    words = {
        label_of(item): float(rows([item], 1)[0, CODES.index(found.feature.name)])
        for some in drawn
        for item in some
    }
    inside = [
        word
        for word, code in sorted(words.items())
        if any(low == code or low <= code < high for low, high in found.ranges)
    ]
    return OutputEvent.of(inside, most=MOST_WORDS) if inside else result.witness


# ---------------------------------------------------------------- runs


def _runs(release: Callable[[Any, int], Any], value: Any) -> list[Any] | NDArray[Any]:
    """Some runs of one input: as many as two seconds allow."""
    start = time.perf_counter()
    release(value, FIRST)
    pace = max((time.perf_counter() - start) / FIRST, 1e-9)
    size = max(FIRST, min(MOST, int(SECONDS / pace) // FIRST * FIRST))
    found = release(value, size)
    return found if isinstance(found, np.ndarray) else list(found)


def _panels(drawn: Sequence[Any], result: AuditResult) -> list[LawPanel]:
    size = min(len(some) for some in drawn)
    drawn = [some[:size] for some in drawn]
    if any(_are_words(some) for some in drawn):
        return [_word_panel(drawn, result)]
    tables = [rows(some, size) for some in drawn]
    told = _only_condition(result.witness)
    if told is not None and not _agrees(told, tables, result):
        told = None
    known = [f for f in _features(tables) if f.group in KNOWN]
    plain = known[:1] if tables[0].shape[1] == 1 else []
    mixed = result.witness.groups if isinstance(result.witness, RatioEvent) else ()
    shown = told.feature if told else _telling(known, tables, "bits" if "bits" in mixed else "")
    chosen = plain if plain and shown.name == plain[0].name else [*plain, shown]
    ranges = told.ranges if told else ()
    return [
        _column_panel(feature, tables, result, ranges if feature is chosen[-1] else ())
        for feature in chosen
    ]


def _are_words(outputs: Any) -> bool:
    if isinstance(outputs, np.ndarray) and outputs.ndim > 0:
        return outputs.dtype.kind in "OSU"
    try:
        return np.array(outputs).dtype.kind not in "biufc"
    except ValueError:  # lists of different lengths
        return True


def _only_condition(event: Event) -> Condition | None:
    """What the event asks of one feature; None if it has no such form."""
    match event:
        case RangeEvent(conditions=(condition,)):
            return condition
    return None


def _features(tables: Sequence[NDArray[np.float64]]) -> list[Feature]:
    return features(np.concatenate(tables), SeededRandom(0, "picture"))


def _agrees(
    condition: Condition, tables: Sequence[NDArray[np.float64]], result: AuditResult
) -> bool:
    """Whether the event, as it would be shaded, happens about as often as it was counted."""
    counts = ((result.hits, result.trials), (result.other_hits, result.other_trials))
    if not result.trials or not result.other_trials:
        return False
    for table, (hits, trials) in zip(tables, counts, strict=True):
        column = condition.feature.of(table)
        inside = np.zeros(len(column), dtype=bool)
        for low, high in condition.ranges:
            inside |= (column == low) | ((column >= low) & (column < high))
        if abs(inside.mean() - hits / trials) > 3 / math.sqrt(len(column)):
            return False
    return True


def _telling(
    known: Sequence[Feature], tables: Sequence[NDArray[np.float64]], group: str
) -> Feature:
    """The feature in which the two inputs differ most, of that group if there is one."""
    found = [f for f in known if f.group == group] or known

    def difference(feature: Feature) -> float:
        one, two = (feature.of(table) for table in tables)
        edges = np.unique(np.quantile(np.concatenate([one, two]), np.arange(1, 40) / 40))
        shares = [
            np.bincount(np.searchsorted(edges, side, side="right"), minlength=edges.size + 1)
            for side in (one, two)
        ]
        return float(np.abs(shares[0] - shares[1]).sum())

    return max(found, key=difference)


# ---------------------------------------------------------------- panels


def _column_panel(
    feature: Feature,
    tables: Sequence[NDArray[np.float64]],
    result: AuditResult,
    ranges: tuple[Range, ...],
) -> LawPanel:
    columns = [feature.of(table) for table in tables]
    seen = np.unique(np.concatenate(columns))
    seen = seen[np.abs(seen) < FAR]
    if not 0 < seen.size <= MOST_VALUES:
        cells, outside = _binned(columns) if seen.size else ((Cell(0, 1, 0, 0),), (1.0, 1.0))
    else:
        cells, ranges = _single(columns, seen, ranges)
        outside = tuple(float((np.abs(column) >= FAR).mean()) for column in columns)
    words = "How often each value came out of either input."
    if max(outside) > 0:
        one, two = (f"{100 * share:.2g} %" for share in outside)
        words += f" Not drawn: {one} and {two} of the outputs."
    axis = feature.name
    if feature.last_place_of:
        axis += ": p for a multiple of 2^p but not of 2^(p+1)"
    return _panel(feature.name[0].upper() + feature.name[1:], words, result, cells, ranges, axis)


def _panel(
    title: str,
    words: str,
    result: AuditResult,
    cells: tuple[Cell, ...],
    event: Sequence[Range],
    axis: str = "the output",
) -> LawPanel:
    return LawPanel(
        title=title,
        words=words,
        axis=axis,
        inputs=(label_of(result.inputs[0]), label_of(result.inputs[1])),
        cells=cells,
        single=any(cell.label for cell in cells),
        event=tuple(event),
    )


def _labelled(shares: Iterable[tuple[str, float, float]]) -> tuple[Cell, ...]:
    """One cell for each value, side by side: values far apart would leave an empty picture."""
    return tuple(Cell(i, i + 1, p, q, label) for i, (label, p, q) in enumerate(shares))


def _word_cells(
    first: Mapping[Any, float], second: Mapping[Any, float], label: Callable[[Any], str] = label_of
) -> tuple[Cell, ...]:
    """The words in which two laws differ most."""
    both = [(w, first.get(w, 0.0), second.get(w, 0.0)) for w in dict.fromkeys([*first, *second])]
    both.sort(key=lambda one: -abs(one[1] - one[2]))
    return _labelled((label(word), p, q) for word, p, q in both[:MOST_WORDS])


def _single(
    columns: Sequence[NDArray[np.float64]], seen: NDArray[np.float64], ranges: Sequence[Range]
) -> tuple[tuple[Cell, ...], tuple[Range, ...]]:
    shares, inside = [], []
    for place, value in enumerate(seen.tolist()):
        is_zero = value == 2000.0 and last_place(np.zeros(1))[0] == value
        one, two = (float((column == value).mean()) for column in columns)
        shares.append(("0 itself" if is_zero else f"{value:.6g}", one, two))
        if any(low == value or low <= value < high for low, high in ranges):
            inside.append((float(place), float(place + 1)))
    return _labelled(shares), tuple(_joined(inside))


def _joined(ranges: Sequence[Range]) -> list[Range]:
    """Adjacent ranges as one."""
    joined: list[Range] = []
    for low, high in ranges:
        if joined and joined[-1][1] == low:
            joined[-1] = joined[-1][0], high
        else:
            joined.append((low, high))
    return joined


def _binned(
    columns: Sequence[NDArray[np.float64]],
) -> tuple[tuple[Cell, ...], tuple[float, ...]]:
    near = np.concatenate(columns)
    near = near[np.abs(near) < FAR]
    low, high = (float(end) for end in np.quantile(near, [OUTER, 1 - OUTER]))
    if not low < high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, BINS + 1)
    counts = [np.histogram(column, edges)[0] / len(column) for column in columns]
    cells = tuple(
        Cell(float(a), float(b), float(p), float(q))
        for a, b, p, q in zip(edges[:-1], edges[1:], *counts, strict=True)
    )
    return cells, tuple(float(1 - count.sum()) for count in counts)


def _word_panel(drawn: Sequence[Any], result: AuditResult) -> LawPanel:
    total = len(drawn[0])
    counts = [Counter(map(label_of, some)) for some in drawn]
    one, two = ({word: count / total for word, count in some.items()} for some in counts)
    cells = _word_cells(one, two, label=str)
    named = set(result.witness.outputs) if isinstance(result.witness, OutputEvent) else set()
    others = len(counts[0] | counts[1]) - MOST_WORDS
    more = f" {others} others are not drawn." if others > 0 else ""
    words = f"How often each output came out of either input.{more}"
    event = _joined([(cell.start, cell.end) for cell in cells if cell.label in named])
    return _panel("The output", words, result, cells, event)


# ---------------------------------------------------------------- exact laws


def _law_panel(mechanism: Any, result: AuditResult) -> LawPanel | None:
    """The laws of the two inputs and the outputs that tell them apart; None for odd laws."""
    source = law_of(mechanism)
    if source is None:
        return None
    one, two = (source(value) for value in result.inputs)
    cells = _cells(one, two)
    if not cells:
        return None
    words = "Exact laws. Shaded: where the first input is as much likelier as in the event."
    event = _best_cells(cells, float(result.delta))
    return _panel("How likely each output is", words, result, cells, event)


def _best_cells(cells: Sequence[Cell], delta: float) -> list[Range]:
    """The cells of the best event, by floats, and those of the same ratio."""
    ordered = sorted(cells, key=_ratio, reverse=True)
    p = q = 0.0
    best, least = 0.0, math.inf
    for cell in ordered:
        p, q = p + cell.first, q + cell.second
        if p <= delta:
            continue
        loss = math.log((p - delta) / q) if q > 0 else math.inf
        if loss > best + ALIKE:
            best, least = loss, _ratio(cell)
    inside = [cell for cell in cells if _ratio(cell) >= least - ALIKE and cell.first > 0]
    return _joined([(cell.start, cell.end) for cell in inside])


def _ratio(cell: Cell) -> float:
    if cell.first <= 0:
        return -math.inf
    return math.log(cell.first / cell.second) if cell.second > 0 else math.inf


def _cells(one: Any, two: Any) -> tuple[Cell, ...]:
    if isinstance(one, OnGrid) and isinstance(two, OnGrid) and one.step == two.step:
        return _whole(one.law, two.law, one.step)
    if isinstance(one, Law) and isinstance(two, Law):
        return _whole(one, two, Fraction(1))
    first, second = _listed(one), _listed(two)
    if first is None or second is None:
        return ()
    if all(isinstance(output, int | float | Fraction) for output in (*first, *second)):
        return _number_cells(first, second)
    return _word_cells(first, second)


def _whole(one: Law, two: Law, step: Fraction) -> tuple[Cell, ...]:
    """Single values if they are few, else ranges of like length."""
    low = min(law.quantile(LAW_OUTER) for law in (one, two))
    high = max(law.quantile(1 - LAW_OUTER) for law in (one, two))
    width = -(-(high - low + 1) // MOST_CELLS)
    if high - low < MOST_VALUES:
        return _labelled(
            (f"{float(k * step):.6g}", _float(one.probability(k)), _float(two.probability(k)))
            for k in range(low, high + 1)
        )
    edges = [low + width * i for i in range((high - low) // width + 2)]
    sums = [[_float(law.cdf(edge - 1)) for edge in edges] for law in (one, two)]
    return tuple(
        Cell(float(edges[i] * step), float(edges[i + 1] * step),
             sums[0][i + 1] - sums[0][i], sums[1][i + 1] - sums[1][i])
        for i in range(len(edges) - 1)
    )  # fmt: skip


def _listed(law: Any) -> dict[Any, float] | None:
    if isinstance(law, ExactLaw):
        return {o: float(p) for o, p in zip(law.outputs, law.probabilities, strict=True)}
    if isinstance(law, Mapping):
        return {o: _float(p) if isinstance(p, Ball) else float(rational(p)) for o, p in law.items()}
    return None


def _number_cells(first: Mapping[Any, float], second: Mapping[Any, float]) -> tuple[Cell, ...]:
    outputs = sorted({*first, *second})
    laws = [[law.get(output, 0.0) for output in outputs] for law in (first, second)]
    if len(outputs) <= MOST_VALUES:
        return _labelled(zip((f"{float(o):.6g}" for o in outputs), *laws, strict=True))
    places = np.array([float(output) for output in outputs])
    finite = np.isfinite(places)
    places, weights = places[finite], np.array(laws)[:, finite]
    total = weights.sum(axis=0).cumsum()
    # all but a thousandth of either law at either end
    outer = 2 * float(LAW_OUTER)
    inner = places[(total > outer) & (total < 2 - outer)]
    if inner.size < 2:
        return ()
    edges = np.linspace(inner[0], inner[-1], MOST_CELLS + 1)
    heights = [np.histogram(places, edges, weights=law)[0] for law in weights]
    ends = zip(edges[:-1], edges[1:], *heights, strict=True)
    return tuple(Cell(float(a), float(b), float(p), float(q)) for a, b, p, q in ends)


def _float(ball: Ball) -> float:
    low, high = ball.ends
    return float((low + high) / 2)
