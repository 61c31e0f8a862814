"""Discrete Gaussian draws of any rational variance from tables: many a microsecond."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.exact import (
    Pair,
    complement,
    exp_between,
    exp_negative,
    gaussian_weights,
    product,
    share,
    shorter,
    theta_between,
)
from lastbit.sampling.bits import Bits, words
from lastbit.sampling.blocks import Sampler
from lastbit.sampling.inversion import (
    GUIDE_BITS,
    WORD_BITS,
    Inversion,
    capacity,
    inversion,
)
from lastbit.sampling.lazy import LazyUniform, accepted, check_parameter, proposals
from lastbit.sampling.uniform import random_bits

# Up to this standard deviation one table holds the whole law, beyond it cells of 2**b values.
_DIRECT_DEVIATION = 128
_CELLS_PER_DEVIATION = 32
_SPARE = 64  # places of a sum of weights beyond those asked for
_ACCEPTANCE = 0.48  # of the remainder's proposals, at least
_RESIDUAL = 32767  # no cell has this number: a draw gives up long before (see LazyUniform)


@lru_cache(maxsize=32, typed=True)
def gaussian_sampler(variance: Fraction) -> Sampler:
    """The prepared sampler of the discrete Gaussian law of a variance.

    Law      P[X = k] proportional to exp(-k**2 / (2 variance)) on the integers
    Theorem  see `Direct` (small variance) and `Cells` (large variance)
    Source   CKS20, Definition 1, for the law
    Checked  tests/laws/test_gaussian.py
    """
    check_parameter(variance, "variance")
    return direct(variance) if variance <= _DIRECT_DEVIATION**2 else cells(variance)


@dataclass(frozen=True, slots=True, eq=False)
class Direct:
    """The whole law in one table, in the order 0, 1, -1, 2, -2, ..."""

    table: Inversion

    def draw(self, bits: Bits, size: int) -> NDArray[Any]:
        out = np.empty(size, np.int64)
        self.table.fill(bits, out)
        return out


def direct(
    variance: Fraction, *, word_bits: int = WORD_BITS, guide_bits: int = GUIDE_BITS
) -> Direct:
    """The tables for a small variance: cells 2k-1 and 2k stand for k and -k."""

    def boundaries(places: int) -> Iterator[Pair]:
        working = places + _SPARE
        one = 1 << working
        unit = share((one, one), theta_between(variance, working), working)
        low = high = 0
        for k, (below, above) in enumerate(gaussian_weights(variance, working)):
            for _ in range(2 if k else 1):
                low, high = low + below, high + above
                yield shorter(product((low, high), unit, working), _SPARE)

    return Direct(
        inversion(
            boundaries,
            lambda j: (j + 1) // 2 if j % 2 else -(j // 2),
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
             decided by integers
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
        cell = np.empty(size, np.int64)
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
        return out

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
        squares = Fraction(1 << (2 * self.cell_bits)) / (2 * self.variance)
        rate = squares.numerator / squares.denominator
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

        def weight(x: int, places: int) -> Pair:
            return exp_between((x * x - start * start) / (2 * self.variance), places)

        def probability(places: int) -> Pair:
            working = places + _SPARE
            low, high = weight(here, working)
            last = weight(end, working)
            above = low - last[1], high - last[0]
            return shorter(share(above, complement(last, working), working), _SPARE)

        return LazyUniform(bits, word, 53).below(probability)


def cells(variance: Fraction, *, cells_per_deviation: int = _CELLS_PER_DEVIATION) -> Cells:
    """The tables for a large variance."""
    cell_bits = 0
    while (cells_per_deviation << (cell_bits + 1)) ** 2 <= variance:
        cell_bits += 1
    width = 1 << cell_bits
    coarse = variance / width**2  # the variance counted in cells

    def body_boundaries(places: int) -> Iterator[Pair]:
        """Cell 0 is the remainder, cells 2c+1 and 2c+2 are (c, +) and (c, -).

        What lies behind a boundary are bodies, B m_c/Z each, and all of them add up to
        B (theta(coarse) - 1)/Z.
        """
        working = places + _SPARE
        one = 1 << working
        unit = share((width * one, width * one), theta_between(variance, working), working)
        low, high = (end - one for end in theta_between(coarse, working))
        for c, (below, above) in enumerate(gaussian_weights(coarse, working)):
            for _ in range(2 if c else 1):
                if c:
                    low, high = max(low - above, 0), high - below
                behind = product((low, high), unit, working)
                yield shorter(complement(behind, working), _SPARE)

    def remainder_boundaries(places: int) -> Iterator[Pair]:
        working = places + _SPARE
        for weight in islice(gaussian_weights(coarse, working), 1, None):
            yield shorter(complement(weight, working), _SPARE)

    def symbol(j: int) -> int:
        if j == 0:
            return _RESIDUAL
        c, part = divmod(j - 1, 2)
        return ~c if part else c

    body = inversion(body_boundaries, symbol)
    remainder = inversion(remainder_boundaries, int)
    hard = (int(body.highs[1]) >> (body.word_bits - 30)) + 1, 1 << 30
    return Cells(variance, cell_bits, body, remainder, hard)
