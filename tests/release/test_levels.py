"""Counts on several levels that add up: what is asked, paid, shown, kept, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lastbit as lb
from lastbit.checker import problem_of
from lastbit.errors import BudgetExceeded, InvalidParameter, LastbitError
from lastbit.ledger import Ledger
from lastbit.release.levels_answer import LevelsAnswer

BOOKS = "visits.ledger"
AREAS = {
    "aa": ("a", "x"), "ab": ("a", "x"), "ac": ("a", "x"), "ba": ("b", "x"), "c": ("c", "y")
}  # fmt: skip
CODES = [*AREAS, "nowhere"]
REGIONS = {"district": {code: region for code, (region, _) in AREAS.items()}}
ROWS = (
    "SELECT range // 4 AS id, list_value('aa', 'ab', 'ba', 'c', 'nowhere', 'aa')"
    "[1 + (range * 7 + range // 11) % 6] AS district, "
    "list_value('f', 'm', NULL)[1 + range % 3] AS sex FROM range(6000)"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    duckdb.sql(f"COPY ({ROWS}) TO 'visits.parquet'")
    lines = [f"{code},{region},{land}" for code, (region, land) in AREAS.items()]
    Path("areas.csv").write_text("\n".join(["code,region,land", *lines]) + "\n", "utf-8")
    return tmp_path


def visits(**more: Any) -> Any:
    given: dict[str, Any] = {
        "unit": "id",
        "max_rows": 4,
        "keys": {"sex": ["f", "m"]},
        "public": {"areas": "areas.csv"},
    }
    return lb.table("visits.parquet", **(given | more))


def by_area(*names: str, **more: Any) -> Any:
    names = names or ("land", "region", "district")
    return visits(**more).levels(*names, public="areas", on={"district": "code"})


def truth(*columns: str, where: str = "TRUE") -> dict[tuple[Any, ...], int]:
    """What DuckDB counts, of rows of a known district."""
    selected = "".join(f"{column}, " for column in columns)
    grouped = f"GROUP BY {', '.join(columns)}" if columns else ""
    found = duckdb.execute(
        f"SELECT {selected} count(*) FROM 'visits.parquet' JOIN 'areas.csv' ON district = code "
        f"WHERE {where} {grouped}"
    ).fetchall()
    return {row[:-1]: row[-1] for row in found}


def check_sums(answer: LevelsAnswer) -> None:
    """Both numbers of every parent are the sums of its children's, exactly."""
    for above, level in zip(answer.names, answer.names[1:], strict=False):
        for name in ("value", "exact"):
            sums: dict[Any, Any] = {row.keys: 0 for row in answer.level(above)}
            for row in answer.level(level):
                sums[row.parent] += getattr(row, name)
            assert sums == {row.keys: getattr(row, name) for row in answer.level(above)}
    assert all(type(row.value) is int and row.value >= 0 for row in answer)
    assert all(row.low <= row.value <= row.high for row in answer)


def spent() -> Fraction:
    return Fraction(Ledger.open(BOOKS).spent("visits").epsilon)


def test_levels_are_paid_together_and_add_up() -> None:
    answer = by_area().release(epsilon=1, ledger=BOOKS)
    assert spent() == answer.cost.epsilon == 1
    assert answer.names == ("all", "land", "region", "district")
    assert [len(answer.level(name)) for name in answer.names] == [1, 2, 3, 5]
    assert all(problem_of(one.record) is None for one in answer.answers if one is not None)
    check_sums(answer)
    again = by_area().release(epsilon=1, ledger=BOOKS)
    assert spent() == 1 and again.rows == answer.rows
    assert answer.guarantee == "epsilon = 1 differential privacy for one id more or less"
    empty = next(row for row in answer.level("district") if row["district"] == "ac")
    assert empty.parent == ("a",) and empty.value < 200  # a district without a row


@pytest.mark.parametrize(
    ("name", "price"), [("epsilon", "0.01"), ("epsilon", 7), ("rho", "0.1"), ("rho", 1)]
)
def test_any_price_adds_up(name: str, price: Any) -> None:
    answer = by_area("region", "district", "sex").release(**{name: price})
    check_sums(answer)
    assert getattr(answer.cost, name) == Fraction(price)


