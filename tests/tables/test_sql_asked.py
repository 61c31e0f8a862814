"""What a statement says before it is planned: its tables, its columns, its parameters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from sqlglot import exp

from lastbit.errors import QueryRefused
from lastbit.tables import ColumnType, columns_named, parameter_kinds, tables_named, with_values
from lastbit.tables.sql.asked import _is_same
from lastbit.tables.sql.parse import statement_tree


def test_tables_are_those_of_from_and_join() -> None:
    sql = 'WITH q AS (SELECT a FROM public."X") SELECT COUNT(*) FROM q JOIN y USING (a)'
    assert set(tables_named(sql)) == {"X", "y"}


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT COUNT(*) AS n, a FROM t GROUP BY a", ["n", "a"]),
        ("SELECT * FROM (SELECT b, COUNT(*) AS n FROM t GROUP BY b) q LIMIT 10", ["b", "n"]),
        ("WITH q AS (SELECT b, COUNT(*) AS n FROM t GROUP BY b) SELECT q.* FROM q", ["b", "n"]),
        ("SELECT * FROM t", None),
    ],
)
def test_columns_are_in_the_order_of_select(sql: str, names: list[str] | None) -> None:
    assert columns_named(sql) == names


def test_the_type_of_a_parameter_is_that_of_its_column() -> None:
    kinds = {"cost": "number", "day": "date"}
    sql = (
        "SELECT COUNT(*) FROM t WHERE cost > $2 AND day BETWEEN $1 AND $1 AND x = $4::int LIMIT $3"
    )
    found = parameter_kinds(sql, kinds.get)  # type: ignore[arg-type]  # kinds are texts
    assert found == ["date", "number", "integer", "integer"]


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40))
def test_no_text_is_read_as_anything_but_itself(value: str) -> None:
    sql = "SELECT COUNT(*) FROM t WHERE a = $1"
    written = with_values(sql, [("text", value)])
    tree = statement_tree(written)
    assert tree.args["where"].this.expression.this == value
    assert tree.sql() == statement_tree(sql.replace("$1", "'x'")).sql().replace(
        "'x'", tree.args["where"].this.expression.sql()
    )


@given(st.one_of(st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_stand_as_they_are(value: float) -> None:
    written = with_values("SELECT COUNT(*) FROM t WHERE a > $1", [("number", value)])
    shown = written.partition("a > ")[2].strip("()").replace(" ", "")
    assert float(shown) == float(value)


def test_a_negative_number_is_one_in_every_place() -> None:
    sql = "SELECT SUM($1::int) FROM t WHERE a - $1 > -$1 AND a ** $1 < 2 AND a IN ($1, 2)"
    written = with_values(sql, [("integer", -1)])
    again = statement_tree(written)
    assert written.count("(-1)") == 5
    assert len([one for one in again.find_all(exp.Neg) if one.name == "1"]) == 5


SENT: list[tuple[ColumnType, object]] = [
    ("text", "x"),
    ("text", None),
    ("number", -1e-7),
    ("boolean", True),
    ("date", "2000-01-01"),
    ("timestamp", "2000-01-01 00:00:00"),
]


@pytest.mark.parametrize("value", SENT)
@pytest.mark.parametrize(
    "sql",
    [
        'SELECT TOP 5 foo(a), STD(b), Region, "X y" FROM public.t AS Q WHERE a = $1 GROUP BY ALL',
        "WITH q AS (SELECT p, max(c) AS m FROM t GROUP BY p) SELECT AVG(m), COUNT(DISTINCT p), "
        "CASE WHEN m > $1 THEN 1.50::decimal(9, 2) ELSE 2 END FROM q JOIN s USING (k)",
        "SELECT COUNT(*) FILTER (WHERE a = $1), datediff('day', d, e) FROM (t JOIN s ON t.a = s.b) "
        "WHERE d < now() - interval 3 days AND a ILIKE '%x' AND b IS NOT NULL",
    ],
)
def test_what_is_printed_is_read_as_the_same_tree(
    sql: str, value: tuple[ColumnType, object]
) -> None:
    assert "$1" not in with_values(sql, [value])


@pytest.mark.parametrize(
    "other",
    ["a > 'A'", "A > 'a'", "a > 'a' LIMIT 3", "(a > 'a')", "a > a", "a >= 'a'", "a > 'a' AND b"],
)
def test_trees_that_differ_are_told_apart(other: str) -> None:
    one = statement_tree("SELECT COUNT(*) FROM t WHERE a > 'a'")
    two = statement_tree(f"SELECT COUNT(*) FROM t WHERE {other}")
    assert _is_same(one, one.copy())
    assert not _is_same(one, two) and not _is_same(two, one)


def test_a_printer_that_adds_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = exp.Select.sql

    def wrong(*told: Any, **more: Any) -> str:
        return printed(*told, **more) + " OR TRUE"

    monkeypatch.setattr(exp.Select, "sql", wrong)
    with pytest.raises(QueryRefused, match="not read as it was sent"):
        with_values("SELECT COUNT(*) FROM t WHERE a = $1", [("text", "x")])


def test_a_parameter_without_a_value_is_refused() -> None:
    with pytest.raises(QueryRefused):
        with_values("SELECT COUNT(*) FROM t WHERE a = $2", [("text", "x")])
    with pytest.raises(QueryRefused):
        with_values("SELECT COUNT(*) FROM t WHERE a = $1", [("number", float("inf"))])
