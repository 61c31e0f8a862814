r"""The chain of entries: written, and read in one pass, every hash checked.

Law      everything that decides about money is read by `scanned`, in the transaction that acts on
         it: from the table of entries in its own order, never by an index; every text has its hash,
         names the hash before, and the last is the last number that was ever given out
Theorem  (damage) if a file once held the chain e1 ... en, and was damaged since, then `scanned`
         raises, or what it says of accounts, reservations and answers is what e1 ... en say; unless
         somebody found two texts of one SHA-256, or the damage took off the end of the chain *and*
         wrote a fitting number to another page (SQLite's sequence, PostgreSQL's `head`)
Proof    the numbers are 1, 2, ... m without a gap and m is the number given out last. If that
         is n, the texts are those of a chain of n entries; a text that is not the one that was
         written does not fit the hash beside it, and with another hash too it is not the one that
         the next entry names. The last entry has no next one: damage changes its text and its hash
         to fit each other only by finding a preimage. What is found in a text is found by letters
         that can only be that field: in canonical JSON, a quotation mark inside a text is `\"`
Checked  tests/ledger/test_overspending.py: bytes of every page flipped, then asked for more;
         tests/ledger/test_chain.py. `examination.py` checks a chain for those who suspect tampering
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256 as hashed
from typing import Any, TypeAlias

from lastbit.canonical import canonical_json, sha256
from lastbit.errors import InvalidParameter
from lastbit.ledger.entry import FIRST, LONGEST_ENTRY, Account, Entry, Malformed
from lastbit.ledger.records import UNREADABLE, record_of
from lastbit.ledger.storage import Books, Place, damaged

_KIND = re.compile(
    rb'"format":"lastbit ledger ([1-7])","kind":"([a-z]+)"'
)  # a budget has a kind too
_PRINCIPAL = re.compile(rb'"principal":("(?:[^"\\]|\\.)*")')
_WHEN = re.compile(rb'"when":"([^"\\]*)"')
_NAMED = re.compile(rb'"reservation":"([0-9a-f]{64})"')
_AFTER_ACCOUNT = b',"budget":'
IsAnswer: TypeAlias = Callable[[Mapping[str, Any]], bool]
"""What the caller takes for an answer, of records that name the right question, price and plan."""
UNUSABLE = '{"unusable":true}'
"""What stands for a draw that cannot be kept, or was not written by lastbit: it stays the draw."""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry as the file holds it: its text and hash, its record, and what it is found by."""

    sequence: int
    account: str | None
    question: str | None
    text: str
    hash: str
    record: str | None = field(default=None, repr=False)

    def read(self) -> Entry:
        """The entry, if text, hash and columns fit; else Malformed says which does not."""
        if not isinstance(self.text, str) or not self.text.isascii():
            raise Malformed("is not text")
        if sha256(self.text) != self.hash:
            raise Malformed("does not fit its hash")
        entry = Entry.read(self.text)
        filed = self.sequence, self.account, self.question
        if filed != (entry.sequence, entry.account, entry.question):
            raise Malformed("is filed under another number, account or question")
        return entry

    def read_whole(self) -> Entry:
        """The entry, if what is kept beside it is what it was written with.

        What no lastbit would have written is no answer, and no damage: whoever may charge may have
        written it.
        """
        entry, text = self.read(), self.record
        if (text is None) != (entry.result is None):
            raise Malformed("has lost its answer, or has one that is not its own")
        if text is None:
            return entry
        if not isinstance(text, str) or not text.isascii() or sha256(text) != entry.result:
            raise Malformed("has an answer that was changed")
        record = record_of(text)
        return entry.without_answer(UNREADABLE) if record is None else entry.with_record(record)


def stored(
    books: Books, where: str, *values: object, records: bool = False
) -> Iterator[StoredEntry]:
    """The entries that this SQL tail picks, as they are kept."""
    for row in books.rows(where, *values, records=records):
        yield StoredEntry(*row)


def intact(place: Place, row: StoredEntry, *, whole: bool = False) -> Entry:
    """The entry of a row, with its answer if `whole`; a ledger that holds another is damaged."""
    try:
        return row.read_whole() if whole else row.read()
    except Malformed as problem:
        raise broken(place, row.sequence, str(problem)) from None


