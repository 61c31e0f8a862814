"""The Laplace law in the Euclidean and the maximum norm, on integer points of any dimension."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import comb
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

from flint import arb, ctx, fmpz_poly

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import (
    DEFAULT_PRECISION,
    Ball,
    Number,
    arb_of,
    at_most,
    positive,
    rational,
    upper,
    whole,
    working_precision,
)
from lastbit.laws.discrete import from_zero_to
from lastbit.laws.law import least, quantile_level

Norm: TypeAlias = Literal["L2", "Linf"]
MOST_DIMENSION: Mapping[str, int] = MappingProxyType({"L2": 16, "Linf": 64})
"""Of what is drawn: beyond, rejection (L2) or tables (Linf) would take too long."""

_FARTHEST = 1 << 4096
_LEAST_RATE = Fraction(1, 1 << 256)
# Below this rate Poisson's formula gives the sum, from it up the points are added shell by shell.
_SERIES_BELOW = 2
_NEAR = 32  # Euclidean tails are added up exactly so far out, and bounded by an integral beyond
_PARTS = 1 << 12  # Euclidean radii are found to this part of the noise length 1/rate


@dataclass(frozen=True, slots=True, init=False)
class DiscreteNormLaplace:
    """The Laplace law of a norm on the points of m integers.

    Law      P[X = x] = exp(-rate norm(x)) / Z, for all x with m integer coordinates
    Theorem  Write a for the rate, q = exp(-a).
             *Maximum norm*: (2r+1)**m points have norm <= r, so Z = (1-q) sum (2r+1)**m q**r. With
             the Eulerian numbers of type B, (2r+1)**m = sum_j B(m, j) binomial(r+m-j, m), and
             sum_r binomial(r+m, m) q**r = (1-q)**-(m+1): Z = sum_j B(m, j) q**j / (1-q)**m.
             P[norm > k] = (1-q)/Z sum_(r>k) ((2r+1)**m - (2k+1)**m) q**r; by the binomial theorem
             in r = k+s, and sum_(s>=1) s**i q**s = q E_i(q)/(1-q)**(i+1) with the Eulerian
             polynomial E_i, it is q**k/Z sum_(i>=1) binomial(m, i) (2k+1)**(m-i) 2**i
             q E_i(q)/(1-q)**i: positive terms only.
             *Euclidean norm*: the Fourier transform of exp(-a abs(x)) is
             c a/(a**2 + 4 pi**2 abs(k)**2)**s, s = (m+1)/2, c = 2**m pi**((m-1)/2) Gamma(s), so by
             Poisson's formula Z is its sum over all integer points k. All of it is positive: Z is
             at least the term c/a**m of 0. For a < 2 expand the others and exchange the sums:
             c a sum_j binomial(-s, j) a**(2j) (2 pi)**(-2s-2j) E(s+j), E(z) the sum of
             abs(k)**(-2z) over k != 0. E falls, so the terms shrink at least by
             (s+j)/(j+1) (a/(2 pi))**2, and a geometric sum bounds the rest.
             *E*: with theta(t) the sum of exp(-pi k**2 t), pi**-z Gamma(z) E(z) is the integral of
             t**(z-1) (theta(t)**m - 1); theta(1/t)**m = t**(m/2) theta(t)**m folds (0, 1) onto
             (1, oo): 1/(z - m/2) - 1/z + sum_n r(n) (F(z, pi n) + F(m/2 - z, pi n)), where r(n)
             points have abs(k)**2 = n and F(z, y) = Gamma(z, y) y**-z. As r(n) <= (2 sqrt(n)+1)**m
             and F(z, y) <= exp(-y)/(y - max(z, 1) + 1), the rest beyond N is below twice its first
             bound where these bounds halve from each n to the next.
             *Directly*, for a >= 2: let h = sqrt(m)/2. In the unit cube around x every y has
             abs(y) - h <= abs(x) <= abs(y) + h, so the points beyond R >= h weigh at most
             exp(a h) c/a**m G(t), G(t) = exp(-t) sum_(i<m) t**i/i!, t = a (R - h).
             *Tail*: divide by Z >= c/a**m: P[abs(X) > R] <= exp(a h) G(t)
    Source   paper 000, Definition 2.7; Brenti 1994 for type B; Epstein 1903 for E
    Differs  on the lattice, so that it can be drawn exactly. The paper's scale b is a rate
    Checked  tests/laws/test_norms.py

    >>> DiscreteNormLaplace("1/10", dimension=3, norm="Linf").probability((0, 0, 0))
    Ball(2.0824657833048353849e-5 ± 7.57e-26)
    >>> law = DiscreteNormLaplace("1/10", dimension=3, norm="L2")
    >>> 62 < law.radius("0.95") < 66, law.tail_upper(66) < 0.05
    (True, True)
    """

    rate: Fraction
    dimension: int
    norm: Norm

    def __init__(self, rate: Number, *, dimension: int, norm: Norm) -> None:
        exact = positive(rate, "rate")
        if exact < _LEAST_RATE:
            raise InvalidParameter(
                "rate", problem="is below 2**-256", remedy="count the distance in larger steps"
            )
        if not isinstance(norm, str) or norm not in get_args(Norm):
            raise InvalidParameter("norm", problem="is unknown", remedy='pass "L2" or "Linf"')
        most = MOST_DIMENSION[norm]
        if whole(dimension, "dimension", least=1) > most:
            problem = f"is above {most}, the most for {norm} noise"
            remedy = "pass fewer coordinates, or use Gaussian noise"
            raise InvalidParameter("dimension", problem=problem, remedy=remedy)
        for name, value in (("rate", exact), ("dimension", int(dimension)), ("norm", norm)):
            object.__setattr__(self, name, value)

    def probability(self, point: object, *, precision: int = DEFAULT_PRECISION) -> Ball:
        """P[X = point]."""
        place = [whole(part, "point", least=-_FARTHEST) for part in _coordinates(point, self)]
        with working_precision(precision):
            return Ball((-arb_of(self.rate) * self._size(place)).exp() / norm_normaliser(self))

    def tail_upper(self, radius: object) -> float:
        """P[norm(X) > radius], rounded up: exact for Linf and near 0, the bound above far out."""
        far = rational(radius, "radius")
        if far < 0:
            return 1.0
        with working_precision(DEFAULT_PRECISION):
            if self.norm == "Linf":
                return min(upper(self._beyond(far // 1)), 1.0)
            bound = self._bound(
                (arb_of(self.rate) * (arb_of(far) - self._half())).nonnegative_part()
            )
            if far <= _NEAR:
                bound = bound.min(1 - self._within(far**2 // 1))
            return min(upper(bound), 1.0)

    def radius(self, probability: object) -> Fraction:
        """A radius that X stays within with at least this probability.

        The least there is for Linf, and for L2 up to 32 steps, rounded up to a float; beyond, the
        bound of the theorem makes it a little too large.
        """
        level = quantile_level(probability, remedy="pass, say, 0.95")
        if self.norm == "Linf":
            missing = 1 - level
            return Fraction(
                least(
                    lambda k: at_most(lambda: self._beyond(k), lambda: arb_of(missing)), (0, None)
                )
            )
        with working_precision(DEFAULT_PRECISION):
            left, rate = arb_of(1 - level), arb_of(self.rate)
            parts = least(
                lambda n: bool(self._bound(arb_of(Fraction(n, _PARTS))) <= left), (0, None)
            )
            far = Fraction(upper(arb_of(Fraction(parts, _PARTS)) / rate + self._half()))
        if far > _NEAR:
            return far
        square = least(
            lambda n: at_most(lambda: arb_of(level), lambda: self._within(n)), (0, far**2 // 1)
        )
        with working_precision(DEFAULT_PRECISION):
            return Fraction(upper(arb(square).sqrt()))

    def _size(self, place: list[int]) -> arb:
        if self.norm == "Linf":
            return arb(max(map(abs, place)))
        return arb(sum(part * part for part in place)).sqrt()

    def _half(self) -> arb:
        return arb(self.dimension).sqrt() / 2

    def _bound(self, t: arb) -> arb:
        """exp(a h) G(t) of the theorem."""
        term, total = arb(1), arb(0)
        for i in range(self.dimension):
            total += term
            term *= t / (i + 1)
        return total * (arb_of(self.rate) * self._half() - t).exp()

    def _within(self, square: int) -> arb:
        """P[abs(X)**2 <= square] in the Euclidean norm."""
        return _weights(self.dimension, int(square), self.rate) / norm_normaliser(self)

    def _beyond(self, k: int) -> arb:
        """P[norm(X) > k] in the maximum norm."""
        a, m, width = arb_of(self.rate), self.dimension, 2 * int(k) + 1
        q, left = (-a).exp(), -(-a).expm1()
        total, scale = arb(0), arb(1)
        for i in range(1, m + 1):
            scale *= 2 / left
            series = _polynomial(eulerian(i), q)
            total += comb(m, i) * arb(width) ** (m - i) * scale * q * series
        return total * (-a * int(k)).exp() / norm_normaliser(self)


@dataclass(frozen=True, slots=True)
class ScatteredVector:
    """The law of step * (centre + X): what a vector becomes. The centre is data, and not shown.

    >>> law = DiscreteNormLaplace(1, dimension=3, norm="L2")
    >>> ScatteredVector(law, (8, 0, 0), Fraction(1, 8)).probability((1, 0, 0))
    Ball(0.039381423856612024290 ± 1.67e-22)
    """

    law: DiscreteNormLaplace
    centre: tuple[int, ...] = field(repr=False)
    step: Fraction

    def probability(self, point: object, *, precision: int = DEFAULT_PRECISION) -> Ball:
        """P[step (centre + X) = point], which is 0 off the grid."""
        place = [rational(part, "point") / self.step for part in _coordinates(point, self.law)]
        if any(part.denominator != 1 for part in place):
            return Ball.of(0)
        moved = tuple(int(part) - at for part, at in zip(place, self.centre, strict=True))
        return self.law.probability(moved, precision=precision)


def eulerian(m: int) -> tuple[int, ...]:
    """Coefficients of E_m: sum over s >= 1 of s**m q**s is q E_m(q)/(1-q)**(m+1).

    >>> eulerian(3)
    (1, 4, 1)
    """
    row: tuple[int, ...] = (1,)
    for n in range(2, m + 1):
        row = tuple(
            (j + 1) * right + (n - j) * left
            for j, (left, right) in enumerate(pairwise((0, *row, 0)))
        )
    return row


def eulerian_b(m: int) -> tuple[int, ...]:
    """B(m, 0), ..., B(m, m): sum over r of (2r+1)**m q**r is their polynomial over (1-q)**(m+1).

    >>> eulerian_b(2), eulerian_b(3)
    ((1, 6, 1), (1, 23, 23, 1))
    """
    row: tuple[int, ...] = (1,)
    for n in range(1, m + 1):
        row = tuple(
            (2 * j + 1) * right + (2 * (n - j) + 1) * left
            for j, (left, right) in enumerate(pairwise((0, *row, 0)))
        )
    return row


def norm_normaliser(law: DiscreteNormLaplace) -> arb:
    """Z, the sum of exp(-rate norm(x)) over all integer points, at the working precision."""
    return _normaliser(law, ctx.prec)


@lru_cache(maxsize=256)
def _normaliser(law: DiscreteNormLaplace, precision: int) -> arb:
    m = law.dimension
    with working_precision(precision + 32):
        a = arb_of(law.rate)
        if law.norm == "Linf":
            return _polynomial(eulerian_b(m), (-a).exp()) / (-(-a).expm1()) ** m
        if law.rate < _SERIES_BELOW:
            return _series(m, a)
        most = _whole_space(m, a)
        small = arb(2) ** -ctx.prec

        def rest(radius: int) -> arb:
            return most * law._bound(a * (radius - law._half()))

        radius = least(lambda r: bool(rest(r) < small), (m, None))
        return _weights(m, radius * radius, law.rate) + from_zero_to(rest(radius))


def _whole_space(m: int, a: arb) -> arb:
    """c/a**m: the integral of exp(-a abs(x)), the Euclidean normaliser without a lattice."""
    half = arb(m + 1) / 2
    return arb(2) ** m * arb.pi() ** (half - 1) * half.gamma() / a**m


def _series(m: int, a: arb) -> arb:
    """The Euclidean Z by Poisson's formula, for a < 2."""
    s, first = arb(m + 1) / 2, _whole_space(m, a)
    total, binomial, j = first, arb(1), 0
    ratio = (a / (2 * arb.pi())) ** 2
    power = first * a ** (m + 1) * (2 * arb.pi()) ** -(2 * s)
    small = first * arb(2) ** -ctx.prec
    while True:
        size = binomial * power * _epstein(m, j, ctx.prec)
        shrink = ratio * (s + j) / (j + 1)
        if size < small and shrink < 1:
            return total + (size / (1 - shrink)).union(-size / (1 - shrink))
        total += -size if j % 2 else size
        binomial *= (s + j) / (j + 1)
        power *= ratio
        j += 1


