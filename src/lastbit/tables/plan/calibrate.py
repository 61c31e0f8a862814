"""How the price of an answer is shared out among its parts, and what noise each share buys.

A *demand* is one thing that must be paid for: noise on a measure, the draws of a quantile, the
selection of partitions. Its error at the price 1 is known before anything is read:

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

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from lastbit.errors import InvalidParameter
from lastbit.exact import Number, arb_of, positive, root_below, upper, working_precision
from lastbit.mechanisms import ThresholdedHistogram
from lastbit.privacy import ZCDP, best_order_for_epsilon, delta_upper, least_noise
from lastbit.tables.card.schema import DataCard
from lastbit.tables.plan.parts import GaussianPart, LaplacePart, Part, PartitionSelection, RankPart
from lastbit.tables.plan.ranks import (
    RankDraw,
    rank_accuracy,
    rank_draws,
    rank_part,
    rank_sensitivity,
)
from lastbit.tables.plan.sensitivity import (
    Measure,
    Recipe,
    Sensitivity,
    chosen_keys,
    sensitivity_of,
    weight_one,
)
from lastbit.tables.query.query import Aggregate

Weights: TypeAlias = Mapping[str, Number] | Literal["balanced"] | None

_ROOT_TWO = Fraction(99, 70)
_FINENESS = 64
_ROOT_BITS = 43


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One thing to pay for. `wanted_by` names the aggregates, or the keys, that it is for."""

    kind: Literal["noise", "keys", "rank"]
    wanted_by: tuple[str, ...]
    sensitivity: Sensitivity
    full: int
    """What one row adds at most: its error in full rows is the error divided by this."""
    measure: Measure | None = None
    aggregate: Aggregate | None = None
    rank_sensitivity: int = 0


def pure_error(demand: Demand) -> Fraction:
    """The error at epsilon = 1, in full rows, nearly."""
    if demand.kind == "rank":
        return _rank_error(demand)
    return _ROOT_TWO * demand.sensitivity.l1 / demand.full


def concentrated_error(demand: Demand) -> Fraction:
    """The error at rho = 1, in full rows, nearly."""
    if demand.kind == "rank":
        share = _draws(demand)[0].share  # buys epsilon * share, or sqrt(8 rho share)
        return _rank_error(demand) * root_below(share / 8, _ROOT_BITS)
    return root_below(Fraction(demand.sensitivity.l2_squared, 2), _ROOT_BITS) / demand.full


def _rank_error(demand: Demand) -> Fraction:
    """Half the distance that is missed once in twenty draws, for the draw of the value."""
    assert demand.measure is not None
    draw, moved = _draws(demand)[0], demand.rank_sensitivity
    bins = max(len(demand.measure.edges) - 1, 2)
    far = rank_accuracy(moved, draw.share, beta=Fraction(1, 20), candidates=bins)
    return Fraction(far, 2 * draw.level.denominator * demand.full)


def shares(
    demands: Sequence[Demand], weights: Weights, *, concentrated: bool
) -> tuple[Fraction, ...]:
    """What part of the price each demand gets; they add up to exactly 1.

    Equal by default. By name, a demand has the greatest weight among those it is wanted by (1
    unless given). Balanced: the worst error in full rows is least when all errors are equal;
    errors fall like 1/epsilon and like 1/sqrt(rho), so shares are in proportion to `pure_error`,
    or to the square of `concentrated_error`. Partition selection always counts as an average one,
    since its error is not an error of a number.
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
    known = {name for demand in demands for name in demand.wanted_by}
    for name in weights:
        if name not in known:
            problem = "name something that is not paid for in this query"
            remedy = f"use {', '.join(sorted(known))}"
            raise InvalidParameter("weights", problem=problem, remedy=remedy)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A rho that implies (epsilon, delta), with the order that proves it.

    Theorem  rho-zCDP bounds the divergence of order a by a rho, which implies delta =
             exp((a-1)(a rho - epsilon))/(a-1) (1-1/a)**a, for every a > 1 (CKS20 Prop. 12)
    """

    rho: Fraction
    epsilon: Fraction
    delta: Fraction
    order: Fraction

    def to_json(self) -> dict[str, str]:
        """Fractions as text."""
        names = ("rho", "epsilon", "delta", "order")
        return {name: str(getattr(self, name)) for name in names}


def order_delta(rho: Fraction, epsilon: Fraction, order: Fraction) -> Fraction:
    """The delta that the divergence of this order proves, rounded up."""
    with working_precision(160):
        logarithm = arb_of((order - 1) * (order * rho - epsilon))
        logarithm -= arb_of(order) * (1 / arb_of(order - 1)).log1p()
        return Fraction(upper(logarithm.exp() / arb_of(order - 1)))


def conversion_to(epsilon: Fraction, delta: Fraction) -> Conversion:
    """Nearly the greatest rho that implies (epsilon, delta); that it does was evaluated.

    >>> found = conversion_to(Fraction(1), Fraction(1, 10**6))
    >>> float(found.rho), order_delta(found.rho, found.epsilon, found.order) <= found.delta
    (0.0243..., True)
    """

    def meets(noise: Fraction) -> bool:
        return delta_upper(ZCDP(1 / (2 * noise**2)), epsilon) <= delta

    start = Fraction(max(1.0, math.log(delta.denominator) - math.log(delta.numerator))) / epsilon
    rho = 1 / (2 * least_noise(meets, start=start, bits=32) ** 2)
    while True:
        best = best_order_for_epsilon(rho, epsilon) - 1
        order = 1 + max(best.limit_denominator(1 << 20), Fraction(1, 1 << 20))
        if order_delta(rho, epsilon, order) <= delta:
            return Conversion(rho=rho, epsilon=epsilon, delta=delta, order=order)
        rho *= 1 - Fraction(1, 1 << 24)


