"""Each operation runs once on each row, whatever it says; the text is linear in the question."""

import random
import re

import pytest
from hypothesis import given, settings

from lastbit.errors import QueryRefused
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.rows import relation
from lastbit.tables.compile.statement import statement
from lastbit.tables.compile.steps import Steps, Typed, identifier
from lastbit.tables.limits import LONGEST_TEXT
from lastbit.tables.plan.sensitivity import measures_of
from lastbit.tables.query.expression import Call, ColumnName, Constant, Expression
from lastbit.tables.query.query import Aggregate, Query
from tests.tables.connecting import connected
from tests.tables.hostile import (
    CHOSEN,
    COST,
    FAMILIES,
    IS_CHOSEN,
    NAME,
    TYPES,
    card,
    counting,
    expressions,
)
from tests.tables.questions import numbers
from tests.tables.stepping import stepped

ROWS = 5_000
SOURCE = (
    "SELECT range AS who, CASE WHEN range = 77 THEN '{}' ELSE 'bob' END AS name, range % 90 AS age,"
    " range / 7 AS cost, '2024-02-30' AS note, DATE '2024-02-29' AS day FROM range({})"
)


@pytest.fixture(scope="module")
def engine():
    with connected() as connection:
        connection.execute("SET threads = 1")
        yield connection


def filled(engine, chosen):
    name = CHOSEN if chosen else "bob"
    engine.execute(
        f"CREATE OR REPLACE TEMP TABLE {identifier(relation())} AS {SOURCE.format(name, ROWS)}"
    )


def asked(expression, of=None):
    """The statement that counts the rows in which the expression has a value."""
    query = counting(expression)
    measures = measures_of(query)[0]
    return statement(query, of or card(unit=None), measures, secret="s", dialect=DUCKDB).sql


HOSTILE = list(expressions(random.Random(1), 10 * len(FAMILIES)))


@pytest.fixture(scope="module")
def counted(engine):
    """Rows on which the engine evaluates upper, where it stands in a statement as counted(...)."""
    seen = []

    def count(texts):
        seen.append(len(texts))
        return texts

    engine.create_function(
        "counted", count, ["VARCHAR"], "VARCHAR", type="arrow", null_handling="special"
    )
    return seen


UPPER = Call("upper", (NAME,))
BRANCHES = {
    "case": Call("case", (IS_CHOSEN, UPPER, Constant("x"))),
    "else": Call("case", (Call("<>", (NAME, Constant(CHOSEN))), Constant("x"), UPPER)),
    "and": Call("and", (IS_CHOSEN, Call("=", (UPPER, Constant("A"))))),
    "or": Call("or", (Call("<>", (NAME, Constant(CHOSEN))), Call("=", (UPPER, Constant("A"))))),
    "coalesce": Call(
        "coalesce", (Call("case", (Call("<>", (NAME, Constant(CHOSEN))), Constant("x"))), UPPER)
    ),
    "twice": Call(
        "clamp",
        (Call("+", (Call("length", (UPPER,)), COST)), Constant(0), Call("length", (UPPER,))),
    ),
    "nested": Call(
        "case", (IS_CHOSEN, Call("case", (IS_CHOSEN, Call("coalesce", (UPPER, NAME)))), NAME)
    ),
}


@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize("kind", ["SELECT", "WHERE"])
@pytest.mark.parametrize("branch", BRANCHES)
def test_an_operation_runs_once_on_each_row_whoever_asks_for_it(
    engine, counted, branch, kind, chosen
):
    filled(engine, chosen)
    counted.clear()
    sql = asked(BRANCHES[branch])
    if kind == "WHERE":
        part = Aggregate(name="n", function="count")
        test = (
            BRANCHES[branch] if branch in ("and", "or") else Call("is_missing", (BRANCHES[branch],))
        )
        query = Query(table="people", aggregates=(part,), where=test)
        measures = measures_of(query)[0]
        sql = statement(query, card(unit=None), measures, secret="s", dialect=DUCKDB).sql
    assert sql.count("upper(") == 1
    engine.execute(sql.replace("upper(", "counted(")).fetchall()
    assert sum(counted) == ROWS


ALIKE = {
    "case": Call("upper", (Call("case", (IS_CHOSEN, NAME, Constant("x"))),)),
    "coalesce": Call(
        "upper", (Call("coalesce", (Call("case", (IS_CHOSEN, NAME)), Constant("x"))),)
    ),
    "least": Call("upper", (Call("least", (NAME, Constant("A"))),)),
    "constants": Call("concat", (NAME, Call("upper", (Constant("x"),)))),
    "column": Call("upper", (ColumnName("note"),)),
}


@pytest.mark.parametrize("kind", ALIKE)
def test_rows_that_are_all_alike_are_worked_on_one_by_one(engine, counted, kind):
    """As an engine would not: it works on a value once for thousands of rows that have it."""
    filled(engine, chosen=False)
    sql = asked(ALIKE[kind])
    counted.clear()
    engine.execute(sql.replace("upper(", "counted(")).fetchall()
    assert sum(counted) == ROWS
    lazy = re.sub(r"CASE WHEN mixed THEN (\w+) ELSE \1 END", r"\1", sql)
    counted.clear()
    engine.execute(lazy.replace("upper(", "counted(")).fetchall()
    assert sum(counted) < ROWS or kind not in ("case", "constants")  # as it would be without


