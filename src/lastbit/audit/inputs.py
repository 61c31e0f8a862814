"""What an auditor chooses: repeatable choices from a seed, and neighbouring inputs to try.

Nothing here is noise. A mechanism under test draws its own randomness; an audit only decides what
to look at, and must decide the same when it is run again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence, Sized
from itertools import islice
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import whole

Pair: TypeAlias = tuple[Any, Any]
Item = TypeVar("Item")
MOST_PAIRS = 256


class SeededRandom:
    """A stream of choices that a seed decides.

    Law      block i of the stream is BLAKE2b(seed, label, i); `below` rejects the uneven rest
    Differs  for choices only: the seed determines them all
    Checked  tests/audit/test_inputs.py

    >>> SeededRandom(7).below(10) == SeededRandom(7).below(10), SeededRandom(7).below(1)
    (True, 0)
    """

    def __init__(self, seed: int, label: str = "") -> None:
        number = whole(seed, "seed")
        self._key = hashlib.blake2b(f"{number}/{label}".encode()).digest()
        self._count = 0

    def word(self) -> int:
        block = self._key + self._count.to_bytes(8, "big")
        self._count += 1
        return int.from_bytes(hashlib.blake2b(block, digest_size=8).digest(), "big")

    def below(self, n: int) -> int:
        """A whole number from 0 to n-1, for n up to 2**64."""
        count = whole(n, "n", least=1)
        if count > 1 << 64:
            raise InvalidParameter("n", problem="is above 2**64", remedy="pass a smaller one")
        even = (1 << 64) - (1 << 64) % count
        while (number := self.word()) >= even:
            pass
        return number % count

    def order(self, items: Sequence[Item]) -> list[Item]:
        """The items in a random order.

        >>> sorted(SeededRandom(1).order("abc"))
        ['a', 'b', 'c']
        """
        moved = list(items)
        for last in range(len(moved) - 1, 0, -1):
            place = self.below(last + 1)
            moved[last], moved[place] = moved[place], moved[last]
        return moved

    def signs(self, count: int) -> NDArray[np.float64]:
        return np.array([1.0 - 2.0 * self.below(2) for _ in range(count)])


def one_may_move(length: int) -> list[Pair]:
    """Neighbouring vectors of which one entry differs by 1: histograms, counts of one person.

    >>> [(x.tolist(), y.tolist()) for x, y in one_may_move(2)]
    [([1.0, 1.0], [0.0, 1.0]), ([1.0, 1.0], [2.0, 1.0])]
    """
    size = whole(length, "length", least=1)
    even = np.ones(size)
    first = (np.arange(size) == 0).astype(float)
    return [(even, even - first), (even, even + first)]


def all_may_move(length: int) -> list[Pair]:
    """Neighbouring vectors of which each entry differs by at most 1: many queries of one person.

    Source   the patterns of Ding et al. 2018: one above, one below, one above and the rest below,
             one below and the rest above, half and half, all above, all below, and an X
    Differs  also the last entry against the rest: what was answered before it is what leaks

    >>> len(all_may_move(5))
    11
    """
    size = whole(length, "length", least=1)
    even = np.ones(size)
    place = np.arange(size)
    first, half, last = place == 0, place < size // 2, place == size - 1
    moves = [
        np.where(first, -1, 0),
        np.where(first, 1, 0),
        np.where(first, 1, -1),
        np.where(first, -1, 1),
        np.where(half, 1, -1),
        np.where(half, -1, 1),
        np.ones(size),
        -np.ones(size),
        np.where(last, 1, -1),
        np.where(last, -1, 1),
    ]
    pairs = [(even, even + move) for move in moves]
    down = np.where(half, 0.0, -1.0)
    return [*pairs, (even + down, even - 1 - down)]


def listed(pairs: Any) -> list[Pair]:
    """A pair (a tuple of two), or any other collection or generator of pairs, as a list.

    Of a generator, which may have no end, the first 256 are taken. A tuple of two tuples of two is
    refused: read as one pair or as two, it may hold inputs that were not called neighbours.

    >>> listed((0, 1)), len(listed([(0, 1), (1, 2)]))
    ([(0, 1)], 2)
    """
    one = isinstance(pairs, tuple) and len(pairs) == 2
    if one and all(isinstance(part, tuple) and len(part) == 2 for part in pairs):
        raise InvalidParameter(
            "pairs",
            problem="may be one pair or two",
            remedy="pass a list: [(a, b), (c, d)] for two pairs, [((a, b), (c, d))] for one",
        )
    remedy = "pass a tuple (x, y), or a list of such tuples"
    try:
        most = len(pairs) if isinstance(pairs, Sized) else MOST_PAIRS
        given = [pairs] if one else list(islice(pairs, most))
    except TypeError:
        raise WrongType("pairs", problem="are not pairs", remedy=remedy) from None
    if not given:
        raise InvalidParameter("pairs", problem="are empty", remedy="pass two neighbouring inputs")
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in given):
        problem = "hold something that is not a pair"
        raise WrongType("pairs", problem=problem, remedy=remedy)
    return [(x, y) for x, y in given]
