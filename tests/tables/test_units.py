"""Joins on the privacy unit and sub-queries grouped by it: what they mean, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import pytest
import sqlglot
from sqlglot import exp

import lastbit as lb
from lastbit.errors import CardRefused, InvalidParameter, NotCertified, QueryRefused
from lastbit.release.certifying import program_of
from lastbit.release.private_table import Table
from lastbit.release.recorded import question_of_plan
from lastbit.tables.backends.printed import fingerprint
from lastbit.tables.card.column import Column
from lastbit.tables.card.read import card_from
from lastbit.tables.card.schema import PrivateTable, Source
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.statement import statement
from lastbit.tables.measures import WEIGHT_ONE
from lastbit.tables.plan.plan import planned
from lastbit.tables.plan.sensitivity import measures_of
from lastbit.tables.query.aggregates import AggregateSpec
from lastbit.tables.query.expression import Call, ColumnName, Constant
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.query.sub_query import counted_card, derived_card
from lastbit.tables.query.units import PerUnit, UnitColumn, UnitJoin, UnitKey
from lastbit.tables.sql.statement import parsed, query_of
from tests.kernel.unsealing import aggregates
from tests.tables.asked import card_with, column
from tests.tables.test_sql_tree import IMPLIED, MEANINGLESS

LABS = PrivateTable(
    name="labs",
    source=Source(kind="parquet", paths=("labs.parquet",)),
    unit="patient",
    max_rows=20,
    columns={
        one.name: one
        for one in (
            column("patient", "integer"),
            column("kind", "text", keys=("sugar", "iron")),
            column("value", "number", bounds=(Fraction(0), Fraction(100))),
            column("day", "date"),
        )
    },
)
DRUGS = replace(LABS, name="drugs", max_rows=3)
CARD = card_with(private={"labs": LABS, "drugs": DRUGS})
PID = ColumnName("pid")


def between(low: int, high: int) -> tuple[Fraction, Fraction]:
    return Fraction(low), Fraction(high)


def asked(text: str) -> Query:
    return parsed(text, CARD)


# ---------------------------------------------------------------- joins on the unit


@pytest.mark.parametrize(
    "text",
    [
        "visits JOIN labs ON visits.pid = labs.patient",
        "visits JOIN labs ON labs.patient = pid",
        "visits v JOIN labs l ON v.pid = l.patient",
        "(SELECT pid AS patient FROM visits) JOIN labs USING (patient)",
        "(SELECT * FROM visits) q INNER JOIN labs ON q.pid = patient",
    ],
)
def test_a_join_on_the_unit(text):
    query = asked(f"SELECT AVG(value) AS m, kind, COUNT(*) AS n FROM {text} GROUP BY kind")
    on = ((PID, ColumnName("patient", "labs")),)
    assert query.joins == (UnitJoin(table="labs", on=on),)
    assert query.aggregates[0].bounds == between(0, 100)  # of the private table's column
    assert query.keys[0].values == ("sugar", "iron")
    assert query.to_json()["joins"][0]["private"] is True


def test_keys_of_a_private_table_are_found_privately_and_never_read_off_it():
    text = (
        "SELECT l.day, COUNT(*) AS n FROM visits v JOIN labs l ON v.pid = l.patient GROUP BY l.day"
    )
    assert asked(text).keys[0].expression == ColumnName("day", "labs")
    assert asked(text).keys[0].values is None


def test_further_conditions_and_tables():
    query = asked(
        "SELECT COUNT(*) AS n FROM visits JOIN labs ON pid = labs.patient AND visits.day = labs.day"
        " JOIN regions USING (region) JOIN drugs ON labs.patient = drugs.patient"
        " WHERE labs.value > 3 AND drugs.kind = 'iron'"
    )
    assert [join.table for join in query.joins] == ["labs", "regions", "drugs"]
    assert query.joins[0].on[1] == (ColumnName("day"), ColumnName("day", "labs"))
    # the unit of a table that is joined already is the unit itself
    assert query.joins[2].on == ((PID, ColumnName("patient", "drugs")),)


def test_the_unit_of_a_joined_table_is_the_unit():
    text = "FROM visits JOIN labs ON pid = labs.patient"
    query = asked(f"SELECT COUNT(DISTINCT labs.patient) AS u {text} WHERE pid > 3 AND patient > 3")
    assert query.where == Call("and", (Call(">", (PID, Constant(3))),) * 2)
    assert query.aggregates[0].function == "count_units"
    with pytest.raises(QueryRefused, match="units one by one"):
        asked(f"SELECT labs.patient, COUNT(*) {text} GROUP BY labs.patient")


REFUSED_JOINS = {
    "JOIN labs ON visits.day = labs.day": "does not say that the units are equal",
    "JOIN labs ON region = labs.kind": "does not say that the units are equal",
    "JOIN labs ON many = labs.patient": "does not say that the units are equal",
    "JOIN labs ON pid + 0 = labs.patient": "does not say that the units are equal",
    "JOIN labs ON pid = labs.patient OR visits.day = labs.day": "not an equality of columns",
    "LEFT JOIN labs ON pid = labs.patient": "LEFT JOIN is an outer join",
    "CROSS JOIN labs": "not a plain join",
    "JOIN labs ON pid = labs.patient JOIN labs ON pid = labs.patient": "joined twice",
    "JOIN visits b ON visits.pid = b.pid": "is the table itself",
    "JOIN (SELECT day FROM labs) q ON visits.day = q.day": "does not say that the units are equal",
    "JOIN (SELECT patient + 0 AS p FROM labs) q ON pid = q.p": "not an equality of columns",
    "JOIN (SELECT patient FROM labs GROUP BY patient) q ON pid = q.patient": "aggregates labs",
}


@pytest.mark.parametrize("text", REFUSED_JOINS)
def test_refused_joins(text):
    with pytest.raises(QueryRefused, match=REFUSED_JOINS[text]):
        asked(f"SELECT COUNT(*) FROM visits {text}")


def test_a_query_made_by_hand_is_checked_again():
    on = ((ColumnName("day"), ColumnName("day", "labs")),)
    count = Aggregate(name="n", function="count")
    query = Query(table="visits", aggregates=(count,), joins=(UnitJoin(table="labs", on=on),))
    with pytest.raises(NotCertified, match="let rows of different units meet"):
        program_of(planned(query, CARD, epsilon=1))


def test_rows_are_chosen_by_a_secret():
    query = asked("SELECT COUNT(*) AS n FROM visits JOIN labs ON pid = labs.patient")
    with pytest.raises(InvalidParameter, match="secret"):
        statement(query, CARD, measures_of(query)[0], secret=None, dialect=DUCKDB)


# ---------------------------------------------------------------- sub-queries by the unit


def test_a_sub_query_grouped_by_the_unit():
    query = asked(
        "SELECT region, AVG(visits) AS m FROM (SELECT pid, region, COUNT(*) AS visits FROM visits"
        " WHERE age > 3 GROUP BY pid, region HAVING COUNT(*) > 1) GROUP BY region"
    )
    assert query.per_unit == PerUnit(
        columns=(UnitColumn(name="visits", function="count", nullable=False),),
        keys=(UnitKey(name="region", expression=ColumnName("region")),),
        where=Call(">", (ColumnName("age"), Constant(3))),
    )
    assert query.where == Call(">", (ColumnName("visits"), Constant(1)))
    assert query.aggregates[0].bounds == between(1, 10)  # max_rows of the card
    assert query.keys[0].values == ("north", "south")
    counted = counted_card(query, CARD)
    assert (counted.max_rows, counted.max_groups) == (2, 2)  # as many as the region has values
    assert counted_card(query, counted) == counted


@pytest.mark.parametrize(
    ("keys", "rows", "groups"),
    [("region", 2, 2), ("region, ok", 4, 3), ("ward", 3, 3), ("ward, region", 3, 3)],
)
def test_a_unit_has_as_many_rows_as_keys(keys, rows, groups):
    """All values declared: that many rows; else as many as the card expects groups."""
    inner = f"SELECT pid, {keys}, COUNT(*) AS n FROM visits GROUP BY pid, {keys}"
    query = asked(f"SELECT AVG(n) AS m FROM ({inner})")
    counted = counted_card(query, CARD)
    assert (counted.max_rows, counted.max_groups) == (rows, groups)
    narrow = replace(CARD, max_rows=1)
    assert counted_card(query, narrow).max_rows == 1
    if "ward" in keys:
        assert counted_card(query, replace(CARD, max_groups=None)).max_rows == 10


def test_a_unit_with_one_row_counts_once():
    query = asked(
        "SELECT AVG(total) AS m FROM (SELECT pid, SUM(cost) AS total FROM visits GROUP BY pid)"
    )
    counted = counted_card(query, CARD)
    assert (counted.max_rows, counted.max_groups) == (1, 1)
    assert query.aggregates[0].bounds == between(0, 5000)
    plan = planned(query, CARD, epsilon=1)
    assert plan.to_json()["max_rows"] == 1
    joined = asked(
        "SELECT AVG(total) AS m FROM (SELECT pid, SUM(cost) AS total FROM visits GROUP BY pid) q"
        " JOIN labs ON q.pid = labs.patient"
    )
    assert counted_card(joined, CARD) == CARD  # a unit has several rows again


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT pid AS p, region AS r, COUNT(*) AS n FROM visits GROUP BY 1, 2",
        "SELECT pid AS p, region AS r, COUNT(*) AS n FROM visits GROUP BY p, r",
        "SELECT region AS r, COUNT(*) AS n FROM visits GROUP BY region, visits.pid",
        "SELECT *, COUNT(*) AS n FROM (SELECT pid, region AS r FROM visits) GROUP BY pid, r",
    ],
)
def test_ways_to_group(inner):
    try:
        query = asked(f"SELECT r, AVG(n) AS m FROM ({inner}) GROUP BY r")
    except QueryRefused:
        assert "*," in inner  # SELECT * beside GROUP BY is not written out
        return
    assert query.per_unit is not None
    assert query.per_unit.keys[0].expression == ColumnName("region")


def test_equal_aggregates_are_one_column():
    query = asked(
        "SELECT AVG(clamp(share, 0, 1)) AS m FROM (SELECT pid, COUNT(*) FILTER (WHERE ok)"
        " / COUNT(*) AS share, COUNT(*) AS n FROM visits GROUP BY pid"
        " HAVING COUNT(*) > 2 AND n < 9)"
    )
    assert query.per_unit is not None
    assert [part.function for part in query.per_unit.columns] == ["count", "count"]


REFUSED_SUB_QUERIES = {
    "SELECT region, COUNT(*) AS n FROM visits GROUP BY region": "many units",
    "SELECT COUNT(*) AS n FROM visits": "many units",
    "SELECT pid, MEDIAN(age) AS n FROM visits GROUP BY pid": "not known there",
    "SELECT pid, STDDEV(age) AS n FROM visits GROUP BY pid": "not known there",
    "SELECT pid, SUM(free) AS n FROM visits GROUP BY pid": "no bounds",
    "SELECT pid, SUM(DISTINCT age) AS n FROM visits GROUP BY pid": "not known here",
    "SELECT pid, age AS n FROM visits GROUP BY pid": "neither grouped by",
    "SELECT pid, SUM(region) AS n FROM visits GROUP BY pid": "needs numbers, not text",
    "SELECT pid, COUNT(*) FROM visits GROUP BY pid": "no name",
    "SELECT pid, free AS n FROM visits GROUP BY pid, free": "type number",
    "SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid LIMIT 3": "no meaning",
    "SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid ORDER BY n": "no meaning",
    "SELECT DISTINCT pid, COUNT(*) AS n FROM visits GROUP BY pid": "no meaning",
    "SELECT pid, COUNT(*) AS n FROM visits GROUP BY ALL": "one by one",
    "SELECT pid, COUNT(*) AS n FROM visits GROUP BY ROLLUP (pid)": "several tables",
    "SELECT pid, n FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid) GROUP BY pid, n":
        "grouped by the unit",
    "SELECT pid, SUM(age) AS age, 1 AS n FROM visits GROUP BY pid HAVING age > 3": "another thing",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED_SUB_QUERIES)
def test_refused_sub_queries(text):
    with pytest.raises(InvalidParameter, match=REFUSED_SUB_QUERIES[text]):
        asked(f"SELECT AVG(clamp(n, 0, 9)) AS m FROM ({text})")


def test_where_each_row_is_a_unit_there_is_nothing_to_group_by():
    card = card_with(unit=None, max_rows=1, max_groups=None)
    with pytest.raises(QueryRefused, match="many units"):
        parsed("SELECT AVG(n) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid)", card)


def test_bounds_of_columns_of_a_sub_query():
    age, ends = ColumnName("age"), between(-3, 5)
    inner = PerUnit(
        columns=(
            UnitColumn(name="n", function="count", nullable=False),
            UnitColumn(name="s", function="sum", expression=age, bounds=ends),
            UnitColumn(name="m", function="mean", expression=age, bounds=ends),
            UnitColumn(name="x", function="max", expression=ColumnName("day")),
        )
    )
    found = derived_card(CARD, inner).columns
    assert found["n"].bounds == between(1, 10)
    assert found["s"].bounds == between(-30, 50)
    assert (found["m"].type, found["m"].bounds) == ("number", between(-3, 5))
    assert (found["x"].type, found["x"].bounds) == ("date", None)
    assert next(iter(found)) == "pid"


# ---------------------------------------------------------------- on the engine


def frame(sql: str):
    return duckdb.connect().sql(sql).to_arrow_table()


def tables(rows: str, others: str, **values):
    labs = lb.table(frame(others), unit="u", max_rows=values.pop("most", 3), name="labs")
    return lb.table(frame(rows), unit="u", name="t", private={"labs": labs}, **values)


def weights(table: Table, **given):
    query, card = table.query, counted_card(table.query, table.card)
    measures, _ = measures_of(query)
    found = aggregates(query, card, measures, secret="s", **given)
    return {name: entries[0] for name, entries in found.entries.items()}


def test_joined_rows_are_weighed_again():
    """A unit with 2 rows here and 3 there has 6, and counts for 2."""
    table = tables(
        "SELECT 1 AS u FROM range(2)", "SELECT 1 AS u, range AS v FROM range(3)", max_rows=2
    )
    asked = table.sql("SELECT COUNT(*) AS n FROM t JOIN labs USING (u)")
    assert weights(asked) == {"m1": 6 * (2 * WEIGHT_ONE // 6)}


def test_no_more_rows_of_a_unit_are_joined_than_the_card_says():
    """One row here meets 4 of 1,000 there, all equal: they are as good as each other."""
    table = tables("SELECT 1 AS u", "SELECT 1 AS u FROM range(1000)", most=4, max_rows=9)
    asked = table.sql("SELECT COUNT(*) AS n FROM t JOIN labs USING (u)")
    assert weights(asked) == {"m1": 4 * WEIGHT_ONE}


def test_rows_without_a_unit_meet_nothing():
    table = tables("SELECT NULL::INT AS u", "SELECT NULL::INT AS u FROM range(2)", max_rows=2)
    asked = table.sql("SELECT COUNT(*) AS n FROM t JOIN labs USING (u)")
    assert weights(asked) == {"m1": 0}


def test_keys_of_a_private_table_are_not_read():
    """Those of a public one are: its column says which keys there can be."""
    rows, others = "SELECT 1 AS u, 2 AS x", "SELECT 1 AS u, 'secret' AS code"
    private = tables(rows, others, max_rows=2).join("labs").group_by("code")
    assert private.keys[0].values is None
    table = lb.table(frame(rows), unit="u", max_rows=2, name="t", public={"labs": frame(others)})
    public = table.join("labs", on="u").group_by("code")
    assert public.keys[0].values == ("secret",)


def test_a_public_table_is_not_a_private_one(tmp_path):
    """Its values would be shown as they are: refused whether the private one is joined or not."""
    duckdb.sql(f"COPY (SELECT 1 AS u, 'a' AS code) TO '{tmp_path / 'labs.parquet'}'")
    labs = lb.table(tmp_path / "labs.parquet", unit="u", max_rows=1)
    table = lb.table(
        frame("SELECT 1 AS u, 2 AS x"),
        unit="u",
        max_rows=2,
        name="t",
        public={"open": tmp_path / "labs.parquet"},
        private={"labs": labs},
    )
    asked = table.join("open", on="u").group_by("code")
    assert asked.keys[0].values is None
    with pytest.raises(InvalidParameter, match="is the table itself"):
        table.join("open", on="u").agg(n=lb.count()).release(epsilon=1)


def test_no_file_is_there_twice_with_rows_of_different_units(tmp_path):
    """Messages by who sent them, beside those by who got them: to take away those of one person
    takes from what others sent and got. What moved was more than one unit counts for.
    """
    place = tmp_path / "messages.parquet"
    duckdb.sql(f"COPY (SELECT 1 AS sent, 2 AS got) TO '{place}'")
    by = {unit: lb.table(place, unit=unit, max_rows=1) for unit in ("sent", "got")}
    elsewhere = frame("SELECT 1 AS sent")
    for own, private in (
        (place, {"a": by["got"]}),
        (elsewhere, {"a": by["got"], "b": by["sent"]}),
    ):
        table = lb.table(own, unit="sent", max_rows=1, private=private)
        with pytest.raises(InvalidParameter, match="where its rows are other units'"):
            table.agg(n=lb.count()).release(epsilon=1)
    same = lb.table(place, unit="sent", max_rows=1, private={"a": by["sent"]})
    assert same.agg(n=lb.count()).release(epsilon=1)


@pytest.mark.parametrize("kind", ["BIGINT", "DOUBLE"])
@pytest.mark.parametrize(
    ("wanted", "value"),
    [
        (lb.count(), 5),
        (lb.count("x"), 4),
        (lb.count_distinct("x"), 2),
        (lb.sum("x", 0, 16), 24),
        (lb.sum("x", 5, 6), 22),  # each row within the bounds, then added up
        (lb.mean("x", 0, 16), 6),  # of the values that are there
        (lb.min("x"), 4),
        (lb.max("x"), 8),
    ],
    ids=str,
)
def test_values_of_a_unit(kind, wanted, value):
    rows = f"SELECT 1 AS u, unnest([4, 4, 8, 8, NULL])::{kind} AS x"
    table = lb.table(frame(rows), unit="u", max_rows=9, name="t")
    asked = table.per_unit(v=wanted).agg(s=lb.sum("CAST(v AS BIGINT)", 0, 99))
    assert weights(asked) == {"m1": value * WEIGHT_ONE}


def test_whole_numbers_of_a_unit_are_added_exactly():
    """In doubles, 2**62 + 1 - 2**62 would be 0."""
    rows = f"SELECT 1 AS u, unnest([{2**62}, 1, {-(2**62)}]) AS x"
    table = lb.table(frame(rows), unit="u", max_rows=9, name="t")
    asked = table.per_unit(v=lb.sum("x")).agg(s=lb.sum("v", 0, 99))
    assert weights(asked) == {"m1": WEIGHT_ONE}


def test_a_unit_without_values():
    rows = "SELECT unnest([1, 1, 2]) AS u, unnest([NULL, NULL, 3])::DOUBLE AS x"
    table = lb.table(frame(rows), unit="u", max_rows=9, name="t")
    for wanted in (lb.sum("x", 0, 9), lb.mean("x", 0, 9), lb.min("x"), lb.max("x")):
        assert weights(table.per_unit(v=wanted).agg(n=lb.count("v"))) == {"m1": WEIGHT_ONE}


def test_too_many_rows_of_one_are_refused():
    table = tables("SELECT 1 AS u", "SELECT 1 AS u", most=100, max_rows=2)
    more = lb.table(frame("SELECT 1 AS u"), unit="u", max_rows=11, name="more")
    asked = table.join("labs").join(more).agg(n=lb.count())
    with pytest.raises(QueryRefused, match="more than 1000 rows of one"):
        asked.release(epsilon=1)


def in_every_turn(values: list[str], wanted: AggregateSpec, of: str) -> set[object]:
    """The different sums over a column of a sub-query, its rows being stored in every turn."""
    found: set[object] = set()
    for turn in range(len(values)):
        turned = ", ".join(values[turn:] + values[:turn])
        rows = f"SELECT 1 AS u, unnest([{turned}])::DOUBLE AS x"
        table = lb.table(frame(rows), unit="u", max_rows=20, name="t")
        asked = table.per_unit(v=wanted).agg(s=lb.sum(of, -9, 9))
        found.add(tuple(weights(asked).items()))
    return found


@pytest.mark.parametrize("wanted", [lb.sum("x", -2, 2), lb.mean("x", -2, 2)], ids=str)
def test_no_order_of_rows_changes_a_sum(wanted):
    """In doubles it would: 1e16 + 1 - 1e16 is 0 or 1."""
    assert len(in_every_turn(["1e16", "1", "-1e16", "0.1", "0.2", "0.3"], wanted, "v")) == 1


@pytest.mark.parametrize("wanted", [lb.min("x"), lb.max("x")], ids=str)
def test_no_order_of_rows_changes_an_extreme(wanted):
    """0 and -0 are equal, and one over them is not."""
    found = in_every_turn(["0.0", "-0.0"], wanted, "power(v, -1)")
    assert found == {(("m1", 9 * WEIGHT_ONE * (1 << 20) // 18),)}


def test_per_unit_in_python_is_per_unit_in_sql():
    columns = [Column(name="cost", type="number", bounds=(0, 500))]
    rows = "SELECT 1 AS u, 'a' AS region, 2.0::DOUBLE AS cost"
    table = lb.table(frame(rows), unit="u", max_rows=4, columns=columns, name="t")
    python = (
        table.where("cost > 1")
        .per_unit(visits=lb.count(), total=lb.sum("cost"), by=["region"])
        .group_by("region")
        .agg(m=lb.mean("visits", 0, 20), t=lb.mean("total"))
    )
    sql = table.sql(
        "SELECT region, AVG(clamp(visits, 0, 20)) AS m, AVG(total) AS t FROM (SELECT u, region,"
        " COUNT(*) AS visits, SUM(cost) AS total FROM t WHERE cost > 1 GROUP BY u, region)"
        " GROUP BY region"
    )
    assert python.query == sql.query
    assert python.query.digest == sql.query.digest
    assert "per u: region, visits, total" in repr(python)


def test_refused_in_python():
    table = tables("SELECT 1 AS u, 2 AS x", "SELECT 1 AS u, 3 AS v", max_rows=2)
    other = lb.table(frame("SELECT 1 AS u, 3 AS v"), unit="u", max_rows=2, name="labs")
    with pytest.raises(InvalidParameter, match="name of another private table"):
        table.join(other)
    with pytest.raises(QueryRefused, match="units are equal"):
        table.join("labs", on={"x": "v"})
    with pytest.raises(InvalidParameter, match="asked something already"):
        table.join(other.where("v > 1"))
    with pytest.raises(InvalidParameter, match="has no unit"):
        table.join(lb.table(frame("SELECT 1 AS u"), each_row=True, name="more"))
    budget = lb.Budget(kind="pure", epsilon=Fraction(1))
    paid = lb.table(frame("SELECT 1 AS u"), unit="u", max_rows=1, name="more", budget=budget)
    with pytest.raises(InvalidParameter, match="budget, a ledger or users"):
        table.join(paid)
    texts = lb.table(frame("SELECT 'a' AS u"), unit="u", max_rows=1, name="more")
    with pytest.raises(InvalidParameter, match="of type text"):
        table.join(texts)
    with pytest.raises(QueryRefused, match="nothing by name"):
        table.per_unit()
    with pytest.raises(QueryRefused, match="comes twice"):
        table.per_unit(n=lb.count()).per_unit(m=lb.count())
    with pytest.raises(InvalidParameter, match="function of one unit's rows"):
        table.per_unit(n=lb.median("x", 0, 3))
    with pytest.raises(QueryRefused, match="after group_by"):
        table.agg(n=lb.count()).per_unit(n=lb.count())


# ---------------------------------------------------------------- what a record covers


def test_the_data_are_those_of_all_tables(tmp_path):
    for name, rows in (("t", 2), ("labs", 3)):
        duckdb.sql(f"COPY (SELECT 1 AS u FROM range({rows})) TO '{tmp_path / name}.parquet'")
    labs = lb.table(tmp_path / "labs.parquet", unit="u", max_rows=2)
    table = lb.table(tmp_path / "t.parquet", unit="u", max_rows=2, private={"labs": labs})
    before = fingerprint(table.card)
    duckdb.sql(f"COPY (SELECT 1 AS u FROM range(4)) TO '{tmp_path / 'labs.parquet'}'")
    assert fingerprint(table.card) != before

    def question(most: int) -> str:
        other = replace(table.card.private["labs"], max_rows=most)
        card = replace(table.card, private={"labs": other})
        query = parsed("SELECT COUNT(*) AS n FROM t JOIN labs USING (u)", card)
        return question_of_plan(planned(query, card, epsilon=1), "data")

    assert question(2) == question(2) != question(3)


def test_a_recorded_answer_is_of_both_tables(tmp_path):
    for name in ("t", "labs"):
        duckdb.sql(f"COPY (SELECT 1 AS u FROM range(3)) TO '{tmp_path / name}.parquet'")
    labs = lb.table(tmp_path / "labs.parquet", unit="u", max_rows=2)
    table = lb.table(tmp_path / "t.parquet", unit="u", max_rows=2, private={"labs": labs})
    asked = table.join("labs").agg(n=lb.count())
    first = asked.release(epsilon=1, ledger=tmp_path / "a.ledger")
    again = asked.release(epsilon=1, ledger=tmp_path / "a.ledger")
    assert (first.charged, again.charged) == (True, False)
    duckdb.sql(f"COPY (SELECT 2 AS u FROM range(3)) TO '{tmp_path / 'labs.parquet'}'")
    assert asked.release(epsilon=1, ledger=tmp_path / "a.ledger").charged
    with pytest.raises(InvalidParameter, match="private table labs"):
        first.to_csv(tmp_path / "labs.parquet")


# ---------------------------------------------------------------- on a card

TOML = """
[table]
name = "visits"
source = "visits.parquet"
neighbours = "add-remove"

