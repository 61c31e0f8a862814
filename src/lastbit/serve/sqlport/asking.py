"""What a statement becomes: a catalogue question, a preview, or a question that is paid for.

Theorem  (deny by construction)  What a SQL session is told of rows is an answer on record that the
         desk gave for a question that it took
Proof    a session reaches three things. The reader (`reader.py`) is a process that has cards, the
         ledger's public answers, and a database of its own without a row of theirs. The gate says
         who asks. The desk is the one of HTTP: it prices, takes and answers. Nothing here opens a
         source, and what the reader calls private goes to the desk or is refused; it is never tried
         as a catalogue question
Law      rights, rates, allowances, slots and the audit log are those of HTTP: "preview" for
         EXPLAIN, and to be told a question's columns, "ask" for SELECT, "browse" for the catalogue.
         A principal is looked up again at each statement. What is waited for ends at the end of a
         slot; to stop waiting ends nothing: what is paid for is answered and recorded, and free to
         ask again
Checked  tests/serve/test_sqlport.py
"""

from __future__ import annotations

import asyncio
import time
from asyncio import to_thread
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from lastbit.exact import exact_text
from lastbit.serve.app import MOST_REQUESTS_A_MINUTE
from lastbit.serve.desk import Desk
from lastbit.serve.identity import Gate, Identity
from lastbit.serve.questions import FINISHED, Job, Preview, Question, Refusal, not_allowed
from lastbit.serve.routes import Right
from lastbit.serve.safety import Rates
from lastbit.serve.schemas import question_of
from lastbit.serve.settings import Settings
from lastbit.serve.slots import either
from lastbit.serve.sqlport.messages import Column
from lastbit.serve.sqlport.options import Options
from lastbit.serve.sqlport.problems import SqlError, cancelled, no_price, other_columns
from lastbit.serve.sqlport.reading import Reader
from lastbit.serve.sqlport.values import TEXT

_POLL, _LONGEST_POLL = 0.02, 0.5
_BLOCK, _MOST_BLOCKS_A_MINUTE = 1024, 3_000
"""Of all long messages of a principal: 50 KiB a second, which take a tenth or two of it to read."""
AMOUNTS = ("epsilon", "delta", "rho")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a statement gives."""

    columns: tuple[Column, ...] | None = None
    """None: no rows, not even none."""
    rows: Sequence[Sequence[Any]] = ()
    tag: str = ""
    notices: tuple[tuple[str, str], ...] = ()
    """Words, and a detail."""
    statuses: tuple[tuple[str, str], ...] = field(default=())
    """Settings of which the client is told."""

    @property
    def cells(self) -> int:
        """How many values its rows have."""
        return len(self.rows) * len(self.columns or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A SELECT with its parameters: types as they were sent, and values, if there are any yet."""

    sql: str
    types: tuple[int, ...] = ()
    values: tuple[Any, ...] | None = None


