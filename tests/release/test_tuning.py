"""max_rows and bounds from noisy histograms: intervals that hold, prices paid once, free shares."""

from __future__ import annotations

import bisect
import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path

import duckdb
import pytest

import lastbit as lb
from lastbit.checker import problem_of
from lastbit.errors import InvalidParameter, QueryRefused
from lastbit.ledger import Ledger
from lastbit.release.profile import rows_query
from lastbit.release.rows_per_unit import (
    CANDIDATES,
    EDGES,
    Noise,
    RowsPerUnit,
    noise_of,
    share_interval,
)
from lastbit.release.tuning import _edges, _shortest, _with_zero
from lastbit.tables import planned

QUIET = Noise(scale=1e-9, rounding=0.0)


def binned(sizes: Sequence[int]) -> list[int]:
    counts = [0] * (len(EDGES) - 1)
    for size in sizes:
        counts[bisect.bisect_right(EDGES, size) - 1] += 1
    return counts


def true_share(sizes: Sequence[int], most: int) -> Fraction:
    """Of all rows, those of the heaviest units included."""
    return Fraction(sum(min(size, most) for size in sizes), sum(sizes))


def laplace(source: random.Random, scale: float) -> int:
    return round(source.expovariate(1 / scale) - source.expovariate(1 / scale))


def units(source: random.Random, number: int = 2_000, mean: float = 20) -> list[int]:
    return [1 + int(source.expovariate(1 / mean)) for _ in range(number)]


# ---------------------------------------------------------------- theorems


def test_no_bin_has_a_candidate_inside() -> None:
    assert all(a >= most or b - 1 < most for a, b in pairwise(EDGES) for most in CANDIDATES)


@pytest.mark.parametrize("weights", [(1.0,), (1.0, 2.0), (3.0, -1.0, 0.5), (1.0, 1.0, 1.0)])
@pytest.mark.parametrize("beta", [0.05, 0.001])
def test_reach_of_laplace_noise_by_enumeration(weights: tuple[float, ...], beta: float) -> None:
    """The exact tail of discrete noise of scale 1, cut off where 1e-5 is left and counted in."""
    q = math.exp(-1.0)
    law = {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-12, 13)}
    noise = Noise(scale=1.0, rounding=0.0)
    far = noise.reach(weights, beta)

    def tail(reach: float) -> float:
        found = 0.0
        for values in product(law, repeat=len(weights)):
            if sum(w * x for w, x in zip(weights, values, strict=True)) > reach:
                found += math.prod(law[x] for x in values)
        return found + len(weights) * 2 * q**13

    assert tail(far) <= beta
    assert tail(far / 3) > beta  # a mutant that is caught: a third of the reach


def test_reach_of_gaussian_noise() -> None:
    law = {k: math.exp(-k * k / 8) for k in range(-30, 31)}
    total = sum(law.values())
    far = Noise(variance=4.0, rounding=0.0).reach([1.0], 0.01)
    assert sum(p for k, p in law.items() if k > far) / total <= 0.01
    assert sum(p for k, p in law.items() if k > far / 3) / total > 0.01


@pytest.mark.parametrize("seed", range(20))
def test_without_noise_every_interval_holds_the_share(seed: int) -> None:
    """The worst that units inside bins can do is in the interval, whatever max_rows."""
    source = random.Random(seed)
    sizes = units(source, source.choice([1, 5, 300]), source.choice([1, 5, 100, 3000]))
    found = RowsPerUnit(tuple(binned(sizes)), QUIET)
    for most in {*CANDIDATES, *(source.randrange(1, 5000) for _ in range(20))}:
        share = found.share(most)
        true = true_share(sizes, most)
        assert share.low <= true <= share.high
    assert found.beyond >= sum(size >= found.limit for size in sizes)


def test_an_interval_without_the_width_of_bins_would_miss() -> None:
    """The mutant: both ends of a bin taken to be its middle."""
    sizes = [32] * 500 + [255] * 100
    counts = binned(sizes)
    middles = [(a + b - 1) / 2 for a, b in pairwise(EDGES)]
    pairs = [(min(n, 64.0), n) for n in middles[:-1]]
    low, high = share_interval(counts[:-1], QUIET, 1e-4, greatest=pairs, least=pairs)
    assert not low <= true_share(sizes, 64) <= high
    share = RowsPerUnit(tuple(counts), QUIET).share(64)
    assert share.low <= true_share(sizes, 64) <= share.high


def test_all_intervals_hold_together() -> None:
    """In 1 of 20 releases at most some share, or the number of units beyond, is missed."""
    source, trials, misses = random.Random(15), 60, 0
    sizes = units(source)
    exact = binned(sizes)
    for _ in range(trials):
        noisy = tuple(count + laplace(source, 10) for count in exact)
        found = RowsPerUnit(noisy, Noise(scale=10.0))
        wrong = found.beyond < sum(size >= found.limit for size in sizes)
        for most in CANDIDATES[2:12:3]:
            share, true = found.share(most), true_share(sizes, most)
            wrong |= not share.low <= true <= share.high
        misses += wrong
    assert misses <= trials / 20


