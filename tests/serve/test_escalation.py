"""Every route as everybody: who lacks its right is refused, and nothing changes by it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import iscoroutinefunction
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route as Served

from lastbit.errors import InvalidParameter
from lastbit.ledger import ROLES
from lastbit.serve import app
from lastbit.serve.routes import API, RIGHTS, ROUTES, Right, Route
from lastbit.serve.safety import Rates
from tests.serve.asking import asking
from tests.serve.desks import BY_REGION
from tests.serve.serving import NAMES, Serving, served

PARTS = {
    "table": "visits",
    "name": "ana",
    "code": "A" * 43,
    "token": "x",
    "session": "x",
    "job": "j",
    "entry:int": "1",
    "file": "answer.csv",
    "kind": "csv",
    "account": "visits",
}


@dataclass(frozen=True)
class Caller:
    """Somebody, by what they send; `rights` is None for nobody."""

    name: str
    token: str | None = None
    cookie: str | None = None
    api: frozenset[Right] | None = None
    page: frozenset[Right] | None = None


def callers(server: Serving) -> Iterator[Caller]:
    """Three roles, restricted, signed out, revoked, removed, and with the wrong kind of secret."""
    gate = server.gate
    yield Caller("nobody")
    yield Caller("guesser", token="lbt_" + "A" * 43, cookie="A" * 43)
    for role in ROLES:
        rights, token, cookie = RIGHTS[role], server.tokens[role], server.session(role)
        yield Caller(role, token=token, cookie=cookie, api=rights, page=rights)
        yield Caller(f"{role} by a token on pages", token=token, api=rights)
        yield Caller(f"{role} by a cookie in the API", cookie=cookie, page=rights)
    for right in sorted(RIGHTS["steward"] - {"open"}):
        short, _ = gate.token_made(NAMES["steward"], name=right, days=1, rights=[right])
        only = frozenset([right])
        yield Caller(f"steward, {right} only", short, gate.session_of(short), api=only, page=only)
    steward = gate.identity_of(
        {
            "path": f"{API}/x",
            "headers": [(b"authorization", f"Bearer {server.tokens['steward']}".encode())],
        }
    )
    assert steward is not None
    for name in ("revoked", "removed", "signed-out"):
        gate.principal_set(name, "steward", by=steward)
        token, line = gate.token_made(name, name=name, days=1)
        cookie = gate.session_of(token)
        if name == "revoked":
            gate.token_revoked(line.id, steward)
        elif name == "removed":
            gate.principal_set(name, None, by=steward)
        else:
            gate.all_ended(name)
        yield Caller(f"{name} steward", token=token, cookie=cookie)


def asked(server: Serving, route: Route, caller: Caller) -> int:
    path = _filled(route, PARTS)
    headers = {"Origin": server.address, "Sec-Fetch-Site": "same-origin"}
    sent: dict[str, Any] = {} if route.method == "GET" else {"form": {}}
    if route.body is not None:
        sent = {"data": {}}
    answer = server.request(
        route.method, path, token=caller.token, cookie=caller.cookie, headers=headers, **sent
    )
    return answer.status


def _filled(route: Route, parts: Mapping[str, str]) -> str:
    return re.sub(r"\{([^}]*)\}", lambda found: parts[found[1]], route.path)


def may(route: Route, caller: Caller) -> bool:
    rights = caller.api if route.is_api else caller.page
    return route.right == "open" or route.right in (rights or ())


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rates, "take", lambda *_: None)


def test_a_handler_runs_for_who_has_its_right_and_for_no_other(
    tmp_path: Any, unhurried: None
) -> None:
    """The whole matrix, exactly, with handlers that say that they ran."""
    ran = []

    def told(route: Route) -> Any:
        async def handler(request: Request) -> Response:
            assert request.state.route is route
            ran.append(route)
            return PlainTextResponse("")

        return handler

    with served(tmp_path, handler=told) as server:
        for caller in list(callers(server)):
            for route in ROUTES:
                ran.clear()
                status = asked(server, route, caller)
                if may(route, caller):
                    assert (status, ran) == (200, [route]), (caller.name, route.path)
                else:
                    known = caller.api if route.is_api else caller.page
                    assert status == (401 if known is None else 403), (caller.name, route.path)
                    assert not ran


def test_nothing_changes_by_what_is_refused(tmp_path: Any, unhurried: None) -> None:
    """With the handlers that there are: store and ledger stay as they were, to the last byte."""
    with served(tmp_path) as server:
        everybody = list(callers(server))
        before = server.digest()
        for caller in everybody:
            refused = [route for route in ROUTES if not may(route, caller)]
            assert {asked(server, route, caller) for route in refused} <= {401, 403}
            assert server.digest() == before, caller.name


def test_what_is_another_analysts_stays_so(tmp_path: Any, unhurried: None) -> None:
    """Every route that names a table, a question or an answer, for who may not see that table: an
    analyst without allowance, and tokens for another table, a steward's too."""
    with asking(tmp_path, "visits", "costs") as server:
        asked_for = {"sql": BY_REGION, "epsilon": "0.25"}
        path = f"{API}/tables/visits/questions"
        job = server.request("POST", path, token=server.tokens["analyst"], data=asked_for).json
        seen = f"{API}/jobs/{job['id']}"
        while (job := server.request("GET", seen, token=server.tokens["analyst"]).json)[
            "entry"
        ] is None:
            time.sleep(0.05)
        parts = {"table": "visits", "job": job["id"], "entry:int": str(job["entry"])}
        ben, _ = server.gate.token_made("ben", name="x", days=1)
        narrow = [
            server.gate.token_made(name, name="x", days=1, tables=["costs"])[0]
            for name in ("ana", "stella")
        ]
        before = server.ledger.entries(), _jobs(server)
        for token in (ben, *narrow):
            cookie = server.gate.session_of(token)
            for route in ROUTES:
                if not any(f"{{{part}}}" in route.path for part in parts):
                    continue
                wish: dict[str, Any] = {"data" if route.is_api else "form": asked_for}
                found = server.request(
                    route.method,
                    _filled(route, {**PARTS, **parts}),
                    token=token,
                    cookie=cookie,
                    **({} if route.method == "GET" else wish),
                )
                assert found.status in (403, 404), (route, found.status)
                assert b"north" not in found.body and b"GROUP BY" not in found.body
            for path in ("/answers", f"{API}/answers", f"{API}/jobs", "/", f"{API}/tables"):
                found = server.request("GET", path, token=token, cookie=cookie)
                assert found.status == 200
                assert b"GROUP BY" not in found.body and job["id"].encode() not in found.body
                assert b"visits" not in found.body, path
        assert (server.ledger.entries(), _jobs(server)) == before
        (mine,) = server.gate.tokens("otto")
        for method, path in (
            ("DELETE", f"{API}/tokens/{mine.id}"),
            ("POST", f"/me/tokens/{mine.id}/revoke"),
        ):
            sent: dict[str, Any] = {"form": {}} if method == "POST" else {}
            cookie = server.gate.session_of(ben)
            assert server.request(method, path, token=ben, cookie=cookie, **sent).status == 404
        assert server.gate.tokens("otto")[0].revoked is None


