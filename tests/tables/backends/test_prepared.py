"""Prepared rows: the integers are those of the source, and what is not of it is refused."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest

import lastbit as lb
from lastbit.errors import CardRefused, EngineFailed, InvalidParameter, LastbitError
from lastbit.privacy import CHANGE_ONE
from lastbit.release import Table
from lastbit.tables import rows_of as question_rows
from lastbit.tables.backends.duckdb import engine, prepared, preparing
from lastbit.tables.backends.duckdb.counted_keys import counted_scans, prepare_rows
from lastbit.tables.backends.duckdb.preparing import prepared_state, unprepare_rows
from lastbit.tables.card.column import Column
from lastbit.tables.card.read import card_from
from lastbit.tables.card.schema import DataCard, PrivateTable, PublicTable, Source
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.statement import statement
from lastbit.tables.plan.sensitivity import measures_of
from lastbit.tables.sql.statement import parsed
from tests.kernel.unsealing import opened, opened_marginals

ROWS = (
    "SELECT CASE WHEN i % 31 > 0 THEN i * i % 89 END AS who,"
    " CASE WHEN i % 29 > 0 THEN 'n' || (i * i % 97) END AS name, 'w' || i % 7 AS ward,"
    " CASE WHEN i % 23 > 0 THEN i % 5 END AS cat, i % 9 AS age, i % 2 = 0 AS old,"
    " CASE i % 11 WHEN 0 THEN NULL WHEN 1 THEN CAST('nan' AS DOUBLE) WHEN 2 THEN"
    " CAST('-infinity' AS DOUBLE) WHEN 3 THEN -0e0 ELSE i % 13 + .1 END AS x,"
    " DATE '2024-01-01' + CAST(i % 400 AS INTEGER) AS day, TIMESTAMP '2024-01-01' +"
    " INTERVAL (i % 999) MINUTE AS seen"
)
COLUMNS = (
    Column(name="who", type="integer"),
    Column(name="name", type="text"),
    Column(name="cat", type="integer", keys=(0, 1, 2)),
    Column(name="age", type="integer", bounds=(Fraction(0), Fraction(7))),
    Column(name="old", type="boolean"),
    Column(name="ward", type="text"),
    Column(name="x", type="number", bounds=(Fraction(0), Fraction(10))),
    Column(name="day", type="date"),
    Column(name="seen", type="timestamp"),
)
COUNTED = (
    "SELECT count(*) FROM t",
    "SELECT cat, count(*), sum(x), avg(x) FROM t GROUP BY cat",
    "SELECT age, median(x), sum(x) FROM t GROUP BY age",
    "SELECT old, count(*) FROM t GROUP BY old",
    "SELECT cat, count(DISTINCT {unit}) FROM t GROUP BY cat",
)
"""What is answered by the numbers beside each row."""
QUESTIONS = (
    *COUNTED,
    "SELECT cat, count(DISTINCT ward) FROM t GROUP BY cat",
    "SELECT ward, count(*), sum(x) FROM t GROUP BY ward",
    "SELECT bin(x, 0, 2, 5) AS b, stddev(x) FROM t GROUP BY bin(x, 0, 2, 5)",
    "SELECT upper(ward) AS big, count(*) FROM t GROUP BY upper(ward)",
    "SELECT cat, age, count(*) FROM t GROUP BY cat, age",
    "SELECT cat, count(*), avg(x) FROM t WHERE x > 3 AND ward <> 'w2' GROUP BY cat",
    "SELECT count(*) FROM t WHERE who = 4 OR name = 'n4'",
    "SELECT cat, count(*) FROM t WHERE day < DATE '2024-06-01' AND hour(seen) > 3 GROUP BY cat",
    "SELECT cat, avg(n) FROM (SELECT {unit}, cat, count(*) AS n FROM t GROUP BY {unit}, cat)"
    " GROUP BY cat",
    "SELECT label, count(*) FROM t JOIN wards ON t.ward = wards.ward GROUP BY label",
    "SELECT cat, count(*), sum(dose) FROM t JOIN labs ON t.{unit} = labs.{unit} GROUP BY cat",
)
KINDS = ("parquet", "csv", "folder", "csv folder", "duckdb", "files")


def write_rows(path, *, count=1_500, rows=ROWS):
    kind = "csv, HEADER" if str(path).endswith("csv") else "parquet"
    duckdb.sql(f"COPY ({rows} FROM range({count}) t(i)) TO '{path}' (FORMAT {kind})")
    old = time.time() - 10  # so that nothing has to wait
    os.utime(path, (old, old))
    return str(path)


def source_in(folder, kind):
    if kind in ("parquet", "csv"):
        return Source(kind=kind, paths=(write_rows(folder / f"t.{kind}"),))
    if kind == "files":
        files = [write_rows(folder / f"{part}.parquet", count=500 * part) for part in (1, 2)]
        return Source(kind="parquet", paths=tuple(files))
    if kind == "duckdb":
        with duckdb.connect(folder / "t.duckdb") as database:
            database.execute(f"CREATE TABLE t AS {ROWS} FROM range(1500) t(i)")
        return Source(kind="duckdb", paths=(str(folder / "t.duckdb"),), table="t")
    ending = "csv" if kind.startswith("csv") else "parquet"
    for part in (1, 2):
        place = folder / "rows" / f"part={part}"
        place.mkdir(parents=True)
        write_rows(place / f"t.{ending}", count=500 * part)
    return Source(kind=ending, paths=(str(folder / "rows"),))


def card_in(folder, kind="parquet", *, unit="who", **changes):
    columns = {column.name: column for column in COLUMNS}
    rows = "SELECT i * 3 % 89 AS who, 'n' || i % 97 AS name, i % 5 AS dose"
    doses = {c.name: c for c in COLUMNS if c.name == unit}
    doses["dose"] = Column(name="dose", type="integer", bounds=(Fraction(0), Fraction(5)))
    labs = Source(kind="parquet", paths=(write_rows(folder / "labs.parquet", rows=rows, count=99),))
    rows = "SELECT 'w' || i AS ward, 'l' || i % 2 AS label"
    wards = Source(kind="parquet", paths=(write_rows(folder / "w.parquet", rows=rows, count=5),))
    shown: dict = {"ward": "text", "label": "text"}
    fields = {
        "name": "t",
        "source": source_in(folder, kind),
        "unit": unit,
        "max_rows": 1 if unit is None else 12,
        "max_groups": None if unit is None else 3,
        "columns": columns,
        "prepared": str(folder / "t.prepared"),
        "public": {"wards": PublicTable(name="wards", source=wards, columns=shown)},
    }
    if unit is not None:
        private = PrivateTable(name="labs", source=labs, unit=unit, max_rows=2, columns=doses)
        fields["private"] = {"labs": private}
    return DataCard(**(fields | changes))


@pytest.fixture(autouse=True)
def nothing_waits(monkeypatch):
    monkeypatch.setattr(preparing, "_SETTLED", 0.0)


def unprepared(card):
    return replace(card, prepared=None)


def ask(card, sql=QUESTIONS[1]):
    """The integers; and the statement that gave them."""
    query = parsed(sql.format(unit=card.unit), card)
    measures = measures_of(query)[0]
    with engine.EngineSession() as session:
        raw = session.aggregates(query, card, measures, secret="s")
        found = opened(query, measures, raw)
    bins = {name: [list(one) for one in every] for name, every in found.bins.items()}
    return (found.keys, found.entries, bins, found.units, found.single), raw.statement.sql


def fingerprint(card):
    with engine.EngineSession() as session:
        return session.fingerprint(card)


@pytest.mark.parametrize("unit", ["who", "name"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_integers(tmp_path, kind, unit):
    card = card_in(tmp_path, kind, unit=unit)
    before = fingerprint(unprepared(card))
    assert prepare_rows(card).made_now
    for sql in QUESTIONS:
        expected, _ = ask(unprepared(card), sql)
        found, statement_text = ask(card, sql)
        assert found == expected
        assert (prepared.ROWS in statement_text) == (sql in COUNTED)
    assert fingerprint(card) == before, "a recorded answer would be paid for twice"


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_the_same_integers_where_each_row_is_a_unit(tmp_path, kind):
    card = card_in(tmp_path, kind, unit=None)
    prepare_rows(card)
    for sql in QUESTIONS:
        if "{unit}" not in sql and "labs" not in sql:
            assert ask(card, sql)[0] == ask(unprepared(card), sql)[0]


def test_marginals_are_the_same(tmp_path):
    card = card_in(tmp_path)
    prepare_rows(card)
    query = parsed("SELECT cat, age, count(*) FROM t GROUP BY cat, age", card)
    marginals = ((), (0,), (1,), (0, 1))
    tables = []
    for asked in (card, unprepared(card)):
        with engine.EngineSession() as session:
            tables.append(
                opened_marginals(query, marginals, session.marginal_counts(query, asked, marginals))
            )
    assert tables[0] == tables[1]


def test_hostile_values_come_back_as_they_were(tmp_path):
    """Each column as the card reads it, bit by bit, after it was written and read."""
    rows = tmp_path / "t.csv"
    texts = ["", "a,b", 'a"b', "line\nbreak", "\u00e9", "e\u0301", "\U0001f600", "x" * 5000, " "]
    numbers = ["nan", "inf", "-inf", "-0.0", "0.1", "1e308", "5e-324", "1e400", "x", ""]
    days = ["2024-02-29", "0001-01-01", "9999-12-31", "infinity", "10000-01-01", "x", ""]
    lines = ["who,name,x,day,seen,cat,age,old,ward"]
    for i in range(90):
        text = texts[i % len(texts)].replace('"', '""')
        day, x = days[i % len(days)], numbers[i % len(numbers)]
        whole = ["9223372036854775807", "-9223372036854775808", "1.5", "1e3"][i % 4]
        lines.append(f'{i % 7},"{text}",{x},{day},{day} 01:02:03,{whole},{i},yes,w')
    rows.write_text("\n".join(lines) + "\n")
    card = card_in(tmp_path, source=Source(kind="csv", paths=(str(rows),)))
    prepare_rows(card)
    names = ", ".join(card.columns)
    parquet = next(Path(card.prepared).glob("rows-*"))
    found = duckdb.sql(f"SELECT {names} FROM '{parquet}' ORDER BY ALL").fetchall()
    typed = ", ".join(f"TRY_CAST({c.name} AS {DUCKDB.types[c.type]})" for c in COLUMNS)
    assert len(found) == 90 and typed
    for sql in (*COUNTED, "SELECT count(*) FROM t WHERE name = '' OR name IS NULL"):
        assert ask(card, sql)[0] == ask(unprepared(card), sql)[0]
    doubles = {repr(row[6]) for row in found}
    assert {"inf", "-inf", "-0.0", "0.1", "1e+308", "5e-324", "None"} <= doubles
    assert "nan" not in doubles


def test_a_source_that_changed_is_noticed_before_a_charge(tmp_path):
    card = card_in(tmp_path)
    prepare_rows(card)
    write_rows(card.source.paths[0], count=1_501)
    for call in (fingerprint, ask):
        with pytest.raises(InvalidParameter, match="another state of the source") as caught:
            call(card)
        assert "lastbit card prepare" in str(caught.value)
    assert not prepared_state(card).ready
    assert prepare_rows(card).made_now
    assert ask(card)[0] == ask(unprepared(card))[0]
    assert len(list(Path(card.prepared).iterdir())) == 2


def rows_of(card):
    return next(Path(card.prepared).glob("rows-*"))


def cut(card):
    rows_of(card).write_bytes(rows_of(card).read_bytes()[:-1])


def flip(card):
    """One bit, and the times as they were."""
    path, found = rows_of(card), os.stat(rows_of(card))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def swap(card):
    """The rows of another table in their place, under their name."""
    other = card_in(rows_of(card).parent.parent / "other", prepared=f"{card.prepared}2")
    write_rows(other.source.paths[0], count=1_400)
    prepare_rows(other)
    os.replace(rows_of(other), rows_of(card))


def link(card):
    path = rows_of(card)
    shutil.copy(path, path.parent.parent / "elsewhere")
    path.unlink()
    path.symlink_to(path.parent.parent / "elsewhere")


def link_folder(card):
    os.rename(card.prepared, f"{card.prepared}2")
    os.symlink(f"{card.prepared}2", card.prepared)


def show_rows(card):
    rows_of(card).chmod(0o640)


def show_folder(card):
    Path(card.prepared).chmod(0o755)


def lose_rows(card):
    rows_of(card).unlink()


def lose_note(card):
    (Path(card.prepared) / "made.json").unlink()


def garble_note(card):
    (Path(card.prepared) / "made.json").write_text("[" * 10_000)


def lead_elsewhere(card):
    path = Path(card.prepared) / "made.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "file": "../labs.parquet"}))


def leave_file(card):
    shutil.rmtree(card.prepared)
    Path(card.prepared).write_text("no folder")


DAMAGE = (
    *(cut, flip, swap, link, link_folder, show_rows, show_folder, lose_rows, lose_note),
    *(garble_note, lead_elsewhere, leave_file),
)


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_not_as_it_was_made_is_refused(tmp_path, damage):
    (tmp_path / "other").mkdir()
    card = card_in(tmp_path)
    prepare_rows(card)
    damage(card)
    for call in (fingerprint, ask):
        with pytest.raises(InvalidParameter, match="the prepared table") as caught:
            call(card)
        assert "unprepare" in str(caught.value) and str(tmp_path) not in str(caught.value)
    assert not prepared_state(card).ready


def test_the_very_bytes_elsewhere_are_accepted(tmp_path):
    """Restored from a backup: another inode and other times, and every byte as it was."""
    card = card_in(tmp_path)
    prepare_rows(card)
    shutil.copytree(card.prepared, tmp_path / "backup")
    shutil.rmtree(card.prepared)
    shutil.copytree(tmp_path / "backup", card.prepared, copy_function=shutil.copyfile)
    Path(card.prepared).chmod(0o700)
    for path in Path(card.prepared).iterdir():
        path.chmod(0o600)
    assert ask(card)[0] == ask(unprepared(card))[0]


@pytest.mark.parametrize("what", ["unit", "type", "version"])
def test_another_card_is_refused(tmp_path, monkeypatch, what):
    card = card_in(tmp_path)
    prepare_rows(card)
    if what == "unit":
        card = replace(card, unit="name", private={})
    elif what == "type":
        changed = {**card.columns, "ward": Column(name="ward", type="integer")}
        card = replace(card, columns=changed)
    else:
        monkeypatch.setattr(lb, "__version__", "0.0.0")
    with pytest.raises(InvalidParameter, match="another card, or another version"):
        ask(card)


def test_limits_of_the_card_may_change(tmp_path):
    """max_rows and keys are of the statement: a count of other keys is not taken for it."""
    card = card_in(tmp_path)
    prepare_rows(card)
    fewer = {**card.columns, "cat": Column(name="cat", type="integer", keys=(0, 1))}
    for changed in (replace(card, max_rows=3), replace(card, columns=fewer)):
        for sql in COUNTED:
            assert ask(changed, sql)[0] == ask(unprepared(changed), sql)[0]
    _, text = ask(replace(card, columns=fewer))
    assert prepared.ROWS not in text
    assert prepared.ROWS in ask(replace(card, max_rows=3))[1]


def test_other_keys_are_counted_when_it_is_prepared_again(tmp_path):
    card = card_in(tmp_path)
    prepare_rows(card)
    ward = Column(name="ward", type="text", keys=("w1", "w2"))
    more = replace(card, columns={**card.columns, "ward": ward})
    asked = "SELECT ward, count(*) FROM t GROUP BY ward"
    assert prepared.ROWS not in ask(more, asked)[1]
    assert prepare_rows(more).made_now and not prepare_rows(more).made_now
    found, text = ask(more, asked)
    assert found == ask(unprepared(more), asked)[0] and prepared.ROWS in text
    assert not prepare_rows(card).made_now  # fewer counts are among these
    assert len(os.listdir(card.prepared)) == 2


HOSTILE_NAMES = (
    *("u", "n", "k", "lo", "hi", "every", "b", "c", "t", "c0", "c1", "c2", "m0", "m1", "m"),
    *("e", "r", "h", "s", "x0", "w", "place", "g1", "v1", "block", "bin"),
)


@pytest.mark.parametrize("unit", ["u", "k", "c1", "m0", "r"])
def test_columns_may_have_the_names_that_statements_use(tmp_path, unit):
    listed = enumerate(HOSTILE_NAMES, start=3)
    columns = ", ".join(f'(i * {place}) % {place + 2} AS "{name}"' for place, name in listed)
    path = write_rows(tmp_path / "odd.parquet", rows=f"SELECT {columns}", count=400)
    keys, bounds = tuple(range(4)), (Fraction(0), Fraction(5))
    known = {
        name: Column(name=name, type="integer", keys=keys if place % 3 else None, bounds=bounds)
        for place, name in enumerate(HOSTILE_NAMES)
    }
    source = Source(kind="parquet", paths=(path,))
    card = replace(
        card_in(tmp_path), source=source, unit=unit, columns=known, private={}, public={}
    )
    prepare_rows(card)
    grouped = (
        f'SELECT "{one}", count(*), sum("c0") FROM t GROUP BY "{one}"'
        for one in known
        if one != unit
    )
    for sql in ('SELECT count(*), sum("c1"), sum("k"), sum("n") FROM t', *grouped):
        assert ask(card, sql)[0] == ask(unprepared(card), sql)[0]


@pytest.mark.parametrize("kind", ["integer", "text"])
def test_units_that_are_written_in_several_ways(tmp_path, kind):
    """One as the card reads them, or several, or none."""
    units = ["1", "01", " 1", "1.0", "1.4", "-0", "0", "nan", "inf", "", "x", "\u00e9", "e\u0301"]
    units += ["9223372036854775808", "A" * 5000, "1e0", "1_0"]
    lines = [f'"{units[i * i % 17]}",{"abc"[i % 3]},{i % 5 - 1}' for i in range(600)]
    rows = tmp_path / "odd.csv"
    rows.write_text("\n".join(["who,cat,x", *lines, "short", ""]), encoding="utf-8")
    columns = {
        "who": Column(name="who", type=kind),
        "cat": Column(name="cat", type="text", keys=("a", "b", None)),
        "x": Column(name="x", type="number", bounds=(Fraction(0), Fraction(3))),
    }
    source = Source(kind="csv", paths=(str(rows),))
    card = card_in(tmp_path, source=source, columns=columns, private={}, public={})
    prepare_rows(card)
    asked = (
        "SELECT count(*), count(DISTINCT who) FROM t",
        "SELECT cat, count(*), sum(x), median(x), count(DISTINCT who) FROM t GROUP BY cat",
        "SELECT cat, count(DISTINCT who) FROM t WHERE x > 1 AND who IS NOT NULL GROUP BY cat",
    )
    for limits in ({}, {"max_rows": 1}, {"max_groups": 1}, {"neighbours": CHANGE_ONE}):
        changed = replace(card, **limits)
        for sql in asked:
            assert ask(changed, sql)[0] == ask(unprepared(changed), sql)[0]


def test_wrong_numbers_are_not_kept(tmp_path, monkeypatch):
    """Mutants of what is written: each must be found by counting again."""
    card = card_in(tmp_path)
    right = preparing.numbered_rows
    counts = preparing.counting_statements(card, counted_scans(card))
    rows = prepared.ROWS + next(iter(counts))
    mutants = (
        f'SELECT * REPLACE ("{rows}" - 1 AS "{rows}") FROM ({{}})',
        f'SELECT * REPLACE (CASE WHEN who = 4 THEN 1 ELSE "{rows}" END AS "{rows}") FROM ({{}})',
        f'SELECT * REPLACE ("{prepared.UNIT}" // 2 AS "{prepared.UNIT}") FROM ({{}})',
        f'SELECT * REPLACE (CASE WHEN x > 3 THEN 1 ELSE "{prepared.UNIT}" END AS'
        f' "{prepared.UNIT}") FROM ({{}})',
        f'SELECT * REPLACE (coalesce("{rows}", 1) AS "{rows}") FROM ({{}})',
        "SELECT * REPLACE (x + 1 AS x) FROM ({})",
        "FROM ({}) WHERE who <> 4 OR who IS NULL",
        "FROM ({0}) UNION ALL FROM ({0}) WHERE who = 4",
    )
    for mutant in mutants:
        monkeypatch.setattr(
            preparing, "numbered_rows", lambda *given, mutant=mutant: mutant.format(right(*given))
        )
        with pytest.raises(EngineFailed, match="not those of the source"):
            prepare_rows(card)
        assert not os.path.lexists(card.prepared)
        ask(card)  # of the source, as before
    monkeypatch.setattr(preparing, "numbered_rows", right)
    assert prepare_rows(card).made_now


def test_a_source_that_changes_meanwhile_is_not_noted(tmp_path, monkeypatch):
    card, right = card_in(tmp_path), preparing._check_written

    def changing(*given):
        right(*given)
        write_rows(card.source.paths[0], count=1_501)

    monkeypatch.setattr(preparing, "_check_written", changing)
    with pytest.raises(EngineFailed, match="changed while it was read"):
        prepare_rows(card)
    assert not os.path.lexists(card.prepared)


def test_a_folder_among_the_sources_files_is_refused(tmp_path):
    card = card_in(tmp_path, "folder")
    inside = replace(card, prepared=f"{card.source.paths[0]}/part=1/ready")
    with pytest.raises(EngineFailed, match="keep prepared tables apart"):
        prepare_rows(inside)
    assert not os.path.lexists(inside.prepared)


KILLED = """
import os, signal, sys
sys.path.insert(0, {here!r})
from lastbit.tables.backends.duckdb import preparing
from tests.tables.backends import test_prepared as t
preparing._SETTLED = 0.0
right = getattr(preparing, {where!r})
def killed(*given, **named):
    found = right(*given, **named) if {after} else None
    os.kill(os.getpid(), signal.SIGKILL)
