"""One row is added or changed; every other row is read as before, or the source is refused whole.

The generator puts one odd row among plain ones, in every kind of source, and looks at all other
rows through the real engine, as the statement sees them: cast to the types of the card.
"""

import datetime
import decimal
import itertools
import uuid

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from pyarrow import dataset, parquet

from lastbit.errors import InvalidParameter
from lastbit.tables.backends.columns import columns_of
from lastbit.tables.backends.duckdb.files import opened
from lastbit.tables.backends.duckdb.frames import plain_frame
from lastbit.tables.backends.duckdb.sources import shown
from lastbit.tables.backends.printed import fingerprint
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, PublicTable, Source
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.steps import identifier
from lastbit.tables.plan.sensitivity import measures_of
from lastbit.tables.query.expression import Call, ColumnName, Constant
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.query.scan import GroupKey
from tests.evidence import late
from tests.kernel.unsealing import aggregates
from tests.tables.connecting import connected

COUNT = Aggregate(name="n", function="count")
BIG = 2**53 + 1  # is another number as a double
PLAIN = [1, 2, BIG, BIG + 2]


def rows_of(source, types):
    """All rows but the odd one, whose `id` is 0, as the card's types read them; None if refused."""
    columns = {"id": "integer", **types}
    try:
        with connected() as connection, opened(source) as there:
            shown(connection, there, "rows", columns)
            casts = ", ".join(
                DUCKDB.read(identifier(c), kind, "other") for c, kind in columns.items()
            )
            found = connection.execute(f"SELECT {casts} FROM rows").fetchall()
    except InvalidParameter:
        return None
    return sorted((row for row in found if row[0] != 0), key=repr)


def card_of(source, types, **changes):
    columns = {"id": "integer", **types}
    fields = {
        "name": "t",
        "source": source,
        "unit": "id",
        "max_rows": 1,
        "columns": {c: Column(name=c, type=kind) for c, kind in columns.items()},
    }
    return DataCard(**(fields | changes))


def ask(card, **fields):
    query = Query(table="t", aggregates=(COUNT,), **fields)
    return aggregates(query, card, measures_of(query)[0], secret="s")


QUESTIONS = [
    {},
    {"where": Call(">", (ColumnName("id"), Constant(1)))},
    {"keys": (GroupKey(name="k", expression=ColumnName("id"), values=(1, 2)),)},
]


def refused_alike(card):
    """Whether the source is refused: for every question, and before a charge; never sometimes."""
    found = set()
    for work in (
        lambda: fingerprint(card),
        *(lambda q=question: ask(card, **q) for question in QUESTIONS),
    ):
        try:
            work()
        except InvalidParameter as error:
            found.add(str(error))
        else:
            found.add(None)
    assert len(found) == 1, found
    return None not in found


# ---------------------------------------------------------------- pandas

ODD = [
    None, 0, 1, -1, 2**63, 10**400, 10**5000, 1.5, float("nan"), float("inf"), -0.0, True, "", "x",
    "é", "\ud800", "a\udfffb", "\0", "x" * 100_000, b"by\xff", datetime.date(1, 1, 1),
    datetime.datetime(9999, 12, 31), datetime.time(1), datetime.timedelta(days=10**8),
    decimal.Decimal("1e999"), decimal.Decimal("NaN"), decimal.Decimal("sNaN"), uuid.UUID(int=5),
    [1], {"a": 1}, (1,), {1}, object(), type, 1j, np.int8(3), np.float32("nan"),
    np.datetime64("NaT"), np.datetime64(2**62, "s"),
    np.array([1, 2]), pandas.NA, pandas.NaT, pandas.Timestamp(0),
]  # fmt: skip


class Loud:
    def __str__(self):
        raise RuntimeError("canary73211")

    __repr__ = __bool__ = __str__


@pytest.mark.parametrize("plain", [["a", "b", None, "é"], PLAIN, [1.5, None, 2.5, 3.0]])
def test_objects_of_pandas_are_read_one_by_one(plain):
    def read(values):
        ids = [*range(1, len(plain) + 1), *[0] * (len(values) - len(plain))]
        objects = np.empty(len(values), object)
        objects[:] = values
        same = {kind: pandas.Series(objects, dtype=object) for kind in kinds}
        frame = pandas.DataFrame({"id": ids, **same})
        return rows_of(Source(kind="frame", frame=frame), kinds)

    kinds = {kind: kind for kind in ("text", "integer", "number", "date", "boolean")}
    alone = read(plain)
    assert len(alone) == len(plain)
    odds = [*ODD, Loud()]
    assert read([*plain, *odds]) == alone
    one_by_one = [texts([odd])[0] for odd in odds]
    for shift in range(len(odds)):  # in every order, next to every other
        moved = [*odds[shift:], *odds[:shift]]
        assert texts(moved) == [*one_by_one[shift:], *one_by_one[:shift]]


