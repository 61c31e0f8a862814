"""Tables of a server: what the client sends, and what it takes from servers that lie."""

from __future__ import annotations

import copy
import json
import pickle
import re
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lastbit as lb
from lastbit.errors import (
    BudgetExceeded,
    InvalidParameter,
    LastbitError,
    NotAllowed,
    QueryRefused,
    ServerFailed,
)
from lastbit.release import connection, remote
from lastbit.tables import card_to_json, parsed, planned, read_card
from lastbit.verify import digest

TOKEN = "lbt_" + "s3cret" * 7 + "x"
SQL = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
CARD = """\
[table]
name = "visits"
source = "visits.parquet"
neighbours = "add-remove"
[unit]
column = "patient"
max_rows = 3
[budget]
epsilon = 100
[columns.patient]
type = "integer"
[columns.region]
type = "text"
keys = ["north", "south"]
[columns.cost]
type = "number"
bounds = [0, 100]
[columns.day]
type = "date"
[public.regions]
source = "regions.csv"
columns = {region = "text", climate = "text"}
"""


@pytest.fixture(scope="module")
def card(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("there")
    rows: Any = duckdb.sql(
        "SELECT range // 2 AS patient, ['north', 'south'][1 + range % 2] AS region, "
        "(range % 100)::DOUBLE AS cost, DATE '2026-01-01' AS day FROM range(200)"
    )
    rows.write_parquet(str(folder / "visits.parquet"))
    (folder / "regions.csv").write_text("region,climate\nnorth,cold\nsouth,warm\n")
    (folder / "visits.toml").write_text(CARD)
    return folder / "visits.toml"


class Lying:
    """A server on the loopback address that answers what a test wants it to."""

    def __init__(self, card: Path) -> None:
        self.card = read_card(card)
        self.there = lb.table(card)
        self.asked: list[tuple[str, str, dict[str, str], Any]] = []
        self.changed: dict[str, Callable[[Any], Any]] = {}
        self.raw: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.drops = 0
        self.jobs: dict[str, dict[str, Any]] = {}
        self.records: dict[int, dict[str, Any]] = {}
        self.address = ""

    def answer(self, method: str, path: str, key: str | None, data: Any) -> tuple[int, Any]:
        if path == "/tables/visits":
            return 200, card_to_json(self.card)
        if path == "/tables/visits/preview":
            return 200, self.preview(data)
        if path == "/tables/visits/questions":
            return 202, self.job(key or "", data)
        if path.startswith("/jobs/"):
            found = self.jobs[path.removeprefix("/jobs/")]
            found |= {"state": "answered", "entry": found["number"]}
            return 200, found
        if path.startswith("/answers/"):
            return 200, self.records[int(path.removeprefix("/answers/"))]
        return 404, {"type": "/problems/unknown-table", "detail": "no such table"}

    def preview(self, data: dict[str, Any]) -> dict[str, Any]:
        price = {name: data[name] for name in ("epsilon", "delta", "rho") if name in data}
        if "within" in data:
            price = {"epsilon": "1"}
        plan = planned(parsed(data["sql"], self.card), self.card, **price)
        cost = plan.cost.to_json()
        return {"title": "t", "cost": cost, "facts": [["price", "1"]], "left": {"epsilon": "1/2"}}

    def job(self, key: str, data: dict[str, Any]) -> dict[str, Any]:
        if key not in self.jobs:
            answer = self.there.sql(data["sql"]).release(
                epsilon=data.get("epsilon", "1"), fresh=data.get("fresh", False)
            )
            number = answer.record["entry"]["sequence"]
            self.records[number] = json.loads(answer.to_json())
            cost = answer.record["cost"] if answer.charged else None
            self.jobs[key] = {"id": key, "state": "waiting", "cost": cost, "number": number}
        return self.jobs[key]

    def paid(self) -> int:
        return sum(path.endswith("/questions") for _, path, _, _ in self.asked)


@contextmanager
def lying(card: Path) -> Iterator[Lying]:
    server = Lying(card)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            path = self.path.removeprefix("/api/v1")
            length = int(self.headers.get("Content-Length") or 0)
            data = json.loads(self.rfile.read(length)) if length else None
            server.asked.append((self.command, path, dict(self.headers), data))
            kind = (
                path.split("/")[-1]
                if path.endswith(("preview", "questions"))
                else path.split("/")[1]
            )
            if server.drops:
                server.drops -= 1
                if kind == "questions":  # it is taken, and the client does not hear of it
                    server.answer(self.command, path, self.headers.get("Idempotency-Key"), data)
                return
            if kind in server.raw:
                server.raw[kind](self)
                return
            key = self.headers.get("Idempotency-Key")
            status, body = server.answer(self.command, path, key, data)
            if kind in server.changed:
                body = server.changed[kind](copy.deepcopy(body))
                status = body.pop("status", status) if isinstance(body, dict) else status
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_POST = do_GET  # noqa: N815

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        server.address = f"http://127.0.0.1:{listening.server_port}/visits"
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            listening.shutdown()
            thread.join()


@pytest.fixture
def server(card: Path) -> Iterator[Lying]:
    with lying(card) as found:
        yield found


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits are for people and real servers."""
    monkeypatch.setattr("lastbit.release.remote.time.sleep", lambda _: None)
    monkeypatch.setattr(remote, "LONGEST_WAIT", 0.01)
    monkeypatch.delenv("LASTBIT_TOKEN", raising=False)


def there(server: Lying) -> Any:
    return lb.table(server.address, token=TOKEN)


# ---------------------------------------------------------------- an honest server


def test_an_answer_is_the_servers_and_is_checked(server):
    answer = there(server).sql(SQL).release(epsilon=1, fresh=True)
    assert answer.columns == ("n",) and answer.keys == ("region",) and answer.charged
    ways = [(method, path) for method, path, _, _ in server.asked]
    assert ways[1][1] == "/tables/visits/questions"
    sent = server.asked[1][3]
    assert sent == {"sql": SQL, "epsilon": "1", "fresh": True}
    assert all(h["Authorization"] == f"Bearer {TOKEN}" for _, _, h, _ in server.asked)
    again = there(server).sql(SQL).release(epsilon=1)
    assert not again.charged and again.record == answer.record
    assert again.consistent().totals is not None


def test_a_part_of_a_recorded_answer_is_shown(server):
    there(server).sql(SQL).release(epsilon=2)
    part = there(server).sql(f"{SQL.replace(' n ', ' m ')} ORDER BY m DESC LIMIT 1")
    server.records.clear()
    answer = part.release(epsilon="0.5")
    if not answer.charged:
        assert answer.columns == ("m",) and len(answer) == 1


def test_dropped_connections_are_tried_again_under_one_key(server):
    table = there(server).sql("SELECT COUNT(*) AS dropped FROM visits")
    server.drops = 2
    answer = table.release(epsilon=1)
    keys = {h["Idempotency-Key"] for _, p, h, _ in server.asked if p.endswith("questions")}
    assert answer.charged and server.paid() == 3 and len(keys) == 1
    assert re.fullmatch("[0-9a-f]{32}", keys.pop()) and len(server.jobs) == 1
    table.release(epsilon=1)
    assert len(server.jobs) == 2  # another call, another key


def test_a_server_that_is_gone_is_said_and_how_to_go_on(server):
    table = there(server).sql(SQL)
    server.drops = 100
    with pytest.raises(ServerFailed, match="unclear whether it was charged; ask again"):
        table.release(epsilon=1)
    with pytest.raises(ServerFailed, match="look at the address"):
        lb.table("http://127.0.0.1:9/visits", token=TOKEN)


def test_explain_is_planned_here_and_compared(server):
    text = there(server).sql(SQL).explain(epsilon=1)
    # the ledger has counts, so that errors are expected for groups of other sizes here
    mine = lb.table(server.card.file).sql(SQL).explain(epsilon=1).splitlines()
    assert [line for line in mine if "rows (" not in line] == [
        line for line in text.splitlines()[: len(mine)] if "rows (" not in line
    ]
    assert text.endswith("left after it: epsilon = 0.5")
    assert server.paid() == 0
    server.changed["preview"] = lambda body: body | {"cost": {**body["cost"], "epsilon": "2"}}
    with pytest.raises(ServerFailed, match="another price"):
        there(server).sql(SQL).explain(epsilon=1)
    with pytest.raises(ServerFailed, match="another price"):
        there(server).sql(SQL).release(within=1000)
    assert server.paid() == 0


def test_keys_of_public_tables_are_the_servers_word(server):
    sql = "SELECT climate, COUNT(*) AS n FROM visits JOIN regions USING (region) GROUP BY climate"
    table = there(server).sql(sql)
    assert table.plan(epsilon=1) is None
    assert table.explain(epsilon=1).startswith("t\nprice     1\n")
    assert table.release(epsilon=1).keys == ("climate",)
    with pytest.raises(InvalidParameter, match="name a price"):
        table.release(within=100)
    server.changed["preview"] = lambda body: body | {"cost": {**body["cost"], "epsilon": "50"}}
    before = server.paid()
    with pytest.raises(ServerFailed, match="another price"):
        table.release(epsilon="1/3")
    assert server.paid() == before
    del server.changed["preview"]
    server.changed["questions"] = lambda body: (
        body | {"cost": {"epsilon": "2", "delta": "0", "rho": "0"}}
    )
    with pytest.raises(ServerFailed, match="another price charged"):
        table.release(epsilon="1/2")


# ---------------------------------------------------------------- steps, as SQL

STEPS: dict[str, Callable[[Any], Any]] = {
    "count": lambda t: t.agg(n=lb.count()),
    "where": lambda t: t.where("cost > 10 OR region = 'north'").where("cost < 90").agg(
        n=lb.count("cost")
    ),
    "group_by": lambda t: t.group_by("region", dear="cost > 50").agg(
        n=lb.count(), units=lb.count_units()
    ),
    "numbers": lambda t: t.agg(
        a=lb.sum("cost"), b=lb.mean("cost", 0, 50), c=lb.variance("cost"), d=lb.std("cost"),
        e=lb.min("cost"), f=lb.max("cost", "0.5", "99.25"),
    ),
    "ranks": lambda t: t.agg(a=lb.median("cost"), b=lb.quantiles("cost", ["0.25", "0.9"])),
    "histogram": lambda t: t.agg(h=lb.histogram("cost", [0, 18, "65.5"])),
    "distinct": lambda t: t.agg(d=lb.count_distinct("region")),
    "formulas": lambda t: t.group_by("region").agg(
        share=100 * lb.sum("cost > 50") / lb.count(), other=round(-lb.mean("cost"), 1)
    ),
    "pairs": lambda t: t.agg(c=lb.correlation("cost", "cost * 2"), s=lb.slope("cost", "cost / 3")),
    "afterwards": lambda t: t.group_by("region").agg(n=lb.count()).having("n > 10").order_by(
        "n", descending=True
    ).limit(1),
    "columns": lambda t: t.with_columns(half="cost / 2", quarter="half / 2").where("half > 1").agg(
        m=lb.mean("quarter")
    ),
    "join": lambda t: t.join("regions", on="region").where("climate = 'cold'").agg(n=lb.count()),
    "per unit": lambda t: t.where("cost > 1").per_unit(total=lb.sum("cost"), visits=lb.count()).agg(
        m=lb.mean("total", 0, 300), n=lb.count()
    ),
    "public keys": lambda t: t.join("regions", on="region").group_by("climate").agg(n=lb.count()),
    "dates": lambda t: t.where("day >= DATE '2026-01-01'").group_by(year="year(day)").agg(
        n=lb.count()
    ),
}  # fmt: skip


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_steps_mean_the_same_in_sql(server, step):
    sql = step(there(server)).question
    here = lb.table(server.card.file)
    assert here.sql(sql).query == step(here).query


UNWRITABLE = {
    "cdf": lambda t: t.agg(c=lb.cdf("cost", [10, 20])),
    "intervals": lambda t: t.agg(m=lb.median("cost", intervals=False)),
    "nullable": lambda t: t.agg(m=lb.mean("cost", nullable=False)),
    "torn": lambda t: t.where("1 = 2) OR (2 = 2").where("cost < 9").agg(n=lb.count()),
    "third": lambda t: t.agg(m=lb.mean("cost", 0, "1/3")),
}


@pytest.mark.parametrize("step", UNWRITABLE.values(), ids=UNWRITABLE)
def test_what_has_no_sql_is_refused_with_the_way_out(server, step):
    before = server.paid()
    with pytest.raises(QueryRefused, match=r'ask it as one statement: \.sql\("SELECT'):
        step(there(server)).release(epsilon=1)
    assert server.paid() == before


def test_questions_that_have_no_answer_are_refused_before_anything_is_sent(server):
    table = there(server)
    for wrong in (
        lambda: table.sql("SELECT cost FROM visits"),
        lambda: table.sql(""),
        lambda: table.where("x = 1"),
        lambda: table.join(lb.table(server.card.file)),
        lambda: table.agg(n=lb.count()).sql(SQL),
        lambda: table.sql(SQL).where("cost > 1"),
        lambda: table.sql(SQL).release(),
        lambda: table.sql(SQL).release(epsilon=-1),
        lambda: table.sql(SQL).release(epsilon=1, rho=1),
        lambda: table.release(epsilon=1),
    ):
        with pytest.raises(InvalidParameter):
            wrong()
    assert len(server.asked) == 1


# ---------------------------------------------------------------- servers that lie


def resealed(record: dict[str, Any], **claim: Any) -> dict[str, Any]:
    """The record with another claim, its certificate sealed again as lastbit seals."""
    old = record["certificate"]
    made = {**old, "claim": {**old["claim"], **claim}}
    made["digest"] = digest({k: v for k, v in made.items() if k != "digest"})
    return {**record, "certificate": made}


def dearer(record: dict[str, Any]) -> dict[str, Any]:
    """A wrong number in the first cell."""
    record["rows"][0]["cells"][0]["value"] += 1
    return record


LIES: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "a wrong number": ("answers", dearer, "rejected by the checker"),
    "no certificate": ("answers", lambda r: r | {"certificate": None}, "no certificate"),
    "no rows": ("answers", lambda r: {k: v for k, v in r.items() if k != "rows"}, "no certificate"),
    "a list": ("answers", lambda r: [r], "fails with status 200"),
    "code to run": (
        "answers",
        lambda r: r | {"certificate": r["certificate"] | {"kind": "law"}},
        "no certificate of a release",
    ),
    "a forged claim": (
        "answers",
        lambda r: resealed(r, table="visits", epsilon="1/100"),
        "rejected",
    ),
    "no entry of a ledger": ("answers", lambda r: r | {"entry": None}, "another entry"),
    "another entry": (
        "answers",
        lambda r: r | {"entry": r["entry"] | {"sequence": r["entry"]["sequence"] + 2}},
        "another entry than it names",
    ),
    "another table": ("answers", lambda r: resealed(r, table="other"), "rejected|another table"),
    "another price in words": (
        "answers",
        lambda r: r | {"cost": {**r["cost"], "epsilon": "1/9"}},
        "rejected",
    ),
    "another charge": (
        "questions",
        lambda j: j | {"cost": {"epsilon": "5", "delta": "0", "rho": "0"}},
        "another price charged",
    ),
    "an endless price": (
        "questions",
        lambda j: j | {"cost": {"epsilon": "1e999999999", "delta": "0", "rho": "0"}},
        "malformed",
    ),
    "no price": ("questions", lambda j: j | {"cost": {"epsilon": "x"}}, "malformed"),
    "no entry": ("jobs", lambda j: j | {"entry": "../../etc"}, "names no answer"),
    "never": ("jobs", lambda j: j | {"state": "no answer", "reason": None}, "stays charged"),
    "a strange state": ("jobs", lambda j: j | {"state": "\x1b[2J", "reason": "\x1b]0;x"}, "0;x"),
}


@pytest.mark.parametrize(("kind", "change", "words"), LIES.values(), ids=LIES)
def test_lies_are_found(server, kind, change, words):
    server.changed[kind] = change
    with pytest.raises(ServerFailed, match=words) as caught:
        there(server).sql(SQL).release(epsilon=1, fresh=True)
    assert "\x1b" not in str(caught.value)


def test_the_answer_to_another_question_is_refused(server):
    other = server.there.sql("SELECT region, SUM(cost) AS n FROM visits GROUP BY region")
    record = json.loads(other.release(epsilon=1).to_json())
    server.changed["answers"] = lambda _: record
    with pytest.raises(ServerFailed, match="another question"):
        there(server).sql(SQL).release(epsilon=1)


def test_the_answer_at_another_price_is_refused(server):
    record = json.loads(server.there.sql(SQL).release(epsilon="0.01", fresh=True).to_json())
    server.changed["answers"] = lambda _: record
    for fresh in (True, False):
        with pytest.raises(ServerFailed, match="another price"):
            there(server).sql(SQL).release(epsilon=1, fresh=fresh)


def test_a_better_answer_on_record_is_taken_where_nothing_is_charged(server):
    there(server).sql(SQL).release(epsilon=3)
    answer = there(server).sql(SQL).release(epsilon="0.123")
    assert not answer.charged and answer.cost.epsilon >= 1 and answer.shown is not None


def test_cards_that_are_none_or_anothers_are_refused(server):
    for change in (
        lambda c: c | {"name": "other", "account": "other"},
        lambda c: c | {"max_rows": 0},
        lambda c: c | {"budget": {**c["budget"], "epsilon": "1e999999999"}},
        lambda c: {},
        lambda c: c | {"columns": "all"},
    ):
        server.changed["tables"] = change
        with pytest.raises(ServerFailed, match="no card that can be used"):
            there(server)


def sends(*pieces: bytes, forever: bytes = b"") -> Callable[[BaseHTTPRequestHandler], None]:
    def send(handler: BaseHTTPRequestHandler) -> None:
        try:
            for piece in pieces:
                handler.wfile.write(piece)
            while forever:
                handler.wfile.write(forever)
        except OSError:
            pass

    return send


HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
RAW = {
    "an endless body": (sends(HEAD + b"\r\n", forever=b"x" * 65536), "more than is taken"),
    "a huge body": (
        sends(HEAD + b"Content-Length: 9999999999\r\n\r\n", forever=b" " * 65536),
        "more than",
    ),
    "endless chunks": (
        sends(
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
            forever=b"10000\r\n" + b"x" * 65536 + b"\r\n",
        ),
        "more than is taken",
    ),
    "endless headers": (
        sends(b"HTTP/1.1 200 OK\r\n", forever=b"a: b\r\n" * 1000),
        "cannot be reached",
    ),
    "no JSON": (sends(HEAD + b"\r\n<html>"), "does not answer in JSON"),
    "no number": (sends(HEAD + b'\r\n{"a": NaN}'), "does not answer in JSON"),
    "deep JSON": (sends(HEAD + b"\r\n" + b"[" * 100_000), "does not answer in JSON"),
    "no UTF-8": (sends(HEAD + b'\r\n"\xff"'), "does not answer in JSON"),
    "half a body": (sends(HEAD + b'Content-Length: 99\r\n\r\n{"a": 1'), "cannot be reached"),
    "half a chunk": (
        sends(HEAD + b"Transfer-Encoding: chunked\r\n\r\n10\r\n{}"),
        "cannot be reached",
    ),
    "no HTTP": (sends(b"SSH-2.0-OpenSSH\r\n"), "cannot be reached"),
    "an empty body": (sends(HEAD + b"\r\n"), "does not answer in JSON"),
}


@pytest.mark.parametrize(("send", "words"), RAW.values(), ids=RAW)
def test_bodies_that_are_none_end(server, send, words):
    server.raw["tables"] = send
    with pytest.raises(ServerFailed, match=words):
        there(server)


@pytest.mark.parametrize(
    "sent",
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (HEAD + b"Content-Length: 4000000\r\n\r\n", b" "),
    ],
    ids=["interim responses", "a byte at a time"],
)
def test_what_never_ends_is_ended(server, monkeypatch, sent):
    monkeypatch.setattr(connection, "_LONGEST", 0.3)

    def slowly(handler: BaseHTTPRequestHandler) -> None:
        try:
            handler.wfile.write(sent[0])
            for _ in range(2000):
                handler.wfile.write(sent[1])
                threading.Event().wait(0.005)
        except OSError:
            pass

    server.raw["tables"] = slowly
    with pytest.raises(ServerFailed, match="too slowly"):
        there(server)


def test_redirects_are_refused_and_the_token_stays(card, server):
    with lying(card) as other:
        for status in (301, 302, 303, 307, 308):
            away = f"HTTP/1.1 {status} Away\r\nLocation: {other.address}\r\n\r\n".encode()
            server.raw["tables"] = sends(away)
            with pytest.raises(ServerFailed, match="redirect"):
                there(server)
        assert other.asked == []


PROBLEMS = (
    (401, "not-signed-in", NotAllowed, "refuses the token"),
    (403, "over-budget", BudgetExceeded, "words of the server"),
    (403, "not-allowed", NotAllowed, "words of the server"),
    (404, "unknown-table", NotAllowed, "words of the server"),
    (409, "data-changed", NotAllowed, "words of the server"),
    (422, "refused", QueryRefused, "words of the server"),
    (503, "queue-full", ServerFailed, "words of the server"),
    (500, "failed", ServerFailed, "status 500"),
    (200, "", ServerFailed, "status 200"),
)


@pytest.mark.parametrize(("status", "kind", "error", "words"), PROBLEMS)
def test_problems_become_errors_without_the_token(server, status, kind, error, words):
    said = {
        "status": status,
        "type": f"/problems/{kind}",
        "detail": f"words of the server \x1b[31m {TOKEN} {'x' * 5000}",
    }
    server.changed["questions"] = lambda _: said.copy()
    with pytest.raises(error, match=words) as caught:
        there(server).sql(SQL).release(epsilon=1)
    text = str(caught.value)
    assert TOKEN not in text and "\x1b" not in text and len(text) < 800


def test_too_many_requests_are_tried_again(server):
    server.changed["questions"] = lambda _: {
        "status": 429,
        "type": "/problems/rate",
        "detail": "slow",
    }
    with pytest.raises(QueryRefused, match="slow"):
        there(server).sql(SQL).release(epsilon=1)
    assert server.paid() == 5


@pytest.mark.parametrize("kind", ["jobs", "answers"])
@pytest.mark.parametrize("status", [401, 403, 404, 409, 422, 429, 503])
def test_no_error_after_paying_says_that_nothing_was_charged(server, kind, status):
    server.changed[kind] = lambda _: {"status": status, "type": "/problems/x", "detail": "slow"}
    with pytest.raises(ServerFailed, match=r"slow; it is unclear .* is free") as caught:
        there(server).sql(SQL).release(epsilon=1)
    assert "nothing was charged" not in str(caught.value)


@pytest.mark.parametrize("status", [409, 422, 429, 503])
def test_a_refusal_after_a_lost_try_does_not_say_that_nothing_was_charged(server, status):
    asked, server.drops = there(server).sql(SQL), 1  # it was taken, and nobody has heard of it
    server.changed["questions"] = lambda _: {"status": status, "detail": "slow"}
    with pytest.raises(ServerFailed, match="slow; it is unclear"):
        asked.release(epsilon=1)


# ---------------------------------------------------------------- addresses and tokens


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("http://stats.example.org/visits", "is not encrypted"),
        ("https://stats.example.org", "names no table"),
        ("https://stats.example.org/a/b", "names no table"),
        ("https:///visits", "names no table"),
        ("https://ana:pw@stats.example.org/visits", "more than a host and a table"),
        ("https://stats.example.org/visits?token=x", "more than a host and a table"),
        ("https://stats.example.org:x/visits", "cannot be read"),
        ("https://stats.example.org/vis its", "holds blanks"),
        ("https://stats.example.org/visits\r\nX: y", "holds blanks"),
        ("HTTP://stats.example.org/visits", "is not encrypted"),
        ("https://stäts.example.org/visits", "not ASCII"),
    ],
)
def test_addresses_that_are_not_taken(address, words):
    with pytest.raises(InvalidParameter, match=words):
        lb.table(address, token=TOKEN)


def test_tokens_come_from_the_argument_or_the_environment(server, monkeypatch):
    with pytest.raises(NotAllowed, match="no token is given"):
        lb.table(server.address)
    for wrong in ("short", "has blanks in it", "line\r\nfeed-line", "é" * 10):
        with pytest.raises(InvalidParameter, match="is not a token") as caught:
            lb.table(server.address, token=wrong)
        assert wrong not in str(caught.value)
    monkeypatch.setenv("LASTBIT_TOKEN", TOKEN)
    assert lb.table(server.address).sql(SQL).release(epsilon=1).columns == ("n",)
    with pytest.raises(InvalidParameter, match="is for https:// addresses"):
        lb.table("visits.toml", token=TOKEN)
    with pytest.raises(InvalidParameter, match="declared by its card"):
        lb.table(server.address, unit="patient", token=TOKEN)


def test_the_token_is_in_no_repr_pickle_or_frame(server):
    table = there(server).sql(SQL)
    assert TOKEN not in repr(table) + repr(table.server) + str(table.server)
    with pytest.raises(LastbitError, match="not to be written down"):
        pickle.dumps(table.server)
    server.raw["questions"] = sends(b"nonsense\r\n")
    for wrong in (lambda: table.release(epsilon=1), lambda: table.explain(epsilon="x")):
        try:
            wrong()
            raise AssertionError
        except LastbitError as error:
            frames = traceback.TracebackException.from_exception(error, capture_locals=True)
            assert TOKEN not in "".join(frames.format())


def test_certificates_are_verified(tmp_path, server):
    """A server of this machine with a certificate that nobody has signed is not talked to."""
    import ssl
    import subprocess

    key, signed = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost "
        f"-keyout {key} -out {signed}".split(),
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("needs openssl")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(signed, key)
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.socket = context.wrap_socket(listening.socket, server_side=True)
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        try:
            with pytest.raises(ServerFailed, match="certificate that is not valid"):
                lb.table(f"https://localhost:{listening.server_port}/visits", token=TOKEN)
        finally:
            listening.shutdown()
            thread.join()
    assert seen == []
