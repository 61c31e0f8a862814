"""The index of rows per unit: the integers are those without it, whatever lies in its folder."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import lastbit as lb
from lastbit.errors import EngineFailed
from lastbit.ledger.ledger import Ledger
from lastbit.tables.backends.duckdb import engine, unit_index as index
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, PublicTable, Source
from lastbit.tables.plan.sensitivity import measures_of
from lastbit.tables.sql.statement import parsed
from tests.kernel.unsealing import opened, opened_marginals

ROWS = (
    "SELECT i * i % 89 AS who, 'n' || (i * i % 97) AS name, 'w' || i % 7 AS ward,"
    " i % 4 AS cat, i % 13 + .5 AS x"
)
COLUMNS = (
    Column(name="who", type="integer"),
    Column(name="name", type="text"),
    Column(name="cat", type="integer", keys=(0, 1, 2)),
    Column(name="ward", type="text"),
    Column(name="x", type="number", bounds=(Fraction(0), Fraction(10))),
)
QUESTIONS = (
    "SELECT count(*) FROM t",
    "SELECT cat, count(*), sum(x), avg(x) FROM t GROUP BY cat",
    "SELECT cat, median(x), count(DISTINCT name) FROM t GROUP BY cat",
    "SELECT cat, count(DISTINCT who) FROM t GROUP BY cat",
    "SELECT ward, count(*), sum(x) FROM t GROUP BY ward",
    "SELECT bin(x, 0, 2, 5) AS b, stddev(x) FROM t GROUP BY bin(x, 0, 2, 5)",
    "SELECT upper(ward) AS big, count(*) FROM t GROUP BY upper(ward)",
)


def written(path, rows=ROWS, count=2_000):
    duckdb.sql(f"COPY ({rows} FROM range({count}) t(i)) TO '{path}' (FORMAT parquet)")
    return Source(kind="parquet", paths=(str(path),))


def card_of(source, **changes):
    columns = {column.name: column for column in COLUMNS}
    fields = {"name": "t", "source": source, "unit": "who", "max_rows": 20, "columns": columns}
    return DataCard(**(fields | {"max_groups": 5} | changes))


SESSIONS = [engine.EngineSession()]
"""That which questions are asked in is the last one."""


@contextmanager
def keeping_units(folder):
    """Inside, which units have many rows is kept in this folder."""
    with engine.EngineSession(units=folder) as session:
        SESSIONS.append(session)
        try:
            yield
        finally:
            SESSIONS.remove(session)


def ask(card, sql=QUESTIONS[1]):
    query = parsed(sql, card)
    with SESSIONS[-1] as session:
        measures = measures_of(query)[0]
        found = opened(query, measures, session.aggregates(query, card, measures, secret="s"))
    bins = {name: [list(one) for one in every] for name, every in found.bins.items()}
    return found.keys, found.entries, bins, found.units


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the index is; files need not be old, so that no test must wait."""
    monkeypatch.setattr(index, "_SETTLED", -(10**12))
    return tmp_path / "visits.ledger.units"


@pytest.fixture
def counted(monkeypatch):
    """How often rows of units were counted."""
    found, ran = [], engine._ran

    def noted(connection, sql):
        found.extend([sql] * (index.COUNTED_UNITS in sql.partition(" AS ")[0]))
        return ran(connection, sql)

    monkeypatch.setattr(engine, "_ran", noted)
    return found


def source_in(tmp_path, kind):
    if kind == "parquet":
        return written(tmp_path / "t.parquet")
    if kind == "folder":
        for part in (1, 2):
            (tmp_path / "rows" / f"part={part}").mkdir(parents=True)
            written(tmp_path / "rows" / f"part={part}" / "t.parquet", count=500 * part)
        return Source(kind="parquet", paths=(str(tmp_path / "rows"),))
    with duckdb.connect(tmp_path / "t.duckdb") as database:
        database.execute(f"CREATE TABLE t AS {ROWS} FROM range(2000) t(i)")
    return Source(kind="duckdb", paths=(str(tmp_path / "t.duckdb"),), table="t")