@lru_cache(maxsize=4096)
def _epstein(m: int, j: int, precision: int) -> arb:
    """E((m+1)/2 + j): the sum of abs(k)**(-2z) over the integer points k != 0."""
    with working_precision(precision):
        z = arb(m + 1) / 2 + j
        small = arb(2) ** -precision

        def bound(n: int) -> arb:
            points = (2 * arb(n).sqrt() + 1) ** m
            return 2 * points * (-arb.pi() * n).exp() / (arb.pi() * n - z + 1)

        # from here on exp(-pi) outweighs what points and divisors add, and the bounds halve
        last = least(lambda n: n > m + z and bool(bound(n) < small), (m + 1, None))
        total = 1 / (z - arb(m) / 2) - 1 / z + from_zero_to(2 * bound(last))
        for n, count in enumerate(points_at(m, last)[:last]):
            if n and count:
                y = arb.pi() * n
                near = y.gamma_upper(z) * y**-z + y.gamma_upper(arb(m) / 2 - z) * y ** (
                    z - arb(m) / 2
                )
                total += count * near
        return total * arb.pi() ** z / z.gamma()


def _weights(m: int, square: int, rate: Fraction) -> arb:
    """The sum of exp(-rate abs(x)) over the integer points with abs(x)**2 <= square."""
    a, counts = arb_of(rate), points_at(m, square)[: square + 1]
    return sum((k * (-a * arb(n).sqrt()).exp() for n, k in enumerate(counts) if k), arb(0))


@lru_cache(maxsize=64)
def points_at(m: int, square: int) -> list[int]:
    """How many points of m integers have abs(x)**2 = n, for n = 0 to `square`.

    >>> points_at(3, 4)
    [1, 6, 12, 8, 6]
    """
    line = [0] * (square + 1)
    for k in range(square + 1):
        if k * k > square:
            break
        line[k * k] = 2 if k else 1
    one, power = fmpz_poly(line), fmpz_poly([1])
    for _ in range(m):
        power = fmpz_poly((power * one).coeffs()[: square + 1])
    counts = [int(count) for count in power.coeffs()]
    return counts + [0] * (square + 1 - len(counts))


def _polynomial(coefficients: tuple[int, ...], q: arb) -> arb:
    total = arb(0)
    for coefficient in reversed(coefficients):
        total = total * q + coefficient
    return total


def _coordinates(point: object, law: DiscreteNormLaplace) -> list[object]:
    if not isinstance(point, tuple | list) or len(point) != law.dimension:
        problem = f"is not a tuple of {law.dimension} numbers"
        raise WrongType("point", problem=problem, remedy="pass one for each coordinate")
    return list(point)
