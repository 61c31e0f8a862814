"""The exponential mechanism, and what the mechanisms that pick a candidate share."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, overload

import numpy as np
from flint import arb
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact import (
    DEFAULT_PRECISION,
    Number,
    arb_of,
    nonnegative,
    positive,
    rational,
    upper,
    whole,
    working_precision,
)
from lastbit.laws import ExpWeighted
from lastbit.mechanisms.mechanism import Pure, exactly_one, level, set_fields
from lastbit.privacy import AS_DECLARED, BoundedRangeLoss, Neighbours, check_neighbours
from lastbit.sampling import Size, choice_exp
from lastbit.sensitivity import exact_array

Utilities: TypeAlias = NDArray[Any] | list[Fraction]
"""One utility a candidate: int64, uint64 or float64 in a vector, or rationals."""

_EXTREME = Fraction(1 << 1000)
_REMEDY = "pass one finite number a candidate"


@dataclass(frozen=True, slots=True, init=False)
class ByRate(Pure):
    """A choice that prefers utilities at a rate: the loss is 2 D rate, or D rate if monotone."""

    sensitivity: Fraction
    rate: Fraction
    monotone: bool
    neighbours: Neighbours

    def __init__(
        self,
        *,
        sensitivity: Number,
        epsilon: Number | None = None,
        rate: Number | None = None,
        monotone: bool = False,
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        distance = positive(sensitivity, "sensitivity")
        factor = moves(monotone, neighbours)
        exactly_one(epsilon=epsilon, rate=rate)
        if rate is None:
            exact = positive(epsilon, "epsilon") / (factor * distance)
        else:
            exact = positive(rate, "rate")
        if not 1 / _EXTREME < exact < _EXTREME:
            raise InvalidParameter(
                "epsilon" if rate is None else "rate",
                problem="makes a rate beyond 2**1000 or below 2**-1000",
                remedy="rescale the utilities",
            )
        set_fields(self, sensitivity=distance, rate=exact, monotone=monotone, neighbours=neighbours)

    def _loss(self, distance: Fraction) -> Fraction:
        return moves(self.monotone, self.neighbours) * distance * self.rate


def moves(monotone: object, neighbours: object) -> int:
    """How many sensitivities two candidates can move apart: one if all go in one direction.

    Taking a person's record away may lower one utility, and what is put in its place may raise
    another: under change-one the utilities do not all move in one direction, and that is refused.
    """
    if not isinstance(monotone, bool):
        raise WrongType("monotone", problem="is not a truth value", remedy="pass True or False")
    relation = check_neighbours(neighbours).relation
    if monotone and relation == "change-one":
        raise InvalidParameter(
            "monotone",
            problem="cannot be where one record is changed: some values rise, others fall",
            remedy="pass monotone=False, or neighbours=ADD_REMOVE",
        )
    return 1 if monotone else 2


def utilities_of(utilities: object) -> Utilities:
    """One exact number a candidate, in a form for arrays where there is one.

    Refused with a message that holds none of them, nor says which one was bad: they are data.

    >>> utilities_of([1, 2.5])
    array([1. , 2.5])
    >>> utilities_of(["1/3", 0])
    [Fraction(1, 3), Fraction(0, 1)]
    >>> utilities_of([1, float("nan")])
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: utilities hold NaN or an infinity; pass one finite number ...
    """
    if isinstance(utilities, np.ndarray) and utilities.dtype.kind == "U":
        utilities = utilities.tolist()
    array = exact_array(utilities, "utilities", remedy=_REMEDY)
    if array.ndim != 1 or not array.size:
        problem = "are empty, or not one-dimensional"
        raise InvalidParameter("utilities", problem=problem, remedy=_REMEDY)
    if array.dtype.kind == "O" or array.dtype.itemsize > 8:
        try:
            return [rational(item) for item in array]
        except LastbitError:  # its message might quote the item
            problem = "hold something that is not a finite number"
        raise InvalidParameter("utilities", problem=problem, remedy=_REMEDY)
    if array.dtype.kind != "f":
        return array.astype(np.int64 if array.dtype.kind == "i" else np.uint64)
    if not np.isfinite(array).all():
        raise InvalidParameter("utilities", problem="hold NaN or an infinity", remedy=_REMEDY)
    return array.astype(np.float64)


def exact_utilities(utilities: Utilities) -> list[Fraction]:
    """The same as rationals."""
    if isinstance(utilities, list):
        return utilities
    return [Fraction(utility) for utility in utilities.tolist()]


def losses_of(utilities: Utilities) -> list[Fraction]:
    """How much worse than the best each candidate is."""
    exact = exact_utilities(utilities)
    best = max(exact)
    return [best - utility for utility in exact]


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
    >>> pick.accuracy("0.05", candidates=100)    # 95 % of draws lose no more
    7.539558829301031
    """

    @property
    def loss(self) -> BoundedRangeLoss:
        """What one release loses, for a `Profile`."""
        return BoundedRangeLoss(self.epsilon, neighbours=self.neighbours)

    @overload
    def release(self, utilities: object, size: None = None) -> int: ...
    @overload
    def release(self, utilities: object, size: int | tuple[int, ...]) -> NDArray[Any]: ...
    def release(self, utilities: object, size: Size = None) -> int | NDArray[Any]:
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
        most, count = level(beta, "beta"), whole(candidates, "candidates", least=1)
        odds = (count - 1) * (1 - most) / most
        if odds <= 1:
            return 0.0
        with working_precision(DEFAULT_PRECISION):
            return upper(arb_of(odds).log() / arb_of(self.rate))

    def beta(self, error: Number, *, candidates: int) -> float:
        """The greatest P[greatest utility - chosen one > error] of all utilities, rounded up."""
        far, count = nonnegative(error, "error"), whole(candidates, "candidates", least=1)
        with working_precision(DEFAULT_PRECISION):
            worse = (-arb_of(self.rate * far)).exp() * (count - 1)
            return min(upper(worse / (1 + worse)), 1.0)

    def expected_error(self, utilities: object) -> float:
        """The mean of greatest utility - chosen one, rounded up."""
        losses = losses_of(utilities_of(utilities))
        with working_precision(DEFAULT_PRECISION):
            weights = [(-arb_of(self.rate * loss)).exp() for loss in losses]
            terms = (w * arb_of(loss) for w, loss in zip(weights, losses, strict=True))
            return upper(sum(terms, arb(0)) / sum(weights, arb(0)))

    def expected_error_bound(self, *, candidates: int) -> float:
        """The mean for the worst utilities of n candidates is below this: ln(n)/rate.

        Theorem  rate E[utility] + entropy = ln(sum of weights) >= rate max(utility), and the
                 entropy of n candidates is at most ln(n)
        """
        count = whole(candidates, "candidates", least=1)
        with working_precision(DEFAULT_PRECISION):
            return upper(arb(count).log() / arb_of(self.rate))
