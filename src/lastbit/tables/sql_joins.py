"""Joins with public tables, on equal columns; a join with anything else is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from lastbit.tables.expression import Call, ColumnName, Expression, call, columns_in
from lastbit.tables.query import PublicJoin
from lastbit.tables.schema import PublicTable
from lastbit.tables.sql_expression import translated
from lastbit.tables.sql_rows import Rows
from lastbit.tables.sql_tree import kind_of, name_of, names, refused, taken
from lastbit.tables.types import card_types, type_of, typed

__all__ = ["joined", "joined_with", "table_named"]


def joined_with(rows: Rows, name: str, on: Mapping[str, str]) -> Rows:
    """The rows joined with a public table where these columns are equal: {own: the table's}.

    Columns of one name become one, as with USING.
    """
    table = _public_table(rows, name)
    pairs = [(rows.named(own), _column(table, theirs)) for own, theirs in on.items()]
    same = [column for (own, column) in zip(on, (c for _, c in pairs), strict=True)
            if own.lower() == column.name.lower()]  # fmt: skip
    return _with_join(rows, name, table, pairs, same)


def joined(rows: Rows, join: Any, defined: Mapping[str, Rows]) -> Rows:
    """The rows joined as a JOIN says; `defined` are the names that WITH took."""
    target, on, using, kind, side = taken(join, "this", "on", "using", "kind", "side")
    if side or str(kind or "INNER").upper() != "INNER" or not (on or using):
        raise refused("JOIN", "is no plain join on equal columns", "write JOIN t ON a = t.b")
    identifier, alias = table_named(target, "JOIN", "join with a public table of the card")
    if name_of(identifier).lower() in defined:
        raise refused("JOIN", "is with rows of units", "join with a public table of the card")
    table = _public_table(rows, name_of(identifier), identifier)
    called = name_of(identifier) if alias is None else name_of(taken(alias, "this")[0])
    if using:
        theirs = [_column(table, name_of(one)) for one in using]
        pairs = [(rows.named(name_of(one)), c) for one, c in zip(using, theirs, strict=True)]
        return _with_join(rows, called, table, pairs, theirs)
    inner = replace(rows, public={**rows.public, called: table})
    return _with_join(rows, called, table, _pairs(inner, table, on), [])


def table_named(source: Any, clause: str, remedy: str) -> tuple[Any, Any]:
    """The name and the alias of a plain table in FROM or JOIN."""
    if kind_of(source) != "Table" or kind_of(source.this) != "Identifier":
        raise refused(clause, "names no table", remedy)
    identifier, alias = taken(source, "this", "alias")
    return identifier, alias


def _public_table(rows: Rows, name: str, identifier: Any = None) -> PublicTable:
    for table in rows.card.public.values():
        same = table.name.lower() == name.lower()
        if names(identifier, table.name) if identifier is not None else same:
            break
    else:
        raise refused(
            f"JOIN {name}",
            "is no public table of the card",
            "declare it under [public], if everybody may see it",
        )
    if any(old.table == table.name for old in rows.joins):
        raise refused(f"JOIN {name}", "is joined twice", "join it once")
    return table


def _column(table: PublicTable, name: str) -> ColumnName:
    for column in table.columns:
        if column.lower() == name.lower():
            return ColumnName(column, table.name)
    known = ", ".join(table.columns)
    raise refused(name, f"is no column of {table.name}", f"use one of {known}")


def _with_join(
    rows: Rows,
    called: str,
    table: PublicTable,
    pairs: list[tuple[Expression, ColumnName]],
    merged: Iterable[ColumnName],
) -> Rows:
    taken_names = [rows.called, *rows.public]
    if called.lower() in (name.lower() for name in taken_names if name is not None):
        raise refused(f"JOIN {called}", "has the name of another table", "rename it with AS")
    if not pairs:
        raise refused(f"JOIN {table.name}", "has no equal columns", "name some")
    lookup = card_types(rows.card)
    for own, other in pairs:
        type_of(call("=", own, other), lookup)
    return replace(
        rows,
        public={**rows.public, called: table},
        merged=rows.merged | frozenset(merged),
        joins=(*rows.joins, PublicJoin(table=table.name, on=tuple(pairs))),
    )


def _pairs(rows: Rows, table: PublicTable, on: Any) -> list[tuple[Expression, ColumnName]]:
    test = translated(on, rows.resolve)
    both = isinstance(test, Call) and test.function == "and"
    found = []
    for part in test.arguments if both else (test,):  # type: ignore[union-attr]
        match part:
            case Call("=", (own, ColumnName(_, name) as other)) if name == table.name:
                pass
            case Call("=", (ColumnName(_, name) as other, own)) if name == table.name:
                pass
            case _:
                raise refused("JOIN ... ON", "is no equality of columns", "write ON a = t.b")
        sides = {column.table for column in columns_in(own)}
        if not sides or table.name in sides:
            raise refused("JOIN ... ON", "is no equality of columns", "write ON a = t.b")
        found.append((typed(own, card_types(rows.card)), other))
    return found
