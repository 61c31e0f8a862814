"""Plans and tables in notebooks: what is declared and priced, escaped, and nothing of the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import lastbit as lb

CANARY = "canary-73211"


@pytest.fixture
def visits(folder: Path) -> Any:
    rows = f"SELECT range // 3 AS patient, '{CANARY}' AS region, range % 90 AS cost FROM range(300)"
    duckdb.execute(f"COPY ({rows}) TO 'visits.parquet'")
    keys = ["<b>north</b>", *(f"k{place}" for place in range(9))]
    columns = {
        "cost": {"type": "integer", "bounds": [0, 90]},
        "region": {"type": "text", "keys": keys},
    }
    return lb.table("visits.parquet", unit="patient", max_rows=3, columns=columns)


def test_a_table_shows_what_is_declared(visits: Any) -> None:
    shown = visits._repr_html_()
    assert CANARY not in shown and "<b>north" not in shown and "&lt;b&gt;north" in shown
    assert "0 to 90" in shown and "and 4 more" in shown and "rows belong to patient" in shown
    assert "by region" in visits.group_by("region").agg(n=lb.count())._repr_html_()


def test_a_plan_shows_price_and_noise(visits: Any) -> None:
    plan = visits.group_by("region").agg(n=lb.count(), cost=lb.mean("cost")).plan(epsilon=1)
    shown = plan._repr_html_()
    assert CANARY not in shown and "Nothing has been read or charged" in shown
    assert "<th style='text-align:left'>mechanism</th>" in shown and "ε = 1" in shown
    assert shown.count("<tr>") >= 3  # headings, the count and the mean's sum
    marginals = visits.marginals("region").plan(epsilon=1)
    assert "for the whole answer" in marginals._repr_html_()


def test_a_table_without_bounds_and_each_row_a_unit(folder: Path) -> None:
    duckdb.execute("COPY (SELECT range AS x FROM range(9)) TO 'x.parquet'")
    assert "each row is a unit" in lb.table("x.parquet", each_row=True)._repr_html_()
