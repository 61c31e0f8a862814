"""Every function, reading, grid and bin on all pairs of hostile values: DuckDB's bits, or refused.

DuckDB itself is held against Python where there is a reference (tests/tables/test_values.py).
"""

import math
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import product, repeat

import pytest

from lastbit.tables.compile.rows import relation
from lastbit.tables.plan.sensitivity import measures_of
from lastbit.tables.query.derived import columns_in
from lastbit.tables.query.expression import Call, ColumnName, Constant
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.query.rules import FUNCTIONS
from lastbit.tables.query.scan import GroupKey
from tests.engines.batches import plain
from tests.engines.running import card_of
from tests.engines.values import KINDS, SOURCES, calls, known, pairs, sources
from tests.tables.test_values import same

FEWEST_CELLS = 23_808
"""In `make evidence`; what a dialect refuses is not counted."""

REFUSED = {
    "postgres": {"exp", "ilike", "ln", "lower", "power", "strftime", "trim", "upper"},
    "spark": {"exp", "ilike", "ln", "lower", "power", "strftime", "trim", "upper"},
}
"""Functions that an engine has for no arguments at all."""

OWN = {"ln", "exp"}
"""Their last bit is the mathematical library's own affair."""


@cache
def tables(few):
    """The tables of one value a row, and of two: types, rows."""
    types, rows = pairs(few)
    width = math.isqrt(len(rows))
    single = [(i, *row[1:]) for i, row in enumerate(rows[::width])]
    return {1: (types, single), 2: (types, rows)}


TYPED = card_of({"i": "integer"} | {f"{place}_{kind}": kind for place in "abc" for kind in KINDS})


@cache
def asked(number):
    """The calls that look at one column, or at more."""
    found = {1: [], 2: []}
    for call in calls():
        found[min(2, len(named(call)))].append(call)
    return found[number]


def one_each(found):
    """One call of every function."""
    return list({call.function: call for call in found}.values())


_TRUTH: dict = {}


def truth(duck, few, number):
    """DuckDB's cells, worked out once."""
    if (few, number) not in _TRUTH:
        duck.make(relation(), *tables(few)[number])
        _TRUTH[few, number] = duck.cells(asked(number), TYPED)
    return _TRUTH[few, number]


def extent_of(extent):
    return None if extent.is_many else 8


def test_every_function_is_called():
    assert {call.function for call in (*asked(1), *asked(2))} == set(FUNCTIONS)


@pytest.mark.parametrize("number", [1, 2])
def test_every_call_on_all_pairs(engine, duck, extent, number):
    few = extent_of(extent)
    wanted = truth(duck, few, number)
    types, rows = tables(few)[number]
    engine.make(relation(), types, rows)
    chosen = asked(number) if extent.is_many or engine.slow == 1 else one_each(asked(number))
    found = engine.cells([call for call in chosen if engine.accepts(call, TYPED)], TYPED)
    differ = Counter(
        call.function
        for call, cells in found.items()
        if call.function not in OWN and cells != wanted[call]
    )
    assert not differ, next(shown(found, wanted, rows))
    assert not extent.is_many or number == 1 or len(found) * len(rows) >= FEWEST_CELLS


def shown(found, wanted, rows):
    """Calls that differ, with a few of the rows on which they do."""
    for call, cells in found.items():
        at = [
            i
            for i, (one, other) in enumerate(zip(cells, wanted[call], strict=True))
            if one != other
        ]
        if at:
            yield call, len(at), [(rows[i], cells[i], wanted[call][i]) for i in at[:3]]


def test_what_is_refused(engine):
    """By name, and no more than is listed."""
    engine.make(relation(), *tables(8)[1])
    some = {call.function for n in (1, 2) for call in asked(n) if engine.accepts(call, TYPED)}
    assert set(FUNCTIONS) - some - OWN == REFUSED[engine.name] - OWN


