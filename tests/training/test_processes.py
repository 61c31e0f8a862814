"""Two processes train as one: whole sums over both, one noise for both."""

from fractions import Fraction

import pytest

from lastbit.training import TrainingPlan, training_plan
from tests.training.torch_here import torch

from lastbit.training.tensors import exact, loader  # isort: skip

distributed = torch.distributed


def entropy(model, x, y):
    return torch.nn.functional.cross_entropy(model(x), y)


def work(rank, folder, processes, noise):
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=processes
    )
    torch.manual_seed(0)
    x, y = torch.randn(12, 4), torch.randint(2, (12,))
    model = torch.nn.Linear(4, 2)
    paid = training_plan(examples=12, batch=12, steps=3, noise_multiplier=2, delta="1e-5")
    if not noise:
        # a child's own class; noise of a billionth of a step is rounded away
        type.__setattr__(TrainingPlan, "deviation", lambda self, clip: Fraction(1, 10**9))
    private = exact(
        torch.optim.SGD(model.parameters(), lr=1), paid, norm=0.1, model=model, loss=entropy
    )
    data = torch.utils.data.TensorDataset(x, y)
    for inputs, targets in loader(data, paid, rank=rank, processes=processes):
        private.backward(inputs, targets)
        private.step()
    refused = ""
    try:
        private.step()
    except Exception as error:
        refused = str(error)
    torch.save([refused, *model.parameters()], f"{folder}/model-{processes}-{rank}")
    distributed.destroy_process_group()


def trained(folder, processes, *, noise):
    """What each process ends with."""
    (folder / "meeting").unlink(missing_ok=True)
    torch.multiprocessing.start_processes(
        work, (str(folder), processes, noise), nprocs=processes, start_method="spawn"
    )
    return [
        torch.load(folder / f"model-{processes}-{rank}", weights_only=False)
        for rank in range(processes)
    ]


def test_processes_have_one_model_and_one_count_of_steps(tmp_path):
    one, other = trained(tmp_path, 2, noise=True)
    assert all((a == b).all() for a, b in zip(one[1:], other[1:], strict=True))
    assert "has taken the 3 steps" in one[0]
    assert one[0] == other[0]


@pytest.mark.evidence
def test_two_processes_without_noise_do_what_one_does(tmp_path):
    """The rate is 1, so both see all examples; floats of other shapes may differ in a last bit."""
    two, one = (trained(tmp_path, count, noise=False)[0] for count in (2, 1))
    for a, b in zip(one[1:], two[1:], strict=True):
        assert torch.allclose(a, b, atol=1e-5)
