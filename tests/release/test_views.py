"""Answers that show a part of what is released, or functions of keys: against DuckDB, and whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lastbit as lb
from lastbit.checker import check_apart_from_code
from lastbit.release import Answer
from lastbit.release.workload import workload
from tests.release.test_sql_spellings import ROWS, assert_same, rows_of

FINE = {"epsilon": 10**6, "delta": "1e-9"}


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE PUMS AS {ROWS}")
        yield connection


@pytest.fixture(scope="module")
def pums(engine: Any) -> Any:
    """`race` and `educ` have no declared keys."""
    bounds = {"age": (0, 120), "income": (0, 100_000)}
    return lb.table(
        engine.sql("FROM PUMS").to_arrow_table(),
        name="PUMS",
        unit="id",
        max_rows=1,
        keys={"sex": [0, 1], "married": [False, True]},
        columns=[lb.Column(name=n, type="integer", bounds=b) for n, b in bounds.items()],
    )


def released(pums: Any, text: str, **more: Any) -> Any:
    asked = pums.sql(text)
    found = any(key.values is None for key in asked.query.keys)
    price = FINE if found else {"epsilon": FINE["epsilon"]}
    return asked.release(**price, **more)


SAME = """
SELECT COUNT(*) AS n FROM PUMS GROUP BY sex
SELECT COUNT(*) AS n, AVG(age) AS a FROM PUMS GROUP BY sex, race
SELECT COUNT(*) AS n FROM PUMS GROUP BY UPPER(race) ORDER BY n DESC
SELECT sex, COUNT(*) AS n FROM PUMS GROUP BY sex, married ORDER BY sex, n
SELECT COUNT(*) AS n FROM PUMS GROUP BY race ORDER BY race
SELECT COUNT(*) AS n FROM PUMS GROUP BY race HAVING race <> 'white' AND COUNT(*) > 3
SELECT UPPER(race) AS u, COUNT(*) AS n FROM PUMS GROUP BY race
SELECT sex + 1 AS s, sex / 2 AS half, COUNT(*) AS n FROM PUMS GROUP BY sex ORDER BY half DESC
SELECT CASE WHEN sex = 1 THEN 'f' ELSE 'm' END AS who, AVG(income) AS a FROM PUMS GROUP BY sex
SELECT CASE WHEN race = 'black' THEN NULL ELSE race END AS l, COUNT(*) AS n FROM PUMS GROUP BY race
SELECT educ // 4 AS q, educ % 4 = 0 AS f, COUNT(*) AS n FROM PUMS GROUP BY educ // 4, educ % 4 = 0
SELECT educ // 4 AS q, SUM(income) AS total FROM PUMS GROUP BY educ
SELECT race || CAST(sex AS TEXT) AS k, SUM(age) AS a FROM PUMS GROUP BY 1, race, sex
SELECT race || '!' AS k, COUNT(*) AS n FROM PUMS GROUP BY race, sex ORDER BY k DESC, n LIMIT 3
SELECT UPPER(race) AS u, COUNT(*) AS n FROM PUMS GROUP BY race HAVING u <> 'WHITE' ORDER BY 1
SELECT race, sex, 100.0 * SUM(income) / COUNT(*) AS r FROM PUMS GROUP BY race, sex, married
SELECT DISTINCT race FROM PUMS
SELECT race FROM PUMS GROUP BY race
SELECT race, sex FROM PUMS GROUP BY sex, race ORDER BY race DESC, sex LIMIT 4
SELECT DISTINCT race, married FROM PUMS WHERE age > 30
SELECT DISTINCT educ // 2 AS half FROM PUMS ORDER BY half
SELECT UPPER(race) AS u FROM PUMS GROUP BY race
SELECT race FROM PUMS GROUP BY race HAVING AVG(age) > 0
SELECT sex FROM PUMS GROUP BY sex HAVING COUNT(*) > 100 ORDER BY SUM(income) DESC
SELECT married FROM PUMS GROUP BY married ORDER BY COUNT(*) LIMIT 1
SELECT sex FROM PUMS GROUP BY sex
SELECT DISTINCT sex, married FROM PUMS ORDER BY sex DESC, married
SELECT sex AS married, married AS sex, COUNT(*) AS n FROM PUMS GROUP BY sex, married HAVING sex > 0
SELECT married AS sex, sex AS married, COUNT(*) AS n FROM PUMS GROUP BY sex, married HAVING sex < 1
SELECT sex AS g, married AS sex, COUNT(*) AS n FROM PUMS GROUP BY sex, married ORDER BY sex, g DESC
SELECT educ * 10 AS educ, COUNT(*) AS n FROM PUMS GROUP BY educ HAVING educ > 3
SELECT educ * -1 AS educ, COUNT(*) AS n FROM PUMS GROUP BY PUMS.educ ORDER BY PUMS.educ
SELECT educ * -1 AS educ, COUNT(*) AS n FROM PUMS GROUP BY educ ORDER BY educ
SELECT educ * -1 AS educ, COUNT(*) AS n FROM PUMS GROUP BY educ ORDER BY educ + 1 DESC LIMIT 3
SELECT educ FROM PUMS GROUP BY educ ORDER BY CAST(educ AS VARCHAR) DESC
SELECT sex AS gender, educ FROM PUMS GROUP BY sex, educ ORDER BY CAST(gender AS INTEGER) * -1, educ
SELECT UPPER(race) AS u, AVG(age) AS a FROM PUMS GROUP BY UPPER(race) HAVING UPPER(race) < 'W'
SELECT race, AVG(age) AS a FROM PUMS GROUP BY race ORDER BY LENGTH(race), UPPER(race) DESC
SELECT n FROM (SELECT sex, COUNT(*) AS n FROM PUMS GROUP BY sex) ORDER BY n
SELECT race FROM (SELECT race, COUNT(*) AS n FROM PUMS GROUP BY race) WHERE n > 3 ORDER BY race DESC
SELECT race, LENGTH(race) AS l, n, 7 AS s FROM (SELECT race, COUNT(*) AS n FROM PUMS GROUP BY 1)
SELECT e, m FROM (SELECT educ * 2 AS e, AVG(age) AS m FROM PUMS GROUP BY educ, sex) WHERE e > 9
SELECT e FROM (SELECT educ AS e, sex FROM PUMS GROUP BY 1, 2) WHERE sex = 1 ORDER BY e % 3, e
SELECT u, n FROM (SELECT UPPER(race) AS u, COUNT(*) AS n FROM PUMS GROUP BY race ORDER BY u LIMIT 2)
SELECT q.n FROM (SELECT race AS r, COUNT(*) AS n FROM PUMS GROUP BY race) q ORDER BY LENGTH(r), q.r
SELECT q.age FROM (PUMS) AS q WHERE sex = '1' GROUP BY q.age ORDER BY q.age LIMIT 5
SELECT 3 AS three, sex, AVG(income) AS a, 'x' AS x FROM PUMS GROUP BY sex ORDER BY three, sex
SELECT married, COUNT(*) AS n FROM PUMS GROUP BY married HAVING married = 1
SELECT sex, COUNT(*) AS n FROM PUMS WHERE sex = TRUE AND educ <> '8' GROUP BY sex
""".strip().splitlines()


@pytest.mark.thinned(one_in=3)
@pytest.mark.parametrize("text", SAME)
def test_the_answer_is_that_of_duckdb(text: str, engine: Any, pums: Any) -> None:
    truth = engine.execute(text)
    names = [column[0] for column in truth.description]
    mine, rows = released(pums, text), truth.fetchall()
    placed = [names.index(name) for name in (*mine.keys, *mine.columns)]
    assert_same(
        rows_of(mine), [tuple(row[i] for i in placed) for row in rows], ordered="ORDER BY" in text
    )
    exported = [[row[name] for name in names] for row in mine.to_dicts()]
    assert_same([tuple(row) for row in exported], rows, ordered="ORDER BY" in text)


def test_top_is_limit(engine: Any, pums: Any) -> None:
    text = "SELECT {} UPPER(race) AS u, COUNT(*) AS n FROM PUMS GROUP BY race ORDER BY u DESC {}"
    mine = released(pums, text.format("TOP 2", ""))
    truth = engine.execute(text.format("", "LIMIT 2")).fetchall()
    assert_same(rows_of(mine), truth, ordered=True)


def test_without_an_order_rows_stand_in_that_of_their_keys(pums: Any) -> None:
    whole = released(pums, "SELECT married, sex, COUNT(*) AS n FROM PUMS GROUP BY ALL")
    part = released(pums, "SELECT COUNT(*) AS n FROM PUMS GROUP BY married, sex")
    assert [key for row in whole for key in (row.keys,)] == [
        (False, 0), (False, 1), (True, 0), (True, 1)
    ]  # fmt: skip
    assert [round(row.n) for row in part] == [round(row.n) for row in whole]
    found = released(pums, "SELECT COUNT(*) AS n FROM PUMS GROUP BY race, educ")
    keys = [tuple(one["value"] for one in row["keys"]) for row in found.record["rows"]]
    assert keys == sorted(keys)
    assert found.keys == () and len(found) == len(keys)


def test_the_record_is_whole_and_certified(pums: Any, tmp_path: Path) -> None:
    for text in SAME[6], SAME[16]:
        answer = released(pums, text)
        check_apart_from_code(answer.record)
        assert answer.record["asked"]["sql"] == text
        assert [c["role"] for c in answer.record["columns"]] == ["key", "value"]
        answer.save(tmp_path / "answer.json")
        kept = Answer.load(tmp_path / "answer.json")
        assert kept.keys == ("race",) and len(kept) == len(answer)
        assert json.loads(answer.to_json())["rows"] == answer.record["rows"]


def test_nothing_is_shown_that_is_not_on_the_record(pums: Any) -> None:
    for text in SAME[::6]:
        answer = released(pums, text)
        rows = answer.record["rows"]
        assert len(answer) <= len(rows)
        cells = [row["cells"] for row in rows]
        for row in answer.part["rows"] if answer.part else ():
            assert not row["cells"] or row["cells"] in cells


def test_a_recorded_answer_serves_whatever_is_shown_of_it(pums: Any, tmp_path: Path) -> None:
    ledger = tmp_path / "books"
    whole = released(pums, "SELECT race, COUNT(*) AS n FROM PUMS GROUP BY race", ledger=ledger)
    for shown in ("COUNT(*) AS n", "UPPER(race) AS u, COUNT(*) AS n", "COUNT(*) AS m, race || '?'"):
        text = f"SELECT {shown} FROM PUMS GROUP BY race"
        answer = released(pums, text, ledger=ledger)
        assert not answer.charged
        assert [row.cells[0].value for row in answer] == [row.n for row in whole]
    other = pums.sql("SELECT DISTINCT race FROM PUMS").release(**FINE, ledger=ledger)
    again = pums.sql("SELECT race FROM PUMS GROUP BY race").release(**FINE, ledger=ledger)
    assert (other.charged, again.charged) == (True, False)


def test_counts_agree_before_rows_are_cut(pums: Any) -> None:
    text = "SELECT sex + 0 AS s, COUNT(*) AS n FROM PUMS GROUP BY sex ORDER BY s LIMIT 1"
    answer = pums.sql(text).release(epsilon=1, consistent=True)
    before = answer.record["before"]
    assert answer.totals == {"n": sum(row["cells"][0]["value"] for row in before)}
    assert len(answer) == 1 and len(before) == 2
    wide, plain = answer.record["rows"][0]["cells"][0], answer[0].cell("n")
    assert wide["value"] == plain.value
    both = pums.sql(text).release(epsilon=1).simultaneous()
    assert any("2 numbers" in note for note in both.notes)


def test_a_view_of_keys_alone_has_no_numbers(pums: Any) -> None:
    answer = released(pums, "SELECT DISTINCT race FROM PUMS")
    assert (answer.keys, answer.columns) == (("race",), ())
    assert answer["race"] == ["asian", "black", "white"]
    assert answer.to_csv().split() == ["race", "asian", "black", "white"]
    assert any("SELECT leaves it out: units" in note for note in answer.notes)
    assert answer.consistent()["race"] == answer["race"]
    assert "race" in str(answer) and "race" in answer._repr_html_()
    assert answer.cost.delta == lb.ApproxDP(1, "1e-9").delta


@pytest.mark.parametrize("text", [SAME[0], SAME[9], SAME[14], SAME[16]])
def test_reports_and_exports(text: str, pums: Any, tmp_path: Path) -> None:
    answer = released(pums, text)
    answer.report(tmp_path / "page.html")
    answer.to_parquet(tmp_path / "rows.parquet")
    rows = duckdb.execute(f"FROM '{tmp_path}/rows.parquet'").fetchall()
    assert len(rows) == len(answer)
    assert answer._repr_html_() and repr(answer) and len(answer.to_arrow()) == len(answer)


def test_several_questions_at_one_price(pums: Any) -> None:
    texts = [
        f"SELECT {one} FROM PUMS GROUP BY sex"
        for one in ("COUNT(*) AS n", "sex + 1 AS s, AVG(age) AS a")
    ]
    first, second = workload([pums.sql(text) for text in texts]).release(epsilon=10**6)
    assert (first.keys, second["s"]) == ((), [1, 2])
    assert [round(row.n) for row in first] == [600, 600]


def test_rare_keys_are_not_listed(pums: Any, engine: Any) -> None:
    few = engine.sql("SELECT range AS id, range < 3 AS rare FROM range(500)").to_arrow_table()
    table = lb.table(
        few, name="t", unit="id", max_rows=1, columns=[lb.Column(name="rare", type="boolean")]
    )
    answer = table.sql("SELECT DISTINCT CAST(rare AS TEXT) AS k FROM t").release(
        epsilon=1, delta="1e-9"
    )
    assert answer["k"] == ["false"]  # three units are below any threshold of this price


def test_declared_keys_alone_are_those_that_rows_have(engine: Any) -> None:
    rows = engine.sql("SELECT * FROM PUMS WHERE race <> 'black'").to_arrow_table()
    races = {"race": ["asian", "black", "white"]}
    table = lb.table(rows, name="PUMS", unit="id", max_rows=1, keys=races)
    for text in ("SELECT DISTINCT race FROM PUMS", "SELECT race FROM PUMS GROUP BY race"):
        answer = table.sql(text).release(epsilon=100)
        assert answer["race"] == ["asian", "white"]
        assert answer.cost.delta == 0


def test_each_row_a_unit(engine: Any) -> None:
    table = lb.table(engine.sql("FROM PUMS").to_arrow_table(), name="PUMS", each_row=True)
    answer = table.sql("SELECT DISTINCT race FROM PUMS").release(epsilon=5, delta="1e-9")
    assert answer["race"] == ["asian", "black", "white"]
    assert [part["part"] for part in answer.record["plan"]["parts"]] == ["keys"]


def test_a_view_is_no_part_of_equality_of_records(pums: Any) -> None:
    answer = released(pums, SAME[6])
    whole = replace(answer, view=None)
    assert whole.keys == ("race",) and whole.record is answer.record
