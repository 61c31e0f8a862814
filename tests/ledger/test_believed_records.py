"""An analyst with SQL at hand: what they write decides nothing, and stops nothing."""

from __future__ import annotations

import hashlib
import json
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from lastbit.cli.main import main
from lastbit.errors import InvalidParameter, LastbitError
from lastbit.ledger.entry import Entry
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.limits import Limit, Total
from lastbit.ledger.safekeeping import anchor_noted, anchored
from lastbit.release import table
from tests.engines import servers
from tests.ledger.books import ONE, changed, charged, clock_shows, person, price, signed_in
from tests.ledger.test_principals import asked, team

psycopg = pytest.importorskip("psycopg", reason=servers.MISSING)

TINY = price("1/1000000000000000000000000000000")
DEEP = '{"a":' + "[" * 3000 + "]" * 3000 + "}"
LONG = '{"a":' + "9" * 5000 + "}"
NO_RECORDS = {
    "deep": DEEP,
    "long": LONG,
    "infinite": '{"a":1e999}',
    "half a letter": '{"a":"\\ud800"}',
    "many digits in a fraction": '{"a":0.' + "1" * 2000 + "}",
    "deep objects": '{"a":' * 101 + "1" + "}" * 101,
}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def appended(ledger: Ledger, path: Any, record: str | None, *, by: str = "append", **fields: Any):
    """What somebody appends by SQL who knows how number, link and hashes are made."""
    last = ledger.entries(last=1)[0]
    result = None if record is None else digest(record)
    made = replace(
        last, **{"sequence": last.sequence + 1, "previous": last.hash, "result": result, **fields}
    )
    row = made.sequence, made.account, made.question, made.text, made.hash, record
    with signed_in(path) as connection:
        connection.execute(f"SELECT {by}(%s::bigint, %s, %s, %s, %s, %s)", row)
    return made


def charge_of(ledger: Ledger, account: str, **fields: Any) -> dict[str, Any]:
    """The fields of a charge of next to nothing, as the rules want them."""
    state = next(one for one in ledger.accounts() if one.name == account)
    before: Any = state.spent
    spent = before + TINY
    now = ledger.entries(last=1)[0].when
    return {
        "kind": "charge", "account": account, "question": "made up", "cost": TINY, "spent": spent,
        "budget": state.budget, "reservation": None, "plan": None, "words": None, "when": now,
        **fields,
    }  # fmt: skip


def visits(neighbours: str) -> Any:
    rows = duckdb.sql("SELECT range AS ward FROM range(100)")
    how: Any = {"neighbours": neighbours}
    return table(rows, each_row=True, name="visits", budget=ONE, **how)


def asks(ledger: Ledger, neighbours: str, sql: str, epsilon: str = "1/8") -> Any:
    return visits(neighbours).sql(sql).release(epsilon=epsilon, ledger=ledger)


COUNT = "SELECT count(*) AS n FROM visits"
ABOVE = "SELECT count(*) AS n FROM visits WHERE ward > 5"


@pytest.fixture
def ledger(address: str) -> Ledger:
    """In PostgreSQL, with an answer about add-remove neighbours."""
    made = Ledger.init(address)
    asks(made, "add-remove", COUNT)
    return made


# ---------------------------------------------------------------- neighbours


def test_a_record_does_not_reverse_the_neighbours_of_an_account(ledger: Ledger) -> None:
    """Before: add-remove cards were refused from then on, and a change-one card was let in."""
    claim = {"neighbours": "change-one", "unit": None}
    forged = json.dumps({"certificate": {"claim": claim}})
    made = appended(ledger, person(ledger, "analyst").path, forged, **charge_of(ledger, "visits"))
    assert asks(ledger, "add-remove", ABOVE).charged
    with pytest.raises(InvalidParameter, match="other neighbours or units"):
        asks(ledger, "change-one", ABOVE)
    assert ledger.spent("visits").epsilon == Fraction(1, 4) + TINY.epsilon
    assert ledger.problems() == [] and list(ledger.no_answers()) == [made.sequence]
    result = CliRunner().invoke(main, ["ledger", "verify", str(ledger.path)])
    assert result.exit_code == 0 and "about other neighbours than its account" in result.output


