"""DuckDB runs the statement: in this process, on all cores, bigger than memory.

Every call is a connection to a database in memory, which the calls of a session share, and which
knows nothing of the connection before. Nothing is installed, loaded or
fetched; what does not fit into memory is spilled to a folder that only this user can read, and that
is removed. A file that changes while it is read is noticed, and nothing is released.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from glob import escape, glob
from math import prod
from typing import Any, TypeVar, cast

import duckdb

from lastbit.errors import EngineFailed, InvalidParameter, LastbitError
from lastbit.tables.backends.duckdb.files import (
    Opened,
    alike,
    check_apart,
    check_unit_in_files,
    opened,
    part,
    stamp,
)
from lastbit.tables.backends.duckdb.sources import (
    COPY,
    check_csv,
    reading_all,
    shown,
    shown_columns,
)
from lastbit.tables.backends.engines import (
    LookedThrough,
    RawRows,
    Session,
    Spelled,
    Tables,
    names_in_statement,
    tables_of,
)
from lastbit.tables.card.schema import DataCard, EngineLimits
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.rows import CompiledRows, relation
from lastbit.tables.compile.steps import REARRANGING, identifier
from lastbit.tables.compile.units import check_matches
from lastbit.tables.limits import sealed
from lastbit.tables.query.expression import StoredType
from lastbit.tables.query.scan import Scan

Result = TypeVar("Result")

_NO_LIMITS = EngineLimits()
_A_MOMENT = 0.1
SCRATCH = "lastbit-scratch-"
"""How names of folders for copies and for what is spilled begin."""
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


class EngineSession(Session):
    """One database for each card's limits, once it is needed."""

    def __init__(self, *, units: str | None = None) -> None:
        super().__init__(units=units)
        self._databases: dict[EngineLimits, tuple[Any, str]] = {}

    def run(self, query: Scan, card: DataCard, spelled: Spelled) -> RawRows:
        numbers = part("prepared").numbers(query, card) if is_prepared(card) else None
        kept = self.units is not None and card.engine_limits.index and numbers is None
        indexed = kept and card.source.kind in _INDEXED
        counting = part("units").units_statement(query, card) if indexed else None
        wanted = spelled(dialect=DUCKDB, indexed=counting is not None, numbers=numbers)

        def run(connection: Any) -> RawRows:
            begun = time.time_ns()
            with ExitStack() as held:
                asked = asked_tables(query, card, held)
                for name, there, columns in asked:
                    shown(connection, there, name, columns)
                    # CSV is checked where it is copied, what is prepared when it is made
                    if there.source.kind != "csv" and not is_prepared(card, name):
                        check_whole(connection, name, there, columns, card.engine_limits)
                check_joins(connection, query, card)
                index = None
                if counting is not None:
                    files = asked[0][1:]
                    index = part("units").unit_index(self.units, counting, *files, begun=begun)
                counted = index is not None and index.show(connection, partial(_ran, connection))
                found = RawRows(wanted, _ran(connection, wanted.sql))
                for _, there, _ in asked:
                    there.check_unchanged()
                if index is not None and counted:
                    index.keep(connection)
                return found

        return self.guarded(run, card.engine_limits)

    def fingerprint(self, card: DataCard) -> bytes:
        """Of files their places, sizes and times, of frames the content."""

        def run(connection: Any) -> bytes:
            found = {}
            with ExitStack() as held:
                for table, there, columns in opened_all(card, [*card.public, *card.private], held):
                    name = f"{_CHECKED} {table or ''}"
                    kinds = shown_columns(connection, there, name, columns)
                    if table is None and is_prepared(card):
                        part("prepared").prepared_rows(card, held)  # refused if of another state
                    else:
                        check_whole(connection, name, there, columns, card.engine_limits)
                    if there.source.kind == "frame":
                        found[table or ""] = part("frame").content(connection, name, kinds)
                    else:
                        found[table or ""] = repr(stamp(there.source))
            return hashlib.sha256(repr([found[name] for name in sorted(found)]).encode()).digest()

        return self.guarded(run, card.engine_limits)

    def guarded(self, run: Callable[[Any], Result], limits: EngineLimits = _NO_LIMITS) -> Result:
        """What `run` gives; of the engine's own errors no word, of any other no frame."""
        words_of: Callable[[str], str] = part("words").words_of

        def caught() -> Result:
            try:
                with self.connected(limits) as connection:
                    return run(connection)
            except (LastbitError, KeyboardInterrupt):
                raise
            except Exception as error:  # its text may hold values, so it must not be a cause
                kind = type(error).__name__
            raise EngineFailed(words_of(kind))

        return sealed(caught, words=words_of(""))

    @contextmanager
    def connected(self, limits: EngineLimits = _NO_LIMITS) -> Iterator[Any]:
        """A connection with views, tables, copies and attached files of its own, gone at its end.

        A copy holds every row of a source: it must not lie about until the question is answered.
        There is one connection at a time, under the lock: what it finds at its end is its own.
        """
        with self.lock:
            if limits not in self._databases:
                self._databases[limits] = self.held.enter_context(_database(limits))
                self.held.callback(self._databases.clear)
            database, folder = self._databases[limits]
            connection = database.cursor()
            try:
                yield connection
            finally:
                connection.close()
                try:
                    for copy in glob(os.path.join(escape(folder), f"{COPY}*")):
                        with suppress(FileNotFoundError):
                            os.unlink(copy)
                    for (name,) in database.execute(_ATTACHED).fetchall():
                        # it may be another file next time
                        database.execute(f"DETACH {identifier(name)}")
                except duckdb.Error:  # the engine has died: the reason is on its way already
                    self._databases.clear()