@pytest.mark.parametrize("kind", ["parquet", "folder", "duckdb"])
@pytest.mark.parametrize("unit", ["who", "name"])
def test_the_same_integers(tmp_path, folder, counted, kind, unit):
    card = card_of(source_in(tmp_path, kind), unit=unit)
    for sql in QUESTIONS:
        without = ask(card, sql)
        with keeping_units(str(folder)):
            assert ask(card, sql) == ask(card, sql) == without
    assert len(counted) == len(list(folder.iterdir())) == 5  # three are by cat


def test_a_path_of_the_index_is_no_pattern(tmp_path, monkeypatch, folder, counted):
    """Where files cannot be read by their descriptors: u[a] is not ua, which none verified."""
    monkeypatch.setattr(index, "DESCRIPTORS", str(tmp_path / "nowhere"))
    card = card_of(source_in(tmp_path, "parquet"))
    without = ask(card)
    with keeping_units(str(tmp_path / "u[a]")):
        ask(card)
        (name,) = os.listdir(tmp_path / "u[a]")
        (tmp_path / "ua").mkdir()
        rows = "SELECT i AS u, 1000 AS n FROM range(89) t(i)"
        duckdb.sql(f"COPY ({rows}) TO '{tmp_path / 'ua' / name}' (FORMAT parquet)")
        assert ask(card) == without
    assert len(counted) == 1


def test_marginals_and_questions_share_it(tmp_path, folder, counted):
    card = card_of(source_in(tmp_path, "parquet"))
    query = parsed(QUESTIONS[1], card)
    without = opened_marginals(query, [(0,)], SESSIONS[-1].marginal_counts(query, card, [(0,)]))
    with keeping_units(str(folder)):
        ask(card)
        again = SESSIONS[-1].marginal_counts(query, card, [(0,)])
        assert opened_marginals(query, [(0,)], again) == without
        ask(card, "SELECT cat, median(x) FROM t GROUP BY cat")
    assert len(counted) == 1


@pytest.mark.parametrize(
    "changes", [{"max_rows": 21}, {"unit": "name"}, {"columns": {"keys": (0, 1)}}, {"sql": 0}]
)
def test_what_decides_about_the_count_is_in_its_name(tmp_path, folder, counted, changes):
    card = card_of(source_in(tmp_path, "parquet"))
    if "columns" in changes:
        fewer = Column(name="cat", type="integer", keys=(0, 1))
        changes = {"columns": dict(card.columns) | {"cat": fewer}}
    sql = QUESTIONS[changes.pop("sql", 1)]
    other = card_of(card.source, **changes)
    without = ask(other, sql)
    with keeping_units(str(folder)):
        ask(card)
        assert ask(other, sql) == without
    assert len(counted) == 2


def stale(tmp_path, folder):
    """Whether an index of old rows is used for new ones."""
    path = tmp_path / "t.parquet"
    card = card_of(written(path))
    with keeping_units(str(folder)):
        ask(card)
        before = os.stat(path)
        written(path, ROWS.replace("i * i % 89", "i * i % 13"))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        with_index = ask(card)
    return with_index != ask(card)


def test_an_index_of_other_rows_is_not_used_and_goes(tmp_path, folder):
    assert not stale(tmp_path, folder)
    assert len(list(folder.iterdir())) == 1


def test_a_name_without_the_files_would_be_caught(tmp_path, folder, monkeypatch):
    digest = index._digest

    def without_files(*parts):
        return digest(*parts) if len(parts) < 5 else digest(parts[0])

    monkeypatch.setattr(index, "_digest", without_files)
    assert stale(tmp_path, folder)


def test_files_that_changed_just_now_are_not_kept(tmp_path, monkeypatch, counted):
    card, folder = card_of(source_in(tmp_path, "parquet")), tmp_path / "x.units"
    with keeping_units(str(folder)):
        ask(card), ask(card)
        assert len(counted) == 2 and not list(folder.iterdir())
        later = time.time_ns() + 3 * 10**9
        monkeypatch.setattr(time, "time_ns", lambda: later)
        ask(card), ask(card)
    assert len(counted) == 3 and len(list(folder.iterdir())) == 1


