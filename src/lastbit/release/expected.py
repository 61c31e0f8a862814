"""The error before you pay: of every column, for a group of so many rows; and cheaper questions.

Law      an answer is made up without a row: a group of n rows whose values are spread evenly
         between their bounds, without noise. Half of the width of its intervals is the error to
         expect. Of a quantile it is the rank's error over n times the range of the bounds. n is,
         in this order: the middle one of the newest counts on record by the same keys; the recorded
         count of all rows, or the rows that the card declares, over the number of groups; 1,000
Theorem  counts and sums have just this error (`within.py`). Of others it is "about": it rests on n
         and on the spread. It is made of public facts and of recorded answers, so it is free
Checked  tests/release/test_expected.py
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

from lastbit.errors import LastbitError
from lastbit.files import exists
from lastbit.ledger import Ledger
from lastbit.release.derived import derived_columns
from lastbit.release.intervals import columns_of, errors_of
from lastbit.release.paying import MOST_LOOKED_AT
from lastbit.release.rehearsal import pretended
from lastbit.report import PlanFacts, grouped_up, plan_words as words_of_plan, printable
from lastbit.tables import Call, MarginalsPlan, Measure, Plan, Query, planned, weight_one

_PLAIN = 1_000  # rows of a group of which nothing is known
_WORTH = Fraction(3, 2)  # the least gain for which a cheaper question is named
_FEW = 8  # the most columns of which each is left out in turn: plans take time


def expected_errors(plan: Plan, rows: int) -> dict[str, Fraction]:
    """By column, half of the width of its interval, for a group of so many rows."""
    noisy, errors = pretended(plan, [0]), errors_of(plan)
    for measure in plan.measures:
        if measure.kind != "bins":
            row = weight_one(plan.card) * _typical(measure)
            noisy.entries[measure.name] = [round(rows * row)]
    columns = columns_of(plan, noisy)
    columns += derived_columns(plan, noisy, columns)
    ranks = {row.what: row.off for row in words_of_plan(plan).rows if row.off is not None}
    for part in plan.query.aggregates:
        off = next((off for what, off in ranks.items() if printable(part.name, 40) in what), None)
        if part.function == "quantile" and part.bounds is not None:
            share = Fraction(1, 2) if off is None else min(off / rows, Fraction(1, 2))
            errors[part.name] = share * (part.bounds[1] - part.bounds[0])
    for column in columns:
        low, high = column.cells[0].low, column.cells[0].high
        if low is not None and high is not None:
            errors.setdefault(column.aggregate, (Fraction(high) - Fraction(low)) / 2)
    return {name: errors[name] for name in plan.query.selected if name in errors}


def _typical(measure: Measure) -> Fraction:
    """What a row adds where values are spread evenly between their bounds."""
    most = max(abs(measure.lowest), abs(measure.highest))
    match measure.kind, measure.expression:
        case "squares", _:
            return Fraction(most**2, 3)
        case "values", Call("*", (first, second)) if first == second:
            return Fraction(most, 3)
        case "values" | "above" | "below", _:
            return Fraction(measure.lowest + measure.highest, 2)
    return Fraction(1 if measure.expression is None else Fraction(1, 2))


def group_rows(plan: Plan) -> tuple[int, str]:
    """How many rows a group has, as far as anybody knows, and where that is from."""
    counts = _recorded_counts(plan)
    if plan.query.keys in counts:
        return counts[plan.query.keys], "by a recorded count"
    every = counts.get((), plan.card.rows)
    if every is None:
        return _PLAIN, "say"
    source = "by a recorded count" if () in counts else "by the card"
    return max(every // (plan.query.groups or 1), 1), source


def _recorded_counts(plan: Plan) -> dict[Any, int]:
    """The newest counts of the same rows, by their keys: of several the one in the middle."""
    counts: dict[Any, int] = {}
    card, rows = plan.card, (plan.query.where, plan.query.joins, plan.query.per_unit)
    if card.ledger is None or not exists(card.ledger):
        return counts
    with suppress(LastbitError, KeyError):  # without a ledger that answers, by the card
        for entry in Ledger.open(card.ledger).answers(card.account_name, last=MOST_LOOKED_AT):
            record = entry.record or {}
            if record["table"] != card.name or "marginals" in record["plan"]:
                continue
            query = Query.from_json(record["asked"]["query"])
            functions = [c["function"] for c in record["columns"] if c["role"] == "value"]
            if (query.where, query.joins, query.per_unit) == rows and "count" in functions:
                place = functions.index("count")
                values = [row["cells"][place]["value"] for row in record["rows"]] or [1]
                counts.setdefault(query.keys, max(statistics.median_low(values), 1))
    return counts


def plan_words(plan: Plan | MarginalsPlan) -> PlanFacts:
    """The words for a plan, with the errors to expect and cheaper questions."""
    facts = words_of_plan(plan)
    if isinstance(plan, MarginalsPlan):
        return facts
    rows, source = group_rows(plan)
    errors = expected_errors(plan, rows)
    said = ", ".join(f"{printable(name, 40)} ± {grouped_up(e)}" for name, e in errors.items())
    group = "group" if plan.query.keys else "table"
    words = f"{said}, about, for a {group} of {rows:,} rows ({source}) with values spread evenly"
    hints = *facts.hints, *_cheaper(plan, rows, errors)
    return replace(facts, expected=(words,) if said else (), hints=hints)


def _cheaper(plan: Plan, rows: int, errors: dict[str, Fraction]) -> Iterator[str]:
    """Questions that say nearly the same with less noise, at the same price."""
    price: dict[str, Any] = {"delta": plan.asked.delta or None, "rho": plan.asked.rho}
    before, found = plan.query, errors
    for name, words, query, larger in _alternatives(plan):
        with suppress(LastbitError):
            if query is not before:  # one serves several columns
                before, found = query, {}
                other = planned(query, plan.card, epsilon=plan.asked.epsilon, **price)
                found = expected_errors(other, rows * larger)
            less = found.get(name)
            if less is not None and less * _WORTH <= errors.get(name, 0):
                now, then = grouped_up(errors[name]), grouped_up(less)
                yield f"{printable(name, 40)}: {words} would be about ± {then} instead of ± {now}"


def _alternatives(plan: Plan) -> Iterator[tuple[str, str, Query, int]]:
    """A column, how it could be asked for, the question, and by how much groups are larger."""
    query, unit = plan.query, printable(str(plan.card.unit), 40)
    parts, names = query.aggregates, [part.name for part in query.aggregates]
    for part in parts if plan.card.unit is not None else ():
        if part.function == "count" and part.expression is None:
            units = replace(part, function="count_units")
            changed = tuple(units if one == part else one for one in parts)
            yield part.name, f"COUNT(DISTINCT {unit})", replace(query, aggregates=changed), 1
    if (
        query.derived
        or query.having is not None
        or query.order
        or len(names) != len(query.selected)
    ):
        return
    for part in parts if 1 < len(parts) <= _FEW else ():
        fewer = tuple(one for one in parts if one != part)
        words = f"without {printable(part.name, 40)} it"
        other = replace(query, aggregates=fewer, shown=None)
        yield from ((one.name, words, other, 1) for one in fewer)
    for key in query.keys if len(query.keys) > 1 else ():
        keys, words = tuple(one for one in query.keys if one != key), f"not by {key.name} it"
        yield names[0], printable(words, 60), replace(query, keys=keys), len(key.values or ((),))
