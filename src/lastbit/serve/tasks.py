"""What children do: plan and pay in some of them, and read rows in one for each table.

    python -m lastbit.serve.tasks planning MEMORY CARD ...
    python -m lastbit.serve.tasks answering MEMORY CARD

Law      (planning)  Questions are parsed, planned and paid for in children that may take a few
         seconds of the processor and a fixed amount of memory; past these they are ended, the
         question is refused, and nothing is charged. A price is committed by a child that has
         planned and rehearsed the question before, and is not ended while it does so
         (answering)  A row is read only for a reservation that the ledger holds open. When the
         noise is drawn, or something failed, the child pauses until it is told to settle: so the
         time of the ledger's entry is its parent's choice. It says of a failure that there was one,
         and whether the source is not the accepted one; never why, and never a value
Theorem  ended at any moment, a child has shown nothing that is not settled
Proof    `release/paying.py`, (b) and (e): what it says before are the words above
Checked  tests/serve/test_planning.py, tests/serve/test_worker.py, tests/serve/test_killed.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Literal

from lastbit.errors import LastbitError, NotAllowed
from lastbit.ledger import Connections, Ledger
from lastbit.release import (
    Paid,
    answered,
    checked,
    in_own_format,
    made_up,
    made_up_answer,
    question_of_plan,
    released,
    reserved,
)
from lastbit.serve.catalogue import examples_of
from lastbit.serve.child import Child, Message, Parent, limited, seconds_left
from lastbit.serve.planning import (
    card_at,
    payable_plan,
    plan_of,
    plan_to_pay,
    previewed,
    words_of,
)
from lastbit.serve.questions import Question
from lastbit.tables import DataCard, Plan, fingerprint, sealed

PLANNING_MEMORY = 3 << 30
"""Bytes of address space of a child that plans: most of it is the libraries', and never touched."""
MOST_PLANNING = 20
"""Seconds of the processor for a question to be planned, or answered on made-up rows."""
_NICE = 5


def task_child(
    kind: Literal["planning", "answering"], *cards: Path, memory: int = PLANNING_MEMORY
) -> Child:
    """A child for tasks about these cards; it is not started yet."""
    return Child("lastbit.serve.tasks", kind, str(memory), cards=cards)


# ---------------------------------------------------------------- planning


def preview(card: DataCard, request: Message, pause: Callable[[], None]) -> Message:
    """What is said of a question before it is paid."""
    return previewed(_question(request), card, request["data"], _ledger(card))


def reserve(card: DataCard, request: Message, pause: Callable[[], None]) -> Message:
    """Plan and rehearse a question, then commit its price; or say what is recorded."""
    question, principal = _question(request), request["principal"]
    ledger = _ledger(card)
    data = ledger.accepted_data(card.account_name, card.name)
    plan = payable_plan(question, card, ledger, data)
    program = checked(plan)
    seconds_left(None)  # who pays is not ended
    pause()
    if card.users is not None and principal not in card.users:
        raise NotAllowed(
            f"the card of {card.name} does not let {principal} ask; nothing was charged; a "
            f"steward can add the name and restart"
        )
    paid = reserved(
        plan,
        books=ledger,
        who=principal,
        principal=principal,
        sql=words_of(question, card),
        fresh=question.fresh,
        program=program,
    )
    if paid.recorded is not None:
        place = paid.recorded["entry"]
        told = {"recorded": place["sequence"], "reservation": place["hash"]}
        return {**told, "part": paid.shown is not None}
    assert paid.entry is not None
    own = paid.entry.principal == principal  # what is open may be somebody else's, who pays
    return {"reservation": paid.entry.hash, "cost": plan.cost.to_json() if own else None}


def make_up(card: DataCard, request: Message, pause: Callable[[], None]) -> Message:
    """An answer on made-up rows."""
    question = _question(request)
    return {"record": made_up_answer(plan_of(question, card), card, sql=question.sql).record}


# ---------------------------------------------------------------- answering


