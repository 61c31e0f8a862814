"""A ledger in PostgreSQL: servers that forget, definitions that changed, roles, and the lock."""

import hashlib
import json
import os
import random
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast, get_args

import pytest

from lastbit.addresses import Address
from lastbit.errors import BudgetExceeded, InvalidParameter, LedgerDamaged
from lastbit.ledger.entry import Account, Entry, Kind, Malformed
from lastbit.ledger.ledger import Ledger
from lastbit.ledger.limits import Limit
from lastbit.ledger.places import place_of
from lastbit.tables.card.budget import Budget
from tests.engines import servers
from tests.ledger.books import (
    CANARY,
    ONE,
    changed,
    charged,
    everything,
    person,
    price,
    record,
    signed_in,
    small_ledger,
)
from tests.ledger.test_reservations import reserved

psycopg = pytest.importorskip("psycopg", reason=servers.MISSING)
from lastbit.ledger import charging as ledger_module, postgres as room  # noqa: E402  it needs it

TWO = Budget(kind="pure", epsilon=ONE.epsilon * 2)
_GIVEN = "bigint, text, text, text, text, text"


@pytest.fixture
def ledger(address):
    return small_ledger(address)


# ---------------------------------------------------------------- places that are refused


def test_a_place_without_a_ledger_is_refused_with_the_way_to_make_one(address, database):
    with pytest.raises(InvalidParameter, match="holds no ledger; make one by lastbit ledger init"):
        Ledger.open(address)
    with signed_in(place_of(database)) as connection:
        connection.execute("CREATE SCHEMA shop CREATE TABLE shop.prices (one integer)")
    with pytest.raises(InvalidParameter, match="is a schema, but not a ledger"):
        Ledger.open(f"{database}&schema=shop")
    with pytest.raises(InvalidParameter, match="exists, and is not replaced"):
        Ledger.init(f"{database}&schema=shop")


