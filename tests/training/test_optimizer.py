"""`exact` around optimizers of torch and of Opacus: what their steps are made of."""

from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from lastbit.errors import BudgetExceeded, InvalidParameter
from lastbit.training import WholeClip, start_run, training_plan
from tests.training.torch_here import torch

from lastbit.training.tensors import ExactOptimizer, exact, loader  # isort: skip

QUIET = Fraction(1, 10**9)  # a multiplier whose noise is rounded away: sums can be seen


def network(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3))


def entropy(model, x, y):
    return torch.nn.functional.cross_entropy(model(x), y)


def data(count=20, seed=1):
    torch.manual_seed(seed)
    return torch.randn(count, 5), torch.randint(3, (count,))


@lru_cache
def plan(steps=3, examples=20, multiplier=1, **more):
    return training_plan(
        examples=examples, batch=10, steps=steps, noise_multiplier=multiplier, delta="1e-5", **more
    )


def quiet(model, monkeypatch, **more):
    from lastbit.training.plan import TrainingPlan

    monkeypatch.setattr(TrainingPlan, "deviation", lambda self, clip: QUIET)
    return exact(
        torch.optim.SGD(model.parameters(), lr=1), plan(), model=model, loss=entropy, **more
    )


def clipped_mean(model, x, y, norm, expected=10):
    """What a step is without noise and whole numbers."""
    total = [torch.zeros_like(part) for part in model.parameters()]
    for i in range(len(x)):
        grads = torch.autograd.grad(entropy(model, x[i : i + 1], y[i : i + 1]), model.parameters())
        length = torch.sqrt(sum((g**2).sum() for g in grads))
        for mean, own in zip(total, grads, strict=True):
            mean.add_(own * min(1, norm / length))
    return [t / expected for t in total]


def moved(before, model):
    return [b - p.detach() for b, p in zip(before, model.parameters(), strict=True)]


def copies(model):
    return [part.detach().clone() for part in model.parameters()]


