"""New ledgers, and older ones brought to the tables of today: what a steward does once.

**Made at once.** A new ledger is written under another name and then linked to its own, which fails
if that is taken. So a ledger that exists is whole, and an empty file is never taken for a new one.

In a database the tables, roles and functions are made in one transaction (`making_postgres.py`).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from lastbit.ledger.chain import Scan
from lastbit.ledger.entry import Entry
from lastbit.ledger.places import storage_of
from lastbit.ledger.sqlite import (
    APPLICATION,
    MAKING,
    SCHEMA,
    SqliteBooks,
    connected,
    raw,
    translated,
)
from lastbit.ledger.storage import ALONE, SECRET_BYTES, Books, Connections, Place, unusable
from lastbit.sampling import secure_bits

VERSION = 2
"""The tables of all versions are the same, and a file becomes 3 to 7 with the first entry
that needs it; a new one begins as 2."""


def make_ledger(place: Place, *, patience: float) -> bool:
    """Make a new ledger; False if there is something already."""
    secret = secure_bits().fill(SECRET_BYTES).tobytes()
    opening = Entry(kind="opened", secret=hashlib.sha256(secret).hexdigest())

    def fill(books: Books) -> None:
        Scan(place).append(books, opening)

    return write_ledger(place, secret, fill, patience=patience)


def write_ledger(
    place: Place, secret: bytes, fill: Callable[[Books], None], *, patience: float
) -> bool:
    """Make a ledger whole or not at all; False if there is something already."""
    if isinstance(place, Path):
        return _made_file(place, secret, fill, patience=patience)
    return bool(_postgres(place).made(place, secret, fill, patience=patience))


def upgrade_ledger(place: Place, *, patience: float) -> bool:
    """Bring a ledger to the tables of this lastbit; False if it has them, as every file does."""
    if isinstance(place, Path):
        with connected(place, Connections(), patience=patience):
            return False
    return bool(_postgres(place).upgraded(place, patience=patience))


def _postgres(place: Place) -> Any:
    storage_of(place)  # refuses a computer without psycopg
    return import_module("lastbit.ledger.making_postgres")


def _made_file(
    place: Path, secret: bytes, fill: Callable[[Books], None], *, patience: float
) -> bool:
    """Make the file whole and then give it its name; False if that is taken, or was meanwhile."""
    if os.path.lexists(place):
        return False
    try:
        handle, name = tempfile.mkstemp(dir=place.parent, prefix=MAKING, suffix=".new")
        os.close(handle)  # readable by its owner alone, as everything linked to it is
    except (OSError, ValueError) as error:
        raise unusable(
            place,
            f"cannot be made ({getattr(error, 'strerror', None) or 'not a valid path'})",
            "name a file in a folder you may write to",
        ) from None
    try:
        with ALONE.lock, translated(place), closing(raw(Path(name), patience=patience)) as new:
            books = SqliteBooks(place, new)
            with books.transaction():
                new.execute(f"PRAGMA application_id = {APPLICATION}")
                new.execute(f"PRAGMA user_version = {VERSION}")
                for statement in SCHEMA:
                    new.execute(statement)
                new.execute("INSERT INTO secret VALUES (1, ?)", (secret,))
                fill(books)
        try:
            os.link(name, place)
        except FileExistsError:
            return False
        except OSError as error:
            problem = f"cannot be made ({error.strerror})"
            raise unusable(place, problem, "put it on a local disk") from None
    finally:
        with suppress(OSError):
            os.unlink(name)
    try:
        handle = os.open(place.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        problem = f"could not be synced ({error.strerror})"
        raise unusable(place, problem, "put it on a local disk") from None
    return True
