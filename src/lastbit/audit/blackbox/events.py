"""Events that tell two inputs apart: where a score is large, and corners.

The score of an output is the sum of some tables, which estimate the logarithm of the likelihood
ratio. The event is fixed before other outputs are counted. Any set of outputs is a valid event: a
poor estimate costs power, never truth.

A corner is where two features are extreme at once: "nine
answers below, then a low number" may be a hundred times rarer than either half of it, and tells the
inputs apart far better. No sum of single features finds it, so every corner of every two features
is counted, on coarse levels that are fine in the tails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.blackbox.features import Column, Feature, Rows
from lastbit.audit.blackbox.tables import (
    FOR_EDGES,
    MANY,
    Bins,
    Finder,
    Table,
    shrunk,
    steps_of,
    table_of,
    total,
)
from lastbit.audit.result import Condition, RangeEvent, RatioEvent

Counts: TypeAlias = NDArray[np.float64]
Objective: TypeAlias = Callable[[Counts, Counts, int], Counts]
"""From the hits under one input, the hits under the other and the trials: what a test promises."""

_EFFORT = 0.005
_WORTH_OF_CUTS = 4.0
_GROUPS = MappingProxyType(  # in a sentence
    {"entries": "the entries", "differences": "differences of entries"}
)
# objectives and mixtures
CAUTION = 3.0
# corners
_MOST_TABLES = 6
_OF_PARTS = ("entries", "differences", "bits")
_KEPT = 3
_TAILS = 2.0 ** -np.arange(1, 13)
_LEVELS = np.unique(np.concatenate([_TAILS, 1 - _TAILS]))
_SIDE = len(_LEVELS) + 1


@dataclass(frozen=True, slots=True)
class ScoreEvent:
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
        score = self.score(r, {})
        return (-score if self.swapped else score) >= self.threshold

    def score(self, r: Rows, seen: Bins) -> Column:
        """The estimated logarithm of the likelihood ratio, first input over second.

        `seen` remembers, for these outputs, what other events have worked out already.
        """
        return total(self.tables, r, seen)

    @property
    def key(self) -> object:
        """Equal for events with the same score."""
        parts = tuple((table.feature.name, table.ratios.tobytes()) for table in self.tables)
        return (parts, self.threshold) if self.corner else parts

    def compiled(self) -> ScoreEvent:
        """The same event, in the form that is counted fastest; it cannot be described any more."""
        if len(self.tables) == 1 and not self.corner:
            table, sign = self.tables[0], -1.0 if self.swapped else 1.0
            inside = np.where(sign * table.ratios >= self.threshold, sign, 0.0)
            single = replace(table, ratios=inside).compiled()
            return replace(self, tables=(single,), threshold=0.5)
        return replace(self, tables=tuple(table.compiled() for table in self.tables))

    def lighter(self) -> ScoreEvent:
        """The same scores; of a sum of tables, whose edges are not described, the compiled form."""
        return self if len(self.tables) == 1 or self.corner else self.compiled()

    def described(self) -> RangeEvent | RatioEvent:
        """The event as data that outlives the tables it was made of."""
        if self.corner or len(self.tables) == 1:
            sign, limit = -1.0 if self.swapped else 1.0, 0.5 if self.corner else self.threshold
            conditions = tuple(
                Condition(feature=table.feature, ranges=table.ranges(sign * table.ratios >= limit))
                for table in self.tables
            )
            all_hold = self.threshold > 1
            if all_hold:  # what is true of every output says nothing
                kept = tuple(c for c in conditions if c.ranges != ((-math.inf, math.inf),))
                conditions = kept or conditions[:1]
            return RangeEvent(conditions=conditions, all_hold=all_hold)
        groups = {table.feature.group for table in self.tables}
        return RatioEvent(
            features=tuple(sorted(_GROUPS.get(group, group) for group in groups)),
            groups=tuple(sorted(groups)),
            at_least=math.exp(min(self.threshold, 700.0)),
        )


# ---------------------------------------------------------------- the best event


def epsilon_objective(
    planned: int, delta: float, caution: float = CAUTION, error: float = 1e-6
) -> Objective:
    """What a test of `planned` runs is likely to certify as epsilon, in the better of two ways."""
    once, half = deviations(error), deviations(error / 2)

    def value(hits: Counts, others: Counts, trials: int) -> Counts:
        low, high = _foreseen(hits, others, trials, planned, caution, half)
        room = low - delta
        apart = np.where(room > 0, np.log(np.maximum(room, 1e-300) / high), -np.inf)
        if delta:
            return apart
        return np.maximum(apart, _odds(hits, others, trials, planned, caution, once))

    return value


def delta_objective(
    planned: int, epsilon: float, caution: float = CAUTION, error: float = 1e-6
) -> Objective:
    """What a test of `planned` runs is likely to certify as delta."""
    factor, half = math.exp(min(epsilon, 700.0)), deviations(error / 2)

    def value(hits: Counts, others: Counts, trials: int) -> Counts:
        low, high = _foreseen(hits, others, trials, planned, caution, half)
        return low - factor * high

    return value


def deviations(error: float) -> float:
    """How many deviations a normal law exceeds with that probability; a guess for plans alone."""
    return max(0.1, -NormalDist().inv_cdf(max(error, 1e-300)))


def _foreseen(
    hits: Counts, others: Counts, trials: int, planned: int, caution: float, test: float
) -> tuple[Counts, Counts]:
    """Ends of the intervals that a test will give, from cautious guesses at the probabilities.

    The best of thousands of thresholds looks better than it is: by `caution` deviations.
    """
    p = _wilson(np.minimum(hits / trials, 1.0), trials, -caution)
    q = _wilson(np.minimum(others / trials, 1.0), trials, caution)
    return _wilson(p, planned, -test), _wilson(q, planned, test)


def _odds(
    hits: Counts, others: Counts, trials: int, planned: int, caution: float, test: float
) -> Counts:
    """The logarithm of hits to other hits that a test will certify: rare events do best by it."""
    total = np.maximum(hits + others, 0.5)
    share = _wilson(hits / total, total, -caution)
    share = _wilson(share, total * (planned / trials), -test)
    return np.log(np.maximum(share, 1e-300) / np.maximum(1 - share, 1e-300))


def _wilson(share: Counts, trials: float | Counts, z: float) -> Counts:
    spread = z * np.sqrt(share * (1 - share) / trials + z * z / (4.0 * trials * trials))
    ends: Counts = (share + z * z / (2.0 * trials) + spread) / (1 + z * z / trials)
    return np.clip(ends, 0.0, 1.0)


def foreseen_apart(p: float, q: float, planned: int, error: float = 1e-6) -> float:
    """The epsilon that two intervals will give after `planned` runs if these are the shares."""
    z = deviations(error / 2)
    low, high = (float(_wilson(np.array(x), planned, sign * z)) for x, sign in ((p, -1), (q, 1)))
    return math.log(low / high) if low > 0 else -math.inf


def foreseen_ratio(p: float, q: float, planned: int, error: float = 1e-6) -> float:
    """The epsilon that the ratio of hits will give after `planned` runs of each input."""
    hits, others = np.array([p * planned]), np.array([q * planned])
    return float(_odds(hits, others, planned, planned, 0.0, deviations(error))[0])


class Candidates:
    """Events of all features, their mixtures and their corners, counted in many outputs.

    The first outputs are split: one half gives the ratios of the single features, the other the
    ratios of their sums and the levels of corners. All later outputs are counted.
    """

    def __init__(self, x: Rows, y: Rows, found: Sequence[Feature]) -> None:
        half = (len(x) + 1) // 2
        first, second = (x[:half], y[:half]), (x[half:], y[half:])
        self._tables = [table for f in found if (table := table_of(f, *first)) is not None]
        self._shares = [np.zeros((2, table.edges.size + 1)) for table in self._tables]
        seen: tuple[Bins, Bins] = ({}, {})
        self._mixed: list[Reached] = []
        groups: dict[str, list[Table]] = {}  # each as if its features were independent
        for table in self._tables:
            groups.setdefault(table.feature.group, []).append(table.in_steps())
        for tables in (tuple(members) for members in groups.values() if len(members) > 1):
            scores = [total(tables, *side) for side in zip(second, seen, strict=True)]
            self._mixed.append(Reached(tables, cuts_of(*scores)))
        self._corners = Corners(self._tables, second, seen)
        self._trials = 0

    def add(self, x: Rows, y: Rows) -> None:
        seen: tuple[Bins, Bins] = ({}, {})
        for side, (outputs, known) in enumerate(zip((x, y), seen, strict=True)):
            for table, share in zip(self._tables, self._shares, strict=True):
                share[side] += np.bincount(table.bins(outputs, known), minlength=share.shape[1])
        for mixture in self._mixed:
            for side, part in enumerate(zip((x, y), seen, strict=True)):
                mixture.add(side, total(mixture.tables, *part))
        self._corners.add((x, y), seen)
        self._trials += len(x)

    def best(
        self, objective: Objective, most: int, wary: Objective | None = None
    ) -> list[ScoreEvent]:
        """The `most` events of each kind that promise most by these counts.

        The kinds are ratios, steps, half-lines, mixtures and corners. Of a flexible kind the
        luckiest promises more than it keeps; fresh outputs will tell, if others are still there.
        Corners, of which there are most, are chosen by an objective of more caution, and so are
        the scores whose thresholds are looked at more closely.
        """
        wary = wary or objective
        found: list[list[Reached]] = [[], [], [], self._mixed]
        for table, shares in zip(self._tables, self._shares, strict=True):
            for kind, scored in _ways(table):
                cuts, place = np.unique(scored.ratios, return_inverse=True)
                counts = [np.bincount(place, weights=share).astype(np.float64) for share in shares]
                reached = np.stack([np.cumsum(count[::-1])[::-1] for count in counts])
                found[kind].append(Reached((scored,), cuts, reached, self._trials))
        kinds = [self._smoothed(kind, objective, wary, most) for kind in found]
        kinds.append(self._corners.best(wary))
        chosen = [e for events in kinds for e in sorted(events, key=lambda e: -e.merit)[:most]]
        return sorted(chosen, key=lambda event: -event.merit)

    def _smoothed(
        self, scores: Sequence[Reached], objective: Objective, wary: Objective, most: int
    ) -> list[ScoreEvent]:
        def promise(reached: Reached) -> float:
            return max(event.promise for event in reached.best(wary))

        kept = sorted(scores, key=promise, reverse=True)[: 2 * most]
        return [event for reached in kept for event in reached.smoothed().best(objective)]


def cuts_of(one: Column, two: Column) -> Column:
    """Thresholds worth trying: the scores at many levels, fine in both tails."""
    pooled = np.concatenate([one, two])
    pooled = pooled[:: max(1, len(pooled) // FOR_EDGES)]
    pooled.sort()
    tails = np.geomspace(4 / len(pooled), 1 / 64, 64)
    levels = np.concatenate([tails, np.arange(1, 128) / 128, 1 - tails])
    return np.unique(pooled[(levels * (len(pooled) - 1)).astype(np.int64)])


class Reached:
    """How many outputs of either input reach each of some thresholds of a score."""

    def __init__(
        self,
        tables: tuple[Table, ...],
        cuts: Column,
        counts: Counts | None = None,
        trials: int = 0,
    ) -> None:
        self.tables = tables
        self._cuts, self._find = cuts, Finder.of(cuts)
        self.counts = np.zeros((2, len(cuts))) if counts is None else counts
        self._trials = [trials, trials]

    def add(self, side: int, score: Column) -> None:
        below = np.bincount(self._find(score), minlength=len(self._cuts) + 1)
        self.counts[side] += len(score) - np.cumsum(below)[:-1]
        self._trials[side] += len(score)

    def smoothed(self) -> Reached:
        """With the ratios between thresholds in few steps: the luckiest of many is not the best."""
        totals = np.full((2, 1), float(self._trials[0]))
        between = -np.diff(np.concatenate([totals, self.counts, 0 * totals], axis=1), axis=1)
        one, two = between
        steps = steps_of(one, two, [0, len(one)], _WORTH_OF_CUTS)
        share = 1 / (1 + np.exp(-shrunk(one, two, steps)))
        parts = between.sum(axis=0) * np.stack([share, 1 - share])
        parts *= totals / np.maximum(parts.sum(axis=1, keepdims=True), 1e-9)
        reached = np.cumsum(parts[:, ::-1], axis=1)[:, -2::-1]
        return Reached(self.tables, self._cuts, reached, self._trials[0])

    def best(self, objective: Objective) -> list[ScoreEvent]:
        """The best event above a threshold, and the best below one for the inputs exchanged."""
        (one, two), trials = self.counts, self._trials[0]
        below = -np.nextafter(self._cuts[1:], -np.inf)  # below a cut, once the score is negated
        found = []
        for ends, hits, others, swapped in (
            (self._cuts, one, two, False),
            (below, trials - two[1:], trials - one[1:], True),
        ):
            promises = objective(hits, others, trials)
            if not promises.size:
                continue
            place = int(np.argmax(promises))
            if not swapped:  # of equals the highest threshold: values never seen stay outside
                place = len(promises) - 1 - int(np.argmax(promises[::-1]))
            shares = float(hits[place]) / trials, float(others[place]) / trials
            promise, cut = float(promises[place]), float(ends[place])
            found.append(ScoreEvent(self.tables, cut, swapped, promise, shares=shares))
        return found


def _ways(table: Table) -> Iterator[tuple[int, Table]]:
    """The table as ratios; of many bins also in steps, and as half-lines of its feature."""
    yield 0, table
    if table.edges.size > MANY:
        yield 1, table.in_steps()
        if table.feature.ordered:
            ranks = np.arange(table.edges.size + 1, dtype=np.float64)
            yield from ((2, replace(table, ratios=sign * ranks)) for sign in (1.0, -1.0))


# ---------------------------------------------------------------- corners


@dataclass(frozen=True, slots=True)
class _Coarse:
    """A table with each bin's level, and how far apart the two inputs are on these levels."""

    table: Table
    levels: NDArray[np.int64]
    apart: float

    def within(self, count: int, *, upwards: bool, swapped: bool) -> Table:
        """One on the first levels, or the last, and zero elsewhere; negative if exchanged."""
        inside = self.levels >= _SIDE - 1 - count if upwards else self.levels <= count
        return replace(self.table, ratios=np.where(inside, -1.0 if swapped else 1.0, 0.0))


