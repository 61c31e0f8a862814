"""Number formats, what a machine can hold and how it rounds to it; intervals with exact ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from lastbit.errors import InvalidParameter, Overflow, WrongType
from lastbit.exact import arb_of, ends, floor_log2, root_above, root_below, whole, working_precision


def power_of_two(exponent: int) -> Fraction:
    """2**exponent, exactly.

    >>> power_of_two(-3)
    Fraction(1, 8)
    """
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def is_power(x: Fraction) -> bool:
    """Whether a number from 0 up is a power of two, or 0."""
    return x.numerator & (x.numerator - 1) == 0 and x.denominator & (x.denominator - 1) == 0


@dataclass(frozen=True, slots=True)
class Binary:
    """Binary floating point: signed numbers m 2**e of at most `significand` bits.

    Law      the numbers m 2**(e - significand + 1), abs(m) < 2**significand, `least_exponent` <= e
             <= `greatest`: IEEE 754's, without infinities and NaN and with one zero
    Theorem  for real x within the range, rounded(x) is nearest, ties to the even m, and
             abs(rounded(x) - x) <= ulp(x)/2, where ulp(x) = 2**(max(e, least_exponent) -
             significand + 1) for 2**e <= abs(x) < 2**(e+1). The numbers of a binade (and of the
             subnormals) are that far apart and both its ends belong to the format, so the nearest
             is at most half a step away.
    Source   IEEE 754-2019, 3.3 and 4.3.1; paper 002 has x/(1+eta) and x(1+eta), for x > 0 only
    Differs  by steps, not by a relative error: up to twice as sharp; underflow needs no own term
    Checked  tests/verify/test_formats.py

    >>> BINARY64.rounded(Fraction(1, 10)) == Fraction(0.1)
    True
    >>> BINARY16.largest, BINARY16.unit_roundoff
    (Fraction(65504, 1), Fraction(1, 2048))
    """

    significand: int
    least_exponent: int
    greatest: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "significand", whole(self.significand, "significand", least=2))
        least = whole(self.least_exponent, "least_exponent", least=-(10**5))
        object.__setattr__(self, "least_exponent", least)
        object.__setattr__(self, "greatest", whole(self.greatest, "greatest", least=least + 1))
        if self.significand > 10**4 or self.greatest > 10**5:
            remedy = "pass at most 10**4 bits, 10**5 exponents"
            raise InvalidParameter("format", problem="is too large", remedy=remedy)

    @property
    def name(self) -> str:
        parts = f"binary({self.significand}, {self.least_exponent}, {self.greatest})"
        return next((name for name, known in _NAMED if self == known), parts)

    @property
    def unit_roundoff(self) -> Fraction:
        """Half the distance from 1 to the next number: 2**-significand."""
        return power_of_two(-self.significand)

    @property
    def largest(self) -> Fraction:
        return (2 - power_of_two(1 - self.significand)) * power_of_two(self.greatest)

    @property
    def least_normal(self) -> Fraction:
        return power_of_two(self.least_exponent)

    @property
    def least(self) -> Fraction:
        """The least number above 0, and the distance between the least ones."""
        return power_of_two(self.least_exponent - self.significand + 1)

    def ulp(self, x: Fraction) -> Fraction:
        if abs(x) < self.least_normal:
            return self.least
        return power_of_two(floor_log2(x) - self.significand + 1)

    def rounded(self, x: Fraction) -> Fraction:
        """The nearest number of the format, ties to even; `Overflow` where IEEE has infinity."""
        step = self.ulp(x)
        near = round(x / step) * step
        if abs(near) > self.largest:
            raise Overflow(f"the result may overflow {self.name}")
        return near

    def holds(self, x: Fraction) -> bool:
        return abs(x) <= self.largest and (x / self.ulp(x)).denominator == 1

    def rounding_error(self, low: Fraction, high: Fraction) -> Fraction:
        """A bound on abs(rounded(x) - x) over all real x of [low, high].

        Theorem  half the step of the greatest binade that [low, high] enters beyond its least
                 number (which is itself in the format), and never more than abs(x), since 0 is in
                 the format too; exact if low = high
        """
        if low == high:
            return abs(self.rounded(low) - low)
        most = max(abs(low), abs(high))
        step = self.ulp(most)
        if most > self.least_normal and step * power_of_two(self.significand - 1) == most:
            step /= 2  # only the power of two itself has the larger step
        return min(step / 2, most)

    def json(self) -> dict[str, object]:
        return {"binary": [self.significand, self.least_exponent, self.greatest]}


@dataclass(frozen=True, slots=True)
class Fixed:
    """Fixed point: the multiples of 2**-fraction_bits below 2**integer_bits in size.

    Law      the numbers k 2**-d, abs(k) < 2**(d+i)
    Theorem  sums are exact; rounding moves a number by at most 2**-(d+1)
    Source   paper 000, Example 1.1
    Checked  tests/verify/test_formats.py

    >>> Fixed(fraction_bits=4, integer_bits=8).rounded(Fraction(1, 3))
    Fraction(5, 16)
    """

    fraction_bits: int
    integer_bits: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction_bits", whole(self.fraction_bits, "fraction_bits"))
        object.__setattr__(self, "integer_bits", whole(self.integer_bits, "integer_bits", least=1))
        if max(self.fraction_bits, self.integer_bits) > 10**4:
            remedy = "pass at most 10**4 bits"
            raise InvalidParameter("format", problem="is too large", remedy=remedy)

    @property
    def name(self) -> str:
        return f"fixed({self.fraction_bits}, {self.integer_bits})"

    @property
    def least(self) -> Fraction:
        return power_of_two(-self.fraction_bits)

    @property
    def unit_roundoff(self) -> Fraction:
        """The greatest error of one rounding, absolute here."""
        return self.least / 2

    @property
    def largest(self) -> Fraction:
        return power_of_two(self.integer_bits) - self.least

    def ulp(self, x: Fraction) -> Fraction:
        return self.least

    def rounded(self, x: Fraction) -> Fraction:
        """The nearest multiple, ties to even; `Overflow` beyond the largest."""
        near = round(x / self.least) * self.least
        if abs(near) > self.largest:
            raise Overflow(f"the result may overflow {self.name}")
        return near

    def holds(self, x: Fraction) -> bool:
        return abs(x) <= self.largest and (x / self.least).denominator == 1

    def rounding_error(self, low: Fraction, high: Fraction) -> Fraction:
        if low == high:
            return abs(self.rounded(low) - low)
        return min(self.least / 2, max(abs(low), abs(high)))

    def json(self) -> dict[str, object]:
        return {"fixed": [self.fraction_bits, self.integer_bits]}


Format: TypeAlias = Binary | Fixed

BINARY16 = Binary(11, -14, 15)
"""IEEE 754 half precision, a `Binary` of 11 bits."""
BINARY32 = Binary(24, -126, 127)
"""IEEE 754 single precision, a `Binary` of 24 bits."""
BINARY64 = Binary(53, -1022, 1023)
"""IEEE 754 double precision, a `Binary` of 53 bits: Python's float."""
EXTENDED80 = Binary(64, -16382, 16383)
"""The 80 bits of x87 processors, a `Binary` of 64 bits: C's long double there."""
BINARY128 = Binary(113, -16382, 16383)
"""IEEE 754 quadruple precision, a `Binary` of 113 bits."""
_NAMED = (
    *(("binary16", BINARY16), ("binary32", BINARY32), ("binary64", BINARY64)),
    *(("extended80", EXTENDED80), ("binary128", BINARY128)),
)


