"""How the price of a job is shared out among its parts, and what each share buys.

A *demand* is one thing that must be paid for: noise on a measure, the draws of a quantile, the
discovery of keys. Its error at the price 1 is known before anything is read:

| mechanism | error at a price | in concentrated privacy |
|---|---|---|
| Laplace | sqrt(2) L1 / epsilon | (not used: Gaussian noise has at most half the variance) |
| Gaussian | | L2 / sqrt(2 rho) |
| exponential | distance at 5 % / 2, about two deviations / epsilon | the same / sqrt(8 rho) |

all in *full rows*: divided by what a row of the greatest weight and value adds. So the errors of a
count, a sum and a quantile's rank can be compared: each is to be set against the size of a group.
Roots and logarithms here only weigh one thing against another; they are rationals, computed without
floats of the machine's own mathematics, so that a plan is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import Literal, TypeAlias

from lastbit.errors import InvalidParameter
from lastbit.exact.rational import Number, positive
from lastbit.tables.measures import Measure
from lastbit.tables.query import Aggregate
from lastbit.tables.ranks import rank_accuracy, rank_draws
from lastbit.tables.stability import Moves

__all__ = ["Demand", "Weights", "concentrated_error", "pure_error", "root_below", "shares"]

Weights: TypeAlias = Mapping[str, Number] | Literal["balanced"] | None

_ROOT_TWO = Fraction(99, 70)
_FINENESS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One thing to pay for. `wanted_by` names the aggregates, or the keys, that it is for."""

    kind: Literal["noise", "keys", "rank"]
    wanted_by: tuple[str, ...]
    moves: Moves
    full: int
    """What one row adds at most: its error in full rows is the error divided by this."""
    measure: Measure | None = None
    aggregate: Aggregate | None = None
    rank_moved: int = 0


def root_below(number: Fraction) -> Fraction:
    """A rational not above the square root, and short of it by less than one part in 2**40.

    >>> root_below(Fraction(9, 4)), root_below(Fraction(2))**2 < 2
    (Fraction(3, 2), True)
    """
    size = number.numerator.bit_length() - number.denominator.bit_length()
    shift = 88 - size + (size & 1)  # even, so that its half is whole
    scaled = number * Fraction(2) ** shift
    return Fraction(isqrt(scaled.numerator // scaled.denominator)) / Fraction(2) ** (shift // 2)


def pure_error(demand: Demand) -> Fraction:
    """The error at epsilon = 1, in full rows, nearly."""
    if demand.kind == "rank":
        return _rank_error(demand)
    return _ROOT_TWO * demand.moves.l1 / demand.full


def concentrated_error(demand: Demand) -> Fraction:
    """The error at rho = 1, in full rows, nearly."""
    if demand.kind == "rank":
        assert demand.aggregate is not None
        share = rank_draws(demand.aggregate)[0].share  # buys epsilon * share, or sqrt(8 rho share)
        return _rank_error(demand) * root_below(share / 8)
    return root_below(Fraction(demand.moves.l2_squared, 2)) / demand.full


def _rank_error(demand: Demand) -> Fraction:
    """Half the distance that is missed once in twenty draws, for the draw of the value."""
    assert demand.measure is not None and demand.aggregate is not None
    draw = rank_draws(demand.aggregate)[0]
    bins = len(demand.measure.edges) - 1
    far = rank_accuracy(
        demand.rank_moved, draw.share, beta=Fraction(1, 20), candidates=max(bins, 2)
    )
    return Fraction(far, 2 * draw.level.denominator * demand.full)


def shares(
    demands: Sequence[Demand], weights: Weights, *, concentrated: bool
) -> tuple[Fraction, ...]:
    """What part of the price each demand gets; they add up to exactly 1.

    Equal by default. By name, a demand has the greatest weight among those it is wanted by (1
    unless given). Balanced: the worst error in full rows is least when all errors are equal;
    errors fall like 1/epsilon and like 1/sqrt(rho), so shares are in proportion to `pure_error`,
    or to the square of `concentrated_error`. The discovery of keys always counts as an average
    one, since its error is no error of a number.
    """
    if weights is None:
        raw = [Fraction(1)] * len(demands)
    elif isinstance(weights, str):
        raw = _balanced(demands, weights, concentrated=concentrated)
    else:
        raw = _named(demands, weights)
    total = sum(raw, Fraction(0))
    return tuple(weight / total for weight in raw)


def _named(demands: Sequence[Demand], weights: Mapping[str, Number]) -> list[Fraction]:
    if not isinstance(weights, Mapping):
        raise InvalidParameter(
            "weights", problem="are no mapping", remedy='pass, say, {"n": 2, "cost": 1}'
        )
    known = {name for demand in demands for name in demand.wanted_by}
    for name in weights:
        if name not in known:
            raise InvalidParameter(
                "weights",
                problem="name something that is not paid for in this query",
                remedy=f"use {', '.join(sorted(known))}",
            )
    exact = {name: positive(weight, f"weights: {name}") for name, weight in weights.items()}
    return [max(exact.get(name, Fraction(1)) for name in demand.wanted_by) for demand in demands]


def _balanced(demands: Sequence[Demand], weights: str, *, concentrated: bool) -> list[Fraction]:
    if weights != "balanced":
        raise InvalidParameter(
            "weights", problem="is unknown", remedy='pass "balanced", or a weight by name'
        )
    counted = [demand for demand in demands if demand.kind != "keys"]
    found = {
        id(demand): concentrated_error(demand) ** 2 if concentrated else pure_error(demand)
        for demand in counted
    }
    if not found:
        return [Fraction(1)] * len(demands)
    average = sum(found.values(), Fraction(0)) / len(found)
    raw = [found.get(id(demand), average) for demand in demands]
    most = max(raw)
    return [Fraction(-(weight * _FINENESS // -most)) for weight in raw]
