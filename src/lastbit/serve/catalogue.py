"""The tables of a server: their cards, their one ledger, what may be seen of them, their slots.

All cards of a server have one ledger: principals are the ledger's, and a name must mean the same
person for every table. `Reading` follows the ledger as it grows, so that a page or a preview costs
a look at its last entry; money is decided by the ledger itself, which reads all of it.

A version of the data is a public fact: a steward accepted it, the ledger says when. Whether the
source is still that version is found by the table's worker, at the end of a slot (`slots.py`).
Whether there are files at all under the names of the card is looked at before a price is taken: no
file is opened, and no size, time or row is looked at, so the answer is the same for all data that
those who keep the files may put there. That they are gone is public, as every change of them is.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from glob import iglob
from itertools import combinations
from pathlib import Path
from types import MappingProxyType

from lastbit.addresses import Address
from lastbit.errors import InvalidParameter, LastbitError
from lastbit.exact import exact_text
from lastbit.ledger import (
    Account,
    Allowance,
    Entry,
    Known,
    Ledger,
    neighbours_of,
)
from lastbit.release import record_problem
from lastbit.report import title_of
from lastbit.serve.identity import Identity
from lastbit.serve.planning import card_at, plan_of
from lastbit.serve.questions import Question
from lastbit.serve.settings import Settings
from lastbit.serve.slots import DECLARED, Slots, slot_for
from lastbit.serve.store import Store
from lastbit.tables import Budget, DataCard, quoted

UNREADABLE = "unreadable entry"
_LOG = logging.getLogger("lastbit.serve")
_PRICES = tuple(Fraction(text) for text in ("1", "0.5", "0.2", "0.1", "0.05", "0.02", "0.01"))
_LEAST_PRICE = Fraction(1, 1000)
_SHARE = 5
_MOST_EXAMPLES, _MOST_KEYS = 5, 20
_DAY = 86400
_STALE = 0.5  # seconds for which a ledger on a server is not asked again
_TICKS = 100_000_000  # nanoseconds: some ticks of the clock that stamps files


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A question that the card itself suggests."""

    sql: str
    words: str
    epsilon: str | None = None
    delta: str | None = None
    rho: str | None = None

    @property
    def question(self) -> Question:
        return Question(sql=self.sql, epsilon=self.epsilon, delta=self.delta, rho=self.rho)


def examples_of(card: DataCard) -> tuple[Example, ...]:
    """A few questions that can be planned on this card: counts, means, by declared keys."""
    price = _price(card.budget)
    found = []
    for words, sql in _suggested(card):
        example = Example(sql=sql, words=words, **price)
        with suppress(LastbitError):
            plan_of(example.question, card)
            found.append(example)
    return tuple(found[:_MOST_EXAMPLES])


def _price(budget: Budget | None) -> dict[str, str]:
    """About a fifth of the budget at most, and 1 at most: a round number."""
    if budget is None:
        return {"epsilon": "1"}
    currency = "rho" if budget.kind == "zcdp" else "epsilon"
    most = getattr(budget, currency) / _SHARE
    found = next((price for price in _PRICES if price <= most), _LEAST_PRICE)
    return {currency: exact_text(found)}


def _suggested(card: DataCard) -> Iterator[tuple[str, str]]:
    table = quoted(card.name)
    few = (c for c in card.columns.values() if c.keys and len(c.keys) <= _MOST_KEYS)
    keys = next(few, None) or next((c for c in card.columns.values() if c.keys), None)
    numbers = [c for c in card.columns.values() if c.number_bounds and c.name != card.unit]
    yield "How many rows there are", f"SELECT COUNT(*) AS n FROM {table}"
    if keys is not None:
        by = quoted(keys.name)
        yield f"Rows by {keys.name}", f"SELECT {by}, COUNT(*) AS n FROM {table} GROUP BY {by}"
    for number in numbers[:1]:
        mean = f"AVG({quoted(number.name)}) AS mean"
        yield f"The mean of {number.name}", f"SELECT {mean} FROM {table}"
        if keys is not None:
            sql = f"SELECT {by}, COUNT(*) AS n, {mean} FROM {table} GROUP BY {by}"
            yield f"Rows and the mean of {number.name}, by {keys.name}", sql
    if card.unit is not None:
        sql = f"SELECT COUNT(DISTINCT {quoted(card.unit)}) AS units FROM {table}"
        yield f"How many different values of {card.unit} there are", sql


