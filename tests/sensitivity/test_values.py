"""Data on the grid: exact, one record at a time, and silent about what they were."""

from __future__ import annotations

import math
from array import array
from collections import UserList, deque
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, strategies as st

from lastbit.errors import InvalidParameter, LastbitError, WrongType
from lastbit.sensitivity.values import Records, records

BOUNDS = st.one_of(
    st.fractions(-1000, 1000, max_denominator=1000),
    st.floats(-1e300, 1e300).map(Fraction),
    st.integers(-(2**70), 2**70).map(Fraction),
)


def expected(value: Any, grid: Records) -> int:
    """Rounded in rationals, clamped."""
    if isinstance(value, float) and math.isinf(value):
        return grid.high if value > 0 else grid.low
    return min(max(round(Fraction(value) / grid.step), grid.low), grid.high)


def grid_of(lower: Fraction, upper: Fraction) -> Records:
    try:
        return records([], lower, upper)
    except InvalidParameter:
        assume(False)
        raise


@given(BOUNDS, BOUNDS)
def test_the_grid(one: Fraction, other: Fraction) -> None:
    assume(abs(one - other) > Fraction(1, 1 << 800))  # closer bounds are refused
    lower, upper = sorted((one, other))
    grid = grid_of(lower, upper)
    assert 2**40 <= (upper - lower) / grid.step < 2**41
    assert grid.step.numerator & (grid.step.numerator - 1) == 0
    assert grid.step.denominator & (grid.step.denominator - 1) == 0
    assert lower <= grid.low * grid.step < lower + grid.step
    assert upper - grid.step < grid.high * grid.step <= upper


@given(st.lists(st.floats(allow_nan=False), max_size=20), BOUNDS, BOUNDS)
@example([5e-324, -5e-324, 1.7e308, -1.7e308, math.inf, -math.inf], Fraction(-1), Fraction(1))
@example([0.5, 1.5, 2.5], Fraction(0), Fraction(2**40))  # ties to even
@example([5e-324, 1.7e308], Fraction(0), Fraction(10**280))
@example([1.7e308, 5e-324], Fraction(0), Fraction(1, 10**250))
def test_floats_are_exact(rows: list[float], one: Fraction, other: Fraction) -> None:
    assume(abs(one - other) > Fraction(1, 1 << 800))  # closer bounds are refused
    lower, upper = sorted((one, other))
    wanted = sorted(expected(row, grid_of(lower, upper)) for row in rows)
    for data in (rows, np.array(rows, np.float64), np.array(rows, np.object_)):
        assert records(data, lower, upper).steps.tolist() == wanted


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20), BOUNDS, BOUNDS)
@example([-(2**63), 2**63 - 1, 0, 2**62], Fraction(-(2**70)), Fraction(2**70))
@example([2**53 + 1, 3, -7], Fraction(0), Fraction(1, 10**40))
@example([2**53 + 1, 3, -7], Fraction(1, 4), Fraction(1, 2))
@example([2**53 + 1, 2**53 + 3], Fraction(2**53), Fraction(2**53 + 4))
@example([2**60 + k for k in range(9)], Fraction(0), Fraction(2**43))
@example([2**60 + k for k in range(9)], Fraction(0), Fraction(2**62))
@example([-(2**63), 2**63 - 1], Fraction(-(2**103)), Fraction(2**103))
@example([-(2**63), 2**63 - 1], Fraction(-(2**104)), Fraction(2**104))
def test_integers_are_exact(rows: list[int], one: Fraction, other: Fraction) -> None:
    assume(abs(one - other) > Fraction(1, 1 << 800))  # closer bounds are refused
    lower, upper = sorted((one, other))
    wanted = sorted(expected(row, grid_of(lower, upper)) for row in rows)
    for data in (rows, np.array(rows, np.int64), np.array(rows, np.object_)):
        assert records(data, lower, upper).steps.tolist() == wanted


def test_other_types_are_exact() -> None:
    huge = [10**30, -(10**30), 2**64 - 1, 0.5, 2**53 + 1, Fraction(1, 3), Decimal("0.1")]
    grid = records([], 0, 2**60)
    assert records(huge, 0, 2**60).steps.tolist() == sorted(expected(x, grid) for x in huge)
    unsigned = np.array([2**64 - 1, 5], np.uint64)
    assert records(unsigned, 0, 2**65).steps.tolist() == [0, 2**39]
    for kind in (np.float16, np.float32, np.int8, np.uint16, np.longdouble):
        found = records(np.array([1, 3], kind), 0, 4)
        assert [q * found.step for q in found.steps.tolist()] == [1, 3]
    assert records(range(3), 0, 4).steps.tolist() == [0, 2**38, 2**39]
    infinite = [Decimal("inf"), Decimal("-inf"), 3]
    assert records(infinite, 0, 4).steps.tolist() == [0, 3 * 2**38, 2**40]


