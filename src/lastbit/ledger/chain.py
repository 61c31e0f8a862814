"""What is wrong with a chain of entries: every hash, every total, every record, worked out again.

Theorem  if no problem is found, then what each account has spent is the sum of the charges in the
         file and was within its budget at every entry; and whoever knows the hash of one entry
         knows that no entry up to it was changed, dropped, added or moved since, unless they know
         two texts of one SHA-256
Proof    the first part is `account.py`'s, whose rules are applied anew here. For the second, each
         hash is that of a text that holds the hash before: equal hashes mean equal texts, so equal
         hashes before, and so on down to the first entry
Differs  nothing is promised of entries after the last hash that somebody noted: whoever can write
         the file can drop them, or write the chain anew. That is why a hash is noted elsewhere
Checked  tests/ledger/test_chain.py
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from lastbit.errors import LastbitError
from lastbit.ledger.account import Account
from lastbit.ledger.entry import FIRST, Entry, Malformed
from lastbit.ledger.rows import Row, check_record, readable

__all__ = ["chain_problems"]


def chain_problems(
    rows: Iterable[Row], *, secret: str, last: int | None, heads: Collection[str] = ()
) -> Iterator[str]:
    """Each problem in words, none of them with anything from a record.

    `secret` is the digest of the ledger's secret, `last` the highest number that the file says it
    ever gave out, `heads` are hashes noted elsewhere, which must be in the chain.
    """
    missing = dict.fromkeys(heads)
    accounts: dict[str, Account] = {}
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
    if number == 0:
        yield "there is no entry"
    if last is not None and last > number:
        yield f"the last entries are missing: {last} were written, {number} are there"
    for hash_ in missing:
        yield f"no entry has the hash {hash_[:64]}: the end is missing, or the chain was rewritten"


def _account_problems(entry: Entry, accounts: dict[str, Account]) -> Iterator[str]:
    """Whether the account's new state follows from its last one by the rules of `account.py`."""
    if entry.account is None:
        if entry.kind in ("charge", "budget"):
            yield f"entry {entry.sequence} has no account"
        return
    before = accounts.get(entry.account)
    stated = entry.state
    expected: Account | None = before
    try:
        if entry.kind == "budget":
            expected = (before or Account(name=entry.account, budget=None)).with_budget(
                entry.budget
            )
        elif entry.kind == "charge" and before is not None and entry.cost is not None:
            expected = before.charged(entry.cost)
        elif entry.kind == "charge":
            yield f"entry {entry.sequence} charges an account that is not open, or nothing"
    except LastbitError:
        yield f"entry {entry.sequence} breaks the budget"
    if stated != expected:
        yield f"entry {entry.sequence} states another sum or budget than its account has"
    if stated is not None:
        accounts[entry.account] = stated
