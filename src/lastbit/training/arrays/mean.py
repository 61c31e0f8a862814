"""A noisy mean of per-example gradients: one step of the run for each call, and never compiled.

Law      a call is: the whole gradients of all rows that are there, added; the step, taken from the
         run; round(sigma Z), drawn anew, once; times step/expected batch, as floats
Theorem  what all calls return together keeps the promise of the run's plan, whatever is compiled,
         saved and restored around them
Proof    Of one call: `clipping.py` and `noise.py`; the return to floats is post-processing. A call
         while JAX traces, or on what it traces, is refused: no compiled function holds noise that
         it would use again, or stands for a step that it would not count again. Each call takes
         its step before it draws its noise, and keeps neither: what is saved has none, and what is
         restored undoes no step.  []
Premise  each example is in a call once, and its gradient depends on no other example
         (`training/clipping.py`); each call has a new batch, of `batches`
Differs  a host callback of a compiled function is no tracing: each of its calls is a step
Checked  tests/training/test_jax_steps.py
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lastbit.arguments import check_kind
from lastbit.errors import InvalidParameter
from lastbit.exact import Number
from lastbit.training.arrays.clipping import check_not_traced, rows_there, whole_sum
from lastbit.training.clipping import WholeClip
from lastbit.training.noise import check_deviation, rounded_gaussian
from lastbit.training.run import TrainingRun


def noisy_mean(
    gradients: Any,
    params: Any,
    run: TrainingRun,
    *,
    norm: Number | None = None,
    clip: WholeClip | None = None,
    mask: Any = None,
) -> Any:
    """Take a step of the run: the noisy mean of a batch's gradients, a tree like the parameters.

    Each array of `gradients` is one of `params` with an axis of examples in front. `mask` says
    which rows are there, where a batch was padded; others count for nothing. Call it outside of
    `jit`: what is traced is refused.

    >>> from lastbit.training import start_run, training_plan
    >>> plan = training_plan(examples=3, batch=3, steps=1, noise_multiplier=2, delta="1e-5")
    >>> run = start_run(plan)
    >>> noisy_mean({"w": jnp.ones((3, 2))}, {"w": jnp.zeros(2)}, run, norm=1)["w"].shape
    (2,)
    >>> run.steps_left
    0
    """
    return noisy_mean_of_parts([(gradients, mask)], params, run, norm=norm, clip=clip)


def noisy_mean_of_parts(
    parts: Iterable[tuple[Any, Any]],
    params: Any,
    run: TrainingRun,
    *,
    norm: Number | None = None,
    clip: WholeClip | None = None,
) -> Any:
    """The same of one batch in parts, pairs of gradients and mask, worked on one at a time.

    If a part fails, no step is taken.

    >>> from lastbit.training import start_run, training_plan
    >>> plan = training_plan(examples=3, batch=3, steps=1, noise_multiplier=2, delta="1e-5")
    >>> rows = jnp.ones((3, 2))
    >>> parts = ((rows[i : i + 1], None) for i in range(3))
    >>> noisy_mean_of_parts(parts, jnp.zeros(2), start_run(plan), norm=1).shape
    (2,)
    """
    own, plan = clip_for(run, norm, clip), run.plan
    # while JAX traces, its own zero is traced too, though all that is passed came from outside
    check_not_traced((params, jnp.zeros(())))
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(params)]
    kinds = [getattr(leaf, "dtype", np.dtype(np.float32)) for leaf in jax.tree.leaves(params)]
    sizes = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
    total, examples = np.zeros(sum(sizes), np.int64), 0
    for gradients, mask in parts:
        examples += int(rows_there(gradients, mask).sum())
        if examples > plan.examples:
            problem = "has more examples than the plan is for"
            raise InvalidParameter("batch", problem=problem, remedy="pass each example once")
        _check_like(gradients, params)
        kinds = [leaf.dtype for leaf in jax.tree.leaves(gradients)]
        total += whole_sum(gradients, own, mask)
    run.take_step()
    noisy = total + rounded_gaussian(len(total), plan.deviation(own))
    share = float(own.step / plan.expected_batch)
    ends = np.cumsum(sizes)[:-1]
    with np.errstate(over="ignore"):  # of binary16
        means = [
            jnp.asarray((part.astype(np.float64) * share).astype(kind).reshape(shape))
            for part, kind, shape in zip(np.split(noisy, ends), kinds, shapes, strict=True)
        ]
    return jax.tree.unflatten(jax.tree.structure(params), means)


def clip_for(run: TrainingRun, norm: Number | None, clip: WholeClip | None) -> WholeClip:
    """The clip of all steps of a run, of which no sum and no noise overflows."""
    check_kind(run, (TrainingRun,), "run", remedy="pass start_run(plan, ...)")
    if (norm is None) == (clip is None):
        remedy = "pass norm=1, say, or clip=WholeClip(norm=1)"
        raise InvalidParameter("norm", problem="or clip, exactly one, is needed", remedy=remedy)
    own: Any = clip if norm is None else WholeClip(norm=norm)
    check_kind(own, (WholeClip,), "clip", remedy="pass WholeClip(norm=1)")
    if jax.process_count() > 1:  # each would take steps, and add noise, of its own
        problem = "would be several, one in each process of JAX"
        raise InvalidParameter("run", problem=problem, remedy="train in one process")
    checked: WholeClip = own
    checked.check_batch(run.plan.examples)
    check_deviation(run.plan.deviation(checked))
    return checked


def _check_like(gradients: Any, params: Any) -> None:
    """Refuse gradients of which rows may not be examples: means of a batch, or of other arrays."""
    same = jax.tree.structure(gradients) == jax.tree.structure(params)
    rows, leaves = jax.tree.leaves(gradients), jax.tree.leaves(params)
    if not same or any(r.shape[1:] != np.shape(p) for r, p in zip(rows, leaves, strict=True)):
        problem = "are not like the parameters, with an axis of examples in front"
        remedy = "pass those of per_example_gradients"
        raise InvalidParameter("gradients", problem=problem, remedy=remedy)
