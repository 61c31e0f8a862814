"""Before anything is counted: which pair of inputs, and which events?

Looking here costs no confidence: the outputs that an event is chosen by are never counted, and more
of them only make the event better.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.blackbox.events import (
    Candidates,
    Objective,
    ScoreEvent,
    Tally,
    delta_objective,
    epsilon_objective,
)
from lastbit.audit.blackbox.features import Rows, rows
from lastbit.audit.inputs import Pair, SeededRandom

Draw: TypeAlias = Callable[[Any, int], Any]
Progress: TypeAlias = Callable[[float, str], None]

# Each look: outputs of each input, share of the time, caution, and how many pairs are kept.
_LOOKS = ((3 << 15, 0.1, 2.0, 4), (3 << 19, 0.2, 1.5, 1))
_FIRST_FIT, _LEAST_FIT = 3 << 12, 3 << 7
_FIT, _FIT_SHARE = 3 << 20, 0.25
_REFINE, _REFINE_SHARE = 1 << 23, 0.2
_FEWEST, _TRY = 6, 1 << 10
_FEATURES = 4e-6  # seconds for the features of an output, roughly
_FIT_FACTOR = 3
_RESERVED = 0.3
_CANDIDATES = 2  # of each kind
_FIT_CAUTION, _LAST_CAUTION = 2.0, 1.5
_LEAST_CHUNK, _CHUNK, _CHUNK_NUMBERS = 1 << 8, 1 << 14, 1 << 16
_FOR_CUTS, _FOR_TABLES = 1 << 17, 3 << 16
_GUESS = 1 << 23
_REMEMBERED = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is claimed, how long to look, and how often to be wrong."""

    epsilon: Fraction | None
    delta: Fraction
    error: Fraction
    seconds: float
    samples: int | None
    seed: int
    guess: int = _GUESS
    clock: Callable[[], float] = time.perf_counter

    @property
    def tests(self) -> int:
        return self.samples or self.guess


