"""Reserve, run, settle: what is charged before a row is read, and settled once."""

import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from lastbit.errors import BudgetExceeded, InvalidParameter, LedgerDamaged
from lastbit.ledger.ledger import Ledger
from tests.ledger.books import ONE, changed, everything, new_ledger, price, record, small_ledger
from tests.ledger.test_short_sums import HEAD, OLD

HALF, QUARTER = price("1/2"), price("1/4")


def reserved(ledger, question, cost=QUARTER, **others):
    given = {"who": "ada", "words": f"SELECT {question}", **others}
    return ledger.reserve(
        "visits", cost, question=question, plan_digest="p", fingerprint="f", **given
    )


@pytest.fixture
def ledger(place):
    made = new_ledger(place)
    made.account("visits", ONE)
    return made


def test_the_price_is_charged_by_the_reservation_and_only_by_it(ledger):
    paid = reserved(ledger, "q", HALF)
    assert paid.kind == "reserved" and paid.record is None
    assert ledger.spent("visits") == HALF and ledger.recorded("visits", "q") is None
    assert ledger.unanswered("visits") == (paid,) and ledger.problems() == []
    entry = ledger.settle(paid, record("q"), who="ada")
    assert entry.kind == "settled" and entry.reservation == paid.hash
    assert entry.record["entry"] == {"hash": entry.hash, "sequence": 4}
    assert ledger.spent("visits") == HALF and ledger.unanswered("visits") == ()
    assert ledger.recorded("visits", "q") == entry.record
    assert ledger.answer_to(paid).record == entry.record and ledger.paid_at(entry) == paid.sequence
    assert ledger.problems([entry.hash]) == []


def test_an_open_reservation_is_resumed_at_no_charge(ledger):
    first = reserved(ledger, "q")
    assert reserved(ledger, "q") == first and ledger.spent("visits") == QUARTER
    assert reserved(ledger, "q", fresh=True) == first  # paid for, and nobody has seen it
    assert reserved(ledger, "q", HALF).sequence == 4  # at another price it is another one
    assert ledger.spent("visits") == price("3/4")


def test_an_answer_is_settled_once(ledger):
    paid = reserved(ledger, "q")
    one = ledger.settle(paid, {**record("q"), "rows": [1]})
    other = ledger.settle(paid, {**record("q"), "rows": [2]})
    assert other.record == one.record and other.record["rows"] == [1]
    assert len(ledger.entries()) == 4


def test_a_recorded_answer_comes_back_and_fresh_reserves_anew(ledger):
    answer = ledger.settle(reserved(ledger, "q"), record("q"))
    assert reserved(ledger, "q").record == answer.record
    second = reserved(ledger, "q", fresh=True)
    assert second.kind == "reserved" and ledger.spent("visits") == HALF
    assert ledger.recorded("visits", "q") == answer.record  # the old one, until it is settled
    newer = ledger.settle(second, {**record("q"), "rows": [2]})
    assert ledger.recorded("visits", "q") == newer.record and ledger.problems() == []


def test_the_budget_is_checked_by_the_reservation(ledger):
    reserved(ledger, "q", HALF)
    reserved(ledger, "r", HALF)
    before = everything(ledger)
    with pytest.raises(BudgetExceeded):
        reserved(ledger, "s", price("0.0001"))
    with pytest.raises(InvalidParameter, match="grid"):
        reserved(ledger, "s", price(Fraction(1, 101)))
    assert everything(ledger) == before


def test_settling_says_the_sum_as_it_is_then(ledger):
    paid = reserved(ledger, "q")
    reserved(ledger, "other")
    assert ledger.settle(paid, record("q")).spent == HALF and ledger.problems() == []


def test_only_a_reservation_of_this_ledger_is_settled(ledger, tmp_path):
    paid = reserved(ledger, "q")
    for other in (replace(paid, sequence=2), replace(paid, who="eve"), replace(paid, sequence=9)):
        with pytest.raises(LedgerDamaged, match="does not hold this reservation"):
            ledger.settle(other, record("q"))
    assert len(ledger.entries()) == 3
    backup = tmp_path / "older.ledger"
    Ledger.open(backup).account("visits", ONE)
    with pytest.raises(LedgerDamaged):
        Ledger.open(backup).settle(paid, record("q"))


def test_words_that_look_like_a_settlement_settle_nothing(ledger):
    paid = reserved(ledger, "q")
    fake = f'"reservation":"{paid.hash}"'
    again = ledger.reserve(
        "visits", QUARTER, who=fake, question="q", plan_digest="p", fingerprint="f", words=fake
    )
    assert again == paid
    trap = record("q") | {"asked": {"sql": fake, "query": None}}
    ledger.charge(
        "visits", QUARTER, who=fake, question="q", plan_digest=fake, fingerprint=fake, record=trap
    )
    assert ledger.unanswered("visits") == (paid,)


def test_an_old_ledger_takes_reservations_and_keeps_its_chain(tmp_path):
    path = tmp_path / "old.ledger"
    shutil.copy(OLD, path)
    old = Ledger.open(path)
    with pytest.raises(BudgetExceeded):
        reserved(old, "q", price(5))
    assert path.read_bytes() == Path(OLD).read_bytes()  # refused: not even the version changed
    old.settle(reserved(old, "q"), record("q"))
    assert old.problems([HEAD]) == [] and len(old.entries()) == 13
    assert int.from_bytes(path.read_bytes()[60:64], "big") == 2  # SQLite's user_version


def forged(ledger, **how):
    """Write one more entry behind the ledger's back, with its hash right."""
    last = ledger.entries(last=1)[0]
    entry = replace(last, sequence=last.sequence + 1, previous=last.hash, **how)
    changed(
        ledger.path,
        "INSERT INTO entries (sequence, account, question, text, hash, record) "
        f"SELECT {entry.sequence}, account, ?, ?, ?, record FROM entries "
        f"WHERE sequence = {last.sequence}",
        values=(entry.question, entry.text, entry.hash),
    )
    return ledger.problems()


def test_forged_settlements_are_seen(ledger):
    paid = reserved(ledger, "q")
    ledger.settle(paid, record("q"))
    assert forged(ledger) == ["entry 5 answers no open reservation"]


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ({"reservation": "0" * 64}, "answers no open reservation"),
        ({"question": "other"}, "answers a reservation for something else"),
        ({"cost": QUARTER}, "names a price, and charges nothing"),
        ({"spent": price("0")}, "states a total or budget"),
    ],
)
def test_each_rule_of_settling_is_checked(ledger, how, problem):
    first, second = reserved(ledger, "q"), reserved(ledger, "r")
    ledger.settle(first, record("q"))
    found = forged(ledger, **{"reservation": second.hash, "question": "r", **how})
    assert any(problem in line for line in found), found


def test_charges_at_once_are_as_before(place):
    ledger = small_ledger(place)
    assert ledger.unanswered("visits") == () and ledger.problems() == []
    assert ledger.paid_at(ledger.entries(last=1)[0]) == 6
