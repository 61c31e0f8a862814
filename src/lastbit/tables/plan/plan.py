"""The plan of an answer: which mechanisms run, with which noise, at which price.

A plan depends on the query, the card and the price asked, on nothing else: it is made before a
single row is read, and `explain()` shows all of it. Every number in it is exact.

Theorem  the answer costs no more than `cost`. The parts run one after another on the same data:
         - *basic*: their epsilons add up to at most the epsilon asked, their deltas to the delta;
         - *concentrated*: the rhos of noise and of ranks add up to at most rho. Where epsilon and
           delta were asked, rho is such that rho-zCDP implies (epsilon', delta') by the order on
           record (`calibrate.Conversion`), and partition selection adds its own epsilon and delta.
         Each part's price follows from its sensitivity (`sensitivity.py`, `ranks.py`). Measures of
         keys that are not shown are not released, and a part of a vector moves no further than the
         whole. What is done with noisy numbers afterwards is free
Source   basic composition: paper 003 Prop. 8; zCDP: Bun, Steinke 2016; to (epsilon, delta): CKS20
         Prop. 12
Checked  tests/tables/test_plan.py

Which noise. Where rho is asked: Gaussian. Where delta is 0: Laplace. Otherwise both are worked out
in full, and the one is taken whose worst error in full rows (`calibrate.py`) is smaller.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any, Literal

from lastbit.canonical import digest_of
from lastbit.exact import Number, root_below
from lastbit.tables.card.schema import DataCard
from lastbit.tables.limits import refused
from lastbit.tables.plan.calibrate import (
    Conversion,
    Demand,
    Weights,
    basic_parts,
    concentrated_error,
    concentrated_parts,
    conversion_to,
    demands_of,
    pure_error,
    shares,
)
from lastbit.tables.plan.parts import Part, PartitionSelection
from lastbit.tables.plan.price import Cost, PriceRequest, asked_price
from lastbit.tables.plan.sensitivity import Measure, Recipe, measures_of, weight_one
from lastbit.tables.query.expression import columns_in, to_json
from lastbit.tables.query.query import Query

_MOST_GROUPS = 1 << 20
_MOST_ENTRIES = 1 << 25
_GREATEST = 1 << 250
_WORD = re.compile("[A-Za-z_\u00c0-\u024f][A-Za-z0-9_\u00c0-\u024f]{0,59}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A query with its mechanisms and its price worked out; nothing was read or charged."""

    query: Query
    card: DataCard
    asked: PriceRequest
    groups: int | None
    """How many keys there are: 1 without GROUP BY, None where they are undeclared."""
    measures: tuple[Measure, ...]
    recipes: tuple[Recipe, ...]
    parts: tuple[Part, ...]
    composition: Literal["basic", "concentrated"]
    conversion: Conversion | None
    cost: Cost

    @property
    def partition_selection(self) -> PartitionSelection | None:
        """The part that finds undeclared keys."""
        return next((part for part in self.parts if isinstance(part, PartitionSelection)), None)

    @property
    def keys_part(self) -> PartitionSelection | None:
        """The name that `partition_selection` had in 0.1."""
        return self.partition_selection

    @property
    def guarantee(self) -> str:
        """What is promised, in words."""
        return guarantee_of(self.card, self.cost)

    def explain(self) -> str:
        """What will be done, at which price and with which error: for people, before it is done."""
        # found by name: sentences are the business of a room above this one
        return str(import_module("lastbit.report").plan_words(self))

    def to_json(self) -> dict[str, Any]:
        """All of it as plain JSON: what a second program needs to check the price."""
        return {
            "query": self.query.digest,
            "table": self.card.name,
            "unit": self.card.unit,
            "max_rows": self.card.max_rows,
            "max_groups": self.card.max_groups,
            "neighbours": self.card.neighbours.relation,
            "weight_one": weight_one(self.card),
            "groups": self.groups,
            "asked": self.asked.to_json(),
            "composition": self.composition,
            "conversion": None if self.conversion is None else self.conversion.to_json(),
            "cost": self.cost.to_json(),
            "measures": [_measure(measure) for measure in self.measures],
            "recipes": [_recipe(recipe) for recipe in self.recipes],
            "parts": [part.to_json() for part in self.parts],
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical text."""
        return digest_of(self.to_json())


def planned(
    query: Query,
    card: DataCard,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    weights: Weights = None,
) -> Plan:
    """The plan for a query at a price: epsilon (and delta), or rho, for the whole answer."""
    asked = asked_price(card, epsilon=epsilon, delta=delta, rho=rho, weights=weights)
    groups = query.groups
    measures, recipes = measures_of(query)
    _check(query, measures, groups=groups, delta=asked.delta)
    keys = tuple(key.name for key in query.keys)
    demands = demands_of(card, measures, recipes, keys, groups=groups)
    if asked.rho is not None:
        parts, conversion = _by_rho(demands, asked.rho, weights), None
        cost, concentrated = Cost(rho=asked.rho), True
    else:
        parts, conversion = _by_epsilon(card, demands, asked, weights)
        concentrated = conversion is not None
        used = concentrated or groups is None
        assert asked.epsilon is not None
        cost = Cost(epsilon=asked.epsilon, delta=asked.delta if used else Fraction(0))
    return Plan(
        query=query,
        card=card,
        asked=asked,
        groups=groups,
        measures=measures,
        recipes=recipes,
        parts=tuple(parts),
        composition="concentrated" if concentrated else "basic",
        conversion=conversion,
        cost=cost,
    )


def _check(
    query: Query, measures: tuple[Measure, ...], *, groups: int | None, delta: Fraction
) -> None:
    """Refuse what could not be answered, before anything is priced."""
    if groups is not None and groups > _MOST_GROUPS:
        remedy = "group by fewer columns, or leave keys undeclared to find them privately"
        raise refused("GROUP BY", "has more than 2**20 declared keys", remedy)
    if groups is None and not delta:
        raise refused(
            "GROUP BY",
            "has undeclared keys, and to find them privately takes a delta",
            "pass {delta}, or declare the keys",
            delta="",
        )
    numbers = [n for part in query.aggregates for n in (*(part.bounds or ()), *(part.edges or ()))]
    if any(abs(number) > _GREATEST for number in numbers):
        problem = "lie beyond 2**250, where answers might not be numbers"
        raise refused("bounds", problem, "ask in a larger unit")
    bins = sum(len(measure.edges) for measure in measures if measure.kind == "bins")
    if (groups or 1) * bins > _MOST_ENTRIES:
        problem = "has more than 2**25 bins in all groups together"
        raise refused("query", problem, "ask for fewer groups, or a coarser step")
    single = {part.name for part in query.aggregates if part.function != "histogram"}
    single |= {key.name for key in query.keys}
    mentioned = [order.name for order in query.order]
    if query.having is not None:
        mentioned += [column.name for column in columns_in(query.having)]
    for name in mentioned:
        if name.lower() not in {known.lower() for known in single}:
            problem = "names something that is no single column of the answer"
            raise refused("HAVING or ORDER BY", problem, f"use {', '.join(sorted(single))}")


def _by_rho(demands: list[Demand], rho: Fraction, weights: Weights) -> list[Part]:
    if any(demand.kind == "keys" for demand in demands):
        problem = "has undeclared keys, and rho cannot pay for finding them"
        remedy = "declare the keys, or use a table with a budget of epsilon and delta"
        raise refused("GROUP BY", problem, remedy)
    parts = shares(demands, weights, concentrated=True)
    return list(concentrated_parts(demands, [rho * share for share in parts]))


def _by_epsilon(
    card: DataCard, demands: list[Demand], asked: PriceRequest, weights: Weights
) -> tuple[list[Part], Conversion | None]:
    """Laplace throughout, or Gaussian through rho, whichever has the smaller worst error."""
    assert asked.epsilon is not None
    split = shares(demands, weights, concentrated=False)
    prices = [asked.epsilon * share for share in split]
    others = [i for i, demand in enumerate(demands) if demand.kind != "keys"]
    if asked.delta and others:
        pure = max(pure_error(demands[i]) / prices[i] for i in others)
        found = _concentrated(card, demands, asked, weights)
        if found.error < pure:
            return found.parts, found.conversion
    return list(basic_parts(card, demands, prices, asked.delta)), None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    parts: list[Part]
    conversion: Conversion
    error: Fraction


def _concentrated(
    card: DataCard, demands: list[Demand], asked: PriceRequest, weights: Weights
) -> _Found:
    """Partition selection at its share of epsilon and half of delta, all else by rho."""
    assert asked.epsilon is not None
    split = shares(demands, weights, concentrated=True)
    keys = [i for i, demand in enumerate(demands) if demand.kind == "keys"]
    others = [i for i, demand in enumerate(demands) if demand.kind != "keys"]
    rest = sum((split[i] for i in others), Fraction(0))
    left = asked.delta / 2 if keys else asked.delta
    conversion = conversion_to(asked.epsilon * rest, left)
    rhos = [conversion.rho * split[i] / rest for i in others]
    wanted = [demands[i] for i in others]
    parts: list[Part] = list(
        basic_parts(
            card,
            [demands[i] for i in keys],
            [asked.epsilon * split[i] for i in keys],
            asked.delta - left,
        )
    )
    parts.extend(concentrated_parts(wanted, rhos))
    error = max(
        concentrated_error(demand) / root_below(rho)
        for demand, rho in zip(wanted, rhos, strict=True)
    )
    return _Found(parts=parts, conversion=conversion, error=error)


# ---------------------------------------------------------------- the promise


def guarantee_of(card: DataCard, cost: Cost) -> str:
    """The promise in one sentence.

    >>> from lastbit.tables.card.schema import Source
    >>> card = DataCard(name="t", source=Source(kind="csv"), unit=None, max_rows=1, columns={})
    >>> guarantee_of(card, Cost(epsilon=Fraction(1)))
    'epsilon = 1 differential privacy for one row more or less'
    """
    kind = "zero-concentrated differential privacy" if cost.rho else "differential privacy"
    return f"{str(cost).replace(chr(39), '')} {kind} for {_neighbours(card)}"


def unit_name(name: str) -> str:
    """A column's name in a sentence: one that is no plain word is quoted, odd letters escaped.

    >>> unit_name("patient_id"), unit_name("row, or none")
    ('patient_id', '"row, or none"')
    """
    if _WORD.fullmatch(name):
        return name
    letters = [c if c.isprintable() and c not in '"\\' else f"\\u{ord(c):04x}" for c in name]
    return '"' + "".join(letters) + '"'


def _neighbours(card: DataCard) -> str:
    """By the column that the card names, and by nothing else: the checker writes the same."""
    unit = "row" if card.unit is None else unit_name(card.unit)
    return str(card.neighbours.by(unit))


# ---------------------------------------------------------------- plain JSON


def _measure(measure: Measure) -> dict[str, Any]:
    return {
        "name": measure.name,
        "kind": measure.kind,
        "expression": None if measure.expression is None else to_json(measure.expression),
        "nullable": measure.nullable,
        "centre": str(measure.centre),
        "step": str(measure.step),
        "lowest": measure.lowest,
        "highest": measure.highest,
        "edges": _edges(measure.edges),
        "clamped": measure.clamped,
    }


def _edges(edges: tuple[Fraction, ...]) -> Any:
    """The edges; equal bins as first, last and number, since a thousand say no more."""
    if len(edges) > 64 and all(
        edge == edges[0] + (edges[-1] - edges[0]) * i / (len(edges) - 1)
        for i, edge in enumerate(edges)
    ):
        return {"first": str(edges[0]), "last": str(edges[-1]), "bins": len(edges) - 1}
    return [str(edge) for edge in edges]


def _recipe(recipe: Recipe) -> dict[str, Any]:
    return {
        "aggregate": recipe.aggregate.name,
        "function": recipe.aggregate.function,
        "measures": dict(recipe.measures),
    }
