"""From rho of concentrated privacy to epsilon and delta, with the order that proves it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from lastbit.exact import arb_of, upper, working_precision
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
