"""DuckDB runs the statement: in this process, on all cores, bigger than memory.

Every call is a session of a database in memory, which the calls of one question may share
(`one_database`) and which knows nothing of the session before. Nothing is installed, loaded or
fetched; what does not fit into memory is spilled to a folder that only this user can read, and that
is removed. A file that changes while it is read is noticed, and nothing is released.

`rehearse` runs the statement on a table without rows: what must fail, fails before it is paid for.

Theorem  whether `rehearse` raises does not depend on a row of the table: it reads the names and
         types of its columns, and runs the statement on an empty table of those types
Checked  tests/release/test_reserving.py
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache, partial
from math import prod
from types import MappingProxyType
from typing import Any, TypeVar, cast

import duckdb

from lastbit.errors import EngineFailed, InvalidParameter, LastbitError
from lastbit.tables.backends.aggregated import Aggregates, assembled, assembled_marginals
from lastbit.tables.backends.duckdb.files import (
    Opened,
    check_apart,
    check_unit_in_files,
    opened,
    stamp,
)
from lastbit.tables.backends.duckdb.sources import COPY, check_csv, csv_columns, reading_all, shown
from lastbit.tables.backends.duckdb.unit_index import unit_index
from lastbit.tables.card.schema import DataCard, EngineLimits, Source
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.marginals import marginals_statement
from lastbit.tables.compile.rows import private_relation, relation
from lastbit.tables.compile.statement import statement, units_statement
from lastbit.tables.compile.steps import REARRANGING, identifier
from lastbit.tables.compile.units import check_matches, matches
from lastbit.tables.limits import sealed
from lastbit.tables.plan.marginals import Marginal
from lastbit.tables.plan.sensitivity import Measure
from lastbit.tables.query.expression import ColumnType, Value
from lastbit.tables.query.query import Query

try:
    import fcntl
except ImportError:  # a system without locks of folders
    fcntl = None  # type: ignore[assignment]

_NO_SECRET = "0" * 64
_NO_LIMITS = EngineLimits()


def rehearse(query: Query, card: DataCard, measures: tuple[Measure, ...]) -> None:
    """Refuse a source that is not there, columns that it lacks, and what the engine cannot run."""
    _rehearsed(query, card, statement(query, card, measures, secret=_NO_SECRET, dialect=DUCKDB).sql)


def rehearse_marginals(query: Query, card: DataCard, marginals: Sequence[Marginal]) -> None:
    """The same for all marginals of a question."""
    _rehearsed(query, card, marginals_statement(query, card, marginals, dialect=DUCKDB))


def _rehearsed(query: Query, card: DataCard, sql: str) -> None:
    def run() -> None:
        with connected(card.engine_limits) as connection:
            prepared(connection, query, card)
            connection.execute(sql).fetchall()

    words = "the source could not be read, or the database cannot run this statement"
    sealed(run, words=f"{words}; check the source; nothing was charged")


def version(card: DataCard) -> str:
    """Of DuckDB, as it says itself."""
    del card
    return duckdb.__version__


Result = TypeVar("Result")

_A_MOMENT = 0.1
_SCRATCH, _LOST = "lastbit-scratch-", 60.0
"""How names of folders for copies and for what is spilled begin; seconds for one to be locked."""
_CHECKED = "lastbit checked"
_MOST_MEMORY = 6 * 10**9
_SHARE_OF_MEMORY = 0.6
_SETTINGS = (
    "TimeZone = 'UTC'",
    "ieee_floating_point_ops = true",
    "pandas_analyze_sample = 0",  # else types would depend on a sample of values
    "python_enable_replacements = false",
)
_INDEXED = ("parquet", "duckdb")  # to read CSV takes longer than to count, and frames may change
_STOPPED = ("ConversionException", "Error", "InternalException", "InvalidInputException")


def aggregates(
    query: Query, card: DataCard, measures: tuple[Measure, ...], *, secret: str | None
) -> Aggregates:
    """The measures of the query, raw. What fails, fails before anything is released."""
    counting = _counting(query, card)
    indexed = counting is not None
    wanted = statement(query, card, measures, secret=secret, dialect=DUCKDB, indexed=indexed)

    def assemble(rows: list[tuple[Any, ...]]) -> Aggregates:
        return assembled(query, measures, wanted, rows)

    return _read(query, card, wanted.sql, assemble, counting)


def marginal_counts(query: Query, card: DataCard, marginals: Sequence[Marginal]) -> Aggregates:
    """The marginals of the query, raw, by the names m1, m2 ..."""
    counting = _counting(query, card)
    indexed = counting is not None
    sql = marginals_statement(query, card, marginals, dialect=DUCKDB, indexed=indexed)

    def assemble(rows: list[tuple[Any, ...]]) -> Aggregates:
        return assembled_marginals(query, marginals, rows)

    return _read(query, card, sql, assemble, counting)


def _counting(query: Query, card: DataCard) -> str | None:
    """The statement that counts rows of units, if what it gives is kept for the next question."""
    indexed = _KEPT.units is not None and card.source.kind in _INDEXED
    return units_statement(query, card, DUCKDB) if indexed else None


def _read(
    query: Query,
    card: DataCard,
    sql: str,
    assemble: Callable[[list[tuple[Any, ...]]], Aggregates],
    counting: str | None,
) -> Aggregates:
    def run(connection: Any) -> Aggregates:
        begun = time.time_ns()
        with ExitStack() as held:
            asked = _asked(query, card, held)
            for name, there, columns in asked:
                shown(connection, there, name, columns)
                _check_whole(connection, name, there, columns, card.engine_limits)
            _check_matches(connection, query, card)
            index = None
            if counting is not None and _KEPT.units is not None:
                _, there, columns = asked[0]
                index = unit_index(_KEPT.units, counting, there, columns, begun=begun)
            counted = index is not None and index.show(connection, partial(_ran, connection))
            found = assemble(_ran(connection, sql))
            if any(_stamp(there) != there.seen for _, there, _ in asked):
                raise EngineFailed("a file of the source changed while it was read; ask again")
            if index is not None and counted:
                index.keep(connection)
            return found

    return _guarded(run, card.engine_limits)


def prepared(connection: Any, query: Query, card: DataCard) -> None:
    """Private tables without rows, joined public ones with theirs; refuses missing columns.

    Of private tables only names and types are looked at.
    """
    protected = {relation(), *map(private_relation, card.private)}
    with ExitStack() as held:
        for name, there, columns in _asked(query, card, held):
            private = name in protected
            if private and there.source.kind == "csv":
                found = ", ".join(f"{identifier(c)} VARCHAR" for c in csv_columns(there, columns))
                connection.execute(f"CREATE TEMP TABLE {identifier(name)} ({found})")
                continue
            shown(connection, there, f"{name} whole", columns)
            whole = f"SELECT * FROM {identifier(f'{name} whole')}{' LIMIT 0' if private else ''}"
            connection.execute(f"CREATE TEMP TABLE {identifier(name)} AS {whole}")
    _check_matches(connection, query, card)


def _asked(
    query: Query, card: DataCard, held: ExitStack
) -> list[tuple[str, Opened, dict[str, ColumnType]]]:
    """The table, then the joined ones: their names in the statement, files and columns."""
    joined = _opened_all(card, dict.fromkeys(join.table for join in query.all_joins), held)
    return [
        (private_relation(name or "") if name in card.private else relation(name), there, columns)
        for name, there, columns in joined
    ]


def _opened_all(
    card: DataCard, names: Iterable[str], held: ExitStack
) -> list[tuple[str | None, Opened, dict[str, ColumnType]]]:
    """The table (None) and these others: files, held open, and columns.

    A public table that is the table itself, or a private one, is refused: joined or not, each
    private one is looked at for that.
    """
    own = {column.name: column.type for column in card.columns.values()}
    found: list[tuple[str | None, Opened, dict[str, ColumnType]]] = []
    found.append((None, held.enter_context(opened(card.source)), own))
    public: list[tuple[str, Opened]] = []
    private = {n: held.enter_context(opened(one.source)) for n, one in card.private.items()}
    for name in names:
        if name in private:
            columns = card.private[name].columns.values()
            found.append((name, private[name], {column.name: column.type for column in columns}))
        else:
            there = held.enter_context(opened(card.public[name].source))
            public.append((name, there))
            found.append((name, there, dict(card.public[name].columns)))
    check_unit_in_files(found[0][1], card.unit)
    for name, there in private.items():
        check_unit_in_files(there, card.private[name].unit)
    for protected in (found[0][1], *private.values()):
        check_apart(protected, public)
    return found


def _check_matches(connection: Any, query: Query, card: DataCard) -> None:
    """That joins make few rows of one: by public tables and the card, so it tells nothing else."""
    counts = matches(query, card, dialect=DUCKDB)
    most = prod(connection.execute(sql).fetchall()[0][0] for sql in counts)
    check_matches(query, card, most)


def columns_of(source: Source) -> dict[str, ColumnType]:
    """The names and types of the source's columns; no value is looked at, so CSV is all text."""

    def run(connection: Any) -> dict[str, ColumnType]:
        with opened(source) as there:
            if source.kind == "csv":
                return csv_columns(there)
            return shown(connection, there, relation())

    return _guarded(run)


