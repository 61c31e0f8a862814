"""Limits that are left out: chosen from the profile, which the first question buys in its price."""

from __future__ import annotations

import threading
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import given, strategies as st

import lastbit as lb
from lastbit.checker import problem_of
from lastbit.errors import BudgetExceeded, InvalidParameter, QueryRefused, WrongType
from lastbit.ledger import Ledger
from lastbit.release import choosing
from lastbit.release.choosing import prepare_plan, split_price
from lastbit.release.limits import open_columns, open_questions, with_limits
from lastbit.release.profile import Profile, Values
from lastbit.release.rows_per_unit import EDGES, Noise, RowsPerUnit
from lastbit.tables import Budget, Column, admitted, planned

PRICE: dict[str, Any] = {"epsilon": 1, "delta": None, "rho": None, "weights": None}


def arrow(sql: str) -> Any:
    relation = duckdb.sql(sql)
    assert relation is not None
    return relation.to_arrow_table()


def visits(number: int = 6_000, rows: int = 3, seed: int = 0) -> Any:
    sql = f"""SELECT (range + {seed}) // {rows} AS patient,
              ['a', 'b', 'c'][1 + range % 3] AS region, 1990 + range % 7 AS year,
              100.0 + range % 50 AS cost FROM range({number})"""
    return arrow(sql)


def table(**declared: Any) -> Any:
    return lb.table(visits(), **{"unit": "patient", "name": "visits", **declared})


def costs(place: Path) -> list[Any]:
    return [one.cost for one in Ledger.existing(place).entries("visits") if one.cost]


# ---------------------------------------------------------------- the price

DECIMALS = st.builds(
    lambda digits, places: Fraction(digits, 10**places),
    st.integers(1, 10**12 - 1),
    st.integers(0, 16),
)
PRICES = st.one_of(
    DECIMALS,
    st.builds(Fraction, st.integers(1, 10**4), st.integers(1, 100)),
    st.floats(2**-20, 2**20).map(Fraction),
).filter(admitted)


@given(PRICES, st.integers(1, 5))
def test_prices_on_the_grid_are_the_price(price: Fraction, number: int) -> None:
    for least in (None, number + 1):  # a twentieth in all, and equal parts
        try:
            parts = split_price(price, number, least)
        except InvalidParameter:
            # 1/97 has no part with a denominator up to 100
            assert price.numerator < 20 * number and price.denominator * (number + 1) > 100
            continue
        assert sum(parts) == price and len(parts) == number + 1
        assert all(part > 0 and admitted(part) for part in parts)


@pytest.mark.parametrize("price", [1, "0.1", "1/3", 0.1, "0.123456789012", "1/100", 3, "1e-6"])
@pytest.mark.parametrize("number", [1, 2, 3, 4, 7])
def test_usual_prices_can_be_shared(price: Any, number: int) -> None:
    parts = split_price(Fraction(price), number)
    assert sum(parts) == Fraction(price) and parts[-1] > Fraction(price) / 2


# ---------------------------------------------------------------- paying


@pytest.mark.parametrize(
    ("price", "budget"),
    [
        ({"epsilon": 1}, Budget(kind="pure", epsilon=2)),
        ({"epsilon": "1/3", "delta": "1e-9"}, Budget(kind="approx", epsilon=1, delta="1e-8")),
        ({"rho": "0.5"}, Budget(kind="zcdp", rho=1)),
        ({"epsilon": 0.1}, Budget(kind="pure", epsilon=1)),
    ],
)
@pytest.mark.parametrize("neighbours", ["add-remove", "change-one"])
@pytest.mark.thinned(one_in=3)
def test_the_charges_are_the_price_and_asking_again_is_free(
    price: dict[str, Any], budget: Budget, neighbours: str, tmp_path: Path
) -> None:
    place = tmp_path / "a.ledger"
    asked = table(budget=budget, neighbours=neighbours, keys={"region": ["a", "b", "c"]})
    question = asked.group_by("region").agg(n=lb.count(), c=lb.mean("cost"))
    first = question.release(ledger=place, **price)
    currency = "rho" if "rho" in price else "epsilon"
    charges = costs(place)
    assert len(charges) == 3  # rows, values, and the answer
    whole = Fraction(price[currency])
    assert sum(getattr(one, currency) for one in charges) == whole
    assert getattr(charges[-1], currency) >= whole / 2
    assert sum(one.delta for one in charges) == first.cost.delta == charges[-1].delta
    assert problem_of(first.record) is None
    again = question.release(ledger=place, **price)
    assert not again.charged and again.record == first.record and len(costs(place)) == 3
    # another question has the profile free, and one charge
    other = asked.where("year > 1991").agg(s=lb.sum("cost"))
    other.release(ledger=place, **{**price, currency: whole / 2})
    assert len(costs(place)) == 4
    assert getattr(costs(place)[-1], currency) == whole / 2


