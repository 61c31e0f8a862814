"""The search sees only outputs that are never counted, and repeats where the clock has no say."""

from fractions import Fraction

import numpy as np

from lastbit.audit.blackbox.sampled import Watch, best_pair, fitted
from lastbit.audit.blackbox.search import Box, Plan, Scout
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


def test_half_of_the_pairs_is_kept_and_looked_at_twice_as_long():
    pairs, looked = [(5, 5)] * 7 + [(2, 8)], []

    class Noting(Team):
        def ask(self, question, *facts):
            looked.append(facts[:2])
            return super().ask(question, *facts)

    team = Noting(coin(), pairs, plan(samples=10**6), 1)
    assert best_pair(team, pairs, plan(), silent, Watch(plan())) == 7
    assert [place for place, _ in looked[:8]] == list(range(8))
    assert len(looked) == 8 + 4 + 2
    assert all(7 in {place for place, _ in part} for part in (looked[8:12], looked[12:]))


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
