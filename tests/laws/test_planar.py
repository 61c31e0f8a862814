"""The planar Laplace law: its sum over the lattice by two ways and by Decimals, its tails."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings, strategies as st

from lastbit.errors import LastbitError
from lastbit.exact.ball import Ball, Real, arb_of, ends, working_precision
from lastbit.laws.planar import (
    DiscretePlanarLaplace,
    ScatteredPoint,
    _circles,
    _far_enough,
    _rest,
    _series,
    _sum,
    normaliser,
)
from tests.evidence import late
from tests.laws.oracle import decimal, decimals

RATES = [Fraction(3, 4), Fraction(1), Fraction(7, 4), Fraction(2), Fraction(3), Fraction(20)]
# Beyond exp(-110) of the greatest weight nothing is added up by the Decimals.
LOST = Decimal("1e-40")


def points(radius: int) -> dict[int, int]:
    """How many integer points lie at each squared distance, by looking at all of them."""
    counts: dict[int, int] = {}
    for i in range(-radius, radius + 1):
        for j in range(-radius, radius + 1):
            if i * i + j * j <= radius * radius:
                counts[i * i + j * j] = counts.get(i * i + j * j, 0) + 1
    return counts


def sums(rate: Fraction, counts: dict[int, int] | None = None) -> tuple[Decimal, Decimal]:
    """The sums of exp(-rate abs(x)) and of abs(x) times that, in Decimals."""
    near = counts or points(int(110 / rate) + 2)
    a = decimal(rate)
    roots = {n: Decimal(n).sqrt() for n in near}
    weights = {n: count * (-a * roots[n]).exp() for n, count in near.items()}
    return sum(weights.values(), Decimal(0)), sum(
        (w * roots[n] for n, w in weights.items()), Decimal(0)
    )


def held(ball: Ball, truth: Decimal) -> bool:
    """Whether the truth, known to LOST, lies in the ball, and the ball says much."""
    low, high = ball.ends
    close = decimal(high - low) < Decimal("1e-30")
    return close and decimal(low) - LOST <= truth <= decimal(high) + LOST


@pytest.mark.parametrize("rate", RATES, ids=str)
def test_probabilities_and_mean_in_decimals(rate: Fraction) -> None:
    law = DiscretePlanarLaplace(rate)
    with decimals():
        total, moment = sums(rate)
        for point in ((0, 0), (1, 0), (0, -1), (1, 1), (-3, 4), (2, 7)):
            distance = Decimal(point[0] ** 2 + point[1] ** 2).sqrt()
            truth = (-decimal(rate) * distance).exp() / total
            assert held(law.probability(point, precision=160), truth)
        assert held(law.mean_distance(precision=160), moment / total)
        assert Decimal(law.mean_distance_upper) >= moment / total


@pytest.mark.evidence
def test_mutants_of_the_sum_are_rejected() -> None:
    """Zero eight times, corners twice, a rate off by 0.1 %: each gives another P[0]."""
    rate = Fraction(1)
    ball = DiscretePlanarLaplace(rate).probability((0, 0), precision=160)
    counts = points(112)
    with decimals():
        assert held(ball, 1 / sums(rate)[0])
        corners = {n: c + (4 if 2 * math.isqrt(n // 2) ** 2 == n else 0) for n, c in counts.items()}
        for mutant in ({**counts, 0: 8}, {**corners, 0: 1}):
            assert not held(ball, 1 / sums(rate, mutant)[0])
        assert not held(ball, 1 / sums(rate * Fraction(1001, 1000), counts)[0])


@pytest.mark.parametrize("rate", ["3/4", "1", "3/2", "1.99"])
@pytest.mark.parametrize("precision", [64, 128, 300])
def test_poissons_formula_and_the_plain_sum_agree(rate: str, precision: int) -> None:
    """Two ways to one number; the series with a sign turned or a factor lost does not agree."""
    with working_precision(precision):
        a = arb_of(Fraction(rate))
        square = _far_enough(a)
        plain = _sum(_circles(square), a)
        plain = plain + _rest(a, square).union(arb(0))
        assert _series(a).overlaps(plain)
        assert (_series(a) - plain).rad() < arb(2) ** -(precision - 24)
        turn = 2 * arb.pi()
        without_first = 2 * turn / a**2 - _series(a)
        assert not without_first.overlaps(plain)
        assert not (_series(a) * (1 + arb(2) ** -(precision - 32))).overlaps(plain)


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("rate", [late("1/50"), "1/8", "1/2"])
def test_small_rates_against_floats(rate: str) -> None:
    a = float(Fraction(rate))
    axis = np.arange(-int(45 / a), int(45 / a) + 1, dtype=np.float64)
    distance = np.sqrt(axis[:, None] ** 2 + axis**2)
    weight = np.exp(-a * distance)
    law = DiscretePlanarLaplace(rate)
    with working_precision(128):
        total = float(ends(normaliser(law.rate))[0])
    assert abs(total / weight.sum() - 1) < 1e-11
    mean = (weight * distance).sum() / weight.sum()
    assert abs(law.mean_distance_upper / mean - 1) < 1e-11
    for level in (0.5, 0.95, 0.999):
        far = float(law.radius(Fraction(level)))
        beyond = weight[distance > far * (1 + 1e-12)].sum() / weight.sum()
        assert beyond <= 1 - level + 1e-11
        assert beyond <= law.tail_upper(Fraction(far)) + 1e-11
        nearer = far - 3 - 2**-11 / a  # what the docstring says of the radius
        assert weight[distance > nearer].sum() / weight.sum() > 1 - level


@given(st.fractions(Fraction(1, 2**200), 2**20))
def test_the_sum_lies_between_its_integrals(rate: Fraction) -> None:
    """exp(-a h) and exp(a h) times 2 pi/a**2; from below 2 pi/a**2 itself."""
    with working_precision(128):
        a = arb_of(rate)
        total = normaliser(rate) * a**2 / (2 * arb.pi())
        assert not total < 1 - arb(2) ** -100
        assert not total > (a / arb(2).sqrt()).exp() * (1 + arb(2) ** -100)
        assert total.rel_accuracy_bits() > 100


@pytest.mark.thinned(one_in=16)
@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1), Fraction(3)], ids=str)
@pytest.mark.parametrize("level", ["0.5", "0.95", "0.999999"])
def test_near_radii_are_the_least(rate: Fraction, level: str) -> None:
    far = DiscretePlanarLaplace(rate).radius(level)
    counts = points(int(110 / rate) + 2)
    with decimals():
        total, _ = sums(rate, counts)
        within = sums(rate, {n: c for n, c in counts.items() if n <= far * far})[0] / total
        closer = {n: c for n, c in counts.items() if n < far * far * (1 - Fraction(1, 2**50))}
        assert within >= Decimal(level)
        assert not closer or sums(rate, closer)[0] / total < Decimal(level)


@settings(max_examples=50)
@given(
    st.fractions(Fraction(1, 10**5), 30, max_denominator=10**5),
    st.fractions(Fraction(1, 10**9), Fraction(1, 2), max_denominator=10**9),
)
def test_radius_and_tail_belong_together(rate: Fraction, missing: Fraction) -> None:
    law = DiscretePlanarLaplace(rate)
    far = law.radius(1 - missing)
    assert law.tail_upper(far) <= float(missing) * (1 + 2.0**-40)
    assert law.tail_upper(far + 1) <= law.tail_upper(far)
    assert far <= law.radius(1 - missing / 2)


def test_circles_count_the_points() -> None:
    assert dict(_circles(400)) == points(20)
    assert _circles(0) == [(0, 1)]


def test_a_computable_rate() -> None:
    law = DiscretePlanarLaplace(Real(2).log())
    ratio = law.probability((0, 5)) / law.probability((3, 4))
    assert ratio.contains(1)
    ratio = law.probability((0, 0)) / law.probability((3, 4))
    assert ratio.contains(32)
    assert law.radius("0.9") >= DiscretePlanarLaplace("0.7").radius("0.9")


def test_a_rate_known_only_at_a_high_precision() -> None:
    """At 128 bits this ball holds 0: the sums would never end."""
    law = DiscretePlanarLaplace(Real(2).sqrt() + 2**300 - 2**300)
    plain = DiscretePlanarLaplace(Real(2).sqrt())
    assert law.probability((1, 2)).enclosure.overlaps(plain.probability((1, 2)).enclosure)
    assert law.probability((1, 2)).enclosure.rel_accuracy_bits() > 16
    assert law.radius("0.9") == plain.radius("0.9")
    assert abs(law.tail_upper(2) - plain.tail_upper(2)) < 1e-3
    assert abs(law.mean_distance_upper - plain.mean_distance_upper) < 1e-3


def test_a_scattered_point() -> None:
    law = DiscretePlanarLaplace("1/3")
    moved = ScatteredPoint(law, (12345, -6), Fraction(1, 4))
    here = moved.probability((Fraction(12345 + 2, 4), Fraction(-6 + 1, 4))).ends
    assert here == law.probability((2, 1)).ends
    assert moved.probability(("1/8", 0)).contains(0)
    assert "12345" not in repr(moved)
    assert law.tail_upper(-1) == 1.0


@pytest.mark.parametrize(
    "bad",
    [0, -1, math.nan, math.inf, "x", True, None, "1e-400", Real(0), Real(-1), Real(2) - Real(2)],
    ids=lambda bad: type(bad).__name__,
)
def test_bad_rates(bad: object) -> None:
    with pytest.raises(LastbitError, match="rate"):
        DiscretePlanarLaplace(bad)  # type: ignore[arg-type]


def test_bad_questions() -> None:
    law = DiscretePlanarLaplace(1)
    for point in (1, (1,), (1, 2, 3), (1.5, 0), (True, 0), "ab", None):
        with pytest.raises(LastbitError, match="point"):
            law.probability(point)  # type: ignore[arg-type]
    for level in (0, 1, -1, math.nan, "x", True):
        with pytest.raises(LastbitError, match="probability"):
            law.radius(level)
