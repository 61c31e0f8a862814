"""The API on a whole server: what it answers is as its schemas say, and what it refuses is told."""

import json
import time
from fractions import Fraction

import pytest

import lastbit as lb
from lastbit.checker import check
from lastbit.serve.questions import FINISHED
from lastbit.serve.routes import CALLS, RIGHTS
from lastbit.serve.schemas import SCHEMAS, problem_in
from tests.serve.asking import asking
from tests.serve.serving import Serving

COUNT = {"sql": "SELECT region, COUNT(*) AS n FROM visits GROUP BY region", "epsilon": "1"}
ASK = "/api/v1/tables/visits/questions"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with asking(tmp_path_factory.mktemp("api"), "visits", "costs") as found:
        yield found


def called(server: Serving, method: str, path: str, role: str = "analyst", **sent):
    """A good answer, which is as its schema says."""
    got = server.request(method, f"/api/v1{path}", token=server.tokens[role], **sent)
    assert got.status < 300, got.text
    return got.json if got.body else None


def refused(server: Serving, status: int, kind: str, method: str, path: str, **sent) -> str:
    """The detail of a problem document."""
    sent.setdefault("token", server.tokens["analyst"])
    got = server.request(method, path, **sent)
    assert got.status == status, got.text
    assert got.headers["content-type"] == "application/problem+json"
    assert problem_in(got.json, SCHEMAS["Problem"]) is None
    assert got.json["type"] == f"/problems/{kind}" and got.json["status"] == status
    return got.json["detail"]


def waited(server: Serving, job: dict) -> dict:
    while job["state"] not in FINISHED:
        time.sleep(0.1)
        job = called(server, "GET", f"/jobs/{job['id']}")
    return job


@pytest.fixture(scope="module")
def answered(server):
    got = server.request(
        "POST",
        ASK,
        token=server.tokens["analyst"],
        data=COUNT,
        headers={"Idempotency-Key": "first"},
    )
    assert got.status == 202, got.text
    assert got.headers["location"] == f"/api/v1/jobs/{got.json['id']}"
    assert 1 <= int(got.headers["retry-after"]) <= 8
    return waited(server, got.json)


def test_a_question_is_paid_and_answered(server, answered):
    assert answered["state"] == "answered" and answered["slots"] in (1, 2, 4)
    assert answered["cost"] == {"epsilon": "1", "delta": "0", "rho": "0"}
    record = called(server, "GET", f"/answers/{answered['entry']}")
    check(record)
    assert (
        called(server, "GET", f"/answers/{answered['entry']}/certificate")
        == (record["certificate"])
    )
    got = server.request(
        "GET", f"/api/v1/answers/{answered['entry']}/csv", token=server.tokens["analyst"]
    )
    assert got.headers["content-type"].startswith("text/csv")
    assert got.text.splitlines()[0] == "region,n,n_se,n_low,n_high,n_whole_low,n_whole_high"


def test_the_same_key_is_the_same_job_and_one_charge(server, answered):
    before = server.ledger.spent("patients").epsilon
    token, key = server.tokens["analyst"], {"Idempotency-Key": "first"}
    again = server.request("POST", ASK, token=token, data=COUNT, headers=key)
    assert again.status == 202 and again.json["id"] == answered["id"]
    assert "retry-after" not in again.headers  # it is finished
    other = {**COUNT, "epsilon": "2"}
    refused(server, 422, "key-in-use", "POST", ASK, data=other, headers=key)
    assert server.ledger.spent("patients").epsilon == before


def test_every_get_answers_as_its_schema_says(server, answered):
    entry, job = answered["entry"], answered["id"]
    for role in RIGHTS:
        for route in CALLS:
            if route.method != "GET" or route.right not in RIGHTS[role]:
                continue
            path = route.path.replace("{entry:int}", str(entry)).replace("{table}", "visits")
            if "{job}" in path and role == "auditor":  # who has none
                continue
            got = server.request("GET", path.replace("{job}", job), token=server.tokens[role])
            assert got.status == route.status, (route.path, role, got.text)
            if route.gives is not None:
                assert problem_in(got.json, SCHEMAS[route.gives]) is None, route.path


def test_a_preview_costs_nothing(server):
    before = server.digest()
    got = called(server, "POST", "/tables/visits/preview", data={**COUNT, "epsilon": "1/3"})
    assert problem_in(got, SCHEMAS["Preview"]) is None
    assert got["cost"]["epsilon"] == "1/3" and got["refused"] is None
    over = called(server, "POST", "/tables/visits/preview", data={**COUNT, "epsilon": "1000"})
    assert over["refused"]
    made = called(server, "POST", "/tables/visits/made-up", data=COUNT)
    assert problem_in(made, SCHEMAS["Answer"]) is None
    assert server.digest() == before


