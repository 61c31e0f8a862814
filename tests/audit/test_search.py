"""The search sees only outputs that are never counted, and repeats where the clock has no say."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from lastbit.audit.blackbox.events import ScoreEvent
from lastbit.audit.blackbox.features import Feature
from lastbit.audit.blackbox.sampled import Watch, best_pair, fitted
from lastbit.audit.blackbox.search import Box, Plan, Scout, foreseen, refined
from lastbit.audit.blackbox.tables import Finder, Table
from lastbit.audit.blackbox.team import Team
from lastbit.sampling.deterministic import Seeded


def plan(**changes) -> Plan:
    values = {
        "epsilon": None,
        "delta": Fraction(0),
        "error": Fraction(1, 10**6),
        "seconds": 1.0,
        "samples": 3000,
        "seed": 0,
    }
    return Plan(**{**values, **changes})


def coin(seed: int = 1):
    """True with probability value/10."""
    bits = Seeded(seed)
    return lambda value, size: bits.fill(size) < 25.6 * value


def silent(share: float, text: str) -> None:
    """Nobody listens."""


def test_the_pair_furthest_apart_is_found():
    pairs = [(5, 5), (5, 6), (2, 8), (4, 5), (5, 5), (6, 5)]
    assert best_pair(Team(coin(), pairs, plan(), 1), pairs, plan(), silent, Watch(plan())) == 2


def test_three_fifths_of_the_pairs_are_kept_and_looked_at_longer():
    pairs, looked = [(5, 5)] * 7 + [(2, 8)], []

    class Noting(Team):
        def ask(self, question, *facts):
            looked.append(facts[:2])
            return super().ask(question, *facts)

    asked = plan(samples=10**6)
    team = Noting(coin(), pairs, asked, 1)
    assert best_pair(team, pairs, asked, silent, Watch(asked)) == 7
    assert [place for place, _ in looked[:8]] == list(range(8))
    assert len(looked) == 8 + 5 + 3 + 2
    rungs = looked[8:13], looked[13:16], looked[16:]
    assert all(7 in {place for place, _ in rung} for rung in rungs)
    assert all(small < large for small, large in pairwise(rung[0][1] for rung in rungs))


def test_one_event_for_each_goal():
    for claim, count in ((None, 1), (Fraction(1, 10), 2)):
        asked = plan(epsilon=claim)
        events = fitted(Team(coin(), [(2, 8)], asked, 1), 0, asked)
        assert len(events) == count
        # tails, 8/10 against 2/10, or heads with the inputs exchanged: the same loss
        for event in events:
            assert 0.5 < event.promise < 1.5 or claim is not None


def test_nothing_is_fitted_to_outputs_all_alike():
    asked = plan()
    assert fitted(Team(lambda value, size: np.zeros(size), [(0, 1)], asked, 1), 0, asked) == []


def test_a_box_counts_and_asks_for_parts():
    asked: list[int] = []

    def draw(value, size):
        asked.append(size)
        return np.zeros((size, 64))

    box = Box(draw)
    box(0, 10)
    assert box.width == 64
    for count in box.chunks(40_000):
        assert box(0, count).shape == (count, 64)
    assert max(asked) * 64 <= 1 << 20  # wide outputs come in smaller parts
    assert sum(asked) == box.drawn == 40_010


def test_with_a_number_of_samples_the_clock_has_no_say():
    for asked, drawn in ((plan(seconds=1e-9), 40_000), (plan(seconds=1e-9, samples=None), 12)):
        scout = Scout(coin(), [(2, 8)], asked)
        scout.try_out()
        before = scout.box.drawn
        scout.tally(0, [], 20_000, 0.0)
        assert scout.box.drawn - before == drawn


def test_the_columns_are_fixed_after_the_first_looks():
    """Else the same output could be two different rows."""
    lengths = iter([*[3] * 8, 5, 1])
    box = Box(lambda value, size: np.ones((size, next(lengths))))
    box.try_out([0, 1], None)
    assert box.width == 3
    assert box(0, 2).shape == box(0, 2).shape == (2, 3)


def test_a_score_promises_what_it_is_worth():
    """Rare outputs are judged by the score, as far as common ones prove it right."""
    goals = [plan(guess=10**8, samples=None).objectives(caution)[0] for caution in (0.0, -2.0)]
    score = np.array([-0.1, 0.0, 0.3])
    shares = 1 / (1 + np.exp(-score))
    common = np.array([4e5, 8e5, 2e3])
    counts = [common * shares, common * (1 - shares)]
    right = foreseen([score, score], counts, goals, 1.0)
    assert 0.2 < right < 0.3
    assert foreseen([score, score], counts[::-1], goals, 1.0) <= 0  # the contrary is true
    assert foreseen([2 * score, 2 * score], counts, goals, 1.0) == pytest.approx(right, rel=0.1)
    noise = np.array([0.0, 0.1, -3.0])  # what few outputs say by chance
    assert foreseen([noise, noise], [common / 2, common / 2], goals, 1.0) <= 0
    assert foreseen([score, score[:0]], [counts[0], counts[1][:0]], goals, 1.0) == -math.inf


def test_an_event_that_takes_long_must_promise_more():
    """With a tenth of the runs it certifies less: the same score at two costs."""
    asked = plan(samples=None, guess=10**6, pace=1e-7)
    feature = Feature("the output", "entries", lambda r: r[:, 0])
    edges = np.array([0.5])
    table = Table(feature, edges, np.array([-1.0, 1.0]), np.zeros(2), True, Finder(edges))
    event = ScoreEvent((table,), 1.0, swapped=False, promise=0.0)
    pool = [(event, np.array([-1.0, 1.0]), 9e-7), (event, np.array([-1.0, 1.0]), 0.0)]
    counts = [np.array([[1e6, 6e5], [1e6, 4e5]])] * 2
    ranked = refined(pool, counts, 10**6, asked)[0]
    assert [i for i, found in ranked if found.threshold == 1.0] == [1, 0]
    assert asked.taking(9e-7).tests == pytest.approx(10**5, rel=1e-3)
