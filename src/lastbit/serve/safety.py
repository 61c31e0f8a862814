"""What reaches the application, and what a browser may do with its answers.

Law      A request is let through only if it names the server by its own name (Host), its path is
         plain, its headers are few and short, and, if it could change something on behalf of who is
         signed in by a browser, it was sent by a page of this server. Its body is counted as it
         comes. Every response has the headers of `HEADERS`
Theorem  (forgery)  No other site's page makes a browser change anything here
Proof    The API acts by a header that browsers never add by themselves (`identity.py`). All other
         unsafe requests pass `_forged`: browsers set Origin and Sec-Fetch-Site themselves, scripts
         cannot (Fetch, "forbidden request-header"). One of them must be there, and each that is
         there must say that the request is this server's own. GET and HEAD change nothing, but for
         the line of the audit log about a download
Theorem  (rebinding)  A page of another name that its owner points to this server's address reads
         nothing and changes nothing
Proof    Its requests have its own name as Host, and are refused before anything looks at them
Theorem  (slow clients)  A connection that owes bytes of a request, or takes none of a response, is
         closed after `REQUEST_SECONDS` or `DRAIN_SECONDS`. There are at most `MOST_CONNECTIONS`: a
         new one takes the place of that which has been waiting longest for its client
Proof    `PatientProtocol`: the clock starts with the connection, or with the first byte of the next
         request, and only a whole request stops it; bytes that trickle do not set it back
Theorem  (framing)  No byte is read as a request that another reader would not: `framing.py`
Source   Fetch Metadata Request Headers, W3C; RFC 6454 (Origin); RFC 9110 section 7.4 (421)
Checked  tests/serve/test_safety.py, test_framing.py, test_slow_clients.py
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, urlsplit

import h11
import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from lastbit.serve.framing import StrictConnection
from lastbit.serve.questions import Refusal
from lastbit.serve.routes import API
from lastbit.serve.settings import LOOPBACK, Settings

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
    }
)
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
MOST_HEADERS = 64
MOST_HEADER_BYTES = 16 << 10
MOST_CONNECTIONS = 512
REQUEST_SECONDS = 20.0
DRAIN_SECONDS = 30.0
_HOST = re.compile(r"([a-z0-9.-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?", re.ASCII)
_UNSAFE_IN_HEADER = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
# control characters, bytes that are not UTF-8, parts that are empty, lead upwards, or are too long
_NOT_PLAIN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\\\ufffd]|//|/\.{1,2}(?=/|$)|[^/]{257,}|/[0-9]{19,}(?=/|$)"
)
_ENCODED_SLASH = re.compile(rb"%(2f|5c)", re.IGNORECASE)
_LOG = logging.getLogger("lastbit.serve")

Failed = Callable[[Request, Exception], Awaitable[Response]]


class Safety:
    """The outermost layer of the application: it answers whatever happens further in."""

    def __init__(self, app: ASGIApp, *, settings: Settings, failed: Failed) -> None:
        self.app, self.settings, self.failed = app, settings, failed
        self.headers = dict(HEADERS)
        if settings.address.startswith("https:"):
            self.headers["strict-transport-security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answered(scope, receive, send)
        else:  # a web socket: there is none here
            await send({"type": "websocket.close", "code": 1008})

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"] = {**scope.get("state", {}), "identity": None, "route": None}
        request = Request(scope, receive)
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                message = {**message, "headers": self._dressed(scope, message.get("headers", ()))}
                started = True
                _LOG.info("%s", _logged(scope, message["status"]))
            await send(message)

        try:
            _check(scope, self.settings)
            await self.app(scope, _counted(receive, self.settings.most_body), sending)
        except ClientDisconnect:
            return
        except Exception as error:
            if started:
                raise Broken(type(error).__name__) from None  # closes the connection
            response = await self._refused(request, error)
            await response(scope, receive, sending)

    async def _refused(self, request: Request, error: Exception) -> Response:
        try:
            return await self.failed(request, error)
        except Exception as another:
            _LOG.error("%s while answering %s", type(another).__name__, type(error).__name__)
            return PlainTextResponse("This server made a mistake.\n", status_code=500)

    def _dressed(self, scope: Scope, headers: Any) -> list[tuple[bytes, bytes]]:
        """The headers of a response, with ours; refused if one could end a line."""
        given = [(bytes(name).lower(), bytes(value)) for name, value in headers]
        for name, value in given:
            if _UNSAFE_IN_HEADER.search(name + value):
                raise ValueError("a header of a response has a control character")
        ours = {name.encode(): value.encode() for name, value in self.headers.items()}
        if any(n == b"content-type" and v.startswith(b"text/html") for n, v in given):
            # with no-referrer, browsers would send "Origin: null" from the page's own forms
            ours[b"referrer-policy"] = b"same-origin"
        if any(name == b"transfer-encoding" for name, _ in scope["headers"]):
            ours[b"connection"] = b"close"  # what follows chunks is not read (`framing.py`)
        if scope["path"].startswith("/static/") and any(n == b"cache-control" for n, _ in given):
            del ours[b"cache-control"]
        return [(name, value) for name, value in given if name not in ours] + list(ours.items())


class Broken(Exception):
    """A response that began and could not be ended; says the class of what happened, no more."""


def _logged(scope: Scope, status: int) -> str:
    """Who asked for what, without values: of a path only the pattern, which has no secret."""
    identity, route = scope["state"]["identity"], scope["state"]["route"]
    who = "-" if identity is None else identity.principal
    return f"{who} {scope['method']} {'-' if route is None else route.path} {status}"


# ---------------------------------------------------------------- requests


def _check(scope: Scope, settings: Settings) -> None:
    """Refuse a request by its first line and headers alone."""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    size = sum(len(name) + len(value) for name, value in headers)
    if len(headers) > MOST_HEADERS or size > MOST_HEADER_BYTES:
        raise Refusal(431, "Too many headers", "Send fewer and shorter headers.", "bad-request")
    if len(scope["raw_path"]) + len(scope["query_string"]) > MOST_HEADER_BYTES:
        raise Refusal(414, "Too long", "Send a shorter address.", "bad-request")
    host = _one(headers, b"host")
    if host is None or not _is_ours(host.lower(), settings):
        detail = "This server is not known by the name in the Host header."
        raise Refusal(421, "Another server", detail, "wrong-host")
    if _NOT_PLAIN.search(scope["path"]) or _ENCODED_SLASH.search(scope["raw_path"]):
        raise Refusal(404, "Not found", "There is no such page.", "not-found")
    # a page may have been opened by another name of this computer
    origins = {settings.address, settings.origin or f"http://{host.lower()}"}
    is_unsafe = scope["method"] not in SAFE_METHODS and not scope["path"].startswith(f"{API}/")
    if is_unsafe and _forged(headers, origins):
        detail = "The request was not sent by a page of this server; open the page and try again."
        raise Refusal(403, "Sent by another site", detail, "cross-site")
    length = _one(headers, b"content-length")
    if length is not None and (len(length) > 9 or int(length) > settings.most_body):
        raise too_large(settings.most_body)


def _is_ours(host: str, settings: Settings) -> bool:
    """Whether a Host header names this server: by its origin, or as one on this computer."""
    found = _HOST.fullmatch(host)
    if found is None:
        return False
    return host == urlsplit(settings.address).netloc or found[1].strip("[]") in LOOPBACK


def _forged(headers: list[tuple[bytes, bytes]], origins: set[str]) -> bool:
    """Whether an unsafe request may come from another site; so may one that does not say."""
    origin = [value.decode("latin-1") for name, value in headers if name == b"origin"]
    site = [value for name, value in headers if name == b"sec-fetch-site"]
    if not origin and not site:
        return True
    return not all(one in origins for one in origin) or not all(s == b"same-origin" for s in site)


def _one(headers: list[tuple[bytes, bytes]], name: bytes) -> str | None:
    found = [value.decode("latin-1") for key, value in headers if key == name]
    return found[0] if len(found) == 1 else None


def _counted(receive: Receive, most: int) -> Receive:
    """The same messages, until a body has more bytes than it may."""
    so_far = 0

    async def counting() -> Message:
        nonlocal so_far
        message = await receive()
        so_far += len(message.get("body", b""))
        if so_far > most:
            raise too_large(most)
        return message

    return counting


def too_large(most: int) -> Refusal:
    """The refusal of a body; what still comes of it is thrown away, for `REQUEST_SECONDS`."""
    return Refusal(413, "Too large", f"A request has at most {most} bytes.", "too-large")


def attachment(name: str) -> dict[str, str]:
    r"""The header of a download, whatever its name holds.

    >>> print(attachment('a"b\r\nSet-Cookie: x.csv')["content-disposition"])
    attachment; filename="a_b__Set-Cookie__x.csv"; filename*=UTF-8''a_b__Set-Cookie__x.csv
    """
    plain = re.sub(r"[^\w.() -]|\s", "_", name).strip(" .") or "download"
    ascii_only = re.sub(r"[^ -~]", "_", plain)
    extended = quote(plain, safe="")
    return {
        "content-disposition": f"attachment; filename=\"{ascii_only}\"; filename*=UTF-8''{extended}"
    }


# ---------------------------------------------------------------- rates


class Rates:
    """How often something is done, by key: at most so many a minute, in bursts of as many."""

    __slots__ = ("_clock", "_left", "_lock")
    MOST_KEYS = 10_000

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str, a_minute: int, count: int = 1) -> None:
        """Count one, or several; refused if there were too many."""
        with self._lock:
            now = self._clock()
            left, since = self._left.pop(key, (float(a_minute), now))
            left = min(float(a_minute), left + (now - since) * a_minute / 60)
            self._left[key] = (left - count if left >= count else left, now)
            if len(self._left) > self.MOST_KEYS:
                self._left.popitem(last=False)
        if left < count:
            wait = math.ceil((count - left) * 60 / a_minute)
            detail = f"At most {a_minute} a minute; try again in {wait} s."
            later = {"retry-after": str(wait)}
            raise Refusal(429, "Too many requests", detail, "too-many", later)


# ---------------------------------------------------------------- connections


def server_config(app: ASGIApp) -> uvicorn.Config:
    """How uvicorn runs the application: no setting may loosen a limit."""
    return uvicorn.Config(
        app,
        http=PatientProtocol,
        ws="none",
        loop="asyncio",
        lifespan="off",  # the desk is started where its errors are seen
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
    )


class PatientProtocol(H11Protocol):
    """uvicorn's HTTP, with a limit to its patience, which by itself has none."""

    request_seconds = REQUEST_SECONDS
    idle_seconds: float = 5
    drain_seconds = DRAIN_SECONDS
    most_connections = MOST_CONNECTIONS

    _owed: asyncio.TimerHandle | None = None
    _draining: asyncio.TimerHandle | None = None
    _first = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait; say whether it is the Unix socket."""
        self.conn = StrictConnection(h11.SERVER, MOST_HEADER_BYTES)
        super().connection_made(transport)
        self.timeout_keep_alive = self.idle_seconds  # type: ignore[assignment]  # seconds, whole or not
        self.access_log = False  # uvicorn would write paths, and those of links are secret
        family = transport.get_extra_info("socket").family
        self.app_state = {**self.app_state, "unix": family == socket.AF_UNIX}
        self._watch()
        if len(self.connections) > self.most_connections:
            self._make_room()

    def _make_room(self) -> None:
        """Close the one that has waited longest; those that are being closed are not counted."""
        here = [one for one in self.connections if isinstance(one, PatientProtocol)]
        here = [one for one in here if not one.transport.is_closing()]
        if len(here) > self.most_connections:
            waiting = (one for one in here if one.is_waiting)
            min(waiting, key=lambda one: one.waiting_since, default=self).transport.abort()

    @property
    def is_waiting(self) -> bool:
        """Whether it is the client's turn."""
        return self.cycle is None or self.cycle.response_complete or self._owed is not None

    @property
    def waiting_since(self) -> float:
        """When the client's time ends; those that wait for another request are first to go."""
        return 0.0 if self._owed is None else self._owed.when()

    def send_400_response(self, msg: str) -> None:
        """Say what is wrong with a request, and close; if a response has begun, close at once."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(getattr(self.conn, "problem", "") or msg)
        else:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def _watch(self) -> None:
        """Let the clock run while the client owes a part of a request, and only then."""
        state = self.conn.their_state
        if state is not h11.IDLE:
            self._first = False
        begun = state is h11.IDLE and (self._first or bool(self.conn.trailing_data[0]))
        if begun or state is h11.SEND_BODY:
            if self._owed is None:
                self._owed = self.loop.call_later(self.request_seconds, self._too_late)
        elif self._owed is not None:
            self._owed.cancel()
            self._owed = None

    def _too_late(self) -> None:
        self._owed = None
        if self.transport.is_closing():
            return
        if self.conn.their_state is h11.IDLE and not self.transport.get_write_buffer_size():
            self.transport.write(
                b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
            )
            self.transport.close()
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._draining = self.loop.call_later(self.drain_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._draining is not None:
            self._draining.cancel()
            self._draining = None

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._owed, self._draining):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)
