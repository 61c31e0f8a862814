"""Laws on the integers: on finitely many values, or with exponential weights on all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from flint import arb, ctx

from lastbit.errors import InvalidParameter
from lastbit.exact import Number, arb_of, positive, probability, rational, whole
from lastbit.laws.law import Law


class _Rational(Law):
    """A law whose cumulative function is rational: everything follows from that."""

    __slots__ = ()

    def exact_cumulative(self, value: int) -> Fraction:
        raise NotImplementedError

    def mass(self, value: int) -> arb:
        return arb_of(self.exact_cumulative(value) - self.exact_cumulative(value - 1))

    def cumulative(self, value: int) -> arb:
        return arb_of(self.exact_cumulative(value))


@dataclass(frozen=True, slots=True, init=False)
class Uniform(_Rational):
    """The uniform law on 0 ... n-1.

    >>> Uniform(4).probability(3)
    Ball(0.25)
    """

    n: int

    def __init__(self, n: int) -> None:
        object.__setattr__(self, "n", whole(n, "n", least=1))

    def exact_cumulative(self, value: int) -> Fraction:
        return Fraction(min(max(value + 1, 0), self.n), self.n)

    @property
    def support(self) -> tuple[int, int]:
        return 0, self.n - 1


@dataclass(frozen=True, slots=True, init=False)
class Bernoulli(_Rational):
    """One with probability p, else zero.

    >>> Bernoulli("1/4").quantile("0.8")
    1
    """

    p: Fraction

    def __init__(self, p: Number) -> None:
        object.__setattr__(self, "p", probability(p, "p"))

    def exact_cumulative(self, value: int) -> Fraction:
        return Fraction(0) if value < 0 else (1 - self.p if value < 1 else Fraction(1))

    @property
    def support(self) -> tuple[int, int]:
        return 0, 1


@dataclass(frozen=True, slots=True, init=False)
class Weighted(_Rational):
    """k with probability weights[k] / sum(weights), for rational weights.

    >>> Weighted([1, 2, "1/2"]).exact_cumulative(1)
    Fraction(6, 7)
    """

    sums: tuple[Fraction, ...]

    def __init__(self, weights: Sequence[Number]) -> None:
        exact = [rational(weight, f"weights[{i}]") for i, weight in enumerate(weights)]
        for i, weight in enumerate(exact):
            if weight < 0:
                raise InvalidParameter(
                    f"weights[{i}]", problem="is negative", remedy="pass weights from 0 up"
                )
        if not any(exact):
            raise InvalidParameter(
                "weights", problem="are empty or all zero", remedy="pass at least one above 0"
            )
        object.__setattr__(self, "sums", tuple(accumulate(exact)))

    def exact_cumulative(self, value: int) -> Fraction:
        if value < 0:
            return Fraction(0)
        return self.sums[min(value, len(self.sums) - 1)] / self.sums[-1]

    @property
    def support(self) -> tuple[int, int]:
        return 0, len(self.sums) - 1


@dataclass(frozen=True, slots=True, init=False)
class ExpWeighted(Law):
    """k with probability proportional to exp(exponents[k]): the exponential mechanism's law.

    Law      P[X = k] = exp(exponents[k]) / sum(exp(e) for e in exponents)
    Theorem  P[X <= k] is rational only if every distinct exponent has the same share of its
             occurrences among the first k+1 (the exponentials of distinct rationals are linearly
             independent over the rationals: Lindemann-Weierstrass), so equality is decidable
    Source   McSherry, Talwar 2007
    Checked  tests/laws/test_laws.py

    >>> ExpWeighted([0, 0]).quantile("1/2"), ExpWeighted([0, 1]).probability(1)
    (0, Ball(0.73105857863000487925 ± 1.16e-21))
    """

    exponents: tuple[Fraction, ...]

    def __init__(self, exponents: Sequence[Number]) -> None:
        exact = tuple(rational(e, f"exponents[{i}]") for i, e in enumerate(exponents))
        if not exact:
            raise InvalidParameter("exponents", problem="are empty", remedy="pass at least one")
        object.__setattr__(self, "exponents", exact)

    def mass(self, value: int) -> arb:
        if not 0 <= value < len(self.exponents):
            return arb(0)
        return self._sum(self.exponents[value : value + 1]) / self._sum(self.exponents)

    def cumulative(self, value: int) -> arb:
        if value < 0:
            return arb(0)
        return self._sum(self.exponents[: value + 1]) / self._sum(self.exponents)

    def exact_cumulative(self, value: int) -> Fraction | None:
        if value < 0:
            return Fraction(0)
        shares = {
            exponent: [0, 0] for exponent in self.exponents
        }  # of each: how often among the first, how often in all
        for position, exponent in enumerate(self.exponents):
            shares[exponent][0] += position <= value
            shares[exponent][1] += 1
        ratios = {Fraction(first, total) for first, total in shares.values()}
        return ratios.pop() if len(ratios) == 1 else None

    @property
    def support(self) -> tuple[int, int]:
        return 0, len(self.exponents) - 1

    def _sum(self, exponents: Sequence[Fraction]) -> arb:
        greatest = max(self.exponents)
        return sum((arb_of(e - greatest).exp() for e in exponents), arb(0))


@dataclass(frozen=True, slots=True, init=False)
class Geometric(Law):
    """The geometric law on 0, 1, 2, ...

    Law      P[X = k] = (1-q) * q**k, q = exp(-1/scale)
    Theorem  P[X <= k] = 1 - q**(k+1), here without cancellation as -expm1(-(k+1)/scale)
    Source   CKS20 (Canonne, Kamath, Steinke 2020), section 5
    Differs  the parameter is the scale, an exact rational
    Checked  tests/laws/test_laws.py

    >>> Geometric(1).probability(0)
    Ball(0.63212055882855767840 ± 4.48e-21)
    """

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", positive(scale, "scale"))

    def mass(self, value: int) -> arb:
        if value < 0:
            return arb(0)
        return -(-arb_of(1 / self.scale)).expm1() * (-arb_of(value / self.scale)).exp()

    def cumulative(self, value: int) -> arb:
        if value < 0:
            return arb(0)
        return -(-arb_of((value + 1) / self.scale)).expm1()

    @property
    def support(self) -> tuple[int, None]:
        return 0, None


@dataclass(frozen=True, slots=True, init=False)
class DiscreteLaplace(Law):
    """The discrete Laplace law, also called two-sided geometric.

    Law      P[X = k] = (1-q)/(1+q) * q**abs(k), q = exp(-1/scale)
    Theorem  P[X <= k] = q**-k / (1+q) for k < 0, else 1 - q**(k+1) / (1+q)
    Source   CKS20, Definition 2; Ghosh, Roughgarden, Sundararajan 2009
    Differs  scale is an exact rational; the support is unbounded
    Checked  tests/laws/test_laws.py

    >>> law = DiscreteLaplace(1)
    >>> law.probability(0), law.quantile("0.975")
    (Ball(0.46211715726000975850 ± 2.32e-21), 3)
    """

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        object.__setattr__(self, "scale", positive(scale, "scale"))

    def mass(self, value: int) -> arb:
        return arb_of(1 / (2 * self.scale)).tanh() * (-arb_of(abs(value) / self.scale)).exp()

    def cumulative(self, value: int) -> arb:
        ratio = (-arb_of(1 / self.scale)).exp()
        if value < 0:
            return (arb_of(value / self.scale)).exp() / (1 + ratio)
        return 1 - (-arb_of((value + 1) / self.scale)).exp() / (1 + ratio)


# From this variance up tails are summed by Euler-Maclaurin, below it term by term.
_MANY_TERMS = 256


@dataclass(frozen=True, slots=True, init=False)
class DiscreteGaussian(Law):
    """The discrete Gaussian law, centred at 0.

    Law      P[X = k] = exp(-k**2 / (2 variance)) / theta(variance)
    Theorem  theta(v), the sum of exp(-k**2 / (2 v)) over the integers, equals by Poisson summation
             sqrt(2 pi v) * (sum of exp(-2 pi**2 v k**2)): whichever converges fast is used
    Source   CKS20, Definition 1
    Differs  the variance is that of the formula, an exact rational, not the variance of X
    Checked  tests/laws/test_laws.py

    >>> DiscreteGaussian(1).probability(0)
    Ball(0.39894227826686170558 ± 1.69e-21)
    >>> DiscreteGaussian(10**24).quantile("0.975")
    1959963984540
    """

    variance: Fraction

    def __init__(self, variance: Number) -> None:
        object.__setattr__(self, "variance", positive(variance, "variance"))

    def mass(self, value: int) -> arb:
        return _weight(value, self.variance) / theta(self.variance)

    def cumulative(self, value: int) -> arb:
        if value < 0:
            return tail_weight(-value, self.variance) / theta(self.variance)
        return 1 - tail_weight(value + 1, self.variance) / theta(self.variance)


def theta(variance: Fraction) -> arb:
    """The sum of exp(-k**2 / (2 variance)) over all integers k, at the working precision."""
    if variance >= 1:
        rate = 2 * arb.pi() ** 2 * arb_of(variance)
        factor = (2 * arb.pi() * arb_of(variance)).sqrt()
    else:
        rate = arb_of(1 / (2 * variance))
        factor = arb(1)
    total, k = arb(1), 1
    while True:
        term = (-rate * k * k).exp()
        if term < arb(2) ** -(ctx.prec + 8):
            # the rest, sum over j >= k of x**(j*j), is at most x**(k*k) / (1 - x); x <= 0.61
            rest = 2 * term / (1 - (-rate).exp())
            return factor * (total + from_zero_to(rest))
        total += 2 * term
        k += 1


def _weight(value: int, variance: Fraction) -> arb:
    return (-arb_of(value * value / (2 * variance))).exp()


def tail_weight(start: int, variance: Fraction) -> arb:
    """The sum of exp(-k**2 / (2 variance)) over k >= start, at the working precision."""
    if start <= 0:
        return theta(variance) - tail_weight(1 - start, variance)
    if variance < _MANY_TERMS:
        return _tail_by_terms(start, variance)
    return _tail_by_euler_maclaurin(start, variance)


def _tail_by_terms(start: int, variance: Fraction) -> arb:
    """Term by term: the ratios of successive terms shrink, so a geometric sum bounds the rest."""
    step = 1 / (2 * variance)
    term = _weight(start, variance)
    ratio = (-arb_of((2 * start + 1) * step)).exp()
    shrink = (-arb_of(2 * step)).exp()
    small = term * arb(2) ** -(ctx.prec + 8)
    total = arb(0)
    rest = term / (1 - ratio)
    # a rest that is known in size only will not be known better term by term
    while not rest < small and rest.rel_accuracy_bits() > 1:
        total += term
        term *= ratio
        ratio *= shrink
        rest = term / (1 - ratio)
    return total + from_zero_to(rest)


def _tail_by_euler_maclaurin(start: int, variance: Fraction) -> arb:
    """The integral, half the first term, p corrections, and a bound on what is left.

    With y = start/sigma, He_n the probabilists' Hermite polynomials and f the weight,
    f^(n)(start) = (-1)**n sigma**-n He_n(y) f(start). The remainder after p corrections is at most
    2 zeta(2p) (2 pi)**-2p times the integral of abs(f^(2p)), which by Cauchy-Schwarz and the
    orthogonality of the He_n is at most sigma**(1-2p) sqrt(2 pi (2p)!).
    """
    sigma = arb_of(variance).sqrt()
    y = start / sigma
    first = _weight(start, variance)
    total = sigma * (arb.pi() / 2).sqrt() * (y / arb(2).sqrt()).erfc() + first / 2
    small = arb(2) ** -(ctx.prec + 8)
    hermite_before, hermite = arb(1), y  # He_0, He_1
    scale = 1 / sigma  # sigma**-n for the derivative of order n = 2p - 1
    bound = 4 * (2 * arb.pi()).sqrt() * sigma
    p = 1
    while True:
        order = 2 * p - 1
        # - B_2p/(2p)! f^(2p-1)(start), and the derivative itself has the sign -1
        total += arb.bernoulli(2 * p) / arb.fac_ui(2 * p) * scale * hermite * first
        bound *= ((2 * p) * arb(2 * p - 1)).sqrt() / (2 * arb.pi() * sigma) ** 2
        if bound < small or order > 10 * variance:
            return total + bound.union(-bound)
        for n in (order, order + 1):
            hermite_before, hermite = hermite, y * hermite - n * hermite_before
        scale /= sigma * sigma
        p += 1


def from_zero_to(bound: arb) -> arb:
    """A ball that holds everything from 0 to a bound."""
    return bound.nonnegative_part().union(arb(0))
