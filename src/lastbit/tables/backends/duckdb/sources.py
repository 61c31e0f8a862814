"""Sources as views of a DuckDB connection: each row is read by what stands in it, and no other.

Law      what a row of a source is read as is a function of that row, of the card and of the
         source's schema: the names and types of columns as the file or frame states them, which
         are public. No type, order, dictionary, delimiter or line break is guessed from values
Theorem  (locality) add, change or remove rows of one unit: every other row is read as before, or
         the source is refused as a whole, for every question, before anything is charged
           CSV      `csv_records.py`; DuckDB reads a private copy that has no quotes
           Parquet  files of several schemas are cast to the card's types each by itself, so that
                    no file decides about another
           DuckDB   `stored_tables.py`; frames: `frames.py`
         In Parquet and frames, text that is not UTF-8 and times out of range stop DuckDB: the
         backend looks for them in all rows and all columns of the card, whatever is asked, and
         evaluates there the casts that statements do
         A list is read as DuckDB has it, and each of its elements as a value of its own
Refused  columns of other nested types, times of day and intervals, for some of whose values
         DuckDB stops; times that the card declares as text: even TRY_CAST stops for some out of
         range. By their types, so it depends on no row
Checked  tests/tables/backends/test_locality.py: one row is added or changed, on the real engine
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from gzip import BadGzipFile
from tempfile import mkstemp
from typing import IO, Any, TypeVar, cast

from lastbit.errors import EngineFailed, InvalidParameter
from lastbit.tables.backends import csv_records
from lastbit.tables.backends.csv_records import FIELD_END, SET_ASIDE, Header, header_of
from lastbit.tables.backends.duckdb.files import CHANGED, Opened, Partition, part, without_values
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.steps import identifier, string
from lastbit.tables.query.expression import ColumnType, StoredType

Result = TypeVar("Result")

_LONGEST_LINE = 1 << 22
_PLAIN = ("BOOLEAN", "DATE", "DOUBLE", "FLOAT", "VARCHAR", "UUID", "JSON", "BLOB", '"NULL"')
_PLAIN_STARTS = ("DECIMAL(", "ENUM(", "TIMESTAMP")
_NEVER_STOPS = ("BIGINT", "BOOLEAN", "DATE", "DOUBLE", "FLOAT", "INTEGER")  # any bits are a value
_IS_LIST = "has lists in the source, and plain values on the card"
_NO_LIST = "has no lists in the source, and lists on the card"
_NESTED = "is of a type that cannot be read row by row: nested, a time of day, a duration"


def shown(
    connection: Any, there: Opened, name: str, wanted: Mapping[str, StoredType] | None = None
) -> dict[str, str]:
    """Make the source a view of this name; its columns, and their types in DuckDB.

    `wanted` are the columns that the card declares: they must be there, and readable.
    """
    left_out: dict[str, str] = {}
    match there.source.kind:
        case "parquet":
            kinds = _parquet(connection, there, name, wanted)
        case "csv":
            kinds = _csv(connection, there, name)
        case kind:
            kinds, left_out = part(kind).show_source(connection, there, name)
    _check_casts(kinds, wanted or {})
    left_out |= _nested(kinds, wanted or {})
    found = {column: kind for column, kind in kinds.items() if column not in left_out}
    _check_columns(found, left_out, wanted or ())
    return found


def _nested(kinds: Mapping[str, str], wanted: Mapping[str, StoredType]) -> dict[str, str]:
    """The columns that cannot be read as they are declared, and why: by their types alone."""
    types: dict[str, str] = {column.lower(): kind for column, kind in wanted.items()}
    left_out: dict[str, str] = {}
    for column, kind in kinds.items():
        element, said = element_named(kind), types.get(column.lower())
        if not readable(element or kind):
            left_out[column] = _NESTED
        elif said is not None and said.endswith("[]") != (element is not None):
            left_out[column] = _IS_LIST if element else _NO_LIST
    return left_out


def shown_columns(
    connection: Any, there: Opened, name: str, wanted: Mapping[str, StoredType] | None = None
) -> dict[str, str]:
    """The same for those who want no row: of CSV nothing below a header is looked at."""
    if there.source.kind != "csv":
        return shown(connection, there, name, wanted)
    names = _header(there).names
    own = {column.lower() for column in names}
    said = (column for column, _ in there.said[0] if column.lower() not in own)
    kinds = dict.fromkeys((*names, *said), "VARCHAR")
    _check_columns(kinds, {}, wanted or ())
    columns = ", ".join(f"{identifier(column)} VARCHAR" for column in kinds)
    connection.execute(f"CREATE TEMP TABLE {identifier(name)} ({columns})")
    return kinds


def reading_all(
    connection: Any, there: Opened, name: str, columns: Mapping[str, StoredType]
) -> str | None:
    """A statement that stops if a value in these columns does, as read or cast; None if none can.

    The source is shown under this name.
    """
    wanted: dict[str, str] = {column.lower(): kind for column, kind in columns.items()}
    known = _NEVER_STOPS if len(there.names) < 2 else ()  # of several files, types may be casts
    reads = []
    for column, kind in described(connection, identifier(name)).items():
        element, said = element_named(kind) or kind, wanted.get(column.lower())
        if said is None or element in known:
            continue
        type_ = cast(ColumnType, said.removesuffix("[]"))
        if element == kind:
            reads.append(f"bit_xor(hash({_tried(identifier(column), kind, type_)}))")
        else:
            every = f"SELECT unnest({identifier(column)}) AS x FROM {identifier(name)}"
            tried = _tried("x", element, type_)
            reads.append(f"(SELECT bit_xor(hash({tried})) FROM ({every}))")
    return f"SELECT {', '.join(reads)} FROM {identifier(name)}" if reads else None


def _tried(column: str, kind: str, type_: ColumnType) -> str:
    """The column and its cast, so as to stop at text that is not UTF-8: not every reader looks.

    >>> _tried("x", "VARCHAR", "text"), _tried("y", "TIMESTAMP_S", "date")
    ('decode(encode(CAST(x AS VARCHAR)))', 'y, TRY_CAST(y AS DATE)')
    """
    read = DUCKDB.read(column, type_, "other")
    if not textual(kind):
        return f"{column}, {read}"
    raw = f"decode(encode(CAST({column} AS VARCHAR)))"
    return raw if type_ == "text" else f"{raw}, {read}"


def textual(kind: str) -> bool:
    """Whether values of this type of DuckDB are text."""
    return kind in ("VARCHAR", "JSON") or kind.startswith("ENUM(")


def element_named(kind: str) -> str | None:
    """DuckDB's type of the elements of a list, or of an array; None of anything else.

    >>> element_named("VARCHAR[]"), element_named("DOUBLE[3]"), element_named("DATE")
    ('VARCHAR', 'DOUBLE', None)
    """
    return kind.rpartition("[")[0] if kind.endswith("]") else None


def readable(kind: str) -> bool:
    """Whether no value of this type of DuckDB stops it; of a list's, ask of its elements."""
    if kind.endswith("]"):
        return False
    return kind in _PLAIN or kind.endswith(("INT", "INTEGER")) or kind.startswith(_PLAIN_STARTS)


