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
import re
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any

from lastbit.addresses import Address
from lastbit.errors import InvalidParameter, LedgerDamaged
from lastbit.files import Place, Spared, check_target, content_of, exists, ledger_files
from lastbit.ledger.answers import entry_with_answer, known_by
from lastbit.ledger.chain import Scan, intact, scanned, stored
from lastbit.ledger.charging import secret_of
from lastbit.ledger.entry import Entry
from lastbit.ledger.inspection import inspected
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.making import write_ledger
from lastbit.ledger.places import place_of, storage_of
from lastbit.ledger.sqlite import APPLICATION, BESIDE
from lastbit.ledger.storage import ALONE, Books
from lastbit.place_names import is_address
from lastbit.tables import DataCard

_SQLITE = b"SQLite format 3\0"


def spared_by(card: DataCard, ledger: Place | Address | None = None) -> dict[str, list[str]]:
    """What no answer from this table may be written over: card, ledger, source, other tables.

    >>> from lastbit.ledger import check_output
    >>> from lastbit.tables import Source
    >>> source = Source(kind="csv", paths=("visits.csv",))
    >>> card = DataCard(name="visits", source=source, unit=None, max_rows=1, columns={})
    >>> spared_by(card)
    {'the source': ['visits.csv', 'visits.csv.wal']}
    >>> check_output("--out", "answer.csv", spared_by(card))                 # nothing is raised
    """
    found: dict[str, list[str]] = {}
    if card.file is not None:
        found["the card"] = [card.file]
    books = card.ledger if ledger is None else ledger
    if books is not None and not (isinstance(books, Address) or is_address(books)):
        found["the ledger"] = ledger_files(books)
    if card.prepared is not None:
        found["the prepared table"] = [card.prepared, f"{card.prepared}/made.json"]
    sources = {"the source": card.source}
    sources |= {f"the public table {name[:60]}": one.source for name, one in card.public.items()}
    sources |= {f"the private table {name[:60]}": one for name, one in card.protected.items()}
    for what, source in sources.items():
        found[what] = [place for path in source.paths for place in (path, f"{path}.wal")]
    return found


def holds_ledger(path: str | os.PathLike[str]) -> bool:
    """Whether a file says in its first bytes that it is a ledger of lastbit's.

    Under the lock: to close a handle of a ledger would drop the locks of an open connection.
    """
    with ALONE.lock, suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                head = file.read(100)
                return head[:16] == _SQLITE and head[68:72] == APPLICATION.to_bytes(4, "big")
    return False


def check_output(option: str, path: Place, spared: Spared) -> None:
    """Refuse to write over what is spared and over any ledger."""
    check_target(option, path, spared)
    place = os.path.realpath(path)
    bases = [place, *(place.removesuffix(end) for end in BESIDE if place.endswith(end))]
    if any(holds_ledger(base) for base in bases):
        problem = "names a ledger, which must not be written over"
        raise InvalidParameter(option, problem=problem, remedy="name another file")


def _connected(ledger: Ledger) -> AbstractContextManager[Books]:
    storage = storage_of(ledger.path)
    return storage.connected(ledger.path, ledger.connections, patience=ledger.patience)


def copied(
    ledger: Ledger,
    path: str | os.PathLike[str] | Address,
    *,
    then: Callable[[Books], None] | None = None,
) -> Ledger:
    """A copy of the ledger as it is now, in any kind of place; others may use it meanwhile.

    Every entry is read as it is copied, and one that does not fit is refused. Nothing is replaced.
    `then` is done to the copy before it has its name.
    """
    place = place_of(path)
    taken = InvalidParameter(
        str(place), problem="exists, and is not replaced", remedy="name a new file, or move it away"
    )
    with _connected(ledger) as source, inspected(source).snapshot():

        def fill(target: Books) -> None:
            for row in stored(source, "ORDER BY sequence", records=True):
                target.append(intact(ledger.path, row, whole=True), row.record)
            if then is not None:
                then(target)

        if not write_ledger(place, secret_of(source), fill, patience=ledger.patience):
            raise taken
    return Ledger.existing(place, patience=ledger.patience)


