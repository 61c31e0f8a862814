"""One error budget, all of it spent; and no audit stops while it may still convict."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from lastbit.audit import result
from lastbit.audit.blackbox.distinguish import distinguish_by_sampling
from lastbit.audit.blackbox.events import ScoreEvent
from lastbit.audit.blackbox.sampled import AT_THE_END, explore, in_reach, statements
from lastbit.audit.bounds import delta_lower, epsilon_lower, ratio_lower
from lastbit.errors import InvalidParameter
from lastbit.sampling.deterministic import Seeded
from tests.audit.test_search import plan, silent
from tests.evidence import late

BUDGET = Fraction(1, 1000)
Law = tuple[Fraction, ...]


class Clocked:
    """A coin with its own time: an output costs `cost` seconds, or `later` after so many of them.

    Heads have probability heads[0] on input 0 and heads[1] on input 1, to within 2**-32.
    """

    def __init__(self, heads, *, cost=1e-6, later=None, after=0, seed=1):
        self.heads, self.bits, self.now, self.drawn = heads, Seeded(seed), 0.0, 0
        self.cost, self.later, self.after = cost, cost if later is None else later, after

    def clock(self) -> float:
        return self.now

    def __call__(self, value, size):
        words = self.bits.fill(4 * size).view(np.uint32)
        self.now += size * (self.cost if self.drawn < self.after else self.later)
        self.drawn += size
        return words < self.heads[value] * 2.0**32


def audited(mechanism: Clocked, **changes):
    asked = plan(**{"samples": None, "error": BUDGET, "clock": mechanism.clock, **changes})
    return explore(mechanism, [(0, 1)], asked, silent)


# ---------------------------------------------------------------- the shares


def event(p: float, q: float) -> ScoreEvent:
    return ScoreEvent((), 1.0, swapped=False, promise=0.0, shares=(p, q))


@pytest.mark.parametrize("claim", [None, Fraction(1)])
@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1, 100)])
@pytest.mark.parametrize("p", [1e-9, 0.01, 0.3, 0.999])
@pytest.mark.parametrize("q", [0.0, 1e-4, 0.2])
def test_the_shares_of_the_statements_are_the_whole(claim, delta, p, q):
    also = (Fraction(1, 10),)
    events = [event(p, q), event(p, q)] + ([] if claim is None else [event(q, p)])
    asked = plan(epsilon=claim, delta=delta, also=also)
    made = statements(events, asked, 10**6)
    for i, error in enumerate(asked.errors):  # each error has its own, and all of itself
        numbers = [number for number, statement in made if statement.planned == error]
        mine = [statement for _, statement in made if statement.planned == error]
        assert sum(statement.share for statement in mine) == 1
        assert numbers == [i] + [2] * (claim is not None)
        assert not (delta and any(statement.by_ratio for statement in mine))
        assert claim is None or not mine[-1].by_ratio  # delta takes intervals
    assert all(min(prior) >= 1 for _, statement in made for prior in statement.priors)


def test_the_event_that_is_likelier_to_convict_gets_most():
    asked = plan(epsilon=Fraction(1), samples=10_000)
    first, second = event(0.1, 0.04), event(0.9, 0.1)
    most, idle = Fraction(15, 16), event(0.2, 0.1)

    def shares(*events: ScoreEvent) -> list[Fraction]:
        return [statement.share for _, statement in statements(events, asked, 20_000)]

    assert shares(second, first) == shares(idle, idle) == [most, 1 - most]
    assert shares(first, second) == [1 - most, most]


def test_rare_events_are_stated_by_their_ratio_and_common_ones_by_intervals():
    asked = plan(samples=100_000)
    assert statements([event(0.002, 0.001)], asked, 200_000)[0][1].by_ratio
    assert not statements([event(0.999, 0.9)], asked, 200_000)[0][1].by_ratio


@pytest.mark.parametrize(
    ("heads", "options"),
    [
        ((0.6, 0.5), {}),
        ((0.6, 0.5), {"epsilon": Fraction(1, 10)}),
        ((0.6, 0.5), {"epsilon": Fraction(1), "delta": Fraction(1, 100)}),
        ((0.02, 0.01), {"epsilon": Fraction(1)}),
        ((0.02, 0.01), {}),
    ],
)
def test_the_whole_error_is_spent_where_the_number_of_runs_is_fixed(monkeypatch, heads, options):
    """Before, a third to three quarters of it was kept for statements that nobody made."""
    spent: list[Fraction] = []

    def noting(true):
        def noted(*counts: Any, error: Fraction, **settings: Any) -> float:
            spent.append(error)
            return true(*counts, error=error, **settings)

        return noted

    monkeypatch.setattr(result, "epsilon_lower", noting(epsilon_lower))
    monkeypatch.setattr(result, "ratio_lower", noting(ratio_lower))
    audited(Clocked(heads), samples=2000, **options)
    assert sum(spent) == BUDGET


def test_the_same_counts_are_read_at_another_error():
    """Each error has the event that was sought for it; what was not planned is the first's."""
    found = distinguish_by_sampling(
        Clocked((0.3, 0.2)), (0, 1), samples=3000, also=("1/10",), processes=1
    )
    surely, likely = found.at("1e-6"), found.at("1/10")
    assert (surely.epsilon_lower, surely.inputs) == (found.epsilon_lower, found.inputs)
    assert found.epsilon_lower < likely.epsilon_lower < math.log(1.5)
    assert likely.error == Fraction(1, 10) and likely.at("1e-6") == surely
    planned = [s for s in found.stated if s.planned == found.error]
    again = max(s.epsilon_lower(Fraction(1, 100), Fraction(0)) for s in planned)
    assert found.at("1/100").epsilon_lower == again
    for foreign in (replace(found, stated=()), replace(found, contradiction="not its law")):
        with pytest.raises(InvalidParameter, match="by sampling"):
            foreign.at("1/10")