def test_texts_with_nul(engine, duck):
    """In a question they are refused; some engines hold them in rows."""
    equal = Call("=", (ColumnName("a_text"), Constant("a\0b")))
    assert not engine.accepts(equal, TYPED)
    if engine.name == "postgres":
        pytest.skip("PostgreSQL has no text with a NUL")
    texts = ["\0", "a\0", "a\0b", "a", "", None]
    rows = [(i, *pair) for i, pair in enumerate(product(texts, texts))]
    for one in (engine, duck):
        one.make(relation(), {"i": "bigint", "a_text": "text", "b_text": "text"}, rows)
    calls = [call for n in (1, 2) for call in asked(n) if named(call) <= {"a_text", "b_text"}]
    accepted = [call for call in calls if engine.accepts(call, TYPED)]
    assert engine.cells(accepted, TYPED) == duck.cells(accepted, TYPED)


def named(call):
    return {column.name for column in columns_in(call)}


# ---------------------------------------------------------------- readings


def readings(engine, duck, types):
    """Each column as each type of a card that the engine reads it as: by both."""
    for kind in KINDS:
        card = card_of(dict.fromkeys(types, kind) | {"i": "integer"})
        columns = [ColumnName(name) for name in types if name != "i"]
        accepted = [column for column in columns if engine.accepts(column, card)]
        yield kind, engine.cells(accepted, card), duck.cells(accepted, card)


def test_every_reading_of_every_type(engine, duck):
    types, rows = sources()
    for one in (duck, engine):
        one.make(relation(), types, rows)
    read = 0
    for kind, found, wanted in readings(engine, duck, types):
        assert found == wanted, (kind, next(shown(found, wanted, rows)))
        read += len(found)
    assert read >= len(SOURCES) + len(KINDS)  # each as itself, and some as another


# ---------------------------------------------------------------- grids and bins


STEPS = (Fraction(1), Fraction(500, 2**20), Fraction(1, 10**9), Fraction(10**6), Fraction(2) ** 240)
EDGES = ((0, 1), (-5, 0, 2, 10), tuple(range(-20, 41)), tuple(range(0, 1 << 12, 3)))


def gridded():
    """Questions that show the integer of each row in groups of their own."""
    for kind in ("number", "boolean", "integer"):
        column, parts = ColumnName(f"a_{kind}"), []
        for place, step in enumerate(STEPS):
            ends = (-10 * step, 10 * step + Fraction(7, 3) * (step < 1))
            parts.append(
                Aggregate(
                    name=f"s{place}", function="sum", expression=column, bounds=ends, step=step
                )
            )
        ends = (Fraction(-(10**9)), Fraction(10**9))
        for function in ("mean", "variance"):
            parts.append(
                Aggregate(name=function, function=function, expression=column, bounds=ends)
            )
        for place, edges in enumerate(EDGES):
            exact = tuple(Fraction(edge, 2) for edge in edges)
            parts.append(
                Aggregate(name=f"h{place}", function="histogram", expression=column, edges=exact)
            )
        yield tuple(parts)


def gridded_apart(engine, duck, questions):
    """What both give for each of the questions."""
    types, rows = tables(None)[1]
    key = GroupKey(name="i", expression=ColumnName("i"), values=tuple(range(len(rows))))
    for one in (duck, engine):
        one.make(relation(), types, rows)
    for parts in questions:
        query = Query(table="t", aggregates=parts, keys=(key,))
        measures = measures_of(query)[0]
        yield tuple(one.asked(query, TYPED, measures) for one in (engine, duck))


def test_every_grid_and_bin(engine, duck, extent):
    for found, wanted in gridded_apart(engine, duck, extent.cases(gridded(), one_in=3)):
        assert plain(found) == plain(wanted)


# ---------------------------------------------------------------- DuckDB and Python


LEFT = {*OWN, "lower", "ilike"}
"""Of letters in either case Python has more; the last bit of ln and exp is a library's own."""

OF_TEXT = ColumnName("a_text")
"""Of this alone: casts, for which DuckDB reads more texts as numbers, and functions of letters."""


def test_duckdb_is_what_python_says(duck, extent):
    few = extent_of(extent)
    references = {call: found for call, found in known() if call.function not in LEFT}
    references = {c: found for c, found in references.items() if c.arguments != (OF_TEXT,)}
    columns = [ColumnName(name) for name in TYPED.columns if name != "i"]
    duck.make(relation(), *tables(few)[2])
    found = duck.values([*columns, *references], TYPED)
    for call, reference in references.items():
        own = [found[one] if one in found else repeat(one.value) for one in call.arguments]
        for *given, value in zip(*own, found[call], strict=False):
            assert same(value, reference(*given)), (call, given)
