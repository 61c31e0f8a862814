"""Quantile functions as certified piecewise polynomials over floats."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from flint import arb, arb_poly, arb_series, ctx
from numpy.typing import NDArray

from lastbit.errors import Undecidable
from lastbit.exact import working_precision
from lastbit.laws import Ideal, PolynomialTail, StudentT

PIECE_BITS = 5
DEGREE = 8
_TERMS = 13  # the order of the remainder
_PRECISION = 128
_EXPONENTS = 64  # of the float 2t + 1, from 1 to 2**63
_QUARTER = _EXPONENTS << PIECE_BITS
_TAIL_BINADES = 40
_MIDDLE_BINADES = 16
_ROUGH_TERMS = 24
_ROUGH_BINADES = 16
_UNIT = 2.0**-53
_ONE = np.int64(1023 << 52)
_LOW = np.int64((1 << (52 - PIECE_BITS)) - 1)
_SHIFT = np.int64(52 - PIECE_BITS)
_FIRST = np.int64(1023 << PIECE_BITS)
_POSITIVE = np.int64((1 << 63) - 1)


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """The quantile function Q of an ideal law for 64 bits of U, up to a proved error.

    Law      for every U in [word, word+1] / 2**64 with piece i and position x of that word,
             abs(Q(U) - q) <= error[i] and abs(q) <= size[i], q = `value(i, x)` as computed in
             floats; error is infinite for pieces without a polynomial
    Theorem  *Position.* The first two bits of the word name a quarter of [0, 1]; the other 62, all
             flipped if the second bit is 1, are an integer t with T in [t, t+1] / 2**62, where
             T = 4U, 2 - 4U, 4U - 2, 4 - 4U in the four quarters: the distance from the nearest of
             0, 1/2, 1. The float f nearest to the integer 2t + 1 < 2**63 has an exponent e and its
             first five bits after the leading one: together they name the piece, of width
             w = 2**(e-5) in f. The other 47 bits, put behind the exponent of 1, are a float in
             [1, 2); less 3/2 (exact, Sterbenz) it is x = (f - centre)/w in [-1/2, 1/2). The true
             position X = (2**63 T - centre)/w is off by at most (1 + 2**(e-53))/w
             = 32 (2**-e + 2**-53) =: h, in units of X: 1 for the unknown bits, half a unit in the
             last place for the conversion (also if it rounds up to the next power of two).
             *Polynomial.* z as a function of X is the inverse of an integral of the density;
             reversing the power series of that integral at a point z0, where X is known to be X0,
             gives z = sum of b_j (X - X0)**j, and shifting it c_j x**j. Lagrange's remainder of
             order n = 13 is the n-th coefficient of the same reversal at some z between, hence in
             what the reversal gives for a ball around z0 that holds all z of the piece. It does if
             its radius times the least derivative dX/dz in it is at least 1/2 + h + abs(X0), by
             the mean value theorem.
             *Error.* (1) h times the greatest dz/dX on the ball; (2) the remainder
             b_n (1/2 + abs(X0))**n; (3) abs(c_j) 2**-j for 8 < j < n, which are left out; (4)
             2**-j abs(c_j - float(c_j)); all these are summed as balls, and the upper end taken.
             (5) Horner's rule a_j = c_j + x a_(j+1): with u = 2**-53, bounds
             A_j = (abs(c_j) + A_(j+1)/2)(1 + 3u) on abs(a_j) as computed, and
             e_j = e_(j+1)/2 + u A_(j+1) + u A_j on its error: one product of at most A_(j+1)/2 and
             one sum, each rounded once. Underflow adds less than 2**-1000 to all. These bounds are
             worked out in floats in fewer than 100 operations on positive numbers and enlarged
             by 2**-40 for it
    Differs  no maths library is trusted. Pieces where the density has no power series, or whose
             polynomial overflows, have an infinite error, and so has T < 2**-40 in the tails and
             T < 2**-16 next to the median
    Checked  tests/sampling/test_rounded.py
    """

    coefficients: NDArray[np.float64]
    error: NDArray[np.float64]
    size: NDArray[np.float64]

    def place(self, word: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The piece and the position of every word of 64 bits."""
        flip = word << 1
        flip >>= 63
        flip ^= word
        flip <<= 1
        flip |= 1
        flip &= _POSITIVE
        nearest = flip.astype(np.float64).view(np.int64)
        index = nearest >> _SHIFT
        index -= _FIRST
        quarter = np.right_shift(word, 62, out=flip)
        quarter &= 3
        quarter *= _QUARTER
        index += quarter
        nearest &= _LOW
        nearest <<= PIECE_BITS
        nearest |= _ONE
        position = nearest.view(np.float64)
        position -= 1.5
        return index, position

    def value(self, index: NDArray[np.int64], position: NDArray[np.float64]) -> NDArray[np.float64]:
        """The polynomials' values, by Horner's rule."""
        out: NDArray[np.float64] = self.coefficients[-1].take(index)
        term = np.empty_like(out)
        for row in self.coefficients[-2::-1]:
            out *= position
            row.take(index, out=term, mode="clip")
            out += term
        return out