@pytest.mark.parametrize("microbatch", [1, 3, 64])
def test_a_step_is_the_clipped_mean_of_the_expected_batch(microbatch, monkeypatch):
    model, (x, y) = network(), data()
    private = quiet(model, monkeypatch, norm=0.5, microbatch=microbatch)
    before, expected = copies(model), clipped_mean(model, x, y, 0.5)
    private.backward(x, y)
    private.step()
    for a, b in zip(moved(before, model), expected, strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def test_passes_accumulate_until_the_step_and_not_beyond_it(monkeypatch):
    model, (x, y) = network(), data()
    private = quiet(model, monkeypatch, norm=0.5)
    private.backward(x[:7], y[:7])
    private.backward(x[7:], y[7:])
    whole = [total.clone() for total in private._totals]
    private.clear()
    private.backward(x, y)
    assert all((a - b).abs().max() <= 20 for a, b in zip(whole, private._totals, strict=True))
    private.step()
    assert not any(total.any() for total in private._totals)


def test_examples_of_a_unit_are_clipped_together(monkeypatch):
    model, (x, y) = network(), data(4)
    private = quiet(model, monkeypatch, norm=0.01)
    private.backward(x, y, units=torch.tensor([5, 2, 5, 5]))
    flat = torch.cat([total.flatten() for total in private._totals]).tolist()
    together = sum(k**2 for k in flat)
    assert together <= (2 * private.clip.bound) ** 2
    private.clear()
    for rows in ([1], [0, 2, 3]):
        private.backward(x[rows], y[rows], units=torch.zeros(len(rows), dtype=torch.int64))
        flat_of_one = torch.cat([total.flatten() for total in private._totals]).tolist()
    assert flat_of_one == flat
    private.clear()
    private.backward(x[[0, 2, 3]], y[[0, 2, 3]], units=torch.zeros(3, dtype=torch.int64))
    alone = sum(k**2 for t in private._totals for k in t.flatten().tolist())
    assert 0.99 < alone / private.clip.bound**2 <= 1


def test_an_empty_batch_is_noise_alone_and_a_step():
    model = network()
    private = exact(torch.optim.SGD(model.parameters(), lr=1), plan(steps=2), norm=1)
    before = copies(model)
    private.step()
    flat = torch.cat([part.flatten() for part in moved(before, model)])
    # the deviation is norm/batch = 0.1; of 66 draws: false below 1e-12
    assert 0.02 < flat.std() < 0.3
    private.step()
    with pytest.raises(BudgetExceeded, match="has taken the 2 steps"):
        private.step()


def test_noise_is_drawn_once_a_step_for_every_coordinate_and_anew(monkeypatch):
    model, drawn = network(), []
    from lastbit.training.tensors import optimizer
    from lastbit.training.tensors.noise import whole_noise as real

    def counted(size, deviation, device):
        drawn.append(real(size, deviation, device))
        assert deviation == 2**24
        return drawn[-1]

    monkeypatch.setattr(optimizer, "whole_noise", counted)
    x, y = data()
    private = exact(
        torch.optim.SGD(model.parameters(), lr=1),
        plan(),
        norm=1,
        model=model,
        loss=entropy,
        microbatch=2,
    )
    for _ in range(2):
        private.backward(x, y)
        private.step()
    assert [len(noise) for noise in drawn] == [66, 66]
    assert not (drawn[0] == drawn[1]).all()


def test_schedulers_checkpoints_and_groups_are_those_of_the_optimizer():
    model = network()
    inner = torch.optim.AdamW(model.parameters(), lr=0.5)
    private = exact(inner, plan(), norm=1)
    schedule = torch.optim.lr_scheduler.StepLR(private.original_optimizer, 1, gamma=0.1)
    private.zero_grad()
    private.step()
    schedule.step()
    assert private.param_groups[0]["lr"] == pytest.approx(0.05)
    state = private.state_dict()
    private.load_state_dict(state)
    assert private.state is inner.state
    assert "noise" not in str(state)


def test_a_loop_with_a_loader_takes_all_steps_and_then_stops():
    x, y = data(20)
    model, paid = network(), plan(steps=5)
    run = start_run(paid)
    private = exact(
        torch.optim.SGD(model.parameters(), lr=0.1), run, norm=1, model=model, loss=entropy
    )
    for inputs, targets in loader(torch.utils.data.TensorDataset(x, y), paid):
        private.backward(inputs, targets)
        private.step()
    assert (run.steps_taken, run.steps_left) == (5, 0)


def test_frozen_parameters_are_left_alone_and_others_are_refused():
    model = network()
    model[0].weight.requires_grad_(False)
    trained = [part for part in model.parameters() if part.requires_grad]
    private = exact(torch.optim.SGD(trained, lr=1), plan(), norm=1, model=model, loss=entropy)
    before = copies(model)
    private.backward(*data())
    private.step()
    assert [bool(part.any()) for part in moved(before, model)] == [False, True, True, True]
    with pytest.raises(InvalidParameter, match="other parameters"):
        exact(torch.optim.SGD(trained[:1], lr=1), plan(), norm=1, model=model, loss=entropy)


def test_what_mixes_examples_is_refused():
    model = torch.nn.Sequential(torch.nn.Linear(5, 3), torch.nn.BatchNorm1d(3))
    with pytest.raises(InvalidParameter, match="batch normalisation"):
        exact(torch.optim.SGD(model.parameters()), plan(), norm=1, model=model, loss=entropy)


def test_a_clip_is_needed_once():
    model = network()
    inner = torch.optim.SGD(model.parameters())
    with pytest.raises(InvalidParameter, match="norm or clip"):
        exact(inner, plan())
    with pytest.raises(InvalidParameter, match="norm or clip"):
        exact(inner, plan(), norm=1, clip=WholeClip(norm=1))
    assert isinstance(exact(inner, plan(), clip=WholeClip(norm=2)), ExactOptimizer)
    with pytest.raises(InvalidParameter, match="model and loss are needed"):
        exact(inner, plan(), norm=1).backward(*data())


def test_an_average_over_views_of_an_example_is_clipped_as_one(monkeypatch):
    """Augmentation multiplicity: the loss of an example is the mean over its views."""
    model, (x, y) = network(), data(6)

    def over_views(call, views, target):
        count = views.shape[1]
        return entropy(call, views[0], target.expand(count))

    from lastbit.training.plan import TrainingPlan

    monkeypatch.setattr(TrainingPlan, "deviation", lambda self, clip: QUIET)
    private = exact(
        torch.optim.SGD(model.parameters()), plan(), norm=0.01, model=model, loss=over_views
    )
    views = torch.stack([x, x + 0.1, x - 0.1], dim=1)
    private.backward(views, y)
    total = np.array([k for t in private._totals for k in t.flatten().tolist()], dtype=object)
    assert (total**2).sum() <= (6 * private.clip.bound) ** 2


# ---------------------------------------------------------------- Opacus


@pytest.fixture
def opacus():
    return pytest.importorskip("opacus", reason="Opacus is not here: make training-tests")


@pytest.mark.filterwarnings("ignore")
def test_around_opacus_the_step_is_ours(opacus, monkeypatch):
    from lastbit.training.plan import TrainingPlan

    monkeypatch.setattr(TrainingPlan, "deviation", lambda self, clip: QUIET)
    model, (x, y) = network(), data()
    expected = clipped_mean(model, x, y, 0.5)
    sampled = opacus.GradSampleModule(model)
    theirs = opacus.optimizers.DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=1),
        noise_multiplier=1.0,
        max_grad_norm=0.5,
        expected_batch_size=10,
    )
    private = exact(theirs, plan())
    assert private.clip.norm == Fraction(1, 2)
    before = copies(model)
    entropy(sampled, x, y).backward()
    private.step()
    private.zero_grad()
    for a, b in zip(moved(before, model), expected, strict=True):
        assert torch.allclose(a, b, atol=1e-5)


@pytest.mark.filterwarnings("ignore")
def test_opacus_memory_manager_splits_batches_of_one_step(opacus):
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    x, y = data(20)
    model, paid = network(), plan(steps=4)
    sampled = opacus.GradSampleModule(model)
    run = start_run(paid)
    private = exact(torch.optim.SGD(model.parameters(), lr=0.1), run, norm=1)
    batches = loader(torch.utils.data.TensorDataset(x, y), paid)
    passes = 0
    with BatchMemoryManager(
        data_loader=batches, max_physical_batch_size=3, optimizer=private
    ) as small:
        for inputs, targets in small:
            passes += 1
            if len(inputs):
                entropy(sampled, inputs, targets).backward()
            private.step()
            private.zero_grad()
    assert run.steps_taken == 4 < passes


@pytest.mark.filterwarnings("ignore")
def test_gradients_of_opacus_count_once(opacus):
    model, (x, y) = network(), data()
    sampled = opacus.GradSampleModule(model)
    private = exact(torch.optim.SGD(model.parameters(), lr=1), plan(), norm=1)
    entropy(sampled, x, y).backward()
    private.accumulate()
    once = [total.clone() for total in private._totals]
    private.accumulate()
    assert all((a == b).all() for a, b in zip(once, private._totals, strict=True))


def test_a_grad_sample_of_another_kind_is_refused():
    model = network()
    private = exact(torch.optim.SGD(model.parameters(), lr=1), plan(), norm=1)
    next(iter(model.parameters())).grad_sample = "x"
    with pytest.raises(InvalidParameter, match="grad_sample"):
        private.step()
