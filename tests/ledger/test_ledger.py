"""`Ledger`: charge and record in one, once; accounts; what is refused changes nothing."""

import os
import pickle
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from lastbit.errors import BudgetExceeded, InvalidParameter, LastbitError, LedgerDamaged, WrongType
from lastbit.ledger.entry import FIRST
from lastbit.ledger.ledger import Ledger
from lastbit.tables.card.budget import Budget
from lastbit.tables.plan.cost import Cost
from lastbit.tables.query.query import Aggregate, Query
from tests.ledger.books import (
    CANARY,
    ONE,
    charged,
    clock_shows,
    everything,
    new_ledger,
    price,
    record,
    small_ledger,
)

TWO = Budget(kind="pure", epsilon=Fraction(2))


@pytest.fixture
def ledger(place):
    return small_ledger(place)


# ---------------------------------------------------------------- charging


def test_a_charge_is_an_entry_with_everything(ledger):
    query = Query(table="visits", aggregates=(Aggregate(name="n", function="count"),))
    answer = {"asked": {"sql": "SELECT COUNT(*)", "query": query.to_json()}, "rows": [1]}
    previous = ledger.head
    entry = ledger.charge(
        "visits", price("1/8"), who="ada", question="q9", plan_digest="p", fingerprint="f",
        record=answer,
    )  # fmt: skip
    assert (entry.sequence, entry.kind, entry.account, entry.who) == (7, "charge", "visits", "ada")
    assert (entry.plan, entry.fingerprint, entry.question) == ("p", "f", "q9")
    assert entry.words == "SELECT COUNT(*)"
    assert entry.query == query.digest  # the very digest that the query has of itself
    assert entry.cost == price("1/8") and entry.spent == price("7/8") and entry.budget == ONE
    assert entry.previous == previous
    assert entry.hash == ledger.head == ledger.entries(last=1)[0].hash
    place = {"hash": entry.hash, "sequence": 7}
    assert entry.record == {**answer, "entry": place} == ledger.entry(7).record
    assert entry.when.endswith("+00:00")


def test_spent_and_remaining_are_exact(ledger):
    assert ledger.spent("visits") == price("3/4")
    assert ledger.remaining("visits") == price("1/4")
    assert ledger.spent("never opened") == Cost()
    with pytest.raises(InvalidParameter, match="never opened is not open"):
        ledger.remaining("never opened")


def test_the_same_question_returns_the_recorded_answer_at_no_charge(ledger):
    before = ledger.head
    first = ledger.recorded("visits", "q1")
    assert first is not None and first["rows"] == record("q1")["rows"]
    assert first["entry"] == {"hash": ledger.entry(3).hash, "sequence": 3}
    again = charged(ledger, "q1", price("1/4"), record={"rows": "another draw of noise"})
    assert again.record == first  # never the second draw
    assert ledger.head == before
    assert ledger.recorded("visits", "q99") is None
    assert ledger.recorded("another", "q1") is None  # another table's answer is not this one's


def test_a_fresh_answer_is_charged_again_and_then_is_the_recorded_one(ledger):
    entry = charged(ledger, "q1", price("1/4"), record={"rows": "new"}, fresh=True)
    assert entry.sequence == 7
    assert ledger.spent("visits") == price(1)
    found = ledger.recorded("visits", "q1")
    assert found is not None and found["rows"] == "new"
    assert charged(ledger, "q1", price("1/4")).sequence == 7  # though nothing is left


REFUSED = [
    (BudgetExceeded, dict(cost=price("1/4") + price("1e-30"))),
    (BudgetExceeded, dict(cost=price("1/8", "1e-30"))),
    (InvalidParameter, dict(cost=Cost(rho=Fraction(1, 10**9)))),
    (InvalidParameter, dict(cost=Cost())),
    (InvalidParameter, dict(account="unknown")),
    (WrongType, dict(record={"rows": [float("nan")]})),
    (WrongType, dict(record={"rows": {CANARY}})),
    (WrongType, dict(question="")),
    (WrongType, dict(question=None)),
    (WrongType, dict(question=b"q")),
    (WrongType, dict(who=3)),
    (WrongType, dict(who="")),
    (WrongType, dict(cost=Fraction(1, 8))),
    (WrongType, dict(record=[1])),
]


@pytest.mark.parametrize(("error", "given"), REFUSED)
def test_what_is_refused_leaves_no_trace(ledger, error, given):
    whole = everything(ledger)
    call = {"question": "new", "cost": price("1/8"), **given}
    with pytest.raises(error) as caught:
        charged(ledger, **call)
    assert CANARY not in str(caught.value)
    assert everything(ledger) == whole
    assert ledger.problems() == []
    charged(ledger, "new", price("1/4"))  # and what is left is still there


def test_no_limit(place):
    ledger = new_ledger(place)
    ledger.account("visits", None)
    charged(ledger, "q1", price(10**6))
    assert ledger.remaining("visits") is None
    assert ledger.spent("visits") == price(10**6)
    assert ledger.problems() == []


def test_accounts_do_not_share_a_budget(ledger):
    ledger.account("stays", Budget(kind="zcdp", rho=Fraction(1)))
    entry = charged(ledger, "q1", Cost(rho=Fraction(1)), account="stays")
    assert entry.sequence == 8
    assert [account.name for account in ledger.accounts()] == ["stays", "visits"]
    assert ledger.spent("visits") == price("3/4")
    assert [entry.sequence for entry in ledger.entries("stays")] == [7, 8]
    assert [entry.sequence for entry in ledger.entries("visits", last=2)] == [4, 6]
    assert ledger.problems() == []


