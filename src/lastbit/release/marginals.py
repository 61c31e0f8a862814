"""Contingency tables: a question for marginals, its answer, and the record in between.

Law      the noisy tables are what the mechanisms of the plan gave, cell by cell. Beside each noisy
         count stand the same cell of the tables made to agree (`projection.py`), as an exact number
         of rows, and of the whole tables from 0 up
Theorem  agreeing and whole tables are functions of the noisy ones and of the plan: post-processing,
         so they cost nothing. The noisy tables stay in the record, so nothing is lost
Intervals  an interval is that of the noisy count: it holds the count without noise in 95 % of all
         releases, exactly by the law of the noise. It does not belong to the consistent value,
         which has the standard error given beside it, never a larger one than the noisy count
Checked  tests/release/test_marginals.py; the independent checker (`checker/marginals.py`) works
         sensitivities, noise, price and agreement out again
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Literal

from lastbit.arguments import check_flags
from lastbit.exact import Number
from lastbit.kernel import Program
from lastbit.ledger import Ledger
from lastbit.release.certifying import certified_program
from lastbit.release.intervals import Cell
from lastbit.release.made_up_rows import without_source
from lastbit.release.marginal_answer import Marginals
from lastbit.release.paying import Steps, paid_for
from lastbit.release.profile import Profile
from lastbit.release.projection import agreeing, whole_tables
from lastbit.release.reach import MeasureNoise
from lastbit.release.release import INTERVALS, limit_notes, record_of
from lastbit.tables import (
    Constant,
    DataCard,
    MarginalsPlan,
    Query,
    Session,
    consistent_variances,
    planned_marginals,
    rehearse_marginals,
    to_json,
    weight_one,
)

_BETA = Fraction(1, 20)
BELONGS = (
    "Each interval is that of the noisy count; the consistent count has a standard error. Whole "
    "tables agree too, and hold no counts below 0."
)
DECLARED = "lastbit leaves out rows with an undeclared key in any of the columns."


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MarginalsQuestion:
    """All marginals of some columns, asked of a table; `Table.marginals` makes it."""

    query: Query
    card: DataCard
    up_to: int = 2
    pairs: int | None = None
    """How many two-way tables are released; chosen privately if there are more."""

    def __repr__(self) -> str:
        names = ", ".join(key.name for key in self.query.keys)
        return f"<Marginals of {names} up to {self.up_to} columns, of {self.card.name}>"

    def plan(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        weights: Mapping[str, Number] | Literal["balanced"] | None = None,
    ) -> MarginalsPlan:
        """The mechanisms and the price; nothing is read."""
        return planned_marginals(
            self.query,
            self.card,
            up_to=self.up_to,
            pairs=self.pairs,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            weights=weights,
        )

    def explain(self, **price: Any) -> str:
        """What the tables would cost and how far off their cells; takes what `plan` takes."""
        return self.plan(**price).explain()

    def release(
        self,
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        weights: Mapping[str, Number] | Literal["balanced"] | None = None,
        ledger: str | os.PathLike[str] | Ledger | None = None,
        who: str | None = None,
        fresh: bool = False,
    ) -> Marginals:
        """All tables at one price, which is paid exactly once."""
        check_flags(fresh=fresh)
        plan = self.plan(epsilon=epsilon, delta=delta, rho=rho, weights=weights)
        return released_marginals(plan, ledger=ledger, who=who, fresh=fresh)


def released_marginals(
    plan: MarginalsPlan,
    *,
    ledger: str | os.PathLike[str] | Ledger | None = None,
    who: str | None = None,
    fresh: bool = False,
) -> Marginals:
    """The tables as planned; charged to the ledger before a row is read (`paying.py`)."""
    answer = paid_for(plan, ledger=ledger, who=who, fresh=fresh, sql=None)
    return Marginals(answer.record, answer.spared, answer.charged)


def marginals_steps() -> Steps:
    """How a question for marginals is answered."""
    return Steps(
        columns=marginal_columns,
        runnable=_runnable,
        record=lambda plan, noisy, **said: marginals_record(plan, noisy.tables, **said),
    )


def marginal_columns(plan: MarginalsPlan) -> list[dict[str, Any]]:
    """What the record says of its columns: the keys, and the count."""
    count = plan.query.aggregates[0].name
    return [
        *({"name": key.name, "role": "key", "function": None} for key in plan.query.keys),
        {"name": count, "role": "value", "function": "count"},
    ]


def _runnable(plan: MarginalsPlan, session: Session, program: Program | None) -> Program:
    accepted = certified_program(plan, session, program)
    with without_source(plan.card) as card:
        rehearse_marginals(session, plan.query, card, plan.scanned)
    return accepted


def marginals_record(
    plan: MarginalsPlan,
    noisy: Mapping[tuple[int, ...], Sequence[int]],
    *,
    question: str,
    sql: str | None = None,
    notes: tuple[str, ...] = (),
    head: str | None = None,
    engine: Mapping[str, Any] | None = None,
    profile: Profile | None = None,
) -> dict[str, Any]:
    """The record of noisy tables, with those that agree beside them."""
    columns, rows = marginal_columns(plan), list(marginal_rows(plan, noisy))
    said = [*notes, *_notes(plan)]
    asked: Any = {"question": question, "sql": sql, "head": head, "engine": engine}
    return record_of(plan, columns, rows, notes=said, profile=profile, **asked)


def marginal_rows(
    asked: MarginalsPlan, noisy: Mapping[tuple[int, ...], Sequence[int]]
) -> Iterable[dict[str, Any]]:
    """A row for every cell of every table: noisy, consistent and whole."""
    fixed = len(asked.marginals)
    plan = asked.with_pairs(tuple(noisy)[fixed:])
    one, sets, tables = weight_one(plan.card), plan.marginals, dict(noisy)
    spread = dict(zip(sets, plan.variances, strict=True))
    near = agreeing(tables, plan.sizes, spread)
    rows = {s: [number / one for number in found] for s, found in near.items()}
    counts = whole_tables(rows, plan.sizes)
    errors = consistent_variances(plan.sizes, sets, plan.variances)
    for number, (columns, part) in enumerate(zip(sets, plan.parts, strict=True)):
        noise = MeasureNoise(part.law)
        half = noise.accuracy(_BETA)
        told = math.sqrt(noise.variance) / one
        less = min(math.sqrt(errors[number]) / one, told)
        keys = product(*(plan.query.keys[place].values or () for place in columns))
        cells = zip(keys, tables[columns], rows[columns], counts[columns], strict=True)
        for key, entry, consistent, whole in cells:
            ends = (entry - half) // one, -((-entry - half) // one)
            cell = Cell(round(Fraction(entry, one)), told, *ends)
            yield {
                "marginal": number,
                "keys": [to_json(Constant(value)) for value in key],
                "noisy": str(entry),
                "cells": [cell.to_json()],
                "consistent": str(consistent),
                "consistent_error": less,
                "whole": whole,
                **({"columns": list(plan.names[number])} if number >= fixed else {}),
            }


def _notes(plan: MarginalsPlan) -> list[str]:
    """What a reader must know; public, and the same for all data. The checker knows these words."""
    notes = [INTERVALS, BELONGS, DECLARED, *limit_notes(plan.card)]
    if plan.selection is not None:
        picks, all_pairs = plan.selection.picks, len(plan.selection.candidates)
        notes.append(
            f"{picks} of {all_pairs} two-way tables were chosen privately: pairs of columns that "
            "look least independent are likelier."
        )
    return notes
