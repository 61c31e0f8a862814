"""The picture of an audit: both laws side by side, and the event that tells them apart.

Exact laws where they are known, else fresh runs: the counts that an audit certifies are gone by
then. They prove nothing and are not meant to: the event is shaded only where it happens in them
about as often as it was counted.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
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
from lastbit.exact import Ball, rational, rounded_near
from lastbit.laws import Law, OnGrid
from lastbit.report import Cell, LawPanel, Range, middle
from lastbit.verify import ExactLaw

FIRST, MOST, SECONDS = 500, 20_000, 2.0  # runs of each input for the picture
BINS, MOST_VALUES, MOST_WORDS = 80, 48, 12
OUTER = 0.002  # share of the outputs beyond either end of the axis
FAR = 2.0**999  # NaN and infinities are coded beyond
CODES = ("entry 0", "entry 1")  # of outputs that are words: a number made of it, its length
KNOWN = ("entries", "bits", "differences", "summary")  # features that are the same for any sample
LONGEST = 40
MOST_CELLS, LAW_OUTER, ALIKE = 120, Fraction(1, 1000), 1e-9  # for exact laws


def evidence_of(subject: Subject, result: AuditResult) -> tuple[tuple[LawPanel, ...], str]:
    """The laws if they decided the audit, else what some runs show; and where heights come from."""
    if result.exact:
        return _law_panels(subject.mechanism, result), "Exact probabilities, drawn as floats."
    if subject.release is None:
        return (), ""
    release = as_release(subject.release)
    drawn = [_runs(release, value) for value in result.inputs]
    words = (
        f"Shares of {len(drawn[0]):,} fresh runs of each input, drawn without a seed: they differ "
        f"from page to page. The certified numbers come from the counts above."
    )
    panels = tuple(_run_panels(drawn, result))
    if not any(panel.event for panel in panels):
        words += " The event is not a range on one of these axes, so it is not shaded."
    return panels, words


def label_of(value: Any) -> str:
    """An input or an output in a few characters."""
    listed = value.tolist() if isinstance(value, np.ndarray) else value
    numbers = isinstance(listed, list) and all(type(entry) in (int, float) for entry in listed)
    words = f"[{', '.join(f'{entry:g}' for entry in listed)}]" if numbers else repr(listed)
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"


def readable(release: Callable[..., Any], result: AuditResult) -> Event:
    """The event; if outputs are words, by the words themselves and not by their codes."""
    found = _only_condition(result.witness)
    if found is None or found.feature.name not in CODES:
        return result.witness
    drawn = [list(as_release(release)(value, FIRST)) for value in result.inputs]
    if not all(_are_words(some) for some in drawn):
        return result.witness
    entry = CODES.index(found.feature.name)
    codes = {label_of(item): float(rows([item], 1)[0, entry]) for some in drawn for item in some}
    inside = [word for word, code in sorted(codes.items()) if _within(code, found.ranges)]
    return OutputEvent.of(inside, most=MOST_WORDS) if inside else result.witness


def _only_condition(event: Event) -> Condition | None:
    """What the event asks of one feature; None if it has no such form."""
    match event:
        case RangeEvent(conditions=(condition,)):
            return condition
    return None


def _within(value: float, ranges: Sequence[Range]) -> bool:
    return any(low == value or low <= value < high for low, high in ranges)


def _are_words(outputs: Any) -> bool:
    if isinstance(outputs, np.ndarray) and outputs.ndim > 0:
        return outputs.dtype.kind in "OSU"
    try:
        return np.array(outputs).dtype.kind not in "biufc"
    except ValueError:  # lists of different lengths
        return True


def _panel(
    title: str,
    words: str,
    result: AuditResult,
    cells: tuple[Cell, ...],
    event: Sequence[Range],
    axis: str = "the output",
) -> LawPanel:
    """A panel; ranges of the event that touch are shaded as one."""
    joined: list[Range] = []
    for low, high in event:
        start = joined.pop()[0] if joined and joined[-1][1] == low else low
        joined.append((start, high))
    return LawPanel(
        title=title,
        words=words,
        axis=axis,
        inputs=(label_of(result.inputs[0]), label_of(result.inputs[1])),
        cells=cells,
        single=any(cell.label for cell in cells),
        event=tuple(joined),
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


def _range_cells(edges: Any, *shares: Any) -> tuple[Cell, ...]:
    """Adjacent ranges, and how likely each is under either input."""
    ends = zip(edges[:-1], edges[1:], *shares, strict=True)
    return tuple(Cell(float(a), float(b), float(p), float(q)) for a, b, p, q in ends)


def _runs(release: Callable[[Any, int], Any], value: Any) -> list[Any] | NDArray[Any]:
    """Some runs of one input: as many as two seconds allow."""
    start = time.perf_counter()
    release(value, FIRST)
    pace = max((time.perf_counter() - start) / FIRST, 1e-9)
    size = max(FIRST, min(MOST, int(SECONDS / pace) // FIRST * FIRST))
    found = release(value, size)
    return found if isinstance(found, np.ndarray) else list(found)


def _run_panels(drawn: Sequence[Any], result: AuditResult) -> list[LawPanel]:
    size = min(len(some) for some in drawn)
    drawn = [some[:size] for some in drawn]
    if any(_are_words(some) for some in drawn):
        return [_word_panel(drawn, result)]
    tables = [rows(some, size) for some in drawn]
    told = _only_condition(result.witness)
    if told is not None and not _agrees(told, tables, result):
        told = None
    seeds = SeededRandom(0, "picture")
    known = [f for f in features(np.concatenate(tables), seeds) if f.group in KNOWN]
    plain = known[:1] if tables[0].shape[1] == 1 else []
    mixed = result.witness.groups if isinstance(result.witness, RatioEvent) else ()
    shown = told.feature if told else _telling(known, tables, "bits" if "bits" in mixed else "")
    chosen = plain if plain and shown.name == plain[0].name else [*plain, shown]
    ranges = told.ranges if told else ()
    return [
        _column_panel(feature, tables, result, ranges if feature is chosen[-1] else ())
        for feature in chosen
    ]


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

    def difference(feature: Feature) -> float:
        one, two = (feature.of(table) for table in tables)
        edges = np.unique(np.quantile(np.concatenate([one, two]), np.arange(1, 40) / 40))
        shares = [
            np.bincount(np.searchsorted(edges, side, side="right"), minlength=edges.size + 1)
            for side in (one, two)
        ]
        return float(np.abs(shares[0] - shares[1]).sum())

    return max([f for f in known if f.group == group] or known, key=difference)


def _column_panel(
    feature: Feature,
    tables: Sequence[NDArray[np.float64]],
    result: AuditResult,
    ranges: Sequence[Range],
) -> LawPanel:
    columns = [feature.of(table) for table in tables]
    near = np.concatenate(columns)
    near = near[np.abs(near) < FAR]
    seen = np.unique(near)
    if seen.size == 0:
        cells, outside = _range_cells((0, 1), [0], [0]), [1.0, 1.0]
    elif seen.size <= MOST_VALUES:
        zero = last_place(np.zeros(1))[0] if 2000.0 in seen else None
        names = ("0 itself" if value == zero else f"{value:.6g}" for value in seen.tolist())
        shares = [[float((column == value).mean()) for value in seen] for column in columns]
        cells = _labelled(zip(names, *shares, strict=True))
        places = [i for i, value in enumerate(seen.tolist()) if _within(value, ranges)]
        ranges = [(float(i), float(i + 1)) for i in places]
        outside = [float((np.abs(column) >= FAR).mean()) for column in columns]
    else:
        low, high = (float(end) for end in np.quantile(near, [OUTER, 1 - OUTER]))
        if not low < high:
            low, high = low - 0.5, high + 0.5
        edges = np.linspace(low, high, BINS + 1)
        counts = [np.histogram(column, edges)[0] / len(column) for column in columns]
        cells = _range_cells(edges, *counts)
        outside = [float(1 - count.sum()) for count in counts]
    words = "How often each value came out of either input."
    if max(outside) > 0:
        one, two = (f"{rounded_near(100 * share, 2)} %" for share in outside)
        words += f" Not drawn: {one} and {two} of the outputs."
    axis = feature.name
    if feature.last_place_of:
        axis += ": p for a multiple of 2^p but not of 2^(p+1)"
    return _panel(feature.name[0].upper() + feature.name[1:], words, result, cells, ranges, axis)


def _word_panel(drawn: Sequence[Any], result: AuditResult) -> LawPanel:
    counts = [Counter(map(label_of, some)) for some in drawn]
    one, two = ({w: count / len(drawn[0]) for w, count in some.items()} for some in counts)
    cells = _word_cells(one, two, label=str)
    named = set(result.witness.outputs) if isinstance(result.witness, OutputEvent) else set()
    others = len(counts[0] | counts[1]) - MOST_WORDS
    more = f" {others} others are not drawn." if others > 0 else ""
    words = f"How often each output came out of either input.{more}"
    event = [(cell.start, cell.end) for cell in cells if cell.label in named]
    return _panel("The output", words, result, cells, event)


def _law_panels(mechanism: Any, result: AuditResult) -> tuple[LawPanel, ...]:
    """The laws of the two inputs and the outputs that tell them apart; none for odd laws."""
    source = law_of(mechanism)
    cells = () if source is None else _cells(*(source(value) for value in result.inputs))
    if not cells:
        return ()
    words = "Exact laws. Shaded: where the first input is as much likelier as in the event."
    event = _best_cells(cells, float(result.delta))
    return (_panel("How likely each output is", words, result, cells, event),)


def _best_cells(cells: Sequence[Cell], delta: float) -> list[Range]:
    """The cells of the best event, by floats, and those of the same ratio."""

    def ratio(cell: Cell) -> float:
        if cell.first <= 0:
            return -math.inf
        return math.log(cell.first / cell.second) if cell.second > 0 else math.inf

    p = q = best = 0.0
    least = math.inf
    for cell in sorted(cells, key=ratio, reverse=True):
        p, q = p + cell.first, q + cell.second
        if p <= delta:
            continue
        loss = math.log((p - delta) / q) if q > 0 else math.inf
        if loss > best + ALIKE:
            best, least = loss, ratio(cell)
    return [(c.start, c.end) for c in cells if ratio(c) >= least - ALIKE and c.first > 0]


def _cells(one: Any, two: Any) -> tuple[Cell, ...]:
    if isinstance(one, OnGrid) and isinstance(two, OnGrid) and one.step == two.step:
        return _whole(one.law, two.law, one.step)
    if isinstance(one, Law) and isinstance(two, Law):
        return _whole(one, two, Fraction(1))
    first, second = _listed(one), _listed(two)
    if first is None or second is None:
        return ()
    if not all(isinstance(output, int | float | Fraction) for output in (*first, *second)):
        return _word_cells(first, second)
    outputs = sorted({*first, *second})
    laws = [[law.get(output, 0.0) for output in outputs] for law in (first, second)]
    if len(outputs) <= MOST_VALUES:
        return _labelled(zip((f"{float(o):.6g}" for o in outputs), *laws, strict=True))
    places = np.array([float(output) for output in outputs])
    finite = np.isfinite(places)
    places, weights = places[finite], np.array(laws)[:, finite]
    total = weights.sum(axis=0).cumsum()
    outer = 2 * float(LAW_OUTER)  # all but a thousandth of either law at either end
    inner = places[(total > outer) & (total < 2 - outer)]
    if inner.size < 2:
        return ()
    edges = np.linspace(inner[0], inner[-1], MOST_CELLS + 1)
    return _range_cells(edges, *(np.histogram(places, edges, weights=law)[0] for law in weights))


def _whole(one: Law, two: Law, step: Fraction) -> tuple[Cell, ...]:
    """Single values if they are few, else ranges of like length."""
    low = min(law.quantile(LAW_OUTER) for law in (one, two))
    high = max(law.quantile(1 - LAW_OUTER) for law in (one, two))
    if high - low < MOST_VALUES:
        return _labelled(
            (f"{float(k * step):.6g}", middle(one.probability(k)), middle(two.probability(k)))
            for k in range(low, high + 1)
        )
    width = -(-(high - low + 1) // MOST_CELLS)
    edges = [low + width * i for i in range((high - low) // width + 2)]
    sums = [[middle(law.cdf(edge - 1)) for edge in edges] for law in (one, two)]
    shares = [[after - before for before, after in pairwise(some)] for some in sums]
    return _range_cells([float(edge * step) for edge in edges], *shares)


def _listed(law: Any) -> dict[Any, float] | None:
    if isinstance(law, ExactLaw):
        return {o: float(p) for o, p in zip(law.outputs, law.probabilities, strict=True)}
    if isinstance(law, Mapping):
        chances = ((o, middle(p) if isinstance(p, Ball) else rational(p)) for o, p in law.items())
        return {output: float(chance) for output, chance in chances}
    return None