@lru_cache(maxsize=16)
def quantile_pieces(law: Ideal) -> Pieces:
    """The pieces of a law, made once."""
    return pieces(law)


def pieces(law: Ideal, *, degree: int = DEGREE) -> Pieces:
    """The pieces of a law, whose polynomials have the given degree."""
    coefficients = np.zeros((degree + 1, 4 * _QUARTER))
    error = np.full(4 * _QUARTER, np.inf)
    with working_precision(_PRECISION), _terms(_TERMS + 1):
        for quarter in (0, 1) if law.symmetric else (0, 1, 2, 3):
            _fill(law, quarter, degree, coefficients, error)
    if law.symmetric:  # quarter 2 mirrors quarter 1, quarter 3 mirrors quarter 0
        for quarter in (0, 1):
            here, there = _quarter(quarter), _quarter(3 - quarter)
            coefficients[:, there] = -coefficients[:, here]
            error[there] = error[here]
    with np.errstate(over="ignore", invalid="ignore"):  # what Horner's rule may lose, item (5)
        size = np.abs(coefficients[-1])
        lost = np.zeros_like(size)
        for row in coefficients[-2::-1]:
            lost = lost / 2 + _UNIT * size
            size = (np.abs(row) + size / 2) * (1 + 4 * _UNIT)
            lost += _UNIT * size
        error = (error + lost + 2.0**-1000) * (1 + 2.0**-40)
        size = size * (1 + 2.0**-40) + 2.0**-1000
    broken = ~(np.isfinite(error) & np.isfinite(size))
    coefficients[:, broken] = 0.0
    error[broken] = np.inf
    size[broken] = 0.0
    for array in (coefficients, error, size):
        array.flags.writeable = False
    return Pieces(coefficients, error, size)


def _quarter(number: int) -> slice:
    return slice(number * _QUARTER, (number + 1) * _QUARTER)


def _fill(
    law: Ideal,
    quarter: int,
    degree: int,
    coefficients: NDArray[np.float64],
    error: NDArray[np.float64],
) -> None:
    """March through a quarter from its outer end, each piece starting where the last one ended."""
    start = law.quantile(Fraction(1 if quarter < 2 else 3, 4)).enclosure.mid()
    binades = _TAIL_BINADES if quarter in (0, 3) else _MIDDLE_BINADES
    per_binade = 1 << PIECE_BITS
    for piece in range(binades * per_binade):
        binade, place = divmod(piece, per_binade)
        exponent = _EXPONENTS - 2 - binade
        leading = 2 * per_binade - 1 - place
        # in units of f = 2**63 T
        width = arb(2) ** (exponent - PIECE_BITS)
        centre = width * (arb(2 * leading + 1) / 2)
        try:
            model = _model(law, quarter, start, centre, width)
        except (Undecidable, ValueError):  # no power series here, nor beyond
            return
        if model is None:
            return
        index = quarter * _QUARTER + (exponent << PIECE_BITS) + leading - per_binade
        numbers, lost = _floats(model, exponent, degree)
        coefficients[:, index] = numbers
        error[index] = lost
        next_width = width if place < per_binade - 1 else width / 2
        step = -(width + next_width) / (2 * width)
        start = arb(model.polynomial(step).mid())


