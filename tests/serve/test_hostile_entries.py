"""Hostile entries through every role's rights; then every command, every page and a question.

Nothing is stopped: each of them goes on, with the same sums and the other answers. Nothing is
believed: budgets, neighbours, roles and allowances are what stewards made them, every charge
counts, and no record is shown that the independent checker rejects.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from fractions import Fraction
from itertools import count
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from lastbit.errors import LastbitError
from lastbit.ledger import Ledger, Limit
from lastbit.release import record_problem, table
from lastbit.serve.catalogue import Catalogue
from lastbit.serve.desk import Desk
from lastbit.serve.routes import CALLS, PAGES
from lastbit.serve.settings import Settings
from lastbit.serve.store import Store
from lastbit.tables import Cost
from tests.cli.running import lastbit
from tests.engines import servers
from tests.evidence import Extent
from tests.ledger.books import person, signed_in
from tests.ledger.hostile import (
    VALUES,
    WHOLE,
    hostile_entry,
    hostile_record,
    hostile_text,
    written as hostile_json,
)
from tests.serve.asking import asking
from tests.serve.desks import CARD, write_rows, written
from tests.serve.serving import Serving, served

postgres = servers.postgres
CENT = Fraction(1, 100)
BATCH, PAGED = 40, 125
_NUMBERS = count(1)
COUNT = "SELECT COUNT(*) AS n FROM visits WHERE cost < {}"
PLAIN = "SELECT COUNT(*) AS n FROM visits"


def state_of(ledger: Ledger) -> Any:
    """All that only stewards decide."""
    accounts = [(one.name, one.budget, one.neighbours) for one in ledger.accounts()]
    limits = [(one.account, one.principal, one.limit) for one in ledger.allowances()]
    return accounts, ledger.principals(), limits


def check_commands(card: Path, folder: Path, turn: int) -> int:
    """Every command that reads a ledger, on the command line; how many."""
    place = str(Ledger.existing(card_ledger(card)).path)
    new = [str(folder / f"{name}-{turn}") for name in ("backup", "copy", "restored", "heads")]
    commands = [
        ("ledger", "verify", place), ("ledger", "verify", place, "--json"),
        ("ledger", "log", place, "--last", "60"), ("ledger", "log", place, "--json"),
        ("ledger", "export", place), ("ledger", "export", place, "--format", "csv"),
        ("ledger", "export", place, "--format", "html"), ("ledger", "backup", place, new[0]),
        ("ledger", "copy", place, new[1]), ("ledger", "restore", new[0], new[2]),
        ("ledger", "anchor", place, new[3]), ("ledger", "verify", place, "--anchor", new[3]),
        ("ledger", "upgrade", place), ("budget", place), ("budget", place, "--json"),
        ("budget", str(card)), ("user", "list", str(card)), ("user", "show", str(card), "ana"),
        ("allowance", "list", str(card)), ("report", str(card), "--checklist"),
        ("report", str(card), "--registry"),
    ]  # fmt: skip
    for command in commands:
        result = lastbit(*command)
        assert result.exit_code == 0, (command, result.output[-800:], result.exception)
        result.output.encode()
    return len(commands)


def card_ledger(card: Path) -> str:
    from lastbit.tables import read_card

    return str(read_card(card).ledger)


# ---------------------------------------------------------------- a ledger in a file, served


def pages_of(server: Serving, entry: int) -> list[str]:
    """The addresses of everything that can be looked at; with one entry."""
    fill = {
        "table": "visits", "entry": str(entry), "name": "ana", "account": "patients",
        "file": "answer.json", "kind": "csv", "job": "none", "code": "none", "token": "none",
    }  # fmt: skip
    found = []
    for route in (*PAGES, *CALLS):
        if route.method != "GET":
            continue
        path = route.path
        for name, value in fill.items():
            for kind in ("", ":int", ":path"):
                path = path.replace(f"{{{name}{kind}}}", value)
        assert "{" not in path, path
        found.append(path)
    files = [f"/answers/{entry}/{name}" for name in ("answer.csv", "report.html")]
    return [*found, *files, f"/tables/visits/ask?answer={entry}", "/ledger?verify=1"]


def check_pages(server: Serving, numbers: list[int]) -> Counter[int]:
    """Every page as every role, and the pages of each of these entries."""
    seen: Counter[int] = Counter()
    every = set(pages_of(server, numbers[-1]))
    ways = ("/answers/{}", "/api/v1/answers/{}", "/answers/{}/answer.csv")
    for part, (role, token) in enumerate(sorted(server.tokens.items())):
        cookie = server.session(role)
        about = [way.format(number) for way in ways[: part + 1] for number in numbers]
        for path in (*sorted(every), *about):
            signed: Any = {"token": token} if path.startswith("/api/") else {"cookie": cookie}
            answer = server.request("GET", path, **signed)
            good = answer.status < 500 or path == "/healthz"  # a desk that stands still says so
            assert good, (path, answer.text[:500])
            seen[answer.status] += 1
    return seen


@pytest.mark.evidence
@pytest.mark.parametrize("seed", range(4))
def test_hostile_records_in_a_file_stop_no_page_and_no_command(tmp_path, monkeypatch, seed):
    """As a file has them that came from a server of old: nothing was refused as it was written."""
    drawn, seen, refused = random.Random(seed), Counter[int](), 0
    monkeypatch.chdir(tmp_path)
    with asking(tmp_path) as server:
        ledger, card = server.ledger, tmp_path / "visits.toml"
        first = answered(server, PLAIN)
        genuine = [first, answered(server, f"{PLAIN} WHERE region = 'north'")]
        many = Extent(is_many=True).generated(30, 500)
        for turn, begin in enumerate(range(0, many, PAGED)):
            before, spent, numbers = state_of(ledger), ledger.spent("patients"), []
            for number in range(begin, min(begin + PAGED, many)):
                true = drawn.choice(genuine)
                text = hostile_record(drawn, true)
                numbers.append(write(ledger, text, true, monkeypatch, f"{number}", drawn))
            assert state_of(ledger) == before and ledger.problems() == []
            assert ledger.spent("patients").epsilon == spent.epsilon + CENT * len(numbers)
            for n in numbers:
                record = ledger.entry(n).record
                good = record is not None and record_problem(record) is None
                page = server.request("GET", f"/api/v1/answers/{n}", token=server.tokens["steward"])
                assert (page.status == 200) == (good and record["table"] == "visits"), n
                refused += not good
            seen += check_pages(server, numbers)
            check_questions(server, drawn)
            check_commands(card, tmp_path, turn)
            again = answered(server, PLAIN)  # whose record was spoiled: found behind, no charge
            assert again["rows"] == first["rows"] and again["cost"] == first["cost"]
            new = answered(server, COUNT.format(turn + 1))
            assert record_problem(new) is None and new["entry"]["sequence"] > numbers[-1]
    assert refused > many / 2 and seen[200] > 100 and seen[404] > many, seen


def check_questions(server: Serving, drawn: random.Random) -> None:
    """Questions with hostile words and prices, by every role; none is taken, none stops a page."""
    for token in server.tokens.values():
        for path in ("questions", "preview"):
            for _ in range(5):
                names = drawn.sample(("sql", "epsilon", "delta", "rho", "within", "weights"), 3)
                body = hostile_json({name: drawn.choice(VALUES) for name in names}).encode()
                said = {"Content-Type": "application/json"}
                where = f"/api/v1/tables/visits/{path}"
                answer = server.request("POST", where, token=token, body=body, headers=said)
                assert 400 <= answer.status < 500, answer.text[:300]


def write(
    ledger: Ledger, text: str, true: dict[str, Any], monkeypatch: Any, name: str, drawn: Any
) -> int:
    """Charge a cent for this text, under the question of a true answer or of nobody's."""
    with monkeypatch.context() as patch:
        for module in ("answers", "ledger"):
            place = f"lastbit.ledger.{module}.written_answer"
            patch.setattr(place, lambda *_: (text, {}))
        question = drawn.choice((true["question"], hashlib.sha256(name.encode()).hexdigest()))
        how: Any = {"who": "ana", "question": question, "fingerprint": "f", "principal": "ana"}
        how["plan_digest"] = true["certificate"]["body"]["plan_digest"]
        cost = Cost(epsilon=CENT)
        if drawn.random() < 0.5:
            return ledger.charge("patients", cost, record={}, fresh=True, **how).sequence
        paid = ledger.reserve("patients", cost, fresh=True, **how)
        return ledger.settle(paid, {}, who="ana").sequence


