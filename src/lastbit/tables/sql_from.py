"""FROM, WITH and WHERE: the rows of a SELECT, row by row sub-queries written out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lastbit.tables.expression import Expression
from lastbit.tables.schema import DataCard
from lastbit.tables.sql_aggregates import condition, is_aggregate
from lastbit.tables.sql_expression import translated
from lastbit.tables.sql_joins import joined, table_named
from lastbit.tables.sql_rows import Rows, add_column, derived, rows_of
from lastbit.tables.sql_tree import kind_of, name_of, names, refused, taken

__all__ = ["item_of", "rows_from"]


def rows_from(select: Any, card: DataCard, defined: Mapping[str, Rows]) -> Rows:
    """The rows that this SELECT looks at; `defined` are those of WITH, by name."""
    arguments = select.args
    if arguments.get("with_") is not None:
        defined = _definitions(arguments["with_"], card, defined)
    if arguments.get("from_") is None:
        raise refused("query", "has no FROM", f"write FROM {card.name}")
    (source,) = taken(arguments["from_"], "this")
    rows = _relation(source, card, defined)
    for join in arguments.get("joins") or []:
        rows = joined(rows, join, defined)
    if arguments.get("where") is not None:
        (test,) = taken(arguments["where"], "this")
        only = condition(translated(test, rows.resolve), card, "WHERE")
        rows = replace(rows, where=(*rows.where, only))
    return rows


def item_of(item: Any) -> tuple[str | None, Any]:
    """An item of SELECT: its name, if it has one, and what it is."""
    if kind_of(item) == "Alias":
        value, alias = taken(item, "this", "alias")
        return name_of(alias), value
    if kind_of(item) == "Column" and kind_of(item.this) == "Identifier":
        return name_of(item.this), item
    return None, item


# ---------------------------------------------------------------- FROM and WITH


def _definitions(tree: Any, card: DataCard, defined: Mapping[str, Rows]) -> dict[str, Rows]:
    """The sub-queries of WITH, each seeing those before it; used or not, each is looked at."""
    (expressions,) = taken(tree, "expressions")
    found = dict(defined)
    own: set[str] = set()
    for definition in expressions:
        inner, alias = taken(definition, "this", "alias", ignored=("materialized",))
        (identifier,) = taken(alias, "this")
        name = name_of(identifier).lower()
        if name in own:
            raise refused(f"WITH {name}", "is defined twice", "give each its own name")
        own.add(name)
        found[name] = replace(_selected(inner, card, found), called=name_of(identifier))
    return found


def _relation(source: Any, card: DataCard, defined: Mapping[str, Rows]) -> Rows:
    if kind_of(source) == "Subquery":
        inner, alias = taken(source, "this", "alias")
        return _renamed(_selected(inner, card, defined), alias)
    identifier, alias = table_named(source, "FROM", f"write FROM {card.name}")
    if name_of(identifier).lower() in defined:
        return _renamed(defined[name_of(identifier).lower()], alias)
    if not names(identifier, card.name):
        raise refused(
            f"FROM {name_of(identifier)}", "is not this card's table", f"write FROM {card.name}"
        )
    return _renamed(rows_of(card), alias)


def _renamed(rows: Rows, alias: Any) -> Rows:
    if alias is None:
        return rows
    (identifier,) = taken(alias, "this")
    return replace(rows, called=name_of(identifier))


def _selected(select: Any, card: DataCard, defined: Mapping[str, Rows]) -> Rows:
    """A sub-query that works row by row: its columns written out."""
    while kind_of(select) == "Subquery":
        (select,) = taken(select, "this")
    if kind_of(select) != "Select":
        raise refused("a sub-query", "is no SELECT", "write SELECT ... FROM ...")
    if select.args.get("group") is not None:
        raise refused("a sub-query with GROUP BY", "would mix rows of many units", "ask it alone")
    items, *_ = taken(select, "expressions", "from_", "joins", "where", "with_")
    rows = rows_from(select, card, defined)
    columns: dict[str, Expression] = {}
    for item in items:
        if kind_of(item) == "Star":
            taken(item)
            for name, expression in rows.outputs().items():
                add_column(columns, name, expression)
            continue
        if any(is_aggregate(node) for node in item.walk()):
            raise refused(
                "a sub-query with aggregates", "would mix rows of many units", "ask it by itself"
            )
        given, value = item_of(item)
        if given is None:
            raise refused("a column of a sub-query", "has no name", "name it with AS")
        add_column(columns, given, derived(translated(value, rows.resolve), rows))
    return replace(rows, called=None, columns=columns, public={}, merged=frozenset())
