"""Rows made ready once: as the card reads them, sorted by unit, with numbers beside each.

What takes time in a question is to read text, and to meet each row with the number of its unit's
rows, in whatever order these lie. `preparing.py` does both once, for one state of the source.

Law      the rows are those of the source, each once, with the columns of the card, cast and checked
         as a statement does it (`rows.cast_rows`): to do it again changes nothing. Beside them are
         a number of the unit, another for another unit; and for each counting statement (without
         WHERE and joins) that was prepared, how many rows of the unit it counts
Theorem  a question answered from prepared rows has the same integers as from the source, so nothing
         that is proved of an answer changes
Proof    the statement is the same, on the same rows, but for two things. Where no unit is hashed it
         is grouped by its number, a bijection of units. Where the text of the counting statement
         is the one that was prepared (the column is named by its digest), the n of its unit that
         stands beside a row of r is what count(*) over the unit's rows of r would give
Theorem  the order of rows decides nothing: a statement has the same integers in every order
Theorem  no private row decides what is used: that a question has a prepared count depends on its
         text, on the card and on which counts were prepared, which the card says
Theorem  wrong numbers would be wrong weights, so they are not believed but checked: `preparing.py`
         counts again over the bytes that were written, and then binds these: by their SHA-256,
         and by inode, size and times, which spare the digest as long as they are the same
Refused  what is of another state of the source, another card, or version; is damaged, another
         file, or not for its owner alone. Where the folder is not there, the source is read
Differs  whoever owns the files can write both anew, as with the source itself. Like it, they hold
         private rows: the folder and its files are for their owner alone
Checked  tests/tables/backends/test_prepared.py
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Collection, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any

import duckdb

from lastbit.errors import InvalidParameter
from lastbit.tables.backends.duckdb.files import Opened, opened, stamp
from lastbit.tables.backends.duckdb.unit_index import counting_statement
from lastbit.tables.backends.engines import LookedThrough
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.compile.numbers import Numbers
from lastbit.tables.query.expression import StoredType
from lastbit.tables.query.scan import Scan

MADE = "made.json"
UNIT = "lastbit_unit"
ROWS = "lastbit_rows_"
REMEDY = "run lastbit card prepare again, or lastbit card unprepare to read the source"
LAYOUT = 1
_LONGEST_NOTE = 1 << 20
_FILE = re.compile(r"rows-[0-9a-f]{32}\.parquet")
_VERIFIED = LookedThrough()


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What is noted beside prepared rows: their file, of what they are made, and the counts."""

    file: str
    made_of: str
    content: str
    stamp: tuple[int, ...]
    counts: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """What `note_of` reads."""
        return {name: getattr(self, name) for name in Note.__slots__}


def prepared_rows(card: DataCard, held: ExitStack) -> tuple[Opened, dict[str, StoredType]]:
    """The rows, verified and held open, with their columns; refuses what is not of the source."""
    folder = card.prepared or ""
    note = read_note(folder)
    if note.made_of != origin(card):
        raise refused("is of another state of the source, another card, or another version")
    path = os.path.join(folder, note.file)
    _check_own(path, stat.S_ISREG)
    there = held.enter_context(opened(Source(kind="parquet", paths=(path,))))
    _check_bytes(there, note)
    columns: dict[str, StoredType] = dict(card.columns_at(0))
    if card.unit is not None:
        columns |= dict.fromkeys((UNIT, *map(ROWS.__add__, note.counts)), "integer")
    return there, columns


def numbers(query: Scan, card: DataCard) -> Numbers | None:
    """The numbers beside these rows that the question can use."""
    return numbers_among(query, card, read_note(card.prepared or "").counts)


def numbers_among(query: Scan, card: DataCard, counts: Collection[str]) -> Numbers | None:
    """The same where these counting statements, by digest, have a number beside each row."""
    if card.unit is None or query.all_joins or query.per_unit or card.through:
        return None
    counting, rows = counting_statement(query, card), None
    if counting is not None and digest(counting) in counts:
        rows = ROWS + digest(counting)
    added = {name: Column(name=name, type="integer") for name in (UNIT, rows) if name}
    columns = {**card.columns, **added}
    return Numbers(card=replace(card, unit=UNIT, columns=columns, private={}), rows=rows)


def origin(card: DataCard) -> str:
    """Says of which state of the source, and by which card and version, rows are made."""
    import lastbit  # late: the package imports this room

    source, versions = card.source, (LAYOUT, lastbit.__version__, duckdb.__version__)
    columns = sorted(card.columns_at(0).items())
    said = versions, source.kind, source.paths, source.table, card.unit, columns
    return digest(*said, stamp(source))


def digest(*parts: object) -> str:
    """Of these parts, in 32 letters: the name of a column, and of what rows are made of."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]


def refused(problem: str) -> InvalidParameter:
    """An error about prepared rows; it names no path, and says how to go on."""
    return InvalidParameter("the prepared table", problem=problem, remedy=REMEDY)


def stamp_of(found: os.stat_result) -> tuple[int, ...]:
    """What is another one once a file was written to, or is another file."""
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def check_private(folder: str) -> None:
    """Refuse a folder that is a link, or that somebody else owns or may read."""
    _check_own(folder, stat.S_ISDIR)


def is_rows_file(name: str) -> bool:
    """Whether a file has the name of prepared rows."""
    return _FILE.fullmatch(name) is not None


def verify(there: Opened, note: Note) -> bool:
    """Whether the bytes are those that were written, all of them read for that."""
    with open(there.names[0], "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == note.content


def _check_own(path: str, kind: Any) -> None:
    """Refuse a link, another kind of thing, and what somebody else owns or may read."""
    try:
        found = os.lstat(path)
    except OSError:
        raise refused("is not whole") from None
    if not kind(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise refused("is not a folder and files for their owner alone")


def read_note(folder: str) -> Note:
    """What is noted in this folder, which must be private, as its file must."""
    check_private(folder)
    path = os.path.join(folder, MADE)
    _check_own(path, stat.S_ISREG)
    unreadable = suppress(OSError, ValueError, TypeError, RecursionError, KeyError)
    with unreadable, open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        return _note_of(json.loads(file.read(_LONGEST_NOTE)))
    raise refused("has a note that cannot be read")


def _note_of(data: Mapping[str, Any]) -> Note:
    said = {name: data[name] for name in Note.__slots__}
    lists = {name: tuple(said[name]) for name in ("stamp", "counts")}
    texts = [said["file"], said["made_of"], said["content"], *lists["counts"]]
    if not all(type(text) is str for text in texts) or not _FILE.fullmatch(said["file"]):
        raise ValueError("no note")
    return Note(**{**said, **lists})


def _check_bytes(there: Opened, note: Note) -> None:
    """Refuse other bytes than were written. Those of an unchanged file are not read for that."""
    with open(there.names[0], "rb") as file:
        found = stamp_of(os.fstat(file.fileno()))
    if found == note.stamp or _VERIFIED.holds((found, note.content)):
        return
    if not verify(there, note):
        raise refused("was changed after it was made")
    _VERIFIED.add((found, note.content))
