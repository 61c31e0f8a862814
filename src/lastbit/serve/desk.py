"""The desk: questions are priced, paid for, put into the line of their table, and answered.

A question that is taken goes plan -> check -> reserve -> job -> 202; then its line has it
(`slots.py`), its table's worker answers it (`worker.py`), and the job says which entry of the
ledger the answer is.

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
import math
import os
import sqlite3
import time
from collections import Counter
from collections.abc import Coroutine, Mapping
from contextlib import nullcontext, suppress
from fractions import Fraction
from typing import Any, NoReturn

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.ledger import Entry
from lastbit.release import record_problem
from lastbit.sampling import secure_bits
from lastbit.serve.catalogue import AnswerLine, Catalogue, Served, measured_rows
from lastbit.serve.child import Child, Gone, Message
from lastbit.serve.identity import Identity
from lastbit.serve.planning import Planner, Turns
from lastbit.serve.questions import FINISHED, Job, Preview, Question, Refusal, State
from lastbit.serve.settings import Settings
from lastbit.serve.slots import Line, Slots, either, late, until
from lastbit.serve.store import Store
from lastbit.serve.worker import Worker
from lastbit.tables import Cost

_LOG = logging.getLogger("lastbit.serve")
_LONGEST_KEY, _FAILURES, _FAULT = 200, 3, 60.0
_SHARE, _LEAST_SHARE = 2, 4
"""Which part of a line one principal may have, and how many questions at least."""
_DAY, _CALIBRATION = 86_400.0, 900.0
_LOOKING, _EVERY = 30.0, 180.0
"""Seconds from a look at the source until what it found is shown, and until the next one."""
_NEVER = (
    "no answer could be given in time; the price stays charged, and to ask the same again is "
    "charged again"
)
_CHANGED = (
    "the data are not those that a steward has accepted; the price stays charged, and to ask the "
    "same again is free once the accepted data are back"
)
_PART = "an answer on record says this among other things; nothing was charged"


class Desk:
    """All that is asked of a server; one for each folder of state, in one event loop."""

    def __init__(self, catalogue: Catalogue, store: Store, settings: Settings) -> None:
        self.catalogue, self.store, self.settings = catalogue, store, settings
        self.unclaimed: tuple[Entry, ...] = ()
        """Reservations of the ledger that no job is about: to ask the same again resumes them."""
        paths = tuple(served.path for served in catalogue.tables.values())
        self._planner, self._maker = Planner(paths), Planner(paths, size=1)
        self._workers = {
            served.name: Worker(served.path, memory=settings.worker_memory)
            for served in catalogue.tables.values()
        }
        self._lookers = {
            served.name: Worker(served.path, memory=settings.worker_memory)
            for served in catalogue.tables.values()
        }
        self._items: dict[str, _Question] = {}
        self._keys = Turns()
        self._taking: set[asyncio.Task[Job]] = set()
        self._entering: Counter[tuple[str, str]] = Counter()
        self._lock: int | None = None
        self._lines: dict[str, Line] = {}
        self.up = asyncio.Event()
        """Once all children have started."""
        self._measuring, self._unmeasured = asyncio.Lock(), set[str]()
        self._tasks: list[asyncio.Task[None]] = []
        self.stopping, self._stopped = False, asyncio.Event()
        self._unwell: str | None = "not started"
        self._well_again: float | None = None

    # ------------------------------------------------------------ start and stop

    async def start(self) -> None:
        """Put what was not finished into its line again; children start while pages are shown."""
        self._take_lock()
        self._wall = time.time() - _now()  # the clock of lines is not set back
        self._resume()
        self._do(self._unless_stopped(self._started()), self._sweep())
        for served in self.catalogue.tables.values():
            if served.slots is None:
                self._do(self._unless_stopped(self._measured(served)))
            else:
                self._open(served, served.slots)
        self._unwell = None

    def _do(self, *work: Coroutine[Any, Any, None]) -> None:
        self._tasks += [asyncio.create_task(one) for one in work]

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this, unless the desk is stopped first; what goes wrong is logged."""

        async def done() -> None:
            try:
                await work
            except Exception as error:
                self._fault(error)

        await either(done(), self._stopped.wait())

    async def _started(self) -> None:
        """Start the children; who needs one sooner starts it, or waits for it."""
        workers = (worker.up() for worker in self._workers.values())
        await asyncio.gather(self._planner.start(), *workers, return_exceptions=True)
        self.up.set()

    def _open(self, served: Served, slots: Slots) -> None:
        """Take questions about a table: those that waited when the server ended come first."""
        line = self._lines[served.name] = Line(slots)
        rows = self.store.connection().execute(
            "SELECT * FROM jobs WHERE table_name = ? AND state IN ('waiting', 'running') "
            "ORDER BY sequence",
            (served.name,),
        )
        for row in rows.fetchall():
            self._add(_Question(self, served, row))
        self._do(line.run(self._stopped, self._fault), self._watch(served, slots))

    async def _measured(self, served: Served) -> None:
        """Find how long a slot must be, on made-up rows, once the other children are up."""
        await self.up.wait()
        async with self._measuring:  # one by one: two at once would take longer
            slowest = await self._slowest(served)
        if slowest is None:
            self._unmeasured.add(served.name)
            _LOG.error("the slot of %s could not be measured; pass, say, --slot 2", served.name)
            return
        found = await asyncio.to_thread(self.catalogue.measured, served, slowest)
        assert found.slots is not None
        self._open(found, found.slots)
        _LOG.info("a slot of %s is %g s long", found.name, found.slots.seconds)

    async def _slowest(self, served: Served) -> float | None:
        """Seconds that the slowest example takes; None if one fails, or takes far too long."""
        _LOG.info("measuring, once, how long a slot of %s must be, on made-up rows", served.name)
        memory = str(self.settings.worker_memory)
        child = Child("lastbit.serve.worker", str(served.path), memory)
        try:
            await child.start()
            await child.say({"do": "measure", "rows": measured_rows(served.card)})
            return float((await child.heard(_CALIBRATION))["slowest"])
        except (Gone, LookupError):
            return None
        finally:
            await child.end()

    async def stop(self) -> None:
        """Take no more questions, let the slots that run end, and end the children."""
        self.stopping = True
        await asyncio.gather(*self._taking, return_exceptions=True)
        self._stopped.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        children = (self._planner.stop(), self._maker.stop())
        workers = (*self._workers.values(), *self._lookers.values())
        await asyncio.gather(*children, *(worker.end() for worker in workers))
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def unwell(self) -> str | None:
        """In a word, why questions are not answered as they should be; None: all is well."""
        if self.stopping:
            return "stopping"
        if self._well_again is not None and _now() > self._well_again:
            self._well_again = self._unwell = None
        return "worker" if self.without_worker else self._unwell

    @property
    def without_worker(self) -> bool:
        """Whether the process of a table could not be started, several times in a row."""
        return any(worker.failures >= _FAILURES for worker in self._workers.values())

    @property
    def pids(self) -> Mapping[str, int | None]:
        """The processes of the tables."""
        return {name: worker.pid for name, worker in self._workers.items()}

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

    def _resume(self) -> None:
        """Find what was paid for and no job is about; jobs that wait are those of `_open`.

        Those whose charge or answer the ledger does not have are forgotten: a backup was restored,
        and their numbers may be those of other answers by now.
        """
        reading = self.catalogue.reading
        with self.store.transaction() as all_of:
            found = all_of.execute("SELECT id, reservation, entry FROM jobs").fetchall()
            lost = [(id,) for id, paid, entry in found if not reading.holds(paid, entry)]
            all_of.executemany("DELETE FROM jobs WHERE id = ?", lost)
        rows = self.store.connection().execute(
            "SELECT table_name, reservation FROM jobs WHERE state IN ('waiting', 'running')"
        )
        claimed = {paid for table, paid in rows if table in self.catalogue.tables}
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
            await either(until(_now() + _DAY), self._stopped.wait())

    async def _watch(self, served: Served, slots: Slots) -> None:
        """Look at the source from time to time, in a process of its own, off the table's line."""
        shown_after = max(_LOOKING, slots.length(None))
        await either(self.up.wait(), self._stopped.wait())
        while not self._stopped.is_set():
            begin = _now()
            try:
                await self._looked(served, begin + shown_after)
            except Exception as error:  # it is tried again, and questions ask the ledger themselves
                _LOG.error("a look at %s failed: %s", served.name, type(error).__name__)
            await either(until(begin + max(_EVERY, 2 * shown_after)), self._stopped.wait())

    async def _looked(self, served: Served, end: float) -> None:
        """One look, whose finding is shown at this time; none if it is not ready then."""
        looker, data, found = self._lookers[served.name], served.data(), {}
        with suppress(TimeoutError):
            async with asyncio.timeout_at(end):
                await looker.up()
                if await looker.ready({"do": "look", "data": data}):
                    found = await looker.settle()
        await looker.end()
        await either(until(end), self._stopped.wait())
        if "changed" in found and data is not None:
            served.note_changed(data, changed=bool(found["changed"]))

    def _add(self, item: _Question) -> None:
        self._items[item.id] = item
        self._lines[item.served.name].add(item)

    def _fault(self, error: Exception) -> None:
        """Disk or ledger fail, or the program: the job stays as it is, for the next start."""
        self._unwell = "ledger" if isinstance(error, LastbitError) else "fault"
        self._well_again = _now() + _FAULT
        _LOG.error("something was left undone: %s", type(error).__name__)

    # ------------------------------------------------------------ before paying

    def table(self, table: str, who: Identity) -> Served:
        """The table of this name, if they may see it."""
        for served in self.catalogue.seen_by(who):
            if served.name == table:
                return served
        detail = "there is no such table, or you have no allowance for it; a steward can give one"
        raise Refusal(status=404, title="No such table", detail=detail, kind="unknown-table")

    async def preview(self, table: str, question: Question, who: Identity) -> Preview:
        """What the answer would cost, how far off it would be, what would be left."""
        self._check_running()
        served, data = await asyncio.to_thread(self._version, table, who)
        told = await self._planner.preview(table, question, data, who.principal)
        return await asyncio.to_thread(self._previewed, served, question, who, told)

    def _version(self, table: str, who: Identity) -> tuple[Served, str | None]:
        served = self.table(table, who)
        return served, served.data()

    def _previewed(
        self, served: Served, question: Question, who: Identity, told: Message
    ) -> Preview:
        cost = Cost(**{name: Fraction(amount) for name, amount in told["cost"].items()})
        recorded = None
        if not question.fresh:
            reading = self.catalogue.reading
            recorded = reading.recorded(served.account_name, told["question"])
            if recorded is not None and not reading.is_readable(recorded):
                recorded = None
        refused, left = None, None
        try:
            left = self._left(served, who, cost, gaussian=told["gaussian"])
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
        served, _ = await asyncio.to_thread(self._version, table, who)
        return await self._maker.made_up(served.name, question, who.principal)

    # ------------------------------------------------------------ paying

    async def submit(
        self, table: str, question: Question, who: Identity, *, key: str | None = None
    ) -> Job:
        """Pay for an answer, which is then waited for; the same key gives the same job."""
        served, _ = await asyncio.to_thread(self._version, table, who)
        if key is not None and not (0 < len(key) <= _LONGEST_KEY and key.isprintable()):
            detail = f"an Idempotency-Key has 1 to {_LONGEST_KEY} letters"
            raise Refusal(status=422, title="Not a key", detail=detail, kind="malformed")
        # to the end, also if the client goes away: what is charged must become a job
        taking = asyncio.create_task(self._taken(served, question, who, key))
        self._taking.add(taking)
        taking.add_done_callback(self._taking.discard)
        return await asyncio.shield(taking)

    async def _taken(
        self, served: Served, question: Question, who: Identity, key: str | None
    ) -> Job:
        async with self._keys.of((who.principal, key)) if key is not None else nullcontext():
            if key is not None:
                known = await asyncio.to_thread(self._job_of_key, who.principal, key)
                if known is not None:
                    return self._same(known, served, question)
            self._check_open(served, who)
            self._entering[served.name, who.principal] += 1
            try:
                await asyncio.to_thread(self._check_there, served)
                paid = await self._planner.reserve(served.name, question, who.principal)
                row = await asyncio.to_thread(self._written, served, question, who, key, paid)
                item = _Question(self, served, row)
                self._add(item)
            finally:
                self._entering[served.name, who.principal] -= 1
        price = "nothing" if item.cost is None else json.dumps(item.cost)
        words = json.dumps(question.sql)  # one line, whatever it holds
        _LOG.info("%s asks %s for %s: %s", who.principal, served.name, price, words)
        return self._job(row)

    def _job_of_key(self, principal: str, key: str) -> sqlite3.Row | None:
        rows = self.store.connection().execute(
            "SELECT * FROM jobs WHERE principal = ? AND idempotency = ?", (principal, key)
        )
        found: sqlite3.Row | None = rows.fetchone()
        return found

    def _same(self, row: sqlite3.Row, served: Served, question: Question) -> Job:
        asked = json.loads(row["question"])
        if row["table_name"] != served.name or asked != json.loads(_canonical(question)):
            detail = "this Idempotency-Key was used for another question; use another key"
            raise Refusal(status=422, title="Key in use", detail=detail, kind="key-in-use")
        return self._job(row)

    def _check_running(self) -> None:
        if self.unwell is not None:
            detail = "the server cannot answer now; nothing was charged; ask again later"
            self._refuse(503, "Not now", detail, self.unwell)

    def _check_open(self, served: Served, who: Identity) -> None:
        """Refuse, before anything is charged, what could not be answered soon."""
        self._check_running()
        self._check_measured(served)
        if served.data() is None or served.changed():
            detail = (
                "the data are not those that a steward has accepted; nothing was charged; let a "
                "steward look at them, and accept them"
            )
            self._refuse(409, "The data have changed", detail, "data-changed")
        entering = {name: n for (table, name), n in self._entering.items() if table == served.name}
        waiting = len(self._lines[served.name]) + sum(entering.values())
        here = (item for item in self._items.values() if item.served is served)
        mine = sum(item.principal == who.principal for item in here)
        mine += entering.get(who.principal, 0)
        most = self.settings.most_waiting
        if waiting >= most or mine >= max(most // _SHARE, _LEAST_SHARE):
            whose = "too many questions" if waiting >= most else "too many questions of yours"
            detail = f"{whose} wait for this table; nothing was charged; ask again later"
            later = {"Retry-After": str(math.ceil(served.slot or 1))}
            self._refuse(503, "Too many questions wait", detail, "queue-full", later)

    def _check_measured(self, served: Served) -> None:
        """Refuse what needs the line of a table whose slots are not known yet."""
        if served.name not in self._lines:
            what = "is being measured on made-up rows, once; nothing was charged; ask again soon"
            if served.name in self._unmeasured:
                what = "could not be measured; nothing was charged; let a steward pass --slot 2"
            detail = f"how long a slot of {served.name} must be {what}"
            self._refuse(503, "Not yet", detail, "measuring", {"Retry-After": "5"})

    def _check_there(self, served: Served) -> None:
        """Refuse, before anything is charged, a question about files that are not there."""
        if not served.is_there():
            detail = (
                f"the data of {served.name} are not where its card says; nothing was charged; tell "
                "a steward"
            )
            self._refuse(503, "The data are not there", detail, "data-missing")

    @staticmethod
    def _refuse(
        status: int, title: str, detail: str, kind: str, headers: Mapping[str, str] | None = None
    ) -> NoReturn:
        raise Refusal(status=status, title=title, detail=detail, kind=kind, headers=headers or {})

    def _written(
        self, served: Served, question: Question, who: Identity, key: str | None, paid: Message
    ) -> sqlite3.Row:
        """The row of a new job."""
        recorded, reservation = paid.get("recorded"), paid.get("reservation")
        values = {
            "id": secure_bits().fill(16).tobytes().hex(),
            "table_name": served.name,
            "principal": who.principal,
            "question": _canonical(question),
            "idempotency": key,
            "submitted": time.time(),
            "state": "waiting",
            "reservation": reservation,
            "cost": None if paid.get("cost") is None else json.dumps(paid["cost"]),
            "entry": recorded,
            "reason": _PART if paid.get("part") else None,
        }
        names, marks = ", ".join(values), ", ".join("?" * len(values))
        with self.store.transaction() as rows:
            told = "SELECT 1 FROM jobs WHERE reservation = ? AND cost IS NOT NULL"
            if rows.execute(told, (reservation,)).fetchone() is not None:
                values["cost"] = None  # charged for an earlier job, which waits as well
            rows.execute(
                f"INSERT INTO jobs (sequence, {names}) SELECT "
                f"COALESCE(MAX(sequence), 0) + 1, {marks} FROM jobs",
                tuple(values.values()),
            )
            found: sqlite3.Row = rows.execute(
                "SELECT * FROM jobs WHERE id = ?", (values["id"],)
            ).fetchone()
        return found

    # ------------------------------------------------------------ afterwards

    def job(self, id: str, who: Identity) -> Job:
        """A job of one's own; of anybody's, for stewards."""
        rows = self.store.connection().execute("SELECT * FROM jobs WHERE id = ?", (id,))
        row = rows.fetchone()
        if row is None or not _sees(who, row):
            detail = "there is no such job of yours; look at the list of your questions"
            raise Refusal(status=404, title="No such job", detail=detail, kind="unknown-job")
        return self._job(row)

    def jobs(self, who: Identity) -> list[Job]:
        """One's own jobs, the newest first; all of them, for stewards."""
        mine = "" if who.role == "steward" else "WHERE principal = :principal"
        rows = self.store.connection().execute(
            f"SELECT * FROM jobs {mine} ORDER BY sequence DESC LIMIT 1000",
            {"principal": who.principal},
        )
        return [self._job(row) for row in rows.fetchall() if _sees(who, row)]

    def _job(self, row: sqlite3.Row) -> Job:
        state: State = row["state"]
        finished, due = state in FINISHED, None
        item = self._items.get(row["id"])
        if item is not None and not finished:
            line = self._lines[item.served.name]
            now = line.running  # once: the line goes on meanwhile
            state = "running" if now is not None and now[0] is item else "waiting"
            end = line.due(item)
            due = None if end is None else self._wall + end
        table = self.catalogue.tables.get(row["table_name"])
        return Job(
            id=row["id"],
            table=row["table_name"],
            principal=row["principal"],
            question=Question(**json.loads(row["question"])),
            submitted=row["submitted"],
            state=state,
            cost=None if row["cost"] is None else json.loads(row["cost"]),
            due=due,
            slot=None if table is None else table.slot,
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
        found = None
        if 0 < entry < 1 << 53:
            try:
                found = self.catalogue.ledger.entry(entry)
            except InvalidParameter:
                found = None
        if found is None or found.result is None or found.account not in seen.values():
            raise _no_answer("there is no such answer about a table that you may see")
        record = found.record or {}
        if record_problem(record) is not None:
            raise _no_answer(
                "what this entry holds is no answer of lastbit's; it stays charged; a steward can "
                "withdraw it: lastbit ledger withdraw",
                title="Unreadable entry",
            )
        if seen.get(record["table"]) != found.account:
            raise _no_answer("there is no such answer about a table that you may see")
        return dict(record)

    async def accept(self, table: str, who: Identity) -> None:
        """Let the data be asked about as they are now: a steward's decision, at a slot's end."""
        served, _ = await asyncio.to_thread(self._version, table, who)
        if "data" not in who.rights:
            self._refuse(403, "Not allowed", "a steward accepts data", "not-allowed")
        self._check_measured(served)
        item = _Acceptance(self, served, who.principal)
        self._lines[served.name].add(item)
        if not await asyncio.shield(item.done):
            detail = "the source could not be read in time; look whether it is there and whole"
            self._refuse(503, "Not accepted", detail, "engine")

    # ------------------------------------------------------------ what items need

    def finished(self, item: _Question, state: State, slots: int | None) -> None:
        """Write down what became of a job."""
        with self.store.transaction() as rows:
            rows.execute(
                "UPDATE jobs SET state = ?, started = ?, slots = ?, entry = ?, reason = ? "
                "WHERE id = ?",
                (state, self._wall + item.start, slots, item.entry, item.reason, item.id),
            )

    def known_slots(self, entry: int | None) -> int:
        """After how many slots an answer appeared when it was first given; 1 if that is unknown."""
        rows = self.store.connection().execute(
            "SELECT slots FROM jobs WHERE entry = ? AND slots IS NOT NULL ORDER BY sequence",
            (entry,),
        )
        found = rows.fetchone()
        return 1 if found is None or self.settings.strict else int(found[0])

    def worker(self, served: Served) -> Worker:
        """The process of a table."""
        return self._workers[served.name]

    def slots(self, served: Served) -> Slots:
        """Those of a table whose line is open."""
        return self._lines[served.name].slots

    def forget(self, item: _Question) -> None:
        """It is finished: the store says what became of it."""
        self._items.pop(item.id, None)
        _LOG.info("job %s: %s", item.id, "no answer" if item.entry is None else "answered")


def _no_answer(detail: str, title: str = "No such answer") -> Refusal:
    return Refusal(status=404, title=title, detail=detail, kind="unknown-answer")


class _Question:
    """A job in the line of its table."""

    def __init__(self, desk: Desk, served: Served, row: sqlite3.Row) -> None:
        self.id: str = row["id"]
        self.served = served
        self.submitted = _now()
        self.fixed: int | None = None
        self.start = 0.0
        self.entry: int | None = row["entry"]
        self.cost: dict[str, str] | None = None if row["cost"] is None else json.loads(row["cost"])
        self.reason: str | None = row["reason"]
        self._desk = desk
        self._reservation: str | None = row["reservation"]
        self.principal: str = row["principal"]
        self._question = json.loads(row["question"])
        self._data: str | None = None
        self._changed = False
        if self.entry is not None:
            self.fixed = desk.known_slots(self.entry)

    def taken(self) -> bool:
        """Its turn has come. A question that was answered meanwhile is as one on record."""
        if self.entry is None:
            closing = self._desk.catalogue.reading.closing(self._reservation)
            if closing is not None and closing.kind == "settled":
                self.entry = closing.sequence
                self.fixed = self._desk.known_slots(self.entry)
        return self.entry is not None or self._desk.worker(self.served).is_up

    async def process(self) -> None:
        await self._desk.worker(self.served).up()

    async def ready(self) -> bool:
        if self.entry is not None:
            return True
        self._data = self.served.data()
        request = {
            "do": "answer",
            "question": self._question,
            "reservation": self._reservation,
            "principal": self.principal,
        }
        return await self._desk.worker(self.served).ready(request)

    async def settle(self) -> bool:
        if self.entry is not None:
            return True
        found = await self._desk.worker(self.served).settle()
        self._changed = found.get("failed") == "changed"
        self.entry = found.get("entry")
        return self.entry is not None

    async def close(self) -> None:
        await self._desk.worker(self.served).renew()
        if self._changed:
            self.reason = _CHANGED
            self.served.note_changed(self._data, changed=True)
        else:
            self.reason = _NEVER
            await asyncio.to_thread(self._fail)

    def _fail(self) -> None:
        """Close the reservation, unless its answer is in the ledger after all."""
        reading = self._desk.catalogue.reading
        reading.again()
        closing = reading.closing(self._reservation)
        if closing is None:
            paid = reading.charge(self._reservation)
            if paid is None:  # the ledger was restored meanwhile
                return
            closing = reading.ledger.fail(paid, words=_NEVER, who=self.principal)
        if closing.kind == "settled":
            self.entry, self.reason = closing.sequence, None

    async def appear(self, start: float, k: int | None) -> None:
        self.start = start
        if k is not None and self._data is not None:
            self.served.note_changed(self._data, changed=False)
        words = late(self._desk.slots(self.served), k)
        if words is not None and self.fixed is None and not self._changed:
            _LOG.warning("a question about %s %s", self.served.name, words)
        state: State = "no answer" if self.entry is None else "answered"
        await asyncio.to_thread(self._desk.finished, self, state, k)
        self._desk.forget(self)


class _Acceptance:
    """A steward's wish to have the data asked about as they are."""

    fixed: int | None = None

    def __init__(self, desk: Desk, served: Served, principal: str) -> None:
        self.submitted = _now()
        self.done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._worker, self._served, self._principal = desk.worker(served), served, principal

    def taken(self) -> bool:
        return self._worker.is_up

    async def process(self) -> None:
        await self._worker.up()

    async def ready(self) -> bool:
        return await self._worker.ready({"do": "accept", "who": self._principal})

    async def settle(self) -> bool:
        return bool((await self._worker.settle()).get("accepted"))

    async def close(self) -> None:
        await self._worker.renew()

    async def appear(self, start: float, k: int | None) -> None:
        del start
        if k is not None:
            self._served.reading.again()
            self._served.note_changed(self._served.data(), changed=False)
        if not self.done.done():
            self.done.set_result(k is not None)


def _now() -> float:
    """The clock of event loops, and so of lines."""
    return time.monotonic()


def _canonical(question: Question) -> str:
    return json.dumps(question.to_json(), sort_keys=True)


def _sees(who: Identity, row: sqlite3.Row) -> bool:
    """Whether a job is theirs, or they are a steward; never of a table that a token leaves out."""
    mine = who.role == "steward" or row["principal"] == who.principal
    return mine and (who.tables is None or row["table_name"] in who.tables)
