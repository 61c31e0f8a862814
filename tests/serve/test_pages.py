"""Pages: every one for every role, well formed and labelled, whatever names and questions hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from lastbit.errors import BudgetExceeded
from lastbit.ledger import ROLES, Ledger, Limit
from lastbit.report.charts import PALETTE
from lastbit.serve.builder import statement
from lastbit.serve.questions import Job, Preview, Question, Refusal
from lastbit.serve.routes import PAGES, RIGHTS
from lastbit.tables import Budget, Column, DataCard, PrivateTable, PublicTable, Source
from lastbit.tables.query.query import Query
from tests.report.answer_records import STEERING, by_region, cell, count, mean, record
from tests.report.test_answers import VOID
from tests.serve.serving import NAMES, Answer, Serving, served

HOSTILE = "\"><img src=x onerror=alert(1)>'&{{ 7 * 7 * 7777 }}"
SQL = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
NOTHING = {"epsilon": "0", "delta": "0", "rho": "0"}
HALF = {**NOTHING, "epsilon": "1/2"}
ENTRY = 7  # of the answer, in the ledger of `site`
PLACES = Path("src/lastbit/serve")
CSV = Source(kind="csv", paths=("visits.csv",))


class Table:
    """A table as the catalogue has it."""

    slot = 2.0
    is_unsized = True

    def __init__(self, ledger: Ledger, name: str, budget: Budget, **told: Any) -> None:
        words = told.pop("words", name)
        self.ledger, self.name, self.is_changed = ledger, name, told.pop("changed", False)
        columns = [
            Column(name="patient", type="integer"),
            Column(name=f"region {words}", type="text", keys=(words, "south")),
            Column(name="cost", type="number", bounds=(0, 500), nullable=False),
        ]
        whose: Any = {"unit": "patient", "max_rows": 3, "columns": {"patient": columns[0]}}
        self.card = DataCard(
            name=name,
            source=CSV,
            unit="patient",
            max_rows=20,
            max_groups=5,
            columns={column.name: column for column in columns},
            budget=budget,
            account="patients" if budget.kind == "approx" else None,
            public={"regions": PublicTable(name="regions", source=CSV, columns={words: "text"})},
            private={"stays": PrivateTable(name="stays", source=CSV, **whose)},
        )
        self.account_name = self.card.account_name
        price = {"epsilon": "1/2", "delta": None, "rho": None}
        self.examples = (SimpleNamespace(sql=f"SELECT '{words}'", words=words, **price),)

    def account(self) -> Any:
        return self.ledger.account(self.account_name, self.card.budget)

    def data(self) -> str:
        return "ab" * 32

    def changed(self) -> bool:
        return self.is_changed


class Desk:
    """A desk that answers at once; what it says is `words`."""

    unwell = None

    def __init__(self, ledger: Ledger, words: str) -> None:
        self.words, self.asked = words, list[tuple[Question, str | None]]()
        self.sessions: dict[str | None, str] = {}
        approx = Budget(epsilon=3, delta="1e-8")
        self.tables = [
            Table(ledger, words, approx, changed=True),
            Table(ledger, "filtered", Budget(kind="filter", epsilon=5, delta="1e-6"), words=words),
            Table(ledger, "concentrated", Budget(rho="1/2"), words=words),
        ]
        self.ledger, self.unclaimed = ledger, ()
        self.catalogue = SimpleNamespace(seen_by=self.seen, allowance=self.allowance)
        self.state = "running"

    def seen(self, who: Any) -> list[Table]:
        return self.tables[:1] if who.role == "analyst" else self.tables

    def table(self, name: str, who: Any) -> Table:
        for table in self.seen(who):
            if table.name == name:
                return table
        raise Refusal(status=404, title="No such table", detail="there is no such table")

    def allowance(self, table: Table, who: Any) -> Any:
        return next(iter(self.ledger.allowances(table.account_name, who.principal)), None)

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def accept(self, table: str, who: Any) -> None: ...

    async def preview(self, table: str, question: Question, who: Any) -> Preview:
        if "refuse" in question.sql:
            raise Refusal(status=422, title=self.words, detail=f"{self.words} is not a column")
        words = self.words
        found = Preview(
            table=table,
            title=words,
            cost={**NOTHING, "epsilon": question.epsilon or "899/1000"},
            guarantee=words,
            facts=(("hint", words), ("price", words)),
            columns=(("what", "price", "mechanism", "noise"), (words, words, words, "± 99.97")),
            prices=(("at a price of", words), ("ε = 0.1", "± 899"), ("ε = 1", "± 90")),
            left={"epsilon": "1/3"},
        )
        if "recorded" in question.sql:
            return replace(found, recorded=ENTRY)
        return replace(found, refused=words) if question.epsilon == "9" else found

    async def made_up(self, table: str, question: Question, who: Any) -> dict[str, Any]:
        if "refuse" in question.sql:
            raise BudgetExceeded(self.words)
        told = {"made_up": {"rows": 10}, "certificate": {}, "cost": NOTHING, "guarantee": "none"}
        return rows_of(self.words) | told | {"entry": None}

    async def wait_for_slots(self, table: str) -> None:
        """They are known."""

    async def submit_all(
        self, table: str, question: Question, who: Any, *, key: str | None
    ) -> list[Job]:
        if "refuse" in question.sql:
            raise BudgetExceeded(self.words)
        self.asked.append((question, key))
        return [self.job("a1", who)]

    def job(self, id: str, who: Any) -> Job:
        if id != "a1":
            raise Refusal(status=404, title="No such job", detail="there is no such job")
        question = Question(sql=self.words, epsilon="1/2")
        about: Any = {"table": self.words, "principal": self.words, "state": self.state}
        reason = self.words if self.state == "no answer" else None
        times: Any = {"submitted": 1e9, "due": 1e9 + 2, "slot": 2.0}
        return Job(id="a1", question=question, cost=HALF, reason=reason, **times, **about)

    def jobs(self, who: Any) -> list[Job]:
        return [self.job("a1", who)]

    def answers(self, who: Any) -> list[Any]:
        line = {"entry": ENTRY, "table": self.words, "title": self.words, "cost": HALF}
        return [SimpleNamespace(**line, when="2026-11-16T09:10:11", principal=self.words)]

    def answer(self, entry: int, who: Any) -> dict[str, Any]:
        if entry != ENTRY:
            raise Refusal(status=404, title="No such answer", detail="there is none")
        return rows_of(self.words)


def rows_of(words: str) -> dict[str, Any]:
    query = Query(
        table="visits",
        aggregates=(count("n"), mean(f"cost {words}")),
        keys=(by_region(words, STEERING, "south"),),
    )
    keys = ((words,), (STEERING,), ("south",))
    rows = [(key, [cell(1000, 30), cell(200.25, 2.5)]) for key in keys]
    return record(query, rows, sql=f"SELECT '{words}'") | {"table": words, "notes": [words]}


@contextmanager
def site(folder: Path, words: str, **settings: Any) -> Iterator[Serving]:
    ledger = Ledger.open(folder / "ledger")
    for role in ROLES:
        ledger.set_principal(NAMES[role], role, by=NAMES["steward"])
    desk = Desk(ledger, words)
    for table in desk.tables:
        table.account()
    with served(folder, ledger=ledger, desk=desk, **settings) as server:
        limit = Limit(epsilon=Fraction(1), delta=Fraction(1, 10**9), period="month")
        ledger.set_allowance("patients", NAMES["analyst"], limit, by=NAMES["steward"])
        server.gate.token_made(NAMES["analyst"], name=words, days=3)
        yield server


@pytest.fixture(scope="module", params=["visits", HOSTILE], ids=["plain", "hostile"])
def server(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Serving]:
    with site(tmp_path_factory.mktemp("pages"), request.param) as found:
        yield found


def visited(server: Serving, path: str, role: str | None, **sent: Any) -> Answer:
    known = server.desk.sessions
    if role is not None and role not in known:
        known[role] = server.session(role)
    cookie = known.get(role)
    return server.request("POST" if "form" in sent else "GET", path, cookie=cookie, **sent)


# ---------------------------------------------------------------- what a page must be


class Page(HTMLParser):
    """A page, read: elements are closed in order, and everything is where it belongs."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), attrs
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not set(self.open) & {"script", "style"}:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, *tags: str) -> list[dict[str, str]]:
        return [attributes for tag, attributes in self.elements if tag in tags]


