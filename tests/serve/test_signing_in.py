"""Signing in and out as a browser does it: cookies, links and tokens, on the pages themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from lastbit.ledger import Ledger
from lastbit.serve.identity import COOKIE, Gate
from lastbit.serve.store import Store
from tests.serve.serving import Serving, served


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    with served(tmp_path) as running:
        yield running


def is_signed_in(server: Serving, secret: str | None) -> bool:
    return server.request("GET", "/me", cookie=secret).status == 200


def test_a_cookie_for_this_host_alone_that_no_script_reads(server: Serving) -> None:
    found = server.request("POST", "/sign-in", form={"token": server.tokens["analyst"]})
    assert found.status == 303 and found.headers["location"] == "/"
    (line,) = found.headers.get_all("set-cookie") or []
    name, *rest = line.split("; ")
    assert name.startswith("__Host-lastbit=")
    assert sorted(part.lower() for part in rest) == [
        "httponly",
        "path=/",
        "samesite=strict",
        "secure",
    ]
    assert found.secret and found.secret not in server.tokens["analyst"]
    assert is_signed_in(server, found.secret)


def test_fixation(server: Serving) -> None:
    """A secret that somebody planted is worth nothing, before and after its owner signs in."""
    ours = server.session("auditor")
    for planted in ("A" * 43, ours, "x", ""):
        for path, form in (
            ("/sign-in", {"token": server.tokens["analyst"]}),
            (server.gate.link_made("ana"), {}),
        ):
            found = server.request("POST", path, form=form, cookie=planted)
            assert found.status == 303
            assert found.secret not in (None, planted)
            assert is_signed_in(server, found.secret)
            assert is_signed_in(server, planted) == (planted == ours)
    assert "otto" in server.request("GET", "/me", cookie=ours).text  # nobody else's became ours


def test_a_link_is_used_by_the_button_not_by_looking(server: Serving) -> None:
    """Mail programs look at links; then there is nothing left for who gets the mail."""
    path = server.gate.link_made("ana")
    for method in ("GET", "HEAD", "GET"):
        found = server.request(method, path)
        assert found.status == 200 and found.secret is None
    assert server.request("POST", path, body=b"").status == 403  # not from our page
    good = server.request("POST", path, form={})
    assert good.status == 303 and is_signed_in(server, good.secret)
    for method in ("GET", "POST"):
        again = server.request(method, path, form={} if method == "POST" else None)
        assert again.status == 404 and again.secret is None


def test_the_first_steward_in_a_browser(tmp_path: Path) -> None:
    with served(tmp_path, ledger=Ledger.open(tmp_path / "a")) as server:
        fresh = Gate(Store(tmp_path / "b"), Ledger.open(tmp_path / "c"), server.settings)
        path = fresh.link_made(None)
        for name in ("store", "ledger"):
            setattr(server.gate, name, getattr(fresh, name))
        server.gate._forget()
        assert "name" in server.request("GET", path).text
        for name in ("", "<b>", "a/b"):
            assert server.request("POST", path, form={"name": name}).status == 422
        found = server.request("POST", path, form={"name": "ada"})
        assert found.status == 303
        assert server.request("GET", "/audit", cookie=found.secret).status == 200
        assert [one.name for one in fresh.ledger.principals()] == ["ada"]
        assert server.request("POST", path, form={"name": "eve"}).status == 404


def test_signing_out_and_revoking_count_at_once(server: Serving) -> None:
    mine, other = server.session("analyst"), server.session("analyst")
    found = server.request("POST", "/sign-out", cookie=mine, form={})
    assert found.status == 303
    (line,) = found.headers.get_all("set-cookie") or []
    assert line.startswith(f'{COOKIE}=""') and "max-age=0" in line.lower()
    assert not is_signed_in(server, mine) and is_signed_in(server, other)
    steward = server.session("steward")
    assert server.request("POST", "/users/ana/revoke", cookie=steward, form={}).status == 303
    assert not is_signed_in(server, other)
    assert server.request("GET", "/api/v1/tokens", token=server.tokens["analyst"]).status == 401
    assert is_signed_in(server, server.session("analyst"))  # the role stays


def test_removed_by_a_steward_and_out_at_the_next_request(server: Serving) -> None:
    steward, analyst = server.session("steward"), server.session("analyst")
    link = server.gate.link_made("ana")
    assert server.request("POST", "/users/ana/remove", cookie=steward, form={}).status == 303
    assert not is_signed_in(server, analyst)
    assert server.request("GET", "/api/v1/tokens", token=server.tokens["analyst"]).status == 401
    assert server.request("POST", link, form={}).status == 404


@pytest.mark.parametrize(
    "onward",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example/",
        "\\\\evil.example",
        "/\t/evil.example",
        "javascript:alert(1)",
        "/x\r\nSet-Cookie: a=b",
        "http:evil.example",
        "/%0d%0ax: y",
    ],
)
def test_nobody_is_sent_elsewhere_after_signing_in(server: Serving, onward: str) -> None:
    form = {"token": server.tokens["analyst"], "next": onward}
    found = server.request("POST", "/sign-in", form=form)
    assert found.status == 303
    place = found.headers["location"]
    assert place.startswith("/") and not place.startswith(("//", "/\\"))
    assert "evil" not in place and len(found.headers.get_all("set-cookie") or []) == 1


def test_a_wrong_token_says_nothing_of_why(server: Serving) -> None:
    _, line = server.gate.token_made("ana", name="x", days=1)
    gone, made = server.gate.token_made("ana", name="y", days=1)
    who = server.gate.identity_of(
        {"path": "/api/v1/x", "headers": [(b"authorization", f"Bearer {gone}".encode())]}
    )
    assert who is not None
    server.gate.token_revoked(made.id, who)
    for token in (gone, "lbt_" + "A" * 43, line.id, "", "x" * 9000):
        found = server.request("POST", "/sign-in", form={"token": token})
        assert found.status == 401 and found.secret is None
        assert "not a token, or it has expired or was revoked" in found.text
        assert not token or token not in found.text
