"""`training/clipping.py` for tensors of any float type, on any device: the same law and theorem.

Law      that of `lastbit.training.clipping`, for a gradient that lies in several tensors
Proof    The same, line by line: what floats gave is made an integer and cut to -D..D (`_counts`),
         squares are added exactly up to D**2 (`_squares`), a longer vector is shortened in whole
         numbers by the very same function, and one of which a number is not finite gives 0. The
         integers that were checked are those that are added: nothing is worked out twice.  []
Differs  a few examples at a time, so that what is in hand does not grow with the batch
Checked  tests/training/test_tensors.py: by force, and against `clipped_sum`
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from lastbit.errors import InvalidParameter, WrongType
from lastbit.training.clipping import INT64_SAFE, SHARE, WholeClip, shortened

_PIECE = 1 << 19  # numbers that are worked on at a time: 4 MB of integers
_PIECE_ON_DEVICE = 1 << 26
_COLUMNS = 1 << 18


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
    if not rows or not len(rows[0]):
        return
    factor, finite = _factors(rows, clip)
    wide = sum(part.shape[1] for part in rows)
    piece = _PIECE if rows[0].device.type == "cpu" else _PIECE_ON_DEVICE
    at_once = max(1, piece // max(1, wide))
    for start in range(0, len(rows[0]), at_once):
        here = slice(start, start + at_once)
        counts = _whole([part[here] for part in rows], factor[here], finite[here], clip)
        for count, total in zip(counts, totals, strict=True):
            summed = count[0] if len(count) == 1 else count.sum(dim=0, dtype=torch.int64)
            total.add_(summed.view(total.shape))


def _rows(gradient: object) -> Tensor:
    if not isinstance(gradient, Tensor) or not gradient.dtype.is_floating_point:
        remedy = "pass tensors of floats with a row for each example"
        raise WrongType("gradients", problem="are not tensors of floats", remedy=remedy)
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
    together = [part.to(parts[0].device, torch.float64) for part in parts]
    return torch.linalg.vector_norm(torch.stack(together), dim=0)


def _greatest(row: Tensor) -> Tensor:
    return row.abs().max().double() if row.numel() else torch.zeros((), dtype=torch.float64)


def _kind(part: Tensor) -> torch.dtype:
    """In what products are formed: binary16 and bfloat16 would round too coarsely."""
    return torch.float64 if part.dtype == torch.float64 else torch.float32


def _whole(rows: Sequence[Tensor], factor: Tensor, finite: Tensor, clip: WholeClip) -> list[Tensor]:
    """The c of the theorem for a few examples: int32, in as many tensors as the gradient."""
    single = bool(((factor > 1e-30) & (factor < 1e30)).all())
    counts = [_counts(part, factor, clip, single=single) for part in rows]
    if not bool(finite.all()):
        for count in counts:
            count[~finite.to(count.device)] = 0
    most = clip.bound**2
    sums = [_squares(count, most).to(counts[0].device) for count in counts]
    for i in (_saturated(torch.stack(sums, dim=1), most) > most).nonzero().flatten().tolist():
        row = torch.cat([count[i].to("cpu", torch.int64) for count in counts])
        parts = torch.from_numpy(shortened(row.numpy(), clip.bound))
        for count, part in zip(counts, parts.split([c.shape[1] for c in counts]), strict=True):
            count[i] = part.to(count.device, count.dtype)
    return counts


def _counts(part: Tensor, factor: Tensor, clip: WholeClip, *, single: bool) -> Tensor:
    """trunc(g f), cut to -bound..bound as integers: whatever comes in, that much is sure."""
    kind = _kind(part) if single else torch.float64
    scaled = part.to(kind) * factor.to(part.device, kind)[:, None]
    # cut as floats first, so that no ordinary number is beyond int32; as integers once more,
    # because a NaN becomes any of them
    counts = scaled.clamp_(-clip.bound, clip.bound).to(torch.int32)
    return counts.clamp_(-clip.bound, clip.bound)


def _squares(counts: Tensor, most: int) -> Tensor:
    """The sum of squares of each row: exact up to `most`, and `most` + 1 for all that is more."""
    run = min(INT64_SAFE // most, _COLUMNS)
    sums = []
    for part in counts.split(run, dim=1):
        wide = part.to(torch.int64)
        sums.append((wide * wide).sum(dim=1).clamp_(max=most + 1))
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
