"""How much of each benchmark's loss is certified, and how fast, beside DP-Sniper and StatDP.

    python bench/audit.py                      every benchmark; saves the table and writes the page
    python bench/audit.py --seconds 10         a quick look: nothing is saved
    python bench/audit.py --only "prefix sums"
    python bench/audit.py --page               only writes docs/auditing-benchmarks.md anew

Their figures are at the same parameters. DP-Sniper's bounds hold with a confidence of 90 % and
rest on 2 * 10**8 runs of each input, StatDP's are estimates without any confidence; ours are wrong
with probability at most 1e-6. Their times are from other machines: compare orders of magnitude.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import report
from auditing.benchmarks import Benchmark, benchmarks
from rich import box
from rich.console import Console
from rich.table import Table

from lastbit.audit import AuditResult, distinguish_by_law, distinguish_by_sampling
from lastbit.sampling import secure_bits, words

RESULT = report.RESULTS / "audit.json"
PAGE = report.ROOT / "docs" / "auditing-benchmarks.md"
ERROR = "1e-6"
SECONDS = 36.0
RARELY = Fraction(1, 2**40)
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Theirs:
    """A bound on epsilon and the seconds it took; None where none was published."""

    sniper: float | None = None
    sniper_seconds: float | None = None
    statdp: float | None = None
    statdp_seconds: float | None = None


THEIRS = {
    "float Laplace": Theirs(0.252, 1817),
    "snapped Laplace": Theirs(0.098, 1257),
    "exact Laplace": Theirs(0.097, 20, 0.100, 46),
    "histogram 2": Theirs(4.60, 38, 9.75, 817),
    "noisy max 3": Theirs(0.248, 60, 0.200, 132),
    "noisy max 4": Theirs(0.346, 60, 0.197, 132),
    "sparse vector 1": Theirs(0.086, 118, 0.033, 344),
    "sparse vector 3": Theirs(0.182, 150, 0.043, 5821),
    "sparse vector 4": Theirs(0.169, 123, 0.173, 556),
    "sparse vector 5": Theirs(1.761, 56, math.inf, 351),
    "sparse vector 6": Theirs(0.272, 91, 0.326, 755),
    "RAPPOR": Theirs(0.598, 80, 0.476, 991),
    "prefix sums": Theirs(0.577, 92, 0.352, 3367),
    "parallel sparse vector": Theirs(0.261, 341, 0.165, 27_301),
    "numerical sparse vector": Theirs(0.034, 142),
}


# ---------------------------------------------------------------- measuring


def exact_loss(benchmark: Benchmark) -> tuple[float, float] | None:
    """The greatest exact loss over the pairs and the time it took, where there is a closed form."""
    if benchmark.exact is None:
        return None
    found, start = [], time.perf_counter()
    for x, y in benchmark.pairs:
        for pair in ((x, y), (y, x)):
            try:
                found.append(float(benchmark.exact(*pair)))
            except ValueError:  # no closed form for this pair
                continue
    return (max(found), time.perf_counter() - start) if found else None


def measured(benchmark: Benchmark, seconds: float) -> Row:
    """One line of the table."""
    exact = exact_loss(benchmark)
    result = distinguish_by_sampling(
        benchmark, list(benchmark.pairs), epsilon=benchmark.epsilon, seconds=seconds, error=ERROR
    )
    return {
        "mechanism": benchmark.name,
        "source": benchmark.source,
        "claimed": float(benchmark.epsilon),
        "correct": benchmark.correct,
        "by_law": None if exact is None else _plain(exact[0]),
        "by_law_seconds": None if exact is None else exact[1],
        **result.to_dict(),
    }


def _plain(number: float) -> float | str:
    return "inf" if math.isinf(number) else number


def curator(value: Any, size: int) -> Any:
    """A fair coin, but once in 2**40 runs the value itself."""
    numbers = words(secure_bits(), size, np.uint64)
    return np.where(numbers >> np.uint64(24) == 0, value, (numbers & np.uint64(1)).astype(float))


def curator_law(value: Any) -> dict[Any, Fraction]:
    fair = (1 - RARELY) / 2
    return {0: fair, 1: fair, value: RARELY}


def curators(seconds: float) -> tuple[AuditResult, AuditResult]:
    """What sampling says of the curator, and what its law says."""
    by_law = distinguish_by_law(None, (5, 6), law=curator_law, epsilon=1)
    assert by_law is not None
    return distinguish_by_sampling(curator, (5, 6), epsilon=1, seconds=seconds), by_law


# ---------------------------------------------------------------- showing


def best_of_theirs(row: Row) -> float | None:
    theirs = THEIRS.get(row["mechanism"], Theirs())
    known = [bound for bound in (theirs.sniper, theirs.statdp) if bound is not None]
    return max(known, default=None)


def below(bound: float | str | None, digits: int = 3) -> str:
    """Rounded down, as everything that is certified; the last 1e-12 aside."""
    if bound is None:
        return "–"
    if math.isinf(float(bound)):
        return "∞"
    return f"{math.floor(float(bound) * 10**digits + 1e-9) / 10**digits:.{digits}f}"


def with_time(bound: float | str | None, seconds: float | None) -> str:
    if bound is None or seconds is None:
        return "–"
    return f"{below(bound)}, {seconds:,.0f} s" if seconds >= 1 else f"{below(bound)}, < 1 s"


def cells(row: Row) -> list[str]:
    theirs = THEIRS.get(row["mechanism"], Theirs())
    refuted = row["broken"] or (row["by_law"] is not None and float(row["by_law"]) > row["claimed"])
    return [
        row["mechanism"],
        below(row["claimed"]),
        with_time(row["by_law"], row["by_law_seconds"]),
        with_time(row["epsilon_lower"], row["seconds"]),
        with_time(theirs.sniper, theirs.sniper_seconds),
        with_time(theirs.statdp, theirs.statdp_seconds),
        "no" if refuted and not row["correct"] else "",
    ]


HEADINGS = ("mechanism", "claimed ε", "by law", "by samples", "DP-Sniper", "StatDP", "holds")


def missed(rows: list[Row]) -> list[Row]:
    """Where the best of theirs is above ours by samples.

    What we know by law does not count here: they are black-box auditors, and had no law.
    """
    return [r for r in rows if (best_of_theirs(r) or 0.0) > float(r["epsilon_lower"])]


def observed(row: Row) -> float:
    """The ratio of the counts without any confidence: about what more runs of this event give."""
    if not row["hits"] or not row["other_hits"]:
        return math.inf if row["hits"] else 0.0
    return math.log(row["hits"] * row["other_trials"] / (row["other_hits"] * row["trials"]))


def accused(rows: list[Row]) -> list[Row]:
    """Claims that are true and were refuted: there must be none."""
    return [row for row in rows if row["correct"] and row["broken"]]


def show(console: Console, rows: list[Row]) -> None:
    table = Table(title="Certified epsilon (greater is better)", box=box.SIMPLE, pad_edge=False)
    for heading in HEADINGS:
        table.add_column(heading, no_wrap=True)
    for row in rows:
        table.add_row(*cells(row))
    console.print(table)
    for row in missed(rows):
        console.print(f"Below theirs by samples: {row['mechanism']}.")
    for row in accused(rows):
        console.print(f"[bold red]Accused wrongly: {row['mechanism']}[/]")


# ---------------------------------------------------------------- the page

INTRODUCTION = """# Auditors compared

