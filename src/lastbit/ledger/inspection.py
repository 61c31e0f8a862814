"""What stewards and auditors ask of the place that keeps a ledger, besides its entries.

A charge asks none of it. In a database the server answers (`postgres.py`), of a file it is here.
"""

from __future__ import annotations

import getpass
import hashlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol, cast

from lastbit.ledger.sqlite import SqliteBooks
from lastbit.ledger.storage import SECRET_BYTES, Books

try:
    import pwd
except ImportError:  # a system without one
    pwd = None  # type: ignore[assignment]


class Inspected(Protocol):
    """A ledger that is open, for those who look at it as a whole."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Reads inside see one state, whoever writes meanwhile."""

    def user(self) -> str:
        """Whom this ledger takes us for."""

    def last(self) -> int | None:
        """The last number that was ever given out."""

    def secret_digest(self) -> str | None:
        """The SHA-256 of its secret, for those too who may not read it."""

    def problems(self) -> Iterator[str]:
        """What the database itself finds wrong, in words."""


def inspected(books: Books) -> Inspected:
    """The same ledger, to be looked at."""
    return _File(books) if isinstance(books, SqliteBooks) else cast(Inspected, books)


@dataclass(frozen=True, slots=True)
class _File:
    books: SqliteBooks

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """A reader waits for writers and then keeps them out."""
        raw = self.books.raw
        raw.execute("BEGIN")
        try:
            raw.execute("SELECT max(sequence) FROM entries").fetchall()
            yield
        finally:
            if raw.in_transaction:
                raw.execute("ROLLBACK")

    def user(self) -> str:
        return user_name()

    def last(self) -> int | None:
        number = self.books.raw.execute("SELECT seq FROM sqlite_sequence").fetchone()
        return None if number is None else int(number[0])

    def secret_digest(self) -> str | None:
        secret = self.books.secret()
        if not isinstance(secret, bytes) or len(secret) != SECRET_BYTES:
            return None
        return hashlib.sha256(secret).hexdigest()

    def problems(self) -> Iterator[str]:
        if self.books.raw.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            yield "SQLite finds the file itself damaged"


def user_name() -> str:
    """Whom the operating system runs this for; the environment could say anything."""
    if pwd is None:
        return getpass.getuser()
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user without a name, as in some containers
        return f"uid {os.getuid()}"