def test_only_a_steward_says_which_neighbours_there_are(ledger: Ledger) -> None:
    analyst, steward = person(ledger, "analyst"), person(ledger, "steward")
    with pytest.raises(InvalidParameter, match=r"stays is not open; let a steward run .*--set"):
        analyst.account("stays", ONE, "change-one of rows")
    steward.account("stays", ONE, "change-one of rows")
    steward.set_budget("stays", ONE, neighbours="add-remove of units")  # nothing is spent yet
    charged(ledger, "q", price("1/8"), account="stays")
    state = charge_of(ledger, "stays", kind="budget", cost=None, question=None)
    fields = state | {"spent": price("1/8"), "neighbours": "change-one of rows"}
    for role, by in ((analyst, "append"), (steward, "decide")):
        with pytest.raises(psycopg.Error):
            appended(ledger, role.path, None, by=by, **fields)
    with pytest.raises(psycopg.Error):  # nor are they dropped
        appended(ledger, steward.path, None, by="decide", **{**fields, "neighbours": None})
    with pytest.raises(InvalidParameter, match="other neighbours or units"):
        steward.set_budget("stays", ONE, neighbours="change-one of rows")
    stays = next(one for one in ledger.accounts() if one.name == "stays")
    assert stays.neighbours == "add-remove of units" and ledger.problems() == []


def test_a_charge_states_the_neighbours_of_its_account(ledger: Ledger) -> None:
    path = person(ledger, "analyst").path
    for other in (None, "change-one of rows", "add-remove of units"):
        fields = charge_of(ledger, "visits", neighbours=other)
        with pytest.raises(psycopg.Error):
            appended(ledger, path, "{}", **fields)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_an_account_of_old_is_asked_by_the_card_of_a_steward(request, tmp_path, kind) -> None:
    """Old ledgers do not state neighbours: answers so far may raise a doubt, and decide nothing."""
    place = tmp_path / "old" if kind == "sqlite" else request.getfixturevalue("address")
    ledger = Ledger.open(place) if kind == "sqlite" else Ledger.init(place)
    ledger.account("visits", ONE)  # as an older lastbit did
    claim = {"neighbours": "add-remove", "unit": None}
    charged(ledger, "old", price("1/8"), record={"certificate": {"claim": claim}})
    if kind == "postgres":
        with pytest.raises(InvalidParameter, match=r"visits states no neighbours; let a steward"):
            asks(person(ledger, "analyst"), "add-remove", COUNT)
    with pytest.raises(InvalidParameter, match=r"other neighbours or units: entry 3.*withdraw"):
        asks(ledger, "change-one", COUNT)
    assert asks(ledger, "add-remove", COUNT).charged
    (visit,) = ledger.accounts()
    assert visit.neighbours == "add-remove of rows" and ledger.problems() == []


def test_a_doubt_that_somebody_made_up_is_withdrawn(tmp_path) -> None:
    ledger = Ledger.open(tmp_path / "old")
    ledger.account("visits", ONE)
    claim = {"neighbours": "change-one", "unit": None}
    charged(ledger, "made up", TINY, record={"certificate": {"claim": claim}})
    with pytest.raises(InvalidParameter, match="lastbit ledger withdraw"):
        asks(ledger, "add-remove", COUNT)
    result = CliRunner().invoke(
        main, ["ledger", "withdraw", str(ledger.path), "3", "--why", "not ours"]
    )
    assert result.exit_code == 0 and "answer of entry 3" in result.output
    assert asks(ledger, "add-remove", COUNT).charged
    assert ledger.spent("visits") == price("1/8") + TINY and ledger.problems() == []


# ---------------------------------------------------------------- records that cannot be read


