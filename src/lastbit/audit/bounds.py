"""What two counts prove about privacy: certified lower bounds on epsilon and delta.

An auditor ran a mechanism on two neighbouring inputs and counted how often an event happened. Three
conditions must hold. The event and the numbers of runs were fixed before these runs; the event is
a set of outputs, so each output decides by itself; and the runs on one input are independent and
identically distributed. Then each count is binomial, and the exact interval of Clopper and Pearson
turns both into a statement about the mechanism that is false with probability at most `error`,
whatever the mechanism is. The two samples may depend on each other.

Looking more than once, at other events or before all runs are done, takes a share of `error` for
each planned look; or ends that hold at every number of runs at once (`lower_at_all_times`), and
are wider. Statements about epsilon and delta from the same counts with the same `error` rest on
the same two ends and are true or false together: they share it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

from flint import arb

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
_HALVINGS = 200
Prior: TypeAlias = tuple[int, int]
"""Two positive weights of a beta law: hits and misses that are expected."""


def epsilon_lower(
    hits: int,
    trials: int,
    other_hits: int,
    other_trials: int,
    *,
    delta: Number = 0,
    error: Number = DEFAULT_ERROR,
    priors: tuple[Prior, Prior] | None = None,
) -> float:
    """A certified lower bound on epsilon, rounded down; 0 if none is shown.

    Law      ln((P_low - delta) / Q_high): P_low is the lower end for the event under one input,
             Q_high the upper end under the other, each with half of `error`
    Theorem  with probability at least 1 - error over both samples, every epsilon for which the
             mechanism is (epsilon, delta)-private for these inputs is at least this: both ends hold
             at once with that probability (union bound), and privacy says P <= e**epsilon Q + delta
    Source   Clopper, Pearson 1934; Ding et al. 2018; Bichsel et al. 2021 (DP-Sniper)
    Differs  the ends come from balls and are rounded outwards; no normal approximation. With
             `priors`, for hits of the one and misses of the other, for all numbers of runs at once
    Checked  tests/audit/test_bounds.py, tests/audit/test_false_accusation.py

    >>> round(epsilon_lower(90_000, 100_000, 10_000, 100_000), 3)
    2.146
    >>> epsilon_lower(5, 1000, 4, 1000)
    0.0
    """
    share = probability(delta, "delta")
    low, high = _ends(hits, trials, other_hits, other_trials, error, priors)
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
    priors: tuple[Prior, Prior] | None = None,
) -> float:
    """A certified lower bound on delta at this epsilon; 0 if none is shown.

    Law      P_low - e**epsilon Q_high, rounded down; the ends are those of `epsilon_lower`
    Theorem  as for `epsilon_lower`: delta >= P - e**epsilon Q for every event
    Checked  tests/audit/test_bounds.py, tests/audit/test_false_accusation.py

    >>> delta_lower(500, 1000, 0, 1000, epsilon=1) > 0.35
    True
    """
    loss = nonnegative(epsilon, "epsilon")
    low, high = _ends(hits, trials, other_hits, other_trials, error, priors)
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


def ratio_lower(
    hits: int, other_hits: int, *, error: Fraction, prior: Prior | None = None
) -> float:
    """A lower bound on ln(P/Q) for the probabilities of an event under two inputs.

    Law      ln(s/(1-s)), rounded down: s is the lower end for `hits` among hits + other_hits
    Theorem  wrong with probability at most `error`, if the input of every run was chosen by a fair
             coin. A run on the first input with a hit then has probability P/2, one on the second
             Q/2; so, given how many hits there were, each was of the first with probability
             s = P/(P+Q), independently, and P/Q = s/(1-s). With a `prior` this holds for all
             numbers of runs at once: the hits are a sequence of such trials
    Source   Przyborowski, Wilenski 1940, for two Poisson means
    Differs  a coin for each run makes it exact for binomial counts; against two separate intervals
             it needs half as many runs where the event is rare
    Checked  tests/audit/test_sampled.py

    >>> round(ratio_lower(3000, 1000, error=Fraction(1, 10**6)), 3)
    0.927
    >>> ratio_lower(0, 5, error=Fraction(1, 10**6))
    0.0
    """
    if hits == 0:
        return 0.0
    if prior is None:
        share = Fraction(probability_lower(hits, hits + other_hits, error=error))
    else:
        share = Fraction(lower_at_all_times(hits, hits + other_hits, prior=prior, error=error))
    if share <= Fraction(1, 2):
        return 0.0
    with working_precision(DEFAULT_PRECISION):
        return max(0.0, lower((arb_of(share) / arb_of(1 - share)).log()))


def lower_at_all_times(hits: int, trials: int, *, prior: Prior, error: Number) -> float:
    """A lower end for a probability that holds after every number of trials at once.

    Law      the greatest s below hits/trials, within rounding, at which the likelihood
             s**h (1-s)**m of h hits and m misses is at most error * B(a+h, b+m) / B(a, b)
    Theorem  with probability at least 1 - error no answer exceeds the true s, whatever the number
             of trials, fixed or decided by what was seen. For the true s the mixture
             M = (B(a+h, b+m) / B(a, b)) / (s**h (1-s)**m) is the mean of the likelihood ratios of
             all other shares to s, by a beta law that was fixed beforehand: it starts at 1, is not
             negative, and its mean after one more trial is what it was, so it ever reaches 1/error
             with probability at most `error` (Ville). The likelihood rises up to hits/trials: an
             answer above s means that M, at s, has reached it
    Source   Ville 1939; Robbins 1970; Howard et al. 2021
    Differs  the prior lies where outputs that are not counted put the share; balls decide the
             comparison. At the planned end this costs more than it brings: at a share of 0.52 and
             10^7 trials it is 1.15 times as far from the share as Clopper and Pearson's end at
             error 1e-6, and 2.0 times at 0.1. So most of the error goes to the planned end
    Checked  tests/audit/test_bounds.py, exactly, over all sequences

    >>> lower_at_all_times(900, 1000, prior=(90, 10), error="1e-6") < 0.9
    True
    """
    misses, allowed = trials - hits, error_rate(error)
    if hits == 0:
        return 0.0
    first, second = prior
    with working_precision(2 * DEFAULT_PRECISION):
        level = _log_beta(first + hits, second + misses) - _log_beta(first, second)
        level += arb_of(allowed).log()
        guess = _solved(hits, misses, float(level.mid()))
        for places in (*range(52, 20, -4), 10, 4):
            share = Fraction(guess * (1 - 2.0**-places))
            if 0 < share < 1 and share * trials <= hits:  # there the likelihood rises
                likely = hits * arb_of(share).log() + misses * arb_of(1 - share).log()
                if likely <= level:
                    return float(share)
    return 0.0


def _log_beta(first: int, second: int) -> arb:
    return arb(first).lgamma() + arb(second).lgamma() - arb(first + second).lgamma()


def _solved(hits: int, misses: int, level: float) -> float:
    """A float near the share below hits/trials whose logarithmic likelihood is `level`."""
    low, high = 0.0, hits / (hits + misses)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        rest = misses * math.log1p(-middle) if misses else 0.0
        low, high = (low, middle) if hits * math.log(middle) + rest > level else (middle, high)
    return low


def _ends(
    hits: int,
    trials: int,
    other_hits: int,
    other_trials: int,
    error: Number,
    priors: tuple[Prior, Prior] | None,
) -> tuple[Fraction, Fraction]:
    """The lower end under one input and the upper end under the other, at once but for `error`."""
    half = error_rate(error) / 2
    if priors is None:
        low = probability_lower(hits, trials, error=half)
        return Fraction(low), Fraction(probability_upper(other_hits, other_trials, error=half))
    low = lower_at_all_times(hits, trials, prior=priors[0], error=half)
    misses = other_trials - other_hits
    rest = lower_at_all_times(misses, other_trials, prior=priors[1], error=half)
    return Fraction(low), 1 - Fraction(rest)


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
