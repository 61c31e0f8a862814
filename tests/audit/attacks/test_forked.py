import os

import numpy as np
import pytest

from lastbit.audit.attacks.noise import forked
from lastbit.audit.targets.target import Target
from lastbit.errors import InvalidParameter
from lastbit.mechanisms.laplace import Laplace
from tests.audit.attacks.leaky import float_laplace

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.evidence
def test_a_generator_seeded_before_the_fork_repeats_itself():
    verdict = forked(float_laplace(), samples=120)
    assert verdict.broken and verdict.details["event seen"] == "1 against 0"


def test_our_noise_does_not():
    noise = Laplace(sensitivity=1, epsilon=1, grid="auto")
    noise.release(0.0)  # what was drawn ahead must not be shared either
    target = Target(
        name="ours",
        release=lambda value, size: [noise.release(value) for _ in range(size)],
        claimed=noise.epsilon,
    )
    verdict = forked(target, samples=40)
    assert not verdict.broken and verdict.details["event seen"] == "0 against 0"


def test_a_failing_child_is_reported():
    home = os.getpid()

    def release(value, size):
        if os.getpid() != home:
            raise OSError
        return np.zeros(size)

    with pytest.raises(InvalidParameter, match="forked"):
        forked(Target(name="brittle", release=release, claimed=1), samples=2)
