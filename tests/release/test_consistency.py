"""Consistent counts: whole, not negative, adding up."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, strategies as st

from lastbit.release.answer import consistent, nearest_counts
from lastbit.tables.query.query import Query
from tests.report.answer_records import count


@given(st.lists(st.integers(-50, 50), max_size=8))
def test_nearest_counts(values: list[int]) -> None:
    counts, total = nearest_counts(values)
    assert sum(counts) == total == max(sum(values), 0)
    assert min(counts, default=0) >= 0
    if all(v >= 0 for v in values):
        assert counts == values
    # moving one from any to any other does not come nearer than rounding allows
    far = sum((a - b) ** 2 for a, b in zip(values, counts, strict=True))
    for i in range(len(counts)):
        for j in range(len(counts)):
            if i != j and counts[i]:
                other = list(counts)
                other[i] -= 1
                other[j] += 1
                assert far <= sum((a - b) ** 2 for a, b in zip(values, other, strict=True)) + 2


def cell(value: int) -> dict[str, int | float]:
    return {"value": value, "standard_error": 1.5, "low": value - 3, "high": value + 3}


def test_a_record_is_made_consistent() -> None:
    columns = [
        {"name": "g", "role": "key", "function": None},
        {"name": "n", "role": "value", "function": "count"},
        {"name": "u", "role": "value", "function": "count_units"},
        {"name": "m", "role": "value", "function": "mean"},
    ]
    rows = [{"keys": [], "cells": [cell(v), cell(v), cell(v)]} for v in (9, -2, 1)]
    query = Query(table="visits", aggregates=(count(),))
    asked = {"query": query.to_json()}
    record = {"columns": columns, "rows": rows, "asked": asked, "notes": []}
    made = consistent(record)
    found = [[c["value"] for c in row["cells"]] for row in made["rows"]]
    assert [row[0] for row in found] == [8, 0, 0] and made["totals"] == [8, None, None]
    assert [row[1] for row in found] == [9, 0, 1]
    assert [row[2] for row in found] == [9, -2, 1]
    assert made["rows"][1]["cells"][0]["low"] == 0
    assert rows[1]["cells"][0]["value"] == -2  # the record itself is left as it is
    cut = {**record, "asked": {"query": replace(query, limit=2).to_json()}}
    assert consistent(cut)["totals"] == [None, None, None]
