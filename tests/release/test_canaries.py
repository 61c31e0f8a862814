"""No failing path tells a value of the data: canaries in every column, and a search of all output.

The paths are those of broken sources, cards, engines and ledgers, interrupts, and an exception put
into every function that sees an answer being made, with all that the function holds in its words.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lastbit as lb
from lastbit.errors import EngineFailed, LastbitError
from lastbit.kernel.noise import noisy_numbers
from lastbit.ledger.ledger import Ledger
from lastbit.release.certifying import program_of
from lastbit.release.release import released
from lastbit.tables.card.read import read_card
from lastbit.tables.plan.plan import planned
from lastbit.tables.sql.statement import parsed
from tests.cli.running import lastbit
from tests.evidence import late
from tests.kernel.unsealing import aggregates
from tests.release import canaries
from tests.release.canaries import (
    ALL,
    COLUMNS,
    FOUND,
    TEXT,
    arrow_table,
    ask,
    broken_statement,
    fails,
    leaks,
    left_behind,
    planted,
    raw_numbers,
    told,
    write_card,
    write_duckdb,
    write_parquet,
)  # fmt: skip

canary_folder, memory_folder = canaries.canary_folder, canaries.memory_folder
PARQUET, DUCKDB = '"visits.parquet"', '{duckdb = "visits.duckdb", table = "visits"}'


# ---------------------------------------------------------------- sources


def encoded(how: str) -> Callable[[], None]:
    def write() -> None:
        text = Path("visits.csv").read_text("utf-8")
        Path("visits.csv").write_bytes(text.encode(how))

    return write


def headless(*columns: int) -> Callable[[], None]:
    """A file without a header: its first line is somebody's row, with equal values in it."""

    def write() -> None:
        rows = [",".join(str(row[i]) for i in columns) for row in planted()]
        Path("visits.csv").write_text("\n".join(rows), "utf-8")

    return write


def cut(path: str, make: Callable[[Path], None], share: float) -> Callable[[], None]:
    def write() -> None:
        make(Path(path))
        content = Path(path).read_bytes()
        Path(path).write_bytes(content[: int(len(content) * share)])

    return write


def garbled(path: str, make: Callable[[Path], None], offset: int) -> Callable[[], None]:
    """Every 97th byte changed, from the offset on."""

    def write() -> None:
        make(Path(path))
        content = bytearray(Path(path).read_bytes())
        for place in range(offset, len(content), 97):
            content[place] ^= 0x5A
        Path(path).write_bytes(bytes(content))

    return write


