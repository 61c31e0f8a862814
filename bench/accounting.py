"""Epsilon of known compositions: lastbit's two bounds, and other accountants' one number.

    python bench/accounting.py              measure, print, save the figures and write the page
    python bench/accounting.py --no-peers   lastbit alone; nothing is saved
    python bench/accounting.py --add "Opacus GDP"   one peer, beside what is saved of the others
    python bench/accounting.py --training   only the settings of DP-SGD, with every peer or --add
    python bench/accounting.py --rare       only rare samples, and settings all over
    python bench/accounting.py --page       only writes docs/accounting-benchmarks.md

A peer's number that lies below our proved lower bound is unsound: it promises what is not true.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import report
from accounting_peers import CASES, DELTAS, PEERS, SETTINGS, Parts
from peer_environment import HERE, install, python_of
from rich import box
from rich.console import Console
from rich.table import Table

import lastbit as lb
from lastbit.exact import rounded_down, rounded_up

REPEATS = 3
WIDEST = 1e-9
WIDTH = 150
LONGEST_RUN_SECONDS = 1800
# Opacus PRV takes minutes for some of the first table's cases
OF_ALL_KINDS = ("dp_accounting", "prv_accountant", "Opacus RDP", "Opacus GDP")
OF_RARE_SAMPLES = ("dp_accounting", "prv_accountant", "Opacus RDP", "Opacus PRV")
SAVED = report.RESULTS / "accounting.json"
PAGE = report.ROOT / "docs" / "accounting-benchmarks.md"


def profile(parts: Parts) -> lb.Profile:
    """A case as lastbit takes it: the decimal numbers that were written, exactly."""
    found = []
    for kind, numbers, times in parts:
        first, *others = (Fraction(repr(number)) for number in numbers)
        loss: Any
        if kind == "gaussian":
            loss = lb.GaussianLoss(1 / first**2, neighbours=lb.ADD_REMOVE)
        elif kind == "laplace":
            loss = lb.LaplaceLoss(first, neighbours=lb.ADD_REMOVE)
        elif kind == "response":
            loss = lb.RandomizedResponseLoss(first, neighbours=lb.ADD_REMOVE)
        else:
            loss = lb.SubsampledGaussianLoss(first, 1 / others[0] ** 2)
        found.append((loss, times))
    return lb.Profile(found)


def ours(name: str, delta: str) -> dict[str, Any]:
    """Both bounds of one case, and the least time of a few runs."""
    least, bounds = math.inf, (0.0, math.inf)
    for _ in range(REPEATS):
        start = time.perf_counter()
        bounds = profile(CASES[name]).epsilon(delta)
        least = min(least, time.perf_counter() - start)
    return {"lower": bounds[0], "upper": bounds[1], "seconds": least}


def peer(name: str, *which: str) -> dict[str, Any]:
    """What a peer finds, or the reason why it does not."""
    reason = install(name)
    if reason:
        return {"reason": reason}
    try:
        run = subprocess.run(
            [python_of(name), HERE / "accounting_peers.py", name, *which],
            capture_output=True,
            text=True,
            check=True,
            timeout=LONGEST_RUN_SECONDS,
        )
        found: dict[str, Any] = json.loads(run.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as failure:
        return {"reason": f"bench/accounting_peers.py ended with {type(failure).__name__}"}
    return found


def said(found: dict[str, Any], case: str, delta: str, lower: float) -> str:
    """A peer's answer in words: how far off, and marked where it is unsound."""
    if "reason" in found:
        return "not measured"
    epsilon, seconds = found["found"][case][delta]
    if seconds is None:
        return f"refused ({epsilon})"
    if epsilon == math.inf:
        return f"∞, {seconds:.2g} s"
    mark = "  UNSOUND" if epsilon < lower else ""
    return f"{epsilon - lower:+.1e}, {seconds:.2g} s{mark}"


