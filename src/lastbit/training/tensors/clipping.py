"""`training/clipping.py` for tensors of any float type, on any device: the same law and theorem.

Law      that of `lastbit.training.clipping`, for a gradient that lies in several tensors
Proof    The same, line by line: what floats gave is made an integer and cut to -D..D (`_counts`),
         squares are added exactly up to D**2 (`_squares`), a longer vector is shortened in whole
         numbers by the very same function, and one of which a number is not finite gives 0. The
         integers that were checked are those that are added: nothing is worked out twice.
         Rows of binary32 on a processor go by `quick.py`, which gives the same integers for rows it
         is certain of, under its premise; what it leaves comes here. On CUDA a kernel adds the same
         integers (`gpu/sums.py`: one product of two floats, cut), if no row is too long.  []
Differs  a few examples at a time, so that what is in hand does not grow with the batch
Checked  tests/training/test_tensors.py: by force, and against `clipped_sum`
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lastbit.errors import InvalidParameter, WrongType
from lastbit.training.clipping import INT64_SAFE, SHARE, WholeClip, shortened
from lastbit.training.tensors import quick

_PIECE = 1 << 18  # numbers that are worked on at a time, so that they stay in a cache
_PIECE_ON_DEVICE = 1 << 26
_COLUMNS = 1 << 18
_KERNELS = "lastbit.training.gpu"


def add_clipped(gradients: Sequence[Tensor], totals: Sequence[Tensor], clip: WholeClip) -> None:
    """Add the whole gradient of every example to the totals.

    A gradient is the rows of all tensors together: each is of shape (examples, ...), and its total
    an int64 tensor of the shape of the rest, on the same device. The caller sees to it that batches
    are not too large (`WholeClip.check_batch`).

    >>> total = torch.zeros(2, dtype=torch.int64)
    >>> rows = torch.tensor([[3.0, -4.0], [0.3, 0.4]])
    >>> add_clipped([rows], [total], WholeClip(norm=1, bound=1000))
    >>> total.tolist()
    [898, -400]
    """
    rows = [_rows(gradient) for gradient in gradients]
    if len({len(part) for part in rows}) > 1:
        remedy = "pass tensors with a row for each example"
        raise InvalidParameter("gradients", problem="differ in their examples", remedy=remedy)
    if len(rows) != len(totals):
        remedy = "pass as many as there are totals"
        raise InvalidParameter("gradients", problem="are too few or too many", remedy=remedy)
    for part, total in zip(rows, totals, strict=True):
        if total.dtype != torch.int64 or total.numel() != part.shape[1]:
            problem = "are not tensors of int64 like a gradient"
            remedy = "pass torch.zeros_like(parameter, dtype=torch.int64) for each"
            raise InvalidParameter("totals", problem=problem, remedy=remedy)
    places = [(total.device, total.data_ptr()) for total in totals if total.numel()]
    if len(set(places)) < len(places):  # two parts of one gradient would add up there
        remedy = "pass a tensor of its own for each"
        raise InvalidParameter("totals", problem="name one twice", remedy=remedy)
    if not rows or not len(rows[0]):
        return
    factor, finite = _factors(rows, clip)
    kind = _product_kind(rows, clip)
    if quick.is_suitable(rows, kind, clip):
        sums, certain = quick.certain_sums(rows, factor, finite, clip)
        _add(sums, totals)
        left = finite & ~certain
        if not bool(left.any()):
            return
        rows, factor, finite = [part[left] for part in rows], factor[left], finite[left]
    if rows[0].is_cuda and _add_by_kernel(rows, factor, finite, totals, clip, kind):
        return
    _add(_slow_sums(rows, factor, finite, clip, kind), totals)


def _add(sums: Sequence[Tensor], totals: Sequence[Tensor]) -> None:
    for total, own in zip(totals, sums, strict=True):
        total.add_(own.view(total.shape))


def _add_by_kernel(
    rows: Sequence[Tensor],
    factor: Tensor,
    finite: Tensor,
    totals: Sequence[Tensor],
    clip: WholeClip,
    kind: torch.dtype,
) -> bool:
    """Add all rows by a kernel; whether it did. If not, nothing was added."""
    sums, wide = _kernels(), sum(part.shape[1] for part in rows)
    if sums is None or wide >= sums.MOST_COLUMNS or len({part.device for part in rows}) > 1:
        return False
    near = [
        part if part.stride(1) == 1 or part.shape[1] < 2 else part.contiguous() for part in rows
    ]
    none = torch.zeros_like(factor)
    added: bool = sums.add_whole(
        near,
        torch.where(finite, factor, none),
        totals,
        bound=clip.bound,
        double=kind == torch.float64,
    )
    return added


@cache
def _kernels() -> Any:
    """What needs Triton, if it is there."""
    return (
        import_module(f"{_KERNELS}.sums") if find_spec("triton") and find_spec(_KERNELS) else None
    )


def _slow_sums(
    rows: Sequence[Tensor], factor: Tensor, finite: Tensor, clip: WholeClip, kind: torch.dtype
) -> list[Tensor]:
    """The sum of the whole gradients for every tensor, checked and shortened in whole numbers."""
    blocks = _blocks(rows)
    sums = [
        torch.zeros(sum(part.shape[1] for part in block), dtype=torch.int64, device=block[0].device)
        for block in blocks
    ]
    broken = None if bool(finite.all()) else ~finite
    piece = _PIECE if rows[0].device.type == "cpu" else _PIECE_ON_DEVICE
    at_once = min(max(1, piece // max(1, sum(len(own) for own in sums))), len(rows[0]))
    # made once: to ask for fresh memory for each piece took five times as long as the arithmetic
    rooms = [_Room.of(block, at_once, kind) for block in blocks]
    for start in range(0, len(rows[0]), at_once):
        here = slice(start, start + at_once)
        counts = [
            _counts(block, here, factor, clip, room)
            for block, room in zip(blocks, rooms, strict=True)
        ]
        if broken is not None:
            for count in counts:
                count[broken[here].to(count.device)] = 0
        _shorten(counts, rooms, clip)
        for count, own in zip(counts, sums, strict=True):
            own.add_(count[0] if len(count) == 1 else count.sum(dim=0))
    return [part for own, block in zip(sums, blocks, strict=True) for part in _split(own, block)]


def _blocks(rows: Sequence[Tensor]) -> list[list[Tensor]]:
    """Tensors that are worked on as one matrix: all of them if they are small, else each alone."""
    small = sum(part.shape[1] for part in rows) <= _PIECE
    together = small and len({(part.device, part.dtype) for part in rows}) == 1
    return [list(rows)] if together else [[part] for part in rows]


def _split(own: Tensor, block: Sequence[Tensor]) -> Sequence[Tensor]:
    parts: Sequence[Tensor] = own.split([part.shape[1] for part in block])
    return parts


def _rows(gradient: object) -> Tensor:
    remedy = "pass tensors of floats with a row for each example"
    if not isinstance(gradient, Tensor) or not gradient.dtype.is_floating_point:
        raise WrongType("gradients", problem="are not tensors of floats", remedy=remedy)
    if gradient.layout != torch.strided or not gradient.dim():
        raise InvalidParameter("gradients", problem="are sparse, or no rows", remedy=remedy)
    return gradient.detach().reshape(len(gradient), prod(gradient.shape[1:]))


def _factors(rows: Sequence[Tensor], clip: WholeClip) -> tuple[Tensor, Tensor]:
    """About bound/max(norm, |g|) of each example, and whether its gradient is finite."""
    length = _norms([torch.linalg.vector_norm(part, dim=1, dtype=_kind(part)) for part in rows])
    finite = torch.isfinite(length)
    for i in (~finite).nonzero().flatten().tolist():  # too large for the squares, or not finite
        top = torch.stack([_greatest(part[i]).to(length) for part in rows]).max()
        if torch.isfinite(top):
            own = [
                torch.linalg.vector_norm(part[i].double() / top.to(part.device)) for part in rows
            ]
            length[i] = _norms([norm[None] for norm in own])[0] * top
            finite[i] = True
    return clip.bound * SHARE / length.clamp(min=float(clip.norm)), finite


def _norms(parts: Sequence[Tensor]) -> Tensor:
    if len({(part.device, part.dtype) for part in parts}) > 1:
        parts = [part.to(parts[0].device, torch.float64) for part in parts]
    return torch.linalg.vector_norm(torch.stack(list(parts)).double(), dim=0)


def _greatest(row: Tensor) -> Tensor:
    return row.abs().max().double() if row.numel() else torch.zeros((), dtype=torch.float64)


def _kind(part: Tensor) -> torch.dtype:
    """In what norms are added up: binary16 and bfloat16 would round too coarsely."""
    return torch.float64 if part.dtype == torch.float64 else torch.float32


def _product_kind(rows: Sequence[Tensor], clip: WholeClip) -> torch.dtype:
    """In what products are formed: binary32 unless a gradient's type or the clip is beyond it."""
    single = clip.is_single and all(_kind(part) == torch.float32 for part in rows)
    return torch.float32 if single else torch.float64


