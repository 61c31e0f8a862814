"""Where the rows of `lb.table` may come from, what they are taken for, and what is refused."""

from __future__ import annotations

import sqlite3
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.dataset
import pytest

import lastbit as lb
from lastbit.errors import EngineFailed, InvalidParameter, QueryRefused, WrongType
from lastbit.release.limits import open_columns

ROWS = (
    "SELECT range // 2 AS id, range % 10 AS cost, ['n', 's'][1 + range % 2] AS region, "
    "range % 3 AS ward, DATE '2026-01-01' AS day FROM range(200)"
)
OWN: dict[str, Any] = {"unit": "id", "max_rows": 2}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    duckdb.sql(f"COPY ({ROWS}) TO 'visits.csv'")
    duckdb.sql(f"COPY ({ROWS}) TO 'visits.parquet'")
    return tmp_path


def near(asked: Any, truth: float, **more: Any) -> bool:
    """Whether the one number is right; so much epsilon leaves hardly any noise."""
    return abs(asked.release(epsilon=1000, **more).value - truth) < 1


# ---------------------------------------------------------------- CSV


def test_a_csv_column_that_is_aggregated_is_a_number():
    visits = lb.table("visits.csv", **OWN)
    assert near(visits.agg(m=lb.mean("cost", 0, 9)), 4.5)
    assert near(visits.agg(s=lb.sum("cost * 2", 0, 18)), 1800)
    assert near(visits.sql("SELECT AVG(clamp(cost, 0, 9)) AS m FROM visits WHERE cost > 4"), 7)
    assert near(visits.where("region = 'n'").agg(m=lb.mean("cost", 0, 9)), 4)
    assert visits.card.column("cost").type == "text"  # each step gives a new table
    some = visits.group_by(b="bin(cost, 0, 5, 10)").agg(n=lb.count())
    assert some.release(epsilon=1000)["n"] == [100, 100]


def test_each_value_is_cast_by_itself():
    """No sniffing: one odd value is missing, and no other row is read otherwise."""
    Path("odd.csv").write_text("id,cost\n" + "".join(f"{i},3\n" for i in range(99)) + "99,many\n")
    odd = lb.table("odd.csv", unit="id", max_rows=1)
    assert near(odd.agg(n=lb.sum("cost", 0, 9)), 297)
    assert near(odd.agg(n=lb.count("cost")), 100)  # nobody said that it is a number


def test_types_by_name():
    visits = lb.table("visits.csv", columns={"cost": "integer", "DAY": "date"}, **OWN)
    assert visits.card.column("cost").step == 1 and visits.card.column("day").type == "date"
    assert near(visits.where("cost > 4 AND year(day) = 2026").agg(m=lb.median("cost", 0, 9)), 7)
    both: dict[str, lb.Column | str] = {
        "cost": lb.Column(name="cost", type="number", bounds=(0, 9)),
        "ward": "integer",
    }
    assert near(lb.table("visits.csv", columns=both, **OWN).agg(m=lb.mean("cost")), 4.5)


def test_declared_keys_say_what_a_csv_column_is():
    keys: dict[str, Any] = {"ward": range(3), "region": ["n"], "day": [date(2026, 1, 1)]}
    visits = lb.table("visits.csv", keys=keys, **OWN)
    kinds = [visits.card.column(name).type for name in ("ward", "region", "day", "cost")]
    assert kinds == ["integer", "text", "date", "text"]
    assert visits.group_by("ward").agg(n=lb.count()).release(epsilon=1000)["n"] == [67, 67, 66]
    same = lb.table("visits.csv", keys={"ward": np.arange(3)}, **OWN)
    assert same.card == lb.table("visits.csv", keys={"ward": [0, 1, 2]}, **OWN).card


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda t: t.where("cost > 4"), 'columns={"cost": "number"}'),
        (lambda t: t.sql("SELECT COUNT(*) FROM visits WHERE cost > 4"), '{"cost": "number"}'),
        (lambda t: t.with_columns(x="cost + 1"), '{"cost": "number"}'),
        (lambda t: t.agg(m=lb.mean("upper(cost)", 0, 9)), '{"cost": "number"}'),
        (lambda t: t.where("cost <> ''").agg(m=lb.mean("cost", 0, 9)), "text in an earlier step"),
        (lambda t: t.group_by("cost").agg(m=lb.mean("cost", 0, 9)), "text in an earlier step"),
        (lambda t: t.with_columns(x="cost").agg(m=lb.mean("cost", 0, 9)), "earlier step"),
    ],
)
def test_refusals_name_the_column_and_how_to_declare_it(asked, words):
    with pytest.raises(QueryRefused) as caught:
        asked(lb.table("visits.csv", **OWN))
    assert words in str(caught.value)


def test_other_sources_have_types_and_keep_them():
    with pytest.raises(QueryRefused) as caught:
        lb.table("visits.parquet", **OWN).agg(m=lb.mean("region", 0, 9))
    assert "CSV" not in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"cost": "int"}, "type is unknown"),
        ({"price": "integer"}, "column price is not in the source"),
        (["cost"], "not declared as columns"),
        ("cost", "not declared as columns"),
        ({"cost": 3}, "not declared as columns"),
        (7, "not declared as columns"),
    ],
)
def test_columns_that_are_not_declared(columns, words):
    with pytest.raises(InvalidParameter, match=words):
        lb.table("visits.csv", columns=columns, **OWN)


# ---------------------------------------------------------------- everything else


