"""`lastbit ledger`: verify, log, export, backup, restore."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from lastbit.errors import InvalidParameter
from lastbit.ledger.ledger import Ledger
from lastbit.tables import Cost
from tests.cli.running import lastbit, read, refused, succeeded
from tests.ledger import conftest as places
from tests.ledger.books import CANARY, changed, charged, person, price, small_ledger
from tests.release.canaries import write_card, write_csv

postgres, database, address = places.postgres, places.database, places.address


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
        "no_answers": {},
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


# ---------------------------------------------------------------- anchors, copies, servers


def test_an_anchor_tells_what_the_chain_alone_does_not(ledger):
    assert ledger.head in succeeded("ledger", "anchor", "a.ledger", "heads.txt")
    assert lastbit("ledger", "verify", "a.ledger", "--anchor", "heads.txt").exit_code == 0
    succeeded("ledger", "backup", "a.ledger", "old.ledger")
    charged(ledger, "q9", price("1/8"))
    succeeded("ledger", "anchor", "a.ledger", "heads.txt")
    result = lastbit("ledger", "verify", "old.ledger", "--anchor", "heads.txt")
    assert result.exit_code == 1 and "or the chain was rewritten" in result.stdout
    words = refused("ledger", "verify", "a.ledger", "--anchor", "none.txt")
    assert "has no line of this ledger" in words


def test_init_makes_a_file_once():
    assert "made" in succeeded("ledger", "init", "new.ledger")
    assert "is not replaced" in refused("ledger", "init", "new.ledger")


def test_a_password_is_refused_and_not_repeated():
    for command in (["ledger", "verify"], ["ledger", "init"], ["budget"]):
        words = refused(*command, f"postgresql://ada:{CANARY}@db/books")
        assert "holds a password; put it into ~/.pgpass" in words and CANARY not in words


def test_a_ledger_goes_to_a_server_and_back(ledger, address):
    def run(*arguments: str) -> str:
        result = lastbit("ledger", *arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    assert "Two ledgers hold this budget now" in run("copy", "a.ledger", address)
    words = " ".join(refused("ledger", "copy", "a.ledger", address).split())
    assert "is not replaced" in words
    assert "copied from a ledger that ended with" in run("log", address)
    assert "every entry fits" in run("verify", address, "--head", ledger.head)
    assert "ε 0.25 left" in lastbit("budget", address).stdout
    assert len(run("export", address).splitlines()) == 7
    run("anchor", address, "heads.txt")
    run("backup", address, "copy.ledger")
    run("verify", "copy.ledger", "--anchor", "heads.txt")
    run("restore", "copy.ledger", "back.ledger", "--head", ledger.head)
    shared = Ledger.existing(address)
    assert shared.spent("visits") == price("3/4") and shared.problems([ledger.head]) == []
    assert "GRANT" in run("init", f"{address}_more")


def test_a_question_is_charged_to_a_ledger_on_a_server(address):
    """By the card alone: asked twice it is charged once, and the ledger is the card's own."""
    write_csv(Path("visits.csv"))
    write_card(Path())
    card = Path("visits.toml")
    card.write_text(card.read_text().replace("visits.ledger", address))
    asked = ("query", "visits.toml", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "1", "--json")
    assert "make one by lastbit ledger init" in refused(*asked)
    Ledger.init(address)
    first, second = (lastbit(*asked) for _ in range(2))
    assert first.exit_code == second.exit_code == 0, first.output
    answers = [json.loads(one.stdout)["answer"] for one in (first, second)]
    assert answers[0] == answers[1]
    books = Ledger.existing(address)
    assert books.head == answers[0]["entry"]["hash"] and books.spent("visits") == price(1)
    found = read("budget", "visits.toml")
    assert found["ledger"] == str(books.path) and found["card_agrees"]
    assert books.is_at(address.replace("postgres@", "ada@")) and not books.is_at("a.ledger")
    card.write_text(card.read_text().replace("postgres@", f"postgres:{CANARY}@"))
    words = refused(*asked)
    assert "holds a password" in words and CANARY not in words


# ---------------------------------------------------------------- an account that tables share


def shared_cards(budget: str = "epsilon = 8") -> None:
    """Two tables of the same people, visits and stays, with one account."""
    write_csv(Path("visits.csv"))
    write_csv(Path("stays.csv"))
    text = write_card(Path()).read_text().replace('[ledger]\npath = "visits.ledger"\n', "")
    text = text.replace("epsilon = 8", f'{budget}\naccount = "patients"')
    Path("visits.toml").write_text(text)
    Path("stays.toml").write_text(text.replace('"visits', '"stays'))


def asked(table: str, epsilon: str = "1") -> tuple[str, ...]:
    sql = f"SELECT COUNT(*) AS n FROM {table}"
    return ("query", f"{table}.toml", sql, "--epsilon", epsilon)


def test_tables_of_the_same_people_share_an_account():
    shared_cards()
    first, second = (read(*asked(table))["answer"] for table in ("visits", "stays"))
    books = Ledger.existing("patients.ledger")  # named after the account, or there would be two
    assert not Path("visits.ledger").exists() and not Path("stays.ledger").exists()
    assert [account.name for account in books.accounts()] == ["patients"]
    assert books.spent("patients").epsilon == 2 and books.problems() == []
    assert first["entry"]["sequence"] < second["entry"]["sequence"]
    # each table is answered from its own record
    assert read(*asked("visits"))["answer"] == first and read(*asked("stays"))["answer"] == second
    for table in ("visits", "stays"):
        assert read("budget", f"{table}.toml")["accounts"][0]["account"] == "patients"
        assert "patients" in succeeded("card", "check", f"{table}.toml")
    assert "is left. Nothing was charged" in refused(*asked("stays", "7"))
    assert books.spent("patients").epsilon == 2


