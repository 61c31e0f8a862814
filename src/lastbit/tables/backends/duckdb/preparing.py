"""Makes prepared rows, once for a state of the source, and removes them; `prepared.py` reads them.

Law      rows are written to a file of a name of its own, created for its owner alone; counted again
         there, and compared with the source's; and only then noted, by a rename. So at every moment
         the note is the old one or the new one, and each names a file that is whole
Theorem  whoever is killed leaves files that no note names: the next one to prepare removes them.
         One makes at a time, by a lock on the folder, which ends with its process
Theorem  what is noted holds of the bytes that were digested: a number belongs to one unit, a unit
         has one number, every count is that of its counting statement over these very rows, and
         rows are as many as the source's, with the same sum of hashes
Refused  a source that changes meanwhile, and a folder among the source's own files
Differs  a source that was written less than two seconds ago is waited for: a later change would
         have another time
Checked  tests/tables/backends/test_prepared.py
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from lastbit.errors import EngineFailed, InvalidParameter
from lastbit.tables.backends.duckdb import engine
from lastbit.tables.backends.duckdb.files import CHANGED
from lastbit.tables.backends.duckdb.prepared import (
    MADE,
    ROWS,
    UNIT,
    Note,
    check_private,
    digest,
    is_rows_file,
    origin,
    prepared_rows,
    read_note,
    stamp_of,
    verify,
)
from lastbit.tables.backends.duckdb.sources import COPY, file_list, shown
from lastbit.tables.backends.duckdb.unit_index import counting_statement
from lastbit.tables.card.schema import DataCard
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.rows import relation
from lastbit.tables.compile.steps import identifier, string
from lastbit.tables.query.expression import ColumnType
from lastbit.tables.query.scan import Scan

Tell: TypeAlias = Callable[[float, str], None]

_PART = "part-"
_SETTLED = 2.0  # seconds: the coarsest clock of a file system
_TABLE = identifier(relation())
_UNITS = identifier("lastbit_numbered")
_NOT_WRITABLE = "is not a folder that can be written to"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedState:
    """What a steward is told: whether rows are ready, how many bytes, or what is wrong."""

    ready: bool
    size: int = 0
    problem: str = ""
    made_now: bool = False


def prepared_state(card: DataCard) -> PreparedState | None:
    """Whether prepared rows can be used; None if the card names no folder for them."""
    if card.prepared is None:
        return None
    if not engine.is_prepared(card):
        return PreparedState(ready=False, problem="is not made yet: the source itself is read")
    try:
        with ExitStack() as held:
            there, _ = prepared_rows(card, held)
            return PreparedState(ready=True, size=os.stat(there.names[0]).st_size)
    except InvalidParameter as error:
        return PreparedState(ready=False, problem=error.problem)


def make_rows(card: DataCard, scans: Iterable[Scan], tell: Tell) -> PreparedState:
    """Make the rows ready, and count for these scans; nothing is done if it was, byte for byte."""
    folder = _folder_of(card)
    counts = counting_statements(card, scans)
    try:
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        with _locked(folder), _kept_unless_empty(folder):
            _remove_parts(folder)
            whole = _is_whole(card, counts)
            if not whole:
                _make(card, folder, counts, tell)
            _remove_old(folder, read_note(folder).file)
    except OSError:
        problem, remedy = _NOT_WRITABLE, "make it, or name another under [prepared] on the card"
        raise InvalidParameter("prepared: path", problem=problem, remedy=remedy) from None
    state = prepared_state(card)
    assert state is not None
    return replace(state, made_now=not whole)


def unprepare_rows(card: DataCard) -> bool:
    """Remove prepared rows; whether there were any. Other files in the folder stay, and it too."""
    folder = _folder_of(card)
    if not os.path.lexists(folder):
        return False
    try:
        with _locked(folder):
            with suppress(FileNotFoundError):  # the note first: without it nothing is read
                os.unlink(os.path.join(folder, MADE))
            _remove_parts(folder)
            _remove_old(folder, None)
            others = os.listdir(folder)
            if not others:
                os.rmdir(folder)
    except OSError:
        problem, remedy = "could not be removed", "remove its folder yourself"
        raise InvalidParameter("the prepared table", problem=problem, remedy=remedy) from None
    if others:
        problem, remedy = "has other files in its folder", "remove these, or move them"
        raise InvalidParameter("the prepared table", problem=problem, remedy=remedy)
    return True


def _folder_of(card: DataCard) -> str:
    if card.prepared is None:
        problem = "is not on the card"
        remedy = 'add [prepared], and path = "visits.prepared", say'
        raise InvalidParameter("prepared", problem=problem, remedy=remedy)
    for column in card.columns.values():
        if column.is_list:
            problem, remedy = (
                "is of lists, which are not prepared",
                "take it off the card, or [prepared]",
            )
            raise InvalidParameter(f"column {column.name[:60]}", problem=problem, remedy=remedy)
        if column.name.lower().startswith("lastbit_"):
            problem, remedy = "has a name that prepared tables need", "rename it in the source"
            raise InvalidParameter(f"column {column.name[:60]}", problem=problem, remedy=remedy)
    return card.prepared


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """One process at a time; the lock goes with the process, and the folder is not another's."""
    check_private(folder)
    with ExitStack() as held:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        held.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            problem, remedy = "is being made by another process", "wait until that one has ended"
            raise InvalidParameter("the prepared table", problem=problem, remedy=remedy) from None
        yield