def test_files_that_change_meanwhile_are_not_kept(tmp_path, folder, monkeypatch):
    card, ran = card_of(source_in(tmp_path, "parquet")), engine._ran

    def changing(connection, sql):
        found = ran(connection, sql)
        written(tmp_path / "t.parquet", count=1_000)
        return found

    ask(card)  # so that it is looked through
    monkeypatch.setattr(engine, "_ran", changing)
    with keeping_units(str(folder)), pytest.raises(EngineFailed, match="changed while"):
        ask(card)
    assert not folder.exists()


def flipped(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)


def of_others(file):
    """A whole file of another question, under this name."""
    path = file.with_name("other")
    duckdb.sql(f"COPY (SELECT 5 AS u, 1000 AS n) TO '{path}' (FORMAT parquet)")
    path.chmod(0o600)
    path.rename(file)


def linked(file):
    shutil.move(file, file.parent.parent / "elsewhere")
    file.symlink_to(file.parent.parent / "elsewhere")


def piped(file):
    file.unlink()
    os.mkfifo(file, 0o600)


def full_of_folders(file):
    file.unlink()
    file.mkdir(0o700)


@pytest.mark.parametrize(
    "damage",
    [
        flipped,
        of_others,
        linked,
        piped,
        full_of_folders,
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(file.read_bytes()[:-1]),
        lambda file: file.chmod(0o640),
        lambda file: file.parent.chmod(0o750),
        lambda file: shutil.move(file.parent, f"{file.parent}.old"),
    ],
)
def test_what_is_damaged_or_not_private_is_counted_again(tmp_path, folder, counted, damage):
    card = card_of(source_in(tmp_path, "parquet"))
    with keeping_units(str(folder)):
        first = ask(card)
        (file,) = folder.iterdir()
        damage(file)
        assert ask(card) == first and len(counted) == 2


def test_an_index_of_somebody_else_is_not_used(tmp_path, folder, counted, monkeypatch):
    card = card_of(source_in(tmp_path, "parquet"))
    with keeping_units(str(folder)):
        first = ask(card)
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        assert ask(card) == first and len(counted) == 2


def test_a_folder_that_sql_cannot_say(tmp_path, folder):
    card = card_of(source_in(tmp_path, "parquet"))
    with keeping_units(os.fsdecode(bytes(folder) + b"\xff")):
        assert ask(card) == ask(card)


def test_a_folder_that_cannot_be_written_to(tmp_path, folder):
    card = card_of(source_in(tmp_path, "parquet"))
    folder.write_text("a file in its place")
    with keeping_units(str(folder)):
        assert ask(card) == ask(card)
    assert folder.read_text() == "a file in its place"


@pytest.mark.parametrize(
    ("sql", "changes"),
    [
        ("SELECT count(*) FROM t WHERE x > 1", {}),
        ("SELECT count(*) FROM t JOIN places ON t.cat = places.cat", {}),
        ("SELECT avg(n) FROM (SELECT who, count(*) AS n FROM t GROUP BY who)", {}),
        ("SELECT count(*) FROM t", {"unit": None, "max_rows": 1, "max_groups": None}),
        ("SELECT count(*) FROM t", {"source": "csv"}),
        ("SELECT count(*) FROM t", {"source": "frame"}),
    ],
)
def test_where_there_is_none(tmp_path, folder, sql, changes):
    source = source_in(tmp_path, "parquet")
    rows = duckdb.sql(f"FROM '{source.paths[0]}'")
    if changes.get("source") == "csv":
        rows.write_csv(str(tmp_path / "t.csv"))
        changes = {"source": Source(kind="csv", paths=(str(tmp_path / "t.csv"),))}
    elif "source" in changes:
        changes = {"source": Source(kind="frame", frame=rows.to_arrow_table())}
    Path(tmp_path / "places.csv").write_text("cat\n1\n2\n")
    places = Source(kind="csv", paths=(str(tmp_path / "places.csv"),))
    public = {"places": PublicTable(name="places", source=places, columns={"cat": "integer"})}
    with keeping_units(str(folder)):
        ask(card_of(**{"source": source, "public": public} | changes), sql)
    assert not folder.exists()


