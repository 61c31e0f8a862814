r"""Reservations: which are open, and which entry answers one.

An entry of a question that has no answer beside it is a reservation; it is settled if a later entry
of the same question names its hash. In the canonical JSON of an entry the letters
`"reservation":"` can only be that field, since a quotation mark inside a text is written `\"`.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from lastbit.ledger.entry import Entry
from lastbit.ledger.rows import entry_of, rows, whole_entry_of, whole_rows

__all__ = ["answer_of", "newest_answer", "open_reservations"]

_SETTLED = (
    "EXISTS (SELECT 1 FROM entries AS later WHERE later.question = entries.question "
    "AND later.account = entries.account AND later.sequence > entries.sequence "
    "AND later.record IS NOT NULL "
    "AND instr(later.text, '\"reservation\":\"' || entries.hash || '\"') > 0)"
)
_OPEN = f"record IS NULL AND NOT {_SETTLED}"


def newest_answer(
    place: Path, connection: sqlite3.Connection, account: str, question: str
) -> Entry | None:
    """The newest entry that holds an answer to this very question, and the answer."""
    where = (
        "WHERE question = ? AND account = ? AND record IS NOT NULL ORDER BY sequence DESC LIMIT 1"
    )
    row = next(whole_rows(connection, where, question, account), None)
    return None if row is None else whole_entry_of(place, row)


def open_reservations(
    place: Path, connection: sqlite3.Connection, account: str, question: str | None = None
) -> list[Entry]:
    """What is charged and not answered, in order: of one question, or of the account."""
    asked, values = ("IS NOT NULL", ()) if question is None else ("= ?", (question,))
    where = f"WHERE question {asked} AND account = ? AND {_OPEN} ORDER BY sequence"
    found = [entry_of(place, row) for row in rows(connection, where, *values, account)]
    return [entry for entry in found if entry.kind == "reserved"]


def answer_of(place: Path, connection: sqlite3.Connection, reservation: Entry) -> Entry | None:
    """The entry that settles a reservation, with its answer; None while it is open."""
    where = (
        "WHERE question = ? AND account = ? AND sequence > ? AND record IS NOT NULL "
        "AND instr(text, '\"reservation\":\"' || ? || '\"') > 0 ORDER BY sequence LIMIT 1"
    )
    asked = (reservation.question, reservation.account, reservation.sequence, reservation.hash)
    row = next(whole_rows(connection, where, *asked), None)
    return None if row is None else whole_entry_of(place, row)
