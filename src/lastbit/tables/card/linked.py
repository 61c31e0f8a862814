"""What columns of tables on the way to the unit are called on the card.

Law      a column is called as in its table, where no table before has one of this name; else by its
         table too: orders.status. So the columns of all tables are those of one card
Checked  tests/tables/test_reached.py
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping


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
