"""Gradients made whole, added, and measured, in one reading of them: a Triton kernel.

Law      example i, with the row g of floats and a factor f, gives k = trunc(g f), cut to -D..D, 0
         where f is 0 or the product not a number: a row of whole numbers. `sums` is the sum of the
         rows, and the square of row i is high_i 2**32 + low_i
Theorem  both are exact, whatever floats g and f are, and are about the same whole numbers
Proof    k is an int32 in -D..D, D <= 2**30, by a comparison of integers; only those are worked with
         from there on. Each k is made once, and used for the sum and for the square. Sums: fewer
         than 2**31 rows of numbers up to 2**30 stay below 2**61. Squares: k**2 <= 2**60. In a block
         of at most 2**10 columns, `few` says that D <= 2**26, so that a row's sum of squares in it
         is at most 2**62, and its two halves are added; otherwise the halves of every square. So
         `low` grows by less than 2**32 for each column, and `high` by less; a gradient has fewer
         than 2**31 columns (`sums.py`). Nothing overflows, and integers give one sum in whatever
         order blocks add.  []
Checked  tests/training/gpu/test_sums.py
"""

from __future__ import annotations

import triton
import triton.language as tl


# batches drawn by coins are of all sizes: none is compiled for itself
@triton.jit(do_not_specialize=("examples", "bound"))
def add_whole_rows(
    rows, stride, columns, examples, factors, sums, low, high, bound,
    double: tl.constexpr, few: tl.constexpr, together: tl.constexpr, block: tl.constexpr,
):  # fmt: skip
    """Write the sum of the rows, and add their squares to low and high; a factor 0 gives zeros."""
    column = tl.program_id(0).to(tl.int64) * block + tl.arange(0, block)
    here = tl.arange(0, together).to(tl.int64)
    kind = tl.float64 if double else tl.float32
    most = bound.to(kind)
    total = tl.zeros([block], dtype=tl.int64)
    # several rows at a time: threads wait for each other once for all of them
    for start in range(0, examples, together):
        row = start + here
        real = row < examples
        factor = tl.load(factors + row, mask=real, other=0.0)[:, None]
        at = rows + row[:, None] * stride + column[None, :]
        value = tl.load(at, mask=real[:, None] & (column < columns)[None, :], other=0.0)
        scaled = value.to(kind) * factor
        scaled = tl.where(factor != 0, tl.where(scaled == scaled, scaled, 0.0), 0.0)
        # cut as floats, so that no number is beyond int32; as integers, because nothing is to rest
        # on what floats do
        k = tl.minimum(tl.maximum(scaled, -most), most).to(tl.int32)
        k = tl.minimum(tl.maximum(k, -bound), bound).to(tl.int64)
        total += tl.sum(k, axis=0)
        square = k * k
        if few:
            whole = tl.sum(square, axis=1)
            tl.atomic_add(low + row, whole & 0xFFFFFFFF, mask=real, sem="relaxed")
            tl.atomic_add(high + row, whole >> 32, mask=real, sem="relaxed")
        else:
            lower = tl.sum(square & 0xFFFFFFFF, axis=1)
            tl.atomic_add(low + row, lower, mask=real, sem="relaxed")
            tl.atomic_add(high + row, tl.sum(square >> 32, axis=1), mask=real, sem="relaxed")
    tl.store(sums + column, total, mask=column < columns)
