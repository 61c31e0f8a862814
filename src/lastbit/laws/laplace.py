"""The geometric law and the discrete Laplace law."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from lastbit.exact import Number, arb_of, positive
from lastbit.laws.law import Law


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

    @property
    def support(self) -> tuple[None, None]:
        return None, None
