"""Exact rationals: above 0, from 0 up, of chances; and their roots.

What people write (`written.py`) is read before there is a certificate: whatever an answer rests on
is a Fraction or an int by then.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import TypeAlias

from lastbit.errors import InvalidParameter

Number: TypeAlias = int | float | str | Fraction | Decimal
"""Everything `rational` takes; numpy's integers and floats, fmpz and fmpq pass too."""


def rational(value: object, name: str = "value") -> Fraction:
    """The exact rational that `value` stands for.

    A float is taken as the dyadic number it is; a string as the decimal or ratio it spells.

    >>> rational("0.1"), rational("1/3"), rational(0.5), rational(2)
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 2), Fraction(2, 1))
    >>> rational(0.1) == rational("0.1")
    False
    >>> rational(float("nan"), "scale")
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: scale is not a number (NaN); pass an int, a Fraction, ...
    """
    if isinstance(value, Fraction):
        return value
    if type(value) is int:
        return Fraction(value)
    read: Fraction = import_module("lastbit.exact.written").read_number(value, name)
    return read


def positive(value: object, name: str = "value") -> Fraction:
    """The exact rational that `value` stands for, refused unless it is above 0.

    >>> positive("1/1000")
    Fraction(1, 1000)
    """
    number = rational(value, name)
    if number <= 0:
        problem = "is zero" if number == 0 else "is negative"
        raise InvalidParameter(name, problem=problem, remedy="pass a number above 0")
    return number


def nonnegative(value: object, name: str = "value") -> Fraction:
    """The exact rational that `value` stands for, refused if it is below 0.

    >>> nonnegative(0)
    Fraction(0, 1)
    """
    number = rational(value, name)
    if number < 0:
        raise InvalidParameter(name, problem="is negative", remedy="pass a number from 0 up")
    return number


def probability(
    value: object,
    name: str = "probability",
    *,
    zero: bool = True,
    one: bool = True,
    remedy: str = "pass a probability",
) -> Fraction:
    """The exact probability that `value` stands for; 0 and 1 only where they have a meaning.

    >>> probability("0.05"), probability(1)
    (Fraction(1, 20), Fraction(1, 1))
    >>> probability(1, "delta", one=False, remedy="pass, say, 1e-6")
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: delta is not between 0 and 1; pass, say, 1e-6
    """
    number = rational(value, name)
    if not (0 < number < 1 or (zero and number == 0) or (one and number == 1)):
        raise InvalidParameter(name, problem="is not between 0 and 1", remedy=remedy)
    return number


def floor_log2(number: Fraction) -> int:
    """The exponent e with 2**e <= abs(number) < 2**(e+1), for a number other than 0.

    >>> floor_log2(Fraction(1, 3)), floor_log2(Fraction(4))
    (-2, 2)
    """
    top, bottom = abs(number.numerator), number.denominator
    guess = top.bit_length() - bottom.bit_length()  # off by at most one, and then too large
    reached = (top >= bottom << guess) if guess >= 0 else (top << -guess >= bottom)
    return guess if reached else guess - 1


def root_bounds(number: Fraction, bits: int = 64) -> tuple[Fraction, Fraction]:
    """Rationals around the square root; both are the root itself if it is rational.

    Theorem  let size = bits of numerator - bits of denominator, so number > 2**(size-1). With
             places = bits + 1 - floor(size/2) the root is above 2**(bits - places), and the bounds
             are neighbouring multiples of 2**-places: the relative gap is below 2**-bits

    >>> root_bounds(Fraction(9, 4))
    (Fraction(3, 2), Fraction(3, 2))
    >>> low, high = root_bounds(Fraction(2)); low**2 < 2 < high**2
    True
    """
    root = Fraction(math.isqrt(number.numerator), math.isqrt(number.denominator))
    if root * root == number:
        return root, root
    size = number.numerator.bit_length() - number.denominator.bit_length()
    places = bits + 1 - size // 2
    whole_root = math.isqrt(math.floor(number * Fraction(4) ** places))
    unit = Fraction(2) ** -places
    return whole_root * unit, (whole_root + 1) * unit


def root_below(number: Fraction, bits: int = 64) -> Fraction:
    """A rational not above the square root, and short of it by less than a part in 2**bits."""
    return root_bounds(number, bits)[0]


def root_above(number: Fraction, bits: int = 64) -> Fraction:
    """A rational not below the square root, and beyond it by less than a part in 2**bits."""
    return root_bounds(number, bits)[1]