# ---------------------------------------------------------------- the ledger, as it grows


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLine:
    """An answer that was given, in a line; or an entry that is charged as one, and holds none."""

    entry: int
    table: str | None
    """None of an entry that is unreadable: its account is all that is known."""
    title: str
    sql: str | None
    cost: Mapping[str, str]
    when: str
    principal: str | None


class Reading:
    """What entries say, kept up to date by those that came since; safe to use from threads."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._lock = threading.RLock()
        self._forget()

    def _forget(self) -> None:
        self._last: Entry | None = None
        self._looked = 0.0
        self._stamp: tuple[int, int, int, bool] | None = None
        self._accounts: dict[str, Account] = {}
        self._charges: dict[str, Entry] = {}
        self._closings: dict[str, Entry] = {}
        self._answers: dict[int, Entry] = {}
        self._questions: dict[tuple[str | None, str | None], int] = {}
        self._lines: dict[int, AnswerLine] = {}
        self._known = Known()
        self._accepted: dict[tuple[str, str], str | None] = {}
        self._allowances: tuple[tuple[str, int], tuple[Allowance, ...]] = (("", -1), ())

    def _read(self) -> None:
        """Take in what is new."""
        now, stamp = time.monotonic(), self._stamped()
        if stamp is None:
            if now - self._looked < _STALE:
                return
        elif self._stamp == stamp and stamp[-1]:
            return
        newest, last = self.ledger.entries(last=1)[-1], self._last
        if newest != last:
            more = 0 if last is None else newest.sequence - last.sequence
            came = self.ledger.entries(last=more) if more > 0 else ()
            if last is None or not came or came[0].previous != last.hash:
                self._forget()  # a backup was restored, or others have written in between
                came = self.ledger.entries()
            for entry in came:
                self._take(entry)
            self._last = came[-1]
        self._looked, self._stamp = now, stamp

    def _stamped(self) -> tuple[int, int, int, bool] | None:
        """By what a change of the ledger's file is seen, and whether that can be relied on.

        A change within a tick of the clock may have the stamp of the one before: so a stamp counts
        once it is old. A ledger on a server has none.
        """
        if isinstance(self.ledger.path, Address):
            return None
        try:
            found = os.stat(self.ledger.path)
        except OSError:  # to read it says what is wrong
            return 0, 0, 0, False
        is_old = time.time_ns() - found.st_mtime_ns > _TICKS
        return found.st_ino, found.st_size, found.st_mtime_ns, is_old

    def _take(self, entry: Entry) -> None:
        state = entry.state
        if state is not None:
            self._accounts[state.name] = state
        self._known.take(entry, entry.hash)
        match entry.kind:
            case "reserved":
                self._charges[entry.hash] = entry
            case "settled" | "charge":
                self._answers[entry.sequence] = entry
                self._questions[entry.account, entry.question] = entry.sequence
                self._closings[entry.reservation or ""] = entry
            case "voided":
                self._closings[entry.reservation or ""] = entry
            case "withdrawn":
                self._lines.clear()
            case "budget":
                self._accepted.clear()

    def again(self) -> None:
        """Look at the ledger at the next question, however lately that was done."""
        self._looked, self._stamp = 0.0, None

    def account(self, name: str) -> Account | None:
        with self._lock:
            self._read()
            return self._accounts.get(name)

    def accepted(self, account: str, table: str) -> str | None:
        """The fingerprint of the data that were accepted last."""
        with self._lock:
            self._read()
            key = account, table
            if self._accepted.get(key) is None:
                self._accepted[key] = self.ledger.accepted_data(account, table)
            return self._accepted[key]

    def recorded(self, account: str, question: str | None) -> int | None:
        """The number of the newest answer to this very question."""
        with self._lock:
            self._read()
            return self._questions.get((account, question))

    def charge(self, reservation: str | None) -> Entry | None:
        """The reservation of this hash; None: the ledger has none, since it was restored."""
        with self._lock:
            self._read()
            return self._charges.get(reservation or "")

    def holds(self, paid: str | None, answer: int | None) -> bool:
        """Whether it has what a job is about: a reservation and its answer, or one on record."""
        with self._lock:
            self._read()
            found = self._answers.get(answer or 0)
            if answer is None:
                return paid in self._charges
            return found is not None and paid in (found.hash, found.reservation)

    def closing(self, reservation: str | None) -> Entry | None:
        """What answers a reservation, or closes it without an answer; None: it is open."""
        with self._lock:
            self._read()
            return self._closings.get(reservation or "")

    def allowances(self) -> tuple[Allowance, ...]:
        """All that are in force, as they are today."""
        with self._lock:
            self._read()
            key = "" if self._last is None else self._last.hash, int(time.time()) // _DAY
            if self._allowances[0] != key:
                self._allowances = key, self.ledger.allowances()
            return self._allowances[1]

    def answers(self, tables: Mapping[str, str]) -> list[AnswerLine]:
        """The answers about these tables (account by name), the newest first."""
        accounts = set(tables.values())
        with self._lock, self.ledger.connection():
            self._read()
            lines = [
                self._line(entry)
                for entry in reversed(self._answers.values())
                if entry.account in accounts
            ]
        return [line for line in lines if line.table is None or line.table in tables]

    def is_readable(self, sequence: int) -> bool:
        """Whether an entry holds an answer that can be shown."""
        with self._lock, self.ledger.connection():
            self._read()
            entry = self._answers.get(sequence)
            return entry is not None and self._line(entry).table is not None

    def _line(self, entry: Entry) -> AnswerLine:
        found = self._lines.get(entry.sequence)
        if found is None:
            paid = self._charges.get(entry.reservation or "", entry)
            record = self.ledger.entry(entry.sequence, known=self._known).record or {}
            readable = record_problem(record) is None
            found = AnswerLine(
                entry=entry.sequence,
                table=record["table"] if readable else None,
                title=title_of(record) if readable else UNREADABLE,
                sql=paid.words if readable else None,
                cost={} if paid.cost is None else paid.cost.to_json(),
                when=entry.when,
                principal=paid.principal,
            )
            self._lines[entry.sequence] = found
        return found


# ---------------------------------------------------------------- tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A table that the server answers about."""

    card: DataCard
    path: Path
    reading: Reading = field(repr=False)
    examples: tuple[Example, ...]
    slots: Slots | None
    """None: they are still to be measured, and no question is taken."""
    is_given: bool = False
    """Whether a steward has said how long they are."""
    _found: dict[str, bool] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return self.card.name

    @property
    def account_name(self) -> str:
        return self.card.account_name

    @property
    def slot(self) -> float | None:
        """Seconds of a slot, once they are known."""
        return None if self.slots is None else self.slots.seconds

    @property
    def is_unsized(self) -> bool:
        """Whether its slots are measured on more rows than it may have: the card does not say."""
        return self.card.rows is None and not self.is_given

    def account(self) -> Account:
        found = self.reading.account(self.account_name)
        return found or self.reading.ledger.account(
            self.account_name, self.card.budget, neighbours_of(self.card)
        )

    def data(self) -> str | None:
        """The fingerprint of the data that a steward has accepted; None: none so far."""
        return self.reading.accepted(self.account_name, self.name)

    def changed(self) -> bool | None:
        """Whether the source is another one than the accepted; None: not known yet."""
        return self._found.get(self.data() or "")

    def is_there(self) -> bool:
        """Whether files have the names that the card gives; other sources are not looked for."""
        card = self.card
        sources = [card.source, *card.protected.values()]
        sources += [one.source for one in card.public.values()]
        paths = [path for one in sources if one.engine == "duckdb" for path in one.paths]
        return all(os.path.exists(path) or any(iglob(path, recursive=True)) for path in paths)

    def note_changed(self, data: str | None, *, changed: bool) -> None:
        """What the worker has found when this version was the accepted one."""
        self._found.clear()
        self._found[data or ""] = changed


