"""What two counts prove about privacy: certified lower bounds on epsilon and delta.

An auditor ran a mechanism on two neighbouring inputs and counted how often an event happened. Three
things must be so. The event and the numbers of runs were fixed before these runs; the event is a
set of outputs, so that one output decides about itself alone; and the runs on one input are
independent of one another and of the same law. Then each count is binomial, and the exact interval
of Clopper and Pearson turns both into a statement about the mechanism that is false with at most
the probability `error`, whatever the mechanism is. The two samples may depend on each other.

Whoever looks more than once, at other events or before all runs are done, divides `error` among
all the looks planned. The statements about epsilon and delta that are made from the same counts
with the same `error` rest on the same two ends and are true or false together: they share it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

from flint import arb

from lastbit.errors import InvalidParameter
from lastbit.exact import (
    DEFAULT_PRECISION,
    Number,
    arb_of,
    lower,
    rational,
    upper,
    whole,
    working_precision,
)

DEFAULT_ERROR = Fraction(1, 10**6)
_MOST_TRIALS = 1 << 34
_FEW = 1 << 12
_SHARP = 48
_MOST_STEPS = 60
_CLOSE = 1e-12


def epsilon_lower(
    hits: int,
    trials: int,
    other_hits: int,
    other_trials: int,
    *,
    delta: Number = 0,
    error: Number = DEFAULT_ERROR,
) -> float:
    """An epsilon that the mechanism certainly has not got below, rounded down; 0 if none is shown.

    Law      ln((P_low - delta) / Q_high): P_low is the lower end for the event under one input,
             Q_high the upper end under the other, each with half of `error`
    Theorem  with probability at least 1 - error over both samples, every epsilon for which the
             mechanism is (epsilon, delta)-private for these inputs is at least this: both ends hold
             at once with that probability (union bound), and privacy says P <= e**epsilon Q + delta
    Source   Clopper, Pearson 1934; Ding et al. 2018; Bichsel et al. 2021 (DP-Sniper)
    Differs  the ends come from balls and are rounded outwards; no normal approximation
    Checked  tests/audit/test_bounds.py, tests/audit/test_false_accusation.py

    >>> epsilon_lower(900, 1000, 100, 1000) < math.log(9)
    True
    >>> round(epsilon_lower(90_000, 100_000, 10_000, 100_000), 3)
    2.146
    >>> epsilon_lower(5, 1000, 4, 1000)
    0.0
    """
    share, allowed = _share(delta, "delta"), _error(error) / 2
    low = probability_lower(hits, trials, error=allowed)
    high = probability_upper(other_hits, other_trials, error=allowed)
    rest = Fraction(low) - share
    if rest <= 0:
        return 0.0
    with working_precision(DEFAULT_PRECISION):
        return max(0.0, lower((arb_of(rest) / arb_of(Fraction(high))).log()))


def delta_lower(
    hits: int,
    trials: int,
    other_hits: int,
    other_trials: int,
    *,
    epsilon: Number,
    error: Number = DEFAULT_ERROR,
) -> float:
    """A delta that the mechanism certainly has not got below at this epsilon; 0 if none is shown.

    Law      P_low - e**epsilon Q_high, rounded down; the ends are those of `epsilon_lower`
    Theorem  as for `epsilon_lower`: delta >= P - e**epsilon Q for every event
    Checked  tests/audit/test_bounds.py, tests/audit/test_false_accusation.py

    >>> delta_lower(500, 1000, 0, 1000, epsilon=1) > 0.35
    True
    """
    loss, allowed = rational(epsilon, "epsilon"), _error(error) / 2
    if loss < 0:
        raise InvalidParameter("epsilon", problem="is negative", remedy="pass a number from 0 up")
    low = probability_lower(hits, trials, error=allowed)
    high = probability_upper(other_hits, other_trials, error=allowed)
    if low <= high:  # also keeps e**epsilon from being formed where it cannot matter
        return 0.0
    with working_precision(DEFAULT_PRECISION):
        rest = arb_of(Fraction(low)) - arb_of(loss).exp() * arb_of(Fraction(high))
        # an epsilon whose exponential has no ball leaves nothing: high is above 0
        return max(0.0, lower(rest)) if rest.is_finite() else 0.0


def interval(hits: int, trials: int, error: Number = DEFAULT_ERROR) -> tuple[float, float]:
    """Two ends between which the probability lies, except with probability `error`.

    >>> interval(0, 100, "0.05")
    (0.0, 0.0362166...)
    """
    allowed = _error(error) / 2
    low = probability_lower(hits, trials, error=allowed)
    return low, probability_upper(hits, trials, error=allowed)


def probability_lower(hits: int, trials: int, *, error: Number = DEFAULT_ERROR) -> float:
    """The lower end of a one-sided interval for a probability, after so many hits.

    Law      the greatest p with P[Bin(trials, p) >= hits] <= error, within a factor 1 - 1e-11 below
    Theorem  if p is the true probability, the answer exceeds p with probability at most `error`:
             let h be the least count whose answer exceeds p; the tail at h rises with its argument,
             so P[Bin(trials, p) >= h] <= error. The tail is I_p(hits, trials - hits + 1). Its
             logarithm is concave in ln p (so is that of its density, hence of its integral), so
             Newton's steps stay on the safe side; the last one is checked again with balls
    Source   Clopper, Pearson 1934
    Checked  tests/audit/test_bounds.py

    >>> probability_lower(100, 100, error="0.05")
    0.9704869...
    """
    count, total, allowed = *_counts(hits, trials), _error(error)
    if count == 0:
        return 0.0
    guess = _newton(count, total, allowed)
    for shrink in (0.0, *(2.0**-places for places in range(52, 20, -4))):
        candidate = guess * (1 - shrink)
        if _tail_is_at_most(count, total, candidate, allowed):
            return candidate
    return 0.0  # nothing proved; never reached in the tests, and safe


def probability_upper(hits: int, trials: int, *, error: Number = DEFAULT_ERROR) -> float:
    """The upper end of a one-sided interval: one minus the lower end for the misses.

    >>> probability_upper(0, 100, error="0.05")
    0.0295130...
    """
    count, total = _counts(hits, trials)
    return upper(1 - Fraction(probability_lower(total - count, total, error=error)))


def _newton(hits: int, trials: int, error: Fraction) -> float:
    """A float near the greatest p whose tail is at most `error`; only a guess."""
    target = math.log(error.numerator) - math.log(error.denominator)
    constant = (
        math.lgamma(trials + 1) - math.lgamma(hits) - math.lgamma(trials - hits + 1)
    )  # of the density p**hits (1-p)**(trials-hits) in ln p
    logarithm = (target - constant) / hits if hits == trials else math.log(hits / trials) - 1e-9
    for _ in range(_MOST_STEPS):
        p = math.exp(logarithm)
        tail = _log_tail(hits, trials, p, error)
        rest = (trials - hits) * math.log1p(-p) if hits < trials else 0.0
        slope = math.exp(constant + hits * logarithm + rest - tail)
        step = (target - tail) / slope
        logarithm = min(logarithm + step, -(2.0**-53))
        if abs(step) < _CLOSE:
            break
    return math.exp(logarithm)


def _log_tail(hits: int, trials: int, p: float, error: Fraction) -> float:
    return float(_tail(hits, trials, p, error).log().mid())


def _tail_is_at_most(hits: int, trials: int, p: float, error: Fraction) -> bool:
    """Whether P[Bin(trials, p) >= hits] <= error, certainly."""
    tail = _tail(hits, trials, p, error)
    with working_precision(DEFAULT_PRECISION):
        return bool(tail <= arb_of(error))


def _tail(hits: int, trials: int, p: float, error: Fraction) -> arb:
    """P[Bin(trials, p) >= hits]: I_p(hits, misses + 1), or 1 - I_(1-p)(misses + 1, hits).

    These are the same number. Among millions of trials with few misses the second is fast and sharp
    and the first is neither; elsewhere it is the other way round.
    """
    few = p > 0.5 and trials - hits < _FEW
    tail = arb.nan()
    for precision, falling in product((DEFAULT_PRECISION, 4 * DEFAULT_PRECISION), (few, not few)):
        # a tail as small as the error is the rest of a difference: so many bits are lost
        lost = error.denominator.bit_length() if falling else 0
        with working_precision(precision + lost):
            if falling:
                tail = 1 - (1 - arb(p)).beta_lower(trials - hits + 1, hits, 1)
            else:
                tail = arb(p).beta_lower(hits, trials - hits + 1, 1)
        if tail.rel_accuracy_bits() > _SHARP:
            break
    return tail


def _counts(hits: int, trials: int) -> tuple[int, int]:
    total = whole(trials, "trials", least=1)
    if total > _MOST_TRIALS:
        raise InvalidParameter("trials", problem="are above 2**34", remedy="count fewer runs")
    count = whole(hits, "hits")
    if count > total:
        raise InvalidParameter(
            "hits", problem="are more than the trials", remedy="pass hits <= trials"
        )
    return count, total


def _error(error: Number) -> Fraction:
    number = rational(error, "error")
    if not 0 < number < 1:
        raise InvalidParameter(
            "error", problem="is not strictly between 0 and 1", remedy='pass, say, "1e-6"'
        )
    return number


def _share(value: Number, name: str) -> Fraction:
    number = rational(value, name)
    if not 0 <= number <= 1:
        raise InvalidParameter(name, problem="is outside [0, 1]", remedy="pass a probability")
    return number
