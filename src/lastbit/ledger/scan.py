r"""The whole chain read in one pass: what an account has spent, and what is paid and unanswered.

Law      whatever decides about money is read here, inside the transaction that acts on it: from the
         table of entries in its own order, never by an index; every text has its hash, names the
         hash before, and the last is the last number that the file ever gave out
Theorem  if a file once held the chain e1 ... en, and was damaged since, then `scanned` raises, or
         what it says of accounts, reservations and answers is what e1 ... en say; unless somebody
         found two texts of one SHA-256, or the damage took off the end of the chain *and* wrote a
         fitting number to another page (SQLite's sequence)
Proof    the numbers are 1, 2, ... m without a gap and m is the number in `sqlite_sequence`. If that
         is n, the texts are those of a chain of n entries; a text that is not the one that was
         written does not fit the hash beside it, and with another hash too it is not the one that
         the next entry names. The last entry has no next one: damage changes its text and its hash
         to fit each other only by finding a preimage. What is found in a text is found by letters
         that can only be that field: in canonical JSON, a quotation mark inside a text is `\"`
Differs  somebody who *writes* a chain of their own is out of scope: `chain.py` says what is seen
Checked  tests/ledger/test_overspending.py: bytes of every page flipped, then asked for more
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from lastbit.canonical import canonical_json
from lastbit.ledger.account import Account
from lastbit.ledger.entry import FIRST, Entry, Malformed
from lastbit.ledger.rows import whole_entry_of, whole_rows
from lastbit.ledger.storage import damaged

# one statement is one state of the file, whoever writes meanwhile; bytes, since hashes are of bytes
_ALL = (
    "SELECT sequence, CAST(text AS BLOB), CAST(hash AS BLOB), "
    "(SELECT max(seq) FROM sqlite_sequence WHERE name = 'entries') "
    "FROM entries NOT INDEXED ORDER BY sequence"
)
_KIND = re.compile(rb'"format":"lastbit ledger [12]","kind":"([a-z]+)"')  # a budget has a kind too
_NAMED = re.compile(rb'"reservation":"([0-9a-f]{64})"')
_AFTER_ACCOUNT = b',"budget":'


@dataclass(slots=True)
class Scan:
    """What one pass over a chain found; texts are kept of the entries that matter, and no more."""

    place: Path
    last: int = 0
    head: str = FIRST
    newest: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    """By account, as it is written in an entry: its newest entry."""
    open: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    """By their hashes: reservations that are neither answered nor void."""
    closed: dict[bytes, int] = field(default_factory=dict)
    """By the hash of its reservation: the number of the entry that answers it, or makes it void."""
    answers: int | None = None
    """The number of the newest answer to the question that was looked for."""

    def account(self, name: str) -> Account | None:
        """The account after its newest entry."""
        found = self.newest.get(_account(name))
        return None if found is None else self._entry(*found).state

    def accounts(self) -> Iterator[Account]:
        """All accounts."""
        for found in self.newest.values():
            state = self._entry(*found).state
            if state is not None:
                yield state

    def open_reservations(self, account: str | None, question: str | None = None) -> list[Entry]:
        """What is charged and not answered, in order."""
        found = []
        for number, text in self.open.values():
            if account is not None and not text.startswith(_account(account) + _AFTER_ACCOUNT):
                continue
            if question is None or _question(question) in text:
                found.append(self._entry(number, text))
        return found

    def closing(self, connection: sqlite3.Connection, reservation: Entry) -> Entry | None:
        """The entry that answers a reservation, with the answer, or that makes it void."""
        number = self.closed.get(reservation.hash.encode())
        return None if number is None else self._whole(connection, number)

    def newest_answer(self, connection: sqlite3.Connection) -> Entry | None:
        """The newest answer to the question that was looked for."""
        return None if self.answers is None else self._whole(connection, self.answers)

    def _entry(self, number: int, text: bytes) -> Entry:
        try:
            entry = Entry.read(text.decode("ascii"))
        except (Malformed, UnicodeError):
            raise _broken(self.place, number) from None
        if entry.sequence != number:
            raise _broken(self.place, number)
        return entry

    def _whole(self, connection: sqlite3.Connection, number: int) -> Entry:
        row = next(whole_rows(connection, "NOT INDEXED WHERE sequence = ?", number), None)
        if row is None:
            raise _broken(self.place, number)
        return whole_entry_of(self.place, row)


def scanned(
    place: Path,
    connection: sqlite3.Connection,
    *,
    account: str | None = None,
    question: str | None = None,
) -> Scan:
    """Read all entries; a chain that is not whole is refused."""
    found = Scan(place)
    sought = None if account is None or question is None else (_account(account), question)
    letters = b"" if sought is None else _question(sought[1])
    number, previous, given_out = 0, FIRST.encode(), None
    for sequence, text, hash_, highest in connection.execute(_ALL):
        number, given_out = number + 1, highest
        if sequence != number or type(text) is not bytes:
            raise _broken(place, number)
        if sha256(text).hexdigest().encode() != hash_:
            raise _broken(place, number, "does not fit its hash")
        told = _KIND.search(text)
        if told is None or b'"previous":"%b"' % previous not in text:
            raise _broken(place, number)
        previous = hash_
        kind, name = told[1], text[: text.find(_AFTER_ACCOUNT)]
        found.newest[name] = (number, text)
        if kind == b"reserved":
            found.open[hash_] = (number, text)
        elif kind in (b"settled", b"voided"):
            _close(found, number, text)
        if sought and kind in (b"settled", b"charge") and name == sought[0] and letters in text:
            found.answers = number
    if number == 0 or given_out != number:
        raise damaged(
            place, "has lost its last entries, or its count of them; look at lastbit ledger verify"
        )
    found.last, found.head = number, previous.decode()
    return found


def _close(found: Scan, number: int, text: bytes) -> None:
    named = _NAMED.search(text)
    if named is None or found.open.pop(named[1], None) is None:
        raise _broken(found.place, number)
    found.closed[named[1]] = number


def unused_pages_fit(place: Path, connection: sqlite3.Connection) -> None:
    """Refuse to write where SQLite would take a page that is in use for a free one.

    New pages come from the list of free ones, if its count in the header is not 0, or from behind
    the last page by the header's count of pages. Entries are never deleted, so the list is almost
    always empty; where it is not, SQLite looks through the whole file.
    """
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    if pages * size != place.stat().st_size or (
        free and connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",)
    ):
        raise damaged(place, "is damaged (its count of pages is wrong); restore a backup")


def _account(name: str) -> bytes:
    return f'{{"account":{canonical_json(name)}'.encode()


def _question(question: str) -> bytes:
    return f'"question":{canonical_json(question)},'.encode()


def _broken(place: Path, number: int, how: str = "does not follow the one before") -> Exception:
    return damaged(place, f"was changed: entry {number} {how}; look at lastbit ledger verify")