class Asking:
    """The desk as one signed-in session sees it."""

    def __init__(
        self, desk: Desk, gate: Gate, reader: Reader, settings: Settings, rates: Rates
    ) -> None:
        self._desk, self._gate, self._reader = desk, gate, reader
        self._settings, self._rates = settings, rates
        self._who: Identity | None = None
        self.stopped = asyncio.Event()
        """Set when the client does not want to wait any more, or is gone."""

    # ------------------------------------------------------------ who asks

    async def sign_in(self, user: str, token: str, address: str) -> Identity:
        """Whom a token is of; refused alike whatever is wrong."""
        who = await to_thread(self._gate.identity_of_token, token)
        if who is None or who.principal != user:
            self._rates.take(f"guess {address}", 30)
            raise SqlError(
                "28P01",
                f'password authentication failed for user "{user[:64]}"',
                hint="the user is your name on this server, the password one of your tokens",
                fatal=True,
            )
        self._who = who
        return who

    def pace(self, size: int) -> None:
        """Count a message of so many bytes: to read long ones takes time that others wait for."""
        assert self._who is not None
        if blocks := size // _BLOCK:
            self._rates.take(f"text {self._who.principal}", _MOST_BLOCKS_A_MINUTE, blocks)

    async def _still(self, right: Right) -> Identity:
        """Who asks, as the ledger and the store have them now, if they may do this."""
        assert self._who is not None
        who = await to_thread(self._gate.identity_again, self._who)
        if who is None:
            detail = "the token has expired or was revoked, or the user has another role now"
            raise SqlError(
                "28000", "not signed in any more", detail, "make another token", fatal=True
            )
        if right not in who.rights:
            raise not_allowed("your role, or your token, does not allow this; ask a steward")
        return who

    async def check_still(self) -> None:
        """Refuse what is held of an answer to a token that has ended meanwhile."""
        await self._still("browse")

    async def _identity(self, right: Right, rate: str, most: int) -> Identity:
        """The same, once more within a minute."""
        who = await self._still(right)
        self._rates.take(f"{rate} {who.principal}", most)
        await to_thread(self._gate.seen, who)
        return who

    async def _browser(self) -> Identity:
        return await self._identity("browse", "other", MOST_REQUESTS_A_MINUTE)

    async def _previewer(self) -> Identity:
        return await self._identity("preview", "preview", self._settings.previews_a_minute)

    # ------------------------------------------------------------ what is free

    async def described(
        self, statement: Statement, options: Options
    ) -> tuple[list[int], tuple[Column, ...]]:
        """The types of a statement's parameters, and the columns of its result; nothing is paid."""
        who = await self._browser()
        read = await self._read(statement, who)
        types = [int(one) for one in read["parameters"]]
        if "private" not in read:
            return types, _columns(read["columns"])
        who = await self._previewer()
        return types, await self._columns(read["private"], options, who)

    async def _columns(
        self, private: Mapping[str, Any], options: Options, who: Identity
    ) -> tuple[Column, ...]:
        """The columns that the answer will have; without values there are several examples."""
        table, asked = private["table"], self._questions(private, options)
        intervals = options.has_intervals
        return _columns(
            await self._reader.columns(table, asked, who.principal, intervals=intervals)
        )

    async def parameter_types(self, statement: Statement) -> list[int]:
        """The types of a statement's parameters."""
        who = await self._browser()
        return [int(one) for one in (await self._read(statement, who))["parameters"]]

    async def explained(self, statement: Statement, options: Options) -> Result:
        """The preview of a question, in lines."""
        who = await self._browser()
        read = await self._read(statement, who)
        if "private" not in read:
            return _lines(["A question about the catalogue: free, of no row."])
        who = await self._previewer()
        table, (asked, *_) = read["private"]["table"], self._questions(read["private"], options)
        seen = await self._desk.preview(table, asked, who)
        return _lines(_preview_lines(seen))

    # ------------------------------------------------------------ what may cost

    async def answered(
        self,
        statement: Statement,
        options: Options,
        described: tuple[Column, ...] | None = None,
    ) -> Result:
        """The rows of a SELECT: of the catalogue at once; of a question at the end of its slot.

        `described` are the columns that the client was told of: others are not paid for.
        """
        who = await self._browser()
        read = await self._read(statement, who)
        if "private" not in read:
            return Result(columns=_columns(read["columns"]), rows=read["rows"])
        if statement.values is None:  # examples would be paid for in their place
            raise SqlError("08P01", "a question has no values for its parameters")
        who = await self._identity("ask", "ask", self._settings.questions_a_minute)
        table, (asked,) = read["private"]["table"], self._questions(read["private"], options)
        if described is not None and described != await self._columns(
            read["private"], options, who
        ):
            raise other_columns()
        if self.stopped.is_set():
            raise cancelled("nothing was charged")
        job = await self._desk.submit(table, asked, who)
        await to_thread(self._gate.audit, who, "asked", table)
        finished = await self._finished(job, who)
        if finished.entry is None:
            raise SqlError("58000", "no answer", finished.reason or "", "ask a steward")
        who = await self._still("browse")  # slots are long: a token may have ended meanwhile
        await to_thread(self._desk.answer, finished.entry, who)
        try:
            told = await self._reader.shown(
                table, asked, finished.entry, who.principal, intervals=options.has_intervals
            )
        except Refusal:
            problem = f"answer {finished.entry} is on record, and could not be shown in time"
            raise SqlError("58000", problem, hint="ask the same again: it is free") from None
        notice = await to_thread(self._notice, table, finished, who)
        return Result(columns=_columns(told["columns"]), rows=told["rows"], notices=(notice,))

    async def _finished(self, job: Job, who: Identity) -> Job:
        """The job once it has appeared, which is at the end of a slot."""
        while job.state not in FINISHED:
            left = _LONGEST_POLL if job.due is None else job.due - time.time() + _POLL
            await either(asyncio.sleep(min(max(left, _POLL), _LONGEST_POLL)), self.stopped.wait())
            if self.stopped.is_set():
                detail = "what was charged stays charged, and the answer will be on record"
                raise cancelled(detail, "ask the same again: it is free")
            job = await to_thread(self._desk.job, job.id, who)
        return job

    # ------------------------------------------------------------ small parts

    async def _read(self, statement: Statement, who: Identity) -> Mapping[str, Any]:
        seen = await to_thread(self._desk.catalogue.seen_by, who)
        names = [served.name for served in seen]
        return await self._reader.read(statement.sql, statement.types, statement.values, names, who)

    def _questions(self, private: Mapping[str, Any], options: Options) -> list[Question]:
        """The question at the price that is set; several of examples, where it has no values."""
        price = options.price
        if not price.keys() & {"epsilon", "rho", "within"}:
            raise no_price()
        most = self._settings.most_sql
        return [question_of({"sql": sql, **price}, most_sql=most) for sql in private["sql"]]

    def _notice(self, table: str, job: Job, who: Identity) -> tuple[str, str]:
        """What it cost, and what is left."""
        served = self._desk.table(table, who)
        mine = self._desk.catalogue.allowance(served, who)
        account = served.account()
        left: Any = account.remaining if mine is None else mine.left
        whose = f"the account {served.account_name}" if mine is None else "your allowance"
        amounts = {name: getattr(left, name, None) for name in AMOUNTS}
        rest = _amounts({name: str(one) for name, one in amounts.items() if one is not None})
        cost = "nothing: it is on record" if job.cost is None else _amounts(job.cost)
        remains = f"left of {whose}: {rest}" if rest else f"{whose} has no limit"
        return f"cost {cost or 'nothing'}; {remains}", f"answer {job.entry} of the ledger"


