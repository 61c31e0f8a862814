"""Before anything is counted: which pair of inputs, and which events?

Looking here costs no confidence: the outputs that an event is chosen by are never counted, and more
of them only make the event better. Pairs are compared by successive halving, or nearly: all of them
in some outputs, the better three fifths in more, and so on. What a pair promises rests on all of
its outputs so far: a score is fitted to one half of them and judged by the other.
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

from lastbit.audit.blackbox.additive import Additive, Seen, merged, sums_of, telling, thinned
from lastbit.audit.blackbox.events import (
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
from lastbit.audit.blackbox.tables import Bins
from lastbit.audit.inputs import Pair, SeededRandom

Draw: TypeAlias = Callable[[Any, int], Any]
Progress: TypeAlias = Callable[[float, str], None]
Candidate: TypeAlias = tuple[ScoreEvent, Column, float]
"""An event, the thresholds of its score that are worth trying, and the seconds it takes a run."""

# Tuning: none of it can make a bound false. "Same" was seen on six mechanisms, 20,000 runs of each
# input and two seeds; a bound varies by about 1 % by chance.
_FEWEST, _TRY = 6, 1 << 10  # outputs of the first and of the last try; a slow mechanism has one
_LEAST_LOOK = 3 << 7  # outputs below which tables hold little but noise
_LEAST_CHUNK, _CHUNK = 1 << 8, 1 << 15  # outputs of a call: enough to time it, few for a cache
_CHUNK_NUMBERS = 1 << 18  # the same for wide outputs: 2 MiB of floats
_MOST_ROWS, _MOST_NUMBERS = 1 << 22, 1 << 23  # that are kept of an input: 64 MiB of floats
_REMEMBERED = 256  # rows of a call that the digest holds: all of them take as long as drawing
_GUESS = 1 << 23  # runs of each input, until one was timed
_BUILT = 1e-7  # seconds for a row and a feature, until events are fitted to them
_CAUTION = 1.0  # deviations off what was seen; with 0 or 3 the same within 1 %
_CORNER_CAUTION = 3.0  # of corners there are thousands: the luckiest is further off
_BELIEVED = -2.0  # deviations in favour of hits that are only a limit
_NEWTON = 4  # steps to the worth of a score; 1 or 12 are the same within 2 %
_BELOW_ALL = 1e3  # more than any promise: pairs with nothing seen come last, in their own order
_FIRST = 1 << 14  # outputs that choose the features; with 2**11 or 2**17 bounds are 1 % lower
_JUDGED = 1 << 15  # outputs that compare pairs; with 2**12 or 2**18 the same
_KEPT = 6  # sums that are looked at again; with all of them the same, a fifth slower
_CANDIDATES, _IN_POOL = 2, 6  # events that go on: of each kind, and in all for each objective
_FOR_CUTS = 1 << 16  # outputs whose scores are thresholds worth trying; with 2**12 the same
_MOST_CUTS = 1 << 12  # different scores that are all tried; of more, levels are
_NO_OUTPUT: Seen = (np.empty(0, dtype=np.int64), np.empty(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is claimed, how long to look, and how often to be wrong.

    `also` are further errors at which the counts will be read: each has an event of its own.
    `guess` is how many runs of each input there will be time for, at this `pace`, if deciding
    whether an output is in an event takes no time.
    """

    epsilon: Fraction | None
    delta: Fraction
    error: Fraction
    seconds: float
    samples: int | None
    seed: int
    also: tuple[Fraction, ...] = ()
    guess: int = _GUESS
    pace: float = 0.0
    clock: Callable[[], float] = time.perf_counter

    @property
    def tests(self) -> int:
        return self.samples or self.guess

    @property
    def errors(self) -> tuple[Fraction, ...]:
        return (self.error, *self.also)

    def taking(self, cost: float) -> Plan:
        """With as many runs as there will be if deciding about one takes so many seconds."""
        if not cost:
            return self
        return replace(self, guess=int(self.guess * self.pace / (self.pace + cost)) + 1)

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
    """What is known of a pair: outputs of both inputs, and many more as some sums see them."""

    parts: tuple[list[Rows], list[Rows]] = field(default_factory=lambda: ([], []))
    rows: int = 0
    judging: float = 0.0  # how long it took to say what the pair promises
    sums: list[Additive] = field(default_factory=list)
    seen: list[list[list[Seen]]] = field(default_factory=list)  # by sum, half and side

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

    def look_at(self, sums: list[Additive]) -> None:
        self.sums, self.seen = sums, [[[_NO_OUTPUT] * 2 for _ in range(2)] for _ in sums]

    def promise(self, i: int, plan: Plan, caution: float) -> float:
        """What a sum promises: fitted to one half of what was seen, judged by the other."""
        found = self.sums[i]
        first, second = ([thinned(side, _JUDGED) for side in half] for half in self.seen[i])
        goals = [plan.objectives(c)[0] for c in (0.0, _BELIEVED)]
        promises = []
        for fit, test in ((first, second), (second, first)):
            terms = found.fitted(*fit)
            scores = [found.score(codes, terms) for codes, _ in test]
            promises.append(foreseen(scores, [counts for _, counts in test], goals, caution))
        return math.fsum(promises) / 2