def test_the_value_is_near_the_share() -> None:
    source = random.Random(3)
    sizes = units(source, 50_000)
    found = RowsPerUnit(
        tuple(count + laplace(source, 20) for count in binned(sizes)), Noise(scale=20.0)
    )
    for most in CANDIDATES:
        assert abs(found.share(most).value - true_share(sizes, most)) < 0.03


def test_one_unit_moves_the_histogram_by_one_whatever_max_rows() -> None:
    rows = duckdb.sql("SELECT range AS id FROM range(10)")
    for relation, moved in (("add-remove", 1), ("change-one", 2)):
        for most in (1, 7, 1000):
            table = lb.table(rows, unit="id", max_rows=most, name="v", neighbours=relation)  # type: ignore[call-overload]
            plan = planned(rows_query(None, table.card), table.card, epsilon=Fraction(1, 2))
            assert noise_of(plan.to_json()).scale == pytest.approx(2 * moved, rel=1e-5)


# ---------------------------------------------------------------- answers

ROWS = (
    "SELECT CASE WHEN range < 2000 THEN range ELSE range // 20 + 5000 END AS id, "
    "(range % 50)::DOUBLE AS cost, range % 50 AS wait, ['n', 's'][1 + range % 2] AS region "
    "FROM range(42_000)"
)
BOOKS = "visits.ledger"


@pytest.fixture
def visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., lb.release.Table]:
    """2,000 units of one row, 2,000 of twenty."""
    monkeypatch.chdir(tmp_path)
    duckdb.sql(f"COPY ({ROWS}) TO 'visits.parquet'")

    def made(max_rows: int = 5, **more: object) -> lb.release.Table:
        given = {"unit": "id", "keys": {"region": ["n", "s"]}, **more}
        return lb.table("visits.parquet", max_rows=max_rows, **given)  # type: ignore[call-overload]

    return made


def spent() -> Fraction:
    return Fraction(Ledger.open(BOOKS).spent("visits").epsilon)


def test_max_rows_is_suggested_charged_recorded_and_certified(visits) -> None:
    found = lb.suggest_max_rows(visits(), epsilon=5, ledger=BOOKS)
    assert 20 <= found.max_rows <= 24 and found.limit > 24
    assert problem_of(found.answer.record) is None and spent() == 5
    again = lb.suggest_max_rows(visits(max_rows=found.max_rows), epsilon=5, ledger=BOOKS)
    assert again.max_rows == found.max_rows and spent() == 5  # whatever max_rows
    kept = found.kept(5)
    assert kept.low <= Fraction(12_000, 42_000) <= kept.high
    assert found.line in str(found)


def test_many_groups_want_less_noise(visits) -> None:
    few = lb.suggest_max_rows(visits(), epsilon=5, price="0.01")
    many = lb.suggest_max_rows(visits(), epsilon=5, price="0.01", groups=200)
    assert many.max_rows < few.max_rows
    asked = visits().group_by("region").agg(n=lb.count())
    assert lb.suggest_max_rows(asked, epsilon=1).groups == 2


def share_in(answer: lb.release.Answer) -> dict[str, float] | None:
    found: dict[str, float] | None = answer._seen["whole"]["columns"]["n"]["share"]
    return found


def test_a_tuned_table_says_the_share_for_free(visits) -> None:
    table = visits()
    count = table.agg(n=lb.count())
    before = count.release(epsilon=1, ledger=BOOKS)
    assert share_in(before) is None and "lastbit card profile" in str(before)
    lb.suggest_max_rows(table, epsilon=5, ledger=BOOKS)
    after = count.release(epsilon=1, ledger=BOOKS)
    share = share_in(after)
    assert share is not None and spent() == 6
    assert share["low"] <= Fraction(12_000, 42_000) <= share["high"]
    assert not any("lastbit card tune" in note for note in after.notes)
    assert problem_of(after.record) is None and after.record == before.record
    some = table.where("wait < 10").agg(n=lb.count()).release(epsilon=1, ledger=BOOKS)
    assert some.record["whole"]["profile"]["of"] == "table"


def test_other_data_have_no_share_yet(visits) -> None:
    lb.suggest_max_rows(visits(), epsilon=5, ledger=BOOKS)
    duckdb.sql(f"COPY ({ROWS} WHERE range <> 7) TO 'visits.parquet'")
    assert share_in(visits().agg(n=lb.count()).release(epsilon=1, ledger=BOOKS)) is None


