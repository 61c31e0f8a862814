"""Several questions at one price: what is bought, what is charged, and what agrees."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings, strategies as st

import lastbit as lb
from lastbit.checker import problem_of
from lastbit.errors import BudgetExceeded, InvalidParameter, LastbitError, WrongType
from lastbit.ledger import Ledger
from lastbit.release import paying
from lastbit.release.workload import agreeing_counts
from tests.cli.running import lastbit

BOOKS = "visits.ledger"
ROWS = (
    "SELECT range // 2 AS id, (range % 10)::DOUBLE AS cost, range % 2 = 0 AS urgent, "
    "['n', 's', 'e', 'w'][1 + range % 4] AS region FROM range(4000)"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    duckdb.sql(f"COPY ({ROWS}) TO 'visits.parquet'")
    return tmp_path


def visits(**more: Any) -> Any:
    cost = lb.Column(name="cost", type="number", bounds=(0, 9), nullable=False)
    keys = {"region": ["n", "s", "e", "w"]}
    given: dict[str, Any] = {"unit": "id", "max_rows": 2, "columns": {"cost": cost}, "keys": keys}
    return lb.table("visits.parquet", **(given | more))


TEXTS = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT region, COUNT(*) AS n FROM visits GROUP BY region ORDER BY n DESC",
    "SELECT region, AVG(cost) AS cost FROM visits GROUP BY region",
    "SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits WHERE urgent",
    "SELECT region, COUNT(*) AS k, COUNT(DISTINCT id) AS m FROM visits GROUP BY region LIMIT 2",
    "SELECT SUM(cost) / COUNT(*) AS each FROM visits",
)


def several(*places: int, **more: Any) -> Any:
    return lb.workload([visits(**more).sql(TEXTS[place]) for place in places])


def spent() -> Fraction:
    return Fraction(Ledger.open(BOOKS).spent("visits").epsilon)


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.integers(0, len(TEXTS) - 1), min_size=1, max_size=5),
    st.one_of(st.integers(1, 9), st.decimals("0.01", 5, places=3)),
    st.booleans(),
)
def test_prices_add_up_to_the_price(places: list[int], price: Any, by_rho: bool) -> None:
    """Every question is answered by one plan, and no plan is asked for more than once."""
    plan = several(*places).plan(**{"rho" if by_rho else "epsilon": price})
    assert (plan.cost.rho if by_rho else plan.cost.epsilon) == Fraction(price)
    assert sorted(i for some in plan.serves for i in some) == list(range(len(places)))
    assert len({one.digest for one in plan.plans}) == len(plan.plans)


def test_shared_measures_are_bought_once() -> None:
    plan = several(1, 2, 4).plan(epsilon=1)
    (only,) = plan.plans
    kinds = sorted(measure.kind for measure in only.measures)
    assert kinds == ["above", "below", "units"] and plan.serves == ((0, 1, 2),)


def test_smaller_groups_get_more_of_the_price() -> None:
    total, parts = several(0, 1).plan(epsilon=1).plans
    assert parts.cost.epsilon == 4 * total.cost.epsilon == Fraction(4, 5)
    alike = several(0, 1).plan(epsilon=1, sizes=[1000, 1000]).plans
    assert {one.cost.epsilon for one in alike} == {Fraction(1, 2)}


def test_every_answer_is_on_record_and_checks() -> None:
    questions = several(*range(len(TEXTS)))
    answers = questions.release(epsilon=3, ledger=BOOKS)
    assert spent() == 3 and all(answer.charged for answer in answers)
    assert all(problem_of(answer.record) is None for answer in answers)
    assert [answer.columns for answer in answers] == [
        ("n",), ("n",), ("cost",), ("n", "s"), ("k", "m"), ("each",)
    ]  # fmt: skip
    assert answers[1]["n"] == sorted(answers[1]["n"], reverse=True) and len(answers[4]) == 2
    shared = {row.region: row.n for row in answers[1]}
    assert all(row.k == shared[row.region] for row in answers[4])
    again = questions.release(epsilon=3, ledger=BOOKS)
    assert spent() == 3 and not any(answer.charged for answer in again)
    assert [a.to_csv() for a in again] == [a.to_csv() for a in answers]


@settings(max_examples=4, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=4, unique=True), st.integers(1, 99))
def test_a_budget_for_a_part_refuses_before_the_first_charge(places: Any, hundredths: int) -> None:
    Path(BOOKS).unlink(missing_ok=True)
    budget = lb.Budget(kind="pure", epsilon=Fraction(hundredths, 100))
    with pytest.raises(BudgetExceeded):
        several(*places, budget=budget).release(epsilon=1, ledger=BOOKS)
    assert not Path(BOOKS).exists()  # a refused question leaves no file behind
    Ledger.open(BOOKS).account("visits", budget, "add-remove of units")
    with pytest.raises(LastbitError):
        several(*places, budget=budget).release(epsilon=1, ledger=BOOKS)
    assert spent() == 0


@pytest.mark.parametrize("dies_at", [0, 1, 2])
def test_a_kill_between_answers_resumes_at_no_charge(
    dies_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All prices are there before the first answer; afterwards nothing is charged again."""
    budget = lb.Budget(kind="pure", epsilon=3)
    questions, answer, calls = several(0, 2, 3, budget=budget), vars(paying)["answer"], []

    def dying(*arguments: Any, **how: Any) -> Any:
        calls.append(spent())
        if len(calls) == dies_at + 1:
            raise KeyboardInterrupt
        return answer(*arguments, **how)

    with monkeypatch.context() as patch:
        patch.setattr(paying, "answer", dying)
        with pytest.raises(KeyboardInterrupt):
            questions.release(epsilon=3, ledger=BOOKS)
    assert calls == [3] * (dies_at + 1)
    answers = questions.release(epsilon=3, ledger=BOOKS)
    assert spent() == 3 and len(answers) == 3 and not any(one.charged for one in answers)


