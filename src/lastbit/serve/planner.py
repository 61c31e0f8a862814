"""The children that plan: who waits for one, what they say, and previews that are kept.

Law      what a child says before it pauses costs nothing; a child that is gone then is too slow for
         the question, which is refused. One that is gone after is said to be: to ask the same again
         is not charged again. A principal has one child at a time
Checked  tests/serve/test_planning.py
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from lastbit import errors
from lastbit.serve.child import SETTLE, CardChanged, Child, Gone, Message
from lastbit.serve.problems import LATER, refusal_for
from lastbit.serve.questions import Question, Refusal
from lastbit.serve.tasks import MOST_PLANNING, task_child

PATIENCE, PATIENCE_CHECKED = 2.0, 6.0
"""Seconds for a question to be parsed and planned; to be rehearsed besides."""
_MOST_KEPT = 2000
_MOST_TURNS = 20


class Turns:
    """One after the other by name: nobody has all children, and no key is paid for twice."""

    def __init__(self) -> None:
        self._locks: dict[object, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def of(self, name: object, *, most: int | None = None) -> AsyncIterator[None]:
        """Wait for the turn of this name; refused if so many wait already."""
        lock, users = self._locks.get(name, (asyncio.Lock(), 0))
        if most is not None and users >= most:
            detail = f"{most} requests of yours are not finished; wait for them"
            raise Refusal(429, "Too many at once", detail, "too-many", {"retry-after": "1"})
        self._locks[name] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(name)
            if users > 1:
                self._locks[name] = lock, users - 1


class Children:
    """A few children of one kind, each for one request at a time."""

    def __init__(self, children: Sequence[Child]) -> None:
        self.every = children
        self._idle: asyncio.LifoQueue[Child] = asyncio.LifoQueue()
        self._turns = Turns()
        for child in self.every:
            self._idle.put_nowait(child)

    async def start(self) -> None:
        """Start all children, so that the first question does not wait for them."""
        await asyncio.gather(*(child.start() for child in self.every))

    async def stop(self) -> None:
        await asyncio.gather(*(child.end() for child in self.every))

    async def asked(self, request: Message, patience: float, principal: str) -> Message:
        """What a child says of a question before anything is charged, once it is their turn."""
        async with self.of(principal, most=_MOST_TURNS) as child:
            return await _ask_before_paying(child, request, patience)

    @asynccontextmanager
    async def of(self, principal: str, *, most: int | None = None) -> AsyncIterator[Child]:
        """A child, once it is their turn; refused if so many of theirs wait already."""
        async with self._turns.of(principal, most=most), self._taken() as child:
            yield child

    @asynccontextmanager
    async def _taken(self) -> AsyncIterator[Child]:
        child = await self._idle.get()
        try:
            with suppress(Gone):
                try:
                    await child.start()
                except CardChanged:
                    detail = "a card is not the one that the server was started with; nothing was "
                    detail += "charged; let a steward start the server again"
                    raise Refusal(503, "Not possible now", detail, "card-changed") from None
            yield child
        finally:
            self._idle.put_nowait(child)


class Planner:
    """A few children that plan; previews are kept, by the question and the data's version."""

    def __init__(self, cards: tuple[Path, ...], *, size: int = 2) -> None:
        self._children = Children([task_child("planning", *cards) for _ in range(size)])
        self._kept: OrderedDict[str, Message] = OrderedDict()

    async def start(self) -> None:
        """Start all children, so that the first question does not wait for them."""
        await self._children.start()

    async def stop(self) -> None:
        await self._children.stop()

    async def preview(
        self, table: str, question: Question, data: str | None, principal: str
    ) -> Message:
        request = {"do": "preview", "table": table, "question": question.to_json(), "data": data}
        key = json.dumps(request, sort_keys=True)
        found = self._kept.get(key)
        if found is None:
            found = await self._asked(request, PATIENCE, principal)
            self._kept[key] = found
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return found

    async def made_up(self, table: str, question: Question, principal: str) -> dict[str, Any]:
        request = {"do": "make up", "table": table, "question": question.to_json()}
        found = await self._asked(request, MOST_PLANNING, principal)
        record: dict[str, Any] = found["record"]
        return record

    async def _asked(self, request: Message, patience: float, principal: str) -> Message:
        # to the end, also if the client goes away: to end the child for it would cost more
        asked = self._children.asked(request, patience, principal)
        return await asyncio.shield(asyncio.ensure_future(asked))

    async def reserve(self, table: str, question: Question, principal: str) -> Message:
        """The reservation of a question, whose price is committed then; or what is recorded."""
        request = {"do": "reserve", "table": table, "question": question.to_json()}
        async with self._children.of(principal) as child:
            await _ask_before_paying(child, {**request, "principal": principal}, PATIENCE_CHECKED)
            try:
                return _refuse_errors(await child.ask(SETTLE))
            except Gone:
                detail = "the server was interrupted while the price was written down; ask the "
                detail += "same again: if it was charged, it is not charged again"
                title = "Not known whether it was charged"
                raise Refusal(503, title, detail, "interrupted") from None


async def _ask_before_paying(child: Child, request: Message, patience: float) -> Message:
    """What a child says before anything is charged."""
    try:
        return _refuse_errors(await child.ask(request, patience))
    except Gone:
        detail = "the question takes too long, or too much memory, to be planned; nothing was "
        detail += "charged; ask for less at once"
        raise Refusal(422, "Too complicated", detail, "too-complicated") from None


def _refuse_errors(message: Message) -> Message:
    """What a child says; an error of its becomes a refusal."""
    if "error" not in message:
        return message
    words: str = message["words"]
    if not words:  # an error that is not ours: a fault of the program
        raise Refusal(500, "A fault of the server", LATER, "fault")
    kind = getattr(errors, message["error"], errors.LastbitError)
    raise refusal_for(kind, words, message.get("said")) or Refusal(422, "Refused", words, "refused")
