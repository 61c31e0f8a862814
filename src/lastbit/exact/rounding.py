"""From exact numbers to floats and to text: exactly, or rounded to the side that is safe.

What a certificate or a record holds is exact and written elsewhere (`str` of a `Fraction`). Which
side is safe depends on what the number means, so the caller says it: a price or an error is rounded
up, a certified lower bound down.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Literal

from flint import arb

from lastbit.errors import InvalidParameter
from lastbit.exact.ball import Ball
from lastbit.exact.rational import rational
from lastbit.exact.written import shown

_LARGEST = Fraction(math.ldexp(1 - 2.0**-53, 1024))
_FAR = 5000


def upper(number: object) -> float:
    """The least float that is not below an exact number, or not below anything in a ball.

    Law      upper(x) = min{y a float or inf : y >= x}; zero is always +0.0
    Theorem  no float lies in [x, upper(x)); for a ball, x is its upper end
    Source   IEEE 754-2019, roundTowardPositive
    Differs  -0.0 becomes +0.0, so that a bound never changes the sign of a quotient
    Checked  tests/exact/test_rounding.py

    >>> from fractions import Fraction
    >>> upper(Fraction(1, 10)), lower(Fraction(1, 10))
    (0.1, 0.09999999999999999)
    >>> upper(10**400), lower(10**400)
    (inf, 1.7976931348623157e+308)
    """
    if not isinstance(number, Ball | arb):
        return _up(rational(number)) + 0.0
    ball = _arb(number)
    if not ball.is_finite():
        raise InvalidParameter(
            "ball", problem="is not finite", remedy="check the expression for overflow or 0/0"
        )
    return _up(_sum(_parts(ball.mid()), _parts(ball.rad()))) + 0.0


def lower(number: object) -> float:
    """The greatest float that is not above an exact number, or not above anything in a ball.

    Law      lower(x) = max{y a float or -inf : y <= x} = -upper(-x); zero is always +0.0
    Checked  tests/exact/test_rounding.py

    >>> lower("1/3") < upper("1/3")
    True
    """
    if isinstance(number, Ball | arb):
        return 0.0 - upper(_arb(number).neg(exact=True))
    return 0.0 - _up(-rational(number))


def nearest(number: Fraction) -> float:
    """The float nearest to a rational, or an infinity beyond all floats: where nothing rests on it.

    >>> nearest(Fraction(1, 3)), nearest(Fraction(-(10**400)))
    (0.3333333333333333, -inf)
    """
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _arb(number: Ball | arb) -> arb:
    return number.enclosure if isinstance(number, Ball) else number


def _parts(dyadic: arb) -> tuple[int, int]:
    mantissa, exponent = dyadic.man_exp()
    return int(mantissa), int(exponent)


def _sum(middle: tuple[int, int], radius: tuple[int, int]) -> Fraction:
    """Midpoint plus radius, each a mantissa and an exponent of two.

    Exact, except that exponents may be absurd (exp(-10**30) has 10**30 zeros after the point): a
    part whose first bit lies 5000 places below the last bit of the other counts as a crumb above
    it, and a sum outside 2**-5000 ... 2**5000 as that bound: either way the same float is the
    least one not below.
    """
    (m, a), (r, b) = middle, radius
    if not m or not r:
        total, exponent = (m, a) if m else (r, b)
    else:
        if b + r.bit_length() < a - _FAR:
            r, b = 1, a - _FAR
        if a + m.bit_length() < b - _FAR:
            m, a = (1 if m > 0 else 0), b - _FAR
        exponent = min(a, b)
        total = (m << (a - exponent)) + (r << (b - exponent))
    size = exponent + total.bit_length()
    if total and abs(size) > _FAR:
        total, exponent = (1 if total > 0 else -1), (_FAR if size > 0 else -_FAR)
    return total * Fraction(2) ** exponent if total else Fraction(0)


def _up(exact: Fraction) -> float:
    """Least float not below a rational, by correctly rounded division and one exact look."""
    if exact > _LARGEST:
        return math.inf
    if exact < -_LARGEST:
        return float(-_LARGEST)
    nearest = exact.numerator / exact.denominator
    if Fraction(nearest) < exact:
        nearest = math.nextafter(nearest, math.inf)
    return nearest


_LONGEST = 24
_MOST = 10**1000
_HUGE = 10**15
_SIDES: Mapping[str, tuple[Callable[[Fraction], int], str]] = MappingProxyType(
    {
        "up": (math.ceil, ROUND_CEILING),
        "down": (math.floor, ROUND_FLOOR),
        "near": (round, ROUND_HALF_EVEN),
    }
)


def exact_text(number: Fraction | float, longest: int = _LONGEST) -> str:
    """A number as a person would write it; a long one by its first digits and a sign of it.

    >>> exact_text(Fraction(1, 10)), exact_text(Fraction(1, 10**9)), exact_text(math.inf)
    ('0.1', '1e-9', '∞')
    >>> exact_text(Fraction(10**40 + 1, 3 * 10**40))
    '0.333333...'
    """
    if isinstance(number, float):
        return _rounded(number, longest, ROUND_FLOOR) if math.isinf(number) else repr(number)
    if max(abs(number.numerator), number.denominator) < _MOST:
        text = re.sub(r"e([+-])0", r"e\1", shown(number).strip("'"))
        if len(text) <= longest:
            return text
    return f"{tidy(_divided(number, 6, ROUND_FLOOR))}..."


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


def fixed(
    number: Fraction, places: int, side: Literal["up", "down", "near"], *, huge: int = 6
) -> str:
    """A number with this many decimals, and commas; from 10**15 on by its first `huge` digits.

    >>> fixed(Fraction(12345, 8), 2, "up"), fixed(Fraction(12345, 8), 2, "down")
    ('1,543.13', '1,543.12')
    >>> fixed(Fraction(-1, 8), 0, "near"), fixed(Fraction(10**20 + 1), 0, "up")
    ('0', '1.00001e+20')
    """
    whole, rounding = _SIDES[side]
    if abs(number) >= _HUGE:
        return f"{_divided(number, huge, rounding):e}"
    return f"{Decimal(whole(number * 10**places)).scaleb(-places):,.{places}f}"


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
            return "∞" if number > 0 else "-∞"
        number = Fraction(number)
    if number.denominator == 1 and abs(number) < _HUGE:
        return str(number.numerator)
    return tidy(_divided(number, digits, rounding))


def _divided(number: Fraction, digits: int, rounding: str) -> Decimal:
    # the two integers are exact: a context rounds results, not what is built
    context = Context(prec=digits, rounding=rounding)
    return context.divide(Decimal(number.numerator), Decimal(number.denominator))
