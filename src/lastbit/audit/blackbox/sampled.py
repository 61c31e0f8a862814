"""The statistical audit of a black box: look, fix an event, then count.

All processes look at the pairs of inputs (`search`), the parent fixes one pair and its events, and
all processes count these on fresh outputs. Whatever was looked at before the events were fixed
costs nothing. Then one number of runs is planned for the time that is left; the reading at that
number has most of the error, and the rest pays for a reading after every round, before the planned
end and beyond it.

With a claim, counting goes on while a refutation is in reach and time is left. Otherwise it ends
when the runs for which there is time are not likely to raise the bound any more.

Theorem  let every statement about event j have the share w_j of the error; the part 15/16 of it is
         for the reading at the planned number of runs, 1/16 for all readings. The w_j sum to 1, and
         they, the events, their methods, their priors and the planned number are functions of
         outputs drawn before the first run that is counted. Given those outputs, the counts at the
         planned end are those of independent runs of a fixed number, and the counts of all rounds
         a sequence of such runs, in an order that is fixed beforehand (`Team.rounds`). So the first
         statement is wrong with probability at most 15/16 w_j error (`bounds.py`), and any of the
         others is with at most 1/16 w_j error (`bounds.lower_at_all_times`). By the union bound
         some statement, made or not made, is wrong with probability at most `error`. Hence one may
         stop after any round, for any reason, also because of the counts: stopping only leaves
         statements out. Averaging over what was drawn before changes nothing
Differs  it is assumed that the mechanism's draws are independent of one another, also those of
         different processes: a generator that repeats itself after a fork is noticed (`team.alike`)
         unless its outputs are mixed beyond recognition. `processes=1` needs no such assumption. A
         mechanism that seeds itself in each call has no law to audit
Checked  tests/audit/test_spending.py sums exactly over all sequences of a few runs;
         tests/audit/test_false_accusation.py over all counts
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain, pairwise, repeat
from typing import TypeAlias

import numpy as np

from lastbit.audit.blackbox.additive import Additive, merged
from lastbit.audit.blackbox.events import (
    Counts as Reaching,
    ScoreEvent,
    deviations,
    foreseen_apart,
    foreseen_ratio,
)
from lastbit.audit.blackbox.search import Candidate, Draw, Plan, Progress, refined
from lastbit.audit.blackbox.team import Counts, Team
from lastbit.audit.bounds import Prior
from lastbit.audit.inputs import Pair
from lastbit.audit.result import NoEvent, PairFinding, Stated

_MOST_TESTS = 1 << 29
_MOST_RUNS = 1 << 33  # of both inputs, beyond the plan
_LEAST_TESTS, _LEAST_LOOK = 1 << 10, 3 << 7
_RUNGS, _SURVEY, _FIT, _LEARN, _TALLY = 0.24, 0.02, 0.05, 0.06, 0.06  # shares of the time
_LEFT = 0.6  # of the pairs, after each rung
_FINALISTS = 2  # events for each objective
_FIRST_LOOK, _MOST_FIT, _MOST_TALLY = 3 << 15, 1 << 22, 1 << 24
_LATEST = 0.68  # of the time, left when the last pair is looked at
_TEST_SHARE, _RESERVED = 0.96, 0.5
_COUNTED = 2e-8  # seconds to decide whether an output is in an event, as a first guess
_ROUNDS, _LOOK_EVERY, _MANY_RUNS, _FEWEST = 32, 8, 1 << 18, 6
_OVERRUN = 0.25  # of the time, beyond it: then the planned end is given up
_ENOUGH, _CLEAR = 0.002, 0.01
AT_THE_END = Fraction(15, 16)
_MAIN = Fraction(15, 16)
_PRIOR = 8  # of the hits that are planned a prior weighs this part
_DEVIATIONS = 3.0
_CLEARLY = 1.0


class Watch:
    """The time since the start."""

    def __init__(self, plan: Plan) -> None:
        self._start = plan.clock()
        self._plan = plan

    @property
    def left(self) -> float:
        return self._plan.seconds - (self._plan.clock() - self._start)


def explore(
    draw: Draw, pairs: list[Pair], plan: Plan, report: Progress, processes: int = 1
) -> PairFinding:
    """The best pair of these and what its counts prove, with the error of the plan.

    Checked  tests/audit/test_distinguish.py
    """
    watch = Watch(plan)
    with Team(draw, pairs, plan, processes) as team:
        team.try_out()
        plan = _with_guess(team, plan)
        place = best_pair(team, pairs, plan, report, watch)
        report(0.15, "fitting events")
        events = fitted(team, place, plan)
        if events:
            found = _tested(team, place, events, plan, watch, report)
        else:
            found = replace(_nothing(plan), samples=sum(drawn for _, drawn in team.ask("pace")))
        return replace(found, pair=place, repeated=team.repeated)


def _with_guess(team: Team, plan: Plan) -> Plan:
    """With the number of runs of each input for which there will be time."""
    paces = [max(pace, 1e-9) for pace, _ in team.ask("pace")]
    left = plan.seconds * (1 - _RUNGS - _SURVEY - _FIT - _LEARN - 1.5 * _TALLY)
    hoped = int(sum(left / 2 / pace for pace in paces))
    return replace(plan, guess=max(hoped, _LEAST_TESTS), pace=max(paces))


def best_pair(team: Team, pairs: Sequence[Pair], plan: Plan, report: Progress, watch: Watch) -> int:
    """The number of the pair that promises most: the better part is looked at again and again."""
    left, looks = list(range(len(pairs))), _FIRST_LOOK
    rungs = max(1, math.ceil(math.log(len(pairs), 1 / _LEFT)))
    for rung in range(rungs):
        if len(left) == 1:
            break
        seconds = _RUNGS / rungs * plan.seconds / len(left)
        size = _MOST_FIT
        if plan.samples is not None:
            size = min(looks, max(plan.samples, _LEAST_LOOK)) // len(team) + 1
        promises: dict[int, float] = {}
        for place in left:
            if promises and plan.samples is None and watch.left < _LATEST * plan.seconds:
                return max(promises, key=lambda place: promises[place])
            answers = team.ask("look", place, size, seconds, plan.taking(_COUNTED).tests)
            promises[place] = math.fsum(max(answer, -1e9) for answer in answers)
            report(0.15 * rung / rungs, f"looking at pair {place + 1} of {len(pairs)}")
        kept = min(len(left) - 1, math.ceil(_LEFT * len(left)))
        left = sorted(left, key=lambda place: -promises[place])[:kept]
        looks *= 2
    return left[0]


def fitted(team: Team, place: int, plan: Plan) -> list[ScoreEvent]:
    """An event for epsilon at each error, and one for delta if there is a claim; or none.

    Each process fits events to its own outputs, and sums of features are fitted to what all of them
    saw; which of these is best, and its threshold, is decided by many fresh outputs.
    """
    sizes = [_MOST_FIT, _MOST_TALLY]
    if plan.samples is not None:
        most = max(2 * plan.samples, _LEAST_LOOK)
        sizes = [min(size, most) // len(team) + 1 for size in sizes]
    guess = plan.taking(_COUNTED).tests
    found, sums = team.ask("survey", place, sizes[0], _SURVEY * plan.seconds, guess)[0]
    plan = _with_guess(team, plan)
    guess = plan.taking(_COUNTED).tests
    answers = team.ask("fit", place, sizes[0], _FIT * plan.seconds, guess, found)
    pool = [candidate for answer in answers for candidate in answer]
    learnt = _learnt(team, place, sums, sizes[1] // 4 + 1, _LEARN * plan.seconds)
    # what was fitted to most outputs is not dropped for what was lucky in a few
    sure = {len(pool) + i for i, (event, *_) in enumerate(learnt) if len(event.tables) > 1}
    pool += learnt
    if not pool:
        return []
    counts, trials = _tallied(team, place, pool, sizes[1] // 4 + 1, _TALLY / 2 * plan.seconds)
    best = refined(pool, counts, trials, plan)
    kept = {i for each in best for i, _ in each[:_FINALISTS]}
    finalists = [pool[i] for i in sorted(kept | sure)]
    counts, trials = _tallied(team, place, finalists, sizes[1], _TALLY * plan.seconds)
    return [each[0][1] for each in refined(finalists, counts, trials, plan)]


def _learnt(
    team: Team, place: int, sums: Sequence[Additive], size: int, seconds: float
) -> list[Candidate]:
    """Sums of features, fitted to what all processes saw."""
    pool = []
    answers = team.ask("learn", place, sums, size, seconds)
    for found, seen in zip(sums, zip(*answers, strict=True), strict=True):
        terms = found.fitted(*(merged(side) for side in zip(*seen, strict=True)))
        event = ScoreEvent(found.scored(terms), 0.0, swapped=False, promise=0.0).lighter()
        pool.append(team.ask("candidate", place, event)[0])
    return pool


def _tallied(
    team: Team, place: int, candidates: list[Candidate], size: int, seconds: float
) -> tuple[list[Reaching], int]:
    """How many fresh outputs of either input, of all processes, reach the thresholds."""
    tallies = team.ask("tally", place, candidates, size, seconds)
    counts = [sum(parts) for parts in zip(*(counts for counts, _ in tallies), strict=True)]
    return counts, sum(done for _, done in tallies)


def _tested(
    team: Team, place: int, events: list[ScoreEvent], plan: Plan, watch: Watch, report: Progress
) -> PairFinding:
    """What the readings prove; which of them is the last may depend on anything."""
    runs = _planned(team, place, events, plan, watch)
    made = statements(events, plan, sum(map(sum, runs)))
    team.ask("hold", place, events, "tests")
    before = sum(drawn for _, drawn in team.ask("pace"))
    counts = np.zeros((len(events), 2, 2), dtype=np.int64)
    done, total, begun = 0, sum(map(sum, runs)), watch.left
    best, at_the_end = _nothing(plan), list[Stated]()
    rounds = iter(runs) if plan.samples else chain(runs, repeat(runs[-1]))
    for number, found in enumerate(team.rounds(rounds), 1):
        counts += found
        done += sum(runs[min(number, len(runs)) - 1])
        report(0.3 + 0.7 * min(1.0, done / total), f"counting, {done} of {total}")
        if number == len(runs):
            at_the_end = [_counted(m, counts, plan, ended=True) for m in made]
        elif plan.samples or (number < len(runs) and number % _LOOK_EVERY):
            continue
        now = [] if plan.samples else [_counted(m, counts, plan) for m in made]
        best = _proved([*at_the_end, *now], plan)
        room = max(watch.left, 0.0) * done / max(begun - watch.left, 1e-9)
        if number >= len(runs) and (done > _MOST_RUNS or room < sum(runs[-1])):
            break  # there is no time for another round
        if plan.samples is None and watch.left < -_OVERRUN * plan.seconds:
            break  # everything takes longer than it did when the end was planned
        if plan.samples is None and not _to_convict(best, counts, plan):
            # if this were the planned end, the same counts would prove more
            ended = at_the_end or [_counted(m, counts, plan, ended=True) for m in made]
            if _settled([*at_the_end, *now], ended, plan, room):
                break
    return replace(best, samples=before + done)


def _planned(
    team: Team, place: int, events: list[ScoreEvent], plan: Plan, watch: Watch
) -> list[list[int]]:
    """How many runs each process makes in each round, up to the planned end."""
    if plan.samples is not None:
        total, count = 2 * plan.samples, len(team)
        rounds = 8 if total >= _MANY_RUNS else 1
        ends = [total * k // (rounds * count) for k in range(rounds * count + 1)]
        sizes = [after - before for before, after in pairwise(ends)]
        return [sizes[k * count : (k + 1) * count] for k in range(rounds)]
    team.ask("hold", place, events, "pace")
    paces = team.ask("time", 0.01 * plan.seconds)
    most = 2 * _MOST_TESTS // len(team)
    left = max(watch.left, _RESERVED * plan.seconds) * _TEST_SHARE
    sizes = [int(left / max(pace, 1e-9)) for pace in paces]
    rounds = max(1, min(_ROUNDS, min(sizes) // _LEAST_TESTS))
    return [[max(_FEWEST, min(size, most) // rounds) for size in sizes]] * rounds


def _counted(made: Statement, counts: Counts, plan: Plan, *, ended: bool = False) -> Stated:
    """A statement with its counts: those at the planned end, or of any round."""
    number, stated = made
    (one, two), (first, second) = counts[number].tolist()
    part = Fraction(1) if plan.samples else AT_THE_END if ended else 1 - AT_THE_END
    return replace(
        stated,
        hits=one,
        trials=first,
        other_hits=two,
        other_trials=second,
        share=stated.share * part,
        priors=() if ended else stated.priors,
    )


def _proved(stated: Sequence[Stated], plan: Plan, error: Fraction | None = None) -> PairFinding:
    return PairFinding.of(stated, error=error or plan.error, epsilon=plan.epsilon, delta=plan.delta)


def _to_convict(best: PairFinding, counts: Counts, plan: Plan) -> bool:
    """Whether the claim stands, and an event may yet refute it: then nothing stops but time."""
    if plan.epsilon is None:
        return False
    refuted = best.epsilon_lower > plan.epsilon or (best.delta_lower or 0.0) > plan.delta
    return not refuted and any(in_reach(hits, runs, plan) for hits, runs in counts.tolist())


def _settled(now: Sequence[Stated], ended: Sequence[Stated], plan: Plan, room: float) -> bool:
    """Whether `room` more runs are likely to raise the bounds by hardly anything, at every error.

    `ended` is what the end of the audit would state of these counts. Where a claim was decided, and
    nobody asked for bounds at other errors, a hundredth of the bound is not worth the time.
    """
    enough = _ENOUGH if plan.epsilon is None or plan.also else _CLEAR
    for error in plan.errors:
        best, hoped = _proved(now, plan, error), _proved(ended, plan, error)
        limit, done = hoped.estimate(Fraction(0)), hoped.trials + hoped.other_trials
        if not best.epsilon_lower or math.isinf(limit):
            return False
        nearer = (limit - hoped.epsilon_lower) * math.sqrt(done / (done + room))
        if limit - nearer - best.epsilon_lower > enough * limit:
            return False
    return True


def _nothing(plan: Plan) -> PairFinding:
    return PairFinding(
        epsilon_lower=0.0,
        delta_lower=None if plan.epsilon is None else 0.0,
        event=NoEvent(),
    )


# ---------------------------------------------------------------- the error budget


Statement: TypeAlias = tuple[int, Stated]
"""The number of an event, and what will be stated about it, before anything is counted.

