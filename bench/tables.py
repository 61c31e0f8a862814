"""How quick and how far off are answers about a table? Against DuckDB and other libraries.

    python bench/tables.py               10^6 and 10^7 rows (a quarter of an hour), print, save
    python bench/tables.py --huge        10^8 rows too, without the other libraries
    python bench/tables.py --no-peers    without the other libraries
    python bench/tables.py --rows 100000 a quick look: nothing is saved

The question is one that all can answer: rows and mean cost for each of 100 skewed groups, from
Parquet, with N/10 units of which each counts for at most 10 rows (`tables_data.py`). Each job runs
in a process of its own (`tables_jobs.py`), the quick ones in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import report
from measure import Measurement, Step, Target
from peer_environment import HERE, install, is_installed, python_of
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from tables_data import table_file
from tables_error import RELEASES, compared

TITLE = "Tables: rows and mean of 100 groups, units bounded to 10 rows, from Parquet"
SIZES = (10**6, 10**7)
HUGE = 10**8
ERROR_ROWS = 10**6
LONGEST_RUN_SECONDS = 1800
SECOND = 1e9

OURS = "lastbit"
FLOOR = "unordered"
STATEMENTS = ("no bounding", FLOOR, "random order")
PLAIN = "no bounding"
LEDGER = "lastbit, with a ledger"
PREPARED = {"lastbit, prepared": 3, "lastbit, prepared, with WHERE": 8}
"""Prepared tables, with a ledger: at most so many times the plain statement."""
# the same jobs on other tables: "even: lastbit", "named: unordered"
OTHER_TABLES = {"even": "every unit has 10 rows", "named": "named groups"}
PEERS = {"OpenDP": "OpenDP Polars", "Tumult": "Tumult Analytics"}

AT_MOST_FLOOR = 1.3
FASTER = {"OpenDP": 5, "Tumult": 30}
EXTRA_MB = 200
HUGE_MB = 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The best figures of a job over its processes, or why there are none."""

    name: str
    version: str = ""
    whole: float | None = None
    """Seconds from the start of the process to its first answer."""
    warm: float | None = None
    """Seconds of the quickest call."""
    cpu: float | None = None
    peak: float | None = None
    reason: str = ""

    @property
    def label(self) -> str:
        """A library with its version."""
        return f"{self.name} {self.version}".strip()


def rounds(rows: int) -> tuple[int, int]:
    """How many processes a quick job gets, and how many calls in each."""
    if rows >= HUGE:
        return 1, 2
    return (5, 3) if rows >= 10**7 else (5, 5)


def run_all(names: list[str], rows: int) -> dict[str, Run]:
    """Quick jobs, in turns: a noisy moment hits them all."""
    processes, calls = rounds(rows)
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(processes):
        for name in names:
            found[name].append(child(name, rows, calls))
    return {name: best(name, results) for name, results in found.items()}


def run_peer(name: str, rows: int) -> Run:
    """A peer: two processes with two calls if it is quick, else one."""
    if reason := unavailable(name):
        return Run(name=name, reason=reason)
    results = [child(name, rows, 2)]
    if results[0].get("first", LONGEST_RUN_SECONDS) < 30:
        results.append(child(name, rows, 2))
    return best(name, results)


def unavailable(name: str) -> str:
    """Why a peer cannot be asked; it is installed if need be."""
    if name == "Tumult" and not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        return "it needs Java, which is not here"
    return install(PEERS[name])


