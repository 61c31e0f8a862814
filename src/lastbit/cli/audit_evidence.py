"""The two laws of an audit as panels of a picture: exact where they are known, else fresh runs.

The counts that an audit certifies are gone by then, so the runs of the picture are new ones. They
prove nothing and are not meant to: the event is shaded only where it happens in them about as often
as it was counted.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lastbit.audit import (
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
    rows,
)
from lastbit.report import Cell, LawPanel, Range

if TYPE_CHECKING:
    from lastbit.audit import AuditResult
    from lastbit.cli.audit_subject import Subject

FIRST, MOST, SECONDS = 500, 20_000, 2.0  # runs of each input for the picture
BINS, MOST_VALUES, MOST_WORDS = 80, 48, 12
OUTER = 0.002  # share of the outputs beyond either end of the axis
FAR = 2.0**999  # NaN and infinities are coded beyond
CODES = ("entry 0", "entry 1")  # of outputs that are words: a number made of it, its length
KNOWN = ("entries", "bits", "differences", "summary")  # features that are the same for any sample
LONGEST = 40


@dataclass(frozen=True, slots=True)
class Evidence:
    """The panels of the picture, and where their heights come from."""

    panels: tuple[LawPanel, ...]
    drawn: str


def evidence_of(subject: Subject, result: AuditResult) -> Evidence:
    """The laws if they decided the audit, else what some runs show."""
    if result.exact:
        from lastbit.cli.audit_laws import law_panel

        panel = law_panel(subject.mechanism, result)
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
        words += " The event is no range of one of these axes, so it is not shaded."
    return Evidence(panels, words)


def short(value: Any) -> str:
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
        short(item): float(rows([item], 1)[0, CODES.index(found.feature.name)])
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
        single = False
    else:
        cells, ranges = _single(columns, seen, ranges)
        outside = tuple(float((np.abs(column) >= FAR).mean()) for column in columns)
        single = True
    words = "How often each value came out of either input."
    if max(outside) > 0:
        words += f" Not drawn: {_share(outside[0])} and {_share(outside[1])} of the outputs."
    return LawPanel(
        title=feature.name[0].upper() + feature.name[1:],
        words=words,
        axis=_axis(feature),
        inputs=(short(result.inputs[0]), short(result.inputs[1])),
        cells=cells,
        single=single,
        event=ranges,
    )


def _axis(feature: Feature) -> str:
    if feature.last_place_of:
        return f"{feature.name}: p for a multiple of 2^p but not of 2^(p+1)"
    return feature.name


def _single(
    columns: Sequence[NDArray[np.float64]], seen: NDArray[np.float64], ranges: Sequence[Range]
) -> tuple[tuple[Cell, ...], tuple[Range, ...]]:
    """One cell for each value, side by side: values far apart would leave an empty picture."""
    cells, inside = [], []
    for place, value in enumerate(seen.tolist()):
        shares = [float((column == value).mean()) for column in columns]
        label = "0 itself" if value == 2000.0 and last_place(np.zeros(1))[0] == value else ""
        cells.append(Cell(place, place + 1, shares[0], shares[1], label or f"{value:.6g}"))
        if any(low == value or low <= value < high for low, high in ranges):
            inside.append((float(place), float(place + 1)))
    return tuple(cells), tuple(_joined(inside))


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
    counts = [Counter(short(item) for item in some) for some in drawn]
    total = len(drawn[0])
    order = sorted(counts[0] | counts[1], key=lambda word: -abs(counts[0][word] - counts[1][word]))
    cells = tuple(
        Cell(place, place + 1, counts[0][word] / total, counts[1][word] / total, word)
        for place, word in enumerate(order[:MOST_WORDS])
    )
    named = set(result.witness.outputs) if isinstance(result.witness, OutputEvent) else set()
    more = f" {len(order) - MOST_WORDS} others are not drawn." if len(order) > MOST_WORDS else ""
    return LawPanel(
        title="The output",
        words=f"How often each output came out of either input.{more}",
        axis="the output",
        inputs=(short(result.inputs[0]), short(result.inputs[1])),
        cells=cells,
        single=True,
        event=tuple(_joined([(c.start, c.end) for c in cells if c.label in named])),
    )


def _share(share: float) -> str:
    return f"{100 * share:.2g} %"
