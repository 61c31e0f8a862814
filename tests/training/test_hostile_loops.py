"""Loops, compilers and helpers of torch around an optimizer: none steps without noise or uncounted.

Each of these passed, or printed a draw of the noise, before it was mended.
"""

import copy
import threading
from importlib import import_module

import pytest

from lastbit.errors import InvalidParameter
from lastbit.training import training_plan
from tests.training.torch_here import torch

from lastbit.training.tensors import PoissonBatches, exact  # isort: skip

distributed = torch.distributed
optimizers = "lastbit.training.tensors.optimizer"


def squares(model, x):
    return (model(x) ** 2).sum()


def wrapped(model, *, steps=8, noise_multiplier=2, optimizer=torch.optim.SGD, **more):
    plan = training_plan(
        examples=12, batch=12, steps=steps, noise_multiplier=noise_multiplier, delta="1e-5"
    )
    inner = optimizer(model.parameters(), lr=1.0)
    return exact(inner, plan, norm=1, model=model, loss=squares, **more)


def test_a_compiler_sees_nothing_of_a_step_or_of_coins():
    """Before: 58 graphs of the sampler, whose draws were guards that the log shows."""
    graphs = []

    def record(graph, inputs):
        graphs.append(graph.code)
        return graph.forward

    model = torch.nn.Linear(2, 1)
    private = wrapped(model)

    def step(x):
        private.backward(x)
        return private.step()

    torch.compile(step, backend=record)(torch.zeros(12, 2))
    coins = iter(PoissonBatches(private.run.plan))
    torch.compile(lambda: next(coins), backend=record)()
    assert graphs == []
    assert private.run.steps_taken == 1


def test_a_grad_scaler_cannot_leave_out_a_step():
    """Before: an infinity in a raw gradient, and no step was taken nor counted."""
    model = torch.nn.Linear(2, 1)
    private = wrapped(model)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(torch.ones(()))
    for part in model.parameters():
        part.grad = torch.full_like(part, torch.inf)
    with pytest.raises(InvalidParameter, match="leaves out steps"):
        scaler.step(private)
    switched_off = torch.amp.GradScaler("cpu", enabled=False)
    switched_off.step(private)
    assert private.run.steps_taken == 1


def test_an_optimizer_that_needs_a_closure_is_refused_before_a_step_is_lost():
    with pytest.raises(InvalidParameter, match="needs a closure"):
        wrapped(torch.nn.Linear(2, 1), optimizer=torch.optim.LBFGS)


def test_an_optimizer_is_not_copied_with_its_sums():
    private = wrapped(torch.nn.Linear(2, 1))
    private.backward(torch.ones(12, 2))
    for duplicate in (copy.copy, copy.deepcopy):
        with pytest.raises(InvalidParameter, match="cannot be copied"):
            duplicate(private)


def test_a_step_that_failed_leaves_no_raw_gradient_to_be_used(monkeypatch):
    model = torch.nn.Linear(2, 1)
    private = wrapped(model)

    def fails(*_):
        raise MemoryError

    private.backward(torch.ones(12, 2))
    squares(model, torch.ones(12, 2)).backward()
    monkeypatch.setattr(f"{optimizers}.whole_noise", fails)
    with pytest.raises(MemoryError):
        private.step()
    assert [part.grad for part in model.parameters()] == [None, None]
    assert not any(total.any() for total in private._totals)


def test_a_step_of_another_thread_waits_for_the_one_before(monkeypatch):
    """Before: both threads added their noise to one batch's sums, two releases of one sample."""
    model = torch.nn.Linear(2, 1, bias=False)
    private = wrapped(model, noise_multiplier="1/1000", steps=2)
    first, second = threading.Event(), threading.Event()
    made = []

    def slow(size, deviation, device):
        made.append(private._totals[0].clone())
        first.set()
        second.wait(0.2)
        return torch.zeros(size, dtype=torch.int64)

    monkeypatch.setattr(f"{optimizers}.whole_noise", slow)
    private.backward(torch.ones(12, 2))
    threads = [threading.Thread(target=private.step) for _ in range(2)]
    threads[0].start()
    first.wait()
    threads[1].start()
    for thread in threads:
        thread.join()
    assert made[0].any()
    assert not made[1].any()


def step_that_fails_first(rank, folder):
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2
    )
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 1, bias=False)
    private = wrapped(model, noise_multiplier=20)
    if not rank:
        module = import_module("lastbit.training.tensors.optimizer")

        def fails(*_):
            raise MemoryError

        vars(module)["whole_noise"] = fails
    private.backward(torch.ones(6, 64))
    try:
        private.step()
    except MemoryError:
        distributed.broadcast(torch.ones(1, dtype=torch.int64), src=0)  # the loop's own, say
    else:
        torch.save(model.weight.grad, f"{folder}/gradient")
    distributed.barrier()
    distributed.destroy_process_group()


def test_a_process_whose_noise_never_came_steps_without_the_sums(tmp_path):
    """gloo takes a short message without a word. Before: the sums, and what memory held."""
    torch.multiprocessing.start_processes(
        step_that_fails_first, (str(tmp_path),), nprocs=2, start_method="spawn"
    )
    gradient = torch.load(tmp_path / "gradient")
    assert gradient.abs().max() < 1e-6


def step_of_two_plans(rank, folder):
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2
    )
    private = wrapped(torch.nn.Linear(2, 1), noise_multiplier=2 + rank)
    if rank:
        with pytest.raises(InvalidParameter, match="not that of the first process"):
            private.step()
        distributed.all_reduce(torch.zeros(1, 2, dtype=torch.int64))
        distributed.all_reduce(torch.zeros(1, dtype=torch.int64))
        distributed.broadcast(torch.zeros(3, dtype=torch.int64), src=0)
    else:
        private.step()
    distributed.barrier()
    distributed.destroy_process_group()


def test_processes_of_two_plans_do_not_add_up(tmp_path):
    """Before: the noise was that of the first, the other's gradients were as long as it said."""
    torch.multiprocessing.start_processes(
        step_of_two_plans, (str(tmp_path),), nprocs=2, start_method="spawn"
    )