def check(text: str, *, whole: bool = True) -> Page:
    """The page; refused if it is not fit for everybody, or not safe."""
    page = Page(text)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(ids)) == len(ids), ids
    for tag, attributes in page.elements:
        assert tag not in ("style", "iframe", "object", "embed", "base"), tag
        assert "style" not in attributes, attributes
        assert not [name for name in attributes if name.startswith("on")], attributes
        for name in ("href", "src", "action", "formaction"):
            target = attributes.get(name, "/")
            assert re.match(r"[/#](?!/)", target), target
        for name in ("for", "form", "aria-labelledby", "aria-describedby", "data-copy"):
            if name in attributes and whole:
                assert attributes[name] in ids, attributes
    scripts = [one.get("src", "").split("?")[0] for one in page.all("script")]
    editors = [one for one in page.all("textarea") if one.get("id") == "sql"]
    editor = ["/static/editor.js"] * len(editors)
    assert scripts == (["/static/serve.js", *editor] if whole else [])
    assert page.all("img") == []
    labelled = {one["for"] for one in page.all("label")}
    for field in page.all("input", "select", "textarea"):
        if field.get("type") != "hidden":
            assert field.get("id") in labelled or field.get("aria-label"), field
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    if whole:
        assert levels[0] == 1 and levels.count(1) == 1, levels
        assert len(page.all("main")) == len(page.all("title")) == 1
        assert page.all("html") == [{"lang": "en"}]
    for before, after in pairwise(levels):
        assert after <= before + 1, levels
    assert str(7 * 7 * 7777) not in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e]", page.text)
    return page


