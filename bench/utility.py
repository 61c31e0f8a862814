"""How far off are private medians? lastbit's ways to release one, and other libraries'.

    python bench/utility.py              measure (about five minutes), print, save, draw
    python bench/utility.py --no-peers   without the other libraries
    python bench/utility.py --keep-peers the other libraries' figures as saved; the page says so
    python bench/utility.py --runs 20    a quick look: nothing is saved or drawn
    python bench/utility.py --figures    only draw: figures and tables from the saved results

The data are made up and the same in every run (`utility_peers.py`); only the noise is random. An
error is the distance from the data's own quantile. All methods keep one promise: epsilon for one
changed record, the number of records and the bounds being public; two of them need a delta.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import report
from peer_environment import HERE, PYTHON, install
from rich import box
from rich.console import Console
from rich.table import Table
from utility_peers import DATA, LOWER, PEERS, UPPER, Setting, candidates, data_of, digest, settings

import lastbit as lb
from lastbit.mechanisms.smooth_noise import SmoothStatistic
from lastbit.mechanisms.stable_value import ProposeTestRelease
from lastbit.privacy.neighbours import CHANGE_ONE
from lastbit.report import Axis
from lastbit.sampling.bits import secure_bits
from lastbit.sampling.choice import counted
from lastbit.sampling.uniform import below_each
from lastbit.sensitivity.neighbours import propose
from lastbit.sensitivity.smooth import smooth_sensitivity
from lastbit.sensitivity.statistics import Quantile

sys.path.insert(0, str(report.ROOT))
from docs.curve_charts import Chart, Curve, chart, powers_of_ten

RUNS = 1000
DELTA = "1e-6"
FINE = 1 << 16
WIDTH = UPPER - LOWER
PROPOSED = Fraction(WIDTH, 100)
PROCESSES = 2
CONFIDENCE = 1.96  # standard deviations on either side, for 95 %
LEAST_RUNS = 200
RESULT = report.RESULTS / "utility.json"
PAGE = report.ROOT / "docs" / "utility.md"
FLOOR = 1e-4
NEGLIGIBLE = 1e-3
DRAWN = (
    "global Laplace",
    "smooth Cauchy",
    "smooth Student t",
    "exponential gaps",
    "propose-test (δ)",
    "diffprivlib",
    "OpenDP",
)
PICTURES = {
    "waits": ("Exponential waiting times", "Records lie close together around the median."),
    "camps": ("Two camps, and the median in the gap", "One single record decides the median."),
    "constant": (
        "A gauge that hardly moves",
        "All records lie between two candidates of the grid.",
    ),
}

Floats = np.ndarray
Release = Callable[[Setting, Floats, int], Floats]
Row = dict[str, Any]


# ---------------------------------------------------------------- lastbit's methods


def smooth(noise: str, delta: str | None = None) -> Release:
    """The quantile with noise for its smooth sensitivity."""

    def release(setting: Setting, data: Floats, runs: int) -> Floats:
        statistic = Quantile(setting.level)
        mechanism = SmoothStatistic(
            statistic,
            epsilon=setting.epsilon,
            delta=delta,
            lower=LOWER,
            upper=UPPER,
            noise=noise,
            neighbours=CHANGE_ONE,
        )
        # as mechanism.release(data), with the sorting done once for all runs
        bound = smooth_sensitivity(
            statistic,
            data,
            beta=mechanism.noise.beta,
            lower=LOWER,
            upper=UPPER,
            neighbours=CHANGE_ONE,
        )
        return np.array([mechanism.noise.release(bound) for _ in range(runs)])

    return release


def worst_case(setting: Setting, data: Floats, runs: int) -> Floats:
    """The quantile with Laplace noise for its global sensitivity, moved into the bounds."""
    mechanism = lb.Laplace(
        sensitivity=WIDTH, epsilon=setting.epsilon, grid="auto", neighbours=CHANGE_ONE
    )
    truth = exact_quantile(setting, data)
    return np.clip([mechanism.release(truth) for _ in range(runs)], LOWER, UPPER)


def selected(points: Floats) -> Release:
    """The exponential mechanism: candidates are the likelier the nearer their rank is.

    The utility of c is -max(#{x < c} - level n, level n - #{x <= c}, 0), which is the usual
    -|#{x <= c} - level n| unless c is among the data. A changed record moves the two counts by at
    most 1 and n not at all, so the sensitivity is 1. (Where records are added or removed it would
    be max(level, 1 - level), 1/2 for the median.) Both are multiplied here by the denominator of
    the level: integers are exact.
    """

    def release(setting: Setting, data: Floats, runs: int) -> Floats:
        level, ordered = Fraction(setting.level), np.sort(data)
        wanted = level.numerator * len(data)
        below = level.denominator * np.searchsorted(ordered, points, side="left")
        up_to = level.denominator * np.searchsorted(ordered, points, side="right")
        away = np.maximum(np.maximum(below - wanted, wanted - up_to), 0)
        mechanism = lb.Exponential(
            sensitivity=level.denominator, epsilon=setting.epsilon, neighbours=CHANGE_ONE
        )
        return points[mechanism.release(-away, size=runs)]

    return release


def gaps(setting: Setting, data: Floats, runs: int) -> Floats:
    """The exponential mechanism over all points of a fine grid, gap by gap."""
    mechanism = lb.ExponentialQuantile(
        setting.level, epsilon=setting.epsilon, lower=LOWER, upper=UPPER, neighbours=CHANGE_ONE
    )
    # as mechanism.release(data), with the sorting done once for all runs
    parts = mechanism._runs(mechanism._records(data))
    bits = secure_bits()
    which = counted(parts.counts, parts.distances, mechanism.rate).draw(bits, runs)
    among = below_each(bits, parts.counts[which].astype(np.uint64))
    return (parts.starts[which] + among) * float(mechanism.grid)


def tested(setting: Setting, data: Floats, runs: int) -> Floats:
    """Propose-test-release; NaN where it answers ⊥."""
    ask = ProposeTestRelease(
        bound=PROPOSED, epsilon=setting.epsilon, delta=DELTA, neighbours=CHANGE_ONE
    )
    proposal = propose(Quantile(setting.level), data, bounds=ask.bounds, lower=LOWER, upper=UPPER)
    answers = [ask.release(proposal) for _ in range(runs)]
    return np.clip([answer.value if answer else np.nan for answer in answers], LOWER, UPPER)


METHODS: dict[str, Release] = {
    "smooth Cauchy": smooth("cauchy"),
    "smooth Student t": smooth("student"),
    "smooth Laplace (δ)": smooth("laplace", DELTA),
    "propose-test (δ)": tested,
    "global Laplace": worst_case,
    "exponential 2^10": selected(candidates()),
    "exponential 2^16": selected(candidates(FINE)),
    "exponential 0..500": selected(np.arange(LOWER, UPPER + 1)),
    "exponential gaps": gaps,
}


def exact_quantile(setting: Setting, data: Floats) -> float:
    """The record of rank ceil(level n): what every error is measured from."""
    rank = math.ceil(Fraction(setting.level) * len(data))
    return float(np.sort(data)[rank - 1])


# ---------------------------------------------------------------- the peers


class Peers:
    """The other libraries, each at work in processes of its own while lastbit is measured."""

    def __init__(self, runs: int) -> None:
        self.reasons = {name: install(name) for name in PEERS}
        self.running = {
            name: [self._started(name, part, runs) for part in range(PROCESSES)]
            for name, reason in self.reasons.items()
            if not reason
        }

    def _started(self, name: str, part: int, runs: int) -> subprocess.Popen[str]:
        numbers = (str(number) for number in (part, PROCESSES, runs))
        command = [str(PYTHON), str(HERE / "utility_peers.py"), name, *numbers]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def released(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Of each library its version and values, or the reason why there are none."""
        for name, reason in self.reasons.items():
            yield name, {"reason": reason} if reason else self._joined(name)

    def _joined(self, name: str) -> dict[str, Any]:
        whole: dict[str, Any] = {"released": {}}
        # all of them, so that none is left running or unread
        for printed in [process.communicate()[0] for process in self.running[name]]:
            try:
                answer = json.loads(printed)
            except ValueError:
                answer = {"reason": "bench/utility_peers.py ended without an answer"}
            if "reason" in answer:
                return answer
            if any(told != digest(_data(key)) for key, told in answer["digests"].items()):
                return {"reason": "its numpy makes other data of the same seed"}
            whole["version"] = answer["version"]
            whole["released"] |= answer["released"]
        return whole


def _data(key: str) -> Floats:
    name, size = key.split()
    return data_of(name, int(size))


# ---------------------------------------------------------------- figures


def figures(released: Floats, truth: float) -> dict[str, Any]:
    """The median and the 95 % quantile of the error, each with its sampling error.

    The interval of the p-quantile of N errors lies between those of the ranks N p - r and N p + r,
    r = 1.96 sqrt(N p (1-p)): about 95 % confidence, whatever the law of the errors.
    """
    values = np.asarray(released, np.float64)
    silent = np.isnan(values)
    errors = np.sort(np.where(silent, WIDTH, np.abs(values - truth)))
    record: dict[str, Any] = {"runs": errors.size}
    for name, share in (("median", 0.5), ("q95", 0.95)):
        middle = errors.size * share
        reach = CONFIDENCE * math.sqrt(middle * (1 - share))
        low, high = math.floor(middle - reach), math.ceil(middle + reach)
        record[name] = _short(errors[math.ceil(middle) - 1])
        ends = errors[max(low, 1) - 1], errors[min(high, errors.size) - 1]
        record[f"{name}_interval"] = [_short(end) for end in ends]
    if silent.any():
        record["bottom"] = _short(silent.mean())
    return record


def _short(number: float) -> float:
    return float(f"{number:.4g}")


def kept() -> tuple[dict[tuple[str, ...], dict[str, Any]], dict[str, str]]:
    """The peers' figures of the saved run, by setting, and their versions with its date."""
    saved = json.loads(RESULT.read_text("utf-8"))
    day = f" as measured on {saved['date'][:10]}"
    versions = {
        name: told if " as measured on " in told else told + day
        for name, told in saved["peers"].items()
    }
    figures = {
        _key(row): {name: row["results"][name] for name in versions if name in row["results"]}
        for row in saved["rows"]
    }
    return figures, versions


def _key(row: Row) -> tuple[str, ...]:
    """The setting and what every error in it is measured from."""
    return tuple(str(row[name]) for name in ("data", "level", "size", "epsilon", "truth"))


def measured(console: Console, runs: int, *, peers: bool) -> tuple[list[Row], dict[str, str]]:
    """A row for each setting with the figures of every method, and the peers' versions."""
    others = Peers(runs) if peers else None
    rows, truths, versions = [], [], {}
    for setting in settings():
        console.print(f"  {setting.name:<40}", end="\r")
        data = data_of(setting.data, setting.size)
        truths.append(exact_quantile(setting, data))
        results = {
            name: figures(release(setting, data, runs), truths[-1])
            for name, release in METHODS.items()
        }
        rows.append({**asdict(setting), "truth": _short(truths[-1]), "results": results})
    for name, answer in others.released() if others else ():
        versions[name] = answer.get("version") or f"not measured: {answer['reason']}"
        for setting, truth, row in zip(settings(), truths, rows, strict=True):
            if "released" in answer:
                row["results"][name] = figures(answer["released"][setting.name], truth)
    return rows, versions


def best(results: dict[str, dict[str, Any]]) -> list[str]:
    """The method of the least median error, then those that its sampling error cannot rule out.

    An error below two millionths of the range counts as none.
    """
    order = sorted(results, key=lambda name: results[name]["median"])
    limit = max(results[order[0]]["median_interval"][1], NEGLIGIBLE)
    return [name for name in order if results[name]["median_interval"][0] <= limit]


# ---------------------------------------------------------------- screen and disk


def show(console: Console, rows: list[Row]) -> None:
    """A table for each data set."""
    for name, made in DATA.items():
        table = Table(box=box.SIMPLE_HEAD, title=f"{name}: {made.__doc__}", title_justify="left")
        for heading in ("quantile", "ε", "n", *_methods(rows)):
            table.add_column(heading, justify="right")
        for row in (row for row in rows if row["data"] == name):
            cells = (_cell(row, method) for method in row["results"])  # the peers' come last
            table.add_row(row["level"], row["epsilon"], f"{row['size']:,}", *cells)
        console.print(table)
    console.print(
        "Median |error|, and below it the error that 95 % of the runs do not exceed. "
        "[bold green]Green[/]: the least median; [green]=[/]: not told from it at 95 % confidence."
    )


def _cell(row: Row, method: str) -> str:
    result = row["results"][method]
    text = f"{result['median']:.3g}\n{result['q95']:.3g}"
    if method == row["best"][0]:
        return f"[bold green]{text}[/]"
    return f"[green]=[/]{text}" if method in row["best"] else text


def write(rows: list[Row], versions: dict[str, str]) -> None:
    """Save the figures with everything needed to read them later."""
    record = {
        "benchmark": "utility",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": report.commit(),
        "machine": report.machine(),
        "peers": versions,
        "bounds": [LOWER, UPPER],
        "delta": DELTA,
        "data": {name: made.__doc__ for name, made in DATA.items()},
        "rows": "ROWS",
    }
    lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
    text = json.dumps(record, ensure_ascii=False, indent=1).replace('"ROWS"', f"[\n  {lines}\n ]")
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(text + "\n", "utf-8")


# ---------------------------------------------------------------- the page


def draw() -> None:
    """The figures and the tables of docs/utility.md, from the saved results."""
    saved = json.loads(RESULT.read_text("utf-8"))
    for name, (title, words) in PICTURES.items():
        rows = [
            r for r in saved["rows"] if (r["data"], r["level"], r["epsilon"]) == (name, "1/2", "1")
        ]
        path = PAGE.parent / "figures" / f"utility-{name}.svg"
        path.write_text(chart(_picture(rows, title, words)), "utf-8")
    page = PAGE.read_text("utf-8")
    for mark, lines in (("run", _run(saved)), ("errors", _errors(saved)), ("wins", _wins(saved))):
        begin, end = f"<!-- {mark}: written by bench/utility.py -->\n", f"<!-- end of {mark} -->"
        before, _, rest = page.partition(begin)
        page = before + begin + "\n".join(lines) + "\n" + end + rest.partition(end)[2]
    PAGE.write_text(page, "utf-8")


def _picture(rows: list[Row], title: str, words: str) -> Chart:
    sizes = [row["size"] for row in rows]

    def curve(method: str) -> Curve:
        medians = (max(row["results"][method]["median"], FLOOR) for row in rows)
        return Curve(label=method, strands=(tuple(zip(sizes, medians, strict=True)),))

    return Chart(
        title=title,
        words=(
            words,
            f"ε = 1; δ = {DELTA} where one is needed. Errors below {FLOOR} are drawn there.",
        ),
        across=Axis(
            ends=(sizes[0], sizes[-1]),
            ticks=tuple((size, f"{size:,}") for size in sizes),
            label="number of records",
            logarithmic=True,
        ),
        up=Axis(
            ends=(FLOOR, 1000),
            ticks=powers_of_ten(-4, 3),
            label="median |error|",
            logarithmic=True,
        ),
        curves=tuple(curve(method) for method in DRAWN if method in rows[0]["results"]),
    )


def _run(saved: dict[str, Any]) -> Iterator[str]:
    """What was measured, by what, when."""
    commit = (saved["commit"]["hash"] or "unknown")[:12]
    changes = ", with uncommitted changes" if saved["commit"]["dirty"] else ""
    peers = ", ".join(f"{name} {told}" for name, told in saved["peers"].items()) or "no peers"
    runs = {result["runs"] for row in saved["rows"] for result in row["results"].values()}
    many = " or ".join(map(str, sorted(runs)))
    yield f"Measured on {saved['date'][:10]}, commit {commit}{changes}; {many} runs each;"
    yield f"{peers}; Python {saved['machine']['python']}, numpy {saved['machine']['numpy']}."


def _errors(saved: dict[str, Any]) -> Iterator[str]:
    """The median errors of the median."""
    names = _methods(saved["rows"])
    yield f"| data | ε | records | {' | '.join(names)} |"
    yield "|---|--:|" + "--:|" * (len(names) + 1)
    for row in saved["rows"]:
        if row["level"] == "1/2" and row["size"] in (1001, 100_001):
            cells = (_marked(row, name, names) for name in names)
            yield f"| {row['data']} | {row['epsilon']} | {row['size']:,} | {' | '.join(cells)} |"


def _methods(rows: list[Row]) -> list[str]:
    """Every method of any row, in the order of the first row that has it."""
    return list(dict.fromkeys(name for row in rows for name in row["results"]))


def _marked(row: Row, name: str, among: list[str]) -> str:
    if name not in row["results"]:
        return "–"
    text = _plain(row["results"][name]["median"])
    first = best({other: row["results"][other] for other in among if other in row["results"]})
    return f"**{text}**" if name in first else text


def _plain(error: float) -> str:
    if error < NEGLIGIBLE:
        return f"<{NEGLIGIBLE}"
    return f"{error:.0f}" if error >= 10 else f"{error:.2g}"


def _wins(saved: dict[str, Any]) -> Iterator[str]:
    """In how many settings each method is best, or not told from the best."""
    rows = saved["rows"]
    names = _methods(rows)
    yield "| method | " + " | ".join(DATA) + f" | of {len(rows)} |"
    yield "|---|" + "--:|" * (len(DATA) + 1)
    for name in names:
        won = [row["data"] for row in rows if name in row["best"]]
        counts = " | ".join(str(won.count(data)) for data in DATA)
        yield f"| {name} | {counts} | {len(won)} |"


def main() -> None:
    """Measure, print, save and draw, or only draw."""
    parser = argparse.ArgumentParser(description="Measure the error of private quantiles.")
    parser.add_argument("--no-peers", action="store_true", help="leave other libraries out")
    parser.add_argument("--keep-peers", action="store_true", help="take theirs as saved")
    parser.add_argument("--runs", type=int, default=RUNS, help="fewer than 200 are not saved")
    parser.add_argument("--figures", action="store_true", help="only draw from saved results")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs must be 1 at least")
    console = Console(highlight=False)
    if not options.figures:
        peers = not (options.no_peers or options.keep_peers)
        rows, versions = measured(console, options.runs, peers=peers)
        if options.keep_peers:
            figures, versions = kept()
            for row in rows:
                row["results"] |= figures.get(_key(row), {})
        for row in rows:
            row["best"] = best(row["results"])
        show(console, rows)
        if options.runs < LEAST_RUNS:
            return
        write(rows, versions)
        console.print(f"Figures, machine and commit: {RESULT.relative_to(report.ROOT)}")
    draw()


if __name__ == "__main__":
    main()
