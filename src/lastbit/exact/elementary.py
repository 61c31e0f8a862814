"""The exponential over arrays of floats, bounded from correctly rounded arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial

import numpy as np
from numpy.typing import NDArray

EXP_RELATIVE_ERROR = 2.0**-50
LARGEST_ARGUMENT = 512.0

_INVERSE_LN2 = 1.4426950408889634
_LN2_HIGH = 3048493539143 / 2**42  # ln 2 to 42 bits: n * this is exact for n < 2**11
_LN2_LOW = 5.497923018708371e-14  # the float nearest to ln 2 - _LN2_HIGH
_COEFFICIENTS = tuple(1 / factorial(k) for k in range(14))


def exp_negative(argument: NDArray[np.float64]) -> NDArray[np.float64]:
    """e**-x for every x of an array with 0 <= x <= 512, within a relative error of 2**-50.

    Law      |result - e**-x| <= EXP_RELATIVE_ERROR * e**-x
    Theorem  Write u = 2**-53. Every + - * below is correctly rounded, so each adds at most u times
             its result. Let n = rint(fl(x/ln 2)): then |x - n ln 2| <= 0.3467, n <= 739.
             Reduction: n*HIGH is exact (10 + 42 bits); the two subtractions and n*LOW, whose result
             is below 2**-33, err by at most 2 * 0.3467u + 2**-80 together, so the argument r of the
             polynomial is off by less than 0.70u, and e**-r relatively by as much.
             Truncation: |r| <= 0.35, Taylor to degree 13: relatively below 0.35**14/14! * e**0.7
             < 2**-56 = 0.125u.
             Horner, p_k = c_k - r*p_(k+1): the error obeys e_k <= 0.35 e_(k+1) + u(|c_k| unless it
             is exact + |r p_(k+1)| + |p_k|); from |p_4| < 0.05 upwards e_4 <= 0.2u, e_3 <= 0.5u,
             e_2 <= 0.9u, e_1 <= 1.8u, e_0 <= 2.6u against a value of at least e**-0.35 > 0.70:
             relatively below 3.75u. Sum: 0.70 + 0.13 + 3.75 < 5u < 8u = 2**-50.
             The last factor 2**-n is exact, since the result stays above 2**-740.
    Differs  no maths library is called, so none has to be trusted
    Checked  tests/exact/test_exponential.py

    >>> float(exp_negative(np.array([0.0, 1.0]))[0])
    1.0
    """
    if argument.dtype != np.float64:
        raise TypeError("exp_negative is proved for float64 only")
    if argument.size and not (argument.min() >= 0 and argument.max() <= LARGEST_ARGUMENT):
        raise ValueError("exp_negative is proved for arguments from 0 to 512 only")
    turns = np.rint(argument * _INVERSE_LN2)
    rest = argument - turns * _LN2_HIGH
    rest -= turns * _LN2_LOW
    value = alternating(_COEFFICIENTS, rest)
    exponent = turns.astype(np.int64)
    np.subtract(1023, exponent, out=exponent)
    exponent <<= 52
    value *= exponent.view(np.float64)
    return value


def alternating(coefficients: Sequence[float], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """c_0 - c_1 x + c_2 x**2 - ..., by Horner's rule."""
    value = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value *= x
        np.subtract(coefficient, value, out=value)
    return value