_ATTACHED = "SELECT database_name FROM duckdb_databases() WHERE path IS NOT NULL"


def asked_tables(
    query: Scan, card: DataCard, held: ExitStack
) -> list[tuple[str, Opened, dict[str, StoredType]]]:
    """The table, then the joined ones: their names in the statement, files and columns."""
    asked = names_in_statement(card, opened_all(card, query.joined_tables, held))
    if is_prepared(card):
        asked[0] = (relation(), *part("prepared").prepared_rows(card, held))
    return asked


def is_prepared(card: DataCard, name: str = relation()) -> bool:
    """Whether prepared rows are read in place of the source's, where a statement names it so."""
    return card.prepared is not None and name == relation() and os.path.lexists(card.prepared)


def opened_all(card: DataCard, names: Iterable[str], held: ExitStack) -> Tables[Opened]:
    """The table (None) and these others: files, held open, and columns."""
    hold = held.enter_context
    own = check_unit_in_files, check_apart, alike
    return tables_of(card, names, lambda source: hold(opened(source)), *own)


def check_joins(connection: Any, query: Scan, card: DataCard) -> None:
    """That joins make few rows of one: by public tables and the card, so it tells nothing else."""
    counts = CompiledRows(query, card, dialect=DUCKDB).matches()
    most = prod(connection.execute(sql).fetchall()[0][0] for sql in counts)
    check_matches(query, card, most)


def check_whole(
    connection: Any,
    name: str,
    there: Opened,
    columns: Mapping[str, StoredType],
    limits: EngineLimits,
) -> None:
    """Refuse a source, shown under this name, that cannot be read whole.

    Each state of files is looked at once in a process; a frame every time.
    """
    state = there.source, there.seen, tuple(columns.items()), limits
    files = there.source.kind != "frame"
    if files and _LOOKED_THROUGH.holds(state):
        return
    if there.source.kind == "csv":
        check_csv(there)
    elif (sql := reading_all(connection, there, name, columns)) is not None:
        _check_readable(connection, sql)
    if files:
        there.check_unchanged()
        _LOOKED_THROUGH.add(state)


def _check_readable(connection: Any, sql: str) -> None:
    """Refuse a source with a value that stops DuckDB, and so this statement, which reads it all."""
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


_LOOKED_THROUGH = LookedThrough()


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
            with suppress(duckdb.Error):  # of an engine that has died: its words may hold values
                database.close()


@contextmanager
def _scratch(folder: str | None) -> Iterator[str]:
    """A folder in this one that only this user can read, gone at the end.

    That of a process that was killed holds rows: `leftovers.py` removes it, where it is not locked.
    """
    try:
        made = tempfile.TemporaryDirectory(prefix=SCRATCH, dir=folder, ignore_cleanup_errors=True)
    except OSError:
        problem = "is not a folder that can be written to"
        remedy = "make it, or name another under [engine] on the card"
        raise InvalidParameter("engine: spill_folder", problem=problem, remedy=remedy) from None
    with made as path, ExitStack() as held:
        descriptor = os.open(path, os.O_RDONLY)
        held.callback(os.close, descriptor)
        with suppress(OSError):  # where there are no locks, nothing is removed either
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield path


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
