"""Noise that is rounded once: the law is the sampler's, here what is done with it."""

from fractions import Fraction
from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest

from lastbit.errors import InvalidParameter
from lastbit.exact import lower
from lastbit.laws import IdealGaussian, Rounded
from lastbit.training import rounded_gaussian
from tests.laws.frequency import assert_frequency, suspicious


def chance(deviation: float, value: int) -> float:
    law = NormalDist(0, deviation)
    return law.cdf(value + 0.5) - law.cdf(value - 0.5)


def test_the_law_is_that_of_a_rounded_gaussian():
    """False alarm 2**-40 each; a deviation off by 2 % is seen, and so is a zero counted twice."""
    draws = rounded_gaussian(600_000, "3/2")
    assert draws.dtype == np.int64
    for value in range(-6, 7):
        hits = int((draws == value).sum())
        assert_frequency(hits, trials=600_000, probability=chance(1.5, value))
    zeros = int((draws == 0).sum())
    for mutant in (chance(1.53, 0), 2 * chance(1.5, 0)):
        assert suspicious(zeros, trials=600_000, probability=mutant, false_alarm=2.0**-40)


def test_the_law_that_laws_knows_is_the_same():
    law = Rounded(IdealGaussian(), 0, Fraction(3, 2), 1)
    for value in range(-3, 4):
        assert lower(law.probability(value).enclosure) == pytest.approx(chance(1.5, value))


def test_coordinates_are_drawn_apart_and_anew():
    one, other = rounded_gaussian((2, 5_000), 2**24)
    assert one.shape == (5_000,)
    assert (one != other).all()
    assert abs(one.std() / 2**24 - 1) < 0.1  # ten deviations of it: sqrt(1/2/5000) = 0.01
    assert abs((one * 2.0**-24 * other * 2.0**-24).mean()) < 10 / sqrt(5_000)


def test_a_few_draws_are_drawn_by_the_exact_path():
    assert rounded_gaussian(3, "1e-9").tolist() == [0, 0, 0]
    assert rounded_gaussian((0, 4), 5).shape == (0, 4)


@pytest.mark.parametrize("deviation", [0, -1, 2**52 + 1, float("inf")])
def test_a_deviation_out_of_range_is_refused(deviation):
    with pytest.raises(InvalidParameter, match="deviation"):
        rounded_gaussian(3, deviation)
