"""Sources as views of a DuckDB connection: each row is read by what stands in it, and no other.

Law      what a row of a source is read as is a function of that row, of the card and of the
         source's schema: the names and types of columns as the file or frame states them, which
         are public. No type, order, dictionary, delimiter or line break is guessed from values
Theorem  (locality) add, change or remove rows of one unit: every other row is read as before, or
         the source is refused as a whole, for every question, before anything is charged
           CSV      `csv_records.py`; DuckDB reads a private copy that has no quotes
           Parquet  files of several schemas are cast to the card's types each by itself, so that
                    no file decides about another
           DuckDB   a stored table, read only; generated columns (which could draw random numbers)
                    and views are refused; text compares by its bytes whatever the file declares
           frames   objects of pandas are text, one by one: what is no text, number, truth value,
                    date or missing, or has no UTF-8, is missing. Categories are what they stand
                    for. Arrow's buffers are validated in full, once. A frame that could differ at
                    a second scan is copied first
         In Parquet and frames, text that is not UTF-8 and times out of range stop DuckDB: the
         backend looks for them in all rows and all columns of the card, whatever is asked, and
         evaluates there the casts that statements do
Refused  columns of nested types, times of day and intervals, for some of whose values DuckDB stops;
         times that the card declares as text: even TRY_CAST stops for some out of range. By their
         types, so it depends on no row
Checked  tests/tables/backends/test_locality.py: one row is added or changed, on the real engine
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from gzip import BadGzipFile
from tempfile import mkstemp
from typing import IO, Any

from lastbit.errors import EngineFailed, InvalidParameter
from lastbit.tables.backends import csv_records
from lastbit.tables.backends.csv_records import FIELD_END, SET_ASIDE, Header, header_of
from lastbit.tables.backends.duckdb.files import Opened, Partition, without_values
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.steps import identifier, string
from lastbit.tables.query.expression import ColumnType

_LONGEST_LINE = 1 << 22
_PLAIN = ("BOOLEAN", "DATE", "DOUBLE", "FLOAT", "VARCHAR", "UUID", "JSON", "BLOB", '"NULL"')
_PLAIN_STARTS = ("DECIMAL(", "ENUM(", "TIMESTAMP")
_NEVER_STOPS = ("BIGINT", "BOOLEAN", "DATE", "DOUBLE", "FLOAT", "INTEGER")  # any bits are a value
_UNKNOWN = ("BinderException", "InvalidInputException", "NotImplementedException")
_GENERATED = "is a generated column, which may be another one each time"
_NESTED = "is of a type that cannot be read row by row: nested, a time of day, a duration"


def shown(
    connection: Any, there: Opened, name: str, wanted: Mapping[str, ColumnType] | None = None
) -> dict[str, ColumnType]:
    """Make the source a view of this name; its columns, as they are typed there.

    `wanted` are the columns that the card declares: they must be there, and readable.
    """
    left_out: dict[str, str] = {}
    match there.source.kind:
        case "parquet":
            kinds = _parquet(connection, there, name, wanted)
        case "csv":
            kinds = _csv(connection, there, name)
        case "duckdb":
            kinds, left_out = _attached(connection, there, name)
        case "frame":
            kinds = _registered(connection, there.source.frame, name)
    _check_casts(kinds, wanted or {})
    left_out |= {column: _NESTED for column, kind in kinds.items() if not _readable(kind)}
    found = {c: type_named(kind) for c, kind in kinds.items() if c not in left_out}
    _check_columns(found, left_out, wanted or ())
    return found


def reading_all(
    connection: Any, there: Opened, name: str, columns: Mapping[str, ColumnType]
) -> str | None:
    """A statement that stops if a value in these columns does, as read or cast; None if none can.

    The source is shown under this name.
    """
    wanted = {column.lower(): kind for column, kind in columns.items()}
    known = _NEVER_STOPS if len(there.names) < 2 else ()  # of several files, types may be casts
    reads = [
        f"bit_xor(hash({_tried(identifier(column), kind, wanted[column.lower()])}))"
        for column, kind in _described(connection, identifier(name)).items()
        if column.lower() in wanted and kind not in known
    ]
    return f"SELECT {', '.join(reads)} FROM {identifier(name)}" if reads else None


def _tried(column: str, kind: str, type_: ColumnType) -> str:
    """The column and its cast, so as to stop at text that is not UTF-8: not every reader looks.

    >>> _tried("x", "VARCHAR", "text"), _tried("y", "TIMESTAMP_S", "date")
    ('decode(encode(CAST(x AS VARCHAR)))', 'y, TRY_CAST(y AS DATE)')
    """
    textual = _textual(kind)
    raw = f"decode(encode(CAST({column} AS VARCHAR)))" if textual else column
    return raw if textual and type_ == "text" else f"{raw}, {DUCKDB.read(column, type_, 'other')}"


def _textual(kind: str) -> bool:
    return kind in ("VARCHAR", "JSON") or kind.startswith("ENUM(")


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


def _readable(kind: str) -> bool:
    if kind.endswith("]"):
        return False
    return kind in _PLAIN or kind.endswith(("INT", "INTEGER")) or kind.startswith(_PLAIN_STARTS)


def _check_columns(
    found: Mapping[str, ColumnType], left_out: Mapping[str, str], wanted: Iterable[str]
) -> None:
    lowered = {column.lower() for column in found}
    reasons = {column.lower(): reason for column, reason in left_out.items()}
    for column in wanted:
        if column.lower() in lowered:
            continue
        reason = reasons.get(column.lower(), "is not in the source")
        known = reason in left_out.values()
        remedy = "store its values in a plain column" if known else "check its name"
        raise InvalidParameter(f"column {column[:60]}", problem=reason, remedy=remedy)


def _check_casts(kinds: Mapping[str, str], wanted: Mapping[str, ColumnType]) -> None:
    """Refuse what even TRY_CAST stops at for some values: by types, whatever the values are."""
    types = {column.lower(): type_ for column, type_ in wanted.items()}
    for column, kind in kinds.items():
        if kind.startswith("TIMESTAMP") and types.get(column.lower()) == "text":
            problem = "is a time in the source, but text on the card"
            remedy = 'declare type = "timestamp"; in a question, CAST(x AS TEXT) makes it text'
            raise InvalidParameter(f"column {column[:60]}", problem=problem, remedy=remedy)


def _view(connection: Any, name: str, body: str) -> dict[str, str]:
    connection.execute(f"CREATE TEMP VIEW {identifier(name)} AS {body}")
    return _described(connection, identifier(name))


def _described(connection: Any, what: str) -> dict[str, str]:
    found = connection.execute(f"DESCRIBE {what}").fetchall()
    return {column: kind for column, kind, *_ in found}


def _list(paths: Iterable[str]) -> str:
    """Paths as a list, in which nothing is a pattern any more."""
    quoted = ("".join(f"[{c}]" if c in "[*?" else c for c in path) for path in paths)
    return f"[{', '.join(string(path) for path in quoted)}]"


def _parquet(
    connection: Any, there: Opened, name: str, wanted: Mapping[str, ColumnType] | None
) -> dict[str, str]:
    schemas: dict[tuple[tuple[str, str], ...], list[tuple[str, Partition]]] = {}
    partitions = there.partitions or ((),) * len(there.names)
    pairs = list(zip(there.names, partitions, strict=True))
    for path, partition in pairs if len(there.names) > 1 or there.partitions else ():
        kinds = _described(connection, f"SELECT * FROM {_read_parquet([path])}")
        schemas.setdefault(tuple(kinds.items()), []).append((path, partition))
    if not schemas:
        return _view(connection, name, f"SELECT * FROM {_read_parquet(there.names)}")
    parts = []
    for schema, files in schemas.items():
        columns = "*" if len(schemas) < 2 else _cast(dict(schema), wanted)
        for partition, paths in _by_partition(files).items():
            known = [*dict(schema)]
            parts.append(
                f"SELECT {columns}{_path_columns(partition, known)} FROM {_read_parquet(paths)}"
            )
    return _view(connection, name, " UNION ALL BY NAME ".join(parts))


def _by_partition(files: Iterable[tuple[str, Partition]]) -> dict[Partition, list[str]]:
    found: dict[Partition, list[str]] = {}
    for path, partition in files:
        found.setdefault(partition, []).append(path)
    return found


def _path_columns(partition: Partition, known: Iterable[str]) -> str:
    """Further columns that the way to a file says; not those that the file has itself.

    >>> _path_columns((("year", "2024"), ("City", None)), ["x", "YEAR"])
    ', CAST(NULL AS VARCHAR) AS "City"'
    """
    own = {column.lower() for column in known}
    return "".join(
        f", CAST({'NULL' if value is None else string(value)} AS VARCHAR) AS {identifier(column)}"
        for column, value in partition
        if column.lower() not in own
    )


def _cast(schema: Mapping[str, str], wanted: Mapping[str, ColumnType] | None) -> str:
    """Each column of a file as the card has it, so that it does not matter what others have."""
    if wanted is None:
        return "*"
    _check_casts(schema, wanted)
    types = {column.lower(): (column, kind) for column, kind in wanted.items()}
    columns = []
    for column, kind in schema.items():
        if column.lower() in types and _readable(kind):
            alias, type_ = types[column.lower()]
            read = DUCKDB.read(identifier(column), type_, "other")
            columns.append(f"{read} AS {identifier(alias)}")
    return ", ".join(columns) or "NULL AS nothing"


def _read_parquet(paths: Sequence[str]) -> str:
    return f"read_parquet({_list(paths)}, hive_partitioning = false, union_by_name = false)"


def csv_columns(
    there: Opened, wanted: Mapping[str, ColumnType] | None = None
) -> dict[str, ColumnType]:
    """The columns of CSV files, which are all text; nothing below a header is looked at."""
    names = _header(there).names
    own = {column.lower() for column in names}
    said = (column for column, _ in (there.partitions or ((),))[0] if column.lower() not in own)
    found: dict[str, ColumnType] = dict.fromkeys((*names, *said), "text")
    _check_columns(found, {}, wanted or ())
    return found


def _header(there: Opened) -> Header:
    with _unpacked(there.paths[0], there.stamps[0]) as file:
        return header_of(file, without_values(there.paths[0]))


COPY = "lastbit-rows-"
"""How the names of private copies begin; `engine.connected` removes them with its session."""


def check_csv(there: Opened) -> None:
    """Refuse CSV files that are not headers and records."""
    for path, stamp in zip(there.paths, there.stamps, strict=True):
        with _unpacked(path, stamp) as file:
            csv_records.check_records(file, _same_header(file, path, there), without_values(path))


def _csv(connection: Any, there: Opened, name: str) -> dict[str, str]:
    """A view of private copies of the files, which have one line a record and no quotes."""
    (folder,) = connection.execute("SELECT current_setting('temp_directory')").fetchone()
    copies: list[tuple[str, Partition]] = []
    partitions = there.partitions or ((),) * len(there.paths)
    for path, stamp in zip(there.paths, there.stamps, strict=True):
        with _unpacked(path, stamp) as file:
            header = _same_header(file, path, there)
            descriptor, copy = mkstemp(prefix=COPY, dir=folder)
            with open(descriptor, "wb") as out:
                csv_records.write_plain(file, header, without_values(path), out)
            copies.append((copy, partitions[len(copies)]))
    header = _header(there)
    parts = []
    for partition, paths in _by_partition(copies).items():
        further, plain = _path_columns(partition, header.names), _plain(header, paths)
        parts.append(f"SELECT *{further} FROM ({plain})" if further else plain)
    return _view(connection, name, " UNION ALL ".join(parts))


def _same_header(file: IO[bytes], path: str, there: Opened) -> Header:
    found, first = header_of(file, without_values(path)), _header(there)
    if (found.delimiter, found.names) != (first.delimiter, first.names):
        problem = f"has another header than {without_values(there.paths[0])}"
        remedy = "give all files the same columns in the same order"
        raise InvalidParameter(f"source {without_values(path)}", problem=problem, remedy=remedy)
    return found


@contextmanager
def _unpacked(path: str, stamp: tuple[int, ...]) -> Iterator[IO[bytes]]:
    """The bytes of the very file that was opened before."""
    with open(path, "rb") as packed:
        found = os.fstat(packed.fileno())
        if (found.st_dev, found.st_ino) != stamp[:2]:
            raise EngineFailed("a file of the source changed while it was read; ask again")
        try:
            yield csv_records.decompressed(packed)
            return
        except (EOFError, BadGzipFile, zlib.error):
            pass
    problem = "is a gzip file that is cut off or damaged, or has other bytes after its end"
    remedy = "write it again; gzip -t says whether it is whole"
    raise InvalidParameter(f"source {without_values(path)}", problem=problem, remedy=remedy)


def _plain(header: Header, copies: list[str]) -> str:
    places = range(len(header.names))
    types = ", ".join(f"'c{place}': 'VARCHAR'" for place in places)
    columns = ", ".join(
        f"{_with_breaks(f'c{place}')} AS {identifier(column)}"
        for place, column in zip(places, header.names, strict=True)
    )
    options = (
        f"auto_detect = false, header = true, delim = {string(FIELD_END)}, quote = '', escape = '',"
        f" new_line = '\\n', columns = {{{types}}}, max_line_size = {_LONGEST_LINE},"
        " hive_partitioning = false, compression = 'none'"
    )
    return f"SELECT {columns} FROM read_csv({_list(copies)}, {options})"


def _with_breaks(column: str) -> str:
    """The field with the line breaks that were set aside in the copy."""
    pairs = [(f"chr({ord(aside)})", f"chr({ord(meant)})") for aside, meant in SET_ASIDE]
    held = " OR ".join(f"contains({column}, {aside})" for aside, _ in pairs)
    asides, meants = (" || ".join(letters) for letters in zip(*pairs, strict=True))
    return f"CASE WHEN {held} THEN translate({column}, {asides}, {meants}) ELSE {column} END"


_COLUMNS = (
    "SELECT column_name, data_type, is_generated, column_default FROM information_schema.columns"
    " WHERE table_catalog = ? AND table_schema = ? AND table_name = ? ORDER BY ordinal_position"
)


def _attached(connection: Any, there: Opened, name: str) -> tuple[dict[str, str], dict[str, str]]:
    (path,) = there.paths
    already = dict(
        connection.execute("SELECT path, database_name FROM duckdb_databases()").fetchall()
    )
    database = already.get(path) or f"lastbit {len(already)}"
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
                if _textual(kind)
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


def _registered(connection: Any, frame: Any, name: str) -> dict[str, str]:
    from lastbit.tables.backends.duckdb.frames import plain_frame  # files do without

    plain, copied = plain_frame(frame)
    if not copied:
        return _typed(connection, plain, name)
    once = identifier(f"{name} once")
    kinds = _typed(connection, plain, f"{name} once")
    columns = ", ".join(
        f"TRY(decode(encode({identifier(c)}))) AS {identifier(c)}"  # not every library checks UTF-8
        if kind == "VARCHAR"
        else identifier(c)
        for c, kind in kinds.items()
        if _readable(kind)
    )
    connection.execute(f"CREATE TEMP TABLE {identifier(name)} AS SELECT {columns} FROM {once}")
    return kinds


def _typed(connection: Any, frame: Any, name: str) -> dict[str, str]:
    """The columns of a frame, registered under this name; refuses types that DuckDB does not know.

    That is by the frame's types alone: no row of it is read here.
    """
    try:
        connection.register(name, frame)
        return _described(connection, identifier(name))
    except Exception as error:  # its words may hold names of other columns
        if type(error).__name__ not in _UNKNOWN:
            raise
    problem = "is not a frame, or has a column of a type that cannot be read"
    remedy = "convert to numbers, text, truth values, dates or timestamps, or leave columns out"
    raise InvalidParameter("source", problem=problem, remedy=remedy)
