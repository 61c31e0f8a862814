"""Which measures answer a query, and how far each can move: `tables/measures.py` has the proofs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor, isqrt

from lastbit.tables.card.schema import DataCard
from lastbit.tables.measures import (
    WEIGHT_ONE,
    Kind,
    Measure,
    chosen_keys,
    distinct_values,
    equal_edges,
    grid_of,
    weight_one,
)
from lastbit.tables.query.query import Aggregate, Query

_CANDIDATES = 1 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How an aggregate is made of measures, by their names.

    count: rows. count_units: units. count_distinct: distinct. sum: values, or values and rows where
    a mean of the same is asked too. mean: values, rows. variance, std: squares, values, rows.
    quantile, min, max, histogram: bins. With ends, count, sum and mean of one column: above, below.
    """

    aggregate: Aggregate
    measures: Mapping[Kind, str]


def measures_of(
    query: Query, *, ends: bool = False
) -> tuple[tuple[Measure, ...], tuple[Recipe, ...]]:
    """The least measures that answer the query, and how each aggregate is made of them.

    `ends`: rows that serve one column of values are measured, with the values, by how far those
    are from both bounds. The two add up to the number of rows, and are paid for as one.
    """
    found: dict[Measure, str] = {}
    recipes = []
    centred = {_value_key(part) for part in query.aggregates if part.function in _CENTRED}
    every = [
        list(_needed(part, shared=ends or _value_key(part) in centred)) for part in query.aggregates
    ]
    for part, own in zip(query.aggregates, every, strict=True):
        needed: dict[Kind, str] = {}
        for measure in _ends(own, every) if ends else own:
            name = found.setdefault(measure, f"m{len(found) + 1}")
            needed[measure.kind] = name
        recipes.append(Recipe(aggregate=part, measures=needed))
    named = tuple(replace(measure, name=name) for measure, name in found.items())
    return named, tuple(recipes)


def _ends(own: Sequence[Measure], every: Sequence[Sequence[Measure]]) -> Sequence[Measure]:
    """The two ends, in place of rows and of the one column of values that these rows serve."""
    rows = [measure for measure in own if measure.kind == "rows"]
    beside = [some for some in every if rows and rows[0] in some]
    served = {measure for some in beside for measure in some if measure.kind != "rows"}
    if len(served) != 1:
        return own
    (values,) = served
    if values.kind != "values":
        return own
    low = values.centre + values.lowest * values.step
    ends = replace(values, centre=low, lowest=0, highest=values.highest - values.lowest)
    return replace(ends, kind="above"), replace(ends, kind="below")


_CENTRED = ("mean", "variance", "std")


def _value_key(part: Aggregate) -> object:
    return part.expression, part.bounds, part.step, part.nullable


def _needed(part: Aggregate, *, shared: bool) -> Iterable[Measure]:
    """The measures, unnamed, so that equal ones are found equal."""
    match part.function:
        case "count":
            yield _rows(part)
        case "count_units":
            yield Measure(name="", kind="units")
        case "count_distinct":
            yield Measure(name="", kind="distinct", expression=part.expression)
        case "sum":
            yield _values(part, centred=shared)
            if shared:
                yield _rows(part)
        case "mean" | "variance" | "std":
            yield _values(part, centred=True)
            yield _rows(part)
            if part.function != "mean":
                yield replace(_values(part, centred=True), kind="squares")
        case "quantile" | "cdf" | "min" | "max":
            yield _bins(part, _candidates(part), clamped=True)
        case "histogram":
            assert part.edges is not None
            yield _bins(part, part.edges, clamped=False)


def _rows(part: Aggregate) -> Measure:
    if part.expression is None or not part.nullable:
        return Measure(name="", kind="rows", nullable=False)
    return Measure(name="", kind="rows", expression=part.expression)


def _values(part: Aggregate, *, centred: bool) -> Measure:
    assert part.bounds is not None
    centre = (part.bounds[0] + part.bounds[1]) / 2 if centred else Fraction(0)
    if centred and part.step is not None:  # the centre is a point of the declared grid
        centre = floor(centre / part.step) * part.step
    step, lowest, highest = grid_of(part.bounds, part.step, centre=centre)
    return Measure(
        name="",
        kind="values",
        expression=part.expression,
        nullable=part.nullable,
        centre=centre,
        step=step,
        lowest=lowest,
        highest=highest,
    )


def _bins(part: Aggregate, edges: tuple[Fraction, ...], *, clamped: bool) -> Measure:
    return Measure(
        name="",
        kind="bins",
        expression=part.expression,
        nullable=True,  # a missing value has no bin
        edges=edges,
        clamped=clamped,
    )


def _candidates(part: Aggregate) -> tuple[Fraction, ...]:
    """The edges of the bins among which a quantile is chosen.

    Where there are few steps between the bounds, each value of the grid has a bin of its own, the
    greatest one too: the last bin begins at the upper bound.
    """
    assert part.bounds is not None
    low, high = part.bounds
    if part.step is None:
        return equal_edges(low, high, _CANDIDATES)
    steps = (high - low) / part.step
    if steps.denominator == 1 and steps <= _CANDIDATES:
        return equal_edges(low, high + part.step, int(steps) + 1)
    return equal_edges(low, high, min(_CANDIDATES, ceil(steps)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """How far a vector of integers can move between neighbours, in three norms.

    >>> Sensitivity(l1=6, l2_squared=12, linf=2)
    Sensitivity(l1=6, l2_squared=12, linf=2)
    """

    l1: int
    l2_squared: int
    linf: int


def sensitivity_of(measure: Measure, card: DataCard, *, groups: int | None) -> Sensitivity:
    """The most by which the measure can move between neighbours: the table above.

    `groups` is the number of all possible keys, 1 without GROUP BY, None if undeclared.
    """
    both = card.neighbours.relation == "change-one"
    if measure.kind == "shares":
        times, root = 2 if both else 1, isqrt(WEIGHT_ONE**2 * measure.highest)
        return Sensitivity(l1=times * root, l2_squared=times * WEIGHT_ONE**2, linf=WEIGHT_ONE)
    if measure.kind == "units" and measure.highest:
        moved = 2 * measure.highest if both else measure.highest
        return Sensitivity(l1=moved, l2_squared=moved, linf=1)
    if measure.kind == "units":
        keys = 1 if card.unit is None else chosen_keys(card, groups=groups, needs_choice=True)
        own = groups if keys is None else keys
        assert own is not None  # chosen_keys refuses where neither is known
        moved = 2 * own if both else own
        if groups is not None:
            moved = min(moved, groups)
        return Sensitivity(l1=moved, l2_squared=moved, linf=1)
    total = card.max_rows * weight_one(card) * measure.largest
    if measure.kind == "distinct":
        total = distinct_values(card)
    if not both:
        return Sensitivity(l1=total, l2_squared=total**2, linf=total)
    if measure.kind == "values" and measure.lowest < 0 < measure.highest:  # pulled both ways
        return Sensitivity(l1=2 * total, l2_squared=4 * total**2, linf=2 * total)
    return Sensitivity(l1=2 * total, l2_squared=2 * total**2, linf=total)
