"""Uniform reals known to as many bits as a question needs, and uniform integers of some bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import PrecisionExhausted
from lastbit.exact import Enclosure
from lastbit.sampling.bits import Bits, words

LIMB_BITS = 32
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
                    "its law gives this less than one chance in 2**65000: look for a fault"
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


def random_bits(bits: Bits, size: int, count: int) -> NDArray[Any]:
    """`size` uniform integers of `count` bits: int64 up to 63 bits, Python integers beyond."""
    if count <= 63:
        kind: Any = np.uint16 if count <= 16 else np.uint32 if count <= 32 else np.uint64
        short: NDArray[Any] = words(bits, size, kind) & kind((1 << count) - 1)
        return short.astype(np.int64)
    limbs = [words(bits, size, np.uint32).astype(np.uint64) for _ in range(-(-count // LIMB_BITS))]
    limbs[-1] >>= np.uint64(LIMB_BITS * len(limbs) - count)
    return assembled(limbs, LIMB_BITS, count)


def assembled(limbs: list[NDArray[np.uint64]], limb_bits: int, bit_length: int) -> NDArray[Any]:
    """Limbs to numbers: int64 where all numbers of that length fit, else Python integers."""
    if bit_length <= 63:
        out = np.zeros(limbs[0].shape, np.uint64)
        for i, limb in enumerate(limbs):
            out |= limb << np.uint64(i * limb_bits)
        return out.view(np.int64)
    columns = [limb.tolist() for limb in limbs]
    wide = np.empty(limbs[0].shape, np.object_)
    wide[:] = [limb_sum(list(row), limb_bits) for row in zip(*columns, strict=True)]
    return wide


def limb_sum(limbs: list[int], limb_bits: int) -> int:
    """The number with these limbs, least first."""
    return sum(limb << (i * limb_bits) for i, limb in enumerate(limbs))
