"""Smooth upper bounds on the local sensitivity: noise that fits the data and reveals nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any, assert_never

import numpy as np

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, positive, shown, whole
from lastbit.privacy import CHANGE_ONE, Neighbours, Relation
from lastbit.sensitivity.functions import Function, Landscape, is_function, landscape_at
from lastbit.sensitivity.neighbours import (
    EXACT_STEPS,
    greatest,
    near,
    quantile_reach,
    reachable,
    variance_reach,
    window_of,
)
from lastbit.sensitivity.statistics import (
    Count,
    InterquartileRange,
    Mean,
    Quantile,
    Statistic,
    Sum,
    TrimmedMean,
    Variance,
    quartiles,
    question,
    relation_of,
    value_of,
)
from lastbit.sensitivity.values import Records, bounds_of, secret_number
from lastbit.sensitivity.windows import FLOOR, KAPPA, discounts, reach, widest_discounted

LEAST_BETA = Fraction(1, 1 << 20)
_LARGEST_RATE = Fraction(8)  # `discounts` takes no more


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SmoothBound:
    """A statistic's exact value and a beta-smooth upper bound on its local sensitivity.

    Both are facts about the data: they are for a mechanism that adds noise, never for print.
    `lower` and `upper` are the public range of the statistic (`Statistic.range`), or None.

    >>> smooth_sensitivity("median", [1, 2, 3], beta="0.1", lower=0, upper=10)
    SmoothBound(beta='0.1', neighbours=Neighbours(relation='change-one', unit='record'))
    """

    value: Fraction
    bound: Fraction
    beta: Fraction
    lower: Fraction | None
    upper: Fraction | None
    neighbours: Neighbours

    def __repr__(self) -> str:
        return f"SmoothBound(beta={shown(self.beta)}, neighbours={self.neighbours!r})"


def smooth_sensitivity(
    statistic: Statistic | str | Function,
    data: Any,
    *,
    beta: Number,
    lower: Number | None = None,
    upper: Number | None = None,
    neighbours: Neighbours = CHANGE_ONE,
    domain: Iterable[Any] | None = None,
    most_records: int | None = None,
) -> SmoothBound:
    """A rational S with S(x) >= LS(x) and S(x) <= exp(beta) S(y) for neighbours x, y.

    Law      S is max over k of U_k exp(-beta k), U_k as in `sensitivity_at`, up to a relative
             excess of exp(k KAPPA) (1 + KAPPA), KAPPA = 2**-34, k where the maximum lies, not below
             FLOOR = 2**-340 of the global sensitivity, and never above that
    Theorem  Ideal: T(x) = max over k of U_k(x) exp(-b k). T >= U_0 >= LS by (A). By (B)
             U_k(x) exp(-b k) <= exp(b) U_(k+1)(y) exp(-b (k+1)), so T(x) <= exp(b) T(y).
             A constant D is smooth, and the larger and the lesser of two b-smooth functions are.
             Rounded: let b be a float, b <= beta - KAPPA, D the global sensitivity and
             T' = max(T, FLOOR D). The computed S' satisfies T' <= S' <= (1 + KAPPA) T', as shown
             below. Hence S' >= LS, and
             S'(x) <= (1+KAPPA) exp(b) T'(y) <= exp(b + KAPPA) S'(y) <= exp(beta) S'(y).
             So is S = min(S', D), since D >= LS. S' is a rational; what is smooth is what is
             returned, not an ideal near it.
             S' = max((1 + 2**-35) B, FLOOR D), where B is within 2**-42 above the true maximum and
             within 1/(1 + 2**-35) below (`widest_discounted`; for the others B is the greatest of
             products, each within 2**-42 of the true one). (1 + 2**-42)(1 + 2**-35) < 1 + KAPPA.
             Terms with exp(-b k) < FLOOR are left out: they are below FLOOR D.
             Few k are tried where few can be the best. Mean, add-remove: exp(-b k)/(n-k) is
             log-convex in k: k = 0 or n-1. Variance: the mean of the n-1 least records is at most
             that of the n-1 greatest, so one of them is W/2 from the other bound, U_k is at most
             4 U_1, and for b (k-1) > ln 4 the term of k is below that of 1
             A function of your own: U_k is the greatest LS within k steps itself, over every
             database of a `domain` (`Landscape`), under add-remove of at most `most_records`, and
             its range is that of its values there
    Source   Nissim, Raskhodnikova, Smith 2007, Definitions 2.1 and 2.2; paper 004
    Differs  rounding is part of the theorem; a beta above 8 is treated as 8, which is safe
    Checked  tests/sensitivity/test_smooth.py, over all small databases

    >>> bound = smooth_sensitivity("median", [1, 2, 3, 4, 5], beta=1, lower=0, upper=100)
    >>> round(float(bound.bound), 3)               # max(1, 97/e**2, 99/e**5, ...)
    13.128
    >>> bound = smooth_sensitivity(max, [0, 0, 3], beta=1, domain=[0, 3, 10])
    >>> round(float(bound.bound), 3)               # max(7, 10/e)
    7.0
    """
    if is_function(statistic, bounds=(lower, upper), domain=domain):
        tried, start = landscape_at(
            statistic, data, domain=domain, neighbours=neighbours, most_records=most_records
        )
        return _smooth_landscape(tried, start, beta, neighbours)
    exact, rate = _beta_and_rate(beta)
    asked, rows, relation = question(statistic, data, lower, upper, neighbours)
    least, most = rows.low * rows.step, rows.high * rows.step
    size = rows.count if relation == "change-one" else None
    limit = greatest(asked, relation, least, most, size)
    without = isinstance(asked, Count | Sum)
    public = (None, None) if without else asked.range(*bounds_of(lower, upper))
    return SmoothBound(
        value=value_of(asked, rows),
        bound=_safe(_peak(asked, rows, rate, relation), limit),
        beta=exact,
        lower=public[0],
        upper=public[1],
        neighbours=neighbours,
    )


def _smooth_landscape(
    tried: Landscape, start: tuple[int, ...], beta: Number, neighbours: Neighbours
) -> SmoothBound:
    value, range_of_values = tried.values[start], tried.values.values()
    nothing = not tried.greatest  # then there is one value, whatever the data are
    bound = from_distance(
        [0] if nothing else tried.reach(start),
        value=value,
        beta=beta,
        neighbours=neighbours,
        most=None if nothing else tried.greatest,
    )
    return replace(bound, lower=min(range_of_values), upper=max(range_of_values))


def from_distance(
    sensitivity: Callable[[int], Number] | Sequence[Number],
    *,
    value: Number,
    beta: Number,
    neighbours: Neighbours,
    most: Number | None = None,
    distances: int | None = None,
) -> SmoothBound:
    """The smooth bound of one's own statistic, from bounds A(k) on the local sensitivity nearby.

    Law      S = max over k of A(k) exp(-beta k), rounded as in `smooth_sensitivity`. `most` is a
             bound on all A(k), the same for all data: the search ends where most exp(-beta k) falls
             below what was found. `distances` is the last k that is tried, beyond which A stays
             what it is (a sequence ends so). `most` may be left out where beta * distances <= 240
    Theorem  S is a beta-smooth upper bound if the A(k) have the properties (A) and (B) of
             `sensitivity_at`. They are the caller's promise, `most` and `distances` are too.
             Where the number of A(k) is itself a secret, as under add-remove, pass `most`:
             without it the refusal of too many of them would tell
    Source   Nissim, Raskhodnikova, Smith 2007, section 3
    Checked  tests/sensitivity/test_smooth.py

    >>> widths = [0, 3, 10]                        # how far one record can move it, by distance
    >>> bound = from_distance(widths, value=5, beta=1, neighbours=CHANGE_ONE)
    >>> round(float(bound.bound), 3)               # 10/e**2
    1.353
    """
    exact, rate = _beta_and_rate(beta)
    relation_of(neighbours)
    reported = secret_number(value, "value")
    limit = None if most is None else positive(most, "most")
    last = None if distances is None else whole(distances, "distances")
    if isinstance(sensitivity, Sequence) and not isinstance(sensitivity, str | bytes):
        if not len(sensitivity):
            raise InvalidParameter("sensitivity", problem="is empty", remedy="pass A(0), A(1), ...")
        last = min(len(sensitivity) - 1, len(sensitivity) if last is None else last)
        terms: Callable[[int], Number] = sensitivity.__getitem__
    elif callable(sensitivity):
        terms = sensitivity
    else:
        raise WrongType(
            "sensitivity", problem="is not a function or sequence", remedy="pass a function of k"
        )
    if limit is None and (last is None or last > reach(rate)):
        raise InvalidParameter(
            "most",
            problem="is needed, as there are no distances, or too many for beta",
            remedy="pass a bound on all A(k), the same for all data",
        )
    best, last = Fraction(0), reach(rate) if last is None else min(last, reach(rate))
    for distance, discount in enumerate(discounts(rate, last + 1).tolist()):
        weight = Fraction(discount)
        if limit is not None and limit * weight * (1 + KAPPA) < best:
            break
        term = secret_number(terms(distance), "sensitivity")
        if term < 0:
            raise InvalidParameter("sensitivity", problem="is negative", remedy="return A(k) >= 0")
        if limit is not None and term > limit:
            raise InvalidParameter(
                "most", problem="is not a bound on A(k)", remedy="pass the global sensitivity"
            )
        best = max(best, term * weight)
    return SmoothBound(
        value=reported,
        bound=best * (1 + KAPPA / 2) if limit is None else _safe(best, limit),
        beta=exact,
        lower=None,
        upper=None,
        neighbours=neighbours,
    )


def _peak(statistic: Statistic, rows: Records, rate: float, relation: Relation) -> Fraction:
    """The B of the theorem."""
    change, step = relation == "change-one", rows.step
    match statistic:
        case Count() | Sum():
            return _tried((0, 1), statistic, rows, rate, relation)
        case Mean():
            last = 1 if change else max(rows.count - 1, 0)
            return _tried((0, last), statistic, rows, rate, relation)
        case Variance():
            return _variance_peak(rows, rate)
        case Quantile() | TrimmedMean() if change:
            window, divisor = window_of(statistic, rows.count)
            return Fraction(widest_discounted(rows.padded(), window, rate)) * step / divisor
        case InterquartileRange():
            if change and rows.count == 1:
                return Fraction(0)
            return max(_peak(quartile, rows, rate, relation) for quartile in quartiles())
        case Quantile():
            return _quantile_peak(statistic.level, rows, rate)
        case TrimmedMean():
            raise AssertionError("refused by check_defined")
        case _:
            assert_never(statistic)


def _tried(
    distances: Iterable[int], statistic: Statistic, rows: Records, rate: float, relation: Relation
) -> Fraction:
    best = Fraction(0)
    for distance in set(distances):
        if distance <= reach(rate):
            weight = Fraction(float(discounts(rate, distance + 1)[-1]))
            best = max(best, near(statistic, rows, distance, relation) * weight)
    return best


def _variance_peak(rows: Records, rate: float) -> Fraction:
    """Each product is within 2**-42: the greatest LS is at least 1/4 of `limit`, and within 2**-46
    of that; a weight is within 2**-43, a rounding within 2**-53.
    """
    first, count = near(Variance(), rows, 0, "change-one"), rows.count
    if count == 1:
        return first
    last = min(count, reach(rate), 2 + ceil(1.3863 / rate))  # ln 4 < 1.3863
    limit = Fraction(count - 1, count**2) * (rows.width * rows.step) ** 2
    weighed = variance_reach(rows, last) * discounts(rate, last + 1)[1:]
    return max(first, Fraction(float(weighed.max())) * limit)


def _quantile_peak(level: Fraction, rows: Records, rate: float) -> Fraction:
    """Exact as far as `EXACT_STEPS`; only where V_k, which is not less, can be the greatest."""
    moves = np.arange(1, min(rows.count, reach(rate)) + 2)
    weights = discounts(rate, len(moves))
    weighed = reachable(level, rows, moves) * weights  # V_k is what k + 1 steps reach
    least = float(quantile_reach(level, rows, 0)[0])
    last = int(np.flatnonzero(weighed >= min(least, float(weighed.max())))[-1])
    exact = min(last, EXACT_STEPS)
    weighed[: exact + 1] = quantile_reach(level, rows, exact) * weights[: exact + 1]
    return Fraction(float(weighed.max())) * rows.step


def _beta_and_rate(beta: object) -> tuple[Fraction, float]:
    """An exact beta, and a float not above beta - KAPPA."""
    exact = positive(beta, "beta")
    if exact < LEAST_BETA:
        raise InvalidParameter(
            "beta", problem="is too small: below 2**-20", remedy="pass a larger one"
        )
    wanted = min(exact, _LARGEST_RATE) - KAPPA
    rate = wanted.numerator / wanted.denominator
    return exact, rate if Fraction(rate) <= wanted else float(np.nextafter(rate, 0.0))


def _safe(best: Fraction, limit: Fraction) -> Fraction:
    """min(S', D) of the theorem."""
    return min(max(best * (1 + KAPPA / 2), FLOOR * limit), limit)
