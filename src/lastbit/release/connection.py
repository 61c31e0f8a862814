"""The connection to a server: JSON over HTTPS, by a token that goes nowhere else.

Redirects are refused, certificates are verified always, and http:// is for the loopback address
alone. The token is in no repr, and errors are raised outside of the frames that hold it. A request
is tried again where the connection drops, and a reply that is too long or too slow is cut off.

Checked  tests/release/test_remote.py (against servers that lie)
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote, urlsplit

from lastbit.errors import (
    BudgetExceeded,
    InvalidParameter,
    LastbitError,
    NotAllowed,
    QueryRefused,
    ServerFailed,
)
from lastbit.reading import parse_json
from lastbit.servers import Secret

API = "/api/v1"
LOOPBACK = ("127.0.0.1", "::1", "localhost")
TOKEN = "LASTBIT_TOKEN"
_TOKEN = re.compile(r"[A-Za-z0-9_.~+/=-]{8,512}", re.ASCII)
_MOST = 4 << 20
_PIECE = 1 << 16
_PATIENCE = 30.0  # seconds without a byte
_LONGEST = 300.0  # seconds for one response
_TRIES = 5
LONGEST_WAIT = 60.0
MOST_WORDS = 500


def token_of(given: Secret | None) -> Secret:
    """The token that is given, or that of the environment."""
    found = Secret(os.environ.get(TOKEN, "")) if given is None else given
    if not found.revealed():
        raise NotAllowed(f"no token is given; pass token=..., or set {TOKEN}")
    if not _TOKEN.fullmatch(str(found.revealed())):
        problem, remedy = "is not a token", "copy the whole of it: lbt_..."
        raise InvalidParameter("token", problem=problem, remedy=remedy)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a server said: JSON that nobody has checked yet."""

    status: int
    retry_after: float | None
    body: Any
    unsure: bool = False
    """Whether an earlier try was lost, and may have arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Where a table is, and the token by which it is asked."""

    host: str
    port: int
    tls: bool
    token: Secret = field(compare=False)

    @staticmethod
    def at(address: str, token: Secret | None) -> tuple[Server, str]:
        """The server of an address, and the table's name: https://stats.example.org/visits."""

        def wrong(problem: str, remedy: str = "") -> InvalidParameter:
            remedy = remedy or 'write, say, "https://stats.example.org/visits"'
            return InvalidParameter("the address", problem=problem, remedy=remedy)

        try:
            parts = urlsplit(address)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise wrong("cannot be read") from None
        if any(ord(letter) <= 32 or ord(letter) == 127 for letter in address):
            raise wrong("holds blanks")
        if not host.isascii():
            raise wrong("has a host that is not ASCII", "write its name as xn--...")
        if "@" in parts.netloc or parts.query or parts.fragment:
            remedy = f"leave it out; a token is passed as token=..., or in {TOKEN}"
            raise wrong("holds more than a host and a table", remedy)
        table = unquote(parts.path.removeprefix("/"))
        if not host or not table or "/" in table:
            raise wrong("names no table of a server")
        tls = parts.scheme.lower() == "https"
        if not tls and host not in LOOPBACK:
            raise wrong("is not encrypted", "write https://...; http:// is for this machine alone")
        usual = 443 if tls else 80
        server = Server(host=host, port=port or usual, tls=tls, token=token_of(token))
        return server, table

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' if self.tls else ''}://{host}:{self.port}"

    def get(self, path: str, *, most: int = _MOST) -> Reply:
        """What is at this path; tried again where the connection drops."""
        return self._send("GET", path, None, {}, most)

    def post(self, path: str, body: Mapping[str, Any], *, key: str | None = None) -> Reply:
        """What it says to this; tried again only if nothing is paid, or by a key once."""
        headers = {} if key is None else {"Idempotency-Key": key}
        return self._send("POST", path, json.dumps(body).encode(), headers, _MOST)

    def _send(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], most: int
    ) -> Reply:
        problem = ""
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(0.25 * 2**attempt)
            # the frames that hold the token are left before anything is raised
            reply, failed, final = self._send_once(method, path, body, headers, most)
            if final:
                raise ServerFailed(f"{self} {failed}")
            if reply is None:
                problem = failed
            elif reply.status == 429 and attempt + 1 < _TRIES:
                time.sleep(min(reply.retry_after or 1.0, LONGEST_WAIT))
            else:
                return replace(reply, unsure=bool(problem))
        raise ServerFailed(f"{self} {problem}; look at the address, and whether the server runs")

    def _send_once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], most: int
    ) -> tuple[Reply | None, str, bool]:
        """The reply; or what went wrong, and whether that is final."""
        kind = {} if body is None else {"Content-Type": "application/json"}
        every = {"Accept": "application/json", "Connection": "close", **kind, **headers}
        connection, late = self._connection(), threading.Event()
        try:
            connection.connect()
            sent = {**every, "Authorization": f"Bearer {self.token.revealed()}"}
            with _deadline(connection.sock, late):
                connection.request(method, f"{API}{path}", body=body, headers=sent)
                response = connection.getresponse()
                redirected = 300 <= response.status < 400
                text = b"" if redirected else _read_body(response, most)
            if redirected:
                return None, "sends elsewhere (a redirect), and the token is not sent there", True
            if text is None or late.is_set():
                return None, _TOO_MUCH, True
            retry = response.headers.get("Retry-After", "")
            wait = float(retry) if retry.isascii() and retry.isdigit() and len(retry) < 7 else None
            nothing = response.status == 204 and not text
            value = None if nothing else parse_json(text, most_bytes=most)
            return Reply(status=response.status, retry_after=wait, body=value), "", False
        except ssl.SSLCertVerificationError:
            return None, "has a certificate that is not valid for it; ask its steward", True
        except ValueError:
            return None, "does not answer in JSON; look at the address", True
        except (OSError, http.client.HTTPException):
            if late.is_set():
                return None, _TOO_MUCH, True
            return None, "cannot be reached, or the connection drops", False
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if not self.tls:
            host = "127.0.0.1" if self.host == "localhost" else self.host
            return http.client.HTTPConnection(host, self.port, timeout=_PATIENCE)
        verified = ssl.create_default_context()
        return http.client.HTTPSConnection(
            self.host, self.port, timeout=_PATIENCE, context=verified
        )

    def words(self, said: object) -> str:
        """What a server says, to be shown: cut, without what steers a terminal, and no token."""
        text = self.token.hidden(str(said or ""))[:MOST_WORDS]
        return "".join(letter if letter.isprintable() else " " for letter in text)

    def good(self, reply: Reply, *statuses: int) -> dict[str, Any]:
        """The JSON object of a reply that has one of these statuses; else its problem, raised."""
        if reply.status in statuses and isinstance(reply.body, dict):
            return reply.body
        raise self._problem(reply)

    def _problem(self, reply: Reply) -> LastbitError:
        said = reply.body if isinstance(reply.body, dict) else {}
        kind, words = str(said.get("type", "")).rpartition("/")[2], self.words(said.get("detail"))
        if reply.status == 401:
            return NotAllowed(
                f"{self} refuses the token: it is wrong, expired or revoked; make another in the "
                f"browser, or ask a steward"
            )
        if kind == "over-budget":
            return BudgetExceeded(words or "not enough is left")
        if reply.status in (403, 404, 409):
            return NotAllowed(f"{self} refuses: {words or 'not allowed'}")
        if 400 <= reply.status < 500 and words:
            remedy = "nothing was charged"
            return QueryRefused("the question", problem=f"is refused: {words}", remedy=remedy)
        return ServerFailed(f"{self} fails with status {reply.status}; {words or 'try again'}")


_TOO_MUCH = "answers more than is taken, or too slowly"


@contextmanager
def _deadline(line: socket.socket, late: threading.Event) -> Iterator[None]:
    """End the connection if what is done inside takes too long, though bytes keep coming."""

    def end() -> None:
        late.set()
        with suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(_LONGEST, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _read_body(response: http.client.HTTPResponse, most: int) -> bytes | None:
    """The body, unless it is too long."""
    pieces, length = [], 0
    while piece := response.read1(_PIECE):
        pieces.append(piece)
        length += len(piece)
        if length > most:
            return None
    if response.length:  # less came than was announced
        raise http.client.IncompleteRead(b"", response.length)
    return b"".join(pieces)
