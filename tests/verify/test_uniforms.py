"""Models of generators: their floats, the probability of each, and where to look."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lastbit.errors import LastbitError
from lastbit.verify.running.uniforms import FullPrecision, Grid, Uniform, index_of, stratified

MODELS: list[Uniform] = [
    FullPrecision(5, -6),
    FullPrecision(1, -9),
    FullPrecision(3, -1),
    Grid(9, first=1),
    Grid(8, offset="1/2"),
    Grid(4),
    Grid(1, offset=1),
]


@pytest.mark.parametrize("uniform", MODELS)
def test_points_and_probabilities(uniform):
    points = [uniform.point(i) for i in range(uniform.size)]
    assert points == sorted(set(points))
    assert uniform.below(0) == 0
    assert uniform.below(uniform.size) == 1
    shares = [uniform.below(i + 1) - uniform.below(i) for i in range(uniform.size)]
    assert min(shares) > 0
    assert all(0 <= mark < uniform.size for mark in uniform.landmarks())
    for i in range(uniform.size):
        assert uniform.number(uniform.below(i)) == i
        assert uniform.number(uniform.below(i + 1) - Fraction(1, 10**30)) == i
    for i, point in enumerate(points):
        assert index_of(uniform, point) == i
    assert index_of(uniform, 2.0) == uniform.size


def test_full_precision_is_a_rounded_real():
    """P(u < a) = a for every float a but the least: enumerate reals fine enough for 3 bits."""
    uniform = FullPrecision(3, -4)
    points = [uniform.point(i) for i in range(uniform.size)]
    assert points[:5] == [0.0625, 0.078125, 0.09375, 0.109375, 0.125]
    counts = dict.fromkeys(points, 0)
    for k in range(1 << 10):
        real = (k + 0.5) / (1 << 10)
        counts[max([p for p in points if p <= real], default=points[0])] += 1
    for i, point in enumerate(points):
        assert Fraction(counts[point], 1 << 10) == uniform.below(i + 1) - uniform.below(i)
        assert uniform.below(i) == (Fraction(point) if i else 0)


@pytest.mark.parametrize("uniform", [FullPrecision(5, -6), Grid(9, first=1), FullPrecision()])
def test_one_draw_in_each_stratum(uniform):
    for first, last in ((0, uniform.size - 1), (uniform.size // 3, uniform.size // 2)):
        draws = stratified(uniform, first, last, strata=50)
        low, high = uniform.below(first), uniform.below(last + 1)
        for k, number in enumerate(draws):
            assert first <= number <= last
            assert uniform.below(number) < low + (high - low) * (k + 1) / 50
            assert uniform.below(number + 1) > low + (high - low) * k / 50
    assert stratified(uniform, 0, uniform.size - 1, strata=0) == []


def test_doubles():
    uniform = FullPrecision()
    assert uniform.size == 1022 << 52
    assert uniform.point(0) == 2.0**-1022
    assert uniform.point(uniform.size - 1) == 1 - 2.0**-53
    for u in (0.3, 2.0**-1000, 0.999):
        assert uniform.below(index_of(uniform, u)) == Fraction(u)
        assert uniform.point(index_of(uniform, u)) == u


@pytest.mark.parametrize("bad", [0, 54, -1023, True, "53", None, 2.0])
def test_bad_generators(bad):
    with pytest.raises(LastbitError):
        Grid(bad)
    with pytest.raises(LastbitError):
        FullPrecision(bad)
    with pytest.raises(LastbitError):
        FullPrecision(53, bad)


@pytest.mark.parametrize("bad", [{"offset": 2}, {"offset": "x"}, {"first": 2}, {"first": True}])
def test_bad_grids(bad):
    with pytest.raises(LastbitError):
        Grid(8, **bad)
    with pytest.raises(LastbitError):
        Grid(53, offset="1/2")
