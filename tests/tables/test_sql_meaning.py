"""What is asked means what DuckDB means: the same text, run by it without privacy, counts the same.

Every unit has fewer rows than the card allows, so that bounding changes nothing, and numbers are
such that no SQL here stops with an error: there, and only there, our expressions differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import pytest

from lastbit.tables.card.schema import PublicTable, Source
from lastbit.tables.measures import weight_one
from lastbit.tables.plan.sensitivity import measures_of
from lastbit.tables.sql.statement import parsed
from tests.kernel.unsealing import aggregates
from tests.tables.asked import card_with

ROWS = """
SELECT range // 3 AS pid,
       ['north', 'south', NULL][1 + range % 3] AS region,
       ['a', 'B', 'b%', NULL, 'x_y', ''][1 + range % 6] AS "Ward",
       CASE WHEN range % 7 = 0 THEN NULL ELSE range * 5 % 100 END AS age,
       (range * 37 % 500) / 4 AS cost,
       CASE WHEN range % 5 = 0 THEN NULL ELSE (range % 40 - 20) / 8 END AS free,
       range % 9 - 4 AS many,
       DATE '2019-12-20' + (range % 60)::INTEGER AS day,
       TIMESTAMP '2019-12-30 22:30:00' + to_hours(range::INTEGER) AS seen,
       [true, false, NULL][1 + range % 3] AS ok,
       'z' AS "odd name"
FROM range(240)
"""
REGIONS = """
SELECT * FROM (VALUES ('north', 'n1', 2, DATE '2020-01-01'), ('north', 'n2', 4, NULL),
                      ('west', 'w1', 5, NULL)) AS t(region, zone, size, since)
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE visits AS {ROWS}")
        connection.execute(f"CREATE TABLE regions AS {REGIONS}")
        connection.execute(
            "CREATE MACRO clamp(x, a, b) AS CASE WHEN x < a THEN a WHEN x > b THEN b ELSE x END"
        )
        yield connection


@pytest.fixture(scope="module")
def card(engine):
    types = {"region": "text", "zone": "text", "size": "integer", "since": "date"}
    frame = engine.sql("SELECT * FROM regions").to_arrow_table()
    public = PublicTable(name="regions", source=Source(kind="frame", frame=frame), columns=types)  # type: ignore[arg-type]
    own = Source(kind="frame", frame=engine.sql("SELECT * FROM visits").to_arrow_table())
    return card_with(source=own, max_rows=1000, max_groups=1000, public={"regions": public})


def counted(text: str, card: Any) -> dict[tuple[Any, ...], Fraction]:
    """The counts of a question by group, before noise, those that are 0 left out."""
    query = parsed(text, card)
    measures, (recipe,) = measures_of(query)
    raw = aggregates(query, card, measures, secret="0" * 64)
    (name,) = recipe.measures.values()
    one = 1 if recipe.aggregate.function == "count_units" else weight_one(card)
    values = [Fraction(value, one) for value in raw.entries[name]]
    return {tuple(key): n for key, n in zip(raw.keys, values, strict=True) if n}