Written by `make bench-audit`; do not edit. {when}, {cpu}, {cores} cores, Python {python}, about
{seconds:.0f} s a mechanism. On average {load:.1f} programs wanted a core, of which two are ours: if
that is more than there are cores, the bounds by samples are lower than they could be.

Each mechanism is written from its paper's definition, with the parameters that DP-Sniper and StatDP
were measured at. Given are lower bounds on ε, so more is better, and the seconds they took.

- **By law**: the greatest loss over the pairs of inputs, worked out from the exact law for real
  noise. Nothing is sampled and nothing can be wrong.
- **By samples**: what `lastbit.audit.distinguish` certifies of the mechanism as a black box. All
  bounds of one row together are wrong with probability at most {error}. It is told nothing but the
  pairs of inputs.
- **DP-Sniper** (Bichsel et al. 2021): bounds of 90 % confidence from 2·10^8 runs of each input.
  **StatDP** (Ding et al. 2018): estimates, without a confidence; an estimate may exceed the truth.
  Their times are the published ones, from other machines.

"no" in the last column: the claim is refuted."""

CURATOR = """## What sampling cannot see

A mechanism that publishes a fair coin, and once in 2^40 runs the data, has infinite ε. From
{samples:,} runs the black-box auditor certifies ε ≥ {sampled} and δ ≥ {delta}: nothing. No number
of runs that anybody can afford changes that, with this tool or another. Its law says ε = {law} at
once. A bound of 0 means that nothing was found. It never means that nothing is there."""


def page(saved: Row) -> Iterator[str]:
    """The whole page, from the saved figures."""
    machine, rows = saved["machine"], saved["rows"]
    yield INTRODUCTION.format(
        when=saved["date"][:10],
        cpu=machine["cpu"],
        cores=machine["cores"],
        python=machine["python"],
        seconds=saved["seconds"],
        load=saved["load"],
        error=ERROR,
    )
    if "note" in saved:
        yield f"\n{saved['note']}"
    yield ""
    yield f"| {' | '.join(HEADINGS)} |"
    yield "|---|" + "--:|" * 5 + "---|"
    for row in rows:
        yield f"| {' | '.join(cells(row))} |"
    yield ""
    yield from _remarks(rows)
    yield ""
    sampled, by_law = saved["curator"]
    yield CURATOR.format(
        samples=sampled["samples"],
        sampled=below(sampled["epsilon_lower"]),
        delta=below(sampled["delta_lower"]),
        law=below(by_law["epsilon_lower"]),
    )


def _remarks(rows: list[Row]) -> Iterator[str]:
    minutes = sum(row["seconds"] for row in rows) / 60
    wrong = ", ".join(row["mechanism"] for row in accused(rows))
    fate = f"these were refuted, which is an error: {wrong}" if wrong else "none was refuted"
    yield f"All rows together took {minutes:.0f} minutes of sampling. Of the true claims {fate}."
    yield ""
    yield "The column by law is no audit of a black box: it rests on the definition, which auditors"
    yield "are not told. By samples alone"
    short = missed(rows)
    compared = sum(best_of_theirs(row) is not None for row in rows)
    if not short:
        yield f"no bound of theirs is above ours, in {compared} rows with one."
        return
    yield f"the better of their bounds is above ours in {len(short)} of {compared} rows with one:"
    yield ""
    for row in short:
        yield f"- {row['mechanism']}: {_why(row)}"


def _why(row: Row) -> str:
    """What the counts say about a bound that is too low: too few runs, or a poor event."""
    theirs, ratio = best_of_theirs(row) or 0.0, observed(row)
    runs, share = row["trials"] + row["other_trials"], 100 * row["hits"] / max(1, row["trials"])
    facts = f"{below(row['epsilon_lower'])} against {below(theirs)}, from {runs:,} runs."
    if math.isinf(theirs):
        return f"{facts} No number of runs certifies ∞; theirs is an estimate."
    if ratio > theirs:
        return (
            f"{facts} The event has an observed ratio of {below(ratio)} in {share:.2g} % of the "
            "runs, so more runs of it would do."
        )
    return (
        f"{facts} The event has an observed ratio of only {below(ratio)}, in {share:.2g} % of the "
        "runs: the search did not find a better event or pair."
    )


def write(rows: list[Row], seconds: float, of_curator: tuple[AuditResult, AuditResult]) -> None:
    record = {
        "benchmark": "audit",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": report.commit(),
        "machine": report.machine(),
        "seconds": seconds,
        "load": os.getloadavg()[2],  # programs that wanted a core, on average of 15 minutes
        "curator": [result.to_dict() for result in of_curator],
        "rows": rows,
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description="Audit the benchmark mechanisms.")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each mechanism")
    parser.add_argument("--only", action="append", help="the name of one; may be given again")
    parser.add_argument("--page", action="store_true", help="only write the page anew")
    options = parser.parse_args()
    console = Console(highlight=False)
    console.width = max(console.width, 110)
    if not options.page:
        chosen = [b for b in benchmarks() if not options.only or b.name in options.only]
        rows = []
        for number, benchmark in enumerate(chosen, 1):
            with console.status(f"{benchmark.name}, {number} of {len(chosen)}"):
                rows.append(measured(benchmark, options.seconds))
            by = with_time(rows[-1]["epsilon_lower"], rows[-1]["seconds"])
            console.print(f"{number:2} of {len(chosen)}  {benchmark.name}: {by}")
        show(console, rows)
        if options.only or options.seconds < SECONDS:
            return
        write(rows, options.seconds, curators(min(10.0, options.seconds)))
    PAGE.write_text("\n".join(page(json.loads(RESULT.read_text("utf-8")))) + "\n", "utf-8")


if __name__ == "__main__":
    main()
