"""Clients that take their time: the server does not wait for them, and answers the others."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from lastbit.serve import app
from lastbit.serve.routes import Route
from lastbit.serve.safety import PatientProtocol
from tests.serve.serving import Serving, served, until_closed

HEAD = b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"


class Hasty(PatientProtocol):
    request_seconds = 0.3
    drain_seconds = 0.3
    most_connections = 40


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    def told(route: Route) -> Any:
        async def handler(request: Request) -> Response:
            if route.handler == "health":
                return PlainTextResponse("ok")
            if route.handler == "sign_in":
                return PlainTextResponse("x" * (64 << 20))
            return PlainTextResponse(str(len(await request.body())))

        return handler

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "_handler", told)
        with served(tmp_path, protocol=Hasty) as running:
            yield running


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
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.sendall(b"GET /sign-in HTTP/1.1\r\nHost: localhost\r\n\r\n")
        closed = threading.Event()
        while not closed.wait(0.05):  # the server gives up
            if not server_connections(server):
                closed.set()
        assert len(until_closed(line)) < 64 << 20


def server_connections(server: Serving) -> int:
    """How many connections to the port are open, as the system tells."""
    port = f":{server.settings.port:04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(line.split()[1].endswith(port) and line.split()[3] == "01" for line in lines)


def test_slowloris(server: Serving) -> None:
    """Ten times the connections that the server holds, each with half a request, which a thread
    opens again as they are closed: it still answers at once."""
    over = threading.Event()

    def attack() -> None:
        with ExitStack() as lines:
            while not over.is_set():
                try:
                    line = lines.enter_context(server.socket())
                    line.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nx: ")
                except OSError:
                    continue
                if len(lines._exit_callbacks) > 150:  # type: ignore[attr-defined]
                    lines.pop_all().close()

    attackers = [threading.Thread(target=attack) for _ in range(2)]
    for one in attackers:
        one.start()
    try:
        good = 0
        for _ in range(200):
            try:
                good += server.request("GET", "/healthz").status == 200
            except ConnectionError:  # its place was taken: a client tries again
                continue
            if good == 20:
                break
    finally:
        over.set()
        for one in attackers:
            one.join()
    assert good == 20
    assert server.request("GET", "/healthz").status == 200


def test_a_slow_but_honest_client(server: Serving) -> None:
    """A whole request within the time: in as many pieces as it likes."""
    with server.socket() as line:
        sent = HEAD + b"Content-Length: 5\r\nConnection: close\r\n\r\nhello"
        for place in range(0, len(sent), 7):
            line.sendall(sent[place : place + 7])
        got = until_closed(line)
        assert got.startswith(b"HTTP/1.1 200") and got.endswith(b"5")