def test_what_cannot_be_paid_is_a_problem_with_a_remedy(server):
    before = server.digest()
    detail = refused(server, 403, "over-budget", "POST", ASK, data={**COUNT, "epsilon": "1000"})
    assert "costs" in detail
    detail = refused(
        server, 422, "refused", "POST", ASK, data={**COUNT, "sql": "SELECT cost FROM visits"}
    )
    assert detail
    refused(server, 404, "unknown-table", "POST", ASK.replace("visits", "none"), data=COUNT)
    assert server.digest() == before


@pytest.mark.parametrize(
    ("status", "kind", "body", "headers"),
    [
        (415, "not-json", b"{}", {"Content-Type": "text/plain"}),
        (415, "not-json", b"{}", {}),
        (400, "not-json", b"{", None),
        (400, "not-json", b"", None),
        (400, "not-json", b"[]", None),
        (400, "not-json", b"\xff", None),
        (400, "not-json", b'{"sql": NaN}', None),
        (400, "not-json", b'{"sql": "a", "sql": "b"}', None),
        (400, "not-json", b'{"sql": "\\ud800"}', None),
        (400, "not-json", b"[" * 30_000, None),
        (400, "not-json", b'{"a": ' + b"9" * 10_000 + b"}", None),
        (422, "invalid", b'{"sql": "SELECT \\u0000"}', None),
        (422, "invalid", b'{"sql": 1}', None),
        (422, "invalid", b'{"sql": "SELECT 1", "user": "root"}', None),
        (422, "malformed", b'{"sql": "SELECT 1"}', None),
    ],
)
def test_what_is_no_question_is_refused(server, status, kind, body, headers):
    headers = {"Content-Type": "application/json"} if headers is None else headers
    before = server.digest()
    detail = refused(server, status, kind, "POST", ASK, body=body, headers=headers)
    assert "ud800" not in detail and "root" not in detail
    assert server.digest() == before


def test_keys_that_are_not_plain_are_refused(server):
    for key in ("a b", "x" * 129, '"quoted"'):
        refused(server, 422, "invalid", "POST", ASK, data=COUNT, headers={"Idempotency-Key": key})


def test_lists_come_in_parts(server, answered):
    whole = called(server, "GET", "/ledger?last=200", "auditor")["entries"]
    found, path = [], "/ledger?last=3"
    while path:
        part = called(server, "GET", path, "auditor")
        assert len(part["entries"]) <= 3
        found += part["entries"]
        path = part["before"] and f"/ledger?last=3&before={part['before']}"
    assert found == whole and [e["sequence"] for e in whole] == list(range(len(whole), 0, -1))
    jobs = called(server, "GET", "/jobs")["jobs"]
    part = called(server, "GET", "/jobs?last=1")
    assert part["jobs"] == jobs[:1]
    more = called(server, "GET", f"/jobs?before={jobs[0]['id']}")["jobs"]
    assert more == jobs[1:]
    for wrong in ("last=0", "last=201", "last=x", "last=1&last=2", "since=1", "before=", "last=²"):
        refused(server, 422, "invalid", "GET", f"/api/v1/jobs?{wrong.replace('²', '%C2%B2')}")
    refused(server, 422, "invalid", "GET", "/api/v1/jobs?before=none")
    refused(server, 422, "invalid", "GET", "/api/v1/answers?before=none")


def test_users_and_allowances(server):
    made = called(server, "PUT", "/users/cleo", "steward", data={"role": "analyst"})
    assert made == {"name": "cleo", "role": "analyst", "active": True}
    path = "/allowances/patients/cleo"
    limit = {"epsilon": "1/2", "period": "month"}
    given = called(server, "PUT", path, "steward", data=limit)
    assert problem_in(given, SCHEMAS["Allowance"]) is None
    assert given["limit"]["epsilon"] == "1/2" and given["since"] is not None
    steward = {"token": server.tokens["steward"]}
    refused(server, 422, "refused", "PUT", f"/api/v1{path}", data={"delta": "1"}, **steward)
    refused(server, 422, "refused", "PUT", f"/api/v1{path}", data={"epsilon": "1/0"}, **steward)
    refused(
        server, 404, "unknown-account", "PUT", "/api/v1/allowances/x/cleo", data=limit, **steward
    )
    refused(
        server, 404, "unknown-user", "PUT", "/api/v1/allowances/patients/x", data=limit, **steward
    )
    link = called(server, "POST", "/users/cleo/link", "steward")
    assert link["address"].startswith(f"{server.address}/link/")
    assert called(server, "DELETE", path, "steward") is None
    assert called(server, "POST", "/users/cleo/revoke", "steward") is None
    gone = called(server, "DELETE", "/users/cleo", "steward")
    assert gone["active"] is False and problem_in(gone, SCHEMAS["User"]) is None
    refused(server, 404, "unknown-user", "POST", "/api/v1/users/cleo/link", **steward)
    refused(server, 404, "unknown-user", "DELETE", "/api/v1/users/nobody", **steward)
    log = called(server, "GET", "/audit", "auditor")["lines"]
    assert {"user set", "allowance set", "allowance ended", "link made", "user removed"} <= {
        line["action"] for line in log
    }


