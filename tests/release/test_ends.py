"""Counts, sums and means made of the distances from both bounds."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

from lastbit.laws import DiscreteGaussian, DiscreteLaplace
from lastbit.release.ends import EndsMaker, double_accuracy, double_tail
from lastbit.release.reach import MeasureNoise
from lastbit.tables import Measure


def exact_tail(scale: Fraction, a: int) -> float:
    """P[abs(X + Y) > a] by adding up the law, all but 1e-15 of it."""
    law, far = DiscreteLaplace(scale), 60 * (int(scale) + 1)
    chances = [float(law.probability(k).ends[1]) for k in range(far)]
    every = {k: chances[abs(k)] for k in range(1 - far, far)}
    within = sum(p * sum(every.get(s - k, 0.0) for s in range(-a, a + 1)) for k, p in every.items())
    return 1 - within


@pytest.mark.parametrize("scale", ["1/2", "1", "3"])
def test_the_tail_of_two_noises_is_the_law_s(scale: str) -> None:
    for a in (0, 1, 2, 5, 9):
        exact = exact_tail(Fraction(scale), a)
        assert abs(float(double_tail(Fraction(scale), a)) - exact) < 1e-9
        if exact > 1e-6:  # a mutant: one noise of twice the scale
            assert abs(float(double_tail(2 * Fraction(scale), a)) - exact) > 1e-4


@pytest.mark.parametrize("scale", ["1/7", "5", "1000000007/3"])
def test_the_accuracy_is_the_least(scale: str) -> None:
    noise, beta = MeasureNoise(DiscreteLaplace(Fraction(scale))), Fraction(1, 20)
    a = double_accuracy(noise)
    assert double_tail(Fraction(scale), a) <= beta
    assert a == 0 or double_tail(Fraction(scale), a - 1) > beta


@settings(max_examples=200, deadline=None)
@given(
    st.integers(-(10**7), 10**8),
    st.integers(-(10**7), 10**8),
    st.fractions(min_value=1, max_value=10**6),
    st.booleans(),
)
def test_the_interval_of_a_mean_excludes_only_what_the_test_excludes(
    above: int, below: int, scale: Fraction, gaussian: bool
) -> None:
    """It holds the noisy share, and all shares whose test is passed."""
    law = DiscreteGaussian(scale**2) if gaussian else DiscreteLaplace(scale)
    measure = Measure(name="m", kind="above", lowest=0, highest=16)
    made = EndsMaker(measure, MeasureNoise(law), 1)
    ((value, _, low, high),) = made.cells("mean", (0, 16), [(above, below)])
    both = above + below
    if both <= 0:
        assert (value, low, high) == (None, 0, 16)
        return
    assert 0 <= low <= value <= high <= 16
    far = 6 * float(scale) if gaussian else 3 * float(scale)
    for place in range(41):
        share = place / 40
        size = ((1 - share) ** 2 + share**2) ** 0.5
        if abs(above - share * both) <= 0.3 * far * size:  # passed by any test of 5 %
            assert low - 1e-9 <= 16 * share <= high + 1e-9