@dataclass(slots=True)
class Scan:
    """What one pass over a chain found; texts are kept of the entries that matter, and no more."""

    place: Place
    last: int = 0
    head: str = FIRST
    newest: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    """By account, as it is written in an entry: its newest entry."""
    open: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    """By their hashes: reservations that are neither answered nor void."""
    draws: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    """By the hash of its reservation: the entry with the noisy numbers."""
    closed: dict[bytes, int] = field(default_factory=dict)
    """By the hash of its reservation: the number of the entry that answers it, or makes it void."""
    named: dict[tuple[bytes, bytes], tuple[int, bytes]] = field(default_factory=dict)
    """By account and principal, as they are written: their newest entry. Roles have no account."""
    when: str = ""
    """The time of the last entry."""
    answers: list[int] = field(default_factory=list)
    """The numbers of answers to the question that was looked for."""
    answered: set[bytes] = field(default_factory=set)
    """The hashes of entries with an answer that is not withdrawn."""
    withdrawn: set[str] = field(default_factory=set)
    """The hashes of entries whose answer is."""

    def account(self, name: str) -> Account | None:
        """The account after its newest entry."""
        newest = self.newest.get(account_letters(name))
        return None if newest is None else self.entry(newest).state

    def open_reservations(self, account: str | None, question: str | None = None) -> list[Entry]:
        """What is charged and not answered, in order."""
        start = b"" if account is None else account_start(account)
        letters = b"" if question is None else _question(question)
        return [
            self.entry(found)
            for found in self.open.values()
            if found[1].startswith(start) and letters in found[1]
        ]

    def draw(self, books: Books, reservation: Entry) -> str | None:
        """The noisy numbers that were drawn for a reservation, as they are kept."""
        if reservation.hash.encode() not in self.draws:
            return None
        number, _ = self.draws[reservation.hash.encode()]
        row = next(stored(books, "WHERE sequence = ?", number, records=True), None)
        if row is None:
            raise broken(self.place, number)
        entry = intact(self.place, row, whole=True)
        return row.record if entry.record is not None else UNUSABLE

    def is_drawn_otherwise(self, books: Books, reservation: Entry, plan: str | None) -> bool:
        """Whether a reservation has numbers that were drawn by another plan, or are none."""
        found = self.draws.get(reservation.hash.encode())
        if found is None:
            return False
        return self.entry(found).plan != plan or self.draw(books, reservation) == UNUSABLE

    def drafted(self, **fields: Any) -> Entry:
        """A draft of an entry that states its account as it is now, if that is open."""
        draft = Entry(**fields)
        state = None if draft.account is None else self.account(draft.account)
        return draft if state is None else draft.stating(state)

    def drafted_after(self, paid: Entry, **fields: Any) -> Entry:
        """The same of an entry that follows from a reservation, and costs nothing more."""
        question, data = paid.question, paid.fingerprint
        named = {"account": paid.account, "question": question, "reservation": paid.hash}
        return self.drafted(**named, fingerprint=data, **fields)

    def append(self, books: Books, draft: Entry, record: str | None = None) -> Entry:
        """Write a draft as the entry that follows the last one, at its time or now."""
        # the number orders the entries; the clock is only quoted, since clocks go back
        when = draft.when or books.now()
        entry = replace(draft, sequence=self.last + 1, when=when, previous=self.head)
        if len(entry.text) > LONGEST_ENTRY:
            problem, remedy = "is longer than entries may be", "write it in fewer words"
            raise InvalidParameter("entry", problem=problem, remedy=remedy)
        Entry.read(entry.text)  # what could not be read again is never written
        books.append(entry, record)
        self.last, self.head, self.when = entry.sequence, entry.hash, when
        return entry

    def entry(self, found: tuple[int, bytes]) -> Entry:
        """The entry of this number and text."""
        return parsed(self.place, *found)


def scanned(books: Books, *, account: str | None = None, question: str | None = None) -> Scan:
    """Read all entries; a chain that is not whole is refused."""
    place = books.place
    found = Scan(place)
    sought = None if account is None or question is None else (account_letters(account), question)
    letters = b"" if sought is None else _question(sought[1])
    number, previous, given_out, text = 0, FIRST.encode(), None, b""
    for sequence, text, hash_, highest in books.texts():
        number, given_out = number + 1, highest
        if sequence != number or type(text) is not bytes:
            raise broken(place, number)
        if hashed(text).hexdigest().encode() != hash_:
            raise broken(place, number, "does not fit its hash")
        told = _KIND.search(text)
        if told is None or b'"previous":"%b"' % previous not in text:
            raise broken(place, number)
        previous = hash_
        version, kind, name = told[1], told[2], text[: text.find(_AFTER_ACCOUNT)]
        found.newest[name] = (number, text)
        if version in (b"5", b"6", b"7"):
            principal = _PRINCIPAL.search(text)
            if principal is not None:
                found.named[name, principal[1]] = (number, text)
            elif version == b"5":
                raise broken(place, number)
        if kind == b"reserved":
            found.open[hash_] = (number, text)
        elif kind in (b"settled", b"voided"):
            named = _NAMED.search(text)
            if named is None or found.open.pop(named[1], None) is None:
                raise broken(place, number)
            found.closed[named[1]] = number
        elif kind == b"drawn":
            named = _NAMED.search(text)
            if named is None or named[1] not in found.open or named[1] in found.draws:
                raise broken(place, number)
            found.draws[named[1]] = (number, text)
        elif kind == b"withdrawn":
            named = _NAMED.search(text)
            if named is None or named[1] not in found.answered:
                raise broken(place, number)
            found.answered.remove(named[1])
            found.withdrawn.add(named[1].decode())
        if kind in (b"settled", b"charge"):
            found.answered.add(hash_)
            if sought and name == sought[0] and letters in text:
                found.answers.append(number)
    if number == 0 or given_out != number:
        raise damaged(
            place, "has lost its last entries, or its count of them; look at lastbit ledger verify"
        )
    found.last, found.head, found.when = number, previous.decode(), time_of(text)
    return found


def parsed(place: Place, number: int, text: bytes) -> Entry:
    """The entry of this number, from its text; another one means damage."""
    try:
        entry = Entry.read(text.decode("ascii"))
    except (Malformed, UnicodeError):
        raise broken(place, number) from None
    if entry.sequence != number:
        raise broken(place, number)
    return entry


def time_of(text: bytes) -> str:
    """The time that an entry states, if it does."""
    found = _WHEN.search(text)
    return "" if found is None else found[1].decode()


def account_start(name: str) -> bytes:
    """How the text of every entry of an account begins."""
    return account_letters(name) + _AFTER_ACCOUNT


def account_letters(name: str) -> bytes:
    """How an entry begins that is of an account of this name, or of a longer one."""
    return f'{{"account":{canonical_json(name)}'.encode()


def _question(question: str) -> bytes:
    return f'"question":{canonical_json(question)},'.encode()


def broken(place: Place, number: int, how: str = "does not follow the one before") -> Exception:
    """The error of an entry that is not as it was written."""
    return damaged(place, f"was changed: entry {number} {how}; look at lastbit ledger verify")
