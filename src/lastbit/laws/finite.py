"""Laws on finitely many values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from flint import arb

from lastbit.errors import InvalidParameter
from lastbit.exact import Number, arb_of, probability, rational, whole
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
