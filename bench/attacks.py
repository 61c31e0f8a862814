"""What we tried on whom: every attack on every target, ours and other libraries'.

    python bench/attacks.py              run all, save bench/results/attacks.json, write the page
    python bench/attacks.py --no-peers   numpy and lastbit only; nothing is saved
    python bench/attacks.py --only opacus      one library again, beside what is saved of the others
    python bench/attacks.py --black-box  the black-box auditor in place of the attacks;
                                         saves bench/results/black_box.json
    python bench/attacks.py --page       only write the tables of docs/attacks.md

A library that cannot be installed or run is named with the reason; no figure of an earlier run
stands in for it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import report
from peer_environment import HERE, LIBRARIES as PEERS, LOG, folder_of, install, python_of
from rich import box
from rich.console import Console
from rich.table import Table

from lastbit.exact import rounded_down

ATTACKED = report.RESULTS / "attacks.json"
AUDITED = report.RESULTS / "black_box.json"
PAGE = report.ROOT / "docs" / "attacks.md"
HERE_TOO = ("lastbit", "numpy")
# what lastbit itself needs beside numpy, in the peers' environment
NEEDS = ("cryptography==50.0.2", "python-flint==0.9.0")
TUMULT_NEEDS = ("pandas==2.3.3", "randomgen==2.3.0", "typeguard==4.4.4")
TUMULT_PIN = "tmlt.core==0.20.0"
BITS = ("preimage", "precision", "polar-pairs", "low-bits", "threshold", "fork")
SUMS = ("narrow-sum", "reordering", "nan", "overflow")

Row = dict[str, Any]


# ---------------------------------------------------------------- running


def measured(
    console: Console, libraries: Iterable[str], *how: str
) -> tuple[list[Row], dict[str, str]]:
    """A row for every attack on every target, and what each library's version is."""
    rows: list[Row] = []
    versions: dict[str, str] = {}
    for library in libraries:
        reason = "" if library in HERE_TOO else _prepared(library)
        if reason:
            versions[library] = f"not tried: {reason}"
            console.print(f"[yellow]{library}[/]: {reason}")
            continue
        for line in _lines(library, *how):
            if "version" in line:
                versions[library] = line["version"]
                continue
            rows.append(line)
            mark = "[bold red]BROKEN[/]" if line.get("broken") else "[dim]held[/]  "
            attack = line.get("attack", "black box")
            console.print(f"{mark} {line['target']}, {attack}: {_cell(line)}")
    return rows, versions


def _lines(library: str, *how: str) -> Iterator[Row]:
    python = sys.executable if library in HERE_TOO else python_of(PEERS[library])
    paths = os.environ | {"PYTHONPATH": str(report.ROOT / "src")}
    command = [str(python), str(HERE / "attack_runner.py"), library, *how]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=paths
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            yield json.loads(line)
    if run.returncode:
        yield {"version": f"not tried to the end: the runner ended with {run.returncode}"}


def _prepared(library: str) -> str:
    """Install a library and what lastbit needs beside it; the reason if that fails."""
    if PEERS[library] and (reason := install(PEERS[library])):
        return reason
    # Tumult's own pins hold numpy below 2, so it comes without them
    tumult = ["--no-deps", TUMULT_PIN]
    wanted = [list(NEEDS)] if PEERS[library] else [[*NEEDS, *TUMULT_NEEDS], tumult]
    stamp = folder_of(PEERS[library]) / f"attacks-{library}.installed"
    text = "\n".join(pin for pins in wanted for pin in pins)
    if stamp.is_file() and stamp.read_text("utf-8") == text:
        return ""
    for pins in wanted:
        python = python_of(PEERS[library])
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        run = subprocess.run([*pip, *pins], capture_output=True, text=True, check=False)
        with LOG.open("a", encoding="utf-8") as log:
            log.write(run.stderr)
        if run.returncode:
            return f"pip could not install {pins[-1]}; see bench/.venv/{LOG.name}"
    stamp.write_text(text, "utf-8")
    return ""