def test_new_noise_costs_the_whole_price_and_no_profile(tmp_path: Path) -> None:
    place, question = tmp_path / "a.ledger", table().agg(n=lb.count())
    question.release(epsilon=1, ledger=place)
    question.release(epsilon=1, ledger=place, fresh=True)
    assert [one.epsilon for one in costs(place)] == [Fraction(1, 10), Fraction(9, 10), 1]
    # what was paid for in full is on record too
    assert not question.release(epsilon=1, ledger=place).charged


def test_a_better_profile_later_leaves_what_is_on_record(tmp_path: Path) -> None:
    place, question = tmp_path / "a.ledger", table().agg(n=lb.count(), c=lb.mean("cost"))
    first = question.release(epsilon="0.01", ledger=place)
    table().profile(epsilon=5, columns=["cost"], ledger=place, fresh=True)
    before = len(costs(place))
    again = question.release(epsilon="0.01", ledger=place)
    assert not again.charged and again.record == first.record and len(costs(place)) == before


def test_other_data_have_another_profile(tmp_path: Path) -> None:
    place = tmp_path / "a.ledger"
    table().agg(n=lb.count()).release(epsilon=1, ledger=place)
    other = lb.table(visits(6_006), unit="patient", name="visits")
    other.agg(n=lb.count()).release(epsilon=1, ledger=place)
    assert [one.epsilon for one in costs(place)] == [Fraction(n, 10) for n in (1, 9, 1, 9)]


def test_a_budget_for_one_of_both_is_refused_before_the_first(tmp_path: Path) -> None:
    place = tmp_path / "a.ledger"
    asked = table(budget=Budget(kind="pure", epsilon="0.96"))
    with pytest.raises(BudgetExceeded):
        asked.agg(n=lb.count()).release(epsilon=1, ledger=place)
    assert not place.exists()
    asked.agg(n=lb.count()).release(epsilon="0.5", ledger=place)
    with pytest.raises(BudgetExceeded):  # 0.46 is left, of which 0.0125 would buy the values
        asked.agg(c=lb.mean("cost")).release(epsilon="0.47", ledger=place)
    assert len(costs(place)) == 2
    with pytest.raises(BudgetExceeded):
        asked.agg(c=lb.mean("cost")).release(epsilon=1)  # without a ledger as well


@pytest.mark.parametrize(
    "ask",
    [
        lambda t, p: t.agg(c=lb.mean("region")).release(epsilon=1, ledger=p),
        lambda t, p: t.agg(c=lb.mean("cost")).release(epsilon=0, ledger=p),
        lambda t, p: t.agg(c=lb.mean("cost")).release(epsilon=float("nan"), ledger=p),
        lambda t, p: t.agg(c=lb.mean("cost")).release(ledger=p),
        lambda t, p: t.agg(c=lb.mean("cost")).release(epsilon="1/97", ledger=p),
        lambda t, p: t.agg(c=lb.mean("cost")).release(within=3, ledger=p),
        lambda t, p: t.agg(n=lb.count()).release(within=3, ledger=p),
        lambda t, p: t.group_by("region").agg(n=lb.count()).release(epsilon=1, ledger=p),
        lambda t, p: t.agg(n=lb.count()).release(epsilon=1, ledger=p, weights={"x": 1}),
        lambda t, p: t.agg(n=lb.count()).release(epsilon=1, ledger=p, kept=-1),
        lambda t, p: t.agg(n=lb.count()).release(epsilon=1, ledger=p, profile=3),
        lambda t, p: t.agg(n=lb.count()).release(
            epsilon=1, ledger=p, profile=table(name="others").profile(epsilon=1)
        ),
        lambda t, p: t.agg(n=lb.count()).release(
            epsilon=1, ledger=p, profile=table(unit="year").profile(epsilon=1)
        ),
        lambda t, p: t.marginals({"r": "bin(year, 1990, 1993, 1997)"}).release(epsilon=1, ledger=p),
    ],
)
def test_what_is_refused_leaves_no_ledger(ask: Any, tmp_path: Path) -> None:
    place = tmp_path / "a.ledger"
    with pytest.raises((InvalidParameter, WrongType)):
        ask(table(), place)
    assert not place.exists()


