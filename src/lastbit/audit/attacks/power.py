"""How many samples an attack needs to catch what it looks for, by exact binomial tails."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

from lastbit.audit.bounds import DEFAULT_ERROR, epsilon_lower
from lastbit.errors import InvalidParameter
from lastbit.exact import Number, probability, rational, tail_surely_at_most, whole

MOST_TRIALS = 1 << 32
START = 0.98  # of what the normal law says
GROWTH = Fraction(103, 100)
WIDER = 1.02


def trials_to_catch(
    likely: Number,
    other: Number,
    *,
    claimed: Number,
    delta: Number = 0,
    error: Number = DEFAULT_ERROR,
    miss: Number = DEFAULT_ERROR,
) -> int:
    """So many trials of each value that a mechanism which breaks its claim is accused.

    Law      the event has probability `likely` under one value and `other` under the other, and
             breaks the claim: likely > e**claimed other + delta. The answer is proved to do
             (`catches`), and some per cent above the least that does where the law is near normal
    Theorem  as for `catches`. An attack that draws for both values needs twice as many samples
    Checked  tests/audit/attacks/test_power.py

    >>> trials_to_catch("3/4", "1/4", claimed=1)                       # ln(3) is just above 1
    52...
    >>> trials_to_catch("1/4", "1/4", claimed=0)
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: likely is not above what the claim allows; ...
    """
    p, q = probability(likely, "likely"), probability(other, "other")
    loss, share = rational(claimed, "claimed"), rational(delta, "delta")
    gap = float(p) - math.exp(loss) * float(q) - float(share)
    if not gap > 0:
        raise InvalidParameter(
            "likely",
            problem="is not above what the claim allows",
            remedy="pass an event that breaks the claim",
        )
    far = _normal(rational(error, "error") / 2) + _normal(rational(miss, "miss") / 2)
    spread = math.sqrt(float(p * (1 - p))) + math.exp(loss) * math.sqrt(float(q * (1 - q)))
    trials = max(1, int(START * (far * spread / gap) ** 2))
    while trials <= MOST_TRIALS:
        if catches(trials, p, q, claimed=loss, delta=share, error=error, miss=miss):
            return trials
        trials = int(trials * GROWTH) + 1
    raise InvalidParameter(
        "likely", problem="needs more than 2**32 trials", remedy="pass an event that tells more"
    )


def catches(
    trials: int,
    likely: Number,
    other: Number,
    *,
    claimed: Number,
    delta: Number = 0,
    error: Number = DEFAULT_ERROR,
    miss: Number = DEFAULT_ERROR,
) -> bool:
    """Whether so many trials of each value accuse, except with probability `miss`, certainly.

    Law      h hits with P[Bin(trials, likely) < h] <= miss/2, o hits with
             P[Bin(trials, other) > o] <= miss/2, and then the bound from h and o is above the claim
    Theorem  `epsilon_lower` rises with the hits of the likely value and falls with the other's. So
             whenever there are at least h and at most o, which fails with probability at most miss
             (union bound), the bound is above the claim. Both tails are checked by balls
    Checked  tests/audit/attacks/test_power.py

    >>> catches(100, "3/4", "1/4", claimed=1), catches(100_000, "3/4", "1/4", claimed=1)
    (False, True)
    """
    count = whole(trials, "trials", least=1)
    p, q = probability(likely, "likely"), probability(other, "other")
    half = probability(miss, "miss") / 2
    hits = count - _seldom_above(count, 1 - p, half)
    other_hits = _seldom_above(count, q, half)
    low = epsilon_lower(hits, count, other_hits, count, delta=delta, error=error)
    return math.isinf(low) or Fraction(low) > rational(claimed, "claimed")


def _seldom_above(trials: int, p: Fraction, chance: Fraction) -> int:
    """A number k with P[Bin(trials, p) > k] <= chance, near the least."""
    if p in (0, 1):
        return trials if p else 0
    mean, spread = float(trials * p), math.sqrt(float(trials * p * (1 - p)))
    far = _normal(chance)
    while True:
        k = min(trials, math.ceil(mean + far * spread + far**2 / 6))
        if k == trials or tail_surely_at_most(k + 1, trials, p, chance):
            return k
        far *= WIDER


def _normal(chance: Fraction) -> float:
    """About how many standard deviations are exceeded with this probability; a guess."""
    return -NormalDist().inv_cdf(max(float(chance), 1e-300))