def paths(server: Serving) -> dict[str, str]:
    """An address for every page that is read."""
    table = quote(server.desk.words, safe="")
    code = server.gate.link_made("ana").removeprefix("/link/")
    told = {"{code}": code, "{table}": table, "{job}": "a1", "{entry:int}": str(ENTRY)}
    found = {}
    for route in PAGES:
        name = route.handler.partition(".")[2]
        if route.method == "GET" and name not in ("static", "health", "answer_file"):
            path = route.path.replace("{kind}", "csv")
            for part, value in told.items():
                path = path.replace(part, value)
            found[name] = path
    return found


@pytest.mark.parametrize("role", [*ROLES, None])
def test_every_page_for_every_role(server, role):
    rights = {
        route.handler.partition(".")[2]: route.right for route in PAGES if route.method == "GET"
    }
    for handler, path in paths(server).items():
        answer = visited(server, path, role)
        right = rights[handler]
        if role is None and right != "open":
            assert answer.status == 401, handler
            assert check(answer.text).all("nav") == []
        elif role is not None and right not in RIGHTS[role]:
            assert answer.status == 403, handler
        else:
            assert answer.status == 200, (handler, answer.text)
        if handler == "register" and answer.status == 200:
            assert "attachment" in answer.headers["content-disposition"]
        else:
            page = check(answer.text)
            assert answer.headers["content-type"] == "text/html; charset=utf-8"
            assert (NAMES[role] in page.text) if role else True


def test_what_is_shown_of_somebody_elses_words_is_shown_as_text(server):
    words = server.desk.words
    for handler in ("catalogue", "table", "ask", "job", "answers", "answer"):
        assert words in check(visited(server, paths(server)[handler], "analyst").text).text, handler
    server.gate.audit(None, "link made", words, words)
    for path in ("/audit", "/budget"):
        assert words in check(visited(server, path, "steward").text).text, path
    assert words in check(visited(server, "/me", "analyst").text).text


