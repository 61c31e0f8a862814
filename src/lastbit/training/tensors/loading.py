"""Batches for torch by exact coins: a sampler for its loaders, and a loader that knows empty ones.

Law      that of `lastbit.training.PoissonSample`; of several processes each has the examples whose
         number leaves its rank as a rest, so that each example has one coin
Differs  coins are tossed in the process that iterates, never in a worker of a loader
Checked  tests/training/test_loading.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map
from torch.utils.data import DataLoader, Dataset, Sampler, default_collate

from lastbit.errors import InvalidParameter
from lastbit.exact import whole
from lastbit.training.plan import TrainingPlan
from lastbit.training.poisson import PoissonSample


class PoissonBatches(Sampler[list[Any]]):
    """The numbers of the examples of each batch, for `DataLoader(batch_sampler=...)`.

    With `units`, which lists the examples of each unit, coins are tossed for units, and a batch is
    of pairs (unit, example).

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
        rank: int = 0,
        processes: int = 1,
    ) -> None:
        if whole(rank, "rank") >= whole(processes, "processes", least=1):
            raise InvalidParameter("rank", problem="is above the last", remedy="pass get_rank()")
        if units is not None and len(units) != plan.examples:
            problem = "are more or fewer than the plan is for"
            remedy = "plan with examples= the number of units"
            raise InvalidParameter("units", problem=problem, remedy=remedy)
        self.units, self.rank, self.processes = units, rank, processes
        self.steps = plan.steps if steps is None else whole(steps, "steps")
        own = len(range(rank, plan.examples, processes))
        self.sample = PoissonSample(examples=own, rate=plan.rate) if own else None

    def __iter__(self) -> Iterator[list[Any]]:
        for _ in range(self.steps):
            drawn = [] if self.sample is None else self.sample.batch().tolist()
            numbers = [self.rank + self.processes * number for number in drawn]
            if self.units is None:
                yield numbers
            else:
                yield [(unit, example) for unit in numbers for example in self.units[unit]]

    def __len__(self) -> int:
        return self.steps


def loader(
    dataset: Dataset[Any],
    plan: TrainingPlan,
    *,
    steps: int | None = None,
    units: Sequence[Sequence[int]] | None = None,
    rank: int = 0,
    processes: int = 1,
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
    first = (0, units[0][0]) if units else 0
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
        return tree_map(
            lambda part: part[:0] if isinstance(part, torch.Tensor) else part,
            self.own([self.source[self.first]]),
        )