def test_the_share_is_bought_beside_an_answer(visits) -> None:
    asked = visits(max_rows=2).where("wait < 25").group_by("region").agg(n=lb.count())
    answer = asked.release(epsilon=2, ledger=BOOKS, kept=True)
    share = share_in(answer)
    assert spent() == 2 + Fraction(2, 20) and share is not None
    assert (
        "also estimated the share" in answer.notes[0]
        and answer._seen["whole"]["profile"]["of"] == "question"
    )
    again = asked.release(epsilon=2, ledger=BOOKS, kept="0.7")
    assert spent() == 2 + Fraction(2, 20) and share_in(again) == share
    counted = duckdb.sql("SELECT count(*) FROM 'visits.parquet' WHERE wait < 25 GROUP BY id")
    assert counted is not None
    sizes = [size for (size,) in counted.fetchall()]
    assert share["low"] <= true_share(sizes, 2) <= share["high"]


def test_rows_with_other_keys_are_not_among_those_asked_about(visits) -> None:
    only = visits(keys={"region": ["n", None]}).group_by("region").agg(n=lb.count())
    answer = only.release(epsilon=20, kept=20)
    counts = answer._seen["whole"]["profile"]["counts"]
    assert sum(counts) == pytest.approx(1_000 + 2_000, abs=15)


def test_a_share_that_the_budget_does_not_allow_is_said(visits) -> None:
    table = visits(budget=lb.Budget(epsilon=1))
    answer = table.agg(n=lb.count()).release(epsilon=1, ledger=BOOKS, kept=True)
    assert share_in(answer) is None and "did not estimate" in answer.notes[0] and spent() == 1


def test_what_has_no_share_is_refused_before_anything_is_paid(visits) -> None:
    alone = lb.table("visits.parquet", each_row=True)
    for asked in (
        alone.agg(n=lb.count()),
        visits().per_unit(n=lb.count()).agg(m=lb.mean("n", 0, 5)),
    ):
        with pytest.raises(InvalidParameter, match="has no meaning"):
            asked.release(epsilon=1, ledger=BOOKS, kept=True)
    with pytest.raises(InvalidParameter):
        visits().agg(n=lb.count()).release(epsilon=1, ledger=BOOKS, kept=-1)
    with pytest.raises(InvalidParameter):
        lb.suggest_max_rows(alone, epsilon=1, ledger=BOOKS)
    assert spent() == 0


# ---------------------------------------------------------------- bounds


@pytest.mark.parametrize("column", ["cost", "wait"])
def test_bounds_are_suggested(visits, column: str) -> None:
    found = lb.suggest_bounds(visits(), column, epsilon=5, ledger=BOOKS)
    assert list(found.bounds) in ([0, 64], [0, 48])
    assert problem_of(found.answer.record) is None and spent() == 5
    again = lb.suggest_bounds(visits(max_rows=9), column, epsilon=5, ledger=BOOKS)
    assert again == found or (again.bounds == found.bounds and spent() == 1)
    near = lb.suggest_bounds(visits(), column, epsilon=5, share="0.5", between=(-50, 78))
    assert near.bounds[1] - near.bounds[0] <= 40


def test_bounds_that_cannot_be_told_are_refused(visits) -> None:
    with pytest.raises(InvalidParameter, match="noise"):
        lb.suggest_bounds(visits(), "cost", epsilon="0.0001", ledger=BOOKS)
    with pytest.raises(InvalidParameter, match="only bounds of numbers"):
        lb.suggest_bounds(visits(), "region", epsilon=1)
    with pytest.raises(InvalidParameter, match="asked something"):
        lb.suggest_bounds(visits().group_by("region"), "cost", epsilon=1)


def test_the_shortest_stretch() -> None:
    edges = [Fraction(e) for e in (0, 1, 2, 4, 8, 100)]
    assert _shortest([1, 50, 48, 1, 0], edges, Fraction(98)) == (1, 2)
    assert _shortest([0, 0, 0, 0, 9], edges, Fraction(9)) == (4, 4)
    assert _with_zero(1, 3, edges) == (0, 3) and _with_zero(2, 2, edges) == (2, 2)


@pytest.mark.parametrize("kind", ["integer", "number"])
def test_edges_rise(kind: str) -> None:
    assert all(a < b for a, b in pairwise(_edges(kind, None)))


def test_more_declared_keys_than_one_condition_takes(tmp_path: Path) -> None:
    """The share of rows kept cannot be asked for then; the answer itself is given and charged."""
    source, books = tmp_path / "few.csv", tmp_path / "books"
    source.write_text("person,place\n1,7\n2,7\n")
    asked = lb.table(source, unit="person", max_rows=1, keys={"place": range(10_001)})
    counted = asked.group_by("place").agg(n=lb.count())
    answer = counted.release(epsilon=1, ledger=books)
    assert len(answer.record["rows"]) == 10_001 and share_in(answer) is None and answer.charged
    assert not counted.release(epsilon=1, ledger=books).charged
    with pytest.raises(QueryRefused):  # before anything is paid
        counted.release(epsilon=1, ledger=books, kept=True, fresh=True)
    assert len(Ledger.open(books).entries()) == 5  # opened, budget, reserved, drawn, settled
