"""One question opens its ledger and its database once or twice, not for every step."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import polars
import pytest

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
    assert counts["sqlite3"] <= 3 and counts["duckdb"] <= 2, counts


def _counted(library: Any, counts: dict[str, int]) -> Any:
    connect = library.connect

    def counted(*given: Any, **others: Any) -> Any:
        counts[library.__name__] += 1
        return connect(*given, **others)

    return counted