@settings(max_examples=100)
@given(
    st.integers(-100, 10**6),
    st.lists(st.integers(-100, 10**5), min_size=1, max_size=6),
    st.fractions(min_value="1/9", max_value=10**4),
    st.fractions(min_value="1/9", max_value=10**4),
)
def test_totals_and_parts_agree_and_are_the_nearest(
    total: int, parts: list[int], own: Fraction, each: Fraction
) -> None:
    """Against moves in any direction that keeps them agreeing: none is nearer, but for rounding."""
    counts = [Fraction(part) for part in parts]
    whole, found = agreeing_counts((Fraction(total), own), counts, each)
    assert sum(found) == whole

    def distance(t: int, some: list[int]) -> Fraction:
        squares = sum(((a - b) ** 2 for a, b in zip(some, counts, strict=True)), Fraction(0))
        return (t - total) ** 2 / own + squares / each

    for step in (-2, 2):
        for i in range(len(found)):
            moved = [n + step * (i == j) for j, n in enumerate(found)]
            assert distance(whole, found) <= distance(whole + step, moved)


def test_answers_are_made_to_agree() -> None:
    every, parts, cost = several(0, 1, 2).release(epsilon=1, ledger=BOOKS, consistent=True)
    assert every.value == sum(parts["n"])
    assert all(row.cell("n").low <= row.n <= row.cell("n").high for row in parts)
    plain = several(0, 1, 2).release(epsilon=1, ledger=BOOKS)
    assert plain[2].to_csv() == cost.to_csv() and problem_of(every.record) is None


@pytest.mark.parametrize(
    ("questions", "error"),
    [([], WrongType), (None, WrongType), (["SELECT 1"], WrongType), (3, WrongType)],
)
def test_what_is_no_workload_is_refused(questions: Any, error: type[LastbitError]) -> None:
    with pytest.raises(error):
        lb.workload(questions)


def test_two_tables_are_two_workloads() -> None:
    other = visits(name="other").sql("SELECT COUNT(*) AS n FROM other")
    with pytest.raises(InvalidParameter, match="several tables"):
        lb.workload([visits().sql(TEXTS[0]), other])
    for sizes in ([1], [1, 0], [1, float("nan")], [1, -2]):
        with pytest.raises(InvalidParameter):
            several(0, 1).plan(epsilon=1, sizes=sizes)
    for price in ({}, {"epsilon": 0}, {"epsilon": float("nan")}, {"epsilon": 1, "rho": 1}):
        with pytest.raises(LastbitError):
            several(0, 1).plan(**price)


CARD = """
[table]
name = "visits"
source = "visits.parquet"
neighbours = "add-remove"
[unit]
column = "id"
max_rows = 2
[budget]
epsilon = 10
[ledger]
path = "visits.ledger"
[columns.id]
type = "integer"
[columns.region]
type = "text"
keys = ["n", "s", "e", "w"]
[columns.cost]
type = "number"
bounds = [0, 9]
nullable = false
"""


