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
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256 as hashed
from typing import Any, TypeAlias

from lastbit.canonical import canonical_json, sha256
from lastbit.errors import InvalidParameter
from lastbit.ledger.entry import FIRST, LONGEST_ENTRY, Account, Entry, Malformed
from lastbit.ledger.principals import Allowance, Principal
from lastbit.ledger.records import UNREADABLE, WITHDRAWN, answer_problem, record_of
from lastbit.ledger.storage import Books, Place, damaged
from lastbit.tables import Cost

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
_MOST_TRIED = 20  # answers to one question that are no answers, before it is asked anew


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


@dataclass(frozen=True, slots=True)
class Known:
    """What other entries say of records: looked up once, for many of them."""

    withdrawn: set[str] = field(default_factory=set)
    """The hashes of entries whose answer is withdrawn."""
    costs: dict[str, Cost | None] = field(default_factory=dict)
    """By their hashes: what reservations cost; those that are not here are looked up."""

    def take(self, entry: Entry, hash_: str) -> None:
        """An entry that was read, and its hash."""
        if entry.kind == "reserved":
            self.costs[hash_] = entry.cost
        elif entry.kind == "withdrawn":
            self.withdrawn.add(entry.reservation or "")


def known_by(books: Books, entries: Iterable[Entry] = ()) -> Known:
    """What these entries say, and what was withdrawn in this ledger."""
    known = Known()
    # most entries are charges and answers: to parse all of them would take long
    for row in list(stored(books, "WHERE text LIKE ?", '%"kind":"withdrawn"%')):
        known.take(intact(books.place, row), row.hash)
    for entry in entries:
        known.take(entry, entry.hash)
    return known


def numbered(books: Books, sequence: int, known: Known) -> Entry | None:
    """The entry of this number, with its answer; one that does not fit means damage."""
    row = next(stored(books, "WHERE sequence = ?", sequence, records=True), None)
    return None if row is None else entry_with_answer(books, row, known)


def entry_with_answer(books: Books, row: StoredEntry, known: Known) -> Entry:
    """The entry of a row, with its answer, or with why what is kept is none."""
    entry = intact(books.place, row, whole=True)
    if entry.kind == "drawn":  # numbers, and no answer
        return replace(entry, record=None, unreadable=None)
    if entry.record is None:
        return entry
    if row.hash in known.withdrawn:
        return entry.without_answer(WITHDRAWN)
    cost, paid = entry.cost, entry.reservation
    if paid is not None:
        if paid not in known.costs:
            found = next(stored(books, "WHERE hash = ?", paid), None)
            known.costs[paid] = None if found is None else intact(books.place, found).cost
        cost = known.costs[paid]
    problem = answer_problem(entry.record, entry, cost)
    return entry if problem is None else entry.without_answer(problem)


def intact(place: Place, row: StoredEntry, *, whole: bool = False) -> Entry:
    """The entry of a row, with its answer if `whole`; a ledger that holds another is damaged."""
    try:
        return row.read_whole() if whole else row.read()
    except Malformed as problem:
        raise _broken(place, row.sequence, str(problem)) from None


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
        newest = self.newest.get(_account(name))
        return None if newest is None else self.entry(newest).state

    def principal(self, name: str) -> Principal | None:
        """A principal, with the role given last."""
        newest = self.named.get((NO_ACCOUNT, letters_of(name)))
        return None if newest is None else principal_of(self.entry(newest))

    def allowance(self, account: str, principal: str) -> Allowance | None:
        """The allowance as its newest entry states it, unless a role was given since."""
        letters = letters_of(principal)
        role = self.named.get((NO_ACCOUNT, letters))
        newest = self.named.get((_account(account), letters))
        if role is None or newest is None or newest <= role:
            return None
        return self.entry(newest).allowance

    def open_reservations(self, account: str | None, question: str | None = None) -> list[Entry]:
        """What is charged and not answered, in order."""
        start = b"" if account is None else account_start(account)
        letters = b"" if question is None else _question(question)
        return [
            self.entry(found)
            for found in self.open.values()
            if found[1].startswith(start) and letters in found[1]
        ]

    def closing(self, books: Books, reservation: Entry) -> Entry | None:
        """The entry that answers a reservation, with the answer, or that makes it void."""
        return self._whole(books, self.closed.get(reservation.hash.encode()))

    def draw(self, books: Books, reservation: Entry) -> str | None:
        """The noisy numbers that were drawn for a reservation, as they are kept."""
        if reservation.hash.encode() not in self.draws:
            return None
        number, _ = self.draws[reservation.hash.encode()]
        row = next(stored(books, "WHERE sequence = ?", number, records=True), None)
        if row is None:
            raise _broken(self.place, number)
        entry = intact(self.place, row, whole=True)
        return row.record if entry.record is not None else UNUSABLE

    def is_drawn_otherwise(self, books: Books, reservation: Entry, plan: str | None) -> bool:
        """Whether a reservation has numbers that were drawn by another plan, or are none."""
        found = self.draws.get(reservation.hash.encode())
        if found is None:
            return False
        return self.entry(found).plan != plan or self.draw(books, reservation) == UNUSABLE

    def newest_answer(self, books: Books, is_answer: IsAnswer) -> Entry | None:
        """The newest answer to the question that was looked for; None: there is none."""
        for number in self.answers[: -_MOST_TRIED - 1 : -1]:
            entry = self._whole(books, number)
            if entry is not None and entry.record is not None and is_answer(entry.record):
                return entry
        return None

    def drafted(self, **fields: Any) -> Entry:
        """A draft of an entry that states its account as it is now, if that is open."""
        name = fields["account"]
        state = None if name is None else self.account(name)
        if state is not None:
            fields |= {
                "spent": state.spent, "budget": state.budget, "neighbours": state.neighbours
            }  # fmt: skip
        return Entry(**fields)

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

    def _whole(self, books: Books, number: int | None) -> Entry | None:
        if number is None:
            return None
        found = numbered(books, number, Known(self.withdrawn))
        if found is None:
            raise _broken(self.place, number)
        return found