class _Room(NamedTuple):
    """Memory for one block: a few gradients, their products, their whole numbers, and squares."""

    gathered: Tensor
    scaled: Tensor
    counts: Tensor
    squares: Tensor

    @classmethod
    def of(cls, block: Sequence[Tensor], rows: int, kind: torch.dtype) -> _Room:
        first, wide = block[0], sum(part.shape[1] for part in block)
        columns = min(wide, _COLUMNS)
        return cls(
            first.new_empty((rows, wide if len(block) > 1 else 0)),
            first.new_empty((rows, wide), dtype=kind),
            first.new_empty((rows, wide), dtype=torch.int64),
            first.new_empty((rows, columns), dtype=torch.int64),
        )


def _counts(
    block: Sequence[Tensor], here: slice, factor: Tensor, clip: WholeClip, room: _Room
) -> Tensor:
    """trunc(g f), cut to -bound..bound as integers: whatever comes in, that much is sure."""
    parts = [part[here] for part in block]
    few = len(parts[0])
    together = parts[0] if len(parts) == 1 else torch.cat(parts, dim=1, out=room.gathered[:few])
    share = factor[here].to(together.device, room.scaled.dtype)[:, None]
    scaled = torch.mul(together, share, out=room.scaled[:few])
    # as floats too, so that no ordinary number is beyond int64; a NaN becomes any integer
    counts = room.counts[:few].copy_(scaled.clamp_(-clip.bound, clip.bound))
    return counts.clamp_(-clip.bound, clip.bound)


