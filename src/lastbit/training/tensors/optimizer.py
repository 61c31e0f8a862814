"""`exact`: any torch optimizer, fed with exact noisy means; Opacus' loop, or torch.func's.

Law      a step is: take it from the run; the whole gradients of all examples since the last step,
         added on int64, over all processes; round(sigma Z), once; times step/expected batch, as
         floats, into `p.grad`; the optimizer's own step
Theorem  the parameters after all steps are a function of the noisy sums, of what was there before
         and of randomness that knows no example: post-processing of what the plan prices
Premise  each example of a batch is handed over once a step, and its gradient depends on no other
         example (`clipping.py`; tested on the first batch); batches are those of `loader`
Differs  the noise of the wrapped optimizer of Opacus is not used, nor its clipping. Of several
         processes the first adds noise, and the others use nothing but what it sends: whatever
         fails between, and whatever message another collective takes, none steps without noise.
         `torch.compile` leaves all of it as it is: compiled, the sampler was traced, and its draws
         stood in the log as reasons to compile again
Checked  tests/training/test_optimizer.py, test_processes.py, test_hostile_loops.py
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, distributed

from lastbit.arguments import check_kind
from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact import whole
from lastbit.training.clipping import WholeClip
from lastbit.training.noise import check_deviation
from lastbit.training.plan import TrainingPlan
from lastbit.training.run import TrainingRun, start_run
from lastbit.training.tensors.clipping import add_clipped
from lastbit.training.tensors.examples import (
    Loss,
    check_isolated,
    gradient_of_unit,
    own_randomness,
    per_example_gradients,
)
from lastbit.training.tensors.noise import whole_noise
from lastbit.training.tensors.untraced import untraced

_MICROBATCH = 64
_TESTED = 16  # examples: their gradients are held three times over while they are compared


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
    check_kind(inner, (torch.optim.Optimizer,), "optimizer", remedy="pass one of torch.optim")
    if model is not None:
        check_kind(model, (torch.nn.Module,), "model", remedy="pass a torch.nn.Module")
    if loss is not None and not callable(loss):
        remedy = "pass a function of the model and an example"
        raise WrongType("loss", problem="is not a function", remedy=remedy)
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
        check_deviation(run.plan.deviation(clip))
        self.original_optimizer, self.run, self.clip = optimizer, run, clip
        self.model, self.loss, self.microbatch = model, loss, microbatch
        self._lock = threading.RLock()  # a step of one thread and a part of another's batch
        _check_plain_step(optimizer)
        self._parameters = self._trained()
        if any(hasattr(part, "device_mesh") for part in self._parameters):
            problem = "trains parameters of which each process has a piece"
            remedy = "pass one of whole parameters"
            raise InvalidParameter("optimizer", problem=problem, remedy=remedy)
        if not self._parameters or not all(part.is_floating_point() for part in self._parameters):
            remedy = "pass one of parameters that are floats and require gradients"
            raise InvalidParameter("optimizer", problem="trains no floats", remedy=remedy)
        if model is not None:
            trained = {id(part) for part in model.parameters() if part.requires_grad}
            if trained != {id(part) for part in self._parameters}:
                problem = "trains other parameters than the optimizer has"
                remedy = "pass it model.parameters(), or freeze the others"
                raise InvalidParameter("model", problem=problem, remedy=remedy)
            check_no_batch_statistics(model)
        self._totals: list[Tensor] = []
        self._skips: list[bool] = []
        self._is_skipped = False
        self._is_tested = False
        self._forget()

    # ------------------------------------------------------------ gradients of single examples

    @untraced
    def backward(self, *batch: Tensor, units: Tensor | None = None) -> None:
        """Add the gradients of the examples of a batch, a few at a time.

        With `units`, the number of each example's unit, all examples of a unit are one: the
        gradient of their loss together is clipped. Hand over all of them at once.
        If it fails, what was added since the last step is lost: it may be handed over again.
        """
        if self.model is None or self.loss is None:
            problem = "and loss are needed for it"
            remedy = "pass them to exact, or let Opacus find gradients"
            raise InvalidParameter("model", problem=problem, remedy=remedy)
        _check_batch(batch, units)
        with self._lock:
            try:
                self._check_trained()
                check_no_batch_statistics(self.model)
                if units is None:
                    self._add_examples(self.model, self.loss, batch)
                else:
                    self._add_units(self.model, self.loss, batch, units)
            except BaseException:  # the first of a few examples must not count twice
                self._forget()
                raise

    def _add_examples(self, model: torch.nn.Module, loss: Loss, batch: Sequence[Tensor]) -> None:
        if not self._is_tested and len(batch[0]) > 1:
            few = [part[: min(self.microbatch, _TESTED)] for part in batch]
            check_isolated(lambda *rows: per_example_gradients(model, loss, *rows), *few)
            self._is_tested = True
        for start in range(0, len(batch[0]), self.microbatch):
            rows = [part[start : start + self.microbatch] for part in batch]
            self.add(self._ordered(per_example_gradients(model, loss, *rows)))

    def _add_units(
        self, model: torch.nn.Module, loss: Loss, batch: Sequence[Tensor], units: Tensor
    ) -> None:
        """Unit by unit; what dropout draws for one is no matter of who else is there."""
        self._check_new(units)
        seed = int(torch.randint(1 << 62, ()))
        with own_randomness():
            for unit, rows in _rows_of_units(units):
                torch.manual_seed((seed + unit) % (1 << 62))
                own = gradient_of_unit(model, loss, *(part[rows] for part in batch))
                self.add(self._ordered(own))

    @untraced
    def add(self, gradients: Sequence[Tensor]) -> None:
        """Add gradients of single examples: a tensor with their rows for each parameter."""
        with self._lock:
            try:
                add_clipped(gradients, self._totals, self.clip)
            except BaseException:  # what was added may come again: it must not count twice
                self._forget()
                raise

    def _check_new(self, units: Tensor) -> None:
        """Refuse a unit that has been handed over since the last step: it would count twice."""
        named = set(units.tolist())
        if named & self._units:
            problem = "name one twice in a step"
            remedy = "hand over all examples of a unit at once"
            raise InvalidParameter("units", problem=problem, remedy=remedy)
        self._units |= named

    @untraced
    def accumulate(self) -> None:
        """Add the gradients that Opacus found, and forget them, so that none counts twice."""
        try:
            found = [_grad_samples(part) for part in self._parameters]
        finally:
            self._forget_samples()
        rows = next((len(own) for own in found if own is not None), 0)
        if rows:
            self.add(
                [
                    part.new_zeros((rows, *part.shape)) if own is None else own
                    for own, part in zip(found, self._parameters, strict=True)
                ]
            )

    def _ordered(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """From the model's order of parameters to the optimizer's."""
        assert self.model is not None
        names = [id(part) for part in self.model.parameters() if part.requires_grad]
        by_name = dict(zip(names, gradients, strict=True))
        return [by_name[id(part)] for part in self._parameters]

    # ------------------------------------------------------------ the step

    @untraced
    def step(self) -> Any:
        """One step of the run: noise once, then the optimizer's own step.

        If it fails, the batch is lost: an example that came again would count twice.
        """
        with self._lock:
            try:
                # before all that may fail: what is said of this part is not the next one's
                self._is_skipped = bool(self._skips and self._skips.pop(0))
                self._check_trained()
                self.accumulate()
                if self._is_skipped:
                    return None
                self._take_step()
                noisy = self._noisy_totals()
                share = float(self.clip.step / self.run.plan.expected_batch)
                for part, total in zip(self._parameters, noisy, strict=True):
                    part.grad = total.double().mul_(share).to(part.dtype).view_as(part)
            except BaseException:
                self._forget()
                self._forget_samples()
                self._forget_raw(but=())
                raise
            self._forget()
            self._forget_raw(but=self._parameters)
            return self.original_optimizer.step()

    @property
    def _step_supports_amp_scaling(self) -> bool:
        """What `torch.amp.GradScaler` asks first; of steps it leaves out, nobody has counted."""
        problem = "is given to a GradScaler, which leaves out steps by looking at raw gradients"
        raise InvalidParameter("optimizer", problem=problem, remedy="train in bfloat16 without it")

    def _trained(self) -> list[Any]:
        groups = self.original_optimizer.param_groups
        return [part for group in groups for part in group["params"] if part.requires_grad]

    def _check_trained(self) -> None:
        """Refuse a parameter that came later: the step would use its gradient as it is."""
        now = [id(part) for part in self._trained()]
        if now != [id(part) for part in self._parameters]:
            problem = "trains other parameters than when it was wrapped"
            remedy = "wrap it again, with the same run"
            raise InvalidParameter("optimizer", problem=problem, remedy=remedy)

    def _forget_raw(self, *, but: Sequence[Tensor]) -> None:
        """No gradient but ours goes into a step: others, also of frozen parameters, are private."""
        ours = {id(part) for part in but}
        for group in self.original_optimizer.param_groups:
            for part in group["params"]:
                if id(part) not in ours:
                    part.grad = None

    def _take_step(self) -> None:
        """By the first process for all; if it is refused there, it is refused everywhere."""
        if not _several():
            self.run.take_step()
            return
        said: list[Any] = [None, (self.run.plan.digest, str(self.clip))]
        if distributed.get_rank() == 0:
            try:
                self.run.take_step()
            except LastbitError as error:
                said[0] = error
        distributed.broadcast_object_list(said, src=0)
        if said[0] is not None:
            raise said[0]
        if said[1] != (self.run.plan.digest, str(self.clip)):
            problem = "or clip is not that of the first process"
            raise InvalidParameter("plan", problem=problem, remedy="pass the same in each")

    def _noisy_totals(self) -> Iterator[Tensor]:
        """The sums of all processes, with noise that one has drawn, for every parameter."""
        sizes = [total.numel() for total in self._totals]
        deviation, device = self.run.plan.deviation(self.clip), self._totals[0].device
        if not _several():
            noise = whole_noise(sum(sizes), deviation, device).split(sizes)
            pairs = zip(self._totals, noise, strict=True)
            return (total.add_(own.to(total.device).view_as(total)) for total, own in pairs)
        for total in self._totals:
            distributed.all_reduce(total, op=distributed.ReduceOp.SUM)
        if distributed.get_rank():
            # nothing of the sums is here: a message that is too short is taken without a word
            noisy = torch.zeros(sum(sizes), dtype=torch.int64, device=device)
        else:
            noisy = torch.cat([total.reshape(-1).to(device) for total in self._totals])
            noisy += whole_noise(sum(sizes), deviation, device)
        distributed.broadcast(noisy, src=0)
        parts = zip(noisy.split(sizes), self._totals, strict=True)
        return (part.to(total.device).view_as(total) for part, total in parts)

    def clear(self) -> None:
        """Forget what was added since the last step, and what was said of parts to come.

        Call it when a loop over parts of batches was left before its end: the rest of a batch would
        be added to the next one, and an example of both would count twice.
        """
        with self._lock:
            self._forget()
            self._forget_samples()
            self._skips.clear()
            self._is_skipped = False

    def _forget(self) -> None:
        self._totals = [torch.zeros_like(part, dtype=torch.int64) for part in self._parameters]
        self._units: set[int] = set()

    def _forget_samples(self) -> None:
        for part in self._parameters:
            part.grad_sample = None

    # ------------------------------------------------------------ what loops call

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget gradients, also those added for a step that was not taken.

        What was added before a skipped step stays: it is the first part of a batch.
        """
        with self._lock:
            self._forget_samples()
            if not self._is_skipped:
                self._forget()
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

    def __reduce__(self) -> str:
        problem = "cannot be copied: both would step with the sums of one batch"
        raise InvalidParameter("optimizer", problem=problem, remedy="save its state_dict()")

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


