"""Are the numbers honest? Forty questions to six real tables, and their truth; writes a page.

    python bench/honest_tables.py               measure, print, save, write docs/honest-tables.md
    python bench/honest_tables.py --runs 5      a quick look: nothing is saved
    python bench/honest_tables.py --only films --only "by month"   some questions: nothing is saved
    python bench/honest_tables.py --page        only write the page from what is saved

Each question of `honest_questions.toml` is released at EPSILON and DELTA in three ways: with
nothing declared but the unit; with limits guessed without a look at the data; with the best of a
grid of limits, chosen by somebody who knows the data and the truth. With nothing declared each
release has a ledger of its own: it buys the profile inside its price, as a first question does.

The truth is DuckDB's answer about the whole table. It should lie within what is shown: the whole
interval, or the noise interval where an answer has no other. An honest width for limits set by hand
is the noise's half-width plus the bias, which that person knows. A number that is not shown, or has
no interval, is as wide as itself (100 %).

The noise cannot be seeded; data, questions, grid and order are fixed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from itertools import product, repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import duckdb
import report
from honest_questions import DATA, QUESTIONS, TABLES, Question, table_sizes, true_rows, write_tables
from peer_environment import install
from rich.console import Console

import lastbit as lb
from lastbit.errors import LastbitError

RESULT = report.RESULTS / "honest-tables.json"
PAGE = report.ROOT / "docs" / "honest-tables.md"
EPSILON, DELTA = 1, "1e-7"
RUNS, PILOT, KIND_RUNS = 8, 3, 10
LEAST_INSIDE, MOST_WIDTH = 0.9, 1.5
NOISE_COVERAGE, MOST_KIND_WIDTH = (0.94, 0.97), 1.15
WAYS = {
    "nothing": "nothing but the unit",
    "guess": "limits guessed without a look",
    "hand": "best limits by hand, with knowledge of the data",
}
ADDED_UP = ("count", "count_units", "count_distinct", "sum")  # of no rows they are 0

Key = tuple[tuple[str, ...], str]
"""The keys of a row as text, and the column."""
Figures = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is declared beside the unit."""

    max_rows: int
    max_groups: int
    bounds: dict[str, tuple[Any, Any]]


@dataclass(slots=True)
class Tally:
    """What was released of one number, and how often its truth lay inside."""

    truth: float
    values: list[float] = field(default_factory=list)
    noise: list[tuple[bool, float]] = field(default_factory=list)  # inside, half-width
    whole: list[tuple[bool, float]] = field(default_factory=list)

    def add_cell(self, cell: Any, *, has_whole: bool) -> None:
        """One release of it."""
        self.values.append(float(cell.value))
        self.noise.append(self._verdict(cell.low, cell.high))
        whole = (cell.whole_low, cell.whole_high) if has_whole else (cell.low, cell.high)
        self.whole.append(self._verdict(*whole))

    def _verdict(self, low: float | None, high: float | None) -> tuple[bool, float]:
        low, high = -math.inf if low is None else low, math.inf if high is None else high
        hair = 1e-9 * abs(self.truth)  # the last bits of DuckDB's sum
        return low - hair <= self.truth <= high + hair, (high - low) / 2

    @property
    def bias(self) -> float:
        """How far off the mean is, beyond what noise does to it."""
        off = statistics.fmean(self.values) - self.truth
        return math.sqrt(max(0.0, off * off - self._error_of_mean**2))

    @property
    def is_biased(self) -> bool:
        """Whether the mean is off by more than four of its standard errors, and by 0.1 %."""
        off = abs(statistics.fmean(self.values) - self.truth)
        return off > max(4 * self._error_of_mean, abs(self.truth) / 1000)

    @property
    def _error_of_mean(self) -> float:
        if len(self.values) < 2:
            return math.inf
        return statistics.stdev(self.values) / math.sqrt(len(self.values))

    def relative(self, width: float) -> float:
        """A width beside the number itself; 100 % is as good as nothing."""
        return min(1.0, width / abs(self.truth)) if self.truth else 1.0


# ---------------------------------------------------------------- asking


