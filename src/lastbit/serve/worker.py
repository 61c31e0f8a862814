"""The process that reads a table: it answers what is paid for, and says nothing of its own accord.

    python -m lastbit.serve.worker CARD MEMORY

Law      the worker reads a row only for a reservation that the ledger holds open. When the noise is
         drawn, or something failed, it says "ready", and no more until it is told to settle: so the
         time of the ledger's entry is its parent's choice. It says of a failure that there was one,
         and whether the source is not the accepted one; never why, and never a value
Theorem  ended at any moment, it has shown nothing that is not settled
Proof    `release/paying.py`, (b) and (e): what it says before are the words above
Checked  tests/serve/test_worker.py, tests/serve/test_killed.py
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from lastbit.errors import LastbitError, NotAllowed
from lastbit.ledger import Ledger
from lastbit.release import (
    Paid,
    answered,
    checked,
    in_own_format,
    made_up,
    question_of_plan,
    released,
)
from lastbit.serve.catalogue import examples_of
from lastbit.serve.child import Child, Gone, Message, Parent, Unchanged, limited
from lastbit.serve.planning import card_at, plan_of
from lastbit.serve.questions import Question
from lastbit.tables import DataCard, fingerprint, sealed

_LOG = logging.getLogger("lastbit.serve")
_NICE, _MOST_PAUSE = 5, 60
_SETTLING = 120.0
"""Seconds after which a worker that was told to settle is taken to be lost."""


class Worker:
    """The parent's side of the process of one table."""

    def __init__(self, card: Path, *, memory: int) -> None:
        self._child = Child("lastbit.serve.worker", str(card), str(memory))
        self._card, self._name = Unchanged((card,)), card.name
        self._start: asyncio.Task[None] | None = None
        self.failures = 0
        """How often in a row it could not be started."""

    @property
    def pid(self) -> int | None:
        """Of the process, while there is one."""
        return self._child.pid

    @property
    def is_up(self) -> bool:
        """Whether it can be asked."""
        return self._child.is_up

    async def up(self) -> None:
        """Wait until it can be asked: who stops waiting does not stop its start."""
        if self._start is None or self._start.done():
            self._start = asyncio.create_task(self._started())
        await asyncio.shield(self._start)

    async def _started(self) -> None:
        while not self._child.is_up:
            try:
                if not self._card.hold:  # it would answer by another card than was paid for
                    raise Gone
                await self._child.start()
                self.failures = 0
            except Gone:
                self.failures += 1
                times = f"{self.failures} times in a row"
                _LOG.error("the process that reads %s does not start, %s", self._name, times)
                await asyncio.sleep(min(2**self.failures, _MOST_PAUSE))

    async def ready(self, request: Message) -> bool:
        """Let it work; True when it waits to be told to settle, False if it failed or has ended."""
        try:
            await self._child.say(request)
            return "ready" in await self._child.heard()
        except Gone:
            return False

    async def settle(self) -> Message:
        """Let it finish; what became of it."""
        try:
            await self._child.say({"do": "settle"})
            return await self._child.heard(_SETTLING)
        except Gone:
            return {"failed": "failed"}

    async def renew(self) -> None:
        """End it, whatever it does; another one is on its way then."""
        await self._child.end()
        self._start = asyncio.create_task(self._started())

    async def end(self) -> None:
        """End it for good."""
        if self._start is not None:
            self._start.cancel()
        await self._child.end()


# ---------------------------------------------------------------- the process


class _Working:
    def __init__(self, card: DataCard, parent: Parent) -> None:
        self.card, self.parent = card, parent
        self.ledger = Ledger.existing(str(card.ledger))

    def answer(self, request: Message) -> Message:
        match request["do"]:
            case "answer":
                return self._answered(request)
            case "measure":
                return {"slowest": slowest(self.card, rows=request["rows"])}
            case "look":
                data = self._data()
                self.wait()
                return {"changed": data != request["data"]}
            case _:
                data = self._data()
                self.wait()
                if data is not None:
                    account = self.card.account_name
                    self.ledger.accept_data(account, self.card.name, data, who=request["who"])
                return {"accepted": data is not None}

    def wait(self) -> None:
        """Say that nothing is left to do but to write it down, and wait to be told to."""
        self.parent.say({"ready": True})
        self.parent.heard()

    def _answered(self, request: Message) -> Message:
        card, ledger = self.card, self.ledger
        question = Question(**request["question"])
        plan = plan_of(question, card)
        open_ones = ledger.unanswered(card.account_name)
        paid = next((one for one in open_ones if one.hash == request["reservation"]), None)
        # it is closed, or the card is another one now; of a reservation, others may write the plan
        if paid is None or question_of_plan(plan, paid.fingerprint) != paid.question:
            self.wait()
            return {"failed": "not to be answered"}
        try:
            found = answered(
                plan,
                Paid(entry=paid, sql=question.sql),
                books=ledger,
                who=request["principal"],
                before_settling=self.wait,
            )
        except NotAllowed:
            return {"failed": "changed"}
        except LastbitError:
            return {"failed": "failed"}
        return {"entry": found.record["entry"]["sequence"]}

    def _data(self) -> str | None:
        """The fingerprint of the data as they are, as the ledger has it; None: not to be read."""
        with suppress(LastbitError):
            return sealed(lambda: self.ledger.keyed(fingerprint(self.card)), words="not read")
        return None


def slowest(card: DataCard, *, rows: int) -> float:
    """How many seconds the slowest of the card's examples takes, on this many made-up rows.

    They are read as `release/paying.py` reads rows: whether they are the accepted ones is looked at
    before and after.
    """
    found = 0.0
    with TemporaryDirectory(prefix="lastbit-") as folder:
        table = in_own_format(made_up(card, rows=rows, folder=folder), card)
        for example in examples_of(card):
            plan = plan_of(example.question, table)
            begin = time.perf_counter()
            fingerprint(table)
            released(plan.query, table, plan)
            fingerprint(table)
            found = max(found, time.perf_counter() - begin)
    return found


def within_memory(card: DataCard, memory: int) -> DataCard:
    """The card, with the engine kept well below what the process may have: it spills to disk."""
    limits = card.engine_limits
    if card.source.engine != "duckdb" or limits.max_memory is not None:
        return card
    most = f"{max(memory // (2 * 10**6), 100)}MB"
    return replace(card, engine_limits=replace(limits, max_memory=most))


def main(arguments: list[str]) -> None:
    """Run as the process of a table."""
    path, memory = arguments
    card = within_memory(card_at(Path(path)), int(memory))
    # Java reserves more address space than it uses: Spark's own settings limit it
    limited(memory=None if card.source.engine == "spark" else int(memory), nice=_NICE)
    parent = Parent()
    for example in examples_of(card)[:1]:  # what is slow the first time is done without a row
        checked(plan_of(example.question, card))
    parent.serve(_Working(card, parent).answer)


if __name__ == "__main__":
    main(sys.argv[1:])
