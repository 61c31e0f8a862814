"""Messages of PostgreSQL's protocol, version 3: bytes to messages and back; no input, no output.

Law      a message that is read is one of the classes below, of exactly the bytes that the protocol
         says, or `Malformed` is raised: no byte is left over, none is missing, a length or a number
         of parts is never believed before the bytes are there. What is written is
         a tag, a length and a body
Theorem  to read b bytes takes time and memory of order b
Proof    `Fields` moves forward only; every part that is counted takes at least two bytes of it
Source   PostgreSQL 17, "Frontend/Backend Protocol", "Message Formats"
Differs  COPY, function calls and replication are read as what they are and refused
Checked  tests/serve/test_sqlport_messages.py
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

MOST_FIRST, MOST_BEFORE, MOST_BYTES = 10_000, 2_048, 1 << 20
"""Bytes of a first packet, of a message before a password is right, and of one afterwards."""
_VERSION = 3 << 16
_SSL, _GSS, _CANCEL = 80877103, 80877104, 80877102


class Malformed(Exception):
    """What came is not of the protocol: who sent it is told so, and the connection ends."""


class BadText(Exception):
    """A text is not UTF-8, or holds a NUL: the statement is refused, the connection goes on."""


# ---------------------------------------------------------------- from the client


@dataclass(frozen=True, slots=True)
class Startup:
    """Who wants to connect, and what they set from the start."""

    minor: int
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Encrypt:
    """TLS is asked for, or GSSAPI's encryption."""

    how: Literal["tls", "gss"]


@dataclass(frozen=True, slots=True)
class Cancel:
    """What runs on another connection is not wanted any more."""

    process: int
    secret: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Password:
    """The password, or a token, as it is."""

    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Ask:
    """The simple protocol: one text, perhaps of several statements."""

    sql: str


@dataclass(frozen=True, slots=True)
class Parse:
    """A statement to be kept under a name, with the types of its parameters that are known."""

    name: str
    sql: str
    types: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bind:
    """Values for the parameters of a statement: a portal comes of it."""

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    results: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Describe:
    """What a statement or a portal gives is to be told."""

    kind: Literal["S", "P"]
    name: str


@dataclass(frozen=True, slots=True)
class Execute:
    """A portal is to be run, or to go on."""

    portal: str
    most: int
    """Rows; 0: all."""


@dataclass(frozen=True, slots=True)
class Close:
    """A statement or a portal is not needed any more."""

    kind: Literal["S", "P"]
    name: str


@dataclass(frozen=True, slots=True)
class Plain:
    """A message without a body: sync, flush, terminate."""

    kind: Literal["sync", "flush", "terminate"]


@dataclass(frozen=True, slots=True)
class Unserved:
    """A part of the protocol that is not served: COPY, function calls."""

    what: str


First: TypeAlias = Startup | Encrypt | Cancel
Later: TypeAlias = Password | Ask | Parse | Bind | Describe | Execute | Close | Plain | Unserved


class Fields:
    """The parts of a body, one after the other."""

    __slots__ = ("_body", "_place")

    def __init__(self, body: bytes) -> None:
        self._body, self._place = body, 0

    def take(self, size: int) -> bytes:
        end = self._place + size
        if size < 0 or end > len(self._body):
            raise Malformed("a message is shorter than it says")
        part, self._place = self._body[self._place : end], end
        return part

    def rest(self) -> bytes:
        return self.take(len(self._body) - self._place)

    def int16(self) -> int:
        (number,) = struct.unpack(">h", self.take(2))
        return int(number)

    def int32(self) -> int:
        (number,) = struct.unpack(">i", self.take(4))
        return int(number)

    def count(self) -> int:
        """How many parts follow: each has two bytes at least."""
        (number,) = struct.unpack(">H", self.take(2))
        if 2 * number > len(self._body) - self._place:
            raise Malformed("a message has fewer parts than it says")
        return int(number)

    def raw_text(self) -> bytes:
        end = self._body.find(b"\x00", self._place)
        if end < 0:
            raise Malformed("a text does not end")
        part, self._place = self._body[self._place : end], end + 1
        return part

    def text(self) -> str:
        return _decoded(self.raw_text())

    def value(self) -> bytes | None:
        size = self.int32()
        return None if size == -1 else self.take(size)

    def finish(self) -> None:
        if self._place != len(self._body):
            raise Malformed("a message is longer than what it says")


def _decoded(part: bytes) -> str:
    try:
        return part.decode("utf-8")
    except UnicodeDecodeError:
        raise BadText("a text is not UTF-8") from None


def first_message(body: bytes) -> First:
    """What a first packet is, by what follows its length."""
    fields = Fields(body)
    code = fields.int32()
    if code in (_SSL, _GSS):
        fields.finish()
        return Encrypt("tls" if code == _SSL else "gss")
    if code == _CANCEL:
        process, secret = fields.int32(), fields.rest()
        if not 4 <= len(secret) <= 256:
            raise Malformed("a cancel has no key")
        return Cancel(process, secret)
    if code >> 16 != _VERSION >> 16:
        raise Malformed("speak version 3 of PostgreSQL's protocol")
    parameters: dict[str, str] = {}
    while name := fields.raw_text():
        try:
            parameters[_decoded(name)] = fields.text()
        except BadText:
            raise Malformed("a parameter is not UTF-8") from None
    fields.finish()
    return Startup(code & 0xFFFF, parameters)


