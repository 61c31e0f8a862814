"""Regions: their edges, and what is refused."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.geo.region import Region, local_map
from tests.geo import geodesic


def test_edges_move_outwards_and_hardly():
    region = Region.box((52.3, 13, "52.7", "13.8"))
    assert region.south <= Fraction(52.3) and region.north >= Fraction("52.7")
    assert region.west == 13 and region.east >= Fraction("13.8")
    assert region.north - region.south < Fraction("0.4000003")
    assert Region.box("52.3,13,52.7,13.8").west == 13
    assert Region.box(region) is region


def test_across_the_date_line():
    region = Region.box((-20, 179, -19, -179))
    assert region.width == 2 and region.east == -179
    assert region.centre == (Fraction(-39, 2), Fraction(180))
    assert Region.box((-20, 179, -19, 181)).width == 2


@pytest.mark.parametrize(
    ("south", "north", "least", "most"),
    [(1, 2, 1, 2), (-2, -1, 1, 2), (-1, 3, 0, 3), (-4, 3, 0, 4), (0, 1, 0, 1)],
)
def test_how_far_from_the_equator(south, north, least, most):
    region = Region.box((south, 5, north, 6))
    assert (region.equatorward, region.poleward) == (least, most)


@settings(deadline=None, max_examples=60)
@given(
    st.floats(-78, 78), st.floats(-180, 180), st.floats(1, 300e3), st.floats(-math.pi, math.pi)
)  # fmt: skip
def test_a_disc_is_inside_its_box(latitude, longitude, radius, azimuth):
    region = Region.disc((latitude, longitude), radius)
    end = geodesic.walked((latitude, longitude), azimuth, radius, steps=60)
    assert float(region.south) - 1e-6 <= end[0] <= float(region.north) + 1e-6
    offset = (end[1] - float(region.west) + 540) % 360 - 180
    assert -1e-6 <= offset <= float(region.width) + 1e-6
    assert region.across_upper >= 2 * radius


REFUSED = [
    ((52.7, 13, 52.3, 13.8), "south at or above"),
    ((52.3, 13, 52.3, 13.8), "south at or above"),
    ((52.3, 13, 52.7, 13), "one for both sides"),
    ((52.3, 13, 52.7), "has not 4 numbers"),
    ((52.3, 13, 52.7, float("nan")), "not a number"),
    ((52.3, 13, 52.7, 400), "no longitudes"),
    ((84, 13, 86, 14), "beyond 85 degrees"),
    ((-90, 13, -80, 14), "beyond 85 degrees"),
    ((95, 13, 96, 14), "in this order"),
    ((-60, -170, 60, 170), "km across"),
    ((-1, -180, 1, 180), "km across"),
    ((-1, 0, 1, 360), "km across"),
    ((84, 0, 84.5, 100), "may pass a pole"),
    ((0, 13, 1, 12), "km across"),
    ("nonsense", "has not 4 numbers"),
    ((True, 1, 2, 3), "truth value"),
    (7, "not a sequence"),
]


@pytest.mark.parametrize(("edges", "words"), REFUSED)
def test_regions_that_are_none(edges, words):
    with pytest.raises(InvalidParameter, match=f"region .*{words}"):
        Region.box(edges)


@pytest.mark.parametrize(
    ("centre", "radius", "words"),
    [
        ((90, 0), "1 km", "beyond 85 degrees"),
        ((100, 0), "1 km", "not a place on the Earth"),
        ((100, 52), "1 km", "latitude first"),
        ((52, 500), "1 km", "not a place on the Earth"),
        ((52, 13), "3000 km", "km across"),
        ((52, 13), "700 km", "radius makes a region that is more than 2500 km across"),
        ((52, 13), 0, "radius is zero"),
        ((52,), 1, "has not 2"),
        (None, 1, "not a sequence"),
    ],
)
def test_discs_that_are_none(centre, radius, words):
    with pytest.raises(LastbitError, match=words):
        Region.disc(centre, radius)


def test_a_region_made_by_hand_is_checked_too():
    good = {"south": Fraction(1), "west": Fraction(2), "north": Fraction(3), "width": Fraction(1)}
    assert Region(**good).east == 3
    for name, edge in (("south", 3), ("width", 0), ("west", 200), ("north", Fraction(1, 3) + 2)):
        with pytest.raises(InvalidParameter, match="region"):
            Region(**{**good, name: Fraction(edge)})
    with pytest.raises(InvalidParameter, match="km across"):
        Region(**{**good, "width": Fraction(200)})
    for other in (1.0, 1, "1"):
        with pytest.raises(InvalidParameter, match="not Fractions"):
            Region(**{**good, "south": other})  # type: ignore[arg-type]


def test_nobody_is_told_to_cut_a_region_into_parts():
    """Two places on both sides of a cut would be told apart by the part that they come out in."""
    with pytest.raises(InvalidParameter, match="do not cut it"):
        Region.box((-20, 10, 20, 50))


@pytest.mark.parametrize(
    "edges", [(47.2, 5.8, 55.1, 15.1), (41.3, -5.2, 51.1, 9.6), (-5, 33, 5, 42)]
)
def test_whole_countries_fit(edges):
    region = Region.box(edges)
    assert local_map(region).stretch() < Fraction("1.3")
    assert np.isfinite(float(region.across_upper))
