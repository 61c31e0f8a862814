"""Tables of ratios: steps where there are steps, little where there is only noise."""

import numpy as np

from lastbit.audit.blackbox.events import ScoreEvent
from lastbit.audit.blackbox.features import Feature, rows
from lastbit.audit.blackbox.tables import table_of
from lastbit.audit.result import Condition

SIZE = 1 << 16


def uniforms(offset: float) -> np.ndarray:
    return np.modf(offset + np.arange(SIZE) * np.sqrt(2.0))[0]


def entry(*, ordered: bool = True) -> Feature:
    return Feature("the output", "entries", lambda r: r[:, 0], ordered)


def test_a_step_is_seen_as_one_step():
    """Twice as likely above one half: two levels, not two hundred."""
    one, two = uniforms(0.1), uniforms(0.7)
    one = np.where((one < 0.5) & (np.arange(SIZE) % 2 == 0), one + 0.5, one)
    table = table_of(entry(), rows(one, SIZE), rows(two, SIZE))
    assert table is not None
    levels = np.unique(table.steps)
    assert 2 <= len(levels) <= 4
    assert abs(levels[0] - np.log(0.5)) < 0.1
    assert abs(levels[-1] - np.log(1.5)) < 0.1
    assert len(np.unique(table.ratios)) > 3 * len(levels)


def test_noise_is_drawn_towards_nothing():
    bits = np.random.default_rng(1)  # only to make a table
    one, two = (bits.integers(0, 2000, SIZE).astype(float) for _ in range(2))
    table = table_of(entry(ordered=False), rows(one, SIZE), rows(two, SIZE))
    assert table is not None
    assert np.abs(table.steps).max() < 0.1 < np.abs(table.ratios).max()


def test_constants_have_no_table():
    assert table_of(entry(), rows(np.ones(9), 9), rows(np.ones(9), 9)) is None


def test_ranges_in_words():
    one = rows(np.repeat([1.0, 2.0, 3.0], 30), 90)
    table = table_of(entry(), one, one)
    assert table is not None

    def told(*chosen):
        condition = Condition(feature=entry(), ranges=table.ranges(np.array(chosen)))
        return condition.sentence.removeprefix(f"{entry().name} is ")

    assert told(True, True, True, True) == "anything"
    assert told(True, True, False, False) == "below 2"
    assert told(False, True, False, True) == "1 or 3"
    assert told(False, True, True, False) == "in [1, 3)"


def test_a_threshold_is_told():
    one, two = rows(uniforms(0.1) < 0.6, SIZE), rows(uniforms(0.7) < 0.3, SIZE)
    table = table_of(entry(), one, two)
    assert table is not None
    event = ScoreEvent((table,), float(table.ratios[-1]), False, 0.5)
    assert event.described().sentence == "the output is 1"
    assert event.merit < event.promise
