"""Answers of earlier versions keep the words of their time, and are accepted by them alone."""

from __future__ import annotations

import duckdb
import pytest

import lastbit as lb
from lastbit.checker.dispatch import problem_of

OLD = (
    "Intervals hold the number without noise in 95 % of all releases. They do not cover what "
    "limits on rows, bounds and rounding did to the data, and nobody may know if they did.",
    "Each id counts for at most 3 rows: where there are more, all of them count for less.",
)


@pytest.fixture(scope="module")
def records():
    rows = duckdb.sql("SELECT range % 50 AS id, range % 2 AS g FROM range(200)")
    table = lb.table(rows, unit="id", max_rows=3, keys={"g": [0, 1]})
    answer = table.group_by("g").agg(n=lb.count()).release(epsilon=1)
    return answer.record, table.marginals(["g"]).release(epsilon=1).record


def test_earlier_words_are_accepted_together_and_not_mixed(records):
    for record in records:
        assert problem_of(record) is None
        notes = record["notes"]
        places = [
            place for place, note in enumerate(notes) if "noise ±" in note or "Each id" in note
        ]
        earlier = list(notes)
        for place, words in zip(places, OLD, strict=True):
            earlier[place] = words
            mixed = [*notes[:place], words, *notes[place + 1 :]]
            assert problem_of({**record, "notes": mixed}) == "the notes say something else"
        assert problem_of({**record, "notes": earlier}) is None
        assert problem_of({**record, "notes": notes[:-1]}) == "the notes say something else"
