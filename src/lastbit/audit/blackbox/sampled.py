"""The statistical audit of a black box: look, fix an event, then count.

One process scouts the pairs of inputs it was given, fits an event to the best of them, and counts
that event on fresh outputs. Whatever was looked at before the event was fixed costs nothing; the
counts are read at numbers of runs fixed beforehand, and every reading has its share of the error
(`spending.py`).

With a claim, counting goes on while a refutation is in reach and there is time for the next
reading. Otherwise it ends when the runs for which there is time are not likely to raise the bound
by more than a hundredth.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.blackbox.events import Event
from lastbit.audit.blackbox.search import Box, Draw, Plan, Progress, Watch, best_pair, fitted
from lastbit.audit.blackbox.spending import ONE_READING, in_reach, readings, statements
from lastbit.audit.bounds import delta_lower, epsilon_lower
from lastbit.audit.inputs import Pair
from lastbit.exact import DEFAULT_PRECISION, arb_of, lower, probability_lower, working_precision

_MOST_TESTS = 1 << 28
_MOST_RUNS = 1 << 33  # of both inputs, beyond the plan
_LEAST_TESTS = 1 << 10
_TEST_SHARE = 0.95
_ENOUGH = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledFinding:
    """What the counts prove, and what they were."""

    epsilon_lower: float
    delta_lower: float | None
    event: str
    pair: int
    swapped: bool
    hits: int
    trials: int
    other_hits: int
    other_trials: int
    samples: int

    @property
    def ratio(self) -> float:
        """The logarithm of the ratio of both frequencies."""
        return self.estimate(Fraction(0))

    def estimate(self, delta: Fraction) -> float:
        """Where the bound tends to with more runs: no bound."""
        if not self.trials or not self.other_trials:
            return 0.0
        above = self.hits / self.trials - float(delta)
        if above <= 0:
            return 0.0
        if not self.other_hits:
            return math.inf
        return max(0.0, math.log(above * self.other_trials / self.other_hits))


@dataclass(frozen=True, slots=True)
class _Counts:
    """How often each event happened: under its likelier input, and under the other."""

    hits: NDArray[np.int64]
    trials: NDArray[np.int64]

    def __add__(self, more: _Counts) -> _Counts:
        return _Counts(self.hits + more.hits, self.trials + more.trials)


def explore(draw: Draw, pairs: list[Pair], plan: Plan, report: Progress) -> SampledFinding:
    """The best pair of these and what its counts prove, with the error of the plan.

    Theorem  the event is a function of outputs drawn before the test, in this process, and the
             number of tests is fixed before the first of them. Given the event, the counts are
             binomial; each reading i of each event j is wrong with probability at most its share,
             and the shares sum to plan.error (`spending.py`). That the mechanism's draws are
             independent of one another is assumed: a mechanism that seeds itself in each call has
             no law to audit
    Checked  tests/audit/test_distinguish.py
    """
    box, watch = Box(draw, plan.clock), Watch(plan)
    pace = box.try_out(pairs[0], None if plan.samples else 0.02 * plan.seconds)
    watch.begin(pace)
    hoped = int(0.15 * plan.seconds / max(pace, 1e-8))
    plan = replace(plan, guess=min(max(hoped, _LEAST_TESTS), _MOST_TESTS))
    place = best_pair(box, pairs, plan, watch, report)
    report(0.35, "fitting an event")
    events = fitted(box, pairs[place], plan, watch, place)
    if not events:
        return _nothing(place, box.drawn, plan)
    trials = plan.samples or _test_size(box, pairs[place], events, watch)
    return _tested(box, pairs[place], place, events, plan, trials, watch, report)


def ratio_lower(hits: int, other_hits: int, *, error: Fraction) -> float:
    """A lower bound on ln(P/Q) for the probabilities of an event under two inputs.

    Law      ln(s/(1-s)), rounded down: s is the lower end for `hits` among hits + other_hits
    Theorem  wrong with probability at most `error`, if the input of every run was chosen by a fair
             coin. A run on the first input with a hit then has probability P/2, one on the second
             Q/2; so, given how many hits there were, each was of the first with probability
             s = P/(P+Q), independently, and P/Q = s/(1-s)
    Source   Przyborowski, Wilenski 1940, for two Poisson means
    Differs  a coin for each run makes it exact for binomial counts; against two separate intervals
             it needs half as many runs where the event is rare
    Checked  tests/audit/test_sampled.py

    >>> round(ratio_lower(3000, 1000, error=Fraction(1, 10**6)), 3)
    0.927
    >>> ratio_lower(0, 5, error=Fraction(1, 10**6))
    0.0
    """
    if hits == 0:
        return 0.0
    share = Fraction(probability_lower(hits, hits + other_hits, error=error))
    if share <= Fraction(1, 2):
        return 0.0
    with working_precision(DEFAULT_PRECISION):
        return max(0.0, lower((arb_of(share) / arb_of(1 - share)).log()))


def _test_size(box: Box, pair: Pair, events: list[Event], watch: Watch) -> int:
    """How many tests of each input fit into the time left; fixed before the first is counted."""
    size = watch.size(_LEAST_TESTS << 4, watch.share(0.05))
    watch.timed(lambda: _counted(box, pair, events, 2 * size, Coins(0, "pace")), size)
    return watch.size(_MOST_TESTS, watch.share(_TEST_SHARE))


class Coins:
    """Fair coins: whether a run is on the first input.

    A seed alone would fix the numbers of runs once and for all, and `ratio_lower` would promise
    nothing about that audit. So the label holds a digest of outputs that were drawn before: an
    audit can be repeated if the mechanism can, and the coins are as random as the mechanism is.
    """

    def __init__(self, seed: int, label: str) -> None:
        self._key = f"{seed}/{label}/".encode()
        self._count = 0

    def heads(self, coins: int) -> int:
        """How many of so many coins show heads."""
        self._count += 1
        text = hashlib.shake_128(self._key + str(self._count).encode()).digest(-(-coins // 8))
        return (int.from_bytes(text, "big") >> (-coins % 8)).bit_count()


def _tested(
    box: Box,
    pair: Pair,
    place: int,
    events: list[Event],
    plan: Plan,
    trials: int,
    watch: Watch,
    report: Progress,
) -> SampledFinding:
    """The best of all readings; which of them is the last may depend on anything."""
    zero = np.zeros((len(events), 2), dtype=np.int64)
    counts, done, best = _Counts(zero, zero), 0, _nothing(place, 0, plan)
    coins = Coins(plan.seed, f"tests of pair {place} after {box.seen}")
    stated, room = statements(events, plan), 0.0
    for part, share in ONE_READING if plan.samples else readings():
        until, before, left = int(2 * trials * part), done, watch.left
        if part > 1 and (until > _MOST_RUNS or until - done > room):
            break  # there is no time for another reading
        while done < until:
            size = box.chunks(until - done)[0]
            counts += _counted(box, pair, events, size, coins)
            done += size
            report(0.4 + 0.6 * min(1.0, done / (2 * trials)), f"counting, {done} of {2 * trials}")
        for statement in stated:
            i, error = statement.event, plan.error * share * statement.share
            given = (counts.hits[i], counts.trials[i], place, plan, error, statement.by_ratio)
            best = _better(best, replace(_finding(events[i], *given), samples=box.drawn))
        took = max(left - watch.left, 1e-9)  # since the last reading: the pace may have changed
        room = max(watch.left, 0.0) * (done - before) / took
        if plan.samples is None and _over(best, counts, plan, watch, room):
            break
    return best


def _over(best: SampledFinding, counts: _Counts, plan: Plan, watch: Watch, room: float) -> bool:
    """Whether to stop at this reading.

    Never while the claim stands, an event may yet refute it, and time is left; else if the runs
    that fit into the time left are likely to raise the bound by no more than a hundredth.
    """
    if watch.left <= 0:
        return True
    if plan.epsilon is not None and not _refuted(best, plan):
        pairs = zip(counts.hits.tolist(), counts.trials.tolist(), strict=True)
        if any(in_reach(hits, trials, plan) for hits, trials in pairs):
            return False
    return _settled(best, room)


def _refuted(best: SampledFinding, plan: Plan) -> bool:
    assert plan.epsilon is not None
    return best.epsilon_lower > plan.epsilon or (best.delta_lower or 0.0) > plan.delta


def _counted(box: Box, pair: Pair, events: list[Event], size: int, coins: Coins) -> _Counts:
    """Runs of which each is on the one or the other input as a coin decides."""
    heads = coins.heads(size)
    trials = [heads, size - heads]
    tables = [
        box(value, count) if count else None for value, count in zip(pair, trials, strict=True)
    ]
    found = _Counts(*(np.empty((len(events), 2), dtype=np.int64) for _ in range(2)))
    for i, event in enumerate(events):
        hits = [0 if table is None else int(event.holds(table).sum()) for table in tables]
        found.hits[i] = hits[::-1] if event.swapped else hits
        found.trials[i] = trials[::-1] if event.swapped else trials
    return found


def _finding(
    event: Event,
    hits: NDArray[np.int64],
    trials: NDArray[np.int64],
    place: int,
    plan: Plan,
    error: Fraction,
    by_ratio: bool,
) -> SampledFinding:
    """What these counts prove with this error: by their ratio, or by two intervals."""
    one, two = (int(count) for count in hits)
    first, second = (int(count) for count in trials)
    loss, rest = 0.0, None if plan.epsilon is None else 0.0
    if by_ratio:
        loss = ratio_lower(one, two, error=error)
    elif first and second:
        counts = (one, first, two, second)
        loss = epsilon_lower(*counts, delta=plan.delta, error=error)
        if plan.epsilon is not None:  # from the same two ends
            rest = delta_lower(*counts, epsilon=plan.epsilon, error=error)
    return SampledFinding(
        epsilon_lower=loss,
        delta_lower=rest,
        event=str(event),
        pair=place,
        swapped=event.swapped,
        hits=one,
        trials=first,
        other_hits=two,
        other_trials=second,
        samples=0,
    )


def _better(best: SampledFinding, found: SampledFinding) -> SampledFinding:
    """The finding with the greater epsilon, and the greater delta of both."""
    chosen = found if found.epsilon_lower > best.epsilon_lower or not best.trials else best
    deltas = [d for d in (best.delta_lower, found.delta_lower) if d is not None]
    return replace(chosen, delta_lower=max(deltas, default=None), samples=found.samples)


def _settled(best: SampledFinding, room: float) -> bool:
    """Whether so many more runs are likely to raise the bound by no more than a hundredth."""
    limit, done = best.ratio, best.trials + best.other_trials
    if not best.epsilon_lower or math.isinf(limit):
        return False
    return (limit - best.epsilon_lower) * (1 - math.sqrt(done / (done + room))) < _ENOUGH * limit


def _nothing(place: int, drawn: int, plan: Plan) -> SampledFinding:
    return SampledFinding(
        epsilon_lower=0.0,
        delta_lower=None if plan.epsilon is None else 0.0,
        event="none",
        pair=place,
        swapped=False,
        hits=0,
        trials=0,
        other_hits=0,
        other_trials=0,
        samples=drawn,
    )
