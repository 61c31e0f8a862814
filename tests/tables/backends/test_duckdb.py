"""DuckDB as a backend: every source gives the same integers, and no failure tells a value."""

import gc
import itertools
import os
import subprocess
import sys
import traceback
from datetime import date
from fractions import Fraction

import duckdb
import pandas
import polars
import pyarrow
import pytest
from pyarrow import parquet

from lastbit.errors import EngineFailed, InvalidParameter, QueryRefused
from lastbit.tables.backends import engines
from lastbit.tables.backends.columns import columns_of
from lastbit.tables.backends.duckdb import engine as backend
from lastbit.tables.backends.duckdb.leftovers import remove_leftovers
from lastbit.tables.backends.printed import fingerprint
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, EngineLimits, PublicTable, Source
from lastbit.tables.plan.sensitivity import measures_of
from lastbit.tables.query.expression import Call, ColumnName, Constant
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.units import PublicJoin
from tests.kernel.unsealing import aggregates
from tests.tables.connecting import connected, rehearse

CANARY = "canary73211"
W = 1 << 20
COUNT = Aggregate(name="n", function="count")
UNITS = Aggregate(name="units", function="count_units")
TYPES = {"who": "integer", "Place": "text", "cost": "number", "day": "date", "ok": "boolean"}
DATA = {
    "who": [1, 1, 1, 2, 2, None, 3],
    "Place": ["a", "b", "a", "a", None, "a", "c"],
    "cost": [1.0, 2.0, 30.0, float("nan"), 4.0, 5.0, -7.0],
    "day": [date(2024, 1, 1), None, *[date(2024, 2, 3)] * 5],
    "ok": [True, False, None, True, True, True, False],
}


COST = ColumnName("cost")


def total(expression=COST, low=0, high=10, **fields):
    bounds = (Fraction(low), Fraction(high))
    return Aggregate(name="total", function="sum", expression=expression, bounds=bounds, **fields)


def card(source, **changes):
    columns = {name: Column(name=name, type=kind) for name, kind in TYPES.items()}
    fields = {"name": "t", "source": source, "unit": "who", "max_rows": 2, "columns": columns}
    return DataCard(**(fields | changes))


def ask(of, *parts, secret="s", **fields):
    query = Query(table="t", aggregates=parts or (COUNT,), **fields)
    return aggregates(query, of, measures_of(query)[0], secret=secret)


def frame(data):
    return Source(kind="frame", frame=pyarrow.table(data))


def csv_text(data=DATA):
    lines = [",".join(data)]
    for row in zip(*data.values(), strict=True):
        lines.append(",".join("" if v is None else str(v) for v in row))
    return "\n".join(lines) + "\n"


class Stream:
    """Nothing but the Arrow protocol, and to be read once."""

    def __init__(self, table):
        self.stream = pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches())

    def __arrow_c_stream__(self, requested_schema=None):
        return self.stream.__arrow_c_stream__(requested_schema)


def sources(folder):
    """The same rows, ten ways."""
    table = pyarrow.table(DATA)
    yield "arrow", Source(kind="frame", frame=table)
    yield "stream", Source(kind="frame", frame=Stream(table))
    yield "polars", Source(kind="frame", frame=polars.DataFrame(DATA))
    yield "lazy", Source(kind="frame", frame=polars.LazyFrame(DATA))
    yield "pandas", Source(kind="frame", frame=pandas.DataFrame(DATA))
    yield "objects", Source(kind="frame", frame=pandas.DataFrame(DATA, dtype=object))
    polars.DataFrame(DATA).write_parquet(folder / "it's.parquet")
    yield "parquet", Source(kind="parquet", paths=(str(folder / "it's.parquet"),))
    (folder / "a[1]*.csv").write_text(csv_text())
    yield "csv", Source(kind="csv", paths=(str(folder / "a[1]*.csv"),))
    (folder / "semicolons.csv").write_bytes(
        b"\xef\xbb\xbf" + csv_text().replace(",", ";").replace("\n", "\r\n").encode()
    )
    yield "semicolons", Source(kind="csv", paths=(str(folder / "semicolons.csv"),))
    with duckdb.connect(str(folder / "file.db")) as connection:
        connection.execute('CREATE SCHEMA "s\'x"')
        connection.register("rows", table)
        connection.execute('CREATE TABLE "s\'x"."t ""1" AS SELECT * FROM rows')
    yield "duckdb", Source(kind="duckdb", paths=(str(folder / "file.db"),), table="s'x.t \"1")
    half = {name: values[:3] for name, values in DATA.items()}
    rest = {name: values[3:] for name, values in DATA.items()}
    rest["who"] = [None if v is None else str(v) for v in rest["who"]]  # another type
    polars.DataFrame(half).write_parquet(folder / "part1.parquet")
    polars.DataFrame(rest).write_parquet(folder / "part2.parquet")
    yield "parts", Source(kind="parquet", paths=(str(folder / "part*.parquet"),))


