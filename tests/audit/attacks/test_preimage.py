import numpy as np
import pytest

from lastbit.audit.attacks.floats import has_preimage, preimage
from lastbit.audit.targets.target import Target
from lastbit.errors import InvalidParameter
from tests.audit.attacks.leaky import float_laplace, generator, grid_laplace, sometimes


@pytest.mark.parametrize("scale", [1.0, 2.0, 10.0, 100.0, 1e6])
@pytest.mark.parametrize("value", [0.0, 1.0, -3.25])
def test_every_release_has_a_preimage(scale, value):
    """The search finds the very uniform each release was made from: no miss in 20,000."""
    assert has_preimage(generator().laplace(value, scale, 20_000), value, scale).all()


@pytest.mark.parametrize("scale", [1.0, 10.0, 1e6])
def test_the_wrong_value_seldom_has_one(scale):
    share = has_preimage(generator().laplace(0.0, scale, 20_000), 1.0, scale).mean()
    assert 0.1 < share < 0.45


def test_must_hold_epsilon_5_at_scale_10_from_ten_thousand_samples():
    verdict = preimage(float_laplace(scale=10.0, claimed="1/10"), samples=10_000)
    assert verdict.samples <= 10_000
    assert verdict.broken and verdict.epsilon_lower >= 5


def test_wide_noise_does_not_help():
    verdict = preimage(float_laplace(scale=1e6, claimed="1e-6"), samples=10_000)
    assert verdict.epsilon_lower >= 5


def test_noise_on_a_grid_resists():
    assert not preimage(grid_laplace(scale=10.0, claimed="1/10"), samples=20_000).broken


def test_a_leak_in_a_tenth_of_the_releases_is_seen():
    leaky, sound = float_laplace(10.0, "1/10"), grid_laplace(10.0, "1/10", step=2.0**-30)
    verdict = preimage(sometimes(leaky, sound, 0.1), samples=100_000)
    assert verdict.broken


def test_infinite_outputs_have_none():
    assert not has_preimage(np.array([np.inf, -np.inf, np.nan]), 0.0, 1.0).any()


def test_the_scale_must_be_known():
    secret = Target(name="secret", release=lambda v, n: [v] * n, claimed=1)
    with pytest.raises(InvalidParameter, match="scale"):
        preimage(secret)
