"""How far one unit really moves what a program measures: its statement, on the real engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow

from lastbit.kernel import Program
from lastbit.kernel.noise import rank_distances
from lastbit.kernel.program import KeySelection, RankDraw, scanned_marginals
from lastbit.kernel.sealed import Aggregates
from lastbit.tables import Measure
from lastbit.tables.card.schema import DataCard, Source
from tests.kernel.genuine import LABS, ROWS
from tests.kernel.true_loss import changes_one, keys_of_a_unit, moves_of, rank_moves
from tests.kernel.unsealing import aggregates, marginal_counts

SECRET = "0" * 64
Rows = list[dict[str, Any]]
HEAVY: Rows = [
    {"who": 2, "g": g, "h": h, "x": x, "y": y}
    for g, h, x, y in (
        ("a", True, 5, 9.0), ("b", False, 0, -1.0), ("c", None, 5, 11.0), (None, True, 0, 0.25),
        ("d", False, 5, 9.0), ("e", True, 4, -7.0),
    )
]  # fmt: skip
MORE_LABS: Rows = [{"who": 2, "code": code, "dose": d} for d, code in enumerate("pqpqr")]


def tables(program: Program) -> Iterator[tuple[Rows, Rows]]:
    """The table and its private companion, then neighbours: one unit gone, heavier, or another."""
    rows, labs = ROWS.to_pylist(), LABS.to_pylist()
    if program.card.unit is None:
        one = [rows[0]] if changes_one(program) else []
        yield rows, labs
        for other in HEAVY[:4]:
            yield [*rows[1:], other] if one else [*rows, other], labs
        return
    rest = [row for row in rows if row["who"] != 2]
    others = [row for row in labs if row["who"] != 2]
    yield [*rest, *(HEAVY[1:2] if changes_one(program) else [])], others
    for own, own_labs in (
        (rows[2:5], labs[2:3]), (HEAVY, MORE_LABS), (HEAVY[:1] * 9, MORE_LABS[:1]), (HEAVY[:1], []),
        (HEAVY[2:4], MORE_LABS * 2),
    ):  # fmt: skip
        yield [*rest, *own], [*others, *own_labs]


def card_of(card: DataCard, rows: Rows, labs: Rows) -> DataCard:
    def held(found: Rows, schema: Any) -> Source:
        return Source(kind="frame", frame=pyarrow.Table.from_pylist(found, schema=schema))

    private = {
        name: replace(one, source=held(labs, LABS.schema)) for name, one in card.private.items()
    }
    return replace(card, source=held(rows, ROWS.schema), private=private)


def moved_too_far(program: Program) -> list[str]:
    """Which measures a neighbour moves further than the proof says; refusals are the engine's."""
    found: list[str] = []
    base: Any = None
    for rows, labs in tables(program):
        card = card_of(program.card, rows, labs)
        if program.marginals is not None:
            now: Any = marginal_counts(program.scan, card, scanned_marginals(program))
        else:
            now = aggregates(program.scan, card, program.measures, secret=SECRET)
        if base is None:
            base = now
        elif program.marginals is not None:
            found += _tables_moved(program, base, now)
        else:
            found += _moved(program, base, now)
    return found


def _tables_moved(program: Program, base: Any, now: Any) -> Iterator[str]:
    limit = moves_of(Measure(name="", kind="rows", nullable=False), program)
    for one, two in zip(base, now, strict=True):
        steps = [abs(a - b) for a, b in zip(one, two, strict=True)]
        if sum(steps) > limit.l1 or sum(step**2 for step in steps) > limit.l2_squared:
            yield "a marginal"


def _moved(program: Program, base: Aggregates, now: Aggregates) -> Iterator[str]:
    places = [{key: at for at, key in enumerate(one.keys)} for one in (base, now)]
    shared = [(at, places[1][key]) for key, at in places[0].items() if key in places[1]]
    for measure in program.measures:
        limit = moves_of(measure, program)
        if measure.kind == "bins":
            pairs = [
                (a, b)
                for i, j in shared
                for a, b in zip(base.bins[measure.name][i], now.bins[measure.name][j], strict=True)
            ]
        else:
            one, two = base.entries[measure.name], now.entries[measure.name]
            pairs = [(one[i], two[j]) for i, j in shared]
        steps = [abs(a - b) for a, b in pairs]
        if sum(steps) > limit.l1 or sum(step**2 for step in steps) > limit.l2_squared:
            yield f"{measure.name} {measure.kind}"
    for step in program.steps:
        if isinstance(step, RankDraw):
            total = 0
            for i, j in shared:
                own, other = base.bins[step.measure][i], now.bins[step.measure][j]
                apart = rank_distances(step, [own]) - rank_distances(step, [other])
                total += int(np.abs(apart).max())
            if total > rank_moves(step, program):
                yield f"{step.aggregate} {step.role}"
    if any(isinstance(step, KeySelection) for step in program.steps) and program.groups is None:
        yield from _keys_moved(program, base, now)


def _keys_moved(program: Program, base: Aggregates, now: Aggregates) -> Iterator[str]:
    most = (keys_of_a_unit(program) or 0) * (2 if changes_one(program) else 1)
    numbers = [
        dict(zip(one.keys, zip(one.units, one.single, strict=True), strict=True))
        for one in (base, now)
    ]
    changed = [
        key
        for key in numbers[0].keys() | numbers[1].keys()
        if numbers[0].get(key, (0, 0)) != numbers[1].get(key, (0, 0))
    ]
    if len(changed) > most:
        yield f"{len(changed)} keys"
