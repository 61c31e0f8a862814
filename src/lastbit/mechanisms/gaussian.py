"""The Gaussian mechanism."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np

from lastbit.arguments import check_kind
from lastbit.errors import InvalidParameter
from lastbit.exact import (
    Number,
    Real,
    arb_of,
    nonnegative,
    positive,
    root_below,
    upper,
    whole,
    working_precision,
)
from lastbit.laws import DiscreteGaussian, OnGrid, Shifted, tail_weight, theta
from lastbit.mechanisms.gaussian_coordinates import Coordinates, exact_list, is_list, length_above
from lastbit.mechanisms.lattice import Additive, Lattice, array_of, check_whole_sensitivity, lattice
from lastbit.mechanisms.mechanism import exactly_one, level, not_below, set_fields
from lastbit.privacy import (
    AS_DECLARED,
    LEAST_VECTOR_VARIANCE,
    ZCDP,
    ApproxDP,
    DiscreteGaussianLoss,
    DiscreteGaussianVectorLoss,
    GaussianLoss,
    Loss,
    Neighbours,
    check_neighbours,
    delta_upper,
    least_noise,
)
from lastbit.sampling import Sampler, gaussian_sampler

PerCoordinate: TypeAlias = Number | Sequence[Number]
"""One number for all coordinates, or a list with one for each."""
Method = Literal["exact", "classical", "zcdp", "gdp"]
LEAST_DELTA = Fraction(1, 1 << 1000)


@dataclass(frozen=True, slots=True, init=False)
class Gaussian(Additive):
    """Adds discrete Gaussian noise to integers, or to floats on a public grid.

    Law      release(x) = x + X, P[X = k] proportional to exp(-k**2 / (2 v)), k counted in steps of
             the lattice (1 for integers), v = variance/step**2
    Theorem  if two inputs are at most m steps apart in the L2 norm, the mechanism is
             m**2/(2v)-zCDP (CKS20 Theorem 14): exactly rational, no rounding anywhere. For one
             coordinate its exact (epsilon, delta) curve is `discrete_gaussian_delta`; vectors are
             dominated by a pair of Gaussians (privacy/gaussian_pair.py)
    Source   paper 001; Canonne, Kamath, Steinke 2020
    Differs  m counts the rounding of floats to the grid; edge cases as in paper 001: a negative
             distance is refused, distance 0 costs 0 even without noise, no noise costs infinity
             (and is never released)
    Checked  tests/mechanisms/test_gaussian.py; proof: docs/theory/gaussian.md

    Vectors must be declared (`dimension=`), since the curve for one number says nothing of them.
    Constructed from `standard_deviation=` or `variance=` (raw), from `rho=`, or from `epsilon=` and
    `delta=`: then by `method="exact"` (the least noise whose exact curve meets the target; one
    coordinate), `"gdp"` (through a pair of Gaussians that is no better; any dimension), `"zcdp"`
    (through concentrated privacy; any dimension) or `"classical"` (sqrt(2 ln(1.25/delta))
    sensitivity/epsilon, for epsilon < 1 only). Vectors get the less noise of gdp and zcdp.

    `sensitivity=` and `variance=` (or `standard_deviation=`) may be lists, with a number for each
    coordinate: then the joint bound counts, sum sensitivity_j**2/(2 variance_j), see `Coordinates`.
    The fields `sensitivity` and `variance` hold the L2 norm, rounded up, and the least variance:
    together they never promise more.

    >>> Gaussian(sensitivity=1, rho="1/2").guarantee
    ZCDP(rho='0.5')
    >>> noise = Gaussian(sensitivity=1, epsilon=1, delta="1e-6")
    >>> noise.guarantee, noise.standard_deviation_upper < 4.3
    (ApproxDP(epsilon=1, delta='1e-06'), True)
    >>> isinstance(noise.release(42), int)
    True
    >>> Gaussian(sensitivity=[1, 10], variance=[4, 400]).guarantee       # 1/8 + 1/8
    ZCDP(rho='0.25')
    """

    sensitivity: Fraction
    variance: Fraction
    coordinates: Coordinates | None
    lattice: Lattice
    neighbours: Neighbours
    target: ApproxDP | None
    method: Method | None

    def __init__(
        self,
        *,
        sensitivity: PerCoordinate,
        standard_deviation: PerCoordinate | None = None,
        variance: PerCoordinate | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        method: Method | None = None,
        grid: Number | None = None,
        dimension: int = 1,
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        exactly_one(
            standard_deviation=standard_deviation, variance=variance, rho=rho, epsilon=epsilon
        )
        if (epsilon is None) != (delta is None):
            raise InvalidParameter(
                "delta", problem="and epsilon go together", remedy="pass both, or {rho}", rho=""
            )
        check_kind(method, (str, type(None)), "method", remedy='pass "exact", "gdp" or "zcdp"')
        if epsilon is None and method is not None:
            raise InvalidParameter(
                "method",
                problem="needs a target",
                remedy="pass {epsilon} and {delta}",
                epsilon="",
                delta="",
            )
        target, grounds = None, None
        parts = _coordinates(sensitivity, standard_deviation, variance, dimension)
        distance = positive(
            sensitivity
            if parts is None or parts.sensitivities is None
            else length_above(parts.sensitivities),
            "sensitivity",
        )
        if parts is not None:
            noise, dimension = min(parts.variances), len(parts.variances)
        elif standard_deviation is not None:
            noise = nonnegative(standard_deviation, "standard_deviation") ** 2
        elif variance is not None:
            noise = nonnegative(variance, "variance")
        elif rho is not None:
            loss = positive(rho, "rho")
            grounds = lattice(grid, noise=root_below(distance**2 / (2 * loss)), dimension=dimension)
            noise = (grounds.l2_steps(distance) * grounds.step) ** 2 / (2 * loss)
        else:
            target = ApproxDP(positive(epsilon, "epsilon"), _level(delta), neighbours=neighbours)
            methods: tuple[Method, ...] = ("exact",) if dimension == 1 else ("gdp", "zcdp")
            ways = {
                way: _calibrated(distance, target, way, grid, dimension)
                for way in ((method,) if method else methods)
            }
            method, (noise, grounds) = min(ways.items(), key=lambda way: way[1][0])
        if grounds is None:
            grounds = lattice(grid, noise=root_below(noise) or Fraction(1), dimension=dimension)
        for far in (distance,) if parts is None else parts.sensitivities or (distance,):
            if far:
                check_whole_sensitivity(far, grounds)
        check_neighbours(neighbours)
        set_fields(self, sensitivity=distance, variance=noise, coordinates=parts, lattice=grounds)
        set_fields(self, neighbours=neighbours, target=target, method=method, _sampler=None)

    @property
    def standard_deviation_upper(self) -> float:
        """The square root of the variance (of the least one), rounded up."""
        return upper(Real(self.variance).sqrt().ball(128)) if self.variance else 0.0

    @property
    def guarantee(self) -> ZCDP | ApproxDP:
        """What one release promises for the declared sensitivity: the target, or the exact rho."""
        return self.target or self.guarantee_at(self._declared)

    @property
    def _declared(self) -> PerCoordinate:
        parts = self.coordinates
        return self.sensitivity if parts is None else parts.sensitivities or self.sensitivity

    @property
    def loss(self) -> DiscreteGaussianLoss | DiscreteGaussianVectorLoss | GaussianLoss:
        """What one release loses, for a `Profile`: exact for one coordinate.

        >>> Gaussian(sensitivity=3, variance=50, dimension=7).loss
        DiscreteGaussianVectorLoss(variance=50, distance_squared=9)
        """
        self._refuse_no_noise()
        if self.coordinates is not None and self.coordinates.sensitivities is not None:
            squared = self.coordinates.mu_squared(self.coordinates.sensitivities, self.lattice)
            if squared is None:
                raise InvalidParameter(
                    "variance",
                    problem="is below 1/3 of a step squared, where no pair of Gaussians is proved",
                    remedy="add more noise there, or compose the ZCDP guarantees",
                )
            return GaussianLoss(squared, neighbours=self.neighbours)
        variance = self.variance / self.lattice.step**2
        steps = self.lattice.l2_steps(self.sensitivity)
        if self.lattice.dimension == 1:
            return DiscreteGaussianLoss(variance, math.floor(steps), neighbours=self.neighbours)
        # whole steps in every coordinate: so are the sums of their squares
        whole_squares = math.floor(steps**2)
        return DiscreteGaussianVectorLoss(variance, whole_squares, neighbours=self.neighbours)

    def guarantee_at(self, distance: PerCoordinate) -> ZCDP:
        """What one release promises for inputs at most so far apart: (distance/deviation)**2 / 2.

        Theorem  paper 001: the distance must not be negative; distance 0 costs 0 even if there is
                 no noise; otherwise no noise costs infinity. A list of distances, where noise or
                 sensitivity is one, costs their joint bound (`Coordinates`)
        """
        if self.coordinates is not None and is_list(distance):
            apart = self.coordinates.per_coordinate(distance)
            ratio = self.coordinates.ratio(apart, self.lattice)
            return ZCDP(ratio / 2, neighbours=self.neighbours)
        far = nonnegative(distance, "distance")
        if far == 0:
            return ZCDP(0, neighbours=self.neighbours)
        if self.variance == 0:
            return ZCDP(math.inf, neighbours=self.neighbours)
        moved = self.lattice.l2_steps(far) * self.lattice.step
        return ZCDP(moved**2 / (2 * self.variance), neighbours=self.neighbours)

    def delta(self, epsilon: Number, *, distance: PerCoordinate | None = None) -> float:
        """The delta for an epsilon, rounded up: exact for one coordinate.

        For vectors the lesser of what the Gaussian pair and concentrated privacy prove.
        """
        loss = nonnegative(epsilon, "epsilon")
        at = self._declared if distance is None else distance
        if self.coordinates is not None and is_list(at):
            apart = self.coordinates.per_coordinate(at)
            by_rho = upper(delta_upper(self.guarantee_at(apart), loss))
            squared = self.coordinates.mu_squared(apart, self.lattice)
            if squared is None:
                return by_rho
            return min(by_rho, float(GaussianLoss(squared).profile.delta(loss)[1]))
        far = nonnegative(at, "distance")
        if self.lattice.dimension > 1:
            concentrated = upper(delta_upper(self.guarantee_at(far), loss))
            return min(concentrated, _vector_delta(far, self.variance, self.lattice, loss))
        return _delta_at(far, self.variance, self.lattice, loss)

    def epsilon(self, delta: Number) -> Loss:
        """The least epsilon whose delta is at most this, by bisection on the curve, rounded up."""
        chance = _level(delta)
        if self.variance == 0:
            return math.inf
        if self.delta(0) <= chance:
            return Fraction(0)
        return least_noise(lambda loss: self.delta(loss) <= chance, start=Fraction(1))

    def release(self, value: Any) -> Any:
        """A private version of an integer, a float or an array, of the same kind."""
        self._refuse_no_noise()
        if self.coordinates is not None:
            self.coordinates.check_value(array_of(value))
        # the curve for one coordinate promises nothing for a vector, so vectors are declared
        elif not isinstance(value, int | float | np.generic | str) and value is not None:
            self.lattice.check_dimension(array_of(value))
        return Additive.release(self, value)

    def law(self, value: Any, *, coordinate: int | None = None) -> Shifted | OnGrid:
        """The exact law of release(value), for one number: of the coordinate, if noises differ."""
        return Additive.law(self._single(coordinate), value)

    def accuracy(self, beta: Number, *, coordinate: int | None = None) -> Fraction:
        """The least a with P[abs(release - value) > a] <= beta, for one coordinate."""
        return Additive.accuracy(self._single(coordinate), beta)

    def beta(self, error: Number, *, coordinate: int | None = None) -> float:
        """P[abs(release - value) > error] for one coordinate, rounded up."""
        return Additive.beta(self._single(coordinate), error)

    def _single(self, coordinate: int | None) -> Gaussian:
        """The noise of one coordinate, alone."""
        if self.coordinates is None:
            if coordinate is not None and whole(coordinate, "coordinate") >= self.lattice.dimension:
                raise InvalidParameter(
                    "coordinate", problem="does not exist", remedy="pass a smaller one, or none"
                )
            return self
        grid = self.lattice.step if self.lattice.rounds else None
        noise = self.coordinates.at(coordinate)
        return Gaussian(sensitivity=1, variance=noise, grid=grid)

    def _noise(self) -> DiscreteGaussian:
        self._refuse_no_noise()
        return DiscreteGaussian(self.variance / self.lattice.step**2)

    def _refuse_no_noise(self) -> None:
        if self.variance == 0:
            raise InvalidParameter(
                "standard_deviation",
                problem="is 0: that would publish the value itself",
                remedy="construct the mechanism with noise",
            )

    def _new_sampler(self) -> Sampler:
        if self.coordinates is not None:
            return self.coordinates.sampler(self.lattice)
        return gaussian_sampler(self.variance / self.lattice.step**2)


def _coordinates(
    sensitivity: object, deviation: object, variance: object, dimension: object
) -> Coordinates | None:
    """What the lists say, or None where there is no list."""
    lists = [given for given in (sensitivity, deviation, variance) if is_list(given)]
    if not lists:
        return None
    if deviation is None and variance is None:
        raise InvalidParameter(
            "sensitivity",
            problem="is a list, and noise for a target is chosen for one distance",
            remedy="pass {variance} as well, or the L2 norm of the list",
            variance="...",
        )
    count = len(lists[0])
    if whole(dimension, "dimension", least=1) not in (1, count):
        problem = f"is not the {count} of the list"
        raise InvalidParameter("dimension", problem=problem, remedy="leave it out")
    name, noise = ("variance", variance) if deviation is None else ("standard_deviation", deviation)
    numbers = exact_list(noise if is_list(noise) else [noise] * count, name, length=count)
    apart = exact_list(sensitivity, "sensitivity", length=count) if is_list(sensitivity) else None
    return Coordinates(apart, numbers if deviation is None else tuple(n * n for n in numbers))


def discrete_gaussian_delta(epsilon: Fraction, *, variance: Fraction, distance: int) -> float:
    """The exact delta of adding discrete Gaussian noise to integers `distance` apart, rounded up.

    Law      delta = P[X >= k] - exp(epsilon) P[X >= k + d], k = floor(epsilon v/d - d/2) + 1
    Theorem  the likelihood ratio is monotone, so the best event is a half-line, and k is where the
             ratio passes exp(epsilon). For each half-line P[X >= k] - exp(epsilon) P[X >= k + d]
             grows with d: what holds for distance d holds for every smaller one
    Source   CKS20 Theorem 7
    Checked  tests/mechanisms/test_gaussian.py

    >>> discrete_gaussian_delta(Fraction(1), variance=Fraction(4), distance=1)
    0.0072487...
    """
    if distance == 0:
        return 0.0
    first = math.floor(epsilon * variance / distance - Fraction(distance, 2)) + 1
    # the tails shrink like exp(-first**2/2v): work with that many bits more
    small = min(int(first * first / (2 * variance) * 3 // 2), 1 << 16) if first > 0 else 0
    with working_precision(128 + small):
        beyond = tail_weight(first + distance, variance)
        if distance < 64:
            here = beyond + sum(
                (-arb_of(k * k / (2 * variance))).exp() for k in range(first, first + distance)
            )
        else:
            here = tail_weight(first, variance)
        delta = (here - arb_of(epsilon).exp() * beyond) / theta(variance)
        return min(max(upper(delta), 0.0), 1.0)


def _level(delta: object) -> Fraction:
    chance = level(delta, "delta")
    if chance < LEAST_DELTA:
        raise InvalidParameter(
            "delta", problem="is below 2**-1000", remedy="pass a larger one, or {rho}", rho=""
        )
    return chance


def _delta_at(far: Fraction, variance: Fraction, grounds: Lattice, epsilon: Fraction) -> float:
    if variance == 0:
        return 1.0 if far else 0.0
    steps = math.floor(grounds.l2_steps(far)) if far else 0
    return discrete_gaussian_delta(epsilon, variance=variance / grounds.step**2, distance=steps)


def _vector_delta(far: Fraction, variance: Fraction, grounds: Lattice, epsilon: Fraction) -> float:
    """Through the Gaussian pair; 1 where none is proved."""
    spread = variance / grounds.step**2
    squared = math.floor(grounds.l2_steps(far) ** 2) if far else 0
    if squared and spread < LEAST_VECTOR_VARIANCE:
        return 1.0
    return float(DiscreteGaussianVectorLoss(spread, squared).profile.delta(epsilon)[1])


def _calibrated(
    distance: Fraction, target: ApproxDP, method: Method, grid: object, dimension: int
) -> tuple[Fraction, Lattice]:
    """The least variance for an (epsilon, delta) target, and its lattice."""
    loss = target.epsilon
    assert isinstance(loss, Fraction)  # positive() let no infinity pass
    guess = root_below(2 * _log_upper(1 / target.delta)) * distance / loss
    grounds = lattice(grid, noise=guess, dimension=dimension)
    moved = grounds.l2_steps(distance) * grounds.step

    def by_zcdp(deviation: Fraction) -> bool:
        return delta_upper(ZCDP(moved**2 / (2 * deviation**2)), loss) <= target.delta

    def by_curve(deviation: Fraction) -> bool:
        return _delta_at(distance, deviation**2, grounds, loss) <= target.delta

    def by_pair(deviation: Fraction) -> bool:
        return _vector_delta(distance, deviation**2, grounds, loss) <= target.delta

    if method in ("zcdp", "gdp"):
        meets = by_zcdp if method == "zcdp" else by_pair
        return least_noise(meets, start=guess, bits=32) ** 2, grounds
    if dimension != 1:
        raise InvalidParameter(
            "method",
            problem=f"{method!r} is for one coordinate",
            remedy="pass {method}",
            method="gdp",
        )
    if method == "exact":
        return least_noise(by_curve, start=guess, bits=32) ** 2, grounds
    if method != "classical":
        raise InvalidParameter(
            "method", problem="is unknown", remedy='pass "exact", "gdp", "zcdp" or "classical"'
        )
    if loss >= 1:
        raise InvalidParameter(
            "epsilon",
            problem="is 1 or more, where the classical formula is not proved and can be false",
            remedy="pass {method}",
            method="exact",
        )
    variance = 2 * _log_upper(Fraction(5, 4) / target.delta) * (moved / loss) ** 2
    if _delta_at(distance, variance, grounds, loss) > target.delta:  # a look at the exact curve
        raise InvalidParameter(
            "delta",
            problem="is not met by the classical formula for discrete noise",
            remedy="pass {method}",
            method="exact",
        )
    return variance, grounds


def _log_upper(number: Fraction) -> Fraction:
    """The natural logarithm, rounded up."""
    return not_below(Real(number).log().ball(128).enclosure)