def _check_columns(
    found: Iterable[str], left_out: Mapping[str, str], wanted: Iterable[str]
) -> None:
    lowered = {column.lower() for column in found}
    reasons = {column.lower(): reason for column, reason in left_out.items()}
    for column in wanted:
        if column.lower() in lowered:
            continue
        reason = reasons.get(column.lower(), "is not in the source")
        known = reason in left_out.values()
        remedy = "store its values in a plain column" if known else "check its name"
        remedy = {
            _IS_LIST: 'declare its type as a list, say "text[]", and ask of UNNEST(it)',
            _NO_LIST: "store lists there: in Parquet, DuckDB, Arrow or Polars",
        }.get(reason, remedy)
        raise InvalidParameter(f"column {column[:60]}", problem=reason, remedy=remedy)


def _check_casts(kinds: Mapping[str, str], wanted: Mapping[str, StoredType]) -> None:
    """Refuse what even TRY_CAST stops at for some values: by types, whatever the values are."""
    types = {column.lower(): type_ for column, type_ in wanted.items()}
    for column, kind in kinds.items():
        text = types.get(column.lower()) in ("text", "text[]")
        if kind.startswith("TIMESTAMP") and text:
            problem = "is a time in the source, but text on the card"
            remedy = 'declare type = "timestamp"; in a question, CAST(x AS TEXT) makes it text'
            raise InvalidParameter(f"column {column[:60]}", problem=problem, remedy=remedy)


def _view(connection: Any, name: str, body: str) -> dict[str, str]:
    connection.execute(f"CREATE TEMP VIEW {identifier(name)} AS {body}")
    return described(connection, identifier(name))


def described(connection: Any, what: str) -> dict[str, str]:
    """The columns of a view, table or statement, and their types in DuckDB."""
    found = connection.execute(f"DESCRIBE {what}").fetchall()
    return {column: kind for column, kind, *_ in found}


def file_list(paths: Iterable[str]) -> str:
    """Paths as a list, in which nothing is a pattern any more."""
    quoted = ("".join(f"[{c}]" if c in "[*?" else c for c in path) for path in paths)
    return f"[{', '.join(string(path) for path in quoted)}]"


