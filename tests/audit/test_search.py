"""The search sees only outputs that are never counted, and repeats where the clock has no say."""

from fractions import Fraction

import numpy as np

from lastbit.audit.blackbox.search import Box, Plan, Watch, best_pair, fitted
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
    box, watch = Box(coin()), Watch(plan())
    assert best_pair(box, pairs, plan(), watch, silent) == 2


def test_one_event_for_each_goal():
    for claim, count in ((None, 1), (Fraction(1, 10), 2)):
        asked = plan(epsilon=claim)
        events = fitted(Box(coin()), (2, 8), asked, Watch(asked), 0)
        assert len(events) == count
        # tails, 8/10 against 2/10, or heads with the inputs exchanged: the same loss
        for event in events:
            assert 0.5 < event.promise < 1.5 or claim is not None


def test_nothing_is_fitted_to_outputs_all_alike():
    asked = plan()
    box = Box(lambda value, size: np.zeros(size))
    assert fitted(box, (0, 1), asked, Watch(asked), 0) == []


def test_a_box_counts_and_asks_for_parts():
    asked: list[int] = []

    def draw(value, size):
        asked.append(size)
        return np.zeros((size, 64))

    box = Box(draw)
    box(0, 10)
    assert box.width == 64
    assert box(0, 40_000).shape == (40_000, 64)
    assert max(asked) * 64 <= 1 << 20  # wide outputs come in smaller parts
    assert sum(asked) == box.drawn == 40_010


def test_with_a_number_of_samples_the_clock_has_no_say():
    watch = Watch(plan(seconds=1e-9))
    watch.timed(lambda: None, 1)
    assert watch.size(10**6, 0.0) == 9000
    hurried = Watch(plan(seconds=1e-9, samples=None))
    hurried.begin(1.0)
    hurried.timed(lambda: None, 1)
    assert hurried.size(10**6, -1.0) == hurried.least == 6


def test_the_columns_are_fixed_after_the_first_looks():
    """Else the same output could be two different rows."""
    lengths = iter([*[3] * 8, 5, 1])
    box = Box(lambda value, size: np.ones((size, next(lengths))))
    box.try_out([0, 1], None)
    assert box.width == 3
    assert box(0, 2).shape == box(0, 2).shape == (2, 3)
