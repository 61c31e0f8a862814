"""What the mechanisms that pick a candidate share: utilities, rates and what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.exact import Number, positive, rational, whole
from lastbit.mechanisms.mechanism import Pure, exactly_one, set_fields
from lastbit.privacy import AS_DECLARED, Neighbours, check_neighbours
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
        check_monotone(monotone, neighbours)
        exactly_one(epsilon=epsilon, rate=rate)
        if rate is None:
            exact = positive(epsilon, "epsilon") / (moves(monotone=monotone) * distance)
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
        return moves(monotone=self.monotone) * distance * self.rate


# ---------------------------------------------------------------- what declarations mean


def moves(*, monotone: object) -> int:
    """How many sensitivities two candidates can move apart: one if all go in one direction."""
    if not isinstance(monotone, bool):
        raise WrongType("monotone", problem="is not a truth value", remedy="pass True or False")
    return 1 if monotone else 2


def check_monotone(monotone: object, neighbours: object) -> None:
    """Refuse a declaration that cannot be true: one person changed moves utilities both ways.

    Taking a person's record away may lower one utility, and what is put in its place may raise
    another: under change-one the utilities do not all move in one direction.
    """
    moves(monotone=monotone)
    relation = check_neighbours(neighbours).relation
    if monotone is True and relation == "change-one":
        raise InvalidParameter(
            "monotone",
            problem="cannot be where one record is changed: some values rise, others fall",
            remedy="pass monotone=False, or neighbours=ADD_REMOVE",
        )


def candidate_count(value: object) -> int:
    """A public number of candidates, at least one."""
    return whole(value, "candidates", least=1)


# ---------------------------------------------------------------- utilities


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
        return _rationals(array)
    if array.dtype.kind != "f":
        return array.astype(np.int64 if array.dtype.kind == "i" else np.uint64)
    if not np.isfinite(array).all():
        raise InvalidParameter("utilities", problem="hold NaN or an infinity", remedy=_REMEDY)
    return array.astype(np.float64)


def _rationals(array: NDArray[Any]) -> list[Fraction]:
    try:
        return [rational(item) for item in array]
    except LastbitError:  # its message might quote the item
        pass
    problem = "hold something that is not a finite number"
    raise InvalidParameter("utilities", problem=problem, remedy=_REMEDY)


def exact_utilities(utilities: Utilities) -> list[Fraction]:
    """The same as rationals."""
    if isinstance(utilities, list):
        return utilities
    return [Fraction(utility) for utility in utilities.tolist()]


def exact_losses(utilities: list[Fraction]) -> list[Fraction]:
    """How much worse than the best each candidate is."""
    best = max(utilities)
    return [best - utility for utility in utilities]