def write(
    path: Path, rows: list[Row], versions: dict[str, str], *, beside: Row | None = None
) -> None:
    """Save the verdicts with everything needed to read them later; `beside` is what stays."""
    today = datetime.now(UTC).isoformat(timespec="seconds")
    record = {
        "benchmark": path.stem,
        "date": today,
        "commit": report.commit(),
        "machine": report.machine(),
        "versions": versions,
        "dates": dict.fromkeys(versions, today[:10]),
        "rows": "ROWS",
    }
    if beside is not None:
        before = beside.get("dates", dict.fromkeys(beside["versions"], beside["date"][:10]))
        record |= {
            "date": beside["date"],
            "commit": beside["commit"],
            "versions": beside["versions"] | versions,
            "dates": before | dict.fromkeys(versions, today[:10]),
        }
        rows = [row for row in beside["rows"] if row["library"] not in versions] + rows
        rows.sort(key=lambda row: [*HERE_TOO, *PEERS].index(row["library"]))
    lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
    text = json.dumps(record, ensure_ascii=False, indent=1).replace('"ROWS"', f"[\n  {lines}\n ]")
    path.parent.mkdir(exist_ok=True)
    path.write_text(text + "\n", "utf-8")


# ---------------------------------------------------------------- showing


def show(console: Console, rows: list[Row]) -> None:
    """Who was broken by what."""
    table = Table(box=box.SIMPLE_HEAD, title="Broken", title_justify="left", pad_edge=False)
    for heading in ("target", "attack", "certified", "claimed", "witness"):
        table.add_column(heading)
    for row in rows:
        if row.get("broken"):
            claimed = "" if row["claimed"] is None else f"{row['claimed']:.4g}"
            table.add_row(row["target"], row["attack"], _cell(row), claimed, row["witness"])
    console.print(table)
    accused = [row for row in rows if row.get("broken") and row["library"] == "lastbit"]
    epsilon = [row for row in accused if row["claimed"] is not None]
    console.print(f"Of ours: {len(epsilon)} broken, {len(accused) - len(epsilon)} seen by a clock.")


def _cell(row: Row) -> str:
    """One verdict in a word or two."""
    if "reason" in row:
        return f"did not run ({row['reason']})"
    if row.get("attack") == "timing":
        return str(row["details"]["Spearman"])
    if row["samples"] == 0:
        return "refuses"
    if not row["broken"]:
        return "holds"
    # rounded down, as everything that is certified
    return f"ε ≥ {int(row['epsilon_lower'] * 100) / 100:.2f}"


def drawn() -> str:
    """docs/attacks.md with the tables of the saved verdicts."""
    saved, heard = (json.loads(path.read_text("utf-8")) for path in (ATTACKED, AUDITED))
    page = PAGE.read_text("utf-8")
    parts = {
        "run": _run(saved),
        "black-box": _black_box(heard, saved["rows"]),
        "noise": _table(saved["rows"], BITS),
        "sums": _table(saved["rows"], SUMS),
        "clock": _clock(saved["rows"]),
    }
    for mark, lines in parts.items():
        begin, end = f"<!-- {mark}: written by bench/attacks.py -->\n", f"<!-- end of {mark} -->"
        before, _, rest = page.partition(begin)
        page = before + begin + "\n".join(lines) + "\n" + end + rest.partition(end)[2]
    return page


def _run(saved: dict[str, Any]) -> Iterator[str]:
    commit = (saved["commit"]["hash"] or "unknown")[:12]
    changes = ", with uncommitted changes" if saved["commit"]["dirty"] else ""
    first = saved["date"][:10]
    dates = saved.get("dates", {})
    told = ", ".join(
        f"{name} {text}" + (f" (on {dates[name]})" if dates.get(name, first) != first else "")
        for name, text in saved["versions"].items()
    )
    yield f"Tried on {first}, commit {commit}{changes}, Python"
    yield f"{saved['machine']['python']}: {told}."


def _table(rows: list[Row], attacks: tuple[str, ...]) -> Iterator[str]:
    """One line a target: bold where the claim is refuted."""
    yield f"| target | claimed ε | {' | '.join(attacks)} |"
    yield "|---|--:|" + "---|" * len(attacks)
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row["attack"] in attacks:
            found.setdefault(row["target"], {})[row["attack"]] = row
    for target, verdicts in found.items():
        claims = [
            row["claimed"]
            for name, row in verdicts.items()
            if row.get("claimed") is not None and name != "polar-pairs"
        ]
        claimed = f"{claims[0]:.3g}" if claims else ""
        cells = [_marked(verdicts.get(attack)) for attack in attacks]
        yield f"| {target} | {claimed} | {' | '.join(cells)} |"


