"""A SELECT over released groups: the question that it is, and what it cannot be."""

from __future__ import annotations

import pytest

from lastbit.errors import InvalidParameter, QueryRefused
from lastbit.tables.query.expression import Call, ColumnName, Constant
from lastbit.tables.query.query import OrderBy, Query
from lastbit.tables.sql.statement import parsed, view_of
from tests.tables.asked import CARD, card_with

N, M = ColumnName("n"), ColumnName("m")
COUNTED = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region"
BOTH = "SELECT region, COUNT(*) AS n, SUM(age) AS m FROM visits GROUP BY region"


def asked(text: str) -> Query:
    return parsed(text, CARD)


SAME = {
    f"WITH s AS ({COUNTED}) SELECT region, n FROM s WHERE n > 100 ORDER BY n DESC LIMIT 5": (
        f"{COUNTED} HAVING n > 100 ORDER BY n DESC LIMIT 5"
    ),
    f"SELECT region, n FROM ({COUNTED}) WHERE n > 100": f"{COUNTED} HAVING n > 100",
    f"SELECT * FROM ({COUNTED}) WHERE n > 100": f"{COUNTED} HAVING n > 100",
    f"SELECT s.* FROM ({COUNTED}) AS s WHERE s.n > 100": f"{COUNTED} HAVING n > 100",
    f"SELECT q.region, q.n FROM ({COUNTED} HAVING n > 1) AS q WHERE q.region = 'north'": (
        f"{COUNTED} HAVING n > 1 AND region = 'north'"
    ),
    f"SELECT region AS r, n AS k FROM ({COUNTED}) ORDER BY n": (
        "SELECT region AS r, COUNT(*) AS k FROM visits GROUP BY r ORDER BY k"
    ),
    # what nothing needs is not asked
    f"SELECT region, n FROM ({BOTH}) ORDER BY 2 DESC": f"{COUNTED} ORDER BY n DESC",
    # each order and limit counts
    f"SELECT region, n FROM ({COUNTED} ORDER BY n DESC LIMIT 7) LIMIT 3": (
        f"{COUNTED} ORDER BY n DESC LIMIT 3"
    ),
    f"SELECT region, n FROM ({COUNTED} ORDER BY n DESC)": f"{COUNTED} ORDER BY n DESC",
    f"WITH a AS ({COUNTED}), b AS (SELECT * FROM a WHERE n > 5) SELECT region, n FROM b c "
    "WHERE c.n < 9": f"{COUNTED} HAVING n > 5 AND n < 9",
    "SELECT n FROM (SELECT COUNT(*) AS n FROM visits)": "SELECT COUNT(*) AS n FROM visits",
    # a sub-query grouped by the unit has another meaning, as ever
    "SELECT k, n FROM (SELECT r AS k, COUNT(*) AS n FROM (SELECT pid, region AS r FROM visits "
    "GROUP BY pid, region) GROUP BY r) WHERE n > 3": (
        "SELECT r AS k, COUNT(*) AS n FROM (SELECT pid, region AS r FROM visits "
        "GROUP BY pid, region) GROUP BY r HAVING n > 3"
    ),
}


@pytest.mark.parametrize("text", SAME)
def test_the_same_as_a_question_without_it(text: str) -> None:
    assert asked(text) == asked(SAME[text])


def test_formulas_over_released_columns() -> None:
    text = f"SELECT region, n / m AS x, x * 2 AS n FROM ({BOTH}) WHERE m > 0 ORDER BY ABS(x - 1)"
    query = asked(text)
    parts = [part.name for part in query.aggregates]
    assert query.shown == ("x", "n")
    assert parts == ["n_2", "m"]  # n is another column in the end
    ratio = Call("/", (ColumnName("n_2"), M))
    assert [one.expression for one in query.derived] == [
        ratio,
        Call("*", (ratio, Constant(2))),
        Call("abs", (Call("-", (ratio, Constant(1))),)),
    ]
    assert query.having == Call(">", (M, Constant(0)))
    assert query.order == (OrderBy(name="sorted_by"),)