def test_killed_between_the_charges_the_next_finds_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, question = tmp_path / "a.ledger", table().agg(n=lb.count())
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):

        def stopped(*_: Any, **__: Any) -> Any:
            raise KeyboardInterrupt

        patched.setattr(choosing, "_by_profile", stopped)
        question.release(epsilon=1, ledger=place)
    assert [one.epsilon for one in costs(place)] == [Fraction(1, 10)]
    question.release(epsilon=1, ledger=place)
    assert [one.epsilon for one in costs(place)] == [Fraction(1, 10), 1]


def test_two_who_ask_at_once_buy_one_profile(tmp_path: Path) -> None:
    place = tmp_path / "a.ledger"
    Ledger.open(place)
    frame, barrier, answers = visits(), threading.Barrier(2), []

    def ask() -> None:
        asked = lb.table(frame, unit="patient", name="visits").agg(n=lb.count())
        barrier.wait()
        answers.append(asked.release(epsilon=1, ledger=place))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    amounts = [one.epsilon for one in costs(place)]
    assert amounts.count(Fraction(1, 10)) == 1 and len(answers) == 2
    # the quicker one may have had its profile on record before the other looked for it
    assert sorted(amounts) in (
        [Fraction(1, 10), Fraction(9, 10)],
        [Fraction(1, 10), Fraction(9, 10), 1],
    )


def test_without_a_ledger_each_release_pays_unless_it_is_handed_a_profile() -> None:
    question = table().agg(n=lb.count(), c=lb.mean("cost"))
    answer = question.release(epsilon=1)
    assert answer.cost.epsilon == Fraction(4, 5)
    assert any("pass profile=" in note for note in (answer.shown or {})["notes"])
    profile = table().profile(epsilon="0.2", columns=["cost"])
    handed = question.release(epsilon=1, profile=profile)
    assert handed.cost.epsilon == 1
    # what it lacks is bought
    rest = question.agg(y=lb.mean("year")).release(epsilon=1, profile=profile)
    assert rest.cost.epsilon == Fraction(9, 10)


# ---------------------------------------------------------------- what is said


def test_plan_and_notes_say_what_was_chosen(tmp_path: Path) -> None:
    place = tmp_path / "a.ledger"
    question = table().agg(n=lb.count(), c=lb.mean("cost"))
    before = question.explain(epsilon=1, ledger=place)
    assert "lastbit first buys a profile of the table for ε = 0.2 in 2 charges" in " ".join(
        before.split()
    )
    assert "lastbit assumes at most 10 rows" in before and not place.exists()
    prices = "ε = 0.8 for the whole answer, and ε = 0.2 for a profile before: ε = 1 in all"
    assert prices in " ".join(before.split())
    answer = question.release(epsilon=1, ledger=place)
    notes = (answer.shown or {})["notes"]
    assert "From the profile, lastbit chose at most 3 rows of each patient." in notes
    bounds = "From the profile, lastbit chose bounds of cost: "
    assert any(note.startswith(bounds) for note in notes)
    assert "Of the price, ε = 0.2 bought a profile of the table." in notes
    after = " ".join(question.explain(epsilon=1, ledger=place).split())
    assert "From the profile, lastbit chose at most 3 rows of each patient." in after
    plan = question.plan(epsilon=1, ledger=place)
    assert plan.card.max_rows == 3 and question_is(answer, plan)


