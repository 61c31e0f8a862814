"""Public regions of the Earth, boxes of degrees; and how many metres a degree is on WGS84."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Real, arb_of, rational
from lastbit.geo.parsing import Length, metres

EQUATORIAL_RADIUS = 6_378_137
FLATTENING = 1 / Fraction("298.257223563")
ECCENTRICITY_SQUARED = FLATTENING * (2 - FLATTENING)


def meridian_degree(latitude: Fraction) -> Real:
    """Metres per degree of latitude: M pi/180, M = a (1-e**2) / (1 - e**2 sin(phi)**2)**(3/2).

    Theorem  M depends on abs(phi) and increases with it: the denominator falls
    Source   any text on geodesy; NGA.STND.0036 for a and the flattening
    Checked  tests/geo/test_ellipsoid.py

    >>> meridian_degree(Fraction(0)).ball(64)
    Ball(110574.275821...)
    """

    def metres() -> arb:
        root = _root(latitude)
        return arb_of(EQUATORIAL_RADIUS * (1 - ECCENTRICITY_SQUARED)) / root**3 * arb.pi() / 180

    return Real(metres)


def parallel_degree(latitude: Fraction) -> Real:
    """Metres per degree of longitude: N cos(phi) pi/180, N = a / sqrt(1 - e**2 sin(phi)**2).

    Theorem  its derivative in phi is -M sin(phi): it depends on abs(phi) and falls with it
    Source   as above
    Checked  tests/geo/test_ellipsoid.py

    >>> parallel_degree(Fraction(60)).ball(64)
    Ball(55800.001572436...)
    """

    def metres() -> arb:
        cosine = (arb_of(latitude) * arb.pi() / 180).cos()
        return EQUATORIAL_RADIUS * cosine / _root(latitude) * arb.pi() / 180

    return Real(metres)


def turn(latitude: Fraction) -> Real:
    """tan(phi)/N: by how many radians a geodesic turns in a metre where it runs due east."""

    def radians() -> arb:
        tangent = (arb_of(latitude) * arb.pi() / 180).tan()
        return tangent * _root(latitude) / EQUATORIAL_RADIUS

    return Real(radians)


def _root(latitude: Fraction) -> arb:
    sine = (arb_of(latitude) * arb.pi() / 180).sin()
    return (1 - arb_of(ECCENTRICITY_SQUARED) * sine * sine).sqrt()


POLEWARD = 85
LARGEST = 2_500_000  # metres across, along a parallel and a meridian together
NEAREST_TO_POLE = 89  # latitude that no shortest way between two places of a region may pass
_STEP = Fraction(1, 1 << 36)  # edges are multiples of it: 2 micrometres, and exact as floats
_PRECISION = 128
_BOX_REMEDY = "pass its south, west, north, east in degrees"


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """All places with latitudes from `south` to `north`, and `width` degrees eastward of `west`.

    Edges are moved outwards to multiples of 2**-36 degrees, 2 micrometres at most. A box may cross
    the date line: then its east is a smaller number than its west.

    >>> print(Region.box((52, 13, 53, "13.5")).width, Region.box((-20, 179, -19, -179)).width)
    1/2 2
    """

    south: Fraction
    west: Fraction
    north: Fraction
    width: Fraction

    def __post_init__(self) -> None:
        edges = (self.south, self.west, self.north, self.width)
        if any(not isinstance(edge, Fraction) for edge in edges):
            raise WrongType(
                "region", problem="has edges that are not Fractions", remedy="use Region.box(edges)"
            )
        if any((edge / _STEP).denominator != 1 for edge in edges):
            raise InvalidParameter(
                "region", problem="has edges between the steps", remedy="use Region.box(edges)"
            )
        if self.south >= self.north or self.width <= 0 or abs(self.west) > 180:
            raise InvalidParameter("region", problem="is empty", remedy=_BOX_REMEDY)
        _check_latitude(self.poleward, "region")
        _check_size(2 * LARGEST if self.width > 180 else self.across_upper, "region")
        if self.poleward + self.reach_upper > NEAREST_TO_POLE:
            raise InvalidParameter(
                "region",
                problem="is so wide that ways between its places may pass a pole",
                remedy="pass a smaller one, or one further from the pole",
            )

    @classmethod
    def box(cls, edges: Any) -> Region:
        """The region between (south, west, north, east), in degrees."""
        if isinstance(edges, Region):
            return edges
        south, west, north, east = _numbers(edges, 4, "region", _BOX_REMEDY)
        if max(abs(south), abs(north)) > 90 and max(abs(west), abs(east)) <= 90:
            remedy = f"{_BOX_REMEDY}, in this order"
            raise InvalidParameter("region", problem="has a latitude beyond 90", remedy=remedy)
        if south >= north:
            raise InvalidParameter(
                "region", problem="has its south at or above its north", remedy=_BOX_REMEDY
            )
        if not (-180 <= west <= 360 and -180 <= east <= 360) or west == east:
            raise InvalidParameter(
                "region",
                problem="has no longitudes from -180 to 180, or one for both sides",
                remedy=_BOX_REMEDY,
            )
        # from -180 to 180 is all the way round, and refused as such
        return _snapped(south, west, north, (east - west) % 360 or Fraction(360))

    @classmethod
    def disc(cls, centre: Any, radius: Length) -> Region:
        """The box around all places at most `radius` from a centre (latitude, longitude).

        Theorem  a curve of length r from latitude phi stays within r/M of it, M at the latitude of
                 the band next to the equator; in that band its longitude changes by at most
                 r/(N cos(phi)) at the latitude next to the pole. So the box holds the disc
        """
        remedy = "pass its latitude and longitude in degrees"
        latitude, longitude = _numbers(centre, 2, "centre", remedy)
        if abs(latitude) > 90 and abs(longitude) <= 90:
            remedy += ", the latitude first"
        if abs(latitude) > 90 or not -180 <= longitude <= 360:
            raise InvalidParameter("centre", problem="is not a place on the Earth", remedy=remedy)
        far = metres(radius, "radius")
        _check_size(4 * far, "radius")  # its box is as wide and as high as the disc, or more
        nearest = max(abs(latitude) - _degrees(far, meridian_degree(Fraction(0))), Fraction(0))
        height = _degrees(far, meridian_degree(nearest))
        farthest = abs(latitude) + height
        _check_latitude(farthest, "centre")
        half = _degrees(far, parallel_degree(farthest))
        return _snapped(latitude - height, longitude - half, latitude + height, 2 * half)

    @property
    def centre(self) -> tuple[Fraction, Fraction]:
        """The latitude and longitude in the middle, the latter from -180 to 180."""
        return (self.south + self.north) / 2, _turned(self.west + self.width / 2)

    @property
    def east(self) -> Fraction:
        """The longitude of the eastern edge, from -180 to 180."""
        return _turned(self.west + self.width)

    @property
    def equatorward(self) -> Fraction:
        """The least distance of its latitudes from the equator."""
        straddles = self.south <= 0 <= self.north
        return Fraction(0) if straddles else min(abs(self.south), abs(self.north))

    @property
    def poleward(self) -> Fraction:
        """The greatest distance of its latitudes from the equator."""
        return max(abs(self.south), abs(self.north))

    @property
    def across_upper(self) -> Fraction:
        """No two places of the region are further apart, in metres.

        Theorem  one can walk along a meridian and then along the parallel next to the equator or
                 a shorter one
        """
        up = meridian_degree(self.poleward).ball(_PRECISION).ends[1]
        along = parallel_degree(self.equatorward).ball(_PRECISION).ends[1]
        return up * (self.north - self.south) + along * self.width

    @property
    def reach_upper(self) -> Fraction:
        """Degrees of latitude by which no shortest way between two of its places leaves it.

        Theorem  each point of the way is at most half its length from one of the two, and M is
                 least where the region is nearest to the equator (`LocalMap`: no such way comes
                 nearer to it)
        """
        return self.across_upper / 2 / meridian_degree(self.equatorward).ball(_PRECISION).ends[0]


def _snapped(south: Fraction, west: Fraction, north: Fraction, width: Fraction) -> Region:
    """The region with its edges moved outwards."""
    _check_latitude(max(abs(south), abs(north)), "region")
    low, high = south // _STEP * _STEP, -(-north // _STEP) * _STEP
    left, right = west // _STEP * _STEP, -(-(west + width) // _STEP) * _STEP
    return Region(south=low, west=_turned(left), north=high, width=right - left)


def _check_latitude(latitude: Fraction, name: str) -> None:
    if latitude > POLEWARD:
        raise InvalidParameter(
            name,
            problem=f"reaches beyond {POLEWARD} degrees of latitude, where a map of degrees tears",
            remedy=f"stay between -{POLEWARD} and {POLEWARD}; near a pole project the places to a "
            "polar grid in metres and use PlanarLaplace",
        )


def _check_size(across: Fraction | int, name: str) -> None:
    if across > LARGEST:
        raise InvalidParameter(
            name,
            problem=f"{'is' if name == 'region' else 'makes a region that is'} more than "
            f"{LARGEST // 1000} km across, width and height together",
            remedy="pass a smaller one; do not cut it into parts with a Geo each: that tells in "
            "which part a place is",
        )


def _degrees(length: Fraction, per_degree: Real) -> Fraction:
    """A length in degrees, rounded up."""
    quotient = length / per_degree.ball(_PRECISION).ends[0]
    return -(-quotient // _STEP) * _STEP


def _turned(longitude: Fraction) -> Fraction:
    """The same meridian from -180 to 180; 180 stays what it is."""
    return longitude if -180 <= longitude <= 180 else (longitude + 180) % 360 - 180


def _numbers(values: Any, count: int, name: str, remedy: str) -> tuple[Fraction, ...]:
    if isinstance(values, str):
        values = values.split(",")
    try:
        items = list(values)
    except TypeError:
        raise WrongType(name, problem="is not a sequence of numbers", remedy=remedy) from None
    if len(items) != count:
        raise InvalidParameter(name, problem=f"has not {count} numbers", remedy=remedy)
    return tuple(rational(item, name) for item in items)
