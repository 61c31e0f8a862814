"""Tensors are clipped as arrays are, and one example moves a sum by at most the bound."""

from typing import Any

import numpy as np
import pytest

from lastbit.errors import InvalidParameter, WrongType
from lastbit.training import WholeClip, clipped_sum, whole_gradients
from tests.training.hostile import gradients
from tests.training.test_clipping import BOUNDS, pairs
from tests.training.torch_here import torch

from lastbit.training.tensors import (  # isort: skip  # torch comes first, or the file is skipped
    add_clipped,
    check_isolated,
    per_example_gradients,
)

HALVES = (torch.float16, torch.bfloat16)


def parts_of(rows, rng):
    """The same numbers in a few tensors, as a model's parameters are."""
    cuts = np.sort(rng.integers(0, rows.shape[1] + 1, rng.integers(0, 3)))
    return [torch.from_numpy(np.ascontiguousarray(p)) for p in np.split(rows, cuts, axis=1)]


def summed(parts, clip):
    totals = [torch.zeros(part.shape[1:], dtype=torch.int64) for part in parts]
    add_clipped(parts, totals, clip)
    return torch.cat([total.reshape(-1) for total in totals]).numpy()


def moved(one, other) -> int:
    return sum((int(a) - int(b)) ** 2 for a, b in zip(one.tolist(), other.tolist(), strict=True))


def test_one_example_moves_the_sum_by_at_most_the_bound(extent):
    rng = np.random.default_rng(7)
    farthest = 0.0
    for clip, rows, less in pairs(8, extent.number(500, 40_000)):
        state = rng.bit_generator.state
        one = summed(parts_of(rows, rng), clip)
        rng.bit_generator.state = state
        distance = moved(one, summed(parts_of(less, rng), clip))
        assert distance <= clip.bound**2
        farthest = max(farthest, distance / clip.bound**2)
    assert farthest > 0.999


@pytest.mark.parametrize("kind", HALVES, ids=str)
def test_halves_move_the_sum_by_at_most_the_bound(kind, extent):
    rng = np.random.default_rng(9)
    for _ in range(extent.number(200, 10_000)):
        rows = torch.from_numpy(gradients(rng, examples=3, parameters=30, kind=np.float32)).to(kind)
        clip = WholeClip(norm=10.0 ** rng.integers(-6, 7), bound=BOUNDS[rng.integers(len(BOUNDS))])
        less = rows.clone()
        less[1] = 0
        assert moved(summed([rows], clip), summed([less], clip)) <= clip.bound**2


def test_a_gradient_of_a_million_parameters_in_several_tensors():
    rng = np.random.default_rng(10)
    clip = WholeClip(norm=1)
    rows = gradients(rng, examples=3, parameters=10**6, kind=np.float32)
    less = rows.copy()
    less[0] = 0
    one, other = (summed([torch.from_numpy(r)], clip).astype(object) for r in (rows, less))
    assert ((one - other) ** 2).sum() <= clip.bound**2


def test_tensors_and_arrays_agree_up_to_the_rounding_of_the_factor():
    rng = np.random.default_rng(11)
    for kind in (np.float32, np.float64):
        rows: Any = rng.standard_normal((40, 500)).astype(kind)
        clip = WholeClip(norm=3, bound=2**20)
        off = np.abs(summed([torch.from_numpy(rows)], clip) - clipped_sum(rows, clip))
        assert off.max() <= 40  # a unit an example, where a factor was rounded otherwise


def test_what_is_not_finite_is_nothing_and_what_overflows_is_cut():
    rows = torch.tensor([[float("nan"), 1], [float("inf"), 1], [1, -float("inf")], [3e38, 3e38]])
    clip = WholeClip(norm=1, bound=1000)
    for i, expected in enumerate([[0, 0], [0, 0], [0, 0], [707, 707]]):
        assert summed([rows[i : i + 1]], clip).tolist() == expected
    assert summed([rows[:, :1], rows[:, 1:]], clip).tolist() == [707, 707]