@pytest.mark.parametrize(
    ("what", "by", "problem"),
    [
        ("postgres@", "nobody_known@", "does not let you in"),
        ("tests_1", "no_such_database", "names a database that is not there"),
        ("host=/", "host=/nowhere/", "cannot be reached"),
        ("schema=", "schema=Not.one", "names a schema that is not of"),
        ("&schema", "&service=none_such&schema", "names a service"),
    ],
)
def test_a_wrong_address_is_told_apart(ledger, what, by, problem, postgres):
    text = str(ledger.path)
    assert what in text or what == "tests_1"
    database = ledger.path.given["dbname"]
    text = text.replace(database if what == "tests_1" else what, by)
    with pytest.raises(InvalidParameter, match=problem) as caught:
        Ledger.existing(text)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_password_is_shown_nowhere(ledger, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", CANARY)
    with pytest.raises(InvalidParameter) as caught:
        Ledger.existing(str(ledger.path).replace("host=/", "host=/nowhere/"))
    assert CANARY not in str(caught.value) + repr(ledger) + repr(Ledger.existing(ledger.path))


@pytest.mark.parametrize(
    ("setting", "problem"),
    [("fsync=off", "may forget"), ("full_page_writes=off", "may forget")],
)
def test_a_server_that_may_forget_is_refused(setting, problem):
    server = servers.started(setting)
    try:
        with pytest.raises(InvalidParameter, match=problem):
            Ledger.init(server.database())
    finally:
        server.remove()


@pytest.mark.parametrize(
    ("place", "found", "problem"),
    [
        (0, 14, "is on PostgreSQL 14, and needs 15 or newer; upgrade"),
        (1, "SQL_ASCII", "is in a database that is not in UTF8"),
        (2, True, "is on a replica"),
        (3, "on", "may only be read"),
        (6, "local", "may forget"),
        (6, "off", "may forget"),
        (7, "on", "may forget or damage"),
        (8, "replica", "session_replication_role"),
    ],
)
def test_what_a_server_says_of_itself_decides(place, found, problem):
    said: list[Any] = [15, *room._SOUND]
    address: Any = "postgresql://db/books"

    class Told:
        def execute(self, _):
            return self

        def fetchone(self):
            return tuple(said)

    room._check_server(address, Told())
    said[place] = found
    with pytest.raises(InvalidParameter, match=problem):
        room._check_server(address, Told())


def test_a_charge_is_synced_as_it_has_to_be(ledger):
    """The mutant: synchronous_commit off or local, which no test without a power cut would see."""
    with signed_in(ledger.path) as connection:
        connection.execute("ALTER ROLE postgres SET synchronous_commit = off")
    try:
        seen = []
        with room.connected(ledger.path, ledger.connections, patience=7) as books:
            for work in (books.transaction, books.snapshot):
                with work():
                    seen += books.raw.execute("SHOW synchronous_commit").fetchone()
            seen += books.raw.execute("SHOW synchronous_commit").fetchone()
            assert books.raw.execute("SHOW search_path").fetchone() == ("pg_catalog, pg_temp",)
        assert seen == ["on"] * 3
    finally:
        with signed_in(ledger.path) as connection:
            connection.execute("ALTER ROLE postgres RESET synchronous_commit")


# ---------------------------------------------------------------- definitions


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE entries DISABLE TRIGGER stay_update",
        "DROP TRIGGER stay_delete ON secret",
        "ALTER TABLE entries SET UNLOGGED",
        "ALTER TABLE entries ADD COLUMN more text",
        "ALTER TABLE entries DROP CONSTRAINT entries_reservation_key",
        "ALTER TABLE entries ENABLE ROW LEVEL SECURITY",
        "CREATE RULE lost AS ON INSERT TO entries DO INSTEAD NOTHING",
        "CREATE OR REPLACE FUNCTION locked() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
        "CREATE FUNCTION length(text) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        f"ALTER FUNCTION append({_GIVEN}) SET search_path = public",
        "GRANT INSERT ON entries TO PUBLIC",
        "GRANT UPDATE (last) ON head TO {schema}_analyst",
        "GRANT SELECT ON entries TO PUBLIC",
        f"GRANT EXECUTE ON FUNCTION decide({_GIVEN}) TO {{schema}}_analyst",
        "GRANT CREATE ON SCHEMA {schema} TO {schema}_analyst",
        "ALTER TABLE entries OWNER TO postgres",
        # an entry that is told to be written, and is not; a guard that is another one of its name
        "CREATE FUNCTION public.{schema}_lost() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN RETURN NULL; END'; CREATE TRIGGER lost BEFORE INSERT ON entries "
        "FOR EACH ROW EXECUTE FUNCTION public.{schema}_lost()",
        "CREATE SCHEMA {schema}_x CREATE TABLE none (); CREATE FUNCTION {schema}_x.stay() "
        "RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
        "CREATE OR REPLACE TRIGGER stay_update BEFORE UPDATE ON entries "
        "FOR EACH STATEMENT EXECUTE FUNCTION {schema}_x.stay()",
    ],
)
def test_changed_definitions_are_refused_at_once(ledger, statement):
    schema = ledger.path.extra["schema"]
    with signed_in(ledger.path) as connection:
        if "UNLOGGED" in statement:
            connection.execute("ALTER TABLE entries DROP CONSTRAINT entries_reservation_fkey")
        connection.execute(statement.replace("{schema}", schema))
    with pytest.raises(LedgerDamaged, match=r"had its (rights|tables, triggers or functions) chan"):
        Ledger.existing(ledger.path, patience=29)  # on a connection of its own
    assert Ledger(path=ledger.path, opened=ledger.opened, patience=28).problems() != []


def test_definitions_are_looked_at_again_on_a_connection_that_is_kept(ledger, monkeypatch):
    ledger.spent("visits")
    changed(ledger.path, "ALTER TABLE entries DISABLE TRIGGER stay_update")
    monkeypatch.setattr("lastbit.ledger.postgres._CHECKED_AGAIN", 0.0)
    with pytest.raises(LedgerDamaged, match="changed"):
        ledger.spent("visits")


def test_a_newer_version_is_refused(ledger):
    changed(ledger.path, "UPDATE head SET version = 9")
    with pytest.raises(LedgerDamaged, match="newer version"):
        Ledger.existing(ledger.path, patience=29)


def test_a_head_that_is_not_the_last_entry_is_seen(ledger):
    with signed_in(ledger.path) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("UPDATE head SET hash = ''")
    assert "the head names another entry than the last one" in ledger.problems()


