import numpy as np
import pytest

from lastbit.audit.attacks.floats import made_by_polar_method, polar_pairs
from lastbit.audit.targets.target import Target
from lastbit.errors import InvalidParameter
from tests.audit.attacks.leaky import generator, grid_laplace


def legacy(scale=1.0, claimed=1, delta="1e-6"):
    draw = np.random.RandomState(5)
    return Target(
        name="legacy",
        release=lambda value, size: draw.normal(value, scale, size),
        claimed=claimed,
        delta=delta,
        scale=scale,
    )


@pytest.mark.parametrize("scale", [1.0, 4.25, 1000.0])
def test_pairs_of_the_right_value_are_found(scale):
    pairs = legacy(scale).draw(0, 20_000).reshape(-1, 2)
    assert made_by_polar_method(pairs, 0.0, scale).mean() > 0.999
    assert made_by_polar_method(pairs, 1.0, scale).mean() < 0.1


def test_the_legacy_generator_is_broken():
    verdict = polar_pairs(legacy(4.25), samples=10_000)
    assert verdict.broken and verdict.epsilon_lower > 4
    assert verdict.claimed == 2, "a pair is two releases"
    assert verdict.details["delta of the claim"] == "2e-06"


def test_the_newer_generator_resists_this_test():
    draw = generator()
    target = Target(
        name="ziggurat",
        release=lambda value, size: draw.normal(value, 4.25, size),
        claimed=1,
        delta="1e-6",
        scale=4.25,
    )
    assert not polar_pairs(target, samples=10_000).broken


def test_noise_on_a_grid_resists():
    assert not polar_pairs(grid_laplace(), samples=10_000).broken


def test_strange_outputs_do_no_harm():
    pairs = np.array([[np.nan, 1.0], [np.inf, 0.0], [0.0, 0.0], [1e300, -1e300]])
    assert not made_by_polar_method(pairs, 0.0, 1.0).any()


def test_the_scale_must_be_known():
    with pytest.raises(InvalidParameter, match="scale"):
        polar_pairs(Target(name="secret", release=lambda v, n: [v] * n, claimed=1))
