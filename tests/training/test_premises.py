"""What fails in loops, or is done wrong: nothing counts twice, and no raw gradient steps."""

from fractions import Fraction
from functools import lru_cache

import pytest

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.training import WholeClip, training_plan
from tests.training.torch_here import torch

from lastbit.training.tensors import (  # isort: skip
    add_clipped,
    exact,
    optimizer,
    per_example_gradients,
)


@lru_cache
def plan(multiplier=1):
    return training_plan(examples=8, batch=4, steps=6, noise_multiplier=multiplier, delta="1e-5")


def rows(seed=0):
    torch.manual_seed(seed)
    return torch.randn(8, 3)


def square(model, x):
    return (model(x) ** 2).sum()


def wrapped(model=None, **more):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1) if model is None else model
    inner = torch.optim.SGD(model.parameters(), lr=1)
    clip = WholeClip(norm=1, bound=1000)
    return exact(inner, plan(), clip=clip, model=model, loss=square, **more)


def added(private):
    return torch.cat([total.flatten() for total in private._totals])


def test_a_pass_that_fails_midway_counts_nothing(monkeypatch):
    """Failed before: handed over again, as one does when memory was short, the first rows counted
    twice."""
    private = wrapped(microbatch=4)
    private.backward(rows())
    once = added(private).clone()
    private.zero_grad()
    whole, calls = per_example_gradients, []

    def short(*batch):
        calls.append(batch)
        if len(calls) == 2:
            raise MemoryError
        return whole(*batch)

    monkeypatch.setattr(optimizer, "per_example_gradients", short)
    with pytest.raises(MemoryError):
        private.backward(rows())
    assert not added(private).any()
    private.backward(rows())
    assert torch.equal(added(private), once)


