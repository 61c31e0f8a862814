"""How quick is the standard question on each engine, and how does its cost grow?

    python bench/engines.py               10^6 and 10^7 rows, 1 and 2 cores (half an hour)
    python bench/engines.py --huge        10^8 rows too, on DuckDB and Spark
    python bench/engines.py --no-peers    without Tumult
    python bench/engines.py --rows 100000 a quick look: nothing is saved
    python bench/engines.py --only DuckDB that engine; the other rows stay, and the page says so
    python bench/engines.py --page        only writes docs/engines-benchmarks.md

Each engine runs in a process of its own (`engines_jobs.py`); its jobs take turns, so their ratios
are of one run. One core is the engine's own setting: threads, workers, local[1].
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from datetime import date
from typing import Any

import report
from measure import Measurement, Target
from peer_environment import HERE
from rich.console import Console
from tables import HUGE, LONGEST_RUN_SECONDS, SECOND, SIZES, _size, run_peer
from tables_data import table_file

PAGE = report.ROOT / "docs" / "engines-benchmarks.md"
RESULTS = report.RESULTS / "engines.json"
TITLE = "Engines: rows and mean of 100 groups, units bounded to 10 rows"
ENGINES = ("DuckDB", "PostgreSQL", "Spark")
CORES = (1, 2)
OURS, FLOOR, PLAIN, AGAIN = "lastbit", "row_number()", "no bounding", "asked again"
UNBOUNDED = "lastbit, no bounding"
AT_MOST = {"Spark": 0.5, "PostgreSQL": 1.1}
AGAIN_AT_MOST = 3
TUMULT_FASTER = 5
FAR_ROWS, FAR_CORES = 10**10, 100
NETWORK = 10**8  # bytes a second and core: ten cores share a link of ten gigabits

Run = dict[str, Any]


def run(engine: str, rows: int, cores: int) -> Run:
    """What one process measured."""
    load = os.getloadavg()[0]
    calls = "2" if rows >= HUGE else "5" if rows > SIZES[0] else "15"
    path = table_file("visits", rows)
    command = [
        *(sys.executable, str(HERE / "engines_jobs.py"), engine),
        *(str(cores), str(path), calls),
    ]
    try:
        found = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
            timeout=LONGEST_RUN_SECONDS,
            cwd=path.parent,
        )
        result = json.loads(found.stdout.strip().splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as failure:
        result = {"reason": f"its process ended with {type(failure).__name__}"}
    when = {"date": date.today().isoformat(), "load": round(load, 1)}
    return {"engine": engine, "rows": rows, "cores": cores, **when, **result}


def lines(runs: list[Run], peers: dict[int, dict[str, Any]]) -> list[Measurement]:
    """What is held to a target, on all cores; the rest stands on the page."""
    found = []
    for one in runs:
        found.append(_line(one, OURS, FLOOR, AT_MOST.get(one["engine"])))
        if AGAIN in one.get("jobs", {}):
            found.append(_line(one, AGAIN, UNBOUNDED, AGAIN_AT_MOST))
            found.append(_line(one, AGAIN, PLAIN, None))
        if one["rows"] in peers and one["engine"] == "Spark" and _judged(one):
            found.append(_beside(one, peers[one["rows"]]))
    return found


def _judged(one: Run) -> bool:
    return one["cores"] == max(CORES) and one["rows"] < HUGE


def _wall(one: Run, job: str) -> float | None:
    wall = one.get("jobs", {}).get(job, {}).get("wall")
    return None if wall is None else wall * SECOND


def _section(one: Run) -> str:
    return f"{_size(one['rows'])}, {one['engine']}, {one['cores']} cores"


def _line(one: Run, ours: str, other: str, limit: float | None) -> Measurement:
    return Measurement(
        section=_section(one),
        what=f"{ours}, against {other}",
        ours=_wall(one, ours),
        reference=_wall(one, other),
        target=Target(limit=limit, of="ratio") if limit and _judged(one) else None,
        note=one.get("reason", ""),
    )


def _beside(one: Run, peer: dict[str, Any]) -> Measurement:
    return Measurement(
        section=_section(one),
        what=f"whole answer, against {peer['label']}, warm",
        ours=_wall(one, "whole answer"),
        reference=None if peer["warm"] is None else peer["warm"] * SECOND,
        target=Target(limit=1 / TUMULT_FASTER, of="ratio"),
        note=one.get("reason", "") or peer["reason"],
        peer=True,
    )


# ---------------------------------------------------------------- the page

HEAD = """# Engines compared

