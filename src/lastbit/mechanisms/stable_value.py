"""Testing before releasing: a stable value as it is, one with noise for a tested bound, or ⊥."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from itertools import pairwise
from typing import Any

from lastbit.arguments import listed
from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Ball, Number, positive, whole
from lastbit.laws import DiscreteLaplace, OnGrid, Shifted
from lastbit.mechanisms.laplace import Laplace
from lastbit.mechanisms.mechanism import exactly_one, level, set_fields
from lastbit.privacy import (
    AS_DECLARED,
    ApproxDP,
    ApproxLoss,
    Neighbours,
    black_box,
    check_neighbours,
)
from lastbit.sampling import drawn, laplace_sampler
from lastbit.sensitivity import Proposal, Stability, several_bounds


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
"""The one `Bottom`: ⊥, released in place of an answer that failed its test."""


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
    """Refuse what was computed for one relation or unit in a promise about another."""
    if of_data == of_mechanism or AS_DECLARED.relation in (of_data.relation, of_mechanism.relation):
        return
    raise InvalidParameter(
        "neighbours",
        problem=f"differ: computed for {of_data}, promised for {of_mechanism}",
        remedy="use one relation and one unit for both",
    )


@dataclass(frozen=True, slots=True)
class Passed:
    """A released value, and the bound on the local sensitivity that passed the test.

    Both were released: both may be published.

    >>> found = Passed(value=44.5, bound=Fraction(5))       # or ⊥, from ProposeTestRelease.release
    >>> print(found.value, found.bound)
    44.5 5
    """

    value: float
    bound: Fraction


@dataclass(frozen=True, slots=True, init=False)
class ProposeTestRelease:
    """Tests proposed bounds on the local sensitivity in turn; the first that passes sets the noise.

    Law      bounds b_1 < ... < b_k, distances d_j = d(x, {local sensitivity > b_j}); X_j discrete
             Laplace of scale 1/e, e = test_epsilon; j is the first with d_j + X_j > threshold, and
             f(x) + Laplace noise for sensitivity b_j is released with b_j. ⊥ if there is none
    Theorem  (epsilon, delta), epsilon = k test_epsilon + release_epsilon and
             delta = k P[X > threshold]. Let x, y be neighbours. Call j bad if x has local
             sensitivity above b_j: then d_j = 0, so some bad j passes with probability at most
             k P[X > threshold] = delta. For an output with j not bad, |f(x) - f(y)| <= b_j, so its
             noise is at most exp(release_epsilon) times as likely from x as from y; each of the
             j <= k tests is a function of a number that moves by at most 1, so exp(test_epsilon)
             each; ⊥ costs the tests alone. Sum over an event: P_x <= exp(epsilon) P_y + delta
    Source   paper 004, Proposition 3.2 (Dwork, Lei 2009), where one bound costs (2 epsilon, delta)
    Differs  epsilon is the price of the whole: half of it pays for all tests, half for the release
             (`share=`). Discrete noise and its exact tail in place of ln(1/delta)/epsilon. The
             value is rounded to a public grid, and the noise counts that. All noise is drawn
             whether a test passes or not
    Checked  tests/mechanisms/test_propose_test_release.py
             proof: docs/theory/propose-test-release.md

    >>> from lastbit.privacy import CHANGE_ONE
    >>> from lastbit.sensitivity import propose
    >>> ages = list(range(20, 70)) * 20
    >>> ask = ProposeTestRelease(bounds=["1/2", 5], epsilon=2, delta="1e-6", neighbours=CHANGE_ONE)
    >>> ask.threshold, ask.guarantee.epsilon
    (28, Fraction(2, 1))
    >>> answer = ask.release(propose("median", ages, bounds=ask.bounds, lower=0, upper=120))
    >>> print(answer.bound if answer else answer)
    5
    """

    bounds: tuple[Fraction, ...]
    test_epsilon: Fraction
    release_epsilon: Fraction
    delta: Fraction
    threshold: int
    neighbours: Neighbours
    _noises: tuple[Laplace, ...] = field(repr=False)

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number,
        bound: Number | None = None,
        bounds: Sequence[Number] | None = None,
        share: Number = "1/2",
        grid: Number = "auto",
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        if grid is None:
            raise InvalidParameter(
                "grid", problem="is None, and the value is not an integer", remedy='pass "auto"'
            )
        loss, chance = positive(epsilon, "epsilon"), level(delta, "delta")
        exactly_one(bound=bound, bounds=bounds)
        proposed = (positive(bound, "bound"),) if bounds is None else several_bounds(bounds)
        if any(a >= b for a, b in pairwise(proposed)):
            raise InvalidParameter(
                "bounds", problem="do not increase", remedy="sort them and drop doubles"
            )
        for_tests = loss * level(share, "share")
        each = for_tests / len(proposed)
        relation = check_neighbours(neighbours)
        noises = tuple(
            Laplace(sensitivity=b, epsilon=loss - for_tests, grid=grid, neighbours=relation)
            for b in proposed
        )
        set_fields(self, bounds=proposed, test_epsilon=each, release_epsilon=loss - for_tests)
        set_fields(self, delta=chance, threshold=least_above(each, chance / len(proposed)))
        set_fields(self, neighbours=relation, _noises=noises)

    @property
    def guarantee(self) -> ApproxDP:
        """What one release promises, all tests counted."""
        epsilon = len(self.bounds) * self.test_epsilon + self.release_epsilon
        return ApproxDP(epsilon, self.delta, neighbours=self.neighbours)

    @property
    def loss(self) -> ApproxLoss:
        """What one release loses, for a `Profile`."""
        return black_box(self.guarantee)

    def release(self, proposal: Proposal) -> Passed | Bottom:
        """The value with noise for the first bound that passes, or ⊥."""
        self._check(proposal)
        sampler = laplace_sampler(1 / self.test_epsilon)
        answer: Passed | Bottom = BOTTOM
        for distance, noise in reversed(tuple(zip(proposal.distances, self._noises, strict=True))):
            value = noise.release(proposal.value)
            if distance + drawn(sampler, None) > self.threshold:
                answer = Passed(value, noise.sensitivity)
        return answer

    def release_probabilities(self, distances: Sequence[int]) -> list[Ball]:
        """For each bound the probability that it is the first to pass, from the distances alone."""
        fresh, out = Ball.of(1), []
        for distance in listed(distances, "distances", remedy="pass one for each bound"):
            passed = passes(whole(distance, "distance"), self.threshold, self.test_epsilon)
            out.append(fresh * passed)
            fresh = fresh * (1 - passed)
        return out

    def law(self, proposal: Proposal) -> list[tuple[Ball, Shifted | OnGrid]]:
        """For each bound the probability that it is used, and the exact law of the value then.

        The probabilities add up to one minus that of ⊥. All of it is as secret as the data.
        """
        self._check(proposal)
        chances = self.release_probabilities(proposal.distances)
        laws = [noise.law(proposal.value) for noise in self._noises]
        return list(zip(chances, laws, strict=True))

    def accuracy(self, beta: Number) -> Fraction:
        """The error of a value released with the last bound, exceeded with probability <= beta."""
        return self._noises[-1].accuracy(beta)

    def _check(self, proposal: object) -> None:
        if not isinstance(proposal, Proposal):
            raise WrongType(
                "proposal",
                problem="is not a value with its distances",
                remedy="pass sensitivity.propose(...) or Proposal(value, distances)",
            )
        remedy = "propose these bounds"
        if len(proposal.distances) != len(self.bounds):
            problem = "has another number of bounds"
            raise InvalidParameter("proposal", problem=problem, remedy=remedy)
        if proposal.bounds not in (None, self.bounds):
            raise InvalidParameter("proposal", problem="is about other bounds", remedy=remedy)
        check_same(proposal.neighbours, self.neighbours)
