"""A SELECT over the groups of another: SELECT k, n FROM (SELECT k, COUNT(*) AS n ...) WHERE n > 9.

Law      WHERE is a condition on the released columns, as HAVING is; ORDER BY and LIMIT choose among
         released rows; what is selected are keys, released columns, perhaps under new names, and
         formulas over them. What nothing needs is not asked
Theorem  post-processing: the question is the inner one, and all that is added sees what everybody
         may see (`query/derived.py`, `release/formulas.py`)
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
from lastbit.tables.query.expression import Call, ColumnName, ColumnType, Expression
from lastbit.tables.query.query import OrderBy, Query, all_of
from lastbit.tables.query.types import card_types, type_of, typed
from lastbit.tables.sql.derived import Parts
from lastbit.tables.sql.expressions import quoted, translated
from lastbit.tables.sql.parse import integer_of, kind_of, name_of, names, place_of, taken
from lastbit.tables.sql.rows import SelectedRows

_LIMITED = "the sub-query has a LIMIT"


@dataclass(frozen=True, slots=True)
class Groups:
    """A question whose groups are the rows of another SELECT, and what it is called there."""

    query: Query
    rows: SelectedRows
    called: str | None = None


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
    query = groups.query
    if query.limit is not None and (where is not None or order is not None):
        clause = "WHERE" if where is not None else "ORDER BY"
        problem = f"comes after a LIMIT: {_LIMITED}"
        raise refused(clause, problem, "write LIMIT once, at the end, and HAVING before it")
    parts = _Outer(groups, named(list(_items(items, groups))))
    tests = [] if query.having is None else [parts.renamed(query.having)]
    if where is not None:
        tests.append(parts.condition(taken(where, "this")[0]))
    sorts = [] if order is None else taken(order, "expressions")[0]
    order_by = [parts.order(item) for item in sorts] or [
        replace(old, name=parts.final[old.name]) for old in query.order
    ]
    limits = [most for most in (query.limit, limit_of(limit)) if most is not None]
    return replace(
        groups, query=parts.query(all_of(tests), tuple(order_by), min(limits, default=None))
    )


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
        for name in _outputs(groups.query):
            yield exp.column(name, quoted=True)


def _is_called(groups: Groups, table: Any) -> bool:
    return groups.called is not None and names(table, groups.called)


def _outputs(query: Query) -> list[str]:
    """The columns of the answer: keys, then what is shown."""
    return [*(key.name for key in query.keys), *query.selected]


class _Outer(Parts):
    """The inner question under the names that the outer SELECT gives, and formulas over it."""

    def __init__(self, groups: Groups, items: list[tuple[str, Any]]) -> None:
        super().__init__(groups.rows, [name for name, _ in items])
        self.groups, self.inner = groups, groups.query
        self.outer = dict[str, str]()
        """The names that SELECT gives, by themselves in lower case."""
        self.final = dict[str, str]()
        """The names of all columns of the inner question, and what they are called in the end."""
        plain = [(name, self._output(value)) for name, value in items]
        for name, column in plain:
            if name.lower() in self.outer:
                raise refused(name, "is the name of two columns", "name them with AS")
            self.outer[name.lower()] = name
            if column is not None and column not in self.final:
                self.final[column] = name
        self._check_keys([column for _, column in plain if column is not None])
        every = [part.name for part in self.inner.aggregates]
        every += [one.name for one in self.inner.derived]
        for old in every:
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
        self.formulas = [name for name, column in plain if column is None]
        for (name, value), (_, column) in zip(items, plain, strict=True):
            if column is None or self.final[column] != name:
                made = self._named_expression(column) if column else self.expression(value)
                self.derived.append(Derived(name=name, expression=made))
        keys = {key.name for key in self.inner.keys}
        self.selected = [name for name, column in plain if column not in keys]
        self.keys = tuple(
            replace(key, name=self.final[key.name])
            for _, column in plain
            for key in self.inner.keys
            if key.name == column
        )

    def query(
        self, having: Expression | None, order: tuple[OrderBy, ...], most: int | None
    ) -> Query:
        """The whole question, without what nothing needs."""
        needed = {*self.selected, *(one.name for one in order)}
        needed |= {column.name for column in columns_in(having)} if having is not None else set()
        derived = tuple(one for one in self.derived if one.name in needed)
        needed |= {column.name for one in derived for column in columns_in(one.expression)}
        aggregates = tuple(part for part in self.aggregates if part.name in needed)
        if not self.selected:
            raise refused("SELECT", "shows keys alone", "select a number of each group too")
        plain = not derived and [part.name for part in aggregates] == self.selected
        return replace(
            self.inner,
            keys=self.keys,
            aggregates=aggregates,
            derived=derived,
            shown=None if plain else tuple(self.selected),
            having=having,
            order=order,
            limit=most,
        )

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
        else:
            name = self._hidden(node)
        self._check_single(name)
        return OrderBy(name=name, descending=bool(descending))

    def type_of(self, column: ColumnName) -> ColumnType:
        """The type of a released column."""
        return self._type(column)

    def _type(self, column: ColumnName) -> ColumnType:
        for key in self.inner.keys:
            if self.final[key.name] == column.name:
                return type_of(key.expression, card_types(self.rows.card)) or "text"
        return super().type_of(column)

    def _sorted_name(self, node: Any) -> str:
        what, table = taken(node, "this", "table")
        if table is None:
            for name in self.outer.values():
                if names(what, name):
                    return name
        return self.final[self._column(node)]

    def _hidden(self, node: Any) -> str:
        """The column that is this formula, unseen if it is not selected."""
        expression = self.expression(node)
        for known in self.derived:
            if known.expression == expression:
                return known.name
        return self.named(expression).name

    def _output(self, value: Any) -> str | None:
        """The column of the sub-query that an item is; None if it is a formula."""
        return self._column(value) if kind_of(value) == "Column" else None

    def _column(self, node: Any) -> str:
        """The column of the sub-query that a name means."""
        column = self._inner_column(node)
        if column is None:
            known = ", ".join(map(quoted, _outputs(self.inner)))
            problem = "is not a column of the sub-query"
            raise refused(name_of(node.this), problem, f"select it there too; there are {known}")
        return column

    def _inner_column(self, node: Any) -> str | None:
        what, table = taken(node, "this", "table")
        if table is not None and not _is_called(self.groups, table):
            return None
        return next((name for name in _outputs(self.inner) if names(what, name)), None)

    def _in_condition(self, node: Any) -> Expression:
        if kind_of(node) == "Column":
            name = self.final[self._column(node)]
            self._check_single(name)
            return ColumnName(name)
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
        if column in (key.name for key in self.inner.keys):
            raise refused(column, "is a key, and stands in a formula", "select it by itself")
        self._check_single(self.final[column])
        return self._named_expression(column)

    def _named_expression(self, column: str) -> Expression:
        """A released column of the sub-query; one of its formulas is written out."""
        return self._released(self.final[column])

    def _check_keys(self, columns: list[str]) -> None:
        for key in self.inner.keys:
            if columns.count(key.name) > 1:
                raise refused(key.name, "is a key, and selected twice", "select it once")
            if key.name not in columns:
                problem = "is a key of the sub-query that SELECT leaves out"
                raise refused(key.name, problem, f"select {quoted(key.name)} too")

    def _check_single(self, name: str) -> None:
        for part in self.aggregates:
            if part.name == name and part.function == "histogram":
                raise refused(name, "is many columns", "sort and choose by another column")
