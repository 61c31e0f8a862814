"""Nothing vanishes without a word: what the engine counts is plain SQL with the rules listed.

Complete: with the rules that are listed, plain SQL gives the engine's numbers before noise; so with
none it gives them too. Exact: each rule that is listed changes a number of some table.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isclose
from typing import Any

import duckdb
import pytest

import lastbit as lb
from lastbit.release.synthetic_rows import Synthetic
from lastbit.tables import Column, Plan, Query, Rule, parsed, planned, rules_of, value_in_bins
from tests.evidence import Extent
from tests.release.plain_sql import (
    PLACES,
    Groups,
    Part,
    Question,
    Table,
    question_of,
    table_of,
)
from tests.stability.engine import COLUMNS, LABS, PUBLIC, Engine

BY_CHANCE = {"threshold", "having", "limit", "distinct", "max_groups"}
"""Rules that choose by noise or by lot, which plain SQL cannot repeat."""
FEWEST_TABLES, MOST_TABLES = 2, 24
READ = """SELECT row_number() OVER () AS rid, who, name, cat, TRY_CAST(num AS BIGINT) AS num,
    CASE WHEN NOT isnan(x) THEN x END AS x, flag, day,
    CASE WHEN NOT isnan(TRY_CAST(junk AS DOUBLE)) THEN TRY_CAST(junk AS DOUBLE) END AS junk
    FROM raw"""
Listing = Callable[[Any, Query], tuple[Rule, ...]]


class Machine:
    """Plain DuckDB and the real engine, on the same tables."""

    def __init__(self, folder: Any) -> None:
        self.engine, self.plain = Engine(), duckdb.connect()
        self.places = folder / "places.parquet"
        for name, columns in {"raw": COLUMNS, "places": PUBLIC, "labs": LABS}.items():
            fields = ", ".join(f"{column} {kind}" for column, kind in columns.items())
            self.plain.execute(f"CREATE TABLE {name} ({fields})")
        self.plain.execute(f"CREATE VIEW b AS {READ}")
        self._fill("places", PLACES, PUBLIC)
        self.plain.execute(f"COPY places TO '{self.places}' (FORMAT parquet)")

    def _fill(self, name: str, rows: Any, columns: dict[str, str]) -> None:
        lists = ", ".join(f"unnest(CAST(? AS {kind}[]))" for kind in columns.values())
        self.plain.execute(f"DELETE FROM {name}")
        values = [list(column) for column in zip(*rows, strict=True)]
        self.plain.execute(f"INSERT INTO {name} SELECT {lists}", values)

    def counted(self, question: Question, plan: Plan, table: Table) -> Groups:
        """For every group the numbers of all parts, as the engine counts them before the noise."""
        rows, labs = table
        self._fill("raw", rows, COLUMNS)
        self._fill("labs", labs, LABS)
        places = PLACES if question.join == "places" else ()
        case = EngineCase(plan.query, plan.card, plan.measures, places, labs)
        raw = self.engine.run(case, rows)
        return {
            key: tuple(
                number
                for recipe in plan.written.recipes
                for number in _numbers(recipe, raw, at, plan.written)
            )
            for at, key in enumerate(raw.keys)
        }


@dataclass(frozen=True)
class EngineCase:
    """What `Engine` runs."""

    query: Query
    card: Any
    measures: Any
    places: Any
    labs: Any


def _numbers(recipe: Any, raw: Any, at: int, plan: Any) -> list[Any]:
    """What an aggregate is, made of its measures as a release makes it."""
    one = plan.weight_one
    parts = {
        kind: (raw.bins if kind == "bins" else raw.entries)[name][at]
        for kind, name in recipe.measures.items()
    }
    match recipe.function:
        case "count_units" | "count_distinct":
            return list(parts.values())
        case "count":
            return [parts["rows"] / one]
        case "histogram":
            return [weight / one for weight in parts["bins"]]
        case "quantile":
            return [sum(parts["bins"]) / one]
    grid = next(measure for measure in plan.measures if measure.name == recipe.measures["values"])
    step, centre = float(grid.step), float(grid.centre)
    if recipe.function == "sum":
        return [step * parts["values"] / one + centre * parts.get("rows", 0) / one]
    if not parts["rows"]:
        return [None]
    mean = parts["values"] / parts["rows"]
    if recipe.function == "mean":
        return [centre + step * mean]
    return [step**2 * (parts["squares"] / parts["rows"] - mean**2)]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    made = Machine(tmp_path_factory.mktemp("public"))
    yield made
    made.engine.close()


def difference(question: Question, rules: tuple[Rule, ...], ours: Groups, plain: Any) -> str | None:
    """Where the engine's numbers are not those of plain SQL with these rules."""
    theirs = question.plain(plain, [*rules])
    codes = {rule.code for rule in rules}
    kinds = [part.kind for part in question.parts for _ in part.numbers([])]
    nothing = tuple(None if kind in ("mean", "variance") else 0 for kind in kinds)
    # a key that is not declared is shown or not by its units: that is the threshold's rule
    groups = set(ours) if "threshold" in codes else set(ours) | set(theirs)
    coarsest = max((float(rule.step) for rule in rules if rule.step is not None), default=0.0)
    for group in groups:
        pairs = zip(kinds, ours.get(group, nothing), theirs.get(group, nothing), strict=True)
        for kind, mine, other in pairs:
            if {kind, "max_groups"} <= {"units", *codes} or {kind, "distinct"} <= codes | {kind}:
                if kind in ("units", "distinct") and mine <= other:
                    continue
            slack = coarsest * (60 if kind == "sum" else 20 if kind == "variance" else 1)
            if mine is None or other is None:
                if mine == other:
                    continue
            elif isclose(mine, other, rel_tol=1e-6, abs_tol=1e-6 + slack):
                continue
            return f"{kind} in {group}: {mine}, plain SQL {other}"
    return None


