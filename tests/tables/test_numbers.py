"""Which columns a question uses as numbers: by its words, whatever the data are."""

import pytest

from lastbit.errors import QueryRefused
from lastbit.tables.sql.numbers import numbers_in, numbers_in_statement


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("cost", "cost"),
        ('"Cost"', "cost"),
        ("t.cost", "cost"),
        ("clamp(cost, 0, 9)", "cost"),
        ("a + 2 * (b - c) / -d % e", "a b c d e"),
        ("coalesce(a, b) + least(c, d) + round(e, 1) + abs(f) + ln(g)", "a b c d e f g"),
        ("CASE WHEN a = 'x' THEN b ELSE c END", "b c"),
        ("CASE a WHEN 'x' THEN b END", "b"),
        ("length(a)", ""),
        ("CAST(a AS DOUBLE)", ""),  # which is one already
        ("year(a)", ""),
        ("a = b", ""),
        ("CASE WHEN clamp(a, 0, 1) > 0 THEN 1 END", "a"),
    ],
)
def test_inside_an_aggregate(text, found):
    assert numbers_in(text, aggregated=True) == frozenset(found.split())


@pytest.mark.parametrize(
    ("text", "found"),
    [("a", ""), ("a + 1", ""), ("bin(a, 0, 1)", "a"), ("clamp(a, 0, 1) > b", "a")],
)
def test_outside_of_one(text, found):
    assert numbers_in(text, aggregated=False) == frozenset(found.split())


@pytest.mark.parametrize(
    ("aggregate", "found"),
    [
        ("COUNT(*)", ""),
        ("COUNT(a)", ""),
        ("COUNT(DISTINCT a)", ""),
        *((f"{name}(a)", "a") for name in ("SUM", "AVG", "MIN", "MAX", "MEDIAN", "STDDEV")),
        *((f"{name}(a)", "a") for name in ("VARIANCE", "VAR_POP", "STDDEV_POP", "VAR_SAMP")),
        ("QUANTILE_CONT(a, 0.5)", "a"),
        ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a)", "a"),
        ("HISTOGRAM(a, 0, 1)", "a"),
        ("SUM(a) FILTER (WHERE b = 'x')", "a"),
    ],
)
def test_aggregates_of_statements(aggregate, found):
    text = f"SELECT k, {aggregate} AS x FROM t WHERE w = 'y' GROUP BY k HAVING x > 3"
    assert numbers_in_statement(text) == frozenset(found.split())


def test_what_is_no_sql_is_refused_here_as_everywhere():
    with pytest.raises(QueryRefused):
        numbers_in_statement("DROP TABLE t")