def zipped() -> None:
    packed = gzip.compress(Path("visits.csv").read_bytes())
    Path("visits.csv.gz").write_bytes(packed[: len(packed) // 2])


def text_as(path: str) -> Callable[[], object]:
    return lambda: Path(path).write_bytes(Path("visits.csv").read_bytes())


def nothing() -> None:
    return


BROKEN: dict[str, tuple[str, Callable[[], object]]] = {
    "utf-16": ('"visits.csv"', encoded("utf-16")),
    "utf-32": ('"visits.csv"', encoded("utf-32-be")),
    "headless": ('"visits.csv"', headless(2, 2, 0)),
    "headless, with numbers": ('"visits.csv"', headless(2, 1, 3)),
    "empty": ('"visits.csv"', lambda: Path("visits.csv").write_text("")),
    "cut gzip": ('"visits.csv.gz"', zipped),
    "missing": ('"nowhere.csv"', nothing),
    "folder": ('"scratch"', nothing),
    "text as parquet": (PARQUET, text_as("visits.parquet")),
    "text as duckdb": (DUCKDB, text_as("visits.duckdb")),
    "cut parquet": (PARQUET, cut("visits.parquet", write_parquet, 0.5)),
    "parquet without end": (PARQUET, cut("visits.parquet", write_parquet, 0.99)),
    "garbled parquet": (PARQUET, garbled("visits.parquet", write_parquet, 40)),
    "cut duckdb": (DUCKDB, cut("visits.duckdb", write_duckdb, 0.3)),
    "garbled duckdb": (DUCKDB, garbled("visits.duckdb", write_duckdb, 12288)),
    "no such table": (
        '{duckdb = "visits.duckdb", table = "Zother"}', lambda: write_duckdb(Path("visits.duckdb")),
    ),
    "a view": (
        '{duckdb = "visits.duckdb", table = "seen"}', lambda: write_duckdb(Path("visits.duckdb")),
    ),
}  # fmt: skip


@pytest.mark.thinned(one_in=3)
@pytest.mark.parametrize("name", BROKEN)
def test_broken_sources(name: str, folder: Path, capfd: Any, caplog: Any) -> None:
    source, prepare = BROKEN[name]
    prepare()
    write_card(folder, source)
    error = fails(ask, capfd, caplog)
    assert isinstance(error, LastbitError)
    result = lastbit("query", "visits.toml", ALL, "--epsilon", "1")
    assert result.exit_code == 2 and leaks(result.output + told(result.exception)) == []
    card_check = lastbit("card", "check", "visits.toml")
    assert leaks(card_check.output + told(card_check.exception)) == []
    if Path("visits.ledger").exists():  # each of them is found before the charge
        assert Ledger.open("visits.ledger").spent("visits").epsilon == 0
    assert "stays charged" not in str(error)


@pytest.mark.parametrize("name", ["headless", "headless, with numbers", "utf-16", "cut gzip"])
def test_broken_sources_without_a_card(name: str, capfd: Any, caplog: Any) -> None:
    source, prepare = BROKEN[name]
    prepare()
    fails(lambda: lb.table(source.strip('"'), unit="nobody", max_rows=3), capfd, caplog)
    result = lastbit("card", "new", source.strip('"'), "--out", "new.toml")
    assert leaks(result.output) == [] and (result.exit_code == 2 or name == "cut gzip")


KINDS = ("integer", "number", "text", "boolean", "date", "timestamp")


@pytest.mark.parametrize(
    ("column", "kind"),
    [(name, KINDS[(i + j) % 6]) for i, name in enumerate(COLUMNS) for j in (0, 3)],
)
def test_cards_of_wrong_types(
    column: str, kind: str, folder: Path, capfd: Any, caplog: Any
) -> None:
    """Values that do not fit are missing; what is refused is refused without a word of them."""
    text = write_card(folder).read_text("utf-8")
    head, _, tail = text.partition(f"[columns.{column}]\n")
    old = tail.partition("\n")[0]
    Path("visits.toml").write_text(
        f'{head}[columns.{column}]\ntype = "{kind}"{tail.removeprefix(old)}', "utf-8"
    )
    try:
        answer = ask("SELECT COUNT(*) AS n, COUNT(DISTINCT note) AS m FROM visits WHERE cost > 1")
        assert leaks(str(answer) + answer.to_json()) == []
    except LastbitError as error:
        assert leaks(told(error)) == []
    seen = capfd.readouterr()
    assert leaks(seen.out + seen.err + caplog.text) == []


# ---------------------------------------------------------------- frames


class Hostile:
    """An object in a frame that breaks whoever looks at it."""

    def __repr__(self) -> str:
        raise RuntimeError(f"{TEXT} in repr")

    __str__ = __repr__


def frames() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Things that are no table, or none that can be read."""
    import pandas
    import polars
    import pyarrow

    frame = arrow_table().to_pandas()
    yield "no unit", lambda: (frame, "nobody")
    yield "two columns of one name", lambda: (frame.rename(columns={"note": "region"}), "patient")
    yield "polars", lambda: (polars.from_arrow(arrow_table()), "nobody")
    yield "arrow", lambda: (arrow_table(), "nobody")
    yield "reader", lambda: (arrow_table().to_reader(), "patient")
    yield "list of rows", lambda: ([dict(zip(COLUMNS, planted()[0], strict=True))], "patient")
    yield "dict", lambda: ({"patient": [row[0] for row in planted()]}, "patient")
    yield "series", lambda: (frame["note"], "patient")
    yield "hostile", lambda: (pandas.DataFrame({"patient": [1], "note": [Hostile()]}), "nobody")
    yield (
        "broken text",
        lambda: (
            pyarrow.table({"patient": [1], "note": pyarrow.array([b"Zq8X\xff"]).view("string")}),
            "nobody",
        ),
    )


FRAMES = dict(frames())


@pytest.mark.parametrize("name", FRAMES)
def test_frames(name: str, capfd: Any, caplog: Any) -> None:
    def work() -> None:
        source, unit = FRAMES[name]()
        lb.table(source, unit=unit, max_rows=2).agg(n=lb.count()).release(epsilon=1)

    fails(work, capfd, caplog)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_that_fail_in_the_engine(
    kind: str, monkeypatch: pytest.MonkeyPatch, capfd: Any, caplog: Any
) -> None:
    import polars

    rows = arrow_table()
    source = {"pandas": rows.to_pandas, "polars": lambda: polars.from_arrow(rows)}.get(
        kind, lambda: rows
    )()
    table = lb.table(source, unit="patient", max_rows=2, max_groups=1, name="visits")
    assert leaks(repr(table) + repr(table.card) + repr(table.card.source)) == []
    question = table.group_by("note").agg(n=lb.count())
    broken_statement(monkeypatch, "SELECT CAST(note AS INTEGER) FROM lastbit_table")
    error = fails(lambda: question.release(epsilon=1, delta="1e-6"), capfd, caplog)
    assert isinstance(error, EngineFailed)


# ---------------------------------------------------------------- the command, as a process


DEBUGGED = (
    "import logging; logging.basicConfig(level=logging.DEBUG); from lastbit.cli import main; main()"
)


def process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-X", "dev", "-X", "faulthandler", "-c", DEBUGGED, *arguments],
        env={**os.environ, "PYTHONFAULTHANDLER": "1", "TMPDIR": "scratch", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("what", ["answered", *map(late, ("garbled", "not written", "no ledger"))])
def test_the_command_with_everything_turned_on(what: str, folder: Path) -> None:
    arguments = ["query", "visits.toml", FOUND, "--epsilon", "1", "--delta", "1e-6"]
    if what == "garbled":
        BROKEN["garbled parquet"][1]()
        write_card(folder, PARQUET)
    elif what == "not written":
        arguments += ["--report", "/dev/full"]
    elif what == "no ledger":
        Path("visits.ledger").write_bytes(b"Zq8" * 5000)
    ran = process(*arguments)
    assert leaks(ran.stdout + ran.stderr) == []
    assert ran.returncode == (0 if what == "answered" else 2), ran.stderr
    assert "Traceback" not in ran.stderr
    found = set(left_behind(folder)) - {"visits.csv", "visits.parquet"}
    assert found == set()


def test_what_shows_itself(folder: Path) -> None:
    """The reprs of everything that a person may have at hand."""
    import polars

    card = read_card("visits.toml")
    query = parsed(FOUND, card)
    plan = planned(query, card, epsilon=1, delta="1e-6")
    raw = aggregates(query, card, plan.measures, secret="s" * 64)
    integers = raw
    noisy = noisy_numbers(program_of(plan), integers)
    answer = released(query, card, plan)
    book = Ledger.open("visits.ledger")
    frame = polars.from_arrow(arrow_table())
    table = lb.table(frame, unit="patient", max_rows=2, name="visits").agg(n=lb.count())
    things = [
        card,
        card.source,
        query,
        plan,
        raw,
        integers,
        noisy,
        answer,
        answer.rows,
        book,
        table,
    ]
    things += [table.card, table.rows, table.query, book.entries(), book.accounts(), card.columns]
    secrets = raw_numbers(integers) | {book.secret.hex(), repr(book.secret)}
    text = "\n".join([*map(repr, things), *map(str, things), plan.explain(), answer.to_json()])
    assert leaks(text + answer._repr_html_() + answer.to_csv(), secrets) == []
    answer.report(folder / "page.html")
    assert left_behind(folder) == ["visits.csv"]