def texts(values):
    """The column of objects that DuckDB is given for these."""
    objects = np.empty(len(values), object)
    objects[:] = values
    frame, _ = plain_frame(pandas.DataFrame({"x": pandas.Series(objects, dtype=object)}))
    return list(frame["x"])


def test_the_type_of_objects_is_text_whatever_they_are():
    for odd in (1, 1.5, None, datetime.date(2024, 1, 1), "x", [1]):
        frame = pandas.DataFrame({"x": pandas.Series([odd, 1], dtype=object)})
        assert columns_of(Source(kind="frame", frame=frame)) == {"x": "text"}


def test_categories_of_pandas_are_what_they_stand_for():
    """DuckDB makes integers with one missing value floating-point: 2**53 + 1 becomes 2**53."""
    for plain, odds in ((PLAIN, [None, 7, 2**62, -1]), (["a", "b"], [None, "0", "é" * 300])):
        found = []
        for odd in ([], *([odd] for odd in odds)):
            values = pandas.Categorical([*plain, *odd])
            ids = [*range(1, len(plain) + 1), *[0] * len(odd)]
            source = Source(kind="frame", frame=pandas.DataFrame({"id": ids, "x": values}))
            found.append([rows_of(source, {"x": kind}) for kind in ("text", "integer")])
        assert all(one == found[0] for one in found)
        assert found[0][0] == sorted(((i, str(x)) for i, x in enumerate(plain, 1)), key=repr)


Subclass = type("Subclass", (pandas.DataFrame,), {})


def test_a_subclass_of_a_frame_is_one():
    for odd in ([], [None]):
        values = pandas.Categorical([BIG, *odd])
        frame = Subclass({"id": [1, *[0] * len(odd)], "x": values})
        found = rows_of(Source(kind="frame", frame=frame), {"x": "integer"})
        assert found == [(1, BIG)]


def test_a_frame_whose_index_repeats_and_one_of_many_categories():
    ids = np.arange(1, 401)
    frame = pandas.DataFrame({"id": ids, "x": pandas.Categorical([str(i) for i in ids])})
    frame.index = np.zeros(400, int)
    found = rows_of(Source(kind="frame", frame=frame), {"x": "text"})
    assert found == sorted(((i, str(i)) for i in ids.tolist()), key=repr)
    assert list(frame.columns) == ["id", "x"]
    assert str(frame["x"].dtype) == "category"  # ours is a copy


# ---------------------------------------------------------------- Arrow and Polars


def utf8(*texts):
    """An Arrow array of these bytes, which nobody has checked."""
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(b"".join(texts))]
    return pyarrow.Array.from_buffers(pyarrow.string(), len(texts), buffers)


def moments(unit, zone):
    return pyarrow.array([10**9, 2**62], pyarrow.int64()).cast(pyarrow.timestamp(unit, tz=zone))


def odd_arrow():
    """Columns of two rows, of which the second, the odd one, is hard to read."""
    yield "bytes", utf8(b"a", b"\xff\xfe"), "text"
    yield "half", utf8(b"a", b"\xed\xa0\x80"), "text"
    outside = pyarrow.array([0, 7], pyarrow.int32())
    yield "outside", pyarrow.DictionaryArray.from_arrays(outside, ["a"], safe=False), "text"
    words = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1]), utf8(b"a", b"\xff"))
    yield "words", words, "text"
    for unit, zone in itertools.product(("s", "ms", "us", "ns"), (None, "UTC")):
        yield f"{unit} {zone}", moments(unit, zone), "timestamp"
    yield "days", pyarrow.array([5, 2**31 - 1], pyarrow.int32()).cast(pyarrow.date32()), "date"
    yield "huge", pyarrow.array([5, 2**64 - 1], pyarrow.uint64()), "integer"
    most = decimal.Decimal(10**38 - 1)
    yield "decimal", pyarrow.array([decimal.Decimal(5), most], pyarrow.decimal128(38)), "integer"
    yield "views", pyarrow.array(["a", "b" * 5000], pyarrow.string_view()), "text"
    yield "nothing", pyarrow.array(["a", None]), "text"
    yield "floats", pyarrow.array([1.5, float("nan")]), "number"