# ---------------------------------------------------------------- roles


def test_each_role_may_do_its_own(ledger):
    analyst, steward = person(ledger, "analyst"), person(ledger, "steward")
    auditor = person(ledger, "auditor")
    charged(analyst, "q9", price("1/8"))
    with pytest.raises(InvalidParameter, match=r"stays is not open; let a steward run .* --set"):
        analyst.account("stays", ONE)
    assert steward.account("stays", ONE).budget == ONE
    analyst.settle(reserved(analyst, "q10", price("1/16")), record("q10"))
    for nobody_decides in (analyst, auditor):
        with pytest.raises(InvalidParameter, match="does not give you the right"):
            nobody_decides.set_budget("visits", TWO)
    assert steward.set_budget("visits", TWO, who="ada").budget == TWO
    assert auditor.problems([ledger.head]) == [] and auditor.spent("visits") == price("15/16")
    for work in (lambda: auditor.note("hello"), lambda: auditor.secret):
        with pytest.raises(InvalidParameter, match="does not give you the right"):
            work()
    with pytest.raises(InvalidParameter, match="does not give you the right"):
        person(ledger, None)
    assert ledger.problems() == []


def test_an_administrator_need_not_be_a_superuser(address, database):
    with signed_in(place_of(database)) as connection:
        connection.execute("CREATE ROLE admin LOGIN CREATEROLE")
        connection.execute(f"GRANT CREATE ON DATABASE {connection.info.dbname} TO admin")
        connection.execute("CREATE ROLE stranger LOGIN")
    with pytest.raises(InvalidParameter, match="does not give you the right"):
        Ledger.init(address.replace("postgres@", "stranger@"))
    small_ledger(address.replace("postgres@", "admin@"))
    assert person(Ledger.existing(address), "auditor").problems() == []
    with signed_in(place_of(address)) as connection:
        owner = "SELECT rolcanlogin, rolsuper FROM pg_roles WHERE rolname = %s"
        name = f"{Address.read(address, 'schema').extra['schema']}_owner"
        assert connection.execute(owner, (name,)).fetchone() == (False, False)


STATEMENTS = [
    "UPDATE entries SET text = 'x'",
    "DELETE FROM entries",
    "TRUNCATE entries",
    "TRUNCATE entries, head, secret",
    "INSERT INTO entries VALUES (7, 'visits', 'q', '{}', 'h', NULL, NULL)",
    "UPDATE head SET last = 1",
    "DELETE FROM head",
    "SELECT * FROM head FOR UPDATE",
    "UPDATE secret SET value = ''",
    "LOCK TABLE entries IN EXCLUSIVE MODE",
    "ALTER TABLE entries DISABLE TRIGGER ALL",
    "DROP TABLE entries CASCADE",
    "DROP SCHEMA {schema} CASCADE",
    "CREATE TABLE {schema}.mine (one integer)",
    "CREATE OR REPLACE FUNCTION {schema}.locked() RETURNS bigint RETURN 1",
    "CREATE TRIGGER mine BEFORE INSERT ON entries EXECUTE FUNCTION stay()",
    "SET session_replication_role = replica",
    "SET ROLE {schema}_owner",
    "SET ROLE {schema}_steward",
    "GRANT {schema}_steward TO current_user",
    "SELECT entered(7, NULL, NULL, '{}', '', NULL, true)",
    "SELECT decide(7, NULL, NULL, '{}', '', NULL)",
    "SELECT append(7, NULL, NULL, '{}', '', NULL)",
    "COPY entries FROM PROGRAM 'true'",
]


def test_an_analyst_with_sql_at_hand_can_change_nothing(ledger):
    analyst = person(ledger, "analyst")
    assert isinstance(analyst.path, Address)
    before, schema = everything(ledger), analyst.path.extra["schema"]
    with signed_in(analyst.path) as connection:
        for statement in STATEMENTS:
            with pytest.raises(psycopg.Error):
                connection.execute(statement.replace("{schema}", schema))
    assert everything(ledger) == before and ledger.problems() == []
    with signed_in(ledger.path) as connection:  # nor does the owner by a slip
        for statement in STATEMENTS[:4]:
            with pytest.raises(psycopg.Error, match="entries are fixed"):
                connection.execute(statement)


