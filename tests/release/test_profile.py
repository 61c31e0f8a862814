"""The profile of a table: bought once for a state of the data, found again, shown."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lastbit as lb
from lastbit.errors import BudgetExceeded, InvalidParameter, WrongType
from lastbit.ledger import Ledger
from lastbit.release.profile import (
    Values,
    recorded_profiles,
    rows_question,
    values_question,
)
from lastbit.release.rows_per_unit import Noise
from lastbit.tables import ColumnName


def arrow(sql: str) -> Any:
    relation = duckdb.sql(sql)
    assert relation is not None
    return relation.to_arrow_table()


def visits(number: int = 6_000, rows: int = 3) -> Any:
    sql = f"""SELECT range // {rows} AS patient, ['a', 'b', 'c'][1 + range % 3] AS region,
              1990 + range % 7 AS year, 100.0 + range % 50 AS cost FROM range({number})"""
    return arrow(sql)


def spent(place: Path) -> Fraction:
    return Ledger.existing(place).accounts()[0].spent.epsilon


def test_a_profile_is_bought_once_for_these_data(tmp_path: Path) -> None:
    place = tmp_path / "a.ledger"
    table = lb.table(visits(), unit="patient", name="visits")
    asked: dict[str, Any] = {
        "columns": ["cost"],
        "keys": [["region"], ["region", "year"]],
        "ledger": place,
    }
    first = table.profile(epsilon="0.4", **asked)
    assert spent(place) == Fraction(4, 10) and len(first.answers) == 4
    assert all(answer.charged for answer in first.answers)
    again = table.profile(epsilon="0.9", **asked)
    assert spent(place) == Fraction(4, 10) and not any(one.charged for one in again.answers)
    assert (again.rows, again.groups, again.values) == (first.rows, first.groups, first.values)
    # only what is not there is bought
    table.profile(epsilon="0.1", columns=["cost", "year"], ledger=place)
    assert spent(place) == Fraction(5, 10)
    other = lb.table(visits(6_003), unit="patient", name="visits")
    other.profile(epsilon="0.1", ledger=place)
    assert spent(place) == Fraction(6, 10)
    table.profile(epsilon="0.1", ledger=place, fresh=True)
    assert spent(place) == Fraction(7, 10)


def test_what_it_says(tmp_path: Path) -> None:
    table = lb.table(visits(), unit="patient", name="visits")
    profile = table.profile(epsilon=300, columns=["cost"], keys=[["region"]])
    assert profile.rows is not None and profile.rows.counts[2] == 2_000
    assert profile.rows.limit == 4 and profile.rows.rows() == 6_000
    (groups,) = profile.groups.values()
    assert list(profile.groups) == [(ColumnName("region"),)] and groups.counts[2] == 2_000
    values = profile.values["cost"]
    inside = [edge for edge, count in zip(values.edges, values.likely, strict=False) if count]
    assert inside == [96, 128] and abs(sum(values.likely) - 2_000) <= 2
    text = str(profile)
    assert "groups of one unit by region" in text and "128 to 192" in text


def test_a_missing_key_is_a_group() -> None:
    rows = arrow(
        "SELECT range // 2 AS who, CASE WHEN range % 2 = 0 THEN 'a' END AS k FROM range(2_000)"
    )
    profile = lb.table(rows, unit="who").profile(epsilon=300, keys=[["k"]])
    (groups,) = profile.groups.values()
    assert groups.counts[:3] == (0, 1_000, 0)


def test_tuned_answers_are_the_profile(tmp_path: Path) -> None:
    place = tmp_path / "a.ledger"
    table = lb.table(visits(), unit="patient", max_rows=5, name="visits")
    lb.suggest_max_rows(table, epsilon="0.1", ledger=place)
    lb.suggest_bounds(table, "cost", epsilon=1, ledger=place)
    open_table = lb.table(visits(), unit="patient", name="visits")
    profile = open_table.profile(epsilon=1, columns=["cost"], ledger=place)
    assert spent(place) == Fraction(11, 10) and profile.rows is not None
    answer = open_table.agg(c=lb.mean("cost")).release(epsilon="0.5", ledger=place)
    assert spent(place) == Fraction(16, 10) and answer.cost.epsilon == Fraction(1, 2)


def test_an_open_table_can_be_tuned() -> None:
    table = lb.table(visits(), unit="patient", name="visits")
    assert lb.suggest_max_rows(table, epsilon=5).max_rows == 3
    assert lb.suggest_bounds(table, "cost", epsilon=5).bounds == (Fraction(96), Fraction(192))


def test_the_least_noise_holds_then_the_first(tmp_path: Path) -> None:
    table = lb.table(visits(), unit="patient", name="visits")
    place = tmp_path / "a.ledger"
    for price in ("0.1", "0.5", "0.2", "0.5"):
        table.profile(epsilon=price, ledger=place, fresh=True)
    books = Ledger.existing(place)
    data = next(e.fingerprint for e in books.entries("visits") if e.fingerprint)
    found = recorded_profiles([rows_question(table.card)], table.card, books=books, data=data)
    scales = [one.rows.noise.scale for one in found if one.rows is not None]
    assert [round(scale) for scale in scales] == [2, 10, 2, 5]  # at each time, others
    sequences = [one.answers[0].record["entry"]["sequence"] for one in found]
    books.withdraw(sequences[0], words="made up", who=None)
    left = recorded_profiles([rows_question(table.card)], table.card, books=books, data=data)
    scales = [one.rows.noise.scale for one in left if one.rows is not None]
    assert [round(scale) for scale in scales] == [2, 5, 10]
    assert left[0].answers[0].record["entry"]["sequence"] > sequences[0]
    assert recorded_profiles([rows_question(table.card)], table.card, books=books, data="x") == []


def test_by_rho_and_change_one(tmp_path: Path) -> None:
    place = tmp_path / "a.ledger"
    table = lb.table(
        visits(),
        unit="patient",
        name="v",
        neighbours="change-one",
        budget=lb.Budget(kind="zcdp", rho=1),
    )
    profile = table.profile(rho="0.3", columns=["cost", "year"], ledger=place)
    assert profile.rows is not None and profile.rows.noise.variance > 0
    assert Ledger.existing(place).accounts()[0].spent.rho == Fraction(3, 10)


def test_the_stretch_that_stands_out() -> None:
    edges = tuple(map(Fraction, range(11)))
    noise = Noise(scale=10.0)
    counts = (3, -8, 5, 300, 20, 250, 90, 2, -1, 8)
    values = Values(edges=edges, counts=counts, noise=noise)
    assert values.likely == [0, 0, 0, 300, 20, 250, 90, 0, 0, 0]
    for nothing in ((0,) * 10, (-5,) * 10, (1,) + (0,) * 9):
        alone = Values(edges=edges, counts=nothing, noise=noise).likely
        assert sum(alone) == 1


@pytest.mark.parametrize(
    ("asked", "kind", "words"),
    [
        ({}, InvalidParameter, "epsilon is missing"),
        ({"epsilon": 1, "rho": 1}, InvalidParameter, "both given"),
        ({"epsilon": -1}, InvalidParameter, "epsilon"),
        ({"epsilon": float("nan")}, InvalidParameter, "epsilon"),
        ({"epsilon": float("inf")}, InvalidParameter, "epsilon"),
        ({"epsilon": 1, "columns": "cost"}, WrongType, "list"),
        ({"epsilon": 1, "columns": [3]}, WrongType, "names"),
        ({"epsilon": 1, "columns": ["nobody"]}, InvalidParameter, "not on the card"),
        ({"epsilon": 1, "columns": ["region"]}, InvalidParameter, "only bounds of numbers"),
        ({"epsilon": 1, "columns": ["cost", "COST"]}, InvalidParameter, "twice"),
        ({"epsilon": 1, "keys": ["region"]}, WrongType, "list"),
        ({"epsilon": 1, "keys": [[]]}, InvalidParameter, "keys"),
        ({"epsilon": 1, "keys": [["patient"]]}, InvalidParameter, "one by one"),
    ],
)
def test_what_is_refused_charges_nothing(
    asked: dict[str, object], kind: type[Exception], words: str, tmp_path: Path
) -> None:
    table = lb.table(visits(30), unit="patient", name="visits")
    with pytest.raises(kind, match=words):
        table.profile(ledger=tmp_path / "a.ledger", **asked)  # type: ignore[arg-type]
    assert not (tmp_path / "a.ledger").exists()


def test_each_row_a_unit() -> None:
    table = lb.table(visits(), each_row=True, name="visits")
    with pytest.raises(InvalidParameter, match="nothing to count"):
        table.profile(epsilon=1)
    with pytest.raises(InvalidParameter, match="each row"):
        table.profile(epsilon=1, keys=[["region"]])
    profile = table.profile(epsilon=10, columns=["cost"])
    assert profile.rows is None and sum(profile.values["cost"].likely) > 5_000
    assert values_question(table.card, "cost").card.max_rows == 1


def test_more_histograms_than_the_budget_has_are_refused_before_the_first(tmp_path: Path) -> None:
    budget = lb.Budget(kind="pure", epsilon=1)
    table = lb.table(visits(), unit="patient", name="v", budget=budget)
    with pytest.raises(BudgetExceeded):
        table.profile(epsilon="1.2", columns=["cost", "year"], ledger=tmp_path / "a.ledger")
    assert not (tmp_path / "a.ledger").exists()


def test_every_profile_by_which_somebody_may_have_paid_is_found_again(tmp_path: Path) -> None:
    """Rows are bought again, then values: new rows with old values were the best between."""
    place = tmp_path / "a.ledger"
    table = lb.table(visits(), unit="patient", name="visits")
    table.profile(epsilon="0.02", columns=["cost"], ledger=place)
    books, questions = Ledger.existing(place), table.profile_questions(["cost"])
    data = next(one.fingerprint for one in books.entries("visits") if one.fingerprint)

    def found() -> list[tuple[Any, Any]]:
        listed = recorded_profiles(questions, table.card, books=books, data=data)
        return [(one.rows, one.values) for one in listed]

    states = found()[:1]
    table.profile(epsilon="0.1", ledger=place, fresh=True)
    states.insert(0, found()[0])
    lb.suggest_bounds(table, "cost", epsilon=1, ledger=place)
    states.insert(0, found()[0])
    table.profile(epsilon="0.01", ledger=place, fresh=True)  # noisier: nobody goes by it
    assert found()[:3] == states and states[0] != states[1] != states[2]