def test_hostile_names_and_texts_are_kept_as_they_are(ledger):
    words = "'; DROP TABLE entries; -- \x1b[31m é 🙂 \0 \n"
    ledger.account("visits'; --", None)
    answer = {"asked": {"sql": words}, "rows": [words]}
    entry = charged(ledger, "q", price(1), account="visits'; --", who=words, record=answer)
    assert ledger.entry(entry.sequence).who == words
    found = ledger.recorded("visits'; --", "q")
    assert found is not None and found["rows"] == [words]
    assert ledger.problems() == []


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[31m", "x" * 201, None, 3, "\ud800", "a\0b"])
def test_a_name_that_cannot_be_shown_is_refused(ledger, name):
    with pytest.raises(InvalidParameter):
        ledger.account(name, None)
    with pytest.raises(InvalidParameter):
        ledger.set_budget(name, None)


def test_a_question_that_is_no_text_of_unicode_is_refused(ledger):
    before = ledger.head
    with pytest.raises(LastbitError):
        charged(ledger, "\ud800", price("1/8"))
    assert ledger.head == before


# ---------------------------------------------------------------- budgets


def test_another_budget_than_the_ledgers_is_refused_and_set_by_hand(ledger):
    assert ledger.account("visits", ONE).spent == price("3/4")
    for other in (TWO, None):
        with pytest.raises(InvalidParameter, match=r"lastbit budget card.toml --set"):
            ledger.account("visits", other)
    after = ledger.set_budget("visits", TWO, who="ada")
    assert after.remaining == price("5/4")
    assert ledger.account("visits", TWO) == after
    entry = ledger.entries(last=1)[0]
    assert (entry.kind, entry.who, entry.budget) == ("budget", "ada", TWO)
    assert ledger.set_budget("visits", TWO) == after  # the same again writes nothing
    assert ledger.head == entry.hash
    with pytest.raises(InvalidParameter, match=r"less than what visits has spent: epsilon = 0\.75"):
        ledger.set_budget("visits", Budget(kind="pure", epsilon=Fraction(1, 2)))
    assert ledger.head == entry.hash
    ledger.set_budget("visits", None)
    charged(ledger, "much", price(1000))
    assert ledger.problems() == []


def test_a_note_changes_no_account(ledger):
    ledger.note("raised after a vote", who="ben", account="visits")
    assert ledger.spent("visits") == price("3/4")
    assert ledger.entries(last=1)[0].words == "raised after a vote"
    with pytest.raises(InvalidParameter, match="not open"):
        ledger.note("what?", account="unknown")
    with pytest.raises(WrongType):
        ledger.note("")
    assert ledger.problems() == []


# ---------------------------------------------------------------- the file and the secret


def test_a_new_ledger_is_readable_by_its_owner_alone_and_one_file(tmp_path):
    ledger = small_ledger(tmp_path)
    assert os.stat(ledger.path).st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["a.ledger"]
    first = ledger.entry(1)
    assert (first.kind, first.previous, first.hash) == ("opened", FIRST, ledger.opened)


def test_the_secret_stays_and_differs_and_is_shown_nowhere(tmp_path, ledger):
    (tmp_path / "b").mkdir()
    other = Ledger.open(tmp_path / "b" / "b.ledger")
    assert len(ledger.secret) == 32
    assert ledger.secret == Ledger.existing(ledger.path).secret != other.secret
    assert ledger.keyed(b"data") == ledger.keyed(b"data") != other.keyed(b"data")
    assert ledger.keyed(b"data") != ledger.keyed(b"other data")
    shown = repr(ledger) + repr(ledger.entries()) + "".join(e.text for e in ledger.entries())
    assert ledger.secret.hex() not in shown and repr(ledger.secret) not in shown
    assert pickle.loads(pickle.dumps(ledger)) == ledger
    assert ledger.secret not in pickle.dumps(ledger)


def test_the_clock_may_go_back(ledger, monkeypatch):
    clock_shows(monkeypatch, "1980-01-01")
    entry = charged(ledger, "q9", price("1/8"))
    assert entry.sequence == 7 and entry.when.startswith("1980")
    assert ledger.problems() == []


def test_another_ledger_in_its_place_is_noticed(tmp_path):
    ledger = small_ledger(tmp_path)
    (tmp_path / "b").mkdir()
    other = small_ledger(tmp_path / "b")
    os.replace(other.path, ledger.path)
    with pytest.raises(LedgerDamaged, match="it was exchanged"):
        ledger.spent("visits")


def test_threads_share_a_ledger(ledger):
    ledger.set_budget("visits", TWO)
    done, refused = [], []

    def ask(number: int) -> None:
        try:
            done.append(charged(ledger, f"t{number}", price("1/4")).hash)
        except BudgetExceeded:
            refused.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(done), len(refused)) == (5, 3)
    assert ledger.spent("visits") == price(2)
    assert ledger.problems(done) == []


def test_a_missing_entry_is_said_to_be_missing(ledger):
    with pytest.raises(InvalidParameter, match="is not in the ledger"):
        ledger.entry(99)


def test_a_path_may_be_relative_and_odd(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = Ledger.open("a ?mode=ro&x=#%20é.ledger")
    ledger.account("visits", ONE)
    monkeypatch.chdir("/")
    assert ledger.spent("visits") == Cost()
    assert Ledger.existing(ledger.path) == ledger
    assert Path(ledger.path).name in os.listdir(tmp_path)
