"""What is let through, and what browsers are told: on a real server, by real sockets."""

from __future__ import annotations

import http.client
import itertools
import logging
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h11
import pytest
from hypothesis import given, strategies as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from lastbit.errors import InvalidParameter
from lastbit.serve import app, safety
from lastbit.serve.handling import Call
from lastbit.serve.identity import COOKIE
from lastbit.serve.questions import Refusal
from lastbit.serve.routes import API, ROUTES, Route
from lastbit.serve.settings import Settings
from tests.serve.asking import asking
from tests.serve.serving import Serving, served, until_closed

EVIL = "https://evil.example"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """Every handler answers 200 and says its name, once it has read the body."""
    with served(tmp_path_factory.mktemp("safety"), handler=_told) as found:
        yield found


@pytest.fixture
def server(running: Serving, monkeypatch: pytest.MonkeyPatch) -> Serving:
    """It counts no requests."""
    monkeypatch.setattr(safety.Rates, "take", lambda *_: None)
    return running


def _told(route: Route) -> Any:
    name = route.handler.rpartition(".")[2]

    async def handler(request: Request) -> Response:
        if name == "preview":
            return JSONResponse(Call(request, await request.body()).form())
        if name == "register":
            return PlainTextResponse("x", headers={"x-kind": request.path_params["kind"]})
        if name == "made_up":
            raise InvalidParameter("sql", problem="is 73211", remedy="ask otherwise")
        if name == "audit":
            raise RuntimeError("the value is 73211")
        if name == "static":
            return PlainTextResponse("x", headers={"cache-control": "max-age=60"})
        await request.body()
        return PlainTextResponse(name)

    return handler


# ---------------------------------------------------------------- forged requests


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH"])
def test_requests_of_other_sites(server: Serving, method: str) -> None:
    """Method × Origin × Sec-Fetch-Site × cookie or token, on a page and on the API."""
    own, port = server.address, server.settings.port
    origins = (
        None,
        own,
        "null",
        EVIL,
        f"{own}.evil.example",
        f"{own}/",
        f"http://localhost:{port}",
        "http://127.0.0.1",
        f"http://127.0.0.1:{port + 1}",
        f"https://127.0.0.1:{port}",
        own.upper(),
        "",
    )
    sites = (None, "same-origin", "same-site", "cross-site", "none", "")
    cookie, token = server.session("analyst"), server.tokens["analyst"]
    for origin, site in itertools.product(origins, sites):
        headers = {
            name: value
            for name, value in (("Origin", origin), ("Sec-Fetch-Site", site))
            if value is not None
        }
        ours = bool(headers) and origin in (None, own) and site in (None, "same-origin")
        for kind in ("cookie", "token", None):
            sent: dict[str, Any] = {"headers": headers}
            sent |= {"cookie": cookie} if kind == "cookie" else {}
            sent |= {"token": token} if kind == "token" else {}
            page = server.request(
                method, "/me" if method in ("GET", "HEAD") else "/sign-out", **sent
            )
            allowed = method in ("GET", "HEAD") or ours
            there = 405 if method in ("PUT", "DELETE", "PATCH") else 200
            by_right = there if kind == "cookie" or there == 405 else 401
            assert page.status == (by_right if allowed else 403), (origin, site, kind)
            api = server.request(method, "/api/v1/tokens", **sent)
            there = 405 if method in ("PUT", "DELETE", "PATCH") else 200
            assert api.status == (there if kind == "token" or there == 405 else 401)


def test_signing_in_cannot_be_forged_either(server: Serving) -> None:
    """Else a page could sign a visitor in as its owner, and read what they then ask."""
    for path in ("/sign-in", "/link/abc"):
        assert server.request("POST", path, form={}).status == 200
        for headers in ({"Origin": EVIL}, {"Sec-Fetch-Site": "cross-site"}):
            assert server.request("POST", path, form={}, headers=headers).status == 403
        assert server.request("POST", path, body=b"").status == 403


def test_two_origins_are_judged_by_the_worse(server: Serving) -> None:
    for others in (f"Origin: {EVIL}\r\n", "Sec-Fetch-Site: cross-site\r\n"):
        got = server.raw(
            f"POST /sign-out HTTP/1.1\r\nHost: x\r\nOrigin: {server.address}\r\n"
            f"Sec-Fetch-Site: same-origin\r\n{others}Connection: close\r\n\r\n".replace(
                "Host: x", f"Host: 127.0.0.1:{server.settings.port}"
            ).encode()
        )
        assert got.startswith(b"HTTP/1.1 403")


