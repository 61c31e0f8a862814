"""What an error says to do, done: then it works.

A row of a table is a thing that is refused, words of the remedy that is applied, and the thing
after it. Which message of the error index a row is about is looked up, so that messages are
counted, and not rows: `APPLIED` is a floor under how many remedies are tried. What PostgreSQL and
Spark say is in `tests/engines/test_remedies.py`; what remedies name is looked up in
`tests/docs/test_remedies.py`.
"""

from __future__ import annotations

import math
import re
import shlex
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import chdir
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy
import pandas
import pyarrow
import pytest

import lastbit as lb
from docs import generate_errors as index
from lastbit import exact, geo, laws, ledger, privacy, sampling, sensitivity, verify
from lastbit.errors import LastbitError
from lastbit.ledger import user_name
from lastbit.tables.plan.plan import planned
from lastbit.tables.sql.statement import parsed
from lastbit.verify import round_to
from tests.cli.running import lastbit
from tests.evidence import Extent
from tests.tables import asked
from tests.tables.cards import edited, read

APPLIED = 405
"""How many messages of the index have a remedy that is applied here, at least. Raise it."""

Row = tuple[str, str, str]
Run = Callable[[str], object]


def table(name: str) -> list[list[str]]:
    """The rows of a text file beside this one."""
    text = Path(__file__).with_name(f"{name}.txt").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [line.replace("⏎", "\n").replace("␀", "\0").split(" ⇒ ") for line in lines]


QUESTIONS, CALLS, COMMANDS = (
    [(before, words, after) for before, words, after in table(name)]
    for name in ("questions", "calls", "commands")
)
CARDS: list[Row] = [(edited(a, b), words, edited(a, c)) for a, b, words, c in table("cards")]

# ---------------------------------------------------------------- running a row


class NotRefused(AssertionError):
    pass


def refusal(run: Run, thing: str) -> str:
    """What is said of a thing that is refused, on one line."""
    try:
        run(thing)
    except LastbitError as error:
        return " ".join(str(error).split())
    raise NotRefused(thing)


def problem_of(run: Run, row: Row, fresh: Callable[[], None] = lambda: None) -> str | None:
    """What is wrong with a row: not refused, by other words, or refused after the remedy too."""
    before, words, after = row
    fresh()
    try:
        said = refusal(run, before)
    except NotRefused:
        return f"is not refused: {before}"
    if not words or " ".join(words.split()) not in said:
        return f"{before}: not {words!r}, but {said}"
    fresh()
    try:
        run(after)
    except LastbitError as error:
        return f"{after}: {error}"
    return None


def ask(sql: str) -> object:
    return planned(parsed(sql, asked.CARD), asked.CARD, epsilon=1, delta="1e-6")


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What calls may name; files are in the folder that they are run in."""
    frame = pandas.DataFrame(
        {"patient_id": [1, 2, 3], "region": ["north", "south", "north"], "cost": [1.5, 2.5, 3.5]}
    )
    rooms = (exact, geo, laws, ledger, privacy, sampling, sensitivity, verify)
    with chdir(tmp_path_factory.mktemp("calls")), duckdb.connect() as connection:
        frame.to_csv("visits.csv", index=False)
        Path("headless.csv").write_text("1,2.5\n2,3.5\n", "utf-8")
        Path("visits.toml").write_text(CARD, "utf-8")
        connection.execute("CREATE TABLE visits AS SELECT * FROM frame")
        with duckdb.connect("visits.duckdb") as stored:
            stored.execute("CREATE TABLE visits AS SELECT * FROM frame")
        rows: dict[str, Any] = {"each_row": True, "name": "visits"}
        yield {
            **{one.__name__.rpartition(".")[2]: one for one in rooms},
            **dict(lb=lb, math=math, numpy=numpy, pandas=pandas, sqlite3=sqlite3),
            **dict(Fraction=Fraction, round_to=round_to, FRAME=frame, CONNECTION=connection),
            "OTHER": pandas.DataFrame({"region": ["north", "south"], "zone": ["a", "b"]}),
            "GEO": geo.Geo(epsilon="ln(4)/200m", region=(52, 13, 53, 14)),
            "VISITS": lb.table(frame, **rows),
            "KEYED": lb.table(frame, keys={"region": ["north", "south"]}, **rows),
            "SMALL": lb.table(frame, budget=lb.Budget(kind="pure", epsilon=1), **rows),
            "OPEN": lb.table(frame, unit="patient_id", name="visits", keys={"region": ["north"]}),
            "BY_UNIT": lb.table(frame, unit="patient_id", max_rows=2, name="visits"),
        }


def caller(names: dict[str, Any]) -> Run:
    """Runs a call that is written in a table; a reader of rows can be read once."""

    def run(code: str) -> object:
        reader = pyarrow.Table.from_pandas(names["FRAME"]).to_reader()
        return eval(code, {**names, "READER": reader})  # noqa: S307  our own table

    return run


CARD = """
[table]
name = "visits"
source = "visits.csv"
neighbours = "add-remove"
[unit]
column = "patient"
max_rows = 2
[budget]
epsilon = 3
[columns.cost]
type = "number"
bounds = [0, 9]
[columns.patient]
type = "integer"
[columns.region]
type = "text"
keys = ["north", "south"]
[columns.old]
type = "boolean"
keys = [true, false]
"""


NOISE = """
import math
import lastbit as lb
MECHANISM = lb.Laplace(sensitivity=1, epsilon=1)
def laplace(value):
    return MECHANISM.release(value)
