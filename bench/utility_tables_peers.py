"""What other libraries answer about the tables of `utility_tables.py`. Prints JSON.

`utility_tables_peers.py OpenDP orders folder 40 8` runs in the library's environment, on the
Parquet files in the folder: 40 releases, at most 8 rows of a unit. It prints {"version": ...,
"answers": {setting: [[[key, numbers], ...] for each release]}}, or {"reason": ...}. This file needs
no part of lastbit; `utility_tables.py` imports the jobs.

A library is given a small grid of settings: those of its documentation, and what somebody who knows
it well would try. The grid of found keys is tried a few times, and the best setting is released as
often as asked. Every setting promises EPSILON in all, and DELTA where keys are found.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

EPSILON, DELTA = 1, "1e-7"
PILOT = 4  # releases of each setting where keys are found

Answer = list[tuple[Any, list[float]]]
"""Of one release: each key that is shown, with its numbers in the order of the job's statistics."""
Setting = Callable[[], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One question: what is asked of which table, by which column."""

    file: str
    unit: str = ""  # none: each row is one
    max_rows: int = 0  # 0: the best, which `utility_tables.best_rows` finds
    by: str
    keys: tuple[Any, ...] = ()  # public; none: found privately
    statistics: tuple[str, ...]
    column: str = ""
    low: int = 0
    high: int = 0


JOBS = {
    "survey": Job(
        file="fair.parquet",
        by="religious",
        keys=(1, 2, 3, 4),
        statistics=("count", "mean", "median"),
        column="age",
        low=17,
        high=42,
    ),
    "origin": Job(
        file="flights.parquet",
        unit="tailnum",
        max_rows=200,
        by="origin",
        keys=("EWR", "JFK", "LGA"),
        statistics=("count", "mean"),
        column="distance",
        low=0,
        high=3000,
    ),
    "destination": Job(
        file="flights.parquet", unit="tailnum", max_rows=200, by="dest", statistics=("count",)
    ),
    "carrier": Job(
        file="flights.parquet", unit="tailnum", max_rows=200, by="carrier", statistics=("count",)
    ),
}
_PEOPLE: tuple[tuple[str, str, str, tuple[Any, ...], str, int, int], ...] = (
    ("orders", "customer", "month", tuple(f"1997-{i:02}" for i in range(1, 13))
     + tuple(f"1998-{i:02}" for i in range(1, 7)), "dollars", 0, 200),
    ("courses", "student", "department", tuple(range(1, 16)), "rating", 1, 5),
    ("films", "person", "stars", (0, 1, 2, 3, 4, 5), "", 0, 0),
    ("laboratory", "patient", "test", (), "", 0, 0),
    ("work", "woman", "year", tuple(range(1968, 1989)), "wage", 0, 50),
    ("seasons", "player", "decade", tuple(range(1870, 2010, 10)), "home_runs", 0, 60),
)  # fmt: skip
JOBS |= {
    name: Job(file=f"{name}.parquet", unit=unit, by=by, keys=keys, column=column, low=low,
              high=high, statistics=("count", "mean") if column else ("count",))
    for name, unit, by, keys, column, low, high in _PEOPLE
}  # fmt: skip
PEOPLE = tuple(name for name, *_ in _PEOPLE)
"""The jobs about tables of people: there lastbit is given no limits, and chooses them."""

WEIGHTS: dict[int, tuple[tuple[int, ...], ...]] = {
    3: ((1, 1, 1),),
    2: ((1, 1), (1, 2)),
    1: ((1,),),
}
"""How OpenDP shares out epsilon, by the number of statistics."""
ONE_QUERY = {
    "dest": (
        ("Laplace", 0, 200),
        ("Laplace", 10, 20),
        ("Gaussian", 10, 20),
        ("Gaussian", 20, 10),
    ),
    "carrier": (("Laplace", 0, 200), ("Laplace", 1, 100)),
    "test": (("Laplace", 0, 50), ("Gaussian", 4, 20), ("Gaussian", 6, 30)),
}
"""Noise, groups of a unit (0: not bounded), rows of a unit in each."""
TWO_STEPS = {
    "dest": (
        ("Laplace", 0, 0.1),
        ("Laplace", 0, 0.25),
        ("Gaussian", 16, 0.5),
        ("Gaussian", 32, 0.5),
    ),
    "carrier": (("Laplace", 0, 0.25), ("Laplace", 0, 0.5)),
    "test": (("Laplace", 0, 0.1), ("Laplace", 0, 0.25), ("Gaussian", 6, 0.1)),
}
"""Noise, groups of a unit (0: one row of each unit), share of epsilon for finding keys."""


def mean_of(job: Job, total: float, rows: float) -> float:
    """A mean from a noisy sum and a noisy count: within the bounds, their middle without rows."""
    middle = (job.low + job.high) / 2
    return min(max(total / rows, job.low), job.high) if rows > 0 else middle


def best(settings: dict[str, Setting], truth: dict[Any, float]) -> str:
    """The setting of least error: of counts, and of keys that are not shown the count itself."""

    def error(answer: Answer) -> float:
        shown = {key: numbers[0] for key, numbers in answer}
        return sum(abs(shown.get(key, 0.0) - count) for key, count in truth.items())

    return min(settings, key=lambda name: sum(error(settings[name]()) for _ in range(PILOT)))


# ---------------------------------------------------------------- OpenDP


def opendp(job: Job, path: str) -> tuple[dict[str, Setting], dict[Any, float]]:
    """The Polars context: the settings, and for found keys the true counts to choose by."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    warnings.simplefilter("ignore")
    data = pl.scan_parquet(path)
    if job.keys:
        return _opendp_public(dp, pl, job, data), {}
    truth = dict(data.group_by(job.by).len().collect().iter_rows())
    keys = data.select(job.by).unique().collect().lazy()
    return _opendp_found(dp, pl, job, data, keys), truth


def _context(dp: Any, pl: Any, job: Job, data: Any, loss: Any) -> Any:
    rows = 1 << 20
    unit = dp.unit_of(contributions=1, **({"identifier": pl.col(job.unit)} if job.unit else {}))
    groups = len(job.keys) or rows
    return dp.Context.compositor(
        data=data,
        privacy_unit=unit,
        privacy_loss=loss,
        split_evenly_over=1,
        margins=[
            dp.polars.Margin(by=(), max_length=rows),
            dp.polars.Margin(by=[job.by], max_length=rows, max_groups=groups),
        ],
    )


def _opendp_public(dp: Any, pl: Any, job: Job, data: Any) -> dict[str, Setting]:
    """Counts, sums and medians under public keys; a mean is a sum over the count.

    The weights share out epsilon. "centred" takes the middle of the bounds off before the sum,
    which makes its sensitivity smaller; the documentation does not do it. A measurement is made
    once and called for each release.
    """
    keys = pl.LazyFrame({job.by: list(job.keys)}, schema={job.by: data.collect_schema()[job.by]})
    middle = (job.low + job.high) / 2
    value = pl.col(job.column or job.by).cast(pl.Float64).fill_nan(0.0).fill_null(0.0)

    @cache
    def measurement(what: str, option: float, epsilon: float) -> Any:
        if what == "count":
            asked = dp.len(signed=True)
        elif what == "mean":
            moved = value - option if option else value
            asked = moved.dp.sum((job.low - option, job.high - option))
        else:
            steps = round((job.high - job.low) / option)
            asked = value.dp.median([job.low + option * i for i in range(steps + 1)])
        context = _context(dp, pl, job, data, dp.loss_of(epsilon=epsilon))
        rows = context.query()
        rows = rows.truncate_per_group(job.max_rows) if job.unit else rows
        return rows.group_by(job.by).agg(asked.alias("x")).with_keys(keys).resolve()

    def released(weights: tuple[int, ...], shift: float, step: float) -> Answer:
        options = {"count": 0.0, "mean": shift, "median": step}
        columns = []
        for what, weight in zip(job.statistics, weights, strict=True):
            made = measurement(what, options[what], EPSILON * weight / sum(weights))
            columns.append(dict(made(data).collect().iter_rows()))
        answer: Answer = []
        for key in job.keys:
            numbers = [float(column[key]) for column in columns]
            if "mean" in job.statistics:
                n, total = numbers[:2]
                numbers[1] = mean_of(job, total + shift * n, n)
            answer.append((key, numbers))
        return answer

    settings: dict[str, Setting] = {}
    for weights in WEIGHTS[len(job.statistics)]:
        for shift in (0.0, middle)[: 2 if "mean" in job.statistics else 1]:
            for step in (0.5, 1.0)[: 2 if "median" in job.statistics else 1]:
                name = "epsilon " + ":".join(map(str, weights)) + (", centred" if shift else "")
                name += f", candidates {step} apart" if "median" in job.statistics else ""
                settings[name] = partial(released, weights, shift, step)
    return settings


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho whose zCDP gives (epsilon, delta)-DP, by CKS20's conversion."""

    def spent(rho: float) -> float:
        orders = (1 + 1.02**i / 50 for i in range(600))
        return min(
            math.exp((a - 1) * (a * rho - epsilon) + a * math.log1p(-1 / a)) / (a - 1)
            for a in orders
            if (a - 1) * (a * rho - epsilon) < 50
        )

    low, high = 0.0, epsilon
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) <= delta else (low, middle)
    return low


