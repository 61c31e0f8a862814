"""Made the files in `0.1/`: what lastbit 0.1 wrote, for later versions to accept.

    python -m tests.data.generate FOLDER

FOLDER must not exist: files of a version that people have are never made anew. A later version
that writes something else gets a folder of its own beside `0.1/`. Noise and ledgers' secrets are
drawn afresh, so two runs differ in their answers.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
from click.testing import CliRunner

import lastbit as lb
from lastbit.cli import main
from lastbit.ledger import Ledger, exported, restored
from lastbit.privacy import GaussianCost, MomentCost, from_json
from lastbit.tables import Budget, Cost, planned, read_card
from lastbit.verify import (
    BINARY32,
    Code,
    Grid,
    analyse,
    certified_code,
    declared_certificate,
    error_certificate,
    exact_loss,
    refute,
    rounding_certificate,
    save,
    snapping_bound,
    trace,
)
from tests.data import code_0_1 as code
from tests.data.recorded import commands, machine, names

Certificate = dict[str, Any]

SNAPPED = "lastbit.mechanisms.snapping:snapped"
OWN = "tests.data.code_0_1:"
LONG = 2_500
NUMPY_DRAWS = Grid(53, first=1)


def _law(function: str, one: float, two: float, *, settings: Any = None, **given: Any) -> Any:
    named = Code(function, **(settings or {}))
    return exact_loss(named, one, two, **given).certificate(named)


def _refutation(function: str, **given: Any) -> Certificate:
    named = Code(function)
    found = refute(named, 0.0, 1.0, signs=None, tries=5, **given)
    assert found is not None
    return found.certificate(named)


def _rounding(noise: Any, **given: Any) -> Certificate:
    found = rounding_certificate(noise, sensitivity=1, cell="1/2", region=(-1, 1), **given)
    return found.certificate()


def _average() -> Any:
    from lastbit.verify.rounding import Query

    return Query(function=code.average, ranges={"a": (0, 1), "b": (0, 1)})


def _declared(noise: Any, rate: str) -> Certificate:
    return declared_certificate(
        noise, rate=rate, sensitivity=1, cell="1/4", region=(-1, 1), uniform=NUMPY_DRAWS
    ).certificate()


def _error(function: Any, ranges: dict[str, tuple[int, int]], **given: Any) -> Certificate:
    return error_certificate(analyse(trace(function), ranges, **given))


CERTIFICATES: dict[str, Callable[[], Certificate]] = {
    "error-product": lambda: _error(
        lambda x, y: (x * y + 1.0) / (x + 3.0), {"x": (1, 2), "y": (-1, 3)}, pieces=2
    ),
    "error-logarithm": lambda: _error(lambda x: math.log(x) * math.exp(x), {"x": (1, 2)}),
    "error-binary32": lambda: _error(lambda x: x * x - x, {"x": (1, 2)}, format=BINARY32),
    "law-snapped": lambda: _law(SNAPPED, 0.5, 1.5, settings={"epsilon": 1.0, "bound": 2.0}),
    "law-snapped-infinite": lambda: _law(
        SNAPPED, 20.0, 21.0, settings={"epsilon": 1.0, "bound": 32.0}, uniform=NUMPY_DRAWS
    ),
    "law-response": lambda: _law(OWN + "response", 0.0, 1.0, signs=None, pieces=[0.25, 0.5]),
    "law-rounded": lambda: _law(OWN + "rounded", 0.0, 1.0, signs=None, uniform=NUMPY_DRAWS),
    "refutation-laplace": lambda: _refutation(OWN + "laplace", uniform=NUMPY_DRAWS),
    "refutation-response": lambda: _refutation(OWN + "response", pieces=[0.25, 0.5]),
    "snapping": lambda: snapping_bound(epsilon=0.7, bound=32).certificate(),
    "snapping-delta": lambda: snapping_bound(epsilon=1, bound=1024).certificate(),
    "rounding-steps": lambda: _rounding(lambda u, sign: sign * math.log(u)),
    "rounding-noise": lambda: _rounding(code.noise),
    "rounding-numpy": lambda: _rounding(code.numpy_noise, uniform=Grid(53)),
    "rounding-query": lambda: _rounding(code.noise, query=_average()),
    "rounding-signed": lambda: certified_code(code.signed, sensitivity=1).certificate(),
    "rounding-clamped": lambda: certified_code(code.clamped, sensitivity=1).certificate(),
    "declared-code": lambda: _declared(code.logistic, "1"),
    "declared-steps": lambda: _declared(lambda u: 2.0 * (math.log(u) - math.log(1 - u)), "1/2"),
}
"""Made by the library. A function without a name gives a certificate about its steps alone."""

COMMANDS: dict[str, tuple[str, ...]] = {
    "cli-snapping": ("snapping", "--epsilon", "1", "--bound", "16", "--format", "binary32"),
    "cli-rounding": (
        *("rounding", "--epsilon", "1", "--sensitivity", "1"),
        *("--grid", "1/4", "--region", "-2", "2"),
    ),
    "cli-code": (
        *(OWN + "rounded", "--epsilon", "1.001", "--uniform", "grid53-open"),
        *("--grid", "1/4", "--region", "-2", "2"),
    ),
    "cli-refutation": (OWN + "laplace", "--epsilon", "1", "--uniform", "grid53-open"),
}
"""Made by `lastbit verify ... --certificate FILE`, and kept as it wrote them."""

BY_REGION = "SELECT region, COUNT(*) AS n, SUM(cost) AS cost FROM visits GROUP BY region"
QUESTIONS: dict[str, tuple[str, str, dict[str, str]]] = {
    # name: (card, SQL, price)
    "declared-keys": ("visits", BY_REGION, {"epsilon": "1/2"}),
    "declared-keys-filter": (
        "visits",
        "SELECT region, urgent, COUNT(*) AS n FROM visits WHERE wait > 10 GROUP BY region, urgent",
        {"epsilon": "0.25"},
    ),
    "found-keys": (
        "visits",
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward",
        {"epsilon": "8", "delta": "1e-6"},
    ),
    "found-keys-units": (
        "visits",
        "SELECT ward, COUNT(DISTINCT patient) AS units FROM visits GROUP BY ward",
        {"epsilon": "8", "delta": "1e-6"},
    ),
    "sum": ("visits", "SELECT SUM(cost) AS total FROM visits", {"epsilon": "1/3"}),
    "means": (
        "visits",
        "SELECT region, AVG(cost) AS cost, AVG(clamp(wait, 0, 240)) AS wait "
        "FROM visits GROUP BY region",
        {"epsilon": "1"},
    ),
    "mean-share": (
        "visits",
        "SELECT AVG(CAST(urgent AS BIGINT)) AS share FROM visits",
        {"epsilon": "0.1"},
    ),
    "spread": (
        "visits",
        "SELECT STDDEV(cost) AS deviation FROM visits",
        {"epsilon": "1"},
    ),
    "median": ("visits", "SELECT MEDIAN(cost) AS cost FROM visits", {"epsilon": "1"}),
    "quantiles": (
        "visits",
        "SELECT region, QUANTILE_CONT(cost, 0.9) AS high, MIN(clamp(wait, 0, 240)) AS first "
        "FROM visits GROUP BY region",
        {"epsilon": "2"},
    ),
    "units": (
        "visits",
        "SELECT region, COUNT(DISTINCT patient) AS units FROM visits GROUP BY region",
        {"epsilon": "1"},
    ),
    "join": (
        "visits",
        "SELECT month(day) AS m, COUNT(*) AS n FROM visits JOIN regions USING (region) "
        "WHERE climate = 'cold' GROUP BY m",
        {"epsilon": "1"},
    ),
    "join-found-keys": (
        "visits",
        "SELECT climate, COUNT(*) AS n, AVG(cost) AS cost FROM visits "
        "JOIN regions ON visits.region = regions.region GROUP BY climate",
        {"epsilon": "10", "delta": "1e-6"},
    ),
    "having": (
        "visits",
        "SELECT region, COUNT(*) AS n FROM visits GROUP BY region "
        "HAVING n > 20 ORDER BY n DESC LIMIT 2",
        {"epsilon": "1"},
    ),
    "having-text": (
        "visits",
        "SELECT region, COUNT(*) AS n, AVG(cost) AS cost FROM visits GROUP BY region "
        "HAVING COUNT(*) > 5 AND region <> 'east' ORDER BY cost",
        {"epsilon": "1"},
    ),
    "consistent": (
        "visits",
        "SELECT region, COUNT(*) AS n FROM visits GROUP BY region",
        {"epsilon": "1/4"},
    ),
    "consistent-histogram": (
        "visits",
        "SELECT HISTOGRAM(wait, 0, 60, 120, 240) AS waits, COUNT(*) AS n FROM visits",
        {"epsilon": "1/4"},
    ),
    "gaussian": ("rows", "SELECT COUNT(*) AS n, SUM(cost) AS cost FROM rows", {"rho": "1/10"}),
    "gaussian-keys": (
        "rows",
        "SELECT region, COUNT(*) AS n FROM rows GROUP BY region",
        {"rho": "0.05"},
    ),
    "gaussian-priced-by-delta": (
        "visits",
        "SELECT region, urgent, COUNT(*) AS n, SUM(cost) AS c FROM visits GROUP BY region, urgent",
        {"epsilon": "1", "delta": "1e-7"},
    ),
}
RECORDED = ("declared-keys", "found-keys", "gaussian")
"""These are paid for in the ledgers; the others have none, and say so."""

WHOLE = ("declared-keys", "median")
"""Of these query and plan are kept whole, of the others by their digests."""

VISITS_CARD = """\
[table]
name = "visits"
source = "visits.csv"
neighbours = "add-remove"

