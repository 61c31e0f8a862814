"""Whole gradients of binary32 on a processor: cut, measured and added in a few quick readings.

Law      that of `lastbit.training.clipping` for rows whose k = trunc(g f), the product in binary32,
         are *certain*: c = k. Rows that are not are left out, for the caller to take the slower way
Theorem  for a bound D <= 2**24 the totals are the exact sum of the k of the certain rows, each of
         which has k_1**2 + ... + k_d**2 <= D**2. Whether a row is certain depends on it alone
Premise  the processor's sums and products of binary32 are *faithful*: each gives one of the two
         floats around the true value, or infinity or a NaN beyond all floats. It may add in any
         order, fuse, and be more precise. `is_faithful` tests it before the first use
Proof    Let s be the products as they lie in memory, however they came about. (1) *Certain rows are
         short.* They are cut in runs of 256 columns; q is what the library says is the sum of
         squares of a run, v = 2**-23. Faithful operations have a relative error of at most v, as
         none of what matters here underflows: numbers below 1 in size give k = 0, and they may
         only make sums larger. So q >= (1 - v)**257 sum s_j**2, over the s_j of size 1 and more: a
         square, and at most 256 sums of numbers from 0 up. The runs are added in binary64, whose
         error is far smaller: fewer than 2**31 runs lose less than a share 2**-21. Then
         sum k_j**2 <= sum s_j**2 <= Q / ((1 - v)**257 (1 - 2**-21)) <= Q (1 + 2**-14), as k_j is
         s_j without its fraction. A row is certain if Q <= D**2 (1 - 2**-14), and if Q is not a
         number it is not. (2) *Sums are exact.* In a certain row |k_j| <= D, so no conversion to
         int32 is out of range. So many rows are added as int32 that rows times D is below 2**31,
         and what they give as int64. Rows that are left out are zeros: if a row turns out not to
         be certain all is thrown away and done again without it; the sums that count are those of
         the very numbers that were measured. (3) *By itself.* Products are those of single
         numbers, and q that of the row's own run.  []
Checked  tests/training/test_quick.py: against the slower way, row by row and at the edges
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np
import torch
from torch import Tensor

from lastbit.training.clipping import WholeClip

MOST_BOUND = 1 << 24
CERTAIN = 1 - 2.0**-14
"""Of the square of the bound: what the computed sum of squares may be."""
_RUN = 256
_PIECE = 1 << 17  # numbers that are worked on at a time: half a megabyte stays in a cache
_WIDE = 1 << 13
_INT32_SAFE = (1 << 31) - 1

Slice = tuple[int, int, int]
"""Of which tensor, from which column to which."""


def is_suitable(rows: Sequence[Tensor], kind: torch.dtype, clip: WholeClip) -> bool:
    """Whether the theorem is about these rows; by types and the clip, as no example may decide."""
    ordinary = kind == torch.float32 and all(part.device.type == "cpu" for part in rows)
    return ordinary and clip.bound <= MOST_BOUND and is_faithful()


def certain_sums(
    rows: Sequence[Tensor], factor: Tensor, certain: Tensor, clip: WholeClip
) -> tuple[list[Tensor], Tensor]:
    """The sum of the whole gradients of certain rows, for every tensor; and which these are.

    Only rows for which `certain` says so are looked at; the answer says so of no others.
    """
    share = factor.to(torch.float32)[:, None]
    while True:
        sums, squares = _sums(rows, share, certain, clip)
        answer = certain & (squares <= clip.bound**2 * CERTAIN)
        if bool((answer == certain).all()):
            return sums, certain
        certain = answer


def _sums(
    rows: Sequence[Tensor], share: Tensor, certain: Tensor, clip: WholeClip
) -> tuple[list[Tensor], Tensor]:
    """The sum of all rows but those that are left out, and the sum of squares of each."""
    count, most = len(share), _INT32_SAFE // clip.bound
    left = (~certain).nonzero().flatten()
    blocks = _blocks([part.shape[1] for part in rows])
    ends = [0, *accumulate(_runs(block) for block in blocks)]
    squares = np.empty((count, ends[-1]), np.float32)
    room = torch.empty(max(_PIECE, _WIDE + _RUN), dtype=torch.float32)
    sums = [torch.empty(part.shape[1], dtype=torch.int64) for part in rows]
    for block, (begin, end) in zip(blocks, pairwise(ends), strict=True):
        wide, runs = _width(block), end - begin
        at_once = max(1, min(_PIECE // (runs * _RUN), most, count))
        matrix = room[: at_once * runs * _RUN].view(at_once, runs * _RUN)
        matrix[:, wide:] = 0.0
        pieces = zip(
            share.split(at_once),
            *(rows[i][:, start:stop].split(at_once) for i, start, stop in block),
            strict=True,
        )
        outs = matrix.split(
            [stop - start for _, start, stop in [*block, (0, wide, runs * _RUN)]], 1
        )
        total = torch.zeros(runs * _RUN, dtype=torch.int64)
        fresh = torch.zeros(runs * _RUN, dtype=torch.int32)
        first = added = 0
        for factors, *parts in pieces:
            few = len(factors)
            for part, out in zip(parts, outs, strict=False):
                torch.mul(part, factors, out=out[:few])
            if len(left):
                matrix[left[(left >= first) & (left < first + few)] - first] = 0.0
            _measure(matrix[:few], squares[first : first + few, begin:end])
            whole = matrix[:few].view(torch.int32).copy_(matrix[:few])  # each in its own four bytes
            if added + few > most:
                total += fresh
                fresh.zero_()
                added = 0
            fresh += whole.sum(dim=0, dtype=torch.int32)
            added += few
            first += few
        total += fresh
        for (i, start, stop), own in zip(
            block, total.split([o.shape[1] for o in outs]), strict=False
        ):
            sums[i][start:stop] = own
    return sums, torch.from_numpy(squares.sum(axis=1, dtype=np.float64))


def _measure(matrix: Tensor, squares: np.ndarray) -> None:
    """Write about the sum of squares of each run of each row."""
    runs = matrix.numpy().reshape(*squares.shape, _RUN)
    with np.errstate(all="ignore"):
        np.vecdot(runs, runs, out=squares)


def _width(block: Sequence[Slice]) -> int:
    return sum(stop - start for _, start, stop in block)


def _runs(block: Sequence[Slice]) -> int:
    return -(-_width(block) // _RUN)


def _blocks(widths: Sequence[int]) -> list[list[Slice]]:
    """All columns, in blocks of about equal work: small tensors together, large ones in parts."""
    blocks: list[list[Slice]] = []
    block: list[Slice] = []
    free = _WIDE
    for i, width in enumerate(widths):
        start = 0
        while start < width:
            stop = min(width, start + free)
            block.append((i, start, stop))
            free -= stop - start
            start = stop
            if not free:
                blocks.append(block)
                block, free = [], _WIDE
    return [*blocks, block] if block else blocks


@lru_cache(maxsize=1)
def is_faithful() -> bool:
    """Whether the processor does what the theorem needs, as far as a known answer can tell.

    >>> is_faithful()
    True
    """
    ends = torch.tensor([2.75, -2.75, 0.999, -0.999, 2.0**24, -(2.0**24), 2.0**23 + 1, 1e-45])
    numbers = ends.repeat(40)
    numbers.view(torch.int32).copy_(numbers)
    whole = numbers.view(torch.int32)
    if whole.tolist() != [2, -2, 0, 0, 1 << 24, -(1 << 24), (1 << 23) + 1, 0] * 40:
        return False
    if whole[:80].view(10, 8).sum(dim=0, dtype=torch.int32)[4:6].tolist() != [10 << 24, -10 << 24]:
        return False
    k = (np.arange(8 * _RUN, dtype=np.int64) * 2654435761 % (1 << 24)).reshape(8, _RUN)
    k[0] >>= np.arange(_RUN) % 25
    k[1] |= (1 << 24) - 1
    squares = np.empty((8, 1), np.float32)
    _measure(torch.from_numpy(k.astype(np.float32)), squares)
    true = (k * k).astype(np.float64).sum(axis=1)
    return bool((abs(squares[:, 0] - true) <= true * 2.0**-15).all())
