"""The only door to entropy.

Every random bit of lastbit comes from here: the keystream of AES-256 in counter mode, keyed by the
operating system, one stream a thread.

Law      the bytes are those of AES-256-CTR under a key and a counter of 48 bytes from the system
Theorem  an adversary who cannot tell AES-256 from a random permutation tells a stream of 2**24
         bytes (the most under one key, 2**20 blocks) from true randomness with an advantage of at
         most 2**-89 (the switching lemma: 2**40 / 2**129). Everything above is private against such
         an adversary: computational differential privacy, paper 003 Definition 4
Differs  no state is kept in Python between two requests, so that a signal handler that draws
         in the middle of a draw cannot see the same bytes: the cipher's counter moves in one call
Checked  tests/sampling/test_bits.py

**Fork.** A child process starts with a copy of its parent's memory and would repeat its noise.
Each stream therefore holds a page of memory that the kernel empties in a child
(`MADV_WIPEONFORK`); where the kernel cannot, the process number stands in, and Python's own fork
hook is heeded besides. The check comes *after* the bytes were made and before anybody sees them; a
stream that finds itself in a child begins a new life, with a new key and nothing drawn ahead, and
whatever was being made with the old one is thrown away (`KeyStream.life`).

**Failure.** If the system gives no entropy, `EntropyUnavailable` is raised, nothing is returned,
and the next request starts with a new key.
"""

from __future__ import annotations

import mmap
import os
import threading
from typing import Any, Protocol, TypeVar

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes
from numpy.typing import NDArray

from lastbit.errors import EntropyUnavailable

BYTES_PER_KEY = 1 << 24
_ZEROS = memoryview(bytes(BYTES_PER_KEY >> 4))
_KEY_BYTES, _COUNTER_BYTES = 32, 16
_MADV_WIPEONFORK = 18  # Linux >= 4.14; Python's mmap does not name it


Word = TypeVar("Word", np.uint16, np.uint32, np.uint64)


class Bits(Protocol):
    """A source of random bytes."""

    def fill(self, count: int) -> NDArray[np.uint8]:
        """`count` fresh bytes in a new array."""
        ...


def words(bits: Bits, count: int, kind: type[Word]) -> NDArray[Word]:
    """`count` fresh random words of an unsigned integer type."""
    return bits.fill(count * np.dtype(kind).itemsize).view(kind)


class _Forks:
    """How many forks lie between the first process and this one, as far as Python saw them."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0
        os.register_at_fork(after_in_child=self.add)

    def add(self) -> None:
        self.count += 1


_FORKS = _Forks()


class _Mark:
    """A mark of the process that made it: it stands there, and in no child, however forked."""

    __slots__ = ("_forks", "_page", "_pid")

    def __init__(self) -> None:
        self._page: mmap.mmap | None = None
        try:
            page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            page.madvise(_MADV_WIPEONFORK)
            self._page = page
        except (AttributeError, OSError, ValueError):
            pass  # an older kernel or another system: the process number must do
        self._forks, self._pid = _FORKS.count, os.getpid()
        if self._page is not None:
            self._page[0] = 1

    def stands(self) -> bool:
        if self._forks != _FORKS.count:
            return False
        return self._page[0] == 1 if self._page is not None else self._pid == os.getpid()


class Life:
    """What a stream holds in one process: a key, and the draws made ahead with it.

    The mark comes first, before there is anything to share with a child, and is never set again: a
    life that began in another process is over, whatever has been done with the stream since.
    """

    __slots__ = ("_cipher", "_left", "mark", "pools")

    def __init__(self) -> None:
        self.mark = _Mark()
        self._cipher: CipherContext | None = None
        self._left = 0
        self.pools: dict[object, list[Any]] = {}

    def encrypt(self, count: int, buffer: NDArray[np.uint8]) -> None:
        """Overwrite the first `count` bytes of the buffer with keystream."""
        cipher = self._cipher
        if cipher is None or self._left < count:
            self._cipher = None
            seed = _system_bytes(_KEY_BYTES + _COUNTER_BYTES)
            key, counter = seed[:_KEY_BYTES], seed[_KEY_BYTES:]
            cipher = Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor()
            self._left = BYTES_PER_KEY
            self._cipher = cipher
        self._left -= count
        try:
            cipher.update_into(_ZEROS[:count], buffer.data)
        except BaseException:
            self._cipher = None  # never go on with a cipher in an unknown state
            raise


class KeyStream:
    """An AES-256-CTR keystream, keyed and rekeyed by the operating system. One a thread."""

    __slots__ = ("_life",)

    def __init__(self) -> None:
        self._life = Life()

    def life(self) -> Life:
        """What the stream holds in this process; after a fork, something new.

        A caller that makes something of the bytes asks before and after: only if both answers
        are one and the same object was the whole of it made in this process.
        """
        life = self._life
        if not life.mark.stands():
            self._life = life = Life()
        return life

    def fill(self, count: int) -> NDArray[np.uint8]:
        """`count` fresh bytes in a new array."""
        buffer = np.empty(count + _COUNTER_BYTES, np.uint8)  # the cipher may ask for a spare block
        while True:
            life = self.life()
            for done in range(0, count, len(_ZEROS)):
                life.encrypt(min(count - done, len(_ZEROS)), buffer[done:])
            if self.life() is life:
                return buffer[:count]


def _system_bytes(count: int) -> bytes:
    try:
        seed = os.urandom(count)
    except (OSError, NotImplementedError) as failure:
        raise EntropyUnavailable(
            "the operating system's random source failed; nothing was drawn, try again"
        ) from failure
    if len(seed) != count:
        raise EntropyUnavailable(
            "the operating system gave too few random bytes; nothing was drawn, try again"
        )
    return seed


class _Local(threading.local):
    """The stream of the thread that asks."""

    def __init__(self) -> None:
        self.stream = KeyStream()


_LOCAL = _Local()


def secure_bits() -> KeyStream:
    """The calling thread's own keystream."""
    return _LOCAL.stream
