"""`Ledger`: the books of all tables that share a file or a database, for everybody who uses them.

It is a `ChargingLedger` (`charging.py`), with what stewards decide and what auditors look at. It
adds to that one and changes none of it: what a question costs, and whether it may be asked, is
decided there.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from lastbit.addresses import Address
from lastbit.arguments import check_kind, listed
from lastbit.canonical import digest_of, sha256
from lastbit.errors import InvalidParameter, LastbitError, LedgerDamaged, WrongType
from lastbit.ledger.answers import (
    Known,
    check_claims,
    closing_entry,
    known_by,
    newest_answer,
    numbered,
    written_answer,
)
from lastbit.ledger.chain import IsAnswer, Scan, intact, stored
from lastbit.ledger.charging import (
    ACCEPTED,
    PATIENCE,
    ChargingLedger,
    budget_entry,
    check_charge,
    check_name,
    check_texts,
    is_text,
    secret_of,
)
from lastbit.ledger.deciding import (
    accounts_of,
    allowances_of,
    charges_by,
    check_allowed,
    check_deciding,
    check_limit,
    check_role,
    counted,
    opens_filter,
    principals_of,
    with_budget,
)
from lastbit.ledger.entry import Account, Entry
from lastbit.ledger.examination import chain_problems
from lastbit.ledger.inspection import inspected
from lastbit.ledger.limits import ROLES, Limit, Role
from lastbit.ledger.making import make_ledger, upgrade_ledger
from lastbit.ledger.places import place_of
from lastbit.ledger.principals import (
    Allowance,
    Principal,
    asking_allowance,
    moment_of,
    named_allowance,
    named_principal,
)
from lastbit.ledger.storage import Books, Connections, damaged, unusable
from lastbit.ledger.words import not_open, other_budget, other_neighbours, without_secret
from lastbit.privacy import GaussianCost, MomentCost
from lastbit.tables import Budget, Cost, budgets_agree, check_budget

_BUDGET = "pass Budget(epsilon=3), say, or None for no limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger(ChargingLedger):
    """A ledger in a file or a database; every call opens it, so threads and forks may share one.

    `opened` is the hash of the first entry: another ledger that is put in the place of this one is
    noticed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.open(os.path.join(folder, "hospital.ledger"))
    ...     print(ledger.problems(), [entry.kind for entry in ledger.entries(last=5)])
    [] ['opened']
    """

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] | Address,
        *,
        patience: float = PATIENCE,
        connections: Connections | None = None,
    ) -> Self:
        """The ledger at this place; a new one if that is a path and there is no file.

        In a database a new one is made by `Ledger.init` alone: a slip in an address must not come
        with a fresh budget.
        """
        check_kind(patience, (int, float), "patience", remedy="pass seconds")
        remedy = "leave it out"
        check_kind(connections, (Connections, type(None)), "connections", remedy=remedy)
        place = place_of(path)
        if isinstance(place, Path) and not os.path.exists(place):
            make_ledger(place, patience=patience)
        return cls.existing(place, patience=patience, connections=connections)

    @classmethod
    def init(cls, path: str | os.PathLike[str] | Address, *, patience: float = PATIENCE) -> Self:
        """A new ledger, where there is none; in a database with the roles of those who use it."""
        place = place_of(path)
        if not make_ledger(place, patience=patience):
            raise unusable(place, "exists, and is not replaced", "name another place")
        return cls.existing(place, patience=patience)

    @staticmethod
    def upgrade(path: str | os.PathLike[str] | Address, *, patience: float = PATIENCE) -> bool:
        """Bring a ledger that an older lastbit made in a database to today's tables and functions.

        Its owner does this; entries stay as they are. False if there was nothing to do.
        """
        place = place_of(path)
        return upgrade_ledger(place, patience=patience)

    @contextmanager
    def connection(self) -> Iterator[Self]:
        """Inside, calls of this ledger use one connection again and again."""
        with self.connections.lasting():
            yield self

    @property
    def user(self) -> str:
        """In whose name this process acts: the database's user, or the operating system's."""
        with self._connected() as books:
            return inspected(books).user()

    def account(self, name: str, budget: Budget | None, neighbours: str | None = None) -> Account:
        """Open an account with this budget, or see that it has this budget; None is no limit.

        The same for `neighbours` (`neighbours_of` a card), if they are given: prices of other ones
        do not add up. Ledgers of old do not state them; the next charge does. Where a database
        keeps the ledger, a steward opens accounts.
        """
        check_name(name)
        check_kind(budget, (Budget, type(None)), "budget", remedy=_BUDGET)
        with self._connected() as books:
            account = self._chain(books).account(name)
            if account is None:
                with books.transaction():
                    chain = self._chain(books)  # another process may have been first
                    account = chain.account(name)
                    if account is None:
                        check_budget(budget)
                        new = Account(name=name, budget=budget).with_neighbours(neighbours)
                        account = self._write_account(books, chain, new)
        if not budgets_agree(account.budget, budget):
            raise other_budget(name)
        if account.neighbours is not None and neighbours not in (None, account.neighbours):
            raise other_neighbours(account)
        return account

    def check_asking(self, account: str, principal: str | None) -> None:
        """Refuse those who may not ask this account, as `reserve` does; nothing is charged."""
        with self._connected() as books:
            chain = self._chain(books)
            if chain.named:
                asking_allowance(chain, account, principal)

    def recorded(
        self, account: str, question: str, *, is_answer: IsAnswer = bool
    ) -> dict[str, Any] | None:
        """The newest answer to this very question, to be shown again at no charge.

        Whoever may charge may have written a record: `is_answer` says which to believe.
        """
        with self._connected() as books:
            chain = self._chain(books, account, question)
            answer = newest_answer(books, chain, is_answer)
        return None if answer is None or answer.record is None else dict(answer.record)

    def holds(self, entry: Entry) -> bool | None:
        """Whether the ledger is there, whole, and has this entry; None if its server is silent."""
        _check_entry(entry)
        try:
            with self._connected() as books:
                self._chain(books)
                row = next(stored(books, "WHERE hash = ?", entry.hash), None)
        except InvalidParameter:
            return None if isinstance(self.path, Address) else False
        except LastbitError:
            return False
        return row is not None and row.sequence == entry.sequence

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
        check_texts(who=who)
        check_name(name)
        check_kind(budget, (Budget, type(None)), "budget", remedy=_BUDGET)
        with self._connected() as books, books.transaction():
            chain = self._chain(books)
            who = _decider(books, chain, who)
            before = chain.account(name)
            agrees = before is not None and budgets_agree(before.budget, budget)
            if before is not None and agrees and neighbours in (None, before.neighbours):
                return before
            check_budget(budget)
            account, words = before or Account(name=name, budget=None), None
            if account.neighbours is None:
                check_claims(books, account, neighbours)
            account = account.with_neighbours(neighbours)
            if not agrees:
                charges: list[Cost] = []
                if budget is not None and opens_filter(account, budget):
                    charges = self._charges(books, name)
                if budget is not None and charges:
                    which = "moment" if budget.kind == "filter" else "Gaussian"
                    words = f"kept by the {which} filter from here on; charges before it: "
                    words += str(len(charges))
                account = with_budget(account, budget, charges)
            chain.append(books, replace(budget_entry(account, who=who), words=words))
        return account

    def accept_data(
        self, account: str, table: str, fingerprint: str, *, who: str | None = None
    ) -> Entry:
        """Record that a table's data of this fingerprint may be asked about; a steward decides it.

        That is `who`, or else the user of this process; anybody in a ledger without principals. It
        is an entry that states the budget again, so it takes the right to change that.
        """
        check_texts(table=table, data=fingerprint, who=who)
        with self._connected() as books, books.transaction():
            chain = self._chain(books)
            who = _decider(books, chain, who)
            state = chain.account(account)
            if state is None:
                raise not_open(account)
            words = ACCEPTED.format(table=table, data=fingerprint)
            return chain.append(books, replace(budget_entry(state, who=who), words=words))

    def principals(self) -> tuple[Principal, ...]:
        """All principals, by name, those who were removed too; none in a ledger without them."""
        with self._connected() as books:
            found = principals_of(self._chain(books))
        return tuple(found[name] for name in sorted(found))

    def principal(self, name: str) -> Principal | None:
        """The principal of this name, who may have been removed."""
        check_name(name, "principal")
        with self._connected() as books:
            return named_principal(self._chain(books), name)

    def set_principal(self, name: str, role: Role | None, *, by: str) -> Principal:
        """Give somebody a role, or None to remove them; stewards decide it, and it is recorded.

        The first principal is a steward, whoever decides it: from then on every charge names a
        principal. A new role ends the allowances of its principal. Removed names stay taken.
        """
        check_name(name, "principal")
        check_kind(role, (str, type(None)), "role", remedy=f"pass one of {', '.join(ROLES)}")
        check_texts(by=by)
        with self._connected() as books, books.transaction():
            chain = self._chain(books)
            known = principals_of(chain)
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
            found = [one.at(moment_of(when, chain.when)) for one in allowances_of(chain)]
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
        check_name(account)
        check_name(principal, "principal")
        check_texts(by=by)
        with self._connected() as books, books.transaction():
            chain, when = self._chain(books), books.now()
            if chain.account(account) is None:
                raise not_open(account)
            check_allowed(principals_of(chain), principal, limit, by=by)
            before, after = named_allowance(chain, account, principal), None
            moment = moment_of(when, chain.when)
            if limit is not None:
                check_limit(limit)
                charges, latest = charges_by(books, account, principal)
                after = counted(account, principal, limit, charges, max(moment, latest))
            if (before and before.limit) == limit:
                return after
            draft = chain.drafted(kind="allowance", account=account, who=by, when=when)
            chain.append(books, with_allowance(draft, principal, after))
        return after

    def accounts(self) -> tuple[Account, ...]:
        """All accounts, by name."""
        with self._connected() as books:
            found = accounts_of(self._chain(books))
            return tuple(sorted(found, key=lambda account: account.name))

    def spent(self, account: str) -> Cost | MomentCost | GaussianCost:
        """What the account has spent, exactly; nothing if it was never opened."""
        found = self._account(account)
        return Cost() if found is None else found.spent

    def remaining(self, account: str) -> Cost | MomentCost | GaussianCost | None:
        """What the account may still spend; None where there is no limit."""
        found = self._account(account)
        if found is None:
            raise not_open(account)
        return found.remaining

    def fail(self, reservation: Entry, *, words: str, who: str | None = None) -> Entry:
        """Close an open reservation: it stays charged, and is never answered; `words` say why.

        They are for everybody to read, so they must not depend on the data. To ask the same again
        costs again. One that is closed already stays as it is; one that is answered is refused.
        """
        _check_entry(reservation)
        check_texts(words=words, who=who)
        with self._connected() as books, books.transaction():
            chain = self._chain(books)
            earlier = closing_entry(books, chain, reservation)
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

    def unanswered(self, account: str) -> tuple[Entry, ...]:
        """The account's reservations that are charged and not answered, in their order."""
        check_name(account)
        with self._connected() as books:
            return tuple(self._chain(books).open_reservations(account))

    def answer_to(self, reservation: Entry) -> Entry | None:
        """The entry that settles a reservation, with the answer; None if there is no answer."""
        _check_entry(reservation)
        with self._connected() as books:
            found = closing_entry(books, self._chain(books), reservation)
        return found if found is not None and found.kind == "settled" else None

    def paid_at(self, entry: Entry) -> int:
        """The number of the entry that charged for this answer."""
        _check_entry(entry)
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
        draft = Entry(
            kind="charge",
            account=account,
            who=who,
            question=question,
            cost=cost,
            plan=plan_digest,
            fingerprint=fingerprint,
            principal=principal,
        )
        check_charge(draft)
        if not isinstance(record, Mapping):
            raise WrongType("charge", problem="has no record", remedy="pass one")
        written, answer = written_answer(record, cost, plan_digest)
        asked = record.get("asked")
        told = asked if isinstance(asked, Mapping) else {}
        draft = replace(
            draft,
            result=sha256(written),
            words=told["sql"] if is_text(told.get("sql")) else None,
            query=None if told.get("query") is None else digest_of(told["query"]),
        )
        earlier = None if fresh else bool
        entry = self._charge(draft, written, earlier=earlier, gaussian_noise=gaussian_noise)
        return entry.with_record(answer) if entry.record is None else entry

    def withdraw(self, sequence: int, *, words: str, who: str | None = None) -> Entry:
        """Use the answer of an entry no more: one that is unreadable, say, or was made up.

        A steward decides it: `who`, or else the user of this process. What it cost stays charged,
        since somebody may have seen an answer. `words` say why, for everybody to read.
        """
        check_texts(words=words, who=who)
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
        check_texts(note=words, who=who)
        if account is not None:
            check_name(account)
        with self._connected() as books, books.transaction():
            chain = self._chain(books)
            if account is not None and chain.account(account) is None:
                raise not_open(account)
            draft = chain.drafted(kind="note", account=account, who=who, words=words)
            return chain.append(books, draft)

    @property
    def head(self) -> str:
        """The hash of the last entry. Noted elsewhere, it proves that the ledger lost nothing."""
        with self._connected() as books:
            return self._chain(books).head

    def entries(self, account: str | None = None, *, last: int | None = None) -> tuple[Entry, ...]:
        """All entries in order, or the last ones of one account; answers are not read."""
        where = "" if account is None else "WHERE account = ?"
        values = () if account is None else (account,)
        most = () if last is None else (last,)
        tail = f"{where} ORDER BY sequence DESC{' LIMIT ?' if most else ''}"
        with self._connected() as books:
            newest = stored(books, tail, *values, *most)
            entries = [intact(self.path, row) for row in newest]
        return tuple(reversed(entries))

    def answers(self, account: str, *, last: int) -> Iterator[Entry]:
        """The answers among the last entries of an account, the newest first.

        Records that are no answers (`records.py`) are left out.
        """
        entries = self.entries(account, last=last)
        return (one for one in self.with_answers(reversed(entries)) if one.record is not None)

    def with_answers(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Entries of this ledger, with their answers where they have some."""
        several = listed(entries, "entries", remedy="pass ledger.entries()")
        for entry in several:
            _check_entry(entry)
        with self.connection():
            with self._connected() as books:
                known = known_by(books, several)
            for entry in several:
                yield entry if entry.result is None else self.entry(entry.sequence, known=known)

    def entry(self, sequence: int, *, known: Known | None = None) -> Entry:
        """One entry, with its answer if it has one; else `unreadable` may say why it has none.

        `known` is for those who follow the ledger, and know what other entries say of it.
        """
        with self._connected() as books:
            entry = numbered(books, sequence, known_by(books) if known is None else known)
        if entry is None:
            raise InvalidParameter(
                "entry", problem="is not in the ledger", remedy="lastbit ledger log lists them"
            )
        return entry

    @property
    def secret(self) -> bytes:
        """32 random bytes made with the ledger, which no export holds."""
        with self._connected() as books:
            return secret_of(books)

    def problems(self, heads: Collection[str] = ()) -> list[str]:
        """What is wrong with the file, in words; nothing if all hashes, sums and answers fit.

        `heads` are hashes of entries that were noted elsewhere, as every certificate does. Nobody
        who may only ask can cause a problem: what they write is let in by the rules, or is no
        answer (`no_answers`).
        """
        remedy = "pass [ledger.head], as it was noted"
        for head in (hashes := listed(heads, "heads", remedy=remedy)):
            check_kind(head, str, "heads", remedy=remedy)
        return self._examine_chain(hashes)[0]

    def no_answers(self) -> dict[int, str]:
        """By their numbers, the entries whose record is no answer, and why it is none.

        They are charged all the same. Those that a steward has withdrawn are not among them.
        """
        return self._examine_chain(())[1]

    def _examine_chain(self, heads: Collection[str]) -> tuple[list[str], dict[int, str]]:
        found: list[str] = []
        no_answers: dict[int, str] = {}
        try:
            with self._connected() as books, inspected(books).snapshot():
                found += inspected(books).problems()
                rows = stored(books, "ORDER BY sequence", records=True)
                secret, last = inspected(books).secret_digest(), inspected(books).last()
                if secret is None:
                    raise without_secret(books.place)
                found += chain_problems(
                    rows, secret=secret, last=last, heads=heads, no_answers=no_answers
                )
        except LedgerDamaged as error:
            found.append(str(error))
        return found, no_answers

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the ledger as it is now, while others use it; an existing file is not replaced."""
        # found by name: a copy is made of ledgers
        import_module("lastbit.ledger.safekeeping").copied(self, path)

    def _charges(self, books: Books, name: str) -> list[Cost]:
        """All charges to an account, in order, read from the entries: no index is trusted."""
        rows = stored(books, "ORDER BY sequence")
        entries = (intact(self.path, row) for row in rows)
        return [e.cost for e in entries if e.account == name and e.cost is not None]

    def _account(self, name: str) -> Account | None:
        check_name(name)
        with self._connected() as books:
            return self._chain(books).account(name)


def _decider(books: Books, chain: Scan, who: str | None) -> str | None:
    """Who decides; of a ledger with principals it must be a steward."""
    if not chain.named:
        return who
    decider = inspected(books).user() if who is None else who
    check_deciding(principals_of(chain), decider)
    return decider


def with_allowance(entry: Entry, principal: str, state: Allowance | None) -> Entry:
    """An entry that states an allowance as it is after it."""
    if state is None:
        return replace(entry, principal=principal)
    return replace(
        entry, principal=principal, limit=state.limit, used=state.used, since=state.since
    )


def _check_entry(entry: object) -> None:
    check_kind(entry, Entry, "entry", remedy="pass one of ledger.entries()")
