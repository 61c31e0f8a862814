"""Rows without a name, columns declared in a program, and what is misspelt in `lb.table`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas
import pytest

import lastbit as lb
from lastbit.errors import BudgetExceeded, InvalidParameter, QueryRefused


def plain_frame() -> Any:
    return pandas.DataFrame({"patient": [1, 2], "region": ["n", "s"], "cost": [1.0, 2.0]})


@pytest.mark.parametrize("name", ["df", "visits", "Rows", '"my table"', "main.visits"])
def test_a_frame_answers_to_any_name(name: str) -> None:
    rows = lb.table(plain_frame(), unit="patient", max_rows=2)
    alias = name.rpartition(".")[2]
    text = "SELECT COUNT({}region) AS n FROM {}"
    asked = rows.sql(text.format(f"{alias}.", name))
    assert asked.query == rows.sql(text.format("", "rows")).query
    assert asked.card.account_name == "rows"  # one account, whatever it is called
    inner = rows.sql(f"SELECT COUNT(*) AS n FROM (SELECT * FROM {name}) AS t")
    assert inner.query.table == "rows"


def test_one_budget_is_kept_of_a_frame_under_all_names(tmp_path: Path) -> None:
    rows = lb.table(plain_frame(), unit="patient", max_rows=2, budget=lb.Budget(epsilon=1))
    text, place = "SELECT COUNT(*) AS n FROM ", tmp_path / "x.ledger"
    first = rows.sql(f"{text}a").release(epsilon="0.6", ledger=place)
    again = rows.sql(f"{text}b").release(epsilon="0.6", ledger=place)
    assert again.value == first.value and not again.charged
    with pytest.raises(BudgetExceeded):
        rows.sql("SELECT COUNT(cost) AS n FROM c").release(epsilon="0.6", ledger=place)


@pytest.mark.parametrize(
    "options", [{"name": "visits"}, {"public": {"regions": pandas.DataFrame({"region": ["n"]})}}]
)
def test_other_names_are_refused_with_the_one_to_use(options: Any) -> None:
    rows = lb.table(plain_frame(), unit="patient", max_rows=2, **options)
    with pytest.raises(QueryRefused, match=f"write FROM {options.get('name', 'rows')}"):
        rows.sql("SELECT COUNT(*) FROM regions")


def test_tables_with_a_name_of_their_own_keep_it(tmp_path: Path) -> None:
    plain_frame().to_csv(tmp_path / "visits.csv", index=False)
    rows = lb.table(tmp_path / "visits.csv", unit="patient", max_rows=2)
    with pytest.raises(QueryRefused, match="write FROM visits"):
        rows.sql("SELECT COUNT(*) FROM df")


def test_columns_are_declared_as_a_card_does() -> None:
    declared = {"type": "number", "bounds": [0, 500], "nullable": False}
    rows = lb.table(plain_frame(), unit="patient", max_rows=2, columns={"cost": declared})
    column = lb.Column(name="cost", type="number", bounds=(0, 500), nullable=False)
    assert rows.card.column("cost") == column
    assert rows.agg(cost=lb.mean("cost")).query.aggregates[0].bounds == column.bounds


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"unit": "patiend"}, "did you mean patient"),
        ({"unit": 3}, 'pass unit="patient_id"'),
        ({"keys": {"reigon": ["n"]}}, "did you mean region"),
        ({"keys": ["region"]}, "pass keys="),
        ({"columns": {"cots": "number"}}, "did you mean cost"),
        ({"columns": {"cost": {"type": "number", "bound": [0, 9]}}}, "did you mean bounds"),
        ({"columns": {"cost": {"type": "number", 3: 4}}}, "use type, bounds"),
        ({"columns": {"cost": {"bounds": [0, 9]}}}, "type is missing"),
        ({"public": "regions.csv"}, "pass public="),
        ({"private": [3]}, "pass private="),
    ],
)
def test_what_is_misspelt_is_told(options: Any, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        lb.table(plain_frame(), **{"unit": "patient", "max_rows": 2, **options})