setattr(preparing, {where!r}, killed)
t.prepare_rows(t.card_in.__globals__["rebuilt"]({folder!r}))
"""


def rebuilt(folder):
    """The card of `card_in`, whose files are there already."""
    names = globals()
    written, names["write_rows"] = names["write_rows"], lambda path, **_: str(path)
    try:
        return card_in(Path(folder))
    finally:
        names["write_rows"] = written


@pytest.mark.parametrize(
    ("where", "after"),
    [
        ("numbered_rows", True),
        ("_check_written", True),
        ("_write_note", False),
        ("_write_note", True),
    ],
)
def test_a_killed_process_leaves_nothing_that_counts(tmp_path, where, after):
    card = card_in(tmp_path)
    here = str(Path(__file__).parents[3])
    script = KILLED.format(here=here, where=where, after=after, folder=str(tmp_path))
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=here, capture_output=True, timeout=120, check=False
    )
    assert run.returncode == -signal.SIGKILL, run.stderr[-2000:]
    whole = where == "_write_note" and after
    assert prepared_state(card).ready == whole
    if not whole:
        with pytest.raises(InvalidParameter, match="the prepared table"):
            ask(card)
    assert prepare_rows(card).made_now != whole
    assert sorted(name[:5] for name in os.listdir(card.prepared)) == ["made.", "rows-"]
    assert ask(card)[0] == ask(unprepared(card))[0]


def test_one_process_makes_at_a_time(tmp_path):
    card = card_in(tmp_path)
    os.mkdir(card.prepared, 0o700)
    with preparing._locked(card.prepared):
        for call in (prepare_rows, unprepare_rows):
            with pytest.raises(InvalidParameter, match="by another process"):
                call(card)
    assert prepare_rows(card).made_now


def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    card = card_in(tmp_path)

    def refused(*given, **named):
        raise PermissionError(13, "no")

    monkeypatch.setattr(preparing.os, "mkdir", refused)
    with pytest.raises(InvalidParameter, match="can be written") as caught:
        prepare_rows(card)
    assert str(tmp_path) not in str(caught.value)


def test_only_what_was_made_is_removed(tmp_path):
    card = card_in(tmp_path)
    assert not unprepare_rows(card)
    prepare_rows(card)
    own = Path(card.prepared) / "notes.txt"
    own.write_text("mine")
    with pytest.raises(InvalidParameter, match="other files in its folder"):
        unprepare_rows(card)
    assert os.listdir(card.prepared) == ["notes.txt"]
    own.unlink()
    unprepare_rows(card)
    assert not os.path.lexists(card.prepared)
    assert ask(card)[0] == ask(unprepared(card))[0]


def test_what_is_not_there_is_not_used(tmp_path):
    card = card_in(tmp_path)
    assert ask(card)[0] == ask(unprepared(card))[0]
    state = prepared_state(card)
    assert not state.ready and "not made yet" in state.problem
    assert prepared_state(unprepared(card)) is None


def test_an_unchanged_file_is_not_read_for_its_digest(tmp_path, monkeypatch):
    card = card_in(tmp_path)
    prepare_rows(card)
    monkeypatch.setattr(prepared, "verify", lambda *given: pytest.fail("read whole"))
    ask(card)
    assert prepared_state(card).ready


def test_what_holds_rows_is_for_its_owner_alone(tmp_path):
    card = card_in(tmp_path)
    prepare_rows(card)
    assert os.stat(card.prepared).st_mode & 0o777 == 0o700
    for path in Path(card.prepared).iterdir():
        assert path.stat().st_mode & 0o777 == 0o600


def test_rows_lie_by_unit_and_no_answer_rests_on_it(tmp_path):
    """The order is for speed: the same integers from the same rows in any other."""
    card = card_in(tmp_path)
    prepare_rows(card)
    numbers = [
        n for (n,) in duckdb.sql(f"SELECT \"{prepared.UNIT}\" FROM '{rows_of(card)}'").fetchall()
    ]
    known = [number for number in numbers if number is not None]
    assert known == sorted(known) and set(known) == set(range(len(set(known))))
    expected = [ask(card, sql)[0] for sql in QUESTIONS]
    content = rows_of(card).with_name("shuffled")
    duckdb.sql(f"COPY (FROM '{rows_of(card)}' ORDER BY random()) TO '{content}' (FORMAT parquet)")
    content.rename(rows_of(card))
    rows_of(card).chmod(0o600)
    note = Path(card.prepared) / "made.json"
    said = json.loads(note.read_text())
    said["content"] = hashlib.sha256(rows_of(card).read_bytes()).hexdigest()
    note.write_text(json.dumps(said))
    assert [ask(card, sql)[0] for sql in QUESTIONS] == expected


CARD = """
[table]
name = "t"
source = {source}
neighbours = "add-remove"
[unit]
column = "who"
max_rows = 12
[budget]
epsilon = 5
[prepared]
{prepared}
[columns.who]
type = "integer"
[columns.cat]
type = "integer"
keys = [0, 1, 2]
"""


def test_a_recorded_answer_stays_free(tmp_path):
    write_rows(tmp_path / "t.csv")
    text = CARD.format(source='"t.csv"', prepared='path = "ready"')
    card = card_from(text, folder=tmp_path)
    question = "SELECT cat, count(*) AS n FROM t GROUP BY cat"
    first = Table(rows=question_rows(card)).sql(question).release(epsilon=1)
    prepare_rows(card)
    again = Table(rows=question_rows(card)).sql(question).release(epsilon=1)
    assert first.charged and not again.charged and again.record["rows"] == first.record["rows"]
    other = Table(rows=question_rows(card)).sql("SELECT count(*) AS n FROM t").release(epsilon=1)
    assert other.charged
    write_rows(tmp_path / "t.csv", count=1_400)
    with pytest.raises(LastbitError, match="another state"):
        Table(rows=question_rows(card)).sql("SELECT count(*) AS m FROM t").release(epsilon=1)
    unprepare_rows(card)
    unlike = Table(rows=question_rows(card)).sql("SELECT count(*) AS n FROM t").release(epsilon=1)
    assert unlike.charged


@pytest.mark.parametrize(
    ("source", "said", "words"),
    [
        ('"t.csv"', "", "prepared.path is missing"),
        ('"t.csv"', 'path = "x://y"', "is not a folder here"),
        ('"t.csv"', 'path = "x"\nspeed = 1', "prepared.speed is not known"),
        ('"spark:lake.t"', 'path = "x"', "is for files"),
    ],
)
def test_a_card_says_where(tmp_path, source, said, words):
    with pytest.raises(CardRefused, match=words):
        card_from(CARD.format(source=source, prepared=said), folder=tmp_path)


def test_columns_that_prepared_tables_need_are_refused(tmp_path):
    card = card_in(tmp_path)
    odd = {**card.columns, "Lastbit_unit": Column(name="Lastbit_unit", type="integer")}
    with pytest.raises(InvalidParameter, match="rename it in the source"):
        prepare_rows(replace(card, columns=odd))
    with pytest.raises(InvalidParameter, match="is not on the card"):
        prepare_rows(unprepared(card))


def test_the_statement_without_numbers_is_as_before(tmp_path):
    """Where nothing is prepared, not a letter of a statement changes."""
    card = card_in(tmp_path)
    query = parsed(COUNTED[1], card)
    measures = measures_of(query)[0]
    text = statement(query, card, measures, secret="s", dialect=DUCKDB).sql
    assert prepared.UNIT not in text and "LEFT JOIN h" in text
