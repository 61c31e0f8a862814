"""The files of a source, each once, and the same ones from the first look to the last.

Law      a pattern is written out once; each file is then known by its device and inode, size and
         times, and what is read is what was looked at: CSV through the descriptor that was opened,
         Parquet by way of the kernel's name of that descriptor, a DuckDB file by its real path
Theorem  no file is read twice under two names (a pattern and a name, links of either kind, `..`,
         another case, a second mount): equal device and inode are refused. So where each row is a
         unit, no unit has two rows for that reason. A public table is not the private one, and no
         table is on the way to a unit twice
Differs  two copies of a file are two files, and nothing here sees that they say the same. More than
         256 Parquet files are read by their real paths; that they changed in between is then seen
         from their inodes and times
Checked  tests/tables/backends/test_duckdb_files.py

A folder with a `_delta_log` is a Delta table (`delta.py`).

Refused  files of Delta, Iceberg and Hudi tables by name, pattern or folder: two copies of one row
         would be two units where each row is a unit
Checked  tests/tables/backends/test_lakes.py

Folders. A folder stands for the data files below it, whatever their depth; names that begin with
. or _ are notes of the programs that wrote them.

Law      of a file that a folder or pattern found, `year=2024` on its way there is a column: text,
         with %20 for a blank, missing if __HIVE_DEFAULT_PARTITION__. A column of that name that
         the file itself has goes before it
Theorem  what a row reads there depends on where its file is, and on no other row
Refused  files whose ways name different columns
Checked  tests/tables/backends/test_folders.py
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias
from urllib.parse import unquote

from lastbit.errors import EngineFailed, InvalidParameter
from lastbit.tables.card.schema import Source

_MOST_HELD = 256
_MOST_PARTITIONS = 1_000
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_WILD = re.compile(r"[*?\[]")
ENDINGS = MappingProxyType(
    {"csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"), "parquet": (".parquet", ".pq")}
)
_PARTS = MappingProxyType(
    {
        "delta": "lastbit.tables.backends.duckdb.delta",
        "duckdb": "lastbit.tables.backends.duckdb.stored_tables",
        "frame": "lastbit.tables.backends.duckdb.frames",
        "prepared": "lastbit.tables.backends.duckdb.prepared",
        "units": "lastbit.tables.backends.duckdb.unit_index",
        "words": "lastbit.tables.backends.duckdb.words",
    }
)
CHANGED = "a file of the source changed while it was read; ask again"
DESCRIPTORS = "/proc/self/fd"

Partition: TypeAlias = tuple[tuple[str, str | None], ...]
Seen: TypeAlias = tuple[tuple[str, ...], tuple[tuple[int, ...], ...], tuple[Partition, ...]]


@dataclass(frozen=True, slots=True)
class Opened:
    """A source, its files by their real paths, and the names under which they are to be read."""

    source: Source
    paths: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    stamps: tuple[tuple[int, ...], ...] = ()
    partitions: tuple[Partition, ...] = ()
    """Of each file, the columns that its way there says; () if none does."""

    @property
    def seen(self) -> Seen:
        """The files as they were when they were opened."""
        return self.paths, self.stamps, self.partitions

    @property
    def said(self) -> tuple[Partition, ...]:
        """The same, one for each file."""
        return self.partitions or ((),) * len(self.paths)

    @property
    def now(self) -> Seen | None:
        """The same by now; None if they are gone."""
        try:
            found = _found(self.source)
            paths = tuple(os.path.realpath(path) for path, _ in found)
            return paths, _stamps(self.source, paths, paths), _partitions(found)
        except (InvalidParameter, OSError):
            return None

    def check_unchanged(self) -> None:
        """Refuse what was read if the files are others by now."""
        if self.now != self.seen:
            raise EngineFailed(CHANGED)


@contextmanager
def opened(source: Source) -> Iterator[Opened]:
    """The files of a source, held open; refuses one that is named twice."""
    found = _found(source)
    paths = tuple(os.path.realpath(path) for path, _ in found)
    with ExitStack() as held:
        names = paths
        if source.kind == "parquet" and len(paths) <= _MOST_HELD and os.path.isdir(DESCRIPTORS):
            names = tuple(_held(path, held) for path in paths)
        stamps = _stamps(source, paths, names)
        places = [stamp[:2] for stamp in stamps]
        for path, place in zip(paths, places, strict=False):
            if places.count(place) > 1:
                problem = "is the same file under two names"
                remedy = "name each file once; a pattern, a link or .. may name it again"
                shown = f"source {without_values(path)}"
                raise InvalidParameter(shown, problem=problem, remedy=remedy)
        yield Opened(source, paths, names, stamps, _partitions(found))


def part(name: str) -> Any:
    """What questions on Parquet and CSV do without; docs/generate_trusted.py counts each apart."""
    return import_module(_PARTS[name])


def check_apart(private: Opened, public: Iterable[tuple[str, Opened]]) -> None:
    """Refuse a public table that is the private one: the same file and table, or frame."""
    for name, other in public:
        if alike(private, other):
            problem = "is the table itself"
            remedy = "join only with tables that everybody may see"
            raise InvalidParameter(f"public table {name[:60]}", problem=problem, remedy=remedy)


def alike(one: Opened, other: Opened) -> bool:
    """Whether two sources have a file and table, or the frame, in common."""
    places = {stamp[:2] for stamp in one.stamps}
    files = any(stamp[:2] in places for stamp in other.stamps)
    frame = one.source.frame
    if files and one.source.may_be_table_of(other.source):
        return True
    return frame is not None and frame is other.source.frame


def check_unit_in_files(private: Opened, unit: str | None) -> None:
    """Refuse a unit that the names of folders say: which folders there are is taken as public."""
    names = {name.lower() for partition in private.partitions for name, _ in partition}
    if unit is not None and unit.lower() in names:
        problem = "is said by the names of folders, and one unit more would be a folder more"
        remedy = "write the unit into the files"
        raise InvalidParameter(f"unit {unit[:60]}", problem=problem, remedy=remedy)


def without_values(path: str) -> str:
    """The path for people: values of columns in the names of folders are not shown.

    >>> without_values("/data/city=York/a=b.csv")
    '/data/city=.../a=b.csv'
    """
    *folders, file = path.split(os.sep)
    shown = (f"{f.partition('=')[0]}=..." if "=" in f else f for f in folders)
    return os.sep.join([*shown, file])


def _found(source: Source) -> list[tuple[str, Partition]]:
    """The files, each with the columns that its way there says, or a table's log."""
    found: list[tuple[str, Partition]] = []
    if source.kind == "frame":
        return found
    folders: set[str] = set()
    for path in source.paths:
        if "://" in path:
            raise InvalidParameter(
                f"source {path}", problem="is not a file here", remedy="download it first"
            )
        if source.kind == "parquet" and is_delta(path):
            found += part("delta").files_in_delta(path)
            continue
        if source.kind in ENDINGS and os.path.isdir(path):
            matches, root = files_below(path, source.kind), path
        elif os.path.exists(path):
            matches, root = [path], path
        else:
            matches = sorted(glob.glob(path, recursive=True))
            root = os.path.dirname(_WILD.split(path, maxsplit=1)[0])
        if not matches or not all(map(os.path.isfile, matches)):
            raise InvalidParameter(
                f"source {path}", problem="is not there", remedy="check the path"
            )
        start = os.path.abspath(root)
        files = [os.path.abspath(match) for match in matches]
        folders |= {os.path.dirname(os.path.realpath(file)) for file in files}
        found += ((file, _way(file, start)) for file in files)
    if source.kind in ENDINGS:
        _check_no_table(folders)
    if not found:
        raise InvalidParameter("source", problem="names no file", remedy="name one")
    return found


