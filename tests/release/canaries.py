"""A table whose every value is unmistakable, and a search for its values in all that anybody sees.

Canaries are the values of the data, the raw aggregates, and noisy numbers that nobody paid for.
What is searched: the words, reprs, notes, causes and contexts of an exception, and the locals of
every frame of it but the test's own; what was printed and logged; files that were left behind.
"""

from __future__ import annotations

import csv
import datetime
import logging
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb
import pytest

from lastbit.checker import query
from lastbit.release.answer import Answer
from lastbit.release.release import released
from lastbit.tables.backends import engines
from lastbit.tables.card.read import read_card
from lastbit.tables.plan import calibrate
from lastbit.tables.plan.plan import planned
from lastbit.tables.sql.statement import parsed

TESTS = str(Path(__file__).parents[1])
TEXT, UNIT, COST, DAY = "Zq8X", 7310947, 48613.0771, datetime.date(2077, 11, 23)
AGE = 3901273641
VALUES = (
    "Zq8X", "731094700", "731094701", *(f"48613.{end}" for end in ("07", "08", "09", "10", "11")),
    "2077-11-23", "2077, 11, 23", str(AGE),
)  # fmt: skip
"""How the planted values begin, however they are written. Whole numbers have nine digits or more:
times in nanoseconds, which exceptions hold, have seven given ones about once in a million."""

COLUMNS = ("patient", "region", "note", "cost", "age", "day", "seen")
CARD = """
[table]
name = "visits"
source = {source}
neighbours = "add-remove"
[unit]
column = "patient"
max_rows = 3
max_groups = 2
[budget]
epsilon = 8
delta = 1e-4
[ledger]
path = "visits.ledger"
[columns.patient]
type = "integer"
[columns.region]
type = "text"
keys = ["North", "East"]
[columns.note]
type = "text"
[columns.cost]
type = "number"
bounds = [0, 50000]
step = 0.0001
[columns.age]
type = "integer"
bounds = [0, 4000000000]
[columns.day]
type = "date"
[columns.seen]
type = "timestamp"
"""
ALL = (
    "SELECT region, COUNT(*) AS n, COUNT(DISTINCT patient) AS people, AVG(cost) AS cost,"
    " STDDEV(cost) AS spread, SUM(age) AS ages, MEDIAN(age) AS age, MAX(cost) AS most"
    " FROM visits GROUP BY region HAVING COUNT(*) > -100000 ORDER BY n DESC LIMIT 5"
)
FOUND = "SELECT note, COUNT(*) AS n, SUM(cost) AS cost FROM visits GROUP BY note"
HOSTILE = (".*Zq8X(+[", "Zq8X\\1{9}", "Zq8X'; DROP TABLE x; --", "Zq8X %s {0}", 'Zq8X"')


