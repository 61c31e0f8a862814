"""Every limit on a question: what it allows is fine, more is refused, before anything is read."""

from fractions import Fraction
from typing import Any

import pyarrow
import pytest

import lastbit as lb
from lastbit.errors import InvalidParameter, QueryRefused, WrongType
from lastbit.tables import limits
from lastbit.tables.compile.dialect import regular_expression
from lastbit.tables.query.expression import (
    Call,
    ColumnName,
    Constant,
    Expression,
    from_json,
)
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.query.rules import call
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.units import PublicJoin
from lastbit.tables.query.writing import to_json
from lastbit.tables.sql.statement import parsed
from tests.tables.asked import CARD

AGE, REGION, COUNT = ColumnName("age"), ColumnName("region"), Aggregate(name="n", function="count")


def nested(depth):
    found: Expression = AGE
    for _ in range(depth):
        found = Call("abs", (found,))
    return found


def query(*aggregates, **fields):
    return Query(table="visits", aggregates=aggregates or (COUNT,), **fields)


def keys(number):
    return tuple(
        GroupKey(name=f"k{i}", expression=Call("+", (AGE, Constant(i)))) for i in range(number)
    )


def counts(number, expression=None):
    return tuple(
        Aggregate(name=f"n{i}", function="count", expression=expression) for i in range(number)
    )


def joins(number):
    return tuple(
        PublicJoin(table=f"p{i}", on=((AGE, ColumnName("a", f"p{i}")),)) for i in range(number)
    )


def histogram(edges):
    found = tuple(map(Fraction, range(edges)))
    return Aggregate(name="h", function="histogram", expression=AGE, edges=found)


def like(pattern, function="like"):
    return Call(function, (REGION, Constant(pattern)))


