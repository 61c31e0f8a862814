"""The text of a statement: total, exact, and deaf to what names and texts would like to say."""

from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from itertools import pairwise
from math import floor, inf, isinf, nan

import pytest
from hypothesis import given, strategies as st

from lastbit.errors import InvalidParameter, QueryRefused
from lastbit.tables.card.column import Column
from lastbit.tables.card.schema import DataCard, PublicTable, Source
from lastbit.tables.compile.duckdb import DUCKDB
from lastbit.tables.compile.statement import (
    bin_integer,
    grid_integer,
    largest_product,
    statement,
)
from lastbit.tables.compile.steps import (
    Typed,
    double,
    identifier,
    least_double_from,
    literal,
    string,
)
from lastbit.tables.measures import Measure, grid_of
from lastbit.tables.plan.sensitivity import measures_of
from lastbit.tables.query.expression import Call, ColumnName, Constant
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.query.rules import FUNCTIONS
from lastbit.tables.query.scan import GroupKey
from lastbit.tables.query.units import PublicJoin
from tests.tables.connecting import connected
from tests.tables.stepping import stepped

SOURCE = Source(kind="frame")
COLUMNS = {
    "who": "integer",
    "n": "integer",
    "x": "number",
    "s": "text",
    "b": "boolean",
    "d": "date",
    "t": "timestamp",
}
VALUES = {
    "integer": [None, 0, 1, -1, 2**63 - 1, -(2**63), 400],
    "number": [None, 0.0, -0.0, inf, -inf, nan, 1e308, -5e-324, 1.5],
    "text": [None, "", "a", "'", "%_\\", "\x00", "[", "1e999", "2024-02-30", "ß", "\U0001f600"],
    "boolean": [None, True, False],
    "date": [None, date(1, 1, 1), date(9999, 12, 31), date(2024, 2, 29)],
    "timestamp": [None, datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)],
}
SQL = {"integer": "BIGINT", "number": "DOUBLE", "text": "VARCHAR", "boolean": "BOOLEAN"}


@pytest.fixture(scope="module")
def engine():
    with connected() as connection:
        connection.execute("SET threads = 1")
        yield connection


def card(**changes):
    columns = {name: Column(name=name, type=kind) for name, kind in COLUMNS.items()}
    fields = {"name": "t", "source": SOURCE, "unit": "who", "max_rows": 2, "columns": columns}
    return DataCard(**(fields | changes))


def query(*aggregates, **fields):
    return Query(table="t", aggregates=aggregates or (COUNT,), **fields)


COUNT = Aggregate(name="n", function="count")
UNITS = Aggregate(name="units", function="count_units")
N, X, S = ColumnName("n"), ColumnName("x"), ColumnName("s")


def total(name="s", **changes):
    fields = {"function": "sum", "expression": X, "bounds": (Fraction(0), Fraction(10))}
    return Aggregate(name=name, **(fields | changes))


# ---------------------------------------------------------------- no text becomes code


@given(st.text().filter(lambda s: "\0" not in s and s.isprintable()))
def test_texts_and_names_come_back_as_they_were(engine, written):
    assert engine.execute(f"SELECT {string(written)}").fetchone() == (written,)
    if written:
        found = engine.execute(f"SELECT 1 AS {identifier(written)}").description
        assert found[0][0] == written


@pytest.mark.parametrize("bad", ["\0", "a\0b", "\ud800"])
def test_what_cannot_be_written_is_refused(bad):
    for write in (string, identifier, literal):
        with pytest.raises(QueryRefused):
            write(bad)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_come_back_to_the_last_bit(engine, value):
    found = engine.execute(f"SELECT {double(value)}").fetchone()[0]
    assert (found, type(found)) == (value, float)


@pytest.mark.parametrize("value", [Fraction(10) ** 400, -(Fraction(10) ** 309)])
def test_numbers_beyond_doubles_are_refused(value):
    with pytest.raises(QueryRefused, match="beyond the range"):
        double(value)


@given(st.fractions(), st.floats(allow_nan=False, allow_infinity=False))
def test_the_least_double_decides_as_the_edge_does(edge, value):
    assert (value >= least_double_from(edge)) == (Fraction(value) >= edge)


def test_columns_of_the_source_are_named_once_and_quoted():
    hostile = '"; DROP TABLE x; --'
    columns = {hostile: Column(name=hostile, type="number")}
    asked = query(total(expression=ColumnName(hostile.upper())))
    rows = card(unit=None, max_rows=1, columns=columns)
    sql = statement(asked, rows, measures_of(asked)[0], secret=None, dialect=DUCKDB).sql
    assert sql.count("DROP TABLE") == sql.count('"""; DROP TABLE x; --"') == 1