def forged(ledger: Ledger, path, *, like=None, text=None, by="append", **fields) -> None:
    """Append by SQL what nobody of lastbit's would, with number, link and hash right."""
    last = ledger.entries(last=1)[0]
    made = replace(like or last, **{"sequence": last.sequence + 1, "previous": last.hash, **fields})
    words = made.text if text is None else text(made.text)
    answer = None if made.result is None else "{}"
    row = made.sequence, made.account, made.question, words
    with signed_in(path) as connection:
        connection.execute(
            f"SELECT {by}(%s::bigint, %s, %s, %s, %s, %s)",
            (*row, hashlib.sha256(words.encode()).hexdigest(), answer),
        )


EMPTY = hashlib.sha256(b"{}").hexdigest()
ZERO = price("0")
FORGERIES: list[dict[str, Any]] = [
    dict(sequence=9),
    dict(sequence=6),
    dict(previous="0" * 64),
    dict(kind="opened"),
    dict(kind="budget", cost=None, result=None, budget=TWO),
    dict(kind="budget", cost=None, result=None, spent=ZERO),
    dict(kind="voided", cost=None, result=None, reservation="{paid}"),
    dict(kind="settled", cost=None, reservation="{done}"),
    dict(kind="settled", cost=None, reservation="0" * 64),
    dict(kind="settled", cost=None, reservation="{paid}", question="another"),
    dict(kind="settled", cost=None, reservation="{paid}", question="open", result=None),
    dict(kind="settled", cost=None, reservation="{paid}", question="open", spent=ZERO),
    dict(kind="settled", cost=None, reservation="{paid}", question="open", budget=TWO),
    dict(kind="note", result=None),
    dict(kind="note", cost=None, result=None, spent=ZERO),
    dict(result="0" * 64),
    dict(kind="reserved"),
    dict(cost=None),
    dict(cost=ZERO, spent=price("7/8")),  # an answer for nothing
    dict(spent=price("3/4")),  # nothing is added
    dict(spent=price("99999/100000")),  # less than the sum
    dict(cost=price("1/2"), spent=price("5/4")),
    dict(cost=price("1/2"), spent=price("5/4"), budget=TWO),
    dict(account="other", cost=price("1/8"), spent=price("1/8")),
    dict(cost=price("1/8", "1e-9"), spent=price("1", "1e-9")),
]
REWORDED = [
    ('"cost":{"delta":"0","epsilon":"1/8"', '"cost":{"delta":"0","epsilon":"-5"'),
    ('"cost":{"delta":"0","epsilon":"1/8"', '"cost":{"delta":"0","epsilon":"nan"'),
    ('"cost":{"delta":"0","epsilon":"1/8"', '"cost":{"delta":"0","epsilon":"1/0"'),
    ('"cost":{"delta":"0","epsilon":"1/8"', '"cost":{"delta":"0","epsilon":null'),
    ('"spent":{"delta":"0","epsilon":"1"', '"spent":{"delta":"0","epsilon":"NaN"'),
    ('"spent":{"delta":"0","epsilon":"1"', '"spent":{"delta":"0","epsilon":"Infinity"'),
    ('"spent":{"delta":"0","epsilon":"1"', '"spent":{"delta":"0"'),
    ('"kind":"charge"', '"kind":"charge","kind":"note"'),
    ('"who":"ada"', '"who":"é"'),
    ('"who":"ada"', '"who":"\\ud800"'),
    ('"sequence":', '"sequence":-'),
    (".", ","),
    ("+00:00", "Z"),
    ("+00:00", "+00:60"),
    ("{", "["),
]
MALFORMED = [
    ('"who":"ada"', '"who": "ada"'),
    ('"who":"ada"', '"who":"\\u0061da"'),
    ('"who":"ada"', '"who":"\\/ada"'),
    ('"who":"ada"', '"who":"\\u00E9"'),
    ('"who":"ada"', '"who":"\\u000a"'),
    ('"who":"ada"', '"who":"\x7f"'),
    ('"who":"ada"', '"who":3'),
    ('"who":"ada"', '"who":{}'),
    ('"who":"ada"', '"who":"ada","wide":null'),
    ('"who":"ada",', ""),
    ('"who":"ada",', '"who":"ada","who":"ada",'),
    ('"secret":null', '"reservation":null,"secret":null'),
    ('"secret":null', '"principal":null,"secret":null'),
    ('"epsilon":"1/8","rho":"0"}', '"epsilon":"1/8","rho":"0"} '),
    ('"epsilon":"1/8"', '"epsilon":"2/16"'),
    ('"epsilon":"1/8"', '"epsilon":"01/8"'),
    ('"epsilon":"1/8"', '"epsilon":"1/08"'),
    ('"epsilon":"1","kind"', '"epsilon":"1/1","kind"'),
    ('"spent":{"delta":"0"', '"spent":{"delta":"0/5"'),
    ('"cost":{"delta":"0","epsilon":"1/8"', '"cost":{"epsilon":"1/8","delta":"0"'),
    ('"delta":"0","epsilon":"1/8"', '"delta":"0","delta":"0","epsilon":"1/8"'),
    ("lastbit ledger 1", "lastbit ledger 2"),
    ("lastbit ledger 1", "lastbit ledger 5"),
    ("lastbit ledger 1", "lastbit ledger 6"),
    ('"sequence":', '"sequence":0'),
]
"""Ways of writing an entry that follows the rules, and that lastbit would never read again."""
BUDGETS = [
    '{"delta":"0","epsilon":"1","kind":"none","rho":"0"}',
    '{"delta":"0","epsilon":"0","kind":"pure","rho":"0"}',
    '{"delta":"1/10","epsilon":"1","kind":"pure","rho":"0"}',
    '{"delta":"1","epsilon":"1","kind":"approx","rho":"0"}',
    '{"delta":"0","epsilon":"1","kind":"approx","rho":"0"}',
    '{"delta":"0","epsilon":"1","kind":"zcdp","rho":"1"}',
    '{"delta":"0","epsilon":"0","kind":"zcdp","rho":"0"}',
    '{"delta":"0","delta_kept":"0","epsilon":"1","kind":"pure","rho":"0"}',
    '{"delta":"1/10","epsilon":"1","kind":"filter","rho":"0"}',
    '{"delta":"1/10","delta_kept":"1/10","epsilon":"1","kind":"filter","order":"5","rho":"0"}',
    '{"delta":"1/10","delta_kept":"0","epsilon":"1","kind":"filter","order":"0","rho":"0"}',
    '{"delta":"1/10","delta_kept":"0","epsilon":"1","kind":"filter","order":"1/1000000000001",'
    '"rho":"0"}',
    '{"delta":"1/10","delta_kept":"0","epsilon":"1","kind":"gaussian","order":"5","rho":"0"}',
    '{"delta":"1/10","delta_kept":"0","epsilon":"1000000","kind":"gaussian","rho":"0"}',
]