def test_few_files_of_one_source(tmp_path, folder, counted, monkeypatch):
    monkeypatch.setattr(index, "_MOST_FILES", 3)
    source = source_in(tmp_path, "parquet")
    with keeping_units(str(folder)):
        for most in range(1, 9):
            ask(card_of(source, max_rows=most))
        assert len(list(folder.iterdir())) == 3
        ask(card_of(source, max_rows=8))
    assert len(counted) == 8


ASKING = """
import sys
from tests.tables.backends import test_unit_index as tests
tests.index._SETTLED = -(10**12)
if sys.argv[3] == "killed":
    tests.os.rename = lambda *_: tests.os.kill(tests.os.getpid(), tests.signal.SIGKILL)
source = tests.Source(kind="parquet", paths=(sys.argv[1],))
with tests.keeping_units(sys.argv[2]):
    print(tests.ask(tests.card_of(source)))
"""


def asking(path, folder, how=""):
    command = [sys.executable, "-c", ASKING, str(path), str(folder), how]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_killed_while_writing_and_several_at_once(tmp_path, folder, monkeypatch):
    path = Path(source_in(tmp_path, "parquet").paths[0])
    with asking(path, folder, "killed") as one:
        assert one.wait() == -signal.SIGKILL
    (part,) = folder.iterdir()
    assert part.name.startswith("part-") and part.stat().st_mode & 0o077 == 0
    several = [asking(path, folder) for _ in range(3)]
    told = {one.communicate()[0] for one in several}
    assert told == {f"{ask(card_of(Source(kind='parquet', paths=(str(path),))))}\n"}
    assert part.exists()  # it may be somebody's who is still at it
    monkeypatch.setattr(index, "_LOST", -1)
    with keeping_units(str(folder)):
        ask(card_of(Source(kind="parquet", paths=(str(path),)), max_rows=7))
    assert all(not file.name.startswith("part-") for file in folder.iterdir())


def test_it_lies_beside_the_ledger_for_its_owner_alone(tmp_path, folder, counted):
    path = source_in(tmp_path, "parquet").paths[0]
    question = lb.table(path, unit="who", max_rows=20, keys={"cat": [0, 1]}).group_by("cat")
    ledger = tmp_path / "visits.ledger"
    question.agg(n=lb.count()).release(epsilon=1)  # without a ledger
    assert not folder.exists()
    for _ in range(2):
        question.agg(n=lb.count()).release(epsilon=1, ledger=ledger, fresh=True)
    question.agg(total=lb.sum("x", 0, 9)).release(epsilon=1, ledger=Ledger.open(ledger))
    assert len(counted) == 1
    (file,) = folder.iterdir()
    assert [one.stat().st_mode & 0o777 for one in (folder, file)] == [0o700, 0o600]


def test_a_card_may_do_without(tmp_path, folder):
    path = source_in(tmp_path, "parquet").paths[0]
    text = f'[table]\nname = "t"\nsource = "{path}"\nneighbours = "add-remove"\n'
    text += '[unit]\ncolumn = "who"\nmax_rows = 20\n[budget]\nepsilon = 9\n'
    text += '[ledger]\npath = "visits.ledger"\n[columns.who]\ntype = "integer"\n'
    (tmp_path / "t.toml").write_text(text + "[engine]\nindex = false\n")
    lb.table(tmp_path / "t.toml").agg(n=lb.count()).release(epsilon=1)
    assert not folder.exists()
    (tmp_path / "t.toml").write_text(text)
    lb.table(tmp_path / "t.toml").agg(n=lb.count()).release(epsilon=1, fresh=True)
    assert folder.exists()
