"""Float sums of records within narrow bounds: rounding moves the sum further than any record."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from lastbit.audit.attacks.sums import Pair, attacked, needs
from lastbit.audit.attacks.trial import Floats
from lastbit.audit.bounds import DEFAULT_ERROR, error_rate
from lastbit.audit.result import Verdict
from lastbit.audit.targets.target import SumTarget
from lastbit.exact import Number, whole

NARROW = (1.7e9, 1.7e9 + 1e-3)


def in_pairs(records: Floats) -> float:
    """By halves, as numpy's sum does."""
    return float(np.sum(records))


def one_by_one(records: Floats) -> float:
    """From the first to the last, as a plain loop does."""
    return float(np.cumsum(records)[-1])


WAYS_TO_SUM = MappingProxyType(
    {
        "added in pairs": in_pairs,
        "added one by one": one_by_one,
        "added exactly and rounded": math.fsum,
    }
)


def narrow_sum(
    target: SumTarget,
    *,
    samples: int = 1_000,
    error: Number = DEFAULT_ERROR,
    records: int = 1_000_000,
) -> Verdict:
    """Looks for two data sets whose float sums are much further apart than the bounds are.

    Law      records near 1.7e9 (times in seconds, say), known to 1/1000: the declared sensitivity
             is upper - lower = 0.001. A sum of a million such records is near 2**50, where doubles
             are 1/4 apart: if it moves at all, it moves by 250 times the sensitivity
    Theorem  let f(t) be the computed sum with the first t records at the upper bound, the others at
             the lower one. f(0) < f(n), so some t has f(t) < f(t+1); these two data sets differ in
             one record, and their sums by a whole spacing of the doubles there. `jump` finds one.
             The bound is true of any target: see `sums.py`
    Breaks   every sum in floats with noise for upper - lower: numpy by hand, diffprivlib's `sum`,
             and also sums that are added exactly and rounded to a double before the noise
    Resists  sums of integers on a public grid; OpenDP, which enlarges the sensitivity by a bound on
             the rounding and pays for it in noise
    Source   Casacuberta, Shoemate, Vadhan, Wagaman 2022 (Widespread underestimation of sensitivity)
    Differs  finds its data by bisection, for three orders of adding
    Checked  tests/audit/attacks/test_sums.py

    >>> import numpy as np
    >>> bare = SumTarget(
    ...     name="bare", release=lambda data, bounds, size: [data.sum()] * size, claimed=1)
    >>> narrow_sum(bare, records=100_000, samples=200).broken
    True
    """
    needs(target, "float64")
    allowed = error_rate(error)  # before the data are made, which takes a while
    size = whole(records, "records", least=2)
    pairs = []
    for way, add in WAYS_TO_SUM.items():
        first, second = jump(add, NARROW, size)
        moved = abs(add(second) - add(first)) / (NARROW[1] - NARROW[0])
        why = f"{way}, the sums of two neighbours are {moved:.3g} sensitivities apart"
        pairs.append(Pair(first=first, second=second, why=why))
    return attacked(target, pairs, NARROW, name="narrow sum", samples=samples, error=allowed)


def jump(
    add: Callable[[Floats], float], bounds: tuple[float, float], size: int
) -> tuple[Floats, Floats]:
    """Two data sets that differ in one record and whose sums differ as much as bisection finds."""

    def data(raised: int) -> Floats:
        records = np.full(size, bounds[0])
        records[:raised] = bounds[1]
        return records

    low, high = 0, size
    sums = {count: add(data(count)) for count in (low, high)}
    while high - low > 1:
        middle = (low + high) // 2
        sums[middle] = add(data(middle))
        left = (sums[middle] - sums[low]) / (middle - low)
        right = (sums[high] - sums[middle]) / (high - middle)
        low, high = (low, middle) if left >= right else (middle, high)
    return data(low), data(high)
