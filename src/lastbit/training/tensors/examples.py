"""Gradients of single examples by torch.func, and whether they are what the theorem needs.

Law      row i is the gradient of the loss on example i alone
Theorem  `training/clipping.py` needs that the numbers of row i do not depend on what other rows
         hold, to the last bit. `check_isolated` replaces an example and compares all other rows: it
         accuses with certainty, and does not prove. Batch normalisation is what it is for
Differs  rows may depend, in their last bits, on how many there are; the theorem allows it
Checked  tests/training/test_tensors.py, test_optimizer.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.func import functional_call, grad, vmap

from lastbit.errors import InvalidParameter

Loss = Callable[..., Tensor]
"""loss(model, *example): the loss on a batch of one, as a scalar; call `model` as a function."""


def per_example_gradients(model: torch.nn.Module, loss: Loss, *batch: Tensor) -> list[Tensor]:
    """The gradient of each example, for every parameter that is trained, in their order.

    >>> line = torch.nn.Linear(1, 1, bias=False)
    >>> rows = per_example_gradients(line, lambda f, x: f(x).sum(), torch.tensor([[2.0], [5.0]]))
    >>> [part.flatten().tolist() for part in rows]
    [[2.0, 5.0]]
    """
    trained, fixed = _parameters(model)

    def alone(parameters: dict[str, Tensor], *example: Tensor) -> Tensor:
        def call(*inputs: Tensor, **more: object) -> Tensor:
            output: Tensor = functional_call(model, {**fixed, **parameters}, inputs, more)
            return output

        return loss(call, *(part[None] for part in example))

    if not len(batch[0]):
        return [part.new_empty((0, *part.shape)) for part in trained.values()]
    every = vmap(grad(alone), in_dims=(None, *(0 for _ in batch)), randomness="different")
    gradients = every(trained, *batch)
    return [gradients[name] for name in trained]


def gradient_of_unit(model: torch.nn.Module, loss: Loss, *batch: Tensor) -> list[Tensor]:
    """The gradient of the loss on all examples of one unit together, as rows of one.

    What the model writes into its buffers meanwhile, no other unit sees, and nobody after it.
    """
    trained, fixed = _parameters(model)
    leaves = {name: part.requires_grad_() for name, part in trained.items()}
    buffers = {name: part.clone() for name, part in model.named_buffers()}

    def call(*inputs: Tensor, **more: object) -> Tensor:
        output: Tensor = functional_call(model, {**fixed, **leaves, **buffers}, inputs, more)
        return output

    with torch.enable_grad():
        found = torch.autograd.grad(loss(call, *batch), list(leaves.values()), allow_unused=True)
    return [
        torch.zeros_like(part)[None] if own is None else own[None]
        for own, part in zip(found, trained.values(), strict=True)
    ]


@contextmanager
def own_randomness() -> Iterator[None]:
    """Seeds that are set inside have no say outside, on no device."""
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices=list(devices)):
        yield


def check_isolated(gradients: Callable[..., Sequence[Tensor]], *batch: Tensor) -> None:
    """Refuse gradients of which one example changes those of another.

    `gradients(*batch)` gives a row for each example; of a batch of one nothing can be said.

    >>> check_isolated(lambda x: [x - x.mean(dim=0)], torch.tensor([[2.0], [5.0]]))
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: model lets one example change the gradient of another; use ...
    """
    count = len(batch[0])
    if count < 2:
        return
    with own_randomness():
        torch.manual_seed(0)  # so that dropout is the same twice; what is drawn here is thrown away
        before = [part.clone() for part in gradients(*batch)]
        for place in {0, count // 2, count - 1}:
            others = [i for i in range(count) if i != place]
            for changed in _replacements(batch, place):
                torch.manual_seed(0)
                after = gradients(*changed)
                if not all(
                    _same_bits(a[others], b[others]) for a, b in zip(before, after, strict=True)
                ):
                    raise InvalidParameter(
                        "model",
                        problem="lets one example change the gradient of another",
                        remedy="use group or layer normalisation instead of batch normalisation",
                    )


def _parameters(model: torch.nn.Module) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """What is trained and what is not, without a tape."""
    named = dict(model.named_parameters())
    trained = {name: part.detach() for name, part in named.items() if part.requires_grad}
    fixed = {name: part.detach() for name, part in named.items() if name not in trained}
    return trained, fixed


def _replacements(batch: Sequence[Tensor], place: int) -> list[list[Tensor]]:
    """The batch with another example in this place: the next one; and one a thousand times it."""
    following = (place + 1) % len(batch[0])
    swapped, larger = [], []
    for part in batch:
        copy = part.clone()
        copy[place] = part[following]
        swapped.append(copy)
        if part.is_floating_point():
            copy = copy.clone()
            copy[place] *= 1000
        larger.append(copy)
    return [swapped, larger]


def _same_bits(one: Tensor, other: Tensor) -> bool:
    return bool(((one == other) | (one.isnan() & other.isnan())).all())