@pytest.mark.parametrize("what", NO_RECORDS)
def test_a_record_that_cannot_be_read_is_not_let_in(ledger: Ledger, what: str) -> None:
    """Before: every question, log, copy and backup failed with LedgerDamaged from then on."""
    path, before = person(ledger, "analyst").path, ledger.head
    if what == "infinite":  # finite to the server, which leaves numbers as they are written
        appended(ledger, path, NO_RECORDS[what], **charge_of(ledger, "visits"))
    else:
        with pytest.raises(psycopg.Error):
            appended(ledger, path, NO_RECORDS[what], **charge_of(ledger, "visits"))
        assert ledger.head == before
    appended(ledger, path, '{"a":[[{"b":"]]]}"}]],"c":-1.5e-300}', **charge_of(ledger, "visits"))
    assert asks(ledger, "add-remove", ABOVE).charged


def test_a_ledger_that_holds_one_already_goes_on(ledger: Ledger, tmp_path) -> None:
    """As an older server let it in: it is charged, is no answer, and a steward can withdraw it."""
    schema = ledger.path.extra["schema"]
    with signed_in(ledger.path) as connection:
        body = "SELECT true"
        how = f"CREATE OR REPLACE FUNCTION {schema}.readable(text) RETURNS boolean LANGUAGE sql "
        (kept,) = connection.execute(
            f"SELECT pg_get_functiondef('{schema}.readable(text)'::regprocedure)"
        ).fetchone()
        connection.execute(f"{how} AS $${body}$$")
        numbers = [
            appended(ledger, ledger.path, text, by="decide", **charge_of(ledger, "visits")).sequence
            for text in (LONG, DEEP)
        ]
        connection.execute(kept)
    check_that_all_goes_on(ledger, numbers, tmp_path)


@pytest.mark.parametrize("what", [what for what in NO_RECORDS if "fraction" not in what])
def test_a_file_that_holds_one_goes_on(tmp_path, what: str) -> None:
    ledger = Ledger.open(tmp_path / "a.ledger")
    asks(ledger, "add-remove", COUNT)
    entry = charged(ledger, "made up", TINY)
    made = replace(ledger.entry(entry.sequence), record=None, result=digest(NO_RECORDS[what]))
    rewritten(ledger, made, NO_RECORDS[what])
    check_that_all_goes_on(ledger, [entry.sequence], tmp_path)


def rewritten(ledger: Ledger, entry: Entry, record: str) -> None:
    """The last entry of a file, with another record, as it would have been written."""
    changed(
        ledger.path,
        "UPDATE entries SET text = ?, hash = ?, record = ? WHERE sequence = ?",
        values=(entry.text, entry.hash, record, entry.sequence),
    )


def check_that_all_goes_on(ledger: Ledger, numbers: list[int], tmp_path: Any) -> None:
    spent: Any = ledger.spent("visits")
    assert ledger.problems() == [] and list(ledger.no_answers()) == numbers
    assert ledger.recorded("visits", "made up") is None
    assert asks(ledger, "add-remove", ABOVE).charged
    assert ledger.spent("visits") == spent + price("1/8")
    ledger.backup(tmp_path / "backup")
    place = str(ledger.path)
    for command in (
        ["verify", place], ["log", place], ["log", place, "--json"], ["verify", place, "--json"],
        ["export", place], ["export", place, "--format", "csv"],
        ["export", place, "--format", "html"], ["copy", place, str(tmp_path / "copy")],
        ["restore", str(tmp_path / "backup"), str(tmp_path / "restored")],
        ["anchor", place, str(tmp_path / "heads")],
    ):  # fmt: skip
        result = CliRunner().invoke(main, ["ledger", *command])
        assert result.exit_code == 0, (command, result.output, result.exception)
        if command[0] == "log" and "--json" not in command:
            assert "unreadable entry, stays charged" in result.output
        if command[0] == "verify":
            assert "has a record that is not of lastbit's own form" in result.output
    assert CliRunner().invoke(main, ["budget", place]).exit_code == 0
    for number in numbers:
        ledger.withdraw(number, words="no answer")
    assert ledger.no_answers() == {} and ledger.problems() == []
    assert ledger.spent("visits") == spent + price("1/8")


