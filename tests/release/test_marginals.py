"""Contingency tables from end to end: on real rows, with a ledger and a checker."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import lastbit as lb
from lastbit.checker.dispatch import problem_of
from lastbit.errors import BudgetExceeded, InvalidParameter, QueryRefused, WrongType
from lastbit.kernel import answering, noise
from lastbit.kernel.program import PairDraws
from lastbit.ledger.ledger import Ledger
from lastbit.release import marginals as module
from lastbit.release.certifying import program_of
from lastbit.release.marginal_answer import Marginals
from lastbit.tables import RawRows
from lastbit.tables.backends.engines import Session
from lastbit.tables.plan.parts import LaplacePart
from tests.cli.running import lastbit
from tests.kernel.unsealing import marginal_counts

ROWS = """SELECT range AS person, CASE range % 3 WHEN 0 THEN 'n' WHEN 1 THEN 's' END AS region,
    range % 2 = 0 AS old, range % 80 AS age FROM range(3000)"""
KEYS = {"region": ["n", "s", None]}
COLUMNS = {"region": "region", "old": "old", "band": "bin(age, 0, 20, 40, 80)"}


def table(**declared: Any) -> Any:
    rows = duckdb.connect().sql(ROWS).to_arrow_table()
    given: dict[str, Any] = {"each_row": True, "name": "people", "keys": KEYS} | declared
    return lb.table(rows, **given)


def asked(**declared: Any) -> Any:
    return table(**declared).marginals(COLUMNS)


def test_all_tables_come_at_one_price() -> None:
    answer = asked().release(epsilon=1)
    sets = [t.columns for t in answer]
    assert sets == [
        ("region",), ("old",), ("band",), ("region", "old"), ("region", "band"), ("old", "band"),
    ]  # fmt: skip
    assert answer.cost.epsilon == 1 and answer.cost.delta == 0
    assert problem_of(answer.record) is None
    near = answer["region", "old"]["n", True]
    assert abs(near.count - 500) < 400 and near.low <= near.noisy <= near.high
    assert near.standard_error <= answer.record["rows"][0]["cells"][0]["standard_error"]


@pytest.mark.parametrize("price", [{"epsilon": 1}, {"rho": "1/2"}, {"epsilon": 1, "delta": "1e-6"}])
def test_rows_and_columns_add_up_to_the_other_tables(price: dict[str, Any]) -> None:
    answer = asked(each_row=False, unit="person", max_rows=2).release(**price)
    for two in answer.tables:
        if len(two.columns) < 2:
            continue
        for place, name in enumerate(two.columns):
            for one in answer[name]:
                cells = [cell for cell in two if cell.keys[place] == one.keys[0]]
                assert sum((cell.exact for cell in cells), Fraction(0)) == one.exact
                assert sum(cell.whole for cell in cells) == one.whole
    totals = {sum((cell.exact for cell in t), Fraction(0)) for t in answer}
    assert len(totals) == 1 and len({sum(cell.whole for cell in t) for t in answer}) == 1


def test_noise_so_small_that_the_truth_is_seen() -> None:
    answer = asked().release(epsilon=10**6)
    truth = duckdb.execute(
        f"SELECT region, old, count(*) FROM ({ROWS}) GROUP BY region, old"
    ).fetchall()
    for region, old, count in truth:
        assert answer["region", "old"][region, old].whole == count


def test_each_noisy_cell_is_the_raw_one_with_the_noise_of_the_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every table goes once through the mechanism of its part, with all its cells."""
    seen: list[tuple[Any, list[int]]] = []

    def noisy(step: Any, exact: list[int]) -> list[int]:
        seen.append((step, exact))
        return [number + 7 for number in exact]

    monkeypatch.setattr(noise, "add_noise", noisy)
    question = asked()
    for price, kind in (({"epsilon": 1}, "laplace"), ({"rho": 1}, "gaussian")):
        seen.clear()
        answer, plan = question.release(**price), question.plan(**price)
        assert tuple(step for step, _ in seen) == program_of(plan).steps
        assert all(step.mechanism == kind for step, _ in seen)
        cells = [int(row["noisy"]) - 7 for row in answer.record["rows"]]
        assert cells == [number for _, exact in seen for number in exact]
        assert [sum(exact) for _, exact in seen] == [3000] * 6