def _black_box(heard: Row, attacks: list[Row]) -> Iterator[str]:
    """One line a target: what the attack that proves most and the black box certify."""
    yield from _run(heard)
    yield ""
    yield "| target | version | claim | best attack | black box | runs | its event | verdict |"
    yield "|---|---|---|---|---|--:|---|---|"
    for row in heard["rows"]:
        broken = [r for r in attacks if r["target"] == row["target"] and r.get("broken")]
        proved = [r for r in broken if r["attack"] != "timing"]
        best = max(proved, key=lambda r: r["epsilon_lower"], default=None)
        special = "none" if best is None else f"{best['attack']}: {_cell(best)}"
        yield f"| {row['target']} | {heard['versions'][row['library']]} | {_heard(row, special)} |"


def _heard(row: Row, special: str) -> str:
    if "reason" in row:
        return f"| {special} | {_cell(row)} | | |"
    delta = f", δ = {row['delta']:g}" if row["delta"] else ""
    found = f"ε ≥ {rounded_down(row['epsilon_lower'], 3)}"
    if row["delta_lower"]:
        found += f", δ ≥ {rounded_down(row['delta_lower'], 2)}"
    # conditions that restrict nothing are left out, and numbers cut after four places
    limits = [part for part in row["event"].split(" and ") if not part.endswith(" is anything")]
    event = re.sub(r"(\.\d{4})\d+", r"\1…", " and ".join(limits)) or "none"
    verdict = "**broken**" if row["broken"] else "not refuted"
    words = f"ε = {row['claimed']:.3g}{delta} | {special} | {found} | {row['samples']:,}"
    words = re.sub(r"([εδ]) ([≥=]) ", "\\1\u00a0\\2\u00a0", words)
    return f"{words} | {event} | {verdict}"


def _marked(row: Row | None) -> str:
    if row is None:
        return "–"
    return f"**{_cell(row)}**" if row.get("broken") else _cell(row)


def _clock(rows: list[Row]) -> Iterator[str]:
    """Only those that a clock can tell, and how many it cannot."""
    timed = [row for row in rows if row["attack"] == "timing" and "reason" not in row]
    yield "| target | Spearman | chance if independent |"
    yield "|---|--:|---|"
    for row in timed:
        if row["broken"]:
            chance = row["details"]["chance if independent"]
            yield f"| {row['target']} | {row['details']['Spearman']} | {chance} |"
    quiet = sum(not row["broken"] for row in timed)
    yield ""
    yield f"Of {quiet} other targets the clock shows nothing at this size."


def main() -> None:
    """Run, show, save and write the page, or only write the page."""
    parser = argparse.ArgumentParser(description="Try every attack on every target.")
    parser.add_argument("--no-peers", action="store_true", help="numpy and lastbit; nothing saved")
    parser.add_argument("--only", action="append", choices=(*HERE_TOO, *PEERS), help="one library")
    parser.add_argument("--black-box", action="store_true", help="the auditor, not the attacks")
    parser.add_argument("--page", action="store_true", help="only write docs/attacks.md")
    parser.add_argument("--print", action="store_true", help="only print what --page writes")
    options = parser.parse_args()
    console = Console(highlight=False)
    if options.print:
        sys.stdout.write(drawn())
        return
    if not options.page:
        some = options.only or (*HERE_TOO, *(() if options.no_peers else PEERS))
        path, how = (AUDITED, ["black-box"]) if options.black_box else (ATTACKED, [])
        rows, versions = measured(console, some, *how)
        if not how:
            show(console, rows)
        if options.no_peers:
            return
        saved = json.loads(path.read_text("utf-8")) if options.only and path.is_file() else None
        write(path, rows, versions, beside=saved)
        console.print(f"Verdicts, machine and commit: {path.relative_to(report.ROOT)}")
    PAGE.write_text(drawn(), "utf-8")


if __name__ == "__main__":
    main()
