"""Loaders of batches by exact coins: which examples come, in which process, and in which shape."""

from collections import Counter

import pytest

from lastbit.errors import InvalidParameter
from lastbit.training import training_plan
from tests.laws.frequency import assert_frequency
from tests.training.torch_here import torch

from lastbit.training.tensors import PoissonBatches, loader  # isort: skip


def plan(examples=10, batch=2, steps=3_000):
    return training_plan(
        examples=examples, batch=batch, steps=steps, noise_multiplier=5, delta="1e-5"
    )


def test_each_example_comes_with_the_rate_in_whichever_process():
    """False alarm 2**-40 each."""
    paid = plan()
    seen: Counter[int] = Counter()
    for rank in range(3):
        own = PoissonBatches(paid, rank=rank, processes=3)
        for batch in own:
            assert all(number % 3 == rank for number in batch)
            seen.update(batch)
        assert len(own) == 3_000
    for example in range(10):
        assert_frequency(seen[example], trials=3_000, probability=0.2)


def test_units_come_with_all_their_examples():
    paid = plan(examples=3, batch=1, steps=200)
    units = [[4, 1], [0], [2, 3, 5]]
    for batch in PoissonBatches(paid, units=units):
        chosen = dict.fromkeys(unit for unit, _ in batch)
        assert batch == [(unit, example) for unit in chosen for example in units[unit]]
    with pytest.raises(InvalidParameter, match="units are more or fewer"):
        PoissonBatches(paid, units=units[:2])


def test_an_empty_batch_has_the_shape_of_others_and_no_rows():
    x, y = torch.randn(3, 4, 2), torch.arange(3)
    data = torch.utils.data.TensorDataset(x, y)
    empty = 0
    for inputs, targets in loader(data, plan(examples=3, batch="1/2", steps=60)):
        assert inputs.shape == (len(targets), 4, 2)
        assert (inputs == x[targets]).all()
        empty += not len(targets)
    assert empty
    units = [[0, 2], [1]]
    for labels, inputs, _ in loader(data, plan(examples=2, batch=1, steps=30), units=units):
        assert len(labels) == len(inputs)


def test_a_dataset_of_another_size_is_refused():
    data = torch.utils.data.TensorDataset(torch.zeros(4))
    with pytest.raises(InvalidParameter, match="dataset has more or fewer examples"):
        loader(data, plan(examples=3, batch=1, steps=5))
    with pytest.raises(InvalidParameter, match="rank"):
        PoissonBatches(plan(examples=3, batch=1, steps=5), rank=2, processes=2)


def test_a_process_without_examples_takes_part():
    assert list(PoissonBatches(plan(examples=1, batch=1, steps=2), rank=1, processes=2)) == [[], []]
