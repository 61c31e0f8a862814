"""The checker derives again that rows reach their unit step by step, and in the last table."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from lastbit.checker.dispatch import problem_of
from lastbit.release.certifying import certificate_of
from lastbit.tables import Column, DataCard, PublicTable, Source
from lastbit.tables.card.schema import LinkedTable
from lastbit.tables.plan.marginals import marginals_query, planned_marginals
from lastbit.tables.plan.plan import planned
from lastbit.tables.query.query import Query
from lastbit.tables.sql.statement import parsed
from tests.verify.test_check_release import resealed

FILES = Source(kind="csv", paths=("x.csv",))
CARD = DataCard(
    name="items",
    source=FILES,
    unit="customer",
    max_rows=5,
    max_groups=3,
    columns={
        **{n: Column(name=n, type="integer") for n in ("order_id", "basket", "customer")},
        "kind": Column(name="kind", type="text", keys=("a", "b")),
        "region": Column(name="region", type="text", keys=("n", "s")),
    },
    public={"regions": PublicTable(name="regions", source=FILES, columns={"region": "text"})},
    through=(
        LinkedTable(
            name="orders", source=FILES, on=(("order_id", "id"),), columns={"basket": "basket"}
        ),
        LinkedTable(
            name="baskets",
            source=FILES,
            on=(("basket", "id"),),
            columns={"customer": "who", "region": "region"},
            max_rows=2,
        ),
    ),
)
QUESTIONS = (
    "SELECT region, kind, COUNT(*) AS n FROM items GROUP BY region, kind",
    "SELECT COUNT(*) AS n FROM items JOIN regions USING (region)",
    "SELECT AVG(n) AS m FROM (SELECT customer, COUNT(*) AS n FROM items GROUP BY customer)",
)


def produced(text: str) -> Any:
    plan = planned(parsed(text, CARD), CARD, epsilon=1)
    return copy.deepcopy(certificate_of(plan, columns=[], rows=[]))


@pytest.mark.parametrize("text", QUESTIONS)
def test_accepts(text: str) -> None:
    assert problem_of(produced(text)) is None
    assert problem_of(resealed(produced(text))) is None


@pytest.mark.parametrize("text", QUESTIONS)
def test_what_is_believed_of_the_way_is_said(text: str) -> None:
    certificate = produced(text)
    said = [one for one in certificate["assumptions"] if "reaches" not in one]
    assert len(said) == len(certificate["assumptions"]) - 1
    problem = problem_of(resealed({**certificate, "assumptions": said}))
    assert problem == "its assumptions leave out what the proof rests on"


FORGED: dict[str, tuple[Any, str]] = {
    "no steps": (lambda way: way.clear(), "no steps"),
    "the last step is left out": (lambda way: way.pop(), "not in the last table"),
    "steps in another order": (lambda way: way.reverse(), "another table"),
    "the unit of another table": (
        lambda way: way[0]["columns"].update(customer="who"),
        "another table",
    ),
    "the unit nowhere": (lambda way: way[1]["columns"].clear(), "leads nowhere"),
    "another unit": (lambda way: way[1].update(columns={"region": "region"}), "last table"),
    "more than the unit": (lambda way: way[1]["columns"].update(region="region"), "last table"),
    "by another column": (lambda way: way[1].update(on=[["order_id", "id"]]), "another table"),
    "by a column of a later table": (lambda way: way[0].update(on=[["basket", "id"]]), "another"),
    "by no column": (lambda way: way[0].update(on=[]), "no condition|another"),
    "by half a pair": (lambda way: way[0].update(on=[["order_id"]]), "condition|malformed"),
    "by a number": (lambda way: way[0].update(on=[["order_id", 3]]), "malformed"),
    "a table twice": (lambda way: way[1].update(table="ORDERS"), "twice"),
    "the table itself": (lambda way: way[1].update(table="items"), "twice"),
    "no rows": (lambda way: way[0].update(max_rows=0), "out of range"),
    "true rows": (lambda way: way[0].update(max_rows=True), "out of range"),
    "many rows": (lambda way: [one.update(max_rows=40) for one in way], "too many rows"),
    "more said": (lambda way: way[0].update(where=True), "malformed"),
    "less said": (lambda way: way[0].pop("max_rows"), "malformed"),
}


@pytest.mark.parametrize("name", FORGED)
def test_rejects_a_forged_way(name: str) -> None:
    change, words = FORGED[name]
    certificate = produced(QUESTIONS[0])
    for said in (certificate["claim"], certificate["body"]["plan"]):
        change(said["through"])
    problem = problem_of(resealed(certificate))
    assert problem is not None
    assert re.search(words, problem), problem


@pytest.mark.parametrize("place", ["claim", "plan"])
def test_rejects_a_way_that_is_said_in_one_place_alone(place: str) -> None:
    certificate = produced(QUESTIONS[0])
    said = certificate["claim"] if place == "claim" else certificate["body"]["plan"]
    said["through"][1]["max_rows"] = 1
    assert "differ in the way" in (problem_of(resealed(certificate)) or "")
    del said["through"]
    assert problem_of(resealed(certificate)) is not None


def test_rejects_a_join_with_a_table_on_the_way() -> None:
    certificate = produced(QUESTIONS[1])
    for said in (certificate["claim"], certificate["body"]["plan"]):
        said["through"][0]["table"] = "Regions"
    assert "twice" in (problem_of(resealed(certificate)) or "")


def test_rejects_a_way_where_each_row_is_a_unit() -> None:
    certificate = produced(QUESTIONS[1])
    for said in (certificate["claim"], certificate["body"]["plan"]):
        said["unit"] = None
    certificate["body"]["plan"].update(max_rows=1, max_groups=1)
    assert "each row is one" in (problem_of(resealed(certificate)) or "")


def test_contingency_tables_say_the_way_too() -> None:
    query = parsed(QUESTIONS[0], CARD)
    assert isinstance(query, Query)
    plan = planned_marginals(marginals_query(CARD, query.keys), CARD, epsilon=1)
    certificate = copy.deepcopy(certificate_of(plan, columns=[], rows=[]))
    assert problem_of(certificate) is None
    certificate["body"]["plan"]["through"].pop()
    certificate["claim"]["through"].pop()
    assert "last table" in (problem_of(resealed(certificate)) or "")
