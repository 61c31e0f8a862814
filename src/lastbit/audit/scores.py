"""Scores of outputs, tables of them, and the events that they make.

A table gives each bin of a feature a number; the score of an output is the sum over some tables. An
event is where the score is large. Only floats, and only elementwise: the same output has the same
score in every sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.features import Column, Feature, Rows

__all__ = ["Bins", "Event", "Table", "by_rank", "smooth", "table_of", "total"]

Bins: TypeAlias = dict[int, NDArray[np.int64]]

_MOST_VALUES = 4096
_BINS = 256
_SHRINK = 8.0
_MOST_SHRINK = 4e4
_EFFORT = 0.001
_MANY = 8
_WORTH = 4.0


@dataclass(frozen=True, slots=True)
class Table:
    """The logarithm of the likelihood ratio of one feature, constant between edges.

    `steps` is the same with less noise: neighbouring bins are joined unless they certainly differ,
    and bins without an order are drawn towards 0. The noise of hundreds of bins would drown a sum
    of several tables.
    """

    feature: Feature
    edges: Column
    ratios: Column
    steps: Column
    discrete: bool

    def bins(self, r: Rows, seen: Bins) -> NDArray[np.int64]:
        key = id(self.edges)
        if key not in seen:
            seen[key] = np.searchsorted(self.edges, self.feature.of(r), side="right")
        return seen[key]

    def score(self, r: Rows, seen: Bins) -> Column:
        return self.ratios[self.bins(r, seen)]


@dataclass(frozen=True, slots=True)
class Event:
    """The outputs whose score is at least a threshold.

    `swapped` says that the event is likelier under the second input; the score is then negated.
    A `corner` is where all the features are in a range at once: the score counts how many are.
    `shares` are its frequencies under the likelier input and the other, as far as they were seen
    before anything was counted.
    """

    tables: tuple[Table, ...]
    threshold: float
    swapped: bool
    promise: float
    corner: bool = False
    shares: tuple[float, float] = (0.0, 0.0)

    @property
    def merit(self) -> float:
        """The promise, a little less for an event that takes long to evaluate and to explain."""
        return self.promise - _EFFORT * abs(self.promise) * len(self.tables)

    def holds(self, r: Rows) -> NDArray[np.bool_]:
        """Which of the outputs are in the event."""
        score = self.score(r, {})
        return (-score if self.swapped else score) >= self.threshold

    def score(self, r: Rows, seen: Bins) -> Column:
        """The estimated logarithm of the likelihood ratio, first input over second.

        `seen` remembers, for these outputs, what other events have worked out already.
        """
        return total(self.tables, r, seen)

    def __str__(self) -> str:
        if self.corner or len(self.tables) == 1:
            sign, limit = -1.0 if self.swapped else 1.0, 0.5 if self.corner else self.threshold
            parts = [
                f"{table.feature.name} is {_ranges(table, sign * table.ratios >= limit)}"
                for table in self.tables
            ]
            return (" and " if self.threshold > 1 else " or ").join(parts)
        names = sorted({_group(table) for table in self.tables})
        return (
            f"the likelihood ratio estimated from {', '.join(names)} "
            f"is at least {math.exp(min(self.threshold, 700.0)):.4g}"
        )


def _group(table: Table) -> str:
    group = table.feature.group
    return {"entries": "the entries", "differences": "differences of entries"}.get(group, group)


def _ranges(table: Table, chosen: NDArray[np.bool_]) -> str:
    """The union of the bins chosen, in words."""
    ends = [-math.inf, *table.edges.tolist(), math.inf]
    starts = np.flatnonzero(chosen & ~np.concatenate([[False], chosen[:-1]])).tolist()
    stops = np.flatnonzero(chosen & ~np.concatenate([chosen[1:], [False]])).tolist()
    texts = []
    for a, b in zip(starts, stops, strict=True):
        if a == 0:
            texts.append("anything" if b + 2 == len(ends) else f"below {ends[b + 1]:.17g}")
        elif table.discrete and a == b:
            texts.append(f"{ends[a]:.17g}")
        else:
            texts.append(f"in [{ends[a]:.17g}, {ends[b + 1]:.17g})")
    more = f", or in {len(texts) - 8} more ranges" if len(texts) > 8 else ""
    return " or ".join(texts[:8]) + more


def table_of(feature: Feature, x: Rows, y: Rows) -> Table | None:
    """The ratios of a feature in some outputs of two inputs; None if it never changes."""
    one, two = feature.of(x), feature.of(y)
    edges, discrete = _edges(np.concatenate([one, two]))
    if edges.size == 0:
        return None
    size = edges.size + 1
    p = np.bincount(np.searchsorted(edges, one, side="right"), minlength=size).astype(float)
    q = np.bincount(np.searchsorted(edges, two, side="right"), minlength=size).astype(float)
    total = p + q
    ratios = np.log((p + 0.5) / (q + 0.5)) * total / (total + _SHRINK)
    alone = size <= _MANY or not feature.ordered or feature.group == "bits"
    return Table(feature, edges, ratios, _shrunk(p, q) if alone else _steps(p, q), discrete)


def _shrunk(p: Column, q: Column) -> Column:
    """The ratios of two rows of counts, nearer to 0 the more of their spread is noise."""
    total = np.maximum(p + q, 1e-9)
    ratios = np.log((p + 0.5) / (q + 0.5))
    seen = total >= _SHRINK
    spread = np.sum(np.where(seen, total * ratios**2 - 4, 0.0)) / max(1.0, np.sum(total[seen]))
    noise = min(max(4 / max(float(spread), 1e-9), _SHRINK), _MOST_SHRINK)
    shrunk: Column = ratios * total / (total + noise)
    return shrunk


def _steps(p: Column, q: Column) -> Column:
    """The ratios of two rows of counts in few steps, split where it pays most."""
    one, two = (np.concatenate([[0.0], np.cumsum(counts)]) for counts in (p, q))
    worth = _WORTH + math.log(len(p))  # the best of so many places gains something by chance
    ratios, left = np.empty(len(p)), [(0, len(p))]
    while left:
        low, high = left.pop()
        a, b = one[high] - one[low], two[high] - two[low]
        first, second = one[low + 1 : high] - one[low], two[low + 1 : high] - two[low]
        gains = _fit(first, second) + _fit(a - first, b - second) - _fit(a, b)
        if gains.size and gains.max() > worth:
            middle = low + 1 + int(gains.argmax())
            left += [(low, middle), (middle, high)]
        else:
            ratios[low:high] = math.log((a + 0.5) / (b + 0.5))
    return ratios


def _fit(p: Column, q: Column) -> Column:
    """The logarithm of the likelihood of so many of either input among p + q outputs."""
    total = np.maximum(p + q, 1e-9)
    return p * np.log(np.maximum(p / total, 1e-9)) + q * np.log(np.maximum(q / total, 1e-9))


def smooth(table: Table, weight: float) -> Table:
    """The table in steps, times a weight."""
    return replace(table, ratios=weight * table.steps)


def by_rank(table: Table, sign: float) -> Table:
    """The feature itself in place of its ratio: half-lines, free of noise."""
    ranks = sign * np.arange(table.edges.size + 1, dtype=np.float64)
    return replace(table, ratios=ranks)


def _edges(values: Column) -> tuple[Column, bool]:
    """Every value by itself where there are few, else bins of like size, finer in the tails."""
    head = np.unique(values[: 2 * _MOST_VALUES])
    if head.size < _MOST_VALUES:
        distinct = np.unique(values)
        if distinct.size == 1:
            return np.empty(0), True
        if distinct.size <= _MOST_VALUES:
            return distinct, True
    tails = 2.0 ** -np.arange(8, max(9.0, math.log2(len(values)) - 3))
    levels = np.concatenate([tails, np.arange(1, _BINS) / _BINS, 1 - tails])
    cuts, counts = np.unique(np.quantile(values, levels, method="lower"), return_counts=True)
    # a value that fills several bins is a bin by itself
    return np.unique(np.concatenate([cuts, np.nextafter(cuts[counts > 1], np.inf)])), False


def total(tables: Sequence[Table], r: Rows, seen: Bins) -> Column:
    """The sum of the tables' scores."""
    # one table after the other: the sum is rounded the same way for every row
    score = np.zeros(len(r))
    for table in tables:
        score += table.score(r, seen)
    return score