def _amounts(amounts: Mapping[str, str]) -> str:
    exact = {name: Fraction(one) for name, one in amounts.items()}
    return ", ".join(f"{name} = {exact_text(one, 16)}" for name, one in exact.items() if one)


def _columns(told: Sequence[Sequence[Any]]) -> tuple[Column, ...]:
    return tuple(Column(str(name), int(kind)) for name, kind in told)


def _lines(lines: Sequence[str]) -> Result:
    return Result(columns=(Column("QUERY PLAN", TEXT),), rows=[[line] for line in lines])


def _preview_lines(seen: Preview) -> list[str]:
    """A preview, as lines of text."""
    found = [seen.title]
    if seen.recorded is not None:
        found.append(f"On record as answer {seen.recorded}: to ask is free.")
    else:
        found.append(f"Cost: {_amounts(seen.cost) or 'nothing'}.")
    if seen.refused is not None:
        found.append(f"Refused now: {seen.refused}")
    elif seen.left is not None and seen.recorded is None:
        found.append(f"Left afterwards: {_amounts(seen.left) or 'nothing'}.")
    found.append(f"Guarantee: {seen.guarantee}")
    found += [f"{name}: {words}" for name, words in seen.facts]
    if seen.columns:
        widths = [max(map(len, column)) for column in zip(*seen.columns, strict=True)]
        found += [
            "  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip()
            for row in seen.columns
        ]
    return [line for words in found for line in words.splitlines() or [""]]
