"""x y + z of binary64, rounded once: for interpreters of Triton that round twice.

Theorem  Boldo and Melquiond 2008: x y = uh + ul and sums without error, the small parts added with
         rounding to odd, then one addition, give the nearest number to x y + z
Differs  nothing may under- or overflow, and there are no NaN
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_SPLIT = 2.0**27 + 1


def fused(x: Floats, y: Floats, z: Floats) -> Floats:
    high, low = _product(x, y)
    sum_high, sum_low = _sum(z, low)
    top, rest = _sum(high, sum_high)
    return top + _sum_to_odd(sum_low, rest)


def _sum(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _halves(x: Floats) -> tuple[Floats, Floats]:
    scaled = x * _SPLIT
    high = scaled - (scaled - x)
    return high, x - high


def _product(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    product = x * y
    (xh, xl), (yh, yl) = _halves(x), _halves(y)
    return product, ((xh * yh - product) + xh * yl + xl * yh) + xl * yl


def _sum_to_odd(x: Floats, y: Floats) -> Floats:
    """The sum if it is a float; else the one of its two neighbours whose last bit is 1."""
    total, error = _sum(x, y)
    bits = np.ascontiguousarray(total).view(np.int64)
    step = np.where((error > 0) == (total > 0), 1, -1)  # away from zero, or towards it
    return np.where((error != 0) & (bits & 1 == 0), bits + step, bits).view(np.float64)


def interpret_fused(interpreter: Any) -> None:
    """Make an interpreter of Triton that rounds products and sums one by one round once."""
    handle, builder = interpreter.TensorHandle, interpreter.InterpreterBuilder
    kind = interpreter.tl.float64
    one = handle(np.array([1 + 2.0**-30]), kind)
    square = handle(-(one.data * one.data), kind)
    if builder().create_fma(one, one, square).data[0] != 0:
        return

    def create_fma(self: Any, x: Any, y: Any, z: Any) -> Any:
        numbers = np.broadcast_arrays(x.data, y.data, z.data)
        assert all(part.dtype == np.float64 for part in numbers)
        return handle(fused(*numbers), z.dtype.scalar)

    builder.create_fma = create_fma
