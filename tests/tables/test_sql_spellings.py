"""Spellings of other products: each asks the question that its plain spelling asks."""

from __future__ import annotations

import pytest

from lastbit.errors import QueryRefused
from lastbit.tables.query.query import Query
from lastbit.tables.sql.statement import parsed
from tests.tables.asked import CARD, COLUMNS, card_with, column

BY_REGION = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"


def asked(text: str) -> Query:
    return parsed(text, CARD)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT region, COUNT(*) AS n FROM visits.visits GROUP BY region",
        "SELECT visits.region, COUNT(*) AS n FROM VISITS.VISITS GROUP BY Visits.region",
        "SELECT s.visits.region, COUNT(*) AS n FROM s.visits GROUP BY s.visits.region",
        'SELECT "s"."visits"."region", COUNT(*) AS n FROM "s"."visits" GROUP BY 1',
        "SELECT d.s.visits.region, COUNT(*) AS n FROM d.s.visits GROUP BY s.visits.region",
        "SELECT v.region, COUNT(*) AS n FROM d.s.visits AS v GROUP BY v.region",
    ],
)
def test_a_schema_before_the_table_means_nothing(text):
    assert asked(text) == asked(BY_REGION)


JOINED = "SELECT zone, COUNT(*) AS n FROM visits JOIN regions USING (region) GROUP BY zone"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("SELECT region, COUNT(*) AS n FROM (visits) GROUP BY region", BY_REGION),
        ("SELECT v.region, COUNT(*) AS n FROM (s.visits) AS v GROUP BY 1", BY_REGION),
        ("SELECT v.region, COUNT(*) AS n FROM ((visits AS v)) GROUP BY 1", BY_REGION),
        ("SELECT q.region, COUNT(*) AS n FROM ((visits)) AS q GROUP BY 1", BY_REGION),
        (JOINED.replace("visits JOIN regions USING (region)", "({})"), JOINED),
        (JOINED.replace("visits JOIN regions USING (region)", "({}) AS q"), JOINED),
        (JOINED.replace("visits JOIN regions USING (region)", "(SELECT * FROM ({})) AS q"), JOINED),
        (
            "SELECT q.zone, COUNT(*) AS n FROM (visits v JOIN regions r USING (region)) AS q "
            "WHERE q.ok GROUP BY q.zone",
            JOINED.replace("GROUP", "WHERE ok GROUP"),
        ),
        (
            "SELECT r.zone, COUNT(*) AS n FROM (visits v JOIN regions r USING (region)) "
            "WHERE v.ok GROUP BY r.zone",
            JOINED.replace("GROUP", "WHERE ok GROUP"),
        ),
        (
            "SELECT beds, COUNT(*) AS n FROM (visits v JOIN regions r USING (region)) "
            "JOIN wards w ON w.zone = r.zone GROUP BY beds",
            "SELECT beds, COUNT(*) AS n FROM visits v JOIN regions r USING (region) "
            "JOIN wards w ON w.zone = r.zone GROUP BY beds",
        ),
    ],
)
def test_brackets_around_tables(text, plain):
    assert asked(text.format("visits JOIN regions USING (region)")) == asked(plain)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT v.region, COUNT(*) FROM (visits v JOIN regions r USING (region)) AS q GROUP BY 1",
        "SELECT COUNT(*) FROM (visits) AS q(a, b)",
        "SELECT COUNT(*) FROM (visits, visits)",
        "SELECT COUNT(*) FROM (visits TABLESAMPLE 10%)",
        "SELECT COUNT(*) FROM (visits) TABLESAMPLE 10%",
        "SELECT COUNT(*) FROM (regions)",
        "SELECT COUNT(*) FROM (visits LEFT JOIN regions USING (region)) AS q",
        "SELECT COUNT(*) FROM (visits PIVOT (SUM(age) FOR ok IN (TRUE)))",
    ],
)
def test_brackets_with_more_in_them_are_refused(text):
    with pytest.raises(QueryRefused):
        asked(text)


def test_joined_tables_may_have_schemas_too():
    plain = "SELECT zone, COUNT(*) AS n FROM visits JOIN regions USING (region) GROUP BY zone"
    text = plain.replace("SELECT zone", "SELECT p.regions.zone").replace(
        "regions US", "p.regions US"
    )
    assert asked(text) == asked(plain)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT COUNT(*) FROM s.visit", "write FROM visits; to JOIN there are regions, wards"),
        ('SELECT COUNT(*) FROM s."Visits"', "not this card's table"),
        ("SELECT COUNT(*) FROM s.visits WHERE t.visits.ok", "a schema that no table in FROM has"),
        ("SELECT COUNT(*) FROM visits WHERE s.visits.ok", "write the name alone"),
        ("SELECT COUNT(*) FROM s.visits WHERE d.s.visits.ok", "a schema that no table"),
        ("WITH visits AS (SELECT * FROM visits) SELECT COUNT(*) FROM s.visits", "WITH defines"),
        ("SELECT COUNT(*) FROM s.visits AS v WHERE s.visits.ok", 'No column "ok"'),
    ],
)
def test_schemas_that_say_something_else_are_refused(text, words):
    with pytest.raises(QueryRefused, match=words):
        asked(text)