Written by `make bench-engines`; do not edit. {machine}. {when}

Rows and mean cost for each of 100 groups, with N/10 units of which each counts for at most 10 rows
(`bench/tables_data.py`). *No bounding* is the question without privacy; *row_number()* keeps 10
rows of each unit, as other libraries do; *lastbit* is our statement, on DuckDB and PostgreSQL with
the opening of the source, on Spark without; *whole answer* is `release`, with all of that, plan,
rehearsal, noise and certificate. Seconds of the quickest of
several calls, in turns; CPU is of all processes, for *lastbit*.

| rows | engine | cores | no bounding | row_number() | lastbit | ratio | CPU | whole answer |
|---|---|--:|--:|--:|--:|--:|--:|--:|
"""


def page(record: dict[str, Any]) -> str:
    """The page, from the figures alone."""
    runs = record["runs"]
    machine = f"{record['machine']['cpu']}, {record['machine']['cores']} cores"
    text = HEAD.format(machine=machine, when=_when(record))
    for one in runs:
        jobs = one.get("jobs")
        name = f"{one['engine']} {one.get('version', '')}".strip()
        start = f"| {_size(one['rows'])} | {name} | {one['cores']} "
        if not jobs:
            text += f"{start}| not measured: {one['reason']} | | | | | |\n"
            continue
        walls = {job: figures["wall"] for job, figures in jobs.items()}
        ratio = walls[OURS] / walls[FLOOR]
        cells = [_seconds(walls[job]) for job in (PLAIN, FLOOR, OURS)]
        cells += [f"{ratio:.2f}", _seconds(jobs[OURS]["cpu"]), _seconds(walls["whole answer"])]
        text += f"{start}| {' | '.join(cells)} |\n"
    text += "\n" + "\n".join(f"- {line}" for line in _remarks(runs, record["peers"])) + "\n"
    if "remark" in record:  # written into the file by whoever measured
        text += f"- {record['remark']}\n"
    return text + _estimate(runs)


def _when(record: dict[str, Any]) -> str:
    """The day and the load before it, of every engine whose rows were measured on their own."""
    found: dict[str, list[str]] = {}
    for one in record["runs"]:
        day, load = one.get("date", record["date"][:10]), one.get("load", record["load"])
        found.setdefault(f"{day}, load {load:.1f} before it", []).append(one["engine"])
    parts = [f"{', '.join(dict.fromkeys(names))}: {day}" for day, names in found.items()]
    return "; ".join(parts) + "."


def _remarks(runs: list[Run], peers: list[dict[str, Any]]) -> list[str]:
    found = []
    for one in runs:
        jobs = one.get("jobs", {})
        where = f"{_size(one['rows'])}, {one['cores']} cores"
        if AGAIN in jobs:
            again, plain = jobs[AGAIN]["wall"], jobs[PLAIN]["wall"]
            words = f"{where}, DuckDB asked again, with the index of units with many rows:"
            words += f" {_seconds(again)} s, {again / plain:.1f} × no bounding"
            if UNBOUNDED in jobs:  # the same integers, where each row counts whole
                words += f", {again / jobs[UNBOUNDED]['wall']:.1f} × our statement without bounding"
            found.append(words)
        if "bytes" in jobs.get(OURS, {}):
            bytes_of = {job: f"{jobs[job]['bytes'] / 1e6:.0f} MB" for job in (OURS, FLOOR)}
            found.append(
                f"{where}, Spark: {bytes_of[OURS]} shuffled, row_number() {bytes_of[FLOOR]}"
            )
    for peer in peers:
        warm = "not measured" if peer["warm"] is None else f"{_seconds(peer['warm'])} s, warm"
        found.append(f"{_size(peer['rows'])}, {peer['label']}: {warm} {peer['reason']}".strip())
    return found


def _estimate(runs: list[Run]) -> str:
    """From the largest run on Spark."""
    known = [one for one in runs if one["engine"] == "Spark" and "jobs" in one]
    if not known:
        return ""
    largest = max(known, key=lambda one: (one["rows"], one["cores"]))
    ours = largest["jobs"][OURS]
    times = FAR_ROWS / largest["rows"]
    cpu, size = ours["cpu"] * times, ours["bytes"] * times
    seconds = cpu / FAR_CORES + size / (NETWORK * FAR_CORES)
    return f"""
