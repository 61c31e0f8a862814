"""What the tests of mechanisms that pick a candidate share: neighbours, privacy, bad utilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from lastbit.errors import Undecidable
from lastbit.exact.ball import Ball, Real
from lastbit.laws.law import Law
from lastbit.sampling.blocks import Sampler
from lastbit.sampling.deterministic import Counting, Seeded
from tests.laws.frequency import assert_frequency

Vector = tuple[int, ...]
PRECISION = 256
EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(6)]


def neighbours(
    candidates: int, top: int, distance: int, *, monotone: bool
) -> Iterator[tuple[Vector, Vector]]:
    """All pairs: x in 0 ... top, y within the distance in every coordinate; both orders occur."""
    least = 0 if monotone else -distance
    for x in product(range(top + 1), repeat=candidates):
        for move in product(range(least, distance + 1), repeat=candidates):
            y = tuple(a + b for a, b in zip(x, move, strict=True))
            yield x, y
            yield y, x


def private(
    law: Callable[[Vector], Law],
    pairs: Iterator[tuple[Vector, Vector]],
    epsilon: Fraction,
    equal: Callable[[Vector, Vector, int], bool] = lambda x, y, i: False,
) -> bool:
    """law(x)(i) <= exp(epsilon) law(y)(i) for all pairs and all outputs, decided by balls.

    Where the balls cannot decide, both sides may be equal: `equal` must say so by algebra.
    """
    factor = Real(epsilon).exp().ball(PRECISION)

    @cache
    def masses(utilities: Vector) -> list[Ball]:
        exact = law(utilities)
        return [exact.probability(i, precision=PRECISION) for i in range(len(utilities))]

    for x, y in pairs:
        for i, (p, q) in enumerate(zip(masses(x), masses(y), strict=True)):
            try:
                if p > factor * q:
                    return False
            except Undecidable:
                assert equal(x, y, i), f"undecided and not equal: {x}, {y}, output {i}"
    return True


def sums_to_one(law: Law, candidates: int) -> bool:
    total = sum((law.probability(i) for i in range(candidates)), Ball.of(0))
    low, high = total.ends
    return low <= 1 <= high and high - low < Fraction(1, 1 << 100)


def check_frequencies(sampler: Sampler, law: Law, *, trials: int, seed: int) -> None:
    """False alarm below 2**-40 an output; 5 % off is seen where an output has a share of 1/20."""
    low, high = law.support
    assert low == 0
    assert high is not None
    hits = np.bincount(sampler.draw(Seeded(seed), trials), minlength=high + 1)
    for i, count in enumerate(hits.tolist()):
        share = float(sum(law.probability(i).ends) / 2)
        detects = Fraction(1, 20) if share > 0.05 else None
        assert_frequency(count, trials=trials, probability=share, detects=detects)


def work(sampler: Sampler, size: int, seed: int) -> tuple[int, int]:
    source = Counting(Seeded(seed))
    sampler.draw(source, size)
    return source.bytes, source.requests


MARK = "73211"  # stands for somebody's data: no message may hold it
BAD_UTILITIES: list[Any] = [
    [],
    (),
    np.array([]),
    np.array([], np.int64),
    [73211, math.nan],
    [math.inf, 73211.0],
    np.array([73211.0, -math.inf]),
    np.array([73211, np.nan], np.float32),
    np.array([73211, np.nan], np.longdouble),
    ["73211", "nan"],
    ["73211x"],
    ["73211/0", 1],
    [Decimal("NaN"), Decimal(73211)],
    [True, 73211],
    [np.bool_(False), 73211],
    np.array([True, False]),
    np.array([73211, True], object),
    [[73211, 1], [2, 3]],
    np.array([[73211, 1]]),
    np.array(73211),
    np.array([73211j]),
    np.array([b"73211"]),
    np.array([73211], "timedelta64[s]"),
    np.ma.masked_array([73211, 2], mask=[True, False]),
    [None, 73211],
    [73211, [1]],
    [1j, 73211],
    73211,
    73211.5,
    "73211",
    b"73211",
    None,
    {73211: 1},
    {73211},
    iter([73211]),
]
