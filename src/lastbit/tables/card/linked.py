"""Tables on the way from rows to their unit: what their columns are called, and what is no way.

Law      a column is called as in its table, where no table before has one of this name; else by its
         table too: orders.status. So the columns of all tables are those of one card
Law      each table is reached by columns of the one before, and the unit is a column of the last
Theorem  these rules are words for stewards: a plan by a card that breaks them is refused by the
         checker (`checker/units.py`), which reads the same of the plan
Checked  tests/tables/test_reached.py
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from math import prod

from lastbit.errors import InvalidParameter
from lastbit.tables.card.schema import DataCard, LinkedTable
from lastbit.tables.limits import MOST_MATCHES
from lastbit.tables.query.expression import StoredType


def name_on_card(table: str, column: str, taken: Collection[str]) -> str:
    """The name of a column, beside those that are taken.

    >>> name_on_card("orders", "customer", ["id"]), name_on_card("orders", "ID", ["id"])
    ('customer', 'orders.ID')
    """
    lowered = {name.lower() for name in taken}
    return f"{table}.{column}" if column.lower() in lowered else column


def meant_name(name: str, linked: Iterable[tuple[str, Mapping[str, str]]]) -> str:
    """The name on the card of what may be written with its table: orders.customer.

    `linked` are the tables, each with the names of its columns: those on the card, and its own.

    >>> meant_name("Orders.Customer", [("orders", {"customer": "customer"})])
    'customer'
    """
    for table, columns in linked:
        for known, own in columns.items():
            if name.lower() == f"{table}.{own}".lower():
                return known
    return name


def with_way(card: DataCard) -> DataCard:
    """The card itself, if the tables on the way lead from its rows to the unit."""
    there = [name.lower() for one in card.through for name in one.columns]
    here = {column.name.lower() for column in card.columns.values()} - set(there)
    if len(set(there)) < len(there):
        problem, remedy = "have two columns of one name", "rename one, or leave it out"
        raise InvalidParameter("through", problem=problem, remedy=remedy)
    taken = [name.lower() for name in (card.name, *card.public, *card.private)]
    for one in card.through:
        if one.name.lower() in taken:
            raise _wrong(one, "has the name of another table", "rename one of them")
        taken.append(one.name.lower())
        _check_columns(card, one, here)
        here = {name.lower() for name in one.columns}
    if card.through and (card.unit is None or card.unit.lower() not in here):
        problem = f"is not a column of {card.through[-1].name[:60]}, the last table on the way"
        remedy = "name the column there that says whose row it is"
        raise InvalidParameter("unit: column", problem=problem, remedy=remedy)
    if prod(one.max_rows for one in card.through) > MOST_MATCHES:
        problem = f"make more than {MOST_MATCHES} of one row"
        remedy = "leave max_rows of the tables on the way out, or lower it"
        raise InvalidParameter("through", problem=problem, remedy=remedy)
    return card


def _check_columns(card: DataCard, one: LinkedTable, here: Collection[str]) -> None:
    """That the columns that are equal are there, and have one type."""
    kinds: dict[str, StoredType] = {}
    if not one.on:
        raise _wrong(one, "says no columns that are equal", 'write on = {order_id = "id"}')
    for own, other in one.on:
        if own.lower() not in here:
            problem = f"is reached by {own[:60]}, which the table before does not have"
            remedy = "list the tables in order, each reached by columns of the one before"
            raise _wrong(one, problem, remedy)
        kind = kinds[other.lower()] = card.column(own).stored_type
        if kind not in ("integer", "text"):
            problem = f"is reached by {own[:60]}, which is of type {kind}"
            raise _wrong(one, problem, "declare both columns as integer or text")
    for name, other in one.columns.items():
        kind = card.column(name).stored_type
        if kinds.setdefault(other.lower(), kind) != kind:
            problem = f"is reached by its column {other[:60]}, which has two types"
            raise _wrong(one, problem, "declare both sides of the join of one type")


def _wrong(one: LinkedTable, problem: str, remedy: str) -> InvalidParameter:
    return InvalidParameter(f"linked table {one.name[:60]}", problem=problem, remedy=remedy)
