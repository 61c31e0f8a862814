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

How the price is shared: `least_error.py` has the theorem.
Checked  tests/tables/test_plan.py, tests/tables/test_least_error.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal, TypeAlias

from lastbit.errors import InvalidParameter
from lastbit.exact import Number, positive, root_below
from lastbit.tables.card.schema import DataCard
from lastbit.tables.measures import Measure, distinct_values, weight_one
from lastbit.tables.plan.conversion import most_mu_squared, pair_variance
from lastbit.tables.plan.least_error import coefficients, least_worst, worst_error
from lastbit.tables.plan.parts import GaussianPart, LaplacePart, Part, RankPart, TreePart
from lastbit.tables.plan.ranks import (
    RankDraw,
    rank_accuracy,
    rank_draws,
    rank_part,
    rank_sensitivity,
)
from lastbit.tables.plan.sensitivity import Recipe, Sensitivity, measures_of, sensitivity_of
from lastbit.tables.plan.tree import tree_over, worst_reach
from lastbit.tables.query.query import Aggregate, Query

Weights: TypeAlias = Mapping[str, Number] | Literal["balanced"] | None

_ROOT_TWO = Fraction(99, 70)
_FINENESS = 64
_KEYS_TO_REST = Fraction(2, 3)
_ROOT_BITS = 43
_FOR_ONE = Fraction(3, 4)
_PAIR = Fraction(3, 2)
_FEW = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """One thing to pay for. `wanted_by` names the aggregates, or the keys, that it is for."""

    kind: Literal["noise", "keys", "rank"]
    wanted_by: tuple[str, ...]
    sensitivity: Sensitivity
    full: int
    """What one row adds at most: its error in full rows is the error divided by this."""
    size: int = 1
    """What one unit adds at most to a group."""
    measure: Measure | None = None
    below: Measure | None = None
    """The other end, with the same noise, where the measure is one of two ends."""
    aggregate: Aggregate | None = None
    rank_sensitivities: Mapping[str, int] = field(default_factory=dict)
    """Of each draw, by its role."""
    several: tuple[Demand, ...] = ()
    """The demands of several quantiles of one measure, which are paid for as one."""


def pure_error(demand: Demand) -> Fraction:
    """The error at epsilon = 1, in full rows, nearly."""
    if demand.several:
        return _several(demand, Fraction(1), concentrated=False)[1] / 2
    if demand.kind == "rank":
        return _rank_error(demand)
    return _ROOT_TWO * demand.sensitivity.l1 / demand.full


def concentrated_error(demand: Demand) -> Fraction:
    """The error at rho = 1, in full rows, nearly."""
    if demand.several:
        return _several(demand, Fraction(1), concentrated=True)[1] / 2
    if demand.kind == "rank":
        share = _draws(demand)[0].share  # buys epsilon * share, or sqrt(8 rho share)
        return _rank_error(demand) * root_below(share / 8, _ROOT_BITS)
    return root_below(Fraction(demand.sensitivity.l2_squared, 2), _ROOT_BITS) / demand.full


