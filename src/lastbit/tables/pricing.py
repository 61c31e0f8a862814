"""From demands and a price to parts with exact noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lastbit.exact.ball import arb_of, working_precision
from lastbit.exact.rounding import upper
from lastbit.mechanisms.histogram import ThresholdedHistogram
from lastbit.privacy.calibrate import least_noise
from lastbit.privacy.convert import delta_upper
from lastbit.privacy.guarantees import ZCDP
from lastbit.tables.measures import Measure, Recipe
from lastbit.tables.parts import KeysPart, NoisePart, Part
from lastbit.tables.ranks import rank_draws, rank_moved, rank_part
from lastbit.tables.schema import DataCard
from lastbit.tables.split import Demand, root_below
from lastbit.tables.stability import Moves, chosen_keys, moves, weight_one

__all__ = [
    "Conversion",
    "basic_parts",
    "concentrated_parts",
    "conversion_to",
    "demands_of",
    "order_delta",
]


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
        order = _best_order(rho, epsilon)
        if order_delta(rho, epsilon, order) <= delta:
            return Conversion(rho=rho, epsilon=epsilon, delta=delta, order=order)
        rho *= 1 - Fraction(1, 1 << 24)


def _best_order(rho: Fraction, epsilon: Fraction) -> Fraction:
    """About where delta is least: every order proves a delta, so floats may be careless."""
    density, loss = float(rho), float(epsilon)
    low, high = -60.0, 60.0
    for _ in range(60):
        middle = (low + high) / 2
        x = math.exp(middle)
        below = (1 + 2 * x) * density - math.log1p(1 / x) < loss
        low, high = (middle, high) if below else (low, middle)
    return 1 + max(Fraction(math.exp(low)).limit_denominator(1 << 20), Fraction(1, 1 << 20))


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
    ranked = {id(recipe) for recipe in recipes if _ranked(recipe)}
    taken = {name for r in recipes if id(r) in ranked for name in r.measures.values()}
    if groups is None:
        units = next((m for m in measures if m.kind == "units"), None)
        counted = () if units is None else tuple(wanted[units.name])
        moved = moves(Measure(name="", kind="units"), card, groups=None)
        found.append(
            Demand(kind="keys", wanted_by=(*keys, *counted), moves=moved, full=1, measure=units)
        )
    for measure in measures:
        if measure.name in taken or (measure.kind == "units" and groups is None):
            continue
        full = 1 if measure.kind == "units" else weight_one(card) * measure.largest
        found.append(
            Demand(
                kind="noise",
                wanted_by=tuple(wanted[measure.name]),
                moves=moves(measure, card, groups=groups),
                full=full,
                measure=measure,
            )
        )
    by_name = {measure.name: measure for measure in measures}
    found.extend(_rank_demands(card, by_name, recipes, ranked, groups=groups))
    return found


def _ranked(recipe: Recipe) -> bool:
    return recipe.aggregate.function in ("quantile", "min", "max")


def _rank_demands(
    card: DataCard,
    by_name: Mapping[str, Measure],
    recipes: Sequence[Recipe],
    ranked: set[int],
    *,
    groups: int | None,
) -> Iterator[Demand]:
    change_one = card.neighbours.relation == "change-one"
    for recipe in recipes:
        if id(recipe) not in ranked:
            continue
        measure = by_name[recipe.measures["bins"]]
        total = card.max_rows * weight_one(card)
        level = rank_draws(recipe.aggregate)[0].level
        yield Demand(
            kind="rank",
            wanted_by=(recipe.aggregate.name,),
            moves=Moves(l1=total, l2_squared=total**2, linf=total),
            full=weight_one(card),
            measure=measure,
            aggregate=recipe.aggregate,
            rank_moved=rank_moved(level, total, change_one=change_one, groups=groups),
        )


def basic_parts(
    card: DataCard, demands: Sequence[Demand], prices: Sequence[Fraction], delta: Fraction
) -> Iterator[Part]:
    """Every demand at its epsilon: Laplace noise, exponential draws, and all delta to the keys."""
    for demand, epsilon in zip(demands, prices, strict=True):
        match demand.kind:
            case "keys":
                yield _keys_part(card, demand, epsilon, delta)
            case "noise":
                assert demand.measure is not None
                yield NoisePart(
                    measure=demand.measure.name,
                    mechanism="laplace",
                    moved=demand.moves.l1,
                    noise=demand.moves.l1 / epsilon,
                    epsilon=epsilon,
                    rho=None,
                )
            case "rank":
                for draw, measure, aggregate in _draws(demand):
                    yield rank_part(
                        aggregate,
                        measure,
                        draw,
                        moved=demand.rank_moved,
                        epsilon=epsilon * draw.share,
                        rho=None,
                    )


def concentrated_parts(demands: Sequence[Demand], prices: Sequence[Fraction]) -> Iterator[Part]:
    """Every demand at its rho: Gaussian noise, and exponential draws at epsilon**2/8."""
    for demand, rho in zip(demands, prices, strict=True):
        if demand.kind == "noise":
            assert demand.measure is not None
            yield NoisePart(
                measure=demand.measure.name,
                mechanism="gaussian",
                moved=demand.moves.l2_squared,
                noise=demand.moves.l2_squared / (2 * rho),
                epsilon=None,
                rho=rho,
            )
            continue
        assert demand.kind == "rank"  # the discovery of keys has no rho
        for draw, measure, aggregate in _draws(demand):
            epsilon = root_below(8 * rho * draw.share)
            yield rank_part(
                aggregate,
                measure,
                draw,
                moved=demand.rank_moved,
                epsilon=epsilon,
                rho=epsilon**2 / 8,
            )


def _draws(demand: Demand) -> Iterator[tuple[Any, Measure, Any]]:
    assert demand.aggregate is not None and demand.measure is not None
    for draw in rank_draws(demand.aggregate):
        yield draw, demand.measure, demand.aggregate


def _keys_part(card: DataCard, demand: Demand, epsilon: Fraction, delta: Fraction) -> KeysPart:
    own = 1 if card.unit is None else chosen_keys(card, groups=None, needs_choice=True)
    assert own is not None  # chosen_keys refuses where a unit could bring any number of keys
    found = ThresholdedHistogram(
        keys_per_person=own, epsilon=epsilon, delta=delta, neighbours=card.neighbours
    )
    return KeysPart(
        measure=None if demand.measure is None else demand.measure.name,
        keys_per_person=own,
        scale=found.scale,
        threshold=found.threshold,
        epsilon=epsilon,
        delta=delta,
    )
