"""The benchmark of honest numbers can fail: it sees bias, open ends and losses without a line."""

import math
from dataclasses import dataclass
from fractions import Fraction

import duckdb
import pytest
from honest_questions import QUESTIONS, TABLES, Question, true_rows
from honest_tables import Tally, judge_releases, key_text, lines_missing, problems, rounded_bounds


@dataclass
class Shown:
    value: float
    low: float | None
    high: float | None
    whole_low: float | None = None
    whole_high: float | None = None


def tally(truth: float, *cells: Shown, has_whole: bool = False) -> Tally:
    made = Tally(truth)
    for cell in cells:
        made.add_cell(cell, has_whole=has_whole)
    return made


def found(number: Tally, *notes: str, function: str = "count", **record: object) -> dict:
    columns = [{"name": "n", "function": function}]
    plan = {"max_rows": 5, "max_groups": 2}
    return {
        "record": {"columns": columns, "plan": plan, **record},
        "notes": notes,
        "truth": {((), "n"): number.truth},
        "tallies": {((), "n"): number},
    }


LOW = tally(20_000, *(Shown(18_442 + i, 18_366, 18_518) for i in range(-5, 5)))
FAIR = tally(20_000, *(Shown(20_000 + i, 19_900, 20_100) for i in range(-5, 6)))


def test_forty_questions_to_six_tables_in_words_that_differ():
    assert len(QUESTIONS) == len({(q.table, q.words) for q in QUESTIONS}) == 40
    assert len(TABLES) == 6
    for question in QUESTIONS:
        assert f"FROM {question.table}" in question.sql
        assert "clamp(" not in question.sql  # nothing is declared, in the question neither


def test_a_number_that_is_low_is_seen_and_needs_a_line():
    assert LOW.is_biased and not FAIR.is_biased
    assert LOW.bias == pytest.approx(1558.5, abs=1) and FAIR.bias < 1
    assert judge_releases(found(LOW), {})["noise"] == 0
    assert lines_missing(found(LOW)) == ["n"]
    assert lines_missing(found(FAIR)) == []
    assert lines_missing(found(LOW, "Each customer counts for at most 5 rows: ...")) == []
    assert lines_missing(found(LOW, whole={"columns": {"n": {"limits": ["max_rows"]}}})) == []
    rows = "Each customer counts for at most 5 rows: ..."  # no reason for a count of customers
    assert lines_missing(found(LOW, rows, function="count_units")) == ["n"]
    assert lines_missing(found(LOW, "Each customer counts for at most 1 rows: ...")) == ["n"]


def test_whole_intervals_count_where_there_are_any_and_open_ones_are_wide():
    closed = tally(20_000, Shown(18_442, 18_366, 18_518, 18_366, 20_500), has_whole=True)
    judged = judge_releases(found(closed), {})
    assert (judged["noise"], judged["whole"]) == (0, 1)
    assert judged["width"] == pytest.approx((20_500 - 18_366) / 2 / 20_000)
    endless = tally(20_000, Shown(18_442, 18_366, 18_518, 18_366, None), has_whole=True)
    judged = judge_releases(found(endless), {})
    assert (judged["whole"], judged["open"], judged["width"]) == (1, 1, 1)
    assert judge_releases(found(FAIR), {((("x",)), "n"): 0.1})["width"] == 1  # it is not shown


def test_what_must_hold_fails_where_it_does_not():
    good = {"noise": 0.95, "whole": 0.95, "width": 0.1}
    question = {"table": "orders", "words": "w", "nothing": good, "guess": good, "hand": good}
    kinds = {"ratio": {"coverage": 0.95, "width": 1.1}}
    assert not list(problems([question], kinds))
    for change in ({"whole": 0.89}, {"width": 0.16}, {"refused": "no"}, {"lines missing": ["n"]}):
        assert len(list(problems([{**question, "nothing": {**good, **change}}], kinds))) == 1
    for change in ({"coverage": 0.93}, {"coverage": 0.98}, {"width": 1.2}):
        assert len(list(problems([question], {"ratio": {**kinds["ratio"], **change}}))) == 1


def test_the_truth_has_rows_beyond_a_limit_and_days_as_people_write_them(tmp_path):
    path = tmp_path / "seasons.parquet"
    duckdb.sql(f"COPY (SELECT range AS team FROM range(30)) TO '{path}'")
    teams = Question(
        table="seasons",
        words="teams",
        sql="SELECT team, COUNT(*) AS n FROM seasons GROUP BY team ORDER BY n DESC LIMIT 10",
    )
    assert len(true_rows(teams, path)[1]) == 30
    days = duckdb.execute("SELECT DATE '1997-01-01', TIMESTAMP '1997-01-01'")
    ((day, time),) = days.fetchall()
    assert key_text(day) == key_text(time) == "1997-01-01"
    assert rounded_bounds(0.0, 1506.1) == (Fraction(0), Fraction(1507))
    assert [float(end) for end in rounded_bounds(1.004, 40.746 / 3)] == [1.0, 13.59]
    assert math.isinf(tally(1, Shown(1, None, 2)).noise[0][1])