def idle_rules(
    tried: list[Rule], rules: tuple[Rule, ...], question: Question, plain: Any
) -> list[Rule]:
    """Those that change no number of this table: neither beside the others nor by themselves."""
    counted = replace(question, parts=(*question.parts, Part("rows", "COUNT(*)", "count")))
    known, whole = counted.plain(plain, [*rules]), counted.plain(plain, [])
    return [
        rule
        for rule in tried
        if counted.plain(plain, [rule]) == whole
        and counted.plain(plain, [one for one in rules if one != rule]) == known
    ]


def can_be_tried(rule: Rule, question: Question) -> bool:
    """Whether plain SQL would see the rule: of medians it counts the rows, and no ranks."""
    medians = {part.name for part in question.parts if part.kind == "median"}
    ranks = rule.code == "bounds" and medians.issuperset(rule.columns)
    return rule.code not in {"step", *BY_CHANCE} and not ranks


def planned_question(question: Question) -> Plan:
    query = parsed(question.sql, question.card)
    return planned(query, question.card, epsilon=1, delta="1e-6")


def problem(
    machine: Machine,
    number: int,
    listing: Listing = rules_of,
    mutant: Callable[[Query], Query] = lambda query: query,
) -> str | None:
    """What is wrong with the rules that are listed for the question of this number."""
    draw = random.Random(number)  # noqa: S311  no noise comes of it
    question = question_of(draw, machine.places)
    plan = planned_question(question)
    changed = mutant(plan.query)
    if changed != plan.query:
        plan = planned(changed, question.card, epsilon=1, delta="1e-6")
    rules = listing(plan.written, plan.query)
    idle = [rule for rule in rules if can_be_tried(rule, question)]
    for tried in range(MOST_TABLES):
        if tried >= FEWEST_TABLES and not idle:
            break
        table = table_of(draw, 30 if tried % 2 else 60)
        ours = machine.counted(question, plan, table)
        wrong = difference(question, rules, ours, machine.plain)
        if wrong:
            return f"{number}: {wrong} ({question.sql})"
        idle = idle_rules(idle, rules, question, machine.plain)
    return f"{number}: said, and cannot be: {idle[0]} ({question.sql})" if idle else None


def test_what_is_counted_is_the_whole_table_with_the_rules_that_are_listed(
    machine: Machine, extent: Extent
) -> None:
    for number in range(extent.generated(12, 4_000)):
        assert problem(machine, number) is None