def answered(server: Serving, sql: str) -> dict[str, Any]:
    """The answer to a question, asked by an analyst through the server, at a cent."""
    token = server.tokens["analyst"]
    data = {"sql": sql, "epsilon": "0.01"}
    said = server.request("POST", "/api/v1/tables/visits/questions", token=token, data=data)
    assert said.status == 202, said.text
    job = said.json
    while job["state"] not in ("answered", "no answer", "refused"):
        sleep(0.05)
        job = server.request("GET", f"/api/v1/jobs/{job['id']}", token=token).json
    assert job["state"] == "answered", job
    found = server.request("GET", f"/api/v1/answers/{job['entry']}", token=token)
    assert found.status == 200
    return found.json


class Idle(Desk):
    """A desk that takes no question: what it shows is what the ledger has."""

    async def start(self) -> None: ...
    async def stop(self) -> None: ...


@pytest.mark.parametrize("text", ['{"table":"visits","asked":5,"rows":7}', "{}", WHOLE[-1]])
def test_pages_go_on_after_a_record_of_no_shape(tmp_path, monkeypatch, text):
    """Before, the lists of answers were 500 for everybody."""
    cards = written(tmp_path)
    settings = Settings(cards=cards, state=tmp_path / "state", slot=1.0)
    store = Store(settings.state)
    desk = Idle(Catalogue(settings, store), store, settings)
    true = {"question": "q", "certificate": {"body": {"plan_digest": "p"}}}
    number = write(desk.catalogue.ledger, text, true, monkeypatch, "x", random.Random(1))
    with served(tmp_path, cards, ledger=desk.catalogue.ledger, desk=desk, slot=1.0) as server:
        seen = check_pages(server, [number])
        token = server.tokens["analyst"]
        (line,) = server.request("GET", "/api/v1/answers", token=token).json["answers"]
        assert (line["entry"], line["title"], line["table"]) == (number, "unreadable entry", None)
        page = server.request("GET", f"/answers/{number}", cookie=server.session("analyst"))
        assert page.status == 404 and "Unreadable entry" in page.text
    assert seen[200] > 30 and desk.catalogue.ledger.spent("patients").epsilon == CENT


