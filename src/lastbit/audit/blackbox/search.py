"""Before anything is counted: which pair of inputs, and which events?

Looking here costs no confidence: the outputs that an event is chosen by are never counted, and more
of them only make the event better. Pairs are compared by successive halving: all of them in a few
outputs, the better half in twice as many, and so on. What is promised of a pair in one round is
promised by fresh outputs, of events that were fitted to all earlier ones.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.blackbox.events import (
    Bins,
    Candidates,
    Counts,
    Objective,
    Reached,
    ScoreEvent,
    cuts_of,
    delta_objective,
    epsilon_objective,
)
from lastbit.audit.blackbox.features import Column, Feature, Rows, features, rows
from lastbit.audit.inputs import Pair, SeededRandom

Draw: TypeAlias = Callable[[Any, int], Any]
Progress: TypeAlias = Callable[[float, str], None]
Candidate: TypeAlias = tuple[ScoreEvent, Column]
"""An event, and the thresholds of its score that are worth trying."""

_FEWEST, _TRY = 6, 1 << 10
_LEAST_LOOK = 3 << 7
_LOOK_CAUTION, _FIT_CAUTION, _LAST_CAUTION, _CORNER_CAUTION = 2.0, 1.0, 0.5, 3.0
_LUCK, _BELOW_ALL = 1.0, 1e3
_BUILT = 4e-6  # seconds for a row that a table is built of, at first
_KEPT = 6  # events whose features are looked at again
_CANDIDATES = 2  # of each kind
_LEAST_CHUNK, _CHUNK, _CHUNK_NUMBERS = 1 << 8, 1 << 14, 1 << 16
_FOR_CUTS, _MOST_ROWS, _MOST_NUMBERS = 1 << 16, 1 << 20, 1 << 23
_WEIGHED = 1 << 18
_GUESS = 1 << 23
_REMEMBERED = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is claimed, how long to look, and how often to be wrong.

    `also` are further errors at which the counts will be read: each has an event of its own.
    """

    epsilon: Fraction | None
    delta: Fraction
    error: Fraction
    seconds: float
    samples: int | None
    seed: int
    also: tuple[Fraction, ...] = ()
    guess: int = _GUESS
    clock: Callable[[], float] = time.perf_counter

    @property
    def tests(self) -> int:
        return self.samples or self.guess

    @property
    def errors(self) -> tuple[Fraction, ...]:
        return (self.error, *self.also)

    def objectives(self, caution: float) -> list[Objective]:
        """What is sought: a great epsilon, at each error; if one is claimed a great delta at it."""
        found = [
            epsilon_objective(self.tests, float(self.delta), caution, float(error))
            for error in self.errors
        ]
        if self.epsilon is not None:
            error = float(self.error)
            found.append(delta_objective(self.tests, float(self.epsilon), caution, error))
        return found