def _rank_error(demand: Demand) -> Fraction:
    """Half the distance that is missed once in twenty draws, for the draw of the value."""
    assert demand.measure is not None
    draw = _draws(demand)[0]
    moved = demand.rank_sensitivities[draw.role]
    bins = max(len(demand.measure.edges) - 1, 2)
    far = rank_accuracy(moved, draw.share, beta=Fraction(1, 20), candidates=bins)
    return Fraction(far, 2 * draw.level.denominator * demand.full)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to measure what is asked: the measures, what must be paid, and for which numbers."""

    measures: tuple[Measure, ...]
    recipes: tuple[Recipe, ...]
    demands: tuple[Demand, ...]

    def _errors(self, *, concentrated: bool) -> list[list[Fraction]]:
        """For each number the squared errors of its demands of noise, at the price 1."""
        squares = {}
        for demand in self.demands:
            moved, size = demand.sensitivity, demand.size  # in parts of what one unit adds at most
            pure, rho = 2 * Fraction(moved.l1, size) ** 2, Fraction(moved.l2_squared, 2 * size**2)
            if demand.kind == "noise" and demand.measure is not None:
                squares[demand.measure.name] = rho if concentrated else pure
        by_name = {measure.name: measure for measure in self.measures}
        every = [coefficients(recipe, by_name) for recipe in self.recipes]
        rows = [[made.get(name, 0) * a for name, a in squares.items()] for made in every]
        return [row for row in rows if any(row)]

    def shares(self, weights: Weights, *, concentrated: bool) -> tuple[Fraction, ...]:
        """What part of the price each demand gets; they add up to exactly 1.

        By default by least error (`least_error.py`) among noises, an average share for a quantile,
        and two fifths at least for the selection of partitions: a key that is not shown has no
        numbers at all. By name, a demand has the greatest weight among those it is wanted by (1
        unless given). Balanced: all errors in full rows are equal, those of ranks too.
        """
        if weights is None:
            raw = self._least_error(concentrated=concentrated)
        elif isinstance(weights, str):
            raw = _balanced(self.demands, weights, concentrated=concentrated)
        else:
            raw = named_weights([demand.wanted_by for demand in self.demands], weights)
        total = sum(raw, Fraction(0))
        return tuple(weight / total for weight in raw)

    def _least_error(self, *, concentrated: bool) -> list[Fraction]:
        rows = self._errors(concentrated=concentrated)
        best = iter(least_worst(rows, power=1 if concentrated else 2) if rows else ())
        all_noise = sum(_PAIR if d.below else 1 for d in self.demands if d.kind == "noise")
        raw = [all_noise * next(best) if d.kind == "noise" else Fraction(1) for d in self.demands]
        for place, demand in enumerate(self.demands):
            if demand.kind == "keys":
                raw[place] = max(raw[place], _KEYS_TO_REST * (sum(raw) - raw[place]))
        return raw

    def errors_at(self, prices: Sequence[Fraction], *, concentrated: bool) -> list[Fraction]:
        """The error of each number and rank at these prices, in parts of a full unit, nearly."""
        paid, power = list(zip(self.demands, prices, strict=True)), 1 if concentrated else 2
        noises = [price for demand, price in paid if demand.kind == "noise"]
        rows = self._errors(concentrated=concentrated)
        found = [root_below(worst_error([row], noises, power=power), _ROOT_BITS) for row in rows]
        for demand, price in paid:
            if demand.kind == "rank":
                error = concentrated_error(demand) if concentrated else pure_error(demand)
                bought = root_below(price, _ROOT_BITS) if concentrated else price
                found.append(error * demand.full / demand.size / bought)
        return found


def named_weights(
    wanted: Sequence[tuple[str, ...]], weights: Mapping[str, Number]
) -> list[Fraction]:
    """For each demand the greatest weight among the names that want it."""
    known = {name for names in wanted for name in names}
    for name in weights:
        if name not in known:
            problem = "name no number of this query"
            remedy = f"use {', '.join(sorted(known)[:40])}"
            raise InvalidParameter("weights", problem=problem, remedy=remedy)
    exact = {name: positive(weight, f"weights: {name}") for name, weight in weights.items()}
    return [max(exact.get(name, Fraction(1)) for name in names) for names in wanted]


def _balanced(demands: Sequence[Demand], weights: str, *, concentrated: bool) -> list[Fraction]:
    if weights != "balanced":
        raise InvalidParameter(
            "weights", problem="is unknown", remedy='pass "balanced", or a weight by name'
        )
    errors = [
        concentrated_error(demand) ** 2 if concentrated else pure_error(demand)
        for demand in demands
        if demand.kind != "keys"
    ] or [Fraction(1)]
    each, average = iter(errors), sum(errors, Fraction(0)) / len(errors)
    raw = [average if demand.kind == "keys" else next(each) for demand in demands]
    return [Fraction(-(weight * _FINENESS // -max(raw))) for weight in raw]


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
    counts of units too, and as counts of rows where each row is a unit.
    """
    wanted: dict[str, list[str]] = {measure.name: [] for measure in measures}
    found: list[Demand] = []
    for recipe in recipes:
        for name in recipe.measures.values():
            wanted[name].append(recipe.aggregate.name)
    ranked = [r for r in recipes if r.aggregate.function in ("quantile", "cdf", "min", "max")]
    taken = {name for recipe in ranked for name in recipe.measures.values()}
    if groups is None:
        served = served_by_selection(card, measures)
        counted = () if served is None else tuple(wanted[served.name])
        taken |= set() if served is None else {served.name}
        found.append(
            Demand(
                kind="keys",
                wanted_by=(*keys, *counted),
                sensitivity=Sensitivity(l1=1, l2_squared=1, linf=1),  # `selection.py` has its own
                full=1,
                measure=served,
            )
        )
    by_name = {measure.name: measure for measure in measures}
    made = [recipe.measures for recipe in recipes if "above" in recipe.measures]
    below = {own["above"]: by_name[own["below"]] for own in made}
    for measure in measures:
        if measure.name in taken or measure.kind == "below":
            continue
        alone = measure.kind in ("units", "distinct")
        full = 1 if alone else weight_one(card) * measure.largest
        own = distinct_values(card) if measure.kind == "distinct" else 1
        found.append(
            Demand(
                kind="noise",
                wanted_by=tuple(wanted[measure.name]),
                sensitivity=sensitivity_of(measure, card, groups=groups),
                full=full,
                size=own if alone else full * card.max_rows,
                measure=measure,
                below=below.get(measure.name),
            )
        )
    total = card.max_rows * weight_one(card)
    for recipe in ranked:
        found.append(
            Demand(
                kind="rank",
                wanted_by=(recipe.aggregate.name,),
                sensitivity=Sensitivity(l1=total, l2_squared=total**2, linf=total),
                full=weight_one(card),
                size=total,
                measure=by_name[recipe.measures["bins"]],
                aggregate=recipe.aggregate,
                rank_sensitivities={
                    draw.role: rank_sensitivity(
                        draw.level,
                        total,
                        change_one=card.neighbours.relation == "change-one",
                        groups=groups,
                    )
                    for draw in rank_draws(recipe.aggregate)
                },
            )
        )
    return list(_merged(found, card, groups=groups))


