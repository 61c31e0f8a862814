"""Discrete Gaussian draws of any rational variance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import count
from typing import Any, overload

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter
from lastbit.exact import Number, arb_of, exp_negative, nearest, positive
from lastbit.laws import DiscreteGaussian, theta
from lastbit.sampling.bits import Bits, words
from lastbit.sampling.draw import Sampler, Shape, Size, cached, drawn
from lastbit.sampling.inversion import (
    GUIDE_BITS,
    WORD_BITS,
    Inversion,
    capacity,
    inversion,
    proposals,
)
from lastbit.sampling.uniform import LazyUniform, accepted, random_bits

# Up to this standard deviation one table holds the whole law, beyond it cells of 2**b values.
_DIRECT_DEVIATION = 128
_CELLS_PER_DEVIATION = 32
_ACCEPTANCE = 0.48  # of the remainder's proposals, at least
_RESIDUAL = 32767  # no cell has this number: a draw gives up long before (see LazyUniform)


@overload
def discrete_gaussian(
    *, variance: Number | None = None, standard_deviation: Number | None = None, size: None = None
) -> int: ...
@overload
def discrete_gaussian(
    *, variance: Number | None = None, standard_deviation: Number | None = None, size: Shape
) -> NDArray[Any]: ...
def discrete_gaussian(
    *, variance: Number | None = None, standard_deviation: Number | None = None, size: Size = None
) -> int | NDArray[Any]:
    """Exact draws from the discrete Gaussian law, given its variance or its standard deviation.

    Law      P[X = k] proportional to exp(-k**2 / (2 variance)) on the integers
    Theorem  see `Direct` (small variance) and `Cells` (large variance)
    Source   CKS20, Definition 1, for the law
    Differs  no rejection from a Laplace law; any rational variance above 0; the parameter is that
             of the formula. Python integers where int64 would overflow
    Checked  tests/laws/test_gaussian.py

    >>> discrete_gaussian(variance=2, size=3).dtype
    dtype('int64')
    >>> discrete_gaussian(standard_deviation="0.1")
    0
    >>> discrete_gaussian()
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: variance is missing; pass variance= or standard_deviation=
    """
    if (variance is None) == (standard_deviation is None):
        problem = "is missing" if variance is None else "and standard_deviation are both given"
        remedy = "pass variance= or standard_deviation="
        raise InvalidParameter("variance", problem=problem, remedy=remedy)
    if variance is not None:
        return drawn(cached(gaussian_sampler, variance), size)  # type: ignore[no-any-return]
    exact = positive(standard_deviation, "standard_deviation") ** 2
    return drawn(gaussian_sampler(exact), size)  # type: ignore[no-any-return]


@lru_cache(maxsize=32, typed=True)
def gaussian_sampler(variance: Number) -> Sampler:
    """The prepared sampler of a variance: the tables of its law."""
    exact = positive(variance, "variance")
    return direct(exact) if exact <= _DIRECT_DEVIATION**2 else cells(exact)


@dataclass(frozen=True, slots=True, eq=False)
class Direct:
    """The whole law in one table, in the order 0, 1, -1, 2, -2, ..."""

    table: Inversion

    def draw(self, bits: Bits, size: int) -> NDArray[Any]:
        out = np.empty(size, np.int64)
        self.table.fill(bits, out)
        return out

    def into(self, bits: Bits, out: NDArray[np.int64], _: NDArray[np.int64]) -> None:
        """Overwrite `out` with draws."""
        self.table.fill(bits, out)


def direct(
    variance: Fraction, *, word_bits: int = WORD_BITS, guide_bits: int = GUIDE_BITS
) -> Direct:
    """The tables for a small variance."""
    law = DiscreteGaussian(variance)

    def cumulative(j: int) -> arb:
        k = (j + 1) // 2  # cells 2k-1 and 2k stand for k and -k
        upto = law.cumulative(k) - law.cumulative(-k - 1)
        return upto if j == 2 * k else upto - law.mass(k)

    def boundaries() -> Iterator[arb]:
        total = theta(variance)
        upto = arb(1)
        yield upto / total
        for k in count(1):
            weight = (-arb_of(k * k / (2 * variance))).exp()
            for _ in range(2):
                upto += weight
                yield upto / total

    return Direct(
        inversion(
            cumulative,
            lambda j: (j + 1) // 2 if j % 2 else -(j // 2),
            boundaries=boundaries,
            word_bits=word_bits,
            guide_bits=guide_bits,
        )
    )


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """A large variance: a table of cells of 2**b values, and a remainder of about one per cent.

    Law      P[X = x] = w(x)/Z, w(x) = exp(-x**2 / (2 variance))
    Theorem  Cut the integers into cells of width B = 2**b: cell (c, +) holds cB ... cB+B-1, cell
             (c, -) holds -cB-B ... -cB-1, c = 0, 1, 2, ... In cell c every abs(x) lies from cB to
             cB+B, so w(x) = m_c + (w(x) - m_c) with m_c = w(cB+B), both parts not negative.
             *Body*: with probability B m_c/Z the cell (c, sign) and then any of its values.
             *Remainder*, of total probability R = 1 - sum over cells of B m_c/Z: proportional to
             w(x) - m_c. It is drawn by rejection: cell with probability proportional to
             h_c = w(cB) - m_c (which telescopes: P[c >= a] = w(aB)), any of its values, accepted
             with probability (w(x) - m_c)/h_c, about one half.
             The sum of the two laws is w(x)/Z exactly.
    Source   the decomposition is a ziggurat (Marsaglia, Tsang 2000) with exact discrete layers
    Differs  every comparison is exact. The acceptance (exp(-E) - exp(-D)) / (1 - exp(-D)), with
             D = k(2c+1), E = k f(2c+f), k = B**2/(2 variance), f the fraction of the cell passed,
             is first tried in floats: with u = 2**-53 and D < 32 (a draw gives up before c reaches
             19400, and k <= 2**-11), f is off by at most 3u, E and D by at most 8uD + 8u, the
             exponentials by 8u more (`exp_negative`), hence p by less than
             (40uD + 64u)/(1 - exp(-D)); the tolerance is (64uD + 96u)/(1 - exp(-D)). What lies
             within it, less than one proposal in 2**38 of which a draw uses one in forty, is
             decided by balls
    Checked  tests/laws/test_gaussian.py

    The number of random words is constant: room for the draws that fall into the remainder, and
    for the proposals they need, is set aside by `capacity`.
    """

    variance: Fraction
    cell_bits: int
    body: Inversion
    remainder: Inversion
    remainder_share: tuple[int, int]

    @property
    def wide(self) -> bool:
        """Whether values beyond int64 have a chance worth a table cell."""
        return int(np.abs(self.body.symbols[1:]).max() + 1).bit_length() + self.cell_bits > 62

    def draw(self, bits: Bits, size: int) -> NDArray[Any]:
        out = np.empty(size, np.int64)
        wide = self.into(bits, out, out)
        return out if wide is None else wide

    def into(
        self, bits: Bits, cell: NDArray[np.int64], _: NDArray[np.int64]
    ) -> NDArray[Any] | None:
        """Overwrite an array with draws, or return them where int64 cannot hold them."""
        self.body.fill(bits, cell)
        rest = random_bits(bits, cell.size, self.cell_bits)
        places = np.flatnonzero(cell == _RESIDUAL)
        cell[places] = 0
        out = self._assembled(cell, rest)
        room = capacity(cell.size, *self.remainder_share)
        while room:
            now, places = places[:room], places[room:]
            found = self._remainder(bits, proposals(room, _ACCEPTANCE), now.size)
            if found.dtype != out.dtype:
                out = out.astype(np.object_)
            out[now[: found.size]] = found
            places = np.concatenate([now[found.size :], places])
            if not places.size:
                break
        return None if out is cell else out

    def _assembled(self, cell: NDArray[np.int64], rest: NDArray[Any]) -> NDArray[Any]:
        """The values cell * 2**b + rest, in Python integers where int64 could overflow."""
        largest = int(np.abs(cell).max(initial=0)) + 1
        if not self.wide and largest.bit_length() + self.cell_bits <= 62:
            cell <<= self.cell_bits
            cell += rest
            return cell
        wide = np.empty(cell.shape, np.object_)
        pairs = zip(cell.tolist(), rest.tolist(), strict=True)
        wide[:] = [(c << self.cell_bits) + r for c, r in pairs]
        return wide

    def _remainder(self, bits: Bits, size: int, need: int) -> NDArray[Any]:
        """The first `need` accepted ones of `size` proposals for the remainder, or all if fewer."""
        cell = np.empty(size, np.int64)
        self.remainder.fill(bits, cell)
        sign = random_bits(bits, size, 1)
        rest = random_bits(bits, size, self.cell_bits)
        word = (words(bits, size, np.uint64) >> np.uint64(11)).view(np.int64)
        chosen = accepted(
            word,
            self._acceptance(cell, sign, rest),
            need,
            lambda i: self._decided(bits, int(cell[i]), int(sign[i]), int(rest[i]), int(word[i])),
        )
        cell ^= -sign
        return self._assembled(cell[chosen], rest[chosen])

    def _acceptance(
        self, cell: NDArray[np.int64], sign: NDArray[np.int64], rest: NDArray[Any]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Floats that enclose 2**53 times the probability of accepting each proposal."""
        drop = max(0, self.cell_bits - 62)
        leading = rest if not drop else np.array([r >> drop for r in rest.tolist()], np.int64)
        passed = leading.astype(np.float64) * 2.0 ** -(self.cell_bits - drop)
        passed = np.where(sign == 1, 1.0 - passed, passed)
        rate = nearest(Fraction(1 << (2 * self.cell_bits)) / (2 * self.variance))
        twice = 2.0 * cell
        whole = rate * (twice + 1.0)
        end = exp_negative(np.minimum(whole, 32.0))
        here = exp_negative(np.minimum(rate * (passed * (twice + passed)), 32.0))
        height = 1.0 - end
        probability = (here - end) / height
        tolerance = (64.0 * whole + 96.0) * 2.0**-53 / height
        return (probability - tolerance) * 2.0**53, (probability + tolerance) * 2.0**53

    def _decided(self, bits: Bits, cell: int, sign: int, rest: int, word: int) -> bool:
        """Accept or not, exactly."""
        width = 1 << self.cell_bits
        start = cell * width
        end = start + width
        here = end - rest if sign else start + rest

        def weight(x: int) -> arb:
            return (-arb_of((x * x - start * start) / (2 * self.variance))).exp()

        def probability() -> arb:
            return (weight(here) - weight(end)) / (1 - weight(end))

        return LazyUniform(bits, word, 53).below(probability)


