"""The statistical audit of a black box: look, fix an event, then count.

One process scouts the pairs of inputs it was given, fits an event to the best of them, and counts
that event on fresh outputs. Whatever was looked at before the event was fixed costs nothing; the
counts are read at numbers of runs fixed beforehand, and every reading has its share of the error.

With a claim, counting goes on while a refutation is in reach and there is time for the next
reading. Otherwise it ends when the runs for which there is time are not likely to raise the bound
by more than a hundredth.

Theorem  let every statement (reading i, event j) have the share r_i w_j of the error, where the r_i
         are constants that sum to 1, and the w_j, the events, their methods and the number of runs
         at every reading are functions of outputs drawn before the first run that is counted. Then,
         given those outputs, each count is that of independent runs of a fixed number, so each
         statement is wrong with probability at most r_i w_j error (`bounds.py`,
         `ratio_lower`). By the union bound some statement, made or not made, is wrong with
         probability at most error * sum r_i * sum w_j = error. Hence one may stop at any reading,
         for any reason, also because of the counts: stopping only leaves statements out. Averaging
         over what was drawn before changes nothing
Differs  the readings never end: beyond the planned number of runs each reading has a quarter more
         runs than the one before, and the shares 1/(k(k+1)) of what is set aside sum to that. So an
         audit which has time left never has to stop for want of error to spend
Checked  tests/audit/test_spending.py; tests/audit/test_false_accusation.py sums exactly over all
         counts
"""

from __future__ import annotations

import hashlib
import math
import multiprocessing
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count
from multiprocessing.connection import Connection, wait
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.blackbox.events import ScoreEvent, foreseen_apart, foreseen_ratio
from lastbit.audit.blackbox.search import Box, Draw, Plan, Progress, Watch, best_pair, fitted
from lastbit.audit.bounds import delta_lower, epsilon_lower
from lastbit.audit.inputs import Pair
from lastbit.audit.result import NoEvent, PairFinding
from lastbit.exact import DEFAULT_PRECISION, arb_of, lower, probability_lower, working_precision

Counts: TypeAlias = NDArray[np.int64]  # by event; hits or runs; likelier input or other
_MOST_TESTS = 1 << 28
_MOST_RUNS = 1 << 33  # of both inputs, beyond the plan
_LEAST_TESTS = 1 << 10
_TEST_SHARE = 0.95
_ENOUGH = 0.01
_PLANNED = (
    (Fraction(1, 16), Fraction(1, 64)),
    (Fraction(1, 4), Fraction(2, 64)),
    (Fraction(5, 8), Fraction(4, 64)),
    (Fraction(1), Fraction(52, 64)),
)
_BEYOND = Fraction(5, 64)
_GROWTH = Fraction(5, 4)
ONE_READING = ((Fraction(1), Fraction(1)),)
_MAIN = Fraction(7, 8)
_DEVIATIONS = 3.0
_CLEARLY = 1.0