def declare_limits(path: Path, limits: Limits | None) -> Any:
    """The table, of which nothing but the unit, or these limits, are declared."""
    unit = TABLES[path.stem]["unit"]
    if limits is None:
        return lb.table(path, unit=unit)
    described = duckdb.execute(f"DESCRIBE FROM '{path}'").fetchall()
    kinds = {name: "number" if kind == "DOUBLE" else "integer" for name, kind, *_ in described}
    columns: Any = [
        lb.Column(name=name, type=kinds[name], bounds=bounds)  # type: ignore[arg-type]
        for name, bounds in limits.bounds.items()
    ]
    rows, groups = limits.max_rows, limits.max_groups
    return lb.table(path, unit=unit, max_rows=rows, max_groups=groups, columns=columns)


def key_text(key: Any) -> str:
    """A key as text, the same from both sides: midnight is a day."""
    is_midnight = isinstance(key, datetime) and key.time() == datetime.min.time()
    return str(key.date() if is_midnight else key)


def true_numbers(question: Question, path: Path, keys: int) -> dict[Key, float]:
    """Every number of the true answer, by its keys, which come first."""
    names, rows = true_rows(question, path)
    return {
        (tuple(map(key_text, row[:keys])), name): float(value)
        for row in rows
        for name, value in zip(names[keys:], row[keys:], strict=True)
        if value is not None
    }


def release_once(asked: Any, *, is_first: bool) -> Any:
    """An answer without a ledger, or as the first one in a ledger."""
    if not is_first:
        return asked.release(epsilon=EPSILON, delta=DELTA)
    with tempfile.TemporaryDirectory() as place:
        return asked.release(epsilon=EPSILON, delta=DELTA, ledger=Path(place) / "first.ledger")


def measure_question(question: Question, path: Path, limits: Limits | None, runs: int) -> Figures:
    """Releases of one question in one way, number by number; or why there are none."""
    try:
        asked = declare_limits(path, limits).sql(question.sql)
        answers = [release_once(asked, is_first=limits is None) for _ in range(runs)]
    except LastbitError as refusal:
        return {"refused": f"{type(refusal).__name__}: {refusal}"}
    last = answers[-1]
    truth = true_numbers(question, path, len(last.keys))
    functions = {column["name"]: column["function"] for column in last.record["columns"]}
    tallies: dict[Key, Tally] = {}
    for answer in answers:
        for row in answer:
            for name, cell in zip(answer.columns, row.cells, strict=True):
                key = (tuple(map(key_text, row.keys)), name)
                is_known = key in truth or functions[name] in ADDED_UP
                if is_known and cell.value is not None:
                    tally = tallies.setdefault(key, Tally(truth.get(key, 0.0)))
                    tally.add_cell(cell, has_whole="whole" in answer.record)
    return {"record": last.record, "notes": last.notes, "truth": truth, "tallies": tallies}


# ---------------------------------------------------------------- limits by hand


def quantiles(rows: str, column: str, levels: list[float]) -> list[float]:
    """Quantiles of the values that are there."""
    sql = f"SELECT unnest(quantile_disc({column}, {levels})) FROM ({rows})"
    return [float(number) for (number,) in duckdb.execute(sql).fetchall()]


def rounded_bounds(low: float, high: float) -> tuple[Fraction, Fraction]:
    """Bounds as a person writes them: whole numbers, hundredths within a narrow range."""
    scale = 1 if high - low > 20 or (low.is_integer() and high.is_integer()) else 100
    low_end, high_end = math.floor(low * scale), math.ceil(high * scale)
    return Fraction(low_end, scale), Fraction(max(high_end, low_end + 1), scale)