def _check_plain_step(optimizer: torch.optim.Optimizer) -> None:
    """Refuse one that works gradients out again: those would be raw, or a step would be lost."""
    closure = inspect.signature(optimizer.step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        problem = "needs a closure, which works out gradients again without noise"
        raise InvalidParameter("optimizer", problem=problem, remedy="pass SGD or Adam, say")


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


def _check_batch(batch: Sequence[object], units: object) -> None:
    remedy = "pass tensors with a row for each example"
    for part in batch:
        check_kind(part, (Tensor,), "batch", remedy=remedy)
    sizes = {len(part) if isinstance(part, Tensor) and part.dim() else -1 for part in batch}
    if len(sizes) != 1 or -1 in sizes:
        problem = "has no tensors, or they differ in their examples"
        raise InvalidParameter("batch", problem=problem, remedy=remedy)
    if units is None:
        return
    fits = isinstance(units, Tensor) and units.dim() == 1 and {len(units)} == sizes
    if not fits or units.is_floating_point() or units.is_complex():  # type: ignore[attr-defined]
        problem = "are not one whole number for each example"
        raise InvalidParameter("units", problem=problem, remedy="pass a tensor of integers")


def _rows_of_units(units: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Each unit, in order, with its rows."""
    order = torch.argsort(units, stable=True)
    names, counts = torch.unique_consecutive(units[order], return_counts=True)
    ends = [0, *counts.cumsum(0).tolist()]
    rows = (order[start:end] for start, end in pairwise(ends))
    return zip(names.tolist(), rows, strict=True)
