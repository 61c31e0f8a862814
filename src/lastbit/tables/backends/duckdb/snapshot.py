"""Rows that a program holds, as they are at one moment: relations, connections and lazy frames.

A relation or lazy frame is a recipe: run twice, it may give other rows (random(), now(), files and
tables that changed, a view that somebody replaced), and one question runs it several times: to
check, to fingerprint, to answer. So it is run once, when the table is declared.

Law      a snapshot is a table in a database of its own, in memory, which nothing else writes to
Theorem  every scan of a snapshot gives the same rows: what is checked, fingerprinted and answered
         from is one state of the data, whatever the recipe draws or reads. Of a connection only
         stored tables are taken, one statement each, so one state of one table
Differs  that each row depends on its own unit alone is the caller's promise, as for any frame: a
         recipe may well have mixed the rows of several units before
Checked  tests/tables/backends/test_snapshots.py
"""

from __future__ import annotations

from typing import Any

import duckdb

from lastbit.errors import InvalidParameter, WrongType
from lastbit.tables.card.schema import Source
from lastbit.tables.compile.steps import identifier
from lastbit.tables.limits import sealed

_TABLES = (
    "SELECT database_name, schema_name, table_name FROM duckdb_tables() WHERE NOT internal"
    " AND (lower(table_name) = lower($1) OR lower(schema_name || '.' || table_name) = lower($1))"
)


class Snapshot:
    """A table in a database of its own; an Arrow stream of it whenever one is asked for."""

    __slots__ = ("_database",)

    def __init__(self, rows: Any) -> None:
        # never on disk: where memory does not suffice, it fails, and Parquet is the way out
        self._database = duckdb.connect(":memory:", config={"temp_directory": ""})
        self._database.execute("SET python_enable_replacements = false")
        self._database.execute("SET TimeZone = 'UTC'")
        self._database.register("given", _Streamed(rows))
        self._database.execute("CREATE TABLE taken AS FROM given")
        self._database.unregister("given")

    def __repr__(self) -> str:
        return "<Snapshot>"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._database.cursor().sql("FROM taken").__arrow_c_stream__(requested_schema)

    def __reduce__(self) -> tuple[Any, ...]:
        raise WrongType(
            "source", problem="is held in memory, and not copied", remedy="write it as Parquet"
        )


class _Streamed:
    """The one stream that an object gives: whatever else it is, it is read as Arrow."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)


def is_relation(source: object) -> bool:
    """Whether it is a relation of DuckDB, of whatever connection."""
    return isinstance(source, duckdb.DuckDBPyRelation)


def is_connection(source: object) -> bool:
    """Whether it is a connection of DuckDB, or the module, which is one."""
    return isinstance(source, duckdb.DuckDBPyConnection) or source is duckdb


def is_lazy(source: object) -> bool:
    """Whether it is a lazy frame of Polars."""
    kind = type(source)
    return kind.__name__ == "LazyFrame" and kind.__module__.startswith("polars")


def snapshot(source: Source, table: str | None = None) -> Source:
    """The rows of a relation, a connection's table or a lazy frame, as they are now.

    It comes and goes in a `Source`, which hides it: errors show locals, and a relation its rows.
    """

    def taken() -> Any:
        given = source.frame
        if is_lazy(given):
            return given.collect()
        return Snapshot(_stored(given, table) if is_connection(given) else given)

    words = "the source could not be read; check that it runs by itself"
    return Source(kind="frame", frame=sealed(taken, words=words))


def _stored(connection: Any, table: str | None) -> Any:
    """The stored table of this name; a view or a macro may be another one each time."""
    cursor = connection.cursor()
    if table is None:
        raise InvalidParameter(
            "table", problem="of the connection is not named", remedy='pass table="visits", say'
        )
    found = cursor.execute(_TABLES, [table]).fetchall()
    if len(found) == 1:
        return cursor.sql(f"FROM {'.'.join(map(identifier, found[0]))}")
    if found:
        problem, remedy = "is in several schemas", "write schema.table"
    else:
        problem = "is not a stored table of that connection"
        remedy = "check its name; of a view, pass connection.table(...): its rows are copied"
    raise InvalidParameter(f"table {table[:60]}", problem=problem, remedy=remedy)