def test_cards_that_share_an_account_declare_the_same_neighbours():
    shared_cards()
    succeeded(*asked("visits"))
    text = Path("stays.toml").read_text()
    assert 'neighbours = "add-remove"' in text
    Path("stays.toml").write_text(text.replace('"add-remove"', '"change-one"'))
    assert "declare the same neighbours" in refused(*asked("stays"))
    books = Ledger.existing("patients.ledger")
    assert books.spent("patients").epsilon == 1
    odd_ones: list[dict[str, object]] = [{}, {"certificate": None}, {"certificate": {"claim": {}}}]
    for number, odd in enumerate(odd_ones):
        books.charge(
            "patients", Cost(epsilon=Fraction(1)), who="ada", question=f"q{number}",
            plan_digest="p", fingerprint="f", record={"rows": [], **odd},
        )  # fmt: skip
    assert "declare the same neighbours" in refused(*asked("stays"))


def test_what_an_account_sums_up_is_about_one_kind_of_neighbours(monkeypatch):
    """Also where the other card does not name the account, or is this one as it was before."""
    shared_cards()
    card = Path("visits.toml")
    own = card.read_text().replace('account = "patients"\n', "")
    card.write_text(own + '\n[ledger]\npath = "patients.ledger"\n')
    other = Path("stays.toml")
    other.write_text(other.read_text().replace('"patients"', '"visits"'))
    other.write_text(other.read_text() + '\n[ledger]\npath = "patients.ledger"\n')
    succeeded(*asked("stays"))
    card.write_text(card.read_text().replace('"add-remove"', '"change-one"'))
    assert "declare the same neighbours" in refused(*asked("visits"))
    books = Ledger.existing("patients.ledger")
    for number in range(3):
        books.note(f"remark {number}", account="visits")
    monkeypatch.setattr("lastbit.release.paying.MOST_LOOKED_AT", 2)
    assert "declare the same neighbours" in refused(*asked("visits"))
    assert books.spent("visits").epsilon == 1


def test_cards_that_share_an_account_declare_one_budget():
    shared_cards()
    succeeded(*asked("visits"))
    card = Path("stays.toml")
    card.write_text(card.read_text().replace("epsilon = 8", "epsilon = 9"))
    assert "is not the one that the ledger has for it" in refused(*asked("stays"))
    succeeded("budget", "stays.toml", "--set")
    succeeded(*asked("stays"))
    assert "is not the one that the ledger has for it" in refused(*asked("visits", "2"))


@pytest.mark.parametrize("name", ['""', "3", '"a/b"', '"../x"', '"a\\nb"'])
def test_an_account_that_is_no_name_is_refused(name):
    shared_cards()
    card = Path("visits.toml")
    card.write_text(card.read_text().replace('"patients"', name))
    assert "budget.account is no" in refused(*asked("visits"))


# ---------------------------------------------------------------- data that a steward accepts


@pytest.mark.parametrize("where", ["file", "server"])
def test_changed_data_wait_for_the_steward(where, request):
    write_csv(Path("visits.csv"))
    place = "visits.ledger"
    if where == "server":
        place = request.getfixturevalue("address")
        Ledger.init(place)
    path = write_card(Path())
    path.write_text(path.read_text().replace('"visits.ledger"', f'"{place}"\ndata = "accepted"'))

    def waits() -> None:
        result = lastbit(*asked("visits"), "--json")
        assert result.exit_code == 2 and "a steward has accepted" in result.stderr

    waits()
    succeeded("ledger", "accept", "visits.toml")
    first = read(*asked("visits"))["answer"]
    with path.parent.joinpath("visits.csv").open("a", encoding="utf-8") as file:
        file.write("9,west,,1,1,2077-11-23,true\n")
    waits()
    books = Ledger.existing(place)
    assert books.spent("visits").epsilon == 1  # nothing was charged
    succeeded("ledger", "accept", "visits.toml")
    second = read(*asked("visits"))["answer"]
    assert second["entry"] != first["entry"] and books.spent("visits").epsilon == 2
    log = " ".join(lastbit("ledger", "log", place).stdout.split())
    assert log.count("data of visits accepted:") == 2 and books.problems() == []
    if where == "server":
        analyst = person(books, "analyst")
        words = "does not give you the right"
        with pytest.raises(InvalidParameter, match=words):
            analyst.accept_data("visits", "visits", "f" * 64)


def test_what_opens_an_account_accepts_nothing(ledger):
    ledger.account("stays", None)
    assert ledger.accepted_data("stays", "stays") is None
    ledger.note("data of stays accepted: f", account="stays")
    assert ledger.accepted_data("stays", "stays") is None
    ledger.accept_data("stays", "stays", "f", who="ada")
    ledger.accept_data("stays", "stays accepted: f", "g", who="ada")
    assert ledger.accepted_data("stays", "stays") == "f accepted: g"  # no data are like that
    assert ledger.accepted_data("stays", "others") is None
    assert ledger.problems() == []