# ---------------------------------------------------------------- expressions are total


FORMAT = Constant("%Y-%m-%d %H:%M:%S %y %j %V %G %w %u %p %I %A %a %B %b 100%%")
PATTERNS = [Constant(p) for p in (None, "", "%", "_", "%a%", "a_%\\", "[", "'%_", "ß")]


def arguments(function):
    """Lists of typed columns that the function takes."""
    least, most = FUNCTIONS[function]
    counts = {least, 3 if most is None else most}
    groups = {
        "text": "lower upper trim length concat starts_with",
        "pattern": "like ilike contains",
        "boolean": "and or not",
        "day": "year quarter month day weekday start_of_month days_between week day_of_year "
        "iso_weekday iso_year start_of_year start_of_quarter start_of_week",
        "time": "hour minute second start_of_hour start_of_minute",
        "any": "is_missing to_text to_integer = <> < in coalesce least greatest",
    }
    for count in sorted(counts):
        match function:
            case "case":
                yield ["b", "x", "n"][:count]
            case "substring":
                yield ["s", "n", "n"][:count]
            case "strftime":
                yield from (["d", FORMAT], ["t", FORMAT])
            case "to_date":
                yield from (["s"], ["t"], ["d"])
            case "to_boolean":
                yield from (["s"], ["n"], ["b"])
            case "to_number":
                yield from (["s"], ["n"], ["b"])
            case "round":
                yield ["x", "n"][:count]
            case _ if function in groups["pattern"].split():
                yield from (["s", pattern] for pattern in PATTERNS)
            case _ if function in groups["text"].split():
                yield ["s"] * count
            case _ if function in groups["boolean"].split():
                yield ["b"] * count
            case _ if function in groups["time"].split():
                yield ["t"]
            case _ if function in groups["day"].split():
                yield from (["d"] * count, ["t"] * count)
            case _:
                yield from (["n"] * count, ["x"] * count, ["n", "x", "n", "x"][:count])


EVERY = [(f, columns) for f in sorted(FUNCTIONS) for columns in arguments(f)]


@pytest.mark.thinned(one_in=2)
@pytest.mark.parametrize(("function", "columns"), EVERY, ids=str)
def test_no_value_stops_a_function_and_none_gives_nan(engine, function, columns):
    names = [f"c{place}" for place in range(len(columns))]
    given = zip(columns, names, strict=True)
    kinds = {name: COLUMNS[column] for column, name in given if isinstance(column, str)}
    parts = [
        ColumnName(name) if name in kinds else column
        for column, name in zip(columns, names, strict=True)
    ]
    tables = []
    for name, kind in kinds.items():
        values = [v for v in VALUES[kind] if v == v]  # NaN is missing before it gets here
        listed = ", ".join(["?"] * len(values))
        cast = f"CAST([{listed}] AS {SQL.get(kind, kind.upper())}[])"
        tables.append((f"(SELECT unnest({cast}) AS {name})", values))
    origin = " CROSS JOIN ".join(sql for sql, _ in tables)
    parameters = [value for _, values in tables for value in values]
    sql = stepped([Call(function, tuple(parts))], kinds, origin)
    rows = engine.execute(sql, parameters).fetchall()
    assert rows
    assert all(value is None or value == value for (value,) in rows)


def test_an_error_is_missing_and_the_next_function_sees_it(engine):
    halves = Call("coalesce", (Call("/", (N, Constant(0))), Constant(7)))
    overflow = Call("coalesce", (Call("+", (N, Constant(2**62), Constant(2**62))), Constant(7)))
    sql = stepped([halves, overflow], COLUMNS, "(SELECT 5::BIGINT AS n)")
    assert engine.execute(sql).fetchone() == (7.0, 7)


def test_nan_is_missing_before_it_is_compared(engine):
    nothing = Call("-", (X, X))
    asked = [
        Call("is_missing", (nothing,)),
        Call(">", (nothing, Constant(0))),
        Call("coalesce", (Call("+", (nothing, X)), Constant(3))),
    ]
    sql = stepped(asked, COLUMNS, "(SELECT CAST('inf' AS DOUBLE) AS x)")
    assert engine.execute(sql).fetchone() == (True, None, 3.0)


def test_nesting_does_not_make_the_text_grow():
    deep, lengths = X, []
    for _ in range(40):
        deep = Call("clamp", (deep, Constant(0), Constant(1)))
        lengths.append(len(stepped([deep], COLUMNS, "t")))
    growth = [b - a for a, b in pairwise(lengths[15:])]  # from where steps are made even
    assert max(growth) <= 1.1 * min(growth)