LIMITED = {
    "depth": (nested, limits.DEEPEST),
    "terms": (lambda n: Call("+", (AGE,) * n), limits.MOST_TERMS),
    "branches": (lambda n: Call("case", (ColumnName("ok"), AGE) * (n // 2)), limits.MOST_TERMS),
    "items": (lambda n: Call("in", (AGE, *map(Constant, range(n - 1)))), limits.MOST_ITEMS),
    "calls": (
        lambda n: query(*counts(5, Call("+", (nested(n // 25),) * 5))),
        limits.MOST_CALLS - 100,
    ),
    "nodes": (
        lambda n: query(*counts(n // 1_000, Call("in", (AGE, *map(Constant, range(998)))))),
        limits.MOST_NODES,
    ),
    "texts": (
        lambda n: query(
            where=Call(
                "in",
                (
                    Call(
                        "concat",
                        tuple(
                            Call("lower", (Call("substring", (REGION, Constant(i))),))
                            for i in range(n // 2)
                        ),
                    ),
                    Constant("a"),
                ),
            )
        ),
        limits.MOST_TEXT_FUNCTIONS - 2,
    ),
    "keys": (lambda n: query(keys=keys(n)), limits.MOST_KEYS),
    "aggregates": (lambda n: query(*counts(n)), limits.MOST_AGGREGATES),
    "joins": (lambda n: query(joins=joins(n)), limits.MOST_JOINS),
    "edges": (lambda n: query(histogram(n)), limits.MOST_EDGES),
    "constant": (lambda n: Constant("a" * n), limits.LONGEST_CONSTANT),
    "bytes": (lambda n: Constant("é" * (n // 2)), limits.LONGEST_CONSTANT),
    "pattern": (lambda n: query(where=like("a" * n)), limits.LONGEST_PATTERN),
    "needle": (lambda n: query(where=like("a" * n, "contains")), limits.LONGEST_PATTERN),
    "wildcards": (lambda n: query(where=like("%" + "_" * n)), limits.MOST_SINGLE_WILDCARDS),
    "name": (lambda n: query(Aggregate(name="n" * n, function="count")), limits.LONGEST_NAME),
}


@pytest.mark.parametrize("limit", LIMITED)
def test_as_much_as_allowed_is_fine_and_more_is_refused(limit):
    made, most = LIMITED[limit]
    made(most)
    with pytest.raises(QueryRefused) as refused:
        made(most + (1_000 if limit in ("calls", "nodes") else 6 if limit == "texts" else 2))
    assert ";" in str(refused.value)  # a remedy


@pytest.mark.parametrize(
    "where",
    [
        "region LIKE Ward",
        "contains(region, Ward)",
        "region LIKE lower('A')",
        "region ILIKE Ward || '%'",
        f"region LIKE '{'a' * 201}'",
        f"region LIKE '%{'_' * 7}'",
        " AND ".join(["length(lower(region)) = 1"] * 40),
        "age = 1" + " OR age = 2" * 1_000,
        f"age IN ({', '.join(map(str, range(10_001)))})",
    ],
)
def test_in_sql_and_in_python_alike(where):
    with pytest.raises(QueryRefused):
        parsed(f"SELECT COUNT(*) AS n FROM visits WHERE {where}", CARD)
    frame = pyarrow.table({"pid": [1], "region": ["a"], "Ward": ["b"], "age": [3]})
    table = lb.table(frame, unit="pid", max_rows=1, name="visits")
    with pytest.raises(QueryRefused):
        table.where(where).agg(n=lb.count()).query  # noqa: B018


def test_from_records_alike():
    deep: Any = {"column": "age"}
    for _ in range(50):
        deep = ["abs", deep]
    assert to_json(from_json(deep)) == deep
    for _ in range(100_000):
        deep = ["abs", deep]
    for bad in (deep, ["+", *[{"column": "age"}] * 1_001], {"type": "text", "value": "a" * 5_000}):
        with pytest.raises(QueryRefused):
            from_json(bad)


@pytest.mark.parametrize(
    "value", ["1e999999999", "9" * 5_000, "1/0", "inf", "nan", "", 5, None, "0x1", "1_000"]
)
def test_numbers_of_records_cannot_explode(value):
    with pytest.raises((WrongType, InvalidParameter)):
        from_json({"type": "number", "value": value})


@pytest.mark.parametrize("kind", ["date", "timestamp"])
def test_dates_of_records_are_checked(kind):
    with pytest.raises(WrongType, match="malformed"):
        from_json({"type": kind, "value": "9" * 5_000})


def test_a_part_that_doubles_is_seen_before_it_is_walked():
    found: Expression = AGE
    with pytest.raises(QueryRefused, match="too long"):
        for _ in range(40):
            found = call("+", found, found)


def test_patterns_are_regular_expressions_that_mean_the_same():
    assert regular_expression("a.b%%_(") == r"a\.b.*.\("
    assert regular_expression("ß\n \\") == "ß\n \\\\"


# ---------------------------------------------------------------- joins that multiply


def joined(copies, second=1, unit="who"):
    people = pyarrow.table({"who": [1, 2, 3], "region": ["a", "b", None]})
    one = pyarrow.table(
        {"region": ["a"] * copies + ["b"] + [None] * 2_000, "x": list(range(copies + 2_001))}
    )
    two = pyarrow.table({"region": ["a"] * second, "y": list(range(second))})
    made = lb.table(
        people,
        unit=unit,
        each_row=unit is None,
        max_rows=None if unit is None else 2_000,
        name="people",
        public={"one": one, "two": two},
    )
    found = made.join("one", on="region")
    return found.join("two", on="region") if second > 1 else found


@pytest.mark.evidence
def test_joins_that_make_many_rows_of_one_are_refused(tmp_path):
    kept = {"epsilon": 1, "ledger": tmp_path / "l"}
    joined(1_000).agg(n=lb.count()).release(**kept)
    joined(100, second=10).agg(n=lb.count()).release(**kept)
    for bad in (joined(1_001), joined(101, second=10)):
        with pytest.raises(QueryRefused, match="more than 1000 rows of one"):
            bad.agg(n=lb.count()).release(**kept)
    rows = joined(5_000, unit=None)  # of which none is met
    rows.agg(n=lb.count()).release(epsilon=1, ledger=tmp_path / "rows")


# ---------------------------------------------------------------- long texts of the source


def test_a_text_of_the_source_that_is_too_long_is_missing(tmp_path):
    notes = ["a" * 4_096, "a" * 4_097, "é" * 2_049, "b", None] * 4_000
    table = lb.table(
        pyarrow.table({"who": list(range(len(notes))), "note": notes}),
        unit="who",
        max_rows=1,
        name="people",
    )
    answer = table.agg(n=lb.count("note")).release(epsilon=1, ledger=tmp_path / "l")
    assert abs(answer["n"][0] - 8_000) < 100
