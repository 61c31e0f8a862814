"""Intervals that hold all together, in 95 % of releases, for a whole list of numbers.

Law      of the counts, bins and sums that an answer shows: as many as columns times groups, N.
         Their intervals are widened, each by the same chance of missing
Theorem  all N hold together in at least 95 % of all releases. Noises of different groups and of
         different measures are independent. If each misses with chance 1 - (19/20)**(1/N), all hold
         with chance 19/20 at least: exactly that of the largest of N noises. Where columns share
         a measure, a row of K numbers misses with K times the chance of one at most (union bound)
         Whole ends (`whole.py`) are functions of the noise ends with slopes of at most 1 over the
         least share s of rows that count: they move by that much more. Counts of units have
         2 sqrt((1-s) h) besides, which rises by 2 sqrt((1-s) d) at most as h does by d
Differs  what is made of several noisy numbers (means, formulas, quantiles) keeps its own
         chance, and so does a count that decides whether its key is shown. The note says which
         are in it
Checked  tests/release/test_simultaneous.py
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from lastbit.errors import InvalidParameter
from lastbit.exact import arb_of, lower, upper, working_precision
from lastbit.release.intervals import half_widths
from lastbit.release.reach import BETA
from lastbit.report import printable
from lastbit.tables import NoisePart, Query, WrittenPlan


def simultaneous(record: dict[str, Any]) -> dict[str, Any]:
    """The record as it is shown, with intervals that hold together, and a note that says so."""
    plan = WrittenPlan.from_json(record["plan"])
    check_simultaneous(Query.from_json(record["asked"]["query"]))
    if "before" in record:
        problem = "comes after counts were made consistent"
        raise InvalidParameter("simultaneous", problem=problem, remedy="take it before")
    noises = {part.measure for part in plan.parts if isinstance(part, NoisePart)}
    halves = half_widths(plan)
    made_of = {recipe.aggregate: [*recipe.measures.values()] for recipe in plan.recipes}
    known = [name for name in halves if noises >= set(made_of[name])]
    columns = [column for column in record["columns"] if column["role"] == "value"]
    names = [column.get("aggregate", column["name"]) for column in columns]
    places = [place for place, name in enumerate(names) if name in known]
    groups = len(record["rows"]) if plan.groups is None else plan.groups
    used = [measure for name in {names[place] for place in places} for measure in made_of[name]]
    apart = len(used) == len(set(used))
    numbers = max(groups * len(places), 1)
    wider = half_widths(plan, _each(numbers) if apart else _each(max(groups, 1)) / len(places))
    rows = [{**row, "cells": [dict(cell) for cell in row["cells"]]} for row in record["rows"]]
    limited = record.get("whole", {}).get("columns", {})
    for place in places:
        more = wider[names[place]] - halves[names[place]]
        share = limited.get(names[place], {}).get("share") or {"low": 1}
        least = Fraction(share["low"])
        slope, chance = 1 / least if least else Fraction(1), Fraction(0)
        if columns[place]["function"] == "count_units":
            chance = Fraction(upper(2 * math.sqrt(more * (1 - least))))
        farther = slope * (more + chance)
        for cell in (row["cells"][place] for row in rows):
            down, up = (math.floor, math.ceil) if isinstance(cell["low"], int) else (lower, upper)
            for low, high, by in (("low", "high", more), ("whole_low", "whole_high", farther)):
                if cell.get(low) is not None:
                    cell[low] = down(Fraction(cell[low]) - by)
                if cell.get(high) is not None:
                    cell[high] = up(Fraction(cell[high]) + by)
    said = ", ".join(printable(columns[place]["name"], 40) for place in places)
    note = (
        f"The noise intervals of {said} hold all together, {numbers:,} numbers, in 95 % of "
        "all releases. Those of other columns hold each by itself."
    )
    note = note if places else "No interval is wider: this answer shows no count and no sum."
    return {**record, "rows": rows, "notes": [*record["notes"], note]}


def check_simultaneous(query: Query) -> None:
    """Refuse, before anything is paid, an answer of which nobody knows how many groups it had."""
    if query.groups is None and (query.having is not None or query.limit is not None):
        problem = "needs the number of groups, and HAVING or LIMIT leaves some out"
        remedy = "declare the keys, or leave out HAVING and LIMIT"
        raise InvalidParameter("simultaneous", problem=problem, remedy=remedy)


def _each(numbers: int) -> Fraction:
    """1 - (19/20)**(1/numbers), rounded down."""
    with working_precision(128):
        return Fraction(lower(-(arb_of(1 - BETA).log() / numbers).expm1()))
