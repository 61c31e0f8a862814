r"""The chain of entries: written, read in one pass, and checked link by link.

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
Theorem  (tampering) if `chain_problems` finds none, then what each account has spent is the sum of
         the charges in the file (or more: `entry.py`) and was within its budget at every entry;
         every answer (`records.py`) has a charge of its own, made before it, of the price and the
         plan that it names; every charge, once there are principals, is in the name of one who
         might ask, and within the allowance of an analyst as `principals.py` counts it; and whoever
         knows the hash of one entry knows that no entry up to it was changed, dropped, added or
         moved since, unless they know two texts of one SHA-256
Proof    the first part is `entry.py`'s, whose rules are applied again here. For the second, each
         hash is that of a text that holds the hash before: equal hashes mean equal texts, so equal
         hashes before, and so on down to the first entry
Differs  nothing is promised of entries after the last hash that somebody noted: whoever can write
         the file can drop them, or write the chain anew. That is why a hash is noted elsewhere
Checked  tests/ledger/test_overspending.py: bytes of every page flipped, then asked for more;
         tests/ledger/test_chain.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256 as hashed
from typing import Any, TypeAlias

from lastbit.canonical import canonical_json, sha256
from lastbit.errors import InvalidParameter, LastbitError
from lastbit.ledger.entry import FIRST, LONGEST_ENTRY, Account, Entry, Malformed
from lastbit.ledger.principals import (
    Allowance,
    Principal,
    check_allowed,
    check_charging,
    check_role,
    counted,
    is_time,
    moment_of,
)
from lastbit.ledger.records import UNREADABLE, WITHDRAWN, answer_problem, record_of
from lastbit.ledger.storage import Books, Place, damaged
from lastbit.tables import Cost

_KIND = re.compile(
    rb'"format":"lastbit ledger ([123456])","kind":"([a-z]+)"'
)  # a budget has a kind too
_PRINCIPAL = re.compile(rb'"principal":("(?:[^"\\]|\\.)*")')
_WHEN = re.compile(rb'"when":"([^"\\]*)"')
_NAMED = re.compile(rb'"reservation":"([0-9a-f]{64})"')
_AFTER_ACCOUNT = b',"budget":'
IsAnswer: TypeAlias = Callable[[Mapping[str, Any]], bool]
"""What the caller takes for an answer, of records that name the right question, price and plan."""
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


def known_by(books: Books) -> Known:
    """What was withdrawn in this ledger."""
    # most entries are charges and answers: to parse all of them would take long
    rows = list(stored(books, "WHERE text LIKE ?", '%"kind":"withdrawn"%'))
    known = Known()
    for row in rows:
        known.take(intact(books.place, row), row.hash)
    return known


def numbered(books: Books, sequence: int, known: Known) -> Entry | None:
    """The entry of this number, with its answer; one that does not fit means damage."""
    row = next(stored(books, "WHERE sequence = ?", sequence, records=True), None)
    return None if row is None else entry_with_answer(books, row, known)


def entry_with_answer(books: Books, row: StoredEntry, known: Known) -> Entry:
    """The entry of a row, with its answer, or with why what is kept is none."""
    entry = intact(books.place, row, whole=True)
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


def written(books: Books, entry: Entry, record: str | None) -> None:
    """Append an entry that has its number, and the text of its answer beside it."""
    row = entry.sequence, entry.account, entry.question, entry.text, entry.hash, record
    books.append(
        row,
        reservation=entry.reservation,
        principal=entry.principal,
        version=entry.version,
    )


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
        found = self.newest.get(_account(name))
        return None if found is None else self._entry(*found).state

    def accounts(self) -> Iterator[Account]:
        """All accounts."""
        for found in self.newest.values():
            state = self._entry(*found).state
            if state is not None:
                yield state

    def principal(self, name: str) -> Principal | None:
        """A principal, with the role given last."""
        found = self.named.get((_NO_ACCOUNT, _letters(name)))
        return None if found is None else _principal(self._entry(*found))

    def principals(self) -> dict[str, Principal]:
        """All principals, by name, with the roles given last."""
        roles = [self._entry(*found) for key, found in self.named.items() if key[0] == _NO_ACCOUNT]
        return {entry.principal or "": _principal(entry) for entry in roles}

    def allowance(self, account: str, principal: str) -> Allowance | None:
        """The allowance as its newest entry states it, unless a role was given since."""
        return self._allowance(_account(account), _letters(principal))

    def allowances(self) -> Iterator[Allowance]:
        """All that are in force."""
        for key in self.named:
            found = self._allowance(*key)
            if found is not None:
                yield found

    def _allowance(self, account: bytes, principal: bytes) -> Allowance | None:
        role, found = (self.named.get((name, principal)) for name in (_NO_ACCOUNT, account))
        if role is None or found is None or found <= role:
            return None
        return self._entry(*found).allowance

    def open_reservations(self, account: str | None, question: str | None = None) -> list[Entry]:
        """What is charged and not answered, in order."""
        found = []
        for number, text in self.open.values():
            if account is not None and not text.startswith(_account(account) + _AFTER_ACCOUNT):
                continue
            if question is None or _question(question) in text:
                found.append(self._entry(number, text))
        return found

    def closing(self, books: Books, reservation: Entry) -> Entry | None:
        """The entry that answers a reservation, with the answer, or that makes it void."""
        return self._whole(books, self.closed.get(reservation.hash.encode()))

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
        written(books, entry, record)
        self.last, self.head, self.when = entry.sequence, entry.hash, when
        return entry

    def _entry(self, number: int, text: bytes) -> Entry:
        return _parsed(self.place, number, text)

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
        if version in (b"5", b"6"):
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
    found.last, found.head, found.when = number, previous.decode(), _time(text)
    return found


def charges_by(books: Books, account: str, principal: str) -> tuple[list[tuple[str, Cost]], str]:
    """The charges of a principal to an account, each with the moment of their allowance then.

    And the last such moment; the entry that is being written has none yet.
    """
    start, letters = _account(account) + _AFTER_ACCOUNT, b'"principal":%b' % _letters(principal)
    charges, latest, before = [], "", b""
    for number, text, _, _ in books.texts():
        if text.startswith(start) and letters in text:
            entry = _parsed(books.place, number, text)
            latest = max(latest, moment_of(entry.when, _time(before)))
            if entry.cost is not None:
                charges.append((latest, entry.cost))
        before = text
    return charges, latest


def _parsed(place: Place, number: int, text: bytes) -> Entry:
    try:
        entry = Entry.read(text.decode("ascii"))
    except (Malformed, UnicodeError):
        raise _broken(place, number) from None
    if entry.sequence != number:
        raise _broken(place, number)
    return entry


def _time(text: bytes) -> str:
    """The time that an entry states, if it does."""
    found = _WHEN.search(text)
    return "" if found is None else found[1].decode()


def _account(name: str) -> bytes:
    return f'{{"account":{canonical_json(name)}'.encode()


def _principal(entry: Entry) -> Principal:
    return Principal(name=entry.principal or "", role=entry.role, since=entry.sequence)


def _letters(name: str) -> bytes:
    return canonical_json(name).encode()


_NO_ACCOUNT = b'{"account":null'


def _question(question: str) -> bytes:
    return f'"question":{canonical_json(question)},'.encode()


def _broken(place: Place, number: int, how: str = "does not follow the one before") -> Exception:
    return damaged(place, f"was changed: entry {number} {how}; look at lastbit ledger verify")


def chain_problems(
    rows: Iterable[StoredEntry],
    *,
    secret: str,
    last: int | None,
    heads: Collection[str] = (),
    no_answers: dict[int, str] | None = None,
) -> Iterator[str]:
    """Each problem in words, none of them with anything from a record.

    `secret` is the digest of the ledger's secret, `last` the highest number that the file says it
    ever gave out, `heads` are hashes noted elsewhere, which must be in the chain. At the end
    `no_answers` has the numbers of entries whose record is no answer, and is not withdrawn, and why
    it is none.
    """
    unread: dict[int, str] = {} if no_answers is None else no_answers
    answers: dict[str, int] = {}
    missing = dict.fromkeys(heads)
    accounts: dict[str, Account] = {}
    charges: dict[str, list[Cost]] = {}
    open_: dict[str, Entry] = {}
    rights = _Rights()
    number, previous = 0, FIRST
    for row in rows:
        number += 1
        if row.sequence != number:
            yield f"entry {number} is missing"
            number = row.sequence
        missing.pop(row.hash, None)
        try:
            entry = row.read_whole()
        except Malformed as problem:
            yield f"entry {number} {problem}"
            previous = row.hash
            continue
        if entry.previous != previous:
            yield f"entry {number} does not follow the entry before it"
        previous = row.hash
        if (entry.kind == "opened") != (number == 1):
            yield f"entry {number} is an opening out of place, or the first entry is not an opening"
        if number == 1 and entry.secret != secret:
            yield "the secret is not the one that the ledger was opened with"
        yield from _account_problems(entry, accounts, charges)
        yield from _settling_problems(entry, open_, unread)
        if entry.result is not None:
            answers[row.hash] = number
        elif entry.kind == "withdrawn":
            withdrawn = answers.pop(entry.reservation or "", None)
            if withdrawn is None:
                yield f"entry {number} withdraws no answer"
            unread.pop(withdrawn or 0, None)
        yield from rights.problems(entry)
    if number == 0:
        yield "there is no entry"
    if last is not None and last > number:
        yield f"the last entries are missing: {last} were written, {number} are there"
    for hash_ in missing:
        yield f"no entry has the hash {hash_[:64]}: the end is missing, or the chain was rewritten"


def _account_problems(
    entry: Entry, accounts: dict[str, Account], charges: dict[str, list[Cost]]
) -> Iterator[str]:
    """Whether the account's new state follows from its last one by the rules of `Account`.

    The charges so far are those that a filter counts again when it takes an account over.
    """
    if entry.account is None:
        if entry.kind not in ("opened", "note", "principal"):
            yield f"entry {entry.sequence} has no account"
        return
    before = accounts.get(entry.account)
    stated = entry.state
    expected: Account | None = before
    if entry.kind == "budget":
        try:
            opened = before or Account(name=entry.account, budget=None)
            if entry.budget is not None and opened.opens_filter(entry.budget):
                expected = opened.reopened(entry.budget, charges.get(entry.account, []))
            else:
                expected = opened.with_budget(entry.budget)
            expected = expected.with_neighbours(entry.neighbours)
        except LastbitError:
            yield f"entry {entry.sequence} exceeds the budget, or is of other neighbours"
    elif entry.kind in ("charge", "reserved"):
        if before is None or entry.cost is None:
            yield f"entry {entry.sequence} charges an account that is not open, or nothing"
        elif stated is not None and before.leads_to(stated, entry.cost):
            expected = stated
        else:
            yield f"entry {entry.sequence} exceeds the budget, or states the wrong total"
    elif entry.cost is not None:
        yield f"entry {entry.sequence} names a price, and charges nothing"
    if entry.cost is not None:
        charges.setdefault(entry.account, []).append(entry.cost)
    if stated != expected:
        yield f"entry {entry.sequence} states a total or budget that differs from its account's"
    if stated is not None:
        accounts[entry.account] = stated


def _settling_problems(
    entry: Entry, open_: dict[str, Entry], no_answers: dict[int, str]
) -> Iterator[str]:
    """Whether an answer has a reservation of its own: open, of its account and question."""
    paid: Entry | None = None
    if entry.kind == "reserved":
        open_[entry.hash] = entry
        if entry.reservation is not None or entry.question is None or entry.result is not None:
            yield f"entry {entry.sequence} is not a reservation"
    elif entry.kind == "charge":
        paid = entry
    elif entry.kind in ("settled", "voided"):
        paid = open_.pop(entry.reservation or "", None)
        if paid is None:
            yield f"entry {entry.sequence} answers no open reservation"
        elif (paid.account, paid.question) != (entry.account, entry.question):
            yield f"entry {entry.sequence} answers a reservation for something else"
        if (entry.result is None) != (entry.kind == "voided"):
            yield f"entry {entry.sequence} settles without an answer, or voids with one"
    problem = entry.unreadable
    if paid is not None and entry.record is not None:
        problem = answer_problem(entry.record, entry, paid.cost)
    if problem is not None:
        no_answers[entry.sequence] = problem


@dataclass(slots=True)
class _Rights:
    """Roles and allowances after the entries so far, by the rules of `principals.py` alone."""

    known: dict[str, Principal] = field(default_factory=dict)
    allowances: dict[tuple[str, str], Allowance | None] = field(default_factory=dict)
    charges: dict[tuple[str, str], list[tuple[str, Cost]]] = field(default_factory=dict)
    latest: dict[tuple[str, str], str] = field(default_factory=dict)
    when: str = ""

    def problems(self, entry: Entry) -> Iterator[str]:
        """Whether an entry is by somebody who may, and states its allowance as it is."""
        name, before, self.when = entry.principal, self.when, entry.when
        if name is None:
            if entry.kind in ("charge", "reserved") and self.known:
                yield f"entry {entry.sequence} charges in the name of no principal"
            return
        if not is_time(entry.when):
            yield f"entry {entry.sequence} does not say when it was written"
            return
        if entry.kind == "principal":
            try:
                check_role(self.known, name, entry.role, by=entry.who or "")
            except LastbitError:
                yield f"entry {entry.sequence} gives a role that may not be given, or not by them"
            self.known[name] = _principal(entry)
            for pair in [pair for pair in self.allowances if pair[1] == name]:
                del self.allowances[pair]
            return
        pair = entry.account or "", name
        moment = max(moment_of(entry.when, before), self.latest.get(pair, ""))
        self.latest[pair] = moment
        expected = self.allowances.get(pair)
        try:
            expected = self._after(entry, pair, expected, moment)
        except LastbitError:
            who = entry.who if entry.kind == "allowance" else name
            yield f"entry {entry.sequence} is more than {(who or '')[:80]} may do"
        if entry.allowance != expected:
            yield f"entry {entry.sequence} states a limit, or what is used of it, wrongly"
        if entry.cost is not None:
            self.charges.setdefault(pair, []).append((moment, entry.cost))
        self.allowances[pair] = entry.allowance

    def _after(
        self, entry: Entry, pair: tuple[str, str], before: Allowance | None, moment: str
    ) -> Allowance | None:
        account, name = pair
        if entry.kind == "allowance":
            check_allowed(self.known, name, entry.limit, by=entry.who or "")
            if entry.limit is None:
                return None
            return counted(account, name, entry.limit, self.charges.get(pair, []), moment)
        check_charging(self.known.get(name), name, account, before)
        if before is None or entry.cost is None:
            return before
        return before.at(moment).charged(entry.cost)
