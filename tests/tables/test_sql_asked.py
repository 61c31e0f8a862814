"""What a statement says before it is planned: its tables, its columns, its parameters."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from lastbit.errors import QueryRefused
from lastbit.tables import columns_named, parameter_kinds, tables_named, with_values
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
    shown = written.partition("a > ")[2].replace(" ", "")
    assert float(shown) == float(value)


def test_a_parameter_without_a_value_is_refused() -> None:
    with pytest.raises(QueryRefused):
        with_values("SELECT COUNT(*) FROM t WHERE a = $2", [("text", "x")])
    with pytest.raises(QueryRefused):
        with_values("SELECT COUNT(*) FROM t WHERE a = $1", [("number", float("inf"))])