@contextmanager
def _kept_unless_empty(folder: str) -> Iterator[None]:
    """What could not be made leaves no folder: where one is, its rows are read or refused."""
    try:
        yield
    finally:
        with suppress(OSError):  # it is not empty
            os.rmdir(folder)


def _is_whole(card: DataCard, counts: Mapping[str, str]) -> bool:
    """Whether what is there is of this state, by all of its bytes, with all of these counts."""
    with suppress(InvalidParameter, OSError), ExitStack() as held:
        there, _ = prepared_rows(card, held)
        note = read_note(card.prepared or "")
        return counts.keys() <= set(note.counts) and verify(there, note)
    return False


def _remove_parts(folder: str) -> None:
    for name in os.listdir(folder):
        if name.startswith(_PART):
            os.unlink(os.path.join(folder, name))


def _remove_old(folder: str, current: str | None) -> None:
    for name in os.listdir(folder):
        if is_rows_file(name) and name != current:
            os.unlink(os.path.join(folder, name))


def _make(card: DataCard, folder: str, counts: Mapping[str, str], tell: Tell) -> None:
    state = _settled_origin(card)
    part = os.path.join(folder, f"{_PART}{os.getpid()}")
    with ExitStack() as held:
        descriptor = _created(part)
        held.callback(os.close, descriptor)
        held.callback(_unlink, part)
        with engine.EngineSession() as session:
            session.guarded(lambda c: _write_rows(c, card, counts, part, tell), card.engine_limits)
        os.fsync(descriptor)
        tell(0.95, "noting")
        with open(descriptor, "rb", closefd=False) as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        name = f"rows-{content[:32]}.parquet"
        os.rename(part, os.path.join(folder, name))
        note = Note(
            file=name,
            made_of=state,
            content=content,
            stamp=stamp_of(os.fstat(descriptor)),  # after the rename, which gives it another time
            counts=tuple(counts),
        )
        if origin(card) != state:  # it changed; or what was written here is among its files
            _unlink(os.path.join(folder, name))
            raise EngineFailed(f"{CHANGED}; keep prepared tables apart from the source's files")
        _write_note(folder, note)


