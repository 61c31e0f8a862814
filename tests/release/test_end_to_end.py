"""From a table on disk to an answer: the real engine, the real noise, the exact law."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import lastbit as lb
from lastbit.errors import EngineFailed, InvalidParameter
from lastbit.kernel.noise import noisy_numbers
from lastbit.laws.discrete import DiscreteLaplace
from lastbit.ledger.ledger import Ledger
from lastbit.release.certifying import program_of
from lastbit.release.release import released
from lastbit.tables.card.budget import Budget
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.plan.plan import planned
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.query.rules import call
from lastbit.tables.query.scan import GroupKey
from tests.evidence import Extent
from tests.laws.frequency import assert_frequency, suspicious
from tests.release.pretend import seed

duckdb = pytest.importorskip("duckdb")

BOUNDS = (Fraction(0), Fraction(500))


@pytest.fixture
def card(tmp_path: Path) -> DataCard:
    """4000 visits of 1000 patients, four each; costs 0 ... 399 without end; two regions."""
    path = tmp_path / "visits.parquet"
    duckdb.sql(
        "COPY (SELECT range // 4 AS patient, range % 400 + 0.5 AS cost, "
        "CASE WHEN (range // 4) % 4 = 0 THEN 'north' ELSE 'south' END AS region "
        f"FROM range(4000)) TO '{path}'"
    )
    columns = {
        "patient": Column(name="patient", type="integer"),
        "cost": Column(name="cost", type="number", bounds=BOUNDS),
        "region": Column(name="region", type="text"),
    }
    return DataCard(
        name="visits",
        source=Source(kind="parquet", paths=(str(path),)),
        unit="patient",
        max_rows=4,
        max_groups=2,
        columns=columns,
        budget=Budget(kind="approx", epsilon=Fraction(1000), delta=Fraction(1, 1000)),
        ledger=str(tmp_path / "hospital.ledger"),
    )


def asked(function: str, name: str, **values: Any) -> Aggregate:
    if function not in ("count", "count_units"):
        values |= {"expression": ColumnName("cost"), "nullable": False}
    if function not in ("count", "count_units", "histogram"):
        values.setdefault("bounds", BOUNDS)
    return Aggregate(name=name, function=function, **values)  # type: ignore[arg-type]


ALL = (
    asked("count", "n"),
    asked("count_units", "patients"),
    asked("sum", "total"),
    asked("mean", "cost"),
    asked("std", "spread"),
    asked("quantile", "median", level=Fraction(1, 2)),
    asked("min", "least"),
    asked("max", "most"),
    asked("histogram", "costs", edges=(Fraction(0), Fraction(100), Fraction(400))),
)
TRUTH = {
    "n": 3000, "patients": 750, "total": 3000 * 200, "cost": 200, "spread": 115.5, "median": 200,
    "costs [0, 100)": 720, "costs [100, 400]": 2280,
}  # fmt: skip


@pytest.mark.parametrize("found", [False, True], ids=["declared", "found"])
def test_every_function(card: DataCard, *, found: bool) -> None:
    values = None if found else ("north", "south")
    key = GroupKey(name="region", expression=ColumnName("region"), values=values)
    query = Query(table="visits", aggregates=ALL, keys=(key,))
    plan = planned(query, card, epsilon=400, delta="1e-6" if found else None)
    answer = released(query, card, plan)
    assert answer["region"] == ["north", "south"]
    south = dict(zip(answer.columns, answer.rows[1].cells, strict=True))
    for name, truth in TRUTH.items():
        cell = south[name]
        assert cell.value is not None and abs(cell.value - truth) <= max(0.02 * truth, 3), name
    assert south["least"].value <= 12 and south["most"].value >= 385  # type: ignore[operator]
    assert Ledger.open(card.ledger).spent("visits") == plan.cost  # type: ignore[arg-type]
    assert released(query, card, plan).record == answer.record


def test_a_hundred_thousand_releases_of_one_cell(
    card: DataCard, monkeypatch: pytest.MonkeyPatch, extent: Extent
) -> None:
    """The engine's own count of a cell, released 100,000 times, against the exact law."""
    from tests.kernel.unsealing import aggregates

    seed(monkeypatch, 31)
    where = call("=", ColumnName("patient"), ColumnName("patient"))
    query = Query(table="visits", aggregates=(asked("count_units", "u"),), where=where)
    plan = planned(query, card, epsilon="1/2")
    raw = aggregates(query, card, plan.measures, secret="0" * 64)
    program = program_of(plan)
    trials, hits = extent.number(40_000, 100_000), dict.fromkeys(range(990, 1011), 0)
    for _ in range(trials):
        (noisy,) = noisy_numbers(program, raw).entries["m1"]
        if noisy in hits:
            hits[noisy] += 1
    law, wrong = DiscreteLaplace(2), DiscreteLaplace("2.2")
    for value, count in hits.items():
        chance = float(law.probability(value - 1000).ends[0])
        assert_frequency(count, trials=trials, probability=chance)
    assert any(
        suspicious(
            count,
            trials=trials,
            probability=float(wrong.probability(value - 1000).ends[0]),
            false_alarm=2.0**-40,
        )
        for value, count in hits.items()
    )


def test_a_missing_file_costs_nothing(card: DataCard, tmp_path: Path) -> None:
    Path(card.source.paths[0]).unlink()
    query = Query(table="visits", aggregates=(asked("count", "n"),))
    with pytest.raises((EngineFailed, InvalidParameter)):
        released(query, card, planned(query, card, epsilon=1))
    assert Ledger.open(card.ledger).spent("visits").epsilon == 0  # type: ignore[arg-type]


def test_the_upper_bound_of_whole_numbers_is_a_value_like_any_other(tmp_path: Path) -> None:
    """Nine tenths of the rows are at the upper bound, or beyond it; noise is next to nothing."""
    path = tmp_path / "rows.parquet"
    value = "CASE WHEN i < 100 THEN 11 WHEN i < 200 THEN 13 ELSE 12 END"
    duckdb.sql(f"COPY (SELECT {value} AS x FROM range(1000) AS t(i)) TO '{path}'")
    answer = (
        lb.table(path, each_row=True)
        .agg(
            most=lb.max("x", 0, 12),
            middle=lb.median("x", 0, 12),
            both=lb.quantiles("x", ["0.05", "0.95"], 0, 12),
            share=lb.cdf("x", [11], 0, 12),
        )
        .release(epsilon=100_000)
    )
    (row,) = answer
    assert row["most"] == row["middle"] == row["both_95"] == 12 and row["both_5"] == 11
    assert row.cell("middle").low == 12 == row.cell("middle").high == row.cell("most").high
    assert row["share_11"] == pytest.approx(0.1, abs=0.01)


def test_a_part_that_gets_more_mu_than_it_has_a_use_for_is_certified():
    """Beyond x = 6 a larger mu needs no less noise: the rest of the price is not stated."""
    rows = duckdb.sql("SELECT range % 10 AS x FROM range(300)").to_arrow_table()
    asked = lb.table(rows, each_row=True, name="t").agg(n=lb.count(), s=lb.sum("x", 0, 10))
    answer = asked.release(epsilon=20, delta=1e-6, weights={"n": 100, "s": 1})
    assert "mu" in answer.record["plan"]["conversion"]
