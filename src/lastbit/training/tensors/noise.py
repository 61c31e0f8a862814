"""Rounded Gaussian noise where the sum lies: drawn by the processor, copied to other devices."""

from __future__ import annotations

from fractions import Fraction

import torch

from lastbit.training.noise import rounded_gaussian


def whole_noise(size: int, deviation: Fraction, device: torch.device) -> torch.Tensor:
    """So many draws of round(deviation Z), int64."""
    return torch.from_numpy(rounded_gaussian(size, deviation)).to(device)
