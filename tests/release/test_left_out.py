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
from lastbit.report.answer import expression_words
from lastbit.tables import Column, Plan, Query, Rule, parsed, planned, rules_of
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
    if "above" in parts:
        return [_of_ends(recipe, parts["above"], parts["below"], plan)]
    match recipe.function:
        case "count_units" | "count_distinct":
            return list(parts.values())
        case "count":
            return [parts["rows"] / one]
        case "histogram":
            return [weight / one for weight in parts["bins"]]
        case "quantile":
            return [sum(parts["bins"]) / one]
    name = recipe.measures.get("values") or recipe.measures["above"]
    grid = next(measure for measure in plan.measures if measure.name == name)
    step, centre = float(grid.step), float(grid.centre)
    if recipe.function == "sum":
        return [step * parts["values"] / one + centre * parts.get("rows", 0) / one]
    if not parts["rows"]:
        return [None]
    mean = parts["values"] / parts["rows"]
    if recipe.function == "mean":
        return [centre + step * mean]
    return [step**2 * (parts["squares"] / parts["rows"] - mean**2)]


def _of_ends(recipe: Any, above: int, below: int, plan: Any) -> Any:
    """The same where distances from both ends are measured (`release/ends.py`)."""
    grid = next(measure for measure in plan.measures if measure.name == recipe.measures["above"])
    rows, low = (above + below) / grid.highest, float(grid.centre)
    values = low * rows + float(grid.step) * above
    if recipe.function == "mean":
        return values / rows if rows else None
    return (rows if recipe.function == "count" else values) / plan.weight_one


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    made = Machine(tmp_path_factory.mktemp("public"))
    yield made
    made.engine.close()


def difference(
    question: Question, plan: Plan, rules: tuple[Rule, ...], ours: Groups, plain: Any
) -> str | None:
    """Where the engine's numbers are not those of plain SQL with these rules."""
    recipes = plan.written.recipes
    beside = {one.aggregate for one in recipes if {"rows", "above"} & set(one.measures)}
    theirs = question.plain(plain, [*rules], beside)
    codes = {rule.code for rule in rules}
    kinds = [part.kind for part in question.parts for _ in part.numbers([])]
    nothing = tuple(None if kind in ("mean", "variance") else 0 for kind in kinds)
    # a key that is not declared is shown or not by its units: that is the threshold's rule
    groups = set(ours) if "threshold" in codes else set(ours) | set(theirs)
    coarsest = max((float(rule.step) for rule in rules if rule.step is not None), default=0.0)
    for group in groups:
        pairs = zip(kinds, ours.get(group, nothing), theirs.get(group, nothing), strict=True)
        for kind, mine, other in pairs:
            by_lot = {"units": "max_groups", "distinct": "distinct"}.get(kind)
            if by_lot in codes and mine <= other:
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
    draw = random.Random(number)
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
        wrong = difference(question, plan, rules, ours, machine.plain)
        if wrong:
            return f"{number}: {wrong} ({question.sql})"
        idle = idle_rules(idle, rules, question, machine.plain)
    return f"{number}: said, and cannot be: {idle[0]} ({question.sql})" if idle else None


def test_what_is_counted_is_the_whole_table_with_the_rules_that_are_listed(
    machine: Machine, extent: Extent
) -> None:
    for number in range(extent.generated(8, 1_000)):
        assert problem(machine, number) is None


def first_problem(
    machine: Machine, has: Callable[[Plan, Question], bool], listing: Listing, mutant: Any = None
) -> str | None:
    """What is wrong with the first few questions of a kind."""
    tried = 0
    for number in range(2_000):
        question = question_of(random.Random(number), machine.places)
        if has(planned_question(question), question):
            tried += 1
            wrong = problem(machine, number, listing, mutant or (lambda query: query))
            if wrong or tried == 8:
                return wrong
    raise AssertionError("no such question is drawn")


SAID = (
    *("no_unit", "max_rows", "max_groups", "distinct", "threshold", "no_match", "one_match"),
    *("joined_rows", "condition", "keys", "no_key", "key_bounds", "bins", "edges", "bounds"),
    *("unit_bounds", "step", "missing", "promised"),
)


@pytest.mark.thinned(one_in=7)
@pytest.mark.parametrize("code", SAID)
def test_a_rule_that_is_not_said_is_noticed(machine: Machine, code: str) -> None:
    def listing(plan: Any, query: Query) -> tuple[Rule, ...]:
        return tuple(rule for rule in rules_of(plan, query) if rule.code != code)

    def has(plan: Plan, _: Question) -> bool:
        return any(rule.code == code for rule in rules_of(plan.written, plan.query))

    assert first_problem(machine, has, listing)