def test_a_steward_withdraws_an_answer_and_nobody_else(ledger: Ledger) -> None:
    analyst, number = person(ledger, "analyst"), ledger.entries(last=1)[0].sequence
    first = ledger.entry(number)
    with pytest.raises(InvalidParameter, match="does not give you the right"):
        analyst.withdraw(number, words="mine")
    person(ledger, "steward").withdraw(number, words="made up")
    assert ledger.entry(number).record is None and ledger.problems() == []
    for again in (number, number + 1, 999):
        with pytest.raises(InvalidParameter, match="has no answer, or one that is withdrawn"):
            ledger.withdraw(again, words="twice")
    spent: Any = ledger.spent("visits")
    answer = asks(ledger, "add-remove", COUNT)  # the same question: the old answer is not shown
    assert answer.charged and answer.record["entry"]["hash"] != first.hash
    assert ledger.spent("visits") == spent + price("1/8")


def test_another_record_of_the_same_question_is_not_shown_for_it(ledger: Ledger) -> None:
    """A made-up answer, filed under the question of a true one: the true one is found behind it."""
    true = asks(ledger, "add-remove", COUNT)
    rows = [{"keys": [], "cells": [{"value": 424242}]}]
    forged = json.dumps({**true.record, "entry": None, "rows": rows}, sort_keys=True,
                        separators=(",", ":"))  # fmt: skip
    for text in (forged, "{}", '{"rows":[]}'):
        question = true.record["question"]
        fields = charge_of(ledger, "visits", question=question)
        with pytest.raises(psycopg.Error) if text is forged else nullcontext():  # it names a price
            appended(ledger, person(ledger, "analyst").path, text, **fields)
    again = asks(ledger, "add-remove", COUNT)
    assert not again.charged and again.record == true.record


# ---------------------------------------------------------------- reservations and notes


def test_a_reservation_of_other_data_is_not_resumed(ledger: Ledger) -> None:
    """Before, who asked that question resumed it, and could never be answered."""
    first = asks(ledger, "add-remove", ABOVE)
    entry = next(one for one in ledger.entries() if one.kind == "reserved" and one.words == ABOVE)
    ledger.withdraw(first.record["entry"]["sequence"], words="to ask it again")
    state: Any = next(iter(ledger.accounts())).spent
    fields = charge_of(ledger, "visits", kind="reserved", cost=price("1/8"), who="eve")
    fields |= {"spent": state + price("1/8"), "question": entry.question, "plan": entry.plan}
    path = person(ledger, "analyst").path
    appended(ledger, path, None, **{**fields, "fingerprint": "0" * 64, "words": "SELECT 'lies'"})
    again = asks(ledger, "add-remove", ABOVE)
    assert again.charged and again.record["asked"]["sql"] == ABOVE
    assert ledger.spent("visits") == price("1/2") and ledger.problems() == []


def test_what_a_reservation_of_somebody_else_says_was_asked_is_not_shown(ledger: Ledger) -> None:
    question = asks(ledger, "add-remove", ABOVE).record
    paid = next(one for one in ledger.entries() if one.kind == "reserved" and one.words == ABOVE)
    ledger.withdraw(question["entry"]["sequence"], words="to ask it again")
    state: Any = next(iter(ledger.accounts())).spent
    fields = charge_of(ledger, "visits", kind="reserved", cost=price("1/8"), plan="p" * 64)
    fields |= {"spent": state + price("1/8"), "question": paid.question}
    fields |= {"fingerprint": paid.fingerprint, "words": "SELECT 'lies'"}
    appended(ledger, person(ledger, "analyst").path, None, **fields)
    again = asks(ledger, "add-remove", ABOVE)
    assert not again.charged and again.record["asked"]["sql"] == ABOVE


