"""Counts times exponentials: the weights, the acceptance, and the whole draw."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from lastbit.sampling.choice import Counted, counted
from lastbit.sampling.deterministic import Seeded
from tests.laws.frequency import assert_frequency
from tests.laws.oracle import decimal, decimals, exp


def table(counts: list[int], distances: list[int], rate: Fraction) -> Counted:
    return counted(np.array(counts, np.int64), np.array(distances, np.int64), rate)


def check(made: Counted) -> None:
    """Every weight is large enough, and what accepts at once accepts surely."""
    with decimals():
        for i, weight in enumerate(made.weights.tolist()):
            count, far = int(made.counts[i]), int(made.distances[i]) - made.least
            if count == 0:
                assert weight == 0
                continue
            true = count * exp(-made.rate * far) * 2**made.scale_bits
            assert decimal(weight) >= true
            if made.accept_low[i] > 0:  # the word and whatever follows it
                sure = (decimal(Fraction(float(made.accept_low[i]))) + 1) / 2**53
                assert sure <= true / weight


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2**41), st.integers(0, 2000)), min_size=1, max_size=20
    ).filter(lambda pairs: any(count for count, _ in pairs)),
    st.fractions("1/1000", 30, max_denominator=1000),
)
def test_weights_and_acceptance(pairs: list[tuple[int, int]], rate: Fraction) -> None:
    counts, distances = zip(*pairs, strict=True)
    check(table(list(counts), list(distances), rate))


def test_weights_that_are_too_small_are_seen() -> None:
    made = table([5, 7], [0, 3], Fraction(1, 3))
    made.weights[1] -= 1 << 20
    with pytest.raises(AssertionError):
        check(made)


def test_the_sums_are_those_of_the_weights() -> None:
    made = table([3, 0, 2**40], [0, 1, 9], Fraction(1, 2))
    assert made.wheel.total == sum(made.weights.tolist())


def test_frequencies() -> None:
    counts, distances, rate = [4, 1, 0, 9, 2], [2, 0, 0, 3, 700], Fraction(2, 3)
    drawn = table(counts, distances, rate).draw(Seeded(11), 200_000)
    with decimals():
        shares = [c * exp(-rate * r) for c, r in zip(counts, distances, strict=True)]
        total = sum(shares)
    for i, share in enumerate(shares):
        hits = int((drawn == i).sum())
        if share / total < 1e-9:
            assert hits == 0
        else:
            assert_frequency(
                hits,
                trials=200_000,
                probability=float(share / total),
                detects=Fraction(1, 20),
            )


def test_distances_are_counted_from_the_least_possible_one() -> None:
    drawn = table([1, 1], [10**9, 10**9 + 1], Fraction(1)).draw(Seeded(3), 50_000)
    assert_frequency(int(drawn.sum()), trials=50_000, probability=1 / (1 + np.e))
