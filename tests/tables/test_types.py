"""Types: what an expression is, and what is refused as nonsense before anything runs."""

from __future__ import annotations

from datetime import date, datetime
from fractions import Fraction
from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import given, settings, strategies as st

from lastbit.errors import QueryRefused
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.rows import CompiledRows
from lastbit.tables.query.expression import (
    Call,
    ColumnName,
    Constant,
    Expression,
    value_type,
)
from lastbit.tables.query.rules import FUNCTIONS, call
from lastbit.tables.query.scan import Scan
from lastbit.tables.query.sub_query import derived_card
from lastbit.tables.query.types import card_types, dated, may_be_missing, type_of, typed
from lastbit.tables.query.units import PerUnit, UnitColumn, UnitFunction, UnitKey
from tests.tables.asked import CARD, COLUMNS, card_with
from tests.tables.questions import days, numbers, texts, truths

LOOKUP = card_types(CARD)
AGE, COST, WARD, DAY, SEEN, OK = map(ColumnName, ("age", "cost", "Ward", "day", "seen", "ok"))
OF_TYPE = {
    "integer": AGE,
    "number": COST,
    "text": WARD,
    "date": DAY,
    "timestamp": SEEN,
    "boolean": OK,
}


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        (AGE, "integer"),
        (ColumnName("zone", "regions"), "text"),
        (Constant(None), None),
        (call("+", AGE, AGE), "integer"),
        (call("+", AGE, COST), "number"),
        (call("/", AGE, AGE), "number"),
        (call("clamp", AGE, Constant(0), Constant(9)), "integer"),
        (call("case", OK, AGE, COST), "number"),
        (call("case", OK, Constant(None)), None),
        (call("coalesce", Constant(None), WARD), "text"),
        (call("least", DAY, SEEN), "timestamp"),
        (call("bin", COST, Constant(0), Constant(9)), "integer"),
        (call("bin", AGE, Constant(Fraction(1, 2)), Constant(9)), "number"),
        (call("start_of_month", SEEN), "date"),
        (call("days_between", DAY, SEEN), "integer"),
        (call("in", AGE, Constant(None), Constant(1)), "boolean"),
    ],
)
def test_types_of_expressions(expression, kind):
    assert type_of(expression, LOOKUP) == kind


ILL_TYPED = [
    call("+", AGE, WARD),
    call("and", OK, AGE),
    call("not", WARD),
    call("=", DAY, AGE),
    call("=", OK, AGE),
    call("<", WARD, AGE),
    call("in", WARD, Constant(1)),
    call("case", AGE, OK),
    call("case", OK, AGE, WARD),
    call("coalesce", AGE, WARD),
    call("like", AGE, WARD),
    call("hour", DAY),
    call("year", AGE),
    call("days_between", DAY, AGE),
    call("length", AGE),
    call("concat", WARD, AGE),
    call("substring", WARD, COST),
    call("substring", AGE, AGE),
    call("round", COST, COST),
    call("to_integer", DAY),
    call("to_date", AGE),
    call("to_boolean", COST),
    call("-", DAY, DAY),
]


@pytest.mark.parametrize("expression", ILL_TYPED, ids=str)
def test_nonsense_is_refused(expression):
    with pytest.raises(QueryRefused):
        type_of(expression, LOOKUP)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_has_a_type_or_a_refusal_for_every_kind_of_argument(function):
    """A function without a rule would raise a KeyError somewhere; every one must take something."""
    least, most = FUNCTIONS[function]
    typed_at_least_once = False
    for first in OF_TYPE.values():
        for second in OF_TYPE.values():
            for count in {least, most if most is not None else least + 1}:
                arguments = (first, *[second] * (count - 1))
                try:
                    assert type_of(Call(function, arguments), LOOKUP) in OF_TYPE
                    typed_at_least_once = True
                except QueryRefused:
                    pass
    assert typed_at_least_once


def test_texts_beside_dates_are_dates():
    found = dated(call("<", Constant("2020-02-29"), DAY), LOOKUP)
    assert found == call("<", Constant(date(2020, 2, 29)), DAY)
    found = dated(call("in", SEEN, Constant("2020-02-29"), Constant("2020-01-01 10:30:00")), LOOKUP)
    assert found.arguments[1:] == (  # type: ignore[union-attr]
        Constant(datetime(2020, 2, 29)),
        Constant(datetime(2020, 1, 1, 10, 30)),
    )
    assert dated(call("=", WARD, Constant("2020-02-29")), LOOKUP).arguments[1].value == "2020-02-29"  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["31.1.2020", "", "2020-02-30", "yesterday"])