def _opendp_found(dp: Any, pl: Any, job: Job, data: Any, keys: Any) -> dict[str, Setting]:
    """Counts under keys that its own partition selection finds.

    "one query" is the documentation's way: the counts themselves are held against the threshold.
    "two steps" finds the keys by counting units and then counts max_rows rows of each unit under
    those keys. The second step is made once, for all keys, and the rest is dropped: noise is
    independent from key to key, so the law is that of asking for the keys found.

    truncate_num_groups(k) of 0.16.0 pays for k groups and keeps k - 1; its keep="sample" fails with
    a duplicate field. So the groups kept are the first ones, and k is one more.
    """
    delta = float(DELTA)

    def loss(noise: str, epsilon: float) -> Any:
        if noise == "Laplace":
            return dp.loss_of(epsilon=epsilon, delta=delta)
        return dp.loss_of(rho=rho_of(epsilon, delta / 2), delta=delta / 2)

    def kept(query: Any, groups: int, rows: int) -> Any:
        if not groups:
            return query.truncate_per_group(rows)
        few = query.truncate_per_group(rows, by=[job.by])
        return few.truncate_num_groups(groups + 1, by=[job.by], keep="first")

    def counted(query: Any) -> Any:
        return query.group_by(job.by).agg(dp.len(signed=True).alias("n"))

    @cache
    def finding(noise: str, epsilon: float, groups: int, rows: int) -> Any:
        context = _context(dp, pl, job, data, loss(noise, epsilon))
        return counted(kept(context.query(), groups, rows)).resolve()

    @cache
    def counting(epsilon: float) -> Any:
        context = _context(dp, pl, job, data, dp.loss_of(epsilon=epsilon))
        return counted(kept(context.query(), 0, job.max_rows)).with_keys(keys).resolve()

    def one_query(noise: str, groups: int, rows: int) -> Answer:
        found = finding(noise, float(EPSILON), groups, rows)(data).collect()
        return [(key, [float(n)]) for key, n in found.iter_rows()]

    def two_steps(noise: str, groups: int, share: float) -> Answer:
        found = set(finding(noise, share * EPSILON, groups, 1)(data).collect()[job.by])
        counts = counting((1 - share) * EPSILON)(data).collect()
        return [(key, [float(n)]) for key, n in counts.iter_rows() if key in found]

    settings: dict[str, Setting] = {}
    for noise, groups, rows in ONE_QUERY[job.by]:
        bound = f"{groups} groups of {rows} rows" if groups else f"{rows} rows"
        settings[f"one query, {noise}, {bound}"] = partial(one_query, noise, groups, rows)
    for noise, groups, share in TWO_STEPS[job.by]:
        bound = f"{groups} groups" if groups else "1 row"
        name = f"two steps, {noise}, {bound} and {share} of epsilon for keys"
        settings[name] = partial(two_steps, noise, groups, share)
    return settings