def restored(
    backup: str | os.PathLike[str] | Address,
    path: str | os.PathLike[str] | Address,
    *,
    who: str | None = None,
    heads: Collection[str] = (),
    words: str = "restored from a backup",
) -> Ledger:
    """A backup put to use as a ledger; one that is damaged, or lacks one of `heads`, is refused.

    What was reserved and not answered when the backup was made stays charged, and is void.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     backup = Ledger.open(f"{folder}/backup.ledger")
    ...     ledger = restored(f"{folder}/backup.ledger", f"{folder}/hospital.ledger", who="ada")
    ...     print([entry["fields"]["kind"] for entry in exported(ledger)])
    ['opened', 'note']
    """
    source = Ledger.existing(backup)
    problems = source.problems(heads)
    if problems:
        raise LedgerDamaged(f"the backup {source.path} is not restored: {problems[0]}")

    def told(target: Books) -> None:
        chain = scanned(target)
        note = Entry(kind="note", who=who, words=f"{words} that ended with {chain.head}")
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
    checked without lastbit. Of a record that is no answer, `unreadable` says why it is none.
    """
    with ledger.connection():
        with _connected(ledger) as books:
            known = known_by(books)
        for sequence in range(1, ledger.entries(last=1)[0].sequence + 1):
            with _connected(ledger) as books:
                row = next(stored(books, "WHERE sequence = ?", sequence, records=True), None)
                if row is None:
                    raise LedgerDamaged(
                        f"the ledger {ledger.path} has lost entry {sequence}; restore a backup"
                    )
                entry = entry_with_answer(books, row, known)
            known.take(entry, row.hash)
            record = None if entry.record is None or row.record is None else json.loads(row.record)
            why = {} if entry.unreadable is None else {"unreadable": entry.unreadable}
            yield {"fields": json.loads(entry.text), "hash": entry.hash, "record": record, **why}


# ---------------------------------------------------------------- heads noted elsewhere

_ANCHOR = "anchor of {opened}: entry {sequence} is {hash}"
_ANCHORED = re.compile(r"anchor of ([0-9a-f]{64}): entry ([0-9]{1,18}) is ([0-9a-f]{64})")
_LONGEST_ANCHOR = 1 << 27
_SHORTEST_ANCHOR = 2 * 64  # letters of a line: two hashes


def anchor_noted(
    ledger: Ledger, anchor: Place | Address, *, who: str | None = None, another: bool = False
) -> Entry:
    """Note the ledger's last entry in a file, or in another ledger; on the disk as it returns.

    Whatever was noted there before must still be in this ledger: a ledger that was made anew in the
    place of the noted one has none of it. So an anchor that knows other ledgers, and not this one,
    is refused unless `another` says that it is a further one. A file of lines is only as good as
    the rights on it; in another ledger the notes are chained themselves.
    """
    noted = _noted(ledger, anchor)
    own = [hash_ for opened, hash_ in noted if opened == ledger.opened]
    if noted and not own and not another:
        problem = "has heads of another ledger, and none of this one: was it replaced?"
        remedy = "restore the ledger that was noted; for a further one pass --another"
        raise InvalidParameter(f"the anchor {anchor}", problem=problem, remedy=remedy)
    problems = ledger.problems(own)
    if problems:
        raise LedgerDamaged(f"the ledger {ledger.path} is not anchored: {problems[0]}")
    head = ledger.entries(last=1)[0]
    words = _ANCHOR.format(opened=ledger.opened, sequence=head.sequence, hash=head.hash)
    if _is_ledger(anchor):
        Ledger.existing(anchor).note(words, who=who)
        return head
    try:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        handle = os.open(str(anchor), flags, 0o644)
        try:
            os.write(handle, f"{words}\n".encode())
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise _no_anchor(anchor, f"cannot be written ({error.strerror})") from None
    return head


def anchored(ledger: Ledger, anchor: Place | Address) -> list[str]:
    """The hashes of this ledger's entries that were noted there; an anchor without any is refused.

    So a ledger that was made anew in the place of this one does not pass for it.
    """
    found = [hash_ for opened, hash_ in _noted(ledger, anchor) if opened == ledger.opened]
    if not found:
        raise _no_anchor(anchor, "has no line of this ledger")
    return found


def _noted(ledger: Ledger, anchor: Place | Address) -> list[tuple[str, str]]:
    """All that was noted there, of any ledger: which one, and the hash."""
    if _is_ledger(anchor):
        other = Ledger.existing(anchor)
        if other.opened == ledger.opened:
            raise _no_anchor(anchor, "is the ledger itself, or a copy of it")
        lines = [entry.words or "" for entry in other.entries() if entry.kind == "note"]
    elif not exists(str(anchor)):
        return []
    else:
        try:
            text = content_of(str(anchor), most=_LONGEST_ANCHOR).decode("ascii", "replace")
        except OSError as error:
            raise _no_anchor(anchor, f"cannot be read ({error.strerror})") from None
        lines = text.splitlines() if text.count("\n") <= len(text) // _SHORTEST_ANCHOR else [""]
        if not all(_ANCHORED.fullmatch(line) for line in lines):
            raise _no_anchor(anchor, "is a file of something else, or was damaged")
    told = (_ANCHORED.fullmatch(line) for line in lines)
    return [(found[1], found[3]) for found in told if found is not None]


def _is_ledger(place: Place | Address) -> bool:
    """In a database, or a file that is one."""
    return isinstance(place, Address) or is_address(place) or holds_ledger(place)


def _no_anchor(anchor: Place | Address, problem: str) -> InvalidParameter:
    remedy = "name the file or the ledger that lastbit ledger anchor wrote to"
    return InvalidParameter(f"the anchor {anchor}", problem=problem, remedy=remedy)
