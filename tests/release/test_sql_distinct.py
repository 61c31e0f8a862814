"""SUM, AVG, VARIANCE and STDDEV of distinct values: DuckDB's numbers, with intervals."""

from __future__ import annotations

from random import Random
from typing import Any

import duckdb
import pyarrow
import pytest

import lastbit as lb
from lastbit.errors import QueryRefused
from tests.evidence import Extent

POPULATION = {"VARIANCE": "var_pop", "STDDEV": "stddev_pop"}


def table(rows: dict[str, Any], low: int, high: int) -> Any:
    return lb.table(
        pyarrow.table(rows),
        unit="who",
        max_rows=3,
        name="t",
        keys={"g": [0, 1, 2]},
        columns=[lb.Column(name="x", type="integer", bounds=(low, high))],
    )


def in_duckdb(text: str) -> str:
    for name, other in POPULATION.items():
        text = text.replace(name, other)
    return text


def test_random_values_as_in_duckdb(extent: Extent) -> None:
    """Negative numbers, missing ones, empty groups; each unit has as many values as it may name."""
    random = Random(8)
    for _ in range(extent.number(6, 60)):
        low = random.choice((0, 1, -7, -100, 990))
        high = low + random.choice((1, 2, 7, 8, 100, 1000))
        value = lambda low=low, high=high: random.choice((None, *[random.randint(low, high)] * 4))  # noqa: E731
        number = random.choice((0, 1, 30, 90))
        rows = {
            "who": [place // 3 for place in range(number)],
            "g": [random.randrange(2) for _ in range(number)],
            "x": [value() for _ in range(number)],
        }
        t = pyarrow.table({name: pyarrow.array(one, pyarrow.int64()) for name, one in rows.items()})
        inside = random.choice(("x", "x + 1", "2 * x", "abs(x)", "CASE WHEN x > 3 THEN x END"))
        items = ", ".join(
            f"{f}(DISTINCT {inside}) AS a{i}"
            for i, f in enumerate(("SUM", "AVG", "VARIANCE", "STDDEV"))
        )
        text = f"SELECT g, {items}, COUNT(DISTINCT {inside}) AS n FROM t GROUP BY g"
        asked = table({name: t[name] for name in t.column_names}, low, high)
        answer = asked.sql(text).release(epsilon=10**9)
        truth = {row[0]: row[1:] for row in duckdb.execute(in_duckdb(text)).fetchall()}
        for row in answer:
            got = [cell.value for cell in row.cells]
            wanted = truth.get(row.keys[0], (0, None, None, None, 0))
            if wanted[-1] == 0:
                assert got[0] == 0 and got[-1] == 0
                continue
            assert got == [pytest.approx(w, rel=1e-9, abs=1e-9) for w in wanted], (text, low, high)


def test_intervals_and_formulas() -> None:
    every = range(600)
    rows = {"who": [*every], "g": [n % 3 for n in every], "x": [n % 50 for n in every]}
    asked = table(rows, 0, 63)
    (row,) = asked.sql("SELECT SUM(DISTINCT x) AS s, 2 * AVG(DISTINCT x) AS a FROM t").release(
        epsilon=100
    )
    total, twice = row.cells
    assert total.low is not None and total.low <= 1225 <= total.high
    assert twice.low is not None and twice.low <= 49 <= twice.high
    kept = asked.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g HAVING SUM(DISTINCT x) > 1224")
    assert len(kept.release(epsilon=10**6)) == 3
    share = "SELECT SUM(DISTINCT CASE WHEN g = 1 THEN x END) AS s FROM t"
    assert asked.sql(share).release(epsilon=10**6)[0].s == pytest.approx(1225)


def test_parts_are_paid_for_once() -> None:
    asked = table({"who": [1], "g": [1], "x": [1]}, 0, 100)
    both = asked.sql("SELECT SUM(DISTINCT x) AS s, AVG(DISTINCT x) AS a, STDDEV(DISTINCT x) FROM t")
    names = [part.name for part in both.query.aggregates]
    assert len(names) == 7 + 1 + 14 and len(set(names)) == len(names)
    assert {part.function for part in both.query.aggregates} == {"count_distinct"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SUM(DISTINCT x) FILTER (WHERE g = 1)", "inside FILTER"),
        ("SUM(DISTINCT x / 2)", "known for whole numbers, and not for number"),
        ("AVG(DISTINCT name)", "not for text"),
        ("SUM(DISTINCT clamp(free, 0, 1000000000))", "too far apart"),
        ("SUM(DISTINCT clamp(free, 3, 3))", "too far apart|bounds"),
    ],
)
def test_refused(text: str, words: str) -> None:
    rows = {"who": [1], "g": [1], "x": [1], "free": [5], "name": ["a"]}
    with pytest.raises(QueryRefused, match=words):
        table(rows, 0, 100).sql(f"SELECT {text} AS s FROM t")


def test_of_a_units_own_rows_it_is_refused() -> None:
    text = "SELECT AVG(s) AS a FROM (SELECT who, SUM(DISTINCT x) AS s FROM t GROUP BY who)"
    with pytest.raises(QueryRefused, match="a unit's own rows"):
        table({"who": [1], "g": [1], "x": [1]}, 0, 100).sql(text)
