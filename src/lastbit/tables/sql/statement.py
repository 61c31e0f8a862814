"""The SQL front end: one SELECT over the card's table becomes a `Query`, or is refused.

What has a private answer: SELECT keys, aggregates and formulas over them (`derived.py`) FROM the
table [JOIN tables of the card] [WHERE] [GROUP BY] [HAVING] [ORDER BY] [LIMIT]; sub-queries in FROM
or WITH that work row by row, which are written out, or that are grouped by the unit. Everything
else is refused with the reason and what comes nearest. The parser is sqlglot's; nothing that it
understood is overlooked (`parse.py`), and what DuckDB's parser refuses is refused (`grammar.py`).
HAVING and ORDER BY see what is released, and nothing else (`Released`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from lastbit.errors import InvalidParameter
from lastbit.tables.card.schema import DataCard
from lastbit.tables.limits import refused
from lastbit.tables.query.derived import Derived, columns_in, hidden_name
from lastbit.tables.query.expression import (
    Call,
    ColumnName,
    ColumnType,
    Constant,
    Expression,
)
from lastbit.tables.query.known_keys import bounded_key, replace_parts
from lastbit.tables.query.query import Aggregate, OrderBy, Query, all_of
from lastbit.tables.query.rules import call
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.types import card_types, type_of, typed
from lastbit.tables.query.view import ShownKey, View
from lastbit.tables.sql.aggregates import (
    aggregate_from,
    aggregates_from,
    condition,
    is_aggregate,
)
from lastbit.tables.sql.derived import Parts, has_aggregate, released_type
from lastbit.tables.sql.expressions import translated
from lastbit.tables.sql.grammar import check_expression, check_statement
from lastbit.tables.sql.grouping import (
    Grouped,
    check_one_grouping,
    count_of_keys,
    grouped,
    grouped_by,
    item_names,
    view_by,
)
from lastbit.tables.sql.groups import limit_of
from lastbit.tables.sql.parse import (
    expression_tree,
    kind_of,
    names,
    place_of,
    statement_tree,
    taken,
    too_deep,
)
from lastbit.tables.sql.rows import SelectedRows
from lastbit.tables.sql.sources import Sources


@dataclass(frozen=True, slots=True)
class Released:
    """The columns of an answer. `selected` are their names in the order of SELECT.

    With `parts`, an aggregate that is not selected is released as well, unseen.
    """

    query: Query
    rows: SelectedRows
    selected: tuple[str, ...] = ()
    parts: Parts | None = None
    computed: Mapping[str, Expression] = field(default_factory=dict)
    own: Mapping[Expression, str] = field(default_factory=dict)
    """What rows are grouped by, and what each key is called."""
    sorts: list[ShownKey] = field(default_factory=list)
    """What ORDER BY makes of keys, and SELECT does not."""

    def condition(self, node: Any) -> Expression:
        """A condition over the columns of the answer."""
        found = self._over_columns(node)
        if type_of(found, self._type) not in ("boolean", None):
            raise refused("HAVING", "is neither true nor false", "write a comparison")
        return found

    def sorted_by(self, item: Any) -> OrderBy:
        """One item of ORDER BY."""
        node, descending, first = taken(item, "this", "desc", "nulls_first")
        if first:
            raise refused("NULLS FIRST", "is not known here: they come last", "leave it out")
        place = place_of(node)
        if (made := self._sorted_by_computed(node, place)) is not None:
            return OrderBy(name=made, descending=bool(descending))
        while kind_of(node) == "Paren":
            (node,) = taken(node, "this")
        if place is None and self._is_formula(node):
            return OrderBy(name=self._formula(node).name, descending=bool(descending))
        if place is None and self.own and kind_of(node) != "Column" and not is_aggregate(node):
            key = self._over_columns(node)
            if not isinstance(key, ColumnName):
                raise self._unknown()
            return OrderBy(name=key.name, descending=bool(descending))
        if place is None:
            return OrderBy(name=self._one(self._found(node)), descending=bool(descending))
        if not 1 <= place <= len(self.selected):
            raise refused("ORDER BY", "counts beyond the columns", "name the column")
        return self.named(self.selected[place - 1], descending=bool(descending))

    def named(self, name: str, *, descending: bool) -> OrderBy:
        """The column of this name, in any case, to sort by."""
        for output in self._outputs():
            if output.name.lower() == name.lower():
                return OrderBy(name=self._one(output), descending=descending)
        raise self._unknown()

    def _type(self, column: ColumnName) -> ColumnType:
        for output in self._outputs():
            if output.name == column.name:
                break
        if isinstance(output, Derived):
            return "number"
        if isinstance(output, Aggregate):
            return released_type(output, self.rows.card)
        kind = type_of(output.expression, card_types(self.rows.card))
        return "text" if kind is None else kind

    def _over_columns(self, node: Any) -> Expression:
        """An expression over released columns; a part that rows are grouped by is a key.

        As in DuckDB a name means a column grouped by, and else what SELECT calls so.
        """
        places = dict[Expression, tuple[Any, Expression]]()

        def resolve(part: Any) -> Expression:
            if self.own and kind_of(part) == "Column":
                for expression in list(self.rows.meant(*taken(part, "this", "table")))[:1]:
                    place = ColumnName(str(len(places)), "a column of a row")
                    places[place] = part, expression
                    return place
            return self._named_output(part)

        def released(expression: Expression) -> Expression:
            if any(column in places for column in columns_in(expression)):
                if (key := self._key_that_is(expression, places)) is not None:
                    return ColumnName(key)
                if expression in places:
                    return self._named_output(places[expression][0])
            if isinstance(expression, Call):
                return Call(expression.function, tuple(map(released, expression.arguments)))
            return expression

        return typed(released(translated(node, resolve)), self._type)

    def _key_that_is(
        self, expression: Expression, places: Mapping[Expression, tuple[Any, Expression]]
    ) -> str | None:
        """The key that this expression over columns of a row is."""
        if not all(column in places for column in columns_in(expression)):
            return None
        meant = replace_parts(expression, {place: row for place, (_, row) in places.items()})
        try:
            return self.own.get(typed(meant, card_types(self.rows.card)))
        except InvalidParameter:  # it may have a type by other names
            return None

    def _named_output(self, part: Any) -> Expression:
        named = self._computed(part)
        return self.computed[named] if named else ColumnName(self._one(self._found(part)))

    def _sorted_by_computed(self, node: Any, place: int | None) -> str | None:
        """The column made of keys that an item of ORDER BY is, or names."""
        if place is not None:
            name = self.selected[place - 1] if 1 <= place <= len(self.selected) else ""
            return name if name in self.computed else None
        of_released = has_aggregate(node) or self._is_formula(node)
        if self.parts is None or kind_of(node) == "Column" or of_released:
            return self._computed(node)
        made = self._over_columns(node)
        names_of_keys = {ColumnName(key.name) for key in self.query.keys}
        if made in names_of_keys or not {*columns_in(made)} <= names_of_keys:
            return None
        if not any(True for _ in columns_in(made)):
            raise refused("ORDER BY", "is the same in every row", "leave it out")
        known = (known for known, one in self.computed.items() if one == made)
        return next(known, None) or self._sort(made)

    def _sort(self, made: Expression) -> str:
        """The name of what is made of keys to sort by."""
        assert self.parts is not None
        for known in self.sorts:
            if known.expression == made:
                return known.name
        name = hidden_name("sorted_by", None, self.parts.used)
        self.parts.used.add(name)
        self.sorts.append(ShownKey(name=name, expression=made))
        return name

    def _computed(self, node: Any) -> str | None:
        """The column made of keys that is named here."""
        if kind_of(node) != "Column" or not self.computed:
            return None
        what, table = taken(node, "this", "table")
        if table is not None or kind_of(what) != "Identifier":
            return None
        return next((name for name in self.computed if names(what, name)), None)

    def _outputs(self) -> list[Output]:
        made = self.query if self.parts is None else self.parts
        return [*self.query.keys, *made.aggregates, *made.derived]

    def _formula(self, node: Any) -> Derived:
        """The column that this expression over aggregates is, unseen if it is not selected."""
        assert self.parts is not None
        expression = self.parts.expression(node)
        for known in self.parts.derived:
            if known.expression == expression:
                return known
        return self.parts.named(expression)

    def _is_formula(self, node: Any) -> bool:
        """Whether it is made of released columns, and none by itself."""
        if self.parts is None or kind_of(node) == "Column" or is_aggregate(node):
            return False
        return has_aggregate(node) or self.parts.names_released(node)

    def _found(self, node: Any) -> Output:
        """The column of the answer that this node means: by its name, or by what it is."""
        if kind_of(node) == "Column":
            what, table = taken(node, "this", "table")
            if table is None and kind_of(what) == "Identifier":
                for output in self._outputs():
                    if names(what, output.name):
                        return output
            # the column of the table that a name such as visits.region means, if there is one
            rows = self.rows
            for expression in list(rows.meant(what, table))[:1]:
                for key in self.query.keys:
                    if key.expression == bounded_key(expression, rows.card, *rows.where):
                        return key
        elif is_aggregate(node):
            asked = aggregate_from(node, "asked", self.rows.card, self.rows.resolve)
            for part in self._outputs():
                if isinstance(part, Aggregate) and replace(part, name="asked") == asked:
                    return part
            if self.parts is not None:
                name = self.parts.column(asked).name
                return next(part for part in self.parts.aggregates if part.name == name)
        elif self._is_formula(node):
            return self._formula(node)
        raise self._unknown()

    def _one(self, output: Output) -> str:
        if isinstance(output, Aggregate) and output.function == "histogram":
            raise refused(
                output.name, "is many columns", "sort and choose by another column of the answer"
            )
        return output.name

    def _unknown(self) -> Exception:
        known = ", ".join(output.name for output in self._outputs())
        remedy = f"select it and name it; released are {known}"
        return refused("HAVING or ORDER BY", "looks at something that is not released", remedy)


Output: TypeAlias = GroupKey | Aggregate | Derived


Read = TypeVar("Read")


def parsed(text: str, card: DataCard) -> Query:
    """The query that a SELECT statement asks; what it shows of the answer is in `view_of`.

    >>> from lastbit.tables import Column, Source
    >>> columns = {"cost": Column(name="cost", type="number", bounds=(0, 500))}
    >>> source = Source(kind="csv", paths=("visits.csv",))
    >>> card = DataCard(name="visits", source=source, unit=None, max_rows=1, columns=columns)
    >>> query = parsed("SELECT count(*) AS n, sum(cost) AS paid FROM visits", card)
    >>> [part.name for part in query.aggregates]
    ['n', 'paid']
    """
    return _read(text, card)[0]


def view_of(text: str, card: DataCard) -> View | None:
    """What the answer to a SELECT statement shows, where that is not all that is released."""
    return _read(text, card)[1]


def _read(text: str, card: DataCard) -> tuple[Query, View | None]:
    both = _within_the_stack(lambda: query_of(statement_tree(text), card))
    check_statement(text)  # last: refusals that know what is meant say more
    return both


def query_of(select: Any, card: DataCard) -> tuple[Query, View | None]:
    """The query that the parser's tree of a SELECT asks, and what it shows of the answer."""
    return Sources(card, _query, item_names).question(select)


