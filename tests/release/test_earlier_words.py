"""Answers of earlier versions keep the words of their time, and are accepted by them alone."""

from __future__ import annotations

import re
from typing import Any

import duckdb
import pytest

import lastbit as lb
from lastbit.checker.dispatch import problem_of

INTERVALS = (
    "Intervals hold the number without noise in 95 % of all releases. They do not cover what "
    "limits on rows, bounds and rounding did to the data, and nobody may know if they did.",
    "The noise ± holds the number without noise in 95 % of all releases, each by itself. What "
    "limits on rows, groups and values left out is in the whole interval alone.",
)
AT_MOST = (
    "Each id counts for at most 3 rows: where there are more, all of them count for less.",
    "Each id counts for at most 3 rows: of one with more, all count for less. Means and quantiles "
    "are of rows so counted.",
)
OTHERS = {
    "Each interval": "An interval belongs to the noisy count of its cell; the consistent count has "
    "the standard error beside it. Whole tables agree as well, and are not below 0.",
    "lastbit leaves": "Rows count if each of the columns has one of its declared keys there.",
    "Variances": "Variances are those of the rows themselves (divided by n, not n - 1).",
    "Quantiles": "Quantiles are chosen among bins between the bounds, and shown as the middle of "
    "the bin, or as its lower edge where a bin is one step.",
    "Computed": "Columns made of others are computed from released numbers and cost nothing. Where "
    "a divisor may be 0, or a part is a quantile among others, they have no interval.",
    "Each id adds": "Of distinct values each id names at most 3, chosen afresh: values that it "
    "alone has beyond these are not counted.",
    "Counts near": "The count by which a key is shown is the count in the answer. Its interval, "
    "and those of means and variances made of it, hold in 95 % of all releases, those without the "
    "key included; where noise lifted a key to that number, they miss more often.",
    "Each noise": INTERVALS,
    "Each id counts": AT_MOST,
}
SHOWN = (
    (
        r"Groups with fewer than about (\d+) to (\d+) ids are withheld\. .*",
        r"A key is shown if about \1 units or more have it and no other, or about \2 that have "
        "several, a unit with K keys counting as one over the square root of K; others are "
        "unknown.",
    ),
    (
        r"Groups with fewer than about (\d+) ids are withheld\.",
        r"A key is shown if about \1 units or more have it; others are unknown, and counts close "
        "to that number tend to be too high.",
    ),
)


@pytest.fixture(scope="module")
def records():
    rows = duckdb.sql("SELECT range % 900 AS id, range % 2 AS g, range % 7 AS x FROM range(2700)")
    table = lb.table(rows, unit="id", max_rows=3, keys={"g": [0, 1]})
    many = table.agg(
        d=lb.count_distinct("x"), v=lb.variance("x", 0, 7), m=lb.median("x", 0, 7), n=lb.count()
    )
    ratio = table.sql("SELECT x, COUNT(DISTINCT id) AS n, SUM(clamp(g, 0, 1)) / COUNT(*) AS r "
                      "FROM rows GROUP BY x")  # fmt: skip
    found = table.sql("SELECT x, COUNT(*) AS n FROM rows GROUP BY x")
    questions: list[Any] = [table.group_by("g").agg(n=lb.count()), many, table.marginals(["g"])]
    answers = [question.release(epsilon=1) for question in questions]
    answers += [question.release(epsilon=1, delta="1e-6") for question in (ratio, found)]
    return [answer.record for answer in answers]


def earlier_words(note: str, version: int) -> str:
    """The note as versions before this one said it; of two, the older one is 0."""
    for beginning, words in OTHERS.items():
        if note.startswith(beginning):
            return words if isinstance(words, str) else words[version]
    for words in SHOWN:
        note = re.sub(*words, note)
    return note


@pytest.mark.parametrize("version", [0, 1])
def test_earlier_words_are_accepted_together_and_not_mixed(records, version):
    changed = set()
    for record in records:
        assert problem_of(record) is None
        notes = record["notes"]
        earlier = [earlier_words(note, version) for note in notes]
        assert problem_of({**record, "notes": earlier}) is None
        assert problem_of({**record, "notes": earlier[:-1]}) == "the notes say something else"
        for place, (note, words) in enumerate(zip(notes, earlier, strict=True)):
            if note != words:
                changed.add(note[:10])
                mixed = [*notes[:place], words, *notes[place + 1 :]]
                assert problem_of({**record, "notes": mixed}) == "the notes say something else"
    assert len(changed) >= 10
