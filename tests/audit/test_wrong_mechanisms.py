"""Each of seventeen mistakes is convicted by samples, without a law, sure to 1e-6."""

from fractions import Fraction

import numpy as np
import pytest
from auditing.benchmarks import Benchmark
from auditing.optimum import true_loss
from auditing.wrong import wrong_mechanisms

from lastbit.audit import distinguish_by_sampling
from lastbit.sampling.deterministic import Seeded
from tests.evidence import late
from tests.laws.frequency import assert_frequency

# of each input: about three times what somebody who knows the law needs (bench/audit.py)
RUNS = {
    "scale 0.99 for 1": 4_000_000,
    "Gaussian, classical": 1_500_000,
    "coin of 0.76 for 0.75": 200_000,
}
LISTED = ("geometric, 0 twice", "geometric, no 0", "coin of 0.76 for 0.75", "exponential, no 2",
          "half noise for the maximum")  # fmt: skip
WRONG = {found.name: found for found in wrong_mechanisms()}


def test_there_are_seventeen_and_each_is_above_its_claim():
    assert len(WRONG) == 17
    for found in WRONG.values():
        if found.name == "sparse vector 6":
            continue  # two seconds; the conviction says it
        cells = [found.cells(*pair) for pair in found.pairs]
        assert max(np.abs(c.sum(axis=1) - 1).max() for c in cells) < 1e-3
        assert true_loss(cells, delta=found.delta) > found.epsilon


@pytest.mark.thinned(one_in=6)
@pytest.mark.parametrize(
    "found",
    [late(f) if f.name in RUNS or "sparse" in f.name else f for f in WRONG.values()],
    ids=lambda found: found.name,
)
def test_a_mistake_is_convicted_by_samples(found: Benchmark):
    bits = Seeded(7)
    result = distinguish_by_sampling(
        lambda value, size: found.sampler(value, size, bits),
        list(found.pairs),
        epsilon=found.epsilon,
        delta=found.delta,
        samples=RUNS.get(found.name, 20_000),
        processes=1,
    )
    assert result.broken, str(result)


@pytest.mark.parametrize("name", LISTED)
def test_the_law_by_which_needed_runs_are_told_is_that_of_the_sampler(name: str):
    """Frequencies of outputs against probabilities, both from the greatest on."""
    found, size = WRONG[name], 40_000
    for value, shares in zip(found.pairs[0], found.cells(*found.pairs[0]), strict=True):
        _, counts = np.unique(found.sampler(value, size, Seeded(3)), return_counts=True)
        likely = np.sort(shares)[::-1][np.sort(shares)[::-1] > 0.01].tolist()
        for count, share in zip(sorted(counts.tolist(), reverse=True), likely, strict=False):
            assert_frequency(count, trials=size, probability=share, detects=Fraction(1, 2))
