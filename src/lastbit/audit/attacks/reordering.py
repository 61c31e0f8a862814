"""Float sums of the same records in another order."""

from __future__ import annotations

import numpy as np

from lastbit.audit.attacks.narrow_sum import NARROW, WAYS_TO_SUM, jump
from lastbit.audit.attacks.sums import Pair, attacked, needs
from lastbit.audit.attacks.trial import Floats
from lastbit.audit.bounds import DEFAULT_ERROR, error_rate
from lastbit.audit.result import Verdict
from lastbit.audit.targets.target import SumTarget
from lastbit.exact import Number, whole

STRIDES = (2, 3, 7, 1009, 65_537)


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
             parallel programs choose the order anew every time
    Resists  integer sums; sums added exactly and rounded once; claims about lists, in which the
             order counts, are not refuted by this test
    Source   Casacuberta, Shoemate, Vadhan, Wagaman 2022
    Checked  tests/audit/attacks/test_sums.py

    >>> exact = SumTarget(
    ...     name="exact", release=lambda data, bounds, size: [0.0] * size, claimed=1)
    >>> reordering(exact, records=1000, samples=100).broken
    False
    """
    needs(target, "float64")
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
    return attacked(
        target,
        pairs,
        NARROW,
        name="reordering",
        samples=samples,
        error=allowed,
        details={"held against": "a claim about records without an order, as in a table"},
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
