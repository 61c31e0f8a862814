"""Which columns of a source are read as each type of a card, on engines other than DuckDB."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lastbit.tables.compile.dialect import Family
from lastbit.tables.query.expression import ColumnType

READ_FROM: Mapping[ColumnType, tuple[Family, ...]] = MappingProxyType(
    {
        "integer": ("integer", "decimal", "number", "boolean"),
        "number": ("number", "integer", "decimal", "boolean"),
        "text": ("text", "enum", "integer", "boolean"),
        "boolean": ("boolean", "integer"),
        "date": ("date", "timestamp", "timestamptz"),
        "timestamp": ("timestamp", "timestamptz", "date"),
    }
)
"""By the type of the card. DuckDB's casts read others too, in ways of their own: text as numbers,
days and truth values; numbers and times as text."""