# ---------------------------------------------------------------- a ledger in PostgreSQL, by SQL


@pytest.fixture
def shared(postgres, tmp_path, monkeypatch):
    """A card whose ledger is in PostgreSQL; its principals are roles of the database."""
    pytest.importorskip("psycopg", reason=servers.MISSING)
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.init(f"{postgres.database()}&schema=books_{next(_NUMBERS)}")
    write_rows(tmp_path)
    text = CARD.format(name="visits", budget="epsilon = 100")
    card = tmp_path / "visits.toml"
    card.write_text(text.replace("hospital.ledger", str(ledger.path)))
    assert lastbit("ledger", "accept", str(card)).exit_code == 0
    people = {role: person(ledger, role) for role in ("analyst", "auditor", "steward")}
    ledger.set_principal("postgres", "steward", by="postgres")
    for role, one in people.items():
        ledger.set_principal(one.user, role, by="postgres")
    ledger.set_principal("ana", "analyst", by="postgres")
    limit = Limit(epsilon=Fraction(1000), period="day")
    for name in ("ana", people["analyst"].user):
        ledger.set_allowance("patients", name, limit, by="postgres")
    return ledger, card, people


def attempt(ledger: Ledger, one: Ledger, by: str, drawn: Any, true: Any, **right: Any) -> str:
    """One hostile entry by SQL; what the server says to it."""
    import psycopg

    nothing = () if right.get("kind") == "charge" else (None, None)
    record = drawn.choice((*nothing, "{}", hostile_record(drawn, true)))
    right.setdefault("plan", true["certificate"]["body"]["plan_digest"])
    result = None if record is None else hashlib.sha256(record.encode()).hexdigest()
    made = hostile_entry(drawn, list(ledger.entries(last=40)), **right, result=result)
    try:
        text = hostile_text(drawn, made.text)
    except (LastbitError, TypeError, ValueError, AttributeError):
        return "not written"
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    row = made.sequence, made.account, made.question, text, digest, record
    try:
        with signed_in(one.path) as connection:
            connection.execute(f"SELECT {by}(%s::bigint, %s, %s, %s, %s, %s)", row)
    except (psycopg.Error, UnicodeError, ValueError):
        return "refused"
    return "let in"


