"""Releasing values that are stable: the answer itself, without noise, or ⊥ for no answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Ball, Number, positive, whole
from lastbit.laws import DiscreteLaplace
from lastbit.mechanisms.mechanism import level, set_fields
from lastbit.privacy import (
    AS_DECLARED,
    ApproxDP,
    ApproxLoss,
    Neighbours,
    black_box,
    check_neighbours,
)
from lastbit.sampling import drawn, laplace_sampler
from lastbit.sensitivity import Stability


class Bottom(Enum):
    """What a mechanism that tests first releases if the test fails.

    It is one value, equal to nothing else, false in a condition, and the same after pickling.

    >>> BOTTOM, bool(BOTTOM), BOTTOM == 0
    (⊥, False, False)
    """

    BOTTOM = "bottom"

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "⊥"

    __str__ = __repr__


BOTTOM = Bottom.BOTTOM


@dataclass(frozen=True, slots=True, init=False)
class StableValue:
    """Releases an answer as it is if no database near by has another one, else ⊥.

    Law      d is the distance to the nearest database with another answer (at least 1), X discrete
             Laplace of scale 1/epsilon: the answer is released iff d + X > threshold
    Theorem  (epsilon, delta), where delta = P[1 + X > threshold]. If neighbours x, y have the same
             answer, d moves by at most 1 between them, and whether d + X > threshold is a function
             of an epsilon-private number. If their answers differ, d = 1 for both: each releases
             its answer with probability delta, and ⊥ with the same probability. The threshold is
             the least integer with P[1 + X > threshold] <= delta
    Source   paper 004, releasing stable values; Vadhan 2017, Proposition 3.3
    Differs  discrete noise and its exact tail in place of 1 + ln(1/delta)/epsilon; d counts from 1,
             so the threshold is one more than that of propose-test-release
    Checked  tests/mechanisms/test_stable_value.py; proof: docs/theory/stable-values.md

    >>> from lastbit.privacy import ADD_REMOVE
    >>> from lastbit.sensitivity import distance_to_instability
    >>> votes = ["yes"] * 90 + ["no"] * 10
    >>> mode = distance_to_instability("mode", votes, neighbours=ADD_REMOVE)
    >>> stable = StableValue(epsilon=1, delta="1e-6", neighbours=ADD_REMOVE)
    >>> stable.threshold, stable.release(mode)
    (14, 'yes')
    >>> stable.guarantee
    ApproxDP(epsilon=1, delta='1e-06', neighbours=Neighbours(relation='add-remove', unit='record'))
    """

    epsilon: Fraction
    delta: Fraction
    threshold: int
    neighbours: Neighbours

    def __init__(
        self, *, epsilon: Number, delta: Number, neighbours: Neighbours = AS_DECLARED
    ) -> None:
        loss, chance = positive(epsilon, "epsilon"), level(delta, "delta")
        set_fields(self, epsilon=loss, delta=chance, threshold=1 + least_above(loss, chance))
        set_fields(self, neighbours=check_neighbours(neighbours))

    @property
    def guarantee(self) -> ApproxDP:
        """What one release promises."""
        return ApproxDP(self.epsilon, self.delta, neighbours=self.neighbours)

    @property
    def loss(self) -> ApproxLoss:
        """What one release loses, for a `Profile`."""
        return black_box(self.guarantee)

    def release(self, stability: Stability) -> Any:
        """The answer, or ⊥."""
        if not isinstance(stability, Stability):
            raise WrongType(
                "stability",
                problem="is not an answer with its distance",
                remedy="pass distance_to_instability(...) or Stability(answer, distance)",
            )
        check_same(stability.neighbours, self.neighbours)
        noise: int = drawn(laplace_sampler(1 / self.epsilon), None)
        return stability.answer if stability.distance + noise > self.threshold else BOTTOM

    def release_probability(self, distance: int) -> Ball:
        """The probability that an answer so stable is released; public: it depends on no data."""
        return passes(whole(distance, "distance", least=1), self.threshold, self.epsilon)


def least_above(epsilon: Fraction, delta: Fraction) -> int:
    """The least integer T with P[X > T] <= delta, X discrete Laplace of scale 1/epsilon.

    Theorem  P[X > T] <= delta iff P[X <= T] >= 1 - delta: the quantile of 1 - delta, which the law
             decides with balls
    """
    return DiscreteLaplace(1 / epsilon).quantile(1 - delta)


def passes(distance: int, threshold: int, epsilon: Fraction) -> Ball:
    """P[distance + X > threshold]."""
    # X is symmetric: P[X > t] = P[X <= -t-1], without cancellation where it is small
    return DiscreteLaplace(1 / epsilon).cdf(distance - threshold - 1)


def check_same(of_data: Neighbours, of_mechanism: Neighbours) -> None:
    """Refuse what was worked out for one relation or unit in a promise about another."""
    if of_data == of_mechanism or AS_DECLARED.relation in (of_data.relation, of_mechanism.relation):
        return
    raise InvalidParameter(
        "neighbours",
        problem=f"differ: worked out for {of_data}, promised for {of_mechanism}",
        remedy="use one relation and one unit for both",
    )