def public_values(
    card: DataCard, table: str, column: tuple[str, ColumnType], *, most: int
) -> tuple[Value, ...]:
    """The first different values of a public table's column, in order."""
    name, kind = column

    def run(connection: Any) -> tuple[Value, ...]:
        with ExitStack() as held:
            there = _opened_all(card, [table], held)[1][1]
            place = f"{_CHECKED} {table}"
            shown(connection, there, place, {name: kind})
            read = DUCKDB.read(identifier(name), kind, "other")
            cast = f"SELECT {read} AS c1 FROM {identifier(place)}"
            values = f"SELECT DISTINCT {DUCKDB.checked('c1', kind)} AS c1 FROM ({cast})"
            sql = f"SELECT c1 FROM ({values}) WHERE c1 IS NOT NULL ORDER BY c1 LIMIT {most}"
            return tuple(row[0] for row in connection.execute(sql).fetchall())

    return _guarded(run, card.engine_limits)


def fingerprint(card: DataCard) -> bytes:
    """Differs if the data does: of files their places, sizes and times, of frames the content.

    Refuses, before anything is charged, what no question could be answered from.
    """

    def run(connection: Any) -> bytes:
        found = {}
        with ExitStack() as held:
            for table, there, columns in _opened_all(card, [*card.public, *card.private], held):
                name, source = f"{_CHECKED} {table or ''}", there.source
                if source.kind == "csv":
                    csv_columns(there, columns)
                    _check_files(source, there.seen, tuple(columns.items()), card.engine_limits)
                else:
                    types = shown(connection, there, name, columns)
                    _check_whole(connection, name, there, columns, card.engine_limits)
                frame = source.kind == "frame"
                found[table or ""] = (
                    _content(connection, name, types) if frame else repr(stamp(source))
                )
        return hashlib.sha256(repr([found[name] for name in sorted(found)]).encode()).digest()

    return _guarded(run, card.engine_limits)


