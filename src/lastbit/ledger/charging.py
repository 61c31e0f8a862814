"""`ChargingLedger`: all that a question needs of a ledger, and nothing else.

Law      `reserve`, `draw` and `settle` are one transaction each, which no other process can
         interrupt: they read the last entry and the account, apply the rules of `entry.py`, and
         append; or they change nothing. A charge in the name of an analyst must have room in the
         account and in the allowance
Theorem  (a) at every instant, and after a crash at any, what the entries of an account cost is
         within its budget. (b) A reservation or an answer that was returned is in the file for
         good. (c) A reservation has at most one draw of noisy numbers, and one answer
Proof    (a) BEGIN IMMEDIATE takes SQLite's write lock before the total is read, so the total is
         still the last when the charge is appended; it is read from the whole chain, every hash
         checked and no index trusted (`chain.py`); the sum is exact, or rounded up; a commit is
         atomic. (b) the commit has been synced before the call returns (`sqlite.py` says why
         EXTRA). (c) `draw` and `settle` look for an earlier one under the same lock. All rest on
         SQLite, and on a disk and file system that do what a sync and a lock ask for
Source   SQLite, "Atomic Commit In SQLite"; "PRAGMA synchronous"
Differs  what stewards and auditors do is in `ledger.py`, which adds to this and changes none of it.
         Who may ask, what is left of an allowance, and which recorded answer is shown again is
         decided by `principals.py` and `answers.py`, found by name: they refuse a call, or give a
         record that is in the books, or what an entry says of an allowance. (a), (b) and one draw
         hold whatever they say
Checked  tests/ledger/test_ledger.py, test_reservations.py, test_many_processes.py and
         test_overspending.py; tests/faults/test_killed.py: killed at each system call;
         tests/ledger/test_charging.py: `Ledger` overrides none of it, and the rules may lie
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from lastbit.canonical import sha256
from lastbit.errors import InvalidParameter, WrongType
from lastbit.ledger.chain import UNUSABLE, IsAnswer, Scan, intact, scanned, stored
from lastbit.ledger.entry import Account, Entry, for_people
from lastbit.ledger.places import place_of, storage_of
from lastbit.ledger.records import is_unicode, record_of
from lastbit.ledger.storage import SECRET_BYTES, Books, Connections, damaged
from lastbit.place_names import is_address
from lastbit.tables import Budget, Cost, budgets_agree

if TYPE_CHECKING:
    from lastbit.addresses import Address

PATIENCE = 30.0  # seconds to wait for other processes before giving up
_LONGEST_NAME = 200
_MOST_NUMBERS = 1 << 23
ACCEPTED = "data of {table} accepted: {data}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargingLedger:
    """A ledger in a file or a database; every call opens it, so threads and forks may share one.

    `opened` is the hash of the first entry: another ledger that is put in the place of this one is
    noticed.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from lastbit.ledger import Ledger
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.open(Path(folder) / "hospital.ledger")
    ...     ChargingLedger.existing(ledger.path).is_at(ledger.path)
    True
    """

    path: Any
    """A `Path`, or the `Address` of a database."""
    opened: str
    patience: float = field(default=PATIENCE, repr=False)
    connections: Connections = field(default_factory=Connections, repr=False, compare=False)
    """Where a call leaves its connection for the next one."""

    @classmethod
    def existing(
        cls,
        path: str | os.PathLike[str] | Address,
        *,
        patience: float = PATIENCE,
        connections: Connections | None = None,
    ) -> Self:
        """The ledger at this place, which must be there; its calls share these connections.

        Without them it has its own.
        """
        place, connections = place_of(path), Connections() if connections is None else connections
        with storage_of(place).connected(place, connections, patience=patience) as books:
            first = next(stored(books, "WHERE sequence = 1"), None)
        if first is None:
            raise damaged(place, "has lost its first entry; restore a backup")
        return cls(path=place, opened=first.hash, patience=patience, connections=connections)

    def is_at(self, path: str | os.PathLike[str]) -> bool:
        """Whether this place is the ledger's own, by whatever name or user."""
        if not isinstance(self.path, Path):
            return is_address(path) and bool(self.path.leads_to(place_of(path)))
        try:
            return not is_address(path) and os.path.samefile(self.path, path)
        except OSError:  # one of them is not there
            return os.path.realpath(path) == str(self.path)
        except ValueError:
            return False

    def _write_account(self, books: Books, chain: Scan, state: Account) -> Account:
        """An account as a card declares it, written down; refused to those who may only ask."""
        _rules_of_people().check_opening(books, chain, state)
        chain.append(books, budget_entry(state, who=None))
        return state

    def _with_neighbours(
        self, books: Books, chain: Scan, name: str, neighbours: str | None
    ) -> Account | None:
        """An account that is charged a price of these neighbours; it states them from now on."""
        account = chain.account(name)
        if account is None or neighbours in (None, account.neighbours):
            return account
        if account.neighbours is not None:
            raise for_people().other_neighbours(account)
        _answers().check_claims(books, account, neighbours)
        return self._write_account(books, chain, account.with_neighbours(neighbours))

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
          charged then, which nobody has seen an answer to and no other plan has drawn numbers
          for, or a new one, charged now.

        Say by `gaussian_noise` that all that is paid for is discrete Gaussian noise: an account
        that is kept by the Gaussian filter takes a price in rho for nothing else.

        A ledger with principals needs to know in whose name: `principal` must be one who may ask,
        also where nothing is charged, and an analyst's allowance must have room for the price.
        An account that does not state these `neighbours`, if any are given, is refused.
        """
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
        check_charge(draft)
        account, cost, allowance = draft.account, draft.cost, None
        assert account is not None and cost is not None
        with self._connected() as books, books.transaction():
            chain = self._chain(books, account, draft.question)
            if chain.named:
                allowance = _rules_of_people().asking_allowance(chain, account, draft.principal)
            else:  # a ledger without principals is as it always was
                draft = replace(draft, principal=None)
            if earlier is not None:
                known: Entry | None = _answers().newest_answer(books, chain, earlier)
                if known is not None:
                    return known
            before = self._with_neighbours(books, chain, account, draft.neighbours)
            if draft.kind == "reserved":
                for paid in chain.open_reservations(account, draft.question):
                    # without a steward's rights, one answers what is paid for in the own name
                    own = paid.principal == draft.principal
                    # a draw in a database may be another user's own doing
                    drawn = paid.hash.encode() in chain.draws
                    own = own or (books.decides and (not drawn or isinstance(self.path, Path)))
                    same = (paid.cost, paid.fingerprint) == (cost, draft.fingerprint)
                    if own and same and not chain.is_drawn_otherwise(books, paid, draft.plan):
                        return replace(paid, resumed=True)
            books.check_writable()
            if before is None:
                raise for_people().not_open(account)
            after = before.charged(cost, gaussian_noise=gaussian_noise)
            paid = draft.stating(after)
            if allowance is not None:
                when = books.now()
                used = allowance.charged_at(cost, when, chain.when)
                paid = replace(paid, when=when, limit=used.limit, used=used.used, since=used.since)
            return chain.append(books, paid, written)

    def reservation(self, hash_: str, *, declared: Budget | None = None) -> Entry:
        """The reservation of this hash, as the books have it.

        Refused where its account is kept by another budget than is `declared`, if one is.
        """
        check_texts(hash=hash_)
        with self._connected() as books:
            chain = self._chain(books)
            row = next(stored(books, "WHERE hash = ?", hash_), None)
            entry = None if row is None else intact(self.path, row)
        if entry is None or entry.kind != "reserved":
            raise damaged(self.path, "does not hold this reservation; ask again")
        account = chain.account(entry.account or "")
        if declared and (account is None or not budgets_agree(account.budget, declared)):
            raise for_people().other_budget(entry.account or "")
        return entry

    def accepted_data(self, account: str, table: str) -> str | None:
        """The fingerprint of the data that were accepted last; None if none ever were."""
        start = ACCEPTED.format(table=table, data="")
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

    def drawn(self, reservation: Entry) -> str | None:
        """The numbers that were drawn for a reservation; None: it is open, and none were."""
        with self._connected() as books:
            chain = self._chain(books)
            numbers = chain.draw(books, reservation)
            if numbers is None:
                self._check_open(chain, reservation)
            return numbers

    def draw(
        self, reservation: Entry, numbers: str, *, plan_digest: str, who: str | None = None
    ) -> str:
        """Write down the noisy numbers of an open reservation, before anybody sees them.

        What comes back is to be used: if another process was first, its numbers are. They are a
        JSON object, as text; what is too large to be kept is `UNUSABLE`, for good. Only
        this plan answers the reservation from then on.
        """
        check_texts(who=who, plan=plan_digest)
        # what is refused here would be drawn again, and how large it is depends on the data
        if numbers.count(",") > _MOST_NUMBERS or record_of(numbers) is None:
            numbers = UNUSABLE
        with self._connected() as books, books.transaction():
            chain = self._chain(books)
            earlier = chain.draw(books, reservation)
            if earlier is not None:
                return earlier
            self._check_open(chain, reservation)
            draft = chain.drafted_after(reservation, kind="drawn", who=who, plan=plan_digest)
            chain.append(books, replace(draft, result=sha256(numbers)), numbers)
        return numbers

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
        check_texts(who=who)
        if not isinstance(record, Mapping) or reservation.account is None:
            raise WrongType("answer", problem="has no record", remedy="pass the reservation's")
        plan = reservation.plan if plan_digest is None else plan_digest
        answers = _answers()
        written, answer = answers.written_answer(record, reservation.cost, plan)
        with self._connected() as books, books.transaction():
            chain = self._chain(books)
            earlier = answers.answer_before(books, chain, reservation)
            if earlier is not None:
                return cast(Entry, earlier)
            self._check_open(chain, reservation)
            if chain.is_drawn_otherwise(books, reservation, plan):
                problem = "is by another plan than its numbers were drawn by"
                raise WrongType("answer", problem=problem, remedy="reserve it again")
            draft = chain.drafted_after(reservation, kind="settled", who=who, plan=plan)
            entry = chain.append(books, replace(draft, result=sha256(written)), written)
        return entry.with_record(answer)

    def _check_open(self, chain: Scan, reservation: Entry) -> None:
        if reservation not in chain.open_reservations(reservation.account):
            raise damaged(self.path, "does not hold this reservation; ask again")

    def keyed(self, fingerprint: bytes) -> str:
        """A fingerprint that says nothing of the data without the secret: HMAC-SHA256."""
        if not isinstance(fingerprint, bytes):
            raise WrongType("fingerprint", problem="is not bytes", remedy="pass a digest, say")
        with self._connected() as books:
            return hmac.new(secret_of(books), fingerprint, hashlib.sha256).hexdigest()

    @contextmanager
    def _connected(self) -> Iterator[Books]:
        """The ledger, open for one call; another one that was put in its place is refused."""
        storage = storage_of(self.path)
        with storage.connected(self.path, self.connections, patience=self.patience) as books:
            first = next(books.rows("WHERE sequence = 1"), None)
            if first is None or first[4] != self.opened:
                raise damaged(
                    self.path, "is not the one that was opened: it was exchanged; open it again"
                )
            yield books

    def _chain(self, books: Books, account: str | None = None, question: str | None = None) -> Scan:
        """All entries, read in one pass; with the newest answer to a question, if one is named."""
        if account is not None:
            check_name(account)
        if question is not None:
            check_texts(question=question)
        return scanned(books, account=account, question=question)


# found by name: what they decide is who may ask, and what is shown again; no sum rests on it


def _rules_of_people() -> Any:
    return import_module("lastbit.ledger.principals")


def _answers() -> Any:
    return import_module("lastbit.ledger.answers")


def budget_entry(state: Account, *, who: str | None) -> Entry:
    """The draft of an entry that states an account."""
    return Entry(kind="budget", account=state.name, who=who).stating(state)


def secret_of(books: Books) -> bytes:
    """The ledger's secret; one that has lost it is refused."""
    secret = books.secret()
    if not isinstance(secret, bytes) or len(secret) != SECRET_BYTES:
        raise for_people().without_secret(books.place)
    return secret


