"""Previews, and prices: questions are parsed, planned and paid for in a child process.

Law      a preview is a function of the question, the card, the ledger and public tables. Parsing
         and planning happen in a child that may take a few seconds of time and a fixed amount of
         memory; past these it is ended, the question is refused, and nothing is charged. A price is
         committed by a child that has planned and rehearsed the question before, and is not ended
         while it does so. A price is at least a 10,000th of the account's budget, so that the time
         at which answers appear (`slots.py`) tells only so often. Children have the cards that the
         server was started with: once a card's file is another one, no child is started
Theorem  what is said of a question before its reservation, and when, does not depend on a row
Proof    children read cards, ledgers and public tables (`release/paying.py`, (d))
Differs  tables on servers: names and types of their columns are looked up, never a row
Checked  tests/serve/test_planning.py
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lastbit.errors import InvalidParameter, LastbitError, NotAllowed
from lastbit.exact import exact_text
from lastbit.ledger import Ledger, Session
from lastbit.release import (
    checked,
    made_up_answer,
    planned_within,
    price_rows,
    question_of_plan,
    reserved,
)
from lastbit.report import plan_words
from lastbit.serve.child import Child, Gone, Message, Parent, Unchanged, limited, seconds_left
from lastbit.serve.questions import LATER, Question, Refusal, of_place
from lastbit.tables import DataCard, Plan, parsed, planned, read_card

PATIENCE, PATIENCE_CHECKED, PATIENCE_MADE_UP = 2.0, 6.0, 20.0
"""Seconds for a question to be parsed and planned; to be rehearsed besides; to be answered on
made-up rows."""
MEMORY = 3 << 30
"""Bytes of address space of a child that plans: most of it is the libraries', and never touched."""
_MOST_KEPT = 2000
_LEAST_SHARE = 10_000
_MOST_TURNS = 20


def plan_of(question: Question, card: DataCard) -> Plan:
    """The plan of a question about this table."""
    query = parsed(question.sql, card)
    asked: dict[str, Any] = {
        "epsilon": question.epsilon,
        "delta": question.delta,
        "rho": question.rho,
        "weights": question.weights,
    }
    if question.within is not None:
        return planned_within(query, card, question.within, **asked)
    return planned(query, card, **asked)


def previewed(question: Question, card: DataCard, data: str | None) -> Message:
    """What is said of a plan, but for what the ledger says."""
    plan = plan_of(question, card)
    _check_least(plan)
    words = plan_words(plan)
    weights: Any = question.weights
    prices = price_rows(plan.query, card, delta=question.delta, weights=weights)
    return {
        "title": words.title,
        "cost": plan.cost.to_json(),
        "gaussian": plan.gaussian_noise,
        "guarantee": plan.guarantee,
        "facts": words.facts,
        "columns": words.table,
        "prices": prices,
        "question": None if data is None else question_of_plan(plan, data),
    }


def _check_least(plan: Plan) -> None:
    """Refuse prices so small that a budget would buy questions without end."""
    budget = plan.card.budget
    if budget is None:
        return
    whole = {"epsilon": budget.epsilon, "rho": budget.rho or budget.epsilon**2 / 100}
    for name, most in whole.items():
        least = most / _LEAST_SHARE
        if 0 < getattr(plan.cost, name) < least:
            problem = f"is less than a {_LEAST_SHARE:,}th of the budget of {plan.card.account_name}"
            remedy = f"ask for {name} = {exact_text(least, 16)} or more"
            raise InvalidParameter("price", problem=problem, remedy=remedy)


# ---------------------------------------------------------------- the child


class _Planning:
    """The child: its cards, and the question that is about to be paid for."""

    def __init__(self, cards: Mapping[str, DataCard]) -> None:
        self.cards = cards
        self.planned: tuple[Plan, Question] | None = None
        self.session = Session()

    def answer(self, request: Message) -> Message:
        seconds_left(None if request["do"] == "reserve" else int(PATIENCE_MADE_UP))
        match request["do"]:
            case "preview":
                return previewed(*self._asked(request), request["data"])
            case "plan":
                question, card = self._asked(request)
                plan = plan_of(question, card)
                _check_least(plan)
                checked(plan)
                self.planned = plan, question
                return {"cost": plan.cost.to_json()}
            case "reserve":
                return self._reserved(request["principal"])
            case _:
                question, card = self._asked(request)
                plan = plan_of(question, card)
                return {"record": made_up_answer(plan, card, sql=question.sql).record}

    def _asked(self, request: Message) -> tuple[Question, DataCard]:
        return Question(**request["question"]), self.cards[request["table"]]

    def _reserved(self, principal: str) -> Message:
        assert self.planned is not None
        plan, question = self.planned
        self.planned = None
        users = plan.card.users
        if users is not None and principal not in users:
            raise NotAllowed(
                f"the card of {plan.card.name} does not name {principal} among its users; nothing "
                "was charged; let a steward add the name to the card, and start the server again"
            )
        paid = reserved(
            plan,
            books=Ledger.existing(str(plan.card.ledger), session=self.session),
            who=principal,
            principal=principal,
            sql=question.sql,
            fresh=question.fresh,
        )
        if paid.recorded is not None:
            place = paid.recorded["entry"]
            told = {"recorded": place["sequence"], "reservation": place["hash"]}
            return {**told, "part": paid.shown is not None}
        assert paid.entry is not None
        own = paid.entry.principal == principal  # what is open may be somebody else's, who pays
        return {"reservation": paid.entry.hash, "cost": plan.cost.to_json() if own else None}


