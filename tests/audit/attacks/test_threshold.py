import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from lastbit.audit.attacks.noise import Cut, best_cut, threshold
from tests.audit.attacks.leaky import grid_laplace

SAMPLES = 300_000


def test_a_loss_of_ten_percent_is_seen():
    """Noise narrower by a tenth than the claim needs."""
    verdict = threshold(grid_laplace(scale=1 / 1.1), samples=SAMPLES)
    assert verdict.broken and 1 < verdict.epsilon_lower < 1.1


def test_the_right_noise_resists_and_is_nearly_accused():
    verdict = threshold(grid_laplace(), samples=SAMPLES)
    assert not verdict.broken and verdict.epsilon_lower > 0.93


def test_atoms_are_cut_apart():
    cut = best_cut(np.array([0.0] * 50), np.array([0.0] * 25 + [1.0] * 25), trials=100)
    assert cut.event(np.array([0.0, 1.0])).tolist() in ([True, False], [False, True])


def test_nan_is_never_above():
    cut = Cut(place=0.0, above=True, likely=0)
    assert cut.event(np.array([np.nan, 1.0])).tolist() == [False, True]


@given(
    first=arrays(np.float64, 20, elements=st.floats(width=64)),
    second=arrays(np.float64, 20, elements=st.floats(width=64)),
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_any_outputs_give_some_cut(first, second):
    cut = best_cut(first, second, trials=100)
    assert cut.likely in (0, 1)
    assert cut.event(first).shape == (20,)