@pytest.mark.parametrize(
    "expression",
    [Call("+", (N, S)), Call("=", (N, S)), Call("and", (N, N)), Call("year", (S,))],
    ids=lambda e: e.function,
)
def test_wrong_types_are_refused(expression):
    with pytest.raises(QueryRefused, match="wrong type"):
        stepped([expression], COLUMNS, "t")


# ---------------------------------------------------------------- integers of rows


def measure(kind="values", **fields):
    return Measure(name="m1", kind=kind, expression=X, **fields)


GRIDS = [
    ((Fraction(0), Fraction(500)), None, Fraction(250)),
    ((Fraction(-3), Fraction(7)), Fraction(1), Fraction(2)),
    ((Fraction(5), Fraction(9)), Fraction(1, 3), Fraction(0)),
    ((Fraction(-(10**6)), Fraction(-10)), Fraction(1, 1000), Fraction(0)),
]
INTEGERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-600, 600))
FLOATS = st.one_of(st.floats(allow_nan=False), st.floats(-600, 600))


@given(values=st.lists(FLOATS, min_size=1, max_size=30), grid=st.sampled_from(GRIDS))
def test_doubles_on_the_grid(engine, values, grid):
    bounds, step, centre = grid
    size, lowest, highest = grid_of(bounds, step, centre=centre)
    asked = measure(step=size, lowest=lowest, highest=highest, centre=centre)
    sql = grid_integer(asked, Typed("x", "number"), DUCKDB)
    found = engine.execute(
        f"SELECT x, {sql} FROM (SELECT unnest(CAST(? AS DOUBLE[])) AS x)", [[*values, None]]
    ).fetchall()
    for value, integer in found:
        if value is None:
            assert integer is None
            continue
        assert lowest <= integer <= highest
        if not isinf(value):  # the nearest, but for the rounding of doubles
            wanted = min(max((Fraction(value) - centre) / size, lowest), highest)
            assert abs(integer - wanted) <= Fraction(1, 2) + Fraction(1, 256)


@given(values=st.lists(INTEGERS, min_size=1, max_size=30), centre=st.integers(-5, 5))
def test_whole_numbers_on_a_grid_of_step_1_are_exact(engine, values, centre):
    asked = measure(lowest=-10 - centre, highest=300 - centre, centre=Fraction(centre))
    sql = grid_integer(asked, Typed("x", "integer"), DUCKDB)
    found = engine.execute(
        f"SELECT x, {sql} FROM (SELECT unnest(CAST(? AS BIGINT[])) AS x)", [values]
    ).fetchall()
    assert all(integer == min(max(value, -10), 300) - centre for value, integer in found)


EDGES = [
    tuple(Fraction(edge) for edge in (0, 1, 10, 11)),
    tuple(Fraction(i, 10) for i in range(-50, 51)),  # equal, and most are no doubles
    tuple(Fraction(i * 7, 3) for i in range(1025)),
    tuple(Fraction(i * i, 7) for i in range(60)),  # many, and not equal
]