def test_a_page_opened_as_localhost_may_post(server: Serving) -> None:
    host = f"localhost:{server.settings.port}"
    cookie = server.session("analyst")
    for origin, status in ((f"http://{host}", 200), (f"https://{host}", 403)):
        headers = {"Host": host, "Origin": origin}
        assert server.request("POST", "/sign-out", cookie=cookie, headers=headers).status == status


# ---------------------------------------------------------------- names of the server


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1:{port}", True),
        ("localhost:{port}", True),
        ("LOCALHOST", True),
        ("[::1]:{port}", True),
        ("evil.example", False),
        ("evil.example:{port}", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("127.0.0.1@evil.example", False),
        ("evil.example#127.0.0.1", False),
        ("localhost:99999999", False),
        ("0.0.0.0", False),
        ("[::]", False),
        ("", False),
    ],
)
def test_rebinding(server: Serving, host: str, known: bool) -> None:
    sent = host.format(port=server.settings.port)
    got = server.raw(f"GET /healthz HTTP/1.1\r\nHost: {sent}\r\nConnection: close\r\n\r\n".encode())
    assert got.startswith(b"HTTP/1.1 200" if known else b"HTTP/1.1 421")


def test_hosts_that_are_none_or_two(server: Serving) -> None:
    line = b"GET /healthz HTTP/1.1\r\n"
    assert server.raw(line + b"\r\n").startswith(b"HTTP/1.1 400")
    two = b"Host: localhost\r\nHost: localhost\r\n\r\n"
    assert server.raw(line + two).startswith(b"HTTP/1.1 400")
    assert server.raw(b"GET /healthz HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 421")
    absolute = b"GET http://evil.example/healthz HTTP/1.1\r\nHost: localhost\r\n"
    assert server.raw(absolute + b"Connection: close\r\n\r\n").startswith(b"HTTP/1.1 404")


def test_a_proxys_headers_change_nothing(tmp_path: Path) -> None:
    """Neither name nor address nor scheme: what settings say is what counts."""
    origin = "https://stats.example.org"
    with served(tmp_path, handler=_told, behind_proxy=True, origin=origin) as server:
        told = {
            "X-Forwarded-Host": "evil.example",
            "X-Forwarded-Proto": "http",
            "X-Forwarded-For": "203.0.113.9",
            "Forwarded": "host=evil.example;proto=http",
        }
        cookie = server.session("analyst")
        for host, origin_, status in (
            ("stats.example.org", origin, 200),
            ("stats.example.org", "https://evil.example", 403),
            ("stats.example.org", "http://stats.example.org", 403),
            ("evil.example", origin, 421),
            ("stats.example.org:8000", origin, 421),
            ("localhost", origin, 200),
            ("localhost", "http://localhost", 403),
        ):
            headers = {**told, "Host": host, "Origin": origin_}
            found = server.request("POST", "/sign-out", cookie=cookie, headers=headers)
            assert found.status == status, (host, origin_)
            assert "evil" not in str(found.headers)
            assert found.headers["strict-transport-security"] == "max-age=31536000"


def test_the_proxy_names_who_signed_in(tmp_path: Path) -> None:
    """Over the Unix socket, once; and its requests can be forged no more than a browser's."""
    with served(
        tmp_path,
        handler=_told,
        socket=tmp_path / "socket",
        origin="https://stats.example.org",
        trusted_header="X-Remote-User",
    ) as server:

        def asked(names: bytes, method: bytes = b"GET", path: bytes = b"/me") -> int:
            sent = method + b" " + path + b" HTTP/1.1\r\nHost: stats.example.org\r\n" + names
            return int(server.raw(sent + b"Connection: close\r\n\r\n").split()[1])

        ana, stella = b"X-Remote-User: ana\r\n", b"x-remote-user: stella\r\n"
        assert asked(ana) == 200
        assert asked(b"") == asked(b"X-Remote-User: eve\r\n") == 401
        assert asked(b"X_Remote_User: ana\r\n") == 401
        assert asked(ana + stella) == asked(ana + ana) == 400
        assert asked(ana, path=b"/users") == 403
        assert asked(stella, path=b"/users") == 200
        assert asked(ana, path=b"/api/v1/tables") == 401
        ours = b"Origin: https://stats.example.org\r\n"
        assert asked(ana, method=b"POST", path=b"/sign-out") == 403
        assert asked(ana + ours, method=b"POST", path=b"/sign-out") == 200
        server.gate.ledger.set_principal("ana", None, by="stella")
        server.gate._forget()
        assert asked(ana) == 401