def rough_quantile(law: Ideal, word: int) -> float | None:
    """A number near the quantile of a word of 64 bits, in a few microseconds; nothing rests on it.

    A small table is made for each law once, whatever the word, in a few milliseconds. None in the
    far tails, for laws whose own guesses are quick, and beyond all floats.
    """
    if not isinstance(law, PolynomialTail | StudentT):
        return None
    upper = word >> 63
    share = (((word ^ -upper) & (1 << 63) - 1) + 0.5) * 2.0**-64
    binade = max(0, -1 - math.frexp(share)[1])  # 0 for shares from 1/4 to 1/2, both included
    if binade >= _ROUGH_BINADES:
        return None
    x = share * 2.0**binade / 0.375 - 1
    z = 0.0
    for coefficient in _rough(law)[binade]:
        z = z * x + coefficient
    return (-z if upper else z) if math.isfinite(z) else None


@lru_cache(maxsize=16)
def _rough(law: Ideal) -> tuple[tuple[float, ...], ...]:
    """For P[Z <= z] = (1 + x) 0.375/2**j, abs(x) <= 1/3: z as a polynomial in x, greatest first."""
    out = []
    with working_precision(64), _terms(_ROUGH_TERMS + 1):
        for binade in range(_ROUGH_BINADES):
            level = arb(3) / (8 << binade)
            start = arb(law.near_below(level).mid())
            density = law.density(arb_series([start, 1], _ROUGH_TERMS)) / level
            series = density.integral().reversion()
            terms = [series[j] for j in range(_ROUGH_TERMS, 0, -1)]
            out.append(tuple(float(term.mid()) for term in (*terms, start)))
    return tuple(out)


class _Model(NamedTuple):
    polynomial: arb_poly
    remainder: arb
    slope: arb


def _model(law: Ideal, quarter: int, start: arb, centre: arb, width: arb) -> _Model | None:
    """The polynomial of z in X, a bound on what it lacks, and one on dz/dX."""
    distance, sign = _distance(law, quarter, start)
    there = (distance * arb(2) ** 63 - centre) / width  # X0
    speed = sign * arb(2) ** 65 / width  # dX/dz over the density
    series = (law.density(arb_series([start, 1], _TERMS)) * speed).integral().reversion()
    terms = [start, *(series[j] for j in range(1, _TERMS))]
    polynomial = arb_poly(terms)(arb_poly([-there, 1]))
    reach = arb(1) / 2 + abs(there) + arb(2) ** -7  # h is below 2**-7 for the binades used
    radius = arb(sum((abs(terms[j]) * reach**j for j in range(1, _TERMS)), arb(0)).upper())
    for _ in range(6):
        radius *= arb(9) / 8
        ball = arb(start, radius)
        density = law.density(arb_series([ball, 1], _TERMS))
        least = arb(abs(density[0] * speed).lower())
        if density[0] > 0 and radius * least > reach:
            last = (density * speed).integral().reversion()[_TERMS]
            rest = abs(last) * (arb(1) / 2 + abs(there)) ** _TERMS
            return _Model(polynomial, rest, 1 / least)
    return None


def _distance(law: Ideal, quarter: int, z: arb) -> tuple[arb, int]:
    """T at a point, and whether it grows with z."""
    from_end = 4 * (law.below(z) if quarter < 2 else law.above(z))
    outer = quarter in (0, 3)
    return from_end if outer else 2 - from_end, 1 if quarter in (0, 2) else -1


def _floats(model: _Model, exponent: int, degree: int) -> tuple[list[float], float]:
    """The coefficients as floats, and items (1) to (4) of the error, rounded up."""
    unknown = arb(2) ** PIECE_BITS * (arb(2) ** -exponent + arb(2) ** -53)
    error = unknown * model.slope + model.remainder
    numbers = []
    half = arb(1)
    for j, coefficient in enumerate(model.polynomial.coeffs()):
        nearest = float(coefficient.mid()) if j <= degree else 0.0
        error += abs(coefficient - arb(nearest)) * half
        half /= 2
        if j <= degree:
            numbers.append(nearest)
    numbers += [0.0] * (degree + 1 - len(numbers))
    bound = float(error.upper()) * (1 + 2.0**-40)
    return numbers, bound if arb(bound) >= error else np.inf


@contextmanager
def _terms(count: int) -> Iterator[None]:
    """Let power series have `count` terms; flint keeps that, too, in one variable."""
    before = ctx.cap
    try:
        ctx.cap = count
        yield
    finally:
        ctx.cap = before
