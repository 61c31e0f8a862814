import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.audit.attacks.floats import low_bits, same_ending
from lastbit.audit.targets.target import Target
from lastbit.errors import InvalidParameter
from tests.audit.attacks.leaky import generator, grid_laplace, sometimes


def fixed_point(bits, seed=1):
    """Example 1.1: noise drawn on the grid 2**-6, then multiplied by 2**bits."""
    draw, step = generator(seed), 2.0**-6
    return Target(
        name="fixed point",
        release=lambda value, size: (
            value + np.rint(draw.laplace(0, 1, size) / step) * step * 2.0**bits
        ),
        claimed=1,
        sensitivity=2,
        values=(0.0, 1 + 2.0**-5),
        step=step,
    )


@given(output=st.integers(-(2**40), 2**40), value=st.integers(-99, 99), bits=st.integers(1, 30))
def test_same_ending_is_exact(output, value, bits):
    outputs = np.array([float(output)])
    assert same_ending(outputs, float(value), 1.0, bits)[0] == ((output - value) % 2**bits == 0)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_example_1_1_is_broken(bits):
    verdict = low_bits(fixed_point(bits), samples=10_000)
    assert verdict.broken and verdict.epsilon_lower > 5


def test_noise_on_the_grid_itself_resists():
    assert not low_bits(grid_laplace(), samples=50_000).broken


def test_a_leak_in_a_tenth_of_the_releases_is_seen():
    sound = fixed_point(0)
    assert low_bits(sometimes(fixed_point(8), sound, 0.1), samples=50_000).broken
    assert not low_bits(sound, samples=50_000).broken


def test_the_grid_must_be_known():
    with pytest.raises(InvalidParameter, match="grid"):
        low_bits(Target(name="secret", release=lambda v, n: [v] * n, claimed=1))
