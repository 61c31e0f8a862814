"""Sources of Spark as frames of a session: each row is read by what stands in it, and no other.

Law      what a row is read as is a function of that row, of the card and of the source's schema,
         as in `duckdb/sources.py`; and every scan of a question reads the same rows
Theorem  tables and paths of Parquet, Delta and Iceberg alone are read, and no view: files are
         listed once, of Delta and Iceberg one version is named. A view or another source may draw
         random numbers, or read what has changed. A snapshot is read from Spark's own storage
         (`snapshot.py`). Whether a file changed meanwhile is seen from its size, time and inode
Theorem  nothing is guessed from values: Parquet states its types, and what a folder's name says
         (year=2024) is text. Options of a table that would skip files or shift days are refused
Refused  columns of nested types, bytes, times of day and durations, and CHAR(n), which every engine
         fills with blanks in its own way; wide whole decimals as numbers
Checked  tests/engines/test_spark.py
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlsplit

from pyspark.sql import functions, types

from lastbit.errors import EngineFailed, InvalidParameter
from lastbit.tables.backends.spark.snapshot import SparkSnapshot
from lastbit.tables.card.schema import Source
from lastbit.tables.compile.dialect import Family
from lastbit.tables.compile.spark import SPARK
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
_TYPES: Mapping[Family, ColumnType] = MappingProxyType(
    {"decimal": "number", "timestamptz": "timestamp"}
)
_WHOLE_DIGITS = 18  # beyond, DuckDB has 128 bits, and makes doubles of them by two roundings
_LOGS = ("_delta_log", "metadata")
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


def columns_found(there: Opened) -> dict[str, ColumnType]:
    """The readable columns, with the types of a card that are nearest."""
    found: dict[str, ColumnType] = {}
    for field in there.frame.schema.fields:
        family = family_of(field)
        if family == "decimal" and not field.dataType.scale:
            found[field.name] = "integer"
        elif family != "other":
            found[field.name] = _TYPES.get(family, family)  # type: ignore[arg-type]
    return found


def chosen(there: Opened, wanted: Mapping[str, ColumnType]) -> Any:
    """The frame with the columns that the card declares; refuses those that cannot be read."""
    fields = {field.name.lower(): field for field in there.frame.schema.fields}
    for name, kind in wanted.items():
        _check_column(name, kind, fields.get(name.lower()))
    names = [SPARK.identifier(fields[name.lower()].name) for name in wanted]
    return there.frame.select(*map(functions.col, names))


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


def check_unit_in_folders(there: Opened, unit: str | None) -> None:
    """Refuse a unit that the names of folders say: which folders there are is taken as public."""
    if unit is not None and unit.lower() in there.folders:
        problem = "is said by the names of folders, and one unit more would be a folder more"
        remedy = "write the unit into the files"
        raise InvalidParameter(f"unit {unit[:60]}", problem=problem, remedy=remedy)


def _files(session: Any, source: Source) -> Opened:
    """Parquet files and folders. Their schemas are all looked at: the first might be another."""
    for path in source.paths:
        log = next((name for name in _LOGS if _has_log(session, path, name)), None)
        if log == "_delta_log" and len(source.paths) == 1:
            name = f"delta.{SPARK.identifier(path)}"
            return _versioned(session, source, name, "delta", frozenset((path,)))
        if log is not None:
            problem = "has files that the table does not hold any more: a log says which it does"
            raise _refused(source, problem, "name the table: spark:catalog.db.table")
    frame = session.read.option("mergeSchema", "true").parquet(*source.paths)
    return _of_files(session, source, frame, _relation(source, frame))


def _table(session: Any, source: Source) -> Opened:
    """A stored table of a catalog, by the name that the source has."""
    parts = session._jsparkSession.sessionState().sqlParser()
    parsed = parts.parseMultipartIdentifier(source.table)
    name = ".".join(SPARK.identifier(part) for part in _each(parsed))
    frame = session.table(name)
    leaf = _leaf(source, frame)
    kind = leaf.getClass().getSimpleName()
    if kind == "DataSourceV2Relation" and "iceberg" in leaf.table().getClass().getName():
        return _versioned(session, source, name, "iceberg", frozenset((name.lower(),)))
    relation = _relation(source, frame)
    if "Delta" in relation.fileFormat().getClass().getSimpleName():
        return _versioned(session, source, name, "delta", frozenset((name.lower(),)))
    return _of_files(session, source, frame, relation)


def _of_files(session: Any, source: Source, frame: Any, relation: Any) -> Opened:
    """A frame whose rows are those of Parquet files, known by their states."""
    kind = relation.fileFormat().getClass().getSimpleName()
    if kind != _PARQUET:
        problem = "is not stored as Parquet, whose rows can be read one by one"
        raise _refused(source, problem, "write it as Parquet, Delta or Iceberg")
    options = {str(name).lower() for name in _each(relation.options().keys().toSeq())}
    if options & _OPTIONS:
        problem = "has options by which files are skipped or days shifted"
        raise _refused(source, problem, f"drop {', '.join(sorted(options & _OPTIONS))}")
    if relation.overlappedPartCols().nonEmpty():
        problem = "has a column that names of folders say as well"
        raise _refused(source, problem, "rename one of them")
    files = tuple(sorted(frame.inputFiles()))
    folders = frozenset(name.lower() for name in relation.partitionSchema().fieldNames())
    return Opened(source, frame, _states(session, files), frozenset(files), files, folders)


def _versioned(
    session: Any, source: Source, name: str, kind: str, places: frozenset[str]
) -> Opened:
    """A table that keeps its versions: the newest one, by its number."""
    if kind == "delta":
        newest = session.sql(f"DESCRIBE HISTORY {name} LIMIT 1").collect()[0]["version"]
    else:
        snapshots = f"SELECT snapshot_id FROM {name}.snapshots"
        found = session.sql(f"{snapshots} ORDER BY committed_at DESC LIMIT 1").collect()
        if not found:
            raise _refused(source, "is empty, and has no version", "write rows to it first")
        newest = found[0][0]
    frame = session.sql(f"SELECT * FROM {name} VERSION AS OF {int(newest)}")
    return Opened(source, frame, (kind, name, int(newest)), places)


def _relation(source: Source, frame: Any) -> Any:
    leaf = _leaf(source, frame)
    if leaf.getClass().getSimpleName() == "LogicalRelation":
        relation = leaf.relation()
        if relation.getClass().getSimpleName() == "HadoopFsRelation":
            return relation
    problem = "is neither files nor a stored table of Parquet, Delta or Iceberg"
    raise _refused(source, problem, "write it as one of these")


def _leaf(source: Source, frame: Any) -> Any:
    """The stored table that a frame is, which nothing is done to."""
    plan = frame._jdf.queryExecution().analyzed()
    if "InMemoryRelation" in frame._jdf.queryExecution().withCachedData().toString():
        problem = "is cached, as another session has read it"
        raise _refused(source, problem, "uncache it: spark.catalog.uncacheTable(...)")
    while plan.nodeName() == "SubqueryAlias":
        plan = plan.child()
    if plan.children().isEmpty():
        return plan
    problem = "is a view, which may have other rows at the next look"
    raise _refused(source, problem, "name a stored table, or write the view's rows to one")


def _states(session: Any, files: tuple[str, ...]) -> tuple[object, ...]:
    """Of each file its place, size and time; of local ones the inode too."""
    local = [unquote(urlsplit(file).path) for file in files if urlsplit(file).scheme == "file"]
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


def _has_log(session: Any, path: str, name: str) -> bool:
    """Whether a folder, or one around it, keeps a log of which of its files count."""
    jvm = session._jvm
    place = jvm.org.apache.hadoop.fs.Path(path)
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