def ways_of(query: Query, card: DataCard, weights: Weights) -> list[Way]:
    """The ways to measure what a query asks; by both ends only where shares are ours to choose.

    Formulas, and rows by which keys are selected, need the rows and the values apart.
    """
    keys = tuple(key.name for key in query.keys)
    both = weights is None and not query.derived
    both = both and not (query.groups is None and card.unit is None)
    ways = []
    for ends in (False, True) if both else (False,):
        try:
            measures, recipes = measures_of(query, ends=ends)
        except InvalidParameter:
            if not ends:
                raise
            break  # there are too many steps from one end to the other, if not from the middle
        if ends and not any("above" in recipe.measures for recipe in recipes):
            break
        demands = demands_of(card, measures, recipes, keys, groups=query.groups)
        ways.append(Way(measures=measures, recipes=recipes, demands=tuple(demands)))
    return ways


def _merged(found: list[Demand], card: DataCard, *, groups: int | None) -> Iterator[Demand]:
    """The demands, several quantiles of one measure as one, in the place of the first."""
    together: dict[str, list[Demand]] = {}
    for demand in found:
        if demand.aggregate is not None and demand.aggregate.function in ("quantile", "cdf"):
            assert demand.measure is not None
            together.setdefault(demand.measure.name, []).append(demand)
    for demand in found:
        mates = [] if demand.measure is None else together.get(demand.measure.name, [])
        if demand not in mates or (len(mates) == 1 and _drawn_alone(mates[0])):
            yield demand
        elif demand == mates[0]:
            assert demand.measure is not None
            yield Demand(
                kind="rank",
                wanted_by=tuple(name for mate in mates for name in mate.wanted_by),
                sensitivity=sensitivity_of(demand.measure, card, groups=groups),
                full=demand.full,
                size=demand.size,
                measure=demand.measure,
                several=tuple(mates),
            )


def _drawn_alone(demand: Demand) -> bool:
    """Whether one quantile is drawn in any case: without an interval, or from few ranges.

    Its value is mostly much nearer than its reach, and of few ranges mostly the right one.
    """
    assert demand.measure is not None and demand.aggregate is not None
    if demand.aggregate.function == "cdf":
        return False
    return not demand.aggregate.intervals or len(demand.measure.edges) <= _FEW


def _several(demand: Demand, price: Fraction, *, concentrated: bool) -> tuple[list[Part], Fraction]:
    """One noisy tree, or a draw for each quantile: whichever reaches less far; and how far.

    Where shares up to a point are asked for there is a tree: they are not drawn.
    Compared is what is certified before anything is read, in full rows: how far the rank of the
    worst quantile is off in 95 % of releases, or the end of its interval where that is asked for.
    """
    assert demand.measure is not None
    name, bins = demand.measure.name, len(demand.measure.edges) - 1
    tree = tree_over(bins, gaussian=concentrated)
    if concentrated:
        part = TreePart.gaussian(name, tree, demand.sensitivity.l2_squared, price)
    else:
        part = TreePart.laplace(name, tree, demand.sensitivity.l1, price)
    asked = [one.aggregate for one in demand.several if one.aggregate is not None]
    levels = {one.level for one in asked if one.level is not None} or {Fraction(1, 2)}
    reaches = [worst_reach(tree, part.law, level) for level in levels]
    if any(one.function == "cdf" for one in asked):
        # where noise is too coarse for its reach, shares have no interval but 0 to 1
        far = max((reach for reach in reaches if reach is not None), default=Fraction(1))
        return [part], far / demand.full
    apart = [price / len(demand.several)] * len(demand.several)
    if concentrated:
        draws = list(concentrated_parts(demand.several, apart))
    else:
        draws = list(_draws_at(demand.several, apart))
    far = max(_draw_reach(draw) for draw in draws if isinstance(draw, RankPart)) / demand.full
    known = [reach for reach in reaches if reach is not None]
    most = far if len(demand.several) > 1 else far * _FOR_ONE
    if len(known) == len(reaches) and max(known) / demand.full < most:
        return [part], max(known) / demand.full
    return draws, far


