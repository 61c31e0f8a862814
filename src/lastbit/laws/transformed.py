"""Laws made of other laws: shifted, scaled, clamped or rounded."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from flint import arb, ctx, fmpq

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import (
    Ball,
    Number,
    Real,
    arb_of,
    floor_ceil,
    positive,
    rational,
    whole,
    working_precision,
)
from lastbit.laws.ideal import Ideal
from lastbit.laws.law import Law

_FARTHEST_VALUE = 1 << (1 << 17)


@dataclass(frozen=True, slots=True)
class Clamped(Law):
    """The law of min(max(X, low), high).

    Law      P[low] = P[X <= low], P[high] = 1 - P[X <= high - 1], between them as before; where
             low = high that value is certain
    Theorem  for low <= k < high the moved value is at most k if and only if X is
    Checked  tests/laws/test_clamped.py

    >>> from lastbit.laws import DiscreteLaplace
    >>> Clamped(DiscreteLaplace(1), -1, 1).quantile("0.99")
    1
    """

    law: Law
    low: int
    high: int

    def __post_init__(self) -> None:
        if not isinstance(self.law, Law):
            raise WrongType("law", problem="is not a law", remedy="pass one, DiscreteLaplace(1)")
        whole(self.low, "low", least=-_FARTHEST_VALUE)
        if whole(self.high, "high", least=-_FARTHEST_VALUE) < self.low:
            raise InvalidParameter("high", problem="is below low", remedy="pass low <= high")

    def mass(self, value: int) -> arb:
        if not self.low <= value <= self.high:
            return arb(0)
        if self.low == self.high:
            return arb(1)
        if value == self.low:
            return self.law.cumulative(value)
        if value == self.high:
            return 1 - self.law.cumulative(value - 1)
        return self.law.mass(value)

    def cumulative(self, value: int) -> arb:
        if value < self.low:
            return arb(0)
        return arb(1) if value >= self.high else self.law.cumulative(value)

    def exact_cumulative(self, value: int) -> Fraction | None:
        if value < self.low:
            return Fraction(0)
        return Fraction(1) if value >= self.high else self.law.exact_cumulative(value)

    @property
    def support(self) -> tuple[int, int]:
        return self.low, self.high


@dataclass(frozen=True, slots=True)
class Shifted(Law):
    """The law of X + by.

    >>> from lastbit.laws import DiscreteLaplace
    >>> Shifted(DiscreteLaplace(1), 42).quantile("1/2")
    42
    """

    law: Law
    by: int = field(repr=False)  # it may be a secret

    def mass(self, value: int) -> arb:
        return self.law.mass(value - self.by)

    def cumulative(self, value: int) -> arb:
        return self.law.cumulative(value - self.by)

    def exact_cumulative(self, value: int) -> Fraction | None:
        return self.law.exact_cumulative(value - self.by)

    @property
    def support(self) -> tuple[int | None, int | None]:
        low, high = self.law.support
        return (None if low is None else low + self.by, None if high is None else high + self.by)


@dataclass(frozen=True, slots=True)
class OnGrid:
    """The law of step * X: the same questions, asked of rational values.

    >>> from lastbit.laws import DiscreteLaplace
    >>> OnGrid(Shifted(DiscreteLaplace(8), 3), Fraction(1, 8)).quantile("1/2")
    Fraction(3, 8)
    """

    law: Law
    step: Fraction

    def probability(self, value: object) -> Ball:
        """P[step X = value], which is 0 off the grid."""
        index = rational(value) / self.step
        return self.law.probability(int(index)) if index.denominator == 1 else Ball.of(0)

    def cdf(self, value: object) -> Ball:
        """P[step X <= value]."""
        return self.law.cdf(rational(value) // self.step)

    def quantile(self, probability: object) -> Fraction:
        """The least value on the grid whose cdf reaches the probability."""
        return self.law.quantile(probability) * self.step


@dataclass(frozen=True, slots=True)
class Stepped(Law):
    """P[X = k] proportional to exp(-rate distances[i]) for the k of run i.

    Law      run i holds starts[i] ... starts[i] + counts[i] - 1; the runs follow one another
    Checked  tests/laws/test_stepped.py

    >>> law = Stepped((0, 2), (2, 1), (0, 1), Fraction(1))
    >>> law.probability(1)
    Ball(0.42231879825151819660 ± 3.30e-21)
    """

    starts: tuple[int, ...] = field(repr=False)
    counts: tuple[int, ...] = field(repr=False)
    distances: tuple[int, ...] = field(repr=False)
    rate: Fraction

    def mass(self, value: int) -> arb:
        low, high = self.support
        if not low <= value <= high:
            return arb(0)
        run = bisect_right(self.starts, value) - 1
        return self._weight(run) / self._total(len(self.starts))

    def cumulative(self, value: int) -> arb:
        low, high = self.support
        if value < low or value >= high:
            return arb(int(value >= high))
        run = bisect_right(self.starts, value) - 1
        here = self._weight(run) * (value - self.starts[run] + 1)
        return (self._total(run) + here) / self._total(len(self.starts))

    @property
    def support(self) -> tuple[int, int]:
        return self.starts[0], self.starts[-1] + self.counts[-1] - 1

    def _weight(self, run: int) -> arb:
        return (-arb_of(self.rate * (self.distances[run] - min(self.distances)))).exp()

    def _total(self, runs: int) -> arb:
        return sum((self._weight(i) * self.counts[i] for i in range(runs)), arb(0))


Exact: TypeAlias = Fraction | Real
"""A rational, or a real that can be enclosed as tightly as one likes."""

_MOST_BITS = 1024  # a real scale must show its sign within this many bits
_FARTHEST = 1 << 16  # binary places of a scale in steps, and of reals: more has no practical use


@dataclass(frozen=True, slots=True, init=False)
class Rounded(Law):
    """The nearest step of a grid to location + scale * Z, counted in steps.

    Law      K = round((location + scale Z)/grid), so P[K = k] = P[e(k-1) < Z <= e(k)] with
             e(k) = ((k + 1/2) grid - location)/scale
    Theorem  Z has a density, so ties have probability 0 and need no rule. A mass is a difference of
             lower tails left of the centre and of upper tails right of it, computed with as many
             more bits as the difference may cancel: about log2(scale/grid) + log2(abs(k)). Where
             the precision is too low for a real location or scale the ball is all of [0, 1]
    Differs  location and scale may be reals; both may be private and are not shown
    Checked  tests/laws/test_rounded.py

    >>> from lastbit.laws.ideal import IdealLaplace
    >>> law = Rounded(IdealLaplace(), location="0.3", scale=2, grid=1)
    >>> law.quantile("1/2"), law.probability(0)
    (0, Ball(0.21242126796420056305 ± 4.35e-21))
    >>> law
    Rounded(ideal=IdealLaplace(), grid=Fraction(1, 1))
    """

    ideal: Ideal
    location: Exact = field(repr=False)
    scale: Exact = field(repr=False)
    grid: Fraction

    def __init__(
        self, ideal: Ideal, location: Number | Real = 0, scale: Number | Real = 1, grid: Number = 1
    ) -> None:
        if not isinstance(ideal, Ideal):
            raise WrongType(
                "ideal", problem="is not an ideal law", remedy="pass one, such as IdealLaplace()"
            )
        object.__setattr__(self, "ideal", ideal)
        object.__setattr__(self, "location", _location(location))
        object.__setattr__(self, "scale", _scale(scale))
        object.__setattr__(self, "grid", positive(grid, "grid"))
        with working_precision(_MOST_BITS):
            if not enclosed(self.scale) / arb_of(self.grid) < arb(2) ** _FARTHEST:
                raise InvalidParameter(
                    "scale",
                    problem=f"is not below 2**{_FARTHEST} steps of the grid",
                    remedy="pass a coarser grid",
                )

    def edge(self, value: int) -> arb:
        """The greatest Z that is rounded to `value`, enclosed at the working precision."""
        middle = fmpq(2 * value + 1, 2) * _fmpq(self.grid)
        if isinstance(self.location, Fraction) and isinstance(self.scale, Fraction):
            return arb((middle - _fmpq(self.location)) / _fmpq(self.scale))
        return (arb(middle) - enclosed(self.location)) / enclosed(self.scale)

    def mass(self, value: int) -> arb:
        ratio = enclosed(self.scale) / arb_of(self.grid)
        steps = floor_ceil(ratio)[1] if ratio.is_finite() else 0
        lost = steps.bit_length() + abs(value).bit_length() + 8
        with working_precision(ctx.prec + lost):
            low, high = self.edge(value - 1), self.edge(value)
            if low + high > 0:
                return _probability(self.ideal.above(low) - self.ideal.above(high))
            return _probability(self.ideal.below(high) - self.ideal.below(low))

    def cumulative(self, value: int) -> arb:
        return _probability(self.ideal.below(self.edge(value)))

    def exact_cumulative(self, value: int) -> Fraction | None:
        if isinstance(self.location, Real) or isinstance(self.scale, Real):
            return None
        middle = (value + Fraction(1, 2)) * self.grid
        return self.ideal.known_below((middle - self.location) / self.scale)

    def survival(self, value: int) -> arb:
        """P[K > value] enclosed at the working precision, with a small relative error."""
        return _probability(self.ideal.above(self.edge(value)))


def enclosed(number: Exact) -> arb:
    """A number at the working precision."""
    return arb(number.enclosure()) if isinstance(number, Real) else arb_of(number)


def _probability(ball: arb) -> arb:
    """A probability: a ball that says nothing, or has no end, is all of them."""
    return ball if ball.is_finite() and ball.rad() < 1 else arb(0).union(arb(1))


def _fmpq(number: Fraction) -> fmpq:
    return fmpq(number.numerator, number.denominator)


def _rational(value: Number, name: str) -> Fraction:
    """What `rational` says, but a text that is not a number is not repeated: it may be private."""
    try:
        return rational(value, name)
    except InvalidParameter:
        if not isinstance(value, str):
            raise
    raise InvalidParameter(
        name, problem="is a text that is not a number", remedy='pass one such as "0.1" or "1/3"'
    )


def _location(value: Number | Real) -> Exact:
    if not isinstance(value, Real):
        return _rational(value, "location")
    if not abs(value.ball(_MOST_BITS).enclosure) < arb(2) ** _FARTHEST:
        raise InvalidParameter(
            "location",
            problem=f"is not finite, or not within 2**{_FARTHEST}",
            remedy="pass a finite number",
        )
    return value


def _scale(value: Number | Real) -> Exact:
    if not isinstance(value, Real):
        return positive(_rational(value, "scale"), "scale")
    ball = value.ball(_MOST_BITS).enclosure
    if not (ball.is_finite() and ball > arb(2) ** -_FARTHEST):
        raise InvalidParameter(
            "scale",
            problem=f"is not certainly above 2**-{_FARTHEST} and finite at {_MOST_BITS} bits",
            remedy="pass a number above 0",
        )
    return value
