"""A plan that is written down and read again is the same plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lastbit.tables import Query, WrittenPlan

RECORDS = Path(__file__).parents[1] / "data"


def plans() -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """The plans and queries of all answers that the repository keeps."""
    found = []
    for path in sorted(RECORDS.rglob("*.json")):
        record = json.loads(path.read_text())
        inner = record.get("certificate", record) if isinstance(record, dict) else {}
        body = inner.get("body", {}) if isinstance(inner, dict) else {}
        if "plan" in body and "query" in body:
            found.append((path.name, body["plan"], body["query"]))
    return found


@pytest.mark.parametrize(("plan", "query"), [pytest.param(p, q, id=n) for n, p, q in plans()])
def test_kept_plans_are_read_as_they_were_written(plan: Any, query: Any) -> None:
    assert WrittenPlan.from_json(plan).to_json() == plan
    assert Query.from_json(query).to_json() == query
