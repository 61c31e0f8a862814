"""Batches by exact coins: the coin's law is tested in tests/laws, here how it is used."""

from fractions import Fraction

import numpy as np
import pytest

from lastbit.errors import InvalidParameter
from lastbit.training import PoissonSample
from tests.laws.frequency import assert_frequency


def test_each_example_is_in_a_batch_with_the_rate():
    """False alarm 2**-40 each; a rate off by a third is seen."""
    sample = PoissonSample(examples=7, rate="1/50")
    batches = [batch.tolist() for batch in sample.batches(30_000)]
    for example in range(7):
        hits = sum(example in batch for batch in batches)
        assert_frequency(hits, trials=30_000, probability=0.02, detects=Fraction(1, 3))
    both = sum({2, 5} <= set(batch) for batch in batches)
    assert_frequency(both, trials=30_000, probability=0.0004)
    empty = sum(not batch for batch in batches)
    assert_frequency(empty, trials=30_000, probability=0.98**7, detects=Fraction(1, 20))


def test_batches_are_in_order_and_differ():
    sample = PoissonSample(examples=1_000, rate="1/2")
    one, other = sample.batches(2)
    assert (np.diff(one) > 0).all()
    assert one.tolist() != other.tolist()
    assert sample.expected == 500


@pytest.mark.parametrize(
    ("examples", "rate", "words"),
    [(0, "1/2", "examples"), (5, 0, "rate"), (5, "3/2", "rate"), (5, -1, "rate")],
)
def test_what_is_no_sample_is_refused(examples, rate, words):
    with pytest.raises(InvalidParameter, match=words):
        PoissonSample(examples=examples, rate=rate)
