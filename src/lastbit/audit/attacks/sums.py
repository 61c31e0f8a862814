"""Attacks on sums: neighbouring data sets whose computed sums are further apart than declared.

Theorem  the pair of data sets and the cut through the sums depend on training samples alone, so the
         counts that follow are binomial, and the bound is true of any target (`bounds.py`)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.audit.attacks.noise import best_cut
from lastbit.audit.attacks.trial import Floats, Tally, Trial
from lastbit.audit.bounds import DEFAULT_ERROR, error_rate
from lastbit.audit.result import Verdict
from lastbit.audit.targets.target import Bounds, SumTarget, checked
from lastbit.errors import InvalidParameter
from lastbit.exact import Number, whole

NARROW = (1.7e9, 1.7e9 + 1e-3)
STRIDES = (2, 3, 7, 1009, 65_537)
WAYS_TO_SUM: Mapping[str, Callable[[Floats], float]] = MappingProxyType(
    {
        "added in pairs": lambda records: float(np.sum(records)),
        "added one by one": lambda records: float(np.cumsum(records)[-1]),
        "added exactly and rounded": math.fsum,
    }
)
FEW_RECORDS, RECORDS = 10, 17  # of the attacks by NaN and by overflow


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two neighbouring data sets and why they should be told apart."""

    first: NDArray[Any]
    second: NDArray[Any]
    why: str


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
             one record, and their sums by a whole spacing of the doubles there. `jump` finds one
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
    _needs(target, "float64")
    allowed = error_rate(error)  # before the data are made, which takes a while
    size = whole(records, "records", least=2)
    pairs = []
    for way, add in WAYS_TO_SUM.items():
        first, second = jump(add, NARROW, size)
        moved = abs(add(second) - add(first)) / (NARROW[1] - NARROW[0])
        why = f"{way}, the sums of two neighbours are {moved:.3g} sensitivities apart"
        pairs.append(Pair(first=first, second=second, why=why))
    return _attacked(target, pairs, NARROW, name="narrow sum", samples=samples, error=allowed)


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


