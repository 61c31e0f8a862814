"""The type of a card that is nearest to one of DuckDB: for drafts, and to tell frames apart."""

from __future__ import annotations

from typing import cast

from lastbit.tables.backends.duckdb.sources import element_named
from lastbit.tables.query.expression import ColumnType, StoredType


def stored_type_named(kind: str) -> StoredType:
    """The type of a card that is nearest to one of DuckDB, which may be of lists of plain values.

    >>> stored_type_named("VARCHAR[]"), stored_type_named("INTEGER")
    ('text[]', 'integer')
    """
    element = element_named(kind)
    return type_named(kind) if element is None else cast(StoredType, f"{type_named(element)}[]")


def type_named(kind: str) -> ColumnType:
    """The type of a card that is nearest to one of DuckDB.

    >>> type_named("UBIGINT"), type_named("DECIMAL(9,2)"), type_named("TIMESTAMP WITH TIME ZONE")
    ('integer', 'number', 'timestamp')
    """
    if "[" in kind or "(" in kind.replace("DECIMAL(", ""):
        return "text"
    if kind.endswith(("INT", "INTEGER")):
        return "integer"
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        return "number"
    if kind.startswith("TIMESTAMP"):
        return "timestamp"
    plain: dict[str, ColumnType] = {"BOOLEAN": "boolean", "DATE": "date"}
    return plain.get(kind, "text")
