"""A whole server with a port for SQL: who may ask what, what is charged, and what ends.

One server for all of them. Each pays for questions of its own: no test needs another before it.
Every client there is does the same walk in test_sqlport_clients.py.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lastbit.errors import InvalidParameter
from lastbit.serve.questions import Refusal
from lastbit.serve.safety import Rates
from lastbit.serve.settings import Settings
from lastbit.serve.sqlport.asking import Statement
from lastbit.serve.sqlport.messages import Column
from lastbit.serve.sqlport.options import Options
from lastbit.serve.sqlport.port import MOST_STRANGERS, SqlPort, tls_context
from lastbit.serve.sqlport.reading import Reader
from lastbit.serve.sqlport.session import Session
from lastbit.serve.sqlport.wires import Wire
from tests.serve.sqlbytes import (
    LOGIN,
    SYNC,
    FakeDoor,
    Transport,
    bind,
    error_of,
    execute,
    first,
    message,
    parse,
    query,
    startup,
)
from tests.serve.sqlserving import SqlServing, certificate_in, sql_serving

psycopg = pytest.importorskip("psycopg", reason="psycopg is in requirements-engines.lock")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServing]:
    with sql_serving(tmp_path_factory.mktemp("sql") / "served") as running:
        yield running


@pytest.fixture
def line(server: SqlServing) -> Iterator[Any]:
    """A connection of psycopg's, and the notices that came."""
    with psycopg.connect(**server.told(), dbname="lastbit", autocommit=True) as connection:
        connection.notices = []
        connection.add_notice_handler(lambda one: connection.notices.append(one.message_primary))
        yield connection


def test_a_question_is_previewed_paid_for_and_free_again(server: SqlServing, line: Any) -> None:
    line.execute("SET lastbit.epsilon = '0.5'")
    sql = (
        'SELECT n, region FROM (SELECT region, COUNT(*) AS n FROM "public"."visits" '
        "WHERE 1 = 1 GROUP BY region) q LIMIT 1000"
    )
    before = server.charges()
    plan = [row[0] for row in line.execute(f"EXPLAIN {sql}")]
    assert "Cost: epsilon = 0.5." in plan and server.charges() == before
    cursor = line.execute(sql)
    assert [column.name for column in cursor.description] == ["n", "region"]
    first = cursor.fetchall()
    assert {region for _, region in first} == {"north", "south"}
    assert server.charges() == before + 1
    assert line.notices[-1].startswith("cost epsilon = 0.5; left of your allowance: epsilon = ")
    assert line.execute(sql).fetchall() == first  # free
    assert server.charges() == before + 1
    assert line.notices[-1].startswith("cost nothing: it is on record")


def test_parameters_are_literals_and_results_have_types(server: SqlServing, line: Any) -> None:
    line.execute("SET lastbit.epsilon = '0.3'")
    line.execute("SET lastbit.intervals = on")
    sql = (
        "SELECT region, AVG(cost) AS c FROM visits WHERE region <> %s AND cost > %s GROUP BY region"
    )
    cursor = line.execute(sql, ("'; --", 1.5), binary=True)
    names = [column.name for column in cursor.description]
    assert names == ["region", "c", "c_low", "c_high", "c_whole_low", "c_whole_high"]
    assert [column.type_code for column in cursor.description] == [25, *[701] * 5]
    for _, value, low, high, _, _ in cursor:
        assert low <= value <= high


def test_what_is_refused_costs_nothing_and_says_why(server: SqlServing, line: Any) -> None:
    before = server.charges()
    refused = {
        "SELECT COUNT(*) FROM visits": "22023",  # no price
        "SELECT * FROM nothing": "42P01",
        "SELECT * FROM visits JOIN pg_class ON true": "0A000",
        "SELECT COUNT(*) FROM visits WHERE 1 < (SELECT COUNT(*) FROM information_schema.tables)": (
            "0A000"
        ),
        "UPDATE visits SET cost = 0": "25006",
        "SELECT pg_sleep(1)": "42883",
        "EXPLAIN ANALYZE SELECT COUNT(*) FROM visits": "0A000",
        "PREPARE x AS SELECT 1": "25006",
    }
    for sql, code in refused.items():
        with pytest.raises(psycopg.Error) as error:
            line.execute(sql)
        assert error.value.sqlstate == code, (sql, str(error.value))
    with pytest.raises(psycopg.Error) as error:
        line.execute("SELECT COUNT(*) FROM visits")
    assert error.value.diag.message_hint == "SET lastbit.epsilon = '0.1'"
    line.execute("SET lastbit.epsilon = '1000'")
    with pytest.raises(psycopg.Error) as error:
        line.execute("SELECT COUNT(*) FROM visits")
    assert error.value.sqlstate == "53400" and "is left" in error.value.diag.message_primary
    assert server.charges() == before