By the ratio of the hits under both inputs, or else by two intervals, whose ends serve a statement
about epsilon and one about delta at once; the priors are for statements after every round."""


def statements(events: Sequence[ScoreEvent], plan: Plan, runs: int) -> tuple[Statement, ...]:
    """Which statements to make, from what the events promised in outputs that are not counted.

    For each error one event was sought for its epsilon. Without a claim it has the whole error.
    With a claim the last event was sought for its delta, which takes intervals; that has most of
    the error if it is clearly likelier to refute the claim than the other, which is not sure to;
    and else the other has.
    """
    made = []
    for i, error in enumerate(plan.errors):
        ratio = _by_ratio(events[i], plan, error)
        if plan.epsilon is None:
            made.append(_statement(events, i, error, Fraction(1), runs, by_ratio=ratio))
            continue
        margins = (
            _margin(events[i], plan, by_ratio=ratio),
            _margin(events[-1], plan, by_ratio=False),
        )
        sure = margins[0] > 2 * deviations(float(error))
        main = _MAIN if sure or margins[1] <= max(0.0, margins[0]) + _CLEARLY else 1 - _MAIN
        made.append(_statement(events, i, error, main, runs, by_ratio=ratio))
        made.append(_statement(events, len(events) - 1, error, 1 - main, runs))
    return tuple(made)


def _statement(
    events: Sequence[ScoreEvent],
    i: int,
    error: Fraction,
    share: Fraction,
    runs: int,
    *,
    by_ratio: bool = False,
) -> Statement:
    p, q = events[i].shares
    one, two = p * runs / 2, q * runs / 2
    priors: tuple[Prior, ...] = (_prior(one, two),)
    if not by_ratio:
        priors = _prior(one, runs / 2 - one), _prior(runs / 2 - two, two)
    return i, Stated(
        by_ratio=by_ratio,
        share=share,
        planned=error,
        priors=priors,
        event=events[i].described(),
        swapped=events[i].swapped,
    )


def _prior(hits: float, misses: float) -> Prior:
    """A part of the counts that are expected at the end."""
    return max(1, round(hits / _PRIOR)), max(1, round(misses / _PRIOR))


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


def _by_ratio(event: ScoreEvent, plan: Plan, error: Fraction) -> bool:
    """Whether the ratio of hits promises a greater epsilon than two intervals do."""
    if plan.delta:
        return False
    p, q = event.shares
    ratio, apart = (f(p, q, plan.tests, float(error)) for f in (foreseen_ratio, foreseen_apart))
    return ratio >= apart


def _margin(event: ScoreEvent, plan: Plan, *, by_ratio: bool) -> float:
    """By how many deviations the event should exceed the claim after the planned runs."""
    p, q = event.shares
    assert plan.epsilon is not None
    factor = math.exp(min(float(plan.epsilon), 300.0))
    if by_ratio:
        limit, share = factor / (1 + factor), p / max(p + q, 1e-300)
        return (share - limit) / (_deviation(share, 1) / math.sqrt(plan.tests * (p + q) + 1) + 1e-9)
    spread = math.hypot(_deviation(p, plan.tests), factor * _deviation(q, plan.tests))
    return (p - factor * q - float(plan.delta)) / (spread + 1.0 / plan.tests)
