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
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from sqlglot import exp

from lastbit.tables.card.schema import DataCard
from lastbit.tables.limits import refused
from lastbit.tables.query.derived import Derived
from lastbit.tables.query.expression import (
    ColumnName,
    ColumnType,
    Constant,
    Expression,
    starts_of_times,
)
from lastbit.tables.query.known_keys import bounded_key, keys_in_where, public_keys
from lastbit.tables.query.query import Aggregate, OrderBy, Query, all_of
from lastbit.tables.query.rules import call
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.types import card_types, type_of, typed
from lastbit.tables.sql.aggregates import (
    aggregate_from,
    aggregates_from,
    condition,
    is_aggregate,
    resolve_unit,
)
from lastbit.tables.sql.derived import COUNTS, Parts, has_aggregate
from lastbit.tables.sql.expressions import translated
from lastbit.tables.sql.grammar import check_expression, check_statement
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
from lastbit.tables.sql.rows import SelectedRows, item_of
from lastbit.tables.sql.sources import Sources

_SELECTED = "add it to SELECT, or leave it out"


@dataclass(frozen=True, slots=True)
class Released:
    """The columns of an answer. `selected` are their names in the order of SELECT.

    With `parts`, an aggregate that is not selected is released as well, unseen.
    """

    query: Query
    rows: SelectedRows
    selected: tuple[str, ...] = ()
    parts: Parts | None = None

    def condition(self, node: Any) -> Expression:
        """A condition over the columns of the answer."""
        found = typed(translated(node, lambda n: ColumnName(self._one(self._found(n)))), self._type)
        if type_of(found, self._type) not in ("boolean", None):
            raise refused("HAVING", "is neither true nor false", "write a comparison")
        return found

    def sorted_by(self, item: Any) -> OrderBy:
        """One item of ORDER BY."""
        node, descending, first = taken(item, "this", "desc", "nulls_first")
        if first:
            raise refused("NULLS FIRST", "is not known here: they come last", "leave it out")
        place = place_of(node)
        while kind_of(node) == "Paren":
            (node,) = taken(node, "this")
        if place is None and self._is_formula(node):
            return OrderBy(name=self._formula(node).name, descending=bool(descending))
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
            return "integer" if output.function in COUNTS else "number"
        kind = type_of(output.expression, card_types(self.rows.card))
        return "text" if kind is None else kind

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
    """The query that a SELECT statement asks.

    >>> from lastbit.tables import Column, Source
    >>> columns = {"cost": Column(name="cost", type="number", bounds=(0, 500))}
    >>> source = Source(kind="csv", paths=("visits.csv",))
    >>> card = DataCard(name="visits", source=source, unit=None, max_rows=1, columns=columns)
    >>> query = parsed("SELECT count(*) AS n, sum(cost) AS paid FROM visits", card)
    >>> [part.name for part in query.aggregates]
    ['n', 'paid']
    """
    query = _within_the_stack(lambda: query_of(statement_tree(text), card))
    check_statement(text)  # last: refusals that know what is meant say more
    return query


def query_of(select: Any, card: DataCard) -> Query:
    """The query that the parser's tree of a SELECT asks."""
    return Sources(card, _query, _names).question(select)


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


def grouped_by(name: str, expression: Expression, card: DataCard, *where: Expression) -> GroupKey:
    """A key: its type must have exact equality, and its values are public where they are known."""
    if card.unit is not None and expression == resolve_unit(card):
        raise refused(
            f"GROUP BY {name}", "would show units one by one", "group by something that many share"
        )
    expression = bounded_key(expression, card, *where)
    kind = type_of(expression, card_types(card))
    if isinstance(expression, Constant):
        raise refused(name, "is the same in every row", "leave it out")
    if kind in ("number", "timestamp") and not starts_of_times(expression):
        raise refused(
            f"GROUP BY {name}",
            f"is of type {kind}, and nearly every row would be a group of its own",
            "group by bin(x, 0, 10, 20) with whole edges, by CAST(x AS BIGINT), by year(d) or "
            "CAST(d AS DATE), or use HISTOGRAM(x, 0, 0.5, 1)",
        )
    values = public_keys(expression, card, *where)
    if (
        isinstance(expression, ColumnName)
        and expression.table is not None
        and expression.table in card.public  # and not a private one
    ):
        # late: the engine is slow to load, and other keys do not need it
        from lastbit.tables.backends.columns import public_values

        values = public_values(card, expression.table, expression.name, most=_MOST_PUBLIC)
    values = keys_in_where(expression, values, *where)
    if values == ():
        raise refused(
            f"GROUP BY {name}", "has no key that WHERE lets through", "ask for one of its keys"
        )
    return GroupKey(name=name, expression=expression, values=values)


_MOST_PUBLIC = 1 << 12
"""A column of a public table with more values is looked for in the data."""


