"""Rounded Gaussian noise where the sum lies: by a kernel on CUDA, else by the processor, copied."""

from __future__ import annotations

from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec

import torch

from lastbit.training.noise import rounded_gaussian

_KERNELS = "lastbit.training.gpu"


def whole_noise(size: int, deviation: Fraction, device: torch.device) -> torch.Tensor:
    """So many draws of round(deviation Z), int64; of one law, wherever they are made."""
    if device.type == "cuda" and find_spec("triton") and find_spec(_KERNELS):
        kernels = import_module(f"{_KERNELS}.noise")
        drawn: torch.Tensor = kernels.rounded_gaussian_on(device, (size,), deviation)
        return drawn
    return torch.from_numpy(rounded_gaussian(size, deviation)).to(device)
