"""Records that anybody may have written: what is believed, and that it can be shown."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import duckdb
import pytest

from lastbit.ledger.records import record_of
from lastbit.release import Answer, record_problem, table
from lastbit.release.believing import is_answer_to
from lastbit.report import answer_parts, page, title_of
from lastbit.tables import planned
from tests.ledger.hostile import hostile_record

SQL = "SELECT ward, count(*) AS n, count(*) AS cost FROM visits GROUP BY ward"


@pytest.fixture(scope="module")
def asked() -> tuple[Any, dict[str, Any]]:
    """A question and a true answer to it."""
    rows = duckdb.sql("SELECT range % 2 AS ward, range % 100 AS cost FROM range(200)")
    columns = {"ward": "integer", "cost": "integer"}
    visits: Any = table(rows, each_row=True, name="visits", columns=columns, keys={"ward": [0, 1]})
    question = visits.sql(SQL)
    return question, question.release(epsilon=1).record


def test_a_true_answer_is_believed_for_its_own_question_alone(asked) -> None:
    question, record = asked
    plan = planned(question.query, question.card, epsilon=1)
    fewer = replace(question.query, limit=1)
    other = planned(fewer, question.card, epsilon=1)
    assert record_problem(record) is None and is_answer_to(record, plan, record["question"])
    assert not is_answer_to(record, plan, "0" * 64)
    assert not is_answer_to(record, other, record["question"])
    for part, value in (("table", "stays"), ("question", "0" * 64), ("rows", [])):
        assert not is_answer_to({**record, part: value}, plan, record["question"])


@pytest.mark.parametrize("record", [{}, {"rows": 7}, {"rows": [], "certificate": {"kind": "law"}}])
def test_no_certificate_of_an_answer_is_no_answer(record) -> None:
    assert record_problem(record) == "it has no certificate of an answer"
    assert record_problem({"table": "visits", "asked": 5, **record}) is not None


def test_whatever_is_accepted_can_be_shown(asked, extent) -> None:
    """Before, what was not accepted was shown as well, as far as it went: pages answered 500."""
    _question, genuine = asked
    drawn, accepted = random.Random(31), 0
    many = extent.generated(400, 20_000)
    for _ in range(many):
        record = record_of(hostile_record(drawn, genuine))
        if record is None or record_problem(record) is not None:
            continue
        accepted += 1
        assert title_of(record) == title_of(genuine)
        answer_parts(record)
        page(record)
        assert Answer(record).to_csv() == Answer(genuine).to_csv()
    assert accepted < many / 4
