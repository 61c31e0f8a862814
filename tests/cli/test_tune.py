"""`lastbit card tune`: max_rows and bounds for a card, and what later answers say of it."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from lastbit.cli.tune import edited
from lastbit.errors import InvalidParameter
from lastbit.tables import read_card
from tests.cli.running import read, refused, succeeded

CARD = """
[table]
name = "visits"
source = "visits.parquet"
neighbours = "add-remove"
[unit]
column = "id"
max_rows = 3      # a guess
[budget]
epsilon = 40
[ledger]
path = "visits.ledger"
[columns.id]
type = "integer"
[columns.cost]    # in euros
type = "number"
"""
TUNE = ("card", "tune", "visits.toml", "--epsilon", "12")
COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    duckdb.sql(
        "COPY (SELECT range // 10 AS id, (range % 90)::DOUBLE AS cost FROM range(20_000))"
        " TO 'visits.parquet'"
    )
    Path("visits.toml").write_text(CARD)
    return tmp_path


def test_a_card_is_tuned_and_written() -> None:
    shown = succeeded(*TUNE, "--column", "cost", "--write")
    for words in (
        "rows that count",
        "max_rows = 11",
        "bounds = [0, 96]",
        "12 spent, 28 left of 40",
    ):
        assert words in shown
    text = Path("visits.toml").read_text()
    assert "max_rows = 11      # a guess" in text and "[columns.cost]    # in euros\nbounds" in text
    card = read_card(Path("visits.toml"))
    assert card.max_rows == 11 and list(card.column("cost").bounds or ()) == [0, 96]
    succeeded("query", "visits.toml", COUNT, "--epsilon", "1", "--out", "answer.json")
    whole = json.loads(Path("answer.json").read_text("utf-8"))["whole"]
    assert whole["columns"]["n"]["share"]["value"] == 1
    again = succeeded(*TUNE, "--column", "cost")
    assert "no charge" in again and "--write puts them into visits.toml" in again


def test_the_json_has_answers_that_can_be_checked() -> None:
    found = read(*TUNE, "--price", "0.5", "--groups", "2")
    assert found["max_rows"] == 11 and found["lines"] == {"[unit]": "max_rows = 11"}
    Path("answer.json").write_text(json.dumps(found["answer"]))
    succeeded("check", "answer.json")
    four = next(option for option in found["options"] if option["max_rows"] == 4)
    assert four["share"][1] <= 0.4 <= four["share"][2]


def test_the_share_beside_an_answer_is_bought() -> None:
    asked = ("query", "visits.toml", COUNT, "--epsilon")
    shown = " ".join(succeeded(*asked, "1", "--kept").split())
    assert "For ε = 0.05 more, lastbit also estimated" in shown
    succeeded(*asked, "0.9", "--fresh")
    assert "1.95 spent" in succeeded("budget", "visits.toml")


@pytest.mark.parametrize(
    "asked",
    [
        "card tune visits.toml",
        "card tune visits.toml --epsilon 1 --no-max-rows",
        "card tune visits.toml --epsilon 1 --column cost --between 5",
        "card tune visits.toml --epsilon 1 --column nothing",
        "query visits.toml --marginals cost --epsilon 1 --kept",
    ],
)
def test_what_is_refused_costs_nothing(asked: str) -> None:
    refused(*asked.split())
    assert not Path("visits.ledger").exists()


def test_a_card_that_cannot_be_edited_is_refused_before_it_is_paid() -> None:
    unit = '[unit]\ncolumn = "id"\nmax_rows = 3      # a guess\n'
    Path("visits.toml").write_text(
        'unit = {column = "id", max_rows = 3}\n' + CARD.replace(unit, "")
    )
    assert "paste" in refused(*TUNE, "--write")
    assert not Path("visits.ledger").exists()


def test_lines_are_edited_and_nothing_else() -> None:
    assert edited("[a]\nmax_rows = 1\n[unit]\nx = 2\n", ("unit",), "max_rows = 8") == (
        "[a]\nmax_rows = 1\n[unit]\nmax_rows = 8\nx = 2\n"
    )
    assert edited('[columns."a"]\nbounds = [0, 1] # x\n', ("columns", "A"), "bounds = [0, 2]") == (
        '[columns."a"]\nbounds = [0, 2] # x\n'
    )
    for text in ("[columns.a]\nbounds = [\n 0, 1]\n", "[columns]\na = {}\n"):
        with pytest.raises(InvalidParameter):
            edited(text, ("columns", "a"), "bounds = [0, 2]")
