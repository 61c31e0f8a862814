"""Events that tell two inputs apart, found by likelihood ratios.

By Neyman and Pearson the best event of its probability is a set where the likelihood ratio is
large. The ratio is not known; it is estimated from one half of the outputs, and the event is fixed
before the other half is counted. Any set of outputs is a valid event: a poor estimate costs power,
never truth. So plain floats will do here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.choices import Choices
from lastbit.audit.corners import Corners, Counts, Objective
from lastbit.audit.features import Column, Rows, features
from lastbit.audit.scores import Bins, Event, Table, by_rank, smooth, table_of, total

__all__ = [
    "Candidates",
    "Event",
    "Objective",
    "Tally",
    "best_events",
    "delta_objective",
    "epsilon_objective",
    "foreseen_apart",
    "foreseen_ratio",
]

_RIDGE = 1e-3
_NEWTON = 5
CAUTION = 3.0
_TEST = 5.3
_MOST_ROWS = 1 << 14
_LEAST_ROWS = 1 << 13
_MANY = 8
_MOST_TERMS = 12


# ---------------------------------------------------------------- the best event


def epsilon_objective(planned: int, delta: float, caution: float = CAUTION) -> Objective:
    """What a test of `planned` runs is likely to certify as epsilon, in the better of two ways."""

    def value(hits: Counts, others: Counts, trials: int) -> Counts:
        low, high = _foreseen(hits, others, trials, planned, caution)
        room = low - delta
        apart = np.where(room > 0, np.log(np.maximum(room, 1e-300) / high), -np.inf)
        return apart if delta else np.maximum(apart, _odds(hits, others, trials, planned, caution))

    return value


def delta_objective(planned: int, epsilon: float, caution: float = CAUTION) -> Objective:
    """What a test of `planned` runs is likely to certify as delta."""
    factor = math.exp(min(epsilon, 700.0))

    def value(hits: Counts, others: Counts, trials: int) -> Counts:
        low, high = _foreseen(hits, others, trials, planned, caution)
        return low - factor * high

    return value


def _foreseen(
    hits: Counts, others: Counts, trials: int, planned: int, caution: float
) -> tuple[Counts, Counts]:
    """Ends of the intervals that a test will give, from cautious guesses at the probabilities.

    The best of thousands of thresholds looks better than it is: by so many deviations.
    """
    p = _wilson(hits / trials, trials, -caution)
    q = _wilson(others / trials, trials, caution)
    return _wilson(p, planned, -_TEST), _wilson(q, planned, _TEST)


def _odds(hits: Counts, others: Counts, trials: int, planned: int, caution: float) -> Counts:
    """The logarithm of hits to other hits that a test will certify: rare events do best by it."""
    total = np.maximum(hits + others, 0.5)
    share = _wilson(hits / total, total, -caution)
    share = _wilson(share, total * (planned / trials), -_TEST)
    return np.log(np.maximum(share, 1e-300) / np.maximum(1 - share, 1e-300))


def _wilson(share: Counts, trials: float | Counts, z: float) -> Counts:
    spread = z * np.sqrt(share * (1 - share) / trials + z * z / (4.0 * trials * trials))
    ends: Counts = (share + z * z / (2.0 * trials) + spread) / (1 + z * z / trials)
    return np.clip(ends, 0.0, 1.0)


def foreseen_apart(p: float, q: float, planned: int) -> float:
    """The epsilon that two intervals will give after `planned` runs if these are the shares."""
    low, high = (float(_wilson(np.array(x), planned, z)) for x, z in ((p, -_TEST), (q, _TEST)))
    return math.log(low / high) if low > 0 else -math.inf


def foreseen_ratio(p: float, q: float, planned: int) -> float:
    """The epsilon that the ratio of hits will give after `planned` runs of each input."""
    hits, others = np.array([p * planned]), np.array([q * planned])
    return float(_odds(hits, others, planned, planned, 0.0)[0])


def best_events(
    x: Rows, y: Rows, objectives: Sequence[Objective], choices: Choices, *, most: int = 1
) -> list[list[Event]]:
    """For each objective so many events of each kind, the most promising first.

    Empty if the outputs are all alike.
    """
    # every third: parts alike even if the mechanism drifts
    kept = np.arange(len(x)) % 3 < 2
    candidates = Candidates(x[kept], y[kept], choices)
    candidates.add(x[~kept], y[~kept])
    return [candidates.best(objective, most) for objective in objectives]


class Candidates:
    """Events of all features, their mixtures and their corners, counted in many outputs.

    The first outputs are split: one half gives the ratios of the single features, the other their
    weights in a logistic regression and the levels of corners. All later outputs are counted.
    """

    def __init__(self, x: Rows, y: Rows, choices: Choices) -> None:
        first, second = (x[::2], y[::2]), (x[1::2], y[1::2])
        found = features(np.concatenate(first), choices)
        self._tables = [table for f in found if (table := table_of(f, *first)) is not None]
        self._shares = [np.zeros((2, table.edges.size + 1)) for table in self._tables]
        self._mixed = [
            tuple(smooth(self._tables[i], w) for i, w in zip(members, weights, strict=True))
            for members, weights in _mixtures(self._tables, second)
        ]
        seen: tuple[Bins, Bins] = ({}, {})
        self._cuts = [
            _cuts(*(total(tables, *side) for side in zip(second, seen, strict=True)))
            for tables in self._mixed
        ]
        self._reached = [np.zeros((2, len(cuts))) for cuts in self._cuts]
        self._corners = Corners(self._tables, second, seen)
        self._trials = 0

    def add(self, x: Rows, y: Rows) -> None:
        """Count in these outputs, as many of the one input as of the other."""
        seen: tuple[Bins, Bins] = ({}, {})
        for side, (table_of_rows, known) in enumerate(zip((x, y), seen, strict=True)):
            for table, share in zip(self._tables, self._shares, strict=True):
                bins = table.bins(table_of_rows, known)
                share[side] += np.bincount(bins, minlength=share.shape[1])
            for tables, cuts, reached in zip(self._mixed, self._cuts, self._reached, strict=True):
                reached[side] += _reached(total(tables, table_of_rows, known), cuts)
        self._corners.add((x, y), seen)
        self._trials += len(x)

    def best(self, objective: Objective, most: int) -> list[Event]:
        """Of each kind so many events that promise most by these counts.

        The kinds are ratios, steps, half-lines, mixtures and corners. Of a flexible kind the
        luckiest promises more than it keeps; fresh outputs will tell, if others are still there.
        """
        kinds: list[list[_Curve]] = [[], [], [], []]
        for table, share in zip(self._tables, self._shares, strict=True):
            for kind, scored in _ways(table):
                kinds[kind].append(_of_table(scored, share, self._trials))
        for tables, cuts, reached in zip(self._mixed, self._cuts, self._reached, strict=True):
            kinds[3].append(_Curve(tables, cuts, reached[0], reached[1], self._trials))
        found = [[event for curve in curves for event in curve.best(objective)] for curves in kinds]
        found.append(self._corners.best(objective))
        chosen = [
            event
            for events in found
            for event in sorted(events, key=lambda event: -event.merit)[:most]
        ]
        return sorted(chosen, key=lambda event: -event.merit)


class Tally:
    """Better thresholds for the score of an event, from many fresh outputs, a few at a time."""

    def __init__(self, event: Event, one: Column, two: Column) -> None:
        self._event = event
        self._cuts = _cuts(one, two)
        self._reached = [_reached(score, self._cuts) for score in (one, two)]
        self._trials = len(one)

    def add(self, one: Column, two: Column) -> None:
        """Count scores of either input, as many of the one as of the other."""
        for side, score in enumerate((one, two)):
            self._reached[side] += _reached(score, self._cuts)
        self._trials += len(one)

    def best(self, objective: Objective) -> Event:
        """The same score with the best threshold."""
        event = self._event
        one, two = self._reached
        found = _Curve(event.tables, self._cuts, one, two, self._trials).best(objective)
        again = next((other for other in found if other.swapped == event.swapped), event)
        return replace(again, corner=event.corner)


@dataclass(frozen=True, slots=True)
class _Curve:
    """For each threshold of a score: how many outputs of either input reach it."""

    tables: tuple[Table, ...]
    cuts: Column
    hits: Counts
    others: Counts
    trials: int

    def best(self, objective: Objective) -> list[Event]:
        """The best event above a threshold, and the best below one for the inputs exchanged."""
        ends = -np.nextafter(self.cuts[1:], -np.inf)  # below a cut, once the score is negated
        beyond = (self.trials - self.others[1:], self.trials - self.hits[1:])
        found = []
        for cuts, (hits, others), swapped in (
            (self.cuts, (self.hits, self.others), False),
            (ends, beyond, True),
        ):
            promises = objective(hits, others, self.trials)
            if promises.size:
                place = _last_best(promises) if not swapped else int(np.argmax(promises))
                shares = float(hits[place]) / self.trials, float(others[place]) / self.trials
                promise = float(promises[place])
                found.append(
                    Event(self.tables, float(cuts[place]), swapped, promise, shares=shares)
                )
        return found


def _last_best(promises: Counts) -> int:
    """Of equals the highest threshold: values never seen stay outside the event."""
    return len(promises) - 1 - int(np.argmax(promises[::-1]))


def _ways(table: Table) -> Iterator[tuple[int, Table]]:
    """The table as ratios; of many bins also in steps, and as half-lines of its feature."""
    yield 0, table
    if table.edges.size > _MANY:
        yield 1, smooth(table, 1.0)
        if table.feature.ordered:
            yield 2, by_rank(table, 1.0)
            yield 2, by_rank(table, -1.0)


def _of_table(table: Table, shares: Counts, trials: int) -> _Curve:
    """The curve of one table, from counts of its bins."""
    cuts, place = np.unique(table.ratios, return_inverse=True)
    reached = [_at_least(place, share) for share in shares]
    return _Curve((table,), cuts, reached[0], reached[1], trials)


def _at_least(place: NDArray[np.int64], share: Counts) -> Counts:
    """How many outputs lie in bins of at least each ratio."""
    counts = np.bincount(place, weights=share).astype(np.float64)
    return np.cumsum(counts[::-1])[::-1]


def _mixtures(
    tables: Sequence[Table], part: tuple[Rows, Rows]
) -> Iterator[tuple[Sequence[int], Sequence[float]]]:
    """Each group as if its features were independent; then all of them, with fitted weights."""
    groups: dict[str, list[int]] = {}
    for i, table in enumerate(tables):
        groups.setdefault(table.feature.group, []).append(i)
    for members in groups.values():
        if len(members) > 1:
            yield members, [1.0] * len(members)
    if len(tables) > 1 and len(part[0]) >= _LEAST_ROWS:
        one, two = (
            np.stack([smooth(t, 1.0).score(side[:_MOST_ROWS], {}) for t in tables], axis=1)
            for side in part
        )
        first = np.abs(_logistic(one, two)) * np.concatenate([one, two]).std(axis=0)
        kept = np.sort(np.argsort(-first, kind="stable")[:_MOST_TERMS])
        yield kept.tolist(), _logistic(one[:, kept], two[:, kept])


def _logistic(one: Rows, two: Rows) -> list[float]:
    """Weights of a logistic regression that tells the two inputs apart, by Newton's method."""
    design = np.concatenate([one, two])
    design = np.concatenate([design, np.ones((len(design), 1))], axis=1)
    label = np.repeat([1.0, 0.0], [len(one), len(two)])
    weights = np.zeros(design.shape[1])
    ridge = np.diag(_RIDGE * (np.square(design).mean(axis=0) + 1e-9)) * len(design)
    for _ in range(_NEWTON):
        # einsum, not @: it is the same in every process, and starts no threads
        margin = np.einsum("ni,i->n", design, weights)
        mean = 1 / (1 + np.exp(-np.clip(margin, -30, 30)))
        spread = mean * (1 - mean) + 1e-9
        slope = np.einsum("ni,n->i", design, label - mean) - np.diag(ridge) * weights
        bend = np.einsum("ni,nj->ij", design * spread[:, None], design) + ridge
        weights = weights + np.linalg.solve(bend, slope)
    return [float(weight) for weight in weights[:-1]]


def _cuts(one: Column, two: Column) -> Column:
    """Thresholds worth trying: the scores at many levels, fine in both tails."""
    pooled = np.concatenate([one, two])
    pooled.sort()
    last = len(pooled) - 1
    tails = np.geomspace(4 / len(pooled), 1 / 64, 64)
    levels = np.concatenate([tails, np.arange(1, 128) / 128, 1 - tails])
    return np.unique(pooled[(levels * last).astype(np.int64)])


def _reached(score: Column, cuts: Column) -> Counts:
    """How many scores are at least each of the cuts."""
    below = np.bincount(np.searchsorted(cuts, score, side="right"), minlength=len(cuts) + 1)
    return (len(score) - np.cumsum(below)[:-1]).astype(np.float64)
