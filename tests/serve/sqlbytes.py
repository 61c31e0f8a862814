"""A session of the SQL port without a socket or a desk: bytes in, messages out."""

from __future__ import annotations

import asyncio
import struct
from types import SimpleNamespace
from typing import Any

from lastbit.serve.sqlport.asking import Result, Statement
from lastbit.serve.sqlport.messages import Column
from lastbit.serve.sqlport.options import Options
from lastbit.serve.sqlport.problems import SqlError
from lastbit.serve.sqlport.session import Session
from lastbit.serve.sqlport.wires import Wire, WireServer

TOKEN = "lbt_" + "a" * 43
_PATIENCE = 120
"""Seconds for a session: ten thousand SETs take half a second, and others may be at work."""


class Transport:
    """What is written, and whether it was closed."""

    def __init__(self) -> None:
        self.written, self.closed = bytearray(), False

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 1) if name == "peername" else None

    def write(self, data: bytes) -> None:
        self.written += data

    def abort(self) -> None:
        self.closed = True

    close = abort

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class FakeAsking:
    """A desk of one answer; it counts what it is asked for."""

    def __init__(self) -> None:
        self.stopped = asyncio.Event()
        self.signed: list[str] = []
        self.paid: list[Statement] = []
        self.sizes: list[int] = []

    async def sign_in(self, user: str, token: str, address: str) -> Any:
        if (user, token) != ("ana", TOKEN):
            raise SqlError("28P01", "no", fatal=True)
        self.signed.append(user)
        return SimpleNamespace(principal="ana")

    def pace(self, size: int) -> None:
        assert self.signed
        self.sizes.append(size)

    async def check_still(self) -> None:
        assert self.signed

    async def described(self, statement: Statement, options: Options) -> Any:
        return [25] * statement.sql.count("$"), (Column("n", 20), Column("k", 25))

    async def parameter_types(self, statement: Statement) -> list[int]:
        return [25] * statement.sql.count("$")

    async def explained(self, statement: Statement, options: Options) -> Result:
        return Result(columns=(Column("QUERY PLAN", 25),), rows=[["free"]])

    async def answered(
        self, statement: Statement, options: Options, described: tuple[Column, ...] | None = None
    ) -> Result:
        self.paid.append(statement)
        rows = [[place, f"k{place}"] for place in range(5)]
        return Result(
            columns=(Column("n", 20), Column("k", 25)), rows=rows, notices=(("paid", ""),)
        )


class FakeDoor(WireServer):
    """A port of one client."""

    epsilon: str | None = None

    def __init__(self) -> None:
        self.fake = FakeAsking()
        self.left, self.cancelled = 0, list[tuple[int, bytes]]()

    def asking(self) -> Any:
        return self.fake

    def enter(self, session: Session, principal: str) -> tuple[int, bytes]:
        return 7, b"abcd"

    def cells_of(self, principal: str) -> int:
        assert principal in ("", *self.fake.signed)
        return 0

    def leave(self, session: Session) -> None:
        self.left += 1

    def cancel(self, process: int, secret: bytes) -> None:
        self.cancelled.append((process, secret))


def first(body: bytes) -> bytes:
    return struct.pack(">i", len(body) + 4) + body


def message(tag: str, body: bytes = b"") -> bytes:
    return tag.encode() + first(body)


def startup(**parameters: str) -> bytes:
    told = {"user": "ana", "database": "lastbit", **parameters}
    pairs = b"".join(f"{name}\0{value}\0".encode() for name, value in told.items())
    return first(struct.pack(">i", 3 << 16) + pairs + b"\0")


def query(sql: str) -> bytes:
    return message("Q", sql.encode() + b"\0")


def parse(sql: str, name: str = "") -> bytes:
    return message("P", f"{name}\0{sql}\0".encode() + b"\0\0")


def bind(*values: bytes, name: str = "", portal: str = "") -> bytes:
    sent = b"".join(struct.pack(">i", len(value)) + value for value in values)
    counts = struct.pack(">h", 0), struct.pack(">h", len(values)), struct.pack(">h", 0)
    return message("B", f"{portal}\0{name}\0".encode() + counts[0] + counts[1] + sent + counts[2])


def execute(most: int = 0, portal: str = "") -> bytes:
    return message("E", f"{portal}\0".encode() + struct.pack(">i", most))


LOGIN = startup() + message("p", TOKEN.encode() + b"\0")
SYNC = message("S")


async def served(sent: bytes, door: FakeDoor) -> tuple[bytes, Transport]:
    """What comes back for these bytes; the client hangs up behind them."""
    wire, transport = Wire(door), Transport()
    wire.connection_made(transport)  # type: ignore[arg-type]  # as much of one as is used
    session = Session(wire, door)
    wire.data_received(sent)
    wire.eof_received()
    await asyncio.wait_for(session.run(), _PATIENCE)
    wire.close()
    return bytes(transport.written), transport


def told(sent: bytes, door: FakeDoor | None = None) -> list[tuple[str, bytes]]:
    """The messages that come back."""
    found, _ = asyncio.run(served(sent, FakeDoor() if door is None else door))
    messages, place = [], 0
    while place < len(found):
        (length,) = struct.unpack(">i", found[place + 1 : place + 5])
        messages.append((chr(found[place]), found[place + 5 : place + 1 + length]))
        place += 1 + length
    return messages


def error_of(body: bytes) -> dict[str, str]:
    """The fields of an error or a notice."""
    return {part[0]: part[1:] for part in body.decode().split("\0") if part}