def foreseen(
    scores: Sequence[Column], counts: Sequence[Column], goals: Sequence[Objective], caution: float
) -> float:
    """What the best threshold of a score promises, by outputs that it was not fitted to.

    Of rare outputs there are too few to count the hits of either input. So these are worked out
    from how common the outputs are under both, and from the score, times what it proved to be worth
    in all of them, less so many deviations. What the hits themselves say is a limit, generously.
    """
    if not min(map(len, scores)):
        return -math.inf
    score, both = np.concatenate(scores), np.concatenate(counts)
    sign = np.repeat([1.0, -1.0], [len(side) for side in scores])
    worth, trials = 1.0, float(counts[0].sum())
    for _ in range(_NEWTON):
        share = 1 / (1 + np.exp(np.clip(sign * worth * score, -30, 30)))
        bend = float(np.sum(both * share * (1 - share) * score**2)) + 1e-9
        worth += float(np.sum(both * share * sign * score)) / bend
    worth = min(max(0.0, worth - caution / math.sqrt(bend)), 1.0)
    share = 1 / (1 + np.exp(np.clip(-worth * score, -30, 30)))
    kinds = [both * share, both * (1 - share), both * (sign > 0), both * (sign < 0)]
    best = -math.inf
    for way in (-1.0, 1.0):
        order = np.argsort(way * score, kind="stable")
        p, q, hits, others = (np.cumsum(kind[order]) for kind in kinds)
        if way > 0:
            p, q, hits, others = q, p, others, hits
        last = np.append(np.diff(score[order]) != 0, True)  # outputs with the same score together
        told, limit = (
            goal(one[last], two[last], int(trials))
            for goal, (one, two) in zip(goals, ((p, q), (hits, others)), strict=True)
        )
        best = max(best, float(np.minimum(told, limit).max()))
    return best


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
        """What epsilon a pair promises, by all of its outputs so far; the time is a limit too."""
        plan = replace(self._plan, guess=guess)
        start, known = plan.clock(), self._known.setdefault(place, _Known())
        if not known.sums:
            self._gather(known, place, min(size, _FIRST), seconds / 4)
            x, y = known.outputs(_FIRST)
            known.look_at(sums_of(self._features(place, x, y), x, y))
        if not known.sums:
            return -math.inf
        self._observe(known, place, size, seconds - known.judging - (plan.clock() - start))
        start = plan.clock()
        promise = self._promise(known, plan)
        known.judging = plan.clock() - start
        return promise

    def _promise(self, known: _Known, plan: Plan) -> float:
        """The greatest promise of a sum; only those that promise most are looked at again."""
        promises = [known.promise(i, plan, _CAUTION) for i in range(len(known.sums))]
        best = sorted(range(len(promises)), key=lambda i: -promises[i])
        if promises[best[0]] > 0:
            kept = sorted(best[:_KEPT])
            known.sums, known.seen = [known.sums[i] for i in kept], [known.seen[i] for i in kept]
            return promises[best[0]]
        # nothing is seen with caution: what may be there, below all that was seen
        return max(known.promise(i, plan, -_CAUTION) for i in best[:_KEPT]) - _BELOW_ALL

    def _observe(self, known: _Known, place: int, size: int, seconds: float) -> None:
        """More outputs, as each of the sums sees them."""
        new: list[Any] = [[([], []), ([], [])] for _ in known.sums]
        for count in self._counts(size, seconds):
            for side, value in enumerate(self._pairs[place]):
                table, bins = self.box(value, count), Bins()
                for part, found in zip(new, known.sums, strict=True):
                    codes = found.codes(table, bins)
                    part[0][side].append(codes[: (count + 1) // 2])
                    part[1][side].append(codes[(count + 1) // 2 :])
        for found, old, part in zip(known.sums, known.seen, new, strict=True):
            for half, sides in enumerate(part):
                for side, codes in enumerate(sides):
                    old[half][side] = merged([old[half][side], found.seen(codes)])

    def survey(self, place: int, size: int, seconds: float, guess: int) -> list[Any]:
        """The features that tell most in some outputs, and the sums that do."""
        if place not in self._known:
            self.look(place, min(size, 3 << 13), seconds / 2, guess)
        known = self._known[place]
        self._gather(known, place, size >> 3, seconds / 2)
        found = self._features(place, *known.outputs(_FIRST))
        return [telling(found, *known.outputs(self._fitting(found, seconds / 2))), known.sums]

    def learn(
        self, place: int, sums: list[Additive], size: int, seconds: float
    ) -> list[tuple[Seen, Seen]]:
        """Many outputs of either input, as each of the sums sees them."""
        known = self._known[place]
        known.look_at(sums)
        self._observe(known, place, size if sums else 0, seconds)
        return [(merged([a[0], b[0]]), merged([a[1], b[1]])) for a, b in known.seen]

    def fit(
        self, place: int, size: int, seconds: float, guess: int, found: list[Feature]
    ) -> list[Candidate]:
        """The events that promise most, for any of the objectives; none if all outputs are alike.

        Two events with the same score are one: thresholds are chosen later.
        """
        plan, start = replace(self._plan, guess=guess), self._plan.clock()
        known = self._known[place]
        self._gather(known, place, size, seconds / 4)
        fitted = Candidates(*known.outputs(self._fitting(found, seconds / 2)), found)
        for x, y in self._drawn(place, size, seconds - (plan.clock() - start)):
            fitted.add(x, y)
            known.keep(x, y, min(_MOST_ROWS, _MOST_NUMBERS // self.box.width))
        events: dict[object, ScoreEvent] = {}
        for goal, wary in zip(*map(plan.objectives, (_CAUTION, _CORNER_CAUTION)), strict=True):
            for event in fitted.best(goal, _CANDIDATES, wary)[:_IN_POOL]:
                events.setdefault(event.key, event)
        return [self.candidate(place, event.lighter()) for event in events.values()]

    def candidate(self, place: int, event: ScoreEvent) -> Candidate:
        """The event with its thresholds; and how long a run of it takes, unless time is nothing."""
        one, two = self._known[place].outputs(_FOR_CUTS)
        cuts = np.unique(event.tables[0].ratios)
        if len(event.tables) > 1 or len(cuts) > _MOST_CUTS:
            cuts = cuts_of(event.score(one, {}), event.score(two, {}))
        counted, start = event.compiled(), self._plan.clock()
        counted.holds(one[:_CHUNK])
        took = (self._plan.clock() - start) / len(one[:_CHUNK])
        return event, cuts, took if self._plan.samples is None else 0.0

    def tally(
        self, place: int, candidates: list[Candidate], size: int, seconds: float
    ) -> tuple[list[Counts], int]:
        """How many of fresh outputs of either input reach each threshold of each candidate."""
        tallies, done = [Reached(event.tables, cuts) for event, cuts, _ in candidates], 0
        for count in self._counts(size, seconds):
            for side, value in enumerate(self._pairs[place]):
                table, seen = self.box(value, count), Bins()
                for (event, *_), tally in zip(candidates, tallies, strict=True):
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

    def _fitting(self, found: Sequence[Feature], seconds: float) -> int:
        """To how many outputs so many features can be fitted in this time."""
        if self._plan.samples is not None:
            return _MOST_ROWS
        return max(self.least, int(seconds / _BUILT / max(1, len(found))))

    def _features(self, place: int, x: Rows, y: Rows) -> list[Feature]:
        choices = SeededRandom(self._plan.seed, f"features of pair {place}")
        half = (len(x) + 1) // 2
        return features(np.concatenate([x[:half], y[:half]]), choices)


def refined(
    pool: Sequence[Candidate], counts: Sequence[NDArray[np.float64]], trials: int, plan: Plan
) -> list[list[tuple[int, ScoreEvent]]]:
    """For each objective the candidates with thresholds from fresh outputs; the best first."""
    reached = [
        Reached(event.tables, cuts, count, trials).smoothed()
        for (event, cuts, _), count in zip(pool, counts, strict=True)
    ]
    ranked = []
    for number in range(len(plan.objectives(_CAUTION))):
        found = []
        for i, (event, _, cost) in enumerate(pool):
            goal = plan.taking(cost).objectives(_CAUTION)[number]
            found += [
                (i, replace(again, corner=event.corner))
                for again in reached[i].best(goal)
                if again.swapped == event.swapped or not event.corner
            ]
        ranked.append(sorted(found, key=lambda one: -one[1].merit))
    return ranked
