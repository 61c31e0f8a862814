"""Genuine certificates of many kinds of questions, as a planner writes them before it asks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import pyarrow

import lastbit as lb
from lastbit.release.certifying import _claimed
from lastbit.tables import engine_record, planned
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard

ROWS = pyarrow.table(
    {
        "who": [1, 1, 2, 2, 2, 3, 4, 5],
        "g": ["a", "b", "a", "a", "c", "b", None, "a"],
        "h": [True, False, True, None, False, True, False, True],
        "x": [0, 3, 5, 2, 1, 4, 5, None],
        "y": [0.5, 2.5, -1.0, 7.25, 3.0, 9.5, 11.0, 4.0],
    },
    schema=pyarrow.schema(
        [
            ("who", pyarrow.int64()),
            ("g", pyarrow.string()),
            ("h", pyarrow.bool_()),
            ("x", pyarrow.int64()),
            ("y", pyarrow.float64()),
        ]
    ),
)
LABS = pyarrow.table(
    {"who": [1, 1, 2, 3, 3, 9], "code": ["p", "q", "p", "p", "q", "q"], "dose": [1, 2, 3, 4, 5, 6]}
)
PLACES = pyarrow.table({"g": ["a", "b", "c"], "zone": ["n", "n", "s"]})
DECLARED = {"g": ["a", "b", "c", None], "h": [True, False, None]}


@cache
def table_of(how: str) -> Any:
    """By how: people or rows; with declared keys or not; of which neighbours."""
    people = "people" in how
    relation: Any = "change-one" if "changed" in how else "add-remove"
    columns = {
        "x": Column(name="x", type="integer", bounds=(0, 5)),
        "y": Column(name="y", type="number", bounds=(-1, 9), step="1/4"),
    }
    given: dict[str, Any] = {
        "name": "t",
        "public": {"places": PLACES},
        "columns": columns,
        "neighbours": relation,
        **({"keys": DECLARED} if "declared" in how else {}),
    }
    if not people:
        return lb.table(ROWS, each_row=True, **given)
    labs = lb.table(
        LABS, unit="who", max_rows=2, name="labs", keys={"code": ["p", "q"]}, neighbours=relation
    )
    limits: dict[str, Any] = (
        {"max_rows": 1, "max_groups": 1} if "single" in how else {"max_rows": 3}
    )
    if "groups" in how:
        limits["max_groups"] = 2
    return lb.table(ROWS, unit="who", private={"labs": labs}, **limits, **given)


PER_UNIT = "(SELECT who, COUNT(*) AS n, SUM(x) AS s, MAX(y) AS top FROM t GROUP BY who) AS q"
BY_UNIT_AND_KEY = "(SELECT who, g, COUNT(*) AS n, AVG(x) AS m FROM t GROUP BY who, g) AS q"
MANY = ", ".join(f"SUM(clamp(x + {i}, 0, {i + 2})) AS s{i}" for i in range(14))
RANKS = ", ".join(f"MAX(clamp(x + {i}, 0, {i + 2})) AS q{i}" for i in range(20))
PURE = {"epsilon": "1"}
WITH_DELTA = {"epsilon": "1", "delta": "1/1000000"}
RHO = {"rho": "1/8"}
RHO_DELTA = {"rho": "1/8", "delta": "1/1000000"}
QUESTIONS: list[tuple[str, tuple[str, ...], tuple[dict[str, str], ...]]] = [
    ("SELECT COUNT(*) AS n FROM t", ("people", "rows", "people changed"), (PURE, WITH_DELTA, RHO)),
    (
        "SELECT SUM(x) AS s, AVG(y) AS m, COUNT(*) AS n FROM t WHERE x > 0",
        ("people", "rows changed"),
        (PURE, WITH_DELTA, RHO),
    ),
    ("SELECT variance(y) AS v, stddev(x) AS d FROM t", ("people changed",), (PURE, RHO)),
    ("SELECT median(x) AS q FROM t", ("people", "rows", "rows changed"), (PURE, RHO)),
    (
        "SELECT quantile_cont(x, 0.1) AS a, quantile_cont(x, 0.9) AS b, median(x) AS c FROM t",
        ("people", "rows"),
        (PURE, WITH_DELTA, RHO),
    ),
    ("SELECT MIN(y) AS a, MAX(x) AS b FROM t", ("people", "rows changed"), (PURE, RHO)),
    (
        "SELECT g, COUNT(*) AS n, COUNT(DISTINCT who) AS u FROM t GROUP BY g",
        ("people declared", "people declared groups changed", "people declared groups"),
        (PURE, WITH_DELTA, RHO),
    ),
    (
        "SELECT g, h, AVG(x) AS m FROM t GROUP BY g, h HAVING m > 1 ORDER BY m LIMIT 2",
        ("people declared", "rows declared"),
        (PURE, RHO),
    ),
    (
        "SELECT g, COUNT(DISTINCT x) AS d FROM t GROUP BY g",
        ("people declared", "people declared groups changed"),
        (PURE, RHO),
    ),
    (
        "SELECT g, COUNT(*) AS n FROM t GROUP BY g",
        ("people", "people groups", "rows", "people single", "people changed", "rows changed"),
        (WITH_DELTA, RHO_DELTA),
    ),
    (
        "SELECT g, COUNT(DISTINCT who) AS u, SUM(x) AS s FROM t GROUP BY g",
        ("people", "people groups changed"),
        (WITH_DELTA, RHO_DELTA),
    ),
    (
        "SELECT g, median(x) AS q FROM t GROUP BY g",
        ("people", "rows declared", "people declared changed"),
        (WITH_DELTA, RHO_DELTA),
    ),
    (
        "SELECT zone, COUNT(*) AS n FROM t JOIN places USING (g) GROUP BY zone",
        ("people", "rows"),
        (WITH_DELTA,),
    ),
    (
        "SELECT code, COUNT(*) AS n, SUM(x) AS s FROM t JOIN labs USING (who) GROUP BY code",
        ("people", "people changed"),
        (WITH_DELTA, RHO_DELTA),
    ),
    (
        f"SELECT AVG(n) AS a, SUM(s) AS b, MAX(top) AS c FROM {PER_UNIT}",
        ("people", "people changed"),
        (PURE, RHO),
    ),
    (f"SELECT {MANY} FROM t", ("people", "rows changed"), (PURE, WITH_DELTA)),
    (f"SELECT {MANY}, {RANKS} FROM t", ("people",), (WITH_DELTA,)),
    (f"SELECT g, {MANY} FROM t GROUP BY g", ("people", "rows", "people changed"), (WITH_DELTA,)),
    (f"SELECT g, SUM(n) AS a FROM {BY_UNIT_AND_KEY} GROUP BY g", ("people",), (WITH_DELTA,)),
]


@dataclass(frozen=True)
class Genuine:
    """A certificate that the kernel takes, and the steward's card."""

    name: str
    data: dict[str, Any]
    card: DataCard

    @property
    def text(self) -> str:
        return json.dumps(self.data)


