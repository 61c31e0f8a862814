"""What people write, as exact rationals; and rationals as people would write them.

Nothing that an answer about a table rests on passes through here: certificates and the books hold
fractions as such.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational
from typing import SupportsIndex

from flint import fmpq, fmpz
from numpy import timedelta64

from lastbit.errors import InvalidParameter, LastbitError, WrongType

# "1e999999999" would ask for a gigabyte of digits: beyond this many decimal places we refuse.
LARGEST_EXPONENT = 10_000
_PLAIN = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE](?P<exponent>[+-]?\d{1,9}))?\s*", re.ASCII)
_RATIO = re.compile(r"\s*[+-]?\d+\s*/\s*\d+\s*", re.ASCII)
_REMEDY = 'pass an int, a Fraction, a Decimal, a finite float, or a string such as "0.1" or "1/3"'


def read_number(value: object, name: str) -> Fraction:
    """The exact rational that `value` stands for."""
    try:
        return _exact(value, name)
    except LastbitError:
        raise
    except TypeError:  # a class, a time span, or another thing that only looks like a number
        kind = type(value).__name__
        raise WrongType(name, problem=f"is of type {kind}, not a number", remedy=_REMEDY) from None


def whole(value: object, name: str = "value", *, least: int = 0) -> int:
    """The integer that `value` is: ints and numpy's integers only, not below `least`.

    >>> whole(3), whole(2**70)
    (3, 1180591620717411303424)
    """
    try:
        if isinstance(value, bool | timedelta64) or not isinstance(value, Integral | SupportsIndex):
            raise TypeError
        number = value.__index__() if isinstance(value, SupportsIndex) else int(value)
    except TypeError:
        problem = f"is of type {type(value).__name__}, not a whole number"
        raise WrongType(name, problem=problem, remedy="pass an int") from None
    if number < least:
        raise InvalidParameter(
            name, problem=f"is below {least}", remedy=f"pass a whole number from {least} up"
        )
    return number


def _exact(value: object, name: str) -> Fraction:
    match value:
        case bool():
            raise WrongType(name, problem="is a truth value", remedy=_REMEDY)
        case timedelta64():  # numpy counts it among the integers
            raise TypeError
        case Integral() | fmpz():
            return Fraction(int(value))
        case Rational():
            return Fraction(int(value.numerator), int(value.denominator))
        case fmpq():
            return Fraction(int(value.p), int(value.q))
        case float():
            if not math.isfinite(value):
                raise _not_finite(name, nan=math.isnan(value))
            return Fraction(value)
        case Decimal():
            if not value.is_finite():
                raise _not_finite(name, nan=value.is_nan())
            exponent = value.as_tuple().exponent
            assert isinstance(exponent, int)  # finite, so no special marker
            _check_exponent(exponent, name)
            return Fraction(value)
        case str():
            return _from_text(value, name)
    # numpy's float16, float32 and longdouble are not Python floats, yet exact dyadics all the same
    ratio = getattr(value, "as_integer_ratio", None)
    if ratio is None:
        raise TypeError
    try:
        numerator, denominator = ratio()
    except (ValueError, OverflowError):
        raise InvalidParameter(name, problem="is not finite", remedy=_REMEDY) from None
    return Fraction(int(numerator), int(denominator))


def shown(number: Fraction) -> str:
    """A rational as a person would write it, and so that `rational(eval(...))` gives it back.

    >>> shown(Fraction(1, 10)), shown(Fraction(0.1)), shown(Fraction(1, 3)), shown(Fraction(7))
    ("'0.1'", '0.1', "'1/3'", '7')
    """
    if number.denominator == 1 and abs(number) < 10**21:
        return str(number.numerator)
    try:
        nearest = number.numerator / number.denominator
    except OverflowError:
        return f"'{number}'"
    decimal = f"{nearest:.15g}"
    if decimal != "0" and Fraction(decimal) == number:
        return f"'{decimal}'"
    return repr(nearest) if Fraction(nearest) == number else f"'{number}'"


def _not_finite(name: str, *, nan: bool) -> InvalidParameter:
    problem = "is not a number (NaN)" if nan else "is infinite"
    return InvalidParameter(name, problem=problem, remedy=_REMEDY)


def _from_text(text: str, name: str) -> Fraction:
    plain = _PLAIN.fullmatch(text)
    if plain is None and _RATIO.fullmatch(text) is None:
        shown = repr(text if len(text) <= 40 else text[:37] + "...")
        raise InvalidParameter(name, problem=f"is {shown}, which is not a number", remedy=_REMEDY)
    _check_exponent(len(text), name)
    if plain is not None and plain["exponent"]:
        _check_exponent(int(plain["exponent"]), name)
    try:
        return Fraction("".join(text.split()))
    except ZeroDivisionError:
        raise InvalidParameter(
            name, problem="has the denominator 0", remedy="pass a ratio of two integers, 1/3"
        ) from None
    except ValueError:  # the interpreter's own limit on the digits of an integer
        raise InvalidParameter(name, problem="has too many digits", remedy=_REMEDY) from None


def _check_exponent(exponent: int, name: str) -> None:
    if abs(exponent) > LARGEST_EXPONENT:
        raise InvalidParameter(
            name,
            problem=f"has more than {LARGEST_EXPONENT} decimal places or digits",
            remedy="pass a Fraction if you really mean it",
        )
