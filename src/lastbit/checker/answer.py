"""Whether a saved answer is the one that its certificate speaks of.

| part of the answer | must be |
|---|---|
| table, query, price asked, plan | those of the certificate |
| cost | that of the plan, and what was asked for: delta may be left over |
| guarantee, notes | the sentences that follow from the plan, letter for letter |
| note "Not recorded" | there exactly if the certificate names no ledger |
| entry | none without a ledger; a later one than that which the certificate names |
| columns | those that the query asks for, in order |
| rows | as many keys and cells as there are columns; declared keys; no more than the limit |
| | all that the question asks for, in its order, as far as that can be seen (`having.py`) |
| derived columns | the formulas over the other columns of the row (`derived.py`) |
| columns and rows | of the digest that the certificate names |
| rows of contingency tables | every cell once; agreeing, as `marginals.py` says |
| rows made consistent | the nearest whole counts, worked out again from the rows before |

Of the digest of the question and the ledger's entry only the form is checked; of the SQL text and
the version of lastbit nothing is.

Theorem  `guarantee_of` and `notes_of` depend on the certified plan alone. A saved answer whose
         sentences are these, letter for letter, says nothing else: no other number, no other unit,
         no second claim, no digits of another script
Differs  names (of the unit's column, of columns of the answer) are whatever the card and the query
         call them. A name that is not a plain word is quoted and its odd letters are escaped, so
         that it is not taken for a part of the sentence
Checked  tests/release/test_words.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from math import isfinite
from typing import Any, TypeAlias

from .formulas import check_shown, check_values, remarks_on_shown
from .numbers import Json, Rejected, digest, ratio, require
from .query import constant_of
from .release import HASH, same
from .shown import ShownQuestion, shown_question
from .tables import check_tables
from .whole import check_ends, check_whole

UNRECORDED = "Not recorded: no ledger was given, so nobody counts what this answer cost."
CONSISTENT = "Counts were made whole, not negative and adding up to their total after the noise."
# Each sentence as answers say it now, then as they said it before; of two versions before, the
# older one stands last, and of one that has not changed only that one.
_Versions: TypeAlias = tuple[str, ...]
_INTERVALS: _Versions = (
    "Each noise ± covers noise only, in 95 % of releases. Bias from limits and rounding comes on "
    "top; the whole interval covers that of limits.",
    "The noise ± holds the number without noise in 95 % of all releases, each by itself. What "
    "limits on rows, groups and values left out is in the whole interval alone.",
    "Intervals hold the number without noise in 95 % of all releases. They do not cover what "
    "limits on rows, bounds and rounding did to the data, and nobody may know if they did.",
)
_BELONGS: _Versions = (
    "Each interval is that of the noisy count; the consistent count has a standard error. Whole "
    "tables agree too, and hold no counts below 0.",
    "An interval belongs to the noisy count of its cell; the consistent count has the standard "
    "error beside it. Whole tables agree as well, and are not below 0.",
)
_DECLARED: _Versions = (
    "lastbit leaves out rows with an undeclared key in any of the columns.",
    "Rows count if each of the columns has one of its declared keys there.",
)
_VARIANCES: _Versions = (
    "Variances divide by n, not by n - 1.",
    "Variances are those of the rows themselves (divided by n, not n - 1).",
)
_QUANTILES: _Versions = (
    "Quantiles are rounded to the middle of a bin, or to a whole step.",
    "Quantiles are chosen among bins between the bounds, and shown as the middle of the "
    "bin, or as its lower edge where a bin is one step.",
)
_DERIVED: _Versions = (
    "Computed columns cost nothing: they use released numbers only. One has no interval if its "
    "divisor may be 0, or if it mixes quantiles with other numbers.",
    "Columns made of others are computed from released numbers and cost nothing. Where a divisor "
    "may be 0, or a part is a quantile among others, they have no interval.",
)
_SERVED: _Versions = (
    "Counts near that size tend to be too high. Their ±, and that of means and variances made of "
    "them, misses more often.",
    "The count by which a key is shown is the count in the answer. Its interval, and those of "
    "means and variances made of it, hold in 95 % of all releases, those without the key included; "
    "where noise lifted a key to that number, they miss more often.",
)
_WORD = re.compile("[A-Za-z_\u00c0-\u024f][A-Za-z0-9_\u00c0-\u024f]{0,59}")
_PLURAL = re.compile("[a-z_]{0,58}[a-rt-wz]")  # not names that end in s, x or y


def guarantee_of(plan: Json) -> str:
    """The promise in one sentence."""
    epsilon, delta, rho = (ratio(plan["cost"][name]) for name in ("epsilon", "delta", "rho"))
    if rho and delta:
        price = f"rho = {plain(rho)}, delta = {plain(delta)} approximate zero-concentrated"
    elif rho:
        price = f"rho = {plain(rho)} zero-concentrated"
    else:
        price = f"epsilon = {plain(epsilon)}" + (f", delta = {plain(delta)}" if delta else "")
    unit = "row" if plan["unit"] is None else named(plan["unit"])
    how = "changed" if plan["neighbours"] == "change-one" else "more or less"
    return f"{price} differential privacy for one {unit} {how}"


def notes_of(plan: Json, version: int = 0) -> list[str]:
    """What a reader must know, in the order in which answers say it; 1 and 2 are earlier words."""

    def words(sentence: _Versions) -> str:
        return sentence[min(version, len(sentence) - 1)]

    functions = {recipe["function"] for recipe in plan["recipes"]}
    notes = [words(_INTERVALS)]
    notes += [words(_BELONGS), words(_DECLARED)] if "marginals" in plan else []
    notes += [] if plan["unit"] is None else [words(_at_most(plan))]
    selections = [part for part in plan["parts"] if part["part"] == "keys"]
    notes += [words(_threshold_words(part, plan)) for part in selections]
    counted = {name for recipe in plan["recipes"] for name in recipe["measures"].values()}
    notes += [words(_SERVED) for part in selections if part["measure"] in counted]
    notes += [
        f"{part['picks']} of {len(part['candidates'])} two-way tables were chosen privately: pairs "
        "of columns that look least independent are likelier."
        for part in plan["parts"]
        if part["part"] == "choice"
    ]
    notes += [words(_VARIANCES)] if functions & {"variance", "std"} else []
    notes += [words(_QUANTILES)] if functions & {"quantile", "min", "max"} else []
    if "count_distinct" in functions and plan["unit"] is not None:
        notes.append(words(_distinct_words(plan)))
    return notes


def _at_most(plan: Json) -> _Versions:
    """For how many rows one unit counts."""
    unit, most = named(plan["unit"]), plan["max_rows"]
    before = f"Each {unit} counts for at most {most} rows: "
    now = f"Each {unit} is counted once."
    if most > 1:
        now = (
            f"Each {unit} counts for at most {most} rows; beyond that, each of its rows weighs "
            "less. Means and quantiles use these weights."
        )
    return (
        now,
        before
        + "of one with more, all count for less. Means and quantiles are of rows so counted.",
        before + "where there are more, all of them count for less.",
    )


def _distinct_words(plan: Json) -> _Versions:
    """How many different values one unit names."""
    unit, rows, groups = named(plan["unit"]), plan["max_rows"], plan["max_groups"]
    most = rows if groups is None else min(rows, groups)
    return (
        f"Each {unit} adds at most {most} distinct values, so rare values may be missed.",
        f"Of distinct values each {unit} names at most {most}, chosen afresh: values that it alone "
        "has beyond these are not counted.",
    )


def _threshold_words(part: Json, plan: Json) -> _Versions:
    """From how many units on a key is shown."""
    one = part.get("weight_one", 1)
    most = -(-part["threshold"] // one)
    least = part["single"]["threshold"] if "single" in part else most
    low, high = sorted((least, most))
    units = "rows" if plan["unit"] is None else several(plan["unit"])
    size = f"{low} {units}" if low == high else f"{low} to {high} {units}"
    now = f"Groups with fewer than about {size} are withheld."
    now += "" if low == high else " Those in several groups count for less in each."
    before = f"A key is shown if about {least} units or more have it"
    if "single" in part:
        before += f" and no other, or about {most} that have several"
    if one > 1 or "single" in part:
        before += (
            ", a unit with K keys counting as one over the square root of K; others are unknown."
        )
    else:
        before += "; others are unknown, and counts close to that number tend to be too high."
    return now, before


def several(name: str) -> str:
    """Several units, by the name of their column.

    >>> print(several("patient_id"), "and", several("Bundesländer"))
    patient_ids and units (Bundesländer)
    """
    return f"{name}s" if _PLURAL.fullmatch(name) else f"units ({named(name)})"


def named(name: str) -> str:
    r"""A name as it stands in a sentence: a plain word as it is, any other quoted and escaped.

    >>> print(named("patient_id"), named("row more or less; in truth"), named("a\u202eb"))
    patient_id "row more or less; in truth" "a\u202eb"
    """
    if _WORD.fullmatch(name):
        return name
    kept = (c if c.isprintable() and c not in '"\\' else f"\\u{ord(c):04x}" for c in name)
    return f'"{"".join(kept)}"'


def plain(x: Fraction) -> str:
    """A number as a person would write it: whole, a short decimal, a double, or a ratio.

    >>> plain(Fraction(1, 10)), plain(Fraction(0.1)), plain(Fraction(1, 3)), plain(Fraction(7))
    ('0.1', '0.1', '1/3', '7')
    """
    if x.denominator == 1 and abs(x) < 10**21:
        return str(x.numerator)
    try:
        near = x.numerator / x.denominator
    except OverflowError:
        return str(x)
    decimal = f"{near:.15g}"
    if decimal != "0" and isfinite(near) and Fraction(decimal) == x:
        return decimal
    return repr(near) if isfinite(near) and Fraction(near) == x else str(x)


_PARTS = frozenset(
    {"table", "question", "asked", "columns", "rows", "cost", "guarantee", "plan", "notes"}
    | {"certificate", "entry", "lastbit"}
)
_VERSION = re.compile(r"[0-9A-Za-z.+!_-]{1,60}", re.ASCII)


def check_answer(record: Json, certificate: Json) -> None:
    """Raise `Rejected` unless the answer is what a certificate, accepted already, certifies."""
    tables = certificate["kind"] == "marginals"
    require(tables or certificate["kind"] == "release", "the certificate is not of a release")
    require(set(record) >= _PARTS, "the answer lacks a part")
    more = {"before", "totals", "whole"}
    require(set(record) <= _PARTS | more, "the answer has a part too many")
    claim, body = certificate["claim"], certificate["body"]
    plan, question = body["plan"], shown_question(body["query"])
    require(record["table"] == claim["table"], "the answer is from another table")
    require(same(record["plan"], plan), "the answer was planned otherwise")
    require(same(record["cost"], plan["cost"]), "the answer names another cost")
    asked = {k: v for k, v in record["asked"].items() if k != "sql"}
    to_this = same(asked, {**plan["asked"], "query": body["query"]})
    require(to_this, "the answer is to another question")
    require(_price_problem(plan) is None, "the answer cost another price than was asked for")
    _check_words(record, plan, question, recorded=body["ledger"] is not None)
    if record["entry"] is not None:  # a record as a ledger holds it names no entry yet
        require(body["ledger"] is not None, "an entry is named, and the certificate has no ledger")
        match record["entry"]:
            # an opening, a budget and a charge come first: no answer is before the third entry
            case {"hash": str(text), "sequence": int(place), **rest} if (
                not rest and type(place) is int and place >= 3 and HASH.fullmatch(text)
            ):
                require(text != body["ledger"], "the entry of the answer is the one before it")
            case _:
                raise Rejected("the entry of the ledger is malformed")
    _check_columns(record["columns"], question)
    if tables:
        require(set(record) - {"whole"} == _PARTS, "the answer has a part too many")
        check_tables(record["rows"], body)
        for row in record["rows"]:
            check_ends(row["cells"][0], whole="whole" in record)
        sealed = _sealed(record, record["rows"])
        if "whole" in record:
            check_whole(record, question, plan, body["query"])
        require(digest(sealed) == claim["rows"], "the rows are not those that were released")
        return
    before = record.get("before", record["rows"])
    for rows in (before, record["rows"]):
        _check_rows(rows, record["columns"], question, whole="whole" in record)
    sealed = _sealed(record, before)
    require(digest(sealed) == claim["rows"], "the rows are not those that were released")
    if "whole" in record:
        check_whole(record, question, plan, body["query"])
    check_values(question, before)
    check_shown(question, before)
    if "before" in record:
        _check_consistent(record, question)
    else:
        require(record.get("totals") is None, "there are totals that nothing explains")


def remarks_on(found: Json, certificate: Json) -> Iterator[str]:
    """What a reader of a release that was accepted should know of it, in sentences."""
    plan, question = certificate["body"]["plan"], shown_question(certificate["body"]["query"])
    problem = _price_problem(plan)
    if problem is not None:
        yield problem
    asked, spent = plan["asked"]["delta"], ratio(plan["cost"]["delta"])
    if asked is not None and spent < ratio(asked):
        yield f"Of the delta = {plain(ratio(asked))} that was asked for, {plain(spent)} was spent."
    if found is certificate:
        return
    for name in ("profile", "groups") if "whole" in found else ():
        if found["whole"][name] is not None:
            entry = found["whole"][name]["entry"]
            where = "is on no ledger" if entry is None else f"should be entry {entry} of the ledger"
            yield f"Whole intervals follow from a profile that {where}, which was not looked at."
    if certificate["kind"] != "release":
        return
    yield from remarks_on_shown(question, found.get("before", found["rows"]))
    try:
        check_shown(question, found["rows"])
    except Rejected:
        yield "Counts were made consistent afterwards: rows no longer fit HAVING or ORDER BY."


def _price_problem(plan: Json) -> str | None:
    """How the price asked differs from the cost; what is left of delta does not count."""
    for name in ("epsilon", "rho"):
        asked, cost = ratio(plan["asked"][name] or "0"), ratio(plan["cost"][name])
        if asked != cost:
            return f"Asked for {name} = {plain(asked)}, and the cost is {name} = {plain(cost)}."
    asked, cost = ratio(plan["asked"]["delta"] or "0"), ratio(plan["cost"]["delta"])
    if cost not in (0, asked):
        return f"Asked for delta = {plain(asked)}, and the cost is delta = {plain(cost)}."
    return None


def _check_words(record: Json, plan: Json, question: ShownQuestion, *, recorded: bool) -> None:
    """What people read: written again from the plan, and compared letter for letter."""
    require(record["guarantee"] == guarantee_of(plan), "the guarantee says something else")
    first = [] if recorded else [UNRECORDED]
    last = [CONSISTENT] if "before" in record else []
    versions = [(number, notes_of(plan, number)) for number in range(3)]
    if _of_units(plan):  # and one more, which said nothing of their intervals
        versions.append((2, [note for note in versions[2][1] if note not in _SERVED]))
    accepted = (
        [*first, *notes, *(_DERIVED[min(number, 1) :][:1] if question.derived else ()), *last]
        for number, notes in versions
    )
    require(record["notes"] in accepted, "the notes say something else")
    sql, version = record["asked"].get("sql"), record["lastbit"]
    require(sql is None or type(sql) is str, "the SQL text is none")
    require(type(version) is str and bool(_VERSION.fullmatch(version)), "the version is malformed")
    asked = record["question"]
    require(type(asked) is str and bool(HASH.fullmatch(asked)), "a digest is malformed")


def _of_units(plan: Json) -> bool:
    """Whether keys are shown by a count of units: of their intervals 0.1 said nothing."""
    shown = [part["measure"] for part in plan["parts"] if part["part"] == "keys"]
    return any(m["kind"] == "units" and m["name"] in shown for m in plan["measures"])


def _check_columns(columns: Any, question: ShownQuestion) -> None:
    expected: list[dict[str, Any]] = [
        {"name": name, "role": "key", "function": None} for name in question.names
    ]
    parts = {part.name: part for part in question.aggregates}
    for name in question.selected:
        if name not in parts:
            expected.append({"name": name, "role": "value", "function": "derived"})
            continue
        part = parts[name]
        told = {"name": name, "role": "value", "function": part.function}
        if part.function != "histogram":
            expected.append(told)
            continue
        for place, (low, high) in enumerate(pairwise(part.edges)):
            edges = [str(low), str(high)]
            end = "]" if place == len(part.edges) - 2 else ")"  # the last bin is closed
            called = f"{part.name} [{plain(low)}, {plain(high)}{end}"
            expected.append({**told, "name": called, "aggregate": part.name, "bin": edges})
    require(same(columns, expected), "columns are other ones")
    names = {column["name"].lower() for column in columns}
    require(len(names) == len(columns), "two columns have one name")


def _sealed(record: Json, rows: Any) -> dict[str, Any]:
    """What the certificate has the digest of."""
    whole = {"whole": record["whole"]} if "whole" in record else {}
    return {"columns": record["columns"], "rows": rows, **whole}


def _check_rows(rows: Any, columns: list[Any], question: ShownQuestion, *, whole: bool) -> None:
    require(isinstance(rows, list), "there are no rows")
    require(question.limit is None or len(rows) <= question.limit, "there are too many rows")
    cells = len(columns) - len(question.names)
    seen = set()
    for row in rows:
        hidden = len(question.aggregates) > len(
            set(question.selected) - dict(question.derived).keys()
        )
        fields = {"keys", "cells", "parts"} if hidden else {"keys", "cells"}
        require(set(row) == fields, "a row is malformed")
        keys = tuple(constant_of(key) for key in row["keys"])
        require(len(keys) == len(question.names), "a row has other keys")
        for key, values in zip(keys, question.values, strict=True):
            require(values is None or key in values, "a row has a key that was not declared")
        require(keys not in seen, "two rows have one key")
        seen.add(keys)
        require(len(row["cells"]) == cells, "a row has another number of cells")
        for cell in (*row["cells"], *row.get("parts", ())):
            check_ends(cell, whole=whole)


def _check_consistent(record: Json, question: ShownQuestion) -> None:
    """The rows are those before, with counts made whole, not negative and adding up."""
    before, after = record["before"], record["rows"]
    values = [column for column in record["columns"] if column["role"] == "value"]
    require(len(before) == len(after), "consistent rows are other rows")
    keys = all(same(a["keys"], b["keys"]) for a, b in zip(before, after, strict=True))
    require(keys, "consistent rows have other keys")
    parts = all(same(a.get("parts"), b.get("parts")) for a, b in zip(before, after, strict=True))
    require(parts, "consistent rows have other parts")
    totals: list[int | None] = []
    for place, column in enumerate(values):
        old = [row["cells"][place] for row in before]
        new = [row["cells"][place] for row in after]
        totals.append(None)
        if column["function"] == "count_units":
            counts = [max(cell["value"], 0) for cell in old]
        elif column["function"] in ("count", "histogram"):
            noisy = [cell["value"] for cell in old]
            totals[-1] = total = max(sum(noisy), 0)
            counts = list(_nearest(noisy, total))
        else:
            require(same(old, new), "a number was changed that is not a count")
            continue
        for cell, other, count in zip(old, new, counts, strict=True):
            told = {**cell, "value": count}
            for low, high in (("low", "high"), ("whole_low", "whole_high")):
                if cell.get(low) is not None:
                    told[low] = min(max(cell[low], 0), count)
                if cell.get(high) is not None:
                    told[high] = max(cell[high], count)
            require(same(other, told), "a count is not the nearest consistent one")
    whole = record["asked"]["query"]["having"] is None and question.limit is None
    expected = totals if whole else [None] * len(totals)
    require(same(record.get("totals"), expected), "a total is not the sum of its counts")


def _nearest(counts: list[int], total: int) -> Iterator[int]:
    """Counts lowered by one number, cut off at 0, then rounded by largest remainders."""
    shift = Fraction(0)
    if total:
        running, kept = 0, sorted(counts, reverse=True)
        for rank, count in enumerate(kept, start=1):
            running += count
            if rank * count > running - total:  # this one stays above 0
                shift = Fraction(running - total, rank)
    moved = [max(count - shift, Fraction(0)) if total else Fraction(0) for count in counts]
    floors = [number.numerator // number.denominator for number in moved]
    left = total - sum(floors)
    first = sorted(range(len(moved)), key=lambda i: (floors[i] - moved[i], i))[:left]
    for i, floor in enumerate(floors):
        yield floor + (i in first)