class Box:
    """The mechanism under test, with the outputs it gave counted and timed."""

    def __init__(self, draw: Draw, clock: Callable[[], float] = time.perf_counter) -> None:
        self._draw = draw
        self._clock = clock
        self._fixed: int | None = None
        self._seen = hashlib.sha256()
        self.drawn = 0
        self.width = 1
        self.pace = math.inf

    def __call__(self, value: Any, size: int) -> Rows:
        """Some outputs, read before the next are drawn: the mechanism may use its memory again."""
        start = self._clock()
        table = rows(self._draw(value, size), size, self._fixed)
        if size >= _LEAST_CHUNK or math.isinf(self.pace):
            self.pace = min(self.pace, (self._clock() - start) / size)
        self.drawn += size
        self.width = max(self.width, table.shape[1])
        self._seen.update(table[:_REMEMBERED].tobytes())
        return table

    def chunks(self, size: int) -> Iterator[int]:
        """The size in parts that fit into a processor's cache, more or less."""
        chunk = max(_LEAST_CHUNK, min(_CHUNK, _CHUNK_NUMBERS // self.width))
        return (min(chunk, size - i) for i in range(0, size, chunk))

    def try_out(self, values: Sequence[Any], seconds: float | None) -> list[Rows]:
        """The first few outputs; after this the number of columns is fixed."""
        size, took, first = _FEWEST, 0.0, []
        while size <= _TRY and (seconds is None or took < seconds):
            start = self._clock()
            first += [self(value, size).copy() for value in values]
            took = self._clock() - start
            size *= 4
        self._fixed = self.width
        return first

    @property
    def seen(self) -> str:
        """A digest of outputs so far: what is decided by it, the mechanism's own chance decides."""
        return self._seen.hexdigest()


@dataclass(slots=True)
class _Known:
    """What is known of a pair: outputs of both inputs, and the features worth looking at."""

    features: list[Feature] | None = None
    parts: tuple[list[Rows], list[Rows]] = field(default_factory=lambda: ([], []))
    rows: int = 0
    built: float = _BUILT

    def keep(self, x: Rows, y: Rows, most: int) -> None:
        if self.rows < most:
            for part, table in zip(self.parts, (x, y), strict=True):
                part.append(np.array(table, order="F"))
            self.rows += len(x)

    def outputs(self, most: int) -> tuple[Rows, Rows]:
        """Those of both inputs in one table each; at most so many rows of them."""
        for part in self.parts:
            part[:] = [np.concatenate(part)] if len(part) > 1 else part
        return self.parts[0][0][:most], self.parts[1][0][:most]


class Scout:
    """The search as one process sees it, with its own outputs of the mechanism."""

    def __init__(self, draw: Draw, pairs: Sequence[Pair], plan: Plan) -> None:
        self.box = Box(draw, plan.clock)
        self._pairs = pairs
        self._plan = plan
        self._known: dict[int, _Known] = {}

    def try_out(self) -> list[Rows]:
        seconds = None if self._plan.samples else 0.02 * self._plan.seconds
        return self.box.try_out(self._pairs[0], seconds)

    def pace(self) -> tuple[float, int]:
        """The time of an output, and how many there were."""
        return self.box.pace, self.box.drawn

    def look(self, place: int, size: int, seconds: float, guess: int) -> float:
        """What epsilon a pair promises: fitted to its earlier outputs, judged by `size` new ones.

        The time is a limit too.
        """
        plan = replace(self._plan, guess=guess)
        known, start = self._known.setdefault(place, _Known()), plan.clock()
        if known.features is None:
            train = min(size, max(self.least, int(seconds / 3 / (known.built + 2 * self._pace))))
            self._gather(known, place, train, seconds / 3)
        spent = plan.clock() - start
        found = self._candidates(known, place, max(seconds / 2, seconds - 2 * spent))
        self._judge(found, known, place, size, seconds - (plan.clock() - start))
        goals = [plan.objectives(caution)[0] for caution in (_LOOK_CAUTION, _CORNER_CAUTION)]
        events = found.best(goals[0], _CANDIDATES, goals[1])
        used = {t.feature.name: t.feature for e in events[:_KEPT] for t in e.tables}
        promise = max((event.promise for event in events), default=-math.inf)
        if promise > 0:  # what is seen with caution: other features need not be looked at again
            known.features = list(used.values())
        if promise > 0 or not events:
            return promise
        # nothing is seen with caution: what may be there, below all that was seen
        lucky = found.best(plan.objectives(_LUCK)[0], _CANDIDATES, goals[1])
        return max(event.promise for event in lucky) - _BELOW_ALL

    def fit(self, place: int, size: int, seconds: float, guess: int) -> list[list[Candidate]]:
        """For each objective a few events that promise most; none if all outputs are alike."""
        plan, start = replace(self._plan, guess=guess), self._plan.clock()
        if place not in self._known:
            self.look(place, min(size, 3 << 13), seconds / 8, guess)
        known = self._known[place]
        known.features = None  # with so many outputs others may tell more
        self._gather(known, place, size, seconds / 4)
        found = self._candidates(known, place, seconds / 2, _WEIGHED)
        self._judge(found, known, place, size, seconds - (plan.clock() - start))
        goals = (plan.objectives(caution) for caution in (_FIT_CAUTION, _CORNER_CAUTION))
        best = (found.best(goal, _CANDIDATES, wary) for goal, wary in zip(*goals, strict=True))
        events = ([event.lighter() for event in part[:_KEPT]] for part in best)
        return [[(event, self._cuts(event, known)) for event in part] for part in events]

    def tally(
        self, place: int, candidates: list[Candidate], size: int, seconds: float
    ) -> tuple[list[Counts], int]:
        """How many of fresh outputs of either input reach each threshold of each candidate."""
        tallies, done = [Reached(event.tables, cuts) for event, cuts in candidates], 0
        for count in self._counts(size, seconds):
            for side, value in enumerate(self._pairs[place]):
                table, seen = self.box(value, count), Bins()
                for (event, _), tally in zip(candidates, tallies, strict=True):
                    tally.add(side, event.score(table, seen))
            done += count
        return [tally.counts for tally in tallies], done

    @property
    def least(self) -> int:
        """Of slow mechanisms few outputs have to do."""
        if self._plan.samples is not None:
            return _LEAST_LOOK
        enough = int(0.005 * self._plan.seconds / self._pace)
        return max(_FEWEST, min(_LEAST_LOOK, enough))

    @property
    def _pace(self) -> float:
        return max(self.box.pace, 1e-9)

    def _gather(self, known: _Known, place: int, size: int, seconds: float) -> None:
        """More outputs to fit to, until there are `size` or the time is over."""
        most = min(size, _MOST_ROWS, _MOST_NUMBERS // self.box.width)
        for x, y in self._drawn(place, most - known.rows, seconds):
            known.keep(x, y, most)

    def _judge(
        self, found: Candidates, known: _Known, place: int, size: int, seconds: float
    ) -> None:
        for x, y in self._drawn(place, size, seconds):
            found.add(x, y)
            known.keep(x, y, min(_MOST_ROWS, _MOST_NUMBERS // self.box.width))

    def _drawn(self, place: int, size: int, seconds: float) -> Iterator[tuple[Rows, Rows]]:
        """Outputs of both inputs, a few at a time; at least a few, and at most for this time."""
        x, y = self._pairs[place]
        for count in self._counts(size, seconds):
            one = np.array(self.box(x, count), order="F")  # a copy: see Box
            yield one, self.box(y, count)

    def _counts(self, size: int, seconds: float) -> Iterator[int]:
        """How many outputs to draw next, until all are drawn or the time is over."""
        done, ends = 0, self._plan.clock() + seconds
        while done < size:
            count = next(self.box.chunks(size - done))
            if self._plan.samples is None:
                left = ends - self._plan.clock()
                if left <= 0 and done >= self.least:
                    return
                count = min(count, max(int(left / self._pace / 2), self.least - done, 1))
            done += count
            yield count

    def _candidates(
        self, known: _Known, place: int, seconds: float, weighed: int = _WEIGHED >> 4
    ) -> Candidates:
        """Events fitted to the outputs so far, as many of them as the time allows."""
        most = max(self.least, int(seconds / known.built))
        x, y = known.outputs(known.rows if self._plan.samples else most)
        start, found = self._plan.clock(), known.features
        if found is None:
            choices = SeededRandom(self._plan.seed, f"features of pair {place}")
            half = (len(x) + 1) // 2
            found = known.features = features(np.concatenate([x[:half], y[:half]]), choices)
        candidates = Candidates(x, y, found, weighed)
        known.built = max((self._plan.clock() - start) / len(x), 1e-9)
        return candidates

    def _cuts(self, event: ScoreEvent, known: _Known) -> Column:
        one, two = known.outputs(_FOR_CUTS)
        return cuts_of(event.score(one, {}), event.score(two, {}))


def refined(
    groups: list[list[Candidate]], counts: Sequence[NDArray[np.float64]], trials: int, plan: Plan
) -> list[list[tuple[int, ScoreEvent]]]:
    """For each objective its candidates with thresholds from fresh outputs; the best first."""
    left = iter(counts)
    ranked = []
    for goal, group in zip(plan.objectives(_LAST_CAUTION), groups, strict=True):
        found = []
        for i, (event, cuts) in enumerate(group):
            best = Reached(event.tables, cuts, next(left), trials).smoothed().best(goal)
            again = next((e for e in best if e.swapped == event.swapped), event)
            found.append((i, replace(again, corner=event.corner)))
        ranked.append(sorted(found, key=lambda one: -one[1].merit))
    return ranked
