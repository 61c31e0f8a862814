"""HOSTILE: coins that the seed alone decides are no coins.

`ratio_lower` is right over the coins that choose the input of each run. If the seed alone fixes
them, the numbers of runs are fixed too, and the rate given these may be above the error, for this
seed and every mechanism. For 2000 coins of seed 1 (1051 heads) it is 11 times the error.
"""

import math
from fractions import Fraction

import numpy as np

from lastbit.audit.blackbox.distinguish import distinguish_by_sampling
from lastbit.audit.bounds import ratio_lower

ERROR = Fraction(1, 10)


def mass(trials: int, p: Fraction) -> list[Fraction]:
    return [math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]


def wrong_given(first: int, second: int, p: Fraction) -> Fraction:
    """How likely the ratio accuses P = Q, exactly, with so many runs of either input."""
    one, two = mass(first, p), mass(second, p)
    return sum(
        (
            a * b
            for h, a in enumerate(one)
            for o, b in enumerate(two)
            if ratio_lower(h, o, error=ERROR) > 0
        ),
        Fraction(0),
    )


def test_the_ratio_needs_the_coins():
    """Over all coins the rate holds; given uneven ones it does not."""
    n, p = 24, Fraction(9, 10)
    total = sum(
        (Fraction(math.comb(n, k), 2**n) * wrong_given(k, n - k, p) for k in range(n + 1)),
        Fraction(0),
    )
    assert total <= ERROR
    assert wrong_given(17, 7, p) > Fraction(1, 2)


def runs_on_the_first(run: int) -> int:
    source = np.random.default_rng(run)
    result = distinguish_by_sampling(
        lambda value, size: source.integers(0, 3, size) < 1 + value,
        (0, 1),
        samples=500,
        seed=1,
        processes=1,
    )
    return result.trials if result.inputs == (0, 1) else result.other_trials


def test_the_coins_are_not_the_same_in_every_audit_of_a_seed():
    assert len({runs_on_the_first(run) for run in range(6)}) > 1
