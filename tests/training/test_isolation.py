"""Why absence is an empty place: what floats of one example owe to the others.

The theorem of `lastbit.training.clipping` lets floats depend on how many examples there are, and on
nothing that others hold. Both halves are seen here on the gradients of Opacus.
"""

import pytest

from lastbit.training import WholeClip
from tests.training.torch_here import torch

from lastbit.training.tensors import add_clipped, check_isolated  # isort: skip


@pytest.fixture
def gradients():
    """Rows that Opacus finds, by products of matrices over the whole batch."""
    opacus = pytest.importorskip("opacus", reason="Opacus is not here: make training-tests")
    torch.manual_seed(0)
    sampled = opacus.GradSampleModule(
        torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    )

    def found(x, y):
        sampled.zero_grad()
        torch.nn.functional.cross_entropy(sampled(x), y, reduction="sum").backward()
        return [part.grad_sample.clone() for part in sampled.parameters()]

    return found


def summed(rows, clip):
    totals = [torch.zeros(part.shape[1:], dtype=torch.int64) for part in rows]
    add_clipped(rows, totals, clip)
    return torch.cat([total.flatten() for total in totals]).tolist()


def emptied(rows, place):
    """The same rows with a place left empty."""
    kept = [part.clone() for part in rows]
    for part in kept:
        part[place] = 0
    return kept


@pytest.mark.filterwarnings("ignore")
def test_what_an_example_holds_changes_no_bit_of_others(gradients):
    x, y = torch.randn(256, 64), torch.randint(10, (256,))
    check_isolated(gradients, x, y)
    hostile = x.clone()
    hostile[5] = torch.tensor([1e30, float("inf"), float("nan"), 1e-40] * 16)
    clip = WholeClip(norm=1)
    one = summed(emptied(gradients(x, y), 5), clip)
    assert one == summed(emptied(gradients(hostile, y), 5), clip)


@pytest.mark.filterwarnings("ignore")
def test_with_an_empty_place_one_example_moves_the_sum_of_a_model_by_the_bound(gradients, extent):
    x, y = torch.randn(64, 64) * 3, torch.randint(10, (64,))
    clip = WholeClip(norm="1/100")  # all are cut, so the bound is nearly reached
    rows = gradients(x, y)
    whole = summed(rows, clip)
    for place in extent.cases(range(64), one_in=16):
        less = summed(emptied(rows, place), clip)
        moved = sum((a - b) ** 2 for a, b in zip(whole, less, strict=True))
        assert 0.99 < moved / clip.bound**2 <= 1