def _check_whole(
    connection: Any,
    name: str,
    there: Opened,
    columns: Mapping[str, ColumnType],
    limits: EngineLimits,
) -> None:
    if there.source.kind == "frame":
        _check_readable(connection, there, name, columns)
    elif there.source.kind != "csv":  # which is checked where it is copied
        _check_files(there.source, there.seen, tuple(columns.items()), limits)


@lru_cache(maxsize=64)
def _check_files(
    source: Source,
    seen: object,
    columns: tuple[tuple[str, ColumnType], ...],
    limits: EngineLimits,
) -> None:
    """Refuse files that cannot be read whole; each state of them is looked at once."""
    with opened(source) as there, connected(limits) as connection:
        if source.kind == "csv":
            check_csv(there)
        else:
            shown(connection, there, _CHECKED, dict(columns))
            _check_readable(connection, there, _CHECKED, dict(columns))
        if there.seen != seen:
            raise EngineFailed("a file of the source changed while it was read; ask again")


def _check_readable(
    connection: Any, there: Opened, name: str, columns: Mapping[str, ColumnType]
) -> None:
    """Refuse a source, shown under this name, with a value in these columns that stops DuckDB."""
    sql = reading_all(connection, there, name, columns)
    if sql is None:
        return
    try:
        _ran(connection, sql)
    except Exception as error:  # its words may hold values
        if type(error).__name__ not in _STOPPED:
            raise
    else:
        return
    problem = "has text that is not UTF-8, or a time that is out of range"
    remedy = "write it again with such values replaced"
    raise InvalidParameter("source", problem=problem, remedy=remedy)


