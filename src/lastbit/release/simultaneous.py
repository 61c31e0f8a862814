"""Intervals that hold all together: 95 % for a whole list of numbers, of an answer as it is.

Law      of the counts, bins and sums that an answer shows: as many as columns times groups, N.
         Their intervals are widened, each by the same chance of missing
Theorem  all N hold together in at least 95 % of all releases. Noises of different groups and of
         different measures are independent. If each misses with chance 1 - (19/20)**(1/N), all hold
         with chance 19/20 at least: exactly that of the largest of N noises. Where columns share
         a measure, a row of K numbers misses with K times the chance of one at most (union bound)
Differs  what is made of several noisy numbers (means, formulas, quantiles) keeps its own 95 %, and
         so does a count that decides whether its key is shown. The note says which are in it
Checked  tests/release/test_simultaneous.py
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from lastbit.errors import InvalidParameter
from lastbit.exact import arb_of, lower, upper, working_precision
from lastbit.release.joint import Coordinate, linear_reach
from lastbit.release.reach import BETA, MeasureNoise
from lastbit.report import printable
from lastbit.tables import NoisePart, Query, WrittenPlan

_COUNTS = ("count", "histogram", "count_units", "count_distinct")


def simultaneous(record: dict[str, Any]) -> dict[str, Any]:
    """The record as it is shown, with intervals that hold together, and a note that says so."""
    plan = WrittenPlan.from_json(record["plan"])
    check_simultaneous(Query.from_json(record["asked"]["query"]))
    if "before" in record:
        problem = "comes after counts were made consistent"
        raise InvalidParameter("simultaneous", problem=problem, remedy="take it before")
    noises = {part.measure for part in plan.parts if isinstance(part, NoisePart)}
    known = {
        recipe.aggregate: list(recipe.measures.values())
        for recipe in plan.recipes
        if recipe.function in (*_COUNTS, "sum") and noises >= set(recipe.measures.values())
    }
    columns = [column for column in record["columns"] if column["role"] == "value"]
    names = [column.get("aggregate", column["name"]) for column in columns]
    places = {place: known[name] for place, name in enumerate(names) if name in known}
    groups = len(record["rows"]) if plan.groups is None else plan.groups
    used = [measure for name in {names[place] for place in places} for measure in known[name]]
    apart = len(used) == len(set(used))
    beta = _each(groups * len(places)) if apart else _each(groups) / len(places)
    rows = [{**row, "cells": [dict(cell) for cell in row["cells"]]} for row in record["rows"]]
    for place, made_of in places.items():
        more = _half(plan, made_of, beta) - _half(plan, made_of, BETA)
        for cell in (row["cells"][place] for row in rows):
            if columns[place]["function"] in _COUNTS:
                cell["low"] -= math.ceil(more)
                cell["high"] += math.ceil(more)
            else:
                cell["low"] = lower(Fraction(cell["low"]) - more)
                cell["high"] = upper(Fraction(cell["high"]) + more)
    said = ", ".join(printable(columns[place]["name"], 40) for place in places) or "no column"
    note = (
        f"The intervals of {said} hold all together, {groups * len(places):,} numbers, in 95 % of "
        "all releases. Those of other columns hold each by itself."
    )
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
        return Fraction(lower(-(arb_of(1 - BETA).log() / max(numbers, 1)).expm1()))


def _half(plan: WrittenPlan, names: list[str], beta: Fraction) -> Fraction:
    """Half of the width of each interval of a column of these measures."""
    measures = {measure.name: measure for measure in plan.measures}
    laws = {part.measure: part.law for part in plan.parts if isinstance(part, NoisePart)}
    values = next((measures[name] for name in names if measures[name].kind == "values"), None)
    one = 1 if measures[names[0]].kind in ("units", "distinct") else plan.weight_one
    noises = [Coordinate(MeasureNoise(laws[name])) for name in names]
    if values is None or len(names) == 1 or values.centre == 0:
        place = 0 if values is None else names.index(values.name)
        unit = Fraction(1, one) if values is None else values.step / one
        return unit * noises[place].accuracy(beta)
    factors = [values.step if name == values.name else abs(values.centre) for name in names]
    sizes = np.array([[float(f) * one.scale] for f, one in zip(factors, noises, strict=True)])
    return Fraction(float(linear_reach(sizes * (1 + 2.0**-50), noises, beta)[0])) / one