def test_few_steps_without_texts_are_left_as_they_are():
    assert "mixed" not in asked(Call("case", (IS_CHOSEN, COST, Constant(1))))
    assert "mixed" in asked(Call("case", (IS_CHOSEN, Call("length", (NAME,)), Constant(1))))
    many: Expression = COST
    for _ in range(12):
        many = Call("abs", (many,))
    assert "mixed" in asked(many)


def test_with_units_an_operation_runs_as_often_with_the_chosen_row_as_without(engine, counted):
    found = []
    for chosen in (True, False):
        filled(engine, chosen)
        counted.clear()
        engine.execute(asked(BRANCHES["case"], card()).replace("upper(", "counted(")).fetchall()
        found.append(sum(counted))
    assert found[0] == found[1] in (ROWS, 2 * ROWS)  # the statement may read the table twice


@pytest.mark.evidence
def test_no_statement_has_try_and_no_row_stops_one(engine):
    filled(engine, chosen=True)
    for _, expression in HOSTILE:
        sql = asked(expression)
        assert not re.search(r"\bTRY\s*\(", sql)
        assert engine.execute(sql).fetchall()


def test_the_text_is_linear_in_the_question():
    """Besides its constants, a statement has so many characters for each part at most."""
    for _, expression in HOSTILE:
        sql = re.sub(r"'[^']*'", "''", asked(expression))
        assert len(sql) <= 1_500 + 250 * expression.nodes


@settings(max_examples=30)
@given(numbers(3))
def test_operands_are_names_or_constants(expression):
    """So that no operation is written into another, where it could be run again."""
    types = dict.fromkeys(("cost", "free"), "number") | {"age": "integer", "many": "integer"}
    types |= {"day": "date", "seen": "timestamp", "region": "text", "Ward": "text", "ok": "boolean"}
    sql = stepped([expression], types | {"odd name": "text", "pid": "integer"}, "t")
    operations = len(re.findall(r" AS n\d+\b", sql))
    calls = expression.calls if isinstance(expression, Call) else 0
    assert operations <= 6 * calls + 1
    assert len(re.sub(r"'[^']*'", "''", sql)) <= 300 + 250 * getattr(expression, "nodes", 1)


@pytest.mark.evidence
def test_no_text_on_the_way_is_longer_than_stated(engine):
    """Every step of every hostile expression; upper and lower may grow by half before the check."""
    filled(engine, chosen=True)
    for _, expression in HOSTILE:
        sql = stepped([expression], TYPES, identifier(relation()))
        steps = re.findall(r" AS (n\d+)", sql)
        lengths = ", ".join(f"max(strlen(CAST({step} AS VARCHAR)))" for step in steps)
        (found,) = engine.execute(
            re.sub(r" SELECT [^()]* AS v0 FROM", f" SELECT {lengths} FROM", sql)
        ).fetchall()
        assert max(length or 0 for length in found) <= 1.5 * LONGEST_TEXT


def test_equal_operations_are_one():
    twice = Call("+", (Call("abs", (COST,)), Call("abs", (COST,))))
    assert stepped([twice], TYPES, "t").count("abs(") == 1


@pytest.mark.parametrize("function", ["least", "greatest", "coalesce", "concat", "+", "*"])
def test_an_operand_may_be_given_again_and_again(engine, function):
    """The engine refuses to copy a plan with least(a, b, a)."""
    filled(engine, chosen=True)
    one, two = ("name", "note") if function == "concat" else ("age", "who")
    parts = (ColumnName(one), Call("coalesce", (ColumnName(two),)), ColumnName(one)) * 3
    for some in (parts, parts[:1] * 4):
        assert engine.execute(asked(Call(function, some), card())).fetchall()


def test_a_value_that_needs_a_join_waits_for_it():
    steps = Steps()
    own, other = Typed("c1", "number"), Typed("p1_c1", "number", after=(1, 0))
    first = steps.value("abs(c1)", "number", own)
    both = steps.value("n1 + p1_c1", "number", first, other)
    assert (first.after, both.after) == ((0, 1), (1, 1))
    assert [list(steps.after_joins(k)) for k in (0, 1)] == [
        ["*, abs(c1) AS n1"],
        ["*, n1 + p1_c1 AS n2"],
    ]


def test_too_many_operations_are_refused():
    steps = Steps()
    with pytest.raises(QueryRefused, match="several questions"):
        for number in range(10**5):
            steps.value(f"c1 + {number}", "integer", Typed("c1", "integer"))


def test_columns_of_the_source_are_cast_once():
    sql = asked(Call("+", (ColumnName("cost"), Constant(1))))
    assert sql.count('"cost"') == sql.count("TRY_CAST") == 1
