"""From what Gaussian noise costs to epsilon and delta: by mu, or by rho and an order.

Theorem  (pairs) a release whose noise is discrete Gaussian throughout is mu-GDP for mu**2 = the sum
         of D x over its parts: D is the squared L2 norm by which the part's integers move, v its
         variance, and 0 < x <= 12 any number with x (1 - x/12) >= 1/v
Proof    `privacy/gaussian_pair.py` for each part; the parts, each whatever was released
         before, add up by their squares (Dong, Roth, Su 2022, Corollary 3.3). Where keys are found,
         that is so given the event of `selection.py`, whose delta is added
Theorem  mu-GDP implies (epsilon, delta) with delta = Q(a) - exp(epsilon) Q(b), Q the upper tail of
         N(0, 1), a = epsilon/mu - mu/2, b = epsilon/mu + mu/2 (Balle, Wang 2018; DRS22 Cor. 2.13).
         As a**2/2 + epsilon = b**2/2, that is q(a) (R(a) - R(b)), q the density, R = Q/q
Differs  mu is rational and delta evaluated, rounded up, at that mu. Exponential draws have no such
         mu: with them, and where a < 1, rho adds up instead (at one (epsilon, delta) noise has
         about an eighth more variance)
Checked  tests/tables/test_plan.py, tests/verify/test_check_release.py
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from flint import arb

from lastbit.exact import arb_of, floor_log2, upper, working_precision
from lastbit.privacy import ZCDP, best_order_for_epsilon, delta_upper, least_noise


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A rho that implies (epsilon, delta), with the order that proves it.

    Theorem  rho-zCDP bounds the divergence of order a by a rho, which implies delta =
             exp((a-1)(a rho - epsilon))/(a-1) (1-1/a)**a, for every a > 1 (CKS20 Prop. 12)
    """

    rho: Fraction
    epsilon: Fraction
    delta: Fraction
    order: Fraction

    def to_json(self) -> dict[str, str]:
        """Fractions as text."""
        names = ("rho", "epsilon", "delta", "order")
        return {name: str(getattr(self, name)) for name in names}


def order_delta(rho: Fraction, epsilon: Fraction, order: Fraction) -> Fraction:
    """The delta that the divergence of this order proves, rounded up."""
    with working_precision(160):
        logarithm = arb_of((order - 1) * (order * rho - epsilon))
        logarithm -= arb_of(order) * (1 / arb_of(order - 1)).log1p()
        return Fraction(upper(logarithm.exp() / arb_of(order - 1)))


def conversion_to(epsilon: Fraction, delta: Fraction) -> Conversion:
    """Nearly the greatest rho that implies (epsilon, delta); that it does was evaluated.

    >>> found = conversion_to(Fraction(1), Fraction(1, 10**6))
    >>> float(found.rho), order_delta(found.rho, found.epsilon, found.order) <= found.delta
    (0.0243..., True)
    """

    def meets(noise: Fraction) -> bool:
        return delta_upper(ZCDP(1 / (2 * noise**2)), epsilon) <= delta

    start = Fraction(max(1.0, math.log(delta.denominator) - math.log(delta.numerator))) / epsilon
    rho = 1 / (2 * least_noise(meets, start=start, bits=32) ** 2)
    while True:
        best = best_order_for_epsilon(rho, epsilon) - 1
        order = 1 + max(best.limit_denominator(1 << 20), Fraction(1, 1 << 20))
        if order_delta(rho, epsilon, order) <= delta:
            return Conversion(rho=rho, epsilon=epsilon, delta=delta, order=order)
        rho *= 1 - Fraction(1, 1 << 24)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairConversion:
    """A mu that implies (epsilon, delta): the second theorem above."""

    mu: Fraction
    epsilon: Fraction
    delta: Fraction

    @property
    def rho(self) -> Fraction:
        """That of the noise, but for its grid: mu**2/2."""
        return self.mu**2 / 2

    def to_json(self) -> dict[str, str]:
        """Fractions as text."""
        return {name: str(getattr(self, name)) for name in ("mu", "epsilon", "delta")}


def pair_delta(mu: Fraction, epsilon: Fraction) -> Fraction:
    """The delta that mu proves, rounded up.

    >>> float(pair_delta(Fraction(1, 4), Fraction(1)))
    2.92427...e-06
    """
    with working_precision(192):
        a, b = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        first, second = ((arb_of(x) / arb(2).sqrt()).erfc() / 2 for x in (a, b))
        return Fraction(upper(first - arb_of(epsilon).exp() * second))


def pair_conversion_to(epsilon: Fraction, delta: Fraction) -> PairConversion | None:
    """Nearly the greatest mu that implies (epsilon, delta); None where a would be below 1."""
    most = delta * (1 - Fraction(1, 1 << 20))  # the checker's bound is a little above the delta

    def meets(noise: Fraction) -> bool:
        return pair_delta(1 / noise, epsilon) <= most

    start = Fraction(max(1.0, math.log(delta.denominator) - math.log(delta.numerator))) / epsilon
    mu = 1 / least_noise(meets, start=start, bits=32)
    if epsilon / mu - mu / 2 < 1:
        return None
    return PairConversion(mu=mu, epsilon=epsilon, delta=delta)


def most_mu_squared(squared: int) -> Fraction:
    """From here on a larger mu needs no less noise: x (1 - x/12) falls from x = 6 on."""
    return Fraction(6 * squared)


def pair_variance(squared: int, mu_squared: Fraction) -> Fraction:
    """The least variance, to 48 binary digits, at which integers that move by this much are mu-GDP.

    >>> float(pair_variance(1, Fraction(1, 100))), float(pair_variance(1, Fraction(7)))
    (100.0834028..., 0.333333333...)
    """
    x = min(mu_squared, most_mu_squared(squared)) / squared
    least = 1 / (x * (1 - x / 12))
    unit = Fraction(2) ** (floor_log2(least) - 48)
    return -(-least // unit) * unit


AnyConversion: TypeAlias = Conversion | PairConversion


def conversion_from_json(data: Mapping[str, str]) -> AnyConversion:
    """The conversion that `to_json` wrote."""
    figures = {name: Fraction(text) for name, text in data.items()}
    return PairConversion(**figures) if "mu" in data else Conversion(**figures)
