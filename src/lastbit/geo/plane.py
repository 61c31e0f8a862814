"""The map from degrees to metres: linear, public, and never lengthening a distance."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lastbit.exact import Real
from lastbit.geo.region import Region, meridian_degree, parallel_degree, turn

# Metres by which the float of a coordinate may be off: proved in `LocalMap.metres`.
INPUT_ERROR = Fraction(1, 1 << 26)
_STEP = Fraction(1, 1 << 16)
_PRECISION = 128
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
        half_height, half_width = self._halves()
        out = np.empty_like(places)
        out[:, 0] = np.clip(along, -half_width, half_width) * float(self.east)
        out[:, 1] = np.clip(up, -half_height, half_height) * float(self.north)
        return out

    def drawn(self, places: Points) -> Points:
        """The same without moving anything to the edge: for pictures of what was released."""
        up, along = self._offsets(places)
        return np.stack((along * float(self.east), up * float(self.north)), axis=1)

    def degrees(self, plane: Points, *, decimals: int, remap: bool) -> Points:
        """Metres of the map as degrees, to so many decimals; `remap` moves them to the region.

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
        """The fewest decimals of a degree that resolve a step of so many metres, at most 10."""
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

    def _halves(self) -> tuple[float, float]:
        """Half the height and half the width in degrees: multiples of 2**-37, so exact."""
        return float((self.region.north - self.region.south) / 2), float(self.region.width / 2)


def local_map(region: Region) -> LocalMap:
    """The map of a region that shortens as little as is proved."""
    low, high, across = region.equatorward, region.poleward, region.across_upper
    along_meridian = _lower(meridian_degree(low))
    bulge = region.reach_upper
    for _ in range(_ROUNDS):  # what is proved of the bulge proves a little more
        steep = _upper(turn(high + bulge))
        bulge = min(bulge, steep * across**2 / 8 / along_meridian)
        bulge = -(-bulge // _STEP**2) * _STEP**2  # short, and not below
    return LocalMap(
        region=region,
        east=_lower(parallel_degree(high + bulge)) // _STEP * _STEP,
        north=along_meridian // _STEP * _STEP,
    )


def _inner(low: Fraction, high: Fraction, decimals: int) -> tuple[float, float]:
    """The two ends moved inwards to so many decimals, or left alone if nothing lies between."""
    scale = 10**decimals
    first, last = -(-low * scale // 1), high * scale // 1
    if first > last:
        return float(low), float(high)
    return float(Fraction(first, scale)), float(Fraction(last, scale))


def _upper(real: Real) -> Fraction:
    return real.ball(_PRECISION).ends[1]


def _lower(real: Real) -> Fraction:
    return real.ball(_PRECISION).ends[0]
