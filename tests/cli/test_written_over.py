"""Nothing that a command reads, and no ledger, is ever written over, by whatever name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import pytest

import lastbit as lb
from lastbit.errors import InvalidParameter
from lastbit.files import replaced, same_place, written_over
from lastbit.ledger.ledger import Ledger
from lastbit.release.answer import Answer
from tests.cli.running import lastbit, succeeded
from tests.release.canaries import write_card, write_csv

SQL = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with its card, a public table and a ledger that has answered once."""
    folder = tmp_path_factory.mktemp("made")
    write_csv(folder / "visits.csv")
    (folder / "areas.csv").write_text("region,area\nNorth,a\n", "utf-8")
    card = write_card(folder)
    more = '[public.areas]\nsource = "areas.csv"\ncolumns = {region = "text", area = "text"}\n'
    card.write_text(card.read_text("utf-8") + more, "utf-8")
    table = lb.table(card)
    table.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    work = tmp_path / "folder"
    shutil.copytree(made, work, copy_function=shutil.copy2)
    monkeypatch.chdir(work)
    yield work


PRECIOUS = ("visits.csv", "areas.csv", "visits.toml", "visits.ledger")


def ways(target: str) -> list[str]:
    """Other names of a file: relative, absolute, by links of every sort, by another case."""
    suffix = ".json" if target != "visits.csv" else ".csv"
    os.symlink(target, f"link{suffix}")
    os.symlink(f"link{suffix}", f"second{suffix}")
    os.link(target, f"hard{suffix}")
    os.symlink(os.getcwd(), "around")
    return [f"link{suffix}", f"second{suffix}", f"hard{suffix}", f"around/link{suffix}",
            f"../folder/./link{suffix}", os.path.abspath(f"link{suffix}")]  # fmt: skip


@pytest.mark.parametrize("option", ["--out", "--report"])
@pytest.mark.parametrize("target", PRECIOUS)
def test_a_query_writes_over_nothing_of_its_own(folder: Path, target: str, option: str) -> None:
    before = {name: Path(name).read_bytes() for name in PRECIOUS}
    names = ways(target)
    if target == "visits.ledger":
        Path("hard.json").unlink()  # a ledger with two names is refused as such: see below
        names.remove("hard.json")
    names += [target] if option == "--report" or target.endswith(".csv") else []
    for name in names:
        result = lastbit("query", "visits.toml", SQL, "--epsilon", "1", option, name)
        assert result.exit_code == 2, name
        assert "must not be written over" in " ".join(result.output.split())
    assert {name: Path(name).read_bytes() for name in PRECIOUS} == before  # and nothing charged


@pytest.mark.parametrize("end", ["-journal", "-wal", "-shm"])
def test_what_sqlite_keeps_beside_a_ledger_is_spared(folder: Path, end: str) -> None:
    for name in (f"visits.ledger{end}", f"VISITS.ledger{end}"):
        result = lastbit("query", "visits.toml", SQL, "--epsilon", "1", "--report", name)
        assert result.exit_code == 2 and not Path(name).exists()


def test_a_ledger_that_is_not_there_yet_is_spared(folder: Path) -> None:
    Path("visits.ledger").unlink()
    result = lastbit("query", "visits.toml", SQL, "--epsilon", "1", "--report", "visits.ledger")
    assert result.exit_code == 2 and not Path("visits.ledger").exists()


def test_a_file_that_the_source_would_find_next_time_is_refused(folder: Path) -> None:
    Path("parts").mkdir()
    shutil.copy("visits.csv", "parts/1.csv")
    write_card(folder, '"parts/*.csv"')
    for name in ("parts/new.csv", "parts/1.csv"):
        result = lastbit("query", "visits.toml", SQL, "--epsilon", "1", "--out", name)
        assert result.exit_code == 2 and "the source" in result.output
    assert os.listdir("parts") == ["1.csv"]


def test_exports_in_python_are_held_to_it_too(folder: Path) -> None:
    answer = lb.table("visits.toml").sql(SQL).release(epsilon=1)
    before = {name: Path(name).read_bytes() for name in PRECIOUS}
    os.symlink("visits.csv", "link.csv")
    for one in (answer, answer.consistent()):
        for write in (one.to_csv, one.to_json, one.to_parquet, one.save, one.report):
            for name in (*PRECIOUS, "link.csv"):
                with pytest.raises(InvalidParameter, match="must not be written over"):
                    write(name)
    assert {name: Path(name).read_bytes() for name in PRECIOUS} == before
    answer.save("kept.json")
    loaded = Answer.load("kept.json")  # it knows of no card, but a ledger shows what it is
    for name in ("visits.ledger", "visits.ledger-journal"):
        with pytest.raises(InvalidParameter, match="names a ledger"):
            loaded.to_csv(name)


