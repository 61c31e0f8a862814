"""Exponential, cosine and sine over arrays of floats, bounded from correctly rounded arithmetic."""

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


TURN_ERROR = 2.0**-51

# The floats nearest to (2 pi)**j / j!, for even j and for odd j.
_COSINE = (
    1.0,
    19.739208802178716,
    64.9393940226683,
    85.45681720669373,
    60.24464137187666,
    26.4262567833744,
    7.903536371318469,
    1.714390711088672,
    0.28200596845579123,
)
_SINE = (
    6.283185307179586,
    41.34170224039976,
    81.60524927607506,
    76.70585975306139,
    42.058693944897655,
    15.09464257682299,
    3.819952584848282,
    0.7181223017785006,
    0.10422916220813984,
)


def cos_sin_turn(turn: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """cos(2 pi v) and sin(2 pi v) for every v of an array with 0 <= v < 1.

    Law      |cosine - cos(2 pi v)| <= TURN_ERROR and |sine - sin(2 pi v)| <= TURN_ERROR
    Theorem  Write u = 2**-53. Every + - * below is correctly rounded, so each adds at most u times
             its result (a product below 2**-1022 adds 2**-1075, and only where v is that small).
             Reduction: 4v is exact, j = rint(4v), t = v - j/4. For j = 0 nothing is subtracted; for
             j >= 1 v lies between half and twice j/4, so the difference is exact (Sterbenz).
             |t| <= 1/8, and the quarter turns only swap and negate.
             Series in s = fl(t*t) <= 1/64: with q_k = c_k - s q_(k+1) the error obeys
             e_k <= s e_(k+1) + u(c_k unless exact + 2 s|q_(k+1)| + |q_k|), the 2 for s and its
             product. 0 < q_k <= c_k, since the terms alternate and decrease.
             Cosine: e_2 <= 136u, e_1 <= (2.2 + 19.8 + 2.1 + 19.8)u < 44u,
             e_0 <= (0.69 + 0.62 + 1)u < 2.4u; left out: (pi/4)**18/18! < 0.02u.
             Sine: e_1 <= (2.7 + 41.4 + 2.6 + 41.4)u < 89u, e_0 <= (1.4 + 6.3 + 1.3 + 6.3)u < 15.4u;
             times |t|: 1.93u, its product 0.71u; left out: (pi/4)**19/19! < 0.01u. Below 2.7u.
             Both stay below 3u < 4u = 2**-51; u squared is covered by the gap.
    Differs  no maths library is called, so none has to be trusted
    Checked  tests/exact/test_trigonometry.py

    >>> cosine, sine = cos_sin_turn(np.array([0.0, 0.25, 0.5]))
    >>> (cosine + 0.0).tolist(), (sine + 0.0).tolist()
    ([1.0, 0.0, -1.0], [0.0, 1.0, 0.0])
    """
    if turn.dtype != np.float64:
        raise TypeError("cos_sin_turn is proved for float64 only")
    if turn.size and not (turn.min() >= 0 and turn.max() < 1):
        raise ValueError("cos_sin_turn is proved for fractions of a turn from 0 to below 1 only")
    quarters = np.rint(turn * 4)
    rest = turn - quarters * 0.25
    square = rest * rest
    along = alternating(_COSINE, square)
    across = alternating(_SINE, square)
    across *= rest
    quarter = quarters.astype(np.int8)
    odd = (quarter & 1).astype(np.bool_)
    cosine = np.where(odd, across, along)
    sine = np.where(odd, along, across)
    np.negative(cosine, out=cosine, where=((quarter + 1) & 2).astype(np.bool_))
    np.negative(sine, out=sine, where=(quarter & 2).astype(np.bool_))
    return cosine, sine


def alternating(coefficients: Sequence[float], x: NDArray[np.float64]) -> NDArray[np.float64]:
    """c_0 - c_1 x + c_2 x**2 - ..., by Horner's rule."""
    value = np.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value *= x
        np.subtract(coefficient, value, out=value)
    return value