def test_entries_that_break_a_rule_are_refused_by_the_server_itself(ledger):
    """An analyst who appends by SQL: no overspending, no budget, no second answer."""
    done = reserved(ledger, "done", price("1/16"))
    ledger.settle(done, record("done"))
    paid = reserved(ledger, "open", price("1/16"))
    assert ledger.spent("visits") == price("7/8")
    path = person(ledger, "analyst").path
    like = replace(
        charged(small_like(ledger), "never", price("1/8")), record=None, result=EMPTY, budget=ONE
    )
    before = everything(ledger)
    names = {"{paid}": paid.hash, "{done}": done.hash}
    for fields in FORGERIES:
        given = {name: names.get(value, value) if isinstance(value, str) else value
                 for name, value in fields.items()}  # fmt: skip
        with pytest.raises(psycopg.Error):
            forged(ledger, path, like=like, **given)
        assert everything(ledger) == before, fields
    for old, new in REWORDED:
        with pytest.raises(psycopg.Error):
            forged(ledger, path, like=like, text=lambda text, o=old, n=new: text.replace(o, n))
        assert everything(ledger) == before, new
    forged(ledger, path, like=like)  # and what follows the rules is taken: 1/8 more, and no more
    assert ledger.spent("visits") == price(1) and ledger.problems() == []


