"""Sources of Spark as frames of a session: each row is read by what stands in it, and no other.

Law      what a row is read as is a function of that row, of the card and of the source's schema,
         as in `duckdb/sources.py`; and every scan of a question reads the same rows
Theorem  tables and paths of Parquet alone are read, and no view: files are listed once. A view or
         another source may draw random numbers, or read what has changed; Delta and Iceberg skip
         files by least and greatest values, which leave NaN out. A snapshot is read from Spark's
         own storage (`snapshot.py`). Whether a file changed meanwhile is seen from its size, time
         and inode
Theorem  nothing is guessed from values: Parquet states its types, and what a folder's name says
         (year=2024) is text. Options of a table that would skip files or shift days are refused
Refused  columns of nested types, bytes, times of day and durations, and CHAR(n), which every engine
         fills with blanks in its own way; wide whole decimals as numbers
Checked  tests/engines/test_spark.py
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import functions, types

from lastbit.errors import EngineFailed, InvalidParameter
from lastbit.tables.backends.engines import LookedThrough
from lastbit.tables.backends.spark.snapshot import SparkSnapshot
from lastbit.tables.card.schema import Source
from lastbit.tables.compile.dialect import Family
from lastbit.tables.compile.spark import SPARK
from lastbit.tables.compile.stored_types import READ_FROM
from lastbit.tables.query.expression import ColumnType

_FAMILIES: tuple[tuple[Family, tuple[type, ...]], ...] = (
    ("integer", (types.ByteType, types.ShortType, types.IntegerType, types.LongType)),
    ("number", (types.FloatType, types.DoubleType)),
    ("decimal", (types.DecimalType,)),
    ("text", (types.StringType, types.VarcharType)),
    ("boolean", (types.BooleanType,)),
    ("date", (types.DateType,)),
    ("timestamp", (types.TimestampNTZType,)),
    ("timestamptz", (types.TimestampType,)),
)
_WHOLE_DIGITS = 18  # beyond, DuckDB has 128 bits, and makes doubles of them by two roundings
_LOGS = ("_delta_log", "metadata", ".hoodie")
_OLD_FILES = "has files that the table does not hold any more: a log says which it does"
_PLAIN = "write its rows as plain Parquet, or pass spark.table(...) as a frame"
_VALUED = re.compile(r"/[^/]*=.*")
_OPTIONS = frozenset(
    {
        *("ignorecorruptfiles", "ignoremissingfiles", "datetimerebasemode", "int96rebasemode"),
        *("modifiedafter", "modifiedbefore", "pathglobfilter", "recursivefilelookup"),
    }
)
_PARQUET = "ParquetFileFormat"
_NESTED = "is of a type that cannot be read row by row: nested, bytes, a time of day, a duration"
_CHAR = "is CHAR(n), which every engine fills with blanks in its own way"
_CHANGED = "a file of the source changed while it was read; ask again"


@dataclass(frozen=True, slots=True)
class Opened:
    """A source as a frame of the session, its state, and the files or tables that it is made of."""

    source: Source
    frame: Any
    state: tuple[object, ...]
    places: frozenset[str]
    files: tuple[str, ...] = ()
    folders: frozenset[str] = frozenset()
    """Columns, in small letters, that the names of folders say."""

    def check_unchanged(self, session: Any) -> None:
        """Refuse what was read if its files are others by now; a version stays what it is."""
        if self.files and self.state != _states(session, self.files):
            raise EngineFailed(_CHANGED)

    @property
    def origins(self) -> frozenset[str]:
        """What it is made of: its files; of a frame all that its rows came from."""
        frame = self.source.frame
        return frame.origins if isinstance(frame, SparkSnapshot) else self.places

    @property
    def columns(self) -> dict[str, tuple[str, Family]]:
        """By the name in small letters, the name and the family of each column."""
        return {
            field.name.lower(): (field.name, family_of(field)) for field in self.frame.schema.fields
        }


def family_of(field: Any) -> Family:
    """The family of a column's type; `other` cannot be read."""
    written = (field.metadata or {}).get("__CHAR_VARCHAR_TYPE_STRING", "")
    if isinstance(field.dataType, types.CharType) or written.lower().startswith("char"):
        return "other"
    return next((name for name, kinds in _FAMILIES if isinstance(field.dataType, kinds)), "other")


def chosen(there: Opened, wanted: Mapping[str, ColumnType]) -> Any:
    """The frame with the columns that the card declares; refuses those that cannot be read."""
    fields = {field.name.lower(): field for field in there.frame.schema.fields}
    for name, kind in wanted.items():
        _check_column(name, kind, fields.get(name.lower()))
    names = [SPARK.identifier(fields[name.lower()].name) for name in wanted]
    frame = there.frame.select(*map(functions.col, names))
    _check_uncached(there.source, frame)
    return frame


def _check_uncached(source: Source, frame: Any) -> None:
    """Refuse rows that another session has read before, under settings of its own."""
    if "InMemoryRelation" in frame._jdf.queryExecution().withCachedData().toString():
        problem = "is cached, as another session has read it"
        raise _refused(source, problem, "uncache it: spark.catalog.uncacheTable(...)")