class Box:
    """The mechanism under test, with the outputs it gave counted and timed."""

    def __init__(self, draw: Draw, clock: Callable[[], float] = time.perf_counter) -> None:
        self._draw = draw
        self._clock = clock
        self._fixed: int | None = None
        self._seen = hashlib.sha256()
        self.drawn = 0
        self.width = 1

    def __call__(self, value: Any, size: int) -> Rows:
        parts = [self._some(value, count) for count in self.chunks(size)]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def chunks(self, size: int) -> list[int]:
        """The size in parts that fit into a processor's cache, more or less."""
        chunk = max(_LEAST_CHUNK, min(_CHUNK, _CHUNK_NUMBERS // self.width))
        return [min(chunk, size - i) for i in range(0, size, chunk)]

    def try_out(self, values: Sequence[Any], seconds: float | None) -> float:
        """The time of an output, from a few; after this the number of columns is fixed."""
        size, took = _FEWEST, 0.0
        while size <= _TRY and (seconds is None or took < seconds):
            start = self._clock()
            for value in values:
                self._some(value, size)
            took = self._clock() - start
            size *= 4
        self._fixed = self.width
        return took / (len(values) * size / 4)

    def _some(self, value: Any, size: int) -> Rows:
        table = rows(self._draw(value, size), size, self._fixed)
        self.drawn += size
        self.width = max(self.width, table.shape[1])
        self._seen.update(table[:_REMEMBERED].tobytes())
        return table

    @property
    def seen(self) -> str:
        """A digest of outputs so far: what is decided by it, the mechanism's own chance decides."""
        return self._seen.hexdigest()


class Watch:
    """The time since the start, and how long a piece of work takes for each output."""

    def __init__(self, plan: Plan) -> None:
        self._start = plan.clock()
        self._plan = plan
        self._pace = 0.0
        self.least = _LEAST_FIT

    @property
    def left(self) -> float:
        return self._plan.seconds - (self._plan.clock() - self._start)

    def share(self, part: float) -> float:
        """A part of the time left; if there is hardly any, of what was meant to be left."""
        return part * max(self.left, _RESERVED * self._plan.seconds)

    def begin(self, pace: float) -> None:
        """With a first idea of the time of an output; slow mechanisms get few looks."""
        self._pace = 2 * (pace + _FEATURES)
        if self._plan.samples is None:
            enough = int(0.01 * self._plan.seconds / self._pace)
            self.least = max(_FEWEST, min(_LEAST_FIT, enough))

    def timed(self, work: Callable[[], Any], size: int) -> Any:
        start = self._plan.clock()
        result = work()
        self._pace = (self._plan.clock() - start) / size
        return result

    def size(self, wanted: int, seconds: float) -> int:
        """As many outputs as wanted, or as that time allows at the last pace.

        With a fixed number of samples the clock has no say: the audit can be repeated.
        """
        if self._plan.samples is not None:
            return max(self.least, min(wanted, _FIT_FACTOR * self._plan.samples))
        return max(self.least, min(wanted, int(max(seconds, 0.0) / max(self._pace, 1e-9))))


def best_pair(box: Box, pairs: list[Pair], plan: Plan, watch: Watch, report: Progress) -> int:
    """The number of the pair that promises most, found in a quick look and a longer one."""
    left = list(range(len(pairs)))
    for wanted, part, caution, kept in _LOOKS:
        if len(left) <= kept:
            continue
        promises: dict[int, float] = {}
        size = watch.size(wanted, part * plan.seconds / len(left))
        for done, place in enumerate(left):
            look = partial(_promise, box, pairs[place], plan, place, size, caution)
            promises[place] = watch.timed(look, size)
            report(0.3 * (done + 1) / len(left), f"looking at pair {place + 1} of {len(pairs)}")
        left = sorted(promises, key=lambda place: -promises[place])[:kept]
    return left[0]


def fitted(box: Box, pair: Pair, plan: Plan, watch: Watch, place: int) -> list[ScoreEvent]:
    """An event for epsilon, and one for delta if there is a claim; none if all outputs are alike.

    Candidates come from a fit to some outputs; their thresholds, and which of them is best, from
    many more.
    """
    goals = _objectives(plan, _LAST_CAUTION)
    look = partial(_candidates, box, pair, plan, place, goals=_objectives(plan, _FIT_CAUTION))
    size = watch.size(_FIRST_FIT, watch.share(0.05))
    watch.timed(partial(look, size), size)
    found = look(watch.size(_FIT, watch.share(_FIT_SHARE)))
    watch.timed(partial(_refined, box, pair, found, goals, size), size)
    size = watch.size(_REFINE, watch.share(_REFINE_SHARE))
    return _refined(box, pair, found, goals, size)


def _promise(box: Box, pair: Pair, plan: Plan, place: int, size: int, caution: float) -> float:
    """What epsilon to hope for, by `size` outputs: a fit to some, a judgement by the rest."""
    goals = _objectives(plan, caution)[:1]
    found = _candidates(box, pair, plan, place, size, goals)
    return max((e.promise for e in _refined(box, pair, found, goals, size)), default=-np.inf)


def _objectives(plan: Plan, caution: float) -> list[Objective]:
    """What is sought: a great epsilon, and if one is claimed a great delta at that."""
    objectives = [epsilon_objective(plan.tests, float(plan.delta), caution)]
    if plan.epsilon is not None:
        objectives.append(delta_objective(plan.tests, float(plan.epsilon), caution))
    return objectives


def _candidates(
    box: Box, pair: Pair, plan: Plan, place: int, size: int, goals: list[Objective]
) -> list[list[ScoreEvent]]:
    """For each objective a few events that promise most, by `size` outputs of each input."""
    first = min(max(size // 3, 2), _FOR_TABLES)
    choices = SeededRandom(plan.seed, f"features of pair {place}")
    found = Candidates(box(pair[0], first), box(pair[1], first), choices)
    for count in box.chunks(size - first):
        found.add(box(pair[0], count), box(pair[1], count))
    return [found.best(goal, _CANDIDATES) for goal in goals]


def _refined(
    box: Box, pair: Pair, found: list[list[ScoreEvent]], goals: list[Objective], size: int
) -> list[ScoreEvent]:
    """One event for each objective: new thresholds from fresh outputs, then the best."""
    events = [event for group in found for event in group]
    if not events:
        return []
    few = min(size, _FOR_CUTS)
    one, two = (_scores(box, value, events, few) for value in pair)
    tallies = [Tally(*given) for given in zip(events, one, two, strict=True)]
    for count in box.chunks(size - few):
        one, two = (_scores(box, value, events, count) for value in pair)
        for tally, *scores in zip(tallies, one, two, strict=True):
            tally.add(*scores)
    left = iter(tallies)
    return [
        max((next(left).best(goal) for _ in group), key=lambda event: event.merit)
        for goal, group in zip(goals, found, strict=True)
    ]


def _scores(box: Box, value: Any, events: list[ScoreEvent], size: int) -> NDArray[np.float64]:
    parts = []
    for count in box.chunks(size):
        table, seen = box(value, count), dict[int, NDArray[np.int64]]()
        parts.append(np.stack([event.score(table, seen) for event in events]))
    return np.concatenate(parts, axis=1)
