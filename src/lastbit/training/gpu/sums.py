"""Sums of clipped gradients on a CUDA device: read once, checked exactly, added only if right.

Law      that of `lastbit.training.clipping` for rows whose whole numbers k = trunc(g f) have
         k_1**2 + ... + k_d**2 <= D**2: c = k. Where that is not so for an example, nothing is added
         and the caller takes the slower way, which shortens it
Theorem  if `add_whole` says yes, every total has grown by the sum of one vector for each example,
         of whole numbers, of length at most D, and a function of that example and its factor alone;
         if it says no, no total has changed
Proof    The kernel's sums and squares are exact, and about the same whole numbers (`clipping.py`).
         The squares of a gradient in several tensors add up in the same two counters, which are
         compared with D**2 as integers; only then are the sums added to the totals. A row's k come
         from its own numbers and factor, by operations on single numbers, in a precision that the
         types and the caller fix.  []
Differs  floats choose the factors; whatever these are, the theorem holds
Checked  tests/training/gpu/test_sums.py
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lastbit.errors import InvalidParameter
from lastbit.training.gpu import clipping
from lastbit.training.gpu.launch import on_device_of

MOST_BOUND = 1 << 30
_FEW_BOUND = 1 << 26
MOST_COLUMNS = 1 << 31
_ROWS, _COLUMNS, _WARPS = 8, 512, 4  # the fastest of eleven on an H200


def add_whole(
    rows: Sequence[Tensor],
    factors: Tensor,
    totals: Sequence[Tensor],
    *,
    bound: int,
    double: bool = False,
) -> bool:
    """Add trunc(g f) of every example to the totals, if each is no longer than the bound.

    `rows` are matrices of floats with a row for each example, `factors` a float64 for each, 0 where
    the example shall give nothing; `totals` are int64, one for each matrix, as long as its rows.
    Products are formed in binary32, or in binary64 if the rows are so or if `double` says so, for a
    clip whose factors leave binary32. That may hang on nothing else: if one example decided about
    the products of the others, its absence would move the sum by more than the bound.
    """
    _check(rows, factors, totals, bound)
    low = torch.zeros(len(factors), dtype=torch.int64, device=factors.device)
    high = torch.zeros_like(low)
    single = factors.float()
    sums = []
    with on_device_of(factors):
        for part in rows:
            wide = double or part.dtype == torch.float64
            sums.append(torch.empty(part.shape[1], dtype=torch.int64, device=part.device))
            if part.shape[1]:
                clipping.add_whole_rows[(-(-part.shape[1] // _COLUMNS),)](
                    part, part.stride(0), part.shape[1], len(part),
                    factors if wide else single, sums[-1], low, high, bound,
                    double=wide, few=bound <= _FEW_BOUND, together=_ROWS,
                    block=_COLUMNS, num_warps=_WARPS, enable_fp_fusion=False,
                )  # fmt: skip
    if _any_above(low, high, bound**2):
        return False
    for total, summed in zip(totals, sums, strict=True):
        total.add_(summed.view(total.shape))
    return True


def _any_above(low: Tensor, high: Tensor, most: int) -> bool:
    """Whether high 2**32 + low is above a whole number below 2**62, in any place."""
    high = high + (low >> 32)
    low = low & 0xFFFFFFFF
    top = most >> 32
    above = (high > top) | ((high == top) & (low > (most & 0xFFFFFFFF)))
    return bool(above.any())


def _check(rows: Sequence[Tensor], factors: Tensor, totals: Sequence[Tensor], bound: int) -> None:
    if not 1 <= bound <= MOST_BOUND:
        raise InvalidParameter("bound", problem="is not in 1 .. 2**30", remedy="pass 2**24, say")
    fits = len(rows) == len(totals) and all(
        part.dim() == 2
        and part.dtype.is_floating_point
        and part.shape[0] == len(factors)
        and part.shape[1] == total.numel()
        and (part.stride(1) == 1 or part.shape[1] <= 1)
        and total.dtype == torch.int64
        and part.device == total.device == factors.device
        for part, total in zip(rows, totals, strict=False)
    )
    wide = sum(total.numel() for total in totals)
    if not fits or factors.dtype != torch.float64 or factors.dim() != 1 or wide >= MOST_COLUMNS:
        problem = "do not fit their factors and totals"
        remedy = "pass matrices of floats with a row for each factor and a total for each"
        raise InvalidParameter("rows", problem=problem, remedy=remedy)
