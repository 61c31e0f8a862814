"""`Ledger`: the books of all tables that share a file, in SQLite.

Law      `reserve`, `settle` and `charge` are one transaction each, which no other process can
         interrupt: they read the last entry and the account, apply the rules of `entry.py`, and
         append; or they change nothing
         A charge in the name of an analyst must have room in the account and in the allowance
Theorem  (a) at every instant, and after a crash at any, what the entries of an account cost is
         within its budget. (b) A reservation or an answer that was returned is in the file for
         good. (c) A reservation has at most one answer
Proof    (a) BEGIN IMMEDIATE takes SQLite's write lock before the total is read, so the total is
         still the last when the charge is appended; it is read from the whole chain, every hash
         checked and no index trusted (`chain.py`); the sum is exact, or rounded up; a commit is
         atomic. (b) the commit has been synced before the call returns (`sqlite.py` says why
         EXTRA). (c) `settle` looks for the answer under the same lock. All rest on SQLite, and on
         a disk and file system that do what a sync and a lock ask for
Source   SQLite, "Atomic Commit In SQLite"; "PRAGMA synchronous"
Checked  tests/ledger/test_ledger.py, test_reservations.py, test_many_processes.py and
         test_overspending.py; tests/faults/test_killed.py: killed at each system call
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lastbit.addresses import Address, is_address
from lastbit.canonical import canonical_json, digest_of, sha256
from lastbit.errors import InvalidParameter, LastbitError, LedgerDamaged, WrongType
from lastbit.files import exists, same_place
from lastbit.ledger.chain import (
    IsAnswer,
    Known,
    Scan,
    chain_problems,
    charges_by,
    intact,
    known_by,
    numbered,
    scanned,
    stored,
)
from lastbit.ledger.entry import Account, Entry
from lastbit.ledger.principals import (
    Allowance,
    Limit,
    Principal,
    Role,
    check_allowed,
    check_charging,
    check_deciding,
    check_role,
    counted,
    moment_of,
)
from lastbit.ledger.records import claimed_neighbours, is_unicode, price_problem, record_of
from lastbit.ledger.storage import (
    SECRET_BYTES,
    Books,
    Place,
    connected,
    damaged,
    place_of,
    storage_of,
    unusable,
)
from lastbit.privacy import GaussianCost, MomentCost
from lastbit.sampling import secure_bits
from lastbit.tables import Budget, Cost, budgets_agree, check_budget

_LONGEST_NAME = 200
_ACCEPTED = "data of {table} accepted: {data}"
_ONCE = "let a steward run lastbit budget card.toml --set, once"
_PATIENCE = 30.0  # seconds to wait for other processes before giving up


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """A ledger in a file or a database; every call opens it, so threads and forks may share one.

    `opened` is the hash of the first entry: another ledger that is put in the place of this one is
    noticed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.open(Path(folder) / "hospital.ledger")
    ...     print(ledger.problems(), [entry.kind for entry in ledger.entries(last=5)])
    [] ['opened']
    """

    path: Any
    """A `Path`, or the `Address` of a database."""
    opened: str
    patience: float = field(default=_PATIENCE, repr=False)

    @staticmethod
    def open(path: str | os.PathLike[str] | Address, *, patience: float = _PATIENCE) -> Ledger:
        """The ledger at this place; a new one if that is a path and there is no file.

        In a database a new one is made by `Ledger.init` alone: a slip in an address must not come
        with a fresh budget.
        """
        place = place_of(path)
        if isinstance(place, Path) and not exists(place):
            _new_ledger(place, patience=patience)
        return Ledger.existing(place, patience=patience)

    @staticmethod
    def init(path: str | os.PathLike[str] | Address, *, patience: float = _PATIENCE) -> Ledger:
        """A new ledger, where there is none; in a database with the roles of those who use it."""
        place = place_of(path)
        if not _new_ledger(place, patience=patience):
            raise unusable(place, "exists, and is not replaced", "name another place")
        return Ledger.existing(place, patience=patience)

    @staticmethod
    def upgrade(path: str | os.PathLike[str] | Address, *, patience: float = _PATIENCE) -> bool:
        """Bring a ledger that an older lastbit made in a database to today's tables and functions.

        Its owner does this; entries stay as they are. False if there was nothing to do.
        """
        place = place_of(path)
        return storage_of(place).upgraded(place, patience=patience)

    @staticmethod
    def existing(path: str | os.PathLike[str] | Address, *, patience: float = _PATIENCE) -> Ledger:
        """The ledger at this place, which must be there."""
        place = place_of(path)
        with connected(place, patience=patience) as books:
            first = next(stored(books, "WHERE sequence = 1"), None)
        if first is None:
            raise damaged(place, "has lost its first entry; restore a backup")
        return Ledger(path=place, opened=first.hash, patience=patience)

    def is_at(self, path: str | os.PathLike[str]) -> bool:
        """Whether this place is the ledger's own, by whatever name or user."""
        if isinstance(self.path, Address):
            return is_address(path) and self.path.leads_to(place_of(path))
        return not is_address(path) and same_place(self.path, path)

    @property
    def user(self) -> str:
        """In whose name this process acts: the database's user, or the operating system's."""
        with self._connected() as books:
            return books.user()

    def account(self, name: str, budget: Budget | None, neighbours: str | None = None) -> Account:
        """Open an account with this budget, or see that it has this budget; None is no limit.

        The same for `neighbours` (`neighbours_of` a card), if they are given: prices of other ones
        do not add up. Ledgers of old do not state them; the next charge does. Where a database
        keeps the ledger, a steward opens accounts.
        """
        _check_name(name)
        with self._connected() as books:
            found = self._chain(books).account(name)
            if found is None:
                with books.transaction():
                    chain = self._chain(books)  # another process may have been first
                    found = chain.account(name)
                    if found is None:
                        check_budget(budget)
                        new = Account(name=name, budget=None).with_budget(budget)
                        found = self._write_account(books, chain, new.with_neighbours(neighbours))
        if not budgets_agree(found.budget, budget):
            raise InvalidParameter(
                f"the budget of {name}",
                problem="is not the one that the ledger has for it",
                remedy="put the old one back on the card, or let the steward change the ledger's "
                "by lastbit budget card.toml --set",
            )
        if found.neighbours is not None and neighbours not in (None, found.neighbours):
            raise found.other_neighbours()
        return found

    def _write_account(self, books: Books, chain: Scan, state: Account) -> Account:
        """An account as a card declares it, written down; refused to those who may only ask."""
        known = chain.principal(books.user()) if chain.named else None
        if not books.decides or (known is not None and known.role not in (None, "steward")):
            what = "is not open" if chain.account(state.name) is None else "states no neighbours"
            raise InvalidParameter("account", problem=f"{state.name[:80]} {what}", remedy=_ONCE)
        chain.append(books, _budget_entry(state, who=None))
        return state

    def _with_neighbours(
        self, books: Books, chain: Scan, name: str, neighbours: str | None
    ) -> Account | None:
        """An account that is charged a price of these neighbours; it states them from now on."""
        found = chain.account(name)
        if found is None or neighbours in (None, found.neighbours):
            return found
        if found.neighbours is not None:
            raise found.other_neighbours()
        self._check_claims(books, found, neighbours)
        return self._write_account(books, chain, found.with_neighbours(neighbours))

    def _check_claims(self, books: Books, account: Account, neighbours: str | None) -> None:
        """Refuse neighbours that an answer so far is not of; ledgers of old did not state them.

        Records are their writers' word, so they may raise a doubt and do no more: it is the card of
        somebody who may decide that says which neighbours there are.
        """
        if neighbours is None or account.unused:
            return
        known = known_by(books)
        for row in list(stored(books, "WHERE account = ? ORDER BY sequence", account.name)):
            entry = intact(self.path, row)
            known.take(entry, row.hash)
            if entry.result is None:
                continue
            found = numbered(books, row.sequence, known)
            record = {} if found is None else found.record or {}
            if claimed_neighbours(record) not in (None, neighbours):
                problem = f"{account.name} has answers about other neighbours or units"
                problem += f": entry {row.sequence}"
                remedy = "let cards that share an account declare the same neighbours and units; "
                remedy += "if somebody made the entry up, a steward can run lastbit ledger withdraw"
                raise InvalidParameter("account", problem=problem, remedy=remedy)

    def set_budget(
        self,
        name: str,
        budget: Budget | None,
        *,
        who: str | None = None,
        neighbours: str | None = None,
    ) -> Account:
        """Give an account another budget, which must cover what is spent; this is recorded too.

        `neighbours` are stated with it, if they are given. They stay once something is spent.

        In a ledger with principals a steward decides it: `who`, or else the user of this process.
        A budget of the kind "filter" reopens an account of plain sums: all its charges are counted
        again, by the filter's prices. One of the kind "gaussian" does so if none of them is in rho.
        """
        _check_texts(who=who)
        _check_name(name)
        with self._connected() as books, books.transaction():
            chain = self._chain(books)
            who = _decider(books, chain, who)
            found = chain.account(name)
            agrees = found is not None and budgets_agree(found.budget, budget)
            if found is not None and agrees and neighbours in (None, found.neighbours):
                return found
            check_budget(budget)
            account, words = found or Account(name=name, budget=None), None
            if account.neighbours is None:
                self._check_claims(books, account, neighbours)
            account = account.with_neighbours(neighbours)
            if agrees:
                after = account
            elif budget is not None and account.opens_filter(budget):
                charges = self._charges(books, name)
                after = account.reopened(budget, charges)
                if charges:
                    which = "moment" if budget.kind == "filter" else "Gaussian"
                    words = f"kept by the {which} filter from here on; charges before it: "
                    words += str(len(charges))
            else:
                after = account.with_budget(budget)
            chain.append(books, replace(_budget_entry(after, who=who), words=words))
        return after

    def accept_data(
        self, account: str, table: str, fingerprint: str, *, who: str | None = None
    ) -> Entry:
        """Record that a table's data of this fingerprint may be asked about; a steward decides it.

        That is `who`, or else the user of this process; anybody in a ledger without principals. It
        is an entry that states the budget again, so it takes the right to change that.
        """
        _check_texts(table=table, data=fingerprint, who=who)
        with self._connected() as books, books.transaction():
            chain = self._chain(books)
            who = _decider(books, chain, who)
            state = chain.account(account)
            if state is None:
                raise _not_open(account)
            words = _ACCEPTED.format(table=table, data=fingerprint)
            return chain.append(books, replace(_budget_entry(state, who=who), words=words))

    def accepted_data(self, account: str, table: str) -> str | None:
        """The fingerprint of the data that were accepted last; None if none ever were."""
        start = _ACCEPTED.format(table=table, data="")
        with self._connected() as books:
            opening = list(stored(books, "WHERE account = ? ORDER BY sequence LIMIT 1", account))
            # most entries are charges and answers: to parse all of them would take long
            budgets = "WHERE account = ? AND text LIKE ? ORDER BY sequence DESC"
            rows = list(stored(books, budgets, account, '%"kind":"budget"%'))
        for row in rows:
            entry = intact(self.path, row)
            if row.sequence == opening[0].sequence:  # which is made by anybody
                return None
            if entry.kind == "budget" and (entry.words or "").startswith(start):
                return (entry.words or "").removeprefix(start)
        return None

    def principals(self) -> tuple[Principal, ...]:
        """All principals, by name, those who were removed too; none in a ledger without them."""
        with self._connected() as books:
            found = self._chain(books).principals()
        return tuple(found[name] for name in sorted(found))

    def principal(self, name: str) -> Principal | None:
        """The principal of this name, who may have been removed."""
        _check_name(name, "principal")
        with self._connected() as books:
            return self._chain(books).principal(name)

    def set_principal(self, name: str, role: Role | None, *, by: str) -> Principal:
        """Give somebody a role, or None to remove them; stewards decide it, and it is recorded.

        The first principal is a steward, whoever decides it: from then on every charge names a
        principal. A new role ends the allowances of its principal. Removed names stay taken.
        """
        _check_name(name, "principal")
        _check_texts(by=by)
        with self._connected() as books, books.transaction():
            chain = self._chain(books)
            known = chain.principals()
            check_role(known, name, role, by=by)
            if name in known and known[name].role == role:
                return known[name]
            draft = Entry(kind="principal", principal=name, role=role, who=by)
            entry = chain.append(books, draft)
        return Principal(name=name, role=role, since=entry.sequence)

    def allowances(
        self, account: str | None = None, principal: str | None = None
    ) -> tuple[Allowance, ...]:
        """The allowances in force, as they are now, by account and principal."""
        with self._connected() as books:
            chain, when = self._chain(books), books.now()
            found = [one.at(moment_of(when, chain.when)) for one in chain.allowances()]
        chosen = (
            one
            for one in found
            if account in (None, one.account) and principal in (None, one.principal)
        )
        return tuple(sorted(chosen, key=lambda one: (one.account, one.principal)))

    def set_allowance(
        self, account: str, principal: str, limit: Limit | None, *, by: str
    ) -> Allowance | None:
        """Give an analyst a share of an account, or None to take it away; a steward decides it.

        What the analyst was charged in the period so far counts as used.
        """
        _check_name(account)
        _check_name(principal, "principal")
        _check_texts(by=by)
        with self._connected() as books, books.transaction():
            chain, when = self._chain(books), books.now()
            if chain.account(account) is None:
                raise _not_open(account)
            check_allowed(chain.principals(), principal, limit, by=by)
            before, after = chain.allowance(account, principal), None
            moment = moment_of(when, chain.when)
            if limit is not None:
                limit.check()
                charges, latest = charges_by(books, account, principal)
                after = counted(account, principal, limit, charges, max(moment, latest))
            if (before and before.limit) == limit:
                return after
            draft = chain.drafted(kind="allowance", account=account, who=by, when=when)
            chain.append(books, _with_allowance(draft, principal, after))
        return after

    def accounts(self) -> tuple[Account, ...]:
        """All accounts, by name."""
        with self._connected() as books:
            found = self._chain(books).accounts()
            return tuple(sorted(found, key=lambda account: account.name))

    def spent(self, account: str) -> Cost | MomentCost | GaussianCost:
        """What the account has spent, exactly; nothing if it was never opened."""
        found = self._account(account)
        return Cost() if found is None else found.spent

    def remaining(self, account: str) -> Cost | MomentCost | GaussianCost | None:
        """What the account may still spend; None where there is no limit."""
        found = self._account(account)
        if found is None:
            raise _not_open(account)
        return found.remaining

    def recorded(
        self, account: str, question: str, *, is_answer: IsAnswer = bool
    ) -> dict[str, Any] | None:
        """The newest answer to this very question, to be shown again at no charge.

        Whoever may charge may have written a record: `is_answer` says which to believe.
        """
        with self._connected() as books:
            chain = self._chain(books, account, question)
            found = chain.newest_answer(books, is_answer)
        return None if found is None or found.record is None else dict(found.record)

    def reserve(
        self,
        account: str,
        cost: Cost,
        *,
        who: str | None,
        question: str,
        plan_digest: str,
        fingerprint: str,
        words: str | None = None,
        query: str | None = None,
        fresh: bool = False,
        gaussian_noise: bool = False,
        principal: str | None = None,
        neighbours: str | None = None,
        is_answer: IsAnswer = bool,
    ) -> Entry:
        """Charge an answer that is still to be made; or raise, and change nothing.

        Nothing of the data may be read for it before this returns. What comes back is
        - an entry with a `record`, if the same was answered before (by a record that `is_answer`
          takes for one) and `fresh` is not asked for: show that, nothing is charged;
        - else a reservation to `settle`: an open one of the same question and price, which was
          charged then and which nobody has seen an answer to, or a new one, charged now.

        Say by `gaussian_noise` that all that is paid for is discrete Gaussian noise: an account
        that is kept by the Gaussian filter takes a price in rho for nothing else.

        A ledger with principals needs to know in whose name: `principal` must be one who may ask,
        also where nothing is charged, and an analyst's allowance must have room for the price.
        An account that does not state these `neighbours`, if any are given, is refused.
        """
        _check_charge(cost, who, question=question, plan=plan_digest, data=fingerprint)
        _check_texts(**_given(words=words, query=query, principal=principal))
        draft = Entry(
            kind="reserved",
            account=account,
            who=who,
            question=question,
            cost=cost,
            plan=plan_digest,
            fingerprint=fingerprint,
            words=words,
            query=query,
            principal=principal,
            neighbours=neighbours,
        )
        earlier = None if fresh else is_answer
        return self._charge(draft, earlier=earlier, gaussian_noise=gaussian_noise)

    def settle(
        self,
        reservation: Entry,
        record: Mapping[str, Any],
        *,
        who: str | None = None,
        plan_digest: str | None = None,
    ) -> Entry:
        """Record the answer to a reservation, before anybody sees it; this costs nothing more.

        Show `record` of the entry that comes back: if another process was first, it is that
        one's answer, and this one must not be shown. A reservation that is resumed by another
        version of lastbit may be answered by another plan of the same price: `plan_digest`. An
        answer that names another price or plan is refused.
        """
        _check_texts(who=who)
        if not isinstance(record, Mapping) or reservation.account is None:
            raise WrongType("answer", problem="has no record", remedy="pass the reservation's")
        plan = reservation.plan if plan_digest is None else plan_digest
        written, told = _written(record, reservation.cost, plan)
        with self._connected() as books, books.transaction():
            chain = self._chain(books)
            earlier = chain.closing(books, reservation)
            if earlier is not None and earlier.record is not None:
                return earlier
            if earlier is not None and earlier.unreadable is not None:
                raise damaged(self.path, f"has an answer already, which {earlier.unreadable}")
            if earlier is not None:
                why = "was restored from a backup, which made this price void"
                if earlier.words is not None:
                    why = f"has closed this reservation: {earlier.words[:200]}"
                raise damaged(self.path, why)
            self._check_open(chain, reservation)
            draft = chain.drafted(
                kind="settled",
                account=reservation.account,
                who=who,
                question=reservation.question,
                plan=plan,
                fingerprint=reservation.fingerprint,
                result=sha256(written),
                reservation=reservation.hash,
            )
            entry = chain.append(books, draft, written)
        return entry.with_record(told)

    def drawn(self, reservation: Entry) -> str | None:
        """STUB"""
        return None

    def draw(self, reservation: Entry, text: str) -> str:
        """STUB"""
        return text

    def fail(self, reservation: Entry, *, words: str, who: str | None = None) -> Entry:
        """Close an open reservation: it stays charged, and is never answered; `words` say why.

        They are for everybody to read, so they must not depend on the data. To ask the same again
        costs again. One that is closed already stays as it is; one that is answered is refused.
        """
        _check_texts(words=words, who=who)
        with self._connected() as books, books.transaction():
            chain = self._chain(books)
            earlier = chain.closing(books, reservation)
            if earlier is not None and earlier.kind == "settled":
                problem, remedy = "is answered already", "show the answer"
                raise InvalidParameter("reservation", problem=problem, remedy=remedy)
            if earlier is not None:
                return earlier
            self._check_open(chain, reservation)
            draft = chain.drafted(
                kind="voided",
                account=reservation.account,
                who=who,
                words=words,
                question=reservation.question,
                reservation=reservation.hash,
            )
            return chain.append(books, draft)

    def _check_open(self, chain: Scan, reservation: Entry) -> None:
        if reservation not in chain.open_reservations(reservation.account):
            raise damaged(self.path, "does not hold this reservation; ask again")

    def unanswered(self, account: str) -> tuple[Entry, ...]:
        """The account's reservations that are charged and not answered, in their order."""
        _check_name(account)
        with self._connected() as books:
            return tuple(self._chain(books).open_reservations(account))

    def answer_to(self, reservation: Entry) -> Entry | None:
        """The entry that settles a reservation, with the answer; None if there is no answer."""
        with self._connected() as books:
            found = self._chain(books).closing(books, reservation)
        return found if found is not None and found.kind == "settled" else None

    def holds(self, entry: Entry) -> bool | None:
        """Whether the ledger is there, whole, and has this entry; None if its server is silent."""
        try:
            with self._connected() as books:
                self._chain(books)
                row = next(stored(books, "WHERE hash = ?", entry.hash), None)
        except InvalidParameter:
            return None if isinstance(self.path, Address) else False
        except LastbitError:
            return False
        return row is not None and row.sequence == entry.sequence

    def paid_at(self, entry: Entry) -> int:
        """The number of the entry that charged for this answer."""
        if entry.reservation is None:
            return entry.sequence
        with self._connected() as books:
            row = next(stored(books, "WHERE hash = ?", entry.reservation), None)
        if row is None:
            raise damaged(self.path, "has lost a reservation; look at lastbit ledger verify")
        return row.sequence

    def charge(
        self,
        account: str,
        cost: Cost,
        *,
        who: str | None,
        question: str,
        plan_digest: str,
        fingerprint: str,
        record: Mapping[str, Any],
        fresh: bool = False,
        gaussian_noise: bool = False,
        principal: str | None = None,
    ) -> Entry:
        """Charge an answer that is already in hand, before anybody sees it; or raise.

        For what was made without a look at the data, or under a lock of the caller's: else
        `reserve` comes first. Show `record` of the entry that comes back: if another process asked
        the same in the meantime, it is that one's answer, and this one is neither charged nor to
        be shown. With `fresh` the same question is charged again; `gaussian_noise` and `principal`
        as in `reserve`.
        """
        _check_charge(cost, who, question=question, plan=plan_digest, data=fingerprint)
        _check_texts(**_given(principal=principal))
        if not isinstance(record, Mapping):
            raise WrongType("charge", problem="has no record", remedy="pass one")
        written, _ = _written(record, cost, plan_digest)
        asked = record.get("asked")
        told = asked if isinstance(asked, Mapping) else {}
        draft = Entry(
            kind="charge",
            account=account,
            who=who,
            question=question,
            cost=cost,
            plan=plan_digest,
            fingerprint=fingerprint,
            result=sha256(written),
            words=told["sql"] if _is_text(told.get("sql")) else None,
            query=None if told.get("query") is None else digest_of(told["query"]),
            principal=principal,
        )
        earlier = None if fresh else bool
        return self._charge(draft, written, earlier=earlier, gaussian_noise=gaussian_noise)

    def _charge(
        self,
        draft: Entry,
        written: str | None = None,
        *,
        earlier: IsAnswer | None,
        gaussian_noise: bool,
    ) -> Entry:
        """Append a reservation, or a charge with its answer; or what answers the same already.

        `earlier` says which answers of before will do; None: none.
        """
        account, cost, allowance = draft.account, draft.cost, None
        assert account is not None and cost is not None
        with self._connected() as books, books.transaction():
            chain = self._chain(books, account, draft.question)
            if chain.named:
                allowance = _allowed(chain, account, draft.principal)
            else:  # a ledger without principals is as it always was
                draft = replace(draft, principal=None)
            known = None if earlier is None else chain.newest_answer(books, earlier)
            if known is not None:
                return known
            found = self._with_neighbours(books, chain, account, draft.neighbours)
            if draft.kind == "reserved":
                for paid in chain.open_reservations(account, draft.question):
                    # without a steward's rights, one answers what is paid for in the own name
                    own = books.decides or paid.principal == draft.principal
                    if own and (paid.cost, paid.fingerprint) == (cost, draft.fingerprint):
                        return replace(paid, resumed=True)
            books.check_writable()
            if found is None:
                raise _not_open(account)
            after = found.charged(cost, gaussian_noise=gaussian_noise)
            paid = replace(
                draft, spent=after.spent, budget=after.budget, neighbours=after.neighbours
            )
            if allowance is not None:
                when = books.now()
                allowance = allowance.at(moment_of(when, chain.when)).charged(cost)
                paid = _with_allowance(replace(paid, when=when), allowance.principal, allowance)
            entry = chain.append(books, paid, written)
        return entry if written is None else entry.with_record(record_of(written) or {})

    def withdraw(self, sequence: int, *, words: str, who: str | None = None) -> Entry:
        """Use the answer of an entry no more: one that is unreadable, say, or was made up.

        A steward decides it: `who`, or else the user of this process. What it cost stays charged,
        since somebody may have seen an answer. `words` say why, for everybody to read.
        """
        _check_texts(words=words, who=who)
        with self._connected() as books, books.transaction():
            chain = self._chain(books)
            who = _decider(books, chain, who)
            row = next(stored(books, "WHERE sequence = ?", sequence), None)
            entry = None if row is None else intact(self.path, row)
            if entry is None or entry.hash.encode() not in chain.answered:
                problem = "has no answer, or one that is withdrawn already"
                remedy = "lastbit ledger log lists the entries"
                raise InvalidParameter("entry", problem=problem, remedy=remedy)
            draft = chain.drafted(
                kind="withdrawn",
                account=entry.account,
                who=who,
                words=words,
                question=entry.question,
                reservation=entry.hash,
            )
            return chain.append(books, draft)

    def note(self, words: str, *, who: str | None = None, account: str | None = None) -> Entry:
        """Append a remark, say why a budget was changed."""
        _check_texts(note=words, who=who)
        with self._connected() as books, books.transaction():
            chain = self._chain(books)
            if account is not None and chain.account(account) is None:
                raise _not_open(account)
            draft = chain.drafted(kind="note", account=account, who=who, words=words)
            return chain.append(books, draft)

    @property
    def head(self) -> str:
        """The hash of the last entry. Noted elsewhere, it proves that the ledger lost nothing."""
        with self._connected() as books:
            return self._chain(books).head

    @property
    def secret(self) -> bytes:
        """32 random bytes made with the ledger, which no export holds."""
        with self._connected() as books:
            return secret_of(books)

    def keyed(self, fingerprint: bytes) -> str:
        """A fingerprint that says nothing of the data without the secret: HMAC-SHA256."""
        return hmac.new(self.secret, fingerprint, hashlib.sha256).hexdigest()

    def entries(self, account: str | None = None, *, last: int | None = None) -> tuple[Entry, ...]:
        """All entries in order, or the last ones of one account; answers are not read."""
        where = "" if account is None else "WHERE account = ?"
        values = () if account is None else (account,)
        most = () if last is None else (last,)
        tail = f"{where} ORDER BY sequence DESC{' LIMIT ?' if most else ''}"
        with self._connected() as books:
            newest = stored(books, tail, *values, *most)
            found = [intact(self.path, row) for row in newest]
        return tuple(reversed(found))

    def answers(self, account: str, *, last: int) -> Iterator[Entry]:
        """The answers among the last entries of an account, the newest first.

        Records that are no answers (`records.py`) are left out.
        """
        entries = self.entries(account, last=last)
        return (one for one in self.with_answers(reversed(entries)) if one.record is not None)

    def with_answers(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Entries of this ledger, with their answers where they have some."""
        listed = list(entries)
        with self._connected() as books:
            known = known_by(books)
        for entry in listed:
            known.take(entry, entry.hash)
        for entry in listed:
            yield entry if entry.result is None else self.entry(entry.sequence, known=known)

    def entry(self, sequence: int, *, known: Known | None = None) -> Entry:
        """One entry, with its answer if it has one; else `unreadable` may say why it has none.

        `known` is for those who follow the ledger, and know what other entries say of it.
        """
        with self._connected() as books:
            found = numbered(books, sequence, known_by(books) if known is None else known)
        if found is None:
            raise InvalidParameter(
                "entry", problem="is not in the ledger", remedy="lastbit ledger log lists them"
            )
        return found

    def problems(self, heads: Collection[str] = ()) -> list[str]:
        """What is wrong with the file, in words; nothing if all hashes, sums and answers fit.

        `heads` are hashes of entries that were noted elsewhere, as every certificate does. Nobody
        who may only ask can cause a problem: what they write is let in by the rules, or is no
        answer (`no_answers`).
        """
        return self._examine_chain(heads)[0]

    def no_answers(self) -> dict[int, str]:
        """By their numbers, the entries whose record is no answer, and why it is none.

        They are charged all the same. Those that a steward has withdrawn are not among them.
        """
        return self._examine_chain(())[1]

    def _examine_chain(self, heads: Collection[str]) -> tuple[list[str], dict[int, str]]:
        found: list[str] = []
        no_answers: dict[int, str] = {}
        try:
            with self._connected() as books, books.snapshot():
                found += books.problems()
                rows = stored(books, "ORDER BY sequence", records=True)
                secret, last = books.secret_digest(), books.last()
                if secret is None:
                    raise _without_secret(books)
                found += chain_problems(
                    rows, secret=secret, last=last, heads=heads, no_answers=no_answers
                )
        except LedgerDamaged as error:
            found.append(str(error))
        return found, no_answers

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the ledger as it is now, while others use it; an existing file is not replaced."""
        from lastbit.ledger.safekeeping import copied  # which is made of ledgers

        copied(self, path)

    @contextmanager
    def _connected(self) -> Iterator[Books]:
        with connected(self.path, patience=self.patience) as books:
            first = next(books.rows("WHERE sequence = 1"), None)
            if first is None or first[4] != self.opened:
                raise damaged(
                    self.path, "is not the one that was opened: it was exchanged; open it again"
                )
            yield books

    def _chain(
        self,
        books: Books,
        account: str | None = None,
        question: str | None = None,
    ) -> Scan:
        """All entries, read in one pass; with the newest answer to a question, if one is named."""
        if account is not None:
            _check_name(account)
        if question is not None:
            _check_texts(question=question)
        return scanned(books, account=account, question=question)

    def _charges(self, books: Books, name: str) -> list[Cost]:
        """All charges to an account, in order, read from the entries: no index is trusted."""
        rows = stored(books, "ORDER BY sequence")
        entries = (intact(self.path, row) for row in rows)
        return [e.cost for e in entries if e.account == name and e.cost is not None]

    def _account(self, name: str) -> Account | None:
        _check_name(name)
        with self._connected() as books:
            return self._chain(books).account(name)


def _new_ledger(place: Place, *, patience: float) -> bool:
    secret = secure_bits().fill(SECRET_BYTES).tobytes()
    opening = Entry(kind="opened", secret=hashlib.sha256(secret).hexdigest())

    def fill(books: Books) -> None:
        Scan(place).append(books, opening)

    return storage_of(place).made(place, secret, fill, patience=patience)


def _budget_entry(state: Account, *, who: str | None) -> Entry:
    return Entry(
        kind="budget",
        account=state.name,
        who=who,
        spent=state.spent,
        budget=state.budget,
        neighbours=state.neighbours,
    )


def _decider(books: Books, chain: Scan, who: str | None) -> str | None:
    """Who decides; of a ledger with principals it must be a steward."""
    if not chain.named:
        return who
    decider = books.user() if who is None else who
    check_deciding(chain.principals(), decider)
    return decider


def _allowed(chain: Scan, account: str, name: str | None) -> Allowance | None:
    """Refuse a principal who may not ask this account; else an analyst's allowance for it."""
    who = None if name is None else chain.principal(name)
    allowance = None if name is None else chain.allowance(account, name)
    check_charging(who, name, account, allowance)
    return allowance


def _with_allowance(entry: Entry, principal: str, state: Allowance | None) -> Entry:
    """An entry that states an allowance as it is after it."""
    if state is None:
        return replace(entry, principal=principal)
    return replace(
        entry, principal=principal, limit=state.limit, used=state.used, since=state.since
    )


def _written(
    record: Mapping[str, Any], cost: Cost | None, plan: str | None
) -> tuple[str, dict[str, Any]]:
    """The text of an answer, and the answer as read from it.

    One of another price or plan than is paid for is refused.
    """
    written = canonical_json({**record, "entry": None})
    told = record_of(written)
    if told is None:
        problem, remedy = "is larger or deeper than a ledger keeps", "ask for fewer groups at once"
        raise WrongType("answer", problem=problem, remedy=remedy)
    other = price_problem(told, cost, plan)
    if other is not None:
        raise WrongType("answer", problem=other, remedy="pass the one that was reserved")
    return written, told


def secret_of(books: Books) -> bytes:
    """The ledger's secret; one that has lost it is refused."""
    found = books.secret()
    if not isinstance(found, bytes) or len(found) != SECRET_BYTES:
        raise _without_secret(books)
    return found


def _without_secret(books: Books) -> LedgerDamaged:
    return damaged(books.place, "has lost its secret; restore a backup")


def _check_charge(cost: object, who: object, **texts: object) -> None:
    _check_texts(who=who, **texts)
    if not isinstance(cost, Cost):
        raise WrongType("cost", problem="is not a Cost", remedy="pass Cost(epsilon=...)")


def _check_name(name: object, what: str = "account") -> None:
    """The name of a table or of a principal: short, and fit for any terminal."""
    _check_texts(**{what: name})
    if not str(name).isprintable() or len(str(name)) > _LONGEST_NAME:
        problem = "has a name that is too long or cannot be printed"
        thing = "table" if what == "account" else what
        remedy = f"name the {thing} by at most {_LONGEST_NAME} printable letters"
        raise InvalidParameter(what, problem=problem, remedy=remedy)


def _check_texts(*, who: object = None, **texts: object) -> None:
    """Texts that SQLite can hold: a lone surrogate of a broken file name is not one."""
    for name, text in (texts | _given(who=who)).items():
        if not _is_text(text):
            raise WrongType(name, problem="is not text, or empty", remedy="pass a str")


def _is_text(text: object) -> bool:
    return isinstance(text, str) and bool(text) and is_unicode(text)


def _given(**texts: object) -> dict[str, Any]:
    """Those that are there."""
    return {name: text for name, text in texts.items() if text is not None}


def _not_open(account: str) -> InvalidParameter:
    return InvalidParameter(
        "account", problem=f"{account[:80]} is not open", remedy="call account(name, budget) first"
    )
