"""Intervals of every kind of number: how often they hold, and how wide they are for their error.

Every group of one made-up table has the same rows, so one question with 500 groups is 500 releases
with independent noise. `real` is the 95th percentile of abs(value - truth), `shown` the median
half-width; a ratio of 1 would be an interval that knows the law of its error.

    python -m bench.intervals [--rows 2000] [--groups 500] [--epsilon 1] [--delta 1e-6]
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from typing import Any

import duckdb

import lastbit as lb

KINDS: dict[str, str] = {
    "count": "COUNT(*)",
    "sum": "SUM(x)",
    "mean": "AVG(x)",
    "ratio": "SUM(x) / SUM(y)",
    "share": "SUM(CASE WHEN x > 60 THEN 1 ELSE 0 END) * 1.0 / COUNT(*)",
    "variance": "VAR_POP(x)",
    "std": "STDDEV_POP(x)",
    "covariance": "COVAR_POP(x, y)",
    "correlation": "CORR(x, y)",
    "slope": "REGR_SLOPE(y, x)",
    "difference": "AVG(x) - AVG(y)",
    "difference of counts": ("COUNT(*) FILTER (WHERE x > 60) - COUNT(*) FILTER (WHERE x < 20)"),
    "relative difference": "(SUM(x) - SUM(y)) / SUM(y)",
    "variation": "STDDEV_POP(x) / AVG(x)",
    "share of total": "COUNT(*) * 1.0 / SUM(COUNT(*)) OVER ()",
}


def made_up_rows(groups: int, rows: int, each: int) -> Any:
    """The same rows in every group: x about 50, y half x and half noise, of 0 to 100."""
    return duckdb.sql(
        f"""WITH r AS (SELECT range AS i, hash(range) % 10007 / 10007.0 AS u,
        hash(range + 77) % 10009 / 10009.0 AS v, hash(range + 991) % 10037 / 10037.0 AS w
        FROM range({rows}))
        SELECT g.range * {rows} + i // {each} AS unit, g.range::INTEGER AS g,
        round(100 * (u + v) / 2)::INTEGER AS x,
        round(25 + 50 * (0.5 * (u + v) / 2 + 0.5 * w))::INTEGER AS y
        FROM r, range({groups}) g"""
    )


def measured(
    kind: str, formula: str, rows: Any, table: Any, price: dict[str, Any]
) -> tuple[str, ...]:
    sql = f"SELECT g, {formula} AS d FROM visits GROUP BY g"
    truth = duckdb.execute(sql.replace("FROM visits", "FROM rows")).fetchall()[0][1]
    started = time.perf_counter()
    answer = table.sql(sql).release(**price)
    took = time.perf_counter() - started
    cells = [row.cell("d") for row in answer]
    known = [cell for cell in cells if cell.low is not None]
    if not known:
        return kind, "none", "", "", "", ""
    held = sum(cell.low <= truth <= cell.high for cell in known) / len(known)
    errors = sorted(abs(cell.value - truth) for cell in cells if cell.value is not None)
    real = errors[math.ceil(0.95 * len(errors)) - 1]
    shown = statistics.median((cell.high - cell.low) / 2 for cell in known)
    return (
        kind, f"{held:.1%}", f"{real:.4g}", f"{shown:.4g}", f"{shown / real:.2f}", f"{took:.1f} s",
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--groups", type=int, default=500)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--delta", default=None)
    parser.add_argument("--only", default=None)
    parser.add_argument("--unit-rows", type=int, default=1, help="rows of each unit")
    asked = parser.parse_args()
    rows = made_up_rows(asked.groups, asked.rows, asked.unit_rows)
    columns = [
        lb.Column(name=name, type="integer", bounds=(0, 100), nullable=False) for name in "xy"
    ]

    table = lb.table(
        rows,
        unit="unit",
        max_rows=asked.unit_rows,
        name="visits",
        keys={"g": list(range(asked.groups))},
        columns=columns,
    )
    price = {"epsilon": asked.epsilon, "delta": asked.delta}
    print(f"{asked.groups} groups of {asked.rows} rows, ε = {asked.epsilon}, δ = {asked.delta}")
    print("kind | holds | real p95 error | half-width | ratio | time")
    for kind, formula in KINDS.items():
        if asked.only is None or asked.only == kind:
            print(" | ".join(measured(kind, formula, rows, table, price)), flush=True)


if __name__ == "__main__":
    main()
