"""One error budget, and where it goes.

An audit that tests one pair of inputs makes statements from counts: about each event, by one of two
methods, at each reading of the counts. Each statement may be wrong with its own probability; these
add up to the error of the audit, and none is set aside for a statement that is never made.

Theorem  let every statement (reading i, event j) have the share r_i w_j of the error, where the r_i
         are constants that sum to 1, and the w_j, the events, their methods and the number of runs
         at every reading are functions of outputs drawn before the first run that is counted. Then,
         given those outputs, each count is that of independent runs of a fixed number, so each
         statement is wrong with probability at most r_i w_j error (`bound.py`,
         `sampled.ratio_lower`). By the union bound some statement, made or not made, is wrong with
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

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

from lastbit.audit.blackbox.events import ScoreEvent, foreseen_apart, foreseen_ratio
from lastbit.audit.blackbox.search import Plan

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
