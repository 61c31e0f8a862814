"""Constants of another type than their column: what DuckDB reads, or a refusal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import duckdb
import pytest

from lastbit.errors import QueryRefused
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.expressions import Spelling
from lastbit.tables.compile.steps import Steps, Typed
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.types import typed
from lastbit.tables.sql.expressions import translated
from lastbit.tables.sql.parse import expression_tree
from lastbit.tables.sql.statement import parsed
from tests.tables.asked import CARD

TYPES = {"i": "integer", "f": "number", "b": "boolean", "s": "text"}
ROWS: list[tuple[Any, ...]] = [
    (i, i / 2, (True, False, None)[i % 3], str(i)) for i in range(-3, 12)
]
ROWS += [(None, None, None, None), (1, 0.5, True, "true")]
TEXTS = ("'8'", "' 8 '", "'+3'", "'-2'", "'8.0'", "'0'", "'1'", "'2.5'", "'.5'", "'TRUE'", "'f'")
OTHERS = ("'x'", "''", "'1e1'", "'0x1'", "'1_0'", "'nan'", "'inf'", "'٣'", "'yes'", "TRUE", "FALSE")
PLAIN = ("0", "1", "2", "-1", "0.5", "1.0", "i", "f", "b", "(i > 3)", "NULL")
SIGNS = ("=", "<>", "<", "<=", ">", ">=")


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t (i BIGINT, f DOUBLE, b BOOLEAN, s VARCHAR)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", ROWS)
        yield connection


def meaning(text: str) -> str:
    """What we read, in DuckDB's words."""

    def lookup(column: ColumnName) -> Any:
        return TYPES[column.name]

    expression = typed(translated(expression_tree(text), lambda n: ColumnName(n.name)), lookup)
    spelling = Spelling(lambda c: Typed(c.name, lookup(c)), steps := Steps(evens=False), DUCKDB)
    condition = spelling.spelled(expression).sql
    layers = ["l0 AS (SELECT * FROM t)"]
    for step in steps.after_joins(0):
        layers.append(f"l{len(layers)} AS (SELECT {step} FROM l{len(layers) - 1})")
    return f"WITH {', '.join(layers)} SELECT {condition} FROM l{len(layers) - 1}"


def test_what_is_read_is_what_duckdb_reads(engine: Any) -> None:
    """Every column beside every constant, with every sign: the truth values of all rows."""
    read = 0
    for column, sign, other in product(TYPES, SIGNS, (*TEXTS, *OTHERS, *PLAIN)):
        for text in (f"{column} {sign} {other}", f"{other} {sign} {column}"):
            try:
                sql = meaning(text)
            except QueryRefused:
                continue
            if column == "b" and other == "1.0":
                continue  # 1.0 is 1 here; DuckDB does not compare decimals with truth values
            truth = engine.execute(f"SELECT {text} FROM t").fetchall()
            read += 1
            assert engine.execute(sql).fetchall() == truth, text
    assert read > 800


@pytest.mark.parametrize(
    "text",
    [
        "i IN ('1', ' 2', '3.0')", "f IN ('1', '2.5')", "b IN ('true', '0')", "i IN (TRUE, 5)",
        "b IN (0, 1)", "b IN (1)", "b IN (2, 3)", "b NOT IN (0)", "i BETWEEN '1' AND '3'",
        "f BETWEEN '0.5' AND 2", "CASE WHEN b = 1 THEN i END = '4'", "i + 1 = '4'", "NOT b = 1",
        "b = (i = 3)", "(b = 1) = '1'", "i NOT IN ('1', '2')",
    ],
)  # fmt: skip
def test_lists_and_ranges_too(text: str, engine: Any) -> None:
    assert engine.execute(meaning(text)).fetchall() == (
        engine.execute(f"SELECT {text} FROM t").fetchall()
    )


@pytest.mark.parametrize(
    "text",
    [
        "i = 'x'", "i = ''", "i = '3.6'", "i = '1e1'", "i = '٣'", "b = 'yes'", "b = 'on'", "s = 3",
        "s = i", "i = s", "b = s", "s = TRUE", "i + '3' = 6", "f = TRUE", "b < 0.5", "f = b",
        "i IN ('1', 'x')", "f < 'nan'",
    ],
)  # fmt: skip
def test_what_could_mean_something_else_is_refused(text: str) -> None:
    with pytest.raises(QueryRefused):
        meaning(text)


def test_a_refusal_says_what_to_write() -> None:
    with pytest.raises(QueryRefused, match="write the number without quotes"):
        parsed("SELECT COUNT(*) AS n FROM visits WHERE age = 'eight'", CARD)


def test_the_question_is_that_of_the_plain_constant() -> None:
    """So that known keys and recorded answers are the same."""
    plain = "SELECT ok, COUNT(*) AS n FROM visits WHERE ok = TRUE AND age IN (20, 30) GROUP BY ok"
    for truth, ages in product(("1", "'true'", "'1'"), ("'20', '30'", "20, ' 30'")):
        text = plain.replace("TRUE", truth).replace("20, 30", ages)
        assert parsed(text, CARD) == parsed(plain, CARD)
    (key,) = parsed(plain, CARD).keys
    assert key.values == (True,)
    having = "SELECT ok, COUNT(*) AS n FROM visits GROUP BY ok HAVING {} AND n > 10"
    assert parsed(having.format("ok = 1"), CARD) == parsed(having.format("ok = TRUE"), CARD)
