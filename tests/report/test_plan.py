"""A plan in words: one wording, one set of numbers on every screen, rounded to the safe side."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars
import pytest
from hypothesis import given, strategies as st

from lastbit.cli.query import _plan_page
from lastbit.errors import InvalidParameter
from lastbit.release.table import table
from lastbit.report.answer import answer_in_terminal, page
from lastbit.report.claims import claim_of
from lastbit.report.page import grouped_up
from lastbit.report.plan import (
    BIAS,
    EMPTY_GROUPS,
    EXTREMES,
    TUNING,
    PlanFacts,
    notes_of,
    plan_words,
    price_warnings,
    read_record,
    title_of,
)
from lastbit.tables import Column
from lastbit.tables.measures import weight_one
from lastbit.tables.plan.parts import NoisePart
from lastbit.tables.plan.plan import Plan, planned
from lastbit.tables.query import aggregates
from lastbit.tables.query.expression import ColumnName
from lastbit.tables.query.query import Aggregate, Query
from lastbit.tables.sql.statement import parsed
from tests.report.answer_records import by_region, card, cell, count, mean, record, simple

PRICES: tuple[dict[str, Any], ...] = (
    {"epsilon": 1},
    {"epsilon": "1/7", "delta": "1e-9"},
    {"rho": "1/3"},
    {"epsilon": 1, "delta": "1e-6"},
)


def record_words(record: dict[str, Any]) -> PlanFacts:
    """What is said of the plan in a record."""
    return read_record(record).facts


def asked(*keys: str) -> Query:
    parts = (
        count(),
        mean(),
        mean("spread", "std"),
        mean("middle", "quantile", level=Fraction(1, 2)),
    )
    return Query(table="visits", aggregates=parts, keys=(by_region(*keys),))


def plans() -> list[Plan]:
    found = [planned(asked("North", "East"), card(), **price) for price in PRICES]
    return [*found, planned(asked(), card(), epsilon=1, delta="1e-9")]


@pytest.mark.parametrize("plan", plans(), ids=range(len(PRICES) + 1))
def test_every_screen_says_the_same(plan: Plan) -> None:
    words = plan_words(plan)
    saved = {"plan": plan.to_json(), "asked": {"query": plan.query.to_json()}}
    assert record_words(saved | {"guarantee": plan.guarantee}) == words
    text, terminal = plan.explain(), repr(_plan_page(plan))
    for row in words.rows:
        for words_of_row in (row.what, row.noise, row.error, row.price):
            assert words_of_row in text and words_of_row in terminal


def test_the_page_has_the_numbers_of_the_explanation() -> None:
    price: dict[str, Any] = {"epsilon": "1/7", "delta": "1e-9"}
    rows = [((key,), [cell(5), cell(1.5), cell(1.5), cell(1.5)]) for key in ("North", "East")]
    html = page(record(asked("North", "East"), rows, **price))
    for row in plan_words(planned(asked("North", "East"), card(), **price)).rows:
        assert row.error in html and row.noise in html and row.sensitivity in html


@pytest.mark.parametrize("plan", plans(), ids=range(len(PRICES) + 1))
def test_errors_are_not_below_the_exact_ones(plan: Plan) -> None:
    measures = {measure.name: measure for measure in plan.measures}
    paid = [row for row in plan_words(plan).rows if row.price]  # units with one key are not
    for part, row in zip(plan.parts, paid, strict=True):
        if not isinstance(part, NoisePart):
            continue
        measure = measures[part.measure]
        step = {"values": measure.step, "squares": measure.step**2}.get(measure.kind, Fraction(1))
        exact = part.law.quantile(Fraction(39, 40)) * step / weight_one(plan.card)
        error = Fraction(row.error.removeprefix("± ").replace(",", ""))
        assert exact <= error <= exact * Fraction(1001, 1000)


@given(st.fractions(min_value=0, max_value=10**18))
def test_numbers_are_rounded_up(number: Fraction) -> None:
    shown = Fraction(Decimal(grouped_up(number).replace(",", "")))
    assert number <= shown <= number * Fraction(1001, 1000)


def test_an_explanation_fits_a_terminal_and_steers_none() -> None:
    query = Query(table="visits", aggregates=(count("a\x1b[2J"),), keys=(by_region(),))
    text = planned(query, card(), epsilon=1, delta="1e-9").explain()
    assert "\x1b" not in text and max(map(len, text.splitlines())) < 120
    assert re.search(r"^price +ε = 1, δ = 1e-9 for the whole answer$", text, re.M)


def test_a_hint_saves_a_second_count() -> None:
    nullable = Query(
        table="visits",
        aggregates=(count(), replace(mean("a"), nullable=True), mean("b")),
        keys=(by_region("North"),),
    )
    assert plan_words(planned(nullable, card(), epsilon=1)).hints == (
        "a: with nullable=False one count would serve all",
    )


def test_a_quantile_that_is_far_off_by_the_declared_rows_is_told() -> None:
    half = mean("half", "quantile", level=Fraction(1, 2))
    query = Query(table="visits", aggregates=(half,), keys=(by_region("North", "East"),))
    (_, *ends) = plan_words(planned(query, card(), epsilon=1)).rows
    off = max(row.off for row in ends if row.off is not None)
    rows = round(2 * off / Fraction(35, 100))  # 35 % of one of two groups
    (hint,) = plan_words(planned(query, card(rows=rows), epsilon=1)).hints
    assert re.search(rf"a group has about {rows // 2:,} rows.* off by 3[56] % of them", hint)
    assert "fewer groups" in hint and "max_rows" in hint and "--no-intervals" in hint
    assert not plan_words(planned(query, card(rows=10**9), epsilon=1)).hints
    whole = Query(table="visits", aggregates=(half,)).without_intervals()
    alone = card(rows=9, unit=None, max_rows=1, max_groups=None)
    (hint,) = plan_words(planned(whole, alone, epsilon=1)).hints
    assert hint.endswith(
        "the table has about 9 rows, and the rank may be off by 100 % of them. "
        "To come closer, pay more"
    )


# ---------------------------------------------------------------- prices that hardly protect


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        ({"epsilon": "20"}, []),
        ({"epsilon": "20.5"}, ["ε = 20.5 hardly protects"]),
        ({"rho": "5"}, []),
        ({"rho": "6"}, ["ρ = 6 hardly protects"]),
        ({"epsilon": "1", "delta": "1e-6"}, []),
        ({"epsilon": "30", "delta": "0.01"}, ["ε = 30", "δ = 0.01 is large"]),
    ],
)
def test_a_price_that_hardly_protects_is_told(cost, words):
    told = price_warnings({"epsilon": "0", "delta": "0", "rho": "0"} | cost)
    assert len(told) == len(words)
    assert all(word in line for word, line in zip(words, told, strict=True))


def test_the_warning_is_said_before_and_after_but_not_recorded():
    """It follows from the price, which the record has: certificates need not repeat it."""
    rows = polars.DataFrame({"id": [1, 2, 3]})
    question = table(rows, unit="id", max_rows=1, name="t").agg(n=aggregates.count())
    words = "A price of ε = 1000 hardly protects anybody"
    assert words in " ".join(question.explain(epsilon=1000).split())
    answer = question.release(epsilon=1000)
    assert words in answer.notes[0] and words in str(answer) and words in answer._repr_html_()
    assert words in page(answer.record) and words not in str(answer.record)
    assert words not in str(question.release(epsilon=1))


def hints_of(query: Query, **limits: Any) -> str:
    price: dict[str, Any] = {"epsilon": 1, "delta": "1e-9"}
    return " ".join(plan_words(planned(query, card(**limits), **price)).hints)


@pytest.mark.parametrize("price", PRICES, ids=range(len(PRICES)))
def test_the_error_that_max_groups_would_give_is_that_of_its_plan(price: dict[str, Any]) -> None:
    wards = Aggregate(name="wards", function="count_distinct", expression=ColumnName("region"))
    query = Query(table="visits", aggregates=(wards,), keys=(by_region("North", "East"),))
    without = plan_words(planned(query, card(max_groups=None), **price))
    (hint,) = without.hints
    assert "max_rows = 20 distinct values" in hint and without.rows[0].error in hint
    declared = plan_words(planned(query, card(max_groups=10), **price))
    assert hint.endswith(f"would make it {declared.rows[0].error}") and declared.hints == ()


def test_a_hint_says_when_one_unit_shows_one_key_only() -> None:
    query = Query(table="visits", aggregates=(count(),), keys=(by_region(),))
    assert "max_groups = 2 or more" in hints_of(query, max_groups=None, max_rows=2)
    assert "max_groups = " not in hints_of(query, max_groups=None)  # many keys count, by shares
    assert "max_groups" not in hints_of(query, max_groups=1)
    assert "max_groups" not in hints_of(query, max_groups=None, unit=None, max_rows=1)


def test_a_hint_says_how_rows_of_a_sub_query_are_bounded() -> None:
    sql = (
        "SELECT AVG(clamp(total, 0, 900)) AS m FROM (SELECT patient, region, "
        "SUM(clamp(cost, 0, 500)) AS total FROM visits GROUP BY patient, region)"
    )
    about = card(max_groups=None)
    (hint,) = plan_words(planned(parsed(sql, about), about, epsilon=1)).hints
    assert "max_rows = 20 rows of the sub-query" in hint and "clamp(x, low, high)" in hint
    about = card(max_groups=1)
    assert plan_words(planned(parsed(sql, about), about, epsilon=1)).hints == ()


def test_rows_without_a_unit_are_said_to_be_left_out() -> None:
    query = Query(table="visits", aggregates=(count(),), keys=(by_region("North"),))
    rows = [(("North",), [cell(5)])]
    said = "lastbit leaves out rows without a patient."
    made = record(query, rows)
    made["notes"] = ["Each patient counts for at most 20 rows: all of them count for less."]
    assert said in notes_of(made) and said in " ".join(record_words(made).limits)
    # readers of a page are told of the bias, and not how to tune a card
    assert TUNING in notes_of(made) and BIAS in page(made) and "card tune" not in page(made)
    assert EMPTY_GROUPS not in notes_of(made)
    made = record(query, rows, card=card(unit=None, max_rows=1, max_groups=None))
    assert "without" not in " ".join([*notes_of(made), *record_words(made).limits])


def test_empty_groups_and_extremes_have_a_note() -> None:
    parts = (count(), mean("most", "max"))
    rows = [(("North",), [cell(5), cell(7)])]
    query = Query(table="visits", aggregates=parts, keys=(by_region("North"),))
    assert notes_of(record(query, rows))[-2:] == [EXTREMES, EMPTY_GROUPS]
    found = Query(table="visits", aggregates=(count(), mean()), keys=(by_region(),))
    notes = notes_of(record(found, rows, epsilon=1, delta="1e-9"))
    assert EMPTY_GROUPS not in notes and EXTREMES not in notes


# ---------------------------------------------------------------- what is read


def test_the_claim_of_several_quantiles_can_be_read() -> None:
    """Before, the tree's error was looked for in a question that the claim had not handed on."""
    rows = polars.DataFrame({"id": range(50), "cost": [float(i) for i in range(50)]})
    costs = {"cost": Column(name="cost", type="number", bounds=(Fraction(0), Fraction(50)))}
    question = table(rows, unit="id", max_rows=1, name="t", columns=costs)
    levels = {f"q{i}": aggregates.quantile("cost", Fraction(i, 10)) for i in range(1, 10)}
    answer = question.agg(**levels).release(epsilon=1)
    (tree,) = record_words(answer.record).rows
    assert tree.what.startswith("tree of")
    said = dict(claim_of(answer.certificate).facts)
    assert said[tree.what] == f"{tree.noise}: {tree.price}"


@pytest.mark.parametrize("spoiled", [{}, {"parts": 7}, {"measures": [{}]}, {"cost": {"rho": "x"}}])
@pytest.mark.parametrize("shown", [page, answer_in_terminal, notes_of, title_of, record_words])
def test_a_malformed_record_is_refused_in_words(shown: Any, spoiled: dict[str, Any]) -> None:
    """Before, what was missing came out as a KeyError."""
    whole = simple()
    wrong = {**whole, "plan": {**whole["plan"], **spoiled} if spoiled else {}}
    with pytest.raises(InvalidParameter, match=r"record is not an answer's; pass what save\(\)"):
        shown(wrong)
