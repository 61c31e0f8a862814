"""Random questions in every form that is read: at a huge price the answer is DuckDB's."""

from __future__ import annotations

from collections import Counter
from random import Random

from lastbit.errors import LastbitError, QueryRefused
from tests.evidence import Extent
from tests.release.random_questions import Drawn, database, private_table, question
from tests.release.test_peers import in_duckdb, left_over, plain, sorted_values


def disagreement(drawn: Drawn, table: object, engine: object) -> str | None:
    """How our answer differs from DuckDB's; None if it does not."""
    asked = table.sql(drawn.text)  # type: ignore[attr-defined]
    found = any(key.values is None for key in asked.query.keys)
    answer = asked.release(epsilon=10**6, **({"delta": "1e-9"} if found else {}))
    cells = [[plain(cell.value) for cell in row.cells] for row in answer]
    mine = [
        sorted_values([*map(plain, row.keys), *own]) for row, own in zip(answer, cells, strict=True)
    ]
    rows = engine.execute(in_duckdb(drawn.plain)).fetchall()  # type: ignore[attr-defined]
    more, without = left_over(mine, [sorted_values([*map(plain, row)]) for row in rows])
    # a known key that no row has is listed, with a count of 0; DuckDB leaves it out
    counts = [answer.columns.index(name) for name in ("n", "o_n") if name in answer.columns]
    more = [place for place in more if not (counts and cells[place][counts[0]] == 0)]
    if not (more or without):
        return None
    return f"{drawn.text}\n  more {[mine[place] for place in more][:3]}\n  without {without[:3]}"


def test_answers_are_those_of_duckdb(extent: Extent) -> None:
    random, engine = Random(191119), database()
    table = private_table(engine)
    seen, refused, answered = Counter[str](), Counter[str](), 0
    number = extent.generated(40, 2_000)
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
    assert number < 1_000 or every | {"keys alone", "constant"} <= set(seen)
