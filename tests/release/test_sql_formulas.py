"""Questions as others write them, over released numbers, groups and joins: against DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

import lastbit as lb
from lastbit.checker.dispatch import problem_of

VISITS = """
SELECT range AS pid, ['north', 'south', 'west'][1 + [0, 0, 0, 1, 1, 2, 2][1 + range % 7]] AS region,
       18 + range * 7 % 60 AS age, (range * 37 % 500)::DOUBLE AS cost,
       ['a', 'b', 'cc'][1 + range * range % 11 % 3] AS ward
FROM range(1_500)
"""
REGIONS = """
SELECT unnest(['north', 'south', 'west']) AS region, unnest(['cold', 'warm', 'cold']) AS climate,
       unnest([3, 5, 7]) AS size
"""
WARDS = "SELECT unnest(['a', 'b']) AS name, unnest([10, 20]) AS beds, unnest(['x', 'y']) AS house"


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with duckdb.connect() as connection:
        for name, rows in (("visits", VISITS), ("regions", REGIONS), ("wards", WARDS)):
            connection.execute(f"CREATE TABLE {name} AS {rows}")
        yield connection


@pytest.fixture(scope="module")
def visits(engine: Any, tmp_path_factory: Any) -> Any:
    folder = tmp_path_factory.mktemp("tables")
    for name in ("regions", "wards"):
        engine.execute(f"COPY {name} TO '{folder / name}.parquet'")
    return lb.table(
        engine.sql("SELECT * FROM visits").to_arrow_table(),
        name="visits",
        unit="pid",
        max_rows=1,
        keys={"region": ["north", "south", "west"], "ward": ["a", "b", "cc"]},
        columns=[
            lb.Column(name="age", type="integer", bounds=(0, 120)),
            lb.Column(name="cost", type="number", bounds=(0, 500)),
        ],
        public={name: str(folder / f"{name}.parquet") for name in ("regions", "wards")},
    )


def rows_of(answer: Any) -> list[tuple[Any, ...]]:
    """The rows as plain values, keys first."""
    return [(*row.keys, *(cell.value for cell in row.cells)) for row in answer]


def assert_same(text: str, engine: Any, visits: Any) -> Any:
    """That the answer is DuckDB's, but for the noise at a huge price, and that it is accepted."""
    answer = visits.sql(text).release(epsilon=10**6)
    mine, truth = rows_of(answer), engine.execute(text).fetchall()
    if "ORDER BY" not in text:
        mine, truth = sorted(mine, key=repr), sorted(truth, key=repr)
    assert len(mine) == len(truth)
    for own, other in zip(mine, truth, strict=True):
        assert list(own) == [
            value if isinstance(value, str | bool | None) else pytest.approx(value, 1e-6, 1e-3)
            for value in other
        ]
    assert problem_of(answer.record) is None
    return answer


