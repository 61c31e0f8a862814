"""The ends against exact binomial tails; how often a true claim is called broken, exactly."""

import math
from fractions import Fraction

import pytest

from lastbit.audit.bounds import delta_lower, epsilon_lower, interval
from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import probability_lower, probability_upper

TWENTIETH = Fraction(1, 20)


def mass(hits: int, trials: int, p: Fraction) -> Fraction:
    return math.comb(trials, hits) * p**hits * (1 - p) ** (trials - hits)


# ---------------------------------------------------------------- exact


def accusations(bound, trials: int, p: Fraction, q: Fraction) -> Fraction:
    """How likely a mechanism with P = p, Q = q is said to lose more than ln(p/q), exactly."""
    total = Fraction(0)
    for hits in range(trials + 1):
        for others in range(trials + 1):
            if bound(hits, others) > math.log(p / q) * (1 + 1e-12):
                total += mass(hits, trials, p) * mass(others, trials, q)
    return total


@pytest.mark.parametrize(
    ("p", "q"), [(Fraction(2, 3), Fraction(1, 3)), (Fraction(1, 20), Fraction(1, 25))]
)
def test_a_true_claim_is_called_broken_as_seldom_as_promised(p, q):
    def certified(hits, others):
        return epsilon_lower(hits, 20, others, 20, error=TWENTIETH)

    def plain(hits, others):  # a mutant: the estimate itself
        return math.log((hits + 1e-9) / (others + 1e-9)) if hits else 0.0

    assert accusations(certified, 20, p, q) <= TWENTIETH
    assert accusations(plain, 20, p, q) > TWENTIETH


def test_delta_is_subtracted_before_the_ratio():
    error = Fraction(1, 100)
    low, high = (
        probability_lower(800, 1000, error=error / 2),
        probability_upper(100, 1000, error=error / 2),
    )
    found = epsilon_lower(800, 1000, 100, 1000, delta="0.1", error=error)
    assert found == pytest.approx(math.log((low - 0.1) / high), rel=1e-12)
    assert found <= math.log((Fraction(low) - Fraction(1, 10)) / Fraction(high)) * (1 + 1e-15)
    excess = delta_lower(800, 1000, 100, 1000, epsilon=1, error=error)
    assert excess == pytest.approx(low - math.e * high, rel=1e-12)


# ---------------------------------------------------------------- properties


def test_nothing_seen_shows_nothing():
    assert epsilon_lower(0, 10**6, 10**6, 10**6) == 0.0
    assert epsilon_lower(5, 10, 5, 10) == 0.0
    assert epsilon_lower(10**6, 10**6, 0, 10**6, delta=1) == 0.0
    assert delta_lower(5, 10, 5, 10, epsilon=0) == 0.0
    assert delta_lower(10, 10, 0, 10, epsilon=10**6) == 0.0
    assert delta_lower(10**6, 10**6, 0, 10**6, epsilon=10**400) == 0.0


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ((-1, 10), InvalidParameter),
        ((11, 10), InvalidParameter),
        ((0, 0), InvalidParameter),
        ((1, 2**34 + 1), InvalidParameter),
        ((1, 10**400), InvalidParameter),
        ((1.5, 10), WrongType),
        ((True, 10), WrongType),
        (("1", 10), WrongType),
        ((math.nan, 10), WrongType),
    ],
)
def test_counts_without_meaning_are_refused(arguments, kind):
    with pytest.raises(kind):
        interval(*arguments)


@pytest.mark.parametrize("error", [0, 1, -1, "2", math.nan, math.inf, True, None])
def test_errors_without_meaning_are_refused(error):
    with pytest.raises(InvalidParameter):
        epsilon_lower(1, 2, 1, 2, error=error)


@pytest.mark.parametrize("delta", [-1, 2, math.nan, "x"])
def test_deltas_without_meaning_are_refused(delta):
    with pytest.raises(InvalidParameter):
        epsilon_lower(1, 2, 1, 2, delta=delta)


def test_a_negative_epsilon_is_refused():
    with pytest.raises(InvalidParameter):
        delta_lower(1, 2, 1, 2, epsilon=-1)