def _query(select: Any, rows: SelectedRows) -> Query:
    clauses = ("expressions", "group", "having", "order", "limit")
    items, group, having, order, limit = taken(
        select, *clauses, ignored=("from_", "joins", "where", "with_")
    )
    _check_one_grouping(group)
    named = _names(items)
    if any(kind_of(part) == "Mode" for _, node in named for part in node.walk()):
        return _mode(named, rows, alone=not any((group, having, order, limit)))
    keys: list[GroupKey] = []
    parts = Parts(rows, [name for name, _ in named])
    for name, node in named:
        if group is None and kind_of(node) == "Column" and kind_of(node.this) != "Star":
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
    for name, node in named:
        if not has_aggregate(node) and not parts.names_released(node):
            expression = typed(translated(node, rows.resolve), card_types(rows.card))
            keys.append(grouped_by(name, expression, rows.card, *rows.where))
    for name, node in named:
        if not is_aggregate(node) and (has_aggregate(node) or parts.names_released(node)):
            parts.derived.append(Derived(name=name, expression=parts.expression(node)))
    _check_group(group, named, keys, rows)
    most = limit_of(limit)
    plain = Query(
        table=rows.card.name,
        where=all_of(rows.where),
        joins=rows.joins,
        keys=tuple(keys),
        aggregates=tuple(parts.aggregates),
        per_unit=rows.per_unit,
    )
    released = Released(plain, rows, tuple(name for name, _ in named), parts)
    test = None if having is None else released.condition(taken(having, "this")[0])
    sorts = [] if order is None else taken(order, "expressions")[0]
    sorted_by = tuple(released.sorted_by(item) for item in sorts)
    shown = parts.shown(columns)
    return replace(
        plain,
        aggregates=tuple(parts.aggregates),
        derived=tuple(parts.derived),
        shown=shown,
        having=test,
        order=sorted_by,
        limit=most,
    )


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


def _names(items: list[Any]) -> list[tuple[str, Any]]:
    """Each item of SELECT with a name: its alias, its column, or what it is."""
    pairs = [item_of(item) for item in items]
    used = {name.lower() for name, _ in pairs if name is not None}
    found: list[tuple[str, Any]] = []
    for given, item in pairs:
        name, value = given, item
        while kind_of(value) == "Paren":
            (value,) = taken(value, "this")
        if name is None:
            plain = _plain_name(value)
            options = (plain, *(f"{plain}_{i}" for i in range(2, len(items) + 2)))
            name = next(option for option in options if option.lower() not in used)
            used.add(name.lower())
        found.append((name, value))
    return found


_NAMES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("percentilecont", "percentiledisc", "order"), "quantile"),
        "covarpop": "covar_pop",
        "covarsamp": "covar_samp",
        "regrslope": "slope",
        "regrintercept": "intercept",
        "regrr2": "r2",
        "timetostr": "strftime",
        "div": "quotient",
        "sub": "difference",
        "add": "sum",
        "mul": "product",
    }
)


def _plain_name(value: Any) -> str:
    while kind_of(value) in ("Filter", "Paren"):
        value = value.this
    if kind_of(value) == "WithinGroup":
        value = value.expression
    what = str(value.this) if kind_of(value) == "Anonymous" else kind_of(value)
    what = _NAMES.get(what.lower(), what.lower())
    column = next(iter(value.find_all(exp.Column)), None)
    return what if column is None else f"{what}_{column.name}"


_SEVERAL_GROUPINGS: Mapping[str, str] = MappingProxyType(
    {"Rollup": "ROLLUP", "Cube": "CUBE", "GroupingSets": "GROUPING SETS"}
)


def _check_one_grouping(group: Any) -> None:
    for node in () if group is None else group.walk():
        if kind_of(node) in _SEVERAL_GROUPINGS:
            problem = "asks for several tables at once"
            remedy = (
                "ask for each by itself; for counts, lastbit query --marginals region,ward, or "
                '.marginals(["region", "ward"]) in Python, gives all of one and two columns'
            )
            raise refused(f"GROUP BY {_SEVERAL_GROUPINGS[kind_of(node)]}", problem, remedy)


def _check_group(
    group: Any, named: list[tuple[str, Any]], keys: list[GroupKey], rows: SelectedRows
) -> None:
    """What is selected plainly and what is grouped by must be the same."""
    if group is None:
        if keys:
            raise refused(keys[0].name, "is selected row by row", "add GROUP BY, or aggregate it")
        return
    listed, everything = taken(group, "expressions", "all")
    if not (everything or listed):
        raise refused("GROUP BY", "lists no key", "name the keys, or leave it out")
    if everything and listed:
        raise refused("GROUP BY ALL", "lists keys as well", "write the one or the other")
    found = (
        {key.expression for key in keys}
        if everything
        else {_group_key(node, named, keys, rows) for node in listed}
    )
    for key in keys:
        if key.expression not in found:
            raise refused(key.name, "is selected row by row", "add it to GROUP BY, or aggregate it")
    if found - {key.expression for key in keys}:
        raise refused("GROUP BY", "has a key that is not selected", _SELECTED)
    if len({key.expression for key in keys}) < len(keys):
        raise refused("GROUP BY", "has one key under two names", "select it once")


def _group_key(
    node: Any, named: list[tuple[str, Any]], keys: list[GroupKey], rows: SelectedRows
) -> Expression:
    """What an item of GROUP BY means: a place, a column or, if there is none, an alias."""
    place = place_of(node)
    if place is not None:
        if not 1 <= place <= len(named):
            raise refused("GROUP BY", "counts beyond the columns", "name the column")
        for key in keys:
            if key.name == named[place - 1][0]:
                return key.expression
        raise refused("GROUP BY", "names an aggregate", "group by a column")
    if kind_of(node) == "Column":
        what, table = taken(node, "this", "table")
        alias = [] if table is not None else [key for key in keys if names(what, key.name)]
        meant = list(rows.meant(what, table))
        if alias and not meant:
            return alias[0].expression
        keyed = [bounded_key(one, rows.card, *rows.where) for one in meant]
        if alias and keyed != [alias[0].expression]:
            problem = "is a column, and what is selected under its name is another thing"
            remedy = "select that under a name of its own"
            raise refused(f"GROUP BY {alias[0].name}", problem, remedy)
    expression = typed(translated(node, rows.resolve), card_types(rows.card))
    return bounded_key(expression, rows.card, *rows.where)
