"""Nothing vanishes without a word: what the engine counts is plain SQL with the rules listed."""

from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isclose, nan

import duckdb
import pytest

from lastbit.errors import LastbitError
from lastbit.tables import counted_card, parsed, planned, rules_of
from tests.release.plain_sql import PLACES, drawn, question_of, table_of
from tests.stability.engine import COLUMNS, LABS, PUBLIC, Engine

STRUCTURAL = {"threshold", "having", "limit", "step", "distinct", "max_groups"}
"""Rules that plain SQL cannot apply: they choose by chance, by noise, or within a tolerance."""
FEWEST_TABLES, MOST_TABLES = 2, 24


class Plain:
    """Plain DuckDB on the same tables."""

    def __init__(self):
        self.connection = duckdb.connect()
        tables = {"raw": COLUMNS, "places": PUBLIC, "labs": LABS}
        for name, columns in tables.items():
            fields = ", ".join(f"{column} {kind}" for column, kind in columns.items())
            self.connection.execute(f"CREATE TABLE {name} ({fields})")
        self.connection.execute(
            "CREATE VIEW b AS SELECT row_number() OVER () AS rid, who, name, cat, "
            "TRY_CAST(num AS BIGINT) AS num, CASE WHEN isnan(x) THEN NULL ELSE x END AS x, "
            "flag, day, CASE WHEN isnan(TRY_CAST(junk AS DOUBLE)) THEN NULL "
            "ELSE TRY_CAST(junk AS DOUBLE) END AS junk FROM raw"
        )
        self.fill("places", PLACES, PUBLIC)

    def fill(self, name, rows, columns):
        self.connection.execute(f"DELETE FROM {name}")
        lists = ", ".join(f"unnest(CAST(? AS {kind}[]))" for kind in columns.values())
        values = [list(column) for column in zip(*rows, strict=True)]
        self.connection.execute(f"INSERT INTO {name} SELECT {lists}", values)

    def load(self, table):
        rows, labs = table
        self.fill("raw", rows, COLUMNS)
        self.fill("labs", labs, LABS)


@dataclass(frozen=True)
class Case:
    """What `Engine` runs."""

    query: object
    card: object
    measures: tuple
    places: tuple
    labs: tuple


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    places = tmp_path_factory.mktemp("public") / "places.parquet"
    plain, engine = Plain(), Engine()
    plain.connection.execute(f"COPY places TO '{places}' (FORMAT parquet)")
    yield plain, engine, places
    engine.close()


def engine_numbers(engine, question, plan, table):
    """For every group the numbers of all parts, as the engine counts them before the noise."""
    rows, labs = table
    joined = PLACES if question.join == "places" else ()
    case = Case(plan.query, plan.card, plan.measures, joined, labs)
    raw = engine.run(case, rows)
    written = plan.written
    one = written.weight_one
    measures = {measure.name: measure for measure in written.measures}
    found = {}
    for at, key in enumerate(raw.keys):
        numbers = []
        for recipe in written.recipes:
            parts = {}
            for kind, name in recipe.measures.items():
                listed = raw.bins[name][at] if kind == "bins" else raw.entries[name][at]
                parts[kind] = listed
            numbers += _numbers(recipe, parts, measures, one)
        found[key] = tuple(numbers)
    return found


def _numbers(recipe, parts, measures, one):
    function = recipe.function
    if function in ("count_units", "count_distinct"):
        return list(parts.values())
    if function == "count":
        return [parts["rows"] / one]
    if function == "histogram":
        return [weight / one for weight in parts["bins"]]
    if function == "quantile":
        return [sum(parts["bins"]) / one]
    grid = measures[recipe.measures["values"]]
    step, centre = float(grid.step), float(grid.centre)
    if function == "sum":
        return [step * parts["values"] / one + centre * parts.get("rows", 0) / one]
    if not parts["rows"]:
        return [None]
    mean = parts["values"] / parts["rows"]
    if function == "mean":
        return [centre + step * mean]
    return [step**2 * (parts["squares"] / parts["rows"] - mean**2)]


def same_number(ours, theirs, slack):
    if ours is None or theirs is None:
        return (ours or 0) == (theirs or 0)
    return isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-6 + slack)


def difference(question, plan, rules, ours, plain):
    """Where the engine's numbers are not those of plain SQL with these rules, or None."""
    theirs = question.plain(plain.connection, rules)
    codes = {rule.code for rule in rules}
    kinds = [kind for part in question.parts for kind in [part.kind] * (3 if part.kind == "histogram" else 1)]
    groups = set(ours) if "threshold" in codes else set(ours) | set(theirs)
    steps = [float(rule.step) for rule in rules if rule.code == "step"]
    slack = 60 * max(steps, default=0)
    for group in groups:
        for place, kind in enumerate(kinds):
            mine = ours.get(group, (0,) * len(kinds))[place]
            other = theirs.get(group, (0,) * len(kinds))[place]
            if kind == "units" and "max_groups" in codes or kind == "distinct" and "distinct" in codes:
                if mine > other:
                    return f"{kind} in {group}: {mine} above {other}"
            elif group not in theirs and kind in ("mean", "variance"):
                continue
            elif not same_number(mine, other, slack * (20 if kind == "variance" else 1)):
                return f"{kind} in {group}: {mine}, plain SQL {other}"
    return None


def planned_question(question):
    query = parsed(question.sql, question.card)
    return planned(query, question.card, epsilon=1, delta="1e-6")


def judge(machine, number, listed=rules_of, changed=lambda query: query):
    """One drawn question: what is wrong with the rules listed for it, or None."""
    plain, engine, places = machine
    draw = drawn(number)
    question = question_of(draw, places)
    try:
        plan = planned_question(question)
    except LastbitError:
        return "refused", question.sql
    query = changed(plan.query)
    if query != plan.query:
        plan = planned(query, question.card, epsilon=1, delta="1e-6")
    rules = listed(plan.written, plan.query)
    idle = [rule for rule in rules if can_be_tried(rule, question)]
    for tried in range(MOST_TABLES):
        if tried >= FEWEST_TABLES and not idle:
            return None
        table = table_of(draw, 30 if tried % 2 else 60)
        plain.load(table)
        ours = engine_numbers(engine, question, plan, table)
        wrong = difference(question, plan, rules, ours, plain)
        if wrong:
            return wrong, question.sql
        idle = idle_rules(idle, rules, question, plain.connection)
    return (f"said, and cannot be: {idle[0]}", question.sql) if idle else None


def idle_rules(tried, rules, question, connection):
    """Those that change no number of this table: neither beside the others nor by themselves."""
    known, whole = question.plain(connection, rules), question.plain(connection, [])
    return [
        rule
        for rule in tried
        if question.plain(connection, [rule]) == whole
        and question.plain(connection, [one for one in rules if one != rule]) == known
    ]


def can_be_tried(rule, question):
    medians = {part.name for part in question.parts if part.kind == "median"}
    clamped_ranks = rule.code == "bounds" and set(rule.columns) <= medians  # no weight is lost
    return rule.code not in STRUCTURAL and not clamped_ranks
