"""Uniform integers below any n."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from lastbit.exact import rational_between, whole
from lastbit.sampling.bits import Bits, words
from lastbit.sampling.draw import Shape, Size, cached, drawn
from lastbit.sampling.lazy import LazyUniform

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
        out = assembled(product[count:], self.limb_bits, length)
        # where the fraction plus n would carry, one unit more of U could make X larger
        limit = (1 << self.limb_bits * count) - self.n
        for i in np.flatnonzero(product[count - 1] == mask):
            if limb_sum([int(limb[i]) for limb in product[:count]], self.limb_bits) > limit:
                out[i] = self._refined(bits, [int(limb[i]) for limb in uniform])
        return out

    def _refined(self, bits: Bits, limbs: list[int]) -> int:
        count = self.limb_bits * len(limbs)
        uniform = LazyUniform(bits, limb_sum(limbs, self.limb_bits), count)
        x = self.n * uniform.word >> count
        return x if uniform.below(partial(rational_between, Fraction(x + 1, self.n))) else x + 1


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
    return not LazyUniform(bits, word, 64).below(partial(rational_between, edge))


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