def test_a_text_that_lastbit_would_not_read_again_is_not_let_in(ledger):
    """Appended once it would stay for good, and no backup could be made any more."""
    path = person(ledger, "analyst").path
    charge = charged(small_like(ledger), "never", price("1/8"))
    like = replace(charge, record=None, result=EMPTY, spent=price("7/8"))
    opening = replace(
        like, kind="budget", account="new", question=None, cost=None, result=None, spent=ZERO
    )
    known = '{"delta":"0","epsilon":"1","kind":"pure","rho":"0"}'
    before = everything(ledger)
    for entry, old, new in [
        *((like, old, new) for old, new in MALFORMED),
        *((opening, known, budget) for budget in BUDGETS),
    ]:
        assert old in entry.text
        with pytest.raises(Malformed):
            Entry.read(entry.text.replace(old, new))
        with pytest.raises(psycopg.Error):
            forged(ledger, ledger.path, like=entry, by="decide",
                   text=lambda text, o=old, n=new: text.replace(o, n))  # fmt: skip
        assert everything(ledger) == before, new
    forged(ledger, path, like=like)
    with pytest.raises(psycopg.Error, match="a steward decides this"):
        forged(ledger, path, like=opening)
    forged(ledger, ledger.path, like=opening, by="decide")
    assert ledger.problems() == []


def test_the_server_lets_in_nothing_that_lastbit_does_not_read(ledger, extent):
    """Entries of every kind, spoiled at random: what is well-formed there is read here."""
    for name, given in (("fil", "filter"), ("gau", "gaussian")):
        ledger.account(name, Budget(kind=cast(Any, given), epsilon=3, delta=price("1e-6").epsilon))
        charged(ledger, "q", price("1/9"), account=name, gaussian_noise=True)
    ledger.account("free", None)
    ledger.settle(reserved(ledger, "\U0001f600\n\x7f", price("1/8")), record("q"))
    ledger.set_principal("ada", "steward", by="root")
    ledger.set_principal("ben", "analyst", by="ada")
    ledger.set_allowance("visits", "ben", Limit(epsilon=ONE.epsilon, period="week"), by="ada")
    reserved(ledger, "q7", price("1/16"), principal="ben")
    texts = [entry.text for entry in ledger.entries()]
    said = [value for text in texts for value in leaves(json.loads(text))]
    drawn, accepted, known = random.Random(5), 0, get_args(Kind)
    with signed_in(ledger.path) as connection:
        for _ in range(extent.generated(600, 30_000)):
            text = spoiled(drawn, drawn.choice(texts), said)
            try:
                found = connection.execute("SELECT well_formed(read(%s))", (text,)).fetchone()[0]
            except psycopg.Error:
                continue
            data = json.loads(text) if found else {}
            answered = data.get("result") is not None
            if data.get("kind") in known and not (data["kind"] == "principal" and answered):
                Entry.read(text)  # `entered` refuses the others
                accepted += 1
        assert accepted > 50
        for text in texts:
            assert connection.execute("SELECT well_formed(read(%s))", (text,)).fetchone() == (True,)


def leaves(value: Any) -> list[Any]:
    inside = value.values() if isinstance(value, dict) else ()
    return [value, *(leaf for one in inside for leaf in leaves(one))]


def spoiled(drawn: random.Random, text: str, values: list[Any]) -> str:
    """A letter changed, or some fields set to what others have, or to numbers off the form."""
    if drawn.random() < 0.25:
        place = drawn.randrange(len(text))
        letter = drawn.choice('"\\0123/{}[],: aAnu')
        return text[:place] + letter + text[place + drawn.randrange(2) :]
    data = json.loads(text)
    for _ in range(drawn.choice((1, 1, 2, 3))):
        inner = [one for one in data.values() if isinstance(one, dict) and one]
        target = drawn.choice([data, *inner])
        name = drawn.choice([*target, "moment", "order", "principal", "reservation"])
        target[name] = drawn.choice([*values, "2/4", "3/1", "01", "-1", 1, "0", "1000000", [], ""])
        if drawn.random() < 0.2:
            del target[name]
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def small_like(ledger: Ledger) -> Ledger:
    """A twin in another schema, to make an entry with that is never in this one."""
    twin = str(ledger.path) + "_twin"
    made = Ledger.init(twin)
    made.account("visits", ONE)
    charged(made, "first", price("7/8"))
    return made


