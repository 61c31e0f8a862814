"""One connection: from its first packet to its last, as PostgreSQL's protocol has it.

Law      a session goes first packet -> (TLS) -> password -> ready, and takes one message after the
         other. It answers each as the protocol says: after an error in the extended protocol all is
         skipped up to the next Sync; each Sync and each simple text ends with one ReadyForQuery,
         which says whether a transaction is open (T), failed (E), or none (I)
Theorem  (bounded)  A session keeps at most `_MOST_STATEMENTS` statements and as many portals, of
         `_MOST_KEPT` bytes together with names, types and values, `_MOST_HELD` results that are
         fetched in part, of `_MOST_CELLS` values and one result more, the settings of `options.py`,
         and a message of at most `MOST_BYTES`. All sessions of a principal hold
         `_MOST_OF_PRINCIPAL` values, and the results besides that they waited for then
Law      between two messages, two statements of a text, and a few rows, others have their turn, and
         what is written is taken by the client. A text has at most `_MOST_TEXT` letters and
         `_MOST_IN_TEXT` statements; long messages are counted by principal (`Asking.pace`), and so
         are short ones that name a long statement
Theorem  (hostile)  Whatever bytes come, a session ends or goes on; it charges for a SELECT with a
         price, asked by a principal who has proved to be it, and for nothing else
Proof    all that can raise is inside of `_guarded`, or ends the session. The desk is reached by
         `Asking.answered` alone where it charges: `_result` and DECLARE call it, for messages that
         are taken after `_sign_in` has returned
Differs  transactions are accepted and mean nothing: what is paid for stays paid, whatever ROLLBACK
Source   PostgreSQL 17, "Frontend/Backend Protocol", "Message Flow"
Checked  tests/serve/test_sqlport_session.py, tests/serve/test_sqlport_fuzz.py
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from lastbit.serve.questions import Refusal
from lastbit.serve.sqlport import messages as wire
from lastbit.serve.sqlport.asking import Asking, Result, Statement
from lastbit.serve.sqlport.commands import Cursors, command_of, run_command, select_in, tag_of
from lastbit.serve.sqlport.lexing import has_parameters, statements
from lastbit.serve.sqlport.messages import MOST_BEFORE, MOST_BYTES, BadText, Column, Malformed
from lastbit.serve.sqlport.options import Options, WrongOption, from_startup
from lastbit.serve.sqlport.problems import SqlError, cancelled, other_columns, sql_error_of
from lastbit.serve.sqlport.values import SIZES, encoded, parameter

DATABASE = "lastbit"
LOGIN_SECONDS, IDLE_SECONDS = 10.0, 3600.0
_MOST_STATEMENTS, _MOST_KEPT = 500, 1 << 20
_MOST_HELD, _MOST_CELLS, _CELLS_AT_ONCE = 10, 100_000, 2_000
_MOST_OF_PRINCIPAL = 500_000
"""Values that all sessions of one principal hold, about 60 bytes each."""
_MOST_TEXT, _MOST_IN_TEXT = 1 << 16, 100
_MOST_PARAMETERS = 1000
_LOG = logging.getLogger("lastbit.serve")


class Gone(Exception):
    """The client is not there any more, or took too long."""


class Link(Protocol):
    """The bytes of a connection; `wires.py` has those of sockets, tests have others."""

    address: str
    is_local: bool
    """Whether it comes from this machine: then a password needs no TLS."""
    is_secret: bool
    """Whether TLS is spoken."""

    async def first(self, most: int) -> bytes:
        """What follows the length of a first packet."""

    async def message(self, most: int) -> tuple[bytes, bytes]:
        """The tag of the next message, and what follows its length."""

    def send(self, part: bytes) -> None: ...
    async def drain(self) -> None: ...
    async def secure(self) -> bool:
        """Answer that TLS is spoken, and speak it; False: it is not."""


class Door(Protocol):
    """The port as a session sees it: who may come in, and who cancels whom."""

    epsilon: str | None

    def asking(self) -> Asking:
        """What a new session asks with."""

    def enter(self, session: Session, principal: str) -> tuple[int, bytes]:
        """Take a session in; its number and key for cancelling. Refused where there are many."""

    def cells_of(self, principal: str) -> int:
        """How many values the sessions of a principal hold."""

    def leave(self, session: Session) -> None: ...
    def cancel(self, process: int, secret: bytes) -> None: ...


@dataclass(slots=True)
class Prepared:
    """A statement that was parsed: its text, and the types of its parameters."""

    sql: str
    types: tuple[int, ...]
    full: tuple[int, ...] | None = None
    """The types with those that were not sent, once they are known."""
    columns: tuple[Column, ...] | None = None
    """What was told of its result, if anything."""

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return len(self.sql) + 40 * len(self.types)


@dataclass(slots=True)
class Portal:
    """A statement with its parameters; its result, once it was run, and how much of it was sent."""

    sql: str
    types: tuple[int, ...] = ()
    values: tuple[object, ...] = ()
    formats: tuple[int, ...] = ()
    columns: tuple[Column, ...] | None = None
    """What was told of it before it was run."""
    result: Result | None = None
    sent: int = field(default=0)

    @property
    def size(self) -> int:
        """About how many bytes it takes; its statement and types are those of what is prepared."""
        values = (len(value) if isinstance(value, str) else 16 for value in self.values)
        return len(self.sql) + 40 * len(self.values) + sum(values) + 8 * len(self.formats)


class Session:
    """A connection of one client."""

    def __init__(self, link: Link, door: Door) -> None:
        self._link, self._door = link, door
        self.asking = door.asking()
        self.principal = ""
        self.status: Literal["I", "T", "E"] = "I"
        self.options = Options(epsilon=door.epsilon)
        self.prepared: dict[str, Prepared] = {}
        self.portals: dict[str, Portal] = {}
        self.cursors = Cursors()
        self._skipping, self._gone, self._is_idle = False, False, True

    # ------------------------------------------------------------ from start to end

    async def run(self) -> None:
        """Serve it until it ends."""
        try:
            if await self._begin():
                while await self._next():
                    pass
        except Gone:
            pass
        except Malformed as error:
            await self._bye(SqlError("08P01", f"protocol violation: {error}", fatal=True))
        except Exception as error:
            wrong = sql_error_of(error)
            wrong.fatal = True
            await self._bye(wrong)
        finally:
            self._door.leave(self)

    async def end(self, wrong: SqlError) -> None:
        """Tell the client that it ends, whatever it does."""
        self.asking.stopped.set()
        await self._bye(wrong)

    def cancel(self) -> None:
        """Let what is waited for not be waited for any more."""
        self.asking.stopped.set()

    def hung_up(self) -> None:
        """The client is gone: what it sent and was not begun is not begun any more."""
        self._gone = True
        self.asking.stopped.set()

    async def _bye(self, wrong: SqlError) -> None:
        self._link.send(wrong.packed())
        with suppress(Gone):
            await self._link.drain()

    async def _begin(self) -> bool:
        """Everything up to the first ReadyForQuery; False: it was a cancel, or nothing."""
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                startup = await self._startup()
                if startup is None:
                    return False
                await self._sign_in(startup)
        except TimeoutError:
            raise Gone from None
        return True

    async def _startup(self) -> wire.Startup | None:
        asked: set[str] = set()
        while True:
            first = wire.first_message(await self._link.first(wire.MOST_FIRST))
            match first:
                case wire.Startup():
                    return first
                case wire.Cancel(process, secret):
                    self._door.cancel(process, secret)
                    return None
                case wire.Encrypt(how):
                    if how in asked:
                        raise Malformed("encryption is asked for twice")
                    asked.add(how)
                    if how == "gss" or not await self._link.secure():
                        self._link.send(b"N")
                    await self._link.drain()

    async def _sign_in(self, startup: wire.Startup) -> None:
        told = dict(startup.parameters)
        user, database = told.pop("user", ""), told.pop("database", "")
        if told.pop("replication", "off") not in ("off", "false", "0", "no"):
            raise SqlError("0A000", "replication is not served", fatal=True)
        extensions = [name for name in told if name.startswith("_pq_.")]
        if startup.minor or extensions:
            self._link.send(wire.negotiated(extensions))
        if not (self._link.is_secret or self._link.is_local):
            hint = "connect with sslmode=require, or verify-full"
            raise SqlError("28000", "a password is taken over TLS alone", hint=hint, fatal=True)
        self._link.send(wire.authentication(3))
        await self._link.drain()
        tag, body = await self._link.message(MOST_BEFORE)
        if tag != b"p":
            raise Malformed("a password is expected")
        message = wire.later_message(tag, body)
        assert isinstance(message, wire.Password)
        who = await self.asking.sign_in(user, message.secret, self._link.address)
        if database not in ("", DATABASE, user):
            problem = f'database "{database[:60]}" does not exist'
            raise SqlError("3D000", problem, hint=f"connect to {DATABASE}", fatal=True)
        self.principal = who.principal
        self.options = Options(user=who.principal, epsilon=self._door.epsilon)
        self._set_from(told)
        process, secret = self._door.enter(self, who.principal)
        self._link.send(wire.authentication(0))
        for name, value in self.options.told():
            self._link.send(wire.parameter_status(name, value))
        self._link.send(wire.key_data(process, secret))
        await self._ready()

    def _set_from(self, told: dict[str, str]) -> None:
        """Settings of the first packet; those that are not known are left out, as poolers do."""
        for name, value in from_startup(told.pop("options", "")):
            self.options.set(name, value)
        for name, value in told.items():
            with suppress(WrongOption):
                self.options.set(name, value)
        self.options.begin()

    # ------------------------------------------------------------ message by message

    async def _next(self) -> bool:
        """Read one message and answer it; False: it was the last one."""
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                tag, body = await self._link.message(MOST_BYTES)
        except TimeoutError:
            words = "terminating connection due to idle-session timeout"
            raise SqlError("57P05", words, fatal=True) from None
        await asyncio.sleep(0)  # others have their turn, however much is there already
        if self._gone:
            raise Gone
        if self._is_idle:  # what was cancelled later is of the messages up to the next Sync
            self.asking.stopped.clear()
            self._is_idle = False
        try:
            message = wire.later_message(tag, body)
        except BadText as error:
            await self._wrong(error, simple=tag == b"Q")
            return True
        match message:
            case wire.Plain("terminate"):
                return False
            case wire.Plain("sync"):
                self._skipping = False
                self._forget_unnamed()
                await self._ready()
            case wire.Plain("flush"):
                await self._link.drain()
            case wire.Ask(sql) if not self._skipping:
                await self._simple(sql, len(body))
            case wire.Password():
                raise Malformed("a password is not expected now")
            case _ if not self._skipping:
                await self._guarded(lambda: self._extended(message, len(body)))
        return True

    async def _ready(self) -> None:
        """Say that the next message is waited for."""
        self._link.send(wire.ready(self.status))
        self._is_idle = True
        await self._link.drain()

    def _forget_unnamed(self) -> None:
        """Outside of a transaction a portal lives until Sync."""
        if self.status == "I":
            self.portals.clear()
            self.cursors.clear()

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except (Gone, Malformed, asyncio.CancelledError):
            raise
        except Exception as error:
            await self._wrong(error, simple=False)

    async def _wrong(self, error: Exception, *, simple: bool) -> None:
        """Say what is wrong, and skip what follows up to the next Sync."""
        wrong = sql_error_of(error)
        if wrong.fatal:
            raise wrong
        self._link.send(wrong.packed())
        if self.status == "T":
            self.status = "E"
        if simple:
            await self._ready()
        else:
            self._skipping = True
            await self._link.drain()

    # ------------------------------------------------------------ the simple protocol

    async def _simple(self, sql: str, size: int) -> None:
        try:
            self.asking.pace(size)
            found = _cut(sql)
            if len(found) > _MOST_IN_TEXT:
                problem = f"a text has at most {_MOST_IN_TEXT} statements"
                raise SqlError("54000", problem, hint="send them one by one")
            if not found:
                self._link.send(wire.EMPTY)
            for statement in found:
                result = await self._result(Statement(sql=statement, values=()))
                await self._told(result)
                await self._link.drain()
                await asyncio.sleep(0)
        except (Gone, Malformed, asyncio.CancelledError):
            raise
        except Exception as error:
            await self._wrong(error, simple=True)
            return
        self._forget_unnamed()
        await self._ready()

    async def _told(self, result: Result) -> None:
        """A whole result of the simple protocol: in text."""
        self._notices(result)
        if result.columns is not None:
            formats = [0] * len(result.columns)
            self._link.send(wire.row_description(result.columns, formats, SIZES))
            await self._rows(result, formats, 0, len(result.rows))
        self._complete(result, len(result.rows))

    # ------------------------------------------------------------ the extended protocol

    async def _extended(self, message: wire.Later, size: int) -> None:
        self.asking.pace(size + self._letters_again(message))
        if self.asking.stopped.is_set():
            raise cancelled("nothing was charged")
        match message:
            case wire.Parse(name, sql, types):
                self._parse(name, sql, types)
            case wire.Bind():
                await self._bind(message)
            case wire.Describe("S", name):
                await self._describe_statement(self._statement(name))
            case wire.Describe("P", name) if name in self.cursors and name not in self.portals:
                columns = self.cursors[name].result.columns
                self._describe(columns, (0,) * len(columns or ()))
            case wire.Describe("P", name):
                await self._describe_portal(self._portal(name))
            case wire.Execute(name, most):
                await self._execute(self._portal(name), most)
            case wire.Close(kind, name):
                held: dict[str, Any] = {"S": self.prepared, "P": self.portals}[kind]  # type: ignore[assignment]  # of either
                held.pop(name, None)
                self._link.send(wire.CLOSED)
            case wire.Unserved(what):
                raise SqlError("0A000", f"{what} is not served")

    def _letters_again(self, message: wire.Later) -> int:
        """Letters of the statement that a message names: it is short, and they are read again."""
        held: Prepared | Portal | None = None
        match message:
            case wire.Bind(statement=name) | wire.Describe("S", name):
                held = self.prepared.get(name)
            case wire.Execute(name) | wire.Describe("P", name):
                held = self.portals.get(name)
        return 0 if held is None else len(held.sql)

    def _parse(self, name: str, sql: str, types: Sequence[int]) -> None:
        if name and name in self.prepared:
            raise SqlError("42P05", "a prepared statement of this name exists")
        found = _cut(sql)
        if len(found) > 1:
            problem = "cannot insert multiple commands into a prepared statement"
            raise SqlError("42601", problem, hint="send them one by one")
        one = found[0] if found else ""
        if len(types) > _MOST_PARAMETERS:
            raise SqlError("54000", f"a statement has at most {_MOST_PARAMETERS} parameters")
        if not name:
            self.prepared.pop(name, None)
        if len(self.prepared) >= _MOST_STATEMENTS or self._kept(name) + len(one) > _MOST_KEPT:
            raise SqlError("54000", "too many statements are prepared", hint="DEALLOCATE ALL")
        self.prepared[name] = Prepared(one, tuple(types))
        self._link.send(wire.PARSED)

    def _kept(self, *more: str) -> int:
        """About how many bytes statements and portals take, with these names."""
        held: list[Prepared | Portal] = [*self.prepared.values(), *self.portals.values()]
        names = (*self.prepared, *self.portals, *more)
        return sum(one.size for one in held) + sum(map(len, names))

    async def _bind(self, asked: wire.Bind) -> None:
        prepared = self._statement(asked.statement)
        if asked.portal and asked.portal in self.portals:
            raise SqlError("42P03", "a portal of this name exists")
        if len(asked.values) > _MOST_PARAMETERS:
            raise SqlError("54000", f"a statement has at most {_MOST_PARAMETERS} parameters")
        self.portals.pop(asked.portal, None)
        if len(self.portals) >= _MOST_STATEMENTS:
            raise SqlError("54000", "too many portals are open", hint="close some of them")
        types: Sequence[int] = prepared.types
        if asked.values or has_parameters(prepared.sql):
            types = await self._types(prepared)
            if len(types) != len(asked.values):
                problem = f"{len(asked.values)} parameters are sent, and there are {len(types)}"
                raise SqlError("08P01", problem)
        forms = asked.formats * len(asked.values) if len(asked.formats) == 1 else asked.formats
        forms = forms or (0,) * len(asked.values)
        values = tuple(
            parameter(value, kind, form, place)
            for place, (value, kind, form) in enumerate(
                zip(asked.values, types, forms, strict=True), start=1
            )
        )
        portal = Portal(prepared.sql, tuple(types), values, asked.results, prepared.columns)
        if self._kept(asked.portal) + portal.size > _MOST_KEPT:
            raise SqlError("54000", "too many portals are open", hint="close some of them")
        self.portals[asked.portal] = portal
        self._link.send(wire.BOUND)

    async def _types(self, prepared: Prepared) -> Sequence[int]:
        """The types of all parameters: as they were sent, else as they are used."""
        if prepared.full is None:
            inner = select_in(prepared.sql)
            if (prepared.types and all(prepared.types)) or inner is None:
                prepared.full = prepared.types
            else:
                asked = Statement(sql=inner, types=prepared.types)
                prepared.full = tuple(await self.asking.parameter_types(asked))
        return prepared.full

    async def _describe_statement(self, prepared: Prepared) -> None:
        types, columns = await self._columns(prepared.sql, prepared.types, None)
        prepared.full, prepared.columns = tuple(types), columns
        self._link.send(wire.parameter_description(types))
        self._describe(columns, (0,) * len(columns or ()))

    async def _describe_portal(self, portal: Portal) -> None:
        if portal.result is None:
            _, portal.columns = await self._columns(portal.sql, portal.types, portal.values)
        else:
            portal.columns = portal.result.columns
        self._describe(portal.columns, _formats(portal))

    async def _columns(
        self, sql: str, types: tuple[int, ...], values: tuple[object, ...] | None
    ) -> tuple[Sequence[int], tuple[Column, ...] | None]:
        """The types of parameters, and the columns, of any statement."""
        command = command_of(sql)
        if not sql:
            return types, None
        if command.is_select:
            self._check_open(command.name)
            asked = Statement(sql=sql, types=types, values=values)
            return await self.asking.described(asked, self.options)
        inner = select_in(sql)
        if inner is not None and values is None and has_parameters(inner):
            types = tuple(await self.asking.parameter_types(Statement(sql=inner, types=types)))
        return types, command.columns(self.cursors)

    def _describe(self, columns: tuple[Column, ...] | None, formats: Sequence[int]) -> None:
        if columns is None:
            self._link.send(wire.NO_DATA)
        else:
            self._link.send(wire.row_description(columns, formats, SIZES))

    async def _execute(self, portal: Portal, most: int) -> None:
        if not portal.sql:
            self._link.send(wire.EMPTY)
            return
        if portal.result is None:
            self.check_held()
            asked = Statement(sql=portal.sql, types=portal.types, values=portal.values)
            result = await self._result(asked, portal.columns)
            if portal.columns is not None and portal.columns != result.columns:
                raise other_columns()
            portal.result, portal.columns = result, result.columns
            self._notices(portal.result)
        elif portal.result.rows:  # held since: whose it is may have changed
            await self.asking.check_still()
        result, start = portal.result, portal.sent
        end = min(start + most, len(result.rows)) if most else len(result.rows)
        await self._rows(result, _formats(portal), start, end)
        portal.sent = end
        if end < len(result.rows):
            self._link.send(wire.SUSPENDED)
        else:
            self._complete(result, end - start)
            portal.result, portal.sent = replace(result, rows=(), notices=()), 0

    def check_held(self) -> None:
        """Refuse, before anything is paid, one more result where many are fetched in part."""
        cells = self.cells_held()
        mine, all_of_mine = sum(cells), self._door.cells_of(self.principal)
        if len(cells) >= _MOST_HELD or mine > _MOST_CELLS or all_of_mine > _MOST_OF_PRINCIPAL:
            hint = "fetch the rest, or CLOSE ALL"
            raise SqlError("54000", "too many results are fetched in part", hint=hint)

    def cells_held(self) -> list[int]:
        """How many values each result has that is fetched in part."""
        results = [one.result for one in self.portals.values()]
        results += [one.result for one in self.cursors.values()]
        return [one.cells for one in results if one is not None and one.rows]

    # ------------------------------------------------------------ what is done, and told

    async def _result(
        self, asked: Statement, described: tuple[Column, ...] | None = None
    ) -> Result:
        """What a statement gives; `described` are the columns that the client was told of."""
        command = command_of(asked.sql)
        self._check_open(command.name)
        if command.is_select:
            return await self.asking.answered(asked, self.options, described)
        return await run_command(command, self, asked)

    def _check_open(self, name: str) -> None:
        """In a transaction that failed nothing is done but to end it."""
        if self.status == "E" and name not in ("commit", "end", "rollback", "abort"):
            problem = "current transaction is aborted, commands ignored until end of it"
            raise SqlError("25P02", problem, hint="ROLLBACK")

    def _statement(self, name: str) -> Prepared:
        if name not in self.prepared:
            raise SqlError("26000", "there is no prepared statement of this name")
        return self.prepared[name]

    def _portal(self, name: str) -> Portal:
        if name not in self.portals:
            raise SqlError("34000", "there is no portal of this name")
        return self.portals[name]

    def _notices(self, result: Result) -> None:
        for words, detail in result.notices:
            self._link.send(wire.complaint(b"N", "NOTICE", "00000", words, detail))
        for name, value in result.statuses:
            self._link.send(wire.parameter_status(name, value))

    async def _rows(self, result: Result, formats: Sequence[int], start: int, end: int) -> None:
        columns = result.columns or ()
        at_once = max(_CELLS_AT_ONCE // max(len(columns), 1), 1)
        for place in range(start, end):
            cells = zip(result.rows[place], columns, formats, strict=True)
            self._link.send(wire.data_row([encoded(*cell) for cell in cells]))
            if place % at_once == at_once - 1:
                await self._link.drain()
                await asyncio.sleep(0)  # to drain takes no turn where the client takes all

    def _complete(self, result: Result, count: int) -> None:
        self._link.send(wire.command_complete(result.tag or tag_of(count)))


def _cut(sql: str) -> list[str]:
    """The statements of a text, which is not so long that others would wait for its end."""
    if len(sql) > _MOST_TEXT:
        raise SqlError("54000", f"a text has at most {_MOST_TEXT} letters", hint="ask for less")
    return statements(sql)


def _formats(portal: Portal) -> Sequence[int]:
    """The format of each column, as Bind asked for it."""
    count = len(portal.columns or ())
    if len(portal.formats) > 1 and len(portal.formats) != count:
        raise SqlError("08P01", "the formats of results are not as many as columns")
    return portal.formats * count if len(portal.formats) == 1 else portal.formats or (0,) * count


def too_many(detail: str) -> Refusal:
    """Nobody else is let in."""
    return Refusal(429, "Too many connections", detail, "too-many")