def _jobs(server: Serving) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in server.store.connection().execute("SELECT * FROM jobs")]


def test_the_application_has_the_routes_of_the_list_and_no_other(tmp_path: Any) -> None:
    with served(tmp_path) as server:
        made = app.application(server.desk, server.gate, server.settings)
    found = [
        (sorted((one.methods or set()) - {"HEAD"}), one.path)
        for one in made.routes
        if isinstance(one, Served)
    ]
    assert len(found) == len(made.routes)
    assert found == [([route.method], route.path) for route in ROUTES]
    assert len({(route.method, route.path) for route in ROUTES}) == len(ROUTES)


def test_a_route_without_a_handler_cannot_be_served() -> None:
    assert all(iscoroutinefunction(app._handler(route)) for route in ROUTES)
    with pytest.raises(AttributeError, match="nothing"):
        app._handler(replace(ROUTES[0], handler="tables.nothing"))


@pytest.mark.parametrize("right", ["", None, "everything", "Browse"])
def test_a_route_without_a_right_cannot_be_made(right: Any) -> None:
    with pytest.raises(InvalidParameter, match="right"):
        replace(ROUTES[0], right=right)
    with pytest.raises(TypeError, match="right"):
        Route(method="GET", path="/x", handler="x")  # type: ignore[call-arg]


def test_what_is_open_is_little() -> None:
    """Each of these is reached by anybody: a longer list is a decision."""
    assert {(one.method, one.path) for one in ROUTES if one.right == "open"} == {
        ("GET", "/sign-in"),
        ("POST", "/sign-in"),
        ("GET", "/link/{code}"),
        ("POST", "/link/{code}"),
        ("GET", "/static/{file}"),
        ("GET", "/healthz"),
        ("GET", f"{API}/openapi.json"),
    }


def test_roles_have_what_they_need() -> None:
    """An auditor never asks or decides, an analyst sees no more than tables and their answers."""
    assert RIGHTS["analyst"] < RIGHTS["steward"] > RIGHTS["auditor"]
    decides = {"users", "allowances", "data"}
    assert not decides & (RIGHTS["analyst"] | RIGHTS["auditor"])
    assert not {"ask", "preview"} & RIGHTS["auditor"]
    assert not {"ledger", "audit"} & RIGHTS["analyst"]


def test_unsafe_routes_are_never_by_get() -> None:
    changing = {"token_made", "token_revoked", "signed_in", "signed_out", "link_used", "asked"}
    changing |= {"user_set", "user_link", "user_revoked", "user_removed", "data_accepted"}
    changing |= {"allowance_set", "allowance_ended"}
    assert not [one for one in ROUTES if one.handler in changing and one.method == "GET"]