def explore(draw: Draw, pairs: list[Pair], plan: Plan, report: Progress) -> PairFinding:
    """The best pair of these and what its counts prove, with the error of the plan.

    Theorem  the events are functions of outputs drawn before the test, in this process, and the
             number of tests is fixed before the first of them; the rest is said above. That the
             mechanism's draws are independent of one another is assumed: a mechanism that seeds
             itself in each call has no law to audit
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
    trials = plan.samples
    if not trials:  # as many of each input as fit into the time left
        size = watch.size(_LEAST_TESTS << 4, watch.share(0.05))
        coins = Coins(0, "pace")
        watch.timed(lambda: _counted(box, pairs[place], events, 2 * size, coins), size)
        trials = watch.size(_MOST_TESTS, watch.share(_TEST_SHARE))
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
        self._count += 1
        text = hashlib.shake_128(self._key + str(self._count).encode()).digest(-(-coins // 8))
        return (int.from_bytes(text, "big") >> (-coins % 8)).bit_count()


def _tested(
    box: Box,
    pair: Pair,
    place: int,
    events: list[ScoreEvent],
    plan: Plan,
    trials: int,
    watch: Watch,
    report: Progress,
) -> PairFinding:
    """The best of all readings; which of them is the last may depend on anything."""
    counts = np.zeros((len(events), 2, 2), dtype=np.int64)
    done, best = 0, _nothing(place, 0, plan)
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
            found = _finding(events[i], counts[i], plan, error, statement.by_ratio)
            best = _better(best, replace(found, pair=place, samples=box.drawn))
        took = max(left - watch.left, 1e-9)  # since the last reading: the pace may have changed
        room = max(watch.left, 0.0) * (done - before) / took
        if plan.samples is None and _over(best, counts, plan, watch, room):
            break
    return best


def _over(best: PairFinding, counts: Counts, plan: Plan, watch: Watch, room: float) -> bool:
    """Whether to stop at this reading.

    Never while the claim stands, an event may yet refute it, and time is left; else if the runs
    that fit into the time left are likely to raise the bound by no more than a hundredth.
    """
    if watch.left <= 0:
        return True
    if plan.epsilon is not None:
        refuted = best.epsilon_lower > plan.epsilon or (best.delta_lower or 0.0) > plan.delta
        if not refuted and any(in_reach(hits, runs, plan) for hits, runs in counts.tolist()):
            return False
    return _settled(best, room)


def _counted(box: Box, pair: Pair, events: list[ScoreEvent], size: int, coins: Coins) -> Counts:
    """Hits and runs of each event, under its likelier input and under the other.

    A coin decides the input of each run.
    """
    heads = coins.heads(size)
    trials = [heads, size - heads]
    tables = [
        box(value, count) if count else None for value, count in zip(pair, trials, strict=True)
    ]
    found = np.empty((len(events), 2, 2), dtype=np.int64)
    for i, event in enumerate(events):
        hits = [0 if table is None else int(event.holds(table).sum()) for table in tables]
        order = slice(None, None, -1 if event.swapped else 1)
        found[i] = hits[order], trials[order]
    return found


def _finding(
    event: ScoreEvent, counts: Counts, plan: Plan, error: Fraction, by_ratio: bool
) -> PairFinding:
    """What these counts prove with this error: by their ratio, or by two intervals."""
    (one, two), (first, second) = counts.tolist()
    loss, rest = 0.0, None if plan.epsilon is None else 0.0
    if by_ratio:
        loss = ratio_lower(one, two, error=error)
    elif first and second:
        loss = epsilon_lower(one, first, two, second, delta=plan.delta, error=error)
        if plan.epsilon is not None:  # from the same two ends
            rest = delta_lower(one, first, two, second, epsilon=plan.epsilon, error=error)
    return PairFinding(
        epsilon_lower=loss,
        delta_lower=rest,
        event=event.described(),
        swapped=event.swapped,
        hits=one,
        trials=first,
        other_hits=two,
        other_trials=second,
    )


def _better(best: PairFinding, found: PairFinding) -> PairFinding:
    """The finding with the greater epsilon, and the greater delta of both."""
    chosen = found if found.epsilon_lower > best.epsilon_lower or not best.trials else best
    deltas = [d for d in (best.delta_lower, found.delta_lower) if d is not None]
    return replace(chosen, delta_lower=max(deltas, default=None), samples=found.samples)


def _settled(best: PairFinding, room: float) -> bool:
    """Whether `room` more runs are likely to raise the bound by no more than a hundredth."""
    limit, done = best.estimate(Fraction(0)), best.trials + best.other_trials
    if not best.epsilon_lower or math.isinf(limit):
        return False
    return (limit - best.epsilon_lower) * (1 - math.sqrt(done / (done + room))) < _ENOUGH * limit


def _nothing(place: int, drawn: int, plan: Plan) -> PairFinding:
    return PairFinding(
        epsilon_lower=0.0,
        delta_lower=None if plan.epsilon is None else 0.0,
        event=NoEvent(),
        pair=place,
        samples=drawn,
    )


# ---------------------------------------------------------------- the error budget


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What is stated about one event, and its share of the error of a reading.

    By the `ratio` of the hits under both inputs, or else by two intervals, whose ends serve a
    statement about epsilon and one about delta at once.
    """

    event: int
    by_ratio: bool
    share: Fraction


def readings() -> Iterator[tuple[Fraction, Fraction]]:
    """After which part of the planned runs the counts are read, and that reading's share.

    Law      1/16, 1/4, 5/8 and 1 with 1/64, 2/64, 4/64 and 52/64 of the error; then (5/4)**k with
             5/64 of it times 1/(k(k+1)), k = 1, 2, ...
    Theorem  the shares sum to 1: 1/(k(k+1)) = 1/k - 1/(k+1) sums to 1

    >>> [str(part) for part, _ in zip((part for part, _ in readings()), range(6))]
    ['1/16', '1/4', '5/8', '1', '5/4', '25/16']
    """
    yield from _PLANNED
    part = Fraction(1)
    for k in count(1):
        part *= _GROWTH
        yield part, _BEYOND / (k * (k + 1))


