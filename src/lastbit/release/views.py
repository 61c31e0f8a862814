"""A record as its question shows it: some of its columns, and functions of its keys.

Law      `tables/query/view.py` says which columns, made of what, in which order
Theorem  post-processing: a function of the record. What is saved is the record, whole, with its
         certificate; counts are made consistent, and intervals simultaneous, before rows are cut
Checked  tests/release/test_views.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from lastbit.release.formulas import sorted_rows
from lastbit.report import printable
from lastbit.tables import Constant, Value, View, from_json, values_to_json


def key_value(data: Any) -> Any:
    """The value of a key, as a record has it."""
    constant = from_json(data)
    assert isinstance(constant, Constant)
    return constant.value


def seen(record: Mapping[str, Any], view: View) -> dict[str, Any]:
    """What the question shows of the record, and a note of what that leaves out."""
    numbers = [column for column in record["columns"] if column["role"] == "value"]
    keys = [tuple(map(key_value, row["keys"])) for row in record["rows"]]
    shown = view.shown(keys)
    listed = [_keys_to_json(column) for column in zip(*shown, strict=True)]
    rows = [
        {
            **row,
            "keys": [column[place] for column in listed],
            "cells": row["cells"] if view.numbers else [],
        }
        for place, row in enumerate(record["rows"])
    ]
    columns: dict[str, list[Any]] = {
        column["name"].lower(): [row["cells"][place]["value"] for row in record["rows"]]
        for place, column in enumerate(numbers)
    }
    for place, (name, _) in enumerate(view.released):
        columns[name.lower()] = [row[place] for row in keys]
    for place, one in enumerate(view.keys):
        columns[one.name.lower()] = [row[place] for row in shown]
    if view.sorts:
        made = view.sorted(keys)
        for place, one in enumerate(view.sorts):
            columns[one.name.lower()] = [row[place] for row in made]
    left = sorted_rows(range(len(rows)), view.order, columns)[: view.limit]
    more = {} if view.numbers or "totals" not in record else {"totals": None}
    return {
        **record,
        "columns": [
            *({"name": one.name, "role": "key", "function": None} for one in view.keys),
            *(numbers if view.numbers else ()),
        ],
        "rows": [rows[place] for place in left],
        "notes": [*record["notes"], *_notes(view, numbers)],
        **more,
    }


def _keys_to_json(values: Sequence[Value]) -> list[Any]:
    """As in a record, but of numbers the shortest text of the double."""
    return [
        {"type": "number", "value": repr(float(value))} if isinstance(value, Fraction) else told
        for value, told in zip(values, values_to_json(values), strict=True)
    ]


def _notes(view: View, numbers: list[Any]) -> list[str]:
    """What is made of keys, and what is released beside what is shown."""
    left = [*view.hidden, *(() if view.numbers else (column["name"] for column in numbers))]
    notes = []
    if view.computed:
        names = ", ".join(printable(name, 60) for name in view.computed)
        notes.append(f"Made of released keys, at no price: {names}.")
    if left:
        names = ", ".join(printable(name, 60) for name in left)
        notes.append(f"Released and on the record, though SELECT leaves it out: {names}.")
    return notes
