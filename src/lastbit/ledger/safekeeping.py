"""Keeping a ledger safe: backup while it is in use, restore, export, and what is not written over.

A copy of a ledger is dangerous in one way: put in the place of the original it takes spending back.
So a copy never replaces a file, a restored ledger says in a note that it was restored, what was
open in it is void (`voided` says why), and `heads` (the hashes of entries that answers
quote) tell whether the copy is older than an answer. All of that is written before the restored
file has its name. No output of a command is written over a ledger, a card or a source.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Collection, Iterator
from typing import Any

from lastbit.errors import InvalidParameter, LedgerDamaged
from lastbit.files import Place, Spared, check_target, exists, ledger_files
from lastbit.ledger.chain import Scan, intact, scanned, stored
from lastbit.ledger.entry import Entry
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.storage import connected, holds_ledger, made, place_of, transaction
from lastbit.tables import DataCard

_ENDS = ("-journal", "-wal", "-shm")


def spared_by(card: DataCard, ledger: Place | None = None) -> dict[str, list[str]]:
    """What no answer from this table may be written over: card, ledger, source, other tables."""
    found: dict[str, list[str]] = {}
    if card.file is not None:
        found["the card"] = [card.file]
    books = card.ledger if ledger is None else ledger
    if books is not None:
        found["the ledger"] = ledger_files(books)
    sources = {"the source": card.source}
    sources |= {f"the public table {name[:60]}": one.source for name, one in card.public.items()}
    sources |= {f"the private table {name[:60]}": one.source for name, one in card.private.items()}
    for what, source in sources.items():
        found[what] = [place for path in source.paths for place in (path, f"{path}.wal")]
    return found


def check_output(option: str, path: Place, spared: Spared) -> None:
    """Refuse to write over what is spared and over any ledger."""
    check_target(option, path, spared)
    place = os.path.realpath(path)
    bases = [place, *(place.removesuffix(end) for end in _ENDS if place.endswith(end))]
    if any(holds_ledger(base) for base in bases):
        problem = "names a ledger, which must not be written over"
        raise InvalidParameter(option, problem=problem, remedy="name another file")


def copied(
    ledger: Ledger,
    path: str | os.PathLike[str],
    *,
    then: Callable[[sqlite3.Connection], None] | None = None,
) -> Ledger:
    """A copy of the ledger as it is now; others may use it meanwhile. No file is replaced.

    `then` is done to the copy before it has its name.
    """
    place = place_of(path)
    taken = InvalidParameter(
        str(place), problem="exists, and is not replaced", remedy="name a new file, or move it away"
    )
    if exists(place):
        raise taken

    def fill(target: sqlite3.Connection) -> None:
        with connected(ledger.path, patience=ledger.patience) as source:
            # a reader waits for writers and then keeps them out; `backup` alone waits for ever
            source.execute("BEGIN")
            source.execute("SELECT max(sequence) FROM entries").fetchall()
            source.backup(target)
        if then is not None:
            then(target)

    if not made(place, fill, patience=ledger.patience):
        raise taken
    return Ledger.existing(place, patience=ledger.patience)


def restored(
    backup: str | os.PathLike[str],
    path: str | os.PathLike[str],
    *,
    who: str | None = None,
    heads: Collection[str] = (),
) -> Ledger:
    """A backup put to use as a ledger; one that is damaged, or lacks one of `heads`, is refused.

    What was reserved and not answered when the backup was made stays charged, and is void.
    """
    source = Ledger.existing(backup)
    problems = source.problems(heads)
    if problems:
        raise LedgerDamaged(f"the backup {source.path} is not restored: {problems[0]}")

    def told(target: sqlite3.Connection) -> None:
        with transaction(target):
            chain = scanned(source.path, target)
            words = f"restored from a backup that ended with {chain.head}"
            note = Entry(kind="note", who=who, words=words)
            for draft in (note, *voided(chain, who=who)):
                chain.append(target, draft)

    return copied(source, path, then=told)


def voided(chain: Scan, *, who: str | None) -> Iterator[Entry]:
    """Drafts of the entries that make every open reservation void.

    A backup that was taken between a reservation and its answer holds the reservation open, though
    somebody may have seen the answer. Resumed, it would be answered a second time, with other
    noise, at no charge. So the price stays charged, and to ask again costs again.
    """
    for paid in chain.open_reservations(None):
        yield chain.drafted(
            kind="voided",
            account=paid.account,
            who=who,
            question=paid.question,
            reservation=paid.hash,
        )


def exported(ledger: Ledger) -> Iterator[dict[str, Any]]:
    """Every entry as plain JSON: its fields, its hash and its answer. The secret stays inside.

    The hash is SHA-256 of the fields alone, written as `canonical_json` does; so an export can be
    checked without lastbit.
    """
    for sequence in range(1, ledger.entries(last=1)[0].sequence + 1):
        with connected(ledger.path, patience=ledger.patience) as connection:
            row = next(stored(connection, "WHERE sequence = ?", sequence, records=True), None)
        if row is None:
            raise LedgerDamaged(f"the ledger {ledger.path} has lost entry {sequence}")
        entry = intact(ledger.path, row, whole=True)
        record = None if row.record is None else json.loads(row.record)
        yield {"fields": json.loads(entry.text), "hash": row.hash, "record": record}
