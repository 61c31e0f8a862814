"""Programs that are private, each by a proof that a replay cannot see."""

import random

import numpy as np

import lastbit as lb
from tests.audit.programs import clamped

RNG = np.random.default_rng(13)
SUM = lb.Laplace(sensitivity=120, epsilon=1)


def drawn_first(ages):
    total = RNG.laplace(0, 120)
    for age in clamped(ages):
        total += age
    return total


def poisson_sample(ages):
    return SUM.release(sum(age for age in clamped(ages) if RNG.random() < 0.5))


def masked_sample(ages):
    return SUM.release(int(np.sum(np.array(clamped(ages))[RNG.random(len(ages)) < 0.5])))


def sample_by_index(ages):
    return SUM.release(sum(clamped(ages)[place] for place in RNG.choice(len(ages), 2)) // 2)


def library_sample(ages):
    return SUM.release(sum(random.sample(clamped(ages), 3)))


def our_coins_sample(ages):
    return SUM.release(clamped(ages)[lb.uniform_below(len(ages))])


def maximum_by_hand(ages):
    scores = np.array([sum(age > limit for age in ages) for limit in (20, 40, 60)])
    return int(np.argmax(scores + RNG.exponential(2, 3)))


def answers_by_numpy(ages):
    return [age > 40 if RNG.random() < 0.75 else RNG.random() < 0.5 for age in ages]


def answers_by_library(ages):
    return [age > 40 if random.random() < 0.75 else random.random() < 0.5 for age in ages]


def answers_by_our_coins(ages):
    return [(age > 40) == lb.bernoulli("3/4") for age in ages]


def exponential_by_hand(ages):
    scores = np.exp(np.array([sum(age > 40 for age in ages), 2]) / 2)
    return int(RNG.choice(2, p=scores / scores.sum()))


def noise_by_inversion(ages):
    uniform = random.random() - 0.5
    return len(ages) - np.sign(uniform) * np.log(1 - 2 * abs(uniform))


def cut_off_noise(ages):
    return len(ages) + np.array([RNG.laplace(0, 4)])


def cut_to_a_range(ages):
    draw = RNG.laplace()
    while abs(draw) > 3:
        draw = RNG.laplace()
    return len(ages) + draw


def masked_by_a_long_mask(ages):
    """As many coins for every dataset, and yet they fall on other records."""
    return SUM.release(int(np.sum(clamped(ages) * RNG.integers(0, 2, 100)[: len(ages)])))


def smooth_by_hand(ages):
    bound = lb.smooth_sensitivity(
        "median", ages, beta="1/20", lower=0, upper=120, neighbours=lb.ADD_REMOVE
    )
    return float(bound.value) + float(bound.bound) * 4 * RNG.laplace()


def two_sums_of_two(ages):
    one, two = RNG.laplace(0, 4), RNG.laplace(0, 4)
    return len(ages) + (one + two), two - len(ages)


HIDDEN = [
    drawn_first,
    poisson_sample,
    masked_sample,
    sample_by_index,
    library_sample,
    our_coins_sample,
    maximum_by_hand,
    answers_by_numpy,
    answers_by_library,
    answers_by_our_coins,
    exponential_by_hand,
    noise_by_inversion,
    cut_off_noise,
    cut_to_a_range,
    masked_by_a_long_mask,
    smooth_by_hand,
    two_sums_of_two,
]
