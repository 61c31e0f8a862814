"""`Geo`: noisy places on the Earth, with a promise in metres on the ground."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, Real, rational, shown, upper, whole
from lastbit.geo.parsing import ExactLoss, Length, loss_and_distance, metres, places_of
from lastbit.geo.region import INPUT_ERROR, LocalMap, Region, local_map
from lastbit.laws import quantile_level
from lastbit.mechanisms import PlanarLaplace
from lastbit.privacy import MetricDP, PureDP, times

# Two places, each of them off by INPUT_ERROR in two coordinates: 2 sqrt(2) of it are 4.22e-8.
_SLACK = Fraction("5e-8")
_LARGEST_WITHIN = 10**7
_MOST_STEPS = 1 << 50
_LEAST_LOSS = Fraction(1, 1 << 20)
# No two places are further apart: over one of the poles it is at most half a meridian ellipse.
_FARTHEST = 20_004_000
_RARE = Fraction(1, 1 << 40)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Geo:
    """Moves places by planar Laplace noise, so that places `within` metres look alike.

    Law      a place outside the region is moved to its edge; the place is mapped to metres by the
             region's `LocalMap`; `PlanarLaplace` adds noise there; the result is mapped back,
             moved to the region (unless `remap=False`) and rounded to `decimals`
    Theorem  for two places of the region at the distance d on the ground every output is at most
             exp(guarantee.at(d)) times as likely from one as from the other, and for d <= within
             at most exp(epsilon) times. The map gives them a distance d' <= d, and floats are off
             by at most INPUT_ERROR in each of the four coordinates, so `PlanarLaplace` sees places
             at most d + 2 sqrt(2) INPUT_ERROR <= d + 5e-8 m apart; it is built for within + 5e-8.
             What follows the noise is post-processing
    Source   Andres, Bordenabe, Chatzikokolakis, Palamidessi 2013; paper 000 section 6
    Differs  distances are those of the ellipsoid WGS84, not of a plane; noise is exact and lives
             on a grid; rounding is counted
    Checked  tests/geo/test_location.py

    A place outside the region is as private as the place of the edge that it is moved to. Two of
    them may be further apart than the true ones were: declare a region that holds everybody you
    expect.

    >>> berlin = Geo(epsilon="ln(4)/200m", region=(52.3, 13.0, 52.7, 13.8))
    >>> latitude, longitude = berlin.release((52.5163, 13.3777))
    >>> 52.3 <= latitude <= 52.7 and 13 <= longitude <= 13.8
    True
    >>> berlin.guarantee_at(200).epsilon < 1.3862943611198907      # not above ln(4)
    True
    >>> 550 < berlin.radius("0.95") < 750                          # metres, on the ground
    True
    """

    loss: ExactLoss
    within: Fraction
    map: LocalMap
    remap: bool
    grid: Number
    mechanism: PlanarLaplace = field(compare=False)

    def __init__(
        self,
        *,
        epsilon: Number | Real | ExactLoss,
        within: Length | None = None,
        region: Any = None,
        centre: Any = None,
        radius: Length | None = None,
        grid: Number = "auto",
        remap: bool = True,
    ) -> None:
        loss, spelled = loss_and_distance(epsilon)
        if (within is None) == (spelled is None):
            raise InvalidParameter(
                "within",
                problem="is missing" if within is None else "is given twice",
                remedy="pass {epsilon}, or another with {within}",
                epsilon="ln(4)/200m",
                within="200 m",
            )
        distance = metres(within, "within") if spelled is None else spelled
        if distance > _LARGEST_WITHIN:
            raise InvalidParameter(
                "within", problem="is more than 10000 km", remedy="pass a distance on the Earth"
            )
        if not isinstance(remap, bool):
            raise WrongType("remap", problem="is not a truth value", remedy="pass True or False")
        disc = centre is not None or radius is not None
        if (region is None) == (not disc) or (centre is None) != (radius is None):
            raise InvalidParameter(
                "region",
                problem="is public and must be declared, once: taken from the data it would tell "
                "where the outermost person is",
                remedy="pass region=(south, west, north, east) in degrees, or "
                'centre=(latitude, longitude) and radius="10 km"',
            )
        plane = local_map(Region.disc(centre, radius) if radius is not None else Region.box(region))
        if loss.ball().ends[0] < _LEAST_LOSS:
            raise InvalidParameter(
                "epsilon",
                problem="is below 2**-20 at its distance",
                remedy="name a longer distance, 0.001 per 10 km for 1e-7 per m",
            )
        noise = PlanarLaplace(epsilon=loss.value, within=distance + _SLACK, unit="m", grid=grid)
        if max(plane.extent) > _MOST_STEPS * noise.grid:  # places at the edge would have no number
            raise InvalidParameter(
                "grid",
                problem="is finer than 2**-50 of the region",
                remedy="pass a smaller epsilon, or a coarser grid, {grid}",
                grid="1/1024",
            )
        fields = {"loss": loss, "within": distance, "map": plane, "remap": remap, "grid": grid}
        for name, value in {**fields, "mechanism": noise}.items():
            object.__setattr__(self, name, value)

    # -- what is promised --
    @property
    def epsilon(self) -> Fraction | Real:
        """The loss for two places at most `within` apart."""
        return self.loss.value

    @property
    def region(self) -> Region:
        """The public region."""
        return self.map.region

    @property
    def guarantee(self) -> MetricDP:
        """What one released place promises, by the distance on the ground in metres."""
        return self.guarantee_of(1)

    def guarantee_at(self, distance: Length) -> PureDP:
        """What one released place promises for places at most this many metres apart."""
        number = distance if isinstance(distance, str) else rational(distance, "distance")
        if number == 0:
            return PureDP(0)
        return self.mechanism.guarantee_at(metres(number, "distance") + _SLACK)

    def guarantee_of(self, points: int) -> MetricDP:
        """What a trace of `points` places promises, if every one of them moves by the distance.

        Theorem  the noise of each is independent, so the losses add up
        """
        count = whole(points, "points", least=1)
        one = self.mechanism.guarantee
        return MetricDP(
            times(Fraction(count), one.epsilon), per=one.per, unit="m", slack=one.slack + _SLACK
        )

    def with_budget(self, epsilon: Number | Real, *, points: int) -> Geo:
        """The same for traces of `points` places that lose `epsilon` in all, at `within` metres."""
        count = whole(points, "points", least=1)
        total, spelled = loss_and_distance(epsilon)
        return Geo(
            epsilon=total.divided(count),
            within=self.within if spelled is None else spelled,
            region=self.region,
            grid=self.grid,
            remap=self.remap,
        )

    # -- what is released --
    def release(self, points: Any) -> Any:
        """Noisy places: a tuple for one pair, an array of shape (n, 2) for several.

        Each has independent noise. If one person has several of them, `guarantee_of` says what
        they lose together.
        """
        places, single = places_of(points)
        noisy = self.mechanism.release(self.map.metres(places))
        out = self.map.degrees(
            np.asarray(noisy, np.float64), decimals=self.decimals, remap=self.remap
        )
        if not single:
            return out
        return out[0] if isinstance(points, np.ndarray) else (float(out[0, 0]), float(out[0, 1]))

    def trace(self, points: Any) -> tuple[Any, MetricDP]:
        """The noisy places of one person's trace, and what they promise together."""
        places, _ = places_of(points)
        return self.release(places), self.guarantee_of(len(places))

    @property
    def decimals(self) -> int:
        """How many decimals of a degree a released coordinate has: as many as show the grid."""
        return self.map.decimals(self.step)

    @property
    def step(self) -> Fraction:
        """The grid's step in metres."""
        return self.mechanism.grid

    # -- how far off it is --
    def radius(self, probability: Number = "0.95") -> float:
        """Metres on the ground within which a release stays this surely, rounded up.

        Measured from the true place, or from where it was moved to if it lies outside the region.

        Theorem  in the map the noisy place is that near by `PlanarLaplace.accuracy`; moving it to
                 the region, which is convex there and holds the true place, brings it no further
                 away; rounding adds `rounding_upper`; the ground is `stretch` times longer, taken
                 over all latitudes that the way between the two can meet
        """
        share = quantile_level(probability, remedy="pass, say, 0.95")
        far = self.mechanism.accuracy(1 - share) + self._rounding()
        return upper(min(self._stretch(far) * far, Fraction(_FARTHEST)))

    @property
    def expected_error_upper(self) -> float:
        """Metres on the ground by which a release is off on average, rounded up.

        Theorem  as for the radius; noise beyond a distance that is exceeded with probability 2**-40
                 counts with half the way round the Earth
        """
        far = self.mechanism.accuracy(_RARE) + self._rounding()
        mean = rational(self.mechanism.expected_error_upper) + self._rounding()
        error = self._stretch(far) * mean + _RARE * _FARTHEST
        return upper(min(error, Fraction(_FARTHEST)))

    def _stretch(self, far: Fraction) -> Fraction:
        """Metres on the ground for one of the map, if a release is no further off than this."""
        return self.map.stretch(Fraction(0) if self.remap else far / self.map.north)

    def _rounding(self) -> Fraction:
        return self.map.rounding_upper(self.decimals) + 2 * INPUT_ERROR

    def __repr__(self) -> str:
        region = self.region
        edges = (region.south, region.west, region.north, region.east)
        box = ", ".join(f"{float(edge):.6g}" for edge in edges)
        within = shown(self.within).strip("'")
        return f"Geo(epsilon={str(self.loss)!r}, within='{within} m', region=({box}))"

    def __reduce__(self) -> tuple[object, ...]:
        declared = partial(Geo, within=self.within, region=self.region, grid=self.grid)
        return partial(declared, epsilon=self.loss, remap=self.remap), ()
