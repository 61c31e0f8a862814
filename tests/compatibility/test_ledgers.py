"""Ledgers that earlier versions wrote open, add up as they did, and take further charges."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lastbit.cli import main
from lastbit.errors import BudgetExceeded
from lastbit.ledger import Ledger, exported, restored
from lastbit.release import Answer
from lastbit.tables import Cost
from lastbit.verify import problem_of
from tests.compatibility.kept import KEPT, VERSION_1, elsewhere, read
from tests.data.generate import ASKED, framed, state_of

LEDGERS = {
    "version-1": VERSION_1,  # before there were reservations
    "books": KEPT / "ledgers" / "books.ledger",
    "hospital": KEPT / "ledgers" / "hospital.ledger",
}
SMALL = Fraction(1, 10**6)
Copied = Callable[[str], Path]


@pytest.fixture
def copied(tmp_path: Path) -> Copied:
    """A copy that may be written: the kept ones stay as they are."""

    def made(name: str) -> Path:
        place = tmp_path / f"{name}.ledger"
        shutil.copyfile(LEDGERS[name], place)
        return place

    return made


def rows_of(path: Path) -> list[tuple[str, str, str | None]]:
    """The entries as SQLite has them: text, hash and record; lastbit is not asked."""
    with sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True) as connection:
        return connection.execute(
            "SELECT text, hash, record FROM entries ORDER BY sequence"
        ).fetchall()


def run(*arguments: object, status: int = 0) -> str:
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == status, result.output
    return result.stdout


@pytest.mark.parametrize(("name", "version"), [("version-1", 1), ("books", 2), ("hospital", 2)])
def test_every_version_of_the_file_is_kept(name: str, version: int, copied: Copied) -> None:
    with sqlite3.connect(copied(name)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (version,)


def test_every_kind_of_entry_is_kept() -> None:
    kinds = {entry.split()[0] for entry in read("ledgers", "books.json")["entries"]}
    assert kinds == {"opened", "budget", "reserved", "settled", "voided", "charge", "note"}


@pytest.mark.parametrize("name", LEDGERS)
def test_an_old_ledger_opens_and_fits(name: str, copied: Copied) -> None:
    place = copied(name)
    before = rows_of(place)
    ledger = Ledger.open(place)
    hashes = [hash_ for _, hash_, _ in before]
    assert ledger.problems(heads=hashes[-1:]) == []
    assert ledger.head == hashes[-1]
    entries = ledger.entries()
    assert [(entry.text, entry.hash) for entry in entries] == [row[:2] for row in before]
    for text, hash_, _ in before:
        assert hashlib.sha256(text.encode()).hexdigest() == hash_
    assert rows_of(place) == before  # looking changes nothing


@pytest.mark.parametrize("name", LEDGERS)
def test_the_budget_is_what_it_was(name: str, copied: Copied) -> None:
    place = copied(name)
    last = {}
    for text, _, _ in rows_of(place):
        fields = json.loads(text)
        if fields["account"] is not None:
            last[fields["account"]] = fields
    accounts = {account.name: account for account in Ledger.open(place).accounts()}
    assert accounts.keys() == last.keys()
    for account, fields in last.items():
        found = accounts[account]
        for part in ("epsilon", "delta", "rho"):
            spent, budget = Fraction(fields["spent"].get(part, 0)), fields["budget"]
            assert getattr(found.spent, part) == spent
            if budget is not None:
                assert found.remaining is not None
                left = Fraction(budget.get(part, 0)) - spent
                assert getattr(found.remaining, part) == left


@pytest.mark.parametrize("name", ["books", "hospital"])
def test_it_says_of_itself_what_it_said(name: str, copied: Copied) -> None:
    assert state_of(Ledger.open(copied(name))) == read("ledgers", f"{name}.json")


@pytest.mark.parametrize("name", LEDGERS)
def test_the_commands_read_it(name: str, copied: Copied) -> None:
    place = copied(name)
    head = rows_of(place)[-1][1]
    assert "every entry fits" in run("ledger", "verify", place, "--head", head)
    accounts = {account.name for account in Ledger.open(place).accounts()}
    shown = run("budget", place)
    assert all(account in shown for account in accounts)
    assert json.loads(run("budget", place, "--json"))
    assert json.loads(run("ledger", "log", place, "--json"))


@pytest.mark.parametrize("name", LEDGERS)
def test_a_changed_one_is_found_out(name: str, copied: Copied) -> None:
    place = copied(name)
    old, new = b'"kind":"charge"', b'"kind":"chargd"'
    if name == "hospital":
        old, new = b'"epsilon":"1/2"', b'"epsilon":"1/9"'
    content = place.read_bytes()
    assert old in content
    place.write_bytes(content.replace(old, new))
    run("ledger", "verify", place, status=1)


@pytest.mark.parametrize(
    ("name", "account", "cost"),
    [
        ("books", "visits", Cost(epsilon=Fraction(1, 9), delta=Fraction(1, 10**10))),
        ("books", "rows", Cost(rho=Fraction(1, 10))),
        ("books", "unlimited", Cost(epsilon=Fraction(100))),
        ("hospital", "visits", Cost(epsilon=Fraction(1))),
        ("hospital", "frame", Cost(epsilon=Fraction(3, 4))),
    ],
)
def test_it_takes_a_further_charge(name: str, account: str, cost: Cost, copied: Copied) -> None:
    place = copied(name)
    ledger = Ledger.open(place)
    spent, before = ledger.spent(account), rows_of(place)
    paid = ledger.reserve(account, cost, question="a new one", **ASKED)
    assert ledger.settle(paid, {"rows": []}).kind == "settled"
    for part in ("epsilon", "delta", "rho"):
        total = getattr(spent, part) + getattr(cost, part)
        assert getattr(ledger.spent(account), part) == total
    assert ledger.problems(heads=[before[-1][1], ledger.head]) == []
    assert rows_of(place)[: len(before)] == before
    if ledger.remaining(account) is not None:
        much = Cost(rho=Fraction(50)) if cost.rho else Cost(epsilon=Fraction(50))
        with pytest.raises(BudgetExceeded):
            ledger.reserve(account, much, question="too much", **ASKED)


def test_the_first_version_takes_a_further_charge_and_becomes_the_second(copied: Copied) -> None:
    place = copied("version-1")
    ledger = Ledger.open(place)
    before = rows_of(place)
    for account in ledger.accounts():
        cost = Cost(rho=SMALL) if account.spent.rho else Cost(epsilon=SMALL)
        paid = ledger.reserve(account.name, cost, question="a new one", **ASKED)
        ledger.settle(paid, {"rows": []})
        for part in ("epsilon", "delta", "rho"):
            total = getattr(account.spent, part) + getattr(cost, part)
            more = getattr(ledger.spent(account.name), part) - total
            assert 0 <= more < Fraction(1, 10**120)  # long sums are moved up to the grid of prices
    assert ledger.problems(heads=[before[-1][1], ledger.head]) == []
    assert rows_of(place)[: len(before)] == before
    with sqlite3.connect(place) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)


def test_what_was_charged_and_not_answered_is_resumed_at_no_charge(copied: Copied) -> None:
    ledger = Ledger.open(copied("books"))
    spent, (open_,) = ledger.spent("visits"), ledger.unanswered("visits")
    again = ledger.reserve("visits", Cost(epsilon=Fraction(1, 10)), question="killed", **ASKED)
    assert again == open_ and again.record is None
    entry = ledger.settle(again, {"rows": [1]})
    assert ledger.spent("visits") == spent and ledger.unanswered("visits") == ()
    assert ledger.paid_at(entry) == open_.sequence
    assert ledger.recorded("visits", "killed") == entry.record


def test_what_a_restore_made_void_costs_again(copied: Copied) -> None:
    ledger = Ledger.open(copied("books"))
    spent = ledger.spent("visits").epsilon
    ledger.reserve("visits", Cost(epsilon=Fraction(1, 2)), question="void", **ASKED)
    assert ledger.spent("visits").epsilon == spent + Fraction(1, 2)


def test_what_was_answered_is_answered_again_at_no_charge(copied: Copied) -> None:
    ledger = Ledger.open(copied("books"))
    spent = ledger.spent("visits")
    price = Cost(epsilon=Fraction(1, 3), delta=Fraction(1, 10**9))
    known = ledger.reserve("visits", price, question="settled", **ASKED)
    assert known.record is not None and known.record["rows"] == [["north", 1204]]
    for account in ("visits", "rows", "unlimited"):
        recorded = ledger.recorded(account, "charged")
        assert recorded is not None and recorded["rows"] == [[0.5]]
    assert ledger.spent("visits") == spent


def test_an_export_is_what_it_was(copied: Copied, tmp_path: Path) -> None:
    place = copied("books")
    before = [json.loads(line) for line in _lines(KEPT / "ledgers" / "books.jsonl")]
    assert list(exported(Ledger.open(place))) == before
    run("ledger", "export", place, "--out", tmp_path / "out.jsonl")
    assert [json.loads(line) for line in _lines(tmp_path / "out.jsonl")] == before


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


@pytest.mark.parametrize("name", LEDGERS)
def test_it_is_backed_up_and_restored(name: str, copied: Copied, tmp_path: Path) -> None:
    ledger = Ledger.open(copied(name))
    ledger.backup(tmp_path / "backup.ledger")
    assert rows_of(tmp_path / "backup.ledger") == rows_of(ledger.path)
    back = restored(tmp_path / "backup.ledger", tmp_path / "new.ledger", heads=[ledger.head])
    assert back.problems(heads=[ledger.head]) == []
    for account in ledger.accounts():
        assert back.spent(account.name) == ledger.spent(account.name)
        assert back.unanswered(account.name) == ()


# ---------------------------------------------------------------- answers in the ledger


def test_recorded_answers_are_those_that_were_saved(copied: Copied) -> None:
    ledger = Ledger.open(copied("hospital"))
    records = [ledger.entry(entry.sequence).record for entry in ledger.entries()]
    answers: list[dict[str, Any]] = [dict(record) for record in records if record is not None]
    assert len(answers) == 4
    assert all(problem_of(record) is None and Answer(record).rows for record in answers)
    saved = [read("tables", "answers", path.name) for path in _saved()]
    assert [one for one in answers if one in saved] == answers[:3]
    for answer in answers:
        heads = [answer["entry"]["hash"], answer["certificate"]["body"]["ledger"]]
        assert ledger.problems(heads=heads[:1]) == []
        assert ledger.entry(answer["entry"]["sequence"]).reservation == heads[1]


def _saved() -> list[Path]:
    return sorted((KEPT / "tables" / "answers").glob("*.json"))


def test_the_same_question_to_the_same_data_is_free(copied: Copied) -> None:
    """The digests of query, price, card and data are those of then, so the answer is found."""
    if elsewhere("duckdb"):
        pytest.skip("another DuckDB hashes the rows of a frame in another way")
    ledger = Ledger.open(copied("hospital"))
    before = rows_of(ledger.path)
    answer = framed().release(epsilon="1/4", ledger=ledger)
    assert rows_of(ledger.path) == before
    assert ledger.entry(len(before)).record == answer.record
    framed().release(epsilon="1/4", ledger=ledger, fresh=True)
    assert ledger.spent("frame").epsilon == Fraction(1, 2)
