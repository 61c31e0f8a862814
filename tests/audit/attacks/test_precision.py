import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.audit.attacks.floats import finest_grid, off_grid, precision
from lastbit.audit.targets.target import Target
from lastbit.errors import InvalidParameter
from tests.audit.attacks.leaky import float_laplace, grid_laplace, sometimes
from tests.laws.frequency import assert_frequency

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(value=finite.filter(lambda v: v != 0), noise=finite)
def test_every_float_sum_is_on_the_grid(value, noise):
    """The theorem, on any two doubles: nothing is asked of the noise."""
    total = value + noise
    if math.isfinite(total):
        step = Fraction(2) ** finest_grid(value)
        assert Fraction(total) % step == 0
        assert not off_grid(np.array([total]), finest_grid(value))[0]


@given(output=finite, exponent=st.integers(-1074, 900))
def test_off_grid_is_exact(output, exponent):
    expected = Fraction(output) % Fraction(2) ** exponent != 0
    assert off_grid(np.array([output]), exponent)[0] == expected


def test_a_finer_grid_would_be_wrong():
    """A mutant: with a step twice as coarse the theorem fails."""
    total = 1.0 + -(0.5 - 2.0**-54)
    assert total == 0.5 + 2.0**-54 or total == 0.5
    assert any(
        off_grid(np.array([1.0 + noise]), finest_grid(1.0) + 1)[0]
        for noise in (-0.5 + 2.0**-53, -0.5 - 2.0**-53)
    )


def test_the_textbook_is_broken():
    verdict = precision(float_laplace(), samples=10_000)
    assert verdict.broken and verdict.epsilon_lower > 4
    assert "no multiple of 2**-53" in verdict.witness


def test_the_share_that_anchors_say():
    """About .27 of all releases of 0 at scale 1 are too fine for 1."""
    outputs = float_laplace().draw(0, 200_000)
    hits = int(off_grid(outputs, -53).sum())
    assert_frequency(hits, trials=200_000, probability=0.2722, false_alarm=2.0**-40)


def test_noise_on_a_grid_resists():
    verdict = precision(grid_laplace(), samples=10_000)
    assert not verdict.broken and verdict.epsilon_lower == 0


def test_a_leak_in_a_tenth_of_the_releases_is_seen():
    assert precision(sometimes(float_laplace(), grid_laplace(), 0.1), samples=20_000).broken


def test_the_larger_value_may_come_first():
    target = float_laplace()
    swapped = Target(name="swapped", release=target.release, claimed=1, values=(1.0, 0.0), scale=1)
    assert precision(swapped, samples=10_000).broken


def test_values_must_have_answers():
    vague = Target(name="vague", release=lambda v, n: [0.0] * n, claimed=1, values=([1], [2]))
    with pytest.raises(InvalidParameter, match="answers"):
        precision(vague)


@pytest.mark.parametrize("samples", [0, 1, -5, 2**40])
def test_bad_sample_sizes_are_refused(samples):
    with pytest.raises(InvalidParameter, match="samples"):
        precision(float_laplace(), samples=samples)