def tables():
    for name, column, kind in odd_arrow():
        both = pyarrow.table({"id": pyarrow.array([1, 0]), "x": column})
        yield name, both.slice(0, 1), both, kind


@pytest.mark.thinned(one_in=8)
@pytest.mark.parametrize("case", list(tables()), ids=lambda case: case[0])
def test_one_row_of_an_arrow_table(case):
    name, alone, both, kind = case
    first = Source(kind="frame", frame=alone)
    then = Source(kind="frame", frame=both)
    if refused_alike(card_of(then, {"x": kind})):
        assert name in ("bytes", "half", "outside", "words", "s UTC", "ms UTC")
    else:
        assert rows_of(then, {"x": kind}) == rows_of(first, {"x": kind})


class Stream:
    """Nothing but the Arrow protocol."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.to_reader().__arrow_c_stream__(requested_schema)


def test_a_dataset_is_copied(tmp_path):
    parquet.write_table(pyarrow.table({"id": [1, 2], "x": ["a", "b"]}), tmp_path / "x.parquet")
    source = Source(kind="frame", frame=dataset.dataset(tmp_path))
    assert rows_of(source, {"x": "text"}) == [(1, "a"), (2, "b")]
    batch = pyarrow.record_batch({"id": [1], "x": ["a"]})
    assert rows_of(Source(kind="frame", frame=batch), {"x": "text"}) == [(1, "a")]


def test_text_of_other_libraries_that_is_not_utf8_is_missing():
    table = pyarrow.table({"id": [1, 0, 2], "x": utf8(b"a", b"\xff", b"b")})
    source = Source(kind="frame", frame=Stream(table))
    assert rows_of(source, {"x": "text"}) == [(1, "a"), (2, "b")]
    assert not refused_alike(card_of(source, {"x": "text"}))


def test_pandas_over_arrow_is_validated():
    for dtype in ("string[pyarrow]", pandas.ArrowDtype(pyarrow.string())):
        array = type(pandas.array(["a"], dtype=dtype))(pyarrow.chunked_array([utf8(b"a", b"\xff")]))
        frame = pandas.DataFrame({"id": [1, 0], "x": pandas.Series(array)})
        assert refused_alike(card_of(Source(kind="frame", frame=frame), {"x": "text"}))


def test_polars_reads_each_row_by_itself():
    for dtype in (polars.Categorical, polars.Enum(["b", "a", "0"]), polars.String):
        found = []
        for odd in ([], [None], ["0"]):
            values = polars.Series([*["b", "a"], *odd], dtype=dtype)
            frame = polars.DataFrame({"id": [1, 2, *[0] * len(odd)], "x": values})
            for one in (frame, frame.lazy()):
                found.append(rows_of(Source(kind="frame", frame=one), {"x": "text"}))
        assert found == [[(1, "b"), (2, "a")]] * 6
    late = polars.Series([5, 2**62]).cast(polars.Datetime("ms")).dt.replace_time_zone("UTC")
    source = Source(kind="frame", frame=polars.DataFrame({"id": [1, 0], "x": late}))
    assert refused_alike(card_of(source, {"x": "timestamp"}))


# ---------------------------------------------------------------- Parquet


@pytest.mark.thinned(one_in=12)
@pytest.mark.parametrize("case", list(tables()), ids=lambda case: case[0])
def test_one_row_of_a_parquet_file(case, tmp_path):
    name, alone, both, kind = case
    if name == "outside" or name.startswith("s "):
        return  # no writer writes it
    sources = []
    for table, path in ((alone, "alone.parquet"), (both, "both.parquet")):
        parquet.write_table(table, tmp_path / path)
        sources.append(Source(kind="parquet", paths=(str(tmp_path / path),)))
    if not refused_alike(card_of(sources[1], {"x": kind})):
        assert rows_of(sources[1], {"x": kind}) == rows_of(sources[0], {"x": kind})
    else:
        assert name in ("bytes", "half", "words", "ms None", "ms UTC")


def test_what_is_refused_does_not_depend_on_what_is_asked(tmp_path):
    """The odd value is in a column that no question mentions, and in a row group of its own."""
    path = tmp_path / "x.parquet"
    ids = list(range(1, 1001))
    texts = utf8(*[b"a"] * 999, b"\xff")
    parquet.write_table(pyarrow.table({"id": ids, "x": texts}), path, row_group_size=10)
    source = Source(kind="parquet", paths=(str(path),))
    assert refused_alike(card_of(source, {"x": "text"}))
    assert not refused_alike(card_of(source, {}))  # a column that is not on the card does no harm
    parquet.write_table(pyarrow.table({"id": [0], "x": [1]}), tmp_path / "y.parquet")
    both = Source(kind="parquet", paths=(str(path), str(tmp_path / "y.parquet")))
    assert refused_alike(
        card_of(both, {"x": "integer"})
    )  # text there, but cast before anyone looks


def test_no_file_decides_how_another_is_read(tmp_path):
    """DuckDB would read whole numbers beside floating-point ones as such: 2**53 + 1 is 2**53."""
    main = pyarrow.table({"id": [1, 2, 3], "x": [BIG, BIG + 2, 5]})
    wanted = {
        kind: [(1, *rest[0]), (2, *rest[1]), (3, *rest[2])]
        for kind, rest in {
            "integer": ([BIG], [BIG + 2], [5]),
            "text": ([str(BIG)], [str(BIG + 2)], ["5"]),
        }.items()
    }
    others = [
        pyarrow.table({"id": [0], "x": [1.5]}),
        pyarrow.table({"id": [0], "x": ["text"]}),
        pyarrow.table({"x": [None], "id": pyarrow.array([0], pyarrow.int8())}),
        pyarrow.table({"id": [0]}),
        pyarrow.table({"id": [0], "x": [[1, 2]]}),
        pyarrow.table({"id": ["0"], "X": [datetime.date(2024, 1, 1)], "more": [1]}),
        pyarrow.table({"id": [0], "x": [decimal.Decimal("1.5")]}),
    ]
    parquet.write_table(main, tmp_path / "main.parquet")
    for number, other in enumerate(others):
        folder = tmp_path / str(number)
        folder.mkdir()
        parquet.write_table(main, folder / "a.parquet")
        parquet.write_table(other, folder / "b.parquet")
        for kind, rows in wanted.items():
            source = Source(kind="parquet", paths=(str(folder / "*.parquet"),))
            assert rows_of(source, {"x": kind}) == rows, (number, kind)


@pytest.mark.thinned(one_in=9)
@pytest.mark.parametrize("writer", ["pyarrow", late("polars"), late("duckdb")])
def test_no_row_hides_another_behind_least_and_greatest_values(tmp_path, writer):
    """Row groups are left out by their least and greatest values, which one row can move."""
    words = [f"{'prefix' * 20}{i % 7}" for i in range(60)]
    numbers = [float(i % 11) - 5 for i in range(60)]
    ids = list(range(1, 61))
    odds = [("", float("nan")), ("\U0010ffff" * 40, None)]
    filters = [
        Call(op, (ColumnName(column), Constant(value)))
        for op in ("=", ">=")
        for column, value in (("t", words[3]), ("v", 3), ("id", 9))
    ]
    filters += [Call("is_missing", (ColumnName("v"),))]
    keys = (GroupKey(name="k", expression=ColumnName("id"), values=tuple(ids)),)
    found = []
    for place, odd in enumerate([None, *odds]):
        rows = list(zip(ids, words, numbers, strict=True))
        rows = rows if odd is None else [*rows[:30], (0, *odd), *rows[30:]]
        path = str(tmp_path / f"{place}.parquet")
        frame = polars.DataFrame(rows, schema=["id", "t", "v"], orient="row")
        match writer:
            case "pyarrow":
                parquet.write_table(frame.to_arrow(), path, row_group_size=8)
            case "polars":
                frame.write_parquet(path, row_group_size=8, statistics="full")
            case "duckdb":
                with duckdb.connect() as connection:
                    connection.register("rows", frame.to_arrow())
                    connection.execute(
                        f"COPY rows TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)"
                    )
        card = card_of(Source(kind="parquet", paths=(path,)), {"t": "text", "v": "number"})
        found.append([ask(card, where=where, keys=keys).entries["m1"] for where in filters])
    assert all(one == found[0] for one in found)


# ---------------------------------------------------------------- DuckDB files


def database(path, *statements):
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return Source(kind="duckdb", paths=(str(path),), table="t")


GENERATED = ["random()", "id + 1", "now()", "nextval('s')", "uuid()::VARCHAR", "twice(id)"]


@pytest.mark.thinned(one_in=36)
@pytest.mark.parametrize("expression", GENERATED)
def test_generated_columns_are_refused(tmp_path, expression):
    made = f"CREATE TABLE t (id INTEGER, x DOUBLE DEFAULT random(), g AS ({expression}))"
    macro = "CREATE MACRO twice(a) AS a * random()"
    try:
        source = database(
            tmp_path / "x.db", "CREATE SEQUENCE s", macro, made, "INSERT INTO t (id) VALUES (1)"
        )
    except duckdb.Error:
        return  # DuckDB itself refuses it
    assert list(columns_of(source)) == ["id", "x"]
    with pytest.raises(InvalidParameter, match=r"column g is a generated column.*store its values"):
        fingerprint(card_of(source, {"g": "number"}))
    assert refused_alike(card_of(source, {"g": "number"}))


def test_what_else_a_database_defines_changes_nothing(tmp_path):
    source = database(
        tmp_path / "x.db",
        "CREATE MACRO isnan(a) AS true",
        "CREATE MACRO hash(a) AS 1",
        "CREATE TYPE mood AS ENUM ('b', 'a', 'B')",
        "CREATE TYPE word AS VARCHAR",
        "CREATE TABLE t (id INT PRIMARY KEY, m mood, w word, c VARCHAR COLLATE NOCASE, x DOUBLE)",
        "CREATE INDEX i ON t (c)",
        "INSERT INTO t VALUES (1, 'b', 'b', 'b', 1), (2, 'a', 'B', 'B', 2), (3, 'B', 'a', 'a', 3)",
    )
    types = {"m": "text", "w": "text", "c": "text", "x": "number"}
    assert rows_of(source, types) == [
        (1, "b", "b", "b", 1.0),
        (2, "a", "B", "B", 2.0),
        (3, "B", "a", "a", 3.0),
    ]
    for column in ("m", "w", "c"):
        below = Call("<", (ColumnName(column), Constant("a")))  # B is below a, by its bytes
        assert ask(card_of(source, types), where=below).entries["m1"] == [1 << 20]
    with duckdb.connect(str(tmp_path / "x.db")) as connection:
        connection.execute("CREATE VIEW v AS SELECT random() AS id")
    with pytest.raises(InvalidParameter, match="not a table of that file"):
        columns_of(Source(kind="duckdb", paths=source.paths, table="v"))


@pytest.mark.parametrize("bad", [b"\xff", b"\xed\xa0\x80", b"x" * 300_000 + b"\xff"])
def test_a_database_stores_no_text_that_is_not_utf8(tmp_path, bad):
    """What its tables are trusted for: Arrow's bytes are looked at when they are stored."""
    with duckdb.connect(str(tmp_path / "x.db")) as connection:
        connection.register("rows", pyarrow.table({"x": utf8(b"a", bad)}))
        with pytest.raises(duckdb.InvalidInputException, match="Invalid unicode"):
            connection.execute("CREATE TABLE t AS SELECT * FROM rows")


