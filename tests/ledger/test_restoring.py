"""A backup put to use: what was open in it is void, charged, and never answered for free."""

import os

import pytest

from lastbit.addresses import Address
from lastbit.errors import InvalidParameter, LastbitError, LedgerDamaged, WrongType
from lastbit.ledger import safekeeping
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.safekeeping import restored
from tests.ledger.books import ONE, changed, charged, new_ledger, price, record
from tests.ledger.test_reservations import HALF, QUARTER, forged, reserved


@pytest.fixture
def ledger(place):
    made = new_ledger(place)
    made.account("visits", ONE)
    return made


def test_an_open_reservation_of_a_backup_is_not_answered_again(ledger, tmp_path):
    """The hole: a backup between reserve and settle was answered twice, at one price."""
    paid = reserved(ledger, "q")
    ledger.backup(tmp_path / "mid")
    shown = ledger.settle(paid, record("q"))
    back = restored(tmp_path / "mid", tmp_path / "back", who="ada", heads=[paid.hash])
    void = back.entries(last=1)[0]
    assert (void.kind, void.who, void.reservation) == ("voided", "ada", paid.hash)
    assert back.unanswered("visits") == () and back.spent("visits") == QUARTER
    assert back.answer_to(paid) is None and back.recorded("visits", "q") is None
    assert back.problems([paid.hash]) == [] and back.problems([shown.hash]) != []
    with pytest.raises(LedgerDamaged, match="restored from a backup"):
        back.settle(paid, {**record("q"), "rows": [2]})
    again = reserved(back, "q")
    assert again.hash != paid.hash and back.spent("visits") == HALF  # asked again, paid again
    back.settle(again, record("q"))
    assert back.problems([paid.hash]) == []


def test_every_open_reservation_of_every_account_is_void(ledger, tmp_path):
    ledger.account("others", None)
    ledger.settle(reserved(ledger, "done"), record("done"))
    paid = [reserved(ledger, "q"), reserved(ledger, "r")]
    paid.append(
        ledger.reserve("others", HALF, who=None, question="q", plan_digest="p", fingerprint="f")
    )
    before = ledger.accounts()
    back = restored(ledger.path, tmp_path / "new")
    voided = {entry.reservation for entry in back.entries() if entry.kind == "voided"}
    assert voided == {entry.hash for entry in paid}
    assert back.accounts() == before and back.problems([ledger.head]) == []
    assert back.recorded("visits", "done") is not None
    twice = restored(back.path, tmp_path / "newer")
    assert len(twice.entries()) == len(back.entries()) + 1  # nothing is open: a note, no more


def test_a_restore_that_fails_leaves_no_file(ledger, tmp_path, monkeypatch):
    """Voiding comes before the name: nobody ever sees a copy whose reservations are open."""
    reserved(ledger, "q")

    def failing(*_, **__):
        raise LedgerDamaged("as if it had been killed here")

    monkeypatch.setattr(safekeeping, "voided", failing)
    with pytest.raises(LedgerDamaged):
        restored(ledger.path, tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert [name for name in os.listdir(tmp_path) if name != "a.ledger"] == []


def test_forged_voids_are_seen(ledger, tmp_path):
    paid = reserved(ledger, "q")
    back = restored(ledger.path, tmp_path / "new")
    assert forged(back) == ["entry 6 answers no open reservation"]
    reserved(ledger, "r")
    ledger.settle(paid, record("q"))
    assert any("voids with one" in line for line in forged(ledger, kind="voided"))


# ---------------------------------------------------------------- the price of an answer

OTHER = [
    {"cost": HALF.to_json()},
    {"cost": None},
    {"cost": {"epsilon": "1/4"}},
    {"plan": {"cost": QUARTER.to_json()}},  # a plan of another digest
    {"plan": {"cost": HALF.to_json()}},
    {"plan": None},
    {"plan": "p"},
]


@pytest.mark.parametrize("named", OTHER)
def test_an_answer_of_another_price_or_plan_is_refused(ledger, named):
    """The hole: a record that says 50 was settled on a reservation of 1/10, and verified."""
    paid = reserved(ledger, "q")
    with pytest.raises(WrongType, match=r"another price|another plan"):
        ledger.settle(paid, {**record("q"), **named})
    with pytest.raises(WrongType, match=r"another price|another plan"):
        charged(ledger, "r", QUARTER, record={**record("r"), **named})
    assert ledger.unanswered("visits") == (paid,) and ledger.spent("visits") == QUARTER
    assert ledger.settle(paid, {**record("q"), "cost": QUARTER.to_json()}).record is not None


@pytest.mark.parametrize("named", OTHER)
@pytest.mark.parametrize("at_once", [False, True])
def test_a_record_of_another_price_is_let_in_by_no_server_and_is_no_answer(
    ledger, monkeypatch, named, at_once
):
    answer = {**record("q"), **named}

    def written():
        with monkeypatch.context() as patch:
            patch.setattr("lastbit.ledger.answers.price_problem", lambda *_: None)
            if at_once:
                return charged(ledger, "q", QUARTER, record=answer)
            return ledger.settle(reserved(ledger, "q"), answer)

    if isinstance(ledger.path, Address):
        with pytest.raises(InvalidParameter, match="does not follow"):
            written()
        return
    number = written().sequence
    (problem,) = ledger.no_answers().items()
    assert problem[0] == number and "another p" in problem[1]
    assert ledger.problems() == [] and ledger.entry(number).record is None
    assert ledger.recorded("visits", "q") is None and ledger.spent("visits") == QUARTER
    ledger.withdraw(number, words="of another price")
    assert ledger.no_answers() == {} and ledger.problems() == []


def test_what_is_held_is_known(tmp_path):
    ledger = Ledger.open(tmp_path / "a.ledger")
    ledger.account("visits", ONE)
    paid = reserved(ledger, "q")
    assert ledger.holds(paid)
    changed(ledger.path, "DELETE FROM entries WHERE sequence > 2")
    assert not ledger.holds(paid)
    ledger.path.unlink()
    assert not ledger.holds(paid)
    with pytest.raises(LastbitError):
        ledger.spent("visits")
    assert price("1/4") == QUARTER and os.listdir(tmp_path) == []