def test_an_example_that_floats_made_too_long_is_shortened(monkeypatch):
    """Failed without the check: a factor off by a half lets one example count for more."""
    from lastbit.training.tensors import clipping

    monkeypatch.setattr(clipping, "SHARE", 1.5)
    clip = WholeClip(norm=1, bound=1000)
    rows = torch.randn(20, 50)
    for i in range(20):
        assert moved(summed([rows[i : i + 1]], clip), np.zeros(50, int)) <= clip.bound**2


def test_sums_do_not_depend_on_order_or_pieces(monkeypatch):
    from lastbit.training.tensors import clipping

    rows = torch.randn(60, 400) * torch.logspace(-5, 5, 60)[:, None]
    clip = WholeClip(norm=1)
    whole = summed([rows], clip)
    assert (whole == summed([rows.flip(0)], clip)).all()
    monkeypatch.setattr(clipping, "_PIECE", 1)
    monkeypatch.setattr(clipping, "_COLUMNS", 7)
    assert (whole == summed([rows], clip)).all()


def test_what_does_not_fit_is_refused():
    clip, total = WholeClip(norm=1), torch.zeros(2, dtype=torch.int64)
    with pytest.raises(InvalidParameter, match="differ in their examples"):
        add_clipped([torch.zeros(3, 2), torch.zeros(4, 2)], [total, total], clip)
    with pytest.raises(InvalidParameter, match="too few or too many"):
        add_clipped([torch.zeros(3, 2)], [total, total], clip)
    with pytest.raises(WrongType, match="tensors of floats"):
        add_clipped([torch.zeros(3, 2, dtype=torch.int32)], [total], clip)
    add_clipped([torch.zeros(0, 2)], [total], clip)
    assert total.tolist() == [0, 0]


# ---------------------------------------------------------------- gradients of single examples


def squared(model, x, y):
    return ((model(x)[:, 0] - y) ** 2).sum()


def test_gradients_of_single_examples_are_those_of_autograd():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    model[0].bias.requires_grad_(False)
    x, y = torch.randn(5, 3), torch.randn(5)
    found = per_example_gradients(model, squared, x, y)
    trained = [part for part in model.parameters() if part.requires_grad]
    for i in range(5):
        model.zero_grad()
        squared(model, x[i : i + 1], y[i : i + 1]).backward()
        for part, rows in zip(trained, found, strict=True):
            assert torch.allclose(part.grad, rows[i], atol=1e-6)
    assert [part.shape for part in per_example_gradients(model, squared, x[:0], y[:0])] == [
        (0, *part.shape) for part in trained
    ]


def test_rows_of_a_network_are_isolated_and_those_of_batch_normalisation_are_not():
    torch.manual_seed(2)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 1))
    x, y = torch.randn(9, 3), torch.randn(9)
    check_isolated(lambda *b: per_example_gradients(model, squared, *b), x, y)

    def of_a_mixing_model(inputs, targets):
        centred = inputs - inputs.mean(dim=0)  # what batch normalisation does
        return per_example_gradients(model, squared, centred, targets)

    with pytest.raises(InvalidParameter, match="one example change the gradient of another"):
        check_isolated(of_a_mixing_model, x, y)
    check_isolated(of_a_mixing_model, x[:1], y[:1])  # of one, nothing can be said


@pytest.mark.parametrize("enemy", [3e38, 1e-45, float("inf"), float("nan")])
def test_no_example_decides_the_last_bits_of_another(enemy):
    """Products in binary64 for all, because of one tiny factor, moved others by a step."""
    rows = torch.from_numpy(np.random.default_rng(7).normal(size=(200, 40)).astype(np.float32))
    others, alone = rows.clone(), torch.zeros_like(rows)
    rows[0] = alone[0] = enemy
    others[0] = 0
    clip = WholeClip(norm=1)
    assert (summed([rows], clip) == summed([others], clip) + summed([alone], clip)).all()


def test_whole_gradients_of_a_network_are_within_the_bound():
    torch.manual_seed(3)
    model = torch.nn.Linear(3, 1)
    rows = per_example_gradients(model, squared, torch.randn(8, 3) * 1e15, torch.randn(8))
    flat = torch.cat([part.reshape(8, -1) for part in rows], dim=1).numpy()
    clip = WholeClip(norm=1)
    counts = whole_gradients(flat, clip)
    assert all(sum(int(k) ** 2 for k in row.tolist()) <= clip.bound**2 for row in counts)
