"""cos_sin_turn against Arb, point by point, and mutants that must be found out."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, strategies as st
from numpy.typing import NDArray

from lastbit.exact import trigonometry as turn
from lastbit.exact.ball import arb_of, ends, working_precision
from lastbit.exact.trigonometry import TURN_ERROR, cos_sin_turn

UNIT = 2.0**-53


def worst_error(points: NDArray[np.float64]) -> float:
    """The largest absolute error of both functions, in balls of 160 bits, rounded up."""
    cosine, sine = cos_sin_turn(points)
    assert cosine.shape == sine.shape == points.shape
    with working_precision(160):
        worst = arb(0)
        for v, c, s in zip(points.tolist(), cosine.tolist(), sine.tolist(), strict=True):
            angle = arb(v) * 2
            worst = max(worst, abs(arb(c) - angle.cos_pi()).upper())
            worst = max(worst, abs(arb(s) - angle.sin_pi()).upper())
        return math.nextafter(float(worst), math.inf)


def hard_points(seed: int, count: int) -> NDArray[np.float64]:
    """Everywhere, near the eighths of a turn, and next to 0 and 1."""
    random = np.random.default_rng(seed)
    eighths = random.integers(0, 9, count) / 8
    near = eighths + random.normal(size=count) * 2.0 ** -random.integers(1, 56, count)
    points = np.concatenate(
        [
            random.uniform(0, 1, count),
            random.uniform(0.11, 0.14, count),
            near[(near >= 0) & (near < 1)],
            2.0 ** random.uniform(-1074, 0, count),
            (2 * random.integers(0, 1 << 52, count) + 1) * 2.0**-54,
            [0.0, 5e-324, 2.0**-54, 0.125, 0.375, 0.5, 0.875, math.nextafter(1, 0)],
        ]
    )
    return points[points < 1]


@pytest.mark.evidence
def test_the_error_stays_within_its_bound():
    worst = worst_error(hard_points(seed=1, count=40_000))
    assert worst <= TURN_ERROR
    # the proof says 3 units of 2**-53; more would show that it is wrong though the bound holds
    assert worst <= 3 * UNIT, f"worst error {worst / UNIT:.2f} units"


@given(st.floats(0, 1, exclude_max=True))
def test_any_point(point):
    assert worst_error(np.array([point])) <= TURN_ERROR


MUTANTS = [
    ("_COSINE", turn._COSINE[:6]),
    ("_COSINE", (*turn._COSINE[:3], 85.4568, *turn._COSINE[4:])),
    ("_SINE", turn._SINE[:6]),
    ("_SINE", (6.28318530717958, *turn._SINE[1:])),
]


@pytest.mark.parametrize(
    ("name", "mutant"), MUTANTS, ids=["cosine short", "cosine", "sine short", "two pi"]
)
def test_a_mutant_exceeds_the_bound(monkeypatch, name, mutant):
    monkeypatch.setattr(turn, name, mutant)
    assert worst_error(hard_points(seed=2, count=500)) > TURN_ERROR


def test_the_coefficients_are_the_nearest_floats():
    with working_precision(200):
        for first, table in ((0, turn._COSINE), (1, turn._SINE)):
            for k, coefficient in enumerate(table):
                j = 2 * k + first
                exact = (2 * arb.pi()) ** j / math.factorial(j)
                off = abs(arb(coefficient) - exact)
                assert off <= arb_of(Fraction(math.ulp(coefficient)) / 2)


def test_the_reduction_is_exact():
    points = hard_points(seed=3, count=4_000)
    quarters = np.rint(points * 4)
    rest = points - quarters * 0.25
    for v, j, t in zip(points.tolist(), quarters.tolist(), rest.tolist(), strict=True):
        assert Fraction(v) - Fraction(j) / 4 == Fraction(t)
        assert abs(t) <= 0.125


def test_the_recurrence_of_the_proof():
    """The error bounds of the docstring, from their own recurrence, in exact arithmetic."""
    square = Fraction(1, 64)
    totals = []
    for table, exact_start in ((turn._COSINE, True), (turn._SINE, False)):
        error, behind = Fraction(0), Fraction(0)
        for k in reversed(range(len(table))):
            size = Fraction(table[k])
            own = Fraction(0) if k == 0 and exact_start else size
            error = square * error + own + 2 * square * behind + size
            behind = size
        totals.append(error)
    cosine, sine = totals
    with working_precision(100):
        left_out = ends((arb.pi() / 4) ** 18 / math.factorial(18) * 2**53)[1]
    assert cosine < Fraction("2.4")
    assert left_out < Fraction("0.02")
    assert sine < Fraction("15.4")
    assert sine / 8 + Fraction("0.71") + Fraction("0.01") < Fraction("2.7")


def test_exact_values_and_shapes():
    cosine, sine = cos_sin_turn(np.array([0.0, 0.25, 0.5, 0.75]))
    assert cosine.tolist() == [1, 0, -1, 0]
    assert sine.tolist() == [0, 1, 0, -1]
    assert cos_sin_turn(np.array([]))[0].shape == (0,)
    assert cos_sin_turn(np.zeros((2, 3)))[1].shape == (2, 3)
    argument = np.array([0.3, 0.9])
    cos_sin_turn(argument)
    assert argument.tolist() == [0.3, 0.9]  # the caller's array is left alone


@pytest.mark.parametrize("outside", [-5e-324, 1.0, 1e308, math.inf, -math.inf, math.nan])
def test_outside_the_proof_it_refuses(outside):
    with pytest.raises(ValueError, match="below 1"):
        cos_sin_turn(np.array([0.5, outside]))


def test_other_floats_are_refused():
    with pytest.raises(TypeError, match="float64"):
        cos_sin_turn(np.zeros(2, np.float32))
