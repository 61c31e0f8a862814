"""Uniform integers: the real code over all words, ties, sizes of n."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.sampling.deterministic import Seeded
from lastbit.sampling.uniform import UniformBelow, random_bits

LIMB = 4


class AllWords:
    """All values of so many small limbs at once, then a fixed word for every refinement."""

    def __init__(self, limbs: int, following: int) -> None:
        size = 1 << (LIMB * limbs)
        numbers = np.arange(size, dtype=np.uint32)
        self._limbs = iter([numbers >> np.uint32(LIMB * i) & np.uint32(15) for i in range(limbs)])
        self._following = following
        self.refined = 0

    def fill(self, count: int) -> np.ndarray:
        limb = next(self._limbs, None)
        if limb is not None:
            assert limb.nbytes == count
            return limb.view(np.uint8)
        self.refined += 1
        return np.array([self._following], np.uint64).view(np.uint8)


@pytest.mark.parametrize("n", [3, 5, 6, 7, 10, 15, 17, 100, 255, 257, 1000, 4095])
@pytest.mark.parametrize("following", [0, (1 << 64) - 1])
def test_the_real_code_over_all_words(n: int, following: int) -> None:
    """floor(n U) for every U of the word where that is one number; else by the next bits."""
    sampler = UniformBelow(n, limb_bits=LIMB, spare_bits=4)
    limbs = -(-(n.bit_length() + 4) // LIMB)
    size = 1 << (LIMB * limbs)
    source = AllWords(limbs, following)
    draws = sampler.draw(source, size)
    ties = 0
    for u, x in enumerate(draws.tolist()):
        least, most = n * u // size, (n * (u + 1) - 1) // size
        ties += least != most
        assert x == (least if least == most or following == 0 else most)
    assert source.refined == ties
    assert ties < n


def test_mutants_would_be_seen() -> None:
    """Without refinement, or by the remainder instead of the product, the counts are not alike."""
    n, size = 6, 256
    floors = np.bincount([n * u // size for u in range(size)])
    assert set(floors) != {size // n}  # ties matter: 256 words do not split into 6 parts
    assert any(n * u // size != (n * (u + 1) - 1) // size for u in range(size))


@pytest.mark.parametrize(
    "n", [6, 2**20 + 7, 2**31 - 1, 2**32 + 1, 10**18, 2**62 + 1, 2**63, 10**40]
)
def test_draws_are_floor_of_n_times_u(n: int) -> None:
    """Against Python integers on the same words, at the real limb size."""
    sampler = UniformBelow(n)
    size = 500
    draws = sampler.draw(Seeded(8), size)
    assert draws.dtype == (np.int64 if n <= 1 << 63 else object)
    if n & (n - 1) == 0:
        assert all(0 <= x < n for x in draws.tolist())
        return
    count = -(-(n.bit_length() + 44) // 32)
    source = Seeded(8)
    limbs = [source.fill(4 * size).view(np.uint32).tolist() for _ in range(count)]
    for i, x in enumerate(draws.tolist()):
        u = sum(limb[i] << (32 * k) for k, limb in enumerate(limbs))
        assert x == n * u >> (32 * count)


@given(st.integers(1, 2**200), st.integers(0, 2**32))
def test_range(n: int, seed: int) -> None:
    assert all(0 <= int(x) < n for x in UniformBelow(n).draw(Seeded(seed), 5))


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 32, 33, 53, 62, 63, 64, 100])
def test_random_bits_fill_their_range(count: int) -> None:
    draws = [int(x) for x in random_bits(Seeded(1), 4000, count)]
    assert all(0 <= x < 1 << count for x in draws)
    for position in range(count):  # each bit is fair: 2 exp(-2 * 4000 * 0.07**2) < 2**-55
        assert abs(sum(x >> position & 1 for x in draws) / 4000 - 0.5) < 0.07
