"""FROM, JOIN and WITH: what each SELECT of a question is, from the innermost outwards.

Law      a SELECT is rows of the card's table (row by row, or one for each unit), rows of another
         table of the card, or groups of many units, which are a question by themselves. The first
         two may be filtered, selected from and joined; the last is what is released, and may be
         looked at as `groups.py` says
Theorem  inner joins on equal columns do not depend on their order: A JOIN B ON c JOIN T ON d has
         the rows of T JOIN B ON d JOIN A ON c, where each test names tables that are there, and of
         A, B, T WHERE c AND d. So the card's table is put first; a filter inside of a sub-query is
         one of the joined rows
Checked  tests/tables/test_sql_groups.py, tests/tables/test_sql_joins.py
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from sqlglot import exp

from lastbit.tables.card.schema import DataCard
from lastbit.tables.limits import refused
from lastbit.tables.query.expression import Expression
from lastbit.tables.query.query import Query
from lastbit.tables.query.view import View
from lastbit.tables.sql.aggregates import condition
from lastbit.tables.sql.derived import has_aggregate
from lastbit.tables.sql.expressions import quoted, translated
from lastbit.tables.sql.groups import Groups, over_groups
from lastbit.tables.sql.linked import Called, without_linked
from lastbit.tables.sql.lists import Unrolled, with_elements, without_lists
from lastbit.tables.sql.parse import EQUAL_COLUMNS, kind_of, name_of, names, taken
from lastbit.tables.sql.per_unit import is_by_unit
from lastbit.tables.sql.rows import (
    OtherRows,
    SelectedRows,
    by_unit,
    columns_of,
    equal_columns,
    grouped_by_unit,
    item_of,
    itself,
    joined,
    joined_on,
    known_table,
    other_rows,
    other_table,
    row_by_row,
    rows_of,
    table_named,
    tables_of,
)

Relation: TypeAlias = SelectedRows | OtherRows | Groups
Defined: TypeAlias = Mapping[str, Relation]
"""What WITH defines, by its name in lower case."""
Joins: TypeAlias = list[tuple[Any, OtherRows | SelectedRows]]
Named = TypeVar("Named", SelectedRows, OtherRows, Groups, Relation)


@dataclass(frozen=True, slots=True)
class Sources:
    """Reads the SELECTs of one statement; `ask` makes a question of one over rows."""

    card: DataCard
    ask: Callable[[Any, SelectedRows], tuple[Query, View | None]]
    named: Callable[[list[Any]], list[tuple[str, Any]]]

    def question(self, select: Any) -> tuple[Query, View | None]:
        """The question that the whole statement is, and what it shows of the answer."""
        defined = self._definitions(select, {})
        select, lists = without_lists(select)
        select, called = without_linked(select, self.card, defined)
        first = _with_names(self._from(select, defined), called)
        if isinstance(first, Groups):
            _check_none(lists)
            groups = self._over(select, first)
            return groups.query, groups.view
        return self.ask(select, self._rows(select, first, defined, lists))

    def _relation(self, select: Any, defined: Defined) -> Relation:
        """What a sub-query is."""
        while kind_of(select) == "Subquery":
            (select,) = taken(select, "this")
        if kind_of(select) != "Select":
            raise refused("a sub-query", "is not a SELECT", "write SELECT ... FROM ...")
        defined = self._definitions(select, defined)
        select, lists = without_lists(select)
        select, called = without_linked(select, self.card, defined)
        first = _with_names(self._from(select, defined), called)
        if isinstance(first, Groups):
            _check_none(lists)
            return self._over(select, first)
        if isinstance(first, OtherRows) and not select.args.get("joins"):
            _check_none(lists)
            return self._of_other(select, first)
        rows = self._rows(select, first, defined, lists)
        if _is_plain(select) and select.args.get("distinct") is None:
            return row_by_row(select, rows)
        group = select.args.get("group")
        items = [item_of(item) for item in select.expressions]
        if group is not None and is_by_unit(rows, group.expressions, items):
            return grouped_by_unit(select, rows)
        query, view = self.ask(select, rows)
        return Groups(query, rows, view=view)

    def _over(self, select: Any, groups: Groups) -> Groups:
        if not _is_plain(select):
            problem = "would mix rows of many units"
            raise refused("a sub-query with aggregates", problem, by_unit(self.card))
        return over_groups(select, groups, self.named)

    def _definitions(self, select: Any, defined: Defined) -> Defined:
        """The sub-queries of WITH, each seeing those before it; used or not, each is looked at."""
        if select.args.get("with_") is None:
            return defined
        (expressions,) = taken(select.args["with_"], "expressions")
        found = dict(defined)
        own: set[str] = set()
        for definition in expressions:
            inner, alias = taken(definition, "this", "alias", ignored=("materialized",))
            (identifier,) = taken(alias, "this")
            name = name_of(identifier).lower()
            if name in own:
                raise refused(f"WITH {name}", "is defined twice", "give each its own name")
            own.add(name)
            found[name] = replace(self._relation(inner, found), called=name_of(identifier))
        return found

    def _of_other(self, select: Any, other: OtherRows) -> OtherRows:
        """A sub-query over another table of the card: columns and filters, row by row."""
        if not _is_plain(select):
            problem = f"aggregates {other.table.name}, and not the card's table"
            raise refused("a sub-query", problem, "declare what comes of it as a table of the card")
        items, where = taken(select, "expressions", "where", ignored=("from_", "joins", "with_"))
        rows = SelectedRows(self.card, None, {}, {other.called or "": other})
        tests = [] if where is None else taken(where, "this")
        only = tuple(_condition(test, rows) for test in tests)
        return OtherRows(other.table, None, columns_of(items, rows), (*other.where, *only))

    def _from(self, select: Any, defined: Defined) -> Relation:
        if select.args.get("from_") is None:
            raise refused("query", "has no FROM", f"write FROM {self.card.name}")
        (source,) = taken(select.args["from_"], "this")
        if kind_of(source) == "Subquery":
            return self._sub_query(source, defined)
        identifier, alias = table_named(source, "FROM", f"write FROM {self.card.name}")
        found = self._known(identifier, defined)
        if found is None and self.card.unnamed:
            found = replace(rows_of(self.card), called=name_of(identifier))
        if found is None:
            problem = "is not this card's table"
            raise refused(f"FROM {name_of(identifier)}", problem, tables_of(self.card))
        return _called(found, alias)

    def _joining(self, join: Any, defined: Defined) -> OtherRows | SelectedRows:
        """What is joined; groups cannot be."""
        if kind_of(join.this) == "Subquery":
            found: Relation = self._sub_query(join.this, defined)
            alias = None
        else:
            remedy = "join with another table of the card"
            identifier, alias = table_named(join.this, "JOIN", remedy)
            known = self._known(identifier, defined)
            name = name_of(identifier)
            found = known or other_rows(other_table(self.card, name))
        found = _called(found, alias)
        if isinstance(found, Groups):
            problem = "is with groups that are released"
            raise refused("JOIN", problem, "join the tables first, and group what comes of it")
        return found

    def _known(self, identifier: Any, defined: Defined) -> Relation | None:
        """What a name means in FROM: of WITH, the card's table, or another one of the card."""
        if (found := defined.get(name_of(identifier).lower())) is not None:
            return found
        if names(identifier, self.card.name):
            return rows_of(self.card)
        table = known_table(self.card, identifier)
        return None if table is None else other_rows(table)

    def _sub_query(self, source: Any, defined: Defined) -> Relation:
        inner, alias = taken(source, "this", "alias")
        return _called(replace(self._relation(inner, defined), called=None), alias)

    def _rows(
        self,
        select: Any,
        first: SelectedRows | OtherRows,
        defined: Defined,
        lists: list[Unrolled],
    ) -> SelectedRows:
        """The rows that a SELECT looks at: FROM, UNNEST, JOIN and WHERE."""
        joins = [(join, self._joining(join, defined)) for join in select.args.get("joins") or []]
        if isinstance(first, SelectedRows):
            first = with_elements(first, lists)
        else:
            joins = [
                (join, with_elements(one, lists) if isinstance(one, SelectedRows) else one)
                for join, one in joins
            ]
        where = select.args.get("where")
        tests = [] if where is None else taken(where, "this")
        if any(_is_bare(join) for join, _ in joins):
            rows, tests = self._pooled(
                first, joins, [part for test in tests for part in _parts(test)]
            )
            joins = []
        elif isinstance(first, OtherRows):
            rows, joins = self._turned(first, joins)
        else:
            rows = first
        for join, other in joins:
            if isinstance(other, SelectedRows):
                equal_columns(join)
                raise self._of_units(other)
            rows = joined(rows, join, other)
        only = tuple(_condition(test, rows) for test in tests)
        return replace(rows, where=(*rows.where, *only))

    def _of_units(self, other: SelectedRows) -> Exception:
        """A refusal to join rows of units with others of them."""
        if replace(other, called=None) == replace(rows_of(self.card), called=None):
            return itself(self.card.name)
        return refused("JOIN", "is with rows of units", "join with another table of the card")

    def _turned(self, first: OtherRows, joins: Joins) -> tuple[SelectedRows, Joins]:
        """The card's table, joined with those that stand before it; and the JOINs that are left."""
        place = next((i for i, (_, o) in enumerate(joins) if isinstance(o, SelectedRows)), None)
        if place == 0:
            join, rows = joins[0]
            assert isinstance(rows, SelectedRows)
            return joined(rows, join, first), joins[1:]
        after = len(joins) if place is None else place + 1
        rows, left = self._pooled(first, joins[:after], [])
        only = tuple(_condition(test, rows) for test in left)
        return replace(rows, where=(*rows.where, *only)), joins[after:]

    def _pooled(
        self, first: SelectedRows | OtherRows, joins: Joins, where: list[Any]
    ) -> tuple[SelectedRows, list[Any]]:
        """All tables joined by the tests of ON, and by those of WHERE; and what is left of WHERE.

        A name must mean one column among all the tables.
        """
        every = [first, *(other for _, other in joins)]
        own = [one for one in every if isinstance(one, SelectedRows)]
        waiting = [one for one in every if isinstance(one, OtherRows)]
        if not own:
            problem = "is not this card's table"
            raise refused(f"FROM {waiting[0].table.name}", problem, tables_of(self.card))
        if len(own) > 1:
            raise self._of_units(own[1])
        tests: list[Any] = []
        for join, _ in joins:
            on, using = (None, None) if _is_bare(join) else equal_columns(join)
            if using:
                remedy = f"begin with FROM {quoted(self.card.name)}, or write ON"
                raise refused("JOIN ... USING", "comes before the card's table", remedy)
            tests += [] if on is None else _parts(on)
        rows = own[0]
        full = replace(
            rows,
            public={**rows.public, **{one.called or str(i): one for i, one in enumerate(waiting)}},
        )
        while waiting:
            rows, used, joined_with = _next_join(rows, full, [*tests, *where], waiting)
            tests = [test for test in tests if test not in used]
            where = [test for test in where if test not in used]
            waiting = [one for one in waiting if one is not joined_with]
        return rows, [*tests, *where]


