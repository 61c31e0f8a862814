"""Questions that a recorded answer answers too: other names, fewer columns, another order or cut.

What was released and paid for may be shown again, cut and sorted in any way, at no charge.

Law      a record serves a question if
           - it is about the same data, by the same card: the digest of its own question, computed
             again from the card and data at hand, is the one it has
           - table, sub-query, joins, WHERE and keys are the same, whatever the keys are called
           - each aggregate asked for is among those recorded, with at most the noise that the
             question's own plan would add, and keys are found with at most its threshold
           - the record has every row that is asked for: it was not cut, or was cut by conditions
             that are asked for too, or by the same conditions, order and a LIMIT not below
         Anything that is not known here (formulas, other parts of a plan) is not served
Theorem  post-processing: nothing but released numbers is used. No number is noisier than what would
         have been bought. A row that the record has not is one that the question does not show
Differs  the noise is that of the record, so two such answers agree with each other
Checked  tests/release/test_recorded.py
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

from lastbit.canonical import digest_of
from lastbit.kernel import question_of
from lastbit.release.formulas import shown_rows
from lastbit.release.views import key_value
from lastbit.tables import (
    AnyPart,
    Call,
    ColumnName,
    Expression,
    GaussianPart,
    GaussianSelection,
    LaplacePart,
    MarginalsPlan,
    PairSelection,
    PartitionSelection,
    Plan,
    Query,
    RankPart,
    Selection,
    TreePart,
    WrittenPlan,
    columns_in,
)

Json: TypeAlias = Mapping[str, Any]

NOTE = (
    "From the record: an earlier answer holds these numbers, so nothing was charged. Saved, it is "
    "the whole earlier answer with its certificate."
)


def served(record: Json, plan: Plan, *, sql: str | None) -> dict[str, Any] | None:
    """The record with what the question asks of it, and nothing else; None if it does not serve.

    That it is about the same data and card is for the caller to see.
    """
    old, new = Query.from_json(record["asked"]["query"]), plan.query
    if old.shown is not None or new.shown is not None:  # formulas
        return None
    if any(getattr(old, field) != getattr(new, field) for field in _SAME):
        return None
    asked, known = new.to_json(), record["asked"]["query"]
    keys, parts = (_matched(asked[name], known[name]) for name in ("keys", "aggregates"))
    if keys is None or parts is None or len(set(keys)) != len(old.keys):
        return None
    pairs = [(n.name, old.aggregates[i].name) for n, i in zip(new.aggregates, parts, strict=True)]
    if not _quiet(WrittenPlan.from_json(record["plan"]), plan.written, pairs):
        return None
    if not _covers(old, new, keys, parts):
        return None
    return _view(record, new, old, keys, parts, sql=sql)


def view_of(record: Json, query: Query, *, sql: str | None, note: str) -> dict[str, Any]:
    """What a question asks of a record that was made to hold it, whatever its noise."""
    known, asked = record["asked"]["query"], query.to_json()
    keys, parts = (_matched(asked[name], known[name]) for name in ("keys", "aggregates"))
    assert keys is not None and parts is not None
    view = _view(record, query, Query.from_json(known), keys, parts, sql=sql)
    return {**view, "notes": [*record["notes"], note]}


_SAME = ("table", "where", "joins", "per_unit")


def question_of_plan(plan: Plan | MarginalsPlan, data: str | None) -> str:
    """Digest of everything the answer depends on except the noise: query, price, card, data."""
    asked = {"query": plan.query.to_json(), **plan.asked.to_json()}
    question = question_of(asked, plan.card, data)
    if isinstance(plan, Plan):
        return question
    tables, pairs = list(map(list, plan.names)), plan.selection
    picks = 0 if pairs is None else pairs.picks
    return digest_of({"question": question, "marginals": tables, "pairs": picks})


def _matched(wanted: Iterable[Json], known: Iterable[Json]) -> list[int] | None:
    """Where each of these is among the known ones, whatever they are called."""
    # as JSON, which tells 1 from true in a list of keys
    listed, asked = ([{**one, "name": ""} for one in some] for some in (known, wanted))
    return [listed.index(one) for one in asked] if all(one in listed for one in asked) else None


# ---------------------------------------------------------------- noise


def _quiet(old: WrittenPlan, new: WrittenPlan, pairs: Iterable[tuple[str, str]]) -> bool:
    """Whether the recorded columns have at most the noise of the new plan; pairs are (new, old)."""
    before, after = (
        [part for part in plan.parts if isinstance(part, Selection)] for plan in (old, new)
    )
    if len(before) != len(after) or not all(map(_at_most, before, after)):
        return False
    for ours, theirs in pairs:
        known, wanted = _noise_of(old, theirs), _noise_of(new, ours)
        if _counts_by_ends(known, wanted):
            continue
        if known.keys() != wanted.keys() or not known:
            return False
        if not all(_at_most(known[role], wanted[role]) for role in known):
            return False
    return True


def _counts_by_ends(known: Mapping[Any, AnyPart], wanted: Mapping[Any, AnyPart]) -> bool:
    """Whether a count made of two ends has at most the noise of one that is counted by itself."""
    ends = {key[0]: (key[2].highest, part) for key, part in known.items()}
    rows = [part for key, part in wanted.items() if key[0] == "rows"]
    if set(ends) != {"above", "below"} or len(rows) != 1 or len(wanted) != 1:
        return False
    steps, noise = ends["above"]
    match noise, rows[0]:
        case LaplacePart(), LaplacePart():
            # in 95 % of releases the sum of two is within 1.372 times what one is within
            return bool(noise.scale * Fraction(3, 2) <= rows[0].scale * steps)
        case GaussianPart(), GaussianPart():
            return bool(2 * noise.variance <= rows[0].variance * steps**2)
    return False


def _noise_of(plan: WrittenPlan, name: str) -> dict[Any, AnyPart]:
    """The mechanisms behind one column, by what they measure; {} if that is not understood."""
    # the same sum of the same values is another measure where it is scaled otherwise
    measures = {measure.name: replace(measure, name="") for measure in plan.measures}
    recipe = next(one for one in plan.recipes if one.aggregate == name)
    found: dict[Any, AnyPart] = {}
    for kind, measure in recipe.measures.items():
        own = [p for p in plan.parts if not isinstance(p, PairSelection) and p.measure == measure]
        kinds = LaplacePart | GaussianPart | TreePart
        noises: list[AnyPart] = [part for part in own if isinstance(part, kinds)]
        ranks: list[AnyPart] = [p for p in own if isinstance(p, RankPart) and p.aggregate == name]
        counted: list[AnyPart] = [part for part in own if isinstance(part, Selection)]
        if not (noises or ranks or counted):
            return {}
        for part in noises or ranks or counted:
            role = (part.role, part.level) if isinstance(part, RankPart) else None
            found[kind, role, measures[measure]] = part
    return found


def _at_most(old: AnyPart, new: AnyPart) -> bool:
    """Whether one mechanism is the other one with no more noise, and no higher a threshold."""
    match old, new:
        case LaplacePart(), LaplacePart():
            return old.scale <= new.scale
        case GaussianPart(), GaussianPart():
            return old.variance <= new.variance
        case TreePart(), TreePart():
            return old.tree == new.tree and _at_most(old.noise, new.noise)
        case RankPart(), RankPart():  # the rate sharpens it
            return old.candidates == new.candidates and old.rate >= new.rate
        case PartitionSelection(), PartitionSelection():
            quiet = old.scale <= new.scale and old.threshold <= new.threshold
            return quiet and old.keys_per_person == new.keys_per_person
        case GaussianSelection(), GaussianSelection():
            if (old.keys_per_person, old.weight_one) != (new.keys_per_person, new.weight_one):
                return False
            if old.variance > new.variance or old.threshold > new.threshold:
                return False
            one, other = old.single, new.single
            if one is None or other is None:
                return one is other
            return one.scale <= other.scale and one.threshold <= other.threshold
    return False


# ---------------------------------------------------------------- rows


def _covers(old: Query, new: Query, keys: list[int], parts: list[int]) -> bool:
    """Whether the record has every row that the question shows."""
    named = _places(new, keys, parts)
    before = _places(old, range(len(old.keys)), range(len(old.aggregates)))
    known, wanted = _tests(old.having, before), _tests(new.having, named)
    if known is None or wanted is None:
        return False
    if old.limit is None:
        return all(test in wanted for test in known)
    orders = [
        [(places[one.name.lower()], one.descending) for one in query.order]
        for query, places in ((old, before), (new, named))
    ]
    limited = new.limit is not None and new.limit <= old.limit
    same = sorted(map(repr, known)) == sorted(map(repr, wanted))
    return limited and orders[0] == orders[1] and same


def _places(query: Query, keys: Iterable[int], parts: Iterable[int]) -> dict[str, str]:
    """The columns of an answer by what the record has them as."""
    found = {key.name.lower(): f"key {i}" for key, i in zip(query.keys, keys, strict=True)}
    aggregates = zip(query.aggregates, parts, strict=True)
    return found | {part.name.lower(): f"part {i}" for part, i in aggregates}


def _tests(having: Expression | None, places: Mapping[str, str]) -> list[Expression] | None:
    """The conditions that must all hold, with the record's own names; None if one is unknown."""
    if having is None:
        return []
    if not all(column.name.lower() in places for column in columns_in(having)):
        return None
    both = isinstance(having, Call) and having.function == "and"
    tests = having.arguments if both else (having,)  # type: ignore[union-attr]  # a call
    return [_renamed(test, places) for test in tests]


