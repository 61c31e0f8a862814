"""Settings of the whole suite: a fixed Hypothesis profile and a floor under the number of tests."""

import re

import pytest
from hypothesis import settings

# Raise it as the suite grows. A suite that silently collects less than it did proves less.
FEWEST_TESTS = 13900

# Derandomized: the same commit gives the same verdict. `--hypothesis-profile=explore` goes looking.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile("repeatable")


@pytest.hookimpl(tryfirst=True)  # before -k and -m take their share away
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if re.search(r"0x[0-9a-f]{8}", item.nodeid):
            raise pytest.UsageError(
                f"{item.nodeid} names an address: it has another name each time"
            )
    if config.getoption("lf", default=False) or set(config.args) != set(config.getini("testpaths")):
        return  # only a part was asked for
    if len(items) < FEWEST_TESTS:
        raise pytest.UsageError(
            f"only {len(items)} tests were collected, of at least {FEWEST_TESTS}: "
            "find the missing ones, or lower FEWEST_TESTS in tests/conftest.py and say why"
        )
