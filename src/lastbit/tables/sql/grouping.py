"""GROUP BY and SELECT DISTINCT: by what is grouped, and what SELECT shows of it.

Law      each thing that is grouped by is a key of the question; what is selected plainly is one of
         them, or made of them (`query/view.py`). Keys that are not selected come after the others
Checked  tests/tables/test_view.py, tests/tables/test_sql.py
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sqlglot import exp

from lastbit.errors import InvalidParameter
from lastbit.tables.card.schema import DataCard
from lastbit.tables.limits import refused
from lastbit.tables.query.derived import columns_in
from lastbit.tables.query.expression import ColumnName, Constant, Expression, starts_of_times
from lastbit.tables.query.known_keys import bounded_key, keys_in_where, public_keys
from lastbit.tables.query.query import Aggregate, OrderBy, Query, all_of
from lastbit.tables.query.rules import call
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.types import card_types, type_of, typed
from lastbit.tables.query.view import ShownKey, View, over_keys
from lastbit.tables.sql.aggregates import resolve_unit
from lastbit.tables.sql.expressions import translated
from lastbit.tables.sql.parse import kind_of, names, place_of, taken
from lastbit.tables.sql.rows import SelectedRows, item_of

_ROW_BY_ROW = "is selected row by row"
Named = Sequence[tuple[str, Any]]


@dataclass(frozen=True, slots=True)
class Grouped:
    """The keys of a question, and what SELECT shows of them, in its order."""

    keys: tuple[GroupKey, ...]
    shown: tuple[ShownKey, ...]
    own: Mapping[Expression, str]
    """What each key was before it was brought between bounds, and its name."""

    @property
    def computed(self) -> dict[str, Expression]:
        """What is selected and made of keys."""
        plain = {ColumnName(key.name) for key in self.keys}
        return {one.name: one.expression for one in self.shown if one.expression not in plain}

    @property
    def is_plain(self) -> bool:
        """Whether all keys are shown, and nothing else is."""
        return [one.expression for one in self.shown] == [ColumnName(k.name) for k in self.keys]


def grouped(
    group: Any, named: Named, plain: Named, rows: SelectedRows, *, distinct: bool
) -> Grouped:
    """The keys of a question whose items are `named`; the `plain` ones have no aggregate in them.

    With `distinct` and without GROUP BY all of them are keys.
    """
    card = rows.card
    selected = [(name, _expression(node, rows)) for name, node in plain]
    if group is None and not distinct:
        for name, expression in selected:
            if any(True for _ in columns_in(expression)):
                grouped_by(name, expression, card, *rows.where)  # which may say more
                raise refused(name, _ROW_BY_ROW, "add GROUP BY, or aggregate it")
        return Grouped((), tuple(_shown(selected, {}, rows)), {})
    if group is None:
        wanted = selected
    else:
        listed, everything = taken(group, "expressions", "all")
        if not (everything or listed):
            raise refused("GROUP BY", "lists no key", "name the keys, or leave it out")
        if everything and listed:
            raise refused("GROUP BY ALL", "lists keys as well", "write the one or the other")
        if everything:
            wanted = selected
        else:
            wanted = [(_key_name(n), _group_key(n, named, selected, rows)) for n in listed]
    left = {bounded_key(one, card, *rows.where): (name, one) for name, one in wanted}
    keys: list[GroupKey] = []
    own: dict[Expression, str] = {}  # what a key was before it was brought between bounds
    for name, expression in selected:
        bounded = bounded_key(expression, card, *rows.where)
        known = next((key.name for key in keys if key.expression == bounded), None)
        if known is not None:
            own.setdefault(expression, known)  # selected again
        elif bounded in left:
            keys.append(grouped_by(name, expression, card, *rows.where))
            own.setdefault(left.pop(bounded)[1], name)
            own.setdefault(expression, name)
    used = {name.lower() for name, _ in named}
    for name, expression in left.values():
        free = free_name(name, used)
        keys.append(grouped_by(free, expression, card, *rows.where))
        own[expression] = free
        used.add(free.lower())
    return Grouped(tuple(keys), tuple(_shown(selected, own, rows)), own)


def _shown(
    selected: Iterable[tuple[str, Expression]], own: Mapping[Expression, str], rows: SelectedRows
) -> Iterable[ShownKey]:
    """Each item of SELECT that is a key, or made of keys and constants; any other is refused."""
    for name, expression in selected:
        if own.get(expression) == name:
            yield ShownKey(name=name, expression=ColumnName(name))
            continue
        constant = not any(True for _ in columns_in(expression))
        made = expression if constant else over_keys(expression, own)
        if made is None:
            grouped_by(name, expression, rows.card, *rows.where)  # which may say more
            raise refused(name, _ROW_BY_ROW, "add it to GROUP BY, or aggregate it")
        yield ShownKey(name=name, expression=made)


def _expression(node: Any, rows: SelectedRows) -> Expression:
    return typed(translated(node, rows.resolve), card_types(rows.card))


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
            f"is of type {kind}: nearly every row would be a group of its own",
            "group by bin(x, 0, 10, 20), CAST(x AS BIGINT), year(d) or "
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


def item_names(items: list[Any]) -> list[tuple[str, Any]]:
    """Each item of SELECT with a name: its alias, its column, or what it is."""
    pairs = [item_of(item) for item in items]
    used = {name.lower() for name, _ in pairs if name is not None}
    found: list[tuple[str, Any]] = []
    for given, item in pairs:
        name, value = given, item
        while kind_of(value) == "Paren":
            (value,) = taken(value, "this")
        if name is None:
            name = free_name(_plain_name(value), used)
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


def free_name(plain: str, used: Collection[str]) -> str:
    """A name like this one that is none of these, which are in small letters."""
    options = (plain, *(f"{plain}_{i}" for i in range(2, len(used) + 3)))
    return next(option for option in options if option.lower() not in used)


def _key_name(node: Any) -> str:
    """What a key is called that is not selected."""
    while kind_of(node) == "Paren":
        (node,) = taken(node, "this")
    return str(node.name) if kind_of(node) == "Column" else _plain_name(node)


def _plain_name(value: Any) -> str:
    while kind_of(value) in ("Filter", "Paren"):
        value = value.this
    if kind_of(value) == "WithinGroup":
        value = value.expression
    what = str(value.this) if kind_of(value) == "Anonymous" else kind_of(value)
    what = _NAMES.get(what.lower(), what.lower())
    column = next(iter(value.find_all(exp.Column)), None)
    return what if column is None else f"{what}_{column.name}"


def view_by(
    by: Grouped,
    query: Query,
    card: DataCard,
    order: tuple[OrderBy, ...],
    limit: int | None,
    *,
    alone: bool,
    sorts: tuple[ShownKey, ...],
) -> View:
    """What is shown of the answer; with an order, by that and not by the question's own."""
    types = {name: type_of(before, card_types(card)) for before, name in by.own.items()}
    numbers = [] if alone else query.selected
    if {one.name.lower() for one in by.shown} & {name.lower() for name in numbers}:
        problem = "gives two columns of the answer one name"
        raise InvalidParameter("query", problem=problem, remedy="name them with AS")
    shown = {one.name for one in (*by.shown, *sorts)} | {key.name for key in query.keys}
    shown |= set(numbers)
    for one in order:
        if one.name not in shown:
            problem = "looks at what is not selected, beside a column made of keys"
            raise refused("ORDER BY", problem, "select it, and sort by its name")
    view = View(
        released=tuple((key.name, types[key.name]) for key in query.keys),
        keys=by.shown,
        numbers=not alone,
        order=order,
        limit=limit,
        sorts=sorts,
    )
    if view.computed or sorts:  # what cannot be computed is refused before anything is paid
        view.shown([(None,) * len(view.released)])
        view.sorted([(None,) * len(view.released)])
    return view


