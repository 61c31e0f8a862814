"""Which units have more than max_rows rows, kept from one question to the next, beside the ledger.

To count the rows of each unit is most of the work of a question. Without WHERE and joins the count
is the same for every question with the same keys, until the data change.

Law      a file of the index holds what one statement gave (`units_statement`: the units
         with more than max_rows rows, and how many) on one state of the source's files. Its name
         has digests of the statement, of that state (the files with their devices, inodes, sizes
         and times, the columns of the card, the versions of lastbit and DuckDB) and of its content
Theorem  a question answered with the index has the same integers as without it, so nothing that is
         proved of an answer changes
Proof    a file is read only if its name has the digests of this statement and of the files as this
         question has opened them, and if its bytes have the digest in its name; so it is what the
         statement gave when the files were in this state. That is what it would give now: a change
         of a file gives it another time, since a file is counted for the index only when its times
         are two seconds old. If the files change before the question ends, it ends with an error
Theorem  whatever the folder holds, a question is answered, or fails as it would without: what
         cannot be read, is damaged, or belongs to somebody else, is not used
Differs  the index holds identifiers of units, as the source does: its folder and files are for
         their owner alone, and `index = false` under [engine] on the card does without. That a file
         is there tells that such a question was asked, which is in the ledger
Checked  tests/tables/backends/test_unit_index.py
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from tempfile import mkstemp
from typing import Any

import duckdb

from lastbit.errors import LastbitError
from lastbit.tables.backends.duckdb.files import DESCRIPTORS, Opened
from lastbit.tables.backends.duckdb.sources import file_list
from lastbit.tables.card.schema import DataCard
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.rows import CompiledRows
from lastbit.tables.compile.statement import COUNTED_UNITS, bounded_rows
from lastbit.tables.compile.steps import string
from lastbit.tables.query.expression import ColumnType
from lastbit.tables.query.scan import Scan

_FORMAT = 1
_MOST_FILES = 16  # of one source: each list of declared keys has a file of its own
_SETTLED = 2 * 10**9  # nanoseconds: the coarsest clock of a file system
_LOST = 3600  # seconds after which what a killed process was writing is removed
_PART = "part-"
_UNUSABLE = (OSError, duckdb.Error, LastbitError)  # the last: a path that SQL cannot say


@dataclass(frozen=True, slots=True)
class UnitIndex:
    """The index of one question: its folder, and the beginnings of its file's name."""

    folder: str
    place: str
    state: str
    statement: str
    counting: str
    """The statement that counts."""
    settled: bool
    """Whether the files have been as they are for long enough, when they were opened."""

    def show(self, connection: Any, run: Callable[[str], object]) -> bool:
        """Make the counted units a table of this session; whether they had to be counted."""
        made = f"CREATE TEMP TABLE {COUNTED_UNITS} AS"
        names: list[str] = []
        with suppress(*_UNUSABLE):
            names = list(_names(self.folder, self._beginning) if _is_private(self.folder) else ())
        for name in names:
            with suppress(*_UNUSABLE), _verified(self.folder, name) as path:
                connection.execute(f"{made} SELECT u, n FROM read_parquet({file_list([path])})")
                return False
        run(f"{made} {self.counting}")
        return True

    def keep(self, connection: Any) -> None:
        """Write what was counted; the files must still be as they were opened."""
        with suppress(*_UNUSABLE):  # the next question counts again
            with suppress(FileExistsError):
                os.mkdir(self.folder, 0o700)
            if self.settled and _is_private(self.folder):
                self._remove_old()
                self._write(connection)

    @property
    def _beginning(self) -> str:
        return f"{self.place}-{self.state}-{self.statement}-"

    def _write(self, connection: Any) -> None:
        descriptor, part = mkstemp(prefix=_PART, dir=self.folder)  # for its owner alone
        os.close(descriptor)
        try:
            options = "FORMAT parquet, USE_TMP_FILE false"
            connection.execute(f"COPY {COUNTED_UNITS} TO {string(part)} ({options})")
            with open(part, "rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            os.rename(part, os.path.join(self.folder, f"{self._beginning}{content}"))
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part)

    def _remove_old(self) -> None:
        """What is of other states of this source, or too much of it, or was left half-written."""
        own = f"{self.place}-{self.state}-"
        named = [os.path.join(self.folder, name) for name in _names(self.folder, self.place)]
        old = [path for path in named if not os.path.basename(path).startswith(own)]
        current = sorted((path for path in named if path not in old), key=os.path.getmtime)
        parts = [os.path.join(self.folder, name) for name in _names(self.folder, _PART)]
        lost = [path for path in parts if os.path.getmtime(path) < time.time() - _LOST]
        for path in (*old, *current[: 1 - _MOST_FILES], *lost):
            with suppress(FileNotFoundError):
                os.unlink(path)


def units_statement(query: Scan, card: DataCard) -> str | None:
    """Units with more than max_rows rows in `r`, and how many; None if a filter or a join decides.

    Theorem  r has the same units and rows whatever is measured: a measure adds columns to e and r.
             So this is what `h` is made of, in every question with the same keys, unit and types
    """
    counting = counting_statement(query, card)
    return None if counting is None else f"{counting} HAVING count(*) > {card.max_rows}"


def counting_statement(query: Scan, card: DataCard) -> str | None:
    """The same of all units, however many rows they have."""
    elsewhere = query.all_joins or query.per_unit or card.through
    if card.unit is None or query.where is not None or elsewhere:
        return None
    parts = bounded_rows(CompiledRows(query, card, dialect=DUCKDB), {})
    return "WITH " + ",\n".join(parts) + "\nSELECT u, count(*) AS n FROM r GROUP BY u"


def unit_index(
    folder: str, counting: str, there: Opened, columns: Mapping[str, ColumnType], *, begun: int
) -> UnitIndex:
    """The index of what this statement counts in these files; opened after `begun`, in ns."""
    import lastbit  # late: the package imports this room

    source, versions = there.source, (_FORMAT, lastbit.__version__, duckdb.__version__)
    return UnitIndex(
        folder=folder,
        place=_digest(source.kind, source.paths, source.table)[:16],
        state=_digest(versions, source.kind, source.table, there.seen, sorted(columns.items())),
        statement=_digest(counting),
        counting=counting,
        settled=all(max(stamp[-2:]) + _SETTLED < begun for stamp in there.stamps),
    )


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _names(folder: str, beginning: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith(beginning))


def _is_private(folder: str) -> bool:
    """Whether the folder is there and for its owner alone, and that is this user."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    return _own(found) and stat.S_ISDIR(found.st_mode)


def _own(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & 0o077


@contextmanager
def _verified(folder: str, name: str) -> Iterator[str]:
    """A path of the file, whose bytes are what its name says; else an OSError."""
    path, flags = os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    with open(os.open(path, flags), "rb") as file:
        found = os.fstat(file.fileno())
        if not _own(found) or not stat.S_ISREG(found.st_mode):
            raise OSError("not private")
        if hashlib.file_digest(file, "sha256").hexdigest() != name.rpartition("-")[2]:
            raise OSError("damaged")
        yield f"{DESCRIPTORS}/{file.fileno()}" if os.path.isdir(DESCRIPTORS) else path