def _check_none(lists: list[Unrolled]) -> None:
    """That rows which are no longer the table's have no lists."""
    if lists:
        raise refused("UNNEST", "is not of a list of the card's table", "write it in the innermost")


def _is_bare(join: Any) -> bool:
    """Whether a table stands behind a comma, or CROSS JOIN: WHERE says what is equal."""
    kind = str(join.args.get("kind") or "").upper()
    return kind in ("", "CROSS") and set(join.args) - {"this", "kind"} <= _empty_parts(join)


def _empty_parts(join: Any) -> set[str]:
    return {name for name, value in join.args.items() if not value}


def _parts(test: Any) -> list[Any]:
    """The conditions of which AND makes one, brackets or none."""
    waiting, found = [test], list[Any]()
    while waiting:
        one = waiting.pop(0)
        while kind_of(one) == "Paren":
            (one,) = taken(one, "this")
        if kind_of(one) == "And":
            waiting = [*taken(one, "this", "expression"), *waiting]
        else:
            found.append(one)
    return found


def _next_join(
    rows: SelectedRows, full: SelectedRows, tests: list[Any], waiting: list[OtherRows]
) -> tuple[SelectedRows, list[Any], OtherRows]:
    """The rows joined with the first of these tables that tests connect with them, and by which."""
    for other in waiting:
        inner = replace(rows, public={**rows.public, other.called or "": other})
        used = [test for test in tests if _connects(test, rows, inner)]
        if used:
            for column in (column for test in used for column in test.find_all(exp.Column)):
                full.resolve(column)
            return joined_on(rows, used, other), used, other
    raise refused("JOIN", "is not a plain join on equal columns with the rows", EQUAL_COLUMNS)


