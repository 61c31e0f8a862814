"""From one unit to a group of units."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import assert_never

from lastbit.errors import IncompatibleGuarantees
from lastbit.exact import arb_of, upper, working_precision
from lastbit.privacy.guarantees import (
    ZCDP,
    ApproxDP,
    Guarantee,
    MetricDP,
    ProbabilisticDP,
    PureDP,
    RenyiDP,
    times,
)


def grouped(guarantee: Guarantee, size: int) -> Guarantee:
    """What one unit's guarantee promises to `size` units together.

    Law      pure: k epsilon. Approximate: (k epsilon, delta (e**(k epsilon) - 1)/(e**epsilon - 1)).
             Concentrated: k**2 rho. Metric: k epsilon, for k units that move by d each
    Theorem  go from x to y in k steps, one unit each, and apply the guarantee to every step
    Source   paper 003 Propositions 1 and 6, equation (28); Bun, Steinke 2016 Proposition 27
    Differs  probabilistic becomes approximate: the bad sets of the steps belong to different laws,
             and only the approximate inequality chains. Renyi of one order has no group rule here
    Checked  tests/privacy/test_group.py

    >>> grouped(PureDP("1/2"), 3)
    PureDP(epsilon='1.5')
    """
    match guarantee:
        case PureDP():
            return PureDP(times(Fraction(size), guarantee.epsilon), neighbours=guarantee.neighbours)
        case ApproxDP():
            return _approximate(guarantee, size)
        case ProbabilisticDP():
            return _approximate(guarantee.post_processed(), size)
        case ZCDP():
            return ZCDP(
                times(Fraction(size * size), guarantee.rho), neighbours=guarantee.neighbours
            )
        case MetricDP():
            return MetricDP(
                times(Fraction(size), guarantee.epsilon),
                guarantee.per,
                guarantee.unit,
                slack=guarantee.slack,
                neighbours=guarantee.neighbours,
            )
        case RenyiDP():
            raise IncompatibleGuarantees(
                "a Renyi guarantee of one order has no group rule; start from ZCDP or PureDP"
            )
        case _:
            assert_never(guarantee)


def _approximate(guarantee: ApproxDP, size: int) -> ApproxDP:
    epsilon, delta = guarantee.epsilon, guarantee.delta
    total = times(Fraction(size), epsilon)
    if size == 1 or delta == 0:
        return ApproxDP(total, delta, neighbours=guarantee.neighbours)
    if epsilon == 0:
        grown = size * delta
    elif isinstance(epsilon, float) or epsilon * size > 1000:
        grown = Fraction(1)  # exp(1000) delta: nothing is left, and the ball could be huge
    else:
        grown = _grown(delta, epsilon, size)
    return ApproxDP(total, min(grown, Fraction(1)), neighbours=guarantee.neighbours)


def _grown(delta: Fraction, epsilon: Fraction, size: int) -> Fraction:
    with working_precision(128):
        one, many = arb_of(epsilon).expm1(), arb_of(epsilon * size).expm1()
        bound = upper(arb_of(delta) * many / one)
    return Fraction(bound) if bound < math.inf else Fraction(1)