def question_is(answer: Any, plan: Any) -> bool:
    return bool(answer.record["plan"] == plan.to_json())


def test_declared_limits_stay_and_nothing_is_bought(tmp_path: Path) -> None:
    place = tmp_path / "a.ledger"
    asked = table(max_rows=2, columns={"cost": Column(name="cost", type="number", bounds=(0, 9))})
    asked.agg(n=lb.count(), c=lb.mean("cost")).release(epsilon=1, ledger=place)
    assert [one.epsilon for one in costs(place)] == [1]
    assert open_questions(asked.agg(c=lb.mean("cost"))) == ()
    given_bounds = table(max_rows=2).agg(c=lb.mean("cost", 0, 500), s=lb.sum("clamp(cost, 0, 9)"))
    assert open_questions(given_bounds) == ()
    assert open_columns(table(max_rows=2).agg(s=lb.sum("cost + clamp(year, 0, 9)"))) == ("cost",)


def test_an_open_card_that_reaches_the_planner_is_refused() -> None:
    query = table().agg(n=lb.count()).query
    with pytest.raises(QueryRefused, match="max_rows is not declared"):
        planned(query, table().card, epsilon=1)
    with pytest.raises(InvalidParameter, match="no max_rows"):
        table(max_rows=1).join(lb.table(visits(), unit="patient", name="more"))


def test_chosen_bounds_make_no_keys() -> None:
    """Groups of a column whose bounds are chosen are still found privately."""
    question = table().group_by("year").agg(y=lb.mean("year"), n=lb.count())
    profile = exact_profile([3] * 2_000, {"year": (1024, 2048)})
    chosen, _ = with_limits(question, profile, {**PRICE, "delta": "1e-9"})
    assert chosen.query.groups is None and chosen.query.keys[0].values is None


# ---------------------------------------------------------------- which limits


def exact_profile(
    sizes: list[int], values: dict[str, tuple[int, int]] | None = None, scale: float = 0.1
) -> Profile:
    counts = [0] * (len(EDGES) - 1)
    for size in sizes:
        counts[max(i for i, edge in enumerate(EDGES[:-1]) if edge <= size)] += 1
    noise = Noise(scale=scale, rounding=0.0)
    edges = tuple(Fraction(2) ** power for power in range(16))
    found = {
        name: Values(
            edges=edges,
            counts=tuple(len(sizes) if low <= edge < high else 0 for edge in edges[:-1]),
            noise=noise,
        )
        for name, (low, high) in (values or {}).items()
    }
    return Profile(rows=RowsPerUnit(tuple(counts), noise), values=found)


def test_the_choice_is_a_function_and_follows_the_price() -> None:
    heavy = [1] * 5_000 + [40] * 400 + [600] * 20
    profile = exact_profile(heavy)
    question = table().agg(n=lb.count())
    limits = [
        with_limits(question, profile, {**PRICE, "epsilon": price})[0].card.max_rows
        for price in ("0.001", "0.01", "0.1", "1", "100")
    ]
    assert limits == sorted(limits) and limits[0] < limits[-1] == 767
    assert (
        with_limits(question, profile, PRICE)[0].card
        == with_limits(question, profile, PRICE)[0].card
    )


def test_more_groups_take_a_lower_limit() -> None:
    profile = exact_profile([1] * 5_000 + [40] * 400 + [600] * 20)
    few = table(keys={"region": ["a"]}).group_by("region").agg(n=lb.count())
    many = table(keys={"region": [f"{i}" for i in range(200)]}).group_by("region").agg(n=lb.count())
    one, other = (with_limits(q, profile, PRICE)[0].card.max_rows for q in (few, many))
    assert other < one