FUNCTIONS = """
SELECT region, LN(COUNT(*)) AS a, LOG(COUNT(*)) AS b, LOG2(COUNT(*)) AS c FROM visits GROUP BY 1
SELECT region, LOG(3, COUNT(*)) AS a, LOG10(SUM(cost)) AS b FROM visits GROUP BY region
SELECT region, EXP(AVG(age) / 50) AS a, SQRT(SUM(cost)) AS b FROM visits GROUP BY 1
SELECT region, AVG(age) ^ 2 AS c FROM visits GROUP BY 1
SELECT region, POWER(COUNT(*), 0.5) AS a, POW(AVG(age), -1.5) AS b FROM visits GROUP BY region
SELECT region, ROUND(AVG(cost), 1) AS a, ABS(10 - AVG(age)) AS b FROM visits GROUP BY region
SELECT GREATEST(AVG(age), 50) AS a, LEAST(AVG(age), 20, COUNT(*)) AS b FROM visits
SELECT COALESCE(SUM(cost) / NULLIF(COUNT(*), 0), 0) AS a, NULLIF(COUNT(*), 1500) AS b FROM visits
SELECT region, COUNT(*) // 7 AS a, -COUNT(*) // 7 AS b, AVG(cost) // 7 AS c FROM visits GROUP BY 1
SELECT SUM(age) // COUNT(*) AS a, SUM(cost) // 7 AS b, -SUM(age) // 700 AS c FROM visits
SELECT region, CASE WHEN COUNT(*) > 600 THEN 1 ELSE 0 END AS a FROM visits GROUP BY region
SELECT region, EXP(LN(AVG(cost))) AS a, COUNT(*) AS n, n * 2 AS d, d + 1 AS e FROM visits GROUP BY 1
""".strip().splitlines()
ORDERED = """
SELECT region, SUM(age) // COUNT(*) AS a FROM visits GROUP BY 1 HAVING SUM(age) // 7 > 99 ORDER BY 1
SELECT region, COUNT(*) AS n FROM visits GROUP BY region ORDER BY ABS(n - 700), region
SELECT region, ward, COUNT(*) AS n, SUM(age) AS m FROM visits GROUP BY 1, 2 ORDER BY m / n
SELECT region, ward, AVG(cost) AS c FROM visits GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 4
SELECT region, ward, AVG(age) AS a FROM visits GROUP BY 1, 2 HAVING LN(a) > 3 ORDER BY -a
""".strip().splitlines()

GROUPS = """
WITH s AS (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) SELECT ward, n FROM s WHERE n > 400
SELECT r, a FROM (SELECT region AS r, AVG(age) AS a FROM visits GROUP BY 1) WHERE a > 47 ORDER BY a
SELECT * FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY 1) t ORDER BY t.n DESC LIMIT 2
SELECT ward, m / n AS a FROM (SELECT ward, SUM(age) m, COUNT(*) n FROM visits GROUP BY 1)
SELECT ward, LOG(n) AS l FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY 1) ORDER BY -n, l
SELECT n + 1 AS m FROM (SELECT COUNT(*) AS n FROM visits)
""".strip().splitlines()
JOINS = """
SELECT climate, COUNT(*) AS n FROM regions r JOIN visits v ON r.region = v.region GROUP BY climate
SELECT climate, AVG(age) AS a FROM regions JOIN visits USING (region) WHERE size > 3 GROUP BY climate
SELECT c, COUNT(*) AS n FROM visits JOIN (SELECT region, climate AS c FROM regions) r USING (region) GROUP BY c
SELECT climate, COUNT(*) AS n FROM visits v JOIN (SELECT * FROM regions WHERE size < 6) r ON v.region = r.region GROUP BY 1
WITH w AS (SELECT name, house AS h FROM wards WHERE beds > 5) SELECT h, SUM(cost) AS s FROM w JOIN visits v ON v.ward = w.name GROUP BY h
SELECT house, COUNT(*) AS n FROM wards w JOIN (SELECT ward AS k FROM visits WHERE age > 30) v ON v.k = w.name GROUP BY house
SELECT climate, COUNT(*) AS n FROM visits v, regions r WHERE v.region = r.region AND age > 40 GROUP BY 1
SELECT climate, house, COUNT(*) AS n FROM regions r, wards w, visits v WHERE v.region = r.region AND v.ward = w.name GROUP BY 1, 2
SELECT climate, n FROM (SELECT climate, COUNT(*) AS n FROM regions JOIN visits USING (region) GROUP BY 1) WHERE n > 9 ORDER BY n
""".strip().splitlines()  # noqa: E501