def test_the_proxys_header_by_tcp(tmp_path: Path) -> None:
    """It is not even started so; and if it were, the header would be refused."""
    told: dict[str, Any] = {"origin": "https://stats.example.org", "behind_proxy": True}
    with pytest.raises(InvalidParameter, match="trusted_header"):
        Settings(cards=(tmp_path,), state=tmp_path, trusted_header="X-Remote-User", **told)
    with served(tmp_path, handler=_told, **told) as server:
        object.__setattr__(server.settings, "trusted_header", "X-Remote-User")
        for place in (None, tmp_path / "socket"):
            object.__setattr__(server.gate.settings, "socket", place)
            with pytest.raises(Refusal):
                server.gate.identity_of(
                    {"path": "/", "headers": [(b"x-remote-user", b"stella")], "state": {}}
                )
        object.__setattr__(server.settings, "socket", None)
        assert server.request("GET", "/me", headers={"X-Remote-User": "stella"}).status == 400


# ---------------------------------------------------------------- headers of responses


def test_every_response_has_the_headers(server: Serving) -> None:
    cookie = server.session("steward")
    responses = [
        server.request("GET", "/", cookie=cookie),
        server.request("GET", "/"),
        server.request("GET", "/nothing"),
        server.request("PATCH", "/me", headers={"Origin": server.address}),
        server.request("OPTIONS", "/api/v1/tables"),
        server.request("POST", "/sign-out"),
        server.request("GET", "/healthz", headers={"Host": "evil.example"}),
        server.request("GET", "/audit", cookie=cookie),
        server.request("POST", "/sign-in", form={"x": "y" * 70_000}),
        server.request("GET", "/healthz", headers={f"x-{i}": "" for i in range(70)}),
        server.request("GET", "/api/v1/audit", token=server.tokens["steward"]),
    ]
    statuses = [200, 401, 404, 405, 405, 403, 421, 500, 413, 431, 500]
    assert [one.status for one in responses] == statuses
    for response in responses:
        policy = {"referrer-policy": response.headers["referrer-policy"]}  # told below
        for name, value in {**safety.HEADERS, **policy}.items():
            assert response.headers.get_all(name) == [value]
        assert "server" not in response.headers
        assert "access-control-allow-origin" not in response.headers
        assert "strict-transport-security" not in response.headers  # it is http


def test_pages_tell_themselves_where_they_were_sent_from(tmp_path: Path) -> None:
    """Browsers send "Origin: null" with forms of a page whose policy is no-referrer."""

    def told(route: Route) -> Any:
        async def handler(_: Request) -> Response:
            return (
                HTMLResponse("x") if route.handler == "signing.sign_in" else PlainTextResponse("x")
            )

        return handler

    with served(tmp_path, handler=told) as server:
        page, other = server.request("GET", "/sign-in"), server.request("GET", "/healthz")
        assert page.headers.get_all("referrer-policy") == ["same-origin"]
        assert other.headers.get_all("referrer-policy") == ["no-referrer"]


def test_only_static_files_are_kept(server: Serving) -> None:
    assert server.request("GET", "/static/x.css").headers["cache-control"] == "max-age=60"
    for path in ("/static/../me", "/statics", "/me"):
        assert server.request("GET", path).headers["cache-control"] == "no-store"


def test_mistakes_say_nothing(server: Serving, caplog: pytest.LogCaptureFixture) -> None:
    """Neither to the asker nor in the log, where the class of the error is enough."""
    with caplog.at_level(logging.DEBUG):
        page = server.request("GET", "/audit", cookie=server.session("steward"))
        api = server.request("GET", "/api/v1/audit", token=server.tokens["steward"])
        server.request("GET", "/link/SECRET?q=SECRET")
    assert page.status == api.status == 500
    assert b"73211" not in page.body + api.body and b"Traceback" not in page.body + api.body
    assert "73211" not in caplog.text and "SECRET" not in caplog.text
    assert "RuntimeError" in caplog.text
    assert "stella GET /audit 500" in caplog.text and "- GET /link/{code} 200" in caplog.text


# ---------------------------------------------------------------- paths