def test_every_source_gives_the_same_integers(tmp_path):
    keys = (GroupKey(name="k", expression=ColumnName("place"), values=("a", "b", "z", None)),)
    parts = (COUNT, UNITS, total(nullable=False), total().__class__(
        name="median", function="quantile", expression=ColumnName("cost"),
        bounds=(Fraction(0), Fraction(10)), step=Fraction(5), level=Fraction(1, 2),
    ))  # fmt: skip
    third = 2 * W // 3
    step = 10 / 2**20
    for name, source in sources(tmp_path):
        found = ask(card(source), *parts, keys=keys)
        assert found.keys == [("a",), ("b",), ("z",), (None,)], name
        assert found.entries["m1"] == [2 * third + W, third, 0, W], name
        assert found.entries["m2"] == [2, 1, 0, 1], name
        wanted = [
            third * (round(1 / step) + 2**20),
            third * round(2 / step),
            0,
            W * round(4 / step),
        ]
        assert found.entries["m3"] == wanted, name
        medians = [[third, 0, third], [third, 0, 0], [0, 0, 0], [W, 0, 0]]  # at 0, 5 and 10
        assert list(found.bins["m4"]) == medians, name
        assert list(found.units) == []
        assert found.keys


def test_keys_that_only_the_data_knows(tmp_path):
    keys = (GroupKey(name="k", expression=ColumnName("place")),)
    found = ask(card(frame(DATA), max_groups=1), COUNT, keys=keys)
    again = ask(card(frame(DATA), max_groups=1), COUNT, keys=keys)
    assert found.keys == again.keys == sorted(found.keys, key=lambda k: (k[0] is not None, k[0]))
    assert sum(found.units) == 3
    everything = ask(card(frame(DATA), max_groups=9), COUNT, keys=keys)
    assert everything.keys == [(None,), ("a",), ("b",), ("c",)]
    assert everything.units == [1, 2, 1, 1]


def test_each_row_a_unit():
    found = ask(card(frame(DATA), unit=None, max_rows=1), COUNT, UNITS, total())
    assert [found.entries[name] for name in ("m1", "m2")] == [[7], [7]]


