"""The checker's own arithmetic: fractions, and decimals with a margin.

`exp_bounds`, `ln_bounds` and `sqrt_bounds` enclose a real number between two fractions. Decimal's
exp and ln are correctly rounded to the digits of their context (General Decimal Arithmetic), so a
result is within one unit of its last digit; the bounds leave ten. The square root is by integers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from decimal import Context, Decimal
from fractions import Fraction
from math import isqrt
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]
"""An object of a certificate, as it was read: nothing in it is believed."""

Interval: TypeAlias = tuple[Fraction, Fraction]
_DIGITS = 80  # binary128 squares its errors: 2**-226
_CONTEXT = Context(prec=_DIGITS, Emin=-(10**8), Emax=10**8)
_NUMBER = re.compile(r"-?\d{1,4000}(/[1-9]\d{0,3999})?", re.ASCII)
_BINARY = re.compile(r"(-?)(\d{0,3999}[13579])p(-?)([1-9]\d{3,5})", re.ASCII)
_PLACES = 8192  # of more binary places, a number is written as m p e, which is m 2**e, m odd


class Rejected(Exception):
    """A certificate does not prove what it claims; `check` raises it and says where."""


def require(condition: bool, problem: str) -> None:
    """Reject unless a condition holds."""
    if not condition:
        raise Rejected(problem)


def number(text: object) -> Fraction:
    """An exact number as certificates write it: "3", "-1/3", "5p-16445"; all else is rejected.

    >>> number("-1/3"), number("3p-9000") == Fraction(3, 2**9000)
    (Fraction(-1, 3), True)
    """
    if isinstance(text, str) and (parts := _BINARY.fullmatch(text)):
        sign, digits, below, places = parts.groups()
        size, far = int(digits), int(places)
        require(_PLACES < far <= 2 * 10**5 and digits[0] != "0", "a number is not in lowest terms")
        value = Fraction(size, 1 << far) if below else Fraction(size << far)
        return -value if sign else value
    value = _read(text)
    require(spelled(value) == text, "a number is not in lowest terms")
    return value


def ratio(text: object) -> Fraction:
    """The same of plans and questions, which a kernel reads too: "3" or "-1/3", nothing else."""
    value = _read(text)
    require(str(value) == text, "a number is not in lowest terms")
    return value


def _read(text: object) -> Fraction:
    if not isinstance(text, str) or not _NUMBER.fullmatch(text):
        raise Rejected("a number is not written as an integer or a ratio")
    return Fraction(text)


def spelled(value: Fraction) -> str:
    """A number as certificates write it."""
    over, under = value.numerator, value.denominator
    if under == 1 and abs(over) >> _PLACES + 1:
        places = (over ^ (over - 1)).bit_length() - 1
        return f"{over >> places}p{places}" if places > _PLACES else str(over)
    if under >> _PLACES + 1 and under == 1 << under.bit_length() - 1:
        return f"{over}p-{under.bit_length() - 1}"
    return str(value)


def digest(certificate: Json) -> str:
    """SHA-256 of everything but the digest itself, in one canonical spelling."""
    rest = {key: value for key, value in certificate.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def exp_bounds(x: Fraction) -> Interval:
    """Fractions around e**x, relatively 10**-50 apart or less; for |x| up to 10**6.

    >>> low, high = exp_bounds(Fraction(1))
    >>> low < Fraction(271828182845904523536, 10**20) + Fraction(1, 10**20) and high - low < 1
    True
    """
    require(abs(x) <= 10**6, "an exponent is out of range")
    value = Fraction(_CONTEXT.exp(_decimal(x)))
    # the argument's own rounding moves e**x by a factor of at most 1 + |x| 10**-79 * 2
    margin = Fraction(10 + 2 * int(abs(x) + 1), 10 ** (_DIGITS - 1))
    return value * (1 - margin), value * (1 + margin)


FARTHEST = Fraction(1387)
"""exp(-1387) is below 2**-2000. A smaller chance counts as that: its digits would take long."""


def exp_above(x: Fraction) -> Fraction:
    """Not below e**x where that is a chance, or part of one; a number above 1 from x = 1 on.

    >>> exp_above(Fraction(-(10**300))) < Fraction(1, 1 << 2000) and exp_above(Fraction(10**9)) > 2
    True
    """
    return exp_bounds(min(max(x, -FARTHEST), Fraction(1)))[1]


def ln_bounds(x: Fraction) -> Interval:
    """Fractions around ln x for x > 0, absolutely 10**-50 apart or less in the usual range."""
    require(x > 0, "a logarithm of a number that is not above 0")
    near = Fraction(_CONTEXT.ln(_decimal(x)))
    margin = Fraction(20 + 20 * int(abs(near) + 1), 10 ** (_DIGITS - 1))
    return near - margin, near + margin


def sqrt_bounds(x: Fraction) -> Interval:
    """Fractions around the square root of x >= 0, relatively 2**-150 apart or less."""
    require(x >= 0, "a square root of a number below 0")
    if x == 0:
        return Fraction(0), Fraction(0)
    shift = 2 * max(0, 320 + x.denominator.bit_length() - x.numerator.bit_length())
    root = isqrt((x.numerator << shift) // x.denominator)
    scale = 1 << (shift // 2)
    return Fraction(root, scale), Fraction(root + 1, scale)


def _decimal(x: Fraction) -> Decimal:
    return _CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))


# ---------------------------------------------------------------- intervals
