"""Does the jobs of `engines.py` on one engine, in a process of its own, and prints them as JSON.

`engines_jobs.py spark 2 visits.parquet 3` runs each job 3 times in turns on 2 cores, after one run
that warms up: {"version": ..., "jobs": {"lastbit": {"wall": seconds, "cpu": seconds of all
processes, "bytes": that Spark shuffles}, ...}}. Every job is the one of `tables.py`: rows and mean
cost for each of 100 regions, each user counting for at most 10 rows.

"lastbit" is our statement, run as the others are ("row_number()"); on DuckDB and PostgreSQL with
what is quick there: the source opened, its integers put in order. "whole answer" is `release`: the
question planned, rehearsed, asked, noised, certified.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tables_data import GROUPS, HIGH, LOW, MAX_ROWS
from tables_jobs import _ASKED, SPARK_MEMORY, _bounded

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests start servers

Jobs = dict[str, Callable[[], object]]
Told = Callable[[str], dict[str, float]]


def question(source: str, **more: Any) -> Any:
    from lastbit.release.table import table
    from lastbit.tables.query.aggregates import count, mean

    keys = {"region": range(GROUPS)}
    private = table(source, unit="user_id", max_rows=MAX_ROWS, keys=keys, **more)
    cost = mean("cost", LOW, HIGH, nullable=False)
    return private.group_by("region").agg(n=count(), cost=cost)


def ours(source: str, **more: Any) -> Jobs:
    """The statement by our backend, and the whole answer."""
    from lastbit.tables import open_session, planned

    asked = question(source, **more)
    plan = planned(asked.query, asked.card, epsilon=1)

    def statement() -> object:
        with open_session(asked.card) as session:
            return session.aggregates(asked.query, asked.card, plan.measures, secret="0" * 64)

    return {
        "lastbit": statement,
        "whole answer": lambda: question(source, **more).release(epsilon=1),
    }


@contextmanager
def duckdb_jobs(path: str, cores: int) -> Iterator[tuple[str, Jobs, Told]]:
    import duckdb

    from lastbit.tables import open_session, planned

    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:cores]))
    asked = question(path)
    plan = planned(asked.query, asked.card, epsilon=1)
    each_row = replace(asked.card, unit=None, max_rows=1, max_groups=None)

    def unbounded() -> object:
        with open_session(each_row) as session:
            return session.aggregates(asked.query, each_row, plan.measures, secret=None)

    def run(sql: str) -> object:
        with duckdb.connect(config={"threads": cores}) as connection:
            return connection.execute(sql).fetchall()

    with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder:

        def again() -> object:
            ledger = Path(folder) / "visits.ledger"
            with open_session(asked.card, units_beside=ledger) as session:
                return session.aggregates(asked.query, asked.card, plan.measures, secret=None)

        jobs: Jobs = {
            "no bounding": lambda: run(_ASKED.format(f"'{path}'")),
            "row_number()": lambda: run(_bounded(f"'{path}'")),
            **ours(path),
            "lastbit, no bounding": unbounded,
            "asked again": again,
        }
        yield duckdb.__version__, jobs, lambda name: {}


def spark_statement(source: str) -> tuple[Any, str]:
    """Our session, in which the source is shown, and the text of the statement."""
    from lastbit.tables import planned
    from lastbit.tables.backends.spark import engine
    from lastbit.tables.compile.spark import SPARK
    from lastbit.tables.compile.statement import statement

    asked, own = question(source), engine.EngineSession().connected()
    actual = engine.show_tables(own, engine.asked_tables(own, asked.query, asked.card))
    plan = planned(asked.query, asked.card, epsilon=1)
    given = asked.query, asked.card, plan.measures
    return own, statement(*given, secret="0" * 64, dialect=SPARK, actual=actual).sql


@contextmanager
def spark_jobs(path: str, cores: int) -> Iterator[tuple[str, Jobs, Told]]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.driver.memory", SPARK_MEMORY)
        .config("spark.sql.shuffle.partitions", 2 * cores)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    spark.read.parquet(path).createOrReplaceTempView("visits")

    def written() -> int:
        active_only = True
        found = spark.sparkContext._jsc.sc().statusStore().executorList(active_only)
        return sum(found.apply(i).totalShuffleWrite() for i in range(found.size()))

    own, sql = spark_statement(f"spark:{path}")
    jobs: Jobs = {
        "no bounding": lambda: spark.sql(_ASKED.format("visits")).collect(),
        "row_number()": lambda: spark.sql(_bounded("visits", " ORDER BY 1")).collect(),
        **ours(f"spark:{path}"),
        "lastbit": lambda: own.sql(sql).collect(),
    }

    def told(name: str) -> dict[str, float]:
        before = written()
        jobs[name]()
        return {"bytes": written() - before}

    yield spark.version, jobs, told
    spark.stop()


@contextmanager
def postgres_jobs(path: str, cores: int) -> Iterator[tuple[str, Jobs, Told]]:
    import duckdb

    from tests.engines.servers import PostgresServer, binaries

    workers = f"max_parallel_workers={cores - 1}"
    memory = ("shared_buffers=1GB", "work_mem=256MB", "max_wal_size=4GB")
    server = PostgresServer(binaries()[0], workers, *memory)
    address = server.database()
    with server.connected(address) as connection, tempfile.TemporaryDirectory() as folder:
        rows = f"{folder}/rows.csv"
        duckdb.sql(f"COPY (FROM '{path}') TO '{rows}' (HEADER false)")
        connection.execute("CREATE TABLE visits (user_id bigint, region int, cost float8)")
        filled = connection.cursor().copy("COPY visits FROM STDIN (FORMAT csv)")
        with filled as copy, open(rows, "rb") as file:
            while block := file.read(1 << 20):
                copy.write(block)
        connection.execute("VACUUM ANALYZE visits")
        connection.execute("SET work_mem = '256MB'")
        version = connection.execute("SHOW server_version").fetchone()[0]

        def run(sql: str) -> object:
            return connection.execute(sql, prepare=False).fetchall()

        jobs: Jobs = {
            "no bounding": lambda: run(_ASKED.format("visits")),
            "row_number()": lambda: run(_bounded("visits").replace(") WHERE", ") AS b WHERE")),
            **ours(address, table="public.visits"),
        }
        yield version, jobs, lambda name: {}
    server.remove()


ENGINES = {"DuckDB": duckdb_jobs, "PostgreSQL": postgres_jobs, "Spark": spark_jobs}


def cpu() -> float:
    """Seconds of all cores, of this process and of those that it started, ended ones too."""
    parents, times = {}, {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        process = int(place.parent.name)
        parents[process] = int(fields[1])
        times[process] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    total = 0.0
    for process, spent in times.items():
        ancestor: int | None = process
        while ancestor not in (None, 0, os.getpid()):
            ancestor = parents.get(ancestor)
        total += spent if ancestor == os.getpid() else 0.0
    return total


def measured(engine: str, cores: int, path: str, calls: int) -> dict[str, object]:
    with ENGINES[engine](path, cores) as (version, jobs, told):
        found: dict[str, dict[str, float]] = {}
        for name, job in jobs.items():
            job()
            found[name] = {"wall": float("inf"), "cpu": float("inf"), **told(name)}
        for _ in range(calls):
            for name, job in jobs.items():
                before, start = cpu(), time.perf_counter()
                job()
                wall = time.perf_counter() - start
                best = found[name]
                best |= {"wall": min(best["wall"], wall), "cpu": min(best["cpu"], cpu() - before)}
        return {"version": version, "jobs": found}


def main() -> None:
    engine, cores, path, calls = sys.argv[1:]
    try:
        result = measured(engine, int(cores), path, int(calls))
    except Exception as failure:  # whatever an engine does must not stop the others
        result = {"reason": type(failure).__name__}
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