class Corners:
    """All corners of the features that tell most by themselves in the first outputs."""

    def __init__(
        self, tables: Sequence[Table], part: tuple[Rows, Rows], seen: tuple[Bins, Bins]
    ) -> None:
        # of long outputs only what says something of the whole: single entries have too many pairs
        whole = [table for table in tables if table.feature.group not in _OF_PARTS]
        chosen = whole if len(whole) >= _MOST_TABLES else tables
        coarse = [_coarse(table, part, seen) for table in chosen]
        self._coarse = sorted(coarse, key=lambda c: -c.apart)[:_MOST_TABLES]
        # for each two of these: how many outputs of either input lie on which levels of both
        self._grids = {
            pair: (np.zeros(_SIDE * _SIDE), np.zeros(_SIDE * _SIDE))
            for pair in combinations(range(len(self._coarse)), 2)
        }
        self._trials = 0

    def add(self, part: tuple[Rows, Rows], seen: tuple[Bins, Bins]) -> None:
        for side, (outputs, known) in enumerate(zip(part, seen, strict=True)):
            places = [c.levels[c.table.bins(outputs, known)] for c in self._coarse]
            for (i, j), counts in self._grids.items():
                both = places[i] * _SIDE + places[j]
                counts[side][:] += np.bincount(both, minlength=_SIDE * _SIDE)
        self._trials += len(part[0])

    def best(self, objective: Objective) -> list[ScoreEvent]:
        found = [self._corner(*grid, objective) for grid in self._grids.items()]
        return sorted(found, key=lambda event: -event.promise)[:_KEPT]

    def _corner(
        self, pair: tuple[int, int], counts: tuple[Counts, Counts], objective: Objective
    ) -> ScoreEvent:
        """The best corner of the four kinds, for either order of the inputs."""
        best: ScoreEvent | None = None
        for turn in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            p, q = (
                count.reshape(_SIDE, _SIDE)[:: turn[0], :: turn[1]].cumsum(0).cumsum(1)
                for count in counts
            )
            for swapped, sides in ((False, (p, q)), (True, (q, p))):
                promises = objective(*sides, self._trials)
                place = int(np.argmax(promises))
                promise = float(promises.flat[place])
                if best is None or promise > best.promise:
                    tables = tuple(
                        self._coarse[i].within(end, upwards=way < 0, swapped=swapped)
                        for i, end, way in zip(pair, divmod(place, _SIDE), turn, strict=True)
                    )
                    best = ScoreEvent(tables, 2.0, swapped, promise, corner=True)
        assert best is not None  # there are four kinds
        return best


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
