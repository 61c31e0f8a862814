"""Lazy inversion: an exact draw from an ordered law for sixteen random bits.

Law      X = the least j with U < F(j), U uniform on [0, 1): exactly the law with cumulative F
Theorem  Let low_j <= 2**62 F(j) <= high_j be integers. If the first 62 bits of U are u, then
         u < low_j proves U < F(j), and u >= high_j proves U >= F(j). So u decides X unless
         low_j <= u < high_j for some j; then more bits of U are drawn and F is enclosed more
         tightly until X is decided. No float takes part.
         The first 16 of those bits decide already unless a boundary F(j) falls into their
         interval: a table of 2**16 entries knows. Only the others take the remaining 46.
         Chance of needing more than 62 bits: at most (boundaries * 2 + 1) * 2**-62 a draw.
Source   von Neumann's and Knuth-Yao's lazy comparison; guide tables: Chen and Asau 1974
Differs  vectorised, and with a constant number of random words: for n draws, n words of 16 bits and
         as many of 64 as are enough for the undecided ones, except with probability 2**-48 a block
Checked  tests/laws/test_inversion.py
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import PrecisionExhausted
from lastbit.exact import Pair
from lastbit.sampling.bits import Bits, words
from lastbit.sampling.lazy import MOST_BITS, LazyUniform

WORD_BITS = 62
GUIDE_BITS = 16
TABLE_PLACES = 192
_UNSETTLED = np.int16(-(1 << 15))
# Blocks of draws exceed the room set aside for their hard cases with at most this probability.
_OVERFLOW_BITS = 48


Boundaries: TypeAlias = Callable[[int], Iterable[Pair]]
"""Enclosures of F(0), F(1), ... to a number of places; for finitely many cells all but the last."""


@dataclass(frozen=True, slots=True, eq=False)
class Inversion:
    """An ordered law, ready to draw from.

    Cell j is drawn where U lies in [F(j-1), F(j)); what comes out is `symbol(j)`.
    """

    boundaries: Boundaries
    symbol: Callable[[int], int]
    lows: NDArray[np.int64]
    highs: NDArray[np.int64]
    symbols: NDArray[np.int64]
    guide: NDArray[np.int16]
    word_bits: int
    guide_bits: int
    unsettled: int
    cells: int | None

    def fill(self, bits: Bits, out: NDArray[np.int64]) -> None:
        """Overwrite `out` with independent draws."""
        first = self.first_bits(bits, out.size)
        guessed = self.guide.take(first)
        np.copyto(out, guessed)
        self.settle(bits, first, np.flatnonzero(guessed == _UNSETTLED), out)

    def first_bits(self, bits: Bits, count: int) -> NDArray[np.uint16]:
        """The first bits of `count` uniforms."""
        first = words(bits, count, np.uint16)
        if self.guide_bits < GUIDE_BITS:
            first &= np.uint16((1 << self.guide_bits) - 1)
        return first

    def settle(
        self,
        bits: Bits,
        first: NDArray[np.uint16],
        places: NDArray[np.intp],
        out: NDArray[np.int64] | NDArray[np.bool_],
    ) -> None:
        """Decide the draws whose first bits did not; always the same work for a block's size."""
        room = capacity(out.size, self.unsettled, 1 << self.guide_bits)
        rest_bits = self.word_bits - self.guide_bits
        while room:
            now, places = places[:room], places[room:]
            rest = words(bits, room, np.uint64) & np.uint64((1 << rest_bits) - 1)
            word = rest.view(np.int64)
            word[: now.size] |= first[now].astype(np.int64) << rest_bits
            cell = np.searchsorted(self.lows, word, side="right")
            open_ = self.highs[cell] > word
            out[now] = self.symbols[cell[: now.size]]
            for i in np.flatnonzero(open_[: now.size]):
                out[now[i]] = self._refined(bits, int(word[i]), int(cell[i]))
            if not places.size:
                return

    def _refined(self, bits: Bits, word: int, cell: int) -> int:
        """The draw whose word lies too close to a boundary, by more bits.

        `cell` is the number of boundaries with low <= word; of those, only the ones with
        high > word are open, so X lies between the first open one and `cell`, or beyond the table.
        """
        uniform = LazyUniform(bits, word, self.word_bits)
        j = cell
        while j > 0 and int(self.highs[j]) > word:
            j -= 1
        while j + 1 != self.cells and not uniform.below(partial(self._edge, j)):
            j += 1
        return self.symbol(j)

    def _edge(self, cell: int, places: int) -> Pair:
        return next(islice(self.boundaries(places), cell, None))