def files_below(folder: str, kind: str) -> list[str]:
    """The data files in a folder and in those below it, in order."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        names = (name for name in files if not name.startswith((".", "_")))
        found += [os.path.join(place, n) for n in names if n.lower().endswith(ENDINGS[kind])]
    return sorted(found)


def is_delta(path: str) -> bool:
    """Whether a folder is a Delta table."""
    return os.path.isdir(os.path.join(path, "_delta_log"))


def _check_no_table(folders: set[str]) -> None:
    """Refuse folders in which a log says what counts: files alone do not."""
    above = {str(one) for folder in folders for one in (Path(folder), *Path(folder).parents)}
    for folder in sorted(above):
        hint = glob.glob(os.path.join(glob.escape(folder), "metadata", "*.metadata.json"))
        if is_delta(folder):
            kind, remedy = "Delta", f"name the folder of the table: {without_values(folder)}"
        elif hint:
            kind, remedy = "Iceberg", "write the rows that count as Parquet, and name that"
        elif os.path.isdir(os.path.join(folder, ".hoodie")):
            kind, remedy = "Hudi", "write the rows that count as Parquet, and name that"
        else:
            continue
        problem = f"has files of a table of {kind}, some of which may be old or deleted"
        raise InvalidParameter("source", problem=problem, remedy=remedy)


def _way(file: str, root: str) -> Partition:
    """The columns that the way to a file says, from the searched folder on."""
    way = os.path.relpath(file, root).split(os.sep)[:-1]
    return tuple(_column(part) for part in way if "=" in part)


def _partitions(files: Iterable[tuple[str, Partition]]) -> tuple[Partition, ...]:
    """Of each file, the columns that are said elsewhere than in it; () if none are."""
    found = [said for _, said in files]
    names = {tuple(name.lower() for name, _ in partition) for partition in found}
    if names <= {()}:
        return ()
    (first, *others) = names
    if others or len(set(first)) < len(first):
        problem = "has files whose folders name different columns (as in year=2024)"
        remedy = "name the files of one kind, or move the others"
        raise InvalidParameter("source", problem=problem, remedy=remedy)
    if len(set(found)) > _MOST_PARTITIONS:
        problem = f"has more than {_MOST_PARTITIONS:,} folders with values of their own"
        remedy = "write it as fewer: by month instead of by day"
        raise InvalidParameter("source", problem=problem, remedy=remedy)
    return tuple(found)


def _column(part: str) -> tuple[str, str | None]:
    """Name and value that a folder's name says.

    >>> _column("city=New%20York"), _column("year=__HIVE_DEFAULT_PARTITION__")
    (('city', 'New York'), ('year', None))
    """
    name, _, value = part.partition("=")
    read = unquote(value)
    return unquote(name), None if value == _NO_VALUE else read if "\0" not in read else value


def stamp(source: Source) -> tuple[tuple[str, int, int, int], ...]:
    """What tells one state of the files from another, also tomorrow: place, size, time, inode."""
    found = _found(source)
    paths = [path for path, _ in found]
    stats = [(path, os.stat(path)) for path in [*paths, *_beside(source, paths)]]
    # of other files the paths say so already
    said = [(repr(one), 0, 0, 0) for _, one in found if any(map(is_delta, source.paths))]
    return (*((path, s.st_size, s.st_mtime_ns, s.st_ino) for path, s in stats), *said)


def _held(path: str, held: ExitStack) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    held.callback(os.close, descriptor)
    return f"{DESCRIPTORS}/{descriptor}"


def _stamps(
    source: Source, paths: tuple[str, ...], names: tuple[str, ...]
) -> tuple[tuple[int, ...], ...]:
    stats = map(os.stat, [*names, *_beside(source, paths)])
    return tuple((s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in stats)


def _beside(source: Source, paths: Iterable[str]) -> list[str]:
    """What was written last to a DuckDB file may still be beside it."""
    if source.kind != "duckdb":
        return []
    return [f"{path}.wal" for path in paths if os.path.exists(f"{path}.wal")]
