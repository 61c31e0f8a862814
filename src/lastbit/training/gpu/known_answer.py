"""A device proves itself before its first draw: its results are those of an ordinary processor.

Law      the kernel, run with a fixed key on a noise scale so large that numbers and marks hang on
         nearly the last bit of every operation, gives sums and marks of one fixed SHA-256
Theorem  none. It is a test of the compiler and the device, on which the theorem of `gaussian.py`
         rests: fused or unfused, flushed or approximate operations change the digest
Source   the digest comes from Triton's interpreter on a CPU, where the numbers are compared with
         Arb, one by one: tests/training/gpu/test_interpreter.py
Checked  there: a kernel that rounds twice, or whose polynomials are off in the last place, fails
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from functools import lru_cache

import numpy as np
import torch

from lastbit.errors import NotCertified
from lastbit.training.gpu.constants import constants_of
from lastbit.training.gpu.launch import add_certain

_SCALE = Fraction((1 << 47) - 12_345)
_NUMBERS = 8 * 4096 - 3
_KNOWN = "452bf281455335cd4fe8fda369871f36262a8ce77d7dd75451cf1ccf9495b5b3"


def digest_of(device: torch.device) -> str:
    """SHA-256 of sums and marks of the known key on a device, of both widths of draws."""
    whole = hashlib.sha256()
    for narrow in (False, True):  # the lower halves of draws that need more are as good as others
        sums = torch.arange(_NUMBERS, dtype=torch.int64, device=device)
        key = np.arange(8, dtype=np.uint32)
        marks = add_certain(key, sums, constants_of(_SCALE), narrow=narrow)
        whole.update(sums.cpu().numpy().astype("<i8").tobytes())
        whole.update(marks.cpu().numpy().tobytes())
    return whole.hexdigest()


@lru_cache(maxsize=64)
def check_device(device: torch.device) -> None:
    """Refuse a device that gives other results, once a process."""
    if digest_of(device) != _KNOWN:
        raise NotCertified(
            "this device's arithmetic differs from IEEE 754 as the noise needs it; "
            "draw on the CPU: lastbit.training.rounded_gaussian"
        )
