"""The register of releases: each answer once, nothing else, and nothing that a page would run."""

from __future__ import annotations

import csv
import io
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from lastbit.ledger import Ledger
from lastbit.release import record_problem
from lastbit.report import register_csv, register_page
from lastbit.tables import Budget, Cost
from tests.cli.running import lastbit, refused, succeeded
from tests.release import canaries

canary_folder = canaries.canary_folder
SQL = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"


def lines(ledger: Ledger, judged: Any = record_problem) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(register_csv(ledger, judged))))


def believed(_: object) -> None:
    """As if the checker accepted everything."""


@pytest.fixture(name="ledger")
def ledger_of_three(tmp_path: Path) -> Ledger:
    """An answer, a charge with its answer, and a price without one."""
    ledger = Ledger.open(tmp_path / "books.ledger")
    ledger.account("visits", Budget(kind="pure", epsilon=Fraction(5)))
    how: Any = {"who": "ada", "plan_digest": "p", "fingerprint": "f"}
    price = Cost(epsilon=Fraction(1, 3))
    paid = ledger.reserve("visits", price, question="q1", words="SELECT\n 1", **how)
    ledger.settle(paid, {"certificate": {"digest": "c" * 64}, "table": "stays"})
    asked = {"sql": "=HYPERLINK(1)", "query": None}
    record = {"asked": asked, "certificate": {"digest": "d" * 64}, "table": "visits"}
    ledger.charge("visits", price, question="q2", record=record, **how)
    ledger.reserve("visits", price, question="q3", words="never answered", **how)
    return ledger


def test_one_line_for_each_answer(ledger: Ledger) -> None:
    first, second = lines(ledger, believed)
    assert first["question"] == "SELECT 1" and first["price"] == "ε = 1/3"
    assert first["table"] == "stays" and second["table"] == "visits"
    assert (first["entry"], second["entry"]) == ("4", "5")
    assert first["certificate"] == "c" * 64 and second["certificate"] == "d" * 64
    assert first["principal"] == "ada" and "never answered" not in register_csv(ledger, believed)


def test_what_a_record_says_is_in_it_only_if_the_checker_accepts_it(ledger: Ledger) -> None:
    """Whoever may charge may have written it: before, table and certificate were believed."""
    first, _ = lines(ledger)
    assert first["question"] == "unreadable entry: SELECT 1" and first["table"] == "visits"
    assert first["certificate"] == "" and first["price"] == "ε = 1/3"


def test_a_spreadsheet_runs_nothing(ledger: Ledger) -> None:
    assert lines(ledger, believed)[1]["question"] == "'=HYPERLINK(1)"


def test_a_page_runs_nothing_and_says_what_is_missing(ledger: Ledger) -> None:
    how: Any = {"who": "<script>", "plan_digest": "p", "fingerprint": "f"}
    words = "<img src=x onerror=alert(1)>\x1b[31m\u202e"
    paid = ledger.reserve("visits", Cost(epsilon=Fraction(1)), question="q4", words=words, **how)
    ledger.settle(paid, {"asked": 3, "certificate": [1], "table": "<b>"})
    page = register_page(ledger, record_problem)
    assert page.startswith("<!doctype html>") and ledger.head in page
    for hostile in ("<img", "<script", "<b>", "\x1b", "\u202e"):
        assert hostile not in page
    assert "Charged and not answered: 1." in page
    assert page.index("&lt;img") < page.index("SELECT 1")  # newest first


def test_an_empty_ledger_has_an_empty_register(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "books.ledger")
    assert lines(ledger) == [] and "Nothing has been released." in register_page(
        ledger, record_problem
    )


def test_on_the_command_line(folder: Path) -> None:
    succeeded("query", "visits.toml", SQL, "--epsilon", "1")
    command = ("ledger", "export", "visits.ledger", "--format")
    assert succeeded(*command, "csv", "--out", "r.csv") == ""
    (one,) = csv.DictReader(io.StringIO(Path("r.csv").read_text("utf-8")))
    assert one["question"] == SQL and one["table"] == "visits" and len(one["certificate"]) == 64
    assert "exists" in refused(*command, "csv", "--out", "r.csv")
    page = lastbit(*command, "html").stdout
    assert "GROUP BY region" in page and one["certificate"][:12] in page
    assert "--format" in refused(*command, "pdf")


def test_python_questions_are_told_by_what_they_ask(folder: Path) -> None:
    import lastbit as lb

    table = lb.table("visits.toml").group_by("region").agg(n=lb.count())
    table.release(epsilon=1)
    assert lines(Ledger.existing("visits.ledger"))[0]["question"] == "n by region"
