"""Commands that are no question: transactions, settings, cursors, EXPLAIN; and what is refused.

Law      a statement is the command of its first word, and nothing else; one that is not of the list
         is refused. A SELECT goes to the reader, also that of EXPLAIN and of DECLARE, with the
         values of its parameters. No command changes anything but the session
Differs  SAVEPOINT and isolation levels are accepted and mean nothing
Checked  tests/serve/test_sqlport_session.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

from lastbit.serve.sqlport.asking import Result, Statement
from lastbit.serve.sqlport.lexing import has_parameters, parts, unquoted, words
from lastbit.serve.sqlport.messages import Column
from lastbit.serve.sqlport.names import WRITES
from lastbit.serve.sqlport.options import OWN, assignment, shown_name
from lastbit.serve.sqlport.problems import SqlError
from lastbit.serve.sqlport.values import TEXT

if TYPE_CHECKING:
    from lastbit.serve.sqlport.session import Session

_SELECTS = frozenset({"select", "with", "values", "from", "table", "("})
_TRANSACTIONS: Mapping[str, str] = MappingProxyType(
    {
        "begin": "BEGIN",
        "start": "START TRANSACTION",
        "commit": "COMMIT",
        "end": "COMMIT",
        "rollback": "ROLLBACK",
        "abort": "ROLLBACK",
        "savepoint": "SAVEPOINT",
        "release": "RELEASE",
    }
)
_OTHERS = frozenset(
    {"set", "reset", "show", "discard", "deallocate", "explain", "declare", "fetch", "move"}
    | {"close", "listen", "unlisten", "lock"}
)
_MOST_BEFORE_SELECT = 200
"""Parts of an EXPLAIN with its options."""


@dataclass(frozen=True, slots=True)
class Command:
    """A statement and the word that it begins with."""

    name: str
    sql: str

    @property
    def is_select(self) -> bool:
        return self.name in _SELECTS

    def columns(self, cursors: Cursors) -> tuple[Column, ...] | None:
        """The columns of what it gives; None: it gives no rows."""
        match self.name:
            case "show":
                return _show_columns(shown_name(self.sql))
            case "explain":
                return (Column("QUERY PLAN", TEXT),)
            case "fetch":
                return cursors.get(_cursor_name(words(self.sql))).result.columns
        return None


@dataclass(slots=True)
class Cursor:
    """The result of a question, and how far it was fetched."""

    result: Result
    place: int = 0


class Cursors(dict[str, Cursor]):
    """The cursors of a session, by name."""

    def get(self, name: str) -> Cursor:  # type: ignore[override]  # refused, not None
        if name not in self:
            raise SqlError("34000", f'cursor "{name[:60]}" does not exist')
        return self[name]


def command_of(sql: str) -> Command:
    """Which command a statement is."""
    for kind, letters, _ in parts(sql):
        if kind != "blank":
            return Command(letters.lower() if kind == "word" else letters[:1], sql)
    return Command("", sql)


def tag_of(count: int) -> str:
    """What a SELECT of so many rows ends with."""
    return f"SELECT {count}"


def select_in(sql: str) -> str | None:
    """The SELECT that a statement is, previews, or opens a cursor for; None: it has none."""
    name = command_of(sql).name
    if name == "explain":
        return _explained(sql)
    if name == "declare":
        return _declared(sql)[1]
    return sql if name in _SELECTS else None


async def run_command(command: Command, session: Session, asked: Statement) -> Result:
    """Do what a command says that is no SELECT."""
    name = command.name
    if name not in ("explain", "declare") and (asked.values or has_parameters(command.sql)):
        problem = "parameters are for SELECT, EXPLAIN and DECLARE"
        raise SqlError("42601", problem, hint="write the value itself")
    if name in _TRANSACTIONS:
        return _transaction(command, session)
    match name:
        case "set" | "reset":
            return _set(command, session)
        case "show":
            return _show(shown_name(command.sql), session)
        case "explain":
            return await _explain(asked, session)
        case "declare":
            return await _declare(asked, session)
        case "fetch" | "move":
            return await _fetch(command, session)
        case "discard" | "deallocate" | "close":
            return _forget(command, session)
        case "listen" | "unlisten" | "lock":
            return Result(tag=name.upper() + (" TABLE" if name == "lock" else ""))
    if name in WRITES:
        problem = f"{name.upper()} is not possible: tables are asked here, not changed"
        raise SqlError("25006", problem, hint="SELECT ..., EXPLAIN SELECT ..., SET or SHOW")
    raise SqlError("42601", "the statement is not understood", hint="write SELECT ... FROM ...")


def _transaction(command: Command, session: Session) -> Result:
    name, tag = command.name, _TRANSACTIONS[command.name]
    said = words(command.sql, 6)
    back = name == "rollback" and "to" in said[1:4]
    if name in ("begin", "start"):
        notices = () if session.status == "I" else (("there is already a transaction", ""),)
        session.status = "T"
        return Result(tag=tag, notices=notices)
    if back or name in ("savepoint", "release"):
        if session.status == "I":
            raise SqlError("25P01", f"{name.upper()} can only be used in transaction blocks")
        session.status = "T"
        return Result(tag=tag)
    if name in ("commit", "end") and session.status == "E":
        tag = "ROLLBACK"
    notices = (("there is no transaction in progress", ""),) if session.status == "I" else ()
    session.status = "I"
    session.portals.clear()
    session.cursors.clear()
    return Result(tag=tag, notices=notices)


# ---------------------------------------------------------------- settings


def _set(command: Command, session: Session) -> Result:
    tag = command.name.upper()
    if command.name == "reset" and words(command.sql, 3)[1:] == ["all"]:
        session.options.reset()
        return Result(tag=tag, statuses=tuple(session.options.told()))
    found = assignment(command.sql)
    if found is None:
        return Result(tag=tag)
    shown = session.options.set(*found)
    told = () if shown is None else ((shown, session.options[shown]),)
    return Result(tag=tag, statuses=told)


def _show_columns(name: str) -> tuple[Column, ...]:
    if name == "all":
        return tuple(Column(one, TEXT) for one in ("name", "setting", "description"))
    return (Column(name.removeprefix(OWN), TEXT),)


def _show(name: str, session: Session) -> Result:
    if name == "all":
        rows = [[*pair, ""] for pair in session.options.every()]
        return Result(columns=_show_columns(name), rows=rows, tag="SHOW")
    return Result(columns=_show_columns(name), rows=[[session.options[name]]], tag="SHOW")


# ---------------------------------------------------------------- EXPLAIN


async def _explain(asked: Statement, session: Session) -> Result:
    inner = replace(asked, sql=_explained(asked.sql))
    found = await session.asking.explained(inner, session.options)
    return replace(found, tag="EXPLAIN")


def _explained(sql: str) -> str:
    """The SELECT that EXPLAIN is about."""
    rest = [one for one in islice(parts(sql), _MOST_BEFORE_SELECT) if one[0] != "blank"][1:]
    options: list[str] = []
    if rest and rest[0][1] == "(" and not (len(rest) > 1 and rest[1][1].lower() in _SELECTS):
        while rest and rest[0][1] != ")":
            options.append(rest.pop(0)[1].lower())
        rest = rest[1:]
    while rest and rest[0][1].lower() in ("analyze", "analyse", "verbose"):
        options.append(rest.pop(0)[1].lower())
    if "analyze" in options or "analyse" in options:
        problem = "EXPLAIN ANALYZE would run the question"
        raise SqlError("0A000", problem, hint="EXPLAIN SELECT ... is the free preview")
    if not rest or rest[0][1].lower() not in _SELECTS:
        raise SqlError("42601", "EXPLAIN is about a SELECT", hint="EXPLAIN SELECT ...")
    return sql[rest[0][2] :]


# ---------------------------------------------------------------- cursors


def _declared(sql: str) -> tuple[list[str], str]:
    """What stands before FOR, and the SELECT behind it."""
    every = [one for one in parts(sql) if one[0] != "blank"]
    at = next((i for i, one in enumerate(every) if one[1].lower() == "for"), None)
    if at is None or at < 3:
        raise SqlError("42601", "DECLARE is not understood", hint="DECLARE c CURSOR FOR SELECT ...")
    inner = sql[every[at + 1][2] :] if at + 1 < len(every) else ""
    if not command_of(inner).is_select:
        raise SqlError("42601", "a cursor is for a SELECT", hint="DECLARE c CURSOR FOR SELECT ...")
    return [
        letters.lower() if kind == "word" else letters for kind, letters, _ in every[:at]
    ], inner


async def _declare(asked: Statement, session: Session) -> Result:
    said, inner = _declared(asked.sql)
    name, held = unquoted(said[1]), "hold" in said[2:]
    if session.status != "T" and not held:
        problem = "DECLARE CURSOR can only be used in transaction blocks"
        raise SqlError("25P01", problem, hint="BEGIN first")
    if name in session.cursors:
        raise SqlError("42P03", f'cursor "{name[:60]}" already exists')
    session.check_held()
    found = await session.asking.answered(replace(asked, sql=inner), session.options)
    session.cursors[name] = Cursor(found)
    return Result(tag="DECLARE CURSOR", notices=found.notices)


def _cursor_name(said: list[str]) -> str:
    if len(said) < 2:
        raise SqlError("42601", "a cursor's name is missing", hint="FETCH 10 FROM c")
    return unquoted(said[-1])


async def _fetch(command: Command, session: Session) -> Result:
    said = words(command.sql)
    cursor = session.cursors.get(_cursor_name(said))
    await session.asking.check_still()
    rest = [word for word in said[1:-1] if word not in ("from", "in", "forward")]
    number = rest[0] if len(rest) == 1 and re.fullmatch("[0-9]{1,9}", rest[0]) else None
    if rest not in ([], ["all"], ["next"]) and number is None:
        problem = "a cursor goes forward only"
        raise SqlError("55000", problem, hint="FETCH 10 FROM c, or FETCH ALL FROM c")
    rows = cursor.result.rows
    count = {"all": len(rows)}.get(rest[0] if rest else "next", 1)
    if number is not None:
        count = int(number)
    start, cursor.place = cursor.place, min(cursor.place + count, len(rows))
    if command.name == "move":
        return Result(tag=f"MOVE {cursor.place - start}")
    columns, taken = cursor.result.columns, rows[start : cursor.place]
    return Result(columns=columns, rows=taken, tag=f"FETCH {len(taken)}")


def _forget(command: Command, session: Session) -> Result:
    """DISCARD, DEALLOCATE and CLOSE."""
    said = [word for word in words(command.sql, 6) if word != "prepare"]
    what = unquoted(said[-1]) if len(said) > 1 else ""
    if command.name == "discard":
        if what == "all":
            session.options.reset()
            session.prepared.clear()
            session.portals.clear()
            session.cursors.clear()
            return Result(tag="DISCARD ALL", statuses=tuple(session.options.told()))
        return Result(tag=f"DISCARD {what.upper()}")
    if command.name == "deallocate":
        if what == "all":
            session.prepared.clear()
            return Result(tag="DEALLOCATE ALL")
        if session.prepared.pop(what, None) is None:
            raise SqlError("26000", "there is no prepared statement of this name")
        return Result(tag="DEALLOCATE")
    if what == "all":
        session.cursors.clear()
        return Result(tag="CLOSE CURSOR ALL")
    session.cursors.get(what)
    del session.cursors[what]
    return Result(tag="CLOSE CURSOR")