def test_pages_that_answer_forms(server):
    words, table = server.desk.words, quote(server.desk.words, safe="")
    asks = {"sql": SQL, "by": "price", "epsilon": "0.5", "delta": ""}
    forms: list[tuple[str, str, dict[str, str], int]] = [
        (f"/tables/{table}/preview", "analyst", asks, 200),
        (f"/tables/{table}/preview", "analyst", {**asks, "by": "error", "within": "100"}, 200),
        (f"/tables/{table}/preview", "analyst", {**asks, "by": "error"}, 422),
        (f"/tables/{table}/preview", "analyst", {**asks, "epsilon": words}, 422),
        (f"/tables/{table}/preview", "analyst", {**asks, "epsilon": "9"}, 200),
        (f"/tables/{table}/preview", "analyst", {**asks, "sql": "recorded"}, 200),
        (f"/tables/{table}/preview", "analyst", {**asks, "sql": f"refuse {words}"}, 422),
        ("/tables/concentrated/preview", "steward", {"sql": SQL, "rho": "0.1"}, 200),
        (
            f"/tables/{table}/build",
            "analyst",
            {"what1": "mean", "of1": "cost", "epsilon": words},
            200,
        ),
        (f"/tables/{table}/build", "analyst", {"by1": f"region {words}", "where1": "cost"}, 422),
        (
            f"/tables/{table}/build",
            "analyst",
            dict.fromkeys(("what1", "by1", "value1"), words),
            422,
        ),
        (f"/tables/{table}/made-up", "analyst", asks, 200),
        (f"/tables/{table}/made-up", "analyst", {**asks, "sql": "refuse"}, 403),
        (f"/tables/{table}/ask", "analyst", {**asks, "sql": f"refuse {words}"}, 403),
        ("/me/tokens", "analyst", {"name": words, "days": "3", "right:browse": "yes"}, 200),
        ("/me/tokens", "analyst", {"name": words, "days": words}, 422),
        ("/users", "steward", {"name": words, "role": "nobody", "new": "yes"}, 422),
        ("/users", "steward", {"name": f"x{len(words)}", "role": "analyst", "new": "yes"}, 200),
        ("/users/ana/link", "steward", {}, 200),
        (f"/users/{table}/link", "steward", {}, 404),
        ("/allowances", "steward", {"account": words, "principal": "ana", "epsilon": "1"}, 404),
        ("/allowances", "steward", {"account": "patients", "principal": "ana"}, 422),
        (
            "/allowances",
            "steward",
            {"account": "patients", "principal": "ana", "epsilon": "1e999999999"},
            422,
        ),
        ("/sign-in", "analyst", {"token": words, "next": words}, 401),
        ("/link/" + "x" * 43, "analyst", {"name": words}, 404),
    ]
    for path, role, form, status in forms:
        answer = visited(server, path, role, form=form)
        assert answer.status == status, (path, form, answer.text)
        check(answer.text)


def test_what_is_built_stands_in_the_box_and_the_choices_stay(server):
    words, table = server.desk.words, quote(server.desk.words, safe="")
    column = f"region {words}"
    form = {"what1": "rows", "by1": column, "where1": column, "is1": "=", "value1": words}
    answer = visited(server, f"/tables/{table}/build", "analyst", form={**form, "epsilon": "0.7"})
    page = check(answer.text)
    sql = statement(form, server.desk.tables[0].card)
    assert " ".join(sql.split()) in page.text and words.replace("'", "''") in sql
    chosen = [one["value"] for one in page.all("option") if "selected" in one]
    assert [value for value in chosen if value] == ["rows", column, column, "="]
    fields = {one.get("id"): one.get("value") for one in page.all("input")}
    assert (fields["value1"], fields["price"]) == (words, "0.7")


