"""The auditor with canaries on torch: a linear model by `exact`, and by a clipped mean."""

import numpy as np
import pytest

from lastbit.audit import audit_training
from lastbit.training import start_run, training_plan
from tests.training.torch_here import torch

from lastbit.training.tensors import exact, loader  # isort: skip

COUNT = 512
FAR = 100.0


def squares(model, x, y):
    return ((model(x)[:, 0] - y) ** 2).sum() / 2


def canaries(included):
    """Who is left out leaves an empty place, whose gradient is 0."""
    inputs = torch.diag(torch.from_numpy(included.astype(np.float32)))
    return inputs, torch.full((COUNT,), FAR)


def started():
    model = torch.nn.Linear(COUNT, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    return model, torch.optim.SGD(model.parameters(), lr=1.0)


@pytest.mark.parametrize("batch", [COUNT, COUNT // 4])
def test_exact_steps_are_not_refuted(batch):
    plan = training_plan(examples=COUNT, batch=batch, steps=8, noise_multiplier=8, delta="1e-9")

    def loop(included):
        model, optimizer = started()
        private = exact(optimizer, start_run(plan), norm=1, model=model, loss=squares)
        data = torch.utils.data.TensorDataset(*canaries(included))
        for x, y in loader(data, plan):
            private.backward(x, y)
            private.step()
        return model.weight.detach()[0]

    found = audit_training(loop, canaries=COUNT, epsilon=plan.epsilon, delta="1e-9")
    assert not found.broken, found


def test_a_clipped_mean_is_convicted():
    """torch's own clipping is of the mean; the noise is that of one clipped example in a batch."""
    plan = training_plan(examples=COUNT, batch=COUNT, steps=8, noise_multiplier=12, delta="1e-9")

    def loop(included):
        model, optimizer = started()
        inputs, targets = canaries(included)
        for _ in range(plan.steps):
            optimizer.zero_grad()
            (squares(model, inputs, targets) / COUNT).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
            with torch.no_grad():
                model.weight.grad += torch.randn(COUNT) * 12 / COUNT
            optimizer.step()
        return model.weight.detach()[0]

    torch.manual_seed(0)
    found = audit_training(loop, canaries=COUNT, epsilon=plan.epsilon, delta="1e-9")
    assert found.broken, found
