"""Continuous laws on the real line: ideals that are drawn only after rounding to a grid."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import ClassVar

from flint import arb, arb_series, ctx

from lastbit.errors import InvalidParameter, Undecidable
from lastbit.exact import (
    DEFAULT_PRECISION,
    Ball,
    Number,
    arb_of,
    positive,
    rational,
    root_bounds,
    working_precision,
)
from lastbit.laws.law import quantile_level

_FAR = 10**6  # exp(-exp(_FAR)) is below everything anybody could ask about
_MOST_STEPS = 200
_GREATEST_POWER = 1 << 20
_LEAST_POWER = Fraction(1, 1 << 10)  # the quantile of 2**-64 would have 2**16 digits or more
_MOST_TERMS = 32  # of a sum of rationals


class Ideal(ABC):
    """The law of a real random variable Z with a positive continuous density.

    Law      `below(z)` = P[Z <= z] and `above(z)` = P[Z > z], enclosed at the working precision,
             each with a small relative error in the tail that it names
    Theorem  both are continuous and monotone in z, so a ball z gives a ball that holds the
             probabilities at every number of it
    Differs  standardised: location and scale come in where the law is rounded (`Rounded`)
    Checked  tests/laws/test_ideal.py

    >>> IdealGaussian().quantile("0.975", precision=53)
    Ball(1.959963984540054 ± 4.54e-16)
    """

    __slots__ = ()

    symmetric: ClassVar[bool] = True

    @abstractmethod
    def below(self, z: arb) -> arb:
        """P[Z <= z]."""

    def above(self, z: arb) -> arb:
        """P[Z > z]."""
        return self.below(-z)

    def known_below(self, z: Fraction) -> Fraction | None:
        """P[Z <= z] where it is known to be rational: no precision would decide an equality."""
        return Fraction(1, 2) if self.symmetric and z == 0 else None

    @abstractmethod
    def density(self, z: arb_series) -> arb_series:
        """The density of a power series, to as many terms as the series has.

        `Undecidable` or coefficients that are not finite where there is no such power series.
        """

    @abstractmethod
    def near_below(self, probability: arb) -> arb:
        """A number near the z with P[Z <= z] = probability <= 1/2; nothing rests on it."""

    def near_above(self, probability: arb) -> arb:
        """A number near the z with P[Z > z] = probability <= 1/2; nothing rests on it."""
        return -self.near_below(probability)

    def quantile(self, probability: object, *, precision: int = DEFAULT_PRECISION) -> Ball:
        """The z with P[Z <= z] = probability, for a probability strictly between 0 and 1.

        Theorem  the centre is a guess sharpened by Newton's method, in the nearer tail; the radius
                 is doubled until the probabilities certainly lie on the two sides of the one asked
                 for at the two ends of the ball. The cumulative function is continuous, so z lies
                 between them

        >>> IdealGaussian().quantile("0.975")
        Ball(1.9599639845400542355 ± 2.46e-20)
        """
        level = quantile_level(probability)
        if self.symmetric and level == Fraction(1, 2):
            return Ball(arb(0))
        lower = level <= Fraction(1, 2)
        with working_precision(precision + 32):
            tail = arb_of(level if lower else 1 - level)
            centre = self.near_below(tail) if lower else self.near_above(tail)
            for _ in range(precision.bit_length()):
                surplus = self.below(centre) - tail if lower else tail - self.above(centre)
                moved = centre - surplus / self.density(arb_series([centre], 1))[0]
                if not moved.is_finite():
                    break
                centre = arb(moved.mid())
            centre = arb(centre.mid()) if centre.is_finite() else arb(0)
            radius = (abs(centre) + arb(2) ** -precision) * arb(2) ** -precision
            while True:
                left, right = arb((centre - radius).lower()), arb((centre + radius).upper())
                if lower and self.below(left) < tail < self.below(right):
                    return Ball(left.union(right))
                if not lower and self.above(left) > tail > self.above(right):
                    return Ball(left.union(right))
                radius *= 2


class _FromTail(Ideal):
    """A symmetric law that is given by its tail."""

    __slots__ = ()

    @abstractmethod
    def _tail(self, z: arb) -> arb:
        """P[Z > z] for z >= 0."""

    def below(self, z: arb) -> arb:
        if z <= 0:
            return self._tail(-z)
        if z >= 0:
            return 1 - self._tail(z)
        if not z.is_finite():
            return arb(0).union(arb(1))
        # 0 lies inside, and the probability grows with z: the two ends bound it
        return self.below(arb(z.lower())).union(self.below(arb(z.upper())))


@dataclass(frozen=True, slots=True)
class IdealLaplace(_FromTail):
    """The Laplace law of scale 1.

    Law      density exp(-abs(z))/2
    Theorem  P[Z <= z] = exp(z)/2 for z <= 0, and 1 - exp(-z)/2 for z >= 0
    Source   Dwork, McSherry, Nissim, Smith 2006
    Checked  tests/laws/test_ideal.py

    >>> IdealLaplace().quantile("1/4")
    Ball(-0.69314718055994530942 ± 2.77e-21)
    """

    def _tail(self, z: arb) -> arb:
        return (-z).exp() / 2

    def density(self, z: arb_series) -> arb_series:
        return (-_magnitude(z)).exp() / 2

    def near_below(self, probability: arb) -> arb:
        return (2 * probability).log()


@dataclass(frozen=True, slots=True)
class IdealGaussian(Ideal):
    """The Gaussian law of standard deviation 1.

    Law      density exp(-z**2/2) / sqrt(2 pi)
    Theorem  P[Z <= z] = erfc(-z/sqrt 2)/2
    Source   paper 004
    Checked  tests/laws/test_ideal.py

    >>> IdealGaussian().quantile("1/4")
    Ball(-0.67448975019608174320 ± 2.23e-21)
    """

    def below(self, z: arb) -> arb:
        return (-z / arb(2).sqrt()).erfc() / 2

    def density(self, z: arb_series) -> arb_series:
        return (-z * z / 2).exp() / (2 * arb.pi()).sqrt()

    def near_below(self, probability: arb) -> arb:
        return -(2 * probability).erfcinv() * arb(2).sqrt()


@dataclass(frozen=True, slots=True)
class IdealCauchy(Ideal):
    """The Cauchy law.

    Law      density 1 / (pi (1 + z**2))
    Theorem  P[Z > z] is the angle of the point (z, 1), over pi. For a rational z it is rational at
             -1, 0 and 1 only (Niven)
    Source   Nissim, Raskhodnikova, Smith 2007; paper 004
    Checked  tests/laws/test_ideal.py

    >>> IdealCauchy().quantile("3/4").contains(1)
    True
    """

    def below(self, z: arb) -> arb:
        return arb.atan2(arb(1), -z) / arb.pi()

    def known_below(self, z: Fraction) -> Fraction | None:
        return (2 + z) / 4 if z in (-1, 0, 1) else None

    def density(self, z: arb_series) -> arb_series:
        return 1 / ((1 + z * z) * arb.pi())

    def near_below(self, probability: arb) -> arb:
        return -probability.cot_pi()


@dataclass(frozen=True, slots=True)
class Logistic(Ideal):
    """The logistic law of scale 1.

    Law      density exp(-z) / (1 + exp(-z))**2
    Theorem  P[Z <= z] = 1/(1 + exp(-z)), here as exp(z)/(1 + exp(z)) for negative z
    Checked  tests/laws/test_ideal.py

    >>> Logistic().quantile("1/4")
    Ball(-1.0986122886681096914 ± 4.76e-21)
    """

    def below(self, z: arb) -> arb:
        if z < 0:
            power = z.exp()
            return power / (1 + power)
        return 1 / (1 + (-z).exp())

    def density(self, z: arb_series) -> arb_series:
        power = (-z if z[0] > 0 else z).exp()
        return power / ((1 + power) * (1 + power))

    def near_below(self, probability: arb) -> arb:
        return (probability / (1 - probability)).log()


@dataclass(frozen=True, slots=True)
class Gumbel(Ideal):
    """The Gumbel law of scale 1: the greatest of many.

    Law      P[Z <= z] = exp(-exp(-z)), density exp(-z - exp(-z))
    Theorem  P[Z > z] = -expm1(-exp(-z)). Below z = -10**6 the lower tail is given as the ball from
             0 to its value there, which is right because it only grows with z
    Source   Gumbel noise on utilities, the greatest taken, is the exponential mechanism
    Checked  tests/laws/test_ideal.py

    >>> Gumbel().quantile("1/4")
    Ball(-0.32663425997828098240 ± 4.80e-21)
    """

    symmetric: ClassVar[bool] = False

    def below(self, z: arb) -> arb:
        if z < -_FAR:
            return arb(0).union((-arb(_FAR).exp()).exp())
        return (-((-z).exp())).exp()

    def above(self, z: arb) -> arb:
        if z < -_FAR:
            return 1 - self.below(z)
        return -(-((-z).exp())).expm1()

    def density(self, z: arb_series) -> arb_series:
        return (-z - (-z).exp()).exp()

    def near_below(self, probability: arb) -> arb:
        return -(-probability.log()).log()

    def near_above(self, probability: arb) -> arb:
        return -(-(-probability).log1p()).log()


@dataclass(frozen=True, slots=True, init=False)
class PolynomialTail(_FromTail):
    """The law whose density falls like a power; gamma = 2 is the Cauchy law.

    Law      density c / (1 + abs(z)**gamma), c = gamma sin(pi/gamma) / (2 pi)
    Theorem  with v = z**gamma/(1 + z**gamma), P[abs(Z) <= z] = I_v(1/gamma, 1 - 1/gamma), I the
             regularised incomplete beta function: substitute t = x**gamma/(1 + x**gamma). Hence
             P[abs(Z) > z] = I_(1-v)(1 - 1/gamma, 1/gamma), used from z = 1 on; both arguments of I
             stay at or below 1/2 (or within the ball of z of it)
    Source   Nissim, Raskhodnikova, Smith 2007; paper 004
    Differs  gamma is an exact rational, above 1 by at least 2**-10
    Checked  tests/laws/test_ideal.py

    >>> PolynomialTail(4).quantile("3/4")
    Ball(0.56639603509151601968 ± 4.09e-21)
    """

    gamma: Fraction

    def __init__(self, gamma: Number) -> None:
        power = rational(gamma, "gamma")
        if not _LEAST_POWER <= power - 1 <= _GREATEST_POWER:
            raise InvalidParameter(
                "gamma",
                problem="is not above 1 by 2**-10 to 2**20",
                remedy="pass 2 for the Cauchy law, or more for a thinner tail",
            )
        object.__setattr__(self, "gamma", power)

    def known_below(self, z: Fraction) -> Fraction | None:
        return IdealCauchy().known_below(z) if self.gamma == 2 else Ideal.known_below(self, z)

    def density(self, z: arb_series) -> arb_series:
        power = self.gamma
        if power.denominator == 1 and power <= 16:
            grown = (z if power % 2 == 0 else _magnitude(z)) ** int(power)
        else:
            size = _magnitude(z)
            if not size[0] > 0:
                raise Undecidable("a power of 0 has no power series; move away from 0")
            grown = (size.log() * arb_of(power)).exp()
        return self._height() / (1 + grown)

    def near_below(self, probability: arb) -> arb:
        height, power = self._height(), arb_of(self.gamma - 1)
        return _heavy(self, probability, power, height, height / power)

    def _tail(self, z: arb) -> arb:
        power = z ** arb_of(self.gamma)
        inner, outer = arb_of(1 / self.gamma), arb_of(1 - 1 / self.gamma)
        if z > 1:
            return (1 / (1 + power)).beta_lower(outer, inner, regularized=True) / 2
        return (1 - (power / (1 + power)).beta_lower(inner, outer, regularized=True)) / 2

    def _height(self) -> arb:
        return arb_of(self.gamma) * arb_of(1 / self.gamma).sin_pi() / (2 * arb.pi())


@dataclass(frozen=True, slots=True, init=False)
class StudentT(_FromTail):
    """Student's t; one degree of freedom is the Cauchy law.

    Law      density c (1 + z**2/n)**(-(n+1)/2), n = degrees,
             c = gamma((n+1)/2) / (sqrt(n pi) gamma(n/2))
    Theorem  P[abs(Z) > z] = I_x(n/2, 1/2), x = n/(n + z**2), I the regularised incomplete beta
             function, and = 1 - I_(1-x)(1/2, n/2), used where z <= 1 and z**2 <= n. For an even n
             P[abs(Z) <= z] = t sum of binomial(2k, k) ((1 - t**2)/4)**k over k < n/2,
             t = z/sqrt(n + z**2): rational if t is
    Differs  degrees is any rational from 2**-10 to 2**20
    Checked  tests/laws/test_ideal.py

    >>> StudentT(3).quantile("3/4")
    Ball(0.76489232840434528066 ± 2.46e-21)
    """

    degrees: Fraction

    def __init__(self, degrees: Number) -> None:
        number = positive(degrees, "degrees")
        if not _LEAST_POWER <= number <= _GREATEST_POWER:
            raise InvalidParameter(
                "degrees",
                problem="is not from 2**-10 to 2**20",
                remedy="pass 1 for the Cauchy law; beyond 2**20 use the Gaussian law",
            )
        object.__setattr__(self, "degrees", number)

    def known_below(self, z: Fraction) -> Fraction | None:
        if self.degrees == 1:
            return IdealCauchy().known_below(z)
        terms, odd = divmod(self.degrees, 2)
        root, above = root_bounds(self.degrees + z * z)
        if odd or terms > _MOST_TERMS or root != above:
            return Ideal.known_below(self, z)
        t = z / root
        rest = (1 - t * t) / 4
        return (1 + t * sum(comb(2 * k, k) * rest**k for k in range(terms))) / 2

    def density(self, z: arb_series) -> arb_series:
        degrees = arb_of(self.degrees)
        return self._height() * (-(1 + z * z / degrees).log() * ((degrees + 1) / 2)).exp()

    def near_below(self, probability: arb) -> arb:
        degrees, height = arb_of(self.degrees), self._height()
        fall = height * degrees ** ((degrees - 1) / 2)
        return _heavy(self, probability, degrees, height, fall)

    def _tail(self, z: arb) -> arb:
        degrees, half = arb_of(self.degrees), arb(1) / 2
        square = z * z
        if z > 1 or square > degrees:
            x = degrees / (degrees + square)
            return x.beta_lower(degrees / 2, half, regularized=True) / 2
        x = square / (degrees + square)
        return (1 - x.beta_lower(half, degrees / 2, regularized=True)) / 2

    def _height(self) -> arb:
        degrees = arb_of(self.degrees)
        ratio = ((degrees + 1) / 2).lgamma() - (degrees / 2).lgamma()
        return ratio.exp() / (degrees * arb.pi()).sqrt()


def _magnitude(z: arb_series) -> arb_series:
    """abs(z) of a power series, whose sign must be certain."""
    if z[0] <= 0:
        return -z
    if z[0] >= 0:
        return z
    raise Undecidable("the sign of a power series; compute it with more precision")


def _heavy(law: Ideal, probability: arb, power: arb, height: arb, fall: arb) -> arb:
    """A number near the lower quantile of a law with P[Z <= z] ~ fall abs(z)**-power.

    Newton's method for P[Z <= z]**(-1/power), which is nearly linear in the tail, kept between
    the numbers that have proved too small and too large.
    """
    target = arb(probability.mid())
    if not target < arb(1) / 2:
        return arb(0)
    outer = -((fall / target) ** (1 / power))
    inner = (target - arb(1) / 2) / height
    start = outer if outer < -1 and power < 8 else inner
    z, least, greatest = arb(start.mid()), None, arb(0)
    for _ in range(_MOST_STEPS):
        here = arb(law.below(z).mid())
        if here < target:
            least = z
        else:
            greatest = z
        slope = law.density(arb_series([z], 1))[0]
        # 1 - (F(z)/p)**(-1/power), over the derivative of the second term
        step = power * here * (1 - (here / target) ** (1 / power)) / slope
        moved = arb((z + step).mid()) if step.is_finite() else arb.nan()
        if not (moved < greatest and (least is None or moved > least)):
            moved = 2 * z if least is None else (least + greatest) / 2
        # an error e leaves about e**2 after the step
        if abs(moved - z) <= abs(z) * arb(2) ** (-ctx.prec // 2):
            return moved
        z = arb(moved.mid())
    return z
