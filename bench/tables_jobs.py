"""Does one job of `tables.py` in a process of its own, and prints its times and memory as JSON.

`tables_jobs.py "lastbit" visits.parquet 3 1700000000.0` answers the question 3 times; the last
argument is when the process was started. It prints {"whole": seconds from then to the first answer,
"first": of the first call, "least": of the quickest call, "cpu": of that call, over all cores,
"peak": memory in MB, "peak_first": the same after one call, "rows": of the answer, added up,
"version": ...}, or {"reason": ...}. A process is given one job, so that no library warms up
another.

Every job: rows and mean cost for each of 100 regions, each user counting for at most 10 rows;
epsilon 1 in all, where there is privacy at all. The other libraries release sums in place of means,
which is less work: their sums and counts give means.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tables_data import GROUPS, HIGH, LOW, MAX_ROWS, NAMES

Job = Callable[[], float]
"""Does the job and gives the number of rows that the answer adds up to."""

SPARK_MEMORY = "8g"


def lastbit(path: str, *, ledger: Path | None = None) -> Job:
    from lastbit.release.table import table
    from lastbit.tables.query.aggregates import count, mean

    keys = NAMES if Path(path).name.startswith("named") else range(GROUPS)

    def job() -> float:
        answer = (
            table(path, unit="user_id", max_rows=MAX_ROWS, keys={"region": keys})
            .group_by("region")
            .agg(n=count(), cost=mean("cost", LOW, HIGH, nullable=False))
            .release(epsilon=1, ledger=ledger, fresh=True)
        )
        return sum(row["cells"][0]["value"] for row in answer.record["rows"])

    return job


def lastbit_with_ledger(path: str) -> Job:
    folder = tempfile.mkdtemp(dir=Path(path).parent, prefix="ledger-")
    atexit.register(shutil.rmtree, folder)
    return lastbit(path, ledger=Path(folder) / "visits.ledger")


def lastbit_prepared(path: str, *, where: str = "") -> Job:
    """The same question of a prepared table: made before, and not timed."""
    from lastbit.release import Table
    from lastbit.tables import read_card, rows_of

    file = Path(path).with_suffix(".toml")
    text = CARD.format(source=Path(path).name, rows=MAX_ROWS, low=LOW, high=HIGH, last=GROUPS - 1)
    file.write_text(text)
    command = (sys.executable, "-m", "lastbit", "card", "prepare", str(file))
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    card = read_card(file)
    question = f"SELECT region, COUNT(*) AS n, AVG(cost) AS cost FROM visits{where} GROUP BY region"

    def job() -> float:
        answer = Table(rows=rows_of(card)).sql(question).release(epsilon=1, fresh=True)
        return sum(row["cells"][0]["value"] for row in answer.record["rows"])

    return job


def lastbit_prepared_where(path: str) -> Job:
    return lastbit_prepared(path, where=" WHERE cost >= 0")


CARD = """
[table]
name = "visits"
source = "{source}"
neighbours = "add-remove"
[unit]
column = "user_id"
max_rows = {rows}
[budget]
epsilon = 1000000
[ledger]
path = "{source}.ledger"
[prepared]
path = "{source}.prepared"
[columns.user_id]
type = "integer"
[columns.region]
type = "integer"
bounds = [0, {last}]
[columns.cost]
type = "number"
bounds = [{low}, {high}]
nullable = false
"""


def unprivate(statement: str) -> Callable[[str], Job]:
    """A statement without privacy, as people write it: a connection and its defaults."""

    def prepared(path: str) -> Job:
        import duckdb

        def job() -> float:
            with duckdb.connect() as connection:
                rows = connection.execute(statement.format(table=f"'{path}'")).fetchall()
            return sum(n for _, n, _ in rows)

        return job

    return prepared


_ASKED = "SELECT region, count(*), avg(cost) FROM {} GROUP BY region"


def _bounded(rows: str, order: str = "") -> str:
    place = f"row_number() OVER (PARTITION BY user_id{order}) AS place"
    return _ASKED.format(f"(SELECT *, {place} FROM {rows}) WHERE place <= {MAX_ROWS}")


_UNORDERED = _bounded("{table}")
_RANDOM = _bounded("(SELECT *, random() AS draw FROM {table})", " ORDER BY draw")


def opendp(path: str) -> Job:
    """The Polars context, with a public set of keys."""
    import warnings

    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    warnings.simplefilter("ignore")
    keys = pl.LazyFrame({"region": range(GROUPS)}, schema={"region": pl.Int32})
    rows = int(Path(path).stem.rpartition("-")[2])

    def job() -> float:
        context = dp.Context.compositor(
            data=pl.scan_parquet(path),
            privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user_id")),
            privacy_loss=dp.loss_of(epsilon=1.0),
            split_evenly_over=1,
            margins=[
                dp.polars.Margin(by=(), max_length=rows),
                dp.polars.Margin(by=["region"], max_length=rows, max_groups=GROUPS),
            ],
        )
        cost: Any = pl.col("cost").fill_nan(0.0).fill_null(0.0)
        total = cost.dp.sum((float(LOW), float(HIGH)))
        released = (
            context.query()
            .truncate_per_group(MAX_ROWS)
            .group_by("region")
            .agg(dp.len(signed=True).alias("n"), total.alias("total"))
            .with_keys(keys)
            .release()
            .collect()
        )
        return float(released["n"].sum())

    return job


def tumult(path: str) -> Job:
    """Tumult Analytics on Spark, on all cores; units are bounded once for both statistics."""
    import warnings

    os.environ["PYSPARK_PYTHON"] = sys.executable  # its workers need the same environment
    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession
    from tmlt.analytics import (
        AddRowsWithID,
        KeySet,
        MaxRowsPerID,
        PureDPBudget,
        QueryBuilder,
        Session,
    )

    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.driver.memory", SPARK_MEMORY)
        .config("spark.sql.shuffle.partitions", 2 * (os.cpu_count() or 1))
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    keys = KeySet.from_dict({"region": list(range(GROUPS))})

    def job() -> float:
        session = Session.from_dataframe(
            privacy_budget=PureDPBudget(1),
            source_id="visits",
            dataframe=spark.read.parquet(path),
            protected_change=AddRowsWithID(id_column="user_id"),
        )
        bounded = QueryBuilder("visits").enforce(MaxRowsPerID(MAX_ROWS))
        session.create_view(bounded, "bounded", cache=True)
        asked, half = QueryBuilder("bounded").groupby(keys), PureDPBudget(0.5)
        counts = session.evaluate(asked.count("n"), half).toPandas()
        session.evaluate(asked.sum("cost", LOW, HIGH, "total"), half).toPandas()
        session.delete_view("bounded")  # or Spark would not bound again in the next call
        return float(counts["n"].sum())

    return job


JOBS: dict[str, tuple[str, Callable[[str], Job]]] = {
    "lastbit": ("lastbit", lastbit),
    "lastbit, with a ledger": ("lastbit", lastbit_with_ledger),
    "lastbit, prepared": ("lastbit", lastbit_prepared),
    "lastbit, prepared, with WHERE": ("lastbit", lastbit_prepared_where),
    "no bounding": ("duckdb", unprivate(_ASKED.format("{table}"))),
    "unordered": ("duckdb", unprivate(_UNORDERED)),
    "random order": ("duckdb", unprivate(_RANDOM)),
    "OpenDP": ("opendp", opendp),
    "Tumult": ("tmlt.analytics", tumult),
}


def measured(name: str, path: str, repeats: int, started: float) -> dict[str, object]:
    """The times and the memory of one job."""
    package, prepare = JOBS[name]
    job = prepare(path)
    times, cpu = [], []
    peak_first = whole = rows = 0.0
    for repeat in range(repeats):
        start, before = time.perf_counter(), time.process_time()
        rows = job()
        times.append(time.perf_counter() - start)
        cpu.append(time.process_time() - before)
        if not repeat:
            whole, peak_first = time.time() - started, peak_memory()
    return {
        "version": version(package),
        "whole": whole,
        "first": times[0],
        "least": min(times),
        "cpu": min(cpu),
        "peak_first": peak_first,
        "peak": peak_memory(),
        "rows": rows,
    }


def peak_memory() -> float:
    """The most memory that this process and those it started ever held, in MB.

    Each one's peak, added up: for Spark's Java and Python processes it may be a little too much.
    """
    if not Path("/proc/self/status").exists():
        return own_peak()
    parents, peaks = {}, {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text("utf-8").splitlines())
        except (OSError, ValueError):
            continue
        parents[int(fields["Pid"])] = int(fields["PPid"])
        peaks[int(fields["Pid"])] = int(fields.get("VmHWM", "0 kB").split()[0]) / 1024
    total = 0.0
    for process, peak in peaks.items():
        ancestor: int | None = process
        while ancestor not in (None, 0, os.getpid()):
            ancestor = parents.get(ancestor)
        total += peak if ancestor == os.getpid() else 0.0
    return total


def own_peak() -> float:
    """The same of this process alone, where the system does not show others."""
    import resource

    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main() -> None:
    name, path, repeats, started = sys.argv[1:]
    try:
        result = measured(name, path, int(repeats), float(started))
    except Exception as failure:  # whatever a library does must not stop the others
        lines = str(failure).strip().splitlines() or [""]
        message = re.sub(r"\s*\(?/\S+", "", lines[0])[:80]  # no paths of this machine
        result = {"reason": f"{type(failure).__name__}: {message}"}
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
