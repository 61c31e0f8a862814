"""A table of a DuckDB file, as a view of a connection.

Law      it is a stored table, read only. Generated columns (which could draw random numbers) and
         views are refused. Text compares by its bytes, whatever the file declares
Checked  tests/tables/backends/test_locality.py
"""

from __future__ import annotations

from itertools import count
from typing import Any

from lastbit.errors import InvalidParameter
from lastbit.tables.backends.duckdb.files import Opened
from lastbit.tables.backends.duckdb.sources import textual
from lastbit.tables.compile.steps import identifier, string

_NUMBERS = count(1)
"""Of attached files: no name stands for two of them, so that no view comes to mean another."""
_GENERATED = "is a generated column, which may be another one each time"
_COLUMNS = (
    "SELECT column_name, data_type, is_generated, column_default FROM information_schema.columns"
    " WHERE table_catalog = ? AND table_schema = ? AND table_name = ? ORDER BY ordinal_position"
)


def show_source(connection: Any, there: Opened, name: str) -> tuple[dict[str, str], dict[str, str]]:
    """The view of this name; the types of the stored columns, and why others are left out."""
    (path,) = there.paths
    already = dict(
        connection.execute("SELECT path, database_name FROM duckdb_databases()").fetchall()
    )
    database = already.get(path) or f"lastbit {next(_NUMBERS)}"
    if path not in already:  # a file can be attached once; whoever did so reads the same one
        connection.execute(f"ATTACH {string(path)} AS {identifier(database)} (READ_ONLY)")
    wanted = there.source.table or ""
    tables = "SELECT schema_name, table_name, sql FROM duckdb_tables() WHERE database_name = ?"
    for schema, table, sql in connection.execute(tables, [database]).fetchall():
        if wanted.lower() in (table.lower(), f"{schema}.{table}".lower()):
            place = ".".join(map(identifier, (database, schema, table)))
            found = connection.execute(_COLUMNS, [database, schema, table]).fetchall()
            # where DuckDB does not say which are computed, all are taken to be that could
            some = "GENERATED ALWAYS" in (sql or "").upper()
            generated = [
                column
                for column, _, said, default in found
                if said == "ALWAYS" or (said != "NEVER" and some and default is not None)
            ]
            stored = {c: kind for c, kind, *_ in found if c not in generated}
            columns = ", ".join(
                f'CAST({identifier(c)} AS VARCHAR) COLLATE "binary" AS {identifier(c)}'
                if textual(kind)
                else identifier(c)
                for c, kind in stored.items()
            )
            connection.execute(
                f"CREATE TEMP VIEW {identifier(name)} AS"
                f" SELECT {columns or 'NULL AS nothing'} FROM {place}"
            )
            return stored, dict.fromkeys(generated, _GENERATED)
    problem = "is not a table of that file"
    remedy = "name a table; make one of a view"
    raise InvalidParameter(f"source table {wanted[:60]}", problem=problem, remedy=remedy)
