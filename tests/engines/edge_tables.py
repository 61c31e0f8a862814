"""Questions of `tests/kernel/edge_questions.py` as statements, on tables of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from lastbit.errors import LastbitError
from lastbit.tables import RawRows
from lastbit.tables.compile.marginals import marginals_statement
from lastbit.tables.compile.rows import private_relation, relation
from lastbit.tables.compile.statement import statement
from lastbit.tables.plan.sensitivity import measures_of
from tests.engines.running import Runner
from tests.kernel.edge_questions import LABS, PLACES, PLACES_TYPES, TYPES, Edge, tables
from tests.kernel.unsealing import opened_marginals, opened_rows
from tests.stability.engine import SECRET


def make_tables(runner: Runner, *, nul: bool = True) -> None:
    """Every table, under a name of its own; without texts that hold a NUL where none may."""

    def kept(rows: list[Any]) -> list[Any]:
        return [r for r in rows if nul or not any(isinstance(v, str) and "\0" in v for v in r)]

    runner.make("edge places", PLACES_TYPES, PLACES)
    for name, (rows, labs) in tables().items():
        runner.make(f"edge {name}", TYPES, kept(rows))
        runner.make(f"edge labs {name}", LABS, kept(labs))


def statement_outcomes(
    runner: Runner, edge: Edge, names: Sequence[str] | None = None
) -> dict[str, str] | None:
    """By table whether the statement runs and gives integers; None where it cannot be written."""
    try:
        asked = edge.of("none")
        query = asked.query
        ran, measures, marginals = _statement(runner, edge, query, asked.card)
    except LastbitError:
        return None
    found: dict[str, str] = {}
    for name in names or tables():
        sql = ran.sql
        for table in ("edge", "edge labs"):
            place, other = (runner.actual[f"{table} {own}"].place for own in ("none", name))
            sql = sql.replace(place, other)
        try:
            rows = runner.ran(sql)
            if marginals:
                opened_marginals(query, marginals, RawRows(ran, rows))
            else:
                opened_rows(query, measures, ran, rows)
            found[name] = "runs"
        except Exception as error:  # the driver's, or the kernel's
            found[name] = f"{type(error).__name__}: {str(error)[:300]}"
    return found


def _statement(runner: Runner, edge: Edge, query: Any, card: Any) -> tuple[Any, Any, Any]:
    actual = {
        relation(): runner.actual["edge none"],
        relation("places"): runner.actual["edge places"],
        private_relation("labs"): runner.actual["edge labs none"],
    }
    how: dict[str, Any] = {"dialect": runner.dialect, "actual": actual}
    if edge.words.startswith("marginals"):
        keys = range(len(query.keys))
        marginals = [(key,) for key in keys] + list(combinations(keys, 2))
        return marginals_statement(query, card, marginals, **how), (), marginals
    measures = measures_of(query)[0]
    return statement(query, card, measures, secret=SECRET, **how), measures, ()
