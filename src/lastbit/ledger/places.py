"""Which storage keeps the ledger at a place: SQLite a file, PostgreSQL an address."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from lastbit.addresses import Address, is_address
from lastbit.errors import InvalidParameter
from lastbit.ledger import sqlite
from lastbit.ledger.storage import Place, Storage


def place_of(path: str | os.PathLike[str] | Address) -> Place:
    """Where a ledger is or may be: a real path, links followed, or an address."""
    if isinstance(path, Address):
        return path
    if is_address(path):
        return Address.read(str(path), "schema", what="the address of the ledger")
    return sqlite.place_of(path)


def storage_of(place: Place) -> Storage:
    """What keeps ledgers at such places."""
    if isinstance(place, Path):
        return sqlite
    try:
        # found by name: it needs psycopg, which not everybody has
        postgres: Any = import_module("lastbit.ledger.postgres")
    except ImportError:
        raise InvalidParameter(
            "the ledger",
            problem="is in PostgreSQL, and psycopg is not installed",
            remedy='pip install "lastbit[postgres]"',
        ) from None
    storage: Storage = postgres
    return storage