def test_names_may_be_swapped() -> None:
    query = asked(f"SELECT region, n AS m, m AS n FROM ({BOTH} HAVING n > 5) ORDER BY n, m DESC")
    functions = {part.name: part.function for part in query.aggregates}
    assert functions == {"m": "count", "n": "sum"}
    assert query.having == Call(">", (M, Constant(5)))  # of the count, that is m now
    assert query.order == (OrderBy(name="n"), OrderBy(name="m", descending=True))
    assert query.selected == ("m", "n")


def test_a_formula_of_the_sub_query_can_be_filtered_sorted_and_used() -> None:
    inner = "SELECT region, COUNT(*) AS n, SUM(age) / n AS a FROM visits GROUP BY region"
    query = asked(f"SELECT region, a + 1 AS b FROM ({inner}) WHERE a > 3 ORDER BY a")
    mean = Call("/", (ColumnName("sum_age"), N))
    assert query.shown == ("b",)
    assert {one.name: one.expression for one in query.derived} == {
        "a": mean,
        "b": Call("+", (mean, Constant(1))),
    }
    assert query.having == Call(">", (ColumnName("a"), Constant(3)))


VIEWED = {
    f"SELECT n FROM ({COUNTED})": "SELECT COUNT(*) AS n FROM visits GROUP BY region",
    f"SELECT region FROM ({COUNTED}) WHERE n > 9 ORDER BY n": (
        "SELECT region FROM visits GROUP BY region HAVING COUNT(*) > 9 ORDER BY COUNT(*)"
    ),
    f"SELECT region FROM ({COUNTED})": "SELECT region FROM visits GROUP BY region",
    f"SELECT region, region AS r, n FROM ({COUNTED})": (
        "SELECT region, region AS r, COUNT(*) AS n FROM visits GROUP BY region"
    ),
    f"SELECT length(region) AS l, n, 1 AS one FROM ({COUNTED}) ORDER BY upper(region), l": (
        "SELECT length(region) AS l, COUNT(*) AS n, 1 AS one FROM visits GROUP BY region "
        "ORDER BY upper(region), l"
    ),
    "SELECT u, n FROM (SELECT upper(ward) AS u, COUNT(*) AS n FROM visits GROUP BY ward) "
    "WHERE u <> 'A' ORDER BY u LIMIT 3": (
        "SELECT upper(ward) AS u, COUNT(*) AS n FROM visits GROUP BY ward HAVING u <> 'A' "
        "ORDER BY u LIMIT 3"
    ),
    "SELECT u || '!' AS v FROM (SELECT upper(ward) AS u FROM visits GROUP BY ward ORDER BY u)": (
        "SELECT upper(ward) || '!' AS v FROM visits GROUP BY ward ORDER BY upper(ward)"
    ),
    "SELECT * FROM (SELECT DISTINCT ward, age FROM visits) WHERE age > 3": (
        "SELECT ward, age FROM visits GROUP BY ward, age HAVING age > 3"
    ),
    "WITH s AS (SELECT ward, age, COUNT(*) AS n FROM visits GROUP BY ward, age), "
    "t AS (SELECT 2 * age AS two, n FROM s WHERE n > 5) SELECT two + 1 AS odd, n FROM t "
    "WHERE two < 90 ORDER BY two DESC LIMIT 3": (
        "SELECT 2 * age + 1 AS odd, COUNT(*) AS n FROM visits GROUP BY age, ward "
        "HAVING n > 5 AND 2 * age < 90 ORDER BY 2 * age DESC LIMIT 3"
    ),
}


@pytest.mark.parametrize("text", VIEWED)
def test_what_is_shown_is_the_same_too(text: str) -> None:
    """But for the names of what is not shown."""
    (query, view), (plain, plain_view) = (
        (parsed(one, CARD), view_of(one, CARD)) for one in (text, VIEWED[text])
    )
    assert view is not None and plain_view is not None
    expressions = {key.expression for key in plain.keys}
    assert {key.expression for key in query.keys} == expressions
    functions = [(part.function, part.expression) for part in plain.aggregates]
    assert [(part.function, part.expression) for part in query.aggregates] == functions
    assert (query.limit, view.limit) == (plain.limit, plain_view.limit)
    assert [one.descending for one in view.order] == [o.descending for o in plain_view.order]
    assert [one.name for one in view.keys] == [one.name for one in plain_view.keys]
    assert view.numbers == plain_view.numbers
    if {key.name for key in query.keys} == {key.name for key in plain.keys}:
        assert view.keys == plain_view.keys
        assert (query.having is None) == (plain.having is None)


