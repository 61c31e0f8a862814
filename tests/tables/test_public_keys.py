"""Keys that are known publicly are not bought: bounds, clamps, parts of dates, public tables."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import lastbit as lb
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, PublicTable, Source
from lastbit.tables.query.expression import Call, ColumnName, Constant
from lastbit.tables.sql.grouping import grouped_by
from lastbit.tables.sql.statement import parsed

pyarrow = pytest.importorskip("pyarrow")

PLACES = {"code": ["a", "b", "b", "c", None], "level": [3, 1, 1, 2, 2]}


def card_of(bounds: Any = None, places: Any = None, **values: Any) -> DataCard:
    columns = {
        "who": Column(name="who", type="integer"),
        "age": Column(name="age", type="integer", bounds=bounds),
        "code": Column(name="code", type="text"),
        "day": Column(name="day", type="date"),
        "ok": Column(name="ok", type="boolean"),
    }
    source = Source(kind="frame", frame=pyarrow.table(PLACES if places is None else places))
    public = PublicTable(name="places", source=source, columns={"code": "text", "level": "integer"})
    rows = pyarrow.table({"who": [1], "age": [5], "code": ["z"], "day": [None], "ok": [True]})
    given: dict[str, Any] = {
        "name": "t",
        "source": Source(kind="frame", frame=rows),
        "unit": "who",
        "max_rows": 3,
        "columns": columns,
        "public": {"places": public},
    } | values
    return DataCard(**given)


def keys_by(expression: str, card: DataCard | None = None) -> Any:
    text = f"SELECT {expression} AS k, COUNT(*) AS n FROM t JOIN places ON t.code = places.code"
    return parsed(f"{text} GROUP BY k", card or card_of()).keys[0].values


def test_whole_numbers_between_bounds() -> None:
    few = card_of((Fraction(1), Fraction(7, 2)))
    assert keys_by("age", few) == (1, 2, 3)
    assert keys_by("age") is None
    assert keys_by("age", card_of((Fraction(0), Fraction(10**6)))) is None
    assert keys_by("clamp(age, 0, 2)") == (0, 1, 2)


def test_what_expressions_say_by_themselves() -> None:
    assert keys_by("month(day)") == tuple(range(1, 13))
    assert keys_by("weekday(day)") == tuple(range(7))
    assert keys_by("quarter(day)") == (1, 2, 3, 4)
    assert keys_by("ok") == (False, True)
    assert keys_by("CASE WHEN age > 17 THEN 'old' ELSE 'young' END") == ("old", "young")
    assert keys_by("bin(age, 0, 10, 20)") == (0, 10)


def test_the_column_of_a_public_table() -> None:
    assert keys_by("places.level") == (1, 2, 3)
    assert keys_by("places.code") == ("a", "b", "c")  # what is missing there meets no row
    assert keys_by("t.code") is None
    table = card_of()
    plan = lb.tables.planned(
        parsed(
            "SELECT level, COUNT(*) AS n FROM t JOIN places ON t.code = places.code GROUP BY level",
            table,
        ),
        table,
        epsilon=1,
    )
    assert plan.groups == 3 and plan.partition_selection is None and plan.cost.delta == 0


def test_public_values_that_no_query_can_name_are_looked_for_in_the_data() -> None:
    for odd in ("x\0y", "long" * 10_000):
        assert keys_by("places.code", card_of(places=PLACES | {"code": [odd] * 5})) is None
    many = {"code": [f"c{i}" for i in range(5_000)], "level": list(range(5_000))}
    assert keys_by("places.code", card_of(places=many)) is None
    assert keys_by("places.code", card_of(places={"code": [], "level": []})) is None


def test_the_protected_file_is_no_public_table(tmp_path: Path) -> None:
    """Were it shown as public, its values would be read: it is not read at all."""
    file = tmp_path / "t.csv"
    file.write_text("who,age,code,day,ok,level\n1,5,secret,,true,1\n")
    source = Source(kind="csv", paths=(str(file),))
    public = PublicTable(name="places", source=source, columns={"code": "text", "level": "integer"})
    card = card_of(source=source, public={"places": public})
    assert grouped_by("k", ColumnName("code", "places"), card).values is None


def test_an_answer_by_a_public_column() -> None:
    rows = {"who": [1, 1, 2, 3], "code": ["a", "b", "c", "z"]}
    table = lb.table(
        pyarrow.table(rows),
        unit="who",
        max_rows=2,
        name="t",
        public={"places": pyarrow.table({"code": ["a", "b", "c"], "level": [3, 1, 2]})},
    )
    answer = table.join("places", on="code").group_by("level").agg(n=lb.count()).release(epsilon=90)
    assert (answer["level"], answer["n"]) == ([1, 2, 3], [1, 1, 1])


def test_keys_beyond_their_bounds_are_at_the_nearer_one() -> None:
    few = card_of((Fraction(0), Fraction(95)))

    def grouped(expression: str) -> Any:
        return parsed(f"SELECT {expression} AS k, COUNT(*) AS n FROM t GROUP BY k", few).keys[0]

    tens = "FLOOR(age / 10) * 10"
    assert grouped("age").expression == Call(
        "clamp", (ColumnName("age"), Constant(0), Constant(95))
    )
    assert grouped(tens).values == tuple(range(0, 100, 10))
    assert grouped(tens).expression.arguments[1:] == (Constant(0), Constant(90))
    assert grouped(f"CAST({tens} AS BIGINT)") == grouped(tens)
    assert grouped(f"clamp(CAST({tens} AS BIGINT), 20, 40)").values == (20, 30, 40)
    assert grouped("clamp(age, 20, 22)").values == (20, 21, 22)
    listed = replace(
        few, columns={**few.columns, "age": Column(name="age", type="integer", keys=[1, 2])}
    )
    key = parsed("SELECT age, COUNT(*) AS n FROM t GROUP BY age", listed).keys[0]
    assert (key.expression, key.values) == (ColumnName("age"), (1, 2))


def test_a_key_within_bounds_is_still_named_by_its_column() -> None:
    few = card_of((Fraction(0), Fraction(5)))
    asked = "SELECT t.age, COUNT(*) AS n FROM t GROUP BY t.age HAVING t.age > 2 ORDER BY t.age"
    query = parsed(asked, few)
    assert query.keys[0].name == "age" and query.order[0].name == "age"
    assert parsed("SELECT age AS a, COUNT(*) AS n FROM t GROUP BY age", few).keys[0].name == "a"
    inner = "SELECT who, age, COUNT(*) AS k FROM t GROUP BY who, age"
    outer = parsed(f"SELECT age, SUM(k) AS n FROM ({inner}) GROUP BY age", few)
    assert outer.per_unit is not None and outer.keys[0].values == tuple(range(6))
    assert outer.per_unit.keys[0].expression == Call(
        "clamp", (ColumnName("age"), Constant(0), Constant(5))
    )
