"""A connection's bytes and the port's door: what is held, who is let go, who comes in."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from lastbit.serve.settings import Settings
from lastbit.serve.sqlport import port as ports, wires
from lastbit.serve.sqlport.asking import Result
from lastbit.serve.sqlport.commands import Cursor
from lastbit.serve.sqlport.messages import Column, Malformed
from lastbit.serve.sqlport.port import SqlPort, tls_context
from lastbit.serve.sqlport.problems import SqlError
from lastbit.serve.sqlport.session import Gone, Session
from lastbit.serve.sqlport.wires import Wire
from tests.serve.sqlbytes import LOGIN, SYNC, FakeDoor, Transport, error_of, first, query
from tests.serve.sqlserving import certificate_in

TLS = first(struct.pack(">i", 80877103))


class Counting(Transport):
    """A transport that counts how often reading is stopped, and goes on."""

    def __init__(self, address: object = ("127.0.0.1", 1)) -> None:
        super().__init__()
        self.paused, self.resumed, self._address = 0, 0, address

    def get_extra_info(self, name: str) -> Any:
        return self._address if name == "peername" else None

    def pause_reading(self) -> None:
        self.paused += 1

    def resume_reading(self) -> None:
        self.resumed += 1


def wired(door: FakeDoor | None = None, address: object = ("127.0.0.1", 1)) -> tuple[Any, Counting]:
    """A wire, and what it is connected to."""
    wire, transport = Wire(FakeDoor() if door is None else door), Counting(address)
    wire.connection_made(transport)  # type: ignore[arg-type]  # as much of one as is used
    return wire, transport


def run(work: Callable[[], Awaitable[None]]) -> None:
    """In a loop of its own, and not for ever."""

    async def within() -> None:
        await asyncio.wait_for(work(), 60)

    asyncio.run(within())


def test_a_message_is_handed_on_once_it_is_whole() -> None:
    async def work() -> None:
        wire, _ = wired()
        sent = query("SELECT 1") + SYNC
        waiting = asyncio.create_task(wire.message(100))
        for place in range(len(sent) - len(SYNC)):
            await asyncio.sleep(0)
            assert not waiting.done()
            wire.data_received(sent[place : place + 1])
        assert await waiting == (b"Q", b"SELECT 1\0")
        wire.data_received(SYNC)
        assert await wire.message(100) == (b"S", b"")

    run(work)


@pytest.mark.parametrize("length", [-1, 0, 3, 101, 1 << 30])
def test_a_length_is_looked_at_before_its_bytes_are_waited_for(length: int) -> None:
    async def work() -> None:
        wire, _ = wired()
        wire.data_received(b"Q" + struct.pack(">i", length))
        with pytest.raises(Malformed):
            await wire.message(100)
        wire.data_received(struct.pack(">i", 7 if length == 3 else length))
        with pytest.raises(Malformed):
            await wire.first(100)

    run(work)


def test_reading_stops_beyond_a_message_and_goes_on_for_the_next() -> None:
    async def work() -> None:
        wire, transport = wired()
        large = query("x" * (1 << 19))
        waiting = asyncio.create_task(wire.message(1 << 20))
        await asyncio.sleep(0)
        for place in range(0, len(large), 1 << 16):
            assert transport.paused == transport.resumed
            wire.data_received(large[place : place + (1 << 16)])
            await asyncio.sleep(0)  # a large message is waited for, however long it is
        assert len((await waiting)[1]) == (1 << 19) + 1
        for _ in range(20):  # nobody waits for these
            if not transport.paused:
                wire.data_received(b"x" * (1 << 16))
        assert len(wire._held) <= (1 << 19) + (1 << 18)

        wire._held.clear()
        waiting = asyncio.create_task(wire.message(100))
        await asyncio.sleep(0)
        assert transport.resumed == transport.paused == 1
        wire.data_received(SYNC)
        assert await waiting == (b"S", b"")

    run(work)


def test_who_owes_the_rest_of_a_message_is_let_go() -> None:
    async def work() -> None:
        wire, _ = wired()
        wire.part_seconds = 0.05
        for part in (b"Q", struct.pack(">i", 20), b"SEL"):
            wire.data_received(part)
        with pytest.raises(Gone):
            await wire.message(100)

    run(work)


def test_who_takes_nothing_is_let_go_and_who_takes_it_later_is_not() -> None:
    async def work() -> None:
        wire, transport = wired()
        wire.drain_seconds = 0.05
        wire.send(b"one")
        wire.pause_writing()
        taking = asyncio.create_task(wire.drain())
        await asyncio.sleep(0)
        wire.resume_writing()
        await taking
        assert transport.written == b"one" and not transport.closed
        wire.pause_writing()
        with pytest.raises(Gone):
            await wire.drain()
        assert transport.closed and wire.is_ended

    run(work)


def test_who_is_gone_is_not_waited_for() -> None:
    async def work() -> None:
        wire, _ = wired()
        wire.data_received(SYNC[:3])
        waiting = asyncio.create_task(wire.message(100))
        await asyncio.sleep(0)
        wire.eof_received()
        with pytest.raises(Gone):
            await waiting

    run(work)


# ---------------------------------------------------------------- TLS


def test_nothing_from_before_tls_is_read_within_it() -> None:
    async def work() -> None:
        door = FakeDoor()
        wire, transport = wired(door)
        assert not await wire.secure()  # there is no certificate
        door.context = object()  # type: ignore[assignment]  # is not reached
        wire.data_received(TLS + b"x")
        await wire.first(100)
        with pytest.raises(Malformed, match="before TLS"):
            await wire.secure()
        assert not wire.is_secret and not transport.written

    run(work)


def test_who_does_not_finish_tls_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = certificate_in(tmp_path)
    told = Settings(
        cards=(tmp_path / "none.toml",),
        state=tmp_path,
        sql_port=0,
        sql_certificate=certificate,
        sql_key=key,
    )
    monkeypatch.setattr(wires, "TLS_SECONDS", 0.2)

    async def work() -> None:
        sessions: list[asyncio.Task[None]] = []

        class Door(FakeDoor):
            def begun(self, wire: Wire) -> None:
                sessions.append(asyncio.create_task(Session(wire, self).run()))

        door = Door()
        door.context = tls_context(told)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: Wire(door), "127.0.0.1", 0)
        for more in (b"", LOGIN):  # silence, and what is no TLS
            number = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", number)
            writer.write(TLS)
            assert await reader.readexactly(1) == b"S"
            writer.write(more)
            async with asyncio.timeout(8):  # less than a session has to sign in
                (got,) = await asyncio.gather(reader.read(), return_exceptions=True)
            # an alert of TLS may come, and no message of a session
            assert isinstance(got, OSError) or (isinstance(got, bytes) and b"R\0\0\0" not in got)
            writer.close()
        server.close()
        await asyncio.gather(*sessions)
        assert len(sessions) == 2 and not door.fake.signed and door.left == 2

    run(work)


def test_a_password_is_not_asked_for_in_the_clear_from_afar() -> None:
    async def work() -> None:
        door = FakeDoor()
        for address, local in (("192.0.2.7", False), ("::ffff:127.0.0.1", True), ("::1", True)):
            wire, transport = wired(door, (address, 1))
            assert wire.is_local is local
            wire.data_received(LOGIN)
            wire.eof_received()
            await Session(wire, door).run()
            wire.close()
            if not local:
                assert error_of(bytes(transport.written[5:]))["C"] == "28000"
                assert not door.fake.signed
        assert door.fake.signed == ["ana", "ana"]

    run(work)


# ---------------------------------------------------------------- the door


def door_of(*principals: str) -> tuple[SqlPort, list[Any]]:
    """A port without a desk, and a signed-in session of each of these."""
    port = SqlPort.__new__(SqlPort)
    port.context, port.epsilon, port._clients, port._by_process = None, None, {}, {}
    port.asking = FakeDoor().asking  # type: ignore[method-assign]  # no desk
    sessions = []
    for principal in principals:
        wire = Wire(port)
        wire.connection_made(Transport())  # type: ignore[arg-type]  # as much as is used
        session: Any = port._clients[wire].session
        session.asking = FakeDoor().asking()
        session.number, session.key = port.enter(session, principal)
        sessions.append(session)
    return port, sessions


def let_go(port: SqlPort) -> None:
    for client in list(port._clients.values()):
        client.task.cancel()


def test_a_cancel_is_of_the_session_whose_key_it_has() -> None:
    async def work() -> None:
        port, (one, two) = door_of("ana", "ben")
        for process, secret in (
            (one.number, two.key),
            (one.number, b""),
            (one.number, one.key[:-1]),
            (0, b""),
            (one.number ^ 1, one.key),
        ):
            port.cancel(process, secret)
        assert not one.asking.stopped.is_set() and not two.asking.stopped.is_set()
        port.cancel(one.number, one.key)
        assert one.asking.stopped.is_set() and not two.asking.stopped.is_set()
        port.leave(two)
        port.cancel(two.number, two.key)
        assert not two.asking.stopped.is_set()
        let_go(port)

    run(work)


def test_one_principal_has_so_many_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "MOST_OF_ONE", 3)

    async def work() -> None:
        port, sessions = door_of("ana", "ana", "ben", "ana")
        wire = Wire(port)
        wire.connection_made(Transport())  # type: ignore[arg-type]  # as much as is used
        fresh = port._clients[wire].session
        with pytest.raises(SqlError) as error:
            port.enter(fresh, "ana")
        assert error.value.code == "53300" and error.value.fatal
        port.enter(fresh, "ben")
        assert len({one.number for one in sessions}) == 4
        let_go(port)

    run(work)


def test_all_sessions_of_a_principal_hold_within_one_bound() -> None:
    async def work() -> None:
        port, (*mine, other) = door_of(*["ana"] * 7, "ben")
        held = Result(columns=(Column("n", 20),), rows=[[1]] * 90_000)
        for session, principal in ((one, "ana") for one in mine):
            session.principal = principal
            session.cursors["c"] = Cursor(held)
        other.principal = "ben"
        assert port.cells_of("ana") == 630_000 and port.cells_of("ben") == 0
        with pytest.raises(SqlError) as error:
            mine[0].check_held()
        assert error.value.code == "54000"
        other.check_held()
        for session in mine[:2]:
            session.cursors.clear()
        mine[0].check_held()
        let_go(port)

    run(work)


def test_where_all_are_signed_in_a_new_client_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "MOST_CONNECTIONS", 3)

    async def work() -> None:
        port, _ = door_of("ana", "ben", "eve")
        wire = Wire(port)
        wire.connection_made(Transport())  # type: ignore[arg-type]  # as much as is used
        assert wire.is_ended
        assert not any(one.is_ended for one in port._clients if one is not wire)
        let_go(port)

    run(work)