def test_who_may_not_ask_is_refused_as_by_http(server: SqlServing) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(**{**server.told(), "password": "lbt_" + "x" * 43})
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(**{**server.told(), "user": "stella"})
    with psycopg.connect(**server.told("ben"), autocommit=True) as ben:  # has no allowance
        assert ben.execute("SELECT table_name FROM information_schema.tables").fetchall() == []
        ben.execute("SET lastbit.epsilon = '1'")
        with pytest.raises(psycopg.Error) as error:
            ben.execute("SELECT COUNT(*) FROM visits")
        assert error.value.sqlstate == "42P01"
    with psycopg.connect(**server.told("otto"), autocommit=True) as otto:  # an auditor
        otto.execute("SET lastbit.epsilon = '1'")
        with pytest.raises(psycopg.Error) as error:
            otto.execute("SELECT COUNT(*) FROM visits")
        assert error.value.sqlstate == "42501"


def test_a_revoked_token_ends_its_connections(server: SqlServing) -> None:
    gate = server.gate
    token, made = gate.token_made("ana", name="short", days=1)
    line = psycopg.connect(**{**server.told(), "password": token}, autocommit=True)
    assert line.execute("SELECT 1").fetchall() == [(1,)]
    who = gate.identity_of_token(server.tokens["ana"])
    assert who is not None
    gate.token_revoked(made.id, who)
    with pytest.raises(psycopg.OperationalError, match="not signed in"):
        line.execute("SELECT 1")
    assert line.closed


@pytest.mark.parametrize("how", ["FETCH 1 FROM c", "MOVE 1 FROM c", "the rest of a portal"])
def test_what_is_held_of_an_answer_is_not_told_to_a_token_that_ended(
    server: SqlServing, how: str
) -> None:
    token, made = server.gate.token_made("ana", name="short", days=1)
    who = server.gate.identity_of_token(server.tokens["ana"])
    assert who is not None
    with socket.create_connection(("127.0.0.1", server.number), timeout=60) as line:
        file = line.makefile("rb")

        def until(*tags: bytes) -> tuple[bytes, bytes]:
            while True:
                tag, (size,) = file.read(1), struct.unpack(">i", file.read(4))
                body = file.read(size - 4)
                if tag in tags:
                    return tag, body

        line.sendall(startup() + message("p", token.encode() + b"\0") + query("BEGIN"))
        until(b"C")
        if how.startswith("the rest"):
            line.sendall(parse("SELECT oid FROM pg_class") + bind() + execute(1) + message("H"))
            until(b"s")
            more = execute(1) + SYNC
        else:
            line.sendall(query("DECLARE c CURSOR FOR SELECT oid FROM pg_class"))
            until(b"C")
            more = query(how)
        server.gate.token_revoked(made.id, who)
        line.sendall(more)
        tag, body = until(b"D", b"C", b"E")
        assert tag == b"E" and error_of(body)["C"] == "28000"
        assert file.read() == b""


def test_the_audit_log_has_a_line_as_for_http(server: SqlServing, line: Any) -> None:
    line.execute("SET lastbit.epsilon = '0.5'")
    line.execute("SELECT COUNT(*) AS n FROM visits WHERE cost > 10")
    newest = server.gate.audit_lines(most=1)[0]
    assert (newest["principal"], newest["action"], newest["subject"]) == ("ana", "asked", "visits")


def test_to_stop_waiting_stops_no_charge(server: SqlServing, line: Any) -> None:
    line.execute("SET lastbit.epsilon = '0.7'")
    before, sql = server.charges(), "SELECT COUNT(*) AS stopped FROM visits"

    def stopped() -> None:
        while server.charges() == before:
            time.sleep(0.01)
        line.cancel_safe()

    stopping = threading.Thread(target=stopped)
    stopping.start()
    with pytest.raises(psycopg.errors.QueryCanceled) as error:
        line.execute(sql)
    stopping.join()
    assert "stays charged" in (error.value.diag.message_detail or "")
    assert len(line.execute(sql).fetchall()) == 1  # on record by now, or waited for
    assert server.charges() == before + 1