def test_nothing_found_is_nothing_at_every_error():
    silent_one = distinguish_by_sampling(
        lambda value, size: np.zeros(size), (0, 1), samples=100, processes=1
    )
    assert silent_one.at("1/2").epsilon_lower == 0.0


# ---------------------------------------------------------------- when it stops


def unproved(finding, claim: Fraction) -> bool:
    return finding.epsilon_lower <= claim < finding.estimate(Fraction(0))


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("above", [late(0.0), late(0.002), late(0.01), 0.03])
@pytest.mark.parametrize("seed", [1, late(2)])
def test_no_audit_stops_while_a_conviction_is_in_reach_and_time_is_left(above, seed):
    """Each output costs a microsecond of a clock that only the outputs move."""
    claim = Fraction(1)
    q = 0.2
    mechanism = Clocked((q * math.exp(1 + above), q), seed=seed)
    finding = audited(mechanism, epsilon=claim, seconds=1.0)
    if unproved(finding, claim):
        left = 1.0 - mechanism.now
        runs = finding.trials + finding.other_trials
        assert left < 1e-6 * runs / 16  # not enough for one more round
    if above >= 0.03:
        assert finding.epsilon_lower > claim


@pytest.mark.evidence
@pytest.mark.parametrize("seconds", [0.1, late(0.5, apart=True)])
def test_an_audit_that_was_planned_too_short_goes_on(seconds):
    """After the first outputs each costs a tenth: the plan made at the first pace has far to go."""
    claim, heads = Fraction(1), (0.2 * math.exp(1.004), 0.2)
    steady = audited(Clocked(heads), epsilon=claim, seconds=seconds)
    first = Clocked(heads, later=1e-7, after=round(8e5 * seconds))
    faster = audited(first, epsilon=claim, seconds=seconds)
    assert faster.samples > 2 * steady.samples
    if unproved(faster, claim):
        assert seconds - first.now < 1e-7 * (faster.samples - 2e5 * seconds) / 4


@pytest.mark.evidence
def test_a_clear_case_stops_early():
    """Convicted, or out of reach, and the planned end would prove hardly more."""
    broken = Clocked((0.9, 0.1))
    assert audited(broken, epsilon=Fraction(1), seconds=10.0).epsilon_lower > 2
    right = Clocked((0.6, 0.4))
    assert audited(right, epsilon=Fraction(1), seconds=10.0).epsilon_lower < math.log(1.5)
    for mechanism in (broken, right):
        assert mechanism.now < 8
    compared = Clocked((0.9, 0.1))
    found = audited(compared, epsilon=Fraction(1), seconds=1.0, also=(Fraction(1, 10),))
    assert any(not one.priors for one in found.stated)  # the planned end was reached