def limits_by_hand(question: Question, path: Path) -> Limits:
    """The best of a grid, one coordinate after the other: by somebody who knows the truth."""
    found = re.search(r"FROM \w+( WHERE .*?)?(?= GROUP BY|$)", question.sql)
    assert found is not None
    rows, unit = f"FROM '{path}'{found[1] or ''}", TABLES[path.stem]["unit"]
    sizes = f"SELECT count(*) AS n {rows} GROUP BY {unit}"
    counts = quantiles(sizes, "n", [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0])
    columns = [name for name in TABLES[path.stem]["bounds"] if name in question.sql]
    bounds = [
        {
            name: rounded_bounds(*quantiles(f"SELECT * {rows}", name, [tail, 1 - tail]))
            for name in columns
        }
        for tail in (0.0, 0.0005, 0.005, 0.025)
    ]
    bounds += [
        {name: (min(low, Fraction()), high) for name, (low, high) in b.items()} for b in bounds
    ]
    grid: dict[str, Sequence[Any]] = {
        "max_rows": sorted(set(map(int, counts))),
        "bounds": bounds,
        "max_groups": (1, 2, 3, 4, 6, 8, 12, 16, 24, 32),
    }
    best = Limits(max_rows=int(counts[-3]), max_groups=8, bounds=bounds[0])
    scores: dict[str, float] = {}
    for name in ("max_rows", "bounds", "max_groups" if "GROUP BY" in question.sql else "bounds"):
        trials = [replace(best, **{name: value}) for value in grid[name]]
        for trial in trials:
            if repr(trial) not in scores:
                released = measure_question(question, path, trial, PILOT)
                scores[repr(trial)] = mean_width(question, released)
        best = min(trials, key=lambda trial: scores[repr(trial)])
    return best


def widths_by_hand(found: Figures) -> dict[Key, float]:
    """Of numbers shown in half of the releases: noise and known bias, relative to the truth."""
    tallies: dict[Key, Tally] = found.get("tallies", {})
    most = max((len(tally.values) for tally in tallies.values()), default=0)
    return {
        key: tally.relative(statistics.median(width for _, width in tally.noise) + tally.bias)
        for key, tally in tallies.items()
        if 2 * len(tally.values) >= most and tally.truth
    }


def mean_width(question: Question, found: Figures) -> float:
    """Mean relative width over the true numbers, of the largest ten where ten are asked for."""
    if "refused" in found:
        return math.inf
    widths, truth = widths_by_hand(found), found["truth"]
    largest = sorted(truth, key=lambda key: -abs(truth[key]))
    wanted = largest[:10] if "LIMIT 10" in question.sql else largest
    return statistics.fmean(widths.get(key, 1.0) for key in wanted)


# ---------------------------------------------------------------- judging

NAMED = {
    "count_units": r"max_groups|at most \d+ (of )?(its |their )?(groups|keys)|above \d+ at \d+",
    "other": r"counts for at most (?!1 )|max_rows|more than \d|bounds? |beyond|above \d+ at \d+",
}
"""Words by which a note says what was left out of counts of units, and of other numbers."""


def lines_missing(found: Figures) -> list[str]:
    """Columns whose numbers are off by more than noise, and no line of the answer says why."""
    said = "\n".join(found["notes"])
    whole = found["record"].get("whole", {}).get("columns", {})
    functions = {column["name"]: column["function"] for column in found["record"]["columns"]}
    biased = {name for (_, name), tally in found["tallies"].items() if tally.is_biased}
    return sorted(
        name
        for name in biased
        if not whole.get(name, {}).get("limits")
        and not re.search(NAMED.get(functions[name], NAMED["other"]), said)
    )


def judge_releases(found: Figures, by_hand: dict[Key, float]) -> Figures:
    """The figures of one question in one way."""
    if "refused" in found:
        return {"refused": found["refused"], "noise": 0.0, "whole": 0.0, "width": 1.0}
    tallies: dict[Key, Tally] = found["tallies"]
    noise = [inside for tally in tallies.values() for inside, _ in tally.noise]
    whole = [verdict for tally in tallies.values() for verdict in tally.whole]
    widths = {
        key: tally.relative(statistics.median(width for _, width in tally.whole))
        for key, tally in tallies.items()
    }
    compared = [widths.get(key, 1.0) for key in by_hand] or list(widths.values()) or [1.0]
    plan = found["record"]["plan"]
    return {
        "noise": statistics.fmean(noise or [True]),
        "whole": statistics.fmean(inside for inside, _ in whole or [(True, 1.0)]),
        "open": statistics.fmean(width == math.inf for _, width in whole or [(True, 1.0)]),
        "width": statistics.median(compared),
        "bias": statistics.median([t.relative(t.bias) for t in tallies.values()] or [0.0]),
        "numbers": len(found["truth"]),
        "shown": len(tallies),
        "max_rows": plan["max_rows"],
        "max_groups": plan["max_groups"],
        "lines missing": lines_missing(found),
    }


