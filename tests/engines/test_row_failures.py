"""No row decides whether an engine stops at a question: all tables run it, or none does.

DuckDB is tried by tests/kernel/test_row_failures.py.
"""

from collections import Counter

import pytest

from tests.engines.edge_tables import make_tables, statement_outcomes
from tests.kernel.edge_questions import ELSEWHERE, KINDS, questions

QUICK = ("none", "one", "hostile", "one unit less")


@pytest.mark.parametrize("kind", KINDS)
def test_no_row_stops_another_engine(engine, extent, kind):
    make_tables(engine, nul=engine.name != "postgres")
    seen: Counter[str] = Counter()
    names = None if extent.is_many and engine.slow == 1 else QUICK
    for edge in questions(11, engine.number(extent, 12, 240), (kind,), ELSEWHERE):
        found = statement_outcomes(engine, edge, names)
        assert found is None or len(set(found.values())) == 1, (edge.words, found)
        seen["refused" if found is None else next(iter(found.values()))] += 1
    print(engine.name, kind, dict(seen))
    assert seen["runs"]
