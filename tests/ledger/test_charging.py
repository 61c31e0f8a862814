"""What charges a question is one class, which nothing overrides, and its connections are passed."""

import pickle
import sqlite3
import threading

import pytest

from lastbit.errors import BudgetExceeded, WrongType
from lastbit.ledger.charging import ChargingLedger
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.storage import Connections
from tests.ledger.books import ONE, charged, price, small_ledger

MADE_BY_DATACLASSES = {"__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__"}


def overridden(above: type, below: type) -> set[str]:
    """What both define: names of methods and fields, and special ones that nobody generates."""
    own = {name for name, thing in vars(above).items() if callable(thing) or name[0] != "_"}
    return own & set(vars(below)) - MADE_BY_DATACLASSES - {"__getstate__", "__setstate__"}


def test_a_ledger_overrides_nothing_of_what_charges():
    assert overridden(Ledger, ChargingLedger) - {"__replace__", "__class_getitem__"} == set()

    forgetful = type("Forgetful", (ChargingLedger,), {"settle": lambda *_: None})  # the mutant
    assert overridden(forgetful, ChargingLedger) == {"settle"}


def test_what_charges_needs_no_steward(tmp_path):
    opened = Ledger.open(tmp_path / "a.ledger")
    opened.account("visits", ONE)
    ledger = ChargingLedger.existing(opened.path)
    paid = ledger.reserve(
        "visits", price("1/2"), who="ada", question="q", plan_digest="p", fingerprint="f"
    )
    ledger.settle(paid, {"rows": [1]})
    assert (opened.recorded("visits", "q") or {})["rows"] == [1]
    assert opened.problems() == []


def test_a_charge_names_its_account(tmp_path):
    """Failed before: an assertion, and nothing for people to read."""
    ledger = small_ledger(tmp_path)
    with pytest.raises(WrongType, match="account is not text"):
        charged(ledger, "q9", price("1/8"), account=None)
    assert ledger.spent("visits") == price("3/4")


def test_ledgers_share_the_connection_of_a_session(tmp_path, monkeypatch):
    path, count, connect = small_ledger(tmp_path).path, [], sqlite3.connect

    def counted(*given, **others):
        count.append(given)
        return connect(*given, **others)

    monkeypatch.setattr(sqlite3, "connect", counted)
    with Connections().lasting() as connections:
        for _ in range(3):
            assert Ledger.existing(path, connections=connections).spent("visits") == price("3/4")
    assert len(count) == 1
    Ledger.existing(path).spent("visits")
    assert len(count) == 3  # alone, a file is closed after each call


def test_threads_take_turns_with_a_connection(tmp_path):
    ledger, seen = small_ledger(tmp_path), []

    def ask(number):
        charged(ledger, f"t{number}", price("1/64"))
        seen.append(ledger.spent("visits"))

    with ledger.connection():
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(seen) == 8 and ledger.spent("visits") == price("7/8")
    assert ledger.problems() == []


def test_a_pickled_ledger_has_a_session_of_its_own(tmp_path):
    ledger = small_ledger(tmp_path)
    with ledger.connection():
        ledger.spent("visits")
        again = pickle.loads(pickle.dumps(ledger))
        assert again == ledger and again.connections is not ledger.connections
        assert not again.connections.lasts and again.spent("visits") == price("3/4")


def test_no_sum_rests_on_roles_allowances_or_records(tmp_path, monkeypatch):
    """Rules that say yes to all, and lie: the account is charged the same, and stays in budget."""

    class Liar:
        limit = used = since = None
        spent = price(0)

        def charged_at(self, *_: object) -> "Liar":
            return self

    def agree(*_: object, **__: object) -> None:
        return None

    ledger = small_ledger(tmp_path)
    ledger.set_principal("ada", "steward", by="ada")
    for name in ("asking_allowance", "check_opening"):
        monkeypatch.setattr(f"lastbit.ledger.principals.{name}", lambda *_: Liar())
    for name in ("newest_answer", "check_claims", "answer_before"):
        monkeypatch.setattr(f"lastbit.ledger.answers.{name}", agree)
    paid = ledger.reserve(
        "visits",
        price("1/8"),
        who="ada",
        question="q9",
        plan_digest="p",
        fingerprint="f",
        principal="nobody",
    )
    assert paid.spent == ledger.spent("visits") == price("7/8")
    assert ledger.draw(paid, '{"a":1}', plan_digest="p") == '{"a":1}'
    assert ledger.draw(paid, '{"a":2}', plan_digest="p") == '{"a":1}'
    with pytest.raises(BudgetExceeded):
        charged(ledger, "q10", price("1/4"))
    assert ledger.spent("visits") == price("7/8")