def format_from_json(written: Mapping[str, object]) -> Format:
    """The format that `json()` wrote.

    >>> format_from_json(BINARY32.json()) == BINARY32
    True
    """
    match dict(written):
        case {"binary": [int(p), int(least), int(greatest)], **rest} if not rest:
            return Binary(p, least, greatest)
        case {"fixed": [int(fraction), int(integer)], **rest} if not rest:
            return Fixed(fraction, integer)
    remedy = 'pass {"binary": [53, -1022, 1023]}'
    raise WrongType("format", problem="is not written as one", remedy=remedy)


Interval: TypeAlias = tuple[Fraction, Fraction]

RANGE_BITS = 64
ERROR_BITS = 32
_PRECISION = 160
# The independent checker must find its own, slightly wider enclosures inside ours.
_MARGIN = power_of_two(-120)
_LEAST_EXPONENT = Fraction(-1400)  # e**-1400 < 2**-2000: smaller than anything that matters


def outward(x: Interval) -> Interval:
    """An interval around one whose ends have at most 64 significant bits.

    >>> low, high = outward((Fraction(1, 3), Fraction(1, 3)))
    >>> low < Fraction(1, 3) < high
    True
    """
    return -upward(-x[0], bits=RANGE_BITS), upward(x[1], bits=RANGE_BITS)


