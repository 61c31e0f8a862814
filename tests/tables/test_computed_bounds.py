"""Bounds of what is computed: they hold what DuckDB computes, and a // b means what it has."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import duckdb
import pytest
from hypothesis import assume, given, settings, strategies as st

from lastbit.errors import QueryRefused
from lastbit.tables.query.computed import (
    about_bounds,
    computed_bounds,
    extreme_bounds,
    quotient_bounds,
    rest_bounds,
)
from lastbit.tables.query.expression import Call, ColumnName, Constant
from lastbit.tables.query.query import Aggregate
from lastbit.tables.query.types import sure_range
from lastbit.tables.sql.statement import parsed
from tests.tables.asked import COLUMNS, card_with, column

EXTRA = (
    column("big", "integer", bounds=(Fraction(0), Fraction(10**7)), step=Fraction(1)),
    column("low", "number", bounds=(Fraction(1), Fraction(100))),
    column("neg", "integer", bounds=(Fraction(-25), Fraction(25)), step=Fraction(1)),
)
CARD = card_with(columns={one.name: one for one in (*COLUMNS, *EXTRA)})


def mean(text: str) -> Aggregate:
    (part,) = parsed(f"SELECT AVG({text}) AS x FROM visits", CARD).aggregates
    return part


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("sqrt(low)", 1, 10), ("sqrt(neg)", 0, 5), ("sqrt(low) * 2 - 1", 1, 19),
        ("ln(low)", 0, "4.60517018599"), ("exp(low / 100)", "1.01005016708", "2.71828182846"),
        ("power(age, 2)", 0, 14400), ("neg ^ 2", 0, 625), ("power(neg, 3)", -15625, 15625),
        ("power(low, -1)", "0.01", 1), ("power(low, 0.5)", 1, 10), ("power(2, low / 10)",
        "1.07177346253", 1024), ("power(neg, 0.5)", 0, 5),
        ("age % 7", 0, 6), ("neg % 7", -6, 6), ("age % 1000", 0, 120), ("low % 7", 0, 7),
        ("round(low / 3, 1)", "0.3", "33.4"), ("round(age, -1)", 0, 120),
        ("age // 10", 0, 12), ("neg // 10", -2, 2), ("low // 10", "0.1", 10),
        ("age // 7.5", 0, 16), ("length(region)", 0, 5), ("length(ward)", 0, 4096),
        ("length(substring(ward, 1, 3))", 0, 3), ("length(substring(ward, 4, -2)) + 1", 1, 3),
        ("least(neg, age)", -25, 120), ("least(age, 9)", 0, 9), ("greatest(age, neg)", -25, 120),
        ("greatest(neg, 9)", 9, 25), ("least(coalesce(neg, 0), age)", -25, 25),
        ("bin(free, 0, 18, 65)", 0, 18),
        ("ln(clamp(free, 1, 50)) / ln(10)", 0, "1.69897000434"),
    ],
)  # fmt: skip
def test_bounds_that_follow(text: str, low: Any, high: Any) -> None:
    bounds = mean(text).bounds
    assert bounds is not None
    assert bounds[0] == Fraction(low)
    assert float(bounds[1]) == pytest.approx(float(Fraction(high)), rel=1e-10)
    assert bounds[1] >= Fraction(high) or text.endswith("ln(10)")


@pytest.mark.parametrize("text", ["ln(age)", "power(neg, -1)", "exp(big)", "ln(free)", "free // 2"])
def test_no_bounds_where_none_follow(text: str) -> None:
    with pytest.raises(QueryRefused, match="has no bounds"):
        mean(text)


def test_whole_results_are_on_the_grid_of_whole_numbers() -> None:
    for text in ("age % 7", "age // 10", "length(ward)", "bin(free, 0, 18, 65)"):
        assert mean(text).step == 1
    assert mean("low // 10").step is None


NUMBERS = st.integers(-400, 400).map(lambda n: Fraction(n, 8))
SPANS = st.tuples(NUMBERS, NUMBERS).map(lambda pair: (min(pair), max(pair)))
EXPONENTS = st.one_of(
    st.integers(-4, 4).map(lambda n: (Fraction(n),) * 2),
    st.sampled_from([Fraction(1, 2), Fraction(-3, 2)]).map(lambda n: (n, n)),
    st.tuples(st.integers(-3, 3), st.integers(0, 9)).map(
        lambda p: (Fraction(p[0]), p[0] + Fraction(p[1], 4))
    ),
)
ENGINE = duckdb.connect()
SQL = {
    "sqrt": "sqrt(a)", "ln": "ln(a)", "exp": "exp(a)", "%": "a % b", "power": "pow(a, b)",
    "round": "round(a, b)", "/": "a / b", "abs": "abs(a)",
}  # fmt: skip


def computed(function: str, a: Fraction, b: Fraction) -> float | None:
    """What DuckDB makes of it; None where it stops, or where that is no number."""
    places = int(b) if function == "round" else float(b)
    try:
        row = ENGINE.execute(
            f"SELECT {SQL[function]} FROM (SELECT $a::DOUBLE AS a, "
            f"$b::{'INTEGER' if function == 'round' else 'DOUBLE'} AS b)",
            {"a": float(a), "b": places},
        ).fetchone()
    except duckdb.Error:
        return None
    assert row is not None
    return row[0] if row[0] is not None and math.isfinite(row[0]) else None


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(sorted(SQL)), SPANS, SPANS, EXPONENTS, st.data())
def test_the_engine_stays_within(
    function: str, first: Any, second: Any, exponent: Any, data: Any
) -> None:
    if function == "power":
        second = exponent
    if function == "round":
        second = (Fraction(data.draw(st.integers(-2, 3))),) * 2
    one_sided = function in ("sqrt", "ln", "exp", "abs")
    bounds = about_bounds(function, [first] if one_sided else [first, second])
    assume(bounds is not None)
    assert bounds is not None
    for _ in range(4):
        a, b = (
            pair[0] + data.draw(st.sampled_from([Fraction(k, 8) for k in range(9)]))
            * (pair[1] - pair[0])
            for pair in (first, second)
        )  # fmt: skip
        value = computed(function, a, b)
        if value is not None:
            slack = Fraction(1, 10**9) * (1 + abs(Fraction(value)))
            assert bounds[0] - slack <= Fraction(value) <= bounds[1] + slack
            sure = computed_bounds(function, [first] if one_sided else [first, second])
            if sure is not None and function in ("sqrt", "%", "abs"):
                assert sure[0] <= Fraction(value) <= sure[1]


@settings(max_examples=200, deadline=None)
@given(st.integers(-99, 99), st.integers(0, 99), st.integers(-20, 20).filter(bool), st.data())
def test_whole_quotients_and_rests(low: int, width: int, divisor: int, data: Any) -> None:
    ends, by = (Fraction(low), Fraction(low + width)), (Fraction(divisor),) * 2
    a = data.draw(st.integers(low, low + width))
    (row,) = ENGINE.execute(f"SELECT {a} // {divisor}, {a} % {divisor}").fetchall()
    quotient, rest = quotient_bounds(ends, by), rest_bounds(ends, by, whole=True)
    assert quotient is not None
    assert quotient[0] <= row[0] <= quotient[1]
    assert rest[0] <= row[1] <= rest[1]
    assert quotient_bounds(ends, (Fraction(-1), Fraction(1))) is None


def test_a_quotient_of_fractions_is_a_quotient() -> None:
    """As DuckDB has it: 7.5 // 2 is 3.75."""
    half = Call("/", (ColumnName("cost"), Constant(2)))
    where = parsed("SELECT COUNT(*) FROM visits WHERE cost // 2 > 1", CARD).where
    assert where == Call(">", (half, Constant(1)))
    assert ENGINE.execute("SELECT 7.5::DOUBLE // 2, 7 // 2.0").fetchall() == [(3.75, 3.5)]


