"""Wrong dialects and settings that the suite must catch: a net that catches nothing proves nothing.

A mutant writes one text of its dialect as somebody might who tried it on plain values. It is caught
if a cell, a grid or an aggregate differs from DuckDB's, or if a row stops the statement; that
nothing does so without it, the other tests say.
"""

import pytest

from lastbit.errors import QueryRefused
from lastbit.tables.compile.rows import relation
from lastbit.tables.compile.spark import java_pattern
from tests.engines.batches import batches, plain
from tests.engines.running import Postgres
from tests.engines.test_cells import TYPED, asked, gridded, gridded_apart, readings, tables
from tests.engines.test_generated import examples, in_one, large_sums
from tests.engines.values import sources
from tests.evidence import late

FEW = 24
END = r"\z"
BOTH, ONLY_POSTGRES, ONLY_SPARK = ("postgres", "spark"), ("postgres",), ("spark",)


def ties_to_even(own, function, x, second=None):
    name = "bround" if own.__self__.name == "spark" else "round"
    return f"{name}({x})" if function == "round" else own(function, x, second)


def half_added(own, function, x, second=None):
    half = own.__self__.double(0.5)
    return f"floor({x} + {half})" if function == "round" else own(function, x, second)


def cut_off(own, function, x, second=None):
    if function != "floor":
        return own(function, x, second)
    return f"CASE WHEN {x} < 0 THEN {own('ceil', x)} ELSE {own('floor', x)} END"


def unguarded(own, function, a, b=None):
    return own(function, a) if b is None else f"({a} {function} {b})"


def by_the_divisor(own, function, a, b=None):
    if function != "%":
        return own(function, a, b)
    return own("%", own("+", own("%", a, b), b), b)


def overflowing(own, function, x, second=None):
    if second is not None:
        return own(function, x, second)
    return f"{'-' if function == 'negate' else function}({x})"


def not_checked(*kinds):
    return lambda own, name, kind: name if kind in kinds else own(name, kind)


def characters(dialect):
    return dialect.of_text("length", ["{x}"])


def bytes_counted(own, function, values):
    if function != "length":
        return own(function, values)
    return own.__self__.bytes_of.format(x=values[0])


def escaped(own, x, pattern, **how):
    return f"({x} LIKE {own.__self__.text(pattern)})"


def to_the_last_line(own, x, pattern, **how):
    """Java's $, which matches before a last line break as well."""
    return f"rlike({x}, {own.__self__.text(java_pattern(pattern).removesuffix(END) + '$')})"


def matched(own, function, values):
    if function not in ("contains", "starts_with"):
        return own(function, values)
    return f"({values[0]} LIKE concat('%', {values[1]}, '%'))"


def quoted(own, value):
    return "'" + value.replace("'", "''") + "'"


def weekday_from_1(own, function, x, kind):
    return f"({own(function, x, kind)} + {int(function == 'weekday')})"


def calendar_year(own, function, x, kind):
    return own("year" if function == "iso_year" else function, x, kind)


def seconds_rounded(own, function, x, kind):
    if function != "second":
        return own(function, x, kind)
    return f"CAST(round(extract(SECOND FROM {x})) AS BIGINT)"


def from_sunday(own, part, x):
    return f"({own(part, x)} - {int(part == 'week')})"


def backwards(dialect):
    return dialect.days_between.format(a="{b}", b="{a}")


def downwards(own, sql, kind, origin):
    return own(f"floor({sql})" if (kind, origin) == ("integer", "number") else sql, kind, origin)