def test_texts_that_are_no_dates_are_refused(text):
    with pytest.raises(QueryRefused, match="2026-01-31"):
        dated(call("<", DAY, Constant(text)), LOOKUP)


def test_times_with_a_zone_are_refused():
    with pytest.raises(QueryRefused, match="zone"):
        dated(call("<", SEEN, Constant("2020-01-01T00:00:00+01:00")), LOOKUP)


def test_truth_values_are_no_whole_numbers():
    assert [value_type(v) for v in (True, 1, Fraction(1), date(2020, 1, 1))] == [
        "boolean", "integer", "number", "date",
    ]  # fmt: skip


def test_columns_that_are_nowhere():
    with pytest.raises(QueryRefused):
        type_of(ColumnName("zone", "nowhere"), LOOKUP)


def test_deep_and_long_expressions_are_refused():
    deep = AGE
    for _ in range(50):
        deep = call("abs", deep)  # type: ignore[assignment]
    assert typed(deep, LOOKUP) == deep
    for bad in (lambda: call("abs", deep), lambda: Call("+", (AGE,) * 1_001)):
        with pytest.raises(QueryRefused, match="simplify"):
            bad()


@settings(max_examples=150, deadline=None)
@given(st.one_of(numbers(2), texts(2), days(2), truths(2)))
def test_a_statement_types_an_expression_as_the_planner_does(expression: Expression) -> None:
    rows = CompiledRows(Scan(table="visits"), CARD, dialect=DUCKDB)
    try:
        wanted = type_of(expression, card_types(CARD))
    except QueryRefused:
        with pytest.raises(QueryRefused):
            rows.value(expression)
        return
    assert rows.value(expression).type == wanted


BOUNDS = Fraction(0), Fraction(10)
GRIDS = [(None, None), (BOUNDS, None), (BOUNDS, Fraction(1)), (BOUNDS, Fraction(1, 2))]


@pytest.mark.parametrize("function", get_args(UnitFunction))
def test_a_statement_types_the_columns_of_a_sub_query_as_the_planner_does(function: Any) -> None:
    made = [ColumnName(one.name) for one in COLUMNS] + [Constant(None)]
    for expression, (bounds, step) in product([*made, None], GRIDS):
        if expression is None and function != "count":
            continue
        part = UnitColumn(
            name="x", function=function, expression=expression, bounds=bounds, step=step
        )
        for key in made:
            inner = PerUnit(columns=(part,), keys=(UnitKey(name="k", expression=key),))
            try:
                wanted = derived_card(CARD, inner).columns
            except QueryRefused:
                with pytest.raises(QueryRefused):
                    CompiledRows(Scan(table="visits", per_unit=inner), CARD, dialect=DUCKDB)
                continue
            rows = CompiledRows(Scan(table="visits", per_unit=inner), CARD, dialect=DUCKDB)
            assert rows.sub_query == {name: one.type for name, one in wanted.items()}


def test_a_sub_query_without_its_unit_is_refused() -> None:
    """A column in place of the unit, no unit at all, a column that is not.

    The planner refuses it, and whoever planned it, the checker (tests/verify/test_check_units.py).
    """
    counted = PerUnit(columns=(UnitColumn(name="n", function="count"),))
    hidden = PerUnit(columns=(UnitColumn(name="PID", function="count"),))
    alone = card_with(unit=None, max_rows=1, max_groups=None)
    key = PerUnit(keys=(UnitKey(name="pid", expression=WARD),))
    for inner, card, problem in (
        (hidden, CARD, "two columns of one name"),
        (key, CARD, "two columns of one name"),
        (counted, alone, "each row is one"),
    ):
        with pytest.raises(QueryRefused, match=problem):
            derived_card(card, inner)
    rows = CompiledRows(Scan(table="visits", per_unit=counted), CARD, dialect=DUCKDB)
    with pytest.raises(QueryRefused, match="is not a column of the sub-query"):
        rows.value(AGE)


@pytest.mark.parametrize(
    ("expression", "can_be"),
    [
        (Call("ln", (ColumnName("age"),)), True),
        (Call("sqrt", (ColumnName("age"),)), True),
        (Call("/", (Constant(100), ColumnName("age"))), True),
        (Call("%", (ColumnName("age"), Constant(0))), True),
        (Call("%", (ColumnName("age"), Constant(7))), False),
        (Call("/", (ColumnName("age"), Constant(Fraction(1, 2)))), False),
        (Call("+", (ColumnName("age"), Constant(1))), False),
        (Call("coalesce", (Call("ln", (ColumnName("age"),)), Constant(0))), False),
    ],
)
def test_what_has_no_value_of_a_column_that_has_one(expression: Expression, can_be: bool) -> None:
    assert may_be_missing(expression, frozenset({"age"})) is can_be
