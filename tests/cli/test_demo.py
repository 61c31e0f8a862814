"""`lastbit demo`: three answers beside the truth, on a small hospital."""

from __future__ import annotations

import hashlib
from fractions import Fraction

import duckdb
import pytest

from lastbit.cli.demo import (
    QUESTIONS,
    REGIONS,
    beside_the_truth,
    coverage,
    truth,
    unseen,
    write_visits,
)
from lastbit.cli.output import Columns
from lastbit.ledger.ledger import Ledger
from lastbit.tables.plan.cost import Cost
from tests.cli.running import refused, succeeded

ROWS = "60000"
# of the rows, not of the file
FINGERPRINT = "65a64850f9c2a6b7f9c1b8ec6496669f6b284fa72f426062c2f341b482152727"


pytestmark = pytest.mark.usefixtures("folder")


def test_the_demo_asks_pays_refuses_and_checks(folder):
    page = succeeded("demo", "--rows", ROWS)
    for expected in (
        "60,000 visits",
        "Question 1 again",
        "recorded, no charge",
        "refused",
        "Nothing was charged or released",
        "3 accepted by the independent checker",
        "every entry fits",
        "Not shown",
        *REGIONS,
    ):
        assert expected in page, expected
    ledger = Ledger.existing(folder / "lastbit-demo/visits.ledger")
    paid = Cost(epsilon=Fraction(5, 2), delta=Fraction(1, 10**9))
    assert ledger.spent("visits") == paid and ledger.problems() == []
    assert "Three questions" in (folder / "lastbit-demo/report.html").read_text("utf-8")
    names = {path.name for path in (folder / "lastbit-demo").iterdir()}
    assert {"answer-1.json", "answer-2.json", "answer-3.json", "visits.toml"} <= names


@pytest.mark.evidence
def test_a_second_demo_begins_anew_and_spares_other_files(folder):
    (folder / "here").mkdir()
    (folder / "here/notes.txt").write_text("mine", "utf-8")
    succeeded("demo", "--rows", ROWS, "--dir", "here")
    succeeded("demo", "--rows", ROWS, "--dir", "here")
    assert (folder / "here/notes.txt").read_text("utf-8") == "mine"
    assert Ledger.existing("here/visits.ledger").spent("visits").epsilon == Fraction(5, 2)


def test_files_that_no_demo_made_are_spared(folder):
    (folder / "mine").mkdir()
    (folder / "mine/visits.ledger").write_text("precious", "utf-8")
    assert "no demo made" in refused("demo", "--rows", ROWS, "--dir", "mine")
    assert (folder / "mine/visits.ledger").read_text("utf-8") == "precious"
    assert "--rows" in refused("demo", "--rows", "1")


def test_the_hospital_is_the_same_everywhere(folder):
    write_visits(folder / "v.parquet", 5000)
    ordered = f"SELECT * FROM '{folder / 'v.parquet'}' ORDER BY ALL"
    rows = duckdb.connect().execute(ordered).fetchall()
    assert len(rows) == 5000
    assert hashlib.sha256(repr(rows).encode()).hexdigest() == FINGERPRINT


@pytest.mark.evidence
def test_the_hospital_is_within_its_card(folder):
    write_visits(folder / "v.parquet", 50_000)
    found = truth(
        folder / "v.parquet",
        "SELECT min(age), max(age), min(cost), min(wait), max(wait), max(n) FROM visits, "
        "(SELECT count(*) AS n FROM visits GROUP BY patient)",
        keys=0,
    )[()]
    least_age, most_age, cost, least_wait, most_wait, busiest = found
    assert least_age >= 0 and most_age <= 110 and cost >= 0
    assert least_wait >= 0 and most_wait <= 240
    assert busiest > 30  # so that the limit on rows means something
    assert set(truth(folder / "v.parquet", QUESTIONS[0].truth, keys=1)) == {(r,) for r in REGIONS}


RECORD = {
    "columns": [
        {"name": "ward", "role": "key", "function": None},
        {"name": "n", "role": "value", "function": "count"},
    ],
    "rows": [
        {
            "keys": [{"type": "text", "value": "a"}],
            "cells": [{"value": 5, "standard_error": 1.0, "low": 3, "high": 7}],
        }
    ],
}


def test_the_truth_stands_beside_the_answer():
    part = beside_the_truth(RECORD, {("a",): (6,), ("b",): (1,)})
    assert isinstance(part, Columns)
    assert part.headings == ("ward", "n", "noise", "truth")
    assert part.rows == [("a", "5", "± 2", "6")]


def test_what_is_not_shown_is_named_here_only():
    assert "b (1)" in next(unseen(RECORD, {("a",): (6,), ("b",): (1,)}))
    assert list(unseen(RECORD, {("a",): (6,)})) == []


def test_intervals_are_counted():
    assert coverage([RECORD, RECORD], [{("a",): (3,)}, {("a",): (8,)}]) == (1, 2)