def inversion(
    boundaries: Boundaries,
    symbol: Callable[[int], int],
    *,
    cells: int | None = None,
    word_bits: int = WORD_BITS,
    guide_bits: int = GUIDE_BITS,
) -> Inversion:
    """Tables for a law on cells 0, 1, 2, ..., of which there are `cells`, or no end."""
    lows, highs = _edges(boundaries, cells, word_bits)
    symbols = np.array([symbol(j) for j in range(lows.size + 1)], np.int64)
    # for each value of the first bits the symbol they decide, or the mark that they do not
    step = 1 << (word_bits - guide_bits)
    start = np.arange(1 << guide_bits, dtype=np.int64) * step
    cell = np.searchsorted(lows, start, side="right")
    same = cell == np.searchsorted(lows, start + (step - 1), side="right")
    settled = same & (highs[cell] <= start) & (np.abs(symbols[cell]) < -int(_UNSETTLED))
    guide = np.where(settled, symbols[cell], _UNSETTLED).astype(np.int16)
    unsettled = int(np.count_nonzero(~settled))
    return Inversion(
        boundaries, symbol, lows, highs, symbols, guide, word_bits, guide_bits, unsettled, cells
    )


def _edges(
    boundaries: Boundaries, cells: int | None, word_bits: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Integers around 2**w F(j), at most 2 apart: the lower ones, and the upper ones behind a -1.

    They are asked for with twice as many places until all of them are as close.
    """
    top, places = 1 << word_bits, TABLE_PLACES
    while places <= MOST_BITS:
        lows: list[int] = []
        highs: list[int] = [-1]
        spare = places - word_bits
        for below, above in islice(boundaries(places), None if cells is None else cells - 1):
            low, high = below >> spare, -(-above >> spare)
            if high - low > 2:
                break
            lows.append(max(low, lows[-1] if lows else 0))
            highs.append(min(high, top))
            if cells is None and high >= top:
                return np.array(lows, np.int64), np.array(highs, np.int64)
        else:
            return np.array(lows, np.int64), np.array(highs, np.int64)
        places *= 2
    raise PrecisionExhausted(
        f"a boundary of a law was not enclosed within {MOST_BITS} places: look for a fault"
    )


@lru_cache(maxsize=4096)
def capacity(draws: int, numerator: int, denominator: int) -> int:
    """Room for the hard cases: how many of `draws` events of this probability to be ready for.

    Theorem  P[Bin(n, p) >= k] <= exp(-n KL(k/n, p)) (Chernoff); the least k whose bound is below
             2**-48 is taken (by float: an error here costs time, never exactness)
    """
    if draws == 0 or numerator == 0:
        return 0
    p = numerator / denominator

    def rare(k: int) -> bool:
        return k == draws or draws * _divergence(k / draws, p) > _OVERFLOW_BITS * math.log(2)

    fewest = math.ceil(draws * p)
    return fewest + bisect_left(range(fewest, draws), 1, key=rare)


def _divergence(a: float, b: float) -> float:
    """Kullback-Leibler divergence of two coins, for a >= b."""
    if a <= b or b >= 1:
        return 0.0
    rest = (1 - a) * math.log((1 - a) / (1 - b)) if a < 1 else 0.0
    return a * math.log(a / b) + rest
