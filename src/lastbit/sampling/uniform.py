"""Uniform integers below any n, and uniform reals known to as many bits as a question needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, overload

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.errors import PrecisionExhausted
from lastbit.exact import arb_of, floor_ceil, whole, working_precision
from lastbit.sampling.bits import Bits, words
from lastbit.sampling.draw import Shape, Size, cached, drawn

LIMB_BITS = 32
# This many bits beyond those of n make a tie less likely than 2**-44.
_SPARE_BITS = 44
_LOW_HALF = np.uint64((1 << 32) - 1)
_HALF = np.uint64(32)


@overload
def uniform_below(n: int, size: None = None) -> int: ...
@overload
def uniform_below(n: int, size: Shape) -> NDArray[Any]: ...
def uniform_below(n: int, size: Size = None) -> int | NDArray[Any]:
    """Exact uniform draws from 0 ... n-1.

    Law      P[X = k] = 1/n
    Theorem  X = floor(n U), U uniform on [0, 1). From the first w bits u of U, floor(n u / 2**w)
             is X unless adding n to the fraction n u mod 2**w carries over: then more bits are
             drawn. That happens with probability below n / 2**w <= 2**-44
    Source   Lemire 2019 for the product, without his rejection
    Differs  any n from 1 up; Python integers for n above 2**63; never rejects, so the number of
             random words depends on n and the size alone
    Checked  tests/laws/test_uniform.py

    >>> uniform_below(1)
    0
    >>> uniform_below(6, size=5).max() < 6
    np.True_
    >>> uniform_below(0)
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: n is below 1; pass a whole number from 1 up
    """
    return drawn(cached(_uniform, n), size)  # type: ignore[no-any-return]


@lru_cache(maxsize=64, typed=True)
def _uniform(n: int) -> UniformBelow:
    return UniformBelow(whole(n, "n", least=1))


@dataclass(frozen=True, slots=True)
class UniformBelow:
    """Integers below n from products of 32-bit limbs; `limb_bits` is smaller in tests only."""

    n: int
    limb_bits: int = LIMB_BITS
    spare_bits: int = _SPARE_BITS
    public_bits: int = 0
    """If n is a secret of at most this many bits, the work depends on this number instead."""

    def draw(self, bits: Bits, size: int) -> NDArray[Any]:
        if not self.public_bits and self.n & (self.n - 1) == 0:
            return random_bits(bits, size, self.n.bit_length() - 1)
        length = self.public_bits or self.n.bit_length()
        full = (1 << self.limb_bits) - 1
        limbs = max(1, -(-length // self.limb_bits))
        factors = [self.n >> (i * self.limb_bits) & full for i in range(limbs)]
        count = -(-(length + self.spare_bits) // self.limb_bits)
        mask = np.uint64(full)
        uniform = [words(bits, size, np.uint32).astype(np.uint64) & mask for _ in range(count)]
        product = _product(uniform, factors, self.limb_bits)
        out = _assembled(product[count:], self.limb_bits, length)
        # where the fraction plus n would carry, one unit more of U could make X larger
        limit = (1 << self.limb_bits * count) - self.n
        for i in np.flatnonzero(product[count - 1] == mask):
            if _value([int(limb[i]) for limb in product[:count]], self.limb_bits) > limit:
                out[i] = self._refined(bits, [int(limb[i]) for limb in uniform])
        return out

    def _refined(self, bits: Bits, limbs: list[int]) -> int:
        count = self.limb_bits * len(limbs)
        uniform = LazyUniform(bits, _value(limbs, self.limb_bits), count)
        x = self.n * uniform.word >> count
        return x if uniform.below(lambda: arb_of(Fraction(x + 1, self.n))) else x + 1


def below_each(bits: Bits, counts: NDArray[np.uint64]) -> NDArray[np.int64]:
    """For every k of an array a uniform integer from 0 to k-1, each from 64 bits of its own.

    Law      P[X = x] = 1/k, for every k from 1 to 2**32 - 1 (0 where k is 0)
    Theorem  X = floor(k U). The upper half of a product of 128 bits is X unless one unit more in
             the last place of U would carry; then more bits of U decide. That happens with
             probability below k/2**64 < 2**-32
    Checked  tests/mechanisms/test_permute_and_flip.py
    """
    word = words(bits, counts.size, np.uint64)
    lower = (word & _LOW_HALF) * counts
    higher = (word >> _HALF) * counts + (lower >> _HALF)  # at most 2**64 - 2**32
    rank = (higher >> _HALF).view(np.int64)
    fraction = (higher << _HALF) | (lower & _LOW_HALF)
    # one unit more of U adds k to the fraction: does that carry?
    for i in np.flatnonzero(fraction > ~counts + np.uint64(1)):
        rank[i] += _carries(bits, int(word[i]), Fraction(int(rank[i]) + 1, int(counts[i])))
    return rank


def _carries(bits: Bits, word: int, edge: Fraction) -> bool:
    """Whether a uniform that starts with this word is not below the edge."""
    return not LazyUniform(bits, word, 64).below(lambda: arb_of(edge))


def random_bits(bits: Bits, size: int, count: int) -> NDArray[Any]:
    """`size` uniform integers of `count` bits: int64 up to 63 bits, Python integers beyond."""
    if count <= 63:
        kind: Any = np.uint16 if count <= 16 else np.uint32 if count <= 32 else np.uint64
        short: NDArray[Any] = words(bits, size, kind) & kind((1 << count) - 1)
        return short.astype(np.int64)
    limbs = [words(bits, size, np.uint32).astype(np.uint64) for _ in range(-(-count // LIMB_BITS))]
    limbs[-1] >>= np.uint64(LIMB_BITS * len(limbs) - count)
    return _assembled(limbs, LIMB_BITS, count)


def _product(
    uniform: list[NDArray[np.uint64]], factors: list[int], limb_bits: int
) -> list[NDArray[np.uint64]]:
    """The limbs of uniform * factors, least first; every partial sum fits into 64 bits."""
    shift, mask = np.uint64(limb_bits), np.uint64((1 << limb_bits) - 1)
    product = [np.zeros_like(uniform[0]) for _ in range(len(uniform) + len(factors))]
    for j, factor in enumerate(factors):
        carry = np.uint64(0)
        for i, limb in enumerate(uniform):
            # (2**32 - 1)**2 + 2 (2**32 - 1) = 2**64 - 1
            total = limb * np.uint64(factor)
            total += product[i + j]
            total += carry
            product[i + j] = total & mask
            carry = total >> shift  # type: ignore[assignment]
        product[j + len(uniform)] += carry
    return product


def _assembled(limbs: list[NDArray[np.uint64]], limb_bits: int, bit_length: int) -> NDArray[Any]:
    """Limbs to numbers: int64 where all numbers of that length fit, else Python integers."""
    if bit_length <= 63:
        out = np.zeros(limbs[0].shape, np.uint64)
        for i, limb in enumerate(limbs):
            out |= limb << np.uint64(i * limb_bits)
        return out.view(np.int64)
    columns = [limb.tolist() for limb in limbs]
    wide = np.empty(limbs[0].shape, np.object_)
    wide[:] = [_value(list(row), limb_bits) for row in zip(*columns, strict=True)]
    return wide


def _value(limbs: list[int], limb_bits: int) -> int:
    return sum(limb << (i * limb_bits) for i, limb in enumerate(limbs))


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
            if self.count >= MOST_BITS:
                raise PrecisionExhausted(
                    f"a random number was still undecided at {self.count} bits; "
                    "its law gives this less than one chance in 2**65000: look for a fault"
                )
            self.word = self.word << 64 | int(words(self._bits, 1, np.uint64)[0])
            self.count += 64
