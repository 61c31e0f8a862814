"""lastbit's mechanisms that answer with something else than a number plus noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from lastbit.audit.shelf.loading import again_and_again
from lastbit.audit.target import Target
from lastbit.mechanisms.above_threshold import AboveThreshold
from lastbit.mechanisms.exponential import Exponential
from lastbit.mechanisms.exponential_quantile import ExponentialQuantile
from lastbit.mechanisms.histogram import Histogram, ThresholdedHistogram
from lastbit.mechanisms.noisy_max import ReportNoisyMax
from lastbit.mechanisms.permute_and_flip import PermuteAndFlip
from lastbit.mechanisms.poll import Poll
from lastbit.mechanisms.propose_test_release import Passed, ProposeTestRelease
from lastbit.mechanisms.randomized_response import RandomizedResponse
from lastbit.mechanisms.smooth_noise import SmoothNoise
from lastbit.mechanisms.smooth_statistic import (
    SmoothStatistic,
    private_median,
    private_quantile,
    private_trimmed_mean,
    private_variance,
)
from lastbit.mechanisms.stable_value import StableValue
from lastbit.privacy.neighbours import ADD_REMOVE, CHANGE_ONE
from lastbit.sensitivity.distance import Stability
from lastbit.sensitivity.proposal import Proposal
from lastbit.sensitivity.smooth import smooth_sensitivity

__all__ = ["own_answer_targets"]

# years above and below 44; one record changed, and the median moves from 0 to 1
AGES = (-21, -9, -7, -3, 0, 1, 8, 17, 20)
OLDER = (-21, -9, -7, -3, 1, 1, 8, 17, 20)
BOUNDS: Mapping[str, Any] = MappingProxyType({"lower": -60, "upper": 60})
# two records on the left, two just right of them, one far away; then one of the first two is there
LEFT = (0, 0, 10, 10, 10_000)
RIGHT = (0, 10, 10, 10_000, 10_000)
WORSE_AND_BETTER = (0, 8), (1, 7)
UNLIKELY_ALARMS = (8, 8, 8, 8, 8, 8, -9), (7, 7, 7, 7, 7, 7, -8)
DELTA = Fraction(1, 1000)


def own_answer_targets() -> Iterator[Target]:
    """Counts, choices, medians, and answers that may be withheld."""
    yield from _counts()
    yield from _choices()
    yield from _medians()
    yield from _withheld()


def _counts() -> Iterator[Target]:
    """Many keys with the same count in one release: each has the law of a single key."""

    def counted(count: int, size: int) -> list[int]:
        histogram = Histogram(keys=range(size), epsilon=1, keys_per_person=1)
        return list(histogram.release(dict.fromkeys(range(size), count)).values())

    yield Target(
        name="lastbit Histogram", release=counted, claimed=1, values=(0, 1), scale=1, step=1
    )
    found = ThresholdedHistogram(epsilon=1, delta=DELTA, keys_per_person=1)

    def found_counts(count: int, size: int) -> list[float]:
        released = found.release(dict.fromkeys(range(size), count))
        return [released.get(key, math.nan) for key in range(size)]

    yield Target(
        name="lastbit ThresholdedHistogram",
        release=found_counts,
        claimed=found.guarantee.epsilon,
        delta=found.guarantee.delta,
        values=(found.threshold, found.threshold + 1),
        scale=1,
        step=1,
    )
    poll = Poll(epsilon=1)
    yield Target(
        name="lastbit Poll",
        release=lambda value, size: poll.collect(np.full(size, bool(value))),
        claimed=poll.guarantee.epsilon,
        values=(0, 1),
        step=1,
    )
    response = RandomizedResponse(epsilon=1)
    yield Target(
        name="lastbit RandomizedResponse",
        release=lambda value, size: response.release(np.full(size, bool(value))),
        claimed=response.guarantee.epsilon,
        values=(0, 1),
        step=1,
    )


def _choices() -> Iterator[Target]:
    """How often the worse of two candidates is chosen, when it becomes less bad."""
    for kind in (Exponential, PermuteAndFlip, ReportNoisyMax):
        pick = kind(sensitivity=1, epsilon=1)
        yield Target(
            name=f"lastbit {kind.__name__}",
            release=lambda values, size, pick=pick: pick.release(values, size) == 0,
            claimed=pick.guarantee.epsilon,
            values=WORSE_AND_BETTER,
        )
    alarm = AboveThreshold(threshold=1, epsilon=1)

    def first(values: tuple[int, ...]) -> int:
        answers = alarm.release(values)
        return answers.index(True) if True in answers else len(values)

    yield Target(
        name="lastbit AboveThreshold",
        release=again_and_again(first),
        claimed=alarm.guarantee.epsilon,
        values=UNLIKELY_ALARMS,
    )


def _medians() -> Iterator[Target]:
    known = partial(Target, values=(AGES, OLDER), answers=(0, 1), step="1/16", claimed=1)
    quantile = ExponentialQuantile("1/2", epsilon=1, grid=1, lower=0, upper=10_000)
    yield known(
        name="lastbit ExponentialQuantile",
        release=again_and_again(quantile.release),
        values=(LEFT, RIGHT),
        answers=(10, 10),
        step=1,
    )
    for noise, delta in (("cauchy", None), ("student", None), ("laplace", DELTA)):
        median = SmoothStatistic(
            "median", epsilon=1, delta=delta, noise=noise, grid="1/16", **BOUNDS
        )
        yield known(
            name=f"lastbit SmoothStatistic, {noise}",
            release=again_and_again(median.release),
            delta=delta or 0,
        )
    smooth = SmoothNoise(epsilon=1, noise="cauchy", grid="1/16", neighbours=CHANGE_ONE)
    bounds = [
        smooth_sensitivity("median", ages, beta=smooth.beta, **BOUNDS) for ages in (AGES, OLDER)
    ]
    yield known(
        name="lastbit SmoothNoise",
        release=again_and_again(smooth.release),
        values=(bounds[0], bounds[1]),
    )
    yield from _statistics(partial(Target, values=(AGES, OLDER), claimed=1))


def _statistics(known: Callable[..., Target]) -> Iterator[Target]:
    """The functions that make such a mechanism and use it once."""
    options: dict[str, Any] = {"epsilon": 1, "grid": "1/16", **BOUNDS}
    for function, level in (
        (private_median, ()),
        (private_quantile, ("1/4",)),
        (private_trimmed_mean, ()),
        (private_variance, ()),
    ):
        once = partial(_once, function, level, options)
        yield known(name=f"lastbit {function.__name__}", release=again_and_again(once))


def _once(
    function: Callable[..., float], level: tuple[str, ...], options: Mapping[str, Any], data: Any
) -> float:
    return function(data, *level, **options)


def _withheld() -> Iterator[Target]:
    """At the threshold itself the test loses all it may."""
    stable = StableValue(epsilon=1, delta=DELTA, neighbours=ADD_REMOVE)
    yield Target(
        name="lastbit StableValue",
        release=again_and_again(lambda mode: stable.release(mode) == "yes"),
        claimed=stable.guarantee.epsilon,
        delta=stable.guarantee.delta,
        values=(
            Stability("yes", stable.threshold, ADD_REMOVE),
            Stability("yes", stable.threshold + 1, ADD_REMOVE),
        ),
    )
    ask = ProposeTestRelease(bounds=[60], epsilon=2, delta="1e-6", neighbours=CHANGE_ONE)

    def value(proposal: Any) -> float:
        answer = ask.release(proposal)
        return float(answer.value) if isinstance(answer, Passed) else math.nan

    yield Target(
        name="lastbit ProposeTestRelease",
        release=again_and_again(value),
        claimed=ask.guarantee.epsilon,
        delta=ask.guarantee.delta,
        values=(Proposal(0, [ask.threshold]), Proposal(60, [ask.threshold + 1])),
        answers=(0, 60),
    )