@pytest.mark.parametrize("unit", [None, "person"])
def test_one_unit_costs_exactly_the_price(unit: str | None) -> None:
    """The loss of a neighbour that moves every table by all it may: reached, and not passed.

    Laplace noise of scale s on a table that moves by d in L1, all in one cell, has the loss d/s.
    """
    rows = "SELECT range AS person, 'n' AS region, true AS old, 5 AS age FROM range({})"
    given: dict[str, Any] = {"each_row": True} if unit is None else {"unit": unit, "max_rows": 1}
    counts, losses = [], Fraction(0)
    for number in (7, 8):
        held = duckdb.connect().sql(rows.format(number)).to_arrow_table()
        question = lb.table(held, name="people", keys=KEYS, **given).marginals(COLUMNS)
        plan = question.plan(epsilon="2/3")
        counts.append(marginal_counts(plan.query, plan.card, plan.marginals))
    for part, *both in zip(plan.parts, *counts, strict=True):
        pairs = zip(*both, strict=True)
        assert isinstance(part, LaplacePart)
        losses += sum(abs(a - b) for a, b in pairs) / part.scale
    assert losses == Fraction(2, 3)


def test_a_cell_that_the_engine_forgot_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of marginals that nobody asked for, or that lack a column: no number is made up."""
    real = vars(Session)["marginal_counts"]

    def short(*given: Any) -> RawRows:
        raw = real(*given)
        return RawRows(raw.statement, [row[:-1] for row in raw.unsealed_rows])

    monkeypatch.setattr(Session, "marginal_counts", short)
    with pytest.raises(lb.errors.EngineFailed):
        asked().release(epsilon=1)


def test_it_is_charged_once_and_recorded(tmp_path: Path) -> None:
    books = Ledger.open(tmp_path / "books.db")
    budget = lb.Budget(kind="pure", epsilon=Fraction(3, 2))
    question = asked(budget=budget)
    first = question.release(epsilon=1, ledger=books)
    again = question.release(epsilon=1, ledger=books)
    assert first.charged and not again.charged and again == first
    assert problem_of(first.record) is None and books.problems() == []
    assert books.spent("people").epsilon == 1
    fewer = table(budget=budget).marginals(["region"], up_to=1)
    with pytest.raises(BudgetExceeded):
        fewer.release(epsilon=1, ledger=books)
    assert fewer.release(epsilon="1/2", ledger=books).charged


def test_an_interval_holds_the_noisy_count_and_half_of_it_is_the_accuracy() -> None:
    question = asked()
    answer, part = question.release(epsilon=1), question.plan(epsilon=1).parts[0]
    half = part.law.quantile(Fraction(39, 40))
    for cell in answer["region"]:
        assert (cell.low, cell.high) == (cell.noisy - half, cell.noisy + half)


def test_saved_tables_are_read_back_and_checked(tmp_path: Path) -> None:
    answer = asked().release(epsilon=1)
    answer.save(tmp_path / "tables.json")
    assert Marginals.load(tmp_path / "tables.json") == answer
    assert lastbit("check", str(tmp_path / "tables.json")).exit_code == 0
    lines = answer.to_csv(tmp_path / "tables.csv").splitlines()
    assert lines[0] == "table,region,old,band,count,standard_error,whole,noisy,low,high"
    assert len(lines) == 1 + len(answer.record["rows"])
    assert "one-way and two-way tables" in question_words()


def question_words() -> str:
    return str(asked().explain(epsilon=1))


def test_what_is_shown_says_what_intervals_belong_to() -> None:
    answer = asked().release(epsilon=1)
    assert "is that of the noisy count" in str(answer)
    assert "all" in str(answer) and "<pre>" in answer._repr_html_()
    assert repr(answer).startswith("<Marginals: 6 tables of region, old, band;")


@pytest.mark.parametrize(
    ("columns", "remedy"), [(["age"], "bins"), ([], "name one"), (["region", "region"], "once")]
)
def test_columns_without_public_keys_are_refused(columns: list[str], remedy: str) -> None:
    with pytest.raises(QueryRefused, match=remedy):
        table().marginals(columns)


def test_other_questions_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="up_to"):
        table().marginals(["region"], up_to=3).plan(epsilon=1)
    with pytest.raises(QueryRefused, match="group_by"):
        table().group_by("region").marginals(["old"])
    with pytest.raises(WrongType, match="names"):
        table().marginals([1])
    answer = asked().release(epsilon=1)
    with pytest.raises(InvalidParameter, match="no table"):
        answer["age"]
    with pytest.raises(InvalidParameter, match="not a cell"):
        answer["region"]["x"]
    with pytest.raises(WrongType, match="not of marginals"):
        Marginals({"rows": []})


def test_filters_and_limits_on_rows_hold() -> None:
    question = table(each_row=False, unit="person", max_rows=1).where("age < 40")
    answer = question.marginals(["old"], up_to=1).release(epsilon=10**6)
    sql = f"SELECT old, count(*) FROM ({ROWS}) WHERE age < 40 GROUP BY old"
    truth = duckdb.execute(sql).fetchall()
    assert {cell.keys[0]: cell.whole for cell in answer["old"]} == dict(truth)


# ---------------------------------------------------------------- pairs that are chosen privately


def dependent() -> Any:
    sql = """SELECT range % 4 AS a, range % 4 AS b, range // 4 % 4 AS c,
        range // 16 % 4 AS d FROM range(6400)"""
    rows = duckdb.connect().sql(sql).to_arrow_table()
    keys = {name: [0, 1, 2, 3] for name in "abcd"}
    return lb.table(rows, each_row=True, keys=keys, name="t")


