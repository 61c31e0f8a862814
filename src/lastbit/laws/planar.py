"""The Laplace law of the plane, on the points with integer coordinates."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import isqrt

from flint import arb, ctx

from lastbit.errors import InvalidParameter, PrecisionExhausted, Undecidable, WrongType
from lastbit.exact import (
    DEFAULT_PRECISION,
    Ball,
    Number,
    Real,
    arb_of,
    at_most,
    positive,
    rational,
    refine,
    upper,
    whole,
    working_precision,
)
from lastbit.laws.discrete import from_zero_to
from lastbit.laws.law import least, quantile_level

Point = tuple[int, int]

_FARTHEST = 1 << 4096
_LEAST_RATE = Fraction(1, 1 << 256)
# Below this rate Poisson's formula gives the sums, from it up they are added point by point.
_SERIES_BELOW = 2
# Tails are added up exactly as far out as this, and bounded by an integral beyond.
_NEAR = 64
# Radii are found to this part of the noise length 1/rate.
_PARTS = 1 << 12
# A computable rate is enclosed at least so tightly: sums over the plane need it away from 0.
_FIRST_BITS = 24


@dataclass(frozen=True, slots=True, init=False)
class DiscretePlanarLaplace:
    """The planar Laplace law on the integer points.

    Law      P[X = (i, j)] = exp(-rate sqrt(i**2 + j**2)) / Z(rate), for all integers i, j
    Theorem  Z is known to every precision asked for. *Poisson*: the Fourier transform of
             exp(-a abs(x)) in the plane is 2 pi a/(a**2 + 4 pi**2 abs(k)**2)**(3/2), both decay
             faster than abs(x)**-2.5, so Z(a) is the sum of the latter over all integer points k.
             The point 0 gives 2 pi/a**2; since the others are positive, Z >= 2 pi/a**2. For the
             others, abs(k) >= 1 and a < 2 pi, expand the power and exchange the sums (absolutely
             convergent):
             Z(a) = 2 pi/a**2 + sum over m of c_m a**(2m+1),
             c_m = 2 pi binomial(-3/2, m) (2 pi)**-(2m+3) E(m + 3/2),
             E(s) = sum of abs(k)**-2s over k != 0 = 4 zeta(s) beta(s) (Hardy). E falls with s, so
             the terms shrink at least by (m + 3/2)/(m + 1) (a/(2 pi))**2, which itself falls: a
             geometric sum bounds the rest. *Directly*, for a >= 2: let h = sqrt(2)/2. In the unit
             square around a point x every y has abs(y) - h <= abs(x) <= abs(y) + h, so the points
             beyond R >= h add up to at most exp(a h) times the integral of exp(-a abs(y)) over
             abs(y) > R - h: to exp(a h) (2 pi/a**2) (1 + t) exp(-t), t = a (R - h).
             *Tail*: divide that by Z >= 2 pi/a**2: P[abs(X) > r] <= exp(a h) (1 + t) exp(-t),
             t = a (r - h) >= 0. (The same squares give Z >= exp(-a h) 2 pi/a**2 only.)
    Source   Andres et al. 2013 for the continuous law; paper 000 section 6
    Differs  lives on the lattice, so that it can be drawn exactly; no float takes part
    Checked  tests/laws/test_planar.py

    >>> law = DiscretePlanarLaplace("1/1000")
    >>> law.probability((0, 0))
    Ball(1.5915494308609914840e-7 ± 2.02e-28)
    >>> law.radius("0.95") < 4750, law.mean_distance_upper
    (True, 1999.9999998907444)
    """

    rate: Fraction | Real

    def __init__(self, rate: Number | Real) -> None:
        if isinstance(rate, Real):
            exact: Fraction | Real = rate
            try:
                tiny = refine(lambda precision: rate.ball(precision) < _LEAST_RATE, limit=4096)
            except PrecisionExhausted:
                tiny = True
        else:
            exact = positive(rate, "rate")
            tiny = exact < _LEAST_RATE
        if tiny:
            raise InvalidParameter(
                "rate", problem="is not above 2**-256", remedy="count the distance in larger steps"
            )
        object.__setattr__(self, "rate", exact)

    def mass(self, point: Point) -> arb:
        """P[X = point] enclosed at the working precision."""
        i, j = point
        distance = arb(i * i + j * j).sqrt()
        return (-_enclosed(self.rate) * distance).exp() / normaliser(self.rate)

    def probability(self, point: Point, *, precision: int = DEFAULT_PRECISION) -> Ball:
        """P[X = point]."""
        i, j = (whole(part, "point", least=-_FARTHEST) for part in _pair(point))
        with working_precision(precision):
            return Ball(self.mass((i, j)))

    def tail_upper(self, radius: object) -> float:
        """P[abs(X) > radius], rounded up: exact near 0, the bound above far out."""
        far = rational(radius, "radius")
        if far < 0:
            return 1.0
        with working_precision(DEFAULT_PRECISION):
            rate = _enclosed(self.rate)
            t = (rate * (arb_of(far) - _half_diagonal())).nonnegative_part()
            bound = _bound_at(rate, t)
            if far <= _NEAR:
                bound = bound.min(1 - self._within(far**2 // 1))
            return min(upper(bound), 1.0)

    def radius(self, probability: object) -> Fraction:
        """A radius that X stays within with at least this probability, rounded up.

        Up to 64 steps it is the least there is (rounded up to a float); beyond, the bound of the
        theorem makes it too large, for levels from 1/2 up by less than 3 steps and 2**-11 of the
        noise 1/rate together.
        """
        level = quantile_level(probability, remedy="pass, say, 0.95")
        with working_precision(DEFAULT_PRECISION):
            missing = arb_of(1 - level)
            rate = _enclosed(self.rate)

            def holds(parts: int) -> bool:
                return bool(_bound_at(rate, arb_of(Fraction(parts, _PARTS))) <= missing)

            parts = least(holds, (0, None))
            far = Fraction(upper(arb_of(Fraction(parts, _PARTS)) / rate + _half_diagonal()))
        if far > _NEAR:
            return far

        def reaches(square: int) -> bool:
            return at_most(lambda: arb_of(level), lambda: self._within(square))

        square = least(reaches, (0, far**2 // 1))
        with working_precision(DEFAULT_PRECISION):
            return Fraction(upper(arb(square).sqrt()))

    def mean_distance(self, *, precision: int = DEFAULT_PRECISION) -> Ball:
        """The mean of abs(X): -Z'/Z, term by term."""
        with working_precision(precision):
            return Ball(_moment(self.rate, precision) / normaliser(self.rate))

    @property
    def mean_distance_upper(self) -> float:
        """The mean of abs(X), rounded up."""
        return upper(self.mean_distance())

    def _within(self, square: int) -> arb:
        """P[abs(X)**2 <= square]."""
        return _sum(_circles(square), _enclosed(self.rate)) / normaliser(self.rate)


