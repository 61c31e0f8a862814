"""Messages and values of the SQL port: what is read, what is written, and what is refused."""

from __future__ import annotations

import struct
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lastbit.serve.sqlport import messages as wire
from lastbit.serve.sqlport.lexing import parts, statements
from lastbit.serve.sqlport.messages import BadText, Column, Malformed, first_message, later_message
from lastbit.serve.sqlport.values import ARRAYS, WrongValue, encoded, parameter
from tests.serve.sqlbytes import bind, error_of, execute, message, parse, query, startup

BOUND = wire.Bind("p", "s", (), (b"one", b""), ())
TYPED = struct.pack(">Hii", 2, 20, 25)
LATER: list[tuple[bytes, object]] = [
    (query("SELECT 1"), wire.Ask("SELECT 1")),
    (parse("SELECT $1", "s"), wire.Parse("s", "SELECT $1", ())),
    (message("P", b"s\0SELECT\0" + TYPED), wire.Parse("s", "SELECT", (20, 25))),
    (bind(b"one", b"", name="s", portal="p"), BOUND),
    (message("D", b"Ss\0"), wire.Describe("S", "s")),
    (message("C", b"Pp\0"), wire.Close("P", "p")),
    (execute(7, "p"), wire.Execute("p", 7)),
    (execute(-7), wire.Execute("", 0)),
    (message("S"), wire.Plain("sync")),
    (message("H"), wire.Plain("flush")),
    (message("X"), wire.Plain("terminate")),
    (message("p", b"lbt_x\0"), wire.Password("lbt_x")),
]


@pytest.mark.parametrize(("sent", "meant"), LATER)
def test_a_message_is_of_exactly_its_bytes(sent: bytes, meant: object) -> None:
    tag, body = sent[:1], sent[5:]
    assert later_message(tag, body) == meant
    for size in range(len(body)):
        with pytest.raises(Malformed):
            later_message(tag, body[:size])
    with pytest.raises(Malformed):
        later_message(tag, body + b"\0")


def test_a_first_packet_is_of_exactly_its_bytes() -> None:
    body = startup(user="ana")[4:]
    found = first_message(body)
    assert found == wire.Startup(0, {"user": "ana", "database": "lastbit"})
    for size in range(len(body)):
        with pytest.raises(Malformed):
            first_message(body[:size])
    assert first_message(struct.pack(">i", 80877103)) == wire.Encrypt("tls")
    assert first_message(struct.pack(">i", 80877104)) == wire.Encrypt("gss")
    cancel = struct.pack(">ii", 80877102, 7)
    assert first_message(cancel + b"abcd") == wire.Cancel(7, b"abcd")
    for wrong in (body + b"\0", cancel + b"abc", cancel + b"x" * 257, struct.pack(">i", 2 << 16)):
        with pytest.raises(Malformed):
            first_message(wrong)


@given(st.sampled_from([bytes([tag]) for tag in range(256)]), st.binary(max_size=60))
def test_whatever_is_read_is_a_message_or_refused(tag: bytes, body: bytes) -> None:
    for read in (lambda: later_message(tag, body), lambda: first_message(body)):
        with suppress(Malformed, BadText):
            assert read() is not None


def test_a_number_of_parts_is_not_believed_before_they_are_there() -> None:
    for count in (1, 3, 65535):
        body = b"\0\0" + struct.pack(">H", count) + b"\0"
        for tag in (b"P", b"B"):
            with pytest.raises(Malformed, match="fewer parts than it says"):
                later_message(tag, body)
    value = b"\0\0" + struct.pack(">HHi", 0, 1, 1 << 30) + b"\0\0"
    with pytest.raises(Malformed, match="shorter than it says"):
        later_message(b"B", value)


def test_what_is_written_is_a_tag_a_length_and_a_body() -> None:
    assert wire.packed(b"Z", b"I") == b"Z\0\0\0\5I"
    assert wire.text("a\0b\ud800") == b"ab?\0"
    assert wire.data_row([None, b"", b"ab"]) == (
        b"D\0\0\0\x14\0\3" + b"\xff" * 4 + b"\0\0\0\0" + b"\0\0\0\2ab"
    )
    described = wire.row_description([Column("n", 20)], [1], {20: 8})
    assert described == b"T\0\0\0\x1a\0\1n\0" + struct.pack(">ihihih", 0, 0, 20, 8, -1, 1)
    found = wire.complaint(b"E", "ERROR", "0A000", "no\0", hint="so")
    assert error_of(found[5:]) == {
        "S": "ERROR",
        "V": "ERROR",
        "C": "0A000",
        "M": "no",
        "H": "so",
    }


# ---------------------------------------------------------------- values