def expression_of(text: str, rows: SelectedRows) -> Expression:
    """One expression over a row, as in SELECT."""
    expression = _within_the_stack(
        lambda: typed(translated(expression_tree(text), rows.resolve), card_types(rows.card))
    )
    check_expression(text)
    return expression


def condition_of(text: str, rows: SelectedRows) -> Expression:
    """One condition over a row, as in WHERE."""
    return condition(expression_of(text, rows), rows.card, "WHERE")


def released_condition(text: str, query: Query, rows: SelectedRows) -> Expression:
    """One condition over the columns of an answer, as in HAVING."""
    test = _within_the_stack(lambda: Released(query, rows).condition(expression_tree(text)))
    check_expression(text)
    return test


def _within_the_stack(read: Callable[[], Read]) -> Read:
    """What `read` gives; where the caller left it too little of Python's stack, a refusal."""
    try:
        return read()
    except RecursionError:
        pass
    raise too_deep()


def _query(select: Any, rows: SelectedRows) -> tuple[Query, View | None]:
    clauses = ("expressions", "group", "having", "order", "limit", "distinct")
    items, group, having, order, limit, distinct = taken(
        select, *clauses, ignored=("from_", "joins", "where", "with_")
    )
    check_one_grouping(group)
    if distinct is not None:
        taken(distinct)
    named = item_names(items)
    if len({name.lower() for name, _ in named}) < len(named):
        problem = "gives two columns of the answer one name"
        raise InvalidParameter("query", problem=problem, remedy="name them with AS")
    if any(kind_of(part) == "Mode" for _, node in named for part in node.walk()):
        alone = not any((group, having, order, limit, distinct))
        return _mode(named, rows, alone=alone), None
    parts = Parts(rows, [name for name, _ in named])
    for name, node in named:
        plain = kind_of(node) == "Column" and kind_of(node.this) != "Star"
        if group is None and distinct is None and plain:
            raise refused(name, "is selected row by row", "add GROUP BY, or aggregate it")
    columns: list[str] = []
    for name, node in named:
        if is_aggregate(node):
            found = aggregates_from(node, name, rows.card, rows.resolve)
            parts.aggregates += found
            columns += [part.name for part in found]
            continue
        columns.append(name)
    for name, node in named:
        if not is_aggregate(node) and (has_aggregate(node) or parts.names_released(node)):
            parts.formulas.append(name)
    of_keys = [
        (name, node)
        for name, node in named
        if not has_aggregate(node) and not parts.names_released(node)
    ]
    by = grouped(group, named, of_keys, rows, distinct=distinct is not None)
    parts.used |= {key.name for key in by.keys}
    for name, node in named:
        if not is_aggregate(node) and (has_aggregate(node) or parts.names_released(node)):
            parts.derived.append(Derived(name=name, expression=parts.expression(node)))
    most = limit_of(limit)
    alone = bool(by.keys) and not parts.aggregates
    counts = [count_of_keys(rows.card, parts.used)] if alone else parts.aggregates
    whole = Query(
        table=rows.card.name,
        where=all_of(rows.where),
        joins=rows.joins,
        keys=by.keys,
        aggregates=tuple(counts),
        per_unit=rows.per_unit,
    )
    released = Released(whole, rows, tuple(name for name, _ in named), parts, by.computed, by.own)
    test = None if having is None else released.condition(taken(having, "this")[0])
    wanted = [] if order is None else taken(order, "expressions")[0]
    sorted_by = tuple(released.sorted_by(item) for item in wanted)
    if distinct is not None:
        _check_distinct(by, ungrouped=group is None and bool(parts.aggregates))
    if alone and not parts.aggregates:
        parts.aggregates += counts
        if all(key.values is not None for key in by.keys):
            one = call(">=", ColumnName(counts[0].name), Constant(1))
            test = all_of([one] if test is None else [test, one])
    if alone:  # the record has all that is released, the answer the keys
        columns = [one.name for one in parts.aggregates] + [one.name for one in parts.derived]
    made_to_sort = {one.name for one in released.sorts}
    by_computed = any(one.name in by.computed or one.name in made_to_sort for one in sorted_by)
    last = sorted_by if by_computed else ()
    query = replace(
        whole,
        aggregates=tuple(parts.aggregates),
        derived=tuple(parts.derived),
        shown=parts.shown(columns),
        having=test,
        order=() if by_computed else sorted_by,
        limit=None if by_computed else most,
    )
    if by.is_plain and not alone and not made_to_sort:
        return query, None
    only = most if by_computed else None
    sorts = tuple(released.sorts)
    return query, view_by(by, query, rows.card, last, only, alone=alone, sorts=sorts)


