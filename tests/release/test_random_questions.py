"""Random questions in every form that is read: at a huge price the answer is DuckDB's."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from lastbit.errors import LastbitError, QueryRefused
from tests.evidence import Extent, late
from tests.release.random_questions import Drawn, database, private_table, question
from tests.release.test_peers import in_duckdb, left_over, near, plain


def disagreement(drawn: Drawn, table: Any, engine: Any) -> str | None:
    """How our answer differs from DuckDB's; None if it does not.

    What is made of no values is NULL in SQL, and some number here. A known key that no row has is
    listed, with a count of 0; one that is found privately needs more than three rows.
    """
    asked = table.sql(drawn.text)
    found = any(key.values is None for key in asked.query.keys)
    answer = asked.release(epsilon=10**6, **({"delta": "1e-9"} if found else {}))
    names = [*answer.keys, *answer.columns]
    count = next((place for place, name in enumerate(names) if name in ("n", "o_n")), None)
    mine = [[plain(v) for v in (*r.keys, *(cell.value for cell in r.cells))] for r in answer]
    cursor = engine.execute(in_duckdb(drawn.plain))
    order = [[column[0] for column in cursor.description].index(name) for name in names]
    truth = [[plain(row[place]) for place in order] for row in cursor.fetchall()]
    more, without = left_over(mine, truth, same=_same)
    more = [place for place in more if count is None or mine[place][count] != 0]
    if found and count is not None:
        without = [row for row in without if row[count] > 3]
    if not (more or without):
        return None
    return f"{drawn.text}\n  more {[mine[place] for place in more][:3]}\n  without {without[:3]}"


def _same(mine: list[Any], truth: list[Any]) -> bool:
    pairs = zip(mine, truth, strict=True)
    return all(near(a, b) or (b is None and isinstance(a, float)) for a, b in pairs)


@pytest.mark.parametrize("seed", [1, *(late(seed, apart=True) for seed in range(2, 9))])
def test_answers_are_those_of_duckdb(seed: int, extent: Extent) -> None:
    random, engine = Random(191119 * seed), database()
    table = private_table(engine)
    seen, refused, answered = Counter[str](), Counter[str](), 0
    number = extent.generated(40, 250)
    while answered < number:
        drawn = question(random)
        try:
            wrong = disagreement(drawn, table, engine)
        except QueryRefused as error:
            if "no key that WHERE lets through" not in str(error):
                refused[f"{drawn.text}: {error}"] += 1
            continue
        except LastbitError as error:
            raise AssertionError(drawn.text) from error
        assert wrong is None, wrong
        answered += 1
        seen.update(drawn.forms)
    assert not refused, "\n".join(refused)
    every = {"source", "join", "hidden", "made", "both", "having", "order", "top", "outer"}
    assert number < 250 or every | {"keys alone", "constant"} <= set(seen)
