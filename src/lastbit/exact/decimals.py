"""Logarithms, exponentials and powers of doubles: the same doubles on every machine.

Law      ln and exp are the doubles nearest to the decimals of 60 digits nearest to the true
         numbers; log(base, x) is that of the quotient of two such logarithms, power(x, y) that of
         exp(y ln abs(x)), with the sign of x if y is odd; each step has 60 digits
Theorem  every double is within one unit in the last place of the true number: what 60 digits took
         is below 10**-50 of the number, as exponents stay below 750, and the last rounding moves it
         by half a unit at most
Source   decimal.Context.exp and ln are correctly rounded (Python's library reference)
Differs  no maths library is called: theirs differ in the last bit from machine to machine
Checked  tests/exact/test_decimals.py (against Arb)
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, InvalidOperation

_FAR = 750  # exp beyond is no double, and above 0 below any
_CONTEXT = Context(
    prec=60,
    rounding=ROUND_HALF_EVEN,
    Emin=-(10**6),
    Emax=10**6,
    traps=[InvalidOperation, DivisionByZero],
)


def decimal_ln(x: float) -> float:
    """The natural logarithm; `ValueError` if there is none.

    >>> decimal_ln(1.0), decimal_ln(2.0)
    (0.0, 0.6931471805599453)
    """
    return float(_ln(x))


def decimal_exp(x: float) -> float:
    """The exponential; `OverflowError` where no double is as large."""
    return _exp(Decimal(x))


def decimal_log(base: float, x: float) -> float:
    """The logarithm to a base above 0.

    >>> decimal_log(10.0, 1000.0), decimal_log(4.0, 8.0)
    (3.0, 1.5)
    """
    return float(_CONTEXT.divide(_ln(x), _ln(base)))


def decimal_power(x: float, y: float) -> float:
    """The power x**y; of numbers below 0 where y is whole.

    >>> decimal_power(-10.0, 3.0), decimal_power(9.0, -0.5), decimal_power(0.0, 0.0)
    (-1000.0, 0.3333333333333333, 1.0)
    """
    if y == 0:
        return 1.0
    if x == 0:
        if y < 0:
            raise ZeroDivisionError
        return 0.0
    if x < 0 and y % 1 != 0:
        raise ValueError
    size = _exp(_CONTEXT.multiply(Decimal(y), _ln(abs(x))))
    return -size if x < 0 and y % 2 == 1 else size


def _ln(x: float) -> Decimal:
    if not 0 < x < math.inf:
        raise ValueError
    return _CONTEXT.ln(Decimal(x))


def _exp(x: Decimal) -> float:
    if not abs(x) < _FAR:
        if x < 0:
            return 0.0
        raise OverflowError
    value = float(_CONTEXT.exp(x))
    if math.isinf(value):
        raise OverflowError
    return value
