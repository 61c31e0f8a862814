"""What was released is shown again in any other shape for free, and nothing else is."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lastbit as lb
from lastbit.checker import problem_of
from lastbit.ledger import Ledger
from lastbit.tables import Cost

ROWS = (
    "SELECT range // 2 AS id, (range % 10)::DOUBLE AS cost, range % 5 AS wait, "
    "['n', 's', 'e', 'w'][1 + range % 4] AS region, range % 2 = 0 AS urgent FROM range(4000)"
)
ALL = "SELECT region, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY region"
BOOKS = "visits.ledger"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    duckdb.sql(f"COPY ({ROWS}) TO 'visits.parquet'")
    return tmp_path


def visits(**more: Any) -> Any:
    given: dict[str, Any] = {
        "unit": "id",
        "max_rows": 2,
        "keys": {"region": ["n", "s", "e", "w"]},
        "columns": {"cost": lb.Column(name="cost", type="number", bounds=(0, 9), nullable=False)},
    }
    return lb.table("visits.parquet", **(given | more))


def ask(sql: str, epsilon: Any = 1, table: Any = None, **more: Any) -> lb.release.Answer:
    return (table or visits()).sql(sql).release(epsilon=epsilon, ledger=BOOKS, **more)


def spent() -> Any:
    return Ledger.open(BOOKS).spent("visits").epsilon


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT region AS place, COUNT(*) AS rows_, AVG(cost) AS mean FROM visits GROUP BY place",
        "select  region,\n count(*) n, avg(cost) cost from visits group by 1 -- a comment",
        f"{ALL} ORDER BY n DESC",
        f"{ALL} LIMIT 2",
        f"{ALL} HAVING n > 1000 AND cost > 2 ORDER BY cost LIMIT 3",
        "SELECT AVG(cost) AS c, COUNT(*) AS k, region FROM visits GROUP BY region",
        "SELECT region, COUNT(*) AS n FROM visits GROUP BY region",
        "SELECT region, AVG(cost) AS cost FROM visits GROUP BY region HAVING cost > 100",
    ],
)
def test_the_same_numbers_in_another_shape_are_free(sql):
    first = ask(ALL)
    again = ask(sql, epsilon="1/2")  # less noise than that is on record
    assert first.charged and not again.charged and spent() == 1
    query = visits().sql(sql).query
    assert again.keys == tuple(key.name for key in query.keys)
    assert again.columns == tuple(part.name for part in query.aggregates)
    known = {row.region: row for row in first}
    for row in again:
        old = known[row.keys[0]]
        for part, cell in zip(query.aggregates, row.cells, strict=True):
            assert cell == old.cell("n" if part.function == "count" else "cost")
    assert any("From the record" in note for note in again.notes)


def test_conditions_order_and_limit_are_those_asked_for():
    first = {row.region: row.n for row in ask(ALL)}
    most = sorted(first.values())[-2]
    again = ask(f"{ALL} HAVING n >= {most} ORDER BY n")
    assert again["n"] == sorted(n for n in first.values() if n >= most)
    assert [first[region] for region in again["region"]] == again["n"]
    assert len(ask(f"{ALL} HAVING n > 10000000")) == 0
    assert spent() == 1


@pytest.mark.parametrize(
    ("first", "second", "free"),
    [
        (f"{ALL} HAVING n > 5", f"{ALL} HAVING n > 5", True),
        (f"{ALL} HAVING n > 5", f"{ALL} HAVING n > 5 AND cost > 1 LIMIT 1", True),
        (f"{ALL} HAVING n > 5", ALL, False),  # rows that were cut off are not on record
        (f"{ALL} HAVING n > 5", f"{ALL} HAVING n > 4", False),
        (f"{ALL} HAVING n > 5", f"{ALL} HAVING cost > 5", False),
        (f"{ALL} ORDER BY n LIMIT 2", f"{ALL} ORDER BY n LIMIT 1", True),
        (f"{ALL} ORDER BY n LIMIT 2", f"{ALL} ORDER BY n LIMIT 3", False),
        (f"{ALL} ORDER BY n LIMIT 2", f"{ALL} ORDER BY n", False),
        (f"{ALL} ORDER BY n LIMIT 2", f"{ALL} ORDER BY n DESC LIMIT 1", False),
        (f"{ALL} ORDER BY n LIMIT 2", f"{ALL} HAVING n > 5 ORDER BY n LIMIT 1", False),
        (f"{ALL} LIMIT 0", f"{ALL} LIMIT 0", True),
    ],
)
def test_a_record_that_was_cut_serves_the_same_cut_or_a_stricter_one(first, second, free):
    ask(first)
    assert ask(second, epsilon="9/10").charged is not free


@pytest.mark.parametrize(
    "sql",
    [
        ALL.replace("AVG(cost)", "AVG(clamp(cost, 0, 8))"),
        ALL.replace("FROM visits", "FROM visits WHERE wait > 1"),
        ALL.replace("COUNT(*)", "COUNT(DISTINCT id)"),
        ALL.replace("COUNT(*) AS n", "SUM(cost) AS n"),
        "SELECT COUNT(*) AS n FROM visits",
        "SELECT urgent, COUNT(*) AS n FROM visits GROUP BY urgent",
        "SELECT region, urgent, COUNT(*) AS n FROM visits GROUP BY region, urgent",
    ],
)
def test_another_question_is_charged(sql):
    ask(ALL)
    assert ask(sql, epsilon="1/10").charged


def test_less_noise_than_on_record_is_charged():
    """A part of a record is noisier than what the whole price buys for that part alone."""
    ask(ALL)
    alone = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
    assert ask(alone, epsilon=1).charged
    assert not ask(alone, epsilon="1/2").charged
    assert ask(ALL, epsilon=2).charged
    assert not ask(ALL, epsilon="3/2").charged


def test_fresh_noise_is_charged():
    ask(ALL)
    assert ask(f"{ALL} ORDER BY n", fresh=True).charged and spent() == 2


@pytest.mark.parametrize(
    "change",
    [
        {"max_rows": 1},
        {"keys": {"region": ["n", "s"]}},
    ],
)
def test_another_card_is_charged(change):
    ask(ALL)
    assert ask(f"{ALL} ORDER BY n", epsilon="1/100", table=visits(**change)).charged


def test_other_data_are_charged(folder):
    ask(ALL)
    duckdb.sql(f"COPY ({ROWS} LIMIT 3999) TO 'visits.parquet'")
    assert ask(f"{ALL} ORDER BY n", epsilon="1/100").charged


def test_types_matter():
    """Text 007 and the number 7 are other rows."""
    duckdb.sql("COPY (SELECT range AS id, '00' || range % 9 AS code FROM range(900)) TO 'c.csv'")
    texts = lb.table("c.csv", unit="id", max_rows=1, name="visits", columns={"code": "text"})
    whole = lb.table("c.csv", unit="id", max_rows=1, name="visits", columns={"code": "integer"})
    sql = "SELECT COUNT(code) AS n FROM visits"
    ask(sql, table=texts)
    assert not ask(f"{sql} LIMIT 1", table=texts).charged
    assert ask(f"{sql} LIMIT 1", table=whole).charged


def test_found_keys_and_histograms():
    table = visits(keys={})
    sql = "SELECT region, COUNT(*) AS n, HISTOGRAM(cost, 0, 5, 9) AS h FROM visits GROUP BY region"
    first = table.sql(sql).release(epsilon=2, delta="1e-6", ledger=BOOKS)
    again = "SELECT HISTOGRAM(cost, 0, 5, 9) AS bins, region AS r FROM visits GROUP BY region"
    second = table.sql(again).release(epsilon="1/2", delta="1e-7", ledger=BOOKS)
    assert not second.charged and second.columns == ("bins [0, 5)", "bins [5, 9]")
    assert second["bins [0, 5)"] == first["h [0, 5)"]


def test_what_is_saved_is_the_whole_record_and_checks(folder):
    first = ask(ALL)
    again = ask("SELECT region AS r, COUNT(*) AS k FROM visits GROUP BY r ORDER BY k", "1/3")
    assert "k" in again.to_csv() and "cost" not in again.to_csv()
    assert "k by r" in again._repr_html_() or "k" in str(again)
    again.save("again.json")
    assert problem_of(lb.release.Answer.load("again.json").record) is None
    assert again.record == first.record and again.certificate == first.certificate
    assert again.consistent().totals == {"k": sum(again.consistent()["k"])}
    again.report("again.html", title="k")


def test_a_record_that_another_program_wrote_is_passed_by():
    ask(ALL)
    books = Ledger.open(BOOKS)
    paid = books.reserve(
        "visits",
        Cost(epsilon=Fraction(1)),
        who=None,
        question="q",
        plan_digest="p",
        fingerprint="f",
    )
    books.settle(paid, {"rows": 3})
    assert not ask(f"{ALL} ORDER BY n", epsilon="1/2").charged


def test_formulas_are_asked_by_themselves():
    """A derived column is not looked for in records, and does not keep others from being found."""
    ask(ALL)
    assert ask("SELECT region, SUM(cost) / COUNT(*) AS m FROM visits GROUP BY region").charged
    assert not ask(f"{ALL} LIMIT 1", epsilon="1/2").charged


def test_marginals_and_counts_are_other_questions():
    """Both ask for a count by the same columns; what they release is not the same."""
    counted = "SELECT region, urgent, COUNT(*) AS n FROM visits GROUP BY region, urgent"
    tables = visits().marginals(["region", "urgent"])
    assert tables.release(epsilon=1, ledger=BOOKS).charged
    assert ask(counted, epsilon="1/100").charged
    assert tables.release(epsilon="1/2", ledger=BOOKS).charged
