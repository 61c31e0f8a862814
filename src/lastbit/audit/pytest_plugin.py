"""A pytest fixture: `audit_replay(program, dataset)` fails the test if a neighbour shows.

A conftest.py loads it: `pytest_plugins = ["lastbit.audit.pytest_plugin"]`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def audit_replay() -> Callable[..., Any]:
    """`audit_program`, as an assertion.

    It takes what `lastbit.audit.replay.audit_program` takes and returns what it returns, if nothing
    was found. The message of a failure holds nothing of the data: where the data are made up for
    the test, `in_full()` of `audit_program` says more.

        def test_report(audit_replay):
            audit_replay(report, [31, 44, 52], records=[0, 120], claim=1)
    """
    # inside: only tests that use it pay for the import
    from lastbit.audit.replay.replay import audit_program

    def checked(program: Callable[[Any], Any], dataset: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        audit = audit_program(program, dataset, **options)
        if not audit.clean:
            pytest.fail(str(audit), pytrace=False)
        return audit

    return checked