def check_charge(draft: Entry) -> None:
    """Refuse a charge without its price or one of its digests."""
    check_name(draft.account)
    check_texts(who=draft.who, question=draft.question, plan=draft.plan, data=draft.fingerprint)
    if not isinstance(draft.cost, Cost):
        raise WrongType("cost", problem="is not a Cost", remedy="pass Cost(epsilon=...)")
    given = {name: getattr(draft, name) for name in ("words", "query", "principal")}
    check_texts(**{name: text for name, text in given.items() if text is not None})


def check_name(name: object, what: str = "account") -> None:
    """The name of a table or of a principal: short, and fit for any terminal."""
    check_texts(**{what: name})
    if not str(name).isprintable() or len(str(name)) > _LONGEST_NAME:
        problem = "has a name that is too long or cannot be printed"
        thing = "table" if what == "account" else what
        remedy = f"name the {thing} by at most {_LONGEST_NAME} printable letters"
        raise InvalidParameter(what, problem=problem, remedy=remedy)


def check_texts(*, who: object = None, **texts: object) -> None:
    """Texts that SQLite can hold: a lone surrogate of a broken file name is not one."""
    for name, text in (texts if who is None else texts | {"who": who}).items():
        if not is_text(text):
            raise WrongType(name, problem="is not text, or empty", remedy="pass a str")


def is_text(text: object) -> bool:
    """Whether it is a text that is not empty, of whole letters."""
    return isinstance(text, str) and bool(text) and is_unicode(text)
