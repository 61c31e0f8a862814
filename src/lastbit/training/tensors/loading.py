"""Batches for torch by exact coins: a sampler for its loaders, and a loader that knows empty ones.

Law      that of `lastbit.training.PoissonSample`; of several processes each has the examples whose
         number leaves its rank as a rest, so that each example has one coin
Differs  coins are tossed in the process that iterates, never in a worker of a loader
Checked  tests/training/test_loading.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from torch import distributed
from torch.utils.data import DataLoader, Dataset, Sampler, default_collate

from lastbit.errors import InvalidParameter
from lastbit.exact import whole
from lastbit.training.plan import TrainingPlan
from lastbit.training.poisson import PoissonSample
from lastbit.training.tensors.untraced import untraced

_HOLDERS = (torch.Tensor, np.ndarray, MutableMapping, tuple, list)


class PoissonBatches(Sampler[list[Any]]):
    """The numbers of the examples of each batch, for `DataLoader(batch_sampler=...)`.

    With `units`, which lists the examples of each unit, coins are tossed for units, and a batch is
    of pairs (unit, example).

    `rank` and `processes` are torch.distributed's unless they are passed: if every process tossed
    coins for all examples, one could be in several batches of a step, and count in each.

    >>> from lastbit.training import training_plan
    >>> plan = training_plan(examples=3, batch=3, steps=2, noise_multiplier=2, delta="1e-5")
    >>> list(PoissonBatches(plan))
    [[0, 1, 2], [0, 1, 2]]
    """

    def __init__(
        self,
        plan: TrainingPlan,
        *,
        steps: int | None = None,
        units: Sequence[Sequence[int]] | None = None,
        rank: int | None = None,
        processes: int | None = None,
    ) -> None:
        if rank is not None or processes is not None:
            rank, processes = rank or 0, 1 if processes is None else processes
            if whole(rank, "rank") >= whole(processes, "processes", least=1):
                remedy = "pass get_rank()"
                raise InvalidParameter("rank", problem="is above the last", remedy=remedy)
        if units is not None and len(units) != plan.examples:
            problem = "are more or fewer than the plan is for"
            remedy = "plan with examples= the number of units"
            raise InvalidParameter("units", problem=problem, remedy=remedy)
        self.units, self.examples, self.rate = units, plan.examples, plan.rate
        self._place = None if rank is None or processes is None else (rank, processes)
        self.steps = plan.steps if steps is None else whole(steps, "steps")

    def __iter__(self) -> Iterator[list[Any]]:
        rank, processes = self._place or process_of_group()
        own = len(range(rank, self.examples, processes))
        sample = PoissonSample(examples=own, rate=self.rate) if own else None
        for _ in range(self.steps):
            drawn = [] if sample is None else _numbers(sample)
            numbers = [rank + processes * number for number in drawn]
            if self.units is None:
                yield numbers
            else:
                yield [(unit, example) for unit in numbers for example in self.units[unit]]

    def __len__(self) -> int:
        return self.steps


@untraced
def _numbers(sample: PoissonSample) -> list[int]:
    """Whose coins say yes."""
    numbers: list[int] = sample.batch().tolist()
    return numbers


def process_of_group() -> tuple[int, int]:
    """Which process this is, and of how many: those whose sums an `ExactOptimizer` adds up."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def loader(
    dataset: Dataset[Any],
    plan: TrainingPlan,
    *,
    steps: int | None = None,
    units: Sequence[Sequence[int]] | None = None,
    rank: int | None = None,
    processes: int | None = None,
    collate_fn: Callable[[list[Any]], Any] = default_collate,
    **more: Any,
) -> DataLoader[Any]:
    """A loader of batches by exact coins; an empty batch has tensors of no rows.

    With `units` the first tensor of a batch says to which unit each example belongs. `more` goes
    to `DataLoader`.

    >>> from lastbit.training import training_plan
    >>> plan = training_plan(examples=3, batch=3, steps=1, noise_multiplier=2, delta="1e-5")
    >>> data = torch.utils.data.TensorDataset(torch.tensor([4.0, 5.0, 6.0]))
    >>> [batch.tolist() for (batch,) in loader(data, plan)]
    [[4.0, 5.0, 6.0]]
    """
    size = len(dataset)  # type: ignore[arg-type]
    if units is None and size != plan.examples:
        problem = "has more or fewer examples than the plan is for"
        remedy = "plan with examples= its length"
        raise InvalidParameter("dataset", problem=problem, remedy=remedy)
    batches = PoissonBatches(plan, steps=steps, units=units, rank=rank, processes=processes)
    source: Any = dataset if units is None else _OfUnits(dataset)
    first: Any = 0
    if units is not None:
        first = next(((unit, own[0]) for unit, own in enumerate(units) if len(own)), None)
        if first is None:
            remedy = "pass the examples of each unit"
            raise InvalidParameter("units", problem="have no examples", remedy=remedy)
    return DataLoader(
        source, batch_sampler=batches, collate_fn=_Collate(collate_fn, source, first), **more
    )


class _OfUnits(Dataset[Any]):
    """Examples with the number of their unit in front."""

    def __init__(self, dataset: Dataset[Any]) -> None:
        self.dataset = dataset

    def __getitem__(self, place: tuple[int, int]) -> tuple[Any, ...]:
        unit, example = place
        found = self.dataset[example]
        return (unit, *found) if isinstance(found, tuple | list) else (unit, found)


class _Collate:
    """The caller's own, and for an empty batch what it makes of the first example, without rows."""

    def __init__(self, own: Callable[[list[Any]], Any], source: Any, first: Any) -> None:
        self.own, self.source, self.first = own, source, first

    def __call__(self, examples: list[Any]) -> Any:
        if examples:
            return self.own(examples)
        return _emptied(self.own([self.source[self.first]]))


def _emptied(batch: Any) -> Any:
    """A batch of one without its row: nothing of that example may remain, as it was not drawn."""
    if isinstance(batch, torch.Tensor | np.ndarray) and batch.ndim:
        return batch[:0]
    if isinstance(batch, MutableMapping):
        emptied = copy(batch)  # of its own kind, as tokenizers have one
        for name, part in batch.items():
            emptied[name] = _emptied(part)
        return emptied
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(_emptied, batch))
    if isinstance(batch, tuple | list):
        if any(isinstance(part, _HOLDERS) for part in batch):
            return type(batch)(map(_emptied, batch))
        return type(batch)()  # of something for each example, as of texts
    raise InvalidParameter(
        "collate_fn",
        problem="makes something of which no empty batch can be made",
        remedy="return tensors, or lists, with a row for each example, and mappings of them",
    )
