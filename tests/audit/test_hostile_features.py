"""HOSTILE: outputs of mixed kinds. An output must be coded by itself, whatever came with it.

If the code of a row depends on the other rows of its batch, the counts are not binomial, and a
mechanism that ignores its input may be accused in one of twenty audits at a stated error of 1e-6.
"""

import random

import numpy as np
import pytest

from lastbit.audit.blackbox.distinguish import distinguish_by_sampling
from lastbit.audit.blackbox.features import rows
from lastbit.audit.blackbox.sampled import fitted
from lastbit.audit.blackbox.search import Plan
from lastbit.audit.blackbox.team import Team
from lastbit.audit.inputs import SeededRandom
from lastbit.errors import InvalidParameter

MIXED = (
    [1.5, 2.5, None],
    [1, 2, "suppressed"],
    ["a", "b", None],
    [1, 2, 2**70],
    [[1.0, 0.0], [0.0, 1.0], [1.0]],
)


@pytest.mark.parametrize("outputs", MIXED)
def test_a_row_is_the_same_in_every_batch(outputs):
    try:
        alone, together = rows(outputs[:2], 2, 2), rows(outputs, 3, 2)
    except InvalidParameter:
        return  # refused: nothing is counted
    assert np.array_equal(alone, together[:2])


def test_a_row_is_the_same_beside_a_complex_number():
    assert np.array_equal(rows([1.0, 2.0], 2, 2), rows([1.0, 2.0, 1j], 3, 2)[:2])


@pytest.mark.thinned(one_in=36)
@pytest.mark.parametrize("rare", [None, "suppressed", [1.0, 2.0], 2**70])
def test_a_mechanism_that_ignores_its_input_is_not_accused_for_a_rare_kind_of_output(rare):
    """About one batch in two of each input holds a rare output."""
    for seed in range(4):
        source = random.Random(seed)

        def noise(value, source=source):
            return rare if source.random() < 1 / 700 else float(source.randrange(10))

        result = distinguish_by_sampling(
            noise, (0, 1), epsilon=1, samples=512, seed=seed, processes=1
        )
        assert not result.broken


@pytest.mark.parametrize("width", [1, 3])
def test_an_event_decides_about_each_output_alone(width):
    source = np.random.default_rng(5)

    def noise(value, size):
        return value + source.laplace(0.0, 1.0, (size, width))

    plan = Plan(
        epsilon=None, delta=0, error=0.1, seconds=1.0, samples=2000, seed=0  # type: ignore[arg-type]
    )  # fmt: skip
    events = fitted(Team(noise, [(0.0, 1.0)], plan, 1), 0, plan)
    table = rows(noise(0.0, 500), 500)
    assert events
    for event in events:
        order = SeededRandom(1).order(range(500))
        alone = np.concatenate([event.holds(table[i : i + 1]) for i in range(500)])
        assert np.array_equal(event.holds(table), alone)
        assert np.array_equal(event.holds(table[order]), alone[order])
