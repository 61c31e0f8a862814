"""Values onto the lattice and back: exact, refused in time, the growth of distances counted."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lastbit.errors import LastbitError
from lastbit.mechanisms.lattice import Lattice, _sum, lattice

floats = st.floats(allow_nan=False, allow_infinity=False)
exponents = st.integers(-400, 400)


def grid(exponent: int, dimension: int = 100) -> Lattice:
    return lattice(Fraction(2) ** exponent, noise=Fraction(1), dimension=dimension)


@given(floats, exponents)
def test_a_float_goes_to_the_nearest_multiple(x: float, exponent: int) -> None:
    """Scalars and arrays alike, ties to even, in exact arithmetic, at every magnitude."""
    ground = grid(exponent)
    exact = round(Fraction(x) / ground.step)
    assert ground.steps_of(x) == exact
    assert np.asarray(ground._steps(np.array([x]))).tolist() == [exact]


@given(st.lists(st.tuples(floats, floats), min_size=1, max_size=5), exponents)
def test_distances_grow_by_no_more_than_is_counted(pairs: list, exponent: int) -> None:
    ground = grid(exponent, dimension=len(pairs))
    moved = [abs(ground.steps_of(x) - ground.steps_of(y)) for x, y in pairs]
    apart = [abs(Fraction(x) - Fraction(y)) for x, y in pairs]
    assert sum(moved) <= ground.l1_steps(sum(apart, Fraction(0)))
    # a rational not above the L2 distance times one plus a hair, so that the claim is tested
    squares = sum(a * a for a in apart)
    step = ground.l2_steps(Fraction(0))
    if squares == 0:
        assert sum(m * m for m in moved) == 0
    else:
        assert sum(m * m for m in moved) <= (_root_above(squares) / ground.step + step) ** 2


def _root_above(number: Fraction) -> Fraction:
    from math import isqrt

    shift = 200
    scaled = number * 4**shift
    return Fraction(isqrt(int(scaled)) + 1, 2**shift)


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4),
    st.integers(-60, 60),
)
def test_large_integers_go_onto_a_grid_exactly(values: list[int], exponent: int) -> None:
    """Through floats, 2**54 + 2 and 2**54 + 3 would land hundreds of steps apart."""
    ground = grid(exponent)
    expected = [round(Fraction(v) / ground.step) for v in values]
    assert np.asarray(ground._steps(np.array(values, np.int64))).tolist() == expected


def test_rounding_matters() -> None:
    """A mutant that forgets the rounding is wrong: a tiny move can cross a cell."""
    ground = grid(0, dimension=3)
    apart = 3 * Fraction(2) ** -30
    moved = 3 * abs(ground.steps_of(0.5 - 2.0**-31) - ground.steps_of(0.5 + 2.0**-31))
    assert moved == 3 > apart / ground.step
    assert moved <= ground.l1_steps(apart)


def test_integers_are_not_rounded() -> None:
    ground = lattice(None, noise=Fraction(1), dimension=1)
    assert ground.l1_steps(Fraction(7)) == 7
    assert ground.l2_steps(Fraction(7, 2)) == Fraction(7, 2)
    assert ground.steps_of(2**80) == 2**80


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 5, 100, 10**6])
def test_auto_grid_is_fine_enough(dimension: int) -> None:
    for noise in (Fraction(1, 10**9), Fraction(1), Fraction(10**12), Fraction(1, 3)):
        ground = lattice("auto", noise=noise, dimension=dimension)
        assert ground.step * dimension <= noise / 2**20 < 4 * ground.step * dimension


BAD_FOR_INTEGERS = [
    1.5, 1.0, "1", None, True, np.bool_(True), float("nan"), [1.5], [True], np.array([1.0]),
    np.array(["a"]), [[1], [1, 2]], object(), {"a": 1}, Fraction(1, 2), [None], 1j, np.array([1j]),
]  # fmt: skip


@pytest.mark.parametrize("value", BAD_FOR_INTEGERS, ids=range(len(BAD_FOR_INTEGERS)))
def test_refused_on_the_integers(value: object) -> None:
    with pytest.raises(LastbitError, match="value"):
        lattice(None, noise=Fraction(1), dimension=5)._steps(value)


BAD_FOR_FLOATS = [
    "1", None, True, float("nan"), float("inf"), -float("inf"), np.array([np.nan]),
    np.array([1.0, np.inf]), [None], object(), np.zeros(6), [True], np.array([True]),
    np.array([1j]), [Fraction(1, 2), float("nan")],
]  # fmt: skip


@pytest.mark.parametrize("value", BAD_FOR_FLOATS, ids=range(len(BAD_FOR_FLOATS)))
def test_refused_on_a_grid(value: object) -> None:
    with pytest.raises(LastbitError, match="value"):
        grid(-10, dimension=5)._steps(value)


def test_messages_do_not_show_the_data() -> None:
    hidden = np.array([1.5, "73211"], object)
    for value in (np.array([73211.25, np.nan]), [73211, "73211"], 73211.5, "73211", hidden):
        for ground in (grid(0), lattice(None, noise=Fraction(1), dimension=1)):
            try:
                ground._steps(value)
            except LastbitError as error:
                assert "73211" not in str(error)


@pytest.mark.parametrize("bad", [0, -1, "1/3", 3, "nan", 2.0**600, True])
def test_bad_grids(bad: object) -> None:
    with pytest.raises(LastbitError, match="grid"):
        lattice(bad, noise=Fraction(1), dimension=1)


def test_sums_do_not_wrap() -> None:
    top = np.array([2**63 - 1, 0], np.int64)
    assert _sum(top, np.array([1, 1])).tolist() == [2**63, 1]
    assert _sum(top, np.array([1, 1])).dtype == object
    assert _sum(top, np.array([-1, 1])).dtype == np.int64
    assert _sum(-top, np.array([-5, 0])).tolist() == [-(2**63) - 4, 0]
    big = np.array([2**70], object)
    assert _sum(big, np.array([-(2**70)], object)).dtype == np.int64  # the sum alone decides


@given(st.lists(floats, min_size=1, max_size=20))
def test_without_noise_floats_come_back_within_half_a_step(values: list[float]) -> None:
    ground = grid(-20)
    steps = ground._steps(np.array(values))
    back = ground.on_grid(steps)
    for x, y in zip(values, back.tolist(), strict=True):
        assert abs(Fraction(x) - Fraction(y)) <= max(ground.step / 2, abs(Fraction(x)) / 2**52)


def test_numpy_does_not_choose_the_type_of_a_list() -> None:
    """Mixed with floats, numpy would round 2**60 + 127 to a float, 128 away."""
    ground = grid(-10)
    for values in ([2**60 + 127, 0.5], [2**53 + 1, 0.5], [2**63 + 1, -1], [[2**60 + 1], [0.25]]):
        flat = np.array(values, object).ravel()
        expected = [round(Fraction(v) / ground.step) for v in flat]
        assert np.asarray(ground._steps(values)).ravel().tolist() == expected
    mixed = [np.uint64(2**63 + 3), np.int64(-1)]
    assert np.asarray(ground._steps(mixed)).tolist() == [(2**63 + 3) * 1024, -1024]


@pytest.mark.parametrize("top", [2**63 - 1, 2**63, 2**63 + 1, 2**64, 2**80])
def test_integers_of_any_size_are_integers(top: int) -> None:
    """Whether an input is refused must not depend on how large its integers are."""
    ground = lattice(None, noise=Fraction(1), dimension=1)
    assert np.asarray(ground._steps([top, 0])).tolist() == [top, 0]
    assert np.asarray(ground._steps([])).dtype == np.int64


@pytest.mark.parametrize("value", [np.array(5, np.uint64), np.array(5), np.array(2**63 - 1)])
def test_arrays_without_a_dimension(value: np.ndarray) -> None:
    steps = lattice(None, noise=Fraction(1), dimension=1)._steps(value)
    assert isinstance(steps, np.ndarray)
    assert _sum(steps, np.array(3)).shape == ()
    assert int(_sum(steps, np.array(3))) == int(value) + 3


def test_masked_arrays_and_times_are_refused() -> None:
    for ground in (grid(0), lattice(None, noise=Fraction(1), dimension=9)):
        for value in (
            np.ma.array([1, 2], mask=[False, True]),
            np.timedelta64(5, "s"),
            [True, 5],
            {1: 2},
        ):
            with pytest.raises(LastbitError, match="value"):
                ground._steps(value)
