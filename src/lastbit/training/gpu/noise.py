"""Rounded Gaussian noise on tensors of a CUDA device.

Law      X = round(sigma Z), Z standard normal, in each coordinate apart; sigma an exact rational
Theorem  X is exact: what the kernel is certain of is right for every choice of bits not yet drawn
         (`gaussian.py`), and the rest is decided from the same bits and more (`decision.py`). It is
         private against those who cannot tell ChaCha20 under a random key, and AES-256-CTR, from
         random bits
Proof    With true bits in place of ChaCha20's, two draws are round(A), round(B) of a point of their
         own, whose U and S are uniform and independent. It stands on IEEE 754: a device whose
         results differ from an ordinary processor's in one bit of a test is refused before its
         first draw (`known_answer.py`). Marks begin as "open": a draw that no kernel wrote, the
         host decides.  []
Differs  **No key is used twice.** Each call takes a key of 256 bits from the operating system's
         keystream (`lastbit.sampling.bits`: new in every process, also after a fork), uses counters
         from 0 up once, and forgets it: nothing is kept between steps, so nothing that a checkpoint
         could hold, a restart repeat, or two ranks share. A seed that a user sets has no say
Checked  tests/training/gpu/test_noise.py
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import torch
from numpy.typing import NDArray

from lastbit.errors import EntropyUnavailable, InvalidParameter, NotCertified, WrongType
from lastbit.exact import Number, positive
from lastbit.sampling import Bits, secure_bits, words
from lastbit.training.gpu import gaussian
from lastbit.training.gpu.constants import NARROW_DEVIATION, constants_of, suits_kernel
from lastbit.training.gpu.decision import DRAWS, decided
from lastbit.training.gpu.known_answer import check_device
from lastbit.training.gpu.launch import MOST_NUMBERS, add_certain, lanes_of, on_device_of
from lastbit.training.noise import rounded_gaussian

_MOST_OPEN = 1 << 12


def rounded_gaussian_on(
    device: torch.device | str, size: tuple[int, ...], deviation: Number
) -> torch.Tensor:
    """Independent draws of round(deviation Z) on a device, int64."""
    noise = torch.zeros(size, dtype=torch.int64, device=device)
    add_rounded_gaussian(noise, deviation)
    return noise


def add_rounded_gaussian(sums: torch.Tensor, deviation: Number) -> None:
    """Add an independent draw of round(deviation Z) to every number of a tensor, in place.

    The processor draws for deviations below 1 and above 2**36.

    If anything fails, the tensor holds part of the noise: throw it away.
    """
    exact = positive(deviation, "deviation")
    flat = _checked(sums).view(-1)
    if not suits_kernel(exact):  # as exact, and slower
        flat += torch.from_numpy(rounded_gaussian(flat.numel(), exact)).to(flat.device)
        return
    with on_device_of(sums):
        check_device(sums.device)
        for start in range(0, flat.numel(), MOST_NUMBERS):
            _add(flat[start : start + MOST_NUMBERS], exact)


def _add(sums: torch.Tensor, deviation: Fraction) -> None:
    bits = secure_bits()
    life = bits.life()
    key = words(bits, 8, np.uint32)
    add_under_key(bits, key, sums, deviation)
    if bits.life() is not life:  # this is a child, and its parent has the same key
        raise EntropyUnavailable(
            "the process forked while noise was drawn; throw this tensor away in the child"
        )


def add_under_key(
    bits: Bits, key: NDArray[np.uint32], sums: torch.Tensor, deviation: Fraction
) -> None:
    """Add the noise of one key to a flat tensor of int64; further bits come from `bits`."""
    count = sums.numel()
    if not count:
        return
    narrow = deviation <= NARROW_DEVIATION
    marks = add_certain(key, sums, constants_of(deviation), narrow=narrow)
    lanes, left = lanes_of(marks)
    if not lanes.size:
        return
    if lanes.size > _MOST_OPEN + count // 256:
        raise NotCertified(
            "the device left far more draws open than its theorem allows; draw on the CPU"
        )
    lane, place, value = decided(bits, key, lanes, left, deviation)
    at = lane + place * -(-count // DRAWS)
    real = at < count  # the last lane may have fewer than eight
    sums[torch.from_numpy(at[real]).to(sums.device)] += torch.from_numpy(value[real]).to(
        sums.device
    )


def _checked(sums: object) -> torch.Tensor:
    if not isinstance(sums, torch.Tensor) or sums.dtype != torch.int64:
        remedy = "pass the sum of whole numbers, a tensor of int64"
        raise WrongType("sums", problem="are no tensor of int64", remedy=remedy)
    if not sums.is_contiguous():
        remedy = "pass sums.contiguous()"
        raise InvalidParameter("sums", problem="are not contiguous", remedy=remedy)
    if not sums.is_cuda and not gaussian.is_interpreted():
        remedy = "draw on the CPU: lastbit.training.rounded_gaussian"
        raise InvalidParameter("sums", problem="are not on a CUDA device", remedy=remedy)
    return sums