def test_duckdb_files_connections_and_relations():
    with duckdb.connect("x.duckdb") as connection:
        connection.execute(f"CREATE TABLE visits AS {ROWS}")
        for source in (connection, connection.table("visits"), connection.sql("FROM visits")):
            more: dict[str, Any] = (
                {"table": "visits"} if source is connection else {"name": "visits"}
            )
            asked = lb.table(source, **more, **OWN)
            assert asked.card.name == "visits"
            assert near(asked.agg(m=lb.mean("cost", 0, 9)), 4.5)
    asked = lb.table("x.duckdb", table="main.visits", **OWN)
    assert asked.card.name == "visits" and near(asked.agg(m=lb.mean("cost", 0, 9)), 4.5)


def test_a_relation_that_draws_is_one_table():
    """The record of an answer is found again, so what was answered from is what was recorded."""
    drawn = lb.table(duckdb.sql(f"SELECT *, random() AS r FROM ({ROWS})"), name="drawn", **OWN)
    asked = drawn.agg(m=lb.mean("r", 0, 1))
    first = asked.release(epsilon=1, ledger="drawn.ledger")
    again = asked.release(epsilon=1, ledger="drawn.ledger")
    assert first.charged and not again.charged and again.record == first.record


def test_lazy_frames():
    assert near(lb.table(pl.scan_csv("visits.csv"), **OWN).agg(m=lb.mean("cost", 0, 9)), 4.5)


def test_whole_numbers_that_pandas_made_floats():
    """A missing value does that; 0, 1 and 2 are keys all the same."""
    frame = pd.DataFrame({"id": range(6), "ward": [0.0, 1.0, 1.0, 2.0, np.nan, 2.0]})
    for keys in ([0, 1, 2], [0.0, 1.0, 2.0], np.arange(3)):
        asked = lb.table(frame, unit="id", max_rows=1, keys={"ward": keys}).group_by("ward")
        assert asked.agg(n=lb.count()).release(epsilon=1000)["n"] == [1, 2, 2]
    with pytest.raises(QueryRefused, match='"ward": "integer"'):
        lb.table(frame, unit="id", max_rows=1).group_by("ward")
    found = lb.table(frame, unit="id", max_rows=1, columns={"ward": "integer"}).group_by("ward")
    assert found.keys[0].name == "ward"
    with pytest.raises(InvalidParameter, match="cannot be of type number"):  # a price is no key
        lb.table(pl.DataFrame({"id": [1], "x": [0.5]}), unit="id", max_rows=1, keys={"x": [1]})


def test_patterns_and_folders():
    duckdb.sql(f"COPY ({ROWS}) TO 'rows' (FORMAT parquet, PARTITION_BY (region, ward))")
    for source in ("rows", "rows/", Path("rows"), "rows/**/*.parquet", "rows/region=*/*/*"):
        if source == "rows/region=*/*/*":
            with pytest.raises(InvalidParameter, match="known kind"):
                lb.table(source, **OWN)
            continue
        asked = lb.table(source, keys={"region": ["n", "s"]}, name="t", **OWN).group_by("region")
        assert asked.agg(n=lb.count()).release(epsilon=1000)["n"] == [100, 100]
    assert lb.table("rows/", **OWN).card.name == "rows"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"id": [1]}, "pandas.DataFrame"),
        ([{"id": 1}], "pandas.DataFrame"),
        (np.zeros((2, 2)), "columns="),
        (sqlite3.connect(":memory:"), "read_sql"),
        (pyarrow.dataset.dataset(pd.DataFrame({"id": [1]}).pipe(pyarrow.Table.from_pandas)), "to_"),
        (pd.Series([1]), "to_frame"),
        (duckdb.connect(), "table="),
        ("x.duckdb", "table="),
        ("visits.json", "read_json"),
        ("https://example.org/visits.csv", "download"),
        (3, "pass a card"),
        (object(), "pass a card"),
    ],
)
def test_wrong_kinds_have_a_way_out(source, words):
    with pytest.raises(InvalidParameter) as caught:
        lb.table(source, **OWN)
    assert words in caught.value.remedy


def test_a_table_is_named_only_where_there_are_several():
    for source in ("visits.csv", pd.DataFrame({"id": [1]}), pl.LazyFrame({"id": [1]})):
        with pytest.raises(InvalidParameter, match="is for DuckDB files"):
            lb.table(source, table="visits", **OWN)
    with pytest.raises(WrongType, match="is not a name"):
        lb.table("x.duckdb", table=3, **OWN)  # type: ignore[call-overload]


def test_the_table_itself_is_not_public():
    relation: Any = duckdb.sql(ROWS)
    for source in (relation, relation.pl(), relation.pl().lazy()):
        with pytest.raises(InvalidParameter, match="is the table itself"):
            lb.table(source, public={"other": source}, **OWN).join("other", on="id").agg(
                n=lb.count()
            ).release(epsilon=1, ledger="x.ledger")


def test_a_recipe_that_fails_says_so():
    with pytest.raises(EngineFailed, match="runs by itself"):
        lb.table(pl.LazyFrame({"id": [1]}).select("absent"), **OWN)


def test_types_are_hinted_at_where_types_are_the_problem():
    Path("flights.csv").write_text("flight,origin,tailnum,distance\n1,a,x,10\n")
    flights = lb.table("flights.csv", unit="tailnum", max_rows=2)
    with pytest.raises(QueryRefused) as caught:
        flights.sql("SELECT COUNT(*) FROM flight")
    assert "CSV" not in str(caught.value)
    means = flights.sql("SELECT origin, AVG(distance) FROM flights GROUP BY origin")
    assert open_columns(means) == ("distance",)
    for sql in ("flight > 3", "ABS(flight) = 3"):
        with pytest.raises(QueryRefused, match='"flight": "number"'):
            flights.sql(f"SELECT COUNT(*) FROM flights WHERE {sql}")