@pytest.mark.parametrize("name", ["STD", "STDEV", "STDDEV_SAMP", "STDEVP", "std_pop", "STDDEV_POP"])
def test_every_spelling_of_the_standard_deviation_is_one(name):
    plain = asked("SELECT STDDEV(cost) AS s FROM visits HAVING STDDEV(cost) > 2")
    assert asked(f"SELECT {name}(cost) AS s FROM visits HAVING {name}(cost) > 2") == plain


@pytest.mark.parametrize("name", ["VAR", "VARP", "VAR_SAMP", "VAR_POP", "VARIANCE_SAMP"])
def test_every_spelling_of_the_variance_is_one(name):
    plain = asked("SELECT 2 * VARIANCE(cost) AS v FROM visits")
    assert asked(f"SELECT 2 * {name}(cost) AS v FROM visits") == plain


def test_mean_is_avg():
    assert asked("SELECT MEAN(cost) AS m FROM visits") == asked("SELECT AVG(cost) AS m FROM visits")


def test_a_deviation_of_two_columns_or_of_distinct_values_is_refused():
    for text, words in (("STD(age, cost)", "STD"), ("STD(DISTINCT cost)", "DISTINCT")):
        with pytest.raises(QueryRefused, match=words):
            asked(f"SELECT {text} AS s FROM visits")


@pytest.mark.parametrize(
    "end", [";", " ; ", "; -- note", ";\n-- note\n", "; /* a; b */", " -- note", ";;"]
)
def test_an_end_and_a_note_mean_nothing(end):
    assert asked(BY_REGION + end) == asked(BY_REGION)
    assert asked("-- note\n/* another */ " + BY_REGION + end) == asked(BY_REGION)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT TOP 5 region, COUNT(*) AS n FROM visits GROUP BY region ORDER BY n DESC",
        "SELECT TOP (5) region, COUNT(*) AS n FROM visits GROUP BY region ORDER BY n DESC;",
        "select top(5) region, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 2 DESC -- LIMIT",
        "SELECT /* TOP 3 */ TOP\n5 region, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY n DESC ;",
        "WITH v AS (SELECT * FROM visits) SELECT TOP 5 region, COUNT(*) AS n FROM v"
        " GROUP BY region ORDER BY n DESC",
    ],
)
def test_top_is_limit(text):
    plain = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region ORDER BY n DESC LIMIT 5"
    assert asked(text) == asked(plain)


def test_top_before_a_quoted_column():
    text = 'SELECT TOP (2) "region", COUNT(*) AS n FROM visits GROUP BY region'
    assert asked(text) == asked(BY_REGION + " LIMIT 2")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT TOP 5 region, COUNT(*) FROM visits GROUP BY region LIMIT 3", "beside LIMIT"),
        ("SELECT TOP 5 PERCENT region, COUNT(*) FROM visits GROUP BY region", "PERCENT is not"),
        ("SELECT TOP 5 WITH TIES region, COUNT(*) FROM visits GROUP BY region", "WITH is not"),
        ("SELECT TOP 5.5 region, COUNT(*) FROM visits GROUP BY region", "not a whole number"),
        ("SELECT TOP region, COUNT(*) FROM visits GROUP BY region", 'no column "top"'),
        ("SELECT TOP -5 region, COUNT(*) FROM visits GROUP BY region", ""),
        ("SELECT TOP(5), COUNT(*) FROM visits", "TOP"),
        ("SELECT TOP(5) AS region, COUNT(*) FROM visits", "TOP"),
        ('SELECT "TOP" 5, COUNT(*) FROM visits', "is no SQL"),
        ("SELECT COUNT(*) FROM (SELECT TOP 5 * FROM visits)", "is no SQL"),
        ("SELECT COUNT(*) AS n FROM visits WHERE age > 30, TOP 5", "is no SQL"),
    ],
)
def test_other_tops_are_refused(text, words):
    with pytest.raises(QueryRefused, match=f"(?i){words}"):
        asked(text)


def test_a_column_may_be_called_top_or_percent():
    columns = [*COLUMNS, column("top", "boolean"), column("percent", "boolean")]
    card = card_with(columns={one.name: one for one in columns})
    for name in ("top", "percent"):
        query = parsed(f"SELECT TOP 2 {name}, COUNT(*) AS n FROM visits GROUP BY {name}", card)
        assert (query.keys[0].name, query.limit) == (name, 2)


def test_the_ends_of_distinct_values_are_the_ends():
    plain = "SELECT MIN(age) AS a, MAX(age + 1) FILTER (WHERE ok) AS b FROM visits"
    assert asked(plain.replace("(age", "(DISTINCT age")) == asked(plain)
    inner = "SELECT AVG(a) AS m FROM (SELECT pid, MAX(age) AS a FROM visits GROUP BY pid)"
    assert asked(inner.replace("MAX(", "MAX(DISTINCT ")) == asked(inner)
