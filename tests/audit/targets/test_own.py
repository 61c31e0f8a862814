"""Every mechanism and sampler of ours against every attack that suits it.

Must hold: all of ours resist, at a size that would catch a loss of a tenth. How that is shown:

* **By samples** (`test_a_tenth_would_be_caught`): one run of the threshold attack with the cut that
  tells most. Its bound must lie between claimed/1.1 and claimed: the claim stands, and the same
  mechanism with a claim that is a tenth too small, which is noise a tenth too narrow for its claim,
  is accused by the same attack at the same size. The size is worked out from the law by exact
  binomial tails, so that a true claim is refuted, and a false one missed, with probability at most
  1e-9 each: some thirty runs fail together once in ten million.
* **By the law** (`test_a_tenth_is_caught_by_the_law`): the same two inequalities for the exact
  loss, where samples would have to be too many or are too slow. No probability is involved.
* The attacks on bits look for something that no law allows; what they catch when a tenth of the
  releases leaks is shown in their own tests, at the sizes used here.

The clock is for the benchmark; forks are in test_forked.py; the sums in test_sums.py.
"""

from fractions import Fraction

import numpy as np
import pytest

from lastbit import geo, mechanisms, sampling
from lastbit.audit.attacks.noise import threshold
from lastbit.audit.attacks.registry import ATTACKS, run
from lastbit.audit.blackbox.distinguish import distinguish_by_law
from lastbit.audit.targets.lastbit import exact_sum
from lastbit.audit.targets.target import SumTarget, Target
from lastbit.laws.discrete import DiscreteGaussian
from lastbit.laws.transformed import Shifted
from lastbit.mechanisms.above_threshold import AboveThreshold
from lastbit.mechanisms.exponential_quantile import ExponentialQuantile
from lastbit.mechanisms.gaussian import Gaussian
from lastbit.mechanisms.laplace import Laplace
from lastbit.mechanisms.smooth_noise import SmoothStatistic
from tests.audit.targets.own_targets import (
    ANSWER_DELTA,
    BOUNDS,
    DEVIATION,
    LEFT,
    RIGHT,
    UNLIKELY_ALARMS,
    own_targets,
)
from tests.audit.targets.telling import OUTCOMES, cells, discrete, telling

ERROR = MISS = "1e-9"
TENTH = Fraction(11, 10)
ENOUGH = 10_000
RARE = Fraction(1, 10**6)
SLOW = {  # one release at a time
    "lastbit AboveThreshold": 1_000,
    "lastbit ExponentialQuantile": 200,
    "lastbit SmoothStatistic, cauchy": 200,
    "lastbit SmoothStatistic, student": 200,
    "lastbit SmoothStatistic, laplace": 200,
    "lastbit SmoothNoise": 1_000,
    "lastbit private_median": 100,
    "lastbit private_quantile": 100,
    "lastbit private_trimmed_mean": 100,
    "lastbit private_variance": 100,
    "lastbit NormLaplace": 1_000,
    "lastbit StableValue": 2_000,
    "lastbit ProposeTestRelease": 1_000,
}
ELSEWHERE = {"timing", "fork"}
OWN = {target.name: target for target in own_targets() if isinstance(target, Target)}


# ---------------------------------------------------------------- every attack that suits

CASES = [
    pytest.param(target, name, id=f"{target.name}-{name}")
    for target in OWN.values()
    for name, attack in ATTACKS.items()
    if name not in ELSEWHERE and attack.suits(target)
]


@pytest.mark.thinned(one_in=28)
@pytest.mark.parametrize(("target", "name"), CASES)
def test_ours_resists(target, name):
    verdict = run(name, target, samples=SLOW.get(target.name, ENOUGH), error=ERROR)
    assert not verdict.broken, str(verdict)


# ---------------------------------------------------------------- a loss of a tenth, by samples


def shows_a_tenth(target, outcomes):
    """The bound of one run: the claim stands, and one a tenth smaller falls."""
    too_small = target.claimed / TENTH
    plan = telling(outcomes, claimed=too_small, delta=target.delta, error=ERROR, miss=MISS)
    verdict = threshold(target, samples=2 * plan.trials, error=ERROR, cut=plan.cut)
    assert not verdict.broken, str(verdict)
    assert verdict.epsilon_lower > too_small, str(verdict)


@pytest.mark.apart  # statistics; the laws themselves are in tests/laws and below
@pytest.mark.thinned(one_in=12)
@pytest.mark.parametrize("name", OUTCOMES)
def test_a_tenth_would_be_caught(name):
    shows_a_tenth(OWN[name], OUTCOMES[name]())


def test_noise_a_tenth_too_narrow_is_caught():
    """The same said with a mutant: Laplace noise of epsilon 1.1 that claims 1."""
    plan = telling(discrete(), claimed=Fraction(1) / TENTH, delta=0, error=ERROR, miss=MISS)
    noise = Laplace(sensitivity=1, epsilon="1.1")
    mutant = Target(
        name="too narrow",
        release=lambda value, size: noise.release(np.full(size, value)),
        claimed=1,
        values=(0, 1),
    )
    assert threshold(mutant, samples=2 * plan.trials, error=ERROR, cut=plan.cut).broken