def test_the_pair_that_is_not_independent_is_measured() -> None:
    """Its score is 4,800 rows above all others: with this rate, others have odds below 1e-20."""
    answer = dependent().marginals(list("abcd"), pairs=1).release(epsilon=10)
    assert [t.columns for t in answer][4:] == [("a", "b")]
    assert problem_of(answer.record) is None and answer.cost.epsilon == 10
    assert "1 of 6 two-way tables were chosen privately" in str(answer)
    assert "which pairs are measured (1 of 6)" in dependent().marginals(
        list("abcd"), pairs=1
    ).explain(epsilon=1)


def test_an_account_of_gaussian_noise_does_not_pay_for_draws() -> None:
    assert dependent().marginals(list("abc")).plan(rho=1).gaussian_noise
    assert not dependent().marginals(list("abc"), pairs=1).plan(rho=1).gaussian_noise


def test_scores_move_no_further_than_tables() -> None:
    """All tables of two columns with few rows and their neighbours."""
    plan = dependent().marginals(list("abc"), pairs=1).plan(epsilon=1)
    (draws,) = (step for step in program_of(plan).steps if isinstance(step, PairDraws))
    base = {one: [3, 0, 1, 0] * 4 for one in plan.selection.candidates}
    single = {one: [5, 1, 0, 2] for one in plan.marginals}
    scores = noise.pair_scores(draws, base, single)
    moved = []
    for place in range(16):
        for more in (1, -1):
            other = {
                one: [n + (more if i == (place * k) % 16 else 0) for i, n in enumerate(table)]
                for k, (one, table) in enumerate(base.items(), start=1)
            }
            found = noise.pair_scores(draws, other, single)
            moved.append(max(abs(found[one] - scores[one]) for one in base))
    assert max(moved) == plan.selection.distance_sensitivity == 1


def test_pairs_are_drawn_without_replacement_at_the_rate_of_the_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rates = []

    def first(distances: Any, *, rate: Fraction) -> Any:
        assert distances.shape[0] == 1 and distances.min() == 0
        rates.append((distances.shape[1], rate))
        return np.zeros(1, np.int64)

    monkeypatch.setattr(noise, "choice_exp_rows", first)
    question = dependent().marginals(list("abcd"), pairs=3)
    answer, plan = question.release(rho=1), question.plan(rho=1)
    assert rates == [(6, plan.selection.rate), (5, plan.selection.rate), (4, plan.selection.rate)]
    assert [t.columns for t in answer][4:] == [("a", "b"), ("a", "c"), ("a", "d")]


# ---------------------------------------------------------------- nothing unpaid leaves

INSIDE = {
    "marginal_counts": Session,
    "sealed_integers": answering,
    "noisy_numbers": answering,
    "add_noise": noise,
    "agreeing": module,
    "whole_tables": module,
    "marginal_rows": module,
    "record_of": module,
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("name", INSIDE)
def test_a_failure_within_holds_no_number_of_the_data(
    name: str, recorded: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Raw counts are 1,000 rows of 3,000; a failure says its arguments, and none gets out."""
    calls: list[str] = []

    def failing(*given: Any, **named: Any) -> Any:
        calls.append(name)
        raise ValueError(f"canary {given} {named}")

    question = asked()
    monkeypatch.setattr(INSIDE[name], name, failing)
    books = tmp_path / "books.db" if recorded else None
    with pytest.raises(lb.errors.EngineFailed) as caught:
        question.release(epsilon=1, ledger=books)
    assert calls == [name]
    error: BaseException | None = caught.value
    assert error is not None and "canary" not in str(error)
    assert error.__cause__ is None and error.__context__ is None
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    holding = {room.__file__ for room in (answering, noise, module)}
    within = {f.f_code.co_name for f in frames if f.f_code.co_filename in holding}
    assert within <= {"release", "released_marginals", "answer_unrecorded", "_noisy"}
    if recorded:
        assert "stays charged" in str(error)
