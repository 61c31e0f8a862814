"""What people are shown of sources before they ask: names and types of columns, public values.

No question that is answered passes through here: it is for drafting cards and for keys that a
public table lists. Every engine's folder has a `columns.py` with the same functions. A look at
values is for the steward alone, who asks for it by name; only files and DuckDB's tables have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from lastbit.errors import InvalidParameter, LastbitError
from lastbit.tables.backends.engines import session_on
from lastbit.tables.card.proposal import TableLook, UnitLook
from lastbit.tables.card.schema import DataCard, Source
from lastbit.tables.limits import LONGEST_CONSTANT
from lastbit.tables.query.expression import StoredType, Value


def _module_of(source: Source) -> Any:
    return import_module(f"lastbit.tables.backends.{source.engine}.columns")


def columns_of(source: Source) -> dict[str, StoredType]:
    """The names and types of the source's columns; no value is looked at."""
    with session_on(source) as session:
        columns: dict[str, StoredType] = _module_of(source).columns_of(session, source)
        return columns


def table_look(source: Source) -> TableLook:
    """What stands in the columns of a source, for a steward who asked for a look at the values."""
    with session_on(source) as session:
        look: TableLook = _look_module(source).table_look(session, source)
        return look


def unit_look(source: Source, column: str) -> UnitLook:
    """How many rows the units of this column have, for the same."""
    with session_on(source) as session:
        look: UnitLook = _look_module(source).unit_look(session, source, column)
        return look


def _look_module(source: Source) -> Any:
    if source.engine == "duckdb":
        return import_module("lastbit.tables.backends.duckdb.look")
    problem = "is for files and DuckDB tables; a server's schema states its types"
    remedy = "leave it out"
    raise InvalidParameter("look", problem=problem, remedy=remedy)


def public_values(
    card: DataCard, table: str, column: str, *, most: int
) -> tuple[Value, ...] | None:
    """The different values of a public table's column, in order.

    None if there are more than `most`, or some that no query can name, or the table cannot be read:
    then it is refused where the question is rehearsed.

    Theorem  they are a function of a public table, which is another file than the protected one
             (`check_apart`): a query that names them as its keys has not looked at the data
    """
    try:
        rows = public_rows(card, table, [column], most=most + 2)
    except LastbitError:
        return None
    values = tuple(row[0] for row in rows if row[0] is not None)
    return values if 0 < len(values) <= most else None


def public_rows(
    card: DataCard, table: str, columns: Sequence[str], *, most: int
) -> list[tuple[Value, ...]]:
    """The first different rows of these columns of a public table, in order; None is missing.

    Each has last how often it is there.
    """
    kinds = {name.lower(): (name, kind) for name, kind in card.public[table].columns.items()}
    named = dict(kinds[column.lower()] for column in columns)
    with session_on(card.source) as session:
        found = _module_of(card.source).public_rows
        rows: list[tuple[Value, ...]] = found(session, card, table, named, most)
    if not _nameable([value for row in rows for value in row]):
        problem = "has a text that no question can name: it is long, or has a NUL in it"
        raise InvalidParameter(f"public table {table[:60]}", problem=problem, remedy="shorten it")
    return rows


def _nameable(values: Sequence[object]) -> bool:
    r"""Whether a question can name each of them.

    >>> _nameable(("north", "south")), _nameable(("a\0b",)), _nameable(())
    (True, False, True)
    """
    texts = [value for value in values if isinstance(value, str)]
    long = any(len(text.encode(errors="surrogatepass")) > LONGEST_CONSTANT for text in texts)
    return not long and not any("\0" in text for text in texts)
