"""The noisy mean as a transformation of optax: the first of a chain, and the one that is private.

Law      `update` is one `noisy_mean`; the state is empty, so that no checkpoint holds noise, sums
         or a count: steps are counted by the run
Theorem  that of `mean.py`; what stands after it in a chain is post-processing
Differs  what would pass some gradients by, or call it while something is compiled, is refused
Checked  tests/training/test_jax_steps.py
"""

from __future__ import annotations

from typing import Any

import jax
import optax

from lastbit.errors import InvalidParameter
from lastbit.exact import Number
from lastbit.training.arrays.mean import clip_for, noisy_mean
from lastbit.training.clipping import WholeClip
from lastbit.training.run import TrainingRun


def exact_mean(
    run: TrainingRun, *, norm: Number | None = None, clip: WholeClip | None = None
) -> optax.GradientTransformationExtraArgs:
    """Per-example gradients in, their noisy mean out: each `update` takes a step of the run.

    Put it first into `optax.chain`. `update(gradients, state, params, mask=mask)` needs the
    parameters, and the mask if the batch was padded. Call it outside of `jit`.

    >>> from lastbit.training import start_run, training_plan
    >>> import jax.numpy as jnp
    >>> plan = training_plan(examples=3, batch=3, steps=1, noise_multiplier=2, delta="1e-5")
    >>> optimizer = optax.chain(exact_mean(start_run(plan), norm=1), optax.adam(0.01))
    >>> params = {"w": jnp.zeros(2)}
    >>> updates, _ = optimizer.update({"w": jnp.ones((3, 2))}, optimizer.init(params), params)
    >>> updates["w"].shape
    (2,)
    """
    own = clip_for(run, norm, clip)

    def initial(_: Any) -> optax.EmptyState:
        return optax.EmptyState()

    def update(
        updates: Any, _: Any, params: Any = None, *, mask: Any = None, **__: Any
    ) -> tuple[Any, optax.EmptyState]:
        if params is None:
            remedy = "pass update(gradients, state, params)"
            raise InvalidParameter("params", problem="are missing", remedy=remedy)
        if any(map(_is_gap, jax.tree.leaves(updates, is_leaf=_is_gap))):
            problem = "are masked, and some would pass without noise"
            remedy = "mask what comes after, or differentiate by what is trained"
            raise InvalidParameter("gradients", problem=problem, remedy=remedy)
        return noisy_mean(updates, params, run, clip=own, mask=mask), optax.EmptyState()

    return optax.GradientTransformationExtraArgs(initial, update)


def _is_gap(node: object) -> bool:
    return isinstance(node, optax.MaskedNode)
