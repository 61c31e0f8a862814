"""`lastbit ledger`: verify, log, export, backup, restore."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lastbit.ledger.ledger import Ledger
from tests.cli.running import lastbit, read, refused, succeeded
from tests.ledger.books import CANARY, changed, charged, price, small_ledger


@pytest.fixture(autouse=True)
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.chdir(tmp_path)
    return small_ledger(tmp_path)


def test_verify_accepts_and_shows_the_head(ledger):
    page = succeeded("ledger", "verify", "a.ledger")
    assert "every entry fits" in page and ledger.head in page and "Note the head" in page
    heads = [part for entry in ledger.entries() for part in ("--head", entry.hash)]
    assert "Note the head" not in succeeded("ledger", "verify", "a.ledger", *heads)
    assert read("ledger", "verify", "a.ledger") == {
        "ledger": "a.ledger",
        "problems": [],
        "head": ledger.head,
    }


def test_verify_says_if_others_may_read(ledger):
    assert "chmod 600" not in succeeded("ledger", "verify", "a.ledger")
    ledger.path.chmod(0o640)
    assert "chmod 600" in succeeded("ledger", "verify", "a.ledger")


def test_verify_rejects_with_status_1(ledger):
    changed(ledger.path, "DELETE FROM entries WHERE sequence = 4")
    result = lastbit("ledger", "verify", "a.ledger")
    assert result.exit_code == 1
    assert "DOES NOT FIT" in result.stdout and "entry 4 is missing" in result.stdout
    assert CANARY not in result.stdout
    machine = lastbit("ledger", "verify", "a.ledger", "--json")
    assert machine.exit_code == 1 and json.loads(machine.stdout)["head"] is None


def test_an_older_copy_is_rejected_by_the_hash_of_a_newer_answer(ledger):
    succeeded("ledger", "backup", "a.ledger", "old.ledger")
    entry = charged(ledger, "q9", price("1/8"))
    assert lastbit("ledger", "verify", "a.ledger", "--head", entry.hash).exit_code == 0
    result = lastbit("ledger", "verify", "old.ledger", "--head", entry.hash)
    assert result.exit_code == 1 and "or the chain was rewritten" in result.stdout
    assert lastbit("ledger", "verify", "old.ledger").exit_code == 0  # nothing to compare with


@pytest.mark.parametrize("head", ["", "xyz", "A" * 64, "0" * 63])
def test_what_is_no_hash_is_refused(head):
    assert "--head is not a hash" in refused("ledger", "verify", "a.ledger", "--head", head)


def test_log_lists_the_last_entries(ledger):
    page = succeeded("ledger", "log", "a.ledger")
    for words in ("opened", "budget ε 1", "ε 0.25: SELECT q1", "by hand"):
        assert words in page
    assert CANARY not in page
    assert "SELECT q1" not in succeeded("ledger", "log", "a.ledger", "--last", "2")
    assert "by hand" not in succeeded("ledger", "log", "a.ledger", "--account", "visits")
    entries = read("ledger", "log", "a.ledger")["entries"]
    assert [entry["hash"] for entry in entries] == [entry.hash for entry in ledger.entries()]


def test_export_writes_lines_without_the_secret(ledger):
    lines = succeeded("ledger", "export", "a.ledger", "--out", "e.jsonl")
    assert lines == ""
    text = Path("e.jsonl").read_text("ascii")
    assert [json.loads(line)["fields"]["sequence"] for line in text.splitlines()] == [*range(1, 7)]
    assert ledger.secret.hex() not in text
    assert lastbit("ledger", "export", "a.ledger").stdout == text
    assert "--out exists" in refused("ledger", "export", "a.ledger", "--out", "e.jsonl")
    assert "names another file of" in refused("ledger", "export", "a.ledger", "--out", "a.ledger")
    assert "does not exist" in refused("ledger", "export", "a.ledger", "--out", "no/e.jsonl")
    assert ledger.problems() == []


def test_backup_and_restore(ledger):
    assert ledger.head in succeeded("ledger", "backup", "a.ledger", "copy.ledger")
    assert "is not replaced" in refused("ledger", "backup", "a.ledger", "copy.ledger")
    assert "is not replaced" in refused("ledger", "restore", "copy.ledger", "a.ledger")
    newer = charged(ledger, "q9", price("1/8"))
    ledger.path.unlink()
    given = ("ledger", "restore", "copy.ledger", "a.ledger")
    assert "is not restored" in refused(*given, "--head", newer.hash)
    assert not ledger.path.exists()
    assert "its price is forgotten" in succeeded(*given)
    assert "restored from a backup" in succeeded("ledger", "log", "a.ledger")


@pytest.mark.parametrize("command", ["verify", "log", "export"])
def test_what_is_no_ledger_is_refused_with_status_2(command):
    assert "is not there" in refused("ledger", command, "missing.ledger")
    assert not Path("missing.ledger").exists()
    Path("b.ledger").write_text(CANARY * 100)
    assert CANARY not in refused("ledger", command, "b.ledger")
    Path("c.ledger").touch()
    assert "is empty" in refused("ledger", command, "c.ledger")


def test_long_questions_are_cut_to_one_line(ledger):
    charged(ledger, "region, " * 40, price("1/8"))
    for command in (("ledger", "log"), ("budget",)):
        page = succeeded(*command, "a.ledger")
        assert len([line for line in page.splitlines() if "region" in line]) == 1


def test_restoring_voids_what_is_open_and_says_which_hash_proves_an_answer(ledger):
    paid = ledger.reserve(
        "visits", price("1/8"), who="ada", question="q8", plan_digest="p", fingerprint="f"
    )
    succeeded("ledger", "backup", "a.ledger", "mid")
    answer = ledger.settle(paid, {"rows": []})
    alone = "is a price whose answer is not in this ledger"
    assert alone not in succeeded("ledger", "verify", "a.ledger", "--head", paid.hash)
    page = succeeded("ledger", "restore", "mid", "new.ledger", "--head", paid.hash)
    assert "Charged and not answered in it: 1." in page and alone in page
    assert "void since a backup was restored" in succeeded("ledger", "log", "new.ledger")
    assert alone in succeeded("ledger", "verify", "new.ledger", "--head", paid.hash)
    refused("ledger", "restore", "mid", "newer.ledger", "--head", answer.hash)
    assert not Path("newer.ledger").exists()
