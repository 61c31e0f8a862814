"""Stability by force where rows reach their unit through other tables (`compile/reached.py`)."""

import re
from functools import partial

import duckdb
import pytest

from tests.stability.engine import ByWindow
from tests.stability.judging import differs, exact, violations
from tests.stability.reached import KINDS, TEN, ReachedEngine, joined_rows, ten

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
        assert not exact(case) or not differs(case, rows, other)


def forced(engine, kind, number):
    for start in range(0, number, TEN):
        ten(kind, start, partial(judged, engine))


# 3 kinds, 1,000 cases of 2 to 5 units that come, go or change: more than 10**4 pairs
@pytest.mark.parametrize("kind", KINDS)
def test_nobody_moves_it_further_than_claimed(engine, extent, kind):
    forced(engine, kind, extent.generated(20, 1_000))


@pytest.mark.parametrize("kind", KINDS)
def test_bounded_by_windows(windows, extent, kind):
    forced(windows, kind, extent.generated(10, 100))


# ---------------------------------------------------------------- mutants


def one_row_for_each_id(sql):
    """DISTINCT ON: whose row is taken depends on whose rows are there."""
    return re.sub(r"(v(\d) AS NOT MATERIALIZED \(\n)[^)]*?\(SELECT \*, row_number.*?\n\)", _one, sql, flags=re.S)


def _one(found):
    number = found[2]
    return f"{found[1]}  SELECT DISTINCT ON (w{number}_k1) * FROM v{number}_all ORDER BY ALL\n)"


def any_value_of_an_id(sql):
    """The same by a rank that forgets the unit."""
    return re.sub(r"(PARTITION BY w\d_k1), c\d+", r"\1", sql).replace("EXISTS", "NOT NOT EXISTS")


def what_is_missing_meets(sql):
    loose = re.sub(r"(c\d+) = (w\d_k1)", r"\1 IS NOT DISTINCT FROM \2", sql)
    return re.sub(r"w\d_k1 IS NOT NULL", "TRUE", loose)


def nobodys_rows_are_kept(sql):
    return re.sub(r"LEFT JOIN h", "LEFT JOIN h", sql).replace(" JOIN v1 ON", " LEFT JOIN v1 ON")


def limits_left_out(sql):
    return re.sub(r"(FROM v\d_all.*?) WHERE place <= \d+", r"\1", sql)


MUTANTS = (one_row_for_each_id, any_value_of_an_id, what_is_missing_meets, limits_left_out)
BY_NEIGHBOURS = {one_row_for_each_id}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_caught(engine, mutant):
    """By neighbours where it breaks the promise; by the reference where the answer is another."""

    class Caught(Exception):
        pass

    def check(reached):
        case = reached.case
        try:
            base = engine.run(reached, reached.tables, mutant)
            if mutant not in BY_NEIGHBOURS and exact(case) and differs(case, case.rows, base):
                raise Caught
            for tables in reached.others:
                if list(violations(case, base, engine.run(reached, tables, mutant))):
                    raise Caught
        except duckdb.Error as error:
            raise AssertionError(str(error)) from error

    with pytest.raises(Caught):
        for start in range(0, 1_000, TEN):
            ten(KINDS[start // TEN % 3], start, check)
