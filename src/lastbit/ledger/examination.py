r"""What is wrong with a chain of entries, link by link and rule by rule: for auditors.

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
Checked  tests/ledger/test_chain.py, tests/ledger/test_forged_principals.py
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from lastbit.errors import LastbitError
from lastbit.ledger.answers import answer_problem
from lastbit.ledger.chain import StoredEntry
from lastbit.ledger.deciding import (
    check_allowed,
    check_role,
    counted,
    leads_to,
    with_budget,
)
from lastbit.ledger.entry import FIRST, Account, Entry, Malformed
from lastbit.ledger.principals import (
    Allowance,
    Principal,
    allowance_of,
    check_charging,
    is_time,
    moment_of,
    principal_of,
)
from lastbit.tables import Cost


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
    drawn: set[str] = set()
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
        yield from _settling_problems(entry, open_, drawn, unread)
        if entry.result is not None and entry.kind != "drawn":
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
            after = with_budget(opened, entry.budget, charges.get(entry.account, []))
            expected = after.with_neighbours(entry.neighbours)
        except LastbitError:
            yield f"entry {entry.sequence} exceeds the budget, or is of other neighbours"
    elif entry.kind in ("charge", "reserved"):
        if before is None or entry.cost is None:
            yield f"entry {entry.sequence} charges an account that is not open, or nothing"
        elif stated is not None and leads_to(before, stated, entry.cost):
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
    entry: Entry, open_: dict[str, Entry], drawn: set[str], no_answers: dict[int, str]
) -> Iterator[str]:
    """Whether an answer has a reservation of its own: open, of its account and question."""
    paid: Entry | None = None
    if entry.kind == "reserved":
        open_[entry.hash] = entry
        if entry.reservation is not None or entry.question is None or entry.result is not None:
            yield f"entry {entry.sequence} is not a reservation"
    elif entry.kind == "charge":
        paid = entry
    elif entry.kind == "drawn":
        paid = open_.get(entry.reservation or "")
        of_another = paid is None or (paid.account, paid.question) != (
            entry.account,
            entry.question,
        )
        if of_another or entry.result is None or entry.reservation in drawn:
            yield f"entry {entry.sequence} has numbers for no reservation, or for one that has some"
        drawn.add(entry.reservation or "")
        return
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
            self.known[name] = principal_of(entry)
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
        if allowance_of(entry) != expected:
            yield f"entry {entry.sequence} states a limit, or what is used of it, wrongly"
        if entry.cost is not None:
            self.charges.setdefault(pair, []).append((moment, entry.cost))
        self.allowances[pair] = allowance_of(entry)

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
