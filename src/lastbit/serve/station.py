"""A table at work: its line, the process that answers its questions, and the one that looks.

A question in the line is a job of the store; so that no charge is lost, what becomes of it is
written after the ledger has it (`desk.py`). When answers appear is the line's law (`slots.py`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from lastbit.serve.catalogue import Catalogue, Served, measured_rows
from lastbit.serve.child import Child, Gone
from lastbit.serve.identity import Identity
from lastbit.serve.questions import Refusal, State
from lastbit.serve.slots import Line, either, late, until
from lastbit.serve.store import Jobs
from lastbit.serve.tasks import task_child

_LOG = logging.getLogger("lastbit.serve")
_SHARE, _LEAST_SHARE = 2, 4
"""Which part of a line one principal may have, and how many questions at least."""
_CALIBRATION = 900.0
_PAGE = 20.0
"""Seconds that a page may take."""
_LOOKING, _EVERY = 30.0, 180.0
"""Seconds from a look at the source until what it found is shown, and until the next one."""
_NEVER = (
    "no answer could be given in time; the price stays charged, and to ask the same again is "
    "charged again"
)
_CHANGED = (
    "the data changed since a steward accepted them; you paid, and the same question is free once "
    "they are back"
)


def now() -> float:
    """The clock of event loops, and so of lines."""
    return time.monotonic()


class Station:
    """Where the questions about one table are waited for."""

    def __init__(
        self, served: Served, catalogue: Catalogue, jobs: Jobs, stopped: asyncio.Event
    ) -> None:
        self.served, self.jobs = served, jobs
        self.line: Line | None = None
        """None: how long a slot must be is not known yet, and no question is taken."""
        self.questions: dict[str, QuestionItem] = {}
        """Those that are not finished, by their job."""
        self.entering: Counter[str] = Counter()
        """How many questions of a principal are being paid for."""
        self.wall = time.time() - now()  # the clock of lines is not set back
        self._catalogue, self._stopped, self._is_unmeasured = catalogue, stopped, False
        self._measured = asyncio.Event()  # or could not be
        self.worker, self._looker = self._new_child(), self._new_child()
        if served.slots is not None:
            self._open()

    def _new_child(self) -> Child:
        memory = self._catalogue.settings.worker_memory
        return task_child("answering", self.served.path, memory=memory)

    def _open(self) -> None:
        """Take questions: those that waited when the server ended come first."""
        assert self.served.slots is not None
        self.line = Line(self.served.slots)
        for row in self.jobs.waiting(self.served.name):
            self.add(row)

    def add(self, row: sqlite3.Row) -> None:
        assert self.line is not None
        item = self.questions[row["id"]] = QuestionItem(self, row)
        self.line.add(item)

    async def run(
        self, up: asyncio.Event, measuring: asyncio.Lock, fault: Callable[[Exception], None]
    ) -> None:
        """Answer until it is stopped, once the length of a slot is known."""
        if self.line is None:
            await either(self._measure(up, measuring, fault), self._stopped.wait())
        if self.line is not None:
            await asyncio.gather(self.line.run(self._stopped, fault), self._watch(self.line, up))

    async def end(self) -> None:
        await asyncio.gather(self.worker.end(), self._looker.end())

    async def _measure(
        self, up: asyncio.Event, measuring: asyncio.Lock, fault: Callable[[Exception], None]
    ) -> None:
        """Find how long a slot must be, on made-up rows, once the other children are up."""
        name, child = self.served.name, self._new_child()
        request = {"do": "measure", "table": name, "rows": measured_rows(self.served.card)}
        try:
            await up.wait()
            async with measuring:  # one by one: two at once would take longer
                _LOG.info("measuring, once, how long a slot of %s must be, on made-up rows", name)
                await child.start()
                slowest = (await child.ask(request, _CALIBRATION)).get("slowest")
            if slowest is None:  # an example failed
                raise Gone
            self.served = await asyncio.to_thread(self._catalogue.measured, self.served, slowest)
            self._open()
            _LOG.info("a slot of %s is %g s long", name, self.served.slot)
        except Gone:
            self._is_unmeasured = True
            _LOG.error("the slot of %s could not be measured; pass, say, --slot 2", name)
        except Exception as error:
            fault(error)
        finally:
            self._measured.set()
            await child.end()

    async def wait_for_slots(self) -> None:
        """Until the length of its slots is known, or cannot be, or a page has taken too long."""
        if self.line is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(_PAGE):
                    await either(self._measured.wait(), self._stopped.wait())

    # ------------------------------------------------------------ what is refused before it costs

    def check_measured(self) -> Line:
        """The line; refused while the length of its slots is not known."""
        if self.line is not None:
            return self.line
        what = "is being measured on made-up rows, once; nothing was charged; ask again soon"
        if self._is_unmeasured:
            what = "could not be measured; nothing was charged; let a steward pass --slot 2"
        detail = f"how long a slot of {self.served.name} must be {what}"
        raise Refusal(503, "Not yet", detail, "measuring", {"Retry-After": "5"})

    def check_open(self, who: Identity, more: int = 1) -> None:
        """Refuse, before anything is charged, what could not be answered soon."""
        waiting = len(self.check_measured()) + self.entering.total() + more - 1
        if self.served.data() is None or self.served.changed():
            detail = "the data are not those that a steward has accepted; nothing was charged; let "
            detail += "a steward look at them, and accept them"
            raise Refusal(409, "The data have changed", detail, "data-changed")
        mine = sum(item.principal == who.principal for item in self.questions.values())
        mine += self.entering[who.principal] + more - 1
        most = self._catalogue.settings.most_waiting
        if waiting >= most or mine >= max(most // _SHARE, _LEAST_SHARE):
            whose = "too many questions" if waiting >= most else "too many questions of yours"
            detail = f"{whose} wait for this table; nothing was charged; ask again later"
            later = {"Retry-After": str(math.ceil(self.served.slot or 1))}
            raise Refusal(503, "Too many questions wait", detail, "queue-full", later)

    def check_there(self) -> None:
        """Refuse, before anything is charged, a question about files that are not there."""
        if not self.served.is_there():
            detail = f"the data of {self.served.name} are not where its card says; nothing was "
            detail += "charged; tell a steward"
            raise Refusal(503, "The data are not there", detail, "data-missing")

    # ------------------------------------------------------------ whether the data are the same

    async def _watch(self, line: Line, up: asyncio.Event) -> None:
        """Look at the source from time to time, in a process of its own, off the table's line."""
        shown_after = max(_LOOKING, line.slots.length(None))
        await either(up.wait(), self._stopped.wait())
        while not self._stopped.is_set():
            begin = now()
            try:
                await self._look(begin + shown_after)
            except Exception as error:  # it is tried again, and questions ask the ledger themselves
                _LOG.error("a look at %s failed: %s", self.served.name, type(error).__name__)
            await either(until(begin + max(_EVERY, 2 * shown_after)), self._stopped.wait())

    async def _look(self, end: float) -> None:
        """One look, whose finding is shown at this time; none if it is not ready then."""
        served, data, found = self.served, self.served.data(), {}
        with suppress(TimeoutError):
            async with asyncio.timeout_at(end):
                await self._looker.up()
                if await self._looker.ready({"do": "look", "table": served.name, "data": data}):
                    found = await self._looker.settle()
        await self._looker.end()
        await either(until(end), self._stopped.wait())
        if "changed" in found and data is not None:
            served.note_changed(data, changed=bool(found["changed"]))


