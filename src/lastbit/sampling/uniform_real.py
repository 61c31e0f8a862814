"""A uniform real number, known to as many bits as anybody has asked about."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from flint import arb

from lastbit.errors import PrecisionExhausted
from lastbit.exact.ball import floor_ceil, working_precision
from lastbit.sampling.bits import Bits, words

__all__ = ["LazyUniform"]

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

    def below(self, bound: Callable[[], arb]) -> bool:
        """Whether U < bound, for a bound that can be enclosed at any working precision."""
        while True:
            with working_precision(self.count + 64):
                ball = bound()
                if ball >= 1 or ball <= 0:
                    return bool(ball >= 1)
                if ball.is_finite() and abs(ball) < 2:  # else it says nothing of a number of [0, 1)
                    low, high = floor_ceil(ball * arb(2) ** self.count)
                    if self.word < low:
                        return True
                    if self.word >= high:
                        return False
            self._extend()

    def _extend(self) -> None:
        if self.count >= MOST_BITS:
            raise PrecisionExhausted(
                f"a random number was still undecided at {self.count} bits; "
                "its law gives this less than one chance in 2**65000: look for a fault"
            )
        self.word = self.word << 64 | int(words(self._bits, 1, np.uint64)[0])
        self.count += 64