TRAVERSALS = (
    "..",
    "../serve.db",
    "..%2fserve.db",
    "..%2Fserve.db",
    "%2e%2e%2fserve.db",
    "%2e%2e/serve.db",
    "..%5cserve.db",
    "..\\serve.db",
    "%2e%2e",
    ".",
    "%2e",
    "%00",
    "serve.css%00.db",
    "%252e%252e%252fserve.db",
    "%c0%ae%c0%ae%c0%afserve.db",
    "..;/serve.db",
    "....//serve.db",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "//etc/passwd",
    "x%0d%0aSet-Cookie:%20a=b",
    "%ff%fe",
    "9" * 5000,
    "9" * 30,
    "x" * 300,
    "\u2025/serve.db".encode().decode("latin-1"),
)


@pytest.mark.parametrize("route", [one for one in ROUTES if "{" in one.path], ids=str)
def test_no_parameter_of_a_path_leads_elsewhere(server: Serving, route: Route) -> None:
    """Whatever is put there, the handler gets one plain part of a path, or there is none."""
    seen = []
    original = run_in_threadpool

    async def spy(function: Any, *arguments: Any) -> Any:
        if arguments and isinstance(arguments[0], dict):
            seen.append(dict(arguments[0]["path_params"]))
        return await original(function, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "run_in_threadpool", spy)
        for bad in TRAVERSALS:
            path = re.sub(r"\{[^}]*\}", lambda _, bad=bad: bad, route.path)  # type: ignore[misc]
            got = server.raw(
                f"{route.method} {path} HTTP/1.1\r\nHost: localhost\r\n"
                f"Origin: http://localhost\r\nConnection: close\r\n\r\n".encode("latin-1")
            )
            status = int(got.split()[1])
            assert status in (400, 401, 404, 405, 200), (bad, got)
            assert b"a=b" not in got and b"root:" not in got
    for parameters in seen:
        for name, value in parameters.items():
            assert re.fullmatch(r"[^/\\\x00-\x1f\x7f\ufffd]+", str(value)), value
            assert str(value) not in (".", "..") or f"/{{{name}}}" not in route.path


# ---------------------------------------------------------------- header injection


def test_no_header_of_a_response_ends_early(server: Serving) -> None:
    """A handler that puts a part of the path into a header: it sees no control characters."""
    cookie = server.session("steward")
    for kind in ("csv%0d%0aX-Evil:%201", "csv%0aX-Evil:%201", "csv%0d%0a%0d%0a<script>", "a%00"):
        found = server.request("GET", f"/ledger/register.{kind}", cookie=cookie)
        assert found.status == 404 and "x-evil" not in found.headers
    assert server.request("GET", "/ledger/register.csv", cookie=cookie).headers["x-kind"] == "csv"


@pytest.mark.parametrize("value", ["a\r\nx-evil: 1", "a\nb", "a\rb", "a\x00b", "\x7f"])
def test_a_control_character_in_a_response_is_a_mistake(tmp_path: Path, value: str) -> None:
    def told(route: Route) -> Any:
        async def handler(_: Request) -> Response:
            return PlainTextResponse("x", headers={"x-name": value})

        return handler

    with served(tmp_path, handler=told) as server:
        found = server.request("GET", "/healthz")
        assert found.status == 500
        assert not {"x-evil", "x-name"} & {name.lower() for name in found.headers}


@given(st.text())
def test_a_downloads_name_is_one_plain_word(name: str) -> None:
    (value,) = safety.attachment(name).values()
    assert re.fullmatch(
        r"attachment; filename=\"[A-Za-z0-9_.() -]+\"; filename\*=UTF-8''[A-Za-z0-9_.%~-]+", value
    ), value
    h11.Response(status_code=200, headers=[("content-disposition", value)])


@pytest.mark.parametrize("name", ["a\r\nb", "a b", "../x", "", "a\x00", "a;b", "<b>", "x" * 65])
def test_no_such_name_gets_into_the_ledger(server: Serving, name: str) -> None:
    steward = server.gate.identity_of(
        {"path": "/", "headers": [(b"cookie", f"{COOKIE}={server.session('steward')}".encode())]}
    )
    assert steward is not None
    with pytest.raises(Refusal, match="name"):
        server.gate.principal_set(name, "analyst", by=steward)


# ---------------------------------------------------------------- bodies


def test_a_body_that_is_too_long(server: Serving) -> None:
    most = server.settings.most_body
    for size, status in ((most, 200), (most + 1, 413), (10 * most, 413), (200 * most, 413)):
        for path in ("/sign-in", "/api/v1/openapi.json"):
            method = "POST" if path == "/sign-in" else "GET"
            headers = {"Origin": server.address}
            found = server.request(method, path, body=b"x" * size, headers=headers)
            assert found.status == status, (size, path)