def reordering(
    target: SumTarget,
    *,
    samples: int = 1_000,
    error: Number = DEFAULT_ERROR,
    records: int = 1_000_000,
) -> Verdict:
    """Looks for two orders of the same records whose float sums differ.

    Law      records at the upper bound, as many as `narrow_sum` finds at a jump of the sum, the
             others at the lower one: the upper ones first, last, in the middle, or scattered
    Theorem  a table has no order, so the same records in another order are the same data set, at
             distance 0, and its release must have the same law. The verdict is generous: it speaks
             of a break only if the loss exceeds the epsilon claimed for one changed record
    Breaks   sums in floats whose sensitivity was declared for unordered data: databases and
             parallel programs choose the order every time
    Resists  integer sums; sums added exactly and rounded once; claims about lists, in which the
             order counts, are not refuted by this test
    Source   Casacuberta, Shoemate, Vadhan, Wagaman 2022
    Checked  tests/audit/attacks/test_sums.py

    >>> exact = SumTarget(
    ...     name="exact", release=lambda data, bounds, size: [0.0] * size, claimed=1)
    >>> reordering(exact, records=1000, samples=100).broken
    False
    """
    _needs(target, "float64")
    allowed = error_rate(error)  # before the data are made, which takes a while
    size = whole(records, "records", least=2)
    pairs = []
    for way, add in WAYS_TO_SUM.items():
        arranged = orders(jump(add, NARROW, size)[1])
        sums = [add(data) for data in arranged]
        first, second = int(np.argmin(sums)), int(np.argmax(sums))
        if sums[first] < sums[second]:
            moved = (sums[second] - sums[first]) / (NARROW[1] - NARROW[0])
            why = f"{way}, two orders of the same records are {moved:.3g} sensitivities apart"
            pairs.append(Pair(first=arranged[first], second=arranged[second], why=why))
    if not pairs:
        arranged = orders(np.repeat(np.array(NARROW), (size - size // 2, size // 2)))
        why = "two orders of the same records"
        pairs = [Pair(first=arranged[0], second=arranged[1], why=why)]
    held = {"held against": "a claim about records without an order, as in a table"}
    return _attacked(
        target, pairs, NARROW, name="reordering", samples=samples, error=allowed, details=held
    )


def orders(records: Floats) -> list[Floats]:
    """The same records in several orders, the first as they are.

    >>> {tuple(sorted(some.tolist())) for some in orders(np.array([1.0, 2.0, 3.0]))}
    {(1.0, 2.0, 3.0)}
    """
    index = np.arange(len(records))
    half = len(records) // 2
    moved = [np.roll(records, shift) for shift in (half // 2, half, half + half // 2)]
    # walking around in strides: a permutation, since the sort only breaks ties
    strides = [np.argsort(index * stride % len(records), kind="stable") for stride in STRIDES]
    return [records, records[::-1].copy(), *moved, *(records[stride] for stride in strides)]


def not_a_number(
    target: SumTarget, *, samples: int = 1_000, error: Number = DEFAULT_ERROR
) -> Verdict:
    """Looks for a record that turns every output into NaN.

    Law      ten records of 1/2 between 0 and 1; in the second data set one of them is NaN
    Theorem  NaN is neither below nor above a bound, passes through clamping, sums and noise, and
             comes out with probability 1; the cut at minus infinity asks for that. Where it is
             replaced by a number, another cut may
    Breaks   numpy by hand, diffprivlib's `sum`
    Resists  sums that refuse NaN, and those that give it one fixed meaning within the bounds
    Source   Casacuberta, Shoemate, Vadhan, Wagaman 2022, on special values
    Checked  tests/audit/attacks/test_sums.py

    >>> passes = SumTarget(
    ...     name="passes", release=lambda data, bounds, size: [data.sum()] * size, claimed=1)
    >>> not_a_number(passes, samples=400).broken
    True
    """
    _needs(target, "float64")
    plain = np.full(FEW_RECORDS, 0.5)
    missing = np.append(plain[:-1], np.nan)
    pair = Pair(first=plain, second=missing, why="one record is NaN")
    return _attacked(target, [pair], (0.0, 1.0), name="NaN", samples=samples, error=error)


def overflow(target: SumTarget, *, samples: int = 1_000, error: Number = DEFAULT_ERROR) -> Verdict:
    """Looks for a record that makes the sum wrap from the largest integer to the smallest.

    Law      17 records between 0 and M, a sixteenth of the largest integer of the type. Sixteen
             are M; the last one is 0, and the sum just fits, or M, and it does not
    Theorem  the two data sets differ in one record, by the declared sensitivity M. Modulo 2**w
             their sums are about 16 M and -15 M: 31 sensitivities apart instead of one, and 16
             where the result is clamped at 0
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
    _needs(target, "int32", "int64")
    largest = int(np.iinfo(target.dtype).max) // (RECORDS - 1)
    wraps = np.full(RECORDS, largest, dtype=target.dtype)
    fits = wraps.copy()
    fits[-1] = 0
    why = f"one more record of {largest} wraps a sum in {target.dtype.name} around"
    pair = Pair(first=fits, second=wraps, why=why)
    return _attacked(target, [pair], (0, largest), name="overflow", samples=samples, error=error)


# ---------------------------------------------------------------- what they share


def _needs(target: SumTarget, *kinds: str) -> None:
    if target.dtype.name not in kinds:
        raise InvalidParameter(
            "target",
            problem=f"sums {target.dtype.name} records",
            remedy=f"this attack needs a target that sums {' or '.join(kinds)}",
        )


class _Refusal(Exception):
    """The target raised something: its name is the message."""


def _attacked(
    target: SumTarget,
    pairs: Sequence[Pair],
    bounds: Bounds,
    *,
    name: str,
    samples: int,
    error: Number,
    details: Mapping[str, str] | None = None,
) -> Verdict:
    """Choose a pair and a cut on some of the samples, then count on the others.

    A target that raises an error on such data is not broken: it released nothing. The error
    itself may tell its caller something, and the verdict says so. What is not a list of numbers
    was no refusal, and is an error here.
    """
    trial = Trial(name, target, samples=samples, error=error, least=40)
    train = max(4, trial.samples // (10 * len(pairs)))
    rest = trial.samples // 2 - train * len(pairs)

    def drawn(pair: Pair, size: int) -> list[Floats]:
        return [_drawn(target, data, bounds, size) for data in (pair.first, pair.second)]

    best = -math.inf
    try:
        for candidate in pairs:
            outputs = drawn(candidate, train)
            found = best_cut(outputs[0], outputs[1], trials=train)
            shares = [float(found.event(some).mean()) for some in outputs]
            if (gap := shares[found.likely] - shares[1 - found.likely]) > best:
                best, pair, cut = gap, candidate, found
        hits = [int(cut.event(outputs).sum()) for outputs in drawn(pair, rest)]
    except _Refusal as refusal:
        return trial.concluded(
            broken=False,
            claimed=target.claimed,
            samples=0,
            witness=f"the target refuses such data with {refusal}: nothing is released",
            details={"note": "that it refused is itself an answer; do not publish it"},
        )
    return trial.judged(
        Tally(
            hits=hits[cut.likely], trials=rest, other_hits=hits[1 - cut.likely], other_trials=rest
        ),
        witness=f"{pair.why}; {cut} tells them apart",
        samples=2 * (rest + train * len(pairs)),
        details=details,
    )


def _drawn(target: SumTarget, data: NDArray[Any], bounds: Bounds, size: int) -> Floats:
    try:
        outputs = target.release(data, bounds, size)
    except Exception as raised:  # whatever a target raises, it did not release
        raise _Refusal(type(raised).__name__) from None
    return checked(outputs, size)
