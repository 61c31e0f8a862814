"""The natural logarithm of floats, correctly rounded; no maths library has to be trusted."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, PrecisionExhausted, WrongType
from lastbit.exact.ball import arb_of, ends, working_precision

_HALF_ROOT = 0.7071067811865476  # where to cut does not matter, only that it is near sqrt(1/2)
_CELLS = 128
_RECIPROCAL_PLACES = 11
_HIGH_PLACES = 42  # e * ln2_high is exact: 11 + 42 bits
_TAIL = tuple((-1) ** (k + 1) / k for k in range(3, 11))
_FIRST_PRECISION, _LAST_PRECISION = 128, 8192
# Certificates about code that calls `ln` hold the digest of its source: not a word may change.
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
        raise WrongType("x", problem="is no float", remedy=_REMEDY)
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
        raise WrongType("x", problem="is no array of float64", remedy=_REMEDY)
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
