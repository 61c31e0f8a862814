"""Uniform reals known to as many bits as a question needs."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, PrecisionExhausted, WrongType
from lastbit.exact import Enclosure, Pair, exp_between
from lastbit.sampling.bits import Bits, words

MOST_BITS = 1 << 16


class LazyUniform:
    """U uniform on [0, 1): known to lie in [word, word+1) / 2**count, and finer on demand.

    Law      U is one real number; every answer about it is consistent with every other
    Theorem  each further 64 bits leave a question about a fixed real x open with probability at
             most 2**-62 or so, whatever x is, also if x is dyadic or rational: the bits of U are
             random even where those of x are not
    Differs  after 2**16 bits PrecisionExhausted is raised, which happens to a draw with
             probability below 2**-65000
    Checked  tests/laws/test_inversion.py
    """

    __slots__ = ("_bits", "count", "word")

    def __init__(self, bits: Bits, word: int = 0, count: int = 0) -> None:
        self._bits = bits
        self.word = word
        self.count = count

    def below(self, bound: Enclosure) -> bool:
        """Whether U < bound, for a bound that can be enclosed to any number of places."""
        while True:
            low, high = bound(self.count + 64)
            if self.word + 1 << 64 <= low:
                return True
            if self.word << 64 >= high:
                return False
            if self.count >= MOST_BITS:
                raise PrecisionExhausted(
                    f"a random number was still undecided at {self.count} bits; "
                    "that hardly ever happens (once in 2**65000): look for a fault"
                )
            self.word = self.word << 64 | int(words(self._bits, 1, np.uint64)[0])
            self.count += 64


def accepted(
    word: NDArray[np.int64],
    ends: tuple[NDArray[np.float64], NDArray[np.float64]],
    need: int,
    decided: Callable[[int], bool],
) -> NDArray[np.intp]:
    """The first `need` accepted proposals, by the first 53 bits of a uniform for each.

    `ends` enclose 2**53 times the probability of accepting each; what they leave open is `decided`
    exactly, unless enough were accepted before it.
    """
    low, high = ends
    accept = word + 1 <= low
    for i in np.flatnonzero((word < high) & ~accept):
        if np.count_nonzero(accept[:i]) >= need:
            break  # what comes later is not used: leave it undecided
        accept[i] = decided(int(i))
    return np.flatnonzero(accept)[:need]


def falls_below(bits: Bits, word: int, distance: Fraction, share: Fraction = Fraction(1)) -> bool:
    """Whether a uniform real that begins with these 53 bits is below share * exp(-distance)."""

    def bound(places: int) -> Pair:
        low, high = exp_between(distance, places)
        return low * share.numerator // share.denominator, -(
            -high * share.numerator // share.denominator
        )

    return LazyUniform(bits, word, 53).below(bound)


def proposals(size: int, acceptance: float) -> int:
    """How many proposals to draw so that, accepted at least this often, `size` of them surely are.

    Theorem  P[Bin(m, a) < size] <= exp(-2 (a m - size)**2 / m) (Hoeffding), here below 2**-48; then
             another batch is drawn
    """
    margin = 17.0  # > 48 ln 2 / 2
    root = (margin**0.5 + (margin + 4 * acceptance * size) ** 0.5) / (2 * acceptance)
    return int(root * root) + 1


def check_parameter(number: Fraction, name: str) -> None:
    """Refuse a parameter of a law that is not an exact rational above 0."""
    if not isinstance(number, Fraction):
        raise WrongType(name, problem="is no Fraction", remedy="pass an exact rational")
    if number <= 0:
        raise InvalidParameter(name, problem="is not above 0", remedy="pass a number above 0")
