"""The error budget, through the exact tail: no luck and no samples."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from lastbit.audit.attacks.trial import Tally, Trial, tally
from lastbit.audit.targets.target import Target

TRIALS = 24
ERROR = Fraction(1, 20)


def bare(claimed, delta=0):
    return Target(
        name="bare", release=lambda v, n: np.full(n, float(v)), claimed=claimed, delta=delta
    )


def accused(hits, other_hits, claimed, error=ERROR, delta=0):
    counted = Tally(hits=hits, trials=TRIALS, other_hits=other_hits, other_trials=TRIALS)
    trial = Trial("any", bare(claimed, delta), samples=2 * TRIALS, error=error)
    verdict = trial.judged(counted, witness="", samples=2 * TRIALS)
    return verdict.broken


def rate(likely, other, accuses):
    """The exact probability of an accusation."""

    def law(p):
        return [comb(TRIALS, k) * p**k * (1 - p) ** (TRIALS - k) for k in range(TRIALS + 1)]

    first, second = law(likely), law(other)
    return sum(
        first[h] * second[o] for h in range(TRIALS + 1) for o in range(TRIALS + 1) if accuses(h, o)
    )


# correct mechanisms at their limit: P = e**epsilon Q, epsilon at least the logarithm of P/Q
LIMITS = [
    (Fraction(3, 4), Fraction(1, 4), Fraction("1.0986122886681099")),
    (Fraction(9, 10), Fraction(1, 10), Fraction("2.1972245773362197")),
    (Fraction(1, 2), Fraction(1, 2), Fraction(0)),
    (Fraction(1), Fraction(9, 10), Fraction("0.1053605156578264")),
    (Fraction(1, 20), Fraction(1, 40), Fraction("0.6931471805599454")),
]


@pytest.mark.thinned(one_in=36)
@pytest.mark.parametrize(("likely", "other", "epsilon"), LIMITS)
def test_a_correct_mechanism_is_accused_at_most_at_the_rate(likely, other, epsilon):
    assert rate(likely, other, lambda h, o: accused(h, o, epsilon)) <= ERROR


@pytest.mark.parametrize(("likely", "other", "epsilon"), LIMITS[:3])
def test_plain_frequencies_would_exceed_it(likely, other, epsilon):
    """A mutant: the ratio of the frequencies instead of the ends of the intervals."""
    ratio = likely / other
    assert rate(likely, other, lambda h, o: o == 0 or Fraction(h, o) > ratio) > ERROR


def test_a_broken_mechanism_is_accused():
    assert rate(Fraction(1), Fraction(0), lambda h, o: accused(h, o, Fraction(1))) == 1


def test_delta_is_granted():
    assert accused(TRIALS, 0, Fraction(1))
    assert not accused(TRIALS, 0, Fraction(1), delta=Fraction(9, 10))


def test_groups_are_trials():
    """Pairs: the event sees two releases, and there are half as many trials."""
    counted = tally(
        bare(1),
        lambda outputs: outputs.reshape(-1, 2).sum(axis=1) == 2,
        trials=25,
        likely=1,
        group=2,
    )
    assert (counted.hits, counted.trials, counted.other_hits) == (25, 25, 0)
    assert counted.example == 1.0


def test_blocks_cover_everything():
    counted = tally(bare(1), lambda outputs: outputs == 1, trials=150_000, likely=1)
    assert (counted.hits, counted.trials, counted.other_hits) == (150_000, 150_000, 0)
