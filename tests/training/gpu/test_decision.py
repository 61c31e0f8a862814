"""Draws decided by balls: ChaCha20, the further bits, and one pair of uniforms for both numbers."""

import os
from fractions import Fraction
from math import cos, log, pi, sin, sqrt

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from lastbit.errors import PrecisionExhausted
from lastbit.sampling.deterministic import Counting, Replay, Seeded
from lastbit.training.gpu import decision
from lastbit.training.gpu.decision import Point, chacha_blocks, decided

NOBODY = Replay([])  # gives no further bits


def test_blocks_are_chacha20() -> None:
    key = Seeded(3).fill(32)
    cipher = Cipher(algorithms.ChaCha20(key.tobytes(), bytes(16)), mode=None).encryptor()
    stream = np.frombuffer(cipher.update(bytes(64 * 1000)), "<u4").reshape(-1, 16)
    counters = np.array([0, 1, 2, 500, 999])
    assert (chacha_blocks(key.view(np.uint32), counters) == stream[counters]).all()


def test_the_last_counter() -> None:
    key, last = Seeded(4).fill(32), (1 << 32) - 1
    nonce = last.to_bytes(4, "little") + bytes(12)
    cipher = Cipher(algorithms.ChaCha20(key.tobytes(), nonce), mode=None).encryptor()
    block = np.frombuffer(cipher.update(bytes(64)), "<u4")
    assert (chacha_blocks(key.view(np.uint32), np.array([last]))[0] == block).all()


def plain(u: int, v: int, deviation: float) -> tuple[float, float]:
    """The point in floats, by the angle of the plane: another way than the code's."""
    radius = deviation * sqrt(-2 * log((u + 0.5) / 2**64))
    s = ((v << 2) % 2**64) / 2**63
    angle = pi / 4 * (s - 2 if s >= 1 else s)
    major = radius * cos(angle) * (-1 if v >> 62 & 1 else 1)
    minor = radius * sin(angle)
    return (minor, major) if v >> 63 else (major, minor)


def test_points_are_those_of_floats() -> None:
    words = Seeded(5).fill(16 * 500).view(np.uint64).tolist()
    for u, v in zip(words[::2], words[1::2], strict=True):
        values = Point(NOBODY, u, v).rounded(Fraction(1 << 20), (0, 1))
        assert np.allclose(values, plain(u, v, 2.0**20), rtol=0, atol=0.51)


def test_the_eight_octants_are_all_there() -> None:
    octants = set()
    for top in range(8):
        first, second = Point(NOBODY, 1 << 63, top << 61 | 1 << 60).rounded(Fraction(1000), (0, 1))
        octants.add((first > 0, second > 0, abs(first) > abs(second)))
    assert len(octants) == 8


def test_both_numbers_have_the_same_further_bits() -> None:
    """With no bits known the two are a point: on the circle that the further bits of U give."""
    deviation = Fraction(1 << 100)
    for seed in range(20):
        bits = Counting(Seeded(seed))
        first, second = Point(bits, 1 << 62, 0x1234567 << 20).rounded(deviation, (0, 1))
        radius = Fraction(first**2 + second**2, int(deviation) ** 2)
        assert abs(float(radius) - 2 * log(4)) < 1e-15
        assert bits.requests == 1 and bits.bytes == 16  # the second needs no more than the first
        # S is within 2**-61 where it was, yet the angles of 20 seeds are all different
    angles = {Point(Seeded(s), 1 << 62, 5).rounded(deviation, (1,))[0] for s in range(20)}
    assert len(angles) == 20


def test_an_unknown_number_takes_bits_until_it_is_certain() -> None:
    """Words of zeros: U is in 0 .. 2**-64, so that only further bits tell how large R is."""
    bits = Counting(Seeded(1))
    value = Point(bits, 0, 0).rounded(Fraction(1000), (0,))
    assert 9_400 < value[0] < 12_000 and bits.requests >= 1


def test_a_draw_that_is_never_certain_is_given_up() -> None:
    class Zeros:
        def fill(self, count: int) -> np.ndarray:
            return np.zeros(count, np.uint8)

    with pytest.raises(PrecisionExhausted, match="65536 bits"):
        Point(Zeros(), 0, 0).rounded(Fraction(1), (0,))


def test_only_what_is_marked_is_decided() -> None:
    key = Seeded(6).fill(32).view(np.uint32)
    lanes, marks = np.array([3, 9]), np.array([0b10000001, 0b00001100], np.uint8)
    lane, place, value = decided(Seeded(0), key, lanes, marks, Fraction(1000))
    assert list(zip(lane.tolist(), place.tolist(), strict=True)) == [(3, 0), (3, 7), (9, 2), (9, 3)]
    every = decided(Seeded(0), key, lanes, np.full(2, 255, np.uint8), Fraction(1000))[2]
    assert value.tolist() == [every[0], every[7], every[8 + 2], every[8 + 3]]
    assert decided(Seeded(0), key, lanes[:0], marks[:0], Fraction(1))[0].size == 0


def test_nothing_is_drawn_for_what_the_first_bits_decide() -> None:
    assert os.environ  # the words alone decide: `NOBODY` would fail
    key = Seeded(7).fill(32).view(np.uint32)
    decided(NOBODY, key, np.arange(50), np.full(50, 255, np.uint8), Fraction(1 << 20))
    assert decision.MOST_BITS == 1 << 16