@pytest.mark.evidence
def test_no_audit_runs_far_beyond_its_time():
    for heads in ((0.5, 0.5), (0.2 * math.e, 0.2), (1.0, 0.0)):
        mechanism = Clocked(heads)
        audited(mechanism, epsilon=Fraction(1), seconds=1.0)
        assert mechanism.now < 1.1


def test_reach_is_where_the_claim_is_not_yet_excluded():
    asked = plan(epsilon=Fraction(1))
    assert in_reach((2800, 1000), (10_000, 10_000), asked)  # above the claim
    assert in_reach((2700, 1000), (10_000, 10_000), asked)  # below, by less than it varies
    assert not in_reach((2000, 1000), (10_000, 10_000), asked)
    assert not in_reach((2800, 1000), (10_000, 10_000), plan(epsilon=None))
    assert in_reach((0, 0), (10, 10), plan(epsilon=Fraction(10**6)))  # nothing is known yet


# ---------------------------------------------------------------- exactly: how often it is wrong


def outcomes(p: Law, q: Law) -> list[tuple[int, Fraction]]:
    """What one run can be: a coin for the input, then one of three kinds of output."""
    return [(i, share / 2) for i, share in enumerate((*p, *q))]


def wrong(p: Law, q: Law, error: Fraction, paid: bool) -> Fraction:
    """The exact probability that some statement of some round is false.

    Outputs are in neither event, in the first alone, or in both; the second event is the last kind.
    A round is one run, eight are planned and ten made; the first event is stated by its ratio, the
    second by intervals. If not `paid`, every statement is like one at a planned end with the whole
    error: a mutant.
    """
    truth = [math.log((p[1] + p[2]) / (q[1] + q[2])), math.log(p[2] / q[2])]
    loss = Fraction(1, 10)
    rest = max(0.0, float(p[2]) - math.exp(loss) * float(q[2]))
    by_ratio, by_intervals, by_delta = cache(ratio_lower), cache(epsilon_lower), cache(delta_lower)
    going: dict[tuple[int, ...], Fraction] = {(0,) * 6: Fraction(1)}
    total = Fraction(0)
    weights, prior, priors = (Fraction(15, 16), Fraction(1, 16)), (2, 1), ((2, 1), (1, 2))
    for done in range(1, 11):
        later: dict[tuple[int, ...], Fraction] = {}
        for state, chance in going.items():
            for kind, likely in outcomes(p, q):
                place = (*state[:kind], state[kind] + 1, *state[kind + 1 :])
                later[place] = later.get(place, Fraction(0)) + chance * likely
        ways: list[tuple[Fraction, Any, Any]] = [(Fraction(1), None, None)]
        if paid:
            ways = [(1 - AT_THE_END, prior, priors), (AT_THE_END, None, None)][: 1 + (done == 8)]
        going = {}
        for state, chance in later.items():
            false = False
            for part, one, two in ways:
                first, second = (error * part * w if paid else error for w in weights)
                hits = state[1] + state[2], state[4] + state[5]
                false |= by_ratio(*hits, error=first, prior=one) > truth[0]
                runs = sum(state[:3]), sum(state[3:])
                if all(runs):
                    counts = (state[2], runs[0], state[5], runs[1])
                    false |= by_intervals(*counts, error=second, priors=two) > truth[1]
                    least = by_delta(*counts, epsilon=loss, error=second, priors=two)
                    false |= least > rest
            if false:
                total += chance
            else:
                going[state] = chance
    return total


LAWS = [
    ((Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)),) * 2,
    (
        (Fraction(1, 8), Fraction(1, 8), Fraction(3, 4)),
        (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)),
    ),
]


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize(("p", "q"), LAWS)
def test_the_plan_is_wrong_as_seldom_as_it_says(p, q):
    """Summed over every sequence of runs, stopping wherever a statement is false."""
    error = Fraction(2, 3)
    assert wrong(p, q, error, paid=True) <= error


def test_the_whole_error_after_every_round_would_be_wrong_more_often():
    (p, q), error = LAWS[0], Fraction(2, 3)
    assert wrong(p, q, error, paid=False) > error
