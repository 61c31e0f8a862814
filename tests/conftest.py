"""Settings of the whole suite: one verdict a commit, a floor under the number of tests, and which
of them are left to `make evidence`."""

import atexit
import gc
import hashlib
import itertools
import os
import random
import re
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from lastbit.sampling import bits
from tests import evidence

extent = evidence.extent  # a fixture of all tests
_urandom = os.urandom
_starts: dict[int, Any] = {}  # the states of generators as their modules made them

# Raise it as the suite grows. A suite that silently collects less than it did proves less.
FEWEST_TESTS = 15_500

# Derandomized: the same commit gives the same verdict. `--hypothesis-profile=explore` goes looking.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=2_000)
settings.load_profile("repeatable")

# Where there is room, temporary files lie in memory: a disk would keep every commit of a ledger
# waiting, several times, and both workers with it.
MEMORY, ROOM = "/dev/shm", 4 << 30
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK | os.X_OK):
    _room = os.statvfs(MEMORY)
    if _room.f_bavail * _room.f_frsize > ROOM and not _room.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = tempfile.tempdir = MEMORY

# Thousands of tests and their modules stay until the end: to go over all of them every 700 objects,
# in search of cycles, was a twelfth of the suite's time.
gc.set_threshold(50_000, 20, 20)


class DriversOfExtras:
    """Modules of src that need a driver of an engine: without it their examples are skipped.

    Any other import that fails stops the run. pytest's own `--doctest-ignore-import-errors` would
    skip every such file, and of a test file leave half a module behind, in which no test is found.
    """

    NAMES = frozenset({"deltalake", "jax", "optax", "psycopg", "pyspark", "torch", "triton"})

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        call = getattr(report, "call", None)
        cause = None if call is None or call.excinfo is None else call.excinfo.value.__cause__
        missing = cause.name if isinstance(cause, ModuleNotFoundError) else None
        if collector.nodeid.startswith("src/") and (missing or "").partition(".")[0] in self.NAMES:
            report.outcome, reason = "skipped", f"Skipped: {missing} is not installed"
            report.longrepr = (str(collector.path), None, reason)  # type: ignore[assignment]
            # half of it was read: who imports it next must fail for the same reason
            sys.modules.pop(".".join(Path(collector.nodeid).with_suffix("").parts[1:]), None)
        return report


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(DriversOfExtras())  # a conftest's own hooks do not see src


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own, and the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pytest_collection_finish() -> None:
    gc.freeze()
    atexit.register(gc.unfreeze)  # libraries look at the end for what was left behind


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Keys, and with them all noise, follow from the test's name; but in its children they are new.

    So a test of random output cannot fail today and pass tomorrow. It must still be all but sure to
    pass for other keys: any change of what it draws gives it some.
    """
    if settings.get_current_profile_name() == "explore":
        return
    home, count = os.getpid(), itertools.count()

    def urandom(size: int) -> bytes:
        if os.getpid() != home:
            return _urandom(size)
        return hashlib.shake_256(f"{item.nodeid} {next(count)}".encode()).digest(size)

    vars(os)["urandom"] = urandom
    bits._LOCAL.stream = bits.KeyStream()
    random.seed(item.nodeid)
    np.random.seed(int.from_bytes(urandom(4), "big"))
    for value in vars(getattr(item, "module", item)).values():
        if isinstance(value, np.random.Generator):  # a module's own starts anew, too
            own = value.bit_generator
            own.state = _starts.setdefault(id(own), own.state)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    vars(os)["urandom"] = _urandom
    bits._LOCAL.stream = bits.KeyStream()


@pytest.hookimpl(tryfirst=True)  # before -k and -m take their share away
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if re.search(r"0x[0-9a-f]{8}", item.nodeid):
            raise pytest.UsageError(
                f"{item.nodeid} names an address: it has another name each time"
            )
    evidence.thin(items)
    part = config.getoption("lf", default=False) or set(config.args) != set(
        config.getini("testpaths")
    )
    if not part and len(items) < FEWEST_TESTS:
        raise pytest.UsageError(
            f"only {len(items)} tests were collected, of at least {FEWEST_TESTS}: "
            "find the missing ones, or lower FEWEST_TESTS in tests/conftest.py and say why"
        )
    if not config.getoption("markexpr"):
        late = [item for item in items if _left_out(item)]
        items[:] = [item for item in items if not _left_out(item)]
        config.hook.pytest_deselected(items=late)


SERVERS = (
    "tests/audit/test_wrong_mechanisms.py",
    "tests/docs/test_site_in_browser.py",
    "tests/engines/",
    "tests/faults/",
    "tests/serve/",
)
"""Tests of other engines, of servers and browsers, and of audits that take millions of runs: of
these `make check` leaves all evidence to `make evidence`, which has no limit of time."""


def _left_out(item: pytest.Item) -> bool:
    """`make test` leaves out the evidence, `make check` the few cases that the evidence holds."""
    whole = evidence.WHOLE_CHECK and not (
        item.nodeid.startswith(SERVERS) or item.get_closest_marker("apart")
    )
    return item.get_closest_marker("few" if whole else "evidence") is not None