def demands_of(
    card: DataCard,
    measures: Sequence[Measure],
    recipes: Sequence[Recipe],
    keys: Sequence[str],
    *,
    groups: int | None,
) -> list[Demand]:
    """What must be paid for, each once.

    Where keys are found privately, the noisy numbers of units that decide on them serve as the
    counts of units too.
    """
    wanted: dict[str, list[str]] = {measure.name: [] for measure in measures}
    found: list[Demand] = []
    for recipe in recipes:
        for name in recipe.measures.values():
            wanted[name].append(recipe.aggregate.name)
    ranked = [r for r in recipes if r.aggregate.function in ("quantile", "min", "max")]
    taken = {name for recipe in ranked for name in recipe.measures.values()}
    if groups is None:
        units = next((m for m in measures if m.kind == "units"), None)
        counted = () if units is None else tuple(wanted[units.name])
        found.append(
            Demand(
                kind="keys",
                wanted_by=(*keys, *counted),
                sensitivity=sensitivity_of(Measure(name="", kind="units"), card, groups=None),
                full=1,
                measure=units,
            )
        )
    for measure in measures:
        if measure.name in taken or (measure.kind == "units" and groups is None):
            continue
        alone = measure.kind in ("units", "distinct")
        full = 1 if alone else weight_one(card) * measure.largest
        found.append(
            Demand(
                kind="noise",
                wanted_by=tuple(wanted[measure.name]),
                sensitivity=sensitivity_of(measure, card, groups=groups),
                full=full,
                measure=measure,
            )
        )
    by_name = {measure.name: measure for measure in measures}
    total = card.max_rows * weight_one(card)
    for recipe in ranked:
        found.append(
            Demand(
                kind="rank",
                wanted_by=(recipe.aggregate.name,),
                sensitivity=Sensitivity(l1=total, l2_squared=total**2, linf=total),
                full=weight_one(card),
                measure=by_name[recipe.measures["bins"]],
                aggregate=recipe.aggregate,
                rank_sensitivity=rank_sensitivity(
                    rank_draws(recipe.aggregate)[0].level,
                    total,
                    change_one=card.neighbours.relation == "change-one",
                    groups=groups,
                ),
            )
        )
    return found


def basic_parts(
    card: DataCard, demands: Sequence[Demand], prices: Sequence[Fraction], delta: Fraction
) -> Iterator[Part]:
    """Every demand at its epsilon: Laplace noise, exponential draws, and all delta to the keys."""
    for demand, epsilon in zip(demands, prices, strict=True):
        match demand.kind:
            case "keys":
                yield _partition_selection(card, demand, epsilon, delta)
            case "noise":
                assert demand.measure is not None
                yield LaplacePart(
                    measure=demand.measure.name,
                    l1_sensitivity=demand.sensitivity.l1,
                    scale=demand.sensitivity.l1 / epsilon,
                    epsilon=epsilon,
                )
            case "rank":
                for draw in _draws(demand):
                    yield _rank_part(demand, draw, epsilon * draw.share, None)


def concentrated_parts(demands: Sequence[Demand], prices: Sequence[Fraction]) -> Iterator[Part]:
    """Every demand at its rho: Gaussian noise, and exponential draws at epsilon**2/8."""
    for demand, rho in zip(demands, prices, strict=True):
        if demand.kind == "noise":
            assert demand.measure is not None
            yield GaussianPart(
                measure=demand.measure.name,
                squared_l2_sensitivity=demand.sensitivity.l2_squared,
                variance=demand.sensitivity.l2_squared / (2 * rho),
                rho=rho,
            )
            continue
        assert demand.kind == "rank"  # the selection of partitions has no rho
        for draw in _draws(demand):
            epsilon = root_below(8 * rho * draw.share, _ROOT_BITS)
            yield _rank_part(demand, draw, epsilon, epsilon**2 / 8)


def _draws(demand: Demand) -> tuple[RankDraw, ...]:
    assert demand.aggregate is not None
    return rank_draws(demand.aggregate)


def _rank_part(demand: Demand, draw: RankDraw, epsilon: Fraction, rho: Fraction | None) -> RankPart:
    assert demand.aggregate is not None and demand.measure is not None
    moved = demand.rank_sensitivity
    return rank_part(
        demand.aggregate, demand.measure, draw, sensitivity=moved, epsilon=epsilon, rho=rho
    )


def _partition_selection(
    card: DataCard, demand: Demand, epsilon: Fraction, delta: Fraction
) -> PartitionSelection:
    own = 1 if card.unit is None else chosen_keys(card, groups=None, needs_choice=True)
    assert own is not None  # chosen_keys refuses where a unit could be in any number of groups
    found = ThresholdedHistogram(
        keys_per_person=own, epsilon=epsilon, delta=delta, neighbours=card.neighbours
    )
    return PartitionSelection(
        measure=None if demand.measure is None else demand.measure.name,
        keys_per_person=own,
        scale=found.scale,
        threshold=found.threshold,
        epsilon=epsilon,
        delta=delta,
    )
