"""One session of PostgreSQL's protocol, message by message, without a desk."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest

from lastbit.serve.sqlport.asking import Result, Statement
from lastbit.serve.sqlport.lexing import statements, words
from lastbit.serve.sqlport.messages import Column, later_message
from lastbit.serve.sqlport.options import Options, WrongOption, assignment
from lastbit.serve.sqlport.session import Session
from lastbit.serve.sqlport.wires import Wire
from tests.serve.sqlbytes import (
    LOGIN,
    SYNC,
    TOKEN,
    FakeAsking,
    FakeDoor,
    Transport,
    bind,
    error_of,
    execute,
    first,
    message,
    parse,
    query,
    served,
    startup,
    told,
)


def tags(sent: bytes, door: FakeDoor | None = None) -> str:
    """The tags of what comes back after the sign-in."""
    found = "".join(tag for tag, _ in told(LOGIN + sent, door))
    return found[found.index("Z") + 1 :]


def errors(sent: bytes, door: FakeDoor | None = None) -> list[dict[str, str]]:
    return [error_of(body) for tag, body in told(sent, door) if tag == "E"]


def test_signing_in() -> None:
    found = told(LOGIN)
    assert [tag for tag, _ in found][:2] == ["R", "R"]
    assert found[-2] == ("K", struct.pack(">i", 7) + b"abcd") and found[-1] == ("Z", b"I")
    wrong = startup() + message("p", b"lbt_no\0")
    (error,) = errors(wrong)
    assert (error["S"], error["C"]) == ("FATAL", "28P01")
    (error,) = errors(startup(database="other") + message("p", TOKEN.encode() + b"\0"))
    assert error["C"] == "3D000"
    gss = first(struct.pack(">i", 80877104))
    written, _ = asyncio.run(served(gss + LOGIN, FakeDoor()))
    assert written[:2] == b"NR"  # not encrypted so, and on with it


def test_a_cancel_is_handed_on_and_answered_by_the_end() -> None:
    door = FakeDoor()
    assert told(first(struct.pack(">ii", 80877102, 7) + b"abcd"), door) == []
    assert door.cancelled == [(7, b"abcd")]


def test_the_simple_protocol() -> None:
    door = FakeDoor()
    assert tags(query("SELECT 1"), door) == "NTDDDDDCZ"
    assert tags(query("")) == "IZ"
    assert tags(query("BEGIN; SHOW lastbit.epsilon; COMMIT")) == "CTDCCZ"
    assert tags(query("EXPLAIN SELECT 1"), door) == "TDCZ"
    assert len(door.fake.paid) == 1
    assert [one["C"] for one in errors(LOGIN + query("DROP TABLE t; SELECT 1"))] == ["25006"]


def test_transactions_say_where_they_are() -> None:
    sent = LOGIN + b"".join(map(query, ("BEGIN", "DROP TABLE t", "SELECT 1", "ROLLBACK")))
    states = [body for tag, body in told(sent) if tag == "Z"]
    assert states == [b"I", b"T", b"E", b"E", b"I"]
    assert [one["C"] for one in errors(sent)] == ["25006", "25P02"]
    ended = [b for t, b in told(LOGIN + query("BEGIN") + query("x") + query("COMMIT")) if t == "C"]
    assert ended[-1] == b"ROLLBACK\0"


def test_the_extended_protocol() -> None:
    door = FakeDoor()
    sent = parse("SELECT $1", "s") + message("D", b"Ss\0") + bind(b"x", name="s") + execute(2)
    assert tags(sent + execute(2) + execute(2) + SYNC, door) == "1tT2NDDsDDsDCZ"
    (asked,) = door.fake.paid
    assert asked.values == ("x",)
    assert tags(parse("SET lastbit.epsilon = '1'") + bind() + execute() + SYNC) == "12CZ"
    # after an error all is skipped up to Sync
    assert tags(bind(name="no") + execute() + parse("SELECT 1") + SYNC + parse("") + SYNC) == "EZ1Z"
    assert tags(message("F", b"1234") + SYNC) == "EZ"


def test_cursors() -> None:
    declared = (
        "BEGIN; DECLARE c CURSOR FOR SELECT 1; FETCH 2 FROM c; FETCH ALL FROM c; CLOSE c; END"
    )
    assert tags(query(declared)) == "CNCTDDCTDDDCCCZ"
    assert errors(LOGIN + query("DECLARE c CURSOR FOR SELECT 1"))[0]["C"] == "25P01"
    assert errors(LOGIN + query("FETCH 1 FROM nothing"))[0]["C"] == "34000"


def test_what_a_session_keeps_is_bounded() -> None:
    many = b"".join(parse("SELECT 1", f"s{place}") for place in range(501))
    assert errors(LOGIN + many + SYNC)[0]["C"] == "54000"
    portals = parse("SELECT 1", "s")
    portals += b"".join(bind(name="s", portal=f"p{place}") for place in range(501))
    assert errors(LOGIN + portals + SYNC)[0]["C"] == "54000"
    held = parse("SELECT 1", "s")
    for place in range(12):
        held += bind(name="s", portal=f"p{place}") + execute(1, f"p{place}")
    assert errors(LOGIN + held + SYNC)[0]["C"] == "54000"
    sets = b"".join(query(f"SET lastbit.no{place} = '1'") for place in range(10_000))
    assert {one["C"] for one in errors(LOGIN + sets)} == {"42704"}
    assert errors(LOGIN + query(f"SET application_name = '{'x' * 2000}'"))[0]["C"] == "22023"


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        first(b"\0\0\0\0"),
        first(struct.pack(">i", 2 << 16)),
        struct.pack(">i", 1 << 30),
        startup() + message("Q", b"SELECT 1\0"),
        startup() + b"p" + struct.pack(">i", 1 << 20),
        LOGIN + b"Q" + struct.pack(">i", 1 << 24),
        LOGIN + message("Q", b"no end"),
        LOGIN + message("!", b""),
        LOGIN + message("B", b"\0\0" + struct.pack(">h", 30000)),
        LOGIN + message("p", b"x\0"),
    ],
)
def test_what_is_not_of_the_protocol_ends_the_connection(sent: bytes) -> None:
    door = FakeDoor()
    (error,) = [error_of(body) for tag, body in told(sent, door) if tag == "E"]
    assert (error["S"], error["C"]) == ("FATAL", "08P01")
    assert not door.fake.paid and door.left == 1


def test_a_text_that_is_not_utf8_is_refused_and_the_session_goes_on() -> None:
    assert tags(message("Q", b"SELECT '\xff'\0") + query("SHOW lastbit.delta")) == "EZTDCZ"


def test_statements_are_cut_at_their_semicolons_alone() -> None:
    text = "SELECT ';' AS \";\"; -- a;\n/* ; /* ; */ */ SELECT $x$;$x$, E'\\';' ;;"
    assert statements(text) == [
        "SELECT ';' AS \";\"",
        "-- a;\n/* ; /* ; */ */ SELECT $x$;$x$, E'\\';'",
    ]
    assert words("SET  a.b/* */= 'X'") == ["set", "a", ".", "b", "=", "'X'"]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("SET SESSION lastbit.within TO 3", ("lastbit.within", "3")),
        ("SET TIME ZONE 'UTC'", ("timezone", "UTC")),
        ("SET NAMES 'UTF8'", ("client_encoding", "UTF8")),
        ("SET DateStyle = ISO, MDY", ("datestyle", "iso, mdy")),
        ("SET search_path TO DEFAULT", ("search_path", None)),
        ("RESET lastbit.epsilon", ("lastbit.epsilon", None)),
        ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", None),
        ("SET lastbit.delta = 1e-9", ("lastbit.delta", "1e-9")),
    ],
)
def test_settings_are_read(said: str, meant: object) -> None:
    assert assignment(said) == meant


@pytest.mark.parametrize("name", ["lastbit.epsilon", '"lastbit"."rho"', "lastbit.no"])
def test_a_price_is_not_set_for_a_transaction(name: str) -> None:
    (error,) = errors(LOGIN + query(f"SET LOCAL {name} = '9'"))
    assert error["C"] == "0A000"
    assert tags(query("SET LOCAL work_mem = 1")) == "CZ"


def test_a_default_price_gives_way_to_what_is_asked() -> None:
    options = Options(user="ana", epsilon="0.1")
    assert options.price == {"epsilon": "0.1"}
    options.set("lastbit.within", "10")
    assert options.price == {"within": "10"}
    options.set("lastbit.epsilon", "0.2")
    assert options.price == {"within": "10", "epsilon": "0.2"}
    for name, value in (("lastbit.epsilon", "much"), ("client_encoding", "LATIN1")):
        with pytest.raises(WrongOption):
            options.set(name, value)


def test_only_a_signed_in_session_reaches_the_desk() -> None:
    door = FakeDoor()
    told(startup() + message("p", b"wrong\0") + query("SELECT 1"), door)
    assert not door.fake.paid and not door.fake.signed
    assert Session.run.__doc__


def test_parameters_of_a_cursor_and_of_a_preview_are_those_that_were_sent() -> None:
    door = FakeDoor()
    sql = "DECLARE c CURSOR FOR SELECT count(*) FROM t WHERE a = $1"
    assert tags(query("BEGIN") + parse(sql) + bind(b"x") + execute() + SYNC, door).endswith("12NCZ")
    (paid,) = door.fake.paid
    assert (paid.values, paid.types) == (("x",), (25,))
    assert paid.sql == "SELECT count(*) FROM t WHERE a = $1"
    describe = message("D", b"Sc\0")
    found = told(LOGIN + parse(sql, "c") + describe + SYNC)
    assert ("t", struct.pack(">hi", 1, 25)) in found
    (error,) = errors(LOGIN + parse("SET a = $1") + bind() + execute() + SYNC)
    assert error["C"] == "42601"


def test_a_cursor_is_described_as_a_portal() -> None:
    sent = query("BEGIN") + query("DECLARE C CURSOR FOR SELECT 1") + message("D", b"Pc\0") + SYNC
    assert tags(sent + query("FETCH ALL FROM c")) == "CZNCZTZTDDDDDCZ"


def test_a_simple_text_is_skipped_up_to_sync() -> None:
    door = FakeDoor()
    sent = execute(portal="none") + query("SELECT 1") + SYNC
    assert tags(sent, door) == "EZ" and not door.fake.paid


def test_what_is_kept_is_bounded_with_names_types_and_values() -> None:
    name, types = "n" * 300_000, struct.pack(">i", 25) * 1001
    many = b"".join(parse("SELECT 1", f"{place}{name}") for place in range(9))
    assert [error["C"] for error in errors(LOGIN + many + SYNC)] == ["54000"]
    body = b"a\0SELECT 1\0" + struct.pack(">H", 1001) + types
    assert [error["C"] for error in errors(LOGIN + message("P", body) + SYNC)] == ["54000"]
    many = b"".join(bind(b"x" * 300_000, portal=str(place)) for place in range(9))
    (error,) = errors(LOGIN + parse("SELECT $1") + many + SYNC)
    assert error["C"] == "54000"


def test_results_that_are_fetched_in_part_are_bounded_before_they_are_paid() -> None:
    door = FakeDoor()
    sent = query("BEGIN") + parse("SELECT 1")
    sent += b"".join(bind(portal=str(place)) + execute(1, str(place)) for place in range(12))
    assert tags(sent + SYNC, door) == "CZ1" + "2NDs" * 10 + "2EZ"
    assert len(door.fake.paid) == 10


def test_cursors_and_portals_are_held_within_one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    door = FakeDoor()
    cursors = "".join(f"DECLARE c{place} CURSOR FOR SELECT 1;" for place in range(6))
    portals = b"".join(bind(portal=str(place)) + execute(1, str(place)) for place in range(6))
    sent = LOGIN + query(f"BEGIN; {cursors}") + parse("SELECT 1") + portals + SYNC
    (error,) = errors(sent, door)
    assert error["C"] == "54000" and len(door.fake.paid) == 10
    monkeypatch.setattr(
        "lastbit.serve.sqlport.session._MOST_CELLS", 20
    )  # a result here has ten values
    door = FakeDoor()
    (error,) = errors(LOGIN + query(f"BEGIN; {cursors}"), door)
    assert error["C"] == "54000" and len(door.fake.paid) == 3


def test_every_message_with_a_text_is_counted() -> None:
    door = FakeDoor()
    tags(query("SHOW " + " " * 3000) + parse("SELECT" + " " * 2000) + bind(b"x" * 5000), door)
    assert [size // 1000 for size in door.fake.sizes] == [3, 2, 5]
    door = FakeDoor()
    tags(parse("SELECT $1") + bind(b"x" * 5000) + SYNC, door)
    assert [size // 1000 for size in door.fake.sizes] == [0, 5]


def test_a_short_message_counts_the_statement_that_it_names() -> None:
    sql = "EXPLAIN SELECT " + "1," * 20_000 + "1"
    for sent, count in (
        (bind(name="a"), 1),
        (message("D", b"Sa\0"), 1),
        (bind(name="a") + message("D", b"P\0"), 2),
        (bind(name="a") + execute(), 2),
        (bind(name="none") + SYNC + execute(portal="none"), 0),
    ):
        door = FakeDoor()
        tags(parse(sql, "a") + sent + SYNC, door)
        assert sum(door.fake.sizes) // len(sql) == 1 + count


def test_explain_of_many_options_is_refused_at_once() -> None:
    (error,) = errors(LOGIN + query("EXPLAIN (" + "a " * 30_000 + ") SELECT 1"))
    assert error["C"] == "42601"


def test_a_text_is_bounded() -> None:
    for sql in ("SHOW ALL;" * 101, "SELECT 1" + " " * (1 << 16)):
        (error,) = errors(LOGIN + query(sql))
        assert error["C"] == "54000"


async def turns_of_others(sent: bytes, door: FakeDoor) -> int:
    """How often somebody else has their turn while this is answered."""
    count = 0

    async def other() -> None:
        nonlocal count
        while True:
            count += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await served(LOGIN + sent, door)
    task.cancel()
    return count


def test_others_have_their_turn_between_messages() -> None:
    sent = SYNC * 500 + query("SET work_mem = 1;" * 100)
    assert asyncio.run(turns_of_others(sent, FakeDoor())) > 600


@pytest.mark.parametrize(("rows", "columns"), [(20_000, 10), (500, 400), (100, 2_000)])
def test_others_have_their_turn_between_rows(rows: int, columns: int) -> None:
    class Large(FakeAsking):
        async def answered(self, *_: object, **__: object) -> Result:
            return Result(columns=(Column("n", 20),) * columns, rows=[[1] * columns] * rows)

    door = FakeDoor()
    door.fake = Large()
    assert asyncio.run(turns_of_others(query("SELECT 1"), door)) >= rows * columns // 2_000


def test_what_was_sent_is_not_begun_once_the_client_has_hung_up() -> None:
    class Leaving(FakeDoor):
        session: Session

        def ended(self, wire: object) -> None:
            self.session.hung_up()

    async def paid() -> int:
        door = Leaving()
        wire, transport = Wire(door), Transport()
        wire.connection_made(transport)  # type: ignore[arg-type]  # as much of one as is used
        door.session = Session(wire, door)
        wire.data_received(LOGIN + query("SELECT 1") * 20)
        running = asyncio.create_task(door.session.run())
        while not door.fake.paid:
            await asyncio.sleep(0)
        wire.eof_received()
        await running
        return len(door.fake.paid)

    assert asyncio.run(paid()) < 3


def test_a_cancel_is_of_all_up_to_the_next_sync() -> None:
    class Cancelled(FakeAsking):
        async def described(self, statement: Statement, options: Options) -> Any:
            self.stopped.set()
            return [], (Column("n", 20), Column("k", 25))

    door = FakeDoor()
    door.fake = Cancelled()
    sent = parse("SELECT 1") + bind() + message("D", b"P\0") + execute() + SYNC + query("SELECT 1")
    assert tags(sent, door) == "12TEZNTDDDDDCZ"
    assert len(door.fake.paid) == 1


def test_secrets_are_not_in_what_is_printed_of_a_message() -> None:
    assert TOKEN not in repr(later_message(b"p", TOKEN.encode() + b"\0"))
