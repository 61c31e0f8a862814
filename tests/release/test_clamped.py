"""Whole intervals allow for what bounds clamp that lastbit chose."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import lastbit as lb
from lastbit.checker import problem_of
from lastbit.release.clamped import (
    Clamped,
    clamped_by,
    clamped_units,
    clamps_of,
    hidden_cells,
)
from lastbit.release.profile import Profile, Values, value_edges
from lastbit.release.rows_per_unit import EDGES as UNIT_EDGES, Noise, RowsPerUnit
from lastbit.release.whole import _beyond_one_bound, _factors
from lastbit.tables import (
    Aggregate,
    Call,
    ColumnName,
    Constant,
    DataCard,
    Expression,
    Query,
    Source,
)

EDGES = value_edges("number")
NOISE = Noise(scale=12.0)
BOOKS = "books.ledger"


def histogram(values: np.ndarray, rng: np.random.Generator | None) -> Values:
    """The values, one of each unit, in the bins of a profile; with noise."""
    ends = np.array([float(edge) for edge in EDGES])
    places = np.searchsorted(ends, values, side="right") - 1
    counts = np.bincount(places, minlength=len(ends) - 1).astype(float)
    if rng is not None:
        counts += rng.laplace(scale=NOISE.scale, size=len(counts))
    noise = Noise(scale=0.01) if rng is None else NOISE
    return Values(edges=EDGES, counts=tuple(map(round, counts)), noise=noise)


VALUES = histogram(np.random.default_rng(5).lognormal(2, 1, 6_000), np.random.default_rng(6))
A, B = ColumnName("a"), ColumnName("b")


def strayed(values: np.ndarray, low: int, high: int, known: Values) -> tuple[bool, Clamped]:
    """Whether the mean of all lies within what the clamped mean and the estimate allow."""
    clamp = clamped_by(known, (Fraction(low), Fraction(high)))
    mean = float(np.clip(values, low, high).mean())
    below, above = clamp.strays(mean, mean)
    return mean - below <= values.mean() <= mean + above, clamp


def test_without_noise_bins_that_stand_out_are_counted_as_they_are() -> None:
    values = np.array([2.0] * 600 + [20.0] * 300 + [100.0] * 100)
    clamp = clamped_by(histogram(values, None), (Fraction(0), Fraction(32)))
    # 96 to 128 has the middle 112: 80 beyond 32, of a tenth of the units
    assert clamp.above == pytest.approx(8, rel=0.02) and clamp.below == 0
    assert clamp.farther[0] == 0 and clamp.farther[1] == pytest.approx(80, rel=0.02)
    assert clamp.size == clamp.mean == pytest.approx(0.6 * 2.5 + 0.3 * 20 + 0.1 * 32, rel=0.02)
    wide = clamped_by(histogram(values, None), (Fraction(-5), Fraction(128)))
    assert wide.above < 0.5 and wide.below == 0


def test_what_is_below_mirrors_what_is_above() -> None:
    values = np.random.default_rng(3).lognormal(2, 1.3, 4_000)
    known = histogram(values, np.random.default_rng(4))
    turned = replace(known, counts=known.counts[::-1])
    up = clamped_by(known, (Fraction(0), Fraction(16)))
    down = clamped_by(turned, (Fraction(-16), Fraction(0)))
    assert (down.below, down.above, down.mean) == pytest.approx((up.above, up.below, -up.mean))
    assert down.strays(-16, -9) == pytest.approx(up.strays(9, 16)[::-1])
    there, mirrored = sorted(hidden_cells(known)), sorted((-v, n) for v, n in hidden_cells(turned))
    assert np.array(mirrored) == pytest.approx(np.array(there))


@pytest.mark.parametrize(
    ("name", "draw", "high", "misses"),
    [
        ("lognormal", lambda rng: rng.lognormal(2, 1, 6_000), 24, 36),
        ("a power law of exponent 2", lambda rng: rng.pareto(2, 6_000) * 5, 32, 75),
        ("mostly 0", lambda rng: rng.pareto(2, 6_000) * (rng.random(6_000) < 0.1), 2, 100),
        ("an abrupt end", lambda rng: rng.uniform(0, 96, 6_000), 96, 0),
    ],
)
def test_noise_hides_little_of_what_is_clamped(name, draw, high, misses) -> None:
    """Of 150 profiles; without an estimate all miss, but where values end abruptly."""
    missed, allowed = 0, []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        values = draw(rng)
        inside, clamp = strayed(values, 0, high, histogram(values, rng))
        missed += not inside
        allowed.append(clamp.above / clamp.size)
    assert missed <= misses, name
    assert name != "an abrupt end" or np.median(allowed) < 0.01


def test_a_group_near_the_bound_may_be_clamped_as_a_whole() -> None:
    values = np.array([10.0] * 5_000 + [28.0] * 500)
    clamp = clamped_by(histogram(values, None), (Fraction(0), Fraction(20)))
    usual, near = clamp.strays(10, 11)[1], clamp.strays(19.9, 20)[1]
    assert usual < 1.1 and near == pytest.approx(8, rel=0.02)


# ---------------------------------------------------------------- whole answers


@pytest.fixture
def skewed(folder):
    """9,000 people with two visits each: most stays are short, and a few are long."""
    rng = np.random.default_rng(11)
    stays = np.floor(rng.pareto(2.2, 18_000) * 2).astype(int)
    rows = pa.table({"person": np.arange(18_000) % 9_000, "stays": stays})  # noqa: F841
    duckdb.sql("COPY rows TO 'skewed.parquet'")
    return lb.table("skewed.parquet", unit="person")


def true_row(sql: str) -> tuple[float, ...]:
    (row,) = duckdb.execute(sql.replace("FROM skewed", "FROM 'skewed.parquet'")).fetchall()
    return tuple(row)


@pytest.mark.parametrize(
    "asked",
    [
        "SUM(stays) AS x, SUM(stays) / COUNT(*) AS y",
        "AVG(stays) AS x, STDDEV_POP(stays) AS y",
        "SUM(stays - 1) AS x, AVG(2 * stays) AS y",
    ],
)
def test_the_truth_is_inside_where_chosen_bounds_clamp(skewed, asked: str) -> None:
    answer = skewed.sql(f"SELECT {asked} FROM skewed").release(epsilon=1, ledger=BOOKS)
    assert problem_of(answer.record) is None
    truth = true_row(f"SELECT {asked} FROM skewed")
    for cell, number, name in zip(answer[0].cells, truth, answer.columns, strict=True):
        assert cell.whole_low is None or cell.whole_low <= number <= cell.whole_high
        about = answer.record["whole"]["columns"][name]["about"]
        assert "values_thin_out" in about or cell.whole_low is None
    assert "thin out beyond the bounds that lastbit chose" in str(answer)
    assert "within their bounds" not in str(answer)


def test_a_stewards_bounds_are_believed(skewed) -> None:
    answer = skewed.agg(x=lb.sum("stays", 0, 50)).release(epsilon=1, ledger=BOOKS)
    about = answer.record["whole"]["columns"]["x"]["about"]
    assert "within_bounds" in about and "values_thin_out" not in about


def test_recorded_answers_keep_their_intervals(skewed) -> None:
    asked = skewed.agg(x=lb.sum("stays"))
    first, again = (asked.release(epsilon=1, ledger=BOOKS) for _ in range(2))
    assert not again.charged and again.record == first.record and again[0] == first[0]


def test_what_max_rows_does_to_counts_of_a_unit_is_allowed_for(folder) -> None:
    heavy = "SELECT who FROM range(300) AS h(who), range(CAST(2 + who % 60 AS BIGINT))"
    rows = f"SELECT range AS who FROM range(3000) UNION ALL {heavy}"
    duckdb.sql(f"COPY ({rows}) TO 'visits.parquet'")
    table = lb.table("visits.parquet", unit="who")
    inner = "SELECT who, COUNT(*) AS n FROM visits GROUP BY who"
    answer = table.sql(f"SELECT AVG(n) AS mean FROM ({inner})").release(epsilon=1, ledger=BOOKS)
    (true,) = true_row("SELECT count(*) / count(DISTINCT who) FROM 'visits.parquet'")
    cell = answer[0].cell("mean")
    assert cell.whole_low is not None and cell.whole_high is not None
    assert cell.whole_low <= true <= cell.whole_high
    assert problem_of(answer.record) is None


@pytest.mark.parametrize("function", ["SUM", "MAX", "AVG"])
def test_columns_of_a_sub_query_need_no_declared_bounds(skewed, function: str) -> None:
    inner = f"SELECT person, {function}(stays) AS own FROM skewed GROUP BY person"
    asked = f"SELECT AVG(own) AS mean FROM ({inner})"
    answer = skewed.sql(asked).release(epsilon=1, ledger=BOOKS)
    cell = answer[0].cell("mean")
    assert cell.whole_low <= true_row(asked)[0] <= cell.whole_high
    assert "values_thin_out" in answer.record["whole"]["columns"]["mean"]["about"]
    assert problem_of(answer.record) is None


def test_quotients_of_values_below_0_go_as_far_as_their_mirror_image() -> None:
    """Of these the lower ones are the larger."""
    clamp = clamped_by(VALUES, (Fraction(0), Fraction(16)))
    turned = replace(VALUES, counts=VALUES.counts[::-1])
    mirrored = clamped_by(turned, (Fraction(-16), Fraction(0)))
    given: Any = {"name": "x", "function": "sum", "expression": A}
    above = Aggregate(bounds=(Fraction(0), Fraction(16)), **given)
    below = Aggregate(bounds=(Fraction(-16), Fraction(0)), **given)
    factors = [float(one) for one in _factors(above, clamp)]
    assert factors == pytest.approx([1, 1 + clamp.parts[1]]) and factors[1] > 1.1
    assert [float(one) for one in _factors(below, mirrored)] == pytest.approx(factors)


def bounded(function: str, expression: Expression, *, low: int, high: int) -> Query:
    given: Any = {"name": "x", "function": function, "expression": expression}
    part = Aggregate(bounds=(Fraction(low), Fraction(high)), **given)
    return Query(table="t", aggregates=(part,))


def chosen_card(**bounds: tuple[int, int]) -> DataCard:
    columns = {
        name: lb.Column(name=name, type="number", bounds=ends, bounds_chosen=True)
        for name, ends in bounds.items()
    }
    columns["id"] = lb.Column(name="id", type="integer")
    return DataCard(name="t", source=Source(kind="csv"), unit="id", max_rows=5, columns=columns)


def test_without_a_histogram_nothing_is_said_of_what_chosen_bounds_clamp() -> None:
    card = chosen_card(a=(0, 16), b=(0, 16))
    for values, known in (({}, False), ({"a": VALUES}, False), ({"a": VALUES, "b": VALUES}, True)):
        query = bounded("sum", Call("+", (A, B)), low=0, high=32)
        clamp = clamps_of(query, card, Profile(values=values))["x"]
        assert (clamp is not None) is known
    declared = replace(card, columns={**card.columns, "a": lb.Column(name="a", type="number")})
    assert clamps_of(bounded("sum", A, low=0, high=16), declared, Profile()) == {}


def test_an_expression_of_one_column_is_looked_at_where_its_values_are() -> None:
    card, profile = chosen_card(a=(0, 16)), Profile(values={"a": VALUES})
    plain = clamps_of(bounded("mean", A, low=0, high=16), card, profile)["x"]
    turned = Call("-", (Constant(100), A))
    other = clamps_of(bounded("mean", turned, low=84, high=100), card, profile)["x"]
    square = clamps_of(bounded("mean", Call("*", (A, A)), low=0, high=256), card, profile)["x"]
    assert plain is not None and other is not None and square is not None
    assert other.below == pytest.approx(plain.above) and other.above == plain.below
    assert square.parts[1] > 2 * plain.parts[1]


def test_units_beyond_all_bins_are_not_estimated() -> None:
    counts = [900, *[0] * (len(UNIT_EDGES) - 3), 300]
    known = RowsPerUnit(tuple(counts), NOISE)
    assert known.is_open and clamped_units(known, 8) is None
    assert clamped_units(replace(known, counts=(*counts[:-1], 0)), 8) is not None


def test_a_sum_with_one_end_unknown_moves_the_other() -> None:
    part = Aggregate(name="x", function="sum", expression=A, bounds=(Fraction(0), Fraction(9)))
    clamp = clamped_by(VALUES, (Fraction(4), Fraction(16)))
    stray = replace(clamp, below=clamp.size / 4)
    assert _beyond_one_bound(part, (100.0, None), stray) == (75.0, None)
    assert _beyond_one_bound(part, (100.0, None), replace(clamp, below=2 * clamp.size))[0] is None
    signs = replace(part, bounds=(Fraction(-9), Fraction(9)))
    assert _beyond_one_bound(signs, (100.0, None), stray) == (None, None)


@pytest.mark.parametrize("outer", ["AVG(own * 2)", "AVG(own / k)", "AVG(own - low)"])
def test_formulas_of_a_sub_query_are_not_said_to_be_within_chosen_bounds(skewed, outer) -> None:
    columns = "SUM(stays) AS own, COUNT(*) AS k, MIN(stays) AS low"
    inner = f"SELECT person, {columns} FROM skewed GROUP BY person"
    asked = f"SELECT {outer} AS mean FROM ({inner})"
    answer = skewed.sql(asked).release(epsilon=1, ledger=BOOKS)
    cell, about = answer[0].cell("mean"), answer.record["whole"]["columns"]["mean"]["about"]
    wider = cell.whole_low is not None and cell.whole_low < cell.low < cell.high < cell.whole_high
    assert (cell.whole_low is None) if "/" in outer else wider and "values_thin_out" in about
    assert problem_of(answer.record) is None


def test_a_share_bought_besides_does_not_narrow_what_chosen_bounds_clamp(skewed) -> None:
    asked = skewed.where("person < 8000").agg(x=lb.sum("stays"))
    plain = asked.release(epsilon=1, ledger=BOOKS)[0].cell("x")
    answer = asked.release(epsilon=1, ledger=BOOKS, kept=True)
    cell, said = answer[0].cell("x"), answer._seen["whole"]
    assert said["profile"]["of"] == "question"
    assert "values_thin_out" in said["columns"]["x"]["about"]
    assert cell.whole_high - cell.high > (plain.whole_high - plain.high) / 2
