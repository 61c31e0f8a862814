"""The planar Laplace mechanism: points of the plane, private by how far apart they are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, PrecisionExhausted, WrongType
from lastbit.exact import Number, Real, floor_log2, lower, nonnegative, positive, refine, upper
from lastbit.laws import DiscretePlanarLaplace, ScatteredPoint
from lastbit.mechanisms.lattice import Lattice, array_of, lattice, power_below
from lastbit.mechanisms.mechanism import Prepared, level, set_fields
from lastbit.privacy import AS_DECLARED, MetricDP, Neighbours, PureDP
from lastbit.sampling import MOST_STEPS, Shells, coordinates, drawn, planar_sampler

# A little above the square root of 2, which is 1.41421356237...
_DIAGONAL = Fraction("1.4142136")
_FINENESS = 1 << 10
_EXTREME = Fraction(1 << 500)
_MOST_POSITION = 1 << 60
_LEAST_LOSS = Fraction(1, 1 << 20)  # at `within`; for less, only a grid coarser than that would do


@dataclass(frozen=True, slots=True, init=False)
class PlanarLaplace(Prepared):
    """Moves points of the plane by planar Laplace noise on a public grid.

    Law      release(x) = grid (round(x/grid) + X), coordinate by coordinate rounded to the nearest
             grid point (ties to even), X = (i, j) with probability proportional to
             exp(-a sqrt(i**2 + j**2)), a = epsilon grid/(within + slack), slack = 1.4142136 grid
    Theorem  Two points d apart lose at most epsilon (d + slack)/(within + slack), and epsilon for
             d = within; equal points lose nothing. *Rounding* moves a point by at most
             sqrt(2)/2 grid, so on the lattice the two are at most D = d/grid + sqrt(2) steps
             apart. *Noise*: Z is the same wherever the centre lies, and for each output o
             abs(o - x) - abs(o - y) <= abs(x - y), so every output is at most exp(a D) times as
             likely from one as from the other, and
             a D = epsilon (d + sqrt(2) grid)/(within + slack). The float that comes back is the
             nearest to the exact result: post-processing.
             In an array each point has noise of its own: the promise is made for each; inputs that
             differ in k points lose the sum of k such losses
    Source   Andres, Bordenabe, Chatzikokolakis, Palamidessi 2013 (geo-indistinguishability);
             paper 000 section 6
    Differs  the noise is exact on a lattice, where both of them map a float through an inverse
             distribution function in polar coordinates; the effect of rounding the input is counted
    Checked  tests/mechanisms/test_planar.py

    `grid` is a power of two, or "auto": at most 1/1024 of `within` and of the noise, unless epsilon
    is so small (below 1/2048 or so) that this would be less than 2**-22 of the noise; then it is
    about 2**-20 of the noise. An epsilon that is a `Real`, such as the logarithm of 4, is rounded
    down to a float. Points beyond 2**60 steps are refused, and the refusal tells that they are
    that far: clamp to a public region first.

    >>> from lastbit.exact import Real
    >>> noise = PlanarLaplace(epsilon=1, within=200, unit="m", grid="1/8")
    >>> noise.guarantee_at(200)
    PureDP(epsilon=1)
    >>> print(noise.guarantee)
    Metric privacy: ε = 1, per = 200.1767767, unit = m, slack = 0.1767767
    >>> [type(part) for part in noise.release((12.5, -3))]
    [<class 'float'>, <class 'float'>]
    >>> noise.accuracy("0.05") < 951, PlanarLaplace(epsilon=Real(4).log(), within=200).grid
    (True, Fraction(1, 8))
    """

    epsilon: Fraction
    within: Fraction
    unit: str
    grid: Fraction
    neighbours: Neighbours

    def __init__(
        self,
        *,
        epsilon: Number | Real,
        within: Number = 1,
        unit: str = "unit",
        grid: Number = "auto",
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        loss = _loss(epsilon)
        distance = positive(within, "within")
        if loss < _LEAST_LOSS:
            raise InvalidParameter(
                "epsilon",
                problem="is below 2**-20 at the distance `within`",
                remedy="multiply both by the same number, which leaves the noise as it is",
            )
        if isinstance(grid, str) and grid == "auto":
            grid = _fitting(loss, distance)
        # every point of the plane is rounded: there is no "no grid" here
        step = lattice(positive(grid, "grid"), noise=distance / loss, dimension=2).step
        set_fields(self, epsilon=loss, within=distance, unit=unit, grid=step, neighbours=neighbours)
        set_fields(self, _sampler=None)
        if self.rate * MOST_STEPS < 1:
            raise InvalidParameter(
                "grid", problem="is finer than 2**-22 of the noise", remedy="use a coarser grid"
            )
        _ = self.guarantee  # refuses what cannot be promised: a bad unit or relation

    @property
    def slack(self) -> Fraction:
        """By how much rounding to the grid can move two points apart; a little above that."""
        return _DIAGONAL * self.grid

    @property
    def rate(self) -> Fraction:
        """The loss for one step of the grid."""
        return self.epsilon * self.grid / (self.within + self.slack)

    # -- what is promised --
    @property
    def guarantee(self) -> MetricDP:
        """What the release of one point promises, by distance."""
        return MetricDP(
            self.epsilon,
            per=self.within + self.slack,
            unit=self.unit,
            slack=self.slack,
            neighbours=self.neighbours,
        )

    def guarantee_at(self, distance: Number) -> PureDP:
        """What the release of one point promises for points at most so far apart."""
        return self.guarantee.at(nonnegative(distance, "distance"))

    # -- what is released --
    def release(self, points: Any) -> Any:
        """A private version of a pair of numbers (a tuple), or of an array of shape (..., 2)."""
        steps = self._steps(points)
        sampler = self._prepared()
        if steps.ndim == 1:
            steps = steps + np.array(drawn(sampler, None), np.int64)
        else:
            steps = steps + coordinates(drawn(sampler, steps.shape[:-1]))
        # a power of two times an integer below 2**61: only the cast rounds
        moved = np.ldexp(steps.astype(np.float64), floor_log2(self.grid))
        if steps.ndim == 1 and isinstance(points, tuple | list):
            return tuple(moved.tolist())
        return moved

    def law(self, point: Any) -> ScatteredPoint:
        """The exact law of release(point), for one point."""
        steps = self._steps(point)
        if steps.ndim != 1:
            raise WrongType("point", problem="is several points", remedy="pass one pair (x, y)")
        i, j = steps.tolist()
        return ScatteredPoint(self._noise(), (i, j), self.grid)

    # -- how far off it is --
    def accuracy(self, beta: Number) -> Fraction:
        """A distance that a release exceeds with probability at most beta, rounded up.

        Theorem  the radius of the law (`DiscretePlanarLaplace.radius`) and half a diagonal of the
                 grid for the rounding of the input. Beyond 2**53 steps a float adds half a unit in
                 its last place
        """
        far = self._noise().radius(1 - level(beta, "beta"))
        return far * self.grid + self.slack / 2

    def beta(self, error: Number) -> float:
        """The probability that a release is further off than this, rounded up."""
        left = nonnegative(error, "error") - self.slack / 2
        return self._noise().tail_upper(left / self.grid)

    @property
    def expected_error_upper(self) -> float:
        """The mean distance of a release from its point, rounded up."""
        return upper(self._noise().mean_distance() * self.grid + self.slack / 2)

    def _new_sampler(self) -> Shells:
        return planar_sampler(self.rate)

    def _noise(self) -> DiscretePlanarLaplace:
        return DiscretePlanarLaplace(self.rate)

    def _steps(self, points: Any) -> NDArray[np.int64]:
        """The grid points nearest to the points, exactly; refused before anything is drawn."""
        array = array_of(points)
        if not array.ndim or array.shape[-1] != 2:
            raise InvalidParameter(
                "value",
                problem="does not hold pairs of coordinates",
                remedy="pass (x, y), or an array whose last axis is 2 long",
            )
        steps = Lattice(self.grid, rounds=True, dimension=2).rounded(array)
        if not (np.abs(steps) <= _MOST_POSITION).all():
            raise InvalidParameter(
                "value",
                problem="lies beyond 2**60 steps of the grid",
                remedy="clamp the data first",
            )
        return steps.astype(np.int64)


def _loss(epsilon: Number | Real) -> Fraction:
    """An exact loss above 0; a computable real is rounded down."""
    if not isinstance(epsilon, Real):
        return positive(epsilon, "epsilon")

    def rounded(precision: int) -> float:
        ball = epsilon.ball(precision)
        return lower(ball) if ball > 0 else 0.0

    try:
        loss = refine(rounded, start=128, limit=4096)
    except PrecisionExhausted:
        loss = 0.0
    if not loss > 0:
        raise InvalidParameter(
            "epsilon", problem="is not certainly above 0", remedy="pass a number above 0"
        )
    return Fraction(loss)


def _fitting(loss: Fraction, within: Fraction) -> Fraction:
    """The grid for "auto": fine for both lengths, yet not too fine for the sampler.

    Theorem  the sampler takes a step s if epsilon s MOST_STEPS >= within + slack; the slack is
             1.4142136 s. That is s >= `least`, and twice the power of two below it is above it
    """
    noise = within / loss
    least = within / (loss * MOST_STEPS - _DIAGONAL)
    wanted = power_below(max(min(within, noise) / _FINENESS, noise * 4 / MOST_STEPS))
    step = max(wanted, 2 * power_below(least))
    if not 1 / _EXTREME <= step <= _EXTREME:
        raise InvalidParameter(
            "within",
            problem="and epsilon call for a grid beyond 2**-500 or 2**500",
            remedy="change the unit of distance",
        )
    return step
