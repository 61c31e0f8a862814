"""Questions as users of other products write them, on rows like those of PUMS, against DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import lastbit as lb

ROWS = """
SELECT range AS id, 18 + range * 7 % 70 AS age, range % 2 AS sex, 1 + range * 5 % 16 AS educ,
       ['asian', 'black', 'white'][1 + range % 3] AS race, range * 37 % 1000 * 100 AS income,
       range % 5 < 2 AS married
FROM range(1_200)
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA PUMS")
        connection.execute(f"CREATE TABLE PUMS.PUMS AS {ROWS}")
        connection.execute(f"CREATE TABLE PUMS AS {ROWS}")
        yield connection


@pytest.fixture(scope="module")
def pums(engine: Any) -> Any:
    bounds = {"age": (0, 120), "income": (0, 100_000), "educ": (1, 16)}
    return lb.table(
        engine.sql("SELECT * FROM PUMS").to_arrow_table(),
        name="PUMS",
        unit="id",
        max_rows=1,
        keys={"sex": [0, 1], "race": ["asian", "black", "white"], "married": [False, True]},
        columns=[lb.Column(name=n, type="integer", bounds=b) for n, b in bounds.items()],
    )


def rows_of(answer: Any) -> list[tuple[Any, ...]]:
    """The rows as plain values, keys first."""
    return [(*row.keys, *(cell.value for cell in row.cells)) for row in answer]


def assert_same(mine: list[tuple[Any, ...]], truth: list[tuple[Any, ...]], ordered: bool) -> None:
    """That rows are equal, numbers but for a millionth: the noise at a huge price."""
    if not ordered:
        mine, truth = sorted(mine, key=repr), sorted(truth, key=repr)
    assert len(mine) == len(truth)
    plain = str | bool | None
    for own, other in zip(mine, truth, strict=True):
        assert list(own) == [
            value if isinstance(value, plain) else pytest.approx(value, rel=1e-6, abs=1e-3)
            for value in other
        ]


SAME = """
SELECT race, COUNT(*) AS n FROM PUMS.PUMS GROUP BY race
SELECT PUMS.race, SUM(PUMS.PUMS.income) AS total FROM PUMS.PUMS GROUP BY PUMS.race
SELECT "PUMS"."PUMS"."sex", AVG(age) AS age FROM "PUMS"."PUMS" WHERE PUMS.age > 30 GROUP BY 1
SELECT p.sex, p.married, AVG(p.income) AS income FROM PUMS.PUMS AS p GROUP BY p.sex, p.married
SELECT sex, COUNT(*) AS n /* rows */ FROM PUMS GROUP BY sex; -- note
""".strip().splitlines()


@pytest.mark.parametrize("text", SAME)
def test_the_answer_is_that_of_duckdb(text: str, engine: Any, pums: Any) -> None:
    answer = pums.sql(text).release(epsilon=10**6)
    assert_same(rows_of(answer), engine.execute(text).fetchall(), ordered="ORDER BY" in text)


@pytest.mark.parametrize(
    ("name", "truth"),
    [("STD", "stddev_pop"), ("STDEV", "stddev_pop"), ("VAR", "var_pop"), ("VARP", "var_pop")],
)
def test_deviations_are_of_the_rows_themselves(
    name: str, truth: str, engine: Any, pums: Any
) -> None:
    text = "SELECT married, {}(age) AS spread FROM PUMS GROUP BY married"
    answer = pums.sql(text.format(name)).release(epsilon=10**6)
    assert_same(rows_of(answer), engine.execute(text.format(truth)).fetchall(), ordered=False)
    assert any("divide by n, not by n - 1" in note for note in answer.notes)
