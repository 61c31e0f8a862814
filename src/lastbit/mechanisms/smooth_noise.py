"""Noise that follows a smooth bound on the local sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite

from flint import arb

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact.ball import arb_of, working_precision
from lastbit.exact.rational import Number
from lastbit.exact.rounding import upper
from lastbit.laws import OnGrid
from lastbit.laws.clamped import Clamped
from lastbit.laws.ideal import Ideal
from lastbit.laws.law import Law
from lastbit.laws.rounded import Rounded
from lastbit.mechanisms.additive import probability
from lastbit.mechanisms.admissible import Admissible, admissible
from lastbit.mechanisms.lattice import lattice, nearest
from lastbit.mechanisms.stable_value import check_same
from lastbit.privacy.guarantees import ApproxDP, PureDP
from lastbit.privacy.neighbours import AS_DECLARED, Neighbours, check_neighbours
from lastbit.sampling.draw import drawn_fresh
from lastbit.sampling.rounded import rounded_sampler
from lastbit.sensitivity.smooth import LEAST_BETA, SmoothBound

__all__ = ["SmoothNoise", "steps_between"]


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

    >>> from lastbit.privacy import CHANGE_ONE
    >>> from lastbit.sensitivity import smooth_sensitivity
    >>> noise = SmoothNoise(epsilon=1, noise="cauchy", grid="1/16", neighbours=CHANGE_ONE)
    >>> noise.alpha, noise.beta
    (Fraction(1, 2), Fraction(1, 2))
    >>> ages = [23, 35, 37, 41, 44, 45, 52, 61]
    >>> bound = smooth_sensitivity("median", ages, beta=noise.beta, lower=0, upper=120)
    >>> 0 <= noise.release(bound) <= 120
    True
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
        share: Number = "1/2",
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        if isinstance(grid, str) and grid == "auto":
            raise InvalidParameter(
                "grid", problem="cannot follow the data", remedy='pass a power of two, say "1/1024"'
            )
        chosen = admissible(noise, epsilon=epsilon, delta=delta, share=share)
        if chosen.beta < LEAST_BETA:
            raise InvalidParameter(
                "epsilon",
                problem="is too small for this noise: no bound is smooth enough",
                remedy="pass a larger one, or use Laplace with global_sensitivity",
            )
        object.__setattr__(self, "admissible", chosen)
        object.__setattr__(self, "grid", lattice(grid, noise=Fraction(1), dimension=1).step)
        object.__setattr__(self, "neighbours", check_neighbours(neighbours))

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

    def release(self, bound: SmoothBound) -> float:
        """A private version of the statistic's value."""
        self._check(bound)
        limits = self._limits(bound)
        if bound.bound == 0:  # then S is 0 for all data, and there is one possible value
            return nearest(_moved(round(bound.value / self.grid), limits) * self.grid)
        sampler = rounded_sampler(
            self.admissible.law, bound.value, bound.bound / self.alpha, self.grid
        )
        steps: int = drawn_fresh(sampler, None)
        return nearest(_moved(steps, limits) * self.grid)

    def law(self, bound: SmoothBound) -> OnGrid:
        """The exact law of release(bound): as secret as the data."""
        self._check(bound)
        scale, limits = bound.bound / self.alpha, self._limits(bound)
        if scale == 0:
            only = _moved(round(bound.value / self.grid), limits)
            scale, limits = Fraction(1), (only, only)
        ideal: Law = Rounded(self.admissible.law, bound.value, scale, self.grid)
        return OnGrid(ideal if limits is None else Clamped(ideal, *limits), self.grid)

    def accuracy(self, beta: Number, bound: SmoothBound) -> Fraction:
        """An error not exceeded with probability 1 - beta: as secret as the data, never publish it.

        Theorem  P[abs(Z) > z] <= beta for z the quantile of 1 - beta/2, the law being symmetric;
                 rounding adds at most half a step. Moving into the range takes the result nearer
                 to the value f, unless f lies beyond the last step in it: then it is off by less
                 than the rest of the range there. Nothing is off by more than the whole range
        """
        self._check(bound)
        level = 1 - probability(beta, "beta") / 2
        with working_precision(128):
            wide = self.admissible.law.quantile(level).enclosure * arb_of(bound.bound / self.alpha)
            error = _not_below(wide) + self.grid / 2
        limits = self._limits(bound)
        if limits is None or bound.lower is None or bound.upper is None:
            return error
        low, high = (step * self.grid for step in limits)
        error = max(error, low - bound.lower, bound.upper - high)
        return min(error, bound.upper - bound.lower)

    def _limits(self, bound: SmoothBound) -> tuple[int, int] | None:
        """The least and the greatest step within the statistic's range, if there is one."""
        if bound.lower is None or bound.upper is None:
            return None
        return steps_between(bound.lower, bound.upper, self.grid)

    def _check(self, bound: object) -> None:
        if not isinstance(bound, SmoothBound):
            raise WrongType(
                "bound",
                problem="is no smooth bound",
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


def _not_below(ball: arb) -> Fraction:
    """A rational not below anything in a ball: a float if there is one."""
    number = upper(ball)
    if isfinite(number):
        return Fraction(number)
    mantissa, exponent = ball.upper().man_exp()
    return int(mantissa) * Fraction(2) ** int(exponent)