def test_under_a_filter_only_a_steward_charges_and_verify_checks_the_moments(address):
    """Before, an analyst's charge could understate them, and later charges believed it."""
    kept = Budget(kind="filter", epsilon=ONE.epsilon, delta=price("1e-6").epsilon)
    ledger = Ledger.init(address)
    ledger.account("visits", kept)
    first = charged(ledger, "q1", price("1/8"))
    analyst = person(ledger, "analyst")
    with pytest.raises(InvalidParameter, match=r"by a filter.*ask through lastbit serve"):
        charged(analyst, "q2", price("1/8"))
    like = replace(first, record=None, result=EMPTY, question="q2")
    spent: Any = first.spent
    doubled = replace(like, spent=replace(spent, epsilon=price("1/4").epsilon))
    with pytest.raises(psycopg.Error, match="a filter's sums are not checked here"):
        forged(ledger, analyst.path, like=doubled)
    with pytest.raises(psycopg.Error):
        forged(ledger, ledger.path, like=like, by="decide")  # its sum is the old one
    with pytest.raises(psycopg.Error):  # moments never go down
        fewer = replace(spent, epsilon=price("1/4").epsilon, moment=ZERO.epsilon)
        forged(ledger, ledger.path, like=replace(like, spent=fewer), by="decide")
    forged(ledger, ledger.path, like=doubled, by="decide")  # not counted: seen by who verifies
    assert any("states the wrong total" in words for words in ledger.problems())


@pytest.mark.parametrize("stated", ["99999/100000", "15/16", "9/10", "7/8"])
def test_a_charge_states_the_sum_and_nothing_else(ledger, stated):
    """Before, more than the sum was let in, and from then on verify, copy and restore refused."""
    path = person(ledger, "analyst").path
    like = replace(
        charged(small_like(ledger), "never", price("1/8")), record=None, result=EMPTY, budget=ONE
    )
    if stated == "7/8":
        forged(ledger, path, like=like, spent=price(stated))
    else:
        with pytest.raises(psycopg.Error):
            forged(ledger, path, like=like, spent=price(stated))
    with pytest.raises(psycopg.Error):  # a price off the grid, whose sums would grow for ever
        off = price("1/101")
        forged(ledger, path, like=like, cost=off, spent=price("3/4") + off)
    assert ledger.problems() == []


# ---------------------------------------------------------------- the lock


@contextmanager
def meddling(monkeypatch, other):
    """Between the reading of the chain and the charge that follows, somebody else charges."""
    real, said = vars(ledger_module)["scanned"], []

    def read(books, **named):
        found = real(books, **named)
        monkeypatch.setattr(ledger_module, "scanned", real)
        try:
            said.append(charged(other, "meanwhile", price("1/8")).hash)
        except InvalidParameter as error:
            said.append(str(error))
        return found

    monkeypatch.setattr(ledger_module, "scanned", read)
    yield said
    monkeypatch.setattr(ledger_module, "scanned", real)


def test_nobody_charges_between_the_total_and_the_charge(ledger, monkeypatch):
    impatient = Ledger.existing(ledger.path, patience=0.3)
    with meddling(monkeypatch, impatient) as said:
        charged(ledger, "q9", price("1/4"))
    assert "is locked by another process" in said[0]
    assert ledger.spent("visits") == price(1) and ledger.problems() == []


@pytest.mark.parametrize("mutant", ["no lock", "the lock after the read"])
def test_mutants_without_the_lock_are_caught(ledger, monkeypatch, mutant):
    """The meddler gets through; only the server's own check keeps the stale charge out."""
    begun, append = room.PostgresBooks.begun, room.PostgresBooks.append

    def unlocked(self, how, first):
        return begun(self, how, "SELECT 1")

    def locking(self, entry, record):
        if mutant != "no lock":
            self.raw.execute(f"SELECT {self.schema}.locked()")
        return append(self, entry, record)

    monkeypatch.setattr(room.PostgresBooks, "begun", unlocked)
    monkeypatch.setattr(room.PostgresBooks, "append", locking)
    impatient = Ledger.existing(ledger.path, patience=0.3)
    refused = pytest.raises(InvalidParameter, match="does not follow from those before")
    with meddling(monkeypatch, impatient) as said, refused:
        charged(ledger, "q9", price("1/4"))
    assert len(said[0]) == 64  # it was charged in between
    assert ledger.spent("visits") == price("7/8") and ledger.problems() == []


