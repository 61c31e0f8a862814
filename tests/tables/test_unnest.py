"""UNNEST: how it is written, what it is as data, what is refused, and how lists are declared."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from lastbit.errors import CardRefused, InvalidParameter, QueryRefused
from lastbit.tables.card.column import Column
from lastbit.tables.card.public import card_from_json, card_to_json
from lastbit.tables.card.read import card_from
from lastbit.tables.card.schema import LinkedTable, Source
from lastbit.tables.compile.dialect import Dialect
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.postgres import POSTGRES
from lastbit.tables.compile.spark import SPARK
from lastbit.tables.compile.statement import statement
from lastbit.tables.plan.plan import planned
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.query import Query
from lastbit.tables.query.units import ListJoin
from lastbit.tables.sql.statement import parsed
from tests.tables.asked import COLUMNS, card_with
from tests.tables.test_units import DRUGS, LABS

CODES = Column(name="codes", type="text[]", keys=("a", "b"))
DOSES = Column(name="doses", type="number[]", bounds=(0, 10), nullable=False)
LISTS = {**{one.name: one for one in COLUMNS}, "codes": CODES, "doses": DOSES}
ONCE = replace(DRUGS, name="once", max_rows=1)
CARD = card_with(columns=LISTS, private={"labs": LABS, "drugs": DRUGS, "once": ONCE})
BY_CODE = (
    "SELECT u.code, COUNT(*) AS n FROM visits, UNNEST(visits.codes) AS u(code) GROUP BY u.code"
)
SAME = (
    BY_CODE,
    "SELECT code, COUNT(*) AS n FROM visits CROSS JOIN UNNEST(codes) AS u(code) GROUP BY code",
    "SELECT code, COUNT(*) AS n FROM visits v CROSS JOIN LATERAL UNNEST(v.codes) u(code)"
    " GROUP BY code",
    "SELECT code, COUNT(*) AS n FROM visits INNER JOIN UNNEST(codes) AS u(code) ON TRUE"
    " GROUP BY code",
    "SELECT code, COUNT(*) AS n FROM visits, LATERAL (SELECT UNNEST(codes) AS code) u"
    " GROUP BY code",
    "SELECT u.unnest AS code, COUNT(*) AS n FROM visits, UNNEST(codes) AS u GROUP BY code",
    "SELECT code, COUNT(*) AS n FROM visits, UNNEST(codes) AS code GROUP BY code",
    "SELECT code, COUNT(*) AS n FROM (SELECT pid, UNNEST(codes) AS code FROM visits) GROUP BY code",
    "WITH e AS (SELECT UNNEST(codes) AS code FROM visits) SELECT code, COUNT(*) AS n FROM e"
    " GROUP BY code",
    "SELECT code, COUNT(*) AS n FROM (SELECT * FROM visits) v, UNNEST(v.codes) AS u(code)"
    " GROUP BY code",
    "SELECT UNNEST(codes) AS code, COUNT(*) AS n FROM visits GROUP BY code",
    "SELECT UNNEST(codes) AS code, COUNT(*) AS n FROM visits GROUP BY 1",
)


@pytest.mark.parametrize("text", SAME)
def test_ways_to_write_it(text: str) -> None:
    query = parsed(text, CARD)
    assert query.joins == (ListJoin(column=ColumnName("codes")),)
    assert query.keys[0].expression == ColumnName("codes")
    assert query.keys[0].values == ("a", "b")
    assert replace(query, keys=parsed(BY_CODE, CARD).keys) == parsed(BY_CODE, CARD)


def test_it_is_read_as_it_was_written() -> None:
    for text in (BY_CODE, "SELECT AVG(d) AS m FROM visits, UNNEST(doses) AS u(d)"):
        query = parsed(text, CARD)
        assert Query.from_json(query.to_json()) == query
    assert parsed(BY_CODE, CARD).to_json()["joins"] == [{"unnest": {"column": "codes"}}]


def test_bounds_and_missing_values_are_those_of_elements() -> None:
    (mean,) = parsed("SELECT AVG(d) AS m FROM visits, UNNEST(doses) AS u(d)", CARD).aggregates
    assert (mean.bounds, mean.nullable) == ((Fraction(0), Fraction(10)), False)


def test_with_conditions_joins_and_sub_queries() -> None:
    by_chapter = (
        "SELECT zone, COUNT(*) AS n FROM visits, UNNEST(codes) AS u(code) JOIN regions r"
        " ON r.region = u.code WHERE age > 3 GROUP BY zone"
    )
    query = parsed(by_chapter, CARD)
    assert [join.table for join in query.joins] == ["", "regions"]
    assert query.joins[1].on[0][0] == ColumnName("codes")
    bare = by_chapter.replace(" JOIN regions r ON", ", regions r WHERE").replace(
        "WHERE age", "AND age"
    )
    assert parsed(bare, CARD).joins == query.joins
    on = "SELECT COUNT(*) AS n FROM visits JOIN UNNEST(codes) AS u(code) ON u.code = 'a'"
    where = "SELECT COUNT(*) AS n FROM visits, UNNEST(codes) AS u(code) WHERE u.code = 'a'"
    assert parsed(on, CARD) == parsed(where, CARD)
    inside = "SELECT pid, COUNT(*) AS n FROM visits, UNNEST(codes) GROUP BY pid"
    per_unit = f"SELECT AVG(n) AS m FROM ({inside})"
    inner = parsed(per_unit, CARD).per_unit
    assert inner is not None
    assert inner.joins == (ListJoin(column=ColumnName("codes")),)
    one = "SELECT COUNT(*) AS n FROM visits JOIN once ON pid = once.patient, UNNEST(codes)"
    assert planned(parsed(one, CARD), CARD, epsilon=1).card.unrolled == "codes"


REFUSED = {
    "SELECT COUNT(*) AS n FROM visits WHERE codes = 'a'": "is a column of lists",
    "SELECT codes, COUNT(*) AS n FROM visits GROUP BY codes": "is a column of lists",
    "SELECT COUNT(codes) AS n FROM visits": "is a column of lists",
    "SELECT SUM(doses) AS n FROM visits": "is a column of lists",
    "SELECT COUNT(codes) AS n FROM visits, UNNEST(codes) AS u(c)": "is a column of lists",
    "SELECT COUNT(*) AS n FROM visits, UNNEST(codes) AS u(c) WHERE codes = 'a'": "column of lists",
    "SELECT COUNT(*) FROM visits, UNNEST(codes) AS u(c) WHERE u.codes = 'a'": "column of lists",
    "SELECT AVG(k) AS m FROM (SELECT pid, MAX(codes) AS k FROM visits GROUP BY pid)": "of lists",
    "SELECT COUNT(*) AS n FROM visits LEFT JOIN UNNEST(codes) AS u(c) ON TRUE": "without elements",
    "SELECT COUNT(*) AS n FROM visits LEFT JOIN LATERAL UNNEST(codes) AS u(c) ON TRUE": "without",
    "SELECT COUNT(*) AS n FROM visits FULL JOIN UNNEST(codes) AS u(c) ON TRUE": "without elements",
    "SELECT COUNT(*) AS n FROM visits, UNNEST(codes), UNNEST(doses) AS u(d)": "is there twice",
    "SELECT UNNEST(codes) AS c, UNNEST(doses) AS d, COUNT(*) FROM visits GROUP BY 1, 2": "twice",
    "SELECT COUNT(*) AS n FROM (SELECT UNNEST(codes) AS c, doses"
    " FROM visits), UNNEST(doses) AS u(d)": "is a column of lists",
    "SELECT COUNT(*) AS n FROM (SELECT *, UNNEST(codes) AS c"
    " FROM visits) v, UNNEST(v.doses) AS u(d)": "is there twice",
    "SELECT COUNT(*) AS n FROM visits, UNNEST(codes, doses) AS u(a, b)": "one column",
    "SELECT COUNT(*) AS n FROM visits, UNNEST(age) AS u(a)": "is not a column of lists",
    "SELECT COUNT(*) AS n FROM visits, UNNEST(region) AS u(a)": "is not a column of lists",
    "SELECT COUNT(*) AS n FROM visits, UNNEST(zzz) AS u(a)": 'No column "zzz"',
    "SELECT COUNT(*) AS n FROM visits, UNNEST([1, 2]) AS u(a)": "of a column of lists alone",
    "SELECT COUNT(*) AS n FROM visits, UNNEST(codes[1:2]) AS u(a)": "of a column of lists alone",
    "SELECT COUNT(*) AS n FROM visits, UNNEST(codes) WITH ORDINALITY AS u(c, i)": "ORDINALITY",
    "SELECT COUNT(*) AS n FROM visits, UNNEST(codes) AS visits(c)": "the name of a table",
    "SELECT COUNT(UNNEST(codes)) AS n FROM visits": "inside an expression",
    "SELECT COUNT(*) AS n FROM visits WHERE UNNEST(codes) = 'a'": "inside an expression",
    "SELECT COUNT(*) AS n FROM visits, UNNEST(codes) AS u(c) GROUP BY UNNEST(codes)": "inside",
    "SELECT c, COUNT(*) AS n FROM (SELECT UNNEST(codes) AS c FROM visits WHERE c = 'a')"
    " GROUP BY c": 'No column "c"',
    "SELECT patient, UNNEST(codes) AS c FROM labs GROUP BY 1, 2": "is not this card's table",
    "SELECT COUNT(*) AS n FROM (SELECT pid, COUNT(*) AS k FROM visits GROUP BY pid),"
    " UNNEST(codes)": 'No column "codes"',
    "SELECT COUNT(*) AS n FROM (SELECT region, COUNT(*) AS k FROM visits GROUP BY region),"
    " UNNEST(codes)": "is not of a list of the card's table",
    "SELECT COUNT(*) AS n FROM visits JOIN labs ON pid = labs.patient,"
    " UNNEST(codes)": "JOIN and UNNEST could make more than 1000 rows of one: tables hold many",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(QueryRefused) as caught:
        planned(parsed(text, CARD), CARD, epsilon=1)
    assert REFUSED[text] in str(caught.value)


def test_each_row_must_not_be_a_unit() -> None:
    card = card_with(columns=LISTS, unit=None, max_rows=1, max_groups=None)
    with pytest.raises(QueryRefused, match=r"several rows of one.*name the unit's column"):
        parsed(BY_CODE, card)


FORGED = (
    (ListJoin(column=ColumnName("age")),),
    (ListJoin(column=ColumnName("patient", "labs")),),
    (ListJoin(column=ColumnName("codes")), ListJoin(column=ColumnName("doses"))),
    (ListJoin(column=ColumnName("pid")),),
    (),
)


@pytest.mark.parametrize("joins", FORGED)
def test_a_question_written_by_hand_is_refused(joins: tuple[ListJoin, ...]) -> None:
    """By planners and, without them, by the statement."""
    query = replace(parsed(BY_CODE, CARD), joins=joins)
    with pytest.raises((QueryRefused, InvalidParameter)) if joins else nullcontext():
        planned(query, CARD, epsilon=1)
    with pytest.raises((QueryRefused, InvalidParameter)):
        statement(query, CARD, (), secret="x", dialect=DUCKDB)


@pytest.mark.parametrize("dialect", [POSTGRES, SPARK])
def test_engines_that_have_none_refuse_it(dialect: Dialect) -> None:
    query = parsed(BY_CODE, CARD)
    measures = planned(query, CARD, epsilon=1).measures
    with pytest.raises(
        QueryRefused, match=r"UNNEST cannot be computed.*write the table as Parquet"
    ):
        statement(query, CARD, measures, secret="x", dialect=dialect)


# ---------------------------------------------------------------- cards


TEXT = """
[table]
name = "visits"
source = "SOURCE"
neighbours = "add-remove"

