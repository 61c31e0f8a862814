"""A small ledger for tests, and hands that change its file behind its back."""

import importlib.util
import itertools
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

from lastbit.addresses import Address
from lastbit.ledger.entry import Entry
from lastbit.ledger.ledger import Ledger
from lastbit.tables.card.budget import Budget
from lastbit.tables.plan.cost import Cost

ONE = Budget(kind="pure", epsilon=Fraction(1))
_PEOPLE = itertools.count(1)
CANARY = "canary-48151623"


def price(epsilon: object, delta: object = 0) -> Cost:
    return Cost(epsilon=Fraction(str(epsilon)), delta=Fraction(str(delta)))


def charged(ledger: Ledger, question: str, cost: Cost, **others: Any) -> Entry:
    given = {"account": "visits", "who": "ada", "record": record(question), **others}
    account = given.pop("account")
    return ledger.charge(
        account, cost, question=question, plan_digest="p" * 64, fingerprint="f" * 64, **given
    )


def record(question: str) -> dict:
    """An answer, as far as the ledger cares; it holds a canary that no message may repeat."""
    asked = {"sql": f"SELECT {question}", "query": {"table": "visits"}}
    return {"asked": asked, "rows": [{"cells": [{"value": 1.5, "key": CANARY}]}]}


def new_ledger(place: Path | str) -> Ledger:
    """A ledger where there is none: a file, or a schema of its own in a database."""
    return Ledger.open(place) if isinstance(place, Path) else Ledger.init(place)


def small_ledger(place: Path | str) -> Ledger:
    """Six entries: opened, budget, charge, charge, note, charge; 3/4 of 1 is spent."""
    ledger = new_ledger(place / "a.ledger" if isinstance(place, Path) and place.is_dir() else place)
    ledger.account("visits", ONE)
    charged(ledger, "q1", price("1/4"))
    charged(ledger, "q2", price("1/4"))
    ledger.note("by hand", who="ben")
    charged(ledger, "q3", price("1/4"))
    return ledger


def clock_shows(monkeypatch, day: str) -> None:
    """From now on it is noon of this day, for whatever keeps the ledger."""
    moment = f"{day}T12:00:00.000+00:00"
    monkeypatch.setattr("lastbit.ledger.sqlite.SqliteBooks.now", lambda _: moment)
    if importlib.util.find_spec("psycopg"):

        def on_a_server(books: Any) -> str:
            """Its own clock too, by which it decides; that this was changed is overlooked."""
            body = f"SELECT '{moment}'::timestamptz"
            with signed_in(books.place, user="postgres") as connection:
                connection.execute(
                    f"CREATE OR REPLACE FUNCTION clock() RETURNS timestamptz LANGUAGE sql "
                    f"VOLATILE SET search_path = pg_catalog, pg_temp AS $clock${body}$clock$"
                )
            books.raw.execute("SELECT count(*) FROM pg_language")  # a new lock: it hears of it
            return moment

        monkeypatch.setattr("lastbit.ledger.postgres.check_made", lambda *_: None)
        monkeypatch.setattr("lastbit.ledger.postgres.PostgresBooks.now", on_a_server)


def everything(ledger: Ledger) -> Any:
    """All that is kept, as it is kept."""
    if isinstance(ledger.path, Path):
        return ledger.path.read_bytes()
    with signed_in(ledger.path) as connection:
        tables = ("SELECT * FROM entries ORDER BY sequence", "TABLE head", "TABLE secret")
        return [connection.execute(table).fetchall() for table in tables]


def signed_in(address: Any, **others: str) -> Any:
    """A connection of whom the address names, who needs not name the schema."""
    import psycopg  # of the engines

    connect: Any = psycopg.connect
    connection = connect(**{**address.given, **others}, autocommit=True)
    schema = address.extra.get("schema", "lastbit")
    connection.execute(f"SET search_path = {schema}, pg_catalog; SET client_encoding = UTF8")
    return connection


def person(ledger: Ledger, role: str | None) -> Ledger:
    """The ledger as somebody sees it who was granted this role, or none."""
    assert isinstance(ledger.path, Address)
    name = f"person_{next(_PEOPLE)}"
    with signed_in(ledger.path) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        if role is not None:
            connection.execute(f"GRANT {ledger.path.extra['schema']}_{role} TO {name}")
    return Ledger.existing(str(ledger.path).replace("postgres@", f"{name}@"))


def changed(place: Path | Address, *statements: str, values: tuple = ()) -> None:
    """Change a ledger as somebody would who has SQL at hand: triggers off, and on again."""
    if isinstance(place, Address):
        with signed_in(place) as connection:
            connection.execute("SET session_replication_role = replica")  # a superuser may
            for statement in statements:
                words = statement.replace("?", "%s")
                connection.execute(words, values if "?" in statement else ())
            # the head is mended too, but for the count, as SQLite keeps its own
            last = "SELECT hash FROM entries ORDER BY sequence DESC LIMIT 1"
            connection.execute(f"UPDATE head SET hash = coalesce(({last}), hash)")
        return
    with closing(sqlite3.connect(place)) as connection:
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement, values if "?" in statement else ())
        for _, sql in triggers:
            connection.execute(sql)
        connection.commit()