@pytest.mark.evidence
@given(
    values=st.lists(st.one_of(FLOATS, st.integers(-50, 50).map(lambda i: i / 10)), min_size=1),
    edges=st.sampled_from(EDGES),
    clamped=st.booleans(),
)
def test_bins_of_doubles_are_exact(engine, values, edges, clamped):
    near = [float(edge) for edge in edges[:: max(1, len(edges) // 20)]]
    judge_bins(engine, [*values, *near], "number", edges, clamped)


@pytest.mark.evidence
@given(values=st.lists(INTEGERS, min_size=1), edges=st.sampled_from(EDGES), clamped=st.booleans())
def test_bins_of_whole_numbers_are_exact(engine, values, edges, clamped):
    judge_bins(engine, [*values, *map(floor, edges[:20])], "integer", edges, clamped)


def judge_bins(engine, values, kind, edges, clamped):
    asked = measure("bins", edges=edges, clamped=clamped)
    sql = bin_integer(asked, Typed("x", kind), DUCKDB)
    found = engine.execute(
        f"SELECT x, {sql} FROM (SELECT unnest(CAST(? AS {SQL[kind]}[])) AS x)", [values]
    ).fetchall()
    for value, place in found:
        outside = isinf(value) or not edges[0] <= Fraction(value) <= edges[-1]
        if outside and not clamped:
            assert place is None
        elif isinf(value):
            assert place == (len(edges) - 2 if value > 0 else 0)
        else:
            assert place == sum(Fraction(value) >= edge for edge in edges[1:-1])


def test_sums_that_could_outgrow_128_bits_are_refused():
    fine = measure("squares", lowest=-(2**44), highest=2**44)
    with pytest.raises(QueryRefused, match="coarser step"):
        largest_product(fine, 2**20)
    for bits, kind in ((44, "HUGEINT"), (20, "BIGINT")):
        most = largest_product(measure(lowest=0, highest=2**bits), 2**20)
        assert DUCKDB.total(["w", "v1"], most) == f"sum(CAST(w AS {kind}) * v1)"


def test_a_step_near_0_is_refused():
    asked = measure(step=Fraction(1, 10**310), lowest=0, highest=1)
    with pytest.raises(QueryRefused, match="near to 0"):
        grid_integer(asked, Typed("x", "number"), DUCKDB)


# ---------------------------------------------------------------- what is refused


def refused(asked, of=None, secret="s"):
    return statement(asked, of or card(), measures_of(asked)[0], secret=secret, dialect=DUCKDB)


@pytest.mark.parametrize("name", ["x", "t"])
def test_keys_of_which_each_row_may_have_its_own_are_refused(name):
    with pytest.raises(QueryRefused, match=r"bin\(x"):
        refused(query(keys=(GroupKey(name="k", expression=ColumnName(name), values=()),)))


def test_declared_keys_of_another_type_are_refused():
    with pytest.raises(QueryRefused, match="not of type text"):
        refused(query(keys=(GroupKey(name="k", expression=S, values=("a", 1)),)))


def test_undeclared_keys_need_a_limit_and_a_secret():
    asked = query(keys=(GroupKey(name="k", expression=S),))
    with pytest.raises(InvalidParameter, match="max_groups"):
        refused(asked)
    with pytest.raises(InvalidParameter, match="secret"):
        refused(asked, card(max_groups=1), secret=None)


def test_a_filter_that_is_no_truth_is_refused():
    with pytest.raises(QueryRefused, match="neither true nor false"):
        refused(query(where=N))


def test_an_aggregate_over_text_is_refused():
    with pytest.raises(QueryRefused, match="no number"):
        refused(query(total(expression=S)))


def places(kind="text"):
    return {"p": PublicTable(name="p", source=SOURCE, columns={"k": kind, "label": "text"})}


@pytest.mark.parametrize(("own", "kind"), [(X, "number"), (N, "text")], ids=["floats", "two types"])
def test_joins_on_floats_and_on_two_types_are_refused(own, kind):
    asked = query(joins=(PublicJoin(table="p", on=((own, ColumnName("k", "p")),)),))
    with pytest.raises(QueryRefused, match="join on whole numbers"):
        refused(asked, card(public=places(kind)))


def test_a_table_that_is_not_joined_or_joined_twice_is_refused():
    with pytest.raises(QueryRefused, match="not joined"):
        refused(query(where=Call("=", (ColumnName("label", "p"), Constant("a")))))
    join = PublicJoin(table="p", on=((S, ColumnName("k", "p")),))
    with pytest.raises(QueryRefused, match="once"):
        refused(query(joins=(join, join)), card(public=places()))


# ---------------------------------------------------------------- the shape


def test_the_secret_is_not_shown():
    asked = query(UNITS, keys=(GroupKey(name="k", expression=S),))
    assert "hunter2" not in repr(refused(asked, card(max_groups=1), secret="hunter2"))


def test_rows_as_units_are_neither_counted_nor_weighted():
    asked = query(total())
    sql = refused(asked, card(unit=None, max_rows=1), secret=None).sql
    assert "h AS" not in sql
    assert "CAST(1 AS BIGINT) AS w" in sql


def test_text_is_read_once_and_parquet_twice():
    asked = query(total())
    frame = refused(asked).sql
    text_file = refused(asked, card(source=Source(kind="csv", paths=("x.csv",)))).sql
    assert "r AS NOT MATERIALIZED" in frame
    assert "r AS MATERIALIZED" in text_file


def test_equal_hashes_never_keep_more_keys():
    asked = query(UNITS, keys=(GroupKey(name="k", expression=S),))
    plan = refused(asked, card(max_groups=2))
    same = replace(plan, sql=plan.sql.replace("md5(concat(", "length(concat("))
    with connected() as connection:
        connection.execute("CREATE TEMP TABLE lastbit_table (who BIGINT, s VARCHAR)")
        connection.execute("INSERT INTO lastbit_table VALUES (1,'a'),(1,'b'),(1,'c'),(1,'d')")
        assert len(connection.execute(plan.sql).fetchall()) == 2
        assert len(connection.execute(same.sql).fetchall()) == 2
