"""Sources as views of a DuckDB connection; none of it depends on a value of the data.

CSV is read as text: the delimiter and the names come from the header line, nothing is guessed from
rows, and a line that is no row is left out. Types are given by the card afterwards, with TRY_CAST.
Parquet files of several types are read at a type that holds all. A DuckDB file is opened read only,
and must name a table (a view could draw random numbers), whose text compares by its bytes.

A frame must give the same rows at each scan, since the statement may scan twice: what is no plain
table of pandas, Polars or Arrow is copied first.
"""

from __future__ import annotations

import csv
import glob
import gzip
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any, cast

from lastbit.errors import InvalidParameter
from lastbit.tables.literals import identifier, text
from lastbit.tables.schema import ColumnType, Source

__all__ = ["files_of", "shown", "type_named"]

_DELIMITERS = (",", ";", "\t", "|")
_LONGEST_HEADER = 1 << 20
_PLAIN_FRAMES = ("pandas", "polars", "pyarrow")


def shown(connection: Any, source: Source, name: str) -> dict[str, ColumnType]:
    """Make the source a view of this name; its columns, as they are typed there."""
    match source.kind:
        case "parquet":
            paths = files_of(source)
            options = f"hive_partitioning = false, union_by_name = {len(paths) > 1}"
            _view(connection, name, f"SELECT * FROM read_parquet({_list(paths)}, {options})")
        case "csv":
            _view(connection, name, _csv(files_of(source)))
        case "duckdb":
            _attached(connection, source, name)
        case "frame":
            _registered(connection, source.frame, name)
    found = connection.execute(f"DESCRIBE {identifier(name)}").fetchall()
    return {column: type_named(kind) for column, kind, *_ in found}


def type_named(kind: str) -> ColumnType:
    """The type of a card that is nearest to one of DuckDB.

    >>> type_named("UBIGINT"), type_named("DECIMAL(9,2)"), type_named("TIMESTAMP WITH TIME ZONE")
    ('integer', 'number', 'timestamp')
    """
    if "[" in kind or "(" in kind.replace("DECIMAL(", ""):
        return "text"
    if kind.endswith(("INT", "INTEGER")):
        return "integer"
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        return "number"
    if kind.startswith("TIMESTAMP"):
        return "timestamp"
    plain: dict[str, ColumnType] = {"BOOLEAN": "boolean", "DATE": "date"}
    return plain.get(kind, "text")


def files_of(source: Source) -> list[str]:
    """The files, patterns written out; refuses what is not there."""
    found: list[str] = []
    for path in source.paths:
        if "://" in path:
            raise InvalidParameter(
                f"source {path}", problem="is not a file here", remedy="download it first"
            )
        matches = [path] if os.path.exists(path) else sorted(glob.glob(path, recursive=True))
        if not matches or not all(map(os.path.isfile, matches)):
            raise InvalidParameter(
                f"source {path}", problem="is no file that is there", remedy="check the path"
            )
        found += map(os.path.abspath, matches)
    if not found:
        raise InvalidParameter("source", problem="names no file", remedy="name one")
    return found


def _view(connection: Any, name: str, body: str) -> None:
    connection.execute(f"CREATE TEMP VIEW {identifier(name)} AS {body}")


def _list(paths: list[str]) -> str:
    """Paths as a list, in which nothing is a pattern any more."""
    quoted = ("".join(f"[{c}]" if c in "[*?" else c for c in path) for path in paths)
    return f"[{', '.join(text(path) for path in quoted)}]"


# ---------------------------------------------------------------- CSV


def _csv(paths: list[str]) -> str:
    delimiter, names = _header(paths[0])
    for path in paths[1:]:
        if _header(path) != (delimiter, names):
            raise InvalidParameter(
                f"source {path}",
                problem=f"has another header than {paths[0]}",
                remedy="give all files the same columns in the same order",
            )
    types = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(names)))
    columns = ", ".join(f"c{place} AS {identifier(name)}" for place, name in enumerate(names))
    options = (
        f"auto_detect = false, header = true, delim = {text(delimiter)}, quote = '\"',"
        f" escape = '\"', columns = {{{types}}}, ignore_errors = true, strict_mode = false,"
        " hive_partitioning = false"
    )
    return f"SELECT {columns} FROM read_csv({_list(paths)}, {options})"


def _header(path: str) -> tuple[str, list[str]]:
    """The delimiter and the names of columns: of the first line, and of nothing else."""
    for delimiter, names in sorted(_headers(path), key=lambda found: -len(found[1])):
        lowered = [name.lower() for name in names]
        if names and all(names) and len(set(lowered)) == len(lowered):
            return delimiter, names
        break
    raise InvalidParameter(
        f"source {path}",
        problem="has no first line that names every column once",
        remedy="write a header, in UTF-8",
    )


def _headers(path: str) -> Iterator[tuple[str, list[str]]]:
    try:
        with _opened(path) as file:  # bytes: what follows the line is not even decoded
            line = file.readline(_LONGEST_HEADER).decode("utf-8-sig").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        return
    for delimiter in _DELIMITERS:
        with suppress(csv.Error):
            yield delimiter, next(csv.reader([line], delimiter=delimiter), [])


def _opened(path: str) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path) if path.endswith(".gz") else open(path, "rb"))


# ---------------------------------------------------------------- DuckDB files and frames


def _attached(connection: Any, source: Source, name: str) -> None:
    (path,) = files_of(source)
    database = f"lastbit {len(connection.execute('SHOW DATABASES').fetchall())}"
    connection.execute(f"ATTACH {text(path)} AS {identifier(database)} (READ_ONLY)")
    wanted = source.table or ""
    found = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = ?", [database]
    ).fetchall()
    for schema, table in found:
        if wanted.lower() in (table.lower(), f"{schema}.{table}".lower()):
            place = ".".join(map(identifier, (database, schema, table)))
            described = connection.execute(f"DESCRIBE {place}").fetchall()
            columns = ", ".join(_by_bytes(column, kind) for column, kind, *_ in described)
            return _view(connection, name, f"SELECT {columns} FROM {place}")
    raise InvalidParameter(
        f"source table {wanted[:60]}",
        problem="is no table of that file",
        remedy="name a table; make one of a view",
    )


def _by_bytes(column: str, kind: str) -> str:
    quoted = identifier(column)
    return f'{quoted} COLLATE "binary" AS {quoted}' if kind == "VARCHAR" else quoted


def _registered(connection: Any, frame: Any, name: str) -> None:
    kind = type(frame)
    if kind.__name__ == "LazyFrame":
        frame = frame.collect()
    if "BatchReader" in kind.__name__:
        raise InvalidParameter(
            "source", problem="can be read once only", remedy="pass frame.read_all()"
        )
    names = [str(column) for column in getattr(frame, "columns", ())]
    if kind.__module__.startswith("pyarrow"):
        names = list(frame.schema.names)
    if len({column.lower() for column in names}) != len(names):
        raise InvalidParameter(
            "columns", problem="are two of one name", remedy="rename one in the frame"
        )
    if kind.__module__.startswith(_PLAIN_FRAMES) and kind.__name__ != "Dataset":
        connection.register(name, frame)
        return
    connection.register(f"{name} once", frame)
    once = identifier(f"{name} once")
    connection.execute(f"CREATE TEMP TABLE {identifier(name)} AS SELECT * FROM {once}")
