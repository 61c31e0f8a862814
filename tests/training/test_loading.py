"""Loaders of batches by exact coins: which examples come, in which process, and in which shape."""

from collections import Counter, UserDict, namedtuple

import numpy as np
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


Pair = namedtuple("Pair", "text place")


class Texts(torch.utils.data.Dataset):  # type: ignore[misc]  # Any, where torch is not here
    def __len__(self):
        return 3

    def __getitem__(self, i):
        return {"text": f"secret {i}", "x": torch.tensor([float(i)])}


@pytest.mark.parametrize(
    "collate",
    [
        torch.utils.data.default_collate,
        lambda rows: UserDict(x=torch.stack([row["x"] for row in rows])),
        lambda rows: np.stack([row["x"].numpy() for row in rows]),
        lambda rows: [row["text"] for row in rows],
        lambda rows: Pair([row["text"] for row in rows], torch.stack([row["x"] for row in rows])),
    ],
)
def test_nothing_of_an_example_is_in_an_empty_batch(collate):
    """Failed before: only tensors were emptied, so that the first example was in empty batches."""

    def sizes(batch):
        if isinstance(batch, dict | UserDict):
            return [size for part in batch.values() for size in sizes(part)]
        return [len(part) for part in batch] if isinstance(batch, Pair) else [len(batch)]

    rare = plan(examples=3, batch="1/1000000", steps=1)
    (batch,) = loader(Texts(), rare, collate_fn=collate)
    assert not any(sizes(batch))
    usual = collate([Texts()[0]])
    assert type(batch) is type(usual)
    assert all(sizes(usual))


@pytest.mark.parametrize("made", ["text", 3, torch.tensor(1.0)])
def test_what_cannot_be_emptied_is_refused(made):
    rare = plan(examples=3, batch="1/1000000", steps=1)
    with pytest.raises(InvalidParameter, match="collate_fn"):
        list(loader(Texts(), rare, collate_fn=lambda rows: made))


def test_the_first_unit_may_have_no_examples():
    data = torch.utils.data.TensorDataset(torch.arange(4))
    rare = plan(examples=2, batch="1/1000000", steps=1)
    ((labels, rows),) = loader(data, rare, units=[[], [0, 1]])
    assert len(labels) == len(rows) == 0
    with pytest.raises(InvalidParameter, match="no examples"):
        loader(data, rare, units=[[], []])


def test_a_process_of_a_group_has_its_own_examples(monkeypatch):
    """Failed before: without rank= every process drew from all, and one could count in each."""
    batches = PoissonBatches(plan(batch=10, steps=1))
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 3)
    assert list(batches) == [[1, 4, 7]]
    assert list(PoissonBatches(plan(batch=10, steps=1), rank=0, processes=1)) == [list(range(10))]
