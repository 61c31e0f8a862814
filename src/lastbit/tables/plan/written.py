"""A plan as it is written down: all that a certificate, a record and a report know of it.

Theorem  `WrittenPlan.from_json(plan.to_json()).to_json() == plan.to_json()` for every plan, and for
         every plan in a certificate that the checker accepts
Checked  tests/tables/test_written.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from lastbit.tables.measures import Kind, Measure, equal_edges
from lastbit.tables.plan.conversion import AnyConversion, conversion_from_json
from lastbit.tables.plan.cost import Cost
from lastbit.tables.plan.parts import AnyPart, part_from_json
from lastbit.tables.plan.price import PriceRequest
from lastbit.tables.query.writing import to_json

_FEW_EDGES = 63
Composition: TypeAlias = Literal["basic", "concentrated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRecipe:
    """How an aggregate, by its name, is made of measures, by theirs."""

    aggregate: str
    function: str
    measures: Mapping[Kind, str]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        names = {"aggregate": self.aggregate, "function": self.function}
        return {**names, "measures": dict(self.measures)}


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedUnits:
    """A private table that is joined: its column that says whose row it is, and its limit."""

    unit: str
    max_rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenPlan:
    """What a plan says of the card, of what is measured, of the noise and of the price."""

    query: str
    """The digest of the question."""
    table: str
    unit: str | None
    max_rows: int
    max_groups: int | None
    neighbours: str
    weight_one: int
    groups: int | None
    asked: PriceRequest
    composition: Composition
    conversion: AnyConversion | None
    cost: Cost
    measures: tuple[Measure, ...]
    recipes: tuple[WrittenRecipe, ...]
    parts: tuple[AnyPart, ...]
    private: Mapping[str, JoinedUnits]
    through: tuple[Mapping[str, Any], ...] = ()
    """How rows reach their unit through other tables, step by step, as the card says."""
    marginals: tuple[tuple[str, ...], ...] | None = None
    """The columns of each table of counts; None of an ordinary question."""

    def to_json(self) -> dict[str, Any]:
        """All of it as plain JSON: what a second program needs to check the price."""
        private = {
            name: {"unit": one.unit, "max_rows": one.max_rows} for name, one in self.private.items()
        }
        tables = None if self.marginals is None else [list(names) for names in self.marginals]
        return {
            "query": self.query,
            "table": self.table,
            "unit": self.unit,
            "max_rows": self.max_rows,
            "max_groups": self.max_groups,
            "neighbours": self.neighbours,
            "weight_one": self.weight_one,
            "groups": self.groups,
            "asked": self.asked.to_json(),
            "composition": self.composition,
            "conversion": None if self.conversion is None else self.conversion.to_json(),
            "cost": self.cost.to_json(),
            "measures": list(map(_measure_json, self.measures)),
            "recipes": [recipe.to_json() for recipe in self.recipes],
            "parts": [part.to_json() for part in self.parts],
            **({"private": private} if private else {}),
            **({"through": list(self.through)} if self.through else {}),
            **({} if tables is None else {"marginals": tables}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> WrittenPlan:
        """The plan that `to_json` wrote."""
        tables, conversion = data.get("marginals"), data["conversion"]
        measures = tuple(map(Measure.from_json, data["measures"]))
        keys = [names[0] for names in tables or () if len(names) == 1]
        bins = {measure.name: len(measure.edges) - 1 for measure in measures}
        return cls(
            **{name: data[name] for name in ("query", "table", "unit", "max_rows", "max_groups")},
            **{name: data[name] for name in ("neighbours", "weight_one", "groups", "composition")},
            asked=PriceRequest.from_json(data["asked"]),
            conversion=None if conversion is None else conversion_from_json(conversion),
            cost=Cost.from_json(data["cost"]),
            measures=measures,
            recipes=tuple(WrittenRecipe(**recipe) for recipe in data["recipes"]),
            parts=tuple(part_from_json(part, bins, keys) for part in data["parts"]),
            private={name: JoinedUnits(**one) for name, one in data.get("private", {}).items()},
            through=tuple(data.get("through", ())),
            marginals=None if tables is None else tuple(map(tuple, tables)),
        )


def _measure_json(measure: Measure) -> dict[str, Any]:
    """Equal bins are written as first, last and number, since a thousand edges say no more."""
    edges, bins = measure.edges, len(measure.edges) - 1
    written: Any = [str(edge) for edge in edges]
    if bins > _FEW_EDGES and edges == equal_edges(edges[0], edges[-1], bins):
        written = {"first": written[0], "last": written[-1], "bins": bins}
    expression = measure.expression
    return {
        "name": measure.name,
        "kind": measure.kind,
        "expression": None if expression is None else to_json(expression),
        "nullable": measure.nullable,
        "centre": str(measure.centre),
        "step": str(measure.step),
        "lowest": measure.lowest,
        "highest": measure.highest,
        "edges": written,
        "clamped": measure.clamped,
    }
