"""DuckDB runs the statement: in this process, on all cores, bigger than memory.

Every call has a connection of its own, in memory, that is closed at its end. Nothing is installed,
loaded or fetched; what does not fit into memory is spilled to a folder that only this user can
read, and that is removed. A file that changes while it is read is noticed, and nothing is released.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from math import prod
from typing import Any, TypeVar, cast

from lastbit.errors import EngineFailed, InvalidParameter, LastbitError, QueryRefused
from lastbit.tables.aggregated import Aggregates, assembled
from lastbit.tables.backends.duckdb_sources import files_of, shown
from lastbit.tables.compile import statement
from lastbit.tables.compile_rows import Rows, relation
from lastbit.tables.compile_steps import REARRANGING
from lastbit.tables.limits import MOST_MATCHES
from lastbit.tables.literals import identifier
from lastbit.tables.measures import Measure
from lastbit.tables.query import Query
from lastbit.tables.schema import ColumnType, DataCard, Source
from lastbit.tables.sealing import sealed

__all__ = ["aggregates", "columns_of", "connected", "fingerprint", "prepared"]

Result = TypeVar("Result")

_A_MOMENT = 0.1
_MOST_MEMORY = 6 * 10**9
_SHARE_OF_MEMORY = 0.6


def aggregates(
    query: Query, card: DataCard, measures: tuple[Measure, ...], *, secret: str | None
) -> Aggregates:
    """The measures of the query, raw. Whatever fails, fails before anything is released."""
    wanted = statement(query, card, measures, secret=secret)
    sources = [card.source, *(card.public[join.table].source for join in query.joins)]

    def run(connection: Any) -> Aggregates:
        before = [_stamp(source) for source in sources]
        prepared(connection, query, card)
        rows = _ran(connection, wanted.sql)
        found = assembled(query, measures, wanted, rows)
        if [_stamp(source) for source in sources] != before:
            raise EngineFailed("a file of the source changed while it was read; ask again")
        return found

    return _guarded(run)


def prepared(connection: Any, query: Query, card: DataCard) -> None:
    """Show the table and the joined public tables; refuse columns that are not there."""
    columns = {column.name: column.type for column in card.columns.values()}
    _shown(connection, card.source, relation(), columns)
    for join in query.joins:
        public = card.public[join.table]
        _shown(connection, public.source, relation(join.table), dict(public.columns))
    _check_matches(connection, Rows(query, card))


def _check_matches(connection: Any, rows: Rows) -> None:
    """That joins make few rows of one: of public tables only, so it tells nothing of the table."""
    most = prod(connection.execute(sql).fetchall()[0][0] for sql in rows.matches())
    if most > MOST_MATCHES:
        raise QueryRefused(
            "JOIN",
            problem=f"could make more than {MOST_MATCHES} rows of one: the public tables hold many"
            " rows with equal join columns",
            remedy="join on more columns, or leave one row for each value in the public table",
        )


def columns_of(source: Source) -> dict[str, ColumnType]:
    """The names and types of the source's columns; no value is looked at, so CSV is all text."""
    return _guarded(lambda connection: shown(connection, source, relation()))


def fingerprint(card: DataCard) -> bytes:
    """Differs if the data does: of files their places, sizes and times, of frames the content."""
    sources = [card.source, *(card.public[name].source for name in sorted(card.public))]

    def run(connection: Any) -> bytes:
        found = [
            _content(connection, source, f"lastbit {place}")
            if source.kind == "frame"
            else repr(_stamp(source))
            for place, source in enumerate(sources)
        ]
        return hashlib.sha256(repr(found).encode()).digest()

    return _guarded(run)


def _shown(connection: Any, source: Source, name: str, wanted: dict[str, ColumnType]) -> None:
    found = {column.lower() for column in shown(connection, source, name)}
    for column in wanted:
        if column.lower() not in found:
            raise InvalidParameter(
                f"column {column[:60]}", problem="is not in the source", remedy="check its name"
            )


def _stamp(source: Source) -> tuple[tuple[str, int, int, int], ...]:
    if source.kind == "frame":
        return ()
    paths = files_of(source)
    if source.kind == "duckdb":  # what was written last may still be beside the file
        paths = [path for file in paths for path in (file, f"{file}.wal") if os.path.exists(path)]
    stats = [(path, os.stat(path)) for path in paths]
    return tuple((path, s.st_size, s.st_mtime_ns, s.st_ino) for path, s in stats)


def _content(connection: Any, source: Source, name: str) -> str:
    """Of the rows, in whatever order: their number, and sums of two hashes of each."""
    columns = shown(connection, source, name)
    names = ", ".join(map(identifier, columns)) or "NULL"
    sums = ", ".join(
        f"sum(CAST(hash({salt}, {names}) AS HUGEINT)), bit_xor(hash({salt}, {names}))"
        for salt in (1, 2)
    )
    (found,) = connection.execute(f"SELECT count(*), {sums} FROM {identifier(name)}").fetchall()
    return repr((sorted(columns.items()), found))


# ---------------------------------------------------------------- connections and failures


@contextmanager
def connected() -> Iterator[Any]:
    """A connection of its own: in memory, with nothing from elsewhere, and a private spill."""
    import duckdb

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with tempfile.TemporaryDirectory(prefix="lastbit-", ignore_cleanup_errors=True) as folder:
        settings: dict[str, Any] = {
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "memory_limit": f"{int(min(_MOST_MEMORY, _SHARE_OF_MEMORY * memory))}B",
            "preserve_insertion_order": False,
            "temp_directory": folder,
        }
        connection = duckdb.connect(":memory:", config=settings)
        try:
            for setting in (
                "TimeZone = 'UTC'",
                f"disabled_optimizers = '{_optimizers_off(connection)}'",
                "ieee_floating_point_ops = true",
                "pandas_analyze_sample = 0",  # else types would depend on a sample of values
                "python_enable_replacements = false",
            ):
                connection.execute(f"SET {setting}")
            yield connection
        finally:
            connection.close()


def _optimizers_off(connection: Any) -> str:
    """What would make one row's meaning, or the work on it, depend on others.

    Parquet's least and greatest values leave NaN out; from them DuckDB concludes that isnan() is
    false. `compile_steps.py` says what the others would do.
    """
    known = {name for (name,) in connection.execute("FROM duckdb_optimizers()").fetchall()}
    return ",".join(name for name in (*REARRANGING, "statistics_propagation") if name in known)


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


def _guarded(run: Callable[[Any], Result]) -> Result:
    """What `run` gives; of the engine's own errors no word, of any other no frame."""
    return sealed(lambda: _caught(run), words=_told(""))


def _caught(run: Callable[[Any], Result]) -> Result:
    try:
        with connected() as connection:
            return run(connection)
    except (LastbitError, KeyboardInterrupt):
        raise
    except Exception as error:  # its text may hold values, so it must not be seen as a cause
        kind = type(error).__name__
    raise EngineFailed(_told(kind))


def _told(kind: str) -> str:
    match kind:
        case "OutOfMemoryException" | "MemoryError":
            return "the database ran out of memory or disk; free some, or ask for fewer groups"
        case "IOException" | "PermissionError" | "FileNotFoundError":
            return "a file of the source could not be read; check that it is whole and readable"
        case _:
            return "the database could not run the statement; nothing was released"
