"""Clients that come and go while server and children are killed: charges are answers told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evidence import Extent


def test_every_charge_of_a_storm_is_an_answer_told(tmp_path: Path, extent: Extent) -> None:
    pytest.importorskip("psycopg", reason="psycopg is in requirements-engines.lock")
    from tests.serve.sqlstorm import storm

    clients, seconds = extent.number(6, 50), extent.number(6, 120)
    found = storm(tmp_path / "served", clients, seconds, extent.name)
    assert found["kills"] and found["questions"] and found["cut off"]
