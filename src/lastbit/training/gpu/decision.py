"""Draws that the kernel left open, decided exactly: from the same bits, then more of them.

Law      the point of the words u, v (`gaussian.py`), U and S having further bits from `bits`
Theorem  both numbers of a point are decided with one and the same U and S, so that the two, also
         where the kernel was certain of one, are round(A), round(B) of one point: independent
         rounded normal numbers
Proof    a ball of A over all further bits is rounded only if every number in it rounds to the same;
         else U and S get 64 bits more each. The bits come from the operating system's keystream and
         not from the key of the call, of which nothing more is used.  []
Differs  after 2**16 bits `PrecisionExhausted` is raised: below one chance in 2**65000
Checked  tests/training/gpu/test_decision.py
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.errors import PrecisionExhausted
from lastbit.exact import arb_of, working_precision
from lastbit.sampling import Bits, words

MOST_BITS = 1 << 16
DRAWS = 8
"""Numbers that one block of ChaCha20 gives: two for each of its four points."""
_SIGMA = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_ROUNDS = 20
_STEPS = ((0, 1, 3, 16), (2, 3, 1, 12), (0, 1, 3, 8), (2, 3, 1, 7))


def decided(
    bits: Bits, key: NDArray[np.uint32], lanes: NDArray[np.int64], marks: NDArray[np.uint8],
    deviation: Fraction,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:  # fmt: skip
    """Lane, place among its eight, and value of each number marked as open."""
    found: list[tuple[int, int, int]] = []
    for lane, mark, block in zip(
        lanes.tolist(), marks.tolist(), chacha_blocks(key, lanes).tolist(), strict=True
    ):
        for i in range(DRAWS // 2):
            wanted = [j for j in (0, 1) if mark >> (2 * i + j) & 1]
            if wanted:
                a, b, c, d = block[4 * i : 4 * i + 4]
                values = Point(bits, a << 32 | b, c << 32 | d).rounded(deviation, wanted)
                found += [(lane, 2 * i + j, value) for j, value in zip(wanted, values, strict=True)]
    table = np.array(found, np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


class Point:
    """A point of the plane by two uniform numbers, known to 64 bits, and finer on demand."""

    __slots__ = ("_bits", "_changed", "_count", "_negative", "_s", "_u")

    def __init__(self, bits: Bits, u: int, v: int) -> None:
        self._bits = bits
        self._u, self._count = u, 64
        self._changed, self._negative = v >> 63 == 1, v >> 62 & 1 == 1
        s = v & (1 << 62) - 1
        self._s = s - (1 << 62) if s >> 61 else s  # S is in s .. s + 1, over 2**(count - 3)

    def rounded(self, deviation: Fraction, wanted: Iterable[int]) -> list[int]:
        """round(first) if 0 is wanted, round(second) if 1."""
        return [self._one(deviation, (j == 1) == self._changed) for j in wanted]

    def _one(self, deviation: Fraction, major: bool) -> int:
        while True:
            value = self._near(deviation, major)
            if value is not None:
                return value
            if self._count >= MOST_BITS:
                raise PrecisionExhausted(
                    f"a random number was still undecided at {self._count} bits; "
                    "the chance of that is below 2**-65000: look for a fault"
                )
            more, further = words(self._bits, 2, np.uint64).tolist()
            self._u = self._u << 64 | more
            self._s = self._s << 64 | further
            self._count += 64

    def _near(self, deviation: Fraction, major: bool) -> int | None:
        """The number rounded, if all further bits give the same."""
        with working_precision(self._count + 64):
            share = _cell(self._u, self._count)
            turn = _cell(self._s, self._count - 3) / 4
            radius = arb_of(deviation) * (-2 * share.log()).sqrt()
            value = radius * (turn.cos_pi() if major else turn.sin_pi())
            if major and self._negative:
                value = -value
            half = value + arb(0.5)
            whole = half.floor().unique_fmpz() if half.is_finite() else None
        return None if whole is None else int(whole)


def _cell(word: int, places: int) -> arb:
    """All numbers from word/2**places to (word + 1)/2**places."""
    return arb(2 * word + 1, 1) / arb(2) ** (places + 1)


def chacha_blocks(key: NDArray[np.uint32], counters: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Blocks of ChaCha20 under a key of eight words, nonce 0: one row of sixteen words a counter.

    >>> zero = chacha_blocks(np.zeros(8, np.uint32), np.array([0]))
    >>> hex(int(zero[0, 0])), hex(int(zero[0, 15]))
    ('0xade0b876', '0x8665eeb2')
    """
    start = np.zeros((4, 4, counters.size), "<u8")
    start[0] = np.array(_SIGMA)[:, np.newaxis]
    start[1:3] = key.reshape(2, 4)[:, :, np.newaxis]
    start[3, 0] = counters
    # A row of the state, of all blocks, is one integer with 64 bits a word: for the few blocks of a
    # step that takes a tenth of the time of arrays
    first = [int.from_bytes(row.tobytes(), "little") for row in start]
    size = start[0].nbytes
    low = int.from_bytes(np.full(start[0].shape, 0xFFFFFFFF, "<u8").tobytes(), "little")
    column, rest = 2 * size, 6 * size  # bits of one column of a row, and of the three others
    x = list(first)
    for _ in range(_ROUNDS // 2):
        for turns in ((1, 2, 3), (3, 2, 1)):  # diagonals become columns, and columns again
            for to, by, source, places in _STEPS:
                x[to] = x[to] + x[by] & low
                mixed = x[source] ^ x[to]
                x[source] = (mixed << places | mixed >> 32 - places) & low
            for row, turn in enumerate(turns, 1):
                for _ in range(turn):
                    x[row] = x[row] >> column | (x[row] & (1 << column) - 1) << rest
    ends = [
        (row + begin & low).to_bytes(size, "little") for row, begin in zip(x, first, strict=True)
    ]
    blocks = np.frombuffer(b"".join(ends), "<u8").reshape(16, -1)
    return np.ascontiguousarray(blocks.T.astype(np.uint32))