OUT: list[tuple[int, Any]] = [
    (16, True),
    (16, False),
    (20, -(2**63)),
    (20, 2**63 - 1),
    (21, -1),
    (23, 7),
    (25, "it's\n\u00e9"),
    (26, 4_000_000_000),
    (701, 0.1),
    (701, -1e300),
    (701, float("inf")),
    (1082, date(1999, 12, 31)),
    (1114, datetime(2026, 1, 2, 3, 4, 5, 678900)),
    (1700, Decimal("-12345.6789")),
    (1700, Decimal("0.00001")),
    (1700, Decimal("1E+9")),
    (1700, Decimal(0)),
    (1009, ["a", None, 'q"u{o}te\\', "", "NULL"]),
    (1016, [1, -2]),
    (1016, []),
]


OF_CHILDREN = [
    (1082, "1999-12-31"),
    (1114, "2026-01-02 03:04:05"),
    (1114, "2026-01-02 03:04:05.060000"),
]


@pytest.mark.parametrize(("kind", "words"), OF_CHILDREN)
def test_days_and_times_come_as_texts_and_are_sent_in_binary(kind: int, words: str) -> None:
    """Answers come from a child as JSON, which has neither."""
    own = date.fromisoformat(words) if kind == 1082 else datetime.fromisoformat(words)
    column = Column("x", kind)
    assert encoded(words, column, 1) == encoded(own, column, 1)
    assert encoded(words, column, 0) == encoded(own, column, 0) == words.encode()


@pytest.mark.parametrize("form", [0, 1])
@pytest.mark.parametrize(("kind", "value"), OUT)
def test_another_program_reads_what_is_written(kind: int, value: Any, form: int) -> None:
    pytest.importorskip("psycopg", reason="psycopg is in requirements-engines.lock")
    from psycopg.adapt import Transformer
    from psycopg.pq import Format

    written = encoded(value, Column("x", kind), form)
    assert written is not None
    assert Transformer().get_loader(kind, Format(form)).load(written) == value
    assert encoded(None, Column("x", kind), form) is None


IN: list[tuple[Any, Any]] = [
    (7, 7),
    (-(2**40), -(2**40)),
    (0.1, 0.1),
    ("it's", "it's"),
    (True, True),
    (False, False),
    (date(1999, 12, 31), "1999-12-31"),
    (datetime(2026, 1, 2, 3, 4, 5), "2026-01-02 03:04:05"),
    (Decimal("-1234567.25"), -1234567.25),
    (Decimal("0.0625"), 0.0625),
    (None, None),
]


@pytest.mark.parametrize("form", ["t", "b"])
@pytest.mark.parametrize(("sent", "meant"), IN)
def test_what_another_program_writes_is_read(sent: Any, meant: Any, form: str) -> None:
    pytest.importorskip("psycopg", reason="psycopg is in requirements-engines.lock")
    from psycopg.adapt import PyFormat, Transformer

    if sent is None:
        assert parameter(None, 20, 0, 1) is None
        return
    dumper = Transformer().get_dumper(sent, PyFormat(form))
    found = parameter(bytes(dumper.dump(sent) or b""), dumper.oid or 25, int(form == "b"), 1)
    assert found == meant and type(found) is type(meant)


_KINDS = [0, 16, 18, 19, 20, 21, 23, 25, 26, 114, 700, 701, 1042, 1043, 1082, 1114, 1184, 1700]


@given(st.binary(max_size=20), st.sampled_from([*_KINDS, *ARRAYS, 17, -1, 99]), st.integers(0, 1))
def test_whatever_is_sent_is_a_value_or_refused(value: bytes, kind: int, form: int) -> None:
    try:
        found = parameter(value, kind, form, 1)
    except (WrongValue, BadText):
        return
    assert isinstance(found, bool | int | float | str)
    assert found not in (float("inf"), float("-inf")) and found == found


@pytest.mark.parametrize(
    ("value", "kind", "form"),
    [
        (b"nan", 701, 0),
        (struct.pack(">d", float("inf")), 701, 1),
        (b"1" * 1001, 20, 0),
        (b"1e999999999", 1700, 0),
        (b"\2", 16, 1),
        (b"perhaps", 16, 0),
        (b"2026-01-02 03:04:05+02", 1184, 0),
        (struct.pack(">hhHhh", 1, 2000, 0, 0, 1), 1700, 1),
        (struct.pack(">i", 2**31 - 1), 1082, 1),
        (b"{1}", 1007, 0),
    ],
)
def test_what_a_type_cannot_hold_is_refused(value: bytes, kind: int, form: int) -> None:
    with pytest.raises(WrongValue):
        parameter(value, kind, form, 1)


def test_a_text_with_nul_is_refused() -> None:
    for form in (0, 1):
        with pytest.raises(BadText):
            parameter(b"a\0b", 25, form, 1)


# ---------------------------------------------------------------- statements

_LETTERS = st.text(st.sampled_from("aeE1$;'\"\\/*- \n.(\u00e9"), max_size=40)


@given(_LETTERS)
def test_the_parts_of_a_text_are_the_text(text: str) -> None:
    every = list(parts(text))
    assert "".join(letters for _, letters, _ in every) == text
    assert all(text[place:].startswith(letters) for _, letters, place in every)


@given(_LETTERS)
def test_what_was_cut_is_not_cut_again(text: str) -> None:
    for one in statements(text):
        assert one and statements(one) == [one]