def _draw_reach(draw: RankPart) -> Fraction:
    if draw.role != "value":
        return Fraction(draw.ends[0])
    far = rank_accuracy(
        draw.distance_sensitivity,
        draw.epsilon,
        beta=Fraction(1, 20),
        candidates=max(draw.candidates, 2),
    )
    return Fraction(far, draw.level.denominator)


def _draws_at(demands: Sequence[Demand], prices: Sequence[Fraction]) -> Iterator[RankPart]:
    for demand, epsilon in zip(demands, prices, strict=True):
        for draw in _draws(demand):
            yield _rank_part(demand, draw, epsilon * draw.share, None)


def served_by_selection(card: DataCard, measures: Sequence[Measure]) -> Measure | None:
    """The measure whose noisy entries are those by which undeclared keys are selected.

    Theorem  where each row is a unit, the number of rows of a key is its number of units: one
             draw of noise serves both, and is paid for once
    """
    for measure in measures:
        rows = measure.kind == "rows" and measure.expression is None and card.unit is None
        if measure.kind == "units" or rows:
            return measure
    return None


def basic_parts(demands: Sequence[Demand], prices: Sequence[Fraction]) -> Iterator[Part]:
    """Every demand but the keys at its epsilon: Laplace noise and exponential draws."""
    for demand, epsilon in zip(demands, prices, strict=True):
        match demand.kind:
            case "keys":
                raise AssertionError  # `selection.py` has its parts
            case "noise":
                for measure in _noised(demand):
                    yield LaplacePart.at(measure, demand.sensitivity.l1, epsilon)
            case "rank" if demand.several:
                yield from _several(demand, epsilon, concentrated=False)[0]
            case "rank":
                yield from _draws_at([demand], [epsilon])


def _noised(demand: Demand) -> list[str]:
    """The measures that get the noise of a demand: one, or the two ends."""
    both = (demand.measure, demand.below)
    return [measure.name for measure in both if measure is not None]


def all_gaussian(demands: Sequence[Demand], prices: Sequence[Fraction]) -> bool:
    """Whether every demand is met by Gaussian noise at these rhos: no quantile is drawn."""
    return all(
        demand.kind in ("noise", "keys")
        or (
            bool(demand.several)
            and isinstance(_several(demand, rho, concentrated=True)[0][0], TreePart)
        )
        for demand, rho in zip(demands, prices, strict=True)
    )


def paired_parts(demands: Sequence[Demand], prices: Sequence[Fraction]) -> Iterator[Part]:
    """Every demand, as `all_gaussian` says, at its mu**2/2: Gaussian noise."""
    for demand, price in zip(demands, prices, strict=True):
        if demand.kind == "noise":
            squared = demand.sensitivity.l2_squared
            yield from (_paired(name, squared, price) for name in _noised(demand))
            continue
        (part,) = _several(demand, price, concentrated=True)[0]
        assert isinstance(part, TreePart)
        noise = _paired(part.measure, part.sensitivity, price)
        yield replace(part, noise=noise)


def _paired(measure: str, squared: int, price: Fraction) -> GaussianPart:
    mu_squared = min(2 * price, most_mu_squared(squared))
    rho = squared / (2 * pair_variance(squared, mu_squared))
    return replace(GaussianPart.at(measure, squared, rho), mu_squared=mu_squared)


def concentrated_parts(demands: Sequence[Demand], prices: Sequence[Fraction]) -> Iterator[Part]:
    """Every demand at its rho: Gaussian noise, and exponential draws at epsilon**2/8."""
    for demand, rho in zip(demands, prices, strict=True):
        if demand.kind == "noise":
            for measure in _noised(demand):
                yield GaussianPart.at(measure, demand.sensitivity.l2_squared, rho)
            continue
        assert demand.kind == "rank"  # `selection.py` has the keys
        if demand.several:
            yield from _several(demand, rho, concentrated=True)[0]
            continue
        for draw in _draws(demand):
            epsilon = root_below(8 * rho * draw.share, _ROOT_BITS)
            yield _rank_part(demand, draw, epsilon, epsilon**2 / 8)


def _draws(demand: Demand) -> tuple[RankDraw, ...]:
    assert demand.aggregate is not None
    return rank_draws(demand.aggregate)


def _rank_part(demand: Demand, draw: RankDraw, epsilon: Fraction, rho: Fraction | None) -> RankPart:
    assert demand.aggregate is not None and demand.measure is not None
    moved = demand.rank_sensitivities[draw.role]
    return rank_part(
        demand.aggregate, demand.measure, draw, sensitivity=moved, epsilon=epsilon, rho=rho
    )
