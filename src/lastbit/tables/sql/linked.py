"""JOINs that write out the way to the unit, which is made anyway: FROM items JOIN orders ON ...

Law      a SELECT from the card's table that joins tables on the way to the unit means what it means
         without these joins, if it says of each step what the card says, and starts at the first;
         what ON says besides is a condition, as in WHERE. Anything else is refused
Theorem  it is the same question: all steps are made in any case (`compile/reached.py`), and an
         inner join has the rows of the product that pass ON
Checked  tests/tables/test_reached.py
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from sqlglot import exp

from lastbit.tables.card.schema import DataCard, LinkedTable
from lastbit.tables.limits import refused
from lastbit.tables.sql.parse import kind_of, name_of, names, taken

Called = Mapping[str, str]


def without_linked(select: Any, card: DataCard, defined: Container[str]) -> tuple[Any, Called]:
    """The SELECT without joins that are made anyway; and what it calls the tables of these."""
    begin = select.args.get("from_")
    every = [join.this for join in select.args.get("joins") or []]
    every = every if begin is None else [begin.this, *every]
    tables = {id(node): _linked(node, card, defined) for node in every}
    if not any(tables.values()):
        return select, {}
    select = select.copy()
    joins = select.args.get("joins") or []
    sources = [select.args["from_"].this, *(join.this for join in joins)]
    steps = {i: _linked(node, card, defined) for i, node in enumerate(sources)}
    own = [i for i, node in enumerate(sources) if _is_card(node, card, defined)]
    if not own and card.unnamed and _is_unknown(sources[0], card, defined):
        own = [0]  # which a statement may call as it likes
    called = {
        _called(node, step.name): step.name for i, node in enumerate(sources) if (step := steps[i])
    }
    if len(own) != 1 or len(set(called.values())) < sum(map(bool, steps.values())):
        raise _unknown(next(filter(None, steps.values())), card)
    for i in (*own, *(i for i, step in steps.items() if step)):
        _check_plain(sources[i])
    tests = [test for join in joins for test in _tests(join, steps, own, card)]
    begins = {_called(sources[own[0]], name_of(sources[own[0]].this)): None, **called}
    for step in card.through:
        for pair in step.on if step.name in called.values() else ():
            match = [test for test in tests if _says(test, pair, step, begins, card)]
            if not match:
                raise _unknown(step, card)
            tests = [test for test in tests if test not in match]
    deepest = max(i for i, one in enumerate(card.through) if one.name in called.values())
    if len(called) != deepest + 1:  # a step between is not written
        raise _unknown(card.through[deepest], card)
    if steps[0]:  # the card's table takes its place
        select.args["from_"].set("this", sources[own[0]])
    moved = own if steps[0] else []
    left = [join for i, join in enumerate(joins, start=1) if not steps[i] and i not in moved]
    select.set("joins", left)
    for test in tests:
        select.where(test, copy=False)
    return select, called


def _linked(node: Any, card: DataCard, defined: Container[str]) -> LinkedTable | None:
    """The table on the way that a node of FROM names."""
    if kind_of(node) != "Table" or kind_of(node.this) != "Identifier":
        return None
    if name_of(node.this).lower() in defined:
        return None
    return next((one for one in card.through if names(node.this, one.name)), None)


def _is_card(node: Any, card: DataCard, defined: Container[str]) -> bool:
    plain = kind_of(node) == "Table" and kind_of(node.this) == "Identifier"
    return plain and name_of(node.this).lower() not in defined and names(node.this, card.name)


def _is_unknown(node: Any, card: DataCard, defined: Container[str]) -> bool:
    """Whether a node of FROM has a name that no table of the card has, and no sub-query."""
    if kind_of(node) != "Table" or kind_of(node.this) != "Identifier":
        return False
    known = (*card.public, *card.private, *(one.name for one in card.through))
    if name_of(node.this).lower() in defined:
        return False
    return not any(names(node.this, name) for name in known)


def _called(node: Any, name: str) -> str:
    """What a table is called here, in small letters."""
    return str(node.alias or name).lower()


def _check_plain(node: Any) -> None:
    """That a table is named, and called something, and no more: no sample, no names of columns."""
    _, alias = taken(node, "this", "alias")
    if alias is not None:
        taken(alias, "this")


def _tests(
    join: Any, steps: Mapping[int, LinkedTable | None], own: Container[int], card: DataCard
) -> Iterator[Any]:
    """What ON and USING of the joins with these tables say, one by one."""
    place = join.parent.args["joins"].index(join) + 1
    first = steps[place] or (steps[0] if place in own else None)
    if first is None:
        return
    plain = str(join.args.get("kind") or "INNER").upper() == "INNER" and not join.args.get("side")
    on, using = join.args.get("on"), join.args.get("using") or []
    if not plain or not (on or using) or join.args.get("method"):
        raise _unknown(first, card)
    for name in using:
        column = name_of(name)
        yield exp.EQ(this=exp.column(column), expression=exp.column(column))
    if on is not None:
        yield from on.flatten() if kind_of(on) == "And" else [on]


def _says(
    test: Any,
    pair: tuple[str, str],
    step: LinkedTable,
    called: Mapping[str, str | None],
    card: DataCard,
) -> bool:
    """Whether a test says that the columns of a step are equal."""
    if kind_of(test) != "EQ" or {kind_of(test.this), kind_of(test.expression)} != {"Column"}:
        return False
    before = card.through.index(step) - 1
    owner = None if before < 0 else card.through[before]
    own = pair[0] if owner is None else owner.own_name(pair[0])
    return any(
        _is(one, own, None if owner is None else owner.name, called)
        and _is(other, pair[1], step.name, called)
        for one, other in ((test.this, test.expression), (test.expression, test.this))
    )


def _is(node: Any, column: str, table: str | None, called: Mapping[str, str | None]) -> bool:
    """Whether a node is this column, of this table if it says of which."""
    if kind_of(node.this) != "Identifier" or not names(node.this, column):
        return False
    return not node.table or called.get(node.table.lower(), "") == table


def _unknown(step: LinkedTable, card: DataCard) -> Exception:
    before = card.through.index(step)
    owner = card.name if before == 0 else card.through[before - 1].name
    pairs = " AND ".join(
        f"{owner}.{a if before == 0 else card.through[before - 1].own_name(a)} = {step.name}.{b}"
        for a, b in step.on
    )
    problem = "is on the way to the unit, and is joined as the card says"
    remedy = f"leave the join out, or write JOIN {step.name} ON {pairs}"
    return refused(f"JOIN {step.name}", problem, remedy)