def child(name: str, rows: int, calls: int) -> dict[str, Any]:
    """What one process measured."""
    python = python_of(PEERS[name]) if name in PEERS else Path(sys.executable)
    *other, job = name.split(": ")
    path = table_file(other[0] if other else "visits", rows)
    command = [
        *(str(python), str(HERE / "tables_jobs.py"), job, str(path)),
        *(str(calls), str(time.time())),
    ]
    try:
        run = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
            timeout=LONGEST_RUN_SECONDS,
            cwd=path.parent,  # DuckDB spills there
        )
        result = json.loads(run.stdout.strip().splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as failure:
        return {"reason": f"its process ended with {type(failure).__name__}"}
    if "reason" not in result and not 0.8 * rows < result["rows"] < 1.05 * rows:
        return {"reason": "its answer is far from the truth"}
    return dict(result)


def best(name: str, results: list[dict[str, Any]]) -> Run:
    good = [result for result in results if "reason" not in result]
    if not good:
        return Run(name=name, reason=results[0]["reason"])
    return Run(
        name=name,
        version=good[0]["version"],
        whole=min(result["whole"] for result in good),
        warm=min(result["least"] for result in good),
        cpu=min(result["cpu"] for result in good),
        peak=min(result["peak"] for result in good),
    )


# ---------------------------------------------------------------- the lines of the table


def sized(rows: int, *, peers: bool) -> list[Measurement]:
    """All lines of one size."""
    extra = [f"{table}: {job}" for table in OTHER_TABLES for job in (OURS, FLOOR)]
    extra = [LEDGER, *extra] if rows < HUGE else []
    runs = run_all([OURS, *PREPARED, *_statements(rows), *extra], rows)
    others = [run_peer(name, rows) for name in PEERS] if peers and rows < HUGE else []
    statements = [runs[name] for name in _statements(rows)]
    return [
        *_warm(rows, runs, statements),
        *_prepared(rows, runs),
        *_whole(rows, runs[OURS], statements),
        *_others(rows, runs[OURS], others),
        *_memory(rows, runs[OURS], [*statements, *others]),
    ]


def _statements(rows: int) -> tuple[str, ...]:
    return STATEMENTS if rows < HUGE else STATEMENTS[:2]  # a random order would sort 10^8 rows


def _size(rows: int) -> str:
    power = len(str(rows)) - 1
    return f"10^{power} rows" if rows == 10**power else f"{rows:,} rows"


def _line(
    section: str, run: Run, ours: Run, kind: str, *, target: Target | None = None, **more: Any
) -> Measurement:
    """Our figure of this kind beside another's."""
    factor = 1.0 if kind == "peak" else SECOND
    own, other = getattr(ours, kind), getattr(run, kind)
    reason = run.reason or ours.reason
    fields = {"what": run.name, "reference_name": f"DuckDB {run.version}", "note": reason} | more
    return Measurement(
        section=section,
        ours=None if own is None else own * factor,
        reference=None if other is None else other * factor,
        unit="MB" if kind == "peak" else "ns",
        target=target,
        **fields,
    )


def _warm(rows: int, runs: dict[str, Run], statements: list[Run]) -> list[Measurement]:
    line = partial(_line, f"{_size(rows)}, the job")
    at_most = Target(limit=AT_MOST_FLOOR, of="ratio") if rows < HUGE else None
    ours, floor = runs[OURS], runs[FLOOR]
    lines = [
        line(run, ours, "warm", target=at_most if run is floor else None) for run in statements
    ]
    lines.append(line(floor, ours, "cpu", what=f"{FLOOR}, CPU time"))
    if LEDGER in runs:
        lines.append(line(floor, runs[LEDGER], "warm", what=f"{FLOOR}, ours with ledger"))
    for table, told in OTHER_TABLES.items():
        if f"{table}: {OURS}" in runs:
            own, other = (runs[f"{table}: {job}"] for job in (OURS, FLOOR))
            target = at_most if table == "even" else None
            lines.append(line(other, own, "warm", what=f"{FLOOR}, {told}", target=target))
    return lines


def _prepared(rows: int, runs: dict[str, Run]) -> list[Measurement]:
    """Each way beside the plain statement: time, CPU time, memory."""
    lines = []
    for name, most in PREPARED.items():
        line = partial(_line, f"{_size(rows)}, prepared", runs[PLAIN], runs[name])
        target = Target(limit=most, of="ratio")
        lines.append(line("warm", what=f"{PLAIN}, ours {name[9:]}", target=target))
        lines.append(line("cpu", what=f"{PLAIN}, ours {name[9:]}, CPU time"))
        lines.append(line("peak", what=f"{PLAIN}, ours {name[9:]}", reference_name=""))
    return lines


def _whole(rows: int, ours: Run, statements: list[Run]) -> list[Measurement]:
    section = f"{_size(rows)}, whole process"
    return [_line(section, run, ours, "whole") for run in statements]


def _others(rows: int, ours: Run, others: list[Run]) -> list[Measurement]:
    return [
        _line(
            f"{_size(rows)}, other libraries",
            run,
            ours,
            kind,
            target=Target(limit=1 / FASTER[run.name], of="ratio"),
            what=f"{run.label}{'' if kind == 'warm' else ', whole process'}",
            reference_name="",
            peer=True,
        )
        for run in others
        for kind in ("warm", "whole")
    ]


def _memory(rows: int, ours: Run, runs: list[Run]) -> list[Measurement]:
    section = f"{_size(rows)}, peak memory"
    lines = []
    for run in runs:
        target = None
        if run.name == FLOOR and run.peak is not None:
            target = Target(limit=run.peak + EXTRA_MB)
        what = run.label if run.name in PEERS else f"DuckDB, {run.name}"
        lines.append(_line(section, run, ours, "peak", target=target, what=what, reference_name=""))
    if rows >= HUGE:
        lines.append(
            Measurement(
                section=section,
                what="in all",
                ours=ours.peak,
                unit="MB",
                target=Target(limit=HUGE_MB),
                note=ours.reason,
            )
        )
    return lines


# ---------------------------------------------------------------- the command


def steps(sizes: list[int], *, peers: bool, releases: int) -> list[Step]:
    """One step a size, and the errors."""
    lines = [
        Step(title=_title(rows, peers=peers), run=partial(sized, rows, peers=peers))
        for rows in sizes
    ]
    error_rows = min(ERROR_ROWS, *sizes)
    return lines + [
        Step(title=f"errors: {name}", run=partial(compared, name, error_rows, releases))
        for name in ("visits", "heavy")
    ]


def _title(rows: int, *, peers: bool) -> str:
    missing = [name for name, pin in PEERS.items() if not is_installed(pin)] if peers else []
    installing = f"; installing {' and '.join(missing)} into bench/.venv" if missing else ""
    return f"{_size(rows)}{installing}"


def main() -> None:
    """Run, show and save."""
    parser = argparse.ArgumentParser(description="Measure answers about tables.")
    parser.add_argument("--no-peers", action="store_true", help="leave other libraries out")
    parser.add_argument("--huge", action="store_true", help="10^8 rows too")
    parser.add_argument("--rows", type=int, nargs="+", help="a quick look; nothing is saved")
    options = parser.parse_args()
    sizes = options.rows or [*SIZES, *([HUGE] if options.huge else [])]
    console = Console(highlight=False)
    todo = steps(sizes, peers=not options.no_peers, releases=5 if options.rows else RELEASES)
    load = os.getloadavg()[0]
    if load > 0.5:
        console.print(f"Other programs are busy (load {load:.1f}): times will be too long.")
    busy = Measurement(section="this machine", what="load before the run", ours=load, unit="")
    measurements = [*measured(console, todo), busy]
    report.show(console, TITLE, measurements)
    if not options.rows:
        path = report.write("tables", measurements)
        console.print(f"Figures, machine and commit: {path.relative_to(report.ROOT)}")


def measured(console: Console, todo: list[Step]) -> list[Measurement]:
    """What all steps measured, on all cores."""
    console.print(f"Measuring in {len(todo)} steps on all cores; minutes.")
    columns = (
        BarColumn(20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    results = []
    with Progress(*columns, console=console, transient=True, auto_refresh=False) as progress:
        task = progress.add_task("", total=len(todo))
        for step in todo:
            progress.update(task, description=step.title, refresh=True)
            results += step.run()
            progress.advance(task)
    return results


if __name__ == "__main__":
    main()
