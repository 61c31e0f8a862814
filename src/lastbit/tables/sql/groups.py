"""A SELECT over the groups of another: SELECT k, n FROM (SELECT k, COUNT(*) AS n ...) WHERE n > 9.

Law      WHERE is a condition on the released columns, as HAVING is; ORDER BY and LIMIT choose among
         released rows; what is selected are keys, released columns, perhaps under new names,
         formulas over them, and what is made of keys alone. What nothing needs is not asked
Theorem  post-processing: the question is the inner one, and all that is added sees what everybody
         may see (`query/derived.py`, `query/view.py`, `release/formulas.py`). All keys are released
         and on the record, shown or not
Differs  a LIMIT inside comes last in a question: what would come after it is refused
Checked  tests/tables/test_sql_groups.py, tests/release/test_sql_formulas.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from lastbit.tables.limits import refused
from lastbit.tables.query.derived import Derived, columns_in, hidden_name
from lastbit.tables.query.expression import (
    Call,
    ColumnName,
    ColumnType,
    Expression,
)
from lastbit.tables.query.query import OrderBy, Query, all_of
from lastbit.tables.query.types import card_types, type_of, typed
from lastbit.tables.query.view import ShownKey, View
from lastbit.tables.sql.derived import Parts, has_aggregate
from lastbit.tables.sql.expressions import quoted, translated
from lastbit.tables.sql.grouping import count_of_keys, keys_with_rows
from lastbit.tables.sql.parse import integer_of, kind_of, name_of, names, place_of, taken
from lastbit.tables.sql.rows import SelectedRows

_LIMITED = "the sub-query has a LIMIT"


@dataclass(frozen=True, slots=True)
class Groups:
    """A question whose groups are the rows of another SELECT, and what it is called there."""

    query: Query
    rows: SelectedRows
    called: str | None = None
    view: View | None = None

    @property
    def released(self) -> tuple[tuple[str, ColumnType | None], ...]:
        """Its keys, by name and type."""
        if self.view is not None:
            return self.view.released
        types = card_types(self.rows.card)
        return tuple((key.name, type_of(key.expression, types)) for key in self.query.keys)

    @property
    def columns(self) -> dict[str, Expression]:
        """Its columns in order, each as a released one or as what is made of keys."""
        if self.view is None:
            named = [*(key.name for key in self.query.keys), *self.query.selected]
            return {name: ColumnName(name) for name in named}
        numbers = self.query.selected if self.view.numbers else ()
        return {
            **{one.name: one.expression for one in self.view.keys},
            **{name: ColumnName(name) for name in numbers},
        }

    @property
    def order(self) -> tuple[OrderBy, ...]:
        """What its rows are sorted by."""
        return self.query.order if self.view is None else self.view.order or self.query.order

    @property
    def limit(self) -> int | None:
        """How many rows it has at most."""
        own = None if self.view is None else self.view.limit
        return self.query.limit if own is None else own


def limit_of(limit: Any) -> int | None:
    """The number of rows that LIMIT lets through."""
    most = None if limit is None else integer_of(taken(limit, "expression")[0])
    if limit is not None and (most is None or most < 0):
        raise refused("LIMIT", "is not a whole number", "write, say, LIMIT 10")
    return most


def over_groups(
    select: Any, groups: Groups, named: Callable[[list[Any]], list[tuple[str, Any]]]
) -> Groups:
    """The question that a SELECT over these groups is; `named` gives its items their names."""
    if select.args.get("joins"):
        problem = "joins groups that are released"
        raise refused("JOIN", problem, "join the tables first, and group what comes of it")
    clauses = ("expressions", "where", "order", "limit")
    items, where, order, limit = taken(select, *clauses, ignored=("from_", "with_"))
    if groups.limit is not None and (where is not None or order is not None):
        clause = "WHERE" if where is not None else "ORDER BY"
        problem = f"comes after a LIMIT: {_LIMITED}"
        raise refused(clause, problem, "write LIMIT once, at the end, and HAVING before it")
    parts = _Outer(groups, named(list(_items(items, groups))))
    having = groups.query.having
    tests = [] if having is None else [parts.renamed(having)]
    if where is not None:
        tests.append(parts.condition(taken(where, "this")[0]))
    sorts = [] if order is None else taken(order, "expressions")[0]
    order_by = [parts.order(item) for item in sorts] or parts.earlier_order()
    limits = [most for most in (groups.limit, limit_of(limit)) if most is not None]
    return parts.groups_of(all_of(tests), tuple(order_by), min(limits, default=None))


def _items(items: list[Any], groups: Groups) -> Iterator[Any]:
    """The items of SELECT; a star is every column of the sub-query."""
    for item in items:
        star = kind_of(item) == "Column" and kind_of(item.this) == "Star"
        if not star and kind_of(item) != "Star":
            yield item
            continue
        what, table = taken(item, "this", "table") if star else (item, None)
        taken(what)
        if table is not None and not _is_called(groups, table):
            raise refused(f"{name_of(table)}.*", "is of no table here", "write SELECT *")
        for name in groups.columns:
            yield exp.column(name, quoted=True)


def _is_called(groups: Groups, table: Any) -> bool:
    return groups.called is not None and names(table, groups.called)


class _Outer(Parts):
    """The inner question under the names that the outer SELECT gives, and formulas over it."""

    def __init__(self, groups: Groups, items: list[tuple[str, Any]]) -> None:
        super().__init__(groups.rows, [name for name, _ in items])
        self.groups, self.inner, self.columns = groups, groups.query, groups.columns
        self.keys = {ColumnName(key.name) for key in self.inner.keys}
        self.outer = dict[str, str]()
        """The names that SELECT gives, by themselves in lower case."""
        self.final = dict[str, str]()
        """The names of all columns of the inner question, and what they are called in the end."""
        self.shown_keys: list[ShownKey] = []
        self.sorts: list[ShownKey] = []
        """What ORDER BY makes of keys, and SELECT does not."""
        for name, value in items:
            if name.lower() in self.outer:
                raise refused(name, "is the name of two columns", "name them with AS")
            self.outer[name.lower()] = name
            released = self._released_column(value)
            if released is not None and released not in self.final:
                self.final[released] = name
        keys = [key.name for key in self.inner.keys]
        every = [part.name for part in self.inner.aggregates]
        every += [one.name for one in self.inner.derived]
        for old in (*every, *keys):
            if old not in self.final:
                self.final[old] = hidden_name(old, None, self.used)
                self.used.add(self.final[old])
        self.aggregates = [
            replace(part, name=self.final[part.name]) for part in self.inner.aggregates
        ]
        self.derived = [
            Derived(name=self.final[one.name], expression=self.renamed(one.expression))
            for one in self.inner.derived
        ]
        of_keys = [name for name, value in items if self._is_of_keys(value)]
        plain = {name: self._released_column(value) for name, value in items}
        self.formulas = [n for n, _ in items if plain[n] is None and n not in of_keys]
        for name, value in items:
            column = plain[name]
            if name in of_keys:
                self.shown_keys.append(ShownKey(name=name, expression=self._of_keys(value)))
            elif column is None or self.final[column] != name:
                made = self._released(self.final[column]) if column else self.expression(value)
                self.derived.append(Derived(name=name, expression=made))
        self.selected = [name for name, _ in items if name not in of_keys]

    def groups_of(
        self, having: Expression | None, order: tuple[OrderBy, ...], most: int | None
    ) -> Groups:
        """The whole question, without what nothing needs, and what it shows."""
        needed = {*self.selected, *(one.name for one in order)}
        needed |= {column.name for column in columns_in(having)} if having is not None else set()
        derived = tuple(one for one in self.derived if one.name in needed)
        needed |= {column.name for one in derived for column in columns_in(one.expression)}
        aggregates = tuple(part for part in self.aggregates if part.name in needed)
        alone = not self.selected
        if alone:
            count = count_of_keys(self.rows.card, self.used)
            found, having = keys_with_rows(aggregates, self.inner.keys, having, count)
            aggregates = tuple(found)
        made = {one.name for one in self.shown_keys if one.expression not in self._final_keys()}
        made |= {one.name for one in self.sorts}
        by_made = any(one.name in made for one in order)
        plain = not derived and [part.name for part in aggregates] == self.selected
        every = [part.name for part in aggregates] + [one.name for one in derived]
        query = replace(
            self.inner,
            keys=self._ordered_keys(),
            aggregates=aggregates,
            derived=derived,
            shown=None if plain else tuple(every if alone else self.selected),
            having=having,
            order=() if by_made else order,
            limit=None if by_made else most,
        )
        whole = [ColumnName(key.name) for key in query.keys]
        all_shown = [one.expression for one in self.shown_keys] == whole
        view = None
        if not all_shown or alone or self.sorts:
            view = self._view(query, order if by_made else (), most if by_made else None, alone)
        return replace(self.groups, query=query, view=view)

    def _view(
        self, query: Query, order: tuple[OrderBy, ...], most: int | None, alone: bool
    ) -> View:
        types = {self.final[name]: kind for name, kind in self.groups.released}
        seen = {one.name for one in (*self.shown_keys, *self.sorts)} | set(self.selected)
        seen |= {key.name for key in query.keys}
        for one in order:
            if one.name not in seen:
                problem = "looks at what is not selected, beside a column made of keys"
                raise refused("ORDER BY", problem, "select it, and sort by its name")
        view = View(
            released=tuple((key.name, types[key.name]) for key in query.keys),
            keys=tuple(self.shown_keys),
            numbers=not alone,
            order=order,
            limit=most,
            sorts=tuple(self.sorts),
        )
        nothing = [(None,) * len(query.keys)]
        view.shown(nothing)  # what cannot be computed is refused before anything is paid
        view.sorted(nothing)
        return view

    def _final_keys(self) -> set[Expression]:
        return {ColumnName(self.final[key.name]) for key in self.inner.keys}

    def _ordered_keys(self) -> tuple[Any, ...]:
        """The keys under their names: those that are shown first, in the order of SELECT."""
        named = {
            self.final[key.name]: replace(key, name=self.final[key.name]) for key in self.inner.keys
        }
        first = [one.name for one in self.shown_keys if ColumnName(one.name) == one.expression]
        return tuple(named[name] for name in dict.fromkeys([*first, *named]))

    def renamed(self, expression: Expression) -> Expression:
        """An expression of the inner question, in the names of the outer one."""
        match expression:
            case ColumnName(name):
                return ColumnName(self.final[name])
            case Call(function, arguments):
                return Call(function, tuple(map(self.renamed, arguments)))
        return expression

    def condition(self, node: Any) -> Expression:
        """A condition on released columns."""
        test = typed(translated(node, self._in_condition), self._type)
        if type_of(test, self._type) not in ("boolean", None):
            raise refused("WHERE", "is neither true nor false", "write a comparison")
        return test

    def earlier_order(self) -> list[OrderBy]:
        """The order of the sub-query, where the outer SELECT gives none."""
        made = () if self.groups.view is None else self.groups.view.sorts
        by_name = {one.name: one.expression for one in made}
        found = []
        for old in self.groups.order:
            expression = by_name.get(old.name, self.columns.get(old.name, ColumnName(old.name)))
            found.append(replace(old, name=self._sorted_by(self.renamed(expression))))
        return found

    def order(self, item: Any) -> OrderBy:
        """One item of ORDER BY: a place, a name of SELECT or of the sub-query, or a formula."""
        node, descending, first = taken(item, "this", "desc", "nulls_first")
        if first:
            raise refused("NULLS FIRST", "is not known here: they come last", "leave it out")
        while kind_of(node) == "Paren":
            (node,) = taken(node, "this")
        place = place_of(node)
        if place is not None and not 1 <= place <= len(self.outer):
            raise refused("ORDER BY", "counts beyond the columns", "name the column")
        if place is not None:
            name = [*self.outer.values()][place - 1]
        elif kind_of(node) == "Column":
            name = self._sorted_name(node)
        elif self._is_of_keys(node):
            made = self._of_keys(node)
            if not any(True for _ in columns_in(made)):
                raise refused("ORDER BY", "is the same in every row", "leave it out")
            name = self._sorted_by(made)
        else:
            name = self._hidden(node)
        self._check_single(name)
        return OrderBy(name=name, descending=bool(descending))

    def type_of(self, column: ColumnName) -> ColumnType:
        """The type of a released column."""
        return self._type(column)

    def _type(self, column: ColumnName) -> ColumnType:
        for name, kind in self.groups.released:
            if self.final[name] == column.name:
                return kind or "text"
        return super().type_of(column)

    def _sorted_name(self, node: Any) -> str:
        what, table = taken(node, "this", "table")
        if table is None:
            for name in self.outer.values():
                if names(what, name):
                    return name
        return self._sorted_by(self.renamed(self._column(node)))

    def _sorted_by(self, made: Expression) -> str:
        """The column that is this, or that is made to sort by it."""
        if isinstance(made, ColumnName):
            return made.name
        for one in (*self.shown_keys, *self.sorts):
            if one.expression == made:
                return one.name
        name = hidden_name("sorted_by", None, self.used)
        self.used.add(name)
        self.sorts.append(ShownKey(name=name, expression=made))
        return name

    def _hidden(self, node: Any) -> str:
        """The column that is this formula, unseen if it is not selected."""
        expression = self.expression(node)
        for known in self.derived:
            if known.expression == expression:
                return known.name
        return self.named(expression).name

    def _released_column(self, value: Any) -> str | None:
        """The released column that an item plainly is; None if something is made of some."""
        if kind_of(value) != "Column":
            return None
        column = self._column(value)
        return column.name if isinstance(column, ColumnName) else None

    def _is_of_keys(self, node: Any) -> bool:
        """Whether nothing stands in it but keys, what is made of keys, and constants."""
        columns = [self._inner_column(one) for one in node.find_all(exp.Column)]
        if any(kind_of(part) in _OF_MANY or has_aggregate(part) for part in node.walk()):
            return False
        return all(
            one is not None and {*columns_in(self.columns[one])} <= self.keys for one in columns
        )

    def _of_keys(self, node: Any) -> Expression:
        """What is made of keys, in their names."""

        def resolve(part: Any) -> Expression:
            if kind_of(part) != "Column":
                return self.rows.resolve(part)  # which says why it is refused
            return self.renamed(self._column(part))

        return typed(translated(node, resolve), self._type)

    def _column(self, node: Any) -> Expression:
        """What a column of the sub-query is, by its name, in the names of the sub-query."""
        column = self._inner_column(node)
        if column is None:
            known = ", ".join(map(quoted, self.columns))
            problem = "is not a column of the sub-query"
            raise refused(name_of(node.this), problem, f"select it there too; there are {known}")
        return self.columns[column]

    def _inner_column(self, node: Any) -> str | None:
        what, table = taken(node, "this", "table")
        if table is not None and not _is_called(self.groups, table):
            return None
        return next((name for name in self.columns if names(what, name)), None)

    def _in_condition(self, node: Any) -> Expression:
        if kind_of(node) == "Column":
            made = self.renamed(self._column(node))
            if isinstance(made, ColumnName):
                self._check_single(made.name)
            return made
        return ColumnName(self._hidden(node))

    def _resolve(self, node: Any) -> Expression:
        if kind_of(node) == "Log":
            return self._logarithm(node)
        if kind_of(node) != "Column":
            return self.rows.resolve(node)  # which says why it is refused
        if self._inner_column(node) is None and node.args.get("table") is None:
            for name in self.formulas:
                if names(node.this, name):
                    return self._released(name)
        column = self._column(node)
        if not isinstance(column, ColumnName) or column in self.keys:
            raise refused(
                name_of(node.this), "is a key, and stands in a formula", "select it by itself"
            )
        self._check_single(self.final[column.name])
        return self._released(self.final[column.name])

    def _check_single(self, name: str) -> None:
        for part in self.aggregates:
            if part.name == name and part.function == "histogram":
                raise refused(name, "is many columns", "sort and choose by another column")


_OF_MANY = ("Window", "Log")