def _renamed(expression: Expression, places: Mapping[str, str]) -> Expression:
    match expression:
        case ColumnName(name):
            return ColumnName(places[name.lower()])
        case Call(function, arguments):
            return Call(function, tuple(_renamed(part, places) for part in arguments))
    return expression


def _view(
    record: Json, query: Query, old: Query, keys: list[int], parts: list[int], *, sql: str | None
) -> dict[str, Any]:
    values = [column for column in record["columns"] if column["role"] == "value"]
    columns: list[dict[str, Any]] = [
        {"name": key.name, "role": "key", "function": None} for key in query.keys
    ]
    chosen: list[int] = []
    for part, place in zip(query.aggregates, parts, strict=True):
        known = old.aggregates[place].name
        for i, column in enumerate(values):
            if column.get("aggregate", column["name"]) == known:
                named = part.name + column["name"].removeprefix(known)
                own = {"aggregate": part.name} if "aggregate" in column else {}
                columns.append({**column, "name": named, **own})
                chosen.append(i)
    rows = [
        {"keys": [row["keys"][i] for i in keys], "cells": [row["cells"][i] for i in chosen]}
        for row in record["rows"]
    ]
    released = [
        [*map(key_value, row["keys"]), *(cell["value"] for cell in row["cells"])] for row in rows
    ]
    left = shown_rows(query, [column["name"] for column in columns], released)
    whole, named = record.get("whole"), zip(query.aggregates, parts, strict=True)
    rests = (
        {part.name: whole["columns"][old.aggregates[i].name] for part, i in named} if whole else {}
    )
    return {
        **record,
        "asked": {**record["asked"], "query": query.to_json(), "sql": sql},
        "columns": columns,
        "rows": [rows[i] for i in left],
        "notes": [*record["notes"], NOTE],
        **({"whole": {**whole, "columns": rests}} if whole else {}),
    }