def test_the_command_shows_and_asks(folder: Path) -> None:
    (folder / "visits.toml").write_text(CARD)
    (folder / "questions.sql").write_text("; -- all;\n".join(TEXTS[:3]))
    shown = lastbit("plan", "visits.toml", "questions.sql", "--epsilon", "3")
    assert shown.exit_code == 0 and "In all: epsilon = 3" in shown.output
    assert not Path(BOOKS).exists()
    asked = lastbit("plan", "visits.toml", "questions.sql", "--epsilon", "3", "--release")
    assert asked.exit_code == 0 and "2. region" in asked.output and spent() == 3
    wrong = lastbit("plan", "visits.toml", "questions.sql", "--epsilon", "3", "--consistent")
    assert wrong.exit_code == 2 and spent() == 3


def test_a_question_of_little_weight_has_a_price_all_the_same() -> None:
    """Failed before: the last of three was to cost nothing, and was refused."""
    plan = several(0, 1, 3).plan(epsilon=1, sizes=[1, 10**9, 10**9])
    assert plan.cost.epsilon == 1 and all(one.cost.epsilon > 0 for one in plan.plans)


def test_a_delta_beside_rho_is_for_questions_whose_keys_are_found() -> None:
    """Failed before: refused with delta for the one question, and without it for the other."""
    text = "SELECT upper(region) AS r, COUNT(*) AS n FROM visits GROUP BY upper(region)"
    table = visits(max_groups=2)
    questions = [table.sql(TEXTS[0]), table.sql(text), table.sql(TEXTS[3])]
    plan = lb.workload(questions).plan(rho=1, delta="1e-6")
    assert plan.cost.rho == 1 and plan.cost.delta == Fraction(1, 10**6)
    assert [one.cost.delta > 0 for one in plan.plans] == [False, True, False]
    with pytest.raises(InvalidParameter, match="drop it"):
        lb.workload(questions[:1]).plan(rho=1, delta="1e-6")


def test_sizes_that_are_no_list_are_refused() -> None:
    """Failed before: an error of Python's own."""
    with pytest.raises(WrongType, match="sizes"):
        several(0).plan(epsilon=1, sizes=3)


def test_whole_intervals_hold_counts_that_were_made_to_agree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Failed before: the noise interval was widened, the whole one was not."""
    far = (-1000, [-250] * 4)
    module = sys.modules["lastbit.release.workload"]
    monkeypatch.setattr(module, "agreeing_counts", lambda *_: far)
    for answer in several(0, 1).release(epsilon=1, consistent=True):
        cells = [cell for row in answer.rows for cell in row.cells]
        assert {cell.value for cell in cells} <= {-1000, -250}
        assert all(cell.low <= cell.value and cell.whole_low <= cell.value for cell in cells)


def test_the_same_formula_twice_is_one_answer() -> None:
    """Failed before: both were charged for and shown without their only column."""
    first, again, every = several(5, 5, 0).release(epsilon=1, ledger=BOOKS)
    assert first.columns == again.columns == ("each",) and spent() == 1
    assert first.value == again.value and every.columns == ("n",)
    assert problem_of(first.record) is None


# ---------------------------------------------------------------- limits that are left out


def heavy_visits() -> Any:
    """Units of 1 to 9 rows, of which nothing is declared but the unit."""
    sql = "SELECT range % 997 % 400 AS id, (range % 23)::DOUBLE AS cost FROM range(4000)"
    duckdb.sql(f"COPY ({sql}) TO 'heavy.parquet'")
    return lb.table("heavy.parquet", unit="id")


def test_limits_that_are_left_out_are_chosen_by_a_profile_on_record() -> None:
    table = heavy_visits()
    texts = ("SELECT COUNT(*) AS n FROM heavy", "SELECT AVG(cost) AS cost FROM heavy")
    asked = lb.workload([table.sql(text) for text in texts])
    asking: tuple[Any, ...] = (asked.explain, asked.release)
    for ask in asking:
        with pytest.raises(InvalidParameter, match="no profile of the table is on record"):
            ask(epsilon=2, ledger=BOOKS)
    assert not Path(BOOKS).exists() or not Ledger.open(BOOKS).spent("heavy").epsilon
    table.profile(epsilon=1, columns=["cost"], ledger=BOOKS)
    assert asked.plan(epsilon=2, ledger=BOOKS).cost.epsilon == 2
    answers = asked.release(epsilon=2, ledger=BOOKS)
    for answer in answers:
        assert problem_of(answer.record) is None
        assert any("From the profile, lastbit chose" in note for note in answer.notes)
        (cell,) = answer[0].cells
        assert cell.whole_low is not None and cell.whole_high is not None
    assert Ledger.open(BOOKS).spent("heavy").epsilon == 3
    again = asked.release(epsilon=2, ledger=BOOKS)
    assert [one.record["rows"] for one in again] == [one.record["rows"] for one in answers]
    assert Ledger.open(BOOKS).spent("heavy").epsilon == 3