def test_tokens_only_ever_lose_rights(server):
    wish = {"name": "nightly", "days": 7, "rights": ["browse", "self"], "tables": ["visits"]}
    made = called(server, "POST", "/tokens", data=wish)
    assert problem_in(made, SCHEMAS["Token"]) is None
    token = made["token"]
    assert [
        t["name"] for t in server.request("GET", "/api/v1/tables", token=token).json["tables"]
    ] == ["visits"]
    refused(server, 403, "not-allowed", "POST", ASK, data=COUNT, token=token)
    more = {"name": "more", "days": 7, "rights": ["ask"]}
    refused(server, 403, "not-allowed", "POST", "/api/v1/tokens", data=more, token=token)
    child = server.request(
        "POST", "/api/v1/tokens", token=token, data={"name": "c", "days": 300}
    ).json
    assert child["rights"] == ["browse", "self"] and child["tables"] == ["visits"]
    assert child["expires"] <= made["expires"]
    listed = called(server, "GET", "/tokens")["tokens"]
    assert made["id"] in {line["id"] for line in listed} and token not in json.dumps(listed)
    assert called(server, "DELETE", f"/tokens/{made['id']}") is None
    assert server.request("GET", "/api/v1/tables", token=token).status == 401


def test_a_restricted_token_of_a_steward_makes_nobody_stronger(server):
    def steward(**wish):
        sent = {"name": "x", "days": 1, **wish}
        return called(server, "POST", "/tokens", "steward", data=sent)["token"]

    only_users = steward(rights=["users", "browse"])
    before = server.ledger.entries()
    for path in ("/users/stella/link", "/users/ana/link"):
        refused(server, 403, "not-allowed", "POST", f"/api/v1{path}", token=only_users)
    role = {"role": "steward"}
    refused(server, 403, "not-allowed", "PUT", "/api/v1/users/dora", data=role, token=only_users)
    one_table = steward(tables=["costs"])
    for method, path, data in (
        ("GET", "/users", None),
        ("POST", "/users/ana/link", None),
        ("PUT", "/users/dora", role),
        ("DELETE", "/users/ana", None),
        ("POST", "/users/ana/revoke", None),
        ("GET", "/allowances", None),
        ("PUT", "/allowances/patients/ana", {"epsilon": "9"}),
        ("DELETE", "/allowances/patients/ana", None),
        ("GET", "/audit", None),
    ):
        sent = {} if data is None else {"data": data}
        refused(server, 403, "not-allowed", method, f"/api/v1{path}", token=one_table, **sent)
    refused(server, 404, "unknown-table", "GET", "/api/v1/tables/visits", token=one_table)
    refused(server, 403, "not-allowed", "GET", "/api/v1/ledger", token=one_table)
    assert server.ledger.entries() == before


def test_data_are_accepted_by_a_steward(server):
    assert called(server, "POST", "/tables/visits/data", "steward") == {
        "table": "visits",
        "accepted": True,
    }
    refused(server, 403, "not-allowed", "POST", "/api/v1/tables/visits/data")


def test_cookies_do_not_count_and_strangers_see_the_document_alone(server):
    cookie = server.session("steward")
    for route in CALLS:
        path = route.path.replace("{entry:int}", "1").replace("{", "").replace("}", "")
        got = server.request(route.method, path, cookie=cookie)
        assert got.status == (200 if route.right == "open" else 401), route.path


def test_what_was_paid_is_what_the_ledger_has(server):
    paid = [
        Fraction(job["cost"]["epsilon"])
        for job in called(server, "GET", "/jobs", "steward")["jobs"]
        if job["cost"]
    ]
    assert server.ledger.spent("patients").epsilon == sum(paid)
    assert server.ledger.problems() == []


def test_marginals_of_the_ledger_are_seen_and_downloaded_as_such(server):
    """They are asked where the data are; the server shows them as it shows all answers."""
    books = server.gate.ledger
    books.set_principal(books.user, "steward", by="stella")
    table = lb.table(server.settings.cards[0])
    found = table.marginals({"region": "region", "cost": "bin(cost, 0, 50, 100)"}).release(
        epsilon=1
    )
    entry = called(server, "GET", "/answers")["answers"][0]["entry"]
    for path, sent in (
        (f"/api/v1/answers/{entry}/csv", {"token": server.tokens["analyst"]}),
        (f"/answers/{entry}/answer.csv", {"cookie": server.session("analyst")}),
    ):
        got = server.request("GET", path, **sent)
        assert got.status == 200 and got.text == found.to_csv(), got.text
    page = server.request("GET", f"/answers/{entry}", cookie=server.session("analyst"))
    assert page.status == 200 and "Accepted by the independent checker" in page.text
