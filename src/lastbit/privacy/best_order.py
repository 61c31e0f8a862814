"""The order of a moment filter that suits a budget; every other gives a sound filter too."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from lastbit.privacy.filter import EXTREME

_DIGITS = 3


@lru_cache(maxsize=64)
def best_order(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The order at which the most small answers fit, as a decimal of 3 digits.

    Theorem  the moment of a small epsilon is about c(c+1) epsilon**2/2, so the number of answers
             grows with f(c)/(c(c+1)), f the limit B. The sign of its derivative is that of
             h = f' c(c+1) - f (2c+1), and h' = -1 - 2f. Where f <= 0, h > 0; from there on f > 0
             and h falls: h has one root, and it is the maximum. Any order gives a sound filter
    Differs  by bisection in Decimals, whose logarithms are rounded correctly: the same order on
             every machine
    """
    with localcontext(Context(prec=40)):
        loss, level = _decimal(epsilon), _decimal(delta).ln()

        def rises(c: Decimal) -> bool:
            log_k = c * c.ln() - (1 + c) * (1 + c).ln()
            limit = c * loss + level - log_k
            return (loss + (1 + 1 / c).ln()) * c * (c + 1) > limit * (2 * c + 1)

        low, high = Decimal(10) ** -15, Decimal(10) ** 15
        for _ in range(32):  # in the logarithm: a ratio of 10**30 becomes less than 1 + 10**-7
            middle = (low * high).sqrt()
            low, high = (middle, high) if rises(middle) else (low, middle)
        short = Context(prec=_DIGITS, rounding=ROUND_HALF_EVEN).plus(high)
    return min(max(Fraction(short), 1 / EXTREME), EXTREME)


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)
