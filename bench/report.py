"""The table on the screen and the record on disk."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from measure import Measurement, Target
from rich import box
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
LIBRARIES = ("numpy", "cryptography", "python-flint", "duckdb")


def show(console: Console, title: str, measurements: list[Measurement]) -> None:
    """One table, section by section, and a closing line about the targets."""
    table = Table(
        box=box.SIMPLE_HEAD, title=title, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column("", min_width=29)
    for heading in ("lastbit", "reference", "ratio", "target", "met"):
        table.add_column(heading, justify="right", no_wrap=True)
    for section, rows in groupby(measurements, key=lambda row: row.section):
        _add_section(table, section, list(rows))
    console.print(table)
    for line in verdict(measurements):
        console.print(line)


def _add_section(table: Table, section: str, rows: list[Measurement]) -> None:
    names = {row.reference_name for row in rows}
    shared = names.pop() if len(names) == 1 else ""
    table.add_section()
    faster = "faster" if rows[0].peer and rows[0].ours else ""
    table.add_row(f"[bold]{section}[/]", "", f"[italic]{shared}[/]", f"[italic]{faster}[/]")
    for row in rows:
        own = row.reference_name if not shared else ""
        what = f"  {row.what}" + (f" [dim]({own})[/]" if own else "")
        table.add_row(
            what,
            shown(row.ours, row.unit),
            shown(row.reference, row.unit),
            _ratio(row),
            _target(row),
            _met(row),
        )


def shown(value: float | None, unit: str) -> str:
    """A figure with three digits and a unit people read easily."""
    if value is None:
        return ""
    if not unit:
        return f"{value:.4g}"
    if unit != "ns":
        return f"× {value:.2f}" if unit == "×" else f"{value:.0f} {unit}"
    for factor, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if value >= factor:
            return f"{value / factor:.3g} {name}"
    return f"{value:.3g} ns"


def _met(row: Measurement) -> str:
    if row.target is None:
        return ""
    return {True: "[green]yes[/]", False: "[bold red]NO[/]", None: "[yellow]?[/]"}[row.met]


def _ratio(row: Measurement) -> str:
    if row.ratio is None or row.unit == "×":
        return ""
    if row.peer:
        return f"× {1 / row.ratio:,.{0 if row.ratio < 0.1 else 1}f}"
    return f"{row.ratio:.2f}"


def _target(row: Measurement) -> str:
    target = row.target
    if target is None:
        return ""
    if row.peer and target.of == "ratio":  # shown as "faster", so the bound is turned round too
        return f"≥ × {1 / target.limit:,.0f}"
    sign = "≥" if target.at_least else "≤"
    bound = f"{target.limit:g}" if target.of == "ratio" else _bound(target, row.unit)
    return f"{sign} {bound}"


def _bound(target: Target, unit: str) -> str:
    return f"× {target.limit:g}" if unit == "×" else shown(target.limit, unit)


def verdict(measurements: list[Measurement]) -> list[str]:
    """How many targets are met, and which are not."""
    with_target = [row for row in measurements if row.target is not None]
    met = [row for row in with_target if row.met]
    lines = [f"[bold]{len(met)} of {len(with_target)} targets met.[/]"]
    for word, value in (("Missed", False), ("Not judged", None)):
        rows = [row for row in with_target if row.met is value]
        lines += [f"{word}: {_name(row)}: {_outcome(row)}." for row in rows]
    return lines


def _name(row: Measurement) -> str:
    return f"{row.section}, {row.what}"


def _outcome(row: Measurement) -> str:
    value = _ratio(row) if row.target and row.target.of == "ratio" else shown(row.ours, row.unit)
    outcome = f"{value or 'no figure'}, target {_target(row)}"
    return f"{outcome} ({row.note})" if row.note else outcome


def write(name: str, measurements: list[Measurement]) -> Path:
    """Save the figures with everything needed to read them later."""
    targets = [row.met for row in measurements if row.target is not None]
    record = {
        "benchmark": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "targets": {
            "met": targets.count(True),
            "missed": targets.count(False),
            "not judged": targets.count(None),
        },
        "measurements": [_rounded(row.record()) for row in measurements],
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return path


def _rounded(record: dict[str, object]) -> dict[str, object]:
    return {
        key: float(f"{value:.4g}") if isinstance(value, float) else value
        for key, value in record.items()
    }


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{library: version(library) for library in LIBRARIES},
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or "unknown")


def commit() -> dict[str, object]:
    """Which code was measured; results of earlier runs do not count as changes."""
    changes = _git("status", "--porcelain", "--", ".", ":!bench/results")
    return {"hash": _git("rev-parse", "--verify", "HEAD"), "dirty": bool(changes)}


def _git(*arguments: str) -> str | None:
    try:
        run = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return run.stdout.strip() if run.returncode == 0 else None
