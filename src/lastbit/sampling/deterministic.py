"""Random sources that are not random: for tests and for enumerating laws, nothing else.

No module of the library imports this one (a contract in CI keeps it so), no public function takes a
source of bits, and nothing re-exports these names: a release cannot reach them by accident.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from lastbit.sampling.bits import Bits


class Seeded:
    """The AES-256-CTR keystream of a seed anybody can guess; the same bytes every time."""

    def __init__(self, seed: int) -> None:
        key = seed.to_bytes(32, "big")
        self._cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def fill(self, count: int) -> NDArray[np.uint8]:
        return np.frombuffer(bytearray(self._cipher.update(bytes(count))), np.uint8)


class Replay:
    """Answers each request with the next of the arrays given, which must have the right size."""

    def __init__(self, answers: Iterable[NDArray[np.generic]]) -> None:
        self._answers = iter(answers)

    def fill(self, count: int) -> NDArray[np.uint8]:
        answer = np.ascontiguousarray(next(self._answers)).view(np.uint8).ravel().copy()
        if answer.size != count:
            raise AssertionError(f"{count} bytes were asked for, the tape holds {answer.size}")
        return answer


class Counting:
    """Passes requests on and counts the bytes and the requests."""

    def __init__(self, bits: Bits) -> None:
        self._bits = bits
        self.bytes = 0
        self.requests = 0

    def fill(self, count: int) -> NDArray[np.uint8]:
        self.bytes += count
        self.requests += 1
        return self._bits.fill(count)
