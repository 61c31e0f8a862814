"""One record that is NaN."""

from __future__ import annotations

import numpy as np

from lastbit.audit.attacks.sums import Pair, attacked, needs
from lastbit.audit.bounds import DEFAULT_ERROR
from lastbit.audit.result import Verdict
from lastbit.audit.targets.target import SumTarget
from lastbit.exact import Number

RECORDS = 10


def not_a_number(
    target: SumTarget, *, samples: int = 1_000, error: Number = DEFAULT_ERROR
) -> Verdict:
    """Looks for a record that turns every output into NaN.

    Law      ten records of 1/2 between 0 and 1; in the second data set one of them is NaN
    Theorem  NaN is neither below nor above a bound, passes through clamping, sums and noise, and
             comes out with probability 1; the cut at minus infinity asks for that. Where it is
             replaced by a number, another cut may. The bound is true of any target: see `sums.py`
    Breaks   numpy by hand, diffprivlib's `sum`
    Resists  sums that refuse NaN, and those that give it one fixed meaning within the bounds
    Source   Casacuberta, Shoemate, Vadhan, Wagaman 2022, on special values
    Checked  tests/audit/attacks/test_sums.py

    >>> passes = SumTarget(
    ...     name="passes", release=lambda data, bounds, size: [data.sum()] * size, claimed=1)
    >>> not_a_number(passes, samples=400).broken
    True
    """
    needs(target, "float64")
    plain = np.full(RECORDS, 0.5)
    missing = plain.copy()
    missing[-1] = np.nan
    pair = Pair(first=plain, second=missing, why="one record is NaN")
    return attacked(target, [pair], (0.0, 1.0), name="NaN", samples=samples, error=error)