def test_a_lock_that_is_held_is_waited_for_and_then_said_to_be_locked(ledger):
    impatient = Ledger.existing(ledger.path, patience=0.2)
    with signed_in(ledger.path) as connection, connection.transaction():
        connection.execute("SELECT locked()")
        assert impatient.spent("visits") == price("3/4")  # reading goes on
        with pytest.raises(InvalidParameter, match="is locked by another process; try again"):
            charged(impatient, "q9", price("1/8"))
    charged(impatient, "q9", price("1/8"))


def test_two_that_make_one_ledger_get_one(address):
    made, refused = [], []

    def make() -> None:
        try:
            made.append(Ledger.init(address))
        except InvalidParameter:
            refused.append(1)

    threads = [threading.Thread(target=make) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(refused)) == (1, 2)


# ---------------------------------------------------------------- connections


def test_a_connection_is_kept_and_a_child_has_its_own(ledger):
    ledger.spent("visits")
    with room.connected(ledger.path, ledger.connections, patience=ledger.patience) as books:
        first = books.raw.info.backend_pid
    with room.connected(ledger.path, ledger.connections, patience=ledger.patience) as books:
        assert books.raw.info.backend_pid == first
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with room.connected(ledger.path, ledger.connections, patience=ledger.patience) as books:
                other = books.raw.info.backend_pid != first
            charged(ledger, "q9", price("1/8"))
            status = 0 if other else 1
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    with room.connected(ledger.path, ledger.connections, patience=ledger.patience) as books:
        assert books.raw.info.backend_pid == first  # the child said no goodbye on it
    assert ledger.spent("visits") == price("7/8")


def test_a_connection_that_the_server_ended_is_made_again(ledger):
    ledger.spent("visits")
    with signed_in(ledger.path) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'lastbit' AND pid <> pg_backend_pid()"
        )
    charged(ledger, "q9", price("1/8"))
    assert ledger.problems() == []


def test_a_server_that_stops_is_said_to_have_stopped_and_nothing_is_charged():
    server = servers.started()
    try:
        ledger = small_ledger(server.database())
        server.stop()
        with pytest.raises(InvalidParameter, match="cannot be reached"):
            charged(ledger, "q9", price("1/8"))
        server.start()
        assert ledger.spent("visits") == price("3/4") and ledger.problems() == []
        with pytest.raises(BudgetExceeded):
            charged(ledger, "q9", price("1/2"))
    finally:
        server.remove()


def test_a_question_with_nul_is_refused_in_our_words(ledger):
    with pytest.raises(InvalidParameter, match="cannot hold such a text"):
        charged(ledger, "a\0b", price("1/8"))
    assert ledger.spent("visits") == price("3/4")


def test_a_long_transaction_of_ours_is_ended_by_the_server(ledger, monkeypatch):
    """So that a machine that hangs keeps nobody out for ever."""
    monkeypatch.setattr("lastbit.ledger.postgres._longest_idle", lambda _: 100)
    refused = pytest.raises(InvalidParameter, match="took longer than is waited for")
    with (
        refused,
        room.connected(ledger.path, ledger.connections, patience=3) as books,
        books.transaction(),
    ):
        time.sleep(0.5)
        next(books.rows("WHERE sequence = 1"))
    charged(ledger, "q9", price("1/8"))


def test_an_account_is_what_both_storages_say(ledger, tmp_path):
    ledger.backup(tmp_path / "copy")
    copy = Ledger.existing(tmp_path / "copy")
    assert copy.accounts() == ledger.accounts() == (
        Account(name="visits", budget=ONE, spent=price("3/4")),
    )  # fmt: skip


def test_a_program_that_ends_says_nothing_of_its_connections(ledger):
    script = textwrap.dedent(
        """
        import sys, threading
        from lastbit.ledger import Ledger
        ledger = Ledger.existing(sys.argv[1])
        thread = threading.Thread(target=ledger.accounts); thread.start(); thread.join()
        ledger.accounts()
        """
    )
    program = [sys.executable, "-W", "error", "-c", script, str(ledger.path)]
    finished = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")