def judge_question(question: Question, path: Path, runs: int) -> Figures:
    """One question in all ways."""
    table, limits = TABLES[path.stem], limits_by_hand(question, path)
    guess = Limits(**{name: table[name] for name in ("max_rows", "max_groups", "bounds")})
    hand = measure_question(question, path, limits, runs)
    widths = widths_by_hand(hand)
    judged = {
        "nothing": judge_releases(measure_question(question, path, None, runs), widths),
        "guess": judge_releases(measure_question(question, path, guess, runs), widths),
        "hand": judge_releases(hand, widths),
    }
    judged["hand"] |= {
        "width": statistics.median(widths.values() or [1.0]),
        "limits": [limits.max_rows, limits.max_groups],
        "bounds": {name: list(map(float, ends)) for name, ends in limits.bounds.items()},
    }
    return {"table": question.table, "words": question.words, **judged}


# ---------------------------------------------------------------- kinds of numbers

KINDS = {
    "count": "COUNT(*)",
    "count of people": "COUNT(DISTINCT woman)",
    "sum": "SUM(wage)",
    "mean": "AVG(wage)",
    "share": "AVG(CASE WHEN wage > 5 THEN 1 ELSE 0 END)",
    "ratio": "SUM(wage) / SUM(hours)",
    "variance": "VAR_POP(wage)",
    "standard deviation": "STDDEV_POP(wage)",
    "correlation": "CORR(age, wage)",
    "slope": "REGR_SLOPE(wage, age)",
    "median": "MEDIAN(wage)",
    "quantile": "QUANTILE_CONT(wage, 0.9)",
}
FORMULAS = ("ratio", "variance", "standard deviation", "correlation", "slope")
KIND_PRICES = (1, 10)
COPIES = 100
"""Of each woman, side by side in one table: their noise is independent, and of one law."""
NO_LOSS = Limits(
    max_rows=15,
    max_groups=2,
    bounds={"place": (0, 2 * COPIES - 1), "wage": (0, 50), "hours": (0, 168), "age": (10, 50)},
)
"""Limits of `work` that leave nothing out: then noise is the whole error."""


def write_copies(path: Path, folder: Path) -> Path:
    """COPIES of a table in one, told apart by `place`; 18 wages above the bounds are at them."""
    folder.mkdir()
    copied = folder / path.name
    unit = f"{TABLES[path.stem]['unit']} * {COPIES} + copy"
    duckdb.execute(
        f"COPY (SELECT * REPLACE ({unit} AS {TABLES[path.stem]['unit']}, least(wage, 50) AS wage), "
        f"2 * copy + college::INTEGER AS place FROM '{path}', range({COPIES}) AS r(copy)) "
        f"TO '{copied}'"
    )
    return copied


def measure_kind(kind: str, epsilon: int, path: Path, runs: int) -> dict[str, Figures]:
    """How often noise intervals hold the truth, and their half-width beside the real error."""
    sql = f"SELECT place, {KINDS[kind]} AS x FROM work GROUP BY place"
    asked = declare_limits(path, NO_LOSS).sql(sql)
    truth = true_numbers(Question(table="work", words=kind, sql=sql), path, 1)
    groups: tuple[dict[Key, Tally], ...] = ({}, {})
    for answer in (asked.release(epsilon=epsilon, delta=DELTA) for _ in range(runs)):
        for row in answer:
            (place,), (cell,) = row.keys, row.cells
            key = (key_text(place),), "x"
            if cell.value is not None:
                tally = groups[place % 2].setdefault(key, Tally(truth[key]))
                tally.add_cell(cell, has_whole=False)
    names = [f"{kind}, group of {size} rows, ε = {epsilon}" for size in group_sizes(path)]
    return dict(zip(names, map(judge_group, groups), strict=True))


