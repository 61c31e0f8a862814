"""The answer to a planned query: its columns, rows, notes and certificate; `released`.

In which order an answer is checked, paid for, made, settled and shown is in `paying.py`; what an
answer is made of, once the kernel has handed out noisy integers, is here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lastbit.arguments import check_flags
from lastbit.errors import InvalidParameter
from lastbit.kernel import Noisy, Program
from lastbit.ledger import Ledger
from lastbit.release.answer import Answer
from lastbit.release.certifying import certificate_of, certified_program
from lastbit.release.derived import derived_columns
from lastbit.release.formulas import shown_rows
from lastbit.release.intervals import Column, columns_of
from lastbit.release.made_up_rows import without_source
from lastbit.release.paying import Steps, paid_for
from lastbit.release.profile import Profile
from lastbit.release.rehearsal import rehearsed
from lastbit.release.whole import with_whole
from lastbit.tables import (
    DataCard,
    GaussianSelection,
    MarginalsPlan,
    Plan,
    Query,
    Selection,
    Session,
    counted_card,
    distinct_values,
    rehearse,
    sealed,
    unit_name,
    unit_names,
    values_to_json,
)

_NOT_POSSIBLE = (
    "no data would give the columns of this answer; nothing was charged; ask at another price, or "
    "for fewer columns"
)


def released(
    query: Query,
    card: DataCard,
    plan: Plan,
    *,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    who: str | None = None,
    fresh: bool = False,
    consistent: bool = False,
    sql: str | None = None,
    profile: Profile | None = None,
) -> Answer:
    """The private answer to a query, as planned; charged to the ledger before a row is read.

    `ledger` defaults to the card's, and cannot be another one where the card names one. `fresh`
    pays for new noise though the same question was answered before. `consistent` makes counts agree
    with their totals, which is free. `who` is what the ledger notes beside the user's own name.
    `profile` is that of these data, where no ledger has it.

    >>> import duckdb
    >>> from lastbit.release import table
    >>> from lastbit.tables import planned
    >>> rows = duckdb.sql("SELECT 1 AS ward FROM range(1_000)")
    >>> visits = table(rows, each_row=True, name="visits")
    >>> query, card = visits.sql("SELECT count(*) AS n FROM visits").query, visits.card
    >>> 900 < released(query, card, planned(query, card, epsilon=1)).value < 1100
    True
    """
    check_flags(fresh=fresh, consistent=consistent)
    if plan.query != query or plan.card != counted_card(query, card):
        raise InvalidParameter(
            "plan", problem="is for another query or table", remedy="pass planned(query, card, ...)"
        )
    answer = paid_for(plan, ledger=ledger, who=who, fresh=fresh, sql=sql, profile=profile)
    return answer.consistent() if consistent else answer


def plan_steps() -> Steps:
    """How a query is answered."""
    return Steps(columns=_check_columns, runnable=_runnable, record=_record)


def _check_columns(plan: Plan) -> list[dict[str, Any]]:
    """The columns of an answer without rows, so that what cannot be made fails here."""
    none: dict[str, list[Any]] = {measure.name: [] for measure in plan.measures}
    pairs = [(r.aggregate.name, role) for r in plan.recipes for role in ("value", "low", "high")]
    drawn: dict[tuple[str, str], list[int]] = {pair: [] for pair in pairs}
    nothing = Noisy(keys=[], entries=none, bins=none, ranks=drawn, trees=none)
    found = _told(plan, _columns(plan, nothing))
    if len({column["name"].lower() for column in found}) != len(found):
        raise InvalidParameter(
            "query", problem="gives two columns of the answer one name", remedy="rename one"
        )
    return found


def columns_to_release(plan: Plan) -> list[dict[str, Any]]:
    """What the record will say of the columns of its rows: keys, then released numbers."""
    return _check_columns(plan)


def _check_rehearsed(plan: Plan) -> None:
    """Refuse, before the charge, a plan whose columns fail for noisy numbers that may come.

    Rows of nothing, of one, and far out on both sides, by public facts alone.
    """
    for noisy in rehearsed(plan):
        sealed(partial(_columns, plan, noisy), words=_NOT_POSSIBLE)


def _runnable(plan: Plan, session: Session, program: Program | None) -> Program:
    """What runs, if all that could fail whatever the data are was tried without a row of them."""
    _check_rehearsed(plan)
    _check_columns(plan)
    accepted = certified_program(plan, session, program)
    with without_source(plan.card) as card:
        rehearse(session, plan.query, card, plan.measures)
    return accepted


def _record(
    plan: Plan,
    noisy: Noisy,
    *,
    question: str,
    sql: str | None,
    notes: tuple[str, ...] = (),
    head: str | None = None,
    engine: Mapping[str, Any] | None = None,
    profile: Profile | None = None,
) -> dict[str, Any]:
    columns = _columns(plan, noisy)
    rows = _rows(plan.query, noisy, columns)
    said = [*notes, *_notes(plan)]
    return record_of(
        plan,
        _told(plan, columns),
        rows,
        question=question,
        sql=sql,
        notes=said,
        head=head,
        engine=engine,
        profile=profile,
    )


def record_of(
    plan: Plan | MarginalsPlan,
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Mapping[str, Any]],
    *,
    question: str,
    sql: str | None,
    notes: Sequence[str],
    head: str | None,
    engine: Mapping[str, Any] | None = None,
    profile: Profile | None = None,
) -> dict[str, Any]:
    """What is recorded of an answer, not settled yet: the checker has had the last word on it."""
    import lastbit  # late: the package imports this room

    rows, whole = with_whole(plan, columns, rows, profile)
    more = {} if whole is None else {"whole": whole}
    sealed = certificate_of(plan, columns=columns, rows=rows, whole=whole, head=head, engine=engine)
    return {
        "lastbit": lastbit.__version__,
        "table": plan.card.name,
        "question": question,
        "asked": {"sql": sql, "query": plan.query.to_json(), **plan.asked.to_json()},
        "columns": list(columns),
        "rows": list(rows),
        "cost": plan.cost.to_json(),
        "guarantee": plan.guarantee,
        "plan": plan.to_json(),
        "notes": list(notes),
        **more,
        "certificate": sealed,
        "entry": None,
    }


def _columns(plan: Plan, noisy: Noisy) -> list[Column]:
    """Every column that is released, those made of others last."""
    released = columns_of(plan, noisy)
    return [*released, *derived_columns(plan, noisy, released)]


def _shown(query: Query, columns: list[Column]) -> list[Column]:
    """The columns that the answer shows, in the order of the question."""
    return [column for name in query.selected for column in columns if column.aggregate == name]


def _told(plan: Plan, columns: list[Column]) -> list[dict[str, Any]]:
    """What the record says of the columns of its rows."""
    return [
        *({"name": key.name, "role": "key", "function": None} for key in plan.query.keys),
        *(column.to_json() for column in _shown(plan.query, columns)),
    ]


def _rows(query: Query, noisy: Noisy, columns: list[Column]) -> list[dict[str, Any]]:
    """The rows of the answer, HAVING, ORDER BY and LIMIT applied to what is released."""
    names = [key.name for key in query.keys] + [column.name for column in columns]
    values: Sequence[Sequence[Any]] = noisy.keys
    if query.having is not None or query.order:
        values = [
            [*keys, *(column.cells[i].value for column in columns)]
            for i, keys in enumerate(noisy.keys)
        ]
    shown, hidden = _shown(query, columns), {part.name for part in query.hidden}
    parts = [column for column in columns if column.aggregate in hidden]
    # a column of keys at a time: there may be 10^5 rows
    listed = zip(*map(values_to_json, zip(*noisy.keys, strict=True)), strict=True)
    keys = [list(row) for row in listed] if query.keys else [[] for _ in noisy.keys]
    return [
        {
            "keys": keys[i],
            "cells": [column.cells[i].to_json() for column in shown],
            # what derived columns are made of and the answer does not show by itself
            **({"parts": [column.cells[i].to_json() for column in parts]} if parts else {}),
        }
        for i in shown_rows(query, names, values)
    ]


DERIVED = (
    "Computed columns cost nothing: they use released numbers only. One has no interval if its "
    "divisor may be 0, or if it mixes quantiles with other numbers."
)
SERVED = (
    "Counts near that size tend to be too high. Their ±, and that of means and variances made of "
    "them, misses more often."
)
INTERVALS = (
    "Each noise ± covers noise only, in 95 % of releases. Bias from limits and rounding comes on "
    "top; the whole interval covers that of limits."
)


def limit_notes(card: DataCard) -> list[str]:
    """For how much one unit counts, and what that makes of means and quantiles."""
    if card.unit is None:
        return []
    unit = unit_name(card.unit)
    if card.max_rows == 1:
        return [f"Each {unit} is counted once."]
    return [
        f"Each {unit} counts for at most {card.max_rows} rows; beyond that, each of its rows "
        "weighs less. Means and quantiles use these weights."
    ]


def _notes(plan: Plan) -> list[str]:
    """What a reader must know; public, and the same for all data. The checker knows these words."""
    card, functions = plan.card, {part.function for part in plan.query.aggregates}
    notes = [INTERVALS, *limit_notes(card)]
    part = plan.partition_selection
    if part is not None:
        notes.append(_threshold_note(part, card))
    counted = {name for recipe in plan.recipes for name in recipe.measures.values()}
    if part is not None and part.measure in counted:
        notes.append(SERVED)
    if functions & {"variance", "std"}:
        notes.append("Variances divide by n, not by n - 1.")
    if functions & {"quantile", "min", "max"}:
        notes.append("Quantiles are rounded to the middle of a bin, or to a whole step.")
    if "count_distinct" in functions and card.unit is not None:
        notes.append(
            f"Each {unit_name(card.unit)} adds at most {distinct_values(card)} distinct values, "
            "so rare values may be missed."
        )
    if plan.query.derived:
        notes.append(DERIVED)
    return notes


def _threshold_note(part: Selection, card: DataCard) -> str:
    """From about how many units on a group is shown."""
    ends = {part.threshold}
    if isinstance(part, GaussianSelection):
        ends = {-(-part.threshold // part.weight_one)}
        ends |= set() if part.single is None else {part.single.threshold}
    size = " to ".join(map(str, sorted(ends)))
    units = "rows" if card.unit is None else unit_names(card.unit)
    fewer = "" if len(ends) == 1 else " Those in several groups count for less in each."
    return f"Groups with fewer than about {size} {units} are withheld.{fewer}"
