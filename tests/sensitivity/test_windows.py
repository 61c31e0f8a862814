"""The discounted maximum, found level by level, against all pairs."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from numpy.typing import NDArray

from lastbit.sensitivity.windows import FLOOR, Window, discounts, reach, widest, widest_discounted

CLOSE = 2.0**-34


def all_pairs(padded: NDArray[np.int64], window: Window, rate: float, slack: int = 0) -> float:
    """Every pair, in plain floats; `slack` is a mutation of the distance."""
    best = 0.0
    corner = window.first_end - window.last_start
    for i in range(window.last_start + 1):
        j = np.arange(window.first_end, len(padded))
        distance = j - i - corner - 1 + slack
        products = (padded[j] - padded[i]) * np.exp(-rate * np.maximum(distance, 0))
        best = max(best, float(products[distance >= slack].max(initial=0.0)))
    return best


def agree(padded: NDArray[np.int64], window: Window, rate: float, slack: int = 0) -> bool:
    truth = all_pairs(padded, window, rate, slack)
    found = widest_discounted(padded, window, rate)
    floor = float(FLOOR) * float(padded[-1] - padded[0])
    return truth * (1 - CLOSE) <= max(found, floor) and found <= truth * (1 + CLOSE)


def padded_of(rows: list[int], high: int) -> NDArray[np.int64]:
    return np.array([0, *sorted(rows), high], np.int64)


RATES = st.sampled_from([2.0**-20, 1e-4, 0.003, 0.05, 0.3, 1.0, 3.5, 7.9])


@given(
    st.one_of(
        st.lists(st.integers(0, 2**41), min_size=1, max_size=200),
        st.lists(st.sampled_from([0, 1, 2, 1000, 2**40]), min_size=1, max_size=200),
        st.lists(st.integers(0, 41).map(lambda k: 2**k), min_size=1, max_size=200),
    ),
    RATES,
    st.floats(0, 1),
    st.floats(0, 1),
)
@example([0] * 200, 0.3, 0.5, 0.0)
@example([2**41] * 3, 2.0**-20, 0.5, 0.9)
def test_against_all_pairs(rows: list[int], rate: float, place: float, share: float) -> None:
    padded = padded_of(rows, 2**41)
    first = 1 + int(place * (len(rows) - 1))
    last = first + int(share * (len(rows) - first))
    assert agree(padded, Window(first, last), rate)


def test_long_data_of_many_shapes() -> None:
    """Large enough for several blocks at a level and for pruning."""
    ramp = np.arange(3000, dtype=np.int64)
    shapes = [ramp, ramp**3 // 3000, np.sort((ramp * 7919) % 3001), ramp // 500 * 500]
    for shape in shapes:
        padded = np.concatenate(([0], shape, [int(shape.max()) + 1]))
        for rate in (1e-5, 1e-3, 0.02):
            for window in (Window(1500, 1500), Window(1, 1), Window(3000, 3000), Window(900, 2100)):
                assert agree(padded, window, rate)


def test_mutants_are_rejected() -> None:
    padded = padded_of([3, 5, 6, 10, 18, 33], 64)
    window = Window(3, 3)
    assert agree(padded, window, 0.5)
    assert not agree(padded, window, 0.5, slack=1)  # the distance one too large
    truth = widest_discounted(padded, window, 0.5)
    assert truth > widest_discounted(padded, window, 1.0) * (1 + CLOSE)  # the rate doubled
    assert truth > widest_discounted(padded[1:-1], Window(2, 2), 0.5) * (1 + CLOSE)  # no padding


@pytest.mark.parametrize("window", [Window(2, 2), Window(2, 4), Window(1, 1), Window(5, 5)])
def test_widest_by_definition(window: Window) -> None:
    padded = padded_of([1, 2, 4, 8, 9], 20)
    corner = window.first_end - window.last_start
    for distance in range(8):
        pairs = [
            padded[min(j, 6)] - padded[max(i, 0)]
            for i in range(-9, window.last_start + 1)
            for j in range(window.first_end, 16)
            if j - i == corner + 1 + distance
        ]
        assert widest(padded, window, distance) == max(pairs)


def test_the_floor_and_the_reach() -> None:
    for rate in (2.0**-20, 0.01, 1.0, 8.0):
        far = reach(rate)
        assert exp(-rate * far) < FLOOR
        assert 2 * far * rate <= 512
    assert len(discounts(1.0, 10**9)) == 481
    assert widest_discounted(padded_of([5] * 4001, 10), Window(2000, 2000), 1.0) == 0