CELLS = [
    ("number", ties_to_even, {"round"}, BOTH),
    ("number", half_added, {"round"}, BOTH),
    ("number", cut_off, {"floor"}, BOTH),
    ("whole", unguarded, {"+", "-", "*"}, BOTH),
    ("whole", by_the_divisor, {"%"}, BOTH),
    ("whole", overflowing, {"negate", "abs"}, BOTH),
    ("number", unguarded, {"*"}, ONLY_POSTGRES),
    ("number", unguarded, {"/"}, BOTH),
    ("checked", not_checked("number"), {"=", "<", "least"}, BOTH),
    ("checked", not_checked("date", "timestamp"), {"is_missing", "year"}, BOTH),
    ("checked", not_checked("text"), {"length"}, BOTH),
    ("bytes_of", characters, {"length", "concat"}, BOTH),
    ("of_text", bytes_counted, {"length"}, BOTH),
    ("like", escaped, {"like"}, BOTH),
    ("like", to_the_last_line, {"like"}, ONLY_SPARK),
    ("of_text", matched, {"contains", "starts_with"}, BOTH),
    ("text", quoted, {"=", "contains"}, ONLY_SPARK),
    ("date_part", weekday_from_1, {"weekday"}, BOTH),
    ("date_part", calendar_year, {"iso_year"}, BOTH),
    ("date_part", seconds_rounded, {"second"}, BOTH),
    ("start_of", from_sunday, {"start_of_week"}, BOTH),
    ("days_between", backwards, {"days_between"}, BOTH),
    ("cast", downwards, {"to_integer"}, BOTH),
]


def mutated(engine, method, wrong):
    """The engine's dialect with one method, or text, written otherwise."""
    own = getattr(engine.dialect, method)
    if isinstance(own, str):
        return type("Mutant", (type(engine.dialect),), {method: wrong(engine.dialect)})()
    changed = {method: lambda self, *given, **how: wrong(own, *given, **how)}
    return type("Mutant", (type(engine.dialect),), changed)()


def caught(engine, duck, differs):
    """Whether the dialect that the engine has now gives something else, or stops."""
    try:
        return differs(engine, duck)
    except QueryRefused:
        return False
    except Exception:
        return True


def some_cell(functions):
    def differs(engine, duck):
        for number in (1, 2):
            for one in (engine, duck):
                one.make(relation(), *tables(None if number == 1 else FEW)[number])
            calls = [call for call in asked(number) if call.function in functions]
            calls = [call for call in calls if engine.accepts(call, TYPED)]
            if engine.cells(calls, TYPED) != duck.cells(calls, TYPED):
                return True
        return False

    return differs


@pytest.mark.parametrize(
    ("method", "wrong", "functions", "engines"),
    CELLS,
    ids=[f"{method}-{place}" for place, (method, *_) in enumerate(CELLS)],
)
@pytest.mark.thinned(one_in=8)
def test_a_cell_differs(engine, duck, method, wrong, functions, engines, monkeypatch):
    if engine.name not in engines:
        pytest.skip("this engine means the same by it")
    monkeypatch.setattr(engine, "dialect", mutated(engine, method, wrong))
    assert caught(engine, duck, some_cell(functions))


# ---------------------------------------------------------------- grids, sums and choices


def lower_neighbour(own, x, kind, grid, *, nearest):
    return own(x, kind, grid, nearest=False)


def next_item(own, values, index, *kind):
    return own(values, f"{index} + 1", *kind)


def as_doubles(own, factors, most):
    kind = own.__self__.types["number"]
    return f"sum({' * '.join(f'CAST({factor} AS {kind})' for factor in factors)})"


def in_64_bits(own, factors, most):
    return f"sum({' * '.join(f'CAST({factor} AS BIGINT)' for factor in factors)})"


def rounded_up(own, total, count):
    return f"({own(total, count)} + 1)"


def without_the_secret(own, columns, secret):
    return own(columns, "")


def of_the_unit_alone(own, columns, secret):
    return own(columns[:1], secret)


def exchanged(own, columns, cases, grouped):
    return own(columns, [(mask, cases[-1 - i][1]) for i, (mask, _) in enumerate(cases)], grouped)


def some_group(engine, duck):
    return any(plain(a) != plain(b) for a, b in gridded_apart(engine, duck, [*gridded()][:1]))