@pytest.mark.thinned(one_in=3)
@pytest.mark.parametrize(
    "more",
    [
        Rule(code="no_key", name="truth"),
        Rule(code="bounds", ends=(Fraction(0), Fraction(1)), columns=("late",)),
        Rule(code="missing", columns=("near",)),
    ],
)
def test_a_rule_that_cannot_be_is_noticed(machine: Machine, more: Rule) -> None:
    name = more.name or more.columns[0]

    def has(_: Plan, question: Question) -> bool:
        named: list[Any] = [*question.keys, *question.parts]
        return name in {one.name for one in named}

    assert first_problem(machine, has, lambda plan, query: (*rules_of(plan, query), more))


def with_keys(query: Query, change: Callable[[Any], Any]) -> Query:
    return replace(
        query, keys=tuple(replace(key, expression=change(key.expression)) for key in query.keys)
    )


def open_above(binned: Any) -> Any:
    """As `bin` was: without its last edge, which a CASE moves into the last bin."""
    closed, *edges = binned.arguments
    return replace(binned, arguments=(closed.arguments[-1], *edges))


def test_bins_that_lose_their_last_edge_are_noticed(machine: Machine) -> None:
    def has(_: Plan, question: Question) -> bool:
        return [key.name for key in question.keys] == ["b"]

    found = first_problem(machine, has, rules_of, lambda query: with_keys(query, open_above))
    assert found and "plain SQL" in found


@pytest.mark.parametrize("name", ["num", "n"])
def test_keys_that_vanish_beyond_their_bounds_are_noticed(machine: Machine, name: str) -> None:
    """As whole numbers were, in a table and in a sub-query: dropped, and nothing said so."""

    def has(_: Plan, question: Question) -> bool:
        return [key.name for key in question.keys] == [name] and question.card.max_rows > 1

    def dropped(query: Query) -> Query:
        return with_keys(query, lambda key: key.arguments[0])

    def listing(plan: Any, query: Query) -> tuple[Rule, ...]:
        return tuple(rule for rule in rules_of(plan, query) if rule.code != "keys")

    found = first_problem(machine, has, listing, dropped)
    assert found and "plain SQL" in found


# ---------------------------------------------------------------- what people read


def orders(max_rows: int = 10) -> Any:
    """300 customers: 100 with 1 order, 100 with 3, 100 with 30; months 0 to 14, some missing."""
    rows = duckdb.connect().sql(
        """SELECT c AS customer, CASE WHEN i % 16 < 15 THEN i % 16 END AS month,
           i / 4 AS paid, i % 3 = 0 AS late FROM range(300) AS one(c), range(30) AS two(i)
           WHERE i < CASE c % 3 WHEN 0 THEN 1 WHEN 1 THEN 3 ELSE 30 END"""
    )
    columns = [
        Column(name="customer", type="integer"),
        Column(name="month", type="integer", bounds=(1, 12)),
        Column(name="paid", type="number", bounds=(0, 5)),
        Column(name="late", type="boolean"),
    ]
    limits: Any = {"max_rows": max_rows, "max_groups": 4}
    return lb.table(rows, unit="customer", columns=columns, name="orders", **limits)


def answered(sql: str, max_rows: int = 10) -> Any:
    return orders(max_rows).sql(sql).release(epsilon=10_000, delta="1e-6")


def shown(answer: Any) -> dict[Any, Any]:
    return {row.keys[0]: row.cells[0].value for row in answer.rows}


def test_customers_with_many_orders_are_in_the_last_group_and_none_in_an_impossible_one() -> None:
    """Failed before: customers with more than 10 orders were gone, and 0 orders had a row."""
    inner = "SELECT customer, COUNT(*) AS k FROM orders GROUP BY customer"
    answer = answered(f"SELECT k, COUNT(*) AS n FROM ({inner}) GROUP BY k")
    assert shown(answer) == {1: 100, 3: 100, 10: 100} | dict.fromkeys([2, 4, 5, 6, 7, 8, 9], 0)
    assert "k: rows below 1 count at 1, and rows above 10 at 10." in answer.notes
    assert not any("counts for at most" in note for note in answer.notes)  # each has one row


def test_whole_numbers_beyond_their_bounds_are_at_the_nearer_one() -> None:
    """Failed before: months 0, 13 and 14 were gone."""
    answer = answered("SELECT month, COUNT(DISTINCT customer) AS n FROM orders GROUP BY month")
    rules = {rule.code: rule for rule in answer.left_out}
    assert set(rules) == {"no_unit", "key_bounds", "no_key", "max_groups"}
    assert rules["max_groups"].most == 4
    whole = orders().sql("SELECT month, COUNT(*) AS n FROM orders GROUP BY month")
    assert [key.values for key in whole.query.keys] == [tuple(range(1, 13))]
    note = "n: each customer counts in at most 4 groups."
    assert note in answer.notes  # failed before: nothing said so


def test_the_last_bin_holds_its_upper_edge_as_that_of_a_histogram_does() -> None:
    """Failed before: rows at 5 were in no bin."""
    bins = "SELECT bin(paid, 0, 1, 2, 5) AS b, COUNT(*) AS n FROM orders GROUP BY b"
    histogram = answered("SELECT HISTOGRAM(paid, 0, 1, 2, 5) AS h FROM orders", max_rows=30)
    counts = [cell.value for cell in histogram.rows[0].cells]
    assert list(shown(answered(bins, max_rows=30)).values()) == counts == [800, 400, 1300]