def _parquet(
    connection: Any, there: Opened, name: str, wanted: Mapping[str, StoredType] | None
) -> dict[str, str]:
    files: dict[tuple[tuple[tuple[str, str], ...], Partition], list[str]] = {}
    for path, partition in zip(there.names, there.said, strict=True):
        kinds = described(connection, f"SELECT * FROM {_read_parquet([path])}")
        files.setdefault((tuple(kinds.items()), partition), []).append(path)
    several = len({schema for schema, _ in files}) > 1
    parts = []
    for (schema, partition), paths in files.items():
        columns = _cast(dict(schema), wanted) if several else "*"
        further = _path_columns(partition, dict(schema))
        parts.append(f"SELECT {columns}{further} FROM {_read_parquet(paths)}")
    return _view(connection, name, " UNION ALL BY NAME ".join(parts))


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


def _cast(schema: Mapping[str, str], wanted: Mapping[str, StoredType] | None) -> str:
    """Each column of a file as the card has it, so that it does not matter what others have."""
    if wanted is None:
        return "*"
    _check_casts(schema, wanted)
    types = {column.lower(): (column, kind) for column, kind in wanted.items()}
    columns = []
    for column, kind in schema.items():
        if column.lower() in types and readable(element_named(kind) or kind):
            alias, said = types[column.lower()]
            type_ = cast(ColumnType, said.removesuffix("[]"))
            read = DUCKDB.read(identifier(column), type_, "other")
            if said.endswith("[]") and element_named(kind):
                read = f"{read.removesuffix(')')}[])"
            elif said.endswith("[]") or element_named(kind):
                continue  # it is not what the card says: no file is read as another kind of thing
            columns.append(f"{read} AS {identifier(alias)}")
    return ", ".join(columns) or "NULL AS nothing"


def _read_parquet(paths: Sequence[str]) -> str:
    return f"read_parquet({file_list(paths)}, hive_partitioning = false, union_by_name = false)"


def _header(there: Opened) -> Header:
    with _unpacked(there.paths[0], there.stamps[0]) as file:
        return header_of(file, without_values(there.paths[0]))


COPY = "lastbit-rows-"
"""How the names of private copies begin; `engine.connected` removes them with its session."""


def check_csv(there: Opened) -> None:
    """Refuse CSV files that are not headers and records."""
    _read_each(there, csv_records.check_records)


def _csv(connection: Any, there: Opened, name: str) -> dict[str, str]:
    """A view of private copies of the files, which have one line a record and no quotes."""
    (folder,) = connection.execute("SELECT current_setting('temp_directory')").fetchone()

    def copied(file: IO[bytes], header: Header, path: str) -> str:
        descriptor, copy = mkstemp(prefix=COPY, dir=folder)
        with open(descriptor, "wb") as out:
            csv_records.write_plain(file, header, path, out)
        return copy

    copies: dict[Partition, list[str]] = {}
    for copy, partition in zip(_read_each(there, copied), there.said, strict=True):
        copies.setdefault(partition, []).append(copy)
    header = _header(there)
    parts = []
    for partition, paths in copies.items():
        further, plain = _path_columns(partition, header.names), _plain(header, paths)
        parts.append(f"SELECT *{further} FROM ({plain})" if further else plain)
    return _view(connection, name, " UNION ALL ".join(parts))


def _read_each(there: Opened, read: Callable[[IO[bytes], Header, str], Result]) -> list[Result]:
    """What `read` gives of each file, which stands after its header: that of the first."""
    first, results = _header(there), []
    for path, stamp in zip(there.paths, there.stamps, strict=True):
        with _unpacked(path, stamp) as file:
            shown_path = without_values(path)
            header = header_of(file, shown_path)
            if (header.delimiter, header.names) != (first.delimiter, first.names):
                problem = f"has another header than {without_values(there.paths[0])}"
                remedy = "give all files the same columns in the same order"
                raise InvalidParameter(f"source {shown_path}", problem=problem, remedy=remedy)
            results.append(read(file, header, shown_path))
    return results


@contextmanager
def _unpacked(path: str, stamp: tuple[int, ...]) -> Iterator[IO[bytes]]:
    """The bytes of the very file that was opened before."""
    with open(path, "rb") as packed:
        found = os.fstat(packed.fileno())
        if (found.st_dev, found.st_ino) != stamp[:2]:
            raise EngineFailed(CHANGED)
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
    return f"SELECT {columns} FROM read_csv({file_list(copies)}, {options})"


def _with_breaks(column: str) -> str:
    """The field with the line breaks that were set aside in the copy."""
    pairs = [(f"chr({ord(aside)})", f"chr({ord(meant)})") for aside, meant in SET_ASIDE]
    held = " OR ".join(f"contains({column}, {aside})" for aside, _ in pairs)
    asides, meants = (" || ".join(letters) for letters in zip(*pairs, strict=True))
    return f"CASE WHEN {held} THEN translate({column}, {asides}, {meants}) ELSE {column} END"