def test_an_empty_table_and_one_unit_that_owns_everything():
    empty = {name: pyarrow.array([], type=pyarrow.float64()) for name in DATA}
    found = ask(card(frame(empty)), COUNT, UNITS, total())
    assert list(found.entries.values()) == [[0], [0], [0]]
    assert ask(card(frame(empty), max_groups=1), keys=(KEY,)).keys == []
    rows = 100_000
    owned = {"who": [7] * rows, "Place": ["a"] * rows, "cost": [10.0] * rows}
    narrow = {name: Column(name=name, type=TYPES[name]) for name in owned}
    found = ask(card(frame(owned), columns=narrow), COUNT, UNITS, total())
    assert found.entries["m1"] == [rows * (2 * W // rows)]
    assert found.entries["m2"] == [1]
    assert found.entries["m3"] == [rows * (2 * W // rows) * 2**20]


KEY = GroupKey(name="k", expression=ColumnName("place"))


@pytest.mark.evidence
def test_a_hundred_thousand_groups():
    number = 100_000
    data = {"who": list(range(number)), "Place": [f"key {i}" for i in range(number)]}
    narrow = {name: Column(name=name, type=TYPES[name]) for name in data}
    of = card(frame(data), columns=narrow, max_groups=1)
    found = ask(of, COUNT, keys=(KEY,))
    assert len(found.keys) == number
    assert set(found.units) == {1}
    declared = GroupKey(name="k", expression=ColumnName("place"), values=tuple(data["Place"]))
    found = ask(of, COUNT, keys=(declared,))
    assert [key for (key,) in found.keys] == data["Place"]
    assert set(found.entries["m1"]) == {W}


def test_a_public_table_may_multiply_rows_but_not_a_units_weight():
    lines = {"k": ["a", "a", "a", "b", None], "label": ["x", "y", "z", "x", "x"]}
    public = PublicTable(name="p", source=frame(lines), columns={"k": "text", "label": "text"})
    join = PublicJoin(table="p", on=((ColumnName("place"), ColumnName("k", "p")),))
    labels = GroupKey(name="l", expression=ColumnName("label", "p"), values=("x", "y", "z"))
    found = ask(card(frame(DATA), public={"p": public}), COUNT, keys=(labels,), joins=(join,))
    seventh, third = 2 * W // 7, 2 * W // 3
    assert found.entries["m1"] == [3 * seventh + third, 2 * seventh + third, 2 * seventh + third]
    rows = card(frame(DATA), public={"p": public}, unit=None, max_rows=1)
    assert ask(rows, COUNT, keys=(labels,), joins=(join,)).entries["m1"] == [1, 0, 0]


# ---------------------------------------------------------------- hostile data and names


def test_values_that_do_not_fit_are_missing(tmp_path):
    path = tmp_path / "dirty.csv"
    path.write_bytes(
        b"who,Place,cost,day,ok\n1,a,abc,2024-13-45,maybe\n2,a,1e999,,\nx,a,1,,\n"
        b"3,a,-inf,,\n4,a,nan,,\n5\n6,a,2,,,,,\n99999999999999999999,a,1,,\n7,a,\xff\xfe,,\n"
    )
    found = ask(card(Source(kind="csv", paths=(str(path),))), COUNT, total())
    assert found.entries["m1"] == [5 * W]  # of 1, 2, 3, 4 and 6
    assert found.entries["m2"] == [W * (2**20 + round(2 / (10 / 2**20)))]  # of 2 and 6


def test_infinite_and_distant_dates_are_missing():
    with duckdb.connect() as connection:
        days = "['infinity', '-infinity', '20000-01-01', '9999-12-31']::DATE[]"
        table = connection.sql(f"SELECT 1 AS who, unnest({days}) AS day").to_arrow_table()
    narrow = {name: Column(name=name, type=TYPES[name]) for name in ("who", "day")}
    day = GroupKey(name="d", expression=ColumnName("day"))
    found = ask(card(Source(kind="frame", frame=table), columns=narrow, max_groups=9), keys=(day,))
    assert found.keys == [(None,), (date(9999, 12, 31),)]


def test_text_compares_by_its_bytes_whatever_the_file_says(tmp_path):
    path = str(tmp_path / "collated.db")
    with duckdb.connect(path) as connection:
        connection.execute(
            "CREATE TABLE t (who VARCHAR COLLATE NOCASE, Place VARCHAR COLLATE NOCASE)"
        )
        connection.execute("INSERT INTO t VALUES ('a', 'x'), ('A', 'X'), ('A', 'é')")
    columns = {name: Column(name=name, type="text") for name in ("who", "Place")}
    of = card(Source(kind="duckdb", paths=(path,), table="T"), columns=columns, max_groups=9)
    found = ask(of, UNITS, keys=(KEY,))
    assert (found.keys, found.units) == ([("X",), ("x",), ("é",)], [1, 1, 1])
    assert ask(of, UNITS, where=Call("=", (ColumnName("place"), Constant("x")))).entries == {
        "m1": [1]
    }


HOSTILE = ("'; DROP TABLE lastbit_table; --", '"', "a b", "select", "ß", "lastbit_table", "%s", "?")


@pytest.mark.parametrize("name", HOSTILE)
def test_names_and_keys_are_only_names_and_keys(name):
    data = {"who": [1, 2], name: ["k", name]}
    columns = {"who": Column(name="who", type="integer"), name: Column(name=name, type="text")}
    public = PublicTable(name=name, source=frame({name: [name], "x": [1]}), columns={name: "text"})
    of = card(frame(data), columns=columns, name=name, public={name: public}, max_groups=3)
    key = GroupKey(name=name, expression=ColumnName(name), values=(name, "k"))
    same = Call("=", (ColumnName(name), Constant(name)))
    assert ask(of, keys=(key,), where=same, secret=name).entries["m1"] == [W, 0]
    join = PublicJoin(table=name, on=((ColumnName(name), ColumnName(name, name)),))
    found = GroupKey(name=name, expression=ColumnName(name, name))
    assert ask(of, keys=(found,), joins=(join,), secret=name).keys == [(name,)]


@pytest.mark.parametrize("write", ["polars", "pyarrow", "duckdb"])
def test_nan_is_missing_whatever_a_parquet_file_says_of_its_values(tmp_path, write):
    """DuckDB 2.0 concludes from a file's least and greatest value that isnan() is false."""
    path = str(tmp_path / "x.parquet")
    match write:
        case "polars":
            polars.DataFrame(DATA).write_parquet(path)
        case "pyarrow":
            parquet.write_table(pyarrow.table(DATA), path)
        case "duckdb":
            with duckdb.connect() as connection:
                connection.register("rows", pyarrow.table(DATA))
                connection.execute(f"COPY rows TO '{path}' (FORMAT parquet)")
    counted = Aggregate(name="n", function="count", expression=COST)
    of = card(Source(kind="parquet", paths=(path,)), unit=None, max_rows=1)
    gone = Call("is_missing", (COST,))
    assert ask(of, counted).entries["m1"] == [6]
    assert ask(of, COUNT, where=gone).entries["m1"] == [1]
    assert ask(of, COUNT, where=Call(">", (COST, Constant(0)))).entries["m1"] == [5]


def test_a_folder_named_like_a_column_changes_nothing(tmp_path):
    folder = tmp_path / "Place=zzz"
    folder.mkdir()
    polars.DataFrame(DATA).write_parquet(folder / "x.parquet")
    source = Source(kind="parquet", paths=(str(folder / "x.parquet"),))
    key = GroupKey(name="k", expression=ColumnName("place"), values=("zzz", "a"))
    assert ask(card(source), keys=(key,)).entries["m1"][0] == 0


def test_types_of_objects_do_not_depend_on_values():
    one, two = ({"who": [1], "Place": [value]} for value in (5, "x"))
    for data in (one, two):
        source = Source(kind="frame", frame=pandas.DataFrame(data, dtype=object))
        assert columns_of(source) == {"who": "text", "Place": "text"}


# ---------------------------------------------------------------- what is refused, and how


def broken(folder):
    yield Source(kind="parquet", paths=(str(folder / "none.parquet"),)), InvalidParameter
    yield Source(kind="csv", paths=(str(folder),)), InvalidParameter
    yield Source(kind="csv", paths=("https://example.org/x.csv",)), InvalidParameter
    (folder / "twice.csv").write_text(f"who,WHO\n{CANARY},1\n")
    yield Source(kind="csv", paths=(str(folder / "twice.csv"),)), InvalidParameter
    (folder / "empty.csv").write_text("")
    yield Source(kind="csv", paths=(str(folder / "empty.csv"),)), InvalidParameter
    (folder / "other.csv").write_text(f"who,other\n1,{CANARY}\n")
    yield Source(kind="csv", paths=(str(folder / "other.csv"),)), InvalidParameter
    (folder / "no.parquet").write_text(CANARY)
    yield Source(kind="parquet", paths=(str(folder / "no.parquet"),)), EngineFailed
    (folder / "no.db").write_text(CANARY)
    yield Source(kind="duckdb", paths=(str(folder / "no.db"),), table="t"), EngineFailed
    with duckdb.connect(str(folder / "view.db")) as connection:
        connection.execute("CREATE VIEW t AS SELECT 1 AS who")
    yield Source(kind="duckdb", paths=(str(folder / "view.db"),), table="t"), InvalidParameter
    table = pyarrow.table([[1], [2]], names=["who", "Who"])
    yield Source(kind="frame", frame=table), InvalidParameter
    yield Source(kind="frame", frame=table.to_reader()), InvalidParameter
    yield Source(kind="frame", frame=[CANARY]), InvalidParameter


def test_a_source_that_cannot_be_read_is_refused_without_a_value(tmp_path):
    for source, kind in broken(tmp_path):
        with pytest.raises(kind) as caught:
            ask(card(source))
        told = "".join(traceback.format_exception(caught.value))
        assert CANARY not in told.replace(str(tmp_path), "")
        assert caught.value.__context__ is None


def test_a_missing_column_is_named():
    with pytest.raises(InvalidParameter, match="column ok is not in the source"):
        ask(card(frame({name: DATA[name] for name in ("who", "Place", "cost", "day")})))


def test_an_error_of_the_engine_says_nothing_of_the_data(monkeypatch):
    def wrong(*args, **kwargs):
        found = real(*args, **kwargs)
        object.__setattr__(found, "sql", 'SELECT CAST("Place" AS INTEGER) FROM lastbit_table')
        return found

    real = engines.statement
    monkeypatch.setattr(engines, "statement", wrong)
    data = DATA | {"Place": [CANARY] * 7}
    with pytest.raises(EngineFailed) as caught:
        ask(card(frame(data)))
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is caught.value.__cause__ is None


def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    polars.DataFrame(DATA).write_parquet(path)
    real = backend.RawRows

    def touched(*args):
        os.utime(path, (1, 1))
        return real(*args)

    monkeypatch.setattr(backend, "RawRows", touched)
    with pytest.raises(EngineFailed, match="changed while it was read"):
        ask(card(Source(kind="parquet", paths=(str(path),))))


def test_float_keys_are_refused():
    with pytest.raises(QueryRefused):
        ask(card(frame(DATA)), keys=(GroupKey(name="k", expression=ColumnName("cost")),))


def test_aggregates_do_not_show_themselves():
    found = ask(
        card(frame(DATA)), keys=(GroupKey(name="k", expression=ColumnName("place"), values=("a",)),)
    )
    assert repr(found) == str(found) == f"{found}" == "<Aggregates: not private, not shown>"


# ---------------------------------------------------------------- around it


def test_fingerprints(tmp_path):
    path = tmp_path / "x.parquet"
    polars.DataFrame(DATA).write_parquet(path)
    of = card(Source(kind="parquet", paths=(str(path),)))
    first = fingerprint(of)
    assert first == fingerprint(of)
    os.utime(path, (1, 1))
    assert fingerprint(of) != first
    rows = list(zip(*DATA.values(), strict=True))
    prints = [
        fingerprint(
            card(
                Source(kind="frame", frame=polars.DataFrame(some, schema=list(DATA), orient="row"))
            )
        )
        for some in (rows, rows[::-1], rows[1:], [*rows, rows[0], rows[0]])
    ]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3


LISTS: tuple[list[str | None] | None, ...] = (
    None,
    [],
    [None],
    ["a"],
    ["a", "b"],
    ["b", "a"],
    [None, "a"],
    ["a", None],
    [None, None],
)


def test_fingerprints_of_lists_tell_every_two_rows_apart():
    """DuckDB's own hash takes two lists side by side as one, and NULL as []."""
    schema = {
        "k": polars.Int64,
        "one": polars.List(polars.String),
        "two": polars.List(polars.String),
    }
    columns = {"k": Column(name="k", type="integer")}
    columns |= {name: Column(name=name, type="text[]") for name in ("one", "two")}
    rows = list(itertools.product(LISTS, LISTS))
    frames = (polars.DataFrame([(1, *row)], schema=schema, orient="row") for row in rows)
    sources = (Source(kind="frame", frame=one) for one in frames)
    prints = {fingerprint(card(one, unit="k", columns=columns)) for one in sources}
    assert len(prints) == len(rows)


def test_columns_of(tmp_path):
    for name, source in sources(tmp_path):
        if name == "stream":
            continue
        found = columns_of(source)
        assert list(found) == list(TYPES)
        if name in ("csv", "semicolons", "objects"):
            assert set(found.values()) == {"text"}
        elif name in ("arrow", "parquet", "duckdb", "polars", "lazy"):
            assert found == TYPES


def test_a_connection_leaves_nothing_behind():
    with connected() as connection:
        (folder,) = connection.execute("SELECT current_setting('temp_directory')").fetchone()
        assert os.stat(folder).st_mode & 0o77 == 0
        assert connection.execute(
            "SELECT current_setting('autoload_known_extensions')"
        ).fetchone() == (False,)
    assert not os.path.exists(folder)
    with pytest.raises(duckdb.Error):
        connection.execute("SELECT 1")
    gc.collect()


def test_what_a_killed_process_has_left_is_removed_and_nothing_else(tmp_path):
    """The mutants: without a look at the lock, and whatever its age. Links are left alone."""
    names = ("lastbit-scratch-x", "lastbit-scratch-y", "lastbit-x", "data")
    left, young, other, there = folders = [tmp_path / name for name in names]
    for folder in folders:
        folder.mkdir(mode=0o700)
        (folder / "lastbit-rows-1").write_text("rows")
    (tmp_path / "lastbit-scratch-z").symlink_to(there)
    with backend._scratch(str(tmp_path)) as working:
        for folder in (left, other, there, working):
            os.utime(folder, (0, 0))
        remove_leftovers(str(tmp_path))
        assert not left.exists() and os.path.isdir(working)
        assert all((folder / "lastbit-rows-1").exists() for folder in (young, other, there))
    assert not os.path.exists(working)
    left.mkdir()
    os.utime(left, (0, 0))
    card = DataCard(
        name="t",
        source=Source(kind="frame", frame=polars.DataFrame({"id": [1]})),
        unit=None,
        max_rows=1,
        columns={"id": Column(name="id", type="integer")},
        engine_limits=EngineLimits(spill_folder=str(tmp_path)),
    )
    query = Query(table="t", aggregates=(Aggregate(name="n", function="count"),))
    rehearse(query, card, measures_of(query)[0])
    assert not left.exists()


INTERRUPTED = """
import signal, threading
from lastbit.tables.backends.duckdb.engine import EngineSession, _ran

main = threading.main_thread().ident
threading.Timer(0.5, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
try:
    with EngineSession() as session, session.connected() as connection:
        _ran(connection, "SELECT count(*) FROM range(1000000000000) t(x) WHERE (x * 3) % 7 = 3")
except KeyboardInterrupt:
    print("heard")
"""


def test_limits_of_the_card_are_the_databases(tmp_path):
    limits = EngineLimits(
        max_memory="300MB", threads=1, spill_folder=str(tmp_path), max_spill="2MB"
    )
    wanted = ("memory_limit", "threads", "max_temp_directory_size", "temp_directory")
    with backend.EngineSession() as session:
        for _ in range(2):  # one that is kept has them too
            with session.connected(limits) as limited, session.connected() as other:
                found = [
                    limited.execute(f"SELECT current_setting('{one}')").fetchone()[0]
                    for one in wanted
                ]
                assert found[:3] == ["286.1 MiB", 1, "1.9 MiB"]
                assert os.path.dirname(found[3]) == str(tmp_path)
                assert os.stat(found[3]).st_mode & 0o077 == 0
                (threads,) = other.execute("SELECT current_setting('threads')").fetchone()
                assert threads == os.cpu_count()
    assert not list(tmp_path.iterdir())


def test_a_full_disk_releases_nothing_and_names_the_way_out(tmp_path):
    path = tmp_path / "many.parquet"
    duckdb.sql(f"COPY (SELECT range AS who FROM range(2000000)) TO '{path}'")
    columns = {"who": Column(name="who", type="integer")}
    limits = EngineLimits(max_memory="15MB", threads=1, max_spill="1MB")
    source = Source(kind="parquet", paths=(str(path),))
    with pytest.raises(EngineFailed, match="raise max_memory or max_spill on the card"):
        ask(card(source, columns=columns, engine_limits=limits))
    assert ask(card(source, columns=columns)).entries["m1"] == [2_000_000 * W]


def test_a_spill_folder_that_is_not_there(tmp_path):
    limits = EngineLimits(spill_folder=str(tmp_path / "missing"))
    with pytest.raises(InvalidParameter, match=r"name another under \[engine\]"):
        fingerprint(card(frame(DATA), engine_limits=limits))


def test_it_can_be_interrupted():
    """In a process of its own: polars, once it has run, keeps Ctrl-C to itself."""
    found = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=60, check=True
    )
    assert found.stdout == "heard\n"