@pytest.mark.parametrize(
    ("whole", "floored"),
    [
        ("age // 10", "FLOOR(age / 10)"), ("age // 10 * 10", "FLOOR(age / 10) * 10"),
        ("10 * (age // 10)", "FLOOR(age / 10) * 10"), ("big // 100000", "FLOOR(big / 100000)"),
        ("big // 100000 * 100000", "FLOOR(big / 100000) * 100000"),
        ("clamp(many, 0, 99) // 10", "FLOOR(clamp(many, 0, 99) / 10)"),
        ("age // 1000", "FLOOR(age / 1000)"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("where", ["", " WHERE age BETWEEN 18 AND 64", " WHERE big < 5000000"])
def test_a_whole_quotient_is_as_public_as_a_floor(whole: str, floored: str, where: str) -> None:
    text = "SELECT {} AS k, COUNT(*) AS n FROM visits{} GROUP BY k"
    (mine,), (other,) = (parsed(text.format(made, where), CARD).keys for made in (whole, floored))
    assert mine.values == other.values is not None


def test_rows_beyond_the_bounds_are_in_the_nearest_group() -> None:
    (key,) = parsed("SELECT neg // 10 AS k, COUNT(*) FROM visits GROUP BY k", CARD).keys
    assert key.values == (-2, -1, 0, 1, 2)
    assert isinstance(key.expression, Call)
    assert key.expression.function == "clamp"
    assert key.expression.arguments[1:] == (Constant(-2), Constant(2))


def test_what_is_missing_is_left_out_of_the_least() -> None:
    """LEAST(NULL, 20) is 20, whatever bounds the missing part has."""
    parts = [(Fraction(0), Fraction(9)), (Fraction(4), Fraction(20))]
    ends = "SELECT least(NULL, 20), greatest(NULL, 4), least(NULL, 4), greatest(9, NULL)"
    assert ENGINE.execute(ends).fetchall() == [(20, 4, 4, 9)]
    assert extreme_bounds("least", parts, [False, False]) == span(0, 20)
    assert extreme_bounds("least", parts, [True, False]) == span(0, 9)
    mirrored = [(-high, -low) for low, high in parts]
    assert extreme_bounds("greatest", mirrored, [False] * 2) == span(-20, 0)
    assert extreme_bounds("least", [parts[0], None], [True, False]) is None
    few, many = (Call("clamp", (ColumnName("a"), Constant(0), Constant(n))) for n in (9, 20))
    assert sure_range(Call("least", (few, many))) == span(0, 20)
    assert sure_range(Call("least", (Constant(9), many))) == span(0, 9)


def span(low: int, high: int) -> tuple[Fraction, Fraction]:
    return Fraction(low), Fraction(high)