def test_columns_are_told_before_values_and_others_are_not_paid_for(server: SqlServing) -> None:
    asyncpg = pytest.importorskip("asyncpg", reason="asyncpg is in requirements-serve.lock")

    async def asked() -> tuple[Any, int]:
        told = {**server.told(), "database": "lastbit"}
        settings = {"lastbit.epsilon": "0.6"}
        pool = asyncpg.create_pool(**told, server_settings=settings, min_size=1, max_size=1)
        async with pool:
            async with pool.acquire() as line:  # WHERE lets one of the declared keys through
                one = "SELECT region, COUNT(*) AS n FROM visits WHERE region IN ($1,$2) GROUP BY 1"
                found = await line.fetch(one, "south", "nowhere")
            async with pool.acquire() as line:  # the pool has said RESET ALL
                assert await line.fetchval("SHOW lastbit.epsilon") == "0.6"
                kept = await line.prepare("SELECT COUNT(*) AS n FROM visits WHERE cost > 41")
                before = server.charges()
                await line.execute("SET lastbit.intervals = on")
                with pytest.raises(asyncpg.FeatureNotSupportedError, match="must not change"):
                    await kept.fetch()
        return found, server.charges() - before

    found, charged = asyncio.run(asked())
    assert [one["region"] for one in found] == ["south"] and charged == 0


def test_tls_is_spoken_where_there_is_a_certificate(tmp_path: Path) -> None:
    """TLS itself, without a desk: who is beyond the loopback address must speak it."""
    certificate, key = certificate_in(tmp_path)
    cards = (tmp_path / "none.toml",)
    with pytest.raises(InvalidParameter, match="other machines"):
        Settings(cards=cards, state=tmp_path, sql_port=0, sql_host="0.0.0.0")
    told = Settings(
        cards=cards, state=tmp_path, sql_port=0, sql_certificate=certificate, sql_key=key
    )
    context = tls_context(told)
    assert context is not None

    async def spoken() -> tuple[bytes, bytes, bool]:
        loop = asyncio.get_running_loop()
        sessions: list[asyncio.Task[None]] = []
        secret: list[Wire] = []

        class Door(FakeDoor):
            def begun(self, wire: Wire) -> None:
                secret.append(wire)
                sessions.append(loop.create_task(ended(wire)))

        door = Door()
        door.context = context

        async def ended(wire: Wire) -> None:
            await Session(wire, door).run()
            wire.close()

        server = await loop.create_server(lambda: Wire(door), "127.0.0.1", 0)
        number = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", number)
        writer.write(first(struct.pack(">i", 80877103)))
        said = await reader.readexactly(1)
        own = ssl.create_default_context(cafile=str(certificate))
        await writer.start_tls(own, server_hostname="localhost")
        writer.write(LOGIN + query("SHOW lastbit.delta") + message("X"))
        got = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        # what is sent along with the wish for TLS must not be read as if it came within
        reader, writer = await asyncio.open_connection("127.0.0.1", number)
        writer.write(first(struct.pack(">i", 80877103)) + LOGIN)
        injected = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        server.close()
        await asyncio.gather(*sessions)
        assert b"08P01" in injected and b"Z" not in injected[-6:-5]
        return said, got, secret[0].is_secret

    said, got, is_secret = asyncio.run(spoken())
    assert said == b"S" and is_secret and b"SHOW\0" in got


def test_a_cursor_of_psycopg_asks_with_its_parameters(server: SqlServing) -> None:
    with psycopg.connect(**server.told(), dbname="lastbit") as connection:
        connection.execute("SET lastbit.epsilon = '0.2'")
        sql = "SELECT region, COUNT(*) AS n FROM visits WHERE region = %s AND cost < %s GROUP BY 1"
        plain = connection.execute(sql, ("north", 77.5)).fetchall()
        before = server.charges()
        with connection.cursor("named") as cursor:
            cursor.execute(sql, ("north", 77.5))
            assert cursor.fetchall() == plain
        assert server.charges() == before  # the same question


def test_nobody_is_told_of_other_sessions(server: SqlServing) -> None:
    """What one session has open is in no view, by no name, and by no word of a refusal."""
    told = {**server.told(), "dbname": "lastbit"}
    with psycopg.connect(**told, autocommit=True) as one, psycopg.connect(**told) as other:
        one.execute("SET application_name = 'of one alone'")
        one.execute("SELECT 1 AS x", prepare=True)
        other.execute("DECLARE held CURSOR WITH HOLD FOR SELECT 7 AS x")
        views = ("activity", "database", "all_tables", "user_tables")
        names = [*(f"pg_stat_{name}" for name in views), "pg_cursors", "pg_prepared_statements"]
        for name in (*names, "pg_locks", "pg_stats", "pg_prepared_xacts", "pg_statio_user_tables"):
            assert one.execute(f"SELECT * FROM {name}").fetchall() == [], name
        for sql, code in (("FETCH ALL FROM held", "34000"), ("CLOSE held", "34000")):
            with pytest.raises(psycopg.Error) as error:
                one.execute(sql)
            assert error.value.sqlstate == code
        assert other.execute("FETCH ALL FROM held").fetchall() == [(7,)]
        assert other.execute("SHOW application_name").fetchall() == [("",)]


