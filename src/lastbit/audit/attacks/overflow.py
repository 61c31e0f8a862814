"""Integer sums that wrap around."""

from __future__ import annotations

import numpy as np

from lastbit.audit.attacks.sums import Pair, attacked, needs
from lastbit.audit.bounds import DEFAULT_ERROR
from lastbit.audit.result import Verdict
from lastbit.audit.targets.target import SumTarget
from lastbit.exact import Number

RECORDS = 17


def overflow(target: SumTarget, *, samples: int = 1_000, error: Number = DEFAULT_ERROR) -> Verdict:
    """Looks for a record that makes the sum wrap from the largest integer to the smallest.

    Law      17 records between 0 and M, a sixteenth of the largest integer of the type. Sixteen
             are M; the last one is 0, and the sum just fits, or M, and it does not
    Theorem  the two data sets differ in one record, by the declared sensitivity M. Modulo 2**w
             their sums are about 16 M and -15 M: 31 sensitivities apart instead of one, and 16
             where the result is clamped at 0. The bound is true of any target: see `sums.py`
    Breaks   sums in machine integers: diffprivlib's `sum` with dtype=int32, PyDP's bounded sums
    Resists  sums in wider or unbounded integers, saturating sums, and sums that refuse
    Source   Casacuberta, Shoemate, Vadhan, Wagaman 2022
    Checked  tests/audit/attacks/test_sums.py

    >>> wraps = SumTarget(
    ...     name="wraps", dtype="int32", claimed=1,
    ...     release=lambda data, bounds, size: [data.sum(dtype="int32")] * size)
    >>> overflow(wraps, samples=400).broken
    True
    """
    needs(target, "int32", "int64")
    largest = int(np.iinfo(target.dtype).max) // (RECORDS - 1)
    fits = np.full(RECORDS, largest, dtype=target.dtype)
    fits[-1] = 0
    wraps = np.full(RECORDS, largest, dtype=target.dtype)
    why = f"one more record of {largest} wraps a sum in {target.dtype.name} around"
    pair = Pair(first=fits, second=wraps, why=why)
    return attacked(target, [pair], (0, largest), name="overflow", samples=samples, error=error)
