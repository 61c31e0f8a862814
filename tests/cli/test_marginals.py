"""`lastbit query --marginals`: contingency tables, paid once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import lastbit, succeeded

CARD = """
[table]
name = "survey"
source = "survey.csv"
neighbours = "add-remove"
[unit]
each_row = true
[budget]
epsilon = 2
[ledger]
path = "survey.ledger"
[columns.region]
type = "text"
keys = ["north", "south"]
[columns.sex]
type = "text"
keys = ["f", "m"]
[columns.age]
type = "integer"
bounds = [0, 100]
[columns.town]
type = "text"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = ["region,sex,age,town"]
    for i in range(900):
        lines.append(f"{('north', 'south')[i % 2]},{('f', 'm')[i // 2 % 2]},{i % 90},t{i}")
    Path("survey.csv").write_text("\n".join(lines) + "\n", "utf-8")
    Path("survey.toml").write_text(CARD, "utf-8")
    return tmp_path


COLUMNS = "region,sex,band=bin(age, 0, 18, 65, 100)"
ASKED = ("query", "survey.toml", "--marginals", COLUMNS, "--epsilon", "1")


def test_tables_are_shown_with_their_sums_and_paid_once() -> None:
    shown = succeeded(*ASKED)
    assert "one-way and two-way tables of region, sex, band" in shown
    assert "region / sex" in shown and "region / band" in shown and "ε = 1" in shown
    assert "recorded, no charge" in succeeded(*ASKED)
    account = json.loads(succeeded(*ASKED, "--json"))["account"]
    assert account["spent"]["epsilon"] == "1"


def test_files_are_written_and_checked() -> None:
    succeeded(*ASKED, "--out", "tables.json", "--report", "tables.html")
    assert "ACCEPTED" in succeeded("check", "tables.json")
    page = Path("tables.html").read_text("utf-8")
    assert page.count('<svg class="chart heat"') == 6
    succeeded(*ASKED, "--out", "tables.csv")
    assert Path("tables.csv").read_text("utf-8").startswith("table,region,sex,band,count,")


def test_the_plan_is_shown_before_anything_is_charged() -> None:
    shown = succeeded(*ASKED, "--explain", "--weights", "region:sex=2")
    assert "(region:sex)" in shown and "Nothing has been read or charged." in shown
    assert "It can be asked" in succeeded(*ASKED, "--dry-run")
    assert not Path("survey.ledger").exists()


def test_pairs_are_chosen() -> None:
    shown = succeeded(*ASKED, "--pairs", "1", "--out", "tables.json")
    assert "1 of 3 two-way tables were chosen privately" in " ".join(shown.split())
    assert "ACCEPTED" in succeeded("check", "tables.json")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--marginals", "town"), "declare its keys"),
        (("--marginals", ","), "names no column"),
        (("--marginals", "sex,sex"), "twice"),
        (("--marginals", "sex", "--within", "5"), "--within"),
        (("--marginals", "sex", "--no-intervals"), "--no-intervals"),
        (("--marginals", "sex", "--out", "x.parquet"), ".csv or .json"),
        (("SELECT COUNT(*) FROM survey", "--marginals", "sex"), "exactly one"),
        (("SELECT COUNT(*) FROM survey", "--pairs", "1"), "is for --marginals"),
        (("--marginals", "sex,region", "--pairs", "0"), "pairs"),
        ((), "exactly one"),
    ],
)
def test_what_cannot_be_asked_is_refused(arguments: tuple[str, ...], words: str) -> None:
    result = lastbit("query", "survey.toml", *arguments, "--epsilon", "1")
    assert result.exit_code != 0
    assert words in " ".join(result.output.split())
    assert not Path("survey.ledger").exists()