# ---------------------------------------------------------------- what waits in the line


class _Item:
    """Something that the process of a table does, on record for a principal."""

    def __init__(self, station: Station, principal: str) -> None:
        self.submitted, self.principal = now(), principal
        self.fixed: int | None = None
        self._station, self._worker = station, station.worker

    def taken(self) -> bool:
        return self._worker.is_up

    async def process(self) -> None:
        await self._worker.up()

    async def _ready(self, task: str, **more: Any) -> bool:
        about = {"do": task, "table": self._station.served.name, "principal": self.principal}
        return await self._worker.ready({**about, **more})

    async def close(self) -> None:
        await self._worker.renew()


class QuestionItem(_Item):
    """A job in the line of its table."""

    def __init__(self, station: Station, row: sqlite3.Row) -> None:
        super().__init__(station, row["principal"])
        self.id: str = row["id"]
        self._entry: int | None = row["entry"]
        self._reason: str | None = row["reason"]
        self._reservation: str | None = row["reservation"]
        self._question = json.loads(row["question"])
        self._data: str | None = None
        self._changed = False
        if self._entry is not None:
            self.fixed = self._known_slots()

    def _known_slots(self) -> int:
        """After how many slots an answer on record appeared; 1 if that is unknown."""
        strict = self._station.served.slots is not None and self._station.served.slots.strict
        return 1 if strict else self._station.jobs.slots_of(self._entry) or 1

    def taken(self) -> bool:
        """Its turn has come. A question that was answered meanwhile is as one on record."""
        if self._entry is None:
            closing = self._station.served.reading.closing(self._reservation)
            if closing is not None and closing.kind == "settled":
                self._entry = closing.sequence
                self.fixed = self._known_slots()
        return self._entry is not None or super().taken()

    async def ready(self) -> bool:
        if self._entry is not None:
            return True
        self._data = self._station.served.data()
        asked = {"question": self._question, "reservation": self._reservation}
        return await self._ready("answer", **asked)

    async def settle(self) -> bool:
        if self._entry is None:
            found = await self._worker.settle()
            self._changed = found.get("failed") == "changed"
            self._entry = found.get("entry")
        return self._entry is not None

    async def close(self) -> None:
        await super().close()
        if self._changed:
            self._reason = _CHANGED
            self._station.served.note_changed(self._data, changed=True)
        else:
            self._reason = _NEVER
            await asyncio.to_thread(self._fail)

    def _fail(self) -> None:
        """Close the reservation, unless its answer is in the ledger after all."""
        reading = self._station.served.reading
        reading.again()
        closing = reading.closing(self._reservation)
        if closing is None:
            paid = reading.charge(self._reservation)
            if paid is None:  # the ledger was restored meanwhile
                return
            closing = reading.ledger.fail(paid, words=_NEVER, who=self.principal)
        if closing.kind == "settled":
            self._entry, self._reason = closing.sequence, None

    async def appear(self, start: float, k: int | None) -> None:
        station = self._station
        if k is not None and self._data is not None:
            station.served.note_changed(self._data, changed=False)
        assert station.line is not None
        words = late(station.line.slots, k)
        if words is not None and self.fixed is None and not self._changed:
            _LOG.warning("a question about %s %s", station.served.name, words)
        state: State = "no answer" if self._entry is None else "answered"
        await asyncio.to_thread(
            station.jobs.finish,
            self.id,
            state=state,
            started=station.wall + start,
            slots=k,
            entry=self._entry,
            reason=self._reason,
        )
        del station.questions[self.id]
        _LOG.info("job %s: %s", self.id, state)


class AcceptanceItem(_Item):
    """A steward's wish to have the data asked about as they are."""

    def __init__(self, station: Station, principal: str) -> None:
        super().__init__(station, principal)
        self.done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def ready(self) -> bool:
        return await self._ready("accept")

    async def settle(self) -> bool:
        return bool((await self._worker.settle()).get("accepted"))

    async def appear(self, start: float, k: int | None) -> None:
        del start
        if k is not None:
            served = self._station.served
            served.reading.again()
            served.note_changed(served.data(), changed=False)
        if not self.done.done():
            self.done.set_result(k is not None)