@pytest.mark.parametrize(
    "profile",
    [
        exact_profile([]),
        exact_profile([1]),
        exact_profile([60_000] * 3),
        exact_profile([1 << 20] * 1_000),
        exact_profile([5] * 3, {"cost": (1, 1)}, scale=1_000.0),
        exact_profile([5] * 3, {"cost": (0, 1 << 20)}),
    ],
)
def test_profiles_of_nothing_and_of_noise_give_limits(profile: Profile) -> None:
    if not profile.values:
        profile = replace(profile, values=exact_profile([1] * 5, {"cost": (8, 64)}).values)
    question = table().agg(n=lb.count(), c=lb.mean("cost"), m=lb.median("cost"))
    chosen, words = with_limits(question, profile, PRICE)
    assert planned(chosen.query, chosen.card, epsilon=1).cost.epsilon == 1
    assert 1 <= chosen.card.max_rows < 1 << 20 and len(words) == 2


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 AS patient, 2.5 AS cost",
        "SELECT 1 AS patient, 2.5 AS cost FROM range(3_000)",
        "SELECT 1 AS patient, 2.5 AS cost WHERE false",
        "SELECT range AS patient, NULL::DOUBLE AS cost FROM range(100)",
        "SELECT range AS patient, 'inf'::DOUBLE AS cost FROM range(900)",
        "SELECT range AS patient, 1e60 AS cost FROM range(900)",
        "SELECT range AS patient, -0.001 AS cost FROM range(900)",
    ],
)
def test_tables_at_the_edge_are_answered(sql: str) -> None:
    rows = arrow(sql)
    asked = lb.table(rows, unit="patient", name="t")
    answer = asked.agg(n=lb.count(), s=lb.sum("cost"), m=lb.median("cost")).release(epsilon=2)
    assert answer.record["rows"] and problem_of(answer.record) is None


def test_bounds_where_width_costs_nothing_are_wider_than_what_is_seen() -> None:
    profile = exact_profile([1] * 1_000, {"cost": (32, 512)})
    median, mean = (
        with_limits(table().agg(x=asked), profile, PRICE)[0].query.aggregates[0].bounds
        for asked in (lb.median("cost"), lb.mean("cost"))
    )
    assert median == (0, 1_024) and mean in ((0, 512), (0, 256))


def test_a_column_of_0_and_1_is_bounded_by_them() -> None:
    rows = arrow("SELECT range AS who, range % 2 AS late FROM range(5_000)")
    asked = lb.table(rows, unit="who", name="t")
    question = asked.agg(s=lb.sum("late"), m=lb.mean("late"))
    chosen, _ = with_limits(question, asked.profile(epsilon=5, columns=["late"]), PRICE)
    assert {part.bounds for part in chosen.query.aggregates} == {(Fraction(0), Fraction(1))}


@pytest.mark.parametrize("step", [None, "0.25", 3, 1_000])
def test_bounds_are_wider_than_a_declared_step(step: Any) -> None:
    column = Column(name="cost", type="number", step=step)
    question = table(columns={"cost": column}).agg(s=lb.sum("cost"), m=lb.median("cost"))
    for ends in ((1, 1), (1, 4), (8, 64), (0, 1 << 15)):
        chosen, _ = with_limits(question, exact_profile([1] * 50, {"cost": ends}), PRICE)
        assert planned(chosen.query, chosen.card, epsilon=1).cost.epsilon == 1


# ---------------------------------------------------------------- kinds of questions


def test_units_by_group_have_groups_of_their_own(tmp_path: Path) -> None:
    place = tmp_path / "a.ledger"
    question = table().group_by("region").agg(u=lb.count_units())
    assert [one.keys is not None for one in open_questions(question)] == [False, True]
    answer = question.release(epsilon=20, delta="1e-9", ledger=place)
    assert answer.record["plan"]["max_groups"] in (3, 4)
    assert {round(row.u / 100) for row in answer} == {20}
    one = table(max_groups=1, max_rows=1).group_by("region").agg(u=lb.count_units())
    notes = one.release(epsilon=1, delta="1e-9").notes
    assert "u: each patient counts in at most 1 group." in notes
    # declared keys: no group is left out where that is better
    declared = table(keys={"region": ["a", "b", "c"]}).group_by("region").agg(u=lb.count_units())
    prepared = prepare_plan(declared, {**PRICE, "epsilon": 20, "delta": "1e-9"}, ledger=place)
    assert prepared.plan.card.max_groups is None


