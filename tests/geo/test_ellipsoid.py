"""Metres per degree: against numbers of others, and monotone as the proofs say."""

import math
from fractions import Fraction
from itertools import pairwise

import pytest

from lastbit.geo.region import meridian_degree, parallel_degree, turn
from tests.geo import geodesic


def ends(real):
    return real.ball(128).ends


@pytest.mark.parametrize(
    ("latitude", "north", "east"),  # kilometres per degree of WGS84, as commonly printed
    [
        (0, "110.574", "111.320"),
        (15, "110.649", "107.551"),
        (30, "110.852", "96.486"),
        (45, "111.132", "78.847"),
        (60, "111.412", "55.800"),
        (75, "111.618", "28.902"),
    ],
)
def test_degrees_are_those_of_tables(latitude, north, east):
    low, high = ends(meridian_degree(Fraction(latitude)))
    assert high - low < 1e-20
    assert abs(low - 1000 * Fraction(north)) <= 1
    assert abs(ends(parallel_degree(Fraction(latitude)))[0] - 1000 * Fraction(east)) <= 1


@pytest.mark.parametrize("latitude", [-80, -33, 0, 12.5, 51, 79])
def test_degrees_are_those_of_short_geodesics(latitude):
    step = 1e-3
    north = geodesic.distance((latitude - step / 2, 7), (latitude + step / 2, 7)) / step
    east = geodesic.distance((latitude, 7), (latitude, 7 + step)) / step
    assert float(ends(meridian_degree(Fraction(latitude)))[0]) == pytest.approx(north, rel=1e-7)
    assert float(ends(parallel_degree(Fraction(latitude)))[0]) == pytest.approx(east, rel=1e-7)


def test_they_change_with_the_latitude_as_the_proofs_say():
    latitudes = [Fraction(i) for i in range(90)]
    for one, other in pairwise(latitudes):
        assert ends(meridian_degree(one))[1] < ends(meridian_degree(other))[0]
        assert ends(parallel_degree(one))[0] > ends(parallel_degree(other))[1]
        assert ends(turn(one))[1] < ends(turn(other))[0]
    assert meridian_degree(Fraction(-40)).ball(128).ends == ends(meridian_degree(Fraction(40)))


def test_the_turn_is_that_of_the_equations():
    root = math.sqrt(1 - geodesic.E2 * math.sin(math.radians(50)) ** 2)
    expected = math.tan(math.radians(50)) * root / geodesic.A
    assert float(ends(turn(Fraction(50)))[0]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("start", [(52.5, 13.4), (-17.0, 179.9), (79.0, 20.0), (0.1, -70.0)])
@pytest.mark.parametrize("azimuth", [0.1, 1.2, 1.5707, 2.5, -1.0])
@pytest.mark.parametrize("length", [150.0, 40e3, 700e3])
def test_the_two_other_means_agree(start, azimuth, length):
    end = geodesic.walked(start, azimuth, length)
    assert geodesic.distance(start, end) == pytest.approx(length, abs=2e-4)
