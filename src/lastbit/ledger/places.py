"""Which storage keeps the ledger at a place: SQLite a file, PostgreSQL an address."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lastbit.ledger import sqlite
from lastbit.ledger.entry import for_people
from lastbit.ledger.storage import Place, Storage
from lastbit.place_names import is_address

if TYPE_CHECKING:
    from lastbit.addresses import Address


def place_of(path: str | os.PathLike[str] | Address) -> Place:
    """Where a ledger is or may be: a real path, links followed, or an address."""
    if isinstance(path, str | os.PathLike) and not is_address(path):
        return sqlite.place_of(path)
    # found by name: a ledger in a file needs none
    kind: Any = import_module("lastbit.addresses").Address
    if is_address(path):
        return cast(Place, kind.read(str(path), "schema", what="the address of the ledger"))
    return cast(Place, path if isinstance(path, kind) else sqlite.place_of(cast(Any, path)))


def storage_of(place: Place) -> Storage:
    """What keeps ledgers at such places."""
    if isinstance(place, Path):
        return sqlite
    try:
        # found by name: it needs psycopg, which not everybody has
        postgres: Any = import_module("lastbit.ledger.postgres")
    except ImportError:
        raise for_people().without_psycopg() from None
    storage: Storage = postgres
    return storage