def _check_distinct(by: Grouped, *, ungrouped: bool) -> None:
    """That DISTINCT lists keys, or says of rows that differ already that they do."""
    if ungrouped and by.keys:
        name = by.keys[0].name
        raise refused(name, "is selected row by row", "write GROUP BY instead of DISTINCT")
    if not by.is_plain:
        problem = "would merge rows of the answer that have different keys"
        raise refused("SELECT DISTINCT", problem, "GROUP BY what is selected, without DISTINCT")


def _mode(named: list[tuple[str, Any]], rows: SelectedRows, *, alone: bool) -> Query:
    """MODE(x): the first of SELECT x, COUNT(*) ... GROUP BY x, sorted by the count.

    Theorem  each row is in one group, so that the counts of all groups together move no further
             than one count (`plan/sensitivity.py`): to choose the greatest of them after the noise
             is post-processing, and costs what a count costs
    Differs  it is the noisy maximum over declared keys, or over those that are found privately
    """
    if not alone or len(named) != 1 or kind_of(named[0][1]) != "Mode":
        remedy = "write SELECT x, COUNT(*) AS n ... GROUP BY x ORDER BY n DESC LIMIT 1"
        raise refused("MODE", "stands by itself here: SELECT MODE(x) FROM ...", remedy)
    name, node = named[0]
    (value,) = taken(node, "this")
    expression = typed(translated(value, rows.resolve), card_types(rows.card))
    key = grouped_by(name, expression, rows.card, *rows.where)
    count = "n" if name.lower() != "n" else "n_2"
    there = call("not", call("is_missing", expression))
    return Query(
        table=rows.card.name,
        where=all_of((*rows.where, there)),
        joins=rows.joins,
        keys=(key,),
        aggregates=(Aggregate(name=count, function="count", nullable=False),),
        order=(OrderBy(name=count, descending=True),),
        limit=1,
        per_unit=rows.per_unit,
    )