def test_nobody_answers_for_another_principal(address: str) -> None:
    ledger = Ledger.init(address)
    ledger.account("visits", ONE)
    analysts = [person(ledger, "analyst") for _ in range(2)]
    ledger.set_principal("ada", "steward", by="root")
    for one in analysts:
        ledger.set_principal(one.user, "analyst", by="ada")
        ledger.set_allowance("visits", one.user, DAILY, by="ada")
    how: Any = {"question": "q", "cost": price("1/8")}
    mine = asked(analysts[0], principal=analysts[0].user, **how)
    with pytest.raises(InvalidParameter, match="in your own name alone"):
        analysts[1].settle(mine, {"rows": []})
    theirs = asked(analysts[1], principal=analysts[1].user, **how)  # it is not resumed either
    assert theirs.sequence != mine.sequence and not theirs.resumed
    for one, paid in zip(analysts, (mine, theirs), strict=True):
        one.settle(paid, {"rows": []})
    assert ledger.problems() == [] and ledger.spent("visits") == price("1/4")


def test_a_steward_alone_notes_the_heads_of_another_ledger(ledger: Ledger, tmp_path) -> None:
    """Before, an analyst of the anchor could note a head that no ledger has."""
    other, forged = Ledger.open(tmp_path / "other"), "0" * 64
    words = f"anchor of {other.opened}: entry 1 is {forged}"
    with pytest.raises(InvalidParameter, match="does not give you the right"):
        person(ledger, "analyst").note(words)
    person(ledger, "analyst").note("an anchor of hope")
    anchor_noted(other, ledger.path)
    assert anchored(other, ledger.path) == [other.head]


# ---------------------------------------------------------------- the clock


DAILY = Limit(epsilon=Fraction(1), period="day")


def test_the_period_is_that_of_the_servers_clock(address: str, monkeypatch) -> None:
    """Before: yesterday's `when` gave 1.75 of a daily allowance of 1."""
    clock_shows(monkeypatch, "2024-05-14")
    ledger = team(Ledger.init(address), DAILY)
    asked(ledger, cost=price("1/4"))
    with signed_in(ledger.path) as connection:
        connection.execute("CREATE ROLE ben LOGIN")
        connection.execute(f"GRANT {ledger.path.extra['schema']}_analyst TO ben")
    try:
        ben = Ledger.existing(str(ledger.path).replace("postgres@", "ben@")).path
        clock_shows(monkeypatch, "2024-05-15")
        yesterday, state = ledger.entries(last=1)[0], next(iter(ledger.accounts()))
        before: Any = state.spent
        spent = before + price("3/4")
        like = {**charge_of(ledger, "visits"), "principal": "ben", "limit": DAILY, "spent": spent,
                "cost": price("3/4"), "used": Total(epsilon=Fraction(1))}  # fmt: skip
        ledger.allowances()  # the server's clock shows the new day
        for when, since in (
            (yesterday.when, "2024-05-14"),
            (yesterday.when, "2024-05-15"),
            ("2024-05-15T11:54:59.000+00:00", "2024-05-15"),
            ("2024-05-15T11:59:59.000+00:00", "2024-05-14"),
            ("2024-05-15T12:00:01.000+00:00", "2024-05-15"),
            ("2024-05-16T12:00:00.000+00:00", "2024-05-16"),
        ):
            fields = {**like, "when": when, "since": since}
            with pytest.raises(psycopg.Error):
                appended(ledger, ben, "{}", **fields)
        asked(ledger, cost=price(1))  # the whole of today's
        with pytest.raises(LastbitError, match="Of the allowance of ben"):
            asked(ledger, cost=TINY)
        assert ledger.problems() == [] and ledger.spent("visits") == price("5/4")
    finally:
        with signed_in(ledger.path) as connection:
            connection.execute("DROP OWNED BY ben; DROP ROLE ben")
