"""Numbers as text, for people: exactly, or rounded to the side that is safe to say.

The one place where lastbit turns a number into digits; what a certificate or a record holds is
exact and written elsewhere (`str` of a `Fraction`). Which side is safe depends on what the number
means, so the caller says it: a price or an error is rounded up, a certified lower bound down.
"""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

from lastbit.exact.ball import Ball
from lastbit.exact.rational import shown

_LONGEST = 24
_LARGEST = 10**1000


def exact_text(number: Fraction | float, longest: int = _LONGEST) -> str:
    """A number as a person would write it; a long one by its first digits and a sign of it.

    >>> exact_text(Fraction(1, 10)), exact_text(Fraction(1, 10**9)), exact_text(math.inf)
    ('0.1', '1e-9', '∞')
    >>> exact_text(Fraction(10**40 + 1, 3 * 10**40))
    '0.333333...'
    """
    if isinstance(number, float):
        return _infinite(number) if math.isinf(number) else repr(number)
    if max(abs(number.numerator), number.denominator) < _LARGEST:
        text = re.sub(r"e([+-])0", r"e\1", shown(number).strip("'"))
        if len(text) <= longest:
            return text
    return f"{_decimal(number, 6, ROUND_FLOOR)}..."


def rounded_up(number: Fraction | float, digits: int = 6) -> str:
    """A number in decimal, not below the truth.

    >>> rounded_up(Fraction(1, 3), 4), rounded_up(Fraction(1, 8)), rounded_up(Fraction(10**7))
    ('0.3334', '0.125', '10000000')
    """
    return _rounded(number, digits, ROUND_CEILING)


def rounded_down(number: Fraction | float, digits: int = 6) -> str:
    """A number in decimal, not above the truth.

    >>> rounded_down(Fraction(2, 3), 4)
    '0.6666'
    """
    return _rounded(number, digits, ROUND_FLOOR)


def rounded_near(number: Fraction | float, digits: int = 6) -> str:
    """A number in decimal, to the nearest: for sizes that promise nothing.

    >>> rounded_near(Fraction(2, 3), 4)
    '0.6667'
    """
    return _rounded(number, digits, ROUND_HALF_EVEN)


def between(low: Fraction, high: Fraction, digits: int = 8) -> str:
    """A number known to lie between two rationals, in decimal, with all its digits certain.

    >>> between(Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**30), 6)
    '0.333333'
    >>> between(Fraction(1, 3), Fraction(2, 5), 6)
    '0.3 to 0.4'
    """
    for count in range(digits, 0, -1):
        below, above = (_divided(end, count, ROUND_HALF_EVEN) for end in (low, high))
        if below == above:
            return str(below)
    return f"{rounded_down(low, 1)} to {rounded_up(high, 1)}"


def certain(ball: Ball, digits: int = 8) -> str:
    """A number known to lie in a ball, with all its digits certain; absurd sizes by their bound.

    >>> certain(Ball.of("1/3")), certain((Ball.of(-10**6)).exp())
    ('0.33333333', 'below 1e-300')
    >>> certain(1 - Ball.of("1e-9"))
    '1 - 1e-9'
    """
    low, high = ball.ends
    if low >= 0 and high < Fraction("1e-300"):
        return "0" if high == 0 else "below 1e-300"
    if low > 10**300:
        return "above 1e300"
    text = between(low, high, digits)
    short = text if " to " in text else tidy(Decimal(text))
    if short != "1" or low == high:
        return short
    rest, sign = (ball - 1, "+") if low > 1 else (1 - ball, "-")
    return f"1 {sign} {certain(rest, 3)}" if rest.ends[0] > 0 else "1"


def tidy(number: Decimal) -> str:
    """A decimal without zeros that say nothing; a small one with an exponent.

    >>> tidy(Decimal("0.1250")), tidy(Decimal("0.0000120")), tidy(Decimal("1E+20"))
    ('0.125', '1.2e-5', '1e+20')
    """
    if number == 0:
        return "0"
    short = number.normalize(Context(prec=len(number.as_tuple().digits)))
    return f"{short:f}" if -4 <= short.adjusted() < 15 else f"{short:e}"


def _rounded(number: Fraction | float, digits: int, rounding: str) -> str:
    if isinstance(number, float):
        if math.isinf(number):
            return _infinite(number)
        number = Fraction(number)
    if number.denominator == 1 and abs(number) < 10**15:
        return str(number.numerator)
    return _decimal(number, digits, rounding)


def _infinite(number: float) -> str:
    return "∞" if number > 0 else "-∞"


def _decimal(number: Fraction, digits: int, rounding: str) -> str:
    return tidy(_divided(number, digits, rounding))


def _divided(number: Fraction, digits: int, rounding: str) -> Decimal:
    # the two integers are exact: a context rounds results, not what is built
    context = Context(prec=digits, rounding=rounding)
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))
