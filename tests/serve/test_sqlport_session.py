"""One session of PostgreSQL's protocol, message by message, without a desk."""

from __future__ import annotations

import asyncio
import struct

import pytest

from lastbit.serve.sqlport.lexing import statements, words
from lastbit.serve.sqlport.options import Options, WrongOption, assignment
from lastbit.serve.sqlport.session import Session
from tests.serve.sqlbytes import (
    LOGIN,
    SYNC,
    TOKEN,
    FakeDoor,
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


def errors(sent: bytes) -> list[dict[str, str]]:
    return [error_of(body) for tag, body in told(sent) if tag == "E"]


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
