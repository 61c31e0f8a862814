"""The desk: questions are priced, paid for, put into the line of their table, and answered.

A question that is taken goes plan -> check -> reserve (`planner.py`) -> job (`store.py`) -> 202.
Then its line has it (`slots.py`), its table's process answers it (`station.py`, `tasks.py`), and
the job says which entry of the ledger the answer is.

Law      a job is a row of the store that names a reservation of the ledger, or an entry with the
         answer. It is written after the reservation is committed, and finished after the answer is
Theorem  whenever server and workers are ended, and whoever asks again: (a) what is shown is paid
         for and in the ledger. (b) What is paid for is answered, or open, or closed by the ledger
         as never to be answered: no charge is lost. (c) The same question under the same key, or
         asked again while its reservation is open, is charged once
Proof    (a) a job is finished as "answered" with the number of an entry that the ledger has. (b) a
         reservation that the server was ended before it could write a job for stays open in the
         ledger, and is resumed by asking again; `unclaimed` lists them. A job that is not finished
         is put into its line again when the server starts: nobody has seen its first noise. (c) the
         row of a key is unique, and `Ledger.reserve` gives an open reservation again
Checked  tests/serve/test_desk.py; tests/serve/test_killed.py: ended at random moments
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import os
import sqlite3
import time
from collections.abc import Coroutine, Mapping
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from typing import Any

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.ledger import Entry
from lastbit.release import record_problem
from lastbit.serve.catalogue import AnswerLine, Catalogue, Served
from lastbit.serve.child import Message
from lastbit.serve.identity import Identity
from lastbit.serve.planner import Planner, Turns
from lastbit.serve.questions import FINISHED, Job, Preview, Question, Refusal, State, not_allowed
from lastbit.serve.settings import Settings
from lastbit.serve.slots import either, until
from lastbit.serve.station import AcceptanceItem, Station, now
from lastbit.serve.store import Jobs, Store, canonical
from lastbit.tables import Cost

_LOG = logging.getLogger("lastbit.serve")
_LONGEST_KEY, _FAILURES, _FAULT, _DAY = 200, 3, 60.0, 86_400.0


class Desk:
    """All that is asked of a server; one for each folder of state, in one event loop."""

    def __init__(self, catalogue: Catalogue, store: Store, settings: Settings) -> None:
        self.catalogue, self.store, self.settings = catalogue, store, settings
        self.unclaimed: tuple[Entry, ...] = ()
        """Reservations of the ledger that no job is about: to ask the same again resumes them."""
        paths = tuple(served.path for served in catalogue.tables.values())
        self._planner, self._maker = Planner(paths), Planner(paths, size=1)
        self._jobs, self._stations = Jobs(store), dict[str, Station]()
        self._keys, self._taking = Turns(), set[asyncio.Task[Job]]()
        self._lock: int | None = None
        self.up = asyncio.Event()
        """Once all children have started."""
        self._tasks: list[asyncio.Task[None]] = []
        self.stopping, self._stopped = False, asyncio.Event()
        self._unwell: str | None = "not started"
        self._well_again: float | None = None

    # ------------------------------------------------------------ start and stop

    async def start(self) -> None:
        """Put what was not finished into its line again; children start while pages are shown."""
        self._take_lock()
        self._jobs.forget_lost(self.catalogue.reading.holds)
        measuring = asyncio.Lock()
        self._do(either(self._start_children(), self._stopped.wait()), self._sweep())
        for name, served in self.catalogue.tables.items():
            station = Station(served, self.catalogue, self._jobs, self._stopped)
            self._stations[name] = station
            self._do(station.run(self.up, measuring, self._fault))
        self._find_unclaimed()
        self._unwell = None

    def _do(self, *work: Coroutine[Any, Any, None]) -> None:
        self._tasks += [asyncio.create_task(one) for one in work]

    async def _start_children(self) -> None:
        """Start the children; who needs one sooner starts it, or waits for it."""
        workers = (station.worker.up() for station in self._stations.values())
        await asyncio.gather(self._planner.start(), *workers, return_exceptions=True)
        self.up.set()

    async def stop(self) -> None:
        """Take no more questions, let the slots that run end, and end the children."""
        self.stopping = True
        await asyncio.gather(*self._taking, return_exceptions=True)
        self._stopped.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        ends = (station.end() for station in self._stations.values())
        await asyncio.gather(self._planner.stop(), self._maker.stop(), *ends)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def unwell(self) -> str | None:
        """In a word, why questions are not answered as they should be; None: all is well."""
        if self.stopping:
            return "stopping"
        if self._well_again is not None and now() > self._well_again:
            self._well_again = self._unwell = None
        failures = (station.worker.failures for station in self._stations.values())
        return "worker" if max(failures, default=0) >= _FAILURES else self._unwell

    def _take_lock(self) -> None:
        """One server for a folder of state: two would answer each job twice."""
        self._lock = os.open(self.store.path.with_name("serve.lock"), os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidParameter(
                f"the folder {self.store.path.parent}",
                problem="is in use by another server",
                remedy="stop that one, or name another folder by --state",
            ) from None

    def _find_unclaimed(self) -> None:
        """Find what was paid for and no job is about."""
        rows = (row for name in self.catalogue.tables for row in self._jobs.waiting(name))
        claimed = {row["reservation"] for row in rows}
        accounts = {served.account_name for served in self.catalogue.tables.values()}
        ledger = self.catalogue.ledger
        unanswered = (entry for name in sorted(accounts) for entry in ledger.unanswered(name))
        self.unclaimed = tuple(entry for entry in unanswered if entry.hash not in claimed)

    async def _sweep(self) -> None:
        """Forget once a day what the store need not remember any more."""
        while not self._stopped.is_set():
            try:
                keep = self.settings.keep_days
                await asyncio.to_thread(self.store.swept, time.time(), keep_days=keep)
            except Exception as error:
                self._fault(error)
            await either(until(now() + _DAY), self._stopped.wait())

    def _fault(self, error: Exception) -> None:
        """Disk or ledger fail, or the program: the job stays as it is, for the next start."""
        self._unwell = "ledger" if isinstance(error, LastbitError) else "fault"
        self._well_again = now() + _FAULT
        _LOG.error("something was left undone: %s", type(error).__name__)

    # ------------------------------------------------------------ before paying

    def table(self, table: str, who: Identity) -> Served:
        for served in self.catalogue.seen_by(who):
            if served.name == table:
                return served
        detail = "there is no such table, or you have no allowance for it; a steward can give one"
        raise Refusal(404, "No such table", detail, "unknown-table")

    async def preview(self, table: str, question: Question, who: Identity) -> Preview:
        """What the answer would cost, how far off it would be, what would be left."""
        self._check_running()
        served = await asyncio.to_thread(self.table, table, who)
        data = await asyncio.to_thread(served.data)
        told = await self._planner.preview(table, question, data, who.principal)
        return await asyncio.to_thread(self._previewed, served, question, who, told)

    def _previewed(
        self, served: Served, question: Question, who: Identity, told: Message
    ) -> Preview:
        parts, reading = told.get("parts"), self.catalogue.reading
        due = _cost(told["cost"])
        if parts is not None:  # what is on record is free
            owed = (
                cost for one, cost in parts if reading.recorded(served.account_name, one) is None
            )
            due = sum(map(_cost, owed), start=Cost())
        recorded = None
        if not question.fresh and told["question"] is not None:
            recorded = reading.recorded(served.account_name, told["question"])
            if recorded is not None and not reading.is_readable(recorded):
                recorded = None
        refused, left = None, None
        try:
            if due != Cost():
                left = self._left(served, who, due, gaussian=told["gaussian"])
        except LastbitError as error:
            refused = None if recorded else str(error)
        return Preview(
            table=served.name,
            title=told["title"],
            cost=told["cost"],
            guarantee=told["guarantee"],
            facts=tuple((name, words) for name, words in told["facts"]),
            columns=tuple(map(tuple, told["columns"])),
            prices=tuple(map(tuple, told["prices"])),
            recorded=recorded,
            refused=refused,
            left=left,
            parts=None if parts is None else len(parts),
        )

    def _left(
        self, served: Served, who: Identity, cost: Cost, *, gaussian: bool
    ) -> dict[str, str] | None:
        """What would be left of one's own; refused where it does not suffice."""
        after = served.account().charged(cost, gaussian_noise=gaussian)
        mine = self.catalogue.allowance(served, who)
        left: Any = after.remaining if mine is None else mine.charged(cost).left
        if left is None:
            return None
        amounts = {name: getattr(left, name) for name in ("epsilon", "delta", "rho")}
        return {name: str(amount) for name, amount in amounts.items() if amount is not None}

    async def made_up(self, table: str, question: Question, who: Identity) -> dict[str, Any]:
        """The record of an answer on made-up rows: free, and of nothing that is there."""
        self._check_running()
        await asyncio.to_thread(self.table, table, who)
        return await self._maker.made_up(table, question, who.principal)

    # ------------------------------------------------------------ paying

    async def wait_for_slots(self, table: str) -> None:
        """Until questions about a table are taken, or it has lasted too long for a page."""
        await self._stations[table].wait_for_slots()

    async def submit_all(
        self, table: str, question: Question, who: Identity, *, key: str | None = None
    ) -> list[Job]:
        """Pay for several statements, each a job; for none if what is left does not cover all.

        If another spends the rest meanwhile, what was paid is answered, and to ask again goes on.
        """
        parts = None
        if ";" in question.sql:  # whether they are several, a child says
            seen = await self.preview(table, question, who)
            parts = seen.parts
            if parts is not None and seen.refused is not None and not await self._knows(who, key):
                raise Refusal(403, "Over the budget", seen.refused, "over-budget")
        if parts is None:
            return [await self.submit(table, question, who, key=key)]
        served = await asyncio.to_thread(self.table, table, who)
        self._stations[served.name].check_open(who, parts)
        every = [(replace(question, part=part), key and f"{key}-{part}") for part in range(parts)]
        return [await self.submit(table, one, who, key=name) for one, name in every]

    async def _knows(self, who: Identity, key: str | None) -> bool:
        """Whether several statements were taken by this key before."""
        if key is None:
            return False
        return await asyncio.to_thread(self._jobs.of_key, who.principal, f"{key}-0") is not None

    async def submit(
        self, table: str, question: Question, who: Identity, *, key: str | None = None
    ) -> Job:
        """Pay for an answer, which is then waited for; the same key gives the same job."""
        await asyncio.to_thread(self.table, table, who)
        if key is not None and not (0 < len(key) <= _LONGEST_KEY and key.isprintable()):
            detail = f"an Idempotency-Key has 1 to {_LONGEST_KEY} letters"
            raise Refusal(422, "Not a key", detail, "malformed")
        # to the end, also if the client goes away: what is charged must become a job
        taking = asyncio.create_task(self._taken(self._stations[table], question, who, key))
        self._taking.add(taking)
        taking.add_done_callback(self._taking.discard)
        return await asyncio.shield(taking)

    async def _taken(
        self, station: Station, question: Question, who: Identity, key: str | None
    ) -> Job:
        name, principal = station.served.name, who.principal
        async with self._keys.of((principal, key)) if key is not None else nullcontext():
            if key is not None:
                known = await asyncio.to_thread(self._jobs.of_key, principal, key)
                if known is not None:
                    return self._same(known, name, question)
            self._check_running()
            station.check_open(who)
            station.entering[principal] += 1
            try:
                await asyncio.to_thread(station.check_there)
                paid = await self._planner.reserve(name, question, principal)
                row = await asyncio.to_thread(self._jobs.add, name, question, principal, key, paid)
                station.add(row)
            finally:
                station.entering[principal] -= 1
        words = json.dumps(question.sql)  # one line, whatever it holds
        _LOG.info("%s asks %s for %s: %s", principal, name, row["cost"] or "nothing", words)
        return self._job(row)

    def _same(self, row: sqlite3.Row, table: str, question: Question) -> Job:
        if (row["table_name"], row["question"]) != (table, canonical(question)):
            detail = "this Idempotency-Key was used for another question; use another key"
            raise Refusal(422, "Key in use", detail, "key-in-use")
        return self._job(row)

    def _check_running(self) -> None:
        if self.unwell is not None:
            detail = "the server cannot answer now; nothing was charged; ask again later"
            raise Refusal(503, "Not now", detail, self.unwell)

    # ------------------------------------------------------------ afterwards

    def job(self, id: str, who: Identity) -> Job:
        """A job of one's own; of anybody's, for stewards."""
        row = self._jobs.with_id(id)
        if row is None or not _sees(who, row):
            detail = "there is no such job of yours; look at the list of your questions"
            raise Refusal(404, "No such job", detail, "unknown-job")
        return self._job(row)

    def jobs(self, who: Identity) -> list[Job]:
        """One's own jobs, the newest first; all of them, for stewards."""
        rows = self._jobs.newest(None if who.role == "steward" else who.principal)
        return [self._job(row) for row in rows if _sees(who, row)]

    def _job(self, row: sqlite3.Row) -> Job:
        state: State = row["state"]
        finished, due = state in FINISHED, None
        station = self._stations.get(row["table_name"])
        item = None if station is None else station.questions.get(row["id"])
        if station is not None and station.line is not None and item is not None and not finished:
            running = station.line.running  # once: the line goes on meanwhile
            state = "running" if running is not None and running[0] is item else "waiting"
            end = station.line.due(item)
            due = None if end is None else station.wall + end
        return Job(
            id=row["id"],
            table=row["table_name"],
            principal=row["principal"],
            question=Question(**json.loads(row["question"])),
            submitted=row["submitted"],
            state=state,
            cost=None if row["cost"] is None else json.loads(row["cost"]),
            due=due,
            slot=None if station is None else station.served.slot,
            slots=row["slots"] if finished else None,
            entry=row["entry"] if finished else None,
            reason=row["reason"] if finished else None,
        )

    def answers(self, who: Identity) -> list[AnswerLine]:
        """All answers about tables that they may see, the newest first."""
        seen = {served.name: served.account_name for served in self.catalogue.seen_by(who)}
        return self.catalogue.reading.answers(seen)

    def answer(self, entry: int, who: Identity) -> dict[str, Any]:
        """The record of an answer, as `lastbit check` takes it."""
        seen = {served.name: served.account_name for served in self.catalogue.seen_by(who)}
        unknown = "there is no such answer about a table that you may see"
        missing = Refusal(404, "No such answer", unknown, "unknown-answer")
        try:
            found = self.catalogue.ledger.entry(entry) if 0 < entry < 1 << 53 else None
        except InvalidParameter:
            raise missing from None
        if found is None or found.result is None or found.account not in seen.values():
            raise missing
        record = found.record or {}
        if record_problem(record) is not None:
            detail = "what this entry holds is no answer of lastbit's; it stays charged; a steward "
            detail += "can withdraw it: lastbit ledger withdraw"
            raise Refusal(404, "Unreadable entry", detail, "unknown-answer")
        if seen.get(record["table"]) != found.account:
            raise missing
        return dict(record)

    async def accept(self, table: str, who: Identity) -> None:
        """Let the data be asked about as they are now: a steward's decision, at a slot's end."""
        await asyncio.to_thread(self.table, table, who)
        if "data" not in who.rights:
            raise not_allowed("a steward accepts data")
        station = self._stations[table]
        line, item = station.check_measured(), AcceptanceItem(station, who.principal)
        line.add(item)
        if not await asyncio.shield(item.done):
            detail = "the source could not be read in time; look whether it is there and whole"
            raise Refusal(503, "Not accepted", detail, "engine")


def _cost(amounts: Mapping[str, str]) -> Cost:
    return Cost(**{name: Fraction(amount) for name, amount in amounts.items()})


def _sees(who: Identity, row: sqlite3.Row) -> bool:
    """Whether a job is theirs, or they are a steward; never of a table that a token leaves out."""
    mine = who.role == "steward" or row["principal"] == who.principal
    return mine and (who.tables is None or row["table_name"] in who.tables)