[unit]
column = "pid"
max_rows = 10

[budget]
epsilon = 3

[columns.pid]
type = "integer"

[columns.codes]
type = "text[]"
keys = ["a", "b"]

[columns.doses]
type = "number[]"
bounds = [0, 10]
"""


def test_how_a_card_declares_it() -> None:
    card = card_from(TEXT.replace("SOURCE", "visits.parquet"), folder=Path())
    assert card.column("codes") == Column(name="codes", type="text", is_list=True, keys=("a", "b"))
    assert card.columns_at(0) == {"pid": "integer", "codes": "text[]", "doses": "number[]"}
    shown = card_from_json(card_to_json(card))
    assert shown.column("codes").stored_type == "text[]"
    assert shown.column("doses").number_bounds == (Fraction(0), Fraction(10))


def test_where_a_card_may_not() -> None:
    with pytest.raises(CardRefused, match=r"codes.type is a list, and lists are not read of csv"):
        card_from(TEXT.replace("SOURCE", "visits.csv"), folder=Path())
    with pytest.raises(CardRefused, match="is unknown"):
        card_from(
            TEXT.replace("SOURCE", "visits.parquet").replace("text[]", "text[][]"), folder=Path()
        )
    for kind, source in (("postgres", "postgresql://a@b/c"), ("spark", "spark:default.visits")):
        with pytest.raises(InvalidParameter, match="lists are not read"):
            replace(CARD, source=Source(kind=kind, paths=(source,), table="t"), public={})  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match=r"is of type text\[\]"):
        replace(CARD, unit="codes", private={})
    with pytest.raises(InvalidParameter, match="only the table's own lists"):
        replace(CARD, private={"labs": replace(LABS, columns={**LABS.columns, "codes": CODES})})
    there = LinkedTable(
        name="orders",
        source=Source(kind="parquet", paths=("orders.parquet",)),
        on=(("age", "id"),),
        columns={"codes": "codes", "pid": "pid"},
    )
    with pytest.raises(InvalidParameter, match="in another table"):
        replace(CARD, through=(there,))