def charge_fields(ledger: Ledger, name: str, price: Fraction = CENT) -> dict[str, Any]:
    """A charge in this name, as the rules want it, but for what is then spoiled."""
    state = next(iter(ledger.accounts()))
    before: Any = state.spent
    (mine,) = ledger.allowances("patients", name)
    cost, now = Cost(epsilon=price), ledger_now(ledger)
    after = mine.at(now).charged(cost)
    return {
        "kind": "charge", "account": state.name, "principal": name, "cost": cost, "when": now,
        "spent": before + cost, "budget": state.budget, "neighbours": state.neighbours,
        "limit": after.limit, "used": after.used, "since": after.since, "role": None,
        "reservation": None, "question": "made up",
    }  # fmt: skip


def ledger_now(ledger: Ledger) -> str:
    with signed_in(ledger.path) as connection:
        clock = (
            "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS')"
        )
        return f"{connection.execute(clock).fetchone()[0]}+00:00"


@pytest.mark.parametrize("role", ["analyst", "auditor", "steward"])
def test_hostile_entries_by_sql_change_nothing_that_stewards_decide(shared, tmp_path, extent, role):
    ledger, card, people = shared
    drawn, one = random.Random(29), people[role]
    by = "decide" if role == "steward" else "append"
    genuine = table(str(card)).sql(PLAIN).release(epsilon=CENT)
    said: Counter[str] = Counter()
    many = extent.generated(30, 1_000)
    for turn, begin in enumerate(range(0, many, BATCH)):
        before = state_of(ledger)
        for _ in range(begin, min(begin + BATCH, many)):
            right: dict[str, Any] = {}
            analyst = people["analyst"].user
            spends = role != "auditor" and drawn.random() < 0.7
            if spends and ledger.allowances("patients", analyst):  # a steward may have ended it
                right = charge_fields(ledger, analyst)
            right.setdefault("when", ledger_now(ledger))
            said[attempt(ledger, one, by, drawn, genuine.record, **right)] += 1
        if role != "steward":  # who may change all of this
            assert state_of(ledger) == before
        assert ledger.problems() == [] or role == "steward"
        check_commands(card, tmp_path, turn) if role != "steward" else check_reading(ledger)
        if role != "steward":
            new = table(str(card)).sql(COUNT.format(turn + 1)).release(epsilon=CENT)
            assert new.charged and record_problem(new.record) is None
            again = table(str(card)).sql(PLAIN).release(epsilon=CENT)
            assert not again.charged and again.record["rows"] == genuine.record["rows"]
    if role == "auditor":
        assert said["let in"] == 0
    else:
        assert said["let in"] > many / 20 and said["refused"] > many / 4, said


def check_reading(ledger: Ledger) -> None:
    """A steward may decide anything, and spend all of it; still nothing is unreadable."""
    for entry in ledger.entries():
        ledger.entry(entry.sequence)
    assert ledger.accounts() and ledger.principals()
    for command in (("log",), ("export",), ("export", "--format", "csv"), ("verify",)):
        result = lastbit("ledger", command[0], str(ledger.path), *command[1:])
        assert result.exit_code == 0 or (command == ("verify",) and result.exit_code == 1)
