"""The rows that a question looks at: what their columns mean, and what was asked on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from lastbit.tables.expression import ColumnName, Expression
from lastbit.tables.query import PublicJoin
from lastbit.tables.schema import DataCard, PublicTable
from lastbit.tables.sql_aggregates import is_aggregate
from lastbit.tables.sql_names import KNOWN_FUNCTIONS, quoted
from lastbit.tables.sql_tree import kind_of, name_of, names, refused, taken
from lastbit.tables.types import card_types, typed

__all__ = ["Rows", "add_column", "derived", "rows_of", "with_column"]


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that a FROM gives: their columns, and the conditions and joins on the way.

    `called` is what the table is called here; `public` are the joined tables by what they are
    called; `merged` are their columns that USING made one with ours.
    """

    card: DataCard
    called: str | None
    columns: Mapping[str, Expression]
    public: Mapping[str, PublicTable]
    merged: frozenset[ColumnName] = frozenset()
    where: tuple[Expression, ...] = ()
    joins: tuple[PublicJoin, ...] = ()

    def resolve(self, node: Any) -> Expression:
        """What a column node stands for."""
        if kind_of(node) != "Column":
            if is_aggregate(node):
                raise refused(
                    kind_of(node).upper(),
                    "stands inside an expression over one row",
                    "select it by itself (AVG instead of SUM / COUNT); test it in HAVING",
                )
            raise refused(kind_of(node).upper(), "is not known here", f"use {KNOWN_FUNCTIONS}")
        what, table = taken(node, "this", "table")
        if kind_of(what) == "Star":
            raise refused("SELECT *", "would show rows", "ask for COUNT(*), AVG(column) ...")
        found = list(self.meant(what, table))
        if len(found) == 1:
            return found[0]
        raise self._unknown(name_of(what), many=bool(found))

    def named(self, name: str) -> Expression:
        """The column of this name, in any case."""
        found = [e for column, e in self.columns.items() if column.lower() == name.lower()]
        found += [c for c in self._public() if c.name.lower() == name.lower()]
        if len(found) == 1:
            return found[0]
        raise self._unknown(name, many=bool(found))

    def outputs(self) -> dict[str, Expression]:
        """What SELECT * means: every column once."""
        found = dict(self.columns)
        for column in self._public():
            add_column(found, column.name, column)
        return found

    def meant(self, what: Any, table: Any) -> Iterable[Expression]:
        """Every column that a name, with or without its table, can mean."""
        if table is None or (self.called is not None and names(table, self.called)):
            yield from (e for column, e in self.columns.items() if names(what, column))
        if table is None:
            yield from (c for c in self._public() if names(what, c.name))
            return
        for called, public in self.public.items():
            if names(table, called):
                yield from (ColumnName(c, public.name) for c in public.columns if names(what, c))

    def _public(self) -> Iterable[ColumnName]:
        for public in self.public.values():
            for column in public.columns:
                if ColumnName(column, public.name) not in self.merged:
                    yield ColumnName(column, public.name)

    def _unknown(self, name: str, *, many: bool) -> Exception:
        if many:
            return refused(name, "is in two tables", "write table.column")
        known = [*self.columns, *(column.name for column in self._public())]
        lowered = {column.lower(): column for column in known}
        near = get_close_matches(name.lower(), lowered, n=1)
        meant = f"did you mean {quoted(lowered[near[0]])}? There are" if near else "there are"
        listed = ", ".join(map(quoted, known))
        return refused(
            name, "is no column that is known here", f"{meant} {listed}; a text stands in '...'"
        )


def rows_of(card: DataCard) -> Rows:
    """The card's table as it is."""
    columns = {column.name: ColumnName(column.name) for column in card.columns.values()}
    return Rows(card, card.name, columns, {})


def with_column(rows: Rows, name: str, expression: Expression) -> Rows:
    """The rows with one more column, or with another meaning of an old one."""
    others = {old: e for old, e in rows.columns.items() if old.lower() != name.lower()}
    return replace(rows, columns={**others, name: derived(expression, rows)})


def add_column(columns: dict[str, Expression], name: str, expression: Expression) -> None:
    """Put another column beside these; two of one name have no meaning in a sub-query."""
    if name.lower() in (old.lower() for old in columns):
        raise refused(
            name,
            "names two columns of a sub-query",
            "list the columns, each under a name of its own",
        )
    columns[name] = expression


def derived(expression: Expression, rows: Rows) -> Expression:
    """A derived column: typed. It is written out wherever it is named, and counted there."""
    return typed(expression, card_types(rows.card))