# ---------------------------------------------------------------- Tumult


def tumult(job: Job, path: str) -> tuple[dict[str, Setting], dict[Any, float]]:
    """Tumult Analytics on Spark: one setting each, its own mean and median."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # its workers need the same environment
    warnings.simplefilter("ignore")
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    data = spark.read.parquet(path)
    if job.keys:
        return {"even shares": lambda: _tumult_public(job, data)}, {}
    groups = {"dest": 16, "carrier": 1, "test": 6}[job.by]
    name = f"get_groups of {groups} groups with half of epsilon, then counts"
    return {name: lambda: _tumult_found(job, data, groups)}, {}


def _tumult_public(job: Job, data: Any) -> Answer:
    from tmlt.analytics import (
        AddOneRow,
        AddRowsWithID,
        KeySet,
        MaxRowsPerID,
        PureDPBudget,
        QueryBuilder,
        Session,
    )

    session = Session.from_dataframe(
        privacy_budget=PureDPBudget(EPSILON),
        source_id="rows",
        dataframe=data,
        protected_change=AddRowsWithID(id_column=job.unit) if job.unit else AddOneRow(),
    )
    query = QueryBuilder("rows")
    asked = (query.enforce(MaxRowsPerID(job.max_rows)) if job.unit else query).groupby(
        KeySet.from_dict({job.by: list(job.keys)})
    )
    share = PureDPBudget(EPSILON / len(job.statistics))
    bounds = (job.column, job.low, job.high)
    found: dict[Any, list[float]] = {key: [] for key in job.keys}
    for statistic in job.statistics:
        query = {
            "count": lambda: asked.count("x"),
            "mean": lambda: asked.average(*bounds, "x"),
            "median": lambda: asked.median(*bounds, "x"),
        }[statistic]()
        for row in session.evaluate(query, share).collect():
            found[row[job.by]].append(float(row["x"]))
    return list(found.items())


def _tumult_found(job: Job, data: Any, groups: int) -> Answer:
    from tmlt.analytics import (
        AddRowsWithID,
        ApproxDPBudget,
        KeySet,
        MaxGroupsPerID,
        MaxRowsPerGroupPerID,
        MaxRowsPerID,
        QueryBuilder,
        Session,
    )

    session = Session.from_dataframe(
        privacy_budget=ApproxDPBudget(EPSILON, float(DELTA)),
        source_id="rows",
        dataframe=data,
        protected_change=AddRowsWithID(id_column=job.unit),
    )
    kept = QueryBuilder("rows").enforce(MaxGroupsPerID(job.by, groups))
    finding = kept.enforce(MaxRowsPerGroupPerID(job.by, 1)).get_groups([job.by])
    keys = session.evaluate(finding, ApproxDPBudget(EPSILON / 2, float(DELTA)))
    if keys.count() == 0:
        return []
    asked = QueryBuilder("rows").enforce(MaxRowsPerID(job.max_rows))
    counting = asked.groupby(KeySet.from_dataframe(keys)).count("n")
    rows = session.evaluate(counting, ApproxDPBudget(EPSILON / 2, 0)).collect()
    return [(row[job.by], [float(row["n"])]) for row in rows]


# ---------------------------------------------------------------- the program

PEERS = {
    "OpenDP": ("opendp", opendp),
    "Tumult": ("tmlt.analytics", tumult),
}


def answers(library: str, name: str, folder: str, runs: int, max_rows: int) -> dict[str, object]:
    """What one library answers to one job, or why it does not."""
    package, prepared = PEERS[library]
    job = replace(JOBS[name], max_rows=max_rows)
    try:
        settings, truth = prepared(job, str(Path(folder) / job.file))
        tried: Iterable[str] = [best(settings, truth)] if truth else list(settings)
        released = {each: [settings[each]() for _ in range(runs)] for each in tried}
        return {"version": version(package), "tried": list(settings), "answers": released}
    except Exception as failure:  # whatever a library does must not stop the others
        lines = str(failure).strip().splitlines() or [""]
        message = re.sub(r"\s*\(?/\S+", "", lines[0])[:80]  # no paths of this machine
        return {"reason": f"{type(failure).__name__}: {message}"}


if __name__ == "__main__":
    library, name, folder, runs, rows = sys.argv[1:]
    print(json.dumps(answers(library, name, folder, int(runs), int(rows))), flush=True)
