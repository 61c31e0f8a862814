"""Our auditor on one run with canaries: it finds nothing in our loops, and convicts wrong ones.

Each canary pulls a linear model's weight of its own, hard, so its clipped gradient is all in one
place, and is seen by its sum there. A claim is what the plan of a loop has; a verdict is wrong with
probability at most 1e-6 by the theorem, and the wrong loops leak so much that the chance of not
being convicted is below 1e-12. One of them leaks little, and takes 2**19 canaries: evidence.
"""

from fractions import Fraction

import numpy as np
import pytest

from lastbit.audit import audit_training
from lastbit.training import (
    PoissonSample,
    WholeClip,
    clipped_sum,
    rounded_gaussian,
    training_plan,
    whole_gradients,
)

CLIP = WholeClip(norm=1)
FAR = 10.0


def claim(canaries, *, steps, multiplier, rate=1, delta="1e-9"):
    plan = training_plan(
        examples=canaries,
        batch=Fraction(rate) * canaries,
        steps=steps,
        noise_multiplier=multiplier,
        delta=delta,
    )
    return plan.epsilon


def noise(size, multiplier, share=Fraction(1)):
    return rounded_gaussian(size, multiplier * share * CLIP.bound)


def verdict(loop, canaries, delta="1e-9", **plan):
    epsilon = claim(canaries, **plan, delta=delta)
    return audit_training(loop, canaries=canaries, epsilon=epsilon, delta=delta)


# ---------------------------------------------------------------- ours


def trained(included, *, steps, multiplier, rate=None):
    """A linear model by our own clipping, noise and batches; its weights move."""
    count = len(included)
    weights, scores = np.zeros(count), np.zeros(count)
    targets = np.full(count, FAR)
    for _ in range(steps):
        residuals = np.where(included, weights - targets, 0.0)
        gradients = np.diag(residuals).astype(np.float32)
        there = slice(None) if rate is None else PoissonSample(examples=count, rate=rate).batch()
        total = clipped_sum(gradients[there], CLIP) + noise(count, multiplier)
        weights -= 0.1 / count * (total * float(CLIP.step))
        scores -= total
    return scores


@pytest.mark.parametrize("rate", [None, Fraction(1, 4)])
def test_a_loop_of_ours_is_not_refuted(rate, extent):
    plan = dict(steps=4 if rate is None else 16, multiplier=8 if rate is None else 4)
    known = plan if rate is None else plan | {"rate": rate}
    for _ in range(extent.number(1, 10)):
        found = verdict(lambda included: trained(included, **known), 1000, **known)
        assert not found.broken, found


# ---------------------------------------------------------------- wrong ones


def clipped(included):
    """The clipped sum: each canary is alone in its place."""
    whole = whole_gradients(np.full((1, 1), FAR, np.float32), CLIP)[0, 0]
    return included * whole


def test_noise_of_an_eighth_for_each_microbatch_is_convicted():
    """Eight sums are released, each with an eighth of the noise; the canary is in one."""

    def loop(included):
        return clipped(included) + noise(len(included), 5, Fraction(1, 8))

    assert verdict(loop, 4096, steps=1, multiplier=5).broken


@pytest.mark.evidence
def test_eight_eighths_of_the_noise_added_up_are_convicted():
    """Eight eighths of the variance were due, eight of a 64th are there."""

    def loop(included):
        total = sum(noise(len(included), 2, Fraction(1, 8)) for _ in range(8))
        return clipped(included) + total

    assert verdict(loop, 1 << 19, steps=1, multiplier=2, delta="1e-10").broken


def test_a_clipped_mean_is_convicted():
    """The mean is clipped, and noised as if each of its 1000 gradients had been."""

    def loop(included):
        mean = np.where(included, FAR * 1000, 0.0)[np.newaxis].astype(np.float32) / 1000
        return clipped_sum(mean, CLIP) + noise(len(included), 8, Fraction(1, 1000))

    assert verdict(loop, 1000, steps=1, multiplier=8).broken


def test_normalisation_over_the_batch_is_convicted():
    """Each gradient is clipped, but one example moves those of all others before that."""

    def loop(included):
        count = len(included)
        inputs = np.diag(np.where(included, FAR, 0.0))
        spread = inputs.std(axis=0) + 1e-9
        gradients = ((inputs - inputs.mean(axis=0)) / spread).astype(np.float32)
        return -(clipped_sum(gradients, CLIP) + noise(count, 4))

    assert verdict(loop, 1000, steps=1, multiplier=4).broken


def test_no_clipping_is_convicted():
    def loop(included):
        return FAR * clipped(included) + noise(len(included), 5)

    assert verdict(loop, 4096, steps=1, multiplier=5).broken


def test_noise_forgotten_in_one_layer_is_convicted():
    """Scores are measured by the spread that the layer's sums have where no canary is."""
    layers, free = 4, 64

    def loop(included):
        scores = []
        for layer, there in enumerate(np.split(included, layers)):
            total = np.concatenate([clipped(there), np.zeros(free, np.int64)])
            total = total + (0 if layer == 2 else noise(len(total), 8))
            spread = total[-free:].std() + 1
            scores.append((total[:-free] - CLIP.bound / 2) / spread)
        return np.concatenate(scores)

    assert verdict(loop, 1024, steps=1, multiplier=8).broken


def test_fixed_batches_claimed_as_poisson_are_convicted():
    """Who is there is in a batch of each epoch for sure; the score adds up those batches' sums."""
    rate, epochs, multiplier = Fraction(1, 100), 4, 1

    def loop(included):
        return sum(clipped(included) + noise(len(included), multiplier) for _ in range(epochs))

    assert verdict(loop, 1 << 14, steps=100 * epochs, multiplier=multiplier, rate=rate).broken
