"""Polls: what perturbed answers say about the true ones, and how surely.

Nothing here costs privacy: it is computed from answers that were perturbed already.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from lastbit.arguments import check_kind
from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import (
    Ball,
    Number,
    Real,
    arb_of,
    clopper_pearson,
    lower,
    positive,
    probability,
    upper,
    whole,
)
from lastbit.mechanisms.mechanism import ceiling, exactly_one, level, set_fields
from lastbit.mechanisms.randomized_response import RandomizedResponse, categories_in, check_listed
from lastbit.privacy import ApproxLoss, PureDP, black_box

Method: TypeAlias = Literal["exact", "normal"]

_PRECISION = 128
_NONE, _ALL = Fraction(0), Fraction(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PollResult:
    """An unbiased estimate of a share and an interval that holds it with the stated confidence.

    `mean` may lie outside [0, 1]: cutting it off would make it biased.
    """

    mean: float
    standard_error: float
    low: float
    high: float
    n: int
    confidence: float


@dataclass(frozen=True, slots=True, init=False)
class Poll:
    """A survey by randomized response: perturb the answers, estimate shares, plan its size.

    Law      a response is yes with probability m = p mu + (1-p)/k, p = `truth_probability`, if the
             true answer is yes with probability mu (a category and "any other" in place of yes and
             no if there are k > 2)
    Theorem  mu^ = (mean(O) - (1-p)/k)/p has mean mu and variance v/n, v = m(1-m)/p**2
    Source   paper 003 (9)-(16), with k = 2
    Differs  the interval is exact by default: Clopper and Pearson's for m, carried over to mu by
             the affine map, holds mu with at least the stated confidence for *every* n and mu. The
             paper's ("normal") does so only in the limit
    Checked  tests/mechanisms/test_poll.py; proof: docs/theory/randomized-response.md

    >>> poll = Poll(epsilon=1)
    >>> responses = poll.collect([True] * 600 + [False] * 400)
    >>> result = poll.estimate(responses)
    >>> 0 <= result.low <= result.high <= 1
    True
    >>> poll.sample_size("0.05")             # for 5 percentage points either way
    1799
    >>> round(poll.half_width(1799), 4)
    0.05
    """

    response: RandomizedResponse

    def __init__(
        self, response: RandomizedResponse | None = None, *, epsilon: Number | None = None
    ) -> None:
        exactly_one(response=response, epsilon=epsilon)
        mechanism = RandomizedResponse(epsilon=epsilon) if response is None else response
        if not isinstance(mechanism, RandomizedResponse):
            raise WrongType(
                "response",
                problem=f"is of type {type(mechanism).__name__}, not RandomizedResponse",
                remedy="pass RandomizedResponse(...), or epsilon=",
            )
        if mechanism.truth_probability == 0:
            raise InvalidParameter(
                "response",
                problem="answers at random: nothing can be learned from it",
                remedy="pass a larger epsilon",
            )
        set_fields(self, response=mechanism)

    @property
    def guarantee(self) -> PureDP:
        """What is promised to each who answers once."""
        return self.response.guarantee

    @property
    def loss(self) -> ApproxLoss:
        """What one release loses, for a `Profile`."""
        return black_box(self.guarantee)

    def collect(self, answers: Any) -> Any:
        """The perturbed answers; throw the true ones away."""
        return self.response.release(answers)

    def estimate(
        self, responses: Any, *, confidence: Number = "0.95", method: Method = "exact"
    ) -> PollResult:
        """The share of yes among the true answers, from perturbed ones, of two categories."""
        if self.response.categories != 2:
            raise InvalidParameter(
                "response", problem="has more than two categories", remedy="use estimate_shares"
            )
        _, yes = counts = self._counts(responses)
        return self._result(yes, sum(counts), _confidence(confidence), method)

    def estimate_shares(
        self, responses: Any, *, confidence: Number = "0.95", method: Method = "exact"
    ) -> tuple[PollResult, ...]:
        """The share of every category; each interval has the confidence by itself, not all."""
        check_listed(self.response.categories)
        chance, counts = _confidence(confidence), self._counts(responses)
        total = sum(counts)
        results = {count: self._result(count, total, chance, method) for count in set(counts)}
        return tuple(results[count] for count in counts)

    def variance(self, mean: Number) -> Fraction:
        """v: the exact variance of one response, as an estimate of a share of this mean."""
        share = probability(mean, "mean", remedy="pass a share")
        return share_variance(self.response.truth_probability, share, self.response.categories)

    def half_width(
        self, n: int, *, confidence: Number = "0.95", mean: Number | None = None
    ) -> float:
        """Half the length of the normal interval for n answers, rounded up.

        `mean` is the share to expect; without it, the one of the widest interval is taken.
        """
        answers = whole(n, "n", least=1)
        return _half_width(self._planned(mean), answers, _confidence(confidence))

    def sample_size(
        self, half_width: Number, *, confidence: Number = "0.95", mean: Number | None = None
    ) -> int:
        """The least n for which the normal interval is no wider: ceil(z**2 v / half_width**2)."""
        wanted = positive(half_width, "half_width")
        z = _normal_quantile(_confidence(confidence))
        answers = z * z * (self._planned(mean) / wanted**2)
        return ceiling(lambda: answers.ball(ctx.prec).enclosure)

    def unbiased_share(self, count: int, n: int) -> Fraction:
        """The exact estimate of a category's share that `count` of n responses name."""
        named, total = whole(count, "count"), whole(n, "n", least=1)
        if named > total:
            raise InvalidParameter("count", problem="is above n", remedy="pass count out of n")
        return self._from_response_share(Fraction(named, total))

    def _counts(self, responses: Any) -> list[int]:
        answers = categories_in(responses, self.response.categories, "responses")
        if not isinstance(answers, np.ndarray) or not answers.size:
            raise InvalidParameter(
                "responses", problem="are not several", remedy="pass an array of what was collected"
            )
        numbers = answers.ravel().astype(np.int64, copy=False)
        counts: list[int] = np.bincount(numbers, minlength=self.response.categories).tolist()
        return counts

    def _result(self, count: int, n: int, confidence: Fraction, method: Method) -> PollResult:
        mean = self.unbiased_share(count, n)
        observed, truth = Fraction(count, n), self.response.truth_probability
        variance = observed * (1 - observed) / truth**2
        check_kind(method, str, "method", remedy="pass exact or normal")
        if method == "normal":
            half = Fraction(_half_width(variance, n, confidence))
            low, high = mean - half, mean + half
        elif method == "exact":
            ends = (Fraction(end) for end in clopper_pearson(count, n, error=1 - confidence))
            low, high = (min(max(self._from_response_share(m), _NONE), _ALL) for m in ends)
        else:
            raise InvalidParameter("method", problem="is unknown", remedy="pass exact or normal")
        return PollResult(
            mean=mean.numerator / mean.denominator,
            standard_error=upper(Ball.of(variance / n).sqrt()),
            low=lower(low),
            high=upper(high),
            n=n,
            confidence=float(confidence),
        )

    def _from_response_share(self, share: Fraction) -> Fraction:
        truth = self.response.truth_probability
        return (share - (1 - truth) / self.response.categories) / truth

    def _planned(self, mean: Number | None) -> Fraction:
        if mean is not None:
            return self.variance(mean)
        # m(1-m) is largest at 1/2, or as close to it as responses come, which is m = keep
        worst = min(Fraction(1, 2), self.response.keep)
        return worst * (1 - worst) / self.response.truth_probability**2


