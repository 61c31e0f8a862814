"""Our auditor on a step: it finds nothing in ours, and convicts loops that are wrong.

Each loop is a step on data with and without one example, whose gradient is long; a claim is the
epsilon that the plan of the step has. A verdict is wrong with probability at most 1e-6.
"""

from fractions import Fraction

import numpy as np
import pytest

from lastbit import audit
from lastbit.training import (
    PoissonSample,
    WholeClip,
    clipped_sum,
    rounded_gaussian,
    training_plan,
)

CLIP = WholeClip(norm=1)
LONG = np.array([[10.0]], np.float32)
NONE = np.zeros((1, 1), np.float32)
MULTIPLIER = Fraction(1)


def claim(batch, delta="1e-5", multiplier=MULTIPLIER):
    """What one step of ten examples costs."""
    plan = training_plan(
        examples=10, batch=batch, steps=1, noise_multiplier=multiplier, delta=delta
    )
    return plan.epsilon


def noise(size, share=Fraction(1)):
    return rounded_gaussian(size, MULTIPLIER * CLIP.bound * share)


def released(sums):
    """As a step leaves it: floats of the model's own type."""
    return (sums * float(CLIP.step)).astype(np.float32)


def ours(present, size):
    return released(clipped_sum(LONG if present else NONE, CLIP)[0] + noise(size))


def ours_on_samples(present, size):
    """The one example is in one batch of ten."""
    there = np.zeros(size, np.int64)
    if present:
        there[PoissonSample(examples=size, rate="1/10").batch()] = 1
    return released(there * clipped_sum(LONG, CLIP)[0] + noise(size))


def clipped_after_the_mean(present, size):
    mean = (LONG if present else NONE) / 4
    return released(clipped_sum(mean, CLIP)[0] + noise(size, Fraction(1, 4)))


def noised_by_microbatch(present, size):
    """Eight times an eighth of the noise, where eight eighths of its variance were due."""
    total = clipped_sum(LONG if present else NONE, CLIP)[0]
    return released(total + sum(noise(size, Fraction(1, 8)) for _ in range(8)))


def always_in_the_batch(present, size):
    """Batches of equal size by shuffling: whoever is there is in one of the ten, for sure."""
    return ours(present, size)


@pytest.mark.parametrize(("loop", "batch"), [(ours, 10), (ours_on_samples, 1)])
def test_a_step_of_ours_is_not_refuted(loop, batch):
    found = audit.distinguish(
        loop, (0, 1), epsilon=claim(batch), delta="1e-5", samples=60_000, error=1e-6
    )
    assert not found.broken


@pytest.mark.parametrize(
    ("loop", "batch"),
    [
        (clipped_after_the_mean, 10),
        (noised_by_microbatch, 10),
        (always_in_the_batch, 1),
    ],
)
def test_a_broken_loop_is_convicted(loop, batch):
    found = audit.distinguish(
        loop, (0, 1), epsilon=claim(batch), delta="1e-5", samples=200_000, error=1e-6
    )
    assert found.broken, found


def target_of(name, release):
    """A step with five times the norm as noise, which claims an epsilon below 1."""
    delta = "1e-6"
    return audit.Target(
        name=name,
        release=release,
        claimed=claim(10, delta, 5),
        delta=delta,
        values=(0.0, 1.0),
        scale=5.0,
        significand_bits=24,
    )


@pytest.mark.parametrize("name", ["precision", "threshold"])
def test_attacks_on_float_noise_find_nothing_in_ours(name, extent):
    def release(value, size):
        total = clipped_sum(LONG if value else NONE, CLIP)[0]
        return released(total + noise(size, Fraction(5)))

    target = target_of("a step of ours", release)
    verdict = audit.attack(name, target, samples=extent.number(20_000, 400_000))
    assert not verdict.broken, verdict


@pytest.mark.evidence
def test_the_attack_convicts_noise_in_floats():
    """The same step as others take it: float32 noise on a float32 sum."""
    rng = np.random.default_rng(0)

    def theirs(value, size):
        return np.float32(value) + np.float32(5) * rng.standard_normal(size, np.float32)

    assert audit.attack("precision", target_of("a step in floats", theirs)).broken
