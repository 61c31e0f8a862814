"""The Python front end: the same questions as in SQL, and the five lines of the design."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import date
from fractions import Fraction
from typing import Any

import duckdb
import polars as pl
import pytest

from lastbit.errors import CardRefused, InvalidParameter, LastbitError, QueryRefused, WrongType
from lastbit.privacy.neighbours import CHANGE_ONE
from lastbit.release.private_table import Table
from lastbit.release.steps_as_sql import statement_of
from lastbit.release.table import table
from lastbit.tables.card.budget import Budget
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.query import aggregates as lb
from lastbit.tables.sql.rows import rows_of
from lastbit.tables.sql.statement import parsed
from tests.tables.asked import CARD

VISITS = Table(rows=rows_of(CARD))
CANARY = "canary-73211"


# ---------------------------------------------------------------- both languages, one question

PAIRS = [
    (VISITS.agg(n=lb.count()), "SELECT COUNT(*) AS n FROM visits"),
    (
        VISITS.group_by("region").agg(n=lb.count(), cost=lb.mean("cost", 0, 100)),
        "SELECT region, COUNT(*) AS n, AVG(clamp(cost, 0, 100)) AS cost FROM visits "
        "GROUP BY region",
    ),
    (
        VISITS.where("age > 3").where("ok").agg(u=lb.count_units(), s=lb.sum("age")),
        "SELECT COUNT(DISTINCT pid) AS u, SUM(age) AS s FROM visits WHERE age > 3 AND ok",
    ),
    (
        VISITS.where("age > 3 AND ok").agg(c=lb.count("free"), v=lb.variance("cost")),
        "SELECT COUNT(free) AS c, VARIANCE(cost) AS v FROM visits WHERE age > 3 AND ok",
    ),
    (
        VISITS.with_columns(half="cost / 2", more="half + 1").agg(x=lb.std("more", 0, 9)),
        "SELECT STDDEV(clamp(more, 0, 9)) AS x FROM (SELECT *, half + 1 AS more FROM "
        "(SELECT *, cost / 2 AS half FROM visits))",
    ),
    (
        VISITS.group_by("ward", adult="age >= 18").agg(
            m=lb.median("cost"), q=lb.quantile("age", "0.9")
        ),
        "SELECT ward, age >= 18 AS adult, MEDIAN(cost) AS m, QUANTILE_CONT(age, 0.9) AS q "
        "FROM visits GROUP BY ALL",
    ),
    (
        VISITS.join("regions", on="region").group_by("zone").agg(n=lb.count()),
        "SELECT zone, COUNT(*) AS n FROM visits JOIN regions USING (region) GROUP BY zone",
    ),
    (
        VISITS.join("wards", on={"Ward": "ward", "region": "zone"}).agg(n=lb.count()),
        "SELECT COUNT(*) AS n FROM visits JOIN wards ON visits.ward = wards.ward "
        "AND region = wards.zone",
    ),
    (
        VISITS.group_by("region")
        .agg(n=lb.count(), lo=lb.min("age"), hi=lb.max("age"))
        .having("n > 5")
        .having("hi > lo")
        .order_by("N", descending=True)
        .order_by("region")
        .limit(3),
        "SELECT region, COUNT(*) AS n, MIN(age) AS lo, MAX(age) AS hi FROM visits GROUP BY region "
        "HAVING n > 5 AND hi > lo ORDER BY n DESC, region LIMIT 3",
    ),
    (
        VISITS.agg(n=lb.count(), q=lb.quantiles("age", ["0.25", "0.5", "0.975"])),
        "SELECT COUNT(*) AS n, QUANTILE_CONT(age, [0.25, 0.5, 0.975]) AS q FROM visits",
    ),
    (
        VISITS.agg(h=lb.histogram("age", [0, 18, 65])),
        "SELECT HISTOGRAM(age, 0, 18, 65) AS h FROM visits",
    ),
    (
        VISITS.where("day >= '2020-01-01'").group_by(m="month(day)").agg(n=lb.count()),
        "SELECT month(day) AS m, COUNT(*) AS n FROM visits WHERE day >= DATE '2020-01-01' "
        "GROUP BY m",
    ),
    (
        VISITS.agg(s=lb.mean("CASE WHEN ok THEN 1 ELSE 0 END")),
        "SELECT AVG(CASE WHEN ok THEN 1 ELSE 0 END) AS s FROM visits",
    ),
    (
        VISITS.agg(s=lb.mean("LEAST(GREATEST(free, 0), 10)")),
        "SELECT AVG(LEAST(GREATEST(free, 0), 10)) AS s FROM visits",
    ),
]


@pytest.mark.parametrize(("steps", "text"), PAIRS, ids=[text for _, text in PAIRS])
def test_both_front_ends_ask_the_same(steps, text):
    assert steps.query == parsed(text, CARD) == VISITS.sql(text).query
    assert steps.query.digest == VISITS.sql(text).query.digest


def test_steps_written_as_sql_mean_the_same():
    """Or are refused, as a name in other letters is."""
    refused = 0
    for steps, _ in PAIRS:
        try:
            assert parsed(statement_of(steps), CARD) == steps.query
        except QueryRefused:
            refused += 1
    assert refused == 2


def test_a_plan_is_made_without_a_look_at_the_rows():
    asked = VISITS.agg(n=lb.count())
    assert asked.plan(epsilon=1).cost.epsilon == 1
    assert asked.plan(within=1).cost.epsilon > 1


def test_several_quantiles_are_a_column_each():
    asked = VISITS.agg(q=lb.quantiles("age", ["0.25", "0.5", "0.975"], 0, 100, intervals=False))
    parts = asked.query.aggregates
    assert [part.name for part in parts] == ["q_25", "q_50", "q_97_5"]
    assert [part.level for part in parts] == [Fraction(1, 4), Fraction(1, 2), Fraction(39, 40)]
    assert not any(part.intervals for part in parts)
    wrong: tuple[Any, ...] = ("0.5", [], ["1/2", "0.5"], [0], 5)
    for levels in wrong:
        with pytest.raises(InvalidParameter):
            lb.quantiles("age", levels)
    with pytest.raises(InvalidParameter):
        lb.median("age", intervals=1)  # type: ignore[arg-type]


def test_a_list_of_levels_in_sql():
    some = VISITS.sql("SELECT QUANTILE_CONT(age, [0.25, 0.5]) FILTER (WHERE ok) AS q FROM visits")
    parts = some.query.aggregates
    assert [part.name for part in parts] == ["q_25", "q_50"]
    assert parts[0].expression == parts[1].expression
    for levels in ("[]", "[0.5, 0.5]", "['a']", "[0.5, 1]", "[0.5, age]"):
        with pytest.raises(QueryRefused):
            VISITS.sql(f"SELECT QUANTILE_CONT(age, {levels}) AS q FROM visits")


def test_shares_up_to_points_are_a_column_each():
    parts = VISITS.agg(s=lb.cdf("age", [18, "65.5"], 0, 100)).query.aggregates
    assert [(part.name, part.function) for part in parts] == [("s_18", "cdf"), ("s_65_5", "cdf")]
    assert [part.edges for part in parts] == [(Fraction(18),), (Fraction(131, 2),)]
    wrong: tuple[Any, ...] = ("18", [], [18, 18], 5)
    for points in wrong:
        with pytest.raises(InvalidParameter):
            lb.cdf("age", points)
    with pytest.raises(InvalidParameter, match="outside of the bounds"):
        VISITS.agg(s=lb.cdf("age", [101], 0, 100))


# ---------------------------------------------------------------- steps


@pytest.mark.parametrize(
    ("key", "tests", "values"),
    [
        ("region", ["region = 'south'"], ("south",)),
        ("ward", ["ward IN ('a', 'b')", "ok"], ("a", "b")),
        ("age", ["age >= 18 AND age < 21"], (18, 19, 20)),
        ("age", ["age > 17", "age <= 20"], (18, 19, 20)),
        ("year(day)", ["day >= '2024-02-01' AND day < '2026-01-01'", "ok"], (2024, 2025)),
    ],
)
def test_conditions_choose_keys_before_and_after_group_by(key, tests, values):
    text = f"SELECT {key} AS k, COUNT(*) AS n FROM visits WHERE {' AND '.join(tests)} GROUP BY 1"
    asked = parsed(text, CARD)
    assert asked.keys[0].values == values
    for place in range(len(tests) + 1):
        table = VISITS
        for test in tests[:place]:
            table = table.where(test)
        table = table.group_by(k=key)
        for test in tests[place:]:
            table = table.where(test)
        assert table.agg(n=lb.count()).query == asked
        assert parsed(statement_of(table.agg(n=lb.count())), CARD) == asked


def test_no_condition_lets_a_key_through_that_another_excludes():
    with pytest.raises(QueryRefused, match="no key that WHERE lets through"):
        VISITS.group_by("region").where("region = 'east'")
    with pytest.raises(QueryRefused, match="no key that WHERE lets through"):
        VISITS.where("region = 'north'").group_by("region").where("region = 'south'")


def test_steps_leave_the_table_as_it_was():
    asked = VISITS.where("ok").group_by("region").agg(n=lb.count()).limit(3)
    assert Table(rows=rows_of(CARD)) == VISITS
    assert asked.limit(4).query.limit == 4
    assert asked.query.limit == 3
    with pytest.raises(FrozenInstanceError):
        asked.most = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda t: t.query, "asks for nothing"),
        (lambda t: t.agg(n=lb.count()).where("ok"), "comes after"),
        (lambda t: t.group_by("region").with_columns(a="age"), "comes after"),
        (lambda t: t.group_by("region").agg(n=lb.count()).where("ok"), "comes after"),
        (lambda t: t.agg(n=lb.count()).join("regions", on="region"), "comes after"),
        (lambda t: t.where("age"), "true nor false"),
        (lambda t: t.where("ok; DROP TABLE visits"), "no SQL|not one"),
        (lambda t: t.where(True), "not text"),
        (lambda t: t.group_by("region", "REGION"), "one name"),
        (lambda t: t.group_by("region", r="region"), "twice"),
        (lambda t: t.group_by("pid"), "one by one"),
        (lambda t: t.group_by(3), "no names"),
        (lambda t: t.group_by("region").agg(region=lb.count()), "one name"),
        (lambda t: t.agg(n=lb.count()).agg(N=lb.count()), "one name"),
        (lambda t: t.agg(n=5), "is not an aggregate"),
        (lambda t: t.agg(n=lb.cdf("free", [30])), "no bounds"),
        (lambda t: t.agg(n=lb.count()).having("age > 3"), "not released"),
        (lambda t: t.agg(n=lb.count()).having("n"), "true nor false"),
        (lambda t: t.agg(n=lb.count()).order_by("age"), "not released"),
        (lambda t: t.agg(h=lb.histogram("age", [0, 1])).order_by("h"), "many columns"),
        (lambda t: t.agg(n=lb.count()).order_by(1), "no names"),
        (lambda t: t.limit(-1), "below 0"),
        (lambda t: t.limit(True), "whole number"),
        (lambda t: t.join("nowhere", on="region"), "not a public table"),
        (lambda t: t.join("regions", on="age"), "not a column of regions"),
        (lambda t: t.join("regions", on=[]), "no equal columns"),
        (lambda t: t.join("regions", on=[3]), "no names"),
        (lambda t: t.join("regions", on={"age": "zone"}), "mixes"),
        (lambda t: t.where("ok").sql("SELECT COUNT(*) FROM visits"), "other steps"),
        (lambda t: t.limit(3).sql("SELECT COUNT(*) FROM visits"), "other steps"),
        (lambda t: t.sql("SELECT COUNT(*) FROM visits").limit(3), "after sql"),
        (lambda t: t.sql("SELECT COUNT(*) AS n FROM visits").having("n > 3"), "after sql"),
        (lambda t: t.sql("SELECT COUNT(*) AS n FROM visits").order_by("n"), "after sql"),
        (lambda t: t.sql("SELECT * FROM visits"), "cannot be shown"),
    ],
)
def test_steps_that_are_refused(step, message):
    with pytest.raises(InvalidParameter, match=message):
        step(VISITS)


def test_columns_with_columns_takes_the_place_of_old_ones_but_never_of_the_unit():
    asked = VISITS.with_columns(pid="age", Age="age + 1").group_by("pid", "age").agg(n=lb.count())
    assert [key.expression for key in asked.query.keys] == [
        VISITS.group_by("age").keys[0].expression,
        VISITS.group_by(k="age + 1").keys[0].expression,
    ]
    assert asked.card.unit == "pid"


def test_columns_that_double_are_refused():
    rows = VISITS
    with pytest.raises(QueryRefused, match=r"too long|too deeply"):
        for _ in range(40):
            rows = rows.with_columns(age="age + abs(age)")


# ---------------------------------------------------------------- declaring a table


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    duckdb.sql(
        f"""COPY (SELECT range // 4 AS patient_id,
        ['north', 'south', 'west'][1 + range % 3] AS region,
        (range * 7 % 500)::DOUBLE AS cost, range * 13 % 240 AS wait, '{CANARY}' AS note,
        DATE '2020-01-01' AS day, range % 2 = 0 AS ok
        FROM range(4000)) TO 'visits.parquet'"""
    )
    duckdb.sql("COPY (SELECT 'north' AS region, 'cold' AS climate) TO 'regions.csv'")
    return tmp_path


def test_the_five_lines_of_the_design(files):
    answer = (
        table("visits.parquet", unit="patient_id", max_rows=20)
        .group_by("region")
        .agg(n=lb.count(), cost=lb.mean("cost", 0, 500), wait=lb.median("wait", 0, 240))
        .release(epsilon=1, delta="1e-9", ledger="hospital.ledger")
    )
    again = (
        table("visits.parquet", unit="patient_id", max_rows=20)
        .sql(
            "SELECT region, COUNT(*) AS n, AVG(clamp(cost, 0, 500)) AS cost, "
            "MEDIAN(clamp(wait, 0, 240)) AS wait FROM visits GROUP BY region"
        )
        .release(epsilon=1, delta="1e-9", ledger="hospital.ledger")
    )
    assert again.record["rows"] == answer.record["rows"]  # the same question: recorded, not paid
    assert again.record["entry"] == answer.record["entry"]


def test_what_is_not_declared_comes_from_the_source(files):
    card = table("visits.parquet", unit="patient_id", max_rows=20).card
    assert card.name == "visits"
    assert card.max_groups == 20
    assert {name: column.type for name, column in card.columns.items()} == {
        "patient_id": "integer", "region": "text", "cost": "number", "wait": "integer",
        "note": "text", "day": "date", "ok": "boolean",
    }  # fmt: skip
    assert card.columns["wait"].step == 1
    assert all(column.bounds is None and column.keys is None for column in card.columns.values())


def test_what_is_declared_holds(files):
    asked = table(
        "visits.parquet",
        unit="patient_id",
        max_rows=20,
        max_groups=2,
        columns=[Column(name="cost", type="number", bounds=(Fraction(0), Fraction(9)))],
        keys={"Region": ["north", None], "day": [date(2020, 1, 1)]},
        public={"regions": "regions.csv"},
        neighbours="change-one",
        budget=Budget(kind="pure", epsilon=Fraction(1)),
        name="v",
    )
    card = asked.card
    assert (card.name, card.max_groups, card.neighbours) == ("v", 2, CHANGE_ONE)
    assert card.columns["region"].keys == ("north", None)
    assert card.public["regions"].columns == {"region": "text", "climate": "text"}
    query = asked.join("regions", on="region").group_by("climate").agg(c=lb.sum("cost")).query
    assert query.aggregates[0].bounds == (Fraction(0), Fraction(9))


def frames() -> list[Any]:
    relation: Any = duckdb.sql("SELECT range // 2 AS who, 'a' AS region FROM range(6)")
    return [relation.to_arrow_table(), relation.pl(), relation.df()]


@pytest.mark.parametrize("frame", frames(), ids=["arrow", "polars", "pandas"])
def test_frames(frame):
    asked = table(frame, unit="who", max_rows=2, name="people").group_by("region")
    assert asked.card.name == "people"
    assert table(frame, each_row=True).card.max_rows == 1
    assert asked.agg(n=lb.count()).query.table == "people"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "unit is missing; name the column"),
        ({"unit": "patient_id", "each_row": True, "max_rows": 1}, "beside each_row"),
        ({"unit": "nobody", "max_rows": 1}, "not on the card"),
        ({"unit": "cost", "max_rows": 1}, "of type number"),
        ({"unit": "patient_id", "max_rows": 0}, "below 1"),
        ({"unit": "patient_id", "max_rows": 2.5}, "whole number"),
        ({"unit": "patient_id", "max_rows": 1, "max_groups": 0}, "below 1"),
        ({"each_row": True, "max_rows": 2}, "each row is a unit"),
        ({"each_row": True, "neighbours": "swap"}, "add-remove"),
        ({"each_row": True, "budget": 1}, "Budget"),
        ({"each_row": True, "name": ""}, "not a name"),
        ({"each_row": True, "columns": {"cost": (0, 1)}}, "Column"),
        ({"each_row": True, "columns": [Column(name="x", type="text")]}, "not in the source"),
        ({"each_row": True, "keys": {"x": ["a"]}}, "not in the source"),
        ({"each_row": True, "keys": {"region": "north"}}, "not a list"),
        ({"each_row": True, "keys": {"region": ["north", 3]}}, "type text"),
        ({"each_row": True, "keys": {"wait": [True]}}, "type integer"),
        ({"each_row": True, "keys": {"wait": [1.0]}}, "type integer"),
        ({"each_row": True, "keys": {"cost": [1]}}, "type number"),
        ({"each_row": True, "keys": {"region": []}}, "list each key once"),
    ],
)
def test_declarations_that_are_refused(files, values, message):
    with pytest.raises(InvalidParameter, match=message) as caught:
        table("visits.parquet", **values)
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize("source", [5, None, [], ["a.parquet", 3], "visits.xlsx", object()])
def test_sources_that_are_refused(source):
    with pytest.raises(InvalidParameter):
        table(source, each_row=True)


def test_a_card_is_passed_alone(tmp_path):
    with pytest.raises(InvalidParameter, match="card alone"):
        table("visits.toml", unit="pid")
    with pytest.raises(CardRefused):
        table(tmp_path / "nowhere.toml")


def test_a_frame_is_never_shown(files):
    relation: Any = duckdb.sql("SELECT * FROM 'visits.parquet'")
    frame = relation.to_arrow_table()
    asked = table(frame, unit="patient_id", max_rows=2).group_by("note").agg(n=lb.count("note"))
    for shown in (repr(asked), str(asked), repr(asked.card), repr(asked.query), repr(asked.rows)):
        assert CANARY not in shown
    assert repr(asked) == "<Table rows: by note; n = count(note)>"
    with pytest.raises(WrongType) as caught:
        asked.agg(m=lb.mean(frame))
    assert CANARY not in str(caught.value)


def test_an_explanation_reads_nothing(files):
    asked = table("visits.parquet", unit="patient_id", max_rows=20).agg(n=lb.count())
    (files / "visits.parquet").unlink()
    assert "epsilon" in asked.explain(epsilon=1)


def test_bounds_and_budgets_are_exact_however_they_are_written():
    """Whole numbers would make floats of centres, half a step later."""
    column = Column(name="cost", type="number", bounds=(0, "0.1"), step="0.001")
    assert column.bounds == (Fraction(0), Fraction(1, 10))
    assert all(type(bound) is Fraction for bound in column.bounds)
    assert column.step == Fraction(1, 1000)
    assert Budget(kind="pure", epsilon="0.1").epsilon == Fraction(1, 10)


@pytest.mark.parametrize("neighbours", [["add-remove"], {}, 1, "remove", None])
def test_odd_neighbours_are_refused(neighbours):
    rows = pl.DataFrame({"x": [1]})
    with pytest.raises(LastbitError, match="neighbours"):
        table(rows, each_row=True, neighbours=neighbours)


@pytest.mark.parametrize("weights", [["n"], 5, {1, 2}])
def test_weights_that_are_not_a_mapping_are_refused(weights):
    rows = table(pl.DataFrame({"x": [1]}), each_row=True)
    with pytest.raises(WrongType, match="weights"):
        rows.agg(n=lb.count()).explain(epsilon=1, weights=weights)


@pytest.mark.parametrize("most", [None, True, 1.0, "3", 0, 1 << 21])
def test_odd_bounds_on_rows_are_refused(most):
    columns = {"id": Column(name="id", type="integer")}
    source = Source(kind="csv", paths=("a.csv",))
    with pytest.raises(LastbitError, match="max_rows"):
        DataCard(name="a", source=source, unit="id", max_rows=most, columns=columns)