CONDITIONS = """
age > 50
age + 1 - 2 * 3 >= many
age / 7 < 3.5
age % 7 = 3
-age < -90
age BETWEEN 20 AND 40
age NOT BETWEEN 20 AND 40
age IN (5, 10, NULL)
age NOT IN (5, 10)
age NOT IN (5, NULL)
age IS NULL
age IS NOT NULL
ok
NOT ok
ok IS TRUE
ok IS NOT TRUE
ok IS FALSE
ok IS NOT FALSE
ok = FALSE OR age > 90
ok OR NULL
ok AND age > 50 OR NOT ok AND age < 50
NOT (ok AND (age > 50 OR free < 0))
CASE WHEN ok THEN age > 50 WHEN free > 0 THEN NULL ELSE TRUE END
CASE many WHEN 1 THEN TRUE WHEN 2 THEN ok END
IF(ok, age, many) > 3
NULLIF(many, 2) > 0
coalesce(age, many, 7) > 6
ifnull(age, -1) < 0
least(age, 50, many) > 0
greatest(age, free) > 60
abs(many) = 2 AND floor(free) = -1
ceil(free) = 1
round(free) = 1
round(cost, 1) = 9.3
sqrt(cost) > 6
ln(cost + 1) < 3
exp(free) < 1
log(many + 5) = 0
log10(power(10, many + 5)) = many + 5
log2(power(2, many + 5)) = many + 5
log(3, power(3, many + 5)) = many + 5
floor(log(cost + 1)) = 1
ok = 1 OR ok = 0 AND age > '50'
many = '3' OR free < '-1.5' OR ok = 'false'
many IN ('1', '2', '-3')
ok <> 2 AND many = TRUE
power(many, 2) = 9
many ^ 2 = 4
length(ward) = 1
lower(ward) = 'b'
upper(ward) = 'B'
ward LIKE 'b%'
ward LIKE '%'
ward NOT LIKE '_'
NOT ward NOT ILIKE 'B_'
ward ILIKE 'B_'
starts_with(ward, 'b')
contains(ward, '_')
substring(ward, 2, 1) = '%'
substring(ward, 2) = '_y'
trim(ward || ' ') = 'a'
ward || region = 'anorth'
CONCAT(ward, region) = 'north'
CONCAT(ward, many, ok) = 'a-4true'
many || '|' || ok || day = '3|false2020-01-24' OR CONCAT(many, '!') = '4!'
(ward || 'x') IS NULL
ward > 'a'
day >= '2020-01-01'
day < DATE '2020-01-01'
seen < '2020-01-02'
seen >= TIMESTAMP '2020-01-01 10:00:00'
seen > day
year(day) = 2020 AND month(day) = 1 AND quarter(day) = 1
day(day) = 31
dayofmonth(day) = 1
weekday(day) = 0
dayofweek(day) = 6
extract(dow FROM day) = 1
extract(hour FROM seen) = 23
hour(seen) = 5
date_part('month', seen) = 12
date_trunc('month', day) = DATE '2020-02-01'
date_diff('day', day, seen) = 2
datediff('day', seen, day) > 3
CAST(cost AS BIGINT) = 9
CAST(age AS DOUBLE) / 2 = 7.5
CAST(age AS TEXT) = '55'
CAST(ok AS BIGINT) = 1
CAST(seen AS DATE) = day
many::BOOLEAN
TRY_CAST(ward AS BIGINT) IS NULL
clamp(age, 20, 30) = 30
region = 'north' AND "odd name" = 'z'
(((age))) > (((50)))
TRUE
FALSE
NULL
1 = 1
""".strip().splitlines()


@pytest.mark.thinned(one_in=12)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_choose_the_same_rows(condition, engine, card):
    text = f"SELECT COUNT(*) AS n FROM visits WHERE {condition}"
    (truth,) = engine.execute(text).fetchone()
    assert counted(text, card).get((), 0) == truth


QUESTIONS = [
    "SELECT region, COUNT(*) AS n FROM visits WHERE region IS NOT NULL GROUP BY region",
    "SELECT ward, COUNT(age) AS n FROM visits GROUP BY ward",
    "SELECT ward, many, COUNT(*) AS n FROM visits GROUP BY ALL",
    "SELECT many, ok, COUNT(DISTINCT pid) AS n FROM visits WHERE ok IS NOT NULL GROUP BY many, ok",
    "SELECT month(day) AS m, COUNT(*) FILTER (WHERE ok) AS n FROM visits GROUP BY m",
    "SELECT many, COUNT_IF(age > 50) AS n FROM visits GROUP BY 1",
    "SELECT many, COUNT(age) FILTER (WHERE ok) AS n FROM visits GROUP BY many",
    "SELECT CASE WHEN age > 50 THEN 'old' WHEN age > 20 THEN 'mid' END AS k, COUNT(*) AS n "
    "FROM visits GROUP BY k",
    "SELECT date_trunc('month', day)::DATE AS m, COUNT(*) AS n FROM visits GROUP BY m",
    "SELECT zone, COUNT(*) AS n FROM visits JOIN regions USING (region) GROUP BY zone",
    "SELECT zone, COUNT(*) AS n FROM visits v JOIN regions r ON v.region = r.region AND "
    "r.size = v.many GROUP BY zone",
    "SELECT zone, COUNT(since) AS n FROM visits JOIN regions USING (region) GROUP BY zone",
    "SELECT r.zone, COUNT(*) AS n FROM (SELECT *, abs(many) AS more FROM visits WHERE free > 0) "
    "AS v JOIN regions AS r ON r.size = v.more GROUP BY r.zone",
    "WITH a AS (SELECT * FROM visits WHERE ok), visits AS (SELECT * FROM visits WHERE age > 50) "
    "SELECT many, COUNT(*) AS n FROM a GROUP BY many",
    "WITH a AS (SELECT age % 4 AS k, ok FROM visits), b AS (SELECT k * 2 AS k FROM a WHERE ok) "
    "SELECT k, COUNT(*) AS n FROM b WHERE k > 1 GROUP BY k",
    "SELECT least(many, 2) AS k, COUNT(greatest(age, free)) AS n FROM visits GROUP BY k",
]


@pytest.mark.parametrize("text", QUESTIONS)
def test_groups_count_the_same(text, engine, card):
    truth = {tuple(key): n for *key, n in engine.execute(text).fetchall() if n}
    assert counted(text, card) == truth
    assert truth  # the question is about something