@dataclass(frozen=True, slots=True)
class ScatteredPoint:
    """The law of step * (centre + X), X planar: what a point of the plane becomes.

    The centre comes from somebody's data and is not shown.

    >>> from lastbit.laws.planar import DiscretePlanarLaplace
    >>> scattered = ScatteredPoint(DiscretePlanarLaplace(1), (8, 0), Fraction(1, 8))
    >>> scattered
    ScatteredPoint(law=DiscretePlanarLaplace(rate=Fraction(1, 1)), step=Fraction(1, 8))
    >>> scattered.probability((1, 0))
    Ball(0.15367494373694157368 ± 8.74e-22)
    """

    law: DiscretePlanarLaplace
    centre: Point = field(repr=False)
    step: Fraction

    def probability(self, point: object, *, precision: int = DEFAULT_PRECISION) -> Ball:
        """P[step (centre + X) = point], which is 0 off the grid."""
        x, y = (rational(part, "point") / self.step for part in _pair(point))
        if x.denominator != 1 or y.denominator != 1:
            return Ball.of(0)
        i, j = self.centre
        return self.law.probability((int(x) - i, int(y) - j), precision=precision)


def normaliser(rate: Fraction | Real) -> arb:
    """Z, the sum of exp(-rate abs(x)) over all integer points x, at the working precision."""
    return _normaliser(rate, ctx.prec)


@lru_cache(maxsize=256)
def _normaliser(rate: Fraction | Real, precision: int) -> arb:
    with working_precision(precision):
        a = _enclosed(rate)
        if a < _SERIES_BELOW:
            return _series(a)
        square = _far_enough(a)
        return _sum(_circles(square), a) + from_zero_to(_rest(a, square))


