"""e**-x, ln, cosine and sine over floats, with error bounds from correctly rounded + - * / alone.

No maths library is called, so none has to be trusted. `ln` is correctly rounded; the others come
with a proved bound.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import factorial
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, PrecisionExhausted, WrongType
from lastbit.exact.ball import arb_of, ends, working_precision

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
    Source   the usual argument reduction; the bound is worked out above
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
    value = np.full_like(rest, _COEFFICIENTS[-1])
    for coefficient in reversed(_COEFFICIENTS[:-1]):
        value *= rest
        np.subtract(coefficient, value, out=value)
    exponent = turns.astype(np.int64)
    np.subtract(1023, exponent, out=exponent)
    exponent <<= 52
    value *= exponent.view(np.float64)
    return value


_HALF_ROOT = 0.7071067811865476  # where to cut does not matter, only that it is near sqrt(1/2)
_CELLS = 128
_RECIPROCAL_PLACES = 11
_HIGH_PLACES = 42  # e * ln2_high is exact: 11 + 42 bits
_TAIL = tuple((-1) ** (k + 1) / k for k in range(3, 11))
_FIRST_PRECISION, _LAST_PRECISION = 128, 8192
_REMEDY = "pass finite floats above 0"

Floats = NDArray[np.float64]


def ln(x: float) -> float:
    """The float nearest to the natural logarithm of a float above 0.

    Law      ln(x) is ln x rounded once, to nearest; ties cannot happen, as ln x is irrational for
             every rational x but 1, where it is 0
    Theorem  `_enclosed` gives floats s, low <= high with s + low <= ln x <= s + high. Rounding is
             monotone: if s + low and s + high round to the same float, so does ln x. Otherwise,
             about once in 2**16 times for uniform x, balls of growing precision decide
    Source   Tang 1990 for the table, Ziv 1991 for the test; the bound is worked out in `_enclosed`
    Differs  the error bound rests on correctly rounded + - * alone
    Checked  tests/exact/test_logarithm.py

    >>> ln(1.0), ln(0.5)
    (0.0, -0.6931471805599453)
    """
    if not isinstance(x, float):
        raise WrongType("x", problem="is not a float", remedy=_REMEDY)
    if not 0.0 < x < math.inf:
        raise InvalidParameter("x", problem="has no logarithm", remedy=_REMEDY)
    mantissa, exponent = math.frexp(x)
    if mantissa < _HALF_ROOT:
        mantissa, exponent = mantissa + mantissa, exponent - 1
    reciprocal, high, low, ln2_high, ln2_low = _rows()[round(mantissa * _CELLS) - _CELLS // 2]
    total, least, most = _enclosed(
        mantissa, reciprocal, exponent * ln2_high + high, exponent * ln2_low + low
    )
    below: float = total + least
    return below if below == total + most else _by_balls(x)


def ln_each(x: Floats) -> Floats:
    """`ln` of every float of an array.

    >>> ln_each(np.array([1.0, 0.5])).tolist()
    [0.0, -0.6931471805599453]
    """
    if not isinstance(x, np.ndarray) or x.dtype != np.float64:
        raise WrongType("x", problem="is not an array of float64", remedy=_REMEDY)
    if x.size and not (x.min() > 0 and x.max() < np.inf):
        raise InvalidParameter("x", problem="has no logarithm", remedy=_REMEDY)
    mantissa, exponent = np.frexp(x)
    small = mantissa < _HALF_ROOT
    mantissa = np.where(small, mantissa + mantissa, mantissa)
    turns = (exponent - small).astype(np.float64)
    cell = np.rint(mantissa * _CELLS).astype(np.int64) - _CELLS // 2
    reciprocal, high, low, ln2_high, ln2_low = (column[cell] for column in _columns())
    total, least, most = _enclosed(
        mantissa, reciprocal, turns * ln2_high + high, turns * ln2_low + low
    )
    result: Floats = total + least
    for i in np.argwhere(result != total + most):
        result[tuple(i)] = _by_balls(float(x[tuple(i)]))
    return result


def _enclosed(m: Any, c: Any, high: Any, low: Any) -> tuple[Any, Any, Any]:
    """Floats s, least, most with s + least <= ln x <= s + most; floats or arrays of them.

    Law      x = 2**e m, m from 0.7071 to 1.4143; c is 1/m to 11 places, and 1 for m within 2**-8 of
             1; high + low is e ln 2 - ln c, high exactly a multiple of 2**-42 and below 2**10
    Theorem  Write u = 2**-53. ln x = high + low + ln(1 + r), r = m c - 1, |r| < 0.006.
             Exact: m = front + back, a multiple of 2**-26 and a rest of 26 bits; their products
             with c, of 12 bits; front*c - 1; so r = big + tiny by `_two_sum`, |tiny| <= u |r|; the
             square and its error by `_square`; the sums total + spill + lost of high, big, -square.
             Not exact, with b = |big|: leaving out tiny r**2 and higher, 2**-67 b; the series from
             b**3/3 on, cut after b**10, b**11/11 < 2**-80 b; its evaluation 6u of 0.34 b**3, that
             is 2**-66.6 b; low itself (two constants rounded, a product and a sum, all below
             2**-32) 4 u 2**-32 = 2**-83 unless it is 0; the five sums of rest, whose terms add up
             to at most 0.34 b**3 + 2**-32 [0 if low is 0] + 4u |total|, and rest -+ margin: 7u of
             that, so 2**-66.5 b + 2**-82 + 2**-100 |total|. All in all below 2**-65 b + 2**-81.5,
             the latter only where c is not 1 or e not 0: then |total| > 2**-8.1.
             So 2**-64 b + 2**-73 |total| is enough, with its own rounding
    """
    front = (m + 100663296.0) - 100663296.0  # 1.5 * 2**26: rounds to a multiple of 2**-26
    big, tiny = _two_sum(front * c - 1.0, (m - front) * c)
    square, square_lost = _square(big)
    total, spill = _two_sum(high, big)
    total, lost = _two_sum(total, -0.5 * square)
    tail = _TAIL[-1]
    for coefficient in _TAIL[-2::-1]:
        tail = tail * big + coefficient
    small = low + (spill + lost - 0.5 * square_lost + (tiny - tiny * big))
    rest = small + big * square * tail
    margin = 2.0**-64 * abs(big) + 2.0**-73 * abs(total)
    return total, rest - margin, rest + margin


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The rounded sum and what rounding lost, exactly (Knuth)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def _square(a: Any) -> tuple[Any, Any]:
    """The rounded square and what rounding lost, exactly (Dekker); nothing here can underflow."""
    product = a * a
    spread = a * 134217729.0  # 2**27 + 1: splits into halves of 26 bits
    front = spread - (spread - a)
    back = a - front
    return product, ((front * front - product) + 2.0 * front * back) + back * back


def _by_balls(x: float) -> float:
    """The nearest float, from enclosures of growing precision."""
    precision = _FIRST_PRECISION
    while precision <= _LAST_PRECISION:
        with working_precision(precision):
            low, high = ends(arb_of(Fraction(x)).log())
        below = low.numerator / low.denominator
        if below == high.numerator / high.denominator:
            return below
        precision *= 2
    raise PrecisionExhausted("a logarithm stayed undecided up to 8192 bits")


Row = tuple[float, float, float, float, float]


@lru_cache(maxsize=1)
def _rows() -> tuple[Row, ...]:
    """For k = 64 ... 192: c near 128/k, -ln c in two parts, and ln 2 in two parts."""
    with working_precision(_FIRST_PRECISION):
        ln2 = _parts(arb(2).log())
        rows = []
        for k in range(_CELLS // 2, 3 * _CELLS // 2 + 1):
            c = Fraction(round(Fraction(_CELLS << _RECIPROCAL_PLACES, k)), 1 << _RECIPROCAL_PLACES)
            rows.append((float(c), *_parts(-arb_of(c).log()), *ln2))
        return tuple(rows)


@lru_cache(maxsize=1)
def _columns() -> tuple[Floats, ...]:
    return tuple(np.array(column) for column in zip(*_rows(), strict=True))


def _parts(ball: arb) -> tuple[float, float]:
    """A real as a multiple of 2**-42 and the float nearest to the rest."""
    low, high = ends(ball)
    front = Fraction(round((low + high) / 2 * (1 << _HIGH_PLACES)), 1 << _HIGH_PLACES)
    return float(front), float((low + high) / 2 - front)


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


def cos_sin_turn(
    turn: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
    Source   Taylor; the bound is worked out above
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
    along = _alternating(_COSINE, square)
    across = _alternating(_SINE, square)
    across *= rest
    quarter = quarters.astype(np.int8)
    odd = (quarter & 1).astype(np.bool_)
    cosine = np.where(odd, across, along)
    sine = np.where(odd, along, across)
    np.negative(cosine, out=cosine, where=((quarter + 1) & 2).astype(np.bool_))
    np.negative(sine, out=sine, where=(quarter & 2).astype(np.bool_))
    return cosine, sine


def _alternating(coefficients: Sequence[float], square: NDArray[np.float64]) -> NDArray[np.float64]:
    """c_0 - c_1 s + c_2 s**2 - ..., by Horner's rule."""
    value = np.full_like(square, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value *= square
        np.subtract(coefficient, value, out=value)
    return value
