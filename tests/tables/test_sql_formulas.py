"""Formulas over released numbers in SQL: functions, aliases of aliases, ORDER BY of expressions."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lastbit.errors import QueryRefused
from lastbit.tables.query.expression import Call, ColumnName, Constant, Expression
from lastbit.tables.query.query import OrderBy, Query
from lastbit.tables.sql.statement import parsed
from tests.tables.asked import CARD

N, M = ColumnName("n"), ColumnName("m")
BOTH = "SELECT region, COUNT(*) AS n, SUM(age) AS m FROM visits GROUP BY region"


def asked(text: str) -> Query:
    return parsed(text, CARD)


def formula(text: str) -> Expression:
    """What a formula over n and m is."""
    query = asked(BOTH.replace(" FROM", f", {text} AS x FROM"))
    return next(one.expression for one in query.derived if one.name == "x")


def half_to(name: str) -> Expression:
    return Call("power", (ColumnName(name), Constant(Fraction(1, 2))))


def cut_off(first: Expression, second: Expression) -> Expression:
    exact = Call("/", (first, second))
    ends = Call("floor", (exact,)), Call("ceil", (exact,))
    return Call("case", (Call(">=", (exact, Constant(0))), *ends))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("LN(n)", Call("ln", (N,))),
        ("EXP(n / m)", Call("exp", (Call("/", (N, M)),))),
        ("LOG(n)", Call("log", (Constant(10), N))),
        ("LOG10(COUNT(*))", Call("log", (Constant(10), N))),
        ("LOG2(n)", Call("log", (Constant(2), N))),
        ("LOG(m, n)", Call("log", (M, N))),
        ("POWER(n, 0.5)", half_to("n")),
        ("n ^ 0.5", half_to("n")),
        ("POW(SUM(age), 0.5)", half_to("m")),
        ("m // n", cut_off(M, N)),  # of whole numbers: before its noise the sum is one
        ("n // 2", cut_off(N, Constant(2))),
        ("m // 2.5", Call("/", (M, Constant(Fraction(5, 2))))),
        ("GREATEST(n, m, 3)", Call("greatest", (N, M, Constant(3)))),
        ("IFNULL(n / m, 0)", Call("coalesce", (Call("/", (N, M)), Constant(0)))),
    ],
)
def test_functions_of_released_numbers(text: str, expected: Expression) -> None:
    assert formula(text) == expected


def test_an_alias_may_name_an_alias_further_to_the_left() -> None:
    query = asked("SELECT COUNT(*) AS n, n * 2 AS twice, twice + 1 AS x FROM visits")
    twice = Call("*", (N, Constant(2)))
    assert [one.expression for one in query.derived] == [twice, Call("+", (twice, Constant(1)))]
    assert query.shown == ("n", "twice", "x")
    with pytest.raises(QueryRefused, match="named before it is computed"):
        asked("SELECT twice + 1 AS x, COUNT(*) AS n, n * 2 AS twice FROM visits")


@pytest.mark.parametrize(
    ("text", "names", "formulas"),
    [
        ("COUNT(*) DESC", ["n"], []),
        ("(n) DESC", ["n"], []),
        ("2 DESC", ["n"], []),
        ("n / m DESC", ["sorted_by"], [Call("/", (N, M))]),
        ("ABS(n - 5) DESC", ["sorted_by"], [Call("abs", (Call("-", (N, Constant(5))),))]),
        ("-n, m DESC", ["sorted_by", "m"], [Call("negate", (N,))]),
        ("LOG(COUNT(*)) DESC", ["sorted_by"], [Call("log", (Constant(10), N))]),
        ("SUM(age) / n DESC", ["sorted_by"], [Call("/", (M, N))]),
    ],
)
def test_order_by_an_expression(text: str, names: list[str], formulas: list[Expression]) -> None:
    query = asked(f"{BOTH} ORDER BY {text}")
    assert [order.name for order in query.order] == names
    assert query.order[-1].descending
    assert [one.expression for one in query.derived] == formulas
    assert query.selected == ("n", "m")  # what sorts is not shown


def test_order_by_and_having_see_formulas_by_their_alias() -> None:
    text = "SELECT COUNT(*) AS n, LN(n) AS l FROM visits HAVING LOG(n) > 2 ORDER BY l * 2"
    query = asked(text)
    assert query.selected == ("n", "l")
    assert [one.name for one in query.derived] == ["l", "sorted_by", "sorted_by_2"]
    assert query.having == Call(">", (ColumnName("sorted_by"), Constant(2)))
    assert query.order == (OrderBy(name="sorted_by_2"),)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{BOTH} ORDER BY age + n", "stands beside aggregates"),
        (f"{BOTH} ORDER BY length(ward)", "not released"),
        (f"{BOTH} ORDER BY n % 2", "on released numbers"),
        (f"{BOTH} ORDER BY n > 2", "is not a number"),
        (
            "SELECT LOG(age) AS l, COUNT(*) FROM visits GROUP BY 1",
            "is of type number",
        ),
        ("SELECT LOG(1, 2, COUNT(*)) AS l FROM visits", "no SQL|no meaning"),
    ],
)
def test_refused(text: str, problem: str) -> None:
    with pytest.raises(QueryRefused, match=problem):
        asked(text)
