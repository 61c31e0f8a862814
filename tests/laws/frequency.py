"""A frequency test with a proved false-alarm rate and a stated power."""

from __future__ import annotations

import math
from fractions import Fraction


def divergence(a: float, b: float) -> float:
    """Kullback-Leibler divergence of two coins."""
    total = 0.0
    if a > 0:
        total += a * math.log(a / b)
    if a < 1:
        total += (1 - a) * math.log((1 - a) / (1 - b))
    return total


def suspicious(hits: int, *, trials: int, probability: float, false_alarm: float) -> bool:
    """Whether Chernoff's bound on both tails puts this count below the false-alarm rate."""
    return trials * divergence(hits / trials, probability) > math.log(2 / false_alarm)


def assert_frequency(
    hits: int,
    *,
    trials: int,
    probability: float,
    false_alarm: float = 2.0**-40,
    detects: Fraction | None = None,
) -> None:
    """Fail if the count is too far from its expectation; `detects` states the power.

    Theorem  P[suspicious] <= false_alarm if the probability is right (Chernoff). A law whose
             probability is off by the relative amount `detects` would be seen in the middle of its
             distribution, that is in at least half of all runs.
    """
    if detects is not None:
        for factor in (1 + detects, 1 - detects):
            off = round(trials * probability * float(factor))
            assert suspicious(off, trials=trials, probability=probability, false_alarm=false_alarm)
    assert not suspicious(hits, trials=trials, probability=probability, false_alarm=false_alarm), (
        f"{hits} of {trials} where {probability:.6g} was expected"
    )
