"""Noise scaled to a smooth bound on the local sensitivity, and statistics released with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log
from typing import Any, Required, TypedDict, Unpack

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, arb_of, nearest, working_precision
from lastbit.laws import Clamped, Ideal, Law, OnGrid, Rounded
from lastbit.mechanisms.admissible_noise import Admissible, admissible, evenly_spread
from lastbit.mechanisms.exponential_quantile import ExponentialQuantile
from lastbit.mechanisms.lattice import lattice, power_below
from lastbit.mechanisms.mechanism import level, not_below, set_fields
from lastbit.mechanisms.stable_value import check_same
from lastbit.privacy import (
    AS_DECLARED,
    CHANGE_ONE,
    ApproxDP,
    ApproxLoss,
    Neighbours,
    PureDP,
    black_box,
    check_neighbours,
)
from lastbit.sampling import drawn_fresh, rounded_sampler
from lastbit.sensitivity import (
    LEAST_BETA,
    Quantile,
    SmoothBound,
    Statistic,
    TrimmedMean,
    Variance,
    bounds_of,
    check_defined,
    records,
    relation_of,
    secret_number,
    smooth_sensitivity,
    statistic_of,
)


@dataclass(frozen=True, slots=True, init=False)
class SmoothNoise:
    """Adds ideal real noise as wide as a smooth bound asks for, then rounds to a public grid.

    Law      release(f, S) = grid * round((f + (S/alpha) Z)/grid), Z the ideal law of `noise` on the
             real line, drawn exactly (`sampling/rounded.py`); then moved into the range of the
             statistic if the bound knows it
    Theorem  f + (S/alpha) Z promises (epsilon, delta) for S a beta-smooth upper bound on the local
             sensitivity of f: see `Admissible`. Rounding and moving see nothing but that number
    Source   Nissim, Raskhodnikova, Smith 2007, as in paper 004; Bun, Steinke 2019
    Differs  the law is that of the real-valued mechanism to the last bit, S is a rational that is
             beta-smooth as computed (`sensitivity/smooth.py`), the grid depends on no data
    Checked  tests/mechanisms/test_smooth_noise.py; proof: docs/theory/smooth-sensitivity.md

    `noise` is "student" (Student's t of 3 degrees, or StudentT(degrees)), "cauchy" or
    PolynomialTail(gamma), all three pure; "laplace" or "gaussian", which need delta. Cauchy noise
    has the least typical error and the heaviest tail. The width of the noise depends on the data:
    `accuracy` is a secret of the data's holder, like the data.

    Several numbers that one record moves together: `dimension` says how many, `release_all` takes
    them with one bound on how far they all move, in the L1 norm (for Gaussian noise the L2 norm
    will do). Bounds of the single numbers, each beta-smooth, add up to one.

    >>> from lastbit.privacy import CHANGE_ONE
    >>> from lastbit.sensitivity import from_distance, smooth_sensitivity
    >>> noise = SmoothNoise(epsilon=1, noise="cauchy", grid="1/16", neighbours=CHANGE_ONE)
    >>> round(float(noise.alpha), 4), round(float(noise.beta), 4)
    (1.0422, 0.7344)
    >>> ages = [23, 35, 37, 41, 44, 45, 52, 61]
    >>> bound = smooth_sensitivity("median", ages, beta=noise.beta, lower=0, upper=120)
    >>> 0 <= noise.release(bound) <= 120
    True
    >>> noise = SmoothNoise(epsilon=1, dimension=2, grid="1/16", neighbours=CHANGE_ONE)
    >>> bound = from_distance([1, 3], value=0, beta=noise.beta, neighbours=CHANGE_ONE)
    >>> len(noise.release_all([40, 52], bound))
    2
    """

    admissible: Admissible
    grid: Fraction
    neighbours: Neighbours

    def __init__(
        self,
        *,
        epsilon: Number,
        grid: Number,
        delta: Number | None = None,
        noise: str | Ideal = "student",
        share: Number = "auto",
        dimension: int = 1,
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        if isinstance(grid, str) and grid == "auto":
            raise InvalidParameter(
                "grid", problem="cannot follow the data", remedy='pass a power of two, say "1/1024"'
            )
        chosen = admissible(noise, epsilon=epsilon, delta=delta, share=share, dimension=dimension)
        if chosen.beta < LEAST_BETA:
            raise InvalidParameter(
                "epsilon",
                problem="is too small for this noise: no bound is smooth enough",
                remedy="pass a larger one, or use Laplace with global_sensitivity",
            )
        step = lattice(grid, noise=Fraction(1), dimension=1).step
        set_fields(self, admissible=chosen, grid=step, neighbours=check_neighbours(neighbours))

    @property
    def alpha(self) -> Fraction:
        """The noise is S/alpha wide."""
        return self.admissible.alpha

    @property
    def beta(self) -> Fraction:
        """How smooth the bound must be."""
        return self.admissible.beta

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        """What one release promises."""
        chosen = self.admissible
        if chosen.delta == 0:
            return PureDP(chosen.epsilon, neighbours=self.neighbours)
        return ApproxDP(chosen.epsilon, chosen.delta, neighbours=self.neighbours)

    @property
    def loss(self) -> ApproxLoss:
        """What one release loses, for a `Profile`."""
        return black_box(self.guarantee)

    def release(self, bound: SmoothBound) -> float:
        """A private version of the statistic's value."""
        self._check_one(bound)
        limits = self._limits(bound)
        return nearest(_moved(self._drawn(bound.value, bound), limits) * self.grid)

    def release_all(self, values: Sequence[Number], bound: SmoothBound) -> list[float]:
        """Private versions of `dimension` numbers; the bound is on all of them together.

        The value of the bound itself is not used, nor its range.
        """
        self._check(bound)
        numbers = self._numbers(values)
        return [nearest(self._drawn(number, bound) * self.grid) for number in numbers]

    def _drawn(self, value: Fraction, bound: SmoothBound) -> int:
        if bound.bound == 0:  # then S is 0 for all data, and there is one possible value
            return round(value / self.grid)
        sampler = rounded_sampler(self.admissible.law, value, bound.bound / self.alpha, self.grid)
        steps: int = drawn_fresh(sampler, None)
        return steps

    def _numbers(self, values: Sequence[Number]) -> list[Fraction]:
        if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
            raise WrongType("values", problem="are not a list of numbers", remedy="pass a list")
        if len(values) != self.admissible.dimension:
            raise InvalidParameter(
                "values",
                problem="are not as many as declared",
                remedy="pass as many as dimension= says",
            )
        return [secret_number(value, "values") for value in values]

    def law(self, bound: SmoothBound) -> OnGrid:
        """The exact law of release(bound): as secret as the data."""
        self._check_one(bound)
        scale, limits = bound.bound / self.alpha, self._limits(bound)
        if scale == 0:
            only = _moved(round(bound.value / self.grid), limits)
            scale, limits = Fraction(1), (only, only)
        ideal: Law = Rounded(self.admissible.law, bound.value, scale, self.grid)
        return OnGrid(ideal if limits is None else Clamped(ideal, *limits), self.grid)

    def accuracy(self, beta: Number, bound: SmoothBound) -> Fraction:
        """An error not exceeded with probability 1 - beta: as secret as the data, never publish it.

        Of `dimension` numbers no one is off by more, with this probability.

        Theorem  P[abs(Z) > z] <= beta for z the quantile of 1 - beta/2, the law being symmetric;
                 rounding adds at most half a step. Moving into the range takes the result nearer
                 to the value f, unless f lies beyond the last step in it: then it is off by less
                 than the rest of the range there. Nothing is off by more than the whole range.
                 Each of d numbers is off by more with probability beta/d at most
        """
        self._check(bound)
        chance = 1 - level(beta, "beta") / (2 * self.admissible.dimension)
        with working_precision(128):
            wide = self.admissible.law.quantile(chance).enclosure * arb_of(bound.bound / self.alpha)
            error = not_below(wide) + self.grid / 2
        limits = self._limits(bound)
        several = self.admissible.dimension > 1
        if several or limits is None or bound.lower is None or bound.upper is None:
            return error
        low, high = (step * self.grid for step in limits)
        error = max(error, low - bound.lower, bound.upper - high)
        return min(error, bound.upper - bound.lower)

    def _limits(self, bound: SmoothBound) -> tuple[int, int] | None:
        """The least and the greatest step within the statistic's range, if there is one."""
        if bound.lower is None or bound.upper is None:
            return None
        return steps_between(bound.lower, bound.upper, self.grid)

    def _check_one(self, bound: object) -> None:
        self._check(bound)
        if self.admissible.dimension > 1:
            raise InvalidParameter(
                "bound",
                problem="is about one number, and the noise for several",
                remedy="use release_all(values, bound), or leave dimension= out",
            )

    def _check(self, bound: object) -> None:
        if not isinstance(bound, SmoothBound):
            raise WrongType(
                "bound",
                problem="is not a smooth bound",
                remedy="pass smooth_sensitivity(...) or from_distance(...)",
            )
        if bound.beta > self.beta:
            raise InvalidParameter(
                "bound", problem="is not smooth enough", remedy="compute it with this beta"
            )
        check_same(bound.neighbours, self.neighbours)


def steps_between(lower: Fraction, upper: Fraction, grid: Fraction) -> tuple[int, int]:
    """The least and the greatest step of a grid between two numbers."""
    low, high = -(-lower // grid), upper // grid
    if low > high:
        raise InvalidParameter(
            "grid", problem="has no point between the bounds", remedy="pass a finer grid"
        )
    return low, high


def _moved(steps: int, limits: tuple[int, int] | None) -> int:
    return steps if limits is None else min(max(steps, limits[0]), limits[1])


# The released number is one of about a million in the statistic's range.
_RESOLUTION = 1 << 20
_COARSEST = Fraction(2) ** 500


@dataclass(frozen=True, slots=True, init=False)
class SmoothStatistic:
    """A statistic of bounded data, released with noise for its smooth sensitivity.

    Law      `SmoothNoise` about the statistic's exact value on the data, moved into [lower, upper]
             and rounded to a public grid; the release is moved into the statistic's own range
    Theorem  what `SmoothNoise` promises, for the neighbour relation given: `smooth_sensitivity`
             computes a bound that is beta-smooth for that relation
    Differs  values outside [lower, upper] count as the nearer end; how many there were is never
             told. NaN is refused, and that refusal is not private: clean the data first
    Checked  tests/mechanisms/test_smooth_statistic.py; proof: docs/theory/smooth-sensitivity.md

    >>> median = SmoothStatistic("median", epsilon=1, lower=0, upper=500)
    >>> median.guarantee
    PureDP(epsilon=1, neighbours=Neighbours(relation='change-one', unit='record'))
    >>> 0 <= median.release(range(200, 300)) <= 500
    True
    """

    statistic: Statistic
    lower: Fraction
    upper: Fraction
    noise: SmoothNoise

    def __init__(
        self,
        statistic: str | Statistic,
        *,
        epsilon: Number,
        lower: Number,
        upper: Number,
        delta: Number | None = None,
        noise: str | Ideal = "student",
        share: Number = "auto",
        grid: Number = "auto",
        neighbours: Neighbours = CHANGE_ONE,
    ) -> None:
        chosen = statistic_of(statistic)
        low, high = bounds_of(lower, upper)
        least, most = chosen.range(low, high)
        check_defined(chosen, relation_of(neighbours))
        records((), low, high)  # refuse now what would be refused for any data
        if isinstance(grid, str) and grid == "auto":
            grid = power_below((most - least) / _RESOLUTION)
            if not 1 / _COARSEST <= grid <= _COARSEST:
                raise InvalidParameter(
                    "upper", problem="lies too near to lower, or too far", remedy="rescale the data"
                )
        added = SmoothNoise(
            epsilon=epsilon, delta=delta, noise=noise, share=share, grid=grid, neighbours=neighbours
        )
        steps_between(least, most, added.grid)
        set_fields(self, statistic=chosen, lower=low, upper=high, noise=added)

    @property
    def guarantee(self) -> PureDP | ApproxDP:
        """What one release promises."""
        return self.noise.guarantee

    @property
    def loss(self) -> ApproxLoss:
        """What one release loses, for a `Profile`."""
        return black_box(self.guarantee)

    def release(self, data: Any) -> float:
        """A private version of the statistic of this data."""
        return self.noise.release(self._bound(data))

    def law(self, data: Any) -> OnGrid:
        """The exact law of release(data): as secret as the data."""
        return self.noise.law(self._bound(data))

    def accuracy(self, beta: Number, data: Any) -> Fraction:
        """An error not exceeded with probability 1 - beta: as secret as the data."""
        return self.noise.accuracy(beta, self._bound(data))

    def _bound(self, data: Any) -> SmoothBound:
        return smooth_sensitivity(
            self.statistic,
            data,
            beta=self.noise.beta,
            lower=self.lower,
            upper=self.upper,
            neighbours=self.noise.neighbours,
        )


def quantile_mechanism(
    level: Number,
    *,
    epsilon: Number,
    lower: Number,
    upper: Number,
    delta: Number | None = None,
    noise: str | Ideal = "auto",
    grid: Number = "auto",
    neighbours: Neighbours = CHANGE_ONE,
) -> ExponentialQuantile | SmoothStatistic:
    """The mechanism by which `private_quantile` and `private_median` release a quantile.

    Law      `noise` is "exponential" for `ExponentialQuantile`, or a noise of `SmoothNoise`. "auto"
             takes the one of the exponential mechanism and Student's t that is off by less, in half
             of all releases, where records are evenly spread: ln(2)/rate records against the
             quartile of S/alpha Z. For medians with one record changed that is the exponential
             mechanism below epsilon = 2, and Student's t from there on. At levels 0 and 1 it is
             always Student's t: all points beyond the last record are equally good to the
             exponential mechanism, which then draws anywhere between it and the bound
    Theorem  each promises pure epsilon, and the choice depends on public parameters only
    Checked  tests/mechanisms/test_smooth_statistic.py; measured: docs/utility.md

    >>> [type(quantile_mechanism("1/2", epsilon=e, lower=0, upper=9)).__name__ for e in (1, 3)]
    ['ExponentialQuantile', 'SmoothStatistic']
    """
    if isinstance(noise, str) and noise in ("auto", "exponential"):
        if delta is not None:
            problem, remedy = "is of no use to this noise", "leave it out, or pass {noise}"
            raise InvalidParameter("delta", problem=problem, remedy=remedy, noise="laplace")
        try:
            pick = ExponentialQuantile(
                level, epsilon=epsilon, lower=lower, upper=upper, grid=grid, neighbours=neighbours
            )
        except InvalidParameter:  # a level or a grid too fine for it; Student's t may serve
            if noise == "exponential":
                raise
        else:
            if noise == "exponential" or _is_nearer(pick):
                return pick
        noise = "student"
    return SmoothStatistic(
        Quantile(level),
        epsilon=epsilon,
        lower=lower,
        upper=upper,
        delta=delta,
        noise=noise,
        grid=grid,
        neighbours=neighbours,
    )


def _is_nearer(pick: ExponentialQuantile) -> bool:
    """Whether evenly spread records have a nearer quantile by this than by Student's t."""
    if pick.level in (0, 1):
        return False
    chosen = admissible("student", epsilon=pick.epsilon)
    with working_precision(64):
        width = evenly_spread(chosen.beta) / arb_of(chosen.alpha)
        off = chosen.law.quantile("3/4").enclosure * width
        return bool(arb_of(pick.rate * pick.level.denominator) * off > log(2))


class StatisticOptions(TypedDict, total=False):
    """What `quantile_mechanism` and `SmoothStatistic` take by name, and the functions below too."""

    epsilon: Required[Number]
    lower: Required[Number]
    upper: Required[Number]
    delta: Number | None
    noise: str | Ideal
    grid: Number
    neighbours: Neighbours


def private_median(data: Any, **options: Unpack[StatisticOptions]) -> float:
    """The median of data between public bounds, by `quantile_mechanism("1/2", ...)`.

    Its options are the same: `epsilon`, `lower`, `upper`, and what the mechanism may be told.

    >>> 0 <= private_median([3, 5, 8, 9, 12], epsilon=1, lower=0, upper=100) <= 100
    True
    """
    return quantile_mechanism("1/2", **options).release(data)


def private_quantile(data: Any, level: Number, **options: Unpack[StatisticOptions]) -> float:
    """The value that a share `level` of the data does not exceed: 0 is the least, 1 the greatest.

    By `quantile_mechanism`, which says by which mechanism, before any data are seen, and has the
    same options.

    >>> 0 <= private_quantile([3, 5, 8, 9, 12], "0.9", epsilon=1, lower=0, upper=100) <= 100
    True
    """
    return quantile_mechanism(level, **options).release(data)


def private_trimmed_mean(
    data: Any, *, trim: Number = "1/10", **options: Unpack[StatisticOptions]
) -> float:
    """The mean without the share `trim` of the data at either end; their number is public.

    By `SmoothStatistic`, with the same options.

    >>> 0 <= private_trimmed_mean(range(100), epsilon=1, lower=0, upper=100) <= 100
    True
    """
    return SmoothStatistic(TrimmedMean(trim), **options).release(data)


def private_variance(data: Any, **options: Unpack[StatisticOptions]) -> float:
    """The mean squared distance from the mean; the number of records is public.

    Its local sensitivity is never below about a quarter of the global one, so this gains little
    over `Laplace`; it is here for completeness. By `SmoothStatistic`, with the same options.

    >>> 0 <= private_variance(range(100), epsilon=1, lower=0, upper=100) <= 2500
    True
    """
    return SmoothStatistic(Variance(), **options).release(data)