def scanned(books: Books, *, account: str | None = None, question: str | None = None) -> Scan:
    """Read all entries; a chain that is not whole is refused."""
    place = books.place
    found = Scan(place)
    sought = None if account is None or question is None else (_account(account), question)
    letters = b"" if sought is None else _question(sought[1])
    number, previous, given_out, text = 0, FIRST.encode(), None, b""
    for sequence, text, hash_, highest in books.texts():
        number, given_out = number + 1, highest
        if sequence != number or type(text) is not bytes:
            raise _broken(place, number)
        if hashed(text).hexdigest().encode() != hash_:
            raise _broken(place, number, "does not fit its hash")
        told = _KIND.search(text)
        if told is None or b'"previous":"%b"' % previous not in text:
            raise _broken(place, number)
        previous = hash_
        version, kind, name = told[1], told[2], text[: text.find(_AFTER_ACCOUNT)]
        found.newest[name] = (number, text)
        if version in (b"5", b"6", b"7"):
            principal = _PRINCIPAL.search(text)
            if principal is not None:
                found.named[name, principal[1]] = (number, text)
            elif version == b"5":
                raise _broken(place, number)
        if kind == b"reserved":
            found.open[hash_] = (number, text)
        elif kind in (b"settled", b"voided"):
            named = _NAMED.search(text)
            if named is None or found.open.pop(named[1], None) is None:
                raise _broken(place, number)
            found.closed[named[1]] = number
        elif kind == b"drawn":
            named = _NAMED.search(text)
            if named is None or named[1] not in found.open or named[1] in found.draws:
                raise _broken(place, number)
            found.draws[named[1]] = (number, text)
        elif kind == b"withdrawn":
            named = _NAMED.search(text)
            if named is None or named[1] not in found.answered:
                raise _broken(place, number)
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
        raise _broken(place, number) from None
    if entry.sequence != number:
        raise _broken(place, number)
    return entry


def time_of(text: bytes) -> str:
    """The time that an entry states, if it does."""
    found = _WHEN.search(text)
    return "" if found is None else found[1].decode()


def account_start(name: str) -> bytes:
    """How the text of every entry of an account begins."""
    return _account(name) + _AFTER_ACCOUNT


def _account(name: str) -> bytes:
    return f'{{"account":{canonical_json(name)}'.encode()


def principal_of(entry: Entry) -> Principal:
    """The principal that an entry gives a role to."""
    return Principal(name=entry.principal or "", role=entry.role, since=entry.sequence)


def letters_of(name: str) -> bytes:
    """A name as it is written in an entry."""
    return canonical_json(name).encode()


NO_ACCOUNT = b'{"account":null'


def _question(question: str) -> bytes:
    return f'"question":{canonical_json(question)},'.encode()


def _broken(place: Place, number: int, how: str = "does not follow the one before") -> Exception:
    return damaged(place, f"was changed: entry {number} {how}; look at lastbit ledger verify")