def _check_column(name: str, kind: ColumnType, field: Any) -> None:
    problem, remedy = "", "store its values in a plain column"
    if field is None:
        problem, remedy = "is not in the source", "check its name"
    elif family_of(field) == "other":
        is_char = isinstance(field.dataType, types.CharType | types.StringType)
        problem = _CHAR if is_char else _NESTED
    elif kind == "number" and _is_wide(field.dataType):
        problem = f"has whole numbers of more than {_WHOLE_DIGITS} digits, which engines turn into"
        problem += " different doubles"
        remedy = 'declare type = "integer", or store it as DOUBLE'
    if problem:
        raise InvalidParameter(f"column {name[:60]}", problem=problem, remedy=remedy)


def check_values(
    there: Opened, wanted: Mapping[str, ColumnType], run: Callable[[str], object]
) -> None:
    """Refuse files with a value at which Spark's own reader stops, whatever is asked of them: a
    time in milliseconds of over 64 bits in microseconds, a decimal of more digits than declared.
    So are those that its casts stop at; none of another type does.

    Those columns are looked through once in a process for each state of the files.
    """
    if isinstance(there.source.frame, SparkSnapshot):
        return
    found = (
        (there.columns.get(name.lower(), ("", "other")), kind) for name, kind in wanted.items()
    )
    reads = tuple(
        SPARK.read(SPARK.identifier(name), kind, family)
        for (name, family), kind in found
        if family in _STOPPING and family in READ_FROM[kind]
    )
    if not reads or _LOOKED_THROUGH.holds((there.state, reads)):
        return
    try:
        there.frame.createOrReplaceTempView("lastbit_values")
        run(f"SELECT {', '.join(f'max({read}) IS NULL' for read in reads)} FROM lastbit_values")
    except Exception:  # its words may hold values
        pass
    else:
        _LOOKED_THROUGH.add((there.state, reads))
        return
    problem = "has a time or decimal out of range, or a file that cannot be read"
    raise _refused(there.source, problem, "write it again, with times in microseconds")


_STOPPING = ("decimal", "timestamp", "timestamptz")


_LOOKED_THROUGH = LookedThrough()


def _is_wide(kind: Any) -> bool:
    is_whole = isinstance(kind, types.DecimalType) and not kind.scale
    return is_whole and kind.precision > _WHOLE_DIGITS


def opened(session: Any, source: Source) -> Opened:
    """The source as a frame; no row is read. Refuses what may be another one at the next scan."""
    if isinstance(source.frame, SparkSnapshot):
        return Opened(source, source.frame.shown(session), (source.frame.content,), frozenset())
    there = _table(session, source) if source.table else _files(session, source)
    names = [field.name.lower() for field in there.frame.schema.fields]
    if len(set(names)) < len(names):
        problem = "has two columns whose names differ in case only"
        raise _refused(source, problem, "rename one of them")
    return there


def check_apart(private: Opened, public: Iterable[tuple[str, Opened]]) -> None:
    """Refuse a public table that is the private one: the same table or file, or frame."""
    for name, other in public:
        frame = private.source.frame
        if private.places & other.places or (frame is not None and frame is other.source.frame):
            problem, remedy = "is the table itself", "join only with tables that everybody may see"
            raise InvalidParameter(f"public table {name[:60]}", problem=problem, remedy=remedy)


def alike(one: Opened, other: Opened) -> bool:
    """Whether two sources have a file or table in common, or are made of one."""
    return not one.origins.isdisjoint(other.origins)


def check_unit_in_folders(there: Opened, unit: str | None) -> None:
    """Refuse a unit that the names of folders say: which folders there are is taken as public."""
    if unit is not None and unit.lower() in there.folders:
        problem = "is said by the names of folders, and one unit more would be a folder more"
        remedy = "write the unit into the files"
        raise InvalidParameter(f"unit {unit[:60]}", problem=problem, remedy=remedy)


def _files(session: Any, source: Source) -> Opened:
    """Parquet files and folders. Their schemas are all looked at: the first might be another."""
    for path in source.paths:
        place = session._jvm.org.apache.hadoop.fs.Path(path)
        if any(_has_log(session, place, name) for name in _LOGS):
            raise _refused(source, _OLD_FILES, _PLAIN)
    frame = session.read.option("mergeSchema", "true").parquet(*source.paths)
    return _of_files(session, source, frame, _relation(source, frame))


def _table(session: Any, source: Source) -> Opened:
    """A stored table of a catalog, by the name that the source has."""
    parts = session._jsparkSession.sessionState().sqlParser()
    parsed = parts.parseMultipartIdentifier(source.table)
    name = ".".join(SPARK.identifier(part) for part in _each(parsed))
    # each session remembers tables by name: what others write or make anew would not be seen
    session._jsparkSession.sessionState().catalog().invalidateAllCachedTables()
    frame = session.table(name)
    relation = _relation(source, frame)
    return _of_files(session, source, frame, relation)


