"""The reach of combined noises: the lemmas by ball arithmetic, exact laws, and mutants."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from flint import arb
from hypothesis import given, settings, strategies as st

from lastbit.exact import arb_of, working_precision
from lastbit.laws.discrete import DiscreteGaussian, DiscreteLaplace
from lastbit.laws.sums import normal_reach
from lastbit.release.reach import (
    BETA,
    MeasureNoise,
    Reach,
    laplace_rate,
    quotient_interval,
    reach_of,
)

ONE = 1 << 20


def laplace_tail(scales: tuple[Fraction, ...], far: arb) -> arb:
    """P[abs(sum of Laplace variables) >= far] by partial fractions; the scales differ."""
    total = arb(0)
    for i, p in enumerate(scales):
        weight = Fraction(1)
        for j, q in enumerate(scales):
            if i != j:
                weight *= p**2 / (p**2 - q**2)
        total += arb_of(weight) * (-far / arb_of(p)).exp()
    return total


def lemma_holds(beta: Fraction, rate: Fraction, cells: int = 96) -> bool:
    """P[abs(L_1 + x L_2 + y L_3) >= rate (1 + x**2 + y**2)**(1/2)] <= beta for 0 <= y <= x <= 1.

    The chance grows with x and y (Anderson), so in a cell the greatest x and y are put on the
    left, the least on the right. They are moved up a little more, so that no two scales are equal.
    """
    with working_precision(128):
        for i in range(cells):
            for j in range(i + 1):
                x, y = Fraction(i, cells), Fraction(j, cells)
                far = arb_of(rate) * arb_of(1 + x**2 + y**2).sqrt()
                x_above = x + Fraction(1, cells) + Fraction(13, 10_000)
                y_above = y + Fraction(1, cells) + Fraction(7, 10_000)
                if not laplace_tail((Fraction(1), x_above, y_above), far) <= arb_of(beta):
                    return False
    return True


def test_the_laplace_lemma() -> None:
    assert lemma_holds(BETA, laplace_rate(BETA))


def test_the_laplace_lemma_sees_a_smaller_rate() -> None:
    """The mutant: without the stretch of 65/64 the finite check does not go through."""
    assert not lemma_holds(BETA, laplace_rate(BETA) * Fraction(63, 65))


def test_the_normal_lemma() -> None:
    z = normal_reach(BETA, [Fraction(100)] * 3)
    assert z is not None and 1.96 < z < 1.963
    coarse = normal_reach(BETA, [Fraction(1, 4), Fraction(1)])
    assert coarse is not None and 1.963 < coarse < 1.98
    assert normal_reach(BETA, [Fraction(1, 100)]) is None


def missed(first: dict[int, float], second: dict[int, float], m: Fraction, reach: Reach) -> float:
    """P[abs(X - m Y) > t(1, m)], by all pairs."""
    bound = reach.bound(Fraction(1), abs(m))
    return math.fsum(
        p * q for x, p in first.items() for y, q in second.items() if abs(x - m * y) > bound
    )


def law_of(law: DiscreteLaplace | DiscreteGaussian, far: int) -> dict[int, float]:
    return {k: float(law.probability(k).enclosure.mid()) for k in range(-far, far + 1)}


PAIRS = [
    (DiscreteLaplace(8), DiscreteLaplace(1)),
    (DiscreteLaplace("1/2"), DiscreteLaplace("1/3")),
    (DiscreteLaplace(20), DiscreteLaplace("5/2")),
    (DiscreteGaussian(64), DiscreteGaussian(1)),
    (DiscreteGaussian(400), DiscreteGaussian(9)),
    (DiscreteGaussian("1/2"), DiscreteGaussian("1/9")),
]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_two_noises_exactly(pair: tuple[DiscreteLaplace, DiscreteLaplace]) -> None:
    """The whole joint law, for many m: never above 5 %, and near to it where noise is not tiny."""
    reach = reach_of([MeasureNoise(law) for law in pair], BETA, ratios=[8])
    far = [min(160, 12 * round(math.sqrt(MeasureNoise(law).variance) + 1)) for law in pair]
    first, second = (law_of(law, f) for law, f in zip(pair, far, strict=True))
    chances = [
        missed(first, second, m, reach)
        for m in (Fraction(0), Fraction(1, 7), Fraction(1), Fraction(10, 3), Fraction(8))
    ]
    assert max(chances) <= 0.05
    if MeasureNoise(pair[0].__class__(*_parameter(pair[0]))).variance > 50:
        assert max(chances) > 0.035


def _parameter(law: DiscreteLaplace | DiscreteGaussian) -> tuple[Fraction]:
    return (law.scale,) if isinstance(law, DiscreteLaplace) else (law.variance,)


def test_a_shorter_reach_would_miss_more() -> None:
    """The mutant: a reach one tenth shorter misses more than once in twenty."""
    pair = (DiscreteGaussian(400), DiscreteGaussian(9))
    reach = reach_of([MeasureNoise(law) for law in pair], BETA, ratios=[8])
    short = Reach(reach.shifts, tuple(square * 81 // 100 for square in reach.squares))
    first, second = law_of(pair[0], 160), law_of(pair[1], 48)
    assert missed(first, second, Fraction(8), short) > 0.05


def test_different_laws_fall_back_on_the_union_bound() -> None:
    noises = [MeasureNoise(DiscreteLaplace(9)), MeasureNoise(DiscreteGaussian(9))]
    reach = reach_of(noises, BETA, ratios=[8])
    assert reach.squares == (0, 0)
    assert reach.shifts == tuple(noise.accuracy(BETA / 2) * ONE for noise in noises)


REACHES = st.sampled_from(
    [
        Reach.of([Fraction(3), Fraction(1, 2)], [Fraction(40), Fraction(2)]),
        Reach.of([Fraction(0), Fraction(0)], [Fraction(9), Fraction(1, 3)]),
        Reach.of([Fraction(7), Fraction(2)], [Fraction(0), Fraction(0)]),
    ]
)


@settings(max_examples=60)
@given(st.integers(-300, 300), st.integers(1, 60), REACHES)
def test_nothing_possible_is_excluded(numerator: int, rows: int, reach: Reach) -> None:
    """Every m of a fine grid that the test does not exclude is inside, and the ends are near."""
    low, high = quotient_interval(numerator, rows, (-8, 8), reach)
    grid = [Fraction(n, 32) for n in range(-8 * 32, 8 * 32 + 1)]
    kept = [m for m in grid if abs(numerator - m * rows) <= reach.bound(Fraction(1), abs(m))]
    assert all(low <= m * ONE <= high for m in kept)
    if kept and rows > 12:
        assert low >= (kept[0] - Fraction(1, 16)) * ONE
        assert high <= (kept[-1] + Fraction(1, 16)) * ONE


THREE = Reach.of(
    [Fraction(3), Fraction(1, 2), Fraction(1)], [Fraction(900), Fraction(9), Fraction(2)]
)


def test_reach_grows_with_its_coefficients() -> None:
    sizes = [Fraction(n) for n in (0, 1, 2, 5)]
    far = [THREE.bound(Fraction(1), size, size) for size in sizes]
    assert all(a < b for a, b in pairwise(far))
