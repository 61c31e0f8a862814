"""Randomized response: every answer is perturbed before it is collected."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import (
    Number,
    Real,
    arb_of,
    nonnegative,
    positive,
    probability as probability_of,
    rational,
    rational_between,
    tail_at_most,
    upper,
    whole,
)
from lastbit.laws import Weighted, least
from lastbit.mechanisms.mechanism import ceiling, exactly_one, level, set_fields
from lastbit.privacy import (
    AS_DECLARED,
    Neighbours,
    PureDP,
    RandomizedResponseLoss,
    check_neighbours,
)
from lastbit.sampling import GUIDE_BITS, WORD_BITS, Bits, Coin, UniformBelow, coin, drawn
from lastbit.sensitivity import masked

# A coin of this denominator is decided by one word: there is never a tie to refine.
GRID = 1 << WORD_BITS
MOST_CATEGORIES = 1 << 32
_MOST_ANSWERS = 10**12  # beyond about 10**18 a binomial tail does not end
MOST_LISTED = 10**6  # where something is computed for each category


@dataclass(frozen=True, slots=True, init=False)
class RandomizedResponse:
    """Keeps each answer with a fixed probability, and else gives another one, all alike.

    Law      release(x) = x with probability keep, each other of the k categories with probability
             (1-keep)/(k-1); keep is rational and 1/k <= keep < 1. Every entry of an array on its
             own
    Theorem  no output is more than keep (k-1)/(1-keep) times as likely from one answer as from
             another, and keep = e**epsilon/(e**epsilon + k-1) makes that e**epsilon. From
             `epsilon`, keep is the largest multiple of 2**-62 that is not above this irrational
             number (1/k if that is larger), so the true loss is at most epsilon
    Source   Warner 1965; paper 003 section 2.3; k categories: Kairouz, Bonawitz, Ramage 2016
    Differs  keep is rounded down, never to nearest; the coins are exact
    Checked  tests/mechanisms/test_randomized_response.py; proof: docs/theory/randomized-response.md

    The neighbours of an array are arrays with one answer changed. That a person answered at all is
    not hidden, since the number of answers is shown: ADD_REMOVE is refused. Asking the same person
    again costs again: keep what was released rather than release twice.

    >>> survey = RandomizedResponse(epsilon=1)
    >>> survey.guarantee
    PureDP(epsilon=1)
    >>> isinstance(survey.release(True), bool)       # one answer, or an array of them
    True
    >>> survey.release([0, 1, 1, 0, 1]).shape
    (5,)
    >>> RandomizedResponse(keep="3/4").guarantee     # ln 3, rounded up
    PureDP(epsilon=1.0986122886681098)
    >>> RandomizedResponse.from_truth("1/2") == RandomizedResponse(keep="3/4")
    True
    >>> RandomizedResponse(epsilon=1, categories=3).law(2).probability(2)
    Ball(0.57611688476582910965 ± ...)
    """

    keep: Fraction
    categories: int
    epsilon: Fraction
    neighbours: Neighbours

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        keep: Number | None = None,
        categories: int = 2,
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        exactly_one(epsilon=epsilon, keep=keep)
        if check_neighbours(neighbours).relation == "add-remove":
            raise InvalidParameter(
                "neighbours",
                problem="is add-remove, but the number of answers is shown",
                remedy="pass CHANGE_ONE: one answer changed",
            )
        count = _count(categories)
        if keep is not None:
            kept = _kept(keep, count)
            loss = _loss(kept, count)
        else:
            loss = positive(epsilon, "epsilon")
            kept = _calibrated(loss, count)
        set_fields(self, keep=kept, categories=count, epsilon=loss, neighbours=neighbours)

    @classmethod
    def from_truth(
        cls, probability: Number, *, categories: int = 2, neighbours: Neighbours = AS_DECLARED
    ) -> RandomizedResponse:
        """The truth with this probability p, else any of the categories, all alike.

        Theorem  keep = p + (1-p)/k; for two categories epsilon = ln(1 + 2p/(1-p))
        Source   paper 003 (6)-(8), where the other answer is a fair coin
        """
        remedy = "pass, say, 0.5: half of the answers are true, half are random"
        truth = probability_of(probability, "probability", one=False, remedy=remedy)
        count = _count(categories)
        return cls(keep=truth + (1 - truth) / count, categories=count, neighbours=neighbours)

    @property
    def truth_probability(self) -> Fraction:
        """The p of `from_truth`, whatever the mechanism was made from: 2 keep - 1 if binary."""
        return (self.categories * self.keep - 1) / (self.categories - 1)

    @property
    def guarantee(self) -> PureDP:
        """What one release promises if one answer changes."""
        return PureDP(self.epsilon, neighbours=self.neighbours)

    @property
    def loss(self) -> RandomizedResponseLoss:
        """What one release loses, for a `Profile`."""
        return RandomizedResponseLoss(self.epsilon, self.categories, neighbours=self.neighbours)

    def guarantee_at(self, distance: Number) -> PureDP:
        """What one release promises if at most this many answers change: they are independent."""
        answers = nonnegative(distance, "distance")
        return PureDP(math.floor(answers) * self.epsilon, neighbours=self.neighbours)

    def release(self, value: Any) -> Any:
        """Perturbed answers: truth values for truth values, integers for integers."""
        answers = categories_in(value, self.categories, "value")
        sampler = shifts(1 - self.keep, self.categories)
        size = answers.shape if isinstance(answers, np.ndarray) else None
        return moved(answers, drawn(sampler, size), self.categories)

    def law(self, value: int) -> Weighted:
        """The exact law of release(value); False is 0 and True is 1. At most 10**6 categories."""
        check_listed(self.categories)
        answer = categories_in(value, self.categories, "value")
        if isinstance(answer, np.ndarray):
            raise WrongType("value", problem="is an array", remedy="pass one answer")
        other = (1 - self.keep) / (self.categories - 1)
        return Weighted([self.keep if k == answer else other for k in range(self.categories)])

    def beta(self) -> Fraction:
        """The exact probability that an answer is changed."""
        return 1 - self.keep

    def accuracy(self, beta: Number, *, answers: int = 1) -> int:
        """The least a such that more than a of `answers` are changed with probability <= beta.

        Theorem  the number of changed answers is binomial, whatever the answers are
        Differs  what a poll concludes from perturbed answers, and how surely, is `Poll`'s business
        """
        chance = level(beta, "beta")
        trials = whole(answers, "answers", least=1)
        if trials > _MOST_ANSWERS:
            problem, remedy = "are more than 10**12", "split them, and beta among them"
            raise InvalidParameter("answers", problem=problem, remedy=remedy)
        return least(
            lambda a: a == trials or tail_at_most(a + 1, trials, 1 - self.keep, chance), (0, trials)
        )


def check_listed(categories: int) -> None:
    """Refuse to work something out for each of very many categories."""
    if categories > MOST_LISTED:
        raise InvalidParameter(
            "categories",
            problem="are too many to list them all",
            remedy=f"merge or hash them into at most {MOST_LISTED}",
        )


def _count(categories: object) -> int:
    count = whole(categories, "categories", least=2)
    if count > MOST_CATEGORIES:
        raise InvalidParameter(
            "categories", problem="are more than 2**32", remedy="merge or hash them first"
        )
    return count


def _kept(keep: object, categories: int) -> Fraction:
    kept = rational(keep, "keep")
    if kept * categories < 1:
        raise InvalidParameter(
            "keep",
            problem="is below 1/categories: the truth would be the least likely answer",
            remedy=f"pass a probability from 1/{categories} up, or pass epsilon=",
        )
    if kept >= 1:
        raise InvalidParameter(
            "keep",
            problem="is 1 or more: every answer would be disclosed",
            remedy="pass a probability below 1, or pass epsilon=",
        )
    return kept


def _loss(keep: Fraction, categories: int) -> Fraction:
    """ln(keep (k-1)/(1-keep)), rounded up to a float."""
    ratio = keep * (categories - 1) / (1 - keep)
    if ratio == 1:
        return Fraction(0)
    # ln(ratio) may be as small as 1/denominator: that many more bits keep the float sharp
    precision = 128 + 2 * ratio.denominator.bit_length()
    return Fraction(upper(Real(ratio).log().ball(precision)))


def _calibrated(epsilon: Fraction, categories: int) -> Fraction:
    """The largest multiple of 2**-62 not above e**epsilon/(e**epsilon + k-1), at least 1/k.

    Theorem  let c = (k-1)/(e**epsilon + k-1), the ideal chance of a change: keep = 1 - ceil(c) on
             the grid. c 2**62 is irrational (Lindemann), so enclosing it decides the ceiling.
             Two ends are decided by algebra. Above 64 + ln k, c < e**-64 < 2**-62: one unit. Below
             2**-64, keep - 1/k <= (e**epsilon - 1)/k < 2**-62/k, and no multiple of 2**-62 other
             than 1/k itself lies as close above 1/k.
    """
    fair, others = Fraction(1, categories), categories - 1
    if epsilon <= Fraction(1, 1 << 64):
        return fair
    loss = min(epsilon, Fraction(64 + categories.bit_length()))

    change = ceiling(lambda: arb_of(GRID * others) / (arb_of(loss).exp() + others))
    return max(1 - Fraction(change, GRID), fair)


def categories_in(value: object, categories: int, name: str) -> int | NDArray[Any]:
    """The answers as a bool, an int, or an array of one of the two; nothing else passes."""
    remedy = f"pass whole numbers from 0 to {categories - 1}"
    if categories == 2:
        remedy += ", or truth values"
    beyond = InvalidParameter(name, problem="is or holds a category out of range", remedy=remedy)
    if isinstance(value, bool | np.bool_):
        if categories > 2:
            raise WrongType(name, problem="is a truth value", remedy=remedy)
        return bool(value)
    if _is_integer(value):
        if not 0 <= value < categories:
            raise beyond
        return int(value)
    try:
        array = np.asarray(value)
    except ValueError:
        raise InvalidParameter(
            name, problem="is ragged", remedy="pass an array of one shape"
        ) from None
    if masked(value):
        raise WrongType(name, problem="is masked", remedy="pass what is not masked")
    if not array.size and isinstance(value, list | tuple):
        return array.astype(np.int64)  # numpy makes floats of no numbers
    match array.dtype.kind:
        case "b" if categories == 2:
            return array
        case "b":
            raise WrongType(name, problem="holds truth values", remedy=remedy)
        case "i" | "u":
            pass
        case "O" if array.ndim and all(map(_is_integer, array.flat)):
            pass
        case _:
            raise WrongType(name, problem="does not hold categories", remedy=remedy)
    if array.size and not (array.min() >= 0 and array.max() < categories):
        raise beyond
    return array.astype(np.int64, copy=False)


def _is_integer(value: object) -> TypeGuard[int]:
    """Whether it is a whole number; numpy counts time spans among them, we do not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def moved(answers: Any, shift: Any, categories: int) -> Any:
    """Answers moved on by a shift around the circle of categories: 0 keeps, 1 ... k-1 change."""
    if categories == 2:
        return answers ^ shift
    steps = answers + shift
    steps -= categories * (steps >= categories)
    return steps


@dataclass(frozen=True, slots=True, eq=False)
class Shift:
    """How far an answer moves: 0 if it is kept, else 1 ... k-1, all alike.

    Both parts are drawn for everybody, and before any answer is looked at: what is drawn, and how
    much of it, does not depend on the answers.
    """

    changed: Coin
    other: UniformBelow

    def draw(self, bits: Bits, size: int) -> NDArray[np.int64]:
        changed = self.changed.draw(bits, size)
        shift: NDArray[np.int64] = self.other.draw(bits, size)
        shift += 1
        shift *= changed
        return shift


@lru_cache(maxsize=64)
def shifts(
    change: Fraction, categories: int, *, word_bits: int = WORD_BITS, guide_bits: int = GUIDE_BITS
) -> Coin | Shift:
    """The sampler of shifts; words are shorter in tests only."""
    changed = coin(partial(rational_between, change), word_bits=word_bits, guide_bits=guide_bits)
    return changed if categories == 2 else Shift(changed, UniformBelow(categories - 1))
