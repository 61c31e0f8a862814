"""A real server for tests: uvicorn on a free loopback port, in a thread, and requests to it."""

from __future__ import annotations

import asyncio
import hashlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
import uvicorn

from lastbit.ledger import ROLES, Ledger
from lastbit.serve.app import Handler, application
from lastbit.serve.identity import COOKIE, Gate
from lastbit.serve.routes import Route
from lastbit.serve.safety import PatientProtocol, server_config
from lastbit.serve.settings import Settings
from lastbit.serve.store import Store

NAMES = {"steward": "stella", "analyst": "ana", "auditor": "otto"}


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def secret(self) -> str | None:
        """The session that the answer begins."""
        for line in self.headers.get_all("set-cookie") or ():
            if line.startswith(f"{COOKIE}="):
                return line.split(";")[0].partition("=")[2] or None
        return None


@dataclass(kw_only=True)
class Serving:
    """A server that runs, and its insides."""

    settings: Settings
    store: Store
    ledger: Ledger
    gate: Gate
    desk: Any
    tokens: dict[str, str] = field(default_factory=dict)
    """By role: a token of `NAMES[role]`, with all rights of the role."""

    @property
    def address(self) -> str:
        return self.settings.address

    def request(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        cookie: str | None = None,
        form: Mapping[str, str] | None = None,
        data: Any = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One request of its own connection; forms are sent as a browser on our page sends them."""
        said = dict(headers or {})
        if token is not None:
            said["Authorization"] = f"Bearer {token}"
        if cookie is not None:
            said["Cookie"] = f"{COOKIE}={cookie}"
        if form is not None:
            body = urlencode(form).encode()
            said.setdefault("Content-Type", "application/x-www-form-urlencoded")
            said.setdefault("Origin", self.address)
            said.setdefault("Sec-Fetch-Site", "same-origin")
        if data is not None:
            body = json.dumps(data).encode()
            said.setdefault("Content-Type", "application/json")
        connection = self.connection()
        try:
            connection.request(method, path, body=body, headers=said)
            found = connection.getresponse()
            return Answer(found.status, found.headers, found.read())
        finally:
            connection.close()

    def connection(self) -> http.client.HTTPConnection:
        if self.settings.socket is None:
            return http.client.HTTPConnection("127.0.0.1", self.settings.port, timeout=30)
        connection = http.client.HTTPConnection("localhost", timeout=30)
        connection.sock = self.socket()
        return connection

    def socket(self) -> socket.socket:
        """A connection on which a test writes what it likes."""
        if self.settings.socket is None:
            return socket.create_connection(("127.0.0.1", self.settings.port), timeout=30)
        unix = socket.socket(socket.AF_UNIX)
        unix.settimeout(30)
        unix.connect(str(self.settings.socket))
        return unix

    def raw(self, sent: bytes) -> bytes:
        """Whatever comes back until the server closes."""
        with self.socket() as line:
            line.sendall(sent)
            return until_closed(line)

    def session(self, role: str) -> str:
        """The secret of a new session of a role's principal."""
        return self.gate.link_used(self.gate.link_made(NAMES[role]).removeprefix("/link/"))

    def digest(self) -> str:
        """Of all that the server keeps: equal if nothing has changed."""
        rows = list(self.store.connection().iterdump())
        return hashlib.sha256(repr((rows, self.ledger.entries())).encode()).hexdigest()


def until_closed(line: socket.socket) -> bytes:
    """All bytes that a server sends before it closes."""
    parts: list[bytes] = []
    while True:
        try:
            part = line.recv(65536)
        except ConnectionResetError:
            part = b""
        if not part:
            return b"".join(parts)
        parts.append(part)


class NoDesk:
    """A desk without tables."""

    unwell = None
    catalogue = SimpleNamespace(tables={}, seen_by=lambda who: [])

    async def start(self) -> None: ...
    async def stop(self) -> None: ...


@contextmanager
def served(
    folder: Path,
    cards: tuple[Path, ...] = (),
    *,
    ledger: Ledger | None = None,
    desk: Any = None,
    protocol: type[PatientProtocol] = PatientProtocol,
    handler: Callable[[Route], Handler] | None = None,
    **settings: Any,
) -> Iterator[Serving]:
    """A server with a principal of each role, until the end of the block.

    With `handler`, routes have the handlers that it gives, in place of their own.
    """
    listening = _listening(settings)
    port = settings.pop("port", None) or (0 if "socket" in settings else listening.getsockname()[1])
    cards = cards or (folder / "none.toml",)
    told = Settings(cards=cards, state=folder / "state", port=port, **settings)
    ledger = ledger or Ledger.open(folder / "ledger")
    store = Store(told.state)
    gate = Gate(store, ledger, told)
    server = Serving(settings=told, store=store, ledger=ledger, gate=gate, desk=desk or NoDesk())
    for role in ROLES:
        ledger.set_principal(NAMES[role], role, by=NAMES["steward"])
        server.tokens[role] = gate.token_made(NAMES[role], name=role, days=1)[0]
    with pytest.MonkeyPatch.context() as patch:
        if handler is not None:
            patch.setattr("lastbit.serve.app._handler", handler)
        config = server_config(application(server.desk, gate, told))
    config.http = protocol
    runner = uvicorn.Server(config)

    async def run() -> None:
        await server.desk.start()
        try:
            await runner.serve(sockets=[listening])
        finally:
            await server.desk.stop()

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    try:
        while not runner.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.005)
        yield server
    finally:
        runner.should_exit = True
        thread.join(30)
        listening.close()
        assert not thread.is_alive(), "the server did not stop"


def _listening(settings: Mapping[str, Any]) -> socket.socket:
    if "socket" in settings:
        line = socket.socket(socket.AF_UNIX)
        line.bind(str(settings["socket"]))
    else:
        line = socket.socket()
        line.bind(("127.0.0.1", settings.get("port", 0)))
    return line