def planted() -> list[tuple[Any, ...]]:
    """Rows of canaries. Every note but one is of a single unit, so no private answer shows it."""
    rows: list[tuple[Any, ...]] = []
    for i in range(40):
        note = HOSTILE[i] if i < len(HOSTILE) else f"Zq8Xnote{i}"
        region = ("North", "East", f"Zq8Xregion{i}")[i % 3]
        seen = datetime.datetime(2077, 11, 23, 4, 5, i)
        cost, age = COST + i / 1000, AGE
        rows.append((UNIT * 1000 + i // 2, region, note, cost, age, DAY, seen))
    return rows


def arrow_table() -> Any:
    import pyarrow

    lists = zip(*planted(), strict=True)
    return pyarrow.table(dict(zip(COLUMNS, map(list, lists), strict=True)))


def write_csv(path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(planted())


def write_parquet(path: Path) -> None:
    rows = arrow_table()
    with duckdb.connect(":memory:") as connection:
        connection.register("rows", rows)
        connection.execute(f"COPY rows TO '{path}' (FORMAT parquet)")


def write_duckdb(path: Path) -> None:
    rows = arrow_table()
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", rows)
        connection.execute("CREATE TABLE visits AS SELECT * FROM rows")
        connection.execute("CREATE VIEW seen AS SELECT * FROM visits")


def write_card(folder: Path, source: str = '"visits.csv"', **changed: str) -> Path:
    """A card in the folder; `changed` are lines to be replaced: old="new"."""
    text = CARD.format(source=source)
    for old, new in changed.items():
        text = text.replace(old, new)
    place = folder / "visits.toml"
    place.write_text(text, "utf-8")
    return place


def raw_numbers(raw: Any) -> set[str]:
    """The integers of raw aggregates that are long enough to be recognised."""
    numbers = [n for entries in raw.entries.values() for n in entries]
    numbers += [n for groups in raw.bins.values() for bins in groups for n in bins]
    return {str(abs(n)) for n in numbers if abs(n) >= 10**9}


# ---------------------------------------------------------------- the search


def told(error: BaseException | None) -> str:
    """All that an exception holds, down its chain, but for the frames of the tests."""
    return "\n".join(_told(error, set()))


def _told(error: BaseException | None, known: set[int]) -> Iterator[str]:
    if error is None or id(error) in known:
        return
    known.add(id(error))
    yield f"{error} {error!r} {error.args!r} {vars(error)!r}"
    yield from _frames(error.__traceback__)
    yield from _told(error.__cause__, known)
    yield from _told(error.__context__, known)
    for inner in getattr(error, "exceptions", ()):
        yield from _told(inner, known)


def _frames(trace: TracebackType | None) -> Iterator[str]:
    while trace is not None:
        code = trace.tb_frame.f_code
        if not code.co_filename.startswith(TESTS):
            for name, value in trace.tb_frame.f_locals.items():
                yield f"{code.co_filename} {code.co_name} {name} = {shown(value)}"
        trace = trace.tb_next


def shown(value: Any) -> str:
    """The repr, if there is one: a value that is still being made may have none."""
    try:
        return repr(value)
    except Exception as error:
        return f"no repr: {error}"


def leaks(text: str, more: set[str] | frozenset[str] = frozenset()) -> list[str]:
    """The lines of the text that hold a canary."""
    canaries = {*VALUES, *more}
    return [line[:300] for line in text.splitlines() if any(c in line for c in canaries)]


def left_behind(folder: Path) -> list[str]:
    """Files below the folder that hold a canary, in any of the ways in which text is stored."""
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        content = path.read_bytes()
        if any(v.encode(how) in content for v in VALUES for how in ("utf-8", "utf-16-le")):
            found.append(path.name)
    return found


# ---------------------------------------------------------------- a folder with the table in it


@pytest.fixture(name="memory")
def memory_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory if there is one: a sync is quick there."""
    if not Path("/dev/shm").is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as found:
        yield Path(found)


@pytest.fixture(name="folder", autouse=True)
def canary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> Iterator[Path]:
    """A folder with the table in a CSV file; temporary files go into one of their own."""
    monkeypatch.chdir(tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    # of a quantile, on both sides: a thousand are no other case
    monkeypatch.setitem(vars(calibrate)["measures_of"].__globals__, "_CANDIDATES", 96)
    monkeypatch.setattr(query, "_CANDIDATES", 96)
    caplog.set_level(logging.DEBUG)
    write_csv(tmp_path / "visits.csv")
    write_card(tmp_path)
    yield tmp_path
    assert list(scratch.iterdir()) == []


def ask(sql: str = ALL, **how: Any) -> Answer:
    card = read_card("visits.toml")
    query = parsed(sql, card)
    price = {"epsilon": 1, "delta": "1e-6"} if sql == FOUND else {"epsilon": 1}
    return released(query, card, planned(query, card, **price), **how)


def fails(work: Callable[[], Any], capfd: Any, caplog: Any, more: Any = frozenset()) -> Any:
    """Run what must fail, and search all that anybody sees of it."""
    try:
        work()
    except BaseException as error:
        caught = error
    else:
        pytest.fail("it did not fail")
    seen = capfd.readouterr()
    everything = "\n".join((told(caught), seen.out, seen.err, caplog.text))
    assert leaks(everything, more) == []
    assert all(Path(name).suffix in SOURCES for name in left_behind(Path().resolve()))
    return caught


SOURCES = (".csv", ".parquet", ".duckdb", ".gz", ".wal")


def broken_statement(monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    """Let the engine run another statement: one that stumbles over a value."""
    real = vars(engines)["statement"]
    monkeypatch.setattr(engines, "statement", lambda *a, **k: replace(real(*a, **k), sql=sql))
    monkeypatch.setattr(
        "lastbit.release.release.rehearse", lambda *_: None
    )  # which would refuse it for free