def test_with_hardly_any_noise_numbers_are_the_truth() -> None:
    """Rows of no known district, and without a declared sex, count on no level."""
    exact = by_area("region", "district", "sex", max_rows=4).release(epsilon=5_000)
    for columns, name in (((), "all"), (("region",), "region"), (("district",), "district")):
        true = truth(*columns, where="sex IS NOT NULL")
        for row in exact.level(name):
            assert row.value == true.get(row.keys, 0)
    true = truth("district", "sex", where="sex IS NOT NULL")
    assert all(row.value == true.get(row.keys, 0) for row in exact.level("sex"))
    by_region = {(one["region"], one["sex"]): one["value"] for one in exact.sums("region", "sex")}
    known = truth("region", "sex", where="sex IS NOT NULL")
    assert {key: n for key, n in by_region.items() if n} == known
    assert sum(one["value"] for one in exact.sums("sex")) == exact.value


def test_limits_weigh_rows_alike_on_all_levels() -> None:
    """A unit has rows in several districts, and more than max_rows: noisy numbers add up still."""
    answer = by_area(max_rows=1, max_groups=1).release(epsilon=5_000)
    for above, level in zip(answer.names, answer.names[1:], strict=False):
        for parent in answer.level(above):
            below = [row.noisy for row in answer.level(level) if row.parent == parent.keys]
            assert abs(parent.noisy - sum(below)) <= 1 + len(below) / 2  # each is rounded
    assert answer.value < sum(truth().values()) / 2


def test_columns_may_cross_the_chain_from_above() -> None:
    answer = by_area("sex", "region", "district").release(epsilon=1)
    assert [len(answer.level(name)) for name in answer.names] == [1, 2, 6, 10]
    assert answer.level("region")[0].columns == ("sex", "region")
    check_sums(answer)


def test_parents_say_what_a_public_table_says() -> None:
    one = visits().levels("region", "district", parents=REGIONS)
    answer = one.release(epsilon=5_000)
    check_sums(answer)
    assert {row.keys: row.value for row in answer.level("region")} == truth("region")
    lands = {"region": {"a": "x", "b": "x", "c": "y"}, **REGIONS}
    deep = visits().levels("land", "region", "district", parents=lands).release(epsilon=5_000)
    assert {row.keys: row.value for row in deep.level("land")} == truth("land")


def test_errors_are_at_most_those_of_asking_one_by_one() -> None:
    for price in ({"epsilon": 1}, {"rho": "0.1"}):
        plan = by_area().plan(**price)
        for place, alone in enumerate(plan.alone):
            (part,) = alone.written.parts
            single = float(part.law.variance) if "rho" in price else None
            single = single or 2 * float(part.law.scale) ** 2
            worst = max(plan.reached.errors[place]) * alone.written.weight_one
            assert worst**2 <= single * (1 + 1e-6)
    words = by_area().explain(epsilon=1)
    assert "price     epsilon = 1 for all levels" in words and "Nothing has been read" in words


def test_shares_may_be_given() -> None:
    shares = {"all": 1, "land": 1, "region": 1, "district": 2}
    plan = by_area().plan(epsilon=1, shares=shares)
    assert [one.cost.epsilon for one in plan.plans] == [
        Fraction(text) for text in ("0.2", "0.2", "0.2", "0.4")
    ]
    with pytest.raises(InvalidParameter, match="shares are not for all levels"):
        by_area().plan(epsilon=1, shares={"all": 1})


def test_given_numbers_are_kept_and_stand_outside_of_the_promise() -> None:
    exact = {row[0]: n for row, n in truth("region").items()}
    asked = visits().levels("region", "district", parents=REGIONS, invariants={"region": exact})
    assert "not for the given numbers of all, region" in asked.explain(epsilon=1)
    answer = asked.release(epsilon=1, ledger=BOOKS)
    assert spent() == 1 and answer.answers[:2] == (None, None)
    assert {row.keys[0]: row.value for row in answer.level("region")} == exact
    assert all(row.low == row.high == row.value for row in answer.level("region"))
    check_sums(answer)
    assert answer.guarantee.endswith(
        "The numbers of all, region were given as exact. The promise does not cover them."
    )
    top = visits().levels("region", "district", parents=REGIONS, invariants={"all": 4000})
    assert top.release(epsilon=1).value == 4000


def test_kept_answers_are_derived_again(folder: Path) -> None:
    answer = by_area().release(epsilon=1)
    answer.save("kept")
    assert LevelsAnswer.load("kept").rows == answer.rows
    assert sorted(path.name for path in Path("kept").iterdir()) == [
        "0.json", "1.json", "2.json", "3.json", "levels.json"
    ]  # fmt: skip
    place = Path("kept/levels.json")
    said = json.loads(place.read_text("utf-8"))
    said["numbers"][0][0] += 1
    place.write_text(json.dumps(said), "utf-8")
    with pytest.raises(InvalidParameter, match="do not follow from the answers beside them"):
        LevelsAnswer.load("kept")
    del said["levels"][0]["keys"]
    place.write_text(json.dumps(said), "utf-8")
    with pytest.raises(InvalidParameter, match="is malformed"):
        LevelsAnswer.load("kept")


