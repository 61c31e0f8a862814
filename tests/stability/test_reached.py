"""Stability by force where rows reach their unit through other tables (`compile/reached.py`)."""

import re
from functools import partial

import duckdb
import pytest

from tests.stability.engine import ByWindow
from tests.stability.judging import differs, exact, violations
from tests.stability.reached import KINDS, TEN, ReachedEngine, joined_rows, spelled_of, ten

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


@pytest.fixture(scope="module")
def engine():
    found = ReachedEngine()
    yield found
    found.close()


@pytest.fixture(scope="module")
def windows():
    found = ReachedEngine(dialect=ByWindow())
    yield found
    found.close()


def judged(engine, reached):
    """Nobody moves a measure further than claimed, and every integer is the reference's."""
    case = reached.case
    base = engine.run(reached, reached.tables)
    assert not exact(case) or not differs(case, case.rows, base)
    for tables in reached.others:
        other = engine.run(reached, tables)
        assert list(violations(case, base, other)) == []
        rows = joined_rows(tables, case.query, case.card)
        assert not exact(case) or not differs(case, rows, other, tables.labs)


def forced(engine, kind, number):
    for start in range(0, number, TEN):
        ten(kind, start, partial(judged, engine))


# 6 kinds, 700 cases of 2 to 5 units that come, go or change: more than 10**4 pairs
@pytest.mark.parametrize("kind", KINDS)
def test_nobody_moves_it_further_than_claimed(engine, extent, kind):
    forced(engine, kind, extent.generated(10, 700))


@pytest.mark.parametrize("kind", KINDS)
def test_bounded_by_windows(windows, extent, kind):
    forced(windows, kind, extent.generated(10, 60))


# ---------------------------------------------------------------- mutants


RANKED = re.compile(r"(v\d) AS NOT MATERIALIZED \(\n  SELECT .*?UNION ALL.*?\),\n", re.DOTALL)


def one_row_for_each_id(sql):
    """DISTINCT ON: whose row is taken depends on whose rows are there."""

    def distinct(found):
        number = found[1][1:]
        body = f"SELECT DISTINCT ON (w{number}_k1) * FROM v{number}_all ORDER BY ALL"
        return f"{found[1]} AS MATERIALIZED (\n  {body}),\n"

    return RANKED.sub(distinct, sql)


def any_value_of_each_column(sql):
    """GROUP BY the id: a row is put together of several units' rows."""

    def grouped(found):
        listed = re.search(r"SELECT (.*?) FROM", found[0])[1].split(", ")
        own = f"w{found[1][1:]}_k1"
        values = [name if name == own else f"any_value({name}) AS {name}" for name in listed]
        body = f"SELECT {', '.join(values)} FROM {found[1]}_all GROUP BY {own}"
        return f"{found[1]} AS MATERIALIZED (\n  {body}),\n"

    return RANKED.sub(grouped, sql)


def what_is_missing_meets(sql):
    loose = re.sub(r"(c\d+) = (w\d_k1)", r"\1 IS NOT DISTINCT FROM \2", sql)
    return re.sub(r"w\d_k1 IS NOT NULL", "TRUE", loose)


def limits_left_out(sql):
    return re.sub(r" WHERE place <= \d+(\n  UNION ALL SELECT [^()]* FROM v)", r"\1", sql)


BY_NEIGHBOURS = (one_row_for_each_id, any_value_of_each_column)
BY_REFERENCE = (what_is_missing_meets, limits_left_out)
MUTANTS = (*BY_NEIGHBOURS, *BY_REFERENCE)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught(engine, mutant):
    """By neighbours where it breaks the promise; by the reference where the answer is another."""

    class Caught(Exception):
        pass

    def check(reached):
        case = reached.case
        if mutant(spelled_of(reached).sql) == spelled_of(reached).sql:
            raise AssertionError("it changes nothing")
        try:
            base = engine.run(reached, reached.tables, mutant)
            if mutant in BY_REFERENCE and exact(case) and differs(case, case.rows, base):
                raise Caught
            for tables in reached.others:
                if list(violations(case, base, engine.run(reached, tables, mutant))):
                    raise Caught
        except duckdb.Error as error:
            raise AssertionError(str(error)) from error

    with pytest.raises(Caught):
        for start in range(0, 1_000, TEN):
            ten(KINDS[start // TEN % len(KINDS)], start, check)
