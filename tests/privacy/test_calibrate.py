"""The least noise for a target: what comes back meets it, and nothing much smaller does."""

import math
from fractions import Fraction

import pytest
from hypothesis import example, given, strategies as st

from lastbit.errors import InvalidParameter
from lastbit.privacy.compose import best_composition
from lastbit.privacy.guarantees import ZCDP, ApproxDP, PureDP
from lastbit.privacy.least_noise import least_noise

CRUMB = 1 - Fraction(1, 2**38)
positive = st.fractions(min_value=Fraction(1, 10**12), max_value=10**12)


@given(positive, positive)
@example(Fraction(1), Fraction(1))
@example(Fraction(2**40), Fraction(1, 2**40))
def test_a_threshold_is_found_from_anywhere(threshold, start):
    found = least_noise(lambda noise: noise >= threshold, start=start)
    assert found >= threshold > found * CRUMB
    assert found.denominator & (found.denominator - 1) == 0  # dyadic


@pytest.mark.parametrize("bits", [1, 10, 40, 80])
def test_as_fine_as_asked(bits):
    found = least_noise(lambda noise: noise >= Fraction(1, 3), start=Fraction(5), bits=bits)
    assert Fraction(1, 3) <= found <= Fraction(1, 3) * (1 + Fraction(1, 2**bits))


@pytest.mark.parametrize("epsilon", ["0.1", 1, 5])
def test_gaussian_noise_for_an_approximate_target(epsilon):
    """A true calibration: sensitivity 1, zCDP of 1/(2 variance), CKS20's conversion."""
    target = ApproxDP(epsilon, "1e-6")

    def meets(deviation: Fraction) -> bool:
        return ZCDP(1 / (2 * deviation**2)).implies(target)

    found = least_noise(meets, start=Fraction(1))
    assert meets(found)
    assert not meets(found * CRUMB)


def test_noise_for_many_releases_together():
    def meets(scale: Fraction) -> bool:
        return best_composition([PureDP(1 / scale)] * 20, "1e-6").epsilon <= 1

    found = least_noise(meets, start=Fraction(1), bits=12)
    assert meets(found)
    assert not meets(found * (1 - Fraction(1, 2**10)))
    assert found < 20  # better than basic composition


@given(st.integers(0, 2**32 - 1), positive)
def test_whatever_the_shape_the_number_returned_was_tried(pattern, start):
    """Not monotone at all: true on some stretches above 1 only, and from 2**16 up."""
    tried = {}

    def meets(noise: Fraction) -> bool:
        stretch = math.floor(noise * 4) % 32
        tried[noise] = noise >= 2**16 or bool(pattern << 1 >> stretch & 1 and noise >= 1)
        return tried[noise]

    assert tried[least_noise(meets, start=start)]


def test_an_unreachable_target_is_refused():
    with pytest.raises(InvalidParameter, match="out of reach"):
        least_noise(lambda _: False, start=Fraction(1))


def test_a_target_met_without_noise_ends_all_the_same():
    assert 0 < least_noise(lambda _: True, start=Fraction(1)) < Fraction(1, 2**1000)


@pytest.mark.parametrize("start", [Fraction(1), Fraction(1, 10**9), Fraction(10**9)])
def test_an_error_of_the_question_is_not_swallowed(start):
    def broken(_: Fraction) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        least_noise(broken, start=start)
