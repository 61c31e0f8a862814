"""The map: shortens every distance of the region, and stretches back no more than it says."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from lastbit.errors import LastbitError
from lastbit.geo.region import (
    INPUT_ERROR,
    LocalMap,
    Region,
    local_map,
    meridian_degree,
    parallel_degree,
)
from tests.geo import geodesic

TOLERANCE = 1e-3  # metres: Vincenty's series is good to a tenth of it
shares = st.floats(0, 1)


@st.composite
def regions(draw, largest: float = 8.0):
    south = draw(st.floats(-80, 80 - largest / 2))
    height = draw(st.floats(1e-3, largest))
    west = draw(st.floats(-180, 180))
    width = draw(st.floats(1e-3, largest)) / math.cos(math.radians(min(abs(south) + height, 84)))
    north = min(south + height, 80.0)
    east = (west + width + 180) % 360 - 180
    try:
        return Region.box((south, west, north, east))
    except LastbitError:
        return Region.box((south, 10, south + height / 8, 10 + width / 8))


def inside(region: Region, up: float, along: float) -> tuple[float, float]:
    south, height = float(region.south), float(region.north - region.south)
    return south + up * height, float(region.west) + along * float(region.width)


def mapped(plane: LocalMap, *places: tuple[float, float]) -> list[list[float]]:
    turned = [(p[0], (p[1] + 180) % 360 - 180) for p in places]
    return plane.metres(np.array(turned)).tolist()


def pair(plane: LocalMap, one, other) -> tuple[float, float]:
    """The distance on the map and on the ground."""
    return math.dist(*mapped(plane, one, other)), geodesic.distance(one, other)


@settings(deadline=None, max_examples=300)
@given(regions(), shares, shares, shares, shares)
def test_no_distance_of_the_region_grows(region, up, along, further_up, further_along):
    plane = local_map(region)
    flat, ground = pair(plane, inside(region, up, along), inside(region, further_up, further_along))
    assert flat <= ground + TOLERANCE
    assert ground <= float(plane.stretch()) * flat + TOLERANCE


def edges(region: Region) -> list[tuple[float, float]]:
    return [inside(region, *corner) for corner in itertools.product((0, 0.5, 1), (0, 0.5, 1))]


@settings(deadline=None, max_examples=60)
@given(regions())
def test_neither_corners_nor_edges_grow(region):
    plane = local_map(region)
    for one, other in itertools.combinations(edges(region), 2):
        flat, ground = pair(plane, one, other)
        assert flat <= ground + TOLERANCE
        assert ground <= float(plane.stretch()) * flat + TOLERANCE


WIDE = Region.box((70, -10, 72, 12))


def grows_somewhere(plane: LocalMap) -> bool:
    pairs = itertools.combinations(edges(plane.region), 2)
    return any(flat > ground + TOLERANCE for flat, ground in (pair(plane, *p) for p in pairs))


def test_the_bulge_cannot_be_forgotten():
    """A geodesic between the northern corners leaves the region: fitting the edge is not enough."""
    plane = local_map(WIDE)
    assert not grows_somewhere(plane)
    edge = parallel_degree(WIDE.poleward).ball(128).ends[0]
    assert grows_somewhere(replace(plane, east=edge))


@pytest.mark.parametrize("factor", ["1.05", "1.01"])
def test_mutants_that_lengthen_are_seen(factor):
    plane = local_map(Region.box((50, 8, 50.5, 8.5)))
    assert not grows_somewhere(plane)
    assert grows_somewhere(replace(plane, north=plane.north * Fraction(factor)))
    assert grows_somewhere(replace(plane, east=plane.east * Fraction(factor)))


def test_the_middle_of_the_region_would_not_do():
    region = Region.box((59, 8, 61, 10))
    middle = parallel_degree(Fraction(60)).ball(128).ends[0]
    assert grows_somewhere(replace(local_map(region), east=middle))


@settings(deadline=None, max_examples=60)
@given(regions(largest=2.0))
def test_the_bounds_are_not_twice_too_large(region):
    """Against what short pairs at the two edges really show: no linear map could do with less."""
    plane = local_map(region)
    low, high = region.equatorward, region.poleward
    along = parallel_degree(low).ball(128).ends[0] / parallel_degree(high).ball(128).ends[1]
    up = meridian_degree(high).ball(128).ends[0] / meridian_degree(low).ball(128).ends[1]
    needed = float(max(along, up)) - 1
    size = float(region.across_upper) / geodesic.A
    curved = (size * math.tan(math.radians(float(high)))) ** 2 / 8  # of what geodesics bulge
    assert float(plane.stretch()) - 1 <= needed + 1.2 * curved + 1e-6
    if float(region.width) < 4 * float(region.north - region.south):
        assert float(plane.stretch()) - 1 <= 2 * needed + 1e-6


def test_stretch_grows_with_what_lies_beyond():
    plane = local_map(Region.box((60, 8, 60.5, 9)))
    assert plane.stretch() < plane.stretch(Fraction(1)) < plane.stretch(Fraction(90))


@settings(deadline=None, max_examples=200)
@given(regions(), st.floats(-90, 90), st.floats(-180, 360))
def test_floats_are_as_near_as_the_proof_says(region, latitude, longitude):
    plane = local_map(region)
    up = Fraction(latitude) - region.centre[0]
    along = (Fraction(longitude) - region.centre[1] + 180) % 360 - 180
    half_height, half_width = (region.north - region.south) / 2, region.width / 2
    if abs(abs(along) - 180) < 1e-9:
        return  # the far side of the Earth: rounding may go either way, both lead to an edge
    exact = (
        min(max(along, -half_width), half_width) * plane.east,
        min(max(up, -half_height), half_height) * plane.north,
    )
    found = plane.metres(np.array([[latitude, longitude]]))[0].tolist()
    for float_, truth in zip(found, exact, strict=True):
        assert abs(Fraction(float_) - truth) <= INPUT_ERROR


def counted_from_the_centre(plane: LocalMap, longitudes: list[float]) -> list[float]:
    """The mutant: the centre is subtracted from the longitude as it was written."""
    along = [longitude - float(plane.region.centre[1]) for longitude in longitudes]
    return [(a - 360 if a > 180 else a) * float(plane.east) for a in along]


def test_a_place_has_one_image_however_its_longitude_is_counted():
    """These two are exactly 360 degrees apart: one meridian, so nothing may tell them apart."""
    plane = local_map(Region.box((-18, -171, -17, -170)))
    one, other = 189.38196963585355, -170.61803036414645
    assert Fraction(one) - 360 == Fraction(other)
    east = plane.metres(np.array([[-17.5, one], [-17.5, other]]))[:, 0]
    assert east[0] == east[1]
    first, second = counted_from_the_centre(plane, [one, other])
    assert round(first * 8) != round(second * 8)  # on two points of the grid 1/8 m


@settings(deadline=None, max_examples=200)
@given(regions(), shares, shares)
def test_both_ways_of_counting_give_one_image(region, up, along):
    latitude, longitude = inside(region, up, along)
    far = longitude % 360 if longitude % 360 >= 180 else 180.0  # near 180 at worst: still a place
    assert Fraction(far) - 360 == Fraction(far - 360)
    image = local_map(region).metres(np.array([[latitude, far], [latitude, far - 360]]))
    assert (image[0] == image[1]).all()


@settings(deadline=None, max_examples=100)
@given(regions(), shares, shares)
def test_there_and_back(region, up, along):
    plane = local_map(region)
    place = inside(region, up, along)
    back = plane.degrees(np.array(mapped(plane, place)), decimals=9, remap=True)[0]
    assert -90 <= back[0] <= 90 and -180 <= back[1] <= 180
    limit = float(plane.rounding_upper(9) + 2 * INPUT_ERROR)
    assert math.dist(mapped(plane, tuple(back))[0], mapped(plane, place)[0]) <= limit + 1e-6


def test_the_date_line_is_no_line():
    region = Region.box((-18, 179.5, -17, -179.5))
    plane = local_map(region)
    west, east, other = plane.metres(
        np.array([[-17.5, 179.999], [-17.5, -179.999], [-17.5, 180.001]])
    )
    assert math.dist(west, east) == pytest.approx(
        geodesic.distance((-17.5, 179.999), (-17.5, -179.999)), rel=0.01
    )
    assert math.dist(east, other) < 1e-6
    back = plane.degrees(
        np.array([[0.0, 0.0], [300.0, 0.0], [-300.0, 0.0]]), decimals=6, remap=True
    )
    assert back[0, 1] in (180.0, -180.0)
    assert -180 < back[1, 1] < -179.9 and 179.9 < back[2, 1] < 180


@pytest.mark.parametrize("place", [(90, 0), (-90, 200), (10, 13.4), (52.5, -170), (52.9, 14.5)])
def test_places_outside_are_moved_to_the_edge(place):
    plane = local_map(Region.box((52.3, 13, 52.7, 13.8)))
    x, y = plane.metres(np.array([place], np.float64))[0]
    half_width, half_height = (float(half) for half in plane.extent)
    assert abs(x) <= half_width + 1e-6 and abs(y) <= half_height + 1e-6
    assert abs(x) > half_width - 1e-6 or abs(y) > half_height - 1e-6
    drawn = plane.drawn(np.array([place], np.float64))[0]
    assert abs(drawn[0]) > half_width or abs(drawn[1]) > half_height


def test_remap_keeps_the_declared_edges_in_few_decimals():
    plane = local_map(Region.box((52.3, 13, 52.7, 13.8)))
    far = np.array([[2e7, 2e7], [-2e7, -2e7]])
    assert plane.degrees(far, decimals=5, remap=True).tolist() == [[52.7, 13.8], [52.3, 13.0]]
    outside = plane.degrees(far, decimals=5, remap=False)
    assert outside[:, 0].tolist() == [90.0, -90.0]
    assert (np.abs(outside[:, 1]) <= 180).all()


@pytest.mark.parametrize(
    ("step", "decimals"), [("1/8", 6), (1, 6), (2, 5), (1000, 3), ("1e-12", 10)]
)
def test_decimals_resolve_the_step(step, decimals):
    plane = local_map(Region.box((52.3, 13, 52.7, 13.8)))
    assert plane.decimals(Fraction(step)) == decimals


def test_no_negative_zero():
    plane = local_map(Region.box((-1, -1, 1, 1)))
    back = plane.degrees(np.array([[-1e-9, -1e-9]]), decimals=5, remap=True)
    assert not np.signbit(back).any()
