"""Propose, test, release: a bound on the local sensitivity, tested before it is relied upon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Ball, Number, positive, whole
from lastbit.laws import OnGrid, Shifted
from lastbit.mechanisms.laplace import Laplace
from lastbit.mechanisms.mechanism import exactly_one, level, set_fields
from lastbit.mechanisms.stable_value import BOTTOM, Bottom, check_same, least_above, passes
from lastbit.privacy import (
    AS_DECLARED,
    ApproxDP,
    ApproxLoss,
    Neighbours,
    black_box,
    check_neighbours,
)
from lastbit.sampling import drawn, laplace_sampler
from lastbit.sensitivity import Proposal, several_bounds


@dataclass(frozen=True, slots=True)
class Passed:
    """A released value, and the bound on the local sensitivity that passed the test.

    Both were released: both may be published.
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
        proposed = _bounds(bound, bounds)
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
        for distance in distances:
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


def _bounds(bound: Number | None, bounds: Sequence[Number] | None) -> tuple[Fraction, ...]:
    exactly_one(bound=bound, bounds=bounds)
    if bounds is None:
        return (positive(bound, "bound"),)
    proposed = several_bounds(bounds)
    if any(a >= b for a, b in pairwise(proposed)):
        raise InvalidParameter(
            "bounds", problem="do not increase", remedy="sort them and drop doubles"
        )
    return proposed