def group_sizes(path: Path) -> list[str]:
    """The rows of each of the two groups, of which there are COPIES."""
    sql = f"SELECT count(*) // {COPIES} FROM '{path}' GROUP BY place % 2 ORDER BY place % 2"
    return [f"{rows:,}" for (rows,) in duckdb.execute(sql).fetchall()]


def judge_group(tallies: dict[Key, Tally]) -> Figures:
    """All numbers of a group, each of which is released again and again."""
    inside = [verdict for tally in tallies.values() for verdict, _ in tally.noise]
    width = width_by_error(list(tallies.values()))
    return {"coverage": statistics.fmean(inside), "numbers": len(inside), "width": width}


def width_by_error(tallies: Sequence[Tally]) -> float:
    """The median half-width, in parts of the error that 95 % of releases keep."""
    errors = sorted(abs(value - t.truth) for t in tallies for value in t.values)
    width = statistics.median(width for t in tallies for _, width in t.noise)
    return width / max(errors[math.ceil(0.95 * len(errors)) - 1], 1e-12)


# ---------------------------------------------------------------- the page


def summary(questions: list[Figures], way: str) -> Figures:
    """All questions of one way, each with the same weight."""
    found = [question[way] for question in questions]
    ratios = [q[way]["width"] / q["hand"]["width"] for q in questions]
    return {
        "refused": sum("refused" in figures for figures in found),
        "noise": statistics.fmean(figures["noise"] for figures in found),
        "whole": statistics.fmean(figures["whole"] for figures in found),
        "inside": sum(figures["whole"] >= LEAST_INSIDE for figures in found),
        "width": statistics.median(figures["width"] for figures in found),
        "ratio": statistics.median(ratios),
        "lines missing": sum(bool(figures.get("lines missing")) for figures in found),
    }


def problems(questions: list[Figures], kinds: Figures) -> Iterator[str]:
    """What must hold and does not."""
    ours, hand = summary(questions, "nothing"), summary(questions, "hand")
    if ours["whole"] < LEAST_INSIDE:
        yield f"the truth lies within the whole interval in {ours['whole']:.1%} of numbers only"
    if ours["width"] > MOST_WIDTH * hand["width"]:
        yield f"the median half-width is {ours['width'] / hand['width']:.2f} times that by hand"
    for q in questions:
        if "refused" in q["nothing"]:
            yield f"{q['table']}, {q['words']}: refused: {q['nothing']['refused']}"
        for column in q["nothing"].get("lines missing", ()):
            yield f"{q['table']}, {q['words']}: no line says what is left out of {column}"
    for kind, figures in kinds.items():
        low, high = NOISE_COVERAGE
        is_wide = kind.split(",")[0] in FORMULAS and figures["width"] > MOST_KIND_WIDTH
        if not low <= figures["coverage"] <= high or is_wide:
            yield f"{kind}: coverage {figures['coverage']:.1%}, half-width {figures['width']:.2f}"


def percent(share: float) -> str:
    """Three digits of a share."""
    return f"{100 * share:.3g} %"


def markdown_table(headings: str, rows: Iterable[Sequence[object]]) -> str:
    """A table of Markdown; headings are parted by bars."""
    lines = [f"| {headings} |", "|" + "---|" * len(headings.split(" | "))]
    return "\n".join(lines + [f"| {' | '.join(map(str, row))} |" for row in rows])


def summary_rows(questions: list[Figures]) -> Iterator[Sequence[object]]:
    """The three ways."""
    for way, name in WAYS.items():
        f = summary(questions, way)
        shares = (percent(f["noise"]), percent(f["whole"]), f["inside"], percent(f["width"]))
        yield (name, f["refused"], *shares, f"{f['ratio']:.2f}", f["lines missing"])