OTHERS = (
    ("leak", "--out", "visits.ledger.svg"),
    ("ledger", "export", "visits.ledger", "--out", "visits.ledger"),
    ("ledger", "backup", "visits.ledger", "visits.ledger"),
    ("ledger", "restore", "visits.ledger", "visits.ledger"),
    ("card", "new", "visits.csv", "--out", "visits.toml"),
    *(("report", "visits.toml", "--checklist", "--out", name) for name in PRECIOUS),
    ("geo", "visits.csv", "--epsilon", "ln(4)/200m", "--region", "52.3,13,52.7,13.8",
     "--out", "visits.csv"),
    ("verify", "code:noisy", "--epsilon", "1", "--inputs", "0", "1", "--certificate", "code.py"),
    ("verify", "code:noisy", "--epsilon", "1", "--inputs", "0", "1", "--html", "visits.ledger"),
)  # fmt: skip


@pytest.mark.parametrize("command", OTHERS, ids=lambda command: " ".join(command[:2]))
def test_no_other_command_writes_over_a_ledger_or_its_input(
    folder: Path, command: tuple[str, ...]
) -> None:
    Path("code.py").write_text("def noisy(value, u): return value + u\n")
    os.symlink("visits.ledger", "visits.ledger.svg")
    before = {name: Path(name).read_bytes() for name in (*PRECIOUS, "code.py")}
    assert lastbit(*command).exit_code == 2
    assert {name: Path(name).read_bytes() for name in (*PRECIOUS, "code.py")} == before


def test_a_link_is_replaced_and_what_it_leads_to_is_not(folder: Path) -> None:
    Path("letter.txt").write_text("dear Ada")
    os.symlink("letter.txt", "link.json")
    os.link("letter.txt", "hard.csv")
    succeeded("query", "visits.toml", SQL, "--epsilon", "1", "--out", "link.json")
    succeeded("query", "visits.toml", SQL, "--epsilon", "1", "--out", "hard.csv")
    assert Path("letter.txt").read_text() == "dear Ada"
    assert not Path("link.json").is_symlink() and Path("hard.csv").read_text().startswith("region")


def test_streams_are_written_and_pipes_without_a_reader_do_not_hang(folder: Path) -> None:
    os.symlink("/dev/null", "null.csv")
    succeeded("query", "visits.toml", SQL, "--epsilon", "1", "--out", "null.csv")
    os.mkfifo("pipe.csv")
    result = lastbit("query", "visits.toml", SQL, "--epsilon", "1", "--out", "pipe.csv")
    assert result.exit_code == 2 and "could not be written" in result.output


# ---------------------------------------------------------------- two names of one ledger


def test_a_ledger_reached_by_a_link_is_one_ledger(folder: Path) -> None:
    os.symlink("visits.ledger", "other.ledger")
    one, other = Ledger.open("visits.ledger"), Ledger.open("other.ledger")
    assert one.path == other.path
    other.note("by the link")
    assert one.head == other.head and one.problems() == []


def test_a_ledger_with_two_hard_names_is_refused(folder: Path) -> None:
    os.link("visits.ledger", "other.ledger")
    for name in ("visits.ledger", "other.ledger"):
        with pytest.raises(InvalidParameter, match="has another name"):
            Ledger.open(name)
    Path("other.ledger").unlink()
    os.link("visits.ledger", ".lastbit-ledger-left.new")  # as a crash while it is made leaves it
    assert Ledger.open("visits.ledger").spent("visits").epsilon == Fraction(1)


# ---------------------------------------------------------------- the door itself


def test_a_crash_leaves_the_old_file(tmp_path: Path) -> None:
    place = tmp_path / "a.txt"
    written_over(place, "old")
    place.chmod(0o640)
    with pytest.raises(ZeroDivisionError), replaced(place) as new:
        new.write_text("half")
        raise ZeroDivisionError
    assert place.read_text() == "old" and os.listdir(tmp_path) == ["a.txt"]
    written_over(place, "new")
    assert place.read_text() == "new" and place.stat().st_mode & 0o777 == 0o640


def test_places_that_are_not_there_are_compared_by_folder_and_name(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    os.symlink(tmp_path / "in", tmp_path / "by")
    assert same_place(tmp_path / "in" / "x", tmp_path / "by" / "X")
    assert same_place(tmp_path / "in" / "e\u0301", tmp_path / "by" / "\u00c9")
    assert not same_place(tmp_path / "in" / "x", tmp_path / "x")
    assert not same_place("a\0b", tmp_path)
