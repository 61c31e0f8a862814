"""The middle of the Gaussian's quantile function, as parabolas: few operations a draw."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from flint import arb, arb_series
from numpy.typing import NDArray

from lastbit.errors import NotCertified
from lastbit.exact import working_precision
from lastbit.laws import IdealGaussian

PIECE_BITS = 13
_LEAST = 1 << (PIECE_BITS - 5)  # pieces below U = 1/32 and above 31/32 are left out
_PRECISION = 128
_REST = np.uint64(64 - PIECE_BITS)
_LOW = np.uint64((1 << (64 - PIECE_BITS)) - 1)
_UP = np.uint64(52 - (64 - PIECE_BITS))
_ONE = np.uint64(1023 << 52)


@dataclass(frozen=True, slots=True, eq=False)
class Middle:
    """The Gaussian quantile function Q for 1/32 <= U < 31/32, up to one proved error.

    Law      for every U in [word, word+1] / 2**64, q = `value(word)` as computed in floats is not a
             number, or abs(Q(U) - q) <= error and abs(q) <= size
    Theorem  *Position.* The first 13 bits of the word are the piece i, of width h = 2**-13. The
             other 51, behind the exponent of 1, are a float in [1, 2); less 3/2 (exact, Sterbenz)
             it is x in [-1/2, 1/2). The true X = U/h - i - 1/2 is in [x, x + 2**-51].
             *Parabola.* Let z = Q((i + 1/2) h), in the lower half; the upper half mirrors it. Q has
             the derivatives 1/f, z/f**2, (1 + 2 z**2)/f**3, z (7 + 6 z**2)/f**4, f the density at
             Q. So Q(U) = z + t_1 X + t_2 X**2 + t_3 X**3 + R, abs(R) <= h**4/(24 16) times the
             greatest fourth derivative. That is at the outer end of the piece, as is the greatest
             first one: both grow with abs(Q). t_3 X**3 is put down as t_3 3 X/16, which is off by
             at most abs(t_3)/32: 32 X**3 - 6 X is a Chebyshev polynomial of 2X.
             *Error.* 2**-51 h times the first derivative there, abs(t_3)/32, R, the rounding of the
             coefficients, and of Horner's rule: four operations on numbers of at most the sum
             of the coefficients' sizes, each off by 2**-53 of it, doubled for all that is of second
             order. All are balls, and the upper end is taken.
             *z.* A float w near it is not trusted. With d = (i + 1/2) h - P[Z <= w], if abs(d) is
             below r = 2**-40 times the least density within r of w, z is within r of w, and by the
             mean value theorem z = w + d/f for some f of these densities
    Differs  one error for all, the greatest: about 2**-32
    Checked  tests/sampling/test_middle.py
    """

    coefficients: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]
    error: float
    size: float

    def value(self, word: NDArray[np.uint64]) -> NDArray[np.float64]:
        """The quantile of each word, or what is not a number where another way has to find it."""
        zero, one, two = self.coefficients
        index = (word >> _REST).view(np.int64)
        position = word & _LOW
        position <<= _UP
        position |= _ONE
        x = position.view(np.float64)
        x -= 1.5
        out = np.empty(word.size)
        term = np.empty(word.size)
        two.take(index, out=out, mode="clip")
        out *= x
        one.take(index, out=term, mode="clip")
        out += term
        out *= x
        zero.take(index, out=term, mode="clip")
        out += term
        return out


@lru_cache(maxsize=1)
def gaussian_middle() -> Middle:
    """The parabolas, made once in a process."""
    count = 1 << PIECE_BITS
    tables = np.full((3, count), np.nan)
    error, size = arb(0), arb(0)
    with working_precision(_PRECISION):
        for i in range(_LEAST, count // 2):
            terms, lost = _parabola(i)
            floats = [float(term.mid()) for term in terms]
            whole = sum((abs(arb(number)) for number in floats), arb(0))
            for j, (term, number) in enumerate(zip(terms, floats, strict=True)):
                lost += abs(term - arb(number)) / (1 << j)
            error = error.max(lost + whole * arb(2) ** -50)
            size = size.max(whole)
            tables[:, i] = floats
        sums = [float(number.upper()) * (1 + 2.0**-40) for number in (error, size)]
    for j, sign in enumerate((-1, 1, -1)):
        tables[j, count // 2 :] = sign * tables[j, : count // 2][::-1]
    tables.flags.writeable = False
    zero, one, two = tables
    return Middle((zero, one, two), *sums)


def _parabola(i: int) -> tuple[list[arb], arb]:
    """The coefficients of a piece of the lower half, and what they leave out."""
    law = IdealGaussian()
    width = arb(2) ** -PIECE_BITS
    level = (arb(i) + arb(1) / 2) * width
    z = _quantile(law, level)
    end = z - arb(2) ** -6
    if not law.below(end) < i * width:
        raise NotCertified("the Gaussian's table could not be proved; please report it")
    f, least = _density(law, z), _density(law, end)
    cubic = (1 + 2 * z**2) / f**3 * width**3 / 6
    lost = abs(cubic) / 32
    lost += abs(end) * (7 + 6 * end**2) / least**4 * width**4 / (24 * 16)
    lost += width / least * arb(2) ** -51
    return [z, width / f + cubic * 3 / 16, z / f**2 * width**2 / 2], lost


def _quantile(law: IdealGaussian, level: arb) -> arb:
    """Q(level), by one step from a float near it."""
    near = arb(NormalDist().inv_cdf(float(level.mid())))
    reach = arb(2) ** -40
    f = _density(law, arb(near, reach))
    off = level - law.below(near)
    if not abs(off) < reach * arb(f.lower()):
        raise NotCertified("the Gaussian's table could not be proved; please report it")
    return near + off / f


def _density(law: IdealGaussian, z: arb) -> arb:
    return law.density(arb_series([z], 1))[0]