def certificate(name: str, plan: Any, card: DataCard) -> Genuine:
    kind, claim, body = _claimed(plan, engine_record(card), columns=[], rows=[], head=None)
    data = json.loads(json.dumps({"kind": kind, "claim": claim, "body": body}))
    return Genuine(name=name, data=data, card=card)


@lru_cache(maxsize=1)
def certificates() -> tuple[Genuine, ...]:
    """One of each question, table and price."""
    found = []
    for sql, tables, prices in QUESTIONS:
        for how in tables:
            asked = table_of(how).sql(sql)
            for price in prices:
                used = price
                if "delta" in price and asked.query.groups is not None and "rho" in price:
                    used = {"rho": price["rho"]}
                plan = planned(asked.query, asked.card, **used)  # type: ignore[arg-type]
                found.append(certificate(f"{sql} | {how} | {used}", plan, asked.card))
    histogram = table_of("people declared").group_by("g").agg(h=lb.histogram("y", [0, 2, 5, 9]))
    share = table_of("people declared").agg(c=lb.cdf("y", [2, 5], -1, 9))
    for job in (histogram, share):
        for price in (PURE, WITH_DELTA, RHO):
            plan = planned(job.query, job.card, **price)  # type: ignore[arg-type]
            found.append(
                certificate(f"{job.query.aggregates[0].function} | {price}", plan, job.card)
            )
    for how in ("people declared", "rows declared", "people declared changed"):
        columns = {"g": "g", "h": "h", "band": "bin(x, 0, 2, 4, 6)"}
        for pairs in ({}, {"pairs": 1}, {"pairs": 2}):
            for price in (PURE, RHO):
                plan = table_of(how).marginals(columns, **pairs).plan(**price)
                found.append(certificate(f"marginals {pairs} | {how} | {price}", plan, plan.card))
    return tuple(found)
