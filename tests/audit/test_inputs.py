"""SeededRandom repeat, and the pairs are neighbours."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.audit.inputs import MOST_PAIRS, SeededRandom, all_may_move, listed, one_may_move
from lastbit.errors import InvalidParameter, WrongType
from tests.laws.frequency import assert_frequency


@given(st.integers(0, 2**70), st.integers(1, 2**64))
def test_a_seed_decides(seed, n):
    one, two = SeededRandom(seed), SeededRandom(seed)
    assert [one.below(n) for _ in range(5)] == [two.below(n) for _ in range(5)]
    assert SeededRandom(seed).below(n) < n


def test_seeds_and_labels_make_a_difference():
    words = {SeededRandom(seed, label).word() for seed in range(50) for label in ("", "a", "0")}
    assert len(words) == 150


def test_choices_are_even():
    choices = SeededRandom(3)
    draws = [choices.below(6) for _ in range(12_000)]
    for face in range(6):
        assert_frequency(draws.count(face), trials=12_000, probability=1 / 6)


@given(st.lists(st.integers()))
def test_an_order_is_a_rearrangement(items):
    assert sorted(SeededRandom(1).order(items)) == sorted(items)


def test_signs_are_signs():
    assert set(SeededRandom(1).signs(64).tolist()) == {-1.0, 1.0}


@pytest.mark.parametrize("seed", [-1, 0.5, "1", True, None])
def test_seeds_without_meaning_are_refused(seed):
    with pytest.raises(InvalidParameter):
        SeededRandom(seed)


@pytest.mark.parametrize("n", [0, -1, 2**64 + 1])
def test_no_choice_among_none_or_too_many(n):
    with pytest.raises(InvalidParameter):
        SeededRandom(0).below(n)


@given(st.integers(1, 12))
def test_the_pairs_are_neighbours(length):
    for x, y in one_may_move(length):
        assert np.abs(x - y).sum() == 1
    for x, y in all_may_move(length):
        assert 0 < np.abs(x - y).max() <= 1


def test_the_patterns_differ():
    pairs = {(tuple(x), tuple(y)) for x, y in all_may_move(6)}
    assert len(pairs) == len(all_may_move(6))


def test_pairs_in_every_form():
    assert listed((0, 1)) == listed([(0, 1)]) == listed(iter([[0, 1]])) == [(0, 1)]
    assert len(listed(zip(itertools.count(), itertools.count(1), strict=False))) == MOST_PAIRS
    assert len(listed([(0, 1)] * 1000)) == 1000  # what was listed is looked at


def test_two_pairs_are_not_taken_for_one():
    """((0, 1), (5, 6)) as one pair would accuse (0, 1) against (5, 6): no neighbours."""
    with pytest.raises(InvalidParameter, match="one pair or two"):
        listed(((0, 1), (5, 6)))
    assert listed([(0, 1), (5, 6)]) == [(0, 1), (5, 6)]
    assert listed([((0, 1), (0, 2))]) == [((0, 1), (0, 2))]
    assert listed(([0, 1], [0, 2])) == [([0, 1], [0, 2])]


@pytest.mark.parametrize("pairs", [[], (), 5, None, [(1, 2, 3)], ["ab"], (1,)])
def test_what_is_no_pair_is_refused(pairs):
    with pytest.raises((InvalidParameter, WrongType)):
        listed(pairs)
