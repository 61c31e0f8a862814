"""Stability by force: the real statement on the real engine, over neighbours made to break it.

More cases: LASTBIT_FORCE=20000 pytest tests/stability/test_force.py
"""

import os

import pytest
from hypothesis import HealthCheck, given, settings

from tests.stability.cases import cases
from tests.stability.engine import Engine
from tests.stability.judging import differs, exact, violations

EXAMPLES = int(os.environ.get("LASTBIT_FORCE", "120"))
SETTINGS = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))


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


def judged(engine, case):
    """Nobody moves a measure further than claimed, and every integer is the reference's."""
    base = engine.run(case, case.rows)
    assert not exact(case) or not differs(case, case.rows, base)
    for rows in case.others:
        other = engine.run(case, rows)
        assert list(violations(case, base, other)) == []
        assert not exact(case) or not differs(case, rows, other)


@SETTINGS
@given(case=cases("declared"))
def test_declared_keys(engine, case):
    judged(engine, case)


@SETTINGS
@given(case=cases("found"))
def test_keys_that_only_the_data_knows(engine, case):
    judged(engine, case)


@SETTINGS
@given(case=cases("joined"))
def test_joined_with_a_public_table(engine, case):
    judged(engine, case)


@SETTINGS
@given(case=cases("rows"))
def test_each_row_a_unit(engine, case):
    judged(engine, case)


@settings(SETTINGS, max_examples=EXAMPLES // 2)
@given(case=cases("declared"))
def test_from_parquet(parquet, case):
    judged(parquet, case)
