"""Quotients in integers give the cells of the formulas in Fractions, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from lastbit.laws import DiscreteGaussian, DiscreteLaplace
from lastbit.release.intervals import Cell, Means, over_one_unit
from lastbit.release.reach import MeasureNoise
from lastbit.tables import Measure
from tests.release.plain_cells import mean_cell

RATIONALS = st.fractions(Fraction(1, 1000), 1000, max_denominator=1000)


@st.composite
def boxes(draw: Any) -> tuple[Measure, tuple[Fraction, Fraction], list[MeasureNoise]]:
    """A measure between its bounds, and the noises of rows, values and squares."""
    step = draw(RATIONALS) * Fraction(2) ** draw(st.integers(-60, 60))
    width = draw(st.integers(1, 1 << draw(st.integers(1, 40))))
    lowest = draw(st.sampled_from([0, -(width // 2), -width, draw(st.integers(-width, width))]))
    centre = draw(st.fractions(-1000, 1000, max_denominator=100))
    measure = Measure(
        name="m", kind="values", centre=centre, step=step, lowest=lowest, highest=lowest + width
    )
    bounds = centre + step * lowest, centre + step * (lowest + width)
    kind = draw(st.sampled_from([DiscreteLaplace, DiscreteGaussian]))
    sizes = [draw(RATIONALS) * width**power for power in range(3)]
    return measure, bounds, [MeasureNoise(kind(size)) for size in sizes]


@st.composite
def numbers(draw: Any, measure: Measure) -> tuple[int, int, int]:
    """Noisy rows, values and squares, of groups that could be and of some that could not."""
    rows = draw(st.integers(-2, 1 << draw(st.integers(1, 50))))
    ends = abs(rows) * measure.lowest, abs(rows) * measure.highest
    values = draw(st.integers(*ends)) + draw(st.integers(-9, 9))
    largest = max(abs(measure.lowest), abs(measure.highest)) ** 2
    squares = draw(st.integers(-9, abs(rows) * largest + 9))
    return rows, values, squares


def exactly(cell: Cell) -> str:
    """Every bit of it, the sign of zero too."""
    return repr(cell)


@given(box=boxes(), data=st.data())
@settings(max_examples=150, deadline=None)
def test_cells_are_those_of_the_formulas(box: Any, data: Any) -> None:
    measure, bounds, noises = box
    means = Means(measure, bounds, noises[:2])
    for _ in range(4):
        three = data.draw(numbers(measure))
        plain = mean_cell(measure, bounds, noises, three[:2], means.reach)
        assert exactly(means(three[:2])) == exactly(plain)


@pytest.mark.parametrize("field", ["value", "standard_error", "low", "high"])
def test_a_difference_in_any_field_is_seen(field: str) -> None:
    cell = Cell(1.0, 2.0, 0.0, 3.0)
    assert exactly(replace(cell, **{field: -getattr(cell, field)})) != exactly(cell)


@given(st.lists(RATIONALS, min_size=1, max_size=4))
def test_over_one_unit(some: list[Fraction]) -> None:
    tops, unit = over_one_unit(*some)
    assert [Fraction(top, unit) for top in tops] == some