def _connects(test: Any, rows: SelectedRows, inner: SelectedRows) -> bool:
    """Whether a test says that a column of the other table equals something of these rows."""
    if kind_of(test) != "EQ":
        return False
    for side, other in ((test.this, test.expression), (test.expression, test.this)):
        columns = [taken(one, "this", "table") for one in other.find_all(exp.Column)]
        known = bool(columns) and all(any(rows.meant(*column)) for column in columns)
        if known and kind_of(side) == "Column":
            what = taken(side, "this", "table")
            if any(inner.meant(*what)) and not any(rows.meant(*what)):
                return True
    return False


def _with_names(found: Relation, called: Called) -> Relation:
    """The rows, where tables on the way to the unit are joined under these names."""
    if not called or not isinstance(found, SelectedRows):
        return found
    others = {n: t for n, t in found.linked.items() if t not in called.values()}
    return replace(found, linked={**others, **called})


def _called(found: Named, alias: Any) -> Named:
    """The same under the name that AS gives it."""
    return found if alias is None else replace(found, called=name_of(taken(alias, "this")[0]))


def _condition(test: Any, rows: SelectedRows) -> Expression:
    return condition(translated(test, rows.resolve), rows.card, "WHERE")


def _is_plain(select: Any) -> bool:
    """Whether a SELECT groups and aggregates nothing itself."""
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return False
    return not any(map(has_aggregate, select.expressions))
