"""What SELECT shows of keys: which keys there are, what is made of them, and what DuckDB makes."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from random import Random
from typing import Any

import duckdb
import pytest

from lastbit.errors import QueryRefused
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.query import OrderBy, Query
from lastbit.tables.query.view import View
from lastbit.tables.sql.statement import parsed, view_of
from tests.evidence import Extent
from tests.tables.asked import CARD, card_with


def shown_by(text: str) -> Any:
    return view_of(text, CARD)


def asked(text: str) -> tuple[Query, Any]:
    return parsed(text, CARD), shown_by(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT region, COUNT(*) AS n FROM visits GROUP BY region",
        "SELECT COUNT(*) AS n, region, ward FROM visits GROUP BY ward, region",
        "SELECT DISTINCT region, COUNT(*) AS n FROM visits GROUP BY region",
        "SELECT DISTINCT COUNT(*) AS n FROM visits",
        "SELECT upper(region) AS u, COUNT(*) AS n FROM visits GROUP BY u",
        "SELECT upper(region) AS u, COUNT(*) AS n FROM visits GROUP BY ALL",
    ],
)
def test_a_question_that_shows_its_keys_needs_no_view(text):
    assert view_of(text, CARD) is None


def test_keys_that_are_not_selected_come_last_and_have_names_of_their_own():
    text = (
        "SELECT ok AS region, COUNT(*) AS n FROM visits "
        "GROUP BY upper(region), visits.region, ok, age // 10, (ward)"
    )
    query, view = asked(text)
    assert [key.name for key in query.keys] == [
        "region",
        "upper_region",
        "region_2",
        "intdiv_age",
        "ward",
    ]
    assert [one.name for one in view.keys] == ["region"]
    assert view.hidden == ("upper_region", "region_2", "intdiv_age", "ward")
    assert query.aggregates == parsed("SELECT COUNT(*) AS n FROM visits", CARD).aggregates


def test_the_question_is_the_same_whatever_is_shown():
    plain = parsed("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", CARD)
    for shown in (
        "COUNT(*) AS n",
        "upper(ward) AS u, COUNT(*) AS n",
        "ward, length(ward) AS l, COUNT(*) AS n",
    ):
        assert parsed(f"SELECT {shown} FROM visits GROUP BY ward", CARD) == plain


@pytest.mark.parametrize(
    ("shown", "group"),
    [
        ("upper(ward)", "ward"),
        ("age + 1", "age"),
        ("CASE WHEN region = 'north' THEN 'N' ELSE ward END", "region, ward"),
        ("month(day) * 100", "month(day)"),
        ("age // 10 * 10", "age // 10"),
        ("coalesce(v.ward, 'none')", "v.ward"),
        ("year(day)", "day"),
        ("ward", "ward, region"),
    ],
)
def test_what_is_made_of_keys(shown, group):
    text = f"SELECT {shown} AS x, COUNT(*) AS n FROM visits AS v GROUP BY {group}"
    query, view = asked(text)
    assert len(query.keys) == len(group.split(", "))
    assert view is not None and [one.name for one in view.keys] == ["x"]


def test_order_and_limit_stay_in_the_question_unless_a_made_column_decides():
    start = "SELECT upper(ward) AS u, COUNT(*) AS n FROM visits GROUP BY ward "
    query, view = asked(start + "ORDER BY n DESC, ward LIMIT 3")
    assert (query.order, query.limit) == (
        (OrderBy(name="n", descending=True), OrderBy(name="ward")),
        3,
    )
    assert (view.order, view.limit) == ((), None)
    for item in ("u", "U", "1", "upper(ward)", "upper(visits.ward)"):
        query, view = asked(start + f"ORDER BY {item} DESC, n LIMIT 3")
        assert (query.order, query.limit) == ((), None)
        assert (view.order, view.limit) == (
            (OrderBy(name="u", descending=True), OrderBy(name="n")),
            3,
        )


def test_having_may_name_what_is_made_of_keys():
    query, _ = asked(
        "SELECT length(ward) AS l, COUNT(*) AS n FROM visits GROUP BY ward HAVING l > 2"
    )
    plain = parsed(
        "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING length(ward) > 2", CARD
    )
    assert query == plain


@pytest.mark.parametrize(
    "text",
    [
        "SELECT DISTINCT ward FROM visits",
        "SELECT ward FROM visits GROUP BY ward",
        "SELECT ward FROM visits GROUP BY 1",
        "SELECT ward FROM visits GROUP BY ALL",
        "SELECT DISTINCT ward FROM visits GROUP BY ward",
    ],
)
def test_keys_alone_are_found_by_the_units_that_have_them(text):
    query, view = asked(text)
    assert query == parsed(
        "SELECT ward, COUNT(DISTINCT pid) AS units FROM visits GROUP BY ward", CARD
    )
    assert view == View(released=(("ward", "text"),), keys=view.keys, numbers=False) and view.keys[
        0
    ].expression == ColumnName("ward")
    alone = card_with(unit=None, max_rows=1, max_groups=None)
    assert parsed(text, alone).aggregates[0].function == "count"


def test_keys_alone_may_be_chosen_by_aggregates():
    query, view = asked(
        "SELECT region FROM visits GROUP BY region HAVING COUNT(*) > 9 "
        "ORDER BY SUM(age) / COUNT(*) LIMIT 1"
    )
    assert [part.function for part in query.aggregates] == ["count", "sum"]
    assert query.limit == 1 and not view.numbers


def test_a_name_of_a_key_that_is_an_aggregates_too():
    query, _ = asked("SELECT COUNT(*) AS ward FROM visits GROUP BY ward HAVING SUM(age) > 3")
    assert [key.name for key in query.keys] == ["ward_2"]


# ---------------------------------------------------------------- as DuckDB computes it

TEXTS: tuple[Any, ...] = (
    *(None, "", "a", "Straße", "İx", "ǆ", "o'b", 'q"', "ﬀ", "x" * 99, "Ω;--"),
    *("1", "-2.5", "é", " t "),
)
NUMBERS: tuple[Any, ...] = (None, 0, 1, -1, 7, 2**62, -(2**62), 2**63 - 1, 12345)
DAYS: tuple[Any, ...] = (
    *(None, date(1, 1, 1), date(1999, 12, 31), date(2024, 2, 29), date(9999, 12, 31)),
)
OF_TEXTS = (
    *("upper(Ward)", "lower(Ward)", "length(Ward)", "Ward || '!'", "trim(Ward)", "Ward IS NULL"),
    *("substring(Ward, 2, 3)", "TRY_CAST(Ward AS BIGINT)", "coalesce(Ward, 'none')", "Ward > 'a'"),
    "CASE WHEN Ward = 'a' THEN 1 ELSE 2 END",
)
OF_NUMBERS = (
    *("many / 7", "many % 5", "many // 10 * 10", "CAST(many AS VARCHAR)", "many < 3"),
    *("CASE WHEN many > 0 THEN 'up' WHEN many < 0 THEN 'down' END", "greatest(many, 3)"),
)
OF_DAYS = (
    *("year(day)", "month(day)", "CAST(date_trunc('quarter', day) AS DATE)", "dayname(day)"),
    "strftime(day, '%Y-%m')",
)
STORED = (("Ward", "VARCHAR", TEXTS), ("many", "BIGINT", NUMBERS), ("day", "DATE", DAYS))


@pytest.mark.parametrize("sql", [*OF_TEXTS, *OF_NUMBERS, *OF_DAYS])
def test_expressions_of_keys_are_what_duckdb_computes(sql: str, extent: Extent) -> None:
    name, kind, values = next(one for one in STORED if one[0] in sql)
    view = shown_by(f"SELECT {sql} AS x, COUNT(*) AS n FROM visits GROUP BY {name}")
    assert view is not None
    if "//" in sql:  # a quotient of doubles, as in WHERE
        values = tuple(value for value in values if abs(value or 0) < 2**53)
    random = Random(5)
    for _ in range(extent.generated(2, 10)):
        rows = [(value,) for value in random.choices(values, k=40)]
        listed = {"v": [row[0] for row in rows], "p": list(range(40))}
        source = f"SELECT unnest($v::{kind}[]) AS {name}, unnest($p::BIGINT[]) AS p"
        truth = duckdb.execute(f"SELECT {sql} FROM ({source}) ORDER BY p", listed).fetchall()
        found = view.shown(rows)
        assert [(own, type(own) is Fraction) for (own,) in found] == [
            (Fraction(other), True) if isinstance(other, float) else (other, False)
            for (other,) in truth
        ]


def test_an_expression_that_fails_in_sql_is_missing():
    view = shown_by("SELECT many + 1 AS x, 1 / many AS y, COUNT(*) AS n FROM visits GROUP BY many")
    assert view.shown([(2**63 - 1,), (0,)]) == [(None, pytest.approx(2.0**-63)), (1, None)]


def test_many_rows_stay_in_their_order():
    view = shown_by("SELECT many % 7 AS x, many, COUNT(*) AS n FROM visits GROUP BY many")
    rows = [(value,) for value in range(50_000)]
    assert view.shown(rows) == [(value % 7, value) for value in range(50_000)]


def test_what_cannot_be_computed_is_refused_before_anything_is_paid():
    for shown in ("sum_of(ward)", "regexp_replace(ward, 'a', 'b')", "ward + 1", "ward || age"):
        with pytest.raises(QueryRefused):
            view_of(f"SELECT {shown} AS x, COUNT(*) AS n FROM visits GROUP BY ward", CARD)


def test_keys_of_sub_queries():
    inner = "(SELECT pid, ward, COUNT(*) AS n FROM visits GROUP BY pid, ward)"
    query, view = asked(f"SELECT AVG(n) AS m FROM {inner} GROUP BY ward")
    assert query == parsed(f"SELECT ward, AVG(n) AS m FROM {inner} GROUP BY ward", CARD)
    assert view.hidden == ("ward",)
    query, view = asked(f"SELECT DISTINCT upper(ward) AS u FROM {inner}")
    assert [part.function for part in query.aggregates] == ["count_units"]


def test_hostile_keys_are_data():
    view = shown_by("SELECT upper(ward) AS u, COUNT(*) AS n FROM visits GROUP BY ward")
    keys = ["'; DROP TABLE l0; --", "$c0", "\x00", "a\x00b", "\\", "%", "NULL", "x" * 4096]
    assert view.shown([(key,) for key in keys]) == [(key.upper(),) for key in keys]
    assert view.shown([]) == []


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (
            "SELECT -age AS age, COUNT(*) AS n FROM visits GROUP BY visits.age HAVING age > 1",
            "SELECT age AS age_2, COUNT(*) AS n FROM visits GROUP BY age HAVING age_2 > 1",
        ),
        (
            "SELECT ward AS region, COUNT(*) AS n FROM visits GROUP BY 1, visits.region "
            "HAVING region <> 'north'",
            "SELECT ward AS region, visits.region AS region_2, COUNT(*) AS n FROM visits "
            "GROUP BY 1, 2 HAVING visits.region <> 'north'",
        ),
        (
            "SELECT COUNT(*) AS ward FROM visits GROUP BY visits.ward HAVING ward > 'a'",
            "SELECT visits.ward AS ward_2, COUNT(*) AS ward FROM visits GROUP BY 1 "
            "HAVING visits.ward > 'a'",
        ),
    ],
)
def test_a_name_in_having_means_the_column_that_is_grouped_by(text, plain):
    """As in DuckDB; in ORDER BY it means what SELECT calls so."""
    assert parsed(text, CARD) == parsed(plain, CARD)


@pytest.mark.parametrize("item", ["length(ward)", "length(v.ward)", "length(w)", "(length(ward))"])
def test_order_by_what_is_made_of_keys_and_not_selected(item):
    text = f"SELECT ward AS w, COUNT(*) AS n FROM visits v GROUP BY ward ORDER BY {item} DESC, n"
    query, view = asked(text + " LIMIT 2")
    assert (query.order, query.limit) == ((), None)
    assert [one.name for one in view.keys] == ["w"]
    (made,) = view.sorts
    assert view.order == (OrderBy(name=made.name, descending=True), OrderBy(name="n"))
    assert view.limit == 2


def test_order_by_and_having_may_say_what_a_key_is():
    start = "SELECT COUNT(*) AS n, upper(ward) AS u FROM visits GROUP BY upper(ward) "
    plain = parsed(start + "HAVING u <> 'A' ORDER BY u", CARD)
    assert parsed(start + "HAVING upper(ward) <> 'A' ORDER BY upper(visits.ward)", CARD) == plain
    for text in (start + "ORDER BY ward", start + "HAVING ward = 'a'", start + "ORDER BY age + 1"):
        with pytest.raises(QueryRefused, match="not released"):
            parsed(text, CARD)


def test_constants_are_shown():
    query, view = asked(
        "SELECT 3 AS three, ward, COUNT(*) AS n, 'x' AS x FROM visits GROUP BY ward"
    )
    assert query == parsed("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", CARD)
    assert view.shown([("a",)]) == [(Fraction(3), "a", "x")]
    query, view = asked("SELECT 1 + 1 AS two, COUNT(*) AS n FROM visits")
    assert view.shown([()]) == [(2,)]


def test_declared_keys_alone_are_those_with_a_unit():
    query, view = asked("SELECT DISTINCT region FROM visits")
    plain = "SELECT region, COUNT(DISTINCT pid) AS units FROM visits GROUP BY region "
    assert query == parsed(plain + "HAVING units >= 1", CARD)
    assert not view.numbers
    query, _ = asked("SELECT region FROM visits GROUP BY region HAVING region <> 'north'")
    assert query.having == parsed(plain + "HAVING region <> 'north' AND units >= 1", CARD).having


def test_a_name_in_having_that_is_no_key_is_that_of_select():
    for condition in ("ward = 'north'", "visits.region = 'north'", "COUNT(*) > 3"):
        text = "SELECT region AS ward, COUNT(*) AS age FROM visits GROUP BY region HAVING "
        assert parsed(text + condition, CARD).having is not None
    assert parsed(text + "age > 3 ORDER BY ward", CARD).having is not None
