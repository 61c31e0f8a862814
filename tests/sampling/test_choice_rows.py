"""Draws in many rows at once: exact weights, frequencies, and the refinement path."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter
from lastbit.laws.discrete import ExpWeighted
from lastbit.sampling.deterministic import Seeded
from lastbit.sampling.rows import RowChoices, choice_exp_rows, row_choices
from tests.laws.frequency import assert_frequency, suspicious
from tests.laws.oracle import decimal, decimals, exp

RATES = st.sampled_from([Fraction(1, 7), Fraction(3), Fraction(1, 10**9), Fraction(10**30)])


@settings(max_examples=100)
@given(st.lists(st.integers(0, 2**61), min_size=1, max_size=6), RATES)
def test_weights_are_large_enough_and_acceptance_small_enough(
    distances: list[int], rate: Fraction
) -> None:
    """W_i >= c v_i, and the word that accepts at once is below c v_i/W_i: by Decimals."""
    made = row_choices(np.array([distances], np.int64), rate)
    least = min(distances)
    before = 0
    with decimals():
        for i, distance in enumerate(distances):
            weight = int(made.sums[0, i]) - before
            before = int(made.sums[0, i])
            far = rate * (distance - least)
            exact = exp(-far) * decimal(Fraction(made.scales[0])) if far < 10**5 else Decimal(0)
            assert weight >= exact
            assert weight <= exact + exact / 2**30 + 1
            accept = float(made.accept_low[0, i])
            assert accept <= 0 or Fraction(accept + 1) <= Fraction(exact) / weight * 2**53
        none = 1 - sum(exp(-rate * (d - least)) for d in distances) * decimal(
            Fraction(made.scales[0])
        ) / (1 << 61)
        assert 0 <= none < Decimal(2) ** -43  # of a row that is drawn again
    assert before <= 1 << 61


def test_the_law_of_many_rows() -> None:
    rows, rate = 40_000, Fraction(1, 3)
    pattern = [[5, 9, 5, 12], [0, 0, 1, 50]]
    made = row_choices(np.array(pattern * (rows // 2), np.int64), rate)
    drawn = made.draw(Seeded(5), rows)
    for k, distances in enumerate(pattern):
        law = ExpWeighted([-rate * d for d in distances])
        for i in range(4):
            hits = int((drawn[k::2] == i).sum())
            chance = float(law.probability(i).ends[0])
            assert_frequency(hits, trials=rows // 2, probability=chance)
        wrong = float(ExpWeighted([-rate * d * 2 for d in distances]).probability(0).ends[0])
        hits = int((drawn[k::2] == 0).sum())
        assert suspicious(hits, trials=rows // 2, probability=wrong, false_alarm=2.0**-40)


def test_what_balls_decide_has_the_same_law() -> None:
    """With nothing accepted at once every draw goes through the refinement."""
    rows, rate = 3000, Fraction(1, 2)
    made = row_choices(np.array([[0, 1, 4]] * rows, np.int64), rate)
    slow = RowChoices(made.sums, np.full_like(made.accept_low, -1.0), made.distances, rate,
                      made.scales)  # fmt: skip
    drawn = slow.draw(Seeded(6), rows)
    law = ExpWeighted([Fraction(0), -rate, -4 * rate])
    for i in range(3):
        chance = float(law.probability(i).ends[0])
        assert_frequency(int((drawn == i).sum()), trials=rows, probability=chance)


def test_a_majorant_that_is_too_large_is_corrected() -> None:
    """Weights three times too large for one candidate: rejection brings the law back."""
    rows, rate = 3000, Fraction(1)
    made = row_choices(np.array([[0, 1]] * rows, np.int64), rate)
    weights = np.diff(made.sums, axis=1, prepend=0) // 4 * np.array([1, 3])
    off = RowChoices(np.cumsum(weights, axis=1), np.full((rows, 3), -1.0), made.distances, rate,
                     made.scales / 4 - 2)  # fmt: skip
    drawn = off.draw(Seeded(7), rows)
    chance = float(ExpWeighted([Fraction(0), -rate]).probability(1).ends[0])
    assert_frequency(int((drawn == 1).sum()), trials=rows, probability=chance)


def test_many_draws_of_a_single_row() -> None:
    made = row_choices(np.array([[0, 1, 4]], np.int64), Fraction(1, 2))
    drawn = made.draw(Seeded(8), 30_000)
    law = ExpWeighted([Fraction(0), Fraction(-1, 2), Fraction(-2)])
    for i in range(3):
        chance = float(law.probability(i).ends[0])
        assert_frequency(int((drawn == i).sum()), trials=30_000, probability=chance)


def test_weights_of_many_candidates_do_not_outgrow_their_room() -> None:
    rng = np.random.default_rng(2)
    for distances in (np.zeros(1 << 20), np.arange(1 << 20), rng.integers(0, 40, 1 << 20)):
        made = row_choices(distances.astype(np.int64)[None, :], Fraction(1, 3))
        assert (1 << 61) - (1 << 23) < int(made.sums[0, -1]) <= 1 << 61


def test_a_target_beyond_all_weights_is_drawn_again() -> None:
    made = row_choices(np.array([[0, 3], [3, 0]], np.int64), Fraction(1))

    class Ones(Seeded):
        first = True

        def fill(self, count: int) -> NDArray[np.uint8]:
            first, self.first = self.first, False
            return np.full(count, 255, np.uint8) if first else super().fill(count)

    assert set(made.draw(Ones(1), 2).tolist()) <= {0, 1}


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (5, 1), (20_000, 2)])
def test_shapes(shape: tuple[int, int]) -> None:
    drawn = choice_exp_rows(np.zeros(shape, np.int64), rate=Fraction(1))
    assert drawn.shape == shape[:1] and (drawn < shape[1]).all()


def test_far_candidates_are_not_drawn() -> None:
    far = np.array([[0, 2**61, 2**61], [2**61, 2**61, 0]])
    assert choice_exp_rows(far, rate=Fraction(1, 2**20)).tolist() == [0, 2]


def test_a_rate_beyond_all_floats_is_exact() -> None:
    """Ties are still drawn alike, and everything else never."""
    drawn = choice_exp_rows(np.array([[1, 0, 0]] * 2000), rate=Fraction(1 << 2000))
    assert set(drawn.tolist()) == {1, 2}


@pytest.mark.parametrize(
    "distances",
    [
        np.array([[-1, 0]]),
        np.array([[0, 1 << 62]]),
        np.zeros((2, 0), np.int64),
        np.array([[0.5, 1.0]]),
        np.array([[0, 1 << 70]], np.object_),
    ],
)
def test_other_distances_are_refused(distances: NDArray[Any]) -> None:
    with pytest.raises(InvalidParameter, match="distances are none, over 2"):
        choice_exp_rows(distances, rate=Fraction(1))


@pytest.mark.parametrize("rate", [0.5, Fraction(0), Fraction(-1)])
def test_other_rates_are_refused(rate: Any) -> None:
    with pytest.raises(InvalidParameter, match="rate is"):
        choice_exp_rows(np.zeros((1, 2), np.int64), rate=rate)
