"""What is wrong with a chain of entries: every hash, every total, every record, worked out again.

Theorem  if no problem is found, then what each account has spent is the sum of the charges in the
         file (or more: `account.py`) and was within its budget at every entry; every answer has a
         charge of its own, made before it, of the price and the plan that it names; and
         whoever knows the hash of one entry knows that no entry up to it was changed, dropped,
         added or moved since, unless they know two texts of one SHA-256
Proof    the first part is `account.py`'s, whose rules are applied anew here. For the second, each
         hash is that of a text that holds the hash before: equal hashes mean equal texts, so equal
         hashes before, and so on down to the first entry
Differs  nothing is promised of entries after the last hash that somebody noted: whoever can write
         the file can drop them, or write the chain anew. That is why a hash is noted elsewhere
Checked  tests/ledger/test_chain.py
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator

from lastbit.errors import LastbitError
from lastbit.ledger.account import Account
from lastbit.ledger.entry import FIRST, Entry, Malformed
from lastbit.ledger.reservations import price_problem
from lastbit.ledger.rows import Row, check_record, readable


def chain_problems(
    rows: Iterable[Row], *, secret: str, last: int | None, heads: Collection[str] = ()
) -> Iterator[str]:
    """Each problem in words, none of them with anything from a record.

    `secret` is the digest of the ledger's secret, `last` the highest number that the file says it
    ever gave out, `heads` are hashes noted elsewhere, which must be in the chain.
    """
    missing = dict.fromkeys(heads)
    accounts: dict[str, Account] = {}
    open_: dict[str, Entry] = {}
    number, previous = 0, FIRST
    for row in rows:
        number += 1
        if row.sequence != number:
            yield f"entry {number} is missing"
            number = row.sequence
        missing.pop(row.hash, None)
        try:
            entry = readable(row)
            check_record(row, entry)
        except Malformed as problem:
            yield f"entry {number} {problem}"
            previous = row.hash
            continue
        if entry.previous != previous:
            yield f"entry {number} does not follow the entry before it"
        previous = row.hash
        if (entry.kind == "opened") != (number == 1):
            yield f"entry {number} is an opening out of place, or the first is none"
        if number == 1 and entry.secret != secret:
            yield "the secret is not the one that the ledger was opened with"
        yield from _account_problems(entry, accounts)
        yield from _settling_problems(entry, row.record, open_)
    if number == 0:
        yield "there is no entry"
    if last is not None and last > number:
        yield f"the last entries are missing: {last} were written, {number} are there"
    for hash_ in missing:
        yield f"no entry has the hash {hash_[:64]}: the end is missing, or the chain was rewritten"


def _account_problems(entry: Entry, accounts: dict[str, Account]) -> Iterator[str]:
    """Whether the account's new state follows from its last one by the rules of `account.py`."""
    if entry.account is None:
        if entry.kind in ("charge", "budget", "reserved", "settled", "voided"):
            yield f"entry {entry.sequence} has no account"
        return
    before = accounts.get(entry.account)
    stated = entry.state
    expected: Account | None = before
    if entry.kind == "budget":
        try:
            opened = before or Account(name=entry.account, budget=None)
            expected = opened.with_budget(entry.budget)
        except LastbitError:
            yield f"entry {entry.sequence} breaks the budget"
    elif entry.kind in ("charge", "reserved"):
        if before is None or entry.cost is None:
            yield f"entry {entry.sequence} charges an account that is not open, or nothing"
        elif stated is not None and before.leads_to(stated, entry.cost):
            expected = stated
        else:
            yield f"entry {entry.sequence} breaks the budget, or its sum is another"
    elif entry.cost is not None:
        yield f"entry {entry.sequence} names a price, and charges nothing"
    if stated != expected:
        yield f"entry {entry.sequence} states another sum or budget than its account has"
    if stated is not None:
        accounts[entry.account] = stated


def _settling_problems(entry: Entry, record: str | None, open_: dict[str, Entry]) -> Iterator[str]:
    """Whether an answer has a reservation of its own: open, of its account, question and price."""
    if entry.kind == "reserved":
        open_[entry.hash] = entry
        if entry.reservation is not None or entry.question is None or entry.result is not None:
            yield f"entry {entry.sequence} is no reservation"
    elif entry.kind == "charge":
        yield from _price_problems(entry, record, entry)
    elif entry.kind in ("settled", "voided"):
        paid = open_.pop(entry.reservation or "", None)
        if paid is None:
            yield f"entry {entry.sequence} answers no open reservation"
        elif (paid.account, paid.question) != (entry.account, entry.question):
            yield f"entry {entry.sequence} answers a reservation for something else"
        if (entry.result is None) != (entry.kind == "voided"):
            yield f"entry {entry.sequence} settles without an answer, or voids with one"
        if paid is not None and entry.kind == "settled":
            yield from _price_problems(entry, record, paid)


def _price_problems(entry: Entry, record: str | None, paid: Entry) -> Iterator[str]:
    answer = None if record is None else json.loads(record)
    problem = price_problem(answer, paid.cost, entry.plan) if isinstance(answer, dict) else None
    if problem is not None:
        yield f"the answer of entry {entry.sequence} {problem}"