@pytest.mark.parametrize(
    ("sql", "codes"),
    [
        ("SELECT COUNT(DISTINCT customer) AS n FROM orders", {"no_unit"}),
        ("SELECT COUNT(*) AS n FROM orders", {"no_unit", "max_rows"}),
        (
            "SELECT late IS NULL AS l, COUNT(*) AS n FROM orders GROUP BY l",
            {"no_unit", "max_rows"},
        ),
        (
            "SELECT SUM(CASE WHEN late THEN 1 ELSE 0 END) AS n FROM orders WHERE late IS NOT NULL",
            {"no_unit", "max_rows"},
        ),
        (  # by both ends of its values
            "SELECT AVG(paid) AS n FROM orders WHERE paid IS NOT NULL",
            {"no_unit", "max_rows", "bounds", "step"},
        ),
        (
            "SELECT CORR(paid, month) AS r FROM orders",
            {"no_unit", "max_rows", "bounds", "step", "missing"},
        ),
        (  # of which both ends are measured
            "SELECT AVG(paid) AS n FROM orders",
            {"no_unit", "max_rows", "bounds", "step", "missing"},
        ),
        (
            "SELECT late, COUNT(*) AS n FROM orders GROUP BY late HAVING n > 3 LIMIT 1",
            {"no_unit", "max_rows", "no_key", "having", "limit"},
        ),
        (
            "SELECT late, COUNT(*) AS n FROM orders GROUP BY late LIMIT 2",
            {"no_unit", "max_rows", "no_key"},
        ),
    ],
)
def test_a_question_says_what_it_can_leave_out_and_nothing_else(sql: str, codes: set[str]) -> None:
    answer = answered(sql)
    assert {rule.code for rule in answer.left_out} == codes
    assert all(columns <= {"n", "r"} for columns in (set(one.columns) for one in answer.left_out))


def test_a_case_of_columns_says_that_they_count_at_their_bounds() -> None:
    """The keys of a CASE of constants are asked for; those of one of columns the bounds tell."""
    for result, said in (("month", True), ("1", False)):
        case = f"CASE WHEN month > 2 THEN {result} ELSE 0 END"
        answer = answered(f"SELECT {case} AS k, COUNT(*) AS n FROM orders GROUP BY k")
        assert ("key_bounds" in {rule.code for rule in answer.left_out}) is said


def test_notes_say_what_is_left_out_by_which_rule_and_where() -> None:
    answer = answered(
        "SELECT bin(paid, 0, 1, 4) AS b, AVG(paid) AS m, COUNT(*) AS n FROM orders "
        "WHERE month > 2 GROUP BY b"
    )
    assert answer.notes[-6:-1] == (
        "lastbit leaves out rows without a customer.",
        "b: lastbit leaves out rows with paid below 0 or above 4.",
        "m: paid below 0 counts as 0, and above 5 as 5.",
        "m: lastbit rounds values to multiples of 4.769e-6 or less.",
        "WHERE, b and m: lastbit leaves out rows with a missing or unreadable value.",
    )


def test_synthetic_rows_say_which_pairs_were_not_measured() -> None:
    """Failed before: nothing said that a and c were never looked at together."""
    sql = "SELECT range % 2 AS a, range % 3 AS b, range % 2 AS c FROM range(90)"
    rows = duckdb.connect().sql(sql)
    table = lb.table(rows, each_row=True, keys={"a": [0, 1], "b": [0, 1, 2], "c": [0, 1]})
    tables = table.marginals(["a", "b", "c"]).release(epsilon=1)
    made = Synthetic(columns={"a": [0], "b": [0], "c": [0]}, tables=tables)
    assert made.unmeasured == () and made.notes == tables.notes
    one_way = replace(made, left_out=(("a", "c"), ("b", "c")))
    assert one_way.unmeasured == (("a", "c"), ("b", "c"))
    assert one_way.notes[0] == (
        "Not measured together: a with c, b with c. What rows say of such a pair may be far off."
    )


def test_a_bin_is_shown_as_it_was_written() -> None:
    binned = orders().sql("SELECT bin(paid, 0, 1, 4) AS b, COUNT(*) AS n FROM orders GROUP BY b")
    closed = binned.query.keys[0].expression
    assert expression_words(closed) == expression_words(open_above(closed)) == "bin(paid, 0, 1, 4)"


def test_whole_keys_of_0_and_1_are_not_all_there_are(tmp_path: Any) -> None:
    """They equal False and True, of which there are no others: the line was missing."""
    path = tmp_path / "t.parquet"
    duckdb.sql(f"COPY (SELECT range % 3 AS grade FROM range(90)) TO '{path}'")
    asked = lb.table(path, each_row=True, keys={"grade": [0, 1]}).group_by("grade")
    answer = asked.agg(n=lb.count()).release(epsilon=1)
    assert "keys" in [rule.code for rule in answer.left_out]
