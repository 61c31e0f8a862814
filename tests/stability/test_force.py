"""Stability by force: the real statement on the real engine, over neighbours made to break it."""

from functools import partial

import pytest

from tests.stability.cases import KINDS
from tests.stability.engine import ByWindow, Engine
from tests.stability.judging import differs, exact, violations
from tests.stability.units import TEN, UNIT_KINDS, ten

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


@pytest.fixture(scope="module")
def engine():
    found = Engine()
    yield found
    found.close()


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    found = Engine(tmp_path_factory.mktemp("rows"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def windows():
    found = Engine(dialect=ByWindow())
    yield found
    found.close()


@pytest.fixture(scope="module")
def indexed():
    found = Engine(indexed=True)
    yield found
    found.close()


@pytest.fixture(scope="module")
def prepared():
    found = Engine(prepared=True)
    yield found
    found.close()


def judged(engine, case):
    """Nobody moves a measure further than claimed, and every integer is the reference's."""
    base = engine.run(case, case.rows)
    assert not exact(case) or not differs(case, case.rows, base)
    for rows, labs in case.neighbours:
        other = engine.run(case, rows, labs=labs)
        assert list(violations(case, base, other)) == []
        assert not exact(case) or not differs(case, rows, other, labs)


def forced(engine, kind, number):
    for start in range(0, number, TEN):
        ten(kind, start, partial(judged, engine))


def test_declared_keys(engine, extent):
    forced(engine, "declared", extent.generated(10, 120))


def test_keys_that_only_the_data_knows(engine, extent):
    forced(engine, "found", extent.generated(10, 120))


def test_joined_with_a_public_table(engine, extent):
    forced(engine, "joined", extent.generated(10, 120))


def test_each_row_a_unit(engine, extent):
    forced(engine, "rows", extent.generated(10, 120))


def test_questions_in_sql(engine, extent):
    forced(engine, "asked", extent.generated(10, 240))


def test_from_parquet(parquet, extent):
    forced(parquet, "declared", extent.generated(20, 60))


@pytest.mark.parametrize("kind", ["declared", "found"])
def test_with_the_index_of_rows_per_unit(indexed, extent, kind):
    forced(indexed, kind, extent.generated(10, 120))


@pytest.mark.parametrize("kind", [*KINDS, *UNIT_KINDS])
def test_from_prepared_rows(prepared, extent, kind):
    forced(prepared, kind, extent.generated(5, 120))


# 4 kinds of questions, 150 cases of 2 or 3 units that come, go or change: LASTBIT_TIMES=7 for 10**4
@pytest.mark.parametrize("kind", UNIT_KINDS)
def test_private_tables_and_sub_queries(engine, extent, kind):
    forced(engine, kind, extent.generated(10, 150))


def test_private_tables_from_parquet(parquet, extent):
    forced(parquet, "per unit", extent.generated(20, 60))


@pytest.mark.parametrize("kind", [*KINDS, *UNIT_KINDS])
def test_bounded_by_windows(windows, extent, kind):
    forced(windows, kind, extent.generated(5, 60))
