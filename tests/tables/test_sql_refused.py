"""What has no private answer here, whatever the text: refused with the reason, never a crash."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from lastbit.errors import InvalidParameter, QueryRefused
from lastbit.tables.query.query import Query
from lastbit.tables.sql.statement import parsed
from tests.tables.asked import CARD, EVERYTHING, card_with

CALM = [HealthCheck.too_slow, HealthCheck.large_base_example]


def asked(text: str) -> Query:
    return parsed(text, CARD)


def where(text: str) -> Any:
    return asked(f"SELECT COUNT(*) FROM visits WHERE {text}").where


REFUSED = {
    "SELECT * FROM visits": "rows cannot be shown",
    "SELECT QUANTILE_CONT(q, [0.1, 0.5]) AS age FROM visits": 'No column "q"',
    "SELECT AVG(TRUE) AS a FROM visits": "a truth value that every row has",
    "SELECT SUM(x // 7) AS s FROM (SELECT age * 2.0 AS x FROM visits)": "writes with a point",
    "SELECT SUM(y // 7) AS s FROM (SELECT x + 1 AS y FROM (SELECT 2e0 * age AS x FROM visits))":
    "writes with a point",
    "SELECT SUM(x // 7) AS s FROM (SELECT * FROM (SELECT age * 2.0 AS x FROM visits))":
    "writes with a point",
    "SELECT SUM(m // 7) AS s FROM (SELECT pid, MAX(age * 2.0) AS m FROM visits GROUP BY pid)":
    "writes with a point",
    "FROM visits": "rows cannot be shown",
    "SELECT visits.* FROM visits": "would show rows",
    "SELECT region FROM visits": "row by row",
    "SELECT region, cost FROM visits WHERE cost > 100": "^region is selected row by row",
    "SELECT reigon, COUNT(*) FROM visits GROUP BY 1": 'No column "reigon". Did you mean "region"?',
    "SELECT month, MEDIAN(delay) AS n FROM visits WHERE hour > 3 GROUP BY month ORDER BY n": (
        'No columns "hour", "month", "delay". Columns: '
    ),
    "SELECT n FROM (SELECT month, age AS n FROM visits)": 'No column "month"',
    'SELECT COUNT(*) FROM visits WHERE region = "Berlin"': "A text is written in single quotes",
    "SELECT FIRST(region) FROM visits": "COUNT, SUM, AVG",
    "SELECT MODE(region), COUNT(*) FROM visits": "stands by itself",
    "SELECT region, MODE(ward) FROM visits GROUP BY region": "ORDER BY n DESC LIMIT 1",
    "SELECT COUNT(*) FROM visits WHERE now() > 1": "COUNT, SUM, AVG",
    "SELECT region, COUNT(*) FROM visits": "row by row",
    "SELECT region, ward, COUNT(*) FROM visits GROUP BY region": "row by row",
    "SELECT DISTINCT region, COUNT(*) AS n FROM visits": "^region is selected row by row",
    "SELECT DISTINCT ward FROM visits ORDER BY COUNT(*)": "write GROUP BY instead",
    "SELECT DISTINCT ward FROM visits HAVING COUNT(*) > 3": "write GROUP BY instead",
    "SELECT DISTINCT COUNT(*) AS n FROM visits GROUP BY ward": "merge rows",
    "SELECT DISTINCT upper(ward) FROM visits GROUP BY ward": "merge rows",
    "SELECT DISTINCT pid FROM visits": "one by one",
    "SELECT pid FROM visits GROUP BY pid": "one by one",
    "SELECT DISTINCT cost FROM visits": "group of its own",
    "SELECT DISTINCT * FROM visits": "rows cannot be shown",
    "SELECT DISTINCT 1 FROM visits": "same in every row",
    "SELECT COUNT(*) FROM visits GROUP BY pid": "one by one",
    "SELECT COUNT(*) FROM visits GROUP BY cost": "^GROUP BY cost is of type number",
    "SELECT pid % 2, COUNT(*) FROM visits GROUP BY ward": "row by row",
    "SELECT ward || region, COUNT(*) FROM visits GROUP BY ward": "row by row",
    "SELECT upper(ward) AS u, COUNT(*) AS u FROM visits GROUP BY ward": "one name",
    "SELECT upper(ward) AS u, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY u, SUM(age)":
        "select it, and sort by its name",
    "SELECT DISTINCT ON (region) COUNT(*) FROM visits": "GROUP BY the columns",
    "SELECT AVG(free) FROM visits": "column free .* clamp",
    "SELECT SUM(many + 1) FROM visits": "no bounds",
    "SELECT AVG(zone) FROM visits": "No column",
    "SELECT AVG(region) FROM visits": "needs numbers, not text",
    "SELECT MAX(ok) FROM visits": "needs numbers, not boolean",
    "SELECT AVG(NULL) FROM visits": "needs numbers, not nothing",
    "SELECT COUNT(DISTINCT cost) FROM visits": "whole numbers, texts",
    "SELECT COUNT(DISTINCT pid, age) FROM visits": "one column",
    "SELECT COUNT(DISTINCT (pid, age)) FROM visits": "one column",
    "SELECT COUNT(DISTINCT pid) FILTER (WHERE ok) FROM visits": "WHERE in a question",
    "SELECT SUM(DISTINCT cost) FROM visits": "whole numbers, .*CAST",
    "SELECT 2 * AVG(DISTINCT ward) FROM visits": "not for text",
    "SELECT SUM(DISTINCT age) FILTER (WHERE ok) FROM visits": "inside FILTER",
    "SELECT MIN(DISTINCT age, cost) FROM visits": "MIN",
    "SELECT SUM(cost) / age FROM visits": "row by row",
    "SELECT SUM(cost) > COUNT(*) AS more FROM visits": "is not a number",
    "SELECT SUM(cost) % 7 AS x FROM visits": "on released numbers",
    "SELECT HISTOGRAM(age, 0, 9) + COUNT(*) FROM visits": "many columns",
    "SELECT COUNT(*) + SUM(age) OVER (ORDER BY age) FROM visits": "window function",
    "SELECT AVG(COUNT(*)) OVER () FROM visits": "over the whole answer",
    "SELECT region, COUNT(*) / SUM(COUNT(*)) OVER () AS s FROM visits GROUP BY 1 LIMIT 2": "LIMIT",
    "SELECT AVG(AVG(cost)) FROM visits": "over one row",
    "SELECT CORR(cost, region) FROM visits": "two columns of numbers",
    "SELECT CORR(cost, ln(age)) FROM visits": "has no bounds",
    "SELECT COUNT(*) FROM visits WHERE COUNT(*) > 3": "HAVING",
    "SELECT COUNT(*) FILTER (WHERE age) FROM visits": "neither true nor false",
    "SELECT LIST(ward) FILTER (WHERE ok) FROM visits": "not an aggregate",
    "SELECT ANY_VALUE(ward) FROM visits": "not known",
    "SELECT LAST(ward) FROM visits": "not known|not a function",
    "SELECT APPROX_COUNT_DISTINCT(cost) FROM visits": "whole numbers, texts",
    "SELECT HISTOGRAM() FROM visits": "edges",
    "SELECT HISTOGRAM(age) FROM visits": "edges",
    "SELECT HISTOGRAM(age, 3, 1) FROM visits": "rising",
    "SELECT HISTOGRAM(age, 0, cost) FROM visits": "edges",
    "SELECT QUANTILE_CONT(age, 1) FROM visits": "between 0 and 1",
    "SELECT QUANTILE_CONT(age, cost) FROM visits": "between 0 and 1",
    "SELECT QUANTILE_CONT(age, [0.1, 0.1]) FROM visits": "one twice",
    f"SELECT QUANTILE_CONT(age, [{', '.join(['0.5'] * 3000)}]) FROM visits": "more than 60 levels",
    "SELECT MAX(age, 3) FROM visits": "leave it out",
    "SELECT MIN(age ORDER BY cost) FROM visits": "not known",
    "SELECT cost, COUNT(*) FROM visits GROUP BY cost": "bin",
    "SELECT seen, COUNT(*) FROM visits GROUP BY seen": "CAST",
    "SELECT pid, COUNT(*) FROM visits GROUP BY pid": "one by one",
    "SELECT 1, COUNT(*) FROM visits GROUP BY 1": "same in every row",
    "SELECT region, COUNT(*) FROM visits GROUP BY 1.0": "has a constant",
    "SELECT region, COUNT(*) FROM visits GROUP BY 3": "beyond",
    "SELECT region, COUNT(*) FROM visits GROUP BY 2": "aggregate",
    "SELECT region, COUNT(*) FROM visits GROUP BY ALL region": "the one or the other",
    "SELECT region, COUNT(*) FROM visits GROUP BY ROLLUP (region)": "--marginals",
    "SELECT region, COUNT(*) FROM visits GROUP BY region WITH ROLLUP": "--marginals",
    "SELECT region, COUNT(*) FROM visits GROUP BY CUBE (region)": "GROUP BY CUBE asks for several",
    "SELECT region, COUNT(*) FROM visits GROUP BY GROUPING SETS ((region), ())": "GROUPING SETS",
    "SELECT COUNT(*) FROM visits GROUP BY ()": "not known",
    "SELECT COUNT(*) AS n, COUNT(age) AS N FROM visits": "one name",
    "SELECT COUNT(*) FROM other": "not this card's table",
    "SELECT COUNT(*) FROM 'x.parquet'": "not this card's table",
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')": "no table",
    "SELECT COUNT(*) FROM visits t(a, b)": "with AS",
    "SELECT COUNT(*)": "no FROM",
    "SELECT COUNT(*) FROM visits, regions": "plain join",
    "SELECT COUNT(*) FROM visits a JOIN visits b ON a.pid = b.pid": "is the table itself",
    "SELECT COUNT(*) FROM visits LEFT JOIN regions USING (region)": "LEFT JOIN is an outer",
    "SELECT COUNT(*) FROM visits FULL OUTER JOIN regions USING (region)": "FULL JOIN is an outer",
    "SELECT region, RANK() OVER (ORDER BY COUNT(*)) AS r FROM visits GROUP BY region": "RANK",
    "SELECT COUNT(*) FROM visits CROSS JOIN regions": "plain join",
    "SELECT COUNT(*) FROM visits NATURAL JOIN regions": "USING",
    "SELECT COUNT(*) FROM visits SEMI JOIN regions USING (region)": "plain join",
    "SELECT COUNT(*) FROM visits ASOF JOIN regions ON visits.region = regions.region": "USING",
    "SELECT COUNT(*) FROM visits JOIN regions ON visits.region > regions.region": "equality",
    "SELECT COUNT(*) FROM visits JOIN regions ON true": "equality",
    "SELECT COUNT(*) FROM visits JOIN regions ON regions.region = regions.zone": "equality",
    "SELECT COUNT(*) FROM visits JOIN regions ON 'a' = regions.zone": "equality",
    "SELECT COUNT(*) FROM visits JOIN regions ON visits.age = regions.zone": "mixes",
    "SELECT COUNT(*) FROM visits JOIN regions USING (region) "
    "JOIN regions x USING (region)": "twice",
    "SELECT COUNT(*) FROM visits JOIN regions visits USING (region)": "another table",
    "SELECT COUNT(*) FROM visits JOIN (SELECT zone FROM regions) r USING (region)": "not a column",
    "WITH regions AS (SELECT * FROM visits) SELECT COUNT(*) FROM visits JOIN regions "
    "USING (region)": "rows of other units",
    "SELECT COUNT(*) FROM (SELECT * FROM visits JOIN regions ON visits.region = regions.region)":
        "two columns",
    "SELECT COUNT(*) FROM (SELECT *, age * 2 AS Age FROM visits)": "two columns",
    "SELECT COUNT(*) FROM (SELECT age + 1 FROM visits)": "no name",
    "SELECT COUNT(*) FROM (SELECT * EXCLUDE (age) FROM visits)": "each by its name",
    "SELECT COUNT(*) FROM (SELECT DISTINCT region FROM visits)": "group it by pid",
    "SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 3)": "leave it out",
    "SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY age)": "leave it out",
    "SELECT COUNT(*) FROM (SELECT region, COUNT(*) n FROM visits GROUP BY region)": "many units",
    "SELECT COUNT(*) FROM (SELECT MAX(age) AS m FROM visits)": "many units",
    "SELECT COUNT(*) FROM (SELECT * FROM visits UNION ALL SELECT * FROM visits)": "is not a SELECT",
    "SELECT COUNT(*) FROM visits UNION SELECT COUNT(*) FROM visits": "not one SELECT",
    "WITH q AS (DELETE FROM visits RETURNING *) SELECT COUNT(*) FROM visits": "is not a SELECT",
    "WITH q AS (SELECT pid FROM other) SELECT COUNT(*) FROM visits": "not this card's table",
    "WITH q AS (SELECT * FROM visits), q AS (SELECT * FROM visits) SELECT COUNT(*) FROM q": "twice",
    "WITH RECURSIVE q AS (SELECT * FROM visits) SELECT COUNT(*) FROM q": "ask without",
    "WITH q(a) AS (SELECT age FROM visits) SELECT COUNT(*) FROM q": "with AS",
    "SELECT COUNT(*) FROM visits WHERE pid IN (SELECT pid FROM visits)": "other rows",
    "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM visits)": "no private answer",
    "SELECT COUNT(*) FROM visits WHERE age > (SELECT AVG(age) FROM visits)": "no private answer",
    "SELECT COUNT(*) FROM visits WHERE age > ALL (SELECT age FROM visits)": "not known|no private",
    "SELECT COUNT(*) OVER () FROM visits": "window",
    "SELECT ROW_NUMBER() OVER (ORDER BY age) FROM visits": "window",
    "SELECT COUNT(*) FROM visits QUALIFY COUNT(*) > 3": "HAVING",
    "SELECT COUNT(*) FROM visits WINDOW w AS (PARTITION BY age)": "GROUP BY",
    "SELECT COUNT(*) FROM visits USING SAMPLE 10%": "all rows",
    "SELECT COUNT(*) FROM visits TABLESAMPLE (10)": "all rows",
    "SELECT COUNT(*) FROM visits LIMIT 3 OFFSET 2": "LIMIT",
    "SELECT COUNT(*) FROM visits LIMIT 10%": "LIMIT 10",
    "SELECT COUNT(*) FROM visits LIMIT -1": "whole number",
    "SELECT COUNT(*) FROM visits LIMIT age": "whole number",
    "SELECT COUNT(*) FROM visits FETCH FIRST 3 ROWS WITH TIES": "LIMIT 10",
    "SELECT COUNT(*) AS n FROM visits ORDER BY n NULLS FIRST": "come last",
    "SELECT COUNT(*) AS n FROM visits ORDER BY n DESC NULLS FIRST": "come last",
    "SELECT COUNT(*) AS n FROM visits ORDER BY age": "not released",
    "SELECT COUNT(*) AS n FROM visits ORDER BY age + 1": "not released",
    "SELECT COUNT(*) AS n FROM visits ORDER BY 2": "beyond",
    "SELECT COUNT(*) AS n FROM visits ORDER BY ALL": "not released",
    "SELECT COUNT(*) AS n FROM visits ORDER BY n COLLATE nocase": "COLLATE is not known",
    "SELECT HISTOGRAM(age, 0, 1) AS h FROM visits ORDER BY h": "many columns",
    "SELECT HISTOGRAM(age, 0, 1) AS h FROM visits HAVING h > 1": "many columns",
    "SELECT COUNT(*) AS n FROM visits HAVING age > 3": "not released",
    "SELECT COUNT(*) AS age FROM visits HAVING visits.age > 3": "not released",
    "SELECT COUNT(*) AS n FROM visits HAVING n": "neither true nor false",
    "SELECT region, COUNT(*) FROM visits GROUP BY region HAVING region > 3": "mixes",
    "SELECT COUNT(*) FROM visits WHERE age": "neither true nor false",
    "SELECT COUNT(*) FROM visits WHERE age + ward > 1": "not on text",
    "SELECT COUNT(*) FROM visits WHERE day - day > 1": "days_between",
    "SELECT COUNT(*) FROM visits WHERE day > '31.1.2020'": "2026-01-31",
    "SELECT COUNT(*) FROM visits WHERE seen > '2020-01-01T00:00:00+02:00'": "zone",
    "SELECT COUNT(*) FROM visits WHERE seen > TIMESTAMPTZ '2020-01-01'": "not known",
    "SELECT COUNT(*) FROM visits WHERE seen > TIMESTAMP '2020-01-01 00:00+02'": "zone",
    "SELECT COUNT(*) FROM visits WHERE random() < 0.5": "random",
    "SELECT COUNT(*) FROM visits WHERE now() < seen": "not a function",
    "SELECT COUNT(*) FROM visits WHERE current_date < day": "not known",
    "SELECT COUNT(*) FROM visits WHERE md5(ward) = 'x'": "not known",
    "SELECT COUNT(*) FROM visits WHERE regexp_matches(ward, 'x')": "not known",
    "SELECT COUNT(*) FROM visits WHERE ward LIKE 'a' ESCAPE '!'": "not known",
    "SELECT COUNT(*) FROM visits WHERE ward LIKE ANY ('a', 'b')": "not known",
    "SELECT COUNT(*) FROM visits WHERE ward IN (region)": "constants",
    "SELECT COUNT(*) FROM visits WHERE ward IN ()": "list the values",
    "SELECT COUNT(*) FROM visits WHERE \"in\"(ward, region)": "not a function",
    "SELECT COUNT(*) FROM visits WHERE negate(age) > 3": "not a function",
    "SELECT COUNT(*) FROM visits WHERE age BETWEEN SYMMETRIC 2 AND 1": "leave it out",
    "SELECT COUNT(*) FROM visits WHERE CAST(cost AS DECIMAL(5, 2)) > 1": "DOUBLE",
    "SELECT COUNT(*) FROM visits WHERE CAST(cost AS DECIMAL) > 1": "DOUBLE",
    "SELECT COUNT(*) FROM visits WHERE CAST(cost AS REAL) > 1": "DOUBLE",
    "SELECT COUNT(*) FROM visits WHERE CAST(age AS TINYINT) > 1": "BIGINT",
    "SELECT COUNT(*) FROM visits WHERE CAST(day AS BIGINT) > 1": "not on date",
    "SELECT COUNT(*) FROM visits WHERE seen::TIME > '10:00'": "not known",
    "SELECT COUNT(*) FROM visits WHERE LTRIM(ward) = ''": "use TRIM",
    "SELECT COUNT(*) FROM visits WHERE bin(age, 3, 1) = 3": "rise",
    "SELECT COUNT(*) FROM visits WHERE bin(age, 0, cost) = 0": "rise",
    "SELECT COUNT(*) FROM visits WHERE clamp(age) = 0": "number of arguments",
    "SELECT COUNT(*) FROM visits WHERE substring(ward, 0.5) = ''": "whole numbers",
    "SELECT COUNT(*) FROM visits WHERE date_trunc('century', day) = day": "year, quarter",
    "SELECT COUNT(*) FROM visits WHERE extract(epoch FROM day) = 1": "use one of",
    "SELECT COUNT(*) FROM visits WHERE strftime(day, '%c') = 'a'": "format",
    "SELECT COUNT(*) FROM visits WHERE strftime(day, region) = 'a'": "format",
    "SELECT COUNT(*) FROM visits WHERE width_bucket(age, 9, 0, 3) = 1": "WIDTH_BUCKET",
    "SELECT COUNT(*) FROM visits WHERE date_diff('hour', seen, seen) > 1": "known for days",
    "SELECT COUNT(*) FROM visits WHERE extract(epoch FROM seen) > 1": "use one of",
    "SELECT COUNT(*) FROM visits WHERE ward = $1": "not known",
    "SELECT COUNT(*) FROM visits WHERE ward = ?": "not known",
    "SELECT COUNT(*) FROM visits WHERE rowid = 1": "No column",
    "SELECT COUNT(*) FROM visits WHERE visits.age.x = 1": "the name alone",
    "SELECT COUNT(*) FROM visits WHERE age > 1e9999999": "digits",
    "SELECT COUNT(*) FROM visits WHERE age > 1e999": "too large",
    "SELECT COUNT(*) FROM visits WHERE age > 99999999999999999999": "63 bits",
    "SELECT AVG(clamp(free, 0, 'a')) FROM visits": "not on text",
    "SELECT AVG(clamp(free, 5, 0)) FROM visits": "do not rise",
    "SELECT AVG(clamp(free, 0, 1.5 * 2)) FROM visits": "no bounds",
    "SELECT AS STRUCT COUNT(*) FROM visits": "leave it out",
    "SELECT COUNT(*) INTO x FROM visits": "leave it out",
    "SELECT COUNT(*) FROM visits FOR UPDATE": "leave it out",
    "SELECT COUNT(*) FROM visits; SELECT 1": "not one SELECT",
    "DROP TABLE visits": "is not a SELECT",
    "INSERT INTO visits VALUES (1)": "is not a SELECT",
    "COPY visits TO 'x'": "is not a SELECT",
    "ATTACH 'x'": "is not a SELECT",
    "PRAGMA database_list": "is not a SELECT",
    "CALL foo()": "is not a SELECT",
    "EXPLAIN SELECT COUNT(*) FROM visits": "is not a SELECT",
    "": "empty",
    "   ": "empty",
    "-- nothing": "is not a SELECT",
    "(((((": "no SQL",
    "SELECT 'open": "no SQL",
    "SELECT COUNT(*) FROM visits WHERE ward = '\x00'": "characters",
    "SELECT COUNT(*) FROM visits WHERE ward = '\ud800'": "characters",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_refused_with_the_reason_and_the_nearest_thing(text, caplog):
    with caplog.at_level(logging.DEBUG), pytest.raises(InvalidParameter, match=REFUSED[text]):
        asked(text)
    assert not caplog.records  # the parser would say on stderr what it does not understand


def test_a_table_whose_rows_are_units_has_no_units_to_count():
    card = card_with(unit=None, max_rows=1, max_groups=None)
    found = parsed("SELECT COUNT(DISTINCT pid) FROM visits", card)
    assert found.aggregates[0].function == "count_distinct"
    assert parsed("SELECT pid, COUNT(*) FROM visits GROUP BY pid", card).keys[0].name == "pid"


# ---------------------------------------------------------------- bombs


@pytest.mark.parametrize(
    "condition",
    [
        "(" * 5_000 + "ok" + ")" * 5_000,
        "NOT " * 5_000 + "ok",
        "age" + " - age" * 5_000 + " > 1",
        "age" + " + age" * 5_000 + " > 1",
        "-" * 3 + "- " * 5_000 + "age > 1",
        "abs(" * 300 + "age" + ")" * 300 + " > 1",
        "age > " + "9" * 5_000,
        "ward = '" + "x" * 200_000 + "'",
        "CASE WHEN ok THEN " * 200 + "1" + " END" * 200 + " > 1",
    ],
)
def test_deep_and_long_conditions_are_refused(condition):
    with pytest.raises(QueryRefused):
        where(condition)


def test_long_chains_and_lists_are_fine():
    some = " OR ".join(f"age = {i}" for i in range(500))
    assert len(where(some).arguments) == 500
    assert len(where(f"age IN ({', '.join(map(str, range(5_000)))})").arguments) == 5_001


def test_columns_that_double_in_every_step_are_refused():
    steps = ["q0 AS (SELECT age AS c FROM visits)"]
    steps += [f"q{i} AS (SELECT c + abs(c) AS c FROM q{i - 1})" for i in range(1, 40)]
    with pytest.raises(QueryRefused, match=r"too long|too deeply"):
        asked(f"WITH {', '.join(steps)} SELECT COUNT(c) FROM q39")


# ---------------------------------------------------------------- whatever the text

TOKENS = (
    "SELECT", "FROM", "visits", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "COUNT(*)",
    "SUM(", "AVG(", "cost", "age", "region", "ok", "day", "(", ")", ",", "*", "+", "-", "AND",
    "OR", "NOT", "IN", "LIKE", "IS NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "AS", "x", "1",
    "0.5", "'a'", "'2020-01-01'", "CAST(", "DATE", "JOIN", "regions", "ON", "USING", "=", "<",
    "WITH", "UNION", "DISTINCT", "OVER", "FILTER", "WITHIN GROUP", "clamp(", "bin(", "HISTOGRAM(",
    "[", "]", "{", "}", "::", "->", "$1", "?", ";", "--", "/*", "*/", "\"", "'", "\\", "||", ".",
    "BETWEEN", "INTERVAL", "EXTRACT(", "month", "LATERAL", "UNNEST(", "PIVOT", "ALL", "EXISTS (",
)  # fmt: skip


def only_refused(text: str) -> None:
    with contextlib.suppress(InvalidParameter):
        assert isinstance(asked(text), Query)


@settings(max_examples=300, deadline=None, suppress_health_check=CALM)
@given(st.lists(st.sampled_from(TOKENS), max_size=14))
def test_token_soup_is_refused_and_nothing_else(tokens):
    only_refused("SELECT COUNT(*) FROM visits WHERE " + " ".join(tokens))
    only_refused("SELECT " + " ".join(tokens))


@pytest.mark.evidence
@settings(max_examples=80, deadline=None, suppress_health_check=CALM)
@given(st.integers(0, len(EVERYTHING)), st.integers(0, 30), st.sampled_from(TOKENS))
def test_a_statement_with_a_hole_or_a_patch_is_refused_or_read(start, length, token):
    only_refused(EVERYTHING[:start] + EVERYTHING[start + length :])
    only_refused(EVERYTHING[:start] + f" {token} " + EVERYTHING[start:])


@settings(max_examples=200, deadline=None, suppress_health_check=CALM)
@given(st.text(max_size=30))
def test_any_text_is_refused_or_read(text):
    only_refused(text)
    only_refused(f"SELECT {text} FROM visits")
