"""What two counts prove about privacy: certified lower bounds on epsilon and delta.

An auditor ran a mechanism on two neighbouring inputs and counted how often an event happened. Three
conditions must hold. The event and the numbers of runs were fixed before these runs; the event is
a set of outputs, so each output decides by itself; and the runs on one input are independent and
identically distributed. Then each count is binomial, and the exact interval of Clopper and Pearson
turns both into a statement about the mechanism that is false with probability at most `error`,
whatever the mechanism is. The two samples may depend on each other.

Looking more than once, at other events or before all runs are done, takes a share of `error` for
each planned look. Statements about epsilon and delta from the same counts with the same `error`
rest on the same two ends and are true or false together: they share it.
"""

from __future__ import annotations

import math
from fractions import Fraction

from lastbit.errors import InvalidParameter
from lastbit.exact import (
    DEFAULT_PRECISION,
    Number,
    arb_of,
    clopper_pearson,
    lower,
    nonnegative,
    probability,
    probability_lower,
    probability_upper,
    working_precision,
)

DEFAULT_ERROR = Fraction(1, 10**6)


def epsilon_lower(
    hits: int,
    trials: int,
    other_hits: int,
    other_trials: int,
    *,
    delta: Number = 0,
    error: Number = DEFAULT_ERROR,
) -> float:
    """A certified lower bound on epsilon, rounded down; 0 if none is shown.

    Law      ln((P_low - delta) / Q_high): P_low is the lower end for the event under one input,
             Q_high the upper end under the other, each with half of `error`
    Theorem  with probability at least 1 - error over both samples, every epsilon for which the
             mechanism is (epsilon, delta)-private for these inputs is at least this: both ends hold
             at once with that probability (union bound), and privacy says P <= e**epsilon Q + delta
    Source   Clopper, Pearson 1934; Ding et al. 2018; Bichsel et al. 2021 (DP-Sniper)
    Differs  the ends come from balls and are rounded outwards; no normal approximation
    Checked  tests/audit/test_bounds.py, tests/audit/test_false_accusation.py

    >>> round(epsilon_lower(90_000, 100_000, 10_000, 100_000), 3)
    2.146
    >>> epsilon_lower(5, 1000, 4, 1000)
    0.0
    """
    share = probability(delta, "delta")
    low, high = _ends(hits, trials, other_hits, other_trials, error)
    rest = low - share
    if rest <= 0:
        return 0.0
    with working_precision(DEFAULT_PRECISION):
        return max(0.0, lower((arb_of(rest) / arb_of(high)).log()))


def delta_lower(
    hits: int,
    trials: int,
    other_hits: int,
    other_trials: int,
    *,
    epsilon: Number,
    error: Number = DEFAULT_ERROR,
) -> float:
    """A certified lower bound on delta at this epsilon; 0 if none is shown.

    Law      P_low - e**epsilon Q_high, rounded down; the ends are those of `epsilon_lower`
    Theorem  as for `epsilon_lower`: delta >= P - e**epsilon Q for every event
    Checked  tests/audit/test_bounds.py, tests/audit/test_false_accusation.py

    >>> delta_lower(500, 1000, 0, 1000, epsilon=1) > 0.35
    True
    """
    loss = nonnegative(epsilon, "epsilon")
    low, high = _ends(hits, trials, other_hits, other_trials, error)
    if low <= high:  # also keeps e**epsilon from being formed where it cannot matter
        return 0.0
    with working_precision(DEFAULT_PRECISION):
        rest = arb_of(low) - arb_of(loss).exp() * arb_of(high)
        # an epsilon whose exponential has no ball leaves nothing: high is above 0
        return max(0.0, lower(rest)) if rest.is_finite() else 0.0


def interval(hits: int, trials: int, error: Number = DEFAULT_ERROR) -> tuple[float, float]:
    """Two ends between which the probability lies, except with probability `error`.

    >>> interval(0, 100, "0.05")
    (0.0, 0.0362166...)
    """
    return clopper_pearson(hits, trials, error=error)


def _ends(
    hits: int, trials: int, other_hits: int, other_trials: int, error: Number
) -> tuple[Fraction, Fraction]:
    """The lower end under one input and the upper end under the other, at once but for `error`."""
    half = error_rate(error) / 2
    low = probability_lower(hits, trials, error=half)
    return Fraction(low), Fraction(probability_upper(other_hits, other_trials, error=half))


def error_rate(error: Number) -> Fraction:
    """The rate of false accusations, strictly between 0 and 1."""
    return probability(error, "error", zero=False, one=False, remedy='pass, say, "1e-6"')


def error_of(error: Number | None, confidence: Number | None) -> Fraction:
    """The rate of false accusations, by whichever of the two is given: error = 1 - confidence.

    >>> error_of(None, "0.9"), error_of(None, None) == DEFAULT_ERROR
    (Fraction(1, 10), True)
    """
    if confidence is None:
        return error_rate(DEFAULT_ERROR if error is None else error)
    if error is not None:
        raise InvalidParameter(
            "confidence",
            problem="is given beside error",
            remedy="pass one of the two: confidence is 1 - error",
        )
    remedy = 'pass a share between 0 and 1, say "0.9" for 90 %'
    return 1 - probability(confidence, "confidence", zero=False, one=False, remedy=remedy)


def exceeds(epsilon_lower: float, claimed: Fraction) -> bool:
    """Whether a certified float is above the claim; the comparison is exact."""
    return math.isinf(epsilon_lower) or Fraction(epsilon_lower) > claimed