HEAD = """\
ε of known compositions: our upper bound, how far the proved lower bound lies below it (relative to
it), and the time for both. Of the others: how far their upper bound lies from our lower one, and
their time. **Unsound**: it lies below, so it promises what is not true. They run with the settings
that their documentation shows; prv_accountant is allowed an error of 0.01."""
FOOT = """\
The accountant of dp_accounting 0.6.0 counts a randomised response once, however often it is
composed. Opacus' accountants are about DP-SGD, and refuse other releases; that by Gaussian DP is an
approximation by a limit theorem, as its own warning says, and no bound. How ours works:
[the theory](theory/accounting.md)."""


def page(saved: dict[str, Any]) -> Iterator[str]:
    """The page, from the saved figures."""
    machine, peers = saved["machine"], saved["peers"]
    versions = ", ".join(f"{name} {version}" for name, version in peers.items())
    yield "# Accountants compared"
    yield ""
    yield f"Written by `make bench-accounting`; do not edit. {saved['date'][:10]}, {versions};"
    yield f"{machine['cpu']}, {machine['cores']} cores, load {saved['load']:.1f}."
    yield ""
    yield from HEAD.splitlines()
    yield ""
    yield f"| releases | δ | ε | width | time | {' | '.join(peers)} |"
    yield f"|---|--:|--:|--:|--:|{'--:|' * len(peers)}"
    for row in saved["rows"]:
        words = " | ".join(said.replace("UNSOUND", "**unsound**") for said in row["peers"].values())
        yield (
            f"| {row['case']} | {row['delta']} | {row['upper']:.12g} | {row['width']:.0e} | "
            f"{row['seconds'] * 1e3:.3g} ms | {words} |"
        )
    yield ""
    yield from FOOT.splitlines()
    if "training" in saved:
        yield from ("", *trained(saved["training"]))
    if "rare" in saved:
        yield from ("", *rare(saved["rare"], saved["box"]))


