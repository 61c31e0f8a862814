"""Gradients made whole, added, and measured, in one reading of them: a Triton kernel.

Law      example i, with the row g of floats and a factor f, gives k = trunc(g f), cut to -D..D, 0
         where f is 0 or the product not a number: a row of whole numbers; `sums` is the sum of the rows, and the square of row i is
         high_i 2**32 + low_i
Theorem  both are exact, whatever floats g and f are, and are about the same whole numbers
Proof    k is an int32 in -D..D, D <= 2**30, by a comparison of integers; only those are worked with
         from there on. Each k is made once, and used for the sum and for the square. Sums: fewer
         than 2**31 rows of numbers up to 2**30 stay below 2**61. Squares: k**2 <= 2**60. In a block
         of at most 2**10 columns, `FEW` says that D <= 2**26, so that the sum of squares is at most
         2**62; otherwise the halves of the squares are added, to less than 2**42 each. What is
         added to `low` is below 2**42, to `high` below 2**40, and there are below 2**21 blocks of
         2**10 columns, or more of fewer and less. So nothing overflows, and integers give one sum
         in whatever order blocks add.  []
Checked  tests/training/gpu/test_sums.py
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add_whole_rows(
    rows, stride, columns, examples, factors, sums, low, high, bound,
    DOUBLE: tl.constexpr, FEW: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the sum of the rows, and add their squares to low and high; a factor 0 gives zeros."""
    column = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    real = column < columns
    kind = tl.float64 if DOUBLE else tl.float32
    most = bound.to(kind)
    total = tl.zeros([BLOCK], dtype=tl.int64)
    at = rows + column
    for i in range(examples):
        factor = tl.load(factors + i)
        scaled = tl.load(at, mask=real, other=0.0).to(kind) * factor
        at += stride
        scaled = tl.where(factor != 0, tl.where(scaled == scaled, scaled, 0.0), 0.0)
        # cut as floats, so that no number is beyond int32; as integers, because nothing is to rest
        # on what floats do
        k = tl.minimum(tl.maximum(scaled, -most), most).to(tl.int32)
        k = tl.minimum(tl.maximum(k, -bound), bound).to(tl.int64)
        total += k
        square = k * k
        if FEW:
            whole = tl.sum(square, axis=0)
            tl.atomic_add(low + i, whole & 0xFFFFFFFF, sem="relaxed")
            tl.atomic_add(high + i, whole >> 32, sem="relaxed")
        else:
            tl.atomic_add(low + i, tl.sum(square & 0xFFFFFFFF, axis=0), sem="relaxed")
            tl.atomic_add(high + i, tl.sum(square >> 32, axis=0), sem="relaxed")
    tl.store(sums + column, total, mask=real)