class Catalogue:
    """All tables of a server, by name; read once, when it starts."""

    def __init__(self, settings: Settings, store: Store) -> None:
        cards = {path: card_at(path) for path in settings.cards}
        _check_together(cards)
        self.settings = settings
        first = next(iter(cards.values()))
        self.reading = Reading(Ledger.open(str(first.ledger)))
        self.store = store
        self._tables = {
            card.name: Served(
                card=card,
                path=path,
                reading=self.reading,
                examples=examples_of(card),
                slots=self._known_slots(card),
                is_given=settings.slot is not None,
            )
            for path, card in cards.items()
        }
        self.tables: Mapping[str, Served] = MappingProxyType(self._tables)
        for card in cards.values():
            self.ledger.account(card.account_name, card.budget, neighbours_of(card))

    @property
    def ledger(self) -> Ledger:
        return self.reading.ledger

    def _known_slots(self, card: DataCard) -> Slots | None:
        """The table's slots: as given, or as they were measured for as many rows."""
        if self.settings.slot is not None:
            return Slots(seconds=self.settings.slot, strict=self.settings.strict)
        found = self.store.connection().execute(
            "SELECT seconds FROM slots WHERE table_name = ? AND why = ?", (card.name, _why(card))
        )
        kept = found.fetchone()
        return None if kept is None else Slots(seconds=kept[0], strict=self.settings.strict)

    def measured(self, served: Served, slowest: float) -> Served:
        """The table with slots for examples that take this long, on made-up rows; kept for good."""
        seconds = slot_for(slowest)
        with self.store.transaction() as rows:
            kept = served.name, seconds, _why(served.card)
            rows.execute("INSERT OR REPLACE INTO slots VALUES (?, ?, ?)", kept)
        slots = Slots(seconds=seconds, strict=self.settings.strict)
        self._tables[served.name] = replace(served, slots=slots)
        return self._tables[served.name]

    def seen_by(self, identity: Identity) -> list[Served]:
        """The tables that somebody may know of: analysts those with an allowance of theirs."""
        tables = list(self.tables.values())
        if identity.role == "analyst":
            mine = {a.account for a in self.reading.allowances() if self._is_of(a, identity)}
            tables = [served for served in tables if served.account_name in mine]
        elif identity.role not in ("steward", "auditor"):
            return []
        if identity.tables is not None:
            tables = [served for served in tables if served.name in identity.tables]
        return tables

    def allowance(self, served: Served, identity: Identity) -> Allowance | None:
        """What an analyst may charge to the table's account; None for others."""
        mine = (a for a in self.reading.allowances() if self._is_of(a, identity))
        return next((a for a in mine if a.account == served.account_name), None)

    @staticmethod
    def _is_of(allowance: Allowance, identity: Identity) -> bool:
        return identity.role == "analyst" and allowance.principal == identity.principal


