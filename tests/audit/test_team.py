"""Processes that draw the same outputs are noticed; others count together."""

import numpy as np

from lastbit.audit.blackbox.distinguish import distinguish_by_sampling
from lastbit.audit.blackbox.team import alike
from lastbit.sampling import secure_bits, words


def noise(seed: int, copied: int = 0):
    """Two columns of coarse noise; the first `copied` ones are the same for every seed."""
    own, shared = np.random.default_rng(seed), np.random.default_rng(0)
    sizes = (6, 6, 24, 24, 96, 96, 384, 384)
    return [
        np.stack([(shared if j < copied else own).integers(0, 9, size) for j in range(2)], axis=1)
        for size in sizes
    ]


def test_copied_streams_are_noticed_and_independent_ones_are_not():
    for seed in range(1, 30):
        assert alike(noise(1), noise(1))
        assert alike(noise(seed, copied=1), noise(seed + 1, copied=1))
        assert not alike(noise(seed), noise(seed + 1))
    assert alike(noise(1)[:4], noise(1))  # one of them had less time
    assert alike([np.zeros((6, 1))] * 4, [np.zeros((6, 1))] * 4)  # nothing is known: as if copied


def audited(mechanism, processes: int):
    return distinguish_by_sampling(
        mechanism, [(0, 0), (0, 1)], samples=4000, processes=processes, epsilon="1/2"
    )


def test_a_generator_from_before_the_fork_counts_once():
    """Else the same run would be counted twice, and the event fitted to runs that are counted."""

    def copied():
        source = np.random.default_rng(7)
        return lambda value, size: source.random(size) < 0.2 + 0.5 * value

    alone, both = audited(copied(), 1), audited(copied(), 2)
    assert both.repeated and not alone.repeated
    assert "one process" in both.rests_on
    assert (both.hits, both.trials, both.samples) == (alone.hits, alone.trials, alone.samples)


def test_independent_processes_share_the_runs():
    def secure(value, size):
        return words(secure_bits(), size, np.uint64) < np.uint64((1 + 2 * value) << 61)

    found = audited(secure, 2)
    assert not found.repeated
    assert found.trials + found.other_trials == 8000
    assert 0.5 < found.epsilon_lower < 1.1 and found.broken  # seven deviations below 0.85
