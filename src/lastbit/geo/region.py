"""Public regions of the Earth, and their maps from degrees to metres: linear, never lengthening."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

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
        up = _upper(meridian_degree(self.poleward))
        along = _upper(parallel_degree(self.equatorward))
        return up * (self.north - self.south) + along * self.width

    @property
    def reach_upper(self) -> Fraction:
        """Degrees of latitude by which no shortest way between two of its places leaves it.

        Theorem  each point of the way is at most half its length from one of the two, and M is
                 least where the region is nearest to the equator (`LocalMap`: no such way comes
                 nearer to it)
        """
        return self.across_upper / 2 / _lower(meridian_degree(self.equatorward))


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
            remedy="pass a smaller one; several small ones would tell in which part a place is",
        )


def _degrees(length: Fraction, per_degree: Real) -> Fraction:
    """A length in degrees, rounded up."""
    quotient = length / _lower(per_degree)
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


# Metres by which the float of a coordinate may be off: proved in `LocalMap.metres`.
INPUT_ERROR = Fraction(1, 1 << 26)
_FINENESS = Fraction(1, 1 << 16)
_EVERYWHERE = Fraction(90)
_MOST_DECIMALS = 10
_ROUNDS = 4

Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalMap:
    """A linear map of a region: x = east (longitude - centre), y = north (latitude - centre).

    Law      `east` and `north` are metres per degree, multiples of 2**-16. Let L be the greatest
             abs(latitude) of the region and l the least. `north` is M(l) pi/180 and `east` is
             N cos(L + bulge) pi/180, both rounded down
    Theorem  for two places p, q of the region at the distance d along the ground, the distance d'
             of their images is at most d; and d is at most `stretch()` times d'

             First part. Let g be a shortest curve from p to q, s its length measured along it and
             A its azimuth. An element ds of g has the image sqrt((east dlon)**2 + (north dlat)**2),
             which is at most ds where N cos(phi) pi/180 >= east and M pi/180 >= north. Images of
             curves are no shorter than images of their ends (if g went round the Earth the long
             way its image would be longer still: the region is at most 180 degrees wide). So it is
             enough that l <= abs(phi) <= L + bulge along g. On g phi' = cos(A)/M and
             A' = tan(phi) sin(A)/N, so where phi' = 0 the second derivative of phi has the sign of
             -phi: a least latitude inside g cannot be above 0. Nor can g cross the equator and come
             back: its part beyond, reflected, would give a curve as short with a corner. Hence
             abs(phi) >= l. Suppose phi exceeds L, and is greatest at some point, where cos(A) = 0.
             The nearer point of g at latitude L is at most d/2 away, and d <= D, what the region
             is across. So phi <= L + (D/2)/M =: L' (at most 89 degrees), abs(A') <= t =
             tan(L')/N(L') between the two, abs(cos(A)) <= t s at s from the top, and the top is at
             most t (D/2)**2 / (2 M) above L. The lesser of the two bounds is the bulge;
             L plus it is a new L', and so on a few times
             Second part. The segment between the images is the image of a curve in the region whose
             elements are at most max(N cos(l) pi/180/east, M(L) pi/180/north) times as long
    Source   the equations of geodesics are Clairaut's and Bessel's
    Differs  usual local maps fit the middle of the region and lengthen some distances a little
    Checked  tests/geo/test_plane.py

    >>> berlin = local_map(Region.box((52.3, 13, 52.7, 13.8)))
    >>> float(berlin.stretch()) < 1.01
    True
    """

    region: Region
    east: Fraction
    north: Fraction

    def stretch(self, beyond: Fraction = Fraction(0)) -> Fraction:
        """How many metres on the ground a metre of the map is at most, rounded up.

        `beyond` are degrees by which the latitudes may leave the region on either side.
        """
        low = max(self.region.equatorward - beyond, Fraction(0))
        high = min(self.region.poleward + beyond, _EVERYWHERE)
        along = _upper(parallel_degree(low)) / self.east
        up = _upper(meridian_degree(high)) / self.north
        return max(along, up)

    def metres(self, places: Points) -> Points:
        """Degrees (latitude, longitude) as metres (east, north) of the centre, moved to the edge.

        Theorem  each coordinate is within 2**-26 m of the exact image of what was meant. A number
                 rounded to a float of at most 360 is off by at most 2**-45 degrees. Subtracting
                 the centre (exact as a float) gives at most 360 in size: 2**-45. Adding or
                 subtracting 360 is exact (Sterbenz), clamping too. Metres per degree are below
                 2**17, so this is 2**-27 m, and the product, below 2**21, adds 2**-33.
                 A meridian has one number when the centre is subtracted, so a place has one image
                 however its longitude is counted: at the distance 0 nothing is lost
        """
        up, along = self._offsets(places)
        half_height = float((self.region.north - self.region.south) / 2)  # multiples of 2**-37:
        half_width = float(self.region.width / 2)  # both exact
        out = np.empty_like(places)
        out[:, 0] = np.clip(along, -half_width, half_width) * float(self.east)
        out[:, 1] = np.clip(up, -half_height, half_height) * float(self.north)
        return out

    def drawn(self, places: Points) -> Points:
        """The same without moving anything to the edge: for pictures of what was released."""
        up, along = self._offsets(places)
        return np.stack((along * float(self.east), up * float(self.north)), axis=1)

    def degrees(self, plane: Points, *, decimals: int, remap: bool) -> Points:
        """Metres of the map as degrees, to `decimals` decimals; `remap` moves them to the region.

        This is post-processing: nothing here sees the data.
        """
        latitude, longitude = (float(c) for c in self.region.centre)
        up = np.round(plane[:, 1] / float(self.north) + latitude, decimals)
        along = np.round(plane[:, 0] / float(self.east) + longitude, decimals)
        if remap:
            south, north = _inner(self.region.south, self.region.north, decimals)
            left = self.region.centre[1] - self.region.width / 2
            west, east = _inner(left, left + self.region.width, decimals)
            up, along = np.clip(up, south, north), np.clip(along, west, east)
        out = np.empty_like(plane)
        out[:, 0] = np.clip(up, -90, 90)
        turned = np.round(np.remainder(along + 180, 360) - 180, decimals)
        out[:, 1] = np.where(np.abs(along) <= 180, along, turned)
        return out + 0.0  # no -0.0

    def decimals(self, step: Fraction) -> int:
        """The fewest decimals of a degree that resolve a step of this many metres, at most 10."""
        finest: Fraction = max(self.east, self.north)
        for digits in range(_MOST_DECIMALS):
            if finest / 10**digits <= step:
                return digits
        return _MOST_DECIMALS

    def rounding_upper(self, decimals: int) -> Fraction:
        """Metres of the map by which `degrees` moves a place at most while rounding it.

        Each coordinate moves by at most one unit of the last decimal, and three roundings of
        floats below 512 add less than 0.01 of a unit of the tenth: 1.5 exceeds 1.01 sqrt(2).
        """
        coarsest: Fraction = max(self.east, self.north)
        return Fraction(3, 2 * 10**decimals) * coarsest

    @property
    def extent(self) -> tuple[Fraction, Fraction]:
        """Half the width and half the height of the region, in metres of the map."""
        height = self.region.north - self.region.south
        return self.region.width / 2 * self.east, height / 2 * self.north

    def _offsets(self, places: Points) -> tuple[Points, Points]:
        """Degrees north and east of the centre, the latter from -180 to 180."""
        latitude, longitude = (float(c) for c in self.region.centre)
        # 190 and -170 are one meridian, 180 and -180 too: counted alike before anything rounds
        counted = np.where(places[:, 1] >= 180, places[:, 1] - 360, places[:, 1])
        along = counted - longitude
        along = np.where(along >= 180, along - 360, along)
        return places[:, 0] - latitude, np.where(along < -180, along + 360, along)


def local_map(region: Region) -> LocalMap:
    """The map of a region that shortens as little as is proved."""
    low, high, across = region.equatorward, region.poleward, region.across_upper
    along_meridian = _lower(meridian_degree(low))
    bulge = region.reach_upper
    for _ in range(_ROUNDS):  # what is proved of the bulge proves a little more
        steep = _upper(turn(high + bulge))
        bulge = min(bulge, steep * across**2 / 8 / along_meridian)
        bulge = -(-bulge // _FINENESS**2) * _FINENESS**2  # short, and not below
    return LocalMap(
        region=region,
        east=_lower(parallel_degree(high + bulge)) // _FINENESS * _FINENESS,
        north=along_meridian // _FINENESS * _FINENESS,
    )


def _inner(low: Fraction, high: Fraction, decimals: int) -> tuple[float, float]:
    """The two ends moved inwards to that many decimals, or left alone if nothing lies between."""
    scale = 10**decimals
    first, last = -(-low * scale // 1), high * scale // 1
    if first > last:
        return float(low), float(high)
    return float(Fraction(first, scale)), float(Fraction(last, scale))


def _upper(real: Real) -> Fraction:
    return real.ball(_PRECISION).ends[1]


def _lower(real: Real) -> Fraction:
    return real.ball(_PRECISION).ends[0]