def share_variance(truth: Fraction, mean: Fraction, categories: int = 2) -> Fraction:
    """v(p, mu) = m(1-m)/p**2 with m = p mu + (1-p)/k: paper 003 (14), for k categories.

    >>> share_variance(Fraction(1), Fraction(1, 2))
    Fraction(1, 4)
    """
    yes = truth * mean + (1 - truth) / categories
    return yes * (1 - yes) / truth**2


def uncertainty_curve(
    epsilons: Sequence[Number],
    sizes: Sequence[int],
    *,
    confidence: Number = "0.95",
    mean: Number = "1/2",
) -> NDArray[np.float64]:
    """Half widths of the normal interval, a row for each epsilon and a column for each size.

    Source   paper 003, figure 2; epsilon = math.inf is the poll without privacy, (16)

    >>> uncertainty_curve([1, math.inf], [100, 10_000]).round(3).tolist()
    [[0.212, 0.021], [0.098, 0.01]]
    """
    chance, share = _confidence(confidence), probability(mean, "mean", remedy="pass a share")
    counts = [whole(n, "sizes", least=1) for n in sizes]
    rows = []
    for epsilon in epsilons:
        plain = isinstance(epsilon, float) and epsilon == math.inf
        variance = (
            share_variance(Fraction(1), share) if plain else Poll(epsilon=epsilon).variance(share)
        )
        rows.append([_half_width(variance, n, chance) for n in counts])
    return np.array(rows, np.float64).reshape(len(rows), len(counts))


def _normal_quantile(confidence: Fraction) -> Real:
    """The z with P[abs(Z) <= z] = confidence for Z normal: sqrt(2) erfinv(confidence).

    A ball cannot distinguish a confidence close to 1 from 1: there it is erfcinv of the rest.
    """

    def inverse() -> arb:
        if 2 * confidence > 1:
            return arb_of(1 - confidence).erfcinv()
        return arb_of(confidence).erfinv()

    return Real(2).sqrt() * Real(inverse)


def _half_width(variance: Fraction, n: int, confidence: Fraction) -> float:
    z = _normal_quantile(confidence).ball(_PRECISION)
    return upper(z * Ball.of(variance / n).sqrt())


def _confidence(value: object) -> Fraction:
    return level(value, "confidence", remedy="pass, say, 0.95")
