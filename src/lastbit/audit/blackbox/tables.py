"""Tables: the estimated likelihood ratio of one feature, bin by bin.

By Neyman and Pearson the best event of its probability is a set where the likelihood ratio is
large. The ratio is not known: it is estimated from some outputs, and plain floats will do,
elementwise, since the same output has the same score in every sample.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.blackbox.features import Column, Feature, Rows
from lastbit.audit.result import Range

Places: TypeAlias = NDArray[np.int64]
Bins: TypeAlias = dict[int, Places]

MANY = 8  # bins, from which on neighbours are joined
FOR_EDGES = 1 << 17
_MOST_VALUES = 4096
_BINS = 256
_FEW_EDGES, _CELLS, _MOST_IN_A_CELL = 12, (1 << 12, 1 << 15), 3
_SHRINK, _MOST_SHRINK = 8.0, 4e7
_WORTH = 4.0


@dataclass(frozen=True, slots=True)
class Finder:
    """In which of many bins numbers lie, ten times as fast as by bisection.

    Law      the number of edges at or below a value: `searchsorted(edges, value, side="right")`
    Theorem  c(v) = trunc(clip((v - first edge) * scale)) rises with v, in floats too. So edges in
             cells before that of v are below v, those in later cells above it, and only the few of
             the same cell have to be compared
    Checked  tests/audit/test_events.py
    """

    edges: Column
    scale: float = 0.0
    below: NDArray[np.int32] | None = None  # for each cell: how many edges lie in cells before it
    compared: int = 0

    @classmethod
    def of(cls, edges: Column) -> Finder:
        if edges.size <= _FEW_EDGES:
            return cls(edges)
        for cells in _CELLS:
            with np.errstate(over="ignore", invalid="ignore"):
                scale = cells / float(edges[-1] - edges[0])
                places = (edges - edges[0]) * scale
            if not np.isfinite(places).all() or scale == 0:
                break
            counts = np.bincount(np.minimum(places, cells).astype(np.int32), minlength=cells + 1)
            if counts.max() <= _MOST_IN_A_CELL:
                below = np.cumsum(counts) - counts
                padded = np.append(edges, np.inf)
                return cls(padded, scale, below.astype(np.int32), int(counts.max()))
        return cls(edges)

    def __call__(self, values: Column) -> Places:
        if self.below is None and self.edges.size > _FEW_EDGES:
            return np.searchsorted(self.edges, values, side="right")
        if self.below is None:
            few = np.zeros(len(values), dtype=np.uint8)
            for edge in self.edges:
                few += (values >= edge).view(np.uint8)
            return few.astype(np.int64)
        with np.errstate(over="ignore"):
            cells = (values - self.edges[0]) * self.scale
        np.clip(cells, 0.0, len(self.below) - 1, out=cells)
        found: Places = self.below.take(cells.astype(np.int32))
        for _ in range(self.compared):
            found = found + (values >= self.edges.take(found))
        return found


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
    finder: Finder

    def bins(self, r: Rows, seen: Bins) -> Places:
        key = id(self.edges)
        if key not in seen:
            seen[key] = self.finder(self.feature.of(r))
        return seen[key]

    def score(self, r: Rows, seen: Bins) -> Column:
        scores: Column
        if self.edges.size == 1:
            scores = np.where(self.feature.of(r) >= self.edges[0], self.ratios[1], self.ratios[0])
        else:
            scores = self.ratios.take(self.bins(r, seen))
        return scores

    def in_steps(self) -> Table:
        return replace(self, ratios=self.steps)

    def compiled(self) -> Table:
        """The same scores from as few edges as they need."""
        kept = np.flatnonzero(np.diff(self.ratios))
        edges, ratios = self.edges[kept], self.ratios[np.append(kept, len(self.ratios) - 1)]
        return replace(self, edges=edges, ratios=ratios, finder=Finder.of(edges))

    def estimated(self, p: Column, q: Column) -> Column:
        """Ratios with little noise, from counts of either input in each bin."""
        feature, size = self.feature, len(p)
        if feature.blocks and self.discrete:  # each pattern is a block with its own steps
            starts = np.flatnonzero(np.diff(self.edges // feature.blocks)) + 2
            return steps_of(p, q, [0, *starts.tolist(), size])
        if size <= MANY or not feature.ordered or feature.group == "bits":
            return shrunk(p, q)
        return steps_of(p, q, [0, size])

    def ranges(self, chosen: NDArray[np.bool_]) -> tuple[Range, ...]:
        """The union of the bins chosen; a bin that holds one value is that value."""
        ends = [-math.inf, *self.edges.tolist(), math.inf]
        starts = np.flatnonzero(chosen & ~np.concatenate([[False], chosen[:-1]])).tolist()
        stops = np.flatnonzero(chosen & ~np.concatenate([chosen[1:], [False]])).tolist()
        return tuple(
            (ends[a], ends[a] if self.discrete and a == b and a > 0 else ends[b + 1])
            for a, b in zip(starts, stops, strict=True)
        )


def binned(feature: Feature, x: Rows, y: Rows) -> Table | None:
    """A table without ratios, with bins for these outputs; None if the feature never changes."""
    edges, discrete = _edges(np.concatenate([feature.of(x), feature.of(y)]))
    if edges.size == 0:
        return None
    nothing = np.zeros(edges.size + 1)
    return Table(feature, edges, nothing, nothing, discrete, Finder.of(edges))


def table_of(feature: Feature, x: Rows, y: Rows) -> Table | None:
    """The ratios of a feature in some outputs of two inputs; None if it never changes."""
    table = binned(feature, x, y)
    if table is None:
        return None
    p, q = (
        np.bincount(table.bins(side, {}), minlength=table.edges.size + 1).astype(np.float64)
        for side in (x, y)
    )
    ratios = np.log((p + 0.5) / (q + 0.5)) * (p + q) / (p + q + _SHRINK)
    return replace(table, ratios=ratios, steps=table.estimated(p, q))


def shrunk(p: Column, q: Column, towards: Column | float = 0.0) -> Column:
    """The ratios of two rows of counts, drawn `towards` others as far as their spread is noise."""
    total = np.maximum(p + q, 1e-9)
    ratios = np.log((p + 0.5) / (q + 0.5)) - towards
    drawn: Column = towards + ratios * total / (total + noise_of(p, q, towards))
    return drawn


def noise_of(p: Column, q: Column, around: Column | float = 0.0) -> float:
    """How many outputs the other ratios weigh: many, if all that differs may be noise."""
    total = p + q
    seen = total >= _SHRINK
    ratios = np.log((p + 0.5) / (q + 0.5)) - around
    spread = np.sum(np.where(seen, total * ratios**2 - 4, 0.0)) / max(1.0, np.sum(total[seen]))
    return min(max(4 / max(float(spread), 1e-9), _SHRINK), _MOST_SHRINK)


def steps_of(p: Column, q: Column, starts: Sequence[int], worth: float | None = None) -> Column:
    """The ratios of two rows of counts in few steps, split at `starts` and where it pays most."""
    one, two = (np.concatenate([[0.0], np.cumsum(counts)]) for counts in (p, q))
    if worth is None:  # the best of many places gains something by chance
        worth = _WORTH + math.log(len(p))
    ratios, left = np.empty(len(p)), list(pairwise(starts))
    while left:
        low, high = left.pop()
        a, b = one[high] - one[low], two[high] - two[low]
        first, second = one[low + 1 : high] - one[low], two[low + 1 : high] - two[low]
        gains = _fit(first, second) + _fit(a - first, b - second) - _fit(a, b)
        if gains.size and gains.max() > worth:
            middle = low + 1 + int(gains.argmax())
            left += [(low, middle), (middle, high)]
        else:
            few = (a + b) / (a + b + _SHRINK)
            ratios[low:high] = few * math.log((a + 0.5) / (b + 0.5))
    return ratios


def _fit(p: Column, q: Column) -> Column:
    """The logarithm of the likelihood that p and q of p + q outputs are of either input."""
    total = np.maximum(p + q, 1e-9)
    return p * np.log(np.maximum(p / total, 1e-9)) + q * np.log(np.maximum(q / total, 1e-9))


def _edges(values: Column) -> tuple[Column, bool]:
    """Every value by itself where there are few; else those that come again and again do.

    Between them bins of like size, finer in the tails of what does not come again: the lowest and
    highest of these are ends of bins wherever they lie among the repeated ones.
    """
    few = values[:: max(1, len(values) // FOR_EDGES)]
    head = np.unique(few[: 2 * _MOST_VALUES])
    if head.size < _MOST_VALUES:
        distinct = np.unique(few)
        if distinct.size == 1:
            return np.empty(0), True
        if distinct.size <= _MOST_VALUES:
            return distinct, True
    distinct, counts = np.unique(few, return_counts=True)
    repeated = distinct[counts > len(few) / _BINS]
    rest, single = values, few
    for value in repeated:
        rest, single = rest[rest != value], single[single != value]
    tails = 2.0 ** -np.arange(8, max(9.0, math.log2(len(single)) - 3))
    levels = np.concatenate([tails, np.arange(1, _BINS) / _BINS, 1 - tails])
    cuts = np.quantile(single, levels, method="lower")
    ends = np.concatenate([cuts, _farthest(rest), repeated, np.nextafter(repeated, np.inf)])
    return np.unique(ends), False


def _farthest(values: Column) -> Column:
    """The values of which only a few are lower, or higher."""
    places = [2**k for k in range(2, 10) if 2**k < len(values) // 2]
    places += [len(values) - 1 - place for place in places]
    return np.partition(values, places)[places] if places else values[:0]


def total(tables: Sequence[Table], r: Rows, seen: Bins) -> Column:
    """The sum of the tables' scores."""
    # one table after the other: the sum is rounded the same way for every row
    score = np.zeros(len(r))
    for table in tables:
        score += table.score(r, seen)
    return score
