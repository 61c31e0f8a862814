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
from fractions import Fraction
from typing import Any, TypeAlias

from lastbit.kernel import question_of
from lastbit.release.answer import key_value
from lastbit.release.formulas import shown_rows
from lastbit.tables import Plan

Json: TypeAlias = Mapping[str, Any]

NOTE = (
    "From the record: an earlier answer holds these numbers, so nothing was charged. Saved, it is "
    "the whole earlier answer with its certificate."
)
_SAME = ("table", "where", "joins", "per_unit")
_KNOWN = frozenset((*_SAME, "keys", "aggregates", "having", "order", "limit"))


def served(record: Json, plan: Plan, *, sql: str | None) -> dict[str, Any] | None:
    """The record with what the question asks of it, and nothing else; None if it does not serve.

    That it is about the same data and card is for the caller to see.
    """
    old, new = record["asked"]["query"], plan.query.to_json()
    if not (old.keys() <= _KNOWN and new.keys() <= _KNOWN):
        return None
    if any(old.get(field) != new.get(field) for field in _SAME):
        return None
    keys = _matched(new["keys"], old["keys"])
    parts = _matched(new["aggregates"], old["aggregates"])
    if keys is None or parts is None or len(set(keys)) != len(old["keys"]):
        return None
    pairs = [
        (n["name"], old["aggregates"][i]["name"])
        for n, i in zip(new["aggregates"], parts, strict=True)
    ]
    if not _quiet(record["plan"], plan.to_json(), pairs):
        return None
    if not _covers(old, new, keys, parts):
        return None
    return _view(record, plan, keys, parts, sql=sql)


def question_of_plan(plan: Plan, data: str | None) -> str:
    """Digest of everything the answer depends on except the noise: query, price, card, data."""
    asked = {"query": plan.query.to_json(), **plan.asked.to_json()}
    return question_of(asked, plan.card, data)


def _matched(wanted: Iterable[Json], known: Iterable[Json]) -> list[int] | None:
    """Where each of these is among the known ones, whatever they are called."""
    listed = [_unnamed(one) for one in known]
    found = [_unnamed(one) for one in wanted]
    return [listed.index(one) for one in found] if all(one in listed for one in found) else None


def _unnamed(data: Json) -> dict[str, Any]:
    return {field: value for field, value in data.items() if field != "name"}


# ---------------------------------------------------------------- noise


def _quiet(old: Json, new: Json, pairs: Iterable[tuple[str, str]]) -> bool:
    """Whether the recorded columns have at most the noise of the new plan; pairs are (new, old)."""
    selections = [[part for part in plan["parts"] if part["part"] == "keys"] for plan in (old, new)]
    if len(selections[0]) != len(selections[1]):
        return False
    if not all(map(_at_most, *selections)):
        return False
    for ours, theirs in pairs:
        before, after = _noise_of(old, theirs), _noise_of(new, ours)
        if before.keys() != after.keys() or not before:
            return False
        if not all(_at_most(before[role], after[role]) for role in before):
            return False
    return True


def _noise_of(plan: Json, name: str) -> dict[Any, Json]:
    """The mechanisms behind one column, by what they measure; {} if that is not understood."""
    measures = {measure["name"]: _unnamed(measure) for measure in plan["measures"]}
    recipe = next(one for one in plan["recipes"] if one["aggregate"] == name)
    found: dict[Any, Json] = {}
    for kind, measure in recipe["measures"].items():
        own = [part for part in plan["parts"] if part.get("measure") == measure]
        noises = [part for part in own if part["part"] in ("noise", "tree")]
        ranks = [part for part in own if part["part"] == "rank" and part["aggregate"] == name]
        counted = [part for part in own if part["part"] == "keys"]
        if not (noises or ranks or counted):
            return {}
        for part in noises or ranks or counted:
            # the same sum of the same values is another measure where it is scaled otherwise
            meant = repr(sorted(measures[measure].items(), key=str))
            found[kind, part.get("role"), part.get("level"), meant] = part
    return found


def _at_most(old: Json, new: Json) -> bool:
    """Whether one mechanism is the other one with no more noise, and no higher a threshold."""
    alike = (
        "part",
        "mechanism",
        "candidates",
        "keys_per_person",
        "weight_one",
        "branching",
        "levels",
    )
    if any(old.get(field) != new.get(field) for field in alike):
        return False
    if ("single" in old) != ("single" in new):
        return False
    if "single" in old and not _at_most(old["single"], new["single"]):
        return False
    known = False
    for field in ("scale", "variance", "threshold"):
        if (field in old) != (field in new):
            return False
        if field in old:
            known = True
            if Fraction(old[field]) > Fraction(new[field]):
                return False
    if "rate" in old and "rate" in new:  # an exponential mechanism: the rate sharpens it
        return Fraction(old["rate"]) >= Fraction(new["rate"])
    return known


# ---------------------------------------------------------------- rows


def _covers(old: Json, new: Json, keys: list[int], parts: list[int]) -> bool:
    """Whether the record has every row that the question shows."""
    named = _places(new, keys, parts)
    before = _places(old, range(len(old["keys"])), range(len(old["aggregates"])))
    tests = [_tests(old["having"], before), _tests(new["having"], named)]
    if any(test is None for one in tests for test in one):
        return False
    if old["limit"] is None:
        return all(test in tests[1] for test in tests[0])
    orders = [
        [[places.get(name.lower()), falls] for name, falls in query["order"]]
        for query, places in ((old, before), (new, named))
    ]
    limited = new["limit"] is not None and new["limit"] <= old["limit"]
    return (
        limited
        and orders[0] == orders[1]
        and sorted(map(repr, tests[0])) == sorted(map(repr, tests[1]))
    )


def _places(query: Json, keys: Iterable[int], parts: Iterable[int]) -> dict[str, str]:
    """The columns of an answer by what the record has them as."""
    found = {key["name"].lower(): f"key {i}" for key, i in zip(query["keys"], keys, strict=True)}
    aggregates = zip(query["aggregates"], parts, strict=True)
    return found | {part["name"].lower(): f"part {i}" for part, i in aggregates}


def _tests(having: Any, places: Mapping[str, str]) -> list[Any]:
    """The conditions that must all hold, with the record's own names."""
    if having is None:
        return []
    several = isinstance(having, list) and having[:1] == ["and"]
    return [_renamed(test, places) for test in (having[1:] if several else [having])]


def _renamed(data: Any, places: Mapping[str, str]) -> Any:
    if isinstance(data, Mapping):
        if isinstance(data.get("column"), str):
            return {"column": places.get(data["column"].lower())}
        return dict(data)
    return [_renamed(part, places) for part in data] if isinstance(data, list) else data


def _view(
    record: Json, plan: Plan, keys: list[int], parts: list[int], *, sql: str | None
) -> dict[str, Any]:
    query, old = plan.query, record["asked"]["query"]
    values = [column for column in record["columns"] if column["role"] == "value"]
    columns: list[dict[str, Any]] = [
        {"name": key.name, "role": "key", "function": None} for key in query.keys
    ]
    chosen: list[int] = []
    for part, place in zip(query.aggregates, parts, strict=True):
        known = old["aggregates"][place]["name"]
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
    return {
        **record,
        "asked": {**record["asked"], "query": query.to_json(), "sql": sql},
        "columns": columns,
        "rows": [rows[i] for i in left],
        "notes": [*record["notes"], NOTE],
    }
