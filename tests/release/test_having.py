"""HAVING, ORDER BY, LIMIT: total functions of released values."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, strategies as st

from lastbit.release.formulas import EXACT, evaluate, shown_rows
from lastbit.tables.query.expression import Call, ColumnName, Constant
from lastbit.tables.query.query import Aggregate, OrderBy, Query
from lastbit.tables.query.rules import FUNCTIONS, call
from lastbit.tables.query.scan import GroupKey

ROW = {"n": 12, "mean": 2.5, "name": "Ab", "day": date(2024, 2, 29), "none": None, "yes": True}


def constant(value: Any) -> Constant:
    return Constant(value)


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        ("+", (1, 2, 3), 6), ("*", (2, 3), 6), ("-", (5, 3), 2), ("/", (1, 4), Fraction(1, 4)),
        ("/", (1, 0), None), ("%", (7, 4), 3), ("negate", (2,), -2), ("abs", (-2,), 2),
        ("floor", (Fraction(5, 2),), 2), ("ceil", (Fraction(5, 2),), 3), ("sqrt", (9,), 3),
        ("sqrt", (-1,), None), ("ln", (0,), None), ("exp", (10**6,), None), ("exp", (0,), 1),
        ("round", (Fraction(7, 2),), 4), ("power", (2, 10), 1024), ("clamp", (9, 0, 5), 5),
        ("bin", (7, 0, 5, 10), 5), ("bin", (10, 0, 5, 10), 5), ("bin", (11, 0, 5, 10), None),
        ("=", (1, 1), True), ("<>", (1, 1), False), ("<", (1, 2), True), (">=", (1, 2), False),
        ("<", ("a", 1), None), ("=", (None, 1), None),
        ("and", (True, None), None), ("and", (False, None), False), ("or", (True, None), True),
        ("or", (False, None), None), ("not", (True,), False), ("not", (None,), None),
        ("is_missing", (None,), True), ("coalesce", (None, 3), 3), ("in", (1, 2, 1), True),
        ("in", (1, 2, None), None), ("in", (1, 2), False), ("in", (None, 2), None),
        ("case", (False, 1, True, 2), 2), ("case", (None, 1, 5), 5), ("case", (False, 1), None),
        ("least", (3, None, 2), 2), ("greatest", (3, 2), 3), ("concat", ("a", None, 1), "a1"),
        ("like", ("Abc", "A%"), True), ("like", ("abc", "A%"), False),
        ("ilike", ("abc", "A__"), True), ("like", ("a.c", "a_c"), True), ("length", ("abc",), 3),
        ("lower", ("A",), "a"), ("upper", ("a",), "A"), ("trim", (" a ",), "a"),
        ("starts_with", ("abc", "ab"), True), ("contains", ("abc", "bc"), True),
        ("substring", ("hello", 2, 3), "ell"), ("substring", ("hello", 4), "lo"),
        ("to_integer", ("12",), 12), ("to_integer", ("x",), None),
        ("to_number", ("0.5",), Fraction(1, 2)),
        ("to_text", (True,), "true"), ("to_boolean", ("TRUE",), True),
        ("to_date", ("2024-01-31",), date(2024, 1, 31)),
        ("year", (date(2024, 5, 6),), 2024), ("quarter", (date(2024, 5, 6),), 2),
        ("month", (date(2024, 5, 6),), 5), ("day", (date(2024, 5, 6),), 6),
        ("hour", (datetime(2024, 5, 6, 7),), 7), ("hour", (date(2024, 5, 6),), None),
        ("weekday", (date(2024, 5, 5),), 0),
        ("days_between", (date(2024, 1, 1), date(2024, 3, 1)), 60),
        ("start_of_month", (date(2024, 5, 6),), date(2024, 5, 1)),
        ("start_of_week", (datetime(2024, 5, 8, 7),), date(2024, 5, 6)),
        ("start_of_hour", (datetime(2024, 5, 8, 7, 30),), datetime(2024, 5, 8, 7)),
        ("start_of_quarter", (date(2024, 5, 6),), date(2024, 4, 1)),
        ("week", (date(2024, 12, 30),), 1), ("iso_year", (date(2024, 12, 30),), 2025),
        ("minute", (date(2024, 5, 6),), None), ("day_of_year", (date(2024, 12, 31),), 366),
        ("strftime", (date(24, 5, 6), "%Y-%m %a"), "0024-05 Mon"),
        ("strftime", (date(2024, 5, 6), "%c"), None), ("strftime", ("a", "%Y"), None),
    ],
)  # fmt: skip
def test_values(function: str, arguments: tuple[Any, ...], expected: Any) -> None:
    found = evaluate(call(function, *map(constant, arguments)), ROW, EXACT)
    assert found == expected and type(found is None) is type(expected is None)


VALUES = st.sampled_from([None, True, 0, -3, Fraction(1, 3), 2.5, "a", "", date(2024, 1, 1)])


@given(st.sampled_from(sorted(FUNCTIONS)), st.lists(VALUES, min_size=4, max_size=4))
def test_every_function_is_total(function: str, values: list[Any]) -> None:
    least, most = FUNCTIONS[function]
    for count in {least, min(most or 4, 4)}:
        evaluate(Call(function, tuple(map(constant, values[:count]))), ROW, EXACT)
    assert evaluate(ColumnName("absent"), ROW, EXACT) is None


LONG = "a" * 3000


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        ("round", (12, -(10**18)), 0), ("round", (Fraction(1, 3), 10**18), Fraction(1, 3)),
        ("to_number", ("1e999999999999",), None), ("to_number", ("1e-999999999999",), 0),
        ("to_integer", ("1e999999999999",), None), ("to_number", ("1" * 4_000,), None),
        ("to_number", ("1e2",), 100), ("to_number", ("nan",), None), ("to_number", ("inf",), None),
        ("like", (LONG, "%a" * 40 + "%b"), False), ("like", (LONG, "%a" * 40 + "%"), True),
        ("ilike", (LONG, "%A%_" * 40 + "b"), False),
    ],
)  # fmt: skip
def test_no_value_takes_long_or_fails(
    function: str, arguments: tuple[Any, ...], expected: Any
) -> None:
    """Before the charge, an error or an endless wait would be an answer that nobody paid for."""
    found = evaluate(call(function, *map(constant, arguments)), ROW, EXACT)
    assert found == expected or abs(found - expected) < Fraction(1, 10**15)


def test_whatever_is_raised_is_missing() -> None:
    def full(*values: Any) -> Any:
        raise MemoryError

    meaning = replace(EXACT, functions={"abs": full})
    assert evaluate(call("abs", constant(1)), ROW, meaning) is None


@given(st.text("ab%_.\n", max_size=8), st.text("ab%_.\n", max_size=6))
def test_like_is_what_it_was(text: str, pattern: str) -> None:
    parts = (".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
    wanted = re.fullmatch("".join(parts), text, re.DOTALL) is not None
    assert evaluate(call("like", constant(text), constant(pattern)), ROW, EXACT) is wanted


def query(**values: Any) -> Query:
    return Query(
        table="t",
        keys=(GroupKey(name="g", expression=ColumnName("g"), values=("a", "b", "c", "d")),),
        aggregates=(Aggregate(name="n", function="count"),),
        **values,
    )


ROWS: list[list[Any]] = [["a", 5], ["b", None], ["c", -3], ["d", 5]]


def test_having_keeps_what_is_true() -> None:
    condition = call(">", ColumnName("N"), Constant(-3))
    assert shown_rows(query(having=condition), ["g", "n"], ROWS) == [0, 3]
    assert shown_rows(query(having=call("not", condition)), ["g", "n"], ROWS) == [2]


def test_order_is_stable_and_the_missing_come_last() -> None:
    up, down = OrderBy(name="n"), OrderBy(name="n", descending=True)
    assert shown_rows(query(order=(up,)), ["g", "n"], ROWS) == [2, 0, 3, 1]
    assert shown_rows(query(order=(down,)), ["g", "n"], ROWS) == [0, 3, 2, 1]
    both = (up, OrderBy(name="g", descending=True))
    assert shown_rows(query(order=both, limit=2), ["g", "n"], ROWS) == [2, 3]
    assert shown_rows(query(limit=0), ["g", "n"], ROWS) == []
