"""Who waits for the reader: a process that parses statements and answers catalogue questions.

Law      a statement is read in a child that may take a few seconds and a fixed amount of memory;
         past these it is ended and the statement refused. A principal has one child at a time, so
         that nobody has them all
Checked  tests/serve/test_sqlport.py
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from lastbit.serve.child import Child, Gone, Message
from lastbit.serve.identity import Identity
from lastbit.serve.planner import PATIENCE_CHECKED, Children
from lastbit.serve.questions import Question
from lastbit.serve.sqlport.problems import SqlError
from lastbit.serve.tasks import PLANNING_MEMORY

_SHOWING = 30.0
"""Seconds for an answer of the ledger to be read."""
_MOST_KEPT = 200


class Reader:
    """A few children that read statements."""

    def __init__(self, cards: tuple[Path, ...], *, size: int = 2) -> None:
        memory = str(PLANNING_MEMORY)
        children = [Child("lastbit.serve.sqlport.reader", memory, cards=cards) for _ in range(size)]
        self._children = Children(children)
        self._columns: OrderedDict[str, list[list[Any]]] = OrderedDict()
        """By question: cards are the same for as long as the server runs."""

    async def start(self) -> None:
        """Start the children, so that the first client does not wait for them."""
        with suppress(Gone):  # the first statement says what is wrong
            await self._children.start()

    async def stop(self) -> None:
        await self._children.stop()

    async def read(
        self,
        sql: str,
        types: Sequence[int],
        values: Sequence[Any] | None,
        tables: Sequence[str],
        who: Identity,
    ) -> Message:
        """What a statement is: private, or of the catalogue, with what it gives."""
        request = {
            "do": "read",
            "sql": sql,
            "types": list(types),
            "values": None if values is None else list(values),
            "tables": list(tables),
            "user": who.principal,
        }
        return await self._asked(request, PATIENCE_CHECKED, who.principal)

    async def columns(
        self, table: str, questions: Sequence[Question], principal: str, *, intervals: bool
    ) -> list[list[Any]]:
        """The columns that the answer will have: to the first of these that can be asked."""
        asked = [question.to_json() for question in questions]
        request = {"do": "columns", "table": table, "questions": asked, "intervals": intervals}
        key = json.dumps(request, sort_keys=True)
        if key not in self._columns:  # clients ask twice: to be told of them, and when they pay
            found = await self._asked(request, PATIENCE_CHECKED, principal)
            self._columns[key] = found["columns"]
            if len(self._columns) > _MOST_KEPT:
                self._columns.popitem(last=False)
        return self._columns[key]

    async def shown(
        self, table: str, question: Question, entry: int, principal: str, *, intervals: bool
    ) -> Message:
        """Columns and rows of an answer on record, as its question shows them."""
        request = {"do": "show", "table": table, "question": question.to_json(), "entry": entry}
        return await self._asked({**request, "intervals": intervals}, _SHOWING, principal)

    async def _asked(self, request: Message, patience: float, principal: str) -> Message:
        # to the end, also if the client goes away: to end the child for it would cost more
        asked = self._children.asked(request, patience, principal)
        found = await asyncio.shield(asyncio.ensure_future(asked))
        if (wrong := found.get("wrong")) is not None:
            raise SqlError(**wrong)
        return found