@pytest.mark.evidence
def test_a_tenth_of_a_sum_would_be_caught():
    """One record of 1 more or less, between bounds 0 and 1: noise of scale 1."""
    less, more = np.zeros(10), np.r_[np.zeros(9), 1.0]
    target = Target(
        name="lastbit sum, one record",
        release=lambda data, size: exact_sum(np.array(data), (0.0, 1.0), size),
        claimed=1,
        values=(tuple(less), tuple(more)),
    )
    shows_a_tenth(target, cells(1.0, 1 / 64))


# ---------------------------------------------------------------- a loss of a tenth, by the law


def gaussian(grid):
    return Gaussian(sensitivity=1, epsilon=1, delta=RARE, grid=grid).law


def drawn_gaussian(value):
    return Shifted(DiscreteGaussian(DEVIATION**2), value)


QUANTILE = ExponentialQuantile("1/2", epsilon=1, grid=1, lower=0, upper=10_000)
BY_LAW = {
    "lastbit Gaussian, integers": (gaussian(None), (0, 1)),
    "lastbit Gaussian, floats": (gaussian("auto"), (0.0, 1.0)),
    "lastbit discrete_gaussian": (drawn_gaussian, (0, 1)),
    "lastbit AboveThreshold": (AboveThreshold(threshold=1, epsilon=1).law, UNLIKELY_ALARMS),
    "lastbit ExponentialQuantile": (QUANTILE.law, (LEFT, RIGHT)),
}


@pytest.mark.thinned(one_in=27)
@pytest.mark.parametrize("name", BY_LAW)
def test_a_tenth_is_caught_by_the_law(name):
    law, pair = BY_LAW[name]
    target = OWN[name]
    found = distinguish_by_law(None, pair, epsilon=target.claimed, delta=target.delta, law=law)
    assert found is not None and found.exact and not found.broken
    assert found.epsilon_lower > target.claimed / TENTH


@pytest.mark.parametrize(
    ("noise", "delta"), [("cauchy", 0), ("student", 0), ("laplace", ANSWER_DELTA)]
)
def test_a_tenth_of_smooth_noise_is_caught_by_the_law(noise, delta):
    """No pair costs all that smooth noise claims, so the exact loss of a pair is the claim here."""
    pair = ([-60] * 5 + [60] * 4, [-60] * 4 + [60] * 5)

    def loss(epsilon):
        median = SmoothStatistic(
            "median", epsilon=epsilon, delta=delta or None, noise=noise, grid=1, **BOUNDS
        )
        found = distinguish_by_law(median, pair, epsilon=epsilon, delta=delta)
        assert found is not None and not found.broken
        return found.epsilon_lower

    assert loss("1.1") > 1.09 * loss(1)


# ---------------------------------------------------------------- nothing is left out

# why samples of this very target show no tenth, and what does
OTHERWISE = {
    "lastbit NormLaplace": "one coordinate of three; the vector: tests/laws/test_norms.py",
    "lastbit PlanarLaplace": "one coordinate, for the bits; the point: ', which is nearer'",
    "lastbit PolarLaplace": "one coordinate, for the bits; the point: ', which is nearer'",
    "lastbit planar_laplace": "one coordinate, for the bits; the point: ', which is nearer'",
    "lastbit Geo": "one coordinate, for the bits; the point: ', which is nearer'",
    "lastbit SmoothStatistic, cauchy": "its law above; its sampler: 'rounded, cauchy'",
    "lastbit SmoothStatistic, student": "its law above; its sampler: 'rounded, student'",
    "lastbit SmoothStatistic, laplace": "its law above; its sampler: 'rounded, laplace'",
    "lastbit SmoothNoise": "what SmoothStatistic calls",
    "lastbit private_median": "calls ExponentialQuantile or SmoothStatistic",
    "lastbit private_quantile": "calls ExponentialQuantile or SmoothStatistic",
    "lastbit private_trimmed_mean": "calls SmoothStatistic",
    "lastbit private_variance": "calls SmoothStatistic",
}
# public names that release nothing
NO_MECHANISM = {
    "Admissibility": "a judgement of a density",
    "SymmetricDensity": "a density, which is judged and not drawn",
    "admissibility": "judges a density",
    "BOTTOM": "an answer",
    "Bottom": "its type",
    "Passed": "the type of an answer",
    "LocalMap": "a map from degrees to metres, before the noise",
    "Region": "a public box",
    "parse_epsilon": "reads a text",
    "quantile_mechanism": "makes an ExponentialQuantile or a SmoothStatistic",
}


@pytest.mark.parametrize("room", [mechanisms, sampling, geo], ids=lambda room: room.__name__)
def test_everything_public_is_among_the_targets(room):
    """A mechanism that is not attacked is not known to resist."""
    for name in room.__all__:
        attacked = any(
            own == f"lastbit {name}" or own.startswith(f"lastbit {name},") for own in OWN
        )
        assert attacked != (name in NO_MECHANISM), name


def test_every_target_shows_a_tenth():
    shown = set(OUTCOMES) | set(BY_LAW)
    assert not shown & set(OTHERWISE)
    assert shown | set(OTHERWISE) == set(OWN)
    assert set(SLOW) <= set(OWN)


def test_sums_are_among_the_targets():
    assert {t.dtype.name for t in own_targets() if isinstance(t, SumTarget)} == {
        "float64",
        "int32",
        "int64",
    }
