"""No value of any column type stops a statement, once the source was looked at.

Every type that DuckDB, Arrow or pandas gives a column, as each type of a card, with values at the
edges of what each can hold. Refused is by types, or by the look at all rows; never by a statement.
"""

import datetime
import decimal
import gzip

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from pyarrow import parquet

from lastbit.errors import InvalidParameter
from lastbit.tables.backends.columns import columns_of
from lastbit.tables.backends.duckdb import engine as backend
from lastbit.tables.backends.printed import fingerprint
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, PublicTable, Source
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.plan.sensitivity import measures_of
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.query import Aggregate, Query
from tests.kernel.unsealing import aggregates
from tests.tables.connecting import connected

_DAY = 86_400
_MARKS = [0, 2**62, 2**63, 10**12, 10**15, 10**18, 9_223_372_022_400_000_000]
_MARKS += [
    mark * unit
    for mark in (62_135_596_800, 253_402_300_800, 9_223_372_036, 2**31 * _DAY, 106_751_991 * _DAY)
    for unit in (1, 10**3, 10**6, 10**9)
]
LONGS = sorted(
    {
        sign * mark + step
        for mark in _MARKS
        for sign in (1, -1)
        for step in (-1, 0, 1)
        if -(2**63) <= sign * mark + step < 2**63
    }
)
DAYS = [-(2**31), -(2**31) + 1, 0, 2**31 - 2, 2**31 - 1, 2_932_896, 2_932_897, -719_162, -719_163]
DAYS += [106_751_991, 106_751_992, -106_751_991, -106_751_992]
REALS = [0.0, -0.0, 0.5, -1.5, float("nan"), float("inf"), -float("inf"), 5e-324, 2.0**63]
REALS += [-(2.0**63), 2.0**63 - 1024, 9.3e18, 3e38]
TEXTS = [
    "a",
    "1",
    "-1",
    "1e400",
    "-1e400",
    "1e-400",
    "1e9999999999",
    "1e-9999999999",
    "nan",
    "inf",
    "-inf",
    "0x10",
    "0b1",
    "1_000",
    "1e",
    ".",
    "-",
    "+",
    "e",
    "true",
    "t",
    "yes",
    "infinity",
    "-infinity",
    "epoch",
    "2020-01-01",
    "2020-13-01",
    "2020-02-30",
    "294247-01-10",
    "294248-01-10",
    "5881580-07-11",
    "-290308-01-01",
    "99999999-01-01",
    "-99999999-01-01",
    "0000-00-00",
    "2020-01-01T00:00:00Z",
    "9223372036854775807.5",
    "170141183460469231731687303715884105728",
    "{",
    "[1",
    '{"a":1}',
    '"x"',
    "null",
    "[]",
    "é",
]
TEXTS += ["", " 1 ", "\0", "1\0", "9" * 400, "x" * 100_000, "😀" * 10]
TEXTS += [
    f"{day} {time}"
    for day in ("2020-01-01", "294247-01-10", "290309-12-21 (BC)", "290309-12-22 (BC)")
    for time in (
        "00:00:00", "04:00:54.775807", "04:00:54.775808", "24:00:00", "23:59:60", "00:00:00+99:99",
        "00:00:00-15:59", "00:00:00 Europe/Berlin", "00:00:00 Nowhere/City",
    )
]  # fmt: skip


def arrays():
    """Columns of Arrow, each with values at all edges."""
    longs = pyarrow.array(LONGS, pyarrow.int64())
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC"):
            yield longs.view(pyarrow.timestamp(unit, zone))
    yield longs.view(pyarrow.timestamp("us", "Europe/Berlin"))
    whole = [long - long % (_DAY * 1000) for long in LONGS if long > -(2**62)]
    yield pyarrow.array(whole, pyarrow.int64()).view(pyarrow.date64())
    yield pyarrow.array(DAYS, pyarrow.int32()).view(pyarrow.date32())
    for bits in (8, 16, 32, 64):
        edge = 2 ** (bits - 1)
        signed = [-edge, 1 - edge, -1, 0, 1, edge - 1]
        yield pyarrow.array(signed, getattr(pyarrow, f"int{bits}")())
        unsigned = [0, 1, edge - 1, edge, 2 * edge - 1]
        yield pyarrow.array(unsigned, getattr(pyarrow, f"uint{bits}")())
    yield pyarrow.array(REALS, pyarrow.float64())
    yield pyarrow.array(REALS, pyarrow.float32())
    for digits, scale in ((4, 4), (9, 2), (18, 0), (38, 0), (38, 38)):
        context, most = decimal.Context(prec=60), 10**digits - 1
        values = [decimal.Decimal(v).scaleb(-scale, context) for v in (0, 1, -1, most, -most)]
        yield pyarrow.array(values, pyarrow.decimal128(digits, scale))
    for kind in (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view()):
        yield pyarrow.array(TEXTS, kind)
    yield pyarrow.array(TEXTS).dictionary_encode()
    yield pyarrow.array([*(t.encode() for t in TEXTS), b"\xff", b"\xe2\x82"], pyarrow.binary())
    yield pyarrow.array([True, False, None])
    yield pyarrow.array([None, None])


