"""Answers: exports, tables for people, and the way back from a file."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lastbit.errors import LastbitError
from lastbit.release.answer import Answer
from lastbit.release.intervals import Cell
from lastbit.report.answer import table_of
from lastbit.tables.plan.cost import Cost
from lastbit.tables.plan.plan import planned
from lastbit.tables.query.expression import ColumnName, Constant
from lastbit.tables.query.query import Query
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.writing import to_json
from tests.report.answer_records import card, count, mean
from tests.tables.csv_oracles import ours

HOSTILE = "<script>'\"\n,\x1b[31m"


def plan_of() -> dict[str, Any]:
    """The question and the plan of a real question with these columns."""
    keys = (
        GroupKey(name="region", expression=ColumnName("region")),
        GroupKey(name="day", expression=ColumnName("cost")),
    )
    query = Query(table="visits", aggregates=(count(), mean("n_low")), keys=keys)
    each_row = card(unit=None, max_rows=1, max_groups=None)
    plan = planned(query, each_row, epsilon="1/3", delta="1e-9")
    return {"asked": {"query": query.to_json()}, "plan": plan.to_json()}


def record_of(rows: list[tuple[list[Any], list[Any]]], **values: Any) -> dict[str, Any]:
    return {
        "columns": [
            {"name": "region", "role": "key", "function": None},
            {"name": "day", "role": "key", "function": None},
            {"name": "n", "role": "value", "function": "count"},
            {"name": "n_low", "role": "value", "function": "mean"},
        ],
        "rows": [
            {"keys": [to_json(Constant(k)) for k in keys], "cells": cells} for keys, cells in rows
        ],
        "cost": Cost(epsilon=Fraction(1, 3)).to_json(),
        "guarantee": "epsilon = 1/3 differential privacy for one row more or less",
        "notes": ["A note."],
        "certificate": {"format": "pretended"},
        **plan_of(),
    } | values


def cell(value: Any, low: Any, high: Any) -> dict[str, Any]:
    return {"value": value, "standard_error": 1.5, "low": low, "high": high}


ROWS: list[tuple[list[Any], list[Any]]] = [
    (["north", date(2024, 1, 31)], [cell(1234, 1200, 1268), cell(2.5, 2.0, 3.25)]),
    ([HOSTILE, None], [cell(-3, -40, 34), cell(None, 0.0, 16.0)]),
]
ANSWER = Answer(record_of(ROWS))
NAMES = ["region", "day", "n", "n_se", "n_low_", "n_high", "n_low", "n_low_se", "n_low_low",
         "n_low_high"]  # fmt: skip


def test_what_is_in_it() -> None:
    assert ANSWER.keys == ("region", "day") and ANSWER.columns == ("n", "n_low")
    assert len(ANSWER) == 2 and ANSWER["n"] == [1234, -3] and ANSWER["region"][0] == "north"
    assert ANSWER.rows[0].keys == ("north", date(2024, 1, 31))
    assert ANSWER.rows[1].cells[1] == Cell(None, 1.5, 0.0, 16.0)
    assert ANSWER.cost == Cost(epsilon=Fraction(1, 3)) and ANSWER.totals is None
    assert "rows of region, day, n, n_low" in repr(ANSWER)
    for wrong in (lambda: ANSWER["x"], lambda: ANSWER.value, lambda: Answer({})):
        with pytest.raises(LastbitError):
            wrong()


def test_names_of_exports_are_unique() -> None:
    found = ANSWER.to_dicts()
    assert list(found[0]) == NAMES
    assert found[0]["n_low_"] == 1200 and found[0]["n_low"] == 2.5 and found[1]["n_low"] is None


def test_frames() -> None:
    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    frame = ANSWER.to_polars()
    assert frame.columns == NAMES and frame["n"].to_list() == [1234, -3]
    assert frame["n"].dtype == polars.Int64 and frame["day"].dtype == polars.Date
    assert frame["region"].to_list()[1] == HOSTILE
    assert polars.DataFrame(ANSWER).equals(frame)
    assert list(ANSWER.to_pandas()["n_low"].isna()) == [False, True]
    assert isinstance(ANSWER.to_pandas(), pandas.DataFrame)
    assert ANSWER.to_arrow().num_rows == 2 and isinstance(ANSWER.to_arrow(), pyarrow.Table)


def test_an_answer_without_rows_has_its_columns() -> None:
    polars = pytest.importorskip("polars")
    empty = Answer(record_of([]))
    assert polars.DataFrame(empty).columns == NAMES and len(empty.to_pandas()) == 0
    assert str(empty).startswith("No group is shown") and empty.to_csv().count("\n") == 1


def test_arrow_needs_no_other_library(tmp_path: Path) -> None:
    ANSWER.save(tmp_path / "a.json")
    program = (
        "import sys\n"
        "for name in ('pyarrow', 'pandas', 'polars'): sys.modules[name] = None\n"
        "from lastbit.release.answer import Answer\n"
        f"answer = Answer.load({str(tmp_path / 'a.json')!r})\n"
        "print(type(answer.__arrow_c_stream__()).__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "PyCapsule"


def test_files(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    text = ANSWER.to_csv(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text("utf-8") == text
    assert text.splitlines()[1] == "north,2024-01-31,1234,1.5,1200,1268,2.5,1.5,2.0,3.25"
    ANSWER.to_parquet(tmp_path / "a.parquet")
    rows = duckdb.sql(f"SELECT n, n_low FROM '{tmp_path / 'a.parquet'}'").fetchall()
    assert rows == [(1234, 2.5), (-3, None)]
    ANSWER.save(tmp_path / "a.json")
    assert Answer.load(tmp_path / "a.json").record == ANSWER.record
    assert json.loads(ANSWER.to_json()) == ANSWER.record


FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "'=1", "''=1")
PLAIN = ("'s-Hertogenbosch", "north", "a=1", "'", "a\rb", '"=1"')


def test_no_key_of_a_csv_file_is_taken_for_a_formula_and_every_one_can_be_read_back() -> None:
    numbers = [cell(-3, -40, 34), cell(-2.5, -3.0, 3.25)]
    record = record_of([([key, None], numbers) for key in (*FORMULAS, *PLAIN)])
    record["columns"][2]["name"] = "=HYPERLINK(1)"
    text = Answer(record).to_csv()
    names, *found = ours(text.encode(), 10)
    keys = [str(row[0]) for row in found]
    assert names[2] == "'=HYPERLINK(1)" and {row[2] for row in found} == {"-3"}
    assert keys == [*(f"'{key}" for key in FORMULAS), *PLAIN]
    undone = [re.sub(r"^'('*[=+\-@\t\r\n＝＋－＠])", r"\1", key) for key in keys]
    assert undone == [*FORMULAS, *PLAIN]
    assert [row[:1] for row in csv.reader(io.StringIO(text, newline=""))][1:] == [[k] for k in keys]


def test_huge_counts_and_other_keys() -> None:
    pytest.importorskip("polars")
    keys: list[list[Any]] = [[True, 2**40], [None, -1]]
    rows = [(k, [cell(10**30, 0, 10**31), cell(1.0, 0.0, 2.0)]) for k in keys]
    frame = Answer(record_of(rows)).to_polars()
    assert frame["n"].to_list() == [1e30, 1e30] and frame["day"].to_list() == [2**40, -1]
    assert frame["region"].to_list() == [True, None]


def test_a_table_for_people() -> None:
    lines = str(ANSWER).splitlines()
    assert lines[0].split() == ["region", "day", "n", "noise", "n_low", "noise"]
    assert lines[2].split()[2:] == ["1,234", "±", "34", "2.50", "2.00", "to", "3.25"]
    assert "\x1b" not in str(ANSWER) and lines[3].split()[-4:] == ["unknown", "0", "to", "16"]
    promise = lines.index("epsilon = 1/3 differential privacy for one row more or less")
    assert lines[promise + 1] == "- A note."
    assert all(line.startswith("- ") for line in lines[promise + 1 : -1])
    assert lines[-1] == "1 more note: answer.notes"
    many = Answer(record_of(ROWS[:1] * 100))
    assert "... and 60 more rows" in str(many)
    total = Answer(record_of(ROWS[:1], totals=[1234, None]))
    assert "total of n: 1,234" in str(total) and total.totals == {"n": 1234}


def test_it_reads_like_the_report() -> None:
    table = table_of(ANSWER.record, width=100, most=40)
    for row, line in zip(table.rows, str(ANSWER).splitlines()[2:], strict=False):
        assert line.split() == " ".join(row).split()


def test_a_table_for_a_notebook() -> None:
    html = ANSWER._repr_html_()
    assert "<script>" not in html and "&lt;script&gt;" in html
    assert ">1,234<" in html and ">± 34<" in html and "<li>A note.</li>" in html
