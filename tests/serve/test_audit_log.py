"""Who did what: the same lines whether it was done on a page or by the API."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, get_args

from lastbit.serve.identity import Action
from lastbit.serve.routes import API
from tests.serve.asking import asking
from tests.serve.desks import BY_REGION
from tests.serve.serving import Serving

PRICE = {"sql": BY_REGION, "epsilon": "0.25"}


def lines(server: Serving) -> list[tuple[Any, ...]]:
    found = [
        (line["principal"], line["action"], line["subject"])
        for line in reversed(server.gate.audit_lines(most=1000))
    ]
    with server.store.transaction() as rows:
        rows.execute("DELETE FROM audit")
    return found


def test_every_action_is_written_once_wherever_it_is_done(tmp_path: Path) -> None:
    with asking(tmp_path) as server:
        steward, analyst = server.tokens["steward"], server.tokens["analyst"]
        her, his = server.session("steward"), server.session("analyst")
        entry = _answered(server, analyst)
        lines(server)
        limit = {"epsilon": "1"}
        by_api = (
            ("POST", "/tables/visits/questions", analyst, PRICE),
            ("GET", f"/answers/{entry}/csv", analyst, None),
            ("POST", "/tables/visits/data", steward, None),
            ("PUT", "/users/eve", steward, {"role": "analyst"}),
            ("POST", "/users/eve/link", steward, None),
            ("PUT", "/allowances/patients/eve", steward, limit),
            ("DELETE", "/allowances/patients/eve", steward, None),
            ("POST", "/users/eve/revoke", steward, None),
            ("DELETE", "/users/eve", steward, None),
        )
        for method, path, token, data in by_api:
            found = server.request(method, f"{API}{path}", token=token, data=data)
            assert found.status < 300, (path, found.text)
        told = lines(server)
        by_page: tuple[tuple[str, str, dict[str, str] | None], ...] = (
            ("/tables/visits/ask", his, PRICE),
            (f"/answers/{entry}/answer.csv", his, None),
            ("/tables/visits/accept", her, {}),
            ("/users", her, {"name": "eve", "role": "analyst"}),
            ("/users/eve/link", her, {}),
            ("/allowances", her, {"account": "patients", "principal": "eve", **limit}),
            ("/allowances", her, {"account": "patients", "principal": "eve", "end": "yes"}),
            ("/users/eve/revoke", her, {}),
            ("/users/eve/remove", her, {}),
        )
        for path, cookie, form in by_page:
            method = "GET" if form is None else "POST"
            found = server.request(method, path, cookie=cookie, form=form)
            assert found.status < 400, (path, found.text)
        assert lines(server) == told
        assert {action for _, action, _ in told} | _SIGNING == set(get_args(Action))


_SIGNING = {
    *("signed in", "signed out", "session ended"),
    *("first steward", "token made", "token revoked"),
}


def test_what_is_over_is_forgotten_in_time_but_not_what_waits_nor_the_ledger(
    tmp_path: Path,
) -> None:
    with asking(tmp_path) as server:
        entry, books = _answered(server, server.tokens["analyst"]), server.gate.ledger
        server.session("analyst")
        server.gate.link_made("ana")
        before = books.entries()
        rows = server.store.connection()
        rows.execute(
            "INSERT INTO jobs SELECT 'w', sequence + 1, table_name, principal, question, NULL, 0, "
            "'waiting', reservation, cost, started, slots, entry, reason FROM jobs"
        )

        def left() -> dict[str, int]:
            names = ("jobs", "audit", "sessions", "links", "tokens")
            return {n: rows.execute(f"SELECT count(*) FROM {n}").fetchone()[0] for n in names}

        now, all_of = time.time(), left()
        assert all_of["jobs"] == 2 and min(all_of.values()) > 0
        server.store.swept(now, keep_days=1)
        assert left() == all_of
        server.store.swept(now + 13 * 3600, keep_days=1)
        assert left() == {**all_of, "sessions": 0, "links": 0}  # which had expired
        server.store.swept(now + 900 * 86_400, keep_days=366)
        assert left() == {"jobs": 1, "audit": 0, "sessions": 0, "links": 0, "tokens": 0}
        assert rows.execute("SELECT id, state FROM jobs").fetchone()[:] == ("w", "waiting")
        assert books.entries() == before and books.entry(entry).record is not None


def _answered(server: Serving, token: str) -> int:
    path = f"{API}/tables/visits/questions"
    job = server.request("POST", path, token=token, data=PRICE).json
    while job["entry"] is None:
        time.sleep(0.05)
        job = server.request("GET", f"{API}/jobs/{job['id']}", token=token).json
    return int(job["entry"])