def _check_together(cards: Mapping[Path, DataCard]) -> None:
    if not cards:
        raise InvalidParameter("cards", problem="are none", remedy="name a card: visits.toml")
    names = [card.name for card in cards.values()]
    if len(set(names)) != len(names):
        problem, remedy = "have two tables of one name", "rename one, or leave it out"
        raise InvalidParameter("cards", problem=problem, remedy=remedy)
    first = Ledger.open(str(next(iter(cards.values())).ledger))
    for path, card in cards.items():
        if not first.is_at(str(card.ledger)):
            problem = f"names another ledger than the first card: {path.name}"
            remedy = "write the same [ledger] path on all cards of a server; users are the ledger's"
            raise InvalidParameter("cards", problem=problem, remedy=remedy)
    promises = {(c.account_name, c.neighbours.relation, c.unit is None) for c in cards.values()}
    if len(promises) > len({account for account, *_ in promises}):
        problem = "share an account, and differ in neighbours or in whether a row is a unit"
        remedy = "declare the same, or give one another account under [budget]: sums of the two "
        raise InvalidParameter("cards", problem=problem, remedy=remedy + "would promise nothing")
    for one, other in combinations(cards.values(), 2):
        if one.account_name != other.account_name and _places(one) & _places(other):
            words = "%s and %s read the same data and have two accounts: their losses add up, and "
            words += "neither budget holds for both; name one account on both cards"
            _LOG.warning(words, one.name, other.name)


def _places(card: DataCard) -> set[tuple[str, str | None]]:
    """Where its protected rows are, as the card names them."""
    sources = (card.source, *card.protected.values())
    return {(path, source.table) for source in sources for path in source.paths}


def measured_rows(card: DataCard) -> int:
    """How many made-up rows slots are measured on."""
    return card.rows or DECLARED


def _why(card: DataCard) -> str:
    return f"made-up rows: {measured_rows(card)} {card.source.kind}"