@lru_cache(maxsize=64)
def _moment(rate: Fraction | Real, precision: int) -> arb:
    """The sum of abs(x) exp(-rate abs(x)) over all integer points x: -Z'.

    Far out abs(x) <= (2/a) exp(a abs(x)/2), so the rest is at most 2/a times that at half the rate.
    """
    with working_precision(precision):
        a = _enclosed(rate)
        if a < _SERIES_BELOW:
            return _series(a, derived=True)
        square = _far_enough(a / 2)
        near = sum(
            (count * arb(n).sqrt() * (-a * arb(n).sqrt()).exp() for n, count in _circles(square)),
            arb(0),
        )
        return near + from_zero_to(2 / a * _rest(a / 2, square))


def _series(a: arb, *, derived: bool = False) -> arb:
    """Z by Poisson's formula for a < 2, or -Z' if derived.

    A derived term is (2m+1)/a times the plain one; those factors grow by (2m+3)/(2m+1) <= 3.

    E(s) of the theorem is 4 zeta(s) beta(s), and 4**s beta(s) = zeta(s, 1/4) - zeta(s, 3/4).
    """
    turn = 2 * arb.pi()
    total = 2 * turn / a**3 if derived else turn / a**2
    power = a / turn**2  # 2 pi a (2 pi)**-3, then times (a/(2 pi))**2 from term to term
    binomial = arb(1)
    ratio = (a / turn) ** 2
    small = total * arb(2) ** -(ctx.prec + 8)
    m = 0
    while True:
        s = arb(2 * m + 3) / 2
        beta = (s.zeta(arb(1) / 4) - s.zeta(arb(3) / 4)) * arb(4) ** -s
        size = binomial * power * 4 * s.zeta() * beta
        shrink = ratio * arb(2 * m + 3) / (2 * m + 2)
        if derived:
            size *= (2 * m + 1) / a
            shrink *= arb(2 * m + 3) / (2 * m + 1)
        if size < small and shrink < 1:
            rest = size / (1 - shrink)
            return total + rest.union(-rest)
        # -Z' has the sign of the plain terms turned round
        total += -size if (m % 2 == 1) != derived else size
        binomial *= arb(2 * m + 3) / (2 * m + 2)
        power *= ratio
        m += 1


def _far_enough(a: arb) -> int:
    """A squared radius whose rest does not matter at the working precision.

    Every radius gives a true enclosure; this one a tight one.
    """
    small = arb(2) ** -(ctx.prec + 8)
    return least(lambda radius: bool(_rest(a, radius * radius) < small), (2, None)) ** 2


def _rest(a: arb, square: int) -> arb:
    """A bound on the sum of exp(-a abs(x)) over abs(x)**2 > square >= 1."""
    t = a * (arb(square).sqrt() - _half_diagonal())
    return 2 * arb.pi() / a**2 * _bound_at(a, t)


def _bound_at(rate: arb, t: arb) -> arb:
    """The factor exp(a h) (1 + t) exp(-t) of the theorem."""
    return (1 + t) * (rate * _half_diagonal() - t).exp()


def _sum(circles: list[tuple[int, int]], rate: arb) -> arb:
    """The weights of the points on circles of these squared radii."""
    return sum((count * (-rate * arb(n).sqrt()).exp() for n, count in circles), arb(0))


def _circles(square: int) -> list[tuple[int, int]]:
    """How many integer points have abs(x)**2 = n, for every n up to `square` that has any."""
    counts: dict[int, int] = {}
    for i in range(isqrt(square) + 1):
        for j in range(min(i, isqrt(square - i * i)) + 1):
            # (0, 0) is alone; four points on an axis or a diagonal, eight elsewhere
            alike = 1 if i == 0 else 4 if j in (0, i) else 8
            counts[i * i + j * j] = counts.get(i * i + j * j, 0) + alike
    return sorted(counts.items())


def _half_diagonal() -> arb:
    return arb(2).sqrt() / 2


def _enclosed(rate: Fraction | Real) -> arb:
    """The rate with some of its first bits known, whatever the working precision."""
    if not isinstance(rate, Real):
        return arb_of(rate)
    enclosure = rate.enclosure

    def known(precision: int) -> arb:
        with working_precision(precision):
            ball = arb(enclosure())
            if ball > 0 and ball.rel_accuracy_bits() >= _FIRST_BITS:
                return ball
        raise Undecidable("the first bits of the rate")

    return refine(known, start=ctx.prec)


def _pair(point: object) -> tuple[object, object]:
    if not isinstance(point, tuple | list) or len(point) != 2:
        raise WrongType("point", problem="is not a pair", remedy="pass (x, y)")
    return point[0], point[1]