def rounded(value, u, sign):
    return min(max(0.25 * round((value + sign * math.log(u)) / 0.25), -8.0), 8.0)
def loop(included):
    return 0 * included
"""


def write_folder() -> None:
    """The files that commands are about, and no other."""
    for file in Path.cwd().iterdir():
        if file.is_file():  # __pycache__ is none
            file.unlink()
    rows = (f"{i},{('south', 'north')[i % 2]},{i % 9},{str(i % 3 > 0).lower()}" for i in range(600))
    Path("visits.csv").write_text("\n".join(["patient,region,cost,old", *rows, ""]), "utf-8")
    Path("visits.toml").write_text(CARD, "utf-8")
    Path("places.csv").write_text("lat,lon,name\n52.5,13.4,a\n52.6,13.5,b\n", "utf-8")
    Path("noise.py").write_text(NOISE, "utf-8")


def run_commands(lines: str) -> None:
    """Commands of lastbit, and two of the shell's; of all but the last one, each must succeed."""
    *earlier, last = lines.split(" && ")
    for line in earlier:
        code, said = run_command(line)
        assert code == 0, f"{line}: {said}"
    code, said = run_command(last)
    if code == 2:
        raise LastbitError(said.removeprefix("Error: "))
    assert code == 0, f"{last}: {said}"


ASK = "query visits.toml 'SELECT COUNT(*) AS n FROM visits'"


def run_command(line: str) -> tuple[int, str]:
    match shlex.split(line.replace("USER", user_name()).replace("ASK", ASK)):
        case ["edit", file, old, new]:
            text = Path(file).read_text("utf-8")
            assert old in text, line
            Path(file).write_text(text.replace(old, new), "utf-8")
            return 0, ""
        case ["move", old, new]:
            Path(old).rename(new)
            return 0, ""
        case arguments:
            result = lastbit(*arguments)
            assert result.exception is None or isinstance(result.exception, SystemExit), line
            return result.exit_code, " ".join(result.stderr.split())


# ---------------------------------------------------------------- the tables


def test_questions() -> None:
    assert not [wrong for row in QUESTIONS if (wrong := problem_of(ask, row))]


def test_cards() -> None:
    assert not [wrong for row in CARDS if (wrong := problem_of(read, row))]


def test_calls(names: dict[str, Any], extent: Extent) -> None:
    rows = extent.cases(CALLS, one_in=4)
    assert not [wrong for row in rows if (wrong := problem_of(caller(names), row))]


def test_commands(extent: Extent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = extent.cases(COMMANDS, one_in=8)
    assert not [w for row in rows if (w := problem_of(run_commands, row, fresh=write_folder))]


@pytest.mark.parametrize(
    "row",
    [
        ("SELECT COUNT(*) FROM visits", "leave it out", "SELECT COUNT(*) FROM visits"),
        ("SELECT cost FROM visits", "restore a backup", "SELECT AVG(cost) FROM visits"),
        ("SELECT cost FROM visits", "", "SELECT AVG(cost) FROM visits"),
        ("SELECT cost FROM visits", "add GROUP BY", "SELECT cost FROM visits GROUP BY cost"),
    ],
)
def test_a_row_that_is_wrong_is_seen(row: Row) -> None:
    assert problem_of(ask, row)


# ---------------------------------------------------------------- how many messages that is


@cache
def families() -> tuple[tuple[str, re.Pattern[str], str], ...]:
    """Every problem with a remedy: its longest words, and a pattern of it before a remedy."""
    found: dict[tuple[str, re.Pattern[str], str], None] = {}
    for *_, problem, remedy in index.raised():
        words = max(problem.split(index.GAP), key=len).strip()
        if remedy and len(words) > 6:
            pattern = re.escape(problem).replace(re.escape(index.GAP), ".*")
            found[words, re.compile(f"{pattern};"), problem] = None
    return tuple(found)


def messages_said(said: str) -> set[str]:
    """The problem that this is; the one with the most words, where several fit."""
    fitting = [(len(words), name) for words, pattern, name in families()
               if words in said and pattern.search(said)]  # fmt: skip
    return {name for length, name in fitting if length == max(fitting)[0]}


@pytest.mark.evidence
def test_how_many_remedies_are_applied(
    names: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    tables = ((ask, QUESTIONS), (read, CARDS), (caller(names), CALLS))
    said = {refusal(run, row[0]) for run, rows in tables for row in rows}
    monkeypatch.chdir(tmp_path)
    for before, *_ in COMMANDS:
        write_folder()
        said.add(refusal(run_commands, before))
    applied = set().union(*map(messages_said, said))
    every = {name for *_, name in families()}
    print(
        f"{len(applied)} of {len(every)} messages with a remedy are applied, in {len(said)} cases"
    )
    assert len(applied) >= APPLIED, f"{len(applied)} of {len(every)}"
