"""The power of an attack, by exact tails."""

from fractions import Fraction
from math import comb, exp, log

import pytest

from lastbit.audit.attacks.trial import catches, trials_to_catch
from lastbit.errors import InvalidParameter
from lastbit.exact import probability_lower, probability_upper

ERROR = Fraction(1, 20)


def law(trials, p):
    return [comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(trials + 1)]


def missed(trials, p, q, claimed, delta=0):
    """The exact probability that so many trials accuse nobody."""
    first, second = law(trials, Fraction(p)), law(trials, Fraction(q))
    low = [probability_lower(k, trials, error=ERROR / 2) for k in range(trials + 1)]
    high = [probability_upper(k, trials, error=ERROR / 2) for k in range(trials + 1)]
    return sum(
        first[h] * second[o]
        for h in range(trials + 1)
        for o in range(trials + 1)
        if low[h] - delta <= exp(claimed) * high[o]
    )


@pytest.mark.parametrize(
    ("p", "q", "claimed", "delta", "miss"),
    [
        ("9/10", "1/10", 1, 0, Fraction(1, 10)),
        ("1/2", "1/20", "1/2", 0, Fraction(1, 10)),
        ("1", "0", 1, 0, Fraction(1, 100)),
        ("9/10", "1/10", "1/2", "1/10", Fraction(1, 10)),
    ],
)
def test_so_many_trials_catch(p, q, claimed, delta, miss):
    """Against the whole joint law of both counts."""
    claim = Fraction(claimed)
    trials = trials_to_catch(p, q, claimed=claim, delta=delta, error=ERROR, miss=miss)
    assert trials <= 200
    assert missed(trials, p, q, claim, Fraction(delta)) <= miss


def test_half_as_many_do_not():
    """A mutant that halves the size would be noticed."""
    miss = Fraction(1, 10)
    trials = trials_to_catch("9/10", "1/10", claimed=1, error=ERROR, miss=miss)
    assert missed(trials // 2, "9/10", "1/10", 1) > miss


def test_a_tenth_more_loss_of_laplace_noise():
    """Claimed 1, real 1.1: the figure that tests/audit/targets/test_own.py rests on, at 1e-6."""
    q = Fraction(2.718281828**-1.1)
    trials = trials_to_catch(1 / (1 + q), q / (1 + q), claimed=1)
    assert 50_000 < trials < 60_000
    assert catches(trials, 1 / (1 + q), q / (1 + q), claimed=1)
    assert not catches(trials // 2, 1 / (1 + q), q / (1 + q), claimed=1)


def test_certain_events():
    assert trials_to_catch(1, 0, claimed=3, error="1e-9", miss="1e-9") < 1000
    assert not catches(1, 1, 0, claimed=3)


@pytest.mark.parametrize("delta", [0, "1/10"])
def test_what_keeps_its_claim_needs_no_size(delta):
    with pytest.raises(InvalidParameter, match="claim"):
        trials_to_catch("1/2", "1/2", claimed=0, delta=delta)
    with pytest.raises(InvalidParameter, match="claim"):
        trials_to_catch("1/2", "1/4", claimed=Fraction(log(2)) + Fraction(1, 1000), delta=delta)


@pytest.mark.parametrize("p", ["-1/2", "3/2"])
def test_probabilities_are_checked(p):
    with pytest.raises(InvalidParameter):
        trials_to_catch(p, "1/4", claimed=1)
    with pytest.raises(InvalidParameter):
        catches(10, "1/2", "1/4", claimed=1, miss=p)