def count_of_keys(card: DataCard, used: Collection[str]) -> Aggregate:
    """What is counted where keys alone are asked for: that by which they are found privately."""
    name = free_name("units" if card.unit is not None else "n", {one.lower() for one in used})
    if card.unit is None:
        return Aggregate(name=name, function="count", nullable=False)
    return Aggregate(name=name, function="count_units")


def keys_with_rows(
    aggregates: Sequence[Aggregate],
    keys: Sequence[GroupKey],
    having: Expression | None,
    count: Aggregate,
) -> tuple[list[Aggregate], Expression | None]:
    """What is released, and tested, where keys alone are shown; `count` is asked if need be.

    Keys that are known are shown where the released count is 1 or more, as SQL shows those that
    rows have: by a count that is asked already, else by `count`, unless HAVING chooses.
    """
    released = [*aggregates] or [count]
    if any(key.values is None for key in keys):
        return released, having
    plain = [part for part in released if part.function == "count_units" or _counts_rows(part)]
    if not plain and having is None:
        released.append(count)
        plain.append(count)
    if not plain:
        return released, having
    one = call(">=", ColumnName(plain[0].name), Constant(1))
    return released, all_of([one] if having is None else [having, one])


def _counts_rows(part: Aggregate) -> bool:
    return part.function == "count" and part.expression is None


_SEVERAL_GROUPINGS: Mapping[str, str] = MappingProxyType(
    {"Rollup": "ROLLUP", "Cube": "CUBE", "GroupingSets": "GROUPING SETS"}
)


def check_one_grouping(group: Any) -> None:
    """That GROUP BY asks for one table."""
    for node in () if group is None else group.walk():
        if kind_of(node) in _SEVERAL_GROUPINGS:
            problem = "asks for several tables at once"
            remedy = (
                "ask for each by itself; counts come from lastbit query --marginals region,ward, "
                'or .marginals("region", "ward") in Python'
            )
            raise refused(f"GROUP BY {_SEVERAL_GROUPINGS[kind_of(node)]}", problem, remedy)


def _group_key(
    node: Any, named: Named, selected: Sequence[tuple[str, Expression]], rows: SelectedRows
) -> Expression:
    """What an item of GROUP BY means: a place, a column or, if there is none, an alias."""
    place = place_of(node)
    if place is not None:
        if not 1 <= place <= len(named):
            raise refused("GROUP BY", "counts beyond the columns", "name the column")
        for name, expression in selected:
            if name == named[place - 1][0]:
                return expression
        raise refused("GROUP BY", "names an aggregate", "group by a column")
    if kind_of(node) == "Column":
        what, table = taken(node, "this", "table")
        if table is None and not any(rows.meant(what, table)):
            for name, expression in selected:
                if names(what, name):
                    return expression
    expression = _expression(node, rows)
    if isinstance(expression, Constant):
        raise refused("GROUP BY", "has a constant, the same in every row", "name a column")
    return expression
