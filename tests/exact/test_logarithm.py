"""Correctly rounded logarithms: every float against balls, and the proof's own inequality."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings, strategies as st

from lastbit.errors import InvalidParameter, WrongType
from lastbit.exact import logarithm as logarithm
from lastbit.exact.ball import arb_of, ends, working_precision
from lastbit.exact.logarithm import ln, ln_each

POSITIVE = st.floats(min_value=5e-324, max_value=1.7976931348623157e308)


def nearest_ln(x: float) -> float:
    """The nearest float, from a ball of 400 bits."""
    with working_precision(400):
        low, high = ends(arb(x).log())
    nearest = low.numerator / low.denominator
    assert nearest == high.numerator / high.denominator
    return nearest


def hard_points(seed: int, count: int) -> np.ndarray:
    """Near 1, at the edges of the table's cells, at powers of two, subnormal, huge, uniform."""
    random = np.random.default_rng(seed)
    cells = (np.arange(90, 183) + 0.5) / 128
    cells = np.concatenate([cells, cells * (1 + 2.0**-52), cells * (1 - 2.0**-53)])
    near_one = 1 + random.choice([-1, 1], count) * 2.0 ** -random.uniform(1, 53, count)
    edges = [5e-324, 2.0**-1022, 2.0**-53, 1 - 2.0**-53, 1 + 2.0**-52, 1.7976931348623157e308, 1.0]
    return np.concatenate(
        [
            random.random(count) + 2.0**-54,
            near_one,
            2.0 ** random.uniform(-1074, 1023.9, count),
            cells,
            cells * 2.0 ** random.integers(-1000, 1000, cells.size),
            2.0 ** np.arange(-1074.0, 1024),
            [logarithm._HALF_ROOT, math.nextafter(logarithm._HALF_ROOT, 0), math.e, 1 / math.e],
            edges,
        ]
    )


def wrong(points: np.ndarray) -> int:
    return sum(
        y != nearest_ln(x) for x, y in zip(points.tolist(), ln_each(points).tolist(), strict=True)
    )


def test_correctly_rounded():
    assert wrong(hard_points(seed=1, count=4000)) == 0


@given(POSITIVE)
@settings(max_examples=300)
def test_any_float(x):
    assert ln(x) == nearest_ln(x)
    assert ln(x) == ln_each(np.array([x]))[0]


def test_another_arithmetic():
    with localcontext() as context:
        context.prec = 60
        for x in hard_points(seed=2, count=50)[:200].tolist():
            assert float(Decimal(x).ln()) == ln(x)


def test_one_float_and_many_agree():
    points = hard_points(seed=3, count=3000)
    assert [ln(x) for x in points.tolist()] == ln_each(points).tolist()
    assert ln_each(points[:6].reshape(2, 3)).tolist() == ln_each(points[:6]).reshape(2, 3).tolist()
    assert ln_each(np.empty(0)).size == 0


def test_monotone_between_neighbours():
    """Correct rounding never falls where the argument rises."""
    points = np.sort(hard_points(seed=4, count=2000))
    assert (np.diff(ln_each(points)) >= 0).all()


# ---------------------------------------------------------------- the proof


def share_of_margin(points: np.ndarray) -> float:
    """The worst error of `_enclosed`, in parts of the margin it allows for."""
    worst = 0.0
    rows = logarithm._rows()
    for x in points.tolist():
        m, e = math.frexp(x)
        if m < logarithm._HALF_ROOT:
            m, e = m + m, e - 1
        c, high, low, ln2_high, ln2_low = rows[round(m * 128) - 64]
        total, least, most = logarithm._enclosed(m, c, e * ln2_high + high, e * ln2_low + low)
        middle = Fraction(total) + (Fraction(least) + Fraction(most)) / 2
        allowed = (Fraction(most) - Fraction(least)) / 2
        with working_precision(300):
            error = ends(abs(arb(x).log() - arb_of(middle)))[1]
        if allowed:
            worst = max(worst, float(error / allowed))
        else:
            assert error == 0
    return worst


def test_the_bound_of_the_proof():
    assert share_of_margin(hard_points(seed=5, count=2000)) < 1 / 2


def test_what_the_proof_says_is_exact():
    """|r| < 0.006; c has 12 bits; c is 1 only next to 1; the high parts are multiples of 2**-42."""
    for k, (c, high, low, ln2_high, ln2_low) in enumerate(logarithm._rows(), start=64):
        if not 91 <= k <= 181:
            continue
        assert (Fraction(c) * 2048).denominator == 1
        assert c < 2
        assert (c == 1) == (k == 128)
        for edge in (Fraction(2 * k - 1, 256), Fraction(2 * k + 1, 256)):
            assert abs(edge * Fraction(c) - 1) < Fraction(6, 1000)
        for part in (high, ln2_high):
            assert (Fraction(part) * 2**42).denominator == 1
        with working_precision(200):
            for whole, (a, b) in (
                (-arb(c).log(), (high, low)),
                (arb(2).log(), (ln2_high, ln2_low)),
            ):
                rest = ends(whole - arb(a) - arb(b))
                assert max(map(abs, rest)) <= Fraction(1, 2**96)
                assert abs(b) <= 2.0**-43


def test_how_often_balls_decide(monkeypatch):
    asked: list[float] = []
    by_balls = logarithm._by_balls

    def noted(x: float) -> float:
        asked.append(x)
        return by_balls(x)

    monkeypatch.setattr(logarithm, "_by_balls", noted)
    ln_each(np.random.default_rng(6).random(1 << 20) + 2.0**-54)
    assert len(asked) < 60  # about 2**20/2**16 = 16


def test_balls_decide_when_floats_cannot(monkeypatch):
    monkeypatch.setattr(logarithm, "_enclosed", lambda m, c, high, low: (0.0 * m, -m, m))
    assert ln(0.3) == nearest_ln(0.3)
    assert ln_each(np.array([0.3, 0.7])).tolist() == [nearest_ln(0.3), nearest_ln(0.7)]


# ---------------------------------------------------------------- mutants


def test_a_mutant_series(monkeypatch):
    monkeypatch.setattr(logarithm, "_TAIL", (0.3333333333, *logarithm._TAIL[1:]))
    assert share_of_margin(hard_points(seed=7, count=100)) > 1
    assert wrong(hard_points(seed=7, count=3000)) > 0


def test_a_mutant_table(monkeypatch):
    rows = tuple((c, high, low, a, 0.0) for c, high, low, a, _ in logarithm._rows())
    monkeypatch.setattr(logarithm, "_rows", lambda: rows)
    monkeypatch.setattr(
        logarithm, "_columns", lambda: tuple(map(np.array, zip(*rows, strict=True)))
    )
    assert wrong(hard_points(seed=8, count=200)) > 0


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize("x", [0.0, -0.0, -1.0, math.inf, -math.inf, math.nan])
def test_no_logarithm(x):
    with pytest.raises(InvalidParameter, match="has no logarithm"):
        ln(x)
    with pytest.raises(InvalidParameter, match="has no logarithm"):
        ln_each(np.array([0.5, x]))


@pytest.mark.parametrize("x", [1, "1", None, True, [0.5]])
def test_no_float(x):
    with pytest.raises(WrongType):
        ln(x)
    with pytest.raises(WrongType):
        ln_each(x)


def test_no_float64():
    with pytest.raises(WrongType):
        ln_each(np.array([0.5], np.float32))
