"""Events of two features at once: rare, and worth most where privacy fails in a corner.

"Nine answers below, then a low number" may be a hundred times rarer than either half of it, and
tells the inputs apart far better. No sum of single features finds it. So every corner of every two
features is counted, on coarse levels that are fine in the tails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.features import Rows
from lastbit.audit.scores import Bins, Event, Table

__all__ = ["Corners", "Counts", "Objective"]

Counts: TypeAlias = NDArray[np.float64]
Objective: TypeAlias = Callable[[Counts, Counts, int], Counts]
"""From the hits under one input, the hits under the other and the trials: what a test promises."""

_MOST_TABLES = 8
_OF_PARTS = ("entries", "differences", "bits")
_KEPT = 3
_TAILS = 2.0 ** -np.arange(1, 13)
_LEVELS = np.unique(np.concatenate([_TAILS, 1 - _TAILS]))
_SIDE = len(_LEVELS) + 1


@dataclass(frozen=True, slots=True)
class _Coarse:
    """A table with each bin's level, and how far apart the two inputs are on these levels."""

    table: Table
    levels: NDArray[np.int64]
    apart: float


@dataclass(frozen=True, slots=True)
class _Grid:
    """How many outputs of either input lie on which levels of two tables."""

    one: _Coarse
    two: _Coarse
    counts: tuple[Counts, Counts]


class Corners:
    """All corners of the features that tell most by themselves in the first outputs."""

    def __init__(
        self, tables: Sequence[Table], part: tuple[Rows, Rows], seen: tuple[Bins, Bins]
    ) -> None:
        coarse = [_coarse(table, part, seen) for table in _worthwhile(tables)]
        best = sorted(coarse, key=lambda c: -c.apart)[:_MOST_TABLES]
        self._grids = [
            _Grid(one, two, (np.zeros(_SIDE * _SIDE), np.zeros(_SIDE * _SIDE)))
            for one, two in combinations(best, 2)
        ]
        self._trials = 0

    def add(self, part: tuple[Rows, Rows], seen: tuple[Bins, Bins]) -> None:
        """Count these outputs."""
        for side, (outputs, known) in enumerate(zip(part, seen, strict=True)):
            places: dict[int, NDArray[np.int64]] = {}
            for grid in self._grids:
                for coarse in (grid.one, grid.two):
                    if id(coarse) not in places:
                        places[id(coarse)] = coarse.levels[coarse.table.bins(outputs, known)]
                both = places[id(grid.one)] * _SIDE + places[id(grid.two)]
                grid.counts[side][:] += np.bincount(both, minlength=_SIDE * _SIDE)
        self._trials += len(part[0])

    def best(self, objective: Objective) -> list[Event]:
        """The few corners that promise most, each of other features."""
        found = [_corner(grid, self._trials, objective) for grid in self._grids]
        return sorted(found, key=lambda event: -event.promise)[:_KEPT]


def _worthwhile(tables: Sequence[Table]) -> list[Table]:
    """Of long outputs only what says something of the whole: single entries have too many pairs."""
    whole = [table for table in tables if table.feature.group not in _OF_PARTS]
    return whole if len(whole) >= _MOST_TABLES else list(tables)


def _coarse(table: Table, part: tuple[Rows, Rows], seen: tuple[Bins, Bins]) -> _Coarse:
    size = table.edges.size + 1
    bins = [table.bins(side, known) for side, known in zip(part, seen, strict=True)]
    shares = [np.bincount(places, minlength=size) / len(places) for places in bins]
    # a hash has no order of its own: the estimated ratio gives it one
    order = np.arange(size) if table.feature.ordered else np.argsort(table.ratios, kind="stable")
    pooled = (shares[0] + shares[1])[order] / 2
    levels = np.empty(size, dtype=np.int64)
    levels[order] = np.searchsorted(_LEVELS, np.cumsum(pooled) - pooled / 2)
    coarse = [np.bincount(levels, weights=share, minlength=_SIDE) for share in shares]
    apart = float(np.sum((coarse[0] - coarse[1]) ** 2 / np.maximum(coarse[0] + coarse[1], 1e-9)))
    return _Coarse(table, levels, apart)


def _corner(grid: _Grid, trials: int, objective: Objective) -> Event:
    """The best corner of the four kinds, for either order of the inputs."""
    best: Event | None = None
    for turn in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        p, q = (
            count.reshape(_SIDE, _SIDE)[:: turn[0], :: turn[1]].cumsum(0).cumsum(1)
            for count in grid.counts
        )
        for swapped, promises in (
            (False, objective(p, q, trials)),
            (True, objective(q, p, trials)),
        ):
            place = int(np.argmax(promises))
            promise = float(promises.flat[place])
            if best is None or promise > best.promise:
                tables = tuple(
                    _range(coarse, end, upwards=way < 0, swapped=swapped)
                    for coarse, end, way in zip(
                        (grid.one, grid.two), divmod(place, _SIDE), turn, strict=True
                    )
                )
                best = Event(tables, 2.0, swapped, promise, corner=True)
    assert best is not None  # there are four kinds
    return best


def _range(coarse: _Coarse, count: int, *, upwards: bool, swapped: bool) -> Table:
    """One on the first levels, or the last, and zero elsewhere; negative for inputs exchanged."""
    inside = coarse.levels >= _SIDE - 1 - count if upwards else coarse.levels <= count
    return replace(coarse.table, ratios=np.where(inside, -1.0 if swapped else 1.0, 0.0))