def upward(x: Fraction, *, bits: int = ERROR_BITS) -> Fraction:
    """The least number not below x with this many significant bits."""
    if x == 0:
        return x
    step = floor_log2(x) - bits + 1
    if step >= 0:
        return Fraction(-(-x.numerator // (x.denominator << step)) << step)
    return Fraction(-((-x.numerator << -step) // x.denominator), 1 << -step)


def added(x: Interval, y: Interval) -> Interval:
    """All sums."""
    return x[0] + y[0], x[1] + y[1]


def negated(x: Interval) -> Interval:
    """All opposites."""
    return -x[1], -x[0]


def multiplied(x: Interval, y: Interval) -> Interval:
    """All products."""
    if x[0] >= 0 and y[0] >= 0:
        return x[0] * y[0], x[1] * y[1]
    products = (x[0] * y[0], x[0] * y[1], x[1] * y[0], x[1] * y[1])
    return min(products), max(products)


def squared(x: Interval) -> Interval:
    """All squares."""
    low, high = least_size(x), largest_size(x)
    return low * low, high * high


def divided(x: Interval, y: Interval) -> Interval:
    """All quotients; y must not hold 0."""
    return multiplied(x, (1 / y[1], 1 / y[0]))


def hull(x: Interval, y: Interval) -> Interval:
    """The least interval around two."""
    return min(x[0], y[0]), max(x[1], y[1])


def largest_size(x: Interval) -> Fraction:
    """The greatest distance from 0."""
    return max(-x[0], x[1])


def least_size(x: Interval) -> Fraction:
    """The least distance from 0."""
    return max(x[0], -x[1], Fraction(0))


def ln_interval(x: Interval) -> Interval:
    """All logarithms, rounded outward; x must lie above 0."""
    return _monotone(x, "log", exact=Fraction(1), value=Fraction(0))


def exp_interval(x: Interval) -> Interval:
    """All exponentials, rounded outward; below e**-1400 the lower end is 0."""
    cut = max(x[0], _LEAST_EXPONENT), max(x[1], _LEAST_EXPONENT)
    low, high = _monotone(cut, "exp", exact=Fraction(0), value=Fraction(1))
    return (low if x[0] >= _LEAST_EXPONENT else Fraction(0)), high


def _monotone(x: Interval, name: str, *, exact: Fraction, value: Fraction) -> Interval:
    """An increasing function over an interval; at one argument its value is rational."""
    found = []
    with working_precision(_PRECISION):
        for end in x:
            if end == exact:
                found.append((value, value))
                continue
            low, high = ends(getattr(arb_of(end), name)())
            slack = max(abs(low), abs(high)) * _MARGIN + power_of_two(-180) * (name == "log")
            found.append((low - slack, high + slack))
    return outward((found[0][0], found[1][1]))


def sqrt_interval(x: Interval) -> Interval:
    """All square roots, rounded outward, exact where rational; x must not go below 0."""
    return outward((root_below(x[0], _PRECISION), root_above(x[1], _PRECISION)))
