"""Raw sockets: behind a request that could be read in two ways, nothing is read as a request."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count, pairwise
from typing import Any

import h11
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from lastbit.serve.framing import StrictConnection, head_problem
from lastbit.serve.routes import Route
from lastbit.serve.safety import MOST_HEADER_BYTES, Rates
from tests.evidence import Extent
from tests.serve.serving import Serving, served, until_closed

POST = "POST /sign-in?00000000 HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
SMUGGLED = b"GET /healthz?00000000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
SEEN: dict[str, list[str]] = {}
"""By the number of a connection: the paths that reached a handler."""
NUMBER = b"00000000"
NUMBERS = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("framing")
    with pytest.MonkeyPatch.context() as patch, served(folder, handler=noting) as running:
        patch.setattr(Rates, "take", lambda *_: None)
        yield running


def noting(route: Route) -> Any:
    async def handler(request: Request) -> Response:
        SEEN.setdefault(request.url.query, []).append(request.url.path)
        body = await request.body() if request.method == "POST" else b""
        return PlainTextResponse(f"{request.url.path} {len(body)}")

    return handler


# the head's own fields, and what follows it before the smuggled request
REFUSED: dict[str, tuple[str, bytes]] = {
    "both lengths": ("Content-Length: 5\r\nTransfer-Encoding: chunked", b"0\r\n\r\n"),
    "both lengths, turned": ("Transfer-Encoding: chunked\r\nContent-Length: 5", b"0\r\n\r\n"),
    "both lengths, no end": ("Content-Length: 0\r\nTransfer-Encoding: chunked", b""),
    "two lengths that differ": ("Content-Length: 0\r\nContent-Length: 5", b""),
    "two lengths that are one": ("Content-Length: 0\r\nContent-Length: 0", b""),
    "a list of lengths": ("Content-Length: 0, 5", b""),
    "a list of one length": ("Content-Length: 0, 0", b""),
    "below 0": ("Content-Length: -1", b""),
    "with a plus": ("Content-Length: +0", b""),
    "in hexadecimal": ("Content-Length: 0x0", b""),
    "with an underscore": ("Content-Length: 0_0", b""),
    "with a point": ("Content-Length: 0.0", b""),
    "empty": ("Content-Length:", b""),
    "huge": ("Content-Length: 99999999999999999999999", b""),
    "of many digits": ("Content-Length: " + "0" * 5001, b""),
    "another digit": ("Content-Length: \u0660", b""),
    "a blank before the colon": ("Content-Length : 0", b""),
    "a tab before the colon": ("Transfer-Encoding\t: chunked", b"0\r\n\r\n"),
    "identity": ("Transfer-Encoding: identity", b""),
    "gzip": ("Transfer-Encoding: gzip, chunked", b"0\r\n\r\n"),
    "chunked twice": ("Transfer-Encoding: chunked, chunked", b"0\r\n\r\n"),
    "two encodings": ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", b"0\r\n\r\n"),
    "xchunked": ("Transfer-Encoding: xchunked", b"0\r\n\r\n"),
    "quoted": ('Transfer-Encoding: "chunked"', b"0\r\n\r\n"),
    "vertical tab": ("Transfer-Encoding:\x0bchunked", b"0\r\n\r\n"),
    "no encoding": ("Transfer-Encoding:", b""),
    "folded": ("Transfer-Encoding:\r\n chunked", b"0\r\n\r\n"),
    "folded away": ("X: y\r\n Content-Length: 5", b""),
    "folded by a tab": ("X: y\r\n\tz", b""),
    "LF alone": ("X: y\nContent-Length: 0", b""),
    "LF alone at the end": ("X: y\n", b""),
    "CR alone": ("X: y\rContent-Length: 0", b""),
    "CR twice": ("X: y\r", b""),
    "NUL": ("X: y\0", b""),
    "a field without a name": (": y", b""),
    "no field": ("just words", b""),
    "a chunk without a size": ("Transfer-Encoding: chunked", b"\r\n"),
    "a chunk below 0": ("Transfer-Encoding: chunked", b"-1\r\n"),
    "a chunk with a plus": ("Transfer-Encoding: chunked", b"+0\r\n\r\n"),
    "a chunk in C": ("Transfer-Encoding: chunked", b"0x0\r\n\r\n"),
    "a huge chunk": ("Transfer-Encoding: chunked", b"f" * 30 + b"\r\n"),
    "a chunk that ends early": ("Transfer-Encoding: chunked", b"5\r\nabc\r\n0\r\n\r\n"),
    "a chunk that ends late": ("Transfer-Encoding: chunked", b"1\r\nabc\r\n0\r\n\r\n"),
    "a chunk that ends in LF": ("Transfer-Encoding: chunked", b"1\r\na\n0\r\n\r\n"),
    "a size that ends in LF": ("Transfer-Encoding: chunked", b"1\na\r\n0\r\n\r\n"),
    "an extension that ends in LF": ("Transfer-Encoding: chunked", b"1;a\nb\r\na\r\n0\r\n\r\n"),
    "a folded trailer": ("Transfer-Encoding: chunked", b"0\r\n a: b\r\n\r\n"),
}
# requests that are answered, and are the last of their connection
LAST: dict[str, tuple[str, bytes]] = {
    "chunks": ("Transfer-Encoding: chunked", b"3\r\nabc\r\n0\r\n\r\n"),
    "CHUNKED": ("transfer-encoding: CHUNKED", b"0\r\n\r\n"),
    "chunks that end in LF": ("Transfer-Encoding: chunked", b"0\r\n\n"),
    "a trailer": ("Transfer-Encoding: chunked", b"0\r\nContent-Length: 5\r\n\r\n"),
    "a trailer in LF": ("Transfer-Encoding: chunked", b"0\r\nX: y\n\n"),
    "an extension": ("Transfer-Encoding: chunked", b"1;a=b\r\na\r\n0\r\n\r\n"),
}


class Exchange:
    """A connection: what came back on it, and which paths reached a handler."""

    def __init__(self, server: Serving, sent: bytes, places: tuple[int, ...] = ()) -> None:
        number = f"{next(NUMBERS):08}"
        sent = sent.replace(NUMBER, number.encode())
        with server.socket() as line:
            try:
                for start, end in pairwise((0, *places, len(sent))):
                    line.sendall(sent[start:end])
            except ConnectionError:
                pass  # it is closed already
            self.got = until_closed(line)
        self.seen = SEEN.get(number, [])
        # nothing that a handler says looks like a response
        self.statuses = [int(part[:3]) for part in self.got.split(b"HTTP/1.1 ")[1:]]


def cuts(length: int, extent: Extent) -> Iterator[tuple[int, ...]]:
    """At once, in two at any place, a byte at a time."""
    yield ()
    source = random.Random(length)
    for place in sorted({source.randrange(1, length) for _ in range(extent.number(1, 12))}):
        yield (place,)
    if extent.is_many:
        yield tuple(range(1, min(length, 400)))


def test_nothing_behind_a_malformed_request_is_read(server: Serving, extent: Extent) -> None:
    """Failed before: 400, and the next request was answered; lines of LF, folds were taken."""
    for name, (fields, body) in REFUSED.items():
        sent = f"{POST}{fields}\r\n\r\n".encode() + body + SMUGGLED
        for places in cuts(len(sent), extent):
            found = Exchange(server, sent, places)
            assert found.statuses in ([400], [431], [] if places else [400]), (name, found.got)
            assert "/healthz" not in found.seen, name


def test_nothing_behind_chunks_is_read(server: Serving, extent: Extent) -> None:
    for name, (fields, body) in LAST.items():
        sent = f"{POST}{fields}\r\n\r\n".encode() + body + SMUGGLED
        for places in cuts(len(sent), extent):
            found = Exchange(server, sent, places)
            assert found.statuses == [200] and found.seen == ["/sign-in"], (name, found.got)
            assert b"connection: close" in found.got.lower(), name


@pytest.mark.parametrize("line", ["GET /?00000000 HTTP/1.0", "POST /sign-in?00000000 HTTP/1.0"])
def test_old_http_has_no_chunks(server: Serving, line: str) -> None:
    head = f"{line}\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    found = Exchange(server, head + b"0\r\n\r\n" + SMUGGLED)
    assert found.statuses == [400] and found.seen == []


def test_a_head_that_is_malformed_later_on(server: Serving) -> None:
    """The second request of a connection is judged as the first one is."""
    fine = f"{POST}Content-Length: 2\r\n\r\nab".encode()
    for name, (fields, body) in REFUSED.items():
        bad = f"{POST}{fields}\r\n\r\n".encode() + body
        found = Exchange(server, fine + SMUGGLED + bad + SMUGGLED)
        assert found.statuses in ([200, 200, 400], [200, 200, 431]), name
        assert found.seen[:2] == ["/sign-in", "/healthz"] and "/healthz" not in found.seen[2:]


def test_requests_that_are_well_formed_share_a_connection(server: Serving) -> None:
    end = SMUGGLED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    one = f"{POST}Content-Length: 3\r\n\r\nabc".encode()
    found = Exchange(server, one + SMUGGLED + one + end)
    assert found.statuses == [200] * 4
    assert found.seen == ["/sign-in", "/healthz"] * 2


def test_a_length_that_is_honest_and_too_large(server: Serving) -> None:
    """What follows is the body, however it looks."""
    with server.socket() as line:
        line.sendall(f"{POST}Content-Length: 999999999\r\n\r\n".encode() + SMUGGLED * 3)
        assert line.recv(12) == b"HTTP/1.1 413"
    assert NUMBER.decode() not in SEEN


def test_a_strict_connection_stays_broken() -> None:
    connection = StrictConnection(h11.SERVER, MOST_HEADER_BYTES)
    connection.receive_data(b"GET / HTTP/1.1\nHost: a\r\n\r\n" + SMUGGLED)
    for _ in range(3):
        with pytest.raises(h11.RemoteProtocolError):
            connection.next_event()


def test_every_prefix_of_a_head_that_is_fine_is_fine() -> None:
    head = f"{POST}Content-Length: 3\r\nX: a\tb\r\n\r\n".encode()
    for end in range(len(head) + 1):
        assert head_problem(head[:end]) == ""
