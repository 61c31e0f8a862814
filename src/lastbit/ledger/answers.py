"""Answers in the books: which records are some, which answers a question again, and what is said.

Whoever may charge writes a record beside the charge, and may write anything (`records.py`). A
record is an *answer* only if it names no other price, plan or neighbours than its entry, and no
steward has withdrawn it.

**Not trusted with privacy.** Records are made of noisy numbers that are in the books already, or by
somebody who never saw the data. What is decided here is which of them is shown again at no charge,
or that a call is refused: no price, sum or draw depends on it (`charging.py`).
Checked  tests/ledger/test_believed_records.py, test_restoring.py and test_ledger.py
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lastbit.canonical import canonical_json, digest_of
from lastbit.errors import InvalidParameter, WrongType
from lastbit.ledger.chain import IsAnswer, Scan, StoredEntry, broken, intact, stored
from lastbit.ledger.entry import NEIGHBOURS, Account, Entry
from lastbit.ledger.records import record_of
from lastbit.ledger.storage import Books, damaged
from lastbit.tables import Cost

WITHDRAWN = "was withdrawn by a steward"
_MOST_TRIED = 20  # answers to one question that are no answers, before it is asked anew


def answer_problem(record: Mapping[str, Any], entry: Entry, cost: Cost | None) -> str | None:
    """How what an answer states differs from its entry, and its price; None if they match.

    An answer need not say these things: then there is nothing to compare.
    """
    if entry.neighbours is not None and claimed_neighbours(record) not in (None, entry.neighbours):
        return "is about other neighbours than its account"
    return price_problem(record, cost, entry.plan)


def price_problem(record: Mapping[str, Any], cost: Cost | None, plan: str | None) -> str | None:
    """The same for price and plan alone."""
    price = None if cost is None else cost.to_json()
    if "cost" in record and record["cost"] != price:
        return "names another price than was charged for it"
    if "plan" in record:
        told = record["plan"]
        if not isinstance(told, Mapping) or told.get("cost") != price:
            return "has a plan of another price than was charged for it"
        if digest_of(told) != plan:
            return "has another plan than its entry"
    return None


def claimed_neighbours(record: Mapping[str, Any]) -> str | None:
    """Of which neighbours an answer says that it is; None: it says nothing of the kind.

    Its writer's word: good for a doubt, and for nothing else.
    """
    certificate = record.get("certificate")
    claim = certificate.get("claim") if isinstance(certificate, Mapping) else None
    if not isinstance(claim, Mapping) or not {"neighbours", "unit"} <= claim.keys():
        return None
    said = f"{claim['neighbours']} of {'rows' if claim['unit'] is None else 'units'}"
    return said if said in NEIGHBOURS else None


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


def newest_answer(books: Books, chain: Scan, is_answer: IsAnswer) -> Entry | None:
    """The newest answer to the question that was looked for; None: there is none."""
    for number in chain.answers[: -_MOST_TRIED - 1 : -1]:
        entry = _entry_in(books, chain, number)
        if entry.record is not None and is_answer(entry.record):
            return entry
    return None


def closing_entry(books: Books, chain: Scan, reservation: Entry) -> Entry | None:
    """The entry that answers a reservation, with the answer, or that makes it void."""
    number = chain.closed.get(reservation.hash.encode())
    return None if number is None else _entry_in(books, chain, number)


def _entry_in(books: Books, chain: Scan, number: int) -> Entry:
    entry = numbered(books, number, Known(chain.withdrawn))
    if entry is None:
        raise broken(books.place, number)
    return entry


def answer_before(books: Books, chain: Scan, reservation: Entry) -> Entry | None:
    """The answer that a reservation has already; one that is closed without is refused."""
    earlier = closing_entry(books, chain, reservation)
    if earlier is None or earlier.record is not None:
        return earlier
    if earlier.unreadable is not None:
        raise damaged(books.place, f"has an answer already, which {earlier.unreadable}")
    why = "was restored from a backup, which made this price void"
    if earlier.words is not None:
        why = f"has closed this reservation: {earlier.words[:200]}"
    raise damaged(books.place, why)


def check_claims(books: Books, account: Account, neighbours: str | None) -> None:
    """Refuse neighbours that an answer so far is not of; ledgers of old did not state them.

    Records are their writers' word, so they may raise a doubt and do no more: it is the card of
    somebody who may decide that says which neighbours there are.
    """
    if neighbours is None or account.unused:
        return
    rows = list(stored(books, "WHERE account = ? ORDER BY sequence", account.name))
    entries = [intact(books.place, row) for row in rows]
    known = known_by(books, entries)
    for number in (entry.sequence for entry in entries if entry.result is not None):
        answer = numbered(books, number, known)
        record = {} if answer is None else answer.record or {}
        if claimed_neighbours(record) not in (None, neighbours):
            problem = f"{account.name} has answers about other neighbours or units"
            problem += f": entry {number}"
            remedy = "let cards that share an account declare the same neighbours and units; "
            remedy += "if somebody made the entry up, a steward can run lastbit ledger withdraw"
            raise InvalidParameter("account", problem=problem, remedy=remedy)


def written_answer(
    record: Mapping[str, Any], cost: Cost | None, plan: str | None
) -> tuple[str, dict[str, Any]]:
    """The text of an answer, and the answer as read from it.

    One of another price or plan than is paid for is refused.
    """
    written = canonical_json({**record, "entry": None})
    answer = record_of(written)
    if answer is None:
        problem, remedy = "is larger or deeper than a ledger keeps", "ask for fewer groups at once"
        raise WrongType("answer", problem=problem, remedy=remedy)
    other = price_problem(answer, cost, plan)
    if other is not None:
        raise WrongType("answer", problem=other, remedy="pass the one that was reserved")
    return written, answer
