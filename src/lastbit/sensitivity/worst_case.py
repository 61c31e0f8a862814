"""How far a statistic can move between any two neighbours: the global sensitivity."""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, assert_never

from lastbit.errors import InvalidParameter
from lastbit.exact import Number, whole
from lastbit.privacy import Neighbours, Relation
from lastbit.sensitivity.statistics import (
    Count,
    InterquartileRange,
    Mean,
    Quantile,
    Statistic,
    Sum,
    TrimmedMean,
    Variance,
    check_defined,
    relation_of,
    statistic_of,
    trimmed,
)
from lastbit.sensitivity.values import bounds_of


def global_sensitivity(
    statistic: Statistic | str | Literal["histogram"],
    *,
    neighbours: Neighbours,
    lower: Number | None = None,
    upper: Number | None = None,
    count: int | None = None,
) -> Fraction:
    """The most by which one record can move a statistic, whatever the other records are.

    Law      max abs(f(x) - f(y)) over all neighbours x, y with records in [lower, upper]. `count`
             is the public number of records under change-one; without it the worst one is taken
    Theorem  W = upper - lower, n = count, per statistic:
             count: 1 add-remove, 0 change-one. Histogram, in the L1 norm: 1 add-remove, 2
             change-one, since a changed record leaves one cell and enters another.
             sum: max(abs(lower), abs(upper)) add-remove, W change-one.
             mean: the sum moves by at most W, so W/n change-one. Add-remove: the empty database,
             whose mean is `lower`, is a neighbour of one record: W.
             variance, change-one: let R be the n-1 records that stay, x the one that moves. The sum
             of squares about the mean is that of R plus (n-1)/n (x - mean R)**2, so the variance
             moves by at most (n-1)/n**2 W**2, reached where R lies at one end. Without n: n = 2.
             quantile, interquartile range: W, reached where all others are at the two ends.
             trimmed mean with t records cut at each end, change-one: the n-2t order statistics
             that stay all move the same way, each at most to its next neighbour, so their sum moves
             by at most W: W/(n-2t)
    Source   Dwork, McSherry, Nissim, Smith 2006; Nissim, Raskhodnikova, Smith 2007
    Differs  the relation decides, and is never guessed; no bounds, no sensitivity
    Checked  tests/sensitivity/test_worst_case.py

    >>> from lastbit.privacy import ADD_REMOVE, CHANGE_ONE
    >>> global_sensitivity("mean", neighbours=CHANGE_ONE, lower=0, upper=10, count=100)
    Fraction(1, 10)
    >>> global_sensitivity("median", neighbours=ADD_REMOVE)
    Traceback (most recent call last):
        ...
    lastbit.errors.InvalidParameter: statistic is not bounded: one record can move it by any ...
    """
    relation = relation_of(neighbours)
    size = None if count is None else whole(count, "count", least=1)
    if size is not None and relation == "add-remove":
        raise InvalidParameter(
            "count",
            problem="is not public where records are added and removed",
            remedy="leave it out, or pass neighbours=CHANGE_ONE",
        )
    if isinstance(statistic, str) and statistic == "histogram":
        return Fraction(1 if relation == "add-remove" else 2)
    asked = statistic_of(statistic)
    check_defined(asked, relation)
    if isinstance(asked, Count):
        return Fraction(1 if relation == "add-remove" else 0)
    if lower is None or upper is None:
        raise InvalidParameter(
            "statistic",
            problem="is not bounded: one record can move it by any amount",
            remedy="declare lower= and upper=, here or in smooth_sensitivity",
        )
    return greatest(asked, relation, *bounds_of(lower, upper), size)


def greatest(
    statistic: Statistic, relation: Relation, lower: Fraction, upper: Fraction, count: int | None
) -> Fraction:
    """The global sensitivity, for parameters that were checked."""
    width = upper - lower
    match statistic:
        case Count():
            return Fraction(1 if relation == "add-remove" else 0)
        case Sum():
            return max(abs(lower), abs(upper)) if relation == "add-remove" else width
        case Mean():
            return width if relation == "add-remove" else width / (count or 1)
        case Variance():
            size = count or 2
            return width * width * (size - 1) / size**2
        case Quantile():
            return width
        case InterquartileRange():
            return Fraction(0) if count == 1 and relation == "change-one" else width
        case TrimmedMean():
            size = count or 1
            return width / (size - 2 * trimmed(statistic.trim, size))
        case _:
            assert_never(statistic)