def _of_files(session: Any, source: Source, frame: Any, relation: Any) -> Opened:
    """A frame whose rows are those of Parquet files, known by their states."""
    kind = relation.fileFormat().getClass().getSimpleName()
    if kind != _PARQUET:
        problem = "is not stored as Parquet, whose rows can be read one by one"
        raise _refused(source, problem, _PLAIN)
    options = {str(name).lower() for name in _each(relation.options().keys().toSeq())}
    if options & _OPTIONS:
        problem = "has options by which files are skipped or days shifted"
        raise _refused(source, problem, f"drop {', '.join(sorted(options & _OPTIONS))}")
    if relation.overlappedPartCols().nonEmpty():
        problem = "has a column that names of folders say as well"
        raise _refused(source, problem, "rename one of them")
    files = tuple(sorted(relation.location().inputFiles()))  # the frame's own names each once
    folders = frozenset(name.lower() for name in relation.partitionSchema().fieldNames())
    places = (*files, *_inodes(files))
    if len(set(places)) < len(places):
        problem, remedy = "has the same file under two names", "name each file once; links name it"
        raise _refused(source, problem, f"{remedy} again")
    _check_no_table(session, source, files)
    return Opened(source, frame, _states(session, files), frozenset(places), files, folders)


def _relation(source: Source, frame: Any) -> Any:
    leaf = _leaf(source, frame)
    if leaf.getClass().getSimpleName() == "LogicalRelation":
        relation = leaf.relation()
        if relation.getClass().getSimpleName() == "HadoopFsRelation":
            return relation
    raise _refused(source, "is neither Parquet files nor a stored table of them", _PLAIN)


def _leaf(source: Source, frame: Any) -> Any:
    """The stored table that a frame is, which nothing is done to."""
    plan = frame._jdf.queryExecution().analyzed()
    _check_uncached(source, frame)
    while plan.nodeName() == "SubqueryAlias":
        plan = plan.child()
    if plan.children().isEmpty():
        return plan
    problem = "is a view, which may have other rows at the next look"
    raise _refused(source, problem, "name a stored table, or write the view's rows to one")


def _local(files: Iterable[str]) -> list[str]:
    """The paths of those files that are on this machine."""
    return [unquote(urlsplit(file).path) for file in files if urlsplit(file).scheme == "file"]


def _inodes(files: tuple[str, ...]) -> list[str]:
    """What tells local files apart, by whatever names."""
    try:
        stats = [os.stat(path) for path in _local(files)]
    except OSError:
        raise EngineFailed(_CHANGED) from None
    return [f"{found.st_dev} {found.st_ino}" for found in stats]


def _states(session: Any, files: tuple[str, ...]) -> tuple[object, ...]:
    """Of each file its place, size and time; of local ones the inode too."""
    local = _local(files)
    if len(local) == len(files):
        try:
            stats = [os.stat(path) for path in local]
        except OSError:
            raise EngineFailed(_CHANGED) from None
        return tuple(
            (path, s.st_size, s.st_mtime_ns, s.st_ino) for path, s in zip(local, stats, strict=True)
        )
    listed = session.read.format("binaryFile").load(list(files))
    wanted = listed.selectExpr("path", "length", "unix_micros(modificationTime)")
    return tuple(sorted(tuple(row) for row in wanted.collect()))


def _check_no_table(session: Any, source: Source, files: tuple[str, ...]) -> None:
    """Refuse files of which a log says whether they count, however they are named.

    A log is not in a folder that says a column's value, of which there may be many.
    """
    ways = {os.path.dirname(file) for file in files}
    ways |= {Path(os.path.realpath(path)).parent.as_uri() for path in _local(files)}
    tops = {way[: found.start()] if (found := _VALUED.search(way)) else way for way in ways}
    path = session._jvm.org.apache.hadoop.fs.Path
    for top in sorted(tops):
        place = path(session._jvm.java.net.URI(top))
        if any(_has_log(session, place, name) for name in _LOGS):
            raise _refused(source, _OLD_FILES, _PLAIN)


def _has_log(session: Any, place: Any, name: str) -> bool:
    """Whether a folder, or one around it, keeps a log of which of its files count."""
    jvm = session._jvm
    files = place.getFileSystem(session._jsparkSession.sessionState().newHadoopConf())
    while place is not None:
        log = jvm.org.apache.hadoop.fs.Path(place, name)
        if files.exists(log) and (name != "metadata" or _has_versions(files, log)):
            return True
        place = place.getParent()
    return False


def _has_versions(files: Any, log: Any) -> bool:
    if not files.getFileStatus(log).isDirectory():
        return False
    return any(one.getPath().getName().endswith(".metadata.json") for one in files.listStatus(log))


def _each(found: Any) -> Iterator[Any]:
    """The items of a sequence of Scala."""
    return (found.apply(place) for place in range(found.size()))


def _refused(source: Source, problem: str, remedy: str) -> InvalidParameter:
    place = source.table or ", ".join(source.paths)
    return InvalidParameter(f"source spark:{place[:60]}", problem=problem, remedy=remedy)