def main(cards: list[str]) -> None:
    """Run as the child: `python -m lastbit.serve.planning CARD ...`."""
    parent = Parent()
    read = [card_at(Path(path)) for path in cards]
    spark = any(card.source.engine == "spark" for card in read)  # Java reserves more than it uses
    limited(memory=None if spark else MEMORY)
    with suppress(LastbitError):  # what is slow the first time is done before the first question
        previewed(
            Question(sql=f'SELECT COUNT(*) AS n FROM "{read[0].name}"', epsilon="1"), read[0], ""
        )
    parent.serve(_Planning({card.name: card for card in read}).answer)


def card_at(path: Path) -> DataCard:
    """A card as the server takes it: only data that a steward has accepted are asked about."""
    return replace(read_card(path), accepted_data=True)


# ---------------------------------------------------------------- its parent


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
            later = {"retry-after": "1"}
            raise Refusal(
                status=429, title="Too many at once", detail=detail, kind="too-many", headers=later
            )
        self._locks[name] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._locks.pop(name)
            if users > 1:
                self._locks[name] = lock, users - 1


class Planner:
    """A few children that plan; previews are kept, by the question and the data's version.

    A principal has one of them at a time.
    """

    def __init__(self, cards: tuple[Path, ...], *, size: int = 2) -> None:
        self._children = [
            Child("lastbit.serve.planning", *(str(path) for path in cards)) for _ in range(size)
        ]
        self._idle: asyncio.LifoQueue[Child] = asyncio.LifoQueue()
        self._kept: OrderedDict[str, Message] = OrderedDict()
        self._cards, self._turns = Unchanged(cards), Turns()
        for child in self._children:
            self._idle.put_nowait(child)

    async def start(self) -> None:
        """Start all children, so that the first question does not wait for them."""
        await asyncio.gather(*(child.start() for child in self._children))

    async def stop(self) -> None:
        """End them."""
        await asyncio.gather(*(child.end() for child in self._children))

    async def preview(
        self, table: str, question: Question, data: str | None, principal: str
    ) -> Message:
        """What `previewed` says."""
        request = {"do": "preview", "table": table, "question": question.to_json(), "data": data}
        key = json.dumps(request, sort_keys=True)
        found = self._kept.get(key)
        if found is None:
            found = await self._asked(request, PATIENCE, principal)
            self._kept[key] = found
            if len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return found

    async def reserve(self, table: str, question: Question, principal: str) -> Message:
        """The reservation of a question, whose price is committed then; or what is recorded."""
        request = {"do": "plan", "table": table, "question": question.to_json()}
        async with self._turns.of(principal), self._child() as child:
            _told(await _asked(child, request, PATIENCE_CHECKED))
            try:
                await child.say({"do": "reserve", "principal": principal})
                return _told(await child.heard())
            except Gone:
                raise Refusal(
                    status=503,
                    title="Not known whether it was charged",
                    detail="the server was interrupted while the price was written down; ask the "
                    "same again: if it was charged, it is not charged again",
                    kind="interrupted",
                ) from None

    async def made_up(self, table: str, question: Question, principal: str) -> dict[str, Any]:
        """The record of an answer on made-up rows."""
        request = {"do": "made up", "table": table, "question": question.to_json()}
        found = await self._asked(request, PATIENCE_MADE_UP, principal)
        record: dict[str, Any] = found["record"]
        return record

    async def _asked(self, request: Message, patience: float, principal: str) -> Message:
        async def asked() -> Message:
            turn = self._turns.of(principal, most=_MOST_TURNS)
            async with turn, self._child() as child:
                return _told(await _asked(child, request, patience))

        # to the end, also if the client goes away: to end the child for it would cost more
        return await asyncio.shield(asyncio.ensure_future(asked()))

    @asynccontextmanager
    async def _child(self) -> AsyncIterator[Child]:
        child = await self._idle.get()
        try:
            if not child.is_up and not self._cards.hold:
                raise Refusal(
                    status=503,
                    title="Not possible now",
                    detail="a card is not the one that the server was started with; nothing was "
                    "charged; let a steward start the server again",
                    kind="card-changed",
                )
            with suppress(Gone):
                await child.start()
            yield child
        finally:
            self._idle.put_nowait(child)


async def _asked(child: Child, request: Message, patience: float) -> Message:
    try:
        await child.say(request)
        return await child.heard(patience)
    except Gone:
        raise Refusal(
            status=422,
            title="Too complicated",
            detail="the question takes too long, or too much memory, to be planned; nothing was "
            "charged; ask for less at once",
            kind="too-complicated",
        ) from None


_KINDS: Mapping[str, tuple[int, str, str]] = MappingProxyType(
    {
        "BudgetExceeded": (403, "Over the budget", "over-budget"),
        "NotAllowed": (403, "Not allowed", "not-allowed"),
        "EngineFailed": (503, "Not possible now", "engine"),
        "LedgerDamaged": (503, "Not possible now", "ledger"),
    }
)


def _told(message: Message) -> Message:
    """What a child says; an error of its becomes a refusal."""
    if "error" not in message:
        return message
    error, words = message["error"], message["words"]
    if error == "InvalidParameter" and (place := of_place(words)) is not None:
        error = place.__name__
    status, title, kind = _KINDS.get(error, (422, "Refused", "refused"))
    if not words:  # an error that is not ours: a fault of the program
        status, title, kind = 500, "A fault of the server", "fault"
    detail = words if status < 500 else LATER
    raise Refusal(status=status, title=title, detail=detail, kind=kind)


if __name__ == "__main__":
    main(sys.argv[1:])