def question_rows(questions: list[Figures]) -> Iterator[Sequence[object]]:
    """A line a question."""
    for q in questions:
        ours, guess, hand = (q[way] for way in WAYS)
        shares = (guess["noise"], ours["noise"], ours["whole"], ours["width"], hand["width"])
        yield (
            q["table"],
            q["words"],
            "refused" if "refused" in ours else f"{ours['shown']} of {ours['numbers']}",
            "" if "refused" in ours else f"{ours['max_rows']}, {ours['max_groups']}",
            ", ".join(map(str, hand["limits"])),
            *map(percent, shares),
        )


def page(saved: Figures) -> str:
    """docs/honest-tables.md."""
    questions, kinds = saved["questions"], saved["kinds"]
    tables = markdown_table(
        "table | unit | rows | units | most rows of one | from",
        (
            (name, f"{t['unit']}: {t['why']}", *saved["tables"][name], f"`{t['source']}`")
            for name, t in TABLES.items()
        ),
    )
    summaries = markdown_table(
        "declared | refused | truth within noise | within the whole interval | questions with "
        "90 % inside | median half-width | beside the best by hand | losses without a line",
        summary_rows(questions),
    )
    lines = markdown_table(
        "table | question | numbers shown | limits | by hand | guess: within noise | "
        "within noise | within whole | half-width | by hand",
        question_rows(questions),
    )
    by_kind = markdown_table(
        "number | truth within the noise interval | numbers | half-width / real error",
        (
            (k, f"{100 * f['coverage']:.1f} %", f["numbers"], f"{f['width']:.2f}")
            for k, f in kinds.items()
        ),
    )
    wrong = "\n".join(f"- {line}" for line in problems(questions, kinds)) or "All of it holds."
    changed = ", with uncommitted changes" if saved["commit"]["dirty"] else ""
    return f"""# Are the numbers honest?

<!-- written by bench/honest_tables.py -->

Forty ordinary questions to six real tables with several rows a person. They were written down
first. Nothing is declared but the unit, and each answer costs ε = {EPSILON}, δ = {DELTA}. The truth
is what DuckDB says of the whole table.

{tables}

## How often the truth lies inside

{summaries}

Each question has the same weight. The half-width is that of the whole interval, relative to the
truth. By hand it is that of the noise plus the bias, which only somebody with the data knows. What
is not shown, or has no interval, counts as 100 % wide. “Beside the best by hand” is the median of
the ratios. A loss without a line: the mean of releases is off by more than noise, and no line of
the answer names a limit.

## What must hold and does not

At least {LEAST_INSIDE:.0%} of truths inside, at most {MOST_WIDTH} times the half-width by hand,
none refused, a line for each loss; of noise {NOISE_COVERAGE[0]:.0%} to {NOISE_COVERAGE[1]:.0%}
inside, formulas at most {MOST_KIND_WIDTH} times as wide as the real error.

{wrong}

## Question by question

Limits are max_rows and max_groups: of the plan, and the best by hand.

{lines}

## Noise alone, kind by kind

Table `work`, {COPIES} times side by side, limits that leave nothing out, {saved["kind_runs"]}
releases: {COPIES * saved["kind_runs"]:,} independent numbers of each of two groups, at two prices.
The real error is that which 95 % of them keep. Numbers that are not shown are not among them.

{by_kind}

Why some are not within 94 and 97 %, or wide:

- **Medians and quantiles.** Their ends are private draws of their own, each of which must be on its
  side in 97.5 % of releases, whatever the data are. The bound on such draws counts all ranges as if
  each held what is worst. Real data are kinder, so more intervals hold. No end is finer than a
  range of the grid, which is 1/1024 of the bounds.
- **Counts of people at a high price** are whole numbers, and so are their ends: one step more or
  less is several percent.
- **Formulas in small groups at a low price.** Where the noise of rows and squares is a large part
  of what a formula divides by, it bends: the interval allows for the bend over all noise that is
  likely. At ten times the price the same groups are within a tenth of the real error.
- **Correlations** divide by the root of two variances, each a difference of two noisy sums. The
  bend is bounded over a box of six noises, far beyond what they do together. So the interval is
  near the real error only where noise is a few percent of both variances, and else too wide.

Why truths of `laboratory` lie outside: that no group loses a larger share of its rows than the
table is assumed, and said below the numbers. With `max_rows = 128` the table loses 1.0 %, and blood
pressures, of patients with more rows than others have, lose 4.5 %.

Measured on {saved["date"][:10]}, commit {(saved["commit"]["hash"] or "unknown")[:12]}{changed};
{saved["runs"]} releases of each question in each way; load {saved["load"][0]:.1f} at the start and
{saved["load"][1]:.1f} at the end. `make honest-tables` measures again and writes this page; all
figures are in [the file](../bench/results/honest-tables.json).
"""