def test_exports() -> None:
    answer = by_area("region", "district").release(epsilon=1)
    lines = answer.to_csv("out.csv").splitlines()
    assert lines[0].startswith("level,region,district,value,estimate,standard_error,low,high")
    assert len(lines) == 1 + len(answer) == 10
    assert len(answer.to_pandas()) == len(answer.to_polars()) == 9
    assert "<pre>all" in answer._repr_html_() and repr(answer).startswith("<LevelsAnswer: 9 num")
    with pytest.raises(InvalidParameter, match="level is not in the answer"):
        answer.level("town")
    with pytest.raises(InvalidParameter, match="column is in no level"):
        answer.sums("town")
    with pytest.raises(InvalidParameter, match="column is no key of this level"):
        answer.rows[0]["region"]


def test_whole_intervals_are_those_of_the_level() -> None:
    answer = by_area("region", "district").release(epsilon=1, ledger=BOOKS)
    own = {row.keys: row.cells[0] for row in answer.answers[2]}
    for row in answer.level("district"):
        low, high = own[row.keys].whole_low, own[row.keys].whole_high
        assert row.whole_low == (None if low is None else min(max(low, 0), row.value))
        assert row.whole_high == (None if high is None else max(high, row.value))
    rows = lb.table("visits.parquet", each_row=True, public={"areas": "areas.csv"})
    free = rows.levels("district", public="areas", on={"district": "code"}).release(epsilon=1)
    assert all((row.whole_low, row.whole_high) == (row.low, row.high) for row in free)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["aa,a", "aa,b"], "public has a district in two of region"),
        (["aa,a", "aa,a"], "public has a district in several rows"),
        (["aa,", "ab,a"], "public has a district without a region"),
        ([], "public has no row"),
    ],
)
def test_public_tables_by_which_nothing_adds_up(lines: list[str], words: str) -> None:
    Path("areas.csv").write_text("\n".join(["code,region", *lines]) + "\n", "utf-8")
    with pytest.raises(LastbitError, match=words):
        by_area("region", "district")


@pytest.mark.parametrize(
    ("names", "more", "words"),
    [
        ((), {}, "levels are none"),
        (("all",), {}, "levels have one name twice"),
        (("district", "District"), {}, "levels have one name twice"),
        (("district",), {}, "district has no declared keys"),
        (("region",), {"public": "towns"}, "public is no public table of the card"),
        (("sex",), {"public": "areas"}, "public has none of the levels"),
        (("region",), {"public": "areas", "parents": REGIONS}, "is given beside parents"),
        (("district",), {"parents": REGIONS}, "parents are not for levels below the first"),
        (("region", "district"), {"parents": {"district": {"aa": 1.5}}}, "are not all texts"),
        (
            ("land", "region", "district"),
            {"parents": {"region": {"a": "x"}, **REGIONS}},
            "have a key whose own parent is missing",
        ),
        (
            ("region", "district"),
            {"parents": REGIONS, "invariants": {"district": {}}},
            "invariants are not of one level above the last",
        ),
        (
            ("region", "district"),
            {"parents": REGIONS, "invariants": {"region": {"a": 1}}},
            "invariants are not for all keys of region",
        ),
        (
            ("region", "district"),
            {"parents": REGIONS, "invariants": {"all": -1}},
            "invariants",
        ),
    ],
)
def test_refused(names: tuple[str, ...], more: dict[str, Any], words: str) -> None:
    with pytest.raises(LastbitError, match=words):
        visits().levels(*names, **more)


def test_levels_come_alone_and_need_a_price() -> None:
    with pytest.raises(LastbitError, match="levels comes after group_by, per_unit or agg"):
        visits().group_by("sex").levels("district", parents=REGIONS)
    with pytest.raises(LastbitError, match="epsilon is missing"):
        by_area().plan()
    with pytest.raises(LastbitError, match="both given"):
        by_area().plan(epsilon=1, rho=1)


def test_a_budget_for_a_part_refuses_before_the_first_charge() -> None:
    with pytest.raises(BudgetExceeded):
        by_area(budget=lb.Budget(epsilon="0.9")).release(epsilon=1, ledger=BOOKS)
    assert not Path(BOOKS).exists()


def test_rows_may_be_chosen_first() -> None:
    asked = visits().where("sex = 'f'").levels("region", "district", parents=REGIONS)
    answer = asked.release(epsilon=5_000)
    assert {row.keys: row.value for row in answer.level("region")} == truth(
        "region", where="sex = 'f'"
    )