def test_a_part_for_the_script_is_a_part(server):
    path = f"/tables/{quote(server.desk.words, safe='')}/preview"
    form = {"sql": SQL, "by": "price", "epsilon": "0.5", "part": "preview"}
    for sql in (SQL, "refuse", "recorded"):
        answer = visited(server, path, "analyst", form={**form, "sql": sql})
        assert answer.status == 200  # browsers write any other into their console
        page = check(answer.text, whole=False)
        assert page.all("html") == []
        assert "preview-heading" in [one.get("id") for one in page.all("h2")]
        assert server.desk.words in page.text


# ---------------------------------------------------------------- what pages do


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Serving]:
    with site(tmp_path, "visits") as found:
        yield found


def pay_form(answer: Answer) -> dict[str, str]:
    """The fields that the button with the price sends."""
    found = re.search(r"<form[^>]* data-pay>(.*?)</form>", answer.text, re.DOTALL)
    assert found is not None
    return {one["name"]: one["value"] for one in Page(found[1]).all("input")}


def test_what_is_paid_is_what_was_previewed(plain):
    form = {"sql": SQL, "by": "price", "epsilon": "0.5", "delta": "1e-9", "within": "7"}
    first = visited(plain, "/tables/visits/preview", "analyst", form=form)
    assert "Pay ε = 0.5 and ask" in check(first.text).text
    fields = pay_form(first)
    key = fields.pop("key")
    assert fields == {"sql": SQL, "epsilon": "0.5", "delta": "1e-9"}
    answer = visited(plain, "/tables/visits/ask", "analyst", form={**fields, "key": key})
    assert (answer.status, answer.headers["location"]) == (303, "/jobs/a1")
    asked = Question(sql=SQL, epsilon="0.5", delta="1e-9")
    assert plain.desk.asked == [(asked, key)]
    again = visited(plain, "/tables/visits/preview", "analyst", form=form)
    assert pay_form(again)["key"] != key


def test_a_wanted_error_is_paid_by_the_price_that_was_named(plain):
    form = {"sql": SQL, "by": "error", "epsilon": "0.5", "within": "100", "weights": "balanced"}
    answer = visited(plain, "/tables/visits/preview", "analyst", form=form)
    assert "Pay ε = 0.899 and ask" in check(answer.text).text
    fields = pay_form(answer)
    assert (fields["sql"], fields["epsilon"], fields["weights"]) == (SQL, "899/1000", "balanced")
    assert not {"within", "by"} & set(fields)


def test_an_answer_on_record_is_offered_and_new_noise_is_paid_for(plain):
    form = {"sql": "recorded", "by": "price", "epsilon": "0.5"}
    answer = visited(plain, "/tables/visits/preview", "analyst", form=form)
    page = check(answer.text)
    assert f"/answers/{ENTRY}" in [one.get("href") for one in page.all("a")]
    assert "Pay ε = 0.5 for new noise" in page.text and "data-pay" not in answer.text
    fresh = {**form, "fresh": "yes", "key": "k"}
    assert visited(plain, "/tables/visits/ask", "analyst", form=fresh).status == 303
    assert plain.desk.asked[-1][0].fresh


def test_what_is_refused_offers_nothing_to_pay(plain):
    form = {"sql": SQL, "by": "price", "epsilon": "9"}
    answer = visited(plain, "/tables/visits/preview", "analyst", form=form)
    assert "data-pay" not in answer.text
    answer = visited(plain, "/tables/visits/preview", "analyst", form={**form, "sql": "refuse"})
    assert answer.status == 422 and "data-pay" not in answer.text


def test_a_question_that_waits_looks_again_by_itself(plain):
    waiting = visited(plain, "/jobs/a1", "analyst")
    refresh = [one for one in check(waiting.text).all("meta") if "http-equiv" in one]
    assert refresh == [{"http-equiv": "refresh", "content": "1"}]
    plain.desk.state = "no answer"
    ended = visited(plain, "/jobs/a1", "analyst")
    assert not [one for one in check(ended.text).all("meta") if "http-equiv" in one]
    assert visited(plain, "/jobs/b2", "analyst").status == 404


