"""Exact laws of rounded noise in binary16, for all inputs, outputs and uniforms at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb

from lastbit.exact.ball import ends, working_precision

HALF = np.float16


@cache
def uniforms() -> np.ndarray:
    """Every binary16 from the least normal number up to below 1."""
    return np.arange(0x0400, 0x3C00, dtype=np.uint16).view(HALF)


@cache
def logarithms() -> np.ndarray:
    """Correctly rounded: both ends of a ball round to the same binary16."""
    rounded = []
    with working_precision(120):
        for u in uniforms().tolist():
            low, high = (HALF(float(end)) for end in ends(arb(u).log()))
            assert low == high
            rounded.append(low)
    return np.array(rounded, HALF)


def inputs(bound: np.float16) -> np.ndarray:
    magnitudes = np.arange(0, 0x7C00, dtype=np.uint16).view(HALF)
    magnitudes = magnitudes[magnitudes <= bound]
    return np.concatenate([-magnitudes[:0:-1], magnitudes])


def first_index(holds: Any, size: int, count: int) -> np.ndarray:
    """For each of `size` inputs the least index at which a condition, once true, stays true."""
    low, high = np.zeros(size, int), np.full(size, count)
    while (low < high).any():
        middle = (low + high) // 2
        true = holds(np.minimum(middle, count - 1))
        high = np.where((low < high) & true, middle, high)
        low = np.where((low < high) & ~true, middle + 1, low)
    return low


def laws_of(
    x: np.ndarray,
    noise: np.ndarray,
    outputs: list[float],
    released: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> list[np.ndarray]:
    """For each output its probability times 2 for every input; exact in doubles.

    The noise rises with u and is below 0; it is added, or taken away, with a fair sign.
    """
    below = np.concatenate([[0.0], uniforms()[1:].astype(float), [1.0]])  # P(index < i)
    reached = [np.full(len(x), 2.0)]
    for output in outputs[1:]:
        up = first_index(lambda i, o=output: released(x, noise[i]) >= o, len(x), len(noise))
        down = first_index(lambda i, o=output: released(x, -noise[i]) < o, len(x), len(noise))
        reached.append(1 - below[up] + below[down])
    reached.append(np.zeros(len(x)))
    return [one - two for one, two in pairwise(reached)]


def greatest_within(x: np.ndarray, values: np.ndarray, apart: float = 1) -> np.ndarray:
    """For each input the greatest value among inputs so far apart (a table of powers of two)."""
    first, last = np.searchsorted(x, x - apart, "left"), np.searchsorted(x, x + apart, "right")
    tables = [values]
    while 2 ** len(tables) <= len(x):
        half = 2 ** (len(tables) - 1)
        tables.append(np.maximum(tables[-1][:-half], tables[-1][half:]))
    level = np.frexp(last - first)[1] - 1
    found = np.empty(len(x))
    for k in np.unique(level):
        at = level == k
        found[at] = np.maximum(tables[k][first[at]], tables[k][last[at] - 2**k])
    return found


def worst_losses(x: np.ndarray, laws: list[np.ndarray], apart: float = 1) -> list[float]:
    """The greatest loss of each output over all pairs of inputs at most so far apart.

    Logarithms in doubles are off by far less than what tests compare: parts of 2**-11.
    """
    assert all(p.min() > 0 for p in laws)
    return [float(np.log(greatest_within(x, p, apart) / p).max()) for p in laws]