[unit]
column = "patient"
max_rows = 4
max_groups = 2

[budget]
epsilon = 20
delta = 1e-5

[ledger]
path = "hospital.ledger"

[columns.patient]
type = "integer"

[columns.region]
type = "text"
keys = ["north", "south", "east"]

[columns.ward]                     # no keys: they are found privately, for a delta
type = "text"

[columns.cost]
type = "number"
bounds = [0, 500]
step = 0.5
nullable = false

[columns.wait]
type = "integer"

[columns.urgent]
type = "boolean"

[columns.day]
type = "date"

[public.regions]
source = "regions.csv"
columns = {region = "text", climate = "text"}
"""
ROWS_CARD = """\
[table]
name = "rows"
source = "visits.csv"
neighbours = "change-one"

[unit]
each_row = true

[budget]
rho = "1/2"

[ledger]
path = "hospital.ledger"

[columns.region]
type = "text"
keys = ["north", "south", "east"]

[columns.cost]
type = "number"
bounds = [0, 500]
step = 0.5
"""


def made(folder: Path) -> None:
    """Write everything into a new folder."""
    folder.mkdir(parents=True)
    _write_certificates(folder / "certificates")
    _write_tables(folder / "tables")
    _write_ledgers(folder / "ledgers")
    _write_values(folder)
    _write_lines(folder / "names.json", names(Path.cwd()))
    _write_lines(folder / "commands.json", commands())
    _write_json(folder / "made-on.json", machine())


def _write_compact(path: Path, value: Any) -> None:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    path.write_text(text + "\n", "utf-8")


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _write_lines(path: Path, value: dict[str, dict[str, Any]]) -> None:
    """Two levels of names, one line each, so that a difference can be read."""

    def line(name: str, below: Any) -> str:
        text = json.dumps(below, separators=(",", ":"), ensure_ascii=False)
        return f"  {json.dumps(name)}: {text}"

    parts = [
        f" {json.dumps(name)}: {{\n" + ",\n".join(line(*one) for one in below.items()) + "\n }"
        for name, below in value.items()
    ]
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")


def _run(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    if result.exit_code not in (0, 1) or isinstance(result.exception, ValueError):
        raise SystemExit(f"{arguments}: {result.output}")
    return result.stdout


# ---------------------------------------------------------------- certificates of code


def _write_certificates(folder: Path) -> None:
    folder.mkdir()
    for name, proved in CERTIFICATES.items():
        save(proved(), folder / f"{name}.json")
    for name, arguments in COMMANDS.items():
        _run("verify", *arguments, "--certificate", str(folder / f"{name}.json"))
    _shorten(folder)


def _shorten(folder: Path) -> None:
    """White space left out of what is long: the rest is as lastbit wrote it."""
    for path in folder.glob("*.json"):
        if len(text := path.read_text("utf-8")) > LONG:
            _write_compact(path, json.loads(text))


# ---------------------------------------------------------------- answers


def visits() -> Iterator[tuple[object, ...]]:
    """A made-up table: 30 patients, two visits each."""
    for visit in range(60):
        patient = visit // 2
        region = ("north", "south", "east")[patient % 3]
        day = f"2026-{1 + visit % 12:02}-{1 + visit % 28:02}"
        ward = ("surgery", "maternity", "emergency", f"rare {patient}")[visit % 4]
        wait, urgent = visit * 13 % 240, "true" if visit % 3 else "false"
        yield patient, region, ward, visit * 7 % 500, wait, urgent, day


def _write_tables(folder: Path) -> None:
    folder.mkdir()
    header = "patient,region,ward,cost,wait,urgent,day"
    lines = [header, *(",".join(map(str, row)) for row in visits())]
    (folder / "visits.csv").write_text("\n".join(lines) + "\n", "utf-8")
    places = "region,climate\nnorth,cold\nsouth,warm\neast,cold\n"
    (folder / "regions.csv").write_text(places, "utf-8")
    (folder / "visits.toml").write_text(VISITS_CARD, "utf-8")
    (folder / "rows.toml").write_text(ROWS_CARD, "utf-8")
    (folder / "answers").mkdir()
    for name, (card, sql, price) in QUESTIONS.items():
        out = folder / "answers" / f"{name}.json"
        consistent = name.startswith("consistent")
        if name in RECORDED:
            options = [f"--{key}={value}" for key, value in price.items()]
            options += ["--consistent"] if consistent else []
            _run("query", str(folder / f"{card}.toml"), sql, *options, f"--out={out}")
        else:
            asked = without_ledger(folder, card).sql(sql)
            asked.release(consistent=consistent, **price).save(out)
        assert json.loads(out.read_text("utf-8"))["rows"], f"{name} shows nothing; run it again"
    _shorten(folder / "answers")


def without_ledger(folder: Path, card: str) -> Any:
    """The table of a card, declared in Python: without a ledger."""
    if card == "rows":
        return lb.table(
            folder / "visits.csv",
            each_row=True,
            neighbours="change-one",
            name="rows",
            keys={"region": ["north", "south", "east"]},
            columns=_columns(),
            budget=Budget(kind="zcdp", rho=Fraction(1, 2)),
        )
    return lb.table(
        folder / "visits.csv",
        unit="patient",
        max_rows=4,
        max_groups=2,
        name="visits",
        keys={"region": ["north", "south", "east"]},
        columns=_columns(),
        public={"regions": folder / "regions.csv"},
    )


def _columns() -> list[lb.Column]:
    # a CSV file has no types: they are declared
    bounds = Fraction(0), Fraction(500)
    return [
        lb.Column(name="patient", type="integer"),
        lb.Column(name="ward", type="text"),
        lb.Column(name="cost", type="number", bounds=bounds, step=Fraction(1, 2), nullable=False),
        lb.Column(name="wait", type="integer"),
        lb.Column(name="urgent", type="boolean"),
        lb.Column(name="day", type="date"),
    ]


# ---------------------------------------------------------------- ledgers


def frame() -> Any:
    """A table whose fingerprint is that of its content, so that its recorded answers are found."""
    relation: Any = duckdb.sql(
        "SELECT range // 3 AS patient, ['north', 'south'][1 + range % 2] AS region FROM range(90)"
    )
    return relation.to_arrow_table()


def framed() -> Any:
    """What is asked of the frame; `hospital.ledger` has its answer."""
    table = lb.table(
        frame(),
        unit="patient",
        max_rows=3,
        name="frame",
        keys={"region": ["north", "south"]},
        budget=Budget(kind="pure", epsilon=Fraction(1)),
    )
    return table.group_by("region").agg(n=lb.count())


def _write_ledgers(folder: Path) -> None:
    """That of the cards with real answers, and one by hand with every kind of entry."""
    folder.mkdir()
    hospital = folder / "hospital.ledger"
    (folder.parent / "tables" / "hospital.ledger").rename(hospital)
    framed().release(epsilon="1/4", ledger=hospital, who="ada")
    with TemporaryDirectory() as elsewhere:
        _write_books(Path(elsewhere) / "backup.ledger")
        books = restored(Path(elsewhere) / "backup.ledger", folder / "books.ledger", who="ben")
    books.reserve("visits", Cost(epsilon=Fraction(1, 10)), question="killed", **ASKED)
    books.reserve("rows", Cost(rho=Fraction(1, 8)), question="failed", **ASKED)
    lines = [json.dumps(entry, sort_keys=True) for entry in exported(books)]
    (folder / "books.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    for ledger in (books, Ledger.open(hospital)):
        assert ledger.problems() == []
        _write_json(ledger.path.with_suffix(".json"), state_of(ledger))


ASKED: dict[str, Any] = {"who": "ada", "plan_digest": "p", "fingerprint": "f"}


def _write_books(path: Path) -> None:
    """A ledger with a price that is not answered: restoring makes it void."""
    books = Ledger.open(path)
    books.account("visits", Budget(kind="approx", epsilon=Fraction(3), delta=Fraction(1, 10**6)))
    books.account("rows", Budget(kind="zcdp", rho=Fraction(1, 2)))
    books.account("unlimited", None)
    paid = books.reserve(
        "visits",
        Cost(epsilon=Fraction(1, 3), delta=Fraction(1, 10**9)),
        question="settled",
        words="SELECT region, COUNT(*) FROM visits GROUP BY region",
        **ASKED,
    )
    books.settle(paid, {"rows": [["north", 1204]]})
    for account, cost in (
        ("visits", Cost(epsilon=Fraction(1, 7))),
        ("rows", Cost(rho=Fraction(0.1))),
        ("unlimited", Cost(epsilon=Fraction(5))),
    ):
        books.charge(account, cost, question="charged", record={"rows": [[0.5]]}, **ASKED)
    books.reserve("visits", Cost(epsilon=Fraction(1, 2)), question="void", words="SELECT", **ASKED)
    books.note("the budget was raised at the meeting of May 2", who="ben", account="visits")
    raised = Budget(kind="approx", epsilon=Fraction(4), delta=Fraction(1, 10**6))
    books.set_budget("visits", raised, who="ben")


def state_of(ledger: Ledger) -> dict[str, Any]:
    """What a ledger says of itself, as plain JSON."""
    return {
        "head": ledger.head,
        "entries": [f"{e.kind} {e.account} {e.hash}" for e in ledger.entries()],
        "accounts": {
            account.name: {
                "budget": account.budget and _numbers(account.budget),
                "spent": _numbers(account.spent),
                "remaining": account.remaining and _numbers(account.remaining),
                "unanswered": [entry.hash for entry in ledger.unanswered(account.name)],
            }
            for account in ledger.accounts()
        },
    }


def _numbers(price: Budget | Cost | MomentCost | GaussianCost) -> dict[str, str]:
    return {name: str(getattr(price, name)) for name in ("epsilon", "delta", "rho")}


# ---------------------------------------------------------------- values


GUARANTEES = (
    lb.PureDP("1/3"),
    lb.PureDP(0.1, neighbours=lb.ADD_REMOVE),
    lb.ApproxDP(1, "1e-6"),
    lb.ApproxDP("0.5", "1e-9", neighbours=lb.CHANGE_ONE),
    lb.ProbabilisticDP(1, "1e-6"),
    lb.ZCDP("0.1"),
    lb.RenyiDP(10, "0.5"),
    lb.MetricDP("1/200"),
    lb.PureDP(math.inf),
)


def _write_values(folder: Path) -> None:
    written = [one.to_json() for one in GUARANTEES]
    assert [from_json(text) for text in written] == list(GUARANTEES)
    _write_json(folder / "guarantees.json", written)
    _write_lines(folder / "plans.json", plans(folder / "tables"))


def plans(tables: Path) -> dict[str, Any]:
    """Of every question: its query and plan as JSON, and their digests."""
    found = {}
    for name, (card_name, sql, price) in QUESTIONS.items():
        card = read_card(tables / f"{card_name}.toml")
        query = lb.tables.parsed(sql, card)
        numbers: dict[str, Any] = dict(price)
        plan = planned(query, card, **numbers)
        found[name] = {
            "card": card_name,
            "sql": sql,
            "price": price,
            "query": query.to_json() if name in WHOLE else None,
            "query_digest": query.digest,
            "plan": plan.to_json() if name in WHOLE else None,
            "plan_digest": plan.digest,
        }
    return found


if __name__ == "__main__":
    made(Path(sys.argv[1]))