def test_files_of_an_answer(plain):
    for file, kind in (
        ("answer.csv", "text/csv"),
        ("answer.json", "application/json"),
        ("report.html", "text/html"),
    ):
        answer = visited(plain, f"/answers/{ENTRY}/{file}", "analyst")
        assert answer.status == 200 and answer.headers["content-type"].startswith(kind)
        ending = file.rpartition(".")[2]
        assert f'filename="visits-{ENTRY}.{ending}"' in answer.headers["content-disposition"]
    assert visited(plain, f"/answers/{ENTRY}/ledger", "analyst").status == 404
    noted = [(row["action"], row["subject"]) for row in plain.gate.audit_lines()]
    for ending in ("csv", "json", "html"):
        assert ("downloaded", f"answer-{ENTRY}.{ending}") in noted


def test_a_certificate_that_is_wrong_is_said_to_be(plain):
    page = check(visited(plain, f"/answers/{ENTRY}", "analyst").text)  # its certificate is made up
    assert "Not accepted" in page.text and "Accepted by" not in page.text


def test_signing_in_by_a_token_goes_on_within_the_server_only(plain):
    token = plain.tokens["analyst"]
    for onward, then in (
        ("/answers/7", "/answers/7"),
        ("", "/"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\r\nSet-Cookie: a=b", "/"),
        ("javascript:alert(1)", "/"),
    ):
        form = {"token": token, "next": onward}
        answer = visited(plain, "/sign-in", None, form=form)
        assert (answer.status, answer.headers["location"]) == (303, then), onward
        assert answer.secret
        page = check(visited(plain, f"/sign-in?next={quote(onward)}", None).text)
        fields = [one["value"] for one in page.all("input") if one.get("name") == "next"]
        assert fields == ([onward] if then == onward else [])


def test_signing_out(plain):
    cookie = plain.session("analyst")
    assert plain.request("GET", "/", cookie=cookie).status == 200
    answer = plain.request("POST", "/sign-out", cookie=cookie, form={})
    assert (answer.status, answer.headers["location"]) == (303, "/sign-in")
    assert plain.request("GET", "/", cookie=cookie).status == 401


def test_users_and_allowances_are_set_and_ended(plain):
    def did(path: str, **form: str) -> Answer:
        return visited(plain, path, "steward", form=form)

    added = did("/users", name="carl", role="analyst", new="yes")
    assert "/link/" in check(added.text).text
    assert did("/users", name="carl", role="analyst", new="yes").status == 422  # is there already
    allowed = {"account": "patients", "principal": "carl", "epsilon": "1/2", "period": "month"}
    assert did("/allowances", **allowed).headers["location"] == "/users?done=allowance"
    (mine,) = plain.ledger.allowances("patients", "carl")
    assert mine.limit == Limit(epsilon=Fraction(1, 2), period="month")
    page = check(visited(plain, "/users?done=allowance", "steward").text)
    assert "0.5 left of 0.5" in page.text and "The allowance is set." in page.text
    assert did("/allowances", account="patients", principal="carl", end="yes").status == 303
    assert plain.ledger.allowances("patients", "carl") == ()
    assert did("/users", name="carl", role="auditor").headers["location"] == "/users?done=role"
    assert did("/users/carl/remove").headers["location"] == "/users?done=removed"
    assert not plain.ledger.principal("carl").active
    assert did("/users/nobody/remove").status == 404
    actions = [row["action"] for row in plain.gate.audit_lines()]
    for action in ("user set", "link made", "allowance set", "allowance ended", "user removed"):
        assert action in actions


def test_a_session_with_fewer_rights_gives_none(plain):
    """A steward's token without the right to read the ledger must not make a steward's link."""
    some = RIGHTS["steward"] - {"ledger"}
    for less in ({"rights": some}, {"tables": {"visits"}}):
        token, _ = plain.gate.token_made("stella", name="less", days=1, **less)
        cookie = plain.request("POST", "/sign-in", form={"token": token}).secret
        before = plain.digest()
        for path, form in (
            ("/users", {"name": "eve", "role": "steward", "new": "yes"}),
            ("/users/stella/link", {}),
            ("/users/ana/revoke", {}),
            ("/users/ana/remove", {}),
            ("/allowances", {"account": "patients", "principal": "ana", "epsilon": "9"}),
        ):
            assert plain.request("POST", path, cookie=cookie, form=form).status == 403, path
        for path in ("/users", "/audit", "/ledger/register.csv"):
            assert plain.request("GET", path, cookie=cookie).status == 403, path
        assert plain.digest() == before


def test_a_token_made_on_the_page_has_what_was_ticked(plain):
    form = {"name": "laptop", "days": "3", "right:browse": "yes", "right:users": "yes"}
    shown = check(visited(plain, "/me/tokens", "analyst", form=form).text).text
    (token,) = re.findall(r"lbt_\S+", shown)
    line = plain.gate.tokens("ana")[0]
    assert line.rights == {"open", "self", "browse"} and line.tables is None
    assert token not in visited(plain, "/me", "analyst").text
    revoked = visited(plain, f"/me/tokens/{line.id}/revoke", "analyst", form={})
    assert revoked.headers["location"] == "/me?done=token"


def test_the_first_steward_is_named_on_the_page(tmp_path):
    ledger = Ledger.open(tmp_path / "other")
    with site(tmp_path, "visits") as server:
        server.gate.ledger = ledger  # which has no principal
        server.gate._forget()
        path = server.gate.link_made(None)
        page = check(server.request("GET", path).text)
        assert "first steward" in page.text
        begun = server.request("POST", path, form={"name": "sofia"})
        assert begun.status == 303 and begun.secret
        first = check(server.request("GET", "/", cookie=begun.secret).text)
        assert "You are the only user so far" in first.text
        assert [(one.name, one.role) for one in ledger.principals()] == [("sofia", "steward")]


# ---------------------------------------------------------------- style and templates


def test_static_files_are_three_and_kept(plain):
    page = visited(plain, "/sign-in", None).text
    for path in re.findall(r"/static/[^\"]+", page):
        answer = plain.request("GET", path)
        assert answer.status == 200 and "immutable" in answer.headers["cache-control"]
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(", answer.text)
    css = plain.request("GET", "/static/serve.css").text
    for name in PALETTE:
        assert f"--{name}:" in css
    assert "&quot;" not in css and "prefers-reduced-motion" in css
    for name in ("shell.html", "..%2fpages.py", "serve.css.map"):
        assert plain.request("GET", f"/static/{name}").status in (400, 404)


def test_templates_have_no_way_around_escaping():
    for file in PLACES.glob("templates/*.html"):
        text = file.read_text("utf-8")
        assert not re.search(r"\|\s*safe|autoescape|Markup", text), file
        assert not re.search(r"<style|\bstyle=|\bon[a-z]+=|<script(?! src)", text), file
        assert not re.search(r"https?:", text), file


@pytest.mark.parametrize("dark", [False, True])
def test_words_stand_out_from_their_paper(dark):
    css = (PLACES / "static/serve.css").read_text("utf-8")
    own = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", part)) for part in css.split("@media")]
    colours = {name: pair[dark] for name, pair in PALETTE.items()} | own[dark]
    pairs = [("ink", "paper"), ("ink", "panel"), ("soft", "paper"), ("soft", "panel")]
    pairs += [("accent", "paper"), ("accent", "panel"), ("on-accent", "accent")]
    pairs += [("bad", "paper"), ("bad", "panel"), ("good", "panel"), ("axis", "paper")]
    for words, paper in pairs:
        assert contrast(colours[words], colours[paper]) >= 4.5, (words, paper)
    for border in ("faint", "bar"):  # WCAG 1.4.11: what is not text
        assert contrast(colours[border], colours["paper"]) >= 3, border


def contrast(one: str, other: str) -> float:
    """As WCAG 2.2 defines it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)