def some_sum(engine, duck):
    return plain(large_sums(engine)) != plain(large_sums(duck))


def some_batch(kind):
    def differs(engine, duck):
        for batch in batches(examples(kind, 48), 4)[:16]:
            try:
                if plain(in_one(engine, batch)) != plain(in_one(duck, batch)):
                    return True
            except QueryRefused:
                continue
        return False

    return differs


GROUPS = [
    ("on_grid", lower_neighbour, some_group),
    ("item", next_item, some_group),
    ("total", as_doubles, some_sum),
    ("total", in_64_bits, some_sum),
    ("share", rounded_up, some_batch("declared")),
    ("keyed_hash", without_the_secret, some_batch("found")),
    ("keyed_hash", of_the_unit_alone, some_batch("found")),
    ("block", exchanged, some_group),
]


@pytest.mark.parametrize(
    ("method", "wrong", "differs"),
    GROUPS,
    ids=[f"{method}-{wrong.__name__}" for method, wrong, _ in GROUPS],
)
@pytest.mark.thinned(one_in=8)
def test_a_group_differs(engine, duck, method, wrong, differs, monkeypatch):
    monkeypatch.setattr(engine, "dialect", mutated(engine, method, wrong))
    assert caught(engine, duck, differs)


# ---------------------------------------------------------------- settings and collations


def some_reading(engine, duck):
    """Of columns of every type, as every other."""
    types, rows = sources()
    for one in (engine, duck):
        one.make(relation(), types, rows)
    return any(found != wanted for _, found, wanted in readings(engine, duck, types))


WRONG_SETTINGS = [
    ("postgres", "search_path", "crooked, pg_catalog, public", some_cell({"+"})),
    ("spark", "spark.sql.session.timeZone", "America/New_York", some_reading),
    ("spark", "spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY", some_reading),
]
CROOKED = """
CREATE SCHEMA crooked;
CREATE FUNCTION crooked.plus(bigint, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 42::bigint';
CREATE OPERATOR crooked.+ (leftarg = bigint, rightarg = bigint, function = crooked.plus);
"""


@pytest.mark.thinned(one_in=3)
@pytest.mark.parametrize(("name", "setting", "value", "differs"), WRONG_SETTINGS)
def test_a_setting_differs(engine, duck, name, setting, value, differs):
    if engine.name != name:
        pytest.skip("a setting of another engine")
    if name == "postgres":
        engine.writer.execute(CROOKED)
    assert not differs(engine, duck)
    with engine.wrongly_set(setting, value):
        assert caught(engine, duck, differs)
    assert not differs(engine, duck)


NOCASE = """
CREATE COLLATION nocase (provider = icu, locale = 'und-u-ks-level2', deterministic = false)
"""
OF_TEXTS = {"=", "<", "in", "least", "greatest", "contains", "starts_with", "like", "case"}
TEXT_METHODS = ("read", "text", "cast")


@pytest.mark.parametrize("column", ["text COLLATE nocase", late("text")])
def test_texts_compare_by_their_bytes(postgres, duck, column, monkeypatch):
    """In a database that orders letters by a language, and in a column without upper case."""
    if not postgres.icu:
        pytest.skip("this PostgreSQL is built without ICU: apt install postgresql")
    how = "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'de-DE' LOCALE 'C'"
    local = Postgres(postgres, how)
    local.writer.execute(NOCASE)
    local.types = {**local.types, "text": column}
    differs = some_cell(OF_TEXTS)
    assert not differs(local, duck)
    for kind in ("joined", "found"):
        assert not some_batch(kind)(local, duck)
    for method in TEXT_METHODS:
        wrong = mutated(local, method, lambda own, *given: own(*given).replace('COLLATE "C"', ""))
        monkeypatch.setattr(local, "dialect", wrong)
    assert caught(local, duck, differs)
    local.close()
