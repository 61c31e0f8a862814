"""The snapping mechanism in binary16, for tests that run all of its inputs."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from lastbit.errors import InvalidParameter, PrecisionExhausted
from lastbit.exact import ln_each
from lastbit.verify.running.exhaustive import Halves


def snapped_binary16(
    value: Halves, u: Halves, sign: int, *, epsilon: float, bound: float
) -> Halves:
    """`lastbit.mechanisms.snapping.snapped` in binary16: every step rounded to 11 bits.

    Theorem  numpy rounds a binary32 result once more to binary16; for + - * / that is the rounding
             of the exact result, since 24 >= 2 * 11 + 2. The logarithm is a table
    Checked  tests/verify/test_exhaustive.py

    >>> half = np.array([0.5], np.float16)
    >>> snapped_binary16(half, half, -1, epsilon=1.0, bound=4.0).tolist()
    [1.0]
    """
    loss, wall = np.float16(epsilon), np.float16(bound)
    if float(loss) != epsilon or float(wall) != bound:  # numpy would compare them in binary16
        raise InvalidParameter("epsilon", problem="or bound is not a binary16", remedy="round it")
    grid = np.float16(np.ldexp(1.0, 1 - int(np.frexp(epsilon)[1])))
    noise = np.float16(sign) * (logarithms()[u.view(np.uint16)] / loss)
    near = np.rint((np.clip(value, -wall, wall) + noise) / grid) * grid + np.float16(0)
    snapped: Halves = np.clip(near, -wall, wall)
    return snapped


@lru_cache(maxsize=1)
def logarithms() -> Halves:
    """Ln of every positive binary16, correctly rounded to binary16; NaN elsewhere.

    Theorem  the midpoints between binary16 numbers are doubles. A real below one has a correctly
             rounded double not above it: only a double on a midpoint would not decide
    """
    table = np.full(1 << 16, np.nan, np.float16)
    exact = ln_each(np.arange(1, 0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64))
    table[1:0x7C00] = exact.astype(np.float16)
    low_bits = exact.view(np.int64) & ((1 << 42) - 1)
    if (low_bits == 1 << 41).any():
        raise PrecisionExhausted("a logarithm lies too close to a midpoint of binary16")
    return table
