"""`exact`: any torch optimizer, fed with exact noisy means; Opacus' loop, or torch.func's.

Law      a step is: take it from the run; the whole gradients of all examples since the last step,
         added on int64, over all processes; round(sigma Z), once; times step/expected batch, as
         floats, into `p.grad`; the optimizer's own step
Theorem  the parameters after all steps are a function of the noisy sums, of what was there before
         and of randomness that knows no example: post-processing of what the plan prices
Premise  each example of a batch is handed over once a step, and its gradient depends on no other
         example (`clipping.py`; tested on the first batch); batches are those of `loader`
Differs  the noise of the wrapped optimizer of Opacus is not used, nor its clipping
Checked  tests/training/test_optimizer.py, test_processes.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, distributed

from lastbit.arguments import check_kind
from lastbit.errors import InvalidParameter, LastbitError
from lastbit.exact import whole
from lastbit.training.clipping import WholeClip
from lastbit.training.plan import TrainingPlan
from lastbit.training.run import TrainingRun, start_run
from lastbit.training.tensors.clipping import add_clipped
from lastbit.training.tensors.examples import (
    Loss,
    check_isolated,
    gradient_of_unit,
    per_example_gradients,
)
from lastbit.training.tensors.noise import whole_noise

_MICROBATCH = 64


def exact(
    optimizer: Any,
    run: TrainingRun | TrainingPlan,
    *,
    norm: float | Fraction | None = None,
    clip: WholeClip | None = None,
    model: torch.nn.Module | None = None,
    loss: Loss | None = None,
    microbatch: int = _MICROBATCH,
) -> ExactOptimizer:
    """An optimizer whose steps are private as the plan says, around one of torch or of Opacus.

    Gradients of single examples come from Opacus (`p.grad_sample`), or from `backward`, which
    needs the model and the loss. `norm` is where they are cut; Opacus' own if it is left out.
    A plan instead of a run is a run without a ledger.

    >>> from lastbit.training import training_plan
    >>> plan = training_plan(examples=3, batch=3, steps=1, noise_multiplier=2, delta="1e-5")
    >>> line = torch.nn.Linear(1, 1)
    >>> private = exact(
    ...     torch.optim.SGD(line.parameters(), lr=0.1), plan, norm=1,
    ...     model=line, loss=lambda f, x: (f(x) ** 2).sum(),
    ... )
    >>> private.backward(torch.tensor([[4.0], [5.0], [6.0]]))
    >>> _ = private.step()
    >>> private.run.steps_left
    0
    """
    inner = getattr(optimizer, "original_optimizer", optimizer)
    own = getattr(optimizer, "max_grad_norm", None)
    if (norm is None) == (clip is None) and (clip is not None or own is None):
        remedy = "pass norm=1, say, or clip=WholeClip(norm=1)"
        raise InvalidParameter("norm", problem="or clip, exactly one, is needed", remedy=remedy)
    if clip is None:
        length: Any = own if norm is None else norm
        clip = WholeClip(norm=length)
    check_kind(clip, (WholeClip,), "clip", remedy="pass WholeClip(norm=1)")
    check_kind(run, (TrainingRun, TrainingPlan), "run", remedy="pass start_run(plan, ...)")
    started = start_run(run) if isinstance(run, TrainingPlan) else run
    return ExactOptimizer(
        inner, started, clip, model=model, loss=loss, microbatch=whole(microbatch, least=1)
    )


class ExactOptimizer:
    """What `exact` makes. It has an optimizer's methods; schedulers take `original_optimizer`.

    >>> from lastbit.training import training_plan
    >>> plan = training_plan(examples=3, batch=3, steps=1, noise_multiplier=2, delta="1e-5")
    >>> inner = torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=0.1)
    >>> exact(inner, plan, norm=1).original_optimizer is inner
    True
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        run: TrainingRun,
        clip: WholeClip,
        *,
        model: torch.nn.Module | None,
        loss: Loss | None,
        microbatch: int,
    ) -> None:
        clip.check_batch(run.plan.examples)
        self.original_optimizer, self.run, self.clip = optimizer, run, clip
        self.model, self.loss, self.microbatch = model, loss, microbatch
        self._parameters = [
            part
            for group in optimizer.param_groups
            for part in group["params"]
            if part.requires_grad
        ]
        if model is not None:
            trained = {id(part) for part in model.parameters() if part.requires_grad}
            if trained != {id(part) for part in self._parameters}:
                problem = "trains other parameters than the optimizer has"
                remedy = "pass it model.parameters(), or freeze the others"
                raise InvalidParameter("model", problem=problem, remedy=remedy)
            check_no_batch_statistics(model)
        self._totals: list[Tensor] = []
        self._skips: list[bool] = []
        self._is_tested = False
        self.clear()

    # ------------------------------------------------------------ gradients of single examples

    def backward(self, *batch: Tensor, units: Tensor | None = None) -> None:
        """Add the gradients of the examples of a batch, a few at a time.

        With `units`, the number of each example's unit, all examples of a unit are one: the
        gradient of their mean loss is clipped.
        """
        if self.model is None or self.loss is None:
            problem = "and loss are needed for it"
            remedy = "pass them to exact, or let Opacus find gradients"
            raise InvalidParameter("model", problem=problem, remedy=remedy)
        model, loss = self.model, self.loss
        if units is not None:
            for rows in _rows_of_units(units):
                own = gradient_of_unit(model, loss, *(part[rows] for part in batch))
                self.add(self._ordered(own))
            return
        if not self._is_tested and len(batch[0]) > 1:
            few = [part[: self.microbatch] for part in batch]
            check_isolated(lambda *rows: per_example_gradients(model, loss, *rows), *few)
            self._is_tested = True
        for start in range(0, len(batch[0]), self.microbatch):
            rows = [part[start : start + self.microbatch] for part in batch]
            self.add(self._ordered(per_example_gradients(model, loss, *rows)))

    def add(self, gradients: Sequence[Tensor]) -> None:
        """Add gradients of single examples: a tensor with their rows for each parameter."""
        add_clipped(gradients, self._totals, self.clip)

    def accumulate(self) -> None:
        """Add the gradients that Opacus found, and forget them, so that none counts twice."""
        found = [_grad_samples(part) for part in self._parameters]
        rows = next((len(own) for own in found if own is not None), 0)
        if rows:
            self.add(
                [
                    part.new_zeros((rows, *part.shape)) if own is None else own
                    for own, part in zip(found, self._parameters, strict=True)
                ]
            )
        for part in self._parameters:
            part.grad_sample = None

    def _ordered(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """From the model's order of parameters to the optimizer's."""
        assert self.model is not None
        names = [id(part) for part in self.model.parameters() if part.requires_grad]
        by_name = dict(zip(names, gradients, strict=True))
        return [by_name[id(part)] for part in self._parameters]

    # ------------------------------------------------------------ the step

    def step(self) -> Any:
        """One step of the run: noise once, then the optimizer's own step."""
        self.accumulate()
        if self._skips and self._skips.pop(0):
            return None
        self._take_step()
        self._add_up()
        noise = self._noise()
        share = float(self.clip.step / self.run.plan.expected_batch)
        for part, total, own in zip(self._parameters, self._totals, noise, strict=True):
            part.grad = ((total + own).double() * share).to(part.dtype).view_as(part)
        self.clear()
        return self.original_optimizer.step()

    def _take_step(self) -> None:
        """By the first process for all; if it is refused there, it is refused everywhere."""
        if not _several():
            self.run.take_step()
            return
        refused: list[Any] = [None]
        if distributed.get_rank() == 0:
            try:
                self.run.take_step()
            except LastbitError as error:
                refused[0] = error
        distributed.broadcast_object_list(refused, src=0)
        if refused[0] is not None:
            raise refused[0]

    def _add_up(self) -> None:
        if _several():
            for total in self._totals:
                distributed.all_reduce(total, op=distributed.ReduceOp.SUM)

    def _noise(self) -> Iterator[Tensor]:
        """Noise for every parameter, drawn by one process, which all others use."""
        device = self._totals[0].device
        sizes = [total.numel() for total in self._totals]
        if _several() and distributed.get_rank():
            drawn = torch.empty(sum(sizes), dtype=torch.int64, device=device)
        else:
            drawn = whole_noise(sum(sizes), self.run.plan.deviation(self.clip), device)
        if _several():
            distributed.broadcast(drawn, src=0)
        parts = zip(drawn.split(sizes), self._totals, strict=True)
        return (part.to(total.device).view_as(total) for part, total in parts)

    def clear(self) -> None:
        """Forget what was added since the last step."""
        self._totals = [torch.zeros_like(part, dtype=torch.int64) for part in self._parameters]

    # ------------------------------------------------------------ what loops call

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget gradients; what was added for the step that is under way stays."""
        for part in self._parameters:
            part.grad_sample = None
        self.original_optimizer.zero_grad(set_to_none)

    def signal_skip_step(self, do_skip: bool = True) -> None:
        """The next `step` only adds up: Opacus' BatchMemoryManager says so of parts of a batch."""
        self._skips.append(do_skip)

    @property
    def param_groups(self) -> Any:
        return self.original_optimizer.param_groups

    @property
    def state(self) -> Any:
        return self.original_optimizer.state

    def state_dict(self) -> dict[str, Any]:
        """That of the optimizer: a checkpoint holds neither noise nor sums."""
        state: dict[str, Any] = self.original_optimizer.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Into the optimizer. Steps are counted by the run, whatever is loaded."""
        self.original_optimizer.load_state_dict(state)

    def __repr__(self) -> str:
        return f"ExactOptimizer({self.original_optimizer!r}, {self.run!r}, {self.clip!r})"


def check_no_batch_statistics(model: torch.nn.Module) -> None:
    """Refuse layers that mix the examples of a batch."""
    for layer in model.modules():
        if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm) and layer.training:
            raise InvalidParameter(
                "model",
                problem="has batch normalisation, which mixes examples",
                remedy="use group or layer normalisation",
            )


def _several() -> bool:
    return bool(
        distributed.is_available()
        and distributed.is_initialized()
        and distributed.get_world_size() > 1
    )


def _grad_samples(part: Any) -> Tensor | None:
    """What Opacus found since it was last taken: one tensor, or one for each pass."""
    found = getattr(part, "grad_sample", None)
    if isinstance(found, list):
        return torch.cat(found) if found else None
    if found is None or isinstance(found, Tensor):
        return found
    remedy = "pass a model of Opacus' GradSampleModule"
    raise InvalidParameter("grad_sample", problem="is not a tensor", remedy=remedy)


def _rows_of_units(units: Tensor) -> Iterator[Tensor]:
    """The rows of each unit, unit by unit."""
    order = torch.argsort(units, stable=True)
    _, counts = torch.unique_consecutive(units[order], return_counts=True)
    ends = [0, *counts.cumsum(0).tolist()]
    return (order[start:end] for start, end in pairwise(ends))