def test_a_token_that_ends_while_its_answer_is_waited_for_is_told_nothing(
    server: SqlServing,
) -> None:
    token, made = server.gate.token_made("ana", name="short", days=1)
    told = {**server.told(), "password": token}
    before = server.charges()
    with psycopg.connect(**told, dbname="lastbit", autocommit=True) as connection:
        connection.execute("SET lastbit.epsilon = '0.3'")
        ana = server.gate.identity_of_token(server.tokens["ana"])
        assert ana is not None

        def revoked() -> None:
            while server.charges() == before:
                time.sleep(0.01)
            server.gate.token_revoked(made.id, by=ana)

        revoking = threading.Thread(target=revoked)
        revoking.start()
        with pytest.raises(psycopg.OperationalError) as error:
            connection.execute("SELECT COUNT(*) AS n FROM visits WHERE cost < 5").fetchall()
        revoking.join()
    assert error.value.sqlstate == "28000" and server.charges() == before + 1


def test_a_cancel_before_the_charge_costs_nothing(
    server: SqlServing, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Event()
    read = Reader.read

    async def slow(self: Reader, *arguments: Any) -> Any:
        found = await read(self, *arguments)
        asked.set()
        await asyncio.sleep(1)
        return found

    monkeypatch.setattr(Reader, "read", slow)
    before = server.charges()
    with psycopg.connect(**server.told(), dbname="lastbit", autocommit=True) as connection:
        connection.execute("SET lastbit.epsilon = '0.3'")

        def cancelled() -> None:
            asked.wait(20)
            connection.cancel_safe()  # `cancel` holds the lock of Python, and so the server's loop

        cancelling = threading.Thread(target=cancelled)
        cancelling.start()
        with pytest.raises(psycopg.errors.QueryCanceled) as error:
            connection.execute("SELECT COUNT(*) AS n FROM visits WHERE cost < 6")
        cancelling.join()
    assert error.value.diag.message_detail == "nothing was charged"
    assert server.charges() == before


def test_the_columns_of_a_question_are_told_to_who_may_preview(
    server: SqlServing, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[str] = []
    monkeypatch.setattr(Rates, "take", lambda _self, key, _most: counted.append(key))

    async def described(name: str, sql: str) -> Any:
        asking = server.port.asking()
        await asking.sign_in(name, server.tokens[name], "127.0.0.1")
        return await asking.described(Statement(sql=sql), Options(user=name, epsilon="1"))

    def told(name: str, sql: str) -> Any:
        return asyncio.run_coroutine_threadsafe(described(name, sql), server.loop).result(60)

    private, public = "SELECT COUNT(*) AS n FROM visits", "SELECT relname FROM pg_class"
    assert told("ana", private) == ([], (Column("n", 20),))
    assert counted == ["other ana", "preview ana"]
    assert told("otto", public) == ([], (Column("relname", 25),))  # an auditor
    with pytest.raises(Refusal) as error:
        told("otto", private)
    assert error.value.kind == "not-allowed"


def test_long_messages_are_counted_by_principal(server: SqlServing) -> None:
    async def sent() -> int:
        one, other = server.port.asking(), server.port.asking()
        for asking in (one, other):
            await asking.sign_in("otto", server.tokens["otto"], "127.0.0.1")
        for _ in range(10_000):
            one.pace(200)  # what clients send all the time
        for count in range(100):
            try:
                (one, other)[count % 2].pace(1 << 20)
            except Refusal as error:
                assert error.status == 429
                return count
        return 100

    assert asyncio.run_coroutine_threadsafe(sent(), server.loop).result(60) == 2


def test_strangers_that_come_at_once_make_room_each() -> None:
    class Told(FakeDoor):
        epsilon = None

    async def here() -> int:
        port = SqlPort.__new__(SqlPort)
        port.context, port.epsilon, port._clients = None, None, {}
        port._by_process, port.asking = {}, Told().asking  # type: ignore[method-assign]  # no desk
        wires = [Wire(port) for _ in range(200)]
        for wire in wires:
            wire.connection_made(Transport())  # type: ignore[arg-type]  # as much as is used
        found = sum(not wire.is_ended for wire in wires)
        for client in list(port._clients.values()):
            client.task.cancel()
        return found

    assert asyncio.run(here()) == MOST_STRANGERS