def test_a_parameter_that_comes_later_is_refused():
    """Failed before: its raw gradient went into the optimizer's step."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
    model[0].requires_grad_(False)
    private = exact(torch.optim.SGD(model.parameters(), lr=1), plan(), norm=1)
    model[0].requires_grad_(True)
    square(model, rows()).backward()
    before = model[0].weight.detach().clone()
    with pytest.raises(InvalidParameter, match="other parameters than when it was wrapped"):
        private.step()
    assert torch.equal(before, model[0].weight)

    inner = torch.optim.SGD(model[1].parameters(), lr=1)
    private = exact(inner, plan(), norm=1)
    inner.add_param_group({"params": list(model[0].parameters())})
    with pytest.raises(InvalidParameter, match="wrap it again"):
        private.step()
    assert private.run.steps_taken == 0


def test_a_raw_gradient_of_a_frozen_parameter_is_not_used():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
    square(model, rows()).backward()
    model[0].requires_grad_(False)
    private = exact(torch.optim.SGD(model.parameters(), lr=1), plan(), norm=1)
    before = model[0].weight.detach().clone()
    private.step()
    assert torch.equal(before, model[0].weight)


def test_a_part_that_fails_does_not_shift_what_is_said_of_others():
    """Failed before: a later batch was taken for a part, and added to the one after it."""
    private = wrapped()
    private.backward(rows())
    private.signal_skip_step(True)
    next(iter(private.model.parameters())).grad_sample = "x"
    with pytest.raises(InvalidParameter):
        private.step()
    assert not added(private).any()
    private.signal_skip_step(False)
    private.backward(rows())
    private.step()
    assert private.run.steps_taken == 1
    assert not added(private).any()


def test_a_loop_that_was_left_is_forgotten_by_clear():
    """Failed before: parts of a batch stayed for the next one, also after `clear`."""
    private = wrapped()
    private.signal_skip_step(True)
    private.signal_skip_step(True)  # of a part that a worker had fetched
    private.backward(rows())
    private.step()
    private.clear()
    assert not added(private).any()
    private.backward(rows())
    private.step()
    assert private.run.steps_taken == 1
    private.backward(rows())
    private.zero_grad()
    assert not added(private).any()


# ---------------------------------------------------------------- units


class Remembering(torch.nn.Module):  # type: ignore[misc]  # Any, where torch is not here
    """What it has seen changes what it gives."""

    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(3, 1)
        self.register_buffer("seen", torch.zeros(3))
        self.register_buffer("last", torch.zeros(3))

    def forward(self, x):
        self.seen += x.detach().sum(dim=0)
        self.last = x.detach().mean(dim=0)
        return self.line(x + self.seen)


def test_no_unit_sees_what_another_left_in_a_buffer():
    """Failed before: buffers carried rows from unit to unit, and into the model that is kept."""
    model = Remembering()
    private, units = wrapped(model), torch.arange(8)
    private.backward(rows(), units=units)
    together = added(private).clone()
    assert not model.seen.any()
    assert not model.last.any()
    private.zero_grad()
    for i in range(8):
        private.backward(rows()[i : i + 1], units=units[i : i + 1])
    assert torch.equal(added(private), together)


def test_a_unit_has_the_dropout_it_would_have_without_another():
    """Failed before: with a seed that is known, one unit moved the masks of all after it."""
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 16), torch.nn.Dropout(0.5), torch.nn.Linear(16, 1)
    )
    private, units = wrapped(model), torch.tensor([0, 1, 1, 2, 3, 4, 5, 6])

    def total(kept):
        torch.manual_seed(1)
        private.zero_grad()
        private.backward(10 * rows()[kept], units=units[kept])
        return added(private), torch.rand(())

    one, after = total(units >= 0)
    for left_out in range(7):
        other, then = total(units != left_out)
        assert ((one - other) ** 2).sum() <= 1000**2
        assert after == then


def test_batch_normalisation_is_found_when_training_begins():
    """Failed before: a model that was wrapped while it evaluated was not looked at again."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3)).eval()
    private = wrapped(model)
    private.backward(rows())
    model.train()
    for more in ({}, {"units": torch.arange(8) // 2}):
        with pytest.raises(InvalidParameter, match="batch normalisation"):
            private.backward(rows(), **more)
    assert not model[1].running_mean.any()


# ---------------------------------------------------------------- what is passed


@pytest.mark.parametrize(
    ("batch", "units", "words"),
    [
        ((), None, "batch"),
        ((torch.tensor(1.0),), None, "batch"),
        (([[1.0, 2.0, 3.0]],), None, "batch"),
        ((torch.ones(8, 3), torch.ones(5)), None, "batch"),
        ((torch.ones(8, 3),), torch.arange(5), "units"),
        ((torch.ones(8, 3),), torch.arange(9), "units"),
        ((torch.ones(8, 3),), list(range(8)), "units"),
        ((torch.ones(8, 3),), torch.full((8,), torch.nan), "units"),
        ((torch.ones(8, 3),), torch.zeros(8, 2), "units"),
    ],
)
def test_what_is_no_batch_is_refused_in_words(batch, units, words):
    with pytest.raises(LastbitError, match=words):
        wrapped().backward(*batch, units=units)


def test_what_cannot_be_wrapped_is_refused_before_a_step():
    """Failed before: in the words of Python, or after a step had been taken from the run."""
    model = torch.nn.Linear(3, 1)
    inner = torch.optim.SGD(model.parameters(), lr=1)
    for wrong, more in (
        (None, {}),
        (model, {}),
        (inner, {"model": "m"}),
        (inner, {"model": model, "loss": "l"}),
        (torch.optim.SGD(torch.nn.Linear(1, 1).requires_grad_(False).parameters()), {}),
        (torch.optim.SGD([torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))]), {}),
    ):
        with pytest.raises(LastbitError):
            exact(wrong, plan(), norm=1, **more)
    loud = plan(1000)
    object.__setattr__(loud, "noise_multiplier", Fraction(1 << 30))
    with pytest.raises(InvalidParameter, match="deviation"):
        exact(inner, loud, norm=1)


@pytest.mark.parametrize(
    ("gradient", "total"),
    [
        (torch.tensor(1.0), torch.zeros((), dtype=torch.int64)),
        (torch.ones(2, 3), torch.zeros(3)),
        (torch.ones(2, 3), torch.zeros(3, dtype=torch.int32)),
        (torch.ones(2, 3), torch.zeros(4, dtype=torch.int64)),
        (torch.ones(2, 3).to_sparse(), torch.zeros(3, dtype=torch.int64)),
        (torch.ones(2, 3, dtype=torch.complex64), torch.zeros(3, dtype=torch.int64)),
    ],
)
def test_what_is_no_gradient_or_no_total_is_refused(gradient, total):
    """Failed before: sums of floats and of int32, which overflows, were taken for totals."""
    with pytest.raises(LastbitError, match=r"gradients|totals"):
        add_clipped([gradient], [total], WholeClip(norm=1))
