"""The error before you pay: near the one that comes; from recorded counts; cheaper questions."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lastbit as lb
from lastbit.release import expected
from lastbit.release.expected import expected_errors, group_rows
from lastbit.tables import planned

COLUMNS = [
    lb.Column(name="x", type="integer", bounds=(0, 99), nullable=False),
    lb.Column(name="y", type="integer", bounds=(0, 99), nullable=False),
]


def visits(**more: Any) -> Any:
    rows = duckdb.sql(
        """SELECT range // 10 AS student, range % 3 AS g, range % 2 AS h,
        hash(range) % 100 AS x, hash(range + 5) % 100 AS y FROM range(60000)"""
    )
    keys = {"g": [0, 1, 2], "h": [0, 1]}
    table = lb.table(rows, unit="student", max_rows=10, name="visits", columns=COLUMNS, keys=keys)
    return replace(table, rows=replace(table.rows, base=replace(table.rows.base, **more)))


@pytest.mark.parametrize(
    "asked",
    [
        "COUNT(*)", "SUM(x)", "AVG(x)", "VAR_POP(x)", "STDDEV_POP(x)", "CORR(x, y)",
        "COVAR_POP(x, y)", "AVG(x) - AVG(y)", "COUNT(*) FILTER (WHERE x < 50) * 1.0 / COUNT(*)",
    ],
)  # fmt: skip
def test_it_is_near_the_error_that_comes(asked: str) -> None:
    """Values are spread evenly here, so half of the width is what was expected, nearly."""
    question = visits().sql(f"SELECT g, {asked} AS d FROM visits GROUP BY g")
    plan = question.plan(epsilon=3)
    (expected,) = expected_errors(plan, 20_000).values()
    cells = [row.cell("d") for row in question.release(epsilon=3)]
    half = statistics.median((cell.high - cell.low) / 2 for cell in cells)
    assert 0.7 * half <= expected <= 1.4 * half


def test_medians_have_one_too() -> None:
    plan = visits().sql("SELECT MEDIAN(x) AS d FROM visits").plan(epsilon=3)
    few, many = (float(expected_errors(plan, rows)["d"]) for rows in (600, 60_000))
    assert 0 < many < few <= 50
    assert many == pytest.approx(few / 100, rel=0.5) or few == 49.5


def test_rows_of_a_group_are_taken_from_counts_on_record(tmp_path: Path) -> None:
    card = visits(ledger=str(tmp_path / "books.db"))
    mean = card.sql("SELECT g, AVG(x) AS m FROM visits GROUP BY g")
    assert group_rows(mean.plan(epsilon=1)) == (1000, "say")
    declared = visits(rows=60_000).sql("SELECT g, AVG(x) AS m FROM visits GROUP BY g")
    assert group_rows(declared.plan(epsilon=1)) == (20_000, "by the card")
    card.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1)
    rows, source = group_rows(mean.plan(epsilon=1))
    assert 19_000 < rows < 21_000 and source == "by a recorded count"
    card.sql("SELECT g, COUNT(*) AS n FROM visits WHERE h = 0 GROUP BY g").release(epsilon=1)
    half = card.sql("SELECT g, AVG(x) AS m FROM visits WHERE h = 0 GROUP BY g").plan(epsilon=1)
    assert 9_000 < group_rows(half)[0] < 11_000
    assert f"for a group of {group_rows(half)[0]:,} rows (by a recorded count)" in half.explain()


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT COUNT(*) AS n FROM visits", "n: COUNT(DISTINCT student) would be about"),
        ("SELECT AVG(x) AS m, SUM(y) AS s FROM visits", "s: without m it would be about"),
        ("SELECT g, h, AVG(x) AS m FROM visits GROUP BY g, h", "m: not by g it would be about"),
    ],
)
def test_cheaper_questions_are_named(sql: str, words: str) -> None:
    assert words in " ".join(visits().sql(sql).explain(epsilon=1).split())


def test_nothing_is_named_where_nothing_is_cheaper() -> None:
    text = visits().sql("SELECT AVG(x) AS m FROM visits").explain(epsilon=1)
    assert "would be about" not in text and "expect    m ± " in text


def test_many_columns_are_explained_without_a_plan_for_each_pair() -> None:
    """Failed before: every pair of columns was planned, 20 of them in half a minute."""
    rows = duckdb.sql("SELECT range AS id, range % 9 AS x FROM range(10)")
    column = {"x": lb.Column(name="x", type="integer", bounds=(0, 9))}
    table = lb.table(rows, unit="id", max_rows=1, columns=column, name="rows")
    calls = []

    def counted(*arguments: Any, **how: Any) -> Any:
        calls.append(arguments)
        return planned(*arguments, **how)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(expected, "planned", counted)
        for number in (8, 40):
            means = ", ".join(f"AVG(x + {n}) AS m{n}" for n in range(number))
            table.sql(f"SELECT {means} FROM rows").explain(epsilon=1)
            assert len(calls) == 8