def _write_note(folder: str, note: Note) -> None:
    part = os.path.join(folder, f"{_PART}note-{os.getpid()}")
    with open(_created(part), "w", encoding="utf-8") as file:
        json.dump(note.to_json(), file)
        file.flush()
        os.fsync(file.fileno())
    os.rename(part, os.path.join(folder, MADE))
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _created(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _settled_origin(card: DataCard) -> str:
    """The state of the source, once its files are so old that a change would show."""
    with ExitStack() as held:
        ((_, there, _), *_) = engine.opened_all(card, (), held)
        latest = max(max(stamp[-2:]) for stamp in there.stamps) / 1e9
    time.sleep(min(max(latest + _SETTLED - time.time(), 0), _SETTLED))
    return origin(card)


def counting_statements(card: DataCard, scans: Iterable[Scan]) -> dict[str, str]:
    """What counts the rows of each unit for these scans, by digest."""
    found = [counting_statement(scan, card) for scan in scans]
    return {digest(one): one for one in found if one is not None}


def _write_rows(
    connection: Any, card: DataCard, counts: Mapping[str, str], path: str, tell: Tell
) -> None:
    tell(0.0, "reading")
    typed = _show_typed(connection, card)
    tell(0.3, "counting")
    rows = f"SELECT * FROM {_TABLE}"
    if card.unit is not None:
        rows = numbered_rows(connection, card, counts)
    tell(0.5, "sorting")
    connection.execute("SET GLOBAL preserve_insertion_order = true")  # rows lie as they are sorted
    options = "FORMAT parquet, USE_TMP_FILE false"
    connection.execute(f"COPY ({rows}) TO {string(path)} ({options})")
    tell(0.8, "checking")
    _check_written(connection, card, counts, typed, path)


def _show_typed(connection: Any, card: DataCard) -> str:
    """Write the rows as the card reads them into a private copy, shown as the table; its path."""
    raw = identifier("lastbit_raw")
    with ExitStack() as held:
        ((_, there, columns), *_) = engine.opened_all(card, (), held)
        shown(connection, there, "lastbit_raw", columns)
        if there.source.kind != "csv":
            engine.check_whole(connection, "lastbit_raw", there, columns, card.engine_limits)
        plain = {name: card.column(name).type for name in columns}  # lists were refused
        body = typed_rows(plain, raw)
        (spilled,) = connection.execute("SELECT current_setting('temp_directory')").fetchone()
        copy = os.path.join(spilled, f"{COPY}typed")
        os.close(_created(copy))
        connection.execute(f"COPY ({body}) TO {string(copy)} (FORMAT parquet, USE_TMP_FILE false)")
        there.check_unchanged()
    _show_parquet(connection, copy)
    return copy


def typed_rows(columns: Mapping[str, ColumnType], raw: str) -> str:
    """The rows of this relation as the card reads them: cast, then checked, as in a statement."""
    listed = list(enumerate(columns.items()))
    reads = (f"{DUCKDB.read(identifier(n), k, 'other')} AS c{i}" for i, (n, k) in listed)
    checks = (f"{DUCKDB.checked(f'c{i}', k)} AS {identifier(n)}" for i, (n, k) in listed)
    return f"SELECT {', '.join(checks)} FROM (SELECT {', '.join(reads)} FROM {raw})"


def _show_parquet(connection: Any, path: str) -> None:
    connection.execute(f"CREATE OR REPLACE TEMP VIEW {_TABLE} AS FROM {_parquet(path)}")


def _parquet(path: str) -> str:
    return f"read_parquet({file_list([path])}, hive_partitioning = false)"


def numbered_rows(connection: Any, card: DataCard, counts: Mapping[str, str]) -> str:
    """The rows that are shown as the table, with the numbers of their units, sorted by these."""
    unit = identifier(card.column(card.unit or "").name)
    units = f"SELECT DISTINCT {unit} AS u FROM {_TABLE} WHERE {unit} IS NOT NULL"
    numbered = f"SELECT u, row_number() OVER (ORDER BY u) - 1 AS {identifier(UNIT)} FROM ({units})"
    joins = "".join(
        f" LEFT JOIN ({sql}) AS m{i} USING (u)" for i, sql in enumerate(counts.values())
    )
    wanted = "".join(f", m{i}.n AS {identifier(ROWS + name)}" for i, name in enumerate(counts))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {_UNITS} AS"
        f" SELECT m.u, m.{identifier(UNIT)}{wanted} FROM ({numbered}) AS m{joins}"
    )
    beside = ", ".join(f"n.{identifier(name)}" for name in (UNIT, *map(ROWS.__add__, counts)))
    joined = f"{_TABLE} AS t LEFT JOIN {_UNITS} AS n ON t.{unit} = n.u"
    return f"SELECT t.*, {beside} FROM {joined} ORDER BY n.{identifier(UNIT)}"


def _check_written(
    connection: Any, card: DataCard, counts: Mapping[str, str], typed: str, path: str
) -> None:
    """Refuse what was written if a row, a number or a count is not as it must be."""
    columns = ", ".join(identifier(name) for name in card.columns_at(0))
    sums = f"SELECT count(*), sum(CAST(hash({columns}) AS HUGEINT)) FROM"
    wrong = [f"SELECT count(*) FROM (({sums} {_parquet(typed)}) EXCEPT ({sums} {_parquet(path)}))"]
    _show_parquet(connection, path)
    if card.unit is not None:
        wrong += _wrong_numbers(identifier(card.column(card.unit).name), counts)
    if any(connection.execute(sql).fetchall()[0][0] for sql in wrong):
        raise EngineFailed("prepared rows are not those of the source; nothing was kept")


def _wrong_numbers(unit: str, counts: Mapping[str, str]) -> Iterator[str]:
    """Statements that count units and rows that break what `prepared.py` says of numbers."""
    number = identifier(UNIT)
    for one, other in ((unit, number), (number, unit)):
        several = f"HAVING min({other}) <> max({other}) OR count({other}) < count(*)"
        owned = f"FROM {_TABLE} WHERE {one} IS NOT NULL GROUP BY {one} {several}"
        yield f"SELECT count(*) FROM (SELECT {one} {owned})"
    for name, sql in counts.items():
        rows = identifier(ROWS + name)
        beside = f"SELECT {unit} AS u, min({rows}) AS lo, max({rows}) AS hi, count({rows}) AS k"
        all_of = f"({beside}, count(*) AS every FROM {_TABLE} GROUP BY {unit})"
        differs = "b.lo IS DISTINCT FROM c.n OR b.hi IS DISTINCT FROM c.n OR b.k <> b.every"
        joined = f"({sql}) AS c LEFT JOIN {all_of} AS b ON b.u = c.u"
        yield f"SELECT count(*) FROM {joined} WHERE {differs}"
        yield f"SELECT count(*) FROM {_TABLE} WHERE {unit} IS NULL AND {rows} IS NOT NULL"