def _shorten(counts: Sequence[Tensor], rooms: Sequence[_Room], clip: WholeClip) -> None:
    """Rows of whole numbers up to the bound, in place: those that are too long are shortened."""
    most = clip.bound**2
    sums = [
        _squares(count, most, room.squares).to(counts[0].device)
        for count, room in zip(counts, rooms, strict=True)
    ]
    long = _saturated(torch.stack(sums, dim=1), most) > most
    for i in long.nonzero().flatten().tolist() if bool(long.any()) else ():
        row = torch.cat([count[i].cpu() for count in counts])
        parts = torch.from_numpy(shortened(row.numpy(), clip.bound))
        for count, part in zip(counts, parts.split([c.shape[1] for c in counts]), strict=True):
            count[i] = part.to(count.device)


def _squares(counts: Tensor, most: int, room: Tensor) -> Tensor:
    """The sum of squares of each row: exact up to `most`, and `most` + 1 for all that is more."""
    sums = []
    for part in counts.split(min(INT64_SAFE // most, _COLUMNS), dim=1):
        squared = torch.mul(part, part, out=room[: len(part), : part.shape[1]])
        sums.append(squared.sum(dim=1).clamp_(max=most + 1))
    if not sums:
        return torch.zeros(len(counts), dtype=torch.int64, device=counts.device)
    return _saturated(torch.stack(sums, dim=1), most)


def _saturated(sums: Tensor, most: int) -> Tensor:
    """Rows of numbers up to `most` + 1, added so that what is above stays `most` + 1."""
    run = INT64_SAFE // (most + 1)
    while sums.shape[1] > 1:
        parts = [part.sum(dim=1) for part in sums.split(run, dim=1)]
        sums = torch.stack(parts, dim=1).clamp_(max=most + 1)
    return sums[:, 0]