def later_message(tag: bytes, body: bytes) -> Later:
    """What a message is, by its tag and what follows its length."""
    fields = Fields(body)
    message = _later(tag, fields)
    fields.finish()
    return message


def _later(tag: bytes, fields: Fields) -> Later:
    match tag:
        case b"Q":
            return Ask(fields.text())
        case b"P":
            name, sql = fields.text(), fields.text()
            return Parse(name, sql, tuple(fields.int32() for _ in range(_fours(fields))))
        case b"B":
            return _bind(fields)
        case b"D" | b"C":
            kind = fields.take(1)
            if kind not in (b"S", b"P"):
                raise Malformed("what is meant is neither a statement nor a portal")
            of: Literal["S", "P"] = "S" if kind == b"S" else "P"
            return (Describe if tag == b"D" else Close)(of, fields.text())
        case b"E":
            return Execute(fields.text(), max(fields.int32(), 0))
        case b"S":
            return Plain("sync")
        case b"H":
            return Plain("flush")
        case b"X":
            return Plain("terminate")
        case b"p":
            return Password(fields.text())
        case b"F" | b"d" | b"c" | b"f":
            fields.rest()
            return Unserved("a function call" if tag == b"F" else "COPY")
    raise Malformed("a message of this kind is not known")


def _fours(fields: Fields) -> int:
    """How many numbers of four bytes follow."""
    return fields.count()


def _bind(fields: Fields) -> Bind:
    portal, statement = fields.text(), fields.text()
    formats = tuple(fields.int16() for _ in range(fields.count()))
    values = tuple(fields.value() for _ in range(fields.count()))
    results = tuple(fields.int16() for _ in range(fields.count()))
    if not {*formats, *results} <= {0, 1} or len(formats) not in (0, 1, len(values)):
        raise Malformed("the formats of parameters or results are not understood")
    return Bind(portal, statement, formats, values, results)


# ---------------------------------------------------------------- to the client


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result: its name and PostgreSQL's number of its type."""

    name: str
    type: int


def packed(tag: bytes, *parts: bytes) -> bytes:
    """A message with this body."""
    body = b"".join(parts)
    return tag + struct.pack(">i", len(body) + 4) + body


def text(words: str) -> bytes:
    """A text as messages have it; what it cannot hold is left out."""
    return words.replace("\x00", "").encode("utf-8", "replace") + b"\x00"


def authentication(code: int) -> bytes:
    """0: it is right; 3: send the password as it is."""
    return packed(b"R", struct.pack(">i", code))


def negotiated(options: Sequence[str]) -> bytes:
    """Version 3.0 is spoken, and these options of another one are not known."""
    names = b"".join(map(text, options))
    return packed(b"v", struct.pack(">ii", 0, len(options)), names)


def parameter_status(name: str, value: str) -> bytes:
    """A setting of which clients are told."""
    return packed(b"S", text(name), text(value))


def key_data(process: int, secret: bytes) -> bytes:
    """The number and key by which the session is cancelled."""
    return packed(b"K", struct.pack(">i", process), secret)


def ready(status: Literal["I", "T", "E"]) -> bytes:
    """The next message is waited for; whether a transaction is open or has failed."""
    return packed(b"Z", status.encode())


def row_description(
    columns: Sequence[Column], formats: Sequence[int], sizes: Mapping[int, int]
) -> bytes:
    """The columns of a result; `sizes` are bytes of a type, where that is fixed."""
    parts = [struct.pack(">h", len(columns))]
    for column, form in zip(columns, formats, strict=True):
        size = sizes.get(column.type, -1)
        parts += [text(column.name), struct.pack(">ihihih", 0, 0, column.type, size, -1, form)]
    return packed(b"T", *parts)


def parameter_description(types: Sequence[int]) -> bytes:
    """The types of a statement's parameters."""
    return packed(b"t", struct.pack(">h", len(types)), *(struct.pack(">i", one) for one in types))


def data_row(values: Iterable[bytes | None]) -> bytes:
    """One row."""
    cells = [b"\xff\xff\xff\xff" if v is None else struct.pack(">i", len(v)) + v for v in values]
    return packed(b"D", struct.pack(">h", len(cells)), *cells)


def command_complete(tag: str) -> bytes:
    """A statement has been run."""
    return packed(b"C", text(tag))


NO_DATA, EMPTY, SUSPENDED = packed(b"n"), packed(b"I"), packed(b"s")
PARSED, BOUND, CLOSED = packed(b"1"), packed(b"2"), packed(b"3")


def complaint(
    tag: bytes, severity: str, code: str, message: str, detail: str = "", hint: str = ""
) -> bytes:
    """An error (E) or a notice (N)."""
    fields = {"S": severity, "V": severity, "C": code, "M": message, "D": detail, "H": hint}
    parts = (name.encode() + text(words) for name, words in fields.items() if words)
    return packed(tag, *parts, b"\x00")
