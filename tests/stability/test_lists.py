"""Stability by force where UNNEST makes a row of each element of a list (`query/units.py`)."""

import re
from dataclasses import replace
from functools import partial
from itertools import cycle

import duckdb
import pytest

from tests.stability import reached
from tests.stability.engine import ByWindow
from tests.stability.judging import differs, exact, violations
from tests.stability.lists import (
    KINDS,
    TEN,
    ListEngine,
    asked_of_lists,
    elements,
    reached_engine,
    spelled_of,
    ten,
    with_lists,
    without_lists,
)
from tests.stability.reached import joined_rows

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


@pytest.fixture(scope="module")
def engine():
    found = ListEngine()
    yield found
    found.close()


@pytest.fixture(scope="module")
def windows():
    found = ListEngine(dialect=ByWindow())
    yield found
    found.close()


def judged(engine, pairs, listed):
    """Nobody moves a measure further than claimed, and every integer is the reference's."""
    case, plain = listed.case, listed.plain
    base = engine.run(listed, listed.table, case.labs)
    known = exact(plain)
    assert not known or not differs(plain, elements(listed.table, listed.column), base)
    for table, labs in listed.others:
        other = engine.run(listed, table, labs)
        pairs.append(1)
        assert list(violations(case, base, other)) == []
        assert not known or not differs(plain, elements(table, listed.column), other, labs)


def forced(engine, kind, number, *, first=0):
    pairs = []
    for start in range(first, first + number, TEN):
        ten(kind, start, partial(judged, engine, pairs))
    return len(pairs)


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_moves_it_further_than_claimed(engine, extent, kind):
    assert forced(engine, kind, extent.generated(10, 100)) > 10


# 7 kinds, 700 cases of 2 to 5 units that come, go or change: more than 10**4 pairs in all
@pytest.mark.evidence
@pytest.mark.apart
@pytest.mark.parametrize("kind", KINDS)
def test_nobody_does_in_many_more_cases(engine, kind):
    assert forced(engine, kind, 700, first=1_000) > 1_429


@pytest.mark.parametrize("kind", KINDS)
def test_bounded_by_windows(windows, extent, kind):
    assert forced(windows, kind, extent.generated(10, 60)) > 10


def judged_on_the_way(engine, column, one):
    """The same of items with lists, which reach their units through other tables."""
    plain = one.case
    listed = replace(one, case=asked_of_lists(plain, column))
    known, found = exact(plain), []
    for tables in (one.tables, *one.others):
        found.append(engine.run(listed, with_lists(tables, column)))
        every = without_lists(with_lists(tables, column), column)
        rows = joined_rows(every, plain.query, plain.card)
        assert not known or not differs(plain, rows, found[-1], tables.labs)
    for other in found[1:]:
        assert list(violations(listed.case, found[0], other)) == []


@pytest.mark.parametrize(
    ("kind", "column"), list(zip(reached.KINDS, cycle(reached.OWN), strict=False))
)
def test_nobody_does_where_units_are_reached(extent, kind, column):
    engine = reached_engine(column)
    try:
        for start in range(0, extent.generated(10, 100), TEN):
            reached.ten(kind, start, partial(judged_on_the_way, engine, column))
    finally:
        engine.close()


# ---------------------------------------------------------------- mutants


LIST = re.compile(r'unnest\(("\w+")\[1:\d+\]\)')


def lists_of_all_rows(sql):
    """Each row meets everybody's elements."""
    every = f"(SELECT flatten(list({{}})) FROM {'lastbit_table'})"
    return LIST.sub(lambda found: f"unnest({every.format(found[1])})", sql)


def empty_lists_are_kept(sql):
    return LIST.sub(r"unnest(CASE WHEN len(\1) > 0 THEN \1 ELSE [NULL] END)", sql)


def equal_elements_once(sql):
    return LIST.sub(r"unnest(list_distinct(\1))", sql)


def the_first_two(sql):
    return LIST.sub(r"unnest(\1[1:2])", sql)


BY_NEIGHBOURS = (lists_of_all_rows,)
MUTANTS = (*BY_NEIGHBOURS, empty_lists_are_kept, equal_elements_once, the_first_two)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught(engine, mutant):
    """By neighbours where it breaks the promise; by the reference where the answer is another."""

    class Caught(Exception):
        pass

    def check(listed):
        case, plain = listed.case, listed.plain
        if mutant(spelled_of(listed).sql) == spelled_of(listed).sql:
            raise AssertionError("it changes nothing")
        rows = elements(listed.table, listed.column)
        try:
            base = engine.run(listed, listed.table, case.labs, mutant)
            if mutant in BY_NEIGHBOURS:
                for table, labs in listed.others:
                    if list(violations(case, base, engine.run(listed, table, labs, mutant))):
                        raise Caught
            elif exact(plain) and differs(plain, rows, base):
                raise Caught
        except duckdb.Error as error:
            raise AssertionError(str(error)) from error

    with pytest.raises(Caught):
        for start in range(0, 1_000, TEN):
            ten(KINDS[start // TEN % len(KINDS)], start, check)