[unit]
column = "pid"
max_rows = 5

[budget]
epsilon = 3

[columns.pid]
type = "integer"

[private.labs]
source = "labs.parquet"
unit = "patient"
max_rows = 20

[private.labs.columns.patient]
type = "integer"

[private.labs.columns.value]
type = "number"
bounds = [0, 100]
"""


def test_a_private_table_on_a_card(tmp_path):
    card = card_from(TOML, folder=tmp_path)
    labs = card.private["labs"]
    assert (labs.unit, labs.max_rows) == ("patient", 20)
    assert labs.columns["value"].bounds == between(0, 100)
    query = parsed("SELECT AVG(value) FROM visits JOIN labs ON pid = patient", card)
    assert isinstance(query.joins[0], UnitJoin)


WRONG = {
    ('unit = "patient"\n', ""): "private.labs.unit is missing",
    ('unit = "patient"', 'unit = "owner"'): "is not a column of the table",
    ("max_rows = 20\n", ""): "max_rows is missing",
    ("max_rows = 20", "max_rows = 2000"): "from 1 to 1000",
    ('source = "labs.parquet"\n', ""): "source is missing",
    ("bounds = [0, 100]", "bounds = [100, 0]"): "do not rise",
    ("bounds = [0, 100]", "bound = [0, 100]"): "is not known",
    ('patient]\ntype = "integer"', 'patient]\ntype = "text"'): "units of type text",
    ("private.labs", "private.visits"): "name of another table",
    ('column = "pid"\nmax_rows = 5', "each_row = true"): "has a unit, and the table has none",
}


@pytest.mark.parametrize("change", WRONG, ids=WRONG.values())
def test_wrong_private_tables(change, tmp_path):
    with pytest.raises(CardRefused, match=WRONG[change]):
        card_from(TOML.replace(*change), folder=tmp_path)


def test_a_private_table_is_not_public_too(tmp_path):
    public = '[public.open]\nsource = "labs.parquet"\ncolumns = {value = "number"}\n'
    with pytest.raises(CardRefused, match="public table too"):
        card_from(TOML + public, folder=tmp_path)


# ---------------------------------------------------------------- nothing is overlooked

PARSED = (
    "SELECT r, AVG(clamp(n + d, 0, 9)) AS m FROM (SELECT v.pid AS p, v.region AS r, COUNT(*) AS n,"
    " SUM(v.age) FILTER (WHERE v.ok) AS s, COUNT(DISTINCT labs.day) AS d, COUNT_IF(v.ok) AS c,"
    " MAX(labs.value) AS x, COUNT(v.ward) / MIN(v.age) AS a FROM visits AS v JOIN labs"
    " ON v.pid = labs.patient AND v.day = labs.day WHERE v.age > 3 GROUP BY v.pid, v.region"
    " HAVING COUNT(*) > 1 AND s > 2) WHERE x > 3 AND c > 0 AND a > 0 AND p > 0 GROUP BY r"
)


def read(tree: Any) -> Query:
    return query_of(tree, CARD)[0]


def noticed(tree: Any, original: Query) -> bool:
    try:
        return read(tree) != original
    except Exception:
        return True


def test_no_part_of_a_sub_query_is_overlooked():
    """Every part that the parser could set, set, or taken away: refused, or another question."""
    tree = sqlglot.parse_one(PARSED, read="duckdb")
    original = read(tree)
    known = MEANINGLESS | IMPLIED | {("Subquery", "alias")}  # a name that nothing uses
    for node in list(tree.walk(bfs=False)):
        kind = type(node).__name__
        for name in node.arg_types:
            before, given = node.args.get(name), name in node.args
            for strange in (not before,) if isinstance(before, bool) else (exp.column("odd"), True):
                node.args[name] = strange
                assert noticed(tree, original) or (kind, name) in known, (kind, name)
            node.args[name] = None
            there = before not in (None, False, [])
            assert not there or noticed(tree, original) or (kind, name) in known, (kind, name)
            if given:
                node.args[name] = before
            else:
                del node.args[name]
    assert read(tree) == original
