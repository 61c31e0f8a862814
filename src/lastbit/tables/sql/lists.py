"""UNNEST: a row for each element of a list, in FROM or as a column of SELECT.

Law      FROM t, UNNEST(codes) AS u(code), and the same with CROSS JOIN, JOIN ... ON and LATERAL, is
         t with a row for each element; SELECT UNNEST(codes) AS code FROM t WHERE ... has the same
         rows of those that pass WHERE, which cannot see the element
Theorem  what ON says is a condition, as in WHERE: an inner join has the rows of the product that
         pass it. A filter that sees no element passes all of a row's elements or none
Differs  from DuckDB, a list is named by a column alone, once in a SELECT; LEFT JOIN is refused
Checked  tests/tables/test_unnest.py
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from lastbit.tables.limits import refused
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.sub_query import unrolled_card
from lastbit.tables.query.units import ListJoin
from lastbit.tables.sql.parse import kind_of, name_of, taken
from lastbit.tables.sql.rows import Elements, SelectedRows
from lastbit.tables.sql.words import written

_SPELLED = "write FROM visits, UNNEST(visits.codes) AS u(code)"
_HIDDEN = "elements of SELECT"
"""What the elements of a list in SELECT are called: WHERE does not see them."""


@dataclass(frozen=True, slots=True)
class Unrolled:
    """A list that is made rows, and what it and its elements are called."""

    column: Any
    called: str
    names: tuple[str, ...]


def without_lists(select: Any) -> tuple[Any, list[Unrolled]]:
    """The SELECT without UNNEST, and the lists of which it makes rows."""
    if not any(True for _ in _own_lists(select)):
        return select, []
    select = select.copy()
    found, left = [], []
    for join in select.args.get("joins") or []:
        unrolled = _in_from(join.this)
        if unrolled is None:
            left.append(join)
            continue
        found.append(unrolled)
        for test in _tests(join):
            select.where(test, copy=False)
    select.set("joins", left)
    for item in select.expressions:
        value = item.this if kind_of(item) == "Alias" else item
        if kind_of(value) not in ("Explode", "Unnest"):
            continue
        found.append(Unrolled(_list_in(value), _HIDDEN, (_HIDDEN,)))
        element = exp.column(_HIDDEN, table=_HIDDEN, quoted=True)
        named = value is not item
        value.replace(element if named else exp.alias_(element, written(value), quoted=True))
    for node in _own_lists(select):
        problem = "stands inside an expression"
        raise refused(written(node), problem, f"{_SPELLED}, and name the element")
    if len(found) > 1:
        problem = "is there twice, and the lists of a row would be paired or multiplied"
        raise refused("UNNEST", problem, "ask of each list by itself")
    return select, found


def with_elements(rows: SelectedRows, lists: list[Unrolled]) -> SelectedRows:
    """The rows, one for each element of these lists."""
    for one in lists:
        what, table = taken(one.column, "this", "table")
        every = list(rows.meant(what, table))
        if len(every) != 1:
            rows.resolve(one.column)  # which says what is wrong
        (column,) = every
        plain = isinstance(column, ColumnName) and column.table is None and rows.per_unit is None
        if not plain or not rows.base.column(column.name).is_list:  # type: ignore[union-attr]
            problem, remedy = "is not a column of lists", "declare its type as a list, text[] say"
            raise refused(f"UNNEST({name_of(what)})", problem, remedy)
        if rows.called is not None and rows.called.lower() == one.called.lower():
            raise refused(f"UNNEST ... AS {one.called}", "has the name of a table", "rename it")
        elements = Elements(dict.fromkeys(one.names, column), by_name=one.called != _HIDDEN)
        join = ListJoin(column=column)  # type: ignore[arg-type]  # as was just seen
        joins = (*rows.joins, join)
        rows = replace(
            rows,
            base=unrolled_card(rows.base, joins),
            columns={name: e for name, e in rows.columns.items() if e != column},
            public={**rows.public, one.called: elements},
            joins=joins,
        )
    return rows


def _own_lists(select: Any) -> Iterator[Any]:
    """UNNEST in this SELECT, and not in those inside of it; but what FROM has of them alone."""
    for node in select.find_all(exp.Explode, exp.Unnest):
        owner = node.find_ancestor(exp.Select)
        while owner is not None and owner is not select and _is_bare(owner):
            owner = owner.find_ancestor(exp.Select)
        if owner is select:
            yield node


def _is_bare(select: Any) -> bool:
    """Whether it is (SELECT UNNEST(codes) AS code), with no FROM of its own."""
    return select.args.get("from_") is None and len(select.expressions) == 1


def _in_from(node: Any) -> Unrolled | None:
    """The list that stands in FROM, behind a comma or JOIN."""
    alias = node.args.get("alias")
    while kind_of(node) in ("Lateral", "Subquery"):
        wanted = ("this", "alias")
        ignored = ("view", "outer") if kind_of(node) == "Lateral" else ()
        if kind_of(node.this) not in ("Unnest", "Explode", "Subquery", "Select"):
            return None
        if kind_of(node.this) == "Select" and not _is_bare(node.this):
            return None
        inner, _ = taken(node, *wanted, ignored=ignored)
        node = inner
    name = None
    if kind_of(node) == "Select":
        ((item,),) = taken(node, "expressions")
        if kind_of(item) == "Alias":
            value, given = taken(item, "this", "alias")
            node, name = value, name_of(given)
        else:
            node = item
    if kind_of(node) not in ("Unnest", "Explode"):
        return None
    columns = list(alias.args.get("columns") or []) if alias is not None else []
    called = name_of(alias.this) if alias is not None and alias.this is not None else "unnest"
    if len(columns) > 1:
        raise refused("UNNEST", "gives one column, the element", _SPELLED)
    if columns:
        return Unrolled(_list_in(node), called, (name_of(columns[0]),))
    if name is not None:
        return Unrolled(_list_in(node), called, (name,))
    # DuckDB calls the column unnest, and lets the name of a table of one column mean it too
    return Unrolled(_list_in(node), called, tuple(dict.fromkeys(("unnest", called))))


def _list_in(node: Any) -> Any:
    """The column that UNNEST names."""
    if node.args.get("offset"):
        problem = "numbers the elements, and their order has no meaning here"
        raise refused("WITH ORDINALITY", problem, "leave it out")
    listed = [node.this] if kind_of(node) == "Explode" else node.expressions
    further = node.expressions if kind_of(node) == "Explode" else []
    if len(listed) != 1 or further or kind_of(listed[0]) != "Column":
        raise refused(written(node), "is not of a column of lists alone", _SPELLED)
    return listed[0]


def _tests(join: Any) -> Iterator[Any]:
    """What ON says of a join with a list; that it keeps all rows, or is of another kind, is not."""
    _, on, kind, side = taken(join, "this", "on", "kind", "side")
    if side or str(kind or "INNER").upper() not in ("INNER", "CROSS"):
        problem = "would keep rows without elements"
        raise refused(f"{side or kind} JOIN UNNEST", problem, "write CROSS JOIN UNNEST(...)")
    if on is not None and not (kind_of(on) == "Boolean" and on.this):
        yield on
