"""Programs for the replay: correct ones, and ones with one named mistake each."""

import math
from collections import Counter

import numpy as np

import lastbit as lb
from lastbit.audit.replay.primitives import noise

AGES = [31, 44, 52, 67, 18, 23]
EXTREMES = [0, 120, 10_000]
WORDS = ["tea", "tea", "water", "coffee"]
DRINKS = ["water", "tea", "coffee", "milk"]
RNG = np.random.default_rng(7)  # made before anything is recorded, as in most modules


def clamped(ages):
    return [min(max(age, 0), 120) for age in ages]


# ---------------------------------------------------------------- correct


def noisy_mean(ages):
    count = lb.Laplace(sensitivity=1, epsilon="1/2").release(len(ages))
    total = lb.Laplace(sensitivity=120, epsilon="1/2").release(sum(clamped(ages)))
    return total / max(count, 1)


def histogram_and_mean(ages):
    counts = Counter(age // 40 for age in clamped(ages))
    shape = lb.Histogram(keys=range(4), epsilon=1, keys_per_person=1).release(counts)
    return shape, noisy_mean(ages)


def gaussian_vector(ages):
    vector = [len(ages), sum(age > 40 for age in ages)]
    return lb.Gaussian(sensitivity="1.41422", rho="1/2", dimension=2).release(vector)


def decides_by_releases(ages):
    """Control flow on what was released is nobody's secret."""
    count = lb.Laplace(sensitivity=1, epsilon=1).release(len(ages))
    if count > 4:
        return lb.Laplace(sensitivity=120, epsilon=1).release(sum(clamped(ages)))
    return count


def public_branches(ages):
    """Both branches ask the same question; that they are two lines is no leak."""
    release = lb.Laplace(sensitivity=1, epsilon=1).release
    return release(1) if len(ages) > 6 else release(0)


def smooth_median(ages):
    return lb.private_median(ages, epsilon=1, lower=0, upper=120, neighbours=lb.ADD_REMOVE)


def numpy_sum(ages):
    return sum(clamped(ages)) + RNG.laplace(0, 120)


def numpy_centred(ages):
    return RNG.laplace(sum(clamped(ages)), 120)


def numpy_vector(ages):
    counts, _ = np.histogram(clamped(ages), bins=[0, 40, 80, 121])
    return np.maximum(counts + RNG.laplace(scale=1.0, size=3), 0).round()


def numpy_loop(ages):
    """One draw for all, one entry for each."""
    draws = 2 * np.random.laplace(0, 0.5, size=2)
    return {
        name: value + draw for name, value, draw in zip("ab", (len(ages), 7), draws, strict=True)
    }


def numpy_scaled_normal(ages):
    total = np.zeros(1)
    total += sum(clamped(ages))
    total -= 120 * np.random.standard_normal(1)
    return total


def two_exponentials(ages):
    return len(ages) + (RNG.exponential(1.0) - RNG.exponential(1.0))


def shuffled_count(ages):
    """Coins that fall alike for both datasets, and are covered by noise in the end."""
    order = RNG.permutation(len(ages))
    return len(order) + RNG.laplace()


def sampler_by_hand(ages):
    return len(ages) + lb.discrete_laplace(1)


def session(ages):
    asked = lb.AboveThreshold(threshold=3, epsilon=1, monotone=True).start()
    for query in range(20):
        if asked.ask(sum(age > 5 * query for age in ages)) or asked.finished:
            return query
    return None


@noise(sensitivity=1, epsilon="epsilon")
def own_noise(count, epsilon):
    return count + round(float(np.random.laplace(0, 1 / epsilon)))


def own_mechanism(ages):
    return own_noise(len(ages), epsilon=1)


CORRECT = [
    (noisy_mean, 1),
    (histogram_and_mean, 2),
    (gaussian_vector, lb.ZCDP("1/2")),
    (decides_by_releases, 2),
    (public_branches, 1),
    (smooth_median, 1),
    (numpy_sum, 1),
    (numpy_centred, 1),
    (numpy_vector, 1),
    (numpy_loop, 1),
    (numpy_scaled_normal, lb.ZCDP("1/2")),
    (two_exponentials, 1),
    (shuffled_count, 1),
    (sampler_by_hand, 1),
    (session, 1),
    (own_mechanism, 1),
]


# ---------------------------------------------------------------- with one mistake each


def leaks_n(ages):
    return lb.Laplace(sensitivity=120, epsilon=1).release(sum(clamped(ages))) / max(len(ages), 1)


def bounds_from_data(ages):
    low, high = min(ages), max(ages)
    total = lb.Laplace(sensitivity=high - low, epsilon=1).release(sum(ages) - low * len(ages))
    return total + low


def wrong_sensitivity(ages):
    return lb.Laplace(sensitivity=1, epsilon=1).release(sum(clamped(ages)))


def forgot_to_clamp(ages):
    return lb.Laplace(sensitivity=120, epsilon=1).release(sum(ages))


def branches_on_data(ages):
    if len(ages) > 5:
        return lb.Laplace(sensitivity=1, epsilon=1).release(len(ages))
    return "too few"


def asks_per_record(ages):
    release = lb.Laplace(sensitivity=120, epsilon=1).release
    return [release(age) for age in clamped(ages)]


def stops_with_an_error(ages):
    count = lb.Laplace(sensitivity=1, epsilon=1).release(len(ages))
    if 18 not in ages:
        raise ValueError(f"18 is missing from {ages}")
    return count


def shows_the_maximum(ages):
    return lb.Laplace(sensitivity=1, epsilon=1).release(len(ages)), max(ages)


def order_of_keys(ages):
    count = lb.Laplace(sensitivity=1, epsilon=1).release(len(ages))
    return dict.fromkeys([*("young" if age < 20 else "old" for age in ages[-2:]), "young"], count)


def one_draw_for_all(ages):
    return np.histogram(ages, bins=[0, 40, 200])[0] + RNG.laplace()


def shows_its_noise(ages):
    draw = RNG.laplace()
    return len(ages) + draw, draw


def noise_of_one_side(ages):
    return len(ages) + RNG.exponential(1.0)


def numpy_wrong_scale(ages):
    return sum(clamped(ages)) + RNG.laplace(0, 60)


def released_twice(ages):
    release = lb.Laplace(sensitivity=1, epsilon=1).release
    return (release(len(ages)) + release(len(ages))) / 2


def scale_from_data(ages):
    return len(ages) + RNG.laplace(0, 1 + 1 / max(ages))


def wrong_own_sensitivity(ages):
    return own_noise(sum(age > 40 for age in ages) * 2, epsilon=1)


def not_monotone(ages):
    shares = [sum(age < 40 for age in ages), -sum(age < 40 for age in ages)]
    return lb.Exponential(sensitivity=1, epsilon=1, monotone=True).release(shares)


def unrecorded(ages):
    return len(ages) + np.random.default_rng().bit_generator.random_raw()


MISTAKES = [
    (leaks_n, "leak"),
    (bounds_from_data, "parameters"),
    (wrong_sensitivity, "sensitivity"),
    (forgot_to_clamp, "sensitivity"),
    (branches_on_data, "control flow"),
    (asks_per_record, "control flow"),
    (stops_with_an_error, "control flow"),
    (shows_the_maximum, "leak"),
    (order_of_keys, "leak"),
    (one_draw_for_all, "reuse"),
    (shows_its_noise, "reuse"),
    (noise_of_one_side, "cost"),
    (numpy_wrong_scale, "cost"),
    (released_twice, "cost"),
    (scale_from_data, "parameters"),
    (wrong_own_sensitivity, "sensitivity"),
    (not_monotone, "sensitivity"),
    (unrecorded, "unfollowed"),
]


# ---------------------------------------------------------------- about words and floats


def declared_words(words):
    return lb.Histogram(keys=DRINKS, epsilon=1, keys_per_person=1).release(Counter(words))


def words_of_the_data(words):
    """Which words there are is told by who is there."""
    release = lb.Laplace(sensitivity=1, epsilon=1).release
    return {word: release(count) for word, count in sorted(Counter(words).items())}


def thresholded_words(words):
    noisy = lb.ThresholdedHistogram(epsilon=1, delta="1e-6", keys_per_person=1)
    return noisy.release(Counter(words))


def float_sum(shares):
    """The sum of floats depends on their order, and moves by a little more than 1."""
    return lb.Laplace(sensitivity=1, epsilon=1, grid="auto").release(
        math.fsum(shares[:1]) + sum(shares[1:])
    )


def integer_sum(shares):
    on_grid = sum(round(share * 2**20) for share in shares)
    return lb.Laplace(sensitivity=2**20, epsilon=1).release(on_grid)
