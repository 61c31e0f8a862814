"""Clients that take their time: the server does not wait for them, and answers the others."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from lastbit.serve.routes import Route
from lastbit.serve.safety import PatientProtocol
from tests.serve.serving import Serving, served, until_closed

HEAD = b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"


class Hasty(PatientProtocol):
    request_seconds = 1.0
    drain_seconds = 0.3
    most_connections = 40


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    with served(tmp_path, protocol=Hasty, handler=told) as running:
        yield running


def told(route: Route) -> Any:
    async def handler(request: Request) -> Response:
        if route.handler == "signing.health":
            return PlainTextResponse("ok")
        if route.handler == "signing.sign_in":
            return PlainTextResponse("x" * (64 << 20))
        return PlainTextResponse(str(len(await request.body())))

    return handler


def trickled(line: socket.socket, first: bytes, next_: Callable[[], bytes]) -> bytes:
    """What comes back while bytes are sent one after the other, for ever."""
    line.sendall(first)
    line.settimeout(0.02)
    got = b""
    while True:
        try:
            part = line.recv(65536)
            if not part:
                return got
            got += part
        except TimeoutError:
            pass
        except ConnectionError:
            return got
        try:
            line.sendall(next_())
        except ConnectionError:
            return got


@pytest.mark.parametrize(
    ("first", "next_", "answered"),
    [
        (b"", b"", b"HTTP/1.1 408"),  # nothing at all
        (b"POST /sig", b"", b"HTTP/1.1 408"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"x: y\r\n", b"HTTP/1.1 408"),
        (b"G", b"G", b"HTTP/1.1 408"),
        (HEAD + b"Content-Length: 1000\r\n\r\n", b"", b""),
        (HEAD + b"Content-Length: 1000\r\n\r\n", b"x", b""),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n", b""),
        # answered before the body is over, which then never is
        (
            b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n",
            b"x",
            b"HTTP/1.1 200",
        ),
        # a second request on a connection that was good
        (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /", b"x", b"HTTP/1.1 200"),
    ],
)
def test_what_is_owed_too_long_is_not_waited_for(
    server: Serving, first: bytes, next_: bytes, answered: bytes
) -> None:
    with server.socket() as line:
        got = trickled(line, first, lambda: next_)
        assert got.startswith(answered), got
        assert got.count(b"HTTP/1.1 2") == answered.count(b"HTTP/1.1 2")
    assert server.request("GET", "/healthz").status == 200


def test_a_response_that_is_not_read(server: Serving) -> None:
    with server.socket() as line:
        line.sendall(b"GET /sign-in HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert line.recv(12) == b"HTTP/1.1 200"
        while server_connections(server):  # until the server gives up
            time.sleep(0.02)
        assert len(until_closed(line)) < 64 << 20


def server_connections(server: Serving) -> int:
    """How many connections to the port are open, as the system tells."""
    port = f":{server.settings.port:04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(line.split()[1].endswith(port) and line.split()[3] == "01" for line in lines)


class Small(PatientProtocol):
    most_connections = 10


def test_who_waits_longest_makes_room(tmp_path: Path) -> None:
    """Of thirty that have sent half a request the last ten are there, and are answered."""
    with served(tmp_path, protocol=Small, handler=told) as server, ExitStack() as opened:
        lines = []
        for _ in range(30):
            lines.append(opened.enter_context(server.socket()))
            lines[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        assert [until_closed(line) for line in lines[:20]] == [b""] * 20
        for line in lines[20:]:
            line.sendall(b"\r\n")
            assert line.recv(12) == b"HTTP/1.1 200"


def test_slowloris(server: Serving) -> None:
    """Three times the connections that the server holds, each with half a request, to which a
    thread adds header after header, and which it opens again when they are closed."""
    over = threading.Event()

    def attack() -> None:
        lines: list[socket.socket] = []
        while not over.wait(0.01):
            for line in list(lines):
                try:
                    line.sendall(b"x: y\r\n")
                except OSError:
                    line.close()
                    lines.remove(line)
            while len(lines) < 3 * Hasty.most_connections:
                lines.append(server.socket())
                lines[-1].sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        for line in lines:
            line.close()

    attacker = threading.Thread(target=attack)
    attacker.start()
    try:
        good = 0
        for _ in range(60):
            try:
                good += server.request("GET", "/healthz").status == 200
            except ConnectionError:  # its place was taken: a client tries again
                continue
            if good == 20:
                break
    finally:
        over.set()
        attacker.join()
    assert good == 20


def test_a_slow_but_honest_client(tmp_path: Path) -> None:
    """A whole request within the time: in as many pieces as it likes."""
    with served(tmp_path, handler=told) as server, server.socket() as line:
        sent = HEAD + b"Content-Length: 5\r\nConnection: close\r\n\r\nhello"
        for place in range(0, len(sent), 7):
            line.sendall(sent[place : place + 7])
        got = until_closed(line)
        assert got.startswith(b"HTTP/1.1 200") and got.endswith(b"5")
