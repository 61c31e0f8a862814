"""The statistics whose sensitivity is known here, and their exact values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import Number, probability, rational, shown
from lastbit.privacy import Neighbours, Relation, check_neighbours
from lastbit.sensitivity.values import Records, records

_CHUNK = 1 << 20
_HALF_DIGIT = 21


class _Unbounded:
    """A statistic that grows with the number of records."""

    __slots__ = ()

    def range(self, lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction]:
        """Refused: it grows with the number of records."""
        raise InvalidParameter(
            "statistic",
            problem="has no public range, and its sensitivity is the same for all data",
            remedy="use Laplace with global_sensitivity",
        )


class _Within:
    """A statistic that lies between the bounds of the records."""

    __slots__ = ()

    def range(self, lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction]:
        """What it can be for records between the bounds."""
        return lower, upper


@dataclass(frozen=True, slots=True)
class Count(_Unbounded):
    """The number of records.

    >>> from lastbit.privacy import ADD_REMOVE
    >>> from lastbit.sensitivity import global_sensitivity
    >>> print(global_sensitivity(Count(), lower=0, upper=1, neighbours=ADD_REMOVE))
    1
    """


@dataclass(frozen=True, slots=True)
class Sum(_Unbounded):
    """The sum of the records; 0 of none.

    >>> from lastbit.privacy import ADD_REMOVE
    >>> from lastbit.sensitivity import global_sensitivity
    >>> print(global_sensitivity(Sum(), lower=-10, upper=100, neighbours=ADD_REMOVE))
    100
    """


@dataclass(frozen=True, slots=True)
class Mean(_Within):
    """The arithmetic mean; of no records, the lower bound.

    >>> Mean().range(Fraction(0), Fraction(120))
    (Fraction(0, 1), Fraction(120, 1))
    """


@dataclass(frozen=True, slots=True)
class Variance:
    """The mean squared distance from the mean: divided by n, not by n - 1.

    >>> Variance().range(Fraction(0), Fraction(120))
    (Fraction(0, 1), Fraction(3600, 1))
    """

    def range(self, lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction]:
        """What it can be for records between the bounds: most where half lie at either end."""
        return Fraction(0), (upper - lower) ** 2 / 4


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Quantile(_Within):
    """The record of rank max(1, ceil(level n)) in increasing order; of none, the lower bound.

    Level 0 is the minimum, 1 the maximum, 1/2 the (lower) median.

    >>> Quantile("0.9")
    Quantile(level='0.9')
    """

    level: Fraction

    def __init__(self, level: Number) -> None:
        exact = probability(level, "level", remedy='pass, say, "1/2" for the median')
        object.__setattr__(self, "level", exact)

    def __repr__(self) -> str:
        return f"Quantile(level={shown(self.level)})"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class TrimmedMean(_Within):
    """The mean of what is left when floor(trim n) records are taken from each end.

    >>> TrimmedMean("1/4")
    TrimmedMean(trim='0.25')
    """

    trim: Fraction

    def __init__(self, trim: Number) -> None:
        exact = rational(trim, "trim")
        if not 0 <= exact < Fraction(1, 2):
            raise InvalidParameter(
                "trim", problem="lies outside [0, 1/2)", remedy='pass, say, "0.05"'
            )
        object.__setattr__(self, "trim", exact)

    def __repr__(self) -> str:
        return f"TrimmedMean(trim={shown(self.trim)})"


@dataclass(frozen=True, slots=True)
class InterquartileRange:
    """The record of rank ceil(3n/4) less that of rank ceil(n/4); 0 of no records.

    >>> InterquartileRange().range(Fraction(0), Fraction(120))
    (Fraction(0, 1), Fraction(120, 1))
    """

    def range(self, lower: Fraction, upper: Fraction) -> tuple[Fraction, Fraction]:
        """What it can be for records between the bounds."""
        return Fraction(0), upper - lower


Statistic: TypeAlias = Count | Sum | Mean | Variance | Quantile | TrimmedMean | InterquartileRange
"""A statistic whose sensitivities are known, such as `Quantile`; its name, "median", will do."""


_NAMED: Mapping[str, Statistic] = MappingProxyType(
    {
        "count": Count(),
        "sum": Sum(),
        "mean": Mean(),
        "variance": Variance(),
        "median": Quantile("1/2"),
        "minimum": Quantile(0),
        "maximum": Quantile(1),
        "interquartile range": InterquartileRange(),
        "iqr": InterquartileRange(),
    }
)
_REMEDY = f"pass one of {', '.join(_NAMED)}, Quantile(level) or TrimmedMean(trim)"


def statistic_of(statistic: object) -> Statistic:
    """The statistic itself, or the one that a name stands for.

    >>> statistic_of("median")
    Quantile(level='0.5')
    """
    if isinstance(statistic, Statistic):
        return statistic
    if not isinstance(statistic, str):
        raise WrongType("statistic", problem="is not a statistic", remedy=_REMEDY)
    if statistic not in _NAMED:
        raise InvalidParameter("statistic", problem="is unknown", remedy=_REMEDY)
    return _NAMED[statistic]


def relation_of(neighbours: Neighbours) -> Relation:
    """Add-remove or change-one; which of the two decides every number in this room."""
    relation = check_neighbours(neighbours).relation
    if relation == "as-declared":
        raise InvalidParameter(
            "neighbours",
            problem="is neither add-remove nor change-one, and the sensitivity depends on which",
            remedy="pass ADD_REMOVE or CHANGE_ONE",
        )
    return relation


def check_defined(statistic: Statistic, relation: Relation, rows: Records | None = None) -> None:
    """Refuse what has no bound here: a statistic under a relation, or no records at all."""
    if relation == "add-remove" and isinstance(statistic, Variance | TrimmedMean):
        raise InvalidParameter(
            "neighbours",
            problem="is add-remove, for which this statistic has no bound here",
            remedy="pass CHANGE_ONE, where the number of records is public",
        )
    if relation == "change-one" and rows is not None and not rows.count:
        raise InvalidParameter(
            "data", problem="is empty, so no record can change", remedy="pass one record at least"
        )


def declared_bounds(lower: Number | None, upper: Number | None) -> tuple[Number, Number]:
    """Both bounds, refused if one is missing."""
    if lower is None or upper is None:
        raise InvalidParameter(
            "statistic",
            problem="is not bounded: one record can move it by any amount",
            remedy="declare lower= and upper=, here or in smooth_sensitivity",
        )
    return lower, upper


def question(
    statistic: object,
    data: object,
    lower: Number | None,
    upper: Number | None,
    neighbours: Neighbours,
) -> tuple[Statistic, Records, Relation]:
    """What is asked, of which records, under which relation; all of it checked."""
    asked, relation = statistic_of(statistic), relation_of(neighbours)
    check_defined(asked, relation)
    rows = records(data, *declared_bounds(lower, upper))
    check_defined(asked, relation, rows)
    return asked, rows, relation


def rank(level: Fraction, count: int) -> int:
    """max(1, ceil(level n)): it grows by 0 or 1 with each record."""
    return max(1, -(-level.numerator * count // level.denominator))


def ranks(level: Fraction, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same for many numbers of records, all of them exact."""
    most = int(counts.max(initial=1))
    fits = (most + 1) * level.denominator < 1 << 62  # the numerator is no larger
    wide = counts if fits else counts.astype(np.object_)
    exact = -(-level.numerator * wide // level.denominator)
    return np.maximum(exact.astype(np.int64), 1)


def quartiles() -> tuple[Quantile, Quantile]:
    """The two order statistics of the interquartile range."""
    return Quantile("1/4"), Quantile("3/4")


def trimmed(trim: Fraction, count: int) -> int:
    """How many records go at each end; at least one is left, as 2 trim n < n."""
    return int(trim * count)


def value_of(statistic: Statistic, rows: Records) -> Fraction:
    """The exact value of a statistic of the records on their grid.

    Law      no float is involved. Sums are taken of q - low < 2**42 over 2**20 records at a time,
             below 2**62. For squares q - low = 2**21 a + b with a <= 2**21, b < 2**21: each of the
             sums of a a, a b and b b over 2**20 records is at most 2**62, and int64 holds it
    Checked  tests/sensitivity/test_statistics.py

    >>> from lastbit.sensitivity.values import records
    >>> value_of(Variance(), records([1, 2, 3], 0, 4))
    Fraction(2, 3)
    """
    count, step = rows.count, rows.step
    match statistic:
        case Count():
            return Fraction(count)
        case Sum():
            return exact_total(rows.steps, rows.low) * step
        case Mean():
            total = exact_total(rows.steps, rows.low)
            return total * step / count if count else rows.low * step
        case Variance():
            if not count:
                return Fraction(0)
            total, squares = exact_total(rows.steps, rows.low) - rows.low * count, 0
            for chunk in _chunks(rows.steps, rows.low):
                a, b = chunk >> _HALF_DIGIT, chunk & ((1 << _HALF_DIGIT) - 1)
                squares += int((a * a).sum()) << 2 * _HALF_DIGIT
                squares += (int((a * b).sum()) << (_HALF_DIGIT + 1)) + int((b * b).sum())
            return Fraction(count * squares - total * total, count * count) * step * step
        case Quantile():
            steps = rows.steps[rank(statistic.level, count) - 1] if count else rows.low
            return int(steps) * step
        case TrimmedMean():
            cut = trimmed(statistic.trim, count)
            total = exact_total(rows.steps[cut : count - cut], rows.low)
            return total * step / (count - 2 * cut) if count else rows.low * step
        case InterquartileRange():
            low, high = quartiles()
            return value_of(high, rows) - value_of(low, rows)
        case _:
            assert_never(statistic)


def _chunks(steps: NDArray[np.int64], low: int) -> list[NDArray[np.int64]]:
    return [steps[at : at + _CHUNK] - low for at in range(0, len(steps), _CHUNK)]


def exact_total(steps: NDArray[np.int64], low: int) -> int:
    """The sum of steps, none below low, in full."""
    return sum(int(chunk.sum()) for chunk in _chunks(steps, low)) + low * len(steps)
