"""`training/clipping.py` for pytrees of JAX: the same law and theorem, on the host.

Law      that of `lastbit.training.clipping`, for a gradient that lies in several arrays: the c of a
         row is that of its numbers in all arrays side by side; a row that is not there gives 0
Proof    Arrays are copied to the host, in binary32 or, if one of them needs it, binary64: both hold
         each number of the other types. `whole_gradients` makes whole numbers of the copy; those
         of rows that are not there are made 0, and what is left is added.  []
Differs  rows that are not there are clipped too, so that others keep their places: what they hold,
         and whether they are there, is no matter of any other row's last bits
Checked  tests/training/test_jax_arrays.py: by force, and equal to `clipped_sum`
"""

from __future__ import annotations

from math import prod
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, WrongType
from lastbit.training.clipping import WholeClip, whole_gradients

_KINDS = ("bfloat16", "float16", "float32", "float64")
_PIECE = 1 << 18  # numbers that are worked on at a time, so that they stay in a cache


def whole_sum(gradients: Any, clip: WholeClip, mask: Any = None) -> NDArray[np.int64]:
    """The sum of the whole gradients of all rows that are there, in the order of the tree's leaves.

    The caller sees to it that batches are not too large (`WholeClip.check_batch`).

    >>> rows = {"bias": np.array([3.0, 0.3, 7.0]), "line": np.array([[-4.0], [0.4], [7.0]])}
    >>> clip = WholeClip(norm=1, bound=1000)
    >>> whole_sum(rows, clip, np.array([True, True, False])).tolist()
    [898, -400]
    """
    parts, there = _matrices(gradients), rows_there(gradients, mask)
    kind = np.float64 if any(part.dtype == np.float64 for part in parts) else np.float32
    total = np.zeros(sum(part.shape[1] for part in parts), np.int64)
    at_once = max(1, _PIECE // max(1, len(total)))
    for start in range(0, len(there), at_once):
        here = slice(start, start + at_once)
        rows = [part[here] for part in parts]
        together: NDArray[np.floating] = np.concatenate(rows, axis=1, dtype=kind)
        counts = whole_gradients(together, clip)
        counts[~there[here]] = 0
        total += counts.sum(axis=0)
    return total


def rows_there(gradients: Any, mask: Any = None) -> NDArray[np.bool_]:
    """Which rows are there: all of them, without a mask."""
    rows = {len(part) for part in _matrices(gradients)}
    if len(rows) != 1:
        problem = "have no arrays, or they differ in their examples"
        raise InvalidParameter("gradients", problem=problem, remedy="pass a row for each example")
    (count,) = rows
    if mask is None:
        return np.ones(count, np.bool_)
    check_not_traced(mask)
    fits = isinstance(mask, jax.Array | np.ndarray) and mask.shape == (count,)
    if not fits or mask.dtype != np.bool_:
        problem = "is not one truth value for each row"
        raise InvalidParameter("mask", problem=problem, remedy="pass that of batches(...)")
    return np.array(mask)


def check_not_traced(tree: Any) -> None:
    """Refuse what a compiled function, or `vmap`, stands on: its numbers are not there yet.

    Noise that is drawn while a function is traced is compiled into it, and used at every call.
    """
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(tree)):
        problem = "would be traced, and its noise used again"
        remedy = "call it outside of jit, vmap and scan; compile the gradients alone"
        raise InvalidParameter("noisy_mean", problem=problem, remedy=remedy)


def _matrices(gradients: Any) -> list[NDArray[Any]]:
    """Each array on the host, a row an example."""
    check_not_traced(gradients)
    leaves = jax.tree.leaves(gradients)
    remedy = "pass bfloat16, float16, float32 or float64, with a row for each example"
    for leaf in leaves:
        if not isinstance(leaf, jax.Array | np.ndarray) or str(leaf.dtype) not in _KINDS:
            raise WrongType("gradients", problem="are not arrays of floats", remedy=remedy)
        if not leaf.ndim:
            raise InvalidParameter("gradients", problem="have no rows", remedy=remedy)
    return [np.asarray(leaf).reshape(len(leaf), prod(leaf.shape[1:])) for leaf in leaves]