REFUSED = {
    f"SELECT * FROM ({COUNTED}) ORDER BY NULL": "same in every row",
    f"SELECT * FROM ({COUNTED}) ORDER BY TRUE": "same in every row",
    f"SELECT SUM(n) FROM ({COUNTED})": "would mix rows of many units; group it by pid, or ask it",
    f"SELECT region, SUM(n) FROM ({COUNTED}) GROUP BY region": "would mix rows of many units",
    f"SELECT region, n FROM ({COUNTED}) GROUP BY region, n": "would mix rows of many units",
    f"SELECT region, n, SUM(n) OVER () AS t FROM ({COUNTED})": "would mix rows of many units",
    f"SELECT region, n, RANK() OVER (ORDER BY n) AS r FROM ({COUNTED})": "a window function",
    f"SELECT region, n, m AS n FROM ({BOTH})": "two columns",
    f"SELECT region, length(region) + n AS l FROM ({COUNTED})": "is a key, and stands in a form",
    f"SELECT region, n > 5 AS many FROM ({COUNTED})": "is not a number",
    f"SELECT region, n FROM ({COUNTED}) WHERE n": "neither true nor false",
    f"SELECT region, n FROM ({COUNTED}) WHERE age > 5": "age is not a column of the sub-query",
    f"SELECT region, n FROM ({COUNTED}) s WHERE visits.n > 5": "n is not a column of the sub",
    f"SELECT region, n FROM ({COUNTED}) WHERE region IN (SELECT zone FROM regions)": "other rows",
    f"SELECT t.* FROM ({COUNTED}) s": "no table here",
    f"SELECT DISTINCT region, n FROM ({COUNTED})": "GROUP BY the columns",
    f"SELECT region, n FROM ({COUNTED} LIMIT 9) WHERE n > 5": "WHERE comes after a LIMIT",
    f"SELECT region, n FROM ({COUNTED} LIMIT 9) ORDER BY n": "ORDER BY comes after a LIMIT",
    f"SELECT region, n FROM ({COUNTED}) LIMIT 1.5": "not a whole number",
    f"SELECT region, n FROM ({COUNTED}) ORDER BY 3": "beyond",
    f"SELECT region, n FROM ({COUNTED}) ORDER BY age": "not a column of the sub-query",
    f"SELECT region, n FROM ({COUNTED}) ORDER BY n NULLS FIRST": "come last",
    f"SELECT region, n FROM ({COUNTED}) QUALIFY n > 3": "HAVING",
    f"SELECT s.region, s.n, r.size FROM ({COUNTED}) s JOIN regions r USING (region)": "join the",
    f"SELECT region, n FROM visits JOIN ({COUNTED}) s USING (region)": "groups that are released",
    f"WITH s AS ({COUNTED}) SELECT COUNT(*) FROM s": "would mix rows of many units",
    "WITH s AS (SELECT AVG(free) AS a FROM visits) SELECT COUNT(*) FROM visits": "no bounds",
    "SELECT pid, n FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid)": "row by row",
    "SELECT region, h + 1 AS x FROM (SELECT region, HISTOGRAM(age, 0, 9) AS h FROM visits "
    "GROUP BY 1)": "many columns",
    "SELECT region, n, s FROM (SELECT region, COUNT(*) AS n, n / SUM(COUNT(*)) OVER () AS s "
    "FROM visits GROUP BY 1) WHERE n > 3": "leaves some out",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    with pytest.raises(InvalidParameter, match=REFUSED[text]):
        asked(text)


def test_where_each_row_is_a_unit_groups_are_groups() -> None:
    card = card_with(unit=None, max_rows=1, max_groups=None)
    inner = "SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid"
    assert parsed(f"SELECT pid, n FROM ({inner}) WHERE n > 3", card) == parsed(
        f"{inner} HAVING n > 3", card
    )
    with pytest.raises(QueryRefused, match="ask it by itself"):
        parsed(f"SELECT AVG(n) FROM ({inner})", card)


def test_sub_queries_in_each_other_are_read_once() -> None:
    text = COUNTED
    for _ in range(25):  # were each read twice, for ever
        text = f"WITH s AS ({text}) SELECT region, n FROM s WHERE n > 1"
    assert asked(text).selected == ("n",)
