"""Counts made consistent on request: whole, not negative, and adding up to their total.

Law      in each column of counts of rows, let T be the sum of the noisy counts, rounded, or 0 if
         that is below 0. The counts become the nearest ones (least squares) that are not negative
         and add up to T, and are then rounded to whole numbers that still add up to T (largest
         remainders). Counts of units are made not negative only: one unit may be in several
         groups, so they do not add up to anything
Theorem  post-processing: nothing but released numbers is used, so nothing is paid. Intervals cover
         as before: true counts are not negative, so an end below 0 may be raised to 0; the value
         may lie elsewhere in the interval, which is widened to hold it
Checked  tests/release/test_consistency.py
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any


def consistent(record: dict[str, Any]) -> dict[str, Any]:
    """The record with consistent counts, and a total of each column of them where there is one.

    The rows as they were released stay in it (`before`), since the certificate is about them.
    """
    if "before" in record:
        return record
    values = [column for column in record["columns"] if column["role"] == "value"]
    rows = [{**row, "cells": [dict(cell) for cell in row["cells"]]} for row in record["rows"]]
    query = record["asked"]["query"]
    whole = query["having"] is None and query["limit"] is None
    totals: list[int | None] = []
    for place, column in enumerate(values):
        cells = [row["cells"][place] for row in rows]
        total = _made_consistent(cells, column["function"])
        totals.append(total if whole else None)
    note = "Counts were made whole, not negative and adding up to their total after the noise."
    made = {"rows": rows, "before": record["rows"], "totals": totals}
    return {**record, **made, "notes": [*record["notes"], note]}


def _made_consistent(cells: list[dict[str, Any]], function: str) -> int | None:
    total: int | None = None
    if function in ("count", "histogram"):
        counts, total = nearest_counts([cell["value"] for cell in cells])
    elif function == "count_units":
        counts = [max(cell["value"], 0) for cell in cells]
    else:
        return None
    for cell, count in zip(cells, counts, strict=True):
        cell["value"] = count
        cell["low"] = min(max(cell["low"], 0), count)
        cell["high"] = max(cell["high"], count)
    return total


def nearest_counts(values: list[int]) -> tuple[list[int], int]:
    """Whole numbers from 0 up that add up to the total, near the given ones; and the total.

    Theorem  the nearest point with x >= 0 and sum T is max(v - c, 0) for one c, found by sorting
    Source   Held, Wolfe, Crowder 1974

    >>> nearest_counts([5, -2, 4])
    ([4, 0, 3], 7)
    """
    total = max(sum(values), 0)
    if not total:
        return [0] * len(values), 0
    shift, running = Fraction(0), 0
    for rank, value in enumerate(sorted(values, reverse=True), start=1):
        running += value
        candidate = Fraction(running - total, rank)
        if value > candidate:
            shift = candidate
    moved = [max(value - shift, Fraction(0)) for value in values]
    floors = [int(number // 1) for number in moved]
    order = sorted(range(len(moved)), key=lambda i: (floors[i] - moved[i], i))
    for i in order[: total - sum(floors)]:
        floors[i] += 1
    return floors, total