def statements(events: Sequence[ScoreEvent], plan: Plan) -> tuple[Statement, ...]:
    """Which statements to make, from what the events promised in outputs that are not counted.

    Without a claim there is one event, and one statement with the whole error. With a claim the
    last event was sought for its delta, which takes intervals; it gets most of the error if it is
    clearly likelier to refute the claim than the first, and else the first gets it.
    """
    ratio = [_by_ratio(event, plan) for event in events]
    if plan.epsilon is not None:
        ratio[-1] = False
    if len(events) == 1:
        return (Statement(event=0, by_ratio=ratio[0], share=Fraction(1)),)
    margins = [_margin(event, plan, r) for event, r in zip(events, ratio, strict=True)]
    main = len(events) - 1 if margins[-1] > max(0.0, margins[0]) + _CLEARLY else 0
    rest = (1 - _MAIN) / (len(events) - 1)
    return tuple(
        Statement(event=j, by_ratio=ratio[j], share=_MAIN if j == main else rest)
        for j in range(len(events))
    )


def in_reach(hits: Sequence[int], trials: Sequence[int], plan: Plan) -> bool:
    """Whether more runs may yet refute the claim by an event with these counts.

    Whether the estimate of P - e**epsilon Q - delta is above 0, or within three deviations of it.
    Only a reason to go on: no statement rests on it.
    """
    if plan.epsilon is None:
        return False
    p, q = ((h + 0.5) / (n + 1) for h, n in zip(hits, trials, strict=True))
    factor = math.exp(min(float(plan.epsilon), 300.0))
    spread = math.hypot(_deviation(p, trials[0]), factor * _deviation(q, trials[1]))
    return p - factor * q - float(plan.delta) + _DEVIATIONS * spread > 0


def _deviation(share: float, trials: int) -> float:
    return math.sqrt(max(share * (1 - share), 0.0) / max(trials, 1))


def _by_ratio(event: ScoreEvent, plan: Plan) -> bool:
    """Whether the ratio of hits promises a greater epsilon than two intervals do."""
    if plan.delta:
        return False
    p, q = event.shares
    return foreseen_ratio(p, q, plan.tests) >= foreseen_apart(p, q, plan.tests)


def _margin(event: ScoreEvent, plan: Plan, by_ratio: bool) -> float:
    """By how many deviations the event should exceed the claim after the planned runs."""
    p, q = event.shares
    assert plan.epsilon is not None
    factor = math.exp(min(float(plan.epsilon), 300.0))
    if by_ratio:
        limit, share = factor / (1 + factor), p / max(p + q, 1e-300)
        return (share - limit) / (_deviation(share, 1) / math.sqrt(plan.tests * (p + q) + 1) + 1e-9)
    spread = math.hypot(_deviation(p, plan.tests), factor * _deviation(q, plan.tests))
    return (p - factor * q - float(plan.delta)) / (spread + 1.0 / plan.tests)


# ---------------------------------------------------------------- several processes


def explored(draw: Draw, dealt: list[list[Pair]], plan: Plan, tell: Progress) -> list[PairFinding]:
    """What each hand of pairs gave, in order: one process for each."""
    if len(dealt) == 1:
        return [explore(draw, dealt[0], plan, tell)]
    context = multiprocessing.get_context("fork")  # a closure cannot be sent, only inherited
    running: dict[Connection, tuple[int, Any]] = {}
    try:
        for number, hand in enumerate(dealt):
            ours, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_work, args=(theirs, draw, hand, plan), daemon=True)
            with warnings.catch_warnings():
                # Python 3.12 warns of forks beside threads; a linear algebra library has some
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            theirs.close()
            running[ours] = number, process
        return _gathered(running, len(dealt), tell)
    finally:
        for pipe, (_, process) in running.items():
            pipe.close()
            process.terminate()
            process.join()


def _gathered(
    running: dict[Connection, tuple[int, Any]], count: int, tell: Progress
) -> list[PairFinding]:
    found: dict[int, PairFinding] = {}
    shares = [0.0] * count
    while len(found) < count:
        for pipe in wait([p for p, (number, _) in running.items() if number not in found]):
            assert isinstance(pipe, Connection)
            number = running[pipe][0]
            try:
                message = pipe.recv()
            except EOFError:
                raise RuntimeError("a process of the audit ended without an answer") from None
            match message:
                case PairFinding():
                    found[number] = message
                case str():  # what the mechanism raised follows, if it survives a pipe
                    try:
                        failure = pipe.recv()
                    except Exception:
                        failure = None
                    raise failure if isinstance(failure, Exception) else RuntimeError(message)
                case (share, text):
                    shares[number] = share
                    tell(min(shares), text)
    return [found[i] for i in range(count)]


def _work(pipe: Connection, draw: Draw, pairs: list[Pair], plan: Plan) -> None:
    last = 0.0

    def report(share: float, text: str) -> None:
        nonlocal last
        if time.perf_counter() - last > 0.1:
            last = time.perf_counter()
            pipe.send((share, text))

    try:
        pipe.send(explore(draw, pairs, plan, report))
    except Exception as failure:
        pipe.send(f"the mechanism failed with {type(failure).__name__}")
        try:
            pipe.send(failure)
        except Exception:  # it cannot be sent: the parent has been told its kind
            pipe.close()
