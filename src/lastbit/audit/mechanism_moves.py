"""How far each of our mechanisms lets its input move, and what a move costs there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from lastbit.audit.moves import (
    Move,
    Norm,
    differences,
    distance,
    entries_changed,
    no_more_than,
    people,
    priced,
    root_above,
)
from lastbit.audit.sameness import same
from lastbit.exact.rational import rational
from lastbit.exact.real import Real, refine
from lastbit.mechanisms.above_threshold import AboveThreshold
from lastbit.mechanisms.exponential_quantile import ExponentialQuantile
from lastbit.mechanisms.gaussian import Gaussian
from lastbit.mechanisms.histogram import Histogram, ThresholdedHistogram
from lastbit.mechanisms.laplace import Laplace
from lastbit.mechanisms.noisy_max import ReportNoisyMax
from lastbit.mechanisms.planar import PlanarLaplace
from lastbit.mechanisms.polar import PolarLaplace
from lastbit.mechanisms.propose_test_release import ProposeTestRelease
from lastbit.mechanisms.randomized_response import RandomizedResponse
from lastbit.mechanisms.rounded_laplace import RoundedLaplace
from lastbit.mechanisms.selection import ByRate
from lastbit.mechanisms.smooth_noise import SmoothNoise
from lastbit.mechanisms.smooth_statistic import SmoothStatistic
from lastbit.mechanisms.snapping import Snapping
from lastbit.mechanisms.stable_value import StableValue
from lastbit.privacy.guarantees import Guarantee, PureDP

__all__ = ["MechanismRule"]

_OURS = "lastbit.mechanisms."
_NOWHERE = Move(distance=Fraction(0))
_APART = "its input moves as no neighbours can, by what the mechanism was told"


@dataclass(frozen=True, slots=True)
class MechanismRule:
    """One of our mechanisms, and how many releases were asked for at once."""

    mechanism: Any
    releases: int = 1

    def moved(self, here: Any, there: Any) -> Move:
        """The move, measured as the mechanism's theorem measures it.

        The theorem is that of our own class: what a subclass says of its guarantee, its sensitivity
        or its distance nobody has proved, so the price of its releases is not known.
        """
        if not type(self.mechanism).__module__.startswith(_OURS):
            return Move(distance=math.inf, costs=None)
        match self.mechanism:
            case Laplace() | RoundedLaplace():
                return _by_norm(self.mechanism, here, there, "L1")
            case Gaussian():
                return _by_norm(self.mechanism, here, there, "L2")
            case Histogram():
                return _by_norm(self.mechanism, here, there, "L1")
            case ByRate() | ReportNoisyMax() | AboveThreshold():
                return _together(self.mechanism, here, there, self.releases)
            case ThresholdedHistogram():
                return _keys(self.mechanism, here, there)
            case RandomizedResponse():
                changed = entries_changed(here, there)
                return _counted(self.mechanism, changed)
            case SmoothStatistic():
                relation = self.mechanism.noise.neighbours.relation
                return _counted(self.mechanism, people(here, there, relation))
            case ExponentialQuantile():
                relation = self.mechanism.neighbours.relation
                return _counted(self.mechanism, people(here, there, relation))
            case Snapping():
                return _each_number(self.mechanism, here, there)
            case PlanarLaplace() | PolarLaplace():
                return _each_point(self.mechanism, here, there)
            case SmoothNoise() | ProposeTestRelease() | StableValue():
                return _facts(self.mechanism, here, there)
        return Move(distance=math.inf, costs=None)  # a mechanism that is not known here yet


def _cost(mechanism: Any, far: Fraction | float) -> tuple[Guarantee, ...]:
    if far == math.inf:
        return (PureDP(math.inf),)
    return priced(mechanism.guarantee_at(far))


def _by_norm(mechanism: Any, here: Any, there: Any, norm: Norm) -> Move:
    far = distance(here, there, norm)
    if far == 0:
        return _NOWHERE
    beyond = not no_more_than(here, there, norm, Fraction(mechanism.sensitivity))
    at = far if beyond else min(far, Fraction(mechanism.sensitivity))  # L2 was rounded up
    declared = None if beyond else priced(mechanism.guarantee)
    return Move(distance=far, beyond=beyond, costs=_cost(mechanism, at), declared=declared)


def _together(mechanism: Any, here: Any, there: Any, releases: int) -> Move:
    """Utilities and queries: none moves by more than the sensitivity; monotone ones one way."""
    far = distance(here, there, "Linf")
    if far == 0:
        return _NOWHERE
    if mechanism.monotone and far != math.inf and _both_ways(here, there):
        why = "its values move both ways, and it was told that they move one way (monotone)"
        return Move(distance=far, beyond=True, costs=(PureDP(math.inf),), why=why)
    costs = _cost(mechanism, far) * releases
    return Move(distance=far, beyond=far > mechanism.sensitivity, costs=costs)


def _both_ways(here: Any, there: Any) -> bool:
    pairs = zip(np.asarray(here).tolist(), np.asarray(there).tolist(), strict=True)
    return len({rational(one) > rational(other) for one, other in pairs if one != other}) == 2


def _keys(mechanism: ThresholdedHistogram, here: Any, there: Any) -> Move:
    """The fewest persons, each with 1 in each of at most so many keys, that make the change."""
    one, other = _counts(here), _counts(there)
    gaps = [other.get(key, 0) - one.get(key, 0) for key in {**one, **other}]
    up, down = [gap for gap in gaps if gap > 0], [-gap for gap in gaps if gap < 0]
    keys = mechanism.keys_per_person
    come, gone = (max(*side, -(-sum(side) // keys)) if side else 0 for side in (up, down))
    add_remove = mechanism.neighbours.relation == "add-remove"
    return _counted(mechanism, Fraction(come + gone if add_remove else max(come, gone)))


def _counts(value: Any) -> dict[Any, int]:
    if isinstance(value, Mapping):
        return {key: int(count) for key, count in value.items()}
    keys, counts = value
    return dict(zip(np.asarray(keys).tolist(), np.asarray(counts).tolist(), strict=True))


def _counted(mechanism: Any, number: Fraction | float) -> Move:
    """A distance in persons or records: one is what the guarantee is about."""
    if number == 0:
        return _NOWHERE
    if number == math.inf:
        return Move(distance=number, beyond=True, costs=(PureDP(math.inf),), why=_APART)
    steps = int(number)
    cost = mechanism.guarantee if steps == 1 else mechanism.guarantee.group(steps)
    return Move(distance=number, beyond=steps > 1, costs=priced(cost), why=_APART)


def _each_number(mechanism: Snapping, here: Any, there: Any) -> Move:
    apart = differences(here, there)
    if apart is None:
        return Move(distance=math.inf, beyond=True, costs=(PureDP(math.inf),))
    costs = tuple(cost for gap in apart for cost in _cost(mechanism, gap))
    far = max(apart, default=Fraction(0))
    return Move(distance=far, beyond=far > mechanism.sensitivity, costs=costs)


def _each_point(mechanism: Any, here: Any, there: Any) -> Move:
    """Metric promises hold at every distance: nothing is beyond, everything has its price."""
    one, other = np.asarray(here), np.asarray(there)
    if one.shape != other.shape:
        return Move(distance=math.inf, beyond=True, costs=(PureDP(math.inf),))
    pairs = zip(one.reshape(-1, 2).tolist(), other.reshape(-1, 2).tolist(), strict=True)
    gaps = [
        root_above((rational(p[0]) - rational(q[0])) ** 2 + (rational(p[1]) - rational(q[1])) ** 2)
        for p, q in pairs
        if p != q
    ]
    costs = tuple(cost for gap in gaps for cost in _cost(mechanism, gap))
    return Move(distance=max(gaps, default=Fraction(0)), costs=costs)


def _facts(mechanism: Any, here: Any, there: Any) -> Move:
    """Inputs worked out from data with the distance to others: what neighbours' must fulfil.

    Theorem  the conditions that the proofs of `SmoothNoise`, `ProposeTestRelease` and `StableValue`
             use, each checked exactly on the pair
    """
    if same(here, there):
        return _NOWHERE
    match mechanism:
        case SmoothNoise():
            least = min(here.bound, there.bound)
            allowed = abs(here.value - there.value) <= least and _smooth(here, there)
        case ProposeTestRelease():
            distances = here.distances, there.distances
            near = all(abs(a - b) <= 1 for a, b in zip(*distances, strict=True))
            gap = abs(here.value - there.value)
            tested = zip(mechanism.bounds, *distances, strict=True)
            allowed = near and all(gap <= bound for bound, a, b in tested if a or b)
        case _:
            if same(here.answer, there.answer):
                allowed = abs(here.distance - there.distance) <= 1
            else:
                allowed = here.distance == there.distance == 1
    costs = priced(mechanism.guarantee) if allowed else (PureDP(math.inf),)
    return Move(
        distance=Fraction(1) if allowed else math.inf, beyond=not allowed, costs=costs, why=_APART
    )


def _smooth(here: Any, there: Any) -> bool:
    """Whether neither bound is more than exp(beta) times the other."""
    low, high = sorted((here.bound, there.bound))
    if low == high:
        return True
    if low == 0:
        return False
    ratio = Real(high / low).log()  # irrational, so it is decided in the end
    beta: Fraction = here.beta
    return refine(lambda precision: bool(ratio.ball(precision) <= beta))
