"""The kernels' launches: blocks, and which device they go to."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lastbit.training.gpu import gaussian
from lastbit.training.gpu.constants import Constants
from lastbit.training.gpu.decision import DRAWS

MOST_NUMBERS = 1 << 30
"""In one launch, under one key: the kernel counts places in int32."""
_WARPS, _LANES = 4, 128
_MOST_INTERPRETED = 14
_OPEN = 255
_TOGETHER = 8


def on_device_of(tensor: torch.Tensor) -> AbstractContextManager[Any]:
    """Launches inside go to the tensor's device, and not to the current one."""
    return torch.cuda.device(tensor.device) if tensor.is_cuda else nullcontext()


def add_certain(
    key: NDArray[np.uint32], sums: torch.Tensor, constants: Constants, *, narrow: bool = False
) -> torch.Tensor:
    """Add to a flat tensor what the kernel is certain of; marks of what it left open, eight a byte.

    The marks begin as "open", so that what no kernel wrote is open too. Behind them are zeros, up
    to a multiple of eight bytes.
    """
    count = sums.numel()
    lanes = -(-count // DRAWS)
    marks = torch.full(
        (-(-lanes // _TOGETHER) * _TOGETHER,), _OPEN, dtype=torch.uint8, device=sums.device
    )
    marks[lanes:] = 0
    # a CPU is slow at the start of each operation, so it takes many lanes at a time
    block = _LANES if sums.is_cuda else 1 << min(_MOST_INTERPRETED, (lanes - 1).bit_length())
    gaussian.noise[(-(-lanes // block),)](
        sums, marks, count, lanes, *key.view(np.int32).tolist(), *constants.patterns,
        narrow=narrow, block=block, num_warps=_WARPS, enable_fp_fusion=False,
    )  # fmt: skip
    return marks


def lanes_of(marks: torch.Tensor) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The lanes with something open, and their marks: eight lanes at a time are looked at."""
    groups = torch.nonzero(marks.view(torch.int64)).view(-1)
    some = marks.view(-1, _TOGETHER)[groups].cpu().numpy()
    group, within = np.nonzero(some)
    return groups.cpu().numpy()[group] * _TOGETHER + within, some[group, within]
