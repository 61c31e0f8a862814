"""Gradients of single examples by `vmap` of `grad`, and whether they are what the theorem needs.

Law      row i is the gradient of the loss on example i alone: the loss sees one example
Theorem  `training/clipping.py` needs that the numbers of row i do not depend on what other rows
         hold, to the last bit. `check_isolated` replaces an example and compares all other rows: it
         accuses with certainty, and does not prove
Differs  rows may depend, in their last bits, on how many there are: each size of a batch is
         compiled apart, and the theorem allows it
Checked  tests/training/test_jax_examples.py
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lastbit.errors import InvalidParameter

_ENEMIES = (1.0, 1000.0, float("nan"))


def per_example_gradients(loss: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled function of parameters and a batch: the gradient of each example.

    `loss(params, *example)` is that of one example, without an axis of examples, as a scalar.

    >>> rows = per_example_gradients(lambda w, x: w * x)
    >>> rows(jnp.array(1.0), jnp.array([2.0, 5.0])).tolist()
    [2.0, 5.0]
    """
    alone = jax.grad(loss)

    def gradients(params: Any, *batch: Any) -> Any:
        return jax.vmap(alone, in_axes=(None, *(0 for _ in batch)))(params, *batch)

    compiled: Callable[..., Any] = jax.jit(gradients)
    return compiled


def check_isolated(gradients: Callable[..., Any], *batch: Any) -> None:
    """Refuse gradients of which one example changes those of another.

    `gradients(*batch)` gives a tree of arrays with a row for each example; of a batch of one
    nothing can be said. Call it once for gradients of your own: no step does.

    >>> check_isolated(lambda x: x - x.mean(axis=0), jnp.array([[2.0], [5.0]]))
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: model lets one example change the gradient of another; use ...
    """
    count = len(jax.tree.leaves(batch)[0])
    if count < 2:
        return
    before = _numbers(gradients(*batch))
    for place in {0, count // 2, count - 1}:
        for enemy in _ENEMIES:
            after = _numbers(gradients(*_replaced(batch, place, enemy)))
            for one, other in zip(before, after, strict=True):
                others = np.arange(count) != place
                if not np.array_equal(one[others], other[others], equal_nan=True):
                    raise InvalidParameter(
                        "model",
                        problem="lets one example change the gradient of another",
                        remedy="use group or layer normalisation instead of batch normalisation",
                    )


def _numbers(tree: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(leaf).astype(np.float64) for leaf in jax.tree.leaves(tree)]


def _replaced(batch: Any, place: int, enemy: float) -> Any:
    """The batch with another example in this place: the next one, if it has floats times this."""

    def other(part: Any) -> Any:
        copy = np.array(part)
        copy[place] = copy[(place + 1) % len(copy)]
        if jnp.issubdtype(copy.dtype, jnp.floating):
            copy[place] *= copy.dtype.type(enemy)
        return jnp.asarray(copy)

    return jax.tree.map(other, batch)
