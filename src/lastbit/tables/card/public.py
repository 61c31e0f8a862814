"""What everybody may see of a card, as JSON, and back: columns, unit, bounds, keys, budget.

Theorem  `card_from_json(card_to_json(card))` differs from the card in where things are (sources,
         ledger, file), who may ask, and limits of the engine, and in nothing else. So a question
         has the same query, plan and price by either, unless it groups by a column of a public
         table, whose values are read there
Checked  tests/tables/test_public_card.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from typing import Any

from lastbit.errors import InvalidParameter
from lastbit.privacy import ADD_REMOVE, CHANGE_ONE
from lastbit.tables.card.budget import Budget
from lastbit.tables.card.column import Column
from lastbit.tables.card.linked import with_way
from lastbit.tables.card.schema import DataCard, LinkedTable, PrivateTable, PublicTable, Source

ELSEWHERE = Source(kind="parquet")
"""Of a table that is on a server: there is nothing here to read."""
_EXACT = re.compile(r"-?[0-9]{1,400}(/[0-9]{1,400})?", re.ASCII)
_AMOUNTS = ("epsilon", "delta", "rho", "order", "delta_kept")


def card_to_json(card: DataCard) -> dict[str, Any]:
    """Plain JSON, exact numbers as text; not a word of where the data are."""
    kept = card.budget
    return {
        "name": card.name,
        "account": card.account_name,
        "unit": card.unit,
        "max_rows": None if card.max_rows_open else card.max_rows,
        "max_groups": card.max_groups,
        "max_groups_assumed": card.max_groups_assumed,
        "neighbours": card.neighbours.relation,
        "columns": [_column(column) for column in card.columns.values()],
        "budget": None
        if kept is None
        else {"kind": kept.kind, **{name: _text(getattr(kept, name)) for name in _AMOUNTS}},
        "public": [
            {"name": name, "columns": dict(table.columns)} for name, table in card.public.items()
        ],
        "private": [
            {
                "name": name,
                "unit": table.unit,
                "max_rows": table.max_rows,
                "columns": [_column(column) for column in table.columns.values()],
            }
            for name, table in card.private.items()
        ],
        **({"through": list(map(_linked, card.through))} if card.through else {}),
    }


def _linked(one: LinkedTable) -> dict[str, Any]:
    return {
        "name": one.name,
        "on": [list(pair) for pair in one.on],
        "columns": dict(one.columns),
        "max_rows": one.max_rows,
    }


def card_from_json(data: Mapping[str, Any]) -> DataCard:
    """The card that `card_to_json` wrote, of a table that is elsewhere; all rules hold again."""
    try:
        kept = data["budget"]
        return with_way(
            DataCard(
                name=data["name"],
                account=None if data["account"] == data["name"] else data["account"],
                source=ELSEWHERE,
                unit=data["unit"],
                max_rows=1 if data["max_rows"] is None else data["max_rows"],
                max_rows_open=data["max_rows"] is None,
                max_groups=data["max_groups"],
                max_groups_assumed=data["max_groups_assumed"] is True,
                neighbours={"add-remove": ADD_REMOVE, "change-one": CHANGE_ONE}[data["neighbours"]],
                columns=_columns(data["columns"]),
                budget=None
                if kept is None
                else Budget(
                    kind=kept["kind"],
                    **{
                        name: exact_fraction(kept[name])
                        for name in _AMOUNTS
                        if kept[name] is not None
                    },
                ),
                public={
                    table["name"]: PublicTable(
                        name=table["name"], source=ELSEWHERE, columns=dict(table["columns"])
                    )
                    for table in data["public"]
                },
                private={
                    table["name"]: PrivateTable(
                        name=table["name"],
                        source=ELSEWHERE,
                        unit=table["unit"],
                        max_rows=table["max_rows"],
                        columns=_columns(table["columns"]),
                    )
                    for table in data["private"]
                },
                through=tuple(
                    LinkedTable(
                        name=one["name"],
                        source=ELSEWHERE,
                        on=tuple((own, other) for own, other in one["on"]),
                        columns=dict(one["columns"]),
                        max_rows=one["max_rows"],
                    )
                    for one in data.get("through", ())
                ),
            )
        )
    except InvalidParameter:
        raise
    except (AttributeError, LookupError, TypeError, ValueError, ArithmeticError):
        pass  # its message may quote what was sent
    raise InvalidParameter("the card", problem="is malformed", remedy="ask its server's steward")


def exact_fraction(text: object) -> Fraction:
    """The number that `str` of a fraction wrote; nothing else, as 1e999999999 would take for ever.

    >>> exact_fraction("-1/3")
    Fraction(-1, 3)
    """
    if isinstance(text, str) and _EXACT.fullmatch(text):
        return Fraction(text)
    raise ValueError("not an exact number")


def _text(number: Fraction | None) -> str | None:
    return None if number is None else str(number)


def _column(column: Column) -> dict[str, Any]:
    days = (key.isoformat() if isinstance(key, date) else key for key in column.keys or ())
    return {
        "name": column.name,
        "type": column.stored_type,
        "bounds": None if column.bounds is None else [str(bound) for bound in column.bounds],
        "step": _text(column.step),
        "keys": None if column.keys is None else list(days),
        "nullable": column.nullable,
        "description": column.description,
    }


def _columns(data: list[Mapping[str, Any]]) -> dict[str, Column]:
    found = {}
    for one in data:
        keys, bounds, step = one["keys"], one["bounds"], one["step"]
        if keys is not None and one["type"] == "date":
            keys = [None if key is None else date.fromisoformat(key) for key in keys]
        read = str if one["type"] in ("date", "timestamp") else exact_fraction
        low_high: Any = None if bounds is None else tuple(map(read, bounds))
        found[one["name"]] = Column(
            name=one["name"],
            type=one["type"],
            bounds=low_high,
            step=None if step is None else exact_fraction(step),
            keys=keys,
            nullable=one["nullable"] is True,
            description=one.get("description"),  # servers of old say none
        )
    return found