def settings(
    kind: str, names: Iterable[str], beside: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Settings of DP-SGD: our bounds, and what each peer says; of others what is saved."""
    others = {name: peer(name, kind) for name in names}
    saved = beside or {"peers": {}, "rows": []}
    before = {(row["case"], row["delta"]): row["peers"] for row in saved["rows"]}
    rows = []
    for setting in SETTINGS[kind]:
        for delta in setting.deltas:
            start, worked = time.perf_counter(), time.process_time()
            lower, upper = profile(setting.parts).epsilon(delta)
            mine = {
                "lower": lower,
                "upper": upper,
                "seconds": time.perf_counter() - start,
                "cpu": time.process_time() - worked,
            }
            case = setting.name
            told = {name: f["found"][case][delta] for name, f in others.items() if "found" in f}
            told = before.get((case, delta), {}) | told
            rows.append({"case": case, "delta": delta, **mine, "peers": told})
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": report.commit(),
        "load": os.getloadavg()[0],
        "peers": saved["peers"]
        | {name: f.get("version", f.get("reason")) for name, f in others.items()},
        "rows": rows,
    }


TRAINING_HEAD = """\
## Steps of DP-SGD

What accountants say of Poisson-sampled Gaussian noise, for a record added or removed, each with its
own defaults: how far from our proved lower bound on ε. A tight accountant is just above 0.
**Bold**: it lies below, so it promises what is not true. A call may take a minute."""
TRAINING_FOOT = """\
The accountant by Gaussian DP is an approximation, as its own warning says. Every one of its bold
numbers at 10⁻⁵ and 10⁻⁸ is also below the optimistic estimate of dp_accounting itself
(`pessimistic_estimate=False`, steps of 2·10⁻⁵ or 4·10⁻⁶). Those of dp_accounting at 10⁻¹⁰ are
small, and we take them for rounding errors of Fourier transforms in doubles: the same sum with
tilted probabilities, extrapolated to steps of 0, gives 9.3161385 and 5.0818990,
which are our numbers. JAX-privacy hands its events to dp_accounting, TensorFlow Privacy to version
0.4.3 of it, by Rényi divergences."""


def trained(saved: dict[str, Any]) -> Iterator[str]:
    """The table of DP-SGD, and whose number is below what is proved."""
    versions = ", ".join(f"{name} {version}" for name, version in saved["peers"].items())
    yield from TRAINING_HEAD.splitlines()
    yield f"{saved['date'][:10]}, {versions}."
    yield ""
    yield from compared(saved)
    yield ""
    yield from TRAINING_FOOT.splitlines()


def compared(saved: dict[str, Any]) -> Iterator[str]:
    """A table of settings, our bounds and how far off the others are; who is below them."""
    names = [name for name in saved["peers"] if any(name in row["peers"] for row in saved["rows"])]
    yield f"| rate | multiplier | steps | δ | ε | {' | '.join(names)} |"
    yield f"|--:|--:|--:|--:|--:|{'--:|' * len(names)}"
    for row in saved["rows"]:
        cells = []
        for name in names:
            epsilon, seconds = row["peers"][name]
            if seconds is None:
                cells.append(f"none ({epsilon})")
                continue
            more = epsilon - row["lower"]
            cells.append(f"**{more:+.1e}**" if more < 0 else f"{more:+.1e}")
        shown = f"{rounded_down(row['lower'], 7)} to {rounded_up(row['upper'], 7)}"
        yield f"| {row['case']} | {row['delta']} | {shown} | {' | '.join(cells)} |"
    yield ""
    yield "Below our lower bound:"
    yield ""
    for name in names:
        shorts = [row["lower"] - row["peers"][name][0] for row in answered(saved, name)]
        shorts = [short for short in shorts if short > 0]
        if shorts:
            yield (
                f"- {name}: in {len(shorts)} of {len(saved['rows'])} settings, by up to "
                f"{max(shorts):.2g}."
            )


def answered(saved: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """The rows of which a peer says something."""
    return [row for row in saved["rows"] if row["peers"][name][1] is not None]


RARE_HEAD = """\
## Rare samples

Small rates and many steps, as models are trained; multipliers of a third to a half, at which few
large losses decide. As above: how far from our lower bound on ε, with **bold** below it."""
BOX_HEAD = """\
### All over

{count} settings drawn evenly in logarithms: rates from 10⁻⁶ to ½, 1 to 10⁶ steps, multipliers from
0.3 to 10, δ from 10⁻¹² to 10⁻⁴."""


def rare(saved: dict[str, Any], box: dict[str, Any]) -> Iterator[str]:
    """Rare samples, and the worst of many settings."""
    versions = ", ".join(f"{name} {version}" for name, version in saved["peers"].items())
    yield from RARE_HEAD.splitlines()
    yield f"{saved['date'][:10]}, load {saved['load']:.1f}, {versions}."
    yield ""
    yield from compared(saved)
    yield ""
    rows = box["rows"]
    yield from BOX_HEAD.format(count=len(rows)).splitlines()
    yield f"{box['date'][:10]}, load {box['load']:.1f}."
    yield ""
    wide = sorted(rows, key=width_of)
    slow = sorted(row["cpu"] for row in rows)
    yield (
        f"- The two bounds are {width_of(wide[len(rows) // 2]):.1e} apart in the median, "
        f"{width_of(wide[-1]):.1e} at most, relative to ε: at {in_words(wide[-1])}."
    )
    yield (
        f"- They take {slow[len(slow) // 2]:.2f} s of CPU in the median, {slow[-1]:.2f} s at most."
    )
    found = answered(box, "dp_accounting")
    below = [row for row in found if row["peers"]["dp_accounting"][0] < row["lower"]]
    fair = [row for row in found if row not in below]
    most = max(row["upper"] - row["peers"]["dp_accounting"][0] for row in fair)
    lead = max(row["peers"]["dp_accounting"][0] - row["upper"] for row in fair)
    short = max((row["lower"] - row["peers"]["dp_accounting"][0] for row in below), default=0.0)
    yield (
        f"- dp_accounting answers {len(found)} of them. In {len(below)} its number is below our "
        f"lower bound, by up to {short:.2g}. In the others our upper bound is above it by "
        f"{most:.1e} at most, and below it by up to {lead:.2g}."
    )


def width_of(row: dict[str, Any]) -> float:
    """How far both bounds are apart, relative to the upper one."""
    return float((row["upper"] - row["lower"]) / row["upper"]) if row["upper"] else 0.0


def in_words(row: dict[str, Any]) -> str:
    rate, multiplier, steps = row["case"].split(" | ")
    return f"rate {rate}, multiplier {multiplier}, {steps} steps and δ = {row['delta']}"


def main() -> None:
    """Measure, print and save."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--add", action="append", choices=PEERS, help="a peer, beside those saved")
    parser.add_argument("--training", action="store_true", help="only the settings of DP-SGD")
    parser.add_argument("--rare", action="store_true", help="only rare samples and all over")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--print", action="store_true", help="only print what --page writes")
    options = parser.parse_args()
    if options.print:
        sys.stdout.write(written())
        return
    if options.training:
        saved = json.loads(SAVED.read_text("utf-8"))
        names, beside = (options.add, saved["training"]) if options.add else (PEERS, None)
        save(saved | {"training": settings("training", names, beside)})
    if options.rare:
        save(json.loads(SAVED.read_text("utf-8")) | rare_settings())
    if options.training or options.rare or options.page:
        write_page()
        return
    if options.add:
        add({name: peer(name) for name in options.add})
        return
    others = {} if options.no_peers else {name: peer(name) for name in OF_ALL_KINDS}
    table = Table(box=box.SIMPLE_HEAD, title="Accounting", title_justify="left")
    for heading in ("case", "delta", "epsilon", "relative width", "time", *others):
        table.add_column(heading)
    rows = []
    for case in CASES:
        for delta in DELTAS:
            mine = ours(case, delta)
            width = (mine["upper"] - mine["lower"]) / mine["upper"]
            words = {
                name: said(found, case, delta, mine["lower"]) for name, found in others.items()
            }
            rows.append({"case": case, "delta": delta, **mine, "width": width, "peers": words})
            shown = f"{width:.0e}" + ("" if width <= WIDEST else "  TOO WIDE")
            seconds = f"{mine['seconds'] * 1e3:.3g} ms"
            table.add_row(case, delta, f"{mine['upper']:.15g}", shown, seconds, *words.values())
    console = Console(width=WIDTH)
    console.print(table)
    for name, found in others.items():
        console.print(f"{name}: {found.get('version') or found.get('reason')}")
    if others:
        record = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": report.machine(),
            "commit": report.commit(),
            "load": os.getloadavg()[0],
            "peers": {
                name: found.get("version", found.get("reason")) for name, found in others.items()
            },
            "rows": rows,
            "training": settings("training", PEERS),
            **rare_settings(),
        }
        save(record)
        write_page()


def rare_settings() -> dict[str, Any]:
    """Rare samples beside those that account for them closely; all over, beside one of them."""
    return {
        "rare": settings("rare", OF_RARE_SAMPLES),
        "box": settings("box", ["dp_accounting"]),
    }


def add(others: dict[str, Any]) -> None:
    """Put what further peers say beside the bounds that are saved."""
    saved = json.loads(SAVED.read_text("utf-8"))
    for row in saved["rows"]:
        for name, found in others.items():
            row["peers"][name] = said(found, row["case"], row["delta"], row["lower"])
    saved["peers"] |= {name: f.get("version", f.get("reason")) for name, f in others.items()}
    save(saved)
    write_page()


def save(record: dict[str, Any]) -> None:
    """The figures, for the page and for later."""
    SAVED.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


def written() -> str:
    """The page, from the figures saved last."""
    return "\n".join(page(json.loads(SAVED.read_text("utf-8")))) + "\n"


def write_page() -> None:
    PAGE.write_text(written(), "utf-8")


if __name__ == "__main__":
    main()
