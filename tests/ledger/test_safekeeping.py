"""Backup while in use, restore that replaces nothing and is not older than a hash, export."""

import hashlib
import json
import os

import pytest

from lastbit.errors import InvalidParameter, LedgerDamaged
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.safekeeping import exported, restored
from tests.ledger.books import changed, charged, price, small_ledger


@pytest.fixture
def ledger(place):
    return small_ledger(place)


def test_a_backup_is_the_ledger_at_that_moment(ledger, tmp_path):
    ledger.backup(tmp_path / "copy.ledger")
    head = ledger.head
    charged(ledger, "q9", price("1/8"))
    copy = Ledger.existing(tmp_path / "copy.ledger")
    assert copy.head == head and copy.opened == ledger.opened and copy.secret == ledger.secret
    assert copy.problems([head]) == []
    assert copy.recorded("visits", "q1") == ledger.recorded("visits", "q1")
    assert os.stat(copy.path).st_mode & 0o777 == 0o600
    assert set(os.listdir(tmp_path)) <= {"a.ledger", "copy.ledger"}


def test_no_file_is_replaced(tmp_path):
    ledger = small_ledger(tmp_path)
    (tmp_path / "there").write_text("precious")
    for target in ("there", "a.ledger"):
        with pytest.raises(InvalidParameter, match="exists, and is not replaced"):
            ledger.backup(tmp_path / target)
        with pytest.raises(InvalidParameter, match="exists, and is not replaced"):
            restored(ledger.path, tmp_path / target)
    with pytest.raises(InvalidParameter, match="is a folder"):
        ledger.backup(tmp_path)
    assert (tmp_path / "there").read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["a.ledger", "there"]


def test_a_restored_ledger_goes_on_and_says_that_it_was_restored(ledger, tmp_path):
    ledger.backup(tmp_path / "copy")
    head = ledger.head
    back = restored(tmp_path / "copy", tmp_path / "back", who="ada", heads=[head])
    assert back.spent("visits") == price("3/4")
    note = back.entries(last=1)[0]
    assert (note.kind, note.who) == ("note", "ada")
    assert head in (note.words or "")
    charged(back, "q9", price("1/4"))
    assert back.problems([head]) == []


def test_a_backup_older_than_a_known_answer_is_refused(ledger, tmp_path):
    ledger.backup(tmp_path / "copy")
    entry = charged(ledger, "q9", price("1/8"))
    with pytest.raises(LedgerDamaged, match="is not restored: no entry has the hash"):
        restored(tmp_path / "copy", tmp_path / "new", heads=[entry.hash])
    assert not (tmp_path / "new").exists()


def test_a_tampered_backup_is_refused(ledger, tmp_path):
    ledger.backup(tmp_path / "copy")
    changed(tmp_path / "copy", "UPDATE entries SET record = '{}' WHERE sequence = 3")
    with pytest.raises(LedgerDamaged, match="is not restored: entry 3 has an answer"):
        restored(tmp_path / "copy", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_export_can_be_checked_without_lastbit_and_lacks_the_secret(ledger):
    lines = [json.dumps(entry) for entry in exported(ledger)]
    assert ledger.secret.hex() not in "".join(lines)
    previous = "0" * 64
    for line in map(json.loads, lines):
        for part, expected in (
            (line["fields"], line["hash"]),
            (line["record"], line["fields"]["result"]),
        ):
            plain = json.dumps(part, sort_keys=True, separators=(",", ":"))
            if part is not None:
                assert hashlib.sha256(plain.encode()).hexdigest() == expected
        assert line["fields"]["previous"] == previous
        previous = line["hash"]
    assert previous == ledger.head and len(lines) == 6


def test_a_tampered_ledger_is_not_exported_in_silence(ledger):
    changed(ledger.path, "UPDATE entries SET record = '{}' WHERE sequence = 3")
    with pytest.raises(LedgerDamaged, match="entry 3"):
        list(exported(ledger))
    changed(ledger.path, "DELETE FROM entries WHERE sequence = 2")
    with pytest.raises(LedgerDamaged, match="lost entry 2"):
        list(exported(ledger))
