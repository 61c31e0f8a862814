"""Medians, quantiles, trimmed means and variances with noise for their smooth sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lastbit.errors import InvalidParameter
from lastbit.exact import Number
from lastbit.laws import Ideal, OnGrid
from lastbit.mechanisms.lattice import power_below
from lastbit.mechanisms.mechanism import set_fields
from lastbit.mechanisms.smooth_noise import SmoothNoise, steps_between
from lastbit.privacy import (
    CHANGE_ONE,
    ApproxDP,
    ApproxLoss,
    Neighbours,
    PureDP,
    black_box,
)
from lastbit.sensitivity import (
    Quantile,
    SmoothBound,
    Statistic,
    TrimmedMean,
    Variance,
    bounds_of,
    check_defined,
    records,
    relation_of,
    smooth_sensitivity,
    statistic_of,
)

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
        share: Number = "1/2",
        grid: Number = "auto",
        neighbours: Neighbours = CHANGE_ONE,
    ) -> None:
        chosen = statistic_of(statistic)
        low, high = bounds_of(lower, upper)
        least, most = chosen.range(low, high)
        check_defined(chosen, relation_of(neighbours))
        records((), low, high)  # refuse now what would be refused for any data
        if isinstance(grid, str) and grid == "auto":
            grid = _fine(least, most)
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


def _fine(least: Fraction, most: Fraction) -> Fraction:
    grid = power_below((most - least) / _RESOLUTION)
    if not 1 / _COARSEST <= grid <= _COARSEST:
        raise InvalidParameter(
            "upper", problem="lies too near to lower, or too far", remedy="rescale the data"
        )
    return grid


def private_median(
    data: Any,
    *,
    epsilon: Number,
    lower: Number,
    upper: Number,
    delta: Number | None = None,
    noise: str | Ideal = "student",
    grid: Number = "auto",
    neighbours: Neighbours = CHANGE_ONE,
) -> float:
    """The median of data between public bounds; the parameters are those of `SmoothStatistic`.

    >>> 0 <= private_median([3, 5, 8, 9, 12], epsilon=1, lower=0, upper=100) <= 100
    True
    """
    mechanism = SmoothStatistic(
        Quantile("1/2"),
        epsilon=epsilon,
        lower=lower,
        upper=upper,
        delta=delta,
        noise=noise,
        grid=grid,
        neighbours=neighbours,
    )
    return mechanism.release(data)


def private_quantile(
    data: Any,
    level: Number,
    *,
    epsilon: Number,
    lower: Number,
    upper: Number,
    delta: Number | None = None,
    noise: str | Ideal = "student",
    grid: Number = "auto",
    neighbours: Neighbours = CHANGE_ONE,
) -> float:
    """The value that a share `level` of the data does not exceed: 0 is the least, 1 the greatest.

    >>> 0 <= private_quantile([3, 5, 8, 9, 12], "0.9", epsilon=1, lower=0, upper=100) <= 100
    True
    """
    mechanism = SmoothStatistic(
        Quantile(level),
        epsilon=epsilon,
        lower=lower,
        upper=upper,
        delta=delta,
        noise=noise,
        grid=grid,
        neighbours=neighbours,
    )
    return mechanism.release(data)


def private_trimmed_mean(
    data: Any,
    *,
    epsilon: Number,
    lower: Number,
    upper: Number,
    trim: Number = "1/10",
    delta: Number | None = None,
    noise: str | Ideal = "student",
    grid: Number = "auto",
) -> float:
    """The mean without the share `trim` of the data at either end; their number is public.

    >>> 0 <= private_trimmed_mean(range(100), epsilon=1, lower=0, upper=100) <= 100
    True
    """
    mechanism = SmoothStatistic(
        TrimmedMean(trim),
        epsilon=epsilon,
        lower=lower,
        upper=upper,
        delta=delta,
        noise=noise,
        grid=grid,
    )
    return mechanism.release(data)


def private_variance(
    data: Any,
    *,
    epsilon: Number,
    lower: Number,
    upper: Number,
    delta: Number | None = None,
    noise: str | Ideal = "student",
    grid: Number = "auto",
) -> float:
    """The mean squared distance from the mean; the number of records is public.

    Its local sensitivity is never below about a quarter of the global one, so this gains little
    over `Laplace`; it is here for completeness.

    >>> 0 <= private_variance(range(100), epsilon=1, lower=0, upper=100) <= 2500
    True
    """
    mechanism = SmoothStatistic(
        Variance(), epsilon=epsilon, lower=lower, upper=upper, delta=delta, noise=noise, grid=grid
    )
    return mechanism.release(data)