def _stamp(there: Opened) -> object:
    return there.now


def _content(connection: Any, name: str, columns: Mapping[str, ColumnType]) -> str:
    """Of the rows, in whatever order: their number, and sums of two hashes of each."""
    names = ", ".join(map(identifier, columns)) or "NULL"
    sums = ", ".join(
        f"sum(CAST(hash({salt}, {names}) AS HUGEINT)), bit_xor(hash({salt}, {names}))"
        for salt in (1, 2)
    )
    (found,) = connection.execute(f"SELECT count(*), {sums} FROM {identifier(name)}").fetchall()
    return repr((sorted(columns.items()), found))


class _Kept(threading.local):
    """What `one_database` keeps for the calls of its thread: databases, and where they spill."""

    until: ExitStack | None = None
    databases: Mapping[EngineLimits, tuple[Any, str]] = MappingProxyType({})
    sessions = 0
    units: str | None = None
    """The folder of the index of rows per unit, where there is one."""


_KEPT = _Kept()


@contextmanager
def one_database() -> Iterator[None]:
    """Inside, the calls of this thread share one database for each card's limits, once needed."""
    if _KEPT.until is not None:  # the outermost decides when it ends
        yield
        return
    with ExitStack() as until:
        _KEPT.until = until
        try:
            yield
        finally:
            _KEPT.until, _KEPT.databases = None, MappingProxyType({})


@contextmanager
def keeping_units(folder: str) -> Iterator[None]:
    """Inside, the calls of this thread keep in this folder which units have many rows."""
    before, _KEPT.units = _KEPT.units, folder
    try:
        yield
    finally:
        _KEPT.units = before


@contextmanager
def connected(limits: EngineLimits = _NO_LIMITS) -> Iterator[Any]:
    """A session with views, tables, copies and attached files of its own, gone at its end.

    A copy holds every row of a source: it must not lie about until the question is answered.
    """
    with ExitStack() as held:
        if limits in _KEPT.databases:
            database, folder = _KEPT.databases[limits]
        else:
            database, folder = (_KEPT.until or held).enter_context(_database(limits))
            if _KEPT.until is not None:
                _KEPT.databases = {**_KEPT.databases, limits: (database, folder)}
        # only a session around this one can have attached a file
        attached = _attached_to(database) if _KEPT.sessions else set()
        copies = _copies_in(folder)
        session = database.cursor()
        _KEPT.sessions += 1
        try:
            yield session
        finally:
            _KEPT.sessions -= 1
            session.close()
            try:
                for copy in _copies_in(folder) - copies:
                    with suppress(FileNotFoundError):
                        os.unlink(copy)
                for name in _attached_to(database) - attached:  # it may be another file next time
                    database.execute(f"DETACH {identifier(name)}")
            except duckdb.Error:  # the engine has died: the reason is on its way already
                _KEPT.databases = MappingProxyType({})


def _attached_to(database: Any) -> set[str]:
    sql = "SELECT database_name FROM duckdb_databases() WHERE path IS NOT NULL"
    return {name for (name,) in database.execute(sql).fetchall()}


def _copies_in(folder: str) -> set[str]:
    with suppress(FileNotFoundError):  # a system may clear temporary folders away
        return {entry.path for entry in os.scandir(folder) if entry.name.startswith(COPY)}
    return set()