STORED = {
    "HUGEINT": [str(s * 2**127 + d) for s, d in ((1, -1), (-1, 0), (0, 0), (0, -1))],
    "UHUGEINT": ["0", str(2**128 - 1)],
    "UUID": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "JSON": ["1", '"a"', '{"a":1}', "[1]", "null", "1e400", '"2020-01-01"', '"294248-01-10"'],
    "ENUM('a', '1', '294248-01-10', '1e400')": ["a", "1", "294248-01-10", "1e400"],
    **{
        kind: ["infinity", "-infinity", "epoch", "1677-09-22"]
        for kind in ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMPTZ")
    },
    "DATE": ["infinity", "-infinity", "epoch"],
}
"""Types that Arrow does not have, and times that are infinite."""


def six(column):
    """The column once for each type of a card."""
    return pyarrow.table({"id": range(len(column)), **dict.fromkeys(DUCKDB.types, column)})


def questions(card):
    """Whether it is refused before a charge; else every column is asked about, and answered."""
    try:
        fingerprint(card)
    except InvalidParameter as error:
        return str(error)
    counts = tuple(
        Aggregate(name=f"n{place}", function="count", expression=ColumnName(name))
        for place, name in enumerate(card.columns)
    )
    query = Query(table="t", aggregates=counts)
    aggregates(query, card, measures_of(query)[0], secret="s")
    return None


def card_of(source, types=tuple(DUCKDB.types), **changes):
    columns = {"id": Column(name="id", type="integer")}
    columns |= {kind: Column(name=kind, type=kind) for kind in types}
    fields = {"name": "t", "source": source, "unit": "id", "max_rows": 1, "columns": columns}
    return DataCard(**(fields | changes))


def told(source, name):
    """That times are refused as text, by their type; whatever else is asked is answered.

    A time of a unit that DuckDB has no type for is converted when it is read: where that stops, the
    look has found it.
    """
    time = columns_of(source)["text"] == "timestamp"
    if time:
        assert "text on the card" in questions(card_of(source))
    found = questions(
        card_of(source, [kind for kind in DUCKDB.types if kind != "text" or not time])
    )
    assert found is None or "time that is out of range" in found, name
    return found is None


ARRAYS = {str(column.type): column for column in arrays()}


@pytest.mark.thinned(one_in=40)
@pytest.mark.parametrize("name", ARRAYS)
def test_every_type_of_arrow_in_frames_parquet_and_databases(tmp_path, name):
    column = ARRAYS[name]
    table = six(column)
    zoned = name.startswith(("timestamp[s, ", "timestamp[ms, "))
    assert told(Source(kind="frame", frame=table), name) is not zoned
    path = tmp_path / "t.parquet"
    try:
        parquet.write_table(table, path)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        assert name.startswith("timestamp[s")  # which it would store as milliseconds
    else:
        assert told(Source(kind="parquet", paths=(str(path),)), name) is not (
            name.startswith("timestamp[ms")
        )
    path = tmp_path / "t.db"
    with duckdb.connect(str(path)) as connection:
        connection.register("rows", table)
        try:
            connection.execute("CREATE TABLE t AS SELECT * FROM rows")
        except duckdb.ConversionException:
            assert zoned
            return
    assert told(Source(kind="duckdb", paths=(str(path),), table="t"), name)


