"""Rows of the file: entries read with their hashes checked, and one appended."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from lastbit.canonical import sha256
from lastbit.ledger.entry import Entry, Malformed
from lastbit.ledger.storage import damaged

_COLUMNS = "SELECT sequence, account, question, text, hash"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An entry as the file holds it: its text and hash, its record, and what it is found by."""

    sequence: int
    account: str | None
    question: str | None
    text: str
    hash: str
    record: str | None = field(default=None, repr=False)


def rows(connection: sqlite3.Connection, where: str, *values: object) -> Iterator[Row]:
    """The rows that this SQL tail picks, without their records, which may be long."""
    for found in connection.execute(f"{_COLUMNS} FROM entries {where}", values):
        yield _row(*found)


def whole_rows(connection: sqlite3.Connection, where: str, *values: object) -> Iterator[Row]:
    """The same with their records."""
    for found in connection.execute(f"{_COLUMNS}, record FROM entries {where}", values):
        yield _row(*found)


def _row(
    sequence: int,
    account: str | None,
    question: str | None,
    text: str,
    hash_: str,
    record: str | None = None,
) -> Row:
    return Row(
        sequence=sequence,
        account=account,
        question=question,
        text=text,
        hash=hash_,
        record=record,
    )


def readable(row: Row) -> Entry:
    """The entry of a row whose text, hash and columns fit; else Malformed says which does not."""
    if not isinstance(row.text, str) or not row.text.isascii():
        raise Malformed("is no text")
    if sha256(row.text) != row.hash:
        raise Malformed("does not fit its hash")
    entry = Entry.read(row.text)
    if (row.sequence, row.account, row.question) != (entry.sequence, entry.account, entry.question):
        raise Malformed("is filed under another number, account or question")
    return entry


def check_record(row: Row, entry: Entry) -> None:
    """Raise Malformed unless the answer beside an entry is the one that it was written with."""
    if (row.record is None) != (entry.result is None):
        raise Malformed("has lost its answer, or has one that is not its own")
    if row.record is None:
        return
    text = row.record
    if not isinstance(text, str) or not text.isascii() or sha256(text) != entry.result:
        raise Malformed("has an answer that was changed")


def entry_of(place: Path, row: Row) -> Entry:
    """The entry of a row; a ledger that holds another is damaged."""
    try:
        return readable(row)
    except Malformed as problem:
        raise _refused(place, row, problem) from None


def whole_entry_of(place: Path, row: Row) -> Entry:
    """The entry with its answer, which has to be the one that was charged."""
    entry = entry_of(place, row)
    try:
        check_record(row, entry)
    except Malformed as problem:
        raise _refused(place, row, problem) from None
    return entry if row.record is None else entry.with_record(json.loads(row.record))


def _refused(place: Path, row: Row, problem: Malformed) -> Exception:
    return damaged(
        place, f"was changed: entry {row.sequence} {problem}; look at lastbit ledger verify"
    )


def appended(
    connection: sqlite3.Connection, draft: Entry, record: str | None, *, after: tuple[int, str]
) -> Entry:
    """Write a draft as the entry that follows the one with this number and hash."""
    number, previous = after
    # the number orders the entries; the clock is only quoted, since clocks go back
    when = datetime.now(UTC).isoformat(timespec="milliseconds")
    entry = replace(draft, sequence=number + 1, when=when, previous=previous)
    Entry.read(entry.text)  # what could not be read again is never written
    connection.execute(
        "INSERT INTO entries (sequence, account, question, text, hash, record) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (entry.sequence, entry.account, entry.question, entry.text, entry.hash, record),
    )
    return entry