def answer(card: DataCard, request: Message, pause: Callable[[], None]) -> Message:
    """Answer what is paid for."""
    question, ledger = _question(request), _ledger(card)
    open_ones = ledger.unanswered(card.account_name)
    paid = next((one for one in open_ones if one.hash == request["reservation"]), None)
    data = "" if paid is None or paid.fingerprint is None else paid.fingerprint
    plan = None if paid is None else plan_to_pay(question, card, ledger, data, {paid.question})
    # it is closed, or the card is another one now; of a reservation, others may write the plan
    if paid is None or plan is None or question_of_plan(plan, data) != paid.question:
        pause()
        return {"failed": "not to be answered"}
    try:
        found = answered(
            plan,
            Paid(entry=paid, sql=words_of(question, card)),
            books=ledger,
            who=request["principal"],
            before_settling=pause,
        )
    except NotAllowed:
        return {"failed": "changed"}
    except LastbitError:
        return {"failed": "failed"}
    return {"entry": found.record["entry"]["sequence"]}


def look(card: DataCard, request: Message, pause: Callable[[], None]) -> Message:
    """Whether the data are others than these."""
    data = _data(card)
    pause()
    return {"changed": data != request["data"]}


def accept(card: DataCard, request: Message, pause: Callable[[], None]) -> Message:
    """Let the data be asked about as they are."""
    data = _data(card)
    pause()
    if data is not None:
        _ledger(card).accept_data(card.account_name, card.name, data, who=request["principal"])
    return {"accepted": data is not None}


def measure(card: DataCard, request: Message, pause: Callable[[], None]) -> Message:
    """How many seconds the slowest of the card's examples takes, on made-up rows.

    They are read as `release/paying.py` reads rows: whether they are the accepted ones is looked at
    before and after.
    """
    slowest = 0.0
    with TemporaryDirectory(prefix="lastbit-") as folder:
        table = in_own_format(made_up(card, rows=request["rows"], folder=folder), card)
        for example in examples_of(card):
            plan = plan_of(example.question, table)
            assert isinstance(plan, Plan)
            begin = time.perf_counter()
            fingerprint(table)
            released(plan.query, plan.card, plan)
            fingerprint(table)
            slowest = max(slowest, time.perf_counter() - begin)
    return {"slowest": slowest}


def _question(request: Message) -> Question:
    return Question(**request["question"])


_CONNECTIONS = Connections()
"""Where a task leaves its connection to the ledger for the next one."""


def _ledger(card: DataCard) -> Ledger:
    return Ledger.existing(str(card.ledger), connections=_CONNECTIONS)


def _data(card: DataCard) -> str | None:
    """The fingerprint of the data as they are, as the ledger has it; None: not to be read."""
    with suppress(LastbitError):
        return sealed(lambda: _ledger(card).keyed(fingerprint(card)), words="not read")
    return None


# ---------------------------------------------------------------- the process

Task = Callable[[DataCard, Message, Callable[[], None]], Message]
_TASKS: Mapping[str, Mapping[str, Task]] = MappingProxyType(
    {
        "planning": {"preview": preview, "reserve": reserve, "make up": make_up},
        "answering": {"answer": answer, "look": look, "accept": accept, "measure": measure},
    }
)


def within_memory(card: DataCard, memory: int) -> DataCard:
    """The card, with the engine kept well below what the process may have: it spills to disk."""
    limits = card.engine_limits
    if card.source.engine != "duckdb" or limits.max_memory is not None:
        return card
    most = f"{max(memory // (2 * 10**6), 100)}MB"
    return replace(card, engine_limits=replace(limits, max_memory=most))


def main(kind: str, memory: int, paths: list[str]) -> None:
    """Run as a child."""
    parent, plans = Parent(), kind == "planning"
    found = [card_at(Path(path)) for path in paths]
    spark = any(card.source.engine == "spark" for card in found)  # Java reserves more than it uses
    limited(memory=None if spark else memory, nice=0 if plans else _NICE)
    cards = {card.name: card if plans else within_memory(card, memory) for card in found}
    first = found[0]  # what is slow the first time is done before a question comes, without a row
    if plans:
        count = Question(sql=f'SELECT COUNT(*) AS n FROM "{first.name}"', epsilon="1")
        with suppress(LastbitError):
            previewed(count, first, "")
    else:
        _ledger(first)  # raises if it is not there: then the child does not start
        for example in examples_of(first)[:1]:
            checked(plan_of(example.question, first))

    def do(request: Message) -> Message:
        if plans:
            seconds_left(MOST_PLANNING)
        return _TASKS[kind][request["do"]](cards[request["table"]], request, parent.pause)

    parent.serve(do)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
