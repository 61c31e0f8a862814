"""Location privacy: places on the Earth, noise in metres, a promise in metres.

`Geo` takes latitudes and longitudes in degrees (WGS84) and gives back noisy ones. The promise is
about distances on the ground: an observer of a released place can hardly tell apart two true places
that are at most `within` metres from each other, and the loss grows with the distance.

Degrees become metres by a linear map of a public region. The map is chosen so that it never makes
two places look further apart than they are: proved from the ellipsoid by ball arithmetic, for every
pair of places of the region. So noise that hides distances in the plane hides them on the ground.

    >>> from lastbit.geo import Geo
    >>> berlin = Geo(epsilon="ln(4)/200m", region=(52.3, 13.0, 52.7, 13.8))  # S, W, N, E
    >>> latitude, longitude = berlin.release((52.5163, 13.3777))    # or a list, or an (n, 2) array
    >>> berlin.radius("0.95") < 700         # metres that 95 % of the releases stay within
    True
    >>> float(berlin.guarantee_of(10).at(200).epsilon) < 13.87      # ten places of one person
    True

The region is public. Taken from the data it would tell where the outermost person is; a point
outside of it is moved to its edge first, and that is not told.
"""

from lastbit.doors import opened

__getattr__, __dir__, __all__ = opened(__name__)
