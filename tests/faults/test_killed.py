"""kill -9 at any instant: the ledger opens, the budget holds, and what was shown is paid for."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import servers

postgres = servers.postgres
ROOT = Path(__file__).parents[2]


def killing(how: str, folder: Path | str, *more: str) -> dict:
    finished = subprocess.run(
        [sys.executable, "-m", "tests.faults.killing", how, str(folder), *more],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    report = json.loads(finished.stdout)
    if report == "untraceable":
        pytest.skip("this system does not let a process trace its own child")
    return report


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory if there is one: a kill takes nothing from it, and a sync is quick."""
    if not Path("/dev/shm").is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def test_killed_at_system_calls(memory):
    """At one in nine of those at which the evidence kills."""
    report = killing("system-calls", memory, "9")
    assert {"not charged", "not charged, journal left"} <= set(report["reserve"])
    assert set(report["settle"]) <= {
        "reserved",
        "reserved, journal left",
        "settled",
        "settled, shown",
    }
    assert sum(sum(outcomes.values()) for outcomes in report.values()) > 25


@pytest.mark.evidence
def test_killed_at_every_system_call(memory):
    report = killing("system-calls", memory, "1")
    # the kills reach the inside of each commit, both sides of it, and the time after it was shown
    for name, before, after in (
        ("reserve", "not charged", "reserved"),
        ("settle", "reserved", "settled"),
    ):
        found = report[name]
        assert found[before] > 10 and found[f"{before}, journal left"] > 10
        assert found[after] > 1 and found[f"{after}, shown"] >= 1
        assert set(found) == {before, f"{before}, journal left", after, f"{after}, shown"}
    charge = report["charge"]
    assert charge["not charged"] > 3 and charge["not charged, journal left"] > 3
    assert charge["charged"] >= 1
    assert set(report["open"]) >= {"none", "whole"}
    assert set(report["account"]) >= {"1", "1, journal left"}
    assert set(report["backup"]) >= {"none", "whole"}
    assert {state.split(",")[0] for state in report["fail"]} == {"open", "void"}
    assert {state.split(",")[0] for state in report["allowance"]} == {"kept", "ended"}
    assert sum(sum(outcomes.values()) for outcomes in report.values()) > 200


def test_killed_at_system_calls_of_a_ledger_on_a_server(postgres, extent):
    """Few: at one in 40; many: at each, of reserving, settling and charging."""
    report = killing("on-server", postgres.database(), str(1 if extent.is_many else 40))
    for name, before, after in (
        ("reserve", "not charged", "reserved"),
        ("settle", "reserved", "settled"),
        ("charge", "not charged", "charged"),
    ):
        assert set(report[name]) <= {before, after, f"{after}, shown"}
        assert report[name][before] > (40 if extent.is_many else 1)
        assert not extent.is_many or report[name][after] >= 1


def test_killed_at_random_while_two_compete(tmp_path):
    report = killing("at-random", tmp_path)
    assert report["kills"] >= 100
    assert 0 < report["shown"] <= report["charged"] - report["unanswered"] <= 70