## Ten thousand million rows

Estimated, not measured: {_size(FAR_ROWS)} on {FAR_CORES} cores take about {seconds / 60:.0f}
minutes. The largest run above ({_size(largest["rows"])}, {largest["cores"]} cores) took
{ours["cpu"]:.1f} seconds of CPU and shuffled {ours["bytes"] / 1e6:.0f} MB. Both grow with the rows:
each row is read, turned into an integer, shuffled once by its unit, and sorted among the rows of
its partition, which stay as many if partitions grow in number; what is shuffled by group is a few
integers a group and partition. So {cpu:,.0f} seconds of CPU, {cpu / FAR_CORES:.0f} on each core,
and {size / 1e9:.0f} GB through the network, {size / NETWORK / FAR_CORES:.0f} seconds at 100 MB/s a
core. Not in it: reading from a store that is slower than the cores, lost executors, and skew: all
rows of one unit are sorted in one task, so a unit with a hundredth of all rows takes as long as one
core takes for that hundredth.
"""


def _seconds(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


# ---------------------------------------------------------------- the command


def _with_kept(runs: list[Run]) -> tuple[list[Run], list[dict[str, Any]], float]:
    """These runs among the saved ones, which keep their own days and loads."""
    saved = json.loads(RESULTS.read_text("utf-8"))
    usual = {"date": saved["date"][:10], "load": saved["load"]}
    places = {_place(one): {**usual, **one} for one in saved["runs"]}
    places |= {_place(one): one for one in runs}
    return [places[place] for place in sorted(places)], saved["peers"], saved["load"]


def _place(one: Run) -> tuple[int, int, int]:
    return one["rows"], ENGINES.index(one["engine"]), one["cores"]


def main() -> None:
    """Run, show and save."""
    parser = argparse.ArgumentParser(description="Measure the standard question on each engine.")
    parser.add_argument("--no-peers", action="store_true", help="leave Tumult out")
    parser.add_argument("--huge", action="store_true", help="10^8 rows too")
    parser.add_argument("--rows", type=int, nargs="+", help="a quick look; nothing is saved")
    parser.add_argument("--only", choices=ENGINES, help="one engine; other rows are kept")
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    options = parser.parse_args()
    console = Console(highlight=False)
    if not options.page:
        load = os.getloadavg()[0]
        sizes = options.rows or [*SIZES, *([HUGE] if options.huge else [])]
        runs, peers = [], []
        for rows in sizes:
            for engine in ENGINES if rows < HUGE else ("DuckDB", "Spark"):
                for cores in CORES if options.only in (None, engine) else ():
                    console.print(f"{_size(rows)}, {engine}, {cores} cores ...")
                    runs.append(run(engine, rows, cores))
            if rows < HUGE and not options.no_peers and not options.only:
                console.print(f"{_size(rows)}, Tumult ...")
                found = run_peer("Tumult", rows)
                told = {"label": found.label, "warm": found.warm, "reason": found.reason}
                peers.append({"rows": rows, **told})
        if options.only and not options.rows:
            runs, peers, load = _with_kept(runs)
        measurements = lines(runs, {peer["rows"]: peer for peer in peers})
        report.show(console, TITLE, measurements)
        if options.rows:
            return
        path = report.write("engines", measurements)
        saved = json.loads(path.read_text("utf-8"))
        saved |= {"runs": runs, "peers": peers, "load": load}
        path.write_text(json.dumps(saved, indent=1, ensure_ascii=False) + "\n", "utf-8")
    PAGE.write_text(page(json.loads(RESULTS.read_text("utf-8"))), "utf-8")
    console.print(f"Page: {PAGE.relative_to(report.ROOT)}")


if __name__ == "__main__":
    main()