@pytest.mark.thinned(one_in=20)
@pytest.mark.parametrize("kind", STORED)
def test_every_other_type_of_databases(tmp_path, kind):
    path, copy = tmp_path / "t.db", tmp_path / "t.parquet"
    with duckdb.connect(str(path)) as connection:
        columns = ", ".join(f'"{name}" {kind}' for name in DUCKDB.types)
        connection.execute(f"CREATE TABLE t (id INTEGER, {columns})")
        for place, value in enumerate(STORED[kind]):
            connection.execute(
                f"INSERT INTO t VALUES ({place}{f', CAST(? AS {kind})' * len(DUCKDB.types)})",
                [value] * len(DUCKDB.types),
            )
        connection.execute(f"COPY t TO '{copy}' (FORMAT parquet)")
    assert told(Source(kind="duckdb", paths=(str(path),), table="t"), kind)
    assert told(Source(kind="parquet", paths=(str(copy),)), kind)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_pandas(unit):
    values = np.array(LONGS, np.int64).view(f"datetime64[{unit}]")
    frame = pandas.DataFrame({"id": range(len(LONGS)), **dict.fromkeys(DUCKDB.types, values)})
    assert told(Source(kind="frame", frame=frame), unit)


def test_what_is_refused_by_type_depends_on_no_row(tmp_path):
    """One row is out of range, or none is; the time is the table's, or a public one's."""
    words = set()
    for odd in (0, -(2**63)):
        column = pyarrow.array([5, odd], pyarrow.int64()).view(pyarrow.timestamp("us"))
        table = pyarrow.table({"id": [1, 2], "text": column})
        parquet.write_table(table, tmp_path / "a.parquet")
        both = tmp_path / f"both{odd}"
        both.mkdir()
        parquet.write_table(table, both / "a.parquet")
        parquet.write_table(pyarrow.table({"id": [3], "text": ["b"]}), both / "b.parquet")
        for source in (
            Source(kind="frame", frame=table),
            Source(kind="parquet", paths=(str(tmp_path / "a.parquet"),)),
            Source(kind="parquet", paths=(str(both / "*.parquet"),)),  # cast file by file
        ):
            words.add(questions(card_of(source, ["text"])))
            types = {"id": "integer", "text": "text"}
            public = PublicTable(name="p", source=source, columns=types)
            own = Source(kind="frame", frame=pyarrow.table({"id": [1]}))
            words.add(questions(card_of(own, [], public={"p": public})))
    assert words == {
        "column text is a time in the source, but text on the card; declare"
        ' type = "timestamp"; in a question, CAST(x AS TEXT) makes it text'
    }


def test_the_look_evaluates_the_casts_of_statements(monkeypatch):
    """The casts and checks of statements, over all values that a source of its type can have."""
    seen = []
    real = backend._ran
    monkeypatch.setattr(backend, "_ran", lambda c, sql: seen.append(sql) or real(c, sql))
    column = pyarrow.array([datetime.datetime(2020, 1, 1)])
    types = [kind for kind in DUCKDB.types if kind != "text"]
    fingerprint(card_of(Source(kind="frame", frame=six(column)), types))
    (look,) = seen
    for kind in types:
        assert DUCKDB.read(f'"{kind}"', kind, "other") in look


def test_casts_of_text_never_stop():
    """CSV is text, and no cast of it is looked at beforehand."""
    with connected() as connection:
        connection.register("rows", pyarrow.table({"x": TEXTS}))
        for kind in DUCKDB.types:
            inner = f"SELECT {DUCKDB.read('x', kind, 'other')} AS c FROM rows"
            found = connection.execute(f"SELECT hash({DUCKDB.checked('c', kind)}) FROM ({inner})")
            assert len(found.fetchall()) == len(TEXTS)


ONE = [1]
UNREADABLE = {
    "complex": pandas.DataFrame({"id": ONE, "x": [1j]}),
    "period": pandas.DataFrame({"id": ONE, "x": pandas.PeriodIndex(["2020-01"], freq="M")}),
    "sparse": pandas.DataFrame({"id": ONE, "x": pandas.arrays.SparseArray([1.0])}),
    "half": pyarrow.table({"id": ONE, "x": pyarrow.array([np.float16(1)])}),
    "object": polars.DataFrame({"id": ONE, "x": polars.Series([object()], dtype=polars.Object)}),
    "series": pandas.Series(ONE, name="id"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_frames_that_cannot_be_read_are_told_so(name):
    with pytest.raises(InvalidParameter, match=r"of a type that cannot be read|is one column"):
        columns_of(Source(kind="frame", frame=UNREADABLE[name]))


def test_a_damaged_gzip_file_is_told_so(tmp_path):
    whole = gzip.compress(b"id,x\n" + b"1,2\n" * 100)
    for number, data in enumerate((whole[:-20], whole[:-8], whole + b"more", whole[:2])):
        path = tmp_path / f"{number}.csv.gz"
        path.write_bytes(data)
        with pytest.raises(InvalidParameter, match="a gzip file that is cut off or damaged"):
            fingerprint(card_of(Source(kind="csv", paths=(str(path),)), []))
