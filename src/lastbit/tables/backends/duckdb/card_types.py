"""The type of a card that is nearest to one of DuckDB: for drafts, and to tell frames apart."""

from __future__ import annotations

from lastbit.tables.query.expression import ColumnType


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