BOUNDED = """
SELECT AVG(SQRT(age)) AS a, AVG(LN(cost + 1)) AS b, AVG(EXP(age / 100)) AS c FROM visits
SELECT AVG(POWER(age, 2)) AS a, AVG(age ^ 0.5) AS b, SUM(age % 7) AS c FROM visits
SELECT AVG(ROUND(cost / 3, 1)) AS a, AVG(age // 10) AS b, AVG(cost // 10) AS c FROM visits
SELECT AVG(LENGTH(ward)) AS a, AVG(LENGTH(SUBSTRING(region, 1, 4))) AS b FROM visits
SELECT age // 10 * 10 AS decade, COUNT(*) AS n FROM visits GROUP BY 1 HAVING COUNT(*) > 1 ORDER BY 1
SELECT cost // 100 > 2.5 AS more, COUNT(*) AS n FROM visits GROUP BY more
""".strip().splitlines()


QUOTIENTS = """
SELECT AVG(age // 7.0) AS a, AVG(age // 1e1) AS b, AVG((age * 2.0) // 7) AS c, AVG(age // 7) AS d FROM visits
SELECT AVG(FLOOR(age) // 7) AS a, AVG(CEIL(age // 3) // 3) AS b FROM visits
SELECT AVG(ROUND(age) // 7) AS a, AVG(ROUND(age, -1) // 7) AS b, AVG(-ROUND(age) // 7) AS c FROM visits
SELECT AVG(CASE WHEN age > 30 THEN 2.0 ELSE age END // 7) AS a, AVG(COALESCE(age, 2.0) // 7) AS b FROM visits
SELECT AVG(NULLIF(age, 2.0) // 7) AS a, AVG(GREATEST(FLOOR(age), age) // 7) AS b FROM visits
SELECT COUNT(*) // 7.0 AS a, CEIL(COUNT(*)) // 7 AS b, ROUND(COUNT(*)) // 7 AS c FROM visits
SELECT ward, COUNT(*) AS n FROM visits WHERE age // 10.0 > 3.5 GROUP BY ward HAVING COUNT(*) // 1e3 > 0.25
SELECT ROUND(age) // 10 AS decade, COUNT(*) AS n FROM visits GROUP BY 1 HAVING COUNT(*) > 1 ORDER BY 1
""".strip().splitlines()  # noqa: E501


@pytest.mark.parametrize("text", QUOTIENTS)
def test_whole_quotients_are_of_what_is_whole_in_duckdb(
    text: str, engine: Any, visits: Any
) -> None:
    assert_same(text, engine, visits)


@pytest.mark.parametrize("text", BOUNDED)
def test_bounds_that_follow_from_those_of_columns(text: str, engine: Any, visits: Any) -> None:
    assert_same(text, engine, visits)


@pytest.mark.parametrize("text", FUNCTIONS)
def test_functions_of_released_numbers(text: str, engine: Any, visits: Any) -> None:
    answer = assert_same(text, engine, visits)
    for row in answer:
        for cell in row.cells:
            if cell.value is not None and cell.low is not None:
                assert cell.low <= cell.value <= cell.high


@pytest.mark.parametrize("text", ORDERED)
def test_order_by_an_expression(text: str, engine: Any, visits: Any) -> None:
    assert_same(text, engine, visits)


@pytest.mark.parametrize("text", GROUPS)
def test_selects_over_released_groups(text: str, engine: Any, visits: Any) -> None:
    assert_same(text, engine, visits)


@pytest.mark.parametrize("text", JOINS)
def test_joins_in_either_order_and_of_sub_queries(text: str, engine: Any, visits: Any) -> None:
    assert_same(text, engine, visits)


def test_a_changed_power_or_order_is_rejected(visits: Any) -> None:
    text = "SELECT region, POWER(COUNT(*), 0.5) AS x FROM visits GROUP BY region ORDER BY LN(x)"
    answer = visits.sql(text).release(epsilon=1)
    assert problem_of(answer.record) is None
    cell = answer.record["rows"][0]["cells"][0]
    for value in (cell["value"] * (1 + 2**-52), None):
        record = {**answer.record, "rows": [dict(row) for row in answer.record["rows"]]}
        record["rows"][0]["cells"] = [{**cell, "value": value}]
        assert problem_of(record) is not None
    assert problem_of({**answer.record, "rows": answer.record["rows"][::-1]}) is not None
