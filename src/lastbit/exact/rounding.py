"""The two doors from exact numbers to floats: up and down."""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb

from lastbit.errors import InvalidParameter
from lastbit.exact.ball import Ball
from lastbit.exact.rational import rational

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
    return _up(_end(number)) + 0.0


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


def _end(number: object) -> Fraction:
    """The number itself, or the upper end of a ball."""
    if not isinstance(number, Ball | arb):
        return rational(number)
    ball = _arb(number)
    if not ball.is_finite():
        raise InvalidParameter(
            "ball", problem="is not finite", remedy="check the expression for overflow or 0/0"
        )
    return _sum(_parts(ball.mid()), _parts(ball.rad()))


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
