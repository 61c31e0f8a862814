"""Exact laws as a panel of a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from lastbit.cli.audit_evidence import short
from lastbit.cli.audit_subject import law_source
from lastbit.exact import Ball, rational
from lastbit.laws import Law, OnGrid
from lastbit.report import Cell, LawPanel, Range
from lastbit.verify import ExactLaw

if TYPE_CHECKING:
    from lastbit.audit import AuditResult

MOST_CELLS, MOST_VALUES, MOST_WORDS = 120, 48, 12
OUTER = Fraction(1, 1000)
ALIKE = 1e-9


def law_panel(mechanism: Any, result: AuditResult) -> LawPanel | None:
    """The laws of the two inputs and the outputs that tell them apart; None for odd laws."""
    source = law_source(mechanism)
    if source is None:
        return None
    one, two = (source(value) for value in result.inputs)
    cells = _cells(one, two)
    if not cells:
        return None
    single = any(cell.label for cell in cells)
    return LawPanel(
        title="How likely each output is",
        words="Exact laws. Shaded: where the first input is as much likelier as in the event.",
        axis="the output",
        inputs=(short(result.inputs[0]), short(result.inputs[1])),
        cells=cells,
        single=single,
        event=tuple(_telling(cells, float(result.delta))),
    )


def _telling(cells: Sequence[Cell], delta: float) -> list[Range]:
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
    joined: list[Range] = []
    for cell in inside:
        if joined and joined[-1][1] == cell.start:
            joined[-1] = joined[-1][0], cell.end
        else:
            joined.append((cell.start, cell.end))
    return joined


def _ratio(cell: Cell) -> float:
    if cell.first <= 0:
        return -math.inf
    return math.log(cell.first / cell.second) if cell.second > 0 else math.inf


# ---------------------------------------------------------------- laws as cells


def _cells(one: Any, two: Any) -> tuple[Cell, ...]:
    if isinstance(one, OnGrid) and isinstance(two, OnGrid) and one.step == two.step:
        return _whole(one.law, two.law, one.step)
    if isinstance(one, Law) and isinstance(two, Law):
        return _whole(one, two, Fraction(1))
    first, second = _listed(one), _listed(two)
    if first is None or second is None:
        return ()
    outputs = list(dict.fromkeys([*first, *second]))
    if all(isinstance(output, int | float | Fraction) for output in outputs):
        return _numbers(sorted(outputs), first, second)
    outputs.sort(key=lambda o: -abs(first.get(o, 0.0) - second.get(o, 0.0)))
    return tuple(
        Cell(place, place + 1, first.get(o, 0.0), second.get(o, 0.0), short(o))
        for place, o in enumerate(outputs[:MOST_WORDS])
    )


def _whole(one: Law, two: Law, step: Fraction) -> tuple[Cell, ...]:
    """Single values if they are few, else ranges of like length."""
    low = min(law.quantile(OUTER) for law in (one, two))
    high = max(law.quantile(1 - OUTER) for law in (one, two))
    width = -(-(high - low + 1) // MOST_CELLS)
    if high - low < MOST_VALUES:
        return tuple(
            Cell(k - low, k - low + 1, _float(one.probability(k)), _float(two.probability(k)),
                 f"{float(k * step):.6g}")
            for k in range(low, high + 1)
        )  # fmt: skip
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


def _numbers(
    outputs: Sequence[Any], first: Mapping[Any, float], second: Mapping[Any, float]
) -> tuple[Cell, ...]:
    if len(outputs) <= MOST_VALUES:
        return tuple(
            Cell(place, place + 1, first.get(o, 0.0), second.get(o, 0.0), f"{float(o):.6g}")
            for place, o in enumerate(outputs)
        )
    both = [(float(o), first.get(o, 0.0), second.get(o, 0.0)) for o in outputs]
    finite = [cell for cell in both if math.isfinite(cell[0])]
    low, high = _ends(finite)
    if not low < high:
        return ()
    wide = (high - low) / MOST_CELLS
    cells = [Cell(low + i * wide, low + (i + 1) * wide, 0.0, 0.0) for i in range(MOST_CELLS)]
    for place, p, q in finite:
        if low <= place <= high:
            i = min(int((place - low) / wide), MOST_CELLS - 1)
            cells[i] = replace(cells[i], first=cells[i].first + p, second=cells[i].second + q)
    return tuple(cells)


def _ends(finite: Sequence[tuple[float, float, float]]) -> Range:
    """All but a thousandth of either law at either end."""
    total, low, high = 0.0, math.inf, -math.inf
    for place, p, q in finite:
        total += p + q
        if total > 2 * float(OUTER):
            low = min(low, place)
        if total < 2 - 2 * float(OUTER):
            high = max(high, place)
    return low, high


def _float(ball: Ball) -> float:
    low, high = ball.ends
    return float((low + high) / 2)
