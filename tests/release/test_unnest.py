"""Answers about the elements of lists: as DuckDB has them, wherever the lists are stored."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import polars
import pyarrow
import pytest
from pyarrow import parquet

import lastbit as lb
from lastbit.errors import EngineFailed, InvalidParameter, LastbitError
from lastbit.release.made_up_rows import made_up_answer
from lastbit.tables.limits import MOST_ELEMENTS
from tests.evidence import Extent

LETTERS = ("a", "b", "c")
STORED = ("arrow", "polars", "parquet", "folder", "duckdb", "relation")


def rows_of(random: Random, *, units: int = 40) -> dict[str, list[Any]]:
    """Visits: lists that are missing, empty, of missing, equal and several values."""
    found: dict[str, list[Any]] = {"patient": [], "age": [], "codes": [], "doses": []}
    for unit in range(units):
        for _ in range(random.randrange(4)):
            sizes = [random.choice((None, 0, 1, 2, 5)) for _ in range(2)]
            letters, numbers = (*LETTERS, "a", None), (1.5, 2.0, -3.25, None)
            found["patient"].append(unit)
            found["age"].append(random.choice((20, 30, 40, None)))
            for name, size, values in zip(
                ("codes", "doses"), sizes, (letters, numbers), strict=True
            ):
                listed = None if size is None else [random.choice(values) for _ in range(size)]
                found[name].append(listed)
    return found


def arrow_of(rows: dict[str, list[Any]]) -> pyarrow.Table:
    schema = pyarrow.schema(
        {
            "patient": pyarrow.int64(),
            "age": pyarrow.int64(),
            "codes": pyarrow.list_(pyarrow.string()),
            "doses": pyarrow.list_(pyarrow.float64()),
        }
    )
    return pyarrow.table(rows, schema=schema)


def stored(rows: dict[str, list[Any]], how: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    """The rows in a file or frame of this kind."""
    table = arrow_of(rows)
    match how:
        case "arrow":
            return table, {}
        case "polars":
            return polars.from_arrow(table), {}
        case "parquet":
            parquet.write_table(table, folder / "visits.parquet")
            return folder / "visits.parquet", {}
        case "folder":  # two schemas: lists of another width, and a column more
            (folder / "visits").mkdir()
            half = len(table) // 2
            wide = table.slice(half).append_column("more", pyarrow.array([1] * (len(table) - half)))
            place = wide.schema.get_field_index("codes")
            large = wide.column("codes").cast(pyarrow.large_list(pyarrow.large_string()))
            parquet.write_table(table.slice(0, half), folder / "visits" / "1.parquet")
            parquet.write_table(
                wide.set_column(place, "codes", large), folder / "visits" / "2.parquet"
            )
            return folder / "visits", {}
        case "duckdb":
            with duckdb.connect(str(folder / "visits.duckdb")) as connection:
                connection.register("given", table)
                connection.execute("CREATE TABLE visits AS FROM given")
            return folder / "visits.duckdb", {"table": "visits"}
    connection = duckdb.connect()
    connection.register("given", table)
    return connection.sql("FROM given"), {}


def visits(source: Any, **values: Any) -> Any:
    given: dict[str, Any] = {
        "unit": "patient",
        "max_rows": 60,
        "max_groups": 4,
        "keys": {"codes": [*LETTERS, None]},
        "columns": [
            lb.Column(name="age", type="integer", bounds=(0, 100)),
            lb.Column(name="doses", type="number[]", bounds=(-4, 4), step=Fraction(1, 4)),
        ],
        "budget": lb.Budget(epsilon=10**9),
        "name": "visits",
    }
    return lb.table(source, **{**given, **values})


ASKED = (
    "SELECT c, COUNT(*) AS n FROM visits, UNNEST(visits.codes) AS u(c) GROUP BY c",
    "SELECT c, COUNT(DISTINCT patient) AS n FROM visits CROSS JOIN UNNEST(codes) AS u(c)"
    " GROUP BY c",
    "SELECT c, COUNT(*) AS n, COUNT(age) AS k FROM (SELECT age, UNNEST(codes) AS c FROM visits"
    " WHERE age > 20) GROUP BY c",
    "SELECT COUNT(*) AS n FROM visits, UNNEST(doses)",
    "SELECT COUNT(d) AS n, SUM(d) AS s, SUM(age) AS a FROM visits, UNNEST(doses) AS u(d)",
    "SELECT SUM(d) AS s FROM visits JOIN UNNEST(doses) AS u(d) ON u.d > 0 WHERE age < 40",
    "SELECT SUM(n) AS s FROM (SELECT patient, COUNT(c) AS n FROM visits, UNNEST(codes) AS u(c)"
    " WHERE c <> 'b' GROUP BY patient)",
)


def disagreement(table: Any, text: str, connection: Any) -> str | None:
    """How an answer at a huge epsilon differs from DuckDB's own; None if it does not."""
    answer = table.sql(text).release(epsilon=10**7)
    cursor = connection.execute(text)
    names = [column[0] for column in cursor.description]
    truth = {
        tuple(row[i] for i, n in enumerate(names) if n == "c"): row for row in cursor.fetchall()
    }
    for row in answer.to_dicts():
        key = tuple(row[name] for name in names if name == "c")
        wanted = dict(zip(names, truth.get(key, [0] * len(names)), strict=True))
        for name in names:
            if name != "c" and abs(row[name] - (wanted[name] or 0)) > 0.01:
                return f"{text}: {row} and {wanted}"
    return None