def test_a_public_table_is_looked_at_whole_too(tmp_path):
    """Else it would depend on private rows whether its odd row is met."""
    parquet.write_table(
        pyarrow.table({"id": [1, 2], "x": utf8(b"a", b"\xff")}), tmp_path / "p.parquet"
    )
    public = PublicTable(
        name="p",
        source=Source(kind="parquet", paths=(str(tmp_path / "p.parquet"),)),
        columns={"id": "integer", "x": "text"},
    )
    private = Source(kind="frame", frame=pyarrow.table({"id": [1]}))
    with pytest.raises(InvalidParameter, match="not UTF-8"):
        fingerprint(card_of(private, {}, public={"p": public}))


NESTED = [
    *("[[1, 2]]", "{'a': 1}", "MAP {'a': 1}", "TIME '01:00:00'", "INTERVAL 1 DAY", "'101'::BIT"),
    *("[{'a': 1}]", "[TIME '01:00:00']", "[INTERVAL 1 DAY]", "[[1]::INTEGER[1]]"),
]


def test_columns_that_are_no_plain_values_are_refused(tmp_path):
    columns = ", ".join(f"{value} AS x{place}" for place, value in enumerate(NESTED))
    source = database(tmp_path / "x.db", f"CREATE TABLE t AS SELECT 1 AS id, {columns}")
    assert list(columns_of(source)) == ["id"]
    for place in range(len(NESTED)):
        words = f"column x{place} is of a type that cannot be read"
        with pytest.raises(InvalidParameter, match=words):
            fingerprint(card_of(source, {f"x{place}": "text"}))
    assert refused_alike(card_of(source, {"x0": "text"}))
    assert not refused_alike(card_of(source, {}))
