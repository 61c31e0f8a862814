"""One question opens its ledger and its database once or twice, not for every step."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest

from lastbit.kernel import answering
from lastbit.kernel.noise import noisy_numbers
from tests.cli.running import succeeded

CARD = """
[table]
name = "visits"
source = "visits.parquet"
neighbours = "add-remove"
[unit]
column = "patient"
max_rows = 3
[budget]
epsilon = 2
[columns.patient]
type = "integer"
[columns.cost]
type = "number"
bounds = [0, 500]
"""


@pytest.mark.parametrize("new", [True, False], ids=["new ledger", "old ledger"])
def test_a_question_opens_few_connections(
    new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    frame = polars.DataFrame({"patient": range(90), "cost": [float(i) for i in range(90)]})
    frame.write_parquet("visits.parquet")
    Path("visits.toml").write_text(CARD, "utf-8")
    ask = ["query", "visits.toml", "SELECT COUNT(*) AS n, AVG(cost) AS c FROM visits", "--epsilon"]
    if not new:
        succeeded(*ask, "1/2")
    counts = {}
    for library in (sqlite3, duckdb):
        counts[library.__name__] = 0
        monkeypatch.setattr(library, "connect", _counted(library, counts))
    succeeded(*ask, "1")
    assert counts["sqlite3"] <= (5 if new else 3) and counts["duckdb"] <= 2, counts


def _counted(library: Any, counts: dict[str, int]) -> Any:
    connect = library.connect

    def counted(*given: Any, **others: Any) -> Any:
        counts[library.__name__] += 1
        return connect(*given, **others)

    return counted


def test_no_copy_of_the_rows_is_left_when_they_have_been_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process would leave it to whoever reads the disk."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spill").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spill"))
    Path("visits.csv").write_text("patient,cost\n" + "1,2.5\n2,4\n" * 50, "utf-8")
    Path("visits.toml").write_text(CARD.replace("visits.parquet", "visits.csv"), "utf-8")
    seen: list[list[Path]] = []

    def looked(*given: Any) -> Any:
        seen.append([path for path in Path("spill").rglob("*") if path.is_file()])
        return noisy_numbers(*given)

    monkeypatch.setattr(answering, "noisy_numbers", looked)
    succeeded("query", "visits.toml", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "1")
    assert seen == [[]]


def test_a_folder_that_was_cleared_away_does_not_cost_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As systems do with old temporary files: the rows have been counted, and the price is paid."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spill").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spill"))
    polars.DataFrame({"patient": [1, 2], "cost": [1.0, 2.0]}).write_parquet("visits.parquet")
    Path("visits.toml").write_text(CARD, "utf-8")

    def cleared(*given: Any) -> Any:
        for folder in Path("spill").iterdir():
            shutil.rmtree(folder)
        return noisy_numbers(*given)

    monkeypatch.setattr(answering, "noisy_numbers", cleared)
    succeeded("query", "visits.toml", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "1")
