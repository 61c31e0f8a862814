"""`lastbit levels`: counts that add up on several levels, paid once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import lastbit, read, refused, succeeded

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
[columns.district]
type = "text"
[columns.sex]
type = "text"
keys = ["f", "m"]
[public.areas]
source = "areas.csv"
columns = {code = "text", region = "text"}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = ["district,sex"]
    lines += [f"{'abc'[i % 3]},{'fm'[i % 2]}" for i in range(3000)]
    Path("survey.csv").write_text("\n".join(lines) + "\n", "utf-8")
    Path("areas.csv").write_text("code,region\na,north\nb,north\nc,south\n", "utf-8")
    Path("survey.toml").write_text(CARD, "utf-8")
    return tmp_path


ASKED = ("levels", "survey.toml", "region", "district", "--public", "areas", "--on")


def test_plan_is_shown_and_nothing_is_paid() -> None:
    shown = succeeded(*ASKED, "district=code", "--epsilon", "1", "--explain")
    assert "price     epsilon = 1 for all levels" in shown and "district" in shown
    assert not Path("survey.ledger").exists()


def test_numbers_are_shown_kept_and_checked() -> None:
    kept = ("--save", "kept", "--csv", "out.csv")
    shown = succeeded(*ASKED, "district=code", "--epsilon", "1", *kept)
    assert shown.startswith("all\n") and "north" in shown
    assert len(Path("out.csv").read_text("utf-8").splitlines()) == 1 + 1 + 2 + 3
    for number in range(3):
        assert lastbit("check", f"kept/{number}.json").exit_code == 0
    again = read(*ASKED, "district=code", "--epsilon", "1")
    numbers = {row["district"] or row["region"]: row["value"] for row in again["rows"]}
    assert numbers[None] == numbers["north"] + numbers["south"]
    assert numbers["north"] == numbers["a"] + numbers["b"] and numbers["south"] == numbers["c"]
    assert json.loads(Path("kept/1.json").read_text("utf-8"))["cost"]["epsilon"] != "1"
    crossed = read("levels", "survey.toml", "sex", "--epsilon", "1", "--where", "district = 'a'")
    assert [row["sex"] for row in crossed["rows"]] == [None, "f", "m"]


def test_refused() -> None:
    assert "--on is no pair" in refused(*ASKED, "district", "--epsilon", "1")
    assert "--epsilon is missing" in refused(*ASKED, "district=code")
    words = refused("levels", "survey.toml", "district", "--epsilon", "1")
    assert "has no declared keys" in words