@pytest.mark.parametrize(
    "data", [(3, 1), deque([3, 1]), UserList([1, 3]), array("d", [1, 3]), range(1, 4, 2)], ids=repr
)
def test_any_sequence_passes(data: Any) -> None:
    assert records(data, 0, 4).steps.tolist() == [2**38, 3 * 2**38]


def test_decimals_of_absurd_size_are_clamped_like_any_other() -> None:
    far = [Decimal("1e20000"), Decimal("-1e20000"), Decimal("1e-20000"), Decimal("0e20000")]
    assert records(far, -4, 4).steps.tolist() == [-(2**39), 0, 0, 2**39]
    long = Decimal("3." + "0" * 20000 + "1")
    assert records([long], 0, 4).steps.tolist() == [3 * 2**38]
    for far_out in (Decimal("1e401"), Decimal("1e-401"), Decimal("-1e399"), Decimal("1e-399")):
        for bounds in ((-1, 1), (-(Fraction(2) ** 930), Fraction(2) ** 930)):
            grid = records([], *bounds)
            assert records([far_out], *bounds).steps.tolist() == [expected(far_out, grid)]


class Shy:
    """Fails while it is turned into an array, and says what it holds."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise ValueError("12345 is not a number")


class Column:
    """What pandas and Polars have in common."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([2.0, 1.0])


def test_columns_and_records_pass() -> None:
    found = records(Column(), 0, 4)
    assert found.steps.tolist() == [2**38, 2**39]
    assert records(found, 0, 4) is found
    with pytest.raises(InvalidParameter, match="other bounds"):
        records(found, 0, 5)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=9))
def test_one_record_at_a_time(rows: list[float]) -> None:
    """What becomes of a record does not depend on the others, nor on their order."""
    together = records(rows, -3, 3).steps.tolist()
    apart = sorted(int(records([row], -3, 3).steps[0]) for row in rows)
    assert together == apart == records(rows[::-1], -3, 3).steps.tolist()


@pytest.mark.parametrize(
    "data",
    [
        "123",
        b"123",
        7,
        None,
        [True, False],
        [True, 2.0],
        [1, "2"],
        ["1"],
        [None],
        [[1, 2], [3, 4]],
        [[1], [2, 3]],
        [1j],
        [np.timedelta64(1, "s")],
        [np.bool_(True)],
        [object()],
        np.array(3.0),
        np.zeros((2, 2)),
        np.array([True]),
        np.array(["1"]),
        np.array([1j]),
        np.array([1], "m8[s]"),
        np.ma.masked_array([1.0, 2.0], [True, False]),
        {1: 2},
        {1, 2},
        {1: 2}.values(),
        (x for x in (1, 2)),
        bytearray(b"12"),
        memoryview(b"12"),
    ],
    ids=lambda bad: type(bad).__name__,
)
def test_what_is_no_flat_list_of_numbers_is_refused(data: Any) -> None:
    with pytest.raises((WrongType, InvalidParameter), match="data"):
        records(data, 0, 1)


@pytest.mark.parametrize(
    "data",
    [
        [12345.0, math.nan],
        np.array([12345.0, math.nan]),
        [12345, Decimal("nan")],
        [10**30, 12345, math.nan],
        np.array([12345, math.nan], np.longdouble),
        [12345, "secret"],
        [12345, Decimal("sNaN")],
        Shy(),
    ],
    ids=lambda bad: type(bad).__name__,
)
def test_no_value_in_a_message(data: Any) -> None:
    with pytest.raises(InvalidParameter) as caught:
        records(data, 0, 1)
    assert caught.value.__context__ is None
    assert "12345" not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_nothing_secret_is_shown() -> None:
    assert repr(records([12345] * 777, 0, 10**6)) == "Records(step=2**-21)"


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (1, 0),
        (1, 1),
        (math.nan, 1),
        (0, math.inf),
        (None, 1),
        (0, "x"),
        (True, 2),
        (10**9, 10**9 + Fraction(1, 10**9)),
        (0, Fraction(2) ** 2000),
        (0, Fraction(1, 2**2000)),
    ],
)
def test_bad_bounds_are_refused(lower: Any, upper: Any) -> None:
    with pytest.raises(LastbitError, match=r"lower|upper"):
        records([1], lower, upper)