def cells(variance: Fraction, *, cells_per_deviation: int = _CELLS_PER_DEVIATION) -> Cells:
    """The tables for a large variance."""
    cell_bits = 0
    while (cells_per_deviation << (cell_bits + 1)) ** 2 <= variance:
        cell_bits += 1
    width = 1 << cell_bits
    coarse = variance / width**2  # the variance counted in cells

    def weight(c: int) -> arb:
        return (-arb_of(c * c / (2 * coarse))).exp()

    def remainder_share() -> arb:
        return 1 - width * (theta(coarse) - 1) / theta(variance)

    def cumulative(j: int) -> arb:
        """Cell 0 is the remainder, cells 2c+1 and 2c+2 are (c, +) and (c, -)."""
        if j == 0:
            return remainder_share()
        c, part = divmod(j - 1, 2)
        below = sum((weight(i) for i in range(1, c + 1)), arb(0))
        bodies = 2 * below + (part + 1) * weight(c + 1)
        return remainder_share() + width * bodies / theta(variance)

    def boundaries() -> Iterator[arb]:
        upto = remainder_share()
        factor = width / theta(variance)
        yield upto
        for c in count(1):
            mass = factor * weight(c)
            for _ in range(2):
                upto += mass
                yield upto

    def symbol(j: int) -> int:
        if j == 0:
            return _RESIDUAL
        c, part = divmod(j - 1, 2)
        return ~c if part else c

    body = inversion(cumulative, symbol, boundaries=boundaries)
    remainder = inversion(lambda c: 1 - weight(c + 1), lambda c: c)
    share = (int(body.highs[1]) >> (body.word_bits - 30)) + 1, 1 << 30
    return Cells(variance, cell_bits, body, remainder, share)