def test_a_body_in_pieces_is_counted_as_it_comes(server: Serving) -> None:
    """Chunked, without an end: refused once there is too much, though nobody said how much."""
    most = server.settings.most_body
    head = (
        b"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
        b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )
    piece = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"
    with server.socket() as line:
        line.sendall(head + piece * (most // 0x1000))
        line.settimeout(0.2)
        with pytest.raises(TimeoutError):
            line.recv(1)  # not too much yet
        line.settimeout(30)
        line.sendall(piece)
        assert line.recv(12) == b"HTTP/1.1 413"


@pytest.mark.parametrize(
    "headers",
    [
        "Content-Length: 99999999999999999999",
        "Content-Length: 1000000000",
        "Content-Length: -1",
        "Content-Length: 1e3",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: identity",
        "Content-Length: " + "9" * 5000,
    ],
)
def test_lengths_that_lie(server: Serving, headers: str) -> None:
    got = server.raw(
        f"POST /sign-in HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
        f"{headers}\r\nConnection: close\r\n\r\n0\r\n\r\n".encode()
    )
    assert int(got.split()[1]) in (400, 413, 501), got


def test_headers_without_end(server: Serving) -> None:
    line = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    for sent in (
        line + b"x: " + b"y" * 20_000 + b"\r\n\r\n",
        line + b"x: " + b"y" * 20_000,
        line + b"".join(b"x-%d: y\r\n" % i for i in range(100)) + b"\r\n",
        b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        b"GET /?" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    ):
        assert int(server.raw(sent).split()[1]) in (400, 414, 431)


def test_forms(server: Serving) -> None:
    def sent(body: bytes, kind: str = "application/x-www-form-urlencoded") -> Any:
        cookie = server.session("analyst")
        headers = {"Origin": server.address, "Content-Type": kind}
        return server.request(
            "POST", "/tables/visits/preview", cookie=cookie, body=body, headers=headers
        )

    assert sent(b"sql=SELECT+%C3%A9&empty=").json == {"sql": "SELECT é", "empty": ""}
    assert sent(b"").json == {}
    for bad in (
        b"a=1&a=2",
        b"a=%ff",
        b"\xff=1",
        b"a",
        b"&".join([b"%d=1" % i for i in range(101)]),
    ):
        assert sent(bad).status == 400, bad
    for kind in ("multipart/form-data; boundary=x", "text/plain", "application/json", ""):
        assert sent(b"a=1", kind).status == 415


def test_there_are_no_web_sockets(server: Serving) -> None:
    got = server.raw(
        b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n\r\n"
        b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )
    assert got.startswith(b"HTTP/1.1 401")


def test_rubbish_is_refused_and_the_server_lives(server: Serving) -> None:
    for rubbish in (
        b"\x00" * 100,
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\n",
    ):
        with server.socket() as line:
            line.sendall(rubbish + b"\r\n\r\n")
            assert until_closed(line)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 421", b"")
    assert server.request("GET", "/healthz").status == 200


# ---------------------------------------------------------------- rates


def test_rates_are_by_key_and_refill() -> None:
    now = 0.0
    rates = safety.Rates(lambda: now)
    for _ in range(6):
        rates.take("ana", 6)
    with pytest.raises(Refusal, match="try again in 10 s") as refused:
        rates.take("ana", 6)
    assert refused.value.status == 429 and refused.value.headers == {"retry-after": "10"}
    rates.take("otto", 6)
    now = 10.0
    rates.take("ana", 6)
    with pytest.raises(Refusal):
        rates.take("ana", 6)
    now = 10_000.0
    for _ in range(6):
        rates.take("ana", 6)  # no more than a minute's worth is saved up
    with pytest.raises(Refusal):
        rates.take("ana", 6)


def test_rates_forget_the_longest_unused() -> None:
    rates = safety.Rates(lambda: 0.0)
    for key in range(rates.MOST_KEYS + 100):
        rates.take(str(key), 1)
    assert len(rates._left) == rates.MOST_KEYS


def test_guessing_is_slowed_down(tmp_path: Path) -> None:
    """Sign-in and tokens by address, previews and questions by principal whatever token it uses."""
    with served(tmp_path, handler=_told, previews_a_minute=3, questions_a_minute=2) as server:

        def statuses(times: int, method: str, path: str, **sent: Any) -> list[int]:
            return [server.request(method, path, **sent).status for _ in range(times)]

        tries = statuses(32, "POST", "/sign-in", form={"token": "lbt_" + "A" * 43})
        assert 429 not in tries[:30] and tries[30:] == [429, 429]
        assert statuses(1, "POST", "/link/x", form={}) == [429]
        guesses = statuses(32, "GET", "/api/v1/tables", token="lbt_" + "A" * 43)
        assert guesses[:30] == [401] * 30 and guesses[30:] == [429, 429]
        # one who has a token is not shut out by one who has none
        assert 429 not in statuses(3, "GET", "/api/v1/tables", token=server.tokens["analyst"])
        other, _ = server.gate.token_made("ana", name="another", days=1)
        for most, name in ((3, "preview"), (2, "questions")):
            path = f"/api/v1/tables/visits/{name}"
            first = statuses(most, "POST", path, token=server.tokens["analyst"], data={})
            assert 429 not in first
            found = server.request("POST", path, token=other, data={})
            assert found.status == 429 and int(found.headers["retry-after"]) >= 1
            assert 429 not in statuses(1, "POST", path, token=server.tokens["steward"], data={})


def test_reading_a_response_to_head(server: Serving) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.settings.port)
    for _ in range(3):  # on one connection
        connection.request("HEAD", "/healthz")
        assert connection.getresponse().read() == b""
    connection.close()


# ---------------------------------------------------------------- whatever is sent


def test_mutated_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extent: Any) -> None:
    """Good requests with bytes changed, doubled, dropped or moved, in the hands of a steward: no
    mistake of the server's, and it goes on."""
    monkeypatch.setattr(safety.Rates, "take", lambda *_: None)
    for name in ("request_seconds", "idle_seconds"):  # for what is cut off
        monkeypatch.setattr(safety.PatientProtocol, name, 0.05)
    choose = random.Random(0)
    with asking(tmp_path) as server:
        cookie, token = server.session("steward"), server.tokens["steward"]
        head = f"Host: localhost\r\nOrigin: http://localhost\r\nCookie: {COOKIE}={cookie}\r\n"
        head += f"Authorization: Bearer {token}\r\nConnection: close\r\n"
        body = b"name=eve&role=analyst&sql=SELECT+1&epsilon=1"
        form = "Content-Type: application/x-www-form-urlencoded\r\n"
        seeds = [
            f"GET {path} HTTP/1.1\r\n{head}\r\n".encode()
            for path in (
                "/",
                "/me",
                "/audit?before=1",
                "/answers/1/answer.csv",
                "/static/serve.css",
            )
        ]
        seeds += [
            f"GET {API}{path} HTTP/1.1\r\n{head}\r\n".encode()
            for path in (
                "/tokens",
                "/audit?last=1&before=2",
                "/ledger?last=3",
                "/users",
                "/answers/1",
            )
        ]
        seeds += [
            f"POST {path} HTTP/1.1\r\n{head}{form}Content-Length: {len(body)}\r\n\r\n".encode()
            + body
            for path in ("/sign-in", "/link/x", "/users", "/me/tokens", "/allowances")
        ]
        for _ in range(extent.number(150, 5_000)):
            sent = bytearray(choose.choice(seeds))
            for _ in range(choose.choice((1, 1, 1, 2, 5))):
                place, other = choose.randrange(len(sent)), choose.randrange(len(sent))
                match choose.randrange(5):
                    case 0:
                        sent[place] = choose.randrange(256)
                    case 1:
                        sent[place:place] = bytes([choose.choice(b"\r\n\x00%/.:;=&?{}\"'<>\xff ")])
                    case 2:
                        del sent[place : place + choose.randrange(1, 9)]
                    case 3:
                        sent[place:place] = sent[other : other + choose.randrange(1, 40)]
                    case _:
                        sent[place:place] = choose.choice(NASTY)
                sent = sent or bytearray(b"x")
            with server.socket() as line:
                line.sendall(sent)
                got = until_closed(line)
            statuses = re.findall(rb"^HTTP/1\.1 (\d+)", got, re.MULTILINE)
            assert b"500" not in statuses, bytes(sent)
        monkeypatch.undo()
        assert server.request("GET", "/healthz").status == 200


NASTY = (
    b"%00",
    b"%0d%0a",
    b"..%2f",
    b"\xed\xa0\x80",
    b"%ed%a0%80",
    b"9" * 400,
    b"-1",
    b"1e999",
    b"NaN",
    "\u202e\u0660".encode(),
    b"\r\nTransfer-Encoding: chunked",
    b"\r\nContent-Length: 0",
    b"\r\nHost: evil.example",
    b"[]{}",
)
