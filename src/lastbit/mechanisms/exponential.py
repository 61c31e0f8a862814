"""The exponential mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flint import arb

from lastbit.exact import DEFAULT_PRECISION, Number, arb_of, nonnegative, upper, working_precision
from lastbit.laws import ExpWeighted
from lastbit.mechanisms.mechanism import level
from lastbit.mechanisms.selection import (
    ByRate,
    candidate_count,
    exact_losses,
    exact_utilities,
    utilities_of,
)
from lastbit.privacy import BoundedRangeLoss
from lastbit.sampling import Size, choice_exp


@dataclass(frozen=True, slots=True, init=False)
class Exponential(ByRate):
    """Picks a candidate, the better the likelier.

    Law      P[release(u) = i] = exp(rate u_i) / sum(exp(rate u_j))
    Theorem  if no utility moves by more than D, every candidate stays as likely up to a factor
             exp(2 D rate): its weight moves by at most exp(D rate), the sum of all weights too. If
             all utilities move in one direction (`monotone`), exp(D rate): the two factors then
             work against each other. So rate = epsilon/(2 sensitivity), without the 2 if monotone
    Source   McSherry, Talwar 2007; paper 004
    Differs  utilities are exact, floats are the dyadic numbers they are, and the law is exactly the
             one above, for a million candidates too
    Checked  tests/mechanisms/test_exponential.py; proof: docs/theory/exponential.md

    >>> pick = Exponential(sensitivity=1, epsilon=2)
    >>> pick.rate, pick.guarantee
    (Fraction(1, 1), PureDP(epsilon=2))
    >>> pick.release([0, 1000, 0])
    1
    >>> pick.law([0, 1]).probability(1)
    Ball(0.73105857863000487925 ± 1.16e-21)
    >>> pick.accuracy("0.05", candidates=100)    # in 95 % no worse than the best by more
    7.539558829301031
    """

    @property
    def loss(self) -> BoundedRangeLoss:
        """What one release loses, for a `Profile`."""
        return BoundedRangeLoss(self.epsilon, neighbours=self.neighbours)

    def release(self, utilities: object, size: Size = None) -> Any:
        """The index of a candidate; an array of independent ones if a size is given.

        Each of them costs what `guarantee` says.
        """
        return choice_exp(utilities_of(utilities), size, rate=self.rate)

    def law(self, utilities: object) -> ExpWeighted:
        """The exact law of release(utilities)."""
        exact = exact_utilities(utilities_of(utilities))
        return ExpWeighted([self.rate * utility for utility in exact])

    def accuracy(self, beta: Number, *, candidates: int) -> float:
        """An a with P[greatest utility - chosen one > a] <= beta, rounded up.

        Theorem  let B of the n candidates be worse than the best by more than a. Their weights are
                 below p = exp(-rate a) times the best one's, so they are chosen with probability
                 at most B p/(1 + B p), B <= n-1: beta at a = ln((n-1)(1-beta)/beta)/rate, which is
                 below the usual ln(n/beta)/rate, and no smaller a will do for all utilities
        """
        most, count = level(beta, "beta"), candidate_count(candidates)
        odds = (count - 1) * (1 - most) / most
        if odds <= 1:
            return 0.0
        with working_precision(DEFAULT_PRECISION):
            return upper(arb_of(odds).log() / arb_of(self.rate))

    def beta(self, error: Number, *, candidates: int) -> float:
        """The greatest P[greatest utility - chosen one > error] of all utilities, rounded up."""
        far, count = nonnegative(error, "error"), candidate_count(candidates)
        with working_precision(DEFAULT_PRECISION):
            worse = (-arb_of(self.rate * far)).exp() * (count - 1)
            return min(upper(worse / (1 + worse)), 1.0)

    def expected_error(self, utilities: object) -> float:
        """The mean of greatest utility - chosen one, rounded up."""
        losses = exact_losses(exact_utilities(utilities_of(utilities)))
        with working_precision(DEFAULT_PRECISION):
            weights = [(-arb_of(self.rate * loss)).exp() for loss in losses]
            terms = (w * arb_of(loss) for w, loss in zip(weights, losses, strict=True))
            return upper(sum(terms, arb(0)) / sum(weights, arb(0)))

    def expected_error_bound(self, *, candidates: int) -> float:
        """The mean for the worst utilities of n candidates is below this: ln(n)/rate.

        Theorem  rate E[utility] + entropy = ln(sum of weights) >= rate max(utility), and the
                 entropy of n candidates is at most ln(n)
        """
        count = candidate_count(candidates)
        with working_precision(DEFAULT_PRECISION):
            return upper(arb(count).log() / arb_of(self.rate))