# ---------------------------------------------------------------- the program


def measure_all(
    say: Callable[[str], None],
    questions: Sequence[Question],
    runs: int,
    kind_runs: int,
    workers: int | None,
) -> Figures:
    """Everything, with a line for each question as it ends."""
    load, judged = os.getloadavg()[0], []
    kinds: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as place, ExitStack() as stopping:
        paths = write_tables(Path(place))
        pool = stopping.enter_context(ProcessPoolExecutor(workers, get_context("spawn")))
        places = [paths[question.table] for question in questions]
        in_order = pool.map(judge_question, questions, places, repeat(runs))
        for number, (question, figures) in enumerate(zip(questions, in_order, strict=True), 1):
            judged.append(figures)
            ours, guess, hand = (judged[-1][way] for way in WAYS)
            told = ours.get("refused") or (
                f"inside {percent(ours['whole'])}, width {percent(ours['width'])}"
            )
            say(
                f"{number} of {len(questions)}  {question.table}, {question.words}: {told}; hand "
                f"{percent(hand['width'])}; guess inside {percent(guess['noise'])}"
            )
        copies = write_copies(paths["work"], Path(place) / "copies")
        asked = list(product(KINDS, KIND_PRICES)) if kind_runs else []
        given = zip(*asked, strict=True) if asked else ((), ())
        for figures in pool.map(measure_kind, *given, repeat(copies), repeat(kind_runs)):
            kinds |= figures
        for kind in kinds:
            say(f"{kind}: {', '.join(f'{n} {x:.3f}' for n, x in kinds[kind].items())}")
        sizes = {name: table_sizes(path) for name, path in paths.items()}
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": report.commit(),
        "machine": report.machine(),
        "load": [load, os.getloadavg()[0]],
        "runs": runs,
        "kind_runs": kind_runs,
        "tables": sizes,
        "questions": judged,
        "kinds": kinds,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Are the numbers of forty questions honest?")
    parser.add_argument("--runs", type=int, default=RUNS, help="not the usual: nothing is saved")
    parser.add_argument("--only", action="append", default=[], help="a table, or some words")
    parser.add_argument("--no-kinds", action="store_true", help="leave the noise alone out")
    parser.add_argument("--workers", type=int, help="processes; usually one for each core")
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    if options.runs < 2:
        parser.error("--runs is below 2: one release shows no spread")
    if not options.page:
        reason = install(DATA)
        if reason:
            raise SystemExit(f"not measured: {reason}")
        questions = [
            q
            for q in QUESTIONS
            if not options.only or any(o == q.table or o in q.words for o in options.only)
        ]
        if not questions:
            parser.error("--only fits no question")
        is_whole = not options.only and not options.no_kinds and options.runs == RUNS
        kind_runs = 0 if options.no_kinds else KIND_RUNS if is_whole else options.runs
        console = Console(highlight=False, soft_wrap=True)
        saved = measure_all(console.print, questions, options.runs, kind_runs, options.workers)
        for row in summary_rows(saved["questions"]):
            console.print("  ".join(map(str, row)))
        for line in problems(saved["questions"], saved["kinds"]):
            console.print(f"does not hold: {line}")
        if not is_whole:
            return 0
        RESULT.write_text(json.dumps(saved, indent=1) + "\n", "utf-8")
    saved = json.loads(RESULT.read_text("utf-8"))
    PAGE.write_text(page(saved), "utf-8")
    return 1 if any(problems(saved["questions"], saved["kinds"])) else 0


if __name__ == "__main__":
    raise SystemExit(main())
