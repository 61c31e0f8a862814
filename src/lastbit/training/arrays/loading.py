"""Batches for JAX by exact coins, padded so that few shapes are compiled.

Law      that of `lastbit.training.PoissonSample`: the examples of a batch come first, then places
         that are empty, and the mask says which is which
Differs  a place that is empty holds zeros, and never an example: whoever forgets the mask adds what
         no example decides. How many places there are, the coins alone decide
Checked  tests/training/test_jax_examples.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from lastbit.arguments import check_kind
from lastbit.errors import InvalidParameter
from lastbit.exact import whole
from lastbit.training.plan import TrainingPlan
from lastbit.training.poisson import PoissonSample


def batches(
    plan: TrainingPlan, *data: Any, steps: int | None = None, multiple: int = 64
) -> Iterator[tuple[Any, ...]]:
    """Batches of arrays, or of trees of them, by exact coins; the last of each is its mask.

    Places are a multiple of `multiple`. Without `steps`, as many batches as the plan has steps.

    >>> from lastbit.training import training_plan
    >>> plan = training_plan(examples=3, batch=3, steps=1, noise_multiplier=2, delta="1e-5")
    >>> for x, mask in batches(plan, np.array([4, 5, 6]), multiple=4):
    ...     print(x, mask)
    [4 5 6 0] [ True  True  True False]
    """
    check_kind(plan, (TrainingPlan,), "plan", remedy="pass training_plan(...)")
    held = jax.tree.map(np.asarray, data)
    if {np.shape(part)[:1] for part in jax.tree.leaves(held)} != {(plan.examples,)}:
        problem = "has more or fewer examples than the plan is for"
        raise InvalidParameter("data", problem=problem, remedy="plan with examples= its length")
    size = whole(multiple, "multiple", least=1)
    count = plan.steps if steps is None else whole(steps, "steps")
    return _padded_batches(PoissonSample(examples=plan.examples, rate=plan.rate), held, count, size)


def _padded_batches(sample: PoissonSample, data: Any, steps: int, multiple: int) -> Iterator[Any]:
    for numbers in sample.batches(steps):
        places = max(1, -(-len(numbers) // multiple)) * multiple

        def padded(part: Any, numbers: Any = numbers, places: int = places) -> Any:
            rows = np.zeros((places, *part.shape[1:]), part.dtype)
            rows[: len(numbers)] = part[numbers]
            return rows

        yield (*jax.tree.map(padded, data), np.arange(places) < len(numbers))
