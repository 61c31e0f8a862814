"""A ledger in PostgreSQL, made or brought to the layout of today: its owner does it, once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from lastbit.addresses import Address
from lastbit.ledger.definitions import LAYOUT, ROLES, SCHEMA, UPGRADES, filled
from lastbit.ledger.entry import Entry
from lastbit.ledger.postgres import (
    PostgresBooks,
    check_made,
    layout_of,
    names_of,
    schema_of,
    translated,
)
from lastbit.ledger.storage import ALONE, Books, row_of, unusable


@dataclass(slots=True)
class _NewBooks(PostgresBooks):
    """A ledger that is being made, by its owner: entries are written as they are."""

    def append(self, entry: Entry, record: str | None) -> None:
        insert = (
            f"INSERT INTO {self.schema}.entries (sequence, account, question, text, hash, record, "
            "reservation, principal) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
        )
        # a reservation is named in this column by what closes it, and by nothing else
        closed = None if entry.kind == "drawn" else entry.reservation
        self.raw.execute(insert, (*row_of(entry, record), closed, entry.principal))
        update = (
            f"UPDATE {self.schema}.head SET last = %s, hash = %s, version = greatest(version, %s)"
        )
        self.raw.execute(update, (entry.sequence, entry.hash, entry.version))


def made(place: Address, secret: bytes, fill: Callable[[Books], None], *, patience: float) -> bool:
    """Make roles, tables, functions and rights at once; False if the schema is there already."""
    names = names_of(place)
    books = _NewBooks(place, patience)
    with ALONE.lock, translated(place):
        try:
            books.connect()
            with books.begun("READ COMMITTED, READ WRITE", "SELECT 1"):
                there = "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = %s"
                if books.raw.execute(there, (schema_of(place),)).fetchone() != (0,):
                    return False
                _make_roles(place, books.raw, names)
                for statement in SCHEMA:
                    books.raw.execute(filled(statement, names))
                insert = f"INSERT INTO {names['s']}.head VALUES (1, {LAYOUT}, 1, 0, '')"
                books.raw.execute(insert)
                books.raw.execute(f"INSERT INTO {names['s']}.secret VALUES (1, %s)", (secret,))
                fill(books)
                check_made(place, books.raw)
                _commit_definitions(books, "made")
        except psycopg.errors.UniqueViolation:  # somebody makes the same at the same time
            return False
        finally:
            books.close()
    return True


def upgraded(place: Address, *, patience: float) -> bool:
    """Bring a ledger of an older layout to this one, all or nothing; False if it needs nothing.

    Nobody charges meanwhile, and no entry is touched. One that was changed is refused as ever.
    """
    names = names_of(place)
    books = PostgresBooks(place, patience)
    with ALONE.lock, translated(place):
        try:
            books.connect()
            with books.begun("READ COMMITTED, READ WRITE", "SELECT 1"):
                layout = layout_of(place, books.raw)
                if layout == LAYOUT:
                    return False
                books.raw.execute(f"SET LOCAL ROLE {names['owner']}")
                books.raw.execute(f"SELECT {names['s']}.locked()")
                for older in range(layout, LAYOUT):
                    for statement in UPGRADES[older]:
                        books.raw.execute(filled(statement, names))
                books.raw.execute(f"UPDATE {names['s']}.head SET layout = {LAYOUT}")
                check_made(place, books.raw)
                _commit_definitions(books, "upgraded")
        finally:
            books.close()
    return True


def _commit_definitions(books: PostgresBooks, done: str) -> None:
    try:
        books.raw.execute("COMMIT")
    except psycopg.OperationalError:
        problem = f"lost its connection at the commit: it may have been {done}, or not"
        remedy = "look, when the server runs, by lastbit ledger log"
        raise unusable(books.place, problem, remedy) from None


def _make_roles(place: Address, connection: Any, names: Mapping[str, str]) -> None:
    """An owner that nobody signs in as, and the roles that are granted to people."""
    for role in (*ROLES, "owner"):
        name = names[role].strip('"')
        found = "SELECT rolcanlogin, rolsuper FROM pg_catalog.pg_roles WHERE rolname = %s"
        known = connection.execute(found, (name,)).fetchone()
        if known is None:
            connection.execute(f"CREATE ROLE {names[role]} NOLOGIN")
        elif role == "owner" or True in known:
            raise unusable(
                place,
                f"needs a role {name}, which exists",
                "drop the role if no ledger uses it, or write another ?schema=",
            )
    found = "SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user"
    if connection.execute(found).fetchone() != (True,):
        connection.execute(f"GRANT {names['owner']} TO CURRENT_USER")
    connection.execute(f"CREATE SCHEMA {names['s']} AUTHORIZATION {names['owner']}")
    connection.execute(f"SET LOCAL ROLE {names['owner']}")
