"""Records of answers, made by hand: real plans, invented rows."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.plan.plan import planned
from lastbit.tables.query.expression import ColumnName, Constant
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.query.rules import call
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.writing import to_json

REGIONS = ("North", "East", "South")
HOSTILE = '<script>alert("x")</script>'
STEERING = "a\x1b[31m\u202eb\x00"


def card(**values: Any) -> DataCard:
    columns = {
        "patient": Column(name="patient", type="integer"),
        "region": Column(name="region", type="text"),
        "cost": Column(name="cost", type="number"),
    }
    given: dict[str, Any] = {"unit": "patient", "max_rows": 20, "max_groups": 5} | values
    source = Source(kind="csv", paths=("visits.csv",))
    return DataCard(name="visits", source=source, columns=columns, **given)


def count(name: str = "n") -> Aggregate:
    return Aggregate(name=name, function="count", nullable=False)


def mean(name: str = "cost", function: Any = "mean", **values: Any) -> Aggregate:
    return Aggregate(
        name=name,
        function=function,
        expression=ColumnName("cost"),
        bounds=(Fraction(0), Fraction(500)),
        nullable=False,
        **values,
    )


def histogram(name: str = "ages") -> Aggregate:
    edges = tuple(map(Fraction, (0, 18, 65, 110)))
    return Aggregate(name=name, function="histogram", expression=ColumnName("cost"), edges=edges)


def by_region(*keys: Any) -> GroupKey:
    return GroupKey(name="region", expression=ColumnName("region"), values=keys or None)


def adults() -> Any:
    return call(">=", ColumnName("cost"), Constant(18))


def cell(value: Any, half: Any = 1, **values: Any) -> dict[str, Any]:
    ends = {"low": None if value is None else value - half}
    ends["high"] = None if value is None else value + half
    return {"value": value, "standard_error": None, **ends, **values}


def record(
    query: Query, rows: list[tuple[tuple[Any, ...], list[dict[str, Any]]]], **price: Any
) -> dict[str, Any]:
    """The record of an answer to the query with these keys and cells; sql= for its text."""
    sql = price.pop("sql", None)
    about = price.pop("card", card())
    plan = planned(query, about, **(price or {"epsilon": 1}))
    columns: list[dict[str, Any]] = [
        {"name": key.name, "role": "key", "function": None} for key in query.keys
    ]
    for part in query.aggregates:
        if part.edges is None:
            columns.append({"name": part.name, "role": "value", "function": part.function})
            continue
        for low, high in zip(part.edges, part.edges[1:], strict=False):
            named = {"name": f"{part.name} [{low}, {high})", "role": "value"}
            binned = {"aggregate": part.name, "bin": [str(low), str(high)]}
            columns.append({**named, "function": "histogram", **binned})
    return {
        "lastbit": "0.1.0",
        "table": about.name,
        "question": "ab" * 32,
        "asked": {"sql": sql, "query": query.to_json(), **plan.asked.to_json()},
        "columns": columns,
        "rows": [
            {"keys": [to_json(Constant(key)) for key in keys], "cells": cells}
            for keys, cells in rows
        ],
        "cost": plan.cost.to_json(),
        "guarantee": plan.guarantee,
        "plan": plan.to_json(),
        "notes": ["A note."],
        "certificate": {"digest": "cd" * 32, "assumptions": ["The card is true."]},
        "entry": {"hash": "ef" * 32, "sequence": 3},
    }


def simple() -> dict[str, Any]:
    """Counts and means of three regions."""
    query = Query(table="visits", aggregates=(count(), mean()), keys=(by_region(*REGIONS),))
    rows = [
        ((region,), [cell(1000 * (i + 1), 30), cell(200.25 + i, 2.5)])
        for i, region in enumerate(REGIONS)
    ]
    return record(query, rows, sql="SELECT region, COUNT(*) AS n\nFROM visits GROUP BY region")


def whole_column(*about: str, share: float | None = 0.9631, **values: Any) -> dict[str, Any]:
    """What a record says of a column that limits may have bitten."""
    known = None if share is None else {"value": share, "low": share - 0.015, "high": share + 0.015}
    beyond = {"beyond": 1024} if "nobody_beyond" in about else {}
    column = {"limits": ["max_rows"], "share": known, "about": list(about), "of": None}
    return {**column, **beyond, **values}


def with_whole(
    found: dict[str, Any],
    columns: dict[str, dict[str, Any]],
    *,
    profile: bool = True,
    wider: float = 1.1,
) -> dict[str, Any]:
    """The record with whole intervals, whose upper ends are `wider` times those of the noise."""
    rows = []
    for row in found["rows"]:
        cells = [
            {**one, "whole_low": one["low"], "whole_high": one["high"] * wider if profile else None}
            for one in row["cells"]
        ]
        rows.append({**row, "cells": cells})
    bought = {
        "question": "ab" * 32,
        "entry": 2,
        "counts": [5, 3],
        "edges": "geometric",
        "noise": {},
    }
    whole = {"profile": bought if profile else None, "columns": columns}
    return {**found, "rows": rows, "whole": whole}


def limited(*, profile: bool = True) -> dict[str, Any]:
    """Counts and means of three regions, of which limits left something out."""
    if not profile:
        mean_of = whole_column("within_bounds", share=None, of="limited_rows")
        none = {"n": whole_column(share=None), "cost": mean_of}
        return with_whole(simple(), none, profile=False)
    columns = {
        "n": whole_column("nobody_beyond", "group_like_table"),
        "cost": whole_column("nobody_beyond", "group_like_table", share=None, of="limited_rows"),
    }
    return with_whole(simple(), columns)


def account(spent: str = "3/2", budget: str | None = "3") -> dict[str, Any]:
    nothing = {"delta": "0", "rho": "0"}
    left = None if budget is None else str(Fraction(budget) - Fraction(spent))
    return {
        "account": "visits",
        "kind": None if budget is None else "pure",
        "budget": None if budget is None else {"epsilon": budget, **nothing},
        "spent": {"epsilon": spent, **nothing},
        "left": None if left is None else {"epsilon": left, **nothing},
    }
