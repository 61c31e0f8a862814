"""Discrete Laplace draws by exponential weights: how digits make a draw, and what lies beyond."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from lastbit.laws.discrete import DiscreteLaplace
from lastbit.sampling.deterministic import Seeded
from lastbit.sampling.laplace import MOST_SCALE, SignedDigits, signed_digits
from tests.laws.oracle import decimals, exp

SCALES = [Fraction(1, 1000), Fraction(1, 3), Fraction(5), Fraction(1000, 7), Fraction(2**40)]


class Given:
    """A place whose draws are these."""

    def __init__(self, cells: list[int]) -> None:
        self.cells = np.array(cells, np.int64)

    def draw(self, bits: object, size: int) -> np.ndarray:
        return self.cells


def assembled(sampler: SignedDigits, cells: list[int], digits: list[int]) -> list[int]:
    places: Any = (Given(cells), Given(digits))
    return replace(sampler, places=places).draw(Seeded(1), len(cells)).tolist()


def test_every_number_is_made_once_and_as_far_as_it_is_large() -> None:
    """A draw x is made with the product of its parts' weights: exp(-abs(x)/scale)."""
    sampler = signed_digits(Fraction(5))
    lowest, upper = sampler.places
    cells = [cell for cell in range(512) for _ in range(256)]
    digits = list(range(256)) * 512
    values = assembled(sampler, cells, digits)
    assert sorted(values) == list(range(-(2**16), 2**16))

    def wrong(distances: np.ndarray) -> int:
        far = distances[cells] + 256 * upper.distances[0][digits]
        return int(np.count_nonzero(far != np.abs(values)))

    assert (lowest.rate, upper.rate) == (Fraction(1, 5), Fraction(256, 5))
    assert wrong(lowest.distances[0]) == 0
    assert wrong(np.arange(512) // 2) > 0  # the mutant: zero counted twice


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_places_have_the_rates_of_their_weights(scale: Fraction) -> None:
    sampler = signed_digits(scale)
    for place, choices in enumerate(sampler.places):
        assert choices.rate == Fraction(256**place) / scale
        assert choices.distances.shape == (1, 256 if place else 512)
    assert sampler.beyond == Fraction(256 ** len(sampler.places)) / scale
    with decimals():
        assert exp(-sampler.beyond) < exp(0) / 2**53  # so that a coin whose word is not 0 is tails
    assert len(sampler.places) == 1 or sampler.places[-1].rate < 64


class Tape(Seeded):
    """The words of the coins, once all digits are drawn."""

    def __init__(self, *words: int) -> None:
        super().__init__(1)
        self.words = list(words)

    def fill(self, count: int) -> np.ndarray:
        if not self.words:
            return super().fill(count)
        return np.full(count // 8, self.words.pop(0), np.uint64).view(np.uint8)


@pytest.mark.parametrize(("scale", "shift"), [(Fraction(4), 8), (Fraction(2**58), 64)])
def test_heads_in_a_row_are_what_lies_above_the_last_digit(scale: Fraction, shift: int) -> None:
    """A head takes a word of 0, and with chance exp(-64) another one to be sure."""
    sampler = signed_digits(scale)
    assert sampler.beyond == 64
    ones = (1 << 64) - 1
    for cell in (6, 7):  # 3 and -1-3
        places: Any = (Given([cell]), *(Given([0]) for _ in sampler.places[1:]))
        given = replace(sampler, places=places)
        lowest = 3 if cell == 6 else -4
        for heads, tape in ((0, (ones,)), (1, (0, 0, ones)), (2, (0, 0, 0, 0, ones))):
            (value,) = given.draw(Tape(*tape), 1).tolist()
            assert value == lowest ^ (heads << shift) and type(value) is int


@pytest.mark.parametrize("scale", [2**40, 2**56, 2**60, 10**30])
def test_large_scales(scale: int) -> None:
    draws = [int(x) for x in signed_digits(Fraction(scale)).draw(Seeded(4), 4000)]
    law = DiscreteLaplace(scale)
    for level in ("0.1", "0.5", "0.9"):
        quantile = law.quantile(level)
        below = sum(x <= quantile for x in draws)
        assert abs(below / 4000 - float(level)) < 0.06  # 2 exp(-2 * 4000 * 0.06**2) < 2**-40
    assert len(set(draws)) == len(draws)
    assert {x & 1 for x in draws} == {0, 1}  # the lowest bits are used


def test_values_beyond_int64_are_python_integers() -> None:
    draws = signed_digits(Fraction(MOST_SCALE)).draw(Seeded(2), 100).tolist()
    assert {type(x) for x in draws} == {int} and max(map(abs, draws)) > MOST_SCALE
