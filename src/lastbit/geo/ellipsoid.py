"""The ellipsoid WGS84: how many metres a degree is, at a latitude, as enclosed reals."""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from lastbit.exact.ball import arb_of
from lastbit.exact.real import Real

__all__ = ["meridian_degree", "parallel_degree", "turn"]

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