@contextmanager
def _database(limits: EngineLimits) -> Iterator[tuple[Any, str]]:
    """A database in memory, with nothing from elsewhere, and the private folder it spills to.

    Optimizers are off that would make one row's meaning, or the work on it, depend on others:
    Parquet's least and greatest values leave NaN out, and from them DuckDB concludes that isnan()
    is false. `compile/steps.py` says what the others would do.
    """
    share = _SHARE_OF_MEMORY * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with _scratch(limits.spill_folder) as folder:
        settings: dict[str, Any] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "enable_external_file_cache": False,  # what is read is the file, whatever was before
            "memory_limit": limits.max_memory or f"{int(min(_MOST_MEMORY, share))}B",
            "preserve_insertion_order": False,
            "temp_directory": folder,
        }
        if limits.threads is not None:
            settings["threads"] = limits.threads
        if limits.max_spill is not None:
            settings["max_temp_directory_size"] = limits.max_spill
        database = duckdb.connect(":memory:", config=settings)
        try:
            known = {name for (name,) in database.execute("FROM duckdb_optimizers()").fetchall()}
            off = [name for name in (*REARRANGING, "statistics_propagation") if name in known]
            for setting in (f"disabled_optimizers = '{','.join(off)}'", *_SETTINGS):
                database.execute(f"SET GLOBAL {setting}")
            yield database, folder
        finally:
            database.close()


@contextmanager
def _scratch(folder: str | None) -> Iterator[str]:
    """A folder in this one that only this user can read, gone at the end.

    That of a process that was killed holds rows: the next one that works here removes it.
    """
    _remove_lost(folder or tempfile.gettempdir())
    try:
        made = tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=folder, ignore_cleanup_errors=True)
    except OSError:
        problem = "is not a folder that can be written to"
        remedy = "make it, or name another under [engine] on the card"
        raise InvalidParameter("engine: spill_folder", problem=problem, remedy=remedy) from None
    with made as path, ExitStack() as held:
        if fcntl is not None:
            descriptor = os.open(path, os.O_RDONLY)
            held.callback(os.close, descriptor)
            with suppress(OSError):  # where there are no locks, nothing is removed either
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield path


def _remove_lost(folder: str) -> None:
    """Remove what killed processes have left here: of this user, and locked by nobody."""
    with suppress(OSError):
        for name in os.listdir(folder) if fcntl is not None else ():
            if name.startswith(_SCRATCH):
                with suppress(OSError), ExitStack() as held:
                    place = os.path.join(folder, name)
                    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                    held.callback(os.close, descriptor)
                    found = os.fstat(descriptor)
                    if found.st_uid == os.geteuid() and found.st_mtime < time.time() - _LOST:
                        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        shutil.rmtree(place, ignore_errors=True)


def _ran(connection: Any, sql: str) -> list[tuple[Any, ...]]:
    """The rows. DuckDB works in another thread, since it would not hear Ctrl-C in this one."""
    with ThreadPoolExecutor(max_workers=1) as worker:
        waiting = worker.submit(lambda: cast(list[Any], connection.execute(sql).fetchall()))
        try:
            while not waiting.done():
                wait([waiting], timeout=_A_MOMENT)  # some libraries let no signal end a wait
        except KeyboardInterrupt:
            connection.interrupt()
            raise
        return waiting.result()


def _guarded(run: Callable[[Any], Result], limits: EngineLimits = _NO_LIMITS) -> Result:
    """What `run` gives; of the engine's own errors no word, of any other no frame."""

    def caught() -> Result:
        try:
            with connected(limits) as connection:
                return run(connection)
        except (LastbitError, KeyboardInterrupt):
            raise
        except Exception as error:  # its text may hold values, so it must not be seen as a cause
            kind = type(error).__name__
        raise EngineFailed(_told(kind))

    return sealed(caught, words=_told(""))


def _told(kind: str) -> str:
    match kind:
        case "OutOfMemoryException" | "MemoryError":
            return (
                "the database ran out of memory or disk; free some, raise max_memory or max_spill "
                "under [engine] on the card, or ask for fewer groups"
            )
        case "IOException" | "PermissionError" | "FileNotFoundError":
            return "a file of the source could not be read; check that it is whole and readable"
        case _:
            return "the database could not run the statement; nothing was released"
