"""A value, and how far its database is from each of several bounds on the local sensitivity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lastbit.errors import WrongType
from lastbit.exact import Number, positive, whole
from lastbit.privacy import AS_DECLARED, CHANGE_ONE, Neighbours, check_neighbours
from lastbit.sensitivity.local import distance_beyond
from lastbit.sensitivity.statistics import Statistic, statistic_of, value_of
from lastbit.sensitivity.values import records, secret_number


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Proposal:
    """What propose-test-release needs to know of the data; all of it is as secret as they are.

    `distances[j]` must be 0 wherever the local sensitivity exceeds bound j, and move by at most 1
    between neighbours: for `propose` that is proved, for your own numbers it is your promise.

    >>> Proposal(41, [12])
    Proposal(...)
    """

    value: Fraction
    distances: tuple[int, ...]
    bounds: tuple[Fraction, ...] | None
    neighbours: Neighbours

    def __init__(
        self,
        value: Number,
        distances: Sequence[int],
        *,
        bounds: Sequence[Number] | None = None,
        neighbours: Neighbours = AS_DECLARED,
    ) -> None:
        if not isinstance(distances, Sequence) or isinstance(distances, str):
            raise WrongType(
                "distances", problem="is not a list", remedy="pass one distance a bound"
            )
        object.__setattr__(self, "value", secret_number(value, "value"))
        object.__setattr__(self, "distances", tuple(whole(d, "distances") for d in distances))
        exact = None if bounds is None else several_bounds(bounds)
        object.__setattr__(self, "bounds", exact)
        object.__setattr__(self, "neighbours", check_neighbours(neighbours))

    def __repr__(self) -> str:
        return "Proposal(...)"


def propose(
    statistic: str | Statistic,
    data: Any,
    *,
    bounds: Sequence[Number],
    lower: Number,
    upper: Number,
    neighbours: Neighbours = CHANGE_ONE,
) -> Proposal:
    """The value of a statistic, and its distance from every bound on the local sensitivity.

    Theorem  each distance is 0 where the local sensitivity exceeds its bound, and moves by at most
             1 between neighbours: see `distance_beyond`
    Checked  tests/sensitivity/test_proposal.py

    >>> propose("median", [1, 2, 3, 4, 5], bounds=[2], lower=0, upper=10).distances
    (2,)
    """
    chosen, proposed = statistic_of(statistic), several_bounds(bounds)
    clean = records(data, lower, upper)
    far = [
        distance_beyond(chosen, clean, bound=bound, lower=lower, upper=upper, neighbours=neighbours)
        for bound in proposed
    ]
    return Proposal(value_of(chosen, clean), far, bounds=proposed, neighbours=neighbours)


def several_bounds(bounds: object) -> tuple[Fraction, ...]:
    """Proposed bounds, each above 0."""
    if isinstance(bounds, str) or not isinstance(bounds, Sequence) or not bounds:
        raise WrongType("bounds", problem="is not a list of numbers", remedy="pass, say, [1, 2, 4]")
    return tuple(positive(bound, "bounds") for bound in bounds)
