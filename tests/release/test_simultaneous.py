"""Intervals that hold all together: exactly as wide as the largest of the noises asks for."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import duckdb
import pytest

import lastbit as lb
from lastbit.errors import InvalidParameter
from lastbit.exact import arb_of, working_precision
from lastbit.laws import DiscreteLaplace
from lastbit.release.simultaneous import _each

GROUPS = 20


def visits(**more: Any) -> Any:
    rows = duckdb.sql(
        f"SELECT range // 3 AS u, range % {GROUPS} AS g, range % 100 AS x FROM range(60000)"
    )
    columns = [lb.Column(name="x", type="integer", bounds=(0, 99), nullable=False)]
    return lb.table(rows, unit="u", max_rows=3, name="visits", columns=columns, **more)


@pytest.fixture(scope="module")
def table() -> Any:
    return visits(keys={"g": list(range(GROUPS))})


def test_the_chance_of_each_is_that_of_the_largest() -> None:
    """(1 - each)**N >= 19/20, and not by much; the mutant, 1/(20 N), is less."""
    for numbers in (1, 7, 2000):
        with working_precision(256):
            together = arb_of(1 - _each(numbers)) ** numbers
            assert together >= arb_of(Fraction(19, 20))
            assert arb_of(1 - _each(numbers) * Fraction(1_000_001, 1_000_000)) ** numbers < arb_of(
                Fraction(19, 20)
            )
        assert _each(numbers) > Fraction(1, 20 * numbers) or numbers == 1


def test_counts_are_as_wide_as_their_law_says(table: Any) -> None:
    sql = "SELECT g, COUNT(DISTINCT u) AS n FROM visits GROUP BY g"
    answer = table.sql(sql).release(epsilon=1)
    wide = answer.simultaneous()
    (part,) = answer.record["plan"]["parts"]
    far = DiscreteLaplace(Fraction(part["scale"])).quantile(1 - _each(GROUPS) / 2)
    for row in wide:
        cell = row.cell("n")
        assert (cell.value - cell.low, cell.high - cell.value) == (far, far)
    assert answer.shown is None and answer[0].cell("n").low > wide[0].cell("n").low
    assert "hold all together, 20 numbers" in " ".join(wide.notes)


def test_means_keep_their_own_and_the_note_says_which_are_in_it(table: Any) -> None:
    sql = "SELECT g, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m FROM visits GROUP BY g"
    answer = table.sql(sql).release(epsilon=1)
    wide = answer.simultaneous()
    for before, after in zip(answer, wide, strict=True):
        assert before.cell("m") == after.cell("m")
        for name in ("n", "s"):
            old, new = before.cell(name), after.cell(name)
            assert new.low < old.low < old.high < new.high and new.value == old.value
    assert "of n, s hold all together, 40 numbers" in " ".join(wide.notes)
    assert lb.release.record_problem(wide.record) is None


def test_an_answer_without_counts_and_sums_is_not_said_to_hold_together(table: Any) -> None:
    answer = table.sql("SELECT g, AVG(x) AS m FROM visits GROUP BY g").release(epsilon=1)
    wide = answer.simultaneous()
    assert [row.cells for row in wide] == [row.cells for row in answer]
    words = " ".join(wide.notes)
    assert "hold all together" not in words and "shows no count and no sum" in words


def test_whole_ends_of_units_move_by_their_chance_too() -> None:
    """They are those that the wider noise interval would have had, or wider."""
    rows = duckdb.sql("SELECT range // 12 AS u, range % 12 AS g FROM range(24000)")
    some = lb.table(rows, unit="u", max_groups=4, max_rows=12, keys={"g": list(range(12))})
    profile = some.profile(epsilon=20, keys=[["g"]])
    answer = some.group_by("g").agg(n=lb.count_units()).release(epsilon=8, profile=profile)
    said = answer.record["whole"]["columns"]["n"]
    share, lost = Fraction(said["share"]["low"]), Fraction(said["lost"]) + Fraction(said["hidden"])
    assert share < 1
    for row in answer.simultaneous():
        cell = row.cell("n")
        assert cell.high is not None and cell.whole_high is not None
        high = cell.high + Fraction(2 * math.sqrt(cell.high * (1 - share)))
        assert cell.whole_high >= min(high / share, high + lost)


@pytest.mark.evidence
def test_releases_hold_together(table: Any) -> None:
    """300 lists of 20 counts: about 5 % have one outside, and of single intervals 64 % have.

    False alarm: P[Binomial(300, 1/20) > 45] < 2**-30; of the mutant P[... <= 45] < 2**-100.
    """
    sql = "SELECT g, COUNT(DISTINCT u) AS n FROM visits GROUP BY g"
    truth = 3000  # every unit has three rows, in three groups
    outside = alone = 0
    for _ in range(300):
        answer = table.sql(sql).release(epsilon=1)
        alone += any(not r.cell("n").low <= truth <= r.cell("n").high for r in answer)
        outside += any(
            not r.cell("n").low <= truth <= r.cell("n").high for r in answer.simultaneous()
        )
    assert outside <= 45 < alone


def test_it_goes_with_consistent_counts(table: Any) -> None:
    question = table.sql("SELECT g, COUNT(*) AS n FROM visits GROUP BY g")
    answer = question.release(epsilon=1, simultaneous=True, consistent=True)
    assert answer[0].cell("n").high - answer[0].cell("n").low > 30
    with pytest.raises(InvalidParameter, match="take it before"):
        question.release(epsilon=1, consistent=True).simultaneous()


def test_what_is_refused_charges_nothing(tmp_path: Any) -> None:
    """Of found keys nobody knows how many HAVING left out."""
    ledger = tmp_path / "books.db"
    question = visits().sql("SELECT g, COUNT(*) AS n FROM visits GROUP BY g HAVING n > 10")
    with pytest.raises(InvalidParameter, match="declare the keys"):
        question.release(epsilon=1, delta="1e-6", simultaneous=True, ledger=ledger)
    assert not ledger.exists()