def test_a_sub_query_and_each_row() -> None:
    sql = "SELECT AVG(n) AS m FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient)"
    answer = table().sql(sql).release(epsilon=20)
    assert 2.9 < answer.value < 3.1
    each = lb.table(visits(), each_row=True, name="visits")
    found = each.agg(c=lb.mean("cost"), n=lb.count()).release(epsilon=20)
    assert 120 < found.rows[0].c < 129 and found.cost.epsilon == 18
    assert open_questions(each.agg(n=lb.count())) == ()


def test_counts_of_a_units_rows_are_keys_up_to_the_chosen_limit() -> None:
    """In steps as in SQL: not up to what stands in for max_rows while it is open."""
    for inner, sql in ((lb.count(), "COUNT(*)"), (lb.count_distinct("region"), "")):
        question = table().per_unit(n=inner).group_by("n").agg(u=lb.count())
        found = {row.n: row.u for row in question.release(epsilon=20)}
        assert round(found[3] / 100) == 20 and max(found) >= 3
        if sql:
            text = f"SELECT n, COUNT(*) AS u FROM (SELECT patient, {sql} AS n FROM visits "
            asked = table().sql(f"{text} GROUP BY patient) GROUP BY n")
            profile = exact_profile([3] * 2_000)
            chosen = [with_limits(one, profile, PRICE)[0].query for one in (question, asked)]
            assert chosen[0].keys == chosen[1].keys


def test_a_join_has_its_own_histogram(tmp_path: Path) -> None:
    place = tmp_path / "a.ledger"
    labs = arrow("SELECT range // 4 AS who, range AS dose FROM range(8_000)")
    asked = table(private={"labs": lb.table(labs, unit="who", max_rows=9)})
    asked.agg(n=lb.count()).release(epsilon=1, ledger=place)
    joined = asked.join("labs").agg(n=lb.count())
    (wanted,) = open_questions(joined)
    assert not wanted.whole_table
    answer = joined.release(epsilon=20, ledger=place)
    assert [one.epsilon for one in costs(place)] == [Fraction(1, 10), Fraction(9, 10), 2, 18]
    assert answer.record["plan"]["max_rows"] >= 12 and 23_000 < answer.value < 25_000
    # the table's own profile does not do, though it is handed over
    profile = asked.profile(epsilon=1)
    assert prepare_plan(joined, PRICE, profile=profile).plan.before.epsilon == Fraction(1, 10)


def test_within_needs_a_profile_and_has_one_charge(tmp_path: Path) -> None:
    place, question = tmp_path / "a.ledger", table().agg(n=lb.count())
    with pytest.raises(InvalidParameter, match="buy the profile first"):
        question.release(within=50, ledger=place)
    table().profile(epsilon="0.2", ledger=place)
    answer = question.release(within=50, ledger=place)
    assert len(costs(place)) == 2 and answer.record["plan"]["max_rows"] == 3


def test_every_answer_that_was_chosen_for_is_certified(tmp_path: Path) -> None:
    question = table().group_by("region").agg(n=lb.count(), s=lb.sum("cost"), v=lb.std("cost"))
    answer = question.release(epsilon=1, delta="1e-9", ledger=tmp_path / "a.ledger")
    answer.save(tmp_path / "answer.json")
    assert problem_of(answer.record) is None


def test_a_profile_that_is_handed_over_without_a_ledger_is_said_to_be_believed(
    tmp_path: Path,
) -> None:
    """Of other data it says that nothing is lost where nine rows in ten are: nobody can see it."""
    one, ten = (
        lb.table(duckdb.sql(f"SELECT range % {n} AS u FROM range(5000)"), unit="u", max_rows=1)
        for n in (5000, 500)
    )
    handed = ten.agg(n=lb.count()).release(epsilon=1, profile=one.profile(epsilon=2))
    assert (handed[0].cell("n").whole_high or 0) < 1000
    assert sum("rest on the profile that you passed" in note for note in handed.notes) == 1
    books = tmp_path / "t.ledger"
    told = ten.agg(n=lb.count()).release(epsilon=1, profile=one.profile(epsilon=2), ledger=books)
    assert told[0].cell("n").whole_high is None and "you passed" not in " ".join(told.notes)