@pytest.mark.apart  # five kinds of sources, half a minute each
@pytest.mark.parametrize("how", STORED)
def test_answers_are_those_of_duckdb(how: str, tmp_path: Path, extent: Extent) -> None:
    for number in range(extent.number(1, 20)):
        folder = tmp_path / str(number)
        folder.mkdir()
        rows = rows_of(Random(number))
        source, more = stored(rows, how, folder)
        connection = duckdb.connect()
        connection.register("visits", arrow_of(rows))
        for text in ASKED:
            assert disagreement(visits(source, **more), text, connection) is None


def counted(rows: dict[str, list[Any]], **values: Any) -> dict[Any, int]:
    text = "SELECT c, COUNT(*) AS n FROM visits, UNNEST(codes) AS u(c) GROUP BY c"
    answer = visits(arrow_of(rows), **values).sql(text).release(epsilon=10**6)
    return {row["c"]: row["n"] for row in answer.to_dicts()}


def test_of_a_long_list_the_first_elements_count() -> None:
    one: dict[str, list[Any]] = {"patient": [1], "age": [1], "doses": [[]]}
    long = {**one, "codes": [["a"] * MOST_ELEMENTS + ["b"]]}
    assert counted(long, max_rows=2_000) == {"a": MOST_ELEMENTS, "b": 0, "c": 0, None: 0}


def test_a_unit_counts_for_max_rows_elements() -> None:
    one: dict[str, list[Any]] = {"patient": [1, 2], "age": [1, 1], "doses": [[], []]}
    codes = {**one, "codes": [["a", "a", "b", "b", "b", "b", "b", "b"], ["c"]]}
    assert counted(codes, max_rows=4) == {"a": 1, "b": 3, "c": 1, None: 0}


def test_what_is_left_out_is_said() -> None:
    text = "SELECT COUNT(*) AS n FROM visits, UNNEST(codes)"
    answer = visits(arrow_of(rows_of(Random(1)))).sql(text).release(epsilon=1)
    said = {rule.code: rule for rule in answer.left_out}
    assert said["no_element"].name == "codes"
    assert (said["elements"].name, said["elements"].most) == ("codes", MOST_ELEMENTS)


def test_text_that_is_not_utf8_is_refused_before_the_charge(tmp_path: Path) -> None:
    values = pyarrow.array([b"a\xff", b"b"])
    texts = pyarrow.StringArray.from_buffers(2, values.buffers()[1], values.buffers()[2])
    lists = pyarrow.ListArray.from_arrays(pyarrow.array([0, 1, 2], pyarrow.int32()), texts)
    parquet.write_table(pyarrow.table({"patient": [1, 2], "codes": lists}), tmp_path / "v.parquet")
    with pytest.raises(InvalidParameter, match="not UTF-8"):
        visits(tmp_path / "v.parquet", columns=None).sql(ASKED[0]).release(epsilon=1)


@pytest.mark.parametrize(
    ("codes", "columns", "words"),
    [
        ([["a"]], {"codes": "text"}, "has lists in the source, and plain values on the card"),
        (["a"], {"codes": "text[]"}, "has no lists in the source, and lists on the card"),
        ([["a"]], {"codes": "text[][]"}, "type is unknown"),
        ([[["a"]]], {"codes": "text[]"}, "is not in the source"),
    ],
)
def test_lists_and_what_a_card_says_of_them(codes: Any, columns: Any, words: str) -> None:
    with pytest.raises((InvalidParameter, EngineFailed), match=words) as caught:
        table = visits(pyarrow.table({"patient": [1], "codes": codes}), columns=columns, keys=None)
        table.sql("SELECT COUNT(*) AS n FROM visits").release(epsilon=1)
    assert isinstance(caught.value, LastbitError)


def test_a_rehearsal_has_lists_of_its_own() -> None:
    question = visits(arrow_of(rows_of(Random(1)))).sql(ASKED[0])
    plan = question.plan(epsilon=10**6)
    answer = made_up_answer(plan, question.card, rows=1_000)
    assert sum(row["n"] for row in answer.to_dicts()) > 100


def test_lists_of_rows_that_reach_their_unit_through_others() -> None:
    items = pyarrow.table(
        {"order_id": [1, 1, 2, 3, 9], "codes": [["a", "b"], ["a"], ["b"], [], []]}
    )
    orders = pyarrow.table({"id": [1, 2, 3, 3], "customer": [7, 7, 8, 9]})
    way = {"orders": (orders, {"order_id": "id"})}
    table = visits(items, unit="orders.customer", name="items", through=way, columns=None)
    text = "SELECT c, COUNT(*) AS n FROM items, UNNEST(codes) AS u(c) GROUP BY c"
    rows = table.sql(text).release(epsilon=10**6).to_dicts()
    assert {row["c"]: row["n"] for row in rows} == {"a": 2, "b": 2, "c": 0, None: 0}
    joined = "items i JOIN orders o ON i.order_id = o.id, UNNEST(i.codes) AS u(c) WHERE o.id < 2"
    rows = table.sql(f"SELECT c, COUNT(*) AS n FROM {joined} GROUP BY c").release(epsilon=10**6)
    assert {row["c"]: row["n"] for row in rows.to_dicts()} == {"a": 2, "b": 1, "c": 0, None: 0}
